//! The real launcher: carries out what the launcher machine wants (design §1). The only process
//! that is root; it parses nothing but its own socket, which only the administrator can reach.
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

use super::authd::EAUTH_KEY_FD;
use super::boot::{Boot, BootError};
use super::guard;
use super::starter::DEFAULT_PATH;
use crate::exec::launcher::{Conf, Launcher, Saved};
use crate::model::job::Usage;
use crate::net::sock;
use crate::proto::frame::{Decoder, MAX_FRAME, Session};
use crate::proto::launch::{Journal, OsEffect, OsInput, Plan, Setup, Stage, TaskId};
use crate::proto::machine::{ConnId, INCOMING};
use crate::proto::{Daemon, Effect, Input, Machine, Peer};
use crate::sys::procs::Proc;
use crate::sys::raw::{self, SignalFd};
use crate::sys::users::User;
use crate::sys::{session, words};
use mio::net::{UnixListener, UnixStream};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{FdFlags, fcntl_setfd};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Most connections at once.
const CONNS_MAX: usize = 32;
/// Output waiting on one connection beyond which it is closed, bytes.
const OUT_MAX: usize = 64 << 20;
/// Largest report of a starter, bytes.
const SETUP_MAX: usize = 64 << 10;
/// Bytes read from a connection in one turn.
const READ_TURN: usize = 1 << 20;
/// Carries the number of the state's descriptor over exec.
const STATE_FD: &str = "LSF_LAUNCHER_STATE";
/// Tells mbatchd that root may submit; no user can set a daemon's environment.
pub const ROOT_JOBS: &str = "LSF_ROOT_JOBS";
/// Tells the daemons that `eauth -s` runs as another user.
pub const EAUTH_USER: &str = "LSF_EAUTH_USER";
/// The signals that ask for something.
const TOLD: [i32; 4] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGUSR2];
/// What a child is: itself, whichever file that is by now.
const SELF: &str = "/proc/self/exe";

/// What crosses exec.
#[derive(Serialize, Deserialize)]
struct Handover {
    saved: Saved,
    lock: i32,
    listener: i32,
    /// Pid, descriptor, what was read of the report.
    setups: Vec<(TaskId, u32, i32, Vec<u8>)>,
}

struct Conn {
    sock: UnixStream,
    dec: Decoder,
    session: Session,
    out: Vec<u8>,
    /// Flush, then close.
    closing: bool,
}

/// A starter that has not reported yet.
struct Pending {
    pid: u32,
    sock: File,
    got: Vec<u8>,
}

struct Real {
    machine: Launcher,
    boot: Boot,
    /// Whom daemons run as, where that is not ourselves.
    admin: Option<User>,
    rundir: PathBuf,
    /// As the machine was told.
    conf: Conf,
    /// The file a successor is started from.
    exe: PathBuf,
    signals: SignalFd,
    listener: UnixListener,
    lock: File,
    journal: Option<File>,
    conns: BTreeMap<ConnId, Conn>,
    next: ConnId,
    setups: BTreeMap<TaskId, Pending>,
    inputs: VecDeque<Input>,
    /// Every process, looked at once a turn at most.
    scan: Option<Vec<session::Seen>>,
    exit: Option<i32>,
}

/// Runs this host's launcher.
pub fn run(boot: Boot) -> Result<i32, BootError> {
    let fail = |what: &str, e: io::Error| BootError(format!("{what}: {}", words(&e)));
    let admin = guard::admin(&boot)?;
    let rundir = boot.site.rundir();
    match &admin {
        Some(admin) => guard::directories(&rundir, admin).map_err(|e| BootError(words(&e)))?,
        None => boot.make_rundir()?,
    }
    let heard = [&TOLD[..], &[libc::SIGCHLD]].concat();
    let signals = SignalFd::new(&heard).map_err(|e| fail("signals", e))?;
    // what was ignored when we were started would never be told
    heard.iter().try_for_each(|s| raw::set_signal(*s, false)).map_err(|e| fail("signals", e))?;
    rustix::process::chdir("/").map_err(|e| fail("/", e.into()))?;
    let conf = conf(&boot, admin.as_ref())?;
    let mut real = Real::open(boot, conf, admin, rundir, signals).map_err(|e| fail("start", e))?;
    real.reap();
    real.serve().map_err(|e| fail("poll", e))
}

fn conf(boot: &Boot, admin: Option<&User>) -> Result<Conf, BootError> {
    let path = "/proc/sys/kernel/random/boot_id";
    let boot_id = std::fs::read_to_string(path).map_err(|e| BootError(format!("{path}: {e}")))?;
    let mut hosts = boot.conf.cluster.hosts.iter();
    let server = hosts.any(|h| h.name == boot.host && h.server);
    let sudoers = admin.and_then(|_| guard::sudoers());
    let eauth_user = sudoers.as_ref().and_then(|s| s.get(EAUTH_USER)).map(str::to_owned);
    let mut daemons = vec![Daemon::Authd];
    if server {
        daemons.extend([Daemon::Lim, Daemon::Sbatchd, Daemon::Res]);
        daemons.extend(eauth_user.is_some().then_some(Daemon::Eauthd));
    }
    Ok(Conf {
        uid: crate::sys::euid(),
        personal: boot.conf.lsf.personal(),
        boot_id: boot_id.trim().to_owned(),
        daemons,
        peers: admin.map(|a| a.uid).into_iter().collect(),
        root_jobs: sudoers.is_some_and(|s| s.root_user()),
        eauth_user,
    })
}

/// What a launcher that replaced itself left us.
fn handed_over() -> Option<Handover> {
    let fd = std::env::var(STATE_FD).ok()?.parse().ok()?;
    let read = raw::inherited_fd(fd).and_then(|fd| {
        let mut file = File::from(fd);
        file.seek(SeekFrom::Start(0))?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        serde_json::from_slice(&text).map_err(io::Error::other)
    });
    read.map_err(|e| log::error!("the state handed over cannot be read: {}", words(&e))).ok()
}

impl Real {
    /// Takes over from the launcher that was this process, or begins as a new one.
    fn open(
        boot: Boot,
        conf: Conf,
        admin: Option<User>,
        rundir: PathBuf,
        signals: SignalFd,
    ) -> io::Result<Real> {
        let exe = std::fs::read_link(SELF)?;
        let journal = || read_journal(&rundir.join("launcher.journal"));
        let mut setups = BTreeMap::new();
        let (machine, lock, listener) = match handed_over() {
            Some(h) => {
                log::info!("replaced by {}", exe.display());
                for (id, pid, fd, got) in h.setups {
                    let sock = File::from(raw::inherited_fd(fd)?);
                    setups.insert(id, Pending { pid, sock, got });
                }
                let machine = Launcher::resume(conf.clone(), h.saved).unwrap_or_else(|| {
                    log::warn!("the state is of another version: going on from the journal");
                    Launcher::new(conf.clone(), journal())
                });
                let listener =
                    std::os::unix::net::UnixListener::from(raw::inherited_fd(h.listener)?);
                listener.set_nonblocking(true)?;
                let lock = File::from(raw::inherited_fd(h.lock)?);
                (machine, lock, UnixListener::from_std(listener))
            }
            None => {
                let lock = private(&rundir.join("launcher.lock"))?;
                rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive)
                    .map_err(|_| io::Error::other("another launcher of this host runs"))?;
                let path = boot.site.launcher_socket();
                let listener = sock::listen_unix(&path, 0o600)?;
                admin.iter().try_for_each(|a| guard::give(&path, a))?;
                (Launcher::new(conf.clone(), journal()), lock, listener)
            }
        };
        Ok(Real {
            machine,
            boot,
            admin,
            rundir,
            conf,
            exe,
            signals,
            listener,
            lock,
            journal: None,
            conns: BTreeMap::new(),
            next: INCOMING,
            setups,
            inputs: VecDeque::from([Input::Start]),
            scan: None,
            exit: None,
        })
    }

    // ---- the loop ----

    fn serve(&mut self) -> io::Result<i32> {
        loop {
            self.step_all();
            self.flush();
            if let Some(code) = self.exit {
                return Ok(code);
            }
            if self.inputs.is_empty() {
                self.wait()?;
            }
        }
    }

    /// Steps the machine until it has nothing more to take.
    fn step_all(&mut self) {
        self.scan = None;
        let now = crate::sys::now();
        if self.machine.deadline().is_some_and(|at| at <= now.mono_us) {
            self.inputs.push_back(Input::Tick);
        }
        let mut effects = Vec::new();
        while let Some(input) = self.inputs.pop_front() {
            self.machine.step(crate::sys::now(), input, &mut effects);
            for effect in effects.drain(..) {
                self.effect(effect);
            }
        }
    }

    fn wait(&mut self) -> io::Result<()> {
        let (read, write) = (PollFlags::IN, PollFlags::OUT);
        let mut fds = vec![PollFd::new(&self.signals, read), PollFd::new(&self.listener, read)];
        for c in self.conns.values() {
            let how = if c.out.is_empty() { read } else { read | write };
            fds.push(PollFd::new(&c.sock, how));
        }
        fds.extend(self.setups.values().map(|p| PollFd::new(&p.sock, read)));
        let now = crate::sys::now().mono_us;
        let left = self.machine.deadline().map(|at| at.saturating_sub(now));
        let time = left.map(|us| Timespec {
            tv_sec: (us / 1_000_000) as i64,
            tv_nsec: ((us % 1_000_000) * 1000) as i64,
        });
        match poll(&mut fds, time.as_ref()) {
            Err(rustix::io::Errno::INTR) => return Ok(()),
            got => got?,
        };
        let ready: Vec<bool> = fds.iter().map(|f| !f.revents().is_empty()).collect();
        drop(fds);
        self.dispatch(&ready);
        Ok(())
    }

    fn dispatch(&mut self, ready: &[bool]) {
        let conns: Vec<ConnId> = self.conns.keys().copied().collect();
        let setups: Vec<TaskId> = self.setups.keys().copied().collect();
        let mut at = ready.iter().skip(2);
        for (id, _) in conns.into_iter().zip(at.by_ref()).filter(|(_, ready)| **ready) {
            self.read(id);
        }
        for (id, _) in setups.into_iter().zip(at).filter(|(_, ready)| **ready) {
            self.read_setup(id, false);
        }
        if ready[1] {
            self.accept();
        }
        if ready[0] {
            self.signalled();
        }
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
                    let e = self.replace();
                    log::error!("not replaced: {}", words(&e));
                }
                _ => self.boot.log.reopen(),
            }
        }
    }

    /// Takes every ended child; what its starter had to say comes first.
    fn reap(&mut self) {
        while let Ok(Some(end)) = raw::wait4(-1, false) {
            let pid = end.pid as u32;
            let pending = self.setups.iter().find(|(_, p)| p.pid == pid).map(|(id, _)| *id);
            if let Some(id) = pending {
                self.read_setup(id, true);
            }
            let usage = Usage {
                utime_us: end.utime_us,
                stime_us: end.stime_us,
                max_mem_kb: end.max_rss_kb,
                minflt: end.minflt,
                majflt: end.majflt,
                inblock: end.inblock,
                oublock: end.oublock,
                nvcsw: end.nvcsw,
                nivcsw: end.nivcsw,
                ..Usage::default()
            };
            let input = OsInput::Exited { pid, status: end.status, usage };
            self.inputs.push_back(Input::Os(input));
        }
    }

    // ---- connections ----

    fn accept(&mut self) {
        while let Ok((sock, _)) = self.listener.accept() {
            let Ok((uid, _, pid)) = sock::peer_cred(sock.as_fd()) else { continue };
            if self.conns.len() >= CONNS_MAX {
                log::warn!("{CONNS_MAX} connections already: one from pid {pid} is refused");
                continue;
            }
            let (dec, session) = (Decoder::new(MAX_FRAME), Session::local());
            let conn = Conn { sock, dec, session, out: Vec::new(), closing: false };
            self.conns.insert(self.next, conn);
            let peer = Peer::Local { uid, pid };
            self.inputs.push_back(Input::Opened { conn: self.next, peer });
            self.next += 1;
        }
    }

    fn read(&mut self, id: ConnId) {
        let Some(c) = self.conns.get_mut(&id) else { return };
        let (mut chunk, mut room) = (vec![0u8; 64 << 10], READ_TURN);
        let gone = loop {
            match c.sock.read(&mut chunk) {
                Ok(0) => break true,
                Ok(n) => {
                    c.dec.push(&chunk[..n]);
                    if !decode(id, c, &mut self.inputs) {
                        break true;
                    }
                    room = room.saturating_sub(n);
                    if room == 0 {
                        break false;
                    }
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => break false,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(_) => break true,
            }
        };
        if gone {
            self.drop_conn(id);
        }
    }

    fn drop_conn(&mut self, id: ConnId) {
        if self.conns.remove(&id).is_some_and(|c| !c.closing) {
            self.inputs.push_back(Input::Closed { conn: id });
        }
    }

    fn flush(&mut self) {
        let mut gone = Vec::new();
        for (id, c) in &mut self.conns {
            while !c.out.is_empty() {
                match c.sock.write(&c.out) {
                    Ok(n) if n > 0 => drop(c.out.drain(..n)),
                    Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                    Err(e) if e.kind() == ErrorKind::Interrupted => {}
                    _ => {
                        gone.push(*id);
                        break;
                    }
                }
            }
            if (c.closing && c.out.is_empty()) || c.out.len() > OUT_MAX {
                gone.push(*id);
            }
        }
        gone.into_iter().for_each(|id| self.drop_conn(id));
    }

    // ---- effects ----

    fn effect(&mut self, effect: Effect) {
        match effect {
            Effect::Send { conn, msg } => {
                if let Some(c) = self.conns.get_mut(&conn).filter(|c| !c.closing)
                    && let Err(e) = c.session.seal_msg(&msg, &mut c.out)
                {
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
            OsEffect::Spawn { id, plan } => {
                let input = match self.spawn(id, &plan) {
                    Ok(p) => OsInput::Spawned { id, pid: p.pid, ticks: p.ticks },
                    Err(e) => OsInput::SpawnFailed { id, why: words(&e) },
                };
                self.inputs.push_front(Input::Os(input));
            }
            OsEffect::Go { id } => {
                if let Some(p) = self.setups.get_mut(&id)
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
            OsEffect::Signal { pid, ticks, signal, whole } => {
                if whole {
                    let seen = self.scan.get_or_insert_with(session::scan);
                    session::signal(pid, ticks, signal, seen);
                } else if let Some(s) = rustix::process::Signal::from_named_raw(signal)
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
            OsEffect::Journal(line) => self.append(&line),
            OsEffect::Rewrite(lines) => {
                if let Err(e) = self.rewrite(&lines) {
                    log::error!("journal: {}", words(&e));
                }
            }
            OsEffect::Sample { .. } => {}
        }
    }

    /// Starts a starter; it waits for its byte.
    fn spawn(&mut self, id: TaskId, plan: &Plan) -> io::Result<Proc> {
        use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
        let mut file = self.unlinked("plan")?;
        serde_json::to_writer(io::BufWriter::new(&mut file), plan)?;
        file.seek(SeekFrom::Start(0))?;
        let how = SocketFlags::CLOEXEC;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, how, None)?;
        let child = Command::new(SELF)
            .arg0("starter")
            .env_clear()
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::from(file))
            .stderr(Stdio::null())
            .spawn()?;
        rustix::io::ioctl_fionbio(&ours, true)?;
        let (pid, sock) = (child.id(), File::from(ours));
        self.setups.insert(id, Pending { pid, sock, got: Vec::new() });
        Ok(proc_of(pid))
    }

    fn spawn_daemon(&mut self, daemon: Daemon) -> io::Result<Proc> {
        let mut command = Command::new(SELF);
        let user = match daemon {
            Daemon::Eauthd => Some(self.conf.eauth_user.as_ref().ok_or(ErrorKind::NotFound)?),
            _ => self.admin.as_ref().map(|a| &a.name),
        };
        match user {
            Some(user) => command.arg0("starter").args([daemon.name(), user]),
            None => command.arg0(daemon.name()),
        };
        command.env_clear().env("LSF_ENVDIR", &self.boot.site.envdir).env("PATH", DEFAULT_PATH);
        let kept = ["TZ", "LSF_LOCAL_HOST"].map(|name| (name, std::env::var_os(name)));
        command.envs(kept.into_iter().filter_map(|(name, value)| Some((name, value?))));
        command.envs(self.conf.eauth_user.iter().map(|user| (EAUTH_USER, user)));
        command.stdin(Stdio::null());
        match (daemon, &self.admin) {
            (Daemon::Mbatchd, _) if self.conf.root_jobs => _ = command.env(ROOT_JOBS, "Y"),
            (Daemon::Authd, Some(_)) => hand_key(&mut command)?,
            (Daemon::Eauthd, Some(admin)) => {
                let path = self.boot.site.eauthd_socket();
                let listener = sock::listen_unix(&path, 0o600)?;
                guard::give(&path, admin)?;
                command.stdin(OwnedFd::from(listener));
            }
            _ => {}
        }
        let child = command.spawn()?;
        log::info!("{} is pid {}", daemon.name(), child.id());
        Ok(proc_of(child.id()))
    }

    /// Reads what a starter reports; it is whole when its end is closed.
    fn read_setup(&mut self, id: TaskId, ended: bool) {
        let Some(p) = self.setups.get_mut(&id) else { return };
        let mut chunk = [0u8; 8192];
        loop {
            match p.sock.read(&mut chunk) {
                Ok(n) if n > 0 && p.got.len() + n <= SETUP_MAX => {
                    p.got.extend_from_slice(&chunk[..n]);
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock && !ended => return,
                _ => break,
            }
        }
        let got = self.setups.remove(&id).map(|p| p.got).unwrap_or_default();
        if got.is_empty() {
            return;
        }
        let setup = serde_json::from_slice(&got).unwrap_or_else(|_| Setup::Failed {
            at: Stage::Plan,
            why: "its starter's report makes no sense".into(),
        });
        self.inputs.push_back(Input::Os(OsInput::Setup { id, setup }));
    }

    /// A file without a name: in memory, else in our directory.
    fn unlinked(&self, name: &str) -> io::Result<File> {
        if let Ok(fd) = rustix::fs::memfd_create(name, rustix::fs::MemfdFlags::CLOEXEC) {
            return Ok(File::from(fd));
        }
        let path = self.rundir.join(format!("launcher.{name}"));
        match std::fs::remove_file(&path) {
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        let file = private(&path)?;
        std::fs::remove_file(&path)?;
        Ok(file)
    }

    fn append(&mut self, line: &Journal) {
        let text = serde_json::to_vec(line).unwrap_or_default();
        let wrote = match &mut self.journal {
            Some(file) => file.write_all(&[&text[..], b"\n"].concat()),
            None => Err(io::Error::other("not open")),
        };
        if let Err(e) = wrote {
            log::error!("journal: {}", words(&e));
        }
    }

    fn rewrite(&mut self, lines: &[Journal]) -> io::Result<()> {
        let (path, new) = ("launcher.journal", "launcher.journal.new");
        let (path, new) = (self.rundir.join(path), self.rundir.join(new));
        let mut file = private(&new)?;
        file.set_len(0)?;
        let mut text = Vec::new();
        for line in lines {
            serde_json::to_writer(&mut text, line)?;
            text.push(b'\n');
        }
        file.write_all(&text)?;
        std::fs::rename(&new, &path)?;
        self.journal = Some(file);
        Ok(())
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
        let setups = self.setups.iter();
        let handover = Handover {
            saved: self.machine.save(),
            lock: self.lock.as_raw_fd(),
            listener: self.listener.as_raw_fd(),
            setups: setups.map(|(id, p)| (*id, p.pid, p.sock.as_raw_fd(), p.got.clone())).collect(),
        };
        let mut state = self.unlinked("state")?;
        serde_json::to_writer(io::BufWriter::new(&mut state), &handover)?;
        self.keep(FdFlags::empty())?;
        fcntl_setfd(&state, FdFlags::empty())?;
        Ok(state)
    }

    fn keep(&self, flags: FdFlags) -> io::Result<()> {
        fcntl_setfd(&self.lock, flags)?;
        fcntl_setfd(&self.listener, flags)?;
        for p in self.setups.values() {
            fcntl_setfd(&p.sock, flags)?;
        }
        Ok(())
    }
}

/// Takes the messages that are whole; false: the connection is wrong and to be closed.
fn decode(id: ConnId, c: &mut Conn, inputs: &mut VecDeque<Input>) -> bool {
    loop {
        let got = match c.dec.take() {
            Ok(None) => return true,
            Ok(Some(raw)) => c.session.open_msg(&raw),
            Err(e) => Err(e),
        };
        match got {
            Ok(msg) if !c.closing => inputs.push_back(Input::Msg { conn: id, msg }),
            Ok(_) => {}
            Err(e) => {
                log::warn!("connection {id}: {e}");
                return false;
            }
        }
    }
}

/// Gives authd LSF_EAUTH_KEY of lsf.sudoers as it is now: in a pipe, which holds the longest and
/// of which nothing is left once it is read.
fn hand_key(authd: &mut Command) -> io::Result<()> {
    let sudoers = guard::sudoers();
    let Some(key) = sudoers.as_ref().and_then(|s| s.eauth_key()) else { return Ok(()) };
    let (from, mut to) = io::pipe()?;
    to.write_all(key.as_bytes())?;
    authd.stdin(from).env(EAUTH_KEY_FD, "0");
    Ok(())
}

/// The identity of a child just made; one that has ended already has none, and is not reused
/// before it is reaped.
fn proc_of(pid: u32) -> Proc {
    Proc::of(pid).unwrap_or(Proc { pid, ticks: 1 })
}

/// Opens a file that is ours alone, made if need be.
fn private(path: &Path) -> io::Result<File> {
    let mut how = File::options();
    how.read(true).write(true).create(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    let file = how.open(path)?;
    if file.metadata()?.uid() != crate::sys::euid() {
        return Err(io::Error::other(format!("{} is another user's", path.display())));
    }
    Ok(file)
}

/// The journal a predecessor left; what follows a damaged line is given up.
fn read_journal(path: &Path) -> Vec<Journal> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(e) if e.kind() == ErrorKind::NotFound => return Vec::new(),
        Err(e) => {
            log::error!("{}: {}", path.display(), words(&e));
            return Vec::new();
        }
    };
    let mut lines = Vec::new();
    for (n, line) in text.lines().enumerate() {
        match serde_json::from_slice(line.as_bytes()) {
            Ok(line) => lines.push(line),
            Err(e) => {
                log::error!("{} line {}: {e}; the rest is left", path.display(), n + 1);
                break;
            }
        }
    }
    lines
}
