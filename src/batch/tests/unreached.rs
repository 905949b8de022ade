//! Hosts that cannot be reached: UNKWN, ZOMBI, the rerun of what is rerunnable, and what is true
//! when a host comes back.

use super::cluster::{Cluster, cluster};
use super::*;
use crate::batch::query::job_columns::RowForm;
use crate::batch::soft_state::started_walk::LOOKS_PER_TURN;
use crate::conf::types::HungJobs;
use crate::model::job::opt;
use crate::model::job_state::JobState;
use crate::model::limits::Limits;
use crate::model::reason::{PendReason, susp, term};
use crate::proto::lim::status;

fn rerunnable() -> JobSpec {
    JobSpec { options: opt::RERUNNABLE, ..spec("x") }
}

fn at(job: u32) -> JobRef {
    JobRef { job, idx: 0 }
}

impl Rig {
    /// Lets seconds pass; what has a link is heard of, and nobody answers when dialled.
    pub(super) fn out(&mut self, secs: u64) {
        for _ in 0..secs {
            self.later(1);
            for (conn, _) in std::mem::take(&mut self.dialled) {
                self.step(Input::ConnectFailed { conn, why: "refused".into(), refused: true });
            }
        }
    }

    fn host_of(&self, key: JobKey) -> HostId {
        let run = self.mbd.state.elem(key.job_ref()).and_then(state::Elem::run).unwrap();
        self.mbd.first_host(run).unwrap()
    }

    /// LIM reports a host up or unavailable.
    pub(super) fn lim_says(&mut self, i: HostId, up: bool) {
        let load = self.mbd.links.hosts()[i].load.clone().unwrap();
        let status = if up { 0 } else { status::UNAVAIL };
        self.mbd.links.take_load(i, HostLoad { status, ..load }, false);
        self.mbd.unreached.look_again();
        self.mbd.sched.changed();
        self.step(Input::Tick);
    }

    /// A started job whose host has been lost, and the host.
    fn lost(&mut self, spec: JobSpec) -> (u32, JobKey, HostId) {
        let id = self.submit(spec).unwrap();
        let (conn, key) = self.starts_of(id)[0];
        self.report(conn, key, AttemptPhase::Running);
        self.step(Input::Closed { conn });
        (id, key, self.host_of(key))
    }

    /// The host is linked again and tells this.
    pub(super) fn back(&mut self, i: HostId, boot: &str, tasks: Vec<TaskState>) -> ConnId {
        let conn = self.linked_again(i);
        self.inventory(conn, boot, tasks, false);
        conn
    }

    pub(super) fn inventory(
        &mut self,
        conn: ConnId,
        boot: &str,
        tasks: Vec<TaskState>,
        more: bool,
    ) {
        let msg = SbdMsg::Inventory {
            boot_id: boot.into(),
            tasks,
            more,
            members: None,
            validates: false,
            unjoined: Vec::new(),
            member_slots: Vec::new(),
        };
        self.step(Input::Msg { conn, msg: Msg::Sbd(msg) });
    }

    /// The host is linked again, and greeted.
    pub(super) fn linked_again(&mut self, i: HostId) -> ConnId {
        let conn = loop {
            self.now.mono_us += 1_000_000;
            self.now.wall_us += 1_000_000;
            self.step(Input::Tick);
            let name = &self.mbd.links.hosts()[i].name;
            let sbatchd = Endpoint::Tcp { host: name.clone(), daemon: Daemon::Sbatchd };
            let of = |to: &Endpoint| *to == sbatchd;
            let mine = self.dialled.iter().find(|(_, to)| of(to)).map(|d| d.0);
            self.dialled.clear();
            if let Some(conn) = mine {
                break conn;
            }
        };
        let host = self.mbd.links.hosts()[i].name.clone();
        self.step(Input::Opened { conn, peer: Peer::Daemon { daemon: Daemon::Sbatchd, host } });
        conn
    }

    fn shown(&mut self, job: u32) -> String {
        let mut row = Vec::new();
        let form = RowForm { cols: &[Col::Stat], whole: true, ..RowForm::default() };
        self.mbd.write_row(&mut row, at(job), &form, self.now.secs());
        String::from_utf8(row).unwrap().trim_matches(['[', ']', '"']).to_string()
    }
}

fn task(key: JobKey, phase: AttemptPhase) -> TaskState {
    TaskState { key, phase, pid: 7, ..TaskState::default() }
}

fn restarted() -> AttemptPhase {
    AttemptPhase::Ended { end: End::Unknown, exit_info: term::HOST_RESTART }
}

#[test]
fn jobs_of_a_host_out_of_reach_are_unkwn_after_the_tries_and_known_when_it_is_back() {
    // tries of 20 s and of MBD_SLEEP_TIME
    for (sleep, tries, secs) in [(60, 3, 60), (10, 2, 20), (1, 1, 1)] {
        let mut c = conf();
        (c.batch.params.mbd_sleep_time, c.batch.params.max_sbd_fail) = (sleep, tries);
        let mut r = Rig::of(c);
        let (id, key, i) = r.lost(spec("x"));
        assert_eq!(r.mbd.view().host_status(i).text(), "unreach");
        r.out(secs - 1);
        assert_eq!(r.shown(id), "RUN", "{sleep} {tries}");
        r.out(1);
        assert_eq!(
            (r.shown(id), r.restarted().state.elem(at(id)).unwrap().stat()),
            ("UNKWN".into(), JobState::Unkwn)
        );
        // nobody decides anything about it, also where LIM has given the host up
        r.lim_says(i, false);
        r.out(100);
        assert_eq!(r.shown(id), "UNKWN");
        let records = r.log.iter().filter(
            |r| matches!(&r.event, Event::JobStatus(s) if s.status == JobState::Unkwn.into()),
        );
        assert_eq!(records.count(), 1);
        let conn = r.back(i, "boot", vec![task(key, AttemptPhase::Running)]);
        assert_eq!((r.shown(id), r.acts()), ("RUN".into(), vec![]));
        r.report(conn, key, done());
        assert_eq!(r.shown(id), "DONE");
        assert!(r.mbd.state.left().is_empty());
    }
}

#[test]
fn a_host_that_says_nothing_is_out_of_reach_since_it_was_last_heard_of() {
    let mut r = Rig::new();
    let id = r.submit(spec("x")).unwrap();
    let (conn, key) = r.starts()[0];
    r.report(conn, key, AttemptPhase::Running);
    for _ in 0..81 {
        assert!(r.shown(id) == "RUN" || r.now.mono_us > 61_000_000);
        r.now.mono_us += 1_000_000;
        r.step(Input::Tick);
    }
    assert_eq!(r.shown(id), "UNKWN");
}

#[test]
fn a_job_that_is_suspended_or_not_confirmed_is_as_it_was_when_its_host_is_back() {
    let mut r = Rig::new();
    let id = r.submit(spec("x")).unwrap();
    let (conn, key) = r.starts()[0];
    r.report(conn, key, AttemptPhase::Running);
    r.control(Verb::Stop, id);
    r.report(conn, key, AttemptPhase::Suspended);
    r.acts();
    r.step(Input::Closed { conn });
    let i = r.host_of(key);
    r.out(61);
    assert_eq!(r.shown(id), "UNKWN");
    let conn = r.back(i, "boot", vec![task(key, AttemptPhase::Suspended)]);
    assert_eq!((r.shown(id), r.phase(id)), ("USUSP".into(), state::Phase::Ususp(susp::USER)));
    r.report(conn, key, done());
    // the order never came
    let id = r.submit(spec("y")).unwrap();
    let (conn, key) = r.starts()[0];
    let i = r.host_of(key);
    r.step(Input::Closed { conn });
    r.out(61);
    assert_eq!(r.shown(id), "UNKWN");
    let again = |r: &mut Rig| r.starts().iter().map(|s| s.1).collect::<Vec<_>>();
    let conn = r.back(i, "boot", vec![]);
    assert_eq!((again(&mut r), r.phase(id)), (vec![key], state::Phase::Starting));
    r.report(conn, key, AttemptPhase::Running);
    assert_eq!(r.phase(id), state::Phase::Running);
}

/// A request for a job on an unreachable host stays open, and the job is shown as UNKWN.
#[test]
fn a_stop_of_an_unkwn_job_reaches_it_when_its_host_is_back() {
    let mut r = Rig::new();
    let (id, key, i) = r.lost(spec("x"));
    r.out(61);
    let select = JobSelect { ids: vec![IdSel { job: id, elems: vec![] }], ..Default::default() };
    r.ask(ADMIN, ClientMsg::Control(Box::new(Control::of(Verb::Stop, select))));
    assert_eq!((r.shown(id), r.acts()), ("UNKWN".into(), vec![]));
    let conn = r.back(i, "boot", vec![task(key, AttemptPhase::Running)]);
    assert_eq!((r.shown(id), r.acts()), ("RUN".into(), vec![Act::Suspend]));
    r.report(conn, key, AttemptPhase::Suspended);
    assert_eq!(r.phase(id), state::Phase::Ususp(susp::ADMIN));
}

#[test]
fn a_killed_job_out_of_reach_is_zombi_until_its_host_has_spoken_or_it_is_removed() {
    for remove in [false, true] {
        let mut r = Rig::new();
        let (id, key, i) = r.lost(spec("x"));
        r.out(61);
        assert_eq!((r.kill(USER, id), r.shown(id)), (0, "ZOMBI".into()));
        r.lim_says(i, false);
        r.out(60);
        assert_eq!(r.shown(id), "ZOMBI");
        if remove {
            assert_eq!(r.does(USER, Verb::Remove, id).code, 0);
            assert_eq!((r.shown(id), r.acct.len()), ("EXIT".into(), 1));
            assert_eq!(r.acct[0].exit_info, term::FORCE_OWNER);
        }
        // what still runs there is killed
        let conn = r.back(i, "boot", vec![task(key, AttemptPhase::Running)]);
        let how = if remove { term::FORCE_ADMIN } else { term::OWNER };
        assert_eq!(r.acts(), [Act::Terminate { exit_info: how }]);
        assert_eq!(r.shown(id), if remove { "EXIT" } else { "RUN" });
        let info = term::OWNER;
        r.report(conn, key, AttemptPhase::Ended { end: End::Status(9), exit_info: info });
        assert_eq!((r.shown(id), r.acct.len()), ("EXIT".into(), 1));
    }
}

#[test]
fn rerunnable_jobs_leave_a_host_that_is_given_up_and_no_other() {
    let mut r = Rig::new();
    let (id, key, i) = r.lost(rerunnable());
    // neither alone: sbatchd away, LIM away
    r.out(120);
    assert_eq!(r.shown(id), "UNKWN");
    r.lim_says(i, false);
    assert_eq!(r.shown(id), "RUN");
    let (conn, second) = r.starts_of(id)[0];
    assert_eq!((second.attempt, r.host_of(second) == i), (2, false));
    assert_eq!(r.mbd.state.left().of(at(id)).len(), 1);
    r.report(conn, second, AttemptPhase::Running);
    // the host is back with what ran there: it is killed, and has its slots until it is over
    let old = r.back(i, "boot", vec![task(key, AttemptPhase::Running)]);
    assert_eq!(r.acts(), [Act::Terminate { exit_info: term::FORCE_ADMIN }]);
    r.lim_says(i, true);
    assert_eq!(r.mbd.view().host_used(i), 1);
    let slots = r.mbd.view().host_max(i).unwrap() as u32;
    let hosts = vec![r.mbd.state.names().host(i).to_string()];
    let whole = JobSpec { hosts, min_slots: slots, max_slots: slots, ..spec("x") };
    let whole = r.submit(whole).unwrap();
    assert_eq!((slots > 1, r.shown(whole)), (true, "PEND".into()));
    r.report(old, key, AttemptPhase::Ended { end: End::Status(9), exit_info: 0 });
    assert_eq!(r.shown(whole), "RUN");
    assert_eq!((r.mbd.view().host_used(i), r.shown(id)), (slots.into(), "RUN".into()));
    r.report(conn, second, done());
    assert_eq!((r.shown(id), r.acct.len()), ("DONE".into(), 1));
    // LIM alone is away
    let mut r = Rig::new();
    let id = r.submit(rerunnable()).unwrap();
    let (conn, key) = r.starts()[0];
    r.report(conn, key, AttemptPhase::Running);
    let i = r.host_of(key);
    r.lim_says(i, false);
    r.out(200);
    assert_eq!(r.shown(id), "RUN");
}

#[test]
fn a_rerunnable_job_of_a_host_given_up_ends_where_it_was_killed() {
    for (as_done, want) in [(false, "EXIT"), (true, "DONE")] {
        let mut r = Rig::new();
        let (id, key, i) = r.lost(rerunnable());
        r.out(61);
        let select =
            JobSelect { ids: vec![IdSel { job: id, elems: vec![] }], ..Default::default() };
        let kill = Control { done: as_done, ..Control::of(Verb::Kill, select) };
        r.ask(USER, ClientMsg::Control(Box::new(kill)));
        assert_eq!(r.shown(id), "ZOMBI");
        r.lim_says(i, false);
        assert_eq!((r.shown(id).as_str(), r.starts().len()), (want, 0));
        assert_eq!(r.acct[0].exit_info, term::OWNER);
        r.back(i, "boot", vec![task(key, AttemptPhase::Running)]);
        assert_eq!(r.acts(), [Act::Terminate { exit_info: term::FORCE_ADMIN }]);
        assert_eq!(r.shown(id), want);
    }
}

/// The host is back before the job has begun again: what runs there ends first.
#[test]
fn a_job_is_not_started_while_an_attempt_left_behind_is_known_to_run() {
    for restart in [false, true] {
        let mut r = Rig::new();
        let one = |name: &str| JobSpec { hosts: vec![name.into()], ..spec("y") };
        let fill: Vec<u32> = (0..2).map(|_| r.submit(one("h2")).unwrap()).collect();
        let fill: Vec<_> = fill.iter().map(|id| r.starts_of(*id)[0]).collect();
        fill.iter().for_each(|(conn, key)| r.report(*conn, *key, AttemptPhase::Running));
        let (id, key, i) = r.lost(rerunnable());
        assert_eq!(i, super::host(0));
        r.out(61);
        r.lim_says(i, false);
        assert_eq!((r.shown(id).as_str(), r.reason(id)), ("PEND", PendReason::HostFull));
        let conn = r.back(i, "boot", vec![task(key, AttemptPhase::Running)]);
        r.lim_says(i, true);
        assert_eq!(r.acts(), [Act::Terminate { exit_info: term::FORCE_ADMIN }]);
        r.report(fill[0].0, fill[0].1, done());
        if restart {
            r.reread();
        }
        let row = |r: &mut Rig| {
            let mut row = Vec::new();
            let form = RowForm { cols: &[Col::PendReasons], whole: true, ..RowForm::default() };
            r.mbd.write_row(&mut row, at(id), &form, r.now.secs());
            String::from_utf8(row).unwrap()
        };
        r.step(Input::Tick);
        assert_eq!((r.starts().len(), row(&mut r)), (0, "[[[1007,0,[]]]]".into()));
        r.report(conn, key, AttemptPhase::Ended { end: End::Status(9), exit_info: 0 });
        assert_eq!(r.starts().iter().map(|s| s.1.attempt).collect::<Vec<_>>(), [2]);
    }
}

/// After a restart nobody knows what the host would say: its word, or its giving up, is waited for.
#[test]
fn attempt_left_behind_is_awaited_after_a_restart_until_its_host_is_given_up() {
    let mut r = Rig::new();
    let hold = JobSpec { options: opt::RERUNNABLE, hosts: vec!["h1".into()], ..spec("x") };
    let (id, _, i) = r.lost(hold);
    r.out(61);
    r.lim_says(i, false);
    assert_eq!(r.shown(id), "PEND");
    r.reread();
    r.step(Input::LogBack);
    assert!(r.mbd.unreached.bars(at(id)));
    r.out(59);
    assert!(r.mbd.unreached.bars(at(id)));
    r.out(2);
    assert!(!r.mbd.unreached.bars(at(id)));
    // another element of an array is not held up
    assert_eq!(r.shown(id), "PEND");
}

#[test]
fn of_an_array_only_the_element_left_behind_waits() {
    let mut r = Rig::new();
    let id = r.submit(JobSpec { name: "a[1-4]".into(), ..rerunnable() }).unwrap();
    let starts = r.starts();
    assert_eq!(starts.len(), 4);
    starts.iter().for_each(|(conn, key)| r.report(*conn, *key, AttemptPhase::Running));
    let lost = starts[0];
    let i = r.host_of(lost.1);
    let there: Vec<JobKey> = starts.iter().filter(|s| s.0 == lost.0).map(|s| s.1).collect();
    r.step(Input::Closed { conn: lost.0 });
    r.out(61);
    r.lim_says(i, false);
    assert_eq!(r.mbd.state.job(id).unwrap().tally().pend, 2);
    // one of them still runs when the host is back
    let conn = r.back(i, "boot", vec![task(there[0], AttemptPhase::Running)]);
    r.lim_says(i, true);
    let again: Vec<JobKey> = r.starts().iter().map(|s| s.1).collect();
    assert_eq!(again.iter().map(|k| k.idx).collect::<Vec<_>>(), [there[1].idx]);
    r.report(conn, there[0], AttemptPhase::Ended { end: End::Status(9), exit_info: 0 });
    assert_eq!(r.starts().iter().map(|s| s.1.idx).collect::<Vec<_>>(), [there[0].idx]);
}

/// A reboot is certain, whether the launcher's journal outlived it or not.
#[test]
fn a_restarted_host_sends_rerunnable_jobs_back_whether_it_knows_of_them_or_not() {
    for (known, away) in [(true, 5), (false, 5), (true, 70), (false, 70)] {
        for (spec, want) in [(rerunnable(), 1), (spec("x"), 0)] {
            let mut r = Rig::new();
            let (id, key, i) = r.lost(spec);
            r.out(away);
            let tasks = if known { vec![task(key, restarted())] } else { vec![] };
            r.back(i, "other", tasks);
            assert_eq!(r.starts_of(id).len(), want, "{known} {away}");
            assert_eq!(r.shown(id), if want == 1 { "RUN" } else { "EXIT" });
            assert!(!r.mbd.left_alive(id));
        }
    }
}

#[test]
fn a_restarted_host_ends_what_was_killed_and_sends_back_what_was_requeued() {
    for known in [true, false] {
        let back = |r: &mut Rig, i, key| {
            r.back(i, "other", if known { vec![task(key, restarted())] } else { vec![] })
        };
        let mut r = Rig::new();
        let (id, key, i) = r.lost(rerunnable());
        assert_eq!(r.kill(USER, id), 0);
        back(&mut r, i, key);
        assert_eq!((r.shown(id), r.starts().len()), ("EXIT".into(), 0));
        let mut r = Rig::new();
        let (id, key, i) = r.lost(spec("x"));
        r.control(Verb::Requeue(Requeue::default()), id);
        back(&mut r, i, key);
        assert_eq!(r.starts_of(id).len(), 1);
    }
}

/// The end of a job is known, but not what it left behind: it stays in memory.
#[test]
fn a_job_with_an_attempt_left_behind_is_not_cleaned_before_its_host_has_spoken() {
    let mut c = conf();
    c.batch.params.clean_period = 100;
    let mut r = Rig::of(c);
    let (id, key, i) = r.lost(spec("x"));
    r.out(61);
    assert_eq!(r.does(USER, Verb::Remove, id).code, 0);
    r.out(300);
    assert_eq!(r.shown(id), "EXIT");
    let conn = r.back(i, "boot", vec![task(key, AttemptPhase::Running)]);
    assert_eq!(r.acts(), [Act::Terminate { exit_info: term::FORCE_ADMIN }]);
    r.report(conn, key, AttemptPhase::Ended { end: End::Status(9), exit_info: 0 });
    r.out(200);
    assert!(r.mbd.state.job(id).is_none() && r.mbd.state.left().is_empty());
}

#[test]
fn jobs_of_a_host_that_the_configuration_does_not_name_any_more_are_unkwn() {
    let mut r = Rig::new();
    let on = JobSpec { hosts: vec!["h2".into()], ..spec("x") };
    let id = r.submit(on).unwrap();
    let (conn, key) = r.starts()[0];
    r.report(conn, key, AttemptPhase::Running);
    let mut less = conf();
    less.base.cluster.hosts.retain(|h| h.name != "h2");
    r.step(Input::Config { conf: Some(Box::new(less)), diags: vec![] });
    assert_eq!((r.shown(id), r.kill(USER, id)), ("UNKWN".into(), 0));
    assert_eq!(r.shown(id), "ZOMBI");
    assert_eq!(r.does(USER, Verb::Remove, id).code, 0);
    assert_eq!(r.shown(id), "EXIT");
}

#[test]
fn conditions_and_filters_take_an_unkwn_job_for_a_started_one() {
    let mut r = Rig::new();
    let (id, ..) = r.lost(spec("x"));
    let waits = r.submit(JobSpec { depend: format!("started({id})"), ..spec("y") }).unwrap();
    let not = r.submit(JobSpec { depend: format!("ended({id})"), ..spec("z") }).unwrap();
    r.out(61);
    assert_eq!(r.shown(id), "UNKWN");
    assert_eq!((r.shown(waits), r.shown(not)), ("RUN".into(), "PEND".into()));
    let which = |run, done| Which { run, done, ..Which::default() };
    let state = r.mbd.state.elem(at(id)).unwrap().stat();
    assert!(crate::batch::query::selection::wanted(which(true, false), state, false));
    assert!(!crate::batch::query::selection::wanted(which(false, true), state, false));
}

#[test]
fn hung_jobs_of_a_host_out_of_reach_are_removed_after_the_wait_time() {
    for wait in [None, Some(300)] {
        let mut c = conf();
        c.batch.params.removal.hung = HungJobs { host_unavail: wait, ..HungJobs::default() };
        let mut r = Rig::of(c);
        let (id, key, i) = r.lost(spec("x"));
        r.out(299);
        assert_eq!(r.shown(id), "UNKWN", "{wait:?}");
        r.out(61);
        if wait.is_none() {
            assert_eq!((r.shown(id), r.acct.len()), ("UNKWN".into(), 0));
            continue;
        }
        assert_eq!((r.shown(id), r.acct.len()), ("EXIT".into(), 1));
        let end = (r.acct[0].exit_info, r.acct[0].unknown_end);
        assert_eq!(end, (term::REMOVE_HUNG_JOB, true));
        assert_eq!(r.restarted().state.left().of(at(id)).len(), 1);
        // what still runs there is killed when the host is back
        r.back(i, "boot", vec![task(key, AttemptPhase::Running)]);
        assert_eq!(r.acts(), [Act::Terminate { exit_info: term::FORCE_ADMIN }]);
        assert_eq!((r.shown(id), r.acct.len()), ("EXIT".into(), 1));
    }
}

#[test]
fn hung_jobs_over_their_run_limit_are_removed_after_the_wait_time_and_no_others() {
    let (running, stopped) = (AttemptPhase::Running, AttemptPhase::Suspended);
    for (run, phase, lost, gone) in [
        (Some(60), &running, false, true),
        (Some(60), &running, true, true),
        (Some(60), &stopped, false, false),
        (None, &running, false, false),
    ] {
        let mut c = conf();
        c.batch.params.removal.hung = HungJobs { runlimit: Some(300), ..HungJobs::default() };
        let mut r = Rig::of(c);
        let limits = Limits { run, ..Limits::default() };
        let id = r.submit(JobSpec { limits, ..spec("x") }).unwrap();
        let (conn, key) = r.starts_of(id)[0];
        r.report(conn, key, AttemptPhase::Running);
        r.report(conn, key, phase.clone());
        if lost {
            r.step(Input::Closed { conn });
        }
        let case = format!("{run:?} {phase:?} {lost}");
        r.out(359);
        assert_eq!((r.shown(id) == "EXIT", r.acct.len()), (false, 0), "{case}");
        r.out(62);
        assert_eq!((r.shown(id) == "EXIT", r.acct.len()), (gone, gone.into()), "{case}");
        if gone {
            assert_eq!(r.acct[0].exit_info, term::REMOVE_HUNG_JOB, "{case}");
            // what may still run there is not forgotten
            assert_eq!(r.mbd.state.left().of(at(id)).len(), 1, "{case}");
        }
    }
}

#[test]
fn turn_looks_at_a_bounded_number_of_started_jobs_for_those_that_hang() {
    let jobs = 2 * LOOKS_PER_TURN + 10;
    let site = cluster().hosts(7, jobs as u32 / 7 + 1).param("MAX_JOB_ARRAY_SIZE = 10000");
    let mut c = site.param("REMOVE_HUNG_JOBS_FOR = runlimit,wait_time=5").up();
    c.audit_seldom();
    let short = c.submit("ann", &format!("-W 2 -J a[1-{}]", LOOKS_PER_TURN));
    let long = c.submit("ann", &format!("-W 60 -J a[1-{}]", jobs - LOOKS_PER_TURN));
    c.advance(1);
    c.hung_looks();
    c.advance(60);
    assert_eq!(c.hung_looks(), [LOOKS_PER_TURN, LOOKS_PER_TURN, 10]);
    c.advance(300);
    let idx = LOOKS_PER_TURN as u32;
    let states = |c: &mut Cluster| [1, idx].map(|idx| c.state(JobRef { idx, ..short }));
    assert_eq!(states(&mut c), ["RUN", "RUN"]);
    c.advance(120);
    assert_eq!(states(&mut c), ["EXIT", "EXIT"]);
    assert_eq!(c.state(JobRef { idx, ..long }), "RUN");
    c.hung_looks();
    c.advance(60);
    assert_eq!(c.hung_looks(), [LOOKS_PER_TURN, 10]);
}
