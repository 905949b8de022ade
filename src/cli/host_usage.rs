//! The usage of an ended job on each of its hosts, as `bacct -l` and `bhist -l` show it.

use crate::cli::long_format::push_clean;
use crate::model::event::HostUsage;
use std::fmt::Write;

/// The usage of an ended job on each of its hosts, where these are several, each line behind
/// `indent`: the facts are those of LSF, the layout is ours.
pub fn usage_by_host(out: &mut String, indent: &str, hosts: &[HostUsage]) {
    if hosts.is_empty() {
        return;
    }
    let _ = writeln!(out, "{indent}HOST                  UTIME     STIME     MEM    SWAP");
    for host in hosts {
        let mut name = String::new();
        push_clean(&mut name, &host.host);
        let (mem, swap) = (short_size(host.mem_kb), short_size(host.swap_kb));
        let [utime, stime] = [host.utime_us, host.stime_us].map(|us| us as f64 / 1e6);
        let _ = writeln!(out, "{indent}{name:<17} {utime:>9.2}{stime:>10.2}{mem:>8}{swap:>8}");
    }
}

/// A size in KB as bacct has it: in MB, from a gigabyte on in GB with one decimal.
pub fn short_size(kb: u64) -> String {
    match kb {
        0..1_048_576 => format!("{}M", kb / 1024),
        _ => format!("{:.1}G", kb as f64 / 1_048_576.0),
    }
}
