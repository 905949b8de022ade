//! lsf.cluster.NAME: hosts, resources on them, what lim goes by. See lsf.cluster(5).

use super::{Pos, RawParams};
use crate::conf::address_range::AddrRanges;

/// lsf.cluster.NAME.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterFile {
    /// ClusterAdmins; the first is the primary LSF administrator.
    pub admins: Vec<String>,
    /// Section Host, in the order of the file (which is the order of master candidates
    /// where LSF_MASTER_LIST is not set).
    pub hosts: Vec<HostDef>,
    /// Section ResourceMap.
    pub resource_map: Vec<ResourceMapping>,
    /// Section Parameters.
    pub params: LimParams,
    /// Section RemoteClusters: names only.
    pub remote_clusters: Vec<String>,
}

/// A row of the Host section.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostDef {
    /// HOSTNAME: the canonical spelling.
    pub name: String,
    /// Host model; None is `!`, found by lim.
    pub model: Option<String>,
    /// Host type; None is `!`, found by lim.
    pub host_type: Option<String>,
    /// Server (runs jobs) or client only.
    pub server: bool,
    /// Busy thresholds by load index.
    pub thresholds: Vec<(String, f64)>,
    /// RESOURCES.
    pub resources: Vec<HostResource>,
    /// RUNWINDOW, as written; empty is always.
    pub run_window: String,
    /// REXPRI: nice of remote tasks, -20 to 20.
    pub rexpri: i32,
    /// ND: local disks, if given.
    pub ndisks: Option<u32>,
    /// The host is dynamic.
    pub dynamic: bool,
    /// The place of the row in the file.
    pub pos: Pos,
}

/// A word of a host's RESOURCES.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostResource {
    /// Resource name.
    pub name: String,
    /// `name=value`, or None for a Boolean.
    pub value: Option<String>,
    /// `!name`: exclusive, only jobs that ask for it run here.
    pub exclusive: bool,
    /// `~name`: the host does not have it.
    pub absent: bool,
}

/// A row of the ResourceMap section.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResourceMapping {
    /// RESOURCENAME.
    pub resource: String,
    /// One instance per bracket.
    pub instances: Vec<ResourceInstance>,
    /// The place of the row in the file.
    pub pos: Pos,
}

/// One instance of a mapped resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResourceInstance {
    /// `value@`, for static resources.
    pub value: Option<String>,
    /// Words in the bracket: host names, `all`, `~host`, `others`; `default` alone means one
    /// instance on each host.
    pub hosts: Vec<String>,
}

/// Section Parameters of lsf.cluster.NAME.
#[derive(Clone, Debug, PartialEq)]
pub struct LimParams {
    /// EXINTERVAL, seconds between load exchanges.
    pub exinterval: u64,
    /// HOST_INACTIVITY_LIMIT, in EXINTERVALs.
    pub host_inactivity_limit: u64,
    /// MASTER_INACTIVITY_LIMIT, in EXINTERVALs.
    pub master_inactivity_limit: u64,
    /// PROBE_TIMEOUT, seconds.
    pub probe_timeout: u64,
    /// RETRY_LIMIT, in EXINTERVALs.
    pub retry_limit: u64,
    /// ADJUST_DURATION, in EXINTERVALs.
    pub adjust_duration: u64,
    /// ELIM_POLL_INTERVAL, seconds.
    pub elim_poll_interval: f64,
    /// LSF_HOST_ADDR_RANGE.
    pub addr_range: AddrRanges,
    /// ELIM_ABORT_VALUE.
    pub elim_abort_value: i64,
    /// ELIMARGS, as written.
    pub elim_args: String,
    /// Every parameter as written.
    pub raw: RawParams,
}

impl Default for LimParams {
    fn default() -> Self {
        LimParams {
            exinterval: 15,
            host_inactivity_limit: 5,
            master_inactivity_limit: 2,
            probe_timeout: 2,
            retry_limit: 2,
            adjust_duration: 3,
            elim_poll_interval: 5.0,
            addr_range: AddrRanges::default(),
            elim_abort_value: 97,
            elim_args: String::new(),
            raw: RawParams::new(),
        }
    }
}
