//! The table of brsvs, and its long format.

use jiff::tz::TimeZone;
use lsf::cli::clock::Clock;
use lsf::cli::long_format::clean;
use lsf::model::reservation::ReservationKind;
use lsf::proto::reservation::ReservationInfo;
use std::fmt::Write;

/// Columns of the ID, the type, the users, the slots and the hosts.
const ID: usize = 11;
const TYPE: usize = 9;
const USER: usize = 9;
const SLOTS: usize = 11;
const HOSTS: usize = 13;

pub fn table(rows: &[ReservationInfo], wide: bool, zone: &TimeZone) -> String {
    let mut out = head();
    rows.iter().for_each(|row| line(&mut out, row, wide, zone));
    out
}

pub fn long(rows: &[ReservationInfo], wide: bool, zone: &TimeZone) -> String {
    let one = |row: &ReservationInfo| {
        let mut out = head();
        line(&mut out, row, wide, zone);
        details(&mut out, row, zone);
        out
    };
    rows.iter().map(one).collect::<Vec<_>>().join("\n")
}

fn head() -> String {
    let (id, of) = (format!("{:<ID$}", "RSVID"), format!("{:<TYPE$}", "TYPE"));
    let (user, slots) = (format!("{:<USER$}", "USER"), format!("{:<SLOTS$}", "NCPUS"));
    format!("{id} {of} {user} {slots} {:<HOSTS$} TIME_WINDOW\n", "RSV_HOSTS")
}

fn line(out: &mut String, row: &ReservationInfo, wide: bool, zone: &TimeZone) {
    let cut = |text: String, most: usize| match wide {
        true => text,
        false => text.chars().take(most).collect(),
    };
    let user = match row.kind {
        ReservationKind::System => "system".to_string(),
        _ => clean(&row.users.join(" ")),
    };
    let used: u64 = row.hosts.iter().map(|of| of.1).sum();
    let all: u64 = row.hosts.iter().map(|of| of.2).sum();
    let slots = match row.kind {
        ReservationKind::System => all.to_string(),
        _ => format!("{used}/{all}"),
    };
    let host =
        |(host, used, all, _): &(String, u64, u64, u64)| format!("{}:{used}/{all}", clean(host));
    let first = row.hosts.first().map_or("-".to_string(), host);
    let window = clean(&Clock::of(zone.clone()).window(&row.time));
    let id = cut(clean(&row.id), ID);
    let _ = write!(out, "{id:<ID$} {:<TYPE$} {:<USER$} ", row.kind.word(), cut(user, USER));
    let _ = writeln!(out, "{slots:<SLOTS$} {first:<HOSTS$} {}", window);
    let before = ID + TYPE + USER + SLOTS + 4;
    for of in row.hosts.iter().skip(1) {
        let _ = writeln!(out, "{:before$}{}", "", host(of));
    }
}

fn details(out: &mut String, row: &ReservationInfo, zone: &TimeZone) {
    let clock = Clock::of(zone.clone());
    let span = |(from, to): (i64, i64)| {
        let mut text = String::new();
        clock.full(&mut text, from);
        text.push_str(" - ");
        clock.full(&mut text, to);
        text
    };
    let state = if row.active { "Active" } else { "Inactive" };
    let _ = writeln!(out, "Reservation Status: {state}");
    if let Some(period) = row.period {
        let _ = writeln!(out, "Next Active Period:\n\t{}", span(period));
    }
    for span in row.disabled.iter().map(|of| span(*of)) {
        let _ = writeln!(out, "Disabled Period:\n\t{span}");
    }
    let _ = writeln!(out, "Creator: {}", clean(&row.creator));
    let open = if row.open { "OPEN" } else { "CLOSED" };
    let _ = writeln!(out, "Reservation Type: {open}");
    let _ = writeln!(out, "Resource Unit: {}", if row.by_host { "Host" } else { "Slot" });
    if !row.description.is_empty() {
        let _ = writeln!(out, "Description: {}", clean(&row.description));
    }
    if !row.queues.is_empty() {
        let queues = clean(&row.queues.join(" "));
        let _ = writeln!(out, "Queues that can use AR hosts before AR starts: {queues}");
    }
    if row.no_suspension {
        let _ = writeln!(out, "Allow non-AR jobs to continue running after AR starts: Yes");
    }
    let s = &row.scripts;
    for (name, script, minutes) in
        [("Pre", &s.pre, s.pre_minutes), ("Post", &s.post, s.post_minutes)]
    {
        if !script.is_empty() {
            let script = clean(script);
            let _ = writeln!(out, "{name}-AR Script: {script} (not acted on)");
            let _ = writeln!(out, "{name}-AR Time: {minutes}");
        }
    }
    for (name, jobs) in ["FINISHED", "PEND", "RUN", "SUSP"].iter().zip(&row.jobs) {
        if !jobs.is_empty() {
            let jobs = jobs.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
            let _ = writeln!(out, "{name} Jobs: {jobs}");
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use lsf::model::reservation::ReservationTime;

    /// Thursday 2026-11-12 06:00 UTC.
    pub const BEGIN: i64 = 1_794_463_200;

    pub fn rows() -> Vec<ReservationInfo> {
        let host = |name: &str, used, all| (name.to_string(), used, all, 1024);
        let user = ReservationInfo {
            id: "user1#0".into(),
            users: vec!["user1".into()],
            creator: "user1".into(),
            hosts: vec![host("hostA", 0, 1024)],
            time: ReservationTime::Once { begin: BEGIN, end: BEGIN + 7200 },
            period: Some((BEGIN, BEGIN + 7200)),
            ..ReservationInfo::default()
        };
        let group = ReservationInfo {
            id: "groupA#0_of_the_year".into(),
            kind: ReservationKind::Group,
            users: vec!["groupA".into()],
            hosts: vec![host("hostA", 4, 1024), host("hostB", 0, 1024)],
            time: ReservationTime::Weekly("3:0:0-3:3:0".into()),
            active: true,
            open: true,
            jobs: [vec![203, 204], vec![], vec![313], vec![315]],
            ..user.clone()
        };
        let system = ReservationInfo {
            id: "system#0".into(),
            kind: ReservationKind::System,
            users: vec![],
            time: ReservationTime::Weekly("5:18:0-5:20:0".into()),
            ..user.clone()
        };
        vec![user, group, system]
    }

    #[test]
    fn table_of_reservations_has_the_layout_of_lsf() {
        assert_eq!(
            table(&rows(), false, &TimeZone::UTC),
            include_str!("../../tests/expected/brsvs.txt")
        );
        let wide = table(&rows(), true, &TimeZone::UTC);
        assert!(wide.contains("groupA#0_of_the_year group"), "{wide}");
    }

    #[test]
    fn long_format_names_state_period_and_jobs() {
        let text = long(&rows(), false, &TimeZone::UTC);
        assert_eq!(text, include_str!("../../tests/expected/brsvs-l.txt"));
    }
}
