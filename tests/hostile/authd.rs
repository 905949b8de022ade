//! authd believes the kernel alone about who asks, and nobody keeps others from asking.

use lsf::auth::KeyRing;
use lsf::auth::shake::{Ask, Claims, Grant, Hex32, Target, session_key};
use lsf::daemon::authd::Authd;
use lsf::proto::Daemon;
use lsf::proto::frame::{Decoder, FrameHead, Kind, MAX_FRAME_EARLY, write_frame};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

const SOCKET: &str = "LSF_TEST_AUTHD";

/// A socket in a directory of its own, which goes with it.
struct Socket(PathBuf);

impl std::ops::Deref for Socket {
    type Target = Path;
    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = self.0.parent().map(std::fs::remove_dir_all);
    }
}

fn start(name: &str, only_uid: Option<u32>) -> (Socket, Arc<KeyRing>) {
    let dir = std::env::temp_dir().join(format!("lsf-authd-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::set_permissions(&dir, PermissionsExt::from_mode(0o755)).unwrap();
    let key = lsf::auth::new_key().unwrap();
    let ring = Arc::new(KeyRing::parse(key.as_bytes()).unwrap());
    let path = dir.join("authd.sock");
    let mut authd = Authd::new(&path, ring.clone(), "hosta", only_uid).unwrap();
    std::thread::spawn(move || authd.run(&mut || Err("no".into())));
    (Socket(path), ring)
}

fn target() -> Target {
    let (daemon, host) = (Daemon::Mbatchd, "hostb".into());
    Target { daemon, host, nonce: Hex32([5; 32]), lo: 1, hi: 1, ways: String::new() }
}

fn ask(sock: &mut UnixStream, keys: Vec<String>) -> Option<Grant> {
    let mut out = Vec::new();
    let ask = Ask { target: target(), keys, eauth: String::new(), user_server: None };
    write_frame(&mut out, FrameHead::plain(Kind::Ask, 1), None, &ask).unwrap();
    sock.write_all(&out).ok()?;
    answer(sock)
}

fn answer(sock: &mut UnixStream) -> Option<Grant> {
    sock.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut dec = Decoder::new(MAX_FRAME_EARLY);
    let mut buf = [0; 4096];
    loop {
        if let Some(raw) = dec.take().unwrap() {
            return Some(raw.parse().unwrap());
        }
        match sock.read(&mut buf) {
            Ok(n) if n > 0 => dec.push(&buf[..n]),
            _ => return None,
        }
    }
}

fn claims(grant: Option<Grant>) -> Claims {
    match grant {
        Some(Grant::Yes { claims, .. }) => claims,
        other => panic!("{other:?}"),
    }
}

#[test]
fn caller_of_authd_is_identified_by_the_kernel() {
    let (path, ring) = start("own", None);
    let mut sock = UnixStream::connect(&*path).unwrap();
    let (uid, gid) = (lsf::sys::euid(), rustix::process::getegid().as_raw());
    for _ in 0..3 {
        match ask(&mut sock, ring.ids()) {
            Some(Grant::Yes { claims, session }) => {
                assert_eq!((claims.uid, claims.gid, claims.host.as_str()), (uid, gid, "hosta"));
                let key = session_key(&ring, &claims, &target()).unwrap();
                assert_eq!(session.0, *key.expose());
            }
            other => panic!("{other:?}"),
        }
    }
    let mut sock = UnixStream::connect(&*path).unwrap();
    let none = ask(&mut sock, vec!["other".into()]);
    assert_eq!(none, Some(Grant::No { why: "no cluster key in common".into() }));
}

/// The body of the child of the next test; passes by itself.
#[test]
fn child_that_asks() {
    let Some(path) = std::env::var_os(SOCKET) else { return };
    let mut sock = UnixStream::connect(Path::new(&path)).unwrap();
    let keys = std::env::var("LSF_TEST_KEY").unwrap();
    eprintln!("answer: {:?}", ask(&mut sock, vec![keys]));
}

/// The answer that another uid gets.
fn as_uid(uid: u32, path: &Path, ring: &KeyRing) -> String {
    let out = Command::new("/proc/self/exe")
        .args(["--exact", "authd::child_that_asks", "--nocapture"])
        .env(SOCKET, path)
        .env("LSF_TEST_KEY", ring.first())
        .uid(uid)
        .gid(uid)
        .output()
        .unwrap();
    String::from_utf8_lossy(&out.stderr).into_owned()
}

#[test]
fn other_uids_get_their_own_name_or_nothing() {
    if lsf::sys::euid() != 0 {
        return crate::rig::skipped("other_uids_get_their_own_name_or_nothing: it needs root");
    }
    let (path, ring) = start("others", None);
    let nobody = as_uid(65534, &path, &ring);
    assert!(nobody.contains("uid: 65534") && nobody.contains("user: \"nobody\""), "{nobody}");
    let nameless = as_uid(54_321, &path, &ring);
    assert!(nameless.contains("uid 54321 has no name on host hosta"), "{nameless}");
    let (path, ring) = start("personal", Some(0));
    let refused = as_uid(65534, &path, &ring);
    assert!(refused.contains("does not own this personal cluster"), "{refused}");
}

#[test]
fn wrong_or_many_callers_of_authd_keep_no_other_out() {
    let (path, ring) = start("many", None);
    // Idle ones, far beyond every cap.
    let idle: Vec<UnixStream> = (0..600).map(|_| UnixStream::connect(&*path).unwrap()).collect();
    let at = Instant::now();
    let mut sock = UnixStream::connect(&*path).unwrap();
    claims(ask(&mut sock, ring.ids()));
    assert!(at.elapsed() < Duration::from_secs(2));
    drop(idle);
    for bad in [&b"GET /\r\n\r\n"[..], b"LSFW\0\x01\x08\0\xff\xff\xff\xff", &[0; 9000]] {
        let mut sock = UnixStream::connect(&*path).unwrap();
        sock.write_all(bad).unwrap();
        assert_eq!(answer(&mut sock), None, "closed without a word");
    }
    // Asks without end and reads nothing.
    let mut greedy = UnixStream::connect(&*path).unwrap();
    greedy.set_write_timeout(Some(Duration::from_secs(2))).unwrap();
    let mut out = Vec::new();
    let question =
        Ask { target: target(), keys: ring.ids(), eauth: String::new(), user_server: None };
    write_frame(&mut out, FrameHead::plain(Kind::Ask, 1), None, &question).unwrap();
    let flood = out.repeat(10_000);
    assert!(greedy.write_all(&flood).is_err(), "it is cut off");
    let mut sock = UnixStream::connect(&*path).unwrap();
    claims(ask(&mut sock, ring.ids()));
}
