//! The language of qmgr: one grammar for its prompt, for lsb.nqs and for what `snap` writes. See
//! qmgr(8).
//!
//! Keywords stand without regard to case, and are cut to any length of two or more letters that is
//! unambiguous where they stand. `\` at the end of a line joins it with the next; `#` begins a
//! comment.

mod parse;
mod phrases;
mod print;
mod tokens;

pub use parse::{commands, nqs_queues, policy_name};
pub use phrases::phrases;
pub use print::create;

use crate::model::nqs::{Destination, Destinations, NqsQueue};

/// Largest text, bytes.
pub const MAX_TEXT: usize = 1 << 20;
/// Most queues that qmgr defines.
pub const MAX_QUEUES: usize = 1_000;
/// Largest priority of a queue.
pub const MAX_PRIORITY: u32 = 63;
/// Largest run limit.
pub const MAX_RUN_LIMIT: u32 = 1_000_000;
/// Largest number of minutes between tries, or of hours until a request is given up.
pub const MAX_RETRY: u32 = 10_000;
/// Longest name of a queue, characters.
pub const MAX_NAME: usize = 59;

/// A command with its place: line and column from 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Spelled {
    pub line: u32,
    pub col: u32,
    /// The text, its lines joined.
    pub text: String,
    pub command: Result<Command, Fault>,
}

/// A fault of a command, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub line: u32,
    pub col: u32,
    pub text: String,
}

/// How destinations are changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DestinationChange {
    Add,
    Delete,
    Set,
}

/// A command that changes what lsb.nqs holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Definition {
    Create(NqsQueue),
    Delete {
        queue: String,
    },
    Destinations {
        change: DestinationChange,
        list: Vec<Destination>,
        queue: String,
    },
    /// `set pipe_client`.
    Client {
        to: Destinations,
        queue: String,
    },
    Priority {
        priority: u32,
        queue: String,
    },
    RunLimit {
        limit: u32,
        queue: String,
    },
    LoadOnly {
        on: bool,
        queue: String,
    },
    PipeOnly {
        on: bool,
        queue: String,
    },
    /// `set default batch_request queue`; `None`: `set no_default`.
    DefaultQueue(Option<String>),
    /// Minutes between two tries.
    RetryTime(u32),
    /// Hours until a request is given up.
    RetryWait(u32),
    /// `set validation file`, which has destinations look for a line of the submitter's; false:
    /// `set no_validation`.
    Validation(bool),
}

/// A verb for a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueVerb {
    Enable,
    Disable,
    Start,
    Stop,
}

/// A verb for requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestVerb {
    Hold,
    Release,
    Delete,
    Suspend,
    Resume,
    Rerun,
}

/// The subject of `show`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Show {
    /// One queue, or all.
    Queue(Option<String>),
    PipeQueues,
    BatchQueues,
    Parameters,
    Limits,
    Managers,
    Destinations,
}

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    Define(Definition),
    /// A verb for one queue; `None`: for all.
    Queue {
        verb: QueueVerb,
        queue: Option<String>,
    },
    Purge {
        queue: String,
    },
    /// Seconds between TERM and KILL.
    Abort {
        queue: String,
        seconds: Option<u32>,
    },
    Requests {
        verb: RequestVerb,
        ids: Vec<String>,
    },
    Move {
        id: String,
        queue: String,
    },
    First {
        id: String,
    },
    Show(Show),
    Snap {
        file: Option<String>,
    },
    /// The words of which help is wanted; none: of all.
    Help(Vec<String>),
    Quit,
    /// Documented for NQS, and not done here: the words for that.
    Refused(&'static str),
}

#[cfg(test)]
mod tests;
