//! A value for each of some ids, found by the id without a search: ids are numbers from zero up
//! ([`crate::batch::state::names`]), of which nearly all have a value sooner or later.

use crate::batch::state::names::Id;
use std::marker::PhantomData;

/// Values by id.
#[derive(Debug)]
pub struct IdVec<I, T> {
    values: Vec<Option<T>>,
    ids: PhantomData<I>,
}

impl<I, T> Default for IdVec<I, T> {
    fn default() -> Self {
        IdVec { values: Vec::new(), ids: PhantomData }
    }
}

impl<I: Id, T> IdVec<I, T> {
    pub fn get(&self, id: I) -> Option<&T> {
        self.values.get(id.index())?.as_ref()
    }

    /// The value of an id; a new one where there is none. For ids that were given to a name.
    pub fn or_default(&mut self, id: I) -> &mut T
    where
        T: Default,
    {
        let at = id.index();
        if self.values.len() <= at {
            self.values.resize_with(at + 1, || None);
        }
        self.values[at].get_or_insert_default()
    }

    /// Ids and values in the order of the ids.
    pub fn iter(&self) -> impl Iterator<Item = (I, &T)> + Clone {
        let all = self.values.iter().enumerate();
        all.filter_map(|(at, value)| Some((I::from_index(at), value.as_ref()?)))
    }

    /// Ids and values in the order of the ids, from an id on.
    pub fn iter_from(&self, first: I) -> impl Iterator<Item = (I, &T)> + Clone {
        let all = self.values.iter().enumerate().skip(first.index());
        all.filter_map(|(at, value)| Some((I::from_index(at), value.as_ref()?)))
    }

    /// Values in the order of their ids.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.values.iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::state::names::UserId;

    #[test]
    fn ids_without_a_value_are_passed_over() {
        let mut all: IdVec<UserId, u32> = IdVec::default();
        *all.or_default(UserId::from_index(3)) += 5;
        *all.or_default(UserId::from_index(1)) += 2;
        *all.or_default(UserId::from_index(3)) += 1;
        let listed: Vec<(usize, u32)> = all.iter().map(|(id, n)| (id.index(), *n)).collect();
        assert_eq!(listed, [(1, 2), (3, 6)]);
        assert!(all.values().eq([&2, &6]));
        let from = |at| all.iter_from(UserId::from_index(at)).map(|(id, _)| id.index());
        assert_eq!([from(0).count(), from(1).count(), from(4).count()], [2, 2, 0]);
        assert_eq!(from(2).collect::<Vec<_>>(), [3]);
        let of = |at| all.get(UserId::from_index(at)).copied();
        assert_eq!([of(0), of(1), of(3), of(4)], [None, Some(2), Some(6), None]);
    }
}
