//! Types of lsb.nqs.

use crate::model::nlb::NlbAddress;
use crate::model::nqs::{Destinations, NqsQueue};

/// The definitions of qmgr.
#[derive(Clone, Debug, PartialEq)]
pub struct NqsConf {
    /// The queues, in the order in which they were defined.
    pub queues: Vec<NqsQueue>,
    /// The queue of requests without one; it stands before DEFAULT_QUEUE.
    pub default_queue: Option<String>,
    /// Minutes between two tries to route a request.
    pub retry_minutes: u32,
    /// Hours until a request is given up.
    pub wait_hours: u32,
    /// Destinations look for a line of the submitter's in ~/.nqshosts or ~/.rhosts there.
    pub validation: bool,
}

impl Default for NqsConf {
    fn default() -> Self {
        NqsConf {
            queues: Vec::new(),
            default_queue: None,
            retry_minutes: 5,
            wait_hours: 72,
            validation: false,
        }
    }
}

/// NLB_POLICY of a queue.
#[derive(Clone, Debug, PartialEq)]
pub struct NlbPolicy {
    /// The policy, as it is written.
    pub name: String,
    /// Jobs wait while no server answers; else they are placed by LSF's order then.
    pub hold: bool,
}

/// The settings of a queue of NQS.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NqsSettings {
    /// NQS_QUEUES, or as qmgr says: the queue's jobs are routed, never dispatched.
    pub pipe: Option<Box<Destinations>>,
    /// Queries of a pipe queue under way at once.
    pub pipe_queries: Option<u32>,
    /// The load balancer's servers for a queue that asks one, in order.
    pub nlb_servers: Vec<NlbAddress>,
    /// A request from a pipe queue is accepted only where it could start at once.
    pub load_only: bool,
    /// NLB_POLICY: the policy by which hosts are chosen for the queue's jobs.
    pub nlb_policy: Option<NlbPolicy>,
    /// Only pipe queues put jobs into it.
    pub pipe_only: bool,
    /// Defined in lsb.nqs.
    pub by_qmgr: bool,
}
