//! The objects of the database. The sources of an object's values are kept apart, so that a value
//! never depends on who wrote last: custom objects of a collector go before what the collector
//! itself measures, that before what administrators stored, and that before what LIM measures.

use super::average::Readings;
use super::packed::{Packed, Place, Pools};
use crate::conf::nlb_map::{FIRST_OF_SITE, NameMap, NameMaps};
use crate::conf::nlb_objects::{self, SET_BY_SERVER};
use crate::lang::nlb::Attributes;
use crate::model::nlb::{AttrId, NLB, Value};
use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

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

/// The sources in the order in which their values count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Source {
    Custom,
    Collector,
    Admin,
    Lim,
}

impl Source {
    const ALL: [Source; 4] = [Source::Custom, Source::Collector, Source::Admin, Source::Lim];
}

/// The place of an attribute's value in an object.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Spot {
    Nowhere,
    In(Source, Place),
    /// The server sets it.
    Set(AttrId),
}

/// One object.
#[derive(Debug, Default)]
pub(super) struct Object {
    name: Arc<str>,
    host: bool,
    /// The values of each [`Source`].
    sources: [Packed; 4],
    /// When the values of the collector are too old, microseconds; `None`: there are none.
    collected_until: Option<u64>,
    /// The result of the last sort applied.
    policy: Cell<Option<f64>>,
    report: Option<Report>,
    readings: Readings,
}

impl Object {
    /// The name, as its first writer spelt it.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The name, to be kept.
    pub(super) fn shared_name(&self) -> Arc<str> {
        self.name.clone()
    }

    /// The values that administrators stored.
    pub(super) fn stored(&self) -> Values {
        self.of(Source::Admin).iter().collect()
    }

    /// Administrators have stored values of it.
    pub(super) fn is_stored(&self) -> bool {
        !self.of(Source::Admin).is_empty()
    }

    fn of(&self, source: Source) -> &Packed {
        &self.sources[source as usize]
    }

    /// Puts values in the place of those of a source.
    fn set(&mut self, source: Source, values: Values, pools: &mut Pools) {
        self.sources[source as usize].set(values, pools);
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
        let of_collector = [Source::Custom, Source::Collector];
        of_collector.iter().any(|source| self.of(*source).place(id).is_some())
    }

    /// The host was measured by LIM.
    pub(super) fn measured(&self) -> bool {
        !self.of(Source::Lim).is_empty()
    }

    /// Seconds since the last report.
    pub(super) fn age(&self, now: u64) -> Option<f64> {
        let at = self.report.as_ref()?.at;
        Some(now.saturating_sub(at) as f64 / 1e6)
    }

    fn value(&self, id: AttrId) -> Option<Value> {
        match self.spot(id) {
            Spot::Nowhere => None,
            Spot::In(source, _) => self.of(source).get(id),
            Spot::Set(id) => self.set_by_server(id),
        }
    }

    fn set_by_server(&self, id: AttrId) -> Option<Value> {
        let [policy, stamp, from] = SET_BY_SERVER;
        let report = || self.report.as_ref();
        match id {
            id if id == policy => self.policy.get().filter(|x| x.is_finite()).map(Value::Float),
            id if id == stamp => report().map(|r| Value::Time(r.wall)),
            id if id == from => report().map(|r| Value::Str(r.from.as_str().into())),
            _ => None,
        }
    }

    /// The addresses of the lists of its attributes: objects with the same ones have each attribute
    /// at the same [`Spot`].
    pub(super) fn lists(&self) -> [usize; 4] {
        self.sources.each_ref().map(|source| source.ids().as_ptr() as usize)
    }

    /// The place of an attribute's value.
    pub(super) fn spot(&self, id: AttrId) -> Spot {
        if self.host && SET_BY_SERVER.contains(&id) {
            return Spot::Set(id);
        }
        let found = |source| Some(Spot::In(source, self.of(source).place(id)?));
        Source::ALL.into_iter().find_map(found).unwrap_or(Spot::Nowhere)
    }

    /// The number at a place.
    pub(super) fn number_in(&self, spot: Spot) -> Option<f64> {
        match spot {
            Spot::Nowhere => None,
            Spot::In(source, place) => self.of(source).number(place),
            Spot::Set(id) => self.set_by_server(id)?.number(),
        }
    }

    /// The text at a place, to be kept; none of those that the server sets.
    pub(super) fn shared_text_in(&self, spot: Spot) -> Option<Arc<str>> {
        match spot {
            Spot::In(source, place) => self.of(source).shared_text(place).cloned(),
            Spot::Nowhere | Spot::Set(_) => None,
        }
    }

    /// The text at a place.
    pub(super) fn text_in(&self, spot: Spot) -> Option<&str> {
        match spot {
            Spot::In(source, place) => self.of(source).text(place),
            Spot::Set(id) if id == SET_BY_SERVER[2] => {
                self.report.as_ref().map(|r| r.from.as_str())
            }
            Spot::Nowhere | Spot::Set(_) => None,
        }
    }

    /// The last sort yielded this for it.
    pub(super) fn sorted(&self, value: Option<f64>) {
        self.policy.set(value);
    }

    /// The value that counts of each attribute of the map.
    pub(super) fn values(&self, map: &NameMap) -> Values {
        let all = map.attributes().iter();
        all.filter_map(|a| Some((a.id, self.value(a.id)?))).collect()
    }
}

impl Attributes for Object {
    fn number(&self, id: AttrId) -> Option<f64> {
        self.number_in(self.spot(id))
    }

    fn text(&self, id: AttrId) -> Option<&str> {
        self.text_in(self.spot(id))
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
#[derive(Debug, Default)]
pub(super) struct Store {
    types: BTreeMap<u16, BTreeMap<String, Object>>,
    pools: Pools,
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

    /// The first object of a type whose name comes behind this one, or behind none.
    pub(super) fn next_of_type(&self, object_type: u16, after: Option<&str>) -> Option<&Object> {
        let all = self.types.get(&object_type)?;
        let Some(after) = after else { return all.values().next() };
        let behind = (Bound::Excluded(after.to_ascii_lowercase()), Bound::Unbounded);
        all.range(behind).next().map(|(_, object)| object)
    }

    /// An object by its name, in any case of letters.
    pub(super) fn find(&self, object_type: u16, name: &str) -> Option<&Object> {
        self.types.get(&object_type)?.get(&name.to_ascii_lowercase())
    }

    fn entry(&mut self, object_type: u16, name: &str) -> (&mut Object, &mut Pools) {
        let all = self.types.entry(object_type).or_default();
        let object = all.entry(name.to_ascii_lowercase()).or_insert_with(|| Object {
            name: name.into(),
            host: object_type == NLB,
            ..Object::default()
        });
        (object, &mut self.pools)
    }

    /// Applies what administrators changed.
    pub(super) fn change(&mut self, changes: Vec<ObjectChange>) {
        for change in changes {
            match change.values {
                Some(values) => {
                    let (object, pools) = self.entry(change.object_type, &change.name);
                    object.set(Source::Admin, values, pools);
                }
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
        let (object, pools) = self.entry(NLB, name);
        let (ids, readings) = reading.means;
        object.readings.add(report.at, reading.window, readings);
        let mut values = reading.of_lim;
        if object.collected_until.is_some_and(|until| report.at < until) {
            return object.set(Source::Lim, values, pools);
        }
        // a collector that is dead must not hide what LIM sees
        object.collected_until = None;
        object.set(Source::Collector, Values::new(), pools);
        object.set(Source::Custom, Values::new(), pools);
        values.extend(reading.values);
        for (id, mean) in ids.iter().zip(object.readings.means()) {
            values.extend(mean.map(|mean| (*id, nlb_objects::of_number(id.kind, mean))));
        }
        object.set(Source::Lim, values, pools);
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
        let (object, pools) = self.entry(object_type, name);
        object.collected_until = Some(report.at + SILENT * said.interval);
        object.set(Source::Collector, said.values, pools);
        object.set(Source::Custom, said.custom, pools);
        let of_lim = object.of(Source::Lim);
        if of_lim.ids().iter().any(|id| id.number < FIRST_OF_SITE) {
            let own = of_lim.iter().filter(|(id, _)| id.number >= FIRST_OF_SITE).collect();
            object.set(Source::Lim, own, pools);
        }
        object.report = Some(report);
    }

    /// Drops what was last reported before that time and is not stored.
    pub(super) fn expire(&mut self, before: u64) {
        for objects in self.types.values_mut() {
            objects
                .retain(|_, o| o.is_stored() || o.report.as_ref().is_none_or(|r| r.at >= before));
        }
    }

    /// The text of the file `objects` once `changes` are applied.
    pub(super) fn text(&self, maps: &NameMaps, changes: &[ObjectChange]) -> String {
        let key = |c: &ObjectChange| (c.object_type, c.name.to_ascii_lowercase());
        let changed: BTreeMap<_, _> = changes.iter().map(|c| (key(c), c)).collect();
        let mut all: BTreeMap<(u16, &str), (&str, Cow<'_, Values>)> = BTreeMap::new();
        for (object_type, objects) in &self.types {
            for (lower, object) in objects.iter().filter(|(_, object)| object.is_stored()) {
                all.insert((*object_type, lower), (&object.name, Cow::Owned(object.stored())));
            }
        }
        for ((object_type, lower), change) in &changed {
            let at = (*object_type, lower.as_str());
            match &change.values {
                Some(values) => {
                    let known = self.find(*object_type, lower);
                    let name = known.map_or(change.name.as_str(), Object::name);
                    all.insert(at, (name, Cow::Borrowed(values)));
                }
                None => _ = all.remove(&at),
            }
        }
        let mut out = String::new();
        for ((object_type, _), (name, values)) in all {
            if let Some(map) = maps.numbered(object_type).filter(|_| !values.is_empty()) {
                out.push_str(&nlb_objects::store(map, name, &values));
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::nlb::Kind;
    use proptest::prelude::*;

    /// The order that nlbserver(8) states.
    const ORDER: [Source; 4] = [Source::Custom, Source::Collector, Source::Admin, Source::Lim];

    fn id() -> impl Strategy<Value = AttrId> {
        let kinds = vec![Kind::Float, Kind::Integer, Kind::Str];
        (proptest::sample::select(kinds), 3_u32..7).prop_map(|(k, n)| AttrId::new(k, n))
    }

    fn values() -> impl Strategy<Value = Values> {
        let value = |(id, n): (AttrId, i64)| match id.kind {
            Kind::Str => (id, Value::Str(n.to_string().into())),
            kind => (id, nlb_objects::of_number(kind, n as f64)),
        };
        proptest::collection::vec((id(), 0_i64..9).prop_map(value), 0..9)
            .prop_map(|all| all.into_iter().collect())
    }

    proptest! {
        #[test]
        fn the_first_source_that_has_an_attribute_gives_its_value(
            rounds in proptest::collection::vec([values(), values(), values(), values()], 1..4),
            host: bool,
        ) {
            let mut pools = Pools::default();
            let mut object = Object { host, ..Object::default() };
            for round in rounds {
                for (source, values) in ORDER.into_iter().zip(&round) {
                    object.set(source, values.clone(), &mut pools);
                }
                for number in 2..8 {
                    for kind in [Kind::Float, Kind::Integer, Kind::Str] {
                        let id = AttrId::new(kind, number);
                        let hidden = host && SET_BY_SERVER.contains(&id);
                        let first = || round.iter().find_map(|values| values.get(&id));
                        let wanted = if hidden { None } else { first() };
                        prop_assert_eq!(object.value(id), wanted.cloned());
                        prop_assert_eq!(object.number(id), wanted.and_then(Value::number));
                        prop_assert_eq!(object.text(id), wanted.and_then(Value::text));
                        let reported = round[..2].iter().any(|values| values.contains_key(&id));
                        prop_assert_eq!(object.reported(id), reported);
                    }
                }
                prop_assert_eq!(&object.stored(), &round[2]);
            }
        }
    }
}
