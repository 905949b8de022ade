//! Properties of random slot pools: no pool uses more slots than MAX_SLOTS_IN_POOL, no slot stays
//! free while a job could have it, no queue goes beyond its share while another one with ready jobs
//! is below its own, and every job that waits has a reason.

use super::cluster::random::{self, Happening, Listed, STARTED, all_are_told_why_they_wait, cases};
use super::cluster::{Cluster, ClusterBuilder, cluster};
use proptest::prelude::*;

const QUEUES: [&str; 3] = ["a", "b", "c"];
const SLOTS: u32 = 3;
const MOST_HOSTS: usize = 3;
const MOST_STEPS: usize = 40;
const CASES: u32 = 120;
/// Forms of jobs: of one slot; such as wait for something; parallel ones.
const FORMS: [&str; 5] =
    ["", "-J x[1-4]%2", "-R 'select[mem>999999]'", "-n 2", "-n 3 -R 'span[hosts=1]'"];

#[derive(Clone, Debug)]
struct RandomPool {
    hosts: usize,
    shares: [u32; QUEUES.len()],
    priorities: [u32; QUEUES.len()],
    /// 0: none.
    max: u32,
    by_priority: bool,
    /// QJOB_LIMIT of the first queue; 0: none.
    limit: u32,
}

impl RandomPool {
    fn site(&self) -> ClusterBuilder {
        let site = cluster().hosts(self.hosts, SLOTS);
        (0..QUEUES.len()).fold(site, |site, at| {
            let (share, priority) = (self.shares[at], self.priorities[at]);
            let mut lines = format!("PRIORITY = {priority}; SLOT_POOL = p; SLOT_SHARE = {share}");
            if at == 0 && self.max > 0 {
                lines += &format!("; MAX_SLOTS_IN_POOL = {}", self.max);
            }
            if at == 0 && self.by_priority {
                lines += "; USE_PRIORITY_IN_POOL = Y";
            }
            if at == 0 && self.limit > 0 {
                lines += &format!("; QJOB_LIMIT = {}", self.limit);
            }
            site.queue(QUEUES[at], &lines)
        })
    }

    /// The slots that the pool may use.
    fn total(&self) -> u64 {
        let all = self.hosts as u64 * u64::from(SLOTS);
        if self.max > 0 { all.min(self.max.into()) } else { all }
    }

    /// The share of a queue by itself, rounded up.
    fn most(&self, at: usize) -> u64 {
        (self.total() * u64::from(self.shares[at])).div_ceil(100)
    }

    /// The least that a queue with many ready jobs is to have, where all queues want some.
    fn least(&self, at: usize) -> u64 {
        let all: u32 = self.shares.iter().sum();
        self.total() * u64::from(self.shares[at]) / u64::from(all.max(100))
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// Queue, form, and how many.
    Submit(usize, usize, usize),
    Happens(Happening),
}

fn pool() -> impl Strategy<Value = RandomPool> {
    let max = prop_oneof![2 => Just(0u32), 1 => 1..=8u32];
    let limit = prop_oneof![2 => Just(0u32), 1 => Just(3u32)];
    let (shares, priorities) = (|| 1..=100u32, || 1..=3u32);
    let shares = [shares(), shares(), shares()];
    let priorities = [priorities(), priorities(), priorities()];
    let parts = (1..=MOST_HOSTS, shares, priorities, max, any::<bool>(), limit);
    parts.prop_map(|(hosts, shares, priorities, max, by_priority, limit)| RandomPool {
        hosts,
        shares,
        priorities,
        max,
        by_priority,
        limit,
    })
}

fn step(forms: usize) -> impl Strategy<Value = Step> {
    let submit = (0..QUEUES.len(), 0..forms, 1..=5usize);
    prop_oneof![
        8 => submit.prop_map(|(queue, form, many)| Step::Submit(queue, form, many)),
        8 => random::any(Happening::End).prop_map(Step::Happens),
        2 => random::any(Happening::Kill).prop_map(Step::Happens),
        1 => Just(Step::Happens(Happening::Restart)),
        1 => Just(Step::Happens(Happening::Reconfigure)),
        1 => random::wait(20).prop_map(Step::Happens),
    ]
}

fn disturbance() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => step(FORMS.len()),
        1 => random::any(Happening::Stop).prop_map(Step::Happens),
        1 => random::any(Happening::Resume).prop_map(Step::Happens),
        1 => random::any(Happening::Requeue).prop_map(Step::Happens),
        1 => random::any(Happening::Close).prop_map(Step::Happens),
        1 => random::any(Happening::Open).prop_map(Step::Happens),
    ]
}

fn happens(c: &mut Cluster, what: &Step) {
    match *what {
        Step::Submit(queue, form, many) => {
            for _ in 0..many {
                c.submit("ann", &format!("-q {} {}", QUEUES[queue], FORMS[form]));
            }
        }
        Step::Happens(what) => c.happens(what),
    }
}

/// The slots in use by each queue, and its pending jobs.
fn by_queue(jobs: &[Listed]) -> [(u64, usize); QUEUES.len()] {
    QUEUES.map(|queue| {
        let own = || jobs.iter().filter(move |job| job.queue == queue);
        let used = own().filter(|job| job.is(&STARTED)).map(|job| job.slots(None)).sum();
        (used, own().filter(|job| job.state == "PEND").count())
    })
}

proptest! {
    #![proptest_config(cases(CASES))]

    #[test]
    fn slots_of_a_pool_are_shared_and_none_stays_free(
        pool in pool(),
        all in prop::collection::vec(step(1), 1..=MOST_STEPS),
    ) {
        // without other limits each job may have any slot
        let pool = RandomPool { limit: 0, ..pool };
        let mut c = pool.site().up();
        let mut before = by_queue(&[]);
        for what in &all {
            happens(&mut c, what);
            let jobs = c.listed();
            let now = by_queue(&jobs);
            let used: u64 = now.iter().map(|of| of.0).sum();
            let waiting = now.iter().any(|of| of.1 > 0);
            prop_assert!(used <= pool.total(), "{used}: {pool:?}");
            prop_assert!(!waiting || used == pool.total(), "{used}: {pool:?} {now:?}");
            // one slot becomes free at a time: it goes to a queue that is below its share
            let ended = matches!(what, Step::Happens(Happening::End(_)));
            let lacks = |at: usize| now[at].1 > 0 && now[at].0 < pool.least(at);
            for at in (0..QUEUES.len()).filter(|at| ended && now[*at].0 > before[*at].0) {
                let other = (0..QUEUES.len()).find(|other| lacks(*other));
                prop_assert!(
                    other.is_none() || now[at].0 <= pool.most(at),
                    "{what:?}: {pool:?} {before:?} {now:?}"
                );
            }
            all_are_told_why_they_wait(&jobs);
            before = now;
        }
        prop_assert_eq!(c.complaints(), Vec::<String>::new());
    }

    #[test]
    fn pools_with_jobs_of_all_forms_keep_their_limits_and_tell_reasons(
        pool in pool(),
        all in prop::collection::vec(disturbance(), 1..=MOST_STEPS),
    ) {
        let mut c = pool.site().up();
        for what in &all {
            happens(&mut c, what);
            let jobs = c.listed();
            let used: u64 = by_queue(&jobs).iter().map(|of| of.0).sum();
            prop_assert!(used <= pool.total(), "{used}: {pool:?}");
            all_are_told_why_they_wait(&jobs);
        }
        prop_assert_eq!(c.complaints(), Vec::<String>::new());
    }
}
