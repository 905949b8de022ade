//! The hosts that policies of the load balancer choose for jobs, best first, as its servers have
//! told (NLB_POLICY of lsb.queues(5)). `lifecycle::nlb_hosts` asks and fills it.
//!
//! Invariants: a list is of one answer, hence of one generation of policies; a list stays in force
//! until the next one is there, or until no server has answered for [`NO_ANSWER`].

use crate::batch::site::nlb_request::NlbKey;
use crate::batch::state::names::HostId;
use crate::model::Now;
use crate::model::time::US;
use crate::proto::nlb::SortValue;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Time without an answer after which jobs are placed without a list, microseconds.
pub const NO_ANSWER: u64 = 30 * US;
/// Pause before a server is asked again after one that did not answer, microseconds.
const AGAIN: u64 = 2 * US;
/// Most lists: one more takes the place of the one that was read longest ago.
pub const MAX_LISTS: usize = 256;
/// Most policies of which it is known what they look at, beside those with a list.
const MAX_KNOWN: usize = 1_024;
/// Jobs are given other keys, for which the scheduler looks at all of them anew, so often in a
/// period of this length, microseconds.
const REKEYS: u32 = 4;
const REKEY_PERIOD: u64 = 10 * US;
/// Time for which a list is in force before another may take its place, so that its jobs are
/// placed, microseconds.
const KEPT: u64 = 2 * US;

/// A host of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedHost {
    /// The place of the host, from 1.
    pub choice: u32,
    /// The value of the policy's sort.
    pub value: SortValue,
}

/// The hosts of one answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NlbList {
    /// The policy that was applied.
    pub policy: Box<str>,
    /// The policy asked for does not exist: the default was applied.
    pub unknown: bool,
    /// The hosts of this cluster.
    hosts: BTreeMap<HostId, ListedHost>,
    /// These hosts, best first.
    ranked: Box<[HostId]>,
    /// The hosts of the answer.
    pub of: u32,
}

impl NlbList {
    /// The list of an answer of a policy, which does not exist where it is `unknown`, with the
    /// hosts of this cluster out of so many.
    pub fn new(
        (policy, unknown): (&str, bool),
        hosts: impl Iterator<Item = (HostId, ListedHost)>,
        of: u32,
    ) -> NlbList {
        let hosts: BTreeMap<HostId, ListedHost> = hosts.collect();
        let mut ranked: Vec<_> =
            hosts.iter().map(|(host, listed)| (listed.choice, *host)).collect();
        ranked.sort_unstable();
        let ranked = ranked.into_iter().map(|(_, host)| host).collect();
        NlbList { policy: policy.into(), unknown, hosts, ranked, of }
    }

    /// A host of the list.
    pub fn get(&self, host: HostId) -> Option<&ListedHost> {
        self.hosts.get(&host)
    }

    /// The hosts of this cluster, best first.
    pub fn ranked(&self) -> &[HostId] {
        &self.ranked
    }
}

/// The hosts of a policy for jobs.
#[derive(Clone, Debug, PartialEq)]
pub enum Standing {
    /// No server has answered yet.
    Awaited,
    Listed(Rc<NlbList>),
    /// No server has answered for [`NO_ANSWER`].
    Unanswered,
}

#[derive(Debug)]
struct Entry {
    standing: Standing,
    /// When the list was read, seconds since the epoch.
    read: i64,
    /// Another list may take its place from this instant on, microseconds of the monotonic clock.
    kept_until: u64,
    /// The first query that was not answered, microseconds of the monotonic clock.
    silent_since: Option<u64>,
    under_way: bool,
    /// The next query, likewise.
    next: u64,
}

/// The words that a server knows.
#[derive(Debug, Default)]
pub struct KnownWords {
    pub policies: Vec<String>,
    /// The attributes that requests may have, in capital letters.
    pub attributes: BTreeSet<String>,
}

/// All lists.
#[derive(Debug, Default)]
pub struct NlbLists {
    all: BTreeMap<Rc<NlbKey>, Entry>,
    /// The request attributes that policies look at.
    used: BTreeMap<Box<str>, Box<[String]>>,
    /// A policy looks at other attributes than before: jobs are to be given other keys from this
    /// instant on, microseconds of the monotonic clock.
    rekey_at: Option<u64>,
    /// When the period of [`REKEY_PERIOD`] has begun, and how often they were given some in it.
    rekeyed: (u64, u32),
    /// A list that is wanted has no room yet.
    crowded: bool,
    /// Policies of which it was said that they do not exist.
    told_unknown: BTreeSet<Box<str>>,
    /// When it was last said that no server answers, microseconds of the monotonic clock.
    told_silence: Option<u64>,
    /// The words that a server has told of; `None`: none did since it was lost.
    known: Option<KnownWords>,
}

/// The next step for a list.
#[derive(Debug, PartialEq)]
pub enum ListWork {
    /// A server is to be asked.
    Ask(Rc<NlbKey>),
    /// Jobs are placed without it from now on.
    GivenUp(Rc<NlbKey>),
}

impl NlbLists {
    /// The hosts for jobs of a key.
    pub fn standing(&self, key: &NlbKey) -> &Standing {
        self.all.get(key).map_or(&Standing::Awaited, |entry| &entry.standing)
    }

    /// The state of the list of a policy that was read last, and when, seconds since the epoch.
    pub fn latest(&self, policy: &str) -> Option<(i64, &Standing)> {
        let of = self.all.iter().filter(|(key, _)| *key.policy == *policy);
        of.map(|(_, entry)| (entry.read, &entry.standing)).max_by_key(|of| of.0)
    }

    /// When the list of a key was read, seconds since the epoch.
    #[cfg(test)]
    pub fn read_at(&self, key: &NlbKey) -> Option<i64> {
        self.all.get(key).filter(|e| matches!(e.standing, Standing::Listed(_))).map(|e| e.read)
    }

    /// The attributes that a policy looks at; `None`: no answer has told.
    pub fn used(&self, policy: &str) -> Option<&[String]> {
        self.used.get(policy).map(|used| &used[..])
    }

    /// The policies and attributes of a server, while one is heard.
    pub fn known(&self) -> Option<&KnownWords> {
        self.known.as_ref()
    }

    /// The server is heard no more.
    pub(crate) fn forget_policies(&mut self) {
        self.known = None;
    }

    /// The policies of a server are these from now on: every list is asked for again.
    pub(crate) fn note_policies(&mut self, known: KnownWords, now: u64) {
        self.known = Some(known);
        self.told_unknown.clear();
        self.all.values_mut().for_each(|entry| entry.next = now);
    }

    /// Another configuration holds: hosts may have other numbers.
    pub(crate) fn forget_lists(&mut self) {
        self.all.retain(|_, entry| entry.under_way);
        for entry in self.all.values_mut() {
            entry.standing = Standing::Awaited;
        }
    }

    /// The next steps for the lists of keys that jobs want; lists of others are forgotten.
    pub(crate) fn look<'a>(
        &mut self,
        now: u64,
        wanted: impl Iterator<Item = &'a Rc<NlbKey>>,
    ) -> Vec<ListWork> {
        let (mut work, mut fresh) = (Vec::new(), Vec::new());
        let mut unused: Vec<Rc<NlbKey>> = Vec::new();
        let mut known = self.all.iter_mut().peekable();
        for key in wanted {
            while let Some((other, entry)) = known.next_if(|(other, _)| *other < key) {
                unused.extend((!entry.under_way).then(|| other.clone()));
            }
            match known.next_if(|(other, _)| *other == key) {
                Some((_, entry)) => entry.look(now, key, &mut work),
                None => fresh.push(key.clone()),
            }
        }
        unused.extend(known.filter(|(_, e)| !e.under_way).map(|(other, _)| other.clone()));
        for key in unused {
            self.all.remove(&key);
        }
        self.crowded = false;
        for key in fresh {
            if self.all.len() >= MAX_LISTS && !self.drop_oldest(now) {
                self.crowded = true;
                break;
            }
            let entry = Entry {
                standing: Standing::Awaited,
                read: 0,
                kept_until: 0,
                silent_since: Some(now),
                under_way: true,
                next: now,
            };
            self.all.insert(key.clone(), entry);
            work.push(ListWork::Ask(key));
        }
        work
    }

    /// Makes room for one list.
    fn drop_oldest(&mut self, now: u64) -> bool {
        let idle = self.all.iter().filter(|(_, e)| !e.under_way && e.kept_until <= now);
        let oldest = idle.min_by_key(|(_, entry)| entry.kept_until).map(|(key, _)| key.clone());
        oldest.is_some_and(|key| self.all.remove(&key).is_some())
    }

    /// A list was answered; true: it is another one than before. `age`: the time after which it is
    /// asked for again, microseconds.
    pub(crate) fn answered(&mut self, key: &NlbKey, list: NlbList, now: Now, age: u64) -> bool {
        let Some(entry) = self.all.get_mut(key) else { return false };
        let list = Standing::Listed(Rc::new(list));
        (entry.read, entry.next) = (now.secs(), now.mono_us.saturating_add(age));
        entry.kept_until = now.mono_us + KEPT;
        (entry.silent_since, entry.under_way) = (None, false);
        let differs = entry.standing != list;
        entry.standing = list;
        differs
    }

    /// No server has answered.
    pub(crate) fn not_answered(&mut self, key: &NlbKey, now: u64) {
        if let Some(entry) = self.all.get_mut(key) {
            entry.silent_since.get_or_insert(now);
            (entry.under_way, entry.next) = (false, now + AGAIN);
            entry.kept_until = now + KEPT;
        }
    }

    /// An answer tells which attributes a policy looks at.
    pub(crate) fn note_used(&mut self, policy: &str, used: &[String], now: u64) {
        if self.used(policy) == Some(used) {
            return;
        }
        if self.used.len() >= MAX_KNOWN {
            let listed: BTreeSet<&str> = self.all.keys().map(|key| &*key.policy).collect();
            self.used.retain(|policy, _| listed.contains(&**policy));
        }
        let before = self.used.insert(policy.into(), used.into());
        if before.is_some_and(|b| !b.is_empty()) || !used.is_empty() {
            let (since, times) = self.rekeyed;
            let soonest = if times < REKEYS { now } else { now.max(since + REKEY_PERIOD) };
            self.rekey_at.get_or_insert(soonest);
        }
    }

    /// Are jobs to be given other keys now, as a policy looks at other attributes?
    pub(crate) fn take_rekey(&mut self, now: u64) -> bool {
        let due = self.rekey_at.is_some_and(|at| at <= now);
        if due {
            self.rekey_at = None;
            let (since, times) = self.rekeyed;
            let goes_on = now < since + REKEY_PERIOD;
            self.rekeyed = if goes_on { (since, times + 1) } else { (now, 1) };
        }
        due
    }

    /// Is it to be said that a policy does not exist? Once for each set of policies.
    pub(crate) fn tells_unknown(&mut self, policy: &str) -> bool {
        if self.told_unknown.len() >= MAX_KNOWN {
            return false;
        }
        self.told_unknown.insert(policy.into())
    }

    /// Is it to be said that no server answers? Once in a while.
    pub(crate) fn tells_silence(&mut self, now: u64, pause: u64) -> bool {
        let tells = self.told_silence.is_none_or(|at| at + pause <= now);
        if tells {
            self.told_silence = Some(now);
        }
        tells
    }

    /// When something is to be done, microseconds of the monotonic clock.
    pub fn deadline(&self) -> Option<u64> {
        let room = self.all.values().filter(|entry| self.crowded && !entry.under_way);
        let room = room.map(|entry| entry.kept_until).min();
        self.all.values().map(Entry::deadline).chain(room).chain(self.rekey_at).min()
    }
}

impl Entry {
    fn look(&mut self, now: u64, key: &Rc<NlbKey>, work: &mut Vec<ListWork>) {
        if self.gives_up_at().is_some_and(|at| at <= now) {
            self.standing = Standing::Unanswered;
            work.push(ListWork::GivenUp(key.clone()));
        }
        if !self.under_way && self.next <= now {
            self.under_way = true;
            work.push(ListWork::Ask(key.clone()));
        }
    }

    fn gives_up_at(&self) -> Option<u64> {
        let since = self.silent_since.filter(|_| self.standing != Standing::Unanswered);
        since.map(|since| since + NO_ANSWER)
    }

    fn deadline(&self) -> u64 {
        let next = if self.under_way { u64::MAX } else { self.next };
        next.min(self.gives_up_at().unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Rc<NlbKey> {
        Rc::new(NlbKey { policy: name.into(), attributes: "".into() })
    }

    fn list(of: u32) -> NlbList {
        NlbList { of, ..NlbList::default() }
    }

    fn at(secs: i64, mono_us: u64) -> Now {
        Now { mono_us, wall_us: secs * US as i64 }
    }

    #[test]
    fn list_is_asked_for_again_by_age_and_given_up_without_an_answer() {
        let (mut lists, a) = (NlbLists::default(), key("a"));
        let look = |lists: &mut NlbLists, now| lists.look(now, [&a].into_iter());
        assert_eq!(look(&mut lists, 5), [ListWork::Ask(a.clone())]);
        assert_eq!((look(&mut lists, 6), lists.deadline()), (vec![], Some(5 + NO_ANSWER)));
        assert!(lists.answered(&a, list(1), at(1, 90), 10));
        assert!(!lists.answered(&a, list(1), at(2, 190), 10), "the same again");
        assert_eq!((lists.read_at(&a), lists.deadline()), (Some(2), Some(200)));
        assert_eq!(look(&mut lists, 199), []);
        assert_eq!(look(&mut lists, 200), [ListWork::Ask(a.clone())]);
        // the list stays in force until no server has answered for long enough
        lists.not_answered(&a, 300);
        assert_eq!(look(&mut lists, 300 + AGAIN), [ListWork::Ask(a.clone())]);
        lists.not_answered(&a, 400 + AGAIN);
        assert!(matches!(lists.standing(&a), Standing::Listed(_)));
        let late = look(&mut lists, 300 + NO_ANSWER);
        assert_eq!(late, [ListWork::GivenUp(a.clone()), ListWork::Ask(a.clone())]);
        assert_eq!(*lists.standing(&a), Standing::Unanswered);
        assert!(lists.answered(&a, list(1), at(3, 800), u64::MAX));
        lists.note_policies(KnownWords::default(), 900);
        assert_eq!(
            look(&mut lists, 900),
            [ListWork::Ask(a.clone())],
            "other policies are in force"
        );
    }

    #[test]
    fn lists_that_nobody_wants_or_that_are_too_many_are_forgotten() {
        let mut lists = NlbLists::default();
        let all: Vec<_> = (0..=MAX_LISTS).map(|n| key(&format!("{n:04}"))).collect();
        assert_eq!(lists.look(1, all.iter()).len(), MAX_LISTS);
        // all of them are under way: the last one waits for room
        assert_eq!(lists.look(2, all.iter()), []);
        assert!(lists.answered(&all[7], list(1), at(1, 3), u64::MAX));
        // jobs are placed by a list before another takes its place
        assert_eq!((lists.look(4, all.iter()), lists.deadline()), (vec![], Some(3 + KEPT)));
        let asked = lists.look(3 + KEPT, all.iter());
        assert_eq!(asked, [ListWork::Ask(all[MAX_LISTS].clone())]);
        assert_eq!(*lists.standing(&all[7]), Standing::Awaited);
        for key in &all {
            lists.answered(key, list(1), at(1, 9 + KEPT), u64::MAX);
        }
        assert_eq!(lists.look(10 + KEPT, [&all[3]].into_iter()), []);
        assert_eq!((lists.read_at(&all[3]), lists.read_at(&all[4])), (Some(1), None));
    }

    #[test]
    fn attributes_of_a_policy_make_other_keys_only_where_they_differ() {
        let mut lists = NlbLists::default();
        let used = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        let mut now = 0;
        let mut differs = |words: &[&str]| {
            now += REKEY_PERIOD;
            lists.note_used("a", &used(words), now);
            lists.take_rekey(now)
        };
        assert!(!differs(&[]), "none was in the keys before");
        assert!(differs(&["JOB_X"]));
        assert!(!differs(&["JOB_X"]));
        assert!(differs(&[]));
        assert_eq!((lists.used("a"), lists.used("b")), (Some(&[][..]), None));
        // a server whose answers differ each time has all jobs looked at once in a while
        let now = 9 * REKEY_PERIOD;
        for n in 0..REKEYS {
            lists.note_used("a", &used(&[&format!("JOB_{n}")]), now);
            assert_eq!((lists.take_rekey(now), lists.deadline()), (true, None));
        }
        lists.note_used("a", &used(&["JOB_X"]), now + 1);
        assert_eq!(lists.deadline(), Some(now + REKEY_PERIOD));
        assert!(!lists.take_rekey(now + 1) && lists.take_rekey(now + REKEY_PERIOD));
        // of policies without a list few are known
        for n in 0..2 * MAX_KNOWN {
            lists.note_used(&format!("p{n}"), &[], now);
        }
        assert!(lists.used.len() <= MAX_KNOWN);
    }
}
