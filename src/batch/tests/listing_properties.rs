//! In random clusters the listings of bhosts, bqueues, busers, bapp, bhpart, blimits, bslots and
//! brsvs agree with each other and with the jobs that bjobs shows, whatever happens.

use super::Verb;
use super::cluster::random::{self, Happening, Listed, STARTED};
use super::cluster::{ADMINISTRATOR, Cluster, ClusterBuilder, cluster};
use super::limit_properties::{RandomLimit, limits};
use crate::model::reason::susp;
use crate::proto::client::{HostInfo, ShareTable};
use crate::proto::limit_rows::LimitQuery;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::collections::BTreeMap;

const USERS: usize = 3;
const MOST_HOSTS: usize = 4;
const SLOTS: u64 = 4;
const PROJECTS: usize = 3;
const CASES: u32 = 100;
const MOST_STEPS: usize = 30;
const SEED: u64 = 20_261_127;

const QUEUES: [&str; 3] = [
    "PRIORITY = 20",
    "SLOT_RESERVE = MAX_RESERVE_TIME[1000]; BACKFILL = Y",
    "PRIORITY = 40; PREEMPTION = PREEMPTIVE[q0]; BACKFILL = Y",
];
const APPLICATIONS: [&str; 3] = ["", "-app a0", "-app a1"];
const SPANS: [&str; 3] = ["", "span[hosts=1]", "span[ptile=2]"];
const GROUPS: &str = "Begin UserGroup\nGROUP_NAME GROUP_MEMBER USER_SHARES\n\
    g0 (u0 u1) ([u0,2] [u1,1])\nEnd UserGroup\n";
const SHARES: &str = "USER_SHARES[[g0,3] [default,1]]";

/// The place of FAIRSHARE in a cluster.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Sharing {
    Nobody,
    Queue,
    Queues,
    Hosts,
}

#[derive(Clone, Debug)]
struct RandomConfig {
    hosts: usize,
    sharing: Sharing,
    /// PRIORITY of the queue whose jobs reserve slots.
    reserves: u32,
    limits: Vec<RandomLimit>,
}

#[derive(Clone, Debug)]
struct Submission {
    user: usize,
    queue: usize,
    project: usize,
    slots: (u32, u32),
    span: usize,
    memory: u32,
    application: usize,
    elements: u32,
    minutes: u32,
    /// Any of the reservations.
    reserved: Option<usize>,
}

#[derive(Clone, Debug)]
enum Step {
    Submit(Submission),
    /// User, host, slots, minutes until it begins, minutes that it lasts.
    Reserve(usize, usize, u64, i64, i64),
    Unreserve(usize),
    /// A job goes to another queue.
    Switch(usize, usize),
    /// A running job has used CPU time, seconds.
    Cpu(usize, u64),
    Happens(Happening),
}

fn config() -> impl Strategy<Value = RandomConfig> {
    let sharing = prop_oneof![
        Just(Sharing::Nobody),
        Just(Sharing::Queue),
        Just(Sharing::Queues),
        Just(Sharing::Hosts),
    ];
    let some = |hosts| {
        let limits = prop_oneof![2 => Just(vec![]).boxed(), 1 => limits(hosts).boxed()];
        (Just(hosts), limits)
    };
    let reserves = prop_oneof![Just(30), Just(40), Just(50)];
    ((1..=MOST_HOSTS).prop_flat_map(some), sharing, reserves).prop_map(|(of, sharing, reserves)| {
        let (hosts, limits) = of;
        RandomConfig { hosts, sharing, reserves, limits }
    })
}

fn submission() -> impl Strategy<Value = Submission> {
    let who = (0..USERS, 0..QUEUES.len(), 0..PROJECTS, 0..APPLICATIONS.len());
    let size = (1..6u32, 0..3u32, 0..SPANS.len(), 0..3u32, 0..3u32, 1..30u32);
    (who, size, prop::option::weighted(0.2, any::<usize>())).prop_map(|(who, size, reserved)| {
        let (user, queue, project, application) = who;
        let (least, more, span, memory, elements, minutes) = size;
        let (slots, memory) = ((least, least + more), 100 * memory);
        Submission {
            user,
            queue,
            project,
            slots,
            span,
            memory,
            application,
            elements,
            minutes,
            reserved,
        }
    })
}

fn step() -> impl Strategy<Value = Step> {
    let reserve = (0..USERS, any::<usize>(), 1..=SLOTS, 1..3i64, 5..40i64);
    prop_oneof![
        10 => submission().prop_map(Step::Submit),
        2 => reserve.prop_map(|(a, b, c, d, e)| Step::Reserve(a, b, c, d, e)),
        1 => any::<usize>().prop_map(Step::Unreserve),
        1 => (any::<usize>(), 0..QUEUES.len()).prop_map(|(job, to)| Step::Switch(job, to)),
        1 => (any::<usize>(), 0..5000u64).prop_map(|(job, secs)| Step::Cpu(job, secs)),
        4 => random::any(Happening::End).prop_map(Step::Happens),
        1 => random::any(Happening::Kill).prop_map(Step::Happens),
        1 => random::any(Happening::Stop).prop_map(Step::Happens),
        1 => random::any(Happening::Resume).prop_map(Step::Happens),
        1 => random::any(Happening::Requeue).prop_map(Step::Happens),
        1 => random::any(Happening::Close).prop_map(Step::Happens),
        1 => random::any(Happening::Open).prop_map(Step::Happens),
        1 => Just(Step::Happens(Happening::Restart)),
        1 => Just(Step::Happens(Happening::Reconfigure)),
        4 => random::wait(200).prop_map(Step::Happens),
    ]
}

impl RandomConfig {
    fn site(&self) -> ClusterBuilder {
        let mut hosts = "Begin Host\nHOST_NAME MXJ\n".to_owned();
        (1..=self.hosts).for_each(|n| hosts += &format!("h{n} {SLOTS}\n"));
        hosts += "End Host\n";
        if self.sharing == Sharing::Hosts {
            let shares = SHARES.trim_start_matches("USER_SHARES[").trim_end_matches(']');
            hosts += &format!(
                "Begin HostPartition\nHPART_NAME = p1\nHOSTS = all\n\
                 USER_SHARES = {shares}]\nEnd HostPartition\n"
            );
        }
        let section = |(n, limit): (usize, &RandomLimit)| {
            limit.section().replace("Begin Limit\n", &format!("Begin Limit\nNAME = l{n}\n"))
        };
        let sections: String = self.limits.iter().enumerate().map(section).collect();
        let site = cluster().hosts(self.hosts, SLOTS as u32).lsb_hosts(&hosts).lsb_users(GROUPS);
        let site = site.file("lsb.resources", &sections).application("a0", "");
        QUEUES.iter().enumerate().fold(site.application("a1", ""), |site, (n, lines)| {
            let fair = match (self.sharing, n) {
                (Sharing::Queue, 0) => format!("; FAIRSHARE = {SHARES}"),
                (Sharing::Queues, 1) => {
                    let order = ["", "; DISPATCH_ORDER = QUEUE"][self.hosts % 2];
                    format!("; FAIRSHARE = {SHARES}; FAIRSHARE_QUEUES = q0{order}")
                }
                _ => String::new(),
            };
            let priority = match n {
                1 => format!("PRIORITY = {}; ", self.reserves),
                _ => String::new(),
            };
            site.queue(&format!("q{n}"), &format!("{priority}{lines}{fair}"))
        })
    }
}

/// Options of a job that its listing does not show.
#[derive(Clone, Debug, Default)]
struct Asked {
    application: usize,
    reservation: String,
}

struct Tested {
    c: Cluster,
    rules: RandomConfig,
    asked: BTreeMap<u32, Asked>,
    memory: BTreeMap<u32, u32>,
}

/// Slots of some jobs by state, and how many of these are pending.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counted {
    pend: u64,
    run: u64,
    ssusp: u64,
    ususp: u64,
    rsv: u64,
    pjobs: u64,
}

impl Counted {
    fn of<'a>(jobs: impl Iterator<Item = &'a Listed>, host: Option<&str>) -> Counted {
        let mut n = Counted::default();
        for job in jobs {
            match job.state.as_str() {
                "PEND" | "PSUSP" => {
                    n.pend += job.min_slots;
                    n.pjobs += 1;
                }
                "RUN" => n.run += job.slots(host),
                "SSUSP" => n.ssusp += job.slots(host),
                "USUSP" => n.ususp += job.slots(host),
                _ => {}
            }
            assert!(job.held.is_empty() || job.state == "PEND", "{job:?}");
            let here = job.held.iter().filter(|(name, _)| host.is_none_or(|host| host == name));
            n.rsv += here.map(|of| of.1).sum::<u64>();
        }
        n
    }

    fn all(&self) -> u64 {
        self.pend + self.run + self.ssusp + self.ususp
    }
}

impl Tested {
    fn submit(&mut self, of: &Submission) {
        let mut options = format!("-q q{} -P p{} ", of.queue, of.project);
        options += &format!("-n {},{} -W {} ", of.slots.0, of.slots.1, of.minutes);
        options += APPLICATIONS[of.application];
        let memory = match of.memory {
            0 => String::new(),
            mb => format!("rusage[mem={mb}]"),
        };
        if !SPANS[of.span].is_empty() || of.memory > 0 {
            options += &format!(" -R '{} {memory}'", SPANS[of.span]);
        }
        if of.elements > 1 {
            options += &format!(" -J 'a[1-{}]'", of.elements);
        }
        let all = self.c.brsvs();
        let chosen = of.reserved.and_then(|any| all.get(any % all.len().max(1)));
        let (mut user, mut reservation) = (format!("u{}", of.user), String::new());
        if let Some(chosen) = chosen {
            (user, reservation) = (chosen.users[0].clone(), chosen.id.clone());
            options += &format!(" -U {reservation}");
        }
        let Ok(at) = self.c.try_submit(&user, &options) else { return };
        let application = of.application;
        self.asked.insert(at.job, Asked { application, reservation });
        self.memory.insert(at.job, of.memory);
    }

    fn happens(&mut self, step: &Step) {
        match step {
            Step::Submit(of) => self.submit(of),
            Step::Reserve(user, host, slots, begin, minutes) => {
                let begin = self.c.secs() / 60 % 1440 + begin;
                let host = host % self.rules.hosts + 1;
                let instant = |minute: i64| format!("{}:{}", minute / 60, minute % 60);
                let (begin, end) = (instant(begin), instant(begin + minutes));
                let options = format!("-n {slots} -m h{host} -u u{user} -b {begin} -e {end}");
                // it is refused where others have the slots
                let _ = self.c.try_brsvadd(ADMINISTRATOR, &options);
            }
            Step::Unreserve(any) => {
                let all = self.c.brsvs();
                if let Some(one) = all.get(any % all.len().max(1)) {
                    // it is refused while its jobs run
                    let _ = self.c.try_brsvdel(ADMINISTRATOR, &one.id);
                }
            }
            Step::Switch(any, to) => {
                if let Some(at) = self.c.any_job(&["PEND", "RUN"], *any) {
                    let to = Verb::Switch { queue: format!("q{to}") };
                    self.c.control(ADMINISTRATOR, to, at);
                }
            }
            Step::Cpu(any, secs) => {
                if let Some(at) = self.c.any_job(&["RUN"], *any) {
                    self.c.uses_cpu(at, *secs);
                }
            }
            Step::Happens(what) => self.c.happens(*what),
        }
    }

    fn check(&mut self) {
        let jobs = self.c.listed();
        let hosts = self.c.hosts();
        self.check_hosts(&jobs, &hosts);
        self.check_queues_and_users(&jobs);
        self.check_limits(&jobs);
        self.check_reservations(&jobs);
        self.check_windows(&jobs, &hosts);
        for table in self.c.partitions(&[]).unwrap() {
            check_shares(&jobs, &table.shares, true);
        }
    }

    /// bhosts: the slots of each host by state.
    fn check_hosts(&self, jobs: &[Listed], hosts: &[HostInfo]) {
        assert_eq!(hosts.len(), self.rules.hosts);
        for host in hosts {
            let n = Counted::of(jobs.iter(), Some(&host.name));
            let told = (host.run, host.ssusp, host.ususp, host.rsv);
            assert_eq!(told, (n.run, n.ssusp, n.ususp, n.rsv), "{}", host.name);
            assert_eq!(host.njobs, n.run + n.ssusp + n.ususp + n.rsv, "{}", host.name);
            assert_eq!(host.max, Some(SLOTS));
            if ["ok", "closed_Full"].contains(&host.status.as_str()) {
                let full = host.njobs - given(jobs, &host.name) >= SLOTS;
                assert_eq!(host.status == "closed_Full", full, "{host:?}");
            }
        }
    }

    /// bqueues, busers and bapp: slots by state, and pending jobs.
    fn check_queues_and_users(&mut self, jobs: &[Listed]) {
        let mut told = Vec::new();
        for n in 0..QUEUES.len() {
            let q = self.c.queue(&format!("q{n}"));
            let of: Vec<&Listed> = jobs.iter().filter(|job| job.queue == q.name).collect();
            let counted = Counted::of(of.into_iter(), None);
            let (pend, run, ssusp, ususp) = (q.pend, q.run, q.ssusp, q.ususp);
            let (rsv, pjobs) = (q.rsv, q.pjobs);
            told.push((q.name, counted, Counted { pend, run, ssusp, ususp, rsv, pjobs }, q.njobs));
            check_shares(jobs, &q.shares, false);
        }
        for u in self.c.users() {
            let group = ["u0", "u1"];
            let is_one = |job: &&Listed| {
                job.user == u.name || u.name == "g0" && group.contains(&job.user.as_str())
            };
            let counted = Counted::of(jobs.iter().filter(is_one), None);
            let (pend, run, ssusp, ususp) = (u.pend, u.run, u.ssusp, u.ususp);
            let (rsv, pjobs) = (u.rsv, u.pjobs);
            told.push((u.name, counted, Counted { pend, run, ssusp, ususp, rsv, pjobs }, u.njobs));
        }
        for a in self.c.applications() {
            let is_one = |job: &&Listed| {
                let of = self.asked[&job.at.job].application;
                of > 0 && format!("a{}", of - 1) == a.name
            };
            let counted = Counted::of(jobs.iter().filter(is_one), None);
            let (pend, run, ssusp, ususp) = (a.pend, a.run, a.ssusp, a.ususp);
            let (rsv, pjobs) = (counted.rsv, counted.pjobs);
            let all = pend + run + ssusp + ususp;
            told.push((a.name, counted, Counted { pend, run, ssusp, ususp, rsv, pjobs }, all));
        }
        for (name, counted, told, all) in told {
            assert_eq!((told, all), (counted, counted.all()), "{name}: {jobs:?}");
        }
    }

    /// blimits: what each member of a limit uses.
    fn check_limits(&mut self, jobs: &[Listed]) {
        let listing = self.c.limit_listing(LimitQuery { all: true, ..LimitQuery::default() });
        for (n, limit) in self.rules.limits.iter().enumerate() {
            let rows = listing.rows.iter().filter(|row| row.name == format!("l{n}"));
            let used = rows.flat_map(|row| &row.amounts).map(|amount| amount.used as u32);
            let held = limit.held(jobs, &self.memory).into_values();
            let sorted = |all: Vec<u32>| {
                let mut all: Vec<u32> = all.into_iter().filter(|n| *n > 0).collect();
                all.sort_unstable();
                all
            };
            let (used, held) = (sorted(used.collect()), sorted(held.collect()));
            assert_eq!(used, held, "{}: {jobs:?}", limit.section());
        }
    }

    /// brsvs: the slots that the jobs of a reservation use, and these jobs.
    fn check_reservations(&mut self, jobs: &[Listed]) {
        for reservation in self.c.brsvs() {
            let of = |job: &&Listed| self.asked[&job.at.job].reservation == reservation.id;
            let own: Vec<&Listed> = jobs.iter().filter(of).collect();
            for (host, used, slots, max) in &reservation.hosts {
                let started = own.iter().filter(|job| job.is(&STARTED));
                let counted: u64 = started.map(|job| job.slots(Some(host))).sum();
                assert_eq!((*used, *max), (counted, SLOTS), "{} on {host}", reservation.id);
                assert!(slots <= max && used <= slots, "{} on {host}", reservation.id);
            }
            let states: [&[&str]; 4] =
                [&["DONE", "EXIT"], &["PEND", "PSUSP"], &["RUN"], &["SSUSP", "USUSP"]];
            for (told, states) in reservation.jobs.iter().zip(states) {
                let mut these: Vec<u32> =
                    own.iter().filter(|job| job.is(states)).map(|job| job.at.job).collect();
                these.sort_unstable();
                these.dedup();
                assert_eq!(*told, these, "{} {states:?}", reservation.id);
            }
        }
    }

    /// bslots: the slots that nothing is planned for, and more for shorter times.
    fn check_windows(&mut self, jobs: &[Listed], hosts: &[HostInfo]) {
        let mut windows = self.c.slot_windows();
        windows.sort_by_key(|window| std::cmp::Reverse(window.secs.unwrap_or(u64::MAX)));
        let slots = |n: usize, host: &str| {
            let of = windows.get(n).and_then(|w| w.hosts.iter().find(|of| of.0 == host));
            of.map_or(0, |of| of.1)
        };
        let unlimited = windows.first().is_some_and(|window| window.secs.is_none());
        let mut kept: BTreeMap<String, u64> = BTreeMap::new();
        for reservation in self.c.brsvs().iter().filter(|of| of.active || of.period.is_some()) {
            for (host, used, slots, _) in &reservation.hosts {
                let used = if reservation.active { *used } else { 0 };
                *kept.entry(host.clone()).or_default() += slots.saturating_sub(used);
            }
        }
        for host in hosts {
            let open = host.status == "ok";
            let used = host.njobs - given(jobs, &host.name);
            let free = if open { SLOTS.saturating_sub(used) } else { 0 };
            let left = free.saturating_sub(kept.get(&host.name).copied().unwrap_or(0));
            if unlimited || left > 0 {
                assert_eq!(slots(0, &host.name), left, "{host:?} {windows:?}");
            }
            for n in 1..windows.len() {
                assert!(slots(n, &host.name) >= slots(n - 1, &host.name), "{windows:?}");
                assert!(slots(n, &host.name) <= free + host.rsv, "{host:?} {windows:?}");
            }
        }
    }
}

/// Slots on a host of jobs that are suspended for a reservation, whose jobs have them.
fn given(jobs: &[Listed], host: &str) -> u64 {
    let given = jobs
        .iter()
        .filter(|job| job.state == "SSUSP" && job.suspended_for == u64::from(susp::RESERVED));
    given.map(|job| job.slots(Some(host))).sum()
}

/// bqueues -r and bhpart: the jobs or slots that are charged to each account, and its priority by
/// its other columns.
fn check_shares(jobs: &[Listed], tables: &[ShareTable], by_slots: bool) {
    for row in tables.iter().flat_map(|table| table.rows.iter().map(move |row| (table, row))) {
        let (table, row) = row;
        let path = format!("{}{}", table.path, row.name);
        let below = format!("{path}/");
        // one tree acts; jobs show their account without its name
        let (_, account) = path.split_once('/').unwrap();
        let charged = |job: &&Listed| {
            job.is(&STARTED) && format!("{}/", job.charged).starts_with(&format!("/{account}/"))
        };
        let own: Vec<&Listed> = jobs.iter().filter(charged).collect();
        let each = |job: &Listed| if by_slots { job.slots(None) } else { 1 };
        let started: u64 = own.iter().map(|job| each(job)).sum();
        assert_eq!(row.started, started, "{path}: {jobs:?}");
        let run_secs: u64 = own.iter().map(|job| each(job) * job.run_secs).sum();
        assert_eq!(row.run_secs as u64, run_secs, "{path}: {jobs:?}");
        let weight = row.cpu_secs / 3600.0 * 0.7
            + row.run_secs / 3600.0 * 0.7
            + (1 + row.started) as f64 * 3.0;
        let priority = f64::from(row.shares) / weight;
        assert!((row.priority - priority).abs() < 1e-6, "{row:?}: {priority}");
        if let Some(inner) = tables.iter().find(|table| table.path == below) {
            let started: u64 = inner.rows.iter().map(|row| row.started).sum();
            assert_eq!(row.started, started, "{path}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: RngSeed::Fixed(SEED),
        ..random::cases(CASES)
    })]

    #[test]
    fn listings_of_a_random_cluster_add_up_to_each_other_and_to_its_jobs(
        rules in config(),
        all in prop::collection::vec(step(), 1..=MOST_STEPS),
    ) {
        let c = rules.site().up();
        let mut tested =
            Tested { c, rules, asked: BTreeMap::new(), memory: BTreeMap::new() };
        for step in &all {
            tested.happens(step);
            tested.check();
        }
        prop_assert_eq!(tested.c.complaints(), Vec::<String>::new());
    }
}
