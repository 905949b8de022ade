//! A hundred real LIM machines in virtual time: they crash, lose power, are cut apart, and their
//! clocks run apart. Once faults cease, every part of the network that has a candidate has
//! exactly one master within the documented bound, and all its hosts agree on it.
//!
//! Beside each LIM stands what sbatchd does by its word: it has mbatchd run or not. The log is on a
//! file server, which only one part of a divided network reaches and which gives the lock away
//! when it hears nothing of its holder (`lease`). Never do two of them write it, though two may
//! believe that they have it.

use crate::lease::FileServer;
use lsf::conf::{BaseConf, HostDef, HostTable};
use lsf::faultsim::Rng;
use lsf::lim::Lim;
use lsf::model::Now;
use lsf::proto::lim::{HostFacts, LimMsg, LoadSample};
use lsf::proto::machine::{ConnId, INCOMING};
use lsf::proto::{Daemon, Effect, Endpoint, Input, Machine, Msg, Peer};
use std::collections::{BTreeMap, VecDeque};

const HOSTS: usize = 100;
const US: u64 = 1_000_000;
/// Seconds in which faults happen.
const FAULTS: u64 = 400;
/// The clocks run up to so many thousandths too fast or too slow.
const DRIFT: u64 = 20;

#[derive(Debug)]
enum Ev {
    Input {
        host: usize,
        born: u64,
        input: Box<Input>,
    },
    Tick {
        host: usize,
        born: u64,
    },
    /// The power of the host is back, its LIM starts.
    Start {
        host: usize,
    },
    Fault,
    Heal,
    /// mbatchds write.
    Commit,
}

struct Host {
    lim: Option<Lim>,
    /// The number of the LIM's run; events of older runs are void.
    born: u64,
    power: bool,
    part: u64,
    /// The host's clock runs `num / 1000` times as fast as the true one.
    num: u64,
    /// The clock is so much ahead of the true one, microseconds.
    ahead: u64,
    /// Connections by our number: the other host, its number.
    conns: BTreeMap<ConnId, (usize, u64, ConnId)>,
    next: ConnId,
    /// The master that sbatchd heard of last.
    master: String,
    ticks: Option<u64>,
}

struct World {
    rng: Rng,
    now: u64,
    queue: BTreeMap<(u64, u64), Ev>,
    serial: u64,
    hosts: Vec<Host>,
    base: BaseConf,
    candidates: usize,
    files: FileServer,
}

/// sbatchd's connection to its LIM.
const SBATCHD: ConnId = INCOMING + 1;

fn name(i: usize) -> String {
    format!("h{i}")
}

fn number(name: &str) -> usize {
    name[1..].parse().unwrap()
}

fn base(candidates: usize) -> BaseConf {
    let names: Vec<String> = (0..HOSTS).map(name).collect();
    let mut base = BaseConf {
        name: "c".into(),
        hosts: HostTable::new(names.iter().map(String::as_str), &[]),
        ..BaseConf::default()
    };
    let def = |n: &String| HostDef { name: n.clone(), server: true, ..HostDef::default() };
    base.cluster.hosts = names.iter().map(def).collect();
    base.lsf.set("LSF_MASTER_LIST", &names[..candidates].join(" "));
    base.cluster.params.exinterval = 5;
    base
}

impl World {
    fn new(seed: u64, candidates: usize) -> World {
        let mut rng = Rng::new(seed);
        let hosts = (0..HOSTS).map(|_| Host {
            lim: None,
            born: 0,
            power: true,
            part: 0,
            num: 1000 - DRIFT + rng.below(2 * DRIFT),
            ahead: rng.below(500 * US),
            conns: BTreeMap::new(),
            next: SBATCHD + 1,
            master: String::new(),
            ticks: None,
        });
        let hosts = hosts.collect();
        let (queue, base) = (BTreeMap::new(), base(candidates));
        let files = FileServer::default();
        let mut w = World { rng, now: 0, queue, serial: 0, hosts, base, candidates, files };
        for host in 0..HOSTS {
            let at = w.rng.below(5 * US);
            w.push(at, Ev::Start { host });
        }
        w.push(20 * US, Ev::Fault);
        w.push(0, Ev::Commit);
        w
    }

    fn push(&mut self, at: u64, ev: Ev) {
        self.serial += 1;
        self.queue.insert((at.max(self.now), self.serial), ev);
    }

    fn later(&mut self, host: usize, input: Input) {
        let (born, after) = (self.hosts[host].born, 100 + self.rng.below(3000));
        self.push(self.now + after, Ev::Input { host, born, input: Box::new(input) });
    }

    /// The clock of a host.
    fn clock(&self, host: usize) -> Now {
        let h = &self.hosts[host];
        let mono = self.now / 1000 * h.num;
        Now { mono_us: mono, wall_us: 1_800_000_000_000_000 + (mono + h.ahead) as i64 }
    }

    fn reach(&self, a: usize, b: usize) -> bool {
        let (a, b) = (&self.hosts[a], &self.hosts[b]);
        a.power && b.power && a.part == b.part
    }

    fn run(&mut self, until: u64) {
        while let Some(entry) = self.queue.first_entry().filter(|e| e.key().0 <= until) {
            self.now = entry.key().0;
            match entry.remove() {
                Ev::Input { host, born, input } if self.hosts[host].born == born => {
                    self.step(host, *input);
                }
                Ev::Tick { host, born } if self.hosts[host].born == born => {
                    self.hosts[host].ticks = None;
                    self.step(host, Input::Tick);
                }
                Ev::Start { host } => self.start(host),
                Ev::Commit => self.commits(),
                Ev::Fault => self.fault(),
                Ev::Heal => self.hosts.iter_mut().for_each(|h| h.part = 0),
                _ => {}
            }
        }
        self.now = until;
    }

    fn start(&mut self, host: usize) {
        self.hosts[host].power = true;
        if self.hosts[host].lim.is_some() {
            return;
        }
        self.hosts[host].lim = Some(Lim::new(self.base.clone(), &name(host)));
        self.step(host, Input::Start);
        let peer = Peer::Daemon { daemon: Daemon::Sbatchd, host: name(host) };
        self.step(host, Input::Opened { conn: SBATCHD, peer });
        let msg = Msg::Lim(LimMsg::Subscribe { loads: false });
        self.step(host, Input::Msg { conn: SBATCHD, msg });
    }

    fn step(&mut self, host: usize, input: Input) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let now = self.clock(host);
            let Some(lim) = &mut self.hosts[host].lim else { return };
            let mut out = Vec::new();
            lim.step(now, input, &mut out);
            for effect in out {
                self.effect(host, effect, &mut inputs);
            }
        }
        let Some(due) = self.hosts[host].lim.as_ref().and_then(Machine::deadline) else { return };
        let at = (due * 1000 / self.hosts[host].num + 1000).max(self.now + 1);
        if self.hosts[host].ticks.is_none_or(|t| t > at) {
            self.hosts[host].ticks = Some(at);
            let born = self.hosts[host].born;
            self.push(at, Ev::Tick { host, born });
        }
    }

    fn effect(&mut self, host: usize, effect: Effect, inputs: &mut VecDeque<Input>) {
        match effect {
            Effect::Datagram { to, msg } => {
                let to = number(&to);
                if self.reach(host, to) && !self.rng.chance(0.01) {
                    self.later(to, Input::Datagram { from: name(host), msg });
                }
            }
            Effect::Sample => {
                let facts = HostFacts { nprocs: 1, ncores: 1, ..HostFacts::default() };
                let sample = LoadSample { facts, ..LoadSample::default() };
                inputs.push_back(Input::Sample(Box::new(sample)));
            }
            Effect::Connect { conn, to: Endpoint::Tcp { host: to, .. } } => {
                self.connect(host, conn, number(&to));
            }
            Effect::Send { conn: SBATCHD, msg: Msg::Lim(LimMsg::Master { master, .. }) } => {
                self.hosts[host].master = master;
                self.mbatchds();
            }
            Effect::Send { conn, msg } => {
                let Some(&(to, born, theirs)) = self.hosts[host].conns.get(&conn) else { return };
                if self.reach(host, to) && self.hosts[to].born == born {
                    self.later(to, Input::Msg { conn: theirs, msg });
                }
            }
            Effect::Close { conn } => self.hang_up(host, conn),
            _ => {}
        }
    }

    fn connect(&mut self, host: usize, conn: ConnId, to: usize) {
        if !self.reach(host, to) {
            return;
        }
        if self.hosts[to].lim.is_none() {
            let why = "refused".to_string();
            return self.later(host, Input::ConnectFailed { conn, why, refused: true });
        }
        self.hosts[to].next += 1;
        let theirs = self.hosts[to].next;
        let born = |w: &World, h: usize| w.hosts[h].born;
        let (mine, other) = (born(self, host), born(self, to));
        self.hosts[host].conns.insert(conn, (to, other, theirs));
        self.hosts[to].conns.insert(theirs, (host, mine, conn));
        let peer = |h: usize| Peer::Daemon { daemon: Daemon::Lim, host: name(h) };
        self.later(to, Input::Opened { conn: theirs, peer: peer(host) });
        self.later(host, Input::Opened { conn, peer: peer(to) });
    }

    fn hang_up(&mut self, host: usize, conn: ConnId) {
        let Some((to, born, theirs)) = self.hosts[host].conns.remove(&conn) else { return };
        if self.reach(host, to) && self.hosts[to].born == born {
            self.hosts[to].conns.remove(&theirs);
            self.later(to, Input::Closed { conn: theirs });
        }
    }

    fn crash(&mut self, host: usize, power: bool) {
        self.hosts[host].lim = None;
        if power {
            self.hosts[host].power = false;
            self.hosts[host].conns.clear();
        }
        for conn in self.hosts[host].conns.keys().copied().collect::<Vec<_>>() {
            self.hang_up(host, conn);
        }
        self.hosts[host].born += 1;
        self.hosts[host].ticks = None;
        self.hosts[host].master.clear();
        self.mbatchds();
    }

    fn fault(&mut self) {
        // mostly those that matter
        let some = if self.rng.chance(0.7) { self.candidates.min(6) } else { HOSTS };
        let host = self.rng.below(some as u64) as usize;
        let back = self.now
            + US / 5
            + self.rng.below(if self.rng.clone().chance(0.5) { 1 } else { 90 }) * US;
        match self.rng.below(10) {
            0..4 => {
                self.crash(host, false);
                self.push(back, Ev::Start { host });
            }
            4..7 => {
                self.crash(host, true);
                self.push(back, Ev::Start { host });
            }
            7 => self.push(self.now, Ev::Heal),
            _ => {
                let parts = 2 + self.rng.below(2);
                for i in 0..HOSTS {
                    self.hosts[i].part = self.rng.below(parts);
                }
            }
        }
        let next = self.now + (self.rng.exp(15.0) * 1e6) as u64;
        if next < FAULTS * US {
            self.push(next, Ev::Fault);
        }
    }

    /// The sbatchds' part: a host that is told to be master runs mbatchd, which writes if it gets
    /// the lock. The file server is in the first part of the network.
    fn mbatchds(&mut self) {
        let World { hosts, files, now, .. } = self;
        let wants = |h: &usize| hosts[*h].power && hosts[*h].master == name(*h);
        let wants: Vec<usize> = (0..HOSTS).filter(wants).collect();
        files.turn(*now, &wants, &|h| hosts[h].power && hosts[h].part == 0);
    }

    fn commits(&mut self) {
        self.mbatchds();
        let World { hosts, files, now, .. } = self;
        files.commit(*now, &|h| hosts[h].power && hosts[h].part == 0);
        self.push(self.now + US, Ev::Commit);
    }

    /// The live hosts of each part.
    fn parts(&self) -> BTreeMap<u64, Vec<usize>> {
        let mut parts: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for (i, h) in self.hosts.iter().enumerate().filter(|(_, h)| h.lim.is_some()) {
            parts.entry(h.part).or_default().push(i);
        }
        parts
    }

    /// Seconds until the part with this best candidate has its master: the documented formula,
    /// the last question, an announcement and what clocks make of it all.
    fn bound(&self, best: usize) -> u64 {
        let p = &self.base.cluster.params;
        let silence = p.host_inactivity_limit + best as u64 * p.master_inactivity_limit;
        (silence.max(p.host_inactivity_limit + p.retry_limit) + 2)
            * p.exinterval
            * (1000 + 2 * DRIFT)
            / 1000
            + p.probe_timeout
    }
}

fn check(w: &World, seed: u64) {
    for (part, hosts) in w.parts() {
        let best = hosts[0];
        if best >= w.candidates {
            let masters: Vec<_> =
                hosts.iter().filter(|h| w.hosts[**h].master == name(**h)).collect();
            assert!(masters.is_empty(), "seed {seed}: no candidate in part {part}: {masters:?}");
            continue;
        }
        for h in &hosts {
            let says = &w.hosts[*h].master;
            let at = w.now / US;
            assert_eq!(*says, name(best), "seed {seed}, {at} s, part {part}: what h{h} says");
        }
    }
}

fn run(seed: u64, candidates: usize) -> FileServer {
    let mut w = World::new(seed, candidates);
    w.run(20 * US - 1);
    check(&w, seed);
    // all is back after the last fault, but the network stays as it is
    w.run((FAULTS + 91) * US);
    let healed = w.now;
    let parts = w.parts();
    let bounds: Vec<u64> =
        parts.values().filter(|h| h[0] < candidates).map(|h| w.bound(h[0])).collect();
    let most = bounds.into_iter().max().unwrap();
    w.run(healed + most * US);
    check(&w, seed);
    for _ in 0..6 {
        w.run(w.now + 10 * US);
        check(&w, seed);
    }
    w.push(w.now, Ev::Heal);
    w.run(w.now + 12 * US);
    check(&w, seed);
    w.files.check(w.now);
    w.files
}

/// All is well, then the master's host is without power, with nobody to refuse a connection.
/// Seconds until the next candidate takes over, and until everybody says so.
fn vanish(seed: u64, base: BaseConf) -> (f64, f64) {
    let mut w = World::new(seed, 5);
    w.base = base;
    w.queue.retain(|_, ev| !matches!(ev, Ev::Fault));
    w.run(60 * US);
    check(&w, seed);
    w.crash(0, true);
    let gone = w.now;
    let secs = |w: &World| (w.now - gone) as f64 / 1e6;
    let (mut first, mut all) = (None, None);
    while all.is_none() && secs(&w) < 600.0 {
        w.run(w.now + US / 10);
        let says = |h: usize| w.hosts[h].master.as_str();
        // nobody else takes over, however short of time
        assert!((2..HOSTS).all(|h| says(h) != name(h)), "seed {seed}");
        first = first.or((says(1) == "h1").then(|| secs(&w)));
        all = (1..HOSTS).all(|h| says(h) == "h1").then(|| secs(&w));
    }
    (first.unwrap(), all.unwrap())
}

#[test]
fn a_vanished_master_is_replaced_by_the_formula() {
    for seed in 0..4 {
        // LSF's defaults: (5 + 1 x 2) x 15 s of silence, 2 s for the last question; the last
        // announcement was up to an interval before, and clocks run apart
        let mut wide = base(5);
        wide.cluster.params.exinterval = 15;
        let (first, all) = vanish(seed, wide);
        assert!((105.0 - 15.0 - 2.0..107.0 + 3.0).contains(&first), "seed {seed}: {first}");
        assert!(all < first + 16.0, "seed {seed}: {first} {all}");
        // as `lsf up` writes it
        let mut quick = base(5);
        let p = &mut quick.cluster.params;
        (p.host_inactivity_limit, p.master_inactivity_limit, p.retry_limit) = (1, 0, 0);
        let (first, all) = vanish(seed, quick);
        assert!((5.0..7.5).contains(&first) && all < 10.0, "seed {seed}: {first} {all}");
    }
}

#[test]
fn a_master_for_each_part_of_the_network() {
    let (mut moves, mut ended, mut most) = (0, 0, 0);
    for seed in 0..15 {
        let files = run(seed, [5, 12, HOSTS][seed as usize % 3]);
        (moves, ended) = (moves + files.moves, ended + files.ended);
        most = most.max(files.most);
    }
    println!("the log moved {moves} times; {ended} mbatchds found that their lease was lost");
    assert!(moves > 60, "the log moved {moves} times only");
    assert!(ended > 3 && most > 1, "{ended} lost their lease only, {most} at a time");
}
