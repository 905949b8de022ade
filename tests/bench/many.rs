//! Figures with many pending jobs: whether rates hold, memory, restart, a storm of queries. Jobs
//! that stay pending are in a queue of their own that is not active.

use super::figures::{self, Machine, Memory};
use super::kept;
use super::limits;
use super::rig::Rig;
use super::table::{Figure, FigureTable, Unit, median};
use super::{RUNS, ends_well};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The queue of those that wait.
const HELD: &str = "held";
/// Pending jobs at which rates are first measured, and at which they are held against that.
const FEW: u64 = 1_000;
const MANY: u64 = 1_000_000;
/// Pending jobs that the storm of queries lists.
const LISTED: u64 = 100_000;
/// Queries at once.
const QUERIES: usize = 50;
/// Longest time of one measurement of a rate.
const RUN: Duration = Duration::from_secs(2);
/// Elements of the large array.
const ELEMENTS: u64 = 1_000_000;
/// Longest time to make the pending jobs, and of one query.
const FILL: Duration = Duration::from_secs(120);

pub fn measure(rig: &Rig, table: &mut FigureTable) {
    held_queue(rig);
    fill(rig, 0, FEW);
    let few = Rates::measure(rig);
    table.add(few.submissions(&format!("submissions beside {FEW} pending")), None);
    table.add(few.jobs(&format!("simulated jobs beside {FEW} pending")), None);
    if fill(rig, FEW, MANY) == MANY - FEW {
        Rates::measure(rig).left(table, &few, &format!("left beside {MANY}"));
    }
}

/// A million pending jobs and nothing else.
pub fn million(rig: &Rig, table: &mut FigureTable, machine: &Machine) {
    held_queue(rig);
    let (empty, from) = (Memory::of(rig), Instant::now());
    let made = fill(rig, 0, MANY);
    let rate = made as f64 / from.elapsed().as_secs_f64();
    let trips = Some(machine.trips.clone());
    table.add(Figure::new(format!("submissions of {MANY} jobs"), Unit::PerSec, vec![rate]), trips);
    if made < MANY {
        return;
    }
    let per = |a: f64, b: f64| vec![(b - a).max(0.0) / made as f64];
    let both = empty.zip(Memory::of(rig));
    let (memory, log) = both.map_or((Vec::new(), Vec::new()), |(a, b)| {
        (per(a.resident, b.resident), per(a.log, b.log))
    });
    let record = Figure::new("its record in lsb.events", Unit::Bytes, log);
    let name = format!("memory for each of {MANY} pending jobs");
    table.add(Figure::new(name, Unit::Bytes, memory), Some(record));
    queries_and_restart(rig, table, machine);
}

/// Rates while very many ask for everything.
pub fn stormy(rig: &Rig, table: &mut FigureTable) {
    held_queue(rig);
    fill(rig, 0, LISTED);
    let before = Rates::measure(rig);
    let (during, queries) = storm(rig, || Rates::measure(rig));
    eprintln!("  {queries} queries of {LISTED} jobs were answered meanwhile");
    during.left(table, &before, &format!("left under {QUERIES} bjobs of {LISTED}"));
}

/// Adds the queue and gives it no dispatch.
fn held_queue(rig: &Rig) {
    let path = rig.configdir().join("lsb.queues");
    let text = std::fs::read_to_string(&path).unwrap();
    let queue = format!("\nBegin Queue\nQUEUE_NAME = {HELD}\nPRIORITY = 1\nEnd Queue\n");
    std::fs::write(&path, text + &queue).unwrap();
    rig.ok("badmin", &["reconfig", "-f"]);
    rig.ok("badmin", &["qinact", HELD]);
}

/// Makes `from` pending jobs `to`; how many were taken.
fn fill(rig: &Rig, from: u64, to: u64) -> u64 {
    let Some(site) = kept::cluster(&rig.dir) else { return 0 };
    let (done, took) = kept::storm(&site, &rig.dir, HELD, to - from, FILL);
    if done < to - from {
        eprintln!("  only {done} of {} were taken in {took:?}", to - from);
    }
    done
}

/// One record, and next to no memory: large arrays where nothing else was, so that no memory is
/// free that could be used again.
pub fn large_arrays(rig: &Rig, table: &mut FigureTable) {
    held_queue(rig);
    let events = rig.logdir().join("lsb.events");
    let records = || {
        let text = std::fs::read_to_string(&events).unwrap_or_default();
        text.lines().filter(|l| l.starts_with("\"JOB_NEW\"")).count()
    };
    let one = || {
        let name = format!("large[1-{ELEMENTS}]");
        let before = Memory::of(rig)?;
        rig.ok("bsub", &["-q", HELD, "-J", &name, "-o", "/dev/null", "/bin/true"]);
        Some((Memory::of(rig)?.resident - before.resident).max(0.0))
    };
    // what the first submission of all needs is not the array's
    one();
    let lines = records();
    let used: Vec<f64> = (0..RUNS).filter_map(|_| one()).collect();
    let each = (records() - lines) as f64 / RUNS as f64;
    let name = format!("memory of an array of {ELEMENTS}, {each} record");
    table.add(Figure::new(name, Unit::Bytes, used), None);
}

/// Submissions and simulated jobs, a second.
struct Rates {
    submissions: Vec<f64>,
    jobs: Vec<f64>,
}

impl Rates {
    fn measure(rig: &Rig) -> Rates {
        let Some(site) = kept::cluster(&rig.dir) else {
            return Rates { submissions: Vec::new(), jobs: Vec::new() };
        };
        let one = || {
            let (done, took) = kept::storm(&site, &rig.dir, HELD, u64::MAX, RUN);
            Some(done as f64 / took.as_secs_f64())
        };
        let submissions = (0..RUNS).map_while(|_| one()).collect();
        let jobs = (0..RUNS).map_while(|_| figures::array_for(rig, RUN)).collect();
        Rates { submissions, jobs }
    }

    fn submissions(&self, name: &str) -> Figure {
        Figure::new(name, Unit::PerSec, self.submissions.clone())
    }

    fn jobs(&self, name: &str) -> Figure {
        Figure::new(name, Unit::PerSec, self.jobs.clone())
    }

    /// Shows these rates as a share of earlier ones.
    fn left(&self, table: &mut FigureTable, of: &Rates, what: &str) {
        let share = |now: &[f64], then: &[f64]| {
            let then = median(then)?;
            Some(now.iter().map(|n| n * 100.0 / then).collect::<Vec<f64>>())
        };
        for (name, now, then) in
            [("submissions", &self.submissions, &of.submissions), ("jobs", &self.jobs, &of.jobs)]
        {
            let runs = share(now, then).unwrap_or_default();
            table.add(Figure::new(format!("{name} {what}"), Unit::Kept, runs), None);
        }
    }
}

/// Has many ask for all jobs over and over while something is done; how many were answered.
fn storm<T>(rig: &Rig, work: impl FnOnce() -> T) -> (T, u64) {
    let (stop, answered) = (AtomicBool::new(false), AtomicU64::new(0));
    let query = || {
        let mut bjobs = rig.cmd("bjobs");
        bjobs.args(["-u", "all"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let Ok(mut child): Result<Child, _> = bjobs.spawn() else { return };
        let until = Instant::now() + FILL;
        while !stop.load(Ordering::Relaxed) && Instant::now() < until {
            match child.try_wait() {
                Ok(Some(_)) => {
                    answered.fetch_add(1, Ordering::Relaxed);
                    return;
                }
                _ => std::thread::sleep(Duration::from_millis(5)),
            }
        }
        ends_well(&mut child, Instant::now());
    };
    let done = std::thread::scope(|scope| {
        for _ in 0..QUERIES {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    query();
                }
            });
        }
        let done = work();
        stop.store(true, Ordering::Relaxed);
        done
    });
    (done, answered.load(Ordering::Relaxed))
}

fn queries_and_restart(rig: &Rig, table: &mut FigureTable, machine: &Machine) {
    let said = rig.run("bsub", &["-q", HELD, "-o", "/dev/null", "/bin/true"]);
    let id = super::rig::job_id(&said.out).unwrap_or_default().to_string();
    let one = || {
        let from = Instant::now();
        let out = rig.cmd("bjobs").arg(&id).stderr(Stdio::null()).output().ok()?;
        let took = super::table::ms(from.elapsed());
        String::from_utf8_lossy(&out.stdout).contains(&id).then_some(took)
    };
    let runs = (0..20).map_while(|_| one()).collect();
    let name = format!("bjobs ID beside {MANY} pending");
    table.add(Figure::new(name, Unit::Ms, runs), Some(machine.spawn.clone()));
    let (_, time) = limits::scan(&rig.logdir().join("lsb.events"));
    let runs = (0..RUNS).map_while(|_| figures::restart(rig)).collect();
    let name = format!("restart with {MANY} pending, kill -9 to answer");
    table.add(Figure::new(name, Unit::Ms, runs), Some(time));
}
