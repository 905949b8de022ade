//! When the log is switched.

use super::cluster::{Cluster, cluster, element};
use super::*;
use crate::model::time::US;
use crate::proto::client::Col;
use std::collections::BTreeSet;

/// Runs so many jobs to their end; how often the log was switched meanwhile.
fn finish(r: &mut Rig, jobs: usize) -> usize {
    let before = r.log.len();
    let mut ended = 0;
    while ended < jobs {
        for (conn, key) in r.starts() {
            r.report(conn, key, AttemptPhase::Running);
            r.report(conn, key, done());
            ended += 1;
        }
    }
    let switches = |recs: &[Record]| {
        recs.iter().filter(|rec| matches!(rec.event, Event::LogSwitch { .. })).count()
    };
    let switched = switches(&r.log[before..]);
    if switched > 0 {
        r.step(Input::Switched { ok: true });
    }
    switched
}

#[test]
fn switch_waits_until_as_much_was_written_as_it_carries_over() {
    let mut c = conf();
    c.batch.params.max_job_num = 100;
    let mut r = Rig::of(c);
    for _ in 0..12_000 {
        r.submit(spec("x")).unwrap();
    }
    // nothing has to be carried over yet
    assert_eq!(finish(&mut r, 100), 1);
    // now there are as many pending records as a few thousand jobs write
    assert_eq!((0..15).map(|_| finish(&mut r, 100)).sum::<usize>(), 0);
    let more: usize = (0..50).map(|_| finish(&mut r, 100)).sum();
    assert!((1..=3).contains(&more), "{more} switches");
    // a switch that failed is not paid again
    r.step(Input::Switched { ok: false });
    r.now.mono_us += 61 * crate::model::time::US;
    assert_eq!(finish(&mut r, 100), 1);
}

#[test]
fn few_records_are_carried_over_as_often_as_is_asked_for() {
    let mut c = conf();
    c.batch.params.max_job_num = 100;
    let mut r = Rig::of(c);
    for _ in 0..500 {
        r.submit(spec("x")).unwrap();
    }
    assert_eq!((0..5).map(|_| finish(&mut r, 100)).sum::<usize>(), 5);
}

/// The last job has left memory when the log is switched: what is read of the new log begins with
/// jobs of lower IDs.
#[test]
fn an_id_is_not_given_again_after_a_switch_and_a_restart() {
    let mut r = Rig::new();
    let ids: Vec<u32> = (0..3).map(|_| r.submit(spec("x")).unwrap()).collect();
    let last = ids[2];
    let live = r.read_back().into_iter().filter(|rec| match &rec.event {
        Event::JobNew(new) => new.job != last,
        _ => false,
    });
    r.now.wall_us += 100_000_000;
    let mut records = r.mbd.switch_head(r.now.secs());
    records.extend(live);
    let of =
        |records| Mbatchd::new(conf(), "h1", Recovered { records, epoch: 2, ..<_>::default() });
    assert_eq!(of(records.clone()).state.next_job(), last + 1);
    // one that was submitted since decides, also where the numbers have begun anew
    let rec = |job| {
        let new = r.log.iter().find_map(|rec| match &rec.event {
            Event::JobNew(new) => Some((**new).clone()),
            _ => None,
        });
        let (time, mut new) = (r.now.secs() + 1, new.unwrap());
        (new.job, new.submit_time) = (job, time);
        Record { time, event: Event::JobNew(Box::new(new)) }
    };
    records.push(rec(last + 1));
    assert_eq!(of(records.clone()).state.next_job(), last + 2);
    records.push(rec(ids[0] + 500));
    records.push(rec(last + 7));
    assert_eq!(of(records).state.next_job(), last + 8);
}

#[test]
fn an_id_is_not_given_again_after_the_clock_was_set_back_and_a_switch() {
    let mut r = Rig::new();
    let (first, last) = (r.submit(spec("x")).unwrap(), r.submit(spec("x")).unwrap());
    let live = r.read_back().into_iter().filter(|rec| match &rec.event {
        Event::JobNew(new) => new.job == first,
        _ => false,
    });
    r.now.wall_us -= 3600 * crate::model::time::US as i64;
    let mut records = r.mbd.switch_head(r.now.secs());
    records.extend(live);
    r.mbd.reload(Recovered { records, epoch: 2, ..<_>::default() });
    assert_eq!(r.mbd.state.next_job(), last + 1);
}

#[test]
fn the_id_of_a_last_job_that_damage_took_is_not_given_again_after_a_switch() {
    let mut r = Rig::new();
    let ids: Vec<u32> = (0..3).map(|_| r.submit(spec("x")).unwrap()).collect();
    let of = |rec: &Record| crate::log::codec::job_of(&rec.event).job;
    let records = r.read_back().into_iter().filter(|rec| of(rec) != ids[2]).collect();
    r.mbd.reload(Recovered { records, epoch: 2, seen_ids: ids.clone(), ..<_>::default() });
    let head = r.mbd.switch_head(r.now.secs());
    r.mbd.reload(Recovered { records: head, epoch: 3, ..<_>::default() });
    assert_eq!(r.submit(spec("x")).unwrap(), ids[2] + 1);
}

#[test]
fn a_cleaned_job_whose_end_the_log_lost_uses_no_slot() {
    let mut r = Rig::new();
    let id = r.submit(spec("x")).unwrap();
    let (conn, key) = r.starts()[0];
    r.report(conn, key, AttemptPhase::Running);
    let mut records = r.log.clone();
    records.push(Record { time: 1, event: Event::JobClean { at: JobRef { job: id, idx: 0 } } });
    r.mbd.reload(Recovered { records, epoch: 2, ..Default::default() });
    let left = r.mbd.state.counts().hosts().map(|of| of.1.slots.all()).sum::<u64>();
    assert_eq!((left, r.mbd.state.job_count()), (0, 0));
}

#[test]
fn an_array_whose_elements_are_told_of_out_of_order_leaves_memory() {
    let mut c = conf();
    c.batch.params.clean_period = 60;
    let mut r = Rig::of(c);
    let id = r.submit(JobSpec { name: "a[1-2]".into(), ..spec("x") }).unwrap();
    let starts = r.starts();
    let ended = |key, time| {
        let phase = done();
        SbdMsg::State(Box::new(TaskState { key, phase, pid: 7, time, ..Default::default() }))
    };
    r.now.wall_us += 20_000_000;
    let now = r.now.secs();
    for ((conn, key), ago) in starts.into_iter().zip([1, 9]) {
        r.step(Input::Msg { conn, msg: Msg::Sbd(ended(key, now - ago)) });
    }
    assert_eq!(r.mbd.state.job(id).unwrap().tally().done, 2);
    r.now.mono_us += 100_000_000;
    r.now.wall_us += 100_000_000;
    r.step(Input::Tick);
    assert!(r.mbd.state.job(id).is_none());
}

#[test]
fn a_finished_job_that_is_named_still_is_not_looked_at_all_the_time() {
    let mut c = conf();
    c.batch.params.clean_period = 0;
    let mut r = Rig::of(c);
    let first = r.submit(spec("x")).unwrap();
    let name = JobSpec { begin_time: r.now.secs() + 9999, ..spec("y") };
    let second = r.submit(JobSpec { depend: format!("done({first})"), ..name }).unwrap();
    r.works = false;
    finish(&mut r, 1);
    for _ in 0..10 {
        r.work();
    }
    assert!(r.mbd.state.job(first).is_some() && !r.mbd.has_work());
    // it leaves memory once nobody names it
    assert_eq!(r.kill(USER, second), 0);
    r.works = true;
    r.now.mono_us += 2_000_000;
    r.now.wall_us += 2_000_000;
    r.step(Input::Tick);
    assert!(r.mbd.state.job(first).is_none());
}

#[test]
fn job_that_ends_before_its_submission_by_a_clock_set_back_leaves_memory() {
    let mut c = conf();
    c.batch.params.clean_period = 60;
    let mut r = Rig::of(c);
    let job = r.submit(spec("x")).unwrap();
    r.now.wall_us -= 3600 * 1_000_000;
    finish(&mut r, 1);
    assert!(r.mbd.state.job(job).is_some());
    r.now.mono_us += 100_000_000;
    r.now.wall_us += 100_000_000;
    r.step(Input::Tick);
    assert!(r.mbd.state.job(job).is_none());
}

#[test]
fn done_jobs_leave_memory_before_others() {
    let site = || cluster().hosts(1, 9).param("CLEAN_PERIOD = 100");
    let known = |c: &mut Cluster| {
        let rows = c.listing(&[Col::Job]);
        rows.iter().map(|row| row[0].as_u64().unwrap() as u32).collect::<BTreeSet<_>>()
    };
    let mut c = site().param("CLEAN_PERIOD_DONE = 10").up();
    let [exit, done, mixed] = ["", "", "-J 'a[1-2]'"].map(|options| c.submit("ann", options));
    let named = c.submit("ann", "");
    c.started();
    c.end(exit, 3);
    c.end(done, 0);
    c.end(named, 0);
    c.end(element(mixed, 1), 3);
    c.end(element(mixed, 2), 0);
    let waits = c.submit("ann", &format!("-b +200 -w 'done({})'", named.job));
    c.advance(9);
    assert_eq!(known(&mut c).len(), 5);
    c.advance(2);
    let left = BTreeSet::from([exit.job, mixed.job, named.job, waits.job]);
    assert_eq!(known(&mut c), left);
    c.advance(80);
    assert_eq!(known(&mut c), left);
    // nobody names it any more
    c.kill("ann", waits);
    c.advance(10);
    assert_eq!(known(&mut c), BTreeSet::from([waits.job]));
    // without the parameter all stay as long
    c.reconfigure(site());
    let last = c.submit("ann", "");
    c.started();
    c.end(last, 0);
    c.advance(99);
    assert!(known(&mut c).contains(&last.job));
    c.advance(2);
    assert!(!known(&mut c).contains(&last.job));
}

#[test]
fn log_that_was_switched_before_a_restart_waits_for_the_shortest_period() {
    let mut c = conf();
    c.batch.params.max_job_num = 5;
    c.batch.params.log.min_switch_period = 600;
    let mut r = Rig::of(c.clone());
    let run = |r: &mut Rig| {
        (0..5).for_each(|_| assert!(r.submit(spec("x")).is_ok()));
        finish(r, 5)
    };
    assert_eq!([run(&mut r), run(&mut r)], [1, 0]);
    // another mbatchd reads the new log so many seconds later
    for (secs, switches) in [(100, 0), (601, 1)] {
        let (mono_us, wall_us) = (r.now.mono_us + secs * US, r.now.wall_us + (secs * US) as i64);
        let records = r.mbd.switch_head(r.now.secs());
        let found = Recovered { records, epoch: 2, ..Recovered::default() };
        let now = Now { mono_us, wall_us };
        let mut again = Rig::with(Mbatchd::new(c.clone(), "h1", found), now);
        assert_eq!(run(&mut again), switches, "{secs}");
    }
}
