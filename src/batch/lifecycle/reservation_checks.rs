//! The checks of requests about advance reservations: who may change one, whom it is for, its time,
//! its texts; and who may submit jobs to it (bsub -U).

use crate::batch::Mbatchd;
use crate::batch::site::permissions::{Action, Caller};
use crate::batch::step::Checked;
use crate::lang::occurrences::Occurrences;
use crate::lang::window::{PERIOD, Windows};
use crate::model::reason::err;
use crate::model::reservation::{
    Reservation, ReservationKind, ReservationScripts, ReservationTime,
};
use crate::proto::Refusal;

/// Users and groups of one reservation.
pub const MAX_USERS: usize = 1000;
/// Seconds of the shortest reservation.
pub(crate) const LEAST_SECS: i64 = PERIOD as i64 * 60;

impl Mbatchd {
    /// Users, queues and texts of a reservation.
    pub(crate) fn check_reservation(&self, r: &Reservation) -> Checked<()> {
        if (r.kind == ReservationKind::System) != r.users.is_empty() {
            return Err(Refusal::text(err::BAD_ARG, "Users of the reservation are missing"));
        }
        if r.users.len() > MAX_USERS {
            let text = format!("A reservation has {MAX_USERS} users and groups at most");
            return Err(Refusal::text(err::BAD_ARG, text));
        }
        let ReservationScripts { pre, post, .. } = &r.scripts;
        let texts = r.users.iter().chain([&r.description, pre, post]);
        if let Some(text) = texts.into_iter().find(|text| text.chars().any(char::is_control)) {
            let text = text.chars().filter(|c| !c.is_control()).collect::<String>();
            return Err(Refusal::text(err::BAD_ARG, format!("<{text}> is not plain text")));
        }
        let bad = |name: &&String| name.is_empty() || name.chars().any(char::is_whitespace);
        if let Some(name) = r.users.iter().find(bad) {
            return Err(Refusal::about(err::UNKNOWN_USER, name));
        }
        let groups = &self.site.conf.batch.users.groups;
        let no_group = |name: &&String| !groups.iter().any(|g| g.name == **name);
        if r.kind == ReservationKind::Group
            && let Some(name) = r.users.iter().find(no_group)
        {
            return Err(Refusal::about(err::BAD_USER_GROUP, name));
        }
        match r.queues.iter().find(|queue| self.site.find_queue(queue).is_none()) {
            Some(queue) => Err(Refusal::about(err::BAD_QUEUE, queue)),
            None => Ok(()),
        }
    }

    /// The time of a reservation that is to begin now or later.
    pub(crate) fn check_time(&self, time: &ReservationTime, now: i64) -> Checked<Occurrences> {
        let bad = |text: &str| Refusal::text(err::BAD_TIME, text.to_string());
        let short = || bad("An advance reservation lasts ten minutes at least");
        match time {
            ReservationTime::Once { begin, end } => {
                if end <= begin {
                    return Err(bad("The end of the reservation is not after its begin"));
                }
                // a time is a minute
                if *begin < now - now.rem_euclid(60) {
                    return Err(bad("The begin of the reservation is in the past"));
                }
                if end - begin < LEAST_SECS {
                    return Err(short());
                }
            }
            ReservationTime::Weekly(text) => {
                let windows = Windows::parse(text)
                    .map_err(|e| Refusal::text(err::BAD_TIME, e.to_string()))?;
                if text.split_whitespace().count() != 1 {
                    return Err(bad("A reservation has one time window"));
                }
                let Some(change) = windows.until_change(0, 0) else {
                    return Err(bad("The time window never closes"));
                };
                // its length: from the edge at which it opens to the next one
                let at = |minute: u16| ((minute / 1440 % 7) as u8, minute % 1440);
                let opens = match windows.contains(at(change).0, at(change).1) {
                    true => change,
                    false => {
                        let next = windows.until_change(at(change).0, at(change).1);
                        (change + next.unwrap_or(0)) % (7 * 1440)
                    }
                };
                let length = windows.until_change(at(opens).0, at(opens).1).unwrap_or(0);
                if length < PERIOD {
                    return Err(short());
                }
            }
        }
        let r = Reservation { time: time.clone(), ..Reservation::default() };
        Occurrences::of(&r).ok_or_else(|| bad("The time window never closes"))
    }

    /// A reservation that the caller may change.
    pub(crate) fn own_reservation(&self, who: &Caller, id: &str) -> Checked<Reservation> {
        let r = self.state.reservations().get(id);
        let r = r.ok_or_else(|| Refusal::about(err::NO_RSVID, id))?;
        self.site.check(who, Action::ChangeReservation, &r.creator, "")?;
        Ok(Reservation::clone(r))
    }

    /// May the jobs of a user have an advance reservation (bsub -U)?
    pub(crate) fn check_reserved(&self, id: &str, who: &Caller) -> Checked<()> {
        if id.is_empty() {
            return Ok(());
        }
        let Some(r) = self.state.reservations().get(id) else {
            return Err(Refusal::about(err::NO_RSVID, id));
        };
        let in_group = |name: &String| self.site.in_group(&who.user, name);
        let unix = || self.site.conf.unix.of(&who.user, Some(who.gid));
        let named = r.users.iter().any(|name| *name == who.user || in_group(name))
            || r.users.iter().any(|name| unix().contains(name));
        match named && r.kind != ReservationKind::System {
            true => Ok(()),
            false => Err(Refusal::about(err::BAD_RSVID, id)),
        }
    }
}
