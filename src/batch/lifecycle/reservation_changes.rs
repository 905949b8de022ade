//! brsvmod: the time, the hosts, the users and the other properties of an advance reservation are
//! changed, and occurrences of a recurring one disabled (brsvmod(1)). A change is whole or not at
//! all. Policies of lsb.resources are asked where the time changes or hosts are added.

use crate::batch::lifecycle::reserved_slots::ReservedHosts;
use crate::batch::site::permissions::{Action, Caller};
use crate::batch::state::names::HostId;
use crate::batch::step::Checked;
use crate::batch::{Mbatchd, StepContext};
use crate::lang::occurrences::Occurrences;
use crate::model::event::Event;
use crate::model::reason::err;
use crate::model::reservation::{Reservation, ReservationKind, ReservationTime};
use crate::proto::Refusal;
use crate::proto::reservation::{ChosenHosts, NewInstant, ReservationChange};

/// Disabled spans of one reservation.
pub const MAX_DISABLED: usize = 100;

impl Mbatchd {
    pub(crate) fn change_reservation(
        &mut self,
        context: &mut StepContext,
        who: &Caller,
        id: &str,
        change: ReservationChange,
    ) -> Checked<String> {
        let before = self.own_reservation(who, id)?;
        let mut r = before.clone();
        let by_admin = self.site.check(who, Action::Reserve, "", "").is_ok();
        self.change_properties(&mut r, &change)?;
        self.change_time(&mut r, &change, context.now.secs())?;
        if r.time != before.time && !by_admin {
            let hosts = r.hosts.iter().filter_map(|(host, _)| self.site.host_id(host));
            let hosts: Vec<HostId> = hosts.collect();
            let permitted = self.permitted((&who.user, who.gid), &r.time, &hosts)?;
            if permitted.len() < hosts.len() {
                return Err(Refusal::new(err::RSV_POLICY_HOST));
            }
        }
        if let Some(asked) = &change.add_hosts {
            let who = (!by_admin).then_some((who.user.as_str(), who.gid));
            self.add_hosts(&mut r, asked, who)?;
        }
        if let Some(asked) = &change.remove_hosts {
            self.remove_hosts(&mut r, asked)?;
        }
        self.disable(&mut r, &change)?;
        if r != before {
            self.emit(context, Event::Reservation(Box::new(r)));
        }
        Ok(id.to_string())
    }

    fn change_properties(&self, r: &mut Reservation, change: &ReservationChange) -> Checked<()> {
        if let Some((kind, users)) = &change.users {
            if r.kind == ReservationKind::System || *kind == ReservationKind::System {
                return Err(Refusal::text(err::BAD_ARG, "A system reservation has no users"));
            }
            (r.kind, r.users) = (*kind, users.clone());
        }
        let more = change.add_users.iter().filter(|user| !r.users.contains(user));
        let more: Vec<String> = more.cloned().collect();
        if r.kind == ReservationKind::System && !more.is_empty() {
            return Err(Refusal::text(err::BAD_ARG, "A system reservation has no users"));
        }
        r.users.extend(more);
        for user in &change.remove_users {
            if !r.users.contains(user) {
                return Err(Refusal::about(err::UNKNOWN_USER, user));
            }
            r.users.retain(|known| known != user);
        }
        r.open = change.open.unwrap_or(r.open);
        r.no_suspension = change.no_suspension.unwrap_or(r.no_suspension);
        if let Some(queues) = &change.queues {
            r.queues = queues.clone();
        }
        if let Some(description) = &change.description {
            r.description = description.clone();
        }
        if let Some(scripts) = &change.scripts {
            r.scripts = scripts.clone();
        }
        self.check_reservation(r)
    }

    fn change_time(
        &self,
        r: &mut Reservation,
        change: &ReservationChange,
        now: i64,
    ) -> Checked<()> {
        let active = self.reservations.closed(&r.id).is_none();
        let time = match (&r.time, &change.window) {
            (_, Some(window)) if change.begin.is_none() && change.end.is_none() => {
                if active {
                    return Err(Refusal::new(err::RSV_HAS_BEGUN));
                }
                r.disabled.clear();
                ReservationTime::Weekly(window.clone())
            }
            (ReservationTime::Once { begin, end }, None) => {
                let new = |was: i64, to: Option<NewInstant>| match to {
                    None => was,
                    Some(NewInstant::At(t)) => t,
                    Some(NewInstant::Shift(minutes)) => {
                        was.saturating_add(minutes.saturating_mul(60))
                    }
                };
                let to = (new(*begin, change.begin), new(*end, change.end));
                if active && to.0 != *begin {
                    return Err(Refusal::new(err::RSV_HAS_BEGUN));
                }
                ReservationTime::Once { begin: to.0, end: to.1 }
            }
            (ReservationTime::Weekly(_), None) => {
                if change.begin.is_some() || change.end.is_some() {
                    let text = "A recurring reservation has a time window (-t)";
                    return Err(Refusal::text(err::BAD_TIME, text));
                }
                return Ok(());
            }
            _ => {
                let text = "A reservation has a begin and an end, or a time window";
                return Err(Refusal::text(err::BAD_TIME, text));
            }
        };
        if time == r.time {
            return Ok(());
        }
        // one that is active goes on from its begin
        let from = match &time {
            ReservationTime::Once { begin, end } if active && *end > now => *begin,
            _ => now,
        };
        let when = self.check_time(&time, from)?;
        if !self.fits_in(r, &when) {
            return Err(Refusal::new(err::RSV_TIME));
        }
        r.time = time;
        Ok(())
    }

    fn add_hosts(
        &self,
        r: &mut Reservation,
        asked: &ChosenHosts,
        who: Option<(&str, u32)>,
    ) -> Checked<()> {
        let mut hosts = self.chosen(asked)?;
        if let Some(who) = who {
            hosts = self.permitted(who, &r.time, &hosts)?;
        }
        let when = Occurrences::of(r).ok_or_else(|| Refusal::new(err::BAD_TIME))?;
        let more = self.slots_for(r, (&when, asked.units), &hosts)?;
        for (host, slots) in more {
            match r.hosts.iter_mut().find(|of| of.0 == host) {
                Some(of) => of.1 = of.1.saturating_add(slots),
                None => r.hosts.push((host, slots)),
            }
        }
        Ok(())
    }

    fn remove_hosts(&self, r: &mut Reservation, asked: &ChosenHosts) -> Checked<()> {
        let mut left: ReservedHosts = r.hosts.clone();
        let chosen = self.chosen(asked)?;
        let names: Vec<String> =
            chosen.iter().map(|host| self.links.hosts()[*host].name.clone()).collect();
        if !asked.hosts.is_empty()
            && let Some(name) = names.iter().find(|name| !left.iter().any(|of| of.0 == **name))
        {
            return Err(Refusal::about(err::RSV_NOT_ITS_HOST, name));
        }
        let mut units = if asked.units == 0 { u64::MAX } else { asked.units.into() };
        // slots leave from the host named last first
        for (host, id) in names.iter().zip(&chosen).rev() {
            let Some(of) = left.iter_mut().find(|of| of.0 == *host) else { continue };
            let free = u64::from(of.1).saturating_sub(self.reservations.used(&r.id, *id));
            let want = if r.by_host { of.1.into() } else { units.min(of.1.into()) };
            if want > free {
                return Err(Refusal::about(err::RSV_HOST_USED, host));
            }
            if units == 0 {
                break;
            }
            of.1 -= u32::try_from(want).unwrap_or(of.1);
            units -= if r.by_host { 1 } else { want };
        }
        if asked.units > 0 && units > 0 {
            return Err(Refusal::new(err::FEWER_RESERVABLE));
        }
        left.retain(|of| of.1 > 0);
        if left.is_empty() {
            return Err(Refusal::new(err::RSV_EMPTY));
        }
        r.hosts = left;
        Ok(())
    }

    fn disable(&self, r: &mut Reservation, change: &ReservationChange) -> Checked<()> {
        if change.disable.is_empty() && !change.enable {
            return Ok(());
        }
        if !matches!(r.time, ReservationTime::Weekly(_)) {
            return Err(Refusal::new(err::RSV_NOT_RECURRING));
        }
        if change.enable {
            r.disabled.clear();
        }
        let [period, _] = self.reservations.periods(&r.id);
        for (from, to) in &change.disable {
            if to <= from {
                return Err(Refusal::new(err::RSV_DATES));
            }
            if period.is_some_and(|period| (*from..*to).contains(&period.begin)) {
                return Err(Refusal::new(err::RSV_DISABLE_ACTIVE));
            }
            r.disabled.push((*from, *to));
        }
        if r.disabled.len() > MAX_DISABLED {
            let text = format!("A reservation has {MAX_DISABLED} disabled spans at most");
            return Err(Refusal::text(err::BAD_ARG, text));
        }
        // another reservation may have taken the slots meanwhile
        let when = Occurrences::of(r).ok_or_else(|| Refusal::new(err::BAD_TIME))?;
        match change.enable && !self.fits_in(r, &when) {
            true => Err(Refusal::new(err::RSV_TIME)),
            false => Ok(()),
        }
    }
}
