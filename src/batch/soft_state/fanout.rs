//! The hosts of jobs, besides the first one of each, that know of their jobs: mbatchd has them join
//! before the first host is told to start the job, and leave when it is over
//! (`lifecycle::fanout`). Soft state: after a restart the inventories of the hosts tell it anew.
//!
//! Invariants: a job on one host has no entry; a start waits until all hosts have joined or one is
//! too late; the end of a job waits [`LEAVE_MAX`] at most for a host that leaves, and the slots of
//! that host until it has left.

use crate::batch::state::names::HostId;
use crate::model::job::Usage;
use crate::model::take::take_where;
use crate::model::time::US;
use crate::model::{JobKey, JobRef, Now};
use crate::proto::sbd::TaskState;
use std::collections::{BTreeMap, BTreeSet};

/// Longest time that the end of a job waits for a host that it leaves; and the time after which
/// that host is told once more. Microseconds.
pub const LEAVE_MAX: u64 = 10 * US;

/// The usage of an attempt on a host: the sums of its processes, their numbers and groups.
pub(crate) type HostUse = (Usage, Vec<u32>, Vec<u32>);

/// One of these hosts.
#[derive(Debug)]
struct Member {
    host: HostId,
    slots: u32,
    joined: bool,
    /// The attempt is over here.
    left: bool,
    used: HostUse,
}

impl Member {
    fn new((host, slots): (HostId, u32), joined: bool) -> Member {
        Member { host, slots, joined, left: false, used: HostUse::default() }
    }
}

/// Lets no figure be less than it was: a restarted sbatchd does not know of tasks that had ended
/// before.
fn keep(usage: &mut Usage, before: &Usage) {
    usage.utime_us = usage.utime_us.max(before.utime_us);
    usage.stime_us = usage.stime_us.max(before.stime_us);
    usage.max_mem_kb = usage.max_mem_kb.max(before.max_mem_kb);
    usage.max_swap_kb = usage.max_swap_kb.max(before.max_swap_kb);
}

/// The end of an attempt, which its first host has told: it counts when the others have left.
#[derive(Debug)]
pub(crate) struct HeldEnd {
    pub(crate) host: HostId,
    pub(crate) told: Box<TaskState>,
    until: u64,
}

/// A started attempt on several hosts.
#[derive(Debug, Default)]
struct FannedJob {
    members: Vec<Member>,
    /// The start waits until this instant, microseconds.
    until: Option<u64>,
    /// The usage that the first host has told last.
    first: HostUse,
    /// Most memory and swap that all hosts have used together, KB.
    peak: (u64, u64),
    held: Option<HeldEnd>,
    /// The script has ended: the hosts leave, and none is to join again.
    over: bool,
    /// The first host waits until this instant for the usage of the others, microseconds.
    asked: Option<u64>,
    /// Most processes and threads that all hosts have had together.
    most: (u32, u32),
}

impl FannedJob {
    /// No host of it besides the first one is to tell any more that it has left.
    fn has_left_all(&self) -> bool {
        self.members.iter().all(|m| m.left || !m.joined)
    }

    /// Most memory and swap that all hosts have used together as far as is known, KB. The hosts
    /// have had their own peaks at different times: the sum of these says nothing, and the largest
    /// is the least that it was.
    fn most_together(&self) -> (u64, u64) {
        let hosts = std::iter::once(&self.first).chain(self.members.iter().map(|m| &m.used));
        hosts.fold(self.peak, |(mem, swap), used| {
            (mem.max(used.0.max_mem_kb), swap.max(used.0.max_swap_kb))
        })
    }
}

/// A host that is to tell that a job has left it.
#[derive(Clone, Copy, Debug, Default)]
struct Leave {
    /// When it is told once more, microseconds.
    until: u64,
    /// How often it was late.
    late: u32,
}

/// The attempts on several hosts.
#[derive(Debug, Default)]
pub struct Fanout {
    jobs: BTreeMap<JobKey, FannedJob>,
    /// The starts that wait, by the instant when they fail.
    waiting: BTreeSet<(u64, JobKey)>,
    /// The ends that are held, by the instant until which they are.
    holding: BTreeSet<(u64, JobKey)>,
    /// The first hosts that wait for the usage of the others, by the instant until which they do.
    asking: BTreeSet<(u64, JobKey)>,
    /// Hosts that are to tell that a job has left them.
    leaving: BTreeMap<(JobKey, HostId), Leave>,
    /// Attempts that may have ended, or have other hosts now.
    touched: BTreeSet<JobKey>,
}

impl Fanout {
    /// A job or element has changed; idx 0 of an array: all of it. `several`: the attempt that it
    /// has now, where that is on several hosts.
    pub(crate) fn note_change(&mut self, at: JobRef, several: Option<JobKey>) {
        self.touched.extend(several);
        if self.jobs.is_empty() {
            return;
        }
        let key = |idx, attempt| JobKey { job: at.job, idx, attempt };
        let last = if at.idx == 0 { u32::MAX } else { at.idx };
        let known = self.jobs.range(key(at.idx, 0)..=key(last, u32::MAX));
        self.touched.extend(known.map(|(key, _)| *key));
    }

    pub(crate) fn take_touched(&mut self) -> BTreeSet<JobKey> {
        std::mem::take(&mut self.touched)
    }

    /// A start waits for these hosts, with their slots; those that have not joined yet.
    pub(crate) fn wait(&mut self, key: JobKey, hosts: &[(HostId, u32)], until: u64) -> Vec<HostId> {
        let job = self.jobs.entry(key).or_default();
        for &(host, slots) in hosts {
            if !job.members.iter().any(|m| m.host == host) {
                job.members.push(Member::new((host, slots), false));
            }
        }
        let asked: Vec<_> = job.members.iter().filter(|m| !m.joined).map(|m| m.host).collect();
        if !asked.is_empty() && job.until.is_none() {
            job.until = Some(until);
            self.waiting.insert((until, key));
        }
        asked
    }

    /// A host has slots of the attempt, and knows that or not.
    pub(crate) fn note(&mut self, key: JobKey, (host, slots): (HostId, u32), joined: bool) {
        let job = self.jobs.entry(key).or_default();
        match job.members.iter_mut().find(|m| m.host == host) {
            Some(member) => (member.slots, member.joined) = (slots, joined),
            None => job.members.push(Member::new((host, slots), joined)),
        }
    }

    /// A host that knows of the attempt has so many slots of it now. Is that a change?
    pub(crate) fn slots_change(&mut self, key: JobKey, (host, slots): (HostId, u32)) -> bool {
        let members = self.jobs.get_mut(&key).into_iter().flat_map(|job| &mut job.members);
        let mut known = members.filter(|m| m.host == host);
        known.next().is_some_and(|m| std::mem::replace(&mut m.slots, slots) != slots)
    }

    /// A host has joined; `None`: it was not asked to. Else whether it was the last one that a
    /// start has waited for.
    pub(crate) fn joined(&mut self, key: JobKey, host: HostId) -> Option<bool> {
        let job = self.jobs.get_mut(&key)?;
        job.members.iter_mut().find(|m| m.host == host)?.joined = true;
        Some(self.take_complete(key))
    }

    /// Whether nothing keeps a waiting start any more, which then waits no longer.
    pub(crate) fn take_complete(&mut self, key: JobKey) -> bool {
        let Some(job) = self.jobs.get_mut(&key) else { return false };
        let complete = job.members.iter().all(|m| m.joined);
        match job.until.take_if(|_| complete) {
            Some(until) => self.waiting.remove(&(until, key)),
            None => false,
        }
    }

    /// A start that waits for hosts is given up as if they were too late.
    pub(crate) fn start_waits_no_longer(&mut self, key: JobKey) {
        let Some(until) = self.jobs.get_mut(&key).and_then(|job| job.until.as_mut()) else {
            return;
        };
        self.waiting.remove(&(*until, key));
        *until = 0;
        self.waiting.insert((0, key));
    }

    /// Is this host asked to join, or has it joined?
    pub(crate) fn has(&self, key: JobKey, host: HostId) -> bool {
        self.hosts_of(key).any(|(known, _)| known == host)
    }

    /// The hosts of an attempt besides its first one, with their slots.
    pub(crate) fn hosts_of(&self, key: JobKey) -> impl Iterator<Item = (HostId, u32)> + '_ {
        self.jobs
            .get(&key)
            .into_iter()
            .flat_map(|job| job.members.iter())
            .map(|m| (m.host, m.slots))
    }

    /// The host has slots of the attempt no longer, or need not know of it.
    pub(crate) fn forget_host(&mut self, key: JobKey, host: HostId) {
        if let Some(job) = self.jobs.get_mut(&key) {
            job.members.retain(|m| m.host != host);
        }
    }

    /// The attempt is over: the hosts that are to leave, with their slots.
    pub(crate) fn end(&mut self, key: JobKey) -> Vec<(HostId, u32)> {
        let Some(job) = self.jobs.remove(&key) else { return Vec::new() };
        if let Some(until) = job.until {
            self.waiting.remove(&(until, key));
        }
        if let Some(held) = &job.held {
            self.holding.remove(&(held.until, key));
        }
        if let Some(until) = job.asked {
            self.asking.remove(&(until, key));
        }
        job.members.iter().filter(|m| !m.left).map(|m| (m.host, m.slots)).collect()
    }

    /// The usage of an attempt on all of its hosts, after the first one, or another, has told its
    /// own; `None`: the attempt is on one host.
    pub(crate) fn used(
        &mut self,
        key: JobKey,
        host: Option<HostId>,
        used: HostUse,
    ) -> Option<HostUse> {
        let job = self.jobs.get_mut(&key)?;
        match host {
            None => job.first = used,
            Some(host) => {
                let member = job.members.iter_mut().find(|m| m.host == host)?;
                let before = std::mem::replace(&mut member.used, used).0;
                keep(&mut member.used.0, &before);
            }
        }
        let mut all = job.first.clone();
        for member in &job.members {
            all.0.add(&member.used.0);
            all.1.extend(&member.used.1);
            all.2.extend(&member.used.2);
        }
        let (mem, swap) = &mut job.peak;
        (*mem, *swap) = ((*mem).max(all.0.mem_kb), (*swap).max(all.0.swap_kb));
        let (procs, threads) = &mut job.most;
        (*procs, *threads) = ((*procs).max(all.0.nprocs), (*threads).max(all.0.nthreads));
        (all.0.max_mem_kb, all.0.max_swap_kb) = job.most_together();
        Some(all)
    }

    /// The usage of an attempt on each of its several hosts, `first` the first one; none: it is on
    /// one host.
    pub(crate) fn by_host(&self, key: JobKey, first: HostId) -> Vec<(HostId, &HostUse)> {
        let Some(job) = self.jobs.get(&key) else { return Vec::new() };
        let others = job.members.iter().filter(|m| m.joined).map(|m| (m.host, &m.used));
        let all: Vec<_> = std::iter::once((first, &job.first)).chain(others).collect();
        if all.len() > 1 { all } else { Vec::new() }
    }

    /// The first host tells the end of an attempt: the others are to leave, and the end counts when
    /// they have, at `until` at the latest. These hosts leave; `None`: there are none to wait for.
    pub(crate) fn hold_end(
        &mut self,
        key: JobKey,
        (host, told): (HostId, &TaskState),
        until: u64,
    ) -> Option<Vec<HostId>> {
        let job = self.jobs.get_mut(&key)?;
        job.first = (told.usage, Vec::new(), Vec::new());
        if let Some(held) = &mut job.held {
            *held.told = told.clone();
            return Some(Vec::new());
        }
        let joined = job.members.iter().filter(|m| m.joined);
        joined.clone().next()?;
        let staying = joined.filter(|m| !m.left).map(|m| m.host).collect();
        job.held = Some(HeldEnd { host, told: Box::new(told.clone()), until });
        self.holding.insert((until, key));
        Some(staying)
    }

    /// Takes the end that is held of an attempt that has left all other hosts already.
    pub(crate) fn take_complete_end(&mut self, key: JobKey) -> Option<HeldEnd> {
        let job = self.jobs.get(&key).filter(|job| job.has_left_all())?;
        job.held.as_ref()?;
        self.take_held(key)
    }

    /// The first host tells that the script of an attempt has ended, and waits for the usage on the
    /// others until an instant: those which are to leave now; `None`: none knows of it.
    pub(crate) fn ask_usage(&mut self, key: JobKey, until: u64) -> Option<Vec<HostId>> {
        let job = self.jobs.get_mut(&key)?;
        if let Some(before) = job.asked.replace(until) {
            self.asking.remove(&(before, key));
        }
        self.asking.insert((until, key));
        let again = std::mem::replace(&mut job.over, true);
        let staying = job.members.iter().filter(|m| m.joined && !m.left && !again);
        Some(staying.map(|m| m.host).collect())
    }

    /// Has the script of the attempt ended?
    pub(crate) fn is_over(&self, key: JobKey) -> bool {
        self.jobs.get(&key).is_some_and(|job| job.over)
    }

    /// Whether its first host is to be told now what an attempt has used on the others: it waits
    /// for that, and they have left. Then it waits no longer.
    pub(crate) fn take_asked(&mut self, key: JobKey) -> bool {
        let Some(job) = self.jobs.get_mut(&key) else { return false };
        let all = job.has_left_all();
        match job.asked.take_if(|_| all) {
            Some(until) => self.asking.remove(&(until, key)),
            None => false,
        }
    }

    /// Takes the attempts whose first host has waited long enough for the usage of the others.
    pub(crate) fn take_late_asked(&mut self, now: Now) -> Vec<JobKey> {
        let waiting = self.asking.split_off(&(now.mono_us + 1, JobKey::default()));
        let late = std::mem::replace(&mut self.asking, waiting);
        let keys: Vec<JobKey> = late.into_iter().map(|(_, key)| key).collect();
        for key in &keys {
            if let Some(job) = self.jobs.get_mut(key) {
                job.asked = None;
            }
        }
        keys
    }

    /// The usage of an attempt on the hosts besides its first one that it has left, which are
    /// named; the peaks are those of all hosts together.
    pub(crate) fn used_by_others(&self, key: JobKey) -> (Usage, Vec<HostId>) {
        let mut usage = Usage::default();
        let Some(job) = self.jobs.get(&key) else { return (usage, Vec::new()) };
        let left = job.members.iter().filter(|m| m.left);
        left.clone().for_each(|member| usage.add(&member.used.0));
        (usage.max_mem_kb, usage.max_swap_kb) = job.most_together();
        (usage.nprocs, usage.nthreads) = job.most;
        (usage, left.map(|member| member.host).collect())
    }

    /// A host has left an attempt, with this usage of its own: the end that has waited for it.
    pub(crate) fn has_left(&mut self, key: JobKey, host: HostId, usage: Usage) -> Option<HeldEnd> {
        let job = self.jobs.get_mut(&key)?;
        let member = job.members.iter_mut().find(|m| m.host == host)?;
        let before = std::mem::replace(&mut member.used, (usage, Vec::new(), Vec::new())).0;
        keep(&mut member.used.0, &before);
        member.left = true;
        self.take_complete_end(key)
    }

    /// Takes an end that is held, with the usage of all hosts.
    fn take_held(&mut self, key: JobKey) -> Option<HeldEnd> {
        let job = self.jobs.get_mut(&key)?;
        let mut held = job.held.take()?;
        self.holding.remove(&(held.until, key));
        let usage = &mut held.told.usage;
        job.members.iter().for_each(|member| usage.add(&member.used.0));
        (usage.max_mem_kb, usage.max_swap_kb) = job.most_together();
        Some(held)
    }

    /// Takes the ends that have waited long enough.
    pub(crate) fn take_late_ends(&mut self, now: Now) -> Vec<HeldEnd> {
        let late = self.holding.iter().take_while(|(until, _)| *until <= now.mono_us);
        let keys: Vec<JobKey> = late.map(|(_, key)| *key).collect();
        keys.into_iter().filter_map(|key| self.take_held(key)).collect()
    }

    /// A host is told to leave.
    pub(crate) fn leaves(&mut self, now: Now, key: JobKey, host: HostId) {
        self.leaving.entry((key, host)).or_default().until = now.mono_us + LEAVE_MAX;
    }

    /// Is a host to tell that a job has left it?
    pub(crate) fn is_leaving(&self, key: JobKey, host: HostId) -> bool {
        self.leaving.contains_key(&(key, host))
    }

    /// A job has left a host. Was that awaited?
    pub(crate) fn left(&mut self, key: JobKey, host: HostId) -> bool {
        self.leaving.remove(&(key, host)).is_some()
    }

    /// The starts that have waited too long, each with a host that has not joined.
    pub(crate) fn late_starts(&self, now: Now) -> Vec<(JobKey, HostId)> {
        let late = self.waiting.iter().take_while(|(until, _)| *until <= now.mono_us);
        let silent = |key: &JobKey| {
            let member = self.jobs.get(key)?.members.iter().find(|m| !m.joined)?;
            Some((*key, member.host))
        };
        late.filter_map(|(_, key)| silent(key)).collect()
    }

    /// Takes the hosts that have not told in time that a job has left them, and how often each was
    /// late before.
    pub(crate) fn take_late_leaves(&mut self, now: Now) -> Vec<(JobKey, HostId, u32)> {
        let late = take_where(&mut self.leaving, |_, leave| leave.until <= now.mono_us);
        late.into_iter().map(|((key, host), leave)| (key, host, leave.late)).collect()
    }

    /// A host was late so often, and is told once more.
    pub(crate) fn leaves_late(&mut self, now: Now, (key, host): (JobKey, HostId), late: u32) {
        self.leaving.insert((key, host), Leave { until: now.mono_us + LEAVE_MAX, late });
    }

    pub(crate) fn deadline(&self) -> Option<u64> {
        let touched = (!self.touched.is_empty()).then_some(0);
        let waiting = self.waiting.first().map(|(until, _)| *until);
        let leaving = self.leaving.values().map(|leave| leave.until).min();
        let holding = self.holding.first().map(|(until, _)| *until);
        let asking = self.asking.first().map(|(until, _)| *until);
        [touched, waiting, leaving, holding, asking].into_iter().flatten().min()
    }
}
