//! Mistakes in single values, each told with its place.

use super::*;

const MAX_JOBID: &str = "MAX_JOBID = 9999999";

/// What is said of further lines of lsb.params.
fn of_params(lines: &str) -> Vec<String> {
    said("lsb.params", MAX_JOBID, &format!("{MAX_JOBID}\n{lines}"))
}

#[test]
fn period_of_done_jobs_is_ignored_unless_it_is_the_shorter_one() {
    let with = |done: &str| of_params(&format!("CLEAN_PERIOD_DONE = {done}"));
    assert!(with("3599").is_empty());
    let ignored = "warning lsb.params CLEAN_PERIOD_DONE:21 CLEAN_PERIOD_DONE is ignored: it is not \
                   less than CLEAN_PERIOD, 3600";
    assert_eq!(with("3600"), [ignored]);
    let bad = "error lsb.params CLEAN_PERIOD_DONE:21 bad value <1h> of CLEAN_PERIOD_DONE: a number \
               from 0 to 2147483647 is wanted";
    assert_eq!(with("1h"), [bad]);
}
