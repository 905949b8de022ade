//! The real launcher: carries out what the launcher machine wants. The only process that is root;
//! it parses nothing but its own socket, which only the administrator can reach.
//!
//! One thread, one poll(2) loop. Ends of children come through SIGCHLD on the signalfd that
//! tells of the other signals too, so no waiter thread is needed; wait4 gives their usage.
//! A starter holds one end of a socket pair as its descriptor 0 (the byte to go on, then its
//! report) and its plan, an unlinked file, as descriptor 1. No parent-death signal is ever set:
//! jobs outlive the launcher.
//!
//! SIGTERM stops the daemons, SIGINT jobs and daemons, SIGHUP opens the log anew, SIGUSR2
//! replaces the launcher by the file it was started from: pid, children, listener and pending
//! starters stay, the state crosses in an unlinked file.

use super::handover::{DEFAULT_PATH, EAUTH_USER, EEXEC_SOCKET, ROOT_JOBS};
use super::launcher_journal::{self, JournalFile};
use super::launcher_successor::{Handover, STATE_FD, handed_over};
use super::ports::KeptPorts;
use super::task_control::{NewGroup, TaskControl};
use super::{boot::Boot, boot_error::BootError, guard, handover, nlbserver, step};
use crate::exec::launcher::{Launcher, LauncherConf};
use crate::model::time::US;
use crate::net::local::{LocalConn, would_block};
use crate::net::sock::{self, send_fds};
use crate::proto::launch::{
    Journal, OsEffect, OsInput, Plan, Setup, SetupStage, TaskId, TaskIdentity, TaskPlan, TaskStep,
};
use crate::proto::machine::{ConnId, INCOMING};
use crate::proto::{Daemon, Effect, Input, Machine, Peer};
use crate::sys::files::{private, unlinked};
use crate::sys::procs::Proc;
use crate::sys::raw::{self, Reaped, SignalFd};
use crate::sys::words;
use mio::net::UnixListener;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{FdFlags, fcntl_setfd};
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Most connections at once.
const CONNS_MAX: usize = 32;
/// The time for which no connection is accepted when descriptors are short, microseconds.
const DEAF: u64 = US / 2;
/// Largest report of a starter, bytes.
const SETUP_MAX: usize = 64 << 10;
/// Delay of the message that a job runs, microseconds: if the job ends within it, one message
/// reports both.
const SETUP_HOLD: u64 = 10_000;
/// Starters that are asked for before the answers are waited for.
const ASKED_MAX: usize = 64;
/// Longest wait for a starter to be made.
const ZYGOTE_WAIT: Duration = Duration::from_secs(10);
/// The signals that ask for something.
const TOLD: [i32; 4] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGUSR2];
/// The program of a child: the launcher's own file, whatever its path is now.
const SELF: &str = "/proc/self/exe";

/// A starter that has not reported yet.
struct Pending {
    pid: u32,
    sock: File,
    got: Vec<u8>,
    /// The instant at which its report is read, unless the task has ended before.
    due: u64,
}

struct LauncherRuntime {
    machine: Launcher,
    boot: Boot,
    rundir: PathBuf,
    /// The configuration that the machine was given.
    conf: LauncherConf,
    /// The file a successor is started from.
    exe: PathBuf,
    signals: SignalFd,
    listener: UnixListener,
    lock: File,
    journal: JournalFile,
    /// Variables for starters: the user of the pre- and post-execution commands of queues.
    pre_post: Vec<(&'static str, String)>,
    /// The way to the process of which starters are copies.
    zygote: Option<StdUnixStream>,
    /// The requests, in the order of their answers; empty between turns.
    asked: Vec<(TaskId, StdUnixStream, Option<NewGroup>)>,
    conns: BTreeMap<ConnId, LocalConn>,
    ports: KeptPorts,
    next: ConnId,
    /// The instant until which no connection is accepted, for want of descriptors; monotonic
    /// microseconds.
    deaf_until: Option<u64>,
    setups: BTreeMap<TaskId, Pending>,
    inputs: VecDeque<Input>,
    tasks: TaskControl,
    exit: Option<i32>,
}

/// Lets go of what whoever started this process had open: it would be the launcher's and, in a
/// personal cluster, every daemon's for good. Before all else.
pub fn begin() {
    // of one that replaces itself the files are its own
    if std::env::var_os(STATE_FD).is_none()
        && let Err(e) = raw::close_from(3)
    {
        log::error!("descriptors: {}", words(&e));
    }
}

/// Runs this host's launcher.
pub fn run(boot: Boot) -> Result<i32, BootError> {
    let fail = |what: &str, e: io::Error| BootError(format!("{what}: {}", words(&e)));
    let rundir = match &boot.admin {
        Some(admin) => guard::directories(&boot.site, admin)?,
        None => boot.make_rundir()?,
    };
    let signals = SignalFd::new(&handover::LAUNCHER_SIGNALS).map_err(|e| fail("signals", e))?;
    rustix::process::chdir("/").map_err(|e| fail("/", e.into()))?;
    let conf = conf(&boot)?;
    let mut me = LauncherRuntime::new(boot, conf, rundir, signals).map_err(|e| fail("start", e))?;
    me.reap();
    me.serve().map_err(|e| fail("poll", e))
}

fn conf(boot: &Boot) -> Result<LauncherConf, BootError> {
    let admin = boot.admin.as_ref();
    let path = "/proc/sys/kernel/random/boot_id";
    let boot_id = std::fs::read_to_string(path).map_err(|e| BootError(format!("{path}: {e}")))?;
    let mut hosts = boot.conf.cluster.hosts.iter();
    let server = hosts.any(|h| h.name == boot.host && h.server);
    let sudoers = admin.and_then(|_| guard::sudoers());
    let users = sudoers.as_ref().map(guard::users).unwrap_or_default();
    let mut daemons = vec![Daemon::Authd];
    if server {
        daemons.extend([Daemon::Lim, Daemon::Sbatchd, Daemon::Res]);
        daemons.extend(users.keys());
    }
    daemons.extend(nlbserver::of_host(&boot.conf, &boot.host));
    Ok(LauncherConf {
        uid: crate::sys::euid(),
        personal: boot.conf.lsf.personal(),
        boot_id: boot_id.trim().to_owned(),
        daemons,
        peers: admin.map(|a| a.uid).into_iter().collect(),
        root_jobs: sudoers.is_some_and(|s| s.root_user()),
        end_left_processes: boot.conf.lsf.process_tracking(),
        users,
        hang: boot.conf.lsf.mbd_hang_secs() * US,
    })
}

impl LauncherRuntime {
    /// Takes over from the launcher that was this process, or begins as a new one.
    fn new(boot: Boot, conf: LauncherConf, rundir: PathBuf, signals: SignalFd) -> io::Result<Self> {
        let exe = std::fs::read_link(SELF)?;
        let path = rundir.join("launcher.journal");
        let journal = || launcher_journal::read(&path);
        let (mut setups, mut ports) = (BTreeMap::new(), KeptPorts::default());
        let (machine, lock, listener) = match handed_over() {
            Some(h) => {
                log::info!("replaced by {}", exe.display());
                for (id, pid, fd, got) in h.setups {
                    let sock = File::from(raw::inherited_fd(fd)?);
                    setups.insert(id, Pending { pid, sock, got, due: 0 });
                }
                let machine = Launcher::resume(conf.clone(), h.saved).unwrap_or_else(|| {
                    log::warn!("the state is of another version: going on from the journal");
                    Launcher::new(conf.clone(), journal())
                });
                let listener =
                    std::os::unix::net::UnixListener::from(raw::inherited_fd(h.listener)?);
                listener.set_nonblocking(true)?;
                let lock = File::from(raw::inherited_fd(h.lock)?);
                ports = KeptPorts::resume(h.ports);
                (machine, lock, UnixListener::from_std(listener))
            }
            None => {
                let lock = private(&rundir.join(guard::LOCK))?;
                rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive)
                    .map_err(|_| io::Error::other("another launcher of this host runs"))?;
                let socket = rundir.join("launcher.sock");
                let listener = sock::listen_unix(&socket, 0o600)?;
                boot.admin.iter().try_for_each(|a| guard::give(&socket, a))?;
                (Launcher::new(conf.clone(), journal()), lock, listener)
            }
        };
        ports.take_masters(&boot);
        let known: Vec<TaskIdentity> = machine.tasks().collect();
        let lsf = &boot.conf.lsf;
        let ways = (lsf.process_tracking(), lsf.enforces("memory"));
        let tasks = TaskControl::new(&rundir, ways, &known);
        let sudoers = boot.admin.as_ref().and_then(|_| guard::sudoers());
        Ok(LauncherRuntime {
            pre_post: sudoers.as_ref().map(guard::pre_post).unwrap_or_default(),
            machine,
            boot,
            rundir,
            conf,
            exe,
            signals,
            listener,
            lock,
            journal: JournalFile::new(path),
            zygote: None,
            asked: Vec::new(),
            conns: BTreeMap::new(),
            ports,
            next: INCOMING,
            deaf_until: None,
            setups,
            inputs: VecDeque::from([Input::Start]),
            tasks,
            exit: None,
        })
    }

    // ---- the loop ----

    fn serve(&mut self) -> io::Result<i32> {
        loop {
            self.step_all();
            self.flush();
            self.stop_round();
            if let Some(code) = self.exit.filter(|_| self.tasks.stop_at().is_none()) {
                self.tasks.remove_groups();
                return Ok(code);
            }
            if self.inputs.is_empty() {
                self.wait()?;
            }
        }
    }

    /// Steps the machine until it has nothing more to take.
    fn step_all(&mut self) {
        let now = crate::sys::now();
        if self.machine.deadline().is_some_and(|at| at <= now.mono_us) {
            self.inputs.push_back(Input::Tick);
        }
        let mut effects = Vec::new();
        loop {
            // the zygote works on while more is asked of it, and nothing else is done meanwhile
            if !self.inputs.front().is_some_and(Launcher::starts) || self.asked.len() >= ASKED_MAX {
                self.settle();
            }
            let Some(input) = self.inputs.pop_front() else { break };
            self.machine.step(crate::sys::now(), input, &mut effects);
            for effect in effects.drain(..) {
                self.effect(effect);
            }
        }
        self.send_signals();
        // what is told to nobody waits
        let _ = self.journal.write();
    }

    fn wait(&mut self) -> io::Result<()> {
        let (read, write) = (PollFlags::IN, PollFlags::OUT);
        let now = crate::sys::now().mono_us;
        let due = self.setups.iter().filter(|(_, p)| p.due <= now);
        let due: Vec<TaskId> = due.map(|(id, _)| *id).collect();
        self.deaf_until = self.deaf_until.filter(|at| *at > now);
        let accept = if self.deaf_until.is_some() { PollFlags::empty() } else { read };
        let mut fds = vec![PollFd::new(&self.signals, read), PollFd::new(&self.listener, accept)];
        let conns: Vec<ConnId> = self.conns.keys().copied().collect();
        for c in self.conns.values() {
            let how = if c.waits() { read | write } else { read };
            fds.push(PollFd::new(&c.sock, how));
        }
        // a report is whole when its end is closed
        fds.extend(due.iter().map(|id| PollFd::new(&self.setups[id].sock, PollFlags::RDHUP)));
        let later = self.setups.values().map(|p| p.due).filter(|due| *due > now);
        let next = later
            .chain(self.machine.deadline())
            .chain(self.deaf_until)
            .chain(self.tasks.stop_at())
            .min()
            .map(|at| at.saturating_sub(now));
        let time = next.and_then(|us| Timespec::try_from(Duration::from_micros(us)).ok());
        match poll(&mut fds, time.as_ref()) {
            Err(rustix::io::Errno::INTR) => return Ok(()),
            got => got?,
        };
        let ready: Vec<bool> = fds.iter().map(|f| !f.revents().is_empty()).collect();
        let mut at = ready[2..].iter();
        let conns = conns.into_iter().zip(&mut at).filter(|(_, ready)| **ready);
        conns.for_each(|(id, _)| self.read(id));
        let due = due.into_iter().zip(at).filter(|(_, ready)| **ready);
        due.for_each(|(id, _)| _ = self.read_setup(id, false));
        if ready[1] {
            self.accept();
        }
        if ready[0] {
            self.signalled();
        }
        Ok(())
    }

    fn signalled(&mut self) {
        while let Ok(Some(signal)) = self.signals.take() {
            match signal {
                libc::SIGCHLD => self.reap(),
                libc::SIGTERM => self.inputs.push_back(Input::Os(OsInput::Down { jobs: false })),
                libc::SIGINT => self.inputs.push_back(Input::Os(OsInput::Down { jobs: true })),
                libc::SIGUSR2 => {
                    self.step_all();
                    self.flush();
                    // stops do not pass to the successor
                    while let Some(at) = self.tasks.stop_at() {
                        let pause = at.saturating_sub(crate::sys::now().mono_us);
                        std::thread::sleep(Duration::from_micros(pause));
                        self.stop_round();
                    }
                    let e = self.replace();
                    log::error!("not replaced: {}", words(&e));
                }
                _ => self.boot.log.reopen(),
            }
        }
    }

    /// Takes every ended child; what its starter had to say comes first.
    fn reap(&mut self) {
        while let Ok(Some(Reaped { pid, status, mut usage })) = raw::wait4(-1, false) {
            let pending = self.setups.iter().find(|(_, p)| p.pid == pid).map(|(id, _)| *id);
            let mut silent = false;
            if let Some(id) = pending {
                silent = !self.read_setup(id, true);
            }
            if let Err(e) = self.ports.ended(pid) {
                log::warn!("the port of pid {pid}: {}", words(&e));
            }
            let killed_at_once = silent && status == libc::SIGKILL;
            let at_end = self.tasks.ended(pid, &mut usage, killed_at_once);
            self.inputs.extend(at_end.map(Input::Os));
            self.inputs.push_back(Input::Os(OsInput::Exited { pid, status, usage }));
        }
    }

    fn stop_round(&mut self) {
        let machine = &self.machine;
        self.tasks.stop_round(|| machine.tasks().collect());
    }

    fn send_signals(&mut self) {
        let machine = &self.machine;
        self.tasks.send_signals(|| machine.tasks().collect());
    }

    // ---- connections ----

    fn accept(&mut self) {
        loop {
            let sock = match self.listener.accept() {
                Ok((sock, _)) => sock,
                Err(e) => {
                    if sock::is_scarcity(&e) {
                        log::error!("a connection cannot be accepted: {}", words(&e));
                        self.deaf_until = Some(crate::sys::now().mono_us + DEAF);
                    }
                    return;
                }
            };
            let Ok((uid, _, pid)) = sock::peer_cred(sock.as_fd()) else { continue };
            if self.conns.len() >= CONNS_MAX {
                log::warn!("{CONNS_MAX} connections already: one from pid {pid} is refused");
                continue;
            }
            self.conns.insert(self.next, LocalConn::new(sock));
            let peer = Peer::Local { uid, pid };
            self.inputs.push_back(Input::Opened { conn: self.next, peer });
            self.next += 1;
        }
    }

    fn read(&mut self, id: ConnId) {
        let LauncherRuntime { conns, inputs, .. } = self;
        let Some(c) = conns.get_mut(&id) else { return };
        let open = c.read(&mut |msg| inputs.push_back(Input::Msg { conn: id, msg }));
        if !open.inspect_err(|e| log::warn!("connection {id}: {e}")).unwrap_or(false) {
            self.drop_conn(id);
        }
    }

    fn drop_conn(&mut self, id: ConnId) {
        if self.conns.remove(&id).is_some_and(|c| !c.closing) {
            self.inputs.push_back(Input::Closed { conn: id });
        }
    }

    fn flush(&mut self) {
        let over = self.conns.iter_mut().filter_map(|(id, c)| (!c.flush()).then_some(*id));
        over.collect::<Vec<_>>().into_iter().for_each(|id| self.drop_conn(id));
        let drained = self.conns.iter_mut().filter_map(|(id, c)| c.drained().then_some(*id));
        self.inputs.extend(drained.map(|conn| Input::Drained { conn }));
    }

    // ---- effects ----

    fn effect(&mut self, effect: Effect) {
        match effect {
            Effect::Send { conn, msg } => {
                let c = self.conns.get_mut(&conn);
                if let Some(Err(e)) = c.map(|c| c.send(&msg)) {
                    log::error!("connection {conn}: {e}");
                    self.drop_conn(conn);
                }
            }
            Effect::Close { conn } => {
                if let Some(c) = self.conns.get_mut(&conn) {
                    c.closing = true;
                }
            }
            Effect::Os(os) => self.os(os),
            Effect::Say { level, text } => log::log!(level, "{text}"),
            Effect::Exit { code } => self.exit = Some(code),
            other => log::error!("an effect not for a launcher: {}", other.name()),
        }
    }

    fn os(&mut self, effect: OsEffect) {
        match effect {
            OsEffect::Spawn { id, plan, own_group } => {
                // it takes a while
                let written = self.journal.write();
                let written = written.map_err(|e| format!("launcher.journal: {}", words(&e)));
                let spawn = |()| self.spawn(id, &plan, own_group).map_err(|e| words(&e));
                if let Err(why) = written.and_then(spawn) {
                    self.inputs.push_front(Input::Os(OsInput::SpawnFailed { id, why }));
                }
            }
            OsEffect::Go { id } => {
                if let Err(e) = self.journal.write() {
                    // without its byte the starter does nothing but end
                    self.setups.remove(&id);
                    let why = format!("launcher.journal: {}", words(&e));
                    let setup = Setup::Failed { at: SetupStage::Plan, why, exit: 0, begun: None };
                    self.inputs.push_front(Input::Os(OsInput::Setup { id, setup, ended: false }));
                } else if let Some(p) = self.setups.get_mut(&id)
                    && let Err(e) = p.sock.write_all(b"g")
                {
                    log::warn!("{id}: its starter is gone: {}", words(&e));
                }
            }
            OsEffect::SpawnDaemon { daemon } => {
                let input = match self.spawn_daemon(daemon) {
                    Ok(p) => OsInput::DaemonUp { daemon, pid: p.pid, ticks: p.ticks },
                    Err(e) => OsInput::DaemonFailed { daemon, why: words(&e) },
                };
                self.inputs.push_front(Input::Os(input));
            }
            OsEffect::SignalTask { task, signal } => {
                if self.tasks.waits_for_other(signal) {
                    self.send_signals();
                }
                self.tasks.signal(*task, signal);
            }
            OsEffect::Release { group } => {
                self.send_signals();
                self.tasks.release(*group);
            }
            OsEffect::Signal { pid, ticks, signal } => {
                if let Some(s) = rustix::process::Signal::from_named_raw(signal)
                    && let Err(e) = (Proc { pid, ticks }).signal(s)
                {
                    log::warn!("signal {signal} to {pid}: {}", words(&e));
                }
            }
            OsEffect::Check { procs } => {
                // one of them may be our own child, if the state was lost: its end goes first
                self.reap();
                for (pid, ticks) in procs {
                    if !(Proc { pid, ticks }).alive() {
                        self.inputs.push_back(Input::Os(OsInput::Gone { pid, ticks }));
                    }
                }
            }
            OsEffect::Journal(line) => self.note_in_journal(&line),
            OsEffect::Rewrite(lines) => {
                // without room it is tried again
                let _ = self.journal.rewrite(&lines);
            }
            OsEffect::Sample { .. } | OsEffect::Look { .. } => {}
        }
    }

    /// Lines wait to be written together; a launcher that is killed leaves no daemon of which its
    /// successor knows nothing.
    fn note_in_journal(&mut self, line: &Journal) {
        self.journal.append(line);
        if matches!(line, Journal::Daemon { .. }) {
            let _ = self.journal.write();
        }
    }

    /// Asks for a starter; it waits for its byte.
    fn spawn(&mut self, id: TaskId, plan: &Plan, own_group: bool) -> io::Result<()> {
        if let TaskPlan::Adopt { pid, ticks } = plan.what {
            self.tasks.may_adopt(Proc { pid, ticks }, plan.uid)?;
            self.inputs.push_front(Input::Os(OsInput::Adopted { id, pid, ticks }));
            return Ok(());
        }
        let mut file = unlinked(&self.rundir, "launcher.plan")?;
        serde_json::to_writer(io::BufWriter::new(&mut file), plan)?;
        file.seek(SeekFrom::Start(0))?;
        let (ours, theirs) = StdUnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let memory = if let TaskPlan::Job(job) = &plan.what { job.memory } else { None };
        let group = own_group.then(|| self.tasks.group_for(id, memory)).flatten();
        if let Err(e) = self.ask_zygote(&theirs, &file, group.as_ref()) {
            self.tasks.not_started(group);
            return Err(e);
        }
        self.asked.push((id, ours, group));
        Ok(())
    }

    fn ask_zygote(
        &mut self,
        link: &StdUnixStream,
        plan: &File,
        group: Option<&NewGroup>,
    ) -> io::Result<()> {
        let mut fds = vec![link.as_fd(), plan.as_fd()];
        fds.extend(group.and_then(|new| new.dir.as_ref()).map(AsFd::as_fd));
        let ask = |zygote: &StdUnixStream| send_fds(zygote, b"s", &fds);
        // the zygote may have been killed since the last time
        if self.zygote.as_ref().is_none_or(|zygote| ask(zygote).is_err()) {
            self.settle();
            let zygote = self.new_zygote()?;
            ask(self.zygote.insert(zygote))?;
        }
        Ok(())
    }

    /// Waits for all that the zygote was asked for; what is told of it comes before all else. A
    /// zygote that fails is given up: a starter that it made and did not tell of never goes on.
    fn settle(&mut self) {
        for (n, (id, sock, group)) in std::mem::take(&mut self.asked).into_iter().enumerate() {
            // the number of the process, or the error; whether it is in the group
            let mut answer = [[0u8; 4]; 2];
            let gone = || io::Error::from(ErrorKind::BrokenPipe);
            let read = self.zygote.as_ref().ok_or_else(gone);
            let read = read.and_then(|mut zygote| zygote.read_exact(answer.as_flattened_mut()));
            let read = read.inspect_err(|_| self.zygote = None);
            let [pid, inside] = answer.map(i32::from_ne_bytes);
            let error = match (read, pid) {
                (Ok(()), pid) if pid > 0 => {
                    let Proc { pid, ticks } = Proc::child(pid as u32);
                    let hold = if id.step == TaskStep::Job { SETUP_HOLD } else { 0 };
                    let due = crate::sys::now().mono_us + hold;
                    let sock = File::from(OwnedFd::from(sock));
                    self.setups.insert(id, Pending { pid, sock, got: Vec::new(), due });
                    let group = self.tasks.started(pid, group, inside != 0);
                    self.inputs.insert(n, Input::Os(OsInput::Spawned { id, pid, ticks, group }));
                    continue;
                }
                (Ok(()), failed) => io::Error::from_raw_os_error(-failed),
                (Err(e), _) => e,
            };
            self.tasks.not_started(group);
            self.inputs.insert(n, Input::Os(OsInput::SpawnFailed { id, why: words(&error) }));
        }
    }

    fn new_zygote(&mut self) -> io::Result<StdUnixStream> {
        let (ours, theirs) = StdUnixStream::pair()?;
        ours.set_read_timeout(Some(ZYGOTE_WAIT))?;
        let eexec = self.conf.users.get(&Daemon::Eexecd);
        let mut starter = Command::new(SELF);
        starter.arg0("starter").env_clear().stdin(OwnedFd::from(theirs));
        starter.envs(self.pre_post.iter().map(|(name, value)| (name, value)));
        starter.envs(eexec.map(|_| (EEXEC_SOCKET, self.socket_of(Daemon::Eexecd))));
        let zygote = starter.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        self.tasks.child_made(zygote.id());
        Ok(ours)
    }

    fn spawn_daemon(&mut self, daemon: Daemon) -> io::Result<Proc> {
        let mut command = Command::new(SELF);
        let admin = self.boot.admin.as_ref().map(|a| &a.name);
        match self.conf.users.get(&daemon).or(admin) {
            Some(user) => command.arg0("starter").args([daemon.name(), user]),
            None => command.arg0(daemon.name()),
        };
        command.env_clear().env("LSF_ENVDIR", &self.boot.site.envdir).env("PATH", DEFAULT_PATH);
        let kept = ["TZ", "LSF_LOCAL_HOST"].map(|name| (name, std::env::var_os(name)));
        command.envs(kept.into_iter().filter_map(|(name, value)| Some((name, value?))));
        command.envs(self.conf.users.get(&Daemon::Eauthd).map(|user| (EAUTH_USER, user)));
        command.stdin(Stdio::null());
        if let Some(copies) = self.ports.of(daemon, &self.boot) {
            command.stdin(copies.listener);
            copies.datagrams.map(|fd| command.stdout(fd));
        }
        match (daemon, &self.boot.admin) {
            (Daemon::Mbatchd, _) if self.conf.root_jobs => _ = command.env(ROOT_JOBS, "Y"),
            (Daemon::Authd, Some(_)) => guard::hand_key(&mut command)?,
            (Daemon::Eauthd | Daemon::Eexecd, Some(admin)) => {
                let path = self.socket_of(daemon);
                let listener = sock::listen_unix(&path, 0o600)?;
                if daemon == Daemon::Eauthd {
                    guard::give(&path, admin)?;
                }
                command.stdin(OwnedFd::from(listener));
            }
            _ => {}
        }
        let child = command.spawn()?;
        self.tasks.child_made(child.id());
        self.ports.started(daemon, child.id());
        log::info!("{} is pid {}", daemon.name(), child.id());
        Ok(Proc::child(child.id()))
    }

    fn socket_of(&self, daemon: Daemon) -> PathBuf {
        self.rundir.join(format!("{}.sock", daemon.name()))
    }

    /// Reads what a starter reports; it is whole when its end is closed, and of several reports the
    /// last one counts. Whether it reported.
    fn read_setup(&mut self, id: TaskId, ended: bool) -> bool {
        let Some(p) = self.setups.get_mut(&id) else { return false };
        let room = SETUP_MAX.saturating_sub(p.got.len());
        p.got.reserve(room.min(1024));
        let end = (&p.sock).take(room as u64).read_to_end(&mut p.got);
        if !ended && would_block(&end) {
            return false;
        }
        let got = self.setups.remove(&id).map(|p| p.got).unwrap_or_default();
        if got.is_empty() {
            return false;
        }
        let setup = step::last_report(&got);
        self.inputs.push_back(Input::Os(OsInput::Setup { id, setup, ended }));
        true
    }

    // ---- replacing ourselves ----

    /// Becomes the file we were started from; returns only with the reason why not.
    fn replace(&mut self) -> io::Error {
        let e = match self.hand_over() {
            // a signal that comes meanwhile must not end us; it is lost
            Ok(state) => match TOLD.iter().try_for_each(|s| raw::set_signal(*s, true)) {
                Ok(()) => Command::new(&self.exe)
                    .arg0("launcher")
                    .env("LSF_ENVDIR", &self.boot.site.envdir)
                    .env(STATE_FD, state.as_raw_fd().to_string())
                    .exec(),
                Err(e) => e,
            },
            Err(e) => e,
        };
        let back = TOLD.iter().try_for_each(|s| raw::set_signal(*s, false));
        if let Err(e) = self.keep(FdFlags::CLOEXEC).and(back) {
            log::error!("after a replacement that failed: {}", words(&e));
        }
        e
    }

    /// Everything a successor needs, in a file that stays open over exec.
    fn hand_over(&self) -> io::Result<File> {
        if crate::sys::euid() == 0 {
            guard::safe(&self.exe)?;
        }
        self.boot.readable().map_err(|e| io::Error::other(e.0))?;
        let setups = self.setups.iter();
        let handover = Handover {
            saved: self.machine.save(),
            lock: self.lock.as_raw_fd(),
            listener: self.listener.as_raw_fd(),
            setups: setups.map(|(id, p)| (*id, p.pid, p.sock.as_raw_fd(), p.got.clone())).collect(),
            ports: self.ports.hand_over(),
        };
        let mut state = unlinked(&self.rundir, "launcher.state")?;
        serde_json::to_writer(io::BufWriter::new(&mut state), &handover)?;
        self.keep(FdFlags::empty())?;
        fcntl_setfd(&state, FdFlags::empty())?;
        Ok(state)
    }

    fn keep(&self, flags: FdFlags) -> io::Result<()> {
        fcntl_setfd(&self.lock, flags)?;
        fcntl_setfd(&self.listener, flags)?;
        self.ports.all().try_for_each(|port| fcntl_setfd(port, flags))?;
        for p in self.setups.values() {
            fcntl_setfd(&p.sock, flags)?;
        }
        Ok(())
    }
}
