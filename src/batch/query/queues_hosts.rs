//! bqueues and bhosts.

use crate::batch::cluster::hosts::HostStatus;
use crate::batch::cluster::nlb_lists::Standing;
use crate::batch::site::units::hosts_named;
use crate::batch::site::{External, Queue};
use crate::batch::state::names::HostId;
use crate::batch::state::started_elements::Slots;
use crate::batch::{Mbatchd, StepContext};
use crate::conf::nlb_objects::date;
use crate::conf::types::AffinityCpus;
use crate::lang::resreq::SelectContext;
use crate::model::reason::err;
use crate::proto::Refusal;
use crate::proto::client::{ClientMsg, HostInfo, HostUnits, QueueInfo};
use crate::proto::machine::ConnId;
use std::collections::BTreeSet;

/// Thresholds of external indices by name, as `sched/stop`.
pub(crate) fn bounds_shown(of: &External) -> Vec<(String, String)> {
    let side = |v: Option<f64>| v.map_or(String::new(), |v| v.to_string());
    of.iter().map(|b| (b.name.clone(), format!("{}/{}", side(b.sched), side(b.stop)))).collect()
}

impl Mbatchd {
    pub(crate) fn list_queues(
        &mut self,
        context: &mut StepContext,
        conn: ConnId,
        names: &[String],
        user: &str,
        host: &str,
    ) {
        if let Some(bad) = names.iter().find(|n| self.site.find_queue(n).is_none()) {
            return context.refuse(conn, Refusal::about(err::BAD_QUEUE, bad));
        }
        let hosts = self.site.expand_servers(host);
        if !host.is_empty() && hosts.is_empty() {
            return context.refuse(conn, Refusal::about(err::BAD_HOST, host));
        }
        let asked: BTreeSet<&String> = names.iter().collect();
        let mut rows = Vec::new();
        for q in &self.site.queues {
            let name_fits = names.is_empty() || asked.contains(&q.conf.name);
            let user_fits =
                user.is_empty() || user == "all" || self.site.may_use(&q.conf, user, None);
            let host_fits = hosts.is_empty()
                || q.hosts.as_ref().is_none_or(|set| hosts.iter().any(|h| set.contains_key(h)));
            if name_fits && user_fits && host_fits {
                rows.push(self.queue_info(q));
            }
        }
        context.reply(conn, ClientMsg::QueueRows { rows });
    }

    fn queue_info(&self, q: &Queue) -> QueueInfo {
        let c = &q.conf;
        let s = self.state.counts().queue(q.id);
        let control = self.state.queue_control(q.id).cloned().unwrap_or_default();
        QueueInfo {
            name: c.name.clone(),
            description: c.description.clone(),
            priority: i64::from(c.priority),
            nice: c.nice,
            open: !control.closed,
            active: !control.inactive,
            window_closed: self.view().queue_shut(q.id),
            is_default: self.site.default_queues().contains(&c.name),
            max: c.qjob_limit.map(u64::from),
            jl_u: c.ujob_limit.map(u64::from),
            jl_p: c.pjob_limit,
            jl_h: c.hjob_limit.map(u64::from),
            njobs: s.all(),
            pend: s.pend,
            run: s.run,
            ssusp: s.ssusp,
            ususp: s.ususp,
            rsv: self.view().reserved_by(|of| of.queue == q.id),
            pjobs: s.pend_jobs,
            accept_interval_secs: self.site.accept_interval(c),
            sleep_secs: self.site.params().mbd_sleep_time,
            params: self.parameters_shown(q),
            thresholds: q.bounds.to_vec(),
            external: bounds_shown(&q.external),
            admin_comment: control.comment,
            shares: self.shares_of_queue(q),
        }
    }

    /// The parameters of a queue as they are written; behind NLB_POLICY which list is in force.
    fn parameters_shown(&self, q: &Queue) -> Vec<(String, String)> {
        let mut all: Vec<(String, String)> =
            q.conf.raw.iter().map(|(k, v)| (k.clone(), v.text.clone())).collect();
        for (_, text) in all.iter_mut().filter(|(name, _)| name == "NLB_POLICY") {
            text.push_str(&format!(" ({})", self.list_words(q)));
        }
        all
    }

    /// The list of the load balancer that is in force for the jobs of a queue.
    fn list_words(&self, q: &Queue) -> String {
        let Some(policy) = &q.conf.nqs.nlb_policy else { return String::new() };
        let all: Vec<HostId> = match &q.hosts {
            Some(hosts) => hosts.keys().copied().collect(),
            None => self.links.hosts().ids().collect(),
        };
        match self.nlb_lists.latest(&policy.name) {
            None => "not read yet".to_owned(),
            Some((_, Standing::Listed(list))) if list.unknown => {
                format!("no such policy: {} is applied", list.policy)
            }
            Some((read, Standing::Listed(list))) => {
                let listed = all.iter().filter(|host| list.get(**host).is_some()).count();
                let time = date(read, self.windows.zone());
                format!("read {time}, {listed} of {} hosts", all.len())
            }
            Some((_, Standing::Awaited)) => "not read yet".to_owned(),
            Some((_, Standing::Unanswered)) if policy.hold => {
                "no NLB server answers: jobs wait".to_owned()
            }
            Some((_, Standing::Unanswered)) => {
                "no NLB server answers: hosts are chosen without it".to_owned()
            }
        }
    }

    pub(crate) fn list_hosts(
        &mut self,
        context: &mut StepContext,
        conn: ConnId,
        names: &[String],
        req: &str,
    ) {
        let parsed = match req.is_empty() {
            true => Ok(None),
            false => self.site.names.parse(req).map(Some),
        };
        let Ok(req) = parsed else {
            return context.refuse(conn, Refusal::about(err::BAD_RESREQ, req));
        };
        let (mut wanted, mut seen) = (BTreeSet::new(), BTreeSet::new());
        for n in names.iter().filter(|n| seen.insert(*n)) {
            let hosts = match self.site.expand_host(n) {
                none if none.is_empty() => hosts_named(&self.site.conf, n),
                hosts => hosts,
            };
            let servers: Vec<_> =
                hosts.into_iter().filter(|h| self.site.host_id(h).is_some()).collect();
            if servers.is_empty() {
                return context.refuse(conn, Refusal::about(err::BAD_HOST, n));
            }
            wanted.extend(servers);
        }
        let mut rows = Vec::new();
        for i in self.links.hosts().ids() {
            if !names.is_empty() && !wanted.contains(&self.links.hosts()[i].name) {
                continue;
            }
            if let Some(simple) = req.as_ref().and_then(|r| r.first())
                && !simple.selects(&self.view().snapshot(i), &SelectContext::default())
            {
                continue;
            }
            rows.push(self.host_info(i));
        }
        context.reply(conn, ClientMsg::HostRows { rows });
    }

    fn host_info(&self, i: HostId) -> HostInfo {
        let rt = &self.links.hosts()[i];
        let site = &self.site.hosts[i];
        let s = self.state.counts().host(i).map_or(Slots::default(), |h| h.slots);
        let (status, kept) = (self.view().host_status(i), self.view().reserved_slots(i));
        // what is reserved is full for nearly all
        let full = kept > 0 && kept >= self.view().free_slots(i);
        let status = match status {
            HostStatus::Ok if full => HostStatus::ClosedFull,
            status => status,
        };
        let known = status != HostStatus::Unavail;
        let control = self.state.host_control(i).filter(|c| c.shut());
        let (reserved, reserved_external) = self.reserve.shown(&self.site, i);
        HostInfo {
            name: rt.name.clone(),
            status: status.text().to_string(),
            cpu_factor: rt.cpu_factor(),
            jl_u: self.site.rules.slots_of_each_user(i).map(|amount| amount.on(|| 0)),
            max: self.view().host_max(i),
            njobs: s.started() + kept,
            run: s.run,
            ssusp: s.ssusp,
            ususp: s.ususp,
            rsv: kept,
            dispatch_window: site.dispatch_window.clone(),
            load: rt
                .load
                .clone()
                .filter(|_| known)
                .map(|l| self.reserve.as_scheduled(&self.site, i, l)),
            reserved,
            reserved_external,
            thresholds: site.bounds.to_vec(),
            external: bounds_shown(&site.external),
            admin_comment: control.map_or(String::new(), |c| c.comment.clone()),
            migration: site.mig,
            not_acted_on: site.not_acted_on.clone(),
            affinity: self.units_shown(i),
            exit_rate: self.exit_rate(i),
            condensed: self.site.condensed.of(i).map(str::to_owned).collect(),
        }
    }

    /// AFFINITY of a host, with what its jobs have; `None`: it offers no units.
    fn units_shown(&self, i: HostId) -> Option<Box<HostUnits>> {
        let cpus = match &self.site.hosts[i].affinity {
            AffinityCpus::None => return None,
            AffinityCpus::All => String::new(),
            AffinityCpus::List(list) => list.to_string(),
        };
        let used = self.processor_units.on(i);
        let taken = used.map_or(String::new(), |used| used.cpus().to_string());
        let memory = used.map_or(Vec::new(), |used| used.memory().collect());
        Some(Box::new(HostUnits { cpus, taken, memory }))
    }
}
