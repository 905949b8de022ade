//! bacct -U: the periods of advance reservations that are over, as a table behind the jobs.

use super::filter::{AccountingFilter, Reserved};
use lsf::cli::clock::Clock;
use lsf::cli::long_format::clean;
use lsf::log::codec::{RecordError, read_reservation_finish};
use lsf::model::reservation::{ReservationFinish, ReservationKind};
use std::fmt::Write;

/// The periods that are wanted.
#[derive(Default)]
pub struct Periods {
    all: Vec<ReservationFinish>,
}

/// Periods that are kept for the table; further ones are counted alone.
const MOST_LISTED: usize = 100_000;

impl Periods {
    /// Takes a line of lsb.acct that is about no job which is wanted.
    pub fn add(&mut self, filter: &AccountingFilter, line: &[u8]) -> Result<(), RecordError> {
        if filter.reservations == Reserved::Whatever || self.all.len() >= MOST_LISTED {
            return Ok(());
        }
        let found = read_reservation_finish(line)?.filter(|finish| filter.wants_period(finish));
        self.all.extend(found);
        Ok(())
    }

    /// Appends the table, and how long the periods lasted; nothing where there are none.
    pub fn show(&self, out: &mut String, clock: &Clock) {
        if self.all.is_empty() {
            return;
        }
        let _ = writeln!(
            out,
            "{:<11} {:<8} {:<11} {:<11} {:<7} {:<16} TIME_WINDOW",
            "RSVID", "TYPE", "CREATOR", "USER", "NCPUS", "RSV_HOSTS"
        );
        self.all.iter().for_each(|finish| row(out, finish, clock));
        let total = self.all.iter().fold(0i64, |sum, of| sum.saturating_add(of.duration.max(0)));
        let (hours, minutes, seconds) = (total / 3600, total / 60 % 60, total % 60);
        let _ =
            writeln!(out, "Total duration time: {hours} hour {minutes} minute {seconds} second");
    }
}

fn row(out: &mut String, finish: &ReservationFinish, clock: &Clock) {
    let r = &finish.reservation;
    let user = match r.kind {
        ReservationKind::System => "system".to_owned(),
        _ => clean(&r.users.join(" ")),
    };
    let host = |(name, slots): &(String, u32)| format!("{}:{slots}", clean(name));
    let first = r.hosts.first().map_or("-".to_owned(), host);
    let (id, creator) = (clean(&r.id), clean(&r.creator));
    let window = clock.window(&r.time);
    let _ = writeln!(
        out,
        "{id:<11} {:<8} {creator:<11} {user:<11} {:<7} {first:<16} {}",
        r.kind.word(),
        r.slots(),
        clean(&window),
    );
    let before = 11 + 8 + 11 + 11 + 7 + 5;
    for of in r.hosts.iter().skip(1) {
        let _ = writeln!(out, "{:before$}{}", "", host(of));
    }
}
