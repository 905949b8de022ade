//! A daemon of the test's: with the cluster's own key and a host's own address it stands in the
//! place of a real one, says what the test wants and keeps what it hears.

use super::rig::{Rig, wait_for};
use lsf::auth::{KeyRing, Ways};
use lsf::conf::load;
use lsf::daemon::driver::{DaemonDriver, ShellControl};
use lsf::daemon::shell::{self, Ports, ShellConfig};
use lsf::model::Now;
use lsf::proto::machine::{ConnId, Endpoint};
use lsf::proto::sbd::SbdMsg;
use lsf::proto::{Daemon, Effect, Input, Machine, Msg, Peer};
use lsf::sys::files::RealFiles;
use lsf::sys::site::LocalSite;
use std::sync::{Arc, Mutex};

/// The messages to be sent, and those heard.
#[derive(Default)]
pub(super) struct Script {
    pub(super) say: Vec<Msg>,
    /// The messages for mbatchd, each lot over a connection that this daemon makes.
    pub(super) call: Vec<Msg>,
    pub(super) heard: Vec<Msg>,
    /// The connection that `say` goes to is there.
    pub(super) open: bool,
}

impl Script {
    pub(super) fn tell(&mut self, msg: SbdMsg) {
        self.say.push(Msg::Sbd(msg));
    }
}

/// The way to the connection that `say` goes to.
#[derive(Clone)]
enum Way {
    Dial(Endpoint),
    /// mbatchd dials; its greeting is answered with an empty inventory.
    Greeted,
}

struct Scripted {
    script: Arc<Mutex<Script>>,
    way: Way,
    to: Option<ConnId>,
    /// Connections made so far.
    made: ConnId,
    now: u64,
}

/// How often it looks for something to say, microseconds.
const LOOK: u64 = 20_000;

impl Scripted {
    fn dial(&mut self, to: Endpoint, out: &mut Vec<Effect>) -> ConnId {
        self.made += 1;
        out.push(Effect::Connect { conn: self.made, to });
        self.made
    }
}

impl Machine for Scripted {
    fn step(&mut self, now: Now, input: Input, out: &mut Vec<Effect>) {
        self.now = now.mono_us;
        let shared = self.script.clone();
        let mut script = shared.lock().unwrap();
        let send = |conn, msg| Effect::Send { conn, msg };
        match input {
            Input::Start => {
                if let Way::Dial(to) = self.way.clone() {
                    self.to = Some(self.dial(to, out));
                }
            }
            Input::Opened { conn, .. } if self.to == Some(conn) => script.open = true,
            Input::Opened { conn, peer: Peer::Daemon { daemon: Daemon::Mbatchd, .. } }
                if conn <= self.made =>
            {
                out.extend(script.call.drain(..).map(|msg| send(conn, msg)));
            }
            Input::ConnectFailed { why, .. } => panic!("{why}"),
            Input::Closed { conn } if self.to == Some(conn) => script.open = false,
            Input::Msg { conn, msg: Msg::Sbd(SbdMsg::Hello { .. }) } => {
                self.to = Some(conn);
                let (boot_id, tasks) = ("of its own".into(), Vec::new());
                out.push(send(
                    conn,
                    Msg::Sbd(SbdMsg::Inventory {
                        boot_id,
                        tasks,
                        more: false,
                        members: None,
                        validates: false,
                        unjoined: Vec::new(),
                        member_slots: Vec::new(),
                    }),
                ));
                script.open = true;
            }
            Input::Msg { conn, msg: Msg::Ping { n } } => out.push(send(conn, Msg::Pong { n })),
            Input::Msg { msg, .. } => script.heard.push(msg),
            _ => {}
        }
        if let Some(conn) = self.to.filter(|_| script.open) {
            out.extend(script.say.drain(..).map(|msg| send(conn, msg)));
        }
        let dials = out.iter().any(|e| matches!(e, Effect::Connect { .. }));
        if !script.call.is_empty() && !dials {
            self.dial(Endpoint::Tcp { host: "host1".into(), daemon: Daemon::Mbatchd }, out);
        }
    }

    fn deadline(&self) -> Option<u64> {
        Some(self.now + LOOK)
    }
}

struct Nothing;

impl DaemonDriver for Nothing {
    type M = Scripted;
    fn effect(&mut self, _: &mut Scripted, _: Effect, _: &mut ShellControl) {}
}

pub(super) fn site(rig: &Rig, host: &str) -> LocalSite {
    let envdir = rig.path("conf").to_str().unwrap().to_string();
    let (base, diags) = load::load_base_lenient(&RealFiles, &envdir, Some(host));
    let base = base.unwrap_or_else(|| panic!("{diags:?}"));
    LocalSite { envdir, lsf: base.lsf, host: host.into(), shared_machine: true }
}

fn run(rig: &Rig, daemon: Daemon, host: &str, way: Way) -> Arc<Mutex<Script>> {
    let script = begin(rig, (daemon, host), way, Script::default());
    wait_for("the connection", || script.lock().unwrap().open);
    script
}

fn begin(
    rig: &Rig,
    (daemon, host): (Daemon, &str),
    way: Way,
    script: Script,
) -> Arc<Mutex<Script>> {
    let site = site(rig, host);
    let (base, diags) = load::load_base_lenient(&RealFiles, &site.envdir, Some(host));
    let base = base.unwrap_or_else(|| panic!("{diags:?}"));
    let key = rig.path("conf/lsf.key").to_str().unwrap().to_owned();
    let uid = lsf::sys::euid();
    let ring = Arc::new(KeyRing::load(&key, host, uid).unwrap());
    let config = ShellConfig {
        heartbeat: None,
        silence: None,
        daemon,
        host: host.into(),
        addr: Some(base.hosts.addrs(host)[0]),
        tcp: matches!(way, Way::Greeted),
        udp: false,
        unix: None,
        ports: Ports::of(&base.lsf),
        ring: Some(ring),
        hosts: Arc::new(base.hosts.clone()),
        launcher_socket: site.launcher_socket(),
        only_uid: Some(uid),
        ways: Ways::of_daemon(&base.lsf, &base.name, host),
        key_file: None,
        log: None,
        members: None,
    };
    let script = Arc::new(Mutex::new(script));
    let machine = Scripted { script: script.clone(), way, to: None, made: 0, now: 0 };
    // it lives as long as the test program
    std::thread::spawn(move || shell::run(config, machine, Nothing));
    script
}

/// A daemon on `host` that connects to `to` and says one thing, which may end the connection.
pub(super) fn speak_from(
    rig: &Rig,
    daemon: Daemon,
    host: &str,
    to: Endpoint,
    msg: Msg,
) -> Arc<Mutex<Script>> {
    let script = Script { say: vec![msg], ..Script::default() };
    begin(rig, (daemon, host), Way::Dial(to), script)
}

/// A daemon on host1 that connects to `to`, in place of mbatchd or of sbatchd.
pub(super) fn speak(rig: &Rig, daemon: Daemon, to: Endpoint) -> Arc<Mutex<Script>> {
    run(rig, daemon, "host1", Way::Dial(to))
}

/// Takes the place of host2's sbatchd.
pub(super) fn take_over(rig: &Rig) -> Arc<Mutex<Script>> {
    for daemon in ["launcher", "sbatchd"] {
        assert!(rig.kill9(daemon, "host2"), "no {daemon}");
    }
    run(rig, Daemon::Sbatchd, "host2", Way::Greeted)
}

/// Says something and waits for the answer that is meant.
pub(super) fn say<T>(
    script: &Mutex<Script>,
    what: &str,
    msg: Msg,
    mut is: impl FnMut(&Msg) -> Option<T>,
) -> T {
    script.lock().unwrap().say.push(msg);
    let mut found = None;
    wait_for(what, || {
        let mut script = script.lock().unwrap();
        assert!(script.open, "{what}: the connection was closed: {:?}", script.heard.last());
        found = script.heard.iter().find_map(&mut is);
        if found.is_some() {
            script.heard.clear();
        }
        found.is_some()
    });
    found.unwrap()
}
