//! Start times (bsub -b, and NEW_JOB_SCHED_DELAY of lsb.queues): a timer takes a job off its table
//! when its time has come, and the job is ready from then on.
//!
//! The table decides, not the clock: a job that has become ready stays so if the clock is set back,
//! and where very many times pass at once, so that a turn takes only some off, those that are left
//! wait for everybody who asks.

use crate::batch::sched::view::View;
use crate::batch::sched::{DUE_PER_TURN, Sched};
use crate::batch::state::Job;
use crate::model::Now;

impl Sched {
    /// Is the start time of a job still ahead?
    pub(super) fn starts_later(&self, job: u32, begin_time: i64) -> bool {
        begin_time > 0 && self.begins.contains_key(&(begin_time, job))
    }

    /// Is a new job still delayed by NEW_JOB_SCHED_DELAY of its queue?
    pub(super) fn is_delayed(&self, view: &View, job: &Job, group: u32) -> bool {
        let end = delay_end(view, job, group);
        end.is_some_and(|end| self.begins.contains_key(&(end, job.id)))
    }

    /// Has the time come for jobs that were not taken off the timer yet?
    pub(crate) fn begins_due(&self, now: Now) -> bool {
        self.begins.keys().next().is_some_and(|(t, _)| *t <= now.secs())
    }

    /// Puts a job with a start time ahead on the timer. True: it is ahead.
    pub(crate) fn watch_begin(&mut self, view: &View, id: u32) -> bool {
        let Some(job) = view.state.job(id) else { return false };
        let mut ahead = false;
        let all = begins(job).chain(delays(view, job));
        for begin in all.filter(|begin| *begin > view.now.secs()) {
            self.begins.insert((begin, id), ());
            ahead = true;
        }
        if ahead {
            self.set_begin_timer(view.now);
        }
        ahead
    }

    /// Takes the start time of a job off the timer, before it becomes another one.
    pub(crate) fn unwatch_begin(&mut self, view: &View, id: u32) {
        if let Some(job) = view.state.job(id) {
            for begin in begins(job) {
                self.begins.remove(&(begin, id));
            }
            self.set_begin_timer(view.now);
        }
    }

    /// All start times, whether ahead or over, to be looked at in the next turn.
    pub(crate) fn begins_rebuilt(&mut self, view: &View) {
        self.begins.clear();
        let pending = |j: &&Job| j.tally().pend + j.tally().psusp > 0;
        for job in view.state.each_job().filter(pending) {
            if has_begin(job) {
                self.begins_of(job);
            }
            // a delay is short: of most jobs it is over, and they need no turn of their own
            for end in delays(view, job).filter(|end| *end > view.now.secs()) {
                self.begins.insert((end, job.id), ());
                self.begin_timer = Some(0);
            }
        }
    }

    /// The start times of one job, likewise.
    fn begins_of(&mut self, job: &Job) {
        for begin in begins(job).filter(|begin| *begin > 0) {
            self.begins.insert((begin, job.id), ());
            self.begin_timer = Some(0);
        }
    }

    fn set_begin_timer(&mut self, now: Now) {
        let first = self.begins.keys().next();
        self.begin_timer = first.map(|(t, _)| now.mono_of_wall(*t));
    }

    /// The jobs whose start time has come, as many as one turn takes.
    pub(crate) fn begun(&mut self, now: Now) -> Vec<u32> {
        let mut begun = Vec::new();
        if self.begin_timer.is_none_or(|t| t > now.mono_us) {
            return begun;
        }
        while begun.len() < DUE_PER_TURN
            && let Some(&(t, id)) = self.begins.keys().next()
            && t <= now.secs()
        {
            self.begins.remove(&(t, id));
            begun.push(id);
        }
        self.set_begin_timer(now);
        begun
    }
}

fn has_begin(job: &Job) -> bool {
    begins(job).any(|begin| begin > 0)
}

/// The start times of a job and its parts.
fn begins(job: &Job) -> impl Iterator<Item = i64> + '_ {
    (0..=job.parts().len() as u32).map(|part| job.spec_of(part).begin_time)
}

/// The end of the delay of a new job in the queue of this element group; None: it has none.
fn delay_end(view: &View, job: &Job, group: u32) -> Option<i64> {
    let delay = view.site.queue(job.queue_of(group))?.conf.new_job_sched_delay;
    (delay > 0).then(|| job.submit_time.saturating_add(i64::try_from(delay).unwrap_or(i64::MAX)))
}

/// The ends of the delays of a job and its parts.
fn delays(view: &View, job: &Job) -> impl Iterator<Item = i64> {
    (0..=job.parts().len() as u32).filter_map(move |part| delay_end(view, job, part))
}
