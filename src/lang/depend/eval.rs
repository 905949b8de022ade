//! The truth of a resolved dependency condition, from facts about the jobs it names.

use super::expr::{CmpOp, CountOf, DepIndex, DependExpr, Func};
use super::resolve::{Group, IdRef, Ref, Resolved};

/// The state of one job or element, as far as dependencies care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DepState {
    /// PEND, and every state before the start that is not held.
    Pend,
    /// PSUSP.
    Held,
    /// RUN.
    Run,
    /// SSUSP or USUSP.
    Susp,
    /// DONE.
    Done,
    /// EXIT with the code the shell would show (128 + signal); None when the end is unknown.
    Exit(Option<i32>),
    /// The job is no longer in memory: it has ended in an unknown way.
    Gone,
}

/// The state of the post-execution command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum PostState {
    /// No command ran, or it has not ended.
    #[default]
    None,
    /// The command succeeded.
    Done,
    /// The command failed.
    Err,
}

/// The facts of one job or element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DepFacts {
    /// The state of the job.
    pub state: DepState,
    /// Whether the job ever ran: tells an EXIT from a kill while pending.
    pub started: bool,
    /// The state of the job's post-execution command.
    pub post: PostState,
}

impl DepFacts {
    /// The facts of a job that was cleaned from memory.
    pub const GONE: DepFacts =
        DepFacts { state: DepState::Gone, started: false, post: PostState::None };
}

/// How many elements of an array are in which state; a plain job is an array of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DepCounts {
    /// All elements.
    pub total: u32,
    /// PEND.
    pub pend: u32,
    /// PSUSP.
    pub held: u32,
    /// RUN.
    pub run: u32,
    /// SSUSP and USUSP.
    pub susp: u32,
    /// DONE.
    pub done: u32,
    /// EXIT, known or unknown code, started or not.
    pub exit: u32,
    /// The elements of `exit` that ended without ever running.
    pub exit_unstarted: u32,
    /// Elements cleaned from memory.
    pub gone: u32,
    /// Elements whose post-execution command succeeded.
    pub post_done: u32,
    /// Elements whose post-execution command failed.
    pub post_err: u32,
}

impl DepCounts {
    /// The counts of one job alone.
    pub fn one(facts: &DepFacts) -> DepCounts {
        let mut c = DepCounts { total: 1, ..DepCounts::default() };
        match facts.state {
            DepState::Pend => c.pend = 1,
            DepState::Held => c.held = 1,
            DepState::Run => c.run = 1,
            DepState::Susp => c.susp = 1,
            DepState::Done => c.done = 1,
            DepState::Exit(_) => {
                c.exit = 1;
                c.exit_unstarted = u32::from(!facts.started);
            }
            DepState::Gone => c.gone = 1,
        }
        c.post_done = u32::from(facts.post == PostState::Done);
        c.post_err = u32::from(facts.post == PostState::Err);
        c
    }

    /// Elements that have not ended.
    fn open(&self) -> u32 {
        self.pend + self.held + self.run + self.susp
    }
}

/// Answers about jobs; `index` is None for a job that is no array.
pub trait JobLookup {
    /// The facts of one job or element; [`DepFacts::GONE`] for what is no longer known.
    fn facts(&self, id: u64, index: Option<u32>) -> DepFacts;
    /// The counts of a job over all its elements, in constant time.
    fn counts(&self, id: u64) -> DepCounts;
    /// Calls `f` with the exit code of every element in EXIT (None: unknown end).
    fn exit_codes(&self, id: u64, f: &mut dyn FnMut(Option<i32>, u32));
    /// The external status last set for a job or element.
    fn external(&self, id: u64, index: Option<u32>) -> Option<String>;
    /// Whether every job of a group is as the function says.
    fn group(&self, group: &Group, func: &Func) -> Truth;
    /// The counts of the jobs of a job group and of all below it, in constant time; `None`: there
    /// is no such group.
    fn job_group(&self, path: &str) -> Option<DepCounts>;
    /// Calls `each` with every job of a job group and of all below it, until that is false.
    fn jobs_of_group(&self, path: &str, each: &mut dyn FnMut(u64) -> bool) -> bool;
}

/// Whether the jobs of a job group are as a counting function says. A group that does not exist
/// counts as one without jobs, and nothing is expected of it any more.
pub fn of_job_group(func: &Func, counts: Option<&DepCounts>) -> Truth {
    let none = DepCounts::default();
    let c = counts.unwrap_or(&none);
    let holds = match func {
        Func::Count(of, Some((op, n))) => op.holds(of.now(c), *n),
        Func::Count(of, None) => c.total > 0 && of.now(c) == c.total,
        _ => false,
    };
    // jobs come to a group and leave it
    Truth { holds, fixed: counts.is_none() }
}

/// Whether a job, or every element of it, is as a function says.
pub fn of_job(func: &Func, id: u64, jobs: &dyn JobLookup) -> Truth {
    condition(func, &IdRef { id, index: DepIndex::Whole }, jobs, None)
}

/// The present value of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DepValue {
    /// Satisfied.
    True,
    /// The condition is not satisfied so far.
    False,
    /// Can never be satisfied any more (`Dependency condition invalid or never satisfied`).
    Never,
}

/// A truth, and whether it can still change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truth {
    pub holds: bool,
    pub fixed: bool,
}

impl Resolved {
    /// Evaluates for the element `own_index` of the depending array (None: a plain job).
    pub fn eval(&self, jobs: &dyn JobLookup, own_index: Option<u32>) -> DepValue {
        match truth(&self.expr, jobs, own_index) {
            Truth { holds: true, .. } => DepValue::True,
            Truth { fixed: false, .. } => DepValue::False,
            Truth { fixed: true, .. } => DepValue::Never,
        }
    }
}

impl Resolved {
    /// The values of the parts that are the same for every element (those without `[*]`), a byte
    /// each. While they stay, a change of a named element concerns one element alone.
    pub fn shared(&self, jobs: &dyn JobLookup) -> Vec<u8> {
        let mut out = Vec::new();
        shared(&self.expr, jobs, &mut out);
        out
    }
}

/// A job or element that a condition is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parent {
    pub id: u64,
    /// The element; `None`: the job, or all elements.
    pub idx: Option<u32>,
    /// The job is as the condition says.
    pub holds: bool,
}

impl Resolved {
    /// The jobs that the condition is about, left to right, at most `most`; of a name that stands
    /// for many jobs each of these.
    pub fn parents(&self, jobs: &dyn JobLookup, own: Option<u32>, most: usize) -> Vec<Parent> {
        let mut all = Vec::new();
        parents(&self.expr, jobs, own, &mut |parent| {
            if all.len() < most {
                all.push(parent);
            }
            all.len() < most
        });
        all
    }
}

/// Gives each job to `each`, until that is false.
fn parents(
    expr: &DependExpr<Ref>,
    jobs: &dyn JobLookup,
    own: Option<u32>,
    each: &mut dyn FnMut(Parent) -> bool,
) -> bool {
    match expr {
        DependExpr::And(parts) | DependExpr::Or(parts) => {
            parts.iter().all(|part| parents(part, jobs, own, each))
        }
        DependExpr::Not(inner) => {
            parents(inner, jobs, own, &mut |p| each(Parent { holds: !p.holds, ..p }))
        }
        DependExpr::Cond(func, Ref::Job(r)) => {
            let holds = condition(func, r, jobs, own).holds;
            let idx = match r.index {
                DepIndex::Whole => None,
                DepIndex::Element(idx) => Some(idx),
                DepIndex::Same => own,
            };
            each(Parent { id: r.id, idx, holds })
        }
        DependExpr::Cond(func, Ref::Group(group)) => group.members.iter().all(|id| {
            let id = u64::from(*id);
            each(Parent { id, idx: None, holds: of_job(func, id, jobs).holds })
        }),
        DependExpr::Cond(func, Ref::JobGroup(path)) => {
            let holds = of_job_group(func, jobs.job_group(path).as_ref()).holds;
            jobs.jobs_of_group(path, &mut |id| each(Parent { id, idx: None, holds }))
        }
        DependExpr::Cond(_, Ref::Name { .. }) => true,
    }
}

fn shared(expr: &DependExpr<Ref>, jobs: &dyn JobLookup, out: &mut Vec<u8>) {
    match expr {
        DependExpr::And(parts) | DependExpr::Or(parts) => {
            parts.iter().for_each(|p| shared(p, jobs, out))
        }
        DependExpr::Not(inner) => shared(inner, jobs, out),
        DependExpr::Cond(_, Ref::Job(r)) if r.index == DepIndex::Same => {}
        DependExpr::Cond(func, r) => {
            let t = referred(func, r, jobs, None);
            out.push(u8::from(t.holds) | u8::from(t.fixed) << 1);
        }
    }
}

fn truth(expr: &DependExpr<Ref>, jobs: &dyn JobLookup, own: Option<u32>) -> Truth {
    match expr {
        DependExpr::And(parts) => join(parts, jobs, own, true),
        DependExpr::Or(parts) => join(parts, jobs, own, false),
        DependExpr::Not(inner) => {
            let t = truth(inner, jobs, own);
            Truth { holds: !t.holds, fixed: t.fixed }
        }
        DependExpr::Cond(func, r) => referred(func, r, jobs, own),
    }
}

fn referred(func: &Func, r: &Ref, jobs: &dyn JobLookup, own: Option<u32>) -> Truth {
    match r {
        Ref::Job(r) => condition(func, r, jobs, own),
        Ref::Group(group) => jobs.group(group, func),
        Ref::JobGroup(path) => of_job_group(func, jobs.job_group(path).as_ref()),
        // nobody has said yet what it stands for
        Ref::Name { .. } => Truth { holds: false, fixed: false },
    }
}

/// `&&` (`unit` true) and `||` (`unit` false): one fixed part of the other truth decides for ever.
fn join(parts: &[DependExpr<Ref>], jobs: &dyn JobLookup, own: Option<u32>, unit: bool) -> Truth {
    let mut all = Truth { holds: unit, fixed: true };
    for part in parts {
        let t = truth(part, jobs, own);
        if t.holds == unit {
            all.fixed &= t.fixed || all.holds != unit;
        } else if t.fixed {
            return t;
        } else {
            all = Truth { holds: !unit, fixed: false };
        }
    }
    all
}

fn condition(func: &Func, r: &IdRef, jobs: &dyn JobLookup, own: Option<u32>) -> Truth {
    let index = match r.index {
        DepIndex::Whole => None,
        DepIndex::Element(i) => Some(i),
        DepIndex::Same => own,
    };
    let counts = match index {
        None => jobs.counts(r.id),
        Some(_) => DepCounts::one(&jobs.facts(r.id, index)),
    };
    match func {
        Func::Exit(Some((op, code))) => {
            let mut matching = 0u32;
            let mut test = |c: Option<i32>, n: u32| {
                matching += if c.is_some_and(|c| op.holds(c, *code)) { n } else { 0 };
            };
            match index {
                None => jobs.exit_codes(r.id, &mut test),
                Some(_) => {
                    if let DepState::Exit(c) = jobs.facts(r.id, index).state {
                        test(c, 1);
                    }
                }
            }
            every(matching, &counts)
        }
        Func::External(text) => {
            let holds = jobs.external(r.id, index).is_some_and(|status| is_status(&status, text));
            // a job that has ended takes no status any more
            Truth { holds, fixed: counts.open() == 0 }
        }
        Func::Count(of, test) => counted(*of, *test, &counts),
        simple => every_simple(simple, &counts),
    }
}

/// Is an external status the text that a condition asks for? One word is compared with the first
/// word of the status.
fn is_status(status: &str, text: &str) -> bool {
    status == text || status.split_whitespace().next() == Some(text)
}

/// True when all elements match; never when some element ended without matching.
fn every(matching: u32, c: &DepCounts) -> Truth {
    let holds = matching == c.total && c.total > 0;
    Truth { holds, fixed: holds || matching + c.open() < c.total || c.total == 0 }
}

fn every_simple(func: &Func, c: &DepCounts) -> Truth {
    match func {
        Func::Ended => every(c.done + c.exit + c.gone, c),
        Func::Exit(_) => every(c.exit, c),
        Func::Started => every(c.run + c.susp + c.done + c.exit - c.exit_unstarted, c),
        // A post-execution command still runs after the job has ended: only a known outcome of
        // the other kind, a job that never ran or one gone from memory settles it.
        Func::PostDone => post(c.post_done, c.post_err, c),
        Func::PostErr => post(c.post_err, c.post_done, c),
        _ => every(c.done, c),
    }
}

fn post(wanted: u32, other: u32, c: &DepCounts) -> Truth {
    let holds = wanted == c.total && c.total > 0;
    let never = other > 0 || c.exit_unstarted > 0 || c.gone > 0 || c.total == 0;
    Truth { holds, fixed: holds || never }
}

impl CountOf {
    /// The jobs that the function counts.
    fn now(self, c: &DepCounts) -> u32 {
        match self {
            CountOf::Done => c.done,
            CountOf::Ended => c.done + c.exit + c.gone,
            CountOf::Exit => c.exit,
            CountOf::Hold => c.held,
            CountOf::Pend => c.pend,
            CountOf::Run => c.run,
            CountOf::Start => c.run + c.susp + c.done,
        }
    }
}

fn counted(of: CountOf, test: Option<(CmpOp, u32)>, c: &DepCounts) -> Truth {
    let open = c.open();
    let now = of.now(c);
    // the least and greatest count from now on
    let (low, high) = match of {
        CountOf::Done | CountOf::Ended | CountOf::Exit => (now, now + open),
        CountOf::Hold | CountOf::Pend => (0, c.pend + c.held),
        CountOf::Run => (0, open),
        // A started element that exits leaves this count: DONE alone stays.
        CountOf::Start => (c.done, c.done + open),
    };
    let (op, n) = test.unwrap_or((CmpOp::Eq, c.total));
    let holds = op.holds(now, n);
    let fixed = match op {
        // An interval test keeps its truth over [low, high] when both ends agree with now.
        CmpOp::Lt | CmpOp::Le | CmpOp::Gt | CmpOp::Ge => {
            op.holds(low, n) == holds && op.holds(high, n) == holds
        }
        CmpOp::Eq | CmpOp::Ne => low == high || n < low || n > high,
    };
    Truth { holds, fixed }
}
