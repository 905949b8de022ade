//! Messages that wait for records. Both runners hold replies with this, each connection its
//! own.
//!
//! Invariants: a message leaves only when the records appended before it are durable; none
//! overtakes another on its connection: behind one that waits, later ones wait too.

use super::{Msg, Refusal};
use crate::model::reason::err;
use std::collections::VecDeque;

/// The tickets: which appends are synced together, and how far the log is durable.
#[derive(Debug)]
pub struct Tickets {
    current: u64,
    durable: u64,
    dirty: bool,
}

impl Default for Tickets {
    fn default() -> Self {
        Tickets { current: 1, durable: 0, dirty: false }
    }
}

impl Tickets {
    /// Something was appended.
    pub fn touch(&mut self) {
        self.dirty = true;
    }

    /// Whether something was appended since the last [`Tickets::seal`].
    pub fn dirty(&self) -> bool {
        self.dirty
    }

    /// Whether a sealed ticket is not durable yet.
    pub fn under_way(&self) -> bool {
        self.durable + 1 < self.current
    }

    /// The ticket that what is sent now must wait for.
    pub fn due(&self) -> Option<u64> {
        let last = if self.dirty { self.current } else { self.current - 1 };
        (last > self.durable).then_some(last)
    }

    /// Up to which ticket the log is durable.
    pub fn durable(&self) -> u64 {
        self.durable
    }

    /// Closes the current ticket and returns its number; `None` where nothing was appended.
    pub fn seal(&mut self) -> Option<u64> {
        if !self.dirty {
            return None;
        }
        self.dirty = false;
        self.current += 1;
        Some(self.current - 1)
    }

    /// Every ticket up to this one is durable; returns up to which messages may go.
    pub fn release(&mut self, ticket: u64) -> u64 {
        self.durable = self.durable.max(ticket);
        self.durable
    }

    /// Every open ticket has failed.
    pub fn void(&mut self) {
        self.dirty = false;
        self.current += 1;
        self.durable = self.current - 1;
    }
}

/// A message that waits for its ticket, or behind one that does.
#[derive(Debug)]
struct Waiting {
    ticket: u64,
    /// Void when its ticket fails; what only waited behind is sent all the same.
    durable: bool,
    msg: Msg,
}

/// The replies that wait on one connection.
#[derive(Debug, Default)]
pub struct HeldReplies(VecDeque<Waiting>);

impl HeldReplies {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Puts a message behind what waits; gives it back where nothing does: it may be sent.
    pub fn behind(&mut self, msg: Msg) -> Option<Msg> {
        let Some(ticket) = self.0.back().map(|w| w.ticket) else { return Some(msg) };
        self.0.push_back(Waiting { ticket, durable: false, msg });
        None
    }

    /// Keeps a message until `ticket` is durable.
    pub fn hold(&mut self, ticket: u64, msg: Msg) {
        self.0.push_back(Waiting { ticket, durable: true, msg });
    }

    /// The next message that `durable` lets go.
    pub fn next(&mut self, durable: u64) -> Option<Msg> {
        self.0.front().filter(|w| w.ticket <= durable)?;
        self.0.pop_front().map(|w| w.msg)
    }

    /// The messages to send when the tickets fail: commands get an error, messages that only waited
    /// behind others leave unchanged, the rest is dropped.
    pub fn void(&mut self) -> impl Iterator<Item = Msg> + use<> {
        std::mem::take(&mut self.0).into_iter().filter_map(|w| match (w.durable, w.msg) {
            (false, msg) => Some(msg),
            (true, Msg::Client(_)) => Some(Msg::Refused(Refusal::new(err::LOG_FULL))),
            (true, _) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tickets_cover_what_was_appended_before() {
        let mut t = Tickets::default();
        assert_eq!((t.due(), t.seal()), (None, None));
        t.touch();
        assert_eq!(t.due(), Some(1));
        assert_eq!((t.seal(), t.seal()), (Some(1), None));
        // No record was appended since, but the first is still under way.
        assert_eq!(t.due(), Some(1));
        t.touch();
        assert_eq!(t.due(), Some(2));
        t.release(1);
        assert_eq!((t.due(), t.seal()), (Some(2), Some(2)));
        t.release(2);
        assert_eq!(t.due(), None);
    }

    #[test]
    fn a_failure_voids_every_open_ticket() {
        let mut t = Tickets::default();
        t.touch();
        t.seal();
        t.touch();
        t.void();
        assert_eq!((t.due(), t.seal()), (None, None));
        t.touch();
        assert_eq!((t.due(), t.seal()), (Some(3), Some(3)));
        // A late report of an older one changes nothing.
        t.release(1);
        assert_eq!(t.due(), Some(3));
    }
}
