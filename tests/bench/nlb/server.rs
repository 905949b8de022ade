//! The machine of nlbserver as a value: hosts report, users ask.

use lsf::conf::HostTable;
use lsf::model::Now;
use lsf::nlb::{NlbConf, NlbServer, StartFiles, start};
use lsf::proto::machine::{ConnId, Effect, INCOMING, Input, Machine, Peer};
use lsf::proto::nlb::{
    NlbEffect, NlbInput, NlbMsg, NlbQuery, NlbReport, NlbRow, ReportedObject, ReportedValue,
    ReportedValues,
};
use lsf::proto::{Daemon, Msg};

/// Hosts of the site, and attributes of each.
pub const HOSTS: usize = 10_000;
pub const ATTRIBUTES: u32 = 200;
/// The attributes that a collector measures; the others are the site's.
pub const MEASURED: u32 = 45;
/// The numbers of the attributes of the site begin here.
pub const OWN: u32 = 8_192;
/// Microseconds in a second.
const SECOND: u64 = 1_000_000;

/// Four constraints, one of them a regular expression, and a sort that is a product.
pub const POLICY: &str = "policy: bench
constraint: age < 300 && NLB_NCPUS >= 2
constraint: [NLB_HARDWARE == \"cray\"] => NLB_SYSCPU / NLB_NCPUS < 10.0
constraint: NLB_FREEMEM > 1000 || NLB_SITE_007 > 5
constraint: exists(JOB_PRMEMSIZE) => NLB_PHYSMEM * 1024 >= JOB_PRMEMSIZE
sort: NLB_IDLECPU * NLB_SITE_003
";

pub fn host_name(host: usize) -> String {
    format!("node{host:05}")
}

/// A number that looks like any, from 0 to 1, the same for the same place.
pub fn some(host: usize, number: u32) -> f64 {
    let mixed = (host as u64 * 1_000 + u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 40) as f64 / (1u64 << 24) as f64
}

/// NLB_HARDWARE of a host: one of few names, or a name of its own.
pub fn hardware(host: usize, differs: bool) -> String {
    let kind = ["x86_64", "aarch64", "CRAY J90", "sun4u"][host % 4];
    if differs { format!("{kind} of {host}") } else { kind.to_owned() }
}

/// The values that the collector of a host measures.
pub fn measured(host: usize, differs: bool) -> ReportedValues {
    use ReportedValue::{Float, Integer, Text};
    let text = |number, text: String| (number, Text(text));
    let mut all = vec![
        text(1, "Linux".to_owned()),
        text(2, "6.1".to_owned()),
        text(3, "#1 SMP".to_owned()),
        text(4, hardware(host, differs)),
        text(5, "normal".to_owned()),
    ];
    let floats = [1, 2, 3, 5, 6, 11, 12, 13, 14, 15];
    all.extend(floats.map(|number| (number, Float(100.0 * some(host, number)))));
    let large = |number| 10_000 + (10_000_000.0 * some(host, 100 + number)) as i64;
    let integers = [1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21];
    all.extend(integers.map(|number| (number, Integer(large(number)))));
    all.push((4, Integer(2 + (host % 63) as i64)));
    all.extend([22, 23, 24, 25].map(|number| (number, Integer(1))));
    let more = MEASURED - all.len() as u32;
    all.extend((0..more).map(|n| (OWN + 900 + n, Float(some(host, n)))));
    all
}

/// The values that a collector of the site adds.
pub fn added(host: usize) -> ReportedValues {
    let number = |n: u32| (OWN + n, ReportedValue::Float(10.0 * some(host, 300 + n)));
    (0..ATTRIBUTES - MEASURED).map(number).collect()
}

pub struct Server {
    machine: NlbServer,
    now: u64,
    user: ConnId,
    /// The policies file.
    policies: Vec<u8>,
}

impl Server {
    /// A server whose name map has the attributes of the site.
    pub fn up() -> Result<Server, String> {
        let begun =
            Server::of(&StartFiles::default())?.text(NlbMsg::Map { object_type: "".into() });
        let own: String = (0..ATTRIBUTES)
            .map(|n| format!("NLB_SITE_{n:03} \"Site {n}\" float({});\n", OWN + n))
            .collect();
        let map = begun.replacen("map NLB = 1024 {", &format!("map NLB = 1024 {{\n{own}"), 1);
        let policies = Ok(POLICY.as_bytes().to_vec());
        let name_map = Some(map.into_bytes());
        let mut server = Server::of(&StartFiles { name_map, policies, ..StartFiles::default() })?;
        // until then it answers that it has just begun
        server.pass(6);
        Ok(server)
    }

    fn of(files: &StartFiles) -> Result<Server, String> {
        let begins = start("/nlbdir", files).map_err(|faults| faults.join("\n"))?;
        let names: Vec<String> = (0..HOSTS).map(host_name).collect();
        let conf = NlbConf {
            host: host_name(0),
            dir: "/nlbdir".into(),
            admins: vec!["lsfadmin".into()],
            servers: Vec::new(),
            hosts: HostTable::new(names.iter().map(String::as_str), &[]),
            queue: "normal".into(),
            zone: jiff::tz::TimeZone::UTC,
        };
        let mut server = Server {
            machine: NlbServer::new(conf, begins, at(SECOND)),
            now: SECOND,
            user: INCOMING,
            policies: Vec::new(),
        };
        server.step(Input::Start);
        let peer = Peer::User { uid: 1000, gid: 1000, user: "u".into(), host: host_name(0) };
        server.step(Input::Opened { conn: server.user, peer });
        Ok(server)
    }

    /// The messages sent while this input, and what follows from it, is processed.
    fn step(&mut self, input: Input) -> Vec<Msg> {
        let (mut sent, mut inputs) = (Vec::new(), vec![input]);
        while let Some(input) = inputs.pop() {
            let mut out = Vec::new();
            self.machine.step(at(self.now), input, &mut out);
            for effect in out {
                match effect {
                    Effect::Send { conn, msg } => {
                        if msg.goes_on() {
                            inputs.push(Input::Drained { conn });
                        }
                        sent.push(msg);
                    }
                    Effect::Nlb(NlbEffect::Write { n, .. }) => {
                        inputs.push(Input::Nlb(NlbInput::Written { n, failed: None }));
                    }
                    Effect::Nlb(NlbEffect::ReadPolicies { n }) => {
                        let read = Ok(self.policies.clone());
                        inputs.push(Input::Nlb(NlbInput::Policies { n, read }));
                    }
                    _ => {}
                }
            }
        }
        sent
    }

    /// Has other policies taken.
    pub fn reload(&mut self, text: &str) -> Result<(), String> {
        self.policies = text.as_bytes().to_vec();
        let conn = INCOMING + 1 + HOSTS as ConnId;
        let peer = Peer::User { uid: 1, gid: 1, user: "lsfadmin".into(), host: host_name(0) };
        self.step(Input::Opened { conn, peer });
        let sent = self.step(Input::Msg { conn, msg: Msg::Nlb(NlbMsg::Reload) });
        self.step(Input::Closed { conn });
        match sent.into_iter().next() {
            Some(Msg::Nlb(NlbMsg::Outcome(outcome))) if outcome.taken => Ok(()),
            other => Err(format!("the policies are not taken: {other:?}")),
        }
    }

    /// The names of all attributes of hosts.
    pub fn attributes(&mut self) -> Vec<String> {
        let text = self.text(NlbMsg::Map { object_type: "NLB".into() });
        let lines = text.lines().filter_map(|line| line.strip_prefix('\t'));
        lines.filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
    }

    pub fn pass(&mut self, seconds: u64) {
        self.now += seconds * SECOND;
        self.step(Input::Tick);
    }

    /// The collector of a host connects; its connection.
    pub fn collector(&mut self, host: usize) -> ConnId {
        let conn = INCOMING + 1 + host as ConnId;
        let peer = Peer::Daemon { daemon: Daemon::Ccollect, host: host_name(host) };
        self.step(Input::Opened { conn, peer });
        conn
    }

    /// Takes a report; whether it is in force.
    pub fn report(&mut self, conn: ConnId, report: NlbReport) -> bool {
        let sent = self.step(Input::Msg { conn, msg: Msg::Nlb(NlbMsg::Report(report)) });
        sent.iter().any(|msg| matches!(msg, Msg::Nlb(NlbMsg::Reported { .. })))
    }

    /// The report of a host with these values.
    pub fn made(host: usize, collector: ReportedValues, custom: ReportedValues) -> NlbReport {
        let own = ReportedObject { object_type: 1024, name: host_name(host), values: custom };
        let custom = if own.values.is_empty() { Vec::new() } else { vec![own] };
        NlbReport { interval: 30, collector, custom }
    }

    /// The hosts, best first.
    pub fn query(&mut self) -> Vec<NlbRow> {
        let query = NlbQuery { policy: "bench".into(), ..NlbQuery::default() };
        let (conn, msg) = (self.user, Msg::Nlb(NlbMsg::Query(query)));
        let sent = self.step(Input::Msg { conn, msg });
        let rows = sent.into_iter().flat_map(|msg| match msg {
            Msg::Nlb(NlbMsg::Ranked(ranking)) => ranking.rows,
            _ => Vec::new(),
        });
        rows.collect()
    }

    fn text(&mut self, msg: NlbMsg) -> String {
        let sent = self.step(Input::Msg { conn: self.user, msg: Msg::Nlb(msg) });
        let texts = sent.into_iter().map(|msg| match msg {
            Msg::Nlb(NlbMsg::Text { text, .. }) => text,
            _ => String::new(),
        });
        texts.collect()
    }
}

fn at(now: u64) -> Now {
    Now { mono_us: now, wall_us: 1_700_000_000_000_000 + now as i64 }
}
