//! lsb.serviceclasses: classes of jobs that are guaranteed resources, or that have goals.
//!
//! A class is one or the other: [GUARANTEE] stands alone. See lsb.serviceclasses(5).

use super::brackets::{bracketed, piece, words};
use super::diag::{Diags, Severity};
use super::files::Files;
use super::lexer::{self, Section, shown};
use super::lsb_queues::user_terms;
use super::lsf_shared::{nothing, unknown_section};
use super::names::lsb_serviceclasses::SERVICE_CLASS;
use super::names::nearest;
use super::section::{Values, known_params};
use super::types::{
    AccessControl, ControlActionConf, GoalConf, GoalKind, RawParam, ServiceClassConf, UserTerm,
};
use crate::lang::window::Windows;

/// Largest number of jobs of a goal.
const MAX_JOBS: u32 = 1_000_000;
/// Longest VIOLATION_PERIOD: a year.
const MAX_MINUTES: u32 = 365 * 24 * 60;
/// Longest NAME, characters.
const MAX_NAME: usize = 60;
const GOALS: [&str; 4] = ["GUARANTEE", "DEADLINE", "VELOCITY", "THROUGHPUT"];
const LISTS: [&str; 6] =
    ["QUEUES", "USERS", "FAIRSHARE_GROUPS", "APPS", "PROJECTS", "LIC_PROJECTS"];

/// Reads lsb.serviceclasses. None: it cannot be read.
pub fn parse(files: &dyn Files, path: &str, diags: &mut Diags) -> Option<Vec<ServiceClassConf>> {
    let mut all: Vec<ServiceClassConf> = Vec::new();
    for section in lexer::read(files, path, diags)? {
        if !section.is("ServiceClass") {
            unknown_section(&section, &["ServiceClass"], diags);
            continue;
        }
        let Some(class) = class(&section, diags) else { continue };
        if let Some(first) = all.iter().find(|c| c.name == class.name) {
            let at = class.raw.get("NAME").map_or(&class.pos, |v| &v.pos);
            let (name, line) = (shown(&class.name), first.pos.line);
            diags.error(at, format!("service class <{name}> is already defined in line {line}"));
            continue;
        }
        all.push(class);
    }
    Some(all)
}

fn class(section: &Section, diags: &mut Diags) -> Option<ServiceClassConf> {
    let raw = known_params(section, &SERVICE_CLASS, &nothing, diags);
    for name in ["NAME", "GOALS"].iter().filter(|name| !raw.contains_key(**name)) {
        diags.error(&section.pos, format!("service class without {name}"));
    }
    let mut class =
        ServiceClassConf { pos: section.pos.clone(), priority: 1, ..ServiceClassConf::default() };
    let mut v = Values::new(&raw, diags);
    let name = name(&mut v);
    class.description = v.text("DESCRIPTION").unwrap_or_default();
    v.set(&mut class.priority, "PRIORITY", 1..=i32::MAX as u32);
    class.users = user_terms(&mut v, "USER_GROUP");
    v.flag(&mut class.auto_attach, "AUTO_ATTACH");
    access_control(&mut class.access, &mut v);
    goals(&mut class, &mut v);
    class.control_action = control_action(&mut v);
    if class.guarantee {
        for name in ["PRIORITY", "CONTROL_ACTION", "USER_GROUP"] {
            if let Some(value) = raw.get(name) {
                let text = format!("{name} does not go with the goal GUARANTEE");
                diags.error(&value.pos, text);
            }
        }
    }
    class.name = name?;
    class.raw = raw;
    Some(class)
}

/// Letters, digits, underscores and dashes.
fn name(v: &mut Values<'_>) -> Option<String> {
    let value = v.raw.get("NAME")?;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if value.text.len() > MAX_NAME || !value.text.chars().all(plain) {
        v.bad("NAME", value, "at most 60 letters, digits, _ and - are wanted");
        return None;
    }
    Some(value.text.clone())
}

fn access_control(access: &mut AccessControl, v: &mut Values<'_>) {
    let Some(value) = v.raw.get("ACCESS_CONTROL") else { return };
    access.text = value.text.clone();
    let parts = match bracketed(value) {
        Ok(parts) => parts,
        Err(rest) => return v.bad("ACCESS_CONTROL", &rest, "WORD[names] ... is wanted"),
    };
    for part in parts {
        let list = match part.word.text.as_str() {
            "QUEUES" => &mut access.queues,
            "USERS" => &mut access.users,
            "FAIRSHARE_GROUPS" => &mut access.fairshare_groups,
            "APPS" => &mut access.apps,
            "PROJECTS" => &mut access.projects,
            "LIC_PROJECTS" => &mut access.lic_projects,
            _ => {
                let near = nearest(&part.word.text, LISTS);
                let text = format!("unknown word <{}> of ACCESS_CONTROL", shown(&part.word.text));
                v.diags.add_near(Severity::Error, &part.word.pos, text, near);
                continue;
            }
        };
        let Some(inner) = part.inner.filter(|inner| !inner.text.is_empty()) else {
            v.bad("ACCESS_CONTROL", &part.word, "names in brackets are wanted");
            continue;
        };
        list.extend(words(&inner).map(|word| UserTerm {
            name: word.text.strip_suffix('/').unwrap_or(&word.text).to_owned(),
            pos: word.pos,
            ..UserTerm::default()
        }));
    }
}

fn goals(class: &mut ServiceClassConf, v: &mut Values<'_>) {
    let Some(value) = v.raw.get("GOALS") else { return };
    if value.text.eq_ignore_ascii_case("guarantee") {
        class.guarantee = true;
        return;
    }
    let parts = match bracketed(value) {
        Ok(parts) => parts,
        Err(rest) => return v.bad("GOALS", &rest, "[goal] ... is wanted"),
    };
    for part in &parts {
        let Some(inner) = part.inner.as_ref().filter(|_| part.word.text.is_empty()) else {
            v.bad("GOALS", &part.word, "[goal] ... is wanted");
            continue;
        };
        if inner.text.eq_ignore_ascii_case("guarantee") {
            class.guarantee = true;
        } else if let Some(goal) = goal(inner, v) {
            class.goals.push(goal);
        }
    }
    if class.guarantee && parts.len() > 1 {
        v.bad("GOALS", value, "GUARANTEE goes with no other goal");
    }
    let unbounded = |part: &&RawParam| !part.text.contains('(');
    let mut inner = parts.iter().filter_map(|part| part.inner.as_ref());
    if let Some(goal) = inner.find(unbounded).filter(|_| class.goals.len() > 1) {
        let text = "a goal without timeWindow is always active: it must be the only one";
        v.diags.error(&goal.pos, text);
    }
}

/// CONTROL_ACTION: `VIOLATION_PERIOD[minutes] CMD [command]`; the command may have brackets.
fn control_action(v: &mut Values<'_>) -> Option<ControlActionConf> {
    let value = v.raw.get("CONTROL_ACTION")?;
    let Some((minutes, command)) = action_parts(&value.text) else {
        v.bad("CONTROL_ACTION", value, "VIOLATION_PERIOD[minutes] CMD[command] is wanted");
        return None;
    };
    let known = minutes.parse::<u32>().ok().filter(|n| (1..=MAX_MINUTES).contains(n));
    let Some(minutes) = known else {
        let want = format!("minutes from 1 to {MAX_MINUTES} are wanted");
        v.bad("CONTROL_ACTION", &piece(value, minutes), &want);
        return None;
    };
    if command.is_empty() {
        v.bad("CONTROL_ACTION", value, "a command is wanted in CMD[]");
        return None;
    }
    Some(ControlActionConf { minutes, command: command.to_owned() })
}

/// The texts in the brackets of CONTROL_ACTION.
fn action_parts(text: &str) -> Option<(&str, &str)> {
    let (word, rest) = text.trim().split_once('[')?;
    let (minutes, rest) = rest.split_once(']')?;
    let (second, rest) = rest.split_once('[')?;
    let named = word.trim().eq_ignore_ascii_case("VIOLATION_PERIOD")
        && second.trim().eq_ignore_ascii_case("CMD");
    named.then_some((minutes.trim(), rest.strip_suffix(']')?.trim()))
}

/// One goal: `VELOCITY 5 timeWindow (8:30-16:30)`.
fn goal(of: &RawParam, v: &mut Values<'_>) -> Option<GoalConf> {
    let (head, window) = match of.text.find('(') {
        Some(open) => (&of.text[..open], Some(&of.text[open..])),
        None => (of.text.as_str(), None),
    };
    let mut words = head.split_whitespace().peekable();
    let word = words.next().unwrap_or_default();
    let mut number = || {
        let n = words.next_if(|word| !word.eq_ignore_ascii_case("timeWindow"))?;
        n.parse::<u32>().ok().filter(|n| (1..=MAX_JOBS).contains(n))
    };
    let kind = match word.to_ascii_uppercase().as_str() {
        "DEADLINE" => Some(GoalKind::Deadline),
        "VELOCITY" => number().map(GoalKind::Velocity),
        "THROUGHPUT" => number().map(GoalKind::Throughput),
        _ => {
            let text = format!("unknown goal <{}>", shown(word));
            let near = nearest(&word.to_ascii_uppercase(), GOALS);
            v.diags.add_near(Severity::Error, &of.pos_of(word), text, near);
            return None;
        }
    };
    let Some(kind) = kind else {
        v.bad("GOALS", of, &format!("{word} and a number of jobs from 1 to {MAX_JOBS} is wanted"));
        return None;
    };
    let keyword = words.next();
    let named = keyword.is_none_or(|word| word.eq_ignore_ascii_case("timeWindow"));
    let closed = window.is_none_or(|window| window.ends_with(')'));
    if !named || keyword.is_some() != window.is_some() || words.next().is_some() || !closed {
        v.bad("GOALS", of, "timeWindow (begin-end ...) is wanted behind the goal");
        return None;
    }
    let inner = window.map_or("", |window| window[1..].trim_end_matches(')').trim());
    if kind == GoalKind::Deadline && inner.is_empty() {
        v.bad("GOALS", of, "DEADLINE needs a timeWindow (begin-end)");
        return None;
    }
    if let Err(bad) = Windows::parse(inner) {
        let at = of.text.find(&bad.word).map_or(of.pos.clone(), |at| of.pos_at(at));
        let text = format!("bad value <{}> of GOALS", shown(&bad.word));
        let want = "[day:]hour[:minute]-[day:]hour[:minute] is wanted";
        v.diags.error(&at, format!("{text}: {want}"));
        return None;
    }
    let pos = piece(of, word).pos;
    Some(GoalConf { kind, window: inner.to_owned(), pos })
}
