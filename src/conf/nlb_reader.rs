//! The reader under the name map and the object files of the load balancer: words, strings,
//! numbers in parentheses, and the words for what is missing.

use super::diag::{Diags, Pos, Severity};
use crate::lang::nlb::text::{Cursor, Place, shown};
use crate::model::nlb::{AttrId, Kind};
use std::sync::Arc;

/// A fault of the grammar has been told of: nothing behind it can be read.
pub(super) struct Told;

/// The text of a file with its place in it.
pub(super) struct Reader<'a, 'd> {
    text: Cursor<'a>,
    file: &'d Arc<str>,
    diags: &'d mut Diags,
}

/// A word or string with its place.
#[derive(Clone, Debug)]
pub(super) struct Spelled<T> {
    pub(super) text: T,
    pub(super) at: Place,
}

impl<'a, 'd> Reader<'a, 'd> {
    pub(super) fn new(text: &'a str, file: &'d Arc<str>, diags: &'d mut Diags) -> Self {
        Reader { text: Cursor::new(text), file, diags }
    }

    pub(super) fn error(&mut self, at: Place, text: impl Into<String>) -> Told {
        self.error_near(at, text, None)
    }

    pub(super) fn error_near(
        &mut self,
        at: Place,
        text: impl Into<String>,
        near: Option<&str>,
    ) -> Told {
        let pos = Pos::new(self.file, at.line, at.col);
        self.diags.add_near(Severity::Error, &pos, text, near);
        Told
    }

    pub(super) fn warning(&mut self, at: Place, text: impl Into<String>) {
        self.diags.warning(&Pos::new(self.file, at.line, at.col), text);
    }

    /// `what` is wanted where the text goes on.
    pub(super) fn wanted(&mut self, what: &str) -> Told {
        let at = self.place();
        let mut text = self.text;
        let mut word = text.take_while(of_word);
        if word.is_empty() {
            let from = text.rest();
            text.bump();
            word = text.since(from);
        }
        let before = match word {
            "" => "the end of the file".to_owned(),
            word => format!("<{}>", shown(word)),
        };
        self.error(at, format!("{what} is wanted before {before}"))
    }

    /// The place of the next word or sign.
    pub(super) fn place(&mut self) -> Place {
        self.text.blanks();
        self.text.at()
    }

    /// Is nothing left?
    pub(super) fn at_end(&mut self) -> bool {
        self.text.blanks();
        self.text.peek().is_none()
    }

    /// Does `sign` come next?
    pub(super) fn follows(&mut self, sign: &str) -> bool {
        self.text.blanks();
        self.text.rest().starts_with(sign)
    }

    /// Takes the sign `sign` if it comes next.
    pub(super) fn eat(&mut self, sign: &str) -> bool {
        self.text.blanks();
        self.text.eat(sign)
    }

    /// The sign that must come next.
    pub(super) fn sign(&mut self, sign: &str) -> Result<(), Told> {
        match self.eat(sign) {
            true => Ok(()),
            false => Err(self.wanted(&format!("<{sign}>"))),
        }
    }

    /// The run of characters that `wanted` allows; may be empty.
    pub(super) fn run(&mut self, wanted: impl Fn(char) -> bool) -> Spelled<&'a str> {
        let at = self.place();
        Spelled { text: self.text.take_while(wanted), at }
    }

    /// The name that must come next.
    pub(super) fn name(&mut self, what: &str) -> Result<Spelled<&'a str>, Told> {
        let name = self.run(of_word);
        match name.text.chars().next() {
            Some(c) if !c.is_ascii_digit() => Ok(name),
            Some(_) => Err(self.error(name.at, format!("<{}> is no name", shown(name.text)))),
            None => Err(self.wanted(what)),
        }
    }

    /// A string in quotes, if one comes next.
    pub(super) fn string(&mut self) -> Option<Result<Spelled<String>, Told>> {
        let at = self.place();
        self.text.eat("\"").then(|| {
            let mut text = String::new();
            loop {
                match self.text.peek() {
                    None | Some('\n' | '\r') => {
                        return Err(self.error(at, "<\"> is wanted before the end of the line"));
                    }
                    Some('"') => {
                        self.text.bump();
                        return Ok(Spelled { text, at });
                    }
                    Some(c) => {
                        self.text.bump();
                        let escaped = self.text.peek().filter(|e| matches!(e, '"' | '\\'));
                        match escaped.filter(|_| c == '\\') {
                            Some(escaped) => {
                                self.text.bump();
                                text.push(escaped);
                            }
                            None => text.push(c),
                        }
                    }
                }
            }
        })
    }

    /// A whole number of at most `max`.
    pub(super) fn number(&mut self, what: &str, max: u32) -> Result<u32, Told> {
        let number = self.run(|c| c.is_ascii_digit());
        match number.text.parse::<u32>() {
            Ok(n) if n <= max => Ok(n),
            Ok(_) => Err(self.error(number.at, format!("<{}> is above {max}", number.text))),
            Err(_) if number.text.is_empty() => Err(self.wanted(what)),
            Err(_) => {
                let words = format!("<{}> is above {max}", shown(number.text));
                Err(self.error(number.at, words))
            }
        }
    }

    /// `( number )` behind the word of a kind.
    pub(super) fn id(&mut self, kind: Kind) -> Result<AttrId, Told> {
        self.sign("(")?;
        let number = self.number("a number", u32::MAX)?;
        self.sign(")")?;
        Ok(AttrId::new(kind, number))
    }
}

/// Is the character one of a name?
pub(super) fn of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// A string in quotes, as the reader takes it.
pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
