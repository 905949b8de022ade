//! Every reason of every job that waits is true at that moment, and no job waits that could start:
//! in random clusters, judged by the slow evaluator of `reason_evaluator`.

use super::cluster::Cluster;
use super::cluster::random::{self, Happening, cases};
use super::limit_properties::{RandomLimit, limits};
use super::reason_evaluator::{
    After, Asked, HostNow, HostRules, MEMORY, PROJECTS, QUEUES, QueueRules, Select, Site, Span,
    Thresholds, USERS, UserRules, Window, World, host_at,
};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::collections::{BTreeMap, BTreeSet};

const MOST_HOSTS: usize = 4;
const MOST_STEPS: usize = 40;
const CASES: u32 = 100;
const SEED: u64 = 20_261;

#[derive(Clone, Debug)]
enum Step {
    /// A job, and which of those before it its dependency is on.
    Submit(Asked, Option<(bool, usize)>),
    Happens(Happening),
    /// The load of a host: memory in MB and r1m.
    Load(usize, u32, u32),
    /// The status that LIM tells of a host: locked, unavailable or neither.
    Status(usize, u32),
    /// A queue becomes active or inactive.
    Activate(usize, bool),
}

/// A value in one of so many cases.
fn seldom<T: Clone + std::fmt::Debug>(
    one_in: u32,
    of: impl Strategy<Value = T>,
) -> impl Strategy<Value = Option<T>> {
    prop::option::weighted(1.0 / f64::from(one_in), of)
}

fn thresholds() -> impl Strategy<Value = Thresholds> {
    (seldom(5, 1..4u32), seldom(5, (1..8u32).prop_map(|n| 100 * n)))
        .prop_map(|(r1m, mem)| Thresholds { r1m, mem })
}

fn window() -> impl Strategy<Value = Window> {
    (10..30u32, 1..20u32).prop_map(|(from, minutes)| (from, from + minutes))
}

fn some_hosts(hosts: usize) -> impl Strategy<Value = BTreeSet<usize>> {
    prop::collection::btree_set(1..=hosts, 1..=hosts)
}

fn select() -> impl Strategy<Value = Select> {
    prop_oneof![Just(Select::Big), (1..8u32).prop_map(|n| Select::MemoryAbove(100 * n))]
}

fn host() -> impl Strategy<Value = HostRules> {
    (0..5u32, seldom(4, 0..4u32), thresholds(), any::<bool>(), seldom(6, window())).prop_map(
        |(slots, of_user, thresholds, big, window)| HostRules {
            slots,
            of_user,
            thresholds,
            big,
            window,
        },
    )
}

fn queue(hosts: usize) -> impl Strategy<Value = QueueRules> {
    let amounts = (seldom(4, 1..7u32), seldom(4, 1..5u32), seldom(4, 1..4u32), seldom(4, 1..4u32));
    let others =
        (seldom(4, some_hosts(hosts)), seldom(5, select()), thresholds(), seldom(5, window()));
    (amounts, others).prop_map(
        |((all, of_user, on_host, by_processors), (hosts, select, thresholds, window))| {
            QueueRules { all, of_user, on_host, by_processors, hosts, select, thresholds, window }
        },
    )
}

fn user() -> impl Strategy<Value = UserRules> {
    (seldom(3, 1..6u32), seldom(4, 1..4u32)).prop_map(|(all, on_host)| UserRules { all, on_host })
}

fn some_limits(hosts: usize) -> impl Strategy<Value = Vec<RandomLimit>> {
    prop_oneof![2 => Just(Vec::new()), 1 => limits(hosts)]
}

fn site() -> impl Strategy<Value = Site> {
    let of_hosts = |hosts: usize| {
        let all = prop::collection::vec(host(), hosts);
        let users = prop::collection::vec(user(), USERS);
        let groups = prop::collection::vec(user(), 2);
        let queues = prop::collection::vec(queue(hosts), QUEUES);
        (all, queues, users, groups, some_limits(hosts), 0..4u32, 0..2u32)
    };
    (1..=MOST_HOSTS).prop_flat_map(of_hosts).prop_map(
        |(hosts, queues, users, groups, limits, tokens, accept)| Site {
            hosts,
            queues,
            users,
            groups,
            limits,
            tokens,
            accept,
        },
    )
}

fn asked() -> impl Strategy<Value = Asked> {
    let slots = prop_oneof![3 => Just(1u32), 2 => 2..5u32];
    let span = prop_oneof![3 => Just(Span::Any), 1 => Just(Span::OneHost), 1 => Just(Span::Two)];
    let mem = prop_oneof![2 => Just(0u32), 1 => (1..6u32).prop_map(|n| 100 * n)];
    let tok = prop_oneof![4 => Just(0u32), 1 => 1..3u32];
    let of = (0..USERS, 0..QUEUES, 0..PROJECTS, slots, span, mem, tok);
    let more = (
        seldom(6, select()),
        seldom(5, some_hosts(MOST_HOSTS)),
        prop::bool::weighted(0.1),
        prop_oneof![5 => Just(0u32), 1 => 1..60u32],
        seldom(8, (2..5u32, 1..3u32)),
    );
    (of, more).prop_map(
        |(
            (user, queue, project, min, span, mem, tok),
            (select, hosts, exclusive, delay, array),
        )| {
            Asked {
                user,
                queue,
                project,
                min,
                span,
                mem,
                tok,
                select,
                hosts,
                exclusive,
                delay,
                after: None,
                array,
                submitted: 0,
            }
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let happens = |what| Step::Happens(what);
    let status = prop_oneof![3 => Just(0u32), 1 => Just(LOCKED), 1 => Just(UNAVAILABLE)];
    prop_oneof![
        8 => (asked(), seldom(6, any::<(bool, usize)>())).prop_map(|(a, d)| Step::Submit(a, d)),
        4 => random::any(Happening::End).prop_map(happens),
        1 => random::any(Happening::Kill).prop_map(happens),
        1 => random::any(Happening::Close).prop_map(happens),
        1 => random::any(Happening::Open).prop_map(happens),
        1 => Just(happens(Happening::Restart)),
        1 => Just(happens(Happening::Reconfigure)),
        2 => random::wait(90).prop_map(happens),
        2 => (any::<usize>(), 0..10u32, 0..5u32).prop_map(|(n, m, r)| Step::Load(n, 100 * m, r)),
        1 => (any::<usize>(), status).prop_map(|(host, status)| Step::Status(host, status)),
        1 => (0..QUEUES, any::<bool>()).prop_map(|(queue, on)| Step::Activate(queue, on)),
    ]
}

/// Bits of the status of a host.
const LOCKED: u32 = 2;
const UNAVAILABLE: u32 = 32;

/// The cluster, and all that the test has told it.
struct Run {
    c: Cluster,
    site: Site,
    hosts: Vec<HostNow>,
    active: Vec<bool>,
    asked: BTreeMap<u32, Asked>,
}

impl Run {
    fn new(site: Site) -> Run {
        let mut c = site.files().up();
        c.loads(&format!("mem={MEMORY}"));
        let host =
            HostNow { closed: false, locked: false, unavailable: false, mem: MEMORY, r1m: 0 };
        let (hosts, active) = (vec![host; site.hosts.len()], vec![true; QUEUES]);
        Run { c, site, hosts, active, asked: BTreeMap::new() }
    }

    fn submit(&mut self, asked: &Asked, dependency: Option<(bool, usize)>) {
        let mut asked = asked.clone();
        let hosts = self.site.hosts.len();
        asked.hosts = asked.hosts.map(|these| these.iter().map(|h| (h - 1) % hosts + 1).collect());
        let others: Vec<u32> = self.asked.keys().copied().collect();
        asked.after = dependency.filter(|_| !others.is_empty()).map(|(done, any)| {
            let job = others[any % others.len()];
            if done { After::Done(job) } else { After::Ended(job) }
        });
        asked.submitted = self.c.secs();
        // it is refused where it asks for more slots than the queue ever gives
        if let Ok(at) = self.c.try_submit(&format!("u{}", asked.user), &asked.options()) {
            self.asked.insert(at.job, asked);
        }
    }

    fn step(&mut self, step: &Step) {
        let host = |any: usize| any % self.hosts.len();
        match *step {
            Step::Submit(ref asked, dependency) => self.submit(asked, dependency),
            Step::Load(any, mem, r1m) => {
                let at = host(any);
                (self.hosts[at].mem, self.hosts[at].r1m) = (mem, r1m);
                self.c.load(&format!("h{}", at + 1), &format!("mem={mem} r1m={r1m}"));
            }
            Step::Status(any, status) => {
                let at = host(any);
                self.hosts[at].locked = status == LOCKED;
                self.hosts[at].unavailable = status == UNAVAILABLE;
                self.c.load(&format!("h{}", at + 1), &format!("status={status}"));
            }
            Step::Activate(queue, on) => {
                self.active[queue] = on;
                self.c.badmin(&format!("{} q{queue}", if on { "qact" } else { "qinact" }));
            }
            Step::Happens(what) => {
                match what {
                    Happening::Close(any) => self.hosts[any % self.site.hosts.len()].closed = true,
                    Happening::Open(any) => self.hosts[any % self.site.hosts.len()].closed = false,
                    Happening::Restart => return self.c.restart_later(1),
                    _ => {}
                }
                self.c.happens(what);
            }
        }
    }

    /// Judges the reasons of all jobs that wait.
    fn check(&mut self) {
        let jobs = self.c.listed();
        let waiting: Vec<_> = jobs.iter().filter(|job| job.state == "PEND").collect();
        for job in waiting {
            let told = self.c.reasons(job.at);
            let world = World {
                site: &self.site,
                now: self.c.secs(),
                hosts: &self.hosts,
                active: &self.active,
                jobs: &jobs,
                asked: &self.asked,
            };
            let of = || format!("{} ({:?}) {told:?}", job.at, self.asked[&job.at.job].options());
            assert!(!told.is_empty(), "no reason: {}", of());
            for (reason, hosts) in &told {
                let alone = hosts.is_empty() && !world.holds(job, *reason);
                assert!(!alone, "{reason:?} is not true: {}", of());
                for host in hosts {
                    let holds = world.holds_on(job, *reason, host_at(host));
                    let broken = world.told_of(job, host_at(host));
                    assert!(holds, "{reason:?} is not true on {host}, {broken:?}: {}", of());
                }
            }
            if told.iter().all(|(_, hosts)| !hosts.is_empty()) {
                let named: BTreeSet<&String> = told.iter().flat_map(|(_, hosts)| hosts).collect();
                assert_eq!(named.len(), self.site.hosts.len(), "hosts without a reason: {}", of());
            }
            assert_eq!(world.could_start(job), None, "it could start: {}", of());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(SEED), ..cases(CASES) })]

    #[test]
    fn random_jobs_that_wait_are_told_true_reasons_and_could_not_start(
        site in site(),
        steps in prop::collection::vec(step(), 1..=MOST_STEPS),
    ) {
        let mut run = Run::new(site);
        for step in &steps {
            run.step(step);
            run.check();
        }
        prop_assert_eq!(run.c.complaints(), Vec::<String>::new());
    }
}
