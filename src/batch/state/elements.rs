//! The change of one element: its stage is replaced, and every counter of its job, queue, user and
//! hosts follows.

use crate::batch::state::change::{Applied, Change, ChangeKind, Held, Stage};
use crate::batch::state::counts::owner;
use crate::batch::state::*;
use crate::model::job::opt;

impl State {
    /// Puts a new state in an element's place and keeps every counter right.
    pub(super) fn set(&mut self, at: JobRef, make: impl FnOnce(&mut Elem)) -> Applied {
        let Some(job) = self.jobs.get_mut(&at.job) else {
            return Applied::Rejected("no such job");
        };
        let part = job.part_no(at.idx);
        let (queue, user, slots) = owner(job, part);
        let alone = job.spec_of(part).options & opt::EXCLUSIVE != 0;
        let submit_time = job.submit_time;
        if let Body::Array(a) = &mut job.body
            && !a.own.contains_key(&at.idx)
        {
            let Some(pos) = a.pos(at.idx) else { return Applied::Rejected("no such element") };
            if !a.fresh.take(pos) {
                return Applied::Rejected("the element has left memory");
            }
            a.touch(at.idx, submit_time);
        }
        let Some(e) = job.elem_mut(at.idx) else { return Applied::Rejected("no such element") };
        // The element is taken out for the change, so that job and counters can be borrowed.
        let hole = Elem { attempts: 0, part: 0, state: ElemState::Pend(Pend::default()) };
        let mut e = std::mem::replace(e, hole);
        self.counts.elem(queue, user, slots, at, &e, false);
        job.note(at.idx, &e, false);
        if let Body::Array(a) = &job.body {
            a.keep_given(&mut e);
        }
        let before = Stage::of(&e);
        let held = match &e.state {
            ElemState::Run(run) => Some(Held { user, queue, hosts: run.hosts.clone() }),
            _ => None,
        };
        make(&mut e);
        let kind = ChangeKind::Element { before, after: Stage::of(&e), held };
        match &e.state {
            ElemState::Run(_) if alone => {
                self.alone.insert(at);
            }
            _ => {
                self.alone.remove(&at);
            }
        }
        self.counts.elem(queue, user, slots, at, &e, true);
        job.note(at.idx, &e, true);
        if let Some(place) = job.elem_mut(at.idx) {
            *place = e;
        }
        Applied::Job(Change { at, regrouped: false, kind })
    }

    pub(super) fn with_run(&mut self, at: JobRef, f: impl FnOnce(&mut Run)) -> Applied {
        let Some(elem) = self.jobs.get_mut(&at.job).and_then(|j| j.elem_mut(at.idx)) else {
            return Applied::Rejected("no such job");
        };
        match &mut elem.state {
            ElemState::Run(r) => {
                f(r);
                Applied::noted(at)
            }
            _ => Applied::Rejected("the job is not started"),
        }
    }

    /// Keeps in mind what a job leaves behind on a host that cannot be asked.
    pub(super) fn leave(&mut self, at: JobRef) {
        let Some(Elem { state: ElemState::Run(run), .. }) = self.elem(at) else { return };
        let Some(&(host, slots)) = run.hosts.first() else { return };
        let left = LeftAttempt { key: run.key, host, slots };
        self.left.note(left);
    }

    /// A job or element waits no longer.
    pub(super) fn waited_until(&mut self, t: i64, at: JobRef) {
        // all that is done where nothing is tracked
        if self.waited.is_empty() {
            return;
        }
        if matches!(self.elem(at).map(|e| &e.state), None | Some(ElemState::Pend(_))) {
            self.waited.end(t, at);
        }
    }
}
