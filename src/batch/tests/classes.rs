//! Kinds of job that come and go.

use super::*;
use crate::batch::sched::CLASSES_KEPT;

#[test]
fn kinds_of_job_without_a_pending_one_are_forgotten() {
    let mut r = Rig::new();
    let asking = |n: usize| JobSpec { res_req: format!("select[ncpus<{n}]"), ..spec("x") };
    // it waits through all of it
    let held = JobSpec { options2: crate::model::job::opt2::HOLD, ..asking(9) };
    let held = r.submit(held).unwrap();
    for n in 0..5 * CLASSES_KEPT {
        r.submit(asking(1_000 + n)).unwrap();
        let started = r.starts();
        assert_eq!(started.len(), 1, "{n}");
        for (conn, key) in started {
            r.report(conn, key, Phase::Running);
            r.report(conn, key, done());
        }
    }
    let places = r.mbd.sched.places();
    assert!(places <= 2 * CLASSES_KEPT + 1, "{places} for one pending job");
    // what was kept still goes where it asked, and so does a kind whose place was another's
    r.control(Verb::Resume, held);
    assert_eq!(r.starts().len(), 1);
}
