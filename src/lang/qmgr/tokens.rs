//! Words and marks of qmgr's commands, with their places.

use super::Fault;

/// A word, or one of `=`, `(`, `)`, `,`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) text: String,
    pub(super) line: u32,
    pub(super) col: u32,
}

/// The marks that stand by themselves.
const MARKS: &str = "=(),";

impl Token {
    pub(super) fn is(&self, mark: &str) -> bool {
        self.text == mark
    }

    /// Is it a word?
    pub(super) fn is_word(&self) -> bool {
        !MARKS.contains(self.text.as_str())
    }

    pub(super) fn fault(&self, text: impl Into<String>) -> Fault {
        Fault { line: self.line, col: self.col, text: text.into() }
    }
}

/// A command: its tokens, and its text with the lines joined.
pub(super) struct Joined {
    pub(super) tokens: Vec<Token>,
    pub(super) text: String,
    /// Just behind the last character.
    pub(super) end: (u32, u32),
}

/// Splits a text into commands; the first line has this number. Empty ones are left out.
pub(super) fn split(text: &str, first: u32) -> Vec<Joined> {
    let mut all = Vec::new();
    let mut now = Joined { tokens: Vec::new(), text: String::new(), end: (first, 1) };
    for (number, line) in (first..).zip(text.split('\n')) {
        let line = line.strip_suffix('\r').unwrap_or(line);
        let (line, goes_on) = match line.trim_end().strip_suffix('\\') {
            Some(line) => (line, true),
            None => (line, false),
        };
        words(line, number, &mut now);
        if !goes_on {
            let whole = std::mem::replace(
                &mut now,
                Joined { tokens: Vec::new(), text: String::new(), end: (number + 1, 1) },
            );
            all.extend(Some(whole).filter(|c| !c.tokens.is_empty()));
        }
    }
    all.extend(Some(now).filter(|c| !c.tokens.is_empty()));
    all
}

fn words(line: &str, number: u32, into: &mut Joined) {
    let mut col = 0;
    let mut open = false;
    for c in line.chars() {
        col += 1;
        if c == '#' && !open {
            break;
        }
        if c.is_whitespace() {
            open = false;
        } else if MARKS.contains(c) {
            into.tokens.push(Token { text: c.to_string(), line: number, col });
            open = false;
        } else if open && let Some(last) = into.tokens.last_mut() {
            last.text.push(c);
        } else {
            into.tokens.push(Token { text: c.to_string(), line: number, col });
            open = true;
        }
        into.end = (number, col + 1);
    }
    let code = line.split(" #").next().unwrap_or(line).trim();
    if !code.starts_with('#') && !code.is_empty() {
        if !into.text.is_empty() {
            into.text.push(' ');
        }
        into.text.push_str(code);
    }
}
