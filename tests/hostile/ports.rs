//! A local user who wants the port of a daemon: whoever has it while the daemon is away stops the
//! service, or speaks in its place.

use super::rig::{Rig, kill, wait_for};
use lsf::sys::files::RealFiles;
use rustix::net::{AddressFamily, SocketType, bind, listen, socket, sockopt};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Tries to have a port as another user can: SO_REUSEPORT shares it among sockets of one user.
fn take(at: SocketAddr) -> bool {
    let fd = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    sockopt::set_socket_reuseaddr(&fd, true).unwrap();
    bind(&fd, &at).and_then(|()| listen(&fd, 1)).is_ok()
}

#[test]
fn nobody_gets_the_port_of_a_daemon_that_restarts() {
    let rig = Rig::up("ports", 1);
    let envdir = rig.path("conf").to_str().unwrap().to_owned();
    let (base, diags) = lsf::conf::load::load_base_lenient(&RealFiles, &envdir, Some("host1"));
    let base = base.unwrap_or_else(|| panic!("{diags:?}"));
    let addr = base.hosts.addrs("host1")[0];
    let (over, taken) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let ports = [base.lsf.mbd_port(), base.lsf.sbd_port(), base.lsf.res_port()];
    let thieves = ports.map(|port| {
        let (over, taken) = (over.clone(), taken.clone());
        std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                if take(SocketAddr::new(addr, port)) {
                    taken.fetch_add(1, Ordering::Relaxed);
                }
                std::thread::yield_now();
            }
        })
    });
    let launcher = rig.pid("launcher", "host1").unwrap();
    for round in 0..3 {
        for daemon in ["mbatchd", "sbatchd", "res"] {
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
    over.store(true, Ordering::Relaxed);
    thieves.into_iter().for_each(|thief| thief.join().unwrap());
    assert_eq!(taken.load(Ordering::Relaxed), 0);
    // where mbatchd is not to run, nobody is kept waiting: callers are refused
    rig.ok("lsf_daemons", &["stop", "mbatchd"]);
    let call = std::net::TcpStream::connect(SocketAddr::new(addr, ports[0]));
    assert_eq!(call.unwrap_err().kind(), std::io::ErrorKind::ConnectionRefused);
}
