//! Fields of a classic record: blank-separated, strings in `"..."` with `"` doubled, numbers bare.
//!
//! Invariant (forge-proof): whatever bytes a string holds, what is written of it is one field of
//! one line. A newline becomes `;`, every other control character `?`, and so does whatever some
//! reader takes for the end of a line (NEL, U+2028, U+2029) and what is not UTF-8.
//! Writing allocates nothing but the growth of the output.

use super::record_error::RecordError;
use crate::model::bytes::log_substitute;
use std::borrow::Cow;

/// Can this byte be copied as it is?
fn plain(b: u8) -> bool {
    (0x20..0x7f).contains(&b) && b != b'"'
}

/// Appends ` "text"`.
pub fn put_str(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(b" \"");
    put_inner(out, text);
    out.push(b'"');
}

/// The text between the quotes.
fn put_inner(out: &mut Vec<u8>, text: &[u8]) {
    let run = text.iter().take_while(|b| plain(**b)).count();
    out.extend_from_slice(&text[..run]);
    for chunk in text[run..].utf8_chunks() {
        for c in chunk.valid().chars() {
            match (c, log_substitute(c)) {
                ('"', _) => out.extend_from_slice(b"\"\""),
                (_, Some(b)) => out.push(b),
                (c, None) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        if !chunk.invalid().is_empty() {
            out.push(b'?');
        }
    }
}

/// Appends a blank and a number.
pub fn put_int(out: &mut Vec<u8>, n: impl Into<i64>) {
    let n: i64 = n.into();
    out.push(b' ');
    if n < 0 {
        out.push(b'-');
    }
    digits(out, n.unsigned_abs());
}

/// Appends a blank and an unsigned number of the full range.
pub fn put_u64(out: &mut Vec<u8>, n: u64) {
    out.push(b' ');
    digits(out, n);
}

pub fn digits(out: &mut Vec<u8>, mut n: u64) {
    let mut buf = [0u8; 20];
    let mut at = buf.len();
    loop {
        at -= 1;
        buf[at] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            break;
        }
    }
    out.extend_from_slice(&buf[at..]);
}

/// Appends a blank and microseconds as seconds with six decimals.
pub fn put_us(out: &mut Vec<u8>, us: u64) {
    put_u64(out, us / 1_000_000);
    out.push(b'.');
    let mut frac = us % 1_000_000;
    let mut buf = [0u8; 6];
    for b in buf.iter_mut().rev() {
        *b = b'0' + (frac % 10) as u8;
        frac /= 10;
    }
    out.extend_from_slice(&buf);
}

/// Seconds: four decimals as LSF writes them where those are exact, else six. Usage is measured
/// in microseconds, so that reading gives the same number back.
pub fn put_secs(out: &mut Vec<u8>, secs: f64) {
    let us = if secs.is_finite() && secs > 0.0 { (secs * 1e6).round() as u64 } else { 0 };
    put_us(out, us);
    if us % 100 == 0 {
        out.truncate(out.len() - 2);
    }
}

/// A factor: the shortest decimals that read back the same, at least one.
pub fn put_factor(out: &mut Vec<u8>, x: f64) {
    use std::io::Write;
    let x = if x.is_finite() { x } else { 0.0 };
    let from = out.len();
    // writing to a Vec cannot fail
    let _ = write!(out, " {x}");
    if !out[from..].contains(&b'.') {
        out.extend_from_slice(b".0");
    }
}

/// A field as it stands in the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field<'a> {
    Bare(&'a [u8]),
    /// The text between the quotes; quotes in it are still doubled when the flag is set.
    Quoted(&'a [u8], bool),
}

/// Reads the fields of one record from left to right.
#[derive(Clone, Debug, Default)]
pub struct Fields<'a> {
    line: &'a [u8],
    pos: usize,
    /// Number of the last field taken, from 1 (the record's type).
    count: u32,
}

impl<'a> Fields<'a> {
    pub fn new(line: &'a [u8]) -> Self {
        Fields { line, pos: 0, count: 0 }
    }

    fn blanks(&mut self) {
        let line = self.line;
        while self.pos < line.len() && line[self.pos] == b' ' {
            self.pos += 1;
        }
    }

    /// The byte behind the field taken last.
    pub fn pos(&self) -> usize {
        self.pos
    }

    /// Is nothing left?
    pub fn at_end(&mut self) -> bool {
        self.blanks();
        self.pos >= self.line.len()
    }

    /// The next field, `None` at the end.
    pub fn field(&mut self) -> Result<Option<Field<'a>>, RecordError> {
        self.blanks();
        let from = self.pos;
        let Some(doubled) = self.pass()? else { return Ok(None) };
        Ok(Some(match &self.line[from..self.pos] {
            [b'"', inner @ .., b'"'] => Field::Quoted(inner, doubled),
            text => Field::Bare(text),
        }))
    }

    /// Goes over the next field; whether there are doubled quotes in it, `None` at the end. One
    /// loop without calls: most fields of a million lines are only gone over, and are short.
    fn pass(&mut self) -> Result<Option<bool>, RecordError> {
        let (line, mut at) = (self.line, self.pos);
        while at < line.len() && line[at] == b' ' {
            at += 1;
        }
        if at >= line.len() {
            self.pos = at;
            return Ok(None);
        }
        self.count += 1;
        let mut doubled = false;
        if line[at] != b'"' {
            while at < line.len() && line[at] != b' ' {
                at += 1;
            }
            self.pos = at;
            return Ok(Some(false));
        }
        loop {
            at += 1;
            while at < line.len() && line[at] != b'"' {
                at += 1;
            }
            if at >= line.len() {
                return Err(RecordError::OpenString { field: self.count });
            }
            at += 1;
            if at >= line.len() || line[at] == b' ' {
                break;
            }
            if line[at] != b'"' {
                return Err(self.bad("a blank after the closing quote"));
            }
            doubled = true;
        }
        self.pos = at;
        Ok(Some(doubled))
    }

    /// Is the next field a string? Nothing is taken.
    pub fn next_is_string(&mut self) -> bool {
        self.blanks();
        self.line.get(self.pos) == Some(&b'"')
    }

    /// Is the next field this bare word? Nothing is taken.
    pub fn next_is(&mut self, word: &str) -> bool {
        self.blanks();
        self.line[self.pos..]
            .strip_prefix(word.as_bytes())
            .is_some_and(|rest| matches!(rest.first(), None | Some(b' ')))
    }

    pub fn bad(&self, want: &'static str) -> RecordError {
        RecordError::Field { field: self.count, want }
    }

    /// A string field.
    pub fn bytes(&mut self) -> Result<Cow<'a, [u8]>, RecordError> {
        match self.field()? {
            Some(Field::Quoted(text, false)) => Ok(Cow::Borrowed(text)),
            Some(Field::Quoted(text, true)) => Ok(Cow::Owned(undouble(text))),
            Some(Field::Bare(_)) => Err(self.bad("a string")),
            None => Err(RecordError::Short { field: self.count + 1 }),
        }
    }

    /// A string field as text; what another LSF wrote in other encodings is replaced.
    pub fn text(&mut self) -> Result<String, RecordError> {
        Ok(match self.bytes()? {
            Cow::Borrowed(b) => String::from_utf8_lossy(b).into_owned(),
            Cow::Owned(v) => String::from_utf8(v)
                .unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()),
        })
    }

    /// A field as text, with quotes or without.
    pub fn word(&mut self) -> Result<String, RecordError> {
        if self.next_is_string() {
            return self.text();
        }
        self.bare().map(str::to_owned)
    }

    fn bare(&mut self) -> Result<&'a str, RecordError> {
        match self.field()? {
            Some(Field::Bare(b)) => std::str::from_utf8(b).map_err(|_| self.bad("a number")),
            Some(Field::Quoted(..)) => Err(self.bad("a number")),
            None => Err(RecordError::Short { field: self.count + 1 }),
        }
    }

    /// A number of whatever type is asked for.
    pub fn num<T: std::str::FromStr>(&mut self) -> Result<T, RecordError> {
        self.bare()?.parse().map_err(|_| self.bad("a number in range"))
    }

    /// A whole number, without the detour over text.
    pub fn int(&mut self) -> Result<i64, RecordError> {
        let text = match self.field()? {
            Some(Field::Bare(text)) => text,
            Some(Field::Quoted(..)) => return Err(self.bad("a number")),
            None => return Err(RecordError::Short { field: self.count + 1 }),
        };
        let (minus, digits) = match text {
            [b'-', rest @ ..] => (true, rest),
            _ => (false, text),
        };
        // so many digits that no sum of them overflows
        if digits.is_empty() || digits.len() > 18 {
            return Err(self.bad("a number in range"));
        }
        let mut n = 0;
        for b in digits {
            if !b.is_ascii_digit() {
                return Err(self.bad("a number"));
            }
            n = n * 10 + i64::from(b - b'0');
        }
        Ok(if minus { -n } else { n })
    }

    /// A whole number of 32 bits.
    pub fn small(&mut self) -> Result<u32, RecordError> {
        let n = self.int()?;
        u32::try_from(n).map_err(|_| self.bad("a number in range"))
    }

    /// A size or time where -1 means none.
    pub fn limit(&mut self) -> Result<Option<u64>, RecordError> {
        match self.bare()? {
            "-1" => Ok(None),
            n => n.parse().map(Some).map_err(|_| self.bad("a limit")),
        }
    }

    /// Seconds with decimals, as microseconds; below 0 is 0.
    pub fn us(&mut self) -> Result<u64, RecordError> {
        let secs: f64 = self.num()?;
        Ok(if secs > 0.0 { (secs * 1e6).round() as u64 } else { 0 })
    }

    /// A count that some versions write with decimals; below 0 is 0.
    pub fn count(&mut self) -> Result<u64, RecordError> {
        let text = self.bare()?;
        if let Ok(n) = text.parse::<u64>() {
            return Ok(n);
        }
        let x: f64 = text.parse().map_err(|_| self.bad("a count"))?;
        Ok(if x > 0.0 { x as u64 } else { 0 })
    }

    /// Takes `n` fields of any kind.
    pub fn skip(&mut self, n: usize) -> Result<(), RecordError> {
        for _ in 0..n {
            if self.pass()?.is_none() {
                return Err(RecordError::Short { field: self.count + 1 });
            }
        }
        Ok(())
    }

    /// A count, then as many strings. Nothing is allocated by the count.
    pub fn list(&mut self) -> Result<Vec<String>, RecordError> {
        let n: u32 = self.num()?;
        let mut out = Vec::new();
        for _ in 0..n {
            out.push(self.text()?);
        }
        Ok(out)
    }

    /// Hosts, one a slot or as `n*host`, put together as (host, slots).
    pub fn slots(&mut self) -> Result<Vec<(String, u32)>, RecordError> {
        Ok(self.hosts_with_slots()?.0)
    }

    /// Hosts as [`Fields::slots`] reads them, and whether one of them stands as `n*host`.
    pub fn hosts_with_slots(&mut self) -> Result<(Vec<(String, u32)>, bool), RecordError> {
        let n: u32 = self.num()?;
        let (mut out, mut short) = (Vec::<(String, u32)>::new(), false);
        for _ in 0..n {
            let name = self.bytes()?;
            let (many, host) = split_slots(&name);
            short |= many > 1;
            match out.last_mut() {
                Some((last, slots)) if last.as_bytes() == host => {
                    *slots = slots.saturating_add(many);
                }
                _ => out.push((String::from_utf8_lossy(host).into_owned(), many)),
            }
        }
        Ok((out, short))
    }
}

/// Slots and host of `n*host`; a bare name is one slot.
pub fn split_slots(name: &[u8]) -> (u32, &[u8]) {
    if let Some(star) = name.iter().position(|b| *b == b'*')
        && let Some(n) = std::str::from_utf8(&name[..star]).ok().and_then(|t| t.parse().ok())
    {
        return (n, &name[star + 1..]);
    }
    (1, name)
}

fn undouble(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut skip = false;
    for b in text {
        if skip && *b == b'"' {
            skip = false;
            continue;
        }
        skip = *b == b'"';
        out.push(*b);
    }
    out
}

/// Writes the key-value tail of a record: `<n> "lsf.key" "value" ...`. The count is put in when
/// the tail is complete, so that nothing is gathered first.
pub struct Tail {
    at: usize,
    n: u64,
}

impl Tail {
    pub fn begin(out: &mut Vec<u8>) -> Tail {
        out.push(b' ');
        Tail { at: out.len(), n: 0 }
    }

    /// Appends a pair with a text value. `key` is whole, without quotes in it.
    pub fn text(&mut self, out: &mut Vec<u8>, key: &str, value: &[u8]) {
        put_str(out, key.as_bytes());
        put_str(out, value);
        self.n += 1;
    }

    /// Appends a pair whose key has a part that came from a user.
    pub fn text_named(&mut self, out: &mut Vec<u8>, prefix: &str, name: &[u8], value: &[u8]) {
        out.extend_from_slice(b" \"");
        out.extend_from_slice(prefix.as_bytes());
        put_inner(out, name);
        out.push(b'"');
        put_str(out, value);
        self.n += 1;
    }

    /// Appends a pair whose value is numbers put between blanks or colons.
    pub fn nums(&mut self, out: &mut Vec<u8>, key: &str, sep: u8, values: &[u64]) {
        put_str(out, key.as_bytes());
        out.extend_from_slice(b" \"");
        for (i, v) in values.iter().enumerate() {
            if i > 0 {
                out.push(sep);
            }
            digits(out, *v);
        }
        out.push(b'"');
        self.n += 1;
    }

    /// Ends the tail; one without pairs leaves no trace.
    pub fn end(self, out: &mut Vec<u8>) {
        if self.n == 0 {
            out.truncate(self.at - 1);
            return;
        }
        let end = out.len();
        digits(out, self.n);
        let width = out.len() - end;
        out[self.at..].rotate_right(width);
    }
}

/// The first number of the value of a pair; 0: there is none.
pub fn one_number(value: &[u8]) -> u32 {
    let first = nums(value, ' ').and_then(|v| v.first().copied());
    first.and_then(|n| n.try_into().ok()).unwrap_or(0)
}

/// Pairs of a tail that was read.
pub type Pairs<'a> = Vec<(Cow<'a, [u8]>, Cow<'a, [u8]>)>;

/// Finds the tail: from here on, the first count that is followed by exactly so many pairs with
/// keys of ours up to the end of the record. Called after the fields known of a record, which
/// hold what users write, so that none of that can pass for a tail.
pub fn find_tail<'a>(fields: &Fields<'a>) -> Option<Pairs<'a>> {
    let mut at = fields.clone();
    loop {
        if let Some(pairs) = whole_tail(at.clone()) {
            return Some(pairs);
        }
        at.field().ok()??;
    }
}

fn whole_tail<'a>(mut fields: Fields<'a>) -> Option<Pairs<'a>> {
    let n: u32 = fields.num().ok()?;
    let mut out = Vec::new();
    if n == 0 {
        return None;
    }
    for _ in 0..n {
        let key = fields.bytes().ok()?;
        if !key.starts_with(b"lsf.") {
            return None;
        }
        out.push((key, fields.bytes().ok()?));
    }
    fields.at_end().then_some(out)
}

/// Numbers of a tail value.
pub fn nums(value: &[u8], sep: char) -> Option<Vec<u64>> {
    std::str::from_utf8(value).ok()?.split(sep).map(|t| t.parse().ok()).collect()
}
