//! A small cluster in one process: authd and one daemon around a toy machine, on loopback
//! addresses of its own.

use lsf::auth::KeyRing;
use lsf::auth::shake::{self, Claims, Hello, Who, session_key};
use lsf::cli::client::{Client, Patience};
use lsf::conf::generate::{SitePlan, generate};
use lsf::conf::{BaseConf, load};
use lsf::daemon::authd::Authd;
use lsf::daemon::driver::{DaemonDriver, Remote, ShellControl};
use lsf::daemon::shell::{self, Ports, ShellConfig};
use lsf::model::Now;
use lsf::model::event::{Event, Record};
use lsf::proto::client::{AdminOp, ClientMsg};
use lsf::proto::frame::{Decoder, MAX_FRAME, Session, SessionKey};
use lsf::proto::{Daemon, Effect, Endpoint, Input, Machine, Msg, Peer};
use lsf::sys::files::RealFiles;
use lsf::sys::site::LocalSite;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Loopback nets given out by this process.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// One world at a time: memory and times are measured.
static ONE: Mutex<()> = Mutex::new(());

pub struct World {
    _one: MutexGuard<'static, ()>,
    pub dir: PathBuf,
    pub site: LocalSite,
    pub base: BaseConf,
    pub ring: Arc<KeyRing>,
    pub ports: Ports,
    pub toy: Arc<Knobs>,
    only_uid: Option<u32>,
    daemon: Option<JoinHandle<Result<i32, shell::ShellError>>>,
}

/// The settings and counters of the test daemon.
#[derive(Default)]
pub struct Knobs {
    /// Milliseconds that a sync takes.
    pub sync_ms: AtomicUsize,
    pub syncs: AtomicUsize,
    pub appends: AtomicUsize,
    /// A number that is not 0 makes the next sync fail.
    pub fail: AtomicUsize,
    /// Slices of a listing.
    pub slices: AtomicUsize,
    pub slice_bytes: AtomicUsize,
    pub opened: AtomicUsize,
    pub closed: AtomicUsize,
}

impl World {
    pub fn new() -> World {
        World::with(Some(lsf::sys::euid()), &|_| String::new())
    }

    /// A cluster of every user, or of one; `more` makes lines of lsf.conf from its directory.
    pub fn with(only_uid: Option<u32>, more: &dyn Fn(&World) -> String) -> World {
        let one = ONE.lock().unwrap_or_else(|held| held.into_inner());
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let net = (1 + (std::process::id() * 7 + n) % 250) as u8;
        let dir = std::env::temp_dir().join(format!("lsf-hostile-{}-{n}", std::process::id()));
        let top = dir.to_str().unwrap();
        let mut spec = SitePlan::personal(top, "nobody", 3);
        spec.personal = Some(net);
        let at = spec.address(1);
        let [a, b, c, d] = free_ports(&at);
        (spec.lim_port, spec.res_port, spec.mbd_port, spec.sbd_port) = (a, b, c, d);
        for (path, text, _) in generate(&spec) {
            let path = dir.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let key = lsf::auth::new_key().unwrap();
        let ring = Arc::new(KeyRing::parse(key.as_bytes()).unwrap());
        let envdir = format!("{top}/conf");
        let (base, diags) = load::load_base_lenient(&RealFiles, &envdir, Some("host1"));
        let base = base.unwrap_or_else(|| panic!("{diags:?}"));
        let (host, shared_machine) = ("host1".into(), true);
        let site = LocalSite { envdir, lsf: base.lsf.clone(), host, shared_machine };
        std::fs::create_dir_all(site.authd_socket().parent().unwrap()).unwrap();
        let ports = Ports::of(&base.lsf);
        let toy = Arc::new(Knobs::default());
        let daemon = None;
        let mut world = World { _one: one, dir, site, base, ring, ports, toy, only_uid, daemon };
        let lines = more(&world);
        if !lines.is_empty() {
            world.add_lines(&lines);
        }
        world.start_authd();
        world.start_daemon();
        world
    }

    fn add_lines(&mut self, lines: &str) {
        let path = self.dir.join("conf/lsf.conf");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{text}\n{lines}")).unwrap();
        let mut diags = lsf::conf::Diags::new();
        let lsf = lsf::conf::lsf_conf::parse(&RealFiles, &self.site.envdir, &mut diags).unwrap();
        self.site.lsf = lsf.clone();
        self.base.lsf = lsf;
    }

    fn start_authd(&self) {
        let (path, ring) = (self.site.authd_socket(), self.ring.clone());
        let mut authd = Authd::new(&path, ring, "host1", self.only_uid).unwrap();
        // This authd lives as long as the test program.
        std::thread::spawn(move || authd.run(&mut || Err("no".into())));
    }

    pub fn config(&self, daemon: Daemon, host: &str) -> ShellConfig {
        ShellConfig {
            daemon,
            host: host.into(),
            addr: Some(self.addr(host)),
            tcp: true,
            udp: false,
            unix: None,
            ports: self.ports,
            ring: Some(self.ring.clone()),
            hosts: Arc::new(self.base.hosts.clone()),
            launcher_socket: self.site.launcher_socket(),
            only_uid: self.only_uid,
            ways: lsf::auth::Ways::of_daemon(&self.site.lsf, &self.base.name, host),
            key_file: None,
            log: None,
            members: None,
            heartbeat: None,
            silence: None,
        }
    }

    fn start_daemon(&mut self) {
        let cfg = self.config(Daemon::Mbatchd, "host1");
        self.daemon = Some(spawn(cfg, self.toy.clone()));
        let until = Instant::now() + Duration::from_secs(10);
        while TcpStream::connect(self.server()).is_err() {
            assert!(Instant::now() < until, "the daemon does not listen");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn addr(&self, host: &str) -> IpAddr {
        self.base.hosts.addrs(host)[0]
    }

    /// The address on which the daemon listens.
    pub fn server(&self) -> SocketAddr {
        SocketAddr::new(self.addr("host1"), self.ports.mbd)
    }

    /// A plain connection from a host's address.
    pub fn tcp_from(&self, host: &str) -> TcpStream {
        self.tcp_at(SocketAddr::new(self.addr(host), 0))
    }

    /// A plain connection from an address and, where it is not 0, a port.
    pub fn tcp_at(&self, from: SocketAddr) -> TcpStream {
        let own = Some(from.ip()).filter(|_| from.port() == 0);
        let fd = lsf::net::sock::tcp_from(own, self.server(), false).unwrap();
        if own.is_none() {
            rustix::net::sockopt::set_socket_reuseaddr(&fd, true).unwrap();
            rustix::net::bind(&fd, &from).unwrap();
        }
        rustix::net::connect(&fd, &self.server()).unwrap();
        let s = TcpStream::from(fd);
        s.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        s
    }

    /// A command's connection through authd.
    pub fn client(&self) -> Client {
        Client::dial(&self.site, Daemon::Mbatchd, Patience::of(&self.site).once()).unwrap()
    }

    /// A connection of our own making, up to and with the server's proof.
    pub fn raw(&self) -> RawClient {
        let mut raw = self.greeted();
        let key = session_key(&self.ring, &raw.claims, &raw.hello.target()).unwrap();
        raw.auth(&key);
        raw.expect_ok();
        raw
    }

    /// A connection that has heard the Hello and said nothing.
    pub fn greeted(&self) -> RawClient {
        self.greeted_from(None)
    }

    /// A connection from `from` that has heard the Hello and said nothing.
    pub fn greeted_from(&self, from: Option<SocketAddr>) -> RawClient {
        let own = SocketAddr::new(self.addr("host1"), 0);
        let mut sock = self.tcp_at(from.unwrap_or(own));
        let mut dec = Decoder::new(MAX_FRAME);
        let hello = loop {
            if let Some(raw) = dec.take().unwrap() {
                break shake::read_hello(&raw, Daemon::Mbatchd, "host1").unwrap().0;
            }
            let mut buf = [0; 4096];
            let n = sock.read(&mut buf).unwrap();
            assert!(n > 0, "closed before hello");
            dec.push(&buf[..n]);
        };
        let uid = lsf::sys::euid();
        let key = hello.keys[0].clone();
        let (user, host) = ("somebody".into(), "host1".into());
        let claims = Claims { key, who: Who::User, uid, gid: 0, user, host };
        RawClient { sock, dec, hello, claims, session: Session::local() }
    }

    /// Ends the daemon the polite way; true if it was still alive and well.
    pub fn stop(self) -> bool {
        let mut c = self.client();
        let op = AdminOp::Shutdown { comment: String::new() };
        c.send(&Msg::Client(ClientMsg::Admin(op))).unwrap();
        // The server's proof (and end) must arrive before we hang up.
        let _ = c.next(Some(Duration::from_secs(5)));
        matches!(self.ended(), Ok(0))
    }

    /// Waits for the end of a daemon that was told to.
    pub fn ended(mut self) -> Result<i32, shell::ShellError> {
        let ended = self.daemon.take().unwrap().join().unwrap();
        let _ = std::fs::remove_dir_all(&self.dir);
        ended
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // A daemon that was not told to end lives as long as the test program, on its sockets.
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// Runs a daemon around the toy machine.
pub fn spawn(cfg: ShellConfig, knobs: Arc<Knobs>) -> JoinHandle<Result<i32, shell::ShellError>> {
    std::thread::spawn(move || {
        let machine = Toy { knobs: knobs.clone(), ..Toy::default() };
        shell::run(cfg, machine, Log { knobs, remote: None, busy: false, batch: 0 })
    })
}

fn free_ports(addr: &str) -> [u16; 4] {
    let held: Vec<TcpListener> = (0..4).map(|_| TcpListener::bind((addr, 0)).unwrap()).collect();
    let mut ports = held.iter().map(|l| l.local_addr().unwrap().port());
    std::array::from_fn(|_| ports.next().unwrap())
}

pub struct RawClient {
    pub sock: TcpStream,
    pub dec: Decoder,
    pub hello: Hello,
    pub claims: Claims,
    pub session: Session,
}

impl RawClient {
    pub fn auth(&mut self, key: &SessionKey) {
        let mut out = Vec::new();
        self.session = shake::write_auth(1, self.claims.clone(), key, &mut out).unwrap();
        self.sock.write_all(&out).unwrap();
    }

    pub fn expect_ok(&mut self) {
        loop {
            if let Some(raw) = self.dec.take().unwrap() {
                return shake::read_ok(&mut self.session, &raw).unwrap();
            }
            assert!(self.fill() > 0, "closed before the server's proof");
        }
    }

    pub fn fill(&mut self) -> usize {
        let mut buf = [0; 65536];
        let n = self.sock.read(&mut buf).unwrap_or(0);
        self.dec.push(&buf[..n]);
        n
    }

    pub fn frame(&mut self, msg: &Msg) -> Vec<u8> {
        let mut out = Vec::new();
        self.session.seal_msg(msg, &mut out).unwrap();
        out
    }

    pub fn next(&mut self) -> Option<Msg> {
        loop {
            if let Some(raw) = self.dec.take().unwrap() {
                return Some(self.session.open_msg(&raw).unwrap());
            }
            if self.fill() == 0 {
                return None;
            }
        }
    }
}

/// Answers a few requests of mbatchd.
#[derive(Default)]
pub struct Toy {
    knobs: Arc<Knobs>,
    peers: HashMap<u64, Peer>,
    listings: HashMap<u64, usize>,
    /// Outgoing connections by number, with the one that asked for each.
    dials: HashMap<u64, u64>,
    jobs: u32,
    /// A slice of a listing, made once.
    rows: Option<Box<serde_json::value::RawValue>>,
}

impl Toy {
    fn slice(&mut self, conn: u64, out: &mut Vec<Effect>) {
        let Some(left) = self.listings.get_mut(&conn) else { return };
        *left -= 1;
        let more = *left > 0;
        let bytes = self.knobs.slice_bytes.load(Ordering::Relaxed);
        let make = || serde_json::value::to_raw_value(&[["x".repeat(bytes)]]).unwrap();
        let rows = self.rows.get_or_insert_with(make).clone();
        if !more {
            self.listings.remove(&conn);
        }
        out.push(Effect::Send { conn, msg: Msg::Client(ClientMsg::Rows { rows, more }) });
    }

    fn rows(key: &str, value: String) -> Msg {
        Msg::Client(ClientMsg::ParamRows { values: vec![(key.into(), value)] })
    }

    fn request(&mut self, conn: u64, msg: ClientMsg, now: Now, out: &mut Vec<Effect>) {
        match msg {
            ClientMsg::Params => {
                let msg = Toy::rows("peer", format!("{:?}", self.peers[&conn]));
                out.push(Effect::Send { conn, msg });
            }
            ClientMsg::Submit(_) => {
                self.jobs += 1;
                let (queue, default_queue) = (String::new(), false);
                let event = Event::LogSwitch { last_job: self.jobs };
                out.push(Effect::Append(Box::new(Record { time: now.secs(), event })));
                let msg = ClientMsg::Submitted {
                    nlb_unchecked: false,
                    job: self.jobs,
                    queue,
                    default_queue,
                    env_kept: false,
                    class_ignored: false,
                };
                out.push(Effect::SendDurable { conn, msg: Msg::Client(msg) });
            }
            // After a durable answer at once an ordinary one.
            ClientMsg::Queues { .. } => {
                out.push(Effect::SendDurable { conn, msg: Toy::rows("order", "first".into()) });
                out.push(Effect::Send { conn, msg: Toy::rows("order", "second".into()) });
            }
            ClientMsg::Jobs(_) => {
                self.listings.insert(conn, self.knobs.slices.load(Ordering::Relaxed));
                self.slice(conn, out);
            }
            ClientMsg::Hosts { names, .. } => {
                let id = 1 + self.dials.len() as u64;
                self.dials.insert(id, conn);
                let to = Endpoint::Tcp { host: names[0].clone(), daemon: Daemon::Sbatchd };
                out.push(Effect::Connect { conn: id, to });
            }
            ClientMsg::Admin(_) => {
                let event = Event::LogSwitch { last_job: self.jobs };
                out.push(Effect::Append(Box::new(Record { time: now.secs(), event })));
                let msg = Msg::Client(ClientMsg::AdminDone { lines: Vec::new() });
                out.push(Effect::SendDurable { conn, msg });
                out.push(Effect::Exit { code: 0 });
            }
            _ => {}
        }
    }
}

impl Machine for Toy {
    fn step(&mut self, now: Now, input: Input, out: &mut Vec<Effect>) {
        match input {
            Input::Opened { conn, peer } => {
                self.knobs.opened.fetch_add(1, Ordering::Relaxed);
                if let Some(asker) = self.dials.get(&conn) {
                    let msg = Toy::rows("dialled", format!("{peer:?}"));
                    out.push(Effect::Send { conn: *asker, msg });
                    out.push(Effect::Close { conn });
                }
                self.peers.insert(conn, peer);
            }
            Input::Msg { conn, msg: Msg::Client(msg) } => self.request(conn, msg, now, out),
            Input::Drained { conn } => self.slice(conn, out),
            Input::ConnectFailed { conn, why, .. } => {
                let msg = Toy::rows("failed", why);
                out.push(Effect::Send { conn: self.dials[&conn], msg });
            }
            Input::Closed { conn } => {
                self.knobs.closed.fetch_add(1, Ordering::Relaxed);
                self.peers.remove(&conn);
                self.listings.remove(&conn);
            }
            _ => {}
        }
    }
    fn deadline(&self) -> Option<u64> {
        None
    }
}

/// A log thread that sleeps instead of writing.
struct Log {
    knobs: Arc<Knobs>,
    remote: Option<Remote>,
    busy: bool,
    batch: usize,
}

impl DaemonDriver for Log {
    type M = Toy;

    fn start(&mut self, _: &mut Toy, shell: &mut ShellControl) {
        self.remote = Some(shell.remote());
    }
    fn effect(&mut self, _: &mut Toy, eff: Effect, _: &mut ShellControl) {
        assert!(matches!(eff, Effect::Append(_)), "{eff:?}");
        self.batch += 1;
    }
    fn end_of_turn(&mut self, _: &mut Toy, shell: &mut ShellControl) {
        if self.busy {
            return;
        }
        let Some(ticket) = shell.seal() else { return };
        self.busy = true;
        let (knobs, batch) = (self.knobs.clone(), std::mem::take(&mut self.batch));
        let Some(remote) = self.remote.clone() else { return };
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(knobs.sync_ms.load(Ordering::Relaxed) as u64));
            knobs.syncs.fetch_add(1, Ordering::Relaxed);
            if knobs.fail.swap(0, Ordering::Relaxed) != 0 {
                remote.failed(ticket, "disk full");
            } else {
                knobs.appends.fetch_add(batch, Ordering::Relaxed);
                remote.durable(ticket);
            }
        });
    }
    fn durable(&mut self, _: &mut Toy, _: u64, _: &mut ShellControl) {
        self.busy = false;
    }
    fn failed(&mut self, _: &mut Toy, _: u64, why: String, shell: &mut ShellControl) {
        self.busy = false;
        self.batch = 0;
        shell.input(Input::LogFailed { why });
    }
}

/// Resident memory of this process, bytes.
pub fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

/// Runs a test in a process of its own, where memory can be measured: `f` there, a child here.
pub fn alone(name: &str, f: impl FnOnce()) {
    const INSIDE: &str = "LSF_TEST_ALONE";
    if std::env::var_os(INSIDE).is_some() {
        return f();
    }
    let _one = ONE.lock().unwrap_or_else(|held| held.into_inner());
    let out = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{text}");
    assert!(String::from_utf8_lossy(&out.stdout).contains("1 passed"), "no test {name}");
}
