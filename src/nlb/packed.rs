//! The values of one source of an object, packed: 8 bytes a number, 16 a text. Most hosts have the
//! same attributes from a source, and many have the same texts: each list of attributes and each
//! text is there once, in a [`Pool`].

use crate::model::nlb::{AttrId, Kind, Value};
use std::collections::HashSet;
use std::hash::Hash;
use std::mem::size_of_val;
use std::sync::Arc;

/// Bytes that a pool may hold for nobody, besides as many as it holds for somebody.
const SPARE: usize = 1 << 20;

/// Things of which equal ones are there once.
#[derive(Debug)]
struct Pool<T: ?Sized> {
    all: HashSet<Arc<T>>,
    /// Bytes in use when it was last looked through.
    used: usize,
    /// Bytes added since.
    added: usize,
}

impl<T: ?Sized> Default for Pool<T> {
    fn default() -> Self {
        Pool { all: HashSet::new(), used: 0, added: 0 }
    }
}

impl<T: ?Sized + Eq + Hash> Pool<T>
where
    for<'a> Arc<T>: From<&'a T>,
{
    /// The shared one that equals `wanted`.
    fn shared(&mut self, wanted: &T) -> Arc<T> {
        if let Some(found) = self.all.get(wanted) {
            return found.clone();
        }
        if self.added > self.used + SPARE {
            self.all.retain(|one| Arc::strong_count(one) > 1);
            self.used = self.all.iter().map(|one| size_of_val(&**one)).sum();
            self.added = 0;
        }
        let new: Arc<T> = Arc::from(wanted);
        self.added += size_of_val(wanted);
        self.all.insert(new.clone());
        new
    }
}

/// Lists and texts that the values of all objects share.
#[derive(Debug, Default)]
pub(super) struct Pools {
    ids: Pool<[AttrId]>,
    texts: Pool<str>,
}

/// The place of a value among those of its source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Place {
    Float(usize),
    Whole(usize),
    Text(usize),
}

/// Values by attribute.
#[derive(Debug, Default)]
pub(super) struct Packed {
    /// In their order, which is by kind first: floats, integers, strings, times.
    ids: Arc<[AttrId]>,
    /// The bits of floats, integers and times.
    numbers: Box<[u64]>,
    texts: Box<[Arc<str>]>,
}

impl Packed {
    /// Puts values in the place of these. They come in the order of their identities, and have the
    /// kinds of these.
    pub(super) fn set<V>(&mut self, values: V, pools: &mut Pools)
    where
        V: IntoIterator<Item = (AttrId, Value), IntoIter: ExactSizeIterator>,
    {
        let values = values.into_iter();
        let mut ids = Vec::with_capacity(values.len());
        let mut numbers = Vec::with_capacity(values.len());
        let mut texts: Vec<Arc<str>> = Vec::new();
        for (id, value) in values {
            match (id.kind, value) {
                (Kind::Float, Value::Float(x)) => numbers.push(x.to_bits()),
                (Kind::Integer, Value::Integer(n)) | (Kind::Time, Value::Time(n)) => {
                    numbers.push(n.cast_unsigned());
                }
                (Kind::Str, Value::Str(text)) => {
                    let before = self.texts.get(texts.len()).filter(|before| **before == text);
                    texts.push(before.cloned().unwrap_or_else(|| pools.texts.shared(&text)));
                }
                _ => continue,
            }
            ids.push(id);
        }
        if *ids != *self.ids {
            self.ids = pools.ids.shared(&ids);
        }
        (self.numbers, self.texts) = (numbers.into(), texts.into());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The attributes. As long as it lives, the address of the list tells it from all others.
    pub(super) fn ids(&self) -> &Arc<[AttrId]> {
        &self.ids
    }

    /// The place of an attribute's value.
    pub(super) fn place(&self, id: AttrId) -> Option<Place> {
        let at = self.ids.binary_search(&id).ok()?;
        Some(self.place_at(at, id))
    }

    /// The place of the value of the attribute that is at `at` in the list.
    fn place_at(&self, at: usize, id: AttrId) -> Place {
        let texts = self.texts.len();
        match id.kind {
            Kind::Float => Place::Float(at),
            Kind::Integer => Place::Whole(at),
            Kind::Str => Place::Text((at + texts).saturating_sub(self.before_times())),
            Kind::Time => Place::Whole(at.saturating_sub(texts)),
        }
    }

    /// The values that are no times.
    fn before_times(&self) -> usize {
        self.ids.partition_point(|id| id.kind < Kind::Time)
    }

    /// The number at a place; `None`: there is a text.
    pub(super) fn number(&self, place: Place) -> Option<f64> {
        match place {
            Place::Float(at) => self.numbers.get(at).map(|bits| f64::from_bits(*bits)),
            Place::Whole(at) => self.numbers.get(at).map(|bits| bits.cast_signed() as f64),
            Place::Text(_) => None,
        }
    }

    /// The text at a place.
    pub(super) fn text(&self, place: Place) -> Option<&str> {
        self.shared_text(place).map(|text| &**text)
    }

    /// The text at a place, to be kept.
    pub(super) fn shared_text(&self, place: Place) -> Option<&Arc<str>> {
        match place {
            Place::Text(at) => self.texts.get(at),
            _ => None,
        }
    }

    /// The value of an attribute.
    pub(super) fn get(&self, id: AttrId) -> Option<Value> {
        self.value(id, self.place(id)?)
    }

    fn value(&self, id: AttrId, place: Place) -> Option<Value> {
        let whole = |at: usize| self.numbers.get(at).map(|bits| bits.cast_signed());
        match place {
            Place::Float(_) => self.number(place).map(Value::Float),
            Place::Whole(at) if id.kind == Kind::Time => whole(at).map(Value::Time),
            Place::Whole(at) => whole(at).map(Value::Integer),
            Place::Text(at) => self.texts.get(at).cloned().map(Value::Str),
        }
    }

    /// All values in the order of their identities.
    pub(super) fn iter(&self) -> impl Iterator<Item = (AttrId, Value)> {
        let all = self.ids.iter().enumerate();
        all.filter_map(|(at, id)| Some((*id, self.value(*id, self.place_at(at, *id))?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn some(text: &str) -> BTreeMap<AttrId, Value> {
        let time = AttrId::new(Kind::Time, 9_000);
        [
            (AttrId::float(1), Value::Float(-0.5)),
            (AttrId::float(u32::MAX), Value::Float(f64::MAX)),
            (AttrId::integer(1), Value::Integer(i64::MAX - 1)),
            (AttrId::string(1), Value::Str("Linux".into())),
            (AttrId::string(2), Value::Str(text.into())),
            (time, Value::Time(-7)),
        ]
        .into()
    }

    #[test]
    fn packed_values_come_back_as_they_were_given() {
        let mut pools = Pools::default();
        let mut packed = Packed::default();
        for given in [some("a"), some("b"), BTreeMap::new(), some("a")] {
            packed.set(given.clone(), &mut pools);
            assert_eq!(packed.iter().collect::<BTreeMap<_, _>>(), given);
            assert_eq!(packed.is_empty(), given.is_empty());
            for (id, value) in &given {
                assert_eq!(packed.get(*id).as_ref(), Some(value));
                let place = packed.place(*id).unwrap();
                assert_eq!(packed.number(place), value.number());
                assert_eq!(packed.text(place), value.text());
            }
            assert_eq!(packed.get(AttrId::float(2)), None);
        }
    }

    #[test]
    fn objects_with_the_same_attributes_and_texts_share_them() {
        let mut pools = Pools::default();
        let mut all = [Packed::default(), Packed::default()];
        all.iter_mut().for_each(|packed| packed.set(some("a"), &mut pools));
        let [a, b] = all;
        assert!(Arc::ptr_eq(&a.ids, &b.ids));
        assert!(a.texts.iter().zip(&b.texts).all(|(a, b)| Arc::ptr_eq(a, b)));
    }

    #[test]
    fn texts_that_nobody_has_any_more_take_a_bounded_room() {
        let mut pools = Pools::default();
        let mut packed = Packed::default();
        for n in 0..5_000 {
            packed.set(some(&format!("{n:04000}")), &mut pools);
        }
        assert!(pools.texts.all.len() < 300, "{}", pools.texts.all.len());
        assert_eq!(packed.get(AttrId::string(1)), Some(Value::Str("Linux".into())));
    }
}
