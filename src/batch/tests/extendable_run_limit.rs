//! EXTENDABLE_RUNLIMIT of lsb.queues: jobs go on while nobody wants what they have.

use super::cluster::{Cluster, ClusterBuilder, cluster};
use crate::model::JobRef;
use crate::model::event::Event;
use crate::model::reason::term;
use crate::proto::sbd::Act;

const RULE: &str = "PRIORITY = 30; EXTENDABLE_RUNLIMIT = BASE[10] INCREMENT[5] GRACE[2]";

/// One host of one slot.
fn site(rule: &str) -> ClusterBuilder {
    cluster().hosts(1, 1).queue("normal", rule).queue("low", "PRIORITY = 20")
}

/// The limits that were logged, in seconds, and whether each is hard.
fn limits(c: &Cluster) -> Vec<(u64, bool)> {
    let all = c.records(|event| matches!(event, Event::RunLimit(_))).into_iter();
    let limit = |event| match event {
        Event::RunLimit(r) => Some((r.secs, r.hard)),
        _ => None,
    };
    all.filter_map(limit).collect()
}

fn ends(c: &mut Cluster) -> Vec<(JobRef, Act)> {
    let ends = |order: &(JobRef, Act)| matches!(order.1, Act::Terminate { .. });
    c.orders().into_iter().filter(ends).collect()
}

#[test]
fn run_limit_is_extended_until_a_job_of_the_same_priority_wants_the_slot() {
    let mut c = site(RULE).up();
    let job = c.submit("ann", "");
    c.advance(599);
    assert_eq!(limits(&c), []);
    c.advance(2);
    assert_eq!(limits(&c), [(900, false)]);
    // jobs of lower queues wait
    c.submit("ann", "-q low");
    c.advance(300);
    assert_eq!(limits(&c), [(900, false), (1200, false)]);
    let next = c.submit("bob", "");
    c.advance(297);
    assert_eq!(limits(&c).len(), 2);
    c.advance(3);
    assert_eq!(limits(&c)[2], (1320, true));
    c.advance(117);
    assert_eq!((c.state(job).as_str(), ends(&mut c)), ("RUN", Vec::new()));
    c.advance(4);
    assert_eq!(ends(&mut c), [(job, Act::Terminate { exit_info: term::RUNLIMIT })]);
    assert_eq!((c.state(job).as_str(), c.state(next).as_str()), ("EXIT", "RUN"));
    assert_eq!(c.accounted().last().map(|f| f.exit_info), Some(term::RUNLIMIT));
}

#[test]
fn job_whose_slot_is_wanted_goes_back_to_its_queue_where_the_queue_requeues() {
    let mut c = site("PRIORITY = 30; EXTENDABLE_RUNLIMIT = BASE[10] REQUEUE[Y]").up();
    let job = c.submit("ann", "");
    let next = c.submit("bob", "");
    c.advance(602);
    assert_eq!((c.state(job).as_str(), c.state(next).as_str()), ("PEND", "RUN"));
    assert_eq!(limits(&c), []);
    // its own limit begins anew
    c.end(next, 0);
    c.advance(590);
    assert_eq!(c.state(job), "RUN");
}

#[test]
fn jobs_that_cannot_use_the_hosts_of_a_job_do_not_want_them() {
    for (lines, options, wants) in [
        ("UJOB_LIMIT = 1", "-q other -n 1", true),
        ("HOSTS = h2", "-q other", false),
        ("QJOB_LIMIT = 1", "-q other", false),
        ("PRIORITY = 30", "-q other -m h2", false),
        ("PRIORITY = 30", "-q other -R 'select[mg]'", false),
        ("PRIORITY = 30", "-q other -R 'rusage[mem=100]'", true),
        ("PRIORITY = 30", "-q other -n 2", true),
        ("PRIORITY = 30; EXCLUSIVE = Y", "-q other -x", true),
        ("PRIORITY = 30", "-q other -H", false),
        ("PRIORITY = 29", "-q other", false),
    ] {
        let lines = match lines.contains("PRIORITY") {
            true => lines.into(),
            false => format!("PRIORITY = 30; {lines}"),
        };
        let site = cluster().hosts(3, 1).resource("mg Boolean () ()").host_resources("h2", "mg");
        let site = site.queue("normal", RULE);
        let mut c = site.queue("other", &lines).queue("full", "PRIORITY = 90").up();
        c.submit("zoe", "-q full -m h2");
        c.submit("ann", "-m h1");
        c.submit("zoe", "-q other");
        c.submit("bob", options);
        c.advance(605);
        let want = if wants { (720, true) } else { (900, false) };
        assert_eq!(limits(&c), [want], "{lines} {options}");
    }
}

#[test]
fn job_that_finds_another_host_wants_none_that_are_in_use() {
    let mut c = cluster().hosts(2, 1).queue("normal", RULE).up();
    c.submit("ann", "-m h1");
    c.advance(599);
    // both at the same second
    let next = c.submit("bob", "");
    c.advance(2);
    assert_eq!((c.state(next).as_str(), limits(&c)), ("RUN", vec![(900, false)]));
}

#[test]
fn extended_and_hard_limits_survive_a_restart_and_a_switch_of_the_log() {
    let mut c = site(RULE).up();
    let job = c.submit("ann", "");
    c.advance(605);
    assert_eq!(limits(&c), [(900, false)]);
    c.switch_log();
    c.restart();
    c.advance(200);
    assert_eq!((c.state(job).as_str(), limits(&c).len()), ("RUN", 1));
    c.submit("bob", "");
    c.advance(100);
    assert_eq!(limits(&c).last(), Some(&(1020, true)));
    c.switch_log();
    c.restart();
    c.advance(100);
    assert_eq!(c.state(job), "RUN");
    c.advance(30);
    assert_eq!(c.state(job), "EXIT");
}

#[test]
fn limit_that_passed_while_mbatchd_was_down_is_extended_beyond_what_the_job_has_run() {
    let mut c = site(RULE).up();
    c.submit("ann", "");
    c.advance(10);
    c.restart_later(1000);
    c.advance(70);
    assert_eq!(limits(&c), [(1200, false)]);
}

#[test]
fn suspended_seconds_do_not_count_and_a_new_configuration_takes_the_limit_away() {
    let mut c = site(RULE).up();
    let job = c.submit("ann", "");
    c.advance(300);
    c.stop("ann", job);
    c.advance(1000);
    c.resume("ann", job);
    c.advance(290);
    assert_eq!((c.state(job).as_str(), limits(&c)), ("RUN", vec![]));
    c.submit("bob", "");
    c.advance(80);
    assert_eq!(limits(&c).len(), 1);
    c.reconfigure(site("PRIORITY = 30"));
    c.advance(1000);
    assert_eq!(c.state(job), "RUN");
    c.reconfigure(site(RULE));
    c.advance(70);
    assert_eq!(c.state(job), "EXIT");
}
