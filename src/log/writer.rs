//! The order of work on the log: batches are committed as they come, those that wait
//! together; a switch goes on between commits; while writing fails everything is void. The real
//! mbatchd turns it on a thread (`thread`), the simulator in virtual time.
//!
//! After [`WriterNotice::WriteFailed`] all orders are void until [`Command::Rebuilt`] reports that
//! the machine is back in the state of the log; meanwhile the writer tests every [`PROBE_SECS`]
//! whether writing works again, and reports it by [`WriterNotice::Back`]. After
//! [`WriterNotice::Fatal`] the process must end; the writer does nothing more.
//!
//! Invariant: each [`Writer::turn`] tells at most one thing, in the order in which it happened.

use super::acct_archive::Archived;
use super::batch::{Batch, CommittedLines};
use super::disk::Disk;
use super::extent::Extent;
use super::fail::Fail;
use super::store::{Point, Store};
use super::switch::SwitchOrder;
use crate::model::time::US;
use crate::proto::machine::AcctArchive;
use std::collections::VecDeque;

/// Seconds between tries to write again.
pub const PROBE_SECS: u64 = 2;

/// Seconds until a copy of lsb.acct that failed is begun again: it is large.
const COPY_PAUSE_SECS: u64 = 60;

/// Most bytes of batches that are joined into one commit, approximately.
const MAX_JOINED: usize = 8 << 20;

/// The messages to the loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriterNotice {
    /// Everything up to this ticket is durable.
    Durable(u64),
    /// This ticket and all later ones are void; lsb.events is good up to `durable_len`.
    WriteFailed { ticket: u64, why: String, durable_len: u64 },
    /// The log can be written again.
    Back,
    /// The process must end at once.
    Fatal(String),
    /// The log, which could not be taken over at the start, is open now. All that was ordered is
    /// void; what the log holds is there to be read.
    Opened,
    /// The switch asked for is complete, or was given up.
    Switched { ok: bool, why: String },
}

/// A command to the writer.
pub enum Command {
    /// Make the batch durable. Its ticket must be larger than any before.
    Batch(Box<Batch>),
    /// Switch lsb.events, behind what was ordered before.
    Switch(Box<SwitchOrder>),
    /// Archive lsb.acct where this is due, behind what was ordered before.
    ArchiveAcct(AcctArchive),
    /// The machine is back to what the log holds after [`WriterNotice::WriteFailed`].
    Rebuilt,
}

/// When the next turn is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    Now,
    /// Work is due at this instant of the monotonic clock, microseconds.
    At(u64),
    /// When something is ordered.
    Ordered,
}

/// Writing does not work.
struct Failed {
    next_probe: u64,
    /// The machine is back to what the log holds: what is ordered now is not void but fails.
    rebuilt: bool,
}

/// Is told of the records of each commit.
pub type TellCommitted = Box<dyn Fn(CommittedLines) + Send>;

/// The writer of one open log.
pub struct Writer<D: Disk> {
    store: Store<D>,
    /// Follows the records that were committed.
    committed: Option<TellCommitted>,
    orders: VecDeque<Command>,
    failed: Option<Failed>,
    /// A storm of batches must not starve a switch: it has the next turn.
    slice: bool,
    /// A switch was given up, which is not told yet.
    gave_up: bool,
    /// There was no room for the copy of lsb.acct; it is tried again at this instant of the
    /// monotonic clock, microseconds.
    copy_at: Option<u64>,
}

impl<D: Disk> Writer<D> {
    pub fn new(store: Store<D>) -> Writer<D> {
        let (committed, orders, failed) = (None, VecDeque::new(), None);
        Writer { store, committed, orders, failed, slice: false, gave_up: false, copy_at: None }
    }

    /// A writer whose machine is yet to go back to what the log holds.
    pub fn opened_late(store: Store<D>, now: u64) -> Writer<D> {
        let failed = Some(Failed { next_probe: now, rebuilt: false });
        Writer { failed, ..Writer::new(store) }
    }

    /// Tells from now on what was committed.
    pub fn telling(self, committed: Option<TellCommitted>) -> Writer<D> {
        Writer { committed, ..self }
    }

    pub fn order(&mut self, command: Command) {
        self.orders.push_back(command);
    }

    /// The durable part of the log.
    pub fn extent(&mut self) -> Extent {
        self.store.extent()
    }

    /// Is something ordered that was not begun?
    pub fn has_orders(&self) -> bool {
        !self.orders.is_empty()
    }

    /// Checks now what the next commit checks before it writes; `false` where none is next, or it
    /// would not come to writing. For the simulator: a process may be stopped there for any time.
    pub fn check_ahead(&mut self, now: u64) -> bool {
        let next = !self.gave_up && !self.slice && self.failed.is_none();
        let commits = matches!(self.orders.front(), Some(Command::Batch(_)));
        next && commits && self.store.check_ahead(now).is_ok()
    }

    pub fn due(&self) -> Due {
        match &self.failed {
            _ if self.gave_up || self.has_orders() => Due::Now,
            Some(failed) => Due::At(failed.next_probe),
            None if self.store.is_switching() || self.store.is_accounting() => Due::Now,
            None if self.store.is_copying_acct() => self.copy_at.map_or(Due::Now, Due::At),
            None => Due::Ordered,
        }
    }

    /// Carries out the next order. `at` is told where a commit is.
    pub fn turn(&mut self, now: u64, at: &mut dyn FnMut(Point)) -> Option<WriterNotice> {
        if std::mem::take(&mut self.gave_up) {
            return Some(not_switched(Fail::Write("the log cannot be written".into())));
        }
        if std::mem::take(&mut self.slice) {
            return self.between(now);
        }
        match self.orders.pop_front() {
            Some(Command::Rebuilt) => {
                if let Some(failed) = &mut self.failed {
                    failed.rebuilt = true;
                }
                None
            }
            Some(Command::Switch(order)) => self.begin_switch(*order),
            Some(Command::ArchiveAcct(order)) => self.archive_acct(&order),
            Some(Command::Batch(batch)) => self.commit(*batch, now, at),
            None if self.failed.is_some() => self.probe(now),
            None if self.due() == Due::Ordered => self.look(now),
            None => self.between(now),
        }
    }

    /// Checks, when there is no other work, that the log is still this run's.
    fn look(&mut self, now: u64) -> Option<WriterNotice> {
        match self.store.look(now) {
            Err(Fail::Fatal(why)) => Some(WriterNotice::Fatal(why)),
            // what cannot be read now is read before the next commit
            _ => None,
        }
    }

    /// Work that goes on between commits.
    fn between(&mut self, now: u64) -> Option<WriterNotice> {
        if self.store.is_accounting() {
            self.store.account_slice();
            return None;
        }
        if !self.store.is_copying_acct() || self.copy_at.is_some_and(|at| now < at) {
            return self.switch_slice();
        }
        self.copy_at = None;
        match self.store.copy_acct() {
            Ok(()) => None,
            Err(Fail::Write(why)) => {
                log::warn!("the copy of lsb.acct that a takeover needs is tried again: {why}");
                self.copy_at = Some(now + COPY_PAUSE_SECS * US);
                None
            }
            Err(Fail::Fatal(why)) => Some(WriterNotice::Fatal(why)),
        }
    }

    /// Syncs what is synced lazily: before the process ends.
    pub fn close(self) {
        self.store.close();
    }

    fn switch_slice(&mut self) -> Option<WriterNotice> {
        match self.store.switch_slice() {
            Ok(false) => None,
            Ok(true) => Some(WriterNotice::Switched { ok: true, why: String::new() }),
            Err(fail) => Some(not_switched(fail)),
        }
    }

    fn begin_switch(&mut self, order: SwitchOrder) -> Option<WriterNotice> {
        if self.failed.is_some() {
            return Some(not_switched(Fail::Write("the log cannot be written".into())));
        }
        self.store.begin_switch(order).err().map(not_switched)
    }

    fn archive_acct(&mut self, order: &AcctArchive) -> Option<WriterNotice> {
        if self.failed.is_some() {
            return None;
        }
        match self.store.archive_acct(order) {
            Ok(Archived::InPart) => {
                // what was ordered meanwhile comes first
                self.orders.push_back(Command::ArchiveAcct(*order));
                None
            }
            Ok(Archived::NotDue | Archived::Whole) => None,
            Err(Fail::Write(why)) => {
                log::warn!("lsb.acct is not archived, which is tried again: {why}");
                None
            }
            Err(Fail::Fatal(why)) => Some(WriterNotice::Fatal(why)),
        }
    }

    fn probe(&mut self, now: u64) -> Option<WriterNotice> {
        let failed = self.failed.as_mut()?;
        if now < failed.next_probe {
            return None;
        }
        failed.next_probe = now + PROBE_SECS * US;
        // not before the machine is back: what it ordered until then is void
        if !failed.rebuilt {
            return None;
        }
        match self.store.probe() {
            Ok(()) => {
                self.failed = None;
                Some(WriterNotice::Back)
            }
            Err(Fail::Write(_)) => None,
            Err(Fail::Fatal(why)) => Some(WriterNotice::Fatal(why)),
        }
    }

    /// Commits a batch with all that wait behind it.
    fn commit(
        &mut self,
        mut batch: Batch,
        now: u64,
        at: &mut dyn FnMut(Point),
    ) -> Option<WriterNotice> {
        if let Some(failed) = &self.failed {
            let why = "the log cannot be written".to_string();
            return failed.rebuilt.then(|| self.write_failed(batch.ticket, why, now));
        }
        let first = batch.ticket;
        while batch.bytes() < MAX_JOINED
            && let Some(Command::Batch(_)) = self.orders.front()
            && let Some(Command::Batch(next)) = self.orders.pop_front()
        {
            batch.join(*next);
        }
        match self.store.commit(&batch, now, at) {
            Ok(()) => {
                let copies = self.store.is_copying_acct() && self.copy_at.is_none();
                self.slice = self.store.is_switching() || self.store.is_accounting() || copies;
                let ticket = batch.ticket;
                if let Some(committed) = &self.committed {
                    committed(batch.into_lines());
                }
                Some(WriterNotice::Durable(ticket))
            }
            Err(Fail::Write(why)) => Some(self.write_failed(first, why, now)),
            Err(Fail::Fatal(why)) => Some(WriterNotice::Fatal(why)),
        }
    }

    fn write_failed(&mut self, ticket: u64, why: String, now: u64) -> WriterNotice {
        self.failed = Some(Failed { next_probe: now + PROBE_SECS * US, rebuilt: false });
        // the machine goes back to before what it ordered; in its old spool file it may go on
        self.gave_up |= self.store.give_up_switch();
        let durable_len = self.store.durable_len();
        WriterNotice::WriteFailed { ticket, why, durable_len }
    }
}

fn not_switched(fail: Fail) -> WriterNotice {
    match fail {
        Fail::Write(why) => WriterNotice::Switched { ok: false, why },
        Fail::Fatal(why) => WriterNotice::Fatal(why),
    }
}
