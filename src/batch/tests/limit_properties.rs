//! Properties of random limits of lsb.resources: none is exceeded at any instant, every job that
//! waits has a reason, and a job that could start does.

use super::JobRef;
use super::cluster::random::{
    self, Happening, Listed, STARTED, all_are_told_why_they_wait, cases, number,
};
use super::cluster::{ADMINISTRATOR, Cluster, ClusterBuilder, cluster};
use crate::model::reason::{LimitOf, LimitOn, LimitReason};
use crate::model::specfield::SpecField;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const USERS: usize = 3;
const QUEUES: usize = 2;
const PROJECTS: usize = 3;
const MOST_HOSTS: usize = 5;
const SLOTS: u32 = 4;
const MOST_LIMITS: usize = 5;
const MOST_STEPS: usize = 40;
const CASES: u32 = 200;

/// The members of a dimension of a limit, by their numbers.
#[derive(Clone, Debug)]
enum Dimension {
    Unnamed,
    Shared(BTreeSet<usize>),
    Each(BTreeSet<usize>),
    EachOfAll,
    EachExcept(usize),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    Slots,
    Jobs,
    Memory,
}

#[derive(Clone, Debug)]
pub(super) struct RandomLimit {
    /// Members of users, queues, projects and hosts.
    dimensions: [Dimension; 4],
    what: What,
    amount: u32,
}

/// The keyword of each dimension, and how its members are called.
const KINDS: [(&str, &str, &str); 4] = [
    ("USERS", "PER_USER", "u"),
    ("QUEUES", "PER_QUEUE", "q"),
    ("PROJECTS", "PER_PROJECT", "p"),
    ("HOSTS", "PER_HOST", "h"),
];

impl Dimension {
    fn contains(&self, member: usize) -> bool {
        match self {
            Dimension::Unnamed | Dimension::EachOfAll => true,
            Dimension::Shared(these) | Dimension::Each(these) => these.contains(&member),
            Dimension::EachExcept(one) => member != *one,
        }
    }

    fn is_each(&self) -> bool {
        !matches!(self, Dimension::Unnamed | Dimension::Shared(_))
    }

    fn line(&self, (shared, each, letter): (&str, &str, &str)) -> String {
        let named = |these: &BTreeSet<usize>| {
            these.iter().map(|n| format!(" {letter}{n}")).collect::<String>()
        };
        match self {
            Dimension::Unnamed => String::new(),
            Dimension::Shared(these) => format!("{shared} ={}\n", named(these)),
            Dimension::Each(these) => format!("{each} ={}\n", named(these)),
            Dimension::EachOfAll => format!("{each} = all\n"),
            Dimension::EachExcept(one) => format!("{each} = all ~{letter}{one}\n"),
        }
    }
}

impl RandomLimit {
    pub(super) fn section(&self) -> String {
        let lines: String =
            self.dimensions.iter().zip(KINDS).map(|(of, kind)| of.line(kind)).collect();
        let (name, factor) = match self.what {
            What::Slots => ("SLOTS", 1),
            What::Jobs => ("JOBS", 1),
            What::Memory => ("MEM", 100),
        };
        format!("Begin Limit\n{lines}{name} = {}\nEnd Limit\n", factor * self.amount)
    }

    /// The amount that it allows.
    pub(super) fn most(&self) -> u32 {
        let unit = if self.what == What::Memory { 100 } else { 1 };
        unit * self.amount
    }

    /// The reason of a job that it keeps waiting: of several consumers the first is told.
    pub(super) fn reason(&self) -> LimitReason {
        let named = |dimension: &Dimension| !matches!(dimension, Dimension::Unnamed);
        let on = [LimitOn::User, LimitOn::Queue, LimitOn::Project, LimitOn::Host];
        let first = self.dimensions.iter().zip(on).find(|(dimension, _)| named(dimension));
        let of = match self.what {
            What::Slots => LimitOf::Slots,
            What::Jobs => LimitOf::Jobs,
            What::Memory => LimitOf::Index(10),
        };
        LimitReason { on: first.map_or(LimitOn::Cluster, |(_, on)| on), of, limit: None }
    }

    /// The amounts that started jobs hold of this limit: what each has for itself.
    pub(super) fn held(
        &self,
        jobs: &[Listed],
        memory: &BTreeMap<u32, u32>,
    ) -> BTreeMap<[usize; 4], u32> {
        let mut held: BTreeMap<[usize; 4], u32> = BTreeMap::new();
        let [users, queues, projects, hosts] = &self.dimensions;
        for job in jobs.iter().filter(|job| job.is(&STARTED)) {
            let of = [number(&job.user), number(&job.queue), number(&job.project)];
            let among = [users, queues, projects].into_iter().zip(of).all(|(d, n)| d.contains(n));
            let own = |dimension: &Dimension, n: usize| if dimension.is_each() { n } else { 99 };
            let mut counted = false;
            for (host, slots) in &job.hosts {
                let host = number(host);
                if !among || !hosts.contains(host) {
                    continue;
                }
                let amount = match self.what {
                    What::Slots => *slots,
                    What::Jobs => u32::from(!counted || hosts.is_each()),
                    What::Memory => memory.get(&job.at.job).copied().unwrap_or(0),
                };
                counted = true;
                let key =
                    [own(users, of[0]), own(queues, of[1]), own(projects, of[2]), own(hosts, host)];
                *held.entry(key).or_default() += amount;
            }
        }
        held
    }
}

#[derive(Clone, Debug)]
enum Step {
    Submit {
        user: usize,
        queue: usize,
        project: usize,
        slots: u32,
        span: usize,
        memory: u32,
    },
    /// A pending job is given another project.
    Project(usize, usize),
    Happens(Happening),
}

const SPANS: [&str; 3] = ["", "span[hosts=1]", "span[ptile=2]"];

fn dimension(members: usize, first: usize) -> impl Strategy<Value = Dimension> {
    let some = move || prop::collection::btree_set(first..first + members, 1..=members);
    prop_oneof![
        3 => Just(Dimension::Unnamed),
        2 => some().prop_map(Dimension::Shared),
        1 => some().prop_map(Dimension::Each),
        1 => Just(Dimension::EachOfAll),
        1 => (first..first + members).prop_map(Dimension::EachExcept),
    ]
}

pub(super) fn limits(hosts: usize) -> impl Strategy<Value = Vec<RandomLimit>> {
    let dimensions =
        (dimension(USERS, 0), dimension(QUEUES, 0), dimension(PROJECTS, 0), dimension(hosts, 1));
    let what = prop_oneof![Just(What::Slots), Just(What::Jobs), Just(What::Memory)];
    let one = (dimensions, what, 0..7u32).prop_map(|((a, b, c, d), what, amount)| RandomLimit {
        dimensions: [a, b, c, d],
        what,
        amount,
    });
    prop::collection::vec(one, 1..=MOST_LIMITS)
}

fn config() -> impl Strategy<Value = (usize, Vec<RandomLimit>)> {
    (1..=MOST_HOSTS).prop_flat_map(|hosts| (Just(hosts), limits(hosts)))
}

fn step() -> impl Strategy<Value = Step> {
    let submit = (0..USERS, 0..QUEUES, 0..PROJECTS, 1..5u32, 0..SPANS.len(), 0..4u32);
    let submit = submit.prop_map(|(user, queue, project, slots, span, memory)| Step::Submit {
        user,
        queue,
        project,
        slots,
        span,
        memory: 100 * memory,
    });
    prop_oneof![
        8 => submit,
        4 => random::any(Happening::End).prop_map(Step::Happens),
        1 => random::any(Happening::Kill).prop_map(Step::Happens),
        1 => (any::<usize>(), 0..PROJECTS).prop_map(|(job, to)| Step::Project(job, to)),
        1 => random::any(Happening::Close).prop_map(Step::Happens),
        1 => random::any(Happening::Open).prop_map(Step::Happens),
        1 => Just(Step::Happens(Happening::Restart)),
        1 => random::wait(20).prop_map(Step::Happens),
    ]
}

fn site(hosts: usize, limits: &[RandomLimit]) -> ClusterBuilder {
    let sections: String = limits.iter().map(RandomLimit::section).collect();
    let site = cluster().hosts(hosts, SLOTS).file("lsb.resources", &sections);
    (0..QUEUES).fold(site, |site, i| site.queue(&format!("q{i}"), "PRIORITY = 30"))
}

fn happens(c: &mut Cluster, memory_of: &mut BTreeMap<u32, u32>, what: &Step) {
    match *what {
        Step::Submit { user, queue, project, slots, span, memory } => {
            let mut requirement = SPANS[span].to_owned();
            if memory > 0 {
                requirement += &format!(" rusage[mem={memory}]");
            }
            let asked = match requirement.trim() {
                "" => String::new(),
                text => format!("-R '{text}'"),
            };
            let options = format!("-q q{queue} -P p{project} -n 1,{slots} {asked}");
            let job = c.submit(&format!("u{user}"), &options);
            memory_of.insert(job.job, memory);
        }
        Step::Project(any, to) => {
            if let Some(job) = c.any_job(&["PEND"], any) {
                let (fields, options) = ([SpecField::Project], format!("-P p{to}"));
                c.try_modify(ADMINISTRATOR, job, &fields, &options).unwrap();
            }
        }
        Step::Happens(what) => c.happens(what),
    }
}

proptest! {
    #![proptest_config(cases(CASES))]

    #[test]
    fn random_limits_are_never_exceeded_and_jobs_that_wait_have_reasons(
        (hosts, limits) in config(),
        all in prop::collection::vec(step(), 1..=MOST_STEPS),
    ) {
        let mut c = site(hosts, &limits).up();
        let mut memory = BTreeMap::new();
        for what in &all {
            happens(&mut c, &mut memory, what);
            let jobs = c.listed();
            for limit in &limits {
                let held = limit.held(&jobs, &memory).into_values().max().unwrap_or(0);
                prop_assert!(held <= limit.most(), "{} holds {held}: {jobs:?}", limit.section());
            }
            all_are_told_why_they_wait(&jobs);
        }
        prop_assert_eq!(c.complaints(), Vec::<String>::new());
    }
}

/// A job on fewer hosts than it could have used starts where a limit on memory leaves it these.
#[test]
fn a_job_that_may_have_fewer_tasks_starts_on_the_hosts_that_a_memory_limit_leaves() {
    let limit = "Begin Limit\nUSERS = u0\nMEM = 100\nEnd Limit\n";
    let site = cluster().hosts(2, 4).file("lsb.resources", limit);
    let mut c = site.queue("q0", "PRIORITY = 30").up();
    let three = c.submit("u1", "-q q0 -P p0 -n 3 -R span[hosts=1]");
    let one = c.submit("u1", "-q q0 -P p0 -n 2 -R span[hosts=1]");
    let job = c.submit("u0", "-q q0 -P p0 -n 1,3 -R 'span[ptile=2] rusage[mem=100]'");
    let jobs = c.listed();
    let of = |at: JobRef| {
        let job = jobs.iter().find(|job| job.at == at).unwrap();
        job.hosts.iter().map(|(host, slots)| format!("{host}:{slots}")).collect::<String>()
    };
    assert_eq!((of(three), of(one)), ("h1:3".into(), "h2:2".into()));
    // a whole tile on the second host; the free slot of the first would need the memory again
    assert_eq!(of(job), "h2:2");
}
