//! Interactive jobs and queues: who may be where, through submission, bswitch and bmod; an
//! interactive job is never rerunnable, and survives a restart as one.

use super::cluster::cluster;
use crate::model::job::opt;
use crate::model::reason::err;
use crate::model::specfield::SpecField;
use crate::proto::client::{Col, Verb};

#[test]
fn queue_takes_the_jobs_that_interactive_says() {
    let site = cluster()
        .hosts(1, 1)
        .queue("talk", "PRIORITY = 30\nINTERACTIVE = ONLY")
        .queue("silent", "PRIORITY = 30\nINTERACTIVE = NO")
        .queue("both", "PRIORITY = 30\nRERUNNABLE = yes");
    let mut c = site.up();
    let code = |r: Result<_, crate::proto::Refusal>| r.map(|_| ()).map_err(|e| e.code);
    for (options, want) in [
        ("-q talk", Err(err::ONLY_INTERACTIVE)),
        ("-q silent -I", Err(err::NO_INTERACTIVE)),
        ("-q both -I -r", Err(err::INTERACTIVE_RERUN)),
        ("-q both -I -J x[1-2]", Err(err::BAD_ARG)),
        ("-q silent", Ok(())),
        ("-q talk -I", Ok(())),
    ] {
        assert_eq!(code(c.try_submit("ann", options)), want, "{options}");
    }
    let words = |r: Result<_, crate::proto::Refusal>| r.map(|_| ()).map_err(|e| e.words());
    let said = words(c.try_submit("ann", "-q silent -I"));
    assert_eq!(said, Err("Queue does not accept interactive jobs".to_string()));
    // of several queues the first that takes it
    let job = c.submit("ann", "-q silent|both -I");
    assert_eq!(c.column(job, Col::Queue), "both");
    let options = |v: serde_json::Value| v.as_u64().unwrap() as u32;
    // RERUNNABLE of the queue has no effect
    let mine = opt::INTERACTIVE | opt::RERUNNABLE;
    assert_eq!(options(c.column(job, Col::Options)) & mine, opt::INTERACTIVE);
    let switch = |queue: &str| Verb::Switch { queue: queue.into() };
    assert_eq!(c.control("ann", switch("silent"), job), [err::NO_INTERACTIVE]);
    assert_eq!(c.control("ann", switch("talk"), job), [0]);
    assert_eq!(c.modify("ann", job, &[SpecField::Rerun], "-r"), err::INTERACTIVE_RERUN);
    let plain = c.submit("ann", "-q both");
    assert_eq!(c.control("ann", switch("talk"), plain), [err::ONLY_INTERACTIVE]);
    c.restart();
    assert_eq!(options(c.column(job, Col::Options)) & mine, opt::INTERACTIVE);
    assert_ne!(options(c.column(plain, Col::Options)) & opt::RERUNNABLE, 0);
}
