//! Diagnostics of the configuration readers.
//!
//! Every complaint names file, line and column of the offending text, says what is wrong
//! with it, and where it helps offers the nearest valid word. Readers never stop at the
//! first one; what a caller does with a list is decided by its worst severity.

use std::fmt;
use std::sync::Arc;

/// The position of a piece of text: file, line and column, both counted from 1, the column in
/// characters. Line 0 means the file as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pos {
    /// Path as it was opened.
    pub file: Arc<str>,
    /// Line from 1; 0 for the whole file.
    pub line: u32,
    /// Column from 1, in characters; 0 for the whole line.
    pub col: u32,
}

impl Pos {
    /// A position in `file`.
    pub fn new(file: &Arc<str>, line: u32, col: u32) -> Self {
        Pos { file: Arc::clone(file), line, col }
    }

    /// The file as a whole.
    pub fn whole(file: &str) -> Self {
        Pos { file: Arc::from(file), line: 0, col: 0 }
    }
}

impl fmt::Display for Pos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, self.col) {
            (0, _) => write!(f, "{}", self.file),
            (line, 0) => write!(f, "{}:{line}", self.file),
            (line, col) => write!(f, "{}:{line}:{col}", self.file),
        }
    }
}

/// How much a diagnostic weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Understood, and nothing is done with it.
    Notice,
    /// Doubtful; it is read as the text says.
    Warning,
    /// Wrong: a running cluster refuses the new configuration.
    Error,
}

impl Severity {
    /// The word ckconfig prints.
    pub fn word(self) -> &'static str {
        match self {
            Severity::Notice => "notice",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// One complaint about a configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diag {
    /// How much it weighs.
    pub severity: Severity,
    /// Path of the file.
    pub file: String,
    /// Line from 1; 0 for the whole file.
    pub line: u32,
    /// Column from 1, in characters; 0 for the whole line.
    pub col: u32,
    /// The message, with the incorrect text.
    pub text: String,
    /// The nearest valid word, if one is near.
    pub near: Option<String>,
}

impl fmt::Display for Diag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, self.col) {
            (0, _) => write!(f, "{}: {}", self.file, self.text)?,
            (line, 0) => write!(f, "{}:{line}: {}", self.file, self.text)?,
            (line, col) => write!(f, "{}:{line}:{col}: {}", self.file, self.text)?,
        }
        match &self.near {
            Some(word) => write!(f, "; did you mean <{word}>?"),
            None => Ok(()),
        }
    }
}

/// The list a reader fills.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diags {
    list: Vec<Diag>,
    /// Branches of `#if time(...)` that were not read, each with those it lies in.
    untaken: Vec<Vec<Choice>>,
    /// When another branch may be the one to be read, seconds since the epoch.
    next: Option<i64>,
}

/// A branch of an `#if`: its file, the line of the `#if` and that of the branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    pub file: Arc<str>,
    pub at: u32,
    pub branch: u32,
}

/// At most this many diagnostics are kept of one load; a file of garbage says enough by then.
pub const MAX_DIAGS: usize = 1_000;

impl Diags {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes a branch that was not read.
    pub fn untaken(&mut self, path: Vec<Choice>) {
        if self.untaken.len() < MAX_DIAGS {
            self.untaken.push(path);
        }
    }

    /// The branches that were not read, which are forgotten with this.
    pub fn take_untaken(&mut self) -> Vec<Vec<Choice>> {
        std::mem::take(&mut self.untaken)
    }

    /// Notes that other branches may be the ones to be read from this second on.
    pub fn changes(&mut self, at: Option<i64>) {
        self.next = [self.next, at].into_iter().flatten().min();
    }

    /// The first of those seconds.
    pub fn next_change(&self) -> Option<i64> {
        self.next
    }

    /// Adds what another reading of the same files found and this one did not.
    pub fn join(&mut self, other: Vec<Diag>) {
        for d in other {
            if self.list.len() < MAX_DIAGS && !self.list.contains(&d) {
                self.list.push(d);
            }
        }
    }

    /// Adds a diagnostic of the given weight.
    pub fn add(&mut self, severity: Severity, at: &Pos, text: impl Into<String>) {
        self.add_near(severity, at, text, None);
    }

    /// Adds a diagnostic with the nearest valid word.
    pub fn add_near(
        &mut self,
        severity: Severity,
        at: &Pos,
        text: impl Into<String>,
        near: Option<&str>,
    ) {
        if self.list.len() >= MAX_DIAGS {
            // An error must survive a flood of notices, or a bad file would look clean.
            if severity < Severity::Error || self.has_errors() {
                return;
            }
            self.list.pop();
        }
        self.list.push(Diag {
            severity,
            file: clean(&at.file),
            line: at.line,
            col: at.col,
            text: clean(&text.into()),
            near: near.map(clean),
        });
    }

    /// Adds an error.
    pub fn error(&mut self, at: &Pos, text: impl Into<String>) {
        self.add(Severity::Error, at, text);
    }

    /// Adds a warning.
    pub fn warning(&mut self, at: &Pos, text: impl Into<String>) {
        self.add(Severity::Warning, at, text);
    }

    /// Adds a notice.
    pub fn notice(&mut self, at: &Pos, text: impl Into<String>) {
        self.add(Severity::Notice, at, text);
    }

    /// Adds the notice of a genuine name that nothing acts on; `what` names it.
    pub fn not_acted_on(&mut self, at: &Pos, what: impl fmt::Display) {
        self.notice(at, format!("{what} {NOT_ACTED_ON}"));
    }

    /// The list contains an error: a running cluster then keeps its configuration.
    pub fn has_errors(&self) -> bool {
        has_errors(&self.list)
    }

    /// The diagnostics so far.
    pub fn list(&self) -> &[Diag] {
        &self.list
    }

    /// The finished list.
    pub fn into_list(self) -> Vec<Diag> {
        self.list
    }
}

/// A diagnostic is one line, and writes nothing but text to a terminal.
fn clean(text: &str) -> String {
    // Direction marks would let a file show a name other than the one it holds.
    let bad =
        |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().map(|c| if bad(c) { '?' } else { c }).collect()
}

/// Ends the notice of a word in a list that nothing acts on.
pub(super) const WORD_NOT_ACTED_ON: &str = "is not acted on";
/// Ends the notice of a genuine name that nothing acts on.
pub(super) const NOT_ACTED_ON: &str = "is known and not acted on";

/// One line that counts the parameters, sections, files and words in a list that nothing acts on,
/// with the command that lists them where it is not empty. None: there are none.
pub fn summary_not_acted_on(list: &[Diag], command: &str) -> Option<String> {
    let count = |end: &str| {
        let of = |d: &&Diag| d.severity == Severity::Notice && d.text.ends_with(end);
        list.iter().filter(of).count()
    };
    let parameters = match count(NOT_ACTED_ON) {
        0 => None,
        1 => Some("1 parameter is known and not acted on".to_owned()),
        n => Some(format!("{n} parameters are known and not acted on")),
    };
    let words = match count(WORD_NOT_ACTED_ON) {
        0 => None,
        1 => Some("1 word is not acted on".to_owned()),
        n => Some(format!("{n} words are not acted on")),
    };
    let all: Vec<String> = parameters.into_iter().chain(words).collect();
    if all.is_empty() {
        return None;
    }
    let what = all.join("; ");
    Some(match command {
        "" => format!("{what}."),
        command => format!("{what}: {command} lists them."),
    })
}

/// The list contains an error: a running cluster then keeps its configuration.
pub fn has_errors(list: &[Diag]) -> bool {
    list.iter().any(|d| d.severity == Severity::Error)
}

/// Whether a warning is in the list.
pub fn has_warnings(list: &[Diag]) -> bool {
    list.iter().any(|d| d.severity == Severity::Warning)
}
