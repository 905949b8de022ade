//! Jobs on several hosts: who is told when (`lifecycle::fanout`).

use super::*;
use crate::batch::soft_state::fanout::LEAVE_MAX;
use crate::model::event::HostUsage;
use crate::model::further::Further;
use crate::model::job::opt;
use crate::model::reason::term;
use crate::model::resize::{NotifyCommand, ReleasedHosts, ResizeRequest, ResizeTold};
use crate::model::time::US;

fn on(hosts: &str) -> JobSpec {
    let further = Further::from_iter([("hostslots", hosts)]);
    JobSpec { min_slots: 0, max_slots: 0, further, ..spec("x") }
}

/// A rig whose hosts can join jobs, and their connections.
fn rig() -> (Rig, [ConnId; 2]) {
    rig_of(conf())
}

fn rig_of(site: ClusterConf) -> (Rig, [ConnId; 2]) {
    let mut r = Rig::of(site);
    let conns = [0, 1].map(|i| r.mbd.links.hosts()[super::host(i)].up().unwrap());
    conns.iter().for_each(|conn| inventory(&mut r, *conn, vec![], vec![]));
    (r, conns)
}

fn inventory(r: &mut Rig, conn: ConnId, tasks: Vec<TaskState>, members: Vec<JobKey>) {
    let member_slots = Vec::new();
    tell(r, conn, with_members(tasks, (members, member_slots), Vec::new()));
}

fn with_members(
    tasks: Vec<TaskState>,
    (members, member_slots): (Vec<JobKey>, Vec<u32>),
    unjoined: Vec<JobKey>,
) -> SbdMsg {
    let (boot_id, members) = ("boot".into(), Some(members));
    let (more, validates) = (false, false);
    SbdMsg::Inventory { boot_id, tasks, more, members, validates, unjoined, member_slots }
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
        tell(&mut r, h2, SbdMsg::Left { key, usage: Box::default() });
        assert_eq!(used(&r, 1), 0);
    }
}

/// Nothing of it runs anywhere.
#[test]
fn job_that_is_killed_before_its_hosts_have_joined_ends_at_once() {
    let (mut r, [h1, h2]) = rig();
    let key = submit(&mut r, "h1 1 h2 1");
    r.control(Verb::Kill, key.job);
    passes(&mut r, 1);
    assert_eq!((r.stat(key.job, 0), used(&r, 0)), ("EXIT", 0));
    assert_eq!(orders(&mut r, h2), ["join", "terminate", "leave"]);
    assert!(!orders(&mut r, h1).contains(&"start"));
    // its answers cross the orders
    tell(&mut r, h2, SbdMsg::Joined { key });
    tell(&mut r, h2, SbdMsg::Left { key, usage: Box::default() });
    assert_eq!((used(&r, 1), r.mbd.reports_refused()), (0, 0));
}

/// The end of a job waits for hosts for [`LEAVE_MAX`] at most.
#[test]
fn host_that_leaves_late_adds_nothing_to_an_ended_job() {
    let (mut r, [h1, h2]) = rig();
    let key = running(&mut r, [h1, h2]);
    r.report(h1, key, done());
    let secs = LEAVE_MAX / US;
    passes(&mut r, secs - 1);
    assert_eq!(r.stat(key.job, 0), "RUN");
    passes(&mut r, 1);
    assert_eq!((r.stat(key.job, 0), r.acct.len()), ("DONE", 1));
    let usage = Usage { utime_us: 50, ..Usage::default() };
    tell(&mut r, h2, SbdMsg::Left { key, usage: usage.into() });
    assert_eq!((r.acct.len(), r.acct[0].usage.unwrap().utime_us), (1, 0));
    assert_eq!((used(&r, 1), r.mbd.reports_refused()), (0, 0));
}

#[test]
fn slots_of_a_host_are_free_when_the_job_has_left_it() {
    let (mut r, [h1, h2]) = rig();
    let key = running(&mut r, [h1, h2]);
    r.report(h1, key, done());
    assert_eq!(orders(&mut r, h2), ["leave"]);
    assert_eq!((r.stat(key.job, 0), used(&r, 1)), ("RUN", 1));
    tell(&mut r, h2, SbdMsg::Left { key, usage: Box::default() });
    assert_eq!((r.stat(key.job, 0), used(&r, 0), used(&r, 1)), ("DONE", 0, 0));
    // a host that says nothing is waited for for some seconds, and asked once more
    let key = running(&mut r, [h1, h2]);
    r.report(h1, key, done());
    passes(&mut r, 9);
    assert_eq!((r.stat(key.job, 0), used(&r, 1)), ("RUN", 1));
    passes(&mut r, 2);
    assert_eq!((r.stat(key.job, 0), used(&r, 1)), ("DONE", 1));
    assert_eq!(orders(&mut r, h2), ["leave", "leave"]);
    // its slots stay in use until it has left
    for _ in 0..3 {
        passes(&mut r, 10);
        assert_eq!((used(&r, 1), orders(&mut r, h2)), (1, vec!["leave"]));
    }
    tell(&mut r, h2, SbdMsg::Left { key, usage: Box::default() });
    assert_eq!((used(&r, 1), r.mbd.reports_refused()), (0, 0));
    passes(&mut r, 20);
    assert_eq!(orders(&mut r, h2), [""; 0]);
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
    // it has not heard that the job is smaller there
    tell(&mut r, h2, with_members(vec![], (vec![key], vec![2]), vec![]));
    assert_eq!(orders(&mut r, h2), ["join"]);
    tell(&mut r, h2, with_members(vec![], (vec![key], vec![1]), vec![]));
    assert_eq!(orders(&mut r, h2), [""; 0]);
    // its sbatchd has found tasks of the job, and was started after the job had joined
    tell(&mut r, h2, with_members(vec![], (vec![key], vec![1]), vec![key]));
    assert_eq!(orders(&mut r, h2), ["join"]);
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

/// After a restart nobody waits for the hosts of the one before.
#[test]
fn next_of_a_chunk_has_no_slots_that_the_one_before_has_not_left() {
    let mut site = conf();
    site.batch.queues[0].chunk_job_size = 2;
    let (mut r, [h1, h2]) = rig_of(site);
    let four = || JobSpec { min_slots: 4, max_slots: 4, ..spec("x") };
    let first = submit(&mut r, "h1 1");
    let [one, next] = [(); 2].map(|()| r.submit(four()).unwrap());
    r.report(h1, first, done());
    let key = JobKey { job: one, idx: 0, attempt: 1 };
    tell(&mut r, h2, SbdMsg::Joined { key });
    r.report(h1, key, AttemptPhase::Running);
    assert_eq!(r.mbd.state.job_chunks().waiting(key.job_ref()).len(), 1);
    r.reread();
    tell(&mut r, h2, with_members(vec![], (vec![key], vec![2]), vec![key]));
    r.report(h1, key, done());
    assert_eq!((r.stat(one, 0), r.stat(next, 0)), ("DONE", "PEND"));
    assert_eq!(used(&r, 1), 2);
    tell(&mut r, h2, SbdMsg::Left { key, usage: Box::default() });
    assert_eq!(r.stat(next, 0), "RUN");
}

#[test]
fn job_that_is_requeued_from_a_lost_host_keeps_the_slots_of_the_others_until_it_has_left_them() {
    let (mut r, [h1, h2]) = rig();
    let further = Further::from_iter([("hostslots", "h1 1 h2 2")]);
    let options = opt::RERUNNABLE;
    let spec_of = JobSpec { min_slots: 0, max_slots: 0, further, options, ..spec("x") };
    let key = JobKey { job: r.submit(spec_of).unwrap(), idx: 0, attempt: 1 };
    tell(&mut r, h2, SbdMsg::Joined { key });
    r.report(h1, key, AttemptPhase::Running);
    let waits = r.submit(JobSpec { hosts: vec!["h2".into()], ..spec("x") }).unwrap();
    r.step(Input::Closed { conn: h1 });
    r.out(120);
    assert_eq!(r.stat(waits, 0), "PEND");
    r.lim_says(super::host(0), false);
    assert_eq!((r.stat(key.job, 0), r.stat(waits, 0)), ("PEND", "PEND"));
    assert_eq!(used(&r, 1), 2);
    tell(&mut r, h2, SbdMsg::Left { key, usage: Box::default() });
    assert_eq!(r.stat(waits, 0), "RUN");
}

/// The host would keep slots that the job does not have, or too few.
#[test]
fn host_that_a_job_leaves_in_part_hears_of_it() {
    let (mut r, [h1, h2]) = rig();
    let further = Further::from_iter([("hostslots", "h1 1 h2 2"), ("ar", "Y"), ("rnc", "tell")]);
    let spec = JobSpec { min_slots: 0, max_slots: 0, further, ..spec("x") };
    let key = JobKey { job: r.submit(spec).unwrap(), idx: 0, attempt: 1 };
    tell(&mut r, h2, SbdMsg::Joined { key });
    r.report(h1, key, AttemptPhase::Running);
    orders(&mut r, h2);
    let hosts = ReleasedHosts::parse("1*h2").unwrap();
    let (cancel, notify) = (false, NotifyCommand::OfJob);
    r.control(Verb::Resize(ResizeRequest::Release { hosts, cancel, notify }), key.job);
    let resize = ResizeTold { number: 1, pid: 9, status: Some(0) };
    let time = r.now.secs();
    let told =
        TaskState { resize, pid: 7, phase: AttemptPhase::Running, key, time, ..<_>::default() };
    tell(&mut r, h1, SbdMsg::State(Box::new(told)));
    passes(&mut r, 1);
    assert_eq!(used(&r, 1), 1);
    assert_eq!(orders(&mut r, h2), ["join"]);
    passes(&mut r, 1);
    assert_eq!(orders(&mut r, h2), [""; 0], "once");
    r.report(h1, key, done());
    passes(&mut r, 11);
    assert_eq!((r.stat(key.job, 0), used(&r, 1)), ("DONE", 1));
}

/// The job was requeued meanwhile: of its slots on the host mbatchd knows no more.
#[test]
fn host_tells_how_many_slots_a_job_has_that_is_to_leave_it() {
    let (mut r, [_, h2]) = rig();
    let over = |n: u32| JobKey { job: 90 + n, idx: 0, attempt: 1 };
    let members = (vec![over(1), over(2), over(3)], vec![2, 0]);
    tell(&mut r, h2, with_members(vec![], members, vec![]));
    assert_eq!(orders(&mut r, h2), ["leave"; 3]);
    assert_eq!(used(&r, 1), 2 + 1 + 1);
    tell(&mut r, h2, SbdMsg::Left { key: over(1), usage: Box::default() });
    assert_eq!(used(&r, 1), 2);
    // of one that has ended it knows them
    let (mut r, [h1, h2]) = rig();
    let key = submit(&mut r, "h1 1 h2 2");
    tell(&mut r, h2, SbdMsg::Joined { key });
    r.report(h1, key, AttemptPhase::Running);
    r.report(h1, key, done());
    passes(&mut r, 11);
    assert_eq!((r.stat(key.job, 0), used(&r, 1)), ("DONE", 2));
    r.reread();
    tell(&mut r, h2, with_members(vec![], (vec![key], vec![9]), vec![]));
    assert_eq!(used(&r, 1), 2);
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

#[test]
fn usage_of_a_job_is_that_of_all_of_its_hosts() {
    let (mut r, [h1, h2]) = rig();
    let key = running(&mut r, [h1, h2]);
    let usage = |utime_us, mem_kb| Usage { utime_us, mem_kb, nprocs: 1, ..Usage::default() };
    let first = |used: Usage| {
        let (pids, pgids, groups) = (vec![7], vec![7], vec![7]);
        SbdMsg::Usage { key, usage: used.into(), pids, pgids, groups }
    };
    let other = |used: Usage| SbdMsg::HostUsage {
        key,
        usage: used.into(),
        pids: vec![9],
        groups: vec![8],
        over_memory: false,
    };
    let now = |r: &Rig| {
        let run = r.mbd.state.running(key).unwrap();
        let used = run.soft.usage;
        (used.utime_us, used.mem_kb, used.max_mem_kb, used.nprocs, run.soft.pids.clone())
    };
    tell(&mut r, h1, first(usage(10, 100)));
    assert_eq!(now(&r), (10, 100, 100, 1, vec![7]));
    tell(&mut r, h2, other(usage(30, 50)));
    assert_eq!(now(&r), (40, 150, 150, 2, vec![7, 9]));
    tell(&mut r, h1, first(usage(20, 40)));
    assert_eq!(now(&r), (50, 90, 150, 2, vec![7, 9]));
    tell(&mut r, h2, other(Usage { max_mem_kb: 160, ..usage(30, 50) }));
    assert_eq!(now(&r), (50, 90, 160, 2, vec![7, 9]));
    // its sbatchd was restarted, and knows of no task that had ended
    tell(&mut r, h2, other(usage(5, 50)));
    assert_eq!(now(&r).0, 50);
    // the end has what each host has told last
    let time = r.now.secs();
    let t = TaskState { key, phase: done(), pid: 7, time, usage: usage(25, 0), ..<_>::default() };
    tell(&mut r, h1, SbdMsg::State(Box::new(t)));
    // one of them had more for a moment than all together when they told
    let left = Usage { max_mem_kb: 170, ..usage(60, 0) };
    tell(&mut r, h2, SbdMsg::Left { key, usage: left.into() });
    let end = r.acct.last().unwrap().usage.unwrap();
    assert_eq!((end.utime_us, end.max_mem_kb), (85, 170));
    // what crosses the end is no wrong report
    tell(&mut r, h2, other(usage(60, 0)));
    assert_eq!(r.mbd.reports_refused(), 0);
}

/// The usage on the others that the first host is told of since this was asked last.
fn usage_told(r: &mut Rig, h1: ConnId) -> Vec<(u64, u64, u32, Vec<String>)> {
    let sent = std::mem::take(&mut r.sent).into_iter().filter(|(conn, _)| *conn == h1);
    let told = sent.filter_map(|(_, msg)| match msg {
        Msg::Sbd(SbdMsg::UsageTold { usage: u, without, .. }) => {
            Some((u.utime_us, u.max_mem_kb, u.nprocs, without))
        }
        _ => None,
    });
    told.collect()
}

/// The report of the first host counts all hosts.
#[test]
fn first_host_is_told_the_usage_on_the_others_when_its_script_has_ended() {
    let usage = |utime_us, mem_kb| Usage {
        utime_us,
        mem_kb,
        max_mem_kb: mem_kb,
        nprocs: 2,
        ..Usage::default()
    };
    for in_time in [true, false] {
        let (mut r, [h1, h2]) = rig();
        let key = running(&mut r, [h1, h2]);
        let (pids, pgids, groups) = (vec![], vec![], vec![]);
        let used = usage(10, 100).into();
        tell(&mut r, h1, SbdMsg::Usage { key, usage: used, pids, pgids, groups });
        let used = usage(20, 50).into();
        tell(
            &mut r,
            h2,
            SbdMsg::HostUsage {
                key,
                usage: used,
                pids: vec![],
                groups: vec![],
                over_memory: false,
            },
        );
        tell(&mut r, h1, SbdMsg::AskUsage { key });
        assert_eq!(orders(&mut r, h2), ["leave"]);
        assert_eq!(usage_told(&mut r, h1), []);
        // a host that comes back meanwhile does not join again
        inventory(&mut r, h2, vec![], vec![]);
        assert_eq!(orders(&mut r, h2), [""; 0]);
        let left = SbdMsg::Left { key, usage: usage(30, 0).into() };
        if in_time {
            tell(&mut r, h2, left.clone());
            assert_eq!(usage_told(&mut r, h1), [(30, 150, 4, vec![])]);
            r.report(h1, key, done());
        } else {
            passes(&mut r, 3);
            assert_eq!(usage_told(&mut r, h1), [(0, 150, 4, vec!["h2".to_owned()])]);
            r.report(h1, key, done());
            assert_eq!((r.stat(key.job, 0), orders(&mut r, h2)), ("RUN", vec!["leave"]));
            tell(&mut r, h2, left);
        }
        assert_eq!((r.stat(key.job, 0), used_slots(&r)), ("DONE", [0, 0]));
        assert_eq!(r.acct.last().unwrap().usage.unwrap().utime_us, 30);
        // its question was answered, and crosses the end no more than once
        tell(&mut r, h1, SbdMsg::AskUsage { key });
        assert_eq!((usage_told(&mut r, h1), r.mbd.reports_refused()), (vec![], 0));
    }
}

fn used_slots(r: &Rig) -> [u64; 2] {
    [used(r, 0), used(r, 1)]
}

#[test]
fn limits_of_a_job_are_those_of_the_sum_of_its_hosts() {
    let (mut r, [h1, h2]) = rig();
    let mut submission = on("h1 1 h2 1");
    submission.limits.process = Some(5);
    let job = r.submit(submission).unwrap();
    let key = JobKey { job, idx: 0, attempt: 1 };
    tell(&mut r, h2, SbdMsg::Joined { key });
    r.report(h1, key, AttemptPhase::Running);
    let usage = Usage { nprocs: 3, ..Usage::default() };
    let own =
        SbdMsg::Usage { key, usage: usage.into(), pids: vec![], pgids: vec![], groups: vec![] };
    tell(&mut r, h1, own);
    assert_eq!(orders(&mut r, h1), ["start"]);
    tell(
        &mut r,
        h2,
        SbdMsg::HostUsage {
            key,
            usage: usage.into(),
            pids: vec![],
            groups: vec![],
            over_memory: false,
        },
    );
    assert_eq!(
        (orders(&mut r, h1), orders(&mut r, h2)[1..].to_vec()),
        (vec!["terminate"], vec!["terminate"])
    );
}

/// MEMLIMIT_TYPE: a host other than the first looks at its processes and tasks itself.
#[test]
fn process_beyond_the_memory_limit_on_one_host_ends_the_job_on_all() {
    for over_memory in [true, false] {
        let (mut r, [h1, h2]) = rig();
        let key = running(&mut r, [h1, h2]);
        r.sent.clear();
        let (usage, pids, groups) =
            (Usage { mem_kb: 9, ..Usage::default() }.into(), vec![], vec![]);
        tell(&mut r, h2, SbdMsg::HostUsage { key, usage, pids, groups, over_memory });
        let act = Act::Terminate { exit_info: term::MEMLIMIT };
        let told = |msg: &Msg| matches!(msg, Msg::Sbd(SbdMsg::Act { act: own, .. }) if *own == act);
        let told = r.sent.iter().filter(|(_, msg)| told(msg)).count();
        assert_eq!(told, if over_memory { 2 } else { 0 });
    }
}

/// RTASK_GONE_ACTION: a host of the job says that a task has ended in such a way.
#[test]
fn gone_task_ends_its_job_on_all_hosts() {
    let (mut r, [h1, h2]) = rig();
    let key = running(&mut r, [h1, h2]);
    let before = (orders(&mut r, h1).len(), orders(&mut r, h2).len());
    tell(&mut r, h2, SbdMsg::TaskGone { key, status: 11 });
    let now = (orders(&mut r, h1), orders(&mut r, h2));
    assert_eq!((&now.0[before.0..], &now.1[before.1..]), (&["terminate"][..], &["terminate"][..]));
    // each host tells of its own, and again when it has greeted: the first one counts
    let seen = (orders(&mut r, h1).len(), r.log.len());
    tell(&mut r, h1, SbdMsg::TaskGone { key, status: 11 });
    tell(&mut r, h2, SbdMsg::TaskGone { key, status: 11 });
    assert_eq!((orders(&mut r, h1).len(), r.log.len()), seen);
    assert_eq!(
        r.mbd.state.running(key).unwrap().killed,
        Some(crate::model::reason::term::EXTERNAL_SIGNAL)
    );
    assert_eq!(r.mbd.reports_refused(), 0);
}

/// DJOB_COMMFAIL_ACTION: a blaunch of the job says that it has lost a host.
#[test]
fn lost_host_ends_a_running_job_on_all_hosts_and_no_other() {
    let (mut r, [h1, h2]) = rig();
    let key = running(&mut r, [h1, h2]);
    let waits = JobSpec { begin_time: i64::from(u32::MAX), ..on("h1 1 h2 1") };
    let waits = r.submit(waits).unwrap();
    let before = (orders(&mut r, h1).len(), orders(&mut r, h2).len());
    let mut lost = |user: ConnId, job, attempt| {
        let select = JobSelect { ids: vec![IdSel { job, elems: vec![] }], ..<_>::default() };
        let control = Control { lost_host: true, attempt, ..Control::of(Verb::Kill, select) };
        match r.ask(user, ClientMsg::Control(Box::new(control))) {
            Some(Msg::Client(ClientMsg::Controlled { outcomes, .. })) => outcomes[0].code,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(lost(OTHER, key.job, 0), err::PERMISSION);
    assert_eq!(lost(USER, waits, 0), err::NOT_STARTED);
    assert_eq!(lost(USER, key.job, key.attempt + 1), err::JOB_FINISH);
    assert_eq!((lost(USER, key.job, key.attempt), lost(USER, key.job, 0)), (0, 0));
    let now = (orders(&mut r, h1), orders(&mut r, h2));
    assert_eq!((&now.0[before.0..], &now.1[before.1..]), (&["terminate"][..], &["terminate"][..]));
    let killed = r.mbd.state.running(key).unwrap().killed;
    assert_eq!(killed, Some(crate::model::reason::term::OTHER));
}

#[test]
fn usage_of_each_host_is_listed_while_a_job_runs_and_recorded_at_its_end() {
    for wanted in [true, false] {
        let mut site = conf();
        if !wanted {
            site.base.lsf.set("LSF_HPC_EXTENSIONS", "SHORT_PIDLIST NO_HOST_RUSAGE");
        }
        let (mut r, [h1, h2]) = rig_of(site);
        let key = running(&mut r, [h1, h2]);
        let usage = |secs: u64, mem_kb| {
            let utime_us = secs * US;
            Usage { utime_us, stime_us: US / 2, mem_kb, max_mem_kb: mem_kb, ..Usage::default() }
        };
        let (pids, pgids, groups) = (vec![7], vec![7], vec![7]);
        let used = usage(1, 100).into();
        tell(&mut r, h1, SbdMsg::Usage { key, usage: used, pids, pgids, groups });
        let used = usage(3, 50).into();
        tell(
            &mut r,
            h2,
            SbdMsg::HostUsage {
                key,
                usage: used,
                pids: vec![9],
                groups: vec![8],
                over_memory: false,
            },
        );
        let listed = r.listed(&[Col::HostUsage]);
        let want = r#"[[[["h1",100,0,1.5,[7],[7]],["h2",50,0,3.5,[9],[8]]]]]"#;
        assert_eq!(listed, if wanted { want } else { "[[[]]]" });
        let time = r.now.secs();
        let ended = TaskState { key, phase: done(), pid: 7, time, ..<_>::default() };
        let t = TaskState { usage: usage(2, 0), ..ended };
        tell(&mut r, h1, SbdMsg::State(Box::new(t)));
        // its peak is the one that it told before
        tell(&mut r, h2, SbdMsg::Left { key, usage: usage(6, 0).into() });
        let of = |host: &str, mem_kb, utime| HostUsage {
            host: host.into(),
            mem_kb,
            swap_kb: 0,
            utime_us: utime * US,
            stime_us: US / 2,
        };
        let want = match wanted {
            true => vec![of("h1", 0, 2), of("h2", 50, 6)],
            false => vec![],
        };
        let status = r.log.iter().find_map(|record| match &record.event {
            Event::JobStatus(s) if s.status.is_finished() => Some(s.hosts.to_vec()),
            _ => None,
        });
        assert_eq!(
            (status.unwrap(), r.acct.last().unwrap().hosts_used.to_vec()),
            (want.clone(), want)
        );
    }
}

#[test]
fn records_have_the_hosts_of_a_job_in_short_where_the_site_wants_it() {
    for wanted in [true, false] {
        let mut site = conf();
        if wanted {
            site.base.lsf.set("LSF_HPC_EXTENSIONS", "CUMULATIVE_RUSAGE SHORT_EVENTFILE");
        }
        let (mut r, [h1, h2]) = rig_of(site);
        let key = running(&mut r, [h1, h2]);
        r.report(h1, key, done());
        tell(&mut r, h2, SbdMsg::Left { key, usage: Box::default() });
        let starts = r.log.iter().filter_map(|record| match &record.event {
            Event::JobStart(start) => Some(start.short_hosts),
            _ => None,
        });
        assert_eq!(starts.collect::<Vec<_>>(), [wanted]);
        assert_eq!(r.acct.last().unwrap().short_hosts, wanted);
    }
}

#[test]
fn usage_of_each_host_is_told_of_several_hosts_alone() {
    let (mut r, [_, h2]) = rig();
    let key = submit(&mut r, "h2 1");
    r.report(h2, key, AttemptPhase::Running);
    assert_eq!(r.listed(&[Col::HostUsage]), "[[[]]]");
    r.report(h2, key, done());
    assert!(r.acct.last().unwrap().hosts_used.is_empty());
}
