//! File validation of NQS (qmgr(8)): whether a user's files on a host have a line for the host of
//! submission.

use serde::{Deserialize, Serialize};

/// Most names of a host of submission.
pub const MAX_HOST_NAMES: usize = 64;

/// A question to sbatchd.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Validate {
    /// The number of the question on this connection; the answer has it, too.
    pub number: u64,
    pub user: String,
    pub uid: u32,
    pub gid: u32,
    /// All names of the host of submission, at most [`MAX_HOST_NAMES`].
    pub hosts: Vec<String>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    Accepted,
    /// The files have no such line. The text says which of them is not used, and why; empty: none.
    NoLine(String),
    /// The files were not looked at, for this reason.
    NotRead(String),
}
