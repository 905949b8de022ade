//! eauth's credential, and the child that a site brings.

use super::*;
use std::path::PathBuf;

const K1: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const K2: &str = "aa0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const NOW: i64 = 1_700_000_000;

fn ring(text: &str) -> KeyRing {
    KeyRing::parse(text.as_bytes()).unwrap()
}

fn ann() -> Claims {
    let (user, host, key) = ("ann".into(), "hosta".into(), String::new());
    Claims { key, who: Who::User, uid: 1000, gid: 100, user, host }
}

#[test]
fn a_credential_is_good_once_for_one_host_and_a_while() {
    let r = ring(&format!("k1 {K1}"));
    let mut judge = Judge::default();
    let text = make(&r, None, &ann(), "hostb", NOW, &[7; 32]).unwrap();
    assert!(text.starts_with("LSF1:k1:1000:100:ann:hosta:hostb:1700000000:0707"), "{text}");
    let mut ask = |text: &str, host: &str, now: i64| judge.judge(&r, None, text, host, now);
    assert_eq!(ask(&text, "hostc", NOW), Err("made for host hostb".into()));
    assert_eq!(ask(&text, "hostb", NOW + LIFE + 1), Err("made 301 s ago".into()));
    assert_eq!(ask(&text, "hostb", NOW - LIFE - 1), Err("made -301 s ago".into()));
    for at in 0..text.len() {
        let mut other = text.clone().into_bytes();
        other[at] ^= 1;
        let other = String::from_utf8_lossy(&other).into_owned();
        assert!(ask(&other, "hostb", NOW).is_err(), "byte {at}");
        assert!(ask(&text[..at], "hostb", NOW).is_err(), "cut at {at}");
    }
    // made out to another host by whoever read it
    let to_another = text.replace(":hostb:", ":hostc:");
    assert_eq!(ask(&to_another, "hostc", NOW), Err("wrongly signed".into()));
    assert_eq!(ask(&format!("{text}\n"), "hostb", NOW + LIFE), Ok(ann()));
    assert_eq!(ask(&text, "hostb", NOW), Err("used before".into()));
    assert_eq!(ask("", "hostb", NOW), Err("not a credential of eauth".into()));
}

#[test]
fn more_than_can_be_remembered_are_refused() {
    let r = ring(&format!("k1 {K1}"));
    let used = |n: u32| {
        let mut nonce = [0; 32];
        nonce[..4].copy_from_slice(&n.to_be_bytes());
        (NOW, nonce)
    };
    let mut judge = Judge { seen: (0..MAX_SEEN as u32).map(used).collect() };
    let text = make(&r, None, &ann(), "hostb", NOW, &[7; 32]).unwrap();
    let got = judge.judge(&r, None, &text, "hostb", NOW);
    assert_eq!(got, Err("too many credentials at once".into()));
    let later = NOW + LIFE + 1;
    let text = make(&r, None, &ann(), "hostb", later, &[7; 32]).unwrap();
    assert_eq!(judge.judge(&r, None, &text, "hostb", later), Ok(ann()));
    assert_eq!(judge.seen.len(), 1);
}

#[test]
fn the_key_of_lsf_sudoers_stands_above_the_cluster_s() {
    let (r, foreign) = (ring(&format!("k1 {K1}")), ring(&format!("k1 {K2}")));
    let own = MacKey::new(b"secret of root");
    let mut judge = Judge::default();
    let by_ring = make(&r, None, &ann(), "hostb", NOW, &[1; 32]).unwrap();
    let by_own = make(&r, Some(&own), &ann(), "hostb", NOW, &[2; 32]).unwrap();
    let mut ask = |r, own, text: &str| judge.judge(r, own, text, "hostb", NOW).map(|c| c.uid);
    assert_eq!(ask(&r, Some(&own), &by_ring), Err("signed with an unknown key".into()));
    assert_eq!(ask(&r, None, &by_own), Err("signed with an unknown key".into()));
    let other = MacKey::new(b"another secret");
    assert_eq!(ask(&r, Some(&other), &by_own), Err("wrongly signed".into()));
    assert_eq!(ask(&foreign, None, &by_ring), Err("wrongly signed".into()));
    assert_eq!((ask(&r, Some(&own), &by_own), ask(&r, None, &by_ring)), (Ok(1000), Ok(1000)));
}

#[test]
fn names_that_would_shift_the_fields_are_not_signed() {
    let r = ring(&format!("k1 {K1}"));
    for bad in ["a:b", "", "a b", "a\nb"] {
        let claims = Claims { user: bad.into(), ..ann() };
        assert!(make(&r, None, &claims, "hostb", NOW, &[1; 32]).is_err(), "{bad:?}");
        assert!(make(&r, None, &ann(), bad, NOW, &[1; 32]).is_err(), "{bad:?}");
    }
}

/// A directory with an `eauth` of this text.
fn site(name: &str, script: &str) -> (PathBuf, Server) {
    let dir = std::env::temp_dir().join(format!("lsf-eauth-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let eauth = dir.join("eauth");
    let log = dir.join("log");
    crate::sys::testing::program(
        &eauth,
        &format!("#!/bin/sh\nL={}\n{script}", log.display()),
        0o755,
    );
    let dirs = ["/env".to_string(), dir.to_string_lossy().into_owned()];
    let mut ways = Ways::default();
    (ways.eauth, ways.dirs) = (eauth, dirs);
    (dir, Server::new(ways, "mbatchd@c1".into()))
}

fn ask(server: &mut Server, data: &str, wait: Duration) -> Result<bool, String> {
    ask_with(server, data, b"", wait).map(|(yes, _)| yes)
}

fn ask_with(
    server: &mut Server,
    data: &str,
    aux: &[u8],
    wait: Duration,
) -> Result<(bool, String), String> {
    let (claims, addr) = (ann(), "127.0.0.2:999".parse().unwrap());
    let question = Question { claims: &claims, addr, data: data.as_bytes(), aux };
    server.ask(&question, Instant::now() + wait)
}

const LONG: Duration = Duration::from_secs(20);

#[test]
fn a_site_s_eauth_is_kept_and_asked_in_the_documented_way() {
    let script = "echo \"$LSF_EAUTH_CLIENT $LSF_EAUTH_SERVER $LSF_ENVDIR $1 ${HOME-unset}\" >> $L\n\
                  while read -r line; do echo \"$line\" >> $L\n\
                  case $line in *good*) echo 1;; *) printf 0;; esac; done\n";
    let (dir, mut server) = site("kept", script);
    assert_eq!(ask(&mut server, "good", LONG), Ok(true));
    assert_eq!(ask(&mut server, "bad", LONG), Ok(false));
    assert_eq!(ask(&mut server, "good too", LONG), Ok(true));
    let log = std::fs::read_to_string(dir.join("log")).unwrap();
    assert_eq!(
        log,
        "user mbatchd@c1 /env -s unset\n1000 100 ann 127.0.0.2 999 4 good\n\
         1000 100 ann 127.0.0.2 999 3 bad\n1000 100 ann 127.0.0.2 999 8 good too\n"
    );
    // A second line would be a second question, whose answer went to the next caller.
    let two = "x\n5 5 root 127.0.0.2 999 4 good";
    assert_eq!(ask(&mut server, two, LONG), Err("empty or with control characters".into()));
    assert!(ask(&mut server, "", LONG).is_err());
    assert_eq!(ask(&mut server, "bad", LONG), Ok(false));
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn eauth_that_dies_is_started_again_and_one_that_hangs_is_given_up() {
    let script = "echo start >> $L\nread -r line; case $line in *hang*) exec sleep 60;; esac\n\
                  echo 1\n";
    let (dir, mut server) = site("dies", script);
    for _ in 0..3 {
        assert_eq!(ask(&mut server, "x", LONG), Ok(true));
        std::thread::sleep(Duration::from_millis(50));
    }
    let at = Instant::now();
    let why = ask(&mut server, "hang", Duration::from_millis(300)).unwrap_err();
    assert!(why.contains("no answer within"), "{why}");
    assert!(at.elapsed() < Duration::from_secs(5));
    assert_eq!(ask(&mut server, "x", LONG), Ok(true));
    let starts = std::fs::read_to_string(dir.join("log")).unwrap();
    assert!(starts.lines().count() >= 5, "{starts}");
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn malformed_answer_of_eauth_admits_nobody() {
    for script in [
        "while read -r line; do echo yes; done",
        "exit 1",
        "while read -r line; do echo 0; done",
        "exec /nonexistent",
    ] {
        let (dir, mut server) = site("odd", script);
        assert_ne!(ask(&mut server, "x", LONG), Ok(true), "{script}");
        std::fs::remove_dir_all(&dir).unwrap();
    }
    // Two answers to one question: the second one is nobody's.
    let (dir, mut server) = site("two", "while read -r line; do printf 11; sleep 0.1; done\n");
    assert_eq!(ask(&mut server, "x", LONG), Ok(true));
    std::thread::sleep(Duration::from_millis(20));
    let before = server.running.as_ref().unwrap().child.as_ref().unwrap().pid();
    assert_eq!(ask(&mut server, "x", LONG), Ok(true));
    assert_ne!(
        server.running.as_ref().unwrap().child.as_ref().unwrap().pid(),
        before,
        "a fresh one answered"
    );
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn auxiliary_files_exist_during_a_question_alone() {
    let script = "D=$LSF_EAUTH_AUX_DATA S=$LSF_EAUTH_AUX_STATUS\n\
                  echo \"$LSF_EAUTH_AUX_PASS $(stat -c %a $D $S \"${D%/*}\" | xargs) $D\" >> $L\n\
                  while read -r line; do case $(cat $D) in\n\
                  token) printf 'fine\\033' > $S; echo 1;;\n\
                  '') echo 'no token' > $S; echo 0;; die) exit 1;; *) echo 0;; esac; done\n";
    let (dir, mut server) = site("beside", script);
    let said = |yes: bool, words: &str| Ok((yes, words.to_string()));
    assert_eq!(ask_with(&mut server, "x", b"token", LONG), said(true, "fine?"));
    let log = || std::fs::read_to_string(dir.join("log")).unwrap();
    let data = PathBuf::from(log().trim().strip_prefix("yes 600 600 700 ").unwrap());
    assert_eq!(std::fs::read(&data).unwrap(), b"", "emptied after the answer");
    assert_eq!(ask_with(&mut server, "x", b"", LONG), said(false, "no token"));
    assert_eq!(ask_with(&mut server, "x", b"other", LONG), said(false, ""), "words of another");
    assert_eq!(ask_with(&mut server, "x", b"token", LONG), said(true, "fine?"));
    assert_eq!(log().lines().count(), 1, "one process answered all");
    // The directory of an eauth that dies is removed.
    assert!(ask_with(&mut server, "x", b"die", LONG).is_err());
    assert!(!data.parent().unwrap().exists());
    assert_eq!(ask_with(&mut server, "x", b"token", LONG), said(true, "fine?"));
    std::fs::remove_dir_all(&dir).unwrap();
}
