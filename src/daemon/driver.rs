//! The trait that a daemon implements for the shell (src/daemon/shell.rs), and the requests that it
//! and its threads can make to the shell.

use crate::auth::shake::AuthError;
use crate::conf::{HostTable, Member};
use crate::model::Now;
use crate::net::SharedHosts;
use crate::proto::held_replies::Tickets;
use crate::proto::machine::{ConnId, OWN};
use crate::proto::{Effect, Input, Machine, Msg};
use mio::unix::SourceFd;
use mio::{Interest, Token};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Arc;

/// Tokens of the driver's own descriptors lie from here up and below those of connections that
/// came in.
pub(super) const OWN_TOKEN: usize = OWN as usize;

/// The work of one daemon beyond the shell: its log, its processes, its configuration.
pub trait DaemonDriver {
    type M: Machine;
    /// Is the processor time of each turn measured?
    const MEASURED: bool = false;

    /// Before `Input::Start`: start threads here.
    fn start(&mut self, m: &mut Self::M, shell: &mut ShellControl) {
        let _ = (m, shell);
    }
    /// An effect that the shell does not carry out itself.
    fn effect(&mut self, m: &mut Self::M, eff: Effect, shell: &mut ShellControl);
    /// A descriptor that [`ShellControl::watch`] was asked for can be read or written.
    fn ready(&mut self, m: &mut Self::M, token: usize, shell: &mut ShellControl) {
        let _ = (m, token, shell);
    }
    /// May the machine do some of its long work now? Unsynced output of such work must not outgrow
    /// memory.
    fn takes_work(&self) -> bool {
        true
    }
    /// The processor time of a turn and of the wait before it, microseconds. Only sent with
    /// `MEASURED`.
    fn turned(&mut self, m: &mut Self::M, cpu_us: u64) {
        let _ = (m, cpu_us);
    }
    /// When a turn is wanted, whether anything happens or not, microseconds.
    fn deadline(&self) -> Option<u64> {
        None
    }
    /// Every effect of this turn has been carried out.
    fn end_of_turn(&mut self, m: &mut Self::M, shell: &mut ShellControl) {
        let _ = (m, shell);
    }
    /// A thread called [`Remote::wake`].
    fn woken(&mut self, m: &mut Self::M, shell: &mut ShellControl) {
        let _ = (m, shell);
    }
    /// All tickets up to this one are durable; their replies are on their way.
    fn durable(&mut self, m: &mut Self::M, ticket: u64, shell: &mut ShellControl) {
        let _ = (m, ticket, shell);
    }
    /// This ticket could not be made durable; its replies and those of later tickets are dropped.
    fn failed(&mut self, m: &mut Self::M, ticket: u64, why: String, shell: &mut ShellControl) {
        let _ = (m, ticket);
        shell.input(Input::LogFailed { why });
    }
    /// SIGTERM or SIGINT.
    fn terminate(&mut self, m: &mut Self::M, shell: &mut ShellControl) {
        let _ = m;
        shell.exit(0);
    }
    /// SIGHUP, after the log was reopened.
    fn hangup(&mut self, m: &mut Self::M, shell: &mut ShellControl) {
        let _ = (m, shell);
    }
    /// The hosts that have joined by themselves are exactly these; the shell knows them.
    fn members(&mut self, m: &mut Self::M, all: Vec<Member>, shell: &mut ShellControl) {
        let _ = (m, all, shell);
    }
    /// The loop ends with this code: finish the log, join threads.
    fn stopping(&mut self, m: &mut Self::M, code: i32) {
        let _ = (m, code);
    }
}

/// A driver with nothing of its own (lim's tests, authd): other effects are dropped with a notice.
pub struct NoDriver<M>(std::marker::PhantomData<M>);

impl<M> Default for NoDriver<M> {
    fn default() -> Self {
        NoDriver(std::marker::PhantomData)
    }
}

impl<M: Machine> DaemonDriver for NoDriver<M> {
    type M = M;
    fn effect(&mut self, _: &mut M, eff: Effect, _: &mut ShellControl) {
        log::warn!("no one here carries out an effect: {}", eff.name());
    }
}

/// The requests that a [`DaemonDriver`] can make to the shell while it is called.
pub struct ShellControl {
    /// The clocks at the start of the turn.
    pub now: Now,
    pub(super) inputs: std::collections::VecDeque<Input>,
    pub(super) sends: Vec<(ConnId, Msg)>,
    pub(super) exit: Option<i32>,
    pub(super) hosts: Option<SharedHosts>,
    pub(super) table: Option<HostTable>,
    pub(super) tickets: Tickets,
    pub(super) remote: Remote,
    pub(super) registry: mio::Registry,
}

impl ShellControl {
    /// Has [`DaemonDriver::ready`] called with this token, below 2^60, each time that the
    /// descriptor has become readable (writable); closing it ends that.
    pub fn watch(&mut self, fd: BorrowedFd<'_>, token: usize, write: bool) -> std::io::Result<()> {
        self.watch_for(fd, token, if write { Interest::WRITABLE } else { Interest::READABLE })
    }
    /// [`ShellControl::watch`] for reading and for writing.
    pub fn watch_both(&mut self, fd: BorrowedFd<'_>, token: usize) -> std::io::Result<()> {
        self.watch_for(fd, token, Interest::READABLE | Interest::WRITABLE)
    }
    fn watch_for(
        &mut self,
        fd: BorrowedFd<'_>,
        token: usize,
        interest: Interest,
    ) -> std::io::Result<()> {
        let (token, fd) = (Token(OWN_TOKEN + token), fd.as_raw_fd());
        let mut source = SourceFd(&fd);
        // one that is watched already gets another token
        let again = |_| self.registry.reregister(&mut SourceFd(&fd), token, interest);
        self.registry.register(&mut source, token, interest).or_else(again)
    }
    /// Gives the machine this input in the next turn, which follows at once.
    pub fn input(&mut self, input: Input) {
        self.inputs.push_back(input);
    }
    /// Whether the machine is to be given more.
    pub fn has_input(&self) -> bool {
        !self.inputs.is_empty()
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
    pub fn set_hosts(&mut self, hosts: SharedHosts) {
        self.hosts = Some(hosts);
    }
    /// A new table of host names and addresses of a cluster whose members come and go.
    pub fn set_table(&mut self, table: HostTable) {
        self.hosts = Some(Arc::new(table.clone()));
        self.table = Some(table);
    }
    /// Closes the current ticket and returns its number; `None` where nothing was appended
    /// since the last one.
    pub fn seal(&mut self) -> Option<u64> {
        self.tickets.seal()
    }
    /// Whether something was appended since the last [`ShellControl::seal`].
    pub fn dirty(&self) -> bool {
        self.tickets.dirty()
    }
    /// A handle for threads.
    pub fn remote(&self) -> Remote {
        self.remote.clone()
    }
}

/// Messages of threads to the loop.
#[derive(Debug)]
pub(super) enum LoopMessage {
    Input(Box<Input>),
    Durable(u64),
    Failed(u64, String),
    Wake,
    /// The result of checking the caller of a connection.
    Checked(ConnId, Result<u32, AuthError>),
}

/// A thread's way into the loop.
#[derive(Clone)]
pub struct Remote {
    pub(super) tx: std::sync::mpsc::Sender<LoopMessage>,
    pub(super) waker: Arc<mio::Waker>,
}

impl Remote {
    pub(super) fn tell(&self, told: LoopMessage) {
        if self.tx.send(told).is_ok()
            && let Err(e) = self.waker.wake()
        {
            log::error!("cannot wake the loop: {e}");
        }
    }
    /// An input for the machine.
    pub fn input(&self, input: Input) {
        self.tell(LoopMessage::Input(Box::new(input)));
    }
    /// Every ticket up to this one is durable.
    pub fn durable(&self, ticket: u64) {
        self.tell(LoopMessage::Durable(ticket));
    }
    /// This ticket cannot be made durable.
    pub fn failed(&self, ticket: u64, why: impl Into<String>) {
        self.tell(LoopMessage::Failed(ticket, why.into()));
    }
    /// Calls `DaemonDriver::woken`.
    pub fn wake(&self) {
        self.tell(LoopMessage::Wake);
    }
}
