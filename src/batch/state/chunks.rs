//! Chunk jobs: pending elements that wait for the slots of one that runs (WAIT), and are started
//! there one after the other (CHUNK_JOB_SIZE of lsb.queues(5)).
//!
//! A member that waits is a pending element like any other but for this: nobody starts it
//! elsewhere. The host knows nothing of it. So a chunk that is forgotten costs its members their
//! turn and nothing else: each end in doubt (the host is lost, mbatchd starts again between two
//! members) has the members pending again.
//!
//! Invariants: an element waits in one chunk at most; the members of a chunk are pending and not
//! held; the element that they wait for is started, or has just ended (`ended`).

use crate::batch::state::change::{Applied, Change, ChangeKind};
use crate::batch::state::{ElemState, ElementView, State};
use crate::model::JobRef;
use crate::model::event::JobChunk;
use crate::model::reason::term;
use std::collections::{BTreeMap, BTreeSet};

/// The chunks.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Chunks {
    /// The elements that wait for each running one, in their order.
    waiting: BTreeMap<JobRef, Vec<JobRef>>,
    runner_of: BTreeMap<JobRef, JobRef>,
    /// The running ones of these that have ended: the next element is to be started.
    ended: BTreeSet<JobRef>,
    /// Elements that have begun or ceased to wait since these were taken last.
    turned: Vec<JobRef>,
}

impl Chunks {
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The element for whose slots another one waits.
    pub fn runner(&self, member: JobRef) -> Option<JobRef> {
        self.runner_of.get(&member).copied()
    }

    /// Does an element wait in a chunk?
    pub fn waits(&self, at: JobRef) -> bool {
        self.runner_of.contains_key(&at)
    }

    /// The elements that wait for a running one, in their order.
    pub fn waiting(&self, runner: JobRef) -> &[JobRef] {
        self.waiting.get(&runner).map_or(&[], |waiting| waiting)
    }

    /// The running elements with those that wait for each.
    pub fn each(&self) -> impl Iterator<Item = (JobRef, &[JobRef])> {
        self.waiting.iter().map(|(runner, waiting)| (*runner, &**waiting))
    }

    /// The elements of a job that wait.
    pub fn of_job(&self, job: u32) -> impl Iterator<Item = JobRef> + '_ {
        self.runner_of.range(JobRef::all_of(job)).map(|(at, _)| *at)
    }

    /// An element that has ended and for which others still wait.
    pub fn next_ended(&self) -> Option<JobRef> {
        self.ended.first().copied()
    }

    fn put(&mut self, runner: JobRef, members: Vec<JobRef>) {
        for at in self.waiting.remove(&runner).into_iter().flatten() {
            self.runner_of.remove(&at);
            self.turned.push(at);
        }
        self.ended.remove(&runner);
        for at in &members {
            self.leave(*at);
            self.runner_of.insert(*at, runner);
            self.turned.push(*at);
        }
        if !members.is_empty() {
            self.waiting.insert(runner, members);
        }
    }

    /// An element does not wait any more.
    fn leave(&mut self, at: JobRef) {
        let Some(runner) = self.runner_of.remove(&at) else { return };
        self.turned.push(at);
        if let Some(waiting) = self.waiting.get_mut(&runner) {
            waiting.retain(|other| *other != at);
            if waiting.is_empty() {
                self.waiting.remove(&runner);
                self.ended.remove(&runner);
            }
        }
    }
}

/// The further course of a chunk.
enum Course {
    Runs,
    Next,
    Over,
}

impl State {
    /// The chunks of jobs.
    pub fn chunks(&self) -> &Chunks {
        &self.chunks
    }

    /// The elements that have begun or ceased to wait in a chunk since these were taken last.
    pub(crate) fn take_turned_members(&mut self) -> Vec<JobRef> {
        std::mem::take(&mut self.chunks.turned)
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
            self.set(*at, |_| {});
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
        let job = change.at.job;
        let other = matches!(change.kind, ChangeKind::Modified { .. } | ChangeKind::Moved);
        let members: Vec<JobRef> = self.chunks.of_job(job).collect();
        for at in members {
            if other || !self.may_wait(at) {
                self.chunks.leave(at);
            }
        }
        let runners = self.chunks.waiting.range(JobRef::all_of(job)).map(|(at, _)| *at);
        let runners: Vec<JobRef> = runners.collect();
        for at in runners {
            match self.course(at) {
                Course::Over => self.chunks.put(at, Vec::new()),
                Course::Next => drop(self.chunks.ended.insert(at)),
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
        for runner in std::mem::take(&mut self.chunks.ended) {
            self.chunks.put(runner, Vec::new());
        }
    }
}
