//! Applying a policy: constraints filter the hosts, the sort expression orders them.

use super::lex::Binary;
use super::policy::{Owner, Policy, Step};
use crate::model::nlb::AttrId;
use std::cmp::Ordering;
use std::collections::HashMap;

/// The attributes of one host or request.
pub trait Attributes {
    /// The value of a number attribute, an integer or a time as float.
    fn number(&self, id: AttrId) -> Option<f64>;

    /// The value of a string attribute.
    fn text(&self, id: AttrId) -> Option<&str>;

    /// Does it have the attribute?
    fn has(&self, id: AttrId) -> bool {
        self.number(id).is_some() || self.text(id).is_some()
    }
}

/// A host that may be chosen.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a, A> {
    /// The name, as it is to be shown.
    pub name: &'a str,
    /// Seconds since its last report; `None`: it never reported.
    pub age: Option<f64>,
    /// The attributes.
    pub attributes: &'a A,
}

/// A host that met all constraints.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranked {
    /// The position among the candidates.
    pub candidate: usize,
    /// The value of the sort expression; `None`: an attribute in it is missing.
    pub value: Option<f64>,
}

/// The hosts that meet the constraints of `policy` for `request`, best first: by value, missing
/// ones last, equal ones by name. The policy's count is left to the caller, since the values of
/// those that it cuts off are stored, too.
pub fn rank<A: Attributes>(
    policy: &Policy,
    candidates: &[Candidate<'_, A>],
    request: &impl Attributes,
) -> Vec<Ranked> {
    let mut evaluation = Evaluation::new(policy, request);
    let mut kept: Vec<usize> = (0..candidates.len()).collect();
    for constraint in &policy.constraints {
        kept.retain(|at| candidates.get(*at).is_some_and(|c| evaluation.holds(constraint, c)));
        if kept.is_empty() {
            return Vec::new();
        }
    }
    let mut ranked: Vec<Ranked> = Vec::with_capacity(kept.len());
    for candidate in kept {
        let Some(host) = candidates.get(candidate) else { continue };
        let value = match &policy.sort {
            Some(steps) => evaluation.value(steps, host),
            None => 0.0,
        };
        ranked.push(Ranked { candidate, value: (!value.is_nan()).then_some(value) });
    }
    let name = |r: &Ranked| candidates.get(r.candidate).map_or("", |c| c.name);
    ranked.sort_by(|a, b| descending(a.value, b.value).then_with(|| by_name(name(a), name(b))));
    ranked
}

/// Larger values first, missing ones last; -0 equals 0.
fn descending(a: Option<f64>, b: Option<f64>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => b.partial_cmp(&a).unwrap_or(Ordering::Equal),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    }
}

/// Bytewise in lower case.
fn by_name(a: &str, b: &str) -> Ordering {
    let (x, y) = (a.bytes(), b.bytes());
    x.map(|b| b.to_ascii_lowercase()).cmp(y.map(|b| b.to_ascii_lowercase())).then_with(|| a.cmp(b))
}

/// One policy against many hosts.
struct Evaluation<'p, 'r, R> {
    policy: &'p Policy,
    request: &'r R,
    /// The values of the request's attributes by slot; NaN: missing, or a host's attribute.
    fixed: Vec<f64>,
    /// Whether each expression matches a text that it has met. Many hosts have few texts.
    met: Vec<HashMap<String, bool>>,
    stack: Vec<f64>,
}

impl<'p, 'r, R: Attributes> Evaluation<'p, 'r, R> {
    fn new(policy: &'p Policy, request: &'r R) -> Self {
        let fixed = policy.attributes.iter().map(|a| match a.owner {
            Owner::Request => request.number(a.id).unwrap_or(f64::NAN),
            Owner::Host => f64::NAN,
        });
        Evaluation {
            policy,
            request,
            fixed: fixed.collect(),
            met: vec![HashMap::new(); policy.expressions.len()],
            stack: Vec::new(),
        }
    }

    /// A constraint holds where its value is present and not 0.
    fn holds<A: Attributes>(&mut self, steps: &[Step], host: &Candidate<'_, A>) -> bool {
        let value = self.value(steps, host);
        value != 0.0 && !value.is_nan()
    }

    /// The value of an expression; NaN: missing.
    fn value<A: Attributes>(&mut self, steps: &[Step], host: &Candidate<'_, A>) -> f64 {
        self.stack.clear();
        for step in steps {
            let value = match step {
                Step::Number(value) => *value,
                Step::Age => host.age.unwrap_or(f64::NAN),
                Step::Attribute(slot) => self.attribute(*slot, host),
                Step::Exists(slot) => self.exists(*slot, host),
                Step::Match(slot, pattern) => self.matches(*slot, *pattern, host),
                Step::Not => not(self.pop()),
                Step::Negative => -self.pop(),
                Step::Binary(op) => {
                    let right = self.pop();
                    binary(*op, self.pop(), right)
                }
            };
            self.stack.push(value);
        }
        self.pop()
    }

    fn pop(&mut self) -> f64 {
        self.stack.pop().unwrap_or(f64::NAN)
    }

    fn attribute<A: Attributes>(&self, slot: usize, host: &Candidate<'_, A>) -> f64 {
        match self.policy.attributes.get(slot) {
            Some(a) if a.owner == Owner::Host => host.attributes.number(a.id).unwrap_or(f64::NAN),
            _ => self.fixed.get(slot).copied().unwrap_or(f64::NAN),
        }
    }

    fn exists<A: Attributes>(&self, slot: usize, host: &Candidate<'_, A>) -> f64 {
        let Some(a) = self.policy.attributes.get(slot) else { return f64::NAN };
        flag(match a.owner {
            Owner::Host => host.attributes.has(a.id),
            Owner::Request => self.request.has(a.id),
        })
    }

    fn matches<A: Attributes>(&mut self, slot: usize, at: usize, host: &Candidate<'_, A>) -> f64 {
        let Some(a) = self.policy.attributes.get(slot) else { return f64::NAN };
        let text = match a.owner {
            Owner::Host => host.attributes.text(a.id),
            Owner::Request => self.request.text(a.id),
        };
        let expression = self.policy.expressions.get(at);
        let (Some(text), Some(expression), Some(met)) = (text, expression, self.met.get_mut(at))
        else {
            return f64::NAN;
        };
        if let Some(known) = met.get(text) {
            return flag(*known);
        }
        let matches = expression.matches(text);
        met.insert(text.to_owned(), matches);
        flag(matches)
    }
}

fn flag(is: bool) -> f64 {
    if is { 1.0 } else { 0.0 }
}

fn not(value: f64) -> f64 {
    if value.is_nan() { value } else { flag(value == 0.0) }
}

/// The three-valued logic: missing is NaN.
fn binary(op: Binary, a: f64, b: f64) -> f64 {
    let missing = a.is_nan() || b.is_nan();
    let known = |is: bool| if missing { f64::NAN } else { flag(is) };
    match op {
        Binary::Add => a + b,
        Binary::Sub => a - b,
        Binary::Mul => a * b,
        Binary::Div => a / b,
        Binary::Eq => known(a == b),
        Binary::Ne => known(a != b),
        Binary::Lt => known(a < b),
        Binary::Le => known(a <= b),
        Binary::Gt => known(a > b),
        Binary::Ge => known(a >= b),
        Binary::Xor => known((a != 0.0) != (b != 0.0)),
        Binary::And if a == 0.0 || b == 0.0 => 0.0,
        Binary::And => known(true),
        Binary::Or => or(a, b),
        Binary::Implies => or(not(a), b),
    }
}

fn or(a: f64, b: f64) -> f64 {
    let holds = |x: f64| x != 0.0 && !x.is_nan();
    match (holds(a) || holds(b), a.is_nan() || b.is_nan()) {
        (true, _) => 1.0,
        (false, true) => f64::NAN,
        (false, false) => 0.0,
    }
}
