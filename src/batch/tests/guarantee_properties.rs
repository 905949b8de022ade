//! Properties of random guaranteed pools: others never take what is guaranteed but by loan, every
//! job that waits has a reason, and a job that could start does.

use super::cluster::random::{self, Happening, Listed, all_are_told_why_they_wait, cases, number};
use super::cluster::{Cluster, ClusterBuilder, cluster};
use proptest::prelude::*;

const CLASSES: usize = 2;
const SLOTS: u32 = 3;
const MOST_HOSTS: usize = 4;
const MOST_STEPS: usize = 40;
const CASES: u32 = 150;
/// The second queue borrows.
const QUEUES: [&str; 2] = ["plain", "borrows"];
const LOANS: [&str; 4] = ["", "RETAIN[2]", "CLOSE_ON_DEMAND", "DURATION[10] RETAIN[50%]"];
const SPANS: [&str; 3] = ["", "-R 'span[hosts=1]'", "-R 'span[ptile=1]'"];

/// The kinds of pools. A host has a slot more than its package.
const KINDS: [&str; 3] = ["slots", "hosts", "package[slots=2]"];
/// Slots of a package.
const PACKAGE: u32 = 2;

/// A pool: its kind, how many hosts from the first one on, the guarantees of the
/// classes, and its loans.
#[derive(Clone, Debug)]
struct RandomPool {
    kind: usize,
    hosts: usize,
    guarantees: [u32; CLASSES],
    loans: usize,
}

impl RandomPool {
    fn section(&self) -> String {
        let kind = KINDS[self.kind];
        let hosts: Vec<String> = (1..=self.hosts).map(|n| format!("h{n}")).collect();
        let [a, b] = self.guarantees;
        format!(
            "Begin GuaranteedResourcePool\nNAME = pool\nTYPE = {kind}\nHOSTS = {}\n\
             DISTRIBUTION = [c0,{a}] [c1,{b}]\nLOAN_POLICIES = QUEUES[borrows] {}\n\
             End GuaranteedResourcePool\n",
            hosts.join(" "),
            LOANS[self.loans],
        )
    }

    /// The slots, hosts or packages that there are.
    fn total(&self) -> u32 {
        let hosts = self.hosts as u32;
        match KINDS[self.kind] {
            "slots" => hosts * SLOTS,
            "hosts" => hosts,
            _ => hosts * (SLOTS / PACKAGE),
        }
    }

    /// The free slots, hosts or packages, and those guaranteed to classes that do not use them;
    /// what jobs borrow counts as free.
    fn free_and_unused(&self, jobs: &[Listed]) -> (u32, u32) {
        let borrows = |job: &Listed| job.queue != QUEUES[0];
        // packages that a class might borrow are used by it, too
        let packages = KINDS[self.kind].starts_with("package");
        let counts = |job: &&Listed| job.state == "RUN" && (packages || !borrows(job));
        let running = || jobs.iter().filter(counts);
        let on = |job: &Listed, host: usize| job.slots(Some(&format!("h{host}"))) as u32;
        // the project has the number of the class, too
        let class = |job: &Listed| Some(number(&job.project)).filter(|class| *class < CLASSES);
        let mut used = [0; CLASSES];
        let mut free = self.total();
        for host in 1..=self.hosts {
            let of_job = |job| (class(job), on(job, host), borrows(job));
            let here: Vec<(Option<usize>, u32, bool)> =
                running().map(of_job).filter(|of| of.1 > 0).collect();
            let of_class = |class| {
                let of = here.iter().filter(move |of| of.0 == Some(class));
                of.map(|of| of.1).sum::<u32>()
            };
            let all: u32 = here.iter().filter(|of| !of.2).map(|of| of.1).sum();
            free -= match KINDS[self.kind] {
                "slots" => all,
                "hosts" => u32::from(all > 0),
                _ => SLOTS / PACKAGE - (SLOTS - all) / PACKAGE,
            };
            for (class, used) in used.iter_mut().enumerate() {
                let slots = of_class(class);
                *used += match KINDS[self.kind] {
                    "slots" => slots,
                    "hosts" => u32::from(slots > 0 && slots == all),
                    _ => {
                        let of = here.iter().filter(|of| of.0 == Some(class));
                        of.map(|of| of.1.div_ceil(PACKAGE)).sum::<u32>().min(SLOTS / PACKAGE)
                    }
                }
            }
        }
        let unused = self.guarantees.iter().zip(used).map(|(n, used)| n.saturating_sub(used)).sum();
        (free, unused)
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// Class (the last is none), queue, slots, form, whether it is short.
    Submit(usize, usize, u32, usize, bool),
    Happens(Happening),
}

fn pool() -> impl Strategy<Value = RandomPool> {
    let parts = (0..KINDS.len(), 1..=MOST_HOSTS, 0..=100u32, 0..=100u32, 0..LOANS.len());
    parts.prop_map(|(kind, hosts, a, b, loans)| {
        let pool = RandomPool { kind, hosts, guarantees: [0; CLASSES], loans };
        // together no more than there is
        let a = pool.total() * a / 100;
        let b = (pool.total() - a) * b / 100;
        RandomPool { guarantees: [a, b], ..pool }
    })
}

fn step() -> impl Strategy<Value = Step> {
    let submit = (0..=CLASSES, 0..QUEUES.len(), 1..=4u32, 0..SPANS.len(), any::<bool>());
    prop_oneof![
        8 => submit.prop_map(|(a, b, c, d, e)| Step::Submit(a, b, c, d, e)),
        5 => random::any(Happening::End).prop_map(Step::Happens),
        1 => random::any(Happening::Kill).prop_map(Step::Happens),
        1 => Just(Step::Happens(Happening::Restart)),
        1 => Just(Step::Happens(Happening::Reconfigure)),
        1 => random::wait(20).prop_map(Step::Happens),
    ]
}

fn site(hosts: usize, pool: &RandomPool) -> ClusterBuilder {
    let class =
        |n| format!("Begin ServiceClass\nNAME = c{n}\nGOALS = [GUARANTEE]\nEnd ServiceClass\n");
    let classes: String = (0..CLASSES).map(class).collect();
    let site = cluster().hosts(hosts, SLOTS).file("lsb.resources", &pool.section());
    let site = site.file("lsb.serviceclasses", &classes);
    QUEUES.iter().fold(site, |site, name| site.queue(name, "PRIORITY = 30"))
}

fn happens(c: &mut Cluster, what: &Step) {
    match *what {
        Step::Submit(class, queue, slots, span, short) => {
            let sla = if class < CLASSES { format!("-sla c{class}") } else { String::new() };
            let limit = if short { "-W 10" } else { "" };
            let (queue, span) = (QUEUES[queue], SPANS[span]);
            let slots = if short { format!("1,{slots}") } else { slots.to_string() };
            c.submit("ann", &format!("-q {queue} -P p{class} -n {slots} {span} {limit} {sla}"));
        }
        Step::Happens(what) => c.happens(what),
    }
}

proptest! {
    #![proptest_config(cases(CASES))]

    #[test]
    fn guarantee_is_never_taken_by_others_than_by_loan(
        hosts in 1..=MOST_HOSTS,
        pool in pool(),
        all in prop::collection::vec(step(), 1..=MOST_STEPS),
    ) {
        prop_assume!(pool.hosts <= hosts);
        let mut c = site(hosts, &pool).up();
        for what in &all {
            happens(&mut c, what);
            let jobs = c.listed();
            let (free, unused) = pool.free_and_unused(&jobs);
            prop_assert!(unused <= free, "{unused} of {free}: {} {jobs:?}", pool.section());
            all_are_told_why_they_wait(&jobs);
        }
        prop_assert_eq!(c.complaints(), Vec::<String>::new());
    }
}
