//! brun: jobs that an administrator has started whatever keeps them waiting.

use super::cluster::{ADMINISTRATOR, Cluster, cluster, element};
use super::*;
use crate::model::event::{Event, force_options};
use crate::model::reason::err;
use crate::proto::force::Force;

/// `h1 h2#3`.
fn on(hosts: &str) -> Force {
    let host = |word: &str| match word.split_once('#') {
        Some((name, slots)) => (name.to_owned(), slots.parse().unwrap()),
        None => (word.to_owned(), 0),
    };
    Force { hosts: hosts.split_whitespace().map(host).collect(), ..Force::default() }
}

fn force(c: &mut Cluster, at: JobRef, how: Force) -> Vec<i32> {
    c.control(ADMINISTRATOR, Verb::Force(how), at)
}

#[test]
fn a_forced_job_starts_whatever_keeps_it_waiting() {
    let shut = format!("PRIORITY = 40; DISPATCH_WINDOW = {}", "23:00-23:01");
    let mut c = cluster()
        .hosts(2, 1)
        .queue("shut", &shut)
        .queue("day", "PRIORITY = 30; EXCLUSIVE = Y")
        .up();
    let full = c.submit("ann", "-q day -m h1");
    assert_eq!(c.running_on(full), ["h1"]);
    c.badmin("hclose h2");
    for (n, options) in [
        "-q shut",
        "-q day -m h1",
        "-q day -b 600",
        "-q day -w 'done(1)'",
        "-q day -H",
        "-q day -R 'select[mem>99999]'",
        "-q day -R 'rusage[mem=99999]'",
        "-q day -x",
    ]
    .into_iter()
    .enumerate()
    {
        let job = c.submit("ann", options);
        assert_ne!(c.state(job), "RUN", "{options}");
        let host = ["h1", "h2"][n % 2];
        assert_eq!(force(&mut c, job, on(host)), [0], "{options}");
        assert_eq!(c.running_on(job), [host], "{options}");
    }
    // what the others hold is theirs
    let next = c.submit("ann", "-q day -m h1");
    assert_eq!(c.state(next), "PEND");
    c.restart();
    assert_eq!(c.running_on(full), ["h1"]);
    assert_eq!(c.state(next), "PEND");
}

#[test]
fn a_user_who_is_no_administrator_forces_nothing() {
    let mut c = cluster().hosts(1, 1).up();
    let job = c.submit("ann", "-H");
    let select =
        JobSelect { ids: vec![IdSel { job: job.job, elems: vec![] }], ..JobSelect::default() };
    let control = Control::of(Verb::Force(on("h1")), select);
    let said = c.ask("ann", ClientMsg::Control(Box::new(control)));
    assert!(matches!(&said[..], [Msg::Refused(why)] if why.code == err::PERMISSION), "{said:?}");
    assert_eq!(c.logged(|e| matches!(e, Event::JobForce(_))), 0);
}

#[test]
fn jobs_and_hosts_that_do_not_do_are_refused_and_nothing_is_logged() {
    let mut c = cluster().hosts(3, 2).up();
    let held = c.submit("ann", "-H -n 5");
    let running = c.submit("ann", "");
    let stopped = c.submit("ann", "");
    c.stop("ann", stopped);
    let array = c.submit("ann", "-H -J a[1-3]");
    let lost = c.submit("ann", "-H");
    c.lose("h3");
    let nobody = JobRef { job: 99, idx: 0 };
    for (at, hosts, want) in [
        (running, "h1", err::JOB_STARTED),
        (stopped, "h1", err::SUSPENDED),
        (nobody, "h1", err::NO_JOB),
        (held, "nosuch", err::BAD_HOST),
        (held, "h1 h2", err::NO_HOST),
        (held, "h1#2", err::NO_HOST),
        (lost, "h3", err::HOST_UNREACHED),
        (array, "h1", err::WHOLE_ARRAY),
        (element(array, 7), "h1", err::NO_JOB),
    ] {
        assert_eq!(force(&mut c, at, on(hosts)), [want], "{at} on {hosts}");
    }
    assert_eq!(c.logged(|e| matches!(e, Event::JobForce(_))), 0);
}

#[test]
fn slots_are_those_asked_for_or_as_many_as_processors_and_with_c_as_many_as_are_free() {
    let mut c = cluster().hosts(3, 4).up();
    let of = |hosts: Vec<String>| hosts.join(" ");
    let job = c.submit("ann", "-H -n 6");
    assert_eq!(force(&mut c, job, on("h2 h1")), [0]);
    assert_eq!(of(c.running_on(job)), "h2 h2 h2 h2 h1 h1");
    let job = c.submit("ann", "-H -n 3,5");
    assert_eq!(force(&mut c, job, on("h1#1 h3#3 h2#9")), [0]);
    assert_eq!(of(c.running_on(job)), "h1 h3 h3 h3 h2");
    // h1 has one free, h3 one
    let job = c.submit("ann", "-H -n 2");
    let free = Force { free_processors: true, ..on("h2 h1 h3") };
    assert_eq!(force(&mut c, job, free.clone()), [0]);
    assert_eq!(of(c.running_on(job)), "h1 h3");
    let job = c.submit("ann", "-H -n 2");
    assert_eq!(force(&mut c, job, free), [err::NO_HOST]);
    // a single host takes the whole of a job
    assert_eq!(force(&mut c, job, on("h2")), [0]);
    assert_eq!(of(c.running_on(job)), "h2 h2");
}

#[test]
fn elements_and_finished_jobs_are_forced_and_the_others_stay() {
    let mut c = cluster().hosts(2, 1).up();
    let array = c.submit("ann", "-H -J a[1-3]");
    assert_eq!(force(&mut c, element(array, 2), on("h2")), [0]);
    assert_eq!(c.running_on(element(array, 2)), ["h2"]);
    assert_eq!(c.state(element(array, 1)), "PSUSP");
    c.end(element(array, 2), 3);
    assert_eq!(c.state(element(array, 2)), "EXIT");
    assert_eq!(force(&mut c, element(array, 2), on("h1")), [0]);
    assert_eq!(c.running_on(element(array, 2)), ["h1"]);
    c.restart();
    assert_eq!(c.running_on(element(array, 2)), ["h1"]);
    c.end(element(array, 2), 0);
    assert_eq!(c.state(element(array, 2)), "DONE");
    assert_eq!(c.state(element(array, 3)), "PSUSP");
}

#[test]
fn a_request_that_is_repeated_starts_nothing_a_second_time() {
    let mut c = cluster().hosts(1, 4).up();
    let job = c.submit("ann", "-H");
    let select =
        JobSelect { ids: vec![IdSel { job: job.job, elems: vec![] }], ..JobSelect::default() };
    let mut control = Control::of(Verb::Force(on("h1")), select);
    control.request = "once".into();
    for _ in 0..2 {
        let said = c.ask(ADMINISTRATOR, ClientMsg::Control(Box::new(control.clone())));
        let [Msg::Client(ClientMsg::Controlled { outcomes, .. })] = &said[..] else {
            panic!("{said:?}")
        };
        assert_eq!(outcomes[0].code, 0);
        c.restart();
    }
    assert_eq!(c.logged(|e| matches!(e, Event::JobStart(_))), 1);
    let options = |e: &Event| match e {
        Event::JobForce(force) => Some((force.options, force.hosts[0].0.to_string())),
        _ => None,
    };
    let normal = |e: &Event| options(e) == Some((force_options::NORMAL, "h1".into()));
    assert_eq!(c.logged(normal), 1);
}

#[test]
fn only_with_f_neither_windows_nor_load_suspend_a_forced_job() {
    let lines = format!("PRIORITY = 40; RUN_WINDOW = {SHUT_SOON}; r1m = 1/2");
    let mut c = cluster().hosts(1, 9).queue("q", &lines).param("SBD_SLEEP_TIME = 15").up();
    let jobs: Vec<JobRef> = (0..2).map(|_| c.submit("ann", "-q q -H")).collect();
    assert_eq!(force(&mut c, jobs[0], on("h1")), [0]);
    let always = Force { never_suspended: true, ..on("h1") };
    assert_eq!(force(&mut c, jobs[1], always), [0]);
    c.load("h1", "r1m=5");
    c.advance(30);
    assert_eq!((c.state(jobs[0]), c.state(jobs[1])), ("SSUSP".into(), "RUN".into()));
    c.load("h1", "r1m=0");
    c.advance(30);
    assert_eq!((c.state(jobs[0]), c.state(jobs[1])), ("SSUSP".into(), "RUN".into()), "the window");
    // another mbatchd knows it, too
    c.restart();
    c.load("h1", "r1m=5");
    c.advance(60);
    assert_eq!(c.state(jobs[1]), "RUN");
    // its owner may
    c.stop("ann", jobs[1]);
    assert_eq!(c.state(jobs[1]), "USUSP");
    c.resume("ann", jobs[1]);
    assert_eq!(c.state(jobs[1]), "RUN");
}

#[test]
fn a_job_whose_earlier_run_may_go_on_is_not_forced() {
    let mut c = cluster().hosts(2, 1).up();
    let job = c.submit("ann", "-m h1");
    c.lose("h1");
    c.advance(600);
    assert_eq!(c.state(job), "UNKWN");
    assert_eq!(force(&mut c, job, on("h2")), [err::JOB_STARTED]);
    assert_eq!(c.control("ann", Verb::Remove, job), [0]);
    assert_eq!(c.state(job), "EXIT");
    assert_eq!(force(&mut c, job, on("h2")), [err::IN_PROGRESS]);
    c.find("h1");
    c.advance(60);
    assert_eq!(force(&mut c, job, on("h2")), [0]);
    assert_eq!(c.running_on(job), ["h2"]);
}
