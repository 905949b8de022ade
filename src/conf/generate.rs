//! Writes the classic configuration of a new cluster: what `lsf up` and `lsfinstall` put on disk.
//!
//! Pure: it gives paths, texts and modes. The files are ordinary ones, with comments that teach an
//! administrator; nothing about them is special afterwards. The texts are in `templates/`, with
//! `@NAME@` where a value goes. See lsf(1) and lsfinstall(8).

use super::section::name_fault;
use super::types::Mxj;
use super::types::{
    DEFAULT_KEY_FILE, DEFAULT_LIM_PORT, DEFAULT_MBD_PORT, DEFAULT_RES_PORT, DEFAULT_RUNDIR,
    DEFAULT_SBD_PORT,
};
use std::fmt::Write;

/// Most hosts of a personal cluster.
pub const MAX_PERSONAL_HOSTS: u32 = 1_000;
/// Hosts on one loopback net of 256 addresses, the first and the last left out.
const HOSTS_PER_NET: u32 = 254;

/// The data from which the files of a cluster are generated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SitePlan {
    /// LSF_TOP, absolute.
    pub top: String,
    /// Name of the cluster.
    pub cluster: String,
    /// Names of the administrators; the first is the primary one.
    pub admins: Vec<String>,
    /// The hosts, and whether they run jobs.
    pub hosts: Vec<(String, bool)>,
    /// LSF_MASTER_LIST.
    pub masters: Vec<String>,
    /// One user on one machine: the hosts are at 127.0.B.1, 127.0.B.2 ... for this B.
    pub personal: Option<u8>,
    /// LSF_LIM_PORT.
    pub lim_port: u16,
    /// LSF_RES_PORT.
    pub res_port: u16,
    /// LSB_MBD_PORT.
    pub mbd_port: u16,
    /// LSB_SBD_PORT.
    pub sbd_port: u16,
    /// LSF_RUNDIR.
    pub rundir: String,
    /// LSF_KEY_FILE.
    pub key_file: String,
    /// MXJ of every host.
    pub mxj: Mxj,
    /// LSB_SIM_EXEC=Y.
    pub sim_exec: bool,
}

impl SitePlan {
    /// A site of several users in `top`, without administrators and hosts yet.
    pub fn site(top: &str) -> Self {
        SitePlan {
            top: top.to_owned(),
            cluster: String::new(),
            admins: Vec::new(),
            hosts: Vec::new(),
            masters: Vec::new(),
            personal: None,
            lim_port: DEFAULT_LIM_PORT,
            res_port: DEFAULT_RES_PORT,
            mbd_port: DEFAULT_MBD_PORT,
            sbd_port: DEFAULT_SBD_PORT,
            rundir: DEFAULT_RUNDIR.to_owned(),
            key_file: DEFAULT_KEY_FILE.to_owned(),
            mxj: Mxj::Cpus,
            sim_exec: false,
        }
    }

    /// A personal cluster of `hosts` hosts (host1, host2 ...) in `top`, with the default ports.
    pub fn personal(top: &str, admin: &str, hosts: u32) -> Self {
        let names: Vec<String> = (1..=hosts).map(|n| format!("host{n}")).collect();
        SitePlan {
            cluster: "personal".to_owned(),
            admins: vec![admin.to_owned()],
            masters: names.iter().take(MAX_MASTERS).cloned().collect(),
            hosts: names.into_iter().map(|name| (name, true)).collect(),
            personal: Some(0),
            rundir: format!("{top}/run"),
            key_file: format!("{top}/conf/lsf.key"),
            ..SitePlan::site(top)
        }
    }

    /// Why no configuration can be written from it; None: it can.
    pub fn fault(&self) -> Option<String> {
        for dir in [&self.top, &self.rundir, &self.key_file] {
            // These would end the value, or be taken as a continuation, in lsf.conf.
            if !dir.starts_with('/') || dir.contains(['"', '\\']) || dir.contains(char::is_control)
            {
                return Some(format!("<{dir}> cannot be written into lsf.conf"));
            }
        }
        let slash = self.cluster.contains('/').then_some("it is part of file names");
        if let Some(why) = slash.or(name_fault(&self.cluster)) {
            return Some(format!("<{}> cannot name a cluster: {why}", self.cluster));
        }
        for admin in &self.admins {
            if let Some(why) = name_fault(admin) {
                return Some(format!("<{admin}> cannot name a user: {why}"));
            }
        }
        for (host, _) in &self.hosts {
            let fine = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
            if name_fault(host).is_some() || host.starts_with('-') || !host.chars().all(fine) {
                return Some(format!("<{host}> cannot name a host"));
            }
        }
        let count = self.hosts.len() as u32;
        let net = u32::from(self.personal.unwrap_or(0));
        let last = net + count.saturating_sub(1) / HOSTS_PER_NET;
        let many = self.personal.is_some() && (count > MAX_PERSONAL_HOSTS || last > 255);
        if count == 0 || many {
            return Some(format!("a personal cluster has 1 to {MAX_PERSONAL_HOSTS} hosts"));
        }
        None
    }

    /// The address of host `number` (from 1) of a personal cluster.
    pub fn address(&self, number: u32) -> String {
        let index = number.saturating_sub(1);
        let net = u32::from(self.personal.unwrap_or(0)) + index / HOSTS_PER_NET;
        format!("127.0.{net}.{}", 1 + index % HOSTS_PER_NET)
    }
}

/// The files of a cluster: path below its directory, text, mode. Ask [`SitePlan::fault`] first.
pub fn generate(spec: &SitePlan) -> Vec<(String, String, u32)> {
    let values = values(spec);
    let configdir = format!("conf/lsbatch/{}/configdir", spec.cluster);
    let cluster_file = format!("conf/lsf.cluster.{}", spec.cluster);
    let batch = |name: &str| format!("{configdir}/{name}");
    let files = [
        ("conf/lsf.conf".to_owned(), include_str!("templates/lsf.conf")),
        ("conf/lsf.shared".to_owned(), include_str!("templates/lsf.shared")),
        (cluster_file, include_str!("templates/lsf.cluster")),
        ("conf/hosts".to_owned(), include_str!("templates/hosts")),
        (batch("lsb.params"), include_str!("templates/lsb.params")),
        (batch("lsb.hosts"), include_str!("templates/lsb.hosts")),
        (batch("lsb.queues"), include_str!("templates/lsb.queues")),
        (batch("lsb.users"), include_str!("templates/lsb.users")),
        (batch("lsb.resources"), include_str!("templates/lsb.resources")),
        ("conf/profile.lsf".to_owned(), include_str!("templates/profile.lsf")),
        ("conf/cshrc.lsf".to_owned(), include_str!("templates/cshrc.lsf")),
    ];
    files.into_iter().map(|(path, text)| (path, fill(text, &values), 0o644)).collect()
}

/// Most candidates for master of a personal cluster that are written down.
const MAX_MASTERS: usize = 3;

/// The part of lsf.conf that a personal cluster alone has.
const PERSONAL: &str = include_str!("templates/personal");
/// The part of lsf.conf that a site has instead.
const SITE: &str = include_str!("templates/site");

/// The hosts of a personal cluster are near each other: a master that has gone without a word
/// is replaced after 5 s of silence and PROBE_TIMEOUT.
const QUICK: &str = "\
# A silent master is given up after so many EXINTERVALs, and the next candidate waits no longer.
HOST_INACTIVITY_LIMIT = 1
MASTER_INACTIVITY_LIMIT = 0
RETRY_LIMIT = 0
";

/// The values for `@NAME@` in the templates.
fn values(spec: &SitePlan) -> Vec<(&'static str, String)> {
    let top = spec.top.as_str();
    let personal = spec.personal.is_some();
    let own = |mine: &str, sites: &str| if personal { mine.to_owned() } else { sites.to_owned() };
    let mxj = match spec.mxj {
        Mxj::Unlimited => "()".to_owned(),
        Mxj::Cpus => "!".to_owned(),
        Mxj::Slots(slots) => slots.to_string(),
    };
    let sim_exec = match (personal, spec.sim_exec) {
        (false, _) => "",
        (true, true) => {
            "# Jobs are not run but imagined: for measurements of the scheduler.\nLSB_SIM_EXEC=Y"
        }
        _ => "# LSB_SIM_EXEC=Y imagines jobs instead of running them, for measurements.",
    };
    let mut hosts = String::new();
    let mut addresses = String::new();
    for ((name, server), number) in spec.hosts.iter().zip(1u32..) {
        // Writing to a String cannot fail.
        let server = u8::from(*server);
        let _ = writeln!(hosts, "{name:<10} !       !      {server}        -     ()");
        if personal {
            let _ = writeln!(addresses, "{:<15} {name}", spec.address(number));
        }
    }
    let path = |sub: &str| shell_quoted(&format!("{top}/{sub}"));
    vec![
        ("TOP", top.to_owned()),
        ("CLUSTER", spec.cluster.clone()),
        ("ADMINS", spec.admins.join(" ")),
        ("BINDIR_Q", path("bin")),
        ("SERVERDIR_Q", path("etc")),
        ("ENVDIR_Q", path("conf")),
        ("LIBDIR_Q", path("lib")),
        ("MASTERS", spec.masters.join(" ")),
        ("RUNDIR", spec.rundir.clone()),
        ("KEYFILE", spec.key_file.clone()),
        ("LIM_PORT", spec.lim_port.to_string()),
        ("RES_PORT", spec.res_port.to_string()),
        ("MBD_PORT", spec.mbd_port.to_string()),
        ("SBD_PORT", spec.sbd_port.to_string()),
        ("RESTART", own("`lsf down` and `lsf up`", "`lsf_daemons restart` on every host")),
        ("KIND", own(PERSONAL, SITE).trim_end().to_owned()),
        (
            "WHERE",
            own(
                "These hosts are all this machine, each on a loopback address of its own.",
                "Hosts that are not here are looked up in /etc/hosts and by the name service.",
            ),
        ),
        ("DIRECT", own("Y", "N")),
        ("SIM_EXEC", sim_exec.to_owned()),
        ("MXJ", mxj),
        ("QUICK", own(QUICK, "")),
        ("HOSTS", hosts),
        ("ADDRESSES", addresses.trim_end().to_owned()),
    ]
}

/// Puts the values into a template; `@` that names none stays.
fn fill(template: &str, values: &[(&'static str, String)]) -> String {
    let mut out = String::with_capacity(template.len() * 2);
    for line in template.split_inclusive('\n') {
        let filled = fill_line(line, values);
        // Programs that read lsf.conf as shell text need quotes round blanks.
        match filled.trim_end().split_once('=') {
            Some((name, value)) if is_assignment(name) && needs_quotes(value) => {
                out.push_str(&format!("{name}=\"{value}\"\n"));
            }
            _ => out.push_str(&filled),
        }
    }
    out
}

fn fill_line(line: &str, values: &[(&'static str, String)]) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('@') {
        out.push_str(before);
        let found = after.split_once('@').and_then(|(name, tail)| {
            values.iter().find(|(known, _)| *known == name).map(|(_, value)| (value, tail))
        });
        match found {
            Some((value, tail)) => {
                out.push_str(value);
                rest = tail;
            }
            None => {
                out.push('@');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

/// Whether this is the name of a `NAME=value` line of lsf.conf.
fn is_assignment(name: &str) -> bool {
    name.starts_with("LS") && name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_')
}

fn needs_quotes(value: &str) -> bool {
    let quoted = value.starts_with(['"', '\'']);
    !quoted && value.contains(|c: char| c.is_whitespace() || "#'$&;()<>|*?`!".contains(c))
}

/// A word as every shell reads it back.
pub fn shell_quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%".contains(c);
    if text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conf::testing::MapFiles;
    use crate::conf::{self, Severity};

    fn files(spec: &SitePlan) -> MapFiles {
        assert_eq!(spec.fault(), None);
        let mut files = MapFiles::default();
        for (path, text, mode) in generate(spec) {
            assert_eq!(mode, 0o644);
            files.put(&format!("{}/{path}", spec.top), &text);
        }
        files
    }

    fn load(spec: &SitePlan) -> conf::ClusterConf {
        let envdir = format!("{}/conf", spec.top);
        let (conf, diags) = conf::load(&files(spec), &envdir);
        let told: Vec<String> = diags.iter().map(|d| d.to_string()).collect();
        assert!(told.is_empty(), "{told:#?}");
        conf.expect("a clean tree loads")
    }

    #[test]
    fn a_generated_tree_reads_back_without_a_word() {
        let mut spec = SitePlan::personal("/home/u/.lsf", "u", 3);
        spec.personal = Some(7);
        (spec.lim_port, spec.mbd_port, spec.sim_exec) = (7001, 7003, true);
        let conf = load(&spec);
        assert_eq!(conf.base.name, "personal");
        assert_eq!(conf.base.cluster.admins, ["u"]);
        assert_eq!(conf.server_hosts().collect::<Vec<_>>(), ["host1", "host2", "host3"]);
        assert_eq!(
            conf.base.hosts.addrs("host3"),
            ["127.0.7.3".parse::<core::net::IpAddr>().unwrap()]
        );
        let lsf = &conf.base.lsf;
        assert_eq!((lsf.lim_port(), lsf.res_port(), lsf.mbd_port()), (7001, 6878, 7003));
        assert_eq!(lsf.local_host(), Some("host1"));
        assert_eq!(lsf.key_file(), "/home/u/.lsf/conf/lsf.key");
        let shared = format!("{}/work", spec.top);
        assert_eq!(lsf.batch_logdir("personal").unwrap(), shared + "/personal/logdir");
        assert_eq!((lsf.personal(), lsf.sim_exec()), (true, true));
        assert_eq!(lsf.unit(), conf::SizeUnit::MB);
        let p = &conf.batch.params;
        assert_eq!((p.mbd_sleep_time, p.sbd_sleep_time, p.job_accept_interval), (10, 7, 0));
        let queues: Vec<_> = conf.batch.queues.iter().map(|q| (&q.name[..], q.priority)).collect();
        assert_eq!(queues, [("short", 40), ("normal", 30), ("idle", 20)]);
        assert_eq!(conf.host_slots("host2", None, None, 8), Some(8));
    }

    #[test]
    fn slots_and_names_are_taken_over() {
        let mut spec = SitePlan::personal("/tmp/a b/it's #1", "domain.user", 1);
        spec.mxj = Mxj::Slots(12);
        spec.cluster = "c1".to_owned();
        let conf = load(&spec);
        assert_eq!(conf.host_slots("host1", None, None, 8), Some(12));
        assert_eq!(conf.base.lsf.logdir(), Some("/tmp/a b/it's #1/log"));
        assert!(!conf.base.lsf.sim_exec());
        spec.mxj = Mxj::Unlimited;
        assert_eq!(load(&spec).host_slots("host1", None, None, 8), None);
    }

    #[test]
    fn many_hosts_use_several_nets() {
        let spec = SitePlan::personal("/t", "u", 600);
        let conf = load(&spec);
        assert_eq!(conf.base.hosts.entries().len(), 600);
        assert_eq!(spec.address(254), "127.0.0.254");
        assert_eq!(spec.address(255), "127.0.1.1");
    }

    #[test]
    fn path_that_lsf_conf_cannot_hold_is_refused() {
        let fault = |f: fn(&mut SitePlan)| {
            let mut spec = SitePlan::personal("/t", "u", 1);
            f(&mut spec);
            spec.fault().is_some()
        };
        assert!(fault(|s| s.top = "relative".into()));
        assert!(fault(|s| s.top = "/a\nb".into()));
        assert!(fault(|s| s.rundir = "/a\"b".into()));
        assert!(fault(|s| s.cluster = "a b".into()));
        assert!(fault(|s| s.cluster = "../b".into()));
        assert!(fault(|s| s.admins = vec!["all".into()]));
        assert!(fault(|s| s.hosts.clear()));
        assert!(fault(|s| {
            *s = SitePlan { personal: Some(255), ..SitePlan::personal("/t", "u", 300) };
        }));
        assert!(fault(|s| s.hosts.push(("a/b".to_owned(), true))));
        assert!(!fault(|_| ()));
    }

    #[test]
    fn the_profile_survives_odd_directories() {
        let text = |name: &str| {
            let files = generate(&SitePlan::personal("/tmp/a b/it's", "u", 1));
            files.into_iter().find(|(path, ..)| path.ends_with(name)).map(|(_, t, _)| t).unwrap()
        };
        assert!(text("profile.lsf").contains("LSF_ENVDIR='/tmp/a b/it'\\''s/conf'\n"));
        assert!(text("cshrc.lsf").contains("setenv LSF_BINDIR '/tmp/a b/it'\\''s/bin'\n"));
        assert!(!text("lsf.conf").contains('@'));
    }

    #[test]
    fn a_mistake_in_a_generated_file_is_told() {
        let spec = SitePlan::personal("/t", "u", 1);
        let mut files = files(&spec);
        let path = "/t/conf/lsbatch/personal/configdir/lsb.queues";
        files.edit(path, "PRIORITY     = 30", "PRIORTIY     = 30");
        let (conf, diags) = conf::load(&files, "/t/conf");
        assert_eq!(conf, None);
        assert_eq!(diags.len(), 1, "{diags:?}");
        assert_eq!(diags[0].severity, Severity::Error);
        assert_eq!(
            diags[0].to_string(),
            format!(
                "{path}:14:1: unknown keyword <PRIORTIY> in section Queue; \
                 did you mean <PRIORITY>?"
            )
        );
    }
}
