//! A job: the submission as given, and the states it passes through (option bits and limits
//! as in lsb.events(5)).

use super::bytes::{ByteStr, log_loses};
use super::further::Further;
pub use super::limits::Limits;
use super::nqs::Route;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Exceptions of a job (lsbatch numbering), as logged.
pub mod except {
    pub const OVERRUN: u32 = 0x02;
    pub const UNDERRUN: u32 = 0x04;
    pub const IDLE: u32 = 0x80;

    /// `overrun idle`.
    pub fn words(bits: u32) -> String {
        let all = [(OVERRUN, "overrun"), (UNDERRUN, "underrun"), (IDLE, "idle")];
        let some = all.iter().filter(|(bit, _)| bits & bit != 0);
        some.map(|(_, word)| *word).collect::<Vec<_>>().join(" ")
    }
}

/// JOB_NEW option bits (lsbatch numbering).
pub mod opt {
    pub const JOB_NAME: u32 = 0x01;
    pub const QUEUE: u32 = 0x02;
    pub const HOST: u32 = 0x04;
    pub const IN_FILE: u32 = 0x08;
    pub const OUT_FILE: u32 = 0x10;
    pub const ERR_FILE: u32 = 0x20;
    pub const EXCLUSIVE: u32 = 0x40;
    pub const NOTIFY_END: u32 = 0x80;
    pub const NOTIFY_BEGIN: u32 = 0x100;
    pub const USER_GROUP: u32 = 0x200;
    /// brestart -f.
    pub const RESTART_FORCE: u32 = 0x1000;
    /// brestart.
    pub const RESTART: u32 = 0x2000;
    pub const RERUNNABLE: u32 = 0x4000;
    pub const DEPEND_COND: u32 = 0x20000;
    pub const RES_REQ: u32 = 0x40000;
    pub const PRE_EXEC: u32 = 0x100000;
    pub const LOGIN_SHELL: u32 = 0x200000;
    pub const MAIL_USER: u32 = 0x400000;
    pub const PROJECT_NAME: u32 = 0x2000000;
    /// -I, -Ip, -Is: input and output are those of the bsub that waits.
    pub const INTERACTIVE: u32 = 0x4000000;
    /// -Ip, -Is: on a pseudo-terminal.
    pub const PTY: u32 = 0x8000000;
    /// -Is: the job leads the session of its terminal, as a shell does.
    pub const PTY_SHELL: u32 = 0x10000000;
}

/// JOB_NEW options2 bits.
pub mod opt2 {
    /// -H: submitted held.
    pub const HOLD: u32 = 0x01;
    /// -cwd was given.
    pub const CWD: u32 = 0x02;
    /// -oo: overwrite the output file.
    pub const OVERWRITE_OUT: u32 = 0x04;
    /// -eo: overwrite the error file.
    pub const OVERWRITE_ERR: u32 = 0x08;
    /// The command came from stdin or a script file: the command text is its first line's shape
    /// and the spooled script is what runs.
    pub const SCRIPT: u32 = 0x10;
    /// -K: the submitter waits.
    pub const WAIT: u32 = 0x20;
    /// The queue was not named: the default one was taken.
    pub const DEFAULT_QUEUE: u32 = 0x40;
    /// -Ne: the report is mailed where the job fails.
    pub const NOTIFY_ERROR: u32 = 0x80;
    /// -rn: never run again, whatever the queue says.
    pub const NEVER_RERUN: u32 = 0x100;
}

/// Is it what a reader takes where nothing is written? Most fields are.
fn unset<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A place in the spool file of a generation: where exact bytes lie.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub struct SpoolRef {
    /// Number of the spool file.
    pub spool: u32,
    /// Byte offset of the data in it.
    pub at: u64,
    /// Length of the data, bytes.
    pub len: u32,
}

impl fmt::Display for SpoolRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes at {} of spool {}", self.len, self.at, self.spool)
    }
}

/// A submission as accepted: what JOB_NEW records. Names are validated; byte strings are exact.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobSpec {
    /// The name given with -J, with index list and %limit; empty when not given.
    #[serde(skip_serializing_if = "unset")]
    pub name: String,
    /// Shell text of the command line as the user typed it.
    #[serde(skip_serializing_if = "unset")]
    pub command: ByteStr,
    #[serde(skip_serializing_if = "unset")]
    pub queue: String,
    #[serde(skip_serializing_if = "unset")]
    pub project: String,
    #[serde(skip_serializing_if = "unset")]
    pub user_group: String,
    #[serde(skip_serializing_if = "unset")]
    pub description: String,
    /// All -R merged; empty when not given.
    #[serde(skip_serializing_if = "unset")]
    pub res_req: String,
    /// -n; both at least 1.
    #[serde(skip_serializing_if = "unset")]
    pub min_slots: u32,
    #[serde(skip_serializing_if = "unset")]
    pub max_slots: u32,
    /// Words of -m as given: `h1+2`, `h2!`, `others`.
    #[serde(skip_serializing_if = "unset")]
    pub hosts: Vec<String>,
    #[serde(skip_serializing_if = "unset")]
    pub in_file: ByteStr,
    #[serde(skip_serializing_if = "unset")]
    pub out_file: ByteStr,
    #[serde(skip_serializing_if = "unset")]
    pub err_file: ByteStr,
    /// -w as typed (names resolved when evaluated).
    #[serde(skip_serializing_if = "unset")]
    pub depend: String,
    /// -b, seconds since the epoch; 0 none.
    #[serde(skip_serializing_if = "unset")]
    pub begin_time: i64,
    /// -t, seconds since the epoch; 0 none.
    #[serde(skip_serializing_if = "unset")]
    pub term_time: i64,
    #[serde(skip_serializing_if = "unset")]
    pub limits: Limits,
    /// Host or model after -W or -c; empty none.
    #[serde(skip_serializing_if = "unset")]
    pub limit_spec: String,
    /// Submission (or -cwd) directory, absolute.
    #[serde(skip_serializing_if = "unset")]
    pub cwd: ByteStr,
    /// Home directory of the submitter at submission; cwd below it is taken relative to the home
    /// on the execution host.
    #[serde(skip_serializing_if = "unset")]
    pub home: ByteStr,
    #[serde(skip_serializing_if = "unset")]
    pub umask: u32,
    #[serde(skip_serializing_if = "unset")]
    pub from_host: String,
    #[serde(skip_serializing_if = "unset")]
    pub mail_user: String,
    #[serde(skip_serializing_if = "unset")]
    pub login_shell: ByteStr,
    #[serde(skip_serializing_if = "unset")]
    pub pre_exec: ByteStr,
    #[serde(skip_serializing_if = "unset")]
    pub post_exec: ByteStr,
    /// [`opt`] bits.
    #[serde(skip_serializing_if = "unset")]
    pub options: u32,
    /// [`opt2`] bits.
    #[serde(skip_serializing_if = "unset")]
    pub options2: u32,
    /// -sp; 0 when not given.
    #[serde(skip_serializing_if = "unset")]
    pub priority: u32,
    /// The options that few jobs have, and mbatchd's own notes.
    #[serde(rename = "extra", skip_serializing_if = "Further::is_empty")]
    pub further: Further,
}

/// The variable with the output of esub for eexec, in base64. The variable is part of the
/// environment of the submission, which is its owner's alone, and is taken out before the job
/// starts.
pub const EEXEC_DATA: &str = "LSB_EEXEC_DATA";

/// Resource usage of a finished or running job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    pub utime_us: u64,
    pub stime_us: u64,
    /// Resident set of all processes now, KB.
    pub mem_kb: u64,
    pub swap_kb: u64,
    /// Largest resident set seen, KB.
    pub max_mem_kb: u64,
    pub avg_mem_kb: u64,
    pub max_swap_kb: u64,
    pub nthreads: u32,
    pub nprocs: u32,
    pub minflt: u64,
    pub majflt: u64,
    pub inblock: u64,
    pub oublock: u64,
    pub nvcsw: u64,
    pub nivcsw: u64,
    /// Most processors used between two looks, hundredths.
    #[serde(skip_serializing_if = "unset")]
    pub cpu_peak: u32,
    /// After how many seconds that was.
    #[serde(skip_serializing_if = "unset")]
    pub cpu_peak_secs: u32,
}

impl Usage {
    /// User and system time, seconds.
    pub fn cpu_secs(&self) -> f64 {
        (self.utime_us + self.stime_us) as f64 / 1e6
    }

    /// Adds what others use at the same time: other processes, or those of another host.
    pub fn add(&mut self, other: &Usage) {
        let sum = |a: &mut u64, b: u64| *a = a.saturating_add(b);
        sum(&mut self.utime_us, other.utime_us);
        sum(&mut self.stime_us, other.stime_us);
        sum(&mut self.mem_kb, other.mem_kb);
        sum(&mut self.swap_kb, other.swap_kb);
        sum(&mut self.max_mem_kb, other.max_mem_kb);
        sum(&mut self.avg_mem_kb, other.avg_mem_kb);
        sum(&mut self.max_swap_kb, other.max_swap_kb);
        self.nthreads = self.nthreads.saturating_add(other.nthreads);
        self.nprocs = self.nprocs.saturating_add(other.nprocs);
        sum(&mut self.minflt, other.minflt);
        sum(&mut self.majflt, other.majflt);
        sum(&mut self.inblock, other.inblock);
        sum(&mut self.oublock, other.oublock);
        sum(&mut self.nvcsw, other.nvcsw);
        sum(&mut self.nivcsw, other.nivcsw);
    }
}

/// How a started job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// Raw wait status of the job's first process.
    Status(i32),
    /// The launcher that knew was lost: the end is unknown and never guessed.
    Unknown,
}

impl End {
    /// Exit code as LSF shows it: the code, or 128 + signal; `None` when unknown.
    pub fn code(&self) -> Option<i32> {
        match *self {
            End::Unknown => None,
            End::Status(s) if s & 0x7f == 0 => Some((s >> 8) & 0xff),
            End::Status(s) => Some(128 + (s & 0x7f)),
        }
    }
}

impl JobSpec {
    /// The job goes to another queue. A pipe queue binds it to the host of `route`; another switch
    /// ends a binding, and the job asks again for the hosts that it asked for before.
    pub fn switch(&mut self, queue: &str, route: Option<&Route>) {
        self.queue = queue.to_owned();
        self.end_binding();
        if self.further.piped_at.is_some() {
            self.further.piped_at = None;
        }
        if let Some(route) = route {
            self.hosts = vec![route.host.clone()];
            self.options |= opt::HOST;
            self.further.route = Some(Box::new(route.clone()));
        }
        self.further.trim();
    }

    /// The job is bound to no host any more.
    pub fn end_binding(&mut self) {
        if self.further.route.is_none() {
            return;
        }
        if let Some(route) = self.further.route.take() {
            self.hosts = route.asked;
            if self.hosts.is_empty() {
                self.options &= !opt::HOST;
            }
        }
    }

    /// Would the text of the log lose something of it: a control character, or bytes that are not
    /// UTF-8? Then the exact value is spooled beside, as its JSON.
    pub fn text_loses(&self) -> bool {
        let bytes = [
            &self.command,
            &self.in_file,
            &self.out_file,
            &self.err_file,
            &self.cwd,
            &self.home,
            &self.login_shell,
            &self.pre_exec,
            &self.post_exec,
        ];
        let texts = [
            &self.name,
            &self.queue,
            &self.project,
            &self.user_group,
            &self.description,
            &self.res_req,
            &self.depend,
            &self.limit_spec,
            &self.from_host,
            &self.mail_user,
        ];
        let bad = |s: &String| log_loses(s.as_bytes());
        bytes.iter().any(|b| log_loses(b.as_bytes()))
            || texts.iter().any(|t| bad(t))
            || self.hosts.iter().any(bad)
            || self.further.texts().any(|(k, v)| log_loses(k.as_bytes()) || log_loses(v.as_bytes()))
    }
}

/// Exit code as shown, for a finished element.
pub fn exit_code(status: Option<i32>) -> Option<i32> {
    status.and_then(|s| End::Status(s).code())
}
