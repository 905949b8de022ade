//! Maps by numbers of our own: job IDs, symbols, connections. Nobody outside chooses enough of
//! them to make buckets collide, so they need not be hashed by a keyed function, which is several
//! times slower. What users name is hashed by the standard one.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map by numbers of our own.
pub type IdMap<K, V> = HashMap<K, V, BuildHasherDefault<IdHasher>>;

/// Multiplies and rotates.
#[derive(Clone, Copy, Debug, Default)]
pub struct IdHasher(u64);

/// Odd, without a pattern in its bits.
const FACTOR: u64 = 0xf135_7aea_2e62_a9c5;

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|b| self.write_u64(u64::from(*b)));
    }
    fn write_u32(&mut self, n: u32) {
        self.write_u64(u64::from(n));
    }
    fn write_u64(&mut self, n: u64) {
        self.0 = self.0.wrapping_add(n).wrapping_mul(FACTOR);
    }
    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }
    fn finish(&self) -> u64 {
        // the best bits are the upper ones, the table takes the lower ones
        self.0.rotate_left(26)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::BuildHasher;

    #[test]
    fn neighbours_fall_apart() {
        let build = BuildHasherDefault::<IdHasher>::default();
        for (stride, bits) in [(1u32, 10), (2, 10), (64, 10), (1000, 10), (1 << 16, 10)] {
            let mut low = std::collections::BTreeSet::new();
            let mut top = std::collections::BTreeSet::new();
            for i in 0..1024u32 {
                let h = build.hash_one(i.wrapping_mul(stride));
                low.insert(h & ((1 << bits) - 1));
                top.insert(h >> 57);
            }
            assert!(low.len() > 500 && top.len() > 60, "{stride}: {} {}", low.len(), top.len());
        }
    }
}
