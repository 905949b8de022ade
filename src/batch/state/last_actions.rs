//! The last kill, suspend and resume of each job: host and reason. Jobs and elements without any
//! have no entry; the entry of a job goes with the job (JOB_CLEAN).

use crate::batch::state::names::HostId;
use crate::model::JobRef;
use crate::model::action::{JobAction, SIGTSTP};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The actions, in the order in which they are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlAction {
    Kill,
    Suspend,
    Resume,
}

impl ControlAction {
    pub const ALL: [ControlAction; 3] =
        [ControlAction::Kill, ControlAction::Suspend, ControlAction::Resume];

    /// The listed action that one of JOB_SIGNAL is; `None`: another one.
    pub fn of(action: &JobAction) -> Option<ControlAction> {
        Some(match action {
            JobAction::Kill | JobAction::Remove => ControlAction::Kill,
            JobAction::Stop | JobAction::Signal(SIGTSTP) => ControlAction::Suspend,
            JobAction::Resume => ControlAction::Resume,
            _ => return None,
        })
    }
}

#[derive(Debug)]
struct Last {
    action: ControlAction,
    host: HostId,
    reason: Box<str>,
    /// The later one of two actions of a kind has the higher number.
    number: u64,
}

/// An action on elements that follow each other.
#[derive(Debug)]
struct Stretch {
    first: u32,
    last: u32,
    action: Last,
}

/// Stretches of at least so many elements are kept as such.
const STRETCH: u32 = 16;
/// Stretches of one job at most: the oldest becomes single elements then.
const STRETCHES: usize = 256;

#[derive(Debug, Default)]
pub struct LastActions {
    /// The last actions by job, at most one of each kind.
    by_job: BTreeMap<JobRef, Vec<Last>>,
    /// Actions on very many elements, by array, in their order.
    stretches: BTreeMap<u32, VecDeque<Stretch>>,
    actions: u64,
}

impl LastActions {
    pub(super) fn note(&mut self, at: JobRef, action: ControlAction, host: HostId, reason: &str) {
        self.actions += 1;
        let number = self.actions;
        self.put(at, Last { action, host, reason: reason.into(), number });
    }

    fn put(&mut self, at: JobRef, last: Last) {
        let all = self.by_job.entry(at).or_default();
        if all.iter().any(|own| own.action == last.action && own.number > last.number) {
            return;
        }
        all.retain(|own| own.action != last.action);
        all.push(last);
        all.shrink_to_fit();
    }

    /// An action on the elements of an array from the first to the last.
    pub(super) fn note_elements(
        &mut self,
        job: u32,
        (first, last): (u32, u32),
        action: ControlAction,
        host: HostId,
        reason: &str,
    ) {
        if last - first < STRETCH {
            for idx in first..=last {
                self.note(JobRef { job, idx }, action, host, reason);
            }
            return;
        }
        self.actions += 1;
        let action = Last { action, host, reason: reason.into(), number: self.actions };
        let all = self.stretches.entry(job).or_default();
        let within = |s: &Stretch| first <= s.first && s.last <= last;
        all.retain(|s| s.action.action != action.action || !within(s));
        all.push_back(Stretch { first, last, action });
        if all.len() > STRETCHES
            && let Some(oldest) = all.pop_front()
        {
            self.take_apart(job, oldest, None);
        }
    }

    /// Each element of a stretch has its action by itself from now on, but for `without`.
    fn take_apart(&mut self, job: u32, stretch: Stretch, without: Option<u32>) {
        let Stretch { first, last, action: Last { action, host, reason, number } } = stretch;
        for idx in (first..=last).filter(|idx| Some(*idx) != without) {
            let reason = reason.clone();
            self.put(JobRef { job, idx }, Last { action, host, reason, number });
        }
    }

    pub fn last(&self, at: JobRef, action: ControlAction) -> Option<(HostId, &str)> {
        let own = self.by_job.get(&at).into_iter().flatten();
        let held = |s: &&Stretch| (s.first..=s.last).contains(&at.idx);
        let shared = self.stretches.get(&at.job).into_iter().flatten().filter(held);
        let all = own.chain(shared.map(|s| &s.action));
        let last = all.filter(|last| last.action == action).max_by_key(|last| last.number)?;
        Some((last.host, &last.reason))
    }

    /// All that is known of a job and its elements.
    pub fn each(&self, job: u32, tell: &mut dyn FnMut(JobRef, ControlAction, HostId, &str)) {
        let own = |idx| JobRef { job, idx };
        let known = self.by_job.range(own(0)..=own(u32::MAX)).map(|(at, _)| *at);
        let shared = self.stretches.get(&job).into_iter().flatten();
        let shared = shared.flat_map(|s| s.first..=s.last).map(own);
        for at in known.chain(shared).collect::<BTreeSet<JobRef>>() {
            for action in ControlAction::ALL {
                if let Some((host, why)) = self.last(at, action) {
                    tell(at, action, host, why);
                }
            }
        }
    }

    /// The job is gone; idx 0: with every element.
    pub(super) fn forget(&mut self, at: JobRef) {
        if at.idx != 0 {
            self.by_job.remove(&at);
            self.leave_stretches(at);
            return;
        }
        let job = at.job;
        self.stretches.remove(&job);
        let own = |idx| JobRef { job, idx };
        let gone: Vec<JobRef> =
            self.by_job.range(own(0)..=own(u32::MAX)).map(|(at, _)| *at).collect();
        for at in gone {
            self.by_job.remove(&at);
        }
    }

    /// An element is in no stretch any more: each that it was in becomes single elements.
    fn leave_stretches(&mut self, at: JobRef) {
        let Some(all) = self.stretches.get_mut(&at.job) else { return };
        let (within, rest): (VecDeque<Stretch>, VecDeque<Stretch>) =
            std::mem::take(all).into_iter().partition(|s| (s.first..=s.last).contains(&at.idx));
        *all = rest;
        for stretch in within {
            self.take_apart(at.job, stretch, Some(at.idx));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::state::names::Names;

    #[test]
    fn the_last_of_each_is_kept_until_the_job_goes() {
        let (mut names, mut all) = (Names::default(), LastActions::default());
        let (a, b) = (names.host_id("hosta"), names.host_id("hostb"));
        let at = |job, idx| JobRef { job, idx };
        all.note(at(7, 1), ControlAction::Suspend, a, "one");
        all.note(at(7, 2), ControlAction::Kill, a, "");
        all.note(at(8, 0), ControlAction::Kill, b, "eight");
        all.note(at(7, 1), ControlAction::Suspend, b, "two");
        all.note(at(7, 1), ControlAction::Resume, a, "three");
        assert_eq!(all.last(at(7, 1), ControlAction::Suspend), Some((b, "two")));
        assert_eq!(all.last(at(7, 1), ControlAction::Resume), Some((a, "three")));
        assert_eq!(all.last(at(7, 1), ControlAction::Kill), None);
        assert_eq!(all.last(at(7, 2), ControlAction::Kill), Some((a, "")));
        all.forget(at(7, 1));
        assert_eq!(all.last(at(7, 1), ControlAction::Suspend), None);
        assert!(all.last(at(7, 2), ControlAction::Kill).is_some());
        all.forget(at(7, 0));
        assert_eq!(all.last(at(7, 2), ControlAction::Kill), None);
        assert_eq!(all.last(at(8, 0), ControlAction::Kill), Some((b, "eight")));
    }

    #[test]
    fn an_action_on_many_elements_is_the_last_of_each_until_another_comes() {
        let (mut names, mut all) = (Names::default(), LastActions::default());
        let [a, b, c] = ["hosta", "hostb", "hostc"].map(|name| names.host_id(name));
        let last = |all: &LastActions, idx, action| {
            all.last(JobRef { job: 7, idx }, action).map(|(host, why)| (host, why.to_string()))
        };
        let told = |host, why: &str| Some((host, why.to_string()));
        all.note(JobRef { job: 7, idx: 3 }, ControlAction::Suspend, a, "one");
        all.note_elements(7, (2, 100), ControlAction::Suspend, b, "many");
        all.note(JobRef { job: 7, idx: 5 }, ControlAction::Suspend, a, "five");
        assert_eq!(last(&all, 1, ControlAction::Suspend), None);
        assert_eq!(last(&all, 3, ControlAction::Suspend), told(b, "many"));
        assert_eq!(last(&all, 5, ControlAction::Suspend), told(a, "five"));
        assert_eq!(last(&all, 100, ControlAction::Kill), None);
        let mut elements = 0;
        all.each(7, &mut |_, _, _, _| elements += 1);
        assert_eq!(elements, 99);
        // more than are kept as stretches: the answers are the same
        for n in 0..2 * STRETCHES as u32 {
            let first = 200 + n;
            all.note_elements(7, (first, first + 20), ControlAction::Kill, c, &n.to_string());
        }
        assert!(all.stretches[&7].len() <= STRETCHES);
        assert_eq!(last(&all, 3, ControlAction::Suspend), told(b, "many"));
        assert_eq!(last(&all, 5, ControlAction::Suspend), told(a, "five"));
        assert_eq!(last(&all, 205, ControlAction::Kill), told(c, "5"));
        all.forget(JobRef { job: 7, idx: 700 });
        assert_eq!(last(&all, 700, ControlAction::Kill), None);
        assert_eq!(last(&all, 699, ControlAction::Kill), told(c, "499"));
        all.forget(JobRef { job: 7, idx: 0 });
        all.each(7, &mut |_, _, _, _| panic!());
    }
}
