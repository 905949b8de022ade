//! bchkpnt, and bmig of jobs with a checkpoint directory.

use super::cluster::{ADMINISTRATOR, Cluster, cluster};
use super::*;
use crate::model::checkpoint::{CheckpointEnd, CheckpointOrder};
use crate::model::event::Event;
use crate::model::reason::err;
use crate::model::specfield::SpecField;
use crate::proto::sbd::{Act, StartJob};

const NOW: CheckpointOrder = CheckpointOrder { kill: false, force: false, period: None };
const KILL: CheckpointOrder = CheckpointOrder { kill: true, ..NOW };
const MIGRATE: Verb = Verb::Migrate { force: false };

fn checkpoints(c: &mut Cluster, at: JobRef) -> Vec<CheckpointOrder> {
    let of = |(to, act)| match act {
        Act::Checkpoint(order) if to == at => Some(order),
        _ => None,
    };
    c.orders().into_iter().filter_map(of).collect()
}

fn last_order(c: &mut Cluster, at: JobRef) -> StartJob {
    c.start_orders().into_iter().rfind(|o| o.key.job == at.job).unwrap()
}

#[test]
fn a_checkpoint_is_ordered_until_its_end_is_told_and_both_are_logged() {
    let mut c = cluster().hosts(1, 1).up();
    let job = c.submit("ann", "-k '/c 30'");
    checkpoints(&mut c, job);
    assert_eq!(c.control("ann", Verb::Checkpoint(KILL), job), [0]);
    assert_eq!(checkpoints(&mut c, job), [KILL]);
    c.restart();
    assert_eq!(checkpoints(&mut c, job), [KILL], "the order may be lost with mbatchd");
    let failed = CheckpointEnd { number: 1, kill: true, asked: true, ..<_>::default() };
    c.checkpointed(job, failed);
    c.checkpointed(job, failed);
    c.restart();
    assert_eq!(checkpoints(&mut c, job), []);
    assert_eq!(c.logged(|e| matches!(e, Event::JobCheckpoint(_))), 2, "asked for, and ended");
    assert_eq!(c.state(job), "RUN");
    let hourly = CheckpointOrder { period: Some(60), ..NOW };
    assert_eq!(c.control(ADMINISTRATOR, Verb::Checkpoint(hourly), job), [0]);
    assert_eq!(checkpoints(&mut c, job), [hourly]);
    c.checkpointed(job, failed);
    assert_eq!(checkpoints(&mut c, job), [hourly], "the host does not know of it yet");
    c.checkpointed(job, CheckpointEnd { period: Some(60), ..failed });
    assert_eq!(checkpoints(&mut c, job), []);
}

#[test]
fn a_checkpointable_job_migrates_after_its_checkpoint_and_restarts_from_it() {
    let mut c = cluster().hosts(2, 1).up();
    let job = c.submit("ann", "-k /c -m 'h1 h2'");
    assert_eq!(last_order(&mut c, job).restart, "");
    c.badmin("hclose h1");
    let end = CheckpointEnd { number: 1, kill: true, asked: true, ..<_>::default() };
    assert_eq!(c.control("ann", MIGRATE, job), [0]);
    assert_eq!(c.control("ann", MIGRATE, job), [err::MIGRATING]);
    c.checkpointed(job, end);
    assert_eq!(c.state(job), "RUN", "one whose checkpoint failed goes on");
    assert_eq!(c.control("ann", MIGRATE, job), [0]);
    c.restart();
    c.checkpointed(job, CheckpointEnd { number: 2, succeeded: true, ..end });
    assert_eq!(c.running_on(job), ["h2"]);
    assert_eq!(last_order(&mut c, job).restart, job.to_string());
    // brequeue has it begin anew
    let running = Requeue { run: true, ..Requeue::default() };
    assert_eq!(c.control("ann", Verb::Requeue(running), job), [0]);
    assert_eq!(c.state(job), "RUN");
    assert_eq!(last_order(&mut c, job).restart, "");
}

#[test]
fn jobs_that_cannot_be_checkpointed_are_refused_and_nothing_is_logged() {
    let mut c = cluster().hosts(1, 9).up();
    let held = c.submit("ann", "-H -k /c");
    let plain = c.submit("ann", "");
    let over = c.submit("ann", "-k /c");
    c.end(over, 0);
    let mine = c.submit("ann", "-k /c");
    for (user, at, want) in [
        ("ann", held, err::NOT_STARTED),
        ("ann", plain, err::NOT_CHKPNT),
        ("ann", over, err::JOB_FINISH),
        ("bob", mine, err::PERMISSION),
    ] {
        assert_eq!(c.control(user, Verb::Checkpoint(NOW), at), [want], "{at}");
    }
    c.hosts_wait();
    c.kill("ann", mine);
    assert_eq!(c.control("ann", Verb::Checkpoint(NOW), mine), [err::IN_PROGRESS]);
    assert_eq!(c.logged(|e| matches!(e, Event::JobCheckpoint(_))), 0);
}

#[test]
fn the_directory_of_a_queue_holds_for_jobs_without_one_and_leaves_with_them() {
    let queues = "CHKPNT = /of/queue 15";
    let mut c = cluster().hosts(1, 9).queue("chk", queues).queue("plain", "").up();
    let job = c.submit("ann", "-H -q chk");
    let own = c.submit("ann", "-H -q chk -k '/own method=m'");
    let of = |c: &mut Cluster, at: JobRef| {
        c.column(at, Col::Extra).get("k").and_then(|text| text.as_str().map(str::to_string))
    };
    assert_eq!(of(&mut c, job).as_deref(), Some("/of/queue 15"));
    assert_eq!(of(&mut c, own).as_deref(), Some("/own method=m"));
    c.switch("ann", job, "plain");
    c.switch("ann", own, "plain");
    assert_eq!(of(&mut c, job), None);
    assert_eq!(of(&mut c, own).as_deref(), Some("/own method=m"));
}

#[test]
fn warning_checkpoint_needs_a_directory_of_the_job_or_its_queue() {
    let mut c = cluster().hosts(1, 9).queue("chk", "CHKPNT = /of/queue").queue("plain", "").up();
    assert_eq!(c.try_submit("ann", "-wa CHKPNT").unwrap_err().code, err::NOT_CHKPNT);
    c.submit("ann", "-wa CHKPNT -k /own");
    let job = c.submit("ann", "-H -q chk -wa CHKPNT");
    assert_eq!(c.control("ann", Verb::Switch { queue: "plain".into() }, job), [err::NOT_CHKPNT]);
    let plain = c.submit("ann", "-H");
    let fields = [SpecField::WarnAction];
    assert_eq!(c.modify("ann", plain, &fields, "-wa CHKPNT"), err::NOT_CHKPNT);
    let own = c.submit("ann", "-H -k /own");
    assert_eq!(c.modify("ann", own, &fields, "-wa CHKPNT"), 0);
}
