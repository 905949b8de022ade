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
        let words = self.words.trim_end_matches('.');
        let end = if words.ends_with('?') { "" } else { "." };
        write!(f, "{words}{end} Job not submitted.")
    }
}

impl From<Refusal> for Rejection {
    fn from(r: Refusal) -> Rejection {
        Rejection::new(r.words())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejection_ends_in_one_mark() {
        for (words, told) in [
            ("Bad queue", "Bad queue. Job not submitted."),
            ("Bad queue.", "Bad queue. Job not submitted."),
            ("did you mean <a>?", "did you mean <a>? Job not submitted."),
        ] {
            assert_eq!(Rejection::new(words).to_string(), told);
        }
    }
}
