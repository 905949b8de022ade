//! JOB_RUNLIMIT_RATIO: the run limit of a job against its estimate (bsub -We).

use super::cluster::{Cluster, ClusterBuilder, cluster};
use crate::model::JobRef;
use crate::model::reason::err;
use crate::model::specfield::SpecField::{Estimate, Name, RunLimit};

fn site(queue: &str) -> ClusterBuilder {
    cluster().hosts(1, 4).queue("normal", queue).param("JOB_RUNLIMIT_RATIO = 3")
}

/// The run limit of a job, minutes.
fn minutes(c: &Cluster, job: JobRef) -> Option<u64> {
    c.run_limit_of(job.job).map(|secs| secs / 60)
}

fn submitted(c: &mut Cluster, options: &str) -> Option<u64> {
    let job = c.submit("ann", options);
    minutes(c, job)
}

#[test]
fn estimate_bounds_the_run_limit_and_gives_one() {
    let mut c = site("RUNLIMIT = 20 100").application("guess", "RUNTIME = 1").up();
    for (options, limit) in [
        ("", 20),
        ("-W 50", 50),
        ("-We 10", 30),
        ("-We 0:10 -W 30", 30),
        ("-We 10 -W 5", 5),
        // the estimate of a profile is not the job's
        ("-app guess", 20),
        ("-app guess -W 50", 50),
    ] {
        assert_eq!(submitted(&mut c, options), Some(limit), "{options}");
    }
    let refused = c.try_submit("ann", "-We 10 -W 31").unwrap_err();
    assert_eq!(refused.words(), "RUNLIMIT: Cannot exceed 3 times the estimated run time");
    let refused = c.try_submit("ann", "-We 34").unwrap_err();
    assert_eq!(refused.code, err::OVER_LIMIT);
    let mut c = cluster().hosts(1, 4).queue("normal", "RUNLIMIT = 20 100").up();
    assert_eq!(submitted(&mut c, "-We 10 -W 31"), Some(31));
    assert_eq!(submitted(&mut c, "-We 10"), Some(20));
}

#[test]
fn run_limit_by_ratio_follows_the_estimate_that_is_changed() {
    let mut c = site("PRIORITY = 1").up();
    let job = c.submit("ann", "-H -We 10");
    assert_eq!(c.modify("ann", job, &[Estimate], "-We 20"), 0);
    assert_eq!(minutes(&c, job), Some(60));
    assert_eq!(c.modify("ann", job, &[RunLimit], "-W 61"), err::OVER_LIMIT);
    assert_eq!(c.modify("ann", job, &[RunLimit, Estimate], "-W 61 -We 21"), 0);
    assert_eq!(minutes(&c, job), Some(61));
    // back to that of the ratio, and without an estimate to none
    assert_eq!(c.modify("ann", job, &[RunLimit], ""), 0);
    assert_eq!(minutes(&c, job), Some(63));
    assert_eq!(c.modify("ann", job, &[Estimate], ""), 0);
    assert_eq!(minutes(&c, job), None);
}

#[test]
fn run_limit_of_the_user_is_lowered_by_a_shorter_estimate_alone() {
    let mut c = site("PRIORITY = 1").up();
    let job = c.submit("ann", "-H -We 10 -W 30");
    assert_eq!(c.modify("ann", job, &[Estimate], "-We 40"), 0);
    assert_eq!(minutes(&c, job), Some(30));
    assert_eq!(c.modify("ann", job, &[Estimate], "-We 5"), 0);
    assert_eq!(minutes(&c, job), Some(15));
    assert_eq!(c.modify("ann", job, &[Name], "-J x"), 0);
    assert_eq!(c.modify("ann", job, &[Estimate], ""), 0);
    assert_eq!(minutes(&c, job), Some(15));
}
