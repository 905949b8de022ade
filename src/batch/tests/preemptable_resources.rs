//! Preemption for other resources than slots, beside the scenarios in
//! tests/policy/preemption_resources.txt: in random clusters no more of a resource is held by
//! running jobs than there is, no job is preempted for ever, and all that is counted is what jobs
//! hold (the audits after each step).

use super::cluster::random::{self, Happening, cases};
use super::cluster::{ADMINISTRATOR, Cluster, ClusterBuilder, cluster};
use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

const CASES: u32 = 60;
const MOST_STEPS: usize = 40;
const QUEUES: [&str; 3] = ["low", "middle", "high"];
/// The amount that all hosts share of one resource, and the amount that each has of the other.
const SHARED: u32 = 3;
const OWN: u32 = 2;
/// For how long a job is left alone that was preempted in vain, seconds, and a little more.
const LEFT_ALONE_SECS: u64 = 70;

fn site(hosts: &[u32]) -> ClusterBuilder {
    let site =
        (1..).zip(hosts).fold(cluster(), |site, (n, slots)| site.host(&format!("h{n}"), *slots));
    let own: Vec<String> = (1..=hosts.len()).map(|n| format!("{OWN}@[h{n}]")).collect();
    site.resource("lic Numeric () N")
        .resource("disk Numeric () N")
        .resource_map(&format!("lic ({SHARED}@[all])"))
        .resource_map(&format!("disk ({})", own.join(" ")))
        .param("PREEMPTABLE_RESOURCES = lic disk")
        .queue("low", "PRIORITY = 10")
        .queue("middle", "PRIORITY = 20; PREEMPTION = PREEMPTIVE[low]")
        .queue("high", "PRIORITY = 30; PREEMPTION = PREEMPTIVE")
}

#[derive(Clone, Copy, Debug)]
struct Asked {
    queue: usize,
    slots: u32,
    lic: u32,
    disk: u32,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Submit(Asked),
    /// Moves a job to a queue.
    Switch(usize, usize),
    Happens(Happening),
}

fn step() -> impl Strategy<Value = Step> {
    let slots = prop_oneof![4 => Just(1u32), 1 => 2..4u32];
    let submit = (0..QUEUES.len(), slots, 0..=SHARED, 0..=OWN);
    prop_oneof![
        10 => submit.prop_map(|(queue, slots, lic, disk)| {
            Step::Submit(Asked { queue, slots, lic, disk })
        }),
        5 => random::any(Happening::End).prop_map(Step::Happens),
        2 => random::any(Happening::Kill).prop_map(Step::Happens),
        1 => random::any(Happening::Requeue).prop_map(Step::Happens),
        2 => random::any(Happening::Resume).prop_map(Step::Happens),
        1 => (any::<usize>(), 0..QUEUES.len()).prop_map(|(n, queue)| Step::Switch(n, queue)),
        1 => Just(Step::Happens(Happening::Restart)),
        1 => random::wait(100).prop_map(Step::Happens),
    ]
}

struct Tested {
    c: Cluster,
    jobs: Vec<(JobRef, Asked)>,
    slots: Vec<u32>,
}

impl Tested {
    fn happens(&mut self, what: Step) {
        match what {
            Step::Submit(asked) => {
                let Asked { queue, slots, lic, disk } = asked;
                let need = format!("span[hosts=1] rusage[lic={lic}:disk={disk}]");
                let options = format!("-q {} -n {slots} -R '{need}'", QUEUES[queue]);
                let at = self.c.submit("ann", &options);
                self.jobs.push((at, asked));
            }
            Step::Switch(n, queue) => {
                let Some(at) = self.c.any_job(&["PEND", "RUN", "SSUSP"], n) else { return };
                self.c.switch(ADMINISTRATOR, at, QUEUES[queue]);
                let of = self.jobs.iter_mut().filter(|job| job.0 == at);
                of.for_each(|job| job.1.queue = queue);
            }
            Step::Happens(what) => self.c.happens(what),
        }
    }

    fn in_state(&mut self, state: &str) -> Vec<(JobRef, Asked)> {
        let these = self.c.in_states(&[state]);
        self.jobs.iter().filter(|job| these.contains(&job.0)).copied().collect()
    }

    fn check(&mut self) {
        let running = self.in_state("RUN");
        let lic: u32 = running.iter().map(|job| job.1.lic).sum();
        assert!(lic <= SHARED, "running jobs hold {lic} licences: {running:?}");
        let mut disks: BTreeMap<String, u32> = BTreeMap::new();
        for (at, asked) in &running {
            *disks.entry(self.c.running_on(*at)[0].clone()).or_default() += asked.disk;
        }
        assert!(disks.values().all(|disk| *disk <= OWN), "{disks:?}: {running:?}");
        if !self.waiting_in_vain().is_empty() {
            // a job of its own queue has taken what was free while its preemption was under way:
            // the preempted jobs are left alone for a time
            self.c.happens(Happening::Wait(LEFT_ALONE_SECS));
        }
        let waiting = self.waiting_in_vain();
        assert!(waiting.is_empty(), "{waiting:?} wait: {:?}", self.in_state("RUN"));
    }

    /// The pending jobs that would start if all lower ones were preempted.
    fn waiting_in_vain(&mut self) -> Vec<JobRef> {
        let (running, pending) = (self.in_state("RUN"), self.in_state("PEND"));
        let held = self.in_state("SSUSP");
        let waits = |asked: &Asked| {
            let above = |other: &&(JobRef, Asked)| other.1.queue >= asked.queue;
            let alone = running.iter().all(|other| other.1.queue < asked.queue);
            let slots = self.slots.iter().any(|slots| *slots >= asked.slots);
            let others = pending.iter().any(|of| of.1.queue > asked.queue);
            asked.queue > 0 && alone && slots && !others && !held.iter().any(|of| above(&of))
        };
        pending.iter().filter(|job| waits(&job.1)).map(|job| job.0).collect()
    }

    /// All running jobs end, again and again: all jobs have ended then.
    fn ends(&mut self) {
        for at in self.c.in_states(&["USUSP"]) {
            self.c.resume(ADMINISTRATOR, at);
        }
        for _ in 0..=self.jobs.len() {
            for (at, _) in self.in_state("RUN") {
                self.c.end(at, 0);
            }
        }
        let most = self.slots.iter().max().copied().unwrap_or(0);
        let left = self.c.in_states(&["RUN", "SSUSP", "PEND"]);
        let left: Vec<_> =
            self.jobs.iter().filter(|job| left.contains(&job.0) && job.1.slots <= most).collect();
        assert!(left.is_empty(), "not ended: {left:?}");
    }
}

#[test]
fn free_part_of_a_resource_is_kept_for_the_job_that_waits_for_the_rest() {
    let mut c = site(&[8]).up();
    let low = c.submit("ann", "-q low -R 'rusage[lic=1]'");
    assert_eq!(c.started(), [low]);
    c.hosts_wait();
    let high = c.submit("ann", "-q high -R 'rusage[lic=3]'");
    let next = c.submit("ann", "-q low -R 'rusage[lic=1]'");
    let middle = c.submit("ann", "-q middle -R 'rusage[lic=1]'");
    assert_eq!(c.state(low), "SSUSP");
    assert_eq!(c.started(), [], "the host has not told yet that the job is suspended");
    c.suspends(low);
    assert_eq!(c.started(), [high]);
    c.runs(high);
    assert_eq!((c.state(next), c.state(middle)), ("PEND".into(), "PEND".into()));
    c.end(high, 0);
    assert_eq!(c.started(), [middle, next]);
}

/// The free part is kept from queues of lower priority alone: a later job of the same queue may
/// take it while the host suspends the job that is preempted for the rest.
#[test]
fn job_that_preempted_in_vain_preempts_again_after_a_pause() {
    let mut c = site(&[2]).up();
    let low = c.submit("ann", "-q low -R 'rusage[lic=1]'");
    let first = c.submit("ann", "-q middle -R 'rusage[disk=2]'");
    let all = c.submit("ann", "-q middle -R 'rusage[lic=3:disk=1]'");
    let later = c.submit("ann", "-q middle -R 'rusage[disk=2]'");
    assert_eq!(c.in_states(&["RUN"]), [low, first]);
    c.end(first, 0);
    assert_eq!(c.in_states(&["RUN"]), [low, later], "the low job goes on");
    c.end(later, 0);
    assert_eq!((c.state(low), c.state(all)), ("RUN".into(), "PEND".into()));
    c.advance(2);
    assert_eq!((c.state(low), c.state(all)), ("SSUSP".into(), "RUN".into()));
}

proptest! {
    #![proptest_config(cases(CASES))]

    #[test]
    fn preemption_for_resources_in_random_clusters_is_of_use_and_ends(
        slots in prop::collection::vec(1..4u32, 1..=3),
        all in prop::collection::vec(step(), 1..MOST_STEPS),
    ) {
        let mut tested = Tested { c: site(&slots).up(), jobs: Vec::new(), slots };
        for what in &all {
            tested.happens(*what);
            tested.check();
        }
        tested.ends();
        assert_eq!(tested.c.complaints(), Vec::<String>::new());
    }
}
