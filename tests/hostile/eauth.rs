//! eauth: a site's own program, munge's, and ours as the documented protocol calls it.

use super::rig::{binary, program, skipped};
use super::site::{ADMIN, MultiUserSite, uid};
use super::world::World;
use lsf::auth::eauth_aux;
use lsf::auth::shake::{self, Auth, open_key};
use lsf::cli::client::{Client, Patience};
use lsf::proto::client::ClientMsg;
use lsf::proto::frame::MacKey;
use lsf::proto::{Daemon, Msg};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Ends a child that a test started.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn dial(w: &World) -> String {
    let client = Client::dial(&w.site, Daemon::Mbatchd, Patience::of(&w.site).once());
    let ask = Msg::Client(ClientMsg::Params);
    match client.and_then(|mut c| c.call(&ask, &mut std::io::sink())) {
        Ok(Msg::Client(ClientMsg::ParamRows { values })) => values[0].1.clone(),
        Ok(other) => panic!("{other:?}"),
        Err(e) => format!("{e:#}"),
    }
}

/// A cluster whose LSF_SERVERDIR holds this eauth.
fn site(script: &str) -> World {
    World::with(None, &|w| {
        let dir = w.dir.join("etc");
        std::fs::create_dir_all(&dir).unwrap();
        let file = dir.join("eauth");
        program(&file, &script.replace("DIR", w.dir.to_str().unwrap()));
        format!("LSF_AUTH=eauth\nLSF_SERVERDIR={}\n", dir.display())
    })
}

/// The daemon's answer to data of an eauth under these claims.
fn by_hand(w: &World, host: &str, user: &str, uid: u32, data: &str) -> i32 {
    by_hand_with(w, host, user, uid, data, b"")
}

/// The daemon's answer to data of an eauth with auxiliary data.
fn by_hand_with(w: &World, host: &str, user: &str, uid: u32, data: &str, aux: &[u8]) -> i32 {
    let mut raw = w.greeted_from(Some((w.addr(host), 0).into()));
    let (user, host) = (user.into(), host.into());
    let claims = shake::Claims { key: String::new(), user, uid, host, ..raw.claims.clone() };
    let (way, data, aux) = ("eauth".into(), data.into(), eauth_aux::pack(aux));
    let auth = Auth { way, data, aux, ..Auth::signed(1, claims) };
    let key = open_key(&auth, &raw.hello.target()).unwrap();
    let mut out = Vec::new();
    raw.session = shake::write_auth_of(auth, &key, &mut out).unwrap();
    raw.sock.write_all(&out).unwrap();
    loop {
        if let Some(frame) = raw.dec.take().unwrap() {
            return match shake::read_ok(&mut raw.session, &frame) {
                Ok(()) => 0,
                Err(shake::AuthError::Denied { code }) => code,
                Err(e) => panic!("{e}"),
            };
        }
        assert!(raw.fill() > 0, "closed without a word");
    }
}

#[test]
fn eauth_of_the_site_replaces_the_built_in_one() {
    let script = "#!/bin/sh\nif [ \"$1\" = -c ]; then\n\
                  echo \"$LSF_EAUTH_CLIENT $LSF_EAUTH_SERVER\" >> DIR/client; echo \"for $2\"; exit\nfi\n\
                  while read -r u g n a p l d; do echo \"$u $n $a $d\" >> DIR/server\n\
                  [ \"$d\" = 'for host1' ] && echo 1 || echo 0; done\n";
    let w = site(script);
    assert_eq!(w.greeted().hello.ways, "eauth");
    let said = dial(&w);
    let uid = lsf::sys::euid();
    assert!(said.contains(&format!("uid: {uid},")), "{said}");
    let read = |name: &str| std::fs::read_to_string(w.dir.join(name)).unwrap();
    assert_eq!(read("client"), "user mbatchd@cluster1\n".replace("cluster1", &w.base.name));
    let user = said.split("user: \"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    assert_eq!(read("server"), format!("{uid} {user} {} for host1\n", w.addr("host1")));
    // eauth alone vouches for a client whose host has no authd.
    std::fs::remove_file(w.site.authd_socket()).unwrap();
    assert!(dial(&w).contains(&format!("uid: {uid},")));
    assert_eq!(by_hand(&w, "host1", &user, uid, "for host1"), 0);
    assert_eq!(by_hand(&w, "host1", &user, uid, "for host2"), 17);
    assert_eq!(by_hand(&w, "host1", &user, uid, ""), 17);
    assert_eq!(by_hand(&w, "host1", &user, uid, "x\n0 0 root 1 1 9 for host1"), 17);
    // The built-in credential, rightly signed, is not one of this site's ways.
    let mut raw = w.greeted();
    let key = shake::session_key(&w.ring, &raw.claims, &raw.hello.target()).unwrap();
    raw.auth(&key);
    while raw.fill() > 0 {}
    let frame = raw.dec.take().unwrap().unwrap();
    let denied = shake::read_ok(&mut raw.session, &frame);
    assert_eq!(denied, Err(shake::AuthError::Denied { code: 17 }));
}

#[test]
fn token_of_eauth_reaches_the_server_beside_the_proof() {
    let script = "#!/bin/sh\nif [ \"$1\" = -c ]; then\n\
                  [ \"$LSF_EAUTH_AUX_PASS\" = yes ] && cat DIR/token > \"$LSF_EAUTH_AUX_DATA\"\n\
                  echo \"$LSF_EAUTH_AUX_DATA\" > DIR/client; echo proof; exit\nfi\n\
                  while read -r line; do cp \"$LSF_EAUTH_AUX_DATA\" DIR/got\n\
                  [ -s DIR/got ] && echo 1 || echo 0; done\n";
    let w = site(script);
    let uid = lsf::sys::euid();
    let at = |name: &str| w.dir.join(name);
    for len in [0, 1, eauth_aux::MAX_AUX, eauth_aux::MAX_AUX + 1] {
        let token: Vec<u8> = (0..len).map(|n| n as u8).collect();
        std::fs::write(at("token"), &token).unwrap();
        let _ = std::fs::remove_file(at("got"));
        let said = dial(&w);
        let client = std::fs::read_to_string(at("client")).expect(&said);
        assert!(!Path::new(client.trim()).parent().unwrap().exists(), "{client}");
        match len {
            0 => assert!(said.contains("User permission denied"), "{said}"),
            _ if len > eauth_aux::MAX_AUX => {
                assert!(said.contains("eauth -c: auxiliary data of more than 64 KB"), "{said}");
                assert!(!at("got").exists());
            }
            _ => {
                assert!(said.contains(&format!("uid: {uid},")), "{len}: {said}");
                assert_eq!(std::fs::read(at("got")).unwrap(), token);
            }
        }
        // The daemon asks no client whether it is too long.
        let code = if (1..=eauth_aux::MAX_AUX).contains(&len) { 0 } else { 17 };
        assert_eq!(by_hand_with(&w, "host1", "root", uid, "proof", &token), code, "{len}");
    }
    assert_eq!(by_hand(&w, "host1", "root", uid, "proof"), 17, "one that knows of none");
}

#[test]
fn eauth_that_hangs_or_dies_delays_its_own_callers_alone() {
    let script = "#!/bin/sh\n[ \"$1\" = -c ] && { echo hang; exit; }\n\
                  echo start >> DIR/starts\n\
                  while read -r u g n a p l d; do case $d in *die*) exit 1;; \
                  *hang*) exec sleep 100;; *) echo 1;; esac; done\n";
    let w = site(script);
    let uid = lsf::sys::euid();
    std::thread::scope(|s| {
        let slow = s.spawn(|| (Instant::now(), by_hand(&w, "host1", "root", uid, "hang")));
        std::thread::sleep(Duration::from_millis(200));
        // Requests behind the hanging one are refused in time, and start nothing.
        let behind: Vec<_> =
            (0..12).map(|_| s.spawn(|| by_hand(&w, "host1", "root", uid, "hang"))).collect();
        // Daemons are served meanwhile.
        let at = Instant::now();
        let mut raw = w.greeted();
        raw.claims.who = shake::Who::Daemon(Daemon::Sbatchd);
        let key = shake::session_key(&w.ring, &raw.claims, &raw.hello.target()).unwrap();
        raw.auth(&key);
        raw.expect_ok();
        assert!(at.elapsed() < Duration::from_secs(1));
        let (from, code) = slow.join().unwrap();
        assert_eq!(code, 17);
        assert!(behind.into_iter().all(|b| b.join().unwrap() == 17));
        assert!(from.elapsed() < Duration::from_secs(12), "{:?}", from.elapsed());
        let starts = std::fs::read_to_string(w.dir.join("starts")).unwrap();
        assert!(starts.lines().count() <= 6, "{starts}");
    });
    assert_eq!(by_hand(&w, "host1", "root", uid, "well"), 0);
    assert_eq!(by_hand(&w, "host1", "root", uid, "die"), 17);
    assert_eq!(by_hand(&w, "host1", "root", uid, "well"), 0);
}

#[test]
fn sample_eauth_for_munge_admits_callers() {
    let munged = ["/usr/sbin/munged", "/sbin/munged"].into_iter().find(|p| Path::new(p).exists());
    let Some(munged) = munged.filter(|_| lsf::sys::euid() == 0) else {
        return skipped("sample_eauth_for_munge_admits_callers: needs root and munge");
    };
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("conf-examples/eauth/munge");
    let script = std::fs::read_to_string(example).unwrap();
    assert!(script.lines().count() <= 12);
    let socket = "SOCKET=/run/munge/munge.socket.2";
    assert!(script.contains(socket));
    let w = site(&script.replace(socket, "SOCKET=DIR/munge.sock"));
    let at = |name: &str| w.dir.join(name).to_string_lossy().into_owned();
    std::fs::write(at("munge.key"), lsf::sys::random::<64>().unwrap()).unwrap();
    std::fs::set_permissions(at("munge.key"), PermissionsExt::from_mode(0o600)).unwrap();
    let mut cmd = Command::new(munged);
    cmd.arg("-F").arg(format!("--key-file={}", at("munge.key")));
    cmd.arg(format!("--socket={}", at("munge.sock")));
    cmd.arg(format!("--pid-file={}", at("munge.pid")));
    cmd.arg(format!("--seed-file={}", at("munge.seed")));
    let child = cmd.stdin(Stdio::null()).stderr(Stdio::null()).stdout(Stdio::null()).spawn();
    let _munged = Ended(child.unwrap());
    let end = Instant::now() + Duration::from_secs(20);
    while std::os::unix::net::UnixStream::connect(at("munge.sock")).is_err() {
        assert!(Instant::now() < end, "munged does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
    let said = dial(&w);
    assert!(said.contains("uid: 0,") && said.contains("user: \"root\""), "{said}");
    let cred = |host: &str| {
        let out = Command::new(at("etc/eauth")).args(["-c", host]).output().unwrap();
        String::from_utf8(out.stdout).unwrap().trim().to_owned()
    };
    let good = cred("host1");
    assert_eq!(by_hand(&w, "host1", "daemon", 1, &good), 17, "another user's");
    assert_eq!(by_hand(&w, "host1", "root", 0, &good), 17, "used up above");
    let good = cred("host1");
    assert_eq!(by_hand(&w, "host1", "root", 0, &good), 0);
    assert_eq!(by_hand(&w, "host1", "root", 0, &good), 17, "replayed");
    assert_eq!(by_hand(&w, "host1", "root", 0, &cred("host2")), 17, "for another host");
    assert_eq!(by_hand(&w, "host1", "root", 0, &good[..good.len() - 9]), 17, "cut short");
    assert_eq!(by_hand(&w, "host1", "daemon", 0, &cred("host1")), 17, "another name");
    assert_eq!(by_hand(&w, "host1", "root", 0, "MUNGE:AwQFAAC:"), 17);
}

/// Our own eauth, as anybody may call it.
fn eauth(w: &World, arg: &str, more: &[&str]) -> Command {
    let mut cmd = Command::new(binary());
    cmd.args(["eauth", arg]).args(more).env("LSF_ENVDIR", w.dir.join("conf"));
    cmd.env_remove("LSF_LOCAL_HOST").stdin(Stdio::piped()).stdout(Stdio::piped());
    cmd.stderr(Stdio::null());
    cmd
}

fn credential(w: &World, host: &str) -> String {
    let out = eauth(w, "-c", &[host]).output().unwrap();
    assert!(out.status.success());
    String::from_utf8(out.stdout).unwrap().trim().to_owned()
}

#[test]
fn eauth_follows_the_documented_protocol() {
    if lsf::sys::euid() != 0 {
        return skipped("eauth_follows_the_documented_protocol: needs root");
    }
    let w = World::with(None, &|_| String::new());
    let mut child = eauth(&w, "-s", &[]).spawn().unwrap();
    let (mut to, mut from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let _child = Ended(child);
    let mut ask = |uid: u32, user: &str, addr: &str, data: &str, tail: &str| {
        let line = format!("{uid} 0 {user} {addr} 999 {} {data}{tail}", data.len());
        to.write_all(line.as_bytes()).unwrap();
        let mut answer = [0];
        from.read_exact(&mut answer).unwrap();
        answer[0] as char
    };
    let here = w.addr("host1").to_string();
    let good = credential(&w, "host1");
    assert_eq!(ask(1, "root", &here, &good, "\n"), '0', "it is used up by this");
    let good = credential(&w, "host1");
    assert_eq!(ask(0, "root", &here, &good, "\n"), '1');
    assert_eq!(ask(0, "root", &here, &good, "\n"), '0', "replayed");
    assert_eq!(ask(0, "root", &here, &credential(&w, "host1"), ""), '1', "no newline");
    assert_eq!(ask(0, "daemon", &here, &credential(&w, "host1"), ""), '0', "another name");
    let there = w.addr("host2").to_string();
    assert_eq!(ask(0, "root", &there, &credential(&w, "host1"), "\n"), '0', "another address");
    assert_eq!(ask(0, "root", &here, &credential(&w, "host2"), "\n"), '0', "for another host");
    let cut = credential(&w, "host1");
    assert_eq!(ask(0, "root", &here, &cut[..cut.len() - 2], "\n"), '0', "cut short");
    // Credentials that authd could take for another kind of question.
    assert_eq!(ask(0, "root", &here, "", "\n"), '0');
    assert_eq!(ask(0, "root", &here, "-c", "\n"), '0');
    assert_eq!(ask(0, "root", &here, &credential(&w, "host1"), "\n"), '1', "it goes on");
    // a host that no daemon is on
    let out = eauth(&w, "-c", &["nohost"]).stderr(Stdio::piped()).output().unwrap();
    let said = String::from_utf8(out.stderr).unwrap();
    assert_eq!((out.status.code(), said.as_str()), (Some(255), "eauth: nohost: No such host\n"));
    assert!(out.stdout.is_empty());
    assert!(w.stop());
}

#[test]
fn key_of_lsf_sudoers_reaches_authd_by_a_descriptor() {
    // The second as it passes what closes all but the first three.
    for fd in [3, 0] {
        handed_over_by(fd);
    }
}

fn handed_over_by(fd: i32) {
    let w = World::with(Some(lsf::sys::euid()), &|_| String::new());
    std::fs::remove_file(w.site.authd_socket()).unwrap();
    let key = w.dir.join("eauth.key");
    std::fs::write(&key, "secret of root\n").unwrap();
    let ring = lsf::auth::new_key().unwrap();
    let file = w.site.lsf.key_file();
    std::fs::create_dir_all(Path::new(file).parent().unwrap()).unwrap();
    std::fs::create_dir_all(w.dir.join("log")).unwrap();
    std::fs::write(file, ring).unwrap();
    std::fs::set_permissions(file, PermissionsExt::from_mode(0o600)).unwrap();
    let mut cmd = Command::new("/bin/sh");
    let script = format!("exec {fd}< \"$1\"; export LSF_EAUTH_KEY_FD={fd}; exec \"$2\" authd");
    cmd.arg("-c").arg(script);
    cmd.arg("sh").arg(&key).arg(binary()).env("LSF_ENVDIR", w.dir.join("conf"));
    cmd.env("LSF_LOCAL_HOST", "host1").stdin(Stdio::null());
    let child = Ended(cmd.spawn().unwrap());
    let end = Instant::now() + Duration::from_secs(20);
    while std::os::unix::net::UnixStream::connect(w.site.authd_socket()).is_err() {
        assert!(Instant::now() < end, "authd does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
    let text = credential(&w, "host1");
    assert!(text.starts_with("LSF1:=:"), "{text}");
    let own = MacKey::new(b"secret of root");
    let now = lsf::sys::now().secs();
    let mut judge = lsf::auth::eauth::Judge::default();
    let claims = judge.judge(&w.ring, Some(&own), &text, "host1", now).unwrap();
    assert_eq!(claims.uid, lsf::sys::euid());
    // The key is neither in the child's environment nor in any file it can be asked for.
    let environ = std::fs::read(format!("/proc/{}/environ", child.0.id())).unwrap();
    assert!(!String::from_utf8_lossy(&environ).contains("secret of root"));
    let three = std::fs::read_link(format!("/proc/{}/fd/3", child.0.id()));
    assert!(three.map_or(true, |link| link != key), "it is still open");
}

/// authd judges nothing for users: not even a user's own credential, which stays good.
#[test]
fn authd_judges_for_the_daemons_alone() {
    if !MultiUserSite::possible("authd_judges_for_the_daemons_alone") {
        return;
    }
    let site = MultiUserSite::up("judge", 1);
    let cred = site.ok("ann", "eauth -c host1").trim().to_owned();
    let envdir = site.path("conf");
    let base = lsf::conf::load::load_base_lenient(
        &lsf::sys::files::RealFiles,
        envdir.to_str().unwrap(),
        Some("host1"),
    );
    let addr = base.0.unwrap().hosts.addrs("host1")[0];
    let id = uid("ann");
    let line = format!("{id} {id} ann {addr} 999 {} {cred}", cred.len());
    let ask = |user: &str| {
        let s = site.run(user, &format!("LSF_LOCAL_HOST=host1; echo '{line}' | eauth -s"));
        (s.out, s.err)
    };
    for user in ["ann", "bob"] {
        let (out, err) = ask(user);
        assert_eq!(out, "0");
        assert!(err.contains("judges for the daemons alone"), "{err}");
    }
    assert_eq!(ask(ADMIN), ("1".to_owned(), String::new()));
    assert_eq!(ask("root").0, "0", "it is used up now");
}
