//! The work that follows the job of an attempt: post-execution commands, and transfers back.

use crate::exec::attempt::{Attempt, AttemptStage};
use crate::exec::plan;
use crate::model::Now;
use crate::model::job::Usage;
use crate::proto::launch::{Hook, HookOf, Setup, TaskInfo, TaskStep};
use crate::proto::sbd::Post;

impl Attempt {
    /// Whether the job is not to begin anew before everything of this attempt has ended.
    pub fn goes_back(&self) -> bool {
        self.failed() || plan::goes_back(&self.note.order, self.end())
    }

    /// The commands after the job that are due: of one that never ran, those of its queue.
    pub fn post_commands(&self) -> Vec<Hook> {
        let mut all = plan::post(&self.note.order);
        if self.begun {
            all.retain(|hook| matches!(hook.of, HookOf::Queue | HookOf::Host));
        }
        all
    }

    /// Whether the attempt ends only when its post-execution commands have ended.
    pub fn includes_post(&self) -> bool {
        self.note.mark.include_post && self.post != Post::None
    }

    /// When what runs after it has to be over, seconds since the epoch.
    fn post_end(&self, begun: i64) -> Option<i64> {
        let limit = i64::try_from(self.note.order.post_timeout).ok().filter(|&l| l > 0)?;
        // what is part of the job comes first
        let begun = self.outcome.as_ref().map_or(begun, |(_, ended)| begun.max(*ended));
        Some(begun.saturating_add(limit))
    }

    /// All else is done and what runs after it goes on, since `begun` (seconds since the epoch):
    /// from now on only JOB_POSTPROC_TIMEOUT bounds it.
    pub fn post_runs(&mut self, now: Now, begun: i64) {
        if self.post != Post::Running {
            return;
        }
        if self.includes_post() && self.report.task.is_over() {
            self.finish_by = None;
        }
        if self.post_by.is_none() {
            self.post_by = self.post_end(begun).map(|end| now.mono_of_wall(end));
        }
    }

    /// The post-execution commands are over: when they are part of the job, so are their times,
    /// unless they were killed for taking too long.
    pub fn post_ran(&mut self, begun: i64, time: i64, usage: &Usage) {
        self.post_by = None;
        if self.post != Post::Running || !self.includes_post() {
            return;
        }
        if self.post_end(begun).is_none_or(|end| time < end) {
            self.usage.utime_us += usage.utime_us;
            self.usage.stime_us += usage.stime_us;
        }
        if let Some((_, at)) = &mut self.outcome {
            *at = time.max(*at);
        }
    }

    /// The word of its starter when report and transfers are done, or that it ended before. The
    /// transfers and the script that cleans up are part of the job: it ends with them.
    pub fn told_after(&mut self, now: Now, info: &TaskInfo) {
        if self.stage != AttemptStage::Finishing {
            return;
        }
        if info.id.step == TaskStep::Report {
            let why = match &info.setup {
                Some(Setup::Ready(ready)) => &ready.note,
                Some(Setup::Failed { why, .. }) => why,
                None => return,
            };
            let join = if self.after.is_empty() || why.is_empty() { "" } else { "; " };
            self.after += &format!("{join}{why}");
            return;
        }
        let copies = !plan::copies_back(&self.note.order).is_empty();
        match (&info.setup, &info.ended) {
            (Some(Setup::Ready(ready)), _) => self.after.clone_from(&ready.note),
            (Some(Setup::Failed { why, .. }), _) => self.after.clone_from(why),
            (None, Some(_)) if copies => self.after = "file transfers back were cut short".into(),
            (None, _) => return,
        }
        let longer = copies || !self.ready.env_script.is_empty();
        if let Some((_, at)) = self.outcome.as_mut().filter(|_| longer) {
            *at = now.secs().max(*at);
        }
    }
}
