//! The advance reservations (LSF_RESERVATION, LSF_RESERVATION_END), and the numbers of those to
//! come.

use crate::model::reservation::Reservation;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Debug, Default)]
pub struct Reservations {
    /// The reservations by ID.
    all: BTreeMap<String, Arc<Reservation>>,
    /// The number of the next reservation of each owner that had one.
    next: BTreeMap<String, u32>,
}

impl Reservations {
    pub fn get(&self, id: &str) -> Option<&Arc<Reservation>> {
        self.all.get(id)
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// All, by ID.
    pub fn each(&self) -> impl Iterator<Item = &Arc<Reservation>> {
        self.all.values()
    }

    /// The numbers of the next reservations, by owner.
    pub fn numbers(&self) -> impl Iterator<Item = (&str, u32)> {
        self.next.iter().map(|(owner, next)| (owner.as_str(), *next))
    }

    /// The ID of the next reservation of an owner that gets no name.
    pub fn next_id(&self, owner: &str) -> String {
        format!("{owner}#{}", self.next.get(owner).copied().unwrap_or(0))
    }

    pub(super) fn put(&mut self, r: &Reservation) {
        if let Some((owner, number)) = r.id.rsplit_once('#')
            && let Ok(number) = number.parse::<u32>()
        {
            self.number_from(owner, number.saturating_add(1));
        }
        self.all.insert(r.id.clone(), Arc::new(r.clone()));
    }

    pub(super) fn end(&mut self, id: &str) {
        self.all.remove(id);
    }

    /// The next number of an owner is not below this one.
    pub(super) fn number_from(&mut self, owner: &str, next: u32) {
        let known = self.next.entry(owner.to_string()).or_default();
        *known = next.max(*known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_an_owner_are_not_given_twice() {
        let mut all = Reservations::default();
        assert_eq!(all.next_id("ann"), "ann#0");
        for id in ["ann#0", "ann#1", "night", "a#b#7"] {
            all.put(&Reservation { id: id.to_string(), ..Reservation::default() });
        }
        all.end("ann#1");
        assert_eq!((all.next_id("ann"), all.next_id("bob")), ("ann#2".into(), "bob#0".into()));
        assert_eq!(all.next_id("a#b"), "a#b#8");
        all.number_from("ann", 1);
        assert_eq!(all.next_id("ann"), "ann#2");
        assert_eq!(
            all.each().map(|r| r.id.as_str()).collect::<Vec<_>>(),
            ["a#b#7", "ann#0", "night"]
        );
    }
}
