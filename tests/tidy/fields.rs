//! Fields of mbatchd that other rooms can reach: each room has a ceiling, which may only fall.

use super::{ROOMS, report, root, sources};
use std::collections::BTreeMap;

/// The most fields that structs of a room may show to others (`pub` or `pub(crate)`). A new field
/// is private, with a method that says what it means; the ceiling is lowered with the number.
const SHOWN: &[(&str, usize)] = &[
    ("cluster", 29),
    ("lifecycle", 12),
    ("mbatchd.rs", 34),
    ("sched", 88),
    ("site", 68),
    ("soft_state", 142),
    ("state", 155),
    ("step.rs", 2),
    ("usage", 31),
];

/// Does a line of a struct declare a field that other rooms can reach?
fn is_shown(line: &str) -> bool {
    let Some(rest) = line.strip_prefix("    pub") else { return false };
    let rest = rest.strip_prefix("(crate)").unwrap_or(rest);
    let Some((name, _)) = rest.trim_start().split_once(": ") else { return false };
    rest.starts_with(' ') && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[test]
fn rooms_of_mbatchd_show_no_more_fields_than_before() {
    let mut shown: BTreeMap<&str, usize> = BTreeMap::new();
    for source in sources() {
        let path = source.path.strip_prefix(root()).unwrap().to_str().unwrap();
        let Some(file) = path.strip_prefix("src/batch/") else { continue };
        let first = file.split('/').next().unwrap();
        let Some((room, _)) = ROOMS.iter().find(|(room, _)| *room == first) else { continue };
        *shown.entry(room).or_default() += source.code.iter().filter(|l| is_shown(l)).count();
    }
    assert!(shown.values().sum::<usize>() > 100, "{shown:?}");
    let most = |room| SHOWN.iter().find(|(of, _)| *of == room).map_or(0, |(_, most)| *most);
    let other = shown.into_iter().filter(|(room, n)| *n != most(*room));
    let text = |(room, n)| match most(room) {
        most if n < most => format!("{room}: {n} fields; lower the ceiling of {most}"),
        most => format!("{room}: {n} fields, {most} at most"),
    };
    report("fields", other.map(text).collect());
}

#[test]
fn fields_that_other_rooms_can_reach_are_counted() {
    assert!(is_shown("    pub names: Names,"));
    assert!(is_shown("    pub(crate) left: u32,"));
    assert!(!is_shown("    names: Names,"));
    assert!(!is_shown("    pub(super) names: Names,"));
    assert!(!is_shown("    pub fn names(&self, id: u32) -> &Names {"));
}
