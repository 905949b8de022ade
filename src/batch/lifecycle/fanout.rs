//! Jobs on several hosts: before the first host starts one, the others hear of it, and when it is
//! over they are to leave (`soft_state::fanout`; lsf.conf(5), LSB_FANOUT_TIMEOUT_PER_LAYER).
//!
//! | what happens | what the other hosts are told |
//! |---|---|
//! | the start is logged | Join; the first host is told when all have joined |
//! | one refuses, or says nothing in time | Leave; the job is pending again, elsewhere if it can |
//! | the job is killed before all have joined | Leave; the job has ended |
//! | the job is over, or goes on without the host | Leave; the slots are free when it has left |
//! | the job grows, or is smaller there | Join, and nothing waits |
//! | a host has told its inventory | Join or Leave, where it does not know what it should |
//!
//! A job on one host has none of this, and a host of an older release is told nothing.

use crate::batch::soft_state::fanout::{HeldEnd, HostUse, LEAVE_MAX};
use crate::batch::state::names::HostId;
use crate::batch::state::{Phase, Run};
use crate::batch::{Mbatchd, StepContext};
use crate::model::JobKey;
use crate::model::action::JobAction;
use crate::model::event::HostUsage;
use crate::model::job::Usage;
use crate::model::reason::{PendReason, term};
use crate::model::time::US;
use crate::proto::sbd::{Act, AttemptPhase, SbdMsg, TaskState};
use std::collections::{BTreeMap, HashSet};

/// Seconds that hosts have to join, where LSB_FANOUT_TIMEOUT_PER_LAYER says nothing.
const JOIN_WAIT: u64 = 20;

impl Mbatchd {
    /// Has the first host start an attempt, as soon as the others have joined.
    pub(crate) fn send_start(&mut self, context: &mut StepContext, key: JobKey) {
        let others = self.other_hosts(key);
        if !others.is_empty() {
            let secs = self.site.conf.base.lsf.int("LSB_FANOUT_TIMEOUT_PER_LAYER", JOIN_WAIT);
            let until = context.now.after(secs.max(1));
            let asked = self.fanout.wait(key, &others, until);
            for host in &asked {
                self.send_join(context, key, *host);
            }
            if !asked.is_empty() {
                return;
            }
        }
        self.start_now(context, key);
    }

    fn start_now(&mut self, context: &mut StepContext, key: JobKey) {
        let first = self.state.running(key).and_then(|run| self.first_host(run));
        let Some((host, order)) = first.zip(self.start_order(key)) else { return };
        self.order(context, host, SbdMsg::Start(order));
    }

    /// The hosts of a started attempt besides its first one that can join it, with their slots.
    fn other_hosts(&self, key: JobKey) -> Vec<(HostId, u32)> {
        let Some(run) = self.state.running(key).filter(|run| run.hosts.len() > 1) else {
            return Vec::new();
        };
        let slots = |host: HostId| run.hosts.iter().filter(|h| h.0 == host).map(|h| h.1).sum();
        let joins = |host: &HostId| self.links.hosts()[*host].joins != Some(false);
        let others = self.hosts_of_attempt(key).into_iter().skip(1).filter(joins);
        others.map(|host| (host, slots(host))).collect()
    }

    fn send_join(&mut self, context: &mut StepContext, key: JobKey, host: HostId) {
        let Some(mut order) = self.start_order(key) else { return };
        order.boot = self.links.hosts()[host].boot_id.clone();
        self.order(context, host, SbdMsg::Join(order));
    }

    /// A host is to leave an attempt: until it has, its slots are not free.
    fn send_leave(&mut self, context: &mut StepContext, key: JobKey, (host, slots): (HostId, u32)) {
        if self.links.hosts().get(host).is_none_or(|host| host.reached().is_none()) {
            return;
        }
        self.fanout.leaves(context.now, key, host);
        self.links.left_runs(host, key, slots);
        self.order(context, host, SbdMsg::Leave { key });
    }

    /// A host says that it has joined.
    pub(crate) fn join_told(&mut self, context: &mut StepContext, i: HostId, key: JobKey) {
        match self.fanout.joined(key, i) {
            // it was told to leave meanwhile
            None if self.fanout.is_leaving(key, i) => {}
            None => self.refuse_report(context, i, "the joining", key.job_ref()),
            Some(true) => self.start_now(context, key),
            Some(false) => {}
        }
    }

    /// A host says that it cannot join.
    pub(crate) fn join_refused(
        &mut self,
        context: &mut StepContext,
        i: HostId,
        key: JobKey,
        why: &str,
    ) {
        if !self.fanout.has(key, i) {
            return self.refuse_report(context, i, "the joining", key.job_ref());
        }
        self.fanout_failed(context, key, i, why);
    }

    /// A job has left a host, with this usage there: the end that has waited for that.
    pub(crate) fn leave_told(
        &mut self,
        context: &mut StepContext,
        i: HostId,
        (key, usage): (JobKey, Usage),
    ) -> Option<HeldEnd> {
        if !self.fanout.left(key, i) {
            if !self.was_member(key, i) {
                self.refuse_report(context, i, "the leaving", key.job_ref());
            }
            return None;
        }
        if self.links.left_over(i, key) {
            self.sched.host_changed(i);
        }
        self.fanout.has_left(key, i, usage)
    }

    /// The first host tells the end of an attempt. Does that count only when the others have left?
    pub(crate) fn holds_end(
        &mut self,
        context: &mut StepContext,
        i: HostId,
        t: &TaskState,
    ) -> bool {
        let until = context.now.mono_us + LEAVE_MAX;
        let Some(hosts) = self.fanout.hold_end(t.key, (i, t), until) else { return false };
        for host in hosts {
            self.fanout.leaves(context.now, t.key, host);
            self.order(context, host, SbdMsg::Leave { key: t.key });
        }
        true
    }

    /// Another host than the first one tells what an attempt uses there.
    pub(crate) fn host_usage(
        &mut self,
        context: &mut StepContext,
        i: HostId,
        key: JobKey,
        used: HostUse,
        over_memory: bool,
    ) {
        match self.fanout.used(key, Some(i), used) {
            Some(all) if self.state.running(key).is_some() => {
                self.take_usage_of_all(context, key, all);
                if over_memory {
                    self.act_on(context, key, Act::Terminate { exit_info: term::MEMLIMIT });
                }
            }
            _ if self.was_member(key, i) => {}
            _ => self.refuse_report(context, i, "usage", key.job_ref()),
        }
    }

    /// The end of a task of an attempt on one of its hosts is to end the job (RTASK_GONE_ACTION).
    pub(crate) fn task_gone(
        &mut self,
        context: &mut StepContext,
        i: HostId,
        key: JobKey,
        status: i32,
    ) {
        if !self.hosts_of_attempt(key).contains(&i) {
            return self.refuse_report(context, i, "the end of a task", key.job_ref());
        }
        if self.state.running(key).is_none_or(|run| run.killed.is_some()) {
            return;
        }
        let host = &self.links.hosts()[i].name;
        let how = match status & 0x7f {
            0 => format!("with exit code {}", status >> 8 & 0xff),
            signal => format!("by signal {signal}"),
        };
        let text = format!("{key}: a task on {host} has ended {how}: the job is ended");
        context.say(log::Level::Info, text);
        self.end_for(context, key, JobAction::EndByTask, term::EXTERNAL_SIGNAL);
    }

    /// Is this a host of an attempt besides its first one, or was it until the attempt ended? Words
    /// of it may have crossed the end.
    fn was_member(&self, key: JobKey, i: HostId) -> bool {
        self.hosts_of_attempt(key).into_iter().skip(1).any(|host| host == i)
    }

    /// The usage of an attempt on its first host, which counts with that of the others.
    pub(crate) fn first_usage(&mut self, context: &mut StepContext, key: JobKey, used: HostUse) {
        match self.fanout.used(key, None, used.clone()) {
            Some(all) => self.take_usage_of_all(context, key, all),
            None => self.take_usage(context, key, used),
        }
    }

    /// The usage of an attempt on each of its several hosts, for the record of its end.
    pub(crate) fn hosts_used(&self, key: JobKey) -> Box<[HostUsage]> {
        let first = self.state.running(key).and_then(|run| self.first_host(run));
        let Some(first) = first else { return Box::default() };
        let name = |host: HostId| self.state.names().host(host).to_string().into();
        let all = self.usage_by_host(key, first).into_iter();
        HostUsage::of_all(&all.map(|(host, used)| (name(host), used.0)).collect::<Vec<_>>())
    }

    /// The usage of an attempt on several hosts: the limits of the job are those of the sum.
    fn take_usage_of_all(&mut self, context: &mut StepContext, key: JobKey, all: HostUse) {
        let over = self.over_limit(key, &all.0);
        self.take_usage(context, key, all);
        if let Some(exit_info) = over {
            self.act_on(context, key, Act::Terminate { exit_info });
        }
    }

    /// The limit of the job that its hosts exceed together, by the number of the end that follows.
    fn over_limit(&self, key: JobKey, used: &Usage) -> Option<u32> {
        let (job, run) = self.state.job(key.job).zip(self.state.running(key))?;
        let limits = self.host_limits(job, run);
        let enforced = self.site.conf.base.lsf.limit_enforcement();
        // with -hl each host has the limit for itself
        let of_job = !job.spec_at(key.idx).further.per_host.0;
        let of_all = limits.memory_of.map_or(enforced.memory_of_job, |of| of.job);
        let by_host = of_all || enforced.memory_by_group || limits.hard_memory;
        let over = |limit: Option<u64>, used: u64| limit.is_some_and(|limit| used > limit);
        if of_job && by_host && over(limits.rss, used.mem_kb) {
            Some(term::MEMLIMIT)
        } else if of_job && over(limits.swap, used.swap_kb) {
            Some(term::SWAP)
        } else if enforced.cpu_of_job && over(limits.cpu, (used.utime_us + used.stime_us) / US) {
            Some(term::CPULIMIT)
        } else if over(limits.process, u64::from(used.nprocs)) {
            Some(term::PROCESSLIMIT)
        } else if over(limits.thread, u64::from(used.nthreads)) {
            Some(term::THREADLIMIT)
        } else {
            None
        }
    }

    fn take_usage(&mut self, context: &StepContext, key: JobKey, (usage, pids, groups): HostUse) {
        let now = context.now.secs();
        if self.state.report_usage(key, now, usage, (pids, groups)) {
            self.reserve.used(&self.state, key.job_ref());
            self.fairshare.used(&self.state, &self.site, key.job_ref(), now);
            self.note_shares();
        }
    }

    /// A host has not joined: the attempt never ran. An attempt that runs already goes on without
    /// it.
    fn fanout_failed(&mut self, context: &mut StepContext, key: JobKey, i: HostId, why: &str) {
        let name = self.links.hosts()[i].name.clone();
        let starting = |run: &&Run| run.phase == Phase::Starting;
        let run = self.state.running(key).filter(starting);
        let Some(first) = run.and_then(|run| self.first_host(run)) else {
            self.fanout.forget_host(key, i);
            return context.say(log::Level::Warn, format!("{name} has not joined {key}: {why}"));
        };
        let told = TaskState {
            key,
            phase: AttemptPhase::Failed { reason: PendReason::Fanout.number() },
            note: format!("{name}: {why}"),
            pre_host: name,
            ..TaskState::default()
        };
        self.start_failed(context, first, &told, PendReason::Fanout.number());
    }

    /// The jobs of other first hosts that a host knows of, at the end of its inventory; `None`: a
    /// host of an older release. `unjoined`: those of them that join again. `slots`: what each of
    /// the members has there, 0 where the host does not know it.
    pub(crate) fn members_told(
        &mut self,
        context: &mut StepContext,
        i: HostId,
        members: Option<Vec<JobKey>>,
        (unjoined, slots): (Vec<JobKey>, Vec<u32>),
    ) {
        self.links.set_joins(i, members.is_some());
        let joins = members.is_some();
        let slots = slots.into_iter().chain(std::iter::repeat(0));
        let told: BTreeMap<JobKey, u32> = members.into_iter().flatten().zip(slots).collect();
        let unjoined: HashSet<JobKey> = unjoined.into_iter().collect();
        let here = self.state.counts().started_on(i);
        let runs = here.filter_map(|at| self.state.elem(at)?.run().map(|run| run.key));
        let runs: Vec<JobKey> = runs.filter(|key| self.state.running(*key).is_some()).collect();
        let mut wanted = HashSet::new();
        for key in runs {
            let other = self.other_hosts(key).into_iter().find(|(host, _)| *host == i);
            let Some(member) = other.filter(|_| !self.fanout.is_over(key)) else {
                if !joins {
                    self.fanout.forget_host(key, i);
                    self.start_if_complete(context, key);
                }
                continue;
            };
            wanted.insert(key);
            let joined = told.contains_key(&key) && !unjoined.contains(&key);
            self.fanout.note(key, member, joined);
            let other_slots = told.get(&key).is_some_and(|slots| ![0, member.1].contains(slots));
            if joined {
                if other_slots {
                    self.send_join(context, key, i);
                }
                self.act_again(context, key, i);
                self.start_if_complete(context, key);
                continue;
            }
            self.send_join(context, key, i);
            // tasks that ran on meanwhile hear of it, too
            if told.contains_key(&key) {
                self.act_again(context, key, i);
            }
        }
        for (key, told) in told.into_iter().filter(|(key, _)| !wanted.contains(key)) {
            let slots = self.slots_had(key, i).unwrap_or(told).max(1);
            self.send_leave(context, key, (i, slots));
        }
    }

    fn start_if_complete(&mut self, context: &mut StepContext, key: JobKey) {
        if self.fanout.take_complete(key) {
            self.start_now(context, key);
        }
    }

    /// A host is back with a job: it hears of what it may have missed.
    fn act_again(&mut self, context: &mut StepContext, key: JobKey, i: HostId) {
        let Some(run) = self.state.running(key) else { return };
        let act = match (run.killed, run.phase) {
            (Some(exit_info), _) => Act::Terminate { exit_info },
            (None, Phase::Ususp(_) | Phase::Ssusp(_)) => Act::Suspend,
            (None, Phase::Running) => Act::Resume,
            (None, _) => return,
        };
        let (seq, order) = self.next_act();
        self.order(context, i, SbdMsg::Act { key, seq, order, act, why: 0 });
    }

    /// Follows attempts that have ended or have other hosts now: the hosts that are to leave keep
    /// their slots from the scheduler.
    pub(crate) fn settle_fanout(&mut self, context: &mut StepContext) {
        for key in self.fanout.take_touched() {
            if self.state.running(key).is_none() {
                for member in self.fanout.end(key) {
                    self.send_leave(context, key, member);
                }
                continue;
            }
            let now = self.other_hosts(key);
            let gone = |(host, _): &(HostId, u32)| !now.iter().any(|other| other.0 == *host);
            let left: Vec<_> = self.fanout.hosts_of(key).filter(gone).collect();
            for member in left {
                self.fanout.forget_host(key, member.0);
                self.send_leave(context, key, member);
            }
            for member in now {
                let known = self.fanout.hosts_of(key).find(|(host, _)| *host == member.0);
                if known.is_none() {
                    self.fanout.note(key, member, false);
                } else if !self.fanout.slots_change(key, member) {
                    continue;
                }
                self.send_join(context, key, member.0);
            }
        }
    }

    /// Follows attempts, and gives up hosts that say nothing.
    pub(crate) fn fanout_due(&mut self, context: &mut StepContext) {
        self.settle_fanout(context);
        for (key, host) in self.fanout.late_starts(context.now) {
            let why = match self.killed(key) {
                (None, None, _) => "it has not answered in time",
                _ => "the job was ended before",
            };
            self.fanout_failed(context, key, host, why);
        }
        for (key, host, late) in self.fanout.take_late_leaves(context.now) {
            self.tell_late_leave(context, (key, host), late);
        }
    }

    /// A host has not told in time that a job has left it: it is told once more, and the slots stay
    /// taken. A host that is out of reach tells all that it has when it is back.
    fn tell_late_leave(
        &mut self,
        context: &mut StepContext,
        (key, host): (JobKey, HostId),
        late: u32,
    ) {
        if self.links.hosts().get(host).is_none_or(|host| host.reached().is_none()) {
            return;
        }
        let name = self.state.names().host(host);
        let level = if late == 0 { log::Level::Warn } else { log::Level::Debug };
        let text = format!(
            "{name} has not told that {key} has left it: the slots of the job there stay in use"
        );
        context.say(level, text);
        self.fanout.leaves_late(context.now, (key, host), late.saturating_add(1));
        self.order(context, host, SbdMsg::Leave { key });
    }

    /// The slots that an attempt has or had on a host, where its job has not begun another one.
    pub(crate) fn slots_had(&self, key: JobKey, i: HostId) -> Option<u32> {
        let run = self.state.elem(key.job_ref())?.run().filter(|run| run.key == key)?;
        let here = run.hosts.iter().filter(|host| host.0 == i).map(|host| host.1);
        Some(here.sum()).filter(|slots| *slots > 0)
    }
}
