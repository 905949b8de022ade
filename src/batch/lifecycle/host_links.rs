//! Links to the hosts: a kept connection to each sbatchd, and one to the local LIM, which tells
//! their load. mbatchd dials; a lost link is dialled again with back-off.

use crate::batch::cluster::hosts::{HostRt, Link, PING_SECS, REDIAL_FIRST, REDIAL_MOST, Whose};
use crate::batch::site::requirements::Names;
use crate::batch::state::names::HostId;
use crate::batch::{Mbatchd, StepContext};
use crate::lang::resreq::{ResKind, ResNames};
use crate::model::idmap::IdMap;
use crate::model::time::US;
use crate::proto::lim::{HostLoad, LimMsg, status};
use crate::proto::machine::{ConnId, Effect, Endpoint, Peer};
use crate::proto::sbd::{SbdMsg, SbdParams};
use crate::proto::{Daemon, Msg};

impl Mbatchd {
    pub(crate) fn net_start(&mut self, context: &mut StepContext) {
        self.links.on = true;
        for (_, h) in self.links.hosts.iter_mut() {
            h.link = Link::down(context.now);
            (h.lost, h.given_up) = (Some(context.now.mono_us), false);
        }
        self.links.note_all_due();
        self.unreached.look = true;
        self.look_left();
        if matches!(self.links.lim, Link::Down { .. }) {
            self.links.lim = Link::down(context.now);
        }
    }

    /// Closes every link to a sbatchd: nothing that was said over them since the last durable
    /// record holds.
    pub(crate) fn net_drop_all(&mut self, context: &mut StepContext) {
        self.links.on = false;
        for (_, h) in self.links.hosts.iter_mut() {
            if let Some(conn) = h.link.conn() {
                self.links.conns.remove(&conn);
                self.peers.remove(&conn);
                context.out.push(Effect::Close { conn });
            }
            (h.link, h.told) = (Link::down(context.now), None);
        }
        self.links.note_all_due();
    }

    /// Keeps the links of hosts that are still there.
    pub(crate) fn net_reconfigured(&mut self, context: &mut StepContext) {
        let mut old: IdMap<HostId, HostRt> = self.links.hosts.drain().into_iter().collect();
        for (id, site) in self.site.hosts.iter() {
            let new = || HostRt::lost_since(&site.def.name, context.now.mono_us);
            self.links.hosts.insert(id, old.remove(&id).unwrap_or_else(new));
        }
        self.links.note_all_due();
        for gone in old.into_values() {
            if let Some(conn) = gone.link.conn() {
                self.links.conns.remove(&conn);
                context.out.push(Effect::Close { conn });
            }
        }
        self.unreached.look = true;
        self.look_left();
        let params = self.sbd_params();
        for h in self.links.hosts.values() {
            if let Link::Up { conn } | Link::Greeted { conn } = h.link {
                context.send(conn, Msg::Sbd(SbdMsg::Params(params.clone())));
            }
        }
    }

    fn sbd_params(&self) -> SbdParams {
        let p = self.site.params();
        SbdParams {
            sbd_sleep_time: p.sbd_sleep_time,
            job_terminate_interval: p.job_terminate_interval,
            simulated: self.site.personal() && self.site.conf.base.lsf.sim_exec(),
        }
    }

    fn dial(&mut self, context: &mut StepContext, whose: Whose) {
        let conn = self.links.next_conn;
        self.links.next_conn += 1;
        self.links.conns.insert(conn, whose);
        let (link, to) = match whose {
            Whose::Host(i) => {
                let h = &mut self.links.hosts[i];
                (&mut h.link, Endpoint::Tcp { host: h.name.clone(), daemon: Daemon::Sbatchd })
            }
            Whose::Lim => {
                (&mut self.links.lim, Endpoint::Tcp { host: self.me.clone(), daemon: Daemon::Lim })
            }
        };
        let pause = match *link {
            Link::Down { pause, .. } => pause,
            _ => REDIAL_FIRST,
        };
        *link = Link::Dialing { conn, pause };
        if let Whose::Host(host) = whose {
            self.links.note_due(host);
        }
        context.out.push(Effect::Connect { conn, to });
    }

    pub(crate) fn net_opened(&mut self, context: &mut StepContext, conn: ConnId) {
        let Some(&whose) = self.links.conns.get(&conn) else { return };
        match whose {
            Whose::Lim => {
                self.links.lim = Link::Up { conn };
                context.send(conn, Msg::Lim(LimMsg::Subscribe { loads: true }));
                (self.links.told_alone, self.links.told_at) = (Some(Vec::new()), 0);
                self.tell_exclusive(context);
            }
            Whose::Host(i) => {
                let right = matches!(self.peers.get(&conn), Some(Peer::Daemon { host, .. })
                    if *host == self.links.hosts[i].name);
                if !right {
                    context.say(log::Level::Error, "another host answered than the one dialled");
                    context.out.push(Effect::Close { conn });
                    return;
                }
                let params = self.sbd_params();
                let h = &mut self.links.hosts[i];
                h.link = Link::Greeted { conn };
                // it may come back with what was given up
                let back = std::mem::take(&mut h.given_up);
                h.last_heard = context.now.mono_us;
                h.next_ping = context.now.after(PING_SECS);
                self.links.note_due(i);
                let cluster = self.site.conf.base.name.clone();
                let hello = SbdMsg::Hello { epoch: self.epoch, cluster, params, pieces: true };
                context.send(conn, Msg::Sbd(hello));
                if back {
                    self.look_left();
                }
            }
        }
    }

    pub(crate) fn net_failed(&mut self, context: &mut StepContext, conn: ConnId, why: &str) {
        context.say(log::Level::Debug, format!("connection {conn}: {why}"));
        self.net_closed(context, conn);
    }

    pub(crate) fn net_closed(&mut self, context: &mut StepContext, conn: ConnId) {
        let Some(whose) = self.links.conns.remove(&conn) else { return };
        self.peers.remove(&conn);
        let now = context.now.mono_us;
        if let Whose::Host(i) = whose {
            let h = &mut self.links.hosts[i];
            // what is closed for its silence has been out of reach for as long
            let silent = now.saturating_sub(h.last_heard) > PING_SECS * US;
            h.told = None;
            h.lost.get_or_insert(if silent { h.last_heard } else { now });
            self.unreached.look = true;
        }
        let (link, name) = match whose {
            Whose::Host(i) => (&mut self.links.hosts[i].link, "sbatchd"),
            Whose::Lim => (&mut self.links.lim, "lim"),
        };
        let pause = match *link {
            Link::Dialing { pause, .. } => (pause * 2).min(REDIAL_MOST),
            _ => REDIAL_FIRST,
        };
        if matches!(link, Link::Up { .. }) {
            context.say(log::Level::Warn, format!("lost the connection to a {name}"));
        }
        *link = Link::Down { at: now + pause, pause };
        match whose {
            Whose::Host(i) => {
                self.links.note_due(i);
                self.sched.host_changed(i);
            }
            Whose::Lim => self.sched.changed(),
        }
    }

    /// Dials what is due, probes what is silent.
    pub(crate) fn net_tick(&mut self, context: &mut StepContext) {
        if !self.links.on {
            return;
        }
        let now = context.now.mono_us;
        if self.links.deadline().is_none_or(|d| d > now) {
            return;
        }
        if matches!(self.links.lim, Link::Down { at, .. } if at <= now) {
            self.dial(context, Whose::Lim);
        }
        let silent = PING_SECS * u64::from(self.site.params().max_sbd_fail.max(1)) * US;
        let due = self.links.due.range(..=(now, HostId::MAX));
        let due: Vec<HostId> = due.map(|due| due.1).collect();
        for i in due {
            match self.links.hosts[i].link {
                Link::Down { at, .. } if at <= now => self.dial(context, Whose::Host(i)),
                Link::Greeted { conn } | Link::Up { conn }
                    if self.links.hosts[i].next_ping <= now =>
                {
                    let h = &mut self.links.hosts[i];
                    h.next_ping = context.now.after(PING_SECS);
                    self.links.note_due(i);
                    let h = &mut self.links.hosts[i];
                    if now.saturating_sub(h.last_heard) > silent {
                        context.say(log::Level::Warn, format!("sbatchd on {} is silent", h.name));
                        context.out.push(Effect::Close { conn });
                        self.net_closed(context, conn);
                    } else {
                        context.send(conn, Msg::Ping { n: now });
                    }
                }
                _ => {}
            }
        }
    }

    /// The host behind a connection; notes that it is alive.
    pub(crate) fn host_of(&mut self, context: &StepContext, conn: ConnId) -> Option<HostId> {
        match self.links.conns.get(&conn) {
            Some(Whose::Host(i)) => {
                self.links.hosts[*i].last_heard = context.now.mono_us;
                Some(*i)
            }
            _ => None,
        }
    }

    pub(crate) fn heard(&mut self, context: &StepContext, conn: ConnId) {
        let _ = self.host_of(context, conn);
    }

    /// The inventory has been worked through: orders may go out.
    pub(crate) fn host_ready(&mut self, i: HostId) {
        if let Link::Greeted { conn } = self.links.hosts[i].link {
            let h = &mut self.links.hosts[i];
            (h.link, h.lost, h.given_up) = (Link::Up { conn }, None, false);
            self.links.note_due(i);
            self.sched.host_changed(i);
            self.look_left();
        }
    }

    /// A message of the LIM of this host; another LIM, which has called, is not believed.
    pub(crate) fn take_lim_message(
        &mut self,
        context: &mut StepContext,
        conn: ConnId,
        msg: LimMsg,
    ) {
        if self.links.conns.get(&conn) != Some(&Whose::Lim) {
            return self.refuse_caller(context, conn);
        }
        if let LimMsg::Loads { hosts } = msg {
            for load in hosts {
                let Some(i) = self.site.host_id(&load.host) else { continue };
                let before = self.links.hosts[i].load.take();
                let mut load = load;
                if load.status & status::LOCK_X != 0 {
                    // as an mbatchd before this one had it
                    let told = self.links.told_alone.as_ref();
                    if told.is_none_or(|told| told.binary_search(&i).is_err()) {
                        self.links.told_alone = None;
                    }
                }
                let same = before
                    .as_ref()
                    .is_some_and(|before| same_facts(&self.site.names, before, &load));
                if !same {
                    self.links.note_changed_facts();
                }
                if load.facts.is_none() {
                    load.facts = before.and_then(|before| before.facts);
                }
                self.links.hosts[i].load = Some(load);
                self.reserve.measured(&self.state, &self.site, i);
                self.load_checks.heard(i);
                self.sched.host_changed(i);
            }
            self.unreached.look |= !self.links.lost.is_empty();
            context.say(log::Level::Trace, "loads taken over");
        }
    }

    /// Has LIM lock the hosts on which exclusive jobs run, and no others.
    pub(crate) fn tell_exclusive(&mut self, context: &mut StepContext) {
        let Link::Up { conn } = self.links.lim else { return };
        let (told, changes) = (&self.links.told_alone, self.sched.changes());
        let empty = self.state.exclusive().is_empty() && told.as_ref().is_some_and(Vec::is_empty);
        if empty || (told.is_some() && self.links.told_at == changes) {
            return;
        }
        self.links.told_at = changes;
        let runs = self.state.exclusive().iter().filter_map(|at| self.state.elem(*at)?.run());
        let mut hosts: Vec<HostId> = runs.flat_map(|run| run.hosts.iter().map(|h| h.0)).collect();
        hosts.sort_unstable();
        hosts.dedup();
        if Some(&hosts) != told.as_ref() {
            let names = hosts.iter().map(|h| self.state.names().host(*h).to_string()).collect();
            self.links.told_alone = Some(hosts);
            context.send(conn, Msg::Lim(LimMsg::Exclusive { hosts: names }));
        }
    }
}

/// Is everything that a new load tells of a host, other than numbers, as it was?
fn same_facts(names: &Names, before: &HostLoad, now: &HostLoad) -> bool {
    let words =
        |pair: &&(String, String)| !matches!(names.kind(&pair.0), Some(ResKind::Numeric { .. }));
    let (old, new) = (before.external.iter().filter(words), now.external.iter().filter(words));
    (now.facts.is_none() || now.facts == before.facts) && old.eq(new)
}
