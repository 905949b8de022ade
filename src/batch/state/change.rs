//! The change that an applied event made. [`State::apply`](super::State::apply) returns it, and all
//! that is derived from the state (readiness, reservations, limits, dependency conditions, watches,
//! metrics) follows it in one place, `Mbatchd::follow`.

use crate::batch::state::job_hosts::JobHosts;
use crate::batch::state::names::{HostId, QueueId, UserId};
use crate::batch::state::started_elements::Share;
use crate::batch::state::{Elem, ElemState, Run};
use crate::model::JobRef;
use crate::model::idmap::IdMap;

/// The effect of an event.
#[derive(Debug)]
pub enum Applied {
    /// No job changed.
    Nothing,
    Job(Change),
    /// The event does not fit the state, with the reason for the log; nothing changed.
    Rejected(&'static str),
}

impl Applied {
    /// A job or element got a mark, a process ID, a request.
    pub(super) fn noted(at: JobRef) -> Applied {
        Applied::Job(Change { at, regrouped: false, kind: ChangeKind::Noted })
    }

    /// The submission of a job, or of some of its elements, is another one.
    pub(super) fn modified(job: u32, regrouped: bool, switched: Vec<Switched>) -> Applied {
        let at = JobRef { job, idx: 0 };
        Applied::Job(Change { at, regrouped, kind: ChangeKind::Modified { switched } })
    }

    /// The change of a job.
    pub fn job(&self) -> Option<&Change> {
        match self {
            Applied::Job(change) => Some(change),
            _ => None,
        }
    }

    pub(super) fn is_rejected(&self) -> bool {
        matches!(self, Applied::Rejected(_))
    }
}

/// The change of a job.
#[derive(Debug)]
pub struct Change {
    /// The job or element; idx 0 of an array: all of it.
    pub at: JobRef,
    /// Elements were put into other element groups of their array.
    pub regrouped: bool,
    pub kind: ChangeKind,
}

#[derive(Debug)]
pub enum ChangeKind {
    /// A new job with its number of elements.
    Submitted { elements: u32 },
    /// Another submission or queue.
    Modified {
        /// The started elements that are of another queue now.
        switched: Vec<Switched>,
    },
    /// Another place in the order of dispatch.
    Moved,
    /// An element went from one stage to another, or had its status told again.
    Element {
        before: Stage,
        after: Stage,
        /// The slots that it had before.
        held: Option<Held>,
    },
    /// Pending elements of an array went to this stage together, or are pending in another way.
    PendingElements { after: Stage, elements: u32 },
    /// Some other property: neither its position, its submission nor its stage.
    Noted,
}

/// The stage of an element's life, without what belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Pending,
    Started,
    Ended,
}

impl Stage {
    pub(super) fn of(elem: &Elem) -> Stage {
        match elem.state {
            ElemState::Pend(_) => Stage::Pending,
            ElemState::Run(_) => Stage::Started,
            ElemState::End(_) => Stage::Ended,
        }
    }
}

/// The slots of a started element.
#[derive(Debug)]
pub struct Held {
    pub user: UserId,
    pub queue: QueueId,
    pub hosts: JobHosts,
}

/// Started elements that went from one queue to another.
#[derive(Debug)]
pub struct Switched {
    pub from: QueueId,
    pub to: QueueId,
    /// The slots that they have in all.
    pub all: Share,
    /// The slots that they have on each host.
    pub hosts: IdMap<HostId, Share>,
}

impl Switched {
    /// Adds an element to those that went from one queue to another.
    pub(super) fn add(all: &mut Vec<Switched>, from: QueueId, to: QueueId, run: &Run) {
        let known = all.iter().position(|known| (known.from, known.to) == (from, to));
        let place = known.unwrap_or_else(|| {
            let (share, hosts) = (Share::default(), IdMap::default());
            all.push(Switched { from, to, all: share, hosts });
            all.len() - 1
        });
        all[place].all.add(Share { slots: run.slots().into(), jobs: 1 });
        for &(host, n) in &run.hosts {
            all[place].hosts.entry(host).or_default().add(Share { slots: n.into(), jobs: 1 });
        }
    }
}
