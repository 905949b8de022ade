//! Hosts that die or are cut off, for a moment or for so long that they are given up, and what
//! must hold of their jobs: no attempt of a rerun job is started while another is believed to be
//! alive, and none stays RUN on a host that was given up.
//!
//! An attempt is believed alive from when its process begins until it ends, its host loses power,
//! or it is given up; an attempt that was given up is believed alive again once its host has said
//! so. An attempt may be given up only when its host has not been heard of for MAX_SBD_FAIL tries.

use super::world::{DaemonMachine, World};
use crate::batch::state::{ElemState, ElementView};
use crate::model::JobKey;
use crate::model::event::{Event, Forced};
use crate::model::job::opt;
use crate::model::reason::term;
use crate::model::time::US;
use crate::proto::Daemon;
use crate::proto::Msg;
use crate::proto::machine::{ConnId, Input};
use crate::proto::sbd::{AttemptPhase, SbdMsg, TaskState};

/// Seconds without a word after which a host may be given up: three tries of 20 seconds.
const TRIES_SECS: u64 = 60;
/// Seconds after which one that is away has been given up for certain: the tries, LIM's own
/// (105 seconds), and some more.
pub(super) const SURELY_SECS: u64 = 240;

impl World {
    pub(super) fn host_away(&mut self, host: usize) {
        self.deaths.away.entry(host).or_insert(self.now_us);
        if host == self.log.host {
            self.mbd_unwell();
        }
    }

    /// A host that was away is there again.
    pub(super) fn host_back(&mut self, host: usize) {
        if let Some(since) = self.deaths.away.get(&host).copied() {
            let steady = self.now_us.saturating_sub(since.max(self.deaths.well));
            if host != self.log.host && steady >= SURELY_SECS * US {
                self.given_up(host);
            }
        }
        if host == self.log.host {
            self.mbd_unwell();
        }
        self.deaths.away.remove(&host);
    }

    /// The knowledge that mbatchd has of hosts begins anew.
    pub(super) fn mbd_unwell(&mut self) {
        self.deaths.well = self.now_us;
    }

    /// A host has been away for so long that no job may be RUN there, and no rerunnable one at all.
    fn given_up(&mut self, host: usize) {
        let Some(Some(DaemonMachine::Mbd(mbd))) = self.mbd_proc().map(|p| &self.procs[p].mach)
        else {
            return;
        };
        let name = &self.hosts[host].name;
        for job in mbd.state().each_job() {
            for idx in job.indices() {
                let Some(ElementView::Own(e)) = job.view(idx) else { continue };
                let ElemState::Run(run) = &e.state else { continue };
                if run.hosts.first().is_none_or(|h| **mbd.state().names().host(h.0) != **name) {
                    continue;
                }
                let rerun = job.spec_at(idx).options & opt::RERUNNABLE != 0;
                if !run.unknown || rerun {
                    let text = format!("{} is {:?} on {name}, which is given up", run.key, run);
                    self.fatal = Some(text);
                }
            }
        }
    }

    /// mbatchd is about to hear this.
    pub(super) fn mbd_hears(&mut self, p: usize, input: &Input) {
        let Input::Msg { conn, msg: Msg::Sbd(msg) } = input else { return };
        let Some(host) = self.sbatchd_behind(p, *conn) else { return };
        self.deaths.heard.insert(host, self.now_us);
        match msg {
            SbdMsg::Inventory { tasks, .. } => tasks.iter().for_each(|t| self.host_says(t)),
            SbdMsg::State(t) => self.host_says(t),
            SbdMsg::Left { key, .. } => self.has_left(host, *key),
            _ => {}
        }
    }

    fn sbatchd_behind(&self, p: usize, conn: ConnId) -> Option<usize> {
        self.peer_of(p, conn)
            .filter(|q| self.procs[*q].daemon == Daemon::Sbatchd)
            .map(|q| self.procs[q].host)
    }

    fn host_says(&mut self, t: &TaskState) {
        if !matches!(t.phase, AttemptPhase::Ended { .. } | AttemptPhase::Failed { .. }) {
            self.check.forsaken.remove(&t.key);
        }
    }

    /// mbatchd decides this.
    pub(super) fn mbd_decides(&mut self, event: &Event) {
        match event {
            // a job may run again before its submitter has the answer
            Event::JobNew(new) => {
                if !new.spec.further.requeue.is_empty() {
                    self.check.requeued.insert(new.job);
                }
                if new.spec.options & opt::RERUNNABLE != 0 {
                    self.check.may_rerun.insert(new.job);
                }
            }
            Event::JobStatus(s) if s.exit_info == term::GIVEN_UP => {
                self.check.given_up.insert(s.at);
            }
            Event::JobStart(s) => {
                let key = JobKey { job: s.at.job, idx: s.at.idx, attempt: s.attempt };
                if s.forced != Forced::No {
                    self.check.forced.insert(key);
                }
                let first = s.hosts.first().map(|h| &*h.0);
                let host =
                    self.hosts.iter().position(|h| Some(h.name.as_str()) == first).unwrap_or(0);
                self.deaths.last.insert(s.at, (key, host));
                self.check.given(key, s.hosts.first().map_or(1, |h| h.1));
                self.tasks_hear_of_start(key, &s.hosts);
                if let Some(old) = self.check.believed_alive(s.at).filter(|old| *old != key) {
                    self.fatal = Some(format!("{key} is started, {old} is believed to be alive"));
                }
            }
            Event::JobRequeue { at, .. } => {
                let Some(&(key, host)) = self.deaths.last.get(at) else { return };
                let heard = self.deaths.heard.get(&host).copied().unwrap_or(0);
                let silent = self.now_us.saturating_sub(heard);
                if self.check.runs(key) && silent < TRIES_SECS * US {
                    let name = &self.hosts[host].name;
                    let text = format!("{key} is requeued, it runs on {name}, which was heard of");
                    self.fatal = Some(text);
                }
                self.check.forsaken.insert(key);
            }
            _ => {}
        }
    }
}
