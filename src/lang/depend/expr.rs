//! A dependency expression as it was typed: conditions on jobs, and how they are joined.

use std::fmt;

/// Longest dependency expression accepted, in bytes.
pub const MAX_DEPEND_TEXT: usize = 8192;

/// Deepest nesting of parentheses and `!`.
pub const MAX_DEPEND_DEPTH: usize = 64;

/// A dependency expression over references of type `T`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DependExpr<T> {
    /// Every part holds (two parts or more).
    And(Vec<DependExpr<T>>),
    /// At least one part holds (two parts or more).
    Or(Vec<DependExpr<T>>),
    /// The part does not hold.
    Not(Box<DependExpr<T>>),
    /// A condition on jobs.
    Cond(Func, T),
}

impl<T> DependExpr<T> {
    /// Calls `f` with every reference, left to right.
    pub(crate) fn each_ref<'a>(&'a self, f: &mut dyn FnMut(&'a T)) {
        match self {
            DependExpr::And(parts) | DependExpr::Or(parts) => {
                parts.iter().for_each(|p| p.each_ref(f))
            }
            DependExpr::Not(inner) => inner.each_ref(f),
            DependExpr::Cond(_, target) => f(target),
        }
    }
}

/// A comparison in exit() and the counting functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CmpOp {
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `==`
    Eq,
    /// `!=`
    Ne,
}

impl CmpOp {
    /// Whether `a op b`.
    pub fn holds<N: PartialOrd>(self, a: N, b: N) -> bool {
        match self {
            CmpOp::Lt => a < b,
            CmpOp::Le => a <= b,
            CmpOp::Gt => a > b,
            CmpOp::Ge => a >= b,
            CmpOp::Eq => a == b,
            CmpOp::Ne => a != b,
        }
    }
}

impl fmt::Display for CmpOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CmpOp::Lt => "<",
            CmpOp::Le => "<=",
            CmpOp::Gt => ">",
            CmpOp::Ge => ">=",
            CmpOp::Eq => "==",
            CmpOp::Ne => "!=",
        })
    }
}

/// The states that a counting function counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountOf {
    /// numdone: DONE.
    Done,
    /// numended: DONE and EXIT.
    Ended,
    /// numexit: EXIT.
    Exit,
    /// numhold: PSUSP.
    Hold,
    /// numpend: PEND.
    Pend,
    /// numrun: RUN.
    Run,
    /// numstart: DONE, USUSP, SSUSP and RUN.
    Start,
}

impl CountOf {
    /// Every counting function by name.
    pub const ALL: [(&'static str, CountOf); 7] = [
        ("numdone", CountOf::Done),
        ("numended", CountOf::Ended),
        ("numexit", CountOf::Exit),
        ("numhold", CountOf::Hold),
        ("numpend", CountOf::Pend),
        ("numrun", CountOf::Run),
        ("numstart", CountOf::Start),
    ];
}

/// A dependency function with its argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Func {
    /// done(j), and the bare reference.
    Done,
    /// ended(j): DONE or EXIT, whatever its exit code.
    Ended,
    /// exit(j) or exit(j, op code); the code as the shell shows it (128 + signal).
    Exit(Option<(CmpOp, i32)>),
    /// started(j).
    Started,
    /// post_done(j).
    PostDone,
    /// post_err(j).
    PostErr,
    /// external(j, "text").
    External(String),
    /// numdone(j, op n) and its kin; None stands for `*`, every element.
    Count(CountOf, Option<(CmpOp, u32)>),
}

impl Func {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Func::Done => "done",
            Func::Ended => "ended",
            Func::Exit(_) => "exit",
            Func::Started => "started",
            Func::PostDone => "post_done",
            Func::PostErr => "post_err",
            Func::External(_) => "external",
            Func::Count(of, _) => {
                CountOf::ALL.iter().find(|(_, o)| o == of).map_or("numdone", |(n, _)| n)
            }
        }
    }

    /// Writes `name(target, argument)`.
    pub(super) fn write(
        &self,
        f: &mut fmt::Formatter<'_>,
        target: &dyn fmt::Display,
    ) -> fmt::Result {
        write!(f, "{}({target}", self.name())?;
        match self {
            Func::Exit(Some((op, code))) => write!(f, ",{op}{code}")?,
            Func::External(text) => write!(f, ",\"{text}\"")?,
            Func::Count(_, Some((op, n))) => write!(f, ",{op}{n}")?,
            Func::Count(_, None) => f.write_str(",*")?,
            _ => {}
        }
        f.write_str(")")
    }
}

/// The elements of an array that a reference means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DepIndex {
    /// The job, or every element of the array.
    Whole,
    /// `[4]`: one element.
    Element(u32),
    /// `[*]`: the element with the index of the job that depends.
    Same,
}

impl fmt::Display for DepIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DepIndex::Whole => Ok(()),
            DepIndex::Element(i) => write!(f, "[{i}]"),
            DepIndex::Same => f.write_str("[*]"),
        }
    }
}

/// A job as the user named it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DepTarget {
    /// A job named by its ID.
    Id(u64),
    /// Jobs named by name, the user's own jobs only.
    Name {
        /// The name without its closing `*`.
        name: String,
        /// `name*`: every job whose name begins so.
        prefix: bool,
    },
    /// The jobs of a job group and of all below it, for a counting function.
    JobGroup(String),
}

/// A reference as typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DepRef {
    /// The job.
    pub target: DepTarget,
    /// The elements meant.
    pub index: DepIndex,
}

impl fmt::Display for DepRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.target {
            DepTarget::Id(id) => write!(f, "{id}{}", self.index),
            DepTarget::JobGroup(path) => write_job_group(f, path),
            DepTarget::Name { name, prefix } => {
                let quote = if name.contains('"') { '\'' } else { '"' };
                let star = if *prefix { "*" } else { "" };
                write!(f, "{quote}{name}{star}{}{quote}", self.index)
            }
        }
    }
}

/// A character of a name that needs no quotes.
pub(super) fn is_plain(c: char) -> bool {
    !c.is_whitespace()
        && !matches!(c, '(' | ')' | '|' | '&' | '!' | ',' | '"' | '\'' | '[' | ']')
        && !matches!(c, '<' | '>' | '=')
}

/// Writes the path of a job group, in quotes where it needs them.
pub(super) fn write_job_group(f: &mut fmt::Formatter<'_>, path: &str) -> fmt::Result {
    match (path.chars().all(is_plain), path.contains('"')) {
        (true, _) => f.write_str(path),
        (false, true) => write!(f, "'{path}'"),
        (false, false) => write!(f, "\"{path}\""),
    }
}

/// A dependency expression as typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DepExpr {
    pub(super) text: String,
    pub(super) expr: DependExpr<DepRef>,
}

impl DepExpr {
    /// The text as typed, which listings show.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The tree.
    pub fn expr(&self) -> &DependExpr<DepRef> {
        &self.expr
    }

    /// Every reference, left to right.
    pub fn refs(&self) -> Vec<&DepRef> {
        let mut refs = Vec::new();
        self.expr.each_ref(&mut |r| refs.push(r));
        refs
    }
}

/// Writes an expression with the parentheses it needs.
fn write_expr<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    expr: &DependExpr<T>,
    inside: u8,
) -> fmt::Result {
    let (parts, sign, level) = match expr {
        DependExpr::Cond(func, target) => return func.write(f, target),
        DependExpr::Not(inner) => {
            f.write_str("!")?;
            return write_expr(f, inner, 3);
        }
        DependExpr::And(parts) => (parts, " && ", 2),
        DependExpr::Or(parts) => (parts, " || ", 1),
    };
    let open = level <= inside;
    f.write_str(if open { "(" } else { "" })?;
    for (i, part) in parts.iter().enumerate() {
        f.write_str(if i == 0 { "" } else { sign })?;
        write_expr(f, part, level)?;
    }
    f.write_str(if open { ")" } else { "" })
}

impl<T: fmt::Display> fmt::Display for DependExpr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_expr(f, self, 0)
    }
}

/// A malformed dependency expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DependError {
    /// Byte offset of the trouble in the text given.
    pub offset: usize,
    /// The mistake at this place.
    pub reason: &'static str,
}

impl fmt::Display for DependError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Dependency condition syntax error")
    }
}

impl std::error::Error for DependError {}
