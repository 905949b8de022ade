//! Columns of jobs in listings: priorities, thresholds.

use super::*;
use crate::conf::types::{ResourceDef, ResourceKind, Threshold};
use crate::model::event::JobStart;

impl Rig {
    /// The rows of a listing of pending and started jobs, as JSON.
    pub(super) fn listed(&mut self, cols: &[Col]) -> String {
        let q = JobQuery { cols: cols.to_vec(), ..JobQuery::default() };
        match self.ask(USER, ClientMsg::Jobs(Box::new(q))) {
            Some(Msg::Client(ClientMsg::Rows { rows, .. })) => rows.get().to_string(),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_job_without_a_priority_has_the_middle_one() {
    let mut c = conf();
    c.batch.hosts.hosts[0].mxj = Mxj::Slots(0);
    let mut r = Rig::of(c.clone());
    r.submit(spec("x")).unwrap();
    assert_eq!(r.listed(&[Col::Priority, Col::UserPriority]), "[[0,0]]");
    c.batch.params.max_user_priority = Some(100);
    c.batch.hosts.hosts[0].mxj = Mxj::Slots(1);
    let mut r = Rig::of(c);
    // these take the two slots
    let [first, _] = [(); 2].map(|()| r.submit(spec("x")).unwrap());
    let [low, plain, high] =
        [40, 0, 60].map(|priority| r.submit(JobSpec { priority, ..spec("x") }).unwrap());
    let want = format!("[[{high},60,60],[{plain},50,0],[{low},40,40]]");
    let rows = r.listed(&[Col::Job, Col::Priority, Col::UserPriority]);
    assert!(rows.ends_with(&want[1..]), "{rows}");
    // and that is the order in which they go
    let mut went = Vec::new();
    let mut starts = r.starts();
    assert_eq!((starts.len(), starts[0].1.job), (2, first));
    while let Some((conn, key)) = starts.pop() {
        r.report(conn, key, done());
        let next = r.starts();
        went.extend(next.iter().map(|s| s.1.job));
        starts.extend(next);
    }
    assert_eq!(went, [high, plain, low]);
}

#[test]
fn processes_are_told_with_their_groups() {
    let mut r = Rig::new();
    r.submit(spec("x")).unwrap();
    let (conn, key) = r.starts()[0];
    r.report(conn, key, AttemptPhase::Running);
    let (usage, pgids) = (Usage::default(), vec![7, 9]);
    let msg = SbdMsg::Usage {
        key,
        usage: usage.into(),
        pids: vec![7, 8, 9],
        pgids,
        groups: vec![7, 7, 9],
    };
    r.step(Input::Msg { conn, msg: Msg::Sbd(msg) });
    assert_eq!(r.listed(&[Col::Pids, Col::PidGroups]), "[[[7,8,9],[7,7,9]]]");
}

#[test]
fn thresholds_of_external_indices_are_the_tighter_ones() {
    let mut c = conf();
    for (name, up) in [("lic", false), ("heat", true), ("cold", false)] {
        c.base.shared.resources.push(ResourceDef {
            name: name.into(),
            kind: ResourceKind::Numeric,
            interval: Some(60),
            increasing: Some(up),
            ..ResourceDef::default()
        });
    }
    let th = |index: &str, sched, stop| Threshold { index: index.into(), sched, stop };
    c.batch.queues[0].thresholds = vec![th("lic", Some(5.0), None), th("heat", Some(70.0), None)];
    let of_host = &mut c.batch.hosts.hosts[0].thresholds;
    *of_host = vec![
        th("lic", Some(7.0), Some(1.0)),
        th("heat", Some(60.0), Some(90.0)),
        th("cold", None, Some(2.5)),
    ];
    let mut r = Rig::of(c);
    let hold = crate::model::job::opt2::HOLD;
    r.submit(JobSpec { options2: hold, ..spec("x") }).unwrap();
    let pending = r#"[[[["lic","5/"],["heat","70/"]]]]"#;
    assert_eq!(r.listed(&[Col::ExternalThresholds]), pending);
    assert_eq!(r.does(USER, Verb::Kill, 1).code, 0);
    // started somewhere, even where that load is not known
    let at = JobRef { job: r.submit(JobSpec { options2: hold, ..spec("x") }).unwrap(), idx: 0 };
    let start =
        JobStart { at, attempt: 1, hosts: [("h1".into(), 1)].into(), ..JobStart::default() };
    r.apply(&Record { time: r.now.secs(), event: Event::JobStart(Box::new(start)) });
    let started = r#"[[[["lic","7/1"],["heat","60/90"],["cold","/2.5"]]]]"#;
    assert_eq!(r.listed(&[Col::ExternalThresholds]), started);
}

#[test]
fn listings_come_in_slices() {
    let mut r = Rig::new();
    let n = crate::batch::query::jobs::FIND_STEP + 1000;
    for _ in 0..n {
        r.submit(JobSpec { options2: 1, ..spec("x") }).unwrap();
    }
    let q = JobQuery { cols: vec![Col::Job, Col::Stat, Col::Name], ..Default::default() };
    r.ask(USER, ClientMsg::Jobs(Box::new(q)));
    // not all is looked at in one step, and what comes meanwhile is found
    let first = r.sent.iter().find(|(c, _)| *c == USER);
    let Some((_, Msg::Client(ClientMsg::Rows { rows, more: true }))) = first else { panic!() };
    assert_eq!(rows.get(), "[]");
    let last = r.submit(JobSpec { options2: 1, ..spec("x") }).unwrap();
    assert!(last as usize > n);
    r.sent.clear();
    r.step(Input::Drained { conn: USER });
    let mut rows = 0;
    while let Some(i) = r.sent.iter().position(|(c, _)| *c == USER) {
        let (_, Msg::Client(ClientMsg::Rows { rows: part, more })) = r.sent.remove(i) else {
            panic!()
        };
        let part: Vec<Vec<serde_json::Value>> = serde_json::from_str(part.get()).unwrap();
        rows += part.len();
        if more {
            r.step(Input::Drained { conn: USER });
        }
    }
    assert_eq!(rows, n + 1);
}
