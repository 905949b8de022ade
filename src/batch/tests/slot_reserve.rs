//! SLOT_RESERVE and BACKFILL: parallel jobs keep slots until they have enough, and short jobs use
//! these meanwhile.

use super::cluster::{ADMINISTRATOR, Cluster, ClusterBuilder, cluster, element};
use super::{Col, JobRef};
use crate::model::event::Event;
use crate::model::reason::PendReason;

/// Twenty minutes, or five.
const RESERVES: &str = "SLOT_RESERVE = MAX_RESERVE_TIME[20]";
const NOT_LONG: &str = "PRIORITY = 50; SLOT_RESERVE = MAX_RESERVE_TIME[5]";

/// Queues in dispatch order: `wide` reserves slots, `fill` backfills, `normal` does neither.
fn site(hosts: usize, slots: u32) -> ClusterBuilder {
    cluster()
        .hosts(hosts, slots)
        .queue("wide", &format!("PRIORITY = 50; EXCLUSIVE = Y; {RESERVES}"))
        .queue("fill", "PRIORITY = 40; BACKFILL = Y")
        .queue("normal", "PRIORITY = 30")
}

/// The slots that a job holds while it waits, and the seconds until it starts at the latest.
fn reserved(c: &mut Cluster, at: JobRef) -> (Vec<String>, Option<i64>) {
    let shown = c.column(at, Col::Reservation);
    let Some(all) = shown.as_array() else { return (Vec::new(), None) };
    let hosts: Vec<(String, usize)> = serde_json::from_value(all[2].clone()).unwrap();
    let start = all[1].as_i64().filter(|start| *start > 0).map(|start| start - c.secs());
    (hosts.into_iter().flat_map(|(host, n)| vec![host; n]).collect(), start)
}

fn changes_logged(c: &Cluster) -> usize {
    c.logged(|event| matches!(event, Event::JobReserve(_)))
}

#[test]
fn parallel_job_keeps_free_slots_and_starts_when_it_has_enough() {
    let mut c = site(1, 4).up();
    let long = c.submit("ann", "-W 10");
    let longer = c.submit("ann", "-W 20");
    let wide = c.submit("bob", "-q wide -n 4");
    assert_eq!(c.started(), [long, longer]);
    assert_eq!(reserved(&mut c, wide), (vec!["h1".into(), "h1".into()], Some(1200)));
    let other = c.submit("ann", "");
    assert_eq!(c.reasons(other), [(PendReason::HostFull, vec!["h1".to_owned()])]);
    c.end(long, 0);
    assert_eq!(reserved(&mut c, wide).0, ["h1"; 3]);
    assert_eq!(c.state(other), "PEND");
    c.end(longer, 0);
    assert_eq!(c.running_on(wide), ["h1"; 4]);
    assert_eq!(reserved(&mut c, wide), (vec![], None));
    c.end(wide, 0);
    assert_eq!(c.state(other), "RUN");
}

#[test]
fn end_of_a_job_lets_others_beside_a_reservation_under_the_limit_of_their_queue() {
    let mut c = cluster()
        .hosts(3, 4)
        .queue("top", "PRIORITY = 60")
        .queue("wide", &format!("PRIORITY = 50; QJOB_LIMIT = 8; {RESERVES}"))
        .queue("normal", "PRIORITY = 30")
        .up();
    c.submit("ann", "-q normal -m h1 -W 10");
    let four = [(); 4].map(|()| c.submit("ann", "-q wide -m h2 -W 10"));
    let wide = c.submit("bob", "-q wide -n 4 -m h1");
    assert_eq!(reserved(&mut c, wide).0, ["h1"; 3]);
    // eight less four and the three that are kept
    let two = c.submit("cid", "-q wide -n 2 -m h3");
    let top = c.submit("dan", "-q top -m h2");
    assert_eq!((c.state(two), c.state(top)), ("PEND".into(), "PEND".into()));
    // the slot goes to a higher queue, so that no host has changed for this one
    c.end(four[0], 0);
    assert_eq!((c.running_on(top), c.running_on(two)), (vec!["h2".into()], vec!["h3".into(); 2]));
}

/// A host of 500 MB, all of it reserved: 400 for ten minutes, 100 for thirty.
fn full_of_memory() -> Cluster {
    let reserves = "PRIORITY = 50; RESOURCE_RESERVE = MAX_RESERVE_TIME[60]";
    let mut c =
        cluster().hosts(1, 9).queue("large", reserves).queue("normal", "PRIORITY = 30").up();
    c.load("h1", "mem=500");
    let soon = c.submit("ann", "-W 10 -R rusage[mem=400]");
    let late = c.submit("ann", "-W 30 -R rusage[mem=100]");
    assert_eq!(c.started(), [soon, late]);
    c
}

#[test]
fn younger_reservation_does_not_count_on_memory_that_an_older_one_is_to_get() {
    let mut c = full_of_memory();
    let first = c.submit("bob", "-q large -W 60 -R rusage[mem=300]");
    assert_eq!(reserved(&mut c, first), (vec!["h1".into()], Some(600)));
    // 100 of the 400 are left beside the first
    let second = c.submit("bob", "-q large -W 5 -R rusage[mem=200]");
    assert_eq!(reserved(&mut c, second), (vec!["h1".into()], Some(1800)));
}

#[test]
fn memory_that_a_pending_job_keeps_is_listed_as_far_as_there_is_some() {
    let mut c = full_of_memory();
    let waits = c.submit("bob", "-q large -R rusage[mem=300]");
    let memory = |c: &mut Cluster| c.column(waits, Col::Reservation)[3].clone();
    assert_eq!(memory(&mut c), serde_json::Value::Null);
    c.load("h1", "mem=700");
    assert_eq!(memory(&mut c), serde_json::json!([["h1", 200]]));
    // a job that needs none is not kept from the host
    let small = c.submit("cid", "");
    assert_eq!(c.started(), [small]);
}

#[test]
fn job_of_a_queue_without_slot_reserve_keeps_nothing() {
    let mut c = site(1, 4).up();
    c.submit("ann", "-W 10");
    let wide = c.submit("bob", "-n 4");
    assert_eq!(reserved(&mut c, wide), (vec![], None));
    let small = c.submit("ann", "");
    assert_eq!(c.state(small), "RUN");
    assert_eq!(changes_logged(&c), 0);
}

#[test]
fn sequential_job_reserves_no_slot() {
    let mut c = site(1, 1).up();
    c.submit("ann", "-W 10");
    let waits = c.submit("bob", "-q wide");
    assert_eq!(reserved(&mut c, waits), (vec![], None));
}

#[test]
fn reservation_is_given_up_after_its_time_and_begins_again() {
    let mut c = cluster().hosts(1, 4).queue("wide", NOT_LONG).queue("normal", "PRIORITY = 30").up();
    c.submit("ann", "");
    let wide = c.submit("bob", "-q wide -n 4");
    assert_eq!(reserved(&mut c, wide).0, ["h1"; 3]);
    let other = c.submit("cid", "");
    c.advance(299);
    assert_eq!(c.state(other), "PEND");
    c.advance(1);
    // the other jobs have had their turn
    assert_eq!((c.state(other), reserved(&mut c, wide).0), ("RUN".to_owned(), vec![]));
    let late = c.submit("cid", "");
    assert_eq!(c.state(late), "RUN");
    c.advance(2);
    assert_eq!(reserved(&mut c, wide).0, ["h1"]);
}

#[test]
fn short_job_backfills_reserved_slots_and_delays_nobody() {
    let mut c = site(1, 4).up();
    let long = c.submit("ann", "-W 10 -n 2");
    let wide = c.submit("bob", "-q wide -n 4");
    assert_eq!(reserved(&mut c, wide), (vec!["h1".into(); 2], Some(600)));
    let [fits, beyond] = [c.submit("cid", "-q fill -W 10"), c.submit("cid", "-q fill -W 11")];
    let unlimited = c.submit("cid", "-q fill");
    let elsewhere = c.submit("cid", "-W 5");
    assert_eq!(c.started(), [long, fits]);
    for waits in [beyond, unlimited, elsewhere] {
        assert!(c.waits_for(waits, PendReason::HostFull), "{waits}");
    }
    // of the slots that it keeps it holds one now
    assert_eq!(reserved(&mut c, wide), (vec!["h1".into()], Some(600)));
    assert_eq!((c.host("h1").rsv, c.host("h1").run, c.host("h1").njobs), (1, 3, 4));
    c.end(fits, 0);
    assert_eq!(reserved(&mut c, wide).0, ["h1"; 2]);
    c.advance(600);
    c.end(long, 0);
    assert_eq!(c.state(wide), "RUN");
}

#[test]
fn parallel_job_backfills_on_the_slots_of_another() {
    let mut c = site(2, 2).up();
    c.submit("ann", "-W 30 -m h1");
    let wide = c.submit("bob", "-q wide -n 4");
    assert_eq!(reserved(&mut c, wide).0.len(), 3);
    let two = c.submit("cid", "-q fill -n 3 -W 20");
    assert_eq!(c.running_on(two).len(), 3);
}

#[test]
fn nothing_backfills_where_no_start_is_known() {
    let mut c = site(1, 4).up();
    c.submit("ann", "");
    let wide = c.submit("bob", "-q wide -n 4");
    assert_eq!(reserved(&mut c, wide), (vec!["h1".into(); 3], None));
    let short = c.submit("cid", "-q fill -W 1");
    assert_eq!(c.state(short), "PEND");
}

#[test]
fn run_limit_of_a_backfill_job_is_that_on_its_host() {
    let mut c = site(2, 2).up();
    c.cpu_factor("h2", 2.0);
    c.submit("ann", "-W 10 -m h1");
    let wide = c.submit("bob", "-q wide -n 4");
    assert_eq!(reserved(&mut c, wide).1, Some(600));
    // 15 minutes of h1 are 7.5 of h2
    let job = c.submit("cid", "-q fill -W 15");
    assert_eq!(c.running_on(job), ["h2"]);
}

#[test]
fn interruptible_job_runs_until_the_slots_are_needed() {
    let lines = "PRIORITY = 20; BACKFILL = Y; RUNLIMIT = 120; INTERRUPTIBLE_BACKFILL = 300";
    let mut c = site(1, 4).queue("tide", lines).up();
    c.submit("ann", "-W 10");
    c.submit("bob", "-q wide -n 4");
    let job = c.submit("cid", "-q tide");
    assert_eq!(c.state(job), "RUN");
    let orders = c.start_orders();
    assert_eq!(orders.last().unwrap().limits.run, Some(600));
    c.advance(301);
    // less than five minutes are left
    let late = c.submit("cid", "-q tide");
    assert_eq!(c.state(late), "PEND");
    c.restart();
    assert_eq!(c.state(job), "RUN");
}

#[test]
fn interruptible_job_on_slots_that_nobody_reserves_has_its_whole_run_limit() {
    let lines = "PRIORITY = 20; BACKFILL = Y; RUNLIMIT = 120; INTERRUPTIBLE_BACKFILL = 300";
    let mut c = site(2, 4).queue("tide", lines).up();
    c.submit("ann", "-W 10 -m h1");
    c.submit("bob", "-q wide -n 4 -m h1");
    c.submit("cid", "-q tide -m h2");
    let orders = c.start_orders();
    assert_eq!(orders.last().unwrap().limits.run, Some(7200));
}

#[test]
fn reservation_is_the_same_after_a_restart() {
    let mut c = cluster().hosts(1, 4).queue("wide", NOT_LONG).queue("normal", "PRIORITY = 30").up();
    c.submit("ann", "-W 10");
    let wide = c.submit("bob", "-q wide -n 4");
    let before = c.column(wide, Col::Reservation);
    c.advance(100);
    c.restart();
    c.advance(1);
    assert_eq!(c.column(wide, Col::Reservation), before);
    let other = c.submit("cid", "");
    assert_eq!(c.state(other), "PEND");
    // five minutes after it began, not after the restart
    c.advance(199);
    assert_eq!(c.state(other), "RUN");
}

#[test]
fn killed_stopped_and_switched_jobs_give_their_slots_back() {
    for what in ["kill", "stop", "switch"] {
        let mut c = site(1, 4).up();
        c.submit("ann", "-W 10");
        let wide = c.submit("bob", "-q wide -n 4");
        let other = c.submit("cid", "");
        assert_eq!(c.state(other), "PEND", "{what}");
        match what {
            "kill" => c.kill("bob", wide),
            "stop" => c.stop("bob", wide),
            _ => c.switch("bob", wide, "normal"),
        }
        assert_eq!(c.state(other), "RUN", "{what}");
        assert_eq!(c.host("h1").rsv, 0, "{what}");
    }
}

#[test]
fn inactive_queue_gives_reserved_slots_back() {
    let mut c = site(1, 4).up();
    c.submit("ann", "-W 10");
    c.submit("bob", "-q wide -n 4");
    let other = c.submit("cid", "");
    c.badmin("qinact wide");
    assert_eq!(c.state(other), "RUN");
}

#[test]
fn job_of_one_host_reserves_on_the_host_where_it_starts_first() {
    let mut c = site(2, 4).up();
    c.submit("ann", "-W 30 -n 2 -m h1");
    c.submit("ann", "-W 10 -n 3 -m h2");
    let wide = c.submit("bob", "-q wide -n 4 -R 'span[hosts=1]'");
    assert_eq!(reserved(&mut c, wide), (vec!["h2".into()], Some(600)));
    // h1 is not reserved
    let other = c.submit("cid", "-n 2");
    assert_eq!(c.running_on(other), ["h1", "h1"]);
}

#[test]
fn job_of_one_host_reserves_where_most_is_free_while_no_start_is_known() {
    let mut c = site(3, 4).up();
    c.submit("ann", "-n 2 -m h1");
    c.submit("ann", "-m h2");
    c.submit("ann", "-n 3 -m h3");
    let wide = c.submit("bob", "-q wide -n 4 -R 'span[hosts=1]'");
    assert_eq!(reserved(&mut c, wide), (vec!["h2".into(); 3], None));
    let too_wide = c.submit("cid", "-q wide -n 5 -R 'span[hosts=1]'");
    assert_eq!(reserved(&mut c, too_wide), (vec![], None));
}

#[test]
fn exclusive_parallel_job_keeps_whole_hosts_until_they_are_empty() {
    let mut c = site(2, 2).up();
    let first = c.submit("ann", "-W 10 -m h1");
    let wide = c.submit("bob", "-q wide -x -n 2 -R 'span[ptile=1]'");
    assert_eq!(reserved(&mut c, wide), (vec!["h2".into(), "h2".into(), "h1".into()], Some(600)));
    let other = c.submit("cid", "");
    assert_eq!(c.state(other), "PEND");
    c.end(first, 0);
    assert_eq!(c.running_on(wide).len(), 2);
    assert_eq!(c.state(other), "PEND");
}

#[test]
fn second_reservation_starts_behind_the_first() {
    let mut c = site(1, 4).up();
    c.submit("ann", "-W 10 -n 2");
    let first = c.submit("bob", "-q wide -n 4 -W 20");
    let second = c.submit("cid", "-q wide -n 3 -W 5");
    assert_eq!(reserved(&mut c, first), (vec!["h1".into(); 2], Some(600)));
    // it keeps nothing yet
    assert_eq!(reserved(&mut c, second), (vec![], Some(1800)));
    assert_eq!(c.state(second), "PEND");
}

#[test]
fn reserved_slots_count_in_the_limits_of_queue_and_user() {
    let limits = "PRIORITY = 50; UJOB_LIMIT = 4; SLOT_RESERVE = MAX_RESERVE_TIME[5]";
    let mut c = site(1, 5).queue("some", limits).up();
    c.submit("ann", "-W 10 -n 2");
    let wide = c.submit("bob", "-q some -n 4");
    assert_eq!(reserved(&mut c, wide).0, ["h1"; 3]);
    let one = c.submit("bob", "-q some -n 2");
    assert_eq!(c.reason(one), PendReason::QueueUserParallelJob);
    assert_eq!((c.queue("some").rsv, c.host("h1").rsv), (3, 3));
    assert_eq!(c.host("h1").status, "closed_Full");
}

#[test]
fn queue_loses_its_reservations_when_slot_reserve_is_taken_out() {
    let mut c = site(1, 4).up();
    c.submit("ann", "-W 10");
    let wide = c.submit("bob", "-q wide -n 4");
    let other = c.submit("cid", "");
    assert_eq!(c.state(other), "PEND");
    let queues =
        cluster().hosts(1, 4).queue("wide", "PRIORITY = 50").queue("fill", "PRIORITY = 40");
    c.reconfigure(queues.queue("normal", "PRIORITY = 30"));
    assert_eq!(reserved(&mut c, wide), (vec![], None));
    assert_eq!(c.state(other), "RUN");
}

#[test]
fn ncpus_of_a_requirement_are_slots_with_parallel_sched_by_slot() {
    for (by_slot, started) in [("N", false), ("Y", true)] {
        let site = cluster().host("h1", 2).lsb_hosts("Begin Host\nHOST_NAME MXJ\nh1 8\nEnd Host\n");
        let mut c = site.param(&format!("PARALLEL_SCHED_BY_SLOT = {by_slot}")).up();
        let job = c.submit("ann", "-R 'select[ncpus>=8]'");
        assert_eq!(c.state(job) == "RUN", started, "{by_slot}");
    }
}

#[test]
fn listing_of_windows_tells_slots_and_how_long_they_are_free() {
    use crate::proto::Msg;
    use crate::proto::client::{ClientMsg, SlotWindow};
    let mut c = site(2, 4).up();
    c.submit("ann", "-W 10 -m h1");
    c.submit("bob", "-q wide -n 4 -m h1");
    let windows =
        |c: &mut Cluster| match c.ask("ann", ClientMsg::Slots { res_req: String::new() }).pop() {
            Some(Msg::Client(ClientMsg::SlotRows { rows })) => rows,
            other => panic!("{other:?}"),
        };
    let row = |secs, hosts: &[(&str, u64)]| {
        let hosts = hosts.iter().map(|(host, n)| (host.to_string(), *n)).collect();
        SlotWindow { secs, hosts }
    };
    let all = [row(None, &[("h2", 4)]), row(Some(600), &[("h1", 3), ("h2", 4)])];
    assert_eq!(windows(&mut c), all);
    let bad = c.ask("ann", ClientMsg::Slots { res_req: "select[".into() });
    assert!(matches!(bad[..], [Msg::Refused(_)]), "{bad:?}");
}

#[test]
fn job_that_backfills_slots_of_a_later_reservation_does_not_put_off_the_first_one() {
    let reserves = "PRIORITY = 50; SLOT_RESERVE = MAX_RESERVE_TIME[1000]";
    let mut c = cluster()
        .hosts(3, 4)
        .queue("wide", reserves)
        .queue("fill", "PRIORITY = 40; BACKFILL = Y")
        .queue("normal", "PRIORITY = 30")
        .up();
    let ends = c.submit("ann", "-q wide -n 2 -W 8");
    c.submit("ann", "-q fill -n 4 -W 10");
    let first = c.submit("ann", "-q wide -n 6 -W 2 -R 'span[ptile=2]'");
    assert_eq!(reserved(&mut c, first).1, Some(480));
    c.advance(217);
    c.submit("ann", "-q wide -n 3 -W 1 -R 'span[ptile=2]'");
    c.advance(183);
    let short = c.submit("ann", "-q fill -W 2");
    assert_eq!((c.state(short), reserved(&mut c, first).1), ("RUN".into(), Some(80)));
    c.advance(80);
    c.end(ends, 0);
    assert_eq!(c.state(first), "RUN");
}

#[test]
fn slots_that_a_started_job_leaves_go_to_others_while_a_reservation_behind_it_stays() {
    let reserves = "PRIORITY = 50; SLOT_RESERVE = MAX_RESERVE_TIME[1000]";
    let mut c = cluster()
        .hosts(3, 4)
        .queue("wide", reserves)
        .queue("fill", "PRIORITY = 40; BACKFILL = Y")
        .queue("normal", "PRIORITY = 30")
        .up();
    c.submit("ann", "-q fill -n 1 -W 1");
    let ends = c.submit("ann", "-n 3 -W 1");
    c.submit("ann", "-q fill -n 4 -W 1");
    let first = c.submit("ann", "-q wide -n 3 -W 1 -R 'span[ptile=2]'");
    let second = c.submit("ann", "-q wide -n 4 -W 1 -R 'span[ptile=2]'");
    let small = c.submit("ann", "-n 1 -W 1");
    assert_eq!(c.state(small), "PEND");
    // the first one takes two slots of h1 and one of the two that it kept on h3
    c.end(ends, 0);
    assert_eq!(c.running_on(first), ["h1", "h1", "h3"]);
    assert_eq!(reserved(&mut c, second).0, ["h1", "h3", "h3"]);
    assert_eq!(c.running_on(small), ["h3"]);
}

#[test]
fn slots_of_a_job_that_is_put_off_are_backfilled_for_longer() {
    let reserves = "PRIORITY = 50; SLOT_RESERVE = MAX_RESERVE_TIME[1000]";
    let mut c = cluster()
        .hosts(3, 4)
        .queue("wide", reserves)
        .queue("fill", "PRIORITY = 40; BACKFILL = Y")
        .queue("normal", "PRIORITY = 30")
        .up();
    let ends = c.submit("ann", "-q wide -n 2 -W 8");
    c.submit("ann", "-q fill -n 4 -W 10");
    c.submit("ann", "-q wide -n 7 -W 1 -R 'span[ptile=2]'");
    let second = c.submit("ann", "-q wide -n 3 -W 1 -R 'span[ptile=2]'");
    c.advance(400);
    let short = c.submit("ann", "-q fill -W 2");
    assert_eq!((reserved(&mut c, second).1, c.state(short)), (Some(80), "PEND".into()));
    // the first wide job keeps these two slots as well
    c.end(ends, 0);
    assert_eq!((reserved(&mut c, second).1, c.running_on(short)), (Some(200), vec!["h3".into()]));
}

/// Jobs of the queue `low` are preempted by those of `top`, which backfill; jobs of `wide` reserve.
fn preempted(wide: u32) -> (Cluster, [JobRef; 2]) {
    let mut c = cluster()
        .hosts(1, 4)
        .queue("low", "PRIORITY = 20")
        .queue("wide", &format!("PRIORITY = {wide}; SLOT_RESERVE = MAX_RESERVE_TIME[1000]"))
        .queue("top", "PRIORITY = 40; PREEMPTION = PREEMPTIVE[low]; BACKFILL = Y")
        .up();
    // it keeps the free slot, and would start when the other one ends
    let jobs = [c.submit("ann", "-q low -n 3 -W 12"), c.submit("ann", "-q wide -n 2 -W 1")];
    (c, jobs)
}

#[test]
fn job_of_a_backfill_queue_starts_in_slots_of_a_preempted_job_beside_reserved_ones() {
    let (mut c, [low, wide]) = preempted(30);
    let job = c.submit("bob", "-q top -n 3 -W 1");
    assert_eq!([low, wide, job].map(|at| c.state(at)), ["SSUSP", "PEND", "RUN"]);
    c.end(job, 0);
    assert_eq!(c.state(low), "RUN");
}

#[test]
fn job_that_would_backfill_beside_a_job_that_it_preempts_does_not_preempt_it() {
    let (mut c, [low, wide]) = preempted(50);
    // once the job is suspended its end is not known any more, and nobody backfills
    let job = c.submit("bob", "-q top -n 4 -W 1");
    assert_eq!([low, wide, job].map(|at| c.state(at)), ["RUN", "PEND", "PEND"]);
    let short = c.submit("bob", "-q top -W 1");
    assert_eq!(c.state(short), "RUN");
}

#[test]
fn two_jobs_that_wait_for_each_others_slots_are_not_put_off_without_end() {
    let limit = "Begin Limit\nPER_QUEUE = all\nPER_PROJECT = all\nMEM = 100\nEnd Limit\n";
    let mut c = cluster()
        .hosts(3, 4)
        .queue("low", "PRIORITY = 20")
        .queue("top", "PRIORITY = 40; PREEMPTION = PREEMPTIVE[low]")
        .queue("wide", "PRIORITY = 30; SLOT_RESERVE = MAX_RESERVE_TIME[1000]; BACKFILL = Y")
        .file("lsb.resources", limit)
        .up();
    // on two hosts it would have more memory than the limit leaves it
    let wide = "-q wide -n 3 -P chip -R 'span[ptile=2] rusage[mem=100]'";
    let first = c.submit("ann", &format!("{wide} -W 2"));
    let one = c.submit("ann", "-q low -W 1 -P chip -R 'rusage[mem=100]'");
    let array = c.submit("ann", "-q low -n 2,4 -W 16 -P chip -R 'rusage[mem=100]' -J 'a[1-2]'");
    c.end(one, 0);
    c.end(element(array, 1), 0);
    let second = c.submit("ann", &format!("{wide} -W 3"));
    let five = c.submit("ann", "-q low -n 5 -W 1 -P chip");
    c.brsvadd("-n 3 -m h3 -u ann -b 22:14 -e 22:24");
    c.kill(ADMINISTRATOR, five);
    c.end(element(array, 2), 0);
    let two = c.submit("ann", "-q low -n 2 -W 1 -P other");
    let three = c.submit("ann", "-q low -n 1,3 -W 2 -P chip");
    c.brsvadd("-n 2 -m h1 -u ann -b 22:14 -e 22:24");
    c.stop(ADMINISTRATOR, two);
    // slots become free: each of the two plans anew, behind the other one
    c.requeue(ADMINISTRATOR, three);
    assert_eq!([first, second].map(|at| c.state(at)), ["PEND", "PEND"]);
}

/// The start of an older job takes slots that a younger one counts on for later.
#[test]
fn younger_reservation_is_planned_anew_when_an_older_job_starts_on_its_slots() {
    let mut c = site(3, 4).up();
    c.submit("ann", "-q fill -n 4 -W 7");
    let short = c.submit("ann", "-q wide -n 2 -W 7");
    c.submit("ann", "-q wide -n 2 -W 30");
    c.submit("ann", "-q fill -n 4 -W 30");
    let older = c.submit("ann", "-q wide -n 2 -W 40");
    let younger = c.submit("ann", "-q wide -n 3 -W 1 -R span[ptile=2]");
    assert_eq!(c.started().len(), 4);
    assert_eq!([older, younger].map(|at| reserved(&mut c, at).1), [Some(420); 2]);
    c.end(short, 0);
    assert_eq!(c.running_on(older), ["h2"; 2]);
    assert_eq!(reserved(&mut c, younger).1, Some(1800), "the first that ends after h1");
}
