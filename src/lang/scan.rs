//! A cursor over the text of one expression, shared by the parsers of this floor.
//!
//! Positions are byte offsets into the text, always on a character boundary.

/// A position inside a text that only moves forward.
#[derive(Clone, Debug)]
pub(crate) struct Scan<'a> {
    text: &'a str,
    pos: usize,
    base: usize,
}

impl<'a> Scan<'a> {
    /// Starts at the beginning of `text`.
    pub(crate) fn new(text: &'a str) -> Self {
        Scan { text, pos: 0, base: 0 }
    }

    /// Starts at the beginning of `text`, which itself begins at `base` of a longer one:
    /// positions are those of the longer one.
    pub(crate) fn within(text: &'a str, base: usize) -> Self {
        Scan { text, pos: 0, base }
    }

    /// The byte offset of the next character.
    pub(crate) fn pos(&self) -> usize {
        self.base + self.pos
    }

    /// The text that has not been read yet.
    pub(crate) fn rest(&self) -> &'a str {
        self.text.get(self.pos..).unwrap_or("")
    }

    /// The next character, left in place.
    pub(crate) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Takes the next character.
    pub(crate) fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.pos += c.len_utf8();
        Some(c)
    }

    /// True when nothing is left.
    pub(crate) fn at_end(&self) -> bool {
        self.pos >= self.text.len()
    }

    /// Skips blanks of every kind.
    pub(crate) fn blanks(&mut self) {
        self.take_while(char::is_whitespace);
    }

    /// Takes `word` if it comes next.
    pub(crate) fn eat(&mut self, word: &str) -> bool {
        let found = self.rest().starts_with(word);
        if found {
            self.pos += word.len();
        }
        found
    }

    /// Skips blanks, then takes `word` if it comes next.
    pub(crate) fn eat_after_blanks(&mut self, word: &str) -> bool {
        self.blanks();
        self.eat(word)
    }

    /// Takes characters as long as `wanted` holds.
    pub(crate) fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let len = rest.find(|c| !wanted(c)).unwrap_or(rest.len());
        self.pos += len;
        rest.get(..len).unwrap_or("")
    }

    /// Takes a decimal number; None (and no movement) without digits or beyond 64 bits.
    pub(crate) fn integer(&mut self) -> Option<u64> {
        let from = self.pos;
        let value = self.take_while(|c| c.is_ascii_digit()).parse().ok();
        if value.is_none() {
            self.pos = from;
        }
        value
    }

    /// Takes a string in single or double quotes, if one comes next: `Some(Err(()))` when its
    /// closing quote is missing.
    pub(crate) fn quoted(&mut self) -> Option<Result<&'a str, ()>> {
        let quote = self.peek().filter(|c| matches!(c, '"' | '\''))?;
        self.bump();
        let inner = self.take_while(|c| c != quote);
        Some(if self.eat(quote.encode_utf8(&mut [0; 4])) { Ok(inner) } else { Err(()) })
    }
}
