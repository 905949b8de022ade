//! pam: runs the launcher of a parallel job (the PJL) and watches the tasks that it starts. See
//! pam(1).

use argh::{ArgsInfo, FromArgs};
use lsf::cli::clock::Clock;
use lsf::cli::ctx::Ctx;
use lsf::cli::front;
use lsf::cli::launch_words::hosts_with_slots;
use lsf::cli::pam::{self, PamRun};
use lsf::cli::prove::canonical;
use lsf::cli::remote;
use lsf::cli::site::{self, LocalSite, param};
use lsf::conf::{MAX_PAM_SECS, PAM_FACTOR, load, pam_factor};
use lsf::model::JobRef;
use lsf::model::reason::{err, err_text};
use lsf::pam::command::{PamOptions, Starter, WordsFault};
use lsf::pam::{PamConf, PamEnd, table};
use lsf::sys::files::RealFiles;
use lsf::{errln, outln};
use std::ffi::OsString;
use std::path::PathBuf;

/// Exit code where LSF, not a task, failed, and of a usage error.
const LSF_ERROR: i32 = 255;
/// LSF_HPC_PJL_LOADENV_TIMEOUT where it is not set, seconds.
const REGISTER_WITHIN: u64 = 300;

/// Run the launcher of a parallel job (the PJL), which starts its tasks by TaskStarter, and end as
/// it does. All options stand before -g.
#[derive(FromArgs, ArgsInfo)]
struct Options {
    /// no table of the tasks at the end
    #[argh(switch, short = 't')]
    _no_table: bool,
    /// tell the hosts, the registrations and the ends on stderr
    #[argh(switch, short = 'v')]
    _verbose: bool,
    /// how many tasks are expected; the slots of the job otherwise
    #[argh(option, short = 'n', arg_name = "num_tasks")]
    _tasks: Option<usize>,
    /// hosts on which tasks may be; all of the job otherwise
    #[argh(option, short = 'm', arg_name = "host_name ...")]
    _hosts: Option<String>,
    /// the PJL follows, of so many words, its name counted; without a number it calls TaskStarter
    /// itself
    #[argh(option, short = 'g', arg_name = "num_words")]
    _generic: Option<usize>,
    /// the PJL with its words, the application and its arguments
    #[argh(positional, greedy, arg_name = "pjl ... application")]
    _command: Vec<String>,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    let options = match PamOptions::read(&ctx.args) {
        Ok(options) if options.help || options.version => {
            let word = if options.help { "-h" } else { "-V" };
            return front::parse::<Options>(ctx.name, &[word.into()])
                .map_or_else(|exit| exit.show(ctx), |_| 0);
        }
        Ok(options) => options,
        Err(WordsFault::Usage(words)) => {
            return front::usage_error::<Options>(ctx.name, &words).show(ctx);
        }
        Err(WordsFault::Words(words)) => return failed(ctx, &words),
    };
    run_with(ctx, options, &|_| Ok(Beside::default()))
}

/// The additions of a command that runs pam.
#[derive(Default)]
pub struct Beside {
    /// Further variables of the PJL.
    pub env: Vec<(String, String)>,
    /// A line before the table where the PJL fails.
    pub title: String,
    /// How many tasks are expected, where no option says it.
    pub tasks: Option<usize>,
    /// A file that is removed at the end.
    pub file: Option<PathBuf>,
}

/// A command's additions for these hosts of the job with their slots; else words and exit code.
pub type Adds<'a> = dyn Fn(&[(String, u32)]) -> Result<Beside, (String, i32)> + 'a;

/// Runs pam by options that were read.
pub fn run_with(ctx: &mut Ctx, mut options: PamOptions, adds: &Adds<'_>) -> i32 {
    let job = match Job::own() {
        Ok(job) => job,
        Err(words) => return failed(ctx, &words),
    };
    let site = match site::find() {
        Ok(site) => site,
        Err(e) => return failed(ctx, &e.to_string()),
    };
    let host = canonical(&site);
    if job.hosts.first().is_none_or(|(first, _)| *first != host) {
        let first = job.hosts.first().map_or("?", |(first, _)| first);
        return failed(ctx, &format!("pam runs on the first host of the job, {first}"));
    }
    let hosts = match hosts(&options, &job, &site) {
        Ok(hosts) => hosts,
        Err(words) => return failed(ctx, &words),
    };
    let beside = match adds(&hosts) {
        Ok(beside) => beside,
        Err((words, code)) => {
            errln!(ctx, "{}: {words}", ctx.name);
            return code;
        }
    };
    options.tasks = options.tasks.or(beside.tasks);
    let conf = conf(ctx, &options, (&job, hosts), &site);
    let known = job.hosts.iter().map(|(host, _)| host.clone()).collect();
    let end = launched(ctx, &options, &site, (host, known), (conf, &beside));
    if let Some(file) = beside.file {
        let _ = std::fs::remove_file(file);
    }
    match end {
        Ok(PamEnd::AsPjl(status)) => remote::end(Some(status)),
        Ok(PamEnd::Code(code)) | Err(code) => code,
    }
}

fn failed(ctx: &mut Ctx, words: &str) -> i32 {
    errln!(ctx, "{}: {words}", ctx.name);
    LSF_ERROR
}

fn launched(
    ctx: &mut Ctx,
    options: &PamOptions,
    site: &LocalSite,
    (host, known): (String, Vec<String>),
    (conf, beside): (PamConf, &Beside),
) -> Result<PamEnd, i32> {
    let bindir = param(Some(site), "LSF_BINDIR").unwrap_or_default();
    let serverdir = param(Some(site), "LSF_SERVERDIR").unwrap_or_default();
    let host_type = std::env::var("HOSTTYPE").unwrap_or_default();
    let pjl = |port: u16| -> Result<(Vec<OsString>, Starter), String> {
        let starter = Starter::new(&bindir, (&host, port), &site.envdir, &serverdir, &host_type)?;
        Ok((options.pjl(&starter), starter))
    };
    ctx.flush();
    let (own, dir) = (host.clone(), bindir.clone());
    let of = PamRun { site, conf, known, host: own, bindir: dir, env: &beside.env, pjl: &pjl };
    let outcome = match pam::run(of, ctx.err) {
        Ok(outcome) => outcome,
        Err(fault) => {
            errln!(ctx, "{}: {}", ctx.name, fault.words);
            return Err(fault.code);
        }
    };
    let failed = !matches!(outcome.end, PamEnd::AsPjl(0) | PamEnd::Code(0));
    if failed && !beside.title.is_empty() {
        outln!(ctx, "{}\n", beside.title);
    }
    if !options.no_table && !outcome.rows.is_empty() {
        let clock = Clock::system();
        let time = |secs: i64| clock.dated(secs);
        let text = table::text(&outcome.rows, &time);
        let _ = ctx.out.write_all(text.as_bytes());
    }
    ctx.flush();
    Ok(outcome.end)
}

/// The job that this process is of, as its environment has it.
struct Job {
    at: JobRef,
    /// The hosts with their slots.
    hosts: Vec<(String, u32)>,
}

impl Job {
    fn own() -> Result<Job, String> {
        let outside = || "not inside a batch job".to_owned();
        let var = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let number = |name: &str| var(name).and_then(|value| value.parse::<u32>().ok());
        let job = number("LSB_JOBID").filter(|job| *job > 0).ok_or_else(outside)?;
        let hosts = hosts_with_slots(&var("LSB_MCPU_HOSTS").ok_or_else(outside)?);
        let hosts = hosts.map_err(|word| format!("LSB_MCPU_HOSTS: bad word {word}"))?;
        let at = JobRef { job, idx: number("LSB_JOBINDEX").unwrap_or(0) };
        Ok(Job { at, hosts })
    }
}

/// The hosts for tasks, with their slots.
fn hosts(options: &PamOptions, job: &Job, site: &LocalSite) -> Result<Vec<(String, u32)>, String> {
    let Some(names) = &options.hosts else { return Ok(job.hosts.clone()) };
    let all: Vec<String> = job.hosts.iter().map(|(host, _)| host.clone()).collect();
    let chosen = chosen(site, &all, names)?;
    Ok(job.hosts.iter().filter(|(host, _)| chosen.contains(host)).cloned().collect())
}

fn conf(
    ctx: &mut Ctx,
    options: &PamOptions,
    (job, hosts): (&Job, Vec<(String, u32)>),
    site: &LocalSite,
) -> PamConf {
    let slots: usize = job.hosts.iter().map(|(_, slots)| *slots as usize).sum();
    let name = ctx.name;
    let expected = match options.tasks {
        Some(tasks) if tasks > slots => {
            errln!(
                ctx,
                "{name}: -n {tasks}: the job has {slots} slots; {slots} tasks are expected"
            );
            slots
        }
        tasks => tasks.unwrap_or(slots),
    };
    let register_within = seconds(ctx, site, "LSF_HPC_PJL_LOADENV_TIMEOUT", (1, REGISTER_WITHIN));
    let clean_delay = seconds(ctx, site, "LSF_PAM_CLEAN_JOB_DELAY", (0, 0));
    if options.verbose {
        let each = hosts.iter().map(|(host, slots)| format!("{slots}*{host}"));
        let words: Vec<String> = each.collect();
        errln!(ctx, "{name}: hosts: {}", words.join(" "));
    }
    let factor = factor(ctx, site);
    let (job, verbose) = (job.at, options.verbose);
    let hosts = hosts.into_iter().map(|(host, _)| host).collect();
    PamConf { job, expected, register_within, clean_delay, factor, hosts, verbose }
}

/// The hosts of -m, as the cluster spells them.
fn chosen(site: &LocalSite, all: &[String], names: &[String]) -> Result<Vec<String>, String> {
    let (base, _) = load::load_base_lenient(&RealFiles, &site.envdir, Some(&site.host));
    let table = base.map(|base| base.hosts).unwrap_or_default();
    let host = |name: &String| {
        let found = table.canonical(name).unwrap_or(name);
        let known = all.iter().find(|host| *host == found).cloned();
        known.ok_or_else(|| format!("{name}: {}", err_text(err::DJOB_BAD_HOST)))
    };
    names.iter().map(host).collect()
}

/// LSF_PAM_RUSAGE_UPD_FACTOR of the environment or lsf.conf; a value that is none is told.
fn factor(ctx: &mut Ctx, site: &LocalSite) -> f64 {
    let name = "LSF_PAM_RUSAGE_UPD_FACTOR";
    let Some(value) = param(Some(site), name) else { return PAM_FACTOR };
    pam_factor(&value).unwrap_or_else(|| {
        let value = value.escape_debug();
        let want = "not a number of seconds from 0 to 100";
        errln!(ctx, "{}: {name}={value}: {want}; {PAM_FACTOR} is used", ctx.name);
        PAM_FACTOR
    })
}

/// A number of seconds from the environment or lsf.conf: at least `least`; one that is none is told
/// and the usual one taken.
fn seconds(ctx: &mut Ctx, site: &LocalSite, name: &str, (least, usual): (u64, u64)) -> u64 {
    match site::seconds(Some(site), name, least..=MAX_PAM_SECS) {
        Ok(secs) => secs.unwrap_or(usual),
        Err(words) => {
            errln!(ctx, "{}: {words}; {usual} is used", ctx.name);
            usual
        }
    }
}
