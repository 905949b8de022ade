//! The exits of jobs on each host during the last time, and the jobs that have ended too soon: soft
//! state, which a restart begins anew. The events that count are in `lifecycle::exceptions`.

use crate::batch::state::names::HostId;
use crate::model::Now;
use crate::model::exception::JobException;
use crate::model::idmap::IdMap;
use crate::model::time::US;
use std::collections::VecDeque;

/// Parts into which the time of a count is divided: a host needs so many numbers at most.
const PARTS: u64 = 60;
/// Most ended jobs that wait for the next look.
const MOST_WAITING: usize = 10_000;

/// The exits on one host.
#[derive(Debug, Default)]
struct HostExits {
    /// The exits since an instant, seconds of the monotonic clock; oldest first.
    parts: VecDeque<(u64, u32)>,
    /// The exception that lasts has been told.
    told: bool,
}

impl HostExits {
    fn count(&self, now: u64, span: u64) -> u32 {
        let lately = self.parts.iter().filter(|part| part.0.saturating_add(span) > now);
        lately.fold(0, |sum, part| sum.saturating_add(part.1))
    }
}

/// The exits on all hosts, and the jobs that have ended too soon.
#[derive(Debug, Default)]
pub struct ExitRates {
    hosts: IdMap<HostId, HostExits>,
    /// Jobs that have ended too soon since the last look.
    ended: Vec<JobException>,
}

fn secs(now: Now) -> u64 {
    now.mono_us / US
}

impl ExitRates {
    /// A job has exited on a host; exits count for so many seconds.
    pub(crate) fn add(&mut self, host: HostId, now: Now, span: u64) {
        let now = secs(now);
        let exits = self.hosts.entry(host).or_default();
        while exits.parts.front().is_some_and(|part| part.0.saturating_add(span) <= now) {
            exits.parts.pop_front();
        }
        match exits.parts.back_mut() {
            Some(part) if now < part.0.saturating_add((span / PARTS).max(1)) => {
                part.1 = part.1.saturating_add(1);
            }
            _ => exits.parts.push_back((now, 1)),
        }
    }

    /// The exits on a host during the last `span` seconds.
    pub(crate) fn count(&self, host: HostId, now: Now, span: u64) -> u32 {
        self.hosts.get(&host).map_or(0, |exits| exits.count(secs(now), span))
    }

    /// The hosts with more exits than `threshold` says that have not been told since their exits
    /// became so many, with these numbers. They are told now.
    pub(crate) fn take_new(
        &mut self,
        (now, span): (Now, u64),
        most: usize,
        threshold: impl Fn(HostId) -> Option<u32>,
    ) -> Vec<(HostId, u32, u32)> {
        let now = secs(now);
        let mut new = Vec::new();
        for (host, exits) in self.hosts.iter_mut() {
            let count = exits.count(now, span);
            match threshold(*host).filter(|most| count > *most) {
                None => exits.told = false,
                Some(threshold) if !exits.told && new.len() < most => {
                    exits.told = true;
                    new.push((*host, count, threshold));
                }
                Some(_) => {}
            }
        }
        self.hosts.retain(|_, exits| exits.count(now, span) > 0);
        new.sort_unstable();
        new
    }

    /// An administrator has opened a host: its exits are counted anew.
    pub(crate) fn forget(&mut self, host: HostId) {
        self.hosts.remove(&host);
    }

    /// A job has ended too soon.
    pub(crate) fn note_ended(&mut self, job: JobException) {
        if self.ended.len() < MOST_WAITING {
            self.ended.push(job);
        }
    }

    /// The first jobs that have ended too soon since the last look.
    pub(crate) fn take_ended(&mut self, most: usize) -> Vec<JobException> {
        let most = most.min(self.ended.len());
        self.ended.drain(..most).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Now {
        Now { mono_us: secs * US, ..Now::default() }
    }

    #[test]
    fn exits_count_for_their_time_in_a_bounded_number_of_parts() {
        let (mut all, host) = (ExitRates::default(), HostId::MIN);
        for n in 0..1000 {
            all.add(host, at(1000 + n), 300);
            assert!(all.hosts[&host].parts.len() <= PARTS as usize + 1);
        }
        let count = all.count(host, at(1999), 300);
        assert!((295..=300).contains(&count), "{count}");
        assert_eq!(all.count(host, at(2299), 300), 0);
        assert_eq!(all.count(HostId::MAX, at(1999), 300), 0);
    }

    #[test]
    fn exception_of_a_host_is_told_once_until_it_is_over() {
        let (mut all, host) = (ExitRates::default(), HostId::MIN);
        let new = |all: &mut ExitRates, secs| all.take_new((at(secs), 60), 10, |_| Some(1));
        all.add(host, at(100), 60);
        assert_eq!(new(&mut all, 101), []);
        all.add(host, at(102), 60);
        assert_eq!(new(&mut all, 103), [(host, 2, 1)]);
        all.add(host, at(104), 60);
        assert_eq!(new(&mut all, 105), []);
        assert_eq!(new(&mut all, 162), [], "one of three counts still");
        all.add(host, at(163), 60);
        assert_eq!(new(&mut all, 163), [(host, 2, 1)]);
        all.forget(host);
        assert_eq!(all.count(host, at(163), 60), 0);
    }
}
