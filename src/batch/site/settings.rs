//! The parameters that act for a job: of its own options, else of its application profile, else of
//! its queue, else of lsb.params. The one place that knows this order.

use crate::batch::site::applications::Application;
use crate::batch::site::preemption::PreemptionLimits;
use crate::batch::site::retry_limits::RetryLimits;
use crate::batch::site::task_rule::TaskRule;
use crate::batch::site::{Queue, Site};
use crate::conf::types::{Resizable, TTL_NEVER};
use crate::lang::exitcodes::ExitCodes;
use crate::model::ByteStr;
use crate::model::checkpoint::Checkpoint;
use crate::model::further::{CHKPNT, WarnAction};
use crate::model::job::{JobSpec, opt2};
use crate::model::job_control::JobControls;
use crate::model::limits::MemoryOf;
use std::borrow::Cow;
use std::sync::Arc;

/// A submission with what acts for it. Without a queue: it is not configured any more.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    site: &'a Site,
    spec: &'a JobSpec,
    application: Option<&'a Application>,
    queue: Option<&'a Queue>,
}

impl Site {
    pub fn settings<'a>(&'a self, spec: &'a JobSpec, queue: Option<&'a Queue>) -> Settings<'a> {
        let application = self.applications.get(&spec.further.application);
        Settings { site: self, spec, application, queue }
    }
}

/// One shell text that runs both commands, the second also after a failure of the first where
/// `always`; it fails where one of them does.
fn both(first: Option<&str>, second: Option<&str>, always: bool) -> String {
    match (first, second) {
        (Some(first), Some(second)) if always => {
            format!("(\n{first}\n)\nlsf_first=$?\n(\n{second}\n) && exit $lsf_first")
        }
        (Some(first), Some(second)) => format!("(\n{first}\n) && (\n{second}\n)"),
        (first, second) => first.or(second).unwrap_or_default().to_owned(),
    }
}

/// A directory that may be relative to that of the submission; one that is no text leaves it to the
/// working directory.
fn from_submission(spec: &JobSpec, dir: &str) -> String {
    let at = match &*spec.further.submission_directory {
        "" => std::str::from_utf8(spec.cwd.as_bytes()).unwrap_or_default(),
        submitted => submitted,
    };
    match dir.starts_with('/') || at.is_empty() {
        true => dir.to_owned(),
        false => format!("{at}/{dir}"),
    }
}

/// The job works in this directory, which may be relative to that of its submission.
fn work_in(spec: &mut JobSpec, dir: &str) {
    let was = std::mem::take(&mut spec.cwd);
    let mut path = match dir.starts_with('/') {
        true => Vec::new(),
        false => [was.as_bytes(), b"/"].concat(),
    };
    path.extend_from_slice(dir.as_bytes());
    spec.cwd = ByteStr(path);
    spec.options2 |= opt2::CWD;
    spec.further.submission_directory = was.lossy().into();
}

impl<'a> Settings<'a> {
    pub fn nice(&self) -> i32 {
        let of_application = self.application.and_then(|a| a.conf.nice);
        of_application.or(self.queue.map(|q| q.conf.nice)).unwrap_or(0)
    }

    pub fn pre_exec_of_queue(&self) -> String {
        self.queue.and_then(|q| q.conf.pre_exec.clone()).unwrap_or_default()
    }

    pub fn post_exec_of_queue(&self) -> String {
        self.queue.and_then(|q| q.conf.post_exec.clone()).unwrap_or_default()
    }

    /// HOST_PRE_EXEC of the queue, then of the application profile.
    pub fn host_pre_exec(&self) -> String {
        let of_queue = self.queue.and_then(|q| q.conf.host_pre_exec.as_deref());
        let own = self.application.and_then(|a| a.conf.host_pre_exec.as_deref());
        both(of_queue, own, false)
    }

    /// HOST_POST_EXEC of the application profile, then of the queue.
    pub fn host_post_exec(&self) -> String {
        let of_queue = self.queue.and_then(|q| q.conf.host_post_exec.as_deref());
        let own = self.application.and_then(|a| a.conf.host_post_exec.as_deref());
        both(own, of_queue, true)
    }

    /// Whether commands run on every host of the job.
    pub fn runs_host_commands(&self) -> bool {
        let of_queue = self.queue.map(|q| (&q.conf.host_pre_exec, &q.conf.host_post_exec));
        let own = self.application.map(|a| (&a.conf.host_pre_exec, &a.conf.host_post_exec));
        let mut all = of_queue.into_iter().chain(own);
        all.any(|(before, after)| before.is_some() || after.is_some())
    }

    pub fn starter(&self) -> String {
        let own = self.application.and_then(|a| a.conf.job_starter.as_ref());
        own.or(self.queue.and_then(|q| q.conf.job_starter.as_ref())).cloned().unwrap_or_default()
    }

    /// The actions for suspension, resumption and termination, each from the first level that has
    /// one.
    pub fn controls(&self) -> JobControls {
        let of_queue = self.queue.map(|q| q.conf.job_controls.clone()).unwrap_or_default();
        let Some(a) = self.application else { return of_queue };
        let own = a.conf.job_controls.clone();
        JobControls {
            suspend: own.suspend.or(of_queue.suspend),
            resume: own.resume.or(of_queue.resume),
            terminate: own.terminate.or(of_queue.terminate),
        }
    }

    /// Minutes of suspension after which the job migrates.
    pub fn migration(&self) -> Option<u64> {
        let own = self.spec.further.migration;
        let of_application = || self.application.and_then(|a| a.conf.mig);
        own.or_else(of_application).or_else(|| self.queue.and_then(|q| q.conf.mig))
    }

    /// The exit values that send the job back to its queue.
    pub fn requeue_codes(&self) -> Option<Cow<'a, ExitCodes>> {
        let own = &self.spec.further.requeue;
        if !own.is_empty() {
            return ExitCodes::parse(own).map(Cow::Owned);
        }
        let of_application = self.application.and_then(|a| a.requeue_codes.as_ref());
        let of_queue = || self.queue.and_then(|q| q.requeue_codes.as_ref());
        of_application.or_else(of_queue).map(Cow::Borrowed)
    }

    /// Does the exit value count as success?
    pub fn succeeds(&self, code: i32) -> bool {
        let codes = self.application.and_then(|a| a.success_codes.as_ref());
        codes.is_some_and(|codes| codes.has(code))
    }

    /// SUCCESS_EXIT_VALUES as written.
    pub fn success_codes(&self) -> String {
        let own = self.application.and_then(|a| a.conf.success_exit_values.clone());
        own.unwrap_or_default()
    }

    /// The protection of the job from preemption, and how long it waits before it preempts others.
    pub fn preemption_limits(&self) -> Cow<'a, PreemptionLimits> {
        match (self.application.filter(|a| a.protects), self.queue) {
            (None, Some(queue)) => Cow::Borrowed(&queue.preemption_limits),
            (application, queue) => {
                let levels = [application.map(|a| &a.conf.raw), queue.map(|q| &q.conf.raw)];
                Cow::Owned(PreemptionLimits::compile(levels, self.site.params()))
            }
        }
    }

    /// How often the job goes back to its queue.
    pub fn retry_limits(&self) -> Cow<'a, RetryLimits> {
        match self.application.filter(|a| a.retries) {
            None => Cow::Borrowed(self.site.retry_limits(self.queue)),
            Some(a) => {
                let queue = self.queue.map(|q| &q.conf.raw);
                let levels = [Some(&a.conf.raw), queue];
                Cow::Owned(RetryLimits::compile(levels, self.site.params()))
            }
        }
    }

    /// RERUNNABLE, of jobs with neither -r nor -rn.
    pub fn rerunnable(&self) -> bool {
        let own = self.application.and_then(|a| a.conf.rerunnable);
        own.or(self.queue.map(|q| q.conf.rerunnable)).unwrap_or(false)
    }

    /// Checkpoints of jobs without -k.
    pub fn checkpoint(&self) -> Option<Box<Checkpoint>> {
        let own = self.application.and_then(|a| a.conf.chkpnt.as_ref());
        own.or(self.queue.and_then(|q| q.conf.chkpnt.as_ref())).cloned()
    }

    /// CHUNK_JOB_SIZE; 1: none of its jobs is in a chunk.
    pub fn chunk_size(&self) -> usize {
        let own = self.application.and_then(|a| a.conf.chunk_job_size);
        let size = own.or(self.queue.map(|q| q.conf.chunk_job_size)).unwrap_or(1);
        usize::try_from(size).unwrap_or(1)
    }

    /// ABS_RUNLIMIT.
    pub fn absolute_run_limit(&self) -> bool {
        let own = self.application.and_then(|a| a.conf.abs_runlimit);
        own.unwrap_or(self.site.params().run_limits.absolute)
    }

    /// MEMLIMIT_TYPE of the application profile.
    pub fn memory_of(&self) -> Option<MemoryOf> {
        self.application.and_then(|a| a.conf.memory_of)
    }

    /// RESIZABLE_JOBS; -ar stands above it.
    pub fn resizable(&self) -> Resizable {
        if self.spec.further.autoresize.0 {
            return Resizable::Auto;
        }
        let own = self.application.and_then(|a| a.conf.resizable);
        own.or(self.queue.map(|q| q.conf.resizable)).unwrap_or_default()
    }

    /// RESIZE_NOTIFY_CMD, of jobs without -rnc; empty none.
    pub fn resize_command(&self) -> String {
        let own = Some(&*self.spec.further.resize_command).filter(|own| !own.is_empty());
        let of_application = || self.application.and_then(|a| a.conf.resize_command.as_deref());
        own.or_else(of_application).unwrap_or_default().to_owned()
    }

    /// The run time that a job without -We is expected to have.
    pub fn estimate(&self) -> Option<&'a str> {
        let own = self.application.and_then(|a| a.conf.estimate.as_deref());
        own.or(self.queue.and_then(|q| q.conf.estimate.as_deref()))
    }

    /// JOB_INCLUDE_POSTPROC.
    pub fn includes_post(&self) -> bool {
        let own = self.application.and_then(|a| a.conf.include_postproc);
        own.unwrap_or(self.site.params().job_include_postproc)
    }

    /// BIND_JOB; empty: as the host has it.
    pub fn bind_job(&self) -> String {
        let own = self.application.and_then(|a| a.conf.bind_job);
        own.map_or(String::new(), |policy| policy.word().to_owned())
    }

    /// JOB_POSTPROC_TIMEOUT, seconds; 0 none.
    pub fn post_timeout(&self) -> u64 {
        let own = self.application.and_then(|a| a.conf.postproc_timeout);
        own.or(self.site.params().command_timeouts.post).unwrap_or(0)
    }

    /// JOB_PREPROC_TIMEOUT, seconds; 0 none.
    pub fn pre_timeout(&self) -> u64 {
        let own = self.application.and_then(|a| a.conf.preproc_timeout);
        own.or(self.site.params().command_timeouts.pre).unwrap_or(0)
    }

    /// JOB_CWD_TTL, seconds; `None`: a directory made for a job is kept.
    pub fn directory_ttl(&self) -> Option<u64> {
        let own = self.application.and_then(|a| a.conf.job_cwd_ttl);
        let hours =
            own.or(self.site.params().removal.directory_hours).filter(|h| *h < TTL_NEVER)?;
        hours.checked_mul(3600)
    }

    /// ENV_VARS.
    pub fn env_vars(&self) -> Vec<(String, String)> {
        self.application.map(|a| a.conf.env_vars.clone()).unwrap_or_default()
    }

    /// PEND_TIME_LIMIT and ELIGIBLE_PEND_TIME_LIMIT, seconds.
    pub fn pend_limits(&self) -> [Option<u64>; 2] {
        let own = self.application.map(|a| [a.conf.pend_limit, a.conf.eligible_limit]);
        let of_queue = self.queue.map(|q| q.conf.pend_limits);
        let (own, of_queue) = (own.unwrap_or_default(), of_queue.unwrap_or_default());
        [own[0].or(of_queue[0]), own[1].or(of_queue[1])]
    }

    /// The most tasks of a job.
    pub fn most_tasks(&self) -> u32 {
        let of_queue = self.queue.map_or(TaskRule::Any, TaskRule::of_queue);
        TaskRule::of_application(self.application).most().min(of_queue.most())
    }

    /// The warning before the end of the job, as far as -wa and -wt leave it to the queue. Only a
    /// job with a checkpoint directory gets a checkpoint.
    fn warn(&self, spec: &mut Arc<JobSpec>) {
        let Some(queue) = self.queue.map(|q| &q.conf) else { return };
        let own = &spec.further;
        let may = |action: &&WarnAction| match action {
            WarnAction::Command(text) => own.checkpoint.is_some() || &**text != CHKPNT,
            WarnAction::Signal(_) => true,
        };
        let action = own.warn_action.as_ref().or(queue.warning.action.as_ref().filter(may));
        let (action, time) = (action.cloned(), own.warn_time.or(queue.warning.time));
        if (&action, time) != (&own.warn_action, own.warn_time) {
            let further = &mut Arc::make_mut(spec).further;
            (further.warn_action, further.warn_time) = (action, time);
        }
    }

    /// The submission that a host gets: where it leaves something open, its application profile
    /// and its queue have filled that in.
    pub fn submission(&self, spec: &Arc<JobSpec>) -> Arc<JobSpec> {
        let mut spec = spec.clone();
        let of_application = self.application.and_then(|a| a.conf.requeue_exit_values.as_deref());
        let of_queue = self.queue.and_then(|q| q.conf.requeue_exit_values.as_deref());
        let codes = of_application.or(of_queue);
        if let Some(codes) = codes.filter(|_| spec.further.requeue.is_empty()) {
            Arc::make_mut(&mut spec).further.requeue = codes.into();
        }
        self.warn(&mut spec);
        if let Some(dir) = self.site.params().default_job_outdir.as_deref()
            && spec.further.out_dir.is_empty()
        {
            let dir = from_submission(&spec, dir);
            Arc::make_mut(&mut spec).further.out_dir = dir.into();
        }
        let application = self.application.map(|a| &a.conf);
        let of_application = application.and_then(|a| a.job_cwd.as_deref());
        let dir = of_application.or(self.site.params().default_job_cwd.as_deref());
        if let Some(dir) = dir.filter(|_| spec.options2 & opt2::CWD == 0) {
            work_in(Arc::make_mut(&mut spec), dir);
        }
        let Some(a) = application else { return spec };
        if let Some(command) = a.pre_exec.as_deref().filter(|_| spec.pre_exec.is_empty()) {
            Arc::make_mut(&mut spec).pre_exec = command.into();
        }
        if let Some(command) = a.post_exec.as_deref().filter(|_| spec.post_exec.is_empty()) {
            Arc::make_mut(&mut spec).post_exec = command.into();
        }
        spec
    }
}
