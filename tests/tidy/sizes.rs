//! The sizes of the house rules: longest line, longest file, longest function, in the sources and
//! in the tests.

use super::{at, is_test_file, lines_of, report, root, sources, walk};
use std::path::PathBuf;

/// Longest line, characters.
const LINE: usize = 100;
/// A file stays below this many lines.
const FILE: usize = 700;
/// A function stays below this many lines, its signature and its last brace counted.
const FUNCTION: usize = 70;

/// Every Rust file of the repository with its lines.
fn files() -> Vec<(PathBuf, Vec<String>)> {
    let mut tests = Vec::new();
    walk(&root().join("tests"), "rs", &mut tests);
    tests.sort();
    let mut files: Vec<_> = sources().into_iter().map(|s| (s.path, s.all)).collect();
    for path in tests {
        let lines = lines_of(&path);
        files.push((path, lines));
    }
    files
}

#[test]
fn every_file_is_below_its_size() {
    let mut found = Vec::new();
    for (path, lines) in files() {
        if lines.len() >= FILE {
            found.push(at(&path, 0, &format!("{} lines", lines.len())));
        }
    }
    report("sizes of files", found);
}

#[test]
fn every_line_is_below_its_size() {
    let mut found = Vec::new();
    for (path, lines) in files() {
        for (i, line) in lines.iter().enumerate() {
            // Test data may be long: a record of the log is one line.
            let data = is_test_file(&path) && line.contains('"');
            let table = line.starts_with("//! |");
            let size = line.chars().count();
            if size > LINE && !data && !table {
                found.push(at(&path, i, &format!("{size} characters")));
            }
        }
    }
    report("sizes of lines", found);
}

#[test]
fn every_function_is_below_its_size() {
    let mut found = Vec::new();
    let files = files();
    for (path, lines) in &files {
        for (start, size) in functions(lines) {
            if size >= FUNCTION {
                found.push(at(path, start, &format!("a function of {size} lines")));
            }
        }
    }
    report("sizes of functions", found);
}

/// First line (from 0) and number of lines of each function, as rustfmt writes it: it ends with a
/// brace at its own indentation. A function within another one counts as a part of that one.
fn functions(lines: &[String]) -> Vec<(usize, usize)> {
    let mut out = Vec::new();
    let mut open: Option<(usize, usize)> = None;
    for (i, line) in lines.iter().enumerate() {
        let text = line.trim();
        let indent = line.len() - line.trim_start().len();
        match open {
            None if is_function(text) && !text.ends_with([';', '}']) => open = Some((i, indent)),
            Some((start, own)) if indent == own && text == "}" => {
                out.push((start, i - start + 1));
                open = None;
            }
            // a method without a body, its arguments on lines of their own
            Some((_, own)) if indent == own && text.starts_with(')') && text.ends_with(';') => {
                open = None;
            }
            _ => {}
        }
    }
    assert!(open.is_none(), "the end of the function at line {open:?} was not found");
    out
}

/// Does a function begin with this line?
fn is_function(text: &str) -> bool {
    let mut rest = text;
    if let Some(public) = rest.strip_prefix("pub") {
        let scope = public.strip_prefix('(').and_then(|scope| scope.split_once(')'));
        rest = scope.map_or(public, |(_, after)| after).trim_start();
    }
    loop {
        let words = ["const ", "async ", "unsafe ", "extern \"C\" "];
        match words.iter().find_map(|word| rest.strip_prefix(word)) {
            Some(after) => rest = after,
            None => return rest.starts_with("fn "),
        }
    }
}

#[test]
fn functions_of_every_form_are_counted() {
    let text = "fn one() {}\npub(crate) const fn two() {\n    2;\n}\ntrait T {\n    fn none(\n        \
        a: u8,\n    ) -> u8;\n    fn three() {\n        fn inner() {\n        }\n    }\n}\n\
        pub unsafe extern \"C\" fn four() {\n}";
    let lines: Vec<String> = text.lines().map(str::to_string).collect();
    assert_eq!(functions(&lines), [(1, 3), (8, 4), (13, 2)]);
}
