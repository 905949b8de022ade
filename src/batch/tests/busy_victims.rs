//! Running jobs that are not preempted while something else is under way with them: others are, and
//! they are once it is over.

use super::cluster::{Cluster, ClusterBuilder, cluster};
use super::{Act, JobRef, Verb};
use crate::model::checkpoint::CheckpointEnd;
use crate::model::resize::ResizeTold;

const MIGRATE: Verb = Verb::Migrate { force: false };

/// Hosts of so many slots each; queue `high` preempts jobs of queue `low`.
fn site(hosts: usize, slots: u32) -> ClusterBuilder {
    let high = "PRIORITY = 40; PREEMPTION = PREEMPTIVE[low]";
    cluster().hosts(hosts, slots).queue("low", "PRIORITY = 20").queue("high", high)
}

/// The jobs that were ordered to be suspended since this was asked last.
fn suspended(c: &mut Cluster) -> Vec<JobRef> {
    let orders = c.orders().into_iter();
    orders.filter(|(_, act)| *act == Act::Suspend).map(|order| order.0).collect()
}

/// Two jobs of queue `low`, the second of these options, that fill one host. That one would be
/// preempted first.
fn two_jobs(options: &str) -> (Cluster, [JobRef; 2]) {
    let mut c = site(1, 2).up();
    let first = c.submit("ann", "-q low");
    c.advance(10);
    let second = c.submit("ann", &format!("-q low {options}"));
    c.advance(10);
    c.hosts_wait();
    c.orders();
    (c, [first, second])
}

/// This job was preempted for the one that waits, and none is for a further one.
fn only_preempted(c: &mut Cluster, first: JobRef) {
    assert_eq!(suspended(c), [first]);
    c.suspends(first);
    let next = c.submit("bob", "-q high");
    c.advance(60);
    assert_eq!((suspended(c), c.state(next)), (vec![], "PEND".into()));
}

#[test]
fn job_whose_first_host_does_not_answer_is_not_preempted_until_it_does() {
    let mut c = site(3, 1).up();
    let first = c.submit("ann", "-q low -m h3");
    c.advance(10);
    let wide = c.submit("ann", "-q low -n 2");
    assert_eq!(c.running_on(wide), ["h1", "h2"]);
    c.hosts_wait();
    c.lose("h1");
    c.advance(300);
    assert_eq!(c.state(wide), "UNKWN");
    c.orders();
    let high = c.submit("bob", "-q high");
    c.advance(1);
    assert_eq!(suspended(&mut c), [first]);
    c.suspends(first);
    assert_eq!(c.running_on(high), ["h3"]);
    let next = c.submit("bob", "-q high");
    c.advance(60);
    assert_eq!((suspended(&mut c), c.state(next)), (vec![], "PEND".into()));
    c.find("h1");
    c.advance(60);
    assert_eq!(suspended(&mut c), [wide]);
}

#[test]
fn migrating_job_is_not_preempted_unless_its_checkpoint_fails() {
    let (mut c, [first, second]) = two_jobs("-k /c");
    assert_eq!(c.control("ann", MIGRATE, second), [0]);
    c.submit("bob", "-q high");
    only_preempted(&mut c, first);
    let failed = CheckpointEnd { number: 1, kill: true, asked: true, ..<_>::default() };
    c.checkpointed(second, failed);
    c.advance(1);
    assert_eq!(suspended(&mut c), [second]);
}

#[test]
fn growing_job_is_not_preempted_until_its_notification_command_has_ended() {
    let mut c = site(1, 3).up();
    let other = c.submit("eve", "-q low");
    let first = c.submit("ann", "-q low");
    c.advance(10);
    let grows = c.submit("ann", "-q low -n 1,2 -ar -rnc /bin/tell");
    c.advance(10);
    c.end(other, 0);
    c.hosts_wait();
    assert!(c.orders().iter().any(|(at, act)| *at == grows && matches!(act, Act::Resize(_))));
    c.submit("bob", "-q high");
    only_preempted(&mut c, first);
    c.resized(grows, ResizeTold { number: 1, pid: 9, status: Some(0) });
    c.advance(1);
    assert_eq!(suspended(&mut c), [grows]);
}

#[test]
fn job_that_its_user_has_just_stopped_is_not_preempted_besides() {
    let (mut c, [first, second]) = two_jobs("");
    c.stop("ann", second);
    assert_eq!(c.state(second), "RUN", "its host has not told yet");
    c.orders();
    c.submit("bob", "-q high");
    assert_eq!(suspended(&mut c), [first]);
}
