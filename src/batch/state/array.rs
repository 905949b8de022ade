//! An array of the state: untouched elements in a bit set, all others one by one, and the groups of
//! elements that were changed alike.

use crate::batch::state::element::{Elem, ElemState, Pend};
use crate::batch::state::names::QueueId;
use crate::batch::state::started_elements::StartedElements;
use crate::batch::state::tally::Tally;
use crate::batch::state::untouched::Untouched;
use crate::lang::jobname::ArraySpec;
use crate::model::event::{ElementRange, QueuePosition};
use crate::model::job::JobSpec;
use crate::model::reason::PendReason;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Elements of an array.
pub type Ranges = [ElementRange];

/// The elements of an array.
#[derive(Debug)]
pub struct Array {
    pub(super) spec: ArraySpec,
    /// Elements nothing has happened to yet.
    pub(super) fresh: Untouched,
    /// The pending reason of elements that were submitted to be held (bsub -H).
    pub(super) held: Option<PendReason>,
    /// All others that are still in memory.
    pub(super) own: BTreeMap<u32, Elem>,
    /// The started elements of `own`.
    pub(super) started: BTreeSet<u32>,
    /// The started elements that are in no element group, together.
    pub(super) started_elements: StartedElements,
    /// The pending elements of `own` that are not held and in no element group.
    pub(super) waiting: BTreeSet<u32>,
    /// How many have ended without success, by their exit status.
    pub(super) exits: BTreeMap<Option<i32>, u32>,
    /// How many elements are in which state, those that nothing has happened to as well.
    pub(super) tally: Tally,
    /// The groups of changed elements; an element names its group by number, from 1.
    pub(super) parts: Vec<ElementGroup>,
}

/// Elements of an array that were changed alike: they are of another submission than the rest.
#[derive(Debug)]
pub struct ElementGroup {
    pub(super) look: ElementSpec,
    /// The elements in memory.
    pub(super) elems: BTreeSet<u32>,
    /// The elements that are pending and not held.
    pub(super) waiting: BTreeSet<u32>,
    /// How many of them are pending, held ones too.
    pub(super) pend: u32,
    /// How many of them are started.
    pub(super) started: u32,
    /// The started elements of this part, counted together.
    pub(super) started_elements: StartedElements,
}

/// The properties in which the elements of an element group differ from their job.
#[derive(Clone, Debug)]
pub struct ElementSpec {
    pub queue: QueueId,
    pub spec: Arc<JobSpec>,
    /// The position that btop or bbot gave them; else they stand at their job's.
    pub spot: Option<QueuePosition>,
}

impl PartialEq for ElementSpec {
    fn eq(&self, other: &ElementSpec) -> bool {
        (self.queue, self.spot) == (other.queue, other.spot)
            && (Arc::ptr_eq(&self.spec, &other.spec) || self.spec == other.spec)
    }
}

impl ElementGroup {
    /// The submission that its elements are of.
    pub fn look(&self) -> &ElementSpec {
        &self.look
    }
    /// The elements of the group in memory.
    pub fn len(&self) -> usize {
        self.elems.len()
    }
    pub fn is_empty(&self) -> bool {
        self.elems.is_empty()
    }
    pub fn first(&self) -> Option<u32> {
        self.elems.first().copied()
    }
    /// Is an element of the array in this range? Elements are looked up, never iterated over.
    pub fn meets(&self, &(first, last, step): &ElementRange) -> bool {
        match step {
            0 | 1 => first <= last && self.elems.range(first..=last).next().is_some(),
            step => (first..=last).step_by(step as usize).any(|idx| self.elems.contains(&idx)),
        }
    }
    /// The elements that are pending, held ones too.
    pub fn pending(&self) -> u32 {
        self.pend
    }
    /// The elements that have not ended.
    pub fn unfinished(&self) -> u32 {
        self.pend + self.started
    }
    /// The elements that are pending and not held.
    pub fn waiting(&self) -> &BTreeSet<u32> {
        &self.waiting
    }
}

impl Array {
    /// The started elements.
    pub fn started(&self) -> impl Iterator<Item = u32> {
        self.started.iter().copied()
    }
    /// The elements that something has happened to and that are in memory.
    pub fn touched(&self) -> impl Iterator<Item = (u32, &Elem)> {
        self.own.iter().map(|(idx, e)| (*idx, e))
    }
    /// The pending ones of these that are not held and in no group.
    pub fn waiting(&self) -> &BTreeSet<u32> {
        &self.waiting
    }
    /// How many have ended without success, by their exit status.
    pub fn exits(&self) -> impl Iterator<Item = (Option<i32>, u32)> {
        self.exits.iter().map(|(status, n)| (*status, *n))
    }
    /// The elements that nothing has happened to.
    pub fn untouched_count(&self) -> u32 {
        self.fresh.left()
    }
    /// Position of an index in the list.
    pub fn pos(&self, idx: u32) -> Option<u32> {
        let mut before = 0u64;
        for r in &self.spec.list.ranges {
            if r.contains(idx) {
                return Some((before + u64::from((idx - r.start) / r.step.max(1))) as u32);
            }
            before += r.len();
        }
        None
    }
    /// Index at a position of the list.
    pub fn index(&self, pos: u32) -> u32 {
        let mut pos = u64::from(pos);
        for r in &self.spec.list.ranges {
            if pos < r.len() {
                return r.start + pos as u32 * r.step.max(1);
            }
            pos -= r.len();
        }
        0
    }
    pub fn fresh_has(&self, idx: u32) -> bool {
        self.pos(idx).is_some_and(|p| self.fresh.has(p))
    }
    /// The first of those that nothing has happened to and that are not held.
    pub fn first_fresh(&self) -> Option<u32> {
        self.fresh.first().filter(|_| self.held.is_none()).map(|p| self.index(p))
    }
    /// An element that something is about to happen to, as it was until now.
    pub fn untouched(&self, submit_time: i64) -> Elem {
        let pend = Pend { since: submit_time, held: self.held, reason: None };
        Elem { attempts: 0, part: 0, state: ElemState::Pend(pend) }
    }
    pub fn fresh_indices(&self) -> impl Iterator<Item = u32> + '_ {
        self.fresh.iter().map(|p| self.index(p))
    }

    /// The indices of its list that ranges name.
    pub fn named<'a>(&'a self, ranges: &'a Ranges) -> impl Iterator<Item = u32> + 'a {
        let max = self.spec.list.max();
        ranges
            .iter()
            .flat_map(move |&(a, b, step)| (a..=b.min(max)).step_by(step.max(1) as usize))
            .filter(|idx| self.pos(*idx).is_some())
    }

    pub(super) fn part_mut(&mut self, no: u32) -> Option<&mut ElementGroup> {
        (no as usize).checked_sub(1).and_then(|i| self.parts.get_mut(i))
    }

    /// Counts an element of its own in or out, as it stands.
    pub(super) fn note(&mut self, idx: u32, e: &Elem, add: bool) {
        let put = |set: &mut BTreeSet<u32>| match add {
            true => set.insert(idx),
            false => set.remove(&idx),
        };
        match &e.state {
            ElemState::Run(run) => {
                put(&mut self.started);
                self.started_elements_mut(e.part).note(run, add);
                if let Some(part) = self.part_mut(e.part) {
                    part.started = if add { part.started + 1 } else { part.started - 1 };
                }
            }
            ElemState::Pend(p) => match self.part_mut(e.part) {
                Some(part) => {
                    part.pend = if add { part.pend + 1 } else { part.pend - 1 };
                    p.held.is_none().then(|| put(&mut part.waiting));
                }
                None => drop(p.held.is_none().then(|| put(&mut self.waiting))),
            },
            ElemState::End(end) if end.done => {}
            ElemState::End(end) => {
                let code = crate::model::job::exit_code(end.status);
                let n = self.exits.entry(code).or_default();
                *n = if add { *n + 1 } else { *n - 1 };
                if *n == 0 {
                    self.exits.remove(&code);
                }
            }
        }
    }

    /// Something is about to happen to an element to which nothing has happened.
    pub(super) fn touch(&mut self, idx: u32, submit_time: i64) {
        let e = self.untouched(submit_time);
        self.note(idx, &e, true);
        self.own.insert(idx, e);
    }

    /// An element leaves memory.
    pub(super) fn leave(&mut self, idx: u32, e: &Elem) {
        self.note(idx, e, false);
        if let Some(part) = self.part_mut(e.part) {
            part.elems.remove(&idx);
        }
    }

    /// The number of the element group with these properties; a new one, or an unused one, if there
    /// is none.
    pub(super) fn part_like(&mut self, look: ElementSpec) -> u32 {
        if let Some(i) = self.parts.iter().position(|p| !p.elems.is_empty() && p.look == look) {
            return i as u32 + 1;
        }
        let (elems, waiting) = (BTreeSet::new(), BTreeSet::new());
        let started_elements = StartedElements::default();
        let new = ElementGroup { look, elems, waiting, pend: 0, started: 0, started_elements };
        match self.parts.iter().position(|p| p.elems.is_empty()) {
            Some(i) => {
                self.parts[i] = new;
                i as u32 + 1
            }
            None => {
                self.parts.push(new);
                self.parts.len() as u32
            }
        }
    }

    pub fn started_elements(&self, part: u32) -> &StartedElements {
        let of_part = (part as usize).checked_sub(1).and_then(|i| self.parts.get(i));
        of_part.map_or(&self.started_elements, |part| &part.started_elements)
    }

    pub(super) fn started_elements_mut(&mut self, part: u32) -> &mut StartedElements {
        let of_part = (part as usize).checked_sub(1).and_then(|i| self.parts.get_mut(i));
        of_part.map_or(&mut self.started_elements, |part| &mut part.started_elements)
    }

    /// An element that is about to end, or to leave its part, keeps what was given to all.
    pub(super) fn keep_given(&self, e: &mut Elem) {
        let all = self.started_elements(e.part);
        if let ElemState::Run(run) = &mut e.state
            && let Some(given) = all.given_to(run)
        {
            run.own_requirement = given.clone();
            run.times_given = all.times_given();
        }
    }
}
