//! Fields of mbatchd that other rooms can reach. Each struct of src/batch is an owner or a record.
//!
//! - An **owner** keeps together what changes with time. Its fields are private to its room; its
//!   methods say what is done.
//! - A **record** is a value with no rule among its fields, named in [`RECORDS`]: other rooms read
//!   its fields. They cannot change one that an owner keeps: no function hands it out to be
//!   changed, and none of its methods that other rooms can call takes `&mut self`.
//!
//! The methods of all rooms are methods of the object in mbatchd.rs, and each step has one context
//! (step.rs): the fields of these two are private to src/batch.

use super::{ROOMS, report, root, sources};
use std::collections::BTreeMap;

/// The records of each room.
const RECORDS: &[(&str, &[&str])] = &[
    (
        "state",
        &[
            "Allowance",
            "AskedSlots",
            "Attachment",
            "Bar",
            "Change",
            "CheckpointState",
            "Elem",
            "ElementSpec",
            "ElementEnd",
            "Exec",
            "First",
            "Held",
            "HostControl",
            "HostSlots",
            "Job",
            "JobGroup",
            "KeepEnded",
            "Leaving",
            "UserSpace",
            "LeftAttempt",
            "Message",
            "Pend",
            "PreemptionHistory",
            "QueueControl",
            "ReservedHost",
            "Resize",
            "ResizeUnderWay",
            "Run",
            "Share",
            "SlotReservation",
            "Slots",
            "Soft",
            "Switched",
            "Tally",
            "Tries",
        ],
    ),
    (
        "site",
        &[
            "Application",
            "Bound",
            "Caller",
            "Consumer",
            "Goal",
            "ConsumerRules",
            "Counter",
            "ConfiguredHost",
            "ApsFormula",
            "ApsInputs",
            "ApsValue",
            "Factors",
            "HostRule",
            "Loans",
            "Lookup",
            "Member",
            "NlbKey",
            "Package",
            "Pool",
            "PoolResource",
            "PreemptionLimits",
            "Queue",
            "RetryLimits",
            "Roles",
            "Rule",
            "Scope",
            "ShareStep",
            "ShareTree",
            "Site",
            "SlotPool",
            "Variant",
        ],
    ),
    ("cluster", &["HostRuntime", "KnownWords", "ListedHost", "NlbList"]),
    (
        "usage",
        &[
            "ChargeKey",
            "Claim",
            "ClaimedHost",
            "ClaimedResource",
            "ClassTally",
            "ClassWork",
            "ConsumerLimits",
            "Counted",
            "Demand",
            "GroupTally",
            "JobFacts",
            "Finder",
            "GoalLook",
            "GoalNow",
            "Held",
            "Holder",
            "HostFacts",
            "PoolNeed",
            "HostOffer",
            "PoolJob",
            "PoolNow",
            "PreemptedBy",
            "Requirement",
            "ShareNow",
            "SlotDemand",
            "Term",
            "UsedTime",
            "ReservationLook",
            "WindowLook",
        ],
    ),
    (
        "soft_state",
        &[
            "Choice",
            "Deciding",
            "Group",
            "HeldEnd",
            "LostControl",
            "Placed",
            "Query",
            "Report",
            "Request",
            "Row",
            "Subject",
            "Waiting",
        ],
    ),
    ("lifecycle", &["Accepted", "Asking", "Recovered"]),
    (
        "sched",
        &[
            "Allocation",
            "Alternative",
            "NotReady",
            "Preemption",
            "Requirement",
            "Tasks",
            "View",
            "WantedSlots",
        ],
    ),
    ("query", &["RowForm"]),
];

/// The name of the struct that a line begins.
fn struct_name(line: &str) -> Option<&str> {
    let rest = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.strip_prefix(' ')?,
        None => line,
    };
    let name = rest.strip_prefix("struct ")?;
    name.split(|c: char| !c.is_ascii_alphanumeric()).next()
}

/// Does a line of a struct declare a field that other rooms can reach? `head`: it stands in the
/// mod.rs of a room, whose parent is src/batch.
fn is_shown(line: &str, head: bool) -> bool {
    let Some(rest) = line.strip_prefix("    pub") else { return false };
    let rest = rest.strip_prefix("(crate)").unwrap_or(rest);
    let rest = rest.strip_prefix("(super)").filter(|_| head).unwrap_or(rest);
    let Some((name, _)) = rest.trim_start().split_once(": ") else { return false };
    rest.starts_with(' ') && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Does a line begin a function that other rooms can call?
fn is_shown_function(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("pub fn ") || line.starts_with("pub(crate) fn ")
}

/// The head of the function that begins at a line.
fn head(code: &[String], at: usize) -> String {
    let lines = code[at..].iter().map(|line| line.trim());
    let mut head = String::new();
    for line in lines {
        head.push_str(line);
        head.push(' ');
        if line.ends_with('{') || line.ends_with(';') || line.ends_with('}') {
            break;
        }
    }
    head
}

/// Does a head hand out a value of this type to be changed?
fn hands_out(head: &str, record: &str) -> bool {
    let Some((_, result)) = head.rsplit_once("->") else { return false };
    let mut rest = result;
    while let Some((_, after)) = rest.split_once("&mut ") {
        let name = after.split(|c: char| !c.is_ascii_alphanumeric()).next();
        if name == Some(record) {
            return true;
        }
        rest = after;
    }
    false
}

fn is_record(room: &str, name: &str) -> bool {
    RECORDS.iter().any(|(of, names)| *of == room && names.contains(&name))
}

/// The files of src/batch: room, path and lines.
fn of_rooms() -> Vec<(&'static str, String, Vec<String>)> {
    let found = sources().into_iter().filter_map(|source| {
        let path = source.path.strip_prefix(root()).unwrap().to_str().unwrap();
        let file = path.strip_prefix("src/batch/")?;
        let first = file.split('/').next().unwrap();
        let (room, _) = ROOMS.iter().find(|(room, _)| *room == first)?;
        Some((*room, path.to_string(), source.code))
    });
    found.collect()
}

/// The fields that other rooms can reach, by room and struct.
fn shown_fields() -> BTreeMap<(&'static str, String), usize> {
    let mut shown: BTreeMap<(&str, String), usize> = BTreeMap::new();
    for (room, path, code) in of_rooms() {
        let head = path == format!("src/batch/{room}/mod.rs");
        let mut name = None;
        for line in &code {
            match struct_name(line) {
                Some(begun) => name = Some(begun.to_string()),
                None if line == "}" => name = None,
                None => {}
            }
            if let Some(name) = name.as_ref().filter(|_| is_shown(line, head)) {
                *shown.entry((room, name.clone())).or_default() += 1;
            }
        }
    }
    shown
}

#[test]
fn owners_in_mbatchd_keep_their_fields_to_their_rooms() {
    let shown = shown_fields();
    assert!(shown.len() > 40, "{shown:?}");
    let of_owners = shown.iter().filter(|((room, name), _)| !is_record(room, name));
    let wrong = of_owners.map(|((room, name), n)| format!("{room}: {n} fields of {name}"));
    report("fields", wrong.collect());
}

#[test]
fn records_in_mbatchd_have_no_rule_to_break() {
    let shown = shown_fields();
    let mut wrong = Vec::new();
    for (room, names) in RECORDS {
        for name in *names {
            if !shown.contains_key(&(*room, name.to_string())) {
                wrong.push(format!("{room}: {name} shows no field; it is no record any more"));
            }
        }
    }
    for (room, path, code) in of_rooms() {
        let mut of = "";
        for (at, line) in code.iter().enumerate() {
            if let Some(begun) = line.strip_prefix("impl ") {
                of = begun.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or("");
            } else if line.starts_with('}') {
                of = "";
            }
            if !is_shown_function(line) {
                continue;
            }
            let head = head(&code, at);
            if is_record(room, of) && head.contains("&mut self") {
                wrong.push(format!("{path}:{}: {of} changes itself: an owner", at + 1));
            }
            let all = RECORDS.iter().find(|(of, _)| *of == room).map_or(&[][..], |(_, all)| *all);
            for record in all.iter().filter(|record| hands_out(&head, record)) {
                wrong.push(format!("{path}:{}: hands out a {record} to be changed", at + 1));
            }
        }
    }
    report("records", wrong);
}

#[test]
fn fields_and_functions_that_other_rooms_can_reach_are_told_from_others() {
    assert!(is_shown("    pub names: Names,", false));
    assert!(is_shown("    pub(crate) left: u32,", false));
    assert!(is_shown("    pub(super) left: u32,", true));
    assert!(!is_shown("    names: Names,", true));
    assert!(!is_shown("    pub(super) names: Names,", false));
    assert!(!is_shown("    pub fn names(&self, id: u32) -> &Names {", false));
    assert_eq!(struct_name("pub(crate) struct Walk<'a> {"), Some("Walk"));
    assert_eq!(struct_name("struct Lone;"), Some("Lone"));
    assert_eq!(struct_name("    pub names: Names,"), None);
    assert!(is_shown_function("    pub(crate) fn next(&mut self) {"));
    assert!(!is_shown_function("    pub(super) fn next(&mut self) {"));
    assert!(hands_out("pub fn run(&mut self, key: JobKey) -> Option<&mut Run> {", "Run"));
    assert!(!hands_out("pub fn run(&mut self, key: JobKey) -> Option<&Run> {", "Run"));
    assert!(!hands_out("pub fn change(run: &mut Run) -> u32 {", "Run"));
}
