//! The run limit that bjobs shows is the one that the scheduler counts on and hosts enforce.

use super::cluster::{Cluster, cluster};
use crate::model::JobRef;
use crate::proto::client::Col;
use serde_json::{Value, json};

fn limit(c: &mut Cluster, job: JobRef) -> Value {
    c.column(job, Col::RunLimit)
}

#[test]
fn run_limit_in_force_is_that_of_job_profile_or_queue_as_the_host_enforces_it() {
    let mut c = cluster()
        .hosts(2, 8)
        .queue("normal", "PRIORITY = 30; RUNLIMIT = 20 100")
        .queue("hard", "PRIORITY = 30; RUNLIMIT = 40")
        .queue("free", "PRIORITY = 30")
        .application("sim", "RUNLIMIT = 30")
        .application("abs", "RUNLIMIT = 30; ABS_RUNLIMIT = Y")
        .up();
    c.cpu_factor("h2", 2.0);
    for (options, minutes) in [
        ("", 20),
        ("-q hard", 40),
        ("-app sim", 30),
        ("-W 50 -app sim -q free", 50),
        ("-W 90", 90),
        ("-app abs", 30),
    ] {
        for (host, factor) in [("h1", 1), ("h2", 2)] {
            let job = c.submit("ann", &format!("-m {host} {options}"));
            let by_host = if options == "-app abs" { minutes } else { minutes / factor };
            let enforced = c.start_orders().last().and_then(|order| order.limits.run);
            assert_eq!(enforced, Some(by_host * 60), "{options} on {host}");
            assert_eq!(limit(&mut c, job), json!([by_host * 60, true]), "{options} on {host}");
            c.end(job, 0);
            assert_eq!(limit(&mut c, job), json!([by_host * 60, true]), "{options}, ended");
        }
    }
    let job = c.submit("ann", "-q free");
    assert_eq!(limit(&mut c, job), Value::Null);
}

#[test]
fn run_limit_in_force_is_the_extendable_one_where_that_is_reached_first() {
    let rule = "PRIORITY = 30; EXTENDABLE_RUNLIMIT = BASE[10] INCREMENT[5] GRACE[2]";
    let mut c = cluster().hosts(1, 2).queue("normal", rule).up();
    let alone = c.submit("ann", "");
    let beside = c.submit("ann", "-W 12");
    let [pends, short] = [c.submit("ann", ""), c.submit("ann", "-W 4")];
    assert_eq!(limit(&mut c, alone), json!([600, false]));
    assert_eq!(limit(&mut c, beside), json!([600, false]));
    assert_eq!(limit(&mut c, pends), json!([600, false]));
    // its own is told among its limits
    assert_eq!(limit(&mut c, short), Value::Null);
    c.kill("ann", pends);
    c.kill("ann", short);
    c.advance(601);
    assert_eq!(limit(&mut c, alone), json!([900, false]));
    assert_eq!(limit(&mut c, beside), json!([720, true]));
    c.restart();
    assert_eq!(limit(&mut c, alone), json!([900, false]));
}

#[test]
fn run_limit_in_force_of_an_interruptible_job_is_the_gap_that_it_was_started_in() {
    let lines = "PRIORITY = 20; BACKFILL = Y; RUNLIMIT = 120; INTERRUPTIBLE_BACKFILL = 300";
    let wide = "PRIORITY = 40; SLOT_RESERVE = MAX_RESERVE_TIME[600]";
    let site = cluster().hosts(1, 4).queue("normal", "PRIORITY = 30").queue("wide", wide);
    let mut c = site.queue("tide", lines).up();
    c.submit("ann", "-W 10");
    c.submit("bob", "-q wide -n 4");
    let job = c.submit("cid", "-q tide");
    assert_eq!(c.start_orders().last().unwrap().limits.run, Some(600));
    assert_eq!(limit(&mut c, job), json!([600, false]));
}
