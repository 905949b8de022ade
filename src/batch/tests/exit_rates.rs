//! Exceptional hosts (EXIT_RATE, GLOBAL_EXIT_RATE) and jobs, as eadmin is told of them, and what is
//! done without that program.

use super::JobRef;
use super::cluster::{Cluster, ClusterBuilder, cluster};
use crate::batch::lifecycle::exceptions::MOST_TOLD;
use crate::batch::soft_state::started_walk::LOOKS_PER_TURN;
use crate::model::event::Event;
use crate::model::exception::Exceptions;
use crate::model::reason::{PendReason, term};

fn site(params: &str) -> ClusterBuilder {
    let site = cluster().hosts(2, 100).queue("normal", "PRIORITY = 30");
    params.split("; ").fold(site, ClusterBuilder::param)
}

/// Jobs on a host end with this exit code.
fn exits(c: &mut Cluster, host: &str, count: usize, code: i32) {
    for _ in 0..count {
        let at = c.submit("ann", &format!("-m {host}"));
        c.end(at, code);
    }
}

/// The arguments with which eadmin was called.
fn told(c: &mut Cluster) -> Vec<String> {
    c.exceptions.drain(..).map(|all| all.words().join(" ")).collect()
}

fn rate(c: &mut Cluster, host: &str) -> Option<(u32, u32)> {
    c.host(host).exit_rate
}

#[test]
fn host_with_more_exits_than_its_rate_is_told_once_until_it_is_over() {
    let rows = "Begin Host\nHOST_NAME MXJ EXIT_RATE\nh1 100 3\nh2 100 ()\nEnd Host\n";
    let mut c = site("JOB_EXIT_RATE_DURATION = 2; GLOBAL_EXIT_RATE = 5").lsb_hosts(rows).up();
    c.advance(1);
    assert_eq!((rate(&mut c, "h1"), rate(&mut c, "h2")), (Some((3, 0)), Some((5, 0))));
    exits(&mut c, "h1", 3, 1);
    exits(&mut c, "h1", 9, 0);
    c.advance(60);
    assert_eq!((told(&mut c), rate(&mut c, "h1")), (vec![], Some((3, 3))));
    assert!(!c.host("h1").is_exceptional());
    exits(&mut c, "h1", 2, 1);
    exits(&mut c, "h2", 5, 1);
    assert!(c.host("h1").is_exceptional() && !c.host("h2").is_exceptional());
    c.advance(60);
    assert_eq!(told(&mut c), ["host h1:5:3"]);
    exits(&mut c, "h1", 4, 1);
    c.advance(60);
    assert_eq!(told(&mut c), Vec::<String>::new(), "it lasts");
    c.advance(180);
    assert_eq!(rate(&mut c, "h1"), Some((3, 0)));
    exits(&mut c, "h1", 4, 1);
    c.advance(60);
    assert_eq!(told(&mut c), ["host h1:4:3"]);
}

#[test]
fn exits_by_users_and_policies_count_where_exit_rate_type_says_so() {
    for (types, counted) in [
        ("JOBEXIT_NONLSF", 2),
        ("JOBEXIT", 5),
        ("JOBEXIT JOBINIT", 7),
        ("JOBINIT", 2),
        ("HPCINIT", 1),
        ("JOBEXIT_NONLSF HPCINIT", 3),
    ] {
        let mut c = site(&format!("EXIT_RATE_TYPE = {types}; GLOBAL_EXIT_RATE = 100")).up();
        let run = |c: &mut Cluster, options: &str| c.submit("ann", &format!("-m h1 {options}"));
        let at = run(&mut c, "");
        c.end(at, 7);
        let at = run(&mut c, "");
        c.ends_by(at, 11, 0);
        let at = run(&mut c, "");
        c.ends_by(at, 9, term::RUNLIMIT);
        let at = run(&mut c, "");
        c.kill("ann", at);
        let at = run(&mut c, "");
        c.ends_by(at, 9, term::MEMLIMIT);
        c.hosts_wait();
        let at = run(&mut c, "");
        c.start_fails(at, PendReason::ExecInit, "no disk");
        let at = run(&mut c, "");
        c.pre_exec_fails(at, PendReason::PreExec, 1, "not yet");
        let wide = c.submit("ann", "-n 2 -R 'span[ptile=1]' -m 'h1 h2'");
        let first = c.running_on(wide)[0].clone();
        c.start_fails(wide, PendReason::ExecInit, "no disk");
        let of_wide = u32::from(first != "h1");
        let on: Vec<u32> = ["h1", "h2"].map(|host| rate(&mut c, host).unwrap().1).into();
        assert_eq!(on[0] + on[1], counted, "{types}: {on:?} {of_wide}");
    }
}

#[test]
fn host_is_closed_and_its_administrator_gets_a_mail_where_eadmin_is_missing() {
    let mut c = site("GLOBAL_EXIT_RATE = 1").up();
    exits(&mut c, "h1", 2, 1);
    c.advance(61);
    let all = c.exceptions.pop().unwrap();
    c.no_eadmin(all.clone());
    let host = c.host("h1");
    assert_eq!(host.status, "closed_Adm");
    assert_eq!(host.admin_comment, "eadmin: JOB EXIT THRESHOLD EXCEEDED");
    let mail = "To: admin\nSubject: Cluster <c1>: exceptional hosts\n\nHost <h1>: 2 jobs have exited in \
                5 minutes; the threshold (EXIT_RATE) is 1. The host has been closed.\n";
    assert_eq!(c.mails(), [mail]);
    let closed = |c: &Cluster| c.logged(|event| matches!(event, Event::HostCtrl { .. }));
    assert_eq!(closed(&c), 1);
    // the answer of a slow program comes a second time
    c.no_eadmin(all);
    assert_eq!(closed(&c), 1);
    assert!(c.mails()[0].ends_with("The host was closed before.\n"));
    // it stays closed across a restart, and counts anew once it is open
    c.restart();
    c.advance(1);
    assert_eq!(c.host("h1").status, "closed_Adm");
    c.badmin("hopen h1");
    assert_eq!(rate(&mut c, "h1"), Some((1, 0)));
}

#[test]
fn exits_count_anew_when_the_host_is_opened() {
    let mut c = site("GLOBAL_EXIT_RATE = 1").up();
    exits(&mut c, "h1", 2, 1);
    c.badmin("hopen h1");
    assert_eq!(rate(&mut c, "h1"), Some((1, 0)));
    c.advance(61);
    assert_eq!(told(&mut c), Vec::<String>::new());
}

#[test]
fn exceptional_jobs_are_told_once_each_in_one_call() {
    let site = cluster()
        .hosts(1, 10)
        .param("EADMIN_TRIGGER_DURATION = 5")
        .param("DETECT_IDLE_JOB_AFTER = 8")
        .queue("late", "JOB_OVERRUN = 6; JOB_UNDERRUN = 2")
        .queue("idle", "JOB_IDLE = 0.5");
    let mut c = site.up();
    c.advance(1);
    let [long, short] = [c.submit("ann", "-q late"), c.submit("bob", "-q late")];
    let idle = c.submit("cid", "-q idle");
    c.advance(60);
    c.end(short, 0);
    c.advance(240);
    assert_eq!(told(&mut c), [format!("job underrun:{short}:late:bob")]);
    c.advance(290);
    assert_eq!(told(&mut c), Vec::<String>::new());
    c.advance(12);
    let both = format!("job overrun:{long}:late:ann idle:{idle}:idle:cid");
    assert_eq!(told(&mut c), std::slice::from_ref(&both));
    c.advance(900);
    assert_eq!(told(&mut c), Vec::<String>::new());
    c.restart();
    c.advance(301);
    assert_eq!(told(&mut c), [both], "a restart begins anew");
    let all = Exceptions::Jobs(vec![]);
    c.no_eadmin(all);
    assert!(c.mails()[0].starts_with("To: admin\nSubject: Cluster <c1>: exceptional jobs\n\n"));
}

#[test]
fn hosts_without_a_rate_count_nothing_and_are_never_told() {
    let mut c = site("JOB_EXIT_RATE_DURATION = 2").up();
    exits(&mut c, "h1", 50, 1);
    c.advance(600);
    assert_eq!((told(&mut c), rate(&mut c, "h1")), (vec![], None));
    let _: JobRef = c.submit("ann", "");
}

#[test]
fn round_looks_at_each_job_once_and_a_turn_at_no_more_than_its_limit() {
    let jobs = 2 * LOOKS_PER_TURN + 10;
    let queue = "JOB_OVERRUN = 2; PRIORITY = 30";
    let site = cluster().hosts(7, jobs as u32 / 7 + 1).queue("late", queue);
    let mut c = site.param("MAX_JOB_ARRAY_SIZE = 10000").up();
    c.audit_seldom();
    c.advance(1);
    let all = c.submit("ann", &format!("-q late -J a[1-{jobs}]"));
    c.advance(1);
    assert_eq!(c.state(JobRef { idx: jobs as u32, ..all }), "RUN");
    c.exception_looks();
    c.advance(60);
    assert_eq!(c.exception_looks(), [LOOKS_PER_TURN, LOOKS_PER_TURN, 10]);
    assert_eq!(told(&mut c), Vec::<String>::new());
    // the exceptions of all jobs are told once each, so many in each round
    let mut words: Vec<String> = Vec::new();
    for _ in 0..4 + jobs / MOST_TOLD {
        c.advance(60);
        assert_eq!(c.exception_looks(), [LOOKS_PER_TURN, LOOKS_PER_TURN, 10]);
        for call in told(&mut c) {
            let of_call: Vec<&str> = call.split(' ').skip(1).collect();
            assert!(of_call.len() <= MOST_TOLD, "{}", of_call.len());
            words.extend(of_call.into_iter().map(str::to_owned));
        }
    }
    assert_eq!(words.len(), jobs);
    words.sort();
    words.dedup();
    assert_eq!(words.len(), jobs);
}

#[test]
fn exit_rate_per_slot_is_so_many_exits_for_each_slot_of_the_host() {
    let rows = "Begin Host\nHOST_NAME MXJ EXIT_RATE\nh1 4 2\nh2 ! ()\nEnd Host\n";
    for (params, want) in [
        ("ENABLE_EXIT_RATE_PER_SLOT = Y; GLOBAL_EXIT_RATE = 3", [8, 300]),
        ("ENABLE_EXIT_RATE_PER_SLOT = N; GLOBAL_EXIT_RATE = 3", [2, 3]),
        ("GLOBAL_EXIT_RATE = 3", [2, 3]),
    ] {
        let mut c = site(params).lsb_hosts(rows).up();
        c.advance(1);
        let on = ["h1", "h2"].map(|host| rate(&mut c, host).unwrap().0);
        assert_eq!(on, want, "{params}");
    }
    let params = "ENABLE_EXIT_RATE_PER_SLOT = Y; GLOBAL_EXIT_RATE = 3";
    let mut c = site(params).lsb_hosts(rows).up();
    exits(&mut c, "h1", 8, 1);
    c.advance(60);
    assert_eq!(told(&mut c), Vec::<String>::new());
    exits(&mut c, "h1", 1, 1);
    c.advance(60);
    assert_eq!(told(&mut c), ["host h1:9:8"]);
}
