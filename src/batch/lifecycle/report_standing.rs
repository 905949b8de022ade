//! The host that may report on an attempt.
//!
//! An attempt is spoken for by the first of its hosts alone: its state, its end, its post-execution
//! and what it uses. That host alone is given its environment and script, too. The word of another
//! sbatchd about it changes nothing: it is refused, counted for `badmin showstatus`, and logged
//! with the host's name, a line a minute for each host at most.
//!
//! Invariant: the host is the one whose link the message came over, which mbatchd has dialled and
//! which has proved who it is; never one that the message names.

use crate::batch::state::Elem;
use crate::batch::state::names::HostId;
use crate::batch::{Mbatchd, StepContext};
use crate::model::job::SpoolRef;
use crate::model::time::US;
use crate::model::{JobKey, JobRef};
use crate::proto::machine::{ConnId, Effect, Peer};
use std::fmt::Display;

/// Shortest time between two lines about what one host reports, seconds.
const LINE_SECS: u64 = 60;

/// The relation of an attempt to the host that speaks of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The present attempt of a started job or element; this is its first host.
    Running,
    /// The last attempt of one that has ended; this was its first host.
    Ended,
    /// Given up with this host, where it may still run.
    Left,
    /// An attempt before the present one: its host is not known any more.
    Past,
    /// Another host's, or one that never was.
    Foreign,
    /// The log does not know the job.
    NoJob,
}

impl Mbatchd {
    /// The relation of an attempt to the host `i`.
    pub(crate) fn standing(&self, i: HostId, key: JobKey) -> Standing {
        let at = key.job_ref();
        let Some(job) = self.state.job(key.job) else { return Standing::NoJob };
        let host = self.state.names().find_host(&self.links.hosts()[i].name);
        let elem = job.elem(at.idx);
        if let Some(run) = elem.and_then(Elem::run).filter(|r| r.key == key) {
            let first = run.hosts.first().map(|h| h.0);
            return match (first.is_some() && first == host, self.state.running(key).is_some()) {
                (false, _) => Standing::Foreign,
                (true, true) => Standing::Running,
                (true, false) => Standing::Ended,
            };
        }
        let left = self.state.left().find(key);
        match (left, elem) {
            (Some(l), _) if Some(l.host) == host => Standing::Left,
            (None, Some(e)) if (1..=e.attempts).contains(&key.attempt) => Standing::Past,
            _ => Standing::Foreign,
        }
    }

    /// The connection a message of a sbatchd came over is none that was dialled.
    pub(crate) fn refuse_caller(&mut self, context: &mut StepContext, conn: ConnId) {
        let host = match self.peers.get(&conn) {
            Some(Peer::Daemon { host, .. }) => host.clone(),
            _ => return,
        };
        let Some(i) = self.site.host_id(&host) else { return };
        self.refuse(context, i, "reports over a connection that this mbatchd has not made");
        context.out.push(Effect::Close { conn });
    }

    /// A report on an attempt that is not the host's to speak of.
    pub(crate) fn refuse_report(
        &mut self,
        context: &mut StepContext,
        i: HostId,
        what: &str,
        at: JobRef,
    ) {
        let run = self.state.elem(at).and_then(Elem::run);
        let host =
            run.and_then(|r| r.hosts.first()).map(|h| self.state.names().host(h.0).to_string());
        match host {
            Some(host) => {
                self.refuse(context, i, format!("{what} of job <{at}>, which is on {host}"))
            }
            None => self.refuse(context, i, format!("{what} of job <{at}>, which is not there")),
        }
    }

    /// Counts what a host may not say; logs it where the last line is long enough ago.
    pub(crate) fn refuse(&mut self, context: &mut StepContext, i: HostId, what: impl Display) {
        let count = self.links.count_refused(i);
        let name = &self.links.hosts()[i].name;
        let text = format!("{name}: {what}: refused ({count} so far)");
        self.say_bounded(context, i, log::Level::Warn, text);
    }

    /// Logs what a host has said where the last such line is long enough ago.
    pub(crate) fn say_bounded(
        &mut self,
        context: &mut StepContext,
        i: HostId,
        level: log::Level,
        text: String,
    ) {
        if self.links.may_log(i, context.now.mono_us, LINE_SECS * US) {
            context.say(level, text);
        }
    }

    /// How many reports were refused since this mbatchd started.
    pub(crate) fn reports_refused(&self) -> u64 {
        self.links.refused()
    }

    /// Whether commands run on every host of an element.
    fn runs_host_commands(&self, at: JobRef) -> bool {
        self.settings_at(at).is_some_and(|settings| settings.runs_host_commands())
    }

    /// Sends bytes of the spool to the first host of the job that they belong to, and to its other
    /// hosts where its queue has commands for them.
    pub(crate) fn need_blob(
        &mut self,
        context: &mut StepContext,
        i: HostId,
        conn: ConnId,
        at: SpoolRef,
    ) {
        // what started before bmod changed the job has what it was changed from
        let was = |job: u32| self.state.modifications().places(job).contains(&at);
        let is = |job: u32| self.state.job(job).is_some_and(|j| j.env == at || j.script == at);
        let first = |r: &JobRef| {
            let run = self.state.elem(*r).and_then(Elem::run);
            let hosts = run.map_or(&[][..], |r| &r.hosts[..]);
            let first = hosts.first().is_some_and(|h| h.0 == i);
            first || hosts.iter().any(|h| h.0 == i) && self.runs_host_commands(*r)
        };
        let mine = |r: &JobRef| (is(r.job) || was(r.job)) && first(r);
        if self.state.counts().host(i).is_some_and(|h| h.jobs.iter().any(mine)) {
            context.out.push(Effect::SendBlob { conn, at });
        } else {
            self.refuse(context, i, "asks for bytes of a job that it does not run");
        }
    }
}
