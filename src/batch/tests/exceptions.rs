//! Jobs that are exceptional by JOB_OVERRUN, JOB_UNDERRUN and JOB_IDLE of their queue.

use super::requeue::raw;
use super::*;
use crate::model::job::except;

impl Rig {
    fn exceptions(&mut self, job: u32) -> String {
        let select = JobSelect { ids: vec![IdSel { job, elems: vec![] }], ..JobSelect::default() };
        let cols = vec![Col::Exceptions];
        let q = JobQuery { select, cols, ..JobQuery::default() };
        match self.ask(USER, ClientMsg::Jobs(Box::new(q))) {
            Some(Msg::Client(ClientMsg::Rows { rows, .. })) => rows.get().to_string(),
            other => panic!("{other:?}"),
        }
    }

    /// A job of a queue with all three limits that has run for so long, with this CPU time.
    fn ran(&mut self, secs: i64, cpu: u64) -> (u32, ConnId, JobKey) {
        let id = self.submit(spec("x")).unwrap();
        let (conn, key) = self.starts()[0];
        self.report(conn, key, AttemptPhase::Running);
        self.now.wall_us += secs * 1_000_000;
        let usage = Usage { utime_us: cpu * 1_000_000, ..Usage::default() };
        let msg =
            SbdMsg::Usage { key, usage: usage.into(), pids: vec![], pgids: vec![], groups: vec![] };
        self.step(Input::Msg { conn, msg: Msg::Sbd(msg) });
        (id, conn, key)
    }
}

#[test]
fn exceptions_of_jobs_are_shown_and_accounted() {
    let mut c = conf();
    for (name, value) in [("JOB_OVERRUN", "30"), ("JOB_UNDERRUN", "2"), ("JOB_IDLE", "0.5")] {
        raw(&mut c.batch.queues[0].raw, name, value);
    }
    let mut r = Rig::of(c);
    // seconds, CPU seconds, while it runs, at its end
    for (secs, cpu, runs, ended) in [
        (119, 1, "", except::UNDERRUN),
        (120, 1, "", 0),
        (1200, 1, "", 0),
        (1201, 600, "idle", except::IDLE),
        (1201, 601, "", 0),
        (1801, 1800, "overrun", except::OVERRUN),
        (1801, 1, "overrun idle", except::OVERRUN | except::IDLE),
    ] {
        let (id, conn, key) = r.ran(secs, cpu);
        assert_eq!(r.exceptions(id), format!("[[{runs:?}]]"), "{secs} {cpu}");
        let usage = Usage { utime_us: cpu * 1_000_000, ..Usage::default() };
        r.report_used(conn, key, done(), usage);
        assert_eq!(r.exceptions(id), format!("[[{:?}]]", except::words(ended)), "{secs} {cpu}");
        assert_eq!(r.acct.last().unwrap().exceptions, ended, "{secs} {cpu}");
    }
}
