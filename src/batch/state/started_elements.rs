//! The slots that elements hold, and the started elements of a part of an array counted together.

use crate::batch::state::element::{Phase, Run};
use crate::batch::state::names::HostId;
use crate::model::idmap::IdMap;
use std::sync::Arc;

/// Slots of one consumer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slots {
    pub pend_jobs: u64,
    pub pend: u64,
    pub run: u64,
    pub ssusp: u64,
    pub ususp: u64,
}

impl Slots {
    /// Slots in use: suspended ones count.
    pub fn started(&self) -> u64 {
        self.run + self.ssusp + self.ususp
    }
    /// The slots of all consumers together.
    pub fn sum<'a>(consumers: impl IntoIterator<Item = &'a Slots>) -> Slots {
        consumers.into_iter().fold(Slots::default(), |sum, of| Slots {
            pend_jobs: sum.pend_jobs + of.pend_jobs,
            pend: sum.pend + of.pend,
            run: sum.run + of.run,
            ssusp: sum.ssusp + of.ssusp,
            ususp: sum.ususp + of.ususp,
        })
    }
    /// These slots less some of them.
    pub fn less(&self, some: &Slots) -> Slots {
        Slots {
            pend_jobs: self.pend_jobs.saturating_sub(some.pend_jobs),
            pend: self.pend.saturating_sub(some.pend),
            run: self.run.saturating_sub(some.run),
            ssusp: self.ssusp.saturating_sub(some.ssusp),
            ususp: self.ususp.saturating_sub(some.ususp),
        }
    }
    pub fn all(&self) -> u64 {
        self.pend + self.started()
    }
}

/// A part of what started elements hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    pub slots: u64,
    /// Jobs and elements of arrays.
    pub jobs: u64,
}

impl Share {
    pub(super) fn add(&mut self, other: Share) {
        self.slots += other.slots;
        self.jobs += other.jobs;
    }
    fn take(&mut self, other: Share) {
        self.slots -= other.slots;
        self.jobs -= other.jobs;
    }
}

/// The started elements of a part of an array, all together: with these a change of all of them
/// takes no longer than the change of one. The slots are those of the started elements of the part;
/// each reserves by the requirement that was given last to all that were started by then, or where
/// none was given since it was started, by its own.
#[derive(Debug, Default)]
pub struct StartedElements {
    /// The slots they hold, in all.
    pub(super) slots: Slots,
    /// How many they are.
    pub(super) jobs: u64,
    /// The slots they hold on each host; a host without any is left out.
    pub(super) hosts: IdMap<HostId, Share>,
    /// The effective resource requirement that a change gave to all of them.
    given: Option<Arc<str>>,
    /// How often one was given.
    times: u32,
}

impl StartedElements {
    /// Counts a started element in or out, as it stands.
    pub(super) fn note(&mut self, run: &Run, add: bool) {
        started(&mut self.slots, run.phase, u64::from(run.slots()), add);
        self.jobs = if add { self.jobs + 1 } else { self.jobs - 1 };
        for &(host, n) in &run.hosts {
            let here = self.hosts.entry(host).or_default();
            let share = Share { slots: n.into(), jobs: 1 };
            if add {
                here.add(share)
            } else {
                here.take(share)
            }
            if *here == Share::default() {
                self.hosts.remove(&host);
            }
        }
    }

    /// All of them reserve by this effective requirement from now on.
    pub(super) fn give(&mut self, requirement: Arc<str>) {
        self.given = Some(requirement);
        self.times += 1;
    }

    /// An element that is started from now on has its own requirement: what was given before was
    /// given to others.
    pub fn times_given(&self) -> u32 {
        self.times
    }

    pub(super) fn given_to(&self, run: &Run) -> Option<&Arc<str>> {
        self.given.as_ref().filter(|_| run.times_given < self.times)
    }
}

pub(super) fn bump(n: &mut u64, by: u64, up: bool) {
    if up {
        *n += by;
    } else {
        *n = n.saturating_sub(by);
    }
}

/// Adds or takes away the slots of a started element.
pub(super) fn started(s: &mut Slots, phase: Phase, n: u64, up: bool) {
    match phase {
        Phase::Starting | Phase::Running => bump(&mut s.run, n, up),
        Phase::Ssusp(_) => bump(&mut s.ssusp, n, up),
        Phase::Ususp(_) => bump(&mut s.ususp, n, up),
    }
}
