//! The last kill, suspend and resume of each job: host and reason. Jobs and elements without any
//! have no entry; the entry of a job goes with the job (JOB_CLEAN).

use crate::batch::state::names::HostId;
use crate::model::JobRef;
use crate::model::action::{JobAction, SIGTSTP};
use std::collections::BTreeMap;

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
}

#[derive(Debug, Default)]
pub struct LastActions {
    /// The last actions by job, at most one of each kind.
    by_job: BTreeMap<JobRef, Vec<Last>>,
}

impl LastActions {
    pub(super) fn note(&mut self, at: JobRef, action: ControlAction, host: HostId, reason: &str) {
        let all = self.by_job.entry(at).or_default();
        all.retain(|last| last.action != action);
        all.push(Last { action, host, reason: reason.into() });
        all.shrink_to_fit();
    }

    pub fn last(&self, at: JobRef, action: ControlAction) -> Option<(HostId, &str)> {
        let last = self.by_job.get(&at)?.iter().find(|last| last.action == action)?;
        Some((last.host, &last.reason))
    }

    /// All that is known of a job and its elements.
    pub fn each(&self, job: u32, tell: &mut dyn FnMut(JobRef, ControlAction, HostId, &str)) {
        let own = |idx| JobRef { job, idx };
        for at in self.by_job.range(own(0)..=own(u32::MAX)).map(|(at, _)| at) {
            for action in ControlAction::ALL {
                if let Some((host, why)) = self.last(*at, action) {
                    tell(*at, action, host, why);
                }
            }
        }
    }

    /// The job is gone; idx 0: with every element.
    pub(super) fn forget(&mut self, at: JobRef) {
        if at.idx != 0 {
            self.by_job.remove(&at);
            return;
        }
        let job = at.job;
        let own = |idx| JobRef { job, idx };
        let gone: Vec<JobRef> =
            self.by_job.range(own(0)..=own(u32::MAX)).map(|(at, _)| *at).collect();
        for at in gone {
            self.by_job.remove(&at);
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
}
