//! Values equal to those of the server, dense as it keeps them, under the policy and under a loop
//! written by hand.

use super::server::{HOSTS, OWN, POLICY, added, host_name, measured};
use lsf::conf::diag::Diags;
use lsf::lang::nlb::{Attributes, Candidate, Known, Names, Owner, Policies, parse, rank};
use lsf::model::nlb::{AttrId, Kind};
use lsf::proto::nlb::{ReportedValue, ReportedValues};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

const HARDWARE: AttrId = AttrId::string(4);
const IDLECPU: AttrId = AttrId::float(1);
const SYSCPU: AttrId = AttrId::float(5);
const PHYSMEM: AttrId = AttrId::integer(1);
const FREEMEM: AttrId = AttrId::integer(2);
const NCPUS: AttrId = AttrId::integer(4);
const SITE_003: AttrId = AttrId::float(OWN + 3);
const SITE_007: AttrId = AttrId::float(OWN + 7);
const PRMEMSIZE: AttrId = AttrId::float(6);
/// Seconds since the report of every host.
const AGE: f64 = 10.0;

/// A value of a host.
enum Value {
    Number(f64),
    Text(Arc<str>),
}

/// The attributes of a host, of which every host has the same in the same order.
struct Host(Vec<Value>);

impl Host {
    fn number(&self, column: usize) -> Option<f64> {
        match self.0.get(column)? {
            Value::Number(x) => Some(*x),
            Value::Text(_) => None,
        }
    }

    fn text(&self, column: usize) -> Option<&str> {
        match self.0.get(column)? {
            Value::Number(_) => None,
            Value::Text(text) => Some(text),
        }
    }
}

/// A host, and the columns of the policy's attributes.
struct Seen<'a> {
    host: &'a Host,
    mirror: &'a Mirror,
    columns: &'a [usize],
}

impl Attributes for Seen<'_> {
    fn number(&self, id: AttrId) -> Option<f64> {
        self.host.number(self.mirror.column(id))
    }

    fn text(&self, id: AttrId) -> Option<&str> {
        self.host.text(self.mirror.column(id))
    }

    fn number_at(&self, slot: usize, _id: AttrId) -> Option<f64> {
        self.host.number(*self.columns.get(slot)?)
    }

    fn text_at(&self, slot: usize, _id: AttrId) -> Option<&str> {
        self.host.text(*self.columns.get(slot)?)
    }
}

/// A request without attributes.
struct NoRequest;

impl Attributes for NoRequest {
    fn number(&self, _id: AttrId) -> Option<f64> {
        None
    }

    fn text(&self, _id: AttrId) -> Option<&str> {
        None
    }
}

/// The names in the policy.
struct OwnNames;

impl Names for OwnNames {
    fn attribute(&self, name: &str) -> Option<Known<'_>> {
        let id = match name.to_ascii_uppercase().as_str() {
            "NLB_HARDWARE" => HARDWARE,
            "NLB_IDLECPU" => IDLECPU,
            "NLB_SYSCPU" => SYSCPU,
            "NLB_PHYSMEM" => PHYSMEM,
            "NLB_FREEMEM" => FREEMEM,
            "NLB_NCPUS" => NCPUS,
            "NLB_SITE_003" => SITE_003,
            "NLB_SITE_007" => SITE_007,
            "JOB_PRMEMSIZE" => return Some(Known::Of(Owner::Request, PRMEMSIZE)),
            _ => return None,
        };
        Some(Known::Of(Owner::Host, id))
    }

    fn all(&self) -> Vec<&str> {
        Vec::new()
    }
}

/// Every host with its values.
pub struct Mirror {
    names: Vec<String>,
    columns: HashMap<AttrId, usize>,
    hosts: Vec<Host>,
    policies: Policies,
}

fn id((number, value): &(u32, ReportedValue)) -> AttrId {
    match value {
        ReportedValue::Float(_) => AttrId::new(Kind::Float, *number),
        ReportedValue::Integer(_) => AttrId::new(Kind::Integer, *number),
        ReportedValue::Text(_) => AttrId::new(Kind::Str, *number),
    }
}

/// The values of a host; equal texts are there once.
fn values(all: [ReportedValues; 2], texts: &mut HashSet<Arc<str>>) -> Host {
    let mut value = |(_, value)| match value {
        ReportedValue::Float(x) => Value::Number(x),
        ReportedValue::Integer(n) => Value::Number(n as f64),
        ReportedValue::Text(text) => {
            let text: Arc<str> = text.into();
            let found = texts.get(&text).cloned();
            Value::Text(found.unwrap_or_else(|| {
                texts.insert(text.clone());
                text
            }))
        }
    };
    Host(all.into_iter().flatten().map(&mut value).collect())
}

impl Mirror {
    pub fn new(differs: bool) -> Result<Mirror, String> {
        let mut diags = Diags::new();
        let file: Arc<str> = Arc::from("policies");
        let policies = parse(&file, POLICY.as_bytes(), &OwnNames, &mut diags);
        let all = |host| [measured(host, differs), added(host)];
        let mut texts = HashSet::new();
        let columns = all(0).iter().flatten().enumerate().map(|(n, v)| (id(v), n)).collect();
        Ok(Mirror {
            names: (0..HOSTS).map(host_name).collect(),
            columns,
            hosts: (0..HOSTS).map(|host| values(all(host), &mut texts)).collect(),
            policies: policies.ok_or_else(|| {
                diags.list().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
            })?,
        })
    }

    /// The column of an attribute; one that there is not, where no host has it.
    fn column(&self, id: AttrId) -> usize {
        self.columns.get(&id).copied().unwrap_or(usize::MAX)
    }

    /// The hosts by the policy, best first.
    pub fn policy(&self) -> Vec<usize> {
        let Some(policy) = self.policies.named("bench") else { return Vec::new() };
        let columns: Vec<_> = policy.attributes().iter().map(|a| self.column(a.id)).collect();
        let seen = |host| Seen { host, mirror: self, columns: &columns };
        let hosts: Vec<_> = self.hosts.iter().map(seen).collect();
        let candidate = |(name, attributes)| Candidate { name, age: Some(AGE), attributes };
        let names = self.names.iter().map(String::as_str);
        let candidates: Vec<_> = names.zip(&hosts).map(candidate).collect();
        rank(policy, &candidates, &NoRequest).into_iter().map(|r| r.candidate).collect()
    }

    /// The hosts by a loop that knows the policy.
    pub fn plain(&self) -> Vec<usize> {
        let wanted = NoRequest.number(PRMEMSIZE);
        let all = [HARDWARE, IDLECPU, SYSCPU, PHYSMEM, FREEMEM, NCPUS, SITE_003, SITE_007];
        let [hardware, idle, sys, physical, free, ncpus, site_3, site_7] =
            all.map(|id| self.column(id));
        let mut found: Vec<(f64, usize)> = Vec::with_capacity(self.hosts.len());
        for (n, host) in self.hosts.iter().enumerate() {
            let number = |column| host.number(column).unwrap_or(f64::NAN);
            let cpus = number(ncpus);
            let cray = host.text(hardware).is_some_and(|text| contains(text, b"cray"));
            let good = AGE < 300.0
                && cpus >= 2.0
                && (!cray || number(sys) / cpus < 10.0)
                && (number(free) > 1_000.0 || number(site_7) > 5.0)
                && wanted.is_none_or(|wanted| number(physical) * 1024.0 >= wanted);
            if good {
                found.push((number(idle) * number(site_3), n));
            }
        }
        found.sort_by(|a, b| {
            b.0.total_cmp(&a.0).then_with(|| self.names[a.1].cmp(&self.names[b.1]))
        });
        found.into_iter().map(|(_, host)| host).collect()
    }
}

/// Without regard to case.
fn contains(text: &str, word: &[u8]) -> bool {
    text.as_bytes().windows(word.len()).any(|part| part.eq_ignore_ascii_case(word))
}
