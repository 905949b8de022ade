//! res as a pure machine: remote tasks of users' commands (lsrun(1), res(8)).
//!
//! res never starts anything itself: the launcher does, and the starter, once it is the user,
//! brings the task's descriptors. This machine decides who may, carries bytes both ways within
//! their credit, and tells of the end after all output.
//!
//! Invariants: a connection reaches its own task and no other; a task whose command is gone is
//! hung up, and killed after LSF_RES_TIMEOUT; one that an earlier res left behind likewise, unless
//! its command comes back (kept.rs); root runs nothing but where LSF_ROOT_REX says so (the launcher
//! asks lsf.sudoers besides).

mod adoption;
mod ends;
mod foreign;
mod joined;
mod kept;
mod of_job;
mod state;
mod waiting;

use crate::model::reason::err;
use crate::model::{Now, time::US};
use crate::proto::launch::{Attach, JobPlan, LaunchMsg, Plan, Setup, TaskInfo, TaskPlan, TaskStep};
use crate::proto::machine::ConnId;
use crate::proto::member::{MemberMsg, Membership, TaskNote};
use crate::proto::res::{
    Account, AdoptProcess, CREDIT, Data, IN, ResMsg, RunTask, TaskNews, TaskOp, WINDOW,
};
use crate::proto::{Effect, Endpoint, Input, Machine, Msg, Peer, Refusal, caps};
use of_job::AdmittedTask;
use state::{Client, EOF_AGAIN, LAUNCHER, RETRY, SBATCHD, SIGCONT, SIGHUP, SIGKILL, Task, ask};
use waiting::WantedTask;

pub use state::{Res, ResConf, TASKS_MAX};

impl Res {
    // ---- the command ----

    fn message(&mut self, conn: ConnId, msg: Msg, out: &mut Vec<Effect>) {
        let Some(client) = self.clients.get(&conn) else { return };
        let n = client.task.filter(|n| self.tasks.contains_key(n));
        if let Msg::Res(msg) = &msg
            && let Err(refusal) = caps::check_res(msg)
        {
            return out.push(Effect::Send { conn, msg: Msg::Refused(refusal) });
        }
        match (msg, n) {
            (Msg::Res(msg), _)
                if asks(&msg)
                    && (n.is_some() || self.waiting.has(conn) || self.foreign.has(conn)) =>
            {
                self.wrong(conn, out);
            }
            (Msg::Res(ResMsg::Run(run)), None) => self.run(conn, *run, out),
            (Msg::Res(ResMsg::Join { job, pty }), None) => self.join(conn, job, pty, out),
            (Msg::Res(ResMsg::Resume { task }), None) => self.resume(conn, task, out),
            (Msg::Res(ResMsg::Adopt(process)), None) => {
                self.wants_process(conn, process, false, out);
            }
            (Msg::Res(ResMsg::Ending(process)), None) => {
                self.wants_process(conn, process, true, out);
            }
            (Msg::Res(ResMsg::Log { cpu_ms }), _) => {
                if self.admin_asks(conn, out) {
                    self.conf.acct_ms = cpu_ms;
                }
            }
            (Msg::Res(ResMsg::Logging(set)), _) => {
                if self.admin_asks(conn, out) {
                    out.push(Effect::Logging(set));
                }
            }
            (Msg::Data(data), Some(n)) => self.input(conn, n, data, out),
            (Msg::Res(msg), Some(n)) => self.control(n, msg, out),
            // what crossed the end of a task
            (Msg::Data(_) | Msg::Res(_), None) => {}
            _ => self.wrong(conn, out),
        }
    }

    /// Ends a connection that does not keep to the rules.
    fn wrong(&mut self, conn: ConnId, out: &mut Vec<Effect>) {
        let words = format!("connection {conn}: a message that does not belong there");
        out.push(Effect::Say { level: log::Level::Warn, text: words });
        out.push(Effect::Close { conn });
    }

    /// Why this user may not run anything here; `None`: may.
    fn refusal(&self, c: &Client, run: &RunTask) -> Option<Refusal> {
        if run.job.is_some() && run.pty.is_some() {
            return Some(Refusal::new(err::BAD_ARG));
        }
        let shut = self.conf.only_admins && ["lsrun", "lsgrun"].contains(&&*run.via);
        if shut && c.uid != 0 && !self.conf.admins.contains(&c.user) {
            return Some(Refusal::new(err::PERMISSION));
        }
        self.no_task_of(c)
    }

    /// Why this user has no task here, whatever it is; `None`: may have one.
    fn no_task_of(&self, c: &Client) -> Option<Refusal> {
        let (local, all) = self.conf.root;
        let root = self.conf.personal || all || local && c.host == self.conf.host;
        if (c.uid == 0 || c.gid == 0) && !root {
            return Some(Refusal::text(err::PERMISSION, "Root user can't run remote tasks"));
        }
        if !self.linked {
            return Some(Refusal::text(err::BUSY, "RES has no launcher yet"));
        }
        let all = self.tasks.len() + self.waiting.len() + self.foreign.len();
        (all >= TASKS_MAX).then(|| Refusal::new(err::BUSY))
    }

    /// A TaskStarter asks for a process to be taken into a job, or is about to end there.
    fn wants_process(
        &mut self,
        conn: ConnId,
        process: AdoptProcess,
        ending: bool,
        out: &mut Vec<Effect>,
    ) {
        let Some(client) = self.clients.get(&conn) else { return };
        match self.no_task_of(client) {
            Some(refusal) => out.push(Effect::Send { conn, msg: Msg::Refused(refusal) }),
            None => self.waiting.add(conn, process.job, WantedTask::Process(process, ending)),
        }
    }

    /// Does what was wanted, as a task of the job where there is one.
    fn admit(&mut self, (conn, wanted, of): AdmittedTask, out: &mut Vec<Effect>) {
        match (wanted, of) {
            (WantedTask::Run(run), of) => self.begin(conn, *run, of.as_ref(), out),
            (WantedTask::Process(process, ending), Some(of)) => {
                self.look_at(conn, (process, ending), &of, out);
            }
            (WantedTask::Process(..), None) => {}
        }
    }

    fn run(&mut self, conn: ConnId, run: RunTask, out: &mut Vec<Effect>) {
        let Some(client) = self.clients.get(&conn) else { return };
        let refusal = match run.argv.first() {
            None => Some(Refusal::new(err::BAD_ARG)),
            Some(_) => self.refusal(client, &run),
        };
        if let Some(refusal) = refusal {
            return out.push(Effect::Send { conn, msg: Msg::Refused(refusal) });
        }
        match run.job {
            Some(job) => self.waiting.add(conn, job, WantedTask::Run(Box::new(run))),
            None => self.begin(conn, run, None, out),
        }
    }

    /// Has a task started, as one of the job where there is one.
    fn begin(
        &mut self,
        conn: ConnId,
        run: RunTask,
        of: Option<&Membership>,
        out: &mut Vec<Effect>,
    ) {
        let Some(client) = self.clients.get(&conn) else { return };
        let n = self.next;
        self.next += 1;
        let account = Box::new(Account {
            user: client.user.clone(),
            from_host: client.host.clone(),
            exec_host: self.conf.host.clone(),
            cwd: run.cwd.clone(),
            command: words(&run).into(),
            ..Account::default()
        });
        let (uid, gid, user) = (client.uid, client.gid, client.user.clone());
        let token = self.seed.of_fields(&[b"task", &n.to_be_bytes()]).to_vec();
        if !run.detached {
            out.push(Effect::Task { n, op: TaskOp::Expect { uid, token: token.clone() } });
        }
        let of_job = of.map(|of| {
            let RunTask { detached, gone, usage_secs, pam_ms, .. } = run;
            let (key, told_at, slots) = (of.key, of.told_at, of.slots);
            TaskNote { key, detached, gone, usage_secs, pam_ms, adopted: false, told_at, slots }
        });
        let (told, id) = (run.job.is_none(), Some(self.id(n)));
        let task = Task::new(Some(conn), uid, run.pty.is_some());
        let wanted = of.map(|_| Box::new(run.clone()));
        self.tasks.insert(n, Task { account, of_job, told, id, wanted, ..task });
        let mut job = self.plan(run, token);
        if let Some(of) = of {
            job.env = with_variables(job.env.0, &of.env.0).into();
            (job.nice, job.temporary) = (of.nice, of.temporary.clone());
        }
        let plan = Box::new(Plan { uid, gid, user, what: TaskPlan::Job(Box::new(job)) });
        let note = of_job.map_or_else(String::new, |note| note.text());
        ask(out, LaunchMsg::Start { id: self.id(n), plan, note });
        if let Some(c) = self.clients.get_mut(&conn) {
            c.task = Some(n);
        }
    }

    fn plan(&self, run: RunTask, token: Vec<u8>) -> JobPlan {
        let mut env = run.env.0;
        for (name, value) in &self.conf.env {
            if !env.is_empty() {
                env.push(0);
            }
            env.extend_from_slice(name.as_bytes());
            env.push(b'=');
            env.extend_from_slice(value.as_bytes());
        }
        let mut rlimits = run.rlimits;
        for limit in rlimits.iter_mut().filter(|l| self.conf.unlimited.contains(&l.0)) {
            limit.2 = None;
        }
        let attach = Attach {
            socket: self.conf.socket.as_str().into(),
            token: token.into(),
            argv: run.argv,
            pty: run.pty,
            rlimits,
            eexec: self.conf.eexec.as_str().into(),
            eexec_data: run.eexec,
            detached: run.detached,
            login_shell: run.login_shell,
        };
        JobPlan {
            env: env.into(),
            cwd: run.cwd,
            home: run.home,
            umask: run.umask,
            nice: self.conf.nice,
            attach: Some(Box::new(attach)),
            ..JobPlan::default()
        }
    }

    /// Answers an order that administrators alone may give; says whether it is one of theirs.
    fn admin_asks(&mut self, conn: ConnId, out: &mut Vec<Effect>) -> bool {
        let Some(c) = self.clients.get(&conn) else { return false };
        let may = self.conf.personal || self.conf.admins.contains(&c.user);
        let msg = match may {
            true => Msg::Res(ResMsg::Done),
            false => Msg::Refused(Refusal::new(err::PERMISSION)),
        };
        out.push(Effect::Send { conn, msg });
        may
    }

    fn input(&mut self, conn: ConnId, n: u64, data: Data, out: &mut Vec<Effect>) {
        let Some(t) = self.tasks.get_mut(&n) else { return };
        t.taken += data.bytes.len();
        if data.port != IN || t.taken > WINDOW {
            self.wrong(conn, out);
            return self.gone(conn, out);
        }
        // the deadline is set by the next tick, which has the time
        t.eof_at = (data.bytes.is_empty() && t.pty).then_some(0);
        let op = if data.bytes.is_empty() { TaskOp::CloseIn } else { TaskOp::Write(data.bytes) };
        out.push(Effect::Task { n, op });
    }

    fn control(&mut self, n: u64, msg: ResMsg, out: &mut Vec<Effect>) {
        let id = self.task_id(n);
        let Some(t) = self.tasks.get_mut(&n) else { return };
        match msg {
            ResMsg::Signal { signal } => {
                let Some(id) = id else { return };
                if t.pty && signal == SIGCONT {
                    out.push(Effect::Task { n, op: TaskOp::Continue });
                }
                ask(out, LaunchMsg::Signal { id, signal });
            }
            ResMsg::Resize { rows, cols } => {
                out.push(Effect::Task { n, op: TaskOp::Resize { rows, cols } });
            }
            ResMsg::Credit { bytes } => {
                let more = (bytes as usize).min(WINDOW - t.room);
                t.room += more;
                out.push(Effect::Task { n, op: TaskOp::Allow(more) });
            }
            ResMsg::Close { port } => out.push(Effect::Task { n, op: TaskOp::Close(port) }),
            _ => {}
        }
    }

    /// The command is gone: its task is hung up.
    fn gone(&mut self, conn: ConnId, out: &mut Vec<Effect>) {
        self.waiting.drop_of(conn);
        self.foreign.drop_of(conn);
        let n = self.clients.remove(&conn).and_then(|c| c.task);
        let Some(n) = n.filter(|n| self.tasks.contains_key(n)) else { return };
        self.leave(n, out);
    }

    // ---- the launcher ----

    fn launcher(&mut self, now: Now, msg: LaunchMsg, out: &mut Vec<Effect>) {
        match msg {
            LaunchMsg::Tasks { tasks, more, .. } => {
                self.linked |= !more;
                for info in tasks {
                    self.listed(info.id);
                    match info.id.step {
                        TaskStep::Task => {}
                        TaskStep::Job => {
                            self.hang_up_orphan(now, &info, out);
                            self.job_told(info, out);
                            continue;
                        }
                        _ => continue,
                    }
                    match self.number(info.id).filter(|n| self.tasks.contains_key(n)) {
                        Some(_) => self.told(info, out),
                        None => stray(&info, out),
                    }
                }
                if !more {
                    self.end_unlisted(out);
                }
            }
            LaunchMsg::Task(info) if info.id.step == TaskStep::Task => {
                self.foreign.taken(info.id, out);
                self.told(*info, out);
            }
            LaunchMsg::Task(info) if info.id.step == TaskStep::Job => self.job_told(*info, out),
            LaunchMsg::Refused { id, why, again } => {
                if !self.foreign.refused(id, (&why, again), out)
                    && let Some(n) = self.number(id)
                    && !(again && self.wait_again(n, out))
                {
                    self.failed(n, why, out);
                }
            }
            _ => {}
        }
    }

    fn told(&mut self, info: TaskInfo, out: &mut Vec<Effect>) {
        let n = self.number(info.id);
        let Some((n, t)) = n.and_then(|n| Some((n, self.tasks.get_mut(&n)?))) else {
            return if info.ended.is_some() {
                stray(&info, out)
            };
        };
        if info.ended.is_none() {
            return self.started(n, &info, out);
        }
        t.ended = Some(info);
        self.ended(n, out);
    }

    /// A task that was asked for as one of a job is set up: who asked for it hears of that.
    fn started(&mut self, n: u64, info: &TaskInfo, out: &mut Vec<Effect>) {
        let ready = matches!(info.setup, Some(Setup::Ready(_)));
        let Some(t) = self.tasks.get_mut(&n).filter(|_| ready) else { return };
        t.wanted = None;
        if let Some(conn) = t.conn.filter(|_| !std::mem::replace(&mut t.told, true)) {
            out.push(Effect::Send { conn, msg: Msg::Res(ResMsg::Started { pid: info.pid }) });
        }
    }

    fn news(&mut self, n: u64, news: TaskNews, out: &mut Vec<Effect>) {
        let Some(t) = self.tasks.get_mut(&n) else { return };
        let Some(conn) = t.conn else { return };
        let msg = match news {
            TaskNews::Wrote(some) => {
                t.taken = t.taken.saturating_sub(some);
                t.owed += some;
                if t.owed < CREDIT && t.taken > 0 {
                    return;
                }
                Msg::Res(ResMsg::Credit { bytes: std::mem::take(&mut t.owed) as u32 })
            }
            TaskNews::Read(port, bytes) => {
                t.room = t.room.saturating_sub(bytes.len());
                Msg::Data(Data { port, bytes })
            }
            TaskNews::Joined(key) => return self.joined(n, key, out),
            TaskNews::Attached => return self.keep(n, out),
            TaskNews::Kept => {
                let Some(task) = t.id else { return };
                Msg::Res(ResMsg::Kept { task })
            }
            TaskNews::Resumed(progress) => return self.resumed(n, progress, out),
            TaskNews::Stopped => Msg::Res(ResMsg::Stopped),
            TaskNews::Drained => return self.over(n, out),
        };
        out.push(Effect::Send { conn, msg });
    }

    // ---- time ----

    fn tick(&mut self, now: Now, out: &mut Vec<Effect>) {
        if self.dial_at.is_some_and(|at| at <= now.mono_us) {
            self.dial_at = None;
            out.push(Effect::Connect { conn: LAUNCHER, to: Endpoint::Launcher });
        }
        if self.sync_at.is_some_and(|at| at <= now.mono_us) {
            out.push(Effect::LoadConfig);
            self.sync_at = self.conf.syncup.map(|secs| now.after(secs));
        }
        let wait = self.conf.timeout * US;
        let mut due = Vec::new();
        for (n, t) in &mut self.tasks {
            match t.eof_at.filter(|_| t.ended.is_none() && t.conn.is_some()) {
                Some(at) if at <= now.mono_us => {
                    t.eof_at = Some(now.mono_us + EOF_AGAIN);
                    if at > 0 {
                        out.push(Effect::Task { n: *n, op: TaskOp::CloseIn });
                    }
                }
                _ => {}
            }
            match t.kill_at {
                Some(0) => t.kill_at = Some(now.mono_us + wait),
                Some(at) if at <= now.mono_us => {
                    t.kill_at = None;
                    due.push(*n);
                }
                _ => {}
            }
        }
        for n in due {
            if let Some(id) = self.task_id(n) {
                ask(out, LaunchMsg::Signal { id, signal: SIGKILL });
            }
            // sbatchd hears of the end of a job
            if self.tasks.get(&n).is_some_and(|t| t.job.is_some()) {
                self.take(n);
            }
        }
        self.end_orphans(now, out);
        self.end_left(now, out);
        for admitted in self.waiting_due(now, out) {
            self.admit(admitted, out);
        }
    }

    fn unlinked(&mut self, now: Now, out: &mut Vec<Effect>) {
        self.linked = false;
        self.foreign.unlinked(out);
        self.dial_at = Some(now.mono_us + RETRY);
    }
}

impl Machine for Res {
    fn step(&mut self, now: Now, input: Input, out: &mut Vec<Effect>) {
        match input {
            Input::Start => {
                self.began = now.secs();
                self.dial_at = Some(0);
                self.sync_at = self.conf.syncup.map(|secs| now.after(secs));
            }
            Input::Opened { conn: LAUNCHER, .. } => ask(out, LaunchMsg::Hello),
            Input::ConnectFailed { conn: LAUNCHER, .. } | Input::Closed { conn: LAUNCHER } => {
                self.unlinked(now, out);
            }
            Input::Msg { conn: LAUNCHER, msg: Msg::Launch(msg) } => self.launcher(now, msg, out),
            Input::Opened { conn: SBATCHD, .. } => self.waiting.connected(),
            Input::ConnectFailed { conn: SBATCHD, .. } | Input::Closed { conn: SBATCHD } => {
                self.foreign.unanswered(out);
                self.waiting.disconnected(now);
            }
            Input::Msg {
                conn: SBATCHD,
                msg: Msg::Member(MemberMsg::Looked { n, owner, launcher, why }),
            } => self.looked((n, owner), launcher, why, out),
            Input::Msg { conn: SBATCHD, msg: Msg::Member(msg) } => {
                for admitted in self.admitted(msg, out) {
                    self.admit(admitted, out);
                }
            }
            Input::Msg { conn: SBATCHD, .. } => {}
            Input::Opened { conn, peer: Peer::User { uid, gid, user, host } } => {
                self.clients.insert(conn, Client { uid, gid, user, host, task: None });
            }
            Input::Opened { conn, .. } => out.push(Effect::Close { conn }),
            Input::Closed { conn } => self.gone(conn, out),
            Input::Msg { conn, msg } => self.message(conn, msg, out),
            Input::Task { n, news } => self.news(n, news, out),
            _ => {}
        }
        self.tick(now, out);
    }

    fn deadline(&self) -> Option<u64> {
        let live = |t: &&Task| t.ended.is_none() && t.conn.is_some();
        let ends = self.tasks.values().filter(live).filter_map(|t| t.eof_at);
        let kills = self.tasks.values().filter_map(|t| t.kill_at).chain(ends);
        let orphans = self.orphans.iter().map(|o| o.1);
        let waiting = self.waiting.deadline();
        kills
            .chain(orphans)
            .chain(self.left_deadline())
            .chain(self.dial_at)
            .chain(self.sync_at)
            .chain(waiting)
            .min()
    }
}

/// A request of which a connection has one at a time.
fn asks(msg: &ResMsg) -> bool {
    use ResMsg::{Adopt, Ending, Join, Resume, Run};
    matches!(msg, Run(_) | Join { .. } | Resume { .. } | Adopt(_) | Ending(_))
}

/// A task that no command waits for: one of a job that nobody need wait for goes on.
fn stray(info: &TaskInfo, out: &mut Vec<Effect>) {
    let (id, note) = (info.id, TaskNote::of(&info.note));
    if info.ended.is_none() {
        if note.is_some_and(|note| note.detached) {
            return;
        }
        ask(out, LaunchMsg::Signal { id, signal: SIGHUP });
        ask(out, LaunchMsg::Signal { id, signal: SIGKILL });
    }
    if note.is_none() {
        ask(out, LaunchMsg::Forget { key: id.key, over_at: 0 });
    }
}

/// An environment with these variables put over it, both NUL-separated.
fn with_variables(mut env: Vec<u8>, over: &[u8]) -> Vec<u8> {
    // of two of a name the later one counts
    if !env.is_empty() && !over.is_empty() {
        env.push(0);
    }
    env.extend_from_slice(over);
    env
}

/// The words of a task, as they are accounted.
fn words(run: &RunTask) -> Vec<u8> {
    let words: Vec<&[u8]> = run.argv.iter().map(|w| w.as_bytes()).collect();
    words.join(&b' ')
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod joined_tests;

#[cfg(test)]
mod kept_tests;

#[cfg(test)]
mod of_job_tests;

#[cfg(test)]
mod foreign_tests;
