//! Elements of an array that nothing has happened to yet.

/// Untouched elements of an array: a bit per element in the order of its list.
#[derive(Debug, Default)]
pub struct Untouched {
    bits: Vec<u64>,
    left: u32,
    /// No set bit below this word.
    low: usize,
}

impl Untouched {
    pub fn new(count: u32) -> Self {
        let mut bits = vec![u64::MAX; (count as usize).div_ceil(64)];
        if let Some(last) = bits.last_mut()
            && !count.is_multiple_of(64)
        {
            *last = (1u64 << (count % 64)) - 1;
        }
        Untouched { bits, left: count, low: 0 }
    }
    pub fn left(&self) -> u32 {
        self.left
    }
    pub fn has(&self, pos: u32) -> bool {
        self.bits.get(pos as usize / 64).is_some_and(|w| w >> (pos % 64) & 1 == 1)
    }
    /// Clears a bit; true if it was set.
    pub(super) fn take(&mut self, pos: u32) -> bool {
        if !self.has(pos) {
            return false;
        }
        self.bits[pos as usize / 64] &= !(1u64 << (pos % 64));
        self.left -= 1;
        while self.low < self.bits.len() && self.bits[self.low] == 0 {
            self.low += 1;
        }
        true
    }
    /// Lowest set bit.
    pub fn first(&self) -> Option<u32> {
        let word = *self.bits.get(self.low)?;
        (word != 0).then(|| (self.low * 64) as u32 + word.trailing_zeros())
    }
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let words = self.bits.iter().enumerate().skip(self.low);
        words.flat_map(|(i, &w)| {
            (0..64).filter(move |b| w >> b & 1 == 1).map(move |b| (i * 64) as u32 + b)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fresh_counts_and_walks() {
        for n in [1u32, 63, 64, 65, 130] {
            let mut f = Untouched::new(n);
            assert_eq!(f.left(), n);
            assert_eq!(f.iter().count() as u32, n);
            assert!(f.take(0) && !f.take(0) && !f.has(0));
            assert_eq!(f.first(), (n > 1).then_some(1));
            for i in 1..n {
                assert!(f.take(i));
            }
            assert_eq!((f.left(), f.first()), (0, None));
            assert!(!f.has(n));
        }
    }
}
