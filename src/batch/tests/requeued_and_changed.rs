//! Jobs that come back to their queue and are changed then: a restart must know all of it. The log
//! is the real one, with its checksums and spool.

use super::*;
use crate::log::batch::Batch;
use crate::log::recover::found::RecoveryResult;
use crate::log::recover::{Params, recover};
use crate::log::simdisk::SimDisk;
use crate::log::store::Store;
use crate::model::job::opt;
use crate::model::specfield::SpecField;
use std::collections::BTreeSet;

fn params() -> Params {
    let (host, boot, run) = ("h1".into(), "b".into(), "1".into());
    Params { host, boot, now: 1_700_000_000, run, ended: true, ..Params::default() }
}

impl Rig {
    /// The records of the rig's log, on a disk.
    fn disk(&self) -> SimDisk {
        let disk = SimDisk::new();
        let mut batch = Batch::default();
        self.spooled.iter().for_each(|(at, data)| batch.spool(*at, data.as_bytes()));
        self.log.iter().for_each(|record| batch.append(record));
        let plan = recover(&mut disk.clone(), &params()).unwrap().plan;
        let mut store = Store::open(disk.clone(), plan).unwrap();
        store.commit(&batch, 0, &mut |_| {}).unwrap();
        disk
    }

    /// A restart finds what is known now.
    fn is_recovered(&self, about: &str) {
        let RecoveryResult { recovered, notices, .. } =
            recover(&mut self.disk(), &params()).unwrap();
        assert!(notices.is_empty() && recovered.damaged.is_empty(), "{about}: {notices:?}");
        let new = Mbatchd::new(conf(), "h1", recovered);
        let found = self.mbd.state.differences(&new.state, &BTreeSet::new());
        assert!(found.is_empty(), "{about}: {found:#?}");
    }

    /// bmod, of a whole job also what it runs.
    fn gives_another(&mut self, sel: &IdSel, runs: bool) {
        let spec = JobSpec {
            project: "other".into(),
            description: "changed".into(),
            command: "sh other".into(),
            res_req: "rusage[mem=5]".into(),
            ..spec("")
        };
        let mut fields = vec![SpecField::Project, SpecField::Description, SpecField::ResReq];
        if runs && sel.elems.is_empty() {
            fields.extend([SpecField::Script, SpecField::Env]);
        }
        let (script, env) = ("#!/bin/sh\necho\n".into(), Some(ByteStr::from("B=2\0")));
        let m = Modify { id: sel.clone(), spec, fields, script, env };
        self.ask(USER, ClientMsg::Modify(Box::new(m)));
    }
}

fn requeue(done: bool, exit: bool, hold: bool) -> Verb {
    Verb::Requeue(Requeue { done, exit, hold, ..Requeue::default() })
}

/// How a job comes back to its queue.
const WAYS: [&str; 9] = [
    "brequeue -d",
    "brequeue -d -H",
    "brequeue -e",
    "brequeue -e -H",
    "brequeue -r",
    "brequeue -r -H",
    "an exit value",
    "rerun, its host was restarted",
    "rerun, its host is given up",
];

/// The verb that follows.
const VERBS: [&str; 10] = [
    "bmod",
    "bmod, not what it runs",
    "bswitch",
    "btop",
    "bbot",
    "bstop",
    "bresume",
    "bkill",
    "brequeue",
    "nothing",
];

/// Has the job of `sel` run and come back; other jobs leave no slot free.
fn come_back(r: &mut Rig, way: &str, sel: &IdSel) {
    let (conn, key) = r.starts_of(sel.job)[0];
    r.report(conn, key, AttemptPhase::Running);
    for _ in 0..8 {
        r.submit(JobSpec { queue: "high".into(), ..spec("x") }).unwrap();
    }
    let end = |code: i32| AttemptPhase::Ended { end: End::Status(code << 8), exit_info: 0 };
    let hold = way.ends_with("-H");
    match way {
        "an exit value" => r.report(conn, key, end(99)),
        _ if way.starts_with("rerun") => {
            let host = r.mbd.links.hosts().iter().find(|h| h.1.up() == Some(conn)).unwrap().0;
            r.step(Input::Closed { conn });
            if way.ends_with("restarted") {
                r.back(host, "another boot", vec![]);
            } else {
                r.out(60);
                r.lim_says(host, false);
            }
        }
        _ if way.contains("-r") => {
            r.does_to(USER, requeue(false, false, hold), sel.clone());
            r.report(conn, key, end(1));
        }
        _ => {
            let exit = way.contains("-e");
            r.report(conn, key, end(i32::from(exit)));
            r.does_to(USER, requeue(!exit, exit, hold), sel.clone());
        }
    }
}

fn change(r: &mut Rig, verb: &str, sel: &IdSel) {
    let verb = match verb {
        "bmod" => return r.gives_another(sel, true),
        "bmod, not what it runs" => return r.gives_another(sel, false),
        "bswitch" => Verb::Switch { queue: "high".into() },
        "btop" => Verb::Move { top: true, position: 1 },
        "bbot" => Verb::Move { top: false, position: 1 },
        "bstop" => Verb::Stop,
        "bresume" => Verb::Resume,
        "bkill" => Verb::Kill,
        "brequeue" => requeue(true, true, true),
        _ => return,
    };
    r.does_to(USER, verb, sel.clone());
}

fn submitted(r: &mut Rig, array: bool) -> IdSel {
    let mut spec = JobSpec { options: opt::RERUNNABLE, ..spec("sh first") };
    spec.further.requeue = "99".into();
    if array {
        spec.name = "a[1-3]%1".into();
    }
    let env = ByteStr::from("A=1\0");
    let script = ByteStr::from("#!/bin/sh\n");
    let s = Submit { spec, env, script, ..Submit::default() };
    let Some(Msg::Client(ClientMsg::Submitted { job, .. })) =
        r.ask(USER, ClientMsg::Submit(Box::new(s)))
    else {
        panic!("refused")
    };
    IdSel { job, elems: if array { vec![(1, 1, 1)] } else { vec![] } }
}

#[test]
fn a_job_put_back_and_changed_then_is_the_same_after_a_restart() {
    for array in [false, true] {
        for way in WAYS {
            for verb in VERBS {
                let about = format!("{way}, {verb}, array {array}");
                let mut r = Rig::new();
                let sel = submitted(&mut r, array);
                come_back(&mut r, way, &sel);
                let idx = sel.elems.first().map_or(0, |range| range.0);
                let want = if way.ends_with("-H") { "PSUSP" } else { "PEND" };
                assert_eq!(r.stat(sel.job, idx), want, "{about}");
                r.is_recovered(&about);
                change(&mut r, verb, &sel);
                r.is_recovered(&about);
                // and once more by what its host does
                for (conn, key) in r.starts() {
                    r.report(conn, key, AttemptPhase::Running);
                    r.report(conn, key, done());
                }
                r.is_recovered(&about);
                change(&mut r, verb, &sel);
                r.is_recovered(&about);
            }
        }
    }
}

#[test]
fn damage_to_the_spool_of_a_job_put_back_is_noticed() {
    for way in WAYS {
        let mut r = Rig::new();
        let sel = submitted(&mut r, false);
        come_back(&mut r, way, &sel);
        let before = r.spooled.len();
        r.gives_another(&sel, true);
        // "x" has spooled nothing but its environment
        for (at, data) in r.spooled[..2].iter().chain(&r.spooled[before..]) {
            assert!(!data.is_empty());
            let disk = r.disk();
            let name = crate::log::spool::name(at.spool);
            disk.damage(&name, |bytes| bytes[at.at as usize] ^= 1);
            let found = recover(&mut disk.clone(), &params()).unwrap().recovered;
            let hit: Vec<u32> = found.damaged.iter().map(|(at, _)| at.job).collect();
            assert!(hit.contains(&sel.job), "{way}, {at:?}: {hit:?}");
        }
    }
}

/// A verb whose answer was lost is asked for again: nothing changes any more.
#[test]
fn a_verb_asked_for_twice_does_what_it_does_once() {
    for array in [false, true] {
        for way in WAYS {
            for verb in VERBS.into_iter().filter(|verb| *verb != "bmod") {
                let mut r = Rig::new();
                let sel = submitted(&mut r, array);
                come_back(&mut r, way, &sel);
                change(&mut r, verb, &sel);
                let once = r.disk();
                change(&mut r, verb, &sel);
                let found = recover(&mut once.clone(), &params()).unwrap().recovered;
                let once = Mbatchd::new(conf(), "h1", found);
                let mut found = once.state.differences(&r.mbd.state, &BTreeSet::new());
                // each bmod spools what it makes of the job
                let spooled = |text: &String| text.contains("beside") || text.contains("kept by");
                found.retain(|text| !verb.starts_with("bmod") || !spooled(text));
                assert!(found.is_empty(), "{way}, {verb}, {array}: {found:#?}");
            }
        }
    }
}
