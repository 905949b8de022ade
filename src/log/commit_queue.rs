//! The loop's side of the log: gathers what the machine wants written, hands it over in sealed
//! batches, reads spooled bytes, and reads the log again when writing failed.
//!
//! Invariant: one batch is under way at a time; what is appended meanwhile becomes durable with
//! the next (but a switch begins exactly where it was asked for).

use super::batch::Batch;
use super::disk::Disk;
use super::recover;
use super::recover::found::RecoverError;
use super::spool::SpoolReader;
use super::switch::SwitchOrder;
use super::writer::Command;
use crate::batch::Recovered;
use crate::model::ByteStr;
use crate::model::job::SpoolRef;
use crate::proto::Effect;
use crate::proto::held_replies::Tickets;

/// The state of the log that the event loop knows.
pub struct CommitQueue<D: Disk> {
    reader: D,
    spools: SpoolReader,
    epoch: u64,
    /// Gathered since the last ticket was sealed.
    batch: Batch,
}

impl<D: Disk> CommitQueue<D> {
    /// `epoch`: of this run, as recovery found it.
    pub fn new(reader: D, epoch: u64) -> CommitQueue<D> {
        CommitQueue { reader, spools: SpoolReader::default(), epoch, batch: Batch::default() }
    }

    /// Takes what concerns the log; gives back what does not. The runner has told the tickets of
    /// what it appends.
    pub fn take(
        &mut self,
        eff: Effect,
        tickets: &mut Tickets,
        order: &mut dyn FnMut(Command),
    ) -> Option<Effect> {
        match eff {
            Effect::Append(r) => self.batch.append(&r),
            Effect::Account(f) => self.batch.account(&f),
            Effect::AccountResize(r) => self.batch.account_resize(&r),
            Effect::AccountReservation(r) => self.batch.account_reservation(&r),
            Effect::AccountElements(f, elems) => self.batch.account_elements(*f, elems),
            Effect::Spool { at, data } => self.batch.spool(at, data.as_bytes()),
            Effect::Switch { live, head, spool, oldest_spool } => {
                // The new log begins exactly here: what was gathered belongs to the old one.
                self.seal(tickets, order);
                self.spools.forget(&mut self.reader);
                let switch = SwitchOrder { live, head, spool, oldest_spool };
                order(Command::Switch(Box::new(switch)));
            }
            Effect::ArchiveAcct(due) => order(Command::ArchiveAcct(due)),
            other => return Some(other),
        }
        None
    }

    fn seal(&mut self, tickets: &mut Tickets, order: &mut dyn FnMut(Command)) {
        if let Some(ticket) = tickets.seal() {
            let mut batch = std::mem::take(&mut self.batch);
            batch.ticket = ticket;
            order(Command::Batch(Box::new(batch)));
        }
    }

    /// Hands over what was gathered, unless a batch is under way.
    pub fn end_of_turn(&mut self, tickets: &mut Tickets, order: &mut dyn FnMut(Command)) {
        if !tickets.under_way() {
            self.seal(tickets, order);
        }
    }

    /// Bytes gathered that are not handed over.
    pub fn behind(&self) -> usize {
        self.batch.bytes()
    }

    /// The spooled bytes at a place.
    pub fn blob(&mut self, at: SpoolRef) -> std::io::Result<ByteStr> {
        self.spools.read(&mut self.reader, at).map(ByteStr)
    }

    /// A ticket failed: what the log holds, up to `durable_len`. When the machine is back to it,
    /// the writer is to be told.
    pub fn again(&mut self, durable_len: u64) -> Result<Recovered, RecoverError> {
        self.batch = Batch::default();
        recover::again(&mut self.reader, durable_len, self.epoch)
    }
}
