//! The reader of lsf.conf: `NAME=VALUE` lines into a [`LsfConf`].
//!
//! The file is also read by other programs line by line, so everything that can be said in plain
//! `NAME=value` is. Unlike LSF, which ignores unknown names, a name close to a known one is told as
//! an error; other unknown names are only warned of, because sites keep variables of their own
//! here. See lsf.conf(5).

use super::diag::{Diags, Severity, WORD_NOT_ACTED_ON};
use super::files::Files;
use super::lexer::{self, shown};
use super::names::NameTable;
use super::names::lsf_conf::LSF_CONF;
use super::section::param;
use super::types::{LsfConf, MAX_HANG_SECS, MAX_PAM_SECS, RawParam, RawParams, pam_factor};
use super::units::{SizeUnit, size_kb, yes_no};
use crate::lang::command_words::command_words;
use crate::model::bind_job::BindPolicy;
use crate::model::limits::MemoryControl;
use crate::model::signals;

/// The parameters of lsf.conf, with the directories that follow from them.
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
const PORTS: &[&str] = &[
    "LSF_IDENT_PORT",
    "LSF_LIM_PORT",
    "LSF_NLB_PORT",
    "LSF_RES_PORT",
    "LSB_MBD_PORT",
    "LSB_SBD_PORT",
];
/// Words of LSF_AUTH.
const WAYS: &[&str] = &["eauth", "ident", "setuid"];
/// Variables that hold Y or N and are acted on.
const FLAGS: &[&str] = &[
    "LSB_BJOBS_CONSISTENT_EXIT_CODE",
    "LSB_BSUB_PARSE_SCRIPT",
    "LSB_JOB_CPULIMIT",
    "LSB_JOB_MEMLIMIT",
    "LSB_MEMLIMIT_ENFORCE",
    "LSB_SIM_EXEC",
    "LSB_SUB_COMMANDNAME",
    "LSF_ALLOW_LOCAL_HOST",
    "LSF_PERSONAL",
    "LSF_PIM_SLEEPTIME_UPDATE",
    "LSF_PROCESS_TRACKING",
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

/// How long the parts of a parallel job, and commands and res, wait for each other; none of them
/// for no time.
const WAITS: [&str; 4] = [
    "LSF_HPC_PJL_LOADENV_TIMEOUT",
    "LSF_DJOB_TASK_REG_WAIT_TIME",
    "LSB_FANOUT_TIMEOUT_PER_LAYER",
    "LSF_RES_TIMEOUT",
];
/// Numbers; one beyond the limits of its variable counts as the limit.
const NUMBERS: [&str; 4] = [
    "LSB_MAX_PACK_JOBS",
    "LSF_RES_ACTIVE_TIME",
    "LSF_RES_CONNECT_RETRY",
    "LSF_RES_SYNCUP_INTERVAL",
];
/// Words of LSF_HPC_EXTENSIONS that have their effect: the first two always have.
const HPC_EXTENSIONS: &[&str] =
    &["CUMULATIVE_RUSAGE", "HOST_RUSAGE", "NO_HOST_RUSAGE", "SHORT_PIDLIST", "SHORT_EVENTFILE"];

/// Most bytes of LSB_JOB_TMPDIR and LSF_TMPDIR.
const MAX_TMPDIR: usize = 256;

/// May a job find its temporary directory in this variable? None that the system sets, or that
/// says how programs are run.
fn may_hold_tmpdir(name: &str) -> bool {
    let well_formed = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let taken = ["HOME", "PATH", "USER", "LOGNAME", "PWD", "SHELL", "IFS", "ENV", "BASH_ENV"];
    !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(well_formed)
        && !["LSB_", "LSF_", "LS_", "LD_"].iter().any(|prefix| name.starts_with(prefix))
        && !taken.contains(&name)
}

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
    for name in NUMBERS {
        check(name, &|v| v.parse::<u64>().is_ok(), "a number is wanted");
    }
    let ways = |v: &str| v.split_whitespace().all(|word| WAYS.contains(&word));
    let seconds = |v: &str| v.parse::<u64>().is_ok_and(|n| n <= MAX_HANG_SECS);
    check("MBD_HANG_TIME", &seconds, "seconds are wanted, a day at most; 0 for never");
    let pause = |v: &str| v.parse::<u64>().is_ok_and(|n| (1..=MAX_HANG_SECS).contains(&n));
    let absolute = |dir: &str| dir.starts_with('/') && dir.len() <= MAX_TMPDIR;
    for name in ["LSB_JOB_TMPDIR", "LSF_TMPDIR"] {
        check(name, &absolute, "an absolute path of at most 256 bytes is wanted");
    }
    let variable = |text: &str| yes_no(text).is_some() || may_hold_tmpdir(text);
    check("LSB_SET_TMPDIR", &variable, "Y, N or the name of a variable is wanted");
    let apart = |dir: &str| dir.starts_with('/') && Some(dir) != conf.sharedir();
    check("LSB_LOCALDIR", &apart, "an absolute path other than LSB_SHAREDIR is wanted");
    check("LSF_PIM_SLEEPTIME", &pause, "seconds are wanted, from 1 to a day");
    let register = |v: &str| v.parse::<u64>().is_ok_and(|n| (1..=MAX_PAM_SECS).contains(&n));
    for name in WAITS {
        check(name, &register, "seconds are wanted, from 1 to a year");
    }
    let delay = |v: &str| v.parse::<u64>().is_ok_and(|n| n <= MAX_PAM_SECS);
    for name in ["LSF_PAM_CLEAN_JOB_DELAY", "LSF_RES_ALIVE_TIMEOUT"] {
        check(name, &delay, "seconds are wanted, a year at most");
    }
    let factor = |v: &str| pam_factor(v).is_some();
    check("LSF_PAM_RUSAGE_UPD_FACTOR", &factor, "seconds for each task are wanted, 0 to 100");
    let signal = |v: &str| signals::number(v).is_some();
    let control = |v: &str| MemoryControl::parse(v).is_some();
    let want = "memory:swap:seconds[:all] is wanted, memory 1 to 100 percent, swap 0 to 100";
    check("LSB_MEMLIMIT_ENF_CONTROL", &control, want);
    check("LSB_SIGSTOP", &signal, "the name or number of a signal is wanted");
    let copies = |v: &str| {
        let words = command_words(v).unwrap_or_default();
        words.first().is_some_and(|w| w.rsplit('/').next() != Some("lsrcp"))
    };
    for name in ["LSF_REMOTE_COPY_CMD", "LSF_REMOTE_COPY_COMMAND"] {
        check(name, &copies, "a command with its options is wanted, other than lsrcp");
    }
    let want = "NONE, BALANCE, PACK, ANY, USER or USER_CPU_LIST is wanted";
    check("LSF_BIND_JOB", &|v| BindPolicy::of_word(v).is_some(), want);
    check("LSF_AUTH", &ways, "eauth, ident or setuid is wanted");
    check("LSF_UNIT_FOR_LIMITS", &|v| SizeUnit::parse(v).is_some(), "a unit is wanted");
    check("LSF_LOG_MASK", &|v| LOG_MASKS.contains(&v), "LOG_ERR, LOG_WARNING ... is wanted");
    check("LSF_LOG_MAXSIZE", &|v| size_kb(v, SizeUnit::KB).is_some(), "a size is wanted");
    if conf.yes("LSB_SIM_EXEC") && !conf.personal() {
        let want = "only a personal cluster (LSF_PERSONAL=Y) may imagine its jobs";
        check("LSB_SIM_EXEC", &|_| false, want);
    }
    tell_words(conf, diags, "LSB_RESOURCE_ENFORCE", |word| word.eq_ignore_ascii_case("memory"));
    tell_words(conf, diags, "LSF_HPC_EXTENSIONS", |word| HPC_EXTENSIONS.contains(&word));
}

/// Tells the words of a list that nothing acts on.
fn tell_words(conf: &LsfConf, diags: &mut Diags, name: &str, acts: impl Fn(&str) -> bool) {
    let Some(value) = conf.values.get(name) else { return };
    for word in value.text.split_whitespace().filter(|word| !acts(word)) {
        let text = format!("<{}> of {name} {WORD_NOT_ACTED_ON}", shown(word));
        diags.notice(&value.pos, text);
    }
}
