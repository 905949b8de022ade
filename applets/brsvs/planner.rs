//! The weekly planner of brsvs: for each host the slots that are reserved in each period of ten
//! minutes, in each week in which there is a reservation that does not come again. A host with
//! recurring ones alone has one week, without a date.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use lsf::cli::client;
use lsf::cli::ctx::Ctx;
use lsf::cli::front::Exit;
use lsf::cli::long_format::clean;
use lsf::lang::civil::instant;
use lsf::lang::occurrences::Occurrences;
use lsf::lang::window::PERIOD;
use lsf::model::reason::{err, err_text};
use lsf::model::reservation::{Reservation, ReservationTime};
use lsf::proto::client::ClientMsg;
use lsf::proto::reservation::ReservationInfo;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Seconds of a period of ten minutes, and such periods of a day.
const SECS: i64 = PERIOD as i64 * 60;
const PERIODS: i64 = 144;
/// Most weeks of one reservation that are shown.
const MOST_WEEKS: usize = 60;

/// The hosts that the words of -p mean.
pub fn named(ctx: &mut Ctx, words: &str) -> Result<BTreeSet<String>, Exit> {
    let names = words.split_whitespace().map(str::to_string).collect();
    match client::ask(ctx, ClientMsg::Hosts { names, res_req: String::new() }) {
        Ok(ClientMsg::HostRows { rows }) => Ok(rows.into_iter().map(|row| row.name).collect()),
        Ok(_) => Err(Exit::fail(err_text(err::MBATCHD))),
        Err(e) => Err(Exit::fail(clean(&e.words()))),
    }
}

/// A reservation on one host.
type OnHost = (Occurrences, u64);

pub fn planner(rows: &[ReservationInfo], short: bool, now: i64, zone: &TimeZone) -> String {
    let mut hosts: BTreeMap<&str, (u64, Vec<OnHost>)> = BTreeMap::new();
    for row in rows {
        let r = Reservation {
            time: row.time.clone(),
            disabled: row.disabled.clone(),
            ..Reservation::default()
        };
        let Some(when) = Occurrences::of(&r) else { continue };
        for (host, _, slots, max) in &row.hosts {
            let of = hosts.entry(host).or_default();
            of.0 = *max;
            of.1.push((when.clone(), *slots));
        }
    }
    let mut out = String::new();
    for (host, (max, all)) in hosts {
        let _ = writeln!(out, "\nHOST: {} (MAX = {max})", clean(host));
        let weeks = weeks(rows, host, zone);
        let this = sunday(now, zone);
        match weeks.is_empty() {
            true => week(&mut out, this, &all, short, zone),
            false => {
                for first in weeks {
                    let last = (0..6).try_fold(first, |day, _| day.tomorrow()).unwrap_or(first);
                    let _ = writeln!(out, "Week: {} - {}", shown(first), shown(last));
                    week(&mut out, first, &all, short, zone);
                }
            }
        }
    }
    out
}

fn shown(day: Date) -> String {
    format!("{}/{}/{}", day.month(), day.day(), day.year())
}

/// The Sunday on which the week of an instant begins.
fn sunday(at: i64, zone: &TimeZone) -> Date {
    let mut day = zone.to_datetime(Timestamp::from_second(at).unwrap_or_default()).date();
    while day.weekday() != jiff::civil::Weekday::Sunday {
        match day.yesterday() {
            Ok(before) => day = before,
            Err(_) => break,
        }
    }
    day
}

/// The weeks of the reservations of a host that do not come again.
fn weeks(rows: &[ReservationInfo], host: &str, zone: &TimeZone) -> BTreeSet<Date> {
    let mut all = BTreeSet::new();
    for row in rows.iter().filter(|row| row.hosts.iter().any(|of| of.0 == host)) {
        if let ReservationTime::Once { begin, end } = row.time {
            let (mut week, last) = (sunday(begin, zone), sunday(end - 1, zone));
            for _ in 0..MOST_WEEKS {
                all.insert(week);
                let next = (0..7).try_fold(week, |day, _| day.tomorrow());
                match next {
                    Ok(next) if week < last => week = next,
                    _ => break,
                }
            }
        }
    }
    all
}

fn week(out: &mut String, first: Date, all: &[OnHost], short: bool, zone: &TimeZone) {
    out.push_str("Hour:Min    Sun     Mon     Tue     Wed     Thu     Fri     Sat\n");
    let _ = writeln!(out, "{}", "-".repeat(67));
    let mut days = vec![first];
    while days.len() < 7
        && let Some(Ok(next)) = days.last().map(|day| day.tomorrow())
    {
        days.push(next);
    }
    for period in 0..PERIODS {
        let minute = period * SECS / 60;
        let (hour, min) = (minute / 60, minute % 60);
        let slots: Vec<u64> =
            days.iter().map(|day| reserved(*day, (hour, min), all, zone)).collect();
        // a line without any slot tells nothing
        if short && slots.iter().all(|n| *n == 0) {
            continue;
        }
        let _ = write!(out, "{:<11}", format!("{hour}:{min}"));
        let cells = slots.iter().map(|n| format!(" {n:<7}")).collect::<String>();
        let _ = writeln!(out, "{}", cells.trim_end());
    }
}

/// Slots reserved in a period of a day.
fn reserved(day: Date, (hour, min): (i64, i64), all: &[OnHost], zone: &TimeZone) -> u64 {
    let at = instant(day.at(hour as i8, min as i8, 0, 0), zone);
    let holds = |when: &Occurrences| {
        when.at(at, zone).is_some()
            || when.next(at, zone).is_some_and(|next| next.begin < at + SECS)
    };
    all.iter().filter(|of| holds(&of.0)).map(|of| of.1).sum()
}

#[cfg(test)]
mod tests {
    use super::super::table::tests::{BEGIN, rows};
    use super::*;

    #[test]
    fn planner_has_a_table_for_each_host_and_week() {
        let text = planner(&rows(), true, BEGIN, &TimeZone::UTC);
        assert_eq!(text, include_str!("../../tests/expected/brsvs-z.txt"));
        let whole = planner(&rows(), false, BEGIN, &TimeZone::UTC);
        assert_eq!(whole.lines().count(), 2 * (144 + 4) + 1);
    }
}
