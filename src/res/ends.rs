//! The ends of tasks: of those whose command is gone, and of those that the launcher tells of.

use super::state::{Res, SIGCONT, SIGHUP, Task, ask};
use crate::model::job::{End, Usage};
use crate::model::reason::{err, err_text};
use crate::proto::launch::{LaunchMsg, Setup, SetupStage};
use crate::proto::res::{ResMsg, TaskOp};
use crate::proto::{Effect, Msg, Refusal};

/// The refusal of a task that was not started. `internal`: blaunch wants it, and the reason is
/// that of this host alone.
fn refusal(internal: bool, why: String) -> Refusal {
    let code = err::DJOB_RES_FAILED;
    match internal {
        true => Refusal::text(code, format!("{} ({why})", err_text(code))),
        false => Refusal::text(err::PERMISSION, why),
    }
}

impl Res {
    /// A task has no command any more: it is hung up.
    pub(super) fn leave(&mut self, n: u64, out: &mut Vec<Effect>) {
        out.push(Effect::Task { n, op: TaskOp::Forget });
        let id = self.task_id(n);
        let Some(t) = self.tasks.get_mut(&n) else { return };
        t.conn = None;
        if t.of_job.is_some_and(|note| note.detached) {
            // who asked need not stay
            return;
        }
        let Some(id) = id.filter(|_| t.ended.is_none()) else {
            return self.over(n, out);
        };
        // the deadline is set by the next tick, which has the time
        t.kill_at = Some(0);
        for signal in [SIGHUP, SIGCONT] {
            ask(out, LaunchMsg::Signal { id, signal });
        }
    }

    /// The launcher has told of the end of a task: its output comes first, unless nobody is there
    /// or comes back for it.
    pub(super) fn ended(&mut self, n: u64, out: &mut Vec<Effect>) {
        let Some(t) = self.tasks.get(&n) else { return };
        if t.resume_by.is_some() {
            return;
        }
        match t.conn.filter(|_| !t.of_job.is_some_and(|note| note.detached)) {
            Some(_) => out.push(Effect::Task { n, op: TaskOp::Drain }),
            None => self.over(n, out),
        }
    }

    /// A task that never was.
    pub(super) fn failed(&mut self, n: u64, why: String, out: &mut Vec<Effect>) {
        let Some(t) = self.take(n) else { return };
        out.push(Effect::Task { n, op: TaskOp::Forget });
        if let Some(conn) = t.conn {
            let refusal = refusal(t.of_job.is_some(), why);
            out.push(Effect::Send { conn, msg: Msg::Refused(refusal) });
        }
    }

    /// Everything about a task that has ended was sent.
    pub(super) fn over(&mut self, n: u64, out: &mut Vec<Effect>) {
        if self.tasks.get(&n).is_some_and(|t| t.job.is_some()) {
            return self.job_over(n, out);
        }
        let Some(mut t) = self.take(n) else { return };
        out.push(Effect::Task { n, op: TaskOp::Forget });
        // sbatchd does this for a task of a job, which may have left processes behind
        if let Some(id) = t.id.filter(|_| t.of_job.is_none()) {
            ask(out, LaunchMsg::Forget { key: id.key, over_at: 0 });
        }
        let Some(info) = t.ended.take() else { return };
        // the plan is this host's own affair
        let internal =
            !matches!(&info.setup, Some(Setup::Failed { at, .. }) if *at != SetupStage::Plan);
        let failed = match info.setup {
            Some(Setup::Failed { why, .. }) => Some(why),
            Some(Setup::Ready(_)) => None,
            None => Some("the task could not be set up".into()),
        };
        let ended = info.ended.map(|e| (e.end, e.usage, e.time));
        let (end, usage, time) = ended.unwrap_or((End::Unknown, Usage::default(), 0));
        let status = if let End::Status(status) = end { Some(status) } else { None };
        if let Some(conn) = t.conn {
            let msg = match failed.clone() {
                Some(why) => Msg::Refused(refusal(internal && t.of_job.is_some(), why)),
                None => Msg::Res(ResMsg::Ended { status }),
            };
            out.push(Effect::Send { conn, msg });
        }
        let cpu_ms = (usage.utime_us + usage.stime_us) / 1000;
        if failed.is_none() && self.conf.acct_ms.is_some_and(|least| cpu_ms >= least) {
            let a = &mut t.account;
            (a.pid, a.started, a.ended, a.usage) = (info.pid, info.started, time, usage);
            a.exit_status = status.unwrap_or(-1);
            out.push(Effect::Task { n, op: TaskOp::Account(t.account) });
        }
    }

    /// Everything about a job that has ended was sent. sbatchd tells the launcher to forget it.
    fn job_over(&mut self, n: u64, out: &mut Vec<Effect>) {
        let Some(task) = self.take(n) else { return };
        out.push(Effect::Task { n, op: TaskOp::Forget });
        let Some(conn) = task.conn else { return };
        let end = task.ended.and_then(|info| info.ended).map(|ended| ended.end);
        let status = if let Some(End::Status(status)) = end { Some(status) } else { None };
        out.push(Effect::Send { conn, msg: Msg::Res(ResMsg::Ended { status }) });
    }

    /// Takes a task off the list.
    pub(super) fn take(&mut self, n: u64) -> Option<Task> {
        let task = self.tasks.remove(&n)?;
        if let Some(id) = &task.id {
            self.adopted.remove(id);
        }
        Some(task)
    }
}
