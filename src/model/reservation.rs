//! Advance reservations: slots of hosts that are kept for users, or from everybody, from one
//! instant to another or week by week (brsvadd(1), brsvs(1)).

use serde::{Deserialize, Serialize};

/// Longest name of a reservation (brsvadd -N), bytes.
pub const MAX_NAME: usize = 39;

/// The time of a reservation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReservationTime {
    /// From one instant until another, seconds since the epoch; the end is not included.
    Once { begin: i64, end: i64 },
    /// A window of civil time in the master's zone, which comes again each day or week.
    Weekly(String),
}

impl Default for ReservationTime {
    fn default() -> Self {
        ReservationTime::Once { begin: 0, end: 0 }
    }
}

/// Whom a reservation is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReservationKind {
    /// Users, or users and groups (-u).
    #[default]
    User,
    /// User groups (-g).
    Group,
    /// Nobody: no job is started on its hosts (-s).
    System,
}

impl ReservationKind {
    /// The word of the column TYPE of brsvs.
    pub fn word(self) -> &'static str {
        match self {
            ReservationKind::User => "user",
            ReservationKind::Group => "group",
            ReservationKind::System => "sys",
        }
    }
}

/// The scripts before and after a reservation, which are kept and shown; nothing runs them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReservationScripts {
    /// -E, and -Et in minutes before the begin.
    pub pre: String,
    pub pre_minutes: u32,
    /// -Ep, and -Ept in minutes before the end.
    pub post: String,
    pub post_minutes: u32,
}

/// An advance reservation as the log keeps it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reservation {
    pub id: String,
    /// Seconds since the epoch.
    pub created: i64,
    pub creator: String,
    pub creator_uid: u32,
    pub kind: ReservationKind,
    /// Users and user groups whose jobs may use it; none of a system reservation.
    pub users: Vec<String>,
    /// Hosts with the slots that are reserved on each.
    pub hosts: Vec<(String, u32)>,
    pub time: ReservationTime,
    /// The jobs of the reservation go on after its end (-o).
    pub open: bool,
    /// Whole hosts are reserved (-unit host).
    pub by_host: bool,
    /// Jobs of others are not suspended for its jobs (-nosusp).
    pub no_suspension: bool,
    /// Queues whose jobs may run into it (-q).
    pub queues: Vec<String>,
    pub description: String,
    pub scripts: ReservationScripts,
    /// Spans, seconds since the epoch, in which a recurring one does not begin; the second instant
    /// is not included.
    pub disabled: Vec<(i64, i64)>,
}

impl Reservation {
    /// The slots that are reserved on all its hosts.
    pub fn slots(&self) -> u64 {
        self.hosts.iter().map(|(_, slots)| u64::from(*slots)).sum()
    }

    /// The name that IDs of its kind begin with, where it has no name of its own.
    pub fn owner(&self) -> &str {
        match self.kind {
            ReservationKind::System => "system",
            _ => self.users.first().map_or("", String::as_str),
        }
    }
}

/// EVENT_ADRSV_FINISH, a record of lsb.acct: a period of a reservation is over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReservationFinish {
    /// When it was recorded, seconds since the epoch.
    pub time: i64,
    pub reservation: Reservation,
    /// The seconds that the period lasted.
    pub duration: i64,
}

/// May a reservation have this name (-N)? It has letters, digits, `_` and `-`, a letter first.
pub fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    text.len() <= MAX_NAME
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_reservations_begin_with_a_letter_and_are_plain() {
        assert!(is_name("Night_run-2") && is_name(&"a".repeat(MAX_NAME)));
        for bad in ["", "1a", "_a", "a b", "a#0", "ä", &"a".repeat(MAX_NAME + 1)] {
            assert!(!is_name(bad), "{bad}");
        }
    }
}
