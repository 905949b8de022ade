//! A resource requirement that was read: its sections, parts and alternatives, and its canonical
//! text.

use super::affinity::Affinity;
use super::expr::{Expr, SelectContext};
use super::order::HostOrder;
use super::place::{Cu, Span};
use super::rusage::Rusage;
use super::syntax::HostView;
use std::fmt;

/// A select section: the expression and its text, which listings show as typed.
#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    /// The text as typed, or as merged.
    pub text: String,
    /// The expression.
    pub expr: Expr,
}

/// One requirement without alternatives or parts. Every section may be missing.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Simple {
    /// The condition on candidate hosts.
    pub select: Option<Select>,
    /// The sort order of candidate hosts.
    pub order: Option<HostOrder>,
    /// The reserved amounts.
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
    pub fn selects(&self, host: &dyn HostView, cx: &SelectContext<'_>) -> bool {
        self.select.as_ref().is_none_or(|s| s.expr.holds(host, cx))
    }
}

impl Simple {
    /// Whether the select or rusage section mentions a resource.
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
    /// The resources that they need.
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
    /// Every simple requirement inside, in the order written.
    pub fn simples(&self) -> Vec<&Simple> {
        match self {
            ResReq::Simple(s) => vec![s],
            ResReq::Compound(terms) => terms.iter().map(|t| &t.req).collect(),
            ResReq::Alternatives(alts) => alts.iter().flat_map(|a| a.req.simples()).collect(),
        }
    }

    /// Every simple requirement inside, to be changed.
    pub fn simples_mut(&mut self) -> Vec<&mut Simple> {
        match self {
            ResReq::Simple(s) => vec![s],
            ResReq::Compound(terms) => terms.iter_mut().map(|t| &mut t.req).collect(),
            ResReq::Alternatives(alts) => {
                alts.iter_mut().flat_map(|a| a.req.simples_mut()).collect()
            }
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
    /// The sections and forms of the requirement that are kept and have no effect, each once.
    pub fn not_acted_on(&self) -> Vec<&'static str> {
        let mut found = Vec::new();
        let simples = self.simples();
        if simples.iter().any(|s| s.span.as_ref().is_some_and(|span| span.gtile.is_some())) {
            found.push("gtile of section span[]");
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
