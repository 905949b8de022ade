//! Figures of a job that several layouts show: its waiting and its efficiency.

use super::show::is_pending;
use lsf::cli::job_rows::{Cell, JobRow};
use lsf::cli::long_format::Efficiency;
use lsf::proto::client::Col;

/// The seconds that are kept of an option.
pub fn kept_secs(r: &JobRow, option: &str) -> Option<i64> {
    r.cell(Col::Extra).key(option)?.text().parse().ok()
}

/// How long a job that waits may do so: as it was submitted, or as its queue says.
pub fn wait_limit(r: &JobRow, option: &str) -> Option<i64> {
    let at = usize::from(option == "eptl");
    let of_queue = || r.list(Col::PendLimits).get(at).and_then(Cell::int);
    kept_secs(r, option).or_else(of_queue).filter(|_| is_pending(r))
}

/// Seconds of waiting in which nothing but room was missing, where that is tracked.
pub fn eligible_secs(r: &JobRow) -> Option<i64> {
    let ineligible = r.cell(Col::IneligibleTime).int()?;
    Some((r.cell(Col::PendTime).int()? - ineligible).max(0))
}

/// The figures that [`efficiency`] is made of.
pub const EFFICIENCY_COLS: &[Col] = &[
    Col::MaxMemKb,
    Col::AvgMemKb,
    Col::EffectiveResReq,
    Col::CombinedResReq,
    Col::ExecHosts,
    Col::CpuUsed,
    Col::RunTime,
    Col::CpuPeak,
    Col::CpuPeakSecs,
];

/// The share that a job used of its resources, once something is known of it.
pub fn efficiency(r: &JobRow) -> Option<Efficiency> {
    let of = |col| lsf::lang::resreq::requested_mb(&r.text(col)).filter(|mb| *mb > 0.0);
    let kb = |col| u64::try_from(r.int(col)).unwrap_or(0);
    let e = Efficiency {
        max_mem_kb: kb(Col::MaxMemKb),
        avg_mem_kb: kb(Col::AvgMemKb),
        asked_mb: of(Col::EffectiveResReq).or_else(|| of(Col::CombinedResReq)).unwrap_or(0.0),
        slots: r.hosts(Col::ExecHosts).map(|(_, n)| n.max(1)).sum(),
        ran: r.num(Col::RunTime),
        cpu: r.num(Col::CpuUsed),
        peak: r.num(Col::CpuPeak),
        peak_secs: r.int(Col::CpuPeakSecs),
    };
    (e.max_mem_kb > 0).then_some(e)
}
