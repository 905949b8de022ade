//! Environments and scripts by their place in mbatchd's spool: what start orders refer to.
//!
//! Invariant: the bytes at a place never change while an epoch lasts, so a place is a name.

use crate::model::job::SpoolRef;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes kept for starts to come; elements of an array share theirs.
pub const BLOBS_MAX: usize = 16 << 20;

/// A bounded cache; what was used longest ago goes first.
#[derive(Debug, Default)]
pub struct Blobs {
    kept: BTreeMap<SpoolRef, (u64, Arc<Vec<u8>>)>,
    bytes: usize,
    clock: u64,
}

impl Blobs {
    /// The bytes at a place; a place of length 0 is always known.
    pub fn get(&mut self, at: SpoolRef) -> Option<Arc<Vec<u8>>> {
        if at.len == 0 {
            return Some(Arc::default());
        }
        self.clock += 1;
        let (used, data) = self.kept.get_mut(&at)?;
        *used = self.clock;
        Some(data.clone())
    }

    pub fn put(&mut self, at: SpoolRef, data: Vec<u8>) {
        self.clock += 1;
        self.bytes += data.len();
        if let Some((_, old)) = self.kept.insert(at, (self.clock, Arc::new(data))) {
            self.bytes -= old.len();
        }
        while self.bytes > BLOBS_MAX && self.kept.len() > 1 {
            let oldest = self.kept.iter().min_by_key(|(_, (used, _))| *used).map(|(at, _)| *at);
            if let Some((_, data)) = oldest.and_then(|at| self.kept.remove(&at)) {
                self.bytes -= data.len();
            }
        }
    }

    pub fn clear(&mut self) {
        (self.kept, self.bytes) = (BTreeMap::new(), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(n: u64, len: usize) -> SpoolRef {
        SpoolRef { spool: 1, at: n, len: len as u32 }
    }

    #[test]
    fn the_cache_is_bounded_and_keeps_what_is_used() {
        let mut b = Blobs::default();
        assert!(b.get(SpoolRef::default()).is_some());
        let size = BLOBS_MAX / 4;
        for n in 0..4 {
            b.put(at(n, size), vec![n as u8; size]);
        }
        assert!(b.get(at(0, size)).is_some());
        b.put(at(9, size), vec![9; size]);
        assert!(b.get(at(0, size)).is_some() && b.get(at(1, size)).is_none());
        assert!(b.bytes <= BLOBS_MAX);
        b.put(at(10, BLOBS_MAX * 2), vec![0; BLOBS_MAX * 2]);
        assert_eq!(b.kept.len(), 1);
    }
}
