//! Why nothing was submitted.

use lsf::proto::Refusal;
use std::fmt;

/// Why nothing was submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The words without `Job not submitted`.
    pub words: String,
}

impl Rejection {
    pub fn new(words: impl Into<String>) -> Rejection {
        Rejection { words: words.into() }
    }

    /// `about: text`.
    pub fn about(about: &str, text: impl fmt::Display) -> Rejection {
        Rejection { words: format!("{about}: {text}") }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}. Job not submitted.", self.words.trim_end_matches('.'))
    }
}

impl From<Refusal> for Rejection {
    fn from(r: Refusal) -> Rejection {
        Rejection::new(r.words())
    }
}
