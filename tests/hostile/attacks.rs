//! Malformed frames of every kind: each ends its own connection at a named cap or deadline, the
//! daemon's memory stays, a client beside it is served (must-show 5 of the foundation).

use super::world::{RawClient, World, alone, resident};
use lsf::net::limits;
use lsf::proto::Msg;
use lsf::proto::client::ClientMsg;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Every row: a name and the bytes sent in place of the credential.
fn early() -> Vec<(&'static str, Vec<u8>)> {
    let head = |kind: u8, len: u32| {
        let mut h = vec![0u8; 36];
        h[..4].copy_from_slice(b"LSFW");
        (h[5], h[6]) = (1, kind);
        h[8..12].copy_from_slice(&len.to_be_bytes());
        h
    };
    let with = |kind: u8, body: &[u8]| {
        let mut f = head(kind, body.len() as u32);
        f[20..36].fill(7);
        f.extend_from_slice(body);
        f
    };
    let mut rows = vec![
        ("garbage", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec()),
        ("zeroes", vec![0; 4096]),
        ("unknown kind", head(200, 0)),
        ("a message before the credential", with(5, br#"{"Ping":{"n":1}}"#)),
        ("an unsigned local message", with(6, br#"{"Ping":{"n":1}}"#)),
        ("empty body", with(2, b"")),
        ("not JSON", with(2, b"\x00\xff\xfe{{{{")),
        ("another object", with(2, br#"{"a":1}"#)),
        ("deeply nested", with(2, "[".repeat(16_000).as_bytes())),
        ("deeply nested in a known field", {
            let deep = format!("{{\"key\":{}", "{\"a\":".repeat(3000));
            with(2, deep.as_bytes())
        }),
    ];
    for len in [u32::MAX, 1 << 31, (1 << 31) - 1, 16_385] {
        rows.push(("huge length", head(2, len)));
    }
    rows
}

/// Reads until the server hangs up; how long that took, `None` if it did not.
fn hung_up(sock: &mut TcpStream, wait: Duration) -> Option<Duration> {
    let at = Instant::now();
    sock.set_read_timeout(Some(wait)).unwrap();
    let mut buf = [0; 4096];
    loop {
        match sock.read(&mut buf) {
            Ok(0) => return Some(at.elapsed()),
            Ok(_) if at.elapsed() > wait => return None,
            Ok(_) => {}
            Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => return Some(at.elapsed()),
            Err(_) => return None,
        }
    }
}

/// A client that asks all the while, over a kept connection and over new ones.
fn beside(w: &World, done: &AtomicBool) -> Vec<Duration> {
    let mut times = Vec::new();
    let ask = Msg::Client(ClientMsg::Params);
    let mut kept = w.client();
    while !done.load(Ordering::Relaxed) {
        let at = Instant::now();
        kept.call(&ask, &mut std::io::sink()).unwrap();
        times.push(at.elapsed());
        let at = Instant::now();
        w.client().call(&ask, &mut std::io::sink()).unwrap();
        times.push(at.elapsed());
        std::thread::sleep(Duration::from_millis(2));
    }
    times.sort();
    times
}

/// Ends the witness even where the attack shows a failure.
struct Ended<'a>(&'a AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The p99 of the good client when nothing else goes on.
fn quiet(w: &World) -> Duration {
    let done = AtomicBool::new(false);
    std::thread::scope(|s| {
        let witness = s.spawn(|| beside(w, &done));
        std::thread::sleep(Duration::from_millis(500));
        done.store(true, Ordering::Relaxed);
        let times = witness.join().unwrap();
        times[times.len() * 99 / 100]
    })
}

/// Runs the attack with a good client beside it, and holds that client's times and the growth of
/// memory against the promise.
fn with_witness(w: &World, attack: impl FnOnce()) {
    with_witness_within(w, 2 << 20, attack);
}

/// Runs the attack with a good client beside it; the attack itself may hold `room` bytes.
fn with_witness_within(w: &World, room: usize, attack: impl FnOnce()) {
    let done = AtomicBool::new(false);
    w.client().call(&Msg::Client(ClientMsg::Params), &mut std::io::sink()).unwrap();
    let before = resident();
    let times = std::thread::scope(|s| {
        let witness = s.spawn(|| beside(w, &done));
        let ended = Ended(&done);
        attack();
        drop(ended);
        witness.join().unwrap()
    });
    let grown = resident().saturating_sub(before);
    let p99 = times[times.len() * 99 / 100];
    // A machine with other work is slow without any attack, too.
    let bound = Duration::from_millis(100).max(quiet(w) * 5);
    assert!(p99 < bound, "p99 {p99:?} of {}, bound {bound:?}", times.len());
    assert!(grown < room, "memory grew by {grown} bytes");
}

#[test]
fn malformed_bytes_before_authentication_end_the_connection_alone() {
    alone("attacks::malformed_bytes_before_authentication_end_the_connection_alone", || {
        let w = World::new();
        with_witness(&w, || {
            for _ in 0..20 {
                for (what, bytes) in early() {
                    let mut sock = w.tcp_from("host1");
                    // The server may hang up in the middle of it.
                    let _ = sock.write_all(&bytes);
                    let took = hung_up(&mut sock, Duration::from_secs(2));
                    assert!(took.is_some(), "{what}: still open");
                }
            }
        });
        assert!(w.stop());
    });
}

#[test]
fn silent_slow_and_endless_clients_before_authentication_delay_nobody() {
    alone("attacks::silent_slow_and_endless_clients_before_authentication_delay_nobody", || {
        let w = World::new();
        let limit = Duration::from_micros(limits::EARLY_US);
        with_witness(&w, || {
            std::thread::scope(|s| {
                // Says nothing; says half a header; says a frame byte by byte, for ever.
                for what in ["silent", "half", "drip"] {
                    let w = &w;
                    s.spawn(move || {
                        let mut sock = w.tcp_from("host1");
                        let at = Instant::now();
                        match what {
                            "half" => sock.write_all(b"LSFW\0\x01\x02\0").unwrap(),
                            "drip" => {
                                let mut head = vec![0u8; 36];
                                head[..8].copy_from_slice(b"LSFW\0\x01\x02\0");
                                head[8..12].copy_from_slice(&16_000u32.to_be_bytes());
                                while at.elapsed() < limit * 2 && sock.write_all(&head).is_ok() {
                                    head = b"x".to_vec();
                                    std::thread::sleep(Duration::from_millis(20));
                                }
                            }
                            _ => {}
                        }
                        let wait = limit * 2;
                        assert!(hung_up(&mut sock, wait).is_some(), "{what}: still open");
                        let took = at.elapsed();
                        assert!(took < limit + Duration::from_secs(2), "{what}: {took:?}");
                    });
                }
            });
        });
        assert!(w.stop());
    });
}

/// A wrong message of an authenticated peer, made from the state of a good session.
type Late = (&'static str, fn(&mut RawClient) -> Vec<u8>);

const LATE: [Late; 10] = [
    ("deeply nested", |c| {
        let deep = (0..300).fold(serde_json::json!([]), |v, _| serde_json::json!([v]));
        let mut out = Vec::new();
        c.session.seal(lsf::proto::frame::Kind::Msg, &deep, &mut out).unwrap();
        out
    }),
    ("body changed", |c| flip(c, 40)),
    ("header changed", |c| flip(c, 13)),
    ("MAC changed", |c| flip(c, 25)),
    ("unsigned", |c| {
        let mut f = c.frame(&Msg::Ping { n: 1 });
        f[20..36].fill(0);
        f
    }),
    ("wrong version", |c| {
        let mut f = c.frame(&Msg::Ping { n: 1 });
        f[5] = 2;
        f
    }),
    ("replayed", |c| {
        let f = c.frame(&Msg::Ping { n: 1 });
        [f.clone(), f].concat()
    }),
    ("out of order", |c| {
        let a = c.frame(&Msg::Ping { n: 1 });
        let b = c.frame(&Msg::Ping { n: 2 });
        [b, a].concat()
    }),
    ("huge length", |c| {
        let mut f = c.frame(&Msg::Ping { n: 1 });
        f[8..12].copy_from_slice(&u32::MAX.to_be_bytes());
        f
    }),
    ("not a message", |c| {
        let mut out = Vec::new();
        c.session.seal(lsf::proto::frame::Kind::Msg, &[1, 2, 3], &mut out).unwrap();
        out
    }),
];

fn flip(c: &mut RawClient, at: usize) -> Vec<u8> {
    let mut f = c.frame(&Msg::Ping { n: 1 });
    f[at] ^= 1;
    f
}

#[test]
fn malformed_messages_after_authentication_end_the_connection_alone() {
    alone("attacks::malformed_messages_after_authentication_end_the_connection_alone", || {
        let w = World::new();
        with_witness(&w, || {
            for _ in 0..10 {
                for (what, make) in LATE {
                    let mut c = w.raw();
                    let bytes = make(&mut c);
                    c.sock.write_all(&bytes).unwrap();
                    let took = hung_up(&mut c.sock, Duration::from_secs(2));
                    assert!(took.is_some(), "{what}: still open");
                }
            }
        });
        assert!(w.stop());
    });
}

#[test]
fn half_a_frame_after_authentication_has_a_deadline() {
    alone("attacks::half_a_frame_after_authentication_has_a_deadline", || {
        let w = World::new();
        let limit = Duration::from_micros(limits::HALF_FRAME_US);
        with_witness(&w, || {
            let mut c = w.raw();
            let at = Instant::now();
            let mut head = c.frame(&Msg::Ping { n: 1 });
            head[8..12].copy_from_slice(&4_000_000u32.to_be_bytes());
            c.sock.write_all(&head).unwrap();
            // A byte now and then does not buy more time.
            while at.elapsed() < limit * 2 && c.sock.write_all(b"x").is_ok() {
                std::thread::sleep(Duration::from_millis(100));
            }
            let took = at.elapsed();
            assert!(took > limit && took < limit + Duration::from_secs(2), "{took:?}");
        });
        assert!(w.stop());
    });
}

/// Whether the server has not hung up yet.
fn is_open(mut sock: &TcpStream) -> bool {
    sock.set_nonblocking(true).unwrap();
    let mut buf = [0; 4096];
    loop {
        match sock.read(&mut buf) {
            Ok(0) => return false,
            Ok(_) => {}
            Err(e) => return e.kind() == std::io::ErrorKind::WouldBlock,
        }
    }
}

#[test]
fn flood_of_half_open_connections_delays_requests_little() {
    alone("attacks::flood_of_half_open_connections_delays_requests_little", || {
        let w = World::new();
        // Open connections are the attack: each has its first buffer.
        with_witness_within(&w, 8 << 20, || {
            let mut held = Vec::new();
            let until = Instant::now() + Duration::from_secs(3);
            while Instant::now() < until {
                held.push(w.tcp_from("host1"));
                std::thread::sleep(Duration::from_micros(200));
                if held.len() > 3000 {
                    held.drain(..500);
                }
            }
            let alive = held.iter().filter(|s| is_open(s)).count();
            assert!(alive < limits::MAX_EARLY + 128, "{alive} are still open");
        });
        assert!(w.stop());
    });
}

/// The body of the child of the next test: holds connections until it is told to stop.
#[test]
fn child_that_holds_connections() {
    let Ok(server) = std::env::var("LSF_TEST_SERVER") else { return };
    let held: Vec<_> = (0..100).filter_map(|_| TcpStream::connect(&server).ok()).collect();
    let mut line = String::new();
    // Ends with the parent, too.
    let _ = std::io::stdin().read_line(&mut line);
    drop(held);
}

#[test]
fn a_daemon_without_descriptors_waits_and_goes_on() {
    alone("attacks::a_daemon_without_descriptors_waits_and_goes_on", || {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let w = World::new();
        let mut kept = w.client();
        let ask = Msg::Client(ClientMsg::Params);
        kept.call(&ask, &mut std::io::sink()).unwrap();
        let mut child = std::process::Command::new("/proc/self/exe")
            .args(["--exact", "attacks::child_that_holds_connections"])
            .env("LSF_TEST_SERVER", w.server().to_string())
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let open = std::fs::read_dir("/proc/self/fd").unwrap().count() as u64;
        let before = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(open + 4), ..before }).unwrap();
        let cpu = cpu_time();
        std::thread::sleep(Duration::from_millis(1000));
        let used = cpu_time() - cpu;
        assert!(used < Duration::from_millis(150), "it spins: {used:?} of a second");
        // Connected clients are served; new ones wait.
        kept.call(&ask, &mut std::io::sink()).unwrap();
        drop(child.stdin.take());
        child.wait().unwrap();
        setrlimit(Resource::Nofile, before).unwrap();
        w.client().call(&ask, &mut std::io::sink()).unwrap();
        assert!(w.stop());
    });
}

/// CPU time of this process. Takes no descriptor.
fn cpu_time() -> Duration {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(t.tv_sec as u64, t.tv_nsec as u32)
}

#[test]
fn daemon_serves_on_when_peers_vanish() {
    let w = World::new();
    w.toy.slices.store(50, Ordering::Relaxed);
    w.toy.slice_bytes.store(100_000, Ordering::Relaxed);
    for round in 0..60 {
        match round % 4 {
            0 => drop(w.tcp_from("host1")),
            1 => drop(w.greeted()),
            2 => drop(w.raw()),
            _ => {
                // Asks for much, reads nothing, hangs up: the daemon writes into a reset.
                let mut c = w.raw();
                let f = c.frame(&Msg::Client(ClientMsg::Jobs(Box::default())));
                c.sock.write_all(&f).unwrap();
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
    let until = Instant::now() + Duration::from_secs(5);
    let (opened, closed) = (&w.toy.opened, &w.toy.closed);
    while opened.load(Ordering::Relaxed) != closed.load(Ordering::Relaxed) {
        assert!(Instant::now() < until, "a connection is not known to be gone");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(w.stop());
}
