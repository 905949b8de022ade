//! brsvadd, brsvdel and brsvsub, and the way of all requests about advance reservations
//! (brsvadd(1)). Administrators make reservations, and those whom a section ResourceReservation of
//! lsb.resources permits it; a reservation is deleted by its creator or an administrator.
//!
//! A reservation lasts ten minutes at least. Jobs of one that is deleted go on, and wait, as jobs
//! whose reservation is gone.

use crate::batch::lifecycle::reservation_checks::{LEAST_SECS, MAX_USERS};
use crate::batch::site::permissions::{Action, Caller};
use crate::batch::step::Checked;
use crate::batch::{Mbatchd, StepContext};
use crate::lang::occurrences::{Occurrences, Period};
use crate::model::event::Event;
use crate::model::reason::err;
use crate::model::reservation::{Reservation, ReservationKind, ReservationTime, is_name};
use crate::proto::Refusal;
use crate::proto::client::{AdminLine, ClientMsg};
use crate::proto::machine::ConnId;
use crate::proto::reservation::{ChosenHosts, NewReservation, ReservationRequest};

/// Reservations in the cluster.
pub const MAX_RESERVATIONS: usize = 10_000;
/// Seconds ahead that brsvsub looks for a time.
const MOST_AHEAD: i64 = 30 * 24 * 3600;

impl Mbatchd {
    pub(crate) fn reservation_request(
        &mut self,
        context: &mut StepContext,
        conn: ConnId,
        who: &Caller,
        request: ReservationRequest,
    ) {
        let did = match request {
            ReservationRequest::List { ids } => self
                .reservation_rows(&ids)
                .map(|rows| context.reply(conn, ClientMsg::Reservations(rows))),
            ReservationRequest::Policies { names } => self
                .reservation_policies(&names)
                .map(|rows| context.reply(conn, ClientMsg::ReservationPolicies(rows))),
            change => self.log_works().and_then(|()| {
                let ids = match change {
                    ReservationRequest::Add(new) => vec![self.add_reservation(context, who, *new)?],
                    ReservationRequest::Modify { id, change } => {
                        vec![self.change_reservation(context, who, &id, *change)?]
                    }
                    ReservationRequest::Delete { ids } => {
                        let lines = self.delete_reservations(context, who, &ids)?;
                        context.reply_durable(conn, ClientMsg::AdminDone { lines });
                        return Ok(());
                    }
                    _ => Vec::new(),
                };
                let line = |about| AdminLine { about, code: 0, text: String::new() };
                let lines = ids.into_iter().map(line).collect();
                context.reply_durable(conn, ClientMsg::AdminDone { lines });
                Ok(())
            }),
        };
        if let Err(refusal) = did {
            context.refuse(conn, refusal);
        }
    }

    fn add_reservation(
        &mut self,
        context: &mut StepContext,
        who: &Caller,
        new: NewReservation,
    ) -> Checked<String> {
        let now = context.now.secs();
        let by_admin = self.site.check(who, Action::Reserve, "", "").is_ok();
        let policies = &self.site.conf.batch.resources.reservations;
        if !by_admin && policies.is_empty() {
            return Err(Refusal::new(err::PERMISSION));
        }
        let mut r = Reservation {
            id: String::new(),
            created: now,
            creator: who.user.clone(),
            creator_uid: who.uid,
            kind: new.kind,
            users: new.users,
            hosts: Vec::new(),
            time: new.time,
            open: new.open,
            by_host: new.by_host,
            no_suspension: new.no_suspension,
            queues: new.queues,
            description: new.description,
            scripts: new.scripts,
            disabled: Vec::new(),
        };
        self.check_reservation(&r)?;
        let is_system = r.kind == ReservationKind::System;
        if is_system && new.units > 0 {
            return Err(Refusal::new(err::RSV_SYSTEM_UNITS));
        }
        if !is_system && new.units == 0 {
            return Err(Refusal::text(err::BAD_ARG, "The number of slots or hosts is missing"));
        }
        if new.hosts.is_empty() && new.res_req.is_empty() && new.minutes == 0 {
            return Err(Refusal::new(err::RSV_NO_HOST));
        }
        r.id = self.new_reservation_id(&r, &new.name)?;
        let asked = ChosenHosts {
            units: new.units,
            hosts: new.hosts,
            res_req: new.res_req,
            idle_first: new.idle_first,
        };
        let mut hosts = self.chosen(&asked)?;
        if new.minutes > 0 {
            r.time = self.first_time(&r, new.minutes, (new.units, &hosts), now)?;
        }
        let when = self.check_time(&r.time, now)?;
        if !by_admin {
            hosts = self.permitted((&who.user, who.gid), &r.time, &hosts)?;
        }
        r.hosts = self.slots_for(&r, (&when, new.units), &hosts)?;
        let id = r.id.clone();
        self.emit(context, Event::Reservation(Box::new(r)));
        Ok(id)
    }

    /// The ID of a new reservation: its name, or the next number of its owner.
    fn new_reservation_id(&self, r: &Reservation, name: &str) -> Checked<String> {
        let all = self.state.reservations();
        if all.len() >= MAX_RESERVATIONS {
            let text = format!("The cluster has {MAX_RESERVATIONS} advance reservations");
            return Err(Refusal::text(err::OVER_LIMIT, text));
        }
        let most = self.site.params().advrsv_user_limit as usize;
        for owner in r.users.iter().take(MAX_USERS) {
            let has = all.each().filter(|of| of.users.contains(owner)).count();
            if has >= most {
                let text = format!("{owner} has {most} advance reservations, the most of a user");
                return Err(Refusal::text(err::OVER_LIMIT, text));
            }
        }
        match name {
            "" => Ok(all.next_id(r.owner())),
            name if !is_name(name) => Err(Refusal::about(err::RSV_NAME, name)),
            name if all.get(name).is_some() => Err(Refusal::about(err::RSV_NAME_TAKEN, name)),
            name => Ok(name.to_string()),
        }
    }

    /// brsvsub -D: the first time of so many minutes in which the slots are reserved for nobody.
    /// Jobs that run by then are suspended as for any reservation.
    fn first_time(
        &self,
        r: &Reservation,
        minutes: u32,
        (units, hosts): (u32, &[crate::batch::state::names::HostId]),
        now: i64,
    ) -> Checked<ReservationTime> {
        let length = i64::from(minutes).saturating_mul(60);
        let zone = self.windows.zone();
        let from = now - now.rem_euclid(60);
        let mut begins = vec![from];
        for other in self.state.reservations().each() {
            let Some(of) = Occurrences::of(other) else { continue };
            let end = of.at(from, zone).or_else(|| of.next(from, zone)).map(|period| period.end);
            // behind the period of ten minutes in which it ends
            begins.extend(
                end.map(|end| end + (LEAST_SECS - end.rem_euclid(LEAST_SECS)) % LEAST_SECS),
            );
        }
        begins.sort_unstable();
        begins.dedup();
        let mut why = Refusal::new(err::RSV_NO_HOST);
        for begin in begins.into_iter().filter(|begin| begin - from <= MOST_AHEAD) {
            let time = ReservationTime::Once { begin, end: begin.saturating_add(length) };
            let when = self.check_time(&time, now)?;
            match self.slots_for(r, (&when, units), hosts) {
                Ok(_) => return Ok(time),
                Err(refusal) => why = refusal,
            }
        }
        Err(why)
    }

    fn delete_reservations(
        &mut self,
        context: &mut StepContext,
        who: &Caller,
        ids: &[String],
    ) -> Checked<Vec<AdminLine>> {
        let mut lines = Vec::new();
        for id in ids {
            let code = match self.own_reservation(who, id) {
                Err(refusal) if ids.len() == 1 => return Err(refusal),
                Err(refusal) => refusal.code,
                Ok(_) => {
                    if let Some(active) = self.reservations.periods(id)[0] {
                        let end = context.now.secs().clamp(active.begin, active.end);
                        self.account_period(context, id, Period { end, ..active });
                    }
                    let (id, uid, user) = (id.clone(), who.uid, who.user.clone());
                    self.emit(context, Event::ReservationEnd { id, uid, user });
                    0
                }
            };
            lines.push(AdminLine { about: id.clone(), code, text: String::new() });
        }
        Ok(lines)
    }
}
