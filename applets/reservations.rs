//! Common code of brsvadd, brsvmod, brsvdel, brsvsub, brsvjob and brsvs: times, lists of names, and
//! the words about what was done.

use jiff::Timestamp;
use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use lsf::cli::client;
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::front::Exit;
use lsf::cli::long_format::clean;
use lsf::lang::civil::instant;
use lsf::model::reason::{err, err_text};
use lsf::model::reservation::{ReservationKind, ReservationScripts};
use lsf::proto::client::ClientMsg;
use lsf::proto::reservation::ReservationRequest;
use lsf::{errln, outln};
use std::ffi::OsString;
use std::time::SystemTime;

/// The options of `brsvadd -E`, `-Et`, `-Ep` and `-Ept`.
pub type ScriptOptions = [Option<String>; 4];

/// Seconds since the epoch.
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

/// `[[[year:]month:]day:]hour:minute`; what is left out is that of the present.
pub fn time(text: &str, now: i64, zone: &TimeZone) -> Option<i64> {
    let (date, clock) = {
        let mut parts: Vec<&str> = text.trim().split(':').collect();
        let minute = parts.pop()?;
        (parts.clone(), (parts.pop()?, minute))
    };
    let given = &date[..date.len() - 1];
    let clock = Time::new(small(clock.0)?, small(clock.1)?, 0, 0).ok()?;
    Some(instant(day(given, now, zone)?.to_datetime(clock), zone))
}

/// The day of `[[year:]month:]day`, or with nothing the present one.
fn day(given: &[&str], now: i64, zone: &TimeZone) -> Option<Date> {
    let today = zone.to_datetime(Timestamp::from_second(now).ok()?).date();
    match given {
        [] => Some(today),
        [d] => Date::new(today.year(), today.month(), small(d)?).ok(),
        [m, d] => Date::new(today.year(), small(m)?, small(d)?).ok(),
        [y, m, d] => Date::new(number(y)?, small(m)?, small(d)?).ok(),
        _ => None,
    }
}

/// `begin_date-end_date` of `brsvmod disable -td`: from the first instant of one day to the first
/// one after the other; one day alone stands for itself.
pub fn dates(text: &str, now: i64, zone: &TimeZone) -> Option<(i64, i64)> {
    let (from, to) = text.trim().split_once('-').unwrap_or((text.trim(), text.trim()));
    let date = |text: &str| day(&text.split(':').collect::<Vec<_>>(), now, zone);
    let begin = |date: Date| instant(date.to_datetime(Time::midnight()), zone);
    let (from, to) = (date(from)?, date(to)?.tomorrow().ok()?);
    (from < to).then(|| (begin(from), begin(to)))
}

fn number(text: &str) -> Option<i16> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| digits && text.len() <= 4)
}

fn small(text: &str) -> Option<i8> {
    i8::try_from(number(text)?).ok()
}

/// Names parted by blanks.
pub fn list(text: &Option<String>) -> Vec<String> {
    text.iter().flat_map(|text| text.split_whitespace()).map(str::to_string).collect()
}

/// A number of at least 1.
pub fn count(option: &str, text: &str) -> Result<u32, Exit> {
    let bad = || Exit::fail(format_args!("{}: Bad argument for option {option}.", clean(text)));
    text.trim().parse().ok().filter(|n| *n > 0).ok_or_else(bad)
}

/// -unit: are whole hosts meant?
pub fn by_host(unit: &Option<String>) -> Result<bool, Exit> {
    match unit.as_deref().map(str::trim) {
        None | Some("slot") => Ok(false),
        Some("host") => Ok(true),
        Some(other) => {
            Err(Exit::fail(format_args!("{}: slot or host is wanted for -unit.", clean(other))))
        }
    }
}

/// -u and -g: whom a reservation is for.
pub fn users(
    users: &Option<String>,
    groups: &Option<String>,
) -> Result<(ReservationKind, Vec<String>), Exit> {
    match (users, groups) {
        (Some(_), Some(_)) => Err(Exit::fail("-u and -g cannot be combined.")),
        (None, Some(_)) => Ok((ReservationKind::Group, list(groups))),
        _ => Ok((ReservationKind::User, list(users))),
    }
}

/// The scripts before and after a reservation.
pub fn scripts(ctx: &mut Ctx, given: &ScriptOptions) -> Result<ReservationScripts, Exit> {
    let [pre, pre_minutes, post, post_minutes] = given;
    let minutes = |option: &str, text: &Option<String>| {
        text.as_deref().map_or(Ok(0), |text| count(option, text))
    };
    if pre.is_some() || post.is_some() {
        errln!(ctx, "{}: the scripts of -E and -Ep are kept but not acted on yet", ctx.name);
    }
    Ok(ReservationScripts {
        pre: pre.clone().unwrap_or_default(),
        pre_minutes: minutes("-Et", pre_minutes)?,
        post: post.clone().unwrap_or_default(),
        post_minutes: minutes("-Ept", post_minutes)?,
    })
}

/// The reservation of the command line; `None`: it names none, or several.
pub fn one(operands: &[OsString]) -> Option<String> {
    match operands {
        [id] => Some(id.to_string_lossy().into_owned()),
        _ => None,
    }
}

/// Has mbatchd do something about reservations, and says what it did.
pub fn change(ctx: &mut Ctx, request: ReservationRequest, did: &str) -> Result<i32, Exit> {
    let quoted = !matches!(request, ReservationRequest::Delete { .. });
    match client::ask(ctx, ClientMsg::Reservation(Box::new(request))) {
        Ok(ClientMsg::AdminDone { lines }) => {
            let mut code = 0;
            for line in &lines {
                let id = clean(&line.about);
                match line.code {
                    0 if quoted => outln!(ctx, "Reservation \"{id}\" is {did}"),
                    0 => outln!(ctx, "Reservation {id} is {did}"),
                    why => {
                        errln!(ctx, "Reservation {id}: {}", err_text(why));
                        code = FAIL;
                    }
                }
            }
            Ok(code)
        }
        Ok(_) => Err(Exit::fail(err_text(err::MBATCHD))),
        Err(e) => Err(Exit::fail(clean(&e.words()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Friday 2026-11-20 09:30:13 UTC.
    const NOW: i64 = 1_795_167_013;
    const DAY: i64 = 24 * 3600;
    const MIDNIGHT: i64 = NOW - NOW % DAY;

    #[test]
    fn time_takes_what_it_leaves_out_from_the_present() {
        let at = |text: &str| time(text, NOW, &TimeZone::UTC);
        assert_eq!(at("6:0"), Some(MIDNIGHT + 6 * 3600), "it may be past");
        assert_eq!(at("21:13:05"), Some(MIDNIGHT + DAY + 13 * 3600 + 300));
        assert_eq!(at("12:1:0:0"), Some(MIDNIGHT + 11 * DAY));
        assert_eq!(at("2027:1:1:0:0"), Some(MIDNIGHT + 42 * DAY));
        for bad in ["", "6", "6:", ":6", "25:0", "6:60", "31:6:0", "13:1:6:0", "x:0", "1:2:3:4:5:6"]
        {
            assert_eq!(at(bad), None, "{bad}");
        }
    }

    #[test]
    fn dates_reach_to_the_end_of_the_last_day() {
        let of = |text: &str| dates(text, NOW, &TimeZone::UTC);
        assert_eq!(of("2026:11:21-2026:11:22"), Some((MIDNIGHT + DAY, MIDNIGHT + 3 * DAY)));
        assert_eq!(of("20"), Some((MIDNIGHT, MIDNIGHT + DAY)));
        for bad in ["", "22-21", "x", "2026:2:30", "21-"] {
            assert_eq!(of(bad), None, "{bad}");
        }
    }
}
