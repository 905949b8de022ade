//! The usage of a job on its other hosts, which the report on it counts (lsf-parallel(7)): mbatchd
//! is asked when the script has ended, and the report waits for the answer, [`OTHERS_WAIT`] at
//! most. Commands after the job wait for none of that: the report is then a task of its own.

use super::agent::*;
use super::*;
use crate::exec::others_usage::{OthersUsage, ReportTask, hosts_of};
use crate::model::job::Usage;

/// Longest wait for the answer, microseconds; mbatchd gives it earlier.
const OTHERS_WAIT: u64 = 3 * US;

impl Sbatchd {
    /// Whether the report of a job waits for the usage on its other hosts; `reported`: there is
    /// one.
    pub(super) fn waits_for_usage(
        &mut self,
        now: Now,
        (key, reported): (JobKey, bool),
        out: &mut Vec<Effect>,
    ) -> bool {
        let greeted = self.mbd.is_some_and(|(_, told)| told) && self.params.usage_of_others;
        let Some(job) = self.jobs.get(&key) else { return false };
        let slots = &job.note.order.hosts;
        let others = match job.report.others {
            OthersUsage::Told(..) => return false,
            OthersUsage::Asked(until) if until > now.mono_us => return true,
            OthersUsage::Asked(_) => OthersUsage::too_late(slots),
            OthersUsage::Unknown => {
                let several = hosts_of(slots).len() > 1 && !job.begun;
                if !greeted || !several || !reported {
                    return false;
                }
                self.tell(SbdMsg::AskUsage { key }, out);
                OthersUsage::Asked(now.mono_us + OTHERS_WAIT)
            }
        };
        let waits = others.until().is_some();
        if let Some(job) = self.jobs.get_mut(&key) {
            job.report.others = others;
        }
        waits
    }

    /// mbatchd tells it; whether the report has waited for that.
    pub(super) fn usage_told(
        &mut self,
        key: JobKey,
        (usage, without): (Box<Usage>, Vec<String>),
    ) -> bool {
        let waiting = |job: &&mut Attempt| job.report.others.until().is_some();
        let Some(job) = self.jobs.get_mut(&key).filter(waiting) else { return false };
        job.report.others = OthersUsage::Told(usage, without);
        true
    }

    /// Has the report of a job be a task of its own, so that the rest need not wait.
    pub(super) fn divide(&mut self, key: JobKey, out: &mut Vec<Effect>) {
        let within = |job: &&mut Attempt| job.report.task == ReportTask::Within;
        if let Some(job) = self.jobs.get_mut(&key).filter(within) {
            job.report.task = ReportTask::Due;
            job.note.mark.report_apart = true;
            let note = note_text(&job.note);
            if self.linked {
                ask(out, LaunchMsg::Note { key, note });
            }
        }
    }
}

/// The instant until which the report on a job waits for the usage on the other hosts.
pub(super) fn others_by(job: &Attempt) -> Option<u64> {
    job.report.others.until().filter(|_| job.stage == AttemptStage::Finishing)
}
