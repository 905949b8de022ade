//! Maps by numbers of our own: job IDs, symbols, connections. Nobody outside chooses enough of them
//! to make buckets collide, so they need not be hashed by a keyed function, which is several times
//! slower. Names that users choose are hashed by the standard function.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map by numbers of our own.
pub type IdMap<K, V> = HashMap<K, V, BuildHasherDefault<IdHasher>>;

/// Multiplies and rotates. Numbers that follow each other are neighbours in the table, sixteen by
/// sixteen: jobs are mostly gone over in the order of their IDs.
#[derive(Clone, Copy, Debug, Default)]
pub struct IdHasher {
    before: u64,
    last: u64,
}

/// Odd, without a pattern in its bits.
const FACTOR: u64 = 0xf135_7aea_2e62_a9c5;
/// Bits of a number that tell it from its neighbours.
const NEAR: u32 = 4;

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|b| self.write_u64(u64::from(*b)));
    }
    fn write_u32(&mut self, n: u32) {
        self.write_u64(u64::from(n));
    }
    fn write_u64(&mut self, n: u64) {
        self.before = self.before.wrapping_add(self.last).wrapping_mul(FACTOR);
        self.last = n;
    }
    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }
    fn finish(&self) -> u64 {
        let near = self.last & ((1 << NEAR) - 1);
        let far = self.before.wrapping_add(self.last >> NEAR).wrapping_mul(FACTOR);
        // the best bits are the upper ones; the table takes its place from the lower ones and a
        // tag, by which neighbours are told apart, from the top
        (far.rotate_left(26) << NEAR | near) ^ near << 59
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::BuildHasher;

    #[test]
    fn numbers_fall_apart_and_neighbours_stay_together() {
        let build = BuildHasherDefault::<IdHasher>::default();
        for stride in [1u32, 2, 16, 64, 1000, 1 << 16] {
            // 1,024 numbers in a table of 2,048 places, which are looked through by sixteen
            let mut groups = [0u32; 128];
            let mut tags = std::collections::BTreeSet::new();
            for i in 0..1024u32 {
                let h = build.hash_one(i.wrapping_mul(stride));
                groups[(h >> 4) as usize % 128] += 1;
                tags.insert(h >> 57);
            }
            let used = groups.iter().filter(|n| **n > 0).count();
            assert!(used > 45 && tags.len() > 50, "{stride}: {used} {}", tags.len());
            assert!(groups.iter().all(|n| *n <= 96), "{stride}: {groups:?}");
        }
        let near: Vec<u64> = (0..16u32).map(|n| build.hash_one(4096 + n) % (1 << 32)).collect();
        assert!(near.windows(2).all(|w| w[1] == w[0] + 1), "{near:?}");
        // of two numbers, both count
        let all: std::collections::BTreeSet<u64> = (0..64u32)
            .flat_map(|a| (0..64u32).map(move |b| (a, b)))
            .map(|k| build.hash_one(k))
            .collect();
        assert_eq!(all.len(), 64 * 64);
    }
}
