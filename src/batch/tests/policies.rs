//! Each policy of the scheduler by itself: which job comes first, which limits and conditions keep
//! it waiting and with which reason, and which hosts it gets.

use super::cluster::{Cluster, ClusterBuilder, cluster, element};
use super::{JobRef, Verb};
use crate::model::event::Event;
use crate::model::reason::{PendReason, err};

/// Status bits of LIM: busy, locked by its administrator, unavailable.
const BUSY: &str = "status=1";
const LOCKED: &str = "status=2";
const UNAVAILABLE: &str = "status=32";

/// One host with one slot, which a job of ann holds.
fn full(site: ClusterBuilder) -> (Cluster, JobRef) {
    let mut c = site.hosts(1, 1).up();
    let running = c.submit("ann", "");
    assert_eq!(c.started(), [running]);
    (c, running)
}

/// The order in which jobs start that all wait for one slot.
fn order(c: &mut Cluster, running: JobRef, count: usize) -> Vec<JobRef> {
    let mut order = Vec::new();
    c.end(running, 0);
    for _ in 0..count {
        let next = c.started();
        assert_eq!(next.len(), 1, "after {order:?}");
        c.end(next[0], 0);
        order.extend(next);
    }
    order
}

fn lsb_hosts(columns: &str, rows: &str) -> String {
    format!("Begin Host\nHOST_NAME {columns}\n{rows}\nEnd Host\n")
}

fn only_reason(c: &mut Cluster, at: JobRef) -> PendReason {
    let reasons = c.reasons(at);
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    reasons[0].0
}

// ---- whose turn it is ----

#[test]
fn jobs_of_one_queue_start_as_they_came() {
    let (mut c, running) = full(cluster());
    let jobs = ["ann", "bob", "ann"].map(|user| c.submit(user, ""));
    assert_eq!(order(&mut c, running, 3), jobs);
}

#[test]
fn queues_of_different_priority_are_served_by_priority() {
    let site = cluster().queue("low", "PRIORITY = 20").queue("high", "PRIORITY = 40");
    let (mut c, running) = full(site);
    let [low, normal, high] =
        ["low", "normal", "high"].map(|q| c.submit("ann", &format!("-q {q}")));
    assert_eq!(order(&mut c, running, 3), [high, normal, low]);
}

#[test]
fn jobs_with_a_user_priority_start_by_it() {
    let (mut c, running) = full(cluster().param("MAX_USER_PRIORITY = 100"));
    // without -sp it is half of the most
    let [low, plain, high] = ["-sp 10", "", "-sp 90"].map(|options| c.submit("ann", options));
    assert_eq!(order(&mut c, running, 3), [high, plain, low]);
}

#[test]
fn job_moved_to_the_top_starts_first_and_one_moved_to_the_bottom_last() {
    let (mut c, running) = full(cluster());
    let jobs: Vec<JobRef> = (0..3).map(|_| c.submit("ann", "")).collect();
    let moved = |top| Verb::Move { top, position: 1 };
    assert_eq!(c.control("ann", moved(true), jobs[2]), [0]);
    assert_eq!(c.control("ann", moved(false), jobs[0]), [0]);
    assert_eq!(order(&mut c, running, 3), [jobs[2], jobs[1], jobs[0]]);
}

#[test]
fn elements_of_an_array_start_by_their_index_before_later_jobs() {
    let (mut c, running) = full(cluster());
    let array = c.submit("ann", "-J 'a[1-3]'");
    let later = c.submit("ann", "");
    let elements = [1, 2, 3].map(|idx| element(array, idx));
    assert_eq!(order(&mut c, running, 4), [&elements[..], &[later]].concat());
}

#[test]
fn job_that_finds_no_host_lets_others_of_its_queue_go() {
    let mut c = cluster().hosts(1, 2).up();
    let large = c.submit("ann", "-n 3");
    let small = c.submit("ann", "");
    assert_eq!(
        (c.started(), only_reason(&mut c, large)),
        (vec![small], PendReason::NotEnoughSlots)
    );
}

// ---- limits ----

/// A second job of ann waits for this reason while the first runs, a job of bob starts or waits
/// likewise, and what waits starts when the first has ended.
fn limited(site: ClusterBuilder, options: [&str; 3], reason: PendReason, bob_starts: bool) {
    let mut c = site.up();
    let [first, second, other] = [("ann", options[0]), ("ann", options[1]), ("bob", options[2])]
        .map(|(u, o)| c.submit(u, o));
    let started = [Some(first), bob_starts.then_some(other)];
    assert_eq!(c.started(), started.into_iter().flatten().collect::<Vec<_>>());
    assert!(c.waits_for(second, reason), "{:?}", c.reasons(second));
    c.end(first, 0);
    assert_eq!(c.started().first(), Some(&second));
}

fn queue(lines: &str) -> ClusterBuilder {
    cluster().hosts(2, 4).queue("normal", &format!("PRIORITY = 30; {lines}"))
}

#[test]
fn queue_at_its_slot_limit_starts_nobody() {
    let site = queue("QJOB_LIMIT = 2");
    limited(site, ["-n 2", "", ""], PendReason::QueueJobLimit, false);
}

/// A job that a queue's limit holds back starts when a job of another user has left the queue's
/// slots on a host that takes nothing itself.
fn queue_frees_slots_elsewhere(others: &str, waiting: &str, reason: PendReason) {
    let mut c = queue("QJOB_LIMIT = 3").up();
    let other = c.submit("bob", others);
    let held = c.submit("ann", waiting);
    assert!(c.waits_for(held, reason), "{:?}", c.reasons(held));
    c.lose("h2");
    assert_eq!(c.started(), [other]);
    assert_eq!(c.control("bob", Verb::Remove, other), [0]);
    assert_eq!(c.started(), [held]);
}

#[test]
fn queue_with_too_few_slots_left_for_a_job_starts_it_once_another_user_has_left_some() {
    queue_frees_slots_elsewhere("-m h2", "-n 3", PendReason::QueueParallelJob);
}

#[test]
fn queue_at_its_slot_limit_starts_a_job_once_another_user_has_left_it() {
    queue_frees_slots_elsewhere("-m h2 -n 3", "", PendReason::QueueJobLimit);
}

#[test]
fn user_at_the_limit_of_a_queue_waits_and_others_start() {
    let site = queue("UJOB_LIMIT = 2");
    limited(site, ["-n 2", "", ""], PendReason::QueueUserJobLimit, true);
}

#[test]
fn host_at_the_limit_of_a_queue_takes_nobody_of_it() {
    let site = queue("HJOB_LIMIT = 1");
    limited(site, ["-m h1", "-m h1", "-m h1"], PendReason::QueueHostLimit, false);
}

#[test]
fn host_at_the_limit_of_a_queue_for_each_processor_takes_nobody_of_it() {
    // four processors
    let site = queue("PJOB_LIMIT = 0.5");
    limited(site, ["-n 2 -m h1", "-m h1", "-m h1"], PendReason::QueueCpuLimit, false);
}

#[test]
fn host_at_its_slots_takes_nobody() {
    limited(cluster().hosts(2, 1), ["-m h1", "-m h1", "-m h2"], PendReason::HostFull, true);
}

#[test]
fn user_at_the_limit_of_a_host_waits_and_others_start() {
    let site = cluster().hosts(1, 4).lsb_hosts(&lsb_hosts("MXJ JL/U", "h1 4 1"));
    limited(site, ["", "", ""], PendReason::HostUserLimit, true);
}

#[test]
fn user_at_max_jobs_waits_and_others_start() {
    let users = "Begin User\nUSER_NAME MAX_JOBS JL/P\nann 2 -\nEnd User\n";
    limited(
        cluster().hosts(2, 4).lsb_users(users),
        ["-n 2", "", ""],
        PendReason::UserJobLimit,
        true,
    );
}

#[test]
fn user_whose_group_becomes_known_has_the_limit_of_the_group_from_then_on() {
    let site = |of_all: u32, of_group: u32| {
        let rows = format!("chip@ {of_group} -\ndefault {of_all} -");
        let users = format!("Begin User\nUSER_NAME MAX_JOBS JL/P\n{rows}\nEnd User\n");
        cluster().hosts(1, 4).lsb_users(&users).up()
    };
    let mut c = site(1, 2);
    let jobs = [c.submit("ann", ""), c.submit("ann", "")];
    assert_eq!(c.started(), [jobs[0]]);
    c.name_service_knows("chip", "ann");
    assert_eq!(c.started(), [jobs[1]]);
    let mut c = site(2, 1);
    let jobs = ["", "", ""].map(|options| c.submit("ann", options));
    assert_eq!(c.started(), jobs[..2]);
    c.name_service_knows("chip", "ann");
    c.end(jobs[0], 0);
    assert!(c.waits_for(jobs[2], PendReason::UserJobLimit), "{:?}", c.reasons(jobs[2]));
    c.end(jobs[1], 0);
    assert_eq!(c.started(), [jobs[2]]);
}

#[test]
fn user_at_the_limit_of_slots_per_processor_of_a_host_waits_and_others_start() {
    // four processors
    for (rows, given) in
        [("ann - 0.3", "ann"), ("chip@ - 0.3", "a member"), ("default - 0.3", "all")]
    {
        let groups = "Begin UserGroup\nGROUP_NAME GROUP_MEMBER\nchip (ann eve)\nEnd UserGroup\n";
        let users = format!("{groups}Begin User\nUSER_NAME MAX_JOBS JL/P\n{rows}\nEnd User\n");
        let site = || cluster().hosts(2, 4).lsb_users(&users);
        let options = ["-n 2 -m h1", "-m h1", "-m h1"];
        limited(site(), options, PendReason::UserCpuLimit, true);
        // on another host there are as many
        let mut c = site().up();
        let wide = c.submit("ann", "-n 5");
        let narrow = c.submit("ann", "-n 4");
        assert_eq!(c.running_on(narrow), ["h1", "h1", "h2", "h2"], "{given}");
        assert!(c.waits_for(wide, PendReason::UserCpuLimit), "{:?}", c.reasons(wide));
    }
}

#[test]
fn parallel_job_beyond_the_rest_of_a_limit_takes_the_rest_where_that_is_enough() {
    for (slots, want) in [("2,4", Some(3)), ("4", None)] {
        let mut c = queue("QJOB_LIMIT = 4").up();
        c.submit("ann", "");
        let parallel = c.submit("ann", &format!("-n {slots}"));
        let hosts = c.running_on(parallel);
        assert_eq!((!hosts.is_empty()).then_some(hosts.len()), want, "-n {slots}");
    }
}

#[test]
fn array_at_its_limit_starts_no_more_elements_and_says_so() {
    let mut c = cluster().hosts(2, 4).up();
    let array = c.submit("ann", "-J 'a[1-3]%1'");
    let [first, second] = [1, 2].map(|idx| element(array, idx));
    assert_eq!((c.started(), c.reason(second)), (vec![first], PendReason::ArrayLimit));
    c.end(first, 0);
    assert_eq!(c.started(), [second]);
}

// ---- conditions of queues and hosts ----

#[test]
fn queue_that_is_inactive_starts_nobody_until_it_is_active() {
    let mut c = cluster().hosts(1, 1).up();
    c.badmin("qinact normal");
    let job = c.submit("ann", "");
    assert_eq!((c.started(), only_reason(&mut c, job)), (vec![], PendReason::QueueInactive));
    c.badmin("qact normal");
    assert_eq!(c.started(), [job]);
}

#[test]
fn queue_outside_its_dispatch_window_starts_nobody_until_it_opens() {
    // it is 22:13:20
    let mut c = queue("DISPATCH_WINDOW = 22:15-23:00").up();
    let job = c.submit("ann", "");
    assert_eq!(only_reason(&mut c, job), PendReason::QueueWindow);
    c.advance(99);
    assert_eq!(c.started(), []);
    c.advance(1);
    assert_eq!(c.started(), [job]);
}

#[test]
fn host_outside_its_dispatch_window_takes_nobody_until_it_opens() {
    let hosts = lsb_hosts("MXJ DISPATCH_WINDOW", "h1 4 (22:15-23:00)");
    let mut c = cluster().hosts(1, 4).lsb_hosts(&hosts).up();
    let job = c.submit("ann", "");
    assert_eq!((c.started(), only_reason(&mut c, job)), (vec![], PendReason::HostWindow));
    c.advance(100);
    assert_eq!(c.started(), [job]);
}

/// A job waits for this reason while something holds of its host, and starts when it does not.
fn kept_by(
    begins: impl Fn(&mut Cluster),
    ends: impl Fn(&mut Cluster),
    site: ClusterBuilder,
    reason: PendReason,
) {
    let mut c = site.up();
    begins(&mut c);
    let job = c.submit("ann", "");
    assert_eq!((c.started(), only_reason(&mut c, job)), (vec![], reason));
    ends(&mut c);
    assert_eq!(c.started(), [job]);
}

#[test]
fn host_that_is_closed_takes_nobody_until_it_is_open() {
    let site = cluster().hosts(1, 4);
    let (close, open) =
        (|c: &mut Cluster| c.badmin("hclose h1"), |c: &mut Cluster| c.badmin("hopen h1"));
    kept_by(close, open, site, PendReason::HostClosed);
}

#[test]
fn host_that_is_locked_busy_or_away_takes_nobody_until_it_is_well() {
    for (status, reason) in [
        (LOCKED, PendReason::HostLocked),
        (BUSY, PendReason::LoadExternal(None)),
        (UNAVAILABLE, PendReason::LoadUnavailable),
    ] {
        let site = cluster().hosts(1, 4);
        kept_by(|c| c.load("h1", status), |c| c.load("h1", "status=0"), site, reason);
    }
}

#[test]
fn host_beyond_load_sched_takes_nobody_until_its_load_falls() {
    // r1m is the second index, mem the eleventh and counted the other way round
    for (line, beyond, within, index) in
        [("r1m = 2/-", "r1m=3", "r1m=1", 1), ("mem = 500/-", "mem=400", "mem=600", 10)]
    {
        let site = cluster().hosts(1, 4).queue("normal", &format!("PRIORITY = 30; {line}"));
        kept_by(|c| c.load("h1", beyond), |c| c.load("h1", within), site, PendReason::Load(index));
    }
}

/// One host that has just taken a job, and a second job that waits for JOB_ACCEPT_INTERVAL of 20 s.
fn just_started() -> (ClusterBuilder, Cluster, JobRef, JobRef) {
    let site = cluster().hosts(1, 4).param("JOB_ACCEPT_INTERVAL = 2").param("MBD_SLEEP_TIME = 10");
    let site = site.param("CLEAN_PERIOD = 1");
    let mut c = site.clone().up();
    let jobs = [c.submit("ann", ""), c.submit("ann", "")];
    assert_eq!(c.started(), jobs[..1]);
    (site, c, jobs[0], jobs[1])
}

#[test]
fn host_that_took_a_job_before_a_restart_waits_for_the_accept_interval() {
    // the job that was started may have ended, left memory and gone from the log by then
    for (ends, switched) in [(false, false), (true, false), (true, true)] {
        let (_, mut c, first, second) = just_started();
        if ends {
            c.end(first, 0);
        }
        c.advance(4);
        if switched {
            c.switch_log();
            assert_eq!(c.logged(|event| matches!(event, Event::JobStart(_))), 0);
        }
        c.restart_later(5);
        c.advance(0);
        assert_eq!(only_reason(&mut c, second), PendReason::JustStarted, "{ends} {switched}");
        c.advance(10);
        assert_eq!(c.started(), [], "{ends} {switched}");
        c.advance(1);
        assert_eq!(c.started(), [second], "{ends} {switched}");
    }
}

#[test]
fn host_that_comes_back_with_the_configuration_waits_for_the_accept_interval() {
    let (site, mut c, first, second) = just_started();
    c.end(first, 0);
    let without = cluster().host("h2", 0).param("JOB_ACCEPT_INTERVAL = 2");
    c.reconfigure(without.param("MBD_SLEEP_TIME = 10"));
    c.advance(5);
    c.reconfigure(site);
    c.advance(14);
    assert_eq!(c.started(), []);
    c.advance(1);
    assert_eq!(c.started(), [second]);
}

#[test]
fn host_that_has_just_taken_a_job_waits_for_the_accept_interval() {
    // in a pass each, or all in one
    for together in [false, true] {
        let site = cluster().hosts(2, 4).param("JOB_ACCEPT_INTERVAL = 1");
        let mut c = site.param("MBD_SLEEP_TIME = 10").up();
        let jobs = match together {
            true => c.submit_together("ann", &[""; 3]),
            false => (0..3).map(|_| c.submit("ann", "")).collect(),
        };
        // one each; the third waits for either
        assert_eq!(c.started(), jobs[..2], "{together}");
        assert_eq!(only_reason(&mut c, jobs[2]), PendReason::JustStarted);
        c.advance(9);
        assert_eq!(c.started(), []);
        c.advance(1);
        assert_eq!(c.started(), [jobs[2]], "{together}");
    }
}

#[test]
fn exclusive_job_waits_for_an_empty_host_and_keeps_it() {
    let site = cluster().hosts(1, 4).queue("normal", "PRIORITY = 30; EXCLUSIVE = Y");
    let mut c = site.up();
    let first = c.submit("ann", "");
    let alone = c.submit("ann", "-x");
    assert_eq!((c.started(), only_reason(&mut c, alone)), (vec![first], PendReason::Exclusive));
    c.end(first, 0);
    assert_eq!(c.started(), [alone]);
    let beside = c.submit("bob", "");
    assert_eq!((c.started(), only_reason(&mut c, beside)), (vec![], PendReason::ExclusiveJob));
    c.end(alone, 0);
    assert_eq!(c.started(), [beside]);
}

// ---- which hosts ----

#[test]
fn requirement_that_one_host_meets_goes_there_and_that_no_host_meets_waits() {
    let mut c = cluster().hosts(3, 4).up();
    c.load("h2", "mem=9000");
    c.load("h1", "mem=100");
    c.load("h3", "mem=100");
    let fits = c.submit("ann", "-R 'select[mem>5000]'");
    let waits = c.submit("ann", "-R 'select[mem>10000]'");
    assert_eq!(c.running_on(fits), ["h2"]);
    let all = ["h1", "h2", "h3"].map(str::to_owned).to_vec();
    assert_eq!(c.reasons(waits), [(PendReason::Requirement, all)]);
    c.load("h3", "mem=20000");
    assert_eq!(c.running_on(waits), ["h3"]);
}

#[test]
fn host_that_was_not_asked_for_is_not_taken() {
    let mut c = cluster().hosts(2, 1).up();
    let jobs = [c.submit("ann", "-m h2"), c.submit("ann", "-m h2")];
    assert_eq!(c.running_on(jobs[0]), ["h2"]);
    assert!(c.waits_for(jobs[1], PendReason::HostFull));
}

#[test]
fn host_that_the_queue_does_not_name_is_not_taken() {
    let mut c = cluster().hosts(2, 1).queue("normal", "PRIORITY = 30; HOSTS = h2").up();
    let jobs = [c.submit("ann", ""), c.submit("ann", "")];
    assert_eq!(c.running_on(jobs[0]), ["h2"]);
    assert!(c.waits_for(jobs[1], PendReason::HostFull));
}

#[test]
fn hosts_are_taken_by_the_order_that_is_asked_for() {
    for (asked, want) in [
        ("-R 'order[mem]'", "h3"),
        ("-R 'order[-mem]'", "h1"),
        ("-R 'order[ut]'", "h2"),
        // preference comes before load
        ("-m 'h1 h2+1 h3'", "h2"),
        ("-m 'h1+3 h2+1 h3'", "h1"),
    ] {
        let mut c = cluster().hosts(3, 4).up();
        c.load("h1", "mem=100 ut=0.9");
        c.load("h2", "mem=200 ut=0.1");
        c.load("h3", "mem=300 ut=0.5");
        let job = c.submit("ann", asked);
        assert_eq!(c.running_on(job), [want], "{asked}");
    }
}

#[test]
fn slots_are_spread_over_hosts_as_span_asks() {
    let (one, tiled) = ("-R 'span[hosts=1]'", "-R 'span[ptile=2]'");
    for (options, want) in [
        ("-n 6".to_owned(), Some(["h1", "h1", "h1", "h1", "h2", "h2"])),
        (format!("-n 6 {tiled}"), Some(["h1", "h1", "h2", "h2", "h3", "h3"])),
        (format!("-n 6 {one}"), None),
    ] {
        let mut c = cluster().hosts(3, 4).up();
        let job = c.submit("ann", &options);
        assert_eq!(c.running_on(job), want.map_or(vec![], |hosts| hosts.to_vec()), "{options}");
        if want.is_none() {
            assert_eq!(only_reason(&mut c, job), PendReason::Span);
        }
    }
}

#[test]
fn parallel_job_takes_most_of_a_range_on_one_host() {
    let mut c = cluster().hosts(2, 4).up();
    c.submit("ann", "-n 2 -m h1");
    let job = c.submit("ann", "-n 2,8 -R 'span[hosts=1]'");
    assert_eq!(c.running_on(job), ["h2"; 4]);
}

#[test]
fn host_file_fixes_hosts_and_slots() {
    let mut c = cluster().hosts(2, 2).up();
    let job = c.submit("ann", "-hostfile 'h2 2 h1 1'");
    assert_eq!(c.running_on(job), ["h2", "h2", "h1"]);
    // one slot is left on h1: no other will do
    let both = c.submit("ann", "-hostfile 'h1 1 h2 1'");
    let small = c.submit("ann", "-hostfile 'h1 1'");
    assert_eq!((c.state(both), c.running_on(small)), ("PEND".into(), vec!["h1".into()]));
}

#[test]
fn memory_that_a_job_reserves_keeps_others_away_until_it_ends() {
    let mut c = cluster().hosts(1, 4).up();
    c.load("h1", "mem=1000");
    let first = c.submit("ann", "-R 'rusage[mem=600]'");
    let second = c.submit("ann", "-R 'rusage[mem=600]'");
    let small = c.submit("ann", "-R 'rusage[mem=300]'");
    assert_eq!(c.started(), [first, small]);
    assert!(c.waits_for(second, PendReason::Reserve(10)), "{:?}", c.reasons(second));
    c.end(first, 0);
    assert_eq!(c.started(), [second]);
}

// ---- what a job itself waits for ----

#[test]
fn job_with_a_start_time_waits_for_it() {
    let mut c = cluster().hosts(1, 1).up();
    let job = c.submit("ann", "-b 60");
    assert_eq!(c.reason(job), PendReason::StartTime);
    c.advance(59);
    assert_eq!(c.started(), []);
    c.advance(1);
    assert_eq!(c.started(), [job]);
}

#[test]
fn job_that_depends_on_another_waits_for_it_or_for_ever() {
    let mut c = cluster().hosts(2, 1).up();
    let first = c.submit("ann", "");
    let good = c.submit("ann", &format!("-w 'done({first})'"));
    let bad = c.submit("ann", &format!("-w 'exit({first})'"));
    c.started();
    assert_eq!([c.reason(good), c.reason(bad)], [PendReason::Dependency; 2]);
    c.end(first, 0);
    assert_eq!((c.started(), c.reason(bad)), (vec![good], PendReason::DependencyNever));
}

#[test]
fn job_that_is_stopped_while_pending_waits_until_it_is_resumed() {
    let (mut c, running) = full(cluster());
    let job = c.submit("ann", "");
    c.stop("ann", job);
    c.end(running, 0);
    let why = (c.state(job), c.reason(job));
    assert_eq!((c.started(), why), (vec![], ("PSUSP".into(), PendReason::UserStop)));
    c.resume("ann", job);
    assert_eq!(c.started(), [job]);
}

#[test]
fn text_or_boolean_resource_that_changes_on_a_host_is_looked_at_again() {
    let site = cluster().hosts(2, 1).resource("ready Boolean 15 ()").resource("tier String 15 ()");
    let mut c = site.up();
    c.loads("ready=0 tier=slow");
    let ready = c.submit("ann", "-R 'select[ready && mem>0]'");
    let fast = c.submit("ann", "-R 'select[tier==fast]'");
    assert_eq!(c.started(), []);
    c.load("h1", "ready=1");
    assert_eq!((c.started(), c.running_on(ready)), (vec![ready], vec!["h1".to_owned()]));
    c.load("h2", "tier=fast");
    assert_eq!((c.started(), c.running_on(fast)), (vec![fast], vec!["h2".to_owned()]));
}

#[test]
fn condition_in_quotes_means_what_is_in_them_where_no_job_bears_that_name() {
    let (mut c, running) = full(cluster());
    let quoted = format!("-w '\"ended({})\"'", running.job);
    let waits = c.submit("ann", &quoted);
    assert!(c.waits_for(waits, PendReason::Dependency));
    c.end(running, 1);
    assert_eq!(c.started(), [waits]);

    // a job of that very name comes first
    let named = c.submit("ann", &format!("-J 'ended({})'", running.job));
    let waits_for_named = c.submit("ann", &quoted);
    assert!(c.waits_for(waits_for_named, PendReason::Dependency));
    c.end(waits, 0);
    assert_eq!(c.started(), [named]);

    let refused = c.try_submit("ann", "-w '\"ended(999)\"'").unwrap_err();
    assert_eq!(refused.code, err::NO_JOB);
}
