//! The sentences of bhist -l about jobs whose host cannot be reached, and about forced ends.

use super::history::{History, HistoryFilter, States};
use lsf::model::JobRef;
use lsf::model::action::JobAction;
use lsf::model::event::{Event, JobNew, JobSignal, JobStart, JobStatus, Record, RunLimitChange};
use lsf::model::job::JobSpec;
use lsf::model::job_state::JobState;
use lsf::model::reason::term;

const AT: JobRef = JobRef { job: 1, idx: 0 };

fn status(state: JobState, exit_info: u32, unknown_end: bool) -> Event {
    let status = state.into();
    let s = JobStatus { at: AT, attempt: 1, status, exit_info, unknown_end, ..<_>::default() };
    Event::JobStatus(Box::new(s))
}

fn signal(action: JobAction) -> Event {
    let user = "user1".to_string();
    Event::JobSignal(Box::new(JobSignal { at: AT, user, action, ..JobSignal::default() }))
}

fn requeue(uncounted: bool) -> Event {
    let (held, passed, until, exit) = (None, Vec::new(), 0, None);
    Event::JobRequeue { at: AT, held, uncounted, passed, until, exit, request: String::new() }
}

/// The sentences about a started job, from these events on.
fn told(events: Vec<Event>) -> Vec<String> {
    let new = JobNew { job: 1, user: "user1".into(), ..JobNew::default() };
    let new = JobNew { spec: JobSpec::default().into(), ..new };
    let start = JobStart { at: AT, attempt: 1, ..JobStart::default() };
    let states = States { all: true, ..States::default() };
    let filter = HistoryFilter { states, ..HistoryFilter::default() };
    let mut h = History::new(filter, true, false);
    let begin = [Event::JobNew(Box::new(new)), Event::JobStart(Box::new(start))];
    for event in begin.into_iter().chain(events) {
        h.add(&Record { time: 1000, event });
    }
    // without the dispatch
    h.wanted().flat_map(|(_, _, e)| e.lines.iter().skip(1).map(|(_, line)| line.clone())).collect()
}

const UNKNOWN: &str = "Unknown; unable to reach the execution host;";
const KILL: &str = "Signal <KILL> requested by user or administrator <user1>;";
const GONE: &str = "Execution host unavailable; job is killed;";

#[test]
fn extended_and_hard_run_limits_are_told() {
    let limit = |secs, hard| Event::RunLimit(RunLimitChange { at: AT, attempt: 1, secs, hard });
    let want = ["Run limit is extended to 15.0 min;", "Hard run limit is set to 17.5 min;"];
    assert_eq!(told(vec![limit(900, false), limit(1050, true)]), want);
}

#[test]
fn kill_of_a_job_out_of_reach_is_told_not_to_have_reached_its_host() {
    let said = told(vec![status(JobState::Unkwn, 0, false), signal(JobAction::Kill)]);
    let issued = "Termination request issued; but unable to reach the execution host;";
    assert_eq!(said, [UNKNOWN, KILL, issued]);
    // its host is there
    assert_eq!(told(vec![signal(JobAction::Kill)]), [KILL]);
}

#[test]
fn job_that_leaves_a_host_out_of_reach_is_told_to_be_killed_there() {
    let unknown = || status(JobState::Unkwn, 0, false);
    let back = "Pending: Job has been requeued;";
    assert_eq!(told(vec![unknown(), requeue(true)]), [UNKNOWN, GONE, back]);
    assert_eq!(told(vec![requeue(true)]), [back]);
    let ends = || status(JobState::Exit, term::OWNER, true);
    let end = "Exited. The CPU time used is unknown;";
    let why = "Completed <exit>; TERM_OWNER: job killed by owner;";
    assert_eq!(told(vec![unknown(), ends()]), [UNKNOWN, GONE, end, why]);
    assert_eq!(told(vec![ends()]), [end, why]);
}

#[test]
fn removed_job_is_told_to_have_been_forced_to_exit() {
    let removed = |status: i32, unknown_end| {
        let exit_info = term::FORCE_OWNER;
        let s = JobStatus { at: AT, attempt: 1, exit_info, exit_status: status, ..<_>::default() };
        let status = JobState::Exit.into();
        Event::JobStatus(Box::new(JobStatus { status, unknown_end, cpu: 1.5, ..s }))
    };
    let why = "Completed <exit>; TERM_FORCE_OWNER: job killed by owner without time for cleanup;";
    for (end, words) in [
        (
            removed(0, true),
            "Exited; job has been forced to exit. The CPU time used is 1.5 seconds;",
        ),
        (
            removed(9, false),
            "Exited; job has been forced to exit by signal 9. The CPU time used is 1.5 seconds;",
        ),
        (
            removed(3 << 8, false),
            "Exited; job has been forced to exit with exit code 3. The CPU time used is 1.5 \
             seconds;",
        ),
    ] {
        let delete = "Delete requested by user or administrator <user1>;";
        let unknown = status(JobState::Unkwn, 0, false);
        let said = told(vec![unknown, signal(JobAction::Remove), end]);
        assert_eq!(said, [UNKNOWN, delete, words, why]);
    }
}
