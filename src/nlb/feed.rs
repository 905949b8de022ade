//! The attributes of hosts that LIM measures, where no collector reports them.

use super::store::{Measured, Report, Store, Values};
use crate::conf::nlb_map::{FIRST_OF_SITE, MapAttribute, NameMaps};
use crate::conf::nlb_objects::of_number;
use crate::model::Now;
use crate::model::nlb::{AttrId, Kind, NLB, Value};
use crate::model::time::US;
use crate::proto::lim::{HostFacts, HostLoad, INDEX_NAMES, status};
use std::collections::HashMap;

/// The window of means, microseconds.
const WINDOW: u64 = 300 * US;
/// Names of attributes that are fed from LIM begin with this.
const PREFIX: &str = "NLB_LIM_";

/// The attributes of which means are kept, and those of the means.
const AVERAGED: [(AttrId, AttrId); 7] = [
    (AttrId::float(1), AttrId::float(11)),
    (AttrId::float(2), AttrId::float(12)),
    (AttrId::float(3), AttrId::float(13)),
    (AttrId::integer(2), AttrId::integer(11)),
    (AttrId::integer(7), AttrId::integer(14)),
    (AttrId::integer(10), AttrId::integer(15)),
    (AttrId::integer(16), AttrId::integer(17)),
];

/// The words of LIM about each host.
#[derive(Clone, Debug, Default)]
pub(super) struct Feed {
    /// The facts of each host, which come once.
    facts: HashMap<String, HostFacts>,
}

impl Feed {
    /// Takes readings that the LIM of `from` has sent. `queue` is NLB_QUEUE, empty: none.
    pub(super) fn take(
        &mut self,
        loads: Vec<HostLoad>,
        from: &str,
        queue: &str,
        maps: &NameMaps,
        store: &mut Store,
        now: Now,
    ) {
        for mut load in loads {
            if let Some(facts) = load.facts.take() {
                self.facts.insert(load.host.clone(), facts);
            }
            let Some(facts) = self.facts.get(&load.host).filter(|f| f.server) else { continue };
            if load.unavailable() {
                continue;
            }
            let (values, readings) = values(&load, facts, queue);
            let of_lim = of_site(&load, facts, maps);
            let ids = AVERAGED.map(|(_, mean)| mean);
            let reading = Measured { values, of_lim, means: (&ids, readings), window: WINDOW };
            let report = Report { at: now.mono_us, wall: now.secs(), from: from.to_owned() };
            store.measured(&load.host, reading, report);
        }
    }
}

/// The values of a reading, and those of [`AVERAGED`] as they were measured.
fn values(load: &HostLoad, facts: &HostFacts, queue: &str) -> (Values, Vec<f64>) {
    let index = |at: usize| f64::from(load.index.get(at).copied().unwrap_or(0.0));
    let [r15s, ut, pg, io, it] = [0, 3, 4, 5, 7].map(index);
    let [tmp, swp, mem] = [8, 9, 10].map(index);
    let locked = load.status & status::LOCKED != 0;
    let numbers = [
        (AttrId::float(1), (1.0 - ut) * 100.0),
        (AttrId::float(2), r15s),
        (AttrId::float(3), pg * 4.0),
        (AttrId::integer(1), facts.max_mem as f64 * 1024.0),
        (AttrId::integer(2), mem * 1024.0),
        (AttrId::integer(4), f64::from(facts.ncpus)),
        (AttrId::integer(7), tmp),
        (AttrId::integer(8), it),
        (AttrId::integer(9), facts.max_swp as f64),
        (AttrId::integer(10), swp),
        (AttrId::integer(16), io),
        (AttrId::integer(24), f64::from(u8::from(!locked))),
    ];
    let finite = numbers.iter().filter(|(_, x)| x.is_finite());
    let mut values: Values = finite.map(|(id, x)| (*id, of_number(id.kind, *x))).collect();
    let hardware = format!("{} {}", facts.host_type, facts.model);
    for (number, text) in [(1, "Linux"), (4, hardware.trim()), (5, queue), (6, "/tmp")] {
        if !text.is_empty() {
            values.insert(AttrId::string(number), Value::Str(text.into()));
        }
    }
    let of = |id: &AttrId| numbers.iter().find(|(i, _)| i == id).map_or(0.0, |(_, x)| *x);
    (values, AVERAGED.iter().map(|(id, _)| of(id)).collect())
}

/// The attributes NLB_LIM_* of the site.
fn of_site(load: &HostLoad, facts: &HostFacts, maps: &NameMaps) -> Values {
    let all = maps.numbered(NLB).into_iter().flat_map(|m| m.attributes());
    let value = |a: &MapAttribute| {
        let value = resource_of(a).and_then(|name| resource(load, facts, name, a.id.kind));
        Some((a.id, value?))
    };
    all.filter_map(value).collect()
}

/// The resource that an attribute of a site is fed from.
fn resource_of(a: &MapAttribute) -> Option<&str> {
    let own = a.id.number >= FIRST_OF_SITE;
    let prefix = a.name.get(..PREFIX.len()).filter(|_| own)?;
    prefix.eq_ignore_ascii_case(PREFIX).then(|| a.name.get(PREFIX.len()..)).flatten()
}

/// The value of a resource of LIM as that kind; `None`: the host has none, or none of that kind.
fn resource(load: &HostLoad, facts: &HostFacts, name: &str, kind: Kind) -> Option<Value> {
    let same = |n: &str| n.eq_ignore_ascii_case(name);
    let built_in = INDEX_NAMES.iter().position(|n| same(n));
    let built_in = built_in.and_then(|at| load.index.get(at)).map(ToString::to_string);
    let pairs = load.external.iter().chain(&facts.shared);
    let found = || pairs.clone().find(|(n, _)| same(n)).map(|(_, v)| v.clone());
    // a Boolean resource has no value: it is 1 where it is
    let fixed = || {
        let mut all = facts.resources.iter();
        all.find(|(n, _)| same(n)).map(|(_, v)| v.clone().unwrap_or_else(|| "1".to_owned()))
    };
    let text = built_in.or_else(found).or_else(fixed)?;
    match kind {
        Kind::Str => Some(Value::Str(text.into())),
        Kind::Time => None,
        kind => {
            let number = text.parse::<f64>().ok().filter(|x| x.is_finite())?;
            Some(of_number(kind, number))
        }
    }
}
