//! Tasks of jobs (blaunch(1)): before res has one started it asks the sbatchd of its host whether
//! the job has slots here, and whose the job is.
//!
//! Invariants: nothing that the caller says of the job is believed: uid and host of the caller are
//! those of its credential, the job's are sbatchd's; a job of which sbatchd has not heard yet is
//! waited for, some seconds at most; without such tasks there is no connection to sbatchd. A task
//! of lsrun or lsgrun that cannot be one of the job is an ordinary one.

use super::state::{Res, SBATCHD};
use super::waiting::WantedTask;
use crate::model::Now;
use crate::model::reason::err;
use crate::proto::machine::ConnId;
use crate::proto::member::{MemberMsg, Membership};
use crate::proto::res::TaskOp;
use crate::proto::{Daemon, Effect, Endpoint, Msg, Refusal};

/// A task that is to be started, the connection that wants it, and the job that sbatchd has spoken
/// for; none: it is an ordinary task.
pub(super) type AdmittedTask = (ConnId, WantedTask, Option<Membership>);

impl Res {
    /// The answer of sbatchd: the tasks that are to be started now. Where the caller may have no
    /// tasks of the job, a task is refused, or is an ordinary one.
    pub(super) fn admitted(&mut self, msg: MemberMsg, out: &mut Vec<Effect>) -> Vec<AdmittedTask> {
        let mut admitted = Vec::new();
        match msg {
            MemberMsg::Told(of) => {
                for (conn, task) in self.waiting.take_of(of.key.job_ref()) {
                    match self.not_admitted(conn, &of) {
                        None => admitted.push((conn, task.wanted, Some((*of).clone()))),
                        Some(_) if task.wanted.may_be_ordinary() => {
                            admitted.push((conn, task.wanted, None));
                        }
                        Some(code) => {
                            let refusal = Refusal::new(code);
                            out.push(Effect::Send { conn, msg: Msg::Refused(refusal) });
                        }
                    }
                }
            }
            MemberMsg::Unknown { job, settled: true } => {
                for (conn, task) in self.waiting.take_of(job) {
                    if task.wanted.may_be_ordinary() {
                        admitted.push((conn, task.wanted, None));
                        continue;
                    }
                    let refusal = Refusal::new(err::DJOB_BAD_JOBID);
                    out.push(Effect::Send { conn, msg: Msg::Refused(refusal) });
                }
            }
            MemberMsg::Unknown { job, settled: false } => {
                let ordinary = self.waiting.take_unknown(job);
                admitted.extend(ordinary.into_iter().map(|(conn, task)| (conn, task.wanted, None)));
            }
            MemberMsg::Ask { .. } | MemberMsg::Look(_) | MemberMsg::Looked { .. } => {}
        }
        admitted
    }

    /// Why the caller may have no tasks of the job; `None`: may.
    fn not_admitted(&self, conn: ConnId, of: &Membership) -> Option<i32> {
        let client = self.clients.get(&conn)?;
        if client.uid != of.uid {
            return Some(err::DJOB_BAD_USER);
        }
        (!of.hosts.contains(&client.host)).then_some(err::DJOB_BAD_HOST)
    }

    /// The launcher has refused a task, as it was an earlier sbatchd that spoke for its job: the
    /// present one is asked. False: there is no such task, or nobody waits for it any more.
    pub(super) fn wait_again(&mut self, n: u64, out: &mut Vec<Effect>) -> bool {
        let Some(task) = self.tasks.get_mut(&n) else { return false };
        let Some((conn, wanted)) = task.conn.zip(task.wanted.take()) else { return false };
        let Some(job) = wanted.job else { return false };
        self.take(n);
        out.push(Effect::Task { n, op: TaskOp::Forget });
        if let Some(client) = self.clients.get_mut(&conn) {
            client.task = None;
        }
        self.waiting.add(conn, job, WantedTask::Run(wanted));
        true
    }

    /// Asks sbatchd where that is due, and refuses what has waited long enough. Gives the tasks
    /// that are ordinary ones because of that.
    pub(super) fn waiting_due(&mut self, now: Now, out: &mut Vec<Effect>) -> Vec<AdmittedTask> {
        let due = self.waiting.due(now);
        if due.dial {
            let to = Endpoint::Tcp { host: self.conf.host.clone(), daemon: Daemon::Sbatchd };
            out.push(Effect::Connect { conn: SBATCHD, to });
        }
        for job in due.ask {
            out.push(Effect::Send { conn: SBATCHD, msg: Msg::Member(MemberMsg::Ask { job }) });
        }
        let mut ordinary = Vec::new();
        for (conn, task) in due.late {
            if task.wanted.may_be_ordinary() {
                ordinary.push((conn, task.wanted, None));
                continue;
            }
            let code = if task.unknown { err::DJOB_BAD_JOBID } else { err::DJOB_RES_TIMEOUT };
            out.push(Effect::Send { conn, msg: Msg::Refused(Refusal::new(code)) });
        }
        ordinary
    }
}
