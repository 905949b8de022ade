//! The LIM machine, driven by hand.

use super::*;
use crate::conf::{HostDef, HostTable};
use crate::proto::Daemon;
use crate::proto::lim::HostFacts;
use crate::proto::machine::INCOMING;

const SUB: ConnId = INCOMING + 1;
const USER: ConnId = INCOMING + 2;

fn base() -> BaseConf {
    let mut base = BaseConf {
        name: "c1".into(),
        hosts: HostTable::new(["h1", "h2", "cl"], &[]),
        ..BaseConf::default()
    };
    base.cluster.hosts = [("h1", true), ("h2", true), ("cl", false)]
        .map(|(name, server)| HostDef { name: name.into(), server, ..HostDef::default() })
        .to_vec();
    base.cluster.hosts[1].thresholds = vec![("ut".into(), 0.5)];
    base.cluster.params.exinterval = 10;
    base.cluster.params.host_inactivity_limit = 3;
    base
}

fn at(secs: u64) -> Now {
    Now { mono_us: secs * US, wall_us: 1_700_000_000_000_000 + (secs * US) as i64 }
}

fn step(lim: &mut Lim, secs: u64, input: Input) -> Vec<Effect> {
    let mut out = Vec::new();
    lim.step(at(secs), input, &mut out);
    out
}

fn sample(cpu_busy: u64, cpu_total: u64) -> Input {
    let facts =
        HostFacts { nprocs: 1, ncores: 4, nthreads: 1, max_mem: 8000, ..HostFacts::default() };
    Input::Sample(Box::new(LoadSample {
        run_queue: 2.0,
        cpu_busy,
        cpu_total,
        mem: 4000,
        facts,
        boot_id: "b".into(),
        ..LoadSample::default()
    }))
}

fn beat_of(host: &str, ut: f32) -> Input {
    let mut load = Box::new(HostLoad { host: host.into(), ..HostLoad::default() });
    load.index[3] = ut;
    load.status = status::UNAVAIL | status::LOCK_U;
    load.facts = Some(HostFacts { nprocs: 2, ncores: 1, ..HostFacts::default() });
    Input::Datagram { from: host.into(), msg: Msg::Lim(LimMsg::Beat { load }) }
}

fn daemon() -> Peer {
    Peer::Daemon { daemon: Daemon::Mbatchd, host: "h1".into() }
}

fn pushed(out: &[Effect]) -> Vec<(ConnId, String, u32)> {
    let mut got = Vec::new();
    for e in out {
        if let Effect::Send { conn, msg: Msg::Lim(LimMsg::Loads { hosts }) } = e {
            got.extend(hosts.iter().map(|h| (*conn, h.host.clone(), h.status)));
        }
    }
    got
}

fn master() -> Lim {
    let mut lim = Lim::new(base(), "h1");
    step(&mut lim, 0, Input::Start);
    step(&mut lim, 0, sample(0, 0));
    step(&mut lim, 0, Input::Opened { conn: SUB, peer: daemon() });
    let user = Peer::User { uid: 1, gid: 1, user: "u".into(), host: "h1".into() };
    step(&mut lim, 0, Input::Opened { conn: USER, peer: user });
    lim
}

fn ask(lim: &mut Lim, conn: ConnId, msg: LimMsg) -> Vec<Effect> {
    step(lim, 0, Input::Msg { conn, msg: Msg::Lim(msg) })
}

fn announcement(cluster: &str) -> LimMsg {
    let (cluster, report) = (cluster.to_owned(), Vec::new());
    LimMsg::Announce { cluster, want: true, report, undecided: false }
}

#[test]
fn a_slave_tells_the_master_eagerly_then_each_interval() {
    let mut lim = Lim::new(base(), "h2");
    let out = step(&mut lim, 0, Input::Start);
    assert!(matches!(out[0], Effect::Sample));
    let beat =
        |e: &Effect| matches!(e, Effect::Datagram { msg: Msg::Lim(LimMsg::Beat { .. }), .. });
    assert!(!out.iter().any(beat));
    let mut beats = Vec::new();
    let mut count = |secs: u64, out: &[Effect]| {
        for e in out {
            if let Effect::Datagram { to, msg: Msg::Lim(LimMsg::Beat { load }) } = e {
                assert_eq!((to.as_str(), load.host.as_str()), ("h1", "h2"));
                assert_eq!(load.facts.as_ref().map(|f| f.max_mem), Some(8000));
                beats.push(secs);
            }
        }
    };
    count(0, &step(&mut lim, 0, sample(0, 0)));
    for secs in 1..=35 {
        let out = step(&mut lim, secs, Input::Tick);
        if out.iter().any(|e| matches!(e, Effect::Sample)) {
            assert_eq!(secs % SAMPLE_SECS, 0);
        }
        count(secs, &out);
    }
    assert_eq!(beats, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 21, 31]);
    // the master came back: it is told at once; by another cluster's it is not asked
    for (cluster, beats) in [("c1", 1), ("c2", 0)] {
        let msg = Msg::Lim(announcement(cluster));
        let out = step(&mut lim, 32, Input::Datagram { from: "h1".into(), msg });
        assert_eq!(out.iter().filter(|e| beat(e)).count(), beats);
    }
}

#[test]
fn hosts_come_turn_busy_and_fall_silent() {
    let mut lim = master();
    let out = ask(&mut lim, SUB, LimMsg::Subscribe { loads: true });
    assert!(matches!(
        &out[0],
        Effect::Send { msg: Msg::Lim(LimMsg::Master { cluster, master }), .. }
            if cluster == "c1" && master == "h1"
    ));
    let all = [("cl", status::UNAVAIL), ("h1", 0), ("h2", status::UNAVAIL)];
    assert_eq!(pushed(&out), all.map(|(h, s)| (SUB, h.to_string(), s)));
    // its first news is told at once; what it says of its own availability is not believed
    let out = step(&mut lim, 1, beat_of("h2", 0.2));
    assert_eq!(pushed(&out), [(SUB, "h2".into(), status::LOCK_U)]);
    // no change of status: told at the next turn
    assert!(pushed(&step(&mut lim, 1, beat_of("h2", 0.4))).is_empty());
    let turn = pushed(&step(&mut lim, 2, Input::Tick));
    assert!(turn.contains(&(SUB, "h2".into(), status::LOCK_U)), "{turn:?}");
    // beyond its threshold
    let out = step(&mut lim, 3, beat_of("h2", 0.6));
    assert_eq!(pushed(&out), [(SUB, "h2".into(), status::LOCK_U | status::BUSY)]);
    assert_eq!(lim.hosts["h2"].load.over, 1 << 3);
    // 30 s without news, 20 s of questions, and not a second less
    let mut asked = 0;
    for secs in 10..53 {
        for e in step(&mut lim, secs, Input::Tick) {
            let Effect::Datagram { to, msg: Msg::Lim(LimMsg::Announce { want: true, .. }) } = e
            else {
                continue;
            };
            assert!(to == "h2" && secs >= 33, "{to} at {secs}");
            asked += 1;
        }
    }
    assert!(asked >= 2 && !lim.hosts["h2"].load.unavailable());
    let mut told = Vec::new();
    for secs in 53..=63 {
        told.extend(pushed(&step(&mut lim, secs, Input::Tick)));
    }
    let gone = status::UNAVAIL | status::LOCK_U | status::BUSY;
    assert!(told.contains(&(SUB, "h2".into(), gone)), "{told:?}");
    // and back
    let out = step(&mut lim, 64, beat_of("h2", 0.1));
    assert_eq!(pushed(&out), [(SUB, "h2".into(), status::LOCK_U)]);
}

#[test]
fn a_reading_is_kept_under_the_sender_alone() {
    let mut lim = master();
    let Input::Datagram { msg, .. } = beat_of("h2", 0.1) else { panic!() };
    step(&mut lim, 1, Input::Datagram { from: "stranger".into(), msg: msg.clone() });
    assert!(lim.hosts["h2"].load.unavailable());
    // h2's words from the client host are the client's
    step(&mut lim, 1, Input::Datagram { from: "cl".into(), msg: msg.clone() });
    assert!(lim.hosts["h2"].load.unavailable());
    assert_eq!(lim.hosts["cl"].load.host, "cl");
    // nobody tells the master about itself
    step(&mut lim, 1, Input::Datagram { from: "h1".into(), msg });
    assert_eq!(lim.hosts["h1"].load.status, 0);
}

#[test]
fn lim_answers_questions_about_hosts() {
    let mut lim = master();
    let out = ask(&mut lim, USER, LimMsg::Hosts { hosts: vec!["H2".into(), "h2".into()] });
    assert_eq!(pushed(&out), [(USER, "h2".into(), status::UNAVAIL)]);
    let out = ask(&mut lim, USER, LimMsg::Hosts { hosts: vec![] });
    let names: Vec<String> = pushed(&out).into_iter().map(|p| p.1).collect();
    assert_eq!(names, ["h1", "h2", "cl"]);
    let out = ask(&mut lim, USER, LimMsg::Hosts { hosts: vec!["h1".into(), "h9".into()] });
    let Effect::Send { msg: Msg::Refused(r), .. } = &out[0] else { panic!("{out:?}") };
    assert_eq!((r.code, r.about.as_str()), (err::BAD_HOST, "h9"));
    let out = ask(&mut lim, USER, LimMsg::Subscribe { loads: true });
    assert!(matches!(&out[..], [Effect::Send { msg: Msg::Refused(_), .. }]), "{out:?}");
    let out = step(&mut lim, 1, Input::Msg { conn: USER, msg: Msg::Pong { n: 1 } });
    assert!(matches!(out[..], [Effect::Close { conn: USER }]));
}

#[test]
fn a_slave_points_to_the_master() {
    let mut lim = Lim::new(base(), "h2");
    for msg in [LimMsg::Hosts { hosts: vec![] }, LimMsg::Shared, LimMsg::WhoIsMaster] {
        let out = ask(&mut lim, USER, msg);
        assert!(matches!(
            &out[..],
            [Effect::Send { msg: Msg::Lim(LimMsg::Master { master, .. }), .. }] if master == "h1"
        ));
    }
    step(&mut lim, 1, beat_of("h1", 0.1));
    assert!(lim.hosts["h1"].load.unavailable());
}

#[test]
fn a_closed_connection_hears_no_more() {
    let mut lim = master();
    ask(&mut lim, SUB, LimMsg::Subscribe { loads: true });
    step(&mut lim, 1, Input::Closed { conn: SUB });
    assert!(pushed(&step(&mut lim, 2, beat_of("h2", 0.1))).is_empty());
}

#[test]
fn a_new_configuration_keeps_the_readings() {
    let mut lim = master();
    step(&mut lim, 1, beat_of("h2", 0.1));
    let mut next = base();
    next.cluster.hosts.remove(2);
    next.cluster.hosts[1].model = Some("M".into());
    let conf = crate::conf::ClusterConf { base: next, ..Default::default() };
    step(&mut lim, 2, Input::Config { conf: Some(Box::new(conf)), diags: vec![] });
    assert!(!lim.hosts.contains_key("cl"));
    assert!(!lim.hosts["h2"].load.unavailable());
    assert_eq!(lim.hosts["h2"].load.facts.as_ref().unwrap().model, "M");
    step(&mut lim, 3, Input::Config { conf: None, diags: vec![] });
    assert_eq!(lim.hosts.len(), 2);
}

#[test]
fn a_closed_run_window_locks_the_host() {
    let mut conf = base();
    // the tests' clock starts on Tuesday, 14 November 2023, 22:13:20 UTC
    conf.cluster.hosts[1].run_window = "8:00-22:14".into();
    let mut lim = Lim::new(conf, "h1");
    step(&mut lim, 0, Input::Start);
    let status = |lim: &Lim| lim.hosts["h2"].load.status & (status::LOCK_W | status::UNAVAIL);
    step(&mut lim, 39, beat_of("h2", 0.1));
    assert_eq!(status(&lim), 0);
    step(&mut lim, 40, beat_of("h2", 0.1));
    assert_eq!(status(&lim), status::LOCK_W);
}

fn copies(lim: &mut Lim, secs: u64, sum: &str) -> Vec<String> {
    let Input::Datagram { from, msg } = beat_of("h2", 0.1) else { panic!() };
    let Msg::Lim(LimMsg::Beat { mut load }) = msg else { panic!() };
    load.copies = vec![("lsf.shared".into(), sum.into()), ("lsb.new".into(), "9".into())];
    let msg = Msg::Lim(LimMsg::Beat { load });
    let said = |e: Effect| match e {
        Effect::Say { text, .. } => Some(text),
        _ => None,
    };
    step(lim, secs, Input::Datagram { from, msg }).into_iter().filter_map(said).collect()
}

#[test]
fn copies_that_differ_are_told_once_they_last() {
    let mut lim = master();
    let own = LoadSample {
        copies: vec![("lsf.shared".into(), "1".into()), ("lsb.hosts".into(), "5".into())],
        ..LoadSample::default()
    };
    step(&mut lim, 0, Input::Sample(Box::new(own)));
    assert!(copies(&mut lim, 1, "1").is_empty());
    assert!(copies(&mut lim, 2, "2").is_empty());
    assert!(copies(&mut lim, 31, "2").is_empty());
    let told = ["lsf.shared of host h2 differs from that of host h1, the master"];
    assert_eq!(copies(&mut lim, 32, "2"), told);
    assert!(copies(&mut lim, 33, "3").is_empty());
    // whoever asks is told the name and nothing else of it
    let out = ask(&mut lim, USER, LimMsg::Hosts { hosts: vec!["h2".into()] });
    let Effect::Send { msg: Msg::Lim(LimMsg::Loads { hosts }), .. } = &out[0] else { panic!() };
    assert_eq!(hosts[0].copies, [("lsf.shared".to_string(), String::new())]);
    assert_eq!(copies(&mut lim, 34, "1"), ["lsf.shared of host h2 is as that of host h1 again"]);
    let out = ask(&mut lim, USER, LimMsg::Hosts { hosts: vec!["h2".into()] });
    let Effect::Send { msg: Msg::Lim(LimMsg::Loads { hosts }), .. } = &out[0] else { panic!() };
    assert!(hosts[0].copies.is_empty());
}

fn announce(from: &str) -> Input {
    let msg = Msg::Lim(announcement("c1"));
    Input::Datagram { from: from.into(), msg }
}

fn names_master(out: &[Effect], conn: ConnId) -> Vec<&str> {
    let name = |e| match e {
        &Effect::Send { conn: c, msg: Msg::Lim(LimMsg::Master { ref master, .. }) }
            if c == conn =>
        {
            Some(master.as_str())
        }
        _ => None,
    };
    out.iter().filter_map(name).collect()
}

#[test]
fn a_new_master_is_told_to_those_who_want_to_know() {
    let mut lim = Lim::new(base(), "h2");
    step(&mut lim, 0, Input::Start);
    step(&mut lim, 0, Input::Opened { conn: SUB, peer: daemon() });
    ask(&mut lim, SUB, LimMsg::Subscribe { loads: false });
    step(&mut lim, 0, announce("h1"));
    // silence, then nobody answers for PROBE_TIMEOUT
    let mut took = None;
    for secs in 1..=200 {
        let out = step(&mut lim, secs, Input::Tick);
        if took.is_none() && lim.is_master() {
            assert_eq!(names_master(&out, SUB), ["h2"]);
            let tells = |e: &Effect| {
                matches!(e, Effect::Datagram { to, msg: Msg::Lim(LimMsg::Announce { .. }) }
                    if to == "h1")
            };
            assert!(out.iter().any(tells));
            took = Some(secs);
        }
    }
    // (3 + 1 x 2) x 10 s, and 2 s
    assert_eq!(took, Some(52));
    step(&mut lim, 200, beat_of("h1", 0.1));
    assert!(!lim.hosts["h1"].load.unavailable());
    // the better one is back: it has the readings now
    let out = step(&mut lim, 201, announce("h1"));
    assert_eq!(names_master(&out, SUB), ["h1"]);
    assert!(!lim.is_master() && lim.hosts["h1"].load.unavailable());
}

#[test]
fn a_master_answers_who_asks_and_who_claims() {
    let mut lim = master();
    for input in
        [announce("h2"), Input::Datagram { from: "h2".into(), msg: Msg::Lim(LimMsg::WhoIsMaster) }]
    {
        let out = step(&mut lim, 1, input);
        let [Effect::Datagram { to, msg: Msg::Lim(LimMsg::Announce { want: true, .. }) }] =
            &out[..]
        else {
            panic!("{out:?}")
        };
        assert_eq!(to, "h2");
        assert!(lim.is_master());
    }
}

fn admin(lim: &mut Lim, conn: ConnId, user: &str) {
    lim.base.cluster.admins = vec!["boss".into()];
    let peer = Peer::User { uid: 2, gid: 2, user: user.into(), host: "h1".into() };
    step(lim, 1, Input::Opened { conn, peer });
}

#[test]
fn administrators_lock_hosts() {
    let mut lim = master();
    step(&mut lim, 1, beat_of("h2", 0.1));
    let order = |lim: &mut Lim, secs, conn, host: &str, on, time| {
        let msg = LimMsg::Lock { host: host.into(), on, secs: time };
        let out = step(lim, secs, Input::Msg { conn, msg: Msg::Lim(msg) });
        out.iter().any(|e| matches!(e, Effect::Send { msg: Msg::Lim(LimMsg::Done), .. }))
    };
    assert!(!order(&mut lim, 1, USER, "", true, 0) && !order(&mut lim, 1, SUB, "", true, 0));
    let boss = INCOMING + 9;
    admin(&mut lim, boss, "boss");
    assert!(order(&mut lim, 2, boss, "", true, 30));
    let locked =
        |lim: &Lim, host: &str| lim.hosts[host].load.status & (status::LOCK_U | status::LOCK_M);
    assert_eq!(locked(&lim, "h1"), status::LOCK_U);
    step(&mut lim, 31, sample(0, 0));
    assert_eq!(locked(&lim, "h1"), status::LOCK_U);
    step(&mut lim, 32, sample(0, 0));
    assert_eq!(locked(&lim, "h1"), 0);
    assert!(order(&mut lim, 33, boss, "", true, 0) && order(&mut lim, 34, boss, "", false, 0));
    assert_eq!(locked(&lim, "h1"), 0);
    // by the master, whatever the host itself says
    assert!(order(&mut lim, 35, boss, "H2", true, 0));
    step(&mut lim, 36, beat_of("h2", 0.1));
    assert_eq!(locked(&lim, "h2"), status::LOCK_U | status::LOCK_M);
    assert!(order(&mut lim, 37, boss, "h2", false, 0) && !order(&mut lim, 37, boss, "h9", true, 0));
    assert_eq!(locked(&lim, "h2"), status::LOCK_U);
    let verbose = Msg::Lim(LimMsg::Verbose { level: 2 });
    for (conn, done) in [(USER, false), (boss, true)] {
        let out = step(&mut lim, 38, Input::Msg { conn, msg: verbose.clone() });
        assert_eq!(out.iter().any(|e| matches!(e, Effect::Logging(l) if l.level == Some(2))), done);
    }
}

#[test]
fn hosts_of_exclusive_jobs_are_locked_as_mbatchd_of_this_host_says() {
    let mut lim = master();
    step(&mut lim, 1, beat_of("h2", 0.1));
    let locked = |lim: &Lim| lim.hosts["h2"].load.status & status::LOCK_X != 0;
    let tell = |lim: &mut Lim, conn, hosts: &[&str]| {
        let hosts = hosts.iter().map(|h| h.to_string()).collect();
        let msg = Msg::Lim(LimMsg::Exclusive { hosts });
        step(lim, 2, Input::Msg { conn, msg })
    };
    // a user, mbatchd of another host, another daemon
    let conn = INCOMING + 20;
    for (n, daemon, host) in [(1, Daemon::Mbatchd, "h2"), (2, Daemon::Sbatchd, "h1")] {
        let peer = Peer::Daemon { daemon, host: host.into() };
        step(&mut lim, 1, Input::Opened { conn: conn + n, peer });
        tell(&mut lim, conn + n, &["h2"]);
        assert!(!locked(&lim), "{daemon:?} of {host}");
    }
    admin(&mut lim, conn + 3, "boss");
    tell(&mut lim, conn + 3, &["h2"]);
    assert!(!locked(&lim), "a user");
    step(&mut lim, 1, Input::Opened { conn, peer: daemon() });
    step(&mut lim, 1, Input::Msg { conn, msg: Msg::Lim(LimMsg::Subscribe { loads: true }) });
    let told = pushed(&tell(&mut lim, conn, &["h2", "h9"]));
    assert!(told.iter().any(|t| t.1 == "h2" && t.2 & status::LOCK_X != 0), "{told:?}");
    step(&mut lim, 3, beat_of("h2", 0.1));
    assert!(locked(&lim), "whatever the host says of itself");
    // while there is no mbatchd the job goes on
    step(&mut lim, 4, Input::Closed { conn });
    assert!(locked(&lim));
    step(&mut lim, 5, Input::Opened { conn, peer: daemon() });
    assert!(pushed(&tell(&mut lim, conn, &["h2"])).is_empty(), "nothing has changed");
    tell(&mut lim, conn, &[]);
    assert!(!locked(&lim));
}

#[test]
fn locks_outlive_lim() {
    let mut lim = master();
    let boss = INCOMING + 9;
    admin(&mut lim, boss, "boss");
    let mut order = |host: &str, on, secs| {
        let msg = Msg::Lim(LimMsg::Lock { host: host.into(), on, secs });
        let out = step(&mut lim, 10, Input::Msg { conn: boss, msg });
        let kept = out.into_iter().find_map(|e| match e {
            Effect::Keep { what, text } => Some((what, text)),
            _ => None,
        });
        kept.unwrap()
    };
    let (timed, for_good, none) = (order("", true, 30), order("", true, 0), order("", false, 0));
    let (one, both) = (order("h2", true, 0), order("h1", true, 0));
    assert_eq!(none, (LockRecord::Lock, String::new()));
    assert_eq!((one.1.as_str(), both.1.as_str()), ("h2\n", "h1\nh2\n"));
    let locks = |lim: &Lim| lim.hosts["h1"].load.status & (status::LOCK_U | status::LOCK_M);
    // the next LIM of this host, whose clock began anew; the wall clock did not
    let next = |kept: &[&(LockRecord, String)], secs: u64| {
        let mut lim = Lim::new(base(), "h1");
        let now = Now { mono_us: 5 * US, ..at(secs) };
        for (what, text) in kept.iter().map(|k| (**k).clone()) {
            lim.step(now, Input::Kept { what, text }, &mut Vec::new());
        }
        let mut out = Vec::new();
        lim.step(now, Input::Start, &mut out);
        assert!(out.iter().any(|e| matches!(e, Effect::Recall(LockRecord::Locks))));
        lim.step(now, sample(0, 0), &mut Vec::new());
        lim
    };
    assert_eq!(locks(&next(&[&timed], 39)), status::LOCK_U);
    assert_eq!(locks(&next(&[&timed], 40)), 0);
    assert_eq!(locks(&next(&[&for_good], 4_000_000)), status::LOCK_U);
    assert_eq!(locks(&next(&[&for_good, &none], 40)), 0);
    let mut lim = next(&[], 40);
    let (what, text) = both;
    step(&mut lim, 41, Input::Kept { what, text });
    assert_eq!(locks(&lim), status::LOCK_M);
}

#[test]
fn adjusted_load_ceases_over_its_duration() {
    let mut lim = master();
    step(&mut lim, 1, beat_of("h2", 0.1));
    let msg = Msg::Lim(LimMsg::Adjust { hosts: vec![("h2".into(), 6)] });
    step(&mut lim, 10, Input::Msg { conn: USER, msg });
    // 3 x 10 s
    for (secs, queue) in [(10, 6.0), (20, 4.0), (25, 3.0), (40, 0.0), (100, 0.0)] {
        let msg = Msg::Lim(LimMsg::Hosts { hosts: vec!["h2".into()] });
        let out = step(&mut lim, secs, Input::Msg { conn: USER, msg });
        let Effect::Send { msg: Msg::Lim(LimMsg::Loads { hosts }), .. } = &out[0] else { panic!() };
        assert!((hosts[0].index[1] - queue).abs() < 1e-3, "{secs}: {}", hosts[0].index[1]);
    }
}

#[test]
fn a_host_without_res_says_so() {
    let mut lim = master();
    let list = |with: bool| {
        let pids = if with { vec![(Daemon::Res, 7)] } else { vec![(Daemon::Lim, 8)] };
        Msg::Launch(crate::proto::launch::LaunchMsg::DaemonList { pids, hung: vec![] })
    };
    let mut asked = 0;
    for secs in 1..400 {
        for e in step(&mut lim, secs, Input::Tick) {
            if let Effect::Connect { conn, to: crate::proto::Endpoint::Launcher } = e {
                asked += 1;
                step(&mut lim, secs, Input::Opened { conn, peer: Peer::Local { uid: 0, pid: 1 } });
                step(&mut lim, secs, Input::Msg { conn, msg: list(!(100..=300).contains(&secs)) });
            }
        }
        step(&mut lim, secs, sample(0, 0));
        let down = lim.hosts["h1"].load.status & status::RES_DOWN != 0;
        match secs {
            0..180 | 330.. => assert!(!down, "{secs}"),
            200..300 => assert!(down, "{secs}"),
            _ => {}
        }
    }
    assert!((20..40).contains(&asked), "{asked}");
}

#[test]
fn candidates_know_what_hosts_are_before_they_are_master() {
    let mut lim = master();
    step(&mut lim, 1, beat_of("h2", 0.1));
    let conn = INCOMING + 7;
    let peer = Peer::Daemon { daemon: Daemon::Lim, host: "h2".into() };
    step(&mut lim, 1, Input::Opened { conn, peer });
    let out = ask(&mut lim, conn, LimMsg::Subscribe { loads: false });
    let mut told = out.into_iter().filter_map(|e| match e {
        Effect::Send { msg, .. } => Some(msg),
        _ => None,
    });
    let (who, facts) = (told.next().unwrap(), told.next().unwrap());
    // h2's side
    let mut next = Lim::new(base(), "h2");
    let out = step(&mut next, 0, Input::Start);
    let out = if out.iter().any(|e| matches!(e, Effect::Connect { .. })) {
        out
    } else {
        step(&mut next, 0, Input::Tick)
    };
    let own = out.iter().find_map(|e| match e {
        Effect::Connect { conn, .. } => Some(*conn),
        _ => None,
    });
    let own = own.unwrap();
    for msg in [who, facts] {
        step(&mut next, 1, Input::Msg { conn: own, msg });
    }
    let of = |lim: &Lim, host: &str| lim.hosts[host].found.clone();
    assert_eq!(of(&next, "h1"), of(&lim, "h1"));
    assert!(of(&next, "h1").is_some() && next.hosts["h1"].load.unavailable());
    // later ones as they come
    let changed = HostFacts { nprocs: 9, ..HostFacts::default() };
    let Input::Datagram { from, msg: Msg::Lim(LimMsg::Beat { mut load }) } = beat_of("h2", 0.1)
    else {
        panic!()
    };
    load.facts = Some(changed.clone());
    step(&mut lim, 2, Input::Datagram { from, msg: Msg::Lim(LimMsg::Beat { load }) });
    let out = step(&mut lim, 20, Input::Tick);
    let told = out.iter().find_map(|e| match e {
        Effect::Send { conn: c, msg: Msg::Lim(LimMsg::Loads { hosts }) } if *c == conn => {
            hosts.iter().find(|h| h.host == "h2").and_then(|h| h.facts.clone())
        }
        _ => None,
    });
    assert_eq!(told, Some(changed));
}

fn refused(out: &[Effect]) -> Option<Refusal> {
    out.iter().find_map(|e| match e {
        Effect::Send { msg: Msg::Refused(r), .. } => Some(r.clone()),
        _ => None,
    })
}

#[test]
fn requests_beyond_the_caps_are_refused_before_anything_is_done() {
    let mut lim = master();
    step(&mut lim, 1, beat_of("h2", 0.2));
    let many = || vec!["h2".to_string(); caps::MAX_NAMES + 1];
    let adjust = || many().into_iter().map(|host| (host, 1)).collect();
    let names = format!("the request names {} names", caps::MAX_NAMES + 1);
    let long = format!("a name is {} bytes long", caps::MAX_NAME + 1);
    for (conn, msg, words) in [
        (USER, LimMsg::Hosts { hosts: many() }, &names),
        (USER, LimMsg::Adjust { hosts: adjust() }, &names),
        (USER, LimMsg::Hosts { hosts: vec!["x".repeat(caps::MAX_NAME + 1)] }, &long),
        (USER, LimMsg::Lock { host: "x".repeat(caps::MAX_NAME + 1), on: true, secs: 0 }, &long),
    ] {
        let said = refused(&ask(&mut lim, conn, msg)).expect(words);
        assert!(said.code == err::BAD_ARG && said.text.starts_with(words.as_str()), "{said:?}");
    }
    assert!(lim.hosts["h2"].adjusted.is_empty());
    let hosts = vec!["h2".to_string(); caps::MAX_HOSTS + 1];
    let said = refused(&ask(&mut lim, SUB, LimMsg::Exclusive { hosts })).unwrap();
    assert!(said.text.contains("100001 hosts"), "{said:?}");
}

#[test]
fn an_adjustment_counts_each_host_once_and_all_hosts_or_none() {
    let mut lim = master();
    step(&mut lim, 1, beat_of("h2", 0.2));
    let mut hosts = vec![("h2".to_string(), 3), ("h1".to_string(), 1), ("H2".to_string(), 4)];
    let msg = LimMsg::Adjust { hosts: [hosts.clone(), vec![("h9".to_string(), 1)]].concat() };
    let said = refused(&ask(&mut lim, USER, msg)).unwrap();
    assert_eq!((said.code, said.about.as_str()), (err::BAD_HOST, "h9"));
    assert!(lim.hosts.values().all(|known| known.adjusted.is_empty()));
    hosts.extend(vec![("h1".to_string(), u32::MAX); 100]);
    ask(&mut lim, USER, LimMsg::Adjust { hosts });
    let tasks = |host: &str| lim.hosts[host].adjusted.iter().map(|a| a.1).collect::<Vec<u32>>();
    assert_eq!((tasks("h2"), tasks("h1")), (vec![7], vec![10_000]));
}
