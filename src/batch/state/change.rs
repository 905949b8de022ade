//! The change that an applied event made. [`State::apply`](super::State::apply) returns it, and all
//! that is derived from the state (readiness, reservations, dependency conditions, watches, metrics)
//! follows it in one place, `Mbatchd::follow`.

use crate::batch::state::names::{HostId, UserId};
use crate::batch::state::{Elem, ElemState};
use crate::model::JobRef;

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
    pub(super) fn modified(job: u32, regrouped: bool) -> Applied {
        let at = JobRef { job, idx: 0 };
        Applied::Job(Change { at, regrouped, kind: ChangeKind::Modified })
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
    /// A new job with so many elements.
    Submitted { elements: u32 },
    /// Another submission or queue.
    Modified,
    /// Another place in the order of dispatch.
    Moved,
    /// An element went from one stage to another, or had its status told again.
    Element {
        before: Stage,
        after: Stage,
        /// The slots that it had before.
        held: Option<Held>,
    },
    /// Neither its place, its submission nor its stage.
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
    pub hosts: Vec<HostId>,
}
