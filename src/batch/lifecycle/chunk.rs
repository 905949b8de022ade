//! Chunk jobs (CHUNK_JOB_SIZE): a start takes further jobs of its kind along, which wait for its
//! slots, and when it ends the next of them is started there at once.
//!
//! mbatchd alone knows of a chunk: the host gets one job after the other, as ever. So sbatchd, its
//! limits, its usage and its recovery need no second kind of job, and a message more for each
//! member, which a turn of the loop answers, is all that it costs.

use crate::batch::site::limits::expected_run_time;
use crate::batch::state::job_hosts::JobHosts;
use crate::batch::state::{ElemState, Run};
use crate::batch::{Mbatchd, StepContext};
use crate::conf::types::SHORT_EVENTFILE;
use crate::model::JobRef;
use crate::model::event::{Event, Forced, JobChunk};
use crate::model::job::{JobSpec, opt};
use std::sync::Arc;

/// Seconds that a job of a chunk may be expected to run, without CHUNK_JOB_DURATION.
const MOST_SECS: u64 = 30 * 60;

impl Mbatchd {
    /// The jobs that a start takes along.
    pub(crate) fn mates_of(&self, at: JobRef) -> Vec<JobRef> {
        if !self.site.forms_chunks {
            return Vec::new();
        }
        let size = self.chunk_size(at);
        if size < 2 {
            return Vec::new();
        }
        let view = self.view();
        let mut mates = self.sched.class_mates(&view, at, size - 1);
        mates.retain(|mate| {
            self.chunk_size(*mate) == size
                && self.state.slot_reservations().get(*mate).is_none()
                && !self.preemptions.has_claim(*mate)
        });
        mates
    }

    /// The jobs of a chunk that a job may be in, itself included; 1: it is in none.
    fn chunk_size(&self, at: JobRef) -> usize {
        let Some(job) = self.state.job(at.job) else { return 1 };
        let spec = job.spec_at(at.idx);
        let size = self.site.settings(spec, self.site.queue(job.queue_at(at.idx))).chunk_size();
        match size > 1 && self.may_be_chunked(spec) {
            true => size,
            false => 1,
        }
    }

    fn may_be_chunked(&self, spec: &JobSpec) -> bool {
        let kinds = opt::INTERACTIVE | opt::RERUNNABLE | opt::EXCLUSIVE;
        let fixed = spec.min_slots.max(1) == spec.max_slots.max(1);
        let plain = spec.options & kinds == 0 && spec.further.reservation.is_empty();
        if !fixed || !plain || spec.further.autoresize.0 {
            return false;
        }
        let secs = [spec.limits.cpu, spec.limits.run, expected_run_time(spec)];
        let mut known = secs.into_iter().flatten();
        match self.site.params().chunk_job_duration {
            None => known.all(|secs| secs <= MOST_SECS),
            Some(most) => known.clone().next().is_some() && known.all(|secs| secs <= most),
        }
    }

    /// The job was started: these wait for its slots from now on.
    pub(crate) fn form_chunk(&mut self, context: &mut StepContext, at: JobRef, mates: Vec<JobRef>) {
        let Some(ElemState::Run(run)) = self.state.elem(at).map(|e| &e.state) else { return };
        // the units of a job are its own
        if mates.is_empty() || !run.affinity.is_empty() {
            return;
        }
        let hosts = self.named_hosts(&run.hosts);
        let short_hosts = self.site.conf.base.lsf.has_extension(SHORT_EVENTFILE);
        let members = [vec![at], mates].concat();
        self.emit(context, Event::JobChunk(Box::new(JobChunk { members, hosts, short_hosts })));
    }

    /// Starts the next job of each chunk whose running one has ended.
    pub(crate) fn chunks_due(&mut self, context: &mut StepContext) {
        if !self.started || self.dispatch_stopped().is_some() {
            return;
        }
        for ended in self.state.job_chunks().ended() {
            let waiting = self.state.job_chunks().waiting(ended).to_vec();
            let Some((&next, rest)) = waiting.split_first() else { continue };
            let Some((hosts, requirement, account)) = self.slots_after(ended, next) else {
                let none = JobChunk { members: vec![ended], ..JobChunk::default() };
                self.emit(context, Event::JobChunk(Box::new(none)));
                continue;
            };
            let how = (Forced::No, account, Arc::default());
            self.start_on(context, (next, &[]), hosts, requirement, how);
            self.form_chunk(context, next, rest.to_vec());
        }
    }

    /// The slots of a job that has ended, for the next one of its chunk, with the requirement and
    /// the share account of the start; none: the next one may not have them now.
    fn slots_after(
        &mut self,
        ended: JobRef,
        next: JobRef,
    ) -> Option<(JobHosts, Arc<str>, Arc<str>)> {
        let run: &Run = self.state.elem(ended)?.run()?;
        let (hosts, account) = (run.hosts.clone(), run.account.clone());
        let (sched, view) = self.sched_and_view();
        let requirement = sched.may_follow(&view, next, &hosts)?;
        Some((hosts, requirement, account))
    }

    /// A job waits in its chunk no longer: it is pending like any other.
    pub(crate) fn leave_chunk(&mut self, context: &mut StepContext, at: JobRef) {
        let Some(runner) = self.state.job_chunks().runner(at) else { return };
        let others = self.state.job_chunks().waiting(runner).iter().copied().filter(|of| *of != at);
        let members = std::iter::once(runner).chain(others).collect();
        let none = JobChunk { members, ..JobChunk::default() };
        self.emit(context, Event::JobChunk(Box::new(none)));
    }
}
