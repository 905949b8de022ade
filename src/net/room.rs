//! Who is told, and when, that the output of its connection has room again. What the machine then
//! sends is a piece of something long (a slice of a listing): such work gets a share of the time
//! while others say something, and all of it while nobody does.

use super::limits::{ROOM_PAUSE, ROOM_QUIET_US};
use crate::proto::machine::ConnId;
use std::collections::VecDeque;

/// Connections whose output has room, first come first.
#[derive(Debug, Default)]
pub struct Room {
    queue: VecDeque<ConnId>,
    /// Nobody is told before, while there is other work.
    not_before: u64,
    /// Who last said something, and when.
    heard: (ConnId, u64),
}

impl Room {
    pub fn push(&mut self, conn: ConnId) {
        self.queue.push_back(conn);
    }

    /// A connection said something.
    pub fn heard(&mut self, conn: ConnId, now: u64) {
        self.heard = (conn, now);
    }

    /// The instant at which the next is told.
    pub fn deadline(&self) -> Option<u64> {
        let first = self.queue.front()?;
        let (conn, at) = self.heard;
        // what one says before it is listed to is no other work
        let quiet = if conn == *first { 0 } else { at + ROOM_QUIET_US };
        Some(self.not_before.min(quiet))
    }

    /// Who is to be told now.
    pub fn take(&mut self, now: u64) -> Option<ConnId> {
        self.deadline().filter(|at| *at <= now)?;
        self.queue.pop_front()
    }

    /// Telling it took so long.
    pub fn took(&mut self, now: u64, us: u64) {
        self.not_before = now + us * ROOM_PAUSE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listings_get_a_share_beside_other_work() {
        let mut room = Room::default();
        assert_eq!(room.deadline(), None);
        room.push(7);
        room.heard(7, 1_000);
        // alone: at once, again and again
        assert_eq!(room.take(1_000), Some(7));
        room.took(1_400, 400);
        room.push(7);
        assert_eq!(room.take(1_401), Some(7));
        // another speaks: after a pause as long as the share says, or once it is silent
        room.push(7);
        room.heard(8, 1_500);
        room.took(1_800, 400);
        assert_eq!(room.deadline(), Some(1_800 + 400 * ROOM_PAUSE));
        assert_eq!(room.take(1_801), None);
        assert_eq!(room.take(1_800 + 400 * ROOM_PAUSE), Some(7));
        room.push(7);
        room.heard(8, 5_000);
        room.took(5_000, 1_000_000);
        assert_eq!(room.take(5_000 + ROOM_QUIET_US), Some(7));
    }
}
