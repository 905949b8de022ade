//! The words for which nothing is submitted.

use crate::bsub::Stop;
use crate::bsub::rejection::Rejection;

/// A refusal in words.
pub fn refused(words: impl Into<String>) -> Stop {
    Rejection::new(words.into()).into()
}
