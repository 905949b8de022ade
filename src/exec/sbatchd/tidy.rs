//! Remains of a user's jobs on this host are removed when none of them runs there any more: the
//! files of hosts that they shared, and output without a file of its own that has become old.
//!
//! Invariant: no job of the user is launched while that goes on, so that nothing of a job is
//! removed that has just been made. The clean-up is ended after [`TIDY_MOST`]: a directory that
//! does not answer, or a user who stops it, holds up no job for longer.

use super::agent::*;
use super::tidy_table::{Due, TIDY_PAUSE};
use super::*;
use crate::proto::launch::Tidy;

/// Longest time that it may take, microseconds.
pub const TIDY_MOST: u64 = 60 * US;
/// How often it is looked whether kept output has become old, microseconds.
pub const TIDY_AGAIN: u64 = 24 * 3600 * US;
/// How long output without a file of its own is kept after it was last written to, seconds.
pub const KEEP_SECS: u64 = 30 * 24 * 3600;

/// The launcher's key for it: no job has the number 0.
fn key_of(uid: u32) -> JobKey {
    JobKey { job: 0, idx: uid, attempt: 0 }
}

impl Sbatchd {
    pub(super) fn tidy_deadline(&self) -> Option<u64> {
        self.tidy.deadline().filter(|_| self.linked)
    }

    pub(super) fn tidy_due(&mut self, now: Now, out: &mut Vec<Effect>) {
        if self.tidy_deadline().is_none_or(|at| at > now.mono_us) {
            return;
        }
        self.end_long_tidying(now, out);
        let busy: BTreeSet<u32> = self
            .jobs
            .values()
            .filter(|j| j.stage != AttemptStage::Over)
            .map(|j| j.note.order.uid)
            .collect();
        for (&uid, due) in self.tidy.due.iter_mut().filter(|(_, d)| !d.runs && d.at <= now.mono_us)
        {
            if busy.contains(&uid) {
                due.at = now.mono_us + TIDY_PAUSE;
                continue;
            }
            (due.runs, due.at) = (true, now.mono_us + TIDY_MOST);
            let tidy = Tidy { host: self.conf.site.host.clone(), keep_secs: KEEP_SECS };
            let plan = FinishPlan { tidy: Some(tidy), ..FinishPlan::default() };
            let what = TaskPlan::Finish(Box::new(plan));
            let plan = Box::new(Plan { uid, gid: due.gid, user: due.user.clone(), what });
            let id = TaskId { key: key_of(uid), step: TaskStep::Finish };
            ask(out, LaunchMsg::Start { id, plan, note: String::new() });
        }
    }

    fn end_long_tidying(&mut self, now: Now, out: &mut Vec<Effect>) {
        let long = self.tidy.due.iter().filter(|(_, due)| due.runs && due.at <= now.mono_us);
        for uid in long.map(|(uid, _)| *uid).collect::<Vec<_>>() {
            let id = TaskId { key: key_of(uid), step: TaskStep::Finish };
            ask(out, LaunchMsg::Signal { id, signal: SIGKILL });
            self.tidy_over(now, uid, true, out);
        }
    }

    /// A starter that tidies tells, or has ended; whether the task was such a one.
    pub(super) fn tidied(&mut self, now: Now, info: &TaskInfo, out: &mut Vec<Effect>) -> bool {
        let uid = info.id.key.idx;
        if info.id.key != key_of(uid) {
            return false;
        }
        if info.ended.is_some() {
            let left = matches!(&info.setup, Some(Setup::Ready(ready)) if ready.kept);
            self.tidy_over(now, uid, left, out);
        }
        true
    }

    /// The clearing is over, or could not be done.
    pub(super) fn tidy_over(&mut self, now: Now, uid: u32, left: bool, out: &mut Vec<Effect>) {
        ask(out, LaunchMsg::Forget { key: key_of(uid), over_at: 0 });
        match self.tidy.due.get_mut(&uid) {
            Some(due) if left => (due.at, due.runs) = (now.mono_us + TIDY_AGAIN, false),
            _ => {
                self.tidy.due.remove(&uid);
            }
        }
        let waits = |j: &&Attempt| j.stage == AttemptStage::Blobs && j.note.order.uid == uid;
        let keys: Vec<_> = self.jobs.values().filter(waits).map(|j| j.note.order.key).collect();
        for key in keys {
            self.prepare(now, key, out);
        }
    }

    /// Tidying that a launcher which was replaced does not know of is not waited for.
    pub(super) fn tidy_missed(
        &mut self,
        now: Now,
        known: &BTreeSet<TaskId>,
        out: &mut Vec<Effect>,
    ) {
        let gone = |(uid, due): (&u32, &Due)| {
            let id = TaskId { key: key_of(*uid), step: TaskStep::Finish };
            (due.runs && !known.contains(&id)).then_some(*uid)
        };
        for uid in self.tidy.due.iter().filter_map(gone).collect::<Vec<_>>() {
            self.tidy_over(now, uid, false, out);
        }
    }
}
