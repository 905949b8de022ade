//! The usage fields of a record (lsb.acct(5)), and the values of the tail for usage without a
//! field.

use super::record_error::RecordError;
use super::text::{Fields, put_int, put_str, put_u64, put_us};
use crate::model::event::HostUsage;
use crate::model::job::Usage;
use crate::model::time::US;

/// The 19 usage fields of a job without usage.
pub(super) const NO_USAGE: &[u8] =
    b" -1.000000 -1.000000 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1";

/// The 19 usage fields, in the order of lsb.acct(5). A field that was not measured is 0 or, where
/// LSF writes -1 on this system, -1.
pub(super) fn put_usage(out: &mut Vec<u8>, u: &Usage) {
    put_us(out, u.utime_us);
    put_us(out, u.stime_us);
    put_u64(out, u.max_mem_kb);
    for n in [0, -1, 0, 0] {
        put_int(out, n);
    }
    put_u64(out, u.minflt);
    put_u64(out, u.majflt);
    put_int(out, 0);
    put_u64(out, u.inblock);
    put_u64(out, u.oublock);
    for n in [-1, 0, 0, 0] {
        put_int(out, n);
    }
    put_u64(out, u.nvcsw);
    put_u64(out, u.nivcsw);
    put_int(out, -1);
}

/// Reads the 19 usage fields; `None`: the job had no usage.
pub(super) fn get_usage(f: &mut Fields<'_>) -> Result<Option<Usage>, RecordError> {
    let none = f.next_is("-1.000000") || f.next_is("-1");
    let mut u = Usage { utime_us: f.us()?, stime_us: f.us()?, ..Usage::default() };
    u.max_mem_kb = f.count()?;
    f.skip(4)?;
    u.minflt = f.count()?;
    u.majflt = f.count()?;
    f.skip(1)?;
    u.inblock = f.count()?;
    u.oublock = f.count()?;
    f.skip(4)?;
    u.nvcsw = f.count()?;
    u.nivcsw = f.count()?;
    f.skip(1)?;
    Ok(if none { None } else { Some(u) })
}

/// Usage facts that the 19 fields have no place for, in the order of the tail value.
pub(super) fn more_usage(u: &Usage) -> [u64; 7] {
    let (t, p) = (u64::from(u.nthreads), u64::from(u.nprocs));
    [u.mem_kb, u.swap_kb, u.max_mem_kb, u.avg_mem_kb, u.max_swap_kb, t, p]
}

/// The highest number of processors in use, and its time: the tail value `lsf.peak`.
pub(super) fn peak(u: &Usage) -> Option<[u64; 2]> {
    (u.cpu_peak > 0).then(|| [u64::from(u.cpu_peak), u64::from(u.cpu_peak_secs)])
}

pub(super) fn set_peak(u: &mut Usage, v: &[u64]) {
    if let [peak, secs] = *v {
        u.cpu_peak = peak.try_into().unwrap_or(u32::MAX);
        u.cpu_peak_secs = secs.try_into().unwrap_or(u32::MAX);
    }
}

pub(super) fn set_more_usage(u: &mut Usage, v: &[u64]) {
    if let [mem, swap, max_mem, avg, max_swap, threads, procs] = *v {
        (u.mem_kb, u.swap_kb, u.max_mem_kb) = (mem, swap, max_mem);
        (u.avg_mem_kb, u.max_swap_kb) = (avg, max_swap);
        u.nthreads = threads.try_into().unwrap_or(u32::MAX);
        u.nprocs = procs.try_into().unwrap_or(u32::MAX);
    }
}

/// numhRusages and, for each host: host mem swap utime stime.
pub(super) fn put_hosts_used(out: &mut Vec<u8>, hosts: &[HostUsage]) {
    put_u64(out, hosts.len() as u64);
    for host in hosts {
        put_str(out, host.host.as_bytes());
        put_figures(out, host);
    }
}

/// numHostRusage of lsb.acct, which is written in another way: hosts without quotes, and a sixth
/// value, 0, behind the others.
pub(super) fn put_hosts_accounted(out: &mut Vec<u8>, hosts: &[HostUsage]) {
    put_u64(out, hosts.len() as u64);
    for host in hosts {
        out.push(b' ');
        out.extend_from_slice(host.host.as_bytes());
        put_figures(out, host);
        put_int(out, 0);
    }
}

fn put_figures(out: &mut Vec<u8>, host: &HostUsage) {
    let [utime, stime] = host.whole_secs();
    for figure in [host.mem_kb, host.swap_kb, utime, stime] {
        put_u64(out, figure);
    }
}

/// The `hosts` hosts behind such a count, each of `per` values.
pub(super) fn get_hosts_used(
    f: &mut Fields<'_>,
    hosts: usize,
    per: usize,
) -> Result<Box<[HostUsage]>, RecordError> {
    // nothing is allocated by the count
    let mut used = Vec::new();
    for _ in 0..hosts {
        let host = f.word()?.into();
        let (mem_kb, swap_kb) = (f.count()?, f.count()?);
        let (utime_us, stime_us) = (micros(f.count()?), micros(f.count()?));
        f.skip(per.saturating_sub(5))?;
        used.push(HostUsage { host, mem_kb, swap_kb, utime_us, stime_us });
    }
    Ok(used.into())
}

fn micros(secs: u64) -> u64 {
    secs.saturating_mul(US)
}

/// User and system time of each host, microseconds, where the whole seconds of the fields do not
/// tell all: the tail value `lsf.hosts_cpu`.
pub(super) fn hosts_cpu(hosts: &[HostUsage]) -> Option<Vec<u64>> {
    let all: Vec<u64> = hosts.iter().flat_map(|host| [host.utime_us, host.stime_us]).collect();
    all.iter().any(|us| us % US != 0).then_some(all)
}

/// Values that do not fit the fields, as of a line that something else has changed, are left out.
pub(super) fn set_hosts_cpu(hosts: &mut [HostUsage], v: &[u64]) {
    if v.len() != hosts.len() * 2 {
        return;
    }
    for (host, us) in hosts.iter_mut().zip(v.chunks_exact(2)) {
        let [utime_us, stime_us] = *us else { continue };
        let exact = HostUsage { utime_us, stime_us, ..host.clone() };
        if exact.whole_secs() == host.whole_secs() {
            *host = exact;
        }
    }
}
