//! Known names of the files other than lsf.conf, lsb.params and lsb.queues: data, checked
//! against the manual pages.
//!
//! See lsf.shared(5), lsf.cluster(5), lsb.hosts(5), lsb.users(5) and lsb.resources(5).

use super::name_table::{Name, NameTable, bytes, ends, names, off, on, table, text};

/// Section Cluster of lsf.shared.
pub static SHARED_CLUSTER: NameTable = table!(
    "lsf.shared",
    "Cluster",
    &[
        on("CLUSTERNAME", "name of a cluster; lsf.cluster.NAME describes it"),
        off("SERVERS", "candidate masters of a remote cluster"),
    ],
);

/// Section HostType of lsf.shared.
pub static HOST_TYPE: NameTable =
    table!("lsf.shared", "HostType", &[on("TYPENAME", "name of a host type")]);

/// Section HostModel of lsf.shared.
pub static HOST_MODEL: NameTable = table!(
    "lsf.shared",
    "HostModel",
    &[
        on("ARCHITECTURE", "architectures of the model, as lim -t prints them"),
        on("CPUFACTOR", "relative speed of the model"),
        on("MODELNAME", "name of a host model"),
    ],
);

/// Section Resource of lsf.shared.
pub static RESOURCE: NameTable = table!(
    "lsf.shared",
    "Resource",
    &[
        on("CONSUMABLE", "may be used in rusage: Yes/No"),
        on("DESCRIPTION", "text shown by lsinfo, in parentheses"),
        on("INCREASING", "a larger value means more load: Y/N; () where neither"),
        on("INTERVAL", "seconds between reports of an elim; () for a static resource"),
        on("RELEASE", "released while a job is suspended: Y/N; Y"),
        on("RESOURCENAME", "name of the resource"),
        on("TYPE", "Boolean, Numeric or String"),
    ],
);

/// Section ClusterAdmins of lsf.cluster.
pub static CLUSTER_ADMINS: NameTable = table!(
    "lsf.cluster",
    "ClusterAdmins",
    &[
        on("ADMINISTRATORS", "LSF administrators; the first is the primary one"),
        on("MANAGER", "old name of ADMINISTRATORS"),
    ],
);

/// Section Host of lsf.cluster; load indices are columns besides.
pub static CLUSTER_HOST: NameTable = table!(
    "lsf.cluster",
    "Host",
    &[
        on("HOSTNAME", "name of the host, in its canonical spelling"),
        on("MODEL", "host model of lsf.shared; ! is found by lim"),
        on("ND", "number of local disks"),
        on("RESOURCES", "resources of the host: (name name=value !exclusive ~absent)"),
        on("REXPRI", "nice value of remote tasks, -20 to 20; 0"),
        on("RUNWINDOW", "when the host takes jobs; always"),
        on("SERVER", "1: runs jobs, 0: client only; 1"),
        on("TYPE", "host type of lsf.shared; ! is found by lim"),
    ],
);

/// Section ResourceMap of lsf.cluster.
pub static RESOURCE_MAP: NameTable = table!(
    "lsf.cluster",
    "ResourceMap",
    &[
        on("LOCATION", "which hosts share an instance: ([h1 h2] [h3]), [all], [default], 3@[all]"),
        on("RESOURCENAME", "resource of lsf.shared"),
    ],
);

/// Section Parameters of lsf.cluster.
pub static CLUSTER_PARAMETERS: NameTable = table!(
    "lsf.cluster",
    "Parameters",
    &[
        on("ADJUST_DURATION", "EXINTERVALs over which load adjustments decay; 3"),
        on("ELIMARGS", "arguments of elim"),
        on("ELIM_ABORT_VALUE", "exit value with which an elim says it is not wanted; 97"),
        on("ELIM_POLL_INTERVAL", "seconds between look-outs for elim reports; 5"),
        on("EXINTERVAL", "seconds between exchanges of load; 15"),
        off("FLOAT_CLIENTS", "number of floating client licences"),
        off("FLOAT_CLIENTS_ADDR_RANGE", "addresses of floating clients"),
        on("HOST_INACTIVITY_LIMIT", "EXINTERVALs before a silent host is unavailable; 5"),
        on("LSF_ELIM_BLOCKTIME", "seconds an elim may take to write"),
        on("LSF_ELIM_DEBUG", "log what elims report: y/n; n"),
        on("LSF_ELIM_RESTARTS", "how often an elim is restarted; unlimited"),
        on("LSF_HOST_ADDR_RANGE", "addresses of dynamic hosts"),
        on("MASTER_INACTIVITY_LIMIT", "EXINTERVALs before a silent master is replaced; 2"),
        on("PROBE_TIMEOUT", "seconds for probing the master; 2"),
        off("PRODUCTS", "licensed products"),
        on("RETRY_LIMIT", "EXINTERVALs a silent host or master is asked; 2"),
    ],
);

/// Section RemoteClusters of lsf.cluster.
pub static REMOTE_CLUSTERS: NameTable = table!(
    "lsf.cluster",
    "RemoteClusters",
    &[
        off("AUTH", "authentication with the cluster"),
        off("CACHE_INTERVAL", "seconds its load is kept; 60"),
        off("CLUSTERNAME", "name of a remote cluster"),
        off("EQUIV", "the cluster's hosts are shown as ours: Y/N; N"),
        off("RECV_FROM", "requests of the cluster are taken: Y/N; Y"),
    ],
);

/// Section Host of lsb.hosts; load indices are columns besides.
pub static BATCH_HOST: NameTable = table!(
    "lsb.hosts",
    "Host",
    &[
        on("AFFINITY", "affinity scheduling: Y/N/CPU_LIST=...; N"),
        off("CHKPNT", "checkpoint copying: C"),
        on("DISPATCH_WINDOW", "when jobs are dispatched to the host; always"),
        on("EXIT_RATE", "job exits that are no exception; GLOBAL_EXIT_RATE"),
        on("HOST_NAME", "host, host group, type, model or default"),
        on("JL/U", "slots per user; unlimited"),
        on("MIG", "minutes suspended by load before a rerunnable job migrates; never"),
        on("MXJ", "job slots; ! is the number of CPUs, () unlimited"),
    ],
);

/// Section HostGroup of lsb.hosts.
pub static HOST_GROUP: NameTable = table!(
    "lsb.hosts",
    "HostGroup",
    &[
        on("CONDENSE", "Y: bhosts and bjobs show its name in place of its hosts; N"),
        on("GROUP_ADMIN", "administrators of the group"),
        on("GROUP_MEMBER", "(hosts, groups, patterns, all, ~name)"),
        on("GROUP_NAME", "name of the group"),
    ],
);

/// Section HostPartition of lsb.hosts.
pub static HOST_PARTITION: NameTable = table!(
    "lsb.hosts",
    "HostPartition",
    &[
        on("HOSTS", "hosts of the partition"),
        on("HPART_NAME", "name of the partition"),
        on("USER_SHARES", "[user, shares] ..."),
    ],
);

/// Section ComputeUnit of lsb.hosts.
pub static COMPUTE_UNIT: NameTable = table!(
    "lsb.hosts",
    "ComputeUnit",
    &[
        off("ADMIN", "administrators of the unit"),
        on("CONDENSE", "Y: bhosts and bjobs show its name in place of its hosts; N"),
        on("MEMBER", "(hosts, groups, units)"),
        on("NAME", "name of the unit"),
        on("TYPE", "a word of COMPUTE_UNIT_TYPES"),
    ],
);

/// Section UserGroup of lsb.users.
pub static USER_GROUP: NameTable = table!(
    "lsb.users",
    "UserGroup",
    &[
        on("GROUP_ADMIN", "administrators of the group"),
        on("GROUP_MEMBER", "(users, groups, all); ! asks egroup"),
        on("GROUP_NAME", "name of the group"),
        on("PRIORITY", "UG of absolute priority; 0"),
        on("USER_SHARES", "([user, shares] ...)"),
    ],
);

/// Section User of lsb.users.
pub static USER: NameTable = table!(
    "lsb.users",
    "User",
    &[
        on("JL/P", "slots per processor of each host; unlimited"),
        on("MAX_JOBS", "slots; unlimited"),
        on("MAX_PEND_JOBS", "pending jobs; unlimited"),
        on("MAX_PEND_SLOTS", "slots of pending jobs; unlimited"),
        on("PRIORITY", "USER of absolute priority; 0"),
        on("USER_NAME", "user, group, group@ (each member) or default"),
    ],
);

/// Section UserMap of lsb.users.
pub static USER_MAP: NameTable = table!(
    "lsb.users",
    "UserMap",
    &[
        off("DIRECTION", "import or export"),
        off("LOCAL", "local users"),
        off("REMOTE", "user@cluster"),
    ],
);

/// Section Limit of lsb.resources.
pub static LIMIT: NameTable = table!(
    "lsb.resources",
    "Limit",
    &[
        on("APPS", "application profiles that share the limit"),
        off("CLUSTERS", "clusters that share the limit"),
        off("ELIGIBLE_PEND_JOBS", "eligible pending jobs"),
        off("FWD_SLOTS", "slots of forwarded jobs"),
        on("HOSTS", "hosts that share the limit"),
        on("INELIGIBLE", "jobs beyond it do not gain pending time: Y/N"),
        on("JOBS", "started jobs"),
        off("JOBS_PER_SCHED_CYCLE", "jobs considered in a turn"),
        on("LIC_PROJECTS", "licence projects that share the limit"),
        on("MEM", "memory reserved, or a percentage"),
        on("NAME", "name of the limit"),
        on("PER_APP", "each application profile has the limit"),
        off("PER_CLUSTER", "each cluster has the limit"),
        on("PER_HOST", "each host has the limit"),
        on("PER_LIC_PROJECT", "each licence project has the limit"),
        on("PER_PROJECT", "each project has the limit"),
        on("PER_QUEUE", "each queue has the limit"),
        on("PER_USER", "each user has the limit"),
        on("PROJECTS", "projects that share the limit"),
        on("QUEUES", "queues that share the limit"),
        on("RESOURCE", "[name, amount] ..."),
        on("SLOTS", "job slots"),
        on("SLOTS_PER_PROCESSOR", "job slots per processor, with PER_HOST"),
        on("SWP", "swap space reserved, or a percentage"),
        on("TMP", "space in /tmp reserved, or a percentage"),
        on("USERS", "users that share the limit"),
    ],
);

/// Section ReservationUsage of lsb.resources.
pub static RESERVATION_USAGE: NameTable = table!(
    "lsb.resources",
    "ReservationUsage",
    &[
        on("METHOD", "reserved for what: PER_JOB, PER_TASK or PER_HOST"),
        off("RESERVE", "a static resource is reserved: Y/N; Y"),
        on("RESOURCE", "name of the resource"),
    ],
);

/// Section ResourceReservation of lsb.resources.
pub static RESOURCE_RESERVATION: NameTable = table!(
    "lsb.resources",
    "ResourceReservation",
    &[
        on("HOSTS", "hosts and host groups that may be reserved, ~ before one excludes it; all"),
        on("NAME", "name of the policy"),
        on("TIME_WINDOW", "windows in which reservations must be; any time"),
        on("USERS", "users and user groups who may make reservations; all"),
    ],
);

/// Section GuaranteedResourcePool of lsb.resources.
pub static GUARANTEED_POOL: NameTable = table!(
    "lsb.resources",
    "GuaranteedResourcePool",
    &[
        off("ADMINISTRATORS", "who may change the pool by bconf"),
        on("DESCRIPTION", "text shown by bresources -g -l"),
        on("DISTRIBUTION", "[class, amount or percentage] ..."),
        on("HOSTS", "hosts and host groups of the pool, ~ before one excludes it; all"),
        on("LOAN_POLICIES", "QUEUES[names] RETAIN[n or n%] DURATION[minutes] CLOSE_ON_DEMAND"),
        on("NAME", "name of the pool"),
        on("RES_SELECT", "select[] that hosts of the pool match"),
        on("SLOTS_PER_HOST", "most slots of a host that are of the pool"),
        on("TYPE", "slots or hosts"),
    ],
);

/// Variables of lsf.sudoers.
pub static SUDOERS: NameTable = table!(
    "lsf.sudoers",
    "",
    &[
        on("LSB_PRE_POST_EXEC_PROGRAMS", "programs that root may run as LSB_PRE_POST_EXEC_USER"),
        on("LSB_PRE_POST_EXEC_USER", "user that runs pre- and post-execution commands of queues"),
        on("LSF_EAUTH_KEY", "secret from which eauth makes its credentials"),
        off("LSF_EAUTH_OLDKEY", "the secret before it"),
        off("LSF_EAUTH_OLDKEY_EXPIRY", "until when it is accepted"),
        on("LSF_EAUTH_USER", "user that a site's own eauth -s runs as"),
        on("LSF_EEXEC_USER", "user that eexec runs as"),
        off("LSF_EGO_ADMIN_PASSWD", "password of the EGO administrator"),
        off("LSF_EGO_ADMIN_USER", "the EGO administrator"),
        off("LSF_LOAD_PLUGINS", "commands load plugins of LSF_LIBDIR: Y/N"),
        on("LSF_ROOT_USER", "root may submit jobs to this host: Y/N"),
        on("LSF_STARTUP_PATH", "directory of the daemons that LSF_STARTUP_USERS may start"),
        on("LSF_STARTUP_USERS", "who may start daemons: all_admins, or users"),
    ],
);

/// Keywords of install.config.
pub static INSTALL: NameTable = table!(
    "install.config",
    "",
    &[
        off("CONFIGURATION_TEMPLATE", "DEFAULT, PARALLEL or HIGH_THROUGHPUT"),
        off("DERBY_DB_HOST", "host of the reporting data base"),
        off("EGO_DAEMON_CONTROL", "EGO starts the daemons"),
        off("EGO_DYNAMIC_HOSTS", "dynamic hosts by EGO"),
        off("ENABLE_DYNAMIC_HOSTS", "hosts may join by themselves: Y/N"),
        off("ENABLE_EGO", "EGO is used: Y/N"),
        off("ENABLE_GPU_CONF", "GPUs are configured: Y/N"),
        off("ENABLE_HPC_CONF", "parameters for parallel jobs are set: Y/N"),
        off("ENABLE_STREAM", "lsb.stream is written: Y/N"),
        on("LSB_MBD_PORT", "port of mbatchd; 6881 (not in LSF)"),
        on("LSB_SBD_PORT", "port of sbatchd; 6882 (not in LSF)"),
        on("LSF_ADD_CLIENTS", "hosts that submit only"),
        on("LSF_ADD_SERVERS", "hosts that run jobs, besides those of LSF_MASTER_LIST"),
        on("LSF_ADMINS", "administrators; the first is the primary one"),
        on("LSF_CLUSTER_NAME", "name of the cluster"),
        off("LSF_DYNAMIC_HOST_WAIT_TIME", "seconds a dynamic host waits"),
        off("LSF_ENTITLEMENT_FILE", "entitlement"),
        on("LSF_KEY_FILE", "the cluster key, on local disk; /etc/lsf.key (not in LSF)"),
        off("LSF_LICENSE", "licence file"),
        on("LSF_LIM_PORT", "port of lim; 7869"),
        off("LSF_LOCAL_RESOURCES", "resources of dynamic hosts"),
        on("LSF_MASTER_LIST", "candidates for master, in order"),
        off("LSF_QUIET_INST", "fewer words: Y/N"),
        on("LSF_RES_PORT", "port of res; 6878 (not in LSF)"),
        on("LSF_RUNDIR", "local sockets and journals; /run/lsf (not in LSF)"),
        off("LSF_SERVER_HOSTS", "hosts a client may ask"),
        off("LSF_TARDIR", "where the distribution is"),
        on("LSF_TOP", "directory of the site's tree"),
        off("PATCH_BACKUP_DIR", "where patches keep what they replace"),
        off("PATCH_HISTORY_DIR", "where patches are noted"),
        off("SILENT_INSTALL", "asks nothing: Y/N"),
    ],
);

/// nqeinfo.
pub static NQEINFO: NameTable = table!(
    "nqeinfo",
    "",
    &[
        on("NLB_CCOLLECT_OPTIONS", "further words for ccollect (not in NQE)"),
        on("NLB_QUEUE", "NLB_QUEUE_NAME of hosts that LIM measures (not in NQE)"),
        on("NLB_SERVER", "servers of the load balancer: host[:port] ..."),
        on("NLB_SERVER_DIR", "directory of the server; NQE_SPOOL/nlbdir"),
        on("NQE_BIN", "where relative names of collectors start"),
        on("NQE_CUSTOM_COLLECTOR_LIST", "programs and files of collectors"),
        on("NQE_DEFAULT_COMPLIST", "components to start; NQS,NLB"),
        on("NQE_ETC", "holds policies for the first start; LSF_CONFDIR/nqe"),
        on("NQE_SPOOL", "spool; LSB_SHAREDIR/CLUSTER/nqe"),
        off("NQS_DEST_TYPE", "nqs or nqedb"),
        off("NQS_SERVER", "the NQS server of commands"),
    ],
);

/// Sections of the lsb.* files that are read past, each with its file.
pub const OTHER_SECTIONS: &[(&str, &str)] = &[
    ("lsb.resources", "HostExport"),
    ("lsb.resources", "PowerPolicy"),
    ("lsb.resources", "ResourceMap"),
    ("lsb.resources", "SharedResourceExport"),
];

/// The tables of this file.
pub const ALL: [&NameTable; 23] = [
    &NQEINFO,
    &SHARED_CLUSTER,
    &HOST_TYPE,
    &HOST_MODEL,
    &RESOURCE,
    &CLUSTER_ADMINS,
    &CLUSTER_HOST,
    &RESOURCE_MAP,
    &CLUSTER_PARAMETERS,
    &REMOTE_CLUSTERS,
    &BATCH_HOST,
    &HOST_GROUP,
    &HOST_PARTITION,
    &COMPUTE_UNIT,
    &USER_GROUP,
    &USER,
    &USER_MAP,
    &LIMIT,
    &RESERVATION_USAGE,
    &RESOURCE_RESERVATION,
    &GUARANTEED_POOL,
    &SUDOERS,
    &INSTALL,
];
