//! The grammar of dependency conditions, by recursive descent with a depth limit.

use super::expr::{
    CmpOp, CountOf, DepExpr, DepIndex, DepRef, DepTarget, DependError, DependExpr, Func,
    MAX_DEPEND_DEPTH, MAX_DEPEND_TEXT, is_plain,
};
use crate::lang::jobname::MAX_INDEX;
use crate::lang::scan::Scan;
use crate::model::job_group::path_of;

type Result<T> = std::result::Result<T, DependError>;

impl DepExpr {
    /// Parses the value of `-w`.
    pub fn parse(text: &str) -> std::result::Result<DepExpr, DependError> {
        let expr = match (parse(text), in_quotes(text)) {
            // in quotes it is no name either
            (Err(why), Some(inner)) => parse(inner).map_err(|_| why)?,
            (expr, _) => expr?,
        };
        Ok(DepExpr { text: text.trim().to_string(), expr })
    }

    /// The condition in the quotes, where the whole text is one quoted text that could be a
    /// condition: `"done(12)"`.
    pub fn in_quotes(&self) -> Option<DepExpr> {
        let expr = parse(in_quotes(&self.text)?).ok()?;
        Some(DepExpr { text: self.text.clone(), expr })
    }
}

/// The text between quotes around all of it.
fn in_quotes(text: &str) -> Option<&str> {
    let text = text.trim();
    let inner =
        |quote| text.strip_prefix(quote)?.strip_suffix(quote).filter(|t| !t.contains(quote));
    inner('"').or_else(|| inner('\''))
}

/// Parses a whole expression.
fn parse(text: &str) -> Result<DependExpr<DepRef>> {
    if text.len() > MAX_DEPEND_TEXT || text.chars().any(|c| c.is_control() && !c.is_whitespace()) {
        return Err(DependError { offset: 0, reason: "too long, or control characters" });
    }
    let mut p = Parser { scan: Scan::new(text), depth: 0 };
    let expr = p.or()?;
    p.scan.blanks();
    if p.scan.at_end() { Ok(expr) } else { p.fail("unexpected text") }
}

struct Parser<'a> {
    scan: Scan<'a>,
    depth: usize,
}

impl Parser<'_> {
    fn fail<T>(&self, reason: &'static str) -> Result<T> {
        Err(DependError { offset: self.scan.pos(), reason })
    }

    fn or(&mut self) -> Result<DependExpr<DepRef>> {
        let mut parts = vec![self.and()?];
        while self.scan.eat_after_blanks("||") {
            parts.push(self.and()?);
        }
        Ok(join(parts, DependExpr::Or))
    }

    fn and(&mut self) -> Result<DependExpr<DepRef>> {
        let mut parts = vec![self.unary()?];
        while self.scan.eat_after_blanks("&&") {
            parts.push(self.unary()?);
        }
        Ok(join(parts, DependExpr::And))
    }

    fn unary(&mut self) -> Result<DependExpr<DepRef>> {
        self.depth += 1;
        if self.depth > MAX_DEPEND_DEPTH {
            return self.fail("nested too deeply");
        }
        let expr = if self.scan.eat_after_blanks("!") {
            DependExpr::Not(Box::new(self.unary()?))
        } else if self.scan.eat("(") {
            let inner = self.or()?;
            if !self.scan.eat_after_blanks(")") {
                return self.fail("missing )");
            }
            inner
        } else {
            self.cond()?
        };
        self.depth -= 1;
        Ok(expr)
    }

    fn cond(&mut self) -> Result<DependExpr<DepRef>> {
        let before = self.scan.clone();
        let word = self.scan.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
        if !word.is_empty() && self.scan.eat_after_blanks("(") {
            return match function(word) {
                Some(func) => self.call(func),
                None => {
                    self.scan = before;
                    self.fail("unknown function")
                }
            };
        }
        self.scan = before;
        Ok(DependExpr::Cond(Func::Done, self.reference()?))
    }

    fn call(&mut self, func: Func) -> Result<DependExpr<DepRef>> {
        let group = match func {
            Func::Count(..) => self.job_group()?,
            _ => None,
        };
        let target = group.map_or_else(|| self.reference(), Ok)?;
        let func = match func {
            Func::Exit(_) if self.scan.eat_after_blanks(",") => Func::Exit(Some(self.exit_test()?)),
            Func::External(_) => Func::External(self.external_text()?),
            Func::Count(of, _) => Func::Count(of, self.count_test()?),
            plain => plain,
        };
        if !self.scan.eat_after_blanks(")") {
            return self.fail("missing )");
        }
        if matches!(func, Func::Count(..)) && target.index != DepIndex::Whole {
            return self.fail("a count is over a whole array");
        }
        Ok(DependExpr::Cond(func, target))
    }

    fn exit_test(&mut self) -> Result<(CmpOp, i32)> {
        let op = self.operator();
        self.scan.blanks();
        match self.scan.integer().map(i32::try_from) {
            Some(Ok(code)) => Ok((op, code)),
            _ => self.fail("an exit code is a number"),
        }
    }

    fn count_test(&mut self) -> Result<Option<(CmpOp, u32)>> {
        if !self.scan.eat_after_blanks(",") {
            return self.fail("missing count");
        }
        if self.scan.eat_after_blanks("*") {
            return Ok(None);
        }
        let op = self.operator();
        self.scan.blanks();
        match self.scan.integer().map(u32::try_from) {
            Some(Ok(n)) => Ok(Some((op, n))),
            _ => self.fail("a count is a number or *"),
        }
    }

    /// An optional comparison; a bare number means equality.
    fn operator(&mut self) -> CmpOp {
        const SIGNS: [(&str, CmpOp); 7] = [
            ("<=", CmpOp::Le),
            (">=", CmpOp::Ge),
            ("==", CmpOp::Eq),
            ("!=", CmpOp::Ne),
            ("<", CmpOp::Lt),
            (">", CmpOp::Gt),
            ("=", CmpOp::Eq),
        ];
        self.scan.blanks();
        SIGNS.iter().find(|(sign, _)| self.scan.eat(sign)).map_or(CmpOp::Eq, |&(_, op)| op)
    }

    fn external_text(&mut self) -> Result<String> {
        if !self.scan.eat_after_blanks(",") {
            return self.fail("missing status text");
        }
        self.scan.blanks();
        let text = match self.scan.quoted() {
            Some(Ok(text)) => text,
            Some(Err(())) => return self.fail("missing quote"),
            None => self.scan.take_while(|c| c != ')' && c != ',').trim(),
        };
        if text.is_empty() || text.contains('"') {
            return self.fail("a status text is not empty and holds no double quote");
        }
        Ok(text.to_string())
    }

    /// A path from the root, with or without quotes; `None`: another reference stands here.
    fn job_group(&mut self) -> Result<Option<DepRef>> {
        self.scan.blanks();
        let before = self.scan.clone();
        let text = match self.scan.quoted() {
            Some(quoted) => quoted.unwrap_or_default(),
            None => self.scan.take_while(is_plain),
        };
        if !text.starts_with('/') {
            self.scan = before;
            return Ok(None);
        }
        match path_of(text) {
            Some(path) if !(path.contains('"') && path.contains('\'')) => {
                let target = DepTarget::JobGroup(path.to_string());
                Ok(Some(DepRef { target, index: DepIndex::Whole }))
            }
            _ => self.fail("bad path of a job group"),
        }
    }

    fn reference(&mut self) -> Result<DepRef> {
        self.scan.blanks();
        match self.scan.quoted() {
            Some(Ok(text)) => self.quoted_name(text),
            Some(Err(())) => self.fail("missing quote"),
            None => self.plain_reference(),
        }
    }

    /// A quoted text: a name even when it looks like an ID.
    fn quoted_name(&mut self, text: &str) -> Result<DepRef> {
        let (name, inner) = match text.strip_suffix(']').and_then(|t| t.rsplit_once('[')) {
            Some((name, index)) => (name, Some(index)),
            None => (text, None),
        };
        let index = match inner {
            Some(text) => match read_index(text) {
                Some(index) => index,
                None => return self.fail("bad array index"),
            },
            None => self.index()?,
        };
        self.name(name, index)
    }

    fn plain_reference(&mut self) -> Result<DepRef> {
        let word = self.scan.take_while(is_plain);
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            let id = word.parse::<u64>().ok().filter(|&n| n > 0 && n <= u64::from(MAX_INDEX));
            return match id {
                Some(id) => Ok(DepRef { target: DepTarget::Id(id), index: self.index()? }),
                None => self.fail("a name that begins with a digit must be quoted"),
            };
        }
        let index = self.index()?;
        self.name(word, index)
    }

    fn name(&self, name: &str, index: DepIndex) -> Result<DepRef> {
        let (name, prefix) = match name.strip_suffix('*') {
            Some(name) => (name, true),
            None => (name, false),
        };
        if (name.is_empty() && !prefix) || name.contains(['*', '[', ']']) {
            return self.fail("missing or bad job name");
        }
        if name.contains('"') && name.contains('\'') {
            return self.fail("a name with both kinds of quotes cannot be written");
        }
        let target = DepTarget::Name { name: name.to_string(), prefix };
        Ok(DepRef { target, index })
    }

    fn index(&mut self) -> Result<DepIndex> {
        if !self.scan.eat_after_blanks("[") {
            return Ok(DepIndex::Whole);
        }
        let text = self.scan.take_while(|c| c != ']');
        match read_index(text) {
            Some(index) if self.scan.eat("]") => Ok(index),
            _ => self.fail("bad array index"),
        }
    }
}

fn join(
    mut parts: Vec<DependExpr<DepRef>>,
    many: fn(Vec<DependExpr<DepRef>>) -> DependExpr<DepRef>,
) -> DependExpr<DepRef> {
    match parts.len() {
        1 => parts.remove(0),
        _ => many(parts),
    }
}

fn read_index(text: &str) -> Option<DepIndex> {
    match text.trim() {
        "*" => Some(DepIndex::Same),
        digits if digits.bytes().all(|b| b.is_ascii_digit()) => {
            digits.parse().ok().filter(|i| (1..=MAX_INDEX).contains(i)).map(DepIndex::Element)
        }
        _ => None,
    }
}

fn function(word: &str) -> Option<Func> {
    let func = match word.to_ascii_lowercase().as_str() {
        "done" => Func::Done,
        "ended" => Func::Ended,
        "exit" => Func::Exit(None),
        "started" => Func::Started,
        "post_done" => Func::PostDone,
        "post_err" => Func::PostErr,
        "external" => Func::External(String::new()),
        word => {
            let (_, of) = CountOf::ALL.iter().find(|(name, _)| *name == word)?;
            Func::Count(*of, None)
        }
    };
    Some(func)
}
