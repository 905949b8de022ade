//! The goals of service classes that are numbers of jobs: how many jobs of a class should run for
//! it to meet its goals, and whether it meets them (lsb.serviceclasses(5), bsla(1)).
//!
//! That number is an aim and a bound alike: as long as fewer run, the jobs of the class go before
//! those of all queues, and no more are started. Where a class has no active goal its jobs are
//! scheduled as if it had none. The numbers depend on the jobs of the class and on time; they are
//! worked out after a change and every [`LOOK_SECS`].

use crate::batch::site::Site;
use crate::batch::site::service_classes::{Goal, ServiceClassId};
use crate::batch::state::State;
use crate::batch::usage::service_class_jobs::{ClassTally, ClassWork, ServiceClassJobs};
use crate::conf::types::{GoalKind, ServiceClassConf};
use crate::model::{JobRef, Now};
use jiff::tz::TimeZone;

/// Longest time between two looks at a class with an active goal and jobs, seconds.
const LOOK_SECS: i64 = 10;
const HOUR_SECS: u64 = 3600;

/// A goal as of now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GoalNow {
    /// The window is open.
    pub active: bool,
    /// Is it met? It is, where it is not active.
    pub on_time: bool,
    /// Jobs that should run.
    pub optimum: u64,
    /// When all jobs of the class are expected to be done, seconds since the epoch; for goals with
    /// a deadline.
    pub finish: Option<i64>,
}

/// A class as of now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ClassNow {
    goals: Vec<GoalNow>,
    /// The jobs that should run by all active goals; `None`: none is active.
    optimum: Option<u64>,
    name: String,
    /// Since when an active goal is missed, seconds since the epoch.
    missed_since: Option<i64>,
    /// The beginning of the violation period of each goal that is active and missed, likewise.
    violated: Vec<Option<i64>>,
}

/// The outcome of a look at the goals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GoalLook {
    /// More jobs of a class may be started than before.
    pub more: bool,
    /// A class has an active goal that had none, or has none any more: its jobs are preempted
    /// again, or not any more.
    pub turned: bool,
}

/// The jobs of service classes and the goals of these.
#[derive(Debug, Default)]
pub struct ServiceGoals {
    jobs: ServiceClassJobs,
    classes: Vec<ClassNow>,
    /// Jobs of a class with goals have changed since the last look.
    changed: bool,
    /// The next look, microseconds of the monotonic clock; `None`: after the next change.
    timer: Option<u64>,
    /// The classes of goals whose violation period has passed, once for each such goal.
    actions: Vec<ServiceClassId>,
}

/// The jobs of a class that count as running: those that the system suspended, too.
fn running(tally: &ClassTally) -> u64 {
    tally.jobs[2] + tally.jobs[3]
}

impl ServiceGoals {
    pub(crate) fn of_all(state: &State, site: &Site) -> ServiceGoals {
        let jobs = ServiceClassJobs::of_all(state, site);
        let named =
            |class: &ServiceClassConf| ClassNow { name: class.name.clone(), ..ClassNow::default() };
        let classes = site.service_classes.iter().map(|(_, class)| named(class)).collect();
        let changed = !site.service_classes.with_goals().is_empty();
        ServiceGoals { jobs, classes, changed, ..ServiceGoals::default() }
    }

    /// The goals of another configuration. The times at which those of a class of the same name
    /// began to be missed are kept.
    pub(crate) fn anew(self, state: &State, site: &Site) -> ServiceGoals {
        let mut next = ServiceGoals::of_all(state, site);
        for class in &mut next.classes {
            let Some(old) = self.classes.iter().find(|old| old.name == class.name) else {
                continue;
            };
            class.missed_since = old.missed_since;
            class.violated.clone_from(&old.violated);
        }
        next
    }

    /// The jobs of all classes.
    pub fn jobs(&self) -> &ServiceClassJobs {
        &self.jobs
    }

    /// The goals of a class, in the order of the file.
    pub fn goals(&self, class: ServiceClassId) -> &[GoalNow] {
        self.classes.get(class.position()).map_or(&[], |of| &of.goals)
    }

    /// Since when a class has missed an active goal, seconds since the epoch.
    pub fn missed_since(&self, class: ServiceClassId) -> Option<i64> {
        self.classes.get(class.position())?.missed_since
    }

    /// The classes whose CONTROL_ACTION is due, once for each goal that was missed for the whole
    /// violation period.
    pub(crate) fn take_actions(&mut self) -> Vec<ServiceClassId> {
        std::mem::take(&mut self.actions)
    }

    /// Jobs of a class that may still be started by its active goals; `None`: any number.
    pub fn room(&self, class: Option<ServiceClassId>) -> Option<u64> {
        let class = class?;
        let optimum = self.classes.get(class.position())?.optimum?;
        Some(optimum.saturating_sub(running(&self.jobs.tally(class))))
    }

    /// Do as many jobs of a class run as its active goals want?
    pub fn is_full(&self, class: Option<ServiceClassId>) -> bool {
        self.room(class) == Some(0)
    }

    /// Has a class an active goal?
    pub fn is_active(&self, class: ServiceClassId) -> bool {
        self.classes.get(class.position()).is_some_and(|of| of.optimum.is_some())
    }

    /// The classes of which more jobs should run than do, in the order in which they are served.
    pub fn behind<'a>(&'a self, site: &'a Site) -> impl Iterator<Item = ServiceClassId> + 'a {
        let wants = |class: &ServiceClassId| {
            self.room(Some(*class)).is_some_and(|room| room > 0)
                && self.jobs.tally(*class).pending() > 0
        };
        site.service_classes.with_goals().iter().copied().filter(wants)
    }

    /// A job or element has changed. May more jobs of a class be started than before?
    pub(crate) fn follow(&mut self, state: &State, site: &Site, at: JobRef) -> bool {
        if site.service_classes.is_empty() {
            return false;
        }
        let class = self.jobs.class_with_goals(at.job);
        let run_by = |jobs: &ServiceClassJobs| class.map(|class| running(&jobs.tally(class)));
        let before = run_by(&self.jobs);
        self.changed |= self.jobs.follow(state, site, at);
        run_by(&self.jobs) < before
    }

    /// The next look at the goals, microseconds of the monotonic clock.
    pub fn deadline(&self) -> Option<u64> {
        if self.changed { Some(0) } else { self.timer }
    }

    /// Works out the goals of all classes where that is due.
    pub(crate) fn look(&mut self, now: Now, site: &Site, zone: &TimeZone) -> GoalLook {
        let mut found = GoalLook::default();
        let due = self.timer.is_some_and(|timer| timer <= now.mono_us);
        if !self.changed && !due {
            return found;
        }
        self.changed = false;
        let mut first = None;
        for class in site.service_classes.with_goals() {
            let next = self.look_at(now.secs(), site, *class, zone, &mut found);
            first = [first, next].into_iter().flatten().min();
        }
        self.timer = first.map(|next| now.mono_of_wall(next));
        found
    }

    fn look_at(
        &mut self,
        now: i64,
        site: &Site,
        class: ServiceClassId,
        zone: &TimeZone,
        found: &mut GoalLook,
    ) -> Option<i64> {
        let (tally, work) = (self.jobs.tally(class), self.jobs.work(class, now));
        let goals = site.service_classes.goals(class);
        let of = |goal: &Goal| goal_now(goal, &tally, &work, now, zone);
        let all: Vec<GoalNow> = goals.iter().map(of).collect();
        let active = || all.iter().filter(|goal| goal.active);
        let optimum = active().map(|goal| goal.optimum).max();
        let missed = active().any(|goal| !goal.on_time);
        let edges = goals.iter().filter_map(|goal| goal.windows.next_change(now, zone)).min();
        let busy = tally.jobs[1] + tally.jobs[2] + tally.jobs[3] > 0;
        let again = (optimum.is_some() && busy).then_some(now + LOOK_SECS);
        let kept = self.classes.get_mut(class.position())?;
        found.more |= kept.optimum.is_some_and(|before| optimum.is_none_or(|n| n > before));
        found.turned |= kept.optimum.is_some() != optimum.is_some();
        let missed_since = missed.then(|| kept.missed_since.unwrap_or(now));
        let mut violated = std::mem::take(&mut kept.violated);
        let conf = site.service_classes.get(class).and_then(|conf| conf.control_action.as_ref());
        let period = conf.map(|action| i64::from(action.minutes) * 60);
        let due = period.map_or(0, |period| violations(&all, &mut violated, (period, now)));
        let next = period.and_then(|period| Some(violated.iter().flatten().min()? + period));
        let name = std::mem::take(&mut kept.name);
        *kept = ClassNow { name, goals: all, optimum, missed_since, violated };
        self.actions.extend(std::iter::repeat_n(class, due));
        [edges, again, next].into_iter().flatten().min()
    }
}

/// Keeps the violation periods of goals; how many have passed. Such a period begins anew.
fn violations(goals: &[GoalNow], since: &mut Vec<Option<i64>>, (period, now): (i64, i64)) -> usize {
    since.resize(goals.len(), None);
    let mut passed = 0;
    for (goal, since) in goals.iter().zip(since) {
        let missed = goal.active && !goal.on_time;
        // a clock that is set back prolongs no period
        let begun = since.filter(|_| missed).unwrap_or(now).min(now);
        let is_over = missed && now - begun >= period;
        passed += usize::from(is_over);
        *since = missed.then_some(if is_over { now } else { begun });
    }
    passed
}

fn goal_now(
    goal: &Goal,
    tally: &ClassTally,
    work: &ClassWork,
    now: i64,
    zone: &TimeZone,
) -> GoalNow {
    if !goal.windows.open_at(now, zone) {
        return GoalNow { on_time: true, ..GoalNow::default() };
    }
    let (pending, run) = (tally.pending(), running(tally));
    let unfinished = pending + run;
    let (optimum, finish) = match goal.kind {
        GoalKind::Velocity(n) => (u64::from(n), None),
        GoalKind::Throughput(n) => {
            let jobs = u64::from(n).saturating_mul(work.mean).div_ceil(HOUR_SECS);
            (jobs.clamp(1, unfinished.max(1)), None)
        }
        GoalKind::Deadline => {
            let close = goal.windows.next_change(now, zone).unwrap_or(i64::MAX);
            let left = u64::try_from(close.saturating_sub(now)).unwrap_or(0).max(1);
            let optimum = work.secs.div_ceil(left).clamp(1, unfinished.max(1));
            let secs = work.secs.div_ceil(run.clamp(1, optimum));
            let finish =
                now.saturating_add_unsigned(if pending > 0 { secs.max(work.mean) } else { secs });
            (optimum, (unfinished > 0).then_some(finish))
        }
    };
    let on_time = match goal.kind {
        _ if unfinished == 0 => true,
        GoalKind::Velocity(_) => run >= optimum || pending == 0,
        GoalKind::Throughput(n) => run >= optimum || pending == 0 || work.finished >= u64::from(n),
        GoalKind::Deadline => {
            let close = goal.windows.next_change(now, zone);
            finish.zip(close).is_none_or(|(finish, close)| finish <= close)
        }
    };
    GoalNow { active: true, on_time, optimum, finish }
}
