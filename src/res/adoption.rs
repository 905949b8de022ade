//! Processes that res has not had started and that are in jobs: TaskStarters which the launcher of
//! a parallel program has begun by its own means, such as ssh (TaskStarter(1)). sbatchd says whose
//! process it is, then the launcher takes it; the tasks themselves are the launcher's.
//!
//! Invariants: a process is of one job; one of its own user, of the user's jobs alone and of no
//! other job is taken, and the launcher looks at its user and its start once more.

use super::foreign::{AskedProcess, refuse};
use super::state::{Res, SBATCHD, ask};
use crate::model::JobKey;
use crate::proto::launch::{LaunchMsg, Plan, TaskPlan};
use crate::proto::machine::ConnId;
use crate::proto::member::{MemberMsg, Membership, ProcessLook, TaskNote};
use crate::proto::res::{AdoptProcess, ResMsg};
use crate::proto::{Effect, Msg};

impl Res {
    /// sbatchd has spoken for the job: it is asked whose process it is.
    pub(super) fn look_at(
        &mut self,
        conn: ConnId,
        (process, ending): (AdoptProcess, bool),
        of: &Membership,
        out: &mut Vec<Effect>,
    ) {
        let Some(client) = self.clients.get(&conn) else { return };
        let (n, uid) = (self.next, client.uid);
        self.next += 1;
        let AdoptProcess { pid, ticks, .. } = process;
        let (key, told_at, slots) = (of.key, of.told_at, of.slots);
        let asked = AskedProcess { conn, process, key, told_at, slots, ending };
        self.foreign.looking.insert(n, asked);
        let msg = Msg::Member(MemberMsg::Look(ProcessLook { n, uid, pid, ticks }));
        out.push(Effect::Send { conn: SBATCHD, msg });
    }

    /// The answer: the launcher takes a process that is of no job.
    pub(super) fn looked(
        &mut self,
        (n, owner): (u64, Option<JobKey>),
        launcher: u32,
        why: String,
        out: &mut Vec<Effect>,
    ) {
        let Some(asked) = self.foreign.looking.remove(&n) else { return };
        let AskedProcess { conn, process, key, .. } = asked;
        let AdoptProcess { pid, ticks, pam_ms, .. } = process;
        let Some(client) = self.clients.get(&conn) else { return };
        let msg = match owner {
            _ if asked.ending => Msg::Res(ResMsg::Done),
            _ if !why.is_empty() => return refuse(conn, why, out),
            Some(owner) if owner == key => Msg::Res(ResMsg::Adopted { within: true, launcher }),
            Some(owner) => {
                let of = owner.job_ref();
                return refuse(conn, format!("process {pid} is of job <{of}>"), out);
            }
            None => {
                let (detached, gone, usage_secs) = (true, None, 0);
                let (adopted, told_at, slots) = (true, asked.told_at, asked.slots);
                let note =
                    TaskNote { key, detached, gone, usage_secs, pam_ms, adopted, told_at, slots };
                let (uid, gid, user) = (client.uid, client.gid, client.user.clone());
                let what = TaskPlan::Adopt { pid, ticks };
                let (id, plan) = (self.id(n), Box::new(Plan { uid, gid, user, what }));
                self.foreign.adopting.insert(id, (conn, launcher));
                return ask(out, LaunchMsg::Start { id, plan, note: note.text() });
            }
        };
        out.push(Effect::Send { conn, msg });
    }
}
