//! The jobs that are not preempted: exclusive ones and those of backfill queues unless
//! PREEMPT_JOBTYPE has them, those of an active advance reservation, those of a service class with
//! an active goal that is a number of jobs, those by which a service class uses what a pool
//! guarantees it, those that were preempted often or for long enough, and those that
//! NO_PREEMPT_RUN_TIME, NO_PREEMPT_FINISH_TIME and NO_PREEMPT_INTERVAL protect.

use crate::batch::sched::view::View;
use crate::batch::site::limits::expected_run_time;
use crate::batch::state::{ElemState, Job, Run};
use crate::conf::preemption::RunShare;
use crate::model::JobRef;
use crate::model::job::opt;

/// Is a running job protected from preemption?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protection {
    None,
    /// The instant until which it is, seconds since the epoch.
    Until(i64),
    ForGood,
}

/// The protection of a running job whose queue may be preempted.
pub(super) fn protection(view: &View, at: JobRef) -> Protection {
    let Some(job) = view.state.job(at.job) else { return Protection::ForGood };
    let Some(elem) = job.elem(at.idx) else { return Protection::ForGood };
    let ElemState::Run(run) = &elem.state else { return Protection::ForGood };
    let (spec, now) = (job.spec_at(at.idx), view.now.secs());
    if is_busy(run) || is_of_kept_kind(view, job, at.idx) {
        return Protection::ForGood;
    }
    let settings = view.site.settings(spec, view.site.queue(job.queue_at(at.idx)));
    let limits = settings.preemption_limits();
    let before = view.state.preempted_before(at);
    let resets = view.site.params().preemption.resets;
    let times = run.preempted.times.saturating_add(if resets { 0 } else { before.times });
    let secs = run.preempted.secs.saturating_add(if resets { 0 } else { before.secs });
    if times >= limits.most || limits.total_secs.is_some_and(|most| secs >= most as i64) {
        return Protection::ForGood;
    }
    let (ran, whole) = (elem.ran(now), expected_run_time(spec).map(|secs| secs as i64));
    let long = match limits.ran {
        RunShare::Never => false,
        RunShare::Seconds(most) => ran >= most as i64,
        RunShare::Percent(most) => whole.is_some_and(|whole| ran * 100 >= whole * most as i64),
    };
    let left = whole.map(|whole| (whole - ran, whole));
    let ends_soon = match limits.left {
        RunShare::Never => false,
        RunShare::Seconds(least) => left.is_some_and(|left| left.0 <= least as i64),
        RunShare::Percent(least) => {
            left.is_some_and(|(left, whole)| left * 100 <= whole * least as i64)
        }
    };
    if long || ends_soon {
        return Protection::ForGood;
    }
    let reserved = view.reservations.periods(view.reservations.of_element(at))[0];
    let until = run.start_time.max(run.resumed_at).saturating_add_unsigned(limits.interval_secs);
    let until = until.max(reserved.map_or(0, |period| period.end));
    match until > now {
        true => Protection::Until(until),
        false => Protection::None,
    }
}

/// Does the service class of a job need it for what a pool guarantees that class, once these are
/// preempted?
pub(super) fn is_guaranteed(view: &View, at: JobRef, victims: &[JobRef]) -> bool {
    if view.site.pools.is_empty() {
        return false;
    }
    let gone = view.preemptions.preempted().chain(victims.iter().copied());
    view.guarantees.is_needed(view.site, at, gone)
}

/// Is something else asked of the job, or is its host not to be asked?
fn is_busy(run: &Run) -> bool {
    let grows = run.resize.as_ref().is_some_and(|resize| resize.under_way.is_some());
    run.unknown || grows || run.soft.asked.is_some()
}

/// Exclusive jobs, jobs of backfill queues and jobs of service classes with an active goal.
fn is_of_kept_kind(view: &View, job: &Job, idx: u32) -> bool {
    let kinds = &view.site.params().preemption;
    let exclusive = job.spec_at(idx).options & opt::EXCLUSIVE != 0;
    let queue = view.site.queue(job.queue_at(idx));
    let backfill = queue.is_some_and(|queue| queue.conf.backfill);
    let service = view.site.service_classes.id(&job.spec_at(idx).further.service_class);
    (exclusive && !kinds.exclusive)
        || (backfill && !kinds.backfill)
        || service.is_some_and(|service| view.goals.is_active(service))
}
