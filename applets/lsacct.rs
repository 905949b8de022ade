//! lsacct: what remote tasks used, from res's lsf.acct.HOST; and lsacctmrg, which puts such files
//! together. See lsacct(1) and lsacctmrg(1).

use argh::{ArgsInfo, FromArgs};
use lsf::cli::clock::Clock;
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::front;
use lsf::cli::site::{self, LocalSite};
use lsf::conf::load::load_base_lenient;
use lsf::lang::civil;
use lsf::log::codec::read_task;
use lsf::model::sort::sort_by_key;
use lsf::proto::res::Account;
use lsf::sys::files::{RealFiles, regular_of};
use lsf::sys::users::{GETENT_WAIT, UserDatabase};
use lsf::{errln, outln};
use std::io::Read;
use std::path::Path;

const RULE: &str = "------------------------------------------------------------------------------";

/// Show what remote tasks used.
#[derive(FromArgs, ArgsInfo)]
struct Options {
    /// long format: also each task
    #[argh(switch, short = 'l')]
    long: bool,
    /// tasks that ended between these times
    #[argh(option, short = 'C', arg_name = "time0,time1")]
    completed: Option<String>,
    /// tasks that began between these times
    #[argh(option, short = 'S', arg_name = "time0,time1")]
    started: Option<String>,
    /// the file with the records (default: lsf.acct.HOST of this host)
    #[argh(option, short = 'f', arg_name = "logfile_name")]
    file: Option<String>,
    /// tasks on these hosts
    #[argh(option, short = 'm', arg_name = "host_name ...")]
    hosts: Option<String>,
    /// tasks of these users, or all (default: the caller)
    #[argh(option, short = 'u', arg_name = "user_name ... | all")]
    users: Option<String>,
    /// tasks with these process numbers
    #[argh(positional, greedy, arg_name = "pid")]
    pids: Vec<u32>,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    let parsed = match front::parse_of::<Options>(ctx) {
        Ok(parsed) => parsed,
        Err(exit) => return exit.show(ctx),
    };
    show(ctx, &parsed.options).unwrap_or_else(|why| {
        errln!(ctx, "lsacct: {why}");
        FAIL
    })
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

fn show(ctx: &mut Ctx, o: &Options) -> Result<i32, String> {
    let site = site::find().map_err(|e| e.to_string())?;
    let dir = site.lsf.get("LSF_RES_ACCTDIR").unwrap_or("/tmp");
    let text = match &o.file {
        Some(file) => std::fs::read(file).map_err(|e| failed(Path::new(file), &e)),
        None => of_res(&site, &Path::new(dir).join(format!("lsf.acct.{}", site.host))),
    }?;
    let uid = rustix::process::getuid().as_raw();
    let own = UserDatabase::default().find_uid(uid, GETENT_WAIT);
    let own = own.map_or_else(|| uid.to_string(), |user| user.name);
    let users = words(o.users.as_deref().unwrap_or(&own));
    let users = if users.contains(&"all") { Vec::new() } else { users };
    let hosts = words(o.hosts.as_deref().unwrap_or_default());
    let (started, completed) = (range(o.started.as_deref())?, range(o.completed.as_deref())?);
    let within = |(a, b): (i64, i64), t: i64| a <= t && t <= b;
    let lines = text.split(|b| *b == b'\n').filter(|l| !l.is_empty());
    let mut tasks: Vec<Account> = lines.filter_map(|l| read_task(l).ok()).collect();
    tasks.retain(|t| {
        (users.is_empty() || users.contains(&t.user.as_str()))
            && (hosts.is_empty() || hosts.contains(&t.exec_host.as_str()))
            && (o.pids.is_empty() || o.pids.contains(&t.pid))
            && within(started, t.started)
            && within(completed, t.ended)
    });
    let clock = Clock::system();
    outln!(ctx, "Accounting information about tasks that are:");
    outln!(ctx, "  - executed by user(s) {}.", list(&users, "all"));
    outln!(ctx, "  - executed on host(s) {}.", list(&hosts, "all"));
    outln!(ctx, "  - started {}.", interval(&clock, started));
    outln!(ctx, "  - completed {}.", interval(&clock, completed));
    outln!(ctx, "{RULE}");
    if o.long {
        tasks.iter().for_each(|t| task(ctx, &clock, t));
    }
    summary(ctx, &tasks);
    Ok(0)
}

fn failed(path: &Path, e: &std::io::Error) -> String {
    format!("{}: {}", path.display(), lsf::sys::words(e))
}

/// The file of this host's res, which runs as the primary administrator: in a directory that
/// others may write, what is another's is not believed, and nothing is waited for.
fn of_res(site: &LocalSite, path: &Path) -> Result<Vec<u8>, String> {
    let (base, _) = load_base_lenient(&RealFiles, &site.envdir, Some(&site.host));
    let admins = base.map(|base| base.cluster.admins).unwrap_or_default();
    let mut users = UserDatabase::default();
    let uids = admins.iter().filter_map(|name| users.find_name(name, GETENT_WAIT));
    let owners: Vec<u32> = uids.map(|user| user.uid).chain([0, lsf::sys::euid()]).collect();
    let mut text = Vec::new();
    let read = regular_of(path, &owners).and_then(|mut file| file.read_to_end(&mut text));
    read.map_err(|e| failed(path, &e))?;
    Ok(text)
}

fn list(names: &[&str], none: &str) -> String {
    if names.is_empty() { none.to_owned() } else { names.join(" ") }
}

fn at(clock: &Clock, secs: i64) -> String {
    let mut text = String::new();
    clock.long(&mut text, secs);
    text
}

fn interval(clock: &Clock, (a, b): (i64, i64)) -> String {
    match (a, b) {
        (i64::MIN, i64::MAX) => "any time".into(),
        (a, i64::MAX) => format!("since {}", at(clock, a)),
        (i64::MIN, b) => format!("until {}", at(clock, b)),
        (a, b) => format!("between {} and {}", at(clock, a), at(clock, b)),
    }
}

fn task(ctx: &mut Ctx, clock: &Clock, t: &Account) {
    outln!(ctx, "Starting time:   {}", at(clock, t.started));
    outln!(ctx, "Ending time:     {}", at(clock, t.ended));
    outln!(ctx, "User name:       {}", t.user);
    outln!(ctx, "Command line:    {}", t.command.lossy());
    outln!(ctx, "CWD:             {}", t.cwd.lossy());
    outln!(ctx, "Submission host: {}", t.from_host);
    outln!(ctx, "Execution host:  {}", t.exec_host);
    outln!(ctx, "Process id:      {}", t.pid);
    outln!(ctx, "Exit status:     {}", t.exit_status);
    outln!(ctx, "CPU time:        {:.2} seconds", t.usage.cpu_secs());
    outln!(ctx, "{RULE}");
}

/// A figure of a task.
type Figure = fn(&Account) -> f64;

fn summary(ctx: &mut Ctx, tasks: &[Account]) {
    let column: [(&str, Figure); 10] = [
        ("CPU time", |t| t.usage.cpu_secs()),
        ("Page faults", |t| t.usage.majflt as f64),
        ("Swaps", |_| 0.0),
        ("Blocks in", |t| t.usage.inblock as f64),
        ("Blocks out", |t| t.usage.oublock as f64),
        ("Messages sent", |_| 0.0),
        ("Messages rcvd", |_| 0.0),
        ("Voluntary cont sw", |t| t.usage.nvcsw as f64),
        ("Involuntary con sw", |t| t.usage.nivcsw as f64),
        ("Turnaround", |t| (t.ended - t.started) as f64),
    ];
    outln!(ctx, "SUMMARY: (time unit: second)");
    outln!(ctx, "{:<20} {}", "Number of tasks", tasks.len());
    if tasks.is_empty() {
        return;
    }
    let heads = ["total", "average", "maximum", "minimum"].map(|h| format!(" {h:>12}"));
    outln!(ctx, "{:<20}{}", "", heads.concat());
    for (name, of) in column {
        let values: Vec<f64> = tasks.iter().map(of).collect();
        let total: f64 = values.iter().sum();
        let most = values.iter().copied().fold(f64::MIN, f64::max);
        let least = values.iter().copied().fold(f64::MAX, f64::min);
        let cells =
            [total, total / values.len() as f64, most, least].map(|v| format!(" {v:>12.2}"));
        outln!(ctx, "{name:<20}{}", cells.concat());
    }
}

/// `time0,time1`, either of which may be missing.
fn range(text: Option<&str>) -> Result<(i64, i64), String> {
    let Some(text) = text else { return Ok((i64::MIN, i64::MAX)) };
    let (a, b) = text.split_once(',').unwrap_or((text, ""));
    let one = |text: &str, none: i64, last: bool| match text.trim() {
        "" => Ok(none),
        text => time(text, last).ok_or_else(|| format!("{text}: Bad time")),
    };
    Ok((one(a, i64::MIN, false)?, one(b, i64::MAX, true)?))
}

/// `[[year/]month/]day[/hour:[minute]]`, `hour:minute`: the first second of it, or the last.
fn time(text: &str, last: bool) -> Option<i64> {
    use jiff::civil::{Date, Time};
    let now = jiff::Zoned::now();
    let mut parts: Vec<&str> = text.split('/').collect();
    let clock = parts.last().filter(|p| p.contains(':')).map(|p| p.to_string());
    if clock.is_some() {
        parts.pop();
    }
    let number = |back: usize, none: i16| match parts.len().checked_sub(back) {
        Some(at) => parts[at].parse::<i16>().ok(),
        None => Some(none),
    };
    let (today, third) = (now.date(), number(3, now.year())?);
    let (month, day) = (number(2, today.month().into())?, number(1, today.day().into())?);
    let date = Date::new(third, month.try_into().ok()?, day.try_into().ok()?).ok()?;
    let (from, span) = match clock.as_deref().map(|c| c.split_once(':')) {
        None => (Time::midnight(), 86_400),
        Some(Some((hour, ""))) => (Time::new(hour.parse().ok()?, 0, 0, 0).ok()?, 3600),
        Some(Some((hour, minute))) => {
            (Time::new(hour.parse().ok()?, minute.parse().ok()?, 0, 0).ok()?, 60)
        }
        Some(None) => return None,
    };
    let secs = civil::instant(date.to_datetime(from), now.time_zone());
    Some(if last { secs + span - 1 } else { secs })
}

/// Put files of lsacct together, by the time at which tasks ended.
#[derive(FromArgs, ArgsInfo)]
struct Merge {
    /// overwrite the target
    #[argh(switch, short = 'f')]
    force: bool,
    /// the files, the target last
    #[argh(positional, greedy, arg_name = "logfile_name ... target")]
    files: Vec<String>,
}

pub fn merge(ctx: &mut Ctx) -> i32 {
    let parsed = match front::parse_of::<Merge>(ctx) {
        Ok(parsed) => parsed,
        Err(exit) => return exit.show(ctx),
    };
    let o = parsed.options;
    let Some((target, [_, ..])) = o.files.split_last() else {
        return front::usage_error::<Merge>(ctx.name, "files and a target").show(ctx);
    };
    let done = merged(&o.files[..o.files.len() - 1]).and_then(|text| {
        let mut how = std::fs::File::options();
        how.write(true).create(o.force).truncate(o.force).create_new(!o.force);
        let wrote = how.open(target).and_then(|mut f| std::io::Write::write_all(&mut f, &text));
        wrote.map_err(|e| format!("{target}: {}", lsf::sys::words(&e)))
    });
    match done {
        Ok(()) => 0,
        Err(why) => {
            errln!(ctx, "lsacctmrg: {why}");
            FAIL
        }
    }
}

fn merged(files: &[String]) -> Result<Vec<u8>, String> {
    let mut lines: Vec<(i64, Vec<u8>)> = Vec::new();
    for file in files {
        let text = std::fs::read(file).map_err(|e| format!("{file}: {}", lsf::sys::words(&e)))?;
        for line in text.split(|b| *b == b'\n').filter(|l| !l.is_empty()) {
            let task = read_task(line).map_err(|e| format!("{file}: {e}"))?;
            lines.push((task.ended, [line, b"\n"].concat()));
        }
    }
    sort_by_key(&mut lines, |l| l.0);
    Ok(lines.into_iter().flat_map(|l| l.1).collect())
}
