//! mbatchd for real: its machine, its log thread, its configuration.
//!
//! Invariant: one sync makes durable whatever was appended while the last one ran, and nothing that
//! acknowledges leaves before. Records that cannot be written are void: the machine's state is put
//! back to what the log holds. A doubtful sync, a lost lock or another owner ends the process. See
//! mbatchd(8).
//!
//! In a personal cluster two files beside conf/ serve the tests: `crash.at` (`POINT:N`, read and
//! removed at start: die at the N-th commit; `stop-POINT:N`: stop there) and `fault` (while it says
//! `enospc` or `eio`, writes fail so). `fault.share` does the same to the copy of LSB_LOCALDIR.

use super::boot::Boot;
use super::boot_error::BootError;
use super::control_actions::ControlActions;
use super::define_queues::define_queues;
use super::driver::{DaemonDriver, Remote, ShellControl};
use super::duplicate::{Duplicate, Places, Waited};
use super::eadmin::Eadmin;
use super::egroup::{self, GroupMembers};
use super::event_stream::{self, EventStream};
use super::groups::{self, Asker};
use super::handover::ROOT_JOBS;
use super::heartbeat::Heartbeat;
use super::mails::Mails;
use super::shell;
use crate::batch::{Mbatchd, Recovered};
use crate::conf::{self, ClusterConf, Member};
use crate::log::acct_copy::MAX_AT_START;
use crate::log::commit_queue::CommitQueue;
use crate::log::disk::RealDisk;
use crate::log::duplicate::{lacking, takeover};
use crate::log::fail::Fail;
use crate::log::owner::{self, LockError, LogLock, Owner};
use crate::log::recover::found::RecoverError;
use crate::log::recover::{self, Params};
use crate::log::store::{Point, Store};
use crate::log::thread::{CrashPoints, Followers, LogHandle};
use crate::log::writer::{Command, WriterNotice};
use crate::proto::launch::Mail;
use crate::proto::machine::ConnId;
use crate::proto::sbd::SbdMsg;
use crate::proto::{Daemon, Effect, Input, Msg};
use crate::sys::files::RealFiles;
use crate::sys::procs::Proc;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Pause between two looks at a lock that another mbatchd has.
const LOCK_PAUSE: Duration = Duration::from_millis(500);

/// The results that threads left for the loop.
#[derive(Debug, Default)]
struct Shared {
    /// Length of lsb.events that is durable, at the last failure.
    durable_len: AtomicU64,
    fatal: AtomicBool,
    /// The contents of a log that was opened late.
    found: Mutex<Option<Recovered>>,
    /// Words of a configuration that was read, for the name service.
    unknown: Mutex<Vec<String>>,
}

impl Shared {
    fn unknown_groups(&self) -> MutexGuard<'_, Vec<String>> {
        self.unknown.lock().unwrap_or_else(|held| held.into_inner())
    }
}

/// The place of the event log, for each attempt to take it.
#[derive(Clone)]
struct LogPlace {
    dir: PathBuf,
    fault: Option<PathBuf>,
    host: String,
    /// This is the primary log, of which a copy is kept.
    primary: bool,
}

/// Why the log was not taken, and whether that is for want of room.
struct Untaken {
    why: String,
    full: bool,
}

/// The log until the loop starts.
enum Begin {
    Open(Box<Store<RealDisk>>),
    /// The log can be read, and there is no room to write; in words.
    Full(LogPlace, String),
}

impl LogPlace {
    /// Takes the log and mends it. Jobs that the copy lacked come back into a primary log; one that
    /// is a copy becomes this host's.
    fn take(&self) -> Result<(Store<RealDisk>, Recovered), Untaken> {
        let failed = |e: Fail| Untaken {
            why: format!("{}: {e}", self.dir.display()),
            full: matches!(e, Fail::Write(_)),
        };
        if self.primary {
            let (mut store, found) = self.open(0)?;
            let tell = &mut |text: &str| log::error!("the event log: {text}");
            if !lacking::bring_back(&mut store, &found, tell).map_err(failed)? {
                return Ok((store, found));
            }
            store.close();
            return self.open(0);
        }
        let (here, now) = (&mut RealDisk::existing_dir(&self.dir), crate::sys::now().secs());
        let copy = takeover::look(here, now)
            .map_err(|e| Untaken { why: format!("{}: {e}", self.dir.display()), full: false })?;
        let (mut store, mut found) = self.open(copy.as_ref().map_or(0, |(_, epoch)| *epoch))?;
        if let Some((note, _)) = copy {
            let told = takeover::take(&mut store, &mut found, &note, &self.host, now);
            let text = told.map_err(failed)?;
            let level = if note.complete { log::Level::Info } else { log::Level::Error };
            log::log!(level, "{text}");
        }
        Ok((store, found))
    }

    fn open(&self, least_epoch: u64) -> Result<(Store<RealDisk>, Recovered), Untaken> {
        let here = |e: &dyn std::fmt::Display| format!("{}: {e}", self.dir.display());
        let stop = |e: &dyn std::fmt::Display| Untaken { why: here(e), full: false };
        let mut disk = RealDisk::open_dir(&self.dir).map_err(|e| stop(&e))?;
        if let Some(fault) = &self.fault {
            disk = disk.with_fault_file(fault.clone());
        }
        let mut params = params(&mut disk, &self.host).map_err(|e| stop(&e))?;
        params.least_epoch = least_epoch;
        let found = recover::recover(&mut disk, &params);
        let found = found.map_err(|e| Untaken { why: here(&e), full: e.is_full() })?;
        for n in &found.notices {
            log::log!(n.level, "{}", n.text);
        }
        let store = Store::open(disk, found.plan)
            .map_err(|e| Untaken { why: here(&e), full: matches!(e, Fail::Write(_)) })?;
        Ok((store, found.recovered))
    }

    /// The state that can be read while nothing can be written.
    fn read(&self) -> Result<Recovered, RecoverError> {
        let mut disk = RealDisk::existing_dir(&self.dir);
        match recover::against::look(&mut disk)? {
            against if against.is_empty() => recover::again(&mut disk, u64::MAX, 0),
            against => Err(RecoverError::NotTheLast(against)),
        }
    }
}

struct MbatchdDriver {
    envdir: String,
    dir: PathBuf,
    /// The data of the start, until the loop begins.
    begin: Option<Begin>,
    log: Option<LogHandle>,
    crash: CrashPoints,
    front: CommitQueue<RealDisk>,
    /// Replies went out in an earlier turn.
    replied: bool,
    shared: Arc<Shared>,
    /// Asks for the groups that only the name service knows; there from the first need on.
    groups: Option<Asker>,
    /// Words that it had not answered in time for the start.
    late: Vec<String>,
    /// Asks egroup for the members of groups.
    members: GroupMembers,
    /// Mail of the routing of requests.
    mails: Mails,
    control_actions: ControlActions,
    eadmin: Eadmin,
    /// Reads the configuration.
    reading: Option<JoinHandle<()>>,
    /// The copy of the log, where this host has the primary.
    duplicate: Option<Duplicate>,
    stream: EventStream,
    /// Held as long as this process writes.
    _lock: LogLock,
}

/// Passes the notices of the log thread to the loop. Runs on the log thread.
fn tell(notice: WriterNotice, remote: &Remote, shared: &Shared, crash: &CrashPoints) {
    match notice {
        WriterNotice::Durable(ticket) => {
            crash.reach(Point::BeforeReply);
            remote.durable(ticket);
        }
        WriterNotice::WriteFailed { ticket, why, durable_len } => {
            shared.durable_len.store(durable_len, Ordering::SeqCst);
            remote.failed(ticket, why);
        }
        // what it holds is in `found`
        WriterNotice::Opened => remote.wake(),
        WriterNotice::Back => remote.input(Input::LogBack),
        WriterNotice::Switched { ok, why } => {
            if !ok {
                log::error!("lsb.events was not switched: {why}");
            }
            remote.input(Input::Switched { ok });
        }
        WriterNotice::Fatal(why) => {
            log::error!("mbatchd ends: {why}");
            shared.fatal.store(true, Ordering::SeqCst);
            remote.wake();
        }
    }
}

/// Hands orders to the thread of the log.
fn orders(log: &Option<LogHandle>) -> impl FnMut(Command) + '_ {
    move |command| {
        if let Some(log) = log {
            log.order(command);
        }
    }
}

impl MbatchdDriver {
    /// Reads the configuration on a thread: its files may lie on a slow file system. A request that
    /// comes meanwhile causes another reading behind this one.
    ///
    /// With a command of qmgr the definitions in lsb.nqs are changed first, where that is good.
    fn load_config(&mut self, change: Option<(ConnId, String, bool)>, shell: &mut ShellControl) {
        let (envdir, remote) = (self.envdir.clone(), shell.remote());
        let shared = self.shared.clone();
        let before = Arc::new(Mutex::new(self.reading.take()));
        let caller = self.members.caller();
        let interval = self.duplicate.as_ref().map(Duplicate::interval);
        let stream = self.stream.clone();
        let read = move || {
            // what it has read is told first
            let before = before.lock().unwrap_or_else(|held| held.into_inner()).take();
            let _ = before.map(JoinHandle::join);
            let mut told = None;
            let (mut conf, diags) = match &change {
                None => conf::load(&RealFiles, &envdir),
                Some((conn, command, again)) => match define_queues(&envdir, (command, *again)) {
                    Ok(defined) => {
                        told = Some((*conn, defined.words));
                        (Some(defined.conf), defined.diags)
                    }
                    Err(why) => {
                        remote.input(Input::QueuesDefined { conn: *conn, told: Err(why) });
                        return remote.wake();
                    }
                },
            };
            if let Some(conf) = &mut conf {
                caller.fill(conf, egroup::LATER_WAIT);
                stream.set(event_stream::settings(conf));
                if let Some(set) = &interval {
                    set(conf.batch.params.event_update_interval);
                }
            }
            let words = conf.as_ref().map_or(Vec::new(), |conf| conf.unix.unknown.clone());
            shared.unknown_groups().extend(words);
            remote.input(Input::Config { conf: conf.map(Box::new), diags });
            if let Some((conn, words)) = told {
                remote.input(Input::QueuesDefined { conn, told: Ok(words) });
            }
            remote.wake();
        };
        match std::thread::Builder::new().name("config".into()).spawn(read.clone()) {
            Ok(thread) => self.reading = Some(thread),
            Err(e) => {
                log::warn!("the configuration is read without a thread: {e}");
                read();
            }
        }
    }

    /// Has the name service asked for these words.
    fn ask_groups(&mut self, words: Vec<String>, shell: &ShellControl) {
        let asker = self.groups.get_or_insert_with(|| Asker::new(shell.remote()));
        if let Err(e) = asker.ask(words) {
            log::error!("the groups thread: {e}");
        }
    }
}

/// Bytes of records gathered beside those that are being written, from which on long work waits.
const MAX_BEHIND: usize = 4 << 20;

/// Processor time of a turn from which on it is logged, microseconds.
const LONG_TURN_US: u64 = 1_000_000;

impl DaemonDriver for MbatchdDriver {
    type M = Mbatchd;
    const MEASURED: bool = true;

    fn takes_work(&self) -> bool {
        self.front.behind() < MAX_BEHIND
    }

    fn turned(&mut self, m: &mut Mbatchd, cpu_us: u64) {
        if cpu_us >= LONG_TURN_US {
            log::warn!("a turn of the loop took {} ms of processor time", cpu_us / 1000);
        }
        m.note_turn(cpu_us);
    }

    fn start(&mut self, _m: &mut Mbatchd, shell: &mut ShellControl) {
        let late = std::mem::take(&mut self.late);
        self.ask_groups(late, shell);
        if let Err(e) = self.members.start(shell.remote()) {
            log::error!("the egroup thread: {e}");
        }
        let Some(begin) = self.begin.take() else { return };
        let (remote, shared, crash) = (shell.remote(), self.shared.clone(), self.crash.clone());
        let told = Box::new(move |n| tell(n, &remote, &shared, &crash));
        let extent = self.duplicate.as_ref().map(Duplicate::teller);
        let followers = Followers { extent, committed: Some(self.stream.teller()) };
        if let Some(duplicate) = &self.duplicate {
            let (remote, shared) = (shell.remote(), self.shared.clone());
            duplicate.on_end(Box::new(move |why| {
                log::error!("mbatchd ends: {why}");
                shared.fatal.store(true, Ordering::SeqCst);
                remote.wake();
            }));
        }
        let (shared, crash) = (self.shared.clone(), self.crash.clone());
        let started = match begin {
            Begin::Open(store) => LogHandle::start(*store, crash, told, followers),
            Begin::Full(place, why) => {
                let open = move || {
                    let (store, found) = place.take().map_err(|e| e.why)?;
                    *shared.found.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
                    Ok(store)
                };
                LogHandle::start_waiting(Box::new(open), why, crash, told, followers)
            }
        };
        match started {
            Ok(log) => self.log = Some(log),
            Err(e) => {
                log::error!("the log thread: {e}");
                shell.exit(1);
            }
        }
    }

    fn effect(&mut self, _m: &mut Mbatchd, eff: Effect, shell: &mut ShellControl) {
        let Some(eff) = self.front.take(eff, &mut shell.tickets, &mut orders(&self.log)) else {
            return;
        };
        match eff {
            Effect::SendBlob { conn, at } => match self.front.blob(at) {
                Ok(data) => shell.send(conn, Msg::Sbd(SbdMsg::Blob { at, data })),
                Err(e) => log::error!("spooled bytes at {at}: {e}"),
            },
            Effect::LoadConfig => self.load_config(None, shell),
            Effect::DefineQueues { conn, command, again } => {
                self.load_config(Some((conn, command, again)), shell);
            }
            Effect::Mail { to, text } => {
                let (program, to) = (self.mails.program.as_str().into(), to);
                let mail = Mail { program, to, text: text.as_str().into(), ..Mail::default() };
                self.mails.put(mail, shell.tickets.due());
            }
            Effect::ControlAction { class, command } => self.control_actions.put(class, command),
            Effect::Exceptions { program, all } => {
                self.eadmin.put(program, all, shell.remote());
            }
            other => log::error!("mbatchd does not carry out an effect: {}", other.name()),
        }
    }

    fn members(&mut self, m: &mut Mbatchd, all: Vec<Member>, shell: &mut ShellControl) {
        if let Some(conf) = m.with_members(&all) {
            log::info!("{} hosts have joined by themselves", all.len());
            shell.input(Input::Config { conf: Some(Box::new(conf)), diags: Vec::new() });
        }
    }

    fn end_of_turn(&mut self, _m: &mut Mbatchd, shell: &mut ShellControl) {
        if std::mem::take(&mut self.replied) {
            self.crash.reach(Point::AfterReply);
        }
        self.front.end_of_turn(&mut shell.tickets, &mut orders(&self.log));
    }

    fn woken(&mut self, m: &mut Mbatchd, shell: &mut ShellControl) {
        let found = self.shared.found.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(found) = found {
            self.front = CommitQueue::new(RealDisk::existing_dir(&self.dir), found.epoch);
            m.reload(found);
            orders(&self.log)(Command::Rebuilt);
        }
        if self.shared.fatal.load(Ordering::SeqCst) {
            shell.exit(1);
        }
        let words = std::mem::take(&mut *self.shared.unknown_groups());
        if !words.is_empty() {
            self.ask_groups(words, shell);
        }
    }

    fn durable(&mut self, _m: &mut Mbatchd, ticket: u64, _ctl: &mut ShellControl) {
        self.replied = true;
        self.mails.durable(ticket);
    }

    fn failed(&mut self, m: &mut Mbatchd, _ticket: u64, why: String, shell: &mut ShellControl) {
        self.mails.void();
        let limit = self.shared.durable_len.load(Ordering::SeqCst);
        match self.front.again(limit) {
            Ok(found) => m.reload(found),
            Err(e) => {
                log::error!("mbatchd ends: the log cannot be read again: {e}");
                return shell.exit(1);
            }
        }
        if let Some(log) = &self.log {
            log.order(Command::Rebuilt);
        }
        shell.input(Input::LogFailed { why });
    }

    fn stopping(&mut self, _m: &mut Mbatchd, _code: i32) {
        if let Some(log) = self.log.take() {
            log.stop();
        }
        self.stream.stop();
        let ends = self.shared.fatal.load(Ordering::SeqCst);
        if let Some(duplicate) = self.duplicate.take().filter(|_| !ends) {
            duplicate.stop();
        }
    }
}

/// Runs mbatchd until it ends; the exit code, or why it could not start.
pub fn run(boot: Boot) -> Result<i32, BootError> {
    let done = serve(boot).map_err(BootError);
    if let Err(e) = &done {
        log::error!("mbatchd does not start: {e}");
    }
    done
}

/// Has memory prepared that jobs will need; the heap of a static file can do so.
fn prepare_memory() {
    #[cfg(target_env = "musl")]
    if let Err(e) = crate::sys::heap::prepare_ahead() {
        log::warn!("memory is not prepared ahead: {e}");
    }
}

/// The machine with what recovery found.
fn machine(conf: ClusterConf, host: &str, found: Recovered) -> Mbatchd {
    let mbd = Mbatchd::new(conf, host, found).with_zone(crate::sys::zone());
    let mbd = mbd.with_pid(std::process::id());
    mbd.with_root_jobs(std::env::var_os(ROOT_JOBS).is_some())
}

fn serve(boot: Boot) -> Result<i32, String> {
    prepare_memory();
    let envdir = boot.site.envdir.clone();
    let (conf, diags) = conf::load_lenient(&RealFiles, &envdir, Some(&boot.host));
    diags.iter().for_each(|d| log::warn!("{d}"));
    let mut conf = conf.ok_or("the configuration cannot be read; see `badmin ckconfig -v`")?;
    let mut shell = boot.shell(Daemon::Mbatchd);
    let dir = conf.base.lsf.batch_logdir(&conf.base.name).ok_or("LSB_SHAREDIR is not defined")?;
    let (share, primary) = (PathBuf::from(dir), conf.base.primary_logdir(&boot.host));
    let dir = primary.as_ref().map_or(share.clone(), PathBuf::from);
    let here = |e: &dyn std::fmt::Display| format!("{}: {e}", dir.display());
    let top = Path::new(&envdir).parent().map(Path::to_path_buf);
    let top = top.filter(|_| conf.base.lsf.personal());
    make_parents(&dir, primary.is_some()).map_err(|e| here(&e))?;
    drop(RealDisk::open_dir(&dir).map_err(|e| here(&e))?);
    let Some(lock) = lock(&dir, shell.heartbeat.as_mut()).map_err(|e| here(&e))? else {
        log::info!("the event log is free: starting anew, with the configuration as it is now");
        return Ok(0);
    };
    let mut duplicate = None;
    if primary.is_some() {
        let fault = top.as_deref().map(|top| top.join("fault.share"));
        let me = this_run(&boot.host).map_err(|e| here(&e))?;
        let places = Places { primary: dir.clone(), share, fault, me };
        let interval = conf.batch.params.event_update_interval;
        duplicate = copied(places, interval, shell.heartbeat.as_mut()).map_err(|e| here(&e))?;
        if duplicate.is_none() {
            return Ok(0);
        }
    }
    let fault = top.as_deref().map(|top| top.join("fault"));
    let (host, primary) = (boot.host.clone(), primary.is_some());
    let place = LogPlace { dir: dir.clone(), fault, host, primary };
    let (begin, found) = match place.take() {
        Ok((store, found)) => (Begin::Open(Box::new(store)), found),
        Err(Untaken { why, full: true }) => {
            log::error!("the event log cannot be written: {why}; it is tried again");
            let found = place.read().map_err(|e| here(&e))?;
            (Begin::Full(place, why), found)
        }
        Err(e) => return Err(e.why),
    };
    let late = ask_groups(&mut conf);
    let members = GroupMembers::new();
    members.caller().fill(&mut conf, egroup::START_WAIT);
    let host = MbatchdDriver {
        envdir,
        begin: Some(begin),
        log: None,
        crash: crash_points(top.as_deref()),
        front: CommitQueue::new(RealDisk::existing_dir(&dir), found.epoch),
        replied: false,
        shared: Arc::default(),
        groups: None,
        late,
        members,
        mails: Mails::new(conf.base.lsf.mail_program()),
        control_actions: ControlActions::new(&conf.base.lsf.envdir),
        eadmin: Eadmin::new(&conf.base.lsf.envdir),
        reading: None,
        dir,
        duplicate,
        stream: EventStream::of(&conf),
        _lock: lock,
    };
    log::info!("the event log is in {}", host.dir.display());
    shell::run(shell, machine(conf, &boot.host, found), host).map_err(|e| e.to_string())
}

/// Takes the lock of the log. `None`: it had to be waited for, which is told once.
fn lock(dir: &Path, mut heartbeat: Option<&mut Heartbeat>) -> Result<Option<LogLock>, LockError> {
    let mut told = String::new();
    loop {
        match LogLock::take(dir) {
            Err(e @ LockError::Held { .. }) => {
                let text = format!("{}: {e}; waiting for it", dir.display());
                if text != told {
                    log::error!("{text}");
                    told = text;
                }
            }
            got => return got.map(|lock| Some(lock).filter(|_| told.is_empty())),
        }
        if let Some(heartbeat) = &mut heartbeat {
            heartbeat.turn(crate::sys::now().mono_us, None);
        }
        std::thread::sleep(LOCK_PAUSE);
    }
}

/// Asks the name service for the groups of the configuration; the words that it did not answer.
fn ask_groups(conf: &mut ClusterConf) -> Vec<String> {
    let (asked, groups) = groups::ask(&conf.unix.unknown, groups::START_WAIT);
    conf.unix.answered(&asked, groups);
    let mut late = conf.unix.unknown.clone();
    late.retain(|word| !asked.contains(word));
    late
}

/// Makes the directory above the log's, in LSB_LOCALDIR, which must be there.
fn make_parents(dir: &Path, primary: bool) -> std::io::Result<()> {
    let Some(cluster) = dir.parent().filter(|_| primary) else { return Ok(()) };
    match std::fs::create_dir(cluster) {
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// Starts the copying and waits for the shared directory; `None` to start anew.
fn copied(
    places: Places,
    interval: Option<u64>,
    heartbeat: Option<&mut Heartbeat>,
) -> std::io::Result<Option<Duplicate>> {
    let duplicate = Duplicate::start(places.clone(), interval)?;
    match duplicate.wait(&places, heartbeat)? {
        Waited::Ready => Ok(Some(duplicate)),
        Waited::Anew => {
            log::info!("the event log is free: starting anew, with the configuration as it is now");
            Ok(None)
        }
    }
}

/// This process as an owner of the copy.
fn this_run(host: &str) -> std::io::Result<Owner> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let run = format!("{:016x}", u64::from_le_bytes(crate::sys::random()?));
    let (host, boot) = (host.to_owned(), boot.trim().to_owned());
    Ok(Owner { host, boot, epoch: 0, run, process: process().unwrap_or_default() })
}

/// The facts that recovery needs of this process, and of the one that had the log before.
fn params(disk: &mut RealDisk, host: &str) -> std::io::Result<Params> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let run = u64::from_le_bytes(crate::sys::random()?);
    let before = Owner::read(disk)?;
    let process = process().unwrap_or_default();
    // this process may have claimed it before, and found no room then
    let ended = matches!(before, owner::Read::Is(o)
        if o.process == process && !process.is_empty() || process_ended(&o.process));
    Ok(Params {
        host: host.to_string(),
        boot: boot.trim().into(),
        now: crate::sys::now().secs(),
        run: format!("{run:016x}"),
        process,
        ended,
        least_epoch: 0,
        max_acct_at_start: MAX_AT_START,
    })
}

/// This process, to be known again: pid, start, and the namespace in which the pid means something.
fn process() -> Option<String> {
    let me = Proc::of(std::process::id())?;
    Some(format!("{} {} {}", me.pid, me.ticks, pid_namespace()?))
}

fn pid_namespace() -> Option<String> {
    std::fs::read_link("/proc/self/ns/pid").ok()?.into_os_string().into_string().ok()
}

/// Is it certain that a process of this boot has ended?
fn process_ended(text: &str) -> bool {
    let mut words = text.split(' ');
    let mut number = || words.next()?.parse::<u64>().ok();
    let (Some(pid), Some(ticks)) = (number(), number()) else { return false };
    let here = words.next().map(str::to_string) == pid_namespace();
    here && pid.try_into().is_ok_and(|pid| !Proc { pid, ticks }.alive())
}

/// `crash.at` of a personal cluster: read once, then removed.
fn crash_points(top: Option<&Path>) -> CrashPoints {
    let Some(path) = top.map(|t| t.join("crash.at")) else { return CrashPoints::default() };
    match std::fs::read_to_string(&path) {
        Ok(text) => {
            let _ = std::fs::remove_file(&path);
            CrashPoints::parse(text.trim())
        }
        Err(_) => CrashPoints::default(),
    }
}
