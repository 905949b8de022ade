//! The report on a job on several hosts waits for their usage.

use super::*;

/// A job on two hosts whose script has just ended, with an mbatchd that can tell the usage of the
/// other one, or not.
fn ended_on_two(usage_of_others: bool) -> Rig {
    let mut r = Rig::new();
    let params = SbdParams { usage_of_others, ..SbdParams::default() };
    r.order(SbdMsg::Params(params));
    let hosts: Vec<_> = ["h1", "h2"].map(|host| (host.into(), 2)).into();
    r.start(StartJob { hosts: hosts.into(), ..order(1) });
    let pid = r.pid();
    r.exits(pid, 0);
    r
}

/// The lines of the report about usage; none: it is not written yet.
fn report(r: &Rig) -> Option<String> {
    let written = r.plans.iter().find_map(|(id, plan)| match &plan.what {
        TaskPlan::Finish(finish) if id.step == TaskStep::Finish => Some(finish.text.lossy()),
        _ => None,
    });
    let text = written?.into_owned();
    let told = |line: &&str| line.contains("CPU time :") || line.contains("counted");
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(text.lines().filter(told).map(words).collect::<Vec<_>>().join("; "))
}

fn told(r: &mut Rig, without: &[&str]) {
    let usage = Box::new(Usage { utime_us: 5 * US, ..Usage::default() });
    let without = without.iter().map(|host| (*host).to_owned()).collect();
    r.order(SbdMsg::UsageTold { key: key(1), usage, without });
}

fn asked(r: &Rig) -> usize {
    r.told.iter().filter(|msg| matches!(msg, SbdMsg::AskUsage { .. })).count()
}

const ALONE: &str = "CPU time : 7.00 sec.; Usage counted on host : h1 alone, see bacct -l";

#[test]
fn report_on_a_job_on_several_hosts_counts_what_each_has_told() {
    let mut r = ended_on_two(true);
    assert_eq!((asked(&r), report(&r)), (1, None));
    r.wait(1);
    assert_eq!(report(&r), None);
    told(&mut r, &[]);
    assert_eq!(report(&r).unwrap(), "CPU time : 12.00 sec.");
    assert_eq!(r.last(), ended(0, 0));
    // mbatchd counts for itself: what it was told of others is not told to it again
    let mut r = ended_on_two(true);
    told(&mut r, &["h2"]);
    let want = "CPU time : 12.00 sec.; Usage counted on host : h1 alone, see bacct -l";
    assert_eq!(report(&r).unwrap(), want);
    assert_eq!(r.states().pop().unwrap().usage.utime_us, 7 * US);
}

#[test]
fn report_is_written_without_other_hosts_where_mbatchd_does_not_tell_in_time() {
    let mut r = ended_on_two(true);
    r.wait(4);
    assert_eq!((asked(&r), report(&r).unwrap()), (1, ALONE.to_owned()));
    told(&mut r, &[]);
    assert_eq!(r.last(), ended(0, 0));
    // an mbatchd of an older release is not asked, and one that is away cannot be
    let r = ended_on_two(false);
    assert_eq!((asked(&r), report(&r).unwrap()), (0, ALONE.to_owned()));
}

#[test]
fn restarted_sbatchd_asks_for_usage_again() {
    let mut r = ended_on_two(true);
    r.crash();
    r.boot(true);
    r.greet(1);
    assert_eq!(report(&r).unwrap(), ALONE, "no mbatchd was there when it was to be written");
}
