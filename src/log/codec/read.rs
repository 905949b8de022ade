//! Reads one line of lsb.events (lsb.events(5)).
//!
//! A record of a type that we act on is read strictly up to the last field that every version
//! has; further fields as far as they are what this layout says. Types of LSF that we do not
//! act on are [`Event::Foreign`]; an unknown type of our own name space is an error.

use super::record_error::RecordError;
use super::reserve::NO_SLICE;
use super::signal;
use super::text::{Field, Fields, find_tail, nums, one_number};
use super::usage::{get_hosts_used, get_usage, set_hosts_cpu, set_more_usage, set_peak};
use super::{
    checkpoint, chunk, force, job_group, message, migrate, modify, new, reservation, reserve,
    resize, run_limit,
};
use crate::model::JobRef;
use crate::model::affinity::JobUnits;
use crate::model::event::{
    Ctrl, Event, Forced, JobStart, JobStatus, QueuePosition, Record, ShareUsed,
};
use crate::model::job_state::LoggedStatus;
use crate::model::nqs::{NlbPlacement, Route};
use crate::model::reason::{PendReason, susp};

/// Reads a line, with or without its newline.
pub fn read_record(line: &[u8]) -> Result<Record, RecordError> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    // never written: what a loss of power left of a line, though the rest could be read
    if line.contains(&0) {
        return Err(RecordError::NotARecord);
    }
    let mut f = Fields::new(line);
    let (name, openlava, time) = head(&mut f)?;
    let event = match name {
        b"JOB_NEW" => Event::JobNew(Box::new(new::get_job_new(&mut f, openlava)?)),
        b"JOB_START" => get_start(&mut f)?,
        b"JOB_START_ACCEPT" => {
            let (job, pid, pgid, idx) = (f.num()?, f.num()?, f.num()?, f.num()?);
            let attempt = tail_number(&f, b"lsf.attempt");
            Event::JobStartAccept { at: JobRef { job, idx }, attempt, pid, pgid }
        }
        b"JOB_EXECUTE" => get_execute(&mut f)?,
        b"JOB_STATUS" => get_status(&mut f, openlava)?,
        b"JOB_SIGNAL" => Event::JobSignal(Box::new(signal::get_signal(&mut f)?)),
        b"LSF_ARRAY_SIGNAL" => Event::ArraySignal(Box::new(signal::get_array_signal(&mut f)?)),
        b"JOB_REQUEUE" => {
            let at = get_ref(&mut f)?;
            get_requeue(at, &f)
        }
        b"JOB_MODIFY2" => modify::get_job_modify(&mut f)?,
        b"LSF_ARRAY_MOVE" => Event::ArrayMove(Box::new(signal::get_array_move(&mut f)?)),
        b"LSF_ARRAY_SWITCH" => signal::get_array_switch(&mut f)?,
        b"JOB_SWITCH" | b"JOB_MOVE" => get_change(&mut f, name)?,
        b"JOB_CLEAN" => Event::JobClean { at: get_ref(&mut f)? },
        b"JOB_CHUNK" => chunk::get_chunk(&mut f)?,
        b"JOB_FORCE" => force::get_force(&mut f)?,
        b"MIG" => migrate::get_migrate(&mut f)?,
        b"CHKPNT" | b"JOB_SIGACT" => {
            let asked = name == b"JOB_SIGACT";
            match checkpoint::get_checkpoint(&mut f, asked)? {
                Some(event) => event,
                None => get_others(&mut f, name)?,
            }
        }
        b"JOB_RESIZE_RELEASE"
        | b"JOB_RESIZE_CANCEL"
        | b"JOB_RESIZE_NOTIFY_START"
        | b"JOB_RESIZE_NOTIFY_ACCEPT"
        | b"JOB_RESIZE_NOTIFY_DONE"
        | b"LSF_RESIZE_REQUEST" => resize::get_resize(&mut f, name)?,
        b"JGRP_ADD" => Event::JobGroupAdd(Box::new(job_group::get_group(&mut f)?)),
        b"JGRP_MOD" => Event::JobGroupModify(Box::new(job_group::get_group(&mut f)?)),
        b"JGRP_CTRL" => job_group::get_control(&mut f)?,
        b"LSF_RESERVATION" | b"LSF_RESERVATION_END" | b"LSF_RESERVATION_NEXT" => {
            reservation::get_reservation(&mut f, name)?
        }
        b"JOB_EXT_MSG" => message::get_message(&mut f)?,
        b"JOB_ATTA_DATA" => message::get_attachment(&mut f)?,
        b"QUEUE_CTRL" | b"HOST_CTRL" => get_ctrl(&mut f, name)?,
        _ => get_others(&mut f, name)?,
    };
    Ok(Record { time, event })
}

/// The name and the time of the record in a line, if that begins like one.
pub fn name_and_time(line: &[u8]) -> Option<(&[u8], i64)> {
    head(&mut Fields::new(line)).ok().map(|(name, _, time)| (name, time))
}

/// `"TYPE" "version" time`. The openlava family counts versions without a point.
fn head<'a>(f: &mut Fields<'a>) -> Result<(&'a [u8], bool, i64), RecordError> {
    let Ok(Some(Field::Quoted(name, false))) = f.field() else {
        return Err(RecordError::NotARecord);
    };
    let Ok(Some(Field::Quoted(version, false))) = f.field() else {
        return Err(RecordError::NotARecord);
    };
    let word = |b: &u8| b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b'_';
    let number = |b: &u8| b.is_ascii_digit() || *b == b'.';
    let odd = name.is_empty() || !name.iter().all(word) || !version.iter().all(number);
    if odd {
        return Err(RecordError::NotARecord);
    }
    let time = f.num().map_err(|_| RecordError::NotARecord)?;
    Ok((name, !version.contains(&b'.'), time))
}

fn tail_number(f: &Fields<'_>, key: &[u8]) -> u32 {
    let pairs = find_tail(f).unwrap_or_default();
    pairs.iter().find(|(k, _)| &**k == key).map_or(0, |(_, value)| one_number(value))
}

fn get_ref(f: &mut Fields<'_>) -> Result<JobRef, RecordError> {
    Ok(JobRef { job: f.num()?, idx: f.num()? })
}

/// JOB_SWITCH and JOB_MOVE, of a job or of one element.
fn get_change(f: &mut Fields<'_>, record: &[u8]) -> Result<Event, RecordError> {
    let (uid, job) = (f.num()?, f.num()?);
    if record == b"JOB_SWITCH" {
        let queue = f.text()?;
        let (idx, user) = (f.num()?, f.text()?);
        let pairs = find_tail(f).unwrap_or_default();
        let route = pairs.iter().find(|(k, _)| &**k == b"lsf.route");
        let route = route.and_then(|(_, v)| Route::parse(&text(v))).map(Box::new);
        return Ok(Event::JobSwitch { at: JobRef { job, idx }, queue, uid, user, route });
    }
    let (position, base): (u32, u32) = (f.num()?, f.num()?);
    let (idx, user): (u32, String) = (f.num()?, f.text()?);
    let pairs = find_tail(f).unwrap_or_default();
    let spot = pairs.iter().find(|(k, _)| &**k == b"lsf.place");
    let place = match spot.and_then(|(_, v)| nums(v, ' ')).as_deref() {
        Some(&[base, between]) => {
            Some(QueuePosition { base, between: between.try_into().unwrap_or(u32::MAX) })
        }
        _ => None,
    };
    let at = JobRef { job, idx };
    Ok(Event::JobMove { at, position, top: base == 1, uid, user, place })
}

fn get_start(f: &mut Fields<'_>) -> Result<Event, RecordError> {
    let job = f.num()?;
    // jStatus jobPid jobPGid
    f.skip(3)?;
    let host_factor = f.num()?;
    let (hosts, short_hosts) = f.hosts_with_slots()?;
    // queuePreCmd queuePostCmd jFlags
    f.skip(3)?;
    let openlava = !f.next_is_string();
    f.skip(usize::from(!openlava))?;
    let idx = f.num()?;
    let (mut eff_res_req, mut slice) = (String::new(), 0);
    let mut ahead = f.clone();
    // additionalInfo duration4PreemptBackfill jFlags2
    let mut before = || -> Result<u64, RecordError> {
        ahead.skip(1)?;
        let slice: i64 = ahead.num()?;
        ahead.skip(1)?;
        Ok(u64::try_from(slice).ok().filter(|slice| *slice < NO_SLICE).unwrap_or(0))
    };
    let read = if openlava { Ok(0) } else { before() };
    if let Ok(seconds) = read
        && let Ok(text) = ahead.text()
    {
        (eff_res_req, slice) = (text, seconds);
        *f = ahead;
    }
    // src and dst cluster, networks, and the units as we write them
    let mut ahead = f.clone();
    let mut units = || -> Result<String, RecordError> {
        ahead.skip(5)?;
        ahead.text()
    };
    let affinity = match openlava {
        true => String::new(),
        false => units().unwrap_or_default(),
    };
    let affinity = JobUnits::parse(&affinity).map(|_| affinity.into()).unwrap_or_default();
    let at = JobRef { job, idx };
    let hosts = hosts.into_iter().map(|(host, n)| (host.into(), n)).collect();
    let eff_res_req = eff_res_req.into();
    let mut s =
        JobStart { at, hosts, host_factor, eff_res_req, slice, affinity, ..JobStart::default() };
    s.short_hosts = short_hosts;
    for (key, value) in find_tail(f).unwrap_or_default() {
        match &*key {
            b"lsf.attempt" => s.attempt = one_number(&value),
            b"lsf.forced" => {
                s.forced = match one_number(&value) {
                    1 => Forced::Yes,
                    2 => Forced::NeverSuspended,
                    _ => Forced::No,
                }
            }
            b"lsf.boot" => s.boot = String::from_utf8_lossy(&value).into(),
            b"lsf.account" => s.account = String::from_utf8_lossy(&value).into(),
            b"lsf.nlb" => {
                s.placed =
                    NlbPlacement::parse(&String::from_utf8_lossy(&value)).map(std::sync::Arc::new);
            }
            _ => {}
        }
    }
    Ok(Event::JobStart(Box::new(s)))
}

fn get_execute(f: &mut Fields<'_>) -> Result<Event, RecordError> {
    let (job, uid, pgid) = (f.num()?, f.num()?, f.num()?);
    let (cwd, home, user) = (f.text()?, f.text()?, f.text()?);
    let (pid, idx) = (f.num()?, f.num()?);
    let tail = find_tail(f).unwrap_or_default();
    let note = tail.iter().find(|(key, _)| &**key == b"lsf.note");
    let note = note.map_or(String::new(), |(_, text)| String::from_utf8_lossy(text).into_owned());
    Ok(Event::JobExecute { at: JobRef { job, idx }, uid, pid, pgid, cwd, home, user, note })
}

fn get_status(f: &mut Fields<'_>, openlava: bool) -> Result<Event, RecordError> {
    let mut s = JobStatus::default();
    s.at.job = f.num()?;
    s.status = LoggedStatus::of_bits(f.num()?);
    s.reason = f.num()?;
    s.subreason = f.num()?;
    s.cpu = f.num()?;
    s.end_time = f.num()?;
    let ru: u32 = f.num()?;
    if ru != 0 {
        s.usage = get_usage(f)?;
    }
    // jFlags
    f.skip(usize::from(!openlava))?;
    s.exit_status = f.num()?;
    s.at.idx = f.num()?;
    let mut own_reason = false;
    if !openlava && !f.at_end() {
        s.exit_info = f.num()?;
        own_reason = get_status_rest(f, &mut s);
    }
    // our older records have an attempt, and our number in the place of LSF's
    if s.status.is_suspended() && !own_reason && s.attempt == 0 {
        s.reason = susp::of_bits(s.reason, std::mem::take(&mut s.subreason));
    }
    Ok(Event::JobStatus(Box::new(s)))
}

/// The fields that older versions do not have; whether our suspending reason is among them.
fn get_status_rest(f: &mut Fields<'_>, s: &mut JobStatus) -> bool {
    let (mut ahead, mut own_reason) = (f.clone(), false);
    if s.status.is_finished() {
        let hosts: usize = ahead.num().unwrap_or(0);
        match get_hosts_used(&mut ahead, hosts, 5) {
            Ok(used) => s.hosts = used,
            Err(_) => return false,
        }
    }
    // maxMem avgMem, src and dst cluster, maskedJStatus, nextStatusNo
    if ahead.skip(8).is_err() {
        return false;
    }
    *f = ahead;
    for (key, value) in find_tail(f).unwrap_or_default() {
        match &*key {
            b"lsf.attempt" => s.attempt = one_number(&value),
            b"lsf.susp" => {
                if let Some(&[reason, sub]) = nums(&value, ' ').as_deref() {
                    let [reason, sub] = [reason, sub].map(|n| u32::try_from(n).unwrap_or(0));
                    (s.reason, s.subreason, own_reason) = (reason, sub, true);
                }
            }
            b"lsf.unknown_end" => s.unknown_end = one_number(&value) != 0,
            b"lsf.post" => s.post = one_number(&value) != 0,
            b"lsf.after" => s.after = text(&value),
            b"lsf.usage" => {
                let values = nums(&value, ' ').unwrap_or_default();
                set_more_usage(s.usage.get_or_insert_default(), &values);
            }
            b"lsf.hosts_cpu" => {
                set_hosts_cpu(&mut s.hosts, &nums(&value, ' ').unwrap_or_default());
            }
            b"lsf.peak" => {
                let values = nums(&value, ' ').unwrap_or_default();
                set_peak(s.usage.get_or_insert_default(), &values);
            }
            b"lsf.retry" => {
                if let Some(&[until, host]) = nums(&value, ' ').as_deref() {
                    let retry = s.retry.get_or_insert_default();
                    (retry.until, retry.host_until) = (seconds(until), seconds(host));
                }
            }
            b"lsf.host" => s.retry.get_or_insert_default().host = text(&value),
            b"lsf.note" => s.retry.get_or_insert_default().note = text(&value),
            b"lsf.pre_exit" => {
                let exit = one_number(&value);
                s.retry.get_or_insert_default().pre_exit = u8::try_from(exit).unwrap_or(0);
            }
            b"lsf.excluded" => {
                s.retry.get_or_insert_default().excluded = one_number(&value) != 0;
            }
            _ => {}
        }
    }
    own_reason
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}

fn seconds(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(0)
}

fn get_requeue(at: JobRef, f: &Fields<'_>) -> Event {
    let (mut held, mut uncounted, mut passed) = (None, false, Vec::new());
    let (mut until, mut exit, mut request) = (0, None, String::new());
    for (key, value) in find_tail(f).unwrap_or_default() {
        match &*key {
            b"lsf.held" => {
                let number = Some(one_number(&value)).filter(|number| *number != 0);
                held = number.map(PendReason::of_number);
            }
            b"lsf.uncounted" => uncounted = one_number(&value) != 0,
            b"lsf.passed" => {
                let text = String::from_utf8_lossy(&value);
                passed = text.split_whitespace().map(str::to_string).collect();
            }
            b"lsf.until" => {
                let first = nums(&value, ' ').and_then(|v| v.first().copied());
                until = first.map_or(0, seconds);
            }
            b"lsf.exit" => exit = text(&value).parse().ok(),
            b"lsf.request" => request = text(&value),
            _ => {}
        }
    }
    Event::JobRequeue { at, held, uncounted, passed, until, exit, request }
}

fn get_ctrl(f: &mut Fields<'_>, record: &[u8]) -> Result<Event, RecordError> {
    let code: u32 = f.num()?;
    let (name, uid, user) = (f.text()?, f.num()?, f.text()?);
    let message = if f.next_is_string() { f.text()? } else { String::new() };
    let op = match code {
        1 => Some(Ctrl::Open),
        2 => Some(Ctrl::Close),
        3 => Some(Ctrl::Activate),
        4 => Some(Ctrl::Inactivate),
        _ => None,
    };
    Ok(match (record, op) {
        (b"QUEUE_CTRL", Some(op)) => Event::QueueCtrl { op, queue: name, uid, user, message },
        // 3 and 4 restart and shut down a host: nothing to act on later
        (b"HOST_CTRL", Some(op @ (Ctrl::Open | Ctrl::Close))) => {
            let tail = find_tail(f).unwrap_or_default();
            let lock = tail.iter().find(|(key, _)| &**key == b"lsf.lock");
            let text = |t: &[u8]| String::from_utf8_lossy(t).into_owned();
            let lock = lock.map_or(String::new(), |(_, t)| text(t));
            Event::HostCtrl { op, host: name, uid, user, message, lock }
        }
        _ => Event::Foreign { name: String::from_utf8_lossy(record).into_owned() },
    })
}

fn get_others(f: &mut Fields<'_>, name: &[u8]) -> Result<Event, RecordError> {
    Ok(match name {
        b"MBD_START" => Event::MbdStart {
            master: f.text()?,
            cluster: f.text()?,
            hosts: f.num()?,
            queues: f.num()?,
        },
        b"MBD_DIE" => Event::MbdDie {
            master: f.text()?,
            removed: f.num()?,
            code: f.num()?,
            message: if f.next_is_string() { f.text()? } else { String::new() },
        },
        b"LOG_SWITCH" => Event::LogSwitch { last_job: f.num()? },
        b"LOAD_INDEX" => Event::LoadIndex { names: f.list()? },
        b"LSF_HOLD" => Event::Hold { at: get_ref(f)?, why: f.text()? },
        b"LSF_RELEASE" => {
            let (job, uid, idx) = (f.num()?, f.num()?, f.num()?);
            Event::Release { at: JobRef { job, idx }, uid, user: f.text()? }
        }
        b"LSF_GROUP_HOST" => Event::GroupHost {
            add: f.num::<u32>()? != 0,
            group: f.text()?,
            host: f.text()?,
            uid: f.num()?,
            user: f.text()?,
            message: f.text()?,
        },
        b"LSF_SUBMITTED" => {
            let (job, submit_time) = (f.num()?, f.num()?);
            Event::Submitted { job, submit_time, request: f.text()? }
        }
        b"LSF_ELIGIBLE" => {
            let at = get_ref(f)?;
            Event::Eligible { at, on: f.num::<u32>()? != 0 }
        }
        b"LSF_RUN_LIMIT" => run_limit::get_change(f)?,
        b"LSF_SHARE_USED" => Event::ShareUsed(Box::new(ShareUsed {
            queue: f.text()?,
            user: f.text()?,
            group: f.text()?,
            cpu: f.num()?,
            run: f.num()?,
        })),
        b"LSF_HOST_STARTS" => {
            let count: usize = f.num()?;
            Event::HostStarts { hosts: (0..count).map(|_| f.text()).collect::<Result<_, _>>()? }
        }
        b"LSF_RESERVE" => reserve::get_reserve(f)?,
        b"LSF_SWITCHED" => Event::Carried { next_job: f.num()?, epoch: f.num()? },
        _ => {
            let name = String::from_utf8_lossy(name).into_owned();
            if name.starts_with("LSF_") {
                return Err(RecordError::Newer { name });
            }
            // whole at least in its quotes
            while f.field()?.is_some() {}
            Event::Foreign { name }
        }
    })
}
