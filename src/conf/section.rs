//! What the lines of a section mean: `KEYWORD = value` parameters, or a table of columns.
//!
//! Also the typed reading of values. A value that cannot be read is told with its place and the
//! rest goes on, so that one run names every mistake.
//! Document implemented: config.md section 0.

use super::diag::{Diags, Pos};
use super::lexer::{Line, Section, shown};
use super::lsfconf::yes_no;
use super::names::NameTable;
use super::types::{Limit, RawParam, RawParams, TaskLimit, Threshold, TimeLimit};
use super::units::{SizeUnit, size_kb, time_limit};
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

// ---- vertical sections ----

/// The `KEYWORD = value` lines of a section, in order.
pub fn params(section: &Section, diags: &mut Diags) -> Vec<(RawParam, RawParam)> {
    section.lines.iter().filter_map(|line| param(line, diags)).collect()
}

/// One `KEYWORD = value` line.
pub fn param(line: &Line, diags: &mut Diags) -> Option<(RawParam, RawParam)> {
    let split = line.text.split_once('=').filter(|(key, _)| !key.trim().is_empty());
    let Some((key, value)) = split else {
        let text = format!("<{}> is not KEYWORD = value", shown(&line.text));
        diags.error(&line.start(), text);
        return None;
    };
    let (key, trimmed) = (key.trim(), value.trim());
    let from = if trimmed.is_empty() { value } else { trimmed };
    let mut value = line.slice(trimmed);
    value.pos = line.pos_of(from);
    Some((line.slice(key), value))
}

/// Reads a vertical section against its table of names: known parameters by documented name,
/// empty ones left out. `extra` accepts further names (load indices) and gives their spelling.
pub fn known_params(
    section: &Section,
    table: &NameTable,
    extra: &dyn Fn(&str) -> Option<String>,
    diags: &mut Diags,
) -> RawParams {
    let mut raw = RawParams::new();
    for (key, value) in params(section, diags) {
        let empty = is_empty(&value.text);
        let name = match table.find(&key.text) {
            // An empty value asks for nothing, so there is nothing to tell of it.
            Some(known) if empty => known.name.to_owned(),
            _ => match extra(&key.text) {
                Some(name) => name,
                None => match table.check(&key.text, &key.pos, diags) {
                    Some(name) => name.to_owned(),
                    None => continue,
                },
            },
        };
        if raw.contains_key(&name) {
            diags.warning(&key.pos, format!("{name} is given again; the last one counts"));
            raw.remove(&name);
        }
        if !empty {
            raw.insert(name, value);
        }
    }
    raw
}

/// Whether a value stands for nothing: empty, `-` or `()`.
pub fn is_empty(text: &str) -> bool {
    let text = text.trim();
    text.is_empty()
        || text == "-"
        || text
            .strip_prefix('(')
            .and_then(|t| t.strip_suffix(')'))
            .is_some_and(|t| t.trim().is_empty())
}

// ---- tables ----

/// A row of a horizontal section: its cells by documented column name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Cells that are not empty.
    pub cells: RawParams,
    /// Where the row starts.
    pub pos: Pos,
}

impl Row {
    /// The text of a cell; None where it is empty.
    pub fn get(&self, column: &str) -> Option<&RawParam> {
        self.cells.get(column)
    }
}

/// Reads a horizontal section against its table of columns; `extra` as for [`known_params`].
/// Rows whose number of cells is not that of the columns are told and left out.
pub fn table(
    section: &Section,
    names: &NameTable,
    extra: &dyn Fn(&str) -> Option<String>,
    diags: &mut Diags,
) -> Vec<Row> {
    let Some((head, lines)) = section.lines.split_first() else {
        return Vec::new();
    };
    let columns = header(head, names, extra, diags);
    let mut told = vec![false; columns.len()];
    let mut rows = Vec::new();
    for line in lines {
        let Some(cells) = cells(line, diags) else { continue };
        if cells.len() != columns.len() {
            let at = cells.get(columns.len()).map_or_else(|| line.start(), |c| c.pos.clone());
            let text = format!("{} values for {} columns", cells.len(), columns.len());
            diags.error(&at, format!("{text}: <{}>", shown(&line.text)));
            continue;
        }
        let mut row = Row { cells: RawParams::new(), pos: line.start() };
        for ((cell, column), told) in cells.into_iter().zip(&columns).zip(&mut told) {
            let Some((name, acted)) = column else { continue };
            if is_empty(&cell.text) {
                continue;
            }
            if !acted && !*told {
                diags.notice(&cell.pos, format!("{name} is known and not acted on"));
                *told = true;
            }
            row.cells.insert(name.clone(), cell);
        }
        rows.push(row);
    }
    rows
}

/// The columns: documented name and whether it is acted on, or None for an unknown one.
fn header(
    line: &Line,
    names: &NameTable,
    extra: &dyn Fn(&str) -> Option<String>,
    diags: &mut Diags,
) -> Vec<Option<(String, bool)>> {
    let mut columns: Vec<Option<(String, bool)>> = Vec::new();
    for word in line.text.split_whitespace() {
        let at = line.pos_of(word);
        let column = match names.find(word) {
            Some(known) => Some((known.name.to_owned(), known.acted)),
            None => match extra(word) {
                Some(name) => Some((name, true)),
                None => names.check(word, &at, diags).map(|n| (n.to_owned(), true)),
            },
        };
        if column.is_some() && columns.contains(&column) {
            diags.error(&at, format!("column <{}> is given twice", shown(word)));
            columns.push(None);
        } else {
            columns.push(column);
        }
    }
    columns
}

/// Cuts a row into cells: words, `( )` groups and quoted strings. None: a parenthesis or quote
/// is not closed, and the list says where.
fn cells(line: &Line, diags: &mut Diags) -> Option<Vec<RawParam>> {
    let mut cells = Vec::new();
    let mut rest = line.text.as_str();
    loop {
        rest = rest.trim_start();
        let Some(first) = rest.chars().next() else { break };
        let taken = match first {
            '"' => rest[1..].find('"').map(|end| (&rest[1..=end], end + 2)),
            '(' => closing(rest).map(|end| (&rest[1..end], end + 1)),
            _ => bare(rest).map(|end| (&rest[..end], end)),
        };
        let Some((text, length)) = taken else {
            let what = if first == '"' { "quote" } else { "parenthesis" };
            let text = format!("<{}>: {what} is not closed", shown(rest));
            diags.error(&line.pos_of(rest), text);
            return None;
        };
        cells.push(line.slice(text.trim()));
        rest = &rest[length..];
    }
    Some(cells)
}

/// Where the bracket that opens `text` is closed.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (offset, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(offset);
        }
    }
    None
}

/// Where a bare word ends: at a blank outside `( )` and `[ ]`.
fn bare(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (offset, c) in text.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            c if c.is_whitespace() && depth == 0 => return Some(offset),
            _ => {}
        }
    }
    (depth == 0).then_some(text.len())
}

// ---- values ----

/// Reads typed values out of raw ones, telling those that cannot be read.
pub struct Values<'a> {
    /// The values by documented name.
    pub raw: &'a RawParams,
    /// Where mistakes go.
    pub diags: &'a mut Diags,
}

impl<'a> Values<'a> {
    /// A reader of `raw`.
    pub fn new(raw: &'a RawParams, diags: &'a mut Diags) -> Self {
        Values { raw, diags }
    }

    /// Tells a value that cannot be read, and what is wanted.
    pub fn bad(&mut self, name: &str, value: &RawParam, want: &str) {
        let text = format!("bad value <{}> of {name}: {want}", shown(&value.text));
        self.diags.error(&value.pos, text);
    }

    /// A value's text.
    pub fn text(&self, name: &str) -> Option<String> {
        self.raw.get(name).map(|v| v.text.clone())
    }

    /// The words of a list, each with its place; `( )` or quotes round the list are dropped.
    pub fn words(&mut self, name: &str) -> Vec<RawParam> {
        let Some(value) = self.raw.get(name) else { return Vec::new() };
        match list(value) {
            Some(words) => words,
            None => {
                self.bad(name, value, "parenthesis or quote is not closed");
                Vec::new()
            }
        }
    }

    /// The words of a list as plain text.
    pub fn list(&mut self, name: &str) -> Vec<String> {
        self.words(name).into_iter().map(|w| w.text).collect()
    }

    /// A number within a range.
    pub fn number<T>(&mut self, name: &str, range: RangeInclusive<T>) -> Option<T>
    where
        T: FromStr + PartialOrd + Display + Copy,
    {
        let value = self.raw.get(name)?;
        match value.text.parse::<T>() {
            Ok(number) if range.contains(&number) => Some(number),
            _ => {
                let (low, high) = (*range.start(), *range.end());
                self.bad(name, value, &format!("a number from {low} to {high} is wanted"));
                None
            }
        }
    }

    /// A number, put into `place` when it is there.
    pub fn set<T>(&mut self, place: &mut T, name: &str, range: RangeInclusive<T>)
    where
        T: FromStr + PartialOrd + Display + Copy,
    {
        if let Some(number) = self.number(name, range) {
            *place = number;
        }
    }

    /// A yes or no, put into `place` when it is there.
    pub fn flag(&mut self, place: &mut bool, name: &str) {
        let Some(value) = self.raw.get(name) else { return };
        match yes_no(&value.text) {
            Some(flag) => *place = flag,
            None => self.bad(name, value, "Y or N is wanted"),
        }
    }

    /// One of a set of words, in any case.
    pub fn word_of<T: Copy>(&mut self, place: &mut T, name: &str, words: &[(&str, T)]) {
        let Some(value) = self.raw.get(name) else { return };
        match words.iter().find(|(word, _)| word.eq_ignore_ascii_case(&value.text)) {
            Some((_, meaning)) => *place = *meaning,
            None => {
                let all: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
                self.bad(name, value, &format!("one of {} is wanted", all.join(", ")));
            }
        }
    }

    /// A name that may be given to an object.
    pub fn object_name(&mut self, name: &str) -> Option<String> {
        let value = self.raw.get(name)?;
        match name_fault(&value.text) {
            // The queue of jobs that name none is called `default` where nothing else is said.
            Some(_) if name == "QUEUE_NAME" && value.text == "default" => Some(value.text.clone()),
            None => Some(value.text.clone()),
            Some(why) => {
                self.bad(name, value, why);
                None
            }
        }
    }

    /// `[default] maximum`, each read by `one`.
    fn pair<T>(&mut self, name: &str, want: &str, one: impl Fn(&str) -> Option<T>) -> Limit<T> {
        let nothing = Limit { default: None, maximum: None };
        let Some(value) = self.raw.get(name) else { return nothing };
        let words: Vec<Option<T>> = value.text.split_whitespace().map(one).collect();
        let mut words = words.into_iter();
        match (words.next(), words.next(), words.next()) {
            (Some(Some(max)), None, None) => Limit { default: None, maximum: Some(max) },
            (Some(Some(low)), Some(Some(max)), None) => {
                Limit { default: Some(low), maximum: Some(max) }
            }
            _ => {
                self.bad(name, value, want);
                nothing
            }
        }
    }

    /// `[default] maximum` of run or CPU time.
    pub fn times(&mut self, name: &str) -> Limit<TimeLimit> {
        let limit = self.pair(name, "[[h:]m[/host]] [h:]m[/host] is wanted", time_limit);
        self.ordered(name, &limit, |t| t.seconds);
        limit
    }

    /// `[default] maximum` of a size, KB.
    pub fn sizes(&mut self, name: &str, unit: SizeUnit) -> Limit<u64> {
        let limit = self.pair(name, "a size is wanted", |t| size_kb(t, unit));
        self.ordered(name, &limit, |kb| *kb);
        limit
    }

    /// A single size, KB.
    pub fn size(&mut self, name: &str, unit: SizeUnit) -> Option<u64> {
        let value = self.raw.get(name)?;
        let kb = size_kb(&value.text, unit);
        if kb.is_none() {
            self.bad(name, value, "a size is wanted");
        }
        kb
    }

    /// `[default] maximum` of a count.
    pub fn counts(&mut self, name: &str) -> Limit<u64> {
        let limit = self.pair(name, "a number is wanted", |t| t.parse().ok());
        self.ordered(name, &limit, |n| *n);
        limit
    }

    fn ordered<T>(&mut self, name: &str, limit: &Limit<T>, key: impl Fn(&T) -> u64) {
        if let (Some(low), Some(max), Some(value)) =
            (&limit.default, &limit.maximum, self.raw.get(name))
            && key(low) > key(max)
        {
            self.bad(name, value, "the default exceeds the maximum");
        }
    }

    /// `[minimum [default]] maximum` of tasks.
    pub fn tasks(&mut self, name: &str) -> Option<TaskLimit> {
        let value = self.raw.get(name)?;
        let numbers: Option<Vec<u32>> =
            value.text.split_whitespace().map(|w| w.parse().ok().filter(|&n| n > 0)).collect();
        let limit = match numbers.as_deref() {
            Some([max]) => TaskLimit { min: 1, default: 1, max: *max },
            Some([min, max]) => TaskLimit { min: *min, default: *min, max: *max },
            Some([min, default, max]) => TaskLimit { min: *min, default: *default, max: *max },
            _ => {
                self.bad(name, value, "[minimum [default]] maximum is wanted");
                return None;
            }
        };
        if limit.min > limit.default || limit.default > limit.max {
            self.bad(name, value, "minimum, default and maximum must rise");
            return None;
        }
        Some(limit)
    }

    /// A threshold `loadSched/loadStop`, either side of which may be missing.
    pub fn threshold(&mut self, index: &str) -> Option<Threshold> {
        let value = self.raw.get(index)?;
        let (sched, stop) = value.text.split_once('/').unwrap_or((&value.text, ""));
        let side = |text: &str| -> Result<Option<f64>, ()> {
            let text = text.trim();
            if text.is_empty() || text == "-" {
                return Ok(None);
            }
            let (number, scale) = match text.strip_suffix('%') {
                Some(number) => (number, 0.01),
                None => (text, 1.0),
            };
            match number.parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(Some(number * scale)),
                _ => Err(()),
            }
        };
        match (side(sched), side(stop)) {
            (Ok(sched), Ok(stop)) => Some(Threshold { index: index.to_owned(), sched, stop }),
            _ => {
                self.bad(index, value, "loadSched/loadStop is wanted");
                None
            }
        }
    }
}

/// The words of a list value; None where a parenthesis or quote is not closed.
pub fn list(value: &RawParam) -> Option<Vec<RawParam>> {
    let mut text = value.text.trim();
    for (open, close) in [('"', '"'), ('(', ')')] {
        if let Some(rest) = text.strip_prefix(open) {
            text = rest.strip_suffix(close)?.trim();
        }
    }
    let word = |word: &str| RawParam {
        text: word.to_owned(),
        pos: value.pos_of(word),
        breaks: Vec::new(),
    };
    Some(text.split_whitespace().map(word).collect())
}

/// Longest name of a queue, group, host or resource, characters.
pub const MAX_NAME: usize = 59;

/// Words that may not name an object.
const RESERVED: &[&str] = &["all", "others", "default", "allremote", "none"];

/// Why a name may not be given to an object; None: it may.
pub fn name_fault(name: &str) -> Option<&'static str> {
    let ok = |c: char| !c.is_whitespace() && !c.is_control() && !"()\"'~!@#,=".contains(c);
    if name.is_empty() || !name.chars().all(ok) {
        Some("a name without blanks and special characters is wanted")
    } else if name.chars().count() > MAX_NAME {
        Some("names have at most 59 characters")
    } else if RESERVED.contains(&name) {
        Some("the word is reserved")
    } else {
        None
    }
}
