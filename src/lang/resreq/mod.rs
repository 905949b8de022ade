//! Resource requirement strings (`-R`, RES_REQ): parsed whole, merged, evaluated, printed.
//!
//! A string is parsed against a table of resource names ([`ResNames`]), so that a name nobody
//! defined is an error at submission and never a job that pends for ever. `Display` gives the
//! canonical form that `bjobs -l` shows as Combined; it parses back to the same value. Sizes (mem,
//! swp, tmp, maxmem, maxswp, maxtmp) are in MB throughout; a number without a unit counts in
//! [`Syntax::size_unit_mb`].
//!
//! Choices that LSF's documents leave open: a section may stand once in one string; bare
//! `res=val:bool` lists are recognised by a `:` or a single `=` in the select text; `same` of queue
//! and job are joined, everything else of the job wins over the queue's.

mod affinity;
mod expr;
mod expr_parse;
mod merge;
mod order;
mod parse;
mod place;
mod ranges;
mod requirement;
mod rusage;
mod syntax;

pub use affinity::{Affinity, Distribute, Exclusive, Scopes, Unit};
pub use expr::{BinOp, Expr, SelectContext};
pub use order::{HostOrder, OrderKey};
pub use place::{Cu, Span, SpanHosts, Tile};
pub use ranges::RusageRange;
pub use rusage::{Per, Rusage, RusagePhase, RusageTerm};

pub use parse::requested_mb;
pub use requirement::{Alternative, CompoundTerm, ResReq, Select, Simple};
pub use syntax::{
    Builtins, HOST_NUMBERS, HostView, MAX_NESTING, MAX_OPERATORS, MAX_RESREQ_TEXT,
    MAX_RUSAGE_ALTERNATIVES, ResKind, ResName, ResNames, ResReqError, Syntax, alias, is_size,
};

#[cfg(test)]
mod tests;
