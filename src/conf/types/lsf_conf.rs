//! lsf.conf: its values by name, and what each means where it is not set. See lsf.conf(5).

use super::RawParam;
use crate::conf::units::{SizeUnit, size_kb, yes_no};
use crate::model::bind_job::BindPolicy;
use crate::model::limits::{LimitEnforcement, MemoryControl};
use crate::model::signals;
use std::collections::BTreeMap;

/// The word of LSF_HPC_EXTENSIONS by which records have the hosts of jobs as `n*host`.
pub const SHORT_EVENTFILE: &str = "SHORT_EVENTFILE";

/// LSF_LIM_PORT where lsf.conf says nothing.
pub const DEFAULT_LIM_PORT: u16 = 7869;

/// LSF_RES_PORT where lsf.conf says nothing.
pub const DEFAULT_RES_PORT: u16 = 6878;

/// LSB_MBD_PORT where lsf.conf says nothing.
pub const DEFAULT_MBD_PORT: u16 = 6881;

/// LSB_SBD_PORT where lsf.conf says nothing.
pub const DEFAULT_SBD_PORT: u16 = 6882;

/// LSF_NLB_PORT where lsf.conf says nothing.
pub const DEFAULT_NLB_PORT: u16 = 6883;

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

/// LSF_PIM_SLEEPTIME where lsf.conf says nothing, seconds.
const DEFAULT_PIM_SLEEPTIME: u64 = 30;

/// MBD_HANG_TIME where lsf.conf says nothing, and at most, seconds.
const DEFAULT_HANG_SECS: u64 = 60;

pub(crate) const MAX_HANG_SECS: u64 = 86_400;
/// Longest time of pam(1), seconds.
pub const MAX_PAM_SECS: u64 = 365 * 86_400;

/// LSF_LOG_MAXSIZE where lsf.conf says nothing, bytes.
pub const DEFAULT_LOG_MAXSIZE: u64 = 10 << 20;

/// LSF_PAM_RUSAGE_UPD_FACTOR where it is not set, and at most, seconds for each task.
pub const PAM_FACTOR: f64 = 0.01;
const PAM_FACTOR_MAX: f64 = 100.0;

/// A value of LSF_PAM_RUSAGE_UPD_FACTOR: seconds for each task, 0 to 100.
pub fn pam_factor(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|factor| (0.0..=PAM_FACTOR_MAX).contains(factor))
}

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

    /// The value like [`LsfConf::yes`], with a default for an unset or unreadable one.
    pub fn yes_or(&self, name: &str, default: bool) -> bool {
        self.get(name).and_then(yes_no).unwrap_or(default)
    }

    /// Is this a word of LSF_HPC_EXTENSIONS?
    pub fn has_extension(&self, word: &str) -> bool {
        self.list("LSF_HPC_EXTENSIONS").contains(&word)
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

    /// LSF_NLB_PORT.
    pub fn nlb_port(&self) -> u16 {
        self.port("LSF_NLB_PORT", DEFAULT_NLB_PORT)
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

    /// LSB_LOCALDIR, if set.
    pub fn localdir(&self) -> Option<&str> {
        self.get("LSB_LOCALDIR")
    }

    /// LSB_LOCALDIR/CLUSTER/logdir, where the first master host has its primary log.
    pub fn local_logdir(&self, cluster: &str) -> Option<String> {
        Some(format!("{}/{cluster}/logdir", self.localdir()?))
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

    /// LSF_PROCESS_TRACKING: jobs have control groups, and no process outlives its job.
    pub fn process_tracking(&self) -> bool {
        self.yes_or("LSF_PROCESS_TRACKING", true)
    }

    /// Whether LSB_RESOURCE_ENFORCE names this resource.
    pub fn enforces(&self, resource: &str) -> bool {
        let words = self.get("LSB_RESOURCE_ENFORCE").unwrap_or_default();
        words.split_whitespace().any(|word| word.eq_ignore_ascii_case(resource))
    }

    /// LSB_JOB_CPULIMIT, LSB_JOB_MEMLIMIT, LSB_MEMLIMIT_ENFORCE, LSB_RESOURCE_ENFORCE: who
    /// enforces limits. With the last one those of memory before it change nothing, nor does
    /// LSB_MEMLIMIT_ENF_CONTROL.
    pub fn limit_enforcement(&self) -> LimitEnforcement {
        let cpu = self.get("LSB_JOB_CPULIMIT").and_then(yes_no);
        let by_group = self.enforces("memory");
        let of_job = by_group || self.yes("LSB_JOB_MEMLIMIT");
        LimitEnforcement {
            cpu_of_job: cpu != Some(false),
            cpu_of_process: cpu != Some(true),
            memory_of_job: of_job || self.yes("LSB_MEMLIMIT_ENFORCE"),
            memory_of_process: !of_job,
            memory_by_group: by_group,
            memory_control: self
                .get("LSB_MEMLIMIT_ENF_CONTROL")
                .and_then(MemoryControl::parse)
                .filter(|_| !by_group),
        }
    }

    /// LSF_BIND_JOB: how jobs on one host are bound to processors.
    pub fn bind_job(&self) -> BindPolicy {
        self.get("LSF_BIND_JOB").and_then(BindPolicy::of_word).unwrap_or_default()
    }

    /// LSB_SIGSTOP: the number of the signal that suspends every job.
    pub fn stop_signal(&self) -> Option<i32> {
        self.get("LSB_SIGSTOP").and_then(signals::number)
    }

    /// The command that copies files where res does not: LSF_REMOTE_COPY_CMD, which some
    /// documents call LSF_REMOTE_COPY_COMMAND.
    pub fn remote_copy_command(&self) -> Option<&str> {
        self.get("LSF_REMOTE_COPY_CMD").or_else(|| self.get("LSF_REMOTE_COPY_COMMAND"))
    }

    /// Shortest time between two measurements of a job's usage, seconds: LSF_PIM_SLEEPTIME where
    /// LSF_PIM_SLEEPTIME_UPDATE is Y.
    pub fn pim_interval(&self) -> u64 {
        let set = self.yes("LSF_PIM_SLEEPTIME_UPDATE");
        if set { self.int("LSF_PIM_SLEEPTIME", DEFAULT_PIM_SLEEPTIME) } else { 0 }
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

    /// The directory below which each job has one of its own, and the variable in which the job
    /// finds it; empty none. LSB_JOB_TMPDIR, LSF_TMPDIR, LSB_SET_TMPDIR; `None`: jobs have none.
    pub fn job_tmpdir(&self) -> Option<(&str, &str)> {
        let variable = match self.get("LSB_SET_TMPDIR").map(|value| (value, yes_no(value))) {
            None | Some((_, Some(false))) => "",
            Some((_, Some(true))) => "TMPDIR",
            Some((name, None)) => name,
        };
        let base = self.get("LSB_JOB_TMPDIR").or_else(|| self.get("LSF_TMPDIR"));
        match base {
            None if variable.is_empty() => None,
            base => Some((base.unwrap_or("/tmp"), variable)),
        }
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
