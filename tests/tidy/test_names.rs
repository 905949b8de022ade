//! Names of tests are subject_condition_result: a machine can check that they are sentences of some
//! length that begin with their subject and promise something definite.

use super::{at, lines_of, report, root, walk};
use std::path::PathBuf;

/// Fewest words of a name, not counting articles and short prepositions.
const FEWEST: usize = 3;
const UNCOUNTED: &[&str] = &["a", "an", "the", "of", "and", "in"];
/// No name begins with these: they stand in for a subject or put the condition before it.
const NO_SUBJECT: &[&str] = &[
    "it", "test", "should", "can", "does", "what", "who", "whose", "whom", "which", "where", "how",
    "that", "those", "these", "without", "before", "after", "as", "from", "while", "when", "if",
    "for", "by", "at", "on", "with",
];
/// No name contains these: they promise nothing that could be seen to fail.
const VAGUE: &[&str] = &["works", "ok", "okay", "fine", "properly", "correctly", "handled"];

/// The fault of a test's name.
fn fault(name: &str) -> Option<String> {
    let words: Vec<&str> = name.split('_').collect();
    let counted = words.iter().filter(|word| !UNCOUNTED.contains(word)).count();
    if counted < FEWEST {
        return Some(format!("<{name}> has fewer than {FEWEST} words"));
    }
    if NO_SUBJECT.contains(&words[0]) {
        return Some(format!("<{name}> does not begin with its subject"));
    }
    let vague = words.iter().find(|word| VAGUE.contains(word))?;
    Some(format!("<{name}>: say what happens instead of <{vague}>"))
}

/// The tests of a file: number of the line and name.
fn tests(lines: &[String]) -> Vec<(usize, &str)> {
    let mut out = Vec::new();
    let mut marked = false;
    for (i, line) in lines.iter().enumerate() {
        let line = line.trim_start();
        if line.starts_with("#[test]") {
            marked = true;
        } else if let Some(rest) = line.strip_prefix("fn ")
            && std::mem::take(&mut marked)
        {
            out.push((i, rest.split(['(', '<']).next().unwrap()));
        }
    }
    out
}

#[test]
fn every_test_is_named_by_subject_condition_and_result() {
    let mut files: Vec<PathBuf> = Vec::new();
    for dir in ["src", "applets", "tests"] {
        walk(&root().join(dir), "rs", &mut files);
    }
    // the figures of the bench are chosen by these names on its command line
    files.retain(|path| !path.ends_with("tests/bench/main.rs"));
    files.sort();
    let (mut found, mut seen) = (Vec::new(), 0);
    for path in files {
        for (line, name) in tests(&lines_of(&path)) {
            seen += 1;
            found.extend(fault(name).map(|why| at(&path, line, &why)));
        }
    }
    assert!(seen > 1_500, "{seen} tests");
    report("names of tests", found);
}

#[test]
fn vague_and_short_names_of_tests_are_found() {
    for (name, good) in [
        ("bkill_of_elements_ends_only_these", true),
        ("no_text_panics", true),
        ("sizes", false),
        ("the_wide_table", false),
        ("a_life_of_a_job", false),
        ("what_is_no_window_is_refused", false),
        ("test_of_a_long_name", false),
        ("submission_of_an_array_works", false),
    ] {
        assert_eq!(fault(name).is_none(), good, "{name}");
    }
    let text =
        ["#[test]", "fn one() {", "}", "fn two() {", "    #[test]", "    #[x]", "    fn three<"];
    let lines: Vec<String> = text.map(str::to_string).to_vec();
    assert_eq!(tests(&lines), [(1, "one"), (6, "three")]);
}
