//! Answers: queries, maps, objects, and how the server fares. Nothing is changed but NLB_POLICY.

use super::pieces::{ObjectsLeft, Pieces, texts};
use super::server::NlbServer;
use super::store::Object;
use super::view::Places;
use crate::conf::nlb_config::Right;
use crate::conf::nlb_map::NameMap;
use crate::conf::nlb_objects::{date, dump_maps};
use crate::lang::nlb::{Attributes, Owner, Policy, Ranked, rank};
use crate::model::Now;
use crate::model::nlb::{AttrId, Kind, NLB, NLB_JOB, Value};
use crate::model::reason::err;
use crate::proto::machine::ConnId;
use crate::proto::nlb::{
    AttributeValue, MAX_QUERY_ATTRIBUTES, MAX_QUERY_HOSTS, NlbMsg, NlbObjects, NlbQuery,
    NlbRanking, NlbRow, PIECE_HOSTS, SortValue,
};
use crate::proto::{Effect, Refusal};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write;
use std::sync::Arc;

/// NLB_QUEUE_NAME.
const QUEUE_NAME: AttrId = AttrId::new(Kind::Str, 5);

/// The attributes of the request that a query is about.
#[derive(Default)]
struct Request(BTreeMap<AttrId, Value>);

impl Attributes for Request {
    fn number(&self, id: AttrId) -> Option<f64> {
        self.0.get(&id)?.number()
    }

    fn text(&self, id: AttrId) -> Option<&str> {
        self.0.get(&id)?.text()
    }
}

impl NlbServer {
    /// Answers a query: the hosts, best first. The sort's values become the hosts' NLB_POLICY.
    pub(super) fn query(&mut self, now: Now, conn: ConnId, q: NlbQuery, out: &mut Vec<Effect>) {
        if q.attributes.len() > MAX_QUERY_ATTRIBUTES || q.hosts.len() > MAX_QUERY_HOSTS {
            let attributes = format!("a query names at most {MAX_QUERY_ATTRIBUTES} attributes");
            let words = format!("{attributes} and {MAX_QUERY_HOSTS} hosts");
            return self.refuse(conn, Refusal::text(err::BAD_ARG, words), out);
        }
        self.queries += 1;
        let named = Some(q.policy.as_str()).filter(|name| !name.is_empty());
        let Some(choice) = self.policies.choose(named) else { return };
        let (policy, unknown) = (choice.policy.clone(), choice.unknown);
        let (request, dropped) = self.request(&q.attributes);
        let (accepted, strangers) = self.accepted(&q.hosts);
        let objects: Vec<&Object> = match q.hosts.is_empty() {
            true => self.store.of_type(NLB).collect(),
            false => accepted.iter().filter_map(|name| self.store.find(NLB, name)).collect(),
        };
        let places = Places::find(&policy, QUEUE_NAME, &objects);
        let views = places.views(&objects);
        let candidates: Vec<_> = views.iter().map(|v| v.candidate(now.mono_us)).collect();
        let ranked = rank(&policy, &candidates, &request);
        let count = [policy.count(), Some(q.count).filter(|n| *n > 0)];
        let count = count.into_iter().flatten().min().unwrap_or(u32::MAX) as usize;
        let row = |r: &Ranked| {
            let (host, queue) = views.get(r.candidate)?.row();
            Some(NlbRow { host, value: sort_value(r.value), queue })
        };
        let rows: Vec<NlbRow> = ranked.iter().take(count).filter_map(row).collect();
        let mut sorted: Vec<Option<Option<f64>>> = vec![None; objects.len()];
        for r in &ranked {
            sorted[r.candidate] = Some(r.value);
        }
        // in the order in which the objects lie
        for (object, value) in objects.iter().zip(sorted) {
            value.into_iter().for_each(|value| object.sorted(value));
        }
        let head = NlbRanking {
            policy: policy.name().to_owned(),
            unknown,
            generation: self.generation,
            used: used(&policy),
            dropped,
            strangers,
            ..NlbRanking::default()
        };
        let named = rows.iter().filter(|_| q.objects).map(|r| (NLB, r.host.clone()));
        let objects = ObjectsLeft::Named(named.collect());
        let ranking = ranking(head, rows, q.objects);
        let answer = match q.objects {
            true => Pieces::with_objects(ranking, objects),
            false => Pieces::new(ranking),
        };
        self.answer(conn, answer, out);
    }

    /// The request's attributes that the map knows, and the names of the others.
    fn request(&self, given: &[(String, AttributeValue)]) -> (Request, Vec<String>) {
        let (mut request, mut dropped) = (Request::default(), Vec::new());
        let map = self.maps.numbered(NLB_JOB);
        for (name, value) in given {
            let id = map.and_then(|m| m.named(name)).map(|a| a.id);
            let value = match (id.map(|id| id.kind), value) {
                (Some(Kind::Str), AttributeValue::Text(text)) => Value::Str(text.as_str().into()),
                // `-la name` without a value gives the number 1, whatever the kind
                (Some(Kind::Str), AttributeValue::Number(x)) => Value::Str(x.to_string().into()),
                (Some(_), AttributeValue::Number(x)) if x.is_finite() => Value::Float(*x),
                _ => {
                    dropped.push(name.clone());
                    continue;
                }
            };
            if let Some(id) = id {
                request.0.insert(id, value);
            }
        }
        (request, dropped)
    }

    /// The acceptable hosts by the names of their objects in lower case, and those without one.
    fn accepted(&self, hosts: &[String]) -> (BTreeSet<String>, Vec<String>) {
        let (mut known, mut strangers) = (BTreeSet::new(), Vec::new());
        for host in hosts {
            let name = self.conf.hosts.canonical(host).unwrap_or(host);
            match self.store.find(NLB, name) {
                Some(object) => _ = known.insert(object.name().to_ascii_lowercase()),
                None => strangers.push(host.clone()),
            }
        }
        (known, strangers)
    }

    /// The map of that name; where there is none, the caller is told.
    fn map_named(&self, conn: ConnId, name: &str, out: &mut Vec<Effect>) -> Option<&NameMap> {
        let found = self.maps.named(name);
        if found.is_none() {
            let near =
                crate::conf::names::nearest(name, self.maps.list().iter().map(NameMap::name));
            let near = near.map(|n| format!("; did you mean <{n}>?")).unwrap_or_default();
            let words = format!("<{name}> is no object type{near}");
            self.refuse(conn, Refusal::text(err::BAD_ARG, words), out);
        }
        found
    }

    /// The name maps as text.
    pub(super) fn map(&mut self, now: Now, conn: ConnId, of: &str, out: &mut Vec<Effect>) {
        let maps: Vec<&NameMap> = match of {
            "" => self.readable(conn),
            name => match self.map_named(conn, name, out) {
                Some(map) => vec![map],
                None => return,
            },
        };
        let changed = |m: &NameMap| *self.map_changed.get(&m.number()).unwrap_or(&self.started);
        let dated = maps.into_iter().map(|m| (m, changed(m)));
        let text = dump_maps(dated, self.user(conn), now.secs(), &self.conf.zone);
        self.send(conn, texts(&text, false), out);
    }

    /// The maps of the types that the peer may read.
    fn readable(&self, conn: ConnId) -> Vec<&NameMap> {
        let all = self.maps.list().iter();
        all.filter(|m| self.may(conn, m.number(), Right::Read)).collect()
    }

    /// The maps of the types asked for.
    fn types(&self, conn: ConnId, of: &str, out: &mut Vec<Effect>) -> Option<Vec<&NameMap>> {
        match of {
            "" => Some(self.readable(conn)),
            name => self.map_named(conn, name, out).map(|m| vec![m]),
        }
    }

    /// The heads of objects, in the order of their types and names.
    pub(super) fn list(&mut self, conn: ConnId, which: &NlbObjects, out: &mut Vec<Effect>) {
        let Some(maps) = self.types(conn, &which.object_type, out) else { return };
        let mut text = String::new();
        for map in maps {
            for object in self.store.of_type(map.number()) {
                let _ = writeln!(text, "object {} ({})", map.name(), object.name());
            }
        }
        self.send(conn, texts(&text, false), out);
    }

    /// Objects as data, of each attribute the value that counts.
    pub(super) fn dump(&mut self, conn: ConnId, which: &NlbObjects, out: &mut Vec<Effect>) {
        let Some(maps) = self.types(conn, &which.object_type, out) else { return };
        let types: Vec<u16> = maps.iter().map(|map| map.number()).collect();
        let objects = match which.names.is_empty() {
            true => ObjectsLeft::All { types: types.into(), after: None },
            false => match self.named(&types, &which.names) {
                Ok(named) => ObjectsLeft::Named(named),
                Err(none) => {
                    let words = format!("no object <{none}>");
                    return self.refuse(conn, Refusal::text(err::BAD_ARG, words), out);
                }
            },
        };
        self.answer(conn, Pieces::with_objects(Vec::new(), objects), out);
    }

    /// The objects of these names, each once, in the order of their types and names.
    ///
    /// # Errors
    /// A name that no object has.
    fn named<'a>(
        &self,
        types: &[u16],
        names: &'a [String],
    ) -> Result<VecDeque<(u16, Arc<str>)>, &'a str> {
        let mut all = BTreeSet::new();
        for name in names {
            let mut known = false;
            for (order, number) in types.iter().enumerate() {
                let host = self.conf.hosts.canonical(name).filter(|_| *number == NLB);
                let Some(object) = self.store.find(*number, host.unwrap_or(name)) else { continue };
                known = true;
                all.insert((order, object.name().to_ascii_lowercase()));
            }
            if !known {
                return Err(name);
            }
        }
        Ok(all.into_iter().map(|(order, name)| (types[order], name.into())).collect())
    }

    /// How the server fares.
    pub(super) fn status(&mut self, now: Now, conn: ConnId, out: &mut Vec<Effect>) {
        let zone = &self.conf.zone;
        let hosts = || self.store.of_type(NLB);
        let silent = hosts().filter(|o| o.age(now.mono_us).is_none_or(|age| age > 300.0)).count();
        let names: Vec<_> = self.policies.list().iter().map(Policy::name).collect();
        let text = [
            ("SERVER", self.conf.host.clone()),
            ("DIRECTORY", self.conf.dir.clone()),
            ("STARTED", date(self.started, zone)),
            ("GENERATION", self.generation.to_string()),
            ("POLICIES", names.join(" ")),
            ("POLICIES_READ", date(self.policies_read, zone)),
            ("CONFIG_READ", date(self.access_read, zone)),
            ("HOSTS", self.store.count(NLB).to_string()),
            ("HOSTS_COLLECTOR", hosts().filter(|o| o.collected()).count().to_string()),
            ("HOSTS_LIM", hosts().filter(|o| o.measured()).count().to_string()),
            ("HOSTS_ADMIN", hosts().filter(|o| o.is_stored()).count().to_string()),
            ("HOSTS_SILENT", silent.to_string()),
            ("QUERIES", self.queries.to_string()),
        ];
        let text: String = text.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
        self.send(conn, texts(&text, false), out);
    }
}

/// The request attributes that a policy looks at.
fn used(policy: &Policy) -> Vec<String> {
    let of_request = policy.attributes().iter().filter(|a| a.owner == Owner::Request);
    of_request.map(|a| a.name.to_ascii_uppercase()).collect()
}

fn sort_value(value: Option<f64>) -> SortValue {
    match value {
        None => SortValue::Missing,
        Some(f64::INFINITY) => SortValue::Infinity,
        Some(f64::NEG_INFINITY) => SortValue::MinusInfinity,
        Some(x) => SortValue::Number(x),
    }
}

/// A ranking in pieces; with `goes_on` something follows the last one.
fn ranking(head: NlbRanking, rows: Vec<NlbRow>, goes_on: bool) -> Vec<NlbMsg> {
    let count = rows.len().div_ceil(PIECE_HOSTS).max(1);
    let mut rows = rows.into_iter();
    let piece = |n: usize| {
        let rows = rows.by_ref().take(PIECE_HOSTS).collect();
        NlbMsg::Ranked(NlbRanking { rows, more: goes_on || n + 1 < count, ..head.clone() })
    };
    (0..count).map(piece).collect()
}
