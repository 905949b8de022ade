//! The state of sbatchd, and its messages to mbatchd, the launcher and its log. The files above it
//! act on attempts: end.rs, start.rs, tidy.rs, watch.rs, link.rs; mod.rs takes the inputs.

use super::directory_table::DirectoryTable;
use super::tidy_table::TidyTable;
use super::validation_table::Validations;
use crate::exec::attempt::{Attempt, AttemptStage, Note};
use crate::exec::blobs::Blobs;
use crate::exec::clock_steps::ClockMark;
use crate::exec::host_commands::HostTask;
use crate::exec::members::Members;
use crate::exec::plan::HostEnvironment;
use crate::model::job::SpoolRef;
use crate::model::{JobKey, Now, time::US};
use crate::proto::launch::{FinishPlan, LaunchMsg, Plan, TaskId, TaskInfo, TaskPlan, TaskStep};
use crate::proto::machine::ConnId;
use crate::proto::sbd::{Act, SbdMsg, SbdParams, StartJob, TaskState};
use crate::proto::{Effect, Msg, caps};
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
/// A host that had no LIM for this long is not master if others may be, microseconds.
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
pub(super) const SIGINT: i32 = 2;
pub(super) const SIGKILL: i32 = 9;
pub(super) const SIGCONT: i32 = 18;
pub(super) const SIGSTOP: i32 = 19;
pub(super) const SIGTSTP: i32 = 20;

/// The configuration of sbatchd at its start.
#[derive(Clone, Debug)]
pub struct SbatchdConf {
    pub site: HostEnvironment,
    pub cluster: String,
    /// Primary administrator, for the sender line of reports.
    pub admin: String,
    /// Master candidates in their order.
    pub candidates: Vec<String>,
    /// Shortest time between two measurements of a job without limits on its usage, seconds.
    pub pim_interval: u64,
    /// Simulated execution is allowed only here.
    pub personal: bool,
    /// The time zone of the times in reports.
    pub zone: TimeZone,
}

/// The machine.
#[derive(Debug)]
pub struct Sbatchd {
    pub(super) conf: SbatchdConf,
    pub(super) params: SbdParams,
    pub(super) epoch: u64,
    /// The connection of the current mbatchd, and whether it has its inventory.
    pub(super) mbd: Option<(ConnId, bool)>,
    /// When mbatchd was told all that is here, monotonic microseconds.
    pub(super) inventory_at: u64,
    /// The peer accepts an inventory in pieces.
    pub(super) pieces: bool,
    /// Authenticated mbatchds that have not said hello yet.
    pub(super) callers: BTreeSet<ConnId>,
    /// Connections of the res of this host.
    pub(super) askers: BTreeSet<ConnId>,
    pub(super) boot_id: String,
    /// The launcher's answer to `Hello`, as far as it has come.
    pub(super) listing: Option<Vec<TaskInfo>>,
    /// The launcher has listed its tasks on this connection; ever.
    pub(super) linked: bool,
    pub(super) loaded: bool,
    pub(super) lim_up: bool,
    /// Since when there is no LIM.
    pub(super) lim_lost: Option<u64>,
    /// Whether this is the master host, once known.
    pub(super) master: Option<bool>,
    pub(super) jobs: BTreeMap<JobKey, Attempt>,
    pub(super) clock: ClockMark,
    pub(super) blobs: Blobs,
    pub(super) asked: BTreeSet<SpoolRef>,
    /// Orders that came while the launcher was away.
    pub(super) deferred: Vec<(JobKey, (u32, u64), Act)>,
    pub(super) retry_launcher: Option<u64>,
    pub(super) retry_lim: Option<u64>,
    pub(super) sampled_at: u64,
    /// When the memory of the host is looked at next (LSB_MEMLIMIT_ENF_CONTROL), microseconds.
    pub(super) memory_look_at: u64,
    /// Next process number of simulated execution.
    pub(super) sim_pid: u32,
    /// Commands for jobs whose first host is another one.
    pub(super) host_tasks: BTreeMap<TaskId, HostTask>,
    /// Jobs of other first hosts, and tasks of jobs.
    pub(super) members: Members,
    /// The users, by uid, whose directories are to be tidied.
    pub(super) tidy: TidyTable,
    /// The directories of jobs that are to be removed.
    pub(super) directories: DirectoryTable,
    /// The looks into files of users that mbatchd has asked for.
    pub(super) validations: Validations,
}

impl Sbatchd {
    pub fn new(conf: SbatchdConf) -> Self {
        let (sbd_sleep_time, job_terminate_interval) = (30, 10);
        let params = SbdParams { sbd_sleep_time, job_terminate_interval, ..SbdParams::default() };
        Sbatchd {
            conf,
            params,
            epoch: 0,
            mbd: None,
            inventory_at: 0,
            pieces: false,
            callers: BTreeSet::new(),
            askers: BTreeSet::new(),
            boot_id: String::new(),
            listing: None,
            linked: false,
            loaded: false,
            lim_up: false,
            lim_lost: None,
            master: None,
            jobs: BTreeMap::new(),
            clock: ClockMark::default(),
            blobs: Blobs::default(),
            asked: BTreeSet::new(),
            deferred: Vec::new(),
            retry_launcher: None,
            retry_lim: None,
            sampled_at: 0,
            memory_look_at: 0,
            sim_pid: 1,
            host_tasks: BTreeMap::new(),
            members: Members::default(),
            tidy: TidyTable::default(),
            directories: DirectoryTable::default(),
            validations: Validations::default(),
        }
    }

    /// Tells the current mbatchd, if it has the inventory of this host.
    pub(super) fn tell(&self, msg: SbdMsg, out: &mut Vec<Effect>) {
        if let Some((conn, true)) = self.mbd {
            out.push(Effect::Send { conn, msg: Msg::Sbd(msg) });
        }
    }

    pub(super) fn tell_state(&self, key: JobKey, out: &mut Vec<Effect>) {
        if let Some(job) = self.jobs.get(&key) {
            self.tell_task(job.state(), out);
        }
    }

    pub(super) fn tell_task(&self, mut task: TaskState, out: &mut Vec<Effect>) {
        caps::cut_tasks(std::slice::from_mut(&mut task));
        self.tell(SbdMsg::State(Box::new(task)), out);
    }

    /// Tells all there is, as soon as all is known.
    pub(super) fn inventory(&mut self, now: Now, out: &mut Vec<Effect>) {
        let Some((conn, false)) = self.mbd else { return };
        if !self.loaded {
            return;
        }
        (self.mbd, self.inventory_at) = (Some((conn, true)), now.mono_us);
        let mut tasks: Vec<_> = self.jobs.values().map(Attempt::state).collect();
        caps::cut_tasks(&mut tasks);
        let pieces = if self.pieces { caps::pieces(tasks) } else { vec![tasks] };
        let last = pieces.len() - 1;
        for (n, tasks) in pieces.into_iter().enumerate() {
            let boot_id = self.boot_id.clone();
            let more = n < last;
            let members =
                (!more).then(|| self.members.to_settle(|key| self.jobs.contains_key(&key)));
            let of = members.iter().flatten().filter(|key| self.members.order(**key).is_none());
            let (validates, unjoined) = (true, of.copied().collect());
            let host = &self.conf.site.host;
            let slots = |key: &JobKey| self.members.slots(*key, host);
            let member_slots = members.iter().flatten().map(slots).collect();
            self.tell(
                SbdMsg::Inventory {
                    boot_id,
                    tasks,
                    more,
                    members,
                    validates,
                    unjoined,
                    member_slots,
                },
                out,
            );
        }
        self.asked.clear();
        let waits = |j: &&Attempt| matches!(j.stage, AttemptStage::Blobs | AttemptStage::Finishing);
        let waiting = self.jobs.values().filter(waits);
        let places: Vec<_> =
            waiting.flat_map(|j| [j.note.order.env, j.note.order.script]).collect();
        for at in places {
            self.need(at, out);
        }
    }

    /// Asks mbatchd for the bytes of a job that are not here.
    pub(super) fn need(&mut self, at: SpoolRef, out: &mut Vec<Effect>) {
        if at.len > 0 && self.blobs.get(at).is_none() && self.asked.insert(at) {
            self.tell(SbdMsg::NeedBlob { at }, out);
        }
    }
}

pub(super) fn note_text(note: &Note) -> String {
    serde_json::to_string(note).unwrap_or_default()
}

pub(super) fn ask(out: &mut Vec<Effect>, msg: LaunchMsg) {
    out.push(Effect::Send { conn: LAUNCHER, msg: Msg::Launch(msg) });
}

pub(super) fn say(out: &mut Vec<Effect>, level: log::Level, text: String) {
    out.push(Effect::Say { level, text });
}

/// Has the launcher do something under the account that the job runs or ran under.
pub(super) fn as_account(job: &Attempt, step: TaskStep, what: FinishPlan, out: &mut Vec<Effect>) {
    as_user(&job.note.order, step, FinishPlan { account: job.account(), ..what }, out);
}

/// Has the launcher do something as the job's user.
pub(super) fn as_user(o: &StartJob, step: TaskStep, what: FinishPlan, out: &mut Vec<Effect>) {
    let what = TaskPlan::Finish(Box::new(what));
    let plan = Box::new(Plan { uid: o.uid, gid: o.gid, user: o.user.to_string(), what });
    let id = TaskId { key: o.key, step };
    ask(out, LaunchMsg::Start { id, plan, note: String::new() });
}
