//! The meaning of the lines of a section: `KEYWORD = value` parameters, or a table of columns.
//!
//! This file also reads values with their types. A malformed value is reported with its place and
//! reading goes on, so that one run names every mistake. See lsf.shared(5).

use super::diag::{Diags, Pos};
use super::lexer::{Section, shown};
use super::line::Line;
use super::names::NameTable;
use super::types::{Limit, RawParam, RawParams, TaskLimit, Threshold, TimeLimit};
use super::units::{SizeUnit, minutes, size_kb, time_limit, yes_no};
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// The largest number of tasks that JOB_SIZE_LIST may have.
const MOST_TASKS: u32 = 2_147_483_646;

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
pub struct SectionRow {
    /// Cells that are not empty.
    pub cells: RawParams,
    /// The position of the row's beginning.
    pub pos: Pos,
}

impl SectionRow {
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
) -> Vec<SectionRow> {
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
        let mut row = SectionRow { cells: RawParams::new(), pos: line.start() };
        for ((cell, column), told) in cells.into_iter().zip(&columns).zip(&mut told) {
            let Some((name, acted)) = column else { continue };
            if is_empty(&cell.text) {
                continue;
            }
            if !acted && !*told {
                diags.not_acted_on(&cell.pos, name);
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

/// The place of the bracket that closes the one at the beginning of `text`.
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

/// The end of a bare word: a blank outside `( )` and `[ ]`.
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
    /// The list that collects mistakes.
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

    /// LOCAL_MAX_PREEXEC_RETRY and LOCAL_MAX_PREEXEC_RETRY_ACTION, in lsb.params and lsb.queues.
    pub fn pre_exec_retries(&mut self) {
        let _: Option<u32> = self.number("LOCAL_MAX_PREEXEC_RETRY", 0..=i32::MAX as u32);
        let words = [("SUSPEND", ()), ("EXIT", ())];
        self.word_of(&mut (), "LOCAL_MAX_PREEXEC_RETRY_ACTION", &words);
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

    /// A period, `[hours:]minutes`, in seconds.
    pub fn period(&mut self, name: &str) -> Option<u64> {
        let value = self.raw.get(name)?;
        let secs = minutes(value.text.trim());
        if secs.is_none() {
            self.bad(name, value, "[hours:]minutes is wanted");
        }
        secs
    }

    /// Hours, or minutes with an m behind them, a year at most; seconds.
    pub fn hours(&mut self, name: &str) -> Option<u64> {
        let value = self.raw.get(name)?;
        let text = value.text.trim();
        let (number, unit) = match text.strip_suffix(['m', 'M']) {
            Some(number) => (number.trim_end(), 60),
            None => (text, 3600),
        };
        let secs = number.parse::<u64>().ok().and_then(|n| n.checked_mul(unit));
        let secs = secs.filter(|secs| (60..=366 * 86_400).contains(secs));
        if secs.is_none() {
            self.bad(name, value, "hours are wanted, or minutes with m: 30m");
        }
        secs
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

    /// JOB_SIZE_LIST: numbers of tasks, the default first.
    pub fn job_sizes(&mut self) -> Vec<u32> {
        const NAME: &str = "JOB_SIZE_LIST";
        let mut sizes = Vec::new();
        for word in self.words(NAME) {
            match word.text.parse().ok().filter(|size| (1..=MOST_TASKS).contains(size)) {
                Some(size) if sizes.contains(&size) => {
                    self.diags.warning(&word.pos, format!("{NAME} has {size} twice"));
                }
                Some(size) => sizes.push(size),
                None => {
                    let want = format!("a number from 1 to {MOST_TASKS} is wanted");
                    self.bad(NAME, &word, &want);
                }
            }
        }
        sizes
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

#[cfg(test)]
mod tests {
    use super::super::lexer;
    use super::super::names::lsb_queues::QUEUE;
    use super::super::names::tables::BATCH_HOST;
    use super::super::testing::MapFiles;
    use super::*;

    fn section(text: &str) -> Section {
        let text = format!("Begin X\n{text}\nEnd X\n");
        let mut diags = Diags::new();
        lexer::read(&MapFiles::one("f", text), "f", &mut diags).unwrap().remove(0)
    }

    fn told(diags: &Diags) -> Vec<String> {
        diags.list().iter().map(|d| d.to_string()).collect()
    }

    fn none(_: &str) -> Option<String> {
        None
    }

    #[test]
    fn parameters_and_their_mistakes() {
        let mut diags = Diags::new();
        let text =
            "priority = 5\nQUEUE_NAME=q\nHOSTS = ()\nMIG = -\n = 3\nNICE\nPRIORITY = 6\nZ = 1";
        let raw = known_params(&section(text), &QUEUE, &none, &mut diags);
        let all: Vec<String> =
            raw.iter().map(|(k, v)| format!("{k}={}@{}", v.text, v.pos)).collect();
        assert_eq!(all, ["PRIORITY=6@f:8:12", "QUEUE_NAME=q@f:3:12"]);
        assert_eq!(
            told(&diags),
            [
                "f:6:2: <= 3> is not KEYWORD = value",
                "f:7:1: <NICE> is not KEYWORD = value",
                "f:8:1: PRIORITY is given again; the last one counts",
                "f:9:1: unknown keyword <Z> in section X",
            ]
            .map(|t| t.replace("section X", "section Queue"))
        );
    }

    fn rows(text: &str) -> (Vec<String>, Vec<String>) {
        let mut diags = Diags::new();
        let rows = table(&section(text), &BATCH_HOST, &none, &mut diags);
        let row = |r: &SectionRow| {
            let cells: Vec<String> =
                r.cells.iter().map(|(k, v)| format!("{k}={}@{}", v.text, v.pos.col)).collect();
            format!("{} {}", r.pos.line, cells.join(" "))
        };
        (rows.iter().map(row).collect(), told(&diags))
    }

    #[test]
    fn cells_are_words_groups_and_strings() {
        let (rows, told) =
            rows("HOST_NAME MXJ CHKPNT\n a  ()  (1-2 (3))\n\"b c\" - -\nd mem=(1 2) [x y](z)\n");
        assert_eq!(
            rows,
            [
                "3 CHKPNT=1-2 (3)@10 HOST_NAME=a@2",
                "4 HOST_NAME=b c@2",
                "5 CHKPNT=[x y](z)@13 HOST_NAME=d@1 MXJ=mem=(1 2)@3"
            ]
        );
        assert_eq!(told, ["f:3:10: CHKPNT is known and not acted on"]);
    }

    #[test]
    fn rows_that_do_not_fit_are_told_and_left_out() {
        let (rows, told) =
            rows("HOST_NAME MXJ MXJ COLR\na 1 2 3\nb 1\nc 1 2 3 4\nd (1 2 3\ne \"x y z\n");
        assert_eq!(rows, ["3 HOST_NAME=a@1 MXJ=1@3"]);
        assert_eq!(
            told,
            [
                "f:2:15: column <MXJ> is given twice",
                "f:2:19: unknown keyword <COLR> in section Host",
                "f:4:1: 2 values for 4 columns: <b 1>",
                "f:5:9: 5 values for 4 columns: <c 1 2 3 4>",
                "f:6:3: <(1 2 3>: parenthesis is not closed",
                "f:7:3: <\"x y z>: quote is not closed",
            ]
        );
    }

    fn value(text: &str) -> RawParams {
        let pos = Pos::new(&"f".into(), 1, 10);
        RawParams::from([("V".into(), RawParam { text: text.into(), pos, breaks: vec![] })])
    }

    #[test]
    fn lists_lose_what_encloses_them() {
        for text in ["a b", "(a b)", "\"a b\"", "( a  b )", "\"(a b)\""] {
            let raw = value(text);
            let words = list(&raw["V"]).unwrap();
            let words: Vec<&str> = words.iter().map(|w| w.text.as_str()).collect();
            assert_eq!(words, ["a", "b"], "{text}");
        }
        assert_eq!(list(&value("( a b )")["V"]).unwrap()[1].pos.col, 14);
        for text in ["(a b", "\"a", "\"(a\"", "(", "\""] {
            assert_eq!(list(&value(text)["V"]), None, "{text}");
        }
    }

    #[test]
    fn task_limits_must_rise_to_be_accepted() {
        let tasks = |text: &str| {
            let mut diags = Diags::new();
            let raw = value(text);
            let limit = Values::new(&raw, &mut diags).tasks("V");
            assert_eq!(limit.is_none(), diags.has_errors());
            limit.map(|l| (l.min, l.default, l.max))
        };
        assert_eq!(tasks("8"), Some((1, 1, 8)));
        assert_eq!(tasks("2 8"), Some((2, 2, 8)));
        assert_eq!(tasks("2 4 8"), Some((2, 4, 8)));
        for bad in ["", "0", "8 2", "2 9 8", "1 2 3 4", "-1", "x"] {
            assert_eq!(tasks(bad), None, "{bad}");
        }
    }

    #[test]
    fn thresholds_may_lack_a_side() {
        let threshold = |text: &str| {
            let mut diags = Diags::new();
            let raw = value(text);
            Values::new(&raw, &mut diags).threshold("V").map(|t| (t.sched, t.stop))
        };
        assert_eq!(threshold("0.7/2"), Some((Some(0.7), Some(2.0))));
        assert_eq!(threshold("/2"), Some((None, Some(2.0))));
        assert_eq!(threshold("3"), Some((Some(3.0), None)));
        assert_eq!(threshold("50%/-"), Some((Some(0.5), None)));
        assert_eq!(threshold("1/2/3"), None);
        assert_eq!(threshold("inf"), None);
    }

    #[test]
    fn object_names_with_special_characters_are_refused() {
        for good in ["q", "night_2", "a-b.c", "DOM\\user", &"x".repeat(MAX_NAME)] {
            assert_eq!(name_fault(good), None, "{good}");
        }
        for bad in ["", "a b", "all", "none", "a(b", "~x", "x#", "a\u{7}", &"x".repeat(60)] {
            assert!(name_fault(bad).is_some(), "{bad}");
        }
    }
}
