//! An array of the state: untouched elements in a bit set, all others one by one, and the groups of
//! elements that were changed alike.

use crate::batch::state::element::{Elem, ElemState, Pend};
use crate::batch::state::names::QueueId;
use crate::batch::state::started_elements::StartedElements;
use crate::batch::state::untouched::Untouched;
use crate::lang::jobname::ArraySpec;
use crate::model::event::QueuePosition;
use crate::model::job::JobSpec;
use crate::model::reason::PendReason;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The elements of an array.
#[derive(Debug)]
pub struct Array {
    pub spec: ArraySpec,
    /// Elements nothing has happened to yet.
    pub fresh: Untouched,
    /// These were submitted to be held (bsub -H), for this pending reason.
    pub held: Option<PendReason>,
    /// All others that are still in memory.
    pub own: BTreeMap<u32, Elem>,
    /// Of those the started ones.
    pub started: BTreeSet<u32>,
    /// Of these the ones in no part, together.
    pub started_elements: StartedElements,
    /// Of those the pending ones that are not held and in no part.
    pub waiting: BTreeSet<u32>,
    /// How many have ended without success, by their exit status.
    pub exits: BTreeMap<Option<i32>, u32>,
    /// The groups of changed elements; an element names its group by number, from 1.
    pub parts: Vec<ElementGroup>,
}

/// Elements of an array that were changed alike: they are of another submission than the rest.
#[derive(Debug)]
pub struct ElementGroup {
    pub look: ElementSpec,
    /// The elements in memory.
    pub elems: BTreeSet<u32>,
    /// The elements that are pending and not held.
    pub waiting: BTreeSet<u32>,
    /// How many of them are pending, held ones too.
    pub pend: u32,
    /// How many of them are started.
    pub started: u32,
    /// The started elements of this part, counted together.
    pub started_elements: StartedElements,
}

/// In what the elements of a part differ.
#[derive(Clone, Debug)]
pub struct ElementSpec {
    pub queue: QueueId,
    pub spec: Arc<JobSpec>,
    /// Where btop or bbot put them; else they stand where their job does.
    pub spot: Option<QueuePosition>,
}

impl PartialEq for ElementSpec {
    fn eq(&self, other: &ElementSpec) -> bool {
        (self.queue, self.spot) == (other.queue, other.spot)
            && (Arc::ptr_eq(&self.spec, &other.spec) || self.spec == other.spec)
    }
}

impl Array {
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
}
