//! The elements that an operand of bmod, bswitch, btop or bbot means, by element group of their
//! array, and the room for further groups.

use crate::batch::Mbatchd;
use crate::batch::state::Job;
use crate::model::event::JobModify;
use crate::model::reason::err;
use crate::proto::client::IdSel;
use std::collections::BTreeMap;

/// Parts that are changed in one unit of work: all of them are looked at for each.
pub(crate) const PARTS_PER_UNIT: usize = 4;

/// Parts of an array, at most: each is looked at whenever one of its elements changes.
pub(crate) const MAX_PARTS: usize = 1000;

/// The elements of a part that a request means; no element: all of the part.
pub(crate) struct Meant {
    pub(super) part: u32,
    pub(super) elems: Vec<u32>,
}

/// The elements meant, in order; 0 for the whole job.
pub(crate) fn named(sel: &IdSel, meant: &[Meant]) -> Vec<u32> {
    if sel.elems.is_empty() {
        return vec![0];
    }
    let mut all: Vec<u32> = meant.iter().flat_map(|m| m.elems.iter().copied()).collect();
    all.sort_unstable();
    all
}

impl Job {
    /// The change of a whole part, to nothing yet; part 0: of the job.
    pub(crate) fn change_of(&self, part: u32) -> JobModify {
        let one = self.part(part).and_then(|p| p.first());
        let elems = one.map(|idx| (idx, idx, 1)).into_iter().collect();
        JobModify { job: self.id, elems, alike: part != 0, ..JobModify::default() }
    }
}

impl Mbatchd {
    /// The elements of a job that an operand names, part by part, without those that are over;
    /// beside them the parts that cannot be named, with the reason.
    pub(crate) fn meant(&self, job: &Job, sel: &IdSel) -> (Vec<Meant>, Vec<(u32, i32)>) {
        if sel.elems.is_empty() {
            let parts = job.parts().iter().zip(1..).filter(|(p, _)| p.unfinished() > 0);
            let all = [0].into_iter().chain(parts.map(|(_, part)| part));
            return (all.map(|part| Meant { part, elems: Vec::new() }).collect(), Vec::new());
        }
        let mut by_part: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        let mut not = Vec::new();
        for idx in crate::batch::query::selection::elements(&sel.elems) {
            match job.view(idx) {
                None => not.push((idx, err::NO_JOB)),
                Some(v) if v.stat().is_finished() => not.push((idx, err::JOB_FINISH)),
                Some(_) => by_part.entry(job.part_no(idx)).or_default().push(idx),
            }
        }
        (by_part.into_iter().map(|(part, elems)| Meant { part, elems }).collect(), not)
    }

    /// An array has a bounded number of parts.
    pub(crate) fn room_for_parts(&self, job: &Job, sel: &IdSel, more: usize) -> Result<(), i32> {
        let used = job.parts().iter().filter(|p| !p.is_empty()).count();
        let full = !sel.elems.is_empty() && used + more > MAX_PARTS;
        if full { Err(err::ELEMENT) } else { Ok(()) }
    }
}
