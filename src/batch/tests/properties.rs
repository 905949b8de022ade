//! Properties that hold in every cluster at all times: no host over its slots, no limit exceeded,
//! exclusive jobs alone on their hosts, a reason for every job that waits. Clusters, users and what
//! they do are random.

use super::JobRef;
use super::cluster::random::{self, Happening, Listed, all_are_told_why_they_wait, cases, number};
use super::cluster::{Cluster, ClusterBuilder, cluster};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Users, queues, and the most hosts of a random cluster: of most clusters, and of one in
/// [`LARGE_ONE_IN`].
const USERS: usize = 4;
const QUEUES: usize = 3;
const MOST_HOSTS: usize = 20;
const MOST_HOSTS_OF_LARGE: usize = 200;
const LARGE_ONE_IN: u32 = 25;
/// Processors of each host.
const CPUS: u32 = 4;
/// Clusters, and the most that happens in one.
const CASES: u32 = 250;
const MOST_STEPS: usize = 40;
/// The most that happens before everything is looked at again, in a cluster of more than
/// [`MOST_HOSTS`] hosts.
const STEPS_BETWEEN_LOOKS: usize = 8;

/// A random configuration.
#[derive(Clone, Debug)]
struct RandomConfig {
    /// MXJ and JL/U of each host.
    hosts: Vec<(u32, Option<u32>)>,
    /// QJOB_LIMIT, UJOB_LIMIT and HJOB_LIMIT of each queue.
    queues: Vec<(Option<u32>, Option<u32>, Option<u32>)>,
    /// MAX_JOBS of each user, and the slots on a host that JL/P gives.
    users: Vec<(Option<u32>, Option<u32>)>,
}

#[derive(Clone, Debug)]
enum Step {
    Submit { user: usize, queue: usize, slots: u32, exclusive: bool, requirement: usize },
    Happens(Happening),
}

const REQUIREMENTS: [&str; 5] = [
    "",
    "-R 'span[hosts=1]'",
    "-R 'span[ptile=2]'",
    "-R 'rusage[mem=300]'",
    "-R 'select[mem>500] order[mem]'",
];

fn limit() -> impl Strategy<Value = Option<u32>> {
    prop::option::of(0..6u32)
}

fn rules() -> impl Strategy<Value = RandomConfig> {
    let hosts = |least, most| prop::collection::vec((0..5u32, limit()), least..=most);
    let hosts = prop_oneof![
        LARGE_ONE_IN - 1 => hosts(1, MOST_HOSTS),
        1 => hosts(MOST_HOSTS + 1, MOST_HOSTS_OF_LARGE),
    ];
    let queues = prop::collection::vec((limit(), limit(), limit()), QUEUES);
    (hosts, queues, prop::collection::vec((limit(), limit()), USERS))
        .prop_map(|(hosts, queues, users)| RandomConfig { hosts, queues, users })
}

fn step() -> impl Strategy<Value = Step> {
    let submit = (0..USERS, 0..QUEUES, 1..5u32, prop::bool::weighted(0.2), 0..REQUIREMENTS.len());
    let submit = submit.prop_map(|(user, queue, slots, exclusive, requirement)| Step::Submit {
        user,
        queue,
        slots,
        exclusive,
        requirement,
    });
    prop_oneof![
        8 => submit,
        4 => random::any(Happening::End).prop_map(Step::Happens),
        1 => random::any(Happening::Kill).prop_map(Step::Happens),
        1 => random::any(Happening::Close).prop_map(Step::Happens),
        1 => random::any(Happening::Open).prop_map(Step::Happens),
        1 => random::memory(1000).prop_map(Step::Happens),
        1 => random::wait(20).prop_map(Step::Happens),
    ]
}

fn shown(limit: Option<u32>) -> String {
    limit.map_or("-".to_owned(), |limit| limit.to_string())
}

impl RandomConfig {
    fn site(&self) -> ClusterBuilder {
        let mut hosts = "Begin Host\nHOST_NAME MXJ JL/U\n".to_owned();
        for (i, (slots, by_user)) in self.hosts.iter().enumerate() {
            let _ = writeln!(hosts, "h{} {slots} {}", i + 1, shown(*by_user));
        }
        let mut users = "Begin User\nUSER_NAME MAX_JOBS JL/P\n".to_owned();
        for (i, (most, on_host)) in self.users.iter().enumerate() {
            let per_cpu = on_host.map(|slots| f64::from(slots) / f64::from(CPUS));
            let per_cpu = per_cpu.map_or("-".to_owned(), |slots| slots.to_string());
            let _ = writeln!(users, "u{i} {} {per_cpu}", shown(*most));
        }
        let site = cluster().hosts(self.hosts.len(), CPUS);
        let site = site.lsb_hosts(&(hosts + "End Host\n")).lsb_users(&(users + "End User\n"));
        self.queues.iter().enumerate().fold(site, |site, (i, limits)| {
            let (of_queue, of_user, on_host) = limits;
            let line = |name: &str, limit: &Option<u32>| {
                limit.map_or(String::new(), |limit| format!("; {name} = {limit}"))
            };
            let (all, each) = (line("QJOB_LIMIT", of_queue), line("UJOB_LIMIT", of_user));
            let here = line("HJOB_LIMIT", on_host);
            let lines = format!("PRIORITY = {}; EXCLUSIVE = Y{all}{each}{here}", 20 + 10 * i);
            site.queue(&format!("q{i}"), &lines)
        })
    }

    /// Everything that must hold of these jobs.
    fn check(&self, jobs: &[Listed]) {
        let mut hosts: BTreeMap<&str, u32> = BTreeMap::new();
        let mut users_on: BTreeMap<(&str, &str), u32> = BTreeMap::new();
        let mut queues: BTreeMap<&str, u32> = BTreeMap::new();
        let mut queues_on: BTreeMap<(&str, &str), u32> = BTreeMap::new();
        let mut users_in: BTreeMap<(&str, &str), u32> = BTreeMap::new();
        let mut users: BTreeMap<&str, u32> = BTreeMap::new();
        for job in jobs.iter().filter(|job| job.state == "RUN") {
            let (user, queue) = (job.user.as_str(), job.queue.as_str());
            assert!(!job.hosts.is_empty(), "{job:?}");
            for (host, slots) in &job.hosts {
                *hosts.entry(host).or_default() += slots;
                *users_on.entry((host, user)).or_default() += slots;
                *queues.entry(queue).or_default() += slots;
                *queues_on.entry((host, queue)).or_default() += slots;
                *users_in.entry((queue, user)).or_default() += slots;
                *users.entry(user).or_default() += slots;
            }
        }
        for (host, slots) in hosts {
            assert!(slots <= self.hosts[number(host) - 1].0, "MXJ of {host}: {slots}");
        }
        for ((host, user), slots) in users_on {
            let most = self.hosts[number(host) - 1].1.unwrap_or(u32::MAX);
            assert!(slots <= most, "JL/U of {host}: {slots} of {user}");
            let most = self.users[number(user)].1.unwrap_or(u32::MAX);
            assert!(slots <= most, "JL/P of {user}: {slots} on {host}");
        }
        for ((host, queue), slots) in queues_on {
            let most = self.queues[number(queue)].2.unwrap_or(u32::MAX);
            assert!(slots <= most, "HJOB_LIMIT of {queue}: {slots} on {host}");
        }
        for (queue, slots) in queues {
            let most = self.queues[number(queue)].0.unwrap_or(u32::MAX);
            assert!(slots <= most, "QJOB_LIMIT of {queue}: {slots}");
        }
        for ((queue, user), slots) in users_in {
            let most = self.queues[number(queue)].1.unwrap_or(u32::MAX);
            assert!(slots <= most, "UJOB_LIMIT of {queue}: {slots} of {user}");
        }
        for (user, slots) in users {
            let most = self.users[number(user)].0.unwrap_or(u32::MAX);
            assert!(slots <= most, "MAX_JOBS of {user}: {slots}");
        }
    }
}

/// Counters of hosts and queues are what a count of the jobs gives.
fn recount(c: &mut Cluster, rules: &RandomConfig, jobs: &[Listed]) {
    let running = || jobs.iter().filter(|job| job.state == "RUN");
    let hosts = c.hosts();
    assert_eq!(hosts.len(), rules.hosts.len());
    for shown in hosts {
        let all = running().flat_map(|job| &job.hosts);
        let slots: u32 = all.filter(|host| host.0 == shown.name).map(|host| host.1).sum();
        assert_eq!((shown.njobs, shown.run), (slots.into(), slots.into()), "{}", shown.name);
    }
    for i in 0..QUEUES {
        let name = format!("q{i}");
        let all = running().filter(|job| job.queue == name).flat_map(|job| &job.hosts);
        let slots: u32 = all.map(|host| host.1).sum();
        let waiting = jobs.iter().filter(|job| job.queue == name && job.state == "PEND").count();
        let shown = c.queue(&name);
        assert_eq!((shown.run, shown.pjobs), (slots.into(), waiting as u64), "{name}");
    }
}

/// The hosts that the reasons of a waiting job name are all there are, where each names some.
fn every_host_has_a_reason(c: &mut Cluster, rules: &RandomConfig, at: JobRef) {
    let reasons = c.reasons(at);
    if reasons.iter().all(|reason| !reason.1.is_empty()) {
        let named: BTreeSet<String> = reasons.iter().flat_map(|r| r.1.iter().cloned()).collect();
        assert_eq!(named.len(), rules.hosts.len(), "job {at} has no reason for some: {reasons:?}");
    }
}

fn happens(c: &mut Cluster, exclusive: &mut Vec<JobRef>, what: &Step) {
    match *what {
        Step::Submit { user, queue, slots, exclusive: alone, requirement } => {
            let (flag, requirement) = (if alone { "-x" } else { "" }, REQUIREMENTS[requirement]);
            let options = format!("-q q{queue} -n 1,{slots} {flag} {requirement}");
            // it is refused where it asks for more slots than the queue ever gives
            let job = c.try_submit(&format!("u{user}"), &options).ok();
            exclusive.extend(job.filter(|_| alone));
        }
        Step::Happens(what) => c.happens(what),
    }
}

proptest! {
    #![proptest_config(cases(CASES))]

    #[test]
    fn random_cluster_exceeds_no_limit_and_tells_why_jobs_wait(
        rules in rules(),
        all in prop::collection::vec(step(), 1..=MOST_STEPS),
    ) {
        let mut c = rules.site().up();
        let mut exclusive = Vec::new();
        let between = if rules.hosts.len() > MOST_HOSTS { STEPS_BETWEEN_LOOKS } else { 1 };
        for (n, what) in all.iter().enumerate() {
            happens(&mut c, &mut exclusive, what);
            if (n + 1) % between != 0 && n + 1 != all.len() {
                continue;
            }
            let jobs = c.listed();
            rules.check(&jobs);
            recount(&mut c, &rules, &jobs);
            let hosts = |job: &Listed| job.hosts.iter().map(|h| h.0.clone()).collect::<Vec<_>>();
            let running: Vec<&Listed> = jobs.iter().filter(|job| job.state == "RUN").collect();
            for alone in running.iter().filter(|job| exclusive.contains(&job.at)) {
                let beside = running.iter().filter(|job| job.at != alone.at);
                let shared = beside.filter(|job| {
                    hosts(job).iter().any(|host| hosts(alone).contains(host))
                });
                prop_assert_eq!(shared.count(), 0, "{:?} is not alone", alone);
            }
            all_are_told_why_they_wait(&jobs);
            for job in jobs.iter().filter(|job| job.state == "PEND") {
                every_host_has_a_reason(&mut c, &rules, job.at);
            }
        }
        prop_assert_eq!(c.complaints(), Vec::<String>::new());
    }
}
