//! Jobs in the order of their absolute priority (APS_PRIORITY), whatever changes it, and the work
//! of keeping that order.

use crate::batch::tests::cluster::{ADMINISTRATOR, Cluster, cluster};
use crate::model::JobRef;
use crate::model::specfield::SpecField;
use crate::proto::client::Col;
use proptest::prelude::*;

/// Random workloads.
const CASES: u32 = 24;
const PARAMS: &str = "Begin Parameters\nDEFAULT_QUEUE = q\nJOB_ACCEPT_INTERVAL = 0\n\
                      MAX_USER_PRIORITY = 100\nJOB_PRIORITY_OVER_TIME = 3/1\nEnd Parameters\n";

/// APS_PRIORITY with every kind of change by time.
const FORMULAS: [&str; 5] = [
    "WEIGHT[[JPRIORITY, 1] [QPRIORITY, 1]]",
    "WEIGHT[[FS, 200] [JPRIORITY, 1] [MEM, 0.2]] LIMIT[[JPRIORITY, 70]]",
    "WEIGHT[[JPRIORITY, -1] [PROC, 3]] GRACE_PERIOD[[PROC, 3m]]",
    "WEIGHT[[FS, -50] [MEM, 1] [QPRIORITY, 2]] GRACE_PERIOD[[MEM, 90s] [FS, 2m]]",
    "WEIGHT[[JPRIORITY, 1] [MEM, -0.5]] LIMIT[[RSRC, 20]] GRACE_PERIOD[[WORK, 2m]]",
];

fn site(formula: &str) -> Cluster {
    let first = format!(
        "PRIORITY = 30; FAIRSHARE = USER_SHARES[[default, 1]]; APS_PRIORITY = {formula}; \
         QUEUE_GROUP = other"
    );
    let site = cluster().hosts(1, 1).file("lsb.params", PARAMS);
    site.queue("q", &first).queue("other", "PRIORITY = 20").up()
}

/// The pending job of the largest priority as bjobs shows it, of equal ones the first submitted.
fn first_by_listing(c: &mut Cluster) -> Option<u64> {
    let rows = c.listing(&[Col::Job, Col::Stat, Col::AbsolutePriority]);
    let pending = rows.iter().filter(|row| row[1] == "PEND");
    let place = |row: &Vec<serde_json::Value>| {
        let system = row[2][1].as_bool().unwrap();
        // siblings are compared as LSF shows them
        let total = row[2][0].as_f64().unwrap() as f32;
        (system, total, row[0].as_u64().unwrap())
    };
    let all = pending.map(place);
    let better = |a: (bool, f32, u64), b: (bool, f32, u64)| {
        let order = a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(b.2.cmp(&a.2));
        if order.is_lt() { b } else { a }
    };
    all.reduce(better).map(|first| first.2)
}

/// A submission: user, queue, priority, memory and slots; and what an administrator sets.
type Random = ((usize, bool, u32, u32), Option<(bool, i32)>, u64);

fn one() -> impl Strategy<Value = Random> {
    let setting = prop::option::weighted(0.2, (any::<bool>(), 1i32..60));
    ((0..3usize, any::<bool>(), 1u32..100, 0u32..200), setting, 1u64..100)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, ..ProptestConfig::default() })]

    /// The job of the largest priority in a group of queues starts when a slot is free.
    #[test]
    fn job_of_the_largest_priority_starts_whatever_has_changed_it(
        formula in 0..FORMULAS.len(),
        jobs in prop::collection::vec(one(), 4..16),
    ) {
        let mut c = site(FORMULAS[formula]);
        c.submit("u0", "");
        let mut running = c.started();
        for (n, ((user, other, priority, memory), setting, secs)) in jobs.iter().enumerate() {
            let queue = if *other { "other" } else { "q" };
            let asks = format!("-q {queue} -sp {priority} -R rusage[mem={memory}]");
            let job = c.submit(&format!("u{user}"), &asks);
            if let Some((system, number)) = setting {
                let word = if *system { "system" } else { "admin" };
                let number = if *system { *number } else { number - 30 };
                let options = format!("-aps {word}={}", if number == 0 { 1 } else { number });
                let fields = [SpecField::AbsolutePriority];
                c.try_modify(ADMINISTRATOR, job, &fields, &options).unwrap();
            }
            c.advance(*secs);
            if n % 2 == 1 {
                c.badmin("hclose h1");
                running.into_iter().for_each(|at: JobRef| c.end(at, 0));
                let first = first_by_listing(&mut c);
                c.badmin("hopen h1");
                running = c.started();
                let started = running.first().map(|at| u64::from(at.job));
                prop_assert_eq!(started, first, "{}", FORMULAS[formula]);
            }
        }
    }
}

#[test]
fn escalation_costs_one_rank_a_class_however_many_jobs_pend() {
    let mut c = site("WEIGHT[[JPRIORITY, 1] [QPRIORITY, 1]] LIMIT[[JPRIORITY, 90]]");
    c.submit("u0", "");
    for n in 0..400 {
        c.submit(&format!("u{}", n % 2), "");
    }
    c.take_ranks();
    for _ in 0..10 {
        c.advance(60);
        // a pass
        c.badmin("hclose h1");
        c.badmin("hopen h1");
    }
    let ranks = c.take_ranks();
    assert!((10..=40).contains(&ranks), "{ranks}");
}

#[test]
fn jobs_that_all_rise_alike_need_no_rank_as_time_passes() {
    let mut c = site("WEIGHT[[JPRIORITY, 1] [QPRIORITY, 1]]");
    c.submit("u0", "");
    for n in 0..100 {
        c.submit(&format!("u{}", n % 2), "");
    }
    c.take_ranks();
    for _ in 0..10 {
        c.advance(60);
        c.badmin("hclose h1");
        c.badmin("hopen h1");
    }
    assert_eq!(c.take_ranks(), 0);
}
