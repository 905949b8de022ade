//! The load balancer of a cluster with pipe queues, seen from outside the machines: the policies
//! that were ever written, who met which, what the administrator was told is stored, and the
//! requests that were routed.
//!
//! The checks: a generation is one set of policies; an answer has the hosts and the order of
//! the generation that it names, and the host of a routed request met the constraints of the one
//! that its record names; no request is routed twice; what the server has acknowledged it finds
//! again, whatever killed it; a request that is given up earns one mail.

use super::rng::Rng;
use super::scale::Scale;
use crate::batch::Mbatchd;
use crate::conf::diag::Diags;
use crate::conf::nlb_map::NameMaps;
use crate::conf::nlb_objects::read_objects;
use crate::conf::types::{BatchConf, NqsSettings, QueueConf};
use crate::lang::nlb::BUILT_IN;
use crate::log::disk::read_small;
use crate::log::simdisk::SimDisk;
use crate::model::JobRef;
use crate::model::event::{Event, Record};
use crate::model::nlb::{AttrId, Kind, NlbAddress, Value};
use crate::model::nqs::{Destination, Destinations, Route};
use crate::model::reason::term;
use crate::nlb::StartFiles;
use crate::proto::collect::Counters;
use crate::proto::nlb::{NlbFile, NlbMsg, NlbOutcome, NlbRanking, SortValue};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Hosts with all daemons; the others have a collector alone, so that they accept nothing.
pub(super) const WHOLE_HOSTS: usize = 5;
/// The host of the server, which is not the first master.
pub(super) const SERVER: usize = 1;
/// The directory of the server.
pub(super) const DIR: &str = "/nlbdir";
/// The queue to which collectors have requests sent.
pub(super) const ROUTED_TO: &str = "normal";
/// The policies file.
pub(super) const POLICIES: &str = "policies";
/// Pipe queues: one asks the server, one has a list of destinations.
const SELECTING: &str = "nlbqueue";
const LISTED: &str = "listed";
/// The policy that the first of them asks for.
const POLICY: &str = "CPU";
/// Larger than any file of the server.
const MAX_FILE: usize = 1 << 20;
/// Processes of the first host, as its collector counts and nobody else; each further host has one
/// more.
const FIRST_COUNT: u64 = 10;
/// Processes that no host has.
const NO_HOST: u64 = 1000;
/// Objects that the administrator changes, and their only attribute.
const MARKS: &str = "MARKS";
const MARKS_TYPE: u16 = 901;
/// The map that the administrator puts, again and again: its attribute has a number in its name.
const PUT_MAP: &str = "PUT";
const PUT_MAP_TYPE: u16 = 902;

/// One set of policies: the hosts whose processes are in this range, by their number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rule {
    least: u64,
    most: u64,
    /// The hosts with most processes come first.
    falling: bool,
}

impl Rule {
    /// A rule that a whole host meets, or one that none does.
    fn random(nobody: bool, rng: &mut Rng) -> Rule {
        let some = FIRST_COUNT + rng.below(WHOLE_HOSTS as u64);
        let least = if nobody { NO_HOST } else { some - rng.below(3) };
        let most = if nobody { 2 * NO_HOST } else { some + rng.below(20) };
        Rule { least, most, falling: rng.chance(0.5) }
    }

    fn text(self, number: u64) -> String {
        let Rule { least, most, falling } = self;
        let sign = if falling { "" } else { "-" };
        format!(
            "# {number}\npolicy: {POLICY}\n\
             constraint: exists(NLB_NUMPROC) => NLB_NUMPROC >= {least}\n\
             constraint: NLB_NUMPROC <= {most}\nsort: {sign}NLB_NUMPROC\n"
        )
    }

    /// The value by which a host is sorted, if it meets the rule.
    fn value(self, host: &str) -> Option<f64> {
        let number: u64 = host.strip_prefix("host")?.parse().ok()?;
        let count = FIRST_COUNT + number.checked_sub(1)?;
        let value = if self.falling { count as f64 } else { -(count as f64) };
        (self.least..=self.most).contains(&count).then_some(value)
    }
}

/// A value that is stored somewhere: the last one that was acknowledged, and those that may be
/// there since nobody heard what became of them.
#[derive(Debug, Default)]
struct Stored {
    known: Option<u64>,
    maybe: BTreeSet<u64>,
}

impl Stored {
    /// A server that starts has found this.
    fn found(&mut self, what: &str, value: Option<u64>) -> Result<(), String> {
        if value != self.known && !value.is_some_and(|v| self.maybe.contains(&v)) {
            let Stored { known, maybe } = self;
            return Err(format!(
                "{what} is {value:?}, {known:?} was acknowledged, may be {maybe:?}"
            ));
        }
        self.known = value;
        self.maybe.clear();
        Ok(())
    }

    fn acknowledged(&mut self, value: u64) {
        self.known = Some(value);
        self.maybe.clear();
    }
}

/// A request of the administrator.
#[derive(Clone, Debug)]
pub(super) enum Order {
    /// `cp` and `nlbconfig -pol`.
    Policies(String),
    /// `nlbconfig -oupdat` of this host's object.
    Mark(usize, u64),
    /// `nlbconfig -mput`.
    Map(u64),
}

/// All of it.
pub(super) struct Balancer {
    /// NLB_SERVER_DIR.
    pub(super) disk: SimDisk,
    /// The rule of each policies file that was ever written.
    rules: BTreeMap<String, Rule>,
    generations: BTreeMap<u64, Rule>,
    /// The policies that were accepted last, and those of which nobody heard.
    taken: String,
    maybe_taken: BTreeSet<String>,
    marks: BTreeMap<usize, Stored>,
    map: Stored,
    hosts: usize,
    numbers: u64,
    pub(super) conn: Option<u64>,
    /// Ignores what belongs to an earlier connection.
    pub(super) dials: u64,
    pub(super) asked: Option<Order>,
    /// Faults were over when the administrator asked for that.
    asked_last: bool,
    /// The last policies are in force.
    pub(super) settled: bool,
    /// With the last policies no request is routed any more.
    nobody_at_end: bool,
    routed: BTreeSet<JobRef>,
    /// Mails about requests: the ticket behind which each is sent, and how many were.
    mails: Vec<(Option<u64>, String)>,
    sent: BTreeMap<String, u32>,
    /// Requests that were given up in this turn.
    due: BTreeSet<JobRef>,
    pub(super) routes: usize,
    pub(super) acknowledged: usize,
}

/// The address of the server.
pub(super) fn address() -> NlbAddress {
    NlbAddress { host: format!("host{}", SERVER + 1), port: 6883 }
}

/// The counters of a host.
pub(super) fn counters(host: usize, at: u64) -> Counters {
    let processes = Some(FIRST_COUNT + host as u64);
    Counters { at, processes, waited_us: Some(0), ..Counters::default() }
}

/// Gives the cluster its pipe queues.
pub(super) fn configure(conf: &mut BatchConf) {
    (conf.nqs.retry_minutes, conf.nqs.wait_hours) = (1, 1);
    let to = |queue: &str, host: u32| Destination {
        queue: queue.into(),
        host: Some(format!("host{host}")),
    };
    let selected = Destinations::Selected { policy: POLICY.into(), server: String::new() };
    let listed = Destinations::Listed(vec![to("high", 9), to("high", 3), to("low", 1)]);
    for (name, pipe) in [(SELECTING, selected), (LISTED, listed)] {
        let nlb_servers = vec![address()];
        let nqs = NqsSettings { pipe: Some(Box::new(pipe)), nlb_servers, ..Default::default() };
        conf.queues.push(QueueConf { name: name.into(), priority: 25, nqs, ..Default::default() });
    }
}

/// The pipe queue of a submission; `None`: another queue.
pub(super) fn pipe_queue(rng: &mut Rng) -> Option<&'static str> {
    match rng.below(10) {
        0..7 => Some(SELECTING),
        7 => Some(LISTED),
        _ => None,
    }
}

/// A file of the server.
pub(super) fn file(disk: &SimDisk, name: &str) -> Result<Option<Vec<u8>>, String> {
    read_small(&mut disk.clone(), name, MAX_FILE).map_err(|e| e.to_string())
}

impl Balancer {
    pub(super) fn new(scale: Scale, rng: &mut Rng) -> Balancer {
        let disk = SimDisk::new();
        let further = format!(
            "map {MARKS} = {MARKS_TYPE} {{ VALUE \"\" integer(1); }}\n\
             map {PUT_MAP} = {PUT_MAP_TYPE} {{ N0 \"\" integer(1); }}\n"
        );
        let file = Arc::from("name_map");
        let maps = NameMaps::shipped().put(&file, further.as_bytes(), &mut Diags::new());
        let text: String = maps.iter().flat_map(|m| m.list()).map(|m| m.text()).collect();
        disk.put("name_map", text.as_bytes());
        let mut balancer = Balancer {
            disk,
            rules: BTreeMap::new(),
            generations: BTreeMap::new(),
            taken: BUILT_IN.to_owned(),
            maybe_taken: BTreeSet::new(),
            marks: BTreeMap::new(),
            map: Stored { known: Some(0), maybe: BTreeSet::new() },
            hosts: scale.hosts,
            numbers: 0,
            conn: None,
            dials: 0,
            asked: None,
            asked_last: false,
            settled: false,
            nobody_at_end: rng.chance(0.2),
            routed: BTreeSet::new(),
            mails: Vec::new(),
            sent: BTreeMap::new(),
            due: BTreeSet::new(),
            routes: 0,
            acknowledged: 0,
        };
        balancer.taken = balancer.write_policies(false, rng);
        balancer
    }

    /// An administrator copies a policies file into its place; the text.
    fn write_policies(&mut self, nobody: bool, rng: &mut Rng) -> String {
        let rule = Rule::random(nobody, rng);
        self.numbers += 1;
        let text = rule.text(self.numbers);
        self.rules.insert(text.clone(), rule);
        self.disk.put(POLICIES, text.as_bytes());
        text
    }

    /// The next request of the administrator; `last`: faults are over.
    pub(super) fn next_order(&mut self, last: bool, rng: &mut Rng) -> NlbMsg {
        let kind = if last { 0 } else { rng.below(8) };
        self.numbers += 1;
        let number = self.numbers;
        let file = |name: &str, text: String| {
            Box::new(NlbFile { name: name.into(), text, ..NlbFile::default() })
        };
        let (order, msg) = match kind {
            0..3 => {
                let nobody = if last { self.nobody_at_end } else { rng.chance(0.2) };
                let text = self.write_policies(nobody, rng);
                (Order::Policies(text), NlbMsg::Reload)
            }
            3 => {
                let broken = format!("# {number}\nconstriant: NLB_NUMPROC > 1\n");
                self.disk.put(POLICIES, broken.as_bytes());
                (Order::Policies(broken), NlbMsg::Reload)
            }
            4..7 => {
                let host = rng.below(self.hosts as u64) as usize;
                let name = format!("host{}", host + 1);
                let text = format!("object {MARKS} ({name}) {{ VALUE = {number}; }}\n");
                (Order::Mark(host, number), NlbMsg::Put(*file("objects", text)))
            }
            _ => {
                let attribute = format!("N{number} \"\" integer(1);");
                let text = format!("map {PUT_MAP} = {PUT_MAP_TYPE} {{ {attribute} }}\n");
                (Order::Map(number), NlbMsg::MapPut(*file("name_map", text)))
            }
        };
        (self.asked, self.asked_last) = (Some(order), last);
        msg
    }

    /// The connection is gone: what the administrator asked for may have been done.
    pub(super) fn answer_lost(&mut self) {
        self.asked_may_be_done();
        self.asked = None;
    }

    /// The request of the administrator may have been carried out, and nobody has heard of it yet.
    fn asked_may_be_done(&mut self) {
        match &self.asked {
            Some(Order::Policies(text)) => _ = self.maybe_taken.insert(text.clone()),
            Some(Order::Mark(host, value)) => {
                self.marks.entry(*host).or_default().maybe.insert(*value);
            }
            Some(Order::Map(value)) => _ = self.map.maybe.insert(*value),
            None => {}
        }
    }

    /// The server has answered the administrator.
    pub(super) fn answered(&mut self, outcome: &NlbOutcome) -> Result<(), String> {
        let Some(order) = self.asked.take() else { return Ok(()) };
        if !outcome.taken {
            let faulty = matches!(&order, Order::Policies(text) if !self.rules.contains_key(text));
            return match self.asked_last && !faulty {
                true => Err(format!("{order:?} is refused without a fault: {outcome:?}")),
                false => Ok(()),
            };
        }
        self.acknowledged += 1;
        match order {
            Order::Policies(text) => {
                if !self.rules.contains_key(&text) {
                    return Err(format!("broken policies are taken: {text}"));
                }
                self.settled = self.asked_last;
                self.taken = text;
                self.maybe_taken.clear();
            }
            Order::Mark(host, value) => self.marks.entry(host).or_default().acknowledged(value),
            Order::Map(value) => self.map.acknowledged(value),
        }
        Ok(())
    }

    /// A server starts with these files: all that was acknowledged is in them.
    pub(super) fn found(&mut self, files: &StartFiles) -> Result<(), String> {
        // the server before this one may have died with a request, which the administrator hears
        // of later
        self.asked_may_be_done();
        let name: Arc<str> = Arc::from("found");
        let mut faults = Diags::new();
        let map = files.name_map.as_deref().unwrap_or_default();
        let maps = NameMaps::default().put(&name, map, &mut faults);
        let maps = maps.ok_or_else(|| format!("the name map cannot be read: {faults:?}"))?;
        let put = maps.named(PUT_MAP).and_then(|map| map.attributes().first());
        let put = put.and_then(|a| a.name.strip_prefix('N')?.parse().ok());
        self.map.found("the name map", put)?;
        let objects = files.objects.as_deref().unwrap_or_default();
        let objects = read_objects(&name, objects, &maps, None, &mut faults);
        let objects = objects.ok_or_else(|| format!("the objects cannot be read: {faults:?}"))?;
        for host in 0..self.hosts {
            let own = format!("host{}", host + 1);
            let object = objects.iter().find(|o| o.object_type == MARKS_TYPE && o.name == own);
            let value = match object.and_then(|o| o.values.get(&AttrId::new(Kind::Integer, 1))) {
                Some(Value::Integer(n)) => u64::try_from(*n).ok(),
                _ => None,
            };
            let stored = self.marks.entry(host).or_default();
            stored.found(&format!("the mark of {own}"), value)?;
        }
        Ok(())
    }

    /// A server has started and runs these policies: those of the file, else the last ones that
    /// were accepted.
    pub(super) fn begins_with(&mut self, text: &str) -> Result<(), String> {
        let file = self.disk.get(POLICIES).unwrap_or_default();
        let file = String::from_utf8_lossy(&file).into_owned();
        let good = self.rules.contains_key(&file);
        let right = match good {
            true => text == file,
            false => text == self.taken || self.maybe_taken.contains(text),
        };
        if !right {
            return Err(format!("the server begins with the policies {text:?}, {file:?} is there"));
        }
        text.clone_into(&mut self.taken);
        self.maybe_taken.clear();
        Ok(())
    }

    /// These policies are in force.
    pub(super) fn in_force(&mut self, (generation, text): (u64, &str)) -> Result<(), String> {
        let rule = self.rules.get(text).ok_or_else(|| format!("nobody wrote policies {text:?}"))?;
        let known = self.generations.entry(generation).or_insert(*rule);
        match known == rule {
            true => Ok(()),
            false => Err(format!("generation {generation} is {known:?}, then {rule:?}")),
        }
    }

    fn rule(&self, generation: u64) -> Result<Rule, String> {
        let rule = self.generations.get(&generation).copied();
        rule.ok_or_else(|| format!("generation {generation} was never in force"))
    }

    /// The server sends an answer: its hosts are those of its generation, in its order.
    pub(super) fn answers(&self, ranking: &NlbRanking) -> Result<(), String> {
        let rule = self.rule(ranking.generation)?;
        let mut before = f64::INFINITY;
        for row in &ranking.rows {
            let want = rule.value(&row.host);
            let told = |why: &str| Err(format!("{} of {ranking:?} {why}: {rule:?}", row.host));
            match (want, &row.value) {
                (Some(want), SortValue::Number(x)) if *x == want => {}
                (None, _) => return told("does not meet the policy"),
                _ => return told("has another value"),
            }
            let value = want.unwrap_or_default();
            if value >= before {
                return told("is out of order");
            }
            before = value;
        }
        Ok(())
    }

    /// The state of mbatchd comes of the log: the requests that it knows as routed.
    pub(super) fn begin_anew(&mut self, mbd: &Mbatchd) {
        self.routed.clear();
        for job in mbd.state().each_job() {
            for idx in job.indices() {
                let at = JobRef { job: job.id, idx };
                if job.spec_at(idx).further.route.is_some() {
                    self.routed.insert(at);
                }
            }
        }
    }

    /// mbatchd appends a record.
    pub(super) fn appended(&mut self, record: &Record) -> Result<(), String> {
        match &record.event {
            Event::JobSwitch { at, route: Some(route), .. } => self.routed_to(*at, route),
            Event::JobStatus(status) if status.exit_info == term::GIVEN_UP => {
                self.due.insert(status.at);
                Ok(())
            }
            // a request that was given up and is requeued may be given up again
            Event::JobRequeue { at, .. } => {
                self.sent.remove(&at.to_string());
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn routed_to(&mut self, at: JobRef, route: &Route) -> Result<(), String> {
        self.routes += 1;
        if !self.routed.insert(at) {
            return Err(format!("request {at} is routed again: {route:?}"));
        }
        if route.policy.is_empty() {
            return Ok(());
        }
        let rule = self.rule(route.generation)?;
        let value = rule.value(&route.host).map(|value| format!("{value:.6}"));
        if value.as_deref() != Some(&route.value) || route.policy != POLICY {
            return Err(format!("request {at} goes where {rule:?} does not send it: {route:?}"));
        }
        Ok(())
    }

    /// mbatchd orders a mail, which leaves when `ticket` is durable.
    pub(super) fn mail(&mut self, ticket: Option<u64>, text: &str) {
        let id = text.split("NQS request: ").nth(1).and_then(|rest| rest.split('.').next());
        let id = id.unwrap_or_default().to_owned();
        self.due.retain(|at| at.to_string() != id);
        match ticket {
            Some(_) => self.mails.push((ticket, id)),
            None => *self.sent.entry(id).or_default() += 1,
        }
    }

    /// All effects of a turn of mbatchd were carried out: no mail is due.
    pub(super) fn turn_ends(&mut self) -> Result<(), String> {
        match std::mem::take(&mut self.due).first() {
            Some(at) => Err(format!("request {at} is given up without a mail")),
            None => Ok(()),
        }
    }

    /// All up to this ticket is durable; `None`: nothing more will be.
    pub(super) fn durable(&mut self, ticket: Option<u64>) -> Result<(), String> {
        let gone = |of: &Option<u64>| ticket.is_some_and(|ticket| of.is_none_or(|n| n <= ticket));
        for (of, id) in std::mem::take(&mut self.mails) {
            if gone(&of) {
                let count = self.sent.entry(id.clone()).or_default();
                *count += 1;
                if *count > 1 {
                    return Err(format!("request {id} has {count} mails"));
                }
            } else if ticket.is_some() {
                self.mails.push((of, id));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_before_the_end_of_faults_may_be_refused_after_it() {
        let rng = &mut Rng::new(1);
        let mut balancer = Balancer::new(Scale::BALANCER, rng);
        let refused = NlbOutcome::default();
        balancer.next_order(false, rng);
        assert_eq!(balancer.answered(&refused), Ok(()));
        balancer.next_order(true, rng);
        assert!(balancer.answered(&refused).is_err());
    }

    #[test]
    fn policies_before_the_end_of_faults_are_not_the_last_ones() {
        let rng = &mut Rng::new(1);
        let mut balancer = Balancer::new(Scale::BALANCER, rng);
        let taken = NlbOutcome { taken: true, ..NlbOutcome::default() };
        for (last, settled) in [(false, false), (true, true)] {
            balancer.next_order(last, rng);
            balancer.asked = Some(Order::Policies(balancer.taken.clone()));
            assert_eq!((balancer.answered(&taken), balancer.settled), (Ok(()), settled));
        }
    }
}
