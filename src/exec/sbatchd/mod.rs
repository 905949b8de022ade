//! sbatchd as a pure machine: the batch agent of one host.
//!
//! mbatchd connects to it; it connects to the launcher and to the local LIM. It keeps no file:
//! every attempt's start order and the little that changes ([`Mark`]) lie with the launcher as
//! the task's note, so an sbatchd that starts again goes on where the last one stopped.
//!
//! Invariants: nothing is told to mbatchd before the launcher has listed its tasks; an end is
//! told again after every reconnection until `Forget`; a start or an order seen before changes
//! nothing; an mbatchd of a lower epoch than one seen is refused.

mod end;
mod link;
mod start;
mod tidy;
mod watch;

pub use tidy::KEEP_SECS;
use watch::next_of;

use crate::exec::attempt::{Attempt, Cause, Note, Stage};
use crate::exec::blobs::Blobs;
use crate::exec::plan::{self, HostEnvironment};
use crate::exec::report::{self, Report};
use crate::lang::resreq;
use crate::model::job::{End, SpoolRef, opt, opt2};
use crate::model::reason::{err, pend, term};
use crate::model::{ByteStr, JobKey, Now, time::US};
use crate::proto::launch::{
    self, Ended, FinishPlan, LaunchMsg, Mail, OsEffect, OsInput, Plan, Ready, Session, Setup, Step,
    TaskId, TaskInfo, What,
};
use crate::proto::lim::LimMsg;
use crate::proto::machine::{ConnId, Endpoint};
use crate::proto::sbd::{Act, Phase, Post, SbdMsg, SbdParams, StartJob, TaskState};
use crate::proto::{Daemon, Effect, Input, Machine, Msg, Peer, Refusal, caps};
use jiff::tz::TimeZone;
use std::collections::{BTreeMap, BTreeSet};

/// The connection to the launcher.
pub const LAUNCHER: ConnId = 1;
/// The connection to the local LIM.
pub const LIM: ConnId = 2;
/// Pause before the launcher is called again, microseconds.
pub const LAUNCHER_RETRY: u64 = US / 5;
/// Pause before the LIM is called again, microseconds.
pub const LIM_RETRY: u64 = 2 * US;
/// Without a LIM for so long this host is no master, where others may be, microseconds.
pub const LIM_LOST: u64 = 4 * US;
/// Shortest time between two looks at all processes, microseconds.
pub const SAMPLE_GAP: u64 = US;
/// How long an end waits for its report to be written, microseconds.
pub const FINISH_WAIT: u64 = 30 * US;
/// Most attempts known at once.
pub const ATTEMPTS_MAX: usize = 16_384;
/// Most orders kept while the launcher is away; further ones are dropped and mbatchd gives them
/// again when it reconnects.
pub const DEFERRED_MAX: usize = 16_384;

const SIGINT: i32 = 2;
const SIGKILL: i32 = 9;
const SIGCONT: i32 = 18;
const SIGSTOP: i32 = 19;

/// The configuration of sbatchd at its start.
#[derive(Clone, Debug)]
pub struct SbatchdConf {
    pub site: HostEnvironment,
    pub cluster: String,
    /// Primary administrator, for the sender line of reports.
    pub admin: String,
    /// Master candidates in their order.
    pub candidates: Vec<String>,
    /// Simulated execution is allowed only here.
    pub personal: bool,
    /// For the times in reports.
    pub zone: TimeZone,
}

/// The machine.
#[derive(Debug)]
pub struct Sbatchd {
    conf: SbatchdConf,
    params: SbdParams,
    epoch: u64,
    /// The connection of the current mbatchd, and whether it has its inventory.
    mbd: Option<(ConnId, bool)>,
    /// The peer accepts an inventory in pieces.
    pieces: bool,
    /// Authenticated mbatchds that have not said hello yet.
    callers: BTreeSet<ConnId>,
    boot_id: String,
    /// The launcher's answer to `Hello`, as far as it has come.
    listing: Option<Vec<TaskInfo>>,
    /// The launcher has listed its tasks on this connection; ever.
    linked: bool,
    loaded: bool,
    lim_up: bool,
    /// Since when there is no LIM.
    lim_lost: Option<u64>,
    /// Whether this is the master host, once known.
    master: Option<bool>,
    jobs: BTreeMap<JobKey, Attempt>,
    blobs: Blobs,
    asked: BTreeSet<SpoolRef>,
    /// Orders that came while the launcher was away.
    deferred: Vec<(JobKey, (u32, u64), Act)>,
    retry_launcher: Option<u64>,
    retry_lim: Option<u64>,
    sampled_at: u64,
    /// Next process number of simulated execution.
    sim_pid: u32,
    /// By uid: whose directory is to be tidied.
    tidy: BTreeMap<u32, tidy::Due>,
}

impl Sbatchd {
    pub fn new(conf: SbatchdConf) -> Self {
        let params = SbdParams { sbd_sleep_time: 30, job_terminate_interval: 10, simulated: false };
        Sbatchd {
            conf,
            params,
            epoch: 0,
            mbd: None,
            pieces: false,
            callers: BTreeSet::new(),
            boot_id: String::new(),
            listing: None,
            linked: false,
            loaded: false,
            lim_up: false,
            lim_lost: None,
            master: None,
            jobs: BTreeMap::new(),
            blobs: Blobs::default(),
            asked: BTreeSet::new(),
            deferred: Vec::new(),
            retry_launcher: None,
            retry_lim: None,
            sampled_at: 0,
            sim_pid: 1,
            tidy: BTreeMap::new(),
        }
    }

    fn opened(&mut self, conn: ConnId, peer: Peer, out: &mut Vec<Effect>) {
        match (conn, peer) {
            (LAUNCHER, _) => {
                self.listing = Some(Vec::new());
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

    /// To the current mbatchd, if it has its inventory.
    fn tell(&self, msg: SbdMsg, out: &mut Vec<Effect>) {
        if let Some((conn, true)) = self.mbd {
            out.push(Effect::Send { conn, msg: Msg::Sbd(msg) });
        }
    }

    fn tell_state(&self, key: JobKey, out: &mut Vec<Effect>) {
        if let Some(job) = self.jobs.get(&key) {
            self.tell_task(job.state(), out);
        }
    }

    fn tell_task(&self, mut task: TaskState, out: &mut Vec<Effect>) {
        caps::cut_tasks(std::slice::from_mut(&mut task));
        self.tell(SbdMsg::State(Box::new(task)), out);
    }

    fn mbatchd(&mut self, now: Now, conn: ConnId, msg: SbdMsg, out: &mut Vec<Effect>) {
        if let SbdMsg::Hello { epoch, cluster, params, pieces } = msg {
            return self.hello(conn, (epoch, &cluster), (params, pieces), out);
        }
        if self.mbd != Some((conn, true)) {
            return refuse(out, conn, Refusal::text(err::BAD_ARG, "no greeting"));
        }
        match msg {
            SbdMsg::Start(order) => self.start(now, *order, out),
            SbdMsg::Blob { at, data } => self.blob(now, at, data.0, out),
            SbdMsg::Act { key, seq, order, act } => self.act(now, key, (seq, order), act, out),
            SbdMsg::Forget { key, mail } => {
                self.mail_user(key, &mail, out);
                self.forget(now, key, out);
            }
            SbdMsg::Params(params) => self.set_params(params, out),
            SbdMsg::Logging(set) => out.push(Effect::Logging(set)),
            _ => refuse(out, conn, Refusal::text(err::BAD_ARG, "not an order")),
        }
    }

    fn hello(
        &mut self,
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
        (self.mbd, self.pieces) = (Some((conn, false)), pieces);
        self.inventory(out);
    }

    /// Tells all there is, as soon as all is known.
    fn inventory(&mut self, out: &mut Vec<Effect>) {
        let Some((conn, false)) = self.mbd else { return };
        if !self.loaded {
            return;
        }
        self.mbd = Some((conn, true));
        let mut tasks: Vec<_> = self.jobs.values().map(Attempt::state).collect();
        caps::cut_tasks(&mut tasks);
        let pieces = if self.pieces { caps::pieces(tasks) } else { vec![tasks] };
        let last = pieces.len() - 1;
        for (n, tasks) in pieces.into_iter().enumerate() {
            let boot_id = self.boot_id.clone();
            self.tell(SbdMsg::Inventory { boot_id, tasks, more: n < last }, out);
        }
        self.asked.clear();
        let waits = |j: &&Attempt| matches!(j.stage, Stage::Blobs | Stage::Finishing);
        let waiting = self.jobs.values().filter(waits);
        let places: Vec<_> =
            waiting.flat_map(|j| [j.note.order.env, j.note.order.script]).collect();
        for at in places {
            self.need(at, out);
        }
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
                (conn, Msg::Ping { n }) => out.push(Effect::Send { conn, msg: Msg::Pong { n } }),
                (conn, _) => refuse(out, conn, Refusal::text(err::BAD_ARG, "not for sbatchd")),
            },
            Input::Os(OsInput::Sampled(sessions)) => self.sampled(now, sessions, out),
            _ => {}
        }
    }

    fn deadline(&self) -> Option<u64> {
        let jobs = self.jobs.values().filter_map(next_of).min();
        let own = [self.sample_due(), self.tidy_deadline(), self.retry_launcher, self.retry_lim];
        own.into_iter().chain([jobs]).flatten().min()
    }
}

fn note_text(note: &Note) -> String {
    serde_json::to_string(note).unwrap_or_default()
}

fn ask(out: &mut Vec<Effect>, msg: LaunchMsg) {
    out.push(Effect::Send { conn: LAUNCHER, msg: Msg::Launch(msg) });
}

fn refuse(out: &mut Vec<Effect>, conn: ConnId, why: Refusal) {
    out.push(Effect::Send { conn, msg: Msg::Refused(why) });
    out.push(Effect::Close { conn });
}

fn say(out: &mut Vec<Effect>, level: log::Level, text: String) {
    out.push(Effect::Say { level, text });
}

#[cfg(test)]
mod tests;
