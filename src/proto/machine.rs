//! The contract between a daemon's machine and the two runners: the machine is `step(now, input) ->
//! effects` plus the next deadline it wants; it has no clock, socket, file or environment. A runner
//! carries the effects out in the order given.

use super::daemon::Daemon;
use super::launch::{OsEffect, OsInput};
use super::lim::LoadSample;
use super::msg::Msg;
use super::nlb::{NlbEffect, NlbInput};
use super::res::{TaskNews, TaskOp};
use crate::conf::UnixGroup;
use crate::conf::external_groups::ExternalGroup;
use crate::conf::{ClusterConf, Diag, Member};
use crate::model::event::{ElementRange, Finish, Record, ResizeAccount};
use crate::model::exception::Exceptions;
use crate::model::job::SpoolRef;
use crate::model::reservation::ReservationFinish;
use crate::model::{ByteStr, Now};
use std::fmt;
use std::net::IpAddr;

/// Names a connection within one daemon. The runner numbers the incoming ones from
/// [`INCOMING`] up; the machine chooses the numbers of those it opens below [`OWN`].
pub type ConnId = u64;

/// First number of the host's own descriptors, which are below [`INCOMING`]: the numbers that
/// machines choose are below this one.
pub const OWN: ConnId = 1 << 61;

/// First number of incoming connections.
pub const INCOMING: ConnId = 1 << 62;

/// The authenticated peer of a connection, never the claimed one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A user's command on a host of the cluster.
    User { uid: u32, gid: u32, user: String, host: String },
    /// A daemon that holds the cluster key, on a host of the cluster.
    Daemon { daemon: Daemon, host: String },
    /// A process on this host over a Unix socket, known by SO_PEERCRED.
    Local { uid: u32, pid: u32 },
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Peer::User { user, uid, host, .. } => write!(f, "user <{user}> ({uid}) of <{host}>"),
            Peer::Daemon { daemon, host } => write!(f, "{} of <{host}>", daemon.name()),
            Peer::Local { uid, pid } => write!(f, "process {pid} of uid {uid}"),
        }
    }
}

/// The peer of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    Tcp {
        host: String,
        daemon: Daemon,
    },
    /// A server of the load balancer, whose port NLB_SERVER says.
    Nlb {
        host: String,
        port: u16,
    },
    /// This host's launcher.
    Launcher,
}

/// The inputs of a machine.
#[derive(Debug)]
pub enum Input {
    /// The process is up, the state (if any) is recovered.
    Start,
    /// The deadline it asked for has come (early and spurious ticks are harmless).
    Tick,
    /// A connection is authenticated and usable.
    Opened {
        conn: ConnId,
        peer: Peer,
    },
    /// A connection it asked for could not be made.
    ConnectFailed {
        conn: ConnId,
        why: String,
        /// The host answers, but no process listens on the port.
        refused: bool,
    },
    Closed {
        conn: ConnId,
    },
    /// The output of a connection has room again: the next slice of a listing may be sent.
    Drained {
        conn: ConnId,
    },
    Msg {
        conn: ConnId,
        msg: Msg,
    },
    /// An authenticated datagram (lim).
    Datagram {
        from: String,
        msg: Msg,
    },
    /// The answer to [`Effect::LoadConfig`]: the new configuration, or `None` where there are
    /// errors; all diagnostics either way.
    Config {
        conf: Option<Box<ClusterConf>>,
        diags: Vec<Diag>,
    },
    /// The answer to [`Effect::DefineQueues`]: the result in words, or why nothing is changed.
    QueuesDefined {
        conn: ConnId,
        told: Result<String, Vec<String>>,
    },
    /// The name service on the words in `unix.unknown` of the configuration (mbatchd).
    Groups {
        asked: Vec<String>,
        found: Vec<UnixGroup>,
    },
    /// Other members of groups of the configuration that egroup names (mbatchd).
    ExternalGroups {
        groups: Vec<(ExternalGroup, Vec<String>)>,
    },
    /// The site has no eadmin that could be told of these exceptions (mbatchd).
    NoEadmin {
        all: Box<Exceptions>,
    },
    /// The log could not be written: every record since the last durable one is void, and the
    /// runner has put the machine's state back to what the log holds (mbatchd).
    LogFailed {
        why: String,
    },
    /// The log can be written again (mbatchd).
    LogBack,
    /// The switch asked for is complete (mbatchd).
    Switched {
        ok: bool,
    },
    /// The answer to [`Effect::Recall`], and at the start the text kept for this host alone; empty
    /// where there is none (lim).
    Kept {
        what: LockRecord,
        text: String,
    },
    /// The hosts that have joined by themselves (lim).
    Members(Vec<Member>),
    /// The answer to [`Effect::Sample`] (lim).
    Sample(Box<LoadSample>),
    /// A report of this host's melim (lim).
    External(String),
    /// A report of the operating system (launcher).
    Os(OsInput),
    /// The result for a task's descriptors (res).
    Task {
        n: u64,
        news: TaskNews,
    },
    /// The result for a file of the load balancer (nlbserver).
    Nlb(NlbInput),
}

/// Data that outlives a LIM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockRecord {
    /// The lock of this host by its administrator; kept on the host.
    Lock,
    /// The hosts that the master's administrator has locked; kept for the next master.
    Locks,
}

impl Input {
    /// The kind of input, for a log.
    pub fn name(&self) -> &'static str {
        match self {
            Input::Start => "start",
            Input::Tick => "tick",
            Input::Opened { .. } => "connection opened",
            Input::ConnectFailed { .. } => "connection failed",
            Input::Closed { .. } => "connection closed",
            Input::Drained { .. } => "next slice",
            Input::Msg { .. } => "message",
            Input::Datagram { .. } => "datagram",
            Input::Config { .. } | Input::QueuesDefined { .. } => "configuration",
            Input::Groups { .. } | Input::ExternalGroups { .. } => "groups",
            Input::NoEadmin { .. } => "exceptions",
            Input::LogFailed { .. } | Input::LogBack | Input::Switched { .. } => "log",
            Input::Kept { .. } | Input::Members(_) => "kept",
            Input::Sample(_) => "sample",
            Input::External(_) => "elim report",
            Input::Os(_) => "system",
            Input::Task { .. } => "task",
            Input::Nlb(_) => "file",
        }
    }
}

/// When lsb.acct becomes lsb.acct.1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AcctArchive {
    /// Due where the file has more bytes.
    pub larger_than: Option<u64>,
    /// Due where the first record is from before this second.
    pub begun_before: Option<i64>,
    /// The number of archives that are kept; `None`: all are.
    pub keep: Option<u32>,
}

/// The effects that a machine orders.
#[derive(Debug)]
pub enum Effect {
    /// Send at once.
    Send {
        conn: ConnId,
        msg: Msg,
    },
    /// Send when every record appended before this effect is durable; dropped if that fails.
    SendDurable {
        conn: ConnId,
        msg: Msg,
    },
    /// Send the spooled bytes at `at` as `SbdMsg::Blob`.
    SendBlob {
        conn: ConnId,
        at: SpoolRef,
    },
    /// Flush what is queued, then close.
    Close {
        conn: ConnId,
    },
    Connect {
        conn: ConnId,
        to: Endpoint,
    },
    /// Append to lsb.events (mbatchd).
    Append(Box<Record>),
    /// Append exact bytes to the spool; `at` is where they will lie (mbatchd). Durable together
    /// with the records appended in the same turn.
    Spool {
        at: SpoolRef,
        data: ByteStr,
    },
    /// Append to lsb.acct, after the records before it are durable (mbatchd).
    Account(Box<Finish>),
    /// Append a record to lsb.acct for each of these elements of an array, which have ended alike
    /// (mbatchd).
    AccountElements(Box<Finish>, Vec<ElementRange>),
    /// Append the record of a change of slots to lsb.acct, as `Account` does (mbatchd).
    AccountResize(Box<ResizeAccount>),
    /// Append the record of a period of a reservation to lsb.acct, as `Account` does (mbatchd).
    AccountReservation(Box<ReservationFinish>),
    /// Switch lsb.events: keep the records of these jobs (sorted), begin spool file `spool`,
    /// remove spool files below `oldest_spool` (mbatchd).
    Switch {
        live: Vec<u32>,
        head: Vec<Record>,
        spool: u32,
        oldest_spool: u32,
    },
    /// Archive lsb.acct, where this is due (mbatchd).
    ArchiveAcct(AcctArchive),
    /// Read the configuration again; answered by [`Input::Config`].
    LoadConfig,
    /// The new log settings.
    Logging(super::logging::Logging),
    /// Append this to a file of its own, as far as that can be done.
    Aside {
        file: String,
        text: String,
    },
    /// Send an unacknowledged datagram (lim).
    Datagram {
        to: String,
        msg: Msg,
    },
    /// Send an unacknowledged datagram to an address that no host of the cluster has (lim).
    Reply {
        addr: IpAddr,
        to: String,
        msg: Msg,
    },
    /// Keep this text for the next LIM (lim).
    Keep {
        what: LockRecord,
        text: String,
    },
    /// Read what was kept (lim).
    Recall(LockRecord),
    /// Keep the hosts that have joined, and know their names (lim).
    Members(Vec<Member>),
    /// Measure this host; answered by [`Input::Sample`] (lim).
    Sample,
    /// Run melim for these resources, anew where one runs; none: no melim (lim).
    Melim {
        resources: Vec<String>,
        master: bool,
    },
    /// Processes and journal (launcher).
    Os(OsEffect),
    /// The descriptors of a task (res).
    Task {
        n: u64,
        op: TaskOp,
    },
    /// Files of the load balancer (nlbserver).
    Nlb(NlbEffect),
    /// Change what lsb.nqs defines by a command of qmgr, and read the configuration with it;
    /// answered by [`Input::Config`] where it is good, and by [`Input::QueuesDefined`] (mbatchd).
    DefineQueues {
        conn: ConnId,
        command: String,
        /// The change may have been made before, by the same command.
        again: bool,
    },
    /// Mail a text that begins with its head to a user, once the records appended before are
    /// durable (mbatchd).
    Mail {
        to: String,
        text: String,
    },
    /// Run the CONTROL_ACTION of a service class that misses a goal (mbatchd).
    ControlAction {
        class: String,
        command: String,
    },
    /// Tell the site's eadmin, at this path, of exceptional hosts or jobs; where it is missing,
    /// [`Input::NoEadmin`] is the answer (mbatchd).
    Exceptions {
        program: String,
        all: Box<Exceptions>,
    },
    /// A line for the daemon's log.
    Say {
        level: log::Level,
        text: String,
    },
    /// End the process with this exit code after flushing.
    Exit {
        code: i32,
    },
}

impl Effect {
    /// The kind of effect, for a daemon's log.
    pub fn name(&self) -> &'static str {
        match self {
            Effect::Send { .. } => "send",
            Effect::SendDurable { .. } => "send when durable",
            Effect::SendBlob { .. } => "send spooled bytes",
            Effect::Close { .. } => "close",
            Effect::Connect { .. } => "connect",
            Effect::Append(_) => "append",
            Effect::Spool { .. } => "spool",
            Effect::Account(_) => "account",
            Effect::AccountElements(..) => "account elements",
            Effect::AccountResize(_) => "account a resize",
            Effect::AccountReservation(_) => "account a reservation",
            Effect::Switch { .. } => "switch",
            Effect::ArchiveAcct(_) => "archive the accounts",
            Effect::LoadConfig => "read the configuration",
            Effect::Datagram { .. } => "send a datagram",
            Effect::Reply { .. } => "answer a stranger",
            Effect::Keep { .. } => "keep",
            Effect::Recall(_) => "recall",
            Effect::Members(_) => "keep the hosts that joined",
            Effect::Sample => "measure",
            Effect::Logging(_) => "log more",
            Effect::Aside { .. } => "note",
            Effect::Melim { .. } => "run melim",
            Effect::Os(_) => "processes",
            Effect::Task { .. } => "descriptors",
            Effect::Nlb(_) => "files of the load balancer",
            Effect::DefineQueues { .. } => "define queues",
            Effect::Mail { .. } => "mail",
            Effect::ControlAction { .. } => "run a control action",
            Effect::Exceptions { .. } => "call eadmin",
            Effect::Say { .. } => "say",
            Effect::Exit { .. } => "exit",
        }
    }
}

/// A daemon's logic.
pub trait Machine {
    /// Takes one input and appends the resulting effects.
    fn step(&mut self, now: Now, input: Input, out: &mut Vec<Effect>);
    /// The monotonic instant (microseconds) it wants a [`Input::Tick`] at, if any.
    fn deadline(&self) -> Option<u64>;
    /// Does one small unit of work that takes longer than one turn may. The runner has it done as
    /// often as it has time for, and serves others in between.
    fn work(&mut self, now: Now, out: &mut Vec<Effect>) {
        let _ = (now, out);
    }
    /// Is there such work?
    fn has_work(&self) -> bool {
        false
    }
}
