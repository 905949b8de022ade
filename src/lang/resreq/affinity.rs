//! The affinity section: processor and memory binding.
//!
//! `unit[*n] | unit(n[,same=level][,exclusive=(level[,scope[|scope...]])])[*m]
//! [:cpubind=level][:membind=localonly|localprefer][:distribute=any|balance|pack|pack(unit[=n])]`
//! with the scopes intask, injob and alljobs. See bsub(1).

use super::expr_parse::take_name;
use super::syntax::{Parsed, ResReqError};
use crate::lang::scan::Scan;
pub use crate::model::topology::Unit;
use std::fmt;

/// From whom an exclusive unit is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scopes {
    /// Other allocations of the same task.
    pub in_task: bool,
    /// Other tasks of the same job.
    pub in_job: bool,
    /// Other jobs.
    pub all_jobs: bool,
}

/// exclusive=(level[,scope])
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exclusive {
    /// The unit kept to oneself.
    pub level: Unit,
    /// The scopes as given; `None`: intask and injob.
    pub scopes: Option<Scopes>,
}

impl Exclusive {
    /// The scopes that act.
    pub fn acting(&self) -> Scopes {
        self.scopes.unwrap_or(Scopes { in_task: true, in_job: true, all_jobs: false })
    }
}

/// distribute=
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribute {
    /// any
    Any,
    /// balance
    Balance,
    /// pack, pack(unit) or pack(unit=n)
    Pack(Option<(Unit, Option<u32>)>),
}

/// The affinity section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Affinity {
    /// The unit bound to.
    pub unit: Unit,
    /// How many units a task.
    pub count: u32,
    /// same=: all units of a task under one of these.
    pub same: Option<Unit>,
    /// exclusive=
    pub exclusive: Option<Exclusive>,
    /// `*m`: how many such groups.
    pub times: Option<u32>,
    /// cpubind=
    pub cpubind: Option<Unit>,
    /// membind=: localonly or localprefer.
    pub membind: Option<&'static str>,
    /// distribute=
    pub distribute: Option<Distribute>,
}

impl Affinity {
    pub(super) fn parse(text: &str, base: usize) -> Parsed<Affinity> {
        let mut p = Parser { scan: Scan::within(text, base) };
        let unit = p.unit()?;
        let mut a = Affinity {
            unit,
            count: 1,
            same: None,
            exclusive: None,
            times: None,
            cpubind: None,
            membind: None,
            distribute: None,
        };
        if p.scan.eat_after_blanks("(") {
            p.inside(&mut a)?;
        }
        if p.scan.eat_after_blanks("*") {
            a.times = Some(p.number()?);
        }
        while p.scan.eat_after_blanks(":") {
            p.option(&mut a)?;
        }
        p.scan.blanks();
        if p.scan.at_end() { Ok(a) } else { p.fail("unexpected text") }
    }
}

struct Parser<'a> {
    scan: Scan<'a>,
}

impl Parser<'_> {
    fn fail<T>(&self, reason: &str) -> Parsed<T> {
        ResReqError::at(self.scan.pos(), reason)
    }

    fn need(&mut self, sign: &str) -> Parsed<()> {
        match self.scan.eat_after_blanks(sign) {
            true => Ok(()),
            false => self.fail("unexpected text in affinity"),
        }
    }

    fn number(&mut self) -> Parsed<u32> {
        self.scan.blanks();
        match self.scan.integer().map(u32::try_from) {
            Some(Ok(n)) if n > 0 => Ok(n),
            _ => self.fail("a positive number is needed"),
        }
    }

    fn unit(&mut self) -> Parsed<Unit> {
        self.scan.blanks();
        let at = self.scan.pos();
        let word = take_name(&mut self.scan);
        match Unit::of_name(word) {
            Some(unit) => Ok(unit),
            None => ResReqError::at(at, "expected numa, socket, core or thread"),
        }
    }

    /// A unit that contains others of the kind asked for: larger, or where `equal` as large.
    fn level(&mut self, of: Unit, equal: bool, option: &str) -> Parsed<Unit> {
        self.scan.blanks();
        let at = self.scan.pos();
        let level = self.unit()?;
        if level < of || (equal && level == of) {
            return Ok(level);
        }
        let least = if equal { "no smaller than" } else { "larger than" };
        let text = format!("the level of {option} must be {least} {}", of.name());
        ResReqError::at(at, text)
    }

    fn scopes(&mut self) -> Parsed<Scopes> {
        let mut scopes = Scopes::default();
        loop {
            match self.one_of(&["injob", "intask", "alljobs"])? {
                "injob" => scopes.in_job = true,
                "intask" => scopes.in_task = true,
                _ => scopes.all_jobs = true,
            }
            if !self.scan.eat_after_blanks("|") {
                return Ok(scopes);
            }
        }
    }

    fn one_of(&mut self, words: &[&'static str]) -> Parsed<&'static str> {
        self.scan.blanks();
        let at = self.scan.pos();
        let word = take_name(&mut self.scan);
        match words.iter().find(|w| **w == word) {
            Some(word) => Ok(word),
            None => ResReqError::at(at, format!("expected {} in affinity", words.join(" or "))),
        }
    }

    fn inside(&mut self, a: &mut Affinity) -> Parsed<()> {
        a.count = self.number()?;
        while self.scan.eat_after_blanks(",") {
            let word = self.one_of(&["same", "exclusive"])?;
            self.need("=")?;
            if word == "same" {
                a.same = Some(self.level(a.unit, false, "same")?);
                continue;
            }
            let open = self.scan.eat_after_blanks("(");
            let level = self.level(a.unit, true, "exclusive")?;
            let scopes = match open && self.scan.eat_after_blanks(",") {
                true => Some(self.scopes()?),
                false => None,
            };
            if open {
                self.need(")")?;
            }
            a.exclusive = Some(Exclusive { level, scopes });
        }
        self.need(")")
    }

    fn option(&mut self, a: &mut Affinity) -> Parsed<()> {
        let word = self.one_of(&["cpubind", "membind", "distribute"])?;
        self.need("=")?;
        match word {
            "cpubind" => a.cpubind = Some(self.unit()?),
            "membind" => a.membind = Some(self.one_of(&["localonly", "localprefer"])?),
            _ => {
                let how = self.one_of(&["any", "balance", "pack"])?;
                a.distribute = Some(match how {
                    "any" => Distribute::Any,
                    "balance" => Distribute::Balance,
                    _ => Distribute::Pack(self.pack()?),
                });
            }
        }
        Ok(())
    }

    fn pack(&mut self) -> Parsed<Option<(Unit, Option<u32>)>> {
        if !self.scan.eat_after_blanks("(") {
            return Ok(None);
        }
        let unit = self.unit()?;
        let n = if self.scan.eat_after_blanks("=") { Some(self.number()?) } else { None };
        self.need(")")?;
        Ok(Some((unit, n)))
    }
}

impl fmt::Display for Affinity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({}", self.unit.name(), self.count)?;
        if let Some(level) = self.same {
            write!(f, ",same={}", level.name())?;
        }
        if let Some(Exclusive { level, scopes }) = self.exclusive {
            write!(f, ",exclusive=({}", level.name())?;
            let mut sign = ',';
            let scopes = scopes.unwrap_or_default();
            let all = [scopes.in_task, scopes.in_job, scopes.all_jobs];
            for (_, word) in all.into_iter().zip(["intask", "injob", "alljobs"]).filter(|s| s.0) {
                write!(f, "{sign}{word}")?;
                sign = '|';
            }
            f.write_str(")")?;
        }
        f.write_str(")")?;
        if let Some(n) = self.times {
            write!(f, "*{n}")?;
        }
        if let Some(level) = self.cpubind {
            write!(f, ":cpubind={}", level.name())?;
        }
        if let Some(word) = self.membind {
            write!(f, ":membind={word}")?;
        }
        match self.distribute {
            None => Ok(()),
            Some(Distribute::Any) => f.write_str(":distribute=any"),
            Some(Distribute::Balance) => f.write_str(":distribute=balance"),
            Some(Distribute::Pack(None)) => f.write_str(":distribute=pack"),
            Some(Distribute::Pack(Some((unit, None)))) => {
                write!(f, ":distribute=pack({})", unit.name())
            }
            Some(Distribute::Pack(Some((unit, Some(n))))) => {
                write!(f, ":distribute=pack({}={n})", unit.name())
            }
        }
    }
}
