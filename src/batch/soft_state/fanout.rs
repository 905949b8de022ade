//! The hosts of jobs, besides the first one of each, that know of their jobs: mbatchd has them join
//! before the first host is told to start the job, and leave when it is over
//! (`lifecycle::fanout`). Soft state: after a restart the inventories of the hosts tell it anew.
//!
//! Invariants: a job on one host has no entry; a start waits until all hosts have joined or one is
//! too late; a host that leaves is waited for, [`LEAVE_MAX`] at most.

use crate::batch::state::names::HostId;
use crate::model::take::take_where;
use crate::model::time::US;
use crate::model::{JobKey, JobRef, Now};
use std::collections::{BTreeMap, BTreeSet};

/// Longest time that a host has to tell that a job has left it, microseconds.
pub const LEAVE_MAX: u64 = 10 * US;

/// One of these hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Member {
    host: HostId,
    slots: u32,
    joined: bool,
}

/// A started attempt on several hosts.
#[derive(Debug, Default)]
struct FannedJob {
    members: Vec<Member>,
    /// The start waits until this instant, microseconds.
    until: Option<u64>,
}

/// The attempts on several hosts.
#[derive(Debug, Default)]
pub struct Fanout {
    jobs: BTreeMap<JobKey, FannedJob>,
    /// The starts that wait, by the instant when they fail.
    waiting: BTreeSet<(u64, JobKey)>,
    /// Hosts that are to tell that a job has left them, and until when.
    leaving: BTreeMap<(JobKey, HostId), u64>,
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
                job.members.push(Member { host, slots, joined: false });
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
            None => job.members.push(Member { host, slots, joined }),
        }
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
        job.members.iter().map(|m| (m.host, m.slots)).collect()
    }

    /// A host is told to leave.
    pub(crate) fn leaves(&mut self, now: Now, key: JobKey, host: HostId) {
        self.leaving.insert((key, host), now.mono_us + LEAVE_MAX);
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

    /// Takes the hosts that have not told in time that a job has left them.
    pub(crate) fn take_late_leaves(&mut self, now: Now) -> Vec<(JobKey, HostId)> {
        let late = take_where(&mut self.leaving, |_, until| *until <= now.mono_us);
        late.into_iter().map(|(at, _)| at).collect()
    }

    pub(crate) fn deadline(&self) -> Option<u64> {
        let touched = (!self.touched.is_empty()).then_some(0);
        let waiting = self.waiting.first().map(|(until, _)| *until);
        let leaving = self.leaving.values().min().copied();
        [touched, waiting, leaving].into_iter().flatten().min()
    }
}
