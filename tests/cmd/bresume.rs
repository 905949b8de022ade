//! bresume: stopped jobs go on, held ones are released.

use crate::common::*;

#[test]
fn bresume_lets_stopped_and_held_jobs_go_on() {
    let id = bsub(&["-o", "/dev/null", "sleep", "300"]);
    until(&id, "RUN");
    ok("bstop", &[&id]);
    until(&id, "USUSP");
    assert_eq!(ok("bresume", &[&id]), format!("Job <{id}> is being resumed\n"));
    until(&id, "RUN");
    ok("bkill", &[&id]);
    let held = bsub(&["-H", "-o", "/dev/null", "true"]);
    assert_eq!(field(&held, "stat"), "PSUSP");
    assert_eq!(ok("bresume", &[&held]), format!("Job <{held}> is being resumed\n"));
    assert_eq!(end_of(&held), "DONE");
    let said = run("bresume", &[&held]);
    assert_eq!((said.code, said.out.as_str()), (255, ""));
    assert_eq!(said.err, format!("Job <{held}>: Job has already finished\n"));
}

#[test]
fn bresume_without_a_matching_job_says_so() {
    let said = run("bresume", &["99999"]);
    assert_eq!((said.code, said.err.as_str()), (255, "Job <99999>: No matching job found\n"));
}
