//! Section GuaranteedResourcePool of lsb.resources: what service classes are guaranteed, and to
//! whom it is lent meanwhile. See lsb.resources(5).

use super::brackets::{Bracketed, bracketed, piece, words};
use super::diag::{Diags, Severity};
use super::expressions::ResourceNames;
use super::lexer::{Section, shown};
use super::lsb_queues::host_terms;
use super::lsf_shared::nothing;
use super::names::nearest;
use super::names::tables::GUARANTEED_POOL;
use super::section::{Values, known_params};
use super::types::{
    GuaranteeConf, GuaranteedPoolConf, LoanConf, PackageConf, PoolAmount, PoolType, RawParam,
    ResourceKind, Shared, UserTerm,
};
use crate::lang::resreq::{ResReq, Syntax};

/// Largest guaranteed number.
const MAX_AMOUNT: u32 = 10_000_000;
/// Longest time of a loan, minutes.
const MAX_MINUTES: u32 = 1_000_000;
const LOANS: [&str; 5] = ["QUEUES", "RETAIN", "IDLE_BUFFER", "DURATION", "CLOSE_ON_DEMAND"];

/// Reads a pool.
pub(super) fn pool(
    section: &Section,
    all: &mut Vec<GuaranteedPoolConf>,
    shared: &Shared,
    diags: &mut Diags,
) {
    if section.lines.is_empty() {
        return;
    }
    let raw = known_params(section, &GUARANTEED_POOL, &nothing, diags);
    for name in ["NAME", "TYPE", "DISTRIBUTION"] {
        if !raw.contains_key(name) {
            diags.error(&section.pos, format!("{name} is missing"));
        }
    }
    let mut v = Values::new(&raw, diags);
    let text = |name: &str| raw.get(name).map_or(String::new(), |value| value.text.clone());
    let pool = GuaranteedPoolConf {
        name: v.object_name("NAME").unwrap_or_default(),
        kind: kind(&mut v, shared),
        hosts: host_terms(&mut v, "HOSTS"),
        hosts_text: text("HOSTS"),
        res_select: res_select(&mut v, shared),
        distribution: distribution(&mut v),
        distribution_text: text("DISTRIBUTION"),
        loans: loans(&mut v),
        slots_per_host: v.number("SLOTS_PER_HOST", 1..=MAX_AMOUNT),
        description: text("DESCRIPTION"),
        pos: section.pos.clone(),
        raw: raw.clone(),
    };
    if let Some(first) = all.iter().find(|other| other.name == pool.name) {
        let at = raw.get("NAME").map_or(&section.pos, |value| &value.pos);
        let (name, line) = (shown(&pool.name), first.pos.line);
        diags.error(at, format!("pool <{name}> is already defined in line {line}"));
    } else if !pool.name.is_empty() {
        all.push(pool);
    }
}

fn kind(v: &mut Values<'_>, shared: &Shared) -> PoolType {
    let Some(value) = v.raw.get("TYPE") else { return PoolType::Slots };
    let parts = bracketed(value).unwrap_or_default();
    let [Bracketed { word, inner }] = &parts[..] else {
        bad_kind(v, value);
        return PoolType::Slots;
    };
    match (word.text.as_str(), inner) {
        ("slots", None) => PoolType::Slots,
        ("hosts", None) => PoolType::Hosts,
        ("package", Some(inner)) => package(v, inner),
        ("resource", Some(inner)) if !inner.text.is_empty() => {
            let name = &inner.text;
            let own = shared.resources.iter().find(|resource| resource.name == *name);
            if own.is_some_and(|resource| resource.kind == ResourceKind::Numeric) {
                return PoolType::Resource(name.clone());
            }
            let near = nearest(name, shared.resources.iter().map(|r| r.name.as_str()));
            let text = format!(
                "<{}> is not a numeric resource of lsf.shared; the pool is not acted on",
                shown(name)
            );
            v.diags.add_near(Severity::Warning, &inner.pos, text, near);
            PoolType::Unknown
        }
        _ => {
            bad_kind(v, value);
            PoolType::Slots
        }
    }
}

fn bad_kind(v: &mut Values<'_>, value: &RawParam) {
    let word = value.text.split('[').next().unwrap_or_default().trim();
    let near = nearest(word, ["slots", "hosts", "resource", "package"]);
    let want = "slots, hosts, resource[name] or package[slots=n:mem=n] is wanted";
    let text = format!("bad value <{}> of TYPE: {want}", shown(&value.text));
    v.diags.add_near(Severity::Error, &value.pos, text, near);
}

/// The inner text of `package[slots=n:mem=n]`.
fn package(v: &mut Values<'_>, inner: &RawParam) -> PoolType {
    let mut package = PackageConf::default();
    for part in inner.text.split(':') {
        let (name, number) = part.split_once('=').unwrap_or((part, ""));
        let number = number.trim().parse().ok().filter(|n| (1..=MAX_AMOUNT).contains(n));
        let place = match name.trim() {
            "slots" => Some(&mut package.slots),
            "mem" => Some(&mut package.mem),
            _ => None,
        };
        match (place.filter(|place| **place == 0), number) {
            (Some(place), Some(number)) => *place = number,
            _ => {
                let want = "slots=n, mem=n, or both with : between them, is wanted in package[]";
                v.bad("TYPE", &piece(inner, part), want);
                return PoolType::Slots;
            }
        }
    }
    PoolType::Package(package)
}

/// RES_SELECT as a requirement; `select[]` may be left out.
fn res_select(v: &mut Values<'_>, shared: &Shared) -> String {
    let Some(value) = v.raw.get("RES_SELECT") else { return String::new() };
    let text = match value.text.trim_start().starts_with("select") {
        true => value.text.clone(),
        false => format!("select[{}]", value.text),
    };
    let names = ResourceNames(shared);
    match ResReq::parse(&text, &Syntax::new(&names)) {
        Ok(_) => text,
        Err(error) => {
            v.bad("RES_SELECT", value, &error.to_string());
            String::new()
        }
    }
}

/// A number, or a percentage up to 100.
fn amount(text: &str) -> Option<PoolAmount> {
    match text.strip_suffix('%') {
        Some(percent) => {
            let percent = percent.trim().parse::<f64>().ok();
            percent.filter(|p| (0.0..=100.0).contains(p)).map(PoolAmount::Percent)
        }
        None => text.parse().ok().filter(|n| *n <= MAX_AMOUNT).map(PoolAmount::Fixed),
    }
}

fn distribution(v: &mut Values<'_>) -> Vec<GuaranteeConf> {
    let name = "DISTRIBUTION";
    let want = "[class, amount] or [class, percentage up to 100%] is wanted";
    let Some(value) = v.raw.get(name) else { return Vec::new() };
    let parts = match bracketed(value) {
        Ok(parts) => parts,
        Err(rest) => {
            v.bad(name, &rest, want);
            return Vec::new();
        }
    };
    let mut all: Vec<GuaranteeConf> = Vec::new();
    for Bracketed { word, inner } in parts {
        let Some(inner) = inner.filter(|_| word.text.is_empty()) else {
            v.bad(name, &word, want);
            continue;
        };
        let pair = inner.text.split_once(',').map(|(class, n)| (class, amount(n.trim())));
        match pair {
            Some((class, Some(amount))) if !class.trim().is_empty() => {
                let class = piece(&inner, class);
                if all.iter().any(|known| known.class.text == class.text) {
                    let text = format!("service class <{}> is given twice", shown(&class.text));
                    v.diags.error(&class.pos, text);
                }
                all.push(GuaranteeConf { class, amount });
            }
            _ => v.bad(name, &inner, want),
        }
    }
    all
}

fn loans(v: &mut Values<'_>) -> Option<LoanConf> {
    let name = "LOAN_POLICIES";
    let value = v.raw.get(name)?;
    let parts = match bracketed(value) {
        Ok(parts) => parts,
        Err(rest) => {
            v.bad(name, &rest, "a bracket is not closed or not opened");
            return None;
        }
    };
    let mut loans = LoanConf { text: value.text.clone(), ..LoanConf::default() };
    for part in parts {
        loan(&mut loans, &part, v);
    }
    if loans.queues.is_empty() {
        v.bad(name, value, "QUEUES[names] says who may borrow");
    }
    Some(loans)
}

fn loan(loans: &mut LoanConf, part: &Bracketed, v: &mut Values<'_>) {
    let none = RawParam::default();
    let inner = part.inner.as_ref().unwrap_or(&none);
    let bad = |want: &str, v: &mut Values<'_>| {
        let at = if inner.text.is_empty() { &part.word } else { inner };
        v.bad("LOAN_POLICIES", at, want);
    };
    match part.word.text.as_str() {
        "QUEUES" => loans.queues.extend(words(inner).map(|word| {
            let (always, name) = match word.text.strip_prefix('!') {
                Some(name) => (true, name),
                None => (false, word.text.as_str()),
            };
            UserTerm { name: name.to_owned(), exclude: always, pos: word.pos, members: false }
        })),
        "RETAIN" | "IDLE_BUFFER" => match amount(&inner.text) {
            Some(amount) => loans.retain = Some(amount),
            None => bad("a number or a percentage up to 100% is wanted", v),
        },
        "DURATION" => match inner.text.parse().ok().filter(|n| (1..=MAX_MINUTES).contains(n)) {
            Some(minutes) => loans.duration = Some(minutes),
            None => bad(&format!("minutes from 1 to {MAX_MINUTES} are wanted"), v),
        },
        "CLOSE_ON_DEMAND" => loans.close_on_demand = true,
        word => {
            let near = nearest(word, LOANS);
            let text = format!("unknown word <{}> of LOAN_POLICIES", shown(word));
            v.diags.add_near(Severity::Error, &part.word.pos, text, near);
        }
    }
}
