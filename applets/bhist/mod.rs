//! bhist: the history of jobs, read from the event log itself (bhist(1)).
//!
//! No daemon is asked: lsb.events tells what happened even while mbatchd is down.

pub mod files;
mod history;
pub mod lines;
mod show;

#[cfg(test)]
mod end_tests;
#[cfg(test)]
mod tests;

use argh::{ArgsInfo, FromArgs};
use files::{Damage, Only, Range, each_record, records};
use history::{History, HistoryFilter, States};
use jiff::tz::TimeZone;
use lines::EventKinds;
use lsf::cli::clock::Clock;
use lsf::cli::columns::Json;
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::front::{self, Exit};
use lsf::cli::long_format::{RULE, clean};
use lsf::cli::site::{self, LocalSite};
use lsf::cli::{job_ids, lim};
use lsf::conf::load::load_base_lenient;
use lsf::errln;
use lsf::lang::interval::Interval;
use lsf::model::JobRef;
use lsf::model::event::Record;
use lsf::model::further;
use lsf::sys::files::RealFiles;
use lsf::sys::users::UserDatabase;
use show::Show;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Shows the history of jobs.
// Some fields are there for the option front and the help alone.
#[allow(dead_code)]
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// long format: each event of each job
    #[argh(switch, short = 'l')]
    long: bool,
    /// wide format: names are not cut
    #[argh(switch, short = 'w')]
    wide: bool,
    /// long format, lines not broken
    #[argh(switch, long = "-u-f")]
    unformatted: bool,
    /// finished and unfinished jobs
    #[argh(switch, short = 'a')]
    all: bool,
    /// finished jobs
    #[argh(switch, short = 'd')]
    done: bool,
    /// jobs that ended with an error
    #[argh(switch, short = 'e')]
    exit: bool,
    /// pending jobs
    #[argh(switch, short = 'p')]
    pend: bool,
    /// running jobs
    #[argh(switch, short = 'r')]
    run: bool,
    /// suspended jobs
    #[argh(switch, short = 's')]
    susp: bool,
    /// jobs of this user; `all`: of all users
    #[argh(option, short = 'u', arg_name = "user_name | all")]
    user: Option<String>,
    /// jobs submitted to this queue
    #[argh(option, short = 'q', arg_name = "queue_name")]
    queue: Option<String>,
    /// jobs dispatched to one of these hosts
    #[argh(option, short = 'm', arg_name = "\"host_name ...\"")]
    hosts: Option<String>,
    /// jobs with this name, with or without index; `*` matches any text
    #[argh(option, short = 'J', arg_name = "job_name")]
    name: Option<String>,
    /// jobs of this project
    #[argh(option, short = 'P', arg_name = "project_name")]
    project: Option<String>,
    /// number of event logs to search, newest first (0: all), or the first and the last
    #[argh(option, short = 'n', arg_name = "num_logfiles | min,max")]
    logs: Option<String>,
    /// search this event log; `-`: standard input
    #[argh(option, short = 'f', arg_name = "logfile")]
    file: Option<String>,
    /// brief format: the default table
    #[argh(switch, short = 'b')]
    brief: bool,
    /// the table, with -l also the events, in JSON
    #[argh(switch, long = "json")]
    json: bool,
    /// events of all jobs in the order of time
    #[argh(switch, short = 't')]
    time_order: bool,
    /// with -t: events of this interval (default: the last LSB_BHIST_HOURS, 168)
    #[argh(option, short = 'T', arg_name = "time0,time1")]
    interval: Option<String>,
    /// jobs that ended in this interval
    #[argh(option, short = 'C', arg_name = "time0,time1")]
    completed: Option<String>,
    /// jobs dispatched in this interval
    #[argh(option, short = 'D', arg_name = "time0,time1")]
    dispatched: Option<String>,
    /// jobs submitted in this interval
    #[argh(option, short = 'S', arg_name = "time0,time1")]
    submitted: Option<String>,
    /// jobs submitted with this user group
    #[argh(option, short = 'G', arg_name = "user_group")]
    user_group: Option<String>,
    /// jobs with this description, which may end in `*`
    #[argh(option, long = "-jd", arg_name = "job_description")]
    description: Option<String>,
    /// jobs of this application profile
    #[argh(option, long = "app", arg_name = "application_profile_name")]
    app: Option<String>,
    /// jobs of this job group and of its subgroups
    #[argh(option, short = 'g', arg_name = "job_group_name")]
    group: Option<String>,
    /// jobs of this License Scheduler project
    #[argh(option, long = "-lp", arg_name = "ls_project_name")]
    license: Option<String>,
    /// CPU times normalised to this host, host model or CPU factor
    #[argh(option, short = 'N', arg_name = "host_name | host_model | cpu_factor")]
    normalise: Option<String>,
    /// accepted
    #[argh(switch, long = "aff", hidden_help)]
    affinity: bool,
    /// accepted
    #[argh(switch, long = "gpu", hidden_help)]
    gpu: bool,
    /// accepted
    #[argh(switch, long = "hostfile", hidden_help)]
    hostfile: bool,
    /// accepted
    #[argh(switch, long = "data", hidden_help)]
    data: bool,
    /// accepted
    #[argh(switch, long = "cname", hidden_help)]
    cname: bool,
    /// jobs or elements
    #[argh(positional, greedy, arg_name = "job_ID | \"job_ID[list]\"")]
    jobs: Vec<String>,
}

/// Hours that -t goes back where LSB_BHIST_HOURS says nothing.
const HOURS: i64 = 168;

/// Longest wait for the name of the caller.
const NAME_WAIT: Duration = Duration::from_secs(5);

pub fn run(ctx: &mut Ctx) -> i32 {
    let (now, zone) = (lsf::sys::now().secs(), TimeZone::system());
    ctx.readings = Some(front::readings::<Opts>);
    let call = match plan(&ctx.args, (now, &zone), own_name) {
        Ok(call) => call,
        Err(exit) => return exit.show(ctx),
    };
    let site = site::find();
    let factor = match call.norm.as_deref().map(lim::cpu_factor).transpose() {
        Ok(factor) => factor,
        Err(words) => {
            errln!(ctx, "bhist: {}", clean(&words));
            return FAIL;
        }
    };
    let show = Show {
        factor,
        clock: Clock::of(zone).with_year(site::yes(site.as_ref().ok(), "LSB_DISPLAY_YEAR")),
        wide: call.wide,
        unwrapped: call.unwrapped,
        tasks: site.as_ref().is_ok_and(|s| s.lsf.yes("LSB_ENABLE_HPC_ALLOCATION")),
        now,
    };
    let dir = match (&call.source, site) {
        (RecordSource::Logs(_), Ok(site)) => match log_dir(&site) {
            Ok(dir) => Some(PathBuf::from(dir)),
            Err(words) => {
                errln!(ctx, "bhist: {}", clean(&words));
                return FAIL;
            }
        },
        (RecordSource::Logs(_), Err(e)) => {
            errln!(ctx, "{e}");
            return FAIL;
        }
        _ => None,
    };
    search(ctx, call, dir.as_deref(), &show)
}

/// The caller's name, or its number where it has none.
pub fn own_name() -> String {
    let uid = lsf::sys::euid();
    UserDatabase::default().find_uid(uid, NAME_WAIT).map_or_else(|| uid.to_string(), |u| u.name)
}

/// LSB_SHAREDIR/CLUSTER/logdir.
pub fn log_dir(site: &LocalSite) -> Result<String, String> {
    let (base, _) = load_base_lenient(&RealFiles, &site.envdir, Some(&site.host));
    let base = base.ok_or("lsf.shared or lsf.cluster cannot be read")?;
    base.lsf.batch_logdir(&base.name).ok_or_else(|| "LSB_SHAREDIR not defined".to_string())
}

/// The directory of the log that mbatchd has on this host: LSB_LOCALDIR/CLUSTER/logdir on the first
/// master host, where that is set.
pub fn own_log_dir(site: &LocalSite) -> Result<String, String> {
    let (base, _) = load_base_lenient(&RealFiles, &site.envdir, Some(&site.host));
    let primary = base.and_then(|base| base.primary_logdir(&site.host));
    primary.map_or_else(|| log_dir(site), Ok)
}

/// The source of the records.
#[derive(Debug, PartialEq, Eq)]
enum RecordSource {
    Logs(Range),
    File(PathBuf),
    Stdin,
}

/// A call: what to read, which jobs, how to show them.
struct Call {
    source: RecordSource,
    filter: HistoryFilter,
    /// -t: the events of this interval instead of the jobs.
    events: Option<Interval>,
    long: bool,
    json: bool,
    wide: bool,
    unwrapped: bool,
    /// -N.
    norm: Option<String>,
    /// Every operand names elements.
    of_arrays: bool,
}

/// `me`: the caller's name, asked for only when it is needed.
fn plan(
    args: &[OsString],
    (now, zone): (i64, &TimeZone),
    me: impl FnOnce() -> String,
) -> Result<Call, Exit> {
    let parsed = front::parse::<Opts>("bhist", args)?;
    let o = parsed.options;
    let ids = job_ids::ids(&parsed.operands).map_err(Exit::fail)?;
    let of_arrays = !ids.ids.is_empty() && ids.ids.iter().all(|sel| !sel.elems.is_empty());
    let source = match (o.file.as_deref(), o.logs.as_deref()) {
        (Some("-"), _) => RecordSource::Stdin,
        (Some(file), _) => RecordSource::File(PathBuf::from(file)),
        (None, None) => RecordSource::Logs(Range::CURRENT),
        (None, Some(text)) => match Range::parse(text) {
            Some(range) => RecordSource::Logs(range),
            None => return Err(Exit::fail("bhist: Bad argument for option -n.")),
        },
    };
    let interval = |text| super::control::interval(text, now, zone);
    let hours = std::env::var("LSB_BHIST_HOURS").ok().and_then(|h| h.trim().parse::<i64>().ok());
    let back = hours.filter(|h| *h > 0).unwrap_or(HOURS).saturating_mul(3600);
    let events = match (o.time_order, interval(&o.interval)?) {
        (false, None) => None,
        (false, Some(_)) => return Err(Exit::fail("bhist: Option -T needs option -t.")),
        (true, None) => Some(Interval { from: now.saturating_sub(back), to: now }),
        (true, found) => found,
    };
    let user = match o.user {
        Some(all) if all == "all" => String::new(),
        Some(user) => user,
        // Jobs that are named are shown whoever owns them.
        None if !ids.ids.is_empty() => String::new(),
        None => me(),
    };
    let states =
        States { all: o.all, done: o.done, exit: o.exit, pend: o.pend, run: o.run, susp: o.susp };
    // the order of time knows no states
    let states = match o.time_order && states == States::default() {
        true => States { all: true, ..states },
        false => states,
    };
    let further = [(further::APP, o.app), (further::GROUP, o.group), (further::LICENSE, o.license)];
    let filter = HistoryFilter {
        ids: ids.ids,
        user,
        queue: o.queue.unwrap_or_default(),
        project: o.project.unwrap_or_default(),
        name: o.name.unwrap_or_default(),
        hosts: o.hosts.unwrap_or_default().split_whitespace().map(str::to_string).collect(),
        states,
        completed: interval(&o.completed)?,
        dispatched: interval(&o.dispatched)?,
        submitted: interval(&o.submitted)?,
        user_group: o.user_group.unwrap_or_default(),
        description: o.description.unwrap_or_default(),
        further: further.into_iter().filter_map(|(key, value)| Some((key, value?))).collect(),
    };
    let long = o.long || o.unformatted;
    let (json, wide, unwrapped) = (o.json, o.wide, o.unformatted);
    if json && events.is_some() {
        return Err(Exit::fail("bhist: Option -json cannot be used with option -t."));
    }
    Ok(Call { source, filter, events, long, json, wide, unwrapped, of_arrays, norm: o.normalise })
}

/// Reads the logs of `dir` and shows what they tell.
fn search(ctx: &mut Ctx, call: Call, dir: Option<&Path>, show: &Show) -> i32 {
    let only = Only::of(call.filter.ids.iter().map(|i| i.job));
    let mut history = History::new(call.filter, call.long || call.events.is_some(), show.tasks);
    history.factor = show.factor;
    let mut damage = Damage::default();
    let mut around = Around::of(&history.filter, call.events.is_some());
    let mut add = |r: &Record| {
        around.add(r);
        history.add(r);
    };
    let read = match (&call.source, dir) {
        (RecordSource::Stdin, _) => {
            let stdin = std::io::stdin().lock();
            records(stdin, "standard input", &only, &mut damage, &mut add)
                .map_err(|e| lsf::cli::ctx::os_words(&e))
        }
        (RecordSource::File(path), _) => each_record(path, &only, &mut damage, &mut add),
        (RecordSource::Logs(range), Some(dir)) => range
            .files(dir)
            .iter()
            .try_for_each(|path| each_record(path, &only, &mut damage, &mut add)),
        (RecordSource::Logs(_), None) => Err("LSB_SHAREDIR not defined".to_string()),
    };
    if let Err(words) = read {
        errln!(ctx, "bhist: {}", clean(&words));
        return FAIL;
    }
    let shown = match call.events {
        Some(interval) => by_time(ctx, &history, &around.lines, interval, show),
        None if call.json => {
            print_json(ctx, &history, call.long, show);
            true
        }
        None => print(ctx, &history, call.long, show),
    };
    damage.tell(ctx);
    if !shown {
        let what = match (call.events.is_some(), call.of_arrays) {
            (true, _) => "job/event",
            (false, true) => "job array",
            (false, false) => "job",
        };
        errln!(ctx, "No matching {what} found");
        return FAIL;
    }
    0
}

/// The events of mbatchd, the log, queues and hosts for -t.
struct Around {
    what: EventKinds,
    names: Vec<String>,
    lines: Vec<(i64, String)>,
}

impl Around {
    /// The kinds of events about the selected queue or hosts; none where single jobs are asked for.
    fn of(f: &HistoryFilter, by_time: bool) -> Self {
        let what = match (f.queue.is_empty(), f.hosts.is_empty()) {
            _ if !by_time || f.narrow() => EventKinds::default(),
            (true, true) => EventKinds { queues: true, hosts: true, mbatchd: true, switches: true },
            (queues, hosts) => {
                EventKinds { queues: !queues, hosts: !hosts, ..EventKinds::default() }
            }
        };
        let mut names = f.hosts.clone();
        names.extend((!f.queue.is_empty()).then(|| f.queue.clone()));
        Around { what, names, lines: Vec::new() }
    }

    fn add(&mut self, rec: &Record) {
        let words = lines::system(&rec.event, self.what, &self.names);
        self.lines.extend(words.map(|w| (rec.time, w)));
    }
}

/// Prints the events of the jobs wanted, and what is `around` them, in the order of time; false
/// if there is none.
fn by_time(
    ctx: &mut Ctx,
    history: &History,
    around: &[(i64, String)],
    interval: Interval,
    show: &Show,
) -> bool {
    let mut events: Vec<(i64, Option<JobRef>, Option<&str>)> =
        around.iter().map(|(time, words)| (*time, None, Some(words.as_str()))).collect();
    for (at, job, e) in history.wanted() {
        events.push((job.new.submit_time, Some(at), None));
        events.extend(e.lines.iter().map(|(t, line)| (*t, Some(at), Some(line.as_str()))));
    }
    events.retain(|e| interval.holds(e.0));
    events.sort_by_key(|e| e.0);
    let mut out = String::new();
    for (time, at, words) in &events {
        show::event(&mut out, *time, *at, *words, history, show);
    }
    let _ = ctx.out.write_all(out.as_bytes());
    !events.is_empty()
}

/// Prints the jobs wanted as records; an output without jobs is whole, too.
fn print_json(ctx: &mut Ctx, history: &History, long: bool, show: &Show) {
    let mut json = Json::new("bhist", "JOBS");
    let _ = ctx.out.write_all(json.begin().as_bytes());
    let mut jobs = 0;
    for (at, job, e) in history.wanted() {
        show::record(&mut json, at, job, e, show, long);
        let _ = ctx.out.write_all(json.take().as_bytes());
        jobs += 1;
    }
    let _ = ctx.out.write_all(json.end(jobs, "", &[]).as_bytes());
}

/// Prints the jobs wanted; false if there is none.
fn print(ctx: &mut Ctx, history: &History, long: bool, show: &Show) -> bool {
    let mut text = String::new();
    let mut shown = false;
    for (at, job, e) in history.wanted() {
        text.clear();
        match (long, shown) {
            (true, true) => {
                text.push_str(RULE);
                text.push('\n');
            }
            (false, false) => show::head(&mut text),
            _ => {}
        }
        shown = true;
        match long {
            true => show::long(&mut text, at, job, e, show, history.tracked),
            false => show::row(&mut text, at, job, e, show),
        }
        let _ = ctx.out.write_all(text.as_bytes());
    }
    if shown && long {
        let _ = ctx.out.write_all(b"\n");
    }
    shown
}
