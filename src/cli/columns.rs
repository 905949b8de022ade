//! Customised listings: the `-o "field[:[-]width[:unit]] ... [delimiter='c']"` format, its text
//! form and its JSON form, for every command that has them.
//!
//! Implements bjobs(1) -o: without widths fields are parted by one separator, without padding and
//! without a blank at the line's end; an empty value is `-` in text and `""` in JSON; field names
//! know no case. A command brings its own table of fields ([`Fields`]) and writes values; this
//! module lays them out. Characters that a terminal could take for a command are shown as `?`.

use super::long_format::{has_control, push_clean};
use std::fmt;
use std::ops::Range;

/// Most fields one format may name.
pub const MAX_FIELDS: usize = 1000;
/// Widest a column may be asked for.
pub const MAX_WIDTH: usize = 4096;

/// The fields that a command can show. Fields are spoken of by their place in the table.
pub trait Fields {
    /// How many there are; `all` shows them in this order.
    fn count(&self) -> usize;
    /// The name, in small letters; the heading is its upper case.
    fn name(&self, field: usize) -> &str;
    /// Other names, in small letters.
    fn aliases(&self, field: usize) -> &[&str];
    /// Columns taken by `field:`.
    fn width(&self, field: usize) -> usize;
    /// Whether a value too long keeps its end behind a `*` (job names) instead of its beginning.
    fn keeps_end(&self, field: usize) -> bool {
        self.name(field) == "job_name"
    }
}

/// One column of a format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The field's place in the table.
    pub field: usize,
    /// Columns it takes; None: as many as the value has.
    pub width: Option<usize>,
    /// Aligned to the right.
    pub right: bool,
    /// `:unit`: K to Z, S, C or W, in upper case.
    pub unit: Option<char>,
}

/// A format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    /// The columns, in order; never empty.
    pub columns: Vec<Column>,
    /// The delimiter.
    pub delimiter: String,
}

/// Why a format is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormatError {
    /// No such field.
    Field(String),
    /// The text after the field's name is neither a width nor a unit.
    Width(String),
    /// No field at all, or too many.
    Count,
    /// A quote without its fellow, or a delimiter that is empty.
    Delimiter,
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let not = |f: &mut fmt::Formatter<'_>, text: &str, what: &str| {
            let mut clean = String::new();
            push_clean(&mut clean, text);
            write!(f, "<{clean}> in the format string is not a valid {what}.")
        };
        match self {
            FormatError::Field(text) => not(f, text, "field name"),
            FormatError::Width(text) => not(f, text, "output width"),
            FormatError::Count => f.write_str("The format string names no field, or too many."),
            FormatError::Delimiter => {
                f.write_str("The delimiter in the format string is not valid.")
            }
        }
    }
}

impl std::error::Error for FormatError {}

impl Format {
    /// Parses the value of -o.
    pub fn parse(text: &str, fields: &dyn Fields) -> Result<Format, FormatError> {
        let mut columns = Vec::new();
        let mut delimiter = " ".to_string();
        for word in words(text)? {
            if let Some(value) = strip_delimiter(word) {
                delimiter = unquoted(value).ok_or(FormatError::Delimiter)?.to_string();
                continue;
            }
            let (name, spec) = word.split_at(word.find(':').unwrap_or(word.len()));
            if name.eq_ignore_ascii_case("all") {
                // what follows is of every field
                let each = |field| column(&format!("{}{spec}", fields.name(field)), fields);
                for field in 0..fields.count() {
                    columns.push(each(field).map_err(|_| FormatError::Width(word.to_string()))?);
                }
            } else {
                columns.push(column(word, fields)?);
            }
        }
        if columns.is_empty() || columns.len() > MAX_FIELDS {
            return Err(FormatError::Count);
        }
        Ok(Format { columns, delimiter })
    }

    /// Appends the heading line.
    pub fn header(&self, out: &mut String, fields: &dyn Fields) {
        for (i, column) in self.columns.iter().enumerate() {
            let from = self.begin(out, i);
            out.push_str(&fields.name(column.field).to_uppercase());
            column.fit(out, from, false);
        }
        out.push('\n');
    }

    /// Appends one line; `value` appends the plain value of a column, nothing if there is none.
    pub fn row(
        &self,
        out: &mut String,
        fields: &dyn Fields,
        mut value: impl FnMut(&mut String, &Column),
    ) {
        for (i, column) in self.columns.iter().enumerate() {
            let from = self.begin(out, i);
            value(out, column);
            clean_from(out, from);
            if out.len() == from {
                out.push('-');
            }
            column.fit(out, from, fields.keeps_end(column.field));
        }
        out.push('\n');
    }

    /// Appends one row as a JSON record.
    pub fn record(
        &self,
        json: &mut Json,
        fields: &dyn Fields,
        mut value: impl FnMut(&mut String, &Column),
    ) {
        let mut text = String::new();
        json.open();
        for column in &self.columns {
            text.clear();
            value(&mut text, column);
            json.entry(&fields.name(column.field).to_uppercase(), &text);
        }
        json.close();
    }

    fn begin(&self, out: &mut String, column: usize) -> usize {
        if column > 0 {
            out.push_str(&self.delimiter);
        }
        out.len()
    }
}

impl Column {
    /// Cuts or pads what was appended since `from`.
    fn fit(&self, out: &mut String, from: usize, keep_end: bool) {
        let Some(width) = self.width else { return };
        let text = out.get(from..).unwrap_or("");
        let has = text.chars().count();
        if has > width {
            let cut = if keep_end { tail(text, width) } else { text.chars().take(width).collect() };
            out.truncate(from);
            out.push_str(&cut);
        } else if self.right {
            out.insert_str(from, &" ".repeat(width - has));
        } else {
            out.extend(std::iter::repeat_n(' ', width - has));
        }
    }
}

/// A limit, `-` where there is none.
pub fn count(n: Option<u64>) -> String {
    n.map_or_else(|| "-".to_string(), |n| n.to_string())
}

/// `*` and the last `width - 1` characters.
pub fn tail(text: &str, width: usize) -> String {
    let skip = (text.chars().count() + 1).saturating_sub(width);
    std::iter::once('*').chain(text.chars().skip(skip)).take(width).collect()
}

/// Shows without controls what was appended since `from`.
fn clean_from(out: &mut String, from: usize) {
    if has_control(out.get(from..).unwrap_or("")) {
        let raw = out.split_off(from);
        push_clean(out, &raw);
    }
}

/// The blank-separated words, blanks within quotes kept.
fn words(text: &str) -> Result<Vec<&str>, FormatError> {
    let mut found = Vec::new();
    let mut word: Option<Range<usize>> = None;
    let mut quote = None;
    for (at, c) in text.char_indices() {
        if quote.is_none() && c.is_whitespace() {
            found.extend(word.take().and_then(|w| text.get(w)));
            continue;
        }
        match quote {
            Some(q) if q == c => quote = None,
            None if c == '\'' || c == '"' => quote = Some(c),
            _ => {}
        }
        let from = word.map_or(at, |w| w.start);
        word = Some(from..at + c.len_utf8());
    }
    found.extend(word.and_then(|w| text.get(w)));
    if quote.is_some() { Err(FormatError::Delimiter) } else { Ok(found) }
}

fn strip_delimiter(word: &str) -> Option<&str> {
    let (name, value) = word.split_once('=')?;
    name.eq_ignore_ascii_case("delimiter").then_some(value)
}

/// The text without the quotes around it; None when nothing or a stray quote is left.
fn unquoted(text: &str) -> Option<&str> {
    let inner = ['\'', '"'].iter().find_map(|q| text.strip_prefix(*q)?.strip_suffix(*q));
    let bare = inner.unwrap_or(text);
    (!bare.is_empty() && !has_control(bare)).then_some(bare)
}

/// `name`, `name:`, `name:[-][width]`, `name:[-][width]:unit`.
fn column(word: &str, fields: &dyn Fields) -> Result<Column, FormatError> {
    let mut parts = word.splitn(3, ':');
    let name = parts.next().unwrap_or("").to_ascii_lowercase();
    let is = |f: &usize| fields.name(*f) == name || fields.aliases(*f).contains(&name.as_str());
    let found = (0..fields.count()).find(is);
    let field = found.ok_or_else(|| FormatError::Field(name.clone()))?;
    let bad = || FormatError::Width(word.to_string());
    let Some(spec) = parts.next() else {
        return Ok(Column { field, width: None, right: false, unit: None });
    };
    let (digits, right) = match spec.strip_prefix('-') {
        Some(digits) => (digits, true),
        None => (spec, false),
    };
    let unit = match parts.next().unwrap_or("") {
        "" => None,
        unit => Some(read_unit(unit).ok_or_else(bad)?),
    };
    let width = match digits {
        "" => fields.width(field),
        digits if digits.bytes().all(|b| b.is_ascii_digit()) => {
            digits.parse().ok().filter(|w| (1..=MAX_WIDTH).contains(w)).ok_or_else(bad)?
        }
        _ => return Err(bad()),
    };
    Ok(Column { field, width: Some(width), right, unit })
}

/// The unit that a word names, in upper case.
pub fn read_unit(text: &str) -> Option<char> {
    let mut letters = text.chars().map(|c| c.to_ascii_uppercase());
    let unit = letters.next().filter(|c| "KMGTPEZSCW".contains(*c))?;
    match (letters.next(), letters.next()) {
        (None, _) | (Some('B'), None) => Some(unit),
        _ => None,
    }
}

/// `3.5G`, `0.01T`, `12M`: a size in the unit asked for, with two decimals at most, the third
/// rounded up; any other letter takes the unit that fits.
pub fn in_unit(out: &mut String, kb: u64, unit: char) {
    const UNITS: &str = "KMGTPEZ";
    let fitting = || (1..5).rev().find(|at| kb >> (10 * at) > 0).unwrap_or(0);
    let at = UNITS.find(unit).unwrap_or_else(fitting);
    let one = 1u128 << (10 * at);
    let hundredths = (u128::from(kb) * 100).div_ceil(one);
    let text = format!("{}.{:02}", hundredths / 100, hundredths % 100);
    out.push_str(text.trim_end_matches('0').trim_end_matches('.'));
    out.extend(UNITS.chars().nth(at));
}

/// The JSON form: `{ "COMMAND":..., "JOBS":n, "RECORDS":[ {...} ] }`. All values are strings.
#[derive(Clone, Debug)]
pub struct Json {
    command: &'static str,
    counted: &'static str,
    records: usize,
    entries: usize,
    body: String,
}

impl Json {
    /// `counted` is the key of the number of records: `JOBS`, `HOSTS`, `QUEUES`.
    pub fn new(command: &'static str, counted: &'static str) -> Json {
        Json { command, counted, records: 0, entries: 0, body: String::new() }
    }

    /// A record of known keys, such as a job that is not found.
    pub fn pairs(&mut self, pairs: &[(&str, &str)]) {
        self.open();
        pairs.iter().for_each(|(key, value)| self.entry(key, value));
        self.close();
    }

    /// A record of known keys, with a list of records under one more key.
    pub fn with_list(&mut self, pairs: &[(&str, &str)], key: &str, list: &[[(&str, &str); 2]]) {
        self.open();
        pairs.iter().for_each(|(key, value)| self.entry(key, value));
        self.body.push_str(",\n      ");
        quote(&mut self.body, key);
        self.body.push_str(":[");
        for (i, item) in list.iter().enumerate() {
            self.body.push_str(if i == 0 { "\n        " } else { ",\n        " });
            object(&mut self.body, item);
        }
        self.body.push_str("\n      ]");
        self.close();
    }

    fn open(&mut self) {
        self.body.push_str(if self.records == 0 { "\n    {" } else { ",\n    {" });
        self.entries = 0;
    }

    fn entry(&mut self, key: &str, value: &str) {
        self.body.push_str(if self.entries == 0 { "\n      " } else { ",\n      " });
        quote(&mut self.body, key);
        self.body.push(':');
        quote(&mut self.body, value);
        self.entries += 1;
    }

    fn close(&mut self) {
        self.body.push_str("\n    }");
        self.records += 1;
    }

    /// The whole text, a newline at its end.
    pub fn finish(self) -> String {
        let Json { command, counted, records, body, .. } = self;
        let mut out = String::with_capacity(body.len() + 80);
        out.push_str("{\n  \"COMMAND\":");
        quote(&mut out, command);
        out.push_str(",\n  ");
        quote(&mut out, counted);
        out.push_str(&format!(":{records},\n  \"RECORDS\":[{body}\n  ]\n}}\n"));
        out
    }

    /// The beginning of an output that is written as its records come: their number is behind them.
    pub fn begin(&self) -> String {
        let mut out = String::from("{\n  \"COMMAND\":");
        quote(&mut out, self.command);
        out.push_str(",\n  \"RECORDS\":[");
        out
    }

    /// The text of the records since the last call.
    pub fn take(&mut self) -> String {
        std::mem::take(&mut self.body)
    }

    /// The end of an output that was begun with [`Json::begin`]: the number of what is `counted`,
    /// and an object under a key of its own, where it has pairs.
    pub fn end(self, count: u64, key: &str, pairs: &[(&str, &str)]) -> String {
        let mut out = String::from("\n  ],\n  ");
        quote(&mut out, self.counted);
        out.push_str(&format!(":{count}"));
        if !pairs.is_empty() {
            out.push_str(",\n  ");
            quote(&mut out, key);
            out.push(':');
            object(&mut out, pairs);
        }
        out.push_str("\n}\n");
        out
    }
}

/// Appends an object on one line.
fn object(out: &mut String, pairs: &[(&str, &str)]) {
    out.push('{');
    for (i, (key, value)) in pairs.iter().enumerate() {
        out.push_str(if i == 0 { "" } else { ", " });
        quote(out, key);
        out.push(':');
        quote(out, value);
    }
    out.push('}');
}

/// A JSON string; every control, C1 ones too, is escaped so that none reaches a terminal.
fn quote(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// name, aliases, width
    struct ExampleFields;
    const ROWS: [(&str, &[&str], usize); 5] = [
        ("jobid", &["id"], 7),
        ("stat", &[], 5),
        ("job_name", &["name"], 10),
        ("%complete", &[], 11),
        ("mem", &[], 10),
    ];

    impl Fields for ExampleFields {
        fn count(&self) -> usize {
            ROWS.len()
        }
        fn name(&self, field: usize) -> &str {
            ROWS[field].0
        }
        fn aliases(&self, field: usize) -> &[&str] {
            ROWS[field].1
        }
        fn width(&self, field: usize) -> usize {
            ROWS[field].2
        }
    }

    const VALUES: [&str; 5] = ["101", "RUN", "a_very_long_name.sh", "", "12 M"];

    fn shown(format: &str) -> String {
        let f = Format::parse(format, &ExampleFields).unwrap_or_else(|e| panic!("{format}: {e}"));
        let mut out = String::new();
        f.header(&mut out, &ExampleFields);
        f.row(&mut out, &ExampleFields, |o, c| o.push_str(VALUES[c.field]));
        out
    }

    fn refused(format: &str) -> String {
        Format::parse(format, &ExampleFields).expect_err(format).to_string()
    }

    #[test]
    fn columns_without_widths_have_one_separator_and_no_padding() {
        assert_eq!(shown("jobid stat"), "JOBID STAT\n101 RUN\n");
        assert_eq!(
            shown("  ID   %Complete Name "),
            "JOBID %COMPLETE JOB_NAME\n101 - a_very_long_name.sh\n"
        );
        assert_eq!(shown("id stat delimiter='^'"), "JOBID^STAT\n101^RUN\n");
        assert_eq!(shown("id stat DELIMITER=\"|\""), "JOBID|STAT\n101|RUN\n");
        assert_eq!(shown("delimiter=, id stat"), "JOBID,STAT\n101,RUN\n");
        assert_eq!(shown("id stat delimiter=' ; '"), "JOBID ; STAT\n101 ; RUN\n");
        assert_eq!(
            shown("all"),
            "JOBID STAT JOB_NAME %COMPLETE MEM\n\
            101 RUN a_very_long_name.sh - 12 M\n"
        );
    }

    #[test]
    fn widths_cut_pad_and_align() {
        assert_eq!(shown("id: stat:"), "JOBID   STAT \n101     RUN  \n");
        assert_eq!(shown("id:- stat:-3 mem"), "  JOBID STA MEM\n    101 RUN 12 M\n");
        assert_eq!(shown("name:10 id"), "JOB_NAME   JOBID\n*g_name.sh 101\n");
        assert_eq!(shown("name: delimiter='^' id:4"), "JOB_NAME  ^JOBI\n*g_name.sh^101 \n");
        assert_eq!(tail("abc", 1), "*");
        assert_eq!(tail("abcdef", 3), "*ef");
        let f = Format::parse("mem:10:g mem::KB", &ExampleFields).unwrap();
        assert_eq!(f.columns[0].unit, Some('G'));
        assert_eq!((f.columns[1].unit, f.columns[1].width), (Some('K'), Some(10)));
    }

    #[test]
    fn every_field_with_one_width() {
        assert_eq!(shown("all:4"), "JOBI STAT JOB_ %COM MEM \n101  RUN  *.sh -    12 M\n");
        assert_eq!(shown("All:-4").lines().nth(1), Some(" 101  RUN *.sh    - 12 M"));
        assert_eq!(refused("all:x"), "<all:x> in the format string is not a valid output width.");
        let own = shown("all:");
        assert_eq!(own.lines().next(), Some("JOBID   STAT  JOB_NAME   %COMPLETE   MEM       "));
    }

    #[test]
    fn size_is_shown_in_the_unit_of_the_format() {
        for (kb, unit, want) in [
            (3_670_016, 'G', "3.5G"),
            (10 << 10, 'G', "0.01G"),
            (1, 'G', "0.01G"),
            (0, 'G', "0G"),
            (122_880, 'M', "120M"),
            (122_880, 'K', "122880K"),
            (122_881, 'M', "120.01M"),
            (122_880, 'T', "0.01T"),
            (512, 'S', "512K"),
            (122_880, 'S', "120M"),
            (3_670_016, 'S', "3.5G"),
            (5 << 30, 'S', "5T"),
            (u64::MAX, 'Z', "16Z"),
        ] {
            let mut out = String::new();
            in_unit(&mut out, kb, unit);
            assert_eq!(out, want, "{kb} {unit}");
        }
    }

    #[test]
    fn malformed_format_is_refused() {
        assert_eq!(refused("jobid foo"), "<foo> in the format string is not a valid field name.");
        assert_eq!(refused("\x1b[1m"), "<?[1m> in the format string is not a valid field name.");
        for bad in ["jobid:x", "jobid:0", "jobid:4097", "jobid:1:q", "jobid:--1", "jobid:1:KK"] {
            let want = format!("<{bad}> in the format string is not a valid output width.");
            assert_eq!(refused(bad), want);
        }
        for bad in ["", " ", "delimiter=x"] {
            assert!(refused(bad).contains("no field"), "{bad}");
        }
        for bad in ["id delimiter=", "id delimiter=''", "id 'x"] {
            assert!(refused(bad).contains("delimiter"), "{bad}");
        }
    }

    #[test]
    fn nothing_reaches_the_terminal() {
        let f = Format::parse("name:6 id", &ExampleFields).unwrap();
        let mut out = String::new();
        f.row(&mut out, &ExampleFields, |o, _| o.push_str("\x1b[1m\n"));
        assert_eq!(out, "?[1m;  ?[1m;\n");
        let mut json = Json::new("bjobs", "JOBS");
        json.pairs(&[("A", "\x1b\u{9b}\"\\\n\u{e9}")]);
        let text = json.finish();
        assert!(text.contains(r#""A":"\u001b\u009b\"\\\n"#), "{text}");
    }

    #[test]
    fn json_in_lsf_layout() {
        let f = Format::parse("id: stat %complete", &ExampleFields).unwrap();
        let mut json = Json::new("bjobs", "JOBS");
        f.record(&mut json, &ExampleFields, |o, c| o.push_str(VALUES[c.field]));
        json.pairs(&[("JOBID", "9"), ("ERROR", "Job <9> is not found")]);
        assert_eq!(
            json.finish(),
            "{\n  \"COMMAND\":\"bjobs\",\n  \"JOBS\":2,\n  \"RECORDS\":[\n    {\n      \
             \"JOBID\":\"101\",\n      \"STAT\":\"RUN\",\n      \"%COMPLETE\":\"\"\n    },\n    \
             {\n      \"JOBID\":\"9\",\n      \"ERROR\":\"Job <9> is not found\"\n    }\n  ]\n}\n"
        );
        let empty = Json::new("bjobs", "JOBS").finish();
        let value: serde_json::Value = serde_json::from_str(&empty).unwrap();
        assert_eq!(value["RECORDS"], serde_json::json!([]));
        assert_eq!(value["JOBS"], 0);
    }

    proptest! {
        #[test]
        fn any_format_is_read_without_panic(
            text in "\\PC{0,30}|(id|stat|name|[:' \"=-]|delimiter|[0-9]){0,9}",
        ) {
            if let Ok(f) = Format::parse(&text, &ExampleFields) {
                let mut out = String::new();
                f.row(&mut out, &ExampleFields, |o, c| o.push_str(VALUES[c.field]));
            }
        }

        #[test]
        fn any_value_gives_valid_json(value in any::<String>()) {
            let mut json = Json::new("bjobs", "JOBS");
            json.pairs(&[("K", &value)]);
            let read: serde_json::Value = serde_json::from_str(&json.finish()).unwrap();
            prop_assert_eq!(read["RECORDS"][0]["K"].as_str(), Some(value.as_str()));
        }
    }
}
