//! The order section: how candidate hosts are sorted.

use super::expr::Expr;
use super::expr_parse::expression;
use super::syntax::{HostView, Parsed, ResKind, ResName, ResReqError, Syntax};
use std::cmp::Ordering;
use std::fmt;

/// One sort key.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderKey {
    /// A resource, or an expression over several.
    pub expr: Expr,
    /// `-`: worst first.
    pub reversed: bool,
    /// `!`: with the values after this cycle's placements.
    pub fresh: bool,
}

/// The sort keys, the most important first.
#[derive(Clone, Debug, PartialEq)]
pub struct HostOrder {
    /// Never empty.
    pub keys: Vec<OrderKey>,
}

impl Default for HostOrder {
    /// LSF's default, `r15s:pg`.
    fn default() -> Self {
        let key = |name: &str| OrderKey {
            expr: Expr::Res(ResName::unnumbered(name), ResKind::Numeric { increasing: true }),
            reversed: false,
            fresh: false,
        };
        HostOrder { keys: vec![key("r15s"), key("pg")] }
    }
}

impl OrderKey {
    /// Whether a small value is the better one: the INCREASING flag of the first numeric
    /// resource named, turned round by `-`.
    fn small_first(&self) -> bool {
        leading(&self.expr).unwrap_or(false) != self.reversed
    }
}

/// The INCREASING flag of the leftmost numeric resource.
fn leading(expr: &Expr) -> Option<bool> {
    match expr {
        Expr::Res(_, ResKind::Numeric { increasing }) => Some(*increasing),
        Expr::Neg(e) | Expr::Not(e) => leading(e),
        Expr::Bin(_, a, b) => leading(a).or_else(|| leading(b)),
        _ => None,
    }
}

impl HostOrder {
    /// Reads an order by itself, as DEFAULT_RESREQ_ORDER has it.
    pub fn read(text: &str, syntax: &Syntax<'_>) -> Result<HostOrder, ResReqError> {
        HostOrder::parse(text, 0, syntax)
    }

    /// Parses what stands between the brackets, beginning at `base` of the string.
    pub(super) fn parse(text: &str, base: usize, syntax: &Syntax<'_>) -> Parsed<HostOrder> {
        let mut keys = Vec::new();
        let mut offset = base;
        for part in text.split(':') {
            let blanks = part.len() - part.trim_start().len();
            let mut word = part.trim_start();
            let mut at = offset + blanks;
            let (mut reversed, mut fresh) = (false, false);
            while let Some(rest) = word.strip_prefix(['-', '!']) {
                let flag = if word.starts_with('-') { &mut reversed } else { &mut fresh };
                if std::mem::replace(flag, true) {
                    return ResReqError::at(at, "a sign twice");
                }
                at += 1;
                word = rest;
            }
            let expr = expression(word, at, syntax)?;
            if !expr.mentions(&|_, _| true) {
                return ResReqError::at(at, "no resource to order by");
            }
            keys.push(OrderKey { expr, reversed, fresh });
            offset += part.len() + 1;
        }
        Ok(HostOrder { keys })
    }

    /// Does a key want the values after the placements of this cycle?
    pub fn fresh(&self) -> bool {
        self.keys.iter().any(|key| key.fresh)
    }

    /// The host's place as numbers: the list that compares smaller is the better host. A value
    /// that a host lacks comes last whatever the sign.
    pub fn rank(&self, host: &dyn HostView) -> Vec<f64> {
        let place = |key: &OrderKey| match key.expr.number(host) {
            Some(n) if key.small_first() => n,
            Some(n) => -n,
            None => f64::INFINITY,
        };
        self.keys.iter().map(place).collect()
    }

    /// Compares two ranks of the same order.
    pub fn compare_ranks(a: &[f64], b: &[f64]) -> Ordering {
        let pairs = a.iter().zip(b);
        pairs.map(|(x, y)| x.total_cmp(y)).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
    }

    /// Compares two hosts: Less when `a` is the better one.
    pub fn compare(&self, a: &dyn HostView, b: &dyn HostView) -> Ordering {
        Self::compare_ranks(&self.rank(a), &self.rank(b))
    }
}

impl fmt::Display for HostOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, key) in self.keys.iter().enumerate() {
            f.write_str(if i == 0 { "" } else { ":" })?;
            f.write_str(if key.reversed { "-" } else { "" })?;
            f.write_str(if key.fresh { "!" } else { "" })?;
            match key.expr {
                // A sign that belongs to the expression must not be read as the key's.
                Expr::Neg(_) | Expr::Not(_) => write!(f, "({})", key.expr)?,
                _ => write!(f, "{}", key.expr)?,
            }
        }
        Ok(())
    }
}
