//! The report on a job on several hosts that commands after it do not wait for: a task of its own,
//! which follows when the output is complete and the usage of the other hosts is known
//! (`usage_of_others`).

use super::agent::*;
use super::*;
use crate::exec::others_usage::ReportTask;

impl Sbatchd {
    /// The usage on the other hosts is known as well as it will be.
    pub(super) fn usage_known(&mut self, now: Now, key: JobKey, out: &mut Vec<Effect>) {
        let within = |job: &Attempt| job.report.task == ReportTask::Within;
        match self.jobs.get(&key).is_some_and(within) {
            true => self.finish(now, key, out),
            false => self.report_due(now, key, out),
        }
    }

    /// The output of the job is complete.
    pub(super) fn output_ready(&mut self, now: Now, key: JobKey, out: &mut Vec<Effect>) {
        let Some(job) = self.jobs.get_mut(&key) else { return };
        if job.report.task == ReportTask::Due && job.stage == AttemptStage::Finishing {
            job.report.task = ReportTask::OutputReady;
            self.report_due(now, key, out);
        }
    }

    /// Has the report written, if its output is complete and the usage is known.
    fn report_due(&mut self, now: Now, key: JobKey, out: &mut Vec<Effect>) {
        if self.waits_for_usage(now, (key, true), out) || !self.linked {
            return;
        }
        let ready = |job: &&Attempt| job.report.task == ReportTask::OutputReady;
        let Some(job) = self.jobs.get(&key).filter(ready) else { return };
        let what = FinishPlan { remove: ByteStr::default(), ..self.written(job) };
        as_account(job, TaskStep::Report, what, out);
        if let Some(job) = self.jobs.get_mut(&key) {
            job.report.task = ReportTask::Asked;
        }
    }

    /// The launcher knows of no report that was asked for.
    pub(super) fn report_missed(&mut self, now: Now, key: JobKey, out: &mut Vec<Effect>) {
        let apart = |job: &&mut Attempt| job.report.task != ReportTask::Within;
        let Some(job) = self.jobs.get_mut(&key).filter(apart) else { return };
        if job.report.task == ReportTask::Asked {
            job.report.task = ReportTask::OutputReady;
        }
        self.report_due(now, key, out);
    }

    pub(super) fn report_told(&mut self, now: Now, info: &TaskInfo, out: &mut Vec<Effect>) {
        let key = info.id.key;
        let told = info.setup.is_some() || info.ended.is_some();
        let Some(job) = self.jobs.get_mut(&key).filter(|_| told) else { return };
        let over = job.report.task == ReportTask::Over || job.stage != AttemptStage::Finishing;
        if !over {
            job.told_after(now, info);
            self.report_over(now, key, out);
        }
    }

    /// The report is written, or will not be.
    pub(super) fn report_over(&mut self, now: Now, key: JobKey, out: &mut Vec<Effect>) {
        let Some(job) = self.jobs.get_mut(&key) else { return };
        job.report.task = ReportTask::Over;
        if job.includes_post() {
            job.finish_by = None;
        }
        if job.report.rest_over {
            self.finished(now, key, out);
        }
    }

    /// All but the report is done.
    pub(super) fn rest_over(&mut self, now: Now, key: JobKey, out: &mut Vec<Effect>) {
        let Some(job) = self.jobs.get_mut(&key) else { return };
        job.report.rest_over = true;
        if job.report.task.is_over() {
            self.finished(now, key, out);
        }
    }

    /// The report takes too long. Commands that are part of the job go on.
    pub(super) fn finish_late(&mut self, now: Now, key: JobKey, out: &mut Vec<Effect>) {
        say(out, log::Level::Warn, format!("{key}: the report could not be written in time"));
        let Some(job) = self.jobs.get(&key) else { return };
        match job.includes_post() && !job.report.task.is_over() {
            true => self.report_over(now, key, out),
            false => self.finished(now, key, out),
        }
    }
}
