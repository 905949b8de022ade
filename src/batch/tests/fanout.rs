//! Jobs on several hosts: who is told when (`lifecycle::fanout`).

use super::*;
use crate::model::further::Further;
use crate::model::time::US;

fn on(hosts: &str) -> JobSpec {
    let further = Further::from_iter([("hostslots", hosts)]);
    JobSpec { min_slots: 0, max_slots: 0, further, ..spec("x") }
}

/// A rig whose hosts can join jobs, and their connections.
fn rig() -> (Rig, [ConnId; 2]) {
    let mut r = Rig::new();
    let conns = [0, 1].map(|i| r.mbd.links.hosts()[super::host(i)].up().unwrap());
    conns.iter().for_each(|conn| inventory(&mut r, *conn, vec![], vec![]));
    (r, conns)
}

fn inventory(r: &mut Rig, conn: ConnId, tasks: Vec<TaskState>, members: Vec<JobKey>) {
    let (boot_id, members) = ("boot".into(), Some(members));
    let msg = SbdMsg::Inventory { boot_id, tasks, more: false, members };
    tell(r, conn, msg);
}

fn tell(r: &mut Rig, conn: ConnId, msg: SbdMsg) {
    r.step(Input::Msg { conn, msg: Msg::Sbd(msg) });
}

/// The names of the orders to a host since this was asked last.
fn orders(r: &mut Rig, conn: ConnId) -> Vec<&'static str> {
    let name = |msg: &Msg| match msg {
        Msg::Sbd(SbdMsg::Start(_)) => Some("start"),
        Msg::Sbd(SbdMsg::Join(_)) => Some("join"),
        Msg::Sbd(SbdMsg::Leave { .. }) => Some("leave"),
        Msg::Sbd(SbdMsg::Act { act: Act::Suspend, .. }) => Some("suspend"),
        Msg::Sbd(SbdMsg::Act { act: Act::Terminate { .. }, .. }) => Some("terminate"),
        Msg::Sbd(SbdMsg::Act { act: Act::Signal { .. }, .. }) => Some("signal"),
        _ => None,
    };
    let (own, rest): (Vec<_>, Vec<_>) =
        std::mem::take(&mut r.sent).into_iter().partition(|(c, m)| *c == conn && name(m).is_some());
    r.sent = rest;
    own.iter().filter_map(|(_, m)| name(m)).collect()
}

fn submit(r: &mut Rig, hosts: &str) -> JobKey {
    let job = r.submit(on(hosts)).unwrap();
    JobKey { job, idx: 0, attempt: 1 }
}

fn passes(r: &mut Rig, secs: u64) {
    r.now = Now { mono_us: r.now.mono_us + secs * US, wall_us: r.now.wall_us + (secs * US) as i64 };
    r.step(Input::Tick);
}

/// A job that runs on both hosts.
fn running(r: &mut Rig, [h1, h2]: [ConnId; 2]) -> JobKey {
    let key = submit(r, "h1 1 h2 1");
    tell(r, h2, SbdMsg::Joined { key });
    r.report(h1, key, AttemptPhase::Running);
    assert_eq!((orders(r, h1), orders(r, h2)), (vec!["start"], vec!["join"]));
    key
}

fn used(r: &Rig, i: usize) -> u64 {
    r.mbd.view().host_used(super::host(i))
}

#[test]
fn first_host_starts_a_job_when_the_others_have_joined() {
    let (mut r, [h1, h2]) = rig();
    let key = submit(&mut r, "h1 1 h2 1");
    assert_eq!((orders(&mut r, h1), orders(&mut r, h2)), (vec![], vec!["join"]));
    tell(&mut r, h2, SbdMsg::Joined { key });
    assert_eq!((orders(&mut r, h1), orders(&mut r, h2)), (vec!["start"], vec![]));
    // a repeated answer starts nothing again
    tell(&mut r, h2, SbdMsg::Joined { key });
    assert_eq!(orders(&mut r, h1), [""; 0]);
    // a job on one host has none of this
    submit(&mut r, "h2 1");
    assert_eq!(orders(&mut r, h2), ["start"]);
}

#[test]
fn job_whose_host_does_not_join_is_pending_again_and_holds_no_slot() {
    for silent in [true, false] {
        let (mut r, [h1, h2]) = rig();
        let key = submit(&mut r, "h1 1 h2 1");
        match silent {
            true => passes(&mut r, 21),
            false => tell(&mut r, h2, SbdMsg::JoinRefused { key, why: "full".into() }),
        }
        assert_eq!(orders(&mut r, h2), ["join", "leave"], "{silent}");
        assert!(!orders(&mut r, h1).contains(&"start"));
        assert_eq!(r.stat(key.job, 0), "PEND");
        let told = PendReason::Fanout.number();
        let is = |rec: &Record| matches!(&rec.event, Event::JobStatus(s) if s.reason == told);
        assert_eq!(r.log.iter().filter(|rec| is(rec)).count(), 1);
        assert_eq!(used(&r, 0), 0);
        tell(&mut r, h2, SbdMsg::Left { key });
        assert_eq!(used(&r, 1), 0);
    }
}

#[test]
fn slots_of_a_host_are_free_when_the_job_has_left_it() {
    let (mut r, [h1, h2]) = rig();
    let key = running(&mut r, [h1, h2]);
    r.report(h1, key, done());
    assert_eq!(orders(&mut r, h2), ["leave"]);
    assert_eq!((used(&r, 0), used(&r, 1)), (0, 1));
    tell(&mut r, h2, SbdMsg::Left { key });
    assert_eq!(used(&r, 1), 0);
    // a host that says nothing holds them for some seconds
    let key = running(&mut r, [h1, h2]);
    r.report(h1, key, done());
    passes(&mut r, 9);
    assert_eq!(used(&r, 1), 1);
    passes(&mut r, 2);
    assert_eq!(used(&r, 1), 0);
}

#[test]
fn orders_about_a_job_go_to_all_of_its_hosts() {
    let (mut r, [h1, h2]) = rig();
    let key = running(&mut r, [h1, h2]);
    r.control(Verb::Stop, key.job);
    r.control(Verb::Signal { number: 10, name: "USR1".into() }, key.job);
    r.control(Verb::Kill, key.job);
    let want = ["suspend", "signal", "terminate"];
    assert_eq!((orders(&mut r, h1), orders(&mut r, h2)), (want.to_vec(), want.to_vec()));
}

#[test]
fn host_that_comes_back_joins_again_and_leaves_what_is_over() {
    let (mut r, [h1, h2]) = rig();
    let key = running(&mut r, [h1, h2]);
    inventory(&mut r, h2, vec![], vec![]);
    assert_eq!(orders(&mut r, h2), ["join"]);
    inventory(&mut r, h2, vec![], vec![key, JobKey { job: 99, idx: 0, attempt: 1 }]);
    assert_eq!(orders(&mut r, h2), ["leave"], "of the job that nobody knows");
    r.control(Verb::Stop, key.job);
    orders(&mut r, h2);
    r.report(h1, key, AttemptPhase::Suspended);
    inventory(&mut r, h2, vec![], vec![key]);
    assert_eq!(orders(&mut r, h2), ["suspend"]);
    r.control(Verb::Kill, key.job);
    orders(&mut r, h2);
    inventory(&mut r, h2, vec![], vec![key]);
    assert_eq!(orders(&mut r, h2), ["terminate"]);
}

#[test]
fn start_that_waited_for_a_host_goes_on_when_that_is_back_with_the_job() {
    let (mut r, [h1, h2]) = rig();
    let key = submit(&mut r, "h1 1 h2 1");
    orders(&mut r, h2);
    // its answer was lost with the connection
    inventory(&mut r, h2, vec![], vec![key]);
    assert_eq!(orders(&mut r, h1), ["start"]);
}

#[test]
fn host_of_an_older_release_is_told_nothing() {
    let mut r = Rig::new();
    let [h1, h2] = [0, 1].map(|i| r.mbd.links.hosts()[super::host(i)].up().unwrap());
    let key = submit(&mut r, "h1 1 h2 1");
    r.report(h1, key, AttemptPhase::Running);
    r.report(h1, key, done());
    assert_eq!((orders(&mut r, h1), orders(&mut r, h2)), (vec!["start"], vec![]));
    assert_eq!(used(&r, 1), 0);
}
