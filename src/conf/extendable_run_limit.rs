//! EXTENDABLE_RUNLIMIT: `BASE[minutes] INCREMENT[minutes] GRACE[minutes] REQUEUE[Y | N]`.
//!
//! See lsb.queues(5).

use super::brackets::{bracketed, piece};
use super::section::Values;
use super::types::{ExtendableRunLimit, RawParam};

const NAME: &str = "EXTENDABLE_RUNLIMIT";
const WORDS: [&str; 4] = ["BASE", "INCREMENT", "GRACE", "REQUEUE"];
/// Longest time that is taken, minutes: ten years.
const MAX_MINUTES: u64 = 10 * 366 * 24 * 60;

/// The seconds of a number of minutes, from `least` on.
fn seconds(v: &mut Values<'_>, of: &RawParam, word: &str, least: u64) -> Option<u64> {
    let minutes = of.text.parse::<u64>().ok();
    let minutes = minutes.filter(|minutes| (least..=MAX_MINUTES).contains(minutes));
    if minutes.is_none() {
        let want = format!("{word} is a number of minutes from {least} to {MAX_MINUTES}");
        v.bad(NAME, of, &want);
    }
    minutes.map(|minutes| minutes * 60)
}

/// The parameter of a queue; `None`: it has none, or a mistake, which is told.
pub(super) fn of_queue(v: &mut Values<'_>) -> Option<ExtendableRunLimit> {
    let value = v.raw.get(NAME)?;
    let parts = match bracketed(value) {
        Ok(parts) => parts,
        Err(rest) => {
            v.bad(NAME, &rest, "the bracket is not closed");
            return None;
        }
    };
    let mut given: [Option<RawParam>; WORDS.len()] = Default::default();
    for part in parts {
        let word = part.word.text.to_ascii_uppercase();
        let Some(place) = WORDS.iter().position(|known| *known == word) else {
            v.bad(NAME, &part.word, "BASE[], INCREMENT[], GRACE[] and REQUEUE[] are known");
            return None;
        };
        let Some(inner) = part.inner else {
            v.bad(NAME, &part.word, "a value in brackets is wanted behind it");
            return None;
        };
        if given[place].replace(inner).is_some() {
            v.bad(NAME, &part.word, "each keyword may stand there once");
            return None;
        }
    }
    let [base, increment, grace, requeue] = given;
    let Some(base) = base else {
        v.bad(NAME, &piece(value, &value.text), "BASE[minutes] is wanted");
        return None;
    };
    let base_secs = seconds(v, &base, "BASE", 1)?;
    let increment_secs = match increment {
        Some(of) => seconds(v, &of, "INCREMENT", 1)?,
        None => base_secs,
    };
    let grace_secs = match grace {
        Some(of) => seconds(v, &of, "GRACE", 0)?,
        None => 0,
    };
    let requeue = match requeue.as_ref().map(|of| of.text.to_ascii_uppercase()).as_deref() {
        None | Some("N" | "NO") => false,
        Some("Y" | "YES") => true,
        Some(_) => {
            v.bad(NAME, &requeue.unwrap_or_default(), "Y or N is wanted in REQUEUE[]");
            return None;
        }
    };
    Some(ExtendableRunLimit { base_secs, increment_secs, grace_secs, requeue })
}
