//! The report on a job on several hosts waits for their usage.

use super::*;

/// A job on two hosts whose script has just ended, with an mbatchd that can tell the usage of the
/// other one, or not.
fn ended_on_two(usage_of_others: bool) -> Rig {
    ended_on_two_before(usage_of_others, "")
}

/// `post`: the command after it.
fn ended_on_two_before(usage_of_others: bool, post: &str) -> Rig {
    let mut r = Rig::new();
    r.copying = !post.is_empty();
    let params = SbdParams { usage_of_others, ..SbdParams::default() };
    r.order(SbdMsg::Params(params));
    let hosts: Vec<_> = ["h1", "h2"].map(|host| (host.into(), 2)).into();
    r.start(StartJob { hosts: hosts.into(), post_exec: post.into(), ..order(1) });
    let pid = r.pid();
    r.exits(pid, 0);
    r
}

/// The lines of the report about usage; none: it is not written yet.
fn report(r: &Rig) -> Option<String> {
    let written = r.plans.iter().find_map(|(id, plan)| match &plan.what {
        TaskPlan::Finish(finish) if !finish.report_apart => match id.step {
            TaskStep::Finish | TaskStep::Report => Some(finish.text.lossy()),
            _ => None,
        },
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

/// The steps that the launcher was asked for after the job, and what runs in each.
fn steps(r: &Rig) -> Vec<(TaskStep, usize)> {
    let of = |(id, plan): &(TaskId, Plan)| match &plan.what {
        TaskPlan::Finish(finish) => Some((id.step, finish.post.len())),
        _ => None,
    };
    r.plans.iter().filter_map(of).collect()
}

/// The word of the starter of a step that its part is done.
fn ready(r: &mut Rig, step: TaskStep, note: &str) {
    let id = TaskId { key: key(1), step };
    let setup = Setup::Ready(Box::new(Ready { note: note.into(), ..Ready::default() }));
    let input = Input::Os(OsInput::Setup { id, setup, ended: false });
    let told = r.feed_launcher(input);
    r.pass(told);
}

#[test]
fn commands_after_a_job_wait_for_the_usage_of_no_other_host() {
    let mut r = ended_on_two_before(true, "after");
    assert_eq!((steps(&r), report(&r)), (vec![(TaskStep::Finish, 1)], None));
    ready(&mut r, TaskStep::Finish, "");
    let pid = r.pid();
    r.exits(pid, 0);
    assert_eq!((asked(&r), report(&r)), (1, None));
    assert!(!matches!(r.last(), AttemptPhase::Ended { .. }), "its report is part of the job");
    told(&mut r, &[]);
    assert_eq!(steps(&r), [(TaskStep::Finish, 1), (TaskStep::Report, 0)]);
    assert_eq!(report(&r).unwrap(), "CPU time : 12.00 sec.");
    let state = r.states().pop().unwrap();
    assert_eq!((state.phase, state.post), (ended(0, 0), Post::Done));
    // the script that cleans up writes to the output until the first one tells
    let mut r = ended_on_two_before(true, "after");
    told(&mut r, &[]);
    assert_eq!(report(&r), None);
    ready(&mut r, TaskStep::Finish, "one");
    assert_eq!(report(&r).unwrap(), "CPU time : 12.00 sec.");
    let state = r.states().pop().unwrap();
    assert_eq!((state.phase, state.post), (ended(0, 0), Post::Running));
}

#[test]
fn report_apart_is_written_once_whatever_restarts() {
    let mut r = ended_on_two_before(true, "after");
    ready(&mut r, TaskStep::Finish, "");
    r.crash();
    r.boot(true);
    r.greet(1);
    let both = [(TaskStep::Finish, 1), (TaskStep::Report, 0)];
    assert_eq!((steps(&r), report(&r).unwrap()), (both.to_vec(), ALONE.to_owned()));
    assert_eq!(r.last(), ended(0, 0));
    r.crash();
    r.boot(true);
    r.greet(1);
    assert_eq!((steps(&r), r.last()), (both.to_vec(), ended(0, 0)));
    // the usage is not told in time
    let mut r = ended_on_two_before(true, "after");
    r.wait(4);
    ready(&mut r, TaskStep::Finish, "");
    assert_eq!((steps(&r), report(&r).unwrap()), (both.to_vec(), ALONE.to_owned()));
    assert_eq!(r.last(), ended(0, 0));
}
