//! The jobs of lsb.acct that bacct counts.

use lsf::lang::interval::Interval;
use lsf::log::codec::{Brief, Late};
use lsf::model::JobRef;
use lsf::model::reservation::ReservationFinish;
use lsf::proto::client::IdSel;

/// The conditions that a job must meet. An empty list is no condition.
#[derive(Debug, Default)]
pub struct AccountingFilter {
    pub ids: Vec<IdSel>,
    pub users: Vec<String>,
    pub queues: Vec<String>,
    pub projects: Vec<String>,
    /// The words of -m as given, and the hosts that they name.
    pub host_words: Vec<String>,
    pub hosts: Vec<String>,
    pub apps: Vec<String>,
    pub slas: Vec<String>,
    pub licenses: Vec<String>,
    pub reservations: Reserved,
    /// The words of -u: with -U also the creators of reservations.
    pub creators: Vec<String>,
    pub exceptions: bool,
    /// -rcacct, -rcalloc: of a kind that no job is of.
    pub none: bool,
    pub done: bool,
    pub exit: bool,
    pub completed: Option<Interval>,
    pub submitted: Option<Interval>,
    pub dispatched: Option<Interval>,
}

/// -U.
#[derive(Debug, Default, PartialEq, Eq)]
pub enum Reserved {
    #[default]
    Whatever,
    /// `all`: in any reservation.
    Any,
    In(Vec<String>),
}

fn among(list: &[String], has: &[u8]) -> bool {
    list.is_empty() || list.iter().any(|w| w.as_bytes() == has)
}

impl AccountingFilter {
    /// The values of the first fields of a line.
    pub fn may_want(&self, b: &Brief<'_>) -> bool {
        let within = |i: &Option<Interval>, time: i64| i.is_none_or(|i| i.holds(time));
        !self.none
            && within(&self.completed, b.end_time)
            && within(&self.submitted, b.submit_time)
            && (self.dispatched.is_none() || b.start_time > 0)
            && within(&self.dispatched, b.start_time)
            && (self.ids.is_empty() || self.ids.iter().any(|i| i.job == b.job))
            && among(&self.users, &b.user)
            && among(&self.queues, &b.queue)
    }

    /// A period of a reservation: by the ID, the creator and the time of its end.
    pub fn wants_period(&self, finish: &ReservationFinish) -> bool {
        let of = match &self.reservations {
            Reserved::Whatever => false,
            Reserved::Any => true,
            Reserved::In(ids) => ids.contains(&finish.reservation.id),
        };
        of && self.completed.is_none_or(|i| i.holds(finish.time))
            && among(&self.creators, finish.reservation.creator.as_bytes())
    }

    /// The rest, of a line that [`AccountingFilter::may_want`] let through.
    pub fn wants(&self, b: &Brief<'_>) -> bool {
        let at = JobRef { job: b.job, idx: b.idx };
        (self.done == self.exit || if b.done { self.done } else { self.exit })
            && (self.ids.is_empty() || self.ids.iter().any(|i| i.has(at)))
            && among(&self.projects, &b.project)
            && (self.hosts.is_empty() || b.hosts().any(|h| among(&self.hosts, &h)))
            && (!self.asks_late() || self.wants_late(&b.late()))
    }

    fn asks_late(&self) -> bool {
        self.exceptions
            || self.reservations != Reserved::Whatever
            || !(self.apps.is_empty() && self.slas.is_empty() && self.licenses.is_empty())
    }

    fn wants_late(&self, late: &Late<'_>) -> bool {
        (!self.exceptions || late.exceptions != 0)
            && among(&self.apps, &late.app)
            && among(&self.slas, &late.service_class)
            && among(&self.licenses, &late.license_project)
            && match &self.reservations {
                Reserved::Whatever => true,
                Reserved::Any => !late.reservation.is_empty(),
                Reserved::In(ids) => among(ids, &late.reservation),
            }
    }
}
