//! One step of the machine: its clock and its effects.

use crate::model::Now;
use crate::proto::client::ClientMsg;
use crate::proto::machine::{ConnId, Effect};
use crate::proto::{Msg, Refusal};

/// Records that one pass over eligible jobs may write before other work gets its turn.
pub const RECORDS_PER_TURN: usize = 2000;

/// Now and the effects of one step.
pub struct StepContext<'a> {
    pub(super) now: Now,
    pub(super) out: &'a mut Vec<Effect>,
}

impl StepContext<'_> {
    pub fn send(&mut self, conn: ConnId, msg: Msg) {
        self.out.push(Effect::Send { conn, msg });
    }
    pub fn reply(&mut self, conn: ConnId, msg: ClientMsg) {
        self.out.push(Effect::Send { conn, msg: Msg::Client(msg) });
    }
    /// Leaves when all that was appended so far is durable.
    pub fn reply_durable(&mut self, conn: ConnId, msg: ClientMsg) {
        self.out.push(Effect::SendDurable { conn, msg: Msg::Client(msg) });
    }
    pub fn refuse(&mut self, conn: ConnId, refusal: Refusal) {
        self.out.push(Effect::Send { conn, msg: Msg::Refused(refusal) });
    }
    pub fn say(&mut self, level: log::Level, text: impl Into<String>) {
        self.out.push(Effect::Say { level, text: text.into() });
    }
}

pub(crate) type Checked<T> = Result<T, Refusal>;
