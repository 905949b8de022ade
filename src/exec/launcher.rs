//! The launcher as a pure machine: the parent of every task of this host, and the supervisor of its
//! daemons (launcher_supervision.rs).
//!
//! Invariants: a task's process does nothing before its journal line is written, so a task that
//! no journal knows never ran; a start of a known task changes nothing, but for a control
//! that has ended, which begins anew; an end waits until
//! `Forget`; an end that nobody saw is `Unknown`, never guessed; uid 0 is refused but in a
//! personal cluster of root, and there every other uid.

use super::launcher_state::{self, LauncherState, OwnTask, Replay, Saved, SupervisedDaemon};
use super::launcher_supervision::{RESTART_MOST, RESTART_MOST_OWN};
use super::life::GIVE_SIGNS;
use crate::model::job::{End, Usage};
use crate::model::{JobKey, Now, time::US};
use crate::proto::launch::{
    self, Journal, LaunchMsg, OsEffect, OsInput, Plan, Setup, TASKS_MAX, TaskEnd, TaskGroup,
    TaskId, TaskIdentity, TaskInfo, TaskPlan, TaskStep,
};
use crate::proto::member::TaskNote;
use crate::proto::{Daemon, Effect, Input, Machine, Msg, Peer, machine::ConnId};
use std::collections::BTreeMap;

/// How long `Down` with jobs waits for their ends to be reported and forgotten, microseconds.
pub const DOWN_GRACE: u64 = 5 * US;
/// Interval between two searches for processes that are not our children, microseconds.
pub const CHECK_EVERY: u64 = US / 2;
/// The journal is rewritten when it has this many lines more than four times its tasks.
pub const JOURNAL_SLACK: usize = 1_000;
const SIGKILL: i32 = 9;

/// The configuration of the launcher at its start.
#[derive(Clone, Debug, Default)]
pub struct LauncherConf {
    /// The uid of the launcher.
    pub uid: u32,
    /// Every task is our own uid.
    pub personal: bool,
    pub boot_id: String,
    /// Daemons to keep running.
    pub daemons: Vec<Daemon>,
    /// The users who may connect besides root and the launcher's own user.
    pub peers: Vec<u32>,
    /// lsf.sudoers allows jobs of root's.
    pub root_jobs: bool,
    /// The user of lsf.sudoers as whom daemons run, if that is not the administrator.
    pub users: BTreeMap<Daemon, String>,
    /// The processes that a job leaves behind are killed at its end.
    pub end_left_processes: bool,
    /// MBD_HANG_TIME, microseconds; 0: a daemon that hangs is left alone.
    pub hang: u64,
}

#[derive(Clone, Copy, Debug)]
enum Down {
    /// Tasks are killed; daemons go at this monotonic instant at the latest.
    Jobs(u64),
    Daemons,
}

/// The machine.
#[derive(Debug)]
pub struct Launcher {
    conf: LauncherConf,
    state: LauncherState,
    /// Children by pid.
    children: BTreeMap<u32, TaskId>,
    /// Connections that may ask: which of our daemons it is; whether it said `Hello` and is told
    /// of changes, a daemon of those that concern it.
    conns: BTreeMap<ConnId, (Option<Daemon>, bool, Option<TaskId>)>,
    check_at: Option<u64>,
    lines: usize,
    down: Option<Down>,
}

impl Launcher {
    /// A launcher that finds this journal (empty: none). Processes in it are not our children.
    pub fn new(conf: LauncherConf, journal: Vec<Journal>) -> Self {
        let mut state = LauncherState::new(&conf.daemons);
        let mut replay = Replay::new(&conf.boot_id, &conf.daemons);
        for line in journal {
            replay.line(&mut state, line);
        }
        Launcher::with(conf, state)
    }

    /// The launcher after it replaced itself; `None` where the saved state is of a version that
    /// cannot be read.
    pub fn resume(conf: LauncherConf, saved: Saved) -> Option<Self> {
        let mut state = LauncherState::new(&conf.daemons);
        state.take(saved)?;
        let mut me = Launcher::with(conf, state);
        let own = me.state.tasks.values().filter(|task| task.child && task.alive());
        me.children = own.map(|task| (task.info.pid, task.info.id)).collect();
        Some(me)
    }

    fn with(conf: LauncherConf, state: LauncherState) -> Self {
        let (children, conns) = (BTreeMap::new(), BTreeMap::new());
        Launcher { conf, state, children, conns, check_at: None, lines: 0, down: None }
    }

    /// The argument of [`Launcher::resume`].
    pub fn save(&self) -> Saved {
        self.state.save()
    }

    fn begin(&mut self, now: Now, out: &mut Vec<Effect>) {
        for t in self.state.tasks.values_mut().filter(|t| t.alive() && t.ticks == 0) {
            t.info.ended = Some(unknown(now, true));
        }
        self.state.sbatchd_since = now.mono_us;
        self.state.retire(now, &self.conf.daemons, out);
        self.rewrite(out);
        self.check(now, out);
    }

    // ---- requests ----

    fn message(&mut self, now: Now, conn: ConnId, msg: LaunchMsg, out: &mut Vec<Effect>) {
        match msg {
            LaunchMsg::Hello => self.list_tasks(conn, None, out),
            LaunchMsg::Start { id, plan, note } => self.start(now, conn, id, plan, note, out),
            LaunchMsg::Signal { id, signal } => self.signal(id, signal, out),
            LaunchMsg::Note { key, note } => self.note(now, key, note, out),
            LaunchMsg::Forget { key, over_at } => {
                self.state.over(key, over_at);
                self.forget(key, out);
                self.downward(now, out);
            }
            LaunchMsg::Run { daemon, on } => self.run(now, daemon, on, out),
            LaunchMsg::Daemons => {
                let hears = self.conns.get(&conn).is_some_and(|of| of.1);
                let tasks = self.state.tasks.values().map(|t| &t.info).filter(|_| hears);
                let new = tasks.filter(|t| t.id.step == TaskStep::Task && t.setup.is_none());
                new.for_each(|t| send(out, conn, told(t)));
                send(out, conn, self.state.daemon_list());
            }
            LaunchMsg::Down { jobs } => self.go_down(now, jobs, out),
            LaunchMsg::Tasks { .. }
            | LaunchMsg::Task(_)
            | LaunchMsg::Refused { .. }
            | LaunchMsg::DaemonList { .. } => {
                say(out, log::Level::Warn, format!("connection {conn}: not a request"));
                out.push(Effect::Close { conn });
            }
        }
    }

    /// Tells the tasks behind this one, as many as one message holds, and from then on all news of
    /// tasks; the rest when that was read.
    fn list_tasks(&mut self, conn: ConnId, last: Option<TaskId>, out: &mut Vec<Effect>) {
        let rest = self.state.tasks.values().filter(|t| !t.forget && Some(t.info.id) > last);
        let (tasks, more) = launch::piece_of(rest.map(|t| &t.info));
        let conn_state = self.conns.entry(conn).or_default();
        (conn_state.1, conn_state.2) = (true, tasks.last().filter(|_| more).map(|t| t.id));
        send(out, conn, LaunchMsg::Tasks { boot_id: self.conf.boot_id.clone(), tasks, more });
    }

    fn start(
        &mut self,
        now: Now,
        conn: ConnId,
        id: TaskId,
        plan: Box<Plan>,
        note: String,
        out: &mut Vec<Effect>,
    ) {
        let over = |t: &OwnTask| t.info.ended.is_some() && !t.forget;
        if id.step == TaskStep::Control && self.state.tasks.get(&id).is_some_and(over) {
            self.remove(id, out);
        }
        if let Some(t) = self.state.tasks.get(&id) {
            if t.info.setup.is_some() || t.info.ended.is_some() {
                send(out, conn, told(&t.info));
            }
            return;
        }
        if let Some(why) = self.refusal(id, &plan, &note) {
            say(out, log::Level::Warn, format!("start of {id} refused: {why}"));
            return send(out, conn, LaunchMsg::Refused { id, why, again: false });
        }
        let of_job = TaskNote::of(&note).filter(|_| id.step == TaskStep::Task);
        if of_job.is_some_and(|of| self.state.by_earlier_sbatchd(&of)) {
            let why = "sbatchd was started after it was asked about the job".into();
            return send(out, conn, LaunchMsg::Refused { id, why, again: true });
        }
        let (uid, started) = (plan.uid, now.secs());
        let own_group = id.step == TaskStep::Job || of_job.is_some();
        let info = TaskInfo { id, uid, started, note, ..TaskInfo::new(id) };
        self.state.tasks.insert(id, OwnTask { info, ticks: 0, child: true, forget: false });
        out.push(Effect::Os(OsEffect::Spawn { id, plan, own_group }));
    }

    /// Does this ask for a task to be started, and for nothing else?
    pub fn starts(input: &Input) -> bool {
        matches!(input, Input::Msg { msg: Msg::Launch(LaunchMsg::Start { .. }), .. })
    }

    /// Why a task may not be started; `None`: it may.
    fn refusal(&self, id: TaskId, plan: &Plan, note: &str) -> Option<String> {
        let own = self.conf.uid;
        if self.conf.personal || own != 0 {
            if plan.uid != own {
                return Some(format!("uid {} in a cluster of uid {own} alone", plan.uid));
            }
        } else if (plan.uid == 0 || plan.gid == 0) && !self.conf.root_jobs {
            return Some("nothing is started as root".into());
        }
        if let Some(why) = self.note_fault(id, note.len()) {
            return Some(why);
        }
        if id.step == TaskStep::Task
            && let Some(of) = TaskNote::of(note).filter(|of| self.state.is_over(of))
        {
            return Some(format!("job <{}> is over on this host", of.key.job_ref()));
        }
        if self.state.tasks.len() >= TASKS_MAX {
            return Some(format!("{TASKS_MAX} tasks are known here already"));
        }
        if self.down.is_some() && matches!(id.step, TaskStep::Job | TaskStep::Task) {
            return Some("this host's launcher is going down".into());
        }
        if let TaskPlan::Adopt { pid, ticks } = plan.what
            && self.tasks().any(|t| (t.pid, t.ticks) == (pid, ticks))
        {
            return Some(format!("process {pid} is a task already"));
        }
        None
    }

    /// Why a task cannot have a note of this length.
    fn note_fault(&self, id: TaskId, len: usize) -> Option<String> {
        let had = self.state.tasks.get(&id).map_or(0, |t| t.info.note.len());
        launch::note_fault(self.state.tasks.values().map(|t| t.info.note.len()), had, len)
    }

    /// Signals a task, or the processes that it left behind when it ended, but for another boot's.
    fn signal(&mut self, id: TaskId, signal: i32, out: &mut Vec<Effect>) {
        let can = |t: &&mut OwnTask| t.info.takes_signals() && (1..=64).contains(&signal);
        if let Some(t) = self.state.tasks.get_mut(&id).filter(can) {
            t.info.signalled_by(signal);
            out.push(signal_task(t, signal));
        }
    }

    fn note(&mut self, now: Now, key: JobKey, note: String, out: &mut Vec<Effect>) {
        let id = TaskId { key, step: TaskStep::Job };
        let fault = self.note_fault(id, note.len());
        // a note that belongs to no job is that of a task without a process, which is over
        if key.job == 0 && self.state.tasks.len() < TASKS_MAX {
            let info = TaskInfo { ended: Some(unknown(now, false)), ..TaskInfo::new(id) };
            let task = OwnTask { info, ticks: 0, child: false, forget: false };
            let lines = self.state.tasks.entry(id).or_insert(task).info.journal();
            lines.for_each(|line| self.journal(line, out));
        }
        if let Some(t) = self.state.tasks.get_mut(&id).filter(|_| fault.is_none()) {
            t.info.note.clone_from(&note);
            self.journal(Journal::Note { key, note }, out);
        }
    }

    fn forget(&mut self, key: JobKey, out: &mut Vec<Effect>) {
        let mut known = false;
        for step in TaskStep::ALL {
            let id = TaskId { key, step };
            match self.state.tasks.get_mut(&id) {
                Some(t) if t.info.ended.is_none() => t.forget = true,
                Some(_) => {
                    self.remove(id, out);
                    known = true;
                }
                None => {}
            }
        }
        if known {
            self.journal(Journal::Forget { key }, out);
        }
    }

    // ---- daemons ----

    fn run(&mut self, now: Now, daemon: Daemon, on: bool, out: &mut Vec<Effect>) {
        let ours = launcher_state::runs_here(&self.conf.daemons, daemon);
        if !ours || self.state.supervised_daemon(daemon).want == on {
            return;
        }
        self.journal(Journal::Want { daemon, on }, out);
        self.state.want(now, daemon, on, out);
        self.tick(now, out);
    }

    fn daemon_up(&mut self, now: Now, daemon: Daemon, id: (u32, u64), out: &mut Vec<Effect>) {
        let hang = self.conf.hang;
        if daemon == Daemon::Sbatchd {
            self.state.sbatchd_since = now.mono_us;
        }
        let sup = self.state.supervised_daemon(daemon);
        (sup.pid, sup.ticks, sup.child) = (id.0, id.1, true);
        (sup.since, sup.at, sup.kill_at) = (now.mono_us, None, None);
        sup.life.started(now.mono_us, if GIVE_SIGNS.contains(&daemon) { hang } else { 0 });
        let want = sup.want;
        self.journal(Journal::Daemon { daemon, pid: id.0, ticks: id.1 }, out);
        if !want || self.down.is_some() {
            self.state.stop(now, daemon, out);
        }
    }

    fn daemon_gone(&mut self, now: Now, daemon: Daemon, out: &mut Vec<Effect>) {
        let most = if self.conf.personal { RESTART_MOST_OWN } else { RESTART_MOST };
        self.state.gone(now, daemon, most, self.down.is_some());
        // what it said last is not about its successor
        self.conns.values_mut().filter(|c| c.0 == Some(daemon)).for_each(|c| c.0 = None);
        self.downward(now, out);
    }

    /// A sign of life, where it comes from one of our daemons.
    fn sign(&mut self, now: Now, conn: ConnId) {
        let hang = self.conf.hang;
        let Some((Some(daemon), ..)) = self.conns.get(&conn) else { return };
        if let Some(sup) = self.state.supervised.iter_mut().find(|s| s.daemon == *daemon) {
            sup.life.sign(now.mono_us, sup.since, hang);
        }
    }

    // ---- what the system tells ----

    fn os(&mut self, now: Now, input: OsInput, out: &mut Vec<Effect>) {
        match input {
            OsInput::Spawned { id, pid, ticks, group } => {
                self.spawned(id, (pid, ticks), group, out);
            }
            OsInput::SpawnFailed { id, why } => {
                self.state.tasks.remove(&id);
                say(out, log::Level::Error, format!("{id} could not be started: {why}"));
                let refused = LaunchMsg::Refused { id, why, again: false };
                self.tell(id.step, false, refused, out);
            }
            OsInput::Setup { id, setup, ended } => self.setup(id, setup, ended, out),
            OsInput::DaemonUp { daemon, pid, ticks } => {
                self.daemon_up(now, daemon, (pid, ticks), out);
            }
            OsInput::DaemonFailed { daemon, why } => {
                say(out, log::Level::Error, format!("{} does not start: {why}", daemon.name()));
                self.daemon_gone(now, daemon, out);
            }
            OsInput::GroupAtEnd { pid, out_of_memory, empty } => {
                let task = self.children.get(&pid).and_then(|id| self.state.tasks.get_mut(id));
                if let Some(group) = task.and_then(|t| t.info.group.as_mut()) {
                    (group.out_of_memory, group.empty) = (out_of_memory, empty);
                }
            }
            OsInput::Exited { pid, status, usage } => self.exited(now, pid, status, usage, out),
            OsInput::Gone { pid, ticks } => self.gone(now, pid, ticks, out),
            OsInput::Down { jobs } => self.go_down(now, jobs, out),
            OsInput::Adopted { id, pid, ticks } => self.adopted(now, id, (pid, ticks), out),
            OsInput::Sampled(..) | OsInput::Looked { .. } => {}
        }
    }

    /// The process of a task was there before it: nothing goes on, and nobody hears how it ends.
    fn adopted(&mut self, now: Now, id: TaskId, process: (u32, u64), out: &mut Vec<Effect>) {
        let Some(t) = self.state.tasks.get_mut(&id) else { return };
        (t.info.pid, t.info.ticks, t.ticks, t.child) = (process.0, process.1, process.1, false);
        t.info.setup = Some(Setup::Ready(Box::default()));
        t.info.journal().for_each(|line| self.journal(line, out));
        self.check_at.get_or_insert(now.mono_us + CHECK_EVERY);
        self.tell_task(id, out);
    }

    fn spawned(
        &mut self,
        id: TaskId,
        (pid, ticks): (u32, u64),
        group: Option<Box<TaskGroup>>,
        out: &mut Vec<Effect>,
    ) {
        let Some(t) = self.state.tasks.get_mut(&id) else { return };
        (t.info.pid, t.info.ticks, t.ticks) = (pid, ticks, ticks);
        t.info.group = group;
        self.children.insert(pid, id);
        t.info.journal().for_each(|line| self.journal(line, out));
        out.push(Effect::Os(OsEffect::Go { id }));
    }

    fn setup(&mut self, id: TaskId, setup: Setup, ended: bool, out: &mut Vec<Effect>) {
        let Some(t) = self.state.tasks.get_mut(&id) else { return };
        t.info.heard(setup.clone());
        self.journal(Journal::Setup { id, setup }, out);
        if !ended {
            self.tell_task(id, out);
        }
    }

    fn exited(&mut self, now: Now, pid: u32, status: i32, usage: Usage, out: &mut Vec<Effect>) {
        if let Some(id) = self.children.remove(&pid) {
            let (time, end) = (now.secs(), End::Status(status));
            self.end(now, id, TaskEnd { time, end, usage, restarted: false }, out);
        } else if let Some(sup) = self.state.supervised.iter().find(|s| s.pid == pid && s.child) {
            let daemon = sup.daemon;
            if sup.kill_at.is_none() {
                let text = format!("{} ended with wait status {status:#x}", daemon.name());
                say(out, log::Level::Warn, text);
            }
            self.daemon_gone(now, daemon, out);
        }
    }

    fn gone(&mut self, now: Now, pid: u32, ticks: u64, out: &mut Vec<Effect>) {
        let is = |t: &&OwnTask| !t.child && t.alive() && (t.info.pid, t.ticks) == (pid, ticks);
        if let Some(id) = self.state.tasks.values().find(is).map(|t| t.info.id) {
            self.end(now, id, unknown(now, false), out);
        }
        let is = |s: &&SupervisedDaemon| !s.child && (s.pid, s.ticks) == (pid, ticks);
        if let Some(daemon) = self.state.supervised.iter().find(is).map(|s| s.daemon) {
            self.daemon_gone(now, daemon, out);
        }
    }

    fn remove(&mut self, id: TaskId, out: &mut Vec<Effect>) {
        let group = self.state.tasks.remove(&id).and_then(|t| t.info.group);
        out.extend(group.map(|group| Effect::Os(OsEffect::Release { group })));
    }

    /// The processes that run for tasks, as far as they are known.
    pub fn tasks(&self) -> impl Iterator<Item = TaskIdentity> {
        self.state.tasks.values().filter(|t| t.info.pid != 0).map(OwnTask::identity)
    }

    fn end(&mut self, now: Now, id: TaskId, ended: TaskEnd, out: &mut Vec<Effect>) {
        let Some(t) = self.state.tasks.get_mut(&id) else { return };
        t.info.ended = Some(ended);
        let left = id.step == TaskStep::Job && self.conf.end_left_processes && t.ticks != 0;
        if left {
            out.push(signal_task(t, SIGKILL));
        }
        if t.forget {
            self.remove(id, out);
            self.journal(Journal::Forget { key: id.key }, out);
        } else {
            self.journal(Journal::End { id, ended }, out);
            self.tell_task(id, out);
        }
        self.downward(now, out);
    }

    // ---- going down ----

    fn go_down(&mut self, now: Now, jobs: bool, out: &mut Vec<Effect>) {
        if jobs && !matches!(self.down, Some(Down::Jobs(_))) {
            self.down = Some(Down::Jobs(now.mono_us + DOWN_GRACE));
            for t in self.state.tasks.values_mut().filter(|t| t.alive()) {
                t.info.signalled_by(SIGKILL);
                out.push(signal_task(t, SIGKILL));
            }
        } else if self.down.is_none() {
            self.down = Some(Down::Daemons);
        }
        self.downward(now, out);
    }

    /// The next step of the end, once the previous one is complete.
    fn downward(&mut self, now: Now, out: &mut Vec<Effect>) {
        let ready = match self.down {
            None => return,
            Some(Down::Jobs(by)) => self.nothing_to_tell() || now.mono_us >= by,
            Some(Down::Daemons) => true,
        };
        if !ready {
            return;
        }
        self.down = Some(Down::Daemons);
        for i in 0..self.state.supervised.len() {
            self.state.stop(now, self.state.supervised[i].daemon, out);
        }
        if self.state.supervised.iter().all(|s| s.pid == 0) {
            // a successor need not look for daemons that are gone
            self.rewrite(out);
            out.push(Effect::Exit { code: 0 });
        }
    }

    /// No task is alive, and no end waits for a connected daemon to take it.
    fn nothing_to_tell(&self) -> bool {
        let heard = self.conns.values().any(|c| c.1);
        self.state.tasks.values().all(|t| t.info.is_note())
            || (!heard && !self.state.tasks.values().any(OwnTask::alive))
    }

    // ---- time, journal, connections ----

    fn tick(&mut self, now: Now, out: &mut Vec<Effect>) {
        self.state.supervise(now, self.conf.hang, out);
        if self.check_at.is_some_and(|at| at <= now.mono_us) {
            self.check(now, out);
        }
        self.downward(now, out);
    }

    /// Looks for the processes that are not our children.
    fn check(&mut self, now: Now, out: &mut Vec<Effect>) {
        let tasks = self.state.tasks.values().filter(|t| !t.child && t.alive());
        let daemons = self.state.supervised.iter().filter(|s| !s.child && s.pid != 0);
        let mut procs: Vec<_> = tasks.map(|t| (t.info.pid, t.ticks)).collect();
        procs.extend(daemons.map(|s| (s.pid, s.ticks)));
        self.check_at = (!procs.is_empty()).then_some(now.mono_us + CHECK_EVERY);
        if !procs.is_empty() {
            out.push(Effect::Os(OsEffect::Check { procs }));
        }
    }

    fn journal(&mut self, line: Journal, out: &mut Vec<Effect>) {
        self.lines += 1;
        if self.lines > JOURNAL_SLACK + 4 * self.state.tasks.len() {
            self.rewrite(out);
        } else {
            out.push(Effect::Os(OsEffect::Journal(Box::new(line))));
        }
    }

    /// Writes the journal anew from what is known.
    fn rewrite(&mut self, out: &mut Vec<Effect>) {
        let lines = self.state.journal(&self.conf.boot_id, &self.conf.daemons, self.down.is_some());
        self.lines = lines.len();
        out.push(Effect::Os(OsEffect::Rewrite(lines)));
    }

    fn opened(&mut self, conn: ConnId, peer: &Peer, out: &mut Vec<Effect>) {
        match peer {
            Peer::Local { uid, pid }
                if *uid == 0 || *uid == self.conf.uid || self.conf.peers.contains(uid) =>
            {
                let ours = self.state.supervised.iter().find(|s| s.pid == *pid);
                self.conns.insert(conn, (ours.map(|s| s.daemon), false, None));
            }
            _ => {
                say(out, log::Level::Warn, format!("{peer} may not ask the launcher"));
                out.push(Effect::Close { conn });
            }
        }
    }

    fn tell_task(&self, id: TaskId, out: &mut Vec<Effect>) {
        if let Some(t) = self.state.tasks.get(&id) {
            let of_job = id.step == TaskStep::Task && !t.info.note.is_empty();
            self.tell(id.step, t.info.interactive() || of_job, told(&t.info), out);
        }
    }

    /// `both`: a job that res has the terminal of, or a task of res that is of a job.
    fn tell(&self, step: TaskStep, both: bool, msg: LaunchMsg, out: &mut Vec<Effect>) {
        let hears = |daemon| match daemon {
            Some(Daemon::Res) => step == TaskStep::Task || both && step == TaskStep::Job,
            Some(Daemon::Sbatchd) => step != TaskStep::Task || both,
            _ => true,
        };
        for (&conn, _) in self.conns.iter().filter(|(_, c)| c.1 && hears(c.0)) {
            send(out, conn, msg.clone());
        }
    }
}

impl Machine for Launcher {
    fn step(&mut self, now: Now, input: Input, out: &mut Vec<Effect>) {
        match input {
            Input::Start => {
                self.begin(now, out);
                self.tick(now, out);
            }
            Input::Tick => self.tick(now, out),
            Input::Opened { conn, peer } => self.opened(conn, &peer, out),
            Input::Closed { conn } => {
                self.conns.remove(&conn);
            }
            Input::Drained { conn } => {
                if let Some((.., last @ Some(_))) = self.conns.get(&conn).copied() {
                    self.list_tasks(conn, last, out);
                }
            }
            Input::Msg { conn, msg } if self.conns.contains_key(&conn) => match msg {
                Msg::Launch(msg) => self.message(now, conn, msg, out),
                Msg::Ping { n } => {
                    self.sign(now, conn);
                    out.push(Effect::Send { conn, msg: Msg::Pong { n } });
                }
                _ => out.push(Effect::Close { conn }),
            },
            Input::Os(input) => self.os(now, input, out),
            _ => {}
        }
    }

    fn deadline(&self) -> Option<u64> {
        let supervised = self.state.supervised.iter().flat_map(|s| [s.at, s.kill_at, s.life.at()]);
        let down = match self.down {
            Some(Down::Jobs(by)) => Some(by),
            _ => None,
        };
        supervised.chain([self.check_at, down]).flatten().min()
    }
}

fn unknown(now: Now, restarted: bool) -> TaskEnd {
    TaskEnd { time: now.secs(), end: End::Unknown, usage: Usage::default(), restarted }
}

/// A task as told to others: without the note of a job, which is long.
fn told(info: &TaskInfo) -> LaunchMsg {
    let TaskInfo { id, uid, pid, started, ended, ticks, signalled, .. } = *info;
    let (setup, group) = (info.setup.clone(), info.group.clone());
    let note = if id.step == TaskStep::Task { info.note.clone() } else { String::new() };
    let all = TaskInfo { id, uid, pid, started, setup, ended, note, ticks, group, signalled };
    LaunchMsg::Task(Box::new(all))
}

fn signal_task(task: &OwnTask, signal: i32) -> Effect {
    Effect::Os(OsEffect::SignalTask { task: Box::new(task.identity()), signal })
}

fn send(out: &mut Vec<Effect>, conn: ConnId, msg: LaunchMsg) {
    out.push(Effect::Send { conn, msg: Msg::Launch(msg) });
}

fn say(out: &mut Vec<Effect>, level: log::Level, text: String) {
    out.push(Effect::Say { level, text });
}

#[cfg(test)]
#[path = "launcher_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "launcher_adopt_tests.rs"]
mod adopt_tests;
