//! The ways to prove who one is that a site may enable (LSF_AUTH): each lets the right user in
//! and refuses the wrong user, the replay, the other host, what is cut short, and every way that
//! the site did not enable.

use super::rig::skipped;
use super::world::{RawClient, World};
use lsf::auth::shake::{self, Auth, AuthError, open_key, session_key};
use lsf::cli::client::{Client, Patience};
use lsf::proto::client::ClientMsg;
use lsf::proto::frame::SessionKey;
use lsf::proto::{Daemon, Msg};
use lsf::sys::site::{self, LocalSite};
use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A user of every system that is not root.
const NOBODY: u32 = 65534;

/// Asks who the daemon takes us to be; else the words of the failure.
fn dial(site: &LocalSite) -> String {
    let client = Client::dial(site, Daemon::Mbatchd, Patience::of(site).once());
    let ask = Msg::Client(ClientMsg::Params);
    match client.and_then(|mut c| c.call(&ask, &mut std::io::sink())) {
        Ok(Msg::Client(ClientMsg::ParamRows { values })) => values[0].1.clone(),
        Ok(other) => panic!("{other:?}"),
        Err(e) => format!("{e:#}"),
    }
}

/// The body of the child of other tests; passes by itself.
#[test]
fn child_that_dials() {
    if std::env::var_os("LSF_TEST_DIAL").is_some() {
        eprintln!("answer: {}", dial(&site::find().unwrap()));
    }
}

/// Dials like [`dial`], as another user.
fn dial_as(w: &World, uid: u32) -> String {
    let out = Command::new("/proc/self/exe")
        .args(["--exact", "methods::child_that_dials", "--nocapture"])
        .env("LSF_TEST_DIAL", "1")
        .env("LSF_ENVDIR", w.dir.join("conf"))
        .env_remove("LSF_LOCAL_HOST")
        .uid(uid)
        .gid(uid)
        .output()
        .unwrap();
    String::from_utf8_lossy(&out.stderr).into_owned()
}

/// Sends a first frame by hand; the number of the refusal, 0 where it was let in.
fn send(raw: &mut RawClient, auth: Auth, key: &SessionKey) -> i32 {
    let mut out = Vec::new();
    raw.session = shake::write_auth_of(auth, key, &mut out).unwrap();
    raw.sock.write_all(&out).unwrap();
    answer(raw)
}

fn answer(raw: &mut RawClient) -> i32 {
    loop {
        if let Some(frame) = raw.dec.take().unwrap() {
            return match shake::read_ok(&mut raw.session, &frame) {
                Ok(()) => 0,
                Err(AuthError::Denied { code }) => code,
                Err(e) => panic!("{e}"),
            };
        }
        assert!(raw.fill() > 0, "closed without a word");
    }
}

/// An unsigned first frame in some way.
fn open(raw: &RawClient, way: &str) -> (Auth, SessionKey) {
    let claims = shake::Claims { key: String::new(), ..raw.claims.clone() };
    let auth = Auth { way: way.into(), ..Auth::signed(1, claims) };
    let key = open_key(&auth, &raw.hello.target()).unwrap();
    (auth, key)
}

/// The daemon's answers to each way, sent by hand, signed where `signed`.
fn each_way(w: &World, user: &str, signed: bool) -> Vec<i32> {
    let mut codes = Vec::new();
    for way in ["", "key", "eauth", "ident", "setuid", "none", "rot13"] {
        let mut raw = w.greeted();
        raw.claims.user = user.into();
        if !signed {
            let (auth, key) = open(&raw, way);
            codes.push(send(&mut raw, auth, &key));
            continue;
        }
        let auth = Auth { way: way.into(), ..Auth::signed(1, raw.claims.clone()) };
        let key = session_key(&w.ring, &raw.claims, &raw.hello.target()).unwrap();
        codes.push(send(&mut raw, auth, &key));
    }
    codes
}

struct Daemonised(Child);

impl Drop for Daemonised {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn found(program: &str) -> Option<PathBuf> {
    let dirs = ["/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/sbin", "/usr/local/bin"];
    dirs.iter().map(|d| Path::new(d).join(program)).find(|p| p.exists())
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !done() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A real RFC 1413 server for the connections of host1.
fn oidentd(w: &World, port: u16) -> Option<Daemonised> {
    let program = found("oidentd")?;
    let addr = w.addr("host1").to_string();
    let port_word = port.to_string();
    let mut cmd = Command::new(program);
    cmd.args(["-i", "-S", "-q", "-p", &port_word, "-a", &addr, "-u", "0", "-g", "0"]);
    let child = cmd.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let child = Daemonised(child);
    let at = SocketAddr::new(w.addr("host1"), port);
    until("oidentd does not listen", || std::net::TcpStream::connect(at).is_ok());
    Some(child)
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Takes authd away: the client's host has no key.
fn without_authd(w: &World) {
    std::fs::remove_file(w.site.authd_socket()).unwrap();
}

#[test]
fn only_the_ways_that_the_site_names_are_open() {
    let w = World::with(None, &|_| "LSF_AUTH=none\n".into());
    assert_eq!(w.greeted().hello.ways, "none");
    assert!(dial(&w.site).contains("User permission denied: authentication by none is not"));
    assert_eq!(each_way(&w, "root", true), [17; 7]);
    assert_eq!(each_way(&w, "root", false), [17; 7]);
    // Daemons have the key, whatever users have.
    let mut raw = w.greeted();
    raw.claims.who = shake::Who::Daemon(Daemon::Sbatchd);
    let key = session_key(&w.ring, &raw.claims, &raw.hello.target()).unwrap();
    let auth = Auth::signed(1, raw.claims.clone());
    assert_eq!(send(&mut raw, auth, &key), 0);
    // A daemon proves itself with the key and in no other way.
    let mut raw = w.greeted();
    raw.claims.who = shake::Who::Daemon(Daemon::Sbatchd);
    let (auth, key) = open(&raw, "setuid");
    assert_eq!(send(&mut raw, auth, &key), 17);
    drop(w);
}

#[test]
fn the_default_takes_the_built_in_credential_alone() {
    let w = World::with(None, &|_| String::new());
    assert_eq!(w.greeted().hello.ways, "");
    assert_eq!(each_way(&w, "root", true), [0, 0, 17, 17, 17, 17, 17]);
    assert_eq!(each_way(&w, "root", false), [17; 7]);
    assert!(w.stop());
}

#[test]
fn a_client_takes_no_way_that_its_own_lsf_conf_does_not_name() {
    let mut w = World::with(None, &|_| "LSF_AUTH=\"ident setuid\"\n".into());
    w.site.lsf.set("LSF_AUTH", "eauth");
    let said = dial(&w.site);
    assert!(said.contains("authentication by ident setuid is not enabled"), "{said}");
}

#[test]
fn callers_are_identified_by_the_ident_server_of_their_host() {
    if lsf::sys::euid() != 0 || found("oidentd").is_none() {
        return skipped(
            "callers_are_identified_by_the_ident_server_of_their_host: needs root and oidentd",
        );
    }
    let port = free_port();
    let w = World::with(None, &|_| format!("LSF_AUTH=ident\nLSF_IDENT_PORT={port}\n"));
    let refused = dial(&w.site);
    assert!(refused.starts_with("User permission denied"), "nobody answers: {refused}");
    let _identd = oidentd(&w, port).unwrap();
    for authd in [true, false] {
        if !authd {
            without_authd(&w);
        }
        let root = dial(&w.site);
        assert!(root.contains("uid: 0,") && root.contains("host: \"host1\""), "{root}");
        let nobody = dial_as(&w, NOBODY);
        assert!(nobody.contains("uid: 65534,") && nobody.contains("\"nobody\""), "{nobody}");
    }
    // Somebody else's name; somebody else's uid; right.
    let by_hand = |user: &str, uid: u32| {
        let mut raw = w.greeted();
        (raw.claims.user, raw.claims.uid) = (user.into(), uid);
        let (auth, key) = open(&raw, "ident");
        send(&mut raw, auth, &key)
    };
    assert_eq!((by_hand("nobody", NOBODY), by_hand("root", NOBODY)), (17, 17));
    assert_eq!((by_hand("nobody", 0), by_hand("root", 0)), (17, 0));
    // A signature does not stand in for the answer, nor one way for another.
    assert_eq!(each_way(&w, "nobody", true), [17; 7]);
    assert_eq!(each_way(&w, "root", true), [17, 17, 17, 0, 17, 17, 17]);
    assert_eq!(each_way(&w, "root", false), [17, 17, 17, 0, 17, 17, 17]);
}

#[test]
fn a_frame_in_the_open_is_good_for_one_connection_and_one_host() {
    let w = World::with(None, &|_| "LSF_AUTH=setuid\n".into());
    let first = w.greeted();
    let (auth, key) = open(&first, "setuid");
    // The proof belongs to another connection.
    let mut raw = w.greeted();
    assert_eq!(send(&mut raw, auth.clone(), &key), 17);
    // Changed after it was made.
    let mut raw = w.greeted();
    let (mut auth, key) = open(&raw, "setuid");
    auth.claims.uid = 5;
    assert_eq!(send(&mut raw, auth, &key), 17);
    // The proof belongs to another host.
    let mut raw = w.greeted();
    raw.claims.host = "host2".into();
    let (auth, key) = open(&raw, "setuid");
    assert_eq!(send(&mut raw, auth, &key), 34);
    // Cut short: it is waited for, and then the connection ends.
    let mut raw = w.greeted();
    let (auth, key) = open(&raw, "setuid");
    let mut out = Vec::new();
    shake::write_auth_of(auth, &key, &mut out).unwrap();
    raw.sock.write_all(&out[..out.len() - 1]).unwrap();
    raw.sock.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(raw.fill(), 0);
}

#[test]
fn slow_ident_server_delays_its_own_caller_alone() {
    let port = free_port();
    let lines = |_: &World| format!("LSF_AUTH=\"eauth ident\"\nLSF_IDENT_PORT={port}\n");
    let w = World::with(None, &lines);
    assert_eq!(w.greeted().hello.ways, "key ident");
    let silent = TcpListener::bind((w.addr("host1"), port)).unwrap();
    let slow: Vec<RawClient> = (0..80)
        .map(|_| {
            let mut raw = w.greeted();
            let (auth, key) = open(&raw, "ident");
            let mut out = Vec::new();
            raw.session = shake::write_auth_of(auth, &key, &mut out).unwrap();
            raw.sock.write_all(&out).unwrap();
            raw
        })
        .collect();
    let at = Instant::now();
    for _ in 0..20 {
        assert!(dial(&w.site).contains("uid: "));
    }
    assert!(at.elapsed() < Duration::from_secs(2), "{:?}", at.elapsed());
    // Each one gets its refusal: most when the time is up, those beyond the cap at once.
    let codes: Vec<i32> = slow.into_iter().map(|mut raw| answer(&mut raw)).collect();
    assert!(codes.contains(&17) && codes.contains(&9002), "{codes:?}");
    assert!(codes.iter().all(|c| [17, 9002].contains(c)), "{codes:?}");
    assert!(at.elapsed() < Duration::from_secs(15), "{:?}", at.elapsed());
    drop(silent);
    assert!(w.stop());
}

/// Makes the helper in a directory that root alone can write, as LSF_SERVERDIR of the world.
fn helper(w: &World) -> String {
    let dir = w.dir.join("etc");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::set_permissions(&dir, PermissionsExt::from_mode(0o755)).unwrap();
    let out = Command::new(super::rig::binary())
        .args(["--install", "--setuid"])
        .arg(&dir)
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    format!("LSF_AUTH=setuid\nLSF_SETUIDDIR={}\n", dir.display())
}

#[test]
fn privileged_port_of_a_cluster_host_admits_its_caller_when_the_site_says_so() {
    if lsf::sys::euid() != 0 {
        return skipped(
            "privileged_port_of_a_cluster_host_admits_its_caller_when_the_site_says_so: needs root",
        );
    }
    let w = World::with(None, &helper);
    let nobody = dial_as(&w, NOBODY);
    assert!(nobody.contains("uid: 65534,") && nobody.contains("\"nobody\""), "{nobody}");
    assert!(dial(&w.site).contains("uid: 0,"));
    // The claims of root from an ordinary port.
    assert_eq!(each_way(&w, "root", true), [17; 7]);
    assert_eq!(each_way(&w, "root", false), [17; 7]);
    // A privileged port proves users alone: no daemon and no other host comes in by it.
    let by_port = |port: u16, change: &dyn Fn(&mut shake::Claims)| {
        let mut raw = w.greeted_from(Some(SocketAddr::new(w.addr("host1"), port)));
        change(&mut raw.claims);
        let (auth, key) = open(&raw, "setuid");
        send(&mut raw, auth, &key)
    };
    assert_eq!(by_port(1010, &|c| c.user = "root".into()), 0);
    assert_eq!(by_port(1011, &|c| c.who = shake::Who::Daemon(Daemon::Sbatchd)), 17);
    assert_eq!(by_port(1012, &|c| c.host = "host2".into()), 34);
    // A privileged port at an address that is nobody's.
    let stranger = SocketAddr::new("127.0.0.1".parse().unwrap(), 1000);
    let mut raw = w.greeted_from(Some(stranger));
    raw.claims.host = "host2".into();
    let (auth, key) = open(&raw, "setuid");
    assert_eq!(send(&mut raw, auth, &key), 34);
}

#[test]
fn setuid_helper_called_as_another_applet_refuses_its_arguments() {
    if lsf::sys::euid() != 0 {
        return skipped("setuid_helper_called_as_another_applet_refuses_its_arguments: needs root");
    }
    let w = World::with(None, &helper);
    let path = w.dir.join("etc/lsf-port");
    let run = |name: &str, args: &[&str]| {
        let mut cmd = Command::new(&path);
        cmd.arg0(name).args(args).uid(NOBODY).gid(NOBODY).stdin(Stdio::null());
        let out = cmd.output().unwrap();
        String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned()
    };
    for name in ["lsf", "bsub", "launcher", "starter", "lsf-port"] {
        assert_eq!(run(name, &["-V"]), "lsf-port: wrong arguments\n", "called as {name}");
    }
    // A server of another protocol receives nothing from a privileged port.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap().to_string();
    let heard = std::thread::spawn(move || {
        let (mut sock, from) = listener.accept().unwrap();
        sock.write_all(b"220 some service\r\n").unwrap();
        let mut text = Vec::new();
        let _ = std::io::Read::read_to_end(&mut sock, &mut text);
        (from.port(), text)
    });
    let said = run("lsf-port", &[&at, "127.0.0.1", "mbatchd", "host1", "host1"]);
    assert_eq!(said, "lsf-port: not a frame of this protocol\n");
    let (port, text) = heard.join().unwrap();
    assert!(port < 1024 && text.is_empty(), "{port} {text:?}");
    // The file is not made in a directory in which others could replace it.
    let open = w.dir.join("open");
    std::fs::create_dir_all(&open).unwrap();
    std::fs::set_permissions(&open, PermissionsExt::from_mode(0o777)).unwrap();
    let mut cmd = Command::new(super::rig::binary());
    let out = cmd.args(["--install", "--setuid"]).arg(&open).output().unwrap();
    assert!(!out.status.success() && !open.join("lsf-port").exists());
}

#[test]
fn callers_of_mbatchd_are_admitted_by_hosts_equiv() {
    if lsf::sys::euid() != 0 {
        return skipped("callers_of_mbatchd_are_admitted_by_hosts_equiv: needs root");
    }
    let with = |text: &'static str, mode: u32| {
        let w = World::with(None, &|w| {
            let file = w.dir.join("hosts.equiv");
            std::fs::write(&file, text).unwrap();
            std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
            format!("LSF_USE_HOSTEQUIV=Y\nLSF_HOSTS_EQUIV={}\n", file.display())
        });
        let said = (dial_as(&w, NOBODY), dial(&w.site));
        (said.0.contains("uid: 65534,"), said.1.contains("uid: 0,"), said)
    };
    for (text, mode, nobody) in [
        ("host1\n", 0o644, true),
        ("host1 nobody\n", 0o644, true),
        ("host2\n", 0o644, false),
        ("-host1\n+ +\n", 0o644, false),
        ("host1 -nobody\n+ +\n", 0o644, false),
        ("", 0o644, false),
        ("+ +\n", 0o666, false),
    ] {
        let (let_in, root, said) = with(text, mode);
        assert_eq!((let_in, root), (nobody, false), "{text:?}: {said:?}");
        assert!(said.1.starts_with("User permission denied"), "{said:?}");
    }
}
