//! badmin perfmon: what is counted, by sample periods.

use super::*;

impl Rig {
    fn perf(&mut self, conn: ConnId, what: &str, secs: u64) -> Vec<AdminLine> {
        let op = AdminOp::Perfmon { what: what.into(), secs };
        match self.ask(conn, ClientMsg::Admin(op)) {
            Some(Msg::Client(ClientMsg::AdminDone { lines })) => lines,
            other => panic!("{other:?}"),
        }
    }

    /// last max min avg total of a metric.
    fn metric(&mut self, name: &str) -> String {
        let lines = self.perf(ADMIN, "view", 0);
        lines.iter().find(|l| l.about == name).map_or(String::new(), |l| l.text.clone())
    }

    fn period(&mut self, secs: u64) {
        self.now.wall_us += secs as i64 * 1_000_000;
        self.now.mono_us += secs * 1_000_000;
        self.step(Input::Tick);
    }
}

#[test]
fn periods_of_queries_and_jobs() {
    let mut c = conf();
    c.batch.params.sched_metric.period = 10;
    let mut r = Rig::of(c);
    assert!(r.perf(ADMIN, "view", 0).is_empty());
    r.submit(spec("x")).unwrap();
    r.starts();
    r.perf(ADMIN, "start", 0);
    assert_eq!(r.metric("@end"), "0");
    let started = r.now.secs();
    r.submit(JobSpec { name: "a[1-3]".into(), ..spec("x") }).unwrap();
    assert!(r.submit(JobSpec { queue: "nosuch".into(), ..spec("x") }).is_err());
    r.ask(USER, ClientMsg::Jobs(Box::default()));
    r.ask(USER, ClientMsg::Jobs(Box::default()));
    let (names, res_req) = (vec![], String::new());
    r.ask(USER, ClientMsg::Hosts { names, res_req });
    let (names, user, host) = (vec![], String::new(), String::new());
    r.ask(USER, ClientMsg::Queues { names, user, host });
    r.ask(USER, ClientMsg::Params);
    r.period(10);
    assert_eq!(r.metric("@start"), started.to_string());
    assert_eq!(r.metric("@end"), (started + 10).to_string());
    assert_eq!(r.metric("@period"), "10");
    for (name, want) in [
        ("Total queries", "5 5 5 5 5"),
        ("Jobs information queries", "2 2 2 2 2"),
        ("Hosts information queries", "1 1 1 1 1"),
        ("Queue information queries", "1 1 1 1 1"),
        ("Job submission requests", "2 2 2 2 2"),
        ("Jobs submitted", "3 3 3 3 3"),
        ("Jobs dispatched", "3 3 3 3 3"),
        ("Jobs completed", "0 0 0 0 0"),
    ] {
        assert_eq!(r.metric(name), want, "{name}");
    }
    for (conn, key) in r.starts() {
        r.report(conn, key, done());
    }
    // the present period is in the total
    assert_eq!(r.metric("Jobs completed"), "0 0 0 0 3");
    r.period(10);
    assert_eq!(r.metric("Jobs completed"), "3 3 0 1 3");
    assert_eq!(r.metric("Total queries"), "0 5 0 2 5");
    r.perf(ADMIN, "setperiod", 3);
    r.period(3);
    assert_eq!(r.metric("@period"), "3");
    assert_eq!(r.metric("Jobs completed"), "0 3 0 1 3");
    r.perf(ADMIN, "stop", 0);
    assert!(r.perf(ADMIN, "view", 0).is_empty());
    // who starts again begins anew, by the period that was set
    r.perf(ADMIN, "start", 0);
    r.period(3);
    assert_eq!(r.metric("@period"), "3");
    assert_ne!(r.metric("@end"), "0");
    assert_eq!(r.metric("Total queries"), "0 0 0 0 0");
    r.perf(ADMIN, "start", 7);
    assert_eq!(r.metric("@period"), "7");
}

#[test]
fn lsb_params_has_it_count_from_the_start() {
    let mut c = conf();
    c.batch.params.sched_metric.enabled = true;
    let mut r = Rig::of(c.clone());
    r.submit(spec("x")).unwrap();
    r.period(60);
    assert_eq!(r.metric("Jobs submitted"), "1 1 1 1 1");
    // a reconfiguration that changes nothing of it goes on, another one does as it says
    r.step(Input::Config { conf: Some(Box::new(c.clone())), diags: vec![] });
    assert_eq!(r.metric("Jobs submitted"), "1 1 1 1 1");
    c.batch.params.sched_metric.enabled = false;
    r.step(Input::Config { conf: Some(Box::new(c)), diags: vec![] });
    assert!(r.perf(ADMIN, "view", 0).is_empty());
}

#[test]
fn the_longest_turn_is_kept() {
    let mut c = conf();
    c.batch.params.sched_metric.period = 10;
    let mut r = Rig::of(c);
    let name = "Longest turn in milliseconds";
    r.mbd.note_turn(70_000);
    r.perf(ADMIN, "start", 0);
    assert_eq!(r.metric(name), "0 0 0 0 70");
    for us in [3_000, 9_100, 200] {
        r.mbd.note_turn(us);
    }
    r.period(10);
    assert_eq!(r.metric(name), "10 10 10 10 70");
    r.mbd.note_turn(1_500);
    r.period(10);
    assert_eq!(r.metric(name), "2 10 2 6 70");
}
