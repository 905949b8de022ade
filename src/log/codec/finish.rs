//! JOB_FINISH, one line of lsb.acct (lsb.acct(5): the order of real 10.1 records). The record ends
//! with LSF's own key-value tail; ours adds its `lsf.*` keys to it.

use super::options::{lsb_options, lsb_options2, lsb_options3};
use super::record::{put_head, put_hosts, put_job_file, put_list, run_time};
use super::record_error::RecordError;
use super::text::{Fields, Tail, nums, put_factor, put_int, put_str, put_u64};
use super::usage::{
    NO_USAGE, get_hosts_used, get_usage, hosts_cpu, more_usage, peak, put_hosts_accounted,
    put_usage, set_hosts_cpu, set_more_usage, set_peak,
};
use crate::model::ByteStr;
use crate::model::event::{Finish, HostUsage};
use crate::model::further;
use crate::model::job::Usage;
use crate::model::job_state::LoggedStatus;

/// Appends the line of a finished job, newline included.
pub fn write_finish(fin: &Finish, out: &mut Vec<u8>) {
    let s = &fin.spec;
    put_head(out, "JOB_FINISH", fin.event_time);
    put_int(out, fin.at.job);
    put_int(out, fin.uid);
    put_int(out, lsb_options(s));
    put_int(out, s.min_slots);
    for time in [fin.submit_time, s.begin_time, s.term_time, fin.start_time] {
        put_int(out, time);
    }
    for text in [&fin.user, &s.queue, &s.res_req, &s.depend] {
        put_str(out, text.as_bytes());
    }
    put_str(out, s.pre_exec.as_bytes());
    put_str(out, s.from_host.as_bytes());
    for path in [&s.cwd, &s.in_file, &s.out_file, &s.err_file] {
        put_str(out, path.as_bytes());
    }
    put_job_file(out, fin.submit_time, fin.at.job);
    put_list(out, &s.hosts);
    put_hosts(out, &fin.exec_hosts, fin.short_hosts);
    put_int(out, fin.status.bits());
    put_factor(out, fin.host_factor);
    put_str(out, s.name.as_bytes());
    put_str(out, s.command.as_bytes());
    match &fin.usage {
        Some(u) => put_usage(out, u),
        None => out.extend_from_slice(NO_USAGE),
    }
    put_after_usage(out, fin);
    put_measures(out, fin);
    put_pairs(out, fin);
    out.push(b'\n');
}

/// mailUser to avgMem.
fn put_after_usage(out: &mut Vec<u8>, fin: &Finish) {
    let s = &fin.spec;
    let u = fin.usage.unwrap_or_default();
    put_str(out, s.mail_user.as_bytes());
    put_str(out, s.project.as_bytes());
    put_int(out, fin.exit_status);
    put_int(out, s.max_slots);
    put_str(out, s.login_shell.as_bytes());
    // timeEvent
    put_str(out, b"");
    put_int(out, fin.at.idx);
    put_u64(out, u.max_mem_kb);
    put_u64(out, u.max_swap_kb);
    // inFileSpool commandSpool, and additionalInfo after exceptMask
    out.extend_from_slice(b" \"\" \"\"");
    put_str(out, s.further.reservation.as_bytes());
    put_str(out, s.further.service_class.as_bytes());
    put_int(out, fin.exceptions);
    put_str(out, b"");
    put_int(out, fin.exit_info);
    // warningAction warningTimePeriod chargedSAAP licenseProject
    out.extend_from_slice(b" \"\" -1");
    put_str(out, fin.charged.as_bytes());
    put_str(out, s.further.license_project.as_bytes());
    put_str(out, s.further.application.as_bytes());
    put_str(out, s.post_exec.as_bytes());
    // runtimeEstimation
    put_int(out, -1);
    put_str(out, s.further.job_group.as_bytes());
    // requeueEvalues
    put_str(out, b"");
    put_int(out, lsb_options2(s));
    put_str(out, s.further.resize_command.as_bytes());
    // lastResizeTime (the start until resized)
    put_int(out, if fin.last_resize > 0 { fin.last_resize } else { fin.start_time });
    put_str(out, s.further.reservation.as_bytes());
    put_str(out, s.description.as_bytes());
    // submitEXT
    put_int(out, 0);
    put_hosts_accounted(out, &fin.hosts_used);
    match s.limits.run {
        Some(secs) => put_u64(out, secs),
        None => put_int(out, -1),
    }
    put_int(out, lsb_options3(s));
    put_u64(out, u.avg_mem_kb);
}

/// effectiveResReq to storageInfoC.
fn put_measures(out: &mut Vec<u8>, fin: &Finish) {
    put_str(out, fin.eff_res_req.as_bytes());
    // clusters, forwardTime flow_id acJobWaitTime totalProvisionTime outdir
    out.extend_from_slice(b" \"\" -1 \"\" -1 0 \"\" 0 0 \"\"");
    put_int(out, run_time(fin));
    put_str(out, fin.spec.cwd.as_bytes());
    // num_network affinity serial_job_energy cpi gips gbs gflops
    out.extend_from_slice(b" 0 \"\" 0.000000 0.00 0.00 0.00 0.00");
    put_hosts(out, &fin.exec_hosts, fin.short_hosts);
    // ineligiblePendTime
    put_int(out, fin.ineligible_secs.unwrap_or(-1));
    // indexRangeCnt requeueTime numGPURusages storageInfoC
    out.extend_from_slice(b" 0 0 0 0");
}

/// numKVP and its pairs.
fn put_pairs(out: &mut Vec<u8>, fin: &Finish) {
    let mut tail = Tail::begin(out);
    tail.text(out, "schedulingOverhead", b"0.00");
    tail.nums(out, "lsf.attempt", b' ', &[u64::from(fin.attempt)]);
    if fin.unknown_end {
        tail.nums(out, "lsf.unknown_end", b' ', &[1]);
    }
    if fin.spec.options != lsb_options(&fin.spec) {
        tail.nums(out, "lsf.options", b' ', &[u64::from(fin.spec.options)]);
    }
    if fin.spec.options2 != 0 {
        tail.nums(out, "lsf.options2", b' ', &[u64::from(fin.spec.options2)]);
    }
    if let Some(u) = &fin.usage {
        tail.nums(out, "lsf.usage", b' ', &more_usage(u));
        if let Some(peak) = peak(u) {
            tail.nums(out, "lsf.peak", b' ', &peak);
        }
    }
    if let Some(cpu) = hosts_cpu(&fin.hosts_used) {
        tail.nums(out, "lsf.hosts_cpu", b' ', &cpu);
    }
    tail.end(out);
}

/// Reads a JOB_FINISH line of any version, with or without its newline. Parts of the submission
/// that JOB_FINISH does not have (limits but the run limit, home, umask ...) stay empty.
pub fn read_finish(line: &[u8]) -> Result<Finish, RecordError> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    // never written: what a loss of power left of a line, though the rest could be read
    if line.contains(&0) {
        return Err(RecordError::NotARecord);
    }
    let mut f = Fields::new(line);
    let mut fin = Finish::default();
    if !matches!(f.bytes().as_deref(), Ok(b"JOB_FINISH")) {
        return Err(RecordError::NotARecord);
    }
    f.skip(1)?;
    fin.event_time = f.num()?;
    get_submission(&mut f, &mut fin)?;
    fin.usage = get_usage(&mut f)?;
    fin.spec.mail_user = f.text()?;
    fin.spec.project = f.text()?;
    fin.exit_status = f.num()?;
    fin.spec.max_slots = f.num()?;
    fin.spec.login_shell = ByteStr(f.bytes()?.into_owned());
    if f.next_is_string() {
        // timeEvent: not in the openlava family
        f.skip(1)?;
    }
    fin.at.idx = f.num()?;
    let (max_mem, max_swap): (i64, i64) = (f.num()?, f.num()?);
    // older versions end somewhere from here on
    let late = get_late(&mut f, &mut fin);
    if late.is_err() && fin.usage.is_some() && max_mem > 0 {
        let u = fin.usage.get_or_insert_default();
        u.max_mem_kb = u.max_mem_kb.max(max_mem as u64);
        u.max_swap_kb = u.max_swap_kb.max(max_swap.max(0) as u64);
    }
    Ok(fin)
}

fn get_submission(f: &mut Fields<'_>, fin: &mut Finish) -> Result<(), RecordError> {
    let bytes = |f: &mut Fields<'_>| f.bytes().map(|b| ByteStr(b.into_owned()));
    let s = &mut fin.spec;
    fin.at.job = f.num()?;
    fin.uid = f.num()?;
    s.options = f.num()?;
    s.min_slots = f.num()?;
    fin.submit_time = f.num()?;
    s.begin_time = f.num()?;
    s.term_time = f.num()?;
    fin.start_time = f.num()?;
    fin.user = f.text()?;
    s.queue = f.text()?;
    s.res_req = f.text()?;
    s.depend = f.text()?;
    s.pre_exec = bytes(f)?;
    s.from_host = f.text()?;
    s.cwd = bytes(f)?;
    s.in_file = bytes(f)?;
    s.out_file = bytes(f)?;
    s.err_file = bytes(f)?;
    // jobFile
    f.skip(1)?;
    s.hosts = f.list()?;
    (fin.exec_hosts, fin.short_hosts) = f.hosts_with_slots()?;
    fin.status = LoggedStatus::of_bits(f.num()?);
    fin.host_factor = f.num()?;
    s.name = f.text()?;
    s.command = bytes(f)?;
    Ok(())
}

fn get_option(f: &mut Fields<'_>, fin: &mut Finish, key: &str) -> Result<(), RecordError> {
    let text = f.text()?;
    if !text.is_empty() {
        fin.spec.further.put_text(key, &text);
    }
    Ok(())
}

/// inFileSpool to the end.
fn get_late(f: &mut Fields<'_>, fin: &mut Finish) -> Result<(), RecordError> {
    // inFileSpool commandSpool rsvId, and additionalInfo after exceptMask
    f.skip(3)?;
    get_option(f, fin, further::SLA)?;
    fin.exceptions = f.num()?;
    f.skip(1)?;
    fin.exit_info = f.num()?;
    // warningAction warningTimePeriod
    f.skip(2)?;
    fin.charged = f.text()?;
    get_option(f, fin, further::LICENSE)?;
    get_option(f, fin, further::APP)?;
    fin.spec.post_exec = ByteStr(f.bytes()?.into_owned());
    // runtimeEstimation
    f.skip(1)?;
    get_option(f, fin, further::GROUP)?;
    // requeueEvalues options2
    f.skip(2)?;
    get_option(f, fin, further::RESIZE_COMMAND)?;
    let resized: i64 = f.num()?;
    fin.last_resize = if resized == fin.start_time { 0 } else { resized.max(0) };
    // rsvId
    f.skip(1)?;
    fin.spec.description = f.text()?;
    let ext: usize = f.num()?;
    for _ in 0..ext {
        f.skip(2)?;
    }
    fin.hosts_used = get_host_usage(f)?;
    let run: i64 = f.num()?;
    fin.spec.limits.run = if run > 0 { Some(run as u64) } else { None };
    // options3
    f.skip(1)?;
    let avg: i64 = f.num()?;
    if let Some(u) = &mut fin.usage {
        u.avg_mem_kb = avg.max(0) as u64;
    }
    fin.eff_res_req = f.text()?;
    // clusters, forwardTime flow_id acJobWaitTime totalProvisionTime outdir runTime subcwd
    f.skip(11)?;
    let networks: usize = f.num()?;
    for _ in 0..networks {
        f.skip(2)?;
    }
    // affinity serial_job_energy cpi gips gbs gflops
    f.skip(6)?;
    f.slots()?;
    fin.ineligible_secs = Some(f.num::<i64>()?).filter(|secs| *secs >= 0);
    let ranges: usize = f.num()?;
    for _ in 0..ranges {
        f.skip(3)?;
    }
    // requeueTime, then GPU and storage usage
    f.skip(1)?;
    let (gpus, storage): (u32, u32) = (f.num()?, f.num()?);
    if gpus == 0 && storage == 0 {
        get_pairs(f, fin)?;
    }
    Ok(())
}

/// numHostRusage: five values a host, six from 9.1.1 on; the host is not quoted and the values
/// are numbers, so that five are taken for sure and the sixth where a number stands before a
/// host or where the rest would not fit.
fn get_host_usage(f: &mut Fields<'_>) -> Result<Box<[HostUsage]>, RecordError> {
    let hosts: usize = f.num()?;
    if hosts == 0 {
        return Ok(Box::default());
    }
    for per in [6, 5] {
        let mut ahead = f.clone();
        let Ok(used) = get_hosts_used(&mut ahead, hosts, per) else { continue };
        // runLimit options3 avgMem are numbers and effectiveResReq is a string
        let mut look = ahead.clone();
        if (0..3).all(|_| look.num::<i64>().is_ok()) && look.next_is_string() {
            *f = ahead;
            return Ok(used);
        }
    }
    Err(f.bad("usage by host"))
}

fn get_pairs(f: &mut Fields<'_>, fin: &mut Finish) -> Result<(), RecordError> {
    let n: u32 = f.num()?;
    for _ in 0..n {
        let (key, value) = (f.bytes()?, f.bytes()?);
        let values = nums(&value, ' ').unwrap_or_default();
        let one = values.first().copied().unwrap_or(0);
        match &*key {
            b"lsf.attempt" => fin.attempt = one as u32,
            b"lsf.unknown_end" => fin.unknown_end = one != 0,
            b"lsf.options" => fin.spec.options = one as u32,
            b"lsf.options2" => fin.spec.options2 = one as u32,
            b"lsf.usage" => {
                set_more_usage(fin.usage.get_or_insert_with(Usage::default), &values);
            }
            b"lsf.hosts_cpu" => set_hosts_cpu(&mut fin.hosts_used, &values),
            b"lsf.peak" => set_peak(fin.usage.get_or_insert_with(Usage::default), &values),
            _ => {}
        }
    }
    Ok(())
}
