//! The master elim of one host, as a pure machine: it has the elims run, checks every line they
//! report, and reports the merged values to LIM.
//!
//! Invariants: an elim is started again at most every [`RESTART_SECS`], and never after it ended
//! with ELIM_ABORT_VALUE; a line counts whole or not at all; what one elim does concerns no other
//! one; of several values of a resource the latest counts, until it is [`stale`] old. See melim(8).

use crate::conf::{ResourceKind, Shared};
use crate::model::time::US;
use crate::proto::lim::INDEX_NAMES;
use std::collections::BTreeMap;

/// Shortest time between two starts of an elim, seconds.
pub const RESTART_SECS: u64 = 90;
/// Longest line of a report, bytes.
pub const LINE_MAX: usize = 64 << 10;
/// Longest value, bytes.
pub const VALUE_MAX: usize = 512;
/// Shortest time between two reports to LIM, microseconds.
pub const REPORT_GAP: u64 = US;
/// Faults of one elim that are logged one by one; later ones are logged at intervals.
const FAULTS_LOGGED: u64 = 20;
/// Restarts that count as unlimited.
const UNLIMITED: u64 = u64::MAX;

/// How long a value counts that is not reported again, microseconds.
fn stale(interval: u64) -> u64 {
    (3 * interval).max(2 * RESTART_SECS) * US
}

/// The configuration of melim at its start.
#[derive(Clone, Debug)]
pub struct MelimConf {
    pub shared: Shared,
    /// ELIM_ABORT_VALUE.
    pub abort: i32,
    /// LSF_RESOURCES: what is expected of this host.
    pub expected: Vec<String>,
    /// LSF_ELIM_BLOCKTIME: the seconds after which an elim with an incomplete line is restarted.
    pub block: Option<u64>,
    /// LSF_ELIM_RESTARTS.
    pub restarts: Option<u64>,
    /// LSF_ELIM_DEBUG: every report is logged.
    pub debug: bool,
}

/// The inputs.
#[derive(Debug)]
pub enum MelimInput<'a> {
    Output(usize, &'a [u8]),
    /// The elim ended: exit code, or None after a signal or a failed start.
    Ended(usize, Option<i32>),
    Tick,
}

/// The effects.
#[derive(Debug, PartialEq)]
pub enum MelimEffect {
    Start(usize),
    Kill(usize),
    /// A line for LIM.
    Report(String),
    Say(log::Level, String),
}

#[derive(Debug, Default)]
struct Elim {
    name: String,
    running: bool,
    /// Started last; None never.
    since: Option<u64>,
    starts: u64,
    never_again: bool,
    line: Vec<u8>,
    /// The line has become too long: what comes is left out up to its end.
    skipping: bool,
    /// When the unfinished line began.
    begun: Option<u64>,
    faults: u64,
}

/// The machine.
#[derive(Debug)]
pub struct Melim {
    conf: MelimConf,
    elims: Vec<Elim>,
    /// Value, when it was reported, for how long it counts.
    values: BTreeMap<String, (String, u64, u64)>,
    /// Something is to be reported; the last report.
    dirty: bool,
    reported: Option<u64>,
}

impl Melim {
    /// A melim for the elims of these names; they start with the first tick.
    pub fn new(conf: MelimConf, names: Vec<String>) -> Self {
        let elims = names.into_iter().map(|name| Elim { name, ..Elim::default() }).collect();
        Melim { conf, elims, values: BTreeMap::new(), dirty: false, reported: None }
    }

    /// When it wants its next tick.
    pub fn deadline(&self) -> Option<u64> {
        let starts = self.elims.iter().filter_map(|e| self.start_at(e));
        let blocked = self.elims.iter().filter_map(|e| Some(e.begun? + self.conf.block? * US));
        let stale = self.values.values().map(|(_, at, keep)| at + keep);
        let report = self.dirty.then(|| self.reported.map_or(0, |at| at + REPORT_GAP));
        starts.chain(blocked).chain(stale).chain(report).min()
    }

    /// When an elim that does not run is started, if at all.
    fn start_at(&self, e: &Elim) -> Option<u64> {
        let most = self.conf.restarts.unwrap_or(UNLIMITED);
        let stays = e.running || e.never_again || e.starts > most;
        (!stays).then(|| e.since.map_or(0, |at| at + RESTART_SECS * US))
    }

    /// Takes one input.
    pub fn step(&mut self, now: u64, input: MelimInput, out: &mut Vec<MelimEffect>) {
        match input {
            MelimInput::Output(i, bytes) => self.output(now, i, bytes, out),
            MelimInput::Ended(i, code) => self.ended(i, code, out),
            MelimInput::Tick => {}
        }
        self.tick(now, out);
    }

    fn tick(&mut self, now: u64, out: &mut Vec<MelimEffect>) {
        for i in 0..self.elims.len() {
            if self.start_at(&self.elims[i]).is_some_and(|at| at <= now) {
                let e = &mut self.elims[i];
                (e.running, e.since, e.starts) = (true, Some(now), e.starts + 1);
                (e.line, e.skipping, e.begun) = (Vec::new(), false, None);
                out.push(MelimEffect::Say(log::Level::Info, format!("{}: started", e.name)));
                out.push(MelimEffect::Start(i));
            }
            let (block, e) = (self.conf.block, &mut self.elims[i]);
            if let (Some(begun), Some(block)) = (e.begun, block)
                && now >= begun + block * US
            {
                e.begun = None;
                let text = format!("{}: a line is not whole after {block} s: started anew", e.name);
                out.push(MelimEffect::Say(log::Level::Warn, text));
                out.push(MelimEffect::Kill(i));
            }
        }
        let before = self.values.len();
        self.values.retain(|_, (_, at, keep)| now < *at + *keep);
        self.dirty |= self.values.len() != before;
        if self.dirty && self.reported.is_none_or(|at| now >= at + REPORT_GAP) {
            (self.dirty, self.reported) = (false, Some(now));
            let mut line = self.values.len().to_string();
            for (name, (value, ..)) in &self.values {
                line.push_str(&format!(" {name} {value}"));
            }
            out.push(MelimEffect::Report(line));
        }
    }

    fn ended(&mut self, i: usize, code: Option<i32>, out: &mut Vec<MelimEffect>) {
        let Some(e) = self.elims.get_mut(i) else { return };
        e.running = false;
        if !e.line.is_empty() {
            let rest = String::from_utf8_lossy(&std::mem::take(&mut e.line)).into_owned();
            fault(e, &format!("an unfinished line <{rest}>"), out);
        }
        e.begun = None;
        e.never_again = code == Some(self.conf.abort);
        let (name, how) = (&e.name, code.map_or("a signal".into(), |c| format!("exit code {c}")));
        let (level, what) =
            match (e.never_again, e.starts > self.conf.restarts.unwrap_or(UNLIMITED)) {
                (true, _) => {
                    (log::Level::Info, "it is not wanted here, and not started again".into())
                }
                (_, true) => (log::Level::Error, "it is not started again".into()),
                _ => (
                    log::Level::Warn,
                    format!("started again {RESTART_SECS} s after its last start"),
                ),
            };
        out.push(MelimEffect::Say(level, format!("{name}: ended with {how}; {what}")));
    }

    fn output(&mut self, now: u64, i: usize, bytes: &[u8], out: &mut Vec<MelimEffect>) {
        for piece in bytes.split_inclusive(|b| *b == b'\n') {
            let Some(e) = self.elims.get_mut(i) else { return };
            let whole = piece.ends_with(b"\n");
            if !e.skipping && e.line.len() + piece.len() > LINE_MAX {
                e.skipping = true;
                e.line.clear();
                fault(e, &format!("a line longer than {LINE_MAX} bytes"), out);
            }
            if !e.skipping {
                e.line.extend_from_slice(piece);
            }
            if !whole {
                e.begun.get_or_insert(now);
                continue;
            }
            e.begun = None;
            let (line, skipped) = (std::mem::take(&mut e.line), std::mem::take(&mut e.skipping));
            if !skipped {
                self.line(now, i, &line, out);
            }
        }
    }

    fn line(&mut self, now: u64, i: usize, line: &[u8], out: &mut Vec<MelimEffect>) {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end_matches(['\n', '\r']);
        if self.conf.debug {
            let said = format!("{}: <{text}>", self.elims[i].name);
            out.push(MelimEffect::Say(log::Level::Info, said));
        }
        match parse(text, &self.conf.shared) {
            Ok(pairs) => {
                for (name, value) in pairs {
                    let built = INDEX_NAMES.contains(&name.as_str());
                    if !built && !self.conf.expected.contains(&name) {
                        continue;
                    }
                    let def = self.conf.shared.resources.iter().find(|r| r.name == name);
                    let keep = stale(def.and_then(|d| d.interval).unwrap_or(0));
                    self.values.insert(name, (value, now, keep));
                    self.dirty = true;
                }
            }
            Err(why) => {
                let shown: String = text.chars().take(VALUE_MAX).collect();
                fault(&mut self.elims[i], &format!("{why}: line <{shown}> is dropped"), out);
            }
        }
    }
}

fn fault(e: &mut Elim, why: &str, out: &mut Vec<MelimEffect>) {
    e.faults += 1;
    if e.faults <= FAULTS_LOGGED || e.faults.is_multiple_of(1000) {
        let text = format!("{}: fault {}: {why}", e.name, e.faults);
        out.push(MelimEffect::Say(log::Level::Warn, text));
    }
}

/// Reads `number name value ...`; the names are resources that elims report, or built-in
/// indices. An error says what is wrong; then nothing of the line counts.
pub fn parse(line: &str, shared: &Shared) -> Result<Vec<(String, String)>, String> {
    let mut words = line.split_whitespace();
    let count = words.next().unwrap_or_default();
    let count: usize =
        count.parse().map_err(|_| format!("<{}> is not a number of indices", short(count)))?;
    let words: Vec<&str> = words.collect();
    if words.len() != count.saturating_mul(2) {
        return Err(format!("{count} indices announced, {} words follow", words.len()));
    }
    let mut pairs = Vec::with_capacity(count);
    for pair in words.chunks_exact(2) {
        let (name, value) = (pair[0], pair[1]);
        let def = shared.resources.iter().find(|r| r.name == name);
        let kind = match def {
            _ if INDEX_NAMES.contains(&name) => ResourceKind::Numeric,
            Some(def) if def.interval.is_some() => def.kind,
            Some(_) => return Err(format!("<{name}> is a static resource")),
            None => return Err(format!("<{}> is not a resource of lsf.shared", short(name))),
        };
        let good = match kind {
            ResourceKind::Numeric => value.parse::<f64>().is_ok_and(f64::is_finite),
            ResourceKind::Boolean => matches!(value, "0" | "1"),
            ResourceKind::String => value.len() <= VALUE_MAX && !value.contains(char::is_control),
        };
        if !good {
            return Err(format!("<{}> is not a value of {name}", short(value)));
        }
        pairs.push((name.to_owned(), value.to_owned()));
    }
    Ok(pairs)
}

fn short(text: &str) -> String {
    text.chars().take(60).collect()
}

#[cfg(test)]
#[path = "melim_tests.rs"]
mod tests;
