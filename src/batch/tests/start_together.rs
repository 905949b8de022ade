//! Jobs that start together start in the order and on the hosts that they would have got one by
//! one. In random clusters the starts are compared with those of a scheduler that decides about
//! each job by itself: it has a policy that answers for one job only.

use super::JobRef;
use super::cluster::random::cases;
use super::cluster::{Cluster, cluster};
use crate::batch::sched::policy::{Policy, Question};
use crate::model::JobKey;
use crate::model::reason::PendReason;
use crate::proto::client::ClientMsg;
use crate::proto::job_group::JobGroupRequest;
use crate::proto::sbd::StartJob;
use proptest::prelude::*;
use std::fmt::Write;

const CASES: u32 = 60;
const USERS: [&str; 2] = ["ann", "bob"];
const QUEUES: [&str; 2] = ["q0", "q1"];
/// Priorities of queues; few, so that several have the same.
const PRIORITIES: [u32; 2] = [10, 20];
const REQUIREMENTS: [&str; 6] = [
    "",
    "-R 'rusage[mem=100]'",
    "-R 'select[mem>500] rusage[mem=300]'",
    "-R 'order[mem]'",
    "-R 'rusage[mem=50] span[hosts=1]'",
    "-m 'h1+2 others'",
];
const MOST_STEPS: usize = 12;

/// The policy by which each job is decided about by itself.
#[derive(Debug)]
struct OneByOne;

impl Policy for OneByOne {
    fn answers(&self) -> &'static [Question] {
        &[Question::Host]
    }
}

/// The options of some jobs.
#[derive(Clone, Debug)]
struct Options {
    user: usize,
    queue: usize,
    requirement: usize,
    priority: u32,
    slots: u32,
    /// In a job group with a limit.
    grouped: bool,
}

#[derive(Clone, Debug)]
enum Step {
    /// A number of jobs of each of these come, one after the other, while no queue dispatches;
    /// `true`: while they wait for a job.
    Submit(Vec<Options>, Vec<(usize, u32)>, bool),
    /// A number of the started jobs end while no queue dispatches, one of them in so many.
    End(usize, usize),
    Wait(u64),
}

/// The limits of the site; 0: none.
#[derive(Clone, Debug)]
struct Limits {
    priorities: Vec<u32>,
    queue: Vec<u32>,
    user: Vec<u32>,
    host: Vec<u32>,
    of_users: Vec<u32>,
    project_slots: u32,
    fair: bool,
}

fn limit() -> impl Strategy<Value = u32> {
    prop_oneof![4 => Just(0u32), 1 => 2..9u32]
}

fn limits() -> impl Strategy<Value = Limits> {
    let each = || prop::collection::vec(limit(), QUEUES.len());
    let priorities = prop::collection::vec(prop::sample::select(PRIORITIES.to_vec()), QUEUES.len());
    let of_users = prop::collection::vec(limit(), USERS.len());
    let fair = prop::bool::weighted(0.2);
    (priorities, each(), each(), each(), of_users, limit(), fair).prop_map(
        |(priorities, queue, user, host, of_users, project_slots, fair)| Limits {
            priorities,
            queue,
            user,
            host,
            of_users,
            project_slots,
            fair,
        },
    )
}

fn options() -> impl Strategy<Value = Options> {
    let slots = prop_oneof![5 => Just(1u32), 1 => Just(2u32)];
    let of = (0..USERS.len(), 0..QUEUES.len(), 0..REQUIREMENTS.len(), 49..52u32);
    (of, slots, prop::bool::weighted(0.1)).prop_map(
        |((user, queue, requirement, priority), slots, grouped)| Options {
            user,
            queue,
            requirement,
            priority,
            slots,
            grouped,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let order = prop::collection::vec((any::<usize>(), 1..6u32), 1..10);
    let submissions = (prop::collection::vec(options(), 1..4), order, any::<bool>());
    let submissions = submissions.prop_map(|(all, order, waits)| Step::Submit(all, order, waits));
    prop_oneof![
        4 => submissions,
        4 => (1..20usize, 1..4usize).prop_map(|(most, each)| Step::End(most, each)),
        1 => (1..100u64).prop_map(Step::Wait),
    ]
}

fn up(hosts: usize, slots: u32, limits: &Limits) -> Cluster {
    let site = cluster().hosts(hosts, slots).param("MAX_USER_PRIORITY = 100");
    let mut users = "Begin User\nUSER_NAME MAX_JOBS\n".to_owned();
    for (user, most) in USERS.iter().zip(&limits.of_users).filter(|(_, most)| **most > 0) {
        let _ = writeln!(users, "{user} {most}");
    }
    let mut site = site.lsb_users(&(users + "End User\n"));
    if limits.project_slots > 0 {
        let most = limits.project_slots;
        let what = if limits.fair { "JOBS" } else { "SLOTS" };
        let lines = format!("Begin Limit\nPER_USER = all\n{what} = {most}\nEnd Limit\n");
        site = site.file("lsb.resources", &lines);
    }
    let line = |name: &str, value: u32| match value {
        0 => String::new(),
        _ => format!("; {name} = {value}"),
    };
    for (n, name) in QUEUES.iter().enumerate() {
        let own = line("QJOB_LIMIT", limits.queue[n]) + &line("UJOB_LIMIT", limits.user[n]);
        let fair = match limits.fair && n == 1 {
            true => "; FAIRSHARE = USER_SHARES[[default, 1]]",
            false => "",
        };
        let own = own + &line("HJOB_LIMIT", limits.host[n]) + fair;
        site = site.queue(name, &format!("PRIORITY = {}{own}", limits.priorities[n]));
    }
    let mut c = site.up();
    let group = JobGroupRequest::Add { path: "/g".into(), limit: Some(3), sla: String::new() };
    c.ask("ann", ClientMsg::JobGroup(Box::new(group)));
    c.loads("mem=1000");
    c
}

/// A cluster with the started jobs that have not ended, in the order of their starts.
struct Tested {
    c: Cluster,
    running: Vec<JobRef>,
}

impl Tested {
    /// Does a step; the starts that follow, with their hosts.
    fn step(&mut self, step: &Step) -> Vec<(JobRef, Vec<(String, u32)>)> {
        let waits = matches!(step, Step::Submit(_, _, true));
        if !waits {
            QUEUES.iter().for_each(|queue| self.c.badmin(&format!("qinact {queue}")));
        }
        match step {
            Step::Submit(all, order, _) => {
                let held = waits.then(|| self.c.submit(USERS[0], "-q q0 -H"));
                let depends = held.map_or(String::new(), |at| format!("-w 'ended({at})'"));
                for (which, jobs) in order {
                    let of = &all[which % all.len()];
                    let group = if of.grouped { "-g /g" } else { "" };
                    let options = format!(
                        "-q {} -n {} -sp {} {group} {depends} {}",
                        QUEUES[of.queue], of.slots, of.priority, REQUIREMENTS[of.requirement]
                    );
                    for _ in 0..*jobs {
                        self.c.submit(USERS[of.user], &options);
                    }
                }
                held.into_iter().for_each(|at| self.c.kill(USERS[0], at));
            }
            Step::End(most, each) => {
                let ended: Vec<JobRef> =
                    self.running.iter().copied().step_by(*each).take(*most).collect();
                self.running.retain(|at| !ended.contains(at));
                ended.into_iter().for_each(|at| self.c.end(at, 0));
            }
            Step::Wait(secs) => self.c.advance(*secs),
        }
        if !waits {
            QUEUES.iter().for_each(|queue| self.c.badmin(&format!("qact {queue}")));
        }
        let orders = self.c.start_orders();
        let at = |key: &JobKey| JobRef { job: key.job, idx: key.idx };
        self.running.extend(orders.iter().map(|order| at(&order.key)));
        let hosts = |order: &StartJob| {
            order.hosts.iter().map(|(host, slots)| (host.to_string(), *slots)).collect()
        };
        orders.iter().map(|order| (at(&order.key), hosts(order))).collect()
    }
}

proptest! {
    #![proptest_config(cases(CASES))]

    #[test]
    fn jobs_that_start_together_start_as_they_would_one_by_one(
        hosts in 1..3usize,
        slots in 4..16u32,
        limits in limits(),
        steps in prop::collection::vec(step(), 1..MOST_STEPS),
    ) {
        let mut together = Tested { c: up(hosts, slots, &limits), running: Vec::new() };
        let c = up(hosts, slots, &limits).with_policy(Box::new(OneByOne));
        let mut apart = Tested { c, running: Vec::new() };
        for step in &steps {
            prop_assert_eq!(together.step(step), apart.step(step), "{:?}", step);
        }
    }
}

#[test]
fn jobs_that_start_together_again_after_a_failure_each_have_an_order() {
    let mut c = cluster().hosts(1, 6).up();
    c.hosts_wait();
    let mut jobs = c.submit_together("ann", &["-J a", "-J b", "-J c"]);
    assert_eq!(c.started(), jobs);
    for at in &jobs {
        c.start_fails(*at, PendReason::JobOpenFiles, "no descriptors are left");
    }
    c.badmin("qinact normal");
    // new ones behind those that are tried again
    jobs.extend(c.submit_together("ann", &["-J d", "-J e"]));
    c.advance(60);
    assert_eq!(c.started(), []);
    c.badmin("qact normal");
    let orders = c.start_orders();
    let told: Vec<_> = orders.iter().map(|o| (o.key.job, o.key.attempt, o.name.as_str())).collect();
    assert_eq!(told, [(1, 2, "a"), (2, 2, "b"), (3, 2, "c"), (4, 1, "d"), (5, 1, "e")]);
    assert_eq!(orders.iter().map(|order| order.rerun).collect::<Vec<_>>(), [false; 5]);
}
