//! LSF_ARRAY_SIGNAL: many pending elements of an array are held, let go or ended by one record. The
//! state is then as after JOB_SIGNAL and JOB_STATUS of each of them; counters follow all at once.

use crate::batch::state::change::{Applied, Change, ChangeKind, Stage};
use crate::batch::state::counts::owner;
use crate::batch::state::last_actions::ControlAction;
use crate::batch::state::*;
use crate::model::JobRef;
use crate::model::event::ArraySignal;
use crate::model::job_state::JobState;
use crate::model::reason::PendReason;
use crate::proto::sbd::Post;

/// The state that each of the elements gets.
enum Becomes {
    /// Pending for this reason.
    Waiting(Option<PendReason>),
    Held(PendReason),
    Ended {
        end_time: i64,
        done: bool,
        exit_info: u32,
    },
}

impl Becomes {
    fn of(t: i64, s: &ArraySignal) -> Option<Becomes> {
        let reason = (s.reason != 0).then(|| PendReason::of_number(s.reason));
        Some(match s.status.state()? {
            JobState::Pend => Becomes::Waiting(reason),
            JobState::Psusp => Becomes::Held(PendReason::of_number(s.reason)),
            state @ (JobState::Done | JobState::Exit) => {
                let end_time = if s.end_time > 0 { s.end_time } else { t };
                let (done, exit_info) = (state == JobState::Done, s.exit_info);
                Becomes::Ended { end_time, done, exit_info }
            }
            _ => return None,
        })
    }

    fn stage(&self) -> Stage {
        match self {
            Becomes::Ended { .. } => Stage::Ended,
            _ => Stage::Pending,
        }
    }

    /// The state after that of a pending element.
    fn next(&self, t: i64, before: &Pend) -> ElemState {
        match *self {
            Becomes::Waiting(reason) => {
                ElemState::Pend(Pend { since: before.since, held: None, reason })
            }
            Becomes::Held(why) => ElemState::Pend(Pend { since: t, held: Some(why), reason: None }),
            Becomes::Ended { end_time, done, exit_info } => ElemState::End(Box::new(ElementEnd {
                end_time,
                done,
                status: None,
                exit_info,
                unknown: false,
                cpu: 0.0,
                usage: None,
                hosts: Box::default(),
                run: None,
                post: Post::None,
            })),
        }
    }
}

impl State {
    pub(super) fn array_signalled(&mut self, t: i64, s: &ArraySignal) -> Applied {
        let id = s.signal.at.job;
        let Some(becomes) = Becomes::of(t, s) else {
            return Applied::Rejected("a status this build does not know");
        };
        let pending = |job: &Job, idx: &u32| job.view(*idx).is_some_and(|v| v.stat().is_pending());
        let indices: Vec<u32> = match self.jobs.get(&id).map(|job| (job, &job.body)) {
            None => return Applied::Rejected("no such job"),
            Some((_, Body::Single(_))) => return Applied::Rejected("elements of no array"),
            Some((job, Body::Array(a))) => {
                a.named(&s.elems).filter(|idx| pending(job, idx)).collect()
            }
        };
        self.note_array_action(t, s, &indices);
        self.beside_elements(id, &indices, &becomes);
        let Some(job) = self.jobs.get_mut(&id) else { return Applied::Rejected("no such job") };
        for &idx in &indices {
            let (queue, user, slots) = owner(job, job.part_no(idx));
            if becomes.stage() == Stage::Ended {
                self.counts.fresh(queue, user, slots, 1, false);
            }
            job.change_pending(idx, |before| becomes.next(t, before));
        }
        let n = indices.len() as u32;
        if let Becomes::Ended { end_time, .. } = becomes
            && n > 0
        {
            self.finished += u64::from(n);
            self.ended.note(job, end_time);
        }
        let kind = ChangeKind::PendingElements { after: becomes.stage(), elements: n };
        Applied::Job(Change { at: s.signal.at, regrouped: false, kind })
    }

    /// Notes the sender and the request.
    fn note_array_action(&mut self, t: i64, s: &ArraySignal, indices: &[u32]) {
        let id = s.signal.at.job;
        let runs = crate::batch::state::element_groups::ranges(indices.iter().copied());
        if !s.signal.host.is_empty()
            && let Some(action) = ControlAction::of(&s.signal.action)
        {
            let host = self.names.host_id(&s.signal.host);
            for &(first, last, _) in &runs {
                self.issued.note_elements(id, (first, last), action, host, &s.signal.reason);
            }
        }
        for (first, last, _) in runs {
            self.retries.note_elements(t, &s.signal.request, id, (first, last));
        }
    }

    /// Changes the facts of pending elements that are kept beside their job.
    fn beside_elements(&mut self, id: u32, indices: &[u32], becomes: &Becomes) {
        let at = |idx: &u32| JobRef { job: id, idx: *idx };
        match becomes {
            Becomes::Ended { end_time, .. } => {
                if !self.waited.is_empty() {
                    indices.iter().for_each(|idx| self.waited_until(*end_time, at(idx)));
                }
                let of_job: Vec<JobRef> = self.tries.of_job(id).map(|(at, _)| at).collect();
                for tried in of_job {
                    if indices.binary_search(&tried.idx).is_ok() {
                        self.tries.forget(tried);
                    }
                }
            }
            Becomes::Waiting(Some(PendReason::Resumed)) => {
                self.tries.resumed(id, |idx| indices.binary_search(&idx).is_ok());
            }
            Becomes::Waiting(_) | Becomes::Held(_) => {}
        }
    }
}

impl Job {
    /// Gives a pending element of an array another state, and counts it.
    fn change_pending(&mut self, idx: u32, next: impl FnOnce(&Pend) -> ElemState) {
        let submit_time = self.submit_time;
        let Body::Array(a) = &mut self.body else { return };
        let mut e = match a.own.remove(&idx) {
            Some(e) => {
                a.note(idx, &e, false);
                e
            }
            None => {
                let Some(pos) = a.pos(idx) else { return };
                if !a.fresh.take(pos) {
                    return;
                }
                a.untouched(submit_time)
            }
        };
        a.tally.note(&e, false);
        if let ElemState::Pend(before) = &e.state {
            e.state = next(before);
        }
        a.tally.note(&e, true);
        a.note(idx, &e, true);
        a.own.insert(idx, e);
    }
}
