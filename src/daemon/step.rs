//! A step of a starter's setup, and how it fails: at a stage, in words that name the file.

use crate::proto::launch::{Ready, Setup, SetupStage};
use crate::sys::words;
use std::io;

/// A step that failed.
pub struct Failed {
    pub at: SetupStage,
    pub why: String,
    /// The exit value of the pre-execution command that failed; 0: another failure.
    pub exit: u8,
    /// PRE_EXEC of the queue had succeeded.
    pub begun: bool,
}

impl Failed {
    pub fn new(at: SetupStage, why: impl Into<String>) -> Failed {
        Failed { at, why: why.into(), exit: 0, begun: false }
    }
}

impl Failed {
    /// A failure after PRE_EXEC of the queue.
    pub fn begun(self) -> Failed {
        Failed { begun: true, ..self }
    }
}

/// The last whole report of a starter; each one replaces those before it.
pub fn last_report(reports: &[u8]) -> Setup {
    let all = serde_json::Deserializer::from_slice(reports).into_iter::<Setup>();
    all.map_while(Result::ok).last().unwrap_or_else(|| Setup::Failed {
        at: SetupStage::Plan,
        why: "its starter's report makes no sense".into(),
        exit: 0,
        begun: None,
    })
}

pub type SetupResult<T> = Result<T, Failed>;

/// The text of an error with its subject.
pub fn at(stage: SetupStage, what: impl std::fmt::Display) -> impl FnOnce(io::Error) -> Failed {
    move |e| Failed::new(stage, format!("{what}: {}", words(&e)))
}

/// Words to show with the job.
pub fn note(ready: &mut Ready, text: String) {
    if !ready.note.is_empty() {
        ready.note.push_str("; ");
    }
    ready.note.push_str(&text);
}
