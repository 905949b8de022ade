//! LSF_RUN_LIMIT: how long a started job of a queue with EXTENDABLE_RUNLIMIT may run.

use super::ids::JobRef;
use std::fmt;

/// The name under which `bjobs -l` is told of the limit, among the further options of a job.
pub const SHOWN_RUN_LIMIT: &str = "runLimit";

/// `LSF_RUN_LIMIT` (ours): the run limit of a started job from now on (EXTENDABLE_RUNLIMIT).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunLimitChange {
    pub at: JobRef,
    pub attempt: u32,
    /// Seconds that it may run in all, without those it is suspended for.
    pub secs: u64,
    /// The limit is not extended any more: the job ends then.
    pub hard: bool,
}

/// The extendable run limit of a started job as `bjobs -l` shows it; `Display` and `parse` are
/// inverse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShownRunLimit {
    /// Seconds of the limit that the job started with (BASE).
    pub base_secs: u64,
    /// Seconds of the limit now.
    pub secs: u64,
    /// The limit is not extended any more.
    pub hard: bool,
}

impl ShownRunLimit {
    /// Reads what [`fmt::Display`] has written; else `None`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(',');
        let mut number = || words.next()?.parse::<u64>().ok();
        let (base_secs, secs, hard) = (number()?, number()?, number()?);
        (hard <= 1).then_some(ShownRunLimit { base_secs, secs, hard: hard == 1 })
    }

    /// `10.0 min, extended to 15.0 min`.
    pub fn words(&self) -> String {
        let minutes = |secs: u64| format!("{:.1} min", secs as f64 / 60.0);
        let (base, now) = (minutes(self.base_secs), minutes(self.secs));
        match (self.hard, self.secs == self.base_secs) {
            (true, _) => format!("{base}, hard limit {now}"),
            (false, true) => base,
            (false, false) => format!("{base}, extended to {now}"),
        }
    }
}

impl fmt::Display for ShownRunLimit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{},{},{}", self.base_secs, self.secs, u8::from(self.hard))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_limit_comes_back_from_its_text_and_bad_text_is_none() {
        for hard in [false, true] {
            let limit = ShownRunLimit { base_secs: 600, secs: 900, hard };
            assert_eq!(ShownRunLimit::parse(&limit.to_string()), Some(limit));
        }
        for bad in ["", "600", "600,900", "600,900,2", "600,x,1"] {
            assert_eq!(ShownRunLimit::parse(bad), None, "{bad}");
        }
    }
}
