//! Links to the hosts: a kept connection to each sbatchd, the load from the local LIM, and what
//! both make of a host's status. mbatchd dials; a lost link is dialled again with back-off.

use crate::batch::cluster::report_standing::Refused;
use crate::batch::site::policy::Policy;
use crate::batch::state::names::{HostId, HostMap};
use crate::batch::{Mbd, StepContext};
use crate::model::idmap::IdMap;
use crate::model::time::US;
use crate::model::{JobKey, Now};
use crate::proto::Daemon;
use crate::proto::Msg;
use crate::proto::lim::{HostLoad, LimMsg, status};
use crate::proto::machine::{ConnId, Effect, Endpoint, Peer};
use crate::proto::sbd::{SbdMsg, SbdParams};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

/// First and longest pause before a lost link is dialled again, microseconds.
const REDIAL_FIRST: u64 = US / 5;
const REDIAL_MOST: u64 = 5 * US;
/// Seconds between probes of a silent link.
pub(crate) const PING_SECS: u64 = 20;

/// Where the link to a daemon stands.
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
    fn down(now: Now) -> Link {
        Link::Down { at: now.mono_us, pause: REDIAL_FIRST }
    }
    fn conn(&self) -> Option<ConnId> {
        match *self {
            Link::Down { .. } => None,
            Link::Dialing { conn, .. } | Link::Greeted { conn } | Link::Up { conn } => Some(conn),
        }
    }
}

/// A host at run time.
#[derive(Debug)]
pub struct HostRt {
    pub name: String,
    pub link: Link,
    pub load: Option<HostLoad>,
    /// Boot id of the last inventory; empty before the first.
    pub boot_id: Arc<str>,
    /// When it was last given a job.
    pub last_dispatch: Option<u64>,
    /// Since when there is no link to its sbatchd; None: there is one.
    pub lost: Option<u64>,
    /// The host has been out of reach for long enough, and LIM says that it is unavailable.
    pub given_up: bool,
    /// Attempts that run there although their jobs were requeued or have ended, with their slots.
    pub zombies: BTreeMap<JobKey, u32>,
    pub refused: Refused,
    /// The attempts that it has told of in an inventory under way.
    pub told: Option<HashSet<JobKey>>,
    last_heard: u64,
    next_ping: u64,
    /// Its entry in [`Net::due`].
    due: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    Host(HostId),
    Lim,
}

/// All links.
#[derive(Debug)]
pub struct Net {
    pub hosts: HostMap<HostRt>,
    lim: Link,
    conns: IdMap<ConnId, Whose>,
    /// When each host is to be dialled or probed next.
    due: BTreeSet<(u64, HostId)>,
    next_conn: ConnId,
    /// False until the first start, and while the log cannot be written.
    on: bool,
    /// Grows with every order to act on a job.
    acts: u64,
    /// The hosts of exclusive jobs as LIM was told them last over this connection; `None` where it
    /// shows others.
    told_alone: Option<Vec<HostId>>,
    /// `sched::Sched::changes` when these were put together.
    told_at: u64,
}

impl Net {
    pub fn new(pol: &Policy) -> Net {
        let mut hosts = HostMap::default();
        for (id, host) in pol.hosts.iter() {
            hosts.insert(id, HostRt::new(&host.def.name));
        }
        Net {
            hosts,
            lim: Link::Down { at: 0, pause: REDIAL_FIRST },
            conns: IdMap::default(),
            due: BTreeSet::new(),
            next_conn: 1,
            on: false,
            acts: 0,
            told_alone: None,
            told_at: 0,
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

    /// Notes when a host whose link has changed is to be dialled or probed next.
    fn note_due(&mut self, host: HostId) {
        let Some(h) = self.hosts.get_mut(host) else { return };
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

    /// The same of all hosts.
    fn note_all_due(&mut self) {
        self.due.clear();
        self.hosts.iter_mut().for_each(|(_, h)| h.due = None);
        let ids: Vec<HostId> = self.hosts.ids().collect();
        ids.into_iter().for_each(|host| self.note_due(host));
    }
}

impl HostRt {
    fn new(name: &str) -> HostRt {
        HostRt {
            name: name.to_string(),
            link: Link::Down { at: 0, pause: REDIAL_FIRST },
            load: None,
            boot_id: Arc::default(),
            last_dispatch: None,
            lost: Some(0),
            given_up: false,
            zombies: BTreeMap::new(),
            refused: Refused::default(),
            told: None,
            last_heard: 0,
            next_ping: 0,
            due: None,
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

impl Mbd {
    pub(crate) fn net_start(&mut self, cx: &mut StepContext) {
        self.net.on = true;
        for (_, h) in self.net.hosts.iter_mut() {
            h.link = Link::down(cx.now);
            (h.lost, h.given_up) = (Some(cx.now.mono_us), false);
        }
        self.net.note_all_due();
        self.unreached.look = true;
        self.look_left();
        if matches!(self.net.lim, Link::Down { .. }) {
            self.net.lim = Link::down(cx.now);
        }
    }

    /// Closes every link to a sbatchd: nothing that was said over them since the last durable
    /// record holds.
    pub(crate) fn net_drop_all(&mut self, cx: &mut StepContext) {
        self.net.on = false;
        for (_, h) in self.net.hosts.iter_mut() {
            if let Some(conn) = h.link.conn() {
                self.net.conns.remove(&conn);
                self.peers.remove(&conn);
                cx.out.push(Effect::Close { conn });
            }
            (h.link, h.told) = (Link::down(cx.now), None);
        }
        self.net.note_all_due();
    }

    /// Keeps the links of hosts that are still there.
    pub(crate) fn net_reconfigured(&mut self, cx: &mut StepContext) {
        let mut old: IdMap<HostId, HostRt> = self.net.hosts.drain().into_iter().collect();
        for (id, pol) in self.pol.hosts.iter() {
            let new = || HostRt { lost: Some(cx.now.mono_us), ..HostRt::new(&pol.def.name) };
            self.net.hosts.insert(id, old.remove(&id).unwrap_or_else(new));
        }
        self.net.note_all_due();
        for gone in old.into_values() {
            if let Some(conn) = gone.link.conn() {
                self.net.conns.remove(&conn);
                cx.out.push(Effect::Close { conn });
            }
        }
        self.unreached.look = true;
        self.look_left();
        let params = self.sbd_params();
        for h in self.net.hosts.values() {
            if let Link::Up { conn } | Link::Greeted { conn } = h.link {
                cx.send(conn, Msg::Sbd(SbdMsg::Params(params.clone())));
            }
        }
    }

    fn sbd_params(&self) -> SbdParams {
        let p = self.pol.params();
        SbdParams {
            sbd_sleep_time: p.sbd_sleep_time,
            job_terminate_interval: p.job_terminate_interval,
            simulated: self.pol.personal() && self.pol.conf.base.lsf.sim_exec(),
        }
    }

    fn dial(&mut self, cx: &mut StepContext, whose: Whose) {
        let conn = self.net.next_conn;
        self.net.next_conn += 1;
        self.net.conns.insert(conn, whose);
        let (link, to) = match whose {
            Whose::Host(i) => {
                let h = &mut self.net.hosts[i];
                (&mut h.link, Endpoint::Tcp { host: h.name.clone(), daemon: Daemon::Sbatchd })
            }
            Whose::Lim => {
                (&mut self.net.lim, Endpoint::Tcp { host: self.me.clone(), daemon: Daemon::Lim })
            }
        };
        let pause = match *link {
            Link::Down { pause, .. } => pause,
            _ => REDIAL_FIRST,
        };
        *link = Link::Dialing { conn, pause };
        if let Whose::Host(host) = whose {
            self.net.note_due(host);
        }
        cx.out.push(Effect::Connect { conn, to });
    }

    pub(crate) fn net_opened(&mut self, cx: &mut StepContext, conn: ConnId) {
        let Some(&whose) = self.net.conns.get(&conn) else { return };
        match whose {
            Whose::Lim => {
                self.net.lim = Link::Up { conn };
                cx.send(conn, Msg::Lim(LimMsg::Subscribe { loads: true }));
                (self.net.told_alone, self.net.told_at) = (Some(Vec::new()), 0);
                self.tell_exclusive(cx);
            }
            Whose::Host(i) => {
                let right = matches!(self.peers.get(&conn), Some(Peer::Daemon { host, .. })
                    if *host == self.net.hosts[i].name);
                if !right {
                    cx.say(log::Level::Error, "another host answered than the one dialled");
                    cx.out.push(Effect::Close { conn });
                    return;
                }
                let params = self.sbd_params();
                let h = &mut self.net.hosts[i];
                h.link = Link::Greeted { conn };
                // it may come back with what was given up
                let back = std::mem::take(&mut h.given_up);
                h.last_heard = cx.now.mono_us;
                h.next_ping = cx.now.after(PING_SECS);
                self.net.note_due(i);
                let cluster = self.pol.conf.base.name.clone();
                let hello = SbdMsg::Hello { epoch: self.epoch, cluster, params, pieces: true };
                cx.send(conn, Msg::Sbd(hello));
                if back {
                    self.look_left();
                }
            }
        }
    }

    pub(crate) fn net_failed(&mut self, cx: &mut StepContext, conn: ConnId, why: &str) {
        cx.say(log::Level::Debug, format!("connection {conn}: {why}"));
        self.net_closed(cx, conn);
    }

    pub(crate) fn net_closed(&mut self, cx: &mut StepContext, conn: ConnId) {
        let Some(whose) = self.net.conns.remove(&conn) else { return };
        self.peers.remove(&conn);
        let now = cx.now.mono_us;
        if let Whose::Host(i) = whose {
            let h = &mut self.net.hosts[i];
            // what is closed for its silence has been out of reach for as long
            let silent = now.saturating_sub(h.last_heard) > PING_SECS * US;
            h.told = None;
            h.lost.get_or_insert(if silent { h.last_heard } else { now });
            self.unreached.look = true;
        }
        let (link, name) = match whose {
            Whose::Host(i) => (&mut self.net.hosts[i].link, "sbatchd"),
            Whose::Lim => (&mut self.net.lim, "lim"),
        };
        let pause = match *link {
            Link::Dialing { pause, .. } => (pause * 2).min(REDIAL_MOST),
            _ => REDIAL_FIRST,
        };
        if matches!(link, Link::Up { .. }) {
            cx.say(log::Level::Warn, format!("lost the connection to a {name}"));
        }
        *link = Link::Down { at: now + pause, pause };
        match whose {
            Whose::Host(i) => {
                self.net.note_due(i);
                self.sched.host_changed(i);
            }
            Whose::Lim => self.sched.changed(),
        }
    }

    /// Dials what is due, probes what is silent.
    pub(crate) fn net_tick(&mut self, cx: &mut StepContext) {
        if !self.net.on {
            return;
        }
        let now = cx.now.mono_us;
        if self.net.deadline().is_none_or(|d| d > now) {
            return;
        }
        if matches!(self.net.lim, Link::Down { at, .. } if at <= now) {
            self.dial(cx, Whose::Lim);
        }
        let silent = PING_SECS * u64::from(self.pol.params().max_sbd_fail.max(1)) * US;
        let due = self.net.due.range(..=(now, HostId::MAX));
        let due: Vec<HostId> = due.map(|due| due.1).collect();
        for i in due {
            match self.net.hosts[i].link {
                Link::Down { at, .. } if at <= now => self.dial(cx, Whose::Host(i)),
                Link::Greeted { conn } | Link::Up { conn }
                    if self.net.hosts[i].next_ping <= now =>
                {
                    let h = &mut self.net.hosts[i];
                    h.next_ping = cx.now.after(PING_SECS);
                    self.net.note_due(i);
                    let h = &mut self.net.hosts[i];
                    if now.saturating_sub(h.last_heard) > silent {
                        cx.say(log::Level::Warn, format!("sbatchd on {} is silent", h.name));
                        cx.out.push(Effect::Close { conn });
                        self.net_closed(cx, conn);
                    } else {
                        cx.send(conn, Msg::Ping { n: now });
                    }
                }
                _ => {}
            }
        }
    }

    /// The host behind a connection; notes that it is alive.
    pub(crate) fn host_of(&mut self, cx: &StepContext, conn: ConnId) -> Option<HostId> {
        match self.net.conns.get(&conn) {
            Some(Whose::Host(i)) => {
                self.net.hosts[*i].last_heard = cx.now.mono_us;
                Some(*i)
            }
            _ => None,
        }
    }

    pub(crate) fn heard(&mut self, cx: &StepContext, conn: ConnId) {
        let _ = self.host_of(cx, conn);
    }

    /// The inventory has been worked through: orders may go out.
    pub(crate) fn host_ready(&mut self, i: HostId) {
        if let Link::Greeted { conn } = self.net.hosts[i].link {
            let h = &mut self.net.hosts[i];
            (h.link, h.lost, h.given_up) = (Link::Up { conn }, None, false);
            self.net.note_due(i);
            self.sched.host_changed(i);
            self.look_left();
        }
    }

    /// A message of the LIM of this host; another LIM, which has called, is not believed.
    pub(crate) fn from_lim(&mut self, cx: &mut StepContext, conn: ConnId, msg: LimMsg) {
        if self.net.conns.get(&conn) != Some(&Whose::Lim) {
            return self.refuse_caller(cx, conn);
        }
        if let LimMsg::Loads { hosts } = msg {
            for load in hosts {
                let Some(i) = self.pol.host_id(&load.host) else { continue };
                let h = &mut self.net.hosts[i];
                let facts = h.load.take().and_then(|l| l.facts);
                let mut load = load;
                if load.status & status::LOCK_X != 0 {
                    // as an mbatchd before this one had it
                    let told = self.net.told_alone.as_ref();
                    if told.is_none_or(|told| told.binary_search(&i).is_err()) {
                        self.net.told_alone = None;
                    }
                }
                if load.facts.is_none() {
                    load.facts = facts;
                }
                h.load = Some(load);
                self.reserve_measured(i);
                self.sched.host_changed(i);
            }
            self.overload.look = true;
            self.unreached.look |= self.net.hosts.values().any(|h| h.lost.is_some());
            self.note_peak();
            cx.say(log::Level::Trace, "loads taken over");
        }
    }

    /// Has LIM lock the hosts on which exclusive jobs run, and no others.
    pub(crate) fn tell_exclusive(&mut self, cx: &mut StepContext) {
        let Link::Up { conn } = self.net.lim else { return };
        let (told, changes) = (&self.net.told_alone, self.sched.changes());
        let empty = self.st.alone.is_empty() && told.as_ref().is_some_and(Vec::is_empty);
        if empty || (told.is_some() && self.net.told_at == changes) {
            return;
        }
        self.net.told_at = changes;
        let runs = self.st.alone.iter().filter_map(|at| self.st.elem(*at)?.run());
        let mut hosts: Vec<HostId> = runs.flat_map(|run| run.hosts.iter().map(|h| h.0)).collect();
        hosts.sort_unstable();
        hosts.dedup();
        if Some(&hosts) != told.as_ref() {
            let names = hosts.iter().map(|h| self.st.names.host(*h).to_string()).collect();
            self.net.told_alone = Some(hosts);
            cx.send(conn, Msg::Lim(LimMsg::Exclusive { hosts: names }));
        }
    }

    /// A number for an order to act, larger than any before, across restarts; and before it the
    /// short one that an older sbatchd goes by.
    pub(crate) fn next_act(&mut self) -> (u32, u64) {
        self.net.acts += 1;
        let short = ((self.epoch & 0xffff) << 16) | (self.net.acts & 0xffff);
        (short as u32, (self.epoch << 32) | self.net.acts)
    }
}
