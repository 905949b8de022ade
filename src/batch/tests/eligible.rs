//! TRACK_ELIGIBLE_PENDINFO: how long jobs wait, and how long for something else than room.

use super::cluster::{Cluster, ClusterBuilder, cluster, element};
use super::*;

/// A full cluster that tracks ineligible pending time: its beginning and end are recorded in the
/// second in which they happen.
fn tracking() -> ClusterBuilder {
    let full = "Begin Host\nHOST_NAME MXJ\ndefault 0\nEnd Host\n";
    with_room().lsb_hosts(full)
}

fn with_room() -> ClusterBuilder {
    cluster().hosts(2, 2).param("TRACK_ELIGIBLE_PENDINFO = Y")
}

/// (pending, ineligible) seconds of a job or element, as a listing shows them.
fn waited(c: &mut Cluster, at: JobRef) -> (i64, Option<i64>) {
    let seconds = c.columns(at, &[Col::PendTime, Col::IneligibleTime]);
    (seconds[0].as_i64().unwrap(), seconds[1].as_i64())
}

/// Records of waiting that begins or ends.
fn told(c: &Cluster) -> usize {
    c.logged(|event| matches!(event, Event::Eligible { .. }))
}

#[test]
fn time_counts_as_ineligible_where_more_than_room_is_missing() {
    let mut c = tracking().up();
    let plain = c.submit("ann", "");
    let later = c.submit("ann", "-b 30");
    let held = c.submit("ann", "-H");
    let waits = c.submit("ann", &format!("-w 'ended({plain})'"));
    c.advance(40);
    assert_eq!(waited(&mut c, plain), (40, Some(0)));
    assert_eq!(waited(&mut c, later), (40, Some(30)));
    assert_eq!(waited(&mut c, held), (40, Some(40)));
    assert_eq!(waited(&mut c, waits), (40, Some(40)));
    c.resume("ann", held);
    c.kill("ann", plain);
    c.advance(5);
    assert_eq!(waited(&mut c, held), (45, Some(40)));
    assert_eq!(waited(&mut c, waits), (45, Some(40)));
    assert_eq!(waited(&mut c, plain), (40, Some(0)));
    // the queue takes them all, and those that are out already stay so
    c.stop("ann", held);
    c.badmin("qinact normal");
    c.advance(10);
    c.badmin("qact normal");
    c.advance(1);
    assert_eq!(waited(&mut c, later), (56, Some(40)));
    assert_eq!(waited(&mut c, held), (56, Some(51)));
    assert_eq!(waited(&mut c, waits), (56, Some(50)));
}

#[test]
fn restart_forgets_no_second_of_waiting() {
    let mut c = tracking().up();
    let held = c.submit("ann", "-H");
    let plain = c.submit("ann", "");
    c.advance(10);
    c.resume("ann", held);
    c.advance(7);
    c.badmin("qinact normal");
    c.advance(3);
    c.restart();
    assert_eq!(waited(&mut c, held), (20, Some(13)));
    assert_eq!(waited(&mut c, plain), (20, Some(3)));
    c.advance(2);
    c.badmin("qact normal");
    c.advance(5);
    assert_eq!(waited(&mut c, held), (27, Some(15)));
    let before = told(&c);
    c.advance(60);
    c.restart();
    // nothing has changed
    assert_eq!(told(&c), before);
}

#[test]
fn elements_wait_as_their_array_until_they_differ() {
    let mut c = tracking().up();
    let array = c.submit("ann", "-J 'a[1-1000]' -b 10");
    let (third, fourth) = (element(array, 3), element(array, 4));
    assert_eq!(told(&c), 1);
    c.advance(12);
    assert_eq!(told(&c), 2);
    c.stop("ann", third);
    c.advance(4);
    assert_eq!(waited(&mut c, third), (16, Some(14)));
    assert_eq!(waited(&mut c, fourth), (16, Some(10)));
    c.resume("ann", third);
    c.badmin("qinact normal");
    c.advance(1);
    assert_eq!(waited(&mut c, third), (17, Some(15)));
    assert_eq!(waited(&mut c, fourth), (17, Some(11)));
    assert_eq!(told(&c), 6);
}

#[test]
fn elements_that_wait_one_by_one_are_told_of_one_by_one() {
    let mut c = tracking().up();
    let first = c.submit("ann", "-J 'a[1-2]'");
    let second = c.submit("ann", &format!("-J 'b[1-2]' -w 'ended({first}[*])'"));
    c.advance(6);
    c.kill("ann", element(first, 2));
    c.advance(3);
    assert_eq!(waited(&mut c, element(second, 1)), (9, Some(9)));
    assert_eq!(waited(&mut c, element(second, 2)), (9, Some(6)));
    // held and released, it waits as before
    c.stop("ann", element(second, 1));
    c.resume("ann", element(second, 1));
    c.advance(2);
    assert_eq!(waited(&mut c, element(second, 1)), (11, Some(11)));
}

#[test]
fn time_that_a_job_waited_stays_known_and_is_accounted() {
    let mut c = with_room().up();
    let array = c.submit("ann", "-J 'a[1-2]%1' -b 10");
    let (first, second) = (element(array, 1), element(array, 2));
    c.advance(15);
    assert_eq!(c.started(), [first]);
    c.badmin("qinact normal");
    c.advance(5);
    // the array goes on waiting without its first element
    assert_eq!(waited(&mut c, first), (10, Some(10)));
    assert_eq!(waited(&mut c, second), (20, Some(15)));
    c.end(first, 0);
    let finish = c.accounted().pop().unwrap();
    assert_eq!(finish.ineligible_secs, Some(10));
    let mut line = Vec::new();
    crate::log::codec::write_finish(&finish, &mut line);
    // numAllocSlots allocSlots ineligiblePendTime indexRangeCnt
    let line = String::from_utf8(line).unwrap();
    assert!(line.contains(" 1 \"h1\" 10 0 0 0 0 "), "{line}");
    c.restart();
    assert_eq!(waited(&mut c, first), (10, Some(10)));
    // nothing is left of jobs that have left memory
    c.kill("ann", second);
    c.advance(4000);
    assert_eq!(c.columns(array, &[Col::Stat]), [""; 0]);
}

#[test]
fn no_time_is_kept_where_tracking_is_off() {
    let mut c = tracking().param("TRACK_ELIGIBLE_PENDINFO = N").up();
    let held = c.submit("ann", "-H");
    c.badmin("qinact normal");
    c.advance(5);
    assert_eq!((waited(&mut c, held), told(&c)), ((5, None), 0));
    c.kill("ann", held);
    assert_eq!(c.accounted()[0].ineligible_secs, None);
    // once it is on, what is out is so from then on
    let other = c.submit("ann", "");
    c.restart_with(tracking());
    c.advance(4);
    assert_eq!(waited(&mut c, other), (4, Some(4)));
}

#[test]
fn many_jobs_of_a_queue_are_told_of_turn_by_turn() {
    let mut conf = conf();
    conf.batch.params.track_eligible = true;
    conf.batch.hosts.hosts[0].mxj = Mxj::Slots(0);
    let mut r = Rig::of(conf);
    let told = |r: &Rig| r.log.iter().filter(|r| matches!(r.event, Event::Eligible { .. })).count();
    let n = 2 * RECORDS_PER_TURN + 10;
    for _ in 0..n {
        r.submit(spec("x")).unwrap();
    }
    let (queues, comment) = (vec!["normal".to_string()], String::new());
    let op = AdminOp::QueueCtrl { op: QueueOp::Inactivate, queues, comment };
    r.ask(ADMIN, ClientMsg::Admin(op)).unwrap();
    assert!(r.mbd.eligible.left() && told(&r) < n);
    while r.mbd.eligible.left() {
        assert!(told(&r) <= n);
        r.step(Input::Tick);
    }
    assert_eq!(told(&r), n);
}

#[test]
fn job_of_a_queue_outside_its_windows_is_ineligible() {
    // the clock says 22:13:20 UTC
    let lines = "PRIORITY = 30; DISPATCH_WINDOW = 22:00-22:20";
    let mut c = tracking().queue("normal", lines).up();
    let job = c.submit("ann", "");
    c.advance(410);
    assert_eq!(waited(&mut c, job), (410, Some(10)));
}

#[test]
fn waiting_times_of_jobs_that_have_left_memory_are_forgotten() {
    let mut conf = conf();
    conf.batch.params.track_eligible = true;
    let mut r = Rig::of(conf);
    let options2 = crate::model::job::opt2::HOLD;
    let held = r.submit(JobSpec { options2, ..spec("x") }).unwrap();
    r.later(10);
    assert!(!r.mbd.state.waited().is_empty());
    assert_eq!(r.kill(USER, held), 0);
    r.later(4000);
    assert!(r.mbd.state.job(held).is_none() && r.mbd.state.waited().is_empty());
}
