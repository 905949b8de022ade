//! Policies as text: the file that, read again, yields the same policies.

use super::lex::Binary;
use super::policy::{Policies, Policy, Step};
use std::fmt;

/// The strength of an operand, above those of all operators.
const OPERAND: u8 = 9;
/// The strength of `!` and the sign.
const UNARY: u8 = 8;

impl fmt::Display for Policies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, policy) in self.list.iter().enumerate() {
            if n > 0 {
                writeln!(f)?;
            }
            write!(f, "{policy}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "policy: {}", self.name)?;
        for steps in &self.constraints {
            writeln!(f, "constraint: {}", self.expression(steps))?;
        }
        if let Some(steps) = &self.sort {
            writeln!(f, "sort: {}", self.expression(steps))?;
        }
        match self.count {
            Some(count) => writeln!(f, "count: {count}"),
            None => Ok(()),
        }
    }
}

impl Policy {
    fn name_of(&self, slot: usize) -> &str {
        self.attributes.get(slot).map_or("", |a| &a.name)
    }

    /// An expression with the parentheses that it needs.
    fn expression(&self, steps: &[Step]) -> String {
        let mut stack: Vec<(String, u8)> = Vec::new();
        for step in steps {
            let next = match step {
                Step::Number(value) => (value.to_string(), OPERAND),
                Step::Attribute(slot) => (self.name_of(*slot).to_owned(), OPERAND),
                Step::Age => ("age".to_owned(), OPERAND),
                Step::Exists(slot) => (format!("exists({})", self.name_of(*slot)), OPERAND),
                Step::Match(slot, pattern) => {
                    let text = self.expressions.get(*pattern).map_or("", |e| e.text());
                    let quoted = text.replace('"', "\\\"");
                    (format!("[{} == \"{quoted}\"]", self.name_of(*slot)), OPERAND)
                }
                Step::Not | Step::Negative => {
                    let operand = stack.pop().unwrap_or_default();
                    let sign = if *step == Step::Not { '!' } else { '-' };
                    (format!("{sign}{}", within(operand, UNARY)), UNARY)
                }
                Step::Binary(op) => {
                    let right = stack.pop().unwrap_or_default();
                    let left = stack.pop().unwrap_or_default();
                    let own = op.strength();
                    let (l, r) = match op {
                        Binary::Implies => (own + 1, own),
                        _ => (own, own + 1),
                    };
                    let text = format!("{} {} {}", within(left, l), op.text(), within(right, r));
                    (text, own)
                }
            };
            stack.push(next);
        }
        stack.pop().map(|(text, _)| text).unwrap_or_default()
    }
}

/// An operand, in parentheses where it binds less than `least`.
fn within((text, strength): (String, u8), least: u8) -> String {
    if strength < least { format!("({text})") } else { text }
}
