//! lsb.params.
//!
//! See lsb.params(5).

use super::acct_archive::acct_archive;
use super::diag::Diags;
use super::event_stream::event_stream;
use super::exceptions::exceptions;
use super::files::Files;
use super::lexer::{self, shown};
use super::lsf_shared::{nothing, unknown_section};
use super::names::lsb_params::PARAMETERS;
use super::preemption;
use super::section::{Values, known_params};
use super::types::{
    BatchParams, CONDENSED_REASONS, ComputeUnitTypes, DISTRIBUTES, GroupClean, HungJobs, JobAccess,
    RES_REQ_DISPLAYS, RawParam, RawParams, ResReqDisplay, TTL_NEVER, UserGroupParams,
};
use crate::lang::exitcodes::ExitCodes;
use crate::lang::resreq::Distribute;

/// Largest period that is taken, seconds: 68 years.
const MAX_SECONDS: u64 = 0x7fff_ffff;
/// Most of RUSAGE_UPDATE_RATE.
const MAX_UPDATE_RATE: u64 = 1 << 20;
/// REMOVE_HUNG_JOBS_FOR: the wait_time where none is given, minutes.
const HUNG_WAIT: u64 = 10;
/// Largest MAX_JOBID.
pub const LARGEST_JOBID: u64 = 2_147_483_646;
/// Least MAX_JOBID.
pub const LEAST_JOBID: u64 = 999_999;
/// Largest MAX_USER_SPACE, MB.
const MAX_SPACE_MB: u64 = 1 << 30;
/// Largest JOB_RUNLIMIT_RATIO.
const MAX_RATIO: u32 = 1_000_000;
/// The exit value by which a pre-execution command ends its job.
const PRE_ABORT: u8 = 99;
/// Largest factor of fairshare.
pub(super) const MAX_FACTOR: f64 = 1e9;

/// Reads lsb.params. None: it cannot be read.
pub fn parse(files: &dyn Files, path: &str, diags: &mut Diags) -> Option<BatchParams> {
    let mut seen = false;
    let mut params = BatchParams::default();
    for section in lexer::read(files, path, diags)? {
        if !section.is("Parameters") {
            unknown_section(&section, &["Parameters"], diags);
            continue;
        }
        if seen {
            diags.error(&section.pos, "section Parameters is given twice");
            continue;
        }
        seen = true;
        params = typed(known_params(&section, &PARAMETERS, &nothing, diags), diags);
    }
    Some(params)
}

fn typed(raw: RawParams, diags: &mut Diags) -> BatchParams {
    let mut p = BatchParams::default();
    let mut v = Values::new(&raw, diags);
    defaults(&mut p, &mut v);
    times(&mut p, &mut v);
    limits(&mut p, &mut v);
    factors(&mut p, &mut v);
    scheduling_interval(&mut p, &mut v);
    priority_over_time(&mut p, &mut v);
    group_clean(&mut p, &mut v);
    pre_exec(&mut p, &mut v);
    p.preemption = preemption::of_cluster(&mut v);
    p.job_access = job_access(&mut v);
    p.scheduler.user_groups = user_groups(&mut v);
    p.exceptions = exceptions(&mut v);
    p.log.archives = acct_archive(&mut v);
    p.log.event_stream = event_stream(&mut v);
    p.raw = raw;
    p
}

fn defaults(p: &mut BatchParams, v: &mut Values<'_>) {
    p.default_queue = v.list("DEFAULT_QUEUE");
    if let Some(project) = v.text("DEFAULT_PROJECT") {
        p.default_project = project;
    }
    p.default_host_spec = v.text("DEFAULT_HOST_SPEC");
    p.default_application = v.text("DEFAULT_APPLICATION");
    p.default_jobgroup = v.text("DEFAULT_JOBGROUP");
    p.default_user_group = v.text("DEFAULT_USER_GROUP");
    p.default_job_cwd = v.text("DEFAULT_JOB_CWD");
    p.removal.directory_hours = v.number("JOB_CWD_TTL", 0..=TTL_NEVER);
    p.default_job_outdir = v.text("DEFAULT_JOB_OUTDIR");
    p.job_spool_dir = v.text("JOB_SPOOL_DIR");
    if let Some(order) = v.text("DEFAULT_RESREQ_ORDER") {
        p.default_resreq_order = order;
    }
}

/// Access to the jobs of others, and to own ones that administrators have stopped.
fn job_access(v: &mut Values<'_>) -> JobAccess {
    const ROLES: &str = "ENABLE_JOB_INFO_BY_ADMIN_ROLE";
    const LEVEL: &str = "SECURE_JOB_INFO_LEVEL";
    // a wrong value shows nobody more than the right one may have been meant to
    let without = if v.raw.get(LEVEL).is_some() { JobAccess::STRICTEST } else { 0 };
    let level = v.number(LEVEL, 0..=JobAccess::LEVEL_MAX).unwrap_or(without);
    let mut access = JobAccess { level, ..JobAccess::default() };
    v.flag(&mut access.strict_user_groups, "STRICT_UG_CONTROL");
    v.flag(&mut access.user_resume, "ENABLE_USER_RESUME");
    for RawParam { text, pos, .. } in v.words(ROLES) {
        match text.to_ascii_lowercase().as_str() {
            "usergroup" => access.user_group_admins = true,
            "queue" => access.queue_admins = true,
            "cluster" => access.cluster_admins = true,
            "null" => {}
            _ => v.diags.error(
                &pos,
                format!("<{}> of {ROLES} is none of usergroup, queue and cluster", shown(&text)),
            ),
        }
    }
    access
}

/// ENFORCE_ONE_UG_LIMITS and the others about user groups.
fn user_groups(v: &mut Values<'_>) -> UserGroupParams {
    let mut of = UserGroupParams::default();
    v.flag(&mut of.one_group_limits, "ENFORCE_ONE_UG_LIMITS");
    v.flag(&mut of.tree, "ENFORCE_UG_TREE");
    v.flag(&mut of.default_skips_groups, "DEFAULT_LIMIT_IGNORE_USER_GROUP");
    of
}

/// COMPUTE_UNIT_TYPES: names, one of which may end with `!`.
fn unit_types(types: &mut ComputeUnitTypes, v: &mut Values<'_>) {
    const NAME: &str = "COMPUTE_UNIT_TYPES";
    let mut default = None;
    for RawParam { text: word, pos, .. } in v.words(NAME) {
        let name = word.strip_suffix('!').unwrap_or(&word);
        let well_formed = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        let text = if name.is_empty() || !name.chars().all(well_formed) {
            format!("<{}> of {NAME} is not the name of a type", shown(&word))
        } else if types.names.iter().any(|known| known == name) {
            format!("{NAME} names <{}> twice", shown(name))
        } else if word.ends_with('!') && default.is_some() {
            format!("{NAME} marks a second type with `!`: <{}>", shown(name))
        } else {
            if word.ends_with('!') {
                default = Some(types.names.len());
            }
            types.names.push(name.to_owned());
            continue;
        };
        v.diags.error(&pos, text);
    }
    types.default = default.unwrap_or(0);
}

fn times(p: &mut BatchParams, v: &mut Values<'_>) {
    v.set(&mut p.mbd_sleep_time, "MBD_SLEEP_TIME", 1..=MAX_SECONDS);
    v.set(&mut p.nlb_rank_age, "NLB_RANK_AGE", 1..=300);
    v.set(&mut p.sbd_sleep_time, "SBD_SLEEP_TIME", 1..=MAX_SECONDS);
    v.set(&mut p.rusage_update_rate, "RUSAGE_UPDATE_RATE", 1..=MAX_UPDATE_RATE);
    v.set(&mut p.rusage_update_percent, "RUSAGE_UPDATE_PERCENT", 1..=100);
    v.set(&mut p.job_accept_interval, "JOB_ACCEPT_INTERVAL", 0..=MAX_SECONDS);
    v.set(&mut p.clean_period, "CLEAN_PERIOD", 0..=MAX_SECONDS);
    clean_done(p, v);
    p.event_update_interval = v.number("EVENT_UPDATE_INTERVAL", 1..=MAX_SECONDS);
    v.set(&mut p.log.min_switch_period, "MIN_SWITCH_PERIOD", 0..=MAX_SECONDS);
    v.set(&mut p.job_terminate_interval, "JOB_TERMINATE_INTERVAL", 0..=MAX_SECONDS);
    v.set(&mut p.sub_try_interval, "SUB_TRY_INTERVAL", 0..=MAX_SECONDS);
    p.egroup_interval = v.hours("EGROUP_UPDATE_INTERVAL");
    v.set(&mut p.pg_susp_it, "PG_SUSP_IT", 0..=MAX_SECONDS);
    let minutes = v.number("JOB_POSTPROC_TIMEOUT", 1..=MAX_SECONDS / 60);
    p.command_timeouts.post = minutes.map(|m: u64| m * 60);
    let minutes = v.number("JOB_PREPROC_TIMEOUT", 1..=MAX_SECONDS / 60);
    p.command_timeouts.pre = minutes.map(|m: u64| m * 60);
    p.removal.orphan_grace = v.number("ORPHAN_JOB_TERM_GRACE_PERIOD", 0..=MAX_SECONDS);
    p.removal.hung = hung_jobs(v);
}

/// CLEAN_PERIOD_DONE, which must be less than CLEAN_PERIOD.
fn clean_done(p: &BatchParams, v: &mut Values<'_>) {
    const NAME: &str = "CLEAN_PERIOD_DONE";
    let done: Option<u64> = v.number(NAME, 0..=MAX_SECONDS);
    if let Some(value) = v.raw.get(NAME).filter(|_| done.is_some_and(|done| done >= p.clean_period))
    {
        let text =
            format!("{NAME} is ignored: it is not less than CLEAN_PERIOD, {}", p.clean_period);
        v.diags.warning(&value.pos, text);
    }
}

/// REMOVE_HUNG_JOBS_FOR: `runlimit[,wait_time=minutes]:host_unavail[,wait_time=minutes]`, one of
/// the two, or `all[,wait_time=minutes]`.
fn hung_jobs(v: &mut Values<'_>) -> HungJobs {
    const NAME: &str = "REMOVE_HUNG_JOBS_FOR";
    let mut all = HungJobs::default();
    let Some(value) = v.raw.get(NAME) else { return all };
    for part in value.text.split(':') {
        let words: Vec<&str> = part.split(',').map(str::trim).collect();
        let minutes = match words[1..] {
            [] => Some(HUNG_WAIT),
            [wait] => wait.strip_prefix("wait_time").and_then(|rest| {
                let minutes = rest.trim_start().strip_prefix('=')?.trim().parse::<u64>().ok()?;
                (1..=MAX_SECONDS / 60).contains(&minutes).then_some(minutes)
            }),
            _ => None,
        };
        let wait = minutes.map(|minutes| minutes * 60);
        let places = match words[0] {
            "runlimit" => vec![&mut all.runlimit],
            "host_unavail" => vec![&mut all.host_unavail],
            "all" => vec![&mut all.runlimit, &mut all.host_unavail],
            _ => Vec::new(),
        };
        if wait.is_none() || places.is_empty() || places.iter().any(|place| place.is_some()) {
            let want = "runlimit, host_unavail, both with : between them, or all is wanted, each \
                        with ,wait_time=minutes";
            v.bad(NAME, value, want);
            return HungJobs::default();
        }
        places.into_iter().for_each(|place| *place = wait);
    }
    all
}

fn limits(p: &mut BatchParams, v: &mut Values<'_>) {
    v.set(&mut p.advrsv_user_limit, "ADVRSV_USER_LIMIT", 1..=MAX_ADVRSV);
    v.set(&mut p.max_job_num, "MAX_JOB_NUM", 0..=MAX_SECONDS);
    v.set(&mut p.max_jobid, "MAX_JOBID", LEAST_JOBID..=LARGEST_JOBID);
    v.set(&mut p.max_job_array_size, "MAX_JOB_ARRAY_SIZE", 1..=LARGEST_JOBID as u32);
    v.set(&mut p.max_sbd_fail, "MAX_SBD_FAIL", 1..=u32::MAX);
    v.set(&mut p.max_job_msg_num, "MAX_JOB_MSG_NUM", 0..=u32::MAX);
    p.max_job_atta_kb = v.number("MAX_JOB_ATTA_SIZE", 0..=MAX_SECONDS);
    p.max_user_priority = v.number("MAX_USER_PRIORITY", 1..=u32::MAX);
    v.set(&mut p.run_limits.ratio, "JOB_RUNLIMIT_RATIO", 0..=MAX_RATIO);
    p.max_user_jobs = v.number("MAX_USER_JOBS", 1..=LARGEST_JOBID);
    v.set(&mut p.max_user_space_mb, "MAX_USER_SPACE", 1..=MAX_SPACE_MB);
    p.max_pend_jobs = v.number("MAX_PEND_JOBS", 0..=u64::MAX);
    p.max_pend_slots = v.number("MAX_PEND_SLOTS", 0..=u64::MAX);
    p.evaluation.most = v.number("EVALUATE_JOB_DEPENDENCY", 1..=u32::MAX);
    evaluate_timeout(p, v);
    let _: Option<u32> = v.number("MAX_CONCURRENT_QUERY", 1..=u32::MAX);
    let _: Option<u64> = v.number("PEND_REASON_UPDATE_INTERVAL", 1..=MAX_SECONDS);
    let _: Option<u64> = v.number("PEND_REASON_MAX_JOBS", 0..=MAX_SECONDS);
    let _: Option<u64> = v.number("DEFAULT_SLA_VELOCITY", 1..=MAX_SECONDS);
    let _: Option<u64> = v.number("SLA_TIMER", 0..=MAX_SECONDS);
    v.flag(&mut p.job_dep_last_sub, "JOB_DEP_LAST_SUB");
    v.flag(&mut p.job_position_control_by_admin, "JOB_POSITION_CONTROL_BY_ADMIN");
    v.flag(&mut p.run_limits.absolute, "ABS_RUNLIMIT");
    p.chunk_job_duration = v.period("CHUNK_JOB_DURATION");
    v.flag(&mut p.scheduler.parallel_by_slot, "PARALLEL_SCHED_BY_SLOT");
    v.flag(&mut p.scheduler.per_job_sort, "SCHED_PER_JOB_SORT");
    v.word_of(&mut p.scheduler.condensed_reasons, "CONDENSE_PENDING_REASONS", &CONDENSED_REASONS);
    v.flag(&mut p.disable_uacct_map, "DISABLE_UACCT_MAP");
    // the newer name wins
    unit_types(&mut p.compute_unit_types, v);
    v.flag(&mut p.resource_reserve_per_task, "SLOT_RESOURCE_RESERVE");
    v.flag(&mut p.resource_reserve_per_task, "RESOURCE_RESERVE_PER_SLOT");
    v.flag(&mut p.resource_reserve_per_task, "RESOURCE_RESERVE_PER_TASK");
    v.word_of(&mut Distribute::Any, "JOB_DISTRIBUTE_ON_HOST", &DISTRIBUTES);
    v.word_of(&mut ResReqDisplay::Brief, "BJOBS_RES_REQ_DISPLAY", &RES_REQ_DISPLAYS);
    v.flag(&mut false, "BSWITCH_MODIFY_RUSAGE");
    v.flag(&mut p.job_include_postproc, "JOB_INCLUDE_POSTPROC");
    v.flag(&mut p.force_kill_by_admins, "PRIVILEGED_USER_FORCE_BKILL");
    v.flag(&mut p.track_eligible, "TRACK_ELIGIBLE_PENDINFO");
    v.flag(&mut p.sched_metric.enabled, "SCHED_METRIC_ENABLE");
    v.set(&mut p.sched_metric.period, "SCHED_METRIC_SAMPLE_PERIOD", 1..=MAX_SECONDS);
}

/// Largest ADVRSV_USER_LIMIT.
const MAX_ADVRSV: u32 = 10_000;
/// Largest number of EVALUATE_JOB_DEPENDENCY_TIMEOUT, in either unit.
const MAX_EVALUATE: u64 = 1_000_000;

fn factors(p: &mut BatchParams, v: &mut Values<'_>) {
    v.set(&mut p.cpu_time_factor, "CPU_TIME_FACTOR", 0.0..=MAX_FACTOR);
    v.set(&mut p.run_time_factor, "RUN_TIME_FACTOR", 0.0..=MAX_FACTOR);
    v.set(&mut p.run_job_factor, "RUN_JOB_FACTOR", 0.0..=MAX_FACTOR);
    v.set(&mut p.committed_run_time_factor, "COMMITTED_RUN_TIME_FACTOR", 0.0..=MAX_FACTOR);
    v.flag(&mut p.run_time_decay, "RUN_TIME_DECAY");
    v.flag(&mut p.enable_hist_run_time, "ENABLE_HIST_RUN_TIME");
    v.set(&mut p.hist_hours, "HIST_HOURS", 0.0..=MAX_FACTOR);
}

/// `min[ms] [max]`: seconds unless the first says ms.
fn scheduling_interval(p: &mut BatchParams, v: &mut Values<'_>) {
    let name = "JOB_SCHEDULING_INTERVAL";
    let Some(value) = v.raw.get(name) else { return };
    let least = |word: &str| -> Option<u64> {
        match word.strip_suffix("ms") {
            Some(ms) => ms.parse().ok(),
            None => word.parse::<u64>().ok()?.checked_mul(1_000),
        }
    };
    let words: Vec<&str> = value.text.split_whitespace().collect();
    let read = match words.as_slice() {
        [min] => least(min),
        [min, "ms"] => min.parse().ok(),
        // the longest cycle is read alone: a pass begins when something has changed
        [min, max] => least(min).filter(|_| max.parse::<u64>().is_ok()),
        [min, "ms", max] => min.parse().ok().filter(|_| max.parse::<u64>().is_ok()),
        _ => None,
    };
    match read {
        Some(min) => p.sched_interval_min_ms = min,
        None => v.bad(name, value, "min[ms] [max] is wanted"),
    }
}

/// `n` seconds or `n ms`.
fn evaluate_timeout(p: &mut BatchParams, v: &mut Values<'_>) {
    let name = "EVALUATE_JOB_DEPENDENCY_TIMEOUT";
    let Some(value) = v.raw.get(name) else { return };
    let text = value.text.trim();
    let read = match text.strip_suffix("ms") {
        Some(ms) => ms.trim().parse::<u64>().ok().map(|n| (n, n)),
        None => text.parse::<u64>().ok().map(|n| (n, n.saturating_mul(1_000))),
    };
    match read.filter(|(n, _)| (1..=MAX_EVALUATE).contains(n)) {
        Some((_, ms)) => p.evaluation.timeout_ms = Some(ms),
        None => v.bad(name, value, "1 to 1000000 seconds, or milliseconds with ms, are wanted"),
    }
}

/// `increment/minutes`.
fn priority_over_time(p: &mut BatchParams, v: &mut Values<'_>) {
    let name = "JOB_PRIORITY_OVER_TIME";
    let Some(value) = v.raw.get(name) else { return };
    let read = value.text.split_once('/').and_then(|(increment, minutes)| {
        let minutes: u64 = minutes.trim().parse().ok().filter(|&m| m > 0)?;
        Some((increment.trim().parse().ok()?, minutes))
    });
    match read {
        Some(pair) => p.job_priority_over_time = Some(pair),
        None => v.bad(name, value, "increment/minutes is wanted"),
    }
}

/// The parameters of pre-execution commands that fail.
fn pre_exec(p: &mut BatchParams, v: &mut Values<'_>) {
    let name = "PREEXEC_EXCLUDE_HOST_EXIT_VALUES";
    if let Some(value) = v.raw.get(name) {
        p.preexec_exclude = ExitCodes::of_hosts(&value.text, PRE_ABORT);
        if p.preexec_exclude.is_none() {
            let want = "exit values from 1 to 255 without 99, or all [~value ...], are wanted";
            v.bad(name, value, want);
        }
    }
    v.pre_exec_retries();
}

/// `Y`, `N` or `all`.
fn group_clean(p: &mut BatchParams, v: &mut Values<'_>) {
    let name = "JOB_GROUP_CLEAN";
    let Some(value) = v.raw.get(name) else { return };
    match value.text.trim().to_ascii_lowercase().as_str() {
        "y" => p.job_group_clean = GroupClean::Implicit,
        "n" => p.job_group_clean = GroupClean::No,
        "all" => p.job_group_clean = GroupClean::All,
        _ => v.bad(name, value, "Y, N or all is wanted"),
    }
}
