//! The collector of one host: it measures, keeps the means, and reports to every server. See
//! ccollect(8).
//!
//! Invariants: no value is reported that was not measured; each server gets the latest report as
//! soon as it can be reached; a server that is away holds up no other.

use super::average::Readings;
use super::custom::{CustomFiles, reported};
use super::link::{Link, Next};
use super::measures::{Surroundings, add_means, values};
use super::programs::Programs;
use super::store::Values;
use crate::conf::HostTable;
use crate::model::Now;
use crate::model::nlb::NlbAddress;
use crate::model::time::US;
use crate::proto::collect::{CollectorEffect, CollectorInput, Counters, CustomContent};
use crate::proto::machine::ConnId;
use crate::proto::nlb::{NlbEffect, NlbInput, NlbMsg, NlbReport};
use crate::proto::{Daemon, Effect, Endpoint, Input, Machine, Msg};

/// The pause between the first two readings, microseconds.
const FIRST_PAUSE: u64 = US;
/// The pause between two glances at the run queue, microseconds.
const GLANCE: u64 = US;

/// The pause before the batch agent is called again, microseconds.
const BATCH_PAUSE: u64 = US / 2;

/// The surroundings of a collector.
#[derive(Clone, Debug)]
pub struct CollectorConf {
    /// This host's canonical name.
    pub host: String,
    /// The cluster's hosts with their other names.
    pub hosts: HostTable,
    /// The servers to report to.
    pub servers: Vec<NlbAddress>,
    /// NLB_QUEUE_NAME; empty: none.
    pub queue: String,
    /// The directory of NLB_FREETMP.
    pub tmp: String,
    /// Time between two reports, seconds.
    pub interval: u32,
    /// The window of means, seconds.
    pub window: u32,
    /// Files of custom objects.
    pub files: Vec<String>,
    /// The names of the custom collectors, for texts.
    pub programs: Vec<String>,
}

impl CollectorConf {
    fn interval(&self) -> u64 {
        u64::from(self.interval) * US
    }
}

/// The collector.
pub struct Collector {
    conf: CollectorConf,
    readings: Readings,
    before: Option<Counters>,
    /// Glances, and those that saw more processes than processors.
    glances: (u32, u32),
    /// The attributes of the last report.
    measured: Option<Values>,
    files: CustomFiles,
    programs: Programs,
    links: Vec<Link>,
    /// When the host is to be measured; `None`: it is being measured.
    measure_at: Option<u64>,
    glance_at: Option<u64>,
    /// The connection to the host's batch agent, and whether it is open.
    batch: Option<(ConnId, bool)>,
    batch_at: Option<u64>,
    last_link: ConnId,
    random: u64,
}

impl Collector {
    /// A collector that begins; `random` is any number.
    pub fn new(conf: CollectorConf, random: u64) -> Collector {
        Collector {
            readings: Readings::default(),
            before: None,
            glances: (0, 0),
            measured: None,
            files: CustomFiles::new(&conf.files),
            programs: Programs::new(&conf.programs),
            links: conf.servers.iter().cloned().map(Link::new).collect(),
            measure_at: None,
            glance_at: None,
            batch: None,
            batch_at: Some(0),
            last_link: 0,
            random: random | 1,
            conf,
        }
    }

    fn order(effect: CollectorEffect, out: &mut Vec<Effect>) {
        out.push(Effect::Nlb(NlbEffect::Collector(effect)));
    }

    fn say(level: log::Level, text: Option<String>, out: &mut Vec<Effect>) {
        out.extend(text.map(|text| Effect::Say { level, text }));
    }

    /// xorshift
    fn random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    fn connect(&mut self, to: Endpoint, out: &mut Vec<Effect>) -> ConnId {
        self.last_link += 1;
        out.push(Effect::Connect { conn: self.last_link, to });
        self.last_link
    }

    fn measure(&mut self, out: &mut Vec<Effect>) {
        self.measure_at = None;
        Self::order(CollectorEffect::Measure { files: self.files.paths() }, out);
    }

    fn tick(&mut self, now: Now, out: &mut Vec<Effect>) {
        let now = now.mono_us;
        if self.batch_at.take_if(|at| *at <= now).is_some() {
            let to = Endpoint::Tcp { host: self.conf.host.clone(), daemon: Daemon::Sbatchd };
            self.batch = Some((self.connect(to, out), false));
        }
        if self.measure_at.is_some_and(|at| at <= now) {
            self.measure(out);
        }
        if self.glance_at.is_some_and(|at| at <= now) {
            self.glance_at = None;
            Self::order(CollectorEffect::Glance, out);
        }
        self.programs.start(now, out);
        for n in 0..self.links.len() {
            if self.links[n].call_at().is_some_and(|at| at <= now) {
                let to = &self.links[n].to;
                let host = self.conf.hosts.canonical(&to.host).unwrap_or(&to.host).to_owned();
                let port = to.port;
                let conn = self.connect(Endpoint::Nlb { host, port }, out);
                self.links[n].dialed(conn);
            }
        }
    }

    fn reading(
        &mut self,
        now: Now,
        counters: Counters,
        files: Vec<CustomContent>,
        out: &mut Vec<Effect>,
    ) {
        self.files.take(files);
        if counters.waited_us.is_none() && self.glance_at.is_none() {
            self.glance_at = Some(now.mono_us + GLANCE);
        }
        let Some(before) = self.before.replace(counters.clone()) else {
            self.measure_at = Some(now.mono_us + FIRST_PAUSE);
            return;
        };
        self.measure_at = Some(now.mono_us + self.conf.interval());
        let (all, crowded) = std::mem::take(&mut self.glances);
        let around = Surroundings {
            queue: self.conf.queue.clone(),
            tmp: self.conf.tmp.clone(),
            batch: self.batch.is_some_and(|(_, open)| open),
            crowded: (all > 0).then(|| 100.0 * f64::from(crowded) / f64::from(all)),
        };
        let mut measured = values(&before, &counters, &around);
        let window = u64::from(self.conf.window) * US;
        add_means(&mut measured, &mut self.readings, counters.at, window);
        self.measured = Some(measured);
        for n in 0..self.links.len() {
            self.meanings(n, true, out);
            if self.links[n].report_due(now.mono_us, self.conf.interval())
                && let Some(conn) = self.links[n].conn()
            {
                out.push(Effect::Close { conn });
                self.lost(now, n, "no answer", out);
            }
            self.go_on(now, n, out);
        }
    }

    /// Reads the custom objects with the maps of one server.
    fn meanings(&mut self, n: usize, next: bool, out: &mut Vec<Effect>) {
        let Some(link) = self.links.get_mut(n) else { return };
        let Some(maps) = &link.maps else { return };
        let (host, hosts) = (&self.conf.host, &self.conf.hosts);
        let own = |name: &str| {
            hosts.canonical(name).is_some_and(|name| name == host)
                || name.eq_ignore_ascii_case(host)
        };
        for text in link.meanings.read(&mut self.files, maps, own, next) {
            out.push(Effect::Say { level: log::Level::Warn, text });
        }
    }

    /// Sends what is to be sent to one server.
    fn go_on(&mut self, now: Now, n: usize, out: &mut Vec<Effect>) {
        let ready = self.measured.is_some();
        let Some(link) = self.links.get_mut(n) else { return };
        let (conn, msg) = match link.next(now.mono_us, ready) {
            None => return,
            Some(Next::AskMaps(conn)) => (conn, NlbMsg::Map { object_type: String::new() }),
            Some(Next::Report(conn)) => {
                let custom = link.meanings.objects(&self.conf.host).unwrap_or_else(|text| {
                    out.push(Effect::Say { level: log::Level::Warn, text });
                    Vec::new()
                });
                let collector = self.measured.as_ref().map(reported).unwrap_or_default();
                let report = NlbReport { interval: self.conf.interval, collector, custom };
                (conn, NlbMsg::Report(report))
            }
        };
        out.push(Effect::Send { conn, msg: Msg::Nlb(msg) });
    }

    fn lost(&mut self, now: Now, n: usize, why: &str, out: &mut Vec<Effect>) {
        let random = self.random();
        let text = self.links.get_mut(n).and_then(|l| l.closed(now.mono_us, random, why));
        Self::say(log::Level::Warn, text, out);
    }

    fn closed(&mut self, now: Now, conn: ConnId, why: &str, out: &mut Vec<Effect>) {
        if self.batch.is_some_and(|(c, _)| c == conn) {
            self.batch = None;
            self.batch_at = Some(now.mono_us + BATCH_PAUSE);
        }
        if let Some(n) = self.links.iter().position(|l| l.conn() == Some(conn)) {
            self.lost(now, n, why, out);
        }
    }

    fn heard(&mut self, now: Now, conn: ConnId, msg: Msg, out: &mut Vec<Effect>) {
        let Some(n) = self.links.iter().position(|l| l.conn() == Some(conn)) else { return };
        let Some(link) = self.links.get_mut(n) else { return };
        match msg {
            Msg::Nlb(NlbMsg::Text { text, more }) => {
                if !link.text(&text, more) {
                    out.push(Effect::Close { conn });
                    return self.lost(now, n, "name maps that cannot be read", out);
                }
                self.meanings(n, false, out);
            }
            Msg::Nlb(NlbMsg::Reported { map }) => {
                let text = link.reported(map);
                Self::say(log::Level::Info, text, out);
            }
            Msg::Refused(refusal) => {
                let text = link.refused(&refusal.words());
                return Self::say(log::Level::Warn, text, out);
            }
            _ => return,
        }
        self.go_on(now, n, out);
    }

    fn told(&mut self, now: Now, input: CollectorInput, out: &mut Vec<Effect>) {
        let next = self.measure_at.unwrap_or(now.mono_us + self.conf.interval());
        match input {
            CollectorInput::Reading { counters, files } => self.reading(now, *counters, files, out),
            CollectorInput::Glance { runnable, cpus } => {
                let (all, crowded) = self.glances;
                self.glances = (all + 1, crowded + u32::from(runnable > cpus));
                self.glance_at = Some(now.mono_us + GLANCE);
            }
            CollectorInput::Ended { program, how } => {
                let text = self.programs.ended(program, &how, now.mono_us, next);
                Self::say(log::Level::Warn, text, out);
            }
            CollectorInput::NotStarted { program, why } => {
                let text = self.programs.not_started(program, &why, next);
                Self::say(log::Level::Error, text, out);
            }
            CollectorInput::File { program, path } => {
                self.programs.is_file(program);
                self.files.add(&path);
            }
        }
    }
}

impl Machine for Collector {
    fn step(&mut self, now: Now, input: Input, out: &mut Vec<Effect>) {
        match input {
            Input::Start => {
                self.measure(out);
                self.tick(now, out);
            }
            Input::Tick => self.tick(now, out),
            Input::Opened { conn, .. } => {
                if let Some((_, open)) = self.batch.as_mut().filter(|(c, _)| *c == conn) {
                    *open = true;
                }
                if let Some(n) = self.links.iter().position(|l| l.conn() == Some(conn)) {
                    self.links[n].opened(conn);
                    self.go_on(now, n, out);
                }
            }
            Input::ConnectFailed { conn, why, .. } => self.closed(now, conn, &why, out),
            Input::Closed { conn } => self.closed(now, conn, "the connection is closed", out),
            Input::Msg { conn, msg } => self.heard(now, conn, msg, out),
            Input::Nlb(NlbInput::Collector(input)) => self.told(now, input, out),
            _ => {}
        }
    }

    fn deadline(&self) -> Option<u64> {
        let calls = self.links.iter().filter_map(Link::call_at).min();
        let own = [self.measure_at, self.glance_at, self.batch_at, self.programs.deadline(), calls];
        own.into_iter().flatten().min()
    }
}
