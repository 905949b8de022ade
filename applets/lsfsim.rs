//! lsfsim: runs whole simulated clusters with faults, seed by seed. The tests and `make soak` use
//! it; a failing seed is printed and replays.

use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::front;
use lsf::faultsim::{Failure, MEMBERSHIP_MESSAGES, Scale, Stats, run as simulate, run_duplicate};
use lsf::{errln, outln};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Threads that run seeds side by side, where -j does not say.
const THREADS: usize = 2;

/// Runs simulated clusters with random faults and checks that no job is lost or run twice.
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// seeds to run, FIRST-LAST (default: 0-99)
    #[argh(option, short = 's', arg_name = "first-last")]
    seeds: Option<String>,
    /// 50 hosts and 5,000 jobs for each seed instead of 3 hosts and 50 jobs
    #[argh(switch, short = 'l')]
    large: bool,
    /// duplicate logging of events with two masters and a shared directory, instead of clusters
    #[argh(switch, short = 'd')]
    duplicate: bool,
    /// pipe queues and the load balancer, with 50 collectors, instead of clusters of 3 hosts
    #[argh(switch)]
    nlb: bool,
    /// number of threads (default: 2); two processes with one thread each are faster
    #[argh(option, short = 'j', arg_name = "threads")]
    threads: Option<usize>,
    /// show the log messages of the daemons
    #[argh(switch, short = 'v')]
    verbose: bool,
    /// new seeds of both sizes and of the load balancer for this time, as in 10m
    #[argh(option, short = 't', arg_name = "time")]
    time: Option<String>,
}

fn add(sum: &mut Stats, s: Stats) {
    sum.events += s.events;
    sum.virtual_secs += s.virtual_secs;
    sum.acknowledged += s.acknowledged;
    sum.faults += s.faults;
    let deaths = sum.membership_deaths.iter_mut().zip(s.membership_deaths);
    deaths.for_each(|(sum, deaths)| *sum += deaths);
    sum.tasks += s.tasks;
    sum.task_signals += s.task_signals;
    sum.switches += s.switches;
    sum.moves += s.moves;
    sum.overtaken += s.overtaken;
    sum.unknown_ends += s.unknown_ends;
    sum.routes += s.routes;
    sum.nlb_changes += s.nlb_changes;
}

/// Runs seeds; the first failure ends the run.
fn run_seeds(
    seeds: Range<u64>,
    threads: usize,
    simulate: &(dyn Fn(u64) -> Result<Stats, Failure> + Sync),
) -> Result<Stats, Failure> {
    let next = AtomicU64::new(seeds.start);
    let result: Mutex<(Stats, Option<Failure>)> = Mutex::default();
    let lock = || result.lock().unwrap_or_else(|e| e.into_inner());
    std::thread::scope(|s| {
        for _ in 0..threads.max(1) {
            s.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end || lock().1.is_some() {
                        return;
                    }
                    match simulate(seed) {
                        Ok(stats) => add(&mut lock().0, stats),
                        Err(f) => {
                            lock().1.get_or_insert(f);
                        }
                    }
                }
            });
        }
    });
    let (stats, failure) = std::mem::take(&mut *lock());
    failure.map_or(Ok(stats), Err)
}

fn parse_seeds(text: &str) -> Option<Range<u64>> {
    let (a, b) = text.split_once('-').unwrap_or((text, text));
    let (a, b): (u64, u64) = (a.trim().parse().ok()?, b.trim().parse().ok()?);
    (a <= b).then_some(a..b + 1)
}

fn report(ctx: &mut Ctx, n: u64, scale: Scale, result: Result<Stats, Failure>, took: f64) -> bool {
    match result {
        Ok(s) => {
            let changes = format!(", {} routes, {} changes of the NLB", s.routes, s.nlb_changes);
            let routed = if scale.balancer { changes } else { String::new() };
            let deaths = MEMBERSHIP_MESSAGES.iter().zip(s.membership_deaths);
            let deaths: Vec<String> = deaths.map(|(at, n)| format!("{n} at {at}")).collect();
            outln!(
                ctx,
                "{n} seeds of {} hosts: {} submissions, {} faults, {} switches, {} moves, \
                 {} stopped masters overtaken, {} unknown ends, deaths of daemons: {}, \
                 {} tasks with {} signals, {} events, {} virtual seconds{routed} in {took:.1} s",
                scale.hosts,
                s.acknowledged,
                s.faults,
                s.switches,
                s.moves,
                s.overtaken,
                s.unknown_ends,
                deaths.join(" "),
                s.tasks,
                s.task_signals,
                s.events,
                s.virtual_secs
            );
            // A soak that is interrupted has said how far it came.
            ctx.flush();
            true
        }
        Err(f) => {
            let option = match scale.balancer {
                true => " --nlb",
                false if scale.hosts > Scale::SMALL.hosts => " -l",
                false => "",
            };
            errln!(ctx, "lsfsim: {f}\nreplay: lsfsim{option} -s {}", f.seed);
            false
        }
    }
}

/// Seeds of duplicate logging in one round of a soak.
const DUPLICATES: u64 = 500;

/// Runs seeds of duplicate logging.
fn duplicates(ctx: &mut Ctx, seeds: Range<u64>, threads: usize) -> bool {
    let (begin, n) = (Instant::now(), seeds.end - seeds.start);
    match run_seeds(seeds, threads, &run_duplicate) {
        Ok(s) => {
            outln!(
                ctx,
                "{n} seeds of duplicate logging: {} records, {} faults, {} switches, {} returns \
                 of the first master, {} masters cut off in {:.1} s",
                s.acknowledged,
                s.faults,
                s.switches,
                s.moves,
                s.overtaken,
                begin.elapsed().as_secs_f64()
            );
            ctx.flush();
            true
        }
        Err(f) => {
            errln!(ctx, "lsfsim: {f}\nreplay: lsfsim -d -s {}", f.seed);
            false
        }
    }
}

fn soak(ctx: &mut Ctx, time: Duration, threads: usize) -> bool {
    let end = Instant::now() + time;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut seed = now.as_secs() << 20;
    while Instant::now() < end {
        for (n, scale) in [(50, Scale::SMALL), (1, Scale::LARGE), (5, Scale::BALANCER)] {
            let begin = Instant::now();
            let result = run_seeds(seed..seed + n, threads, &|seed| simulate(seed, scale));
            if !report(ctx, n, scale, result, begin.elapsed().as_secs_f64()) {
                return false;
            }
        }
        if !duplicates(ctx, seed..seed + DUPLICATES, threads) {
            return false;
        }
        seed += DUPLICATES;
    }
    true
}

/// Two options that were given and of which one would not act.
fn exclusive(opts: &Opts) -> Option<(&'static str, &'static str)> {
    let given = [
        (opts.time.is_some(), "-t"),
        (opts.duplicate, "-d"),
        (opts.nlb, "--nlb"),
        (opts.large, "-l"),
        // -t has seeds of its own
        (opts.seeds.is_some() && opts.time.is_some(), "-s"),
    ];
    let mut given = given.into_iter().filter(|(on, _)| *on).map(|(_, option)| option);
    given.next().zip(given.next())
}

pub fn run(ctx: &mut Ctx) -> i32 {
    let opts: Opts = match front::parse_of(ctx) {
        Ok(parsed) => parsed.options,
        Err(exit) => return exit.show(ctx),
    };
    let threads = opts.threads.unwrap_or(THREADS);
    if opts.verbose {
        env_logger::Builder::new().filter_level(log::LevelFilter::Trace).init();
    }
    if let Some((one, other)) = exclusive(&opts) {
        errln!(ctx, "lsfsim: {one} and {other} exclude each other");
        return FAIL;
    }
    if let Some(text) = &opts.time {
        let Ok(time) = humantime::parse_duration(text) else {
            errln!(ctx, "lsfsim: {text}: not a time like 90s or 10m");
            return FAIL;
        };
        return if soak(ctx, time, threads) { 0 } else { FAIL };
    }
    let text = opts.seeds.as_deref().unwrap_or("0-99");
    let Some(seeds) = parse_seeds(text) else {
        errln!(ctx, "lsfsim: {text}: seeds are given as FIRST-LAST");
        return FAIL;
    };
    if opts.duplicate {
        return if duplicates(ctx, seeds, threads) { 0 } else { FAIL };
    }
    let scale = match (opts.nlb, opts.large) {
        (true, _) => Scale::BALANCER,
        (false, true) => Scale::LARGE,
        (false, false) => Scale::SMALL,
    };
    let begin = Instant::now();
    let n = seeds.end - seeds.start;
    let result = run_seeds(seeds, threads, &|seed| simulate(seed, scale));
    if report(ctx, n, scale, result, begin.elapsed().as_secs_f64()) { 0 } else { FAIL }
}
