//! Listings against their manual pages: every column heading, field and label that a command
//! prints is a term of its page.

use super::{report, root};
use std::collections::BTreeSet;

/// A page, the source files that print what the page explains, and words in those files that look
/// like headings and are none.
struct Listing {
    page: &'static str,
    sources: &'static [&'static str],
    others: &'static [&'static str],
}

const LISTINGS: &[Listing] = &[
    Listing {
        page: "bjobs.1",
        sources: &[
            "applets/bjobs/table.rs",
            "applets/bjobs/long.rs",
            "applets/bjobs/fields.rs",
            "src/cli/submission.rs",
            "src/cli/long_format.rs",
        ],
        // values, parts of lines that other terms explain, a unit, and a label of bhist and bacct
        others: &["NOTPEND", "EPEND", "IPEND", "MAX MEM", "min", "Effective RES_REQ"],
    },
    Listing {
        page: "bhosts.1",
        sources: &[
            "applets/bhosts/table.rs",
            "applets/bhosts/long.rs",
            "applets/bhosts/fields.rs",
            "applets/bhosts/mod.rs",
        ],
        others: &[],
    },
    Listing {
        page: "bqueues.1",
        sources: &[
            "applets/bqueues/table.rs",
            "applets/bqueues/long.rs",
            "applets/bqueues/fields.rs",
            "src/cli/long_format.rs",
        ],
        // parameters whose lines have other words, words of a title, and blocks of bjobs -l alone
        others: &[
            "MIG",
            "NEW_JOB_SCHED_DELAY",
            "INTERACTIVE",
            "PREEMPTION",
            "NQS_QUEUES",
            "SLOT_RESERVE",
            "CHKPNT",
            "SNDJOBS_TO",
            "RCVJOBS_FROM",
            "DEFAULT_HOST_SPEC",
            "PARAMETERS",
            "SCHEDULING",
            "MAX MEM",
            "MEMORY USAGE",
            "CPU USAGE",
            "PENDING TIME DETAILS",
            "EXTENDABLE RUNLIMIT",
            "CU",
            "RESOURCE_RESERVE",
        ],
    },
    Listing {
        page: "bacct.1",
        sources: &["applets/bacct/jobs.rs", "applets/bacct/sums.rs"],
        others: &[],
    },
    Listing { page: "bhist.1", sources: &["applets/bhist/show.rs"], others: &[] },
    Listing {
        page: "lsload.1",
        sources: &["applets/lsload.rs", "src/cli/load.rs"],
        others: &["LSF_LSLOAD_FORMAT"],
    },
    Listing {
        page: "lshosts.1",
        sources: &["applets/lshosts.rs", "src/cli/hostfields.rs", "src/cli/load.rs"],
        others: &["HOSTS", "LSF_LSHOSTS_FORMAT"],
    },
    Listing { page: "bsla.1", sources: &["applets/bsla.rs"], others: &[] },
    Listing { page: "bslots.1", sources: &["applets/bslots.rs"], others: &["UNLIMITED"] },
    Listing { page: "busers.1", sources: &["applets/busers.rs"], others: &["USERS"] },
    Listing { page: "bugroup.1", sources: &["applets/bugroup.rs"], others: CU_AND_HOSTS },
    Listing {
        page: "bmgroup.1",
        sources: &["applets/bugroup.rs"],
        others: &["USERS", USER_SHARES],
    },
    Listing { page: "lsinfo.1", sources: &["applets/lsinfo.rs"], others: &["N/A", "NI", "ND"] },
    Listing { page: "lsclusters.1", sources: &["applets/lsclusters.rs"], others: &[] },
    Listing { page: "bparams.1", sources: &[], others: &[] },
];

const USER_SHARES: &str = "USER_SHARES";
const CU_AND_HOSTS: &[&str] = &["CU_NAME", "TYPE", "HOSTS", USER_SHARES];

/// The string literals of a source file before its tests, escapes read.
fn literals(source: &str) -> Vec<String> {
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    let mut found = Vec::new();
    let mut chars = code.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '/' if chars.peek() == Some(&'/') => while chars.next().is_some_and(|c| c != '\n') {},
            // a character literal may be a quote
            '\'' if chars.peek() == Some(&'"') => drop(chars.next()),
            '"' => {
                let mut text = String::new();
                while let Some(c) = chars.next().filter(|c| *c != '"') {
                    if c != '\\' {
                        text.push(c);
                        continue;
                    }
                    match chars.next() {
                        Some('n') => text.push('\n'),
                        Some('\n') => while chars.next_if(|c| c.is_whitespace()).is_some() {},
                        Some(c) => text.push(c),
                        None => {}
                    }
                }
                found.push(text);
            }
            _ => {}
        }
    }
    found
}

/// A line of a format string without its `{...}`.
fn fixed(line: &str) -> String {
    let mut depth = 0;
    let keep = |c: &char| {
        depth += i32::from(*c == '{');
        let outside = depth == 0;
        depth -= i32::from(*c == '}');
        outside
    };
    line.chars().filter(keep).collect()
}

fn is_heading(word: &str) -> bool {
    let part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || "_/%-".contains(c);
    word.chars().filter(char::is_ascii_uppercase).count() > 1 && word.chars().all(part)
}

/// Words of a heading that lists small letters too, as `type model cpuf`.
fn is_small(word: &str) -> bool {
    word.starts_with(char::is_lowercase)
        && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// The headings in a string literal: words of a line of nothing but headings, the words before a
/// colon (`PENDING REASONS:`), and a label (`, Job Name `).
fn headings(literal: &str) -> Vec<String> {
    let mut found = Vec::new();
    let lines: Vec<String> = literal.lines().map(fixed).collect();
    let heads = |line: &String| {
        let words: Vec<&str> = line.trim().trim_end_matches(':').split_whitespace().collect();
        let any = words.iter().any(|w| is_heading(w) && w.len() > 3);
        any && words.iter().all(|w| is_heading(w) || is_small(w))
    };
    let table = lines.iter().any(heads);
    for line in &lines {
        let line = line.trim();
        let words: Vec<&str> = line.split_whitespace().collect();
        match line.strip_suffix(':') {
            Some(phrase) if phrase.split(' ').all(is_heading) => found.push(phrase.to_owned()),
            _ if words.is_empty() => {}
            None if words.iter().all(|w| is_heading(w) || (table && is_small(w))) => {
                found.extend(words.iter().map(|w| (*w).to_owned()));
            }
            _ => {}
        }
    }
    if let Some(label) = literal.strip_prefix(", ") {
        let label = label.trim_end_matches(['<', '"']).trim();
        if label.starts_with(char::is_uppercase) && !label.contains(['{', '<', ',']) {
            found.push(label.trim_end_matches(" (overwrite)").to_owned());
        }
    }
    found
}

/// The names in a table of fields: `f("name", ...`, and of columns: `("name", 8)`.
fn fields(source: &str) -> Vec<String> {
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    let mut found = Vec::new();
    for (lead, columns) in
        [("f(\"", false), ("empty(\"", false), ("field!(\"", false), ("    (\"", true)]
    {
        for part in code.split(lead).skip(1) {
            let Some((name, rest)) = part.split_once("\", ") else { continue };
            let width = rest.split(')').next().unwrap_or_default();
            let is_width = !width.is_empty() && width.bytes().all(|b| b.is_ascii_digit());
            if !name.contains(['"', ' ']) && (!columns || is_width) {
                found.push(name.to_owned());
            }
        }
    }
    found
}

/// The words of a request such as `.BR "a b" ", " c`.
fn arguments(text: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let (mut quoted, mut open) = (false, false);
    for c in text.chars() {
        match c {
            '"' => (quoted, open) = (!quoted, true),
            ' ' if !quoted => {
                if open || found.last().is_some_and(|w| !w.is_empty()) {
                    found.push(String::new());
                }
                open = false;
            }
            c => found.last_mut().unwrap().push(c),
        }
    }
    found
}

/// The terms that a page explains: the bold words behind each .TP.
fn terms(page: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let lines: Vec<&str> = page.lines().collect();
    for pair in lines.windows(2).filter(|pair| pair[0] == ".TP") {
        let text = pair[1].replace("\\-", "-");
        let (request, rest) = text.split_once(' ').unwrap_or((&text, ""));
        let bold: Vec<String> = match request {
            ".B" => vec![rest.replace('"', "")],
            ".BR" | ".BI" => arguments(rest).into_iter().step_by(2).collect(),
            _ => Vec::new(),
        };
        found.extend(bold);
    }
    found
}

#[test]
fn every_heading_of_a_listing_is_explained_in_its_page() {
    let mut found = Vec::new();
    let mut seen = 0;
    for listing in LISTINGS {
        let page = std::fs::read_to_string(root().join("man").join(listing.page)).unwrap();
        let terms = terms(&page);
        let mut wanted = BTreeSet::new();
        for path in listing.sources {
            let source = std::fs::read_to_string(root().join(path)).unwrap();
            wanted.extend(literals(&source).iter().flat_map(|text| headings(text)));
            wanted.extend(fields(&source));
        }
        seen += wanted.len();
        for word in wanted.iter().filter(|w| !listing.others.contains(&w.as_str())) {
            if !terms.contains(word) {
                found.push(format!("man/{}: {word} is not explained", listing.page));
            }
        }
        for word in listing.others.iter().filter(|w| !wanted.contains(**w)) {
            found.push(format!("man/{}: {word} is excepted and is not printed", listing.page));
        }
    }
    assert!(seen > 300, "only {seen} headings were found");
    report("headings", found);
}

#[test]
fn headings_are_read_from_format_strings() {
    let source = "let a = \"JOBID  USER  %COMPLETE\\n\"; // \"NOT THIS\"\nlet c = '\"';\n\
                  write!(o, \"{:<7} A_B/C {x}\\n\"); b(\"\\n PENDING \\\n   REASONS:\\n\");\n\
                  f(\"job_name\", &[]); T = [\n    (\"gpu_id\", 8),\n    (\"Words\", \"x\")];\n\
                  push(\", Job Name \", x); e(\"No such queue\");\n#[cfg(test)]\n\"LATER\"";
    let all: Vec<String> = literals(source).iter().flat_map(|text| headings(text)).collect();
    assert_eq!(all, ["JOBID", "USER", "%COMPLETE", "A_B/C", "PENDING REASONS", "Job Name"]);
    assert_eq!(fields(source), ["job_name", "gpu_id"]);
    assert_eq!(headings("\nHOST_NAME:  {}\ntype model\n"), ["HOST_NAME", "type", "model"]);
    let page = ".TP\n.BR A \", \" \"B C\" \" (d), \" E\nwords\n.TP\n.B F G\n.B H\n";
    assert_eq!(Vec::from_iter(terms(page)), ["A", "B C", "E", "F G"]);
}
