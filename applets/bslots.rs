//! bslots: the slots that jobs could backfill, and for how long (bslots(1)).

use argh::{ArgsInfo, FromArgs};
use lsf::cli::client::{self, ClientError};
use lsf::cli::ctx::Ctx;
use lsf::cli::front::{self, Exit};
use lsf::cli::long_format::{clean, push_clean};
use lsf::conf::units::minutes;
use lsf::proto::client::{ClientMsg, SlotWindow};
use std::fmt::Write;

/// Shows slots and backfill windows that are available.
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// long format: the hosts, with their slots
    #[argh(switch, short = 'l')]
    long: bool,
    /// only windows of at least so many slots
    #[argh(option, short = 'n', arg_name = "slots")]
    slots: Option<String>,
    /// only hosts that satisfy the requirement
    #[argh(option, short = 'R', arg_name = "res_req")]
    requirement: Option<String>,
    /// only windows in which a job could run so long: [hour:]minute
    #[argh(option, short = 'W', arg_name = "time")]
    time: Option<String>,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    match show(ctx) {
        Ok(code) => code,
        Err(exit) => exit.show(ctx),
    }
}

fn show(ctx: &mut Ctx) -> Result<i32, Exit> {
    let o = front::parse_of::<Opts>(ctx)?.options;
    let name = ctx.name;
    let bad = |option: &str, text: &str| {
        let words = format!("Bad argument for option {option}: {}", clean(text));
        front::usage_error::<Opts>(name, &words)
    };
    let number = |text: &String| {
        let slots = text.parse::<u64>().ok().filter(|slots| *slots > 0);
        slots.ok_or_else(|| bad("-n", text))
    };
    let slots = o.slots.as_ref().map(number).transpose()?.unwrap_or(1);
    let period = |text: &String| {
        let secs = minutes(text).filter(|secs| *secs > 0);
        secs.ok_or_else(|| bad("-W", text))
    };
    let secs = o.time.as_ref().map(period).transpose()?.unwrap_or(1);
    let res_req = o.requirement.clone().unwrap_or_default();
    let rows = match client::ask(ctx, ClientMsg::Slots { res_req }) {
        Ok(ClientMsg::SlotRows { rows }) => rows,
        other => {
            let e = other.err().unwrap_or(ClientError::Unexpected);
            return Err(Exit::fail(clean(&e.words())));
        }
    };
    let fits = |row: &&SlotWindow| total(row) >= slots && row.secs.is_none_or(|long| long >= secs);
    let rows: Vec<&SlotWindow> = rows.iter().filter(fits).collect();
    let text = text(&rows, o.long);
    let _ = ctx.out.write_all(text.as_bytes());
    Ok(0)
}

/// The slots of all hosts.
fn total(row: &SlotWindow) -> u64 {
    row.hosts.iter().map(|host| host.1).sum()
}

/// `UNLIMITED`, `2 hours 30 minutes`, `45 minutes`, `20 seconds`.
fn length(secs: Option<u64>) -> String {
    let Some(secs) = secs else { return "UNLIMITED".to_owned() };
    let (hours, mins) = (secs / 3600, secs % 3600 / 60);
    let of = |n: u64, unit: &str| format!("{n} {unit}{}", if n == 1 { "" } else { "s" });
    match (hours, mins) {
        (0, 0) => of(secs, "second"),
        (0, _) => of(mins, "minute"),
        _ => format!("{} {}", of(hours, "hour"), of(mins, "minute")),
    }
}

fn text(rows: &[&SlotWindow], long: bool) -> String {
    if rows.is_empty() {
        return "No backfill window exists at this time\n".to_owned();
    }
    let mut out = String::new();
    if !long {
        out.push_str("SLOTS          RUNTIME\n");
    }
    for row in rows {
        let (slots, time) = (total(row), length(row.secs));
        if !long {
            let _ = writeln!(out, "{slots:<15}{time}");
            continue;
        }
        let _ = write!(out, "SLOTS: {slots}\nRUNTIME: {time}\nHOSTS:");
        for (host, slots) in &row.hosts {
            let _ = write!(out, " {slots}*");
            push_clean(&mut out, host);
        }
        out.push_str("\n\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(secs: Option<u64>, hosts: &[(&str, u64)]) -> SlotWindow {
        let hosts = hosts.iter().map(|(host, slots)| (host.to_string(), *slots)).collect();
        SlotWindow { secs, hosts }
    }

    #[test]
    fn windows_are_shown_as_the_documentation_shows_them() {
        let rows = [
            window(None, &[("hosta", 1)]),
            window(Some(5400), &[("hosta", 1), ("hostb", 2)]),
            window(Some(2700), &[("hosta", 7)]),
        ];
        let rows: Vec<&SlotWindow> = rows.iter().collect();
        assert_eq!(
            text(&rows, false),
            "SLOTS          RUNTIME\n\
             1              UNLIMITED\n\
             3              1 hour 30 minutes\n\
             7              45 minutes\n"
        );
        assert_eq!(
            text(&rows[1..2], true),
            "SLOTS: 3\nRUNTIME: 1 hour 30 minutes\nHOSTS: 1*hosta 2*hostb\n\n"
        );
        assert_eq!(text(&[], false), "No backfill window exists at this time\n");
    }

    #[test]
    fn length_of_a_window_is_told_in_hours_and_minutes() {
        for (secs, told) in [
            (3600, "1 hour 0 minutes"),
            (7260, "2 hours 1 minute"),
            (60, "1 minute"),
            (59, "59 seconds"),
        ] {
            assert_eq!(length(Some(secs)), told);
        }
    }
}
