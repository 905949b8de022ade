//! bacct: what finished jobs used, from lsb.acct (bacct(1)).
//!
//! Invariants: every line is looked at once where it lies in the buffer, and left as soon as its
//! first fields show that it is not wanted; a line that is no record is named and passed over.

mod filter;
mod jobs;
mod periods;
mod sums;
#[cfg(test)]
mod tests;

use super::bhist::files::{self, Damage};
use super::bhist::{log_dir, own_name};
use super::control;
use argh::{ArgsInfo, FromArgs};
use filter::{AccountingFilter, Reserved};
use jiff::tz::TimeZone;
use jobs::{AccountingForm, JobForm};
use lsf::cli::clock::Clock;
use lsf::cli::columns::Json;
use lsf::cli::ctx::{Ctx, FAIL, os_words};
use lsf::cli::front::{self, Exit};
use lsf::cli::long_format::clean;
use lsf::cli::{job_ids, lim, site};
use lsf::conf::load::load_lenient;
use lsf::errln;
use lsf::log::codec::{Brief, read_brief, read_finish};
use lsf::sys::files::RealFiles;
use lsf::sys::raw::{self, SignalFd};
use periods::Periods;
use rustix::process::{Signal, getpid, kill_process};
use std::ffi::OsString;
use std::fmt::Write;
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use sums::Sums;

/// Shows what finished jobs used.
// Some fields are there for the option front and the help alone.
#[allow(dead_code)]
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// long format: each job with its submission, dispatch and end
    #[argh(switch, short = 'l')]
    long: bool,
    /// brief format: one line for each job
    #[argh(switch, short = 'b')]
    brief: bool,
    /// brief format: names are not cut
    #[argh(switch, short = 'w')]
    wide: bool,
    /// long format, lines not broken
    #[argh(switch, long = "-u-f")]
    unformatted: bool,
    /// jobs of these users; `all`: of all users
    #[argh(option, short = 'u', arg_name = "\"user_name ... | all\"")]
    user: Option<String>,
    /// jobs of these queues
    #[argh(option, short = 'q', arg_name = "\"queue_name ...\"")]
    queue: Option<String>,
    /// jobs that ran on these hosts or host groups
    #[argh(option, short = 'm', arg_name = "\"host_name ...\"")]
    hosts: Option<String>,
    /// jobs of these projects
    #[argh(option, short = 'P', arg_name = "\"project_name ...\"")]
    project: Option<String>,
    /// jobs that ended in this interval
    #[argh(option, short = 'C', arg_name = "time0,time1")]
    completed: Option<String>,
    /// jobs submitted in this interval
    #[argh(option, short = 'S', arg_name = "time0,time1")]
    submitted: Option<String>,
    /// jobs dispatched in this interval
    #[argh(option, short = 'D', arg_name = "time0,time1")]
    dispatched: Option<String>,
    /// jobs that are done
    #[argh(switch, short = 'd')]
    done: bool,
    /// jobs that exited
    #[argh(switch, short = 'e')]
    exit: bool,
    /// read this file; `-`: standard input
    #[argh(option, short = 'f', arg_name = "logfile")]
    file: Option<String>,
    /// jobs that ran on the hosts of this file, one on a line
    #[argh(option, short = 'M', arg_name = "host_list_file")]
    host_file: Option<String>,
    /// jobs of these application profiles
    #[argh(option, long = "app", arg_name = "\"application_profile_name ...\"")]
    app: Option<String>,
    /// jobs of these service classes
    #[argh(option, long = "sla", arg_name = "\"service_class_name ...\"")]
    sla: Option<String>,
    /// jobs of these License Scheduler projects
    #[argh(option, long = "-lp", arg_name = "\"ls_project_name ...\"")]
    license: Option<String>,
    /// jobs that had exceptions
    #[argh(switch, short = 'x')]
    exceptions: bool,
    /// jobs that used these advance reservations; `all`: any
    #[argh(option, short = 'U', arg_name = "\"reservation_ID ... | all\"")]
    reservation: Option<String>,
    /// CPU times normalised to this host, host model or CPU factor
    #[argh(option, short = 'N', arg_name = "host_name | host_model | cpu_factor")]
    normalise: Option<String>,
    /// subtract ineligible pending time from wait and turnaround times
    #[argh(switch, short = 'E')]
    eligible: bool,
    /// the summary, and with -l or -b each job, in JSON
    #[argh(switch, long = "json")]
    json: bool,
    /// accepted
    #[argh(switch, long = "aff", hidden_help)]
    affinity: bool,
    /// accepted
    #[argh(switch, long = "gpu", hidden_help)]
    gpu: bool,
    /// jobs of these accounts of the resource connector; no job has one
    #[argh(option, arg_name = "\"account ... | all\"")]
    rcacct: Option<String>,
    /// likewise
    #[argh(option, arg_name = "\"account ... | all\"")]
    rcalloc: Option<String>,
    /// the jobs or elements
    #[argh(positional, greedy, arg_name = "job_ID | \"job_ID[list]\"")]
    _jobs: Vec<String>,
}

/// A call: what to read, which jobs, how to show them.
struct Call {
    file: Option<PathBuf>,
    filter: AccountingFilter,
    form: AccountingForm,
    json: bool,
    /// -N as given, and the CPU factor that it stands for.
    norm: Option<String>,
    factor: Option<f64>,
    /// -E.
    eligible: bool,
    /// LSB_ENABLE_HPC_ALLOCATION=Y.
    tasks: bool,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    let now = lsf::sys::now().secs();
    let zone = TimeZone::system();
    ctx.readings = Some(front::readings::<Opts>);
    let call = match plan(&ctx.args, now, &zone, own_name) {
        Ok(call) => call,
        Err(exit) => return exit.show(ctx),
    };
    let year = site::yes(site::find().ok().as_ref(), "LSB_DISPLAY_YEAR");
    let clock = Clock::of(zone).with_year(year);
    match account(ctx, call, &clock) {
        Ok(()) => 0,
        Err(words) => {
            errln!(ctx, "bacct: {}", clean(&words));
            FAIL
        }
    }
}

/// `me`: the caller's name, asked for only when it is needed.
fn plan(
    args: &[OsString],
    now: i64,
    zone: &TimeZone,
    me: impl FnOnce() -> String,
) -> Result<Call, Exit> {
    let parsed = front::parse::<Opts>("bacct", args)?;
    let o = parsed.options;
    let ids = job_ids::ids(&parsed.operands).map_err(Exit::fail)?.ids;
    let words = |text: &Option<String>| -> Vec<String> {
        text.as_deref().unwrap_or("").split_whitespace().map(str::to_string).collect()
    };
    let interval = |text| control::interval(text, now, zone);
    let mut users = words(&o.user);
    let creators: Vec<String> = users.iter().filter(|user| *user != "all").cloned().collect();
    if users.iter().any(|u| u == "all") {
        users.clear();
    } else if o.user.is_none() && ids.is_empty() {
        users.push(me());
    }
    let mut host_words = words(&o.hosts);
    if let Some(path) = &o.host_file {
        host_words.extend(listed_hosts(path)?);
    }
    let reserved = words(&o.reservation);
    let filter = AccountingFilter {
        ids,
        users,
        apps: words(&o.app),
        slas: words(&o.sla),
        licenses: words(&o.license),
        reservations: match () {
            () if reserved.is_empty() => Reserved::Whatever,
            () if reserved.iter().any(|r| r == "all") => Reserved::Any,
            () => Reserved::In(reserved),
        },
        creators,
        exceptions: o.exceptions,
        none: o.rcacct.is_some() || o.rcalloc.is_some(),
        queues: words(&o.queue),
        projects: words(&o.project),
        host_words,
        hosts: Vec::new(),
        done: o.done,
        exit: o.exit,
        completed: interval(&o.completed)?,
        submitted: interval(&o.submitted)?,
        dispatched: interval(&o.dispatched)?,
    };
    let form = match () {
        () if o.json && (o.long || o.unformatted || o.brief || o.wide) => AccountingForm::Records,
        () if o.long || o.unformatted => AccountingForm::Long { wrap: !o.unformatted },
        () if o.brief || o.wide => AccountingForm::Lines { wide: o.wide },
        () => AccountingForm::Summary,
    };
    let (file, norm) = (o.file.map(PathBuf::from), o.normalise);
    Ok(Call {
        file,
        filter,
        form,
        json: o.json,
        norm,
        factor: None,
        eligible: o.eligible,
        tasks: false,
    })
}

/// -M: host names, one a line.
fn listed_hosts(path: &str) -> Result<Vec<String>, Exit> {
    let text = std::fs::read_to_string(path)
        .map_err(|e| Exit::fail(format_args!("bacct: {}: {}", clean(path), os_words(&e))))?;
    let words = text.lines().map(|l| l.split('#').next().unwrap_or("").trim());
    Ok(words.filter(|l| !l.is_empty()).map(str::to_string).collect())
}

fn account(ctx: &mut Ctx, mut call: Call, clock: &Clock) -> Result<(), String> {
    let site = site::find();
    if !call.filter.host_words.is_empty() {
        call.filter.hosts = hosts(site.as_ref().ok(), &call.filter.host_words);
    }
    call.factor = call.norm.as_deref().map(lim::cpu_factor).transpose()?;
    call.tasks = site.as_ref().is_ok_and(|s| s.lsf.yes("LSB_ENABLE_HPC_ALLOCATION"));
    let path = match call.file.take() {
        Some(path) => path,
        None => {
            let site = site.map_err(|e| e.to_string())?;
            PathBuf::from(log_dir(&site)?).join("lsb.acct")
        }
    };
    let mut damage = Damage::default();
    let mut json = Json::new("bacct", "JOBS");
    let kept = (&mut json, &mut damage);
    let sums = match path.as_os_str() == "-" {
        true => read(ctx, &call, clock, io::stdin().lock(), "standard input", kept),
        false => {
            let name = path.display().to_string();
            let words = |e: io::Error| format!("{name}: {}", os_words(&e));
            let file = File::open(&path).map_err(words)?;
            let total = file.metadata().map_or(0, |m| m.len());
            let among = !matches!(call.form, AccountingForm::Summary) && io::stdout().is_terminal();
            let file = Progress::new(file, total, !among);
            let file = BufReader::with_capacity(files::BUFFER, file);
            read(ctx, &call, clock, file, &name, kept)
        }
    }?;
    let _ = ctx.out.write_all(summary(&call, &sums, json, clock).as_bytes());
    damage.tell(ctx);
    Ok(())
}

/// The text behind the jobs.
fn summary(call: &Call, sums: &Sums, json: Json, clock: &Clock) -> String {
    if call.json {
        let pairs = sums.pairs();
        let pairs: Vec<(&str, &str)> = pairs.iter().map(|(k, v)| (&**k, &**v)).collect();
        return json.end(sums.jobs(), "SUMMARY", &pairs);
    }
    let mut out = String::new();
    sums.show(&mut out, clock);
    out
}

/// The hosts that the words of -m name; an unknown word is a host that was removed.
fn hosts(site: Option<&site::LocalSite>, words: &[String]) -> Vec<String> {
    let conf = site.and_then(|s| load_lenient(&RealFiles, &s.envdir, Some(&s.host)).0);
    let mut found = Vec::new();
    for word in words {
        let known = conf.as_ref().map_or(Vec::new(), |c| c.expand_hosts(word));
        if known.is_empty() {
            found.push(word.clone());
        }
        found.extend(known.into_iter().map(str::to_string));
    }
    found
}

/// Sums up what is wanted; jobs are shown as they are read.
fn read(
    ctx: &mut Ctx,
    call: &Call,
    clock: &Clock,
    from: impl BufRead,
    name: &str,
    (json, damage): (&mut Json, &mut Damage),
) -> Result<Sums, String> {
    let mut sums = Sums::default();
    let mut text = String::new();
    match call.json {
        true => text = json.begin(),
        false => sums::head(&mut text, &call.filter, clock),
    }
    let _ = ctx.out.write_all(text.as_bytes());
    let early = |b: &Brief<'_>| call.filter.may_want(b);
    let mut periods = Periods::default();
    let mut each = |line: &[u8]| {
        let Some(mut brief) = read_brief(line, &early)? else {
            return periods.add(&call.filter, line);
        };
        if !call.filter.wants(&brief) {
            return Ok(());
        }
        if let Some(factor) = call.factor {
            brief.cpu = normal(brief.cpu, brief.host_factor, factor);
        }
        let mut ineligible = 0;
        if call.eligible || !matches!(call.form, AccountingForm::Summary) {
            let mut fin = read_finish(line)?;
            ineligible = if call.eligible { fin.ineligible_secs.unwrap_or(0) } else { 0 };
            if let (Some(factor), Some(u)) = (call.factor, &mut fin.usage) {
                u.utime_us = (normal(u.cpu_secs(), fin.host_factor, factor) * 1e6) as u64;
                u.stime_us = 0;
            }
            text.clear();
            let look = JobForm { form: call.form, tasks: call.tasks, ineligible };
            match call.form {
                AccountingForm::Records => {
                    jobs::record(json, &fin, &look, clock);
                    text = json.take();
                }
                _ => jobs::show(&mut text, &fin, &look, sums.jobs() == 0, clock),
            }
            let _ = ctx.out.write_all(text.as_bytes());
        }
        sums.add(&brief, ineligible);
        Ok(())
    };
    let read = files::lines(from, name, damage, &mut each);
    read.map_err(|e| format!("{name}: {}", os_words(&e)))?;
    if !call.json {
        text.clear();
        periods.show(&mut text, clock);
        let _ = ctx.out.write_all(text.as_bytes());
    }
    Ok(sums)
}

/// CPU time on a machine of this factor.
pub fn normal(cpu: f64, host_factor: f64, factor: f64) -> f64 {
    if host_factor > 0.0 { cpu * host_factor / factor } else { cpu }
}

/// How often the progress is shown, and how long nothing is of a file that is not long.
const TICK: Duration = Duration::from_millis(200);
/// The length of a file from which its progress is shown at once and at each tenth, bytes.
const LONG: u64 = 16 << 20;
/// Marks of a whole bar, and of a tenth.
const MARKS: u64 = 50;
const TENTH: u64 = MARKS / 10;

/// Signals that end a command, after which the bar must be removed.
const ENDING: [Signal; 3] = [Signal::INT, Signal::TERM, Signal::HUP];

/// A file that tells on a terminal how much of it was read.
struct Progress {
    file: File,
    total: u64,
    read: u64,
    last: Instant,
    /// The marks that are shown, once there is a bar.
    shown: Option<u64>,
    on: bool,
    /// The signals of [`ENDING`], where there is a bar to erase first.
    signals: Option<SignalFd>,
}

impl Progress {
    /// `alone`: nothing else is written on the terminal meanwhile.
    fn new(file: File, total: u64, alone: bool) -> Self {
        let on = alone && total > 0 && io::stderr().is_terminal();
        let signals = on.then(|| SignalFd::new(&ENDING.map(Signal::as_raw)).ok()).flatten();
        Progress { file, total, read: 0, last: Instant::now(), shown: None, on, signals }
    }

    /// Ends as the signal says that came, if one did, without the bar.
    fn heed_signals(&mut self) {
        let Some(Ok(Some(signal))) = self.signals.as_ref().map(SignalFd::take) else { return };
        self.show(true);
        let _ = raw::unblock_signals();
        if let Some(signal) = Signal::from_named_raw(signal) {
            let _ = kill_process(getpid(), signal);
        }
    }

    fn show(&mut self, done: bool) {
        let marks = self.read.min(self.total) * MARKS / self.total.max(1);
        let due = match (done, self.shown) {
            (true, shown) => shown.is_some(),
            (false, None) if self.total >= LONG => true,
            (false, Some(shown)) if self.total >= LONG && marks >= shown + TENTH => true,
            (false, _) => self.last.elapsed() >= TICK,
        };
        if !self.on || !due {
            return;
        }
        let mut bar = String::from("\r");
        match done {
            true => bar.push_str("\x1b[K"),
            false => {
                let part = "#".repeat(marks as usize);
                let _ = write!(bar, "[{part:<50}] {:>3}%", marks * 100 / MARKS);
            }
        }
        let _ = io::Write::write_all(&mut io::stderr(), bar.as_bytes());
        (self.last, self.shown) = (Instant::now(), (!done).then_some(marks));
    }
}

impl Read for Progress {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.heed_signals();
        let got = self.file.read(buf)?;
        self.read += got as u64;
        self.show(got == 0);
        if got == 0 && self.signals.take().is_some() {
            let _ = raw::unblock_signals();
        }
        Ok(got)
    }
}
