//! The typed configuration of a cluster: what the readers produce and everyone else consumes.
//!
//! All plain data: `Clone`, `Debug`, `PartialEq`, no interior references, so a reconfiguration is a
//! swap and a difference is `!=`. Sizes are KB, times seconds, unless a field says otherwise.
//! Expressions and windows stay text here; `lang` gives them meaning. See lsf.conf(5) and the pages
//! that it names.
//!
//! Here is what holds all of it together; each classic file has its types in a file of its own
//! below. No reading and no judging of values: that is the parsers' (params.rs, queues.rs, ...).

mod acct_archive;
mod aps;
mod event_stream;
mod exceptions;
mod extendable_run_limit;
mod fairshare;
mod guaranteed_pool;
mod job_access;
mod lsb_applications;
mod lsb_hosts;
mod lsb_params;
mod lsb_queues;
mod lsb_resources;
mod lsb_serviceclasses;
mod lsb_users;
mod lsf_cluster;
mod lsf_conf;
mod lsf_shared;
mod member;
mod nqs;
mod preemption;
mod raw;
mod scheduler_params;
mod unix_groups;
mod user_group_params;

use super::diag::Pos;
use super::hosts::HostTable;
use crate::model::nlb::NlbAddress;

pub use acct_archive::*;
pub use aps::*;
pub use event_stream::*;
pub use exceptions::*;
pub use extendable_run_limit::*;
pub use fairshare::*;
pub use guaranteed_pool::*;
pub use job_access::*;
pub use lsb_applications::*;
pub use lsb_hosts::*;
pub use lsb_params::*;
pub use lsb_queues::*;
pub use lsb_resources::*;
pub use lsb_serviceclasses::*;
pub use lsb_users::*;
pub use lsf_cluster::*;
pub use lsf_conf::*;
pub use lsf_shared::*;
pub use member::*;
pub use nqs::*;
pub use preemption::*;
pub use raw::*;
pub use scheduler_params::*;
pub use unix_groups::*;
pub use user_group_params::*;

/// The whole configuration: LSF base and LSF batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterConf {
    /// lsf.conf, lsf.shared, lsf.cluster.NAME and hosts.
    pub base: BaseConf,
    /// The lsb.* files.
    pub batch: BatchConf,
    /// Groups of the operating system that they speak of.
    pub unix: UnixGroups,
    /// When another branch of an `#if time(...)` may hold, seconds since the epoch.
    pub changes: Option<i64>,
}

/// The configuration of lim and the commands: the lsf.* files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BaseConf {
    /// The cluster's name.
    pub name: String,
    /// lsf.conf.
    pub lsf: LsfConf,
    /// lsf.shared.
    pub shared: Shared,
    /// lsf.cluster.NAME.
    pub cluster: ClusterFile,
    /// Names and addresses of the cluster's hosts.
    pub hosts: HostTable,
    /// Hosts that joined by themselves; they are in `cluster` and `hosts` too.
    pub members: Vec<Member>,
}

impl BaseConf {
    /// The host in identifiers of NQS requests: the first candidate for master, which stays the
    /// same over a takeover.
    pub fn request_host(&self) -> Option<&str> {
        let list = self.lsf.master_list();
        let first = list.first().and_then(|host| self.hosts.canonical(host));
        let server = || self.cluster.hosts.iter().find(|h| h.server).map(|h| h.name.as_str());
        first.or_else(server)
    }
}

impl BatchConf {
    /// Has a queue or an application profile JOB_SIZE_LIST?
    pub fn has_job_sizes(&self) -> bool {
        self.queues.iter().any(|queue| !queue.tasks.sizes.is_empty())
            || self.applications.iter().any(|profile| !profile.job_sizes.is_empty())
    }
}

/// The further configuration of mbatchd: the lsb.* files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BatchConf {
    /// lsb.params.
    pub params: BatchParams,
    /// lsb.hosts.
    pub hosts: BatchHosts,
    /// lsb.queues, in the order of the file.
    pub queues: Vec<QueueConf>,
    /// lsb.applications, in the order of the file.
    pub applications: Vec<ApplicationConf>,
    /// lsb.users.
    pub users: BatchUsers,
    /// lsb.resources.
    pub resources: BatchResources,
    /// lsb.serviceclasses, in the order of the file.
    pub service_classes: Vec<ServiceClassConf>,
    /// lsb.nqs; its queues are among `queues`, too.
    pub nqs: NqsConf,
    /// NLB_SERVER of nqeinfo: the servers of the load balancer, in order.
    pub nlb_servers: Vec<NlbAddress>,
}
