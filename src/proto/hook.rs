//! The commands that a starter runs beside a job.

use crate::model::ByteStr;
use serde::{Deserialize, Serialize};

/// A command run for a job as its user, before or after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hook {
    /// Shell text.
    pub text: ByteStr,
    pub of: HookOf,
    /// Words for it in messages: a file transfer as its user wrote it. Empty: those of its owner.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub shown: String,
}

impl Hook {
    pub fn new(of: HookOf, text: impl Into<ByteStr>) -> Hook {
        Hook { text: text.into(), of, shown: String::new() }
    }
}

/// The owner of a hook, which decides where it runs and what its failure means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HookOf {
    /// A hook of the queue runs in /tmp, with a plain PATH.
    Queue,
    /// A hook of the queue for every host of the job; as one of the queue.
    Host,
    /// A hook of the job runs in the job's directory.
    Job,
    /// A file transfer of -f, in the job's directory; the job runs only where those before it have
    /// not failed.
    Copy,
}
