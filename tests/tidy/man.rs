//! Manual pages against what they describe: the tables of known parameters, the options the
//! binary itself lists, each other, and groff where it is installed.

use super::{report, root};
use lsf::conf::names;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Under this heading a page of a configuration file lists the names that change nothing yet.
const NOT_ACTED: &str = ".SH NOT ACTED ON";

/// Applets that are part of another one's page.
const ELSEWHERE: &[(&str, &str)] = &[
    ("delegate", "launcher"),
    ("detach", "lsf"),
    ("down", "lsf"),
    ("eauthd", "eauth"),
    ("eexecd", "res"),
    ("lsmakesh", "lsmake"),
    ("qdel", "cqdel"),
    ("qstat", "cqstatl"),
    ("qsub", "cqsub"),
    ("lsfrestart", "lsfstartup"),
    ("lsfshutdown", "lsfstartup"),
    ("status", "lsf"),
    ("up", "lsf"),
];

/// Pages of the system that ours may point at.
const FOREIGN: &[&str] = &["getent(1)", "hosts(5)", "wait(2)"];

/// Sections that every page has.
const SECTIONS: &[&str] = &["NAME", "SYNOPSIS", "DESCRIPTION", "SEE ALSO"];

fn pages() -> BTreeMap<String, (String, String)> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(root().join("man")).unwrap().flatten() {
        let path = entry.path();
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        let section = path.extension().unwrap().to_string_lossy().into_owned();
        found.insert(stem, (section, std::fs::read_to_string(&path).unwrap()));
    }
    found
}

/// The name of the page that describes an applet.
pub fn page_of(applet: &str) -> &str {
    ELSEWHERE.iter().find(|(name, _)| *name == applet).map_or(applet, |(_, page)| page)
}

/// Words of a text, as parameters and options are spelled.
fn words(text: &str) -> BTreeSet<&str> {
    let part = |c: char| c.is_ascii_alphanumeric() || "_-/".contains(c);
    text.split(|c| !part(c)).collect()
}

/// Words that are set in bold, on lines of their own requests.
fn bold(text: &str) -> BTreeSet<&str> {
    let lines = text.lines().filter(|l| l.starts_with(".B"));
    lines.flat_map(|l| words(l.split_once(' ').map_or("", |(_, rest)| rest))).collect()
}

#[test]
fn every_parameter_is_told_as_it_acts() {
    let pages = pages();
    let mut files: BTreeMap<&str, (BTreeSet<&str>, BTreeSet<&str>)> = BTreeMap::new();
    for table in names::all() {
        let (on, off) = files.entry(table.file).or_default();
        for name in table.names() {
            if name.acted {
                on.insert(name.name)
            } else {
                off.insert(name.name)
            };
        }
    }
    let mut found = Vec::new();
    for (file, (on, off)) in files {
        let Some((_, text)) = pages.get(file) else {
            found.push(format!("man/{file}.5: missing"));
            continue;
        };
        let (before, after) = text.split_once(NOT_ACTED).unwrap_or((text, ""));
        let list = after.split_once("\n.PP\n").map_or("", |(_, rest)| rest);
        let listed = words(list.split("\n.SH").next().unwrap_or_default());
        let told = bold(before);
        let mut say = |name: &str, what: &str| found.push(format!("man/{file}.5: {name}: {what}"));
        for name in on.iter().filter(|n| !told.contains(*n)) {
            say(name, "acts and is not described");
        }
        for name in off.iter().filter(|n| !on.contains(*n) && !listed.contains(*n)) {
            say(name, "is not in the list of what does not act");
        }
        let stale = |name: &&&str| !off.contains(**name) && name.contains(char::is_alphabetic);
        for name in listed.iter().filter(stale) {
            say(name, "is listed as not acting, against the table");
        }
    }
    report("parameters", found);
}

/// The output of a command, on both streams.
pub fn said(binary: &Path, args: &[&str]) -> String {
    let mut command = Command::new(binary);
    let out = command.args(args).stdin(Stdio::null()).output().unwrap();
    String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned()
}

pub fn binary() -> PathBuf {
    match std::env::var_os("LSF_TEST_BIN") {
        Some(path) => PathBuf::from(path),
        None => PathBuf::from(env!("CARGO_BIN_EXE_lsf")),
    }
}

/// Options and commands in a help text: `  -x value   what`, `    command   what`.
pub fn options(help: &str) -> Vec<String> {
    let mut all = Vec::new();
    for line in help.lines() {
        let indent = line.len() - line.trim_start().len();
        let first = line.split_whitespace().next().unwrap_or_default();
        let command = indent == 4 && line.len() > 16 && first != "?" && !line.ends_with(':');
        if command || (indent == 2 && first.starts_with('-')) {
            all.push(first.to_owned());
        }
    }
    all
}

#[test]
fn every_option_of_every_applet_is_in_its_page() {
    let pages = pages();
    let binary = binary();
    let list = said(&binary, &["--list"]);
    let applets: Vec<&str> = list.split_whitespace().collect();
    assert!(applets.len() > 8, "--list says {list:?}");
    let mut found = Vec::new();
    let mut seen = 0;
    for applet in applets {
        let page = page_of(applet);
        let Some((section, text)) = pages.get(page) else {
            found.push(format!("man/{page}.*: missing"));
            continue;
        };
        let text = text.replace("\\-", "-");
        let known = words(&text);
        for option in options(&said(&binary, &[applet, "-h"])) {
            seen += 1;
            if !known.contains(option.as_str()) {
                found.push(format!("man/{page}.{section}: {applet} {option} is not told"));
            }
        }
    }
    assert!(seen > 30, "only {seen} options were found");
    report("options", found);
}

/// The options that README's table gives a command: those in parentheses behind its name.
fn promised(readme: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for row in readme.lines().filter(|l| l.starts_with("| ")) {
        for (i, _) in row.match_indices("` (") {
            let applet = row[..i].rsplit('`').next().unwrap_or_default();
            let list = row[i + 3..].split(')').next().unwrap_or_default();
            let words = list.split([' ', ',']).filter(|w| w.starts_with('-'));
            found.extend(words.map(|w| (applet.to_owned(), w.to_owned())));
        }
    }
    found
}

#[test]
fn readme_promises_options_that_there_are() {
    let binary = binary();
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let promised = promised(&readme);
    assert!(promised.len() > 60, "only {} options were found", promised.len());
    let mut found = Vec::new();
    for (applet, option) in promised {
        if !options(&said(&binary, &[&applet, "-h"])).contains(&option) {
            found.push(format!("README.md: {applet} has no {option}"));
        }
    }
    report("options of README", found);
}

/// `name(section)` of a line such as `.BR bsub (1),`.
fn reference(line: &str) -> Option<String> {
    let rest = line.strip_prefix(".BR ")?;
    let (name, section) = rest.split_once(" (")?;
    let digit = section.chars().next().filter(char::is_ascii_digit)?;
    let plain = name.chars().all(|c| c.is_ascii_lowercase() || c == '.');
    (plain && section[1..].starts_with(')')).then(|| format!("{name}({digit})"))
}

/// Our pairs that this text of the codec names.
fn pairs(code: &str) -> Vec<String> {
    let end = |c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    let named = code.split("\"lsf.").skip(1).filter_map(|rest| rest.split_once(end));
    named.filter(|(name, _)| !name.is_empty()).map(|(name, _)| format!("lsf.{name}")).collect()
}

#[test]
fn every_pair_of_a_record_is_in_the_page_of_its_file() {
    assert_eq!(
        pairs("put(\"lsf.eff\", b\"lsf.x_1\", \"lsf.x.\")"),
        ["lsf.eff", "lsf.x_1", "lsf.x"]
    );
    let pages = pages();
    let told = ["lsb.events", "lsb.acct"].map(|page| pages[page].1.as_str()).concat();
    let part = |c: char| c.is_ascii_alphanumeric() || "._".contains(c);
    let told = told.split(|c| !part(c)).map(|word| word.trim_end_matches('.'));
    let told: BTreeSet<&str> = told.collect();
    let mut found = Vec::new();
    for file in ["brief", "finish", "modify", "new", "write"] {
        let code = std::fs::read_to_string(root().join(format!("src/log/codec/{file}.rs")));
        let code = code.unwrap();
        let shipped = code.split("#[cfg(test)]").next().unwrap_or_default();
        let untold = |pair: &String| !told.contains(pair.as_str());
        found.extend(pairs(shipped).into_iter().filter(untold));
    }
    report("pairs of records without a word in lsb.events(5) or lsb.acct(5)", found);
}

#[test]
fn pages_have_their_sections_and_point_at_pages_that_exist() {
    let pages = pages();
    let mut known: BTreeSet<String> = FOREIGN.iter().map(|p| (*p).to_owned()).collect();
    known.extend(pages.iter().map(|(name, (section, _))| format!("{name}({section})")));
    let mut found = Vec::new();
    for (name, (section, text)) in &pages {
        let mut say = |what: String| found.push(format!("man/{name}.{section}: {what}"));
        let head = format!(".TH {} {section} ", name.to_uppercase());
        if !text.starts_with(&head) {
            say(format!("does not begin with {head}"));
        }
        for want in SECTIONS.iter().filter(|s| !text.contains(&format!("\n.SH {s}\n"))) {
            say(format!("has no section {want}"));
        }
        for target in text.lines().filter_map(reference).filter(|t| !known.contains(t)) {
            say(format!("points at {target}"));
        }
        for (i, line) in text.lines().enumerate().filter(|(_, l)| !l.is_ascii()) {
            say(format!("line {}: not ASCII: {line}", i + 1));
        }
    }
    report("pages", found);
}

/// Counts a test as skipped (tests/run reads the file).
pub fn skipped(why: &str) {
    eprintln!("skipped: {why}");
    let Some(path) = std::env::var_os("LSF_TEST_SKIPS") else { return };
    let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
    if let Ok(mut file) = file {
        let _ = writeln!(file, "{why}");
    }
}

#[test]
fn groff_has_no_complaint() {
    let lint = |path: &Path| {
        let mut command = Command::new("groff");
        command.args(["-man", "-Tutf8", "-ww", "-z"]).arg(path).stdin(Stdio::null());
        command.output().ok()
    };
    let mut found = Vec::new();
    for (name, (section, _)) in pages() {
        let Some(out) = lint(&root().join(format!("man/{name}.{section}"))) else {
            return skipped("groff_has_no_complaint: groff is not installed");
        };
        found.extend(String::from_utf8_lossy(&out.stderr).lines().map(str::to_owned));
    }
    report("groff", found);
}

#[test]
fn checks_of_pages_read_their_examples_as_meant() {
    let help =
        "Usage: x [-h]\n\n  -m host       ask a host\n    ckconfig    checks files\n  word\n";
    assert_eq!(options(help), ["-m", "ckconfig"]);
    assert_eq!(reference(".BR lsb.acct (5)."), Some("lsb.acct(5)".to_owned()));
    assert_eq!(reference(".BR -v \" \" -l"), None);
    let text = ".B JL/U\ntext MXJ\n.BR A_B \", \" C-D\n";
    assert_eq!(
        bold(text).into_iter().filter(|w| !w.is_empty()).collect::<Vec<_>>(),
        ["A_B", "C-D", "JL/U"]
    );
    assert_eq!((page_of("up"), page_of("bsub")), ("lsf", "bsub"));
}
