//! Properties of memory that pending jobs keep (RESOURCE_RESERVE) beside jobs that preempt others
//! for slots or memory, in random clusters: no memory is given twice, and nobody waits for ever.

use super::cluster::random::cases;
use super::cluster::{Cluster, cluster};
use super::{Col, JobRef};
use proptest::prelude::*;
use std::collections::BTreeMap;

const SLOTS: u32 = 3;
/// Memory of each host, MB.
const MEMORY: u32 = 1000;
const CASES: u32 = 96;
const MOST_STEPS: usize = 20;

#[derive(Clone, Debug)]
enum Step {
    /// A job of one slot: the number of its queue, and its memory in MB.
    Submit(usize, u32),
    /// One of the running jobs ends.
    End(usize),
    Wait(u64),
    Restart,
}

/// Jobs that others preempt, jobs that keep memory, and jobs that preempt.
const QUEUES: [&str; 3] = ["normal", "reservation", "high"];

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..QUEUES.len(), 0..9u32).prop_map(|(queue, n)| Step::Submit(queue, 100 * n)),
        2 => any::<usize>().prop_map(Step::End),
        2 => (1..100u64).prop_map(Step::Wait),
        1 => Just(Step::Restart),
    ]
}

/// The running jobs; their memory fits on each host.
fn running(c: &mut Cluster, memory: &BTreeMap<JobRef, u32>) -> Vec<JobRef> {
    let jobs = c.listed();
    let runs: Vec<_> = jobs.iter().filter(|job| job.state == "RUN").collect();
    for host in ["h1", "h2"] {
        let here = runs.iter().filter(|job| job.slots(Some(host)) > 0);
        let used: u32 = here.map(|job| memory[&job.at]).sum();
        assert!(used <= MEMORY, "{host} has given {used} MB: {jobs:?}");
    }
    runs.iter().map(|job| job.at).collect()
}

/// The pending job that has kept memory for the longest time: the job, since when, and the memory
/// on each host in MB.
type Kept = (JobRef, i64, BTreeMap<String, u64>);

fn first_that_keeps_memory(c: &mut Cluster) -> Option<Kept> {
    let pending: Vec<JobRef> =
        c.listed().iter().filter(|job| job.state == "PEND").map(|job| job.at).collect();
    let kept = |at: JobRef| {
        let shown = c.column(at, Col::Reservation);
        let since = shown.get(0)?.as_i64()?;
        let hosts: Vec<(String, u64)> = serde_json::from_value(shown.get(3)?.clone()).ok()?;
        Some((at, since, hosts.into_iter().collect()))
    };
    pending.into_iter().filter_map(kept).min_by_key(|kept| (kept.1, kept.0))
}

/// A job that waits with memory on the same hosts has at least what it had before.
fn assert_nothing_was_taken(c: &mut Cluster, before: Option<&Kept>) -> Option<Kept> {
    let now = first_that_keeps_memory(c);
    if let (Some(before), Some(now)) = (before, &now) {
        let same = (before.0, before.1) == (now.0, now.1) && before.2.keys().eq(now.2.keys());
        let less = before.2.iter().any(|(host, mb)| now.2.get(host).is_some_and(|now| now < mb));
        assert!(!(same && less), "{before:?} has become {now:?}: {:?}", c.listed());
    }
    now
}

fn nobody_waits_for_ever(hosts: usize, resources: &str, steps: &[Step]) {
    let site = cluster()
        .hosts(hosts, SLOTS)
        .param(resources)
        .queue("normal", "PRIORITY = 20")
        .queue("reservation", "PRIORITY = 30; RESOURCE_RESERVE = MAX_RESERVE_TIME[1000]")
        .queue("high", "PRIORITY = 40; PREEMPTION = PREEMPTIVE[normal]");
    let (mut c, mut memory) = (site.up(), BTreeMap::new());
    c.loads(&format!("mem={MEMORY}"));
    let mut kept = None;
    for step in steps {
        match *step {
            Step::Submit(queue, mb) => {
                let asks = if mb > 0 { format!("-R 'rusage[mem={mb}]'") } else { String::new() };
                let at = c.submit("ann", &format!("-q {} {asks}", QUEUES[queue]));
                memory.insert(at, mb);
            }
            Step::End(any) => {
                let runs = running(&mut c, &memory);
                if !runs.is_empty() {
                    c.end(runs[any % runs.len()], 0);
                }
            }
            Step::Wait(secs) => c.advance(secs),
            Step::Restart => {
                c.restart();
                c.advance(1);
            }
        }
        running(&mut c, &memory);
        kept = assert_nothing_was_taken(&mut c, kept.as_ref());
    }
    // one after the other ends, as long as any runs
    for _ in 0..memory.len() {
        c.advance(400);
        if let Some(at) = running(&mut c, &memory).first() {
            c.end(*at, 0);
        }
    }
    let jobs = c.listed();
    let waiting: Vec<_> = jobs.iter().filter(|job| job.state != "DONE").collect();
    assert!(waiting.is_empty(), "{waiting:?} wait for each other");
    assert_eq!(c.complaints(), Vec::<String>::new());
}

proptest! {
    #![proptest_config(cases(CASES))]

    #[test]
    fn random_preemption_of_slots_beside_kept_memory_has_nobody_wait_for_ever(
        steps in prop::collection::vec(step(), 1..=MOST_STEPS),
    ) {
        nobody_waits_for_ever(2, "PREEMPT_DELAY = 0", &steps);
    }

    #[test]
    fn random_preemption_of_memory_on_one_host_takes_none_that_a_pending_job_keeps(
        steps in prop::collection::vec(step(), 1..=MOST_STEPS),
    ) {
        nobody_waits_for_ever(1, "PREEMPTABLE_RESOURCES = mem", &steps);
    }

    #[test]
    fn random_preemption_of_memory_beside_kept_memory_has_nobody_wait_for_ever(
        steps in prop::collection::vec(step(), 1..=MOST_STEPS),
    ) {
        nobody_waits_for_ever(2, "PREEMPTABLE_RESOURCES = mem", &steps);
    }
}
