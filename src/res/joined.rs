//! Interactive jobs: bsub joins the job that it waits for (bsub(1)).
//!
//! The job is started by sbatchd like any other. Its starter, once it is the user, makes the
//! terminal or the pipes and brings the other ends to the res of its host; the bsub that waits
//! connects to that res with the user's credential and asks for them. So nothing listens on the
//! submission host, no secret travels, and a firewall that lets lsrun through lets this through.
//! mbatchd, sbatchd and the launcher may be restarted at any time: none of them is on the way. A
//! job that was joined outlives this res (kept.rs).
//!
//! Invariants: only the uid of the job joins it, as its starter's uid is known from the system; one
//! bsub at a time; a job whose bsub is gone is hung up, and killed after LSF_RES_TIMEOUT.

use super::state::{Res, SIGCONT, SIGHUP, SIGKILL, TASKS_MAX, Task, ask};
use crate::model::reason::err;
use crate::model::{JobKey, Now, time::US};
use crate::proto::launch::{LaunchMsg, TaskId, TaskInfo, TaskStep};
use crate::proto::machine::ConnId;
use crate::proto::res::{Pty, ResMsg, TaskOp};
use crate::proto::{Effect, Msg, Refusal};

impl Res {
    /// A bsub asks for the terminal of its job.
    pub(super) fn join(&mut self, conn: ConnId, job: u32, pty: Option<Pty>, out: &mut Vec<Effect>) {
        let Some(client) = self.clients.get_mut(&conn) else { return };
        let uid = client.uid;
        let same = |t: &Task| (t.uid, t.job) == (uid, Some(job));
        let refusal = if !self.linked {
            Some(Refusal::text(err::BUSY, "RES has no launcher yet"))
        } else if self.tasks.values().any(same) {
            let text = format!("Job <{job}> has a terminal already");
            Some(Refusal::text(err::BUSY, text))
        } else {
            (self.tasks.len() >= TASKS_MAX).then(|| Refusal::new(err::BUSY))
        };
        if let Some(refusal) = refusal {
            return out.push(Effect::Send { conn, msg: Msg::Refused(refusal) });
        }
        let n = self.next;
        self.next += 1;
        client.task = Some(n);
        let mut task = Task::new(Some(conn), uid, pty.is_some());
        task.job = Some(job);
        (task.account.user, task.account.from_host) = (client.user.clone(), client.host.clone());
        self.tasks.insert(n, task);
        out.push(Effect::Task { n, op: TaskOp::ExpectJob { uid, job, pty } });
    }

    /// The job's descriptors are here.
    pub(super) fn joined(&mut self, n: u64, key: JobKey, out: &mut Vec<Effect>) {
        let Some(task) = self.tasks.get_mut(&n) else { return };
        let Some(conn) = task.conn else { return };
        task.id = Some(TaskId { key, step: TaskStep::Job });
        out.push(Effect::Send { conn, msg: Msg::Res(ResMsg::Joined) });
    }

    /// The launcher's news of an interactive job.
    pub(super) fn job_told(&mut self, info: TaskInfo, out: &mut Vec<Effect>) {
        if info.ended.is_none() {
            return;
        }
        self.orphans.retain(|o| o.0 != info.id);
        let of_job = |t: &Task| t.id == Some(info.id);
        let Some((&n, task)) = self.tasks.iter_mut().find(|(_, t)| of_job(t)) else { return };
        task.ended = Some(info);
        self.ended(n, out);
    }

    /// Interactive jobs that ran before this res, and were not kept for it, have lost their
    /// terminals with the res before it.
    pub(super) fn hang_up_orphan(&mut self, now: Now, info: &TaskInfo, out: &mut Vec<Effect>) {
        let known = |t: &Task| t.id == Some(info.id);
        let before = info.started < self.began && info.interactive() && info.ended.is_none();
        if !before || self.tasks.values().any(known) {
            return;
        }
        for signal in [SIGHUP, SIGCONT] {
            ask(out, LaunchMsg::Signal { id: info.id, signal });
        }
        self.orphans.push((info.id, now.mono_us + self.conf.timeout * US));
    }

    /// Kills the orphans that have had their time.
    pub(super) fn end_orphans(&mut self, now: Now, out: &mut Vec<Effect>) {
        self.orphans.retain(|&(id, at)| {
            if at <= now.mono_us {
                ask(out, LaunchMsg::Signal { id, signal: SIGKILL });
            }
            at > now.mono_us
        });
    }
}
