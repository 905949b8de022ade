//! Preemption: who is preempted for whom, when the preemptor starts, and when the preempted jobs go
//! on.

use super::cluster::{ADMINISTRATOR, Cluster, ClusterBuilder, cluster};
use super::{Act, JobRef, Verb};
use crate::model::event::Event;
use crate::model::reason::{susp, term};
use crate::proto::force::Force;

/// One host with so many slots, and queue `high` that preempts jobs of queue `low`.
fn site(slots: u32) -> ClusterBuilder {
    site_with(slots, "", "")
}

/// [`site`] with further lines in both queues.
fn site_with(slots: u32, low: &str, high: &str) -> ClusterBuilder {
    cluster()
        .hosts(1, slots)
        .queue("low", &format!("PRIORITY = 20; {low}"))
        .queue("high", &format!("PRIORITY = 40; PREEMPTION = PREEMPTIVE[low]; {high}"))
}

fn states<const N: usize>(c: &mut Cluster, jobs: [JobRef; N]) -> [String; N] {
    jobs.map(|job| c.state(job))
}

/// The jobs that were ordered to be suspended since this was asked last.
fn suspended(c: &mut Cluster) -> Vec<JobRef> {
    let orders = c.orders().into_iter();
    orders.filter(|(_, act)| *act == Act::Suspend).map(|order| order.0).collect()
}

/// A job runs for ten seconds before the next is submitted, all with these options.
fn one_by_one<const N: usize>(c: &mut Cluster, options: [&str; N]) -> [JobRef; N] {
    options.map(|options| {
        let job = c.submit("ann", options);
        c.advance(10);
        job
    })
}

#[test]
fn job_that_finds_no_slot_preempts_the_job_of_a_lower_queue_that_was_started_last() {
    let mut c = site(3).up();
    let low = one_by_one(&mut c, ["-q low"; 3]);
    let high = c.submit("bob", "-q high");
    assert_eq!(states(&mut c, low), ["RUN", "RUN", "SSUSP"]);
    assert_eq!((c.state(high), c.suspended_for(low[2])), ("RUN".into(), susp::PREEMPTED));
    assert_eq!(suspended(&mut c), [low[2]]);
    let more = [(); 3].map(|()| c.submit("bob", "-q high"));
    assert_eq!(states(&mut c, low), ["SSUSP"; 3]);
    assert_eq!(states(&mut c, more), ["RUN", "RUN", "PEND"]);
}

#[test]
fn job_that_finds_a_free_slot_preempts_nobody() {
    let mut c = site(2).up();
    let low = c.submit("ann", "-q low");
    let high = c.submit("bob", "-q high");
    assert_eq!(states(&mut c, [low, high]), ["RUN", "RUN"]);
    assert_eq!(suspended(&mut c), []);
}

#[test]
fn preempted_job_goes_on_before_a_new_job_of_its_queue_starts() {
    let mut c = site(1).up();
    let [low, next] = ["-q low"; 2].map(|options| c.submit("ann", options));
    let [high, second] = ["-q high"; 2].map(|options| c.submit("bob", options));
    assert_eq!(states(&mut c, [low, next, high, second]), ["SSUSP", "PEND", "RUN", "PEND"]);
    c.end(high, 0);
    assert_eq!(states(&mut c, [low, next, second]), ["SSUSP", "PEND", "RUN"]);
    c.end(second, 0);
    assert_eq!(states(&mut c, [low, next]), ["RUN", "PEND"]);
    c.end(low, 0);
    assert_eq!(c.state(next), "RUN");
}

#[test]
fn preemptor_starts_when_the_host_has_told_of_the_suspension() {
    let mut c = site(2).up();
    let low = one_by_one(&mut c, ["-q low"; 2]);
    c.hosts_wait();
    let high = ["-q high"; 1].map(|options| c.submit("bob", options));
    c.advance(100);
    assert_eq!(suspended(&mut c), [low[1]]);
    assert_eq!(states(&mut c, high), ["PEND"]);
    c.suspends(low[1]);
    assert_eq!(states(&mut c, high), ["RUN"]);
    assert_eq!(suspended(&mut c), []);
}

#[test]
fn preemptor_starts_after_a_restart_of_mbatchd_between_order_and_suspension() {
    let mut c = site(2).up();
    let low = one_by_one(&mut c, ["-q low"; 2]);
    c.hosts_wait();
    let high = c.submit("bob", "-q high");
    assert_eq!(suspended(&mut c), [low[1]]);
    c.restart();
    // the host is told again, and no other job is preempted
    assert_eq!(suspended(&mut c), [low[1]]);
    assert_eq!(states(&mut c, [low[0], low[1], high]), ["RUN", "SSUSP", "PEND"]);
    c.suspends(low[1]);
    c.runs(high);
    assert_eq!(c.state(high), "RUN");
    c.restart();
    c.end(high, 0);
    c.runs(low[1]);
    assert_eq!(states(&mut c, low), ["RUN", "RUN"]);
}

#[test]
fn preempted_job_goes_on_when_its_preemptor_is_killed_before_it_starts() {
    let mut c = site(1).up();
    let low = c.submit("ann", "-q low");
    c.hosts_wait();
    let high = c.submit("bob", "-q high");
    assert_eq!(suspended(&mut c), [low]);
    c.kill("bob", high);
    assert_eq!(c.orders(), [(low, Act::Resume)]);
    c.runs(low);
    assert_eq!(c.state(low), "RUN");
}

#[test]
fn job_whose_queue_ends_preempted_jobs_is_ended() {
    let mut c = site_with(1, "TERMINATE_WHEN = PREEMPT", "").up();
    let low = c.submit("ann", "-q low");
    let high = c.submit("bob", "-q high");
    assert_eq!(c.orders(), [(low, Act::Terminate { exit_info: term::PREEMPT })]);
    assert_eq!(states(&mut c, [low, high]), ["EXIT", "RUN"]);
    assert_eq!(c.accounted()[0].exit_info, term::PREEMPT);
}

#[test]
fn queue_of_the_larger_preference_is_preempted_first_then_that_of_the_lower_priority() {
    let high = |preemption: &str| {
        let queues = [("a", 10), ("b", 20), ("c", 30)];
        let add = |site: ClusterBuilder, (name, priority): (&str, u32)| {
            site.queue(name, &format!("PRIORITY = {priority}"))
        };
        let site = queues.into_iter().fold(cluster().hosts(1, 3), add);
        let mut c = site.queue("high", &format!("PRIORITY = 40; PREEMPTION = {preemption}")).up();
        let low = one_by_one(&mut c, ["-q a", "-q b", "-q c"]);
        let mut order = Vec::new();
        for _ in 0..3 {
            c.submit("bob", "-q high");
            order.extend(suspended(&mut c));
        }
        order.into_iter().map(|at| low.iter().position(|job| *job == at).unwrap()).collect()
    };
    let order: Vec<usize> = high("PREEMPTIVE");
    assert_eq!(order, [0, 1, 2]);
    let order: Vec<usize> = high("PREEMPTIVE[a c+1 b+2]");
    assert_eq!(order, [1, 2, 0]);
    let order: Vec<usize> = high("PREEMPTIVE[c]");
    assert_eq!(order, [2]);
}

#[test]
fn queue_that_is_preemptable_is_preempted_by_the_queues_that_it_names() {
    let site = cluster().hosts(1, 1);
    let site = site.queue("low", "PRIORITY = 20; PREEMPTION = PREEMPTABLE[high]");
    let site = site.queue("mid", "PRIORITY = 30").queue("high", "PRIORITY = 40");
    let mut c = site.up();
    let low = c.submit("ann", "-q low");
    let mid = c.submit("ann", "-q mid");
    assert_eq!(states(&mut c, [low, mid]), ["RUN", "PEND"]);
    let high = c.submit("ann", "-q high");
    assert_eq!(states(&mut c, [low, high]), ["SSUSP", "RUN"]);
    // the vacated slots are not free for a queue that may not preempt
    c.kill("ann", high);
    assert_eq!(states(&mut c, [low, mid]), ["RUN", "PEND"]);
}

#[test]
fn job_that_ran_for_the_shortest_time_is_preempted_where_the_site_wants_that() {
    let mut c = site(2).param("PREEMPT_FOR = LEAST_RUN_TIME").up();
    let low = one_by_one(&mut c, ["-q low"; 2]);
    c.stop("ann", low[0]);
    c.advance(100);
    c.resume("ann", low[0]);
    c.submit("bob", "-q high");
    assert_eq!(states(&mut c, low), ["SSUSP", "RUN"]);
}

#[test]
fn preemption_that_would_not_help_preempts_nobody() {
    let mut c = site_with(1, "", "UJOB_LIMIT = 1").up();
    c.load("h1", "mem=100");
    let low = c.submit("ann", "-q low");
    let wants = ["-R 'select[mem>200]'", "-m h2", "-R 'rusage[mem=200]'", "-n 2", "-x"];
    for options in wants {
        let _ = c.try_submit("bob", &format!("-q high {options}"));
    }
    assert_eq!((c.state(low), suspended(&mut c)), ("RUN".into(), vec![]));
}

#[test]
fn parallel_job_preempts_as_few_jobs_as_it_needs_beside_the_free_slots() {
    let mut c = site(4).up();
    let low = one_by_one(&mut c, ["-q low -n 2", "-q low"]);
    c.hosts_wait();
    let high = c.submit("bob", "-q high -n 2");
    assert_eq!(suspended(&mut c), [low[1]]);
    // the free slot is kept for it
    let next = c.submit("ann", "-q low");
    c.advance(60);
    assert_eq!(states(&mut c, [high, next]), ["PEND", "PEND"]);
    c.suspends(low[1]);
    c.runs(high);
    assert_eq!(states(&mut c, [low[0], low[1], high, next]), ["RUN", "SSUSP", "RUN", "PEND"]);
}

#[test]
fn parallel_job_leaves_out_a_job_that_a_larger_one_makes_superfluous() {
    let mut c = site(4).up();
    let low = one_by_one(&mut c, ["-q low -n 3", "-q low"]);
    c.submit("bob", "-q high -n 3");
    // the one started last would be one slot of three: the other is needed, and does alone
    assert_eq!(states(&mut c, low), ["SSUSP", "RUN"]);
}

#[test]
fn fewest_jobs_are_preempted_where_the_site_wants_that() {
    for (words, want) in
        [("", ["RUN", "SSUSP", "SSUSP"]), ("OPTIMAL_MINI_JOB", ["SSUSP", "RUN", "RUN"])]
    {
        let mut c = site(4).param(&format!("PREEMPT_FOR = {words} MINI_JOB")).up();
        let low = one_by_one(&mut c, ["-q low -n 2", "-q low", "-q low"]);
        c.submit("bob", "-q high -n 2");
        assert_eq!(states(&mut c, low), want);
    }
}

#[test]
fn elements_of_an_array_preempt_as_many_jobs_as_they_need_slots() {
    let mut c = site(4).up();
    let low = one_by_one(&mut c, ["-q low"; 4]);
    c.submit("bob", "-q high -J 'a[1-3]'");
    assert_eq!(states(&mut c, low), ["RUN", "SSUSP", "SSUSP", "SSUSP"]);
    assert_eq!(c.host("h1").run, 4);
}

#[test]
fn job_is_preempted_no_more_often_than_the_limit_even_after_a_restart() {
    let mut c = site(1).param("MAX_JOB_PREEMPT = 2").up();
    let low = c.submit("ann", "-q low");
    for n in 0..3 {
        let high = c.submit("bob", "-q high");
        let want = if n < 2 { ["SSUSP", "RUN"] } else { ["RUN", "PEND"] };
        assert_eq!(states(&mut c, [low, high]), want, "{n}");
        c.restart();
        c.kill("bob", high);
        assert_eq!(c.state(low), "RUN");
    }
}

#[test]
fn limit_of_preemptions_of_an_application_profile_and_a_queue_comes_before_that_of_lsb_params() {
    let site = site_with(1, "MAX_JOB_PREEMPT = 1", "").param("MAX_JOB_PREEMPT = 2");
    let mut c = site.application("app", "MAX_JOB_PREEMPT = 3").up();
    for (options, most) in [("-q low", 1), ("-q low -app app", 3)] {
        let low = c.submit("ann", options);
        let times = (0..5).filter(|_| {
            let high = c.submit("bob", "-q high");
            let preempted = c.state(low) == "SSUSP";
            c.kill("bob", high);
            preempted
        });
        assert_eq!(times.count(), most, "{options}");
        c.kill("ann", low);
    }
}

#[test]
fn requeued_job_keeps_its_preemptions_where_the_site_wants_that() {
    for (reset, want) in [("Y", "SSUSP"), ("N", "RUN")] {
        let site = site(1).param("MAX_JOB_PREEMPT = 1");
        let mut c = site.param(&format!("MAX_JOB_PREEMPT_RESET = {reset}")).up();
        let low = c.submit("ann", "-q low");
        let high = c.submit("bob", "-q high");
        c.kill("bob", high);
        c.requeue("ann", low);
        assert_eq!(c.state(low), "RUN");
        c.submit("bob", "-q high");
        assert_eq!(c.state(low), want, "{reset}");
    }
}

/// Is a job of queue `low` with these options preempted after it has run for so long?
fn preempted_after(secs: u64, low: &str, options: &str) -> bool {
    let mut c = site_with(1, low, "").up();
    let job = c.submit("ann", &format!("-q low {options}"));
    c.advance(secs);
    c.submit("bob", "-q high");
    c.state(job) == "SSUSP"
}

#[test]
fn jobs_that_ran_for_long_or_end_soon_are_not_preempted() {
    assert!(preempted_after(119, "NO_PREEMPT_RUN_TIME = 2", ""));
    assert!(!preempted_after(120, "NO_PREEMPT_RUN_TIME = 2", ""));
    assert!(preempted_after(299, "NO_PREEMPT_RUN_TIME = 50%", "-W 10"));
    assert!(!preempted_after(300, "NO_PREEMPT_RUN_TIME = 50%", "-W 10"));
    assert!(preempted_after(900, "NO_PREEMPT_RUN_TIME = 50%", ""));
    assert!(preempted_after(479, "NO_PREEMPT_FINISH_TIME = 2", "-W 10"));
    assert!(!preempted_after(480, "NO_PREEMPT_FINISH_TIME = 2", "-W 10"));
    assert!(preempted_after(539, "NO_PREEMPT_FINISH_TIME = 10%", "-W 10"));
    assert!(!preempted_after(540, "NO_PREEMPT_FINISH_TIME = 10%", "-W 10"));
    assert!(preempted_after(540, "NO_PREEMPT_FINISH_TIME = -1", "-W 10"));
}

#[test]
fn job_is_preempted_when_it_has_run_without_interruption_for_long_enough() {
    let mut c = site_with(1, "NO_PREEMPT_INTERVAL = 2", "").up();
    let low = c.submit("ann", "-q low");
    let high = c.submit("bob", "-q high");
    c.advance(119);
    assert_eq!(states(&mut c, [low, high]), ["RUN", "PEND"]);
    c.advance(1);
    assert_eq!(states(&mut c, [low, high]), ["SSUSP", "RUN"]);
    c.end(high, 0);
    c.submit("bob", "-q high");
    c.advance(119);
    assert_eq!(c.state(low), "RUN");
    c.advance(1);
    assert_eq!(c.state(low), "SSUSP");
}

#[test]
fn job_preempts_others_after_the_delay_of_its_queue() {
    let mut c = site_with(1, "", "PREEMPT_DELAY = 30").up();
    let low = c.submit("ann", "-q low");
    let high = c.submit("bob", "-q high");
    c.advance(29);
    assert_eq!(states(&mut c, [low, high]), ["RUN", "PEND"]);
    c.advance(1);
    assert_eq!(states(&mut c, [low, high]), ["SSUSP", "RUN"]);
}

#[test]
fn total_time_of_preemption_protects_a_job() {
    let mut c = site_with(1, "MAX_TOTAL_TIME_PREEMPT = 1", "").up();
    let low = c.submit("ann", "-q low");
    for want in ["SSUSP", "SSUSP", "RUN"] {
        let high = c.submit("bob", "-q high");
        c.advance(30);
        assert_eq!(c.state(low), want);
        c.kill("bob", high);
    }
}

#[test]
fn exclusive_jobs_and_those_of_backfill_queues_are_preempted_where_the_site_wants_that() {
    let lines = "EXCLUSIVE = Y; BACKFILL = N";
    let backfill = "BACKFILL = Y";
    for (low, options, words, want) in [
        (lines, "-x", "0", "RUN"),
        (lines, "", "0", "SSUSP"),
        (backfill, "", "EXCLUSIVE", "RUN"),
        (backfill, "", "BACKFILL", "SSUSP"),
    ] {
        let mut c = site_with(1, low, "").param(&format!("PREEMPT_JOBTYPE = {words}")).up();
        let job = c.submit("ann", &format!("-q low {options}"));
        c.submit("bob", "-q high");
        assert_eq!(c.state(job), want, "{low} {options} {words}");
    }
}

#[test]
fn job_preempts_when_the_host_takes_jobs_again_after_a_start() {
    let mut c = site(1).param("JOB_ACCEPT_INTERVAL = 1").param("MBD_SLEEP_TIME = 20").up();
    let low = c.submit("ann", "-q low");
    let high = c.submit("bob", "-q high");
    c.advance(19);
    assert_eq!(states(&mut c, [low, high]), ["RUN", "PEND"]);
    c.advance(1);
    assert_eq!(states(&mut c, [low, high]), ["SSUSP", "RUN"]);
}

#[test]
fn exclusive_job_preempts_all_jobs_of_its_host_where_the_site_wants_that() {
    let mut c = site_with(3, "", "EXCLUSIVE = Y").param("PREEMPT_JOBTYPE = EXCLUSIVE").up();
    let low = one_by_one(&mut c, ["-q low"; 2]);
    let high = c.submit("bob", "-q high -x");
    assert_eq!(states(&mut c, [low[0], low[1], high]), ["SSUSP", "SSUSP", "RUN"]);
    c.end(high, 0);
    assert_eq!(states(&mut c, low), ["RUN", "RUN"]);
}

#[test]
fn exclusive_job_is_preempted_and_goes_on_alone_where_the_site_wants_that() {
    let mut c = site_with(2, "EXCLUSIVE = Y", "").param("PREEMPT_JOBTYPE = EXCLUSIVE").up();
    let low = c.submit("ann", "-q low -x");
    let high = c.submit("bob", "-q high");
    assert_eq!(states(&mut c, [low, high]), ["SSUSP", "RUN"]);
    c.end(high, 0);
    assert_eq!(c.state(low), "RUN");
}

#[test]
fn jobs_that_a_limit_keeps_apart_preempt_one_at_a_time() {
    let mut c = site_with(2, "", "UJOB_LIMIT = 1").up();
    let low = one_by_one(&mut c, ["-q low"; 2]);
    c.hosts_wait();
    let high = ["-q high", "-q high -R 'select[mem>0]'"].map(|options| c.submit("bob", options));
    c.advance(5);
    assert_eq!(suspended(&mut c), [low[1]]);
    c.suspends(low[1]);
    c.runs(high[0]);
    c.advance(5);
    assert_eq!(suspended(&mut c), []);
    assert_eq!(states(&mut c, high), ["RUN", "PEND"]);
}

#[test]
fn job_that_brun_has_started_is_not_preempted() {
    let mut c = site(1).up();
    let first = c.submit("ann", "-q low");
    let low = c.submit("ann", "-q low");
    let force = Force { hosts: vec![("h1".to_owned(), 0)], ..Force::default() };
    assert_eq!(c.control(ADMINISTRATOR, Verb::Force(force), low), [0]);
    c.kill("ann", first);
    assert_eq!(c.state(low), "RUN");
    c.submit("bob", "-q high");
    assert_eq!(c.state(low), "RUN");
}

#[test]
fn preempted_job_that_its_user_stops_and_resumes_waits_for_its_slots() {
    let mut c = site(1).up();
    let low = c.submit("ann", "-q low");
    let high = c.submit("bob", "-q high");
    c.resume("ann", low);
    assert_eq!((c.state(low), c.suspended_for(low)), ("SSUSP".into(), susp::PREEMPTED));
    c.stop("ann", low);
    assert_eq!(c.state(low), "USUSP");
    c.resume("ann", low);
    assert_eq!((c.state(low), c.suspended_for(low)), ("SSUSP".into(), susp::PREEMPTED));
    c.end(high, 0);
    assert_eq!(c.state(low), "RUN");
}

#[test]
fn chain_of_queues_resumes_the_higher_one_first() {
    let site = cluster().hosts(1, 1).queue("low", "PRIORITY = 10");
    let site = site.queue("mid", "PRIORITY = 20; PREEMPTION = PREEMPTIVE PREEMPTABLE");
    let mut c = site.queue("high", "PRIORITY = 30; PREEMPTION = PREEMPTIVE").up();
    let [low, mid, high] = ["-q low", "-q mid", "-q high"].map(|o| c.submit("ann", o));
    assert_eq!(states(&mut c, [low, mid, high]), ["SSUSP", "SSUSP", "RUN"]);
    c.end(high, 0);
    assert_eq!(states(&mut c, [low, mid]), ["SSUSP", "RUN"]);
    c.end(mid, 0);
    assert_eq!(c.state(low), "RUN");
}

#[test]
fn log_tells_of_each_preemption_once() {
    let mut c = site(1).up();
    c.submit("ann", "-q low");
    c.submit("bob", "-q high");
    let told = |event: &Event| match event {
        Event::JobStatus(status) => status.reason == susp::PREEMPTED,
        _ => false,
    };
    assert_eq!(c.logged(told), 1);
}

#[test]
fn switch_to_a_queue_that_nobody_preempts_ends_the_preemption_when_there_is_room() {
    let site = site(1).queue("own", "PRIORITY = 20");
    let mut c = site.up();
    let low = c.submit("ann", "-q low");
    let high = c.submit("bob", "-q high");
    assert_eq!(c.control("ann", Verb::Switch { queue: "own".into() }, low), [0]);
    assert_eq!(c.state(low), "SSUSP");
    c.end(high, 0);
    assert_eq!(c.state(low), "RUN");
}

#[test]
fn repeated_suspension_that_reaches_the_host_after_the_resumption_is_taken_back() {
    let mut c = site(1).up();
    let low = c.submit("ann", "-q low");
    let high = c.submit("bob", "-q high");
    c.end(high, 0);
    assert_eq!(c.state(low), "RUN");
    c.orders();
    c.suspends(low);
    assert_eq!(c.orders(), [(low, Act::Resume)]);
    assert_eq!(c.state(low), "RUN");
}

#[test]
fn preempted_job_that_was_stopped_and_resumed_by_its_user_stays_preempted_over_a_restart() {
    let mut c = site(1).up();
    let low = c.submit("ann", "-q low");
    let high = c.submit("bob", "-q high");
    c.stop("ann", low);
    assert_eq!(c.state(low), "USUSP");
    c.resume("ann", low);
    assert_eq!(states(&mut c, [low, high]), ["SSUSP", "RUN"]);
    c.restart();
    assert_eq!(states(&mut c, [low, high]), ["SSUSP", "RUN"]);
    c.end(high, 0);
    assert_eq!(c.state(low), "RUN");
}

#[test]
fn preempted_job_does_not_go_on_before_the_job_that_had_it_preempted_has_started() {
    let mut c = cluster()
        .host("h1", 3)
        .host("h2", 1)
        .queue("low", "PRIORITY = 10")
        .queue("mid", "PRIORITY = 20; PREEMPTION = PREEMPTIVE[low]")
        .queue("wide", "PRIORITY = 30; PREEMPTION = PREEMPTABLE[top]")
        .queue("top", "PRIORITY = 40; PREEMPTION = PREEMPTIVE[low]")
        .up();
    let wide = c.submit("ann", "-q wide -n 3 -R span[ptile=2]");
    let low = c.submit("ann", "-q low");
    // the wide job waits for its slot on h2, and nobody else has the two that it left on h1
    let top = ["-m h2", "-n 2 -m h1"].map(|on| c.submit("bob", &format!("-q top {on}")));
    let mid = c.submit("cid", "-q mid");
    assert_eq!(states(&mut c, [wide, low, top[1], mid]), ["SSUSP", "RUN", "RUN", "PEND"]);
    c.orders();
    c.end(top[1], 0);
    assert_eq!(c.state(mid), "RUN");
    assert!(suspended(&mut c).len() <= 1);
}

#[test]
fn another_job_is_preempted_when_the_host_of_the_first_one_does_not_answer() {
    let high = "PRIORITY = 40; PREEMPTION = PREEMPTIVE[low]";
    let mut c = cluster().hosts(2, 1).queue("low", "PRIORITY = 20").queue("high", high).up();
    let low = one_by_one(&mut c, ["-q low"; 2]);
    c.hosts_wait();
    let high = c.submit("bob", "-q high");
    assert_eq!(suspended(&mut c), [low[1]]);
    c.lose("h2");
    c.advance(300);
    assert_eq!((suspended(&mut c), c.state(low[1])), (vec![low[0]], "UNKWN".into()));
    c.suspends(low[0]);
    assert_eq!(c.running_on(high), ["h1"]);
}

#[test]
fn preempted_job_takes_the_slot_that_was_kept_for_a_job_that_now_preempts_elsewhere() {
    let wide = "PRIORITY = 60; PREEMPTION = PREEMPTIVE[mid]; PREEMPT_DELAY = 30; \
                SLOT_RESERVE = MAX_RESERVE_TIME[20]";
    let mut c = cluster()
        .host("h1", 3)
        .host("h2", 2)
        .queue("low", "PRIORITY = 20")
        .queue("mid", "PRIORITY = 20")
        .queue("high", "PRIORITY = 40; PREEMPTION = PREEMPTIVE[low]")
        .queue("wide", wide)
        .up();
    let low = c.submit("ann", "-q low -m h1");
    c.submit("bob", "-q high -m h1");
    let on_h2 = ["-q mid -m h2"; 2].map(|options| c.submit("bob", options));
    // it keeps the third slot of h1
    let wide = c.submit("cid", "-q wide -n 2 -R span[hosts=1]");
    let high = c.submit("bob", "-q high -m h1");
    assert_eq!(states(&mut c, [low, wide, high]), ["SSUSP", "PEND", "RUN"]);
    c.hosts_wait();
    c.orders();
    c.advance(40);
    let mut orders = c.orders();
    orders.sort_by_key(|order| order.0);
    let suspended = on_h2.map(|job| (job, Act::Suspend));
    assert_eq!(orders, [vec![(low, Act::Resume)], suspended.to_vec()].concat());
}
