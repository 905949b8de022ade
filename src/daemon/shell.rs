//! The real runner: drives one [`Machine`] over mio.
//!
//! **For those who wire a daemon.** Fill a [`ShellConfig`], write a [`DaemonDriver`]
//! (src/daemon/driver.rs) for the effects the shell does not carry out itself, call [`run`]; it
//! returns the exit code.
//!
//! One turn: poll; read what is ready, within budgets, each input going to `machine.step` at
//! once; `Input::Tick` if the machine's deadline has passed; carry out the effects in order;
//! `DaemonDriver::end_of_turn`; flush the connections.
//!
//! - The shell carries out `Send`, `SendDurable`, `Close`, `Connect`, `Datagram`, `Say` and `Exit`.
//!   All others (`Append`, `Spool`, `Account`, `Switch`, `LoadConfig`, `Sample`, `Os`, `SendBlob`)
//!   go to `DaemonDriver::effect`, in their order among the others. The driver answers through
//!   [`ShellControl`]: `shell.input(..)` is stepped in the next turn, which follows at once;
//!   `shell.send(..)` sends now (a blob).
//! - Threads of the driver speak to the loop through a [`Remote`] (`shell.remote()`, cloned): it
//!   can give inputs, report durability, or wake the loop for `DaemonDriver::woken`.
//! - **Group commit.** `Append` and `Spool` make the current ticket dirty. The driver gathers them.
//!   At the end of a turn, if no sync is under way, it calls `shell.seal()`, which returns the
//!   number of the ticket that covers all gathered so far (`None` where nothing was), and the
//!   driver hands the gathered records with it to its log thread. The thread reports
//!   `remote.durable(n)` (all tickets up to n) or `remote.failed(n, why)`. While a sync is under
//!   way the driver does not seal: the next turns gather under one ticket. `SendDurable` is held
//!   under the ticket that covers what was appended before it (none open: sent at once). After
//!   `durable(n)` the shell releases what is due, calls `DaemonDriver::durable` and then, as in
//!   every turn, `DaemonDriver::end_of_turn`, where the next ticket can be sealed. After `failed`
//!   it drops every held `SendDurable` (a command is told that the log cannot be written), forgets
//!   all open tickets and calls `DaemonDriver::failed`, which by default gives the machine
//!   `Input::LogFailed`.
//! - A message never overtakes another on its connection: behind a held one, later ones wait.
//!   `Close` lets held and queued output go first.
//! - `Effect::Close` is not answered by `Input::Closed`; every other end of a connection is.
//! - `Input::Drained` comes once the output of a connection is below a low-water mark after it
//!   was told a `Rows` with `more`, or after it had gone over the high-water mark.
//! - Work that takes longer than a turn may last is done in small units (`Machine::work`), for a
//!   share of each turn, as long as `DaemonDriver::takes_work`.
//! - `Exit` with code 0, and `ShellControl::exit(0)`, first let the log be written and the answers
//!   that wait for it leave, for [`LAST_SYNC`] at most; nothing is read meanwhile.
//! - SIGTERM and SIGINT call `DaemonDriver::terminate` (default: exit 0), SIGHUP reopens the log,
//!   reads the key file again and calls `DaemonDriver::hangup`. Signals are read from a signalfd:
//!   threads must be started after [`run`] has begun (in `DaemonDriver::start`), so that they
//!   inherit the blocked mask; children do not where `sys::child` starts them.

use super::driver::{DaemonDriver, LoopMessage, OWN_TOKEN, Remote, ShellControl};
use super::heartbeat::Heartbeat;
use super::held_work::HeldWork;
use super::logging::LogHandle;
use super::members::Follower;
use crate::auth::check::Checker;
use crate::auth::{KeyRing, Ways};
use crate::model::Now;
use crate::net::limits::{ROOM_QUIET_US, WORK_SHARE_US, WORK_TURN_US};
use crate::net::pool::{Listeners, Pool};
use crate::net::{Identity, SharedHosts, held_port, sock};
use crate::proto::held_replies::Tickets;
use crate::proto::machine::INCOMING;
use crate::proto::{Daemon, Effect, Input, Machine, Msg};
use crate::sys::raw::SignalFd;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

/// Longest time to flush answers when the daemon ends.
const LAST_FLUSH: Duration = Duration::from_millis(500);
/// Longest wait, when the daemon ends as it was asked to, for what was appended to be durable
/// and for the answers that rest on it.
pub const LAST_SYNC: Duration = Duration::from_secs(5);
/// Events taken from one poll.
const EVENTS: usize = 1024;
/// Messages of threads that one turn processes.
const TOLD_BUDGET: usize = 4096;
const WAKER: Token = Token(usize::MAX - 4);
const SIGNALS: Token = Token(usize::MAX - 5);

/// TCP (and for lim UDP) ports by daemon.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ports {
    pub lim: u16,
    pub res: u16,
    pub mbd: u16,
    pub sbd: u16,
    pub nlb: u16,
}

impl Ports {
    pub fn of(lsf: &crate::conf::LsfConf) -> Self {
        let (lim, res) = (lsf.lim_port(), lsf.res_port());
        let (mbd, sbd) = (lsf.mbd_port(), lsf.sbd_port());
        Ports { lim, res, mbd, sbd, nlb: lsf.nlb_port() }
    }

    /// 0 for the daemons that have none.
    pub fn port(&self, daemon: Daemon) -> u16 {
        match daemon {
            Daemon::Lim => self.lim,
            Daemon::Res => self.res,
            Daemon::Mbatchd => self.mbd,
            Daemon::Sbatchd => self.sbd,
            Daemon::NlbServer => self.nlb,
            Daemon::Launcher | Daemon::Authd | Daemon::Eauthd | Daemon::Eexecd => 0,
            Daemon::Ccollect | Daemon::Pam => 0,
        }
    }
}

/// A Unix socket to listen on; its peers are `Peer::Local`, its frames unsigned.
#[derive(Clone, Debug)]
pub struct UnixListen {
    pub path: PathBuf,
    /// Permission bits of the socket: 0o600 or 0o666.
    pub mode: u32,
}

/// The parameters of a daemon's connections. `Boot` (src/daemon/boot.rs) fills it from lsf.conf.
pub struct ShellConfig {
    pub daemon: Daemon,
    /// This host's canonical name.
    pub host: String,
    /// This host's own address: what is bound, for listening and for connecting.
    pub addr: Option<IpAddr>,
    /// Listen for TCP.
    pub tcp: bool,
    /// Listen for datagrams on the same port number.
    pub udp: bool,
    pub unix: Option<UnixListen>,
    pub ports: Ports,
    /// The keys; `None` in the launcher alone, which has neither TCP nor UDP.
    pub ring: Option<Arc<KeyRing>>,
    pub hosts: SharedHosts,
    /// `Endpoint::Launcher`.
    pub launcher_socket: PathBuf,
    /// A personal cluster: every other uid is refused.
    pub only_uid: Option<u32>,
    /// How users may prove who they are.
    pub ways: Ways,
    /// Read again at SIGHUP; a file that cannot be used leaves the old keys.
    pub key_file: Option<String>,
    /// Reopened at SIGHUP.
    pub log: Option<LogHandle>,
    /// Hosts that may join while this runs.
    pub members: Option<Follower>,
    /// The signs of life that the loop gives the launcher.
    pub heartbeat: Option<Heartbeat>,
    /// How long the systems of callers may be silent; `None`: without end.
    pub silence: Option<Duration>,
}

/// Runs a daemon until it exits; the code is the process's.
pub fn run<D: DaemonDriver>(cfg: ShellConfig, machine: D::M, driver: D) -> Result<i32, ShellError> {
    Shell::new(cfg, machine, driver)?.run()
}

struct Shell<D: DaemonDriver> {
    machine: D::M,
    driver: D,
    poll: Poll,
    pool: Pool,
    signals: SignalFd,
    key_file: Option<(String, String)>,
    log: Option<LogHandle>,
    told: Receiver<LoopMessage>,
    members: Option<Follower>,
    heartbeat: Option<Heartbeat>,
    shell: ShellControl,
    effects: Vec<Effect>,
    held_work: HeldWork,
    /// Processor time of this thread at the end of the last turn, microseconds.
    cpu_us: u64,
}

fn fail(what: &'static str) -> impl FnOnce(std::io::Error) -> ShellError {
    move |e| ShellError { what, why: crate::sys::words(&e) }
}

/// The signals a daemon answers.
const HEARD: [i32; 3] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP];

impl<D: DaemonDriver> Shell<D> {
    fn new(cfg: ShellConfig, machine: D::M, driver: D) -> Result<Self, ShellError> {
        let signals = SignalFd::new(&HEARD).map_err(fail("signals"))?;
        let poll = Poll::new().map_err(fail("poll"))?;
        let registry = poll.registry().try_clone().map_err(fail("poll"))?;
        let waker = Arc::new(mio::Waker::new(&registry, WAKER).map_err(fail("waker"))?);
        let mut source = SourceFd(&signals.fd());
        registry.register(&mut source, SIGNALS, Interest::READABLE).map_err(fail("signals"))?;
        let listen = listeners(&cfg)?;
        let key_file = cfg.key_file.map(|file| (file, cfg.host.clone()));
        let ident = Identity {
            daemon: cfg.daemon,
            host: cfg.host,
            addr: cfg.addr,
            uid: crate::sys::euid(),
            ring: cfg.ring,
            hosts: cfg.hosts,
            only_uid: cfg.only_uid,
            ways: cfg.ways,
        };
        let (tx, told) = std::sync::mpsc::channel();
        let remote = Remote { tx, waker };
        let ear = remote.clone();
        let tell = Arc::new(move |conn, found| ear.tell(LoopMessage::Checked(conn, found)));
        let checker = Checker::new(ident.ways.clone(), cfg.daemon.name(), tell);
        let ports = cfg.ports;
        let port_of = Box::new(move |daemon| ports.port(daemon));
        let mut pool = Pool::new(registry, ident, listen, cfg.launcher_socket, port_of, checker)
            .map_err(fail("poll"))?;
        pool.limit_silence(cfg.silence);
        let shell = ShellControl {
            now: crate::sys::now(),
            inputs: Default::default(),
            sends: Vec::new(),
            exit: None,
            hosts: None,
            table: None,
            tickets: Tickets::default(),
            remote,
            registry: poll.registry().try_clone().map_err(fail("poll"))?,
        };
        let (log, members, heartbeat) = (cfg.log, cfg.members, cfg.heartbeat);
        Ok(Shell {
            machine,
            driver,
            poll,
            pool,
            signals,
            key_file,
            log,
            told,
            members,
            heartbeat,
            shell,
            effects: Vec::new(),
            held_work: HeldWork::default(),
            cpu_us: 0,
        })
    }

    fn run(mut self) -> Result<i32, ShellError> {
        let mut events = Events::with_capacity(EVENTS);
        self.driver.start(&mut self.machine, &mut self.shell);
        self.shell.inputs.push_back(Input::Start);
        self.cpu_us = thread_cpu_us();
        loop {
            self.wait(&mut events)?;
            self.turn(&events);
            if let Some(code) = self.shell.exit {
                self.stop(code);
                return Ok(code);
            }
        }
    }

    /// Waits for the next thing to do.
    fn wait(&mut self, events: &mut Events) -> Result<(), ShellError> {
        let works = self.machine.has_work() && self.takes_work();
        let busy = works || self.pool.busy() || !self.shell.inputs.is_empty();
        let look = self.members.as_ref().map(|m| m.at);
        let sign = self.heartbeat.as_ref().map(|h| h.at);
        let own = self.driver.deadline();
        let until = [self.machine.deadline(), self.pool.deadline(), look, sign, own];
        let until = until.into_iter().flatten().min();
        let timeout = match until {
            _ if busy => Some(Duration::ZERO),
            Some(at) => {
                let now = crate::sys::now().mono_us;
                Some(Duration::from_micros(at.saturating_sub(now)))
            }
            None => None,
        };
        match self.poll.poll(events, timeout) {
            Err(e) if e.kind() != std::io::ErrorKind::Interrupted => Err(fail("poll")(e)),
            _ => Ok(()),
        }
    }

    fn turn(&mut self, events: &Events) {
        self.whole_turn(events);
        if D::MEASURED {
            // a call of the system: the end of one turn is the begin of the next
            let began = std::mem::replace(&mut self.cpu_us, thread_cpu_us());
            self.driver.turned(&mut self.machine, self.cpu_us.saturating_sub(began));
        }
    }

    fn whole_turn(&mut self, events: &Events) {
        self.shell.now = crate::sys::now();
        let now = self.shell.now;
        let (mut signalled, mut told) = (false, false);
        let own = OWN_TOKEN..INCOMING as usize;
        for event in events {
            match event.token() {
                SIGNALS => signalled = true,
                WAKER => told = true,
                Token(t) if own.contains(&t) => {
                    self.driver.ready(&mut self.machine, t - OWN_TOKEN, &mut self.shell);
                }
                token => self.pool.event(token, event),
            }
        }
        if signalled {
            self.signals();
        }
        if told {
            self.told();
        }
        if let Some((all, hosts)) = self.members.as_mut().and_then(|m| m.look(now.mono_us)) {
            self.pool.set_hosts(hosts);
            self.driver.members(&mut self.machine, all, &mut self.shell);
        }
        let Shell { machine, pool, shell, effects, .. } = self;
        for input in std::mem::take(&mut shell.inputs) {
            timed(machine, now, input, effects);
        }
        pool.work(now, &mut |input| deliver(machine, now, input, effects));
        if machine.deadline().is_some_and(|at| at <= now.mono_us) {
            timed(machine, now, Input::Tick, effects);
        }
        self.carry_out();
        self.works(now);
        self.driver.end_of_turn(&mut self.machine, &mut self.shell);
        self.after_host();
        self.pool.flush(now.mono_us);
        if let Some(heartbeat) = &mut self.heartbeat {
            let waits = self.shell.tickets.due().map(|_| self.shell.tickets.durable());
            heartbeat.turn(now.mono_us, waits);
        }
    }

    fn takes_work(&self) -> bool {
        self.held_work.goes_on() && self.driver.takes_work()
    }

    /// Carries out some of the machine's long work: a share of the turn, and more of it while no
    /// messages come.
    fn works(&mut self, now: Now) {
        let quiet = now.mono_us > self.pool.heard_at() + ROOM_QUIET_US;
        let until = crate::sys::now().mono_us + if quiet { WORK_TURN_US } else { WORK_SHARE_US };
        while self.machine.has_work() && self.takes_work() {
            self.machine.work(now, &mut self.effects);
            let durable = |effect: &&Effect| matches!(effect, Effect::SendDurable { .. });
            let sent = self.effects.iter().filter(durable).count();
            self.carry_out();
            self.held_work.sent(sent, self.shell.tickets.due().is_some());
            if crate::sys::now().mono_us >= until {
                return;
            }
        }
    }

    fn signals(&mut self) {
        while let Ok(Some(signal)) = self.signals.take() {
            if signal == libc::SIGHUP {
                self.reopen();
                self.driver.hangup(&mut self.machine, &mut self.shell);
            } else {
                log::info!("ended by signal {signal}");
                self.driver.terminate(&mut self.machine, &mut self.shell);
            }
        }
        self.after_host();
    }

    /// Opens the log and reads the keys anew.
    fn reopen(&mut self) {
        if let Some(log) = &self.log {
            log.reopen();
        }
        if let Some((file, host)) = &self.key_file {
            match KeyRing::load(file, host, crate::sys::euid()) {
                Ok(ring) => self.pool.set_ring(Arc::new(ring)),
                Err(e) => log::error!("the old keys stay: {e}"),
            }
        }
    }

    /// Processes the messages of threads.
    fn told(&mut self) {
        for n in 0.. {
            if n == TOLD_BUDGET {
                // The rest comes in the next turn.
                self.shell.remote.wake();
                break;
            }
            let Ok(told) = self.told.try_recv() else { break };
            let Shell { driver, machine, shell, pool, held_work, .. } = self;
            match told {
                LoopMessage::Input(input) => shell.inputs.push_back(*input),
                LoopMessage::Wake => driver.woken(machine, shell),
                LoopMessage::Checked(conn, found) => pool.checked(conn, found),
                LoopMessage::Durable(ticket) => {
                    held_work.synced();
                    pool.release(shell.tickets.release(ticket));
                    driver.durable(machine, ticket, shell);
                }
                LoopMessage::Failed(ticket, why) => {
                    held_work.synced();
                    pool.void();
                    shell.tickets.void();
                    driver.failed(machine, ticket, why, shell);
                }
            }
        }
        self.after_host();
    }

    fn carry_out(&mut self) {
        let mut effects = std::mem::take(&mut self.effects);
        for effect in effects.drain(..) {
            self.effect(effect);
        }
        self.effects = effects;
    }

    fn effect(&mut self, effect: Effect) {
        let now = self.shell.now;
        match effect {
            Effect::Send { conn, msg } => self.pool.send(conn, msg),
            Effect::SendDurable { conn, msg } => match self.shell.tickets.due() {
                Some(ticket) => self.pool.hold(conn, ticket, msg),
                None => self.pool.send(conn, msg),
            },
            Effect::Close { conn } => self.pool.close(conn),
            Effect::Connect { conn, to } => self.pool.connect(conn, to, now.mono_us),
            Effect::Datagram { to, msg } => self.pool.datagram(&to, &msg, now.wall_us),
            Effect::Reply { addr, to, msg } => {
                self.pool.datagram_at(addr, &to, &msg, now.wall_us);
            }
            Effect::Say { level, text } => log::log!(level, "{text}"),
            Effect::Logging(set) => super::logging::set(&set),
            Effect::Aside { file, text } => super::logging::note(&file, &text),
            Effect::Exit { code } => self.shell.exit(code),
            other => {
                if matches!(other, Effect::Append(_) | Effect::Spool { .. }) {
                    self.shell.tickets.touch();
                }
                self.driver.effect(&mut self.machine, other, &mut self.shell);
                self.after_host();
            }
        }
    }

    /// Does what the driver asked for.
    fn after_host(&mut self) {
        for (conn, msg) in self.shell.sends.drain(..) {
            self.pool.send(conn, msg);
        }
        if let (Some(members), Some(table)) = (&mut self.members, self.shell.table.take()) {
            members.rebase(table);
        }
        if let Some(hosts) = self.shell.hosts.take() {
            self.pool.set_hosts(hosts);
        }
    }

    /// An end that was asked for owes an answer to all that was accepted before: nothing new is
    /// read, the log is written to its end, and what waited for that goes out.
    fn settle(&mut self) {
        let until = Instant::now() + LAST_SYNC;
        loop {
            self.driver.end_of_turn(&mut self.machine, &mut self.shell);
            self.after_host();
            self.pool.flush(self.shell.now.mono_us);
            if self.shell.tickets.due().is_none() {
                return;
            }
            let left = until.saturating_duration_since(Instant::now());
            match self.told.recv_timeout(left) {
                Ok(LoopMessage::Durable(ticket)) => {
                    self.pool.release(self.shell.tickets.release(ticket));
                    self.driver.durable(&mut self.machine, ticket, &mut self.shell);
                }
                Ok(LoopMessage::Failed(..)) => {
                    self.pool.void();
                    self.shell.tickets.void();
                    return;
                }
                Ok(_) => {}
                Err(_) => {
                    log::error!("the log was not written within {LAST_SYNC:?}: answers are lost");
                    return;
                }
            }
        }
    }

    /// The end of the loop: durable replies are released, queued output is written.
    fn stop(&mut self, code: i32) {
        if code == 0 {
            self.settle();
        }
        self.driver.stopping(&mut self.machine, code);
        while let Ok(told) = self.told.try_recv() {
            match told {
                LoopMessage::Durable(ticket) => self.pool.release(ticket),
                LoopMessage::Failed(..) => self.pool.void(),
                _ => {}
            }
        }
        let until = Instant::now() + LAST_FLUSH;
        loop {
            self.pool.flush_all(self.shell.now.mono_us);
            if self.pool.unsent() == 0 || Instant::now() >= until {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Processor time of this thread, microseconds.
fn thread_cpu_us() -> u64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    u64::try_from(t.tv_sec).unwrap_or(0) * 1_000_000 + u64::try_from(t.tv_nsec).unwrap_or(0) / 1000
}

/// Hands the machine what came over the network. A `Ping` is answered here for every machine, after
/// all that the machine has sent before: who asks whether a daemon is done with something, as
/// `bsub -I` does, relies on that order.
fn deliver<M: Machine>(machine: &mut M, now: Now, input: Input, out: &mut Vec<Effect>) {
    match input {
        Input::Msg { conn, msg: Msg::Ping { n } } => {
            out.push(Effect::Send { conn, msg: Msg::Pong { n } });
        }
        input => timed(machine, now, input, out),
    }
}

/// One step of the machine; its duration is logged on request.
fn timed<M: Machine>(machine: &mut M, now: Now, input: Input, out: &mut Vec<Effect>) {
    let Some(from) = super::logging::timing() else { return machine.step(now, input, out) };
    let (what, began) = (input.name(), Instant::now());
    machine.step(now, input, out);
    let took = began.elapsed();
    if took >= from {
        log::warn!("timing: {what}: {} us", took.as_micros());
    }
}

fn listeners(cfg: &ShellConfig) -> Result<Listeners, ShellError> {
    let mut out = Listeners::default();
    if cfg.tcp || cfg.udp {
        let addr = cfg.addr.ok_or(ShellError {
            what: "listen",
            why: format!("host {} has no known address", cfg.host),
        })?;
        if cfg.ring.is_none() {
            return Err(ShellError { what: "listen", why: "no cluster key".into() });
        }
        let at = SocketAddr::new(addr, cfg.ports.port(cfg.daemon));
        let fail = |e: std::io::Error| {
            let why = format!("{at}: {}", crate::sys::words(&e));
            ShellError { what: "listen", why }
        };
        out.tcp = cfg.tcp.then(|| held_port::listen_as_given(at).map_err(fail)).transpose()?;
        out.udp = cfg.udp.then(|| held_port::datagrams_as_given(at).map_err(fail)).transpose()?;
    }
    if let Some(unix) = &cfg.unix {
        let made = sock::listen_unix(&unix.path, unix.mode).map_err(|e| {
            let why = format!("{}: {}", unix.path.display(), crate::sys::words(&e));
            ShellError { what: "listen", why }
        });
        out.unix = Some(made?);
    }
    Ok(out)
}

/// Why a daemon could not start its loop.
#[derive(Debug)]
pub struct ShellError {
    /// The attempted operation.
    pub what: &'static str,
    pub why: String,
}

impl std::fmt::Display for ShellError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.what, self.why)
    }
}
impl std::error::Error for ShellError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::Refusal;

    /// Sends one message for each input.
    struct Sends;

    impl Machine for Sends {
        fn step(&mut self, _: Now, input: Input, out: &mut Vec<Effect>) {
            assert!(!matches!(input, Input::Msg { msg: Msg::Ping { .. }, .. }));
            out.push(Effect::Send { conn: 7, msg: Msg::Refused(Refusal::new(1)) });
        }

        fn deadline(&self) -> Option<u64> {
            None
        }
    }

    #[test]
    fn ping_is_answered_after_what_the_machine_has_sent_before() {
        let (now, mut out) = (Now { mono_us: 0, wall_us: 0 }, Vec::new());
        timed(&mut Sends, now, Input::Tick, &mut out);
        deliver(&mut Sends, now, Input::Msg { conn: 7, msg: Msg::Ping { n: 3 } }, &mut out);
        deliver(&mut Sends, now, Input::Closed { conn: 8 }, &mut out);
        let sent = out.iter().map(|effect| match effect {
            Effect::Send { conn: 7, msg: Msg::Pong { n } } => *n,
            _ => 0,
        });
        assert_eq!(sent.collect::<Vec<_>>(), [0, 3, 0]);
    }
}
