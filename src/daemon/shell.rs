//! The real runner: drives one [`Machine`] over mio (design §2, §4, §5).
//!
//! **For those who wire a daemon.** Fill a [`ShellConfig`], write a [`Host`] for the effects
//! the shell does not carry out itself, call [`run`]; it returns the exit code.
//!
//! One turn: poll; read what is ready, within budgets, each input going to `machine.step` at
//! once; `Input::Tick` if the machine's deadline has passed; carry out the effects in order;
//! `Host::end_of_turn`; flush the connections.
//!
//! - The shell carries out `Send`, `SendDurable`, `Close`, `Connect`, `Datagram`, `Say` and
//!   `Exit`. All others (`Append`, `Spool`, `Account`, `Switch`, `LoadConfig`, `Sample`, `Os`,
//!   `SendBlob`) go to `Host::effect`, in their order among the others. The host answers through
//!   [`Ctl`]: `ctl.input(..)` is stepped in the next turn, which follows at once; `ctl.send(..)`
//!   sends now (a blob).
//! - Threads of the host speak to the loop through a [`Remote`] (`ctl.remote()`, cloned): it can
//!   give inputs, report durability, or wake the loop for `Host::woken`.
//! - **Group commit.** `Append` and `Spool` make the current ticket dirty. The host gathers
//!   them. At the end of a turn, if no sync is under way, it calls `ctl.seal()`; that returns the
//!   number of the ticket that covers all gathered so far (`None` where nothing was), and the
//!   host hands the gathered records with it to its log thread. The thread reports
//!   `remote.durable(n)` (all tickets up to n) or `remote.failed(n, why)`. While a sync is under
//!   way the host does not seal: the next turns gather under one ticket. `SendDurable` is held
//!   under the ticket that covers what was appended before it (none open: sent at once).
//!   After `durable(n)` the shell releases what is due, calls `Host::durable` and then, as in
//!   every turn, `Host::end_of_turn`, where the next ticket can be sealed. After `failed` it drops
//!   every held `SendDurable`, forgets all open tickets and calls `Host::failed`, which by
//!   default gives the machine `Input::LogFailed`.
//! - A message never overtakes another on its connection: behind a held one, later ones wait.
//!   `Close` lets held and queued output go first.
//! - `Effect::Close` is not answered by `Input::Closed`; every other end of a connection is.
//! - `Input::Drained` comes once the output of a connection is below a low-water mark after it
//!   was told a `Rows` with `more`, or after it had gone over the high-water mark.
//! - SIGTERM and SIGINT call `Host::terminate` (default: exit 0), SIGHUP reopens the log and calls
//!   `Host::hangup`. They are read from a signalfd: threads must be started after [`run`] has
//!   begun (in `Host::start`), so that they inherit the blocked mask; `std::process::Command`
//!   clears it in children.

use crate::auth::{HostLookup, KeyRing};
use crate::model::Now;
use crate::proto::machine::ConnId;
use crate::proto::{Daemon, Effect, Input, Machine, Msg};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// TCP (and for lim UDP) ports by daemon.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ports {
    pub lim: u16,
    pub res: u16,
    pub mbd: u16,
    pub sbd: u16,
}

/// A Unix socket to listen on; its peers are `Peer::Local`, its frames unsigned.
#[derive(Clone, Debug)]
pub struct UnixListen {
    pub path: PathBuf,
    /// Permission bits of the socket: 0o600 or 0o666.
    pub mode: u32,
}

/// What a daemon's connections need to know. `Boot` (src/daemon/boot.rs) fills it from lsf.conf.
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
    /// None only where there is neither TCP nor UDP (launcher).
    pub ring: Option<Arc<KeyRing>>,
    pub hosts: Arc<dyn HostLookup + Send + Sync>,
    /// `Endpoint::Launcher`.
    pub launcher_socket: PathBuf,
    /// A personal cluster: every other uid is refused.
    pub only_uid: Option<u32>,
}

/// What one daemon does beyond the shell: its log, its processes, its configuration.
pub trait Host {
    type M: Machine;

    /// Before `Input::Start`: start threads here.
    fn start(&mut self, m: &mut Self::M, ctl: &mut Ctl) {
        let _ = (m, ctl);
    }
    /// An effect that the shell does not carry out itself.
    fn effect(&mut self, m: &mut Self::M, eff: Effect, ctl: &mut Ctl);
    /// Every effect of this turn has been carried out.
    fn end_of_turn(&mut self, m: &mut Self::M, ctl: &mut Ctl) {
        let _ = (m, ctl);
    }
    /// Somebody called [`Remote::wake`].
    fn woken(&mut self, m: &mut Self::M, ctl: &mut Ctl) {
        let _ = (m, ctl);
    }
    /// All tickets up to this one are durable; what they held is on its way.
    fn durable(&mut self, m: &mut Self::M, ticket: u64, ctl: &mut Ctl) {
        let _ = (m, ticket, ctl);
    }
    /// This ticket could not be made durable; what it and later ones held is dropped.
    fn failed(&mut self, m: &mut Self::M, ticket: u64, why: String, ctl: &mut Ctl) {
        let _ = (m, ticket);
        ctl.input(Input::LogFailed { why });
    }
    /// SIGTERM or SIGINT.
    fn terminate(&mut self, m: &mut Self::M, ctl: &mut Ctl) {
        let _ = m;
        ctl.exit(0);
    }
    /// SIGHUP, after the log was reopened.
    fn hangup(&mut self, m: &mut Self::M, ctl: &mut Ctl) {
        let _ = (m, ctl);
    }
    /// The loop ends with this code: finish the log, join threads.
    fn stopping(&mut self, m: &mut Self::M, code: i32) {
        let _ = (m, code);
    }
}

/// A host with nothing of its own (lim's tests, authd): other effects are dropped with a notice.
pub struct NoHost<M>(std::marker::PhantomData<M>);

impl<M> Default for NoHost<M> {
    fn default() -> Self {
        NoHost(std::marker::PhantomData)
    }
}

impl<M: Machine> Host for NoHost<M> {
    type M = M;
    fn effect(&mut self, _: &mut M, eff: Effect, _: &mut Ctl) {
        log::warn!("no one here carries out {eff:?}");
    }
}

/// What a [`Host`] can ask of the shell while it is called.
pub struct Ctl {
    /// The clocks at the start of the turn.
    pub now: Now,
    pub(super) inputs: std::collections::VecDeque<Input>,
    pub(super) sends: Vec<(ConnId, Msg)>,
    pub(super) exit: Option<i32>,
    pub(super) hosts: Option<Arc<dyn HostLookup + Send + Sync>>,
    pub(super) tickets: Tickets,
    pub(super) remote: Remote,
}

impl Ctl {
    /// Gives the machine this input in the next turn, which follows at once.
    pub fn input(&mut self, input: Input) {
        self.inputs.push_back(input);
    }
    /// Sends as `Effect::Send` does.
    pub fn send(&mut self, conn: ConnId, msg: Msg) {
        self.sends.push((conn, msg));
    }
    /// Ends the loop after this turn.
    pub fn exit(&mut self, code: i32) {
        self.exit.get_or_insert(code);
    }
    /// A new table of host names and addresses (after a reconfiguration).
    pub fn set_hosts(&mut self, hosts: Arc<dyn HostLookup + Send + Sync>) {
        self.hosts = Some(hosts);
    }
    /// Closes the current ticket and returns its number; `None` where nothing was appended
    /// since the last one.
    pub fn seal(&mut self) -> Option<u64> {
        self.tickets.seal()
    }
    /// Whether something was appended since the last [`Ctl::seal`].
    pub fn dirty(&self) -> bool {
        self.tickets.dirty
    }
    /// A handle for threads.
    pub fn remote(&self) -> Remote {
        self.remote.clone()
    }
}

/// Which appends belong together, and how far the log is durable.
#[derive(Debug)]
pub struct Tickets {
    pub(super) current: u64,
    pub(super) durable: u64,
    pub(super) dirty: bool,
}

impl Default for Tickets {
    fn default() -> Self {
        Tickets { current: 1, durable: 0, dirty: false }
    }
}

impl Tickets {
    fn seal(&mut self) -> Option<u64> {
        if !self.dirty {
            return None;
        }
        self.dirty = false;
        self.current += 1;
        Some(self.current - 1)
    }
}

/// What threads tell the loop.
#[derive(Debug)]
pub(super) enum Told {
    Input(Box<Input>),
    Durable(u64),
    Failed(u64, String),
    Wake,
}

/// A thread's way into the loop.
#[derive(Clone)]
pub struct Remote {
    pub(super) tx: std::sync::mpsc::Sender<Told>,
    pub(super) waker: Arc<mio::Waker>,
}

impl Remote {
    fn tell(&self, told: Told) {
        if self.tx.send(told).is_ok()
            && let Err(e) = self.waker.wake()
        {
            log::error!("cannot wake the loop: {e}");
        }
    }
    /// An input for the machine.
    pub fn input(&self, input: Input) {
        self.tell(Told::Input(Box::new(input)));
    }
    /// Every ticket up to this one is durable.
    pub fn durable(&self, ticket: u64) {
        self.tell(Told::Durable(ticket));
    }
    /// This ticket cannot be made durable.
    pub fn failed(&self, ticket: u64, why: impl Into<String>) {
        self.tell(Told::Failed(ticket, why.into()));
    }
    /// Calls `Host::woken`.
    pub fn wake(&self) {
        self.tell(Told::Wake);
    }
}

/// Runs a daemon until it exits; the code is the process's.
pub fn run<H: Host>(cfg: ShellConfig, machine: H::M, host: H) -> Result<i32, ShellError> {
    let _ = (cfg, machine, host);
    Err(ShellError { what: "shell", why: "not finished".into() })
}

/// Why a daemon could not start its loop.
#[derive(Debug)]
pub struct ShellError {
    /// What was attempted.
    pub what: &'static str,
    pub why: String,
}

impl std::fmt::Display for ShellError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.what, self.why)
    }
}
impl std::error::Error for ShellError {}
