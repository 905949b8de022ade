//! The parts that all records have: head, name, job, lists.

use super::text::{digits, put_int, put_str, put_u64};
use crate::model::JobRef;
use crate::model::event::{CheckpointStep, Event, Finish, ResizeStep};
use crate::model::job::{JobSpec, SpoolRef};

/// Version written into every record.
pub const VERSION: &str = "10.1";

/// Longest record that is read, bytes: far beyond any that is written (an environment or a
/// script is spooled, not logged).
pub const MAX_RECORD: usize = 16 << 20;

/// The submission spooled for `JobNew::exact` and `JobModify::exact` (its JSON).
pub fn read_exact_spec(bytes: &[u8]) -> Result<JobSpec, serde_json::Error> {
    serde_json::from_slice(bytes)
}

/// The job or element that an event concerns; job 0 when none.
pub fn job_of(event: &Event) -> JobRef {
    match event {
        Event::JobNew(new) => JobRef { job: new.job, idx: 0 },
        Event::JobModify(m) => JobRef { job: m.job, idx: 0 },
        Event::ArrayMove(m) => JobRef { job: m.job, idx: 0 },
        Event::ArraySwitch { job, .. } => JobRef { job: *job, idx: 0 },
        Event::JobStart(start) => start.at,
        Event::JobStatus(status) => status.at,
        Event::JobSignal(signal) => signal.at,
        Event::ArraySignal(s) => s.signal.at,
        Event::JobForce(force) => force.at,
        Event::JobMigrate(m) => m.at,
        Event::JobCheckpoint(c) => c.at,
        Event::JobResize(r) => r.at,
        Event::JobReserve(r) => r.at,
        Event::RunLimit(r) => r.at,
        Event::JobChunk(chunk) => chunk.members.first().copied().unwrap_or_default(),
        Event::JobMessage(m) => m.at,
        Event::JobAttachment(a) => a.at,
        Event::JobStartAccept { at, .. }
        | Event::JobExecute { at, .. }
        | Event::JobRequeue { at, .. }
        | Event::JobClean { at }
        | Event::JobSwitch { at, .. }
        | Event::JobMove { at, .. }
        | Event::Hold { at, .. }
        | Event::Eligible { at, .. }
        | Event::Release { at, .. } => *at,
        Event::QueueCtrl { .. }
        | Event::HostCtrl { .. }
        | Event::GroupHost { .. }
        | Event::JobGroupAdd(_)
        | Event::JobGroupModify(_)
        | Event::JobGroupDelete { .. }
        | Event::Reservation(_)
        | Event::ReservationEnd { .. }
        | Event::ReservationNext { .. }
        | Event::MbdStart { .. }
        | Event::MbdDie { .. }
        | Event::LogSwitch { .. }
        | Event::LoadIndex { .. }
        | Event::Carried { .. }
        | Event::ShareUsed(_)
        | Event::HostStarts { .. }
        | Event::Submitted { .. }
        | Event::Foreign { .. } => JobRef::default(),
    }
}

/// The places in the spool that an event refers to, and the job whose they are.
pub fn spooled_of(event: &Event) -> Option<(u32, [SpoolRef; 3])> {
    match event {
        Event::JobNew(new) => Some((new.job, [new.env, new.script, new.exact])),
        Event::JobModify(m) => Some((m.job, [m.env, m.script, m.exact])),
        Event::JobAttachment(a) => {
            Some((a.at.job, [a.data, SpoolRef::default(), SpoolRef::default()]))
        }
        _ => None,
    }
}

/// The record's name, as it stands in the log.
pub fn name_of(event: &Event) -> &str {
    match event {
        Event::JobNew(_) => "JOB_NEW",
        Event::JobStart(_) => "JOB_START",
        Event::JobStartAccept { .. } => "JOB_START_ACCEPT",
        Event::JobExecute { .. } => "JOB_EXECUTE",
        Event::JobStatus(_) => "JOB_STATUS",
        Event::JobSignal(_) => "JOB_SIGNAL",
        Event::ArraySignal(_) => "LSF_ARRAY_SIGNAL",
        Event::JobRequeue { .. } => "JOB_REQUEUE",
        Event::JobClean { .. } => "JOB_CLEAN",
        Event::JobMessage(_) => "JOB_EXT_MSG",
        Event::JobAttachment(_) => "JOB_ATTA_DATA",
        Event::JobModify(_) => "JOB_MODIFY2",
        Event::JobForce(_) => "JOB_FORCE",
        Event::JobMigrate(_) => "MIG",
        Event::JobCheckpoint(c) => match c.step {
            CheckpointStep::Asked(_) => "JOB_SIGACT",
            CheckpointStep::Ended(_) => "CHKPNT",
        },
        Event::JobResize(r) => name_of_resize(&r.step),
        Event::JobReserve(_) => "LSF_RESERVE",
        Event::JobChunk(_) => "JOB_CHUNK",
        Event::RunLimit(_) => "LSF_RUN_LIMIT",
        Event::JobSwitch { .. } => "JOB_SWITCH",
        Event::ArraySwitch { .. } => "LSF_ARRAY_SWITCH",
        Event::JobMove { .. } => "JOB_MOVE",
        Event::ArrayMove(_) => "LSF_ARRAY_MOVE",
        Event::QueueCtrl { .. } => "QUEUE_CTRL",
        Event::HostCtrl { .. } => "HOST_CTRL",
        Event::MbdStart { .. } => "MBD_START",
        Event::MbdDie { .. } => "MBD_DIE",
        Event::LogSwitch { .. } => "LOG_SWITCH",
        Event::LoadIndex { .. } => "LOAD_INDEX",
        Event::Hold { .. } => "LSF_HOLD",
        Event::Release { .. } => "LSF_RELEASE",
        Event::Carried { .. } => "LSF_SWITCHED",
        Event::Eligible { .. } => "LSF_ELIGIBLE",
        Event::GroupHost { .. } => "LSF_GROUP_HOST",
        Event::ShareUsed(_) => "LSF_SHARE_USED",
        Event::HostStarts { .. } => "LSF_HOST_STARTS",
        Event::Submitted { .. } => "LSF_SUBMITTED",
        Event::JobGroupAdd(_) => "JGRP_ADD",
        Event::JobGroupModify(_) => "JGRP_MOD",
        Event::JobGroupDelete { .. } => "JGRP_CTRL",
        Event::Reservation(_) => "LSF_RESERVATION",
        Event::ReservationEnd { .. } => "LSF_RESERVATION_END",
        Event::ReservationNext { .. } => "LSF_RESERVATION_NEXT",
        Event::Foreign { name } => name,
    }
}

fn name_of_resize(step: &ResizeStep) -> &'static str {
    match step {
        ResizeStep::Released { .. } => "JOB_RESIZE_RELEASE",
        ResizeStep::Asked { .. } => "LSF_RESIZE_REQUEST",
        ResizeStep::Cancelled => "JOB_RESIZE_CANCEL",
        ResizeStep::Begun { .. } => "JOB_RESIZE_NOTIFY_START",
        ResizeStep::Accepted { .. } => "JOB_RESIZE_NOTIFY_ACCEPT",
        ResizeStep::Done { .. } => "JOB_RESIZE_NOTIFY_DONE",
    }
}

/// The record's head.
pub(super) fn put_head(out: &mut Vec<u8>, name: &str, time: i64) {
    out.push(b'"');
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\" \"");
    out.extend_from_slice(VERSION.as_bytes());
    out.push(b'"');
    put_int(out, time);
}

/// Hosts, one string a slot, after their number.
pub(super) fn put_slots<T: AsRef<str>>(out: &mut Vec<u8>, hosts: &[(T, u32)]) {
    let n: u64 = hosts.iter().map(|(_, slots)| u64::from(*slots)).sum();
    put_u64(out, n);
    for (host, slots) in hosts {
        for _ in 0..*slots {
            put_str(out, host.as_ref().as_bytes());
        }
    }
}

/// Hosts with their slots: one string a slot, or with `short` one a host, `n*host` where it has
/// several (SHORT_EVENTFILE). Their number comes before them.
pub(super) fn put_hosts<T: AsRef<str>>(out: &mut Vec<u8>, hosts: &[(T, u32)], short: bool) {
    if !short {
        return put_slots(out, hosts);
    }
    put_u64(out, hosts.iter().filter(|(_, slots)| *slots > 0).count() as u64);
    for (host, slots) in hosts {
        match slots {
            0 => {}
            1 => put_str(out, host.as_ref().as_bytes()),
            _ => put_str(out, format!("{slots}*{}", host.as_ref()).as_bytes()),
        }
    }
}

/// A count and the strings.
pub(super) fn put_list(out: &mut Vec<u8>, items: &[String]) {
    put_u64(out, items.len() as u64);
    for item in items {
        put_str(out, item.as_bytes());
    }
}

/// `submitTime.jobId`, LSF's name of a job file.
pub(super) fn put_job_file(out: &mut Vec<u8>, submit_time: i64, job: u32) {
    out.extend_from_slice(b" \"");
    digits(out, submit_time.max(0) as u64);
    out.push(b'.');
    digits(out, u64::from(job));
    out.push(b'"');
}

/// Seconds that a job ran; 0 when it never started.
pub(super) fn run_time(fin: &Finish) -> i64 {
    if fin.start_time > 0 { fin.event_time.saturating_sub(fin.start_time).max(0) } else { 0 }
}
