//! Properties of preemption in random clusters: no host runs more than its slots, no job is
//! preempted whose slots are not in use, none waits that could preempt another, no step goes in a
//! circle, and every job that was started ends.

use super::cluster::random::{self, Happening, cases};
use super::cluster::{ADMINISTRATOR, Cluster, ClusterBuilder, cluster};
use super::{Act, JobRef};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Queues by priority, lowest first; each preempts those in front of it that its line names.
const QUEUES: [&str; 4] = ["q0", "q1", "q2", "q3"];
const PREEMPTION: [&str; 4] = ["", "PREEMPTIVE[q0]", "PREEMPTABLE[q3]", "PREEMPTIVE[q1+1 q0]"];
/// The queues whose jobs a queue preempts.
const PREEMPTS: [&[usize]; 4] = [&[], &[0], &[], &[0, 1, 2]];
const MOST_HOSTS: usize = 4;
const CASES: u32 = 60;
const MOST_STEPS: usize = 40;

#[derive(Clone, Debug)]
enum Step {
    Submit { queue: usize, slots: u32, one_host: bool },
    Happens(Happening),
}

fn step() -> impl Strategy<Value = Step> {
    let submit = (0..QUEUES.len(), prop_oneof![3 => Just(1u32), 1 => 2..4u32], any::<bool>());
    prop_oneof![
        10 => submit.prop_map(|(queue, slots, one_host)| {
            Step::Submit { queue, slots, one_host }
        }),
        5 => random::any(Happening::End).prop_map(Step::Happens),
        2 => random::any(Happening::Kill).prop_map(Step::Happens),
        1 => random::any(Happening::Stop).prop_map(Step::Happens),
        2 => random::any(Happening::Resume).prop_map(Step::Happens),
        1 => Just(Step::Happens(Happening::Restart)),
        1 => random::wait(100).prop_map(Step::Happens),
    ]
}

/// `given`: USE_SUSP_SLOTS=Y.
fn site(hosts: &[u32], given: bool) -> ClusterBuilder {
    let all = match given {
        true => cluster().param("USE_SUSP_SLOTS = Y"),
        false => cluster(),
    };
    let site = (1..).zip(hosts).fold(all, |site, (n, slots)| site.host(&format!("h{n}"), *slots));
    QUEUES.iter().enumerate().fold(site, |site, (n, queue)| {
        let preemption = match PREEMPTION[n] {
            "" => String::new(),
            text => format!("; PREEMPTION = {text}"),
        };
        site.queue(queue, &format!("PRIORITY = {}{preemption}", 10 * (n + 1)))
    })
}

/// A job that was submitted: its queue, and how many slots it wants.
#[derive(Clone, Copy, Debug)]
struct Submitted {
    at: JobRef,
    queue: usize,
    slots: u32,
}

/// May jobs of some queue preempt a job?
fn is_preempted(job: &Submitted) -> bool {
    PREEMPTS.iter().any(|queues| queues.contains(&job.queue))
}

struct Tested {
    c: Cluster,
    jobs: Vec<Submitted>,
    slots: Vec<u32>,
    /// The slots of stopped jobs are given to the queues that theirs preempts.
    given: bool,
}

impl Tested {
    fn in_state(&mut self, state: &str) -> Vec<Submitted> {
        let these = self.c.in_states(&[state]);
        self.jobs.iter().filter(|job| these.contains(&job.at)).copied().collect()
    }

    fn happens(&mut self, what: &Step) {
        match *what {
            Step::Submit { queue, slots, one_host } => {
                let span = if one_host { "-R 'span[hosts=1]'" } else { "" };
                let options = format!("-q {} -n {slots} {span}", QUEUES[queue]);
                let at = self.c.submit("ann", &options);
                self.jobs.push(Submitted { at, queue, slots });
            }
            Step::Happens(what) => self.c.happens(what),
        }
    }

    /// The slots of these jobs, by host.
    fn used(&mut self, jobs: &[Submitted]) -> BTreeMap<String, u32> {
        let mut used = BTreeMap::new();
        for job in jobs {
            for host in self.c.running_on(job.at) {
                *used.entry(host).or_default() += 1;
            }
        }
        used
    }

    fn check(&mut self) {
        let (runs, stopped) = (self.in_state("RUN"), self.in_state("USUSP"));
        let given = |job: &Submitted| self.given && !PREEMPTS[job.queue].is_empty();
        let keeps = |job: &&Submitted| !is_preempted(job) && !given(job);
        let kept: Vec<Submitted> = stopped.iter().filter(keeps).copied().collect();
        let (runs, kept) = (self.used(&runs), self.used(&kept));
        let of = |used: &BTreeMap<String, u32>, host: &str| used.get(host).copied().unwrap_or(0);
        let most = |host: &str| {
            let n: usize = host[1..].parse().unwrap();
            self.slots[n - 1]
        };
        for (host, n) in &runs {
            assert!(*n <= most(host), "{host} runs {n}");
        }
        let full = |hosts: &[String]| {
            hosts.iter().any(|host| {
                let own = hosts.iter().filter(|other| *other == host).count() as u32;
                of(&runs, host) + of(&kept, host) + own > most(host)
            })
        };
        let mut orders: BTreeMap<JobRef, usize> = BTreeMap::new();
        for (at, _) in self.c.orders().into_iter().filter(|order| order.1 == Act::Suspend) {
            *orders.entry(at).or_default() += 1;
        }
        assert!(orders.values().all(|n| *n <= 2), "suspended again and again: {orders:?}");
        let all: Vec<JobRef> = self.jobs.iter().map(|job| job.at).collect();
        for at in all {
            if self.c.state(at) == "SSUSP" {
                let hosts = self.c.running_on(at);
                assert!(full(&hosts), "job {at} is preempted in vain on {hosts:?}");
            }
        }
        self.check_free_slots();
        // a job that its user has stopped keeps its slots, also where others are in them by then
        if !stopped.is_empty() {
            return;
        }
        // nor are slots free that a preempted job has on a host, but for those who may preempt it
        let (running, suspended) = (self.in_state("RUN"), self.in_state("SSUSP"));
        for job in self.in_state("PEND").into_iter().filter(|job| job.slots == 1) {
            let lower = |low: &Submitted| PREEMPTS[job.queue].contains(&low.queue);
            let held: BTreeSet<String> = suspended
                .iter()
                .filter(|other| !lower(other))
                .flat_map(|other| self.c.running_on(other.at))
                .collect();
            let victim = running
                .iter()
                .filter(|low| lower(low))
                .find(|low| self.c.running_on(low.at).iter().all(|host| !held.contains(host)));
            assert!(victim.is_none(), "job {} waits and may preempt {victim:?}", job.at);
        }
    }

    /// No slot is free for a pending job, nor one of a suspended job of a queue that it preempts,
    /// nor, where these are given, one of a stopped job of a queue that preempts its own.
    fn check_free_slots(&mut self) {
        let states = ["RUN", "SSUSP", "USUSP"].map(|state| self.in_state(state));
        let [running, suspended, stopped] = states;
        for job in self.in_state("PEND").into_iter().filter(|job| job.slots == 1) {
            let counts = |other: &&Submitted| !PREEMPTS[job.queue].contains(&other.queue);
            let lends =
                |other: &Submitted| self.given && PREEMPTS[other.queue].contains(&job.queue);
            let others = suspended.iter().chain(stopped.iter().filter(|other| !lends(other)));
            let others = others.filter(counts);
            let used: Vec<Submitted> = running.iter().chain(others).copied().collect();
            let used = self.used(&used);
            let full =
                |(n, slots): (usize, &u32)| used.get(&format!("h{n}")).is_some_and(|n| n >= slots);
            let all = (1..).zip(&self.slots).all(full);
            assert!(all, "job {} waits, in use are {used:?} of {:?}", job.at, self.slots);
        }
    }

    /// All running jobs end, again and again: all jobs have ended then.
    fn ends(&mut self) {
        for stopped in self.in_state("USUSP") {
            self.c.resume(ADMINISTRATOR, stopped.at);
        }
        for _ in 0..=self.jobs.len() {
            for job in self.in_state("RUN") {
                self.c.end(job.at, 0);
            }
        }
        let most: u32 = self.slots.iter().sum();
        let left = [self.in_state("SSUSP"), self.in_state("RUN")].concat();
        assert!(left.is_empty(), "not ended: {left:?}");
        let waits = self.in_state("PEND");
        let fits = |job: &Submitted| job.slots <= *self.slots.iter().max().unwrap_or(&0);
        let starved: Vec<_> = waits.iter().filter(|job| fits(job)).collect();
        assert!(starved.is_empty(), "of {most} slots none for {starved:?}");
    }
}

proptest! {
    #![proptest_config(cases(CASES))]

    #[test]
    fn preemption_in_random_clusters_is_of_use_and_ends(
        slots in prop::collection::vec(1..4u32, 1..=MOST_HOSTS),
        all in prop::collection::vec(step(), 1..MOST_STEPS),
        given in any::<bool>(),
    ) {
        let mut tested = Tested { c: site(&slots, given).up(), jobs: Vec::new(), slots, given };
        for what in &all {
            tested.happens(what);
            tested.check();
        }
        tested.ends();
    }
}
