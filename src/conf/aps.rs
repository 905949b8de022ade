//! APS_PRIORITY of lsb.queues(5): `WEIGHT[[factor, value] ...] LIMIT[...] GRACE_PERIOD[...]`.

use super::diag::Severity;
use super::lexer::shown;
use super::names::nearest;
use super::section::Values;
use super::types::{ApsConf, ApsFactor, RawParam};

/// The keywords before the lists.
const KEYWORDS: [&str; 3] = ["WEIGHT", "LIMIT", "GRACE_PERIOD"];
/// Largest weight and limit.
pub const MAX_APS_NUMBER: f64 = 1e9;
/// Longest grace period, seconds: ten years.
const MAX_GRACE: f64 = 315_360_000.0;
const WANTED: &str = "WEIGHT[[factor, value] ...] LIMIT[...] GRACE_PERIOD[...] is wanted";
const PAIR: &str = "[factor, value] is wanted";

/// A piece of the value that is wrong, and what is wanted there.
type Wrong<'a> = (&'a str, String);

/// Reads APS_PRIORITY. `None`: it is not given, or cannot be read.
pub(super) fn of_queue(v: &mut Values<'_>) -> Option<ApsConf> {
    let value = v.raw.get("APS_PRIORITY")?;
    match read(&value.text) {
        Ok(aps) => Some(aps),
        Err((piece, Fault::Unknown(word, near))) => {
            let text = format!("unknown word <{}> in APS_PRIORITY", shown(word));
            v.diags.add_near(Severity::Error, &value.pos_of(piece), text, near);
            None
        }
        Err((piece, Fault::Wanted(want))) => {
            bad(v, value, (piece, want));
            None
        }
    }
}

fn bad(v: &mut Values<'_>, value: &RawParam, (piece, want): Wrong<'_>) {
    let text = format!("bad value <{}> of APS_PRIORITY: {want}", shown(piece.trim_end()));
    v.diags.error(&value.pos_of(piece), text);
}

/// A mistake in a piece of the value.
enum Fault<'a> {
    Unknown(&'a str, Option<&'static str>),
    Wanted(String),
}

fn wanted<'a>(piece: &'a str, want: &str) -> (&'a str, Fault<'a>) {
    (piece, Fault::Wanted(want.to_owned()))
}

/// The factors of the text of a parameter that was read before, as `bqueues -l` gets it.
pub fn parse(text: &str) -> Option<ApsConf> {
    read(text).ok()
}

fn read(text: &str) -> Result<ApsConf, (&str, Fault<'_>)> {
    let mut aps = ApsConf::default();
    let mut seen = [false; KEYWORDS.len()];
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let end = rest.find(|c: char| c.is_whitespace() || c == '[').unwrap_or(rest.len());
        let (keyword, behind) = rest.split_at(end);
        let known = KEYWORDS.iter().position(|k| k.eq_ignore_ascii_case(keyword));
        let Some(list) = known else {
            return Err(match keyword.is_empty() {
                true => wanted(rest, WANTED),
                false => (keyword, Fault::Unknown(keyword, nearest(keyword, KEYWORDS))),
            });
        };
        if std::mem::replace(&mut seen[list], true) {
            return Err(wanted(keyword, "each keyword may stand there once"));
        }
        let behind = behind.trim_start();
        let inner = behind.strip_prefix('[').ok_or_else(|| wanted(rest, WANTED))?;
        let after = pairs(inner, list, &mut aps)?;
        rest = after.trim_start();
    }
    if aps.terms.iter().all(|term| term.weight.is_none()) {
        return Err(wanted(text, "at least one WEIGHT is wanted"));
    }
    Ok(aps)
}

/// The pairs of a list up to its closing bracket; what stands behind it.
fn pairs<'a>(
    text: &'a str,
    list: usize,
    aps: &mut ApsConf,
) -> Result<&'a str, (&'a str, Fault<'a>)> {
    let mut rest = text.trim_start();
    let mut any = false;
    loop {
        if let Some(after) = rest.strip_prefix(']') {
            return if any { Ok(after) } else { Err(wanted(rest, PAIR)) };
        }
        let inner = rest.strip_prefix('[').ok_or_else(|| match rest.is_empty() {
            true => wanted(text, "the bracket is not closed"),
            false => wanted(rest, PAIR),
        })?;
        let (pair, after) = inner.split_once(']').ok_or_else(|| wanted(rest, PAIR))?;
        let (word, number) = pair.split_once(',').ok_or_else(|| wanted(pair, PAIR))?;
        let (word, number) = (word.trim(), number.trim());
        set(aps, list, word, number)?;
        any = true;
        rest = after.trim_start();
    }
}

/// One pair.
fn set<'a>(
    aps: &mut ApsConf,
    list: usize,
    word: &'a str,
    number: &'a str,
) -> Result<(), (&'a str, Fault<'a>)> {
    let known = ApsFactor::ALL.into_iter().find(|f| f.word().eq_ignore_ascii_case(word));
    let Some(factor) = known else {
        if word.eq_ignore_ascii_case("ADMIN") {
            return Err(wanted(word, "ADMIN has neither weight, limit nor grace period"));
        }
        let near = nearest(word, ApsFactor::ALL.map(ApsFactor::word));
        return Err((word, Fault::Unknown(word, near)));
    };
    let term = &mut aps.terms[factor.index()];
    let twice = match list {
        0 => term.weight.is_some(),
        1 => term.limit.is_some(),
        _ => term.grace.is_some(),
    };
    if twice {
        return Err(wanted(word, "the factor stands there already"));
    }
    let plain = |text: &str| text.parse::<f64>().ok().filter(|n| n.is_finite() && *n != 0.0);
    match list {
        0 => {
            let weight = plain(number).filter(|n| n.abs() <= MAX_APS_NUMBER);
            let want = "a weight other than 0, from -1000000000 to 1000000000, is wanted";
            term.weight = Some(weight.ok_or_else(|| wanted(number, want))?);
        }
        1 => {
            let limit = plain(number).filter(|n| (0.0..=MAX_APS_NUMBER).contains(n));
            let want = "a limit above 0, up to 1000000000, is wanted";
            term.limit = Some(limit.ok_or_else(|| wanted(number, want))?);
        }
        _ => {
            let (count, unit) = match number.strip_suffix(['s', 'm', 'h', 'S', 'M', 'H']) {
                Some(count) => (count, number[count.len()..].to_ascii_lowercase()),
                None => (number, "h".to_owned()),
            };
            let unit = match unit.as_str() {
                "s" => 1.0,
                "m" => 60.0,
                _ => 3600.0,
            };
            let secs = plain(count).map(|n| n * unit).filter(|n| (1.0..=MAX_GRACE).contains(n));
            let want = "a period such as 30s, 10m or 2h, above 0, is wanted";
            term.grace = Some(secs.ok_or_else(|| wanted(number, want))? as u64);
        }
    }
    Ok(())
}
