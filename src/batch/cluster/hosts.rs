//! The hosts at run time: the link to the sbatchd of each, its load as the local LIM tells it, and
//! its status. `lifecycle::host_links` dials and listens.

use crate::batch::site::Site;
use crate::batch::state::names::{HostId, HostMap};
use crate::model::event::NamedHosts;
use crate::model::idmap::IdMap;
use crate::model::time::US;
use crate::model::topology::Topology;
use crate::model::{JobKey, Now};
use crate::proto::lim::{HostLoad, status};
use crate::proto::machine::ConnId;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

/// First and longest pause before a lost link is dialled again, microseconds.
pub const REDIAL_FIRST: u64 = US / 5;
pub const REDIAL_MOST: u64 = 5 * US;
/// Seconds between probes of a silent link.
pub(crate) const PING_SECS: u64 = 20;

/// The state of the link to a daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// Dialled again at this instant.
    Down {
        at: u64,
        pause: u64,
    },
    Dialing {
        conn: ConnId,
        pause: u64,
    },
    /// Greeted, waiting for the inventory.
    Greeted {
        conn: ConnId,
    },
    Up {
        conn: ConnId,
    },
}

impl Link {
    pub fn down(now: Now) -> Link {
        Link::Down { at: now.mono_us, pause: REDIAL_FIRST }
    }
    pub fn conn(&self) -> Option<ConnId> {
        match *self {
            Link::Down { .. } => None,
            Link::Dialing { conn, .. } | Link::Greeted { conn } | Link::Up { conn } => Some(conn),
        }
    }
}

/// A host at run time.
#[derive(Debug)]
pub struct HostRuntime {
    pub name: String,
    pub link: Link,
    pub load: Option<HostLoad>,
    /// The processor units of the host as LIM told them; empty: not known.
    pub topology: Arc<Topology>,
    /// Boot id of the last inventory; empty before the first.
    pub boot_id: Arc<str>,
    /// When it was last given a job, microseconds of the monotonic clock; negative: before that
    /// clock began.
    pub last_dispatch: Option<i64>,
    /// The host and the slots of the job on this host alone that was started last.
    last_start: Option<NamedHosts>,
    /// Since when there is no link to its sbatchd; None: there is one.
    pub lost: Option<u64>,
    /// The host has been out of reach for long enough, and LIM says that it is unavailable.
    pub given_up: bool,
    /// Attempts that run there although their jobs were requeued or have ended, with their slots.
    pub zombies: BTreeMap<JobKey, u32>,
    /// Can the sbatchd be told of jobs whose first host is another one? `None`: not known yet.
    pub joins: Option<bool>,
    /// Does the sbatchd look into files of users?
    pub validates: bool,
    pub(super) refused: Refused,
    /// The attempts that it has told of in an inventory under way.
    pub(super) told: Option<HashSet<JobKey>>,
    pub(super) last_heard: u64,
    pub(super) next_ping: u64,
    /// The host's entry in [`Links::due`].
    pub(super) due: Option<u64>,
}

/// The reports of a host that were refused.
#[derive(Clone, Copy, Debug, Default)]
pub struct Refused {
    pub(super) count: u64,
    /// When it was last logged, microseconds of the monotonic clock.
    pub(super) said: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    Host(HostId),
    Lim,
}

/// All links.
#[derive(Debug)]
pub struct Links {
    pub(super) hosts: HostMap<HostRuntime>,
    pub(super) lim: Link,
    pub(super) conns: IdMap<ConnId, Whose>,
    /// The hosts without a link, see [`HostRuntime::lost`].
    pub(super) lost: BTreeSet<HostId>,
    /// When each host is to be dialled or probed next.
    pub(super) due: BTreeSet<(u64, HostId)>,
    pub(super) next_conn: ConnId,
    /// False until the first start, and while the log cannot be written.
    pub(super) on: bool,
    /// Grows with every order to act on a job.
    pub(super) acts: u64,
    /// The hosts of exclusive jobs as LIM was told them last over this connection; `None` where it
    /// shows others.
    pub(super) told_alone: Option<Vec<HostId>>,
    /// `sched::Sched::changes` when these were put together.
    pub(super) told_at: u64,
    /// How often something that LIM tells of a host, other than a number, has become another.
    facts_changes: u64,
}

impl Links {
    pub fn new(site: &Site) -> Links {
        let mut hosts = HostMap::default();
        for (id, host) in site.hosts.iter() {
            hosts.insert(id, HostRuntime::new(&host.def.name));
        }
        Links {
            hosts,
            lim: Link::Down { at: 0, pause: REDIAL_FIRST },
            conns: IdMap::default(),
            lost: BTreeSet::new(),
            due: BTreeSet::new(),
            next_conn: 1,
            on: false,
            acts: 0,
            told_alone: None,
            told_at: 0,
            facts_changes: 0,
        }
    }

    pub fn lim(&self) -> Link {
        self.lim
    }

    /// The host at the other end.
    pub fn host_by_conn(&self, conn: ConnId) -> Option<HostId> {
        match self.conns.get(&conn) {
            Some(Whose::Host(i)) => Some(*i),
            _ => None,
        }
    }

    pub fn deadline(&self) -> Option<u64> {
        if !self.on {
            return None;
        }
        let lim = match self.lim {
            Link::Down { at, .. } => Some(at),
            _ => None,
        };
        self.due.first().map(|due| due.0).into_iter().chain(lim).min()
    }

    /// Notes that the link to a host has changed: when it is to be dialled or probed next, and
    /// whether it is lost.
    pub(super) fn note_due(&mut self, host: HostId) {
        let Some(h) = self.hosts.get_mut(host) else { return };
        match h.lost {
            Some(_) => self.lost.insert(host),
            None => self.lost.remove(&host),
        };
        let due = match h.link {
            Link::Up { .. } | Link::Greeted { .. } => Some(h.next_ping),
            Link::Down { at, .. } => Some(at),
            Link::Dialing { .. } => None,
        };
        if due != h.due {
            if let Some(at) = h.due {
                self.due.remove(&(at, host));
            }
            if let Some(at) = due {
                self.due.insert((at, host));
            }
            h.due = due;
        }
    }

    /// How often something that LIM tells of a host, other than a number, has become another.
    pub(crate) fn facts_changes(&self) -> u64 {
        self.facts_changes
    }

    pub(super) fn note_changed_facts(&mut self) {
        self.facts_changes += 1;
    }

    /// Notes the due times of all hosts anew.
    pub(super) fn note_all_due(&mut self) {
        self.due.clear();
        self.lost.clear();
        self.hosts.iter_mut().for_each(|(_, h)| h.due = None);
        let ids: Vec<HostId> = self.hosts.ids().collect();
        ids.into_iter().for_each(|host| self.note_due(host));
    }
}

impl HostRuntime {
    /// Keeps the hosts of a job that was started here, where this is the only one.
    pub(super) fn note_start(&mut self, hosts: &NamedHosts) {
        let known = self.last_start.as_ref();
        if hosts.len() == 1 && known.is_none_or(|known| !Arc::ptr_eq(known, hosts)) {
            self.last_start = Some(hosts.clone());
        }
    }

    /// The hosts of the job that was started here last, if that were so many slots here alone.
    pub(crate) fn started_alone(&self, slots: u32) -> Option<&NamedHosts> {
        self.last_start.as_ref().filter(|hosts| hosts.iter().all(|host| host.1 == slots))
    }

    pub fn new(name: &str) -> HostRuntime {
        HostRuntime::lost_since(name, 0)
    }

    /// A host to which there is no link since an instant, microseconds of the monotonic clock.
    pub(crate) fn lost_since(name: &str, instant: u64) -> HostRuntime {
        HostRuntime {
            name: name.to_string(),
            link: Link::Down { at: 0, pause: REDIAL_FIRST },
            load: None,
            topology: Arc::default(),
            boot_id: Arc::default(),
            last_dispatch: None,
            last_start: None,
            lost: Some(instant),
            given_up: false,
            zombies: BTreeMap::new(),
            joins: None,
            validates: false,
            refused: Refused::default(),
            told: None,
            last_heard: 0,
            next_ping: 0,
            due: None,
        }
    }
    /// When it may be given a job again, so many microseconds after the last one; microseconds of
    /// the monotonic clock, `None`: now.
    pub(crate) fn rests_until(&self, pause: u64, now: Now) -> Option<u64> {
        let until = self.last_dispatch?.saturating_add_unsigned(pause);
        let until = u64::try_from(until).ok().filter(|until| *until > now.mono_us);
        until.filter(|_| pause > 0)
    }
    /// The connection over which it can be told something.
    pub fn reached(&self) -> Option<ConnId> {
        match self.link {
            Link::Up { conn } | Link::Greeted { conn } => Some(conn),
            Link::Down { .. } | Link::Dialing { .. } => None,
        }
    }
    pub fn up(&self) -> Option<ConnId> {
        match self.link {
            Link::Up { conn } => Some(conn),
            _ => None,
        }
    }
    pub fn lim_ok(&self) -> bool {
        self.load.as_ref().is_some_and(|l| l.status & status::UNAVAIL == 0)
    }
    pub fn ncpus(&self) -> u32 {
        self.load.as_ref().and_then(|l| l.facts.as_ref()).map_or(1, |f| f.ncpus.max(1))
    }
    pub fn cpu_factor(&self) -> f64 {
        let f = self.load.as_ref().and_then(|l| l.facts.as_ref()).map_or(1.0, |f| f.cpu_factor);
        if f > 0.0 { f } else { 1.0 }
    }
}

/// A host's batch status, in the order in which it is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostStatus {
    Ok,
    Unavail,
    Unreach,
    ClosedAdm,
    ClosedLock,
    ClosedWind,
    ClosedExcl,
    ClosedFull,
    ClosedBusy,
}

impl HostStatus {
    /// The long form that bhosts -w and -l show.
    pub fn text(self) -> &'static str {
        match self {
            HostStatus::Ok => "ok",
            HostStatus::Unavail => "unavail",
            HostStatus::Unreach => "unreach",
            HostStatus::ClosedAdm => "closed_Adm",
            HostStatus::ClosedLock => "closed_Lock",
            HostStatus::ClosedWind => "closed_Wind",
            HostStatus::ClosedFull => "closed_Full",
            HostStatus::ClosedExcl => "closed_Excl",
            HostStatus::ClosedBusy => "closed_Busy",
        }
    }
}

/// Is `value` of built-in index `i` beyond a threshold? it, tmp, swp and mem must not fall below
/// theirs, the others not rise above.
pub fn beyond(i: usize, value: f64, bound: f64) -> bool {
    if i >= 7 { value < bound } else { value > bound }
}
