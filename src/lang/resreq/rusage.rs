//! The rusage section: what a job reserves, as data.
//!
//! Grammar: `term[,term]... [|| alternative]...`, a term being
//! `res=value[unit][/host|/task|/job][:res=value]...[:duration=n[h|m|s]][:decay=0|1]`; value,
//! duration and decay may be lists in parentheses for a reservation in phases. A duration or
//! decay acts on the resources since the comma or since the previous duration.

use super::expr_parse::{quantity, take_name};
use super::syntax::{MAX_RUSAGE_ALTERNATIVES, Parsed, ResKind, ResReqError, Syntax, is_size};
use crate::lang::scan::Scan;
use std::fmt;

/// Most phases of one term.
const MAX_PHASES: usize = 100;

/// The unit to which an amount applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Per {
    /// No unit was given: per host, or per task with RESOURCE_RESERVE_PER_TASK=Y.
    Unsaid,
    /// `/host`
    Host,
    /// `/task`
    Task,
    /// `/job`
    Job,
}

/// One phase of a reservation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RusagePhase {
    /// How much; MB for sizes.
    pub amount: f64,
    /// The duration in seconds; `None`: until the job ends.
    pub duration: Option<u64>,
    /// Whether the amount shrinks linearly to nothing over the duration.
    pub decay: bool,
}

/// The reservation of one resource.
#[derive(Clone, Debug, PartialEq)]
pub struct RusageTerm {
    /// The resource's real name.
    pub res: String,
    /// The resource's number, where the table of names has numbers.
    pub number: Option<u32>,
    /// The unit to which the amount applies.
    pub per: Per,
    /// One phase or more; only the last may lack a duration.
    pub phases: Vec<RusagePhase>,
    /// Printed behind each amount: `M` for a size where a bare number counts in another unit, so
    /// that the printed text means the same when it is read again.
    pub suffix: &'static str,
}

impl RusageTerm {
    /// The amount asked for at the start, which a host must have free.
    pub fn amount(&self) -> f64 {
        self.phases.first().map_or(0.0, |p| p.amount)
    }

    /// This amount, for the duration and with the decay of another term where it has neither.
    fn lasting_as(&self, other: &RusageTerm) -> RusageTerm {
        let mut term = self.clone();
        if let ([own], [lasting]) = (&mut term.phases[..], &other.phases[..])
            && own.duration.is_none()
            && !own.decay
        {
            (own.duration, own.decay) = (lasting.duration, lasting.decay);
        }
        term
    }

    /// The largest amount of all phases.
    pub fn largest(&self) -> f64 {
        self.phases.iter().map(|phase| phase.amount).fold(0.0, f64::max)
    }

    /// The amount still reserved `elapsed` seconds after the start.
    pub fn amount_at(&self, elapsed: u64) -> f64 {
        let mut left = elapsed;
        for phase in &self.phases {
            match phase.duration {
                Some(d) if left >= d => left -= d,
                Some(d) if phase.decay => return phase.amount * (1.0 - left as f64 / d as f64),
                _ => return phase.amount,
            }
        }
        0.0
    }
}

/// Alternatives, of which the first that fits is used.
#[derive(Clone, Debug, PartialEq)]
pub struct Rusage {
    /// Never empty; each is a list of terms with distinct resources.
    pub alternatives: Vec<Vec<RusageTerm>>,
}

impl Rusage {
    /// The terms of the first alternative.
    pub fn terms(&self) -> &[RusageTerm] {
        self.alternatives.first().map_or(&[], Vec::as_slice)
    }

    /// Joins two requirements; for a resource that both name, `self` wins, and takes over the
    /// duration and decay that only `under` gives. Alternatives are combined each with each.
    pub fn merged_over(&self, under: &Rusage) -> Rusage {
        let mut alternatives = Vec::new();
        for mine in &self.alternatives {
            for theirs in &under.alternatives {
                let same = |t: &RusageTerm| theirs.iter().find(|u| u.res == t.res);
                let own = |t: &RusageTerm| same(t).map_or_else(|| t.clone(), |u| t.lasting_as(u));
                let more = theirs.iter().filter(|t| mine.iter().all(|m| m.res != t.res));
                alternatives.push(mine.iter().map(own).chain(more.cloned()).collect());
            }
        }
        alternatives.truncate(MAX_RUSAGE_ALTERNATIVES);
        Rusage { alternatives }
    }

    /// Joins a later requirement of the same job, which wins for a resource that both name.
    pub(super) fn then(&self, later: &Rusage) -> Rusage {
        let mut alternatives = Vec::new();
        for a in &self.alternatives {
            for b in &later.alternatives {
                let same = |t: &RusageTerm| b.iter().find(|u| u.res == t.res);
                let kept = a.iter().map(|t| same(t).unwrap_or(t));
                let new = b.iter().filter(|u| a.iter().all(|t| t.res != u.res));
                alternatives.push(kept.chain(new).cloned().collect());
            }
        }
        alternatives.truncate(MAX_RUSAGE_ALTERNATIVES);
        Rusage { alternatives }
    }

    /// Parses what stands between the brackets, beginning at `base` of the string.
    pub(super) fn parse(text: &str, base: usize, syntax: &Syntax<'_>) -> Parsed<Rusage> {
        let mut p = Parser { scan: Scan::within(text, base), syntax };
        let mut alternatives = Vec::new();
        loop {
            let open = p.scan.eat_after_blanks("(");
            alternatives.push(p.alternative()?);
            if open && !p.scan.eat_after_blanks(")") {
                return p.fail("missing )");
            }
            p.scan.blanks();
            if p.scan.at_end() {
                return Ok(Rusage { alternatives });
            }
            if !p.scan.eat("||") || alternatives.len() >= MAX_RUSAGE_ALTERNATIVES {
                return p.fail("unexpected text");
            }
        }
    }
}

/// A term while its parts are being collected.
struct Draft {
    res: String,
    per: Per,
    amounts: Vec<f64>,
    durations: Vec<u64>,
    decays: Vec<bool>,
}

struct Parser<'a, 's> {
    scan: Scan<'a>,
    syntax: &'s Syntax<'s>,
}

impl Parser<'_, '_> {
    fn fail<T>(&self, reason: impl Into<String>) -> Parsed<T> {
        ResReqError::at(self.scan.pos(), reason)
    }

    fn alternative(&mut self) -> Parsed<Vec<RusageTerm>> {
        let mut terms: Vec<RusageTerm> = Vec::new();
        loop {
            for draft in self.group()? {
                if terms.iter().any(|t| t.res == draft.res) {
                    return self.fail(format!("{}: reserved twice", draft.res));
                }
                terms.push(self.finish(draft)?);
            }
            if !self.scan.eat_after_blanks(",") {
                return Ok(terms);
            }
        }
    }

    /// The text between two commas.
    fn group(&mut self) -> Parsed<Vec<Draft>> {
        let mut drafts: Vec<Draft> = Vec::new();
        // `open`: the first term that the next duration or decay acts on; `closed`: one came.
        let (mut open, mut closed) = (0, false);
        loop {
            self.scan.blanks();
            let word = take_name(&mut self.scan).to_string();
            if word.is_empty() || !self.scan.eat_after_blanks("=") {
                return self.fail("missing res=value");
            }
            if word == "duration" || word == "decay" {
                if drafts.is_empty() {
                    return self.fail("nothing that this could act on");
                }
                closed = true;
                self.modify(&word, drafts.get_mut(open..).unwrap_or_default())?;
            } else {
                if std::mem::take(&mut closed) {
                    open = drafts.len();
                }
                let draft = self.term(&word)?;
                if drafts.iter().any(|d| d.res == draft.res) {
                    return self.fail(format!("{}: reserved twice", draft.res));
                }
                drafts.push(draft);
            }
            if !self.scan.eat_after_blanks(":") {
                return Ok(drafts);
            }
        }
    }

    fn modify(&mut self, word: &str, drafts: &mut [Draft]) -> Parsed<()> {
        if word == "decay" {
            let decays = self.list(Self::flag)?;
            drafts.iter_mut().for_each(|d| d.decays.clone_from(&decays));
        } else {
            let durations = self.list(Self::duration)?;
            drafts.iter_mut().for_each(|d| d.durations.clone_from(&durations));
        }
        Ok(())
    }

    fn term(&mut self, word: &str) -> Parsed<Draft> {
        let (res, kind) = match self.syntax.lookup(word) {
            Some(found) => found,
            None => return self.fail(format!("{word}: unknown resource")),
        };
        if !matches!(kind, ResKind::Numeric { .. }) {
            return self.fail(format!("{word}: only numeric resources can be reserved"));
        }
        let size = is_size(&res);
        let scale = if size { self.syntax.size_unit_mb } else { 1.0 };
        let amounts = self.list(|p| match quantity(&mut p.scan) {
            Some((n, None)) => Ok(n * scale),
            Some((n, Some(unit))) if size => Ok(n * unit),
            _ => p.fail("missing or bad amount"),
        })?;
        let per = self.per()?;
        Ok(Draft { res, per, amounts, durations: Vec::new(), decays: Vec::new() })
    }

    fn per(&mut self) -> Parsed<Per> {
        if !self.scan.eat_after_blanks("/") {
            return Ok(Per::Unsaid);
        }
        self.scan.blanks();
        match take_name(&mut self.scan) {
            "host" => Ok(Per::Host),
            "task" => Ok(Per::Task),
            "job" => Ok(Per::Job),
            _ => self.fail("expected host, task or job"),
        }
    }

    /// One value, or several in parentheses.
    fn list<T>(&mut self, one: impl Fn(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        self.scan.blanks();
        if !self.scan.eat("(") {
            return Ok(vec![one(self)?]);
        }
        let mut values = Vec::new();
        while !self.scan.eat_after_blanks(")") {
            if values.len() >= MAX_PHASES {
                return self.fail("too many phases");
            }
            values.push(one(self)?);
        }
        match values.is_empty() {
            true => self.fail("empty list"),
            false => Ok(values),
        }
    }

    fn flag(&mut self) -> Parsed<bool> {
        match self.scan.integer() {
            Some(0) => Ok(false),
            Some(1) => Ok(true),
            _ => self.fail("decay is 0 or 1"),
        }
    }

    /// Seconds; a bare number counts minutes.
    fn duration(&mut self) -> Parsed<u64> {
        let Some(n) = self.scan.integer() else { return self.fail("missing duration") };
        let unit = match self.scan.peek() {
            Some('h' | 'H') => 3600,
            Some('s' | 'S') => 1,
            _ => 60,
        };
        if matches!(self.scan.peek(), Some('h' | 'H' | 'm' | 'M' | 's' | 'S')) {
            self.scan.bump();
        }
        match n.checked_mul(unit) {
            Some(seconds) if seconds > 0 => Ok(seconds),
            _ => self.fail("bad duration"),
        }
    }

    /// Lays amounts, durations and decays beside each other.
    fn finish(&self, d: Draft) -> Parsed<RusageTerm> {
        let n = d.amounts.len();
        let enough = d.durations.len() == n || d.durations.len() + 1 == n;
        let decays = d.decays.len() == 1 || d.decays.len() == n || d.decays.is_empty();
        if !enough || !decays {
            return self.fail("amounts, durations and decays do not match");
        }
        let phase = |(i, amount)| RusagePhase {
            amount,
            duration: d.durations.get(i).copied(),
            decay: *d.decays.get(i).or(d.decays.first()).unwrap_or(&false),
        };
        let phases = d.amounts.into_iter().enumerate().map(phase).collect();
        let other_unit = is_size(&d.res) && self.syntax.size_unit_mb != 1.0;
        let suffix = if other_unit { "M" } else { "" };
        let number = self.syntax.names.number(&d.res);
        Ok(RusageTerm { res: d.res, number, per: d.per, phases, suffix })
    }
}

/// Minutes, or seconds where minutes would not be exact.
fn show_duration(seconds: u64) -> String {
    match seconds % 60 {
        0 => (seconds / 60).to_string(),
        _ => format!("{seconds}s"),
    }
}

impl fmt::Display for RusageTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |values: Vec<String>| match values.len() {
            1 => values.concat(),
            _ => format!("({})", values.join(" ")),
        };
        let shown = |p: &RusagePhase| match (p.amount * 100.0).fract() == 0.0 {
            true => format!("{:.2}{}", p.amount, self.suffix),
            // 1 KB in MB: two places would not be read back as the same amount
            false => format!("{}{}", p.amount, self.suffix),
        };
        let amounts = self.phases.iter().map(shown).collect();
        write!(f, "{}={}", self.res, list(amounts))?;
        f.write_str(match self.per {
            Per::Unsaid => "",
            Per::Host => "/host",
            Per::Task => "/task",
            Per::Job => "/job",
        })?;
        let durations: Vec<String> =
            self.phases.iter().filter_map(|p| p.duration).map(show_duration).collect();
        if !durations.is_empty() {
            write!(f, ":duration={}", list(durations))?;
        }
        if self.phases.iter().any(|p| p.decay) {
            let decays = self.phases.iter().map(|p| u8::from(p.decay).to_string()).collect();
            write!(f, ":decay={}", list(decays))?;
        }
        Ok(())
    }
}

impl fmt::Display for Rusage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, terms) in self.alternatives.iter().enumerate() {
            f.write_str(if i == 0 { "" } else { " || " })?;
            for (j, term) in terms.iter().enumerate() {
                write!(f, "{}{term}", if j == 0 { "" } else { "," })?;
            }
        }
        Ok(())
    }
}
