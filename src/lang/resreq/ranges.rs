//! RESRSV_LIMIT of lsb.queues: the amounts that jobs may reserve of resources,
//! `[mem=500,4000] [lic=2]`: `[res={min,}max]`.

use super::expr_parse::{quantity, take_name};
use super::rusage::Rusage;
use super::syntax::{Parsed, ResKind, ResReqError, Syntax, is_size};
use crate::lang::scan::Scan;

/// The amounts that may be reserved of one resource; MB for sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct RusageRange {
    /// The resource's real name.
    pub res: String,
    /// The least amount; 0 where none is given.
    pub min: f64,
    /// The most.
    pub max: f64,
}

impl RusageRange {
    /// Reads the ranges of RESRSV_LIMIT.
    pub fn parse_all(text: &str, syntax: &Syntax<'_>) -> Parsed<Vec<RusageRange>> {
        let mut scan = Scan::new(text);
        let mut all: Vec<RusageRange> = Vec::new();
        loop {
            scan.blanks();
            if scan.at_end() && !all.is_empty() {
                return Ok(all);
            }
            if !scan.eat("[") {
                return ResReqError::at(scan.pos(), "expected [res=max] or [res=min,max]");
            }
            scan.blanks();
            let at = scan.pos();
            let range = range(&mut scan, syntax)?;
            if all.iter().any(|known| known.res == range.res) {
                return ResReqError::at(at, format!("{}: limited twice", range.res));
            }
            if !scan.eat_after_blanks("]") {
                return ResReqError::at(scan.pos(), "missing ]");
            }
            all.push(range);
        }
    }

    /// Is an amount within the range?
    pub fn allows(&self, amount: f64) -> bool {
        self.min <= amount && amount <= self.max
    }

    /// The first resource of which a requirement reserves an amount that no range allows.
    pub fn refused<'a>(all: &[RusageRange], rusage: &'a Rusage) -> Option<&'a str> {
        let terms = rusage.alternatives.iter().flatten();
        let outside = |term: &&super::RusageTerm| {
            let range = all.iter().find(|range| range.res == term.res);
            range.is_some_and(|range| !range.allows(term.largest()))
        };
        terms.into_iter().find(outside).map(|term| term.res.as_str())
    }
}

fn range(scan: &mut Scan<'_>, syntax: &Syntax<'_>) -> Parsed<RusageRange> {
    let at = scan.pos();
    let word = take_name(scan);
    let (res, kind) = match syntax.lookup(word) {
        Some(found) => found,
        None => return ResReqError::at(at, format!("{word}: unknown resource")),
    };
    if !matches!(kind, ResKind::Numeric { .. }) {
        return ResReqError::at(at, format!("{word}: only numeric resources can be reserved"));
    }
    if !scan.eat_after_blanks("=") {
        return ResReqError::at(scan.pos(), "missing =");
    }
    let first = amount(scan, is_size(&res), syntax)?;
    let (min, max) = match scan.eat_after_blanks(",") {
        true => (first, amount(scan, is_size(&res), syntax)?),
        false => (0.0, first),
    };
    match min <= max {
        true => Ok(RusageRange { res, min, max }),
        false => ResReqError::at(at, format!("{word}: the least amount is above the most")),
    }
}

fn amount(scan: &mut Scan<'_>, size: bool, syntax: &Syntax<'_>) -> Parsed<f64> {
    scan.blanks();
    match quantity(scan) {
        Some((n, None)) => Ok(n * if size { syntax.size_unit_mb } else { 1.0 }),
        Some((n, Some(unit))) if size => Ok(n * unit),
        _ => ResReqError::at(scan.pos(), "missing or bad amount"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lang::resreq::Builtins;

    #[test]
    fn ranges_are_read_with_their_units() {
        let syntax = Syntax { names: &Builtins, size_unit_mb: 1024.0 };
        let all = RusageRange::parse_all("[mem=1,4] [swp=512M]  [ slots = 2 ]", &syntax).unwrap();
        let of = |res: &str, min, max| RusageRange { res: res.into(), min, max };
        let want = [of("mem", 1024.0, 4096.0), of("swp", 0.0, 512.0), of("slots", 0.0, 2.0)];
        assert_eq!(all, want);
    }

    #[test]
    fn ranges_that_cannot_be_read_are_told_with_their_place() {
        for (text, at, reason) in [
            ("", 0, "expected [res=max] or [res=min,max]"),
            ("mem=5", 0, "expected [res=max] or [res=min,max]"),
            ("[mem]", 4, "missing ="),
            ("[mem=]", 5, "missing or bad amount"),
            ("[mem=1,]", 7, "missing or bad amount"),
            ("[mem=5", 6, "missing ]"),
            ("[foo=5]", 1, "foo: unknown resource"),
            ("[type=5]", 1, "type: only numeric resources can be reserved"),
            ("[mem=5,2]", 1, "mem: the least amount is above the most"),
            ("[mem=5] [mem=6]", 9, "mem: limited twice"),
            ("[slots=5G]", 9, "missing or bad amount"),
            ("[mem=5] x", 8, "expected [res=max] or [res=min,max]"),
        ] {
            let error = RusageRange::parse_all(text, &Syntax::new(&Builtins)).unwrap_err();
            assert_eq!((error.offset, error.reason.as_str()), (at, reason), "{text}");
        }
    }
}
