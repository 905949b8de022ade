//! Select expressions: the tree, its value for a host, its text.
//!
//! A resource that a host lacks has no value; what is computed from it has none either, and an
//! expression without a value selects nothing. `&&` with a false side and `||` with a true side
//! have a value all the same. A Boolean resource that is lacking is 0.

use super::syntax::{HostView, ResKind, ResName};
use std::fmt;

/// A binary operator, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinOp {
    /// `||`
    Or,
    /// `&&`
    And,
    /// `==`
    Eq,
    /// `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
}

impl BinOp {
    /// How tightly it binds: 1 (`||`) to 6 (`*`).
    pub(super) fn level(self) -> u8 {
        match self {
            BinOp::Or => 1,
            BinOp::And => 2,
            BinOp::Eq | BinOp::Ne => 3,
            BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge => 4,
            BinOp::Add | BinOp::Sub => 5,
            BinOp::Mul | BinOp::Div => 6,
        }
    }

    /// Whether the operator is a comparison.
    pub(super) fn compares(self) -> bool {
        matches!(self.level(), 3 | 4)
    }

    /// The operator as it is written.
    pub(super) fn sign(self) -> &'static str {
        match self {
            BinOp::Or => "||",
            BinOp::And => "&&",
            BinOp::Eq => "==",
            BinOp::Ne => "!=",
            BinOp::Lt => "<",
            BinOp::Le => "<=",
            BinOp::Gt => ">",
            BinOp::Ge => ">=",
            BinOp::Add => "+",
            BinOp::Sub => "-",
            BinOp::Mul => "*",
            BinOp::Div => "/",
        }
    }
}

/// An expression over the resources of one host.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A number.
    Num(f64),
    /// A size in MB, written with a unit.
    Size(f64),
    /// A text.
    Text(String),
    /// A resource (aliases resolved).
    Res(ResName, ResKind),
    /// defined(res): whether the host has it.
    Defined(String, ResKind),
    /// `-e`
    Neg(Box<Expr>),
    /// `!e`
    Not(Box<Expr>),
    /// `a op b`
    Bin(BinOp, Box<Expr>, Box<Expr>),
}

/// The context of an expression besides the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SelectContext<'a> {
    /// `type == local` means this type, the submission host's; empty (unknown) matches any.
    pub local_type: &'a str,
    /// `model == local` likewise.
    pub local_model: &'a str,
}

/// The value of an expression.
enum Value<'a> {
    Num(f64),
    Text(&'a str),
    None,
}

impl Expr {
    /// Whether the expression has a value other than 0 for this host.
    pub fn holds(&self, host: &dyn HostView, cx: &SelectContext<'_>) -> bool {
        matches!(self.value(host, cx), Value::Num(n) if n != 0.0)
    }

    /// The expression as a number, for sorting.
    pub fn number(&self, host: &dyn HostView) -> Option<f64> {
        match self.value(host, &SelectContext::default()) {
            Value::Num(n) => Some(n),
            _ => None,
        }
    }

    fn value<'a>(&'a self, host: &'a dyn HostView, cx: &SelectContext<'_>) -> Value<'a> {
        match self {
            Expr::Num(n) | Expr::Size(n) => Value::Num(*n),
            Expr::Text(t) => Value::Text(t),
            Expr::Res(ResName { number: Some(number), text }, ResKind::Numeric { .. }) => {
                host.numbered(*number, text).map_or(Value::None, Value::Num)
            }
            Expr::Res(name, kind) => resource(host, &name.text, *kind),
            Expr::Defined(name, kind) => truth(match kind {
                ResKind::Boolean => host.boolean(name) == Some(true),
                _ => !matches!(resource(host, name, *kind), Value::None),
            }),
            Expr::Neg(e) => match e.value(host, cx) {
                Value::Num(n) => Value::Num(-n),
                _ => Value::None,
            },
            Expr::Not(e) => match e.value(host, cx) {
                Value::Num(n) => truth(n == 0.0),
                _ => Value::None,
            },
            Expr::Bin(BinOp::And, a, b) => logical(a.value(host, cx), || b.value(host, cx), false),
            Expr::Bin(BinOp::Or, a, b) => logical(a.value(host, cx), || b.value(host, cx), true),
            Expr::Bin(op, a, b) => match (a.as_ref(), b.as_ref()) {
                (Expr::Res(name, ResKind::String), Expr::Text(t))
                | (Expr::Text(t), Expr::Res(name, ResKind::String)) => {
                    named(host, cx, *op, &name.text, t)
                }
                _ => binary(*op, a.value(host, cx), b.value(host, cx)),
            },
        }
    }

    /// The expressions that must all hold for this one to hold, as they are written.
    pub fn conjuncts(&self) -> Vec<&Expr> {
        let (mut open, mut all) = (vec![self], Vec::new());
        while let Some(expr) = open.pop() {
            match expr {
                Expr::Bin(BinOp::And, a, b) => open.extend([b.as_ref(), a.as_ref()]),
                other => all.push(other),
            }
        }
        all
    }

    /// Both must hold.
    pub fn and(a: Expr, b: Expr) -> Expr {
        Expr::Bin(BinOp::And, Box::new(a), Box::new(b))
    }

    /// Whether the expression speaks of a resource for which `wanted` holds.
    pub fn mentions(&self, wanted: &dyn Fn(&str, ResKind) -> bool) -> bool {
        match self {
            Expr::Num(_) | Expr::Size(_) | Expr::Text(_) => false,
            Expr::Res(name, kind) => wanted(&name.text, *kind),
            Expr::Defined(name, kind) => wanted(name, *kind),
            Expr::Neg(e) | Expr::Not(e) => e.mentions(wanted),
            Expr::Bin(_, a, b) => a.mentions(wanted) || b.mentions(wanted),
        }
    }

    /// The resource that has to be above a number, or no less than it, and that number, where this
    /// is all that the expression says.
    pub fn floor(&self) -> Option<(&str, f64)> {
        let Expr::Bin(op, a, b) = self else { return None };
        let (name, bound) = match op {
            BinOp::Gt | BinOp::Ge => (a, b),
            BinOp::Lt | BinOp::Le => (b, a),
            _ => return None,
        };
        match (&**name, &**bound) {
            (Expr::Res(name, _), Expr::Num(n) | Expr::Size(n)) => Some((&name.text, *n)),
            _ => None,
        }
    }

    /// Whether its value is a text.
    pub(super) fn is_text(&self) -> bool {
        matches!(self, Expr::Text(_) | Expr::Res(_, ResKind::String))
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, inside: u8) -> fmt::Result {
        match self {
            Expr::Num(n) => write!(f, "{n}"),
            Expr::Size(n) => write!(f, "{n}M"),
            Expr::Text(t) if t.contains('"') => write!(f, "'{t}'"),
            Expr::Text(t) => write!(f, "\"{t}\""),
            Expr::Res(name, _) => f.write_str(&name.text),
            Expr::Defined(name, _) => write!(f, "defined({name})"),
            Expr::Neg(e) | Expr::Not(e) => {
                f.write_str(if matches!(self, Expr::Neg(_)) { "-" } else { "!" })?;
                e.write(f, u8::MAX)
            }
            Expr::Bin(op, a, b) => {
                let level = op.level();
                f.write_str(if level < inside { "(" } else { "" })?;
                a.write(f, level)?;
                let wide = if level <= 3 { " " } else { "" };
                write!(f, "{wide}{}{wide}", op.sign())?;
                b.write(f, level + 1)?;
                f.write_str(if level < inside { ")" } else { "" })
            }
        }
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, 0)
    }
}

fn truth(holds: bool) -> Value<'static> {
    Value::Num(f64::from(u8::from(holds)))
}

fn resource<'a>(host: &'a dyn HostView, name: &str, kind: ResKind) -> Value<'a> {
    match kind {
        ResKind::Numeric { .. } => host.num(name).map_or(Value::None, Value::Num),
        ResKind::Boolean => truth(host.boolean(name).unwrap_or(false)),
        ResKind::String => host.text(name).map_or(Value::None, Value::Text),
    }
}

/// `&&` (`decides` false) and `||` (`decides` true): a side of that truth settles the whole.
fn logical<'a>(a: Value<'_>, b: impl FnOnce() -> Value<'a>, decides: bool) -> Value<'static> {
    let side = |v: Value<'_>| match v {
        Value::Num(n) => Some(n != 0.0),
        _ => None,
    };
    let a = side(a);
    if a == Some(decides) {
        return truth(decides);
    }
    match side(b()) {
        Some(b) if b == decides => truth(decides),
        Some(_) if a.is_some() => truth(!decides),
        _ => Value::None,
    }
}

/// A string resource against a word: `type` and `model` know `any` and `local`; host names
/// compare without regard to case.
fn named(
    host: &dyn HostView,
    cx: &SelectContext<'_>,
    op: BinOp,
    name: &str,
    word: &str,
) -> Value<'static> {
    let local = match name {
        "type" => Some(cx.local_type),
        "model" => Some(cx.local_model),
        _ => None,
    };
    let wanted = match (local, word) {
        (Some(_), "any") => return truth(op == BinOp::Eq),
        (Some(""), "local") => return truth(op == BinOp::Eq),
        (Some(local), "local") => local,
        _ => word,
    };
    match host.text(name) {
        Some(has) if name == "hname" && has.eq_ignore_ascii_case(wanted) => {
            binary(op, Value::Text(wanted), Value::Text(wanted))
        }
        Some(has) => binary(op, Value::Text(has), Value::Text(wanted)),
        None => Value::None,
    }
}

fn binary(op: BinOp, a: Value<'_>, b: Value<'_>) -> Value<'static> {
    match (a, b) {
        (Value::Num(a), Value::Num(b)) => match op {
            BinOp::Add => Value::Num(a + b),
            BinOp::Sub => Value::Num(a - b),
            BinOp::Mul => Value::Num(a * b),
            BinOp::Div if b == 0.0 => Value::None,
            BinOp::Div => Value::Num(a / b),
            _ => compare(op, a, b),
        },
        (Value::Text(a), Value::Text(b)) => compare(op, a, b),
        _ => Value::None,
    }
}

fn compare<T: PartialOrd>(op: BinOp, a: T, b: T) -> Value<'static> {
    truth(match op {
        BinOp::Eq => a == b,
        BinOp::Ne => a != b,
        BinOp::Lt => a < b,
        BinOp::Le => a <= b,
        BinOp::Gt => a > b,
        BinOp::Ge => a >= b,
        _ => return Value::None,
    })
}
