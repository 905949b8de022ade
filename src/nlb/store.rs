//! The objects of the database. The sources of an object's values are kept apart, so that a value
//! never depends on who wrote last: custom objects of a collector go before what the collector
//! itself measures, that before what administrators stored, and that before what LIM measures.

use super::average::Readings;
use crate::conf::nlb_map::{FIRST_OF_SITE, NameMap, NameMaps};
use crate::conf::nlb_objects::{self, SET_BY_SERVER};
use crate::lang::nlb::Attributes;
use crate::model::nlb::{AttrId, NLB, Value};
use std::collections::BTreeMap;

/// Values by attribute.
pub(super) type Values = BTreeMap<AttrId, Value>;

/// The last report about a host.
#[derive(Clone, Debug)]
pub(super) struct Report {
    /// When, microseconds of the server's monotonic clock.
    pub(super) at: u64,
    /// When, seconds since 1970.
    pub(super) wall: i64,
    /// The host that sent it.
    pub(super) from: String,
}

/// A reading of LIM about a host.
pub(super) struct Measured<'a> {
    /// The attributes that a collector of the host measures as well.
    pub(super) values: Values,
    /// The attributes that LIM alone has.
    pub(super) of_lim: Values,
    /// The attributes of means, and the readings that these are made of.
    pub(super) means: (&'a [AttrId], Vec<f64>),
    /// The window of means, microseconds.
    pub(super) window: u64,
}

/// The report of a collector about its host.
#[derive(Default)]
pub(super) struct Collected {
    pub(super) values: Values,
    pub(super) custom: Values,
    /// Microseconds until the next one.
    pub(super) interval: u64,
}

/// Intervals after which a collector that is silent no longer hides what LIM measures.
const SILENT: u64 = 3;

/// One object.
#[derive(Clone, Debug, Default)]
pub(super) struct Object {
    name: String,
    host: bool,
    custom: Values,
    collector: Values,
    admin: Values,
    lim: Values,
    /// When the values of the collector are too old, microseconds; `None`: there are none.
    collected_until: Option<u64>,
    /// The result of the last sort applied.
    policy: Option<f64>,
    report: Option<Report>,
    readings: Readings,
}

impl Object {
    /// The name, as its first writer spelt it.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The values that administrators stored.
    pub(super) fn stored(&self) -> &Values {
        &self.admin
    }

    /// The last report about it.
    pub(super) fn report(&self) -> Option<&Report> {
        self.report.as_ref()
    }

    /// A collector has reported the host.
    pub(super) fn collected(&self) -> bool {
        self.collected_until.is_some()
    }

    /// A value that its collector reports goes before that of administrators.
    pub(super) fn reported(&self, id: AttrId) -> bool {
        self.custom.contains_key(&id) || self.collector.contains_key(&id)
    }

    fn found(&self, id: AttrId) -> Option<&Value> {
        let reported = || self.collector.get(&id);
        let stored = || self.admin.get(&id).or_else(|| self.lim.get(&id));
        self.custom.get(&id).or_else(reported).or_else(stored)
    }

    /// The host was measured by LIM.
    pub(super) fn measured(&self) -> bool {
        !self.lim.is_empty()
    }

    /// Seconds since the last report.
    pub(super) fn age(&self, now: u64) -> Option<f64> {
        let at = self.report.as_ref()?.at;
        Some(now.saturating_sub(at) as f64 / 1e6)
    }

    fn value(&self, id: AttrId) -> Option<Value> {
        let [policy, stamp, from] = SET_BY_SERVER;
        match id {
            _ if !self.host => self.found(id).cloned(),
            id if id == policy => self.policy.filter(|x| x.is_finite()).map(Value::Float),
            id if id == stamp => self.report.as_ref().map(|r| Value::Time(r.wall)),
            id if id == from => self.report.as_ref().map(|r| Value::Str(r.from.as_str().into())),
            id => self.found(id).cloned(),
        }
    }

    /// The value that counts of each attribute of the map.
    pub(super) fn values(&self, map: &NameMap) -> Values {
        let all = map.attributes().iter();
        all.filter_map(|a| Some((a.id, self.value(a.id)?))).collect()
    }
}

impl Attributes for Object {
    fn number(&self, id: AttrId) -> Option<f64> {
        if self.host && SET_BY_SERVER.contains(&id) {
            return self.value(id).and_then(|v| v.number());
        }
        self.found(id)?.number()
    }

    fn text(&self, id: AttrId) -> Option<&str> {
        if self.host && id == SET_BY_SERVER[2] {
            return self.report.as_ref().map(|r| r.from.as_str());
        }
        self.found(id)?.text()
    }
}

/// A change of what administrators stored of one object; `values` `None`: it is deleted.
#[derive(Clone, Debug)]
pub(super) struct ObjectChange {
    pub(super) object_type: u16,
    pub(super) name: String,
    pub(super) values: Option<Values>,
}

/// All objects, by type and by name in lower case.
#[derive(Clone, Debug, Default)]
pub(super) struct Store {
    types: BTreeMap<u16, BTreeMap<String, Object>>,
}

impl Store {
    /// The objects of a type in the order of their names.
    pub(super) fn of_type(&self, object_type: u16) -> impl Iterator<Item = &Object> {
        self.types.get(&object_type).into_iter().flat_map(BTreeMap::values)
    }

    /// The number of objects of a type.
    pub(super) fn count(&self, object_type: u16) -> usize {
        self.types.get(&object_type).map_or(0, BTreeMap::len)
    }

    /// An object by its name, in any case of letters.
    pub(super) fn find(&self, object_type: u16, name: &str) -> Option<&Object> {
        self.types.get(&object_type)?.get(&name.to_ascii_lowercase())
    }

    fn entry(&mut self, object_type: u16, name: &str) -> &mut Object {
        let all = self.types.entry(object_type).or_default();
        all.entry(name.to_ascii_lowercase()).or_insert_with(|| Object {
            name: name.to_owned(),
            host: object_type == NLB,
            ..Object::default()
        })
    }

    /// Applies what administrators changed.
    pub(super) fn change(&mut self, changes: Vec<ObjectChange>) {
        for change in changes {
            match change.values {
                Some(values) => self.entry(change.object_type, &change.name).admin = values,
                None => {
                    let all = self.types.entry(change.object_type).or_default();
                    all.remove(&change.name.to_ascii_lowercase());
                }
            }
        }
    }

    /// LIM has measured a host: this replaces what it said before. Where a collector of the host
    /// reports, LIM's own attributes alone count, and this is no report.
    pub(super) fn measured(&mut self, name: &str, reading: Measured<'_>, report: Report) {
        let object = self.entry(NLB, name);
        let (ids, readings) = reading.means;
        object.readings.add(report.at, reading.window, readings);
        object.lim = reading.of_lim;
        if object.collected_until.is_some_and(|until| report.at < until) {
            return;
        }
        // a collector that is dead must not hide what LIM sees
        object.collected_until = None;
        (object.collector, object.custom) = (Values::new(), Values::new());
        object.lim.extend(reading.values);
        for (id, mean) in ids.iter().zip(object.readings.means()) {
            object.lim.extend(mean.map(|mean| (*id, nlb_objects::of_number(id.kind, mean))));
        }
        object.report = Some(report);
    }

    /// The collector of a host reports an object that has the host's name.
    pub(super) fn collected(
        &mut self,
        object_type: u16,
        name: &str,
        said: Collected,
        report: Report,
    ) {
        let object = self.entry(object_type, name);
        object.collected_until = Some(report.at + SILENT * said.interval);
        (object.collector, object.custom) = (said.values, said.custom);
        object.lim.retain(|id, _| id.number >= FIRST_OF_SITE);
        object.report = Some(report);
    }

    /// Drops what was last reported before that time and is not stored.
    pub(super) fn expire(&mut self, before: u64) {
        for objects in self.types.values_mut() {
            objects.retain(|_, o| {
                !o.admin.is_empty() || o.report.as_ref().is_none_or(|r| r.at >= before)
            });
        }
    }

    /// The last sort yielded this for the host.
    pub(super) fn sorted(&mut self, name: &str, value: Option<f64>) {
        if let Some(object) = self.types.get_mut(&NLB).and_then(|all| all.get_mut(name)) {
            object.policy = value;
        }
    }

    /// The text of the file `objects` once `changes` are applied.
    pub(super) fn text(&self, maps: &NameMaps, changes: &[ObjectChange]) -> String {
        let key = |c: &ObjectChange| (c.object_type, c.name.to_ascii_lowercase());
        let changed: BTreeMap<_, _> = changes.iter().map(|c| (key(c), c)).collect();
        let mut all: BTreeMap<(u16, &str), (&str, &Values)> = BTreeMap::new();
        for (object_type, objects) in &self.types {
            for (lower, object) in objects {
                all.insert((*object_type, lower), (&object.name, &object.admin));
            }
        }
        for ((object_type, lower), change) in &changed {
            let at = (*object_type, lower.as_str());
            match &change.values {
                Some(values) => {
                    let name = all.get(&at).map_or(change.name.as_str(), |(name, _)| *name);
                    all.insert(at, (name, values));
                }
                None => _ = all.remove(&at),
            }
        }
        let mut out = String::new();
        for ((object_type, _), (name, values)) in all {
            if let Some(map) = maps.numbered(object_type).filter(|_| !values.is_empty()) {
                out.push_str(&nlb_objects::store(map, name, values));
            }
        }
        out
    }
}
