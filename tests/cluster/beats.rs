//! The costs of the beats of 5,000 hosts to the LIM of the master: a real one, with a socket for
//! each of the others here, at the default interval.

use crate::rig::{Rig, binary, skipped, wait_for};
use lsf::auth::KeyRing;
use lsf::net::Identity;
use lsf::net::dgram::Seal;
use lsf::proto::lim::{HostFacts, HostLoad, LimMsg};
use lsf::proto::{Daemon, Msg};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fmt::Write;
use std::net::{SocketAddr, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

const HOSTS: usize = 5000;
/// EXINTERVAL, by default.
const INTERVAL: u64 = 15;
/// Seconds measured.
const MEASURED: u64 = INTERVAL;
/// Limits of the CPU seconds of a minute, and of the memory, in MB.
const CPU_A_MINUTE: f64 = 3.0;
const MEMORY: u64 = 50;

fn address(n: usize) -> String {
    format!("127.77.{}.{}", n / 250, n % 250 + 1)
}

/// A cluster of so many hosts, of which only the first one's LIM will run.
fn configure(rig: &Rig) -> u16 {
    let (mut hosts, mut table) = (String::new(), String::new());
    for n in 1..=HOSTS {
        let _ = writeln!(hosts, "host{n} ! ! 1 ()");
        let _ = writeln!(table, "{} host{n}", address(n));
    }
    let path = rig.path("conf/lsf.cluster.personal");
    let text = std::fs::read_to_string(&path).unwrap();
    let admins = text.split("Begin Host").next().unwrap();
    let text =
        format!("{admins}Begin Host\nHOSTNAME model type server RESOURCES\n{hosts}End Host\n");
    std::fs::write(path, text).unwrap();
    rig.write("conf/hosts", &table);
    let conf = rig.read("conf/lsf.conf");
    let port = conf.lines().find_map(|l| l.strip_prefix("LSF_LIM_PORT=")).unwrap();
    port.parse().unwrap()
}

/// CPU seconds, and resident MB.
fn cost(pid: u32) -> (f64, u64) {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: f64 = fields[11..13].iter().map(|f| f.parse::<f64>().unwrap()).sum();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let rss = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap();
    let kb: u64 = rss.split_whitespace().next().unwrap().parse().unwrap();
    (ticks / 100.0, kb / 1024)
}

fn beat(n: usize) -> Msg {
    let facts = HostFacts {
        host_type: "X86_64".into(),
        model: "x6_5586_IntelXeonProcessor280GHz".into(),
        nprocs: 2,
        ncores: 8,
        nthreads: 2,
        max_mem: 64_000,
        max_tmp: 100_000,
        ..HostFacts::default()
    };
    let sum = |name: &str| (name.to_owned(), "0123456789abcdef".to_owned());
    let copies = ["lsf.shared", "lsf.cluster.personal", "hosts", "LSF_MASTER_LIST"].map(sum);
    Msg::Lim(LimMsg::Beat {
        load: Box::new(HostLoad {
            host: format!("host{n}"),
            index: [0.1, 0.2, 0.3, 0.25, 1.5, 120.0, 3.0, 7.0, 90_000.0, 8000.0, n as f32],
            facts: Some(facts),
            boot_id: "4f757d28-c283-4fe8-9b1c-0123456789ab".into(),
            copies: copies.to_vec(),
            ..HostLoad::default()
        }),
    })
}

/// The LIM of a host of this cluster, which is still to be named.
fn identity(rig: &Rig) -> Identity {
    let ring = KeyRing::parse(rig.read("conf/lsf.key").as_bytes()).unwrap();
    let mut table = lsf::conf::HostTable::new(["host1"], &[]);
    table.add_address("host1", address(1).parse().unwrap());
    Identity {
        daemon: Daemon::Lim,
        host: String::new(),
        addr: None,
        uid: 0,
        ring: Some(Arc::new(ring)),
        hosts: Arc::new(table),
        only_uid: None,
        ways: Default::default(),
    }
}

#[test]
fn master_of_five_thousand_hosts_uses_little_time() {
    let name = "master_of_five_thousand_hosts_uses_little_time";
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(u64::MAX);
    if most < HOSTS as u64 + 500 {
        return skipped(&format!("{name}: {most} descriptors are too few"));
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(most), ..limit }).unwrap();
    let rig = Rig::up("beats", 1);
    assert_eq!(rig.down().code, 0);
    let port = configure(&rig);
    let mut command = Command::new(binary());
    rig.dress(&mut command);
    command.arg("lim").env("LSF_LOCAL_HOST", "host1").stdout(Stdio::null()).stderr(Stdio::null());
    let mut lim = command.spawn().unwrap();
    let mut ident = identity(&rig);
    let master: SocketAddr = format!("{}:{port}", address(1)).parse().unwrap();
    let sockets: Vec<UdpSocket> =
        (2..=HOSTS).map(|n| UdpSocket::bind(format!("{}:{port}", address(n))).unwrap()).collect();
    let mut seal = Seal::default();
    let mut round = |secs: u64| {
        let began = Instant::now();
        for (i, socket) in sockets.iter().enumerate() {
            ident.host = format!("host{}", i + 2);
            let now = lsf::sys::now().wall_us;
            let bytes = seal.write(&ident, "host1", &beat(i + 2), now).unwrap();
            let _ = socket.send_to(&bytes, master);
            // evenly over the interval, as hosts beat that started at other times
            let due = Duration::from_micros(secs * 1_000_000 * i as u64 / HOSTS as u64);
            std::thread::sleep(due.saturating_sub(began.elapsed()));
        }
        std::thread::sleep(Duration::from_secs(secs).saturating_sub(began.elapsed()));
    };
    wait_for("the master's LIM", || UdpSocket::bind(master).is_err());
    round(INTERVAL);
    let before = cost(lim.id()).0;
    for _ in 0..MEASURED / INTERVAL {
        round(INTERVAL);
    }
    let (after, memory) = cost(lim.id());
    let minute = (after - before) * 60.0 / MEASURED as f64;
    println!("{HOSTS} hosts: {minute:.2} CPU s a minute, {memory} MB");
    let _ = lim.kill();
    let _ = lim.wait();
    // the last announcement that a host got asks for nothing: its beats were believed
    let last = sockets.len() - 1;
    sockets[last].set_nonblocking(true).unwrap();
    let (mut bytes, mut said) = ([0u8; 4096], None);
    while let Ok((n, from)) = sockets[last].recv_from(&mut bytes) {
        ident.host = format!("host{HOSTS}");
        let now = lsf::sys::now().wall_us;
        said = Seal::default().read(&ident, &bytes[..n], from.ip(), now).ok();
    }
    let Some((_, Msg::Lim(LimMsg::Announce { want, .. }))) = said else { panic!("{said:?}") };
    assert!(!want);
    let log = rig.read("log/lim.log.host1");
    // every beat was believed, and none missed
    assert!(!log.contains("unavailable") && !log.contains("datagram"), "{log}");
    // what a build for the debugger costs says nothing
    if !binary().to_string_lossy().contains("/debug/") {
        assert!(minute <= CPU_A_MINUTE, "{minute:.2} CPU s a minute");
        assert!(memory <= MEMORY, "{memory} MB");
    }
}
