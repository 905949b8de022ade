//! Durable, then reply: what leaves when, and in what order.

use super::world::World;
use lsf::cli::client::ClientError;
use lsf::daemon::shell::LAST_SYNC;
use lsf::proto::Msg;
use lsf::proto::client::{AdminOp, ClientMsg, Submit};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

fn submit() -> Msg {
    Msg::Client(ClientMsg::Submit(Box::default()))
}

#[test]
fn a_reply_waits_for_its_sync_and_syncs_are_shared() {
    let w = World::new();
    w.toy.sync_ms.store(60, Relaxed);
    let n = 40;
    std::thread::scope(|s| {
        for _ in 0..n {
            s.spawn(|| {
                let mut c = w.client();
                c.call(&Msg::Client(ClientMsg::Params), &mut std::io::sink()).unwrap();
                let at = Instant::now();
                let answer = c.call(&submit(), &mut std::io::sink()).unwrap();
                assert!(at.elapsed() >= Duration::from_millis(59), "{:?}", at.elapsed());
                assert!(matches!(answer, Msg::Client(ClientMsg::Submitted { .. })));
            });
        }
    });
    assert_eq!(w.toy.appends.load(Relaxed), n);
    let syncs = w.toy.syncs.load(Relaxed);
    assert!(syncs < n / 2, "{syncs} syncs for {n} submissions");
    assert!(w.stop());
}

#[test]
fn failed_sync_refuses_only_the_requests_that_waited_for_it() {
    let w = World::new();
    w.toy.sync_ms.store(30, Relaxed);
    let mut c = w.client();
    c.call(&submit(), &mut std::io::sink()).unwrap();
    w.toy.fail.store(1, Relaxed);
    match c.call(&submit(), &mut std::io::sink()) {
        Err(ClientError::Refused(r)) => assert_eq!(r.code, 9001),
        other => panic!("{other:?}"),
    }
    let again = c.call(&submit(), &mut std::io::sink()).unwrap();
    assert!(matches!(again, Msg::Client(ClientMsg::Submitted { job: 3, .. })));
    assert!(w.stop());
}

fn shutdown() -> Msg {
    Msg::Client(ClientMsg::Admin(AdminOp::Shutdown { comment: String::new() }))
}

#[test]
fn daemon_told_to_end_sends_its_answers_first() {
    let w = World::new();
    w.toy.sync_ms.store(150, Relaxed);
    std::thread::scope(|s| {
        let first = s.spawn(|| w.client().call(&submit(), &mut std::io::sink()));
        // The log is being written for the first when the end is asked for.
        std::thread::sleep(Duration::from_millis(60));
        let answer = w.client().call(&shutdown(), &mut std::io::sink());
        assert!(matches!(answer, Ok(Msg::Client(ClientMsg::AdminDone { .. }))), "{answer:?}");
        let answer = first.join().unwrap();
        assert!(matches!(answer, Ok(Msg::Client(ClientMsg::Submitted { .. }))), "{answer:?}");
    });
    assert_eq!((w.toy.appends.load(Relaxed), w.toy.syncs.load(Relaxed)), (2, 2));
    assert!(matches!(w.ended(), Ok(0)));
}

#[test]
fn daemon_told_to_end_waits_a_bounded_time_for_a_log_that_hangs() {
    let w = World::new();
    w.toy.sync_ms.store(60_000, Relaxed);
    let at = Instant::now();
    let answer = w.client().call(&shutdown(), &mut std::io::sink());
    assert!(matches!(answer, Err(ClientError::Lost(_))), "{answer:?}");
    assert!(matches!(w.ended(), Ok(0)));
    assert!(at.elapsed() >= LAST_SYNC && at.elapsed() < 2 * LAST_SYNC, "{:?}", at.elapsed());
}

#[test]
fn messages_of_one_connection_never_overtake_each_other() {
    let w = World::new();
    w.toy.sync_ms.store(80, Relaxed);
    let mut raw = w.raw();
    let mut bytes = raw.frame(&submit());
    let queues = ClientMsg::Queues { names: vec![], user: String::new(), host: String::new() };
    bytes.extend(raw.frame(&Msg::Client(queues)));
    std::io::Write::write_all(&mut raw.sock, &bytes).unwrap();
    let mut order = Vec::new();
    for _ in 0..3 {
        match raw.next() {
            Some(Msg::Client(ClientMsg::Submitted { .. })) => order.push("submitted".to_string()),
            Some(Msg::Client(ClientMsg::ParamRows { values })) => order.push(values[0].1.clone()),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(order, ["submitted", "first", "second"]);
    // No commit is under way: an answer that must be durable leaves at once.
    let at = Instant::now();
    let queues = ClientMsg::Queues { names: vec![], user: String::new(), host: String::new() };
    let bytes = raw.frame(&Msg::Client(queues));
    std::io::Write::write_all(&mut raw.sock, &bytes).unwrap();
    assert!(raw.next().is_some() && at.elapsed() < Duration::from_millis(60));
    assert!(w.stop());
}

#[test]
fn a_request_as_large_as_a_user_may_send_passes_and_a_larger_one_is_refused_here() {
    let w = World::new();
    let mut c = w.client();
    let sized = |n: usize| {
        let script = "x".repeat(n).into();
        Msg::Client(ClientMsg::Submit(Box::new(Submit { script, ..Submit::default() })))
    };
    assert!(c.call(&sized(4_000_000), &mut std::io::sink()).is_ok());
    let e = c.call(&sized(4 << 20), &mut std::io::sink()).unwrap_err();
    assert_eq!(e.words(), "the request is longer than 4194304 bytes");
    assert!(w.stop());
}

#[test]
fn a_client_that_asks_faster_than_the_log_writes_is_held_back_and_answered() {
    let w = World::new();
    w.toy.sync_ms.store(500, Relaxed);
    let n = 3 * lsf::net::limits::MAX_HELD;
    let mut raw = w.raw();
    let frames: Vec<u8> = (0..n).flat_map(|_| raw.frame(&submit())).collect();
    let mut sock = raw.sock.try_clone().unwrap();
    std::thread::scope(|s| {
        s.spawn(move || std::io::Write::write_all(&mut sock, &frames).unwrap());
        for job in 1..=n as u32 {
            match raw.next() {
                Some(Msg::Client(ClientMsg::Submitted { job: got, .. })) => assert_eq!(got, job),
                other => panic!("{job}: {other:?}"),
            }
        }
    });
    // Held back: it took several syncs.
    assert!(w.toy.syncs.load(Relaxed) >= 3);
    assert!(w.stop());
}
