//! Writes one event as one line of lsb.events (lsb.events(5)).

use super::record::{name_of, put_head, put_hosts, put_list};
use super::reserve::NO_SLICE;
use super::signal;
use super::text::{Tail, put_factor, put_int, put_secs, put_str, put_u64};
use super::usage::{hosts_cpu, more_usage, peak, put_hosts_used, put_usage};
use super::{
    checkpoint, chunk, force, job_group, message, migrate, modify, new, reservation, reserve,
    resize, run_limit,
};
use crate::model::JobRef;
use crate::model::event::{Ctrl, Event, Forced, JobStart, JobStatus, Record};
use crate::model::job_state::JobState;
use crate::model::reason::susp;

/// Appends the line of a record, newline included. [`Event::Foreign`] is only ever read: nothing
/// is written for it.
pub fn write_record(record: &Record, out: &mut Vec<u8>) {
    if matches!(record.event, Event::Foreign { .. }) {
        return;
    }
    put_head(out, name_of(&record.event), record.time);
    match &record.event {
        Event::JobNew(n) => new::put_job_new(out, n),
        Event::JobStart(s) => put_start(out, s),
        Event::JobStatus(s) => put_status(out, s),
        Event::JobStartAccept { at, attempt, pid, pgid } => {
            for n in [at.job, *pid, *pgid, at.idx] {
                put_int(out, n);
            }
            let mut tail = Tail::begin(out);
            tail.nums(out, "lsf.attempt", b' ', &[u64::from(*attempt)]);
            tail.end(out);
        }
        Event::JobExecute { .. } => put_execute(out, &record.event),
        Event::JobSignal(s) => signal::put_signal(out, s),
        Event::ArraySignal(s) => signal::put_array_signal(out, s),
        Event::JobRequeue { .. } => put_requeue(out, &record.event),
        Event::JobClean { at } => put_ref(out, *at),
        Event::JobModify(m) => modify::put_job_modify(out, m),
        Event::JobForce(force) => force::put_force(out, force),
        Event::JobMigrate(m) => migrate::put_migrate(out, m),
        Event::JobCheckpoint(c) => checkpoint::put_checkpoint(out, c),
        Event::JobResize(r) => resize::put_resize(out, r),
        Event::JobGroupAdd(r) | Event::JobGroupModify(r) => job_group::put_group(out, r),
        Event::JobGroupDelete { uid, user, path } => job_group::put_delete(out, *uid, user, path),
        Event::JobMessage(m) => message::put_message(out, m),
        Event::JobAttachment(a) => message::put_attachment(out, a),
        Event::JobSwitch { .. } | Event::ArraySwitch { .. } | Event::JobMove { .. } => {
            put_change(out, &record.event)
        }
        Event::ArrayMove(m) => signal::put_array_move(out, m),
        Event::QueueCtrl { op, queue: name, uid, user, message }
        | Event::HostCtrl { op, host: name, uid, user, message, .. } => {
            put_ctrl(out, *op, name, *uid, user, message);
            if let Event::HostCtrl { lock, .. } = &record.event
                && !lock.is_empty()
            {
                let mut tail = Tail::begin(out);
                tail.text(out, "lsf.lock", lock.as_bytes());
                tail.end(out);
            }
        }
        _ => put_others(out, &record.event),
    }
    out.push(b'\n');
}

/// jobId idx, and the tail of how it went back to its queue.
fn put_requeue(out: &mut Vec<u8>, event: &Event) {
    let Event::JobRequeue { at, held, uncounted, passed, until, exit, request } = event else {
        return;
    };
    put_ref(out, *at);
    let mut tail = Tail::begin(out);
    if let Some(held) = held {
        tail.nums(out, "lsf.held", b' ', &[u64::from(held.number())]);
    }
    if *uncounted {
        tail.nums(out, "lsf.uncounted", b' ', &[1]);
    }
    if !passed.is_empty() {
        tail.text(out, "lsf.passed", passed.join(" ").as_bytes());
    }
    if *until > 0 {
        tail.nums(out, "lsf.until", b' ', &[until.unsigned_abs()]);
    }
    if let Some(value) = exit {
        tail.text(out, "lsf.exit", value.to_string().as_bytes());
    }
    if !request.is_empty() {
        tail.text(out, "lsf.request", request.as_bytes());
    }
    tail.end(out);
}

fn put_ref(out: &mut Vec<u8>, at: JobRef) {
    put_int(out, at.job);
    put_int(out, at.idx);
}

/// userId jobId, what is changed, idx userName.
fn put_change(out: &mut Vec<u8>, event: &Event) {
    let mut put = |at: &JobRef, uid: &u32, user: &str, what: &mut dyn FnMut(&mut Vec<u8>)| {
        put_int(out, *uid);
        put_int(out, at.job);
        what(out);
        put_int(out, at.idx);
        put_str(out, user.as_bytes());
    };
    match event {
        Event::JobSwitch { at, queue, uid, user, route } => {
            put(at, uid, user, &mut |out| put_str(out, queue.as_bytes()));
            if let Some(route) = route {
                let mut tail = Tail::begin(out);
                tail.text(out, "lsf.route", route.text().as_bytes());
                tail.end(out);
            }
        }
        Event::ArraySwitch { job, elems, queue, uid, user } => {
            let at = JobRef { job: *job, idx: 0 };
            put(&at, uid, user, &mut |out| put_str(out, queue.as_bytes()));
            signal::put_ranges(out, elems);
        }
        Event::JobMove { at, position, top, uid, user, place } => {
            put(at, uid, user, &mut |out| {
                put_int(out, *position);
                put_int(out, if *top { 1 } else { 2 });
            });
            if let Some(spot) = place {
                let mut tail = Tail::begin(out);
                tail.nums(out, "lsf.place", b' ', &[spot.base, u64::from(spot.between)]);
                tail.end(out);
            }
        }
        _ => {}
    }
}

fn put_start(out: &mut Vec<u8>, s: &JobStart) {
    put_int(out, s.at.job);
    put_int(out, JobState::Run.bits());
    // jobPid jobPGid: not known yet
    put_int(out, 0);
    put_int(out, 0);
    put_factor(out, s.host_factor);
    put_hosts(out, &s.hosts, s.short_hosts);
    // queuePreCmd queuePostCmd jFlags userGroup
    out.extend_from_slice(b" \"\" \"\" 0 \"\"");
    put_int(out, s.at.idx);
    // additionalInfo duration4PreemptBackfill jFlags2
    out.extend_from_slice(b" \"\"");
    put_u64(out, if s.slice > 0 { s.slice } else { NO_SLICE });
    out.extend_from_slice(b" 0");
    put_str(out, s.eff_res_req.as_bytes());
    // src and dst cluster, networks, affinity, nextStatusNo, combinedCpuFrequency
    out.extend_from_slice(b" \"\" -1 \"\" -1 0");
    put_str(out, s.affinity.as_bytes());
    out.extend_from_slice(b" 0 0");
    put_hosts(out, &s.hosts, s.short_hosts);
    let mut tail = Tail::begin(out);
    tail.nums(out, "lsf.attempt", b' ', &[u64::from(s.attempt)]);
    if !s.boot.is_empty() {
        tail.text(out, "lsf.boot", s.boot.as_bytes());
    }
    match s.forced {
        Forced::No => {}
        Forced::Yes => tail.nums(out, "lsf.forced", b' ', &[1]),
        Forced::NeverSuspended => tail.nums(out, "lsf.forced", b' ', &[2]),
    }
    if !s.account.is_empty() {
        tail.text(out, "lsf.account", s.account.as_bytes());
    }
    if let Some(placed) = &s.placed {
        tail.text(out, "lsf.nlb", placed.to_string().as_bytes());
    }
    tail.end(out);
}

fn put_status(out: &mut Vec<u8>, s: &JobStatus) {
    let (reason, subreason) = match s.status.is_suspended() {
        true => susp::bits(s.reason),
        false => (s.reason, s.subreason),
    };
    for n in [s.at.job, s.status.bits(), reason, subreason] {
        put_int(out, n);
    }
    put_secs(out, s.cpu);
    put_int(out, s.end_time);
    match &s.usage {
        Some(u) => {
            put_int(out, 1);
            put_usage(out, u);
        }
        None => put_int(out, 0),
    }
    // jFlags
    put_int(out, 0);
    put_int(out, s.exit_status);
    put_int(out, s.at.idx);
    put_int(out, s.exit_info);
    if s.status.is_finished() {
        put_hosts_used(out, &s.hosts);
    }
    let u = s.usage.unwrap_or_default();
    put_u64(out, u.max_mem_kb);
    put_u64(out, u.avg_mem_kb);
    // src and dst cluster, maskedJStatus, nextStatusNo
    out.extend_from_slice(b" \"\" -1 \"\" -1 0 0");
    let mut tail = Tail::begin(out);
    tail.nums(out, "lsf.attempt", b' ', &[u64::from(s.attempt)]);
    if s.status.is_suspended() {
        tail.nums(out, "lsf.susp", b' ', &[u64::from(s.reason), u64::from(s.subreason)]);
    }
    if s.unknown_end {
        tail.nums(out, "lsf.unknown_end", b' ', &[1]);
    }
    if s.post {
        tail.nums(out, "lsf.post", b' ', &[1]);
    }
    if !s.after.is_empty() {
        tail.text(out, "lsf.after", s.after.as_bytes());
    }
    if let Some(u) = &s.usage {
        tail.nums(out, "lsf.usage", b' ', &more_usage(u));
        if let Some(peak) = peak(u) {
            tail.nums(out, "lsf.peak", b' ', &peak);
        }
    }
    if let Some(cpu) = hosts_cpu(&s.hosts) {
        tail.nums(out, "lsf.hosts_cpu", b' ', &cpu);
    }
    if let Some(r) = &s.retry {
        let times = [r.until, r.host_until].map(|t| t.max(0).unsigned_abs());
        tail.nums(out, "lsf.retry", b' ', &times);
        tail.text(out, "lsf.host", r.host.as_bytes());
        tail.text(out, "lsf.note", r.note.as_bytes());
        if r.pre_exit != 0 {
            tail.nums(out, "lsf.pre_exit", b' ', &[u64::from(r.pre_exit)]);
        }
        if r.excluded {
            tail.nums(out, "lsf.excluded", b' ', &[1]);
        }
    }
    tail.end(out);
}

fn put_execute(out: &mut Vec<u8>, event: &Event) {
    let Event::JobExecute { at, uid, pid, pgid, cwd, home, user, note } = event else { return };
    for n in [at.job, *uid, *pgid] {
        put_int(out, n);
    }
    for text in [cwd, home, user] {
        put_str(out, text.as_bytes());
    }
    put_int(out, *pid);
    put_int(out, at.idx);
    // additionalInfo SLAscaledRunLimit execRusage position duration4PreemptBackfill, clusters
    out.extend_from_slice(b" \"\" -1 \"\" 0 2147483647 \"\" -1 \"\" -1 \"\" -1");
    if !note.is_empty() {
        let mut tail = Tail::begin(out);
        tail.text(out, "lsf.note", note.as_bytes());
        tail.end(out);
    }
}

fn put_ctrl(out: &mut Vec<u8>, op: Ctrl, name: &str, uid: u32, user: &str, message: &str) {
    put_int(out, op as u32);
    put_str(out, name.as_bytes());
    put_int(out, uid);
    put_str(out, user.as_bytes());
    put_str(out, message.as_bytes());
}

fn put_others(out: &mut Vec<u8>, event: &Event) {
    match event {
        Event::MbdStart { master, cluster, hosts, queues } => {
            put_str(out, master.as_bytes());
            put_str(out, cluster.as_bytes());
            put_int(out, *hosts);
            put_int(out, *queues);
        }
        Event::MbdDie { master, removed, code, message } => {
            put_str(out, master.as_bytes());
            put_int(out, *removed);
            put_int(out, *code);
            put_str(out, message.as_bytes());
        }
        Event::LogSwitch { last_job } => put_int(out, *last_job),
        Event::LoadIndex { names } => put_list(out, names),
        Event::Hold { at, why } => {
            put_ref(out, *at);
            put_str(out, why.as_bytes());
        }
        Event::Release { at, uid, user } => {
            put_int(out, at.job);
            put_int(out, *uid);
            put_int(out, at.idx);
            put_str(out, user.as_bytes());
        }
        Event::GroupHost { add, group, host, uid, user, message } => {
            put_int(out, u32::from(*add));
            put_str(out, group.as_bytes());
            put_str(out, host.as_bytes());
            put_int(out, *uid);
            put_str(out, user.as_bytes());
            put_str(out, message.as_bytes());
        }
        Event::JobReserve(r) => reserve::put_reserve(out, r),
        Event::JobChunk(chunk) => chunk::put_chunk(out, chunk),
        Event::RunLimit(r) => run_limit::put_change(out, r),
        Event::Eligible { at, on } => {
            put_ref(out, *at);
            put_int(out, u32::from(*on));
        }
        Event::Submitted { job, submit_time, request } => {
            put_int(out, *job);
            put_int(out, *submit_time);
            put_str(out, request.as_bytes());
        }
        Event::ShareUsed(used) => {
            put_str(out, used.queue.as_bytes());
            put_str(out, used.user.as_bytes());
            put_str(out, used.group.as_bytes());
            put_factor(out, used.cpu);
            put_factor(out, used.run);
        }
        Event::HostStarts { hosts } => {
            put_u64(out, hosts.len() as u64);
            hosts.iter().for_each(|host| put_str(out, host.as_bytes()));
        }
        Event::Carried { next_job, epoch } => {
            put_int(out, *next_job);
            put_u64(out, *epoch);
        }
        Event::Reservation(_) | Event::ReservationEnd { .. } | Event::ReservationNext { .. } => {
            reservation::put_event(out, event)
        }
        _ => {}
    }
}
