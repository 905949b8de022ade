//! lsfsim: runs whole simulated clusters with faults, seed by seed. The tests and `make soak` use
//! it; a failing seed is printed and replays, and the others go on.

use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::front;
use lsf::faultsim::{Failure, MEMBERSHIP_MESSAGES, Scale, Stats, run as simulate, run_duplicate};
use lsf::{errln, outln};
use std::cell::Cell;
use std::io::Write;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Threads that run seeds side by side, where -j does not say.
const THREADS: usize = 2;
/// Seeds of duplicate logging in one round of a soak.
const DUPLICATES: u64 = 500;
/// Most failures that a run tells of: it ends with them.
const MOST_FOUND: usize = 50;

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

/// The kind of world that a seed runs in.
#[derive(Clone, Copy)]
enum Course {
    Clusters(Scale),
    Duplicate,
}

impl Course {
    fn run(self, seed: u64) -> Result<Stats, Failure> {
        REPLAY.set(Some((self, seed)));
        match self {
            Course::Clusters(scale) => simulate(seed, scale),
            Course::Duplicate => run_duplicate(seed),
        }
    }

    /// The command that runs a seed again.
    fn replay(self, seed: u64) -> String {
        let option = match self {
            Course::Duplicate => " -d",
            Course::Clusters(scale) if scale.balancer => " --nlb",
            Course::Clusters(scale) if scale.hosts > Scale::SMALL.hosts => " -l",
            Course::Clusters(_) => "",
        };
        format!("lsfsim{option} -s {seed}")
    }
}

thread_local! {
    /// The seed that this thread runs.
    static REPLAY: Cell<Option<(Course, u64)>> = const { Cell::new(None) };
}

/// A panic ends the process: it says which seed has led to it.
fn tell_seed_of_a_panic() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if let Some((course, seed)) = REPLAY.get() {
            let line = format!("lsfsim: seed {seed} panics\nreplay: {}\n", course.replay(seed));
            let _ = std::io::stderr().write_all(line.as_bytes());
        }
        before(info);
    }));
}

/// Runs seeds; [`MOST_FOUND`] failures end the run. The number of those that went well is told.
fn run_seeds(
    seeds: Range<u64>,
    threads: usize,
    run: &(dyn Fn(u64) -> Result<Stats, Failure> + Sync),
) -> (u64, Stats, Vec<Failure>) {
    let next = AtomicU64::new(seeds.start);
    let result: Mutex<(u64, Stats, Vec<Failure>)> = Mutex::default();
    let lock = || result.lock().unwrap_or_else(|e| e.into_inner());
    std::thread::scope(|s| {
        for _ in 0..threads.max(1) {
            s.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end || lock().2.len() >= MOST_FOUND {
                        return;
                    }
                    match run(seed) {
                        Ok(stats) => {
                            let mut all = lock();
                            all.0 += 1;
                            add(&mut all.1, stats);
                        }
                        Err(f) => lock().2.push(f),
                    }
                }
            });
        }
    });
    std::mem::take(&mut *lock())
}

fn parse_seeds(text: &str) -> Option<Range<u64>> {
    let (a, b) = text.split_once('-').unwrap_or((text, text));
    let (a, b): (u64, u64) = (a.trim().parse().ok()?, b.trim().parse().ok()?);
    (a <= b).then_some(a..b + 1)
}

fn clusters(n: u64, scale: Scale, s: &Stats) -> String {
    let changes = format!(", {} routes, {} changes of the NLB", s.routes, s.nlb_changes);
    let routed = if scale.balancer { changes } else { String::new() };
    let deaths = MEMBERSHIP_MESSAGES.iter().zip(s.membership_deaths);
    let deaths: Vec<String> = deaths.map(|(at, n)| format!("{n} at {at}")).collect();
    format!(
        "{n} seeds of {} hosts: {} submissions, {} faults, {} switches, {} moves, \
         {} stopped masters overtaken, {} unknown ends, deaths of daemons: {}, \
         {} tasks with {} signals, {} events, {} virtual seconds{routed}",
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
    )
}

fn duplicates(n: u64, s: &Stats) -> String {
    format!(
        "{n} seeds of duplicate logging: {} records, {} faults, {} switches, {} returns of the \
         first master, {} masters cut off",
        s.acknowledged, s.faults, s.switches, s.moves, s.overtaken
    )
}

/// Runs seeds and tells how they went: the commands that run those again which failed.
fn run_and_tell(ctx: &mut Ctx, course: Course, seeds: Range<u64>, threads: usize) -> Vec<String> {
    let begin = Instant::now();
    let (well, stats, mut failures) = run_seeds(seeds, threads, &|seed| course.run(seed));
    if well > 0 {
        let told = match course {
            Course::Clusters(scale) => clusters(well, scale, &stats),
            Course::Duplicate => duplicates(well, &stats),
        };
        outln!(ctx, "{told} in {:.1} s", begin.elapsed().as_secs_f64());
        // A soak that is interrupted has said how far it came.
        ctx.flush();
    }
    failures.sort_by_key(|failure| failure.seed);
    let told = failures.iter().map(|f| {
        let replay = course.replay(f.seed);
        errln!(ctx, "lsfsim: {f}\nreplay: {replay}");
        replay
    });
    told.collect()
}

/// Fresh seeds of every kind for this time: the commands that run those again which failed.
fn soak(ctx: &mut Ctx, time: Duration, threads: usize) -> Vec<String> {
    let end = Instant::now() + time;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (mut seed, mut found) = (now.as_secs() << 20, Vec::new());
    let round = [
        (50, Course::Clusters(Scale::SMALL)),
        (1, Course::Clusters(Scale::LARGE)),
        (5, Course::Clusters(Scale::BALANCER)),
        (DUPLICATES, Course::Duplicate),
    ];
    while Instant::now() < end && found.len() < MOST_FOUND {
        for (n, course) in round {
            found.extend(run_and_tell(ctx, course, seed..seed + n, threads));
        }
        seed += DUPLICATES;
    }
    if found.len() > 1 {
        errln!(ctx, "lsfsim: {} seeds have failed:", found.len());
        found.iter().for_each(|replay| errln!(ctx, "{replay}"));
    }
    found
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
    tell_seed_of_a_panic();
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
        return if soak(ctx, time, threads).is_empty() { 0 } else { FAIL };
    }
    let text = opts.seeds.as_deref().unwrap_or("0-99");
    let Some(seeds) = parse_seeds(text) else {
        errln!(ctx, "lsfsim: {text}: seeds are given as FIRST-LAST");
        return FAIL;
    };
    let course = match (opts.duplicate, opts.nlb, opts.large) {
        (true, ..) => Course::Duplicate,
        (_, true, _) => Course::Clusters(Scale::BALANCER),
        (_, _, true) => Course::Clusters(Scale::LARGE),
        _ => Course::Clusters(Scale::SMALL),
    };
    if run_and_tell(ctx, course, seeds, threads).is_empty() { 0 } else { FAIL }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_go_on_after_one_that_fails_until_too_many_have() {
        let odd_fail = |seed: u64| match seed % 2 {
            0 => Ok(Stats { faults: 1, ..Stats::default() }),
            _ => Err(Failure { seed, at_secs: 0.0, what: "odd".into() }),
        };
        let (well, stats, failures) = run_seeds(10..20, 1, &odd_fail);
        let seeds: Vec<u64> = failures.iter().map(|failure| failure.seed).collect();
        assert_eq!((well, stats.faults, seeds), (5, 5, vec![11, 13, 15, 17, 19]));
        let (well, _, failures) = run_seeds(0..1000, 1, &odd_fail);
        assert_eq!((well, failures.len()), (MOST_FOUND as u64, MOST_FOUND), "others were not run");
    }

    #[test]
    fn command_that_runs_a_seed_again_has_the_option_of_its_world() {
        let courses = [
            Course::Clusters(Scale::SMALL),
            Course::Clusters(Scale::LARGE),
            Course::Clusters(Scale::BALANCER),
            Course::Duplicate,
        ];
        let want = ["lsfsim -s 7", "lsfsim -l -s 7", "lsfsim --nlb -s 7", "lsfsim -d -s 7"];
        assert_eq!(courses.map(|course| course.replay(7)), want);
    }
}
