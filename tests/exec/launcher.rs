//! The launcher: idempotence, signals, its own death, its replacement.

use crate::rig::{NOBODY, Rig, is_root, skip};
use lsf::model::job::End;
use lsf::proto::launch::{LaunchMsg, TaskPlan};
use rustix::process::Signal;
use std::time::{Duration, Instant};

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + crate::rig::PATIENCE;
    while !done() {
        assert!(Instant::now() < end, "waited for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn alive(pid: u32) -> bool {
    lsf::sys::procs::Proc::of(pid).is_some()
}

#[test]
fn a_start_said_twice_runs_once() {
    let mut r = Rig::new("twice");
    let plan = r.plan("echo ran; sleep 1; exit 3");
    let id = r.start(1, plan.clone());
    r.start(1, plan.clone());
    r.ready(id);
    r.start(1, plan.clone());
    assert_eq!(r.end(id).end, End::Status(3 << 8));
    r.start(1, plan);
    assert_eq!(r.end(id).end, End::Status(3 << 8));
    assert_eq!(r.read("out"), "ran\n");
    let known = r.connect();
    assert_eq!((known.len(), known[0].note.as_str()), (1, "note"));
    r.ask(LaunchMsg::Forget { key: id.key, over_at: 0 });
    assert!(r.connect().is_empty());
}

/// The process of which starters are copies.
fn zygote(launcher: u32) -> Option<lsf::sys::procs::Proc> {
    lsf::sys::procs::children(launcher).into_iter().find(|p| p.name() == "starter")
}

#[test]
fn starters_are_the_launchers_children_and_their_mould_may_die() {
    let mut r = Rig::new("zygote");
    let show = "cut -d' ' -f4 /proc/$$/stat";
    let mut seen = Vec::new();
    for n in 1..=3 {
        let (_, ended) = r.run(n, r.plan(show));
        assert_eq!(ended.end, End::Status(0));
        let own = zygote(r.pid()).unwrap();
        seen.push(own.pid);
        if n == 2 {
            assert_eq!(seen[0], seen[1]);
            assert!(own.signal(Signal::KILL).unwrap());
            until("the zygote to die", || !own.alive());
        }
    }
    assert_ne!(seen[1], seen[2]);
    assert_eq!(r.read("out"), format!("{0}\n{0}\n{0}\n", r.pid()));
    // it goes with its launcher
    let own = zygote(r.pid()).unwrap();
    r.crash();
    until("the zygote to go", || !own.alive());
}

/// More than are asked of the zygote at once, and what comes in one piece with them finds them.
#[test]
fn many_starts_at_once_are_each_answered_and_found() {
    let mut r = Rig::new("many");
    let mut ids = Vec::new();
    for n in 1..=150u32 {
        let plan = r.plan(&format!("exit {}", n % 100));
        ids.push(r.start(n, plan));
    }
    // in one write: a start, its signal, a start
    let plan = r.plan("sleep 300");
    let last: Vec<_> = [200, 201].map(|n| r.start_with_signal(n, plan.clone(), 9)).into();
    let mut ends = std::collections::BTreeMap::new();
    until("all ends", || {
        ends = r.connect().into_iter().filter_map(|t| Some((t.id, t.ended?.end))).collect();
        ends.len() == 152
    });
    for (n, id) in ids.iter().enumerate() {
        assert_eq!(ends[id], End::Status(((n as i32 + 1) % 100) << 8));
    }
    for id in &last {
        assert_eq!(ends[id], End::Status(9));
    }
}

/// More than the sockets between the launcher and the zygote of its starters hold: were the
/// answers not taken now and then, each would wait for the other.
#[test]
fn starts_that_come_together_do_not_stop_the_launcher() {
    const MANY: u32 = 1_500;
    let mut r = Rig::new("together");
    let plan = r.plan(":");
    r.start_together(1..=MANY, plan);
    let mut ended = std::collections::BTreeSet::new();
    while ended.len() < MANY as usize {
        if let LaunchMsg::Task(t) = r.next()
            && t.ended.is_some()
        {
            ended.insert(t.id);
        }
    }
}

#[test]
fn one_message_tells_all_of_a_short_job() {
    let mut r = Rig::new("short");
    let mut whole = |n: u32, command: &str| {
        let id = r.start(n, r.plan(command));
        loop {
            match r.next() {
                LaunchMsg::Task(t) if t.id == id => break t.setup.is_some() && t.ended.is_some(),
                _ => {}
            }
        }
    };
    // a machine may be too busy for one of them
    assert!((1..30).any(|n| whole(n, ":")));
    let from = Instant::now();
    assert!(!whole(50, "sleep 30"));
    assert!(from.elapsed() < Duration::from_secs(20));
}

#[test]
fn every_process_of_a_task_is_signalled() {
    let mut r = Rig::new("whole");
    // two process groups in one session
    let id = r.start(1, r.plan("exec bash -c 'set -m; sleep 300 & sleep 301 & echo $!; wait'"));
    r.ready(id);
    until("the job's pid", || r.read("out").ends_with('\n'));
    let other: u32 = r.read("out").trim().parse().unwrap();
    r.ask(LaunchMsg::Signal { id, signal: 9 });
    assert_eq!(r.end(id).end, End::Status(9));
    until("its other group to die", || !alive(other));
}

#[test]
fn connections_of_other_uids_are_refused() {
    let mut r = Rig::new("uids");
    for uid in [r.uid + 1, if r.uid == 0 { NOBODY } else { 0 }] {
        let what = TaskPlan::Job(Box::new(r.plan("echo ran")));
        let key = lsf::model::JobKey { job: 1, idx: 0, attempt: 1 };
        let id = lsf::proto::launch::TaskId { key, step: lsf::proto::launch::TaskStep::Job };
        r.start_as(id, uid, what);
        assert!(matches!(r.next(), LaunchMsg::Refused { .. }));
    }
    assert!(!r.work().join("out").exists());
}

#[test]
fn strangers_do_not_reach_the_socket() {
    use std::os::unix::fs::MetadataExt;
    let r = Rig::new("socket");
    let meta = std::fs::metadata(r.dir.join("run/h1/launcher.sock")).unwrap();
    assert_eq!((meta.mode() & 0o777, meta.uid()), (0o600, r.uid));
    if !is_root() {
        return skip("strangers_do_not_reach_the_socket", "needs root");
    }
    // even where the file mode is lost, the peer's uid decides
    let path = r.dir.join("run/h1/launcher.sock");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    std::fs::set_permissions(&path, mode).unwrap();
    let got = std::thread::spawn(move || {
        // of this thread alone
        let nobody = rustix::process::Uid::from_raw(NOBODY);
        rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
        let mut sock = std::os::unix::net::UnixStream::connect(path).unwrap();
        sock.set_read_timeout(Some(crate::rig::PATIENCE)).unwrap();
        std::io::Read::read(&mut sock, &mut [0u8; 1])
    });
    assert_eq!(got.join().unwrap().unwrap(), 0, "closed without a word");
}

#[test]
fn jobs_outlive_the_launcher_and_end_unknown() {
    let mut r = Rig::new("crash");
    let long = r.start(1, r.plan("sleep 3; echo survived"));
    r.ready(long);
    let pid = r.connect()[0].pid;
    let (_, ended) = r.run(2, r.plan("exit 5"));
    assert_eq!(ended.end, End::Status(5 << 8));
    r.crash();
    let known = r.connect();
    assert_eq!(known.iter().map(|t| t.pid).next(), Some(pid));
    assert!(known[0].ended.is_none() && known[0].setup.is_some());
    assert_eq!(known[1].ended.map(|e| e.end), Some(End::Status(5 << 8)));
    assert!(alive(pid));
    let ended = r.end(long);
    assert_eq!((ended.end, ended.restarted), (End::Unknown, false));
    assert_eq!(r.read("out"), "survived\n");
    // one that was adopted can be killed
    let id = r.start(3, r.plan("sleep 300"));
    r.ready(id);
    r.crash();
    r.connect();
    r.ask(LaunchMsg::Signal { id, signal: 15 });
    assert_eq!(r.end(id).end, End::Unknown);
}

#[test]
fn an_upgrade_under_twenty_jobs_loses_nothing() {
    let mut r = Rig::new("upgrade");
    let mut ids = Vec::new();
    for n in 0..20u32 {
        let plan = r.plan(&format!("sleep 1.{n:02}; exit {}", n + 1));
        ids.push(r.start(n, plan));
    }
    // in the middle of setups, then among ends
    r.signal(Signal::USR2);
    let pid = r.pid();
    std::thread::sleep(Duration::from_millis(1_100));
    r.signal(Signal::USR2);
    r.signal(Signal::USR2);
    until("two replacements", || r.log().matches("replaced by").count() >= 2);
    let mut ends = std::collections::BTreeMap::new();
    until("all ends", || {
        ends = r.connect().into_iter().filter_map(|t| Some((t.id, t.ended?.end))).collect();
        ends.len() == 20
    });
    for (n, id) in ids.iter().enumerate() {
        assert_eq!(ends[id], End::Status((n as i32 + 1) << 8));
    }
    assert_eq!(r.pid(), pid);
}

#[test]
fn an_upgrade_to_a_broken_file_changes_nothing() {
    let mut r = Rig::new("broken");
    let id = r.start(1, r.plan("sleep 2; exit 4"));
    r.ready(id);
    let (bin, old) = (r.dir.join("lsf"), r.dir.join("lsf.old"));
    std::fs::rename(&bin, &old).unwrap();
    std::fs::write(&bin, "no program").unwrap();
    r.signal(Signal::USR2);
    until("the complaint", || r.log().contains("not replaced"));
    assert_eq!(r.end(id).end, End::Status(4 << 8));
    let (_, ended) = r.run(2, r.plan("exit 6"));
    assert_eq!(ended.end, End::Status(6 << 8));
    if is_root() {
        // one that others could have put there
        std::fs::rename(&old, &bin).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(&bin, mode).unwrap();
        r.signal(Signal::USR2);
        until("the refusal", || r.log().contains("can be changed by users other"));
    } else {
        skip("an_upgrade_to_a_broken_file_changes_nothing", "its second half needs root");
    }
}

#[test]
fn terminated_it_leaves_jobs_alone_interrupted_it_ends_them() {
    let mut r = Rig::new("down");
    let id = r.start(1, r.plan("sleep 300"));
    r.ready(id);
    let pid = r.connect()[0].pid;
    r.signal(Signal::TERM);
    assert_eq!(r.wait(), Some(0));
    assert!(alive(pid));
    r.crash();
    r.connect();
    r.signal(Signal::INT);
    until("the job to die", || !alive(pid));
    assert_eq!(r.wait(), Some(0));
}

#[test]
fn a_second_launcher_of_a_host_is_refused() {
    let r = Rig::new("two");
    let out = std::process::Command::new(r.dir.join("lsf"))
        .arg("launcher")
        .env("LSF_ENVDIR", r.dir.join("conf"))
        .output()
        .unwrap();
    assert_ne!(out.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&out.stderr).contains("another launcher"), "{out:?}");
}
