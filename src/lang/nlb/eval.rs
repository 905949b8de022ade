//! Applying a policy: constraints filter the hosts, the sort expression orders them.

use super::lex::Binary;
use super::policy::{Owner, Policy, Step};
use crate::lang::bre::Bre;
use crate::model::nlb::{AttrId, Kind};
use std::cmp::Ordering;

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

    /// The number of the attribute `id`, which is the one at `slot` of [`Policy::attributes`].
    /// An implementation that has looked for these beforehand finds it by its slot.
    fn number_at(&self, _slot: usize, id: AttrId) -> Option<f64> {
        self.number(id)
    }

    /// The text of the attribute `id`, in the same way.
    fn text_at(&self, _slot: usize, id: AttrId) -> Option<&str> {
        self.text(id)
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
    let mut ranked: Vec<Ranked> = Vec::with_capacity(candidates.len());
    let mut kept: Vec<Numbered<'_, '_, A>> = Vec::with_capacity(BLOCK);
    let mut from = 0;
    for block in candidates.chunks(BLOCK) {
        kept.clear();
        kept.extend(block.iter().enumerate().map(|(at, host)| (from + at, host)));
        from += block.len();
        for constraint in &policy.constraints {
            let mut values = evaluation.values(constraint, &kept).iter();
            // a constraint holds where its value is present and not 0
            kept.retain(|_| values.next().is_some_and(|value| *value != 0.0 && !value.is_nan()));
            if kept.is_empty() {
                break;
            }
        }
        let values = match &policy.sort {
            Some(steps) => evaluation.values(steps, &kept),
            None => &[0.0; BLOCK],
        };
        let value = |value: f64| (!value.is_nan()).then_some(value);
        let both = kept.iter().zip(values);
        ranked.extend(both.map(|((at, _), v)| Ranked { candidate: *at, value: value(*v) }));
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

/// A candidate with its position.
type Numbered<'c, 'a, A> = (usize, &'c Candidate<'a, A>);

/// Hosts to which a step of an expression is applied before the next one: their values are then
/// in the cache, and one that is not does not hold up the others.
const BLOCK: usize = 64;

/// Texts of which is remembered whether an expression matches them.
const REMEMBERED: usize = 256;

/// Whether an expression matches the texts that it has met last. Many hosts have few texts, which
/// their addresses tell apart: all hosts stay where they are while a policy is applied.
struct Met(Vec<Option<(*const u8, usize, bool)>>);

impl Met {
    fn place(&mut self, text: &str) -> Option<&mut Option<(*const u8, usize, bool)>> {
        let mixed = (text.as_ptr() as usize as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0.get_mut((mixed >> 32) as usize % REMEMBERED)
    }

    fn matches(&mut self, expression: &Bre, text: &str) -> bool {
        let Some(place) = self.place(text) else { return expression.matches(text) };
        match place {
            Some((at, length, known)) if (*at, *length) == (text.as_ptr(), text.len()) => *known,
            _ => {
                let matches = expression.matches(text);
                *place = Some((text.as_ptr(), text.len(), matches));
                matches
            }
        }
    }
}

/// One policy against many hosts.
struct Evaluation<'p, 'r, R> {
    policy: &'p Policy,
    request: &'r R,
    /// The values of the request's attributes by slot; NaN: missing, or a host's attribute.
    fixed: Vec<f64>,
    /// The texts that each expression has met.
    met: Vec<Met>,
    /// The values of the operands, of each for the hosts of a block.
    stack: Vec<[f64; BLOCK]>,
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
            met: policy.expressions.iter().map(|_| Met(vec![None; REMEMBERED])).collect(),
            stack: Vec::new(),
        }
    }

    /// The values of an expression for some hosts, at most [`BLOCK`]; NaN: missing.
    fn values<A: Attributes>(&mut self, steps: &[Step], hosts: &[Numbered<'_, '_, A>]) -> &[f64] {
        let count = hosts.len();
        // the operands that wait
        let mut height: usize = 0;
        for step in steps {
            let operands = match step {
                Step::Not | Step::Negative => 1,
                Step::Binary(_) => 2,
                _ => 0,
            };
            height = height.saturating_sub(operands) + 1;
            while self.stack.len() < height + 1 {
                self.stack.push([f64::NAN; BLOCK]);
            }
            let (_, top) = self.stack.split_at_mut(height - 1);
            let [first, rest @ ..] = top else { break };
            let out = &mut first[..count];
            match (step, rest) {
                (Step::Not, _) => out.iter_mut().for_each(|value| *value = not(*value)),
                (Step::Negative, _) => out.iter_mut().for_each(|value| *value = -*value),
                (Step::Binary(op), [second, ..]) => {
                    combine(*op, out, second);
                }
                (Step::Number(value), _) => out.fill(*value),
                (Step::Age, _) => fill(out, hosts, |host| host.age),
                _ => self.look(step, hosts, height - 1),
            }
        }
        self.stack.first().map_or(&[], |values| &values[..count])
    }

    /// Puts what an attribute of the hosts, or of the request, yields on the stack.
    fn look<A: Attributes>(&mut self, step: &Step, hosts: &[Numbered<'_, '_, A>], at: usize) {
        let (Step::Attribute(slot) | Step::Exists(slot) | Step::Match(slot, _)) = step else {
            return;
        };
        let Some(out) = self.stack.get_mut(at).map(|all| &mut all[..hosts.len()]) else { return };
        let Some(a) = self.policy.attributes.get(*slot) else { return out.fill(f64::NAN) };
        let (slot, id, of_host) = (*slot, a.id, a.owner == Owner::Host);
        match step {
            Step::Attribute(_) if of_host => {
                fill(out, hosts, |host| host.attributes.number_at(slot, id));
            }
            Step::Attribute(_) => out.fill(self.fixed.get(slot).copied().unwrap_or(f64::NAN)),
            Step::Exists(_) if of_host && id.kind == Kind::Str => {
                fill(out, hosts, |h| Some(flag(h.attributes.text_at(slot, id).is_some())));
            }
            Step::Exists(_) if of_host => {
                fill(out, hosts, |h| Some(flag(h.attributes.number_at(slot, id).is_some())));
            }
            Step::Exists(_) => out.fill(flag(self.request.has(id))),
            Step::Match(_, expression) => {
                let expressions = self.policy.expressions.get(*expression);
                let both = expressions.zip(self.met.get_mut(*expression));
                let Some((expression, met)) = both else { return out.fill(f64::NAN) };
                let request = self.request;
                fill(out, hosts, |host| {
                    let text = match of_host {
                        true => host.attributes.text_at(slot, id),
                        false => request.text(id),
                    };
                    text.map(|text| flag(met.matches(expression, text)))
                });
            }
            _ => {}
        }
    }
}

/// Each host's value; missing ones are NaN.
fn fill<A>(
    out: &mut [f64],
    hosts: &[Numbered<'_, '_, A>],
    mut value: impl FnMut(&Candidate<'_, A>) -> Option<f64>,
) {
    for (out, (_, host)) in out.iter_mut().zip(hosts) {
        *out = value(host).unwrap_or(f64::NAN);
    }
}

fn flag(is: bool) -> f64 {
    if is { 1.0 } else { 0.0 }
}

fn not(value: f64) -> f64 {
    if value.is_nan() { value } else { flag(value == 0.0) }
}

/// Applies an operator to each pair: one loop for each operator.
fn combine(op: Binary, left: &mut [f64], right: &[f64]) {
    macro_rules! one_of {
        ($($of:ident)*) => {
            match op {
                $(Binary::$of => {
                    let pairs = left.iter_mut().zip(right);
                    pairs.for_each(|(a, b)| *a = binary(Binary::$of, *a, *b));
                })*
            }
        };
    }
    one_of!(Add Sub Mul Div Eq Ne Lt Le Gt Ge Xor And Or Implies);
}

/// The three-valued logic: missing is NaN.
#[inline(always)]
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
