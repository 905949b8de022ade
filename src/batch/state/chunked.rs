//! JOB_CHUNK applied, and what any change of a job means for the chunks (`chunks`) that its
//! elements are in.

use crate::batch::state::change::{Applied, Change, ChangeKind};
use crate::batch::state::chunks::Chunks;
use crate::batch::state::{ElemState, ElementView, State};
use crate::model::JobRef;
use crate::model::event::JobChunk;
use crate::model::reason::term;

/// The further course of a chunk.
enum Course {
    Runs,
    Next,
    Over,
}

impl State {
    /// The chunks of jobs.
    pub fn job_chunks(&self) -> &Chunks {
        &self.chunks
    }

    /// The elements that have begun or ceased to wait in a chunk since these were taken last.
    pub(crate) fn take_turned_members(&mut self) -> Vec<JobRef> {
        self.chunks.take_turned()
    }

    /// JOB_CHUNK: the elements behind the first wait for it from now on, and no others do.
    pub(super) fn chunk(&mut self, chunk: &JobChunk) -> Applied {
        let Some((&runner, members)) = chunk.members.split_first() else {
            return Applied::Rejected("a chunk without members");
        };
        if !self.jobs.contains_key(&runner.job) {
            return Applied::Rejected("no such job");
        }
        let runs = matches!(self.course(runner), Course::Runs);
        if !members.is_empty() && !runs {
            return Applied::Rejected("a chunk of a job that does not run");
        }
        let members: Vec<JobRef> =
            members.iter().copied().filter(|at| self.may_wait(*at)).collect();
        for at in &members {
            // one that nothing has happened to would be taken for any of its array
            if self.elem(*at).is_none() {
                self.set(*at, |_| {});
            }
        }
        self.chunks.put(runner, members);
        Applied::noted(runner)
    }

    /// Is an element pending and not held?
    fn may_wait(&self, at: JobRef) -> bool {
        match self.jobs.get(&at.job).and_then(|job| job.view(at.idx)) {
            Some(ElementView::Untouched(held)) => held.is_none(),
            Some(ElementView::Own(e)) => {
                matches!(&e.state, ElemState::Pend(pend) if pend.held.is_none())
            }
            None => false,
        }
    }

    /// A job has changed: its elements may wait no longer, or others for them.
    pub(super) fn follow_chunks(&mut self, change: &Change) {
        if self.chunks.is_empty() {
            return;
        }
        let other = matches!(change.kind, ChangeKind::Modified { .. } | ChangeKind::Moved);
        for at in self.chunks.members_among(change.at) {
            if other || !self.may_wait(at) {
                self.chunks.leave(at);
            }
        }
        for at in self.chunks.runners_among(change.at) {
            match self.course(at) {
                Course::Over => self.chunks.put(at, Vec::new()),
                Course::Next => self.chunks.end(at),
                Course::Runs if matches!(change.kind, ChangeKind::Modified { .. }) => {
                    self.chunks.put(at, Vec::new());
                }
                Course::Runs => {}
            }
        }
    }

    /// A chunk goes on when its running element ends by itself or is killed; it is over when that
    /// element goes back to its queue, when the host is lost, and when the job was ended for the
    /// host's or the queue's sake (TERMINATE_WHEN).
    fn course(&self, runner: JobRef) -> Course {
        const SYSTEM: [u32; 4] = [term::LOAD, term::WINDOW, term::PREEMPT, term::DEADLINE];
        match self.elem(runner).map(|e| &e.state) {
            Some(ElemState::Run(run)) if !run.unknown => Course::Runs,
            Some(ElemState::End(end)) if !end.unknown && !SYSTEM.contains(&end.exit_info) => {
                match end.run.is_some() {
                    true => Course::Next,
                    false => Course::Over,
                }
            }
            _ => Course::Over,
        }
    }

    /// mbatchd has started: where it ended between two members, the rest is pending again.
    pub(super) fn end_open_chunks(&mut self) {
        for runner in self.chunks.take_ended() {
            self.chunks.put(runner, Vec::new());
        }
    }
}
