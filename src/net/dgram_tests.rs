//! Datagrams: what is believed, and everything that must not be.

use super::*;
use crate::auth::KeyRing;
use crate::auth::testing::TwoHosts;
use crate::proto::Daemon;
use std::sync::Arc;

const K: &str = "102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f2a";

fn ident(host: &str, first: char) -> Identity {
    let ring = KeyRing::parse(format!("k1 {first}{K}").as_bytes()).unwrap();
    Identity {
        daemon: Daemon::Lim,
        host: host.into(),
        addr: None,
        uid: 0,
        ring: Some(Arc::new(ring)),
        hosts: Arc::new(TwoHosts),
        only_uid: None,
        ways: Default::default(),
    }
}

const NOW: i64 = 1_700_000_000_000_000;

fn beat(seal: &mut Seal, to: &str, at: i64) -> Vec<u8> {
    seal.write(&ident("hosta", '0'), to, &Msg::Ping { n: 1 }, at).unwrap()
}

fn take(seal: &mut Seal, bytes: &[u8], from: &str) -> Result<String, String> {
    seal.read(&ident("hostb", '0'), bytes, from.parse().unwrap(), NOW).map(|(host, _)| host)
}

#[test]
fn a_datagram_is_believed_once() {
    let (mut a, mut b) = (Seal::default(), Seal::default());
    let first = beat(&mut a, "hostb", NOW);
    let second = beat(&mut a, "hostb", NOW);
    assert_eq!(take(&mut b, &first, "127.0.0.2"), Ok("hosta".into()));
    assert_eq!(take(&mut b, &second, "127.0.0.2"), Ok("hosta".into()));
    for old in [&first, &second] {
        assert!(take(&mut b, old, "127.0.0.2").unwrap_err().contains("replayed"));
    }
}

#[test]
fn a_receiver_that_restarts_takes_nothing_from_long_ago() {
    let mut a = Seal::default();
    let old = beat(&mut a, "hostb", NOW - DATAGRAM_WINDOW_US - 1_000_000);
    let ahead = beat(&mut a, "hostb", NOW + CLOCK_AHEAD_US + 1_000_000);
    for bytes in [old, ahead] {
        let e = take(&mut Seal::default(), &bytes, "127.0.0.2").unwrap_err();
        assert!(e.starts_with("the clock of host hosta is"), "{e}");
    }
}

#[test]
fn a_datagram_far_ahead_is_not_taken_and_one_ahead_gives_way_to_a_later_start() {
    let (mut a, mut b) = (Seal::default(), Seal::default());
    let now = beat(&mut a, "hostb", NOW);
    let far = beat(&mut Seal::default(), "hostb", NOW + 500_000_000);
    assert_eq!(
        take(&mut b, &far, "127.0.0.2").unwrap_err(),
        "the clock of host hosta is 500 s from ours"
    );
    assert_eq!(take(&mut b, &now, "127.0.0.2"), Ok("hosta".into()));
    // as far as clocks may differ it counts
    let ahead = beat(&mut a, "hostb", NOW + CLOCK_AHEAD_US);
    assert_eq!(take(&mut b, &ahead, "127.0.0.2"), Ok("hosta".into()));
    // a clock set back by less goes on where it was, as long as its sender lives
    let on = beat(&mut a, "hostb", NOW + 1_000);
    assert!(take(&mut b, &on, "127.0.0.2").is_err(), "a microsecond too far ahead");
    let later = |b: &mut Seal, bytes: &[u8], s: i64| {
        let (host, at) = (ident("hostb", '0'), NOW + s * 1_000_000);
        b.read(&host, bytes, "127.0.0.2".parse().unwrap(), at).map(|(host, _)| host)
    };
    assert_eq!(later(&mut b, &on, 1), Ok("hosta".into()));
    // one that starts after the first datagram did, at the right time: what was ahead is forgotten
    let mut again = Seal::default();
    let restarted = beat(&mut again, "hostb", NOW + 2_000_000);
    assert_eq!(later(&mut b, &restarted, 2), Ok("hosta".into()));
    let old = [&now, &ahead, &on, &restarted];
    assert!(old.iter().all(|bytes| later(&mut b, bytes, 3).unwrap_err().contains("replayed")));
}

#[test]
fn a_clock_that_is_set_back_far_begins_anew() {
    let (mut a, mut b) = (Seal::default(), Seal::default());
    assert_eq!(
        take(&mut b, &beat(&mut a, "hostb", NOW - 9_000_000), "127.0.0.2"),
        Ok("hosta".into())
    );
    // the sender's clock jumps ahead, and is set right after a while
    let jumped = beat(&mut a, "hostb", NOW + 3_600_000_000);
    assert!(take(&mut b, &jumped, "127.0.0.2").unwrap_err().contains("3600 s from ours"));
    assert_eq!(take(&mut b, &beat(&mut a, "hostb", NOW), "127.0.0.2"), Ok("hosta".into()));
}

#[test]
fn hosts_whose_clocks_are_set_back_and_forward_hear_each_other() {
    const S: i64 = 1_000_000;
    let at = |b: &mut Seal, bytes: &[u8], time: i64| {
        let found = b.read(&ident("hostb", '0'), bytes, "127.0.0.2".parse().unwrap(), time);
        found.map(|(host, _)| host)
    };
    let ok = || Ok("hosta".to_string());
    // both, by an hour, soon after the sender has begun
    let (mut a, mut b) = (Seal::default(), Seal::default());
    let mut sent = Vec::new();
    for time in [NOW, NOW + 5 * S, NOW - 3590 * S, NOW - 3585 * S, NOW + 20 * S, NOW + 25 * S] {
        let bytes = beat(&mut a, "hostb", time);
        assert_eq!(at(&mut b, &bytes, time), ok(), "{time}");
        // nothing is taken twice meanwhile
        sent.push(bytes);
        for old in &sent {
            assert!(at(&mut b, old, time).is_err());
        }
    }
    // a sender that begins anew while they are back
    let (mut a, mut b) = (Seal::default(), Seal::default());
    let first = beat(&mut a, "hostb", NOW);
    assert_eq!(at(&mut b, &first, NOW), ok());
    let mut again = Seal::default();
    for time in [NOW - 3590 * S, NOW - 3585 * S, NOW + 20 * S, NOW + 25 * S] {
        assert_eq!(at(&mut b, &beat(&mut again, "hostb", time), time), ok(), "{time}");
    }
    assert!(at(&mut b, &first, NOW + 25 * S).is_err());
    // the sender alone: it is heard again when its clock is right, a minute later at most
    let (mut a, mut b) = (Seal::default(), Seal::default());
    assert_eq!(at(&mut b, &beat(&mut a, "hostb", NOW), NOW), ok());
    let wrong = beat(&mut a, "hostb", NOW - 3590 * S);
    assert!(at(&mut b, &wrong, NOW + 10 * S).unwrap_err().contains("from ours"));
    let times = [70 * S, 75 * S].map(|later| NOW + later);
    for time in times {
        assert_eq!(at(&mut b, &beat(&mut a, "hostb", time), time), ok(), "{time}");
    }
}

#[test]
fn a_datagram_of_an_older_sender_has_no_start_and_is_taken_by_its_number() {
    #[derive(serde::Serialize)]
    struct Old<'a> {
        key: &'a str,
        from: &'a str,
        to: &'a str,
        msg: &'a Msg,
    }
    let (mut b, host) = (Seal::default(), ident("hosta", '0'));
    let key = b.key(&host, "k1").unwrap();
    let old = |seq: i64| {
        let (kind, seq) = (Kind::Datagram, seq as u64);
        let head = FrameHead { version: PROTO_LOW, kind, seq, cap: MAX_DATAGRAM };
        let body = Old { key: "k1", from: "hosta", to: "hostb", msg: &Msg::Ping { n: 1 } };
        let mut out = Vec::new();
        write_frame(&mut out, head, Some((&key, Direction::Datagram)), &body).unwrap();
        out
    };
    let [first, second] = [old(NOW), old(NOW + 5)];
    assert_eq!(take(&mut b, &first, "127.0.0.2"), Ok("hosta".into()));
    // it is upgraded, and back again
    assert_eq!(
        take(&mut b, &beat(&mut Seal::default(), "hostb", NOW + 2), "127.0.0.2"),
        Ok("hosta".into())
    );
    assert_eq!(take(&mut b, &second, "127.0.0.2"), Ok("hosta".into()));
    assert!(take(&mut b, &first, "127.0.0.2").unwrap_err().contains("replayed"));
}

#[test]
fn other_receivers_senders_keys_and_bytes_are_refused() {
    let (mut a, mut b) = (Seal::default(), Seal::default());
    let other = beat(&mut a, "hostc", NOW);
    assert!(take(&mut b, &other, "127.0.0.2").unwrap_err().contains("meant for host hostc"));
    let good = beat(&mut a, "hostb", NOW + 1);
    for from in ["127.0.0.3", "127.0.0.9"] {
        assert!(take(&mut b, &good, from).unwrap_err().contains("not an address of host hosta"));
    }
    for at in 0..good.len() {
        let mut m = good.clone();
        m[at] ^= 1;
        assert!(take(&mut b, &m, "127.0.0.2").is_err(), "byte {at}");
    }
    for cut in 0..good.len() {
        assert!(take(&mut b, &good[..cut], "127.0.0.2").is_err(), "cut {cut}");
    }
    let foreign = ident("hosta", '9');
    let bytes = Seal::default().write(&foreign, "hostb", &Msg::Ping { n: 1 }, NOW + 2).unwrap();
    assert_eq!(take(&mut b, &bytes, "127.0.0.2"), Err("frame is wrongly signed".into()));
    assert_eq!(take(&mut b, &good, "127.0.0.2"), Ok("hosta".into()), "none of it was counted");
}

#[test]
fn a_receiver_of_the_lowest_version_reads_them() {
    let bytes = beat(&mut Seal::default(), "hostb", NOW);
    assert_eq!(Raw::whole(&bytes, MAX_DATAGRAM).unwrap().version, PROTO_LOW);
}

#[test]
fn a_stranger_may_ask_to_be_let_in_and_nothing_else() {
    let mut b = Seal::default();
    let join = |host: &str, first: char, addr: &str| {
        let (cluster, resources) = ("c".to_owned(), String::new());
        let msg = Msg::Lim(LimMsg::Join { cluster, addr: addr.into(), resources });
        Seal::default().write(&ident(host, first), "hostb", &msg, NOW).unwrap()
    };
    // where it is from, the packet says, not the message
    let bytes = join("new", '0', "127.0.0.99");
    let (from, msg) =
        b.read(&ident("hostb", '0'), &bytes, "127.0.0.9".parse().unwrap(), NOW).unwrap();
    let Msg::Lim(LimMsg::Join { addr, .. }) = msg else { panic!() };
    assert_eq!((from.as_str(), addr.as_str()), ("new", "127.0.0.9"));
    // not without the key, nor from the address of another host
    let e = take(&mut b, &join("new2", '5', ""), "127.0.0.9").unwrap_err();
    assert!(e.contains("wrongly signed"), "{e}");
    let e = take(&mut b, &join("new3", '0', ""), "127.0.0.2").unwrap_err();
    assert_eq!(e, "127.0.0.2 is not an address of host new3");
    // and no other word of it is heard
    let msg = Msg::Lim(LimMsg::WhoIsMaster);
    let bytes = Seal::default().write(&ident("new4", '0'), "hostb", &msg, NOW).unwrap();
    let e = take(&mut b, &bytes, "127.0.0.9").unwrap_err();
    assert_eq!(e, "127.0.0.9 is not an address of host new4");
}

#[test]
fn a_stranger_has_no_long_name_and_is_forgotten_among_many() {
    let (mut a, mut b) = (Seal::default(), Seal::default());
    let mut ask = |b: &mut Seal, name: &str| {
        let (cluster, addr, resources) = Default::default();
        let msg = Msg::Lim(LimMsg::Join { cluster, addr, resources });
        let bytes = a.write(&ident(name, '0'), "hostb", &msg, NOW).unwrap();
        take(b, &bytes, "127.9.9.9")
    };
    let long = "x".repeat(MAX_HOST_NAME);
    assert_eq!(ask(&mut b, &long), Ok(long.clone()));
    assert!(ask(&mut b, &(long + "x")).unwrap_err().contains("256 bytes"));
    for n in 0..3 * MAX_STRANGERS {
        assert!(ask(&mut b, &format!("s{n}")).is_ok());
        assert!(b.strangers.len() <= MAX_STRANGERS);
    }
    assert!(b.last_taken.is_empty());
}

#[test]
fn reading_ends_when_its_time_is_over_and_goes_on_in_the_next_turn() {
    let bind = || std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let (from, to) = (bind(), bind());
    for n in 0..5 {
        from.send_to(&[n], to.local_addr().unwrap()).unwrap();
    }
    to.set_nonblocking(true).unwrap();
    let sock = UdpSocket::from_std(to);
    let (mut buf, mut got) = ([0; 9], Vec::new());
    // none is left unread for ever where one alone takes longer
    assert!(drain(&sock, &mut buf, || true, |b, _| got.push(b[0])));
    assert_eq!(got, [0]);
    assert!(!drain(&sock, &mut buf, || false, |b, _| got.push(b[0])));
    assert_eq!(got, [0, 1, 2, 3, 4]);
}
