//! One stable sort for every list that is not hot: the standard one is compiled anew, at some
//! 3 KB, for each type and comparison it is used with.

use std::cmp::Ordering;

/// Sorts by `compare`; equal ones keep their order.
pub fn sort_by<T>(list: &mut Vec<T>, compare: impl Fn(&T, &T) -> Ordering) {
    let places = places(list.len(), &|a, b| compare(&list[a as usize], &list[b as usize]));
    let mut from: Vec<Option<T>> = list.drain(..).map(Some).collect();
    list.extend(places.into_iter().filter_map(|at| from[at as usize].take()));
}

/// Sorts by what `key` makes of each; equal ones keep their order.
pub fn sort_by_key<T, K: Ord>(list: &mut Vec<T>, key: impl Fn(&T) -> K) {
    sort_by(list, |a, b| key(a).cmp(&key(b)));
}

/// The old place of the element for each new place.
fn places(len: usize, compare: &dyn Fn(u32, u32) -> Ordering) -> Vec<u32> {
    let mut places: Vec<u32> = (0..len as u32).collect();
    places.sort_by(|a, b| compare(*a, *b));
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sort_gives_the_order_of_the_standard_one(
            list in prop::collection::vec((0u8..9, any::<u16>()), 0..60),
        ) {
            let mut want = list.clone();
            want.sort_by_key(|x| x.0);
            let mut got = list;
            sort_by_key(&mut got, |x| x.0);
            prop_assert_eq!(got, want);
        }
    }
}
