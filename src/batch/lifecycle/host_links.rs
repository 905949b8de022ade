//! Links to the hosts: a kept connection to each sbatchd, and one to the local LIM, which tells
//! their load. mbatchd dials; a lost link is dialled again with back-off.

use crate::batch::cluster::hosts::{HostRuntime, Link, PING_SECS, Whose};
use crate::batch::cluster::links::LinkWork;
use crate::batch::site::requirements::Names;
use crate::batch::state::names::HostId;
use crate::batch::{Mbatchd, StepContext};
use crate::lang::resreq::{ResKind, ResNames};
use crate::model::Now;
use crate::model::time::US;
use crate::proto::lim::{HostLoad, LimMsg, status};
use crate::proto::machine::{ConnId, Effect, Endpoint, Peer};
use crate::proto::sbd::{SbdMsg, SbdParams};
use crate::proto::{Daemon, Msg};

impl Mbatchd {
    pub(crate) fn net_start(&mut self, context: &mut StepContext) {
        self.links.start(context.now);
        self.unreached.look_again();
        self.look_left();
    }

    /// Closes every link to a sbatchd: nothing that was said over them since the last durable
    /// record holds.
    pub(crate) fn net_drop_all(&mut self, context: &mut StepContext) {
        for conn in self.links.stop(context.now) {
            self.peers.remove(&conn);
            context.out.push(Effect::Close { conn });
        }
    }

    /// Keeps the links of hosts that are still there.
    pub(crate) fn net_reconfigured(&mut self, context: &mut StepContext) {
        for conn in self.links.reconfigured(&self.site, context.now) {
            context.out.push(Effect::Close { conn });
        }
        self.note_earlier_dispatches(context.now);
        self.unreached.look_again();
        self.look_left();
        let params = self.sbd_params();
        for conn in self.links.hosts().values().filter_map(HostRuntime::reached) {
            context.send(conn, Msg::Sbd(SbdMsg::Params(params.clone())));
        }
    }

    /// Hosts that mbatchd has not given a job to since it knows them rest from their last start in
    /// the log (JOB_ACCEPT_INTERVAL).
    pub(crate) fn note_earlier_dispatches(&mut self, now: Now) {
        let ids: Vec<HostId> = self.links.hosts().ids().collect();
        for host in ids {
            if let Some(last) = self.state.last_starts().of(host) {
                self.links.note_earlier_dispatch(host, last, now);
            }
        }
    }

    fn sbd_params(&self) -> SbdParams {
        let p = self.site.params();
        SbdParams {
            sbd_sleep_time: p.sbd_sleep_time,
            rusage_update_rate: p.rusage_update_rate,
            rusage_update_percent: p.rusage_update_percent,
            job_terminate_interval: p.job_terminate_interval,
            simulated: self.site.personal() && self.site.conf.base.lsf.sim_exec(),
            task_gone: true,
            usage_of_others: true,
        }
    }

    fn dial(&mut self, context: &mut StepContext, whose: Whose) {
        let (host, daemon) = match whose {
            Whose::Host(i) => (self.links.hosts()[i].name.clone(), Daemon::Sbatchd),
            Whose::Lim => (self.me.clone(), Daemon::Lim),
        };
        let conn = self.links.dial(whose);
        context.out.push(Effect::Connect { conn, to: Endpoint::Tcp { host, daemon } });
    }

    pub(crate) fn net_opened(&mut self, context: &mut StepContext, conn: ConnId) {
        if self.nlb_servers.has(conn) {
            return self.nlb_opened(context, conn);
        }
        let Some(whose) = self.links.whose(conn) else { return };
        match whose {
            Whose::Lim => {
                self.links.lim_opened(conn);
                context.send(conn, Msg::Lim(LimMsg::Subscribe { loads: true }));
                self.tell_exclusive(context);
            }
            Whose::Host(i) => {
                let right = matches!(self.peers.get(&conn), Some(Peer::Daemon { host, .. })
                    if *host == self.links.hosts()[i].name);
                if !right {
                    context.say(log::Level::Error, "another host answered than the one dialled");
                    context.out.push(Effect::Close { conn });
                    return;
                }
                let params = self.sbd_params();
                // it may come back with what was given up
                let back = self.links.host_opened(i, conn, context.now);
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
        self.nlb_closed(conn, why, context.now.mono_us);
        self.net_closed(context, conn);
    }

    pub(crate) fn net_closed(&mut self, context: &mut StepContext, conn: ConnId) {
        if self.nlb_closed(conn, "the connection was lost", context.now.mono_us) {
            self.peers.remove(&conn);
        }
        let Some((whose, was_up)) = self.links.closed(conn, context.now) else { return };
        self.peers.remove(&conn);
        let name = match whose {
            Whose::Host(host) => {
                self.validations_lost(host);
                self.unreached.look_again();
                self.sched.host_changed(host);
                "sbatchd"
            }
            Whose::Lim => {
                self.sched.changed();
                "lim"
            }
        };
        if was_up {
            context.say(log::Level::Warn, format!("lost the connection to a {name}"));
        }
    }

    /// Dials what is due, probes what is silent.
    pub(crate) fn net_tick(&mut self, context: &mut StepContext) {
        if !self.links.is_on() {
            return;
        }
        let now = context.now.mono_us;
        if self.links.deadline().is_none_or(|d| d > now) {
            return;
        }
        if self.links.lim_is_due(now) {
            self.dial(context, Whose::Lim);
        }
        let silent = PING_SECS * u64::from(self.site.params().max_sbd_fail.max(1)) * US;
        for i in self.links.due_hosts(now) {
            match self.links.work_of(i, context.now, silent) {
                Some(LinkWork::Dial) => self.dial(context, Whose::Host(i)),
                Some(LinkWork::Ping(conn)) => context.send(conn, Msg::Ping { n: now }),
                Some(LinkWork::Close(conn)) => {
                    let name = &self.links.hosts()[i].name;
                    context.say(log::Level::Warn, format!("sbatchd on {name} is silent"));
                    context.out.push(Effect::Close { conn });
                    self.net_closed(context, conn);
                }
                None => {}
            }
        }
    }

    /// The host behind a connection; notes that it is alive.
    pub(crate) fn host_of(&mut self, context: &StepContext, conn: ConnId) -> Option<HostId> {
        self.links.heard(conn, context.now)
    }

    pub(crate) fn heard(&mut self, context: &StepContext, conn: ConnId) {
        let _ = self.host_of(context, conn);
    }

    /// The inventory has been worked through: orders may go out.
    pub(crate) fn host_ready(&mut self, i: HostId) {
        if self.links.host_ready(i) {
            self.note_room();
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
        if self.links.whose(conn) != Some(Whose::Lim) {
            return self.refuse_caller(context, conn);
        }
        if let LimMsg::Loads { hosts } = msg {
            for load in hosts {
                let Some(i) = self.site.host_id(&load.host) else { continue };
                let before = self.links.hosts()[i].load.as_ref();
                let is_same = |before| same_facts(&self.site.names, before, &load);
                let same = before.is_some_and(is_same);
                self.links.take_load(i, load, same);
                self.reserve.measured(&self.state, &self.site, i);
                self.load_checks.heard(i);
                self.sched.host_changed(i);
            }
            if self.links.has_lost() {
                self.unreached.look_again();
            }
            context.say(log::Level::Trace, "loads taken over");
        }
    }

    /// Has LIM lock the hosts on which exclusive jobs run, and no others.
    pub(crate) fn tell_exclusive(&mut self, context: &mut StepContext) {
        let Link::Up { conn } = self.links.lim() else { return };
        let told = self.links.told_alone();
        let empty = self.state.exclusive().is_empty() && told.is_some_and(<[HostId]>::is_empty);
        if empty || !self.links.looks_at_alone(self.sched.changes()) {
            return;
        }
        let runs = self.state.exclusive().iter().filter_map(|at| self.state.elem(*at)?.run());
        let mut hosts: Vec<HostId> = runs.flat_map(|run| run.hosts.iter().map(|h| h.0)).collect();
        hosts.sort_unstable();
        hosts.dedup();
        if Some(&hosts[..]) != self.links.told_alone() {
            let names = hosts.iter().map(|h| self.state.names().host(*h).to_string()).collect();
            self.links.tell_alone(hosts);
            context.send(conn, Msg::Lim(LimMsg::Exclusive { hosts: names }));
        }
    }
}

/// Is everything that a new load tells of a host, other than numbers, as it was? And is the host
/// available as before, or not?
fn same_facts(names: &Names, before: &HostLoad, now: &HostLoad) -> bool {
    let words =
        |pair: &&(String, String)| !matches!(names.kind(&pair.0), Some(ResKind::Numeric { .. }));
    let (old, new) = (before.external.iter().filter(words), now.external.iter().filter(words));
    let available = (before.status ^ now.status) & status::UNAVAIL == 0;
    available && (now.facts.is_none() || now.facts == before.facts) && old.eq(new)
}
