//! Values equal to those of the server, under the policy and under a loop written by hand.

use super::server::{HOSTS, OWN, POLICY, added, host_name, measured};
use lsf::conf::diag::Diags;
use lsf::lang::nlb::{Attributes, Candidate, Known, Names, Owner, Policies, parse, rank};
use lsf::model::nlb::{AttrId, Kind, Value};
use lsf::proto::nlb::{ReportedValue, ReportedValues};
use std::collections::BTreeMap;
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

/// The attributes of a host, or of a request.
struct Host(BTreeMap<AttrId, Value>);

impl Attributes for Host {
    fn number(&self, id: AttrId) -> Option<f64> {
        self.0.get(&id)?.number()
    }

    fn text(&self, id: AttrId) -> Option<&str> {
        self.0.get(&id)?.text()
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
    hosts: Vec<Host>,
    policies: Policies,
    request: Host,
}

fn values(all: [ReportedValues; 2]) -> BTreeMap<AttrId, Value> {
    let value = |(number, value)| match value {
        ReportedValue::Float(x) => (AttrId::new(Kind::Float, number), Value::Float(x)),
        ReportedValue::Integer(n) => (AttrId::new(Kind::Integer, number), Value::Integer(n)),
        ReportedValue::Text(text) => (AttrId::new(Kind::Str, number), Value::Str(text.into())),
    };
    all.into_iter().flatten().map(value).collect()
}

impl Mirror {
    pub fn new(differs: bool) -> Result<Mirror, String> {
        let mut diags = Diags::new();
        let file: Arc<str> = Arc::from("policies");
        let policies = parse(&file, POLICY.as_bytes(), &OwnNames, &mut diags);
        let all = |host| Host(values([measured(host, differs), added(host)]));
        Ok(Mirror {
            names: (0..HOSTS).map(host_name).collect(),
            hosts: (0..HOSTS).map(all).collect(),
            policies: policies.ok_or_else(|| {
                diags.list().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
            })?,
            request: Host(BTreeMap::new()),
        })
    }

    /// The hosts by the policy, best first.
    pub fn policy(&self) -> Vec<usize> {
        let candidate = |(name, attributes)| Candidate { name, age: Some(AGE), attributes };
        let names = self.names.iter().map(String::as_str);
        let candidates: Vec<_> = names.zip(&self.hosts).map(candidate).collect();
        let Some(policy) = self.policies.named("bench") else { return Vec::new() };
        rank(policy, &candidates, &self.request).into_iter().map(|r| r.candidate).collect()
    }

    /// The hosts by a loop that knows the policy.
    pub fn plain(&self) -> Vec<usize> {
        let wanted = self.request.number(PRMEMSIZE);
        let mut found: Vec<(f64, usize)> = Vec::with_capacity(self.hosts.len());
        for (n, host) in self.hosts.iter().enumerate() {
            let number = |id| host.number(id).unwrap_or(f64::NAN);
            let cpus = number(NCPUS);
            let cray = host.text(HARDWARE).is_some_and(|text| contains(text, b"cray"));
            let good = AGE < 300.0
                && cpus >= 2.0
                && (!cray || number(SYSCPU) / cpus < 10.0)
                && (number(FREEMEM) > 1_000.0 || number(SITE_007) > 5.0)
                && wanted.is_none_or(|wanted| number(PHYSMEM) * 1024.0 >= wanted);
            if good {
                found.push((number(IDLECPU) * number(SITE_003), n));
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
