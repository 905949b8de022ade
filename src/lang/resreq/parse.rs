//! The outer grammar: sections, compound requirements, alternatives.

use super::affinity::Affinity;
use super::expr_parse;
use super::order::HostOrder;
use super::place::{Cu, Span};
use super::requirement::{Alternative, CompoundTerm, ResReq, Select, Simple};
use super::rusage::Rusage;
use super::syntax::{Builtins, MAX_RESREQ_TEXT, Parsed, ResReqError, Syntax};
use crate::lang::scan::Scan;

/// Most parts of a compound requirement, and most alternatives.
const MAX_PARTS: usize = 64;
/// Alternatives may hold compounds, and those simple requirements; nothing goes deeper.
const MAX_BLOCK_DEPTH: usize = 2;
const SECTIONS: [&str; 7] = ["select", "order", "rusage", "span", "same", "cu", "affinity"];

/// Parses a whole string.
fn parse(text: &str, syntax: &Syntax<'_>) -> Parsed<ResReq> {
    if text.len() > MAX_RESREQ_TEXT {
        return ResReqError::at(MAX_RESREQ_TEXT, "too long");
    }
    if let Some(at) = text.find(|c: char| c.is_control() && !c.is_whitespace()) {
        return ResReqError::at(at, "control character");
    }
    if text.trim().is_empty() {
        return ResReqError::at(0, "empty");
    }
    whole(text, 0, syntax, 0)
}

fn whole(text: &str, base: usize, syntax: &Syntax<'_>, depth: usize) -> Parsed<ResReq> {
    match blocks(text, base)? {
        None => simple(text, base, syntax).map(|s| ResReq::Simple(Box::new(s))),
        Some(_) if depth >= MAX_BLOCK_DEPTH => ResReqError::at(base, "nested too deeply"),
        Some(blocks) => assemble(blocks, syntax, depth),
    }
}

/// One `n*{text}@delay` with what joined it to the one before.
struct Block<'a> {
    sign: &'static str,
    tasks: Option<u32>,
    text: &'a str,
    base: usize,
    delay: Option<u32>,
}

/// Splits `n*{..} + {..}` and `{..} || {..}@n`; None when the text has no such form.
fn blocks(text: &str, base: usize) -> Parsed<Option<Vec<Block<'_>>>> {
    let mut scan = Scan::within(text, base);
    let mut found = Vec::new();
    let mut sign = "";
    loop {
        scan.blanks();
        let start = scan.pos();
        let tasks = scan.integer();
        if tasks.is_some() && !scan.eat_after_blanks("*") || !scan.eat_after_blanks("{") {
            return match found.is_empty() {
                true => Ok(None),
                false => ResReqError::at(start, "expected {"),
            };
        }
        let tasks = match tasks.map(u32::try_from) {
            None => None,
            Some(Ok(n)) if n > 0 => Some(n),
            Some(_) => return ResReqError::at(start, "bad number of tasks"),
        };
        let base = scan.pos();
        let Some(text) = take_balanced(&mut scan, '{', '}') else {
            return ResReqError::at(base, "missing }");
        };
        if text.trim().is_empty() {
            return ResReqError::at(base, "empty part");
        }
        let delay = match scan.eat_after_blanks("@") {
            true => match scan.integer().map(u32::try_from) {
                Some(Ok(n)) => Some(n),
                _ => return ResReqError::at(scan.pos(), "bad delay"),
            },
            false => None,
        };
        if found.len() >= MAX_PARTS {
            return ResReqError::at(start, "too many parts");
        }
        found.push(Block { sign, tasks, text, base, delay });
        scan.blanks();
        sign = match (scan.at_end(), scan.eat("+"), scan.eat("||")) {
            (true, ..) => return Ok(Some(found)),
            (_, true, _) => "+",
            (_, _, true) => "||",
            _ => return ResReqError::at(scan.pos(), "expected + or ||"),
        };
    }
}

/// Takes the text up to the bracket that closes one already taken, quotes respected; None when
/// it is missing.
fn take_balanced<'a>(scan: &mut Scan<'a>, open: char, close: char) -> Option<&'a str> {
    let rest = scan.rest();
    let mut ahead = scan.clone();
    let mut depth = 1;
    loop {
        let here = rest.len() - ahead.rest().len();
        if ahead.quoted().is_some() {
            continue;
        }
        let c = ahead.bump()?;
        if c == open {
            depth += 1;
        } else if c == close {
            depth -= 1;
        }
        if depth == 0 {
            *scan = ahead;
            return rest.get(..here);
        }
    }
}

fn assemble(blocks: Vec<Block<'_>>, syntax: &Syntax<'_>, depth: usize) -> Parsed<ResReq> {
    let alternatives = blocks.iter().any(|b| b.sign == "||" || b.delay.is_some());
    let counted = blocks.iter().any(|b| b.tasks.is_some());
    let base = blocks.first().map_or(0, |b| b.base);
    if alternatives && (counted || blocks.iter().any(|b| b.sign == "+")) {
        return ResReqError::at(base, "compound parts within alternatives need their own braces");
    }
    if !alternatives && !counted && blocks.len() == 1 {
        return match blocks.first() {
            Some(b) => whole(b.text, b.base, syntax, depth + 1),
            None => ResReqError::at(base, "empty"),
        };
    }
    if alternatives {
        let alternative = |b: &Block<'_>| {
            let req = whole(b.text, b.base, syntax, depth + 1)?;
            match req {
                ResReq::Alternatives(_) => ResReqError::at(b.base, "alternatives do not nest"),
                req => Ok(Alternative { req, delay: b.delay.unwrap_or(0) }),
            }
        };
        return Ok(ResReq::Alternatives(blocks.iter().map(alternative).collect::<Parsed<_>>()?));
    }
    let last = blocks.len() - 1;
    let mut terms = Vec::new();
    for (i, b) in blocks.iter().enumerate() {
        if b.tasks.is_none() && i != last {
            return ResReqError::at(b.base, "only the last part may lack its number of tasks");
        }
        terms.push(CompoundTerm { tasks: b.tasks, req: simple(b.text, b.base, syntax)? });
    }
    Ok(ResReq::Compound(terms))
}

/// Sections, with a bare select before them.
fn simple(text: &str, base: usize, syntax: &Syntax<'_>) -> Parsed<Simple> {
    let mut req = Simple::default();
    let first = next_section(text);
    let lead = text.get(..first).unwrap_or(text);
    if !lead.trim().is_empty() {
        req.select = Some(select(lead, base, syntax)?);
    }
    let mut scan = Scan::within(text.get(first..).unwrap_or(""), base + first);
    let mut seen: Vec<&str> = Vec::new();
    loop {
        scan.blanks();
        if scan.at_end() {
            return Ok(req);
        }
        let at = scan.pos();
        let word = expr_parse::take_name(&mut scan);
        if !SECTIONS.contains(&word) || !scan.eat_after_blanks("[") {
            return ResReqError::at(at, format!("{word}: unknown section"));
        }
        if seen.contains(&word) || (word == "select" && req.select.is_some()) {
            return ResReqError::at(at, format!("{word}: section given twice"));
        }
        seen.push(word);
        let inside = scan.pos();
        let Some(body) = take_balanced(&mut scan, '[', ']') else {
            return ResReqError::at(inside, "missing ]");
        };
        section(&mut req, word, body, inside, syntax)?;
    }
}

/// The beginning of the first `word[` of a section, quotes respected; the text's length if there is
/// none.
fn next_section(text: &str) -> usize {
    let mut scan = Scan::new(text);
    loop {
        let at = scan.pos();
        let word = expr_parse::take_name(&mut scan);
        if SECTIONS.contains(&word) && scan.clone().eat_after_blanks("[") {
            return at;
        }
        if !word.is_empty() || scan.quoted().is_some() {
            continue;
        }
        // A digit begins no section, nor does what follows it without a gap.
        scan.take_while(|c| c.is_ascii_digit());
        if scan.pos() == at && scan.bump().is_none() {
            return text.len();
        }
    }
}

fn section(
    req: &mut Simple,
    word: &str,
    body: &str,
    base: usize,
    syntax: &Syntax<'_>,
) -> Parsed<()> {
    match word {
        "select" => req.select = Some(select(body, base, syntax)?),
        "order" => req.order = Some(HostOrder::parse(body, base, syntax)?),
        "rusage" => req.rusage = Some(Rusage::parse(body, base, syntax)?),
        "span" => req.span = Some(Span::parse(body, base)?),
        "same" => req.same = same(body, base, syntax)?,
        "cu" => req.cu = Some(Cu::parse(body, base)?),
        _ => req.affinity = Some(Affinity::parse(body, base)?),
    }
    Ok(())
}

fn select(text: &str, base: usize, syntax: &Syntax<'_>) -> Parsed<Select> {
    let (expr, old) = expr_parse::select(text, base, syntax)?;
    let text = if old { expr.to_string() } else { text.trim().to_string() };
    Ok(Select { text, expr })
}

fn same(text: &str, base: usize, syntax: &Syntax<'_>) -> Parsed<Vec<String>> {
    let mut names = Vec::new();
    for word in text.split(':').map(str::trim) {
        match syntax.lookup(word) {
            Some((name, _)) if !names.contains(&name) => names.push(name),
            Some(_) => {}
            None => return ResReqError::at(base, format!("{word}: unknown resource")),
        }
    }
    Ok(names)
}

impl ResReq {
    /// Parses one string.
    pub fn parse(text: &str, syntax: &Syntax<'_>) -> Result<ResReq, ResReqError> {
        parse(text, syntax)
    }
}

/// `rusage[mem=]` of a requirement, MB.
pub fn requested_mb(text: &str) -> Option<f64> {
    let req = ResReq::parse(text, &Syntax::new(&Builtins)).ok()?;
    let rusage = req.first()?.rusage.as_ref()?;
    rusage.terms().iter().find(|t| t.res == "mem").map(|t| t.amount())
}
