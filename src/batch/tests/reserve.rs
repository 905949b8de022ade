//! rusage and what it leaves; loadStop: suspending and resuming by load. External indices like
//! built-in ones.

use super::*;
use crate::conf::types::{ResourceDef, ResourceInstance, ResourceKind, ResourceMapping, Threshold};
use crate::model::reason::{pend, susp};

/// Two hosts that share three `lic` and an elim's `tok`; each has a `scr` of its own.
fn shared_conf() -> ClusterConf {
    let mut c = conf();
    for (name, interval) in [("lic", None), ("tok", Some(15)), ("scr", Some(15))] {
        c.base.shared.resources.push(ResourceDef {
            name: name.into(),
            kind: ResourceKind::Numeric,
            interval,
            increasing: Some(false),
            release: true,
            consumable: true,
            description: String::new(),
        });
    }
    for (name, value, place) in
        [("lic", Some("3"), "all"), ("tok", None, "all"), ("scr", None, "default")]
    {
        let hosts = vec![place.to_owned()];
        let instances = vec![ResourceInstance { value: value.map(str::to_owned), hosts }];
        let resource = name.to_owned();
        c.base.cluster.resource_map.push(ResourceMapping {
            resource,
            instances,
            ..Default::default()
        });
    }
    c.batch.hosts.hosts[0].mxj = Mxj::Slots(9);
    c.batch.params.sbd_sleep_time = 15;
    c
}

fn threshold(index: &str, sched: Option<f64>, stop: Option<f64>) -> Threshold {
    Threshold { index: index.into(), sched, stop }
}

impl Rig {
    /// LIM tells that both hosts have so much memory and these values of external indices.
    fn loads(&mut self, mem: f32, external: &[(&str, &str)]) {
        self.loads_idle(mem, 0.0, external);
    }

    /// As [`Rig::loads`], where nobody has sat at the hosts for so many minutes.
    fn loads_idle(&mut self, mem: f32, idle: f32, external: &[(&str, &str)]) {
        let hosts::Link::Up { conn } = self.mbd.net.lim() else { panic!("no LIM") };
        let shared = vec![("lic".to_owned(), "3".to_owned())];
        let facts = HostFacts { ncpus: 4, cpu_factor: 1.0, shared, ..Default::default() };
        let pairs = external.iter().map(|(n, v)| (n.to_string(), v.to_string()));
        let external: Vec<_> = pairs.collect();
        let load = |h: &str| {
            let mut load =
                HostLoad { host: h.into(), external: external.clone(), ..<_>::default() };
            load.index[10] = mem;
            load.index[7] = idle;
            load.facts = Some(facts.clone());
            load
        };
        let msg = LimMsg::Loads { hosts: vec![load("h1"), load("h2")] };
        self.step(Input::Msg { conn, msg: Msg::Lim(msg) });
    }

    fn wants(&mut self, req: &str) -> u32 {
        self.submit(JobSpec { res_req: req.into(), ..spec("x") }).unwrap()
    }

    fn wants_on(&mut self, host: &str, req: &str) -> u32 {
        let hosts = vec![host.to_owned()];
        self.submit(JobSpec { res_req: req.into(), hosts, ..spec("x") }).unwrap()
    }

    fn host_row(&mut self, host: &str) -> HostInfo {
        let ask = ClientMsg::Hosts { names: vec![host.into()], res_req: String::new() };
        match self.ask(USER, ask) {
            Some(Msg::Client(ClientMsg::HostRows { mut rows })) => rows.remove(0),
            other => panic!("{other:?}"),
        }
    }

    /// Lets seconds pass; every host with a link is heard of.
    pub(super) fn later(&mut self, secs: u64) {
        for _ in 0..secs {
            self.now.mono_us += 1_000_000;
            self.now.wall_us += 1_000_000;
            for conn in self.mbd.net.hosts.values().filter_map(|h| h.up()).collect::<Vec<_>>() {
                self.step(Input::Msg { conn, msg: Msg::Pong { n: 0 } });
            }
            self.step(Input::Tick);
        }
    }

    fn why(&self, job: u32) -> Vec<u32> {
        self.mbd.sched.reasons(job).iter().map(|r| self.mbd.reason_told(r.0).0).collect()
    }
}

#[test]
fn the_configuration_is_read_again_where_another_branch_holds() {
    let mut c = conf();
    c.changes = Some(1_700_000_000 + 90);
    let mut r = Rig::of(c.clone());
    let asked = |r: &mut Rig, secs: u64| {
        let mut out = Vec::new();
        for _ in 0..secs {
            r.now.mono_us += 1_000_000;
            r.now.wall_us += 1_000_000;
            r.mbd.step(r.now, Input::Tick, &mut out);
        }
        out.iter().filter(|e| matches!(e, Effect::LoadConfig)).count()
    };
    assert!(r.mbd.shut.deadline().is_some_and(|d| d == r.now.mono_us + 90_000_000));
    assert_eq!((asked(&mut r, 89), asked(&mut r, 1)), (0, 1));
    // what is refused is tried again after a while
    r.step(Input::Config { conf: None, diags: vec![] });
    assert_eq!((asked(&mut r, 500), asked(&mut r, 100)), (0, 1));
    c.changes = Some(r.now.secs() + 5);
    r.step(Input::Config { conf: Some(Box::new(c.clone())), diags: vec![] });
    assert_eq!((asked(&mut r, 4), asked(&mut r, 1)), (0, 1));
    c.changes = None;
    r.step(Input::Config { conf: Some(Box::new(c)), diags: vec![] });
    assert_eq!(asked(&mut r, 2000), 0);
}

#[test]
fn what_hosts_share_is_reserved_once_and_on_all_of_them() {
    let mut r = Rig::of(shared_conf());
    r.loads(1000.0, &[("tok", "5"), ("scr", "10")]);
    let one = r.wants_on("h1", "rusage[lic=2]");
    let two = r.wants_on("h2", "rusage[lic=2]");
    let starts = r.starts();
    assert_eq!(starts.iter().map(|s| s.1.job).collect::<Vec<_>>(), [one]);
    assert!(r.why(two).contains(&pend::RESERVE_EXTERNAL), "{:?}", r.why(two));
    let told = r.mbd.sched.reasons(two).iter().map(|why| r.mbd.reason_told(why.0));
    assert!({ told }.any(|why| why == (pend::RESERVE_EXTERNAL, "lic")));
    assert!(r.reasons_shown(two).contains("[2612,1,[\"h2\"],\"lic\"]"), "{}", r.reasons_shown(two));
    for host in ["h1", "h2"] {
        let row = r.host_row(host);
        assert_eq!(row.reserved_external, [("lic".to_owned(), "2.0".to_owned())]);
        let facts = row.load.and_then(|l| l.facts).unwrap();
        assert_eq!(facts.shared, [("lic".to_owned(), "1".to_owned())]);
    }
    // what is left is what select and thresholds see
    let no = r.wants("select[lic>1]");
    let yes = r.wants("select[lic==1]");
    assert_eq!(r.starts().iter().map(|s| s.1.job).collect::<Vec<_>>(), [yes]);
    r.report(starts[0].0, starts[0].1, Phase::Running);
    r.report(starts[0].0, starts[0].1, done());
    let next: Vec<u32> = r.starts().iter().map(|s| s.1.job).collect();
    // the reservation of `two` leaves one again
    assert_eq!((next, r.stat(no, 0)), (vec![two], "PEND"));
}

#[test]
fn measured_values_are_reserved_by_host_or_by_what_is_shared() {
    let mut r = Rig::of(shared_conf());
    r.loads(1000.0, &[("tok", "5"), ("scr", "10")]);
    let first = r.wants_on("h1", "rusage[scr=6:tok=3]");
    let (conn, key) = r.starts()[0];
    assert_eq!(key.job, first);
    r.report(conn, key, Phase::Running);
    // scr is the host's own, tok is everybody's
    let own = r.wants_on("h2", "rusage[scr=6]");
    let same = r.wants_on("h1", "rusage[scr=6]");
    let other = r.wants_on("h2", "rusage[tok=3]");
    assert_eq!(r.starts().iter().map(|s| s.1.job).collect::<Vec<_>>(), [own]);
    assert!(r.why(same).contains(&pend::RESERVE_EXTERNAL));
    let load = r.host_row("h1").load.unwrap();
    assert_eq!(load.external, [("tok".into(), "2".into()), ("scr".into(), "4".into())]);
    // a stopped job gives back what RELEASE says
    r.control(Verb::Stop, first);
    r.report(conn, key, Phase::Suspended);
    let next: Vec<u32> = r.starts().iter().map(|s| s.1.job).collect();
    assert_eq!(next, [same, other]);
}

#[test]
fn memory_is_reserved_until_it_is_used_or_the_time_is_over() {
    let mut r = Rig::of(shared_conf());
    r.loads(1000.0, &[]);
    let first = r.wants_on("h1", "rusage[mem=600:duration=1]");
    let (conn, key) = r.starts()[0];
    r.report(conn, key, Phase::Running);
    let second = r.wants_on("h1", "rusage[mem=600]");
    assert!(r.why(second).contains(&(pend::RESERVE + 10)), "{:?}", r.why(second));
    let row = r.host_row("h1");
    assert_eq!((row.reserved[10], row.load.unwrap().index[10]), (600.0, 400.0));
    // memory in use is in the measured value already
    let usage = crate::model::job::Usage { mem_kb: 500 << 10, ..Default::default() };
    let msg = SbdMsg::Usage { key, usage, pids: vec![], pgids: vec![], groups: vec![] };
    r.step(Input::Msg { conn, msg: Msg::Sbd(msg) });
    r.loads(500.0, &[]);
    let row = r.host_row("h1");
    assert_eq!((row.reserved[10], row.load.unwrap().index[10]), (600.0, 400.0));
    // a stopped job keeps its memory
    r.control(Verb::Stop, first);
    r.report(conn, key, Phase::Suspended);
    assert_eq!(r.host_row("h1").reserved[10], 600.0);
    r.later(61);
    r.loads(1000.0, &[]);
    assert_eq!(r.host_row("h1").reserved[10], 600.0, "the second's");
    assert_eq!(r.starts().iter().map(|s| s.1.job).collect::<Vec<_>>(), [second]);
}

#[test]
fn tasks_reserve_each_where_they_are_asked_to() {
    let mut r = Rig::of(shared_conf());
    r.loads(1000.0, &[("scr", "10")]);
    let three = JobSpec { min_slots: 3, max_slots: 3, ..spec("x") };
    let of = |req: &str| JobSpec { res_req: req.into(), ..three.clone() };
    // two fit on a host, the third goes to the other
    let id = r.submit(of("rusage[scr=5/task]")).unwrap();
    let run = r.mbd.st.job(id).unwrap().elem(0).unwrap().run().unwrap();
    assert_eq!(run.hosts.iter().map(|h| h.1).collect::<Vec<_>>(), [2, 1]);
    let left: Vec<String> =
        ["h1", "h2"].map(|h| r.host_row(h).load.unwrap().external[0].1.clone()).to_vec();
    assert_eq!(left, ["0", "5"]);
    // by host: once on each
    let id = r.submit(of("rusage[mem=700]")).unwrap();
    assert_eq!(r.stat(id, 0), "RUN");
    let row = r.host_row("h1");
    assert_eq!(row.reserved[10], 700.0);
}

#[test]
fn load_stop_suspends_one_after_the_other_and_load_sched_lets_go_on() {
    let mut c = shared_conf();
    for q in &mut c.batch.queues {
        q.thresholds = vec![threshold("tok", Some(4.0), Some(2.0))];
    }
    let mut r = Rig::of(c.clone());
    r.loads(1000.0, &[("tok", "5")]);
    let on_h1 =
        |queue: &str| JobSpec { queue: queue.into(), hosts: vec!["h1".into()], ..spec("x") };
    let high = r.submit(on_h1("high")).unwrap();
    let low = r.submit(on_h1("normal")).unwrap();
    for (conn, key) in r.starts() {
        r.report(conn, key, Phase::Running);
    }
    // beyond loadSched nothing starts, and what runs goes on
    r.loads(1000.0, &[("tok", "3")]);
    let waits = r.submit(on_h1("normal")).unwrap();
    assert!(r.acts().is_empty() && r.why(waits).contains(&pend::LOAD_EXTERNAL));
    let shown = r.reasons_shown(waits);
    assert!(shown.contains("[2012,1,[\"h1\"],\"tok\"]"), "{shown}");
    // beyond loadStop the lower queue's goes first; the other one is alone then, and goes on where
    // nobody sits at the host
    r.loads_idle(1000.0, 5.0, &[("tok", "1")]);
    assert_eq!((r.acts(), r.stat(high, 0), r.stat(low, 0)), (vec![Act::Suspend], "RUN", "SSUSP"));
    assert_eq!(r.phase(low), state::Phase::Ssusp(susp::LOAD_EXTERNAL));
    let run = r.mbd.st.job(low).unwrap().elem(0).unwrap().run().unwrap();
    let (key, conn) = (run.key, r.mbd.net.hosts[super::host(0)].up().unwrap());
    r.report(conn, key, Phase::Suspended);
    r.later(20);
    assert_eq!((r.acts(), r.stat(high, 0), r.stat(low, 0)), (vec![], "RUN", "SSUSP"));
    // the log says the same
    let found = Recovered { records: r.log.clone(), epoch: 2, ..Default::default() };
    assert_eq!(Mbd::new(c, "h1", found).st.job(low).unwrap().tally.ssusp, 1);
    // between the two it stays; within loadSched it goes on
    r.loads(1000.0, &[("tok", "3")]);
    assert_eq!(r.acts(), []);
    r.loads(1000.0, &[("tok", "5")]);
    assert_eq!(r.acts(), [Act::Resume]);
    r.report(conn, key, Phase::Running);
    assert_eq!(r.stat(low, 0), "RUN");
}

#[test]
fn hosts_suspend_by_their_own_thresholds_no_faster_than_the_load_follows() {
    let mut c = shared_conf();
    c.batch.hosts.hosts[0].thresholds = vec![threshold("mem", None, Some(500.0))];
    let mut r = Rig::of(c);
    r.loads(1000.0, &[]);
    let jobs: Vec<u32> = (0..3).map(|_| r.wants_on("h1", "")).collect();
    for (conn, key) in r.starts() {
        r.report(conn, key, Phase::Running);
    }
    let suspended = |r: &Rig| jobs.iter().filter(|j| r.stat(**j, 0) == "SSUSP").count();
    r.loads(100.0, &[]);
    assert_eq!((r.acts(), suspended(&r)), (vec![Act::Suspend], 1));
    r.loads(90.0, &[]);
    assert_eq!((r.acts(), suspended(&r)), (vec![], 1), "not before SBD_SLEEP_TIME");
    let conn = r.mbd.net.hosts[super::host(0)].up().unwrap();
    let held: Vec<u32> = jobs.iter().copied().filter(|j| r.stat(*j, 0) == "SSUSP").collect();
    let key = r.mbd.st.job(held[0]).unwrap().elem(0).unwrap().run().unwrap().key;
    assert_eq!(r.phase(held[0]), state::Phase::Ssusp(susp::LOAD + 10));
    r.report(conn, key, Phase::Suspended);
    r.later(16);
    assert_eq!((r.acts(), suspended(&r)), (vec![Act::Suspend], 2));
    // a host that comes back and says it runs is told again
    r.step(Input::Closed { conn });
    r.later(5);
    r.meet(key, Phase::Running);
    assert_eq!((r.acts(), r.stat(held[0], 0)), (vec![Act::Suspend], "SSUSP"));
}

/// Jobs that run on h1, in this order.
fn running(r: &mut Rig, queues: &[&str]) -> Vec<(u32, ConnId, JobKey)> {
    let on_h1 =
        |queue: &&str| JobSpec { queue: queue.to_string(), hosts: vec!["h1".into()], ..spec("x") };
    let ids: Vec<u32> = queues.iter().map(|q| r.submit(on_h1(q)).unwrap()).collect();
    let starts = r.starts();
    starts.iter().for_each(|(conn, key)| r.report(*conn, *key, Phase::Running));
    let of = |id: &u32| starts.iter().find(|s| s.1.job == *id).map(|s| (*id, s.0, s.1)).unwrap();
    ids.iter().map(of).collect()
}

#[test]
fn stop_cond_suspends_and_resume_cond_lets_go_on() {
    let mut c = shared_conf();
    for q in &mut c.batch.queues {
        q.stop_cond = Some("select[tok<2]".into());
        q.resume_cond = Some("scr>=10".into());
        q.thresholds = vec![threshold("tok", Some(3.0), None)];
    }
    let mut r = Rig::of(c.clone());
    let idle = |r: &mut Rig, tok: &str, scr: &str| r.loads(1000.0, &[("tok", tok), ("scr", scr)]);
    idle(&mut r, "5", "10");
    let jobs = running(&mut r, &["high", "normal"]);
    assert_eq!(r.acts(), []);
    let (low, conn, key) = jobs[1];
    idle(&mut r, "1", "10");
    assert_eq!((r.acts(), r.stat(low, 0)), (vec![Act::Suspend], "SSUSP"));
    assert_eq!(r.phase(low), state::Phase::Ssusp(susp::STOP_COND));
    r.report(conn, key, Phase::Suspended);
    // the other one is alone at a host that somebody sits at: `it` is 0 in these loads
    r.later(16);
    assert_eq!((r.acts(), r.stat(jobs[0].0, 0)), (vec![Act::Suspend], "SSUSP"));
    r.report(jobs[0].1, jobs[0].2, Phase::Suspended);
    // it does not hold any more, but loadSched does not let go on
    r.later(16);
    idle(&mut r, "2", "10");
    assert_eq!(r.acts(), []);
    // nor does RESUME_COND, which is told then
    idle(&mut r, "5", "9");
    assert_eq!((r.acts(), r.phase(low)), (vec![], state::Phase::Ssusp(susp::RESUME_COND)));
    let found = Recovered { records: r.log.clone(), epoch: 2, ..Default::default() };
    assert_eq!(Mbd::new(c, "h1", found).st.job(low).unwrap().tally.ssusp, 1);
    idle(&mut r, "5", "10");
    assert_eq!(r.acts(), [Act::Resume]);
    r.report(jobs[0].1, jobs[0].2, Phase::Running);
    assert_eq!((r.stat(jobs[0].0, 0), r.stat(low, 0)), ("RUN", "SSUSP"), "the higher queue's");
}

#[test]
fn stop_cond_leaves_a_job_that_is_alone_on_an_idle_host() {
    let mut c = shared_conf();
    c.batch.queues.iter_mut().for_each(|q| q.stop_cond = Some("select[tok<2]".into()));
    let mut r = Rig::of(c);
    r.loads(1000.0, &[("tok", "5")]);
    let jobs = running(&mut r, &["normal"]);
    r.loads_idle(1000.0, 5.0, &[("tok", "1")]);
    assert_eq!((r.acts(), r.stat(jobs[0].0, 0)), (vec![], "RUN"));
    r.loads(1000.0, &[("tok", "1")]);
    assert_eq!((r.acts(), r.stat(jobs[0].0, 0)), (vec![Act::Suspend], "SSUSP"));
}

#[test]
fn a_job_that_is_alone_is_suspended_for_any_index_where_somebody_uses_the_host() {
    let mut c = shared_conf();
    let stop = |c: &mut ClusterConf, name: &str, bound: f64| {
        let threshold = threshold(name, None, Some(bound));
        c.batch.queues.iter_mut().for_each(|q| q.thresholds = vec![threshold.clone()]);
    };
    stop(&mut c, "mem", 500.0);
    let mut r = Rig::of(c.clone());
    r.loads_idle(1000.0, 5.0, &[]);
    let jobs = running(&mut r, &["normal"]);
    r.loads_idle(100.0, 5.0, &[]);
    assert_eq!((r.acts(), r.stat(jobs[0].0, 0)), (vec![], "RUN"), "nobody is there");
    r.loads_idle(100.0, 0.5, &[]);
    assert_eq!((r.acts(), r.stat(jobs[0].0, 0)), (vec![Act::Suspend], "SSUSP"));
    // what counts is that the host is in use, not the bound of `it`
    stop(&mut c, "it", 10.0);
    let mut r = Rig::of(c);
    r.loads_idle(1000.0, 15.0, &[]);
    let jobs = running(&mut r, &["normal"]);
    r.loads_idle(1000.0, 5.0, &[]);
    assert_eq!((r.acts(), r.stat(jobs[0].0, 0)), (vec![], "RUN"));
    r.loads_idle(1000.0, 0.0, &[]);
    assert_eq!((r.acts(), r.stat(jobs[0].0, 0)), (vec![Act::Suspend], "SSUSP"));
}

#[test]
fn terminate_when_ends_what_would_be_suspended() {
    use crate::model::reason::term;
    let mut c = shared_conf();
    for q in &mut c.batch.queues {
        q.thresholds = vec![threshold("tok", None, Some(2.0))];
        q.terminate_when = Some("WINDOW LOAD".into());
    }
    c.batch.queues[0].run_window = super::SHUT_SOON.into();
    let queue = c.batch.queues[0].name.clone();
    let mut r = Rig::of(c.clone());
    r.loads(1000.0, &[("tok", "5")]);
    let jobs = running(&mut r, &[&queue, &queue, &queue]);
    r.loads(1000.0, &[("tok", "1")]);
    assert_eq!(r.acts(), [Act::Terminate { exit_info: term::LOAD }]);
    let gone = jobs.iter().find(|j| r.mbd.st.running(j.2).is_some_and(|r| r.killed.is_some()));
    let &(id, conn, key) = gone.unwrap();
    // the host is told again where it comes back, and by the next mbatchd
    let found = Recovered { records: r.log.clone(), epoch: 2, ..Default::default() };
    let next = Mbd::new(c, "h1", found);
    assert_eq!(next.st.running(key).unwrap().killed, Some(term::LOAD));
    let end = Phase::Ended { end: End::Status(15), exit_info: term::LOAD };
    r.report(conn, key, end);
    assert_eq!(r.stat(id, 0), "EXIT");
    r.loads(1000.0, &[("tok", "5")]);
    assert_eq!(r.acts(), []);
    // the run window closes
    r.pass(40);
    let windows = vec![Act::Terminate { exit_info: term::WINDOW }; 2];
    assert_eq!(r.acts(), windows);
    r.later(40);
    assert_eq!(r.acts(), [], "told once");
}

#[test]
fn the_first_alternative_that_fits_is_reserved() {
    let mut r = Rig::of(shared_conf());
    r.loads(1000.0, &[("tok", "5"), ("scr", "10")]);
    let req = "rusage[lic=2:tok=1 || scr=6]";
    let jobs: Vec<u32> = (0..4).map(|_| r.wants(req)).collect();
    let text = |r: &Rig, id: u32| {
        let run = r.mbd.st.job(id).unwrap().elem(0).unwrap().run();
        run.map_or(String::new(), |run| run.eff_res_req.to_string())
    };
    // two of three lic are gone with the first; the next two take a host's own scr each
    let rusage = ["rusage[lic=2.00,tok=1.00]", "rusage[scr=6.00]", "rusage[scr=6.00]"];
    for (id, want) in jobs.iter().zip(rusage) {
        assert!(text(&r, *id).contains(want), "{}", text(&r, *id));
    }
    assert_eq!(r.stat(jobs[3], 0), "PEND");
    assert!(r.why(jobs[3]).contains(&pend::RESERVE_EXTERNAL), "{:?}", r.why(jobs[3]));
    let external = ["h1", "h2"].map(|h| r.host_row(h).load.unwrap().external);
    let left = [("tok".to_owned(), "4".to_owned()), ("scr".to_owned(), "4".to_owned())];
    assert_eq!(external, [left.to_vec(), left.to_vec()]);
    // as soon as the first gives back, the first alternative is the one again
    let starts = r.starts();
    let (conn, key) = *starts.iter().find(|s| s.1.job == jobs[0]).unwrap();
    r.report(conn, key, Phase::Running);
    r.report(conn, key, done());
    assert!(text(&r, jobs[3]).contains(rusage[0]), "{}", text(&r, jobs[3]));
}

#[test]
fn the_reservation_of_a_running_job_is_changed() {
    use crate::model::specfield::SpecField::ResReq;
    let of_job = |job| IdSel { job, elems: vec![] };
    let mut c = conf();
    c.base.lsf.set("LSB_MOD_ALL_JOBS", "Y");
    let mut r = Rig::of(c);
    r.loads(1000.0, &[]);
    let asks = |text: &str| JobSpec { res_req: text.into(), ..spec("x") };
    let id = r.submit(asks("select[mem>1] rusage[mem=100]")).unwrap();
    let (conn, key) = r.starts()[0];
    r.report(conn, key, Phase::Running);
    let of = |m: &Mbd| {
        let job = m.st.job(id).unwrap();
        let eff = job.elem(0).unwrap().run().unwrap().eff_res_req.to_string();
        (job.spec.res_req.clone(), eff)
    };
    let before = of(&r.mbd);
    for bad in
        ["select[mem>2] rusage[mem=50]", "span[hosts=1]", "{rusage[mem=1]} || {rusage[mem=2]}"]
    {
        assert_eq!(r.modify_of(USER, of_job(id), &[ResReq], asks(bad)), err::MOD_RUNNING, "{bad}");
    }
    assert_eq!(r.modify_of(USER, of_job(id), &[ResReq], asks("rusage[nosuch")), err::BAD_RESREQ);
    assert_eq!(of(&r.mbd), before);
    assert_eq!(r.modify_of(USER, of_job(id), &[ResReq], asks("rusage[mem=40]")), 0);
    for m in [&r.mbd, &r.restarted()] {
        let (asked, eff) = of(m);
        assert!(asked.contains("select[mem>1]") && asked.contains("rusage[mem=40"), "{asked}");
        assert!(eff.contains("rusage[mem=40") && !eff.contains("100"), "{eff}");
    }
    // It reserves that much from now on, and nothing once it is told so.
    let reserved = |r: &mut Rig| {
        r.submit(spec("y")).unwrap();
        r.mbd.reserved_shown(super::host(0)).0.iter().sum::<f64>()
            + r.mbd.reserved_shown(super::host(1)).0.iter().sum::<f64>()
    };
    assert_eq!(reserved(&mut r), 40.0);
    assert_eq!(r.modify_of(USER, of_job(id), &[ResReq], JobSpec::default()), 0);
    assert_eq!(reserved(&mut r), 0.0);
}

#[test]
fn a_host_with_an_exclusive_resource_takes_who_asks_for_it() {
    use crate::conf::types::HostResource;
    let mut c = shared_conf();
    for name in ["big", "cs"] {
        let kind = ResourceKind::Boolean;
        c.base.shared.resources.push(ResourceDef { name: name.into(), kind, ..<_>::default() });
    }
    let has =
        |name: &str, exclusive| HostResource { name: name.into(), exclusive, ..<_>::default() };
    c.base.cluster.hosts[0].resources = vec![has("big", true), has("cs", false)];
    let mut r = Rig::of(c);
    r.loads(1000.0, &[]);
    let plain = r.wants_on("h1", "");
    let other = r.wants_on("h1", "select[cs]");
    let asks = r.wants("select[big]");
    let host = |r: &Rig, id: u32| {
        let run = r.mbd.st.job(id).unwrap().elem(0).unwrap().run();
        run.map(|run| r.mbd.st.names.host(run.hosts[0].0).to_string())
    };
    assert_eq!((host(&r, plain), host(&r, other)), (None, None));
    assert_eq!(host(&r, asks).as_deref(), Some("h1"));
    assert!(r.why(plain).contains(&pend::RES_REQ), "{:?}", r.why(plain));
    let free = r.wants("");
    assert_eq!(host(&r, free).as_deref(), Some("h2"));
}
