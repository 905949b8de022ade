//! The comment of an administrator's request (-C).

use crate::model::reason::err;
use crate::proto::Refusal;

/// Longest comment of -C, bytes (LSF's own limit).
pub(crate) const MAX_COMMENT: usize = 512;

pub(crate) fn check_comment(comment: &str) -> Result<(), Refusal> {
    match comment.len() > MAX_COMMENT || comment.chars().any(char::is_control) {
        true => Err(Refusal::text(
            err::BAD_ARG,
            format!("the comment may have {MAX_COMMENT} bytes and no control characters"),
        )),
        false => Ok(()),
    }
}
