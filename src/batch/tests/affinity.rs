//! affinity[] (bsub(1)): properties that hold in every cluster at all times, whatever the hosts,
//! the jobs and what happens to them. No processor unit is given twice; every task has the units
//! that its job asks for.

use super::JobRef;
use super::cluster::random::{self, Happening, cases};
use super::cluster::{Cluster, ClusterBuilder, cluster};
use crate::lang::resreq::{Affinity, ResReq, Syntax};
use crate::model::affinity::TaskUnits;
use crate::model::topology::{CpuSet, Topology, Unit};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Clusters, and the most that happens in one.
const CASES: u32 = 100;
const MOST_STEPS: usize = 30;
/// Slots of each host: units are what is short.
const SLOTS: u32 = 64;

const TOPOLOGIES: [&str; 5] = [
    "N0=32000 S0 0",
    "N0=32000 S0 0 1 2 3",
    "N0=32000 S0 0,4 1,5 N1=32000 S1 2,6 3,7",
    "N0=32000 S0 0,8 1,9 S1 2,10 3,11",
    "N0=16000 S0 0 1 N1=16000 S0 2 3 N2=16000 S1 4 5 N3=16000 S1 6 7",
];

const REQUIREMENTS: [&str; 14] = [
    "core(1)",
    "thread(1)",
    "core(2)",
    "socket(1)",
    "numa(1)",
    "core(2,same=socket)",
    "thread(2,same=core)*2",
    "core(1,exclusive=(socket,injob))",
    "core(1,exclusive=(socket,alljobs))",
    "core(1,exclusive=(numa,injob|alljobs)):cpubind=socket",
    "core(1):distribute=pack",
    "core(1):distribute=balance",
    "core(1):distribute=pack(socket=1)",
    "core(1):membind=localonly",
];

#[derive(Clone, Debug)]
enum Step {
    Submit { slots: u32, requirement: usize, compound: bool },
    Happens(Happening),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (1..5u32, 0..REQUIREMENTS.len(), any::<bool>()).prop_map(
            |(slots, requirement, compound)| Step::Submit { slots, requirement, compound }
        ),
        4 => random::any(Happening::End).prop_map(Step::Happens),
        1 => random::any(Happening::Stop).prop_map(Step::Happens),
        1 => random::any(Happening::Resume).prop_map(Step::Happens),
        1 => random::any(Happening::Requeue).prop_map(Step::Happens),
        1 => Just(Step::Happens(Happening::Restart)),
    ]
}

fn site(hosts: &[usize]) -> ClusterBuilder {
    let mut site = cluster().hosts(hosts.len(), SLOTS);
    for (n, topology) in hosts.iter().enumerate() {
        site = site.topology(&format!("h{}", n + 1), TOPOLOGIES[*topology]);
    }
    site
}

/// The requirement of a submission: simple, or one part with and one without units.
fn requirement(number: usize, compound: bool) -> String {
    let affinity = REQUIREMENTS[number];
    match compound {
        true => format!("1*{{affinity[{affinity}]}} + {{affinity[thread(1)]}}"),
        false => format!("rusage[mem=4000] affinity[{affinity}]"),
    }
}

fn affinity(text: &str) -> Affinity {
    let names = crate::batch::site::requirements::Names::new(&Default::default());
    let req = ResReq::parse(&format!("affinity[{text}]"), &Syntax::new(&names)).unwrap();
    req.first().and_then(|simple| simple.affinity).unwrap()
}

fn happens(c: &mut Cluster, jobs: &mut BTreeMap<JobRef, Affinity>, what: &Step) {
    match *what {
        Step::Submit { slots, requirement: number, compound } => {
            let compound = compound && slots > 1;
            let text = requirement(number, compound);
            let job = c.submit("ann", &format!("-n {slots} -R '{text}'"));
            jobs.insert(job, affinity(REQUIREMENTS[number]));
        }
        Step::Happens(what) => c.happens(what),
    }
}

/// The unit of a larger kind that a unit lies in: sockets are counted for the whole host.
fn container(path: &str, kind: Unit) -> String {
    let parts: Vec<&str> = path.split('/').collect();
    match kind {
        Unit::Numa => parts[1].to_owned(),
        Unit::Socket => parts[2].to_owned(),
        Unit::Core => parts[2..4].join("/"),
        Unit::Thread => path.to_owned(),
    }
}

/// The first part of a task's units has what is asked for.
fn task_is_as_asked(topology: &Topology, asked: &Affinity, task: &TaskUnits) {
    let wanted = asked.count * asked.times.unwrap_or(1);
    assert_eq!(task.units.len(), wanted as usize, "{asked}: {task:?}");
    let each: BTreeSet<&String> = task.units.iter().collect();
    assert_eq!(each.len(), task.units.len(), "a unit comes twice: {task:?}");
    let known: BTreeSet<String> =
        (0..topology.count(asked.unit)).map(|index| topology.path(asked.unit, index)).collect();
    assert!(task.units.iter().all(|unit| known.contains(unit)), "{asked}: {task:?}");
    let Some(same) = asked.same else { return };
    for group in task.units.chunks(asked.count as usize) {
        let containers: BTreeSet<String> = group.iter().map(|unit| container(unit, same)).collect();
        assert_eq!(containers.len(), 1, "{asked}: {task:?}");
    }
}

fn check(c: &mut Cluster, hosts: &[usize], jobs: &BTreeMap<JobRef, Affinity>) {
    let mut taken: BTreeMap<String, CpuSet> = BTreeMap::new();
    for job in c.listed().into_iter().filter(|job| job.is(&["RUN", "SSUSP", "USUSP"])) {
        let (at, units) = (job.at, job.units);
        let asked = jobs[&at];
        let mut own: BTreeMap<String, CpuSet> = BTreeMap::new();
        let mut sockets: BTreeSet<(String, String)> = BTreeSet::new();
        for (n, (part, task)) in units.tasks().enumerate() {
            let number = task.host.trim_start_matches('h').parse::<usize>().unwrap();
            let topology = Topology::parse(TOPOLOGIES[hosts[number - 1]]).unwrap();
            let of_part =
                if n == 0 || units.parts.len() == 1 { asked } else { affinity("thread(1)") };
            assert_eq!(part.unit, of_part.unit);
            task_is_as_asked(&topology, &of_part, task);
            let beside = taken.get(&task.host);
            assert!(
                beside.is_none_or(|beside| !beside.meets(&task.taken)),
                "given twice: {at} {task:?}"
            );
            let shares = asked.exclusive.is_some_and(|exclusive| exclusive.acting().all_jobs);
            let mine = own.entry(task.host.clone()).or_default();
            assert!(
                shares || !mine.meets(&task.taken),
                "two tasks of {at} have one unit: {task:?}"
            );
            mine.add(&task.taken);
            let in_job = of_part.exclusive.filter(|exclusive| exclusive.acting().in_job);
            if let Some(exclusive) = in_job.filter(|_| units.parts.len() == 1) {
                let path = container(&task.units[0], exclusive.level);
                assert!(sockets.insert((task.host.clone(), path)), "{asked}: {units}");
            }
        }
        for (host, cpus) in own {
            taken.entry(host).or_default().add(&cpus);
        }
    }
    nothing_is_passed_over(c, hosts, &taken);
}

/// A job of one core does not wait while a host has one that no job has.
fn nothing_is_passed_over(c: &mut Cluster, hosts: &[usize], taken: &BTreeMap<String, CpuSet>) {
    let none = CpuSet::default();
    let free = (0..hosts.len()).any(|n| {
        let topology = Topology::parse(TOPOLOGIES[hosts[n]]).unwrap();
        let taken = taken.get(&format!("h{}", n + 1)).unwrap_or(&none);
        (0..topology.count(Unit::Core)).any(|core| {
            let cpus = topology.members(Unit::Core, core).iter();
            let number = |position: &u32| topology.cpus()[*position as usize].number;
            !cpus.map(number).any(|cpu| taken.contains(cpu))
        })
    });
    let probe = c.submit("ann", "-n 1 -R 'affinity[core(1)]'");
    assert_eq!(c.state(probe) == "RUN", free, "{:?}", c.reasons(probe));
    c.kill("admin", probe);
}

proptest! {
    #![proptest_config(cases(CASES))]

    #[test]
    fn random_jobs_never_have_one_processor_unit_twice(
        hosts in prop::collection::vec(0..TOPOLOGIES.len(), 1..4),
        all in prop::collection::vec(step(), 1..=MOST_STEPS),
    ) {
        let mut c = site(&hosts).up();
        let mut jobs = BTreeMap::new();
        for what in &all {
            happens(&mut c, &mut jobs, what);
            check(&mut c, &hosts, &jobs);
        }
        prop_assert_eq!(c.complaints(), Vec::<String>::new());
    }
}
