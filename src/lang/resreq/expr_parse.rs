//! The grammar of select expressions, and the old `res=val:bool:-bool` lists.

use super::expr::{BinOp, Expr};
use super::syntax::{MAX_NESTING, MAX_OPERATORS, Parsed, ResKind, ResReqError, Syntax, is_size};
use crate::lang::scan::Scan;

/// Parses a whole select text that begins at `base` of the string. The second value is true for
/// the old form, whose text is no expression.
pub(super) fn select(text: &str, base: usize, syntax: &Syntax<'_>) -> Parsed<(Expr, bool)> {
    if is_old_form(text) {
        return old_form(text, base, syntax).map(|e| (e, true));
    }
    Ok(match expression(text, base, syntax)? {
        // A lone `-bool` is old for "not", never a negative number.
        Expr::Neg(e) if matches!(*e, Expr::Res(_, ResKind::Boolean)) => (Expr::Not(e), true),
        expr => (expr, false),
    })
}

/// Parses a whole expression whose value is a number.
pub(super) fn expression(text: &str, base: usize, syntax: &Syntax<'_>) -> Parsed<Expr> {
    let scan = Scan::within(text, base);
    let mut p = Parser { scan, syntax, depth: 0, operators: 0 };
    let expr = p.binary(1)?;
    p.scan.blanks();
    if !p.scan.at_end() {
        return p.fail("unexpected text");
    }
    p.not_text(&expr)?;
    Ok(expr)
}

/// A `:`, or a `=` that is no part of `==`, `!=`, `<=`, `>=`, outside quotes.
fn is_old_form(text: &str) -> bool {
    let mut quote = None;
    let mut last = ' ';
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(q), _) if c == q => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, ':') => return true,
            (None, '=') if chars.peek() != Some(&'=') && !"=!<>".contains(last) => return true,
            _ => {}
        }
        last = c;
    }
    false
}

/// `res=val:bool:-bool`: `:` is and; `=` is "at least" for decreasing resources, "at most" for
/// increasing ones.
fn old_form(text: &str, base: usize, syntax: &Syntax<'_>) -> Parsed<Expr> {
    let mut offset = base;
    let mut whole: Option<Expr> = None;
    for (n, item) in text.split(':').enumerate() {
        if n > MAX_OPERATORS {
            return ResReqError::at(offset, "too many terms");
        }
        let term = old_term(item, offset, syntax)?;
        offset += item.len() + 1;
        whole = Some(match whole {
            Some(before) => Expr::Bin(BinOp::And, Box::new(before), Box::new(term)),
            None => term,
        });
    }
    whole.map_or_else(|| ResReqError::at(base, "empty select"), Ok)
}

fn old_term(item: &str, offset: usize, syntax: &Syntax<'_>) -> Parsed<Expr> {
    let Some((name, value)) = item.split_once('=') else {
        let word = item.trim();
        let (negated, name) = match word.strip_prefix(['-', '!']) {
            Some(name) => (true, name.trim_start()),
            None => (false, word),
        };
        return match syntax.lookup(name) {
            Some((name, kind @ ResKind::Boolean)) => {
                let expr = Expr::Res(syntax.numbered(name), kind);
                Ok(if negated { Expr::Not(Box::new(expr)) } else { expr })
            }
            Some(_) => ResReqError::at(offset, format!("{name}: a value is missing")),
            None => ResReqError::at(offset, format!("{name}: unknown resource")),
        };
    };
    let word = name.trim();
    let Some((name, kind)) = syntax.lookup(word) else {
        return ResReqError::at(offset, format!("{word}: unknown resource"));
    };
    let sign = match kind {
        ResKind::Numeric { increasing: true } => "<=",
        ResKind::Numeric { increasing: false } => ">=",
        ResKind::String => "==",
        ResKind::Boolean => return ResReqError::at(offset, format!("{name}: takes no value")),
    };
    let value = value.strip_prefix('=').unwrap_or(value);
    match expression(&format!("{name}{sign}{value}"), 0, syntax) {
        Ok(expr) if is_plain_test(&expr) => Ok(expr),
        Ok(_) => ResReqError::at(offset, format!("{name}: a plain value is needed")),
        Err(e) => ResReqError::at(offset, e.reason),
    }
}

/// `res op literal`.
fn is_plain_test(expr: &Expr) -> bool {
    match expr {
        Expr::Bin(_, a, b) => {
            matches!(**a, Expr::Res(..))
                && matches!(**b, Expr::Num(_) | Expr::Size(_) | Expr::Text(_))
        }
        _ => false,
    }
}

struct Parser<'a, 's> {
    scan: Scan<'a>,
    syntax: &'s Syntax<'s>,
    depth: usize,
    operators: usize,
}

impl<'a> Parser<'a, '_> {
    fn fail<T>(&self, reason: impl Into<String>) -> Parsed<T> {
        ResReqError::at(self.scan.pos(), reason)
    }

    fn not_text(&self, expr: &Expr) -> Parsed<()> {
        match expr.is_text() {
            true => self.fail("a text where a number is needed"),
            false => Ok(()),
        }
    }

    /// Operators of `least` binding or tighter; all of them group to the left.
    fn binary(&mut self, least: u8) -> Parsed<Expr> {
        let mut left = self.unary()?;
        while let Some(op) = self.operator(least) {
            self.operators += 1;
            if self.operators > MAX_OPERATORS {
                return self.fail("too many operators");
            }
            let text_side = op.compares() && matches!(left, Expr::Res(_, ResKind::String));
            let right = if text_side { self.text_operand()? } else { self.binary(op.level() + 1)? };
            left = self.join(op, left, right)?;
        }
        Ok(left)
    }

    /// The next operator, if it binds at least so tightly.
    fn operator(&mut self, least: u8) -> Option<BinOp> {
        const SIGNS: [BinOp; 12] = [
            BinOp::Or,
            BinOp::And,
            BinOp::Eq,
            BinOp::Ne,
            BinOp::Le,
            BinOp::Ge,
            BinOp::Lt,
            BinOp::Gt,
            BinOp::Add,
            BinOp::Sub,
            BinOp::Mul,
            BinOp::Div,
        ];
        self.scan.blanks();
        let op = SIGNS.into_iter().find(|op| self.scan.rest().starts_with(op.sign()))?;
        (op.level() >= least).then(|| {
            self.scan.eat(op.sign());
            op
        })
    }

    fn join(&self, op: BinOp, left: Expr, right: Expr) -> Parsed<Expr> {
        if !op.compares() || left.is_text() != right.is_text() {
            self.not_text(&left)?;
            self.not_text(&right)?;
        }
        if !op.compares() {
            return Ok(Expr::Bin(op, Box::new(left), Box::new(right)));
        }
        let (l, r) = (speaks_of_sizes(&left), speaks_of_sizes(&right));
        let new_left = self.sized(left, r, &right)?;
        let new_right = self.sized(right, l, &new_left)?;
        Ok(Expr::Bin(op, Box::new(new_left), Box::new(new_right)))
    }

    /// A number compared with a size counts in the size unit; a size belongs to nothing else.
    fn sized(&self, expr: Expr, other_is_size: bool, other: &Expr) -> Parsed<Expr> {
        match expr {
            Expr::Num(n) if other_is_size => Ok(Expr::Size(n * self.syntax.size_unit_mb)),
            Expr::Size(_) if !other_is_size && matches!(other, Expr::Res(..)) => {
                self.fail("a unit where none belongs")
            }
            other => Ok(other),
        }
    }

    fn unary(&mut self) -> Parsed<Expr> {
        self.depth += 1;
        if self.depth > MAX_NESTING {
            return self.fail("nested too deeply");
        }
        self.scan.blanks();
        let negated = self.scan.peek();
        let expr = if self.scan.eat("!") || self.scan.eat("-") {
            let inner = self.unary()?;
            self.not_text(&inner)?;
            let make = if negated == Some('!') { Expr::Not } else { Expr::Neg };
            make(Box::new(inner))
        } else if self.scan.eat("(") {
            let inner = self.binary(1)?;
            if !self.scan.eat_after_blanks(")") {
                return self.fail("missing )");
            }
            inner
        } else {
            self.operand()?
        };
        self.depth -= 1;
        Ok(expr)
    }

    fn operand(&mut self) -> Parsed<Expr> {
        match self.scan.peek() {
            Some(c) if c.is_ascii_digit() || c == '.' => match quantity(&mut self.scan) {
                Some((n, None)) if self.scan.eat("%") => Ok(Expr::Num(n / 100.0)),
                Some((n, None)) => Ok(Expr::Num(n)),
                Some((n, Some(unit))) => Ok(Expr::Size(n * unit)),
                None => self.fail("not a number"),
            },
            Some('"' | '\'') => self.text_operand(),
            _ => {
                let word = self.word()?;
                if word == "defined" && self.scan.eat_after_blanks("(") {
                    self.scan.blanks();
                    let word = self.word()?;
                    let (name, kind) = self.resource(word)?;
                    return match self.scan.eat_after_blanks(")") {
                        true => Ok(Expr::Defined(name, kind)),
                        false => self.fail("missing )"),
                    };
                }
                self.resource(word).map(|(name, kind)| Expr::Res(self.syntax.numbered(name), kind))
            }
        }
    }

    fn word(&mut self) -> Parsed<&'a str> {
        match take_name(&mut self.scan) {
            "" => self.fail("missing operand"),
            word => Ok(word),
        }
    }

    fn resource(&self, word: &str) -> Parsed<(String, ResKind)> {
        match self.syntax.lookup(word) {
            Some(found) => Ok(found),
            None => self.fail(format!("{word}: unknown resource")),
        }
    }

    /// The right side of a comparison with a string resource: a quoted text or a bare word.
    fn text_operand(&mut self) -> Parsed<Expr> {
        self.scan.blanks();
        let text = match self.scan.quoted() {
            Some(Ok(text)) => text,
            Some(Err(())) => return self.fail("missing quote"),
            None => self.scan.take_while(|c| c.is_alphanumeric() || "_.-@/+".contains(c)),
        };
        match text.is_empty() || text.chars().any(char::is_control) {
            true => self.fail("missing text"),
            false => Ok(Expr::Text(text.to_string())),
        }
    }
}

fn speaks_of_sizes(expr: &Expr) -> bool {
    expr.mentions(&|name, _| is_size(name))
}

/// A resource or keyword: letters, digits and underscores, no digit first.
pub(super) fn take_name<'a>(scan: &mut Scan<'a>) -> &'a str {
    match scan.peek() {
        Some(c) if c.is_ascii_alphabetic() || c == '_' => {
            scan.take_while(|c| c.is_ascii_alphanumeric() || c == '_')
        }
        _ => "",
    }
}

/// A number that is not negative, and how many MB its unit counts if it has one.
pub(super) fn quantity(scan: &mut Scan<'_>) -> Option<(f64, Option<f64>)> {
    let is_digit = |c: char| c.is_ascii_digit();
    let mut text = scan.take_while(is_digit).to_string();
    if scan.eat(".") {
        text.push('.');
        text.push_str(scan.take_while(is_digit));
    }
    let mut exponent = scan.clone();
    if exponent.eat("e") || exponent.eat("E") {
        let sign = if exponent.eat("-") { "-" } else { "" };
        exponent.eat(if sign.is_empty() { "+" } else { "" });
        let digits = exponent.take_while(is_digit);
        if !digits.is_empty() {
            text = format!("{text}e{sign}{digits}");
            *scan = exponent;
        }
    }
    let value: f64 = text.parse().ok().filter(|v: &f64| v.is_finite())?;
    Some((value, unit(scan)))
}

/// `K` to `Z` with an optional `B`, in MB.
fn unit(scan: &mut Scan<'_>) -> Option<f64> {
    let letter = scan.peek()?.to_ascii_uppercase();
    let power = "KMGTPEZ".find(letter)?;
    let mut ahead = scan.clone();
    ahead.bump();
    if matches!(ahead.peek(), Some('B' | 'b')) {
        ahead.bump();
    }
    if ahead.peek().is_some_and(|c| c.is_ascii_alphanumeric() || c == '_') {
        return None;
    }
    *scan = ahead;
    Some(1024f64.powi(power as i32 - 1))
}
