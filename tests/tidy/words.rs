//! Comments and pages name their nouns: none begins with a word that stands in for one.

use super::{at, report, root, walk};
use std::path::PathBuf;

/// A comment must not begin with these.
const FIRST: &[&str] = &[
    "What", "Whatever", "Who", "Whoever", "Whose", "Which", "It", "Its", "They", "Them", "Those",
    "Such", "One that", "The one", "The ones", "The same", "Where", "As", "So", "None", "Of", "By",
    "Until", "Likewise", "Neither", "Not", "Also", "And", "Then", "Else",
];
/// No later sentence of a comment begins with these, unless it is a question.
const LATER: &[&str] =
    &["What", "Whatever", "Who", "Whoever", "Whose", "Which", "Those", "One that", "Them"];

/// Does a sentence begin with one of these words?
fn begins<'a>(sentence: &str, words: &[&'a str]) -> Option<&'a str> {
    let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    words.iter().copied().find(|word| sentence.strip_prefix(word).is_some_and(ends))
}

/// The first stand-in of a comment.
fn stand_in(comment: &str) -> Option<&'static str> {
    let text = comment.trim_start_matches(|c: char| !c.is_alphanumeric());
    begins(text, FIRST).or_else(|| later(text))
}

/// The first stand-in at the beginning of a sentence behind another one.
fn later(text: &str) -> Option<&'static str> {
    let mut sentences = text.match_indices([' ']).filter_map(|(i, _)| {
        let sentence = &text[i + 1..];
        let end = sentence.find(['.', '?', ';', ':']).unwrap_or(sentence.len());
        let question = sentence[end..].starts_with('?');
        let new = text[..i].ends_with(['.', '?']) && !text[..i].ends_with("...");
        (new && !question).then_some(sentence)
    });
    sentences.find_map(|sentence| begins(sentence, LATER))
}

/// The comments of a file: number of the first line, and the text. Lines follow each other with the
/// same marks and indentation; an empty one ends the comment.
fn comments(lines: &[String]) -> Vec<(usize, String)> {
    let mut out: Vec<(usize, String)> = Vec::new();
    let mut open: Option<String> = None;
    for (i, line) in lines.iter().enumerate() {
        let text = line.trim_start();
        let marks: String = text.chars().take_while(|c| ['/', '!'].contains(c)).collect();
        let words = text[marks.len()..].trim();
        let key = format!("{}{marks}", &line[..line.len() - text.len()]);
        if !text.starts_with("//") || words.is_empty() {
            open = None;
        } else if open.as_ref() == Some(&key) {
            let last = out.last_mut().unwrap();
            last.1.push(' ');
            last.1.push_str(words);
        } else {
            open = Some(key);
            out.push((i, words.to_string()));
        }
    }
    out
}

#[test]
fn comments_name_their_nouns() {
    let mut files: Vec<PathBuf> = Vec::new();
    for dir in ["src", "applets", "tests"] {
        walk(&root().join(dir), "rs", &mut files);
    }
    files.sort();
    let (mut found, mut seen) = (Vec::new(), 0);
    for path in files {
        for (line, comment) in comments(&super::lines_of(&path)) {
            seen += 1;
            let told = |word| at(&path, line, &format!("a sentence begins with <{word}>"));
            found.extend(stand_in(&comment).map(told));
        }
    }
    assert!(seen > 5_000, "{seen} comments");
    report("comments without a noun", found);
}

/// The paragraphs of a page: number of the first line, and the text without macros and marks.
fn paragraphs(lines: &[String]) -> Vec<(usize, String)> {
    let mut out: Vec<(usize, String)> = Vec::new();
    let mut open = false;
    for (i, line) in lines.iter().enumerate() {
        let words = match line.strip_prefix('.') {
            Some(rest) => ["B ", "I ", "BR ", "RB "].iter().find_map(|m| rest.strip_prefix(m)),
            None => Some(line.trim()).filter(|text| !text.is_empty()),
        };
        match words {
            None => open = false,
            Some(words) if open => {
                let last = out.last_mut().unwrap();
                last.1.push(' ');
                last.1.push_str(words);
            }
            Some(words) => {
                open = true;
                out.push((i, words.to_string()));
            }
        }
    }
    out
}

#[test]
fn pages_name_their_nouns() {
    let mut files = vec![root().join("README.md"), root().join("CONTRIBUTING.md")];
    for section in ["1", "5", "7", "8"] {
        walk(&root().join("man"), section, &mut files);
    }
    let (mut found, mut seen) = (Vec::new(), 0);
    for path in files {
        for (line, text) in paragraphs(&super::lines_of(&path)) {
            seen += 1;
            let text = format!(". {}", text.replace("**", ""));
            let told = |word| at(&path, line, &format!("a sentence begins with <{word}>"));
            found.extend(later(&text).map(told));
        }
    }
    assert!(seen > 2_000, "{seen} paragraphs");
    report("pages without a noun", found);
}

#[test]
fn a_stand_in_is_found_at_the_beginning_and_behind_a_sentence() {
    for (comment, word) in [
        ("What a job uses.", Some("What")),
        ("Its hosts.", Some("Its")),
        ("The same of hosts.", Some("The same")),
        ("Where the word stands.", Some("Where")),
        ("As written.", Some("As")),
        ("`None`: not known.", Some("None")),
        ("Of the first of the queue.", Some("Of")),
        ("Notes of a job.", None),
        ("Takes a job. One that waits stays.", Some("One that")),
        ("Is it open? Those that are not stay.", Some("Those")),
        ("`What` in code, then words.", Some("What")),
        ("Itself a job.", None),
        ("A job. Its hosts.", None),
        ("Which job is it? None.", Some("Which")),
        ("A question: whose is it? Who asks?", None),
        ("Each a, b ... What follows", None),
    ] {
        assert_eq!(stand_in(comment), word, "{comment}");
    }
    let lines = ["/// One.", "/// Two.", "fn f() {", "    // three", "", "    // four", "}"];
    let lines: Vec<String> = lines.map(str::to_string).to_vec();
    let want = [(0, "One. Two."), (3, "three"), (5, "four")];
    assert_eq!(comments(&lines), want.map(|(line, text)| (line, text.to_string())));
}
