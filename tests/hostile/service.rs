//! The service to a well-behaved peer: its identity, its listings, outgoing connections.

use super::world::{World, alone, resident, spawn};
use lsf::auth::shake::{AuthError, session_key};
use lsf::cli::client::{Client, ClientError, Patience};
use lsf::proto::client::ClientMsg;
use lsf::proto::{Daemon, Msg};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

fn row(msg: Msg) -> (String, String) {
    match msg {
        Msg::Client(ClientMsg::ParamRows { mut values }) => values.remove(0),
        other => panic!("{other:?}"),
    }
}

#[test]
fn user_of_a_unix_socket_is_identified_by_the_kernel() {
    let w = World::new();
    let mut c = w.client();
    let (_, peer) = row(c.call(&Msg::Client(ClientMsg::Params), &mut std::io::sink()).unwrap());
    let uid = lsf::sys::euid();
    assert!(peer.contains(&format!("uid: {uid},")) && peer.contains("host: \"host1\""), "{peer}");
    assert_eq!((c.local_host(), c.server()), ("host1", "host1"));
    assert!(w.stop());
}

#[test]
fn daemon_that_connects_to_another_is_identified_there() {
    let w = World::new();
    let knobs = Arc::default();
    let there = spawn(w.config(Daemon::Sbatchd, "host2"), knobs);
    let mut c = w.client();
    let hosts = |name: &str| {
        Msg::Client(ClientMsg::Hosts { names: vec![name.into()], res_req: String::new() })
    };
    let until = Instant::now() + Duration::from_secs(10);
    let got = loop {
        let got = row(c.call(&hosts("host2"), &mut std::io::sink()).unwrap());
        if got.0 == "dialled" || Instant::now() > until {
            break got;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    assert_eq!(got.0, "dialled", "{got:?}");
    assert_eq!(got.1, "Daemon { daemon: Sbatchd, host: \"host2\" }");
    let (what, why) = row(c.call(&hosts("host3"), &mut std::io::sink()).unwrap());
    assert_eq!((what.as_str(), why.as_str()), ("failed", "Connection refused"));
    let (what, why) = row(c.call(&hosts("nohost"), &mut std::io::sink()).unwrap());
    assert_eq!((what.as_str(), why.as_str()), ("failed", "host has no known address"));
    assert!(!there.is_finished());
    assert!(w.stop());
}

#[test]
fn a_listing_is_sent_as_it_is_read_and_no_faster() {
    alone("service::a_listing_is_sent_as_it_is_read_and_no_faster", || {
        let w = World::new();
        let (slices, bytes) = (400, 100_000);
        w.toy.slices.store(slices, Relaxed);
        w.toy.slice_bytes.store(bytes, Relaxed);
        let mut c = w.raw();
        // A buffer of the default size would take all output.
        rustix::net::sockopt::set_socket_recv_buffer_size(&c.sock, 65_536).unwrap();
        let before = resident();
        let ask = c.frame(&Msg::Client(ClientMsg::Jobs(Box::default())));
        c.sock.write_all(&ask).unwrap();
        // The reader is in a pager: 40 MB wait, and not in the daemon's memory.
        std::thread::sleep(Duration::from_millis(1500));
        let grown = resident().saturating_sub(before);
        assert!(grown < 4 << 20, "{grown} bytes");
        let mut got = 0;
        while let Some(Msg::Client(ClientMsg::Rows { rows, more })) = c.next() {
            assert_eq!(rows.get().len(), bytes + 6);
            got += 1;
            if !more {
                break;
            }
        }
        assert_eq!(got, slices);
        assert!(w.stop());
    });
}

#[test]
fn refused_callers_get_the_words_of_lsf() {
    let w = World::new();
    let denied = |raw: &mut super::world::RawClient, key: &lsf::proto::frame::SessionKey| {
        raw.auth(key);
        loop {
            if let Some(frame) = raw.dec.take().unwrap() {
                break lsf::auth::shake::read_ok(&mut raw.session, &frame).unwrap_err();
            }
            if raw.fill() == 0 {
                panic!("closed without a word");
            }
        }
    };
    // Another uid than the cluster's, rightly signed.
    let mut raw = w.greeted();
    raw.claims.uid += 1;
    let key = session_key(&w.ring, &raw.claims, &raw.hello.target()).unwrap();
    let e = ClientError::from(denied(&mut raw, &key));
    assert_eq!(e.words(), "User permission denied");
    // Another host than the address's, rightly signed.
    let mut raw = w.greeted();
    raw.claims.host = "host2".into();
    let key = session_key(&w.ring, &raw.claims, &raw.hello.target()).unwrap();
    let e = ClientError::from(denied(&mut raw, &key));
    assert_eq!(e.words(), "Request from non-LSF host rejected");
    // A uid forged after signing.
    let mut raw = w.greeted();
    let key = session_key(&w.ring, &raw.claims, &raw.hello.target()).unwrap();
    raw.claims.uid += 1;
    assert_eq!(denied(&mut raw, &key), AuthError::Denied { code: 17 });
    assert!(w.stop());
}

#[test]
fn a_credential_for_one_connection_is_worthless_on_another() {
    let w = World::new();
    let a = w.greeted();
    let mut b = w.greeted();
    let key = session_key(&w.ring, &a.claims, &a.hello.target()).unwrap();
    b.auth(&key);
    let frame = loop {
        if let Some(frame) = b.dec.take().unwrap() {
            break lsf::auth::shake::read_ok(&mut b.session, &frame);
        }
        assert!(b.fill() > 0);
    };
    assert_eq!(frame, Err(AuthError::Denied { code: 17 }));
    // The target is another daemon, then another host.
    for change in [
        |t: &mut lsf::auth::Target| t.daemon = Daemon::Sbatchd,
        |t: &mut lsf::auth::Target| t.host = "host2".into(),
    ] {
        let mut c = w.greeted();
        let mut target = c.hello.target();
        change(&mut target);
        let key = session_key(&w.ring, &c.claims, &target).unwrap();
        c.auth(&key);
        let got = loop {
            if let Some(frame) = c.dec.take().unwrap() {
                break lsf::auth::shake::read_ok(&mut c.session, &frame);
            }
            assert!(c.fill() > 0);
        };
        assert_eq!(got, Err(AuthError::Denied { code: 17 }));
    }
    assert!(w.stop());
}

#[test]
fn client_without_a_server_says_so_and_tries_again() {
    let mut w = World::new();
    let site = w.site.clone();
    w.site.lsf.set("LSB_MBD_PORT", "1");
    let mut said = Vec::new();
    let patience = Patience { tries: Some(2), ..Patience::of(&w.site) };
    let e = lsf::cli::client::mbatchd_with(&w.site, patience, &mut said).map(|_| ()).unwrap_err();
    assert_eq!(String::from_utf8_lossy(&said), "LSF is down. Please wait ...\n".repeat(2));
    assert_eq!(e.words(), "Connection refused by server");
    // The client tells this error without authd, too.
    w.site = site.clone();
    w.site.lsf.set("LSF_RUNDIR", "/nonexistent");
    let got = Client::dial(&w.site, Daemon::Mbatchd, patience).map(|_| ()).unwrap_err();
    assert!(matches!(got, ClientError::Down(_)), "{got:?}");
    w.site = site;
    assert!(w.stop());
}
