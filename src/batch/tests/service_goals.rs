//! Service classes with goals that are numbers of jobs, beside the scenarios in
//! tests/policy/goals.txt: job groups of such a class, and what holds for any jobs whatever happens
//! to them.

use super::cluster::{Cluster, cluster};
use super::*;
use crate::model::reason::PendReason;
use crate::proto::client::Col;
use crate::proto::job_group::JobGroupRequest;
use proptest::prelude::*;

const CASES: u32 = 60;
const MOST_STEPS: usize = 30;
const CLASSES: &str = "Begin ServiceClass\nNAME = steady\nGOALS = [VELOCITY 2]\nEnd ServiceClass\n\
    Begin ServiceClass\nNAME = late\nGOALS = [DEADLINE timeWindow (22:15-22:45)] \
    [VELOCITY 1 timeWindow (22:45-23:15)]\nPRIORITY = 9\nEnd ServiceClass\n";

/// The state of each job, by its ID, and its service class.
fn states(c: &mut Cluster) -> Vec<(u32, String, String)> {
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let rows = c.listing(&[Col::Job, Col::Stat]);
    let of = |row: &Vec<serde_json::Value>| (row[0].as_u64().unwrap() as u32, text(&row[1]));
    rows.iter().map(of).map(|(job, state)| (job, state, c.service_class_of(job))).collect()
}

#[test]
fn job_of_a_group_is_in_the_service_class_of_the_group() {
    let mut c = cluster().hosts(1, 8).file("lsb.serviceclasses", CLASSES).up();
    let add = |path: &str, sla: &str| {
        let (path, sla) = (path.to_owned(), sla.to_owned());
        ClientMsg::JobGroup(Box::new(JobGroupRequest::Add { path, limit: None, sla }))
    };
    c.ask("ann", add("/run", "steady"));
    let reply = c.ask("ann", add("/other", "nope"));
    let refused =
        |reply: &Msg| matches!(reply, Msg::Refused(refusal) if refusal.code == err::SLA_NULL);
    assert!(reply.iter().all(refused) && reply.len() == 1, "{reply:?}");
    for _ in 0..3 {
        c.submit("ann", "-g /run");
    }
    let own = c.submit("ann", "-g /run -sla late");
    let below = c.submit("ann", "-g /run/below");
    let class = |at: JobRef| c.service_class_of(at.job);
    assert_eq!((class(own), class(below)), ("late".into(), "steady".into()));
    let all = states(&mut c);
    let of = |state: &str| all.iter().filter(|job| job.2 == "steady" && job.1 == state).count();
    assert_eq!((of("RUN"), of("PEND")), (2, 2), "{all:?}");
}

/// How often the CONTROL_ACTION of each class was run since this was asked last.
fn actions(c: &mut Cluster) -> Vec<(String, String)> {
    std::mem::take(&mut c.actions)
}

#[test]
fn control_action_is_run_after_each_violation_period_in_which_a_goal_was_missed() {
    let class = "Begin ServiceClass\nNAME = steady\nGOALS = [VELOCITY 2]\n\
        CONTROL_ACTION = VIOLATION_PERIOD[2] CMD [echo [late] >> /tmp/late]\nEnd ServiceClass\n";
    let site = || cluster().hosts(1, 8).file("lsb.serviceclasses", class);
    let mut c = site().up();
    let due = vec![("steady".to_owned(), "echo [late] >> /tmp/late".to_owned())];
    c.advance(600);
    assert_eq!(actions(&mut c), [], "the class has no jobs");
    c.badmin("hclose h1");
    let job = c.submit("ann", "-sla steady");
    c.advance(119);
    assert_eq!(actions(&mut c), []);
    c.advance(1);
    assert_eq!(actions(&mut c), due);
    c.advance(119);
    assert_eq!(actions(&mut c), []);
    c.advance(1);
    assert_eq!(actions(&mut c), due);
    // a period ends where the goal is met, and the next one begins anew
    c.advance(100);
    c.badmin("hopen h1");
    c.advance(60);
    c.end(job, 0);
    c.badmin("hclose h1");
    c.submit("ann", "-sla steady");
    c.advance(60);
    c.reconfigure(site());
    c.advance(59);
    assert_eq!(actions(&mut c), []);
    c.advance(1);
    assert_eq!(actions(&mut c), due, "a reconfiguration changed the period");
    c.advance(60);
    c.restart();
    c.advance(119);
    assert_eq!(actions(&mut c), [], "mbatchd began anew");
    c.advance(10);
    assert_eq!(actions(&mut c), due);
}

#[test]
fn control_action_is_run_for_each_active_goal_that_is_missed_and_for_no_other_class() {
    let class = |name: &str, lines: &str| {
        format!("Begin ServiceClass\nNAME = {name}\n{lines}\nEnd ServiceClass\n")
    };
    // 22:13:20: the third goal is not active
    let goals = "GOALS = [VELOCITY 2 timeWindow (22:00-23:00)] \
        [THROUGHPUT 6 timeWindow (22:00-23:00)] [VELOCITY 1 timeWindow (5:00-6:00)]";
    let text = class("both", &format!("{goals}\nCONTROL_ACTION = VIOLATION_PERIOD[1] CMD[true]"))
        + &class("quiet", goals);
    let mut c = cluster().hosts(1, 8).file("lsb.serviceclasses", &text).up();
    c.badmin("hclose h1");
    c.submit("ann", "-sla both");
    c.submit("ann", "-sla quiet");
    c.advance(60);
    let due = ("both".to_owned(), "true".to_owned());
    assert_eq!(actions(&mut c), [due.clone(), due]);
}

/// A step of a random history.
#[derive(Clone, Debug)]
enum Happening {
    /// Class (0 none), minutes of the run limit (0 none), elements of an array (0: a single job).
    Submit(usize, u32, u32),
    End(usize),
    Kill(usize),
    Stop(usize),
    Resume(usize),
    Requeue(usize),
    Restart,
    Wait(u64),
}

fn happening() -> impl Strategy<Value = Happening> {
    let any = any::<usize>;
    prop_oneof![
        8 => (0..3usize, 0..9u32, 0..4u32).prop_map(|(a, b, c)| Happening::Submit(a, b, c)),
        6 => any().prop_map(Happening::End),
        1 => any().prop_map(Happening::Kill),
        1 => any().prop_map(Happening::Stop),
        1 => any().prop_map(Happening::Resume),
        1 => any().prop_map(Happening::Requeue),
        1 => Just(Happening::Restart),
        4 => (1..900u64).prop_map(Happening::Wait),
    ]
}

fn happens(c: &mut Cluster, what: &Happening) {
    let in_state = |c: &mut Cluster, wanted: &[&str], any: usize| -> Option<JobRef> {
        let rows = c.listing(&[Col::Job, Col::Idx, Col::Stat]);
        let all: Vec<JobRef> = rows
            .iter()
            .filter(|row| wanted.contains(&row[2].as_str().unwrap()))
            .map(|row| JobRef {
                job: row[0].as_u64().unwrap() as u32,
                idx: row[1].as_u64().unwrap() as u32,
            })
            .collect();
        all.get(any % all.len().max(1)).copied()
    };
    match *what {
        Happening::Submit(class, minutes, elements) => {
            let class = ["", "-sla steady", "-sla late"][class];
            let limit = if minutes > 0 { format!("-W {minutes}") } else { String::new() };
            let name = if elements > 0 { format!("-J x[1-{elements}]") } else { String::new() };
            c.submit("ann", &format!("{class} {limit} {name}"));
        }
        Happening::End(any) => in_state(c, &["RUN"], any).into_iter().for_each(|job| c.end(job, 0)),
        Happening::Kill(any) => {
            let job = in_state(c, &["RUN", "PEND", "PSUSP"], any);
            job.into_iter().for_each(|job| c.kill("ann", job));
        }
        Happening::Stop(any) => {
            in_state(c, &["RUN", "PEND"], any).into_iter().for_each(|job| c.stop("ann", job));
        }
        Happening::Resume(any) => {
            let job = in_state(c, &["USUSP", "PSUSP"], any);
            job.into_iter().for_each(|job| drop(c.control("ann", Verb::Resume, job)));
        }
        Happening::Requeue(any) => {
            in_state(c, &["RUN"], any).into_iter().for_each(|job| c.requeue("ann", job));
        }
        Happening::Restart => c.restart(),
        Happening::Wait(secs) => c.advance(secs),
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: CASES,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// A class of which fewer jobs run than its goal wants has no ready job while a slot is free,
    /// and one that has as many as it wants is given no more.
    #[test]
    fn service_class_has_as_many_jobs_run_as_its_goals_want(
        slots in 1..=6u32,
        all in prop::collection::vec(happening(), 1..=MOST_STEPS),
    ) {
        let mut c = cluster().hosts(1, slots).file("lsb.serviceclasses", CLASSES).up();
        let mut before = 0;
        for what in &all {
            happens(&mut c, what);
            let jobs = states(&mut c);
            let held = jobs.iter().filter(|job| ["RUN", "SSUSP", "USUSP"].contains(&&*job.1));
            let free = slots as usize - held.count();
            let of = |state: &str| {
                jobs.iter().filter(|job| job.2 == "steady" && job.1 == state).count()
            };
            let resumed = matches!(what, Happening::Resume(_));
            prop_assert!(of("RUN") <= 2 || resumed || of("RUN") <= before, "{jobs:?}");
            before = of("RUN");
            let waits = of("RUN") < 2 && of("PEND") > 0 && free > 0;
            prop_assert!(!waits, "{free} free slots: {jobs:?}");
            for (job, _, _) in jobs.iter().filter(|job| job.1 == "PEND") {
                let reasons = c.reasons(JobRef { job: *job, idx: 0 });
                prop_assert!(
                    reasons.iter().all(|reason| reason.0 != PendReason::New),
                    "job {job} waits for no reason: {jobs:?}"
                );
            }
        }
        prop_assert_eq!(c.complaints(), Vec::<String>::new());
    }
}
