//! Datagrams to LIM from somebody who has the key and a host's address: what a wrong clock, or one
//! who speaks for that host, can make of it.

use super::rig::{Rig, wait_for};
use lsf::auth::KeyRing;
use lsf::conf::load;
use lsf::net::Identity;
use lsf::net::dgram::Seal;
use lsf::proto::lim::{HostLoad, LimMsg};
use lsf::proto::{Daemon, Msg};
use lsf::sys::files::RealFiles;
use std::net::UdpSocket;
use std::sync::Arc;

/// So far ahead is the datagram, microseconds.
const AHEAD_US: i64 = 500_000_000;

#[test]
fn one_datagram_from_the_future_does_not_silence_its_host() {
    let rig = Rig::up("future", 2);
    let envdir = rig.path("conf").to_str().unwrap().to_owned();
    let (base, diags) = load::load_base_lenient(&RealFiles, &envdir, Some("host1"));
    let base = base.unwrap_or_else(|| panic!("{diags:?}"));
    let key = std::fs::read(rig.path("conf/lsf.key")).unwrap();
    let addr = |host: &str| base.hosts.addrs(host)[0];
    let ident = Identity {
        daemon: Daemon::Lim,
        host: "host2".into(),
        addr: Some(addr("host2")),
        uid: lsf::sys::euid(),
        ring: Some(Arc::new(KeyRing::parse(&key).unwrap())),
        hosts: Arc::new(base.hosts.clone()),
        only_uid: None,
        ways: Default::default(),
    };
    let status = || {
        let said = rig.run("lsload", &["host2"]).out;
        let row = said.lines().nth(1).unwrap_or_default().to_owned();
        row.split_whitespace().nth(1).unwrap_or_default().to_owned()
    };
    wait_for("host2 to be known", || status() == "ok");
    let load = Box::new(HostLoad { host: "host2".into(), ..HostLoad::default() });
    let at = lsf::sys::now().wall_us + AHEAD_US;
    let msg = Msg::Lim(LimMsg::Beat { load });
    let bytes = Seal::default().write(&ident, "host1", &msg, at).unwrap();
    let sock = UdpSocket::bind((addr("host2"), 0)).unwrap();
    sock.send_to(&bytes, (addr("host1"), base.lsf.lim_port())).unwrap();
    let log = || rig.read("log/lim.log.host1");
    wait_for("LIM to have read it", || log().contains("of host host2"));
    // what only the beats of host2 can tell
    let mut lock = rig.cmd("lsadmin");
    lock.arg("limlock").env("LSF_LOCAL_HOST", "host2");
    assert!(lock.status().unwrap().success());
    wait_for("the true beats to be believed", || status() == "lockU");
    assert!(log().contains("the clock of host host2 is"), "{}", log());
    assert!(!log().contains("an old datagram of host host2"), "{}", log());
}
