//! The events that tell the status of an attempt: its phase, that its host cannot be asked, its end
//! without a start, and the record of an end in lsb.acct.

use crate::batch::state::ElemState;
use crate::batch::state::names::HostId;
use crate::batch::{Mbatchd, StepContext};
use crate::conf::types::SHORT_EVENTFILE;
use crate::model::event::{Event, Finish, JobStatus};
use crate::model::job_state::JobState;
use crate::model::reason::PendReason;
use crate::model::{JobKey, JobRef};
use crate::proto::machine::Effect;

impl Mbatchd {
    pub(crate) fn phase_event(
        &mut self,
        context: &mut StepContext,
        at: JobRef,
        attempt: u32,
        state: JobState,
        why: u32,
    ) {
        let unreached = self.state.elem(at).is_some_and(|e| e.stat() == JobState::Unkwn);
        let status =
            JobStatus { at, status: state.into(), reason: why, attempt, ..JobStatus::default() };
        self.emit(context, Event::JobStatus(Box::new(status)));
        if unreached {
            self.unknown_event(context, JobKey { job: at.job, idx: at.idx, attempt });
        }
    }

    /// The requests about a started attempt: see `state::Run`.
    pub(crate) fn killed(&self, key: JobKey) -> (Option<u32>, Option<Option<PendReason>>, bool) {
        self.state.running(key).map_or((None, None, false), |r| (r.killed, r.requeue, r.as_done))
    }

    /// A job that never ran ends.
    pub(crate) fn exit_unstarted(&mut self, context: &mut StepContext, at: JobRef, info: u32) {
        self.end_unstarted(context, at, info, false);
    }

    /// Ends a job that never ran, as DONE or EXIT.
    pub(crate) fn end_unstarted(
        &mut self,
        context: &mut StepContext,
        at: JobRef,
        info: u32,
        done: bool,
    ) {
        let now = context.now.secs();
        let status = JobStatus {
            at,
            status: JobState::of_end(done).into(),
            end_time: now,
            exit_info: info,
            ..JobStatus::default()
        };
        self.emit(context, Event::JobStatus(Box::new(status)));
        self.account(context, at);
    }

    /// lsb.acct: what the state says of an element that has just ended.
    pub(crate) fn account(&mut self, context: &mut StepContext, at: JobRef) {
        let Some(f) = self.finish_record(at) else { return };
        context.out.push(Effect::Account(Box::new(f)));
    }

    pub(crate) fn finish_record(&self, at: JobRef) -> Option<Finish> {
        let job = self.state.job(at.job)?;
        let elem = job.elem(at.idx)?;
        let ElemState::End(e) = &elem.state else { return None };
        let run = e.run.as_deref();
        let name = |s: HostId| self.state.names().host(s).to_string();
        let requirement = job.effective_requirement(elem);
        Some(Finish {
            event_time: e.end_time,
            at,
            uid: job.uid,
            user: self.state.names().user(job.user).to_string(),
            submit_time: job.submit_time,
            start_time: run.map_or(0, |r| r.start_time),
            last_resize: run.and_then(|r| r.resize.as_ref()).map_or(0, |r| r.changed_at),
            spec: (**job.spec_at(at.idx)).clone(),
            exec_hosts: run
                .map_or(Vec::new(), |r| r.hosts.iter().map(|h| (name(h.0), h.1)).collect()),
            short_hosts: self.site.conf.base.lsf.has_extension(SHORT_EVENTFILE),
            status: JobState::of_end(e.done).into(),
            host_factor: run.map_or(0.0, |r| r.host_factor),
            usage: e.usage,
            hosts_used: e.hosts.clone(),
            exit_status: e.status.unwrap_or(0),
            exit_info: e.exit_info,
            exceptions: self.exceptions(job, elem.part, elem, e.end_time),
            eff_res_req: requirement.map_or(String::new(), |text| text.to_string()),
            attempt: run.map_or(0, |r| r.key.attempt),
            charged: run.map_or(String::new(), |run| self.charged(job, at.idx, run)),
            unknown_end: e.unknown,
            ineligible_secs: self.ineligible_secs(at, e.end_time),
        })
    }

    pub(crate) fn unknown_event(&mut self, context: &mut StepContext, key: JobKey) {
        let status = JobStatus {
            at: key.job_ref(),
            status: JobState::Unkwn.into(),
            attempt: key.attempt,
            ..JobStatus::default()
        };
        self.emit(context, Event::JobStatus(Box::new(status)));
    }

    /// The host of an attempt that was UNKWN has spoken of it.
    pub(crate) fn known_again(&mut self, context: &mut StepContext, key: JobKey) {
        let Some(run) = self.state.running(key).filter(|r| r.unknown) else { return };
        let status = JobStatus {
            at: key.job_ref(),
            status: run.phase.stat().into(),
            reason: run.phase.reason(),
            attempt: key.attempt,
            ..JobStatus::default()
        };
        self.emit(context, Event::JobStatus(Box::new(status)));
    }

    /// A started job ends without its host's word.
    pub(crate) fn end_unasked(
        &mut self,
        context: &mut StepContext,
        key: JobKey,
        info: u32,
        done: bool,
    ) {
        let at = key.job_ref();
        let end = JobStatus {
            at,
            status: JobState::of_end(done).into(),
            end_time: context.now.secs(),
            exit_info: info,
            attempt: key.attempt,
            unknown_end: true,
            ..JobStatus::default()
        };
        self.emit(context, Event::JobStatus(Box::new(end)));
        self.account(context, at);
    }
}
