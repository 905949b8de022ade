//! The elements that -J names with the name of an array, as in `-J "a[1-9:2]"`: for requests that
//! go through the elements of a job piece by piece.

use crate::model::event::ElementRange;

/// Testing an element against so many ranges takes about as long as a look at it.
const RANGES_PER_LOOK: usize = 16;

/// Ranges of elements; none: every element.
#[derive(Debug, Default)]
pub(crate) struct NamedElements(Vec<ElementRange>);

impl NamedElements {
    pub(crate) fn new(ranges: Vec<ElementRange>) -> NamedElements {
        NamedElements(ranges)
    }

    /// Is every element meant?
    pub(crate) fn is_every(&self) -> bool {
        self.0.is_empty()
    }

    /// About so many looks it takes to see whether an element is named.
    pub(crate) fn looks(&self) -> usize {
        self.0.len() / RANGES_PER_LOOK
    }

    /// Is this element named?
    pub(crate) fn holds(&self, idx: u32) -> bool {
        let fits = |&(first, last, step): &ElementRange| {
            (first..=last).contains(&idx) && (idx - first).is_multiple_of(step.max(1))
        };
        self.is_every() || self.0.iter().any(fits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn element_is_named_by_any_range_or_by_none_at_all() {
        let named = NamedElements::new(vec![(1, 9, 4), (20, 20, 0)]);
        let held: Vec<u32> = (0..30).filter(|idx| named.holds(*idx)).collect();
        assert_eq!(held, [1, 5, 9, 20]);
        assert!(NamedElements::default().holds(7));
    }
}
