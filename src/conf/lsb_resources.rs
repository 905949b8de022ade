//! lsb.resources: limits on what started jobs hold, and the policies of advance reservations.
//!
//! A limit that cannot be what its author meant (a percentage of no host, two lists of one
//! dimension) is an error: LSF ignores such a section, and the jobs that it was to hold back run.
//! See lsb.resources(5).

use super::diag::{Diags, Severity};
use super::files::Files;
use super::guaranteed_pools;
use super::lexer::{self, Section, shown};
use super::lsb_queues::{host_terms, user_terms};
use super::lsf_shared::{nothing, twice, unknown_section};
use super::names::tables::{LIMIT, OTHER_SECTIONS, RESERVATION_USAGE, RESOURCE_RESERVATION};
use super::section::{SectionRow, Values, known_params, table};
use super::types::{
    BatchResources, LimitAmount, LimitConf, LimitMembers, LimitNumber, Limited, RawParam,
    ReservationPolicy, ReservationUsage, Shared, UserTerm,
};
use super::units::yes_no;

/// Longest NAME, characters.
const MAX_NAME: usize = 40;
/// Largest number of slots, jobs, MB or units of a resource.
const MAX_AMOUNT: f64 = 1e12;

/// Reads lsb.resources; `unit_mb`: how many MB a size without a unit counts. None: it cannot be
/// read.
pub fn parse(
    files: &dyn Files,
    path: &str,
    (shared, unit_mb): (&Shared, f64),
    diags: &mut Diags,
) -> Option<BatchResources> {
    let mut resources = BatchResources::default();
    let mut known: Vec<&str> = OTHER_SECTIONS.iter().map(|(_, name)| *name).collect();
    known.extend(["GuaranteedResourcePool", "Limit", "ReservationUsage", "ResourceReservation"]);
    for section in lexer::read(files, path, diags)? {
        if section.is("Limit") {
            limits(&section, unit_mb, &mut resources.limits, diags);
        } else if section.is("ReservationUsage") {
            reservation_usage(&section, &mut resources, diags);
        } else if section.is("ResourceReservation") {
            reservation(&section, &mut resources, diags);
        } else if section.is("GuaranteedResourcePool") {
            guaranteed_pools::pool(&section, &mut resources.pools, shared, diags);
        } else if known.iter().any(|name| section.is(name)) {
            // Empty sections are what an installation writes: nothing to tell.
            if section.lines.len() > 1 {
                diags.not_acted_on(&section.pos, format!("section {}", shown(&section.name)));
            }
        } else {
            unknown_section(&section, &known, diags);
        }
    }
    name_the_nameless(&mut resources.limits);
    Some(resources)
}

/// A policy of advance reservations.
fn reservation(section: &Section, resources: &mut BatchResources, diags: &mut Diags) {
    if section.lines.is_empty() {
        return;
    }
    let raw = known_params(section, &RESOURCE_RESERVATION, &nothing, diags);
    let mut v = Values::new(&raw, diags);
    let text = |name: &str| raw.get(name).map_or(String::new(), |value| value.text.clone());
    let policy = ReservationPolicy {
        name: v.object_name("NAME").unwrap_or_default(),
        users: user_terms(&mut v, "USERS"),
        hosts: host_terms(&mut v, "HOSTS"),
        window: v.windows("TIME_WINDOW"),
        users_text: text("USERS"),
        hosts_text: text("HOSTS"),
        pos: section.pos.clone(),
    };
    if policy.name.is_empty() {
        if !raw.contains_key("NAME") {
            diags.error(&section.pos, "NAME is missing");
        }
    } else if resources.reservations.iter().any(|other| other.name == policy.name) {
        let text = format!("ResourceReservation <{}> is there already", shown(&policy.name));
        diags.error(&section.pos, text);
    } else {
        resources.reservations.push(policy);
    }
}

/// A Limit is written either way: as parameters, or as a table of several limits.
fn limits(section: &Section, unit_mb: f64, all: &mut Vec<LimitConf>, diags: &mut Diags) {
    let Some(first) = section.lines.first() else {
        return diags.warning(&section.pos, "section Limit is empty");
    };
    let rows = if first.text.contains('=') {
        let cells = known_params(section, &LIMIT, &nothing, diags);
        vec![SectionRow { cells, pos: section.pos.clone() }]
    } else {
        table(section, &LIMIT, &nothing, diags)
    };
    for row in rows {
        let limit = limit(&row, unit_mb, diags);
        if !limit.name.is_empty() && all.iter().any(|other| other.name == limit.name) {
            twice(&row, "NAME", diags);
        } else {
            all.push(limit);
        }
    }
}

fn name_the_nameless(limits: &mut [LimitConf]) {
    let taken: Vec<String> = limits.iter().map(|limit| limit.name.clone()).collect();
    let mut names = (0..).map(|n| format!("NONAME{n:03}")).filter(|name| !taken.contains(name));
    for limit in limits.iter_mut().filter(|limit| limit.name.is_empty()) {
        limit.name = names.next().unwrap_or_default();
    }
}

fn limit(row: &SectionRow, unit_mb: f64, diags: &mut Diags) -> LimitConf {
    let mut v = Values::new(&row.cells, diags);
    let mut limit = LimitConf {
        name: name(&mut v),
        users: members(&mut v, "USERS", "PER_USER"),
        queues: members(&mut v, "QUEUES", "PER_QUEUE"),
        hosts: members(&mut v, "HOSTS", "PER_HOST"),
        projects: members(&mut v, "PROJECTS", "PER_PROJECT"),
        apps: members(&mut v, "APPS", "PER_APP"),
        lic_projects: members(&mut v, "LIC_PROJECTS", "PER_LIC_PROJECT"),
        of_clusters: ["CLUSTERS", "PER_CLUSTER"].iter().any(|n| row.cells.contains_key(*n)),
        raw: row.cells.clone(),
        pos: row.pos.clone(),
        ..LimitConf::default()
    };
    v.flag(&mut limit.ineligible, "INELIGIBLE");
    for (name, what) in [("SLOTS", Limited::Slots), ("JOBS", Limited::Jobs)] {
        limit.amounts.extend(count(&mut v, name, what));
    }
    limit.amounts.extend(per_processor(&mut v));
    let sizes = [("MEM", Limited::Mem), ("TMP", Limited::Tmp), ("SWP", Limited::Swp)];
    for (name, what) in sizes {
        limit.amounts.extend(size(&mut v, name, what, unit_mb));
    }
    limit.amounts.extend(named(&mut v));
    limit.amounts.sort_by(|a, b| a.what.cmp(&b.what));
    whole(&limit, diags);
    limit
}

fn name(v: &mut Values<'_>) -> String {
    let Some(value) = v.raw.get("NAME") else { return String::new() };
    let odd = |c: char| c.is_whitespace() || c.is_control() || "()\"'".contains(c);
    if value.text.chars().any(odd) || value.text.chars().count() > MAX_NAME {
        v.bad("NAME", value, "a word of at most 40 characters is wanted");
    }
    value.text.clone()
}

/// The list of a dimension: shared by its members, or for each of them.
fn members(v: &mut Values<'_>, shared: &'static str, each: &'static str) -> Option<LimitMembers> {
    let name = match (v.raw.get(shared), v.raw.get(each)) {
        (None, None) => return None,
        (Some(_), None) => shared,
        (None, Some(_)) => each,
        (Some(one), Some(other)) => {
            let later = if one.pos.line < other.pos.line { other } else { one };
            let text = format!("{shared} and {each} cannot be in one limit");
            v.diags.error(&later.pos, text);
            return None;
        }
    };
    let value = &v.raw[name];
    let words = match shared {
        "USERS" => user_terms(v, name),
        _ => plain_terms(v, name),
    };
    let per = name == each;
    for word in words.iter().filter(|word| word.members && !per) {
        let text = format!("bad value <{}@> of {name}: {each} gives each", shown(&word.name));
        v.diags.error(&word.pos, format!("{text} member of a group a limit of its own"));
    }
    let takes_some = words.iter().any(|word| !word.exclude);
    if let Some(first) = words.first().filter(|_| !takes_some) {
        let text = format!("bad value <~{}> of {name}: before what is", shown(&first.name));
        v.diags.error(&first.pos, format!("{text} left out, `all` or names are wanted"));
    }
    let (text, pos) = (value.text.clone(), value.pos.clone());
    Some(LimitMembers { each: per, words, text, pos })
}

/// The words of a list of names that are not those of users.
fn plain_terms(v: &mut Values<'_>, name: &str) -> Vec<UserTerm> {
    let term = |word: RawParam| {
        let (exclude, text) = match word.text.strip_prefix('~') {
            Some(rest) => (true, rest),
            None => (false, word.text.as_str()),
        };
        let text = text.strip_suffix('/').unwrap_or(text).to_owned();
        UserTerm { name: text, exclude, members: false, pos: word.pos }
    };
    v.words(name).into_iter().map(term).collect()
}

/// SLOTS and JOBS.
fn count(v: &mut Values<'_>, name: &str, what: Limited) -> Option<LimitAmount> {
    let value = v.raw.get(name)?;
    let number = match value.text.as_str() {
        "!" if what == Limited::Slots => LimitNumber::PerProcessor(1.0),
        _ => LimitNumber::Fixed(f64::from(v.number(name, 0..=i32::MAX as u32)?)),
    };
    Some(LimitAmount { what, number, pos: value.pos.clone() })
}

fn per_processor(v: &mut Values<'_>) -> Option<LimitAmount> {
    let value = v.raw.get("SLOTS_PER_PROCESSOR")?;
    let number = match value.text.as_str() {
        "!" => 1.0,
        _ => v.number("SLOTS_PER_PROCESSOR", 0.0..=f64::from(u32::MAX))?,
    };
    let (what, number) = (Limited::Slots, LimitNumber::PerProcessor(number));
    Some(LimitAmount { what, number, pos: value.pos.clone() })
}

/// MEM, TMP and SWP: MB, or a percentage of what a host has.
fn size(v: &mut Values<'_>, name: &str, what: Limited, unit_mb: f64) -> Option<LimitAmount> {
    let value = v.raw.get(name)?;
    let (text, percent) = match value.text.strip_suffix('%') {
        Some(text) => (text.trim(), true),
        None => (value.text.as_str(), false),
    };
    let most = if percent { 100.0 } else { MAX_AMOUNT };
    let parsed = whole_number(text, most);
    let Some(number) = parsed else {
        v.bad(name, value, "a number of MB (LSF_UNIT_FOR_LIMITS), or a percentage, is wanted");
        return None;
    };
    let number = match percent {
        true => LimitNumber::Percent(number),
        false => LimitNumber::Fixed(number * unit_mb),
    };
    Some(LimitAmount { what, number, pos: value.pos.clone() })
}

/// A number without a sign; decimals count.
fn whole_number(text: &str, most: f64) -> Option<f64> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    text.parse::<f64>().ok().filter(|n| plain && *n <= most)
}

/// RESOURCE: `[name,amount] [name,amount] ...`.
fn named(v: &mut Values<'_>) -> Vec<LimitAmount> {
    let Some(value) = v.raw.get("RESOURCE") else { return Vec::new() };
    let mut found: Vec<LimitAmount> = Vec::new();
    let around = ['(', ')', '"', ' '];
    let mut rest = value.text.as_str().trim_matches(around);
    while !rest.is_empty() {
        let cut = rest.strip_prefix('[').and_then(|inner| inner.split_once(']'));
        let Some((pair, behind)) = cut else {
            let text = format!("bad value <{}> of RESOURCE", shown(rest));
            v.diags.error(&value.pos_of(rest), format!("{text}: [name,amount] is wanted"));
            break;
        };
        let pos = value.pos_of(pair);
        match pair.split_once(',').map(|(name, n)| (name.trim(), n.trim())) {
            Some((_, n)) if n.ends_with('%') => {
                let text = format!("bad value <{}> of RESOURCE", shown(pair));
                v.diags.error(&pos, format!("{text}: MEM, TMP and SWP alone take a percentage"));
            }
            Some((name, n)) if !name.is_empty() && whole_number(n, MAX_AMOUNT).is_some() => {
                let number = LimitNumber::Fixed(whole_number(n, MAX_AMOUNT).unwrap_or(0.0));
                let what = match name {
                    "mem" => Limited::Mem,
                    "tmp" => Limited::Tmp,
                    "swp" => Limited::Swp,
                    _ => Limited::Resource(name.to_owned()),
                };
                if found.iter().any(|known| known.what == what) {
                    let text = format!("resource <{}> is limited twice", shown(name));
                    v.diags.error(&pos, text);
                }
                found.push(LimitAmount { what, number, pos });
            }
            _ => {
                let text = format!("bad value <{}> of RESOURCE", shown(pair));
                v.diags.error(&pos, format!("{text}: [name,amount] is wanted"));
            }
        }
        rest = behind.trim_start_matches(around);
    }
    found
}

/// The checks of a limit as a whole.
fn whole(limit: &LimitConf, diags: &mut Diags) {
    let given = |names: &[&str]| names.iter().find_map(|name| limit.raw.get(*name));
    let later = ["JOBS_PER_SCHED_CYCLE", "ELIGIBLE_PEND_JOBS", "FWD_SLOTS"];
    let resources = ["SLOTS", "SLOTS_PER_PROCESSOR", "JOBS", "MEM", "TMP", "SWP", "RESOURCE"];
    if given(&resources).or(given(&later)).is_none() {
        let text = "the limit limits nothing: SLOTS, SLOTS_PER_PROCESSOR, JOBS, MEM, TMP, SWP or \
                    RESOURCE is wanted";
        diags.error(&limit.pos, text);
    }
    let each_host = limit.hosts.as_ref().is_some_and(|hosts| hosts.each);
    for amount in limit.amounts.iter().filter(|_| !each_host) {
        let what = match amount.number {
            LimitNumber::Fixed(_) => continue,
            LimitNumber::PerProcessor(_) => "slots for each processor are",
            LimitNumber::Percent(_) => "a percentage is",
        };
        let text = format!("{what} those of one host: PER_HOST is wanted");
        diags.error(&amount.pos, text);
    }
    let mut seen: Vec<&LimitAmount> = Vec::new();
    for amount in &limit.amounts {
        let twice = seen
            .iter()
            .any(|other| other.what == amount.what && !matches!(amount.what, Limited::Slots));
        if twice {
            diags.error(&amount.pos, "the resource is limited twice in one limit");
        }
        seen.push(amount);
    }
    if let Some(value) = given(&["INELIGIBLE"]).filter(|_| limit.ineligible) {
        ineligible(limit, value, diags);
    }
}

/// INELIGIBLE goes with limits on slots and jobs, whatever hosts these get.
fn ineligible(limit: &LimitConf, value: &RawParam, diags: &mut Diags) {
    let counted = |amount: &LimitAmount| matches!(amount.what, Limited::Slots | Limited::Jobs);
    if limit.hosts.is_some() || !limit.amounts.iter().any(counted) {
        let text = "INELIGIBLE has no effect in a limit of hosts, nor without SLOTS or JOBS";
        diags.warning(&value.pos, text);
    }
}

fn reservation_usage(section: &Section, resources: &mut BatchResources, diags: &mut Diags) {
    for row in table(section, &RESERVATION_USAGE, &nothing, diags) {
        let text = |name: &str| row.get(name).map_or(String::new(), |cell| cell.text.clone());
        let Some(resource) = row.get("RESOURCE") else {
            diags.error(&row.pos, "RESOURCE is missing");
            continue;
        };
        let wanted = ["PER_JOB", "PER_TASK", "PER_HOST", "PER_SLOT"];
        if let Some(method) = row.get("METHOD").filter(|m| !wanted.contains(&m.text.as_str())) {
            let text = format!("bad value <{}> of METHOD", shown(&method.text));
            let near = super::names::nearest(&method.text, wanted);
            let text = format!("{text}: PER_JOB, PER_TASK or PER_HOST is wanted");
            diags.add_near(Severity::Error, &method.pos, text, near);
        }
        if let Some(reserve) = row.get("RESERVE").filter(|r| yes_no(&r.text).is_none()) {
            let text = format!("bad value <{}> of RESERVE: Y or N is wanted", shown(&reserve.text));
            diags.error(&reserve.pos, text);
        }
        let same = |other: &&ReservationUsage| other.resource == resource.text;
        if let Some(before) = resources.reservation_usage.iter().find(same) {
            let text = format!("<{}> has a row at line {}", shown(&resource.text), before.pos.line);
            diags.warning(&resource.pos, format!("{text}; this one prevails"));
        }
        resources.reservation_usage.push(ReservationUsage {
            resource: resource.text.clone(),
            method: text("METHOD"),
            reserve: text("RESERVE"),
            pos: resource.pos.clone(),
        });
    }
}
