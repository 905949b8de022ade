//! TRACK_ELIGIBLE_PENDINFO: how long jobs wait, and how long for something else than room.

use super::*;
use crate::model::event::Finish;

/// What a job waits for besides room is told in the second it begins and ends.
fn tracking() -> ClusterConf {
    let mut c = conf();
    c.batch.params.track_eligible = true;
    // one job at a time
    c.batch.hosts.hosts[0].mxj = Mxj::Slots(0);
    c
}

impl Rig {
    fn wait(&mut self, secs: i64) {
        self.now.wall_us += secs * 1_000_000;
        self.now.mono_us += secs as u64 * 1_000_000;
        self.step(Input::Tick);
    }

    /// (pending, ineligible) seconds of an element, as a listing shows them.
    fn waited(&mut self, job: u32, idx: u32) -> (i64, Option<i64>) {
        let elems = if idx > 0 { vec![(idx, idx, 1)] } else { vec![] };
        let select = JobSelect { ids: vec![IdSel { job, elems }], ..JobSelect::default() };
        let cols = vec![Col::PendTime, Col::IneligibleTime];
        let q = JobQuery { select, cols, ..JobQuery::default() };
        match self.ask(USER, ClientMsg::Jobs(Box::new(q))) {
            Some(Msg::Client(ClientMsg::Rows { rows, .. })) => {
                let rows: Vec<(i64, Option<i64>)> = serde_json::from_str(rows.get()).unwrap();
                rows[0]
            }
            other => panic!("{other:?}"),
        }
    }

    /// Goes on in a machine that has read the log.
    fn restart(&mut self, c: ClusterConf) {
        let records = self.log.clone();
        let mut lines = Vec::new();
        for rec in &records {
            let mut line = Vec::new();
            crate::log::codec::write_record(rec, &mut line);
            lines.push(crate::log::codec::read_record(&line).unwrap());
        }
        let found = Recovered { records: lines, epoch: 2, ..Default::default() };
        let log = std::mem::take(&mut self.log);
        *self = Rig::with(Mbd::new(c, "h1", found), self.now);
        self.log = [log, std::mem::take(&mut self.log)].concat();
    }

    fn told(&self) -> usize {
        self.log.iter().filter(|r| matches!(r.event, Event::Eligible { .. })).count()
    }

    fn queue(&mut self, op: QueueOp) {
        let queues = vec!["normal".to_string()];
        let op = AdminOp::QueueCtrl { op, queues, comment: String::new() };
        self.ask(ADMIN, ClientMsg::Admin(op)).unwrap();
    }
}

#[test]
fn what_keeps_a_job_counts_and_what_only_lacks_room_does_not() {
    let mut r = Rig::of(tracking());
    let plain = r.submit(spec("x")).unwrap();
    let begin = r.now.secs() + 30;
    let later = r.submit(JobSpec { begin_time: begin, ..spec("x") }).unwrap();
    let options2 = crate::model::job::opt2::HOLD;
    let held = r.submit(JobSpec { options2, ..spec("x") }).unwrap();
    let depend = format!("ended({plain})");
    let waits = r.submit(JobSpec { depend, ..spec("x") }).unwrap();
    // the timer of its start time
    r.wait(30);
    r.wait(10);
    assert_eq!(r.waited(plain, 0), (40, Some(0)));
    assert_eq!(r.waited(later, 0), (40, Some(30)));
    assert_eq!(r.waited(held, 0), (40, Some(40)));
    assert_eq!(r.waited(waits, 0), (40, Some(40)));
    assert_eq!(r.does(USER, Verb::Resume, held).code, 0);
    assert_eq!(r.kill(USER, plain), 0);
    r.wait(5);
    assert_eq!(r.waited(held, 0), (45, Some(40)));
    assert_eq!(r.waited(waits, 0), (45, Some(40)));
    assert_eq!(r.waited(plain, 0), (40, Some(0)));
    // the queue takes them all, and those that are out already stay so
    assert_eq!(r.does(USER, Verb::Stop, held).code, 0);
    r.queue(QueueOp::Inactivate);
    r.wait(10);
    r.queue(QueueOp::Activate);
    r.wait(1);
    assert_eq!(r.waited(later, 0), (56, Some(40)));
    assert_eq!(r.waited(held, 0), (56, Some(51)));
    assert_eq!(r.waited(waits, 0), (56, Some(50)));
}

#[test]
fn a_restart_forgets_no_second() {
    let mut r = Rig::of(tracking());
    let options2 = crate::model::job::opt2::HOLD;
    let held = r.submit(JobSpec { options2, ..spec("x") }).unwrap();
    let plain = r.submit(spec("x")).unwrap();
    r.wait(10);
    assert_eq!(r.does(USER, Verb::Resume, held).code, 0);
    r.wait(7);
    r.queue(QueueOp::Inactivate);
    r.wait(3);
    r.restart(tracking());
    assert_eq!(r.waited(held, 0), (20, Some(13)));
    assert_eq!(r.waited(plain, 0), (20, Some(3)));
    r.wait(2);
    r.queue(QueueOp::Activate);
    r.wait(5);
    assert_eq!(r.waited(held, 0), (27, Some(15)));
    let told = r.told();
    r.wait(60);
    r.restart(tracking());
    // nothing has changed
    assert_eq!(r.told(), told);
}

#[test]
fn elements_follow_their_array_until_they_differ() {
    let mut r = Rig::of(tracking());
    let begin_time = r.now.secs() + 10;
    let a = r.submit(JobSpec { name: "a[1-1000]".into(), begin_time, ..spec("x") }).unwrap();
    assert_eq!(r.told(), 1);
    r.wait(10);
    r.wait(2);
    assert_eq!(r.told(), 2);
    let third = IdSel { job: a, elems: vec![(3, 3, 1)] };
    assert_eq!(r.does_to(USER, Verb::Stop, third.clone())[0].code, 0);
    r.wait(4);
    assert_eq!(r.waited(a, 3), (16, Some(14)));
    assert_eq!(r.waited(a, 4), (16, Some(10)));
    assert_eq!(r.does_to(USER, Verb::Resume, third)[0].code, 0);
    r.queue(QueueOp::Inactivate);
    r.wait(1);
    assert_eq!(r.waited(a, 3), (17, Some(15)));
    assert_eq!(r.waited(a, 4), (17, Some(11)));
    assert_eq!(r.told(), 6);
}

#[test]
fn elements_that_wait_one_by_one_are_told_of_one_by_one() {
    let mut r = Rig::of(tracking());
    let a = r.submit(JobSpec { name: "a[1-2]".into(), ..spec("x") }).unwrap();
    let depend = format!("ended({a}[*])");
    let b = r.submit(JobSpec { name: "b[1-2]".into(), depend, ..spec("y") }).unwrap();
    r.wait(6);
    let second = IdSel { job: a, elems: vec![(2, 2, 1)] };
    assert_eq!(r.does_to(USER, Verb::Kill, second)[0].code, 0);
    r.wait(3);
    assert_eq!(r.waited(b, 1), (9, Some(9)));
    assert_eq!(r.waited(b, 2), (9, Some(6)));
    // held and released, it waits as before
    let first = IdSel { job: b, elems: vec![(1, 1, 1)] };
    assert_eq!(r.does_to(USER, Verb::Stop, first.clone())[0].code, 0);
    assert_eq!(r.does_to(USER, Verb::Resume, first)[0].code, 0);
    r.wait(2);
    assert_eq!(r.waited(b, 1), (11, Some(11)));
}

#[test]
fn what_a_job_waited_stays_known_and_is_accounted() {
    let mut c = tracking();
    c.batch.hosts.hosts[0].mxj = Mxj::Slots(2);
    let mut r = Rig::of(c.clone());
    let begin_time = r.now.secs() + 10;
    let a = r.submit(JobSpec { name: "a[1-2]%1".into(), begin_time, ..spec("x") }).unwrap();
    r.wait(10);
    let (conn, key) = r.starts()[0];
    r.report(conn, key, Phase::Running);
    r.wait(5);
    r.queue(QueueOp::Inactivate);
    r.wait(5);
    // the array goes on waiting without its first element
    assert_eq!(r.waited(a, 1), (10, Some(10)));
    assert_eq!(r.waited(a, 2), (20, Some(15)));
    r.report(conn, key, done());
    let finish = |r: &Rig| -> Finish { r.acct.last().unwrap().clone() };
    assert_eq!(finish(&r).ineligible_secs, Some(10));
    let mut line = Vec::new();
    crate::log::codec::write_finish(&finish(&r), &mut line);
    // numAllocSlots allocSlots ineligiblePendTime indexRangeCnt
    let line = String::from_utf8(line).unwrap();
    assert!(line.contains(" 1 \"h1\" 10 0 0 0 0 "), "{line}");
    r.restart(c);
    assert_eq!(r.waited(a, 1), (10, Some(10)));
    // nothing is left of what has gone
    assert_eq!(r.kill(USER, a), 0);
    r.wait(4000);
    assert!(r.mbd.st.job(a).is_none());
    assert!(r.mbd.st.waited.is_empty());
}

#[test]
fn nothing_is_kept_where_it_is_off() {
    let mut c = tracking();
    c.batch.params.track_eligible = false;
    let mut r = Rig::of(c.clone());
    let options2 = crate::model::job::opt2::HOLD;
    let held = r.submit(JobSpec { options2, ..spec("x") }).unwrap();
    r.queue(QueueOp::Inactivate);
    r.wait(5);
    assert_eq!(r.waited(held, 0), (5, None));
    assert_eq!((r.told(), r.mbd.st.waited.len()), (0, 0));
    assert_eq!(r.kill(USER, held), 0);
    assert_eq!(r.acct[0].ineligible_secs, None);
    // once it is on, what is out is so from then on
    let other = r.submit(spec("x")).unwrap();
    r.restart(tracking());
    r.wait(4);
    assert_eq!(r.waited(other, 0), (4, Some(4)));
}

#[test]
fn many_jobs_of_a_queue_are_told_of_turn_by_turn() {
    let mut r = Rig::of(tracking());
    let n = 2 * RECORDS_PER_TURN + 10;
    for _ in 0..n {
        r.submit(spec("x")).unwrap();
    }
    r.queue(QueueOp::Inactivate);
    assert!(r.mbd.eligible.left() && r.told() < n);
    while r.mbd.eligible.left() {
        assert!(r.told() <= n);
        r.step(Input::Tick);
    }
    assert_eq!(r.told(), n);
    r.wait(3);
    assert_eq!(r.waited(1, 0), (3, Some(3)));
    assert_eq!(r.waited(n as u32, 0), (3, Some(3)));
}

#[test]
fn a_queue_outside_its_windows_keeps_its_jobs() {
    let mut c = tracking();
    // the clock says 22:13:20 UTC
    c.batch.queues[0].dispatch_window = "22:00-22:20".into();
    let mut r = Rig::of(c);
    let id = r.submit(spec("x")).unwrap();
    r.wait(400);
    r.wait(10);
    assert_eq!(r.waited(id, 0), (410, Some(10)));
}
