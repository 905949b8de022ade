//! The connections of TaskStarters that wait until their process is in its job (adoption.rs).

use crate::model::JobKey;
use crate::model::reason::err;
use crate::proto::launch::TaskId;
use crate::proto::machine::ConnId;
use crate::proto::res::{AdoptProcess, ResMsg};
use crate::proto::{Effect, Msg, Refusal};
use std::collections::BTreeMap;

/// A process that sbatchd is to look at.
#[derive(Debug)]
pub(super) struct AskedProcess {
    pub(super) conn: ConnId,
    pub(super) process: AdoptProcess,
    pub(super) key: JobKey,
    /// When sbatchd told of the job, monotonic microseconds of the host.
    pub(super) told_at: u64,
    /// [`Membership::slots`](crate::proto::member::Membership::slots).
    pub(super) slots: u32,
    /// The process is in the job and about to end.
    pub(super) ending: bool,
}

/// The connections that wait for the word of sbatchd and of the launcher.
#[derive(Debug, Default)]
pub(super) struct ForeignProcesses {
    pub(super) looking: BTreeMap<u64, AskedProcess>,
    /// With the process ID of the launcher.
    pub(super) adopting: BTreeMap<TaskId, (ConnId, u32)>,
}

impl ForeignProcesses {
    pub(super) fn len(&self) -> usize {
        self.looking.len() + self.adopting.len()
    }

    pub(super) fn has(&self, conn: ConnId) -> bool {
        self.looking.values().any(|asked| asked.conn == conn)
            || self.adopting.values().any(|asked| asked.0 == conn)
    }

    /// The connection is gone: a task that it has asked for goes on.
    pub(super) fn drop_of(&mut self, conn: ConnId) {
        self.looking.retain(|_, asked| asked.conn != conn);
        self.adopting.retain(|_, asked| asked.0 != conn);
    }

    /// The launcher has the task.
    pub(super) fn taken(&mut self, id: TaskId, out: &mut Vec<Effect>) {
        if let Some((conn, launcher)) = self.adopting.remove(&id) {
            let msg = Msg::Res(ResMsg::Adopted { within: false, launcher });
            out.push(Effect::Send { conn, msg });
        }
    }

    /// Whether the launcher's refusal was for one of these.
    /// `again`: TaskStarter may ask again.
    pub(super) fn refused(
        &mut self,
        id: TaskId,
        (why, again): (&str, bool),
        out: &mut Vec<Effect>,
    ) -> bool {
        let Some((conn, _)) = self.adopting.remove(&id) else { return false };
        if again {
            let msg = Msg::Refused(Refusal::text(err::BUSY, why));
            out.push(Effect::Send { conn, msg });
        } else {
            refuse(conn, why.to_owned(), out);
        }
        true
    }

    /// sbatchd is gone: whose process it is stays unknown.
    pub(super) fn unanswered(&mut self, out: &mut Vec<Effect>) {
        for asked in std::mem::take(&mut self.looking).into_values() {
            let why = Refusal::new(err::DJOB_RES_TIMEOUT);
            out.push(Effect::Send { conn: asked.conn, msg: Msg::Refused(why) });
        }
    }

    /// The launcher is gone: those who wait may ask again.
    pub(super) fn unlinked(&mut self, out: &mut Vec<Effect>) {
        for (conn, _) in std::mem::take(&mut self.adopting).into_values() {
            let why = Refusal::text(err::BUSY, "RES has no launcher yet");
            out.push(Effect::Send { conn, msg: Msg::Refused(why) });
        }
    }
}

/// Tells why a process may not be in the job.
pub(super) fn refuse(conn: ConnId, why: String, out: &mut Vec<Effect>) {
    let why = Refusal::text(err::PERMISSION, why);
    out.push(Effect::Send { conn, msg: Msg::Refused(why) });
}
