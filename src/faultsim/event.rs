//! The events of a simulation.

use super::conn::ConnEnd;
use crate::log::writer::WriterNotice;
use crate::model::JobRef;
use crate::proto::Msg;
use crate::proto::machine::{ConnId, Endpoint, Input};

/// Events.
#[derive(Debug)]
pub(super) enum SimEvent {
    /// Deliver to a process, if it is still this incarnation.
    Input {
        proc_: usize,
        born: u64,
        input: Box<Input>,
    },
    Tick {
        proc_: usize,
        gen_: u64,
    },
    /// Something arrives over a connection.
    Arrive {
        conn: u64,
        from_a: bool,
        msg: Box<Msg>,
    },
    Dial {
        proc_: usize,
        born: u64,
        local: ConnId,
        to: Endpoint,
    },
    Closed {
        end: ConnEnd,
    },
    /// The thread of the log has completed its order.
    LogTurn {
        gen_: u64,
    },
    /// The loop hears of it.
    LogTold {
        born: u64,
        notice: WriterNotice,
    },
    TaskEnd {
        host: usize,
        boot: u64,
        pid: u32,
        gen_: u64,
    },
    TaskReady {
        host: usize,
        boot: u64,
        pid: u32,
    },
    /// Start this host's launcher.
    Boot {
        host: usize,
        boot: u64,
    },
    ClientDial {
        client: usize,
        dials: u64,
    },
    /// A submitter makes its next request.
    Ask {
        client: usize,
        dials: u64,
    },
    Fault,
    /// A process of a job calls res.
    CallRes {
        call: usize,
    },
    /// A user sends a job a signal.
    SignalJob {
        at: JobRef,
    },
    /// A host has been cut off for long.
    Silence {
        host: usize,
    },
    /// A host loses power.
    Power {
        host: usize,
    },
    Rejoin {
        host: usize,
    },
    DiskBack,
    /// A master that was stopped goes on.
    Wake,
    /// An administrator opens what lost control records closed.
    Reopen,
    /// The administrator of the load balancer does something.
    Administer,
    /// An administrator forces a job.
    Force {
        at: JobRef,
        host: usize,
    },
}
