//! Jobs that could not be started: where and when they are tried again, and when they no longer
//! are. A pre-execution command waits for something: it is asked again before long, as often as
//! LOCAL_MAX_PREEXEC_RETRY says. Anything else (an input file that is missing, a login shell that
//! is not there, a host without resources) is tried after growing pauses, [`START_TRIES`] times;
//! then the job is held and its user gets a mail.

use crate::batch::lifecycle::requeue::pause;
use crate::batch::state::names::HostId;
use crate::batch::{Mbatchd, StepContext};
use crate::model::event::{Event, JobStatus, Retry};
use crate::model::job_state::JobState;
use crate::model::reason::PendReason;
use crate::model::{JobRef, cut};
use crate::proto::sbd::{SbdMsg, TaskState};

/// Starts of an element that fail in a row before it is held.
pub const START_TRIES: u32 = 10;
/// Pause after the first failed start before another host is tried, seconds; it doubles each time.
/// A host whose start failed is tried again after twice the pause.
pub const RETRY_FIRST: u64 = 5;
/// Longest pause before a host is asked again whether a pre-execution command succeeds, seconds.
const PRE_EXEC_MOST: u64 = 60;
/// Longest words of a host that are kept of a start that failed, bytes.
const NOTE_MAX: usize = 1024;

impl Mbatchd {
    /// The host could not start it: back to the queue, elsewhere if there is a choice.
    pub(crate) fn start_failed(
        &mut self,
        context: &mut StepContext,
        i: HostId,
        t: &TaskState,
        reason: u32,
    ) {
        let at = t.key.job_ref();
        let (killed, requeue, as_done) = self.killed(t.key);
        let host = self.failed_on(i, t);
        context.say(log::Level::Warn, format!("{host} could not start job <{at}>: {}", t.note));
        let mut mail = String::new();
        if let Some(held) = requeue {
            self.back_to_queue(context, at, held);
        } else if let Some(info) = killed {
            self.end_unstarted(context, at, info, as_done);
        } else {
            let reason = match reason {
                0 => PendReason::ExecInit,
                number => PendReason::of_number(number),
            };
            let pre_exec = matches!(reason, PendReason::PreExec | PendReason::QueuePreExec);
            if !pre_exec {
                self.note_start_that_failed(context, i, t);
            }
            let retry = Some(Box::new(self.retry_of(context, at, host, t, pre_exec)));
            let (status, attempt, reason) = (JobState::Pend.into(), t.key.attempt, reason.number());
            let s = JobStatus { at, status, reason, attempt, retry, ..JobStatus::default() };
            self.emit(context, Event::JobStatus(Box::new(s)));
            match pre_exec {
                true => self.tried_enough(context, at),
                false => mail = self.started_enough(context, at, &t.note),
            }
        }
        self.order(context, i, SbdMsg::Forget { key: t.key, mail });
    }

    /// The host that could not start it: one of the job's.
    fn failed_on(&self, i: HostId, t: &TaskState) -> String {
        let run = self.state.running(t.key);
        let named = self.state.names().find_host(&t.pre_host);
        let of_job = run.is_some_and(|run| run.hosts.iter().any(|h| Some(h.0) == named));
        if of_job { t.pre_host.clone() } else { self.links.hosts()[i].name.clone() }
    }

    /// A start that failed may count for the exit rate of its host.
    fn note_start_that_failed(&mut self, context: &StepContext, i: HostId, t: &TaskState) {
        let failed = self.state.names().find_host(&t.pre_host);
        let Some(run) = self.state.running(t.key) else { return };
        let own = |host: &HostId| run.hosts.iter().any(|of| of.0 == *host);
        let host = failed.filter(own).unwrap_or(i);
        let first = run.hosts.first().map(|of| of.0) == Some(host);
        let several = run.hosts.len() > 1;
        self.note_failed_start(context, host, (first, several));
    }

    fn retry_of(
        &self,
        context: &StepContext,
        at: JobRef,
        host: String,
        t: &TaskState,
        pre_exec: bool,
    ) -> Retry {
        let now = context.now.secs();
        let after = |secs: u64| now.saturating_add(i64::try_from(secs).unwrap_or(i64::MAX));
        let mut note = cut(&t.note, NOTE_MAX).to_string();
        let pre_exit = t.pre_exit;
        if pre_exec {
            let again = self.site.params().mbd_sleep_time.min(PRE_EXEC_MOST);
            let excluding = self.site.retry_limits(None).pre_exec_excludes.as_ref();
            let excluded = excluding.is_some_and(|codes| codes.has(i32::from(pre_exit)));
            if excluded {
                note.push_str("; no further start on this host");
            }
            let host_until = after(again);
            return Retry { host, host_until, until: 0, note, pre_exit, excluded };
        }
        let failed = self.state.tries().of(at).map_or(0, |tries| tries.failed);
        let (until, host_until) = (pause(RETRY_FIRST, failed + 1), pause(RETRY_FIRST, failed + 2));
        let (host_until, until) = (after(host_until), after(until));
        Retry { host, host_until, until, note, pre_exit, excluded: false }
    }

    /// Holds an element whose start has failed too often in a row; what its user is mailed.
    fn started_enough(&mut self, context: &mut StepContext, at: JobRef, note: &str) -> String {
        if self.state.tries().of(at).is_none_or(|tries| tries.failed < START_TRIES) {
            return String::new();
        }
        let (status, reason) = (JobState::Psusp.into(), PendReason::StartLimit.number());
        let s = JobStatus { at, status, reason, ..JobStatus::default() };
        self.emit(context, Event::JobStatus(Box::new(s)));
        format!(
            "The job could not be started {START_TRIES} times in a row and is held (PSUSP). The \
             last reason:\n\n{}\n\nbresume {at} has it tried again, bkill {at} removes it.\n",
            cut(note, NOTE_MAX)
        )
    }
}
