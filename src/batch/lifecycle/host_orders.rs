//! Orders to hosts: start, signal, suspend, resume, terminate, new limits. An order leaves after
//! the events it rests on are durable; one that is lost is made good by the host's next inventory.

use crate::batch::state::names::HostId;
use crate::batch::state::{Elem, ElemState, Run};
use crate::batch::{Mbatchd, StepContext};
use crate::model::{JobKey, JobRef};
use crate::proto::Msg;
use crate::proto::machine::Effect;
use crate::proto::sbd::{Act, SbdMsg};
use std::collections::HashSet;

impl Mbatchd {
    /// An order to a host, after what it rests on is durable. A host without a link hears of it
    /// when it is back: the inventory settles everything.
    pub(crate) fn order(&mut self, context: &mut StepContext, i: HostId, msg: SbdMsg) {
        if let Some(conn) = self.links.hosts()[i].reached() {
            context.out.push(Effect::SendDurable { conn, msg: Msg::Sbd(msg) });
        }
    }

    pub(crate) fn act(&mut self, context: &mut StepContext, key: JobKey, i: HostId, act: Act) {
        let (seq, order) = self.next_act();
        let suspends = act == Act::Suspend;
        let why = self.state.running(key).filter(|_| suspends).map_or(0, Run::suspending_reason);
        if suspends || act == Act::Resume {
            self.state.order_sent(key, !suspends);
        }
        let everywhere = match &act {
            Act::Terminate { .. } | Act::Signal { .. } | Act::Suspend | Act::Resume => true,
            // the others look at processes and tasks, too
            Act::Limits(limits) => limits.memory_of.is_some(),
            _ => false,
        };
        // the other hosts first: a job that is stopped has stopped tasks
        let others: Vec<HostId> = self.fanout.hosts_of(key).map(|(host, _)| host).collect();
        for host in others.into_iter().filter(|host| everywhere && *host != i) {
            self.order(context, host, SbdMsg::Act { key, seq, order, act: act.clone(), why });
        }
        self.order(context, i, SbdMsg::Act { key, seq, order, act, why });
    }

    /// The hosts of an attempt in their order, each once.
    pub(crate) fn hosts_of_attempt(&self, key: JobKey) -> Vec<HostId> {
        let run = self.state.elem(key.job_ref()).and_then(Elem::run).filter(|r| r.key == key);
        let hosts = run.into_iter().flat_map(|run| run.hosts.iter()).map(|host| host.0);
        let mut seen = HashSet::new();
        hosts.filter(|host| self.links.hosts().contains(*host) && seen.insert(*host)).collect()
    }

    pub(crate) fn act_on(&mut self, context: &mut StepContext, key: JobKey, act: Act) {
        let Some(i) = self.state.running(key).and_then(|r| self.first_host(r)) else { return };
        // where the first host has not been told of the start there is nothing to wait for
        if matches!(act, Act::Terminate { .. }) {
            self.fanout.start_waits_no_longer(key);
        }
        self.act(context, key, i, act);
    }

    /// A number for an order to act, larger than any before, across restarts; and before it the
    /// short one that an older sbatchd goes by.
    pub(crate) fn next_act(&mut self) -> (u32, u64) {
        let acts = self.links.next_act();
        let short = ((self.epoch & 0xffff) << 16) | (acts & 0xffff);
        (short as u32, (self.epoch << 32) | acts)
    }

    /// Notes the changed reservation of an element, and tells its host the limits.
    pub(crate) fn tell_limits_of(&mut self, context: &mut StepContext, at: JobRef) {
        self.reserve.refresh(&self.state, &self.site, at);
        let Some(job) = self.state.job(at.job) else { return };
        let Some(ElemState::Run(r)) = job.elem(at.idx).map(|e| &e.state) else { return };
        let (key, limits) = (r.key, Box::new(self.host_limits(job, r)));
        self.act_on(context, key, Act::Limits(limits));
    }
}
