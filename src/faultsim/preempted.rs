//! The attempts that jobs of higher queues have preempted, and how often in vain: none is suspended
//! and let go again and again while no job starts.

use crate::model::JobKey;
use std::collections::{HashMap, HashSet, VecDeque};

/// Most preemptions of an attempt within [`SPAN_SECS`] and without a start of any job: a claim may
/// be lost with mbatchd, and the job of a claim may be killed.
const MOST: usize = 3;
/// Seconds.
const SPAN_SECS: f64 = 10.0;

#[derive(Debug, Default)]
pub(super) struct Preempted {
    now: HashSet<JobKey>,
    /// When each attempt was preempted since a job was started, the latest few times, seconds of
    /// the simulation.
    times: HashMap<JobKey, VecDeque<f64>>,
}

impl Preempted {
    /// mbatchd has recorded that an attempt is preempted, or that it is in another state.
    pub(super) fn recorded(
        &mut self,
        key: JobKey,
        preempted: bool,
        secs: f64,
    ) -> Result<(), String> {
        if !preempted {
            self.now.remove(&key);
            return Ok(());
        }
        if !self.now.insert(key) {
            return Ok(());
        }
        let times = self.times.entry(key).or_default();
        times.push_back(secs);
        if times.len() <= MOST {
            return Ok(());
        }
        let first = times.pop_front().unwrap_or(secs);
        match secs - first < SPAN_SECS {
            true => Err(format!(
                "preemption goes round: {key} is preempted {} times in {:.1} s, and nothing starts",
                MOST + 1,
                secs - first
            )),
            false => Ok(()),
        }
    }

    /// mbatchd has read its log: these are preempted, and of those that end, the ones that were.
    pub(super) fn begin_anew(&mut self, now: HashSet<JobKey>, ends: &HashSet<JobKey>) {
        self.now.retain(|key| ends.contains(key));
        self.now.extend(now);
    }

    /// mbatchd has started a job.
    pub(super) fn job_started(&mut self) {
        self.times.clear();
    }

    /// Is an attempt preempted?
    pub(super) fn contains(&self, key: &JobKey) -> bool {
        self.now.contains(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempt_preempted_again_and_again_while_nothing_starts_is_an_error() {
        let key = JobKey { job: 1, idx: 0, attempt: 1 };
        let run = |gap: f64, starts: bool| {
            let mut all = Preempted::default();
            (0..20).try_for_each(|n| {
                all.recorded(key, true, f64::from(n) * gap)?;
                // told once more
                all.recorded(key, true, f64::from(n) * gap)?;
                assert!(all.contains(&key));
                if starts && n % 2 == 0 {
                    all.job_started();
                }
                all.recorded(key, false, f64::from(n) * gap)
            })
        };
        assert_eq!(run(SPAN_SECS / MOST as f64, false), Ok(()));
        assert_eq!(run(1.0, true), Ok(()));
        let why = run(1.0, false).expect_err("four times in three seconds");
        let told = "preemption goes round: 1#1 is preempted 4 times in 3.0 s, and nothing starts";
        assert_eq!(why, told);
    }
}
