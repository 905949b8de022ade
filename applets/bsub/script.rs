//! Job scripts: the `#BSUB` lines in them and the text shown as the job's command.
//!
//! A directive begins in the first column: `#BSUB` followed by a blank or by `-`. The words of a
//! directive are split as a shell would, quotes of both kinds removed; an unquoted `#` at the start
//! of a word begins a comment. Scripts are bytes; only directive lines must be UTF-8.

use std::ffi::OsString;
use std::fmt;

/// Longest script accepted, bytes.
pub const MAX_SCRIPT: u64 = 4 << 20;
/// Most bytes of a script that are shown as the command of its job.
const MAX_SHOWN: usize = 4000;

/// A directive line taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directive {
    /// Line of the script, from 1.
    pub line: usize,
    /// The words of the directive.
    pub words: Vec<OsString>,
}

/// A directive line that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadDirective {
    /// Line of the script, from 1.
    pub line: usize,
    /// The mistake.
    pub why: &'static str,
}

impl fmt::Display for BadDirective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} of the script: {}", self.line, self.why)
    }
}

/// Every directive of a script, in order.
pub fn directives(script: &[u8]) -> Result<Vec<Directive>, BadDirective> {
    let mut out = Vec::new();
    for (i, line) in script.split(|&b| b == b'\n').enumerate() {
        let Some(rest) = directive(line) else { continue };
        let line = i + 1;
        let bad = |why| BadDirective { line, why };
        let text = std::str::from_utf8(rest).map_err(|_| bad("a #BSUB line is not UTF-8"))?;
        let words = words(text).ok_or_else(|| bad("a quote is not closed"))?;
        if !words.is_empty() {
            out.push(Directive { line, words: words.into_iter().map(OsString::from).collect() });
        }
    }
    Ok(out)
}

/// The text after `#BSUB` on a directive line.
fn directive(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(b"#BSUB")?;
    let rest = rest.strip_suffix(b"\r").unwrap_or(rest);
    matches!(rest.first(), None | Some(b' ' | b'\t' | b'-')).then_some(rest)
}

/// Splits like a shell, without expansions; `None` where a quote is not closed.
pub fn words(text: &str) -> Option<Vec<String>> {
    let (mut out, mut word, mut open) = (Vec::new(), String::new(), false);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' => {
                if open {
                    out.push(std::mem::take(&mut word));
                }
                open = false;
                continue;
            }
            '#' if !open => break,
            '\'' => loop {
                match chars.next()? {
                    '\'' => break,
                    c => word.push(c),
                }
            },
            '"' => loop {
                match chars.next()? {
                    '"' => break,
                    '\\' => match chars.next()? {
                        c @ ('"' | '\\' | '$' | '`') => word.push(c),
                        c => word.extend(['\\', c]),
                    },
                    c => word.push(c),
                }
            },
            '\\' => word.extend(chars.next()),
            c => word.push(c),
        }
        open = true;
    }
    if open {
        out.push(word);
    }
    Some(out)
}

/// Whether there is nothing in it to run.
pub fn is_blank(script: &[u8]) -> bool {
    script.iter().all(u8::is_ascii_whitespace)
}

/// The script on one line, as listings show it: lines joined by `;`, blank ones left out.
pub fn shown(script: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for line in script.split(|&b| b == b'\n') {
        let line = line.trim_ascii_end();
        if line.is_empty() {
            continue;
        }
        if !out.is_empty() {
            out.push(b';');
        }
        out.extend_from_slice(line);
        if out.len() > MAX_SHOWN {
            out.truncate(cut(&out, MAX_SHOWN));
            break;
        }
    }
    out
}

/// The largest length up to `max` that does not split a UTF-8 character.
fn cut(bytes: &[u8], max: usize) -> usize {
    (max.saturating_sub(3)..=max).rev().find(|&n| bytes[n] & 0xc0 != 0x80).unwrap_or(max)
}

/// Whether a file's beginning is that of a script: text, and either `#!` or a directive in it.
pub fn looks_like_script(bytes: &[u8]) -> bool {
    !bytes.contains(&0)
        && (bytes.starts_with(b"#!")
            || bytes.split(|&b| b == b'\n').any(|l| directive(l).is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(script: &str) -> Vec<Vec<String>> {
        directives(script.as_bytes())
            .unwrap()
            .into_iter()
            .map(|d| d.words.into_iter().map(|w| w.into_string().unwrap()).collect())
            .collect()
    }

    #[test]
    fn directives_are_found_in_every_shape() {
        let script = "\n#BSUB -J x\n#BSUB-q night # at night\n    #BSUB -J no\necho\n#BSUBX -n 2\n\
                      #BSUB -R \"select[mem>1] order[ut]\" -o 'a b'#c\r\n#BSUB\n#BSUB\t-n\t2,4\n";
        let want: [&[&str]; 4] = [
            &["-J", "x"],
            &["-q", "night"],
            &["-R", "select[mem>1] order[ut]", "-o", "a b#c"],
            &["-n", "2,4"],
        ];
        assert_eq!(all(script), want);
        assert_eq!(directives(script.as_bytes()).unwrap()[1].line, 3);
    }

    #[test]
    fn quotes_and_escapes_of_script_lines_are_read() {
        assert_eq!(
            words(r#"a\ b "c \" \x" 'd "e"' "" x#y"#).unwrap(),
            ["a b", r#"c " \x"#, r#"d "e""#, "", "x#y"]
        );
        assert_eq!(words("a 'b"), None);
        assert_eq!(words("a \"b\\"), None);
        let e = directives(b"echo\n#BSUB -J 'x\n").unwrap_err();
        assert_eq!(e.to_string(), "line 2 of the script: a quote is not closed");
        assert!(directives(b"#BSUB -J \xff\n").is_err());
        assert!(directives(b"echo \xff\n").unwrap().is_empty());
    }

    #[test]
    fn a_script_is_shown_on_one_line() {
        assert_eq!(shown(b"#!/bin/sh\n\n#BSUB -n 2  \necho a;\n"), b"#!/bin/sh;#BSUB -n 2;echo a;");
        let long = "é".repeat(MAX_SHOWN);
        let s = shown(long.as_bytes());
        assert!(s.len() <= MAX_SHOWN && String::from_utf8(s).is_ok());
        assert_eq!(shown(b"\n \n"), b"");
        assert!(is_blank(b" \n\t\n") && !is_blank(b"\n#\n"));
    }

    #[test]
    fn scripts_are_told_from_programs() {
        assert!(looks_like_script(b"#!/bin/sh\n"));
        assert!(looks_like_script(b"\n#BSUB -n 2\necho"));
        assert!(!looks_like_script(b"\x7fELF\0\0"));
        assert!(!looks_like_script(b"echo\n"));
    }
}
