//! Datagrams to LIM from somebody who has the key and a host's address: what a wrong clock, or one
//! who speaks for that host, can make of it, and datagrams at their cap.

use super::messages::Target;
use super::rig::{Rig, wait_for};
use super::script::site;
use lsf::auth::KeyRing;
use lsf::cli::client::{self, Client};
use lsf::conf::load;
use lsf::net::Identity;
use lsf::net::dgram::Seal;
use lsf::proto::frame::MAX_DATAGRAM;
use lsf::proto::lim::{HostFacts, HostLoad, LimMsg};
use lsf::proto::{Daemon, Msg};
use lsf::sys::files::RealFiles;
use std::net::{IpAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

/// The time by which the datagram's clock is ahead, microseconds.
const AHEAD_US: i64 = 500_000_000;

/// The place of mem in a load vector, and a value that no host measures.
const MEM: usize = 10;
const BELIEVED: f32 = 4242.0;

/// One who has the key and speaks as a host, or as a stranger, from an address.
struct Sender {
    seal: Seal,
    ident: Identity,
    sock: UdpSocket,
    to: (IpAddr, u16),
}

impl Sender {
    fn new(rig: &Rig, host: &str, addr: IpAddr) -> Sender {
        let site = site(rig, "host1");
        let (base, diags) = load::load_base_lenient(&RealFiles, &site.envdir, Some("host1"));
        let base = base.unwrap_or_else(|| panic!("{diags:?}"));
        let key = std::fs::read(rig.path("conf/lsf.key")).unwrap();
        let port = base.lsf.lim_port();
        // a stranger hears at the port where its LIM would
        let sock = UdpSocket::bind((addr, port)).or_else(|_| UdpSocket::bind((addr, 0))).unwrap();
        sock.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let ident = Identity {
            daemon: Daemon::Lim,
            host: host.into(),
            addr: Some(addr),
            uid: lsf::sys::euid(),
            ring: Some(Arc::new(KeyRing::parse(&key).unwrap())),
            hosts: Arc::new(base.hosts.clone()),
            only_uid: None,
            ways: Default::default(),
        };
        Sender { seal: Seal::default(), ident, sock, to: (base.hosts.addrs("host1")[0], port) }
    }

    fn of_host2(rig: &Rig) -> Sender {
        let envdir = rig.path("conf").to_str().unwrap().to_owned();
        let (base, diags) = load::load_base_lenient(&RealFiles, &envdir, Some("host2"));
        let base = base.unwrap_or_else(|| panic!("{diags:?}"));
        Sender::new(rig, "host2", base.hosts.addrs("host2")[0])
    }

    fn send(&mut self, msg: LimMsg) {
        self.send_at(lsf::sys::now().wall_us, msg);
    }

    fn send_at(&mut self, wall: i64, msg: LimMsg) {
        let bytes = self.seal.write(&self.ident, "host1", &Msg::Lim(msg), wall).unwrap();
        self.sock.send_to(&bytes, self.to).unwrap();
    }
}

fn cluster_of(rig: &Rig) -> String {
    let said = rig.ok("lsid", &[]);
    let name = said.lines().find_map(|l| l.strip_prefix("My cluster name is ")).unwrap();
    name.trim().to_owned()
}

/// The largest message of a kind that a datagram holds: `n` of its pieces, found by trial.
fn largest(of: impl Fn(usize) -> LimMsg) -> LimMsg {
    let fits =
        |n: &usize| serde_json::to_vec(&Msg::Lim(of(*n))).unwrap().len() < MAX_DATAGRAM - 512;
    let (mut least, mut most) = (0, MAX_DATAGRAM);
    while least + 1 < most {
        let middle = (least + most) / 2;
        if fits(&middle) { least = middle } else { most = middle }
    }
    of(least)
}

#[test]
fn one_datagram_from_the_future_does_not_silence_its_host() {
    let rig = Rig::up("future", 2);
    let mut sender = Sender::of_host2(&rig);
    let status = || {
        let said = rig.run("lsload", &["host2"]).out;
        let row = said.lines().nth(1).unwrap_or_default().to_owned();
        row.split_whitespace().nth(1).unwrap_or_default().to_owned()
    };
    wait_for("host2 to be known", || status() == "ok");
    let load = Box::new(HostLoad { host: "host2".into(), ..HostLoad::default() });
    sender.send_at(lsf::sys::now().wall_us + AHEAD_US, LimMsg::Beat { load });
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

/// The load that LIM shows of host2.
fn shown(client: &mut Client) -> Vec<HostLoad> {
    let msg = Msg::Lim(LimMsg::Hosts { hosts: vec!["host2".into()] });
    match client.call(&msg, &mut std::io::sink()) {
        Ok(Msg::Lim(LimMsg::Loads { hosts })) => hosts,
        other => panic!("{other:?}"),
    }
}

#[test]
fn lim_takes_each_datagram_at_its_cap() {
    let rig = Rig::up("limdgrams", 2);
    let mut sender = Sender::of_host2(&rig);
    let lim = Target::of(&rig, "lim");
    wait_for("the cluster", || rig.run("lsload", &["host2"]).out.contains(" ok "));
    let mut client = client::lim(&site(&rig, "host1")).unwrap();
    let pair = |n: usize| (format!("x{n}"), "1".to_string());
    let beat = |of: &dyn Fn(usize, &mut HostLoad)| {
        largest(|n| {
            let mut load = HostLoad { host: "host2".into(), ..HostLoad::default() };
            load.index[MEM] = BELIEVED;
            of(n, &mut load);
            LimMsg::Beat { load: Box::new(load) }
        })
    };
    let facts = |f: HostFacts| Some(f);
    let cluster = cluster_of(&rig);
    for (what, msg) in [
        ("Beat: external", beat(&|n, load| load.external = (0..n).map(pair).collect())),
        ("Beat: copies", beat(&|n, load| load.copies = (0..n).map(pair).collect())),
        (
            "Beat: model",
            beat(&|n, load| {
                load.facts = facts(HostFacts { model: "m".repeat(n), ..HostFacts::default() });
            }),
        ),
        (
            "Beat: shared",
            beat(&|n, load| {
                load.facts =
                    facts(HostFacts { shared: (0..n).map(pair).collect(), ..<_>::default() });
            }),
        ),
        (
            "Beat: thresholds",
            beat(&|n, load| {
                let thresholds = vec![Some(0.0); n];
                load.facts = facts(HostFacts { thresholds, ..HostFacts::default() });
            }),
        ),
        (
            "Announce",
            largest(|n| LimMsg::Announce {
                cluster: cluster.clone(),
                want: true,
                report: (0..n).map(|n| format!("x{n}")).collect(),
                undecided: false,
            }),
        ),
        ("NotJoined", largest(|n| LimMsg::NotJoined { why: "y".repeat(n) })),
    ] {
        lim.measured(what, || {
            sender.send(msg);
            // the datagram has been read before the second is: connections come first in a turn
            for _ in 0..2 {
                client.call(&Msg::Lim(LimMsg::Config), &mut std::io::sink()).unwrap();
            }
        });
        if what.starts_with("Beat") {
            assert_eq!(shown(&mut client)[0].index[MEM], BELIEVED, "{what}");
        }
    }
}

/// Very many that ask to be let in, each by another name of the greatest length.
#[test]
fn hosts_that_ask_to_join_in_vain_are_forgotten() {
    let rig = Rig::up("strangers", 1);
    let lim = Target::of(&rig, "lim");
    wait_for("the master LIM", || rig.run("lsload", &["host1"]).out.contains(" ok "));
    let mut sender = Sender::new(&rig, "", "127.99.0.1".parse().unwrap());
    let cluster = cluster_of(&rig);
    let mut ask = |host: String| {
        let answered = host.len() <= 255;
        sender.ident.host = host;
        let (addr, resources) = (String::new(), String::new());
        sender.send(LimMsg::Join { cluster: cluster.clone(), addr, resources });
        if answered {
            let mut answer = vec![0; MAX_DATAGRAM];
            sender.sock.recv(&mut answer).expect("no answer");
        }
    };
    lim.grows("Join of very many", || {
        for n in 0..2000 {
            ask(format!("{n:x<50000}"));
            ask(format!("{n:x<255}"));
        }
    });
    let log = rig.read("log/lim.log.host1");
    assert!(log.len() < 4 << 20, "{} bytes of log", log.len());
}
