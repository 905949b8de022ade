//! The group `sched`: the scheduler alone. mbatchd's machine is a value, so it is measured without
//! log, network, daemons or clocks: a cluster of 10,000 hosts whose slots are all taken, with
//! 1,000,000 pending jobs, and one of 100 hosts with 1,000.
//!
//! The group is a part of this program, not a program of its own, because table, goals,
//! `bench.json` and their comparison are here, and because only the library is compiled with it.
//! Each size runs in a process of its own: memory is that process's, and a step that takes for ever
//! ends with it. A measurement that reaches its time says what was reached by then.

pub mod driver;
pub mod policies;
pub mod site;

use super::table::{Figure, FigureTable, Unit, median, ms};
use driver::{Scheduler, Started};
use site::Size;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

const LARGE: Size = Size {
    hosts: 10_000,
    pending: 1_000_000,
    users: 5_000,
    requirements: 2_000,
    queues: 50,
    policies: false,
};
const SMALL: Size =
    Size { hosts: 100, pending: 1_000, users: 5, requirements: 20, queues: 5, policies: false };
/// The large one with all policies at once.
pub const CONFIGURED: Size = Size { policies: true, ..LARGE };
/// How often the small cluster is measured, in one process.
const SMALL_RUNS: usize = 5;
/// How often the large one is, each time in a process of its own: beside other work on the machine
/// one run says little about the slowest hundredth of the freed slots.
const LARGE_RUNS: usize = 3;
/// Longest time of the process of each size, and of the one with all policies.
const LIMIT: Duration = Duration::from_secs(200);
const LIMIT_CONFIGURED: Duration = Duration::from_secs(58);

/// Longest times of the measurements; each ends with the turn in which its time is over.
const SUBMIT: Duration = Duration::from_secs(60);
/// With all policies; the others are measured over the jobs that have come by then.
const SUBMIT_CONFIGURED: Duration = Duration::from_secs(20);
const FIRST: Duration = Duration::from_secs(45);
const UNCHANGED: Duration = Duration::from_secs(4);
const CHANGED: Duration = Duration::from_secs(5);
const FREED: Duration = Duration::from_secs(15);
const REASONS: Duration = Duration::from_secs(8);
const ALL_FREED: Duration = Duration::from_secs(20);
/// Longest wait for the scheduler to come to rest between two trials.
const REST: Duration = Duration::from_millis(20);

/// Passes and freed slots that are measured.
const TRIALS: usize = 1_000;
/// Single jobs, the ends of which free slots.
const SINGLES: usize = 50;

/// Name in the environment of the size that a process measures.
pub const CHILD: &str = "LSF_BENCH_SCHED";

/// The figures of each size: word, the words of its line, unit.
const LINES: [(&str, &str, Unit); 12] = [
    ("up", "configuration to all hosts ok", Unit::Ms),
    ("submit", "time to submit them", Unit::Ms),
    ("first", "first pass over all of them", Unit::Ms),
    ("unchanged", "pass, nothing changed", Unit::Ms),
    ("changed", "passes, a host's load changed", Unit::PerSec),
    ("freed50", "freed slot to next decision, p50", Unit::Ms),
    ("freed99", "freed slot to next decision, p99", Unit::Ms),
    ("decisions", "decisions, all hosts freed", Unit::PerSec),
    ("reason", "bjobs -p3 of one job", Unit::Ms),
    ("reasons", "bjobs -p of all", Unit::Ms),
    ("job", "memory of a job", Unit::Bytes),
    ("host", "memory of a host", Unit::Bytes),
];

/// The figures that are measured with all policies, too.
const CONFIGURED_LINES: [&str; 10] = [
    "up",
    "submit",
    "first",
    "unchanged",
    "freed50",
    "freed99",
    "decisions",
    "reason",
    "reasons",
    "job",
];

/// Measures both sizes, and how much of the small one's speed the large one has.
pub fn measure(table: &mut FigureTable) {
    let small = of_size("small", 1, table);
    let large = of_size("large", LARGE_RUNS, table);
    configured(&large, table);
    let kept = [
        ("decisions", "decisions left"),
        ("unchanged", "passes left"),
        ("freed50", "speed of a freed slot, p50, left"),
        ("freed99", "speed of a freed slot, p99, left"),
    ];
    for (word, words) in kept {
        let value = |all: &[(String, f64)]| {
            median(&all.iter().filter(|m| m.0 == word).map(|m| m.1).collect::<Vec<_>>())
        };
        let share = value(&small).zip(value(&large)).map(|(small, large)| match word {
            "decisions" => 100.0 * large / small,
            _ => 100.0 * small / large,
        });
        let name = format!("{words} at {} pending", LARGE.pending);
        table.add(Figure::new(name, Unit::Kept, share.into_iter().collect()), None);
    }
}

/// Measures the large size with all policies, and adds its lines beside those without.
fn configured(plain: &[(String, f64)], table: &mut FigureTable) {
    let all = child("configured", LIMIT_CONFIGURED);
    for (word, words, unit) in LINES.iter().filter(|line| CONFIGURED_LINES.contains(&line.0)) {
        let of = |all: &[(String, f64)]| -> Vec<f64> {
            all.iter().filter(|m| m.0 == *word).map(|m| m.1).collect()
        };
        let figure = Figure::new(format!("all configured: {words}"), *unit, of(&all));
        let beside = Figure::new(format!("without policies: {words}"), *unit, of(plain));
        table.add(figure, Some(beside));
    }
}

/// Measures one size in so many processes of its own, and adds its lines.
fn of_size(name: &str, processes: usize, table: &mut FigureTable) -> Vec<(String, f64)> {
    let size = if name == "large" { LARGE } else { SMALL };
    let all: Vec<(String, f64)> = (0..processes).flat_map(|_| child(name, LIMIT)).collect();
    for (word, words, unit) in LINES {
        let runs: Vec<f64> = all.iter().filter(|m| m.0 == word).map(|m| m.1).collect();
        // so few jobs and hosts are less than what a process takes anyway
        if matches!(word, "job" | "host" | "reason" | "reasons") && runs.is_empty() {
            continue;
        }
        let line = format!("{} pending: {words}", size.pending);
        table.add(Figure::new(line, unit, runs), None);
    }
    all
}

/// The output of the process of a size: a word and a value a line; notes go to the terminal.
fn child(name: &str, limit: Duration) -> Vec<(String, f64)> {
    let mut command = Command::new("/proc/self/exe");
    command.args(["sched_child", "--ignored", "--nocapture", "--exact"]).env(CHILD, name);
    let Ok(mut child) = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn() else {
        return Vec::new();
    };
    let (told, lines) = mpsc::channel();
    let stdout = child.stdout.take();
    std::thread::spawn(move || {
        for line in stdout.into_iter().flat_map(|out| BufReader::new(out).lines()) {
            let _ = line.map(|line| told.send(line));
        }
    });
    let (until, mut all) = (Instant::now() + limit, Vec::new());
    while let Ok(line) = lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
        let mut words = line.split('\t');
        if let (Some("figure"), Some(word), Some(value)) =
            (words.next(), words.next(), words.next().and_then(|v| v.parse().ok()))
        {
            all.push((word.to_owned(), value));
        }
    }
    if Instant::now() >= until {
        eprintln!("  {name}: not over within {} s: ended", limit.as_secs());
    }
    let _ = child.kill();
    let _ = child.wait();
    all
}

/// The process of one size.
pub fn run_child() {
    let runs = match std::env::var(CHILD).as_deref() {
        Ok("large") => vec![LARGE],
        Ok("configured") => vec![CONFIGURED],
        Ok("small") => vec![SMALL; SMALL_RUNS],
        _ => return,
    };
    // as mbatchd does
    #[cfg(target_env = "musl")]
    if let Err(e) = lsf::sys::heap::prepare_ahead() {
        eprintln!("  memory is not prepared ahead: {e}");
    }
    for size in runs {
        if let Err(why) = run(&size) {
            note(&size, &why);
        }
    }
}

fn figure(word: &str, value: f64) {
    println!("\nfigure\t{word}\t{value}");
}

fn note(size: &Size, text: &str) {
    eprintln!("  {} pending: {text}", size.pending);
}

/// Every measurement of one size, in the order in which the cluster fills.
fn run(size: &Size) -> Result<(), String> {
    let (before, from) = (resident(), Instant::now());
    let mut scheduler = Scheduler::up(size)?;
    figure("up", ms(from.elapsed()));
    let empty = resident();
    let (mut singles, large_jobs) = take_all_slots(&mut scheduler, size)?;
    let full = resident();
    let submitted = submit(&mut scheduler, size);
    if size.pending >= LARGE.pending {
        figure("host", (empty - before) / size.hosts as f64);
        figure("job", (resident() - full) / submitted.max(1) as f64);
    }
    let (took, turns) = rest(&mut scheduler, FIRST);
    match took {
        Some(took) => {
            figure("first", ms(took));
            unchanged(&mut scheduler, size);
            if !size.policies {
                changed(&mut scheduler, size);
            }
            if size.pending >= LARGE.pending {
                reasons(&mut scheduler, size);
            }
        }
        None => {
            let seconds = FIRST.as_secs();
            note(size, &format!("the first pass is not over in {seconds} s and {turns} turns"));
        }
    }
    freed(&mut scheduler, size, &mut singles)?;
    all_freed(&mut scheduler, size, singles.into_iter().chain(large_jobs));
    Ok(())
}

/// Has the machine do what there is to do until it waits; none: it does not within `limit`. And
/// how many turns that were.
pub fn rest(scheduler: &mut Scheduler, limit: Duration) -> (Option<Duration>, usize) {
    let (from, mut turns) = (Instant::now(), 0);
    while scheduler.due() {
        if from.elapsed() > limit {
            return (None, turns);
        }
        scheduler.turn();
        turns += 1;
    }
    (Some(from.elapsed()), turns)
}

/// The operator's jobs hold every slot: those of one slot, and the others.
fn take_all_slots(
    scheduler: &mut Scheduler,
    size: &Size,
) -> Result<(Vec<Started>, Vec<Started>), String> {
    let specs = driver::blockers(size, SINGLES);
    let wanted = specs.len();
    let conn = scheduler.connect(site::OPERATOR, 900);
    specs.into_iter().for_each(|spec| scheduler.submit(conn, spec));
    scheduler.disconnect(conn);
    rest(scheduler, FIRST);
    let started = std::mem::take(&mut scheduler.started);
    if started.len() != wanted {
        let why = scheduler.refused.take().unwrap_or_default();
        return Err(format!("{} of {wanted} jobs that fill the slots run {why}", started.len()));
    }
    started.iter().for_each(|job| scheduler.runs(*job));
    let (singles, others) = started.into_iter().partition(|job| job.key.job <= SINGLES as u32);
    Ok((singles, others))
}

/// Submits what is to be pending; how many there are.
fn submit(scheduler: &mut Scheduler, size: &Size) -> usize {
    let (from, was) = (Instant::now(), scheduler.accepted);
    let longest = if size.policies { SUBMIT_CONFIGURED } else { SUBMIT };
    for number in 0..size.campaigns() {
        if from.elapsed() > longest {
            break;
        }
        let (user, spec) = size.campaign(number);
        let conn = scheduler.connect(&site::user_name(user), 1000 + user as u32);
        for _ in 0..site::CAMPAIGN {
            scheduler.submit(conn, spec.clone());
        }
        scheduler.disconnect(conn);
    }
    let (took, count) = (from.elapsed(), scheduler.accepted - was);
    match count == size.pending {
        true => figure("submit", ms(took)),
        false => note(size, &format!("{count} submitted in {} s", took.as_secs())),
    }
    if let Some(why) = scheduler.refused.take() {
        note(size, &format!("a submission was refused: {why}"));
    }
    count
}

/// One job like others.
fn submit_one(scheduler: &mut Scheduler, size: &Size, number: usize) {
    let (user, spec) = size.campaign(number % size.campaigns());
    let conn = scheduler.connect(&site::user_name(user), 1000 + user as u32);
    scheduler.submit(conn, spec);
    scheduler.disconnect(conn);
}

/// Passes over a full cluster to which one more job has come, the submission apart.
fn unchanged(scheduler: &mut Scheduler, size: &Size) {
    let (from, mut times) = (Instant::now(), Vec::new());
    while times.len() < TRIALS && from.elapsed() < UNCHANGED {
        submit_one(scheduler, size, times.len());
        match rest(scheduler, UNCHANGED).0 {
            Some(took) => times.push(ms(took)),
            None => break,
        }
    }
    match median(&times) {
        Some(time) => figure("unchanged", time),
        None => note(size, &format!("a pass is not over within {} s", UNCHANGED.as_secs())),
    }
}

/// Measures why one job waits, anew each time, and why all of them do.
fn reasons(scheduler: &mut Scheduler, size: &Size) {
    const ONE: usize = 50;
    let (from, first) = (Instant::now(), (SINGLES + 200) as u32);
    let mut times = Vec::new();
    for number in 0..ONE as u32 {
        let begin = Instant::now();
        let job = first + number * 7919 % (size.pending as u32 / 2);
        if !scheduler.lists_reasons(Some(job), REASONS) || from.elapsed() > REASONS {
            break;
        }
        times.push(ms(begin.elapsed()));
    }
    median(&times).into_iter().for_each(|time| figure("reason", time));
    let begin = Instant::now();
    match scheduler.lists_reasons(None, REASONS) {
        true => figure("reasons", ms(begin.elapsed())),
        false => note(size, &format!("bjobs -p has no end within {} s", REASONS.as_secs())),
    }
    note(size, &format!("bjobs -p: {} bytes of rows", scheduler.listed.0));
}

/// Measures the time from the end of a job on a full cluster to the start order of the next one on
/// its slot.
fn freed(scheduler: &mut Scheduler, size: &Size, singles: &mut Vec<Started>) -> Result<(), String> {
    let (begin, mut times) = (Instant::now(), Vec::new());
    scheduler.started.clear();
    while times.len() < TRIALS && begin.elapsed() < FREED {
        let ending = singles.remove(0);
        let from = Instant::now();
        scheduler.ends(ending);
        while scheduler.started.is_empty() && scheduler.due() && begin.elapsed() < FREED {
            scheduler.turn();
        }
        let Some(next) = scheduler.started.pop() else {
            if scheduler.due() {
                break;
            }
            return Err("no job takes a freed slot".to_owned());
        };
        times.push(ms(from.elapsed()));
        singles.push(next);
        scheduler.runs(next);
        submit_one(scheduler, size, times.len());
        rest(scheduler, REST);
        singles.append(&mut scheduler.started);
    }
    if times.len() < TRIALS {
        note(size, &format!("{} slots of {TRIALS} were freed in time", times.len()));
    }
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times.get(((times.len() as f64 * share) as usize).min(times.len() - 1));
    if !times.is_empty() {
        at(0.5).into_iter().for_each(|time| figure("freed50", *time));
        at(0.99).into_iter().for_each(|time| figure("freed99", *time));
    }
    Ok(())
}

/// Passes a second where before each of them a host has reported another load.
fn changed(scheduler: &mut Scheduler, size: &Size) {
    let (from, mut passes, mut whole) = (Instant::now(), 0, true);
    while whole && passes < TRIALS && from.elapsed() < CHANGED {
        scheduler.load(passes * 7 % size.hosts, 1.0 + (passes % 5) as f32);
        let left = CHANGED.saturating_sub(from.elapsed());
        whole = rest(scheduler, left).0.is_some();
        passes += usize::from(whole);
    }
    match passes {
        0 => note(size, &format!("a pass is not over within {} s", CHANGED.as_secs())),
        _ => figure("changed", passes as f64 / from.elapsed().as_secs_f64()),
    }
}

/// Every running job ends at once: start orders a second until all slots are taken again or there
/// is nothing left that fits.
fn all_freed(scheduler: &mut Scheduler, size: &Size, running: impl Iterator<Item = Started>) {
    scheduler.started.clear();
    let from = Instant::now();
    running.for_each(|job| scheduler.ends(job));
    let (took, turns) = rest(scheduler, ALL_FREED);
    let (count, seconds) = (scheduler.started.len(), from.elapsed().as_secs_f64());
    figure("decisions", count as f64 / seconds);
    if took.is_none() {
        note(size, &format!("{count} decisions in {seconds:.0} s and {turns} turns, not at rest"));
    } else if size.pending >= LARGE.pending {
        note(size, &format!("{count} decisions in {seconds:.1} s and {turns} turns"));
    }
}

/// Bytes of this process in memory.
pub fn resident() -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kb = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kb.unwrap_or(0.0) * 1024.0
}
