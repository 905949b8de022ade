//! bsub -s: a signal in place of suspension when run windows close.

use super::*;
use crate::model::further::Further;

fn asks(signal: &str) -> JobSpec {
    let further = Further::from_iter([("s", signal)]);
    JobSpec { hosts: vec!["h2".into()], further, ..spec("x") }
}

#[test]
fn a_job_is_sent_its_signal_once_a_closing() {
    let mut c = conf();
    c.batch.queues[0].run_window = SHUT_SOON.into();
    let mut r = Rig::of(c.clone());
    let id = r.submit(asks("USR2")).unwrap();
    let (conn, key) = r.starts()[0];
    r.report(conn, key, AttemptPhase::Running);
    assert_eq!(r.acts(), vec![]);
    r.pass(40);
    assert_eq!((r.acts(), r.stat(id, 0)), (vec![Act::Signal { number: 12 }], "RUN"));
    // whatever its host says of it meanwhile, and after a restart of the master
    r.report(conn, key, AttemptPhase::Running);
    r.pass(1200);
    assert_eq!((r.acts(), r.stat(id, 0)), (vec![], "RUN"));
    let found = Recovered { records: r.log.clone(), epoch: 2, ..Default::default() };
    let (mbd, now, log) = (Mbatchd::new(c, "h1", found), r.now, r.log.clone());
    let (sent, acct) = (vec![], vec![]);
    let (dialled, said, spooled) = (vec![], vec![], vec![]);
    let audits = Default::default();
    let mut again = Rig { mbd, now, sent, log, acct, dialled, said, spooled, works: true, audits };
    again.step(Input::Start);
    let conn = again.meet(key, AttemptPhase::Running);
    // it is 22:34:10: until eight nothing happens, nor when the windows open
    again.pass(TO_EIGHT - 1200 - 10);
    assert_eq!((again.acts(), again.stat(id, 0)), (vec![], "RUN"));
    // the next closing is another one
    again.pass(14 * 3600 + 14 * 60);
    assert_eq!(again.acts(), [Act::Signal { number: 12 }]);
    again.report(conn, key, done());
    assert_eq!(again.stat(id, 0), "DONE");
}

#[test]
fn job_without_a_warning_signal_is_suspended_at_once() {
    let mut c = conf();
    c.batch.queues[0].run_window = SHUT_SOON.into();
    let mut r = Rig::of(c);
    let (one, other) = (r.submit(asks("12")).unwrap(), r.submit(spec("y")).unwrap());
    for (conn, key) in r.starts() {
        r.report(conn, key, AttemptPhase::Running);
    }
    r.pass(40);
    assert_eq!(r.acts().len(), 2);
    assert_eq!((r.stat(one, 0), r.stat(other, 0)), ("RUN", "SSUSP"));
}
