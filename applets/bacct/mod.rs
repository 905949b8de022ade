//! bacct: what finished jobs used, from lsb.acct (commands.md bacct).
//!
//! Invariants: every line is looked at once, without allocating for those that are not wanted;
//! a line that is no record is named and passed over.

mod jobs;
mod sums;
#[cfg(test)]
mod tests;

use super::bhist::files::{self, Damage};
use super::bhist::{log_dir, own_name};
use super::control;
use argh::{ArgsInfo, FromArgs};
use jiff::tz::TimeZone;
use jobs::Form;
use lsf::cli::clock::Clock;
use lsf::cli::ctx::{Ctx, FAIL, os_words};
use lsf::cli::front::{self, Exit};
use lsf::cli::long::clean;
use lsf::cli::{select, site};
use lsf::conf::load::load_lenient;
use lsf::errln;
use lsf::lang::interval::Interval;
use lsf::log::codec::{Brief, read_brief, read_finish};
use lsf::model::JobRef;
use lsf::proto::client::IdSel;
use lsf::sys::files::RealFiles;
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
    /// long format: each job with what became of it
    #[argh(switch, short = 'l')]
    long: bool,
    /// brief format: a line for each job
    #[argh(switch, short = 'b')]
    brief: bool,
    /// as -b, nothing cut
    #[argh(switch, short = 'w')]
    wide: bool,
    /// long format, lines not broken
    #[argh(switch, long = "-u-f")]
    unformatted: bool,
    /// jobs of these users; `all`: of everybody
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
    /// not acted on
    #[argh(option, long = "app", hidden_help)]
    app: Option<String>,
    /// not acted on
    #[argh(option, long = "sla", hidden_help)]
    sla: Option<String>,
    /// not acted on
    #[argh(option, short = 'N', hidden_help)]
    normalise: Option<String>,
    /// not acted on
    #[argh(switch, short = 'x', hidden_help)]
    exceptions: bool,
    /// not acted on
    #[argh(option, short = 'U', hidden_help)]
    reservation: Option<String>,
    /// the jobs or elements
    #[argh(positional, greedy, arg_name = "job_ID | \"job_ID[list]\"")]
    _jobs: Vec<String>,
}

/// Which jobs are wanted. Empty lists do not restrict.
#[derive(Debug, Default)]
struct Filter {
    ids: Vec<IdSel>,
    users: Vec<String>,
    queues: Vec<String>,
    projects: Vec<String>,
    /// As given, and the hosts they stand for.
    host_words: Vec<String>,
    hosts: Vec<String>,
    done: bool,
    exit: bool,
    completed: Option<Interval>,
    submitted: Option<Interval>,
    dispatched: Option<Interval>,
}

impl Filter {
    fn wants(&self, b: &Brief<'_>) -> bool {
        let among = |list: &[String], has: &[u8]| {
            list.is_empty() || list.iter().any(|w| w.as_bytes() == has)
        };
        let within = |i: &Option<Interval>, time: i64| i.is_none_or(|i| i.holds(time));
        let at = JobRef { job: b.job, idx: b.idx };
        (self.done == self.exit || if b.done { self.done } else { self.exit })
            && (self.ids.is_empty() || self.ids.iter().any(|i| i.has(at)))
            && among(&self.users, &b.user)
            && among(&self.queues, &b.queue)
            && among(&self.projects, &b.project)
            && within(&self.completed, b.end_time)
            && within(&self.submitted, b.submit_time)
            && (self.dispatched.is_none() || b.start_time > 0)
            && within(&self.dispatched, b.start_time)
            && (self.hosts.is_empty() || b.hosts.iter().any(|h| among(&self.hosts, host_of(h))))
    }
}

/// `2*host` is two slots of `host`.
fn host_of(word: &[u8]) -> &[u8] {
    match word.iter().position(|b| *b == b'*') {
        Some(star) if word[..star].iter().all(u8::is_ascii_digit) => &word[star + 1..],
        _ => word,
    }
}

/// A call: what to read, which jobs, how to show them.
struct Call {
    file: Option<PathBuf>,
    filter: Filter,
    form: Form,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    let now = lsf::sys::now().secs();
    let zone = TimeZone::system();
    let call = match plan(&ctx.args, now, &zone, own_name) {
        Ok(call) => call,
        Err(exit) => return exit.show(ctx),
    };
    let clock = Clock::of(zone);
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
    let unknown = control::given([
        ("-app", o.app.is_some()),
        ("-sla", o.sla.is_some()),
        ("-N", o.normalise.is_some()),
        ("-x", o.exceptions),
        ("-U", o.reservation.is_some()),
    ]);
    control::refuse("bacct", unknown)?;
    let ids = select::ids(&parsed.operands).map_err(Exit::fail)?.ids;
    let words = |text: &Option<String>| -> Vec<String> {
        text.as_deref().unwrap_or("").split_whitespace().map(str::to_string).collect()
    };
    let interval = |text| control::interval(text, now, zone);
    let mut users = words(&o.user);
    if users.iter().any(|u| u == "all") {
        users.clear();
    } else if o.user.is_none() && ids.is_empty() {
        users.push(me());
    }
    let filter = Filter {
        ids,
        users,
        queues: words(&o.queue),
        projects: words(&o.project),
        host_words: words(&o.hosts),
        hosts: Vec::new(),
        done: o.done,
        exit: o.exit,
        completed: interval(&o.completed)?,
        submitted: interval(&o.submitted)?,
        dispatched: interval(&o.dispatched)?,
    };
    let form = match () {
        () if o.long || o.unformatted => Form::Long { wrap: !o.unformatted },
        () if o.brief || o.wide => Form::Lines { wide: o.wide },
        () => Form::Summary,
    };
    Ok(Call { file: o.file.map(PathBuf::from), filter, form })
}

fn account(ctx: &mut Ctx, mut call: Call, clock: &Clock) -> Result<(), String> {
    let site = site::find();
    if !call.filter.host_words.is_empty() {
        call.filter.hosts = hosts(site.as_ref().ok(), &call.filter.host_words);
    }
    let path = match call.file.take() {
        Some(path) => path,
        None => {
            let site = site.map_err(|e| e.to_string())?;
            PathBuf::from(log_dir(&site)?).join("lsb.acct")
        }
    };
    let mut damage = Damage::default();
    let sums = match path.as_os_str() == "-" {
        true => read(ctx, &call, clock, io::stdin().lock(), "standard input", &mut damage),
        false => {
            let name = path.display().to_string();
            let words = |e: io::Error| format!("{name}: {}", os_words(&e));
            let file = File::open(&path).map_err(words)?;
            let total = file.metadata().map_or(0, |m| m.len());
            let file = BufReader::with_capacity(files::BUFFER, Progress::new(file, total));
            read(ctx, &call, clock, file, &name, &mut damage)
        }
    }?;
    let mut out = String::new();
    sums.show(&mut out, clock);
    let _ = ctx.out.write_all(out.as_bytes());
    damage.tell(ctx);
    Ok(())
}

/// What the words of -m stand for; a word that names nothing known is a host of former days.
fn hosts(site: Option<&site::Site>, words: &[String]) -> Vec<String> {
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
    damage: &mut Damage,
) -> Result<Sums, String> {
    let mut sums = Sums::default();
    let mut text = String::new();
    sums::head(&mut text, &call.filter, clock);
    let _ = ctx.out.write_all(text.as_bytes());
    let mut each = |line: &[u8]| {
        let Some(brief) = read_brief(line)? else { return Ok(()) };
        if !call.filter.wants(&brief) {
            return Ok(());
        }
        if !matches!(call.form, Form::Summary) {
            text.clear();
            jobs::show(&mut text, &read_finish(line)?, &call.form, sums.jobs() == 0, clock);
            let _ = ctx.out.write_all(text.as_bytes());
        }
        sums.add(&brief);
        Ok(())
    };
    let read = files::lines(from, name, damage, &mut each);
    read.map_err(|e| format!("{name}: {}", os_words(&e)))?;
    Ok(sums)
}

/// How often the progress is shown, and how long nothing is.
const TICK: Duration = Duration::from_millis(200);

/// A file that tells on a terminal how much of it was read.
struct Progress {
    file: File,
    total: u64,
    read: u64,
    last: Instant,
    shown: bool,
    on: bool,
}

impl Progress {
    fn new(file: File, total: u64) -> Self {
        let on = total > 0 && io::stderr().is_terminal();
        Progress { file, total, read: 0, last: Instant::now(), shown: false, on }
    }

    fn show(&mut self, done: bool) {
        if !self.on || !(done && self.shown) && self.last.elapsed() < TICK {
            return;
        }
        let mut bar = String::from("\r");
        let part = (self.read.min(self.total) * 50 / self.total) as usize;
        match done {
            true => bar.push_str("\x1b[K"),
            false => {
                let _ = write!(bar, "[{:<50}] {:>3}%", "#".repeat(part), part * 2);
            }
        }
        let _ = io::Write::write_all(&mut io::stderr(), bar.as_bytes());
        (self.last, self.shown) = (Instant::now(), !done);
    }
}

impl Read for Progress {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let got = self.file.read(buf)?;
        self.read += got as u64;
        self.show(got == 0);
        Ok(got)
    }
}
