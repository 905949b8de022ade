//! Started jobs that want further slots (bsub -ar, bresize request): which they are, and which
//! hosts they are given.
//!
//! The pass comes to the jobs of a queue that want to grow when it has been through the pending
//! jobs of that queue, and asks the same policies for each slot as for the start of a job. A job
//! that found none is looked at again when hosts have changed, and then on these alone; one that
//! its queue or user has no room for, in each pass.

use crate::batch::sched::Sched;
use crate::batch::sched::class_key::ClassKey;
use crate::batch::sched::decision::{Allocation, Decision, Fuel};
use crate::batch::sched::joint_room::JointRoom;
use crate::batch::sched::place::{HostMatch, SharedRoom, same};
use crate::batch::sched::policy::rests_until;
use crate::batch::sched::view::View;
use crate::batch::sched::walk_state::Walk;
use crate::batch::site::Queue;
use crate::batch::state::names::{HostId, HostSet};
use crate::batch::state::{ElemState, Job, Run};
use crate::conf::types::Resizable;
use crate::lang::resreq::Span;
use crate::model::JobRef;
use std::collections::BTreeSet;
use std::rc::Rc;

/// Pause after a notification command has not taken further slots, seconds.
pub const AGAIN_SECS: i64 = 60;

impl Sched {
    /// Looks again whether an element wants further slots; idx 0 of an array: all started ones.
    pub(crate) fn refresh_growth(&mut self, view: &View, at: JobRef) {
        let Some(job) = view.state.job(at.job) else { return self.growth.remove(at) };
        if at.idx != 0 || !job.is_array() {
            return self.refresh_grower(view, job, at);
        }
        let may = (0..=job.parts().len() as u32).any(|part| {
            let queue = view.site.queue(job.queue_of(part));
            view.site.settings(job.spec_of(part), queue).resizable() == Resizable::Auto
        });
        if may || !self.growth.is_empty() {
            for idx in job.array().into_iter().flat_map(|array| array.started()) {
                self.refresh_grower(view, job, JobRef { job: at.job, idx });
            }
        }
    }

    fn refresh_grower(&mut self, view: &View, job: &Job, at: JobRef) {
        let run = match job.elem(at.idx).map(|e| &e.state) {
            Some(ElemState::Run(run)) => run,
            _ => return self.growth.remove(at),
        };
        if view.wanted_slots(job, run).is_none() {
            return self.growth.remove(at);
        }
        let failed = run.resize.as_ref().map_or(0, |resize| resize.failed_at);
        let rests = (failed > 0).then(|| view.now.mono_of_wall(failed + AGAIN_SECS));
        let rests = rests.filter(|until| *until > view.now.mono_us);
        self.growth.insert(job.queue_at(at.idx), at, rests);
        self.needed = true;
    }

    /// The next job of a queue that gets further slots; `None`: none does, or the turn is over.
    pub(super) fn grow_next(
        &mut self,
        view: &View,
        queue: &Queue,
        walk: &mut Walk,
        fuel: &mut Fuel,
    ) -> Option<Decision> {
        while let Some((at, unseen)) = self.growth.next(queue.id, walk.grower) {
            if fuel.is_empty() {
                return None;
            }
            walk.grower = Some(at);
            fuel.spend(1);
            if !unseen && walk.changed.is_empty() {
                continue;
            }
            let only = (!unseen).then_some(&walk.changed);
            match self.find_growth(view, queue, at, only, fuel) {
                Ok(Some(decision)) => return Some(decision),
                Ok(None) => self.growth.set_unseen(at, false),
                Err(NoRoom) => self.growth.set_unseen(at, true),
            }
        }
        walk.grower = None;
        None
    }

    /// Slots for a job that wants some; `Err`: queue or user have none left.
    fn find_growth(
        &mut self,
        view: &View,
        queue: &Queue,
        at: JobRef,
        only: Option<&HostSet>,
        fuel: &mut Fuel,
    ) -> Result<Option<Decision>, NoRoom> {
        let Some(job) = view.state.job(at.job) else { return Ok(None) };
        let Some(elem) = job.elem(at.idx) else { return Ok(None) };
        let ElemState::Run(run) = &elem.state else { return Ok(None) };
        let Some(wanted) = view.wanted_slots(job, run) else { return Ok(None) };
        let class = self.class_of(view, (job, job.part_no(at.idx)), &[]);
        let limits = self.classes.limits(view, class);
        let room = self.policies.user(view, queue, &limits).slots;
        if room < u64::from(wanted.least) {
            return Err(NoRoom);
        }
        let most = view.site.settings(job.spec_at(at.idx), Some(queue)).most_tasks();
        let max = wanted.most.min(most.saturating_sub(run.slots()));
        if max < wanted.least {
            return Ok(None);
        }
        let kind = self.classes.get(class).kind.clone();
        // lists of the load balancer are read for jobs that wait
        let kind = ClassKey { min: 1, max, time: None, nlb: None, ..ClassKey::clone(&kind) };
        let (compiled, looks) = self.classes.compiled(view, class);
        fuel.spend(looks + kind.looks());
        // the slots are found by the requirement by which the job was started
        let own = job.effective_requirement(elem);
        let alternatives = &compiled.requirement.alternatives;
        let same = |req: &&Option<Rc<_>>| {
            let req: Option<&Rc<crate::batch::sched::place::Alternative>> = req.as_ref();
            req.map(|req| &req.text) == own
        };
        let req = alternatives.iter().find(same).or(alternatives.first()).cloned().flatten();
        // the slots of a job whose tasks differ are what they are
        if req.as_deref().is_some_and(|req| req.is_compound()) {
            return Ok(None);
        }
        // processor units are those of the start
        if !run.affinity.is_empty() {
            return Ok(None);
        }
        let look =
            HostMatch::new((view, queue, room), (&kind, &limits), &compiled.asked, req.as_deref());
        let look = look.of_growing_job();
        let hosts = self.further_hosts(&look, run, only, fuel);
        let slots: u32 = hosts.iter().map(|host| host.1).sum();
        if slots < wanted.least {
            return Ok(None);
        }
        let hosts = hosts.into();
        Ok(Some(Decision::Grow(Allocation::new(at, hosts, req, None))))
    }

    /// Hosts with slots for a job: its own first, then the others, best first.
    fn further_hosts(
        &mut self,
        look: &HostMatch,
        run: &Run,
        only: Option<&HostSet>,
        fuel: &mut Fuel,
    ) -> Vec<(HostId, u32)> {
        let span = look.simple.and_then(|simple| simple.span.as_ref());
        let of_host = |host: HostId, has: u32, free: u32| match span {
            Some(span) if span.ptile.is_some() => look.tile(span, host, has.saturating_add(free)),
            Some(Span { stripe: Some(Some(limit)), .. }) => *limit,
            _ => u32::MAX,
        };
        let block = span.and_then(|span| span.block).unwrap_or(1).max(1);
        let same = look.simple.map_or(&[][..], |simple| &simple.same);
        let first = run.hosts.first().map(|host| host.0);
        let alike = |host: HostId| {
            same.is_empty() || first.is_some_and(|first| same::alike(look, same, (first, host)))
        };
        let own_units = look.units_of(&run.hosts);
        let asked = |host: HostId| only.is_none_or(|only| only.contains(host));
        let own = run.hosts.iter().map(|host| host.0).filter(|host| self.hosts.is_open(*host));
        let mut hosts: Vec<HostId> = own.filter(|host| asked(*host)).collect();
        if !look.one_host() {
            let order = look.simple.and_then(|simple| simple.order.as_ref());
            let order = self.hosts.order(&look.view, order);
            let others = self.hosts.after(order, None).map(|rank| rank.host());
            let known: BTreeSet<HostId> = hosts.iter().copied().collect();
            hosts.extend(others.filter(|host| asked(*host) && !known.contains(host)));
        }
        let (mut left, mut found) = (look.max(), Vec::new());
        let limit = look.queue.conf.tasks.hosts.map_or(usize::MAX, |limit| limit as usize);
        let mut further = limit.saturating_sub(run.hosts.len());
        let mut joint = JointRoom::new(look);
        joint.has(&run.hosts);
        let mut room = SharedRoom::new(look);
        for host in hosts {
            if left == 0 {
                break;
            }
            fuel.spend(1);
            let own = run.hosts.iter().any(|own| own.0 == host);
            if further == 0 && !own {
                continue;
            }
            let has: u32 = run.hosts.iter().filter(|own| own.0 == host).map(|own| own.1).sum();
            let Ok(slots) = self.policies.host(look, host) else {
                if let Some(until) = rests_until(look, host) {
                    self.hosts.rest(host, until);
                }
                continue;
            };
            let slots = slots.min(u64::from(left)) as u32;
            let slots = slots.min(of_host(host, has, slots).saturating_sub(has));
            let slots = (slots / block * block).min(room.slots(host));
            let slots = joint.slots(host, slots.into()) as u32;
            if slots > 0 && alike(host) && own_units.allow(host) {
                joint.give(host, slots.into());
                room.take(host, slots);
                found.push((host, slots));
                left -= slots;
                further -= usize::from(!own);
            }
        }
        found
    }
}

/// Queue or user have fewer slots left than a job wants at once.
#[derive(Debug)]
struct NoRoom;
