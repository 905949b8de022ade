//! A local user who wants the port of a daemon: whoever has it while the daemon is away stops the
//! service, or speaks in its place.

use super::rig::{Rig, kill, wait_for};
use lsf::sys::files::RealFiles;
use rustix::net::{AddressFamily, SocketType, bind, listen, socket, sockopt};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Tries to have a port as another user can: SO_REUSEPORT shares it among sockets of one user.
fn take(at: SocketAddr, kind: SocketType) -> bool {
    let fd = socket(AddressFamily::INET, kind, None).unwrap();
    sockopt::set_socket_reuseaddr(&fd, true).unwrap();
    let stream = kind == SocketType::STREAM;
    bind(&fd, &at).and_then(|()| if stream { listen(&fd, 1) } else { Ok(()) }).is_ok()
}

fn of_cluster(rig: &Rig) -> lsf::conf::BaseConf {
    let envdir = rig.path("conf").to_str().unwrap().to_owned();
    let (base, diags) = lsf::conf::load::load_base_lenient(&RealFiles, &envdir, Some("host1"));
    base.unwrap_or_else(|| panic!("{diags:?}"))
}

#[test]
fn port_of_a_restarting_daemon_stays_taken() {
    let rig = Rig::up("ports", 1);
    let base = of_cluster(&rig);
    let addr = base.hosts.addrs("host1")[0];
    let (over, taken) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let lsf = &base.lsf;
    let ports = [lsf.mbd_port(), lsf.sbd_port(), lsf.res_port(), lsf.lim_port()];
    let streams = ports.map(|port| (port, SocketType::STREAM));
    let all = streams.into_iter().chain([(lsf.lim_port(), SocketType::DGRAM)]);
    let thieves = all.map(|(port, kind)| {
        let (over, taken) = (over.clone(), taken.clone());
        std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                if take(SocketAddr::new(addr, port), kind) {
                    taken.fetch_add(1, Ordering::Relaxed);
                }
                std::thread::yield_now();
            }
        })
    });
    let thieves: Vec<_> = thieves.collect();
    let launcher = rig.pid("launcher", "host1").unwrap();
    for round in 0..3 {
        for daemon in ["mbatchd", "sbatchd", "res", "lim"] {
            let old = rig.pid(daemon, "host1");
            assert!(rig.kill9(daemon, "host1"), "{daemon}, round {round}");
            wait_for("another one", || rig.pid(daemon, "host1").is_some_and(|p| Some(p) != old));
        }
        rig.ready();
        // a launcher that replaces itself keeps them
        let log = || rig.read("log/launcher.log.host1").matches("replaced by").count();
        let before = log();
        kill(launcher, 12);
        wait_for("the launcher to be replaced", || log() > before);
    }
    assert_eq!(rig.end_of(rig.bsub(&["-o", "/dev/null", "true"])), "DONE");
    // where a daemon is not to run, nobody is kept waiting: callers are refused
    rig.ok("lsf_daemons", &["stop", "mbatchd"]);
    let call = TcpStream::connect(SocketAddr::new(addr, ports[0]));
    assert_eq!(call.unwrap_err().kind(), std::io::ErrorKind::ConnectionRefused);
    rig.ok("lsf_daemons", &["stop", "lim"]);
    let caller = UdpSocket::bind((addr, 0)).unwrap();
    caller.connect((addr, ports[3])).unwrap();
    wait_for("the datagrams to be refused", || {
        let _ = caller.send(b"x");
        caller.set_nonblocking(true).unwrap();
        let refused = std::io::ErrorKind::ConnectionRefused;
        caller.recv(&mut [0]).is_err_and(|e| e.kind() == refused)
    });
    over.store(true, Ordering::Relaxed);
    thieves.into_iter().for_each(|thief| thief.join().unwrap());
    assert_eq!(taken.load(Ordering::Relaxed), 0);
}

/// A host that may take over keeps the port of mbatchd before mbatchd ever ran there.
#[test]
fn port_of_the_next_master_stays_taken() {
    let rig = Rig::up("next", 2);
    let base = of_cluster(&rig);
    assert!(rig.pid("mbatchd", "host2").is_none());
    let mbd = base.lsf.mbd_port();
    let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    for addr in [base.hosts.addrs("host2")[0], any] {
        assert!(!take(SocketAddr::new(addr, mbd), SocketType::STREAM), "{addr}");
    }
    for daemon in ["launcher", "sbatchd", "mbatchd", "res", "authd", "lim"] {
        assert!(rig.kill9(daemon, "host1"), "{daemon}");
    }
    wait_for("the next master", || rig.pid("mbatchd", "host2").is_some());
    let call = || TcpStream::connect(SocketAddr::new(base.hosts.addrs("host2")[0], mbd)).is_ok();
    wait_for("its mbatchd to serve", call);
}
