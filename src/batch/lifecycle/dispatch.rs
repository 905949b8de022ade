//! Runs the scheduler where a pass is due, and carries out what it decides.

use crate::batch::sched::{Allocation, Alternative, DUE_PER_TURN, Decision, Fuel, units_of_job};
use crate::batch::state::names::HostId;
use crate::batch::usage::fairshare::account::AccountId;
use crate::batch::{Mbatchd, StepContext};
use crate::model::JobRef;
use crate::model::event::Forced;
use std::sync::Arc;

impl Mbatchd {
    /// Runs a pass if one is due.
    pub(crate) fn schedule_due(&mut self, context: &mut StepContext) {
        // what is due is due when all jobs were looked at
        if self.works.is_refilling() {
            return;
        }
        for id in self.sched.begun(context.now) {
            self.refresh(id);
            self.sched.need_pass();
        }
        for _ in 0..DUE_PER_TURN {
            let Some(at) = self.sched.next_lone(context.now) else { break };
            self.refresh_at(at);
            self.sched.need_pass();
        }
        self.slot_reservations_due(context);
        self.look_at_pool_hosts();
        if self.sched.begin_pass(context.now) {
            self.share_slots_out();
            let mut fuel = Fuel::of_a_turn();
            while let Some(decision) = self.next_decision(&mut fuel) {
                fuel.spend_decision(&decision);
                self.carry_out(context, decision);
            }
            self.sched.end_turn();
        }
    }

    /// Shares the slots of slot pools out for the pass that is about to begin. A pass that goes
    /// on keeps its shares; another follows it then.
    fn share_slots_out(&mut self) {
        if self.site.slot_pools.is_empty() || !self.sched.begins_pass() {
            return;
        }
        let site = self.site.clone();
        let hosts: Vec<HostId> = match self.sched.changed_hosts() {
            Some(hosts) => hosts.collect(),
            None => site.hosts.ids().collect(),
        };
        for host in hosts {
            let offer = self.view().slot_offer(host);
            self.slot_shares.set_host(&site, host, offer);
        }
        let mut shares = std::mem::take(&mut self.slot_shares);
        let view = self.view();
        shares.share_out(&site, &self.state, |queue, enough| {
            self.sched.slot_demand(&view, queue, enough)
        });
        self.slot_shares = shares;
    }

    /// Has guaranteed pools follow the hosts that a pass will look at anew.
    fn look_at_pool_hosts(&mut self) {
        if self.site.pools.is_empty() {
            return;
        }
        match self.sched.changed_hosts() {
            Some(hosts) => {
                let of_pool = hosts.filter(|host| !self.site.pools.of_host(*host).is_empty());
                of_pool.for_each(|host| self.guarantees.note_host(host));
            }
            None => self.guarantees.note_all_hosts(),
        }
        self.guarantees.note_resources();
        self.refresh_guarantees();
    }

    fn next_decision(&mut self, fuel: &mut Fuel) -> Option<Decision> {
        let (sched, view) = self.sched_and_view();
        sched.next_decision(&view, fuel)
    }

    /// Carries one decision out; decides nothing.
    fn carry_out(&mut self, context: &mut StepContext, decision: Decision) {
        match decision {
            Decision::Start(allocation) => self.start_allocated(context, allocation),
            Decision::Grow(given) => self.grow(context, given),
            Decision::Preempt(preemption) => self.preempt(context, preemption),
            Decision::Release { at } => self.release_claim(context, at),
            Decision::Resume { at } => self.resume_preempted(context, at),
            Decision::Reserve(reserve) => self.keep_slots(context, reserve),
        }
    }

    /// Starts a job or element, and those that start with it.
    fn start_allocated(&mut self, context: &mut StepContext, allocation: Allocation) {
        let Allocation { at, further, hosts, req, account } = allocation;
        let requirement = req.as_ref().map(|r| r.text.clone()).unwrap_or_default();
        let account = account.and_then(|account| self.account_of_several(at, account));
        let units = self.units_for(at, req.as_deref(), &hosts);
        if units.is_none() {
            let text = format!("no processor units are left for job <{}>", at.job);
            context.say(log::Level::Error, text);
        }
        let how = (Forced::No, account.unwrap_or_default(), units.unwrap_or_default());
        let mates = self.mates_of(at);
        self.start_on(context, (at, &further), hosts, requirement, how);
        self.form_chunk(context, at, mates);
    }

    /// The processor units of a job that starts on these hosts, as text; `None`: too few are left.
    fn units_for(
        &self,
        at: JobRef,
        req: Option<&Alternative>,
        hosts: &[(HostId, u32)],
    ) -> Option<Arc<str>> {
        let Some(req) = req else { return Some(Arc::default()) };
        let queue = self.state.job(at.job).and_then(|job| self.site.queue(job.queue_at(at.idx)))?;
        units_of_job(&self.view(), queue, req, hosts)
    }

    /// The path of the share account that a start is charged to, where its user has several.
    fn account_of_several(&self, at: JobRef, account: AccountId) -> Option<Arc<str>> {
        let job = self.state.job(at.job)?;
        let (tree, group) = (self.fairshare.tree(account), &job.spec_at(at.idx).user_group);
        let leaves = self.fairshare.leaves(tree, job.user, group)?;
        (leaves.len() > 1).then(|| self.fairshare.path(account).into())
    }
}

#[cfg(test)]
impl Mbatchd {
    /// Why a job finds no host.
    pub fn reasons_of(&self, job: u32) -> std::rc::Rc<crate::batch::sched::Reasons> {
        self.sched.reasons(&self.view(), crate::model::JobRef { job, idx: 0 }, 0)
    }
}
