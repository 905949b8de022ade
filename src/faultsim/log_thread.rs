//! The turns of the log's thread, and its notices to mbatchd; a master that is stopped before its
//! write.

use super::event::SimEvent;
use super::world::{DaemonMachine, World};
use crate::log::writer::{Command, WriterNotice};
use crate::proto::machine::Input;

/// Microseconds for which a master is stopped: the shortest, and what a seed may add.
const STOPPED: (u64, u64) = (500_000, 15_000_000);

impl World {
    /// A turn of the thread is through.
    pub(super) fn log_turn(&mut self, gen_: u64) {
        if self.log.gen_ != gen_ {
            return;
        }
        self.log.due = None;
        let now = self.now_us;
        if self.log.stop_next && self.stop_master() {
            return;
        }
        let Some(open) = &mut self.log.open else { return };
        if let Some(notice) = open.writer.turn(now, &mut |_| {}) {
            open.ended = matches!(notice, WriterNotice::Fatal(_));
            // The loop hears of it a little later, in order.
            self.log.told_at = (now + 1 + self.rng.below(300)).max(self.log.told_at + 1);
            let born = self.mbd_born();
            self.push(self.log.told_at, SimEvent::LogTold { born, notice });
        }
        self.plan_log();
    }

    fn mbd_born(&self) -> u64 {
        self.mbd_proc().map_or(0, |p| self.procs[p].born)
    }

    pub(super) fn log_told(&mut self, born: u64, notice: WriterNotice) {
        let Some(p) = self.mbd_proc().filter(|p| self.procs[*p].born == born) else {
            return;
        };
        match notice {
            WriterNotice::Durable(ticket) => {
                let durable = self.log.tickets.release(ticket);
                self.log.shadow.durable(ticket);
                self.release(p, durable);
                self.mails_leave(Some(durable));
                self.log_end_of_turn();
            }
            WriterNotice::WriteFailed { why, durable_len, .. } => {
                self.log_failed(p, why, durable_len)
            }
            // mbatchd starts anew here until there is room
            WriterNotice::Opened => {}
            WriterNotice::Back => {
                self.mbd_unwell();
                self.step(p, Input::LogBack)
            }
            WriterNotice::Switched { ok, why } => {
                if !ok {
                    self.say(log::Level::Error, &format!("lsb.events was not switched: {why}"));
                }
                self.switches += usize::from(ok);
                self.step(p, Input::Switched { ok });
            }
            WriterNotice::Fatal(why) => {
                self.say(log::Level::Error, &format!("mbatchd ends: {why}"));
                self.kill_proc(p, true);
            }
        }
    }

    fn log_failed(&mut self, p: usize, why: String, durable_len: u64) {
        self.mbd_unwell();
        self.void(p);
        self.log.tickets.void();
        self.mails_leave(None);
        let Some(open) = &mut self.log.open else { return };
        match (open.front.again(durable_len), &mut self.procs[p].mach) {
            (Ok(found), Some(DaemonMachine::Mbd(m))) => m.reload(found),
            (Err(e), _) => self.fatal = Some(format!("the log cannot be read again: {e}")),
            _ => {}
        }
        open.writer.order(Command::Rebuilt);
        // what the log has lost is made anew when it can be written, of which mbatchd is to know
        self.step(p, Input::LogFailed { why });
        self.is_as_before_commit(p);
    }

    /// The master is stopped where it has looked at its lock and not yet written, for longer than
    /// the lock is kept: for everybody else it is gone. `false` where it is not at such a place.
    fn stop_master(&mut self) -> bool {
        let (now, Some(p)) = (self.now_us, self.mbd_proc()) else { return false };
        let alone = self.log.stopped.is_none();
        let Some(mut open) = self.log.open.take_if(|o| alone && !o.ended) else { return false };
        if !open.writer.check_ahead(now) {
            self.log.open = Some(open);
            return false;
        }
        self.log.stopped = Some((open, false));
        self.log.stop_next = false;
        self.kill_proc(p, true);
        let at = now + STOPPED.0 + self.rng.below(STOPPED.1);
        self.push(at, SimEvent::Wake);
        true
    }
}
