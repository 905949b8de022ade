//! A job of the state: one submission, its elements, and how many of them are in which state.

use crate::batch::state::array::{Array, ElementGroup, Ranges};
use crate::batch::state::element::{Elem, ElemState, ElementView};
use crate::batch::state::names::{QueueId, UserId};
use crate::batch::state::tally::Tally;
use crate::lang::depend::Resolved;
use crate::lang::jobname::JobName;
use crate::model::job::{JobSpec, SpoolRef};
use crate::model::reason::PendReason;
use std::rc::Rc;
use std::sync::Arc;

/// A submission.
#[derive(Debug)]
pub struct Job {
    pub id: u32,
    /// First come, first served.
    pub order: u64,
    pub uid: u32,
    pub gid: u32,
    pub user: UserId,
    pub queue: QueueId,
    pub submit_time: i64,
    pub spec: Arc<JobSpec>,
    pub name: JobName,
    pub env: SpoolRef,
    pub script: SpoolRef,
    pub exact: SpoolRef,
    pub depend: Option<Rc<Resolved>>,
    pub(super) body: Body,
    /// The log lost part of the history: not dispatched until released.
    pub damaged: bool,
}

#[derive(Debug)]
pub enum Body {
    Single(Elem),
    Array(Box<Array>),
}

impl Job {
    pub fn is_array(&self) -> bool {
        matches!(self.body, Body::Array(_))
    }
    /// How many elements are in which state. A job that is no array has one, from whose state this
    /// is made: very many jobs are in memory.
    pub fn tally(&self) -> Tally {
        match &self.body {
            Body::Single(e) => {
                let mut one = Tally { total: 1, ..Tally::default() };
                one.note(e, true);
                one
            }
            Body::Array(a) => a.tally,
        }
    }
    /// The elements of an array.
    pub fn array(&self) -> Option<&Array> {
        match &self.body {
            Body::Array(array) => Some(array),
            Body::Single(_) => None,
        }
    }
    /// The element, if it exists and is still in memory.
    #[inline]
    pub fn view(&self, idx: u32) -> Option<ElementView<'_>> {
        match &self.body {
            Body::Single(e) => (idx == 0).then_some(ElementView::Own(e)),
            Body::Array(a) => match a.own.get(&idx) {
                Some(e) => Some(ElementView::Own(e)),
                None => a.fresh_has(idx).then_some(ElementView::Untouched(a.held)),
            },
        }
    }
    #[inline]
    pub fn elem(&self, idx: u32) -> Option<&Elem> {
        match self.view(idx) {
            Some(ElementView::Own(e)) => Some(e),
            _ => None,
        }
    }
    pub(super) fn elem_mut(&mut self, idx: u32) -> Option<&mut Elem> {
        match &mut self.body {
            Body::Single(e) => (idx == 0).then_some(e),
            Body::Array(a) => a.own.get_mut(&idx),
        }
    }
    /// The first started element from this index on; of a job that is no array: itself.
    pub fn started_from(&self, from: u32) -> Option<u32> {
        match &self.body {
            Body::Single(e) => (from == 0 && matches!(e.state, ElemState::Run(_))).then_some(0),
            Body::Array(a) => a.started.range(from..).next().copied(),
        }
    }
    /// Every element in memory, in index order of the array's list for fresh ones.
    pub fn indices(&self) -> Vec<u32> {
        match &self.body {
            Body::Single(_) => vec![0],
            Body::Array(a) => {
                let mut all: Vec<u32> = a.own.keys().copied().collect();
                all.extend(a.fresh_indices());
                all.sort_unstable();
                all
            }
        }
    }
    /// `name[idx]`, the name, or the command where no name was given.
    pub fn display_name(&self, idx: u32) -> String {
        if idx != 0 {
            return self.name.element(idx);
        }
        if self.name.name.is_empty() && !self.is_array() {
            return self.spec.command.lossy().into_owned();
        }
        self.name.to_string()
    }
    /// The element group that an element belongs to.
    #[inline]
    pub fn part_no(&self, idx: u32) -> u32 {
        self.elem(idx).map_or(0, |e| e.part)
    }
    pub fn parts(&self) -> &[ElementGroup] {
        match &self.body {
            Body::Array(a) => &a.parts,
            Body::Single(_) => &[],
        }
    }
    pub fn part(&self, no: u32) -> Option<&ElementGroup> {
        self.parts().get((no as usize).checked_sub(1)?)
    }
    /// The submission of a part; 0: that of the job.
    pub fn spec_of(&self, part: u32) -> &Arc<JobSpec> {
        self.part(part).map_or(&self.spec, |p| &p.look.spec)
    }
    pub fn queue_of(&self, part: u32) -> QueueId {
        self.part(part).map_or(self.queue, |p| p.look.queue)
    }
    pub fn spec_at(&self, idx: u32) -> &Arc<JobSpec> {
        self.spec_of(self.part_no(idx))
    }
    pub fn queue_at(&self, idx: u32) -> QueueId {
        self.queue_of(self.part_no(idx))
    }
    /// Pending elements of a part, held ones too.
    pub fn pending(&self, part: u32) -> u32 {
        match self.part(part) {
            Some(p) => p.pend,
            None => {
                let parts = self.parts().iter().map(|p| p.pend).sum::<u32>();
                self.tally().pend + self.tally().psusp - parts
            }
        }
    }
    /// Pending elements, not held, of a part.
    pub fn waiting(&self, part: u32) -> u32 {
        match self.part(part) {
            Some(p) => p.waiting.len() as u32,
            None => {
                self.tally().pend - self.parts().iter().map(|p| p.waiting.len() as u32).sum::<u32>()
            }
        }
    }
    /// The reason for which the elements are held that nothing has happened to; `None`: not held.
    pub fn untouched_held(&self) -> Option<PendReason> {
        match &self.body {
            Body::Array(a) => a.held,
            Body::Single(_) => None,
        }
    }
    /// The reason for which a pending element went back to the queue last; New: it did not.
    pub fn returned_for(&self, idx: u32) -> PendReason {
        match self.elem(idx).map(|e| &e.state) {
            Some(ElemState::Pend(p)) => p.reason.unwrap_or(PendReason::New),
            _ => PendReason::New,
        }
    }
    /// Is the array at its %limit?
    pub fn at_limit(&self) -> bool {
        match &self.body {
            Body::Array(a) => a.spec.limit.is_some_and(|n| self.tally().started() >= n),
            Body::Single(_) => false,
        }
    }

    /// Further elements that the limit of an array lets start.
    pub fn left_by_limit(&self) -> u32 {
        let limit = match &self.body {
            Body::Array(a) => a.spec.limit,
            Body::Single(_) => None,
        };
        limit.map_or(u32::MAX, |n| n.saturating_sub(self.tally().started()))
    }

    /// The effective resource requirement by which an element runs, or ran.
    pub fn effective_requirement<'a>(&'a self, e: &'a Elem) -> Option<&'a Arc<str>> {
        let given = match (&e.state, &self.body) {
            (ElemState::Run(run), Body::Array(a)) => a.started_elements(e.part).given_to(run),
            _ => None,
        };
        given.or_else(|| e.run().map(|run| &run.own_requirement))
    }

    /// Is an element started?
    pub fn is_started(&self, idx: u32) -> bool {
        self.elem(idx).is_some_and(|e| matches!(e.state, ElemState::Run(_)))
    }

    /// A started element of a part.
    pub fn started_of(&self, part: u32) -> Option<u32> {
        match (&self.body, self.part(part)) {
            (Body::Single(_), _) => self.is_started(0).then_some(0),
            (Body::Array(_), Some(own)) => {
                own.elems.iter().copied().find(|idx| self.is_started(*idx))
            }
            (Body::Array(a), None) => a.started().find(|idx| self.part_no(*idx) == part),
        }
    }

    /// The started elements of a part that has some of its own, in descending order.
    pub fn started_in(&self, part: u32) -> Vec<u32> {
        let own = self.part(part).into_iter().flat_map(|own| own.elems.iter().rev());
        own.copied().filter(|idx| self.is_started(*idx)).collect()
    }

    /// How often the started elements of a part were given a requirement.
    pub(super) fn times_given(&self, part: u32) -> u32 {
        match &self.body {
            Body::Single(_) => 0,
            Body::Array(a) => a.started_elements(part).times_given(),
        }
    }

    /// Counts an element of its own in or out of what is kept of all, as its state changes.
    pub(super) fn note(&mut self, idx: u32, e: &Elem, add: bool) {
        if let Body::Array(a) = &mut self.body {
            a.tally.note(e, add);
            a.note(idx, e, add);
        }
    }

    /// The started ones among these elements reserve by this effective requirement from now on;
    /// none named: those that are in no part; with `alike`: those in the part of the one that is
    /// named.
    pub(super) fn give_requirement(&mut self, elems: &Ranges, alike: bool, requirement: Arc<str>) {
        let part = match elems {
            [] => Some(0),
            [(idx, ..), ..] => alike.then(|| self.part_no(*idx)),
        };
        let give = |e: &mut Elem, times| {
            if let ElemState::Run(run) = &mut e.state {
                run.own_requirement = requirement.clone();
                run.times_given = times;
            }
        };
        match (&mut self.body, part) {
            (Body::Single(e), _) => give(e, 0),
            (Body::Array(a), Some(part)) => a.started_elements_mut(part).give(requirement),
            (Body::Array(a), None) => {
                let named: Vec<u32> = a.named(elems).collect();
                for idx in named {
                    let part = a.own.get(&idx).map_or(0, |e| e.part);
                    let times = a.started_elements(part).times_given();
                    a.own.get_mut(&idx).into_iter().for_each(|e| give(e, times));
                }
            }
        }
    }

    /// Drops a number of elements of an array that has left memory; true: none is left.
    pub(super) fn take_apart(&mut self, elements: usize) -> bool {
        let Body::Array(a) = &mut self.body else { return true };
        for _ in 0..elements {
            a.own.pop_first();
        }
        a.own.is_empty()
    }
}
