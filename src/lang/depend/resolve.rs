//! Turning the names of a dependency expression into job IDs, once, at submission.

use super::{DepExpr, DepIndex, DepTarget, DependError, Expr, Func};
use crate::lang::jobname::ArraySpec;
use std::collections::BTreeSet;
use std::fmt;

/// What the resolver answers about one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedJob<'a> {
    /// Its ID.
    pub id: u64,
    /// Its array, if it is one.
    pub array: Option<&'a ArraySpec>,
}

/// Finds jobs for the user who submits.
pub trait Resolver {
    /// The job with this ID, whoever owns it, if it is known.
    fn by_id(&self, id: u64) -> Option<NamedJob<'_>>;
    /// The user's own jobs of this name (with `prefix`, whose names begin so), oldest first;
    /// only the latest where JOB_DEP_LAST_SUB=1.
    fn by_name(&self, name: &str, prefix: bool) -> Vec<NamedJob<'_>>;
}

/// A reference by ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct IdRef {
    pub(super) id: u64,
    pub(super) index: DepIndex,
}

impl fmt::Display for IdRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.id, self.index)
    }
}

/// A dependency condition by job IDs. Its text parses back to itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    pub(super) expr: Expr<IdRef>,
}

impl Resolved {
    /// Reads back the text of a resolved condition: every reference must be an ID.
    pub fn parse(text: &str) -> Result<Resolved, DependError> {
        let typed = DepExpr::parse(text)?;
        let by_id = map(typed.expr(), &mut |func, r| match r.target {
            DepTarget::Id(id) => Ok(Expr::Cond(func.clone(), IdRef { id, index: r.index })),
            DepTarget::Name { .. } => {
                Err(DependError { offset: 0, reason: "a resolved condition holds IDs only" })
            }
        })?;
        Ok(Resolved { expr: by_id })
    }

    /// Every job the condition looks at, ascending, each once: an index for re-evaluation.
    pub fn job_ids(&self) -> Vec<u64> {
        let mut ids = BTreeSet::new();
        self.expr.each_ref(&mut |r| {
            ids.insert(r.id);
        });
        ids.into_iter().collect()
    }

    /// Whether elements of the depending array wait for elements of their own index.
    pub fn per_element(&self) -> bool {
        let mut found = false;
        self.expr.each_ref(&mut |r| found |= r.index == DepIndex::Same);
        found
    }
}

impl fmt::Display for Resolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.expr.fmt(f)
    }
}

/// Why a reference cannot be resolved, in LSF's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResolveError {
    /// No such job, or no such element; holds the reference as typed.
    NoMatchingJob(String),
    /// `[*]` between arrays of different indices, or without an array on one side.
    ArraySizes,
}

impl fmt::Display for ResolveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResolveError::NoMatchingJob(reference) => {
                write!(f, "{reference}: No matching job found")
            }
            ResolveError::ArraySizes => f.write_str("Dependent arrays do not have the same size"),
        }
    }
}

impl std::error::Error for ResolveError {}

impl DepExpr {
    /// Finds every job named. `own` is the array of the job being submitted, if it is one. A
    /// name that several jobs bear means all of them.
    pub fn resolve(
        &self,
        jobs: &dyn Resolver,
        own: Option<&ArraySpec>,
    ) -> Result<Resolved, ResolveError> {
        let expr = map(self.expr(), &mut |func, r| {
            let found = match &r.target {
                DepTarget::Id(id) => jobs.by_id(*id).into_iter().collect(),
                DepTarget::Name { name, prefix } => jobs.by_name(name, *prefix),
            };
            let unknown = || ResolveError::NoMatchingJob(plain(r));
            let mut parts = Vec::new();
            for job in &found {
                if let DepIndex::Element(i) = r.index {
                    match job.array {
                        Some(array) if array.contains(i) => {}
                        _ if found.len() > 1 => continue,
                        _ => return Err(unknown()),
                    }
                }
                if r.index == DepIndex::Same && !same_size(job.array, own) {
                    return Err(ResolveError::ArraySizes);
                }
                parts.push(Expr::Cond(func.clone(), IdRef { id: job.id, index: r.index }));
            }
            match parts.len() {
                0 => Err(unknown()),
                1 => Ok(parts.remove(0)),
                _ => Ok(Expr::And(parts)),
            }
        })?;
        Ok(Resolved { expr })
    }
}

/// The reference without quotes, as LSF's messages show it.
fn plain(r: &super::DepRef) -> String {
    match &r.target {
        DepTarget::Id(id) => format!("{id}{}", r.index),
        DepTarget::Name { name, prefix } => {
            format!("{name}{}{}", if *prefix { "*" } else { "" }, r.index)
        }
    }
}

/// Element i waits for element i: both arrays must count alike.
fn same_size(other: Option<&ArraySpec>, own: Option<&ArraySpec>) -> bool {
    match (other, own) {
        (Some(a), Some(b)) => {
            a.list == b.list || (a.len() == b.len() && b.iter().all(|i| a.contains(i)))
        }
        _ => false,
    }
}

type Condition<'f, T, U, E> = &'f mut dyn FnMut(&Func, &T) -> Result<Expr<U>, E>;

/// Rebuilds an expression, condition by condition. What a condition becomes is kept together by
/// the tree itself, so `!a` of two jobs named a is `!(a1 && a2)`.
fn map<T, U, E>(expr: &Expr<T>, f: Condition<'_, T, U, E>) -> Result<Expr<U>, E> {
    let mut all =
        |parts: &[Expr<T>]| parts.iter().map(|p| map(p, f)).collect::<Result<Vec<_>, E>>();
    Ok(match expr {
        Expr::And(parts) => {
            let flat = all(parts)?.into_iter().flat_map(|p| match p {
                Expr::And(inner) => inner,
                other => vec![other],
            });
            Expr::And(flat.collect())
        }
        Expr::Or(parts) => Expr::Or(all(parts)?),
        Expr::Not(inner) => Expr::Not(Box::new(map(inner, f)?)),
        Expr::Cond(func, target) => f(func, target)?,
    })
}
