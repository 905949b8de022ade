//! The span and cu sections: how tasks are spread over hosts and compute units.

use super::expr_parse::take_name;
use super::syntax::{Parsed, ResReqError};
use crate::lang::scan::Scan;
use std::fmt;

/// Most exceptions in one ptile list.
const MAX_TILE_RULES: usize = 200;

/// span[hosts=..]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanHosts {
    /// `hosts=1`: all tasks on one host.
    One,
    /// `hosts=-1`: no constraint, the queue's put aside.
    Any,
}

/// A number of tasks a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tile {
    /// Exactly this number of tasks (the last host may get fewer).
    Tasks(u32),
    /// `'!'`: the host's own slots.
    Slots,
}

/// The span section. At most one of hosts, ptile, block and stripe is given.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Span {
    /// hosts=
    pub hosts: Option<SpanHosts>,
    /// ptile=
    pub ptile: Option<Tile>,
    /// ptile's exceptions by host type, model or name: `'!',HP:8`.
    pub ptile_by: Vec<(String, u32)>,
    /// block=: tasks are given out in blocks of so many.
    pub block: Option<u32>,
    /// stripe=: tasks are dealt round the hosts, at most so many each (None within: no limit).
    pub stripe: Option<Option<u32>>,
    /// gtile=: GPU tasks a socket.
    pub gtile: Option<Tile>,
}

impl Span {
    /// Whether all tasks must be on one host.
    pub fn one_host(&self) -> bool {
        self.hosts == Some(SpanHosts::One)
    }

    pub(super) fn parse(text: &str, base: usize) -> Parsed<Span> {
        let mut p = Parser { scan: Scan::within(text, base) };
        let mut span = Span::default();
        loop {
            p.span_item(&mut span)?;
            if p.separator() {
                break;
            }
        }
        let Span { hosts, ptile, block, stripe, .. } = &span;
        let kinds = [hosts.is_some(), ptile.is_some(), block.is_some(), stripe.is_some()];
        match kinds.iter().filter(|given| **given).count() {
            0 if span.gtile.is_none() => p.fail("empty span"),
            0 | 1 => Ok(span),
            _ => p.fail("hosts, ptile, block and stripe exclude each other"),
        }
    }
}

/// How compute units are chosen.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Cu {
    /// type=: the kind of unit.
    pub kind: Option<String>,
    /// pref=: config, maxavail, minavail or bestfit.
    pub pref: Option<String>,
    /// maxcus=: the most units one job may use.
    pub maxcus: Option<u32>,
    /// usablepercu=: the least slots that make a unit usable.
    pub usablepercu: Option<u32>,
    /// balance: tasks evenly over the fewest units.
    pub balance: bool,
    /// excl: no other job in the units used.
    pub excl: bool,
}

impl Cu {
    pub(super) fn parse(text: &str, base: usize) -> Parsed<Cu> {
        const PREFS: [&str; 5] = ["config", "maxavail", "minavail", "bestfit", "linear"];
        let mut p = Parser { scan: Scan::within(text, base) };
        let mut cu = Cu::default();
        loop {
            p.scan.blanks();
            match take_name(&mut p.scan) {
                "balance" => cu.balance = true,
                "excl" => cu.excl = true,
                "type" => {
                    p.equals()?;
                    let name =
                        p.scan.take_while(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
                    if name.is_empty() {
                        return p.fail("missing type");
                    }
                    cu.kind = Some(name.to_string());
                }
                "pref" => {
                    p.equals()?;
                    match take_name(&mut p.scan) {
                        pref if PREFS.contains(&pref) => cu.pref = Some(pref.to_string()),
                        _ => return p.fail("unknown preference"),
                    }
                }
                "maxcus" => cu.maxcus = Some(p.count()?),
                "usablepercu" => cu.usablepercu = Some(p.count()?),
                _ => return p.fail("unknown keyword in cu"),
            }
            if p.separator() {
                break;
            }
        }
        if cu.balance && cu.usablepercu.is_some() {
            return p.fail("balance and usablepercu exclude each other");
        }
        Ok(cu)
    }
}

struct Parser<'a> {
    scan: Scan<'a>,
}

impl Parser<'_> {
    fn fail<T>(&self, reason: &str) -> Parsed<T> {
        ResReqError::at(self.scan.pos(), reason)
    }

    /// Moves over what parts two items; true at the end.
    fn separator(&mut self) -> bool {
        self.scan.blanks();
        if !self.scan.eat(":") {
            self.scan.eat(",");
        }
        self.scan.blanks();
        self.scan.at_end()
    }

    fn equals(&mut self) -> Parsed<()> {
        let found = self.scan.eat_after_blanks("=");
        self.scan.blanks();
        if found { Ok(()) } else { self.fail("missing =") }
    }

    fn number(&mut self) -> Parsed<u32> {
        match self.scan.integer().map(u32::try_from) {
            Some(Ok(n)) if n > 0 => Ok(n),
            _ => self.fail("a positive number is needed"),
        }
    }

    fn count(&mut self) -> Parsed<u32> {
        self.equals()?;
        self.number()
    }

    fn span_item(&mut self, span: &mut Span) -> Parsed<()> {
        self.scan.blanks();
        match take_name(&mut self.scan) {
            "hosts" => {
                self.equals()?;
                let minus = self.scan.eat("-");
                span.hosts = Some(match (self.number()?, minus) {
                    (1, false) => SpanHosts::One,
                    (1, true) => SpanHosts::Any,
                    _ => return self.fail("hosts is 1 or -1"),
                });
            }
            "ptile" => {
                self.equals()?;
                self.ptile(span)?;
            }
            "gtile" => {
                self.equals()?;
                span.gtile = Some(self.tile()?);
            }
            "block" => span.block = Some(self.count()?),
            "stripe" => {
                let limited = self.scan.clone().eat_after_blanks("=");
                span.stripe = Some(if limited { Some(self.count()?) } else { None });
            }
            _ => return self.fail("unknown keyword in span"),
        }
        Ok(())
    }

    fn tile(&mut self) -> Parsed<Tile> {
        if self.scan.eat("'!'") || self.scan.eat("\"!\"") || self.scan.eat("!") {
            return Ok(Tile::Slots);
        }
        self.number().map(Tile::Tasks)
    }

    /// `n`, `'!'`, `'!,m1:4,m2:8'` or `'!',m1:4,m2:8`.
    fn ptile(&mut self, span: &mut Span) -> Parsed<()> {
        let before = self.scan.clone();
        if let Some(Ok(inner)) = self.scan.quoted() {
            let mut inside = Parser { scan: Scan::within(inner, before.pos() + 1) };
            span.ptile = Some(inside.tile()?);
            inside.tile_rules(span)?;
            if !inside.scan.at_end() {
                return inside.fail("unexpected text in ptile");
            }
        } else {
            self.scan = before;
            span.ptile = Some(self.tile()?);
        }
        self.tile_rules(span)
    }

    fn tile_rules(&mut self, span: &mut Span) -> Parsed<()> {
        loop {
            let before = self.scan.clone();
            if !self.scan.eat_after_blanks(",") {
                return Ok(());
            }
            self.scan.blanks();
            let name = self.scan.take_while(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
            let name = name.to_string();
            if name.is_empty() || !self.scan.eat_after_blanks(":") {
                self.scan = before;
                return Ok(());
            }
            self.scan.blanks();
            let tasks = self.number()?;
            if span.ptile_by.len() >= MAX_TILE_RULES {
                return self.fail("too many exceptions");
            }
            span.ptile_by.push((name, tasks));
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<String> = Vec::new();
        match self.hosts {
            Some(SpanHosts::One) => parts.push("hosts=1".into()),
            Some(SpanHosts::Any) => parts.push("hosts=-1".into()),
            None => {}
        }
        if let Some(tile) = self.ptile {
            let rules: String = self.ptile_by.iter().map(|(n, t)| format!(",{n}:{t}")).collect();
            parts.push(match (tile, rules.is_empty()) {
                (Tile::Tasks(n), true) => format!("ptile={n}"),
                (Tile::Tasks(n), false) => format!("ptile='{n}{rules}'"),
                (Tile::Slots, _) => format!("ptile='!{rules}'"),
            });
        }
        if let Some(n) = self.block {
            parts.push(format!("block={n}"));
        }
        match self.stripe {
            Some(Some(n)) => parts.push(format!("stripe={n}")),
            Some(None) => parts.push("stripe".into()),
            None => {}
        }
        match self.gtile {
            Some(Tile::Tasks(n)) => parts.push(format!("gtile={n}")),
            Some(Tile::Slots) => parts.push("gtile='!'".into()),
            None => {}
        }
        f.write_str(&parts.join(":"))
    }
}

impl fmt::Display for Cu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<String> = Vec::new();
        parts.extend(self.kind.iter().map(|k| format!("type={k}")));
        parts.extend(self.pref.iter().map(|p| format!("pref={p}")));
        parts.extend(self.maxcus.map(|n| format!("maxcus={n}")));
        parts.extend(self.usablepercu.map(|n| format!("usablepercu={n}")));
        parts.extend(self.balance.then(|| "balance".to_string()));
        parts.extend(self.excl.then(|| "excl".to_string()));
        f.write_str(&parts.join(":"))
    }
}
