//! The array of simulated jobs under all policies at once, beside the same jobs without them: the
//! share tree of 5,000 users in 200 groups over 50 queues and the 40 sections Limit of the group
//! `sched`, with preemption, backfill, reservation, thresholds, a guarantee and a requirement that
//! reserves. The files are those that a site would write, mbatchd, its log and the wire are real.
//! No limit is so small that it holds a job back: the figure is what the policies cost.

use super::RUNS;
use super::figures::{self, ELEMENTS};
use super::procs;
use super::rig::Rig;
use super::sched::site::{Size, queue_name};
use super::sched::{CONFIGURED, policies};
use super::table::{Figure, FigureTable, Unit};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Hosts, each with its daemons: with the slots of one, every job waits for the round trip of the
/// one before, and no processor is full.
pub const HOSTS: usize = 8;
/// How much larger than those of the group `sched` the limits are.
const TIMES: usize = 10_000;
/// Longest wait for the name service.
const ASKED: Duration = Duration::from_secs(20);
/// Thresholds that every job is held against and that a busy machine does not reach.
const THRESHOLDS: &str = "mem = 10/5\npg = 100000/200000\nr15m = 4000.0/6000.0\n";

/// Jobs a second of each array, and the processor time of mbatchd with all its threads for it.
#[derive(Default)]
struct Runs {
    rates: Vec<f64>,
    cpu_ms: Vec<f64>,
}

impl Runs {
    fn measure(rig: &Rig, options: &[&str]) -> Runs {
        let mut runs = Runs::default();
        let used = || rig.pid("mbatchd", "host1").map(procs::own_cpu);
        while runs.rates.len() < RUNS
            && let Some(before) = used()
            && let Some(rate) = figures::array_once(rig, options)
            && let Some(after) = used()
        {
            runs.rates.push(rate);
            runs.cpu_ms.push((after - before) * 1e3);
        }
        runs
    }
}

/// Measures the array without the policies and with them, which the cluster keeps.
pub fn measure(rig: &Rig, table: &mut FigureTable, trips: Figure) {
    let own = ["-q", &queue_name(0), "-P", "project1", "-R", "select[mem>10] rusage[mem=1]"];
    let plain = Runs::measure(rig, &[]);
    configure(rig, &CONFIGURED);
    let all = Runs::measure(rig, &own);
    let name = format!("array of {ELEMENTS} jobs on {HOSTS} simulated hosts, all policies");
    table.add(Figure::new(name, Unit::PerSec, all.rates), Some(trips));
    let name = "all policies: CPU time of mbatchd for that array";
    let beside = Figure::new("without policies", Unit::Ms, plain.cpu_ms);
    table.add(Figure::new(name, Unit::Ms, all.cpu_ms), Some(beside));
}

/// Gives the cluster the policies. The user who measures belongs to the first group of the tree.
fn configure(rig: &Rig, size: &Size) {
    let dir = rig.configdir();
    let id = Command::new("id").arg("-un").output().unwrap();
    let user = String::from_utf8_lossy(&id.stdout).trim().to_owned();
    let group = policies::group_name(0);
    let with_user = |text: String| {
        text.replacen(&format!("{group} ("), &format!("{group} ({user} "), 1).replacen(
            ") (",
            &format!(") ([{user}, 5] "),
            1,
        )
    };
    append(&dir.join("lsb.users"), &with_user(policies::groups(size)));
    append(&dir.join("lsb.queues"), &queues(size));
    append(&dir.join("lsb.resources"), &resources(size));
    append(
        &dir.join("lsb.serviceclasses"),
        "Begin ServiceClass\nNAME = kept\nGOALS = [GUARANTEE]\nEnd ServiceClass\n",
    );
    rig.ok("badmin", &["reconfig", "-f"]);
    // the name service is asked which of the users are groups
    let asks = || rig.pid("mbatchd", "host1").is_some_and(|pid| procs::has_thread(pid, "groups"));
    let until = Instant::now() + ASKED;
    while asks() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn queues(size: &Size) -> String {
    let mut text = String::new();
    for queue in 0..size.queues {
        let own = match queue % 5 {
            0 => "BACKFILL = Y\nSLOT_RESERVE = MAX_RESERVE_TIME[5]\n".to_owned(),
            1 => format!("PREEMPTION = PREEMPTIVE[{}]\n", queue_name(queue - 1)),
            2 => "UJOB_LIMIT = 1000\nHJOB_LIMIT = 1000\n".to_owned(),
            3 => "EXCLUSIVE = Y\n".to_owned(),
            _ => "RES_REQ = select[maxmem>100]\nPJOB_LIMIT = 500\n".to_owned(),
        };
        let (name, priority) = (queue_name(queue), 20 + queue * 7 % size.queues);
        let shares = policies::of_queue(size, queue);
        let _ = write!(
            text,
            "Begin Queue\nQUEUE_NAME = {name}\nPRIORITY = {priority}\n{own}{shares}{THRESHOLDS}\
             End Queue\n"
        );
    }
    text
}

fn resources(size: &Size) -> String {
    let pool = "Begin GuaranteedResourcePool\nNAME = pool\nTYPE = slots\n\
                DISTRIBUTION = ([kept, 1])\nLOAN_POLICIES = QUEUES[all]\n\
                End GuaranteedResourcePool\n";
    policies::limits(size, TIMES) + pool
}

/// Adds text to a file, which need not be there.
fn append(path: &Path, text: &str) {
    let before = std::fs::read_to_string(path).unwrap_or_default();
    std::fs::write(path, format!("{before}\n{text}")).unwrap();
}
