//! Dependency expressions (`bsub -w`): parsed whole, resolved to job IDs, evaluated.
//!
//! Three steps, each its own type: [`DepExpr`] is what was typed (names and IDs);
//! [`DepExpr::resolve`] turns every reference into job IDs at submission and gives a [`Resolved`],
//! whose text (`Display`) parses back to the same condition by IDs, so that a log can keep it
//! (where a name stands for many jobs it stays the name, and who reads the log has it stand for
//! them: [`Resolved::bind`]); [`Resolved::eval`] answers with [`DepValue`] from facts that the
//! caller looks up.
//!
//! Inside, a value is a truth plus whether it can still change. So `!` needs no special cases: the
//! negation of what can never be true is true for ever.

mod eval;
mod expr;
mod parse;
mod resolve;

pub use eval::{
    DepCounts, DepFacts, DepState, DepValue, JobLookup, Parent, PostState, Truth, of_job,
    of_job_group,
};
pub use expr::{
    CmpOp, CountOf, DepExpr, DepIndex, DepRef, DepTarget, DependError, DependExpr, Func,
    MAX_DEPEND_DEPTH, MAX_DEPEND_TEXT,
};
pub use resolve::{Group, NamedJob, ResolveError, Resolved, Resolver};

#[cfg(test)]
mod tests;
