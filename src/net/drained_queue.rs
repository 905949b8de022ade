//! Connections whose output has room again, and when each is told to the machine
//! (`Input::Drained`). The machine then sends a piece of something long (a slice of a listing):
//! such work gets a share of the time while others say something, and all of it while nobody does.
//! The first to ask is served first, so that in a storm some have all they asked for while the
//! others wait, but nobody waits for long without a piece: a client that hears nothing gives up.

use super::limits::{ROOM_PAUSE, ROOM_QUIET_US, ROOM_WAIT_US};
use crate::proto::machine::ConnId;
use std::collections::HashMap;

/// A connection whose output has room.
#[derive(Debug)]
struct Waiting {
    conn: ConnId,
    /// When it asked, among the others.
    turn: u64,
    /// Since when its output has room.
    since: u64,
}

/// Connections whose output has room.
#[derive(Debug, Default)]
pub struct DrainedQueue {
    /// The waiting connections in the order in which they came, each at most once.
    queue: Vec<Waiting>,
    /// The turns of connections that were served since they last said something.
    turns: HashMap<ConnId, u64>,
    next_turn: u64,
    /// The instant before which no connection is served while there is other work.
    not_before: u64,
    /// The connection that last sent something, and when.
    heard: (ConnId, u64),
}

impl DrainedQueue {
    pub fn push(&mut self, conn: ConnId, now: u64) {
        let turn = *self.turns.entry(conn).or_insert(self.next_turn);
        self.next_turn = self.next_turn.max(turn + 1);
        self.queue.push(Waiting { conn, turn, since: now });
    }

    /// A connection sent a message: its next request is a new one.
    pub fn heard(&mut self, conn: ConnId, now: u64) {
        self.turns.remove(&conn);
        self.heard = (conn, now);
    }

    /// When a connection last said something.
    pub fn heard_at(&self) -> u64 {
        self.heard.1
    }

    /// A connection is gone.
    pub fn close(&mut self, conn: ConnId) {
        self.turns.remove(&conn);
        self.queue.retain(|w| w.conn != conn);
    }

    /// The instant at which the next connection is served.
    pub fn deadline(&self) -> Option<u64> {
        if self.queue.is_empty() {
            return None;
        }
        let (conn, at) = self.heard;
        // what one says before it is listed to is no other work
        let own = self.queue.iter().any(|w| w.conn == conn);
        let quiet = if own { 0 } else { at + ROOM_QUIET_US };
        Some(self.not_before.min(quiet))
    }

    /// The connection to inform now.
    pub fn take(&mut self, now: u64) -> Option<ConnId> {
        self.deadline().filter(|at| *at <= now)?;
        let waits = |w: &Waiting| now.saturating_sub(w.since) >= ROOM_WAIT_US;
        let next = match self.queue.first().is_some_and(waits) {
            true => 0,
            false => (0..self.queue.len()).min_by_key(|i| self.queue[*i].turn)?,
        };
        Some(self.queue.remove(next).conn)
    }

    /// The duration of serving a connection.
    pub fn took(&mut self, now: u64, us: u64) {
        self.not_before = now + us * ROOM_PAUSE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listings_get_a_share_beside_other_work() {
        let mut queue = DrainedQueue::default();
        assert_eq!(queue.deadline(), None);
        queue.heard(7, 1_000);
        queue.push(7, 1_000);
        // alone: at once, again and again
        assert_eq!(queue.take(1_000), Some(7));
        queue.took(1_400, 400);
        queue.push(7, 0);
        assert_eq!(queue.take(1_401), Some(7));
        // another speaks: after a pause as long as the share says, or once it is silent
        queue.push(7, 0);
        queue.heard(8, 1_500);
        queue.took(1_800, 400);
        assert_eq!(queue.deadline(), Some(1_800 + 400 * ROOM_PAUSE));
        assert_eq!(queue.take(1_801), None);
        assert_eq!(queue.take(1_800 + 400 * ROOM_PAUSE), Some(7));
        queue.push(7, 0);
        queue.heard(8, 5_000);
        queue.took(5_000, 1_000_000);
        assert_eq!(queue.take(5_000 + ROOM_QUIET_US), Some(7));
    }

    #[test]
    fn connections_are_served_in_order_and_none_waits_long() {
        let mut queue = DrainedQueue::default();
        let serve = |queue: &mut DrainedQueue, now: u64| {
            let conn = queue.take(now);
            queue.took(now, 0);
            conn
        };
        for conn in [5, 3, 9] {
            queue.heard(conn, 0);
            queue.push(conn, 0);
        }
        for at in 1..100 {
            assert_eq!(serve(&mut queue, at), Some(5), "until it has all it asked for");
            queue.push(5, at);
        }
        // the others have heard nothing for long
        let late = ROOM_WAIT_US;
        assert_eq!(serve(&mut queue, late), Some(3));
        queue.push(3, late);
        assert_eq!(serve(&mut queue, late), Some(9));
        queue.push(9, late);
        assert_eq!(serve(&mut queue, late), Some(5));
        // it asks once more, behind those
        queue.heard(5, late);
        queue.push(5, late);
        assert_eq!(serve(&mut queue, late), Some(3));
        queue.close(9);
        assert_eq!(serve(&mut queue, late), Some(5));
        assert_eq!(queue.deadline(), None);
        assert!(queue.turns.len() == 2 && queue.queue.is_empty());
    }
}
