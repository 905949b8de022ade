//! bparams: the parameters of the cluster, with their defaults.

use crate::batch::StepContext;
use crate::batch::mbatchd::Mbatchd;
use crate::conf::types::BatchParams;
use crate::proto::client::ClientMsg;
use crate::proto::machine::ConnId;

type Rows = Vec<(String, String)>;

impl Mbatchd {
    pub(crate) fn list_params(&mut self, context: &mut StepContext, conn: ConnId) {
        let p = self.site.params();
        let mut values: Rows = vec![
            row("CLUSTER", self.site.conf.base.name.clone()),
            row("MASTER", self.me.clone()),
            row("DEFAULT_QUEUE", self.site.default_queues().join(" ")),
        ];
        values.extend(texts(p));
        values.extend(numbers(p));
        values.push(row("DEFAULT_PROJECT", p.default_project.clone()));
        values.extend(maxima(p));
        values.extend(fairshare_factors(p));
        values.extend(switches(p));
        // in a personal cluster all jobs run under the account of its owner
        if p.disable_uacct_map || self.site.personal() {
            values.push(row("DISABLE_UACCT_MAP", "Y".to_string()));
        }
        // The other parameters of the file, as written.
        for (name, value) in &p.raw {
            if values.iter().all(|(n, _)| n != name) {
                values.push((name.clone(), value.text.clone()));
            }
        }
        if let Some(why) = &self.log_failed {
            values.push(row("LOG_FAILED", why.clone()));
        }
        context.reply(conn, ClientMsg::ParamRows { values });
    }
}

fn row(name: &str, value: String) -> (String, String) {
    (name.to_string(), value)
}

/// A number that nothing but this listing reads.
fn as_written(p: &BatchParams, name: &str) -> Option<u64> {
    p.raw.get(name)?.text.trim().parse().ok()
}

/// The texts that are set.
fn texts(p: &BatchParams) -> Rows {
    let all = [
        ("DEFAULT_HOST_SPEC", &p.default_host_spec),
        ("DEFAULT_APPLICATION", &p.default_application),
        ("DEFAULT_JOBGROUP", &p.default_jobgroup),
        ("DEFAULT_USER_GROUP", &p.default_user_group),
        ("DEFAULT_JOB_CWD", &p.default_job_cwd),
        ("DEFAULT_JOB_OUTDIR", &p.default_job_outdir),
        ("JOB_SPOOL_DIR", &p.job_spool_dir),
    ];
    all.into_iter().filter_map(|(name, value)| Some(row(name, value.clone()?))).collect()
}

fn numbers(p: &BatchParams) -> Rows {
    let all = [
        ("MBD_SLEEP_TIME", p.mbd_sleep_time),
        ("SBD_SLEEP_TIME", p.sbd_sleep_time),
        ("RUSAGE_UPDATE_RATE", p.rusage_update_rate),
        ("RUSAGE_UPDATE_PERCENT", p.rusage_update_percent.into()),
        ("JOB_ACCEPT_INTERVAL", p.job_accept_interval),
        ("PG_SUSP_IT", p.pg_susp_it),
        ("CLEAN_PERIOD", p.clean_period),
        ("MAX_JOB_NUM", p.max_job_num),
        ("MAX_SBD_FAIL", p.max_sbd_fail.into()),
        ("JOB_TERMINATE_INTERVAL", p.job_terminate_interval),
        ("MAX_JOB_ARRAY_SIZE", p.max_job_array_size.into()),
        ("MAX_JOBID", p.max_jobid),
        ("SUB_TRY_INTERVAL", p.sub_try_interval),
        ("MIN_SWITCH_PERIOD", p.log.min_switch_period),
        ("MAX_JOB_MSG_NUM", p.max_job_msg_num.into()),
    ];
    all.into_iter().map(|(name, value)| row(name, value.to_string())).collect()
}

/// The limits that are set.
fn maxima(p: &BatchParams) -> Rows {
    let all = [
        ("CLEAN_PERIOD_DONE", p.clean_period_done()),
        ("MAX_USER_PRIORITY", p.max_user_priority.map(u64::from)),
        ("MAX_PEND_JOBS", p.max_pend_jobs),
        ("MAX_PEND_SLOTS", p.max_pend_slots),
        ("SECURE_JOB_INFO_LEVEL", Some(p.job_access.level.into()).filter(|level| *level > 0)),
        ("MAX_CONCURRENT_QUERY", as_written(p, "MAX_CONCURRENT_QUERY")),
    ];
    all.into_iter().filter_map(|(name, value)| Some(row(name, value?.to_string()))).collect()
}

fn fairshare_factors(p: &BatchParams) -> Rows {
    let all = [
        ("RUN_TIME_FACTOR", p.run_time_factor),
        ("CPU_TIME_FACTOR", p.cpu_time_factor),
        ("RUN_JOB_FACTOR", p.run_job_factor),
        ("HIST_HOURS", p.hist_hours),
    ];
    all.into_iter().map(|(name, value)| row(name, format!("{value:.6}"))).collect()
}

fn switches(p: &BatchParams) -> Rows {
    let forced = p.force_kill_by_admins.then_some(("PRIVILEGED_USER_FORCE_BKILL", true));
    let all = [
        ("RESOURCE_RESERVE_PER_TASK", p.resource_reserve_per_task),
        ("ABS_RUNLIMIT", p.run_limits.absolute),
        ("ENABLE_USER_RESUME", p.job_access.user_resume),
    ];
    let more = [
        ("JOB_DEP_LAST_SUB", p.job_dep_last_sub),
        ("JOB_INCLUDE_POSTPROC", p.job_include_postproc),
        ("JOB_POSITION_CONTROL_BY_ADMIN", p.job_position_control_by_admin),
    ];
    let groups = [
        ("ENFORCE_ONE_UG_LIMITS", p.scheduler.user_groups.one_group_limits),
        ("ENFORCE_UG_TREE", p.scheduler.user_groups.tree),
        ("DEFAULT_LIMIT_IGNORE_USER_GROUP", p.scheduler.user_groups.default_skips_groups),
    ];
    let groups = groups.into_iter().filter(|(_, set)| *set);
    let strict = p.job_access.strict_user_groups.then_some(("STRICT_UG_CONTROL", true));
    let all = all.into_iter().chain(forced).chain(strict).chain(more).chain(groups);
    all.map(|(name, on)| row(name, if on { "Y" } else { "N" }.to_string())).collect()
}
