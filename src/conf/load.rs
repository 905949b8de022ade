//! Reading a whole configuration: which files, in what order.
//!
//! Pure: files come through [`Files`]. The strict readers ([`load`], [`load_base`]) give a value
//! only when no diagnostic is an error, which is what a running cluster wants: it takes all of the
//! new configuration or none. The lenient ones give what could be read, for a start after which
//! there is no old configuration to keep. See lsf.conf(5).

use super::check;
use super::check_aps;
use super::check_guarantees;
use super::check_shares;
use super::check_slot_pools;
use super::diag::{Diag, Diags, NOT_ACTED_ON, Pos, Severity, has_errors};
use super::files::{Files, Moment};
use super::hosts::HostTable;
use super::limit_names;
use super::lsf_conf;
use super::names::nearest;
use super::types::{BaseConf, BatchConf, ClusterConf, LsfConf, Shared};
use super::{
    lsb_applications, lsb_hosts, lsb_params, lsb_queues, lsb_resources, lsb_serviceclasses,
    lsb_users, lsf_cluster, lsf_shared, nqeinfo, nqs, unix,
};

/// Files, read at a given moment: the moment selects the branches of `#if`.
struct Forced<'a> {
    files: &'a dyn Files,
    moment: Moment,
}

impl Files for Forced<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        self.files.read(path)
    }
    fn exists(&self, path: &str) -> bool {
        self.files.exists(path)
    }
    fn moment(&self) -> Option<Moment> {
        Some(self.moment.clone())
    }
}

/// Most branches of `#if time(...)` that a check looks into.
const MAX_BRANCHES: usize = 100;

/// The system's own table of hosts.
pub const ETC_HOSTS: &str = "/etc/hosts";

/// Reads everything. The value is there only when no diagnostic is an error.
pub fn load(files: &dyn Files, envdir: &str) -> (Option<ClusterConf>, Vec<Diag>) {
    strict(load_lenient(files, envdir, None))
}

/// Reads the lsf.* files: what lim and the commands need. The value is there only when no
/// diagnostic is an error.
pub fn load_base(files: &dyn Files, envdir: &str) -> (Option<BaseConf>, Vec<Diag>) {
    strict(load_base_lenient(files, envdir, None))
}

/// Reads lsf.conf alone.
pub fn load_lsf_conf(files: &dyn Files, envdir: &str) -> (Option<LsfConf>, Vec<Diag>) {
    let mut diags = Diags::new();
    let conf = lsf_conf::parse(files, envdir, &mut diags);
    strict((conf, diags.into_list()))
}

/// Diagnostics of the lsf.* files and of nqeinfo, for `lsadmin ckconfig`.
pub fn check_lsf(files: &dyn Files, envdir: &str) -> Vec<Diag> {
    let mut diags = Diags::new();
    if let Some(base) = base(files, envdir, None, &mut diags) {
        let (lsf, host) = (&base.lsf, base.lsf.local_host().unwrap_or_default());
        let _ = nqeinfo::read(files, &nqeinfo::places(lsf), lsf, &base.name, host, &mut diags);
    }
    diags.into_list()
}

/// Diagnostics of every file, for `badmin ckconfig`: with every branch of `#if time(...)` read
/// once, so that what holds at night is not found wrong at night.
pub fn check_batch(files: &dyn Files, envdir: &str) -> Vec<Diag> {
    let mut diags = Diags::new();
    read_all(files, envdir, None, &mut diags);
    let mut todo = diags.take_untaken();
    let mut seen = 0;
    while let (Some(forced), Some(moment)) = (todo.get(seen).cloned(), files.moment()) {
        if seen == MAX_BRANCHES {
            break;
        }
        seen += 1;
        let files = Forced { files, moment: Moment { forced, ..moment } };
        let mut more = Diags::new();
        read_all(&files, envdir, None, &mut more);
        for path in more.take_untaken() {
            if !todo.contains(&path) {
                todo.push(path);
            }
        }
        diags.join(more.into_list());
    }
    diags.into_list()
}

fn strict<T>((value, diags): (Option<T>, Vec<Diag>)) -> (Option<T>, Vec<Diag>) {
    let value = if has_errors(&diags) { None } else { value };
    (value, diags)
}

/// Reads everything, leaving out what cannot be read. `local_host` decides which cluster is
/// ours where lsf.shared names several.
pub fn load_lenient(
    files: &dyn Files,
    envdir: &str,
    local_host: Option<&str>,
) -> (Option<ClusterConf>, Vec<Diag>) {
    let mut diags = Diags::new();
    let conf = read_all(files, envdir, local_host, &mut diags);
    (conf, diags.into_list())
}

fn read_all(
    files: &dyn Files,
    envdir: &str,
    local_host: Option<&str>,
    diags: &mut Diags,
) -> Option<ClusterConf> {
    let base = base(files, envdir, local_host, diags)?;
    let batch = batch(files, &base, diags)?;
    let mut conf = ClusterConf { base, batch, ..ClusterConf::default() };
    conf.unix = unix::read(files, &conf);
    conf.changes = diags.next_change();
    check::cross(&conf, diags);
    check_shares::check(&conf, diags);
    check_slot_pools::check(&conf, diags);
    check_aps::check(&conf, diags);
    limit_names::known(&conf, diags);
    check_guarantees::check(&conf, diags);
    nqs::check(&conf, diags);
    balancer(files, &mut conf, local_host, diags);
    Some(conf)
}

/// The load balancer's servers that pipe queues ask.
fn balancer(
    files: &dyn Files,
    conf: &mut ClusterConf,
    local_host: Option<&str>,
    diags: &mut Diags,
) {
    let (lsf, name) = (&conf.base.lsf, &conf.base.name);
    let host = local_host.or(lsf.local_host()).unwrap_or_default();
    let info = nqeinfo::read(files, &nqeinfo::places(lsf), lsf, name, host, diags);
    nqs::servers(files, conf, &info.map(|info| info.servers).unwrap_or_default(), diags);
}

/// Reads the lsf.* files, leaving out what cannot be read.
pub fn load_base_lenient(
    files: &dyn Files,
    envdir: &str,
    local_host: Option<&str>,
) -> (Option<BaseConf>, Vec<Diag>) {
    let mut diags = Diags::new();
    let base = base(files, envdir, local_host, &mut diags);
    (base, diags.into_list())
}

fn base(
    files: &dyn Files,
    envdir: &str,
    local_host: Option<&str>,
    diags: &mut Diags,
) -> Option<BaseConf> {
    let lsf = lsf_conf::parse(files, envdir, diags)?;
    let confdir = lsf.confdir().to_owned();
    let shared = lsf_shared::parse(files, &format!("{confdir}/lsf.shared"), diags)?;
    let local_host = local_host.or(lsf.local_host());
    let name = cluster_name(files, &confdir, &shared, local_host)?;
    let path = format!("{confdir}/lsf.cluster.{name}");
    let cluster = lsf_cluster::parse(files, &path, &shared, diags)?;
    let names = cluster.hosts.iter().map(|h| h.name.as_str());
    let mut hosts = HostTable::new(names, &lsf.strip_domains());
    read_hosts(files, &confdir, &mut hosts, diags);
    let task = format!("lsf.task.{name}");
    let rest = [&task, "lsf.task", "lsf.licensescheduler", "lsf.datamanager"];
    untouched(files, &confdir, &rest, diags);
    let me = local_host.unwrap_or_default().to_owned();
    let mut base = BaseConf { name, lsf, shared, cluster, hosts, members: Vec::new() };
    if base.add_self(&me) {
        // its address; what else is to be said was said
        read_hosts(files, &confdir, &mut base.hosts, &mut Diags::new());
    }
    base.read_members(files, &me);
    check_master_list(&base, diags);
    Some(base)
}

/// Addresses and aliases, of LSF's own file and the system's.
fn read_hosts(files: &dyn Files, confdir: &str, hosts: &mut HostTable, diags: &mut Diags) {
    for (path, ours) in [(format!("{confdir}/hosts"), true), (ETC_HOSTS.to_owned(), false)] {
        if let Ok(text) = files.read(&path) {
            hosts.read(&path, &text, ours, diags);
        }
    }
}

/// Whole files of LSF's that change nothing yet.
const UNTOUCHED: [&str; 7] = [
    "lsb.calendars",
    "lsb.globalpolicies",
    "lsb.modules",
    "lsb.nqsmaps",
    "lsb.reasons",
    "lsb.threshold",
    "policy_config.json",
];

/// Tells of each of these files that is there.
fn untouched(files: &dyn Files, dir: &str, names: &[&str], diags: &mut Diags) {
    for name in names {
        let path = format!("{dir}/{name}");
        if files.exists(&path) {
            diags.notice(&Pos::whole(&path), NOT_ACTED_ON);
        }
    }
}

/// Our cluster: the one of lsf.shared whose file lists the local host, else the first whose
/// file can be read, else the first.
fn cluster_name(
    files: &dyn Files,
    confdir: &str,
    shared: &Shared,
    local_host: Option<&str>,
) -> Option<String> {
    let mut readable = None;
    for cluster in &shared.clusters {
        let path = format!("{confdir}/lsf.cluster.{}", cluster.name);
        if shared.clusters.len() == 1 {
            break;
        }
        if !files.exists(&path) {
            continue;
        }
        readable.get_or_insert(&cluster.name);
        let Some(local_host) = local_host else { break };
        // Mistakes in the files of other clusters are not ours to tell.
        let file = lsf_cluster::parse(files, &path, shared, &mut Diags::new());
        if file.is_some_and(|f| f.hosts.iter().any(|h| h.name.eq_ignore_ascii_case(local_host))) {
            return Some(cluster.name.clone());
        }
    }
    readable.or(shared.clusters.first().map(|c| &c.name)).cloned()
}

/// Candidates for master must be server hosts.
fn check_master_list(base: &BaseConf, diags: &mut Diags) {
    for variable in ["LSF_MASTER_LIST", "LSF_LOCAL_HOST"] {
        let Some(value) = base.lsf.values.get(variable) else { continue };
        for word in value.text.split_whitespace() {
            let server = |name: &str| base.cluster.hosts.iter().any(|h| h.name == name && h.server);
            let at = value.pos_of(word);
            match base.hosts.canonical(word) {
                Some(name) if variable != "LSF_MASTER_LIST" || server(name) => {}
                Some(_) => diags.error(&at, format!("host <{word}> is not a server host")),
                None => {
                    let known = base.cluster.hosts.iter().map(|h| h.name.as_str());
                    let text = format!("host <{word}> of {variable} is not in the cluster");
                    diags.add_near(Severity::Error, &at, text, nearest(word, known));
                }
            }
        }
    }
}

fn batch(files: &dyn Files, base: &BaseConf, diags: &mut Diags) -> Option<BatchConf> {
    let dir = base.lsf.batch_confdir(&base.name);
    let path = |file: &str| format!("{dir}/{file}");
    let unit = base.lsf.unit();
    // Every file is tried before giving up, so that one run names all that are amiss.
    let params = lsb_params::parse(files, &path("lsb.params"), diags);
    let hosts = lsb_hosts::parse(files, &path("lsb.hosts"), &base.shared, diags);
    let mut users = optional(files, &path("lsb.users"), diags, lsb_users::parse);
    if params.as_ref().is_some_and(|params| params.scheduler.user_groups.tree) {
        users.iter_mut().for_each(|users| lsb_users::keep_tree(users, diags));
    }
    let queues = lsb_queues::parse(files, &path("lsb.queues"), &base.shared, unit, diags);
    let unit_mb = base.lsf.requirement_unit_mb();
    let limits = |files: &dyn Files, path: &str, diags: &mut Diags| {
        lsb_resources::parse(files, path, (&base.shared, unit_mb), diags)
    };
    let resources = optional(files, &path("lsb.resources"), diags, limits);
    // without the file there are no profiles, which is nothing to tell
    let of_applications = path("lsb.applications");
    let applications = match files.exists(&of_applications) {
        true => lsb_applications::parse(files, &of_applications, &base.shared, unit, diags),
        false => None,
    };
    let of_classes = path("lsb.serviceclasses");
    let service_classes = match files.exists(&of_classes) {
        true => lsb_serviceclasses::parse(files, &of_classes, diags),
        false => None,
    };
    untouched(files, &dir, &UNTOUCHED, diags);
    let mut queues = queues?;
    let nqs = nqs::read(files, &path("lsb.nqs"), &mut queues, diags);
    Some(BatchConf {
        params: params?,
        hosts: hosts?,
        queues,
        nqs,
        nlb_servers: Vec::new(),
        applications: applications.unwrap_or_default(),
        users: users.unwrap_or_default(),
        resources: resources.unwrap_or_default(),
        service_classes: service_classes.unwrap_or_default(),
    })
}

/// Reads a file a cluster can do without.
fn optional<T>(
    files: &dyn Files,
    path: &str,
    diags: &mut Diags,
    parse: impl Fn(&dyn Files, &str, &mut Diags) -> Option<T>,
) -> Option<T> {
    if files.exists(path) {
        return parse(files, path, diags);
    }
    diags.notice(&Pos::whole(path), "is not there; nothing is limited by it");
    None
}
