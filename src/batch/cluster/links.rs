//! The links of mbatchd to its hosts and to the local LIM: what has become of each, and when it is
//! to be dialled or probed next. `lifecycle::host_links` sends and closes.
//!
//! Invariant: an entry of `due` and of `lost` stands for each host exactly as its link wants it.

use crate::batch::cluster::hosts::{
    HostRuntime, Link, Links, PING_SECS, REDIAL_FIRST, REDIAL_MOST, Whose,
};
use crate::batch::site::Site;
use crate::batch::state::names::{HostId, HostMap};
use crate::model::event::NamedHosts;
use crate::model::idmap::IdMap;
use crate::model::time::US;
use crate::model::topology::Topology;
use crate::model::{JobKey, Now};
use crate::proto::lim::{HostLoad, status};
use crate::proto::machine::ConnId;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// The work that a due link needs.
pub(crate) enum LinkWork {
    Dial,
    /// The host has said nothing for too long.
    Close(ConnId),
    Ping(ConnId),
}

impl Links {
    /// The hosts at run time.
    pub fn hosts(&self) -> &HostMap<HostRuntime> {
        &self.hosts
    }

    /// Links are dialled from now on.
    pub(crate) fn start(&mut self, now: Now) {
        self.on = true;
        for (_, h) in self.hosts.iter_mut() {
            h.link = Link::down(now);
            (h.lost, h.given_up) = (Some(now.mono_us), false);
        }
        self.note_all_due();
        if matches!(self.lim, Link::Down { .. }) {
            self.lim = Link::down(now);
        }
    }

    /// Gives up all links to hosts, and dials none: the connections to be closed.
    pub(crate) fn stop(&mut self, now: Now) -> Vec<ConnId> {
        self.on = false;
        let open: Vec<ConnId> = self.hosts.values().filter_map(|h| h.link.conn()).collect();
        for (_, h) in self.hosts.iter_mut() {
            (h.link, h.told) = (Link::down(now), None);
        }
        for conn in &open {
            self.conns.remove(conn);
        }
        self.note_all_due();
        open
    }

    pub(crate) fn is_on(&self) -> bool {
        self.on
    }

    /// Has the hosts of a new configuration, with the links of those that stay: the connections to
    /// be closed.
    pub(crate) fn reconfigured(&mut self, site: &Site, now: Now) -> Vec<ConnId> {
        let mut old: IdMap<HostId, HostRuntime> = self.hosts.drain().into_iter().collect();
        for (id, host) in site.hosts.iter() {
            let new = || HostRuntime::lost_since(&host.def.name, now.mono_us);
            self.hosts.insert(id, old.remove(&id).unwrap_or_else(new));
        }
        self.note_all_due();
        let gone: Vec<ConnId> = old.into_values().filter_map(|host| host.link.conn()).collect();
        for conn in &gone {
            self.conns.remove(conn);
        }
        gone
    }

    /// Begins to dial; gives the number of the connection.
    pub(crate) fn dial(&mut self, whose: Whose) -> ConnId {
        let conn = self.next_conn;
        self.next_conn += 1;
        self.conns.insert(conn, whose);
        let link = self.link_mut(whose);
        let pause = match *link {
            Link::Down { pause, .. } => pause,
            _ => REDIAL_FIRST,
        };
        *link = Link::Dialing { conn, pause };
        if let Whose::Host(host) = whose {
            self.note_due(host);
        }
        conn
    }

    fn link_mut(&mut self, whose: Whose) -> &mut Link {
        match whose {
            Whose::Host(host) => &mut self.hosts[host].link,
            Whose::Lim => &mut self.lim,
        }
    }

    /// The other end of a connection.
    pub(crate) fn whose(&self, conn: ConnId) -> Option<Whose> {
        self.conns.get(&conn).copied()
    }

    /// LIM has answered; it locks no host for this mbatchd yet.
    pub(crate) fn lim_opened(&mut self, conn: ConnId) {
        self.lim = Link::Up { conn };
        (self.told_alone, self.told_at) = (Some(Vec::new()), 0);
    }

    /// A host has answered. Was it given up?
    pub(crate) fn host_opened(&mut self, host: HostId, conn: ConnId, now: Now) -> bool {
        let h = &mut self.hosts[host];
        h.link = Link::Greeted { conn };
        h.last_heard = now.mono_us;
        h.next_ping = now.after(PING_SECS);
        let given_up = std::mem::take(&mut h.given_up);
        self.note_due(host);
        given_up
    }

    /// The inventory of a host has been worked through: orders may go out. Was that awaited?
    pub(crate) fn host_ready(&mut self, host: HostId) -> bool {
        let h = &mut self.hosts[host];
        let Link::Greeted { conn } = h.link else { return false };
        (h.link, h.lost, h.given_up) = (Link::Up { conn }, None, false);
        self.note_due(host);
        true
    }

    /// A connection is closed: whose it was, and whether its link was up.
    pub(crate) fn closed(&mut self, conn: ConnId, now: Now) -> Option<(Whose, bool)> {
        let whose = self.conns.remove(&conn)?;
        if let Whose::Host(host) = whose {
            let h = &mut self.hosts[host];
            // what is closed for its silence has been out of reach for as long
            let silent = now.mono_us.saturating_sub(h.last_heard) > PING_SECS * US;
            h.told = None;
            h.lost.get_or_insert(if silent { h.last_heard } else { now.mono_us });
        }
        let link = self.link_mut(whose);
        let pause = match *link {
            Link::Dialing { pause, .. } => (pause * 2).min(REDIAL_MOST),
            _ => REDIAL_FIRST,
        };
        let was_up = matches!(link, Link::Up { .. });
        *link = Link::Down { at: now.mono_us + pause, pause };
        if let Whose::Host(host) = whose {
            self.note_due(host);
        }
        Some((whose, was_up))
    }

    /// Is LIM to be dialled?
    pub(crate) fn lim_is_due(&self, now_us: u64) -> bool {
        matches!(self.lim, Link::Down { at, .. } if at <= now_us)
    }

    /// The hosts whose links are due.
    pub(crate) fn due_hosts(&self, now_us: u64) -> Vec<HostId> {
        self.due.range(..=(now_us, HostId::MAX)).map(|due| due.1).collect()
    }

    /// The work that the link of a host needs, which may be silent for so many microseconds.
    pub(crate) fn work_of(&mut self, host: HostId, now: Now, silent: u64) -> Option<LinkWork> {
        let h = &mut self.hosts[host];
        match h.link {
            Link::Down { at, .. } if at <= now.mono_us => Some(LinkWork::Dial),
            Link::Greeted { conn } | Link::Up { conn } if h.next_ping <= now.mono_us => {
                h.next_ping = now.after(PING_SECS);
                let is_silent = now.mono_us.saturating_sub(h.last_heard) > silent;
                self.note_due(host);
                Some(if is_silent { LinkWork::Close(conn) } else { LinkWork::Ping(conn) })
            }
            _ => None,
        }
    }

    /// The host behind a connection, which has said something.
    pub(crate) fn heard(&mut self, conn: ConnId, now: Now) -> Option<HostId> {
        let host = self.host_by_conn(conn)?;
        self.hosts[host].last_heard = now.mono_us;
        Some(host)
    }

    /// LIM tells the load of a host; without its facts where they are those told before. `same`:
    /// only numbers differ from what was told before.
    pub(crate) fn take_load(&mut self, host: HostId, mut load: HostLoad, same: bool) {
        if !same {
            self.note_changed_facts();
        }
        if load.status & status::LOCK_X != 0 {
            // as an mbatchd before this one had it
            let told = self.told_alone.as_ref();
            if told.is_none_or(|told| told.binary_search(&host).is_err()) {
                self.told_alone = None;
            }
        }
        let h = &mut self.hosts[host];
        let facts = h.load.take().and_then(|l| l.facts);
        if let Some(new) = &load.facts {
            let known = facts.as_ref().map_or("", |facts| &facts.topology);
            if new.topology != known {
                h.topology = Arc::new(Topology::parse(&new.topology).unwrap_or_default());
            }
        }
        load.facts = load.facts.or(facts);
        h.load = Some(load);
    }

    /// The hosts of exclusive jobs as LIM was told them; `None`: it may show others.
    pub(crate) fn told_alone(&self) -> Option<&[HostId]> {
        self.told_alone.as_deref()
    }

    /// Were these looked at since the scheduler last saw a change, the count of which this is?
    /// They are now.
    pub(crate) fn looks_at_alone(&mut self, changes: u64) -> bool {
        let looked = self.told_alone.is_some() && self.told_at == changes;
        self.told_at = changes;
        !looked
    }

    /// LIM is told of these.
    pub(crate) fn tell_alone(&mut self, hosts: Vec<HostId>) {
        self.told_alone = Some(hosts);
    }

    /// Is there a host without a link?
    pub(crate) fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// The hosts without a link.
    pub(crate) fn lost(&self) -> impl Iterator<Item = HostId> + '_ {
        self.lost.iter().copied()
    }

    /// A host is given up, or not.
    pub(crate) fn set_given_up(&mut self, host: HostId, given_up: bool) {
        self.hosts[host].given_up = given_up;
    }

    /// The number of an order to act on a job, larger than any before.
    pub(crate) fn next_act(&mut self) -> u64 {
        self.acts += 1;
        self.acts
    }

    /// A host is given a job first, whose hosts these are.
    pub(crate) fn note_start(&mut self, host: HostId, hosts: &NamedHosts) {
        self.hosts[host].note_start(hosts);
    }

    /// A host is given a job.
    pub(crate) fn note_dispatch(&mut self, host: HostId, now_us: u64) {
        self.hosts[host].last_dispatch = Some(now_us as i64);
    }

    /// A host was given a job at this second, as far as it is not known that it has got one since.
    pub(crate) fn note_earlier_dispatch(&mut self, host: HostId, secs: i64, now: Now) {
        let Some(host) = self.hosts.get_mut(host) else { return };
        host.last_dispatch.get_or_insert(now.mono_of_past(secs));
    }

    /// A piece of an inventory tells of these attempts: how many the inventory has told of.
    pub(crate) fn take_inventory(
        &mut self,
        host: HostId,
        boot_id: String,
        keys: impl Iterator<Item = JobKey>,
    ) -> usize {
        let h = &mut self.hosts[host];
        h.boot_id = boot_id.into();
        if h.told.is_none() {
            h.zombies = BTreeMap::new();
        }
        let told = h.told.get_or_insert_default();
        told.extend(keys);
        told.len()
    }

    /// The attempts of an inventory that is whole.
    pub(crate) fn end_inventory(&mut self, host: HostId) -> HashSet<JobKey> {
        self.hosts[host].told.take().unwrap_or_default()
    }

    /// Whether the sbatchd of a host can be told of jobs whose first host is another one.
    pub(crate) fn set_joins(&mut self, host: HostId, joins: bool) {
        self.hosts[host].joins = Some(joins);
    }

    /// Whether the sbatchd of a host looks into files of users (`Validate`).
    pub(crate) fn set_validates(&mut self, host: HostId, validates: bool) {
        self.hosts[host].validates = validates;
    }

    /// An attempt that was left behind still runs on a host, in so many slots.
    pub(crate) fn left_runs(&mut self, host: HostId, key: JobKey, slots: u32) {
        self.hosts[host].zombies.insert(key, slots);
    }

    /// An attempt that was left behind is over; did it hold slots?
    pub(crate) fn left_over(&mut self, host: HostId, key: JobKey) -> bool {
        self.hosts[host].zombies.remove(&key).is_some()
    }

    /// A report of a host was refused: how many were so far.
    pub(crate) fn count_refused(&mut self, host: HostId) -> u64 {
        let refused = &mut self.hosts[host].refused;
        refused.count += 1;
        refused.count
    }

    /// How many reports of all hosts were refused.
    pub(crate) fn refused(&self) -> u64 {
        self.hosts.values().map(|host| host.refused.count).sum()
    }

    /// May a line about what a host has said be logged, so many microseconds after the last?
    pub(crate) fn may_log(&mut self, host: HostId, now_us: u64, pause: u64) -> bool {
        let said = &mut self.hosts[host].refused.said;
        let may = said.is_none_or(|t| now_us >= t + pause);
        if may {
            *said = Some(now_us);
        }
        may
    }

    /// Is what LIM said of hosts what it says now?
    pub fn lim_linked(&self) -> bool {
        matches!(self.lim, Link::Up { .. })
    }
}
