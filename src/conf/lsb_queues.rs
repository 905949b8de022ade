//! lsb.queues.
//!
//! See lsb.queues(5).

use super::aps;
use super::diag::Diags;
use super::expressions::ResourceNames;
use super::extendable_run_limit;
use super::files::Files;
use super::lexer::{self, Section, shown};
use super::lsb_params::MAX_FACTOR;
use super::lsf_shared::unknown_section;
use super::names::load_index;
use super::names::lsb_queues::QUEUE;
use super::preemption;
use super::section::{Values, is_empty, known_params, name_fault};
use super::types::{
    ExclusiveUnitType, HostTerm, Interactive, NlbPolicy, QueueConf, QueueFactors, RawParam,
    Reserve, Resizable, Shared, UserTerm,
};
use super::units::{SizeUnit, time_limit};
use super::user_shares;
use super::warning;
use crate::lang::qmgr::{nqs_queues, policy_name};
use crate::lang::resreq::Syntax;
use crate::model::checkpoint::Checkpoint;
use crate::model::job_control::JobControls;

/// Largest PRIORITY.
pub(super) const MAX_PRIORITY: u32 = 2_147_483_647;
/// Largest HOSTLIMIT_PER_JOB.
const MAX_HOSTS: u32 = 0x7fff_ffff;
/// Largest period that is taken, seconds or minutes.
const MAX_TIME: u64 = 0x7fff_ffff;

/// Values of RESIZABLE_JOBS.
pub(super) const RESIZABLE_WORDS: [(&str, Resizable); 5] = [
    ("N", Resizable::No),
    ("NO", Resizable::No),
    ("Y", Resizable::Yes),
    ("YES", Resizable::Yes),
    ("AUTO", Resizable::Auto),
];

/// Spelling of a threshold's name: a built-in load index or a resource of lsf.shared.
pub(super) fn index_name(shared: &Shared, word: &str) -> Option<String> {
    let own = || shared.resources.iter().find(|r| r.name == word).map(|r| r.name.clone());
    load_index(word).map(str::to_owned).or_else(own)
}

/// Reads lsb.queues. None: it cannot be read.
pub fn parse(
    files: &dyn Files,
    path: &str,
    shared: &Shared,
    unit: SizeUnit,
    diags: &mut Diags,
) -> Option<Vec<QueueConf>> {
    let mut queues: Vec<QueueConf> = Vec::new();
    for section in lexer::read(files, path, diags)? {
        if !section.is("Queue") {
            unknown_section(&section, &["Queue"], diags);
            continue;
        }
        let Some(queue) = queue(&section, shared, unit, diags) else { continue };
        if let Some(first) = queues.iter().find(|q| q.name == queue.name) {
            let at = queue.raw.get("QUEUE_NAME").map_or(&queue.pos, |v| &v.pos);
            let text =
                format!("queue <{}> is already defined in line {}", queue.name, first.pos.line);
            diags.error(at, text);
            continue;
        }
        queues.push(queue);
    }
    if queues.is_empty() {
        diags.error(&super::diag::Pos::whole(path), "no queue is defined");
    }
    Some(queues)
}

fn queue(
    section: &Section,
    shared: &Shared,
    unit: SizeUnit,
    diags: &mut Diags,
) -> Option<QueueConf> {
    let extra = |word: &str| index_name(shared, word);
    let raw = known_params(section, &QUEUE, &extra, diags);
    if !raw.contains_key("QUEUE_NAME") {
        diags.error(&section.pos, "queue without QUEUE_NAME");
    }
    let mut q = QueueConf { pos: section.pos.clone(), ..QueueConf::default() };
    let mut v = Values::new(&raw, diags);
    let name = v.object_name("QUEUE_NAME");
    let names = ResourceNames(shared);
    // only checked here: in what unit a bare number counts does not matter
    let syntax = Syntax::new(&names);
    identity(&mut q, &mut v);
    limits(&mut q, &mut v, unit);
    slots(&mut q, &mut v);
    policy(&mut q, &mut v, &syntax);
    commands(&mut q, &mut v);
    for index in raw.keys().filter(|name| QUEUE.find(name).is_none()) {
        q.thresholds.extend(v.threshold(index));
    }
    q.name = name?;
    q.raw = raw;
    Some(q)
}

fn identity(q: &mut QueueConf, v: &mut Values<'_>) {
    v.set(&mut q.priority, "PRIORITY", 1..=MAX_PRIORITY);
    v.set(&mut q.nice, "NICE", -20..=20);
    if v.raw.get("MAX_RSCHED_TIME").is_some_and(|time| time.text.trim() != "infinit") {
        let _: Option<u64> = v.number("MAX_RSCHED_TIME", 0..=MAX_TIME);
    }
    q.description = v.text("DESCRIPTION").unwrap_or_default();
    q.users = user_terms(v, "USERS");
    q.hosts = host_terms(v, "HOSTS");
    q.admins = v.list("ADMINISTRATORS");
    let _: [Option<u64>; 2] =
        ["JOB_OVERRUN", "JOB_UNDERRUN"].map(|name| v.number(name, 0..=MAX_TIME));
    let _: Option<f64> = v.number("JOB_IDLE", 0.0..=1.0);
}

fn limits(q: &mut QueueConf, v: &mut Values<'_>, unit: SizeUnit) {
    q.run_limit = v.times("RUNLIMIT");
    q.extendable = extendable_run_limit::of_queue(v);
    q.cpu_limit = v.times("CPULIMIT");
    q.mem_limit = v.sizes("MEMLIMIT", unit);
    q.swap_limit = v.sizes("SWAPLIMIT", unit);
    q.data_limit = v.sizes("DATALIMIT", unit);
    q.file_limit = v.size("FILELIMIT", unit);
    q.stack_limit = v.size("STACKLIMIT", unit);
    q.core_limit = v.size("CORELIMIT", unit);
    q.process_limit = v.counts("PROCESSLIMIT");
    q.thread_limit = v.counts("THREADLIMIT");
    // PROCLIMIT is the older name of TASKLIMIT.
    q.tasks.limit = v.tasks("TASKLIMIT").or_else(|| v.tasks("PROCLIMIT"));
    q.tasks.hosts = v.number("HOSTLIMIT_PER_JOB", 1..=MAX_HOSTS);
    q.tasks.sizes = v.job_sizes();
    q.pend_limits = [v.period("PEND_TIME_LIMIT"), v.period("ELIGIBLE_PEND_TIME_LIMIT")];
}

/// EXCLUSIVE: Y, N, CU, CU[] or CU[type].
fn exclusive(q: &mut QueueConf, v: &mut Values<'_>) {
    let Some(value) = v.raw.get("EXCLUSIVE") else { return };
    let text = value.text.trim();
    let of_units = text.get(..2).filter(|word| word.eq_ignore_ascii_case("CU"));
    let Some(rest) = of_units.and_then(|_| text.get(2..)).map(str::trim) else {
        return v.flag(&mut q.exclusive, "EXCLUSIVE");
    };
    let inner = match rest.is_empty() {
        true => Some(""),
        false => rest.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).map(str::trim),
    };
    let well_formed = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    match inner.filter(|name| name.chars().all(well_formed)) {
        Some("") => q.exclusive_units = ExclusiveUnitType::DefaultType,
        Some(name) => q.exclusive_units = ExclusiveUnitType::Type(name.to_owned()),
        None => return v.bad("EXCLUSIVE", value, "Y, N, CU[] or CU[type] is needed"),
    }
    q.exclusive = true;
}

fn slots(q: &mut QueueConf, v: &mut Values<'_>) {
    q.qjob_limit = v.number("QJOB_LIMIT", 0..=u32::MAX);
    q.ujob_limit = v.number("UJOB_LIMIT", 0..=u32::MAX);
    q.hjob_limit = v.number("HJOB_LIMIT", 0..=u32::MAX);
    q.pjob_limit = v.number("PJOB_LIMIT", 0.0..=f64::from(u32::MAX));
}

fn policy(q: &mut QueueConf, v: &mut Values<'_>, syntax: &Syntax<'_>) {
    q.res_req = v.requirement("RES_REQ", syntax);
    q.dispatch_window = v.windows("DISPATCH_WINDOW");
    q.run_window = v.windows("RUN_WINDOW");
    q.stop_cond = v.requirement("STOP_COND", syntax);
    q.resume_cond = v.requirement("RESUME_COND", syntax);
    v.flag(&mut q.rerunnable, "RERUNNABLE");
    v.flag(&mut q.ignores.deadline, "IGNORE_DEADLINE");
    v.flag(&mut q.ignores.guarantees, "SLA_GUARANTEES_IGNORE");
    reservation(q, v);
    let words = [
        ("YES", Interactive::Yes),
        ("Y", Interactive::Yes),
        ("NO", Interactive::No),
        ("N", Interactive::No),
        ("ONLY", Interactive::Only),
    ];
    v.word_of(&mut q.interactive, "INTERACTIVE", &words);
    v.word_of(&mut q.resizable, "RESIZABLE_JOBS", &RESIZABLE_WORDS);
    q.reservation_limit = v.ranges("RESRSV_LIMIT", syntax);
    exclusive(q, v);
    q.job_accept_interval = v.number("JOB_ACCEPT_INTERVAL", 0..=MAX_TIME);
    v.set(&mut q.new_job_sched_delay, "NEW_JOB_SCHED_DELAY", 0..=MAX_TIME);
    q.mig = v.number("MIG", 0..=MAX_TIME);
    q.default_host_spec = v.text("DEFAULT_HOST_SPEC");
    q.fairshare = user_shares::fairshare(v);
    q.fairshare_queues.names = v.list("FAIRSHARE_QUEUES");
    q.aps = aps::of_queue(v).map(Box::new);
    q.queue_group = v.list("QUEUE_GROUP");
    v.word_of(&mut q.fairshare_queues.by_queue, "DISPATCH_ORDER", &[("QUEUE", true)]);
    q.factors = factors(v);
    slot_pool(q, v);
    q.preemption = preemption::of_queue(v);
    preemption::protection(v);
    pipe(q, v);
    nlb_policy(q, v);
}

/// SLOT_POOL, SLOT_SHARE, MAX_SLOTS_IN_POOL and USE_PRIORITY_IN_POOL.
fn slot_pool(q: &mut QueueConf, v: &mut Values<'_>) {
    if let Some(value) = v.raw.get("SLOT_POOL") {
        let well_formed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let name = value.text.as_str();
        match !name.is_empty() && name.len() <= MAX_POOL_NAME && name.chars().all(well_formed) {
            true => q.fairshare_queues.slot_pool.name = Some(name.to_owned()),
            false => {
                let want = "at most 60 letters, digits, underscores and dashes are wanted";
                v.bad("SLOT_POOL", value, want);
            }
        }
    }
    q.fairshare_queues.slot_pool.share = v.number("SLOT_SHARE", 1..=100);
    q.fairshare_queues.slot_pool.max = v.number("MAX_SLOTS_IN_POOL", 1..=u32::MAX);
    v.flag(&mut q.fairshare_queues.slot_pool.by_priority, "USE_PRIORITY_IN_POOL");
}

/// Longest name of a slot pool.
const MAX_POOL_NAME: usize = 60;

/// NQS_QUEUES.
fn pipe(q: &mut QueueConf, v: &mut Values<'_>) {
    let Some(value) = v.raw.get("NQS_QUEUES") else { return };
    match nqs_queues(&value.text) {
        Ok(to) => q.nqs.pipe = Some(Box::new(to)),
        Err(why) => v.bad("NQS_QUEUES", value, &why),
    }
}

/// NLB_POLICY: `name [hold]`.
fn nlb_policy(q: &mut QueueConf, v: &mut Values<'_>) {
    let Some(value) = v.raw.get("NLB_POLICY") else { return };
    let mut words = value.text.split_whitespace();
    let (name, hold, more) = (words.next().unwrap_or_default(), words.next(), words.next());
    if !policy_name(name) || more.is_some() || hold.is_some_and(|w| !w.eq_ignore_ascii_case("hold"))
    {
        let want = "the name of a policy is wanted, and behind it `hold` or nothing";
        return v.bad("NLB_POLICY", value, want);
    }
    q.nqs.nlb_policy = Some(NlbPolicy { name: name.to_owned(), hold: hold.is_some() });
}

/// The factors of fairshare that the queue sets itself.
fn factors(v: &mut Values<'_>) -> QueueFactors {
    let mut flag = |name: &str| {
        let mut on = false;
        v.flag(&mut on, name);
        v.raw.get(name).map(|_| on)
    };
    let (run_time_decay, hist_run_time) = (flag("RUN_TIME_DECAY"), flag("ENABLE_HIST_RUN_TIME"));
    let mut number = |name: &str| v.number(name, 0.0..=MAX_FACTOR);
    QueueFactors {
        cpu_time: number("CPU_TIME_FACTOR"),
        run_time: number("RUN_TIME_FACTOR"),
        run_job: number("RUN_JOB_FACTOR"),
        committed: number("COMMITTED_RUN_TIME_FACTOR"),
        hist_hours: number("HIST_HOURS"),
        run_time_decay,
        hist_run_time,
    }
}

/// BACKFILL, INTERRUPTIBLE_BACKFILL, SLOT_RESERVE and RESOURCE_RESERVE.
fn reservation(q: &mut QueueConf, v: &mut Values<'_>) {
    v.flag(&mut q.backfill, "BACKFILL");
    let interruptible = "INTERRUPTIBLE_BACKFILL";
    q.interruptible_backfill = v.number(interruptible, 1..=MAX_TIME);
    if let Some(value) = v.raw.get(interruptible)
        && (!q.backfill || q.run_limit.maximum.is_none())
    {
        v.bad(interruptible, value, "the queue needs BACKFILL = Y and a RUNLIMIT for it");
        q.interruptible_backfill = None;
    }
    let slots = reserve(v, "SLOT_RESERVE", false);
    let resources = reserve(v, "RESOURCE_RESERVE", true);
    if let (Some(value), Some(_)) = (v.raw.get("SLOT_RESERVE"), resources) {
        v.diags.warning(&value.pos, "SLOT_RESERVE is ignored: RESOURCE_RESERVE stands above it");
    }
    q.reserve = resources.or(slots);
}

/// `MAX_RESERVE_TIME[turns]`.
fn reserve(v: &mut Values<'_>, name: &str, memory: bool) -> Option<Reserve> {
    let value = v.raw.get(name)?;
    if is_empty(&value.text) {
        return None;
    }
    let inner = |text: &str| -> Option<u64> {
        let (word, rest) = text.trim().split_once('[')?;
        let turns = rest.trim_end().strip_suffix(']')?.trim();
        if !word.trim().eq_ignore_ascii_case("MAX_RESERVE_TIME") {
            return None;
        }
        turns.parse().ok().filter(|turns| (1..=MAX_TIME).contains(turns))
    };
    let turns = inner(&value.text);
    if turns.is_none() {
        v.bad(name, value, "MAX_RESERVE_TIME[turns], from 1 on, is wanted");
    }
    turns.map(|turns| Reserve { turns, memory })
}

fn commands(q: &mut QueueConf, v: &mut Values<'_>) {
    q.pre_exec = v.text("PRE_EXEC");
    q.post_exec = v.text("POST_EXEC");
    q.host_pre_exec = v.text("HOST_PRE_EXEC");
    q.host_post_exec = v.text("HOST_POST_EXEC");
    v.pre_exec_retries();
    q.job_starter = v.text("JOB_STARTER");
    q.requeue_exit_values = v.text("REQUEUE_EXIT_VALUES");
    q.chkpnt = checkpoint(v);
    job_controls(q, v);
    q.estimate = estimate(v, "ESTIMATED_RUNTIME");
    v.set(&mut q.chunk_job_size, "CHUNK_JOB_SIZE", 1..=MOST_CHUNKED);
    q.terminate_when = v.text("TERMINATE_WHEN");
    if let Some(value) = v.raw.get("JOB_WARNING_ACTION") {
        q.warning.action = warning::action(&value.text);
        if q.warning.action.is_none() {
            v.bad("JOB_WARNING_ACTION", value, "a signal, a command or CHKPNT is wanted");
        }
    }
    if let Some(value) = v.raw.get("JOB_ACTION_WARNING_TIME") {
        q.warning.time = warning::time(&value.text);
        if q.warning.time.is_none() {
            v.bad("JOB_ACTION_WARNING_TIME", value, "[hour:]minute or 1% to 99% is wanted");
        }
    }
}

/// Most jobs of a chunk.
pub(super) const MOST_CHUNKED: u32 = 1000;

/// ESTIMATED_RUNTIME: `[hour:]minute[/host]`.
pub(super) fn estimate(v: &mut Values<'_>, name: &str) -> Option<String> {
    let value = v.raw.get(name)?;
    if time_limit(&value.text).is_none_or(|limit| limit.seconds == 0) {
        v.bad(name, value, "[h:]m[/host] is wanted");
        return None;
    }
    Some(value.text.clone())
}

/// CHKPNT: `dir [minutes]`.
fn checkpoint(v: &mut Values<'_>) -> Option<Box<Checkpoint>> {
    let value = v.raw.get("CHKPNT")?;
    match Checkpoint::parse(&value.text) {
        Ok(c) if c.init.is_none() && c.method.is_empty() => Some(Box::new(c)),
        _ if value.text.trim().is_empty() => None,
        _ => {
            v.bad("CHKPNT", value, "a directory and the minutes between checkpoints are wanted");
            None
        }
    }
}

fn job_controls(q: &mut QueueConf, v: &mut Values<'_>) {
    let Some(value) = v.raw.get("JOB_CONTROLS") else { return };
    match JobControls::parse(&value.text) {
        Ok(controls) => q.job_controls = controls,
        Err(want) => v.bad("JOB_CONTROLS", value, &want),
    }
}

/// The terms of HOSTS: `host+pref`, `others`, `all`, `none`, `~host`, `host!`, `host@cluster`.
pub(super) fn host_terms(v: &mut Values<'_>, name: &str) -> Vec<HostTerm> {
    let mut terms = Vec::new();
    for word in v.words(name) {
        match host_term(&word) {
            Ok(term) => terms.push(term),
            Err(want) => v.bad(name, &word, want),
        }
    }
    terms
}

fn host_term(word: &RawParam) -> Result<HostTerm, &'static str> {
    let mut term = HostTerm { pos: word.pos.clone(), ..HostTerm::default() };
    let mut text = word.text.as_str();
    if let Some(rest) = text.strip_prefix('~') {
        (term.exclude, text) = (true, rest);
    }
    if let Some((rest, pref)) = text.rsplit_once('+') {
        // `host+` alone is preferred too, by one.
        let pref = if pref.is_empty() { Some(1) } else { pref.parse().ok() };
        term.pref = pref.ok_or("host+preference is wanted")?;
        text = rest;
    }
    if let Some(rest) = text.strip_suffix('!') {
        (term.first, text) = (true, rest);
    }
    if let Some((rest, cluster)) = text.split_once('@') {
        term.cluster = Some(cluster.to_owned());
        text = rest;
    }
    // A trailing slash says that the name is a group's.
    text = text.strip_suffix('/').unwrap_or(text);
    if text.is_empty() {
        return Err("a host or host group is wanted");
    }
    term.name = text.to_owned();
    Ok(term)
}

/// The terms of USERS or of a member list: `user`, `group`, `group@`, `~user`, `all`.
pub(super) fn user_terms(v: &mut Values<'_>, name: &str) -> Vec<UserTerm> {
    let mut terms = Vec::new();
    for word in v.words(name) {
        let (exclude, text) = match word.text.strip_prefix('~') {
            Some(rest) => (true, rest),
            None => (false, word.text.as_str()),
        };
        let (members, text) = match text.strip_suffix('@') {
            Some(rest) => (true, rest),
            None => (false, text.strip_suffix('/').unwrap_or(text)),
        };
        let reserved = text == "all" || text == "none" || text == "others" || text == "default";
        if !reserved && name_fault(text).is_some() {
            v.bad(name, &word, &format!("<{}> is neither a user nor a user group", shown(text)));
            continue;
        }
        terms.push(UserTerm { name: text.to_owned(), exclude, members, pos: word.pos.clone() });
    }
    terms
}
