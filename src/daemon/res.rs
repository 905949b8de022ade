//! The real res: the machine of `crate::res` under the shell, and the descriptors of its tasks,
//! which starters hand over through a Unix socket.
//!
//! Invariants: descriptors are taken from the uid that the task runs as, against the task's
//! token, once; no read goes beyond a task's credit; a keeper has the descriptors too
//! (`super::res_kept`); nothing here blocks.

use super::boot::{Boot, resolve_missing};
use super::boot_error::BootError;
use super::driver::{DaemonDriver, ShellControl};
use super::handover::RES_SOCKET;
use super::res_arrivals::{Arrival, Arrivals};
use super::res_keeper::EndSlot;
use super::res_kept::{KeeperLink, LeftTask, ProgressFile};
use super::res_task::{AwaitedJob, CONTROL, Task, tell};
use super::shell::{self, ShellConfig};
use crate::conf::{HostTable, load};
use crate::log::codec::put_task;
use crate::net::sock;
use crate::net::sock::recv_fds;
use crate::proto::res::{
    Account, DATA_MAX, KeptTask, TOKEN, TaskNews, TaskOp, WINDOW, job_of_token,
};
use crate::proto::{Daemon, Effect, Input};
use crate::res::{Res, ResConf};
use crate::sys::files::{self, RealFiles};
use crate::sys::{term, words};
use mio::net::UnixListener;
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Seconds that a task whose command is gone has to end, where LSF_RES_TIMEOUT says nothing.
const TIMEOUT: u64 = 15;
/// Seconds of silence after which the host of a command is gone, where LSF_RES_ALIVE_TIMEOUT says
/// nothing.
const SILENCE: u64 = 60;
/// Seconds between two looks at the cluster's hosts, where LSF_RES_SYNCUP_INTERVAL says nothing,
/// and at least.
const SYNCUP: u64 = 1800;
const SYNCUP_MIN: u64 = 90;
/// Most starters that have connected and not yet spoken.
const WAITING: usize = 64;
/// The directory of lsf.acct without LSF_RES_ACCTDIR.
const ACCT_DIR: &str = "/tmp";
/// The permission bits of lsf.acct.HOST.
const ACCT_MODE: u32 = 0o644;

/// Tokens: the listener and starters that wait, the keeper, and four for each task.
const LISTENER: usize = 0;
const KEEPER: usize = 1;

/// Runs this host's res until it is told to end; its tasks are then kept for the next one.
pub fn run(boot: Boot) -> Result<i32, BootError> {
    let fail = |e: io::Error| BootError(words(&e));
    let path = boot.site.rundir().join(RES_SOCKET);
    let listener = sock::listen_unix(&path, 0o666).map_err(fail)?;
    let conf = conf(&boot, &path.to_string_lossy());
    let lsf = &boot.conf.lsf;
    let dir = lsf.get("LSF_RES_ACCTDIR").unwrap_or(ACCT_DIR);
    let acct = PathBuf::from(dir).join(format!("lsf.acct.{}", boot.host));
    let mut machine = Res::new(conf, crate::sys::random().map_err(fail)?);
    let (keeper, left) = KeeperLink::inherit(&boot.site.rundir());
    let take_over = |left: LeftTask| (machine.adopt((*left.task).clone()), Task::left(left));
    let tasks: BTreeMap<u64, Task> = left.into_iter().map(take_over).collect();
    if !tasks.is_empty() {
        log::info!("{} tasks of the last RES go on", tasks.len());
    }
    let (waiting, keeper_fails) = (VecDeque::new(), false);
    let rundir = boot.site.rundir();
    let known = HostRefresh {
        envdir: boot.site.envdir.clone(),
        host: boot.host.clone(),
        new: Arc::default(),
    };
    let chunk = vec![0; DATA_MAX];
    let arrivals = Arrivals::default();
    let host = Ends {
        arrivals,
        listener,
        keeper,
        keeper_fails,
        ending: false,
        rundir,
        tasks,
        waiting,
        acct,
        acct_fails: false,
        known,
        chunk,
    };
    let silence = silence(boot.conf.lsf.int("LSF_RES_ALIVE_TIMEOUT", SILENCE));
    shell::run(ShellConfig { silence, ..boot.shell(Daemon::Res) }, machine, host)
        .map_err(|e| BootError(e.to_string()))
}

fn conf(boot: &Boot, socket: &str) -> ResConf {
    let lsf = &boot.conf.lsf;
    let own = boot.conf.cluster.hosts.iter().find(|h| h.name == boot.host);
    let named = [
        ("LSF_ENVDIR", Some(boot.site.envdir.as_str())),
        ("LSF_LOCAL_HOST", boot.site.shared_machine.then_some(boot.host.as_str())),
    ];
    let env = named.into_iter().filter_map(|(n, v)| Some((n.to_owned(), v?.to_owned())));
    let root = lsf.get("LSF_ROOT_REX").unwrap_or_default();
    ResConf {
        host: boot.host.clone(),
        admins: boot.conf.cluster.admins.clone(),
        personal: lsf.personal(),
        root: (root.eq_ignore_ascii_case("local"), root.eq_ignore_ascii_case("all")),
        timeout: lsf.int("LSF_RES_TIMEOUT", TIMEOUT).max(1),
        env: env.collect(),
        unlimited: unlimited(lsf.list("LSF_RES_RLIMIT_UNLIM")),
        only_admins: lsf.yes("LSF_DISABLE_LSRUN"),
        syncup: syncup(lsf.int("LSF_RES_SYNCUP_INTERVAL", SYNCUP)),
        nice: own.map_or(0, |h| h.rexpri),
        socket: socket.to_owned(),
        eexec: lsf.serverdir().map_or(String::new(), |dir| format!("{dir}/eexec")),
        acct_ms: lsf.get("LSF_RES_ACCT").and_then(|v| v.parse().ok()),
    }
}

/// 0 is never.
fn silence(secs: u64) -> Option<Duration> {
    (secs > 0).then(|| Duration::from_secs(secs))
}

/// 0 is never.
fn syncup(secs: u64) -> Option<u64> {
    (secs > 0).then_some(secs.max(SYNCUP_MIN))
}

/// The numbers of limits by LSF_RES_RLIMIT_UNLIM's names.
fn unlimited(names: Vec<&str>) -> Vec<u8> {
    let number = |name: &&str| match *name {
        "cpu" => Some(0),
        "fsize" => Some(1),
        "data" => Some(2),
        "stack" => Some(3),
        "core" => Some(4),
        "vmem" => Some(9),
        _ => None,
    };
    names.iter().filter_map(number).collect()
}

struct Ends {
    arrivals: Arrivals,
    listener: UnixListener,
    keeper: KeeperLink,
    /// The failure to start it was logged.
    keeper_fails: bool,
    /// This res was told to end: nothing more is taken from tasks, or given to them.
    ending: bool,
    rundir: PathBuf,
    tasks: BTreeMap<u64, Task>,
    waiting: VecDeque<mio::net::UnixStream>,
    acct: PathBuf,
    /// The failure to write it was logged.
    acct_fails: bool,
    known: HostRefresh,
    chunk: Vec<u8>,
}

/// The cluster's hosts as the files have them, found out by a thread.
struct HostRefresh {
    envdir: String,
    host: String,
    new: Arc<Mutex<Option<HostTable>>>,
}

impl HostRefresh {
    fn look(&self, shell: &ShellControl) {
        let (envdir, host, new) = (self.envdir.clone(), self.host.clone(), self.new.clone());
        let remote = shell.remote();
        std::thread::spawn(move || {
            let (conf, _) = load::load_base_lenient(&RealFiles, &envdir, Some(&host));
            let Some(mut conf) = conf else {
                return log::warn!("{envdir}: the list of hosts cannot be read; the old one stays");
            };
            resolve_missing(&mut conf, &host);
            if let Ok(mut new) = new.lock() {
                *new = Some(conf.hosts);
            }
            remote.wake();
        });
    }
}

impl DaemonDriver for Ends {
    type M = Res;

    fn start(&mut self, _: &mut Res, shell: &mut ShellControl) {
        if let Err(e) = shell.watch(self.listener.as_fd(), LISTENER, false) {
            log::error!("the socket for starters: {}", words(&e));
            shell.exit(1);
        }
        self.watch_keeper(shell);
        for (n, task) in &self.tasks {
            if let Err(e) = task.watch(*n, shell) {
                log::error!("a task of the last RES: {}", words(&e));
            }
        }
    }

    fn ready(&mut self, _: &mut Res, at: usize, shell: &mut ShellControl) {
        let (n, slot) = (at as u64 / 4, at % 4);
        match (n, slot) {
            (0, KEEPER) => {
                self.keeper.ready();
                return;
            }
            (0, _) => return self.accept(shell),
            _ => {}
        }
        let Some(task) = self.tasks.get_mut(&n).filter(|_| !self.ending) else { return };
        match slot {
            0 => task.feed(n, shell),
            CONTROL => task.heard(n, shell),
            _ => task.take(n, &mut self.chunk, shell),
        }
        task.tell_closed(&mut self.keeper);
    }

    fn terminate(&mut self, _: &mut Res, shell: &mut ShellControl) {
        self.ending = true;
        // what was taken from tasks is sent before
        shell.input(Input::Tick);
    }

    fn deadline(&self) -> Option<u64> {
        self.keeper.deadline()
    }

    fn end_of_turn(&mut self, _: &mut Res, shell: &mut ShellControl) {
        self.keeper.look(shell.now.mono_us);
        if self.ending && !shell.has_input() {
            shell.exit(0);
        }
    }

    fn hangup(&mut self, _: &mut Res, shell: &mut ShellControl) {
        self.known.look(shell);
    }

    fn woken(&mut self, _: &mut Res, shell: &mut ShellControl) {
        if let Some(hosts) = self.known.new.lock().ok().and_then(|mut new| new.take()) {
            shell.set_table(hosts);
        }
    }

    fn effect(&mut self, _: &mut Res, effect: Effect, shell: &mut ShellControl) {
        match effect {
            Effect::LoadConfig => self.known.look(shell),
            Effect::Task { n, op: TaskOp::Expect { uid, token } } => {
                let task = Task { uid, token, allow: WINDOW, ..Task::default() };
                self.tasks.insert(n, task);
            }
            Effect::Task { n, op: TaskOp::ExpectJob { uid, job, pty } } => {
                let awaited = Some(AwaitedJob { job, pty });
                self.tasks.insert(n, Task { uid, awaited, allow: WINDOW, ..Task::default() });
                if let Some(arrival) = self.arrivals.take(uid, job)
                    && let Err(e) = self.joined(n, arrival, shell)
                {
                    log::warn!("a starter: {}", words(&e));
                }
            }
            Effect::Task { n, op: TaskOp::Forget } => {
                let kept = self.tasks.remove(&n).and_then(|task| task.kept);
                if let Some((id, _)) = kept {
                    self.keeper.forget(id);
                }
            }
            Effect::Task { n, op: TaskOp::Keep(task) } => {
                let kept = self.keep(n, task, shell);
                if let (Err(e), false) = (&kept, self.keeper_fails) {
                    log::error!("tasks end with this RES: no keeper: {}", words(e));
                }
                self.keeper_fails = kept.is_err();
            }
            Effect::Task { op: TaskOp::Account(account), .. } => self.account(&account),
            // the next res goes on with that, and is given the input that was not written
            Effect::Task {
                op: TaskOp::Allow(_) | TaskOp::Drain | TaskOp::Write(_) | TaskOp::CloseIn,
                ..
            } if self.ending => {}
            Effect::Task { n, op } => {
                if op == TaskOp::Drain {
                    // its descriptors may still wait at our socket
                    self.accept(shell);
                }
                if let Some(task) = self.tasks.get_mut(&n) {
                    task.act(n, op, &mut self.chunk, shell);
                    task.tell_closed(&mut self.keeper);
                }
            }
            other => log::error!("an effect not for res: {}", other.name()),
        }
    }
}

impl Ends {
    fn accept(&mut self, shell: &mut ShellControl) {
        while let Ok((sock, _)) = self.listener.accept() {
            if let Err(e) = shell.watch(sock.as_fd(), LISTENER, false) {
                log::warn!("a starter: {}", words(&e));
            }
            self.waiting.push_back(sock);
            if self.waiting.len() > WAITING {
                self.waiting.pop_front();
            }
        }
        for _ in 0..self.waiting.len() {
            let Some(sock) = self.waiting.pop_front() else { return };
            let mut token = [0u8; TOKEN];
            match recv_fds(&sock, &mut token) {
                Err(e) if e.kind() == ErrorKind::WouldBlock => self.waiting.push_back(sock),
                Err(e) => log::warn!("a starter: {}", words(&e)),
                Ok((_, fds)) => {
                    if let Err(e) = self.attach(sock, &token, fds, shell) {
                        log::warn!("a starter: {}", words(&e));
                    }
                }
            }
        }
    }

    fn attach(
        &mut self,
        sock: mio::net::UnixStream,
        shown: &[u8; TOKEN],
        fds: Vec<OwnedFd>,
        shell: &mut ShellControl,
    ) -> io::Result<()> {
        let (uid, ..) = sock::peer_cred(sock.as_fd())?;
        if let Some(key) = job_of_token(shown) {
            let waits = |t: &Task| {
                t.uid == uid && t.awaited.as_ref().is_some_and(|awaited| awaited.job == key.job)
            };
            let waiting = self.tasks.iter().find(|(_, t)| waits(t)).map(|(n, _)| *n);
            let arrival = Arrival { uid, key, sock, fds };
            return match waiting {
                Some(n) => self.joined(n, arrival, shell),
                None => self.arrivals.keep(arrival).map_err(io::Error::other),
            };
        }
        let owns = |t: &&mut Task| t.uid == uid && t.token.len() == TOKEN && t.token == shown;
        let mut tasks = self.tasks.iter_mut();
        let found = tasks.find_map(|(n, t)| Some((*n, Some(t).filter(owns)?)));
        let (n, task) = found.ok_or_else(|| io::Error::other("no task waits for it"))?;
        task.token.clear();
        self.take_ends(n, sock, fds, shell)
    }

    /// An interactive job and its bsub have met: the job's terminal becomes like the bsub's, and
    /// the job goes on.
    fn joined(&mut self, n: u64, arrival: Arrival, shell: &mut ShellControl) -> io::Result<()> {
        let Arrival { key, mut sock, fds, .. } = arrival;
        let Some(awaited) = self.tasks.get_mut(&n).and_then(|t| t.awaited.take()) else {
            return Ok(());
        };
        if let (Some(pty), [master]) = (&awaited.pty, &fds[..]) {
            term::apply(master.as_fd(), pty)?;
        }
        sock.write_all(b"g")?;
        tell(shell, n, TaskNews::Joined(key));
        self.take_ends(n, sock, fds, shell)
    }

    /// Takes the descriptors of a task as its own.
    fn take_ends(
        &mut self,
        n: u64,
        sock: mio::net::UnixStream,
        fds: Vec<OwnedFd>,
        shell: &mut ShellControl,
    ) -> io::Result<()> {
        let Some(task) = self.tasks.get_mut(&n) else { return Ok(()) };
        let mut fds = fds.into_iter();
        let first = fds.next().map(File::from);
        task.pty = fds.len() == 0;
        (task.input, task.outs) = match (task.pty, first) {
            (true, Some(master)) => (Some(master.try_clone()?), [Some(master), None]),
            (_, first) => (first, [fds.next().map(File::from), fds.next().map(File::from)]),
        };
        for fd in [&task.input, &task.outs[0], &task.outs[1]].into_iter().flatten() {
            rustix::io::ioctl_fionbio(fd, true)?;
        }
        task.control = Some(sock).filter(|_| task.pty);
        task.watch(n, shell)?;
        task.end_line();
        tell(shell, n, TaskNews::Attached);
        task.feed(n, shell);
        task.take(n, &mut self.chunk, shell);
        Ok(())
    }

    /// Has the descriptors of a task kept for the next res.
    fn keep(&mut self, n: u64, of: Box<KeptTask>, shell: &mut ShellControl) -> io::Result<()> {
        if self.keeper.ensure()? {
            self.watch_keeper(shell);
        }
        let Some(task) = self.tasks.get_mut(&n) else { return Ok(()) };
        let (id, file) = (of.id, ProgressFile::new(&self.rundir, &task.progress)?);
        let input = task.input.as_ref().filter(|_| !task.pty);
        let control = task.control.as_ref().map(AsFd::as_fd);
        let ends = [
            (EndSlot::Input, input.map(AsFd::as_fd)),
            (EndSlot::Output, task.outs[0].as_ref().map(AsFd::as_fd)),
            (EndSlot::Errors, task.outs[1].as_ref().map(AsFd::as_fd)),
            (EndSlot::Control, control),
            (EndSlot::Progress, Some(file.fd())),
        ];
        let ends: Vec<_> = ends.into_iter().filter_map(|(slot, fd)| Some((slot, fd?))).collect();
        if self.keeper.keep(of, &ends) {
            task.closed.clear();
            task.kept = Some((id, file));
            tell(shell, n, TaskNews::Kept);
        }
        Ok(())
    }

    fn watch_keeper(&self, shell: &mut ShellControl) {
        let Some(sock) = self.keeper.socket() else { return };
        if let Err(e) = shell.watch_both(sock, KEEPER) {
            log::warn!("the keeper: {}", words(&e));
        }
    }

    /// Appends a record. Opening never waits: below /tmp somebody may have put a fifo in its place.
    fn account(&mut self, account: &Account) {
        let mut line = Vec::new();
        put_task(&mut line, account);
        let opened = files::append(&self.acct, ACCT_MODE);
        let wrote = opened.and_then(|mut file| file.write_all(&line));
        if let (Err(e), false) = (&wrote, self.acct_fails) {
            let why = "records of tasks are lost until it is mended";
            log::error!("{}: {}: {why}", self.acct.display(), words(e));
        }
        self.acct_fails = wrote.is_err();
    }
}
