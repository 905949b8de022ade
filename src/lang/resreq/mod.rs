//! Resource requirement strings (`-R`, RES_REQ): parsed whole, merged, evaluated, printed.
//!
//! A string is parsed against a table of resource names ([`ResNames`]), so that a name nobody
//! defined is an error at submission and never a job that pends for ever. `Display` gives the
//! canonical form that `bjobs -l` shows as Combined; it parses back to the same value. Sizes (mem,
//! swp, tmp, maxmem, maxswp, maxtmp) are in MB throughout; a number without a unit counts in
//! [`Syntax::size_unit_mb`].
//!
//! Where LSF's documents leave a choice: a section may stand once in one string; bare
//! `res=val:bool` lists are recognised by a `:` or a single `=` in the select text; `same` of queue
//! and job are joined, everything else of the job wins over the queue's.

mod affinity;
mod expr;
mod expr_parse;
mod merge;
mod order;
mod parse;
mod place;
mod rusage;

pub use affinity::{Affinity, Distribute, Exclusive, Unit};
pub use expr::{BinOp, Expr, SelectCx};
pub use order::{Order, OrderKey};
pub use place::{Cu, Span, SpanHosts, Tile};
pub use rusage::{Per, Phase, Rusage, RusageTerm};

use std::fmt;

/// Longest resource requirement string accepted, in bytes.
pub const MAX_RESREQ_TEXT: usize = 8192;
/// Most operators in one select expression: bounds the depth of its tree.
pub const MAX_OPERATORS: usize = 500;
/// Deepest nesting of parentheses and signs.
pub const MAX_NESTING: usize = 64;
/// Most alternatives of one rusage section, after merging too.
pub const MAX_RUSAGE_ALTERNATIVES: usize = 64;

/// What kind of values a resource has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResKind {
    /// A number; `increasing` when a larger value means a more loaded host.
    Numeric {
        /// The INCREASING flag.
        increasing: bool,
    },
    /// Present or not.
    Boolean,
    /// A text.
    String,
}

/// The table of resource names that a string may use.
pub trait ResNames {
    /// The kind of a resource; None for an unknown name.
    fn kind(&self, name: &str) -> Option<ResKind>;
}

/// The resources every cluster has.
#[derive(Clone, Copy, Debug, Default)]
pub struct Builtins;

/// `rusage[mem=]` of a requirement, MB.
pub fn requested_mb(text: &str) -> Option<f64> {
    let req = ResReq::parse(text, &Syntax::new(&Builtins)).ok()?;
    let rusage = req.first()?.rusage.as_ref()?;
    rusage.terms().iter().find(|t| t.res == "mem").map(|t| t.amount())
}

impl ResNames for Builtins {
    fn kind(&self, name: &str) -> Option<ResKind> {
        Some(match name {
            "r15s" | "r1m" | "r15m" | "ut" | "pg" | "io" | "ls" => {
                ResKind::Numeric { increasing: true }
            }
            "it" | "tmp" | "swp" | "mem" | "ncpus" | "ndisks" | "maxmem" | "maxswp" | "maxtmp"
            | "cpuf" | "rexpri" | "slots" | "maxslots" | "nprocs" | "ncores" | "nthreads"
            | "ngpus" | "ngpus_physical" => ResKind::Numeric { increasing: false },
            "server" => ResKind::Boolean,
            "type" | "model" | "hname" | "status" => ResKind::String,
            _ => return None,
        })
    }
}

/// The resource that an old spelling stands for.
pub fn alias(name: &str) -> Option<&'static str> {
    Some(match name {
        "cpu" => "r1m",
        "idle" => "it",
        "login" => "ls",
        "swap" => "swp",
        _ => return None,
    })
}

/// True for resources counted in MB, whose numbers may carry a unit.
pub fn is_size(name: &str) -> bool {
    matches!(name, "mem" | "swp" | "tmp" | "maxmem" | "maxswp" | "maxtmp")
}

/// What a string is read against.
#[derive(Clone, Copy)]
pub struct Syntax<'a> {
    /// The names known.
    pub names: &'a dyn ResNames,
    /// How many MB a size without a unit counts: 1, or LSF_UNIT_FOR_LIMITS.
    pub size_unit_mb: f64,
}

impl<'a> Syntax<'a> {
    /// Sizes in MB.
    pub fn new(names: &'a dyn ResNames) -> Self {
        Syntax { names, size_unit_mb: 1.0 }
    }

    /// The real name and kind behind `name`: itself first, then as an alias.
    fn lookup(&self, name: &str) -> Option<(String, ResKind)> {
        if let Some(kind) = self.names.kind(name) {
            return Some((name.to_string(), kind));
        }
        let real = alias(name)?;
        Some((real.to_string(), self.names.kind(real)?))
    }
}

/// A host as select and order see it. Values of load indices are those for scheduling: measured,
/// less what is reserved. Sizes are in MB.
pub trait HostView {
    /// The value of a numeric resource; None where the host has none.
    fn num(&self, name: &str) -> Option<f64>;
    /// The value of a string resource.
    fn text(&self, name: &str) -> Option<&str>;
    /// Whether the host has a Boolean resource; None counts as false.
    fn boolean(&self, name: &str) -> Option<bool>;
}

/// A select section: the expression and its text, which listings show as typed.
#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    /// As typed, or as merged.
    pub text: String,
    /// The expression.
    pub expr: Expr,
}

/// One requirement without alternatives or parts. Every section may be missing.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Simple {
    /// Which hosts are candidates.
    pub select: Option<Select>,
    /// How candidates are sorted.
    pub order: Option<Order>,
    /// What is reserved.
    pub rusage: Option<Rusage>,
    /// How tasks are spread.
    pub span: Option<Span>,
    /// Resources whose value all hosts of the job share.
    pub same: Vec<String>,
    /// Compute units.
    pub cu: Option<Cu>,
    /// Processor binding.
    pub affinity: Option<Affinity>,
}

impl Simple {
    /// Whether a host is a candidate. Without a select section every host is.
    pub fn selects(&self, host: &dyn HostView, cx: &SelectCx<'_>) -> bool {
        self.select.as_ref().is_none_or(|s| s.expr.holds(host, cx))
    }
}

impl Simple {
    /// Whether it speaks of a resource, in what it chooses by or reserves.
    pub fn asks(&self, res: &str) -> bool {
        let chosen = self.select.as_ref().is_some_and(|s| s.expr.mentions(&|n, _| n == res));
        let rusage = self.rusage.iter().flat_map(|r| r.alternatives.iter().flatten());
        chosen || rusage.into_iter().any(|t| t.res == res)
    }
}

/// One part of a compound requirement.
#[derive(Clone, Debug, PartialEq)]
pub struct CompoundTerm {
    /// How many tasks; None for the part that takes the rest.
    pub tasks: Option<u32>,
    /// What they need.
    pub req: Simple,
}

/// One of several alternatives.
#[derive(Clone, Debug, PartialEq)]
pub struct Alternative {
    /// A simple or compound requirement.
    pub req: ResReq,
    /// Seconds of pending before this alternative may be used; 0 without `@delay`.
    pub delay: u32,
}

/// A whole resource requirement.
#[derive(Clone, Debug, PartialEq)]
pub enum ResReq {
    /// `select[..] order[..] ...`
    Simple(Box<Simple>),
    /// `n*{..} + {..}`
    Compound(Vec<CompoundTerm>),
    /// `{..} || {..}@delay`
    Alternatives(Vec<Alternative>),
}

impl Default for ResReq {
    fn default() -> Self {
        ResReq::Simple(Box::default())
    }
}

impl ResReq {
    /// Parses one string.
    pub fn parse(text: &str, syntax: &Syntax<'_>) -> Result<ResReq, ResReqError> {
        parse::parse(text, syntax)
    }

    /// Every simple requirement inside, in the order written.
    pub fn simples(&self) -> Vec<&Simple> {
        match self {
            ResReq::Simple(s) => vec![s],
            ResReq::Compound(terms) => terms.iter().map(|t| &t.req).collect(),
            ResReq::Alternatives(alts) => alts.iter().flat_map(|a| a.req.simples()).collect(),
        }
    }

    /// The first simple requirement, which decides alone where parts and alternatives do not act.
    pub fn first(&self) -> Option<&Simple> {
        match self {
            ResReq::Simple(s) => Some(s),
            ResReq::Compound(terms) => terms.first().map(|t| &t.req),
            ResReq::Alternatives(alts) => alts.first().and_then(|a| a.req.first()),
        }
    }
}

impl ResReq {
    /// Its sections and forms that are kept and that nothing acts on, each once.
    pub fn not_acted_on(&self) -> Vec<&'static str> {
        let mut found = Vec::new();
        match self {
            ResReq::Simple(_) => {}
            ResReq::Compound(terms) if terms.len() > 1 => {
                found.push("each part of a compound requirement but the first");
            }
            ResReq::Compound(_) => {}
            ResReq::Alternatives(_) => found.push("each alternative requirement but the first"),
        }
        if let Some(first) = self.first() {
            let sections = [
                ("section same[]", !first.same.is_empty()),
                ("section cu[]", first.cu.is_some()),
                ("section affinity[]", first.affinity.is_some()),
            ];
            found.extend(sections.iter().filter(|(_, given)| *given).map(|(name, _)| *name));
        }
        found
    }
}

/// Writes ` name[body]`, without the blank at the line's start.
struct Sections<'a, 'f> {
    f: &'a mut fmt::Formatter<'f>,
    first: bool,
}

impl Sections<'_, '_> {
    fn put(&mut self, name: &str, body: Option<&dyn fmt::Display>) -> fmt::Result {
        let Some(body) = body else { return Ok(()) };
        let blank = if std::mem::take(&mut self.first) { "" } else { " " };
        write!(self.f, "{blank}{name}[{body}]")
    }
}

fn dyn_display<T: fmt::Display>(value: &Option<T>) -> Option<&dyn fmt::Display> {
    value.as_ref().map(|v| v as &dyn fmt::Display)
}

impl fmt::Display for Select {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Display for Simple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = Sections { f, first: true };
        out.put("select", dyn_display(&self.select))?;
        out.put("order", dyn_display(&self.order))?;
        out.put("rusage", dyn_display(&self.rusage))?;
        out.put("span", dyn_display(&self.span))?;
        let same = (!self.same.is_empty()).then(|| self.same.join(":"));
        out.put("same", dyn_display(&same))?;
        out.put("cu", dyn_display(&self.cu))?;
        out.put("affinity", dyn_display(&self.affinity))
    }
}

impl fmt::Display for ResReq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResReq::Simple(s) => s.fmt(f),
            ResReq::Compound(terms) => {
                for (i, term) in terms.iter().enumerate() {
                    f.write_str(if i == 0 { "" } else { " + " })?;
                    if let Some(n) = term.tasks {
                        write!(f, "{n}*")?;
                    }
                    write!(f, "{{{}}}", term.req)?;
                }
                Ok(())
            }
            ResReq::Alternatives(alts) => {
                for (i, alt) in alts.iter().enumerate() {
                    f.write_str(if i == 0 { "" } else { " || " })?;
                    write!(f, "{{{}}}", alt.req)?;
                    if alt.delay > 0 {
                        write!(f, "@{}", alt.delay)?;
                    }
                }
                Ok(())
            }
        }
    }
}

/// A malformed resource requirement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResReqError {
    /// Byte offset of the trouble in the text given.
    pub offset: usize,
    /// What was wrong there, in our words (it may hold a word of the text).
    pub reason: String,
}

impl ResReqError {
    fn at<T>(offset: usize, reason: impl Into<String>) -> Result<T, ResReqError> {
        Err(ResReqError { offset, reason: reason.into() })
    }

    /// The mistake, and its place in the text: `foo: unknown resource at column 8 of
    /// <select[foo]>`.
    pub fn place(&self, text: &str) -> String {
        // a name was read when it was found to be wrong: its place is where it begins
        let name = self.reason.split_once(": ").map_or("", |(name, _)| name);
        let read = text.get(..self.offset.saturating_add(name.len()).min(text.len()));
        let begin = read.filter(|_| !name.is_empty()).and_then(|read| read.rfind(name));
        let before = text.get(..begin.unwrap_or(self.offset)).unwrap_or(text);
        let before = before.chars().count();
        format!("{} at column {} of <{text}>", self.reason, before + 1)
    }
}

impl fmt::Display for ResReqError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bad resource requirement syntax")
    }
}

impl std::error::Error for ResReqError {}

type Parsed<T> = Result<T, ResReqError>;

#[cfg(test)]
mod tests;
