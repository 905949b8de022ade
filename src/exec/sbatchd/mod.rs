//! sbatchd as a pure machine: the batch agent of one host.
//!
//! mbatchd connects to it; it connects to the launcher and to the local LIM. sbatchd keeps no file:
//! every attempt's start order and the little that changes ([`Mark`]) lie with the launcher as the
//! task's note, so an sbatchd that starts again goes on where the last one stopped.
//!
//! Invariants: nothing is told to mbatchd before the launcher has listed its tasks; an end is
//! told again after every reconnection until `Forget`; a start or an order seen before changes
//! nothing; an mbatchd of a lower epoch than one seen is refused.

mod agent;
mod ask_hosts;
mod checkpoint;
mod controls;
mod directories;
mod directory_table;
mod end;
mod host_commands;
mod link;
mod members;
mod report_apart;
mod resize;
mod signals;
mod start;
mod tidy;
mod tidy_table;
mod usage_of_others;
mod validate;
mod validation_table;
mod watch;

pub use agent::{ATTEMPTS_MAX, LAUNCHER, LIM, Sbatchd, SbatchdConf};
use agent::{LAUNCHER_RETRY, LIM_LOST, LIM_RETRY, ask, say};
pub use tidy::KEEP_SECS;
use watch::next_of;

use crate::exec::attempt::{Attempt, AttemptStage, Cause, Note};
use crate::exec::plan;
use crate::exec::report::{self, Report};
use crate::lang::resreq;
use crate::model::job::{End, SpoolRef, opt, opt2};
use crate::model::reason::{PendReason, err, term};
use crate::model::{ByteStr, JobKey, Now, time::US};
use crate::proto::launch::{
    self, FinishPlan, LaunchMsg, Mail, OsEffect, OsInput, Plan, Ready, Setup, TaskEnd, TaskId,
    TaskInfo, TaskPlan, TaskProcesses, TaskStep,
};
use crate::proto::lim::LimMsg;
use crate::proto::machine::{ConnId, Endpoint};
use crate::proto::member::MemberMsg;
use crate::proto::sbd::{Act, AttemptPhase, Post, SbdMsg, SbdParams, StartJob};
use crate::proto::{Daemon, Effect, Input, Machine, Msg, Peer, Refusal, caps};
use std::collections::{BTreeMap, BTreeSet};

impl Sbatchd {
    fn opened(&mut self, conn: ConnId, peer: Peer, out: &mut Vec<Effect>) {
        match (conn, peer) {
            (LAUNCHER, _) => {
                self.listing = Some(Vec::new());
                self.members.launcher_linked();
                ask(out, LaunchMsg::Hello);
            }
            (LIM, _) => {
                (self.lim_up, self.lim_lost) = (true, None);
                let msg = Msg::Lim(LimMsg::Subscribe { loads: false });
                out.push(Effect::Send { conn, msg });
            }
            (_, Peer::Daemon { daemon: Daemon::Mbatchd, host })
                if self.conf.candidates.contains(&host) =>
            {
                self.callers.insert(conn);
            }
            (_, Peer::Daemon { daemon: Daemon::Res, host }) if host == self.conf.site.host => {
                self.askers.insert(conn);
            }
            // it looks whether this agent answers, and asks for nothing
            (_, Peer::Daemon { daemon: Daemon::Ccollect, host }) if host == self.conf.site.host => {
            }
            (_, peer) => {
                say(out, log::Level::Warn, format!("{peer} has no business with sbatchd"));
                refuse(out, conn, Refusal::new(err::PERMISSION));
            }
        }
    }

    /// A connection is gone, or could not be made.
    fn lost(&mut self, now: Now, conn: ConnId, out: &mut Vec<Effect>) {
        match conn {
            LAUNCHER => {
                (self.linked, self.listing) = (false, None);
                self.retry_launcher = Some(now.mono_us + LAUNCHER_RETRY);
            }
            LIM => {
                self.lim_up = false;
                self.retry_lim = Some(now.mono_us + LIM_RETRY);
                let since = *self.lim_lost.get_or_insert(now.mono_us);
                let others = self.conf.candidates.len() > 1;
                if self.master.is_none() {
                    let first = self.conf.candidates.first() == Some(&self.conf.site.host);
                    self.set_master(first, out);
                } else if others && now.mono_us >= since + LIM_LOST {
                    // the LIMs have another master by now
                    self.set_master(false, out);
                }
            }
            _ => {
                self.callers.remove(&conn);
                self.askers.remove(&conn);
                if self.mbd.is_some_and(|(c, _)| c == conn) {
                    self.mbd = None;
                }
            }
        }
    }

    fn set_master(&mut self, on: bool, out: &mut Vec<Effect>) {
        if self.master != Some(on) {
            self.master = Some(on);
            if self.linked {
                ask(out, LaunchMsg::Run { daemon: Daemon::Mbatchd, on });
            }
        }
    }

    fn mbatchd(&mut self, now: Now, conn: ConnId, msg: SbdMsg, out: &mut Vec<Effect>) {
        if let SbdMsg::Hello { epoch, cluster, params, pieces } = msg {
            return self.hello(now, conn, (epoch, &cluster), (params, pieces), out);
        }
        if self.mbd != Some((conn, true)) {
            return refuse(out, conn, Refusal::text(err::BAD_ARG, "no greeting"));
        }
        match msg {
            SbdMsg::Start(order) => self.start(now, *order, out),
            SbdMsg::Blob { at, data } => {
                self.blob(now, at, data.0, out);
                self.launch_host_commands_of(at, out);
            }
            SbdMsg::Act { key, seq, order, act, why } => {
                if let Some(job) = self.jobs.get_mut(&key).filter(|_| act == Act::Suspend) {
                    job.suspend_why = why;
                }
                self.act(now, key, (seq, order), act, out);
            }
            SbdMsg::HostCommand { work, order } => self.host_command(now, work, order, out),
            SbdMsg::HostTold { key, host, work, state } => {
                self.host_told(now, (key, host), (work, state), out);
            }
            SbdMsg::Forget { key, mail } => {
                self.mail_user(key, &mail, out);
                self.forget(now, key, out);
            }
            SbdMsg::Join(order) => self.join(order, out),
            SbdMsg::Leave { key } => self.leave(now, key, out),
            SbdMsg::UsageTold { key, usage, without } => {
                if self.usage_told(key, (usage, without)) {
                    self.usage_known(now, key, out);
                }
            }
            SbdMsg::Validate(ask) => self.validate(now, *ask, out),
            SbdMsg::Params(params) => self.set_params(params, out),
            SbdMsg::Logging(set) => out.push(Effect::Logging(set)),
            _ => refuse(out, conn, Refusal::text(err::BAD_ARG, "not an order")),
        }
    }

    fn hello(
        &mut self,
        now: Now,
        conn: ConnId,
        (epoch, cluster): (u64, &str),
        (params, pieces): (SbdParams, bool),
        out: &mut Vec<Effect>,
    ) {
        if !self.callers.contains(&conn) || cluster != self.conf.cluster {
            return refuse(out, conn, Refusal::new(err::PERMISSION));
        }
        if epoch < self.epoch {
            let text = format!("epoch {epoch} is over, {} has begun", self.epoch);
            return refuse(out, conn, Refusal::text(err::PERMISSION, text));
        }
        if let Some((old, _)) = self.mbd.filter(|(old, _)| *old != conn) {
            self.callers.remove(&old);
            out.push(Effect::Close { conn: old });
        }
        if epoch != self.epoch {
            self.blobs.clear();
            self.epoch = epoch;
        }
        self.set_params(params, out);
        self.drop_validations();
        (self.mbd, self.pieces) = (Some((conn, false)), pieces);
        self.inventory(now, out);
        self.tell_all_gone(out);
    }

    fn set_params(&mut self, params: SbdParams, out: &mut Vec<Effect>) {
        self.params = params;
        self.conf.site.terminate_interval = self.params.job_terminate_interval;
        if self.params.simulated && !self.conf.personal {
            self.params.simulated = false;
            let text = "simulated execution is refused outside a personal cluster".into();
            say(out, log::Level::Error, text);
        }
    }
}

impl Machine for Sbatchd {
    fn step(&mut self, now: Now, input: Input, out: &mut Vec<Effect>) {
        if self.clock.follow(now) != 0 {
            self.clock_stepped(now, out);
        }
        match input {
            Input::Start => {
                (self.retry_launcher, self.retry_lim) = (Some(0), Some(0));
                self.tick(now, out);
            }
            Input::Tick => self.tick(now, out),
            Input::Opened { conn, peer } => self.opened(conn, peer, out),
            Input::ConnectFailed { conn, .. } | Input::Closed { conn } => {
                self.lost(now, conn, out);
            }
            Input::Msg { conn, msg } => match (conn, msg) {
                (LAUNCHER, Msg::Launch(msg)) => self.launcher(now, msg, out),
                (LIM, Msg::Lim(LimMsg::Master { master, .. })) if !master.is_empty() => {
                    self.set_master(master == self.conf.site.host, out);
                }
                (LAUNCHER | LIM, _) => {}
                (conn, Msg::Sbd(msg)) => self.mbatchd(now, conn, msg, out),
                (conn, Msg::Member(MemberMsg::Ask { job })) if self.askers.contains(&conn) => {
                    self.res_asks(now, conn, job, out);
                }
                (conn, Msg::Member(MemberMsg::Look(look))) if self.askers.contains(&conn) => {
                    self.res_looks(conn, look, out);
                }
                (conn, Msg::Ping { n }) => out.push(Effect::Send { conn, msg: Msg::Pong { n } }),
                (conn, _) => refuse(out, conn, Refusal::text(err::BAD_ARG, "not for sbatchd")),
            },
            Input::Os(OsInput::Sampled(tasks, host)) => self.sampled(now, (tasks, host), out),
            Input::Os(OsInput::Looked { conn, look, found }) => {
                self.process_looked(conn, &look, found, out);
            }
            _ => {}
        }
    }

    fn deadline(&self) -> Option<u64> {
        let jobs = self.jobs.values().filter_map(next_of).min();
        let members = self.members_deadline();
        let own = [self.sample_due(), self.tidy_deadline(), self.host_tasks_deadline(), members];
        let own = own.into_iter().chain([self.directories_deadline(), self.validations_deadline()]);
        let retries = [self.retry_launcher, self.retry_lim];
        own.chain(retries).chain([jobs]).flatten().min()
    }
}

fn refuse(out: &mut Vec<Effect>, conn: ConnId, why: Refusal) {
    out.push(Effect::Send { conn, msg: Msg::Refused(why) });
    out.push(Effect::Close { conn });
}

#[cfg(test)]
mod tests;
