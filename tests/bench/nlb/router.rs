//! mbatchd's side: requests of pipe queues are routed, and a queue with NLB_POLICY is scheduled
//! beside one without.

use super::super::sched::driver::Scheduler;
use super::super::sched::rest;
use super::super::sched::site::{Size, host_name};
use super::super::table::{Figure, FigureTable, Unit, ms};
use super::RUNS;
use lsf::model::job::JobSpec;
use lsf::proto::nlb::{NlbRow, SortValue};
use std::time::{Duration, Instant};

/// Requests, and the kinds of them that the policy can tell apart.
const REQUESTS: usize = 10_000;
const KINDS: usize = 10;
const FEW: Size =
    Size { hosts: 100, pending: 0, users: 5, requirements: 1, queues: 1, policies: false };
const MANY: Size =
    Size { hosts: 10_000, pending: 0, users: 5, requirements: 1, queues: 1, policies: false };
/// Jobs that are given out with a policy and without.
const JOBS: usize = 500;
/// Single requests of which the time is taken one by one.
const SINGLE: usize = 200;
/// Longest time of a measurement.
const LIMIT: Duration = Duration::from_secs(8);

/// A cluster with queues of its own, whose hosts the load balancer lists in their order.
fn cluster(size: &Size, queues: &str) -> Result<Scheduler, String> {
    let files = size.files().with("lsbatch/big/configdir/lsb.queues", queues);
    let server = format!("NLB_SERVER = {}:6883\n", host_name(0));
    let files = files.with("nqeinfo", &server);
    let users = "Begin User\nUSER_NAME MAX_JOBS\ndefault 1000000\nEnd User\n";
    let mut scheduler = Scheduler::of(size, &files.with("lsbatch/big/configdir/lsb.users", users))?;
    let row = |host: usize| NlbRow {
        host: host_name(host).into(),
        value: SortValue::Number((size.hosts - host) as f64),
        queue: Some("queue00".into()),
    };
    scheduler.ranked = (0..size.hosts).map(row).collect();
    rest(&mut scheduler, LIMIT);
    Ok(scheduler)
}

fn job(queue: &str, kind: usize) -> JobSpec {
    let (queue, name) = (queue.to_owned(), format!("kind{kind}"));
    let command = "work".into();
    JobSpec { command, queue, name, min_slots: 1, max_slots: 1, ..JobSpec::default() }
}

/// Routes all requests; how many a second, from the submission of the last on.
fn routing() -> Result<f64, String> {
    let queues = "Begin Queue\nQUEUE_NAME = queue00\nPRIORITY = 30\nEnd Queue\n\
                  Begin Queue\nQUEUE_NAME = pipe\nPRIORITY = 30\nNQS_QUEUES = CRI_DS bench\n\
                  End Queue\n";
    let mut scheduler = cluster(&FEW, queues)?;
    scheduler.holds = true;
    let conn = scheduler.connect("user0000", 1_000);
    for n in 0..REQUESTS {
        scheduler.submit(conn, job("pipe", n % KINDS));
    }
    if scheduler.accepted < REQUESTS {
        return Err(format!("{} requests taken: {:?}", scheduler.accepted, scheduler.refused));
    }
    scheduler.holds = false;
    let from = Instant::now();
    while scheduler.routed < REQUESTS && from.elapsed() < LIMIT {
        scheduler.turn();
    }
    match scheduler.routed {
        REQUESTS => Ok(REQUESTS as f64 / from.elapsed().as_secs_f64()),
        n => Err(format!("{n} of {REQUESTS} requests routed")),
    }
}

/// Submissions one by one, each to its JOB_SWITCH, milliseconds.
fn single() -> Result<Vec<f64>, String> {
    let queues = "Begin Queue\nQUEUE_NAME = queue00\nPRIORITY = 30\nEnd Queue\n\
                  Begin Queue\nQUEUE_NAME = pipe\nPRIORITY = 30\nNQS_QUEUES = CRI_DS bench\n\
                  End Queue\n";
    let mut scheduler = cluster(&FEW, queues)?;
    let conn = scheduler.connect("user0000", 1_000);
    let mut times = Vec::new();
    for n in 0..SINGLE {
        let from = Instant::now();
        scheduler.submit(conn, job("pipe", n));
        while scheduler.routed <= n {
            if from.elapsed() > LIMIT {
                return Err(format!("{n} of {SINGLE} requests routed one by one"));
            }
            scheduler.turn();
        }
        times.push(ms(from.elapsed()));
        rest(&mut scheduler, LIMIT);
    }
    Ok(times)
}

/// Jobs from their submission until they are given out; milliseconds. With a policy
/// the first job has the list read.
fn pass(policy: &str) -> Result<f64, String> {
    let queues = format!("Begin Queue\nQUEUE_NAME = queue00\nPRIORITY = 30\n{policy}End Queue\n");
    let mut scheduler = cluster(&MANY, &queues)?;
    let conn = scheduler.connect("user0000", 1_000);
    scheduler.submit(conn, job("queue00", 0));
    let from = Instant::now();
    while scheduler.started.is_empty() && from.elapsed() < LIMIT {
        scheduler.turn();
    }
    let (jobs, had) = (JOBS, scheduler.started.len());
    for _ in 0..jobs {
        scheduler.submit(conn, job("queue00", 0));
    }
    let from = Instant::now();
    while scheduler.started.len() < had + jobs && from.elapsed() < LIMIT {
        scheduler.turn();
    }
    match scheduler.started.len() - had {
        n if n == jobs => Ok(ms(from.elapsed())),
        n => Err(format!("{n} of {jobs} jobs given out: {:?}", scheduler.refused)),
    }
}

/// The runs of a measurement; one that fails is told and leaves its line not reached.
fn runs(one: impl Fn() -> Result<f64, String>) -> Vec<f64> {
    let told = |why: String| eprintln!("  nlb: {why}");
    (0..RUNS).filter_map(|_| one().map_err(told).ok()).collect()
}

pub fn measure(table: &mut FigureTable) {
    let name = format!("{REQUESTS} requests of {KINDS} kinds routed to {} hosts", FEW.hosts);
    table.add(Figure::new(name, Unit::PerSec, runs(routing)), None);
    let name = "submission to JOB_SWITCH, mbatchd alone";
    let times = single().map_err(|why| eprintln!("  nlb: {why}")).unwrap_or_default();
    table.add(Figure::new(name, Unit::Ms, times), None);
    let name = |with: &str| format!("{JOBS} jobs on {} hosts {with}", MANY.hosts);
    let plain = table.limit(Figure::new(name("without NLB_POLICY"), Unit::Ms, runs(|| pass(""))));
    let with = runs(|| pass("NLB_POLICY = bench\n"));
    table.add(Figure::new(name("with NLB_POLICY"), Unit::Ms, with), Some(plain));
}
