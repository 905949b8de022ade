//! Suspended jobs as the records of mbatchd tell of them: the rules learn which attempts are
//! preempted, and which leave their slots to others while they are suspended.

use super::check::Check;
use super::limits;
use crate::batch::state::{Phase, State};
use crate::conf::types::BatchConf;
use crate::model::JobKey;
use crate::model::event::{Event, Record};
use crate::model::job_state::{JobState, LoggedStatus};
use crate::model::reason::susp;
use std::collections::HashSet;

/// The attempt that a record is about, and whether it is preempted from now on, or suspended for
/// any reason; none: the record says nothing of that.
fn suspended_or_running(record: &Record) -> Option<(JobKey, bool, bool)> {
    let Event::JobStatus(status) = &record.event else { return None };
    let key = JobKey { job: status.at.job, idx: status.at.idx, attempt: status.attempt };
    match status.status {
        LoggedStatus::State(JobState::Ssusp) => Some((key, status.reason == susp::PREEMPTED, true)),
        LoggedStatus::State(JobState::Ususp) => Some((key, false, true)),
        LoggedStatus::State(JobState::Run) => Some((key, false, false)),
        _ => None,
    }
}

/// The elements that a record takes to another queue, where they are suspended.
fn suspended_switched(state: &State, record: &Record) -> Vec<JobKey> {
    let job = match &record.event {
        Event::JobSwitch { at, .. } => at.job,
        Event::ArraySwitch { job, .. } => *job,
        _ => return Vec::new(),
    };
    let Some(of) = state.job(job) else { return Vec::new() };
    let runs = of.indices().into_iter().filter_map(|idx| of.elem(idx)?.run());
    let suspended = runs.filter(|run| matches!(run.phase, Phase::Ssusp(_) | Phase::Ususp(_)));
    suspended.map(|run| run.key).collect()
}

/// The rules learn from the records of mbatchd which attempts are preempted, and which leave their
/// slots to others while they are suspended.
pub(super) fn hear_of_suspension<'a>(
    check: &mut Check,
    state: &State,
    conf: &BatchConf,
    records: impl Iterator<Item = &'a Record>,
    secs: f64,
) {
    let leaves_slots = |key: JobKey| {
        let queue = state.job(key.job).map(|job| job.queue_at(key.idx));
        limits::leaves_slots(conf, queue.map_or("", |queue| state.names().queue(queue)))
    };
    for record in records {
        for key in suspended_switched(state, record) {
            if leaves_slots(key) {
                check.recorded_idle(key, true);
            }
        }
        let Some((key, preempted, idle)) = suspended_or_running(record) else { continue };
        let run = state.elem(key.job_ref()).and_then(|elem| elem.run());
        let ends = run.is_some_and(|run| run.killed.is_some() || run.migrates);
        check.recorded(key, preempted, ends, secs);
        if idle || !ends {
            check.recorded_idle(key, idle && leaves_slots(key));
        }
    }
}

/// mbatchd has read its log, which may end before the last records that the rules have heard of:
/// they learn anew which attempts are preempted, and which leave their slots.
pub(super) fn suspended_anew(check: &mut Check, state: &State, conf: &BatchConf) {
    let (mut preempted, mut idle, mut ends) = (HashSet::new(), HashSet::new(), HashSet::new());
    for (run, queue, _) in limits::all_runs(state) {
        if run.killed.is_some() || run.migrates {
            ends.insert(run.key);
        }
        if run.phase == Phase::Ssusp(susp::PREEMPTED) {
            preempted.insert(run.key);
        }
        if matches!(run.phase, Phase::Ssusp(_) | Phase::Ususp(_))
            && limits::leaves_slots(conf, state.names().queue(queue))
        {
            idle.insert(run.key);
        }
    }
    check.suspended_anew(preempted, idle, &ends);
}
