//! The known word that a misspelt one was probably meant to be.

/// The longest word for which a nearest one is sought, in characters.
const MAX_NEAR: usize = 64;

/// The candidate nearest to `word`, ignoring case, if one is near enough to be meant: at most
/// one slip in three letters, and at most three slips.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word: Vec<char> = word.chars().take(MAX_NEAR + 1).map(|c| c.to_ascii_lowercase()).collect();
    if word.is_empty() || word.len() > MAX_NEAR {
        return None;
    }
    let limit = (word.len() / 3).clamp(1, 3);
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let other: Vec<char> = candidate.chars().map(|c| c.to_ascii_lowercase()).collect();
        if other.len().abs_diff(word.len()) > limit || other.len() > MAX_NEAR {
            continue;
        }
        let slips = distance(&word, &other);
        if slips <= limit && best.is_none_or(|(least, _)| slips < least) {
            best = Some((slips, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Edit distance with swaps of neighbours counting one.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let change = usize::from(a[i - 1] != b[j - 1]);
            row[j] = (last[j - 1] + change).min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_offered_only_when_it_is_near() {
        let words = ["PRIORITY", "PROCLIMIT", "RUNLIMIT", "MIG"];
        assert_eq!(nearest("PRIORTIY", words), Some("PRIORITY"));
        assert_eq!(nearest("runlimt", words), Some("RUNLIMIT"));
        assert_eq!(nearest("MGI", words), Some("MIG"));
        assert_eq!(nearest("COLOUR", words), None);
        assert_eq!(nearest("", words), None);
        assert_eq!(nearest(&"x".repeat(100_000), words), None);
    }

    #[test]
    fn distance_counts_swaps_once() {
        let d = |a: &str, b: &str| {
            distance(&a.chars().collect::<Vec<_>>(), &b.chars().collect::<Vec<_>>())
        };
        assert_eq!(d("ab", "ba"), 1);
        assert_eq!(d("kitten", "sitting"), 3);
        assert_eq!(d("", "abc"), 3);
        assert_eq!(d("abc", "abc"), 0);
    }
}
