//! The configuration of a test's cluster, as the text of its files.

use super::Cluster;
use crate::conf::load;
use crate::conf::testing::MapFiles;
use crate::conf::types::ClusterConf;
use crate::model::topology::Topology;
use std::collections::BTreeMap;
use std::fmt::Write;

const ENVDIR: &str = "/conf";
const BATCH: &str = "/conf/lsbatch/c1/configdir";

/// Configuration files under construction. Where nothing is said there are no hosts, the queue
/// `normal` of priority 30, the administrator `admin` and no pause between two starts on a host.
#[derive(Clone, Debug, Default)]
pub struct ClusterBuilder {
    /// Name, slots, RESOURCES.
    hosts: Vec<(String, u32, String)>,
    /// The processor units of hosts, by name.
    topologies: BTreeMap<String, String>,
    queues: Vec<(String, String)>,
    params: Vec<(String, String)>,
    lsf_conf: Vec<String>,
    resources: Vec<String>,
    resource_map: Vec<String>,
    lsb_hosts: Option<String>,
    lsb_users: String,
    applications: String,
    /// Whole files, by name, in the place of those made of the lines above.
    files: BTreeMap<String, String>,
}

/// A cluster to be configured.
pub fn cluster() -> ClusterBuilder {
    ClusterBuilder::default().param("DEFAULT_QUEUE = normal").param("JOB_ACCEPT_INTERVAL = 0")
}

impl ClusterBuilder {
    /// Adds so many hosts of so many slots and processors: h1, h2 and so on.
    pub fn hosts(mut self, count: usize, slots: u32) -> ClusterBuilder {
        for _ in 0..count {
            self.hosts.push((format!("h{}", self.hosts.len() + 1), slots, String::new()));
        }
        self
    }

    /// A host of another name than `h1`, `h2`, ...
    pub fn host(mut self, name: &str, slots: u32) -> ClusterBuilder {
        self.hosts.push((name.to_owned(), slots, String::new()));
        self
    }

    /// RESOURCES of a host in lsf.cluster.
    pub fn host_resources(mut self, host: &str, words: &str) -> ClusterBuilder {
        let row = self.hosts.iter_mut().find(|row| row.0 == host);
        row.unwrap_or_else(|| panic!("no host {host}")).2 = words.to_owned();
        self
    }

    /// The processor units of a host, as the text that LIM tells. Such a host has AFFINITY=Y.
    pub fn topology(mut self, host: &str, text: &str) -> ClusterBuilder {
        assert!(Topology::parse(text).is_some_and(|units| !units.is_empty()), "{text}");
        self.topologies.insert(host.to_owned(), text.to_owned());
        self
    }

    /// The processor units that LIM tells of a host; empty: none.
    pub fn topology_of(&self, host: &str) -> &str {
        self.topologies.get(host).map_or("", String::as_str)
    }

    /// A queue: its lines, parted by newlines or semicolons.
    pub fn queue(mut self, name: &str, lines: &str) -> ClusterBuilder {
        self.queues.push((name.to_owned(), lines.replace(';', "\n")));
        self
    }

    /// A line of lsb.params; the last one of a name holds.
    pub fn param(mut self, line: &str) -> ClusterBuilder {
        let (name, value) = line.split_once('=').unwrap_or_else(|| panic!("{line}"));
        let (name, value) = (name.trim().to_owned(), value.trim().to_owned());
        self.params.retain(|param| param.0 != name);
        self.params.push((name, value));
        self
    }

    /// A line of lsf.conf.
    pub fn lsf_conf(mut self, line: &str) -> ClusterBuilder {
        self.lsf_conf.push(line.to_owned());
        self
    }

    /// A row of lsf.shared: name, type, interval, increasing.
    pub fn resource(mut self, row: &str) -> ClusterBuilder {
        self.resources.push(row.to_owned());
        self
    }

    /// A row of the ResourceMap of lsf.cluster.
    pub fn resource_map(mut self, row: &str) -> ClusterBuilder {
        self.resource_map.push(row.to_owned());
        self
    }

    /// lsb.hosts, instead of the slots that [`ClusterBuilder::hosts`] gave.
    pub fn lsb_hosts(mut self, text: &str) -> ClusterBuilder {
        self.lsb_hosts = Some(text.to_owned());
        self
    }

    /// lsb.users.
    pub fn lsb_users(mut self, text: &str) -> ClusterBuilder {
        self.lsb_users = text.to_owned();
        self
    }

    /// An application profile: its lines, parted by newlines or semicolons.
    pub fn application(mut self, name: &str, lines: &str) -> ClusterBuilder {
        let lines = lines.replace(';', "\n");
        let section = format!("Begin Application\nNAME = {name}\n{lines}\nEnd Application\n");
        self.applications.push_str(&section);
        self
    }

    /// A whole file by its name, `lsb.queues`, in the place of what other methods put there.
    pub fn file(mut self, name: &str, text: &str) -> ClusterBuilder {
        self.files.insert(name.to_owned(), text.to_owned());
        self
    }

    /// mbatchd runs and every host has reported.
    pub fn up(self) -> Cluster {
        Cluster::start(self)
    }

    /// The configuration as read from the files; a mistake in them is a mistake of the test.
    pub fn read(&self) -> ClusterConf {
        let mut files = MapFiles::one(&format!("{ENVDIR}/lsf.conf"), self.lsf_conf_text());
        files.at = Some(super::START_SECS);
        files.put(&format!("{ENVDIR}/lsf.shared"), self.lsf_shared());
        files.put(&format!("{ENVDIR}/lsf.cluster.c1"), self.lsf_cluster());
        files.put(&format!("{BATCH}/lsb.params"), self.lsb_params());
        files.put(&format!("{BATCH}/lsb.hosts"), self.lsb_hosts_text());
        files.put(&format!("{BATCH}/lsb.queues"), self.lsb_queues());
        files.put(&format!("{BATCH}/lsb.users"), &self.lsb_users);
        files.put(&format!("{BATCH}/lsb.applications"), &self.applications);
        for (name, text) in &self.files {
            let folder = if name.starts_with("lsb.") { BATCH } else { ENVDIR };
            files.put(&format!("{folder}/{name}"), text);
        }
        let (conf, diags) = load(&files, ENVDIR);
        let told = diags.iter().map(|d| d.to_string()).collect::<Vec<_>>().join("\n");
        conf.unwrap_or_else(|| panic!("{told}"))
    }

    /// Name and slots of each host.
    pub fn each_host(&self) -> impl Iterator<Item = (&str, u32)> {
        self.hosts.iter().map(|(name, slots, _)| (name.as_str(), *slots))
    }

    fn lsf_conf_text(&self) -> String {
        let mut text = format!("LSF_CONFDIR={ENVDIR}\nLSB_CONFDIR={ENVDIR}/lsbatch\n");
        self.lsf_conf.iter().for_each(|line| _ = writeln!(text, "{line}"));
        text
    }

    fn lsf_shared(&self) -> String {
        let mut text = "Begin Cluster\nClusterName\nc1\nEnd Cluster\n\
            Begin HostType\nTYPENAME\nLINUX\nEnd HostType\n\
            Begin HostModel\nMODELNAME CPUFACTOR ARCHITECTURE\nDEFAULT 1.0 ()\nEnd HostModel\n\
            Begin Resource\nRESOURCENAME TYPE INTERVAL INCREASING DESCRIPTION\n"
            .to_owned();
        self.resources.iter().for_each(|row| _ = writeln!(text, "{row} (of a test)"));
        text + "End Resource\n"
    }

    fn lsf_cluster(&self) -> String {
        let mut text = "Begin ClusterAdmins\nAdministrators = admin\nEnd ClusterAdmins\n\
            Begin Host\nHOSTNAME model type server RESOURCES\n"
            .to_owned();
        for (name, _, resources) in &self.hosts {
            let _ = writeln!(text, "{name} DEFAULT LINUX 1 ({resources})");
        }
        text += "End Host\nBegin ResourceMap\nRESOURCENAME LOCATION\n";
        self.resource_map.iter().for_each(|row| _ = writeln!(text, "{row}"));
        text + "End ResourceMap\n"
    }

    fn lsb_params(&self) -> String {
        let lines = self.params.iter().map(|(name, value)| format!("{name} = {value}\n"));
        format!("Begin Parameters\n{}End Parameters\n", lines.collect::<String>())
    }

    fn lsb_hosts_text(&self) -> String {
        let affinity = |name: &String| if self.topologies.contains_key(name) { "Y" } else { "N" };
        let row = |name: &String, slots: &u32| match self.topologies.is_empty() {
            true => format!("{name} {slots}\n"),
            false => format!("{name} {slots} {}\n", affinity(name)),
        };
        let head = if self.topologies.is_empty() { "" } else { "AFFINITY" };
        let rows = self.hosts.iter().map(|(name, slots, _)| row(name, slots));
        let rows = rows.collect::<String>();
        let own = || format!("Begin Host\nHOST_NAME MXJ {head}\n{rows}End Host\n");
        self.lsb_hosts.clone().unwrap_or_else(own)
    }

    fn lsb_queues(&self) -> String {
        let normal = ("normal".to_owned(), "PRIORITY = 30".to_owned());
        let given = self.queues.iter().any(|queue| queue.0 == normal.0);
        let all = self.queues.iter().chain((!given).then_some(&normal));
        let queue = |(name, lines): &(String, String)| {
            format!("Begin Queue\nQUEUE_NAME = {name}\n{lines}\nEnd Queue\n")
        };
        all.map(queue).collect()
    }
}
