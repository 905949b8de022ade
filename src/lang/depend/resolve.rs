//! Turning the names of a dependency expression into job IDs, once, at submission.

use super::expr::{DepExpr, DepIndex, DepTarget, DependError, DependExpr, Func, write_job_group};
use crate::lang::jobname::ArraySpec;
use std::collections::BTreeSet;
use std::fmt;
use std::rc::Rc;

/// The answer of the resolver about one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedJob<'a> {
    /// The ID of the job.
    pub id: u64,
    /// The array, if the job is one.
    pub array: Option<&'a ArraySpec>,
}

/// Finds jobs for the user who submits.
pub trait Resolver {
    /// The job with this ID, of any owner, if it is known.
    fn by_id(&self, id: u64) -> Option<NamedJob<'_>>;
    /// The user's own jobs of this name (with `prefix`, whose names begin so), oldest first;
    /// only the latest where JOB_DEP_LAST_SUB=1.
    fn by_name(&self, name: &str, prefix: bool) -> Vec<NamedJob<'_>>;
    /// Is this name kept as a name, since it stands for many jobs?
    fn kept(&self, _name: &str, _prefix: bool) -> bool {
        false
    }
    /// Is there a job group of this path?
    fn job_group(&self, _path: &str) -> bool {
        false
    }
    /// Most jobs that a name may stand for where they are listed.
    fn most(&self) -> usize {
        usize::MAX
    }
}

/// A reference by ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IdRef {
    pub(super) id: u64,
    pub(super) index: DepIndex,
}

/// The jobs that a name stood for when a condition was made. Conditions made while it stood for
/// the same ones share them.
#[derive(Debug, PartialEq, Eq)]
pub struct Group {
    /// Number of the group; unique within a process.
    pub number: u32,
    pub name: String,
    /// `name*`.
    pub prefix: bool,
    /// Ascending.
    pub members: Rc<Vec<u32>>,
}

/// The subject of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ref {
    Job(IdRef),
    /// A name that many jobs bear, which are still to be found.
    Name {
        name: String,
        prefix: bool,
    },
    Group(Rc<Group>),
    /// A job group, by its path.
    JobGroup(String),
}

impl fmt::Display for Ref {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, prefix) = match self {
            Ref::Job(r) => return write!(f, "{}{}", r.id, r.index),
            Ref::Name { name, prefix } => (name, *prefix),
            Ref::Group(group) => (&group.name, group.prefix),
            Ref::JobGroup(path) => return write_job_group(f, path),
        };
        let target = DepTarget::Name { name: name.clone(), prefix };
        super::DepRef { target, index: DepIndex::Whole }.fmt(f)
    }
}

/// A dependency condition by job IDs, and by names where these stand for many jobs. The text parses
/// back to the same condition; the place of its record in the log decides which jobs the names
/// stand for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    pub(super) expr: DependExpr<Ref>,
}

impl Resolved {
    /// Reads back the text of a resolved condition.
    pub fn parse(text: &str) -> Result<Resolved, DependError> {
        let typed = DepExpr::parse(text)?;
        let expr = map(typed.expr(), &mut |func, r| {
            let target = match (&r.target, r.index) {
                (DepTarget::Id(id), index) => Ref::Job(IdRef { id: *id, index }),
                (DepTarget::JobGroup(path), _) => Ref::JobGroup(path.clone()),
                (DepTarget::Name { name, prefix }, DepIndex::Whole) => {
                    Ref::Name { name: name.clone(), prefix: *prefix }
                }
                _ => {
                    let reason = "a resolved condition holds no elements of named jobs";
                    return Err(DependError { offset: 0, reason });
                }
            };
            Ok(DependExpr::Cond(func.clone(), target))
        })?;
        Ok(Resolved { expr })
    }

    /// Every job the condition names by its ID, ascending, each once: an index for
    /// re-evaluation.
    pub fn job_ids(&self) -> Vec<u64> {
        let mut ids = BTreeSet::new();
        self.expr.each_ref(&mut |r| {
            if let Ref::Job(r) = r {
                ids.insert(r.id);
            }
        });
        ids.into_iter().collect()
    }

    /// The names that stand for many jobs.
    pub fn names(&self) -> Vec<(String, bool)> {
        let mut names = Vec::new();
        self.expr.each_ref(&mut |r| {
            if let Ref::Name { name, prefix } = r {
                names.push((name.clone(), *prefix));
            }
        });
        names
    }

    /// Has every such name stand for the jobs that `find` says.
    pub fn bind(self, find: &mut dyn FnMut(&str, bool) -> Rc<Group>) -> Resolved {
        let bound = map::<_, _, ()>(&self.expr, &mut |func, r| {
            let target = match r {
                Ref::Name { name, prefix } => Ref::Group(find(name, *prefix)),
                other => other.clone(),
            };
            Ok(DependExpr::Cond(func.clone(), target))
        });
        bound.map_or(self, |expr| Resolved { expr })
    }

    /// The question put to each group.
    pub fn groups(&self) -> Vec<(Func, Rc<Group>)> {
        fn walk(expr: &DependExpr<Ref>, all: &mut Vec<(Func, Rc<Group>)>) {
            match expr {
                DependExpr::And(parts) | DependExpr::Or(parts) => {
                    parts.iter().for_each(|p| walk(p, all))
                }
                DependExpr::Not(inner) => walk(inner, all),
                DependExpr::Cond(func, Ref::Group(group)) => {
                    all.push((func.clone(), group.clone()))
                }
                DependExpr::Cond(..) => {}
            }
        }
        let mut all = Vec::new();
        walk(&self.expr, &mut all);
        all
    }

    /// The question put to each job group, and the path of the group.
    pub fn job_groups(&self) -> Vec<(Func, String)> {
        fn walk(expr: &DependExpr<Ref>, all: &mut Vec<(Func, String)>) {
            match expr {
                DependExpr::And(parts) | DependExpr::Or(parts) => {
                    parts.iter().for_each(|p| walk(p, all))
                }
                DependExpr::Not(inner) => walk(inner, all),
                DependExpr::Cond(func, Ref::JobGroup(path)) => {
                    all.push((func.clone(), path.clone()))
                }
                DependExpr::Cond(..) => {}
            }
        }
        let mut all = Vec::new();
        walk(&self.expr, &mut all);
        all
    }

    /// Whether elements of the depending array wait for elements of their own index.
    pub fn per_element(&self) -> bool {
        let mut found = false;
        self.expr.each_ref(&mut |r| {
            found |= matches!(r, Ref::Job(IdRef { index: DepIndex::Same, .. }));
        });
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
    /// No such job group; holds its path.
    NoJobGroup(String),
    /// `[*]` between arrays of different indices, or without an array on one side.
    ArraySizes,
    /// The reference stands for more jobs than are taken.
    TooMany(String),
}

impl fmt::Display for ResolveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResolveError::NoMatchingJob(reference) => {
                write!(f, "{reference}: No matching job found")
            }
            ResolveError::NoJobGroup(path) => write!(f, "{path}: Job group does not exist"),
            ResolveError::ArraySizes => f.write_str("Dependent arrays do not have the same size"),
            ResolveError::TooMany(reference) => write!(f, "{reference}: too many jobs"),
        }
    }
}

impl std::error::Error for ResolveError {}

impl DepExpr {
    /// Gives `each` every name, whether the names of jobs only begin so, and whether all of each
    /// job is meant.
    pub fn names(&self, each: &mut dyn FnMut(&str, bool, bool)) {
        self.expr().each_ref(&mut |r| {
            if let DepTarget::Name { name, prefix } = &r.target {
                each(name, *prefix, r.index == DepIndex::Whole);
            }
        });
    }

    /// Finds every job named. `own` is the array of the job being submitted, if it is one. A
    /// name that several jobs bear means all of them.
    pub fn resolve(
        &self,
        jobs: &dyn Resolver,
        own: Option<&ArraySpec>,
    ) -> Result<Resolved, ResolveError> {
        let expr = map(self.expr(), &mut |func, r| {
            if let (DepTarget::Name { name, prefix }, DepIndex::Whole) = (&r.target, r.index)
                && jobs.kept(name, *prefix)
            {
                let target = Ref::Name { name: name.clone(), prefix: *prefix };
                return Ok(DependExpr::Cond(func.clone(), target));
            }
            let found = match &r.target {
                DepTarget::JobGroup(path) if jobs.job_group(path) => {
                    let target = Ref::JobGroup(path.clone());
                    return Ok(DependExpr::Cond(func.clone(), target));
                }
                DepTarget::JobGroup(path) => return Err(ResolveError::NoJobGroup(path.clone())),
                DepTarget::Id(id) => jobs.by_id(*id).into_iter().collect(),
                DepTarget::Name { name, prefix } => jobs.by_name(name, *prefix),
            };
            let unknown = || ResolveError::NoMatchingJob(plain(r));
            if found.len() > jobs.most() {
                return Err(ResolveError::TooMany(plain(r)));
            }
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
                let target = Ref::Job(IdRef { id: job.id, index: r.index });
                parts.push(DependExpr::Cond(func.clone(), target));
            }
            match parts.len() {
                0 => Err(unknown()),
                1 => Ok(parts.remove(0)),
                _ => Ok(DependExpr::And(parts)),
            }
        })?;
        Ok(Resolved { expr })
    }
}

/// The reference without quotes, as LSF's messages show it.
fn plain(r: &super::DepRef) -> String {
    match &r.target {
        DepTarget::Id(id) => format!("{id}{}", r.index),
        DepTarget::JobGroup(path) => path.clone(),
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

type Condition<'f, T, U, E> = &'f mut dyn FnMut(&Func, &T) -> Result<DependExpr<U>, E>;

/// Rebuilds an expression, condition by condition. The parts that replace a condition form one
/// subtree, so `!a` of two jobs named a is `!(a1 && a2)`.
fn map<T, U, E>(expr: &DependExpr<T>, f: Condition<'_, T, U, E>) -> Result<DependExpr<U>, E> {
    let mut all =
        |parts: &[DependExpr<T>]| parts.iter().map(|p| map(p, f)).collect::<Result<Vec<_>, E>>();
    Ok(match expr {
        DependExpr::And(parts) => {
            let flat = all(parts)?.into_iter().flat_map(|p| match p {
                DependExpr::And(inner) => inner,
                other => vec![other],
            });
            DependExpr::And(flat.collect())
        }
        DependExpr::Or(parts) => DependExpr::Or(all(parts)?),
        DependExpr::Not(inner) => DependExpr::Not(Box::new(map(inner, f)?)),
        DependExpr::Cond(func, target) => f(func, target)?,
    })
}
