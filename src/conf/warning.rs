//! The warning of a job before its run limit or deadline: texts of bsub -wa and -wt, and of
//! JOB_WARNING_ACTION and JOB_ACTION_WARNING_TIME of lsb.queues.

use super::units;
use crate::model::further::{SignalNumber, WarnAction, WarnTime};
use crate::model::signals;

/// A signal by its name or number, or a command; `None`: a word that looks like a signal and is
/// none.
pub fn action(text: &str) -> Option<WarnAction> {
    if let Some(number) = signals::number(text) {
        return Some(WarnAction::Signal(SignalNumber(number)));
    }
    let text = text.trim();
    let upper = |t: &str| t.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit());
    let signal = text.strip_prefix("SIG").is_some_and(upper);
    let number = text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'+' | b'-'));
    (!signal && !number).then(|| WarnAction::Command(text.into()))
}

/// `[hour:]minute` in seconds, not 0.
pub fn minutes(text: &str) -> Option<u64> {
    units::time_limit(text).filter(|l| l.spec.is_none() && l.seconds > 0).map(|l| l.seconds)
}

/// `[hour:]minute`, or `n%`.
pub fn time(text: &str) -> Option<WarnTime> {
    let text = text.trim();
    match text.strip_suffix('%') {
        Some(share) => {
            let share = share.parse().ok().filter(|n| (1..=99).contains(n))?;
            Some(WarnTime::Percent(share))
        }
        None => minutes(text).map(WarnTime::Seconds),
    }
}
