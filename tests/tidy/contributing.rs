//! Examples in CONTRIBUTING.md are code that the tests build.

use super::root;

/// The lines of the text that are set in by four blanks, without these.
fn code(text: &str) -> String {
    let line = |line: &str| match line.is_empty() {
        true => Some("\n".to_string()),
        false => line.strip_prefix("    ").map(|line| format!("{line}\n")),
    };
    text.lines().filter_map(line).collect()
}

#[test]
fn policy_of_contributing_is_the_file_that_the_tests_build() {
    const MOST_LINES: usize = 60;
    let read = |file: &str| std::fs::read_to_string(root().join(file)).unwrap();
    let example = read("src/batch/sched/policy/example.rs");
    assert!(example.lines().count() < MOST_LINES, "the example has {MOST_LINES} lines or more");
    let text = code(&read("CONTRIBUTING.md"));
    assert!(text.contains(&example), "CONTRIBUTING.md has other code than the file:\n{example}");
    assert!(read("src/batch/sched/policy/mod.rs").contains("mod example;"));
}
