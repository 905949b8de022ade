//! The load balancer's daemons as they start in the world, and what is seen of them.

use super::balancer::{self, DIR, POLICIES, ROUTED_TO, SERVER, WHOLE_HOSTS};
use super::world::{DaemonMachine, World};
use crate::log::replace::{replace, settle};
use crate::nlb::{Collector, CollectorConf, NlbConf, NlbServer, StartFiles, start};
use crate::proto::nlb::{NlbMsg, NlbStored};
use crate::proto::{Daemon, Msg};

/// Seconds between two reports of a collector.
const INTERVAL: u32 = 60;

impl World {
    /// The daemons that the launcher of a host keeps running.
    pub(super) fn daemons_of(&self, host: usize) -> Vec<Daemon> {
        let mut daemons = vec![Daemon::Lim, Daemon::Sbatchd];
        if self.balancer.is_some() {
            daemons.push(Daemon::Ccollect);
            daemons.extend((host == SERVER).then_some(Daemon::NlbServer));
        }
        daemons.extend(self.tasks.on().then_some(Daemon::Res));
        daemons
    }

    /// Whether a host has a collector and nothing else.
    pub(super) fn only_collects(&self, host: usize) -> bool {
        self.balancer.is_some() && host >= WHOLE_HOSTS
    }

    pub(super) fn new_collector(&mut self, host: usize) -> DaemonMachine {
        let conf = CollectorConf {
            host: self.hosts[host].name.clone(),
            hosts: self.conf.base.hosts.clone(),
            servers: vec![balancer::address()],
            queue: ROUTED_TO.into(),
            tmp: "/tmp".into(),
            interval: INTERVAL,
            window: 300,
            files: Vec::new(),
            programs: Vec::new(),
        };
        DaemonMachine::Collect(Box::new(Collector::new(conf, self.rng.draw())))
    }

    /// The server starts with the files that it finds.
    pub(super) fn new_nlb_server(&mut self) -> Result<DaemonMachine, String> {
        let now = self.now(SERVER);
        let Some(balancer) = &mut self.balancer else { return Err("there is none".into()) };
        let disk = balancer.disk.clone();
        settle(&mut disk.clone()).map_err(|e| e.to_string())?;
        let policies = balancer::file(&disk, POLICIES)?.ok_or("there are no policies")?;
        let files = StartFiles {
            config: None,
            name_map: balancer::file(&disk, NlbStored::NameMap.name())?,
            objects: balancer::file(&disk, NlbStored::Objects.name())?,
            policies: Ok(policies),
            last: balancer::file(&disk, NlbStored::PoliciesLast.name())?,
        };
        balancer.found(&files)?;
        let begins = start(DIR, &files).map_err(|faults| faults.join("\n"))?;
        if begins.new_policies {
            let (last, text) = (NlbStored::PoliciesLast.name(), begins.policies_text());
            replace(&mut disk.clone(), last, text.as_bytes(), false).map_err(|e| e.to_string())?;
        }
        let base = &self.conf.base;
        let conf = NlbConf {
            host: self.hosts[SERVER].name.clone(),
            dir: DIR.into(),
            admins: base.cluster.admins.clone(),
            servers: self.hosts.iter().map(|h| h.name.clone()).collect(),
            hosts: base.hosts.clone(),
            queue: ROUTED_TO.into(),
            zone: jiff::tz::TimeZone::UTC,
        };
        let server = NlbServer::new(conf, begins, now);
        balancer.begins_with(server.in_force().1)?;
        Ok(DaemonMachine::Nlb(Box::new(server)))
    }

    /// A turn of the server is over: the policies in force are known by their generation.
    pub(super) fn look_at_policies(&mut self, p: usize) {
        if let (Some(DaemonMachine::Nlb(server)), Some(balancer)) =
            (&self.procs[p].mach, &mut self.balancer)
        {
            let told = balancer.in_force(server.in_force());
            told.err().into_iter().for_each(|why| self.check.fail(why));
        }
    }

    /// A daemon sends a message.
    pub(super) fn look_at_answer(&mut self, p: usize, msg: &Msg) {
        if let (Msg::Nlb(NlbMsg::Ranked(ranking)), Daemon::NlbServer, Some(balancer)) =
            (msg, self.procs[p].daemon, &self.balancer)
        {
            let told = balancer.answers(ranking);
            told.err().into_iter().for_each(|why| self.check.fail(why));
        }
    }

    /// All mail that mbatchd ordered up to this ticket is durable; `None`: the rest is void.
    pub(super) fn mails_leave(&mut self, durable: Option<u64>) {
        if let Some(balancer) = &mut self.balancer {
            let told = balancer.durable(durable);
            told.err().into_iter().for_each(|why| self.check.fail(why));
        }
    }
}
