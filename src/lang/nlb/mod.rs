//! The policy language of the NQE load balancer: policies that filter hosts and sort them.
//! See nlbpolicies(5).
//!
//! - `text` reads a file's characters with their places; `lex` makes tokens of them.
//! - `parse` reads policies, resolves the names and finds all faults of a file in one reading.
//! - `policy` holds what was read: clauses in postfix order, so that no nesting of a file can
//!   exhaust the stack of the one who evaluates, compares or drops it. `print` writes it.
//! - `eval` applies a policy to hosts.
//!
//! A missing value is NaN, which arithmetic hands on by itself: a NaN that arithmetic yields
//! (0/0) counts as missing.

mod eval;
mod lex;
mod parse;
mod policy;
mod print;
#[cfg(test)]
mod tests;
pub mod text;

pub use eval::{Attributes, Candidate, Ranked, rank};
pub use parse::{Known, Names, parse};
pub use policy::{AttributeUse, Choice, Owner, Policies, Policy};

/// Largest policies file, bytes.
pub const MAX_FILE: usize = 1 << 20;
/// Most policies of a file.
pub const MAX_POLICIES: usize = 1_000;
/// Most constraints of a policy.
pub const MAX_CONSTRAINTS: usize = 100;
/// Deepest nesting of parentheses.
pub const MAX_NESTING: usize = 64;
/// Most operators and operands of one clause.
pub const MAX_TERMS: usize = 2_000;
/// Most faults that are told of one file.
pub const MAX_FAULTS: usize = 100;

/// The policies of a site that has written none.
pub const BUILT_IN: &str = "\
# Policies of the Network Load Balancer. Read by the server from NLB_SERVER_DIR/policies;
# change that file, then say: nlbconfig -pol
policy: nqs
constraint: exists(NLB_QUEUE_NAME) && age < 300
sort: NLB_A_IDLECPU
";
