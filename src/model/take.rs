//! Takes entries out of a map.

use std::collections::BTreeMap;

/// Takes the entries of a map for which `is` holds, in their order.
pub fn take_where<K: Ord + Clone, V>(
    map: &mut BTreeMap<K, V>,
    is: impl Fn(&K, &V) -> bool,
) -> Vec<(K, V)> {
    let keys: Vec<K> = map.iter().filter(|(k, v)| is(k, v)).map(|(k, _)| k.clone()).collect();
    keys.iter().filter_map(|key| map.remove_entry(key)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_that_are_taken_are_no_longer_in_the_map() {
        let mut map: BTreeMap<u8, char> = [(1, 'a'), (2, 'b'), (3, 'a')].into();
        assert_eq!(take_where(&mut map, |_, v| *v == 'a'), [(1, 'a'), (3, 'a')]);
        assert_eq!(map, [(2, 'b')].into());
        assert!(take_where(&mut map, |k, _| *k == 1).is_empty());
    }
}
