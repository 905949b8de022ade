//! Tasks that outlive their res (`daemon::res_keeper`): the descriptors of each are kept outside of
//! this process with the facts of [`KeptTask`], and the next res takes both over before it serves
//! anybody. The command comes back with the launcher's name of its task.
//!
//! Invariants: a task goes on with the user and the host that asked for it, and with one command at
//! a time; nothing is read from it before; one whose command does not come back within
//! [`RESUME_WITHIN`] is hung up as if the command had ended.

use super::state::{Res, Task};
use crate::model::ByteStr;
use crate::model::Now;
use crate::model::reason::err;
use crate::model::time::US;
use crate::proto::launch::{Setup, TaskId, TaskInfo, TaskStep};
use crate::proto::machine::ConnId;
use crate::proto::res::{Account, KEPT_TEXT, KeptTask, ResMsg, TaskOp, TaskProgress};
use crate::proto::{Effect, Msg, Refusal};

/// How long a command has to come back to the next res, microseconds; it tries for ten seconds.
const RESUME_WITHIN: u64 = 15 * US;

impl Res {
    /// Takes over a task of an earlier res, before anything else happens; its number here.
    pub fn adopt(&mut self, kept: KeptTask) -> u64 {
        let KeptTask { id, uid, user, from_host, pty, note, cwd, command } = kept;
        let n = self.next;
        self.next += 1;
        let exec_host = self.conf.host.clone();
        let account = Account { user, from_host, exec_host, cwd, command, ..Account::default() };
        let task = Task {
            id: Some(id),
            account: Box::new(account),
            job: (id.step == TaskStep::Job).then_some(id.key.job),
            of_job: note,
            resume_by: Some(0),
            listed: false,
            ..Task::new(None, uid, pty)
        };
        self.tasks.insert(n, task);
        self.adopted.insert(id, n);
        n
    }

    /// The descriptors of a task are here: the next res is to have them too.
    pub(super) fn keep(&self, n: u64, out: &mut Vec<Effect>) {
        let Some(t) = self.tasks.get(&n) else { return };
        let Some(id) = t.id else { return };
        let beginning = |text: &ByteStr| ByteStr(text.0[..text.len().min(KEPT_TEXT)].to_vec());
        let kept = Box::new(KeptTask {
            id,
            uid: t.uid,
            user: t.account.user.clone(),
            from_host: t.account.from_host.clone(),
            pty: t.pty,
            note: t.of_job,
            cwd: beginning(&t.account.cwd),
            command: beginning(&t.account.command),
        });
        out.push(Effect::Task { n, op: TaskOp::Keep(kept) });
    }

    /// A command comes back to its task.
    pub(super) fn resume(&mut self, conn: ConnId, task: TaskId, out: &mut Vec<Effect>) {
        let Some(client) = self.clients.get_mut(&conn) else { return };
        let refuse = |refusal| Effect::Send { conn, msg: Msg::Refused(refusal) };
        if !self.linked {
            return out.push(refuse(Refusal::text(err::BUSY, "RES has no launcher yet")));
        }
        let found = self.adopted.get(&task).copied();
        let found = found.and_then(|n| Some((n, self.tasks.get_mut(&n)?)));
        let own = |t: &Task| t.uid == client.uid && t.account.from_host == client.host;
        let Some((n, t)) = found.filter(|(_, t)| t.resume_by.is_some() && own(t)) else {
            return out.push(refuse(Refusal::text(err::DJOB_RES_IO, "the task is gone")));
        };
        (t.conn, t.resume_by, client.task) = (Some(conn), None, Some(n));
        out.push(Effect::Task { n, op: TaskOp::Resume });
    }

    /// The state of the descriptors of a task to which its command has come back.
    pub(super) fn resumed(&mut self, n: u64, progress: TaskProgress, out: &mut Vec<Effect>) {
        let Some(t) = self.tasks.get(&n) else { return };
        let (Some(conn), Some(task)) = (t.conn, t.id) else { return };
        out.push(Effect::Send { conn, msg: Msg::Res(ResMsg::Resumed(progress)) });
        // a res that ends in turn leaves it to the next one
        out.push(Effect::Send { conn, msg: Msg::Res(ResMsg::Kept { task }) });
        out.push(Effect::Task { n, op: TaskOp::Allow(t.room) });
        if t.ended.is_some() {
            self.ended(n, out);
        }
    }

    /// The launcher knows of a task.
    pub(super) fn listed(&mut self, id: TaskId) {
        let n = self.adopted.get(&id);
        if let Some(t) = n.and_then(|n| self.tasks.get_mut(n)) {
            t.listed = true;
        }
    }

    /// The launcher has told of all its tasks: of those of an earlier res that it does not know,
    /// the end is unknown.
    pub(super) fn end_unlisted(&mut self, out: &mut Vec<Effect>) {
        for n in self.adopted.values().copied().collect::<Vec<_>>() {
            let Some(t) = self.tasks.get_mut(&n).filter(|t| !t.listed) else { continue };
            let (Some(id), None) = (t.id, &t.ended) else { continue };
            t.listed = true;
            t.ended =
                Some(TaskInfo { setup: Some(Setup::Ready(Box::default())), ..TaskInfo::new(id) });
            self.ended(n, out);
        }
    }

    /// When the next task of an earlier res has waited long enough; the launcher is needed then.
    pub(super) fn left_deadline(&self) -> Option<u64> {
        let waiting = self.adopted.values().filter_map(|n| self.tasks.get(n)?.resume_by);
        waiting.min().filter(|_| self.linked)
    }

    /// Hangs up the tasks of an earlier res whose commands have not come back.
    pub(super) fn end_left(&mut self, now: Now, out: &mut Vec<Effect>) {
        let mut left = Vec::new();
        for n in self.adopted.values().copied() {
            let Some(t) = self.tasks.get_mut(&n) else { continue };
            match t.resume_by {
                Some(0) => t.resume_by = Some(now.mono_us + RESUME_WITHIN),
                Some(at) if at <= now.mono_us && self.linked => {
                    t.resume_by = None;
                    left.push(n);
                }
                _ => {}
            }
        }
        for n in left {
            self.leave(n, out);
        }
    }
}
