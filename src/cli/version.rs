//! The version line of `-V` and lsid, and the names nearest to a mistyped word.

/// The day of this release, as lsid prints it.
pub const RELEASE_DATE: &str = "Nov 21 2026";

/// The level of LSF whose commands and files we speak; tools search for these words.
pub const COMPATIBLE: &str = "compatible with IBM Spectrum LSF Standard 10.1.0.0";

/// First line of lsid, and all of `-V`.
pub fn line() -> String {
    format!("lsf {}, {COMPATIBLE}, {RELEASE_DATE}", env!("CARGO_PKG_VERSION"))
}

/// Most names that [`nearest`] offers.
const OFFERS: usize = 3;

/// The names nearest to `word`, best first; empty when none is near.
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let far = (word.len() / 3).clamp(1, 2);
    let mut near: Vec<(usize, &str)> = Vec::new();
    for name in names {
        let starts = word.len() >= 3 && name.starts_with(word);
        let d = distance(word, name);
        if starts || d <= far {
            near.push((if starts { 0 } else { d }, name));
        }
    }
    near.sort_unstable();
    near.truncate(OFFERS);
    near.into_iter().map(|(_, name)| name).collect()
}

/// Letters to insert, delete, change or swap with their neighbour to make `b` of `a`.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = change.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_names_are_suggested() {
        let names = ["bsub", "bjobs", "bhosts", "bkill", "lshosts", "lsload"];
        assert_eq!(nearest("bjosb", names), ["bjobs"]);
        assert_eq!(nearest("bhost", names), ["bhosts"]);
        assert_eq!(nearest("lshots", names), ["lshosts"]);
        assert!(nearest("qstat", names).is_empty());
        assert_eq!(distance("abcd", "acbd"), 1);
        assert_eq!(distance("", "abc"), 3);
    }

    #[test]
    fn tools_find_the_level() {
        assert!(line().contains("IBM Spectrum LSF Standard 10.1.0.0, "));
        assert!(line().starts_with("lsf "));
    }
}
