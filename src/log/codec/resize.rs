//! JOB_RESIZE_RELEASE, JOB_RESIZE_CANCEL, JOB_RESIZE_NOTIFY_START, _ACCEPT and _DONE, and our
//! LSF_RESIZE_REQUEST: changes of the slots of a started job (lsb.events(5)); and JOB_RESIZE of
//! lsb.acct(5).

use super::record::{put_head, put_slots};
use super::record_error::RecordError;
use super::text::{Fields, Tail, find_tail, nums, put_int, put_str};
use crate::model::JobRef;
use crate::model::event::{Event, JobResize, NamedHosts, ResizeAccount, ResizeStep};

/// The bit of the options of a release: with the pending request of the job.
const CANCELS: u32 = 0x1;

pub(super) fn put_resize(out: &mut Vec<u8>, r: &JobResize) {
    put_int(out, r.at.job);
    put_int(out, r.at.idx);
    let mut numbers: Vec<(&str, u64)> = vec![("lsf.attempt", u64::from(r.attempt))];
    let mut command_of_tail = None;
    match &r.step {
        // reqId options userId userName resizeNotifyCmd numResizeHosts resizeHosts
        ResizeStep::Released { number, cancels, hosts, command } => {
            put_int(out, *number);
            put_int(out, u32::from(*cancels) * CANCELS);
            put_int(out, r.uid);
            put_str(out, r.user.as_bytes());
            put_str(out, command.as_bytes());
            put_slots(out, hosts);
        }
        // userId userName total least
        ResizeStep::Asked { total, least, command } => {
            put_int(out, r.uid);
            put_str(out, r.user.as_bytes());
            put_int(out, *total);
            put_int(out, *least);
            command_of_tail = command.as_ref();
        }
        ResizeStep::Cancelled => {
            put_int(out, r.uid);
            put_str(out, r.user.as_bytes());
        }
        // notifyId numResizeHosts resizeHosts
        ResizeStep::Begun { number, grows, hosts, command } => {
            put_int(out, *number);
            put_slots(out, hosts);
            numbers.push(("lsf.grows", u64::from(*grows)));
            command_of_tail = Some(command).filter(|command| !command.is_empty());
        }
        // notifyId resizeNotifyCmdPid resizeNotifyCmdPGid status
        ResizeStep::Accepted { number, pid } => {
            for n in [*number, *pid, *pid, 0] {
                put_int(out, n);
            }
        }
        // notifyId status
        ResizeStep::Done { number, status } => {
            put_int(out, *number);
            put_int(out, *status);
        }
    }
    let mut tail = Tail::begin(out);
    for (key, n) in numbers {
        tail.nums(out, key, b' ', &[n]);
    }
    if let Some(command) = command_of_tail {
        tail.text(out, "lsf.command", command.as_bytes());
    }
    if !r.request.is_empty() {
        tail.text(out, "lsf.request", r.request.as_bytes());
    }
    tail.end(out);
}

/// Appends the line of lsb.acct about a change, newline included.
pub fn write_resize(r: &ResizeAccount, out: &mut Vec<u8>) {
    put_head(out, "JOB_RESIZE", r.time);
    put_int(out, r.at.job);
    put_int(out, r.at.idx);
    put_int(out, r.start_time);
    put_int(out, r.uid);
    put_str(out, r.user.as_bytes());
    put_int(out, u32::from(!r.grows));
    put_int(out, r.last_time);
    // the execution hosts are listed as those of JOB_FINISH, a name for each slot
    for hosts in [&r.hosts, &r.changed, &r.hosts, &r.changed] {
        put_slots(out, hosts);
    }
    out.push(b'\n');
}

fn get_hosts(f: &mut Fields<'_>) -> Result<NamedHosts, RecordError> {
    Ok(f.slots()?.into_iter().map(|(host, n)| (host.into(), n)).collect())
}

pub(super) fn get_resize(f: &mut Fields<'_>, name: &[u8]) -> Result<Event, RecordError> {
    let at = JobRef { job: f.num()?, idx: f.num()? };
    let mut r = JobResize { at, ..JobResize::default() };
    let user = |r: &mut JobResize, f: &mut Fields<'_>| -> Result<(), RecordError> {
        (r.uid, r.user) = (f.num()?, f.text()?);
        Ok(())
    };
    let mut step = match name {
        b"JOB_RESIZE_RELEASE" => {
            let (number, options): (u32, u32) = (f.num()?, f.num()?);
            user(&mut r, f)?;
            let (command, hosts) = (f.text()?, get_hosts(f)?);
            ResizeStep::Released { number, cancels: options & CANCELS != 0, hosts, command }
        }
        b"LSF_RESIZE_REQUEST" => {
            user(&mut r, f)?;
            ResizeStep::Asked { total: f.num()?, least: f.num()?, command: None }
        }
        b"JOB_RESIZE_CANCEL" => {
            user(&mut r, f)?;
            ResizeStep::Cancelled
        }
        b"JOB_RESIZE_NOTIFY_START" => {
            let (number, hosts) = (f.num()?, get_hosts(f)?);
            ResizeStep::Begun { number, grows: false, hosts, command: String::new() }
        }
        b"JOB_RESIZE_NOTIFY_ACCEPT" => ResizeStep::Accepted { number: f.num()?, pid: f.small()? },
        _ => ResizeStep::Done { number: f.num()?, status: f.num()? },
    };
    for (key, value) in find_tail(f).unwrap_or_default() {
        let numbers = nums(&value, ' ').unwrap_or_default();
        let number = numbers.first().and_then(|n| u32::try_from(*n).ok()).unwrap_or(0);
        let text = || String::from_utf8_lossy(&value).into_owned();
        match (&*key, &mut step) {
            (b"lsf.attempt", _) => r.attempt = number,
            (b"lsf.request", _) => r.request = text(),
            (b"lsf.grows", ResizeStep::Begun { grows, .. }) => *grows = number != 0,
            (b"lsf.command", ResizeStep::Begun { command, .. }) => *command = text(),
            (b"lsf.command", ResizeStep::Asked { command, .. }) => *command = Some(text()),
            _ => {}
        }
    }
    r.step = step;
    Ok(Event::JobResize(Box::new(r)))
}
