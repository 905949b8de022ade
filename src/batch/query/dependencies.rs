//! bjdepinfo: the jobs that a job waits for, and those that wait for it, level by level.

use crate::batch::site::permissions::Caller;
use crate::batch::state::{Job, Tally};
use crate::batch::step::Checked;
use crate::batch::{Mbatchd, StepContext};
use crate::conf::types::JobRights;
use crate::lang::depend::{DepValue, Parent};
use crate::model::JobRef;
use crate::model::job_state::JobState;
use crate::model::reason::err;
use crate::proto::Refusal;
use crate::proto::client::ClientMsg;
use crate::proto::dependency::{
    ConditionInfo, Dependencies, DependencyRequest, DependencyRow, MAX_LEVEL, MAX_ROWS,
};
use crate::proto::machine::ConnId;
use std::collections::{BTreeSet, VecDeque};

impl Mbatchd {
    pub(crate) fn list_dependencies(
        &self,
        context: &mut StepContext,
        conn: ConnId,
        who: &Caller,
        request: &DependencyRequest,
    ) {
        match self.dependencies_of(who, request) {
            Ok(found) => context.reply(conn, ClientMsg::DependencyRows(Box::new(found))),
            Err(refusal) => context.refuse(conn, refusal),
        }
    }

    fn dependencies_of(&self, who: &Caller, request: &DependencyRequest) -> Checked<Dependencies> {
        let at = request.at;
        let mut viewer = self.viewer(who);
        let mut sees = |job: &Job| {
            let viewer = viewer.as_mut();
            viewer.is_none_or(|viewer| self.job_rights(viewer, job) == JobRights::Detail)
        };
        let job = self.state.job(at.job).filter(|job| sees(job));
        let job = job.ok_or_else(|| Refusal::new(err::NO_JOB))?;
        if at.idx > 0 && job.view(at.idx).is_none() {
            return Err(Refusal::new(err::NO_JOB));
        }
        let most = request.level.clamp(1, MAX_LEVEL);
        let mut found = Dependencies::default();
        let (mut known, mut left) = (BTreeSet::from([at]), VecDeque::from([(at, 1)]));
        while let Some((job, level)) = left.pop_front() {
            let others = match request.children {
                true => self.children_of(job.job),
                false => self.parents_of(job, request.unmet, &mut found.conditions),
            };
            // of a job that the caller may not see whole nothing is told
            for other in others {
                if self.state.job(other.job).is_some_and(|of| !sees(of)) {
                    continue;
                }
                if found.rows.len() == MAX_ROWS {
                    found.cut = true;
                    return Ok(found);
                }
                found.rows.push(self.dependency_row(job, other, level));
                if level < most && known.insert(other) {
                    left.push_back((other, level + 1));
                }
            }
        }
        Ok(found)
    }

    /// The jobs that wait for a job, in the order of their IDs.
    fn children_of(&self, job: u32) -> Vec<JobRef> {
        let mut ids = self.deps.waiters_of(job);
        if let Some(path) = self.group_counts.group_of(job) {
            ids.extend(self.deps.waiters_of_group(path));
        }
        ids.into_iter().map(|job| JobRef { job, idx: 0 }).collect()
    }

    /// The jobs that a job waits for.
    fn parents_of(
        &self,
        at: JobRef,
        unmet: bool,
        conditions: &mut Vec<ConditionInfo>,
    ) -> Vec<JobRef> {
        let Some(job) = self.state.job(at.job) else { return Vec::new() };
        let Some(condition) = &job.depend else { return Vec::new() };
        let (facts, own) = (self.facts(), Some(at.idx).filter(|idx| *idx > 0));
        let satisfied = condition.eval(&facts, own) == DepValue::True;
        let text = job.spec_at(at.idx).depend.clone();
        conditions.push(ConditionInfo { job: at, text, satisfied });
        let parents = condition.parents(&facts, own, MAX_ROWS + 1);
        let meant = parents.into_iter().filter(|parent| !unmet || !parent.holds);
        let mut all: Vec<JobRef> = Vec::new();
        for Parent { id, idx, .. } in meant {
            let parent = JobRef { job: id as u32, idx: idx.unwrap_or(0) };
            // a condition may name a job several times, mostly one behind the other
            if all.last() != Some(&parent) {
                all.push(parent);
            }
        }
        all
    }

    fn dependency_row(&self, job: JobRef, other: JobRef, level: u32) -> DependencyRow {
        let of = self.state.job(other.job);
        let stat = of.map_or("", |of| state_of(of, other.idx).name());
        let name = of.map_or(String::new(), |of| of.display_name(other.idx));
        DependencyRow { job, other, stat: stat.to_string(), name, level }
    }
}

/// The state of a job or element; of an array the one that keeps others waiting longest.
fn state_of(job: &Job, idx: u32) -> JobState {
    if let Some(view) = job.view(idx).filter(|_| idx > 0 || !job.is_array()) {
        return view.stat();
    }
    let Tally { pend, psusp, run, ssusp, ususp, exit, .. } = job.tally();
    let states = [
        (run, JobState::Run),
        (ssusp, JobState::Ssusp),
        (ususp, JobState::Ususp),
        (pend, JobState::Pend),
        (psusp, JobState::Psusp),
        (exit, JobState::Exit),
    ];
    states.into_iter().find(|(n, _)| *n > 0).map_or(JobState::Done, |(_, state)| state)
}
