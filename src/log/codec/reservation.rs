//! LSF_RESERVATION, LSF_RESERVATION_END and LSF_RESERVATION_NEXT: advance reservations
//! (lsb.events(5)).

use super::record::{put_head, put_list};
use super::record_error::RecordError;
use super::text::{Fields, put_int, put_str, put_u64};
use crate::model::event::Event;
use crate::model::reservation::{
    Reservation, ReservationFinish, ReservationKind, ReservationScripts, ReservationTime,
};

/// The record of lsb.acct about a period that is over.
const FINISH: &str = "EVENT_ADRSV_FINISH";

/// Options: the bits of LSF, and two of our own.
mod bits {
    pub const USER: u32 = 0x1;
    pub const GROUP: u32 = 0x2;
    pub const SYSTEM: u32 = 0x4;
    pub const RECURRING: u32 = 0x8;
    pub const OPEN: u32 = 0x40;
    pub const BY_HOST: u32 = 0x20_0000;
    pub const NO_SUSPENSION: u32 = 0x40_0000;
}

pub(super) fn put_event(out: &mut Vec<u8>, event: &Event) {
    match event {
        Event::Reservation(r) => put_reservation(out, r),
        // rsvId uid userName
        Event::ReservationEnd { id, uid, user } => {
            put_str(out, id.as_bytes());
            put_int(out, *uid);
            put_str(out, user.as_bytes());
        }
        // owner next
        Event::ReservationNext { owner, next } => {
            put_str(out, owner.as_bytes());
            put_int(out, *next);
        }
        _ => {}
    }
}

/// rsvReqTime options uid creator rsvId window description numUsers users… numHosts {host slots}…
/// numQueues queues… numDisabled {begin end}… preScript preMinutes postScript postMinutes.
fn put_reservation(out: &mut Vec<u8>, r: &Reservation) {
    put_int(out, r.created);
    put_int(out, options(r));
    put_int(out, r.creator_uid);
    put_str(out, r.creator.as_bytes());
    put_str(out, r.id.as_bytes());
    put_time(out, &r.time);
    put_str(out, r.description.as_bytes());
    put_list(out, &r.users);
    put_u64(out, r.hosts.len() as u64);
    for (host, slots) in &r.hosts {
        put_str(out, host.as_bytes());
        put_int(out, *slots);
    }
    put_list(out, &r.queues);
    put_u64(out, r.disabled.len() as u64);
    for (begin, end) in &r.disabled {
        put_int(out, *begin);
        put_int(out, *end);
    }
    put_str(out, r.scripts.pre.as_bytes());
    put_int(out, r.scripts.pre_minutes);
    put_str(out, r.scripts.post.as_bytes());
    put_int(out, r.scripts.post_minutes);
}

fn put_time(out: &mut Vec<u8>, time: &ReservationTime) {
    match time {
        ReservationTime::Once { begin, end } => put_str(out, format!("{begin}-{end}").as_bytes()),
        ReservationTime::Weekly(window) => put_str(out, window.as_bytes()),
    }
}

/// Appends the line of lsb.acct about a period that is over, newline included: rsvReqTime options
/// uid rsvId name window creator duration numReses {host slots}…
pub fn write_reservation_finish(finish: &ReservationFinish, out: &mut Vec<u8>) {
    let r = &finish.reservation;
    put_head(out, FINISH, finish.time);
    put_int(out, r.created);
    put_int(out, options(r));
    put_int(out, r.creator_uid);
    put_str(out, r.id.as_bytes());
    put_str(out, r.users.join(" ").as_bytes());
    put_time(out, &r.time);
    put_str(out, r.creator.as_bytes());
    put_int(out, finish.duration);
    put_u64(out, r.hosts.len() as u64);
    for (host, slots) in &r.hosts {
        put_str(out, host.as_bytes());
        put_int(out, *slots);
    }
    out.push(b'\n');
}

/// The period of a line of lsb.acct; none: it is another record.
///
/// # Errors
/// The line is no record, or a field of it is not what it should be.
pub fn read_reservation_finish(line: &[u8]) -> Result<Option<ReservationFinish>, RecordError> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let mut f = Fields::new(line);
    if f.text()? != FINISH {
        return Ok(None);
    }
    f.skip(1)?;
    let (time, created, options) = (f.num()?, f.num()?, f.num::<u32>()?);
    let (creator_uid, id, users, window) = (f.num()?, f.text()?, f.text()?, f.text()?);
    let (creator, duration) = (f.text()?, f.num()?);
    let when = get_time(&f, options, window)?;
    let mut hosts = Vec::new();
    for _ in 0..f.num::<u32>()? {
        hosts.push((f.text()?, f.num()?));
    }
    let reservation = Reservation {
        id,
        created,
        creator,
        creator_uid,
        kind: kind(options),
        users: users.split_whitespace().map(str::to_owned).collect(),
        hosts,
        time: when,
        open: options & bits::OPEN != 0,
        by_host: options & bits::BY_HOST != 0,
        no_suspension: options & bits::NO_SUSPENSION != 0,
        ..Reservation::default()
    };
    Ok(Some(ReservationFinish { time, reservation, duration }))
}

fn kind(options: u32) -> ReservationKind {
    match () {
        () if options & bits::SYSTEM != 0 => ReservationKind::System,
        () if options & bits::GROUP != 0 => ReservationKind::Group,
        () => ReservationKind::User,
    }
}

fn get_time(f: &Fields<'_>, options: u32, window: String) -> Result<ReservationTime, RecordError> {
    match options & bits::RECURRING != 0 {
        true => Ok(ReservationTime::Weekly(window)),
        false => once(&window).ok_or_else(|| f.bad("a begin and an end")),
    }
}

fn options(r: &Reservation) -> u32 {
    let kind = match r.kind {
        ReservationKind::User => bits::USER,
        ReservationKind::Group => bits::GROUP,
        ReservationKind::System => bits::SYSTEM,
    };
    let recurring = matches!(r.time, ReservationTime::Weekly(_));
    let marks = [
        (recurring, bits::RECURRING),
        (r.open, bits::OPEN),
        (r.by_host, bits::BY_HOST),
        (r.no_suspension, bits::NO_SUSPENSION),
    ];
    marks.into_iter().filter(|(set, _)| *set).fold(kind, |all, (_, bit)| all | bit)
}

pub(super) fn get_reservation(f: &mut Fields<'_>, name: &[u8]) -> Result<Event, RecordError> {
    Ok(match name {
        b"LSF_RESERVATION_END" => {
            Event::ReservationEnd { id: f.text()?, uid: f.num()?, user: f.text()? }
        }
        b"LSF_RESERVATION_NEXT" => Event::ReservationNext { owner: f.text()?, next: f.num()? },
        _ => Event::Reservation(Box::new(get_whole(f)?)),
    })
}

fn get_whole(f: &mut Fields<'_>) -> Result<Reservation, RecordError> {
    let (created, options, creator_uid) = (f.num()?, f.num::<u32>()?, f.num()?);
    let (creator, id, window, description) = (f.text()?, f.text()?, f.text()?, f.text()?);
    let has = |bit: u32| options & bit != 0;
    let time = get_time(f, options, window)?;
    let users = f.list()?;
    let mut hosts = Vec::new();
    for _ in 0..f.num::<u32>()? {
        hosts.push((f.text()?, f.num()?));
    }
    let queues = f.list()?;
    let mut disabled = Vec::new();
    for _ in 0..f.num::<u32>()? {
        disabled.push((f.num()?, f.num()?));
    }
    let scripts = ReservationScripts {
        pre: f.text()?,
        pre_minutes: f.num()?,
        post: f.text()?,
        post_minutes: f.num()?,
    };
    let kind = kind(options);
    let (open, by_host) = (has(bits::OPEN), has(bits::BY_HOST));
    let no_suspension = has(bits::NO_SUSPENSION);
    Ok(Reservation {
        id,
        created,
        creator,
        creator_uid,
        kind,
        users,
        hosts,
        time,
        open,
        by_host,
        no_suspension,
        queues,
        description,
        scripts,
        disabled,
    })
}

/// `begin-end`, either of which may be negative.
fn once(text: &str) -> Option<ReservationTime> {
    let at = text.get(1..)?.find('-')? + 1;
    let (begin, end) = (text[..at].parse().ok()?, text[at + 1..].parse().ok()?);
    Some(ReservationTime::Once { begin, end })
}
