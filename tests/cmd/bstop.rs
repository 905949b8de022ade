//! bstop: running jobs stop, pending ones are held.

use crate::common::*;

#[test]
fn bstop_suspends_running_and_pending_jobs() {
    let id = bsub(&["-o", "/dev/null", "sleep", "300"]);
    until(&id, "RUN");
    assert_eq!(ok("bstop", &[&id]), format!("Job <{id}> is being stopped\n"));
    until(&id, "USUSP");
    let later = bsub(&["-w", &format!("done({id})"), "-o", "/dev/null", "true"]);
    assert_eq!(field(&later, "stat"), "PEND");
    ok("bstop", &[&later]);
    until(&later, "PSUSP");
    ok("bkill", &[&id, &later]);
    assert_eq!((end_of(&id), end_of(&later)), ("EXIT".into(), "EXIT".into()));
    let said = run("bstop", &[&id]);
    assert_eq!((said.code, said.out.as_str()), (255, ""));
    assert_eq!(said.err, format!("Job <{id}>: Job has already finished\n"));
}

#[test]
fn bstop_without_a_matching_job_says_so() {
    let said = run("bstop", &["99999"]);
    assert_eq!((said.code, said.err.as_str()), (255, "Job <99999>: No matching job found\n"));
    let said = run("bstop", &[]);
    assert_eq!(said.code, 255);
    assert!(said.err.contains("must be specified.\nUsage: bstop"), "{}", said.err);
}
