//! lsb.applications.
//!
//! A lone value of a limit is what a job has that requests none; the first of two values is that
//! default, the second is the most that a job may request. See lsb.applications(5).

use super::diag::Diags;
use super::expressions::ResourceNames;
use super::files::Files;
use super::lexer::{self, Section};
use super::lsb_queues::{MAX_PRIORITY, MOST_CHUNKED, RESIZABLE_WORDS, estimate};
use super::lsf_shared::{nothing, unknown_section};
use super::names::lsb_applications::APPLICATION;
use super::preemption;
use super::section::{Values, known_params};
use super::types::{ApplicationConf, Limit, Shared, TASK_SECS_MAX, TTL_NEVER};
use super::units::{SizeUnit, yes_no};
use crate::lang::exitcodes::ExitCodes;
use crate::lang::resreq::Syntax;
use crate::model::bind_job::BIND_WORDS;
use crate::model::checkpoint::{Checkpoint, MAX_PERIOD, is_method};
use crate::model::job_control::{ControlAction, JobControls};
use crate::model::limits::MemoryOf;
use crate::model::task_gone::TaskGoneAction;

/// Largest period that is taken, minutes.
const MAX_TIME: u64 = 0x7fff_ffff;

/// Reads lsb.applications. None: it cannot be read.
pub fn parse(
    files: &dyn Files,
    path: &str,
    shared: &Shared,
    unit: SizeUnit,
    diags: &mut Diags,
) -> Option<Vec<ApplicationConf>> {
    let names = ResourceNames(shared);
    // only checked here: in what unit a bare number counts does not matter
    let syntax = Syntax::new(&names);
    let mut all: Vec<ApplicationConf> = Vec::new();
    for section in lexer::read(files, path, diags)? {
        if !section.is("Application") {
            unknown_section(&section, &["Application"], diags);
            continue;
        }
        let Some(profile) = application(&section, &syntax, unit, diags) else { continue };
        if let Some(first) = all.iter().find(|a| a.name == profile.name) {
            let at = profile.raw.get("NAME").map_or(&profile.pos, |v| &v.pos);
            let text = format!(
                "application profile <{}> is already defined in line {}",
                profile.name, first.pos.line
            );
            diags.error(at, text);
            continue;
        }
        all.push(profile);
    }
    Some(all)
}

fn application(
    section: &Section,
    syntax: &Syntax<'_>,
    unit: SizeUnit,
    diags: &mut Diags,
) -> Option<ApplicationConf> {
    let raw = known_params(section, &APPLICATION, &nothing, diags);
    if !raw.contains_key("NAME") {
        diags.error(&section.pos, "application profile without NAME");
    }
    let mut a = ApplicationConf { pos: section.pos.clone(), ..ApplicationConf::default() };
    let mut v = Values::new(&raw, diags);
    let name = v.object_name("NAME");
    a.description = v.text("DESCRIPTION").unwrap_or_default();
    limits(&mut a, &mut v, unit);
    a.res_req = v.requirement("RES_REQ", syntax);
    commands(&mut a, &mut v);
    life(&mut a, &mut v);
    a.name = name?;
    a.raw = raw;
    Some(a)
}

/// A lone value is the default.
fn soft<T>(limit: Limit<T>) -> Limit<T> {
    match limit {
        Limit { default: None, maximum } => Limit { default: maximum, maximum: None },
        both => both,
    }
}

fn limits(a: &mut ApplicationConf, v: &mut Values<'_>, unit: SizeUnit) {
    a.run_limit = soft(v.times("RUNLIMIT"));
    a.cpu_limit = soft(v.times("CPULIMIT"));
    for (name, limit) in [
        ("MEMLIMIT", &mut a.mem_limit),
        ("SWAPLIMIT", &mut a.swap_limit),
        ("FILELIMIT", &mut a.file_limit),
        ("DATALIMIT", &mut a.data_limit),
        ("STACKLIMIT", &mut a.stack_limit),
        ("CORELIMIT", &mut a.core_limit),
    ] {
        *limit = soft(v.sizes(name, unit));
    }
    a.memory_of = memory_of(v);
    a.process_limit = soft(v.counts("PROCESSLIMIT"));
    a.thread_limit = soft(v.counts("THREADLIMIT"));
    // PROCLIMIT is the older name of TASKLIMIT.
    a.task_limit = v.tasks("TASKLIMIT").or_else(|| v.tasks("PROCLIMIT"));
    a.job_sizes = v.job_sizes();
}

/// MEMLIMIT_TYPE: one or more words, in any order.
fn memory_of(v: &mut Values<'_>) -> Option<MemoryOf> {
    let (value, words) = (v.raw.get("MEMLIMIT_TYPE")?, v.words("MEMLIMIT_TYPE"));
    let mut of = MemoryOf::default();
    for word in &words {
        match word.text.to_ascii_uppercase().as_str() {
            "JOB" => of.job = true,
            "PROCESS" => of.process = true,
            "TASK" => of.task = true,
            _ => {
                v.bad("MEMLIMIT_TYPE", word, "JOB, PROCESS or TASK is wanted");
                return None;
            }
        }
    }
    if words.is_empty() {
        v.bad("MEMLIMIT_TYPE", value, "JOB, PROCESS or TASK is wanted");
        return None;
    }
    Some(of)
}

fn commands(a: &mut ApplicationConf, v: &mut Values<'_>) {
    a.pre_exec = v.text("PRE_EXEC");
    a.post_exec = v.text("POST_EXEC");
    a.host_pre_exec = v.text("HOST_PRE_EXEC");
    a.host_post_exec = v.text("HOST_POST_EXEC");
    a.job_starter = v.text("JOB_STARTER");
    a.resize_command = v.text("RESIZE_NOTIFY_CMD");
    a.job_cwd = v.text("JOB_CWD");
    a.job_cwd_ttl = v.number("JOB_CWD_TTL", 0..=TTL_NEVER);
    a.env_vars = env_vars(v);
    a.env_vars.extend(launch_variables(v));
    a.requeue_exit_values = exit_values(v, "REQUEUE_EXIT_VALUES");
    a.success_exit_values = exit_values(v, "SUCCESS_EXIT_VALUES");
    a.job_controls = JobControls {
        suspend: control(v, "SUSPEND"),
        resume: control(v, "RESUME"),
        terminate: control(v, "TERMINATE"),
    };
}

/// A list of exit values, checked and left as written.
fn exit_values(v: &mut Values<'_>, name: &str) -> Option<String> {
    let value = v.raw.get(name)?;
    let success = name == "SUCCESS_EXIT_VALUES";
    if ExitCodes::parse(&value.text).is_none() || success && value.text.contains("EXCLUDE") {
        v.bad(name, value, "exit values from 0 to 255, or all [~value ...], are wanted");
        return None;
    }
    Some(value.text.clone())
}

/// The action of SUSPEND_CONTROL, RESUME_CONTROL or TERMINATE_CONTROL.
fn control(v: &mut Values<'_>, verb: &str) -> Option<ControlAction> {
    let name = format!("{verb}_CONTROL");
    let value = v.raw.get(&name)?;
    match JobControls::parse(&format!("{verb}[{}]", value.text)) {
        Ok(JobControls { suspend, resume, terminate }) => suspend.or(resume).or(terminate),
        Err(want) => {
            v.bad(&name, value, &want);
            None
        }
    }
}

fn yes(v: &mut Values<'_>, name: &str) -> Option<bool> {
    let value = v.raw.get(name)?;
    let yes = yes_no(&value.text);
    if yes.is_none() {
        v.bad(name, value, "Y or N is wanted");
    }
    yes
}

/// Parameters of the life of jobs, beside their commands.
fn life(a: &mut ApplicationConf, v: &mut Values<'_>) {
    a.rerunnable = yes(v, "RERUNNABLE");
    a.abs_runlimit = yes(v, "ABS_RUNLIMIT");
    let words = BIND_WORDS.map(|(word, policy)| (word, Some(policy)));
    v.word_of(&mut a.bind_job, "BIND_JOB", &words);
    a.chunk_job_size = v.number("CHUNK_JOB_SIZE", 1..=MOST_CHUNKED);
    a.mig = v.number("MIG", 0..=MAX_TIME);
    v.set(&mut a.priority, "PRIORITY", 0..=MAX_PRIORITY);
    a.nice = v.number("NICE", -20..=20);
    v.pre_exec_retries();
    let _: Option<u32> = v.number("MAX_JOB_REQUEUE", 1..=i32::MAX as u32);
    if v.raw.contains_key("RESIZABLE_JOBS") {
        let mut resizable = <_>::default();
        v.word_of(&mut resizable, "RESIZABLE_JOBS", &RESIZABLE_WORDS);
        a.resizable = Some(resizable);
    }
    preemption::protection(v);
    a.chkpnt = checkpoint(v);
    a.pend_limit = v.period("PEND_TIME_LIMIT");
    a.eligible_limit = v.period("ELIGIBLE_PEND_TIME_LIMIT");
    a.include_postproc = yes(v, "JOB_INCLUDE_POSTPROC");
    let minutes = |v: &mut Values<'_>, name| v.number(name, 1..=MAX_TIME / 60).map(|m: u64| m * 60);
    a.postproc_timeout = minutes(v, "JOB_POSTPROC_TIMEOUT");
    a.preproc_timeout = minutes(v, "JOB_PREPROC_TIMEOUT");
    a.estimate = estimate(v, "ESTIMATED_RUNTIME").or_else(|| estimate(v, "RUNTIME"));
}

/// The variables by which a job and its blaunch learn of DJOB_DISABLED, DJOB_COMMFAIL_ACTION,
/// RTASK_GONE_ACTION, DJOB_HB_INTERVAL, DJOB_RU_INTERVAL and DJOB_ENV_SCRIPT.
fn launch_variables(v: &mut Values<'_>) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut put = |name: &str, value: &str| all.push((name.to_owned(), value.to_owned()));
    let mut disabled = false;
    v.flag(&mut disabled, "DJOB_DISABLED");
    if disabled {
        put("LSB_DJOB_DISABLED", "Y");
    }
    let mut action = "";
    let words = ["KILL_TASKS", "IGNORE_COMMFAIL"].map(|word| (word, word));
    v.word_of(&mut action, "DJOB_COMMFAIL_ACTION", &words);
    if !action.is_empty() {
        put("LSB_DJOB_COMMFAIL_ACTION", action);
    }
    if let Some(value) = v.raw.get("RTASK_GONE_ACTION") {
        match TaskGoneAction::parse(&value.text) {
            Ok(_) => put("LSB_DJOB_RTASK_GONE_ACTION", value.text.trim().trim_matches('"')),
            Err(wanted) => v.bad("RTASK_GONE_ACTION", value, wanted),
        }
    }
    if let Some(secs) = v.number("DJOB_HB_INTERVAL", 1..=TASK_SECS_MAX) {
        put("LSB_DJOB_HB_INTERVAL", &secs.to_string());
    }
    if let Some(secs) = v.number("DJOB_RU_INTERVAL", 1..=TASK_SECS_MAX) {
        put("LSB_DJOB_RU_INTERVAL", &secs.to_string());
    }
    if let Some(value) = v.raw.get("DJOB_ENV_SCRIPT") {
        let path = value.text.trim();
        match path.is_empty() || path.ends_with('/') || path.contains(char::is_whitespace) {
            false => put("LSB_DJOB_ENV_SCRIPT", path),
            true => v.bad("DJOB_ENV_SCRIPT", value, "the path of a script is wanted"),
        }
    }
    all
}

/// ENV_VARS: `name='value',name='value'`; of several values of a name the last one counts.
fn env_vars(v: &mut Values<'_>) -> Vec<(String, String)> {
    let name = "ENV_VARS";
    let Some(value) = v.raw.get(name) else { return Vec::new() };
    match variables(&value.text) {
        Some(all) => all,
        None => {
            v.bad(name, value, "name='value'[,name='value' ...] is wanted");
            Vec::new()
        }
    }
}

fn variables(text: &str) -> Option<Vec<(String, String)>> {
    let text = text.trim();
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    let (mut rest, mut all) = (inner.unwrap_or(text).trim(), Vec::<(String, String)>::new());
    loop {
        let (name, after) = rest.split_once('=')?;
        let name = name.trim();
        let word = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if name.is_empty() || !word || name.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        let (value, behind) = match after.strip_prefix('\'') {
            Some(quoted) => quoted.split_once('\'')?,
            None => after.split_at(after.find(',').unwrap_or(after.len())),
        };
        all.retain(|known| known.0 != name);
        all.push((name.to_owned(), value.to_owned()));
        let behind = behind.trim_start();
        if behind.is_empty() {
            return Some(all);
        }
        rest = behind.strip_prefix(',')?;
    }
}

/// The checkpoints of jobs; none without CHKPNT_DIR.
fn checkpoint(v: &mut Values<'_>) -> Option<Box<Checkpoint>> {
    let period = v.number("CHKPNT_PERIOD", 1..=MAX_PERIOD);
    let init = v.number("CHKPNT_INITPERIOD", 1..=MAX_PERIOD);
    let method = v.raw.get("CHKPNT_METHOD");
    if let Some(value) = method.filter(|value| !is_method(&value.text)) {
        v.bad("CHKPNT_METHOD", value, "the name of a method is wanted");
        return None;
    }
    let Some(dir) = v.raw.get("CHKPNT_DIR") else {
        for name in ["CHKPNT_PERIOD", "CHKPNT_INITPERIOD", "CHKPNT_METHOD"] {
            if let Some(value) = v.raw.get(name) {
                v.diags.warning(&value.pos, format!("{name} has no effect without CHKPNT_DIR"));
            }
        }
        return None;
    };
    match Checkpoint::parse(&dir.text) {
        Ok(c) if c.period.is_none() && c.init.is_none() && c.method.is_empty() => {
            let method = method.map_or("", |value| &value.text).into();
            Some(Box::new(Checkpoint { period, init, method, ..c }))
        }
        _ => {
            v.bad("CHKPNT_DIR", dir, "a directory is wanted");
            None
        }
    }
}
