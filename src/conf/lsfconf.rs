//! lsf.conf: `NAME=VALUE` lines, read as a table with typed getters.
//!
//! The file is also read by other programs line by line, so everything that can be said in plain
//! `NAME=value` is. Unlike LSF, which ignores unknown names, a name close to a known one is told as
//! an error; other unknown names are only warned of, because sites keep variables of their own
//! here. See lsf.conf(5).

use super::diag::{Diags, Severity};
use super::lexer::{self, shown};
use super::load::Files;
use super::names::NameTable;
use super::names::lsfconf::LSF_CONF;
use super::section::param;
use super::types::{RawParam, RawParams};
use super::units::{SizeUnit, size_kb};
use std::collections::BTreeMap;

/// LSF_LIM_PORT where lsf.conf says nothing.
pub const DEFAULT_LIM_PORT: u16 = 7869;
/// LSF_RES_PORT where lsf.conf says nothing.
pub const DEFAULT_RES_PORT: u16 = 6878;
/// LSB_MBD_PORT where lsf.conf says nothing.
pub const DEFAULT_MBD_PORT: u16 = 6881;
/// LSB_SBD_PORT where lsf.conf says nothing.
pub const DEFAULT_SBD_PORT: u16 = 6882;
/// LSF_IDENT_PORT where lsf.conf says nothing.
pub const DEFAULT_IDENT_PORT: u16 = 113;
/// LSB_MAILPROG where lsf.conf says nothing.
const MAIL_PROGRAM: &str = "/usr/lib/sendmail";
/// LSF_ENVDIR where the environment says nothing.
pub const DEFAULT_ENVDIR: &str = "/etc";
/// LSF_RUNDIR where lsf.conf says nothing.
pub const DEFAULT_RUNDIR: &str = "/run/lsf";
/// LSF_KEY_FILE where lsf.conf says nothing.
pub const DEFAULT_KEY_FILE: &str = "/etc/lsf.key";
/// MBD_HANG_TIME where lsf.conf says nothing, and at most, seconds.
const DEFAULT_HANG_SECS: u64 = 60;
const MAX_HANG_SECS: u64 = 86_400;
/// LSF_LOG_MAXSIZE where lsf.conf says nothing, bytes.
pub const DEFAULT_LOG_MAXSIZE: u64 = 10 << 20;

/// lsf.conf.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LsfConf {
    /// Path it was read from.
    pub path: String,
    /// LSF_ENVDIR: the directory it was read from.
    pub envdir: String,
    /// Every value by name.
    pub values: BTreeMap<String, RawParam>,
}

impl LsfConf {
    /// The value of `name`; None where it is not set or set to nothing.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(|v| v.text.as_str()).filter(|v| !v.is_empty())
    }

    /// Sets a value, as an environment variable of the same name does.
    pub fn set(&mut self, name: &str, value: &str) {
        self.values.entry(name.to_owned()).or_default().text = value.to_owned();
    }

    /// Whether `name` is `Y`, `YES` or `1`, in any case.
    pub fn yes(&self, name: &str) -> bool {
        self.get(name).is_some_and(|v| yes_no(v) == Some(true))
    }

    /// As [`LsfConf::yes`], with a default for an unset or unreadable value.
    pub fn yes_or(&self, name: &str, default: bool) -> bool {
        self.get(name).and_then(yes_no).unwrap_or(default)
    }

    /// A whole number, or `default` where it is unset or none.
    pub fn int(&self, name: &str, default: u64) -> u64 {
        self.get(name).and_then(|v| v.parse().ok()).unwrap_or(default)
    }

    /// The words of a blank-separated list.
    pub fn list(&self, name: &str) -> Vec<&str> {
        self.get(name).map(|v| v.split_whitespace().collect()).unwrap_or_default()
    }

    fn port(&self, name: &str, default: u16) -> u16 {
        self.get(name).and_then(|v| v.parse().ok()).filter(|&p| p != 0).unwrap_or(default)
    }

    /// LSF_LIM_PORT.
    pub fn lim_port(&self) -> u16 {
        self.port("LSF_LIM_PORT", DEFAULT_LIM_PORT)
    }

    /// LSF_RES_PORT.
    pub fn res_port(&self) -> u16 {
        self.port("LSF_RES_PORT", DEFAULT_RES_PORT)
    }

    /// LSB_MBD_PORT.
    pub fn mbd_port(&self) -> u16 {
        self.port("LSB_MBD_PORT", DEFAULT_MBD_PORT)
    }

    /// LSB_SBD_PORT.
    pub fn sbd_port(&self) -> u16 {
        self.port("LSB_SBD_PORT", DEFAULT_SBD_PORT)
    }

    /// LSF_CONFDIR, where lsf.shared, lsf.cluster.NAME and hosts are; defaults to the
    /// directory of lsf.conf.
    pub fn confdir(&self) -> &str {
        self.get("LSF_CONFDIR").unwrap_or(&self.envdir)
    }

    /// LSB_CONFDIR; defaults to LSF_CONFDIR/lsbatch.
    pub fn lsb_confdir(&self) -> String {
        match self.get("LSB_CONFDIR") {
            Some(dir) => dir.to_owned(),
            None => format!("{}/lsbatch", self.confdir()),
        }
    }

    /// LSB_CONFDIR/CLUSTER/configdir, where the lsb.* files are.
    pub fn batch_confdir(&self, cluster: &str) -> String {
        format!("{}/{cluster}/configdir", self.lsb_confdir())
    }

    /// LSB_SHAREDIR, if set.
    pub fn sharedir(&self) -> Option<&str> {
        self.get("LSB_SHAREDIR")
    }

    /// LSB_SHAREDIR/CLUSTER/logdir, where lsb.events and lsb.acct are.
    pub fn batch_logdir(&self, cluster: &str) -> Option<String> {
        Some(format!("{}/{cluster}/logdir", self.sharedir()?))
    }

    /// LSF_LOGDIR; None means syslog.
    pub fn logdir(&self) -> Option<&str> {
        self.get("LSF_LOGDIR")
    }

    /// LSF_LOG_MASK, LOG_WARNING by default.
    pub fn log_mask(&self) -> &str {
        self.get("LSF_LOG_MASK").unwrap_or("LOG_WARNING")
    }

    /// LSF_LOG_MAXSIZE: bytes of a daemon's log before it is turned over.
    pub fn log_maxsize(&self) -> u64 {
        let unset = DEFAULT_LOG_MAXSIZE;
        let kb = self.get("LSF_LOG_MAXSIZE").and_then(|v| size_kb(v, SizeUnit::KB));
        kb.and_then(|kb| kb.checked_mul(1024)).unwrap_or(unset)
    }

    /// LSF_BINDIR, if set.
    pub fn bindir(&self) -> Option<&str> {
        self.get("LSF_BINDIR")
    }

    /// LSF_SERVERDIR, if set.
    pub fn serverdir(&self) -> Option<&str> {
        self.get("LSF_SERVERDIR")
    }

    /// LSF_LIBDIR, if set.
    pub fn libdir(&self) -> Option<&str> {
        self.get("LSF_LIBDIR")
    }

    /// LSF_MASTER_LIST; empty means the order of lsf.cluster.
    pub fn master_list(&self) -> Vec<&str> {
        self.list("LSF_MASTER_LIST")
    }

    /// LSF_SERVER_HOSTS: hosts a client may ask.
    pub fn server_hosts(&self) -> Vec<&str> {
        self.list("LSF_SERVER_HOSTS")
    }

    /// LSF_STRIP_DOMAIN: the domains of `:d1:d2`.
    pub fn strip_domains(&self) -> Vec<String> {
        let value = self.get("LSF_STRIP_DOMAIN").unwrap_or_default();
        value.split(':').map(str::trim).filter(|d| !d.is_empty()).map(str::to_owned).collect()
    }

    /// LSF_UNIT_FOR_LIMITS.
    pub fn unit(&self) -> SizeUnit {
        self.get("LSF_UNIT_FOR_LIMITS").and_then(SizeUnit::parse).unwrap_or_default()
    }

    /// The unit of a bare number of mem, swp or tmp in a requirement string, in MB:
    /// LSF_UNIT_FOR_LIMITS where the file says so, else MB.
    pub fn requirement_unit_mb(&self) -> f64 {
        let unit = self.get("LSF_UNIT_FOR_LIMITS").and_then(SizeUnit::parse);
        unit.map_or(1.0, |unit| unit.kb() as f64 / 1024.0)
    }

    /// LSF_ALLOW_LOCAL_HOST: LSF_LOCAL_HOST of the environment is honoured.
    pub fn allow_local_host(&self) -> bool {
        self.yes("LSF_ALLOW_LOCAL_HOST")
    }

    /// LSF_LOCAL_HOST as lsf.conf has it; None where LSF_ALLOW_LOCAL_HOST is not Y.
    pub fn local_host(&self) -> Option<&str> {
        if self.allow_local_host() { self.get("LSF_LOCAL_HOST") } else { None }
    }

    /// LSF_RUNDIR: local sockets and journals.
    pub fn rundir(&self) -> &str {
        self.get("LSF_RUNDIR").unwrap_or(DEFAULT_RUNDIR)
    }

    /// MBD_HANG_TIME: seconds without a sign of life after which a daemon is ended; 0: never.
    pub fn mbd_hang_secs(&self) -> u64 {
        self.int("MBD_HANG_TIME", DEFAULT_HANG_SECS).min(MAX_HANG_SECS)
    }

    /// LSF_KEY_FILE: the cluster key.
    pub fn key_file(&self) -> &str {
        self.get("LSF_KEY_FILE").unwrap_or(DEFAULT_KEY_FILE)
    }

    /// LSF_ROOT_USER: root may do what an administrator may.
    pub fn root_user(&self) -> bool {
        self.yes("LSF_ROOT_USER")
    }

    /// LSF_AUTH: the ways in which users may prove who they are.
    pub fn auth(&self) -> std::str::SplitWhitespace<'_> {
        self.get("LSF_AUTH").unwrap_or("eauth").split_whitespace()
    }

    /// LSF_IDENT_PORT: where RFC 1413 servers answer.
    pub fn ident_port(&self) -> u16 {
        self.port("LSF_IDENT_PORT", DEFAULT_IDENT_PORT)
    }

    /// LSF_PERSONAL: a personal cluster, loopback only, one uid.
    pub fn personal(&self) -> bool {
        self.yes("LSF_PERSONAL")
    }

    /// The end of names of files of jobs below ~/.lsbatch: it tells a personal cluster's from those
    /// of its owner's other clusters, where a job may have the same number and second.
    pub fn job_file_tag(&self) -> String {
        let tag = || format!("-{:08x}", crc32fast::hash(self.confdir().as_bytes()));
        self.personal().then(tag).unwrap_or_default()
    }

    /// The program that mails about jobs: LSB_MAILPROG. LSB_JOB_REPORT_MAIL=N: there is none, and
    /// output without a file of its own is kept.
    pub fn mail_program(&self) -> &str {
        match self.yes_or("LSB_JOB_REPORT_MAIL", true) {
            true => self.get("LSB_MAILPROG").unwrap_or(MAIL_PROGRAM),
            false => "",
        }
    }

    /// LSB_STDOUT_DIRECT: output goes to its files while a job runs.
    pub fn stdout_direct(&self) -> bool {
        self.yes("LSB_STDOUT_DIRECT")
    }

    /// LSB_SIM_EXEC: jobs are not run but imagined; only in a personal cluster.
    pub fn sim_exec(&self) -> bool {
        self.personal() && self.yes("LSB_SIM_EXEC")
    }

    /// LSB_BSUB_PARSE_SCRIPT: `bsub FILE` reads the file's #BSUB lines.
    pub fn bsub_parse_script(&self) -> bool {
        self.yes("LSB_BSUB_PARSE_SCRIPT")
    }
}

/// What lsf.conf sets, with the directories that follow from it.
pub fn settings(lsf: &LsfConf) -> Vec<(String, String)> {
    let set = lsf.values.iter().map(|(name, v)| (name.clone(), v.text.clone()));
    let mut rows: Vec<(String, String)> = set.collect();
    let more = [
        ("LSF_CONFDIR", lsf.confdir().to_owned()),
        ("LSB_CONFDIR", lsf.lsb_confdir()),
        ("LSB_SHAREDIR", lsf.sharedir().unwrap_or_default().to_owned()),
        ("LSF_ENVDIR", lsf.envdir.clone()),
    ];
    for (name, value) in more {
        if rows.iter().all(|r| r.0 != name) {
            rows.push((name.to_owned(), value));
        }
    }
    rows.sort_unstable();
    rows
}

/// Reads ENVDIR/lsf.conf. None: it cannot be read.
pub fn parse(files: &dyn Files, envdir: &str, diags: &mut Diags) -> Option<LsfConf> {
    let envdir = envdir.strip_suffix('/').filter(|d| !d.is_empty()).unwrap_or(envdir);
    let path = format!("{envdir}/lsf.conf");
    let values = assignments(files, &path, &LSF_CONF, diags)?;
    let conf = LsfConf { path, envdir: envdir.to_owned(), values };
    check_values(&conf, diags);
    Some(conf)
}

/// Reads a file of `NAME=VALUE` lines whose known names are those of `table`; the last value of
/// a name counts. None: it cannot be read.
pub fn assignments(
    files: &dyn Files,
    path: &str,
    table: &NameTable,
    diags: &mut Diags,
) -> Option<RawParams> {
    let mut values = RawParams::new();
    for line in lexer::read_flat(files, path, diags)? {
        let Some((name, mut value)) = param(&line, diags) else { continue };
        unquote(&mut value);
        if value.text.contains('"') {
            let text =
                format!("bad value <{}> of {}: quotes are not paired", value.text, name.text);
            diags.error(&value.pos, text);
        }
        // Names are case-sensitive here, as they are in the environment.
        match table.find(&name.text) {
            Some(known) if known.name != name.text => {
                let text = format!("unknown parameter <{}>", shown(&name.text));
                diags.add_near(Severity::Error, &name.pos, text, Some(known.name));
            }
            // An empty value asks for nothing, so there is nothing to tell of it.
            Some(known) if known.acted || value.text.is_empty() => {}
            _ => {
                table.check(&name.text, &name.pos, diags);
            }
        }
        if values.contains_key(&name.text) {
            let text = format!("{} is given again; the last one counts", shown(&name.text));
            diags.warning(&name.pos, text);
        }
        values.insert(name.text, value);
    }
    Some(values)
}

/// Takes the quotes off `"a b"` or `'a b'`.
fn unquote(value: &mut RawParam) {
    for quote in ['"', '\''] {
        let inner = value.text.strip_prefix(quote).and_then(|t| t.strip_suffix(quote));
        if let Some(inner) = inner.filter(|t| !t.contains(quote)) {
            let inner = inner.trim().to_owned();
            value.pos = value.pos_at(value.text.find(inner.as_str()).unwrap_or(0));
            value.text = inner;
            return;
        }
    }
}

/// Variables that hold a port.
const PORTS: &[&str] =
    &["LSF_IDENT_PORT", "LSF_LIM_PORT", "LSF_RES_PORT", "LSB_MBD_PORT", "LSB_SBD_PORT"];
/// Words of LSF_AUTH.
const WAYS: &[&str] = &["eauth", "ident", "setuid"];
/// Variables that hold Y or N and are acted on.
const FLAGS: &[&str] = &[
    "LSB_BJOBS_CONSISTENT_EXIT_CODE",
    "LSB_BSUB_PARSE_SCRIPT",
    "LSB_SIM_EXEC",
    "LSF_ALLOW_LOCAL_HOST",
    "LSF_PERSONAL",
    "LSF_USE_HOSTEQUIV",
];
/// Values of LSF_LOG_MASK.
pub const LOG_MASKS: &[&str] = &[
    "LOG_EMERG",
    "LOG_ALERT",
    "LOG_CRIT",
    "LOG_ERR",
    "LOG_WARNING",
    "LOG_NOTICE",
    "LOG_INFO",
    "LOG_DEBUG",
    "LOG_DEBUG1",
    "LOG_DEBUG2",
    "LOG_DEBUG3",
];

/// Tells the values of acted-on variables that mean nothing.
fn check_values(conf: &LsfConf, diags: &mut Diags) {
    let mut check = |name: &str, ok: &dyn Fn(&str) -> bool, want: &str| {
        if let Some(value) = conf.values.get(name).filter(|v| !v.text.is_empty())
            && !ok(&value.text)
        {
            let text = format!("bad value <{}> of {name}: {want}", shown(&value.text));
            diags.error(&value.pos, text);
        }
    };
    for name in PORTS {
        check(name, &|v| v.parse::<u16>().is_ok_and(|p| p > 0), "a port is wanted");
    }
    for name in FLAGS {
        check(name, &|v| yes_no(v).is_some(), "Y or N is wanted");
    }
    let ways = |v: &str| v.split_whitespace().all(|word| WAYS.contains(&word));
    let seconds = |v: &str| v.parse::<u64>().is_ok_and(|n| n <= MAX_HANG_SECS);
    check("MBD_HANG_TIME", &seconds, "seconds are wanted, a day at most; 0 for never");
    check("LSF_AUTH", &ways, "eauth, ident or setuid is wanted");
    check("LSF_UNIT_FOR_LIMITS", &|v| SizeUnit::parse(v).is_some(), "a unit is wanted");
    check("LSF_LOG_MASK", &|v| LOG_MASKS.contains(&v), "LOG_ERR, LOG_WARNING ... is wanted");
    check("LSF_LOG_MAXSIZE", &|v| size_kb(v, SizeUnit::KB).is_some(), "a size is wanted");
    if conf.yes("LSB_SIM_EXEC") && !conf.personal() {
        let want = "only a personal cluster (LSF_PERSONAL=Y) may imagine its jobs";
        check("LSB_SIM_EXEC", &|_| false, want);
    }
}

/// Reads a yes or a no, in any of the spellings the files use.
pub fn yes_no(value: &str) -> Option<bool> {
    match value.to_ascii_uppercase().as_str() {
        "Y" | "YES" | "1" => Some(true),
        "N" | "NO" | "0" => Some(false),
        _ => None,
    }
}
