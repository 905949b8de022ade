//! Means of the readings of a host over a window of time.

use std::collections::VecDeque;

/// Most readings that are kept of a host.
pub const MAX_READINGS: usize = 600;

/// The readings of one host, each a set of values in the same order.
#[derive(Clone, Debug, Default)]
pub(super) struct Readings {
    list: VecDeque<(u64, Vec<f64>)>,
}

impl Readings {
    /// Adds a reading at `now` and forgets those that are older than `window`; both microseconds.
    pub(super) fn add(&mut self, now: u64, window: u64, values: Vec<f64>) {
        self.list.push_back((now, values));
        let from = now.saturating_sub(window);
        let old = |l: &VecDeque<(u64, Vec<f64>)>| l.front().is_some_and(|(at, _)| *at < from);
        while old(&self.list) || self.list.len() > MAX_READINGS {
            self.list.pop_front();
        }
    }

    /// The mean of each value, in their order. A reading that is no finite number does not count;
    /// `None`: there is none.
    pub(super) fn means(&self) -> Vec<Option<f64>> {
        let Some((_, last)) = self.list.back() else { return Vec::new() };
        let mean = |at: usize| {
            let values = self.list.iter().filter_map(|(_, v)| v.get(at));
            let known = values.filter(|v| v.is_finite());
            let (sum, count) = known.fold((0.0, 0u32), |(sum, n), v| (sum + v, n + 1));
            (count > 0).then(|| sum / f64::from(count))
        };
        (0..last.len()).map(mean).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_is_that_of_the_window_with_the_newest_included() {
        let mut r = Readings::default();
        assert_eq!(r.means(), Vec::<Option<f64>>::new());
        r.add(0, 300, vec![10.0, 1.0]);
        assert_eq!(r.means(), [Some(10.0), Some(1.0)]);
        r.add(100, 300, vec![20.0, 1.0]);
        r.add(300, 300, vec![60.0, 4.0]);
        assert_eq!(r.means(), [Some(30.0), Some(2.0)]);
        r.add(301, 300, vec![40.0, 1.0]);
        assert_eq!(r.means(), [Some(40.0), Some(2.0)]);
        r.add(302, 300, vec![f64::NAN, f64::INFINITY]);
        assert_eq!(r.means(), [Some(40.0), Some(2.0)]);
        let mut none = Readings::default();
        none.add(0, 300, vec![f64::NAN]);
        assert_eq!(none.means(), [None]);
        for at in 0..2_000 {
            r.add(1_000 + at / 100, 300, vec![1.0]);
        }
        assert_eq!(r.list.len(), MAX_READINGS);
    }
}
