//! The slots that a reservation gets: those of its hosts that no other one has in its time.

use crate::batch::Mbatchd;
use crate::batch::state::names::HostId;
use crate::batch::step::Checked;
use crate::lang::occurrences::Occurrences;
use crate::lang::resreq::SelectContext;
use crate::lang::window::Windows;
use crate::model::reason::err;
use crate::model::reservation::{Reservation, ReservationKind, ReservationTime};
use crate::proto::Refusal;
use crate::proto::reservation::ChosenHosts;
use std::collections::BTreeSet;

/// Hosts and their slots, in the order in which they are used.
pub(crate) type ReservedHosts = Vec<(String, u32)>;

impl Mbatchd {
    /// Slots of a host that are reserved in a time, without those of one reservation.
    pub(crate) fn reserved_in(&self, time: &Occurrences, host: &str, without: &str) -> u64 {
        let zone = self.windows.zone();
        let others = self.state.reservations().each().filter(|other| other.id != without);
        let here = others.filter_map(|other| {
            let slots: u64 =
                other.hosts.iter().filter(|of| of.0 == host).map(|of| u64::from(of.1)).sum();
            let when = Occurrences::of(other).filter(|when| slots > 0 && when.meets(time, zone))?;
            Some((when, slots))
        });
        let here: Vec<(Occurrences, u64)> = here.collect();
        // those that meet in one period are found with each of them
        let with = |one: &Occurrences| -> u64 {
            here.iter().filter(|other| other.0.meets(one, zone)).map(|other| other.1).sum()
        };
        here.iter().map(|(one, _)| with(one)).max().unwrap_or(0)
    }

    /// The hosts that -m and -R choose, in the order of -m.
    pub(crate) fn chosen(&self, asked: &ChosenHosts) -> Checked<Vec<HostId>> {
        let mut hosts: Vec<HostId> = Vec::new();
        let mut known = BTreeSet::new();
        for word in &asked.hosts {
            let some = self.site.expand_servers(word);
            if some.is_empty() {
                return Err(Refusal::about(err::BAD_HOST, word));
            }
            hosts.extend(some.into_iter().filter(|host| known.insert(*host)));
        }
        if asked.hosts.is_empty() {
            hosts = self.links.hosts().ids().collect();
        }
        if !asked.res_req.is_empty() {
            let req = self.site.names.parse(&asked.res_req);
            let req = req.map_err(|_| Refusal::about(err::BAD_RESREQ, &asked.res_req))?;
            let view = self.view();
            let selects = |host: &HostId| {
                view.hosts.contains(*host)
                    && req.first().is_none_or(|simple| {
                        simple.selects(&view.snapshot(*host), &SelectContext::default())
                    })
            };
            hosts.retain(selects);
        }
        if asked.idle_first {
            let started = |host: &HostId| {
                self.state.counts().host(*host).map_or(0, |here| here.slots.started())
            };
            hosts.sort_by_key(started);
        }
        match hosts.is_empty() {
            true => Err(Refusal::new(err::RSV_NO_HOST)),
            false => Ok(hosts),
        }
    }

    /// Slots for a reservation on these hosts, as many as are asked for; 0: all that are free.
    pub(crate) fn slots_for(
        &self,
        r: &Reservation,
        (time, units): (&Occurrences, u32),
        hosts: &[HostId],
    ) -> Checked<ReservedHosts> {
        let whole = r.by_host || r.kind == ReservationKind::System;
        let mut left = if units == 0 { u64::MAX } else { units.into() };
        let mut found = ReservedHosts::new();
        for host in hosts.iter().filter(|host| self.links.hosts().contains(**host)) {
            if left == 0 {
                break;
            }
            let name = &self.links.hosts()[*host].name;
            let own: u64 =
                r.hosts.iter().filter(|of| of.0 == *name).map(|of| u64::from(of.1)).sum();
            let max = self.view().reservable(*host);
            let free = max.saturating_sub(self.reserved_in(time, name, &r.id)).saturating_sub(own);
            let slots = match whole {
                true if free < max || max == 0 => continue,
                true => max,
                false => free.min(left),
            };
            if slots > 0 {
                left -= if whole && units > 0 { 1 } else { slots.min(left) };
                found.push((name.clone(), u32::try_from(slots).unwrap_or(u32::MAX)));
            }
        }
        let lacking = units > 0 && left > 0;
        match found.is_empty() {
            // a system reservation is of all hosts that are named
            _ if r.kind == ReservationKind::System && found.len() < hosts.len() => {
                Err(Refusal::new(err::RSV_HOST_NOT_FREE))
            }
            true => Err(Refusal::new(err::RSV_HOST_NOT_FREE)),
            false if lacking => Err(Refusal::new(err::FEWER_RESERVABLE)),
            false => Ok(found),
        }
    }

    /// Are the slots of a reservation free in another time?
    pub(crate) fn fits_in(&self, r: &Reservation, time: &Occurrences) -> bool {
        r.hosts.iter().all(|(host, slots)| {
            let max = self.site.host_id(host).map_or(0, |id| self.view().reservable(id));
            let free = max.saturating_sub(self.reserved_in(time, host, &r.id));
            u64::from(*slots) <= free
        })
    }

    /// The hosts among these on which the policies of lsb.resources let a user make a reservation
    /// in a time, or the refusal that tells most.
    pub(crate) fn permitted(
        &self,
        (user, gid): (&str, u32),
        time: &ReservationTime,
        hosts: &[HostId],
    ) -> Checked<Vec<HostId>> {
        let policies = &self.site.conf.batch.resources.reservations;
        let of_user = |p: &&crate::conf::types::ReservationPolicy| {
            p.users.is_empty() || self.site.user_in(&p.users, user, Some(gid))
        };
        let own: Vec<_> = policies.iter().filter(of_user).collect();
        if own.is_empty() {
            return Err(Refusal::new(err::RSV_PERMISSION));
        }
        let zone = self.windows.zone();
        let in_time = |window: &str| {
            let Ok(window) = Windows::parse(window) else { return false };
            match time {
                ReservationTime::Once { begin, end } => {
                    let closes = window.next_change(*begin, zone);
                    window.open_at(*begin, zone) && closes.is_none_or(|t| t >= *end)
                }
                ReservationTime::Weekly(own) => {
                    Windows::parse(own).is_ok_and(|own| own.within(&window))
                }
            }
        };
        let own: Vec<_> = own.into_iter().filter(|p| in_time(&p.window)).collect();
        if own.is_empty() {
            return Err(Refusal::new(err::RSV_POLICY_WINDOW));
        }
        let on = |host: &&HostId| {
            let name = &self.links.hosts()[**host].name;
            own.iter().any(|p| p.hosts.is_empty() || self.site.conf.hosts_hold(&p.hosts, name))
        };
        let all: Vec<HostId> = hosts.iter().filter(on).copied().collect();
        match all.is_empty() {
            true => Err(Refusal::new(err::RSV_POLICY_HOST)),
            false => Ok(all),
        }
    }
}
