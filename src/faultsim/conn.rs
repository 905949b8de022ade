//! A connection and its two ends.

use crate::proto::held_replies::HeldReplies;
use crate::proto::machine::ConnId;

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnEnd {
    Proc {
        proc_: usize,
        born: u64,
        local: ConnId,
    },
    Client {
        client: usize,
        dials: u64,
    },
    /// A process of a job that has called res.
    Call {
        call: usize,
    },
    /// The administrator of the load balancer.
    Administrator {
        dials: u64,
    },
}

/// A connection between two daemons, or from a submitter to mbatchd.
#[derive(Debug)]
pub(super) struct Conn {
    pub(super) a: ConnEnd,
    pub(super) b: ConnEnd,
    /// Last delivery in each direction: order is kept.
    pub(super) last: [u64; 2],
    /// Both ends are on one host, so that no fault isolates them.
    pub(super) local: bool,
    /// Messages that mbatchd's end holds.
    pub(super) held: HeldReplies,
    /// The connection closes when they have gone.
    pub(super) closing: bool,
}
