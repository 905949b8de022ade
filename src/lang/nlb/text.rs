//! A cursor over a file of the load balancer, and the checks that each such file passes first.

use crate::conf::diag::{Diags, Pos};
use std::sync::Arc;

/// A place in a file: line and column from 1, the column in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Line from 1.
    pub line: u32,
    /// Column from 1, characters.
    pub col: u32,
}

/// The text of a file, read from its beginning to its end.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    rest: &'a str,
    at: Place,
}

impl<'a> Cursor<'a> {
    /// Starts at the beginning of `text`.
    pub fn new(text: &'a str) -> Self {
        Cursor { rest: text, at: Place { line: 1, col: 1 } }
    }

    /// The place of the next character.
    pub fn at(&self) -> Place {
        self.at
    }

    /// The text that has not been read yet.
    pub fn rest(&self) -> &'a str {
        self.rest
    }

    /// The next character, left in place.
    pub fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    /// Takes the next character.
    pub fn bump(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let c = chars.next()?;
        self.rest = chars.as_str();
        if c == '\n' {
            self.at = Place { line: self.at.line.saturating_add(1), col: 1 };
        } else {
            self.at.col = self.at.col.saturating_add(1);
        }
        Some(c)
    }

    /// Takes `word` if it comes next.
    pub fn eat(&mut self, word: &str) -> bool {
        let found = self.rest.starts_with(word);
        if found {
            word.chars().for_each(|_| {
                self.bump();
            });
        }
        found
    }

    /// Takes characters as long as `wanted` holds.
    pub fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let from = self.rest;
        while self.peek().is_some_and(&wanted) {
            self.bump();
        }
        self.since(from)
    }

    /// The text from `from`, a former rest, to here.
    pub fn since(&self, from: &'a str) -> &'a str {
        from.get(..from.len() - self.rest.len()).unwrap_or("")
    }

    /// Skips white space, line ends and comments.
    pub fn blanks(&mut self) {
        loop {
            self.take_while(|c| matches!(c, ' ' | '\t' | '\u{c}' | '\r' | '\n'));
            if self.peek() != Some('#') {
                return;
            }
            self.take_while(|c| c != '\n');
        }
    }
}

/// The text of a file of at most `max` bytes; a file that is too large, not UTF-8 or holds control
/// characters other than TAB, FF and line ends is none, and an error says so with the place.
pub fn decode<'a>(
    file: &Arc<str>,
    bytes: &'a [u8],
    max: usize,
    diags: &mut Diags,
) -> Option<&'a str> {
    if bytes.len() > max {
        let size = match max >> 20 {
            0 => format!("{max} bytes"),
            mb => format!("{mb} MB"),
        };
        diags.error(&Pos::whole(file), format!("larger than {size}"));
        return None;
    }
    let (text, broken) = match std::str::from_utf8(bytes) {
        Ok(text) => (text, false),
        Err(e) => {
            let good = bytes.get(..e.valid_up_to()).unwrap_or_default();
            (std::str::from_utf8(good).unwrap_or_default(), true)
        }
    };
    let mut cursor = Cursor::new(text);
    loop {
        let place = cursor.at();
        let pos = Pos::new(file, place.line, place.col);
        match cursor.bump() {
            None if broken => {
                diags.error(&pos, "not UTF-8");
                return None;
            }
            None => return Some(text),
            Some('\t' | '\n' | '\u{c}') => {}
            Some('\r') if cursor.peek() == Some('\n') => {}
            Some(c) if c.is_control() => {
                diags.error(&pos, format!("control character {:#04x}", u32::from(c)));
                return None;
            }
            Some(_) => {}
        }
    }
}

/// A word as it is shown in a message: cut where it is long.
pub fn shown(word: &str) -> String {
    const MAX: usize = 60;
    match word.char_indices().nth(MAX) {
        Some((end, _)) => format!("{}...", word.get(..end).unwrap_or("")),
        None => word.to_owned(),
    }
}
