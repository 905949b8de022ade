//! JOB_SIZE_LIST of lsb.queues(5) and lsb.applications(5).

use super::cluster::cluster;
use crate::model::reason::{PendReason, err};
use crate::model::specfield::SpecField;

#[test]
fn jobs_have_a_size_of_the_list_of_their_queue() {
    let site = cluster().hosts(2, 16).queue("sized", "JOB_SIZE_LIST = 4 2 16\nTASKLIMIT = 1 3 8");
    let mut c = site.queue("any", "").up();
    for (options, tasks) in [("", 4), ("-n 2", 2), ("-n 16", 16)] {
        let job = c.submit("ann", &format!("-q sized {options}"));
        assert_eq!(c.running_on(job).len(), tasks, "{options}");
        c.end(job, 0);
    }
    let refused = c.try_submit("ann", "-q sized -n 10").unwrap_err();
    let text = "Number of tasks 10 is not in JOB_SIZE_LIST of queue <sized>: 4 2 16";
    assert_eq!((refused.code, &*refused.words()), (err::JOB_SIZE, text));
    // a range is no size, even one between two of the list
    let refused = c.try_submit("ann", "-q sized -n 2,4").unwrap_err();
    let text = "Number of tasks 2,4 is not in JOB_SIZE_LIST of queue <sized>: 4 2 16";
    assert_eq!((refused.code, &*refused.words()), (err::JOB_SIZE, text));
    let compound = c.try_submit("ann", "-q sized -R '2*{span[hosts=1]}+3*{span[hosts=1]}'");
    assert_eq!(compound.unwrap_err().code, err::JOB_SIZE);
    // bmod and bswitch
    let job = c.submit("ann", "-q sized -b +60");
    assert_eq!(c.modify("ann", job, &[SpecField::Slots], "-n 3"), err::JOB_SIZE);
    assert_eq!(c.modify("ann", job, &[SpecField::Slots], "-n 2"), 0);
    let [three, open] = ["-n 3", ""].map(|n| c.submit("ann", &format!("-q any -b +60 {n}")));
    let to = || crate::proto::client::Verb::Switch { queue: "sized".into() };
    assert_eq!(c.control("ann", to(), three), [err::JOB_SIZE]);
    c.switch("ann", open, "sized");
    c.advance(61);
    assert_eq!(c.running_on(open).len(), 4);
}

#[test]
fn sizes_of_profile_and_queue_both_hold() {
    let mut c = cluster()
        .hosts(2, 16)
        .queue("normal", "JOB_SIZE_LIST = 4 2 16")
        .application("wide", "JOB_SIZE_LIST = 16 8")
        .application("odd", "JOB_SIZE_LIST = 3")
        .application("limited", "TASKLIMIT = 1 2 3")
        .up();
    for (options, tasks) in [("-app wide", 16), ("-app limited", 2)] {
        let job = c.submit("ann", options);
        assert_eq!(c.running_on(job).len(), tasks, "{options}");
    }
    let code = |c: &mut super::cluster::Cluster, options: &str| {
        c.try_submit("ann", options).map_or_else(|refused| refused.words(), |_| String::new())
    };
    let of_queue = "is not in JOB_SIZE_LIST of queue <normal>: 4 2 16";
    let of_wide = "is not in JOB_SIZE_LIST of application profile <wide>: 16 8";
    assert_eq!(code(&mut c, "-app wide -n 8"), format!("Number of tasks 8 {of_queue}"));
    assert_eq!(code(&mut c, "-app wide -n 2"), format!("Number of tasks 2 {of_wide}"));
    assert_eq!(code(&mut c, "-app odd"), format!("Number of tasks 3 {of_queue}"));
    assert_eq!(c.try_submit("ann", "-app limited -n 4").unwrap_err().code, err::PROC_APP);
}

#[test]
fn pending_jobs_wait_when_the_list_loses_their_size() {
    let with = |sizes: &str| {
        let queue = format!("JOB_SIZE_LIST = {sizes}\nRESIZABLE_JOBS = Y");
        cluster().hosts(2, 8).queue("normal", &queue)
    };
    let mut c = with("4 2").up();
    let runs = c.submit("ann", "");
    assert_eq!(c.started(), [runs]);
    let waits = c.submit("ann", "-b +60");
    let fits = c.submit("ann", "-n 2 -b +60");
    c.reconfigure(with("2 8"));
    c.advance(61);
    assert_eq!(c.started(), [fits]);
    assert_eq!(c.reason(waits), PendReason::JobSize);
    assert_eq!(c.running_on(runs).len(), 4);
    c.reconfigure(with("2 4"));
    c.advance(1);
    assert_eq!(c.started(), [waits]);
}
