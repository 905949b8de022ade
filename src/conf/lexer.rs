//! The lexer of the sectioned files (lsf.shared, lsf.cluster.NAME, lsb.*).
//!
//! Cuts a file, and what it includes, into sections of logical lines: comments gone, continuations
//! joined, every character still knowing its file, line and column. The meaning of a line (`KEYWORD
//! = value` or a row of columns) is the business of [`super::section`].
//!
//! Invariants: no input makes it panic or grow without bound; nothing is dropped without a
//! diagnostic except comments, blank lines and the branches of `#if`. See lsf.shared(5).

use super::diag::{Choice, Diags, Pos, Severity};
use super::directives::{Directive, cut, directive};
use super::files::{Files, Moment};
use super::line::Line;
use super::names::nearest;
use crate::lang::timecond::TimeCond;
use std::borrow::Cow;
use std::sync::Arc;

/// Longest logical line, bytes; a host list of ten thousand names fits.
pub const MAX_LINE: usize = 1 << 20;
/// Most bytes read for one file, its includes counted.
pub const MAX_BYTES: usize = 64 << 20;
/// Deepest nesting of #INCLUDE.
pub const MAX_INCLUDE_DEPTH: usize = 8;
/// Most files included into one.
pub const MAX_INCLUDES: usize = 1_000;
/// Most characters of offending text shown in a diagnostic.
const MAX_SHOWN: usize = 60;

/// A section: what stands between `Begin Name` and `End Name`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Section {
    /// The name of the section as written.
    pub name: String,
    /// The position of the name.
    pub pos: Pos,
    /// The lines of the section, none of them blank.
    pub lines: Vec<Line>,
}

impl Section {
    /// Whether the section has this name; case is ignored.
    pub fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

/// Reads a sectioned file and what it includes. None: it cannot be read, and the list says why.
pub fn read(files: &dyn Files, path: &str, diags: &mut Diags) -> Option<Vec<Section>> {
    let mut reader = Reader::new(files, diags);
    reader.top(path)?;
    reader.close_missing();
    Some(reader.sections)
}

/// Reads a file without sections (lsf.conf) as logical lines.
pub fn read_flat(files: &dyn Files, path: &str, diags: &mut Diags) -> Option<Vec<Line>> {
    let mut reader = Reader::new(files, diags);
    reader.flat = Some(Vec::new());
    reader.top(path)?;
    reader.flat
}

/// Offending text as a diagnostic shows it: cut short, blanks joined, control characters
/// replaced.
pub fn shown(text: &str) -> String {
    let mut out = String::new();
    let mut count = 0;
    for word in text.split_whitespace() {
        let blank = (count > 0).then_some(' ');
        for c in blank.into_iter().chain(word.chars()) {
            if count == MAX_SHOWN {
                out.push_str("...");
                return out;
            }
            out.push(if c.is_control() { '?' } else { c });
            count += 1;
        }
    }
    out
}

/// An open `#if`.
struct Branch {
    pos: Pos,
    /// The line of the branch that is being read.
    line: u32,
    /// The line of the branch that is being read.
    wanted: Option<u32>,
    /// This branch is read.
    taken: bool,
    /// Some branch has been read.
    done: bool,
}

struct Reader<'a> {
    files: &'a dyn Files,
    diags: &'a mut Diags,
    sections: Vec<Section>,
    open: Option<Section>,
    /// The lines of a file without sections.
    flat: Option<Vec<Line>>,
    depth: usize,
    bytes: usize,
    includes: usize,
    too_much: bool,
    /// `#if time(...)` is decided: this is one of the files that have it.
    timed: bool,
    /// The moment it is decided for, once one was met.
    moment: Option<Moment>,
}

impl<'a> Reader<'a> {
    fn new(files: &'a dyn Files, diags: &'a mut Diags) -> Self {
        Reader {
            files,
            diags,
            sections: Vec::new(),
            open: None,
            flat: None,
            depth: 0,
            bytes: 0,
            includes: 0,
            too_much: false,
            timed: false,
            moment: None,
        }
    }

    /// Reads the file asked for.
    fn top(&mut self, path: &str) -> Option<()> {
        match self.files.read(path) {
            Ok(bytes) => {
                let name = path.rsplit('/').next().unwrap_or(path);
                self.timed = name.starts_with("lsb.");
                self.file(path, &bytes);
                Some(())
            }
            Err(why) => {
                self.diags.error(&Pos::whole(path), format!("cannot be read: {why}"));
                None
            }
        }
    }

    fn file(&mut self, path: &str, bytes: &[u8]) {
        let file: Arc<str> = Arc::from(path);
        self.bytes = self.bytes.saturating_add(bytes.len());
        if self.bytes > MAX_BYTES {
            if !self.too_much {
                let mib = MAX_BYTES >> 20;
                self.diags.error(&Pos::whole(path), format!("more than {mib} MiB to read"));
            }
            self.too_much = true;
            return;
        }
        let mut branches: Vec<Branch> = Vec::new();
        let mut pending: Option<Line> = None;
        let whole = std::str::from_utf8(bytes).map(Cow::Borrowed);
        let whole = whole.unwrap_or_else(|_| String::from_utf8_lossy(bytes));
        // what was replaced in it has to be told line by line
        let mut raws = match &whole {
            Cow::Owned(_) => Some(bytes.split(|&b| b == b'\n')),
            Cow::Borrowed(_) => None,
        };
        for (index, text) in whole.split('\n').enumerate() {
            let raw = raws.as_mut().and_then(|raws| raws.next());
            let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
            let text = text.strip_suffix('\r').unwrap_or(text);
            // most lines that commands read at every call: no directive, and nothing goes on
            if pending.is_none() && matches!(text.as_bytes(), [] | [b'#'] | [b'#', b' ', ..]) {
                continue;
            }
            let at = |col: usize| Pos::new(&file, number, u32::try_from(col).unwrap_or(u32::MAX));
            if pending.is_none()
                && let Some(directive) = directive(text, !branches.is_empty())
            {
                let col = text.chars().take_while(|c| c.is_whitespace()).count() + 1;
                self.directive(directive, (path, text), at(col), &mut branches);
                continue;
            }
            if branches.iter().any(|b| !b.taken) {
                continue;
            }
            let (kept, goes_on) = cut(text, pending.is_some());
            if let Some(raw) = raw {
                self.check_utf8(raw, kept, &at);
            }
            if let Some(line) = self.join(&mut pending, kept, at(1), goes_on) {
                self.line(line);
            }
        }
        if let Some(line) = pending {
            self.line(line);
        }
        for branch in branches {
            self.diags.error(&branch.pos, "#if has no #endif");
        }
    }

    /// Adds a physical line to the pending one; gives the logical line when it is complete.
    fn join(
        &mut self,
        pending: &mut Option<Line>,
        kept: &str,
        at: Pos,
        goes_on: bool,
    ) -> Option<Line> {
        let line = pending.get_or_insert_with(Line::default);
        if line.text.len() + kept.len() > MAX_LINE {
            self.diags.error(&at, format!("line longer than {MAX_LINE} bytes"));
            *line = Line::default();
        } else {
            line.push(kept, at);
            if goes_on {
                line.text.push(' ');
            }
        }
        if goes_on { None } else { pending.take() }
    }

    /// Tells where a line has bytes that were replaced.
    fn check_utf8(&mut self, raw: &[u8], kept: &str, at: &dyn Fn(usize) -> Pos) {
        let bad = kept.char_indices().zip(1..).find(|((offset, c), _)| {
            *c == char::REPLACEMENT_CHARACTER
                && raw.get(*offset..*offset + 3) != Some(b"\xEF\xBF\xBD")
        });
        if let Some((_, col)) = bad {
            self.diags.error(&at(col), format!("<{}> is not UTF-8 text", shown(kept)));
        }
    }

    fn directive(
        &mut self,
        directive: Directive<'_>,
        (path, text): (&str, &str),
        at: Pos,
        branches: &mut Vec<Branch>,
    ) {
        match directive {
            Directive::Include(name) => {
                if branches.iter().all(|b| b.taken) {
                    self.include(name, path, &at);
                }
            }
            Directive::Defined(what, taken) => {
                if !taken {
                    let text = format!("<{}> is not acted on: read as false", shown(what));
                    self.diags.notice(&at, text);
                }
                let line = at.line;
                branches.push(Branch { pos: at, line, wanted: None, taken, done: taken });
            }
            Directive::If(what) => {
                let holds = self.holds(what, text, &at);
                let forced = self.moment.iter().flat_map(|m| &m.forced);
                let own = |c: &&Choice| *c.file == *at.file && c.at == at.line;
                let wanted = forced.filter(own).map(|c| c.branch).next();
                let (line, taken) = (at.line, false);
                branches.push(Branch { pos: at, line, wanted, taken, done: false });
                self.branch(branches, line, holds);
            }
            Directive::Elif(what) => {
                let holds = self.holds(what, text, &at);
                self.branch(branches, at.line, holds);
            }
            Directive::Else => self.branch(branches, at.line, true),
            Directive::Endif => {
                branches.pop();
            }
        }
    }

    /// Does the condition of an `#if` or `#elif` hold? Its mistakes are reported in skipped
    /// branches too.
    fn holds(&mut self, what: &str, text: &str, at: &Pos) -> bool {
        if !self.timed {
            let text = format!("<{}> acts in the lsb.* files alone: read as false", shown(what));
            self.diags.notice(at, text);
            return false;
        }
        let cond = match TimeCond::parse(what) {
            Ok(cond) => cond,
            Err(e) => {
                let before = (what.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
                let upto = text.get(..before + e.at).unwrap_or(text).chars().count();
                let col = u32::try_from(upto + 1).unwrap_or(u32::MAX);
                let place = Pos { file: Arc::clone(&at.file), line: at.line, col };
                self.diags.error(&place, format!("<{}>: {}", shown(what), e.why));
                return false;
            }
        };
        if self.moment.is_none() {
            self.moment = self.files.moment();
        }
        let Some(m) = &self.moment else { return false };
        self.diags.changes(cond.next_change(m.now, &m.zone));
        cond.holds(m.now, &m.zone)
    }

    /// The next branch of the innermost `#if`: read if it `holds` and none was read before, or
    /// if a check wants it.
    fn branch(&mut self, branches: &mut [Branch], line: u32, holds: bool) {
        let Some(own) = branches.last_mut() else { return };
        own.line = line;
        own.taken = match own.wanted {
            Some(wanted) => wanted == line,
            None => holds && !own.done,
        };
        own.done |= own.taken;
        if branches.iter().any(|b| !b.taken) && self.timed {
            let choice = |b: &Branch| Choice {
                file: Arc::clone(&b.pos.file),
                at: b.pos.line,
                branch: b.line,
            };
            self.diags.untaken(branches.iter().map(choice).collect());
        }
    }

    fn include(&mut self, name: &str, from: &str, at: &Pos) {
        if self.depth >= MAX_INCLUDE_DEPTH || self.includes >= MAX_INCLUDES {
            let text = format!("<{}>: files are included too deeply or too often", shown(name));
            self.diags.error(at, text);
            return;
        }
        let path = match (name.starts_with('/'), from.rsplit_once('/')) {
            (false, Some((dir, _))) => format!("{dir}/{name}"),
            _ => name.to_owned(),
        };
        match self.files.read(&path) {
            Ok(bytes) => {
                self.includes += 1;
                self.depth += 1;
                self.file(&path, &bytes);
                self.depth -= 1;
            }
            Err(why) => {
                let text = format!("included file <{}> cannot be read: {why}", shown(&path));
                self.diags.error(at, text);
            }
        }
    }

    fn line(&mut self, line: Line) {
        if let Some(flat) = &mut self.flat {
            if !line.text.trim().is_empty() {
                flat.push(line);
            }
            return;
        }
        let mut words = line.text.split_whitespace();
        let Some(first) = words.next() else { return };
        if first.eq_ignore_ascii_case("Begin") {
            self.begin(&line, words.next());
        } else if first.eq_ignore_ascii_case("End") {
            self.end(&line, words.next());
        } else if let Some(open) = &mut self.open {
            open.lines.push(line);
        } else {
            let near = if words.next().is_some() { nearest(first, ["Begin", "End"]) } else { None };
            let severity = if near.is_some() { Severity::Error } else { Severity::Notice };
            let text = format!("<{}> is outside any section and ignored", shown(&line.text));
            self.diags.add_near(severity, &line.pos_of(first), text, near);
        }
    }

    fn begin(&mut self, line: &Line, name: Option<&str>) {
        let Some(name) = name else {
            // `Begin = x` and the like cannot be meant otherwise.
            self.diags.error(&line.start(), "Begin without the name of a section");
            return;
        };
        self.close_missing();
        let pos = line.pos_of(name);
        self.open = Some(Section { name: name.to_owned(), pos, lines: Vec::new() });
    }

    fn end(&mut self, line: &Line, name: Option<&str>) {
        let Some(name) = name else {
            self.diags.error(&line.start(), "End without the name of a section");
            return;
        };
        let pos = line.pos_of(name);
        match self.open.take() {
            None => {
                let text = format!("End of <{}>, which has no Begin", shown(name));
                self.diags.error(&pos, text);
            }
            Some(open) => {
                if !open.is(name) {
                    let (shut, was) = (shown(name), shown(&open.name));
                    let text = format!("End of <{shut}> where section <{was}> is open");
                    self.diags.add_near(Severity::Error, &pos, text, Some(&was));
                }
                self.sections.push(open);
            }
        }
    }

    /// Closes a section whose End is missing.
    fn close_missing(&mut self) {
        if let Some(open) = self.open.take() {
            let text = format!("section <{}> has no End", shown(&open.name));
            self.diags.error(&open.pos, text);
            self.sections.push(open);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conf::testing::MapFiles;

    /// Each line as `line:col text`, sections by name, and what was told.
    fn read_all(files: &MapFiles) -> (Vec<String>, Vec<String>) {
        let mut diags = Diags::new();
        let sections = read(files, "d/f", &mut diags).expect("there is a file");
        let mut lines = Vec::new();
        for section in sections {
            lines.push(format!("[{}]", section.name));
            for line in &section.lines {
                let at = line.start();
                let text: Vec<&str> = line.text.split_whitespace().collect();
                lines.push(format!("{}:{} {}", at.line, at.col, text.join(" ")));
            }
        }
        (lines, diags.list().iter().map(|d| d.to_string()).collect())
    }

    fn lex(text: impl AsRef<[u8]>) -> (Vec<String>, Vec<String>) {
        read_all(&MapFiles::one("d/f", text))
    }

    #[test]
    fn sections_comments_and_blank_lines() {
        let (lines, told) =
            lex("# head\n\nBegin Queue\n  A = 1 # one\n\n#B = 2\n\tC = \"x # y\" # z\nEND queue\n\
             begin HOST\nh 5\" # inch\nEnd Host");
        assert_eq!(told, Vec::<String>::new());
        assert_eq!(lines, ["[Queue]", "4:3 A = 1", "7:2 C = \"x # y\"", "[HOST]", "10:1 h 5\""]);
    }

    #[test]
    fn carriage_returns_are_line_ends() {
        let (lines, told) = lex("Begin Q\r\nA = 1\\\r\n 2\r\nEnd Q\r\n");
        assert_eq!((lines, told), (vec!["[Q]".into(), "2:1 A = 1 2".into()], vec![]));
    }

    #[test]
    fn every_word_of_a_continued_line_knows_its_place() {
        let text = "Begin Q\nHOSTS = a b \\\n   c\\\n# gone \\\n  é d\nEnd Q\n";
        let mut diags = Diags::new();
        let sections = read(&MapFiles::one("d/f", text), "d/f", &mut diags).unwrap();
        let line = &sections[0].lines[0];
        let places: Vec<String> =
            line.text.split_whitespace().map(|w| format!("{w}@{}", line.pos_of(w))).collect();
        assert_eq!(
            places,
            [
                "HOSTS@d/f:2:1",
                "=@d/f:2:7",
                "a@d/f:2:9",
                "b@d/f:2:11",
                "c@d/f:3:4",
                "é@d/f:5:3",
                "d@d/f:5:5"
            ]
        );
        let value = line.slice(line.text.split_once("= ").unwrap().1);
        let d = value.text.rsplit(' ').next().unwrap();
        assert_eq!(value.pos_of(d).to_string(), "d/f:5:5");
        assert_eq!(value.pos.to_string(), "d/f:2:9");
    }

    #[test]
    fn a_comment_ends_a_continuation_unless_it_goes_on_itself() {
        let (lines, _) = lex("Begin Q\nA = 1 \\\n# end\nB = 2\nC = 3 \\\n# on \\\n4\nEnd Q\n");
        assert_eq!(lines, ["[Q]", "2:1 A = 1", "4:1 B = 2", "5:1 C = 3 4"]);
    }

    #[test]
    fn broken_sections_are_told_with_their_places() {
        let (lines, told) =
            lex("Begin\n Begin A\nx\nBegin B\ny\nEnd C\nEnd D\nstray words\nBegni E\nEnd\n\
             Begin F\nz\n");
        assert_eq!(lines, ["[A]", "3:1 x", "[B]", "5:1 y", "[F]", "12:1 z"]);
        assert_eq!(
            told,
            [
                "d/f:1:1: Begin without the name of a section",
                "d/f:2:8: section <A> has no End",
                "d/f:6:5: End of <C> where section <B> is open; did you mean <B>?",
                "d/f:7:5: End of <D>, which has no Begin",
                "d/f:8:1: <stray words> is outside any section and ignored",
                "d/f:9:1: <Begni E> is outside any section and ignored; did you mean <Begin>?",
                "d/f:10:1: End without the name of a section",
                "d/f:11:7: section <F> has no End",
            ]
        );
    }

    #[test]
    fn bytes_that_are_not_utf8_are_told_outside_comments() {
        let (_, told) =
            lex(b"# caf\xe9\nBegin Q\nA = \xc3\xa9\xe9 # \xff\nB = \xef\xbf\xbd\nEnd Q\n");
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with("d/f:3:6: <A = é\u{fffd}> is not UTF-8"), "{}", told[0]);
    }

    #[test]
    fn a_line_has_a_longest_length() {
        let long = format!("Begin Q\nA = {}\nB = 1\nEnd Q\n", "x".repeat(MAX_LINE));
        let (lines, told) = lex(long);
        assert_eq!(lines, ["[Q]", "3:1 B = 1"]);
        assert_eq!(told, ["d/f:2:1: line longer than 1048576 bytes"]);
        let many = format!("Begin Q\nA = {}1\nEnd Q\n", "0123456 \\\n".repeat(150_000));
        let (_, told) = lex(many);
        assert_eq!(told.len(), 1, "{told:?}");
    }

    /// Reads lsb.x like [`lex`] at an hour of Tuesday 2023-11-14, UTC; the last result is the time
    /// at which the answer may change.
    fn lex_at(text: &str, hour: i64) -> (Vec<String>, Vec<String>, Option<i64>) {
        let midnight = 1_699_920_000;
        let mut files = MapFiles::one("d/lsb.x", text);
        files.at = Some(midnight + hour * 3600);
        let mut diags = Diags::new();
        let sections = read(&files, "d/lsb.x", &mut diags).expect("there is a file");
        let lines = sections.iter().flat_map(|s| &s.lines);
        let lines = lines.map(|l| l.text.trim().to_owned()).collect();
        let told = diags.list().iter().map(|d| d.to_string()).collect();
        (lines, told, diags.next_change().map(|t| (t - midnight) / 3600))
    }

    #[test]
    fn branches_go_by_the_time() {
        let text = "Begin Q\n#if time(8:00-17:00)\nA = day\n#if time(12-13)\nB = lunch\n#endif\n\
                    #elif time(17:00-20:00)\nA = evening\n#else\nA = night\n#endif\nEnd Q\n";
        let at = |hour| {
            let (lines, told, next) = lex_at(text, hour);
            assert_eq!(told, Vec::<String>::new());
            (lines.join(", "), next.unwrap())
        };
        assert_eq!(at(3), ("A = night".into(), 8));
        assert_eq!(at(8), ("A = day".into(), 12));
        assert_eq!(at(12), ("A = day, B = lunch".into(), 13));
        assert_eq!(at(17), ("A = evening".into(), 20));
        assert_eq!(at(21), ("A = night".into(), 24 + 8));
    }

    #[test]
    fn mistakes_in_conditions_are_told_in_every_branch() {
        let text = "Begin Q\n  #if time(8:00-17:00)\nA = 1\n#elif time(17:00-25:00)\nA = 2\n\
                    #endif\nEnd Q\n";
        let (lines, told, _) = lex_at(text, 9);
        assert_eq!(lines, ["A = 1"]);
        let why = "<time(17:00-25:00)>: 17:00-25:00: Bad time window specification";
        assert_eq!(told, [format!("d/lsb.x:4:12: {why}")]);
    }

    #[test]
    fn conditions_are_read_as_false_and_told() {
        let (lines, told) = lex(
            "Begin Q\n#if time(8:00-17:00)\nA = day\n#elif time(1-2)\nA = dawn\n#else\nA = night\n\
             #endif\n#if this were a comment\n#else\n#endif\nB = 1\n#ifdef X\nC=1\n#endif\n\
             #ifndef X\nD=1\n#endif\nEnd Q\n#if time(1-2) || time(3-4)\n",
        );
        assert_eq!(lines, ["[Q]", "7:1 A = night", "12:1 B = 1", "17:1 D=1"]);
        assert_eq!(
            told,
            [
                "d/f:2:1: <time(8:00-17:00)> acts in the lsb.* files alone: read as false",
                "d/f:4:1: <time(1-2)> acts in the lsb.* files alone: read as false",
                "d/f:13:1: <#ifdef X> is not acted on: read as false",
                "d/f:20:1: <time(1-2) || time(3-4)> acts in the lsb.* files alone: read as false",
                "d/f:20:1: #if has no #endif",
            ]
        );
    }

    #[test]
    fn included_files_keep_their_own_places() {
        let mut files =
            MapFiles::one("d/f", "Begin Q\n#INCLUDE \"sub/g\"\nB = 1\nEnd Q\n#include \"/abs\"\n");
        files.put("d/sub/g", "A = 1\n#INCLUDE h\n");
        files.put("d/sub/h", "C = 1\n");
        let mut diags = Diags::new();
        let sections = read(&files, "d/f", &mut diags).unwrap();
        let at: Vec<String> = sections[0].lines.iter().map(|l| l.start().to_string()).collect();
        assert_eq!(at, ["d/sub/g:1:1", "d/sub/h:1:1", "d/f:3:1"]);
        let told: Vec<String> = diags.list().iter().map(|d| d.to_string()).collect();
        let why = "No such file or directory";
        assert_eq!(told, [format!("d/f:5:1: included file </abs> cannot be read: {why}")]);
    }

    #[test]
    fn a_file_that_includes_itself_ends() {
        let (lines, told) = lex("#INCLUDE \"f\"\n#INCLUDE \"f\"\nBegin Q\nEnd Q\n");
        assert!(told.iter().any(|t| t.contains("too deeply or too often")), "{told:?}");
        assert!(lines.len() <= MAX_INCLUDES + 1, "{}", lines.len());
    }

    #[test]
    fn shown_text_is_short_and_clean() {
        assert_eq!(shown(" a\u{1b}[2Jb\n"), "a?[2Jb");
        assert_eq!(shown(&"é".repeat(100)).chars().count(), MAX_SHOWN + 3);
    }
}
