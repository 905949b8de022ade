//! The parameters of preemption: PREEMPTION of lsb.queues, the words of lsb.params about it, and
//! the parameters that protect jobs, which lsb.params, lsb.queues and lsb.applications all have.
//!
//! See lsb.queues(5) and lsb.params(5).

use super::diag::{Diags, Severity};
use super::lexer::shown;
use super::names::nearest;
use super::section::Values;
use super::types::{
    ClusterConf, PreemptedQueue, PreemptionParams, QueueConf, QueuePreemption, RawParam,
    ResourceKind,
};
use crate::lang::resreq::{Builtins, ResNames};

/// The keywords of PREEMPTION.
const KEYWORDS: [&str; 2] = ["PREEMPTIVE", "PREEMPTABLE"];
/// Largest preference of a queue.
const MAX_PREFERENCE: u32 = 0x7fff_ffff;
/// Largest number of minutes or seconds, and of preemptions.
const MAX_NUMBER: u64 = 0x7fff_ffff;
/// Parameters of lsb.params that list words, with the words.
const PREEMPT_FOR: [&str; 7] = [
    "GROUP_MAX",
    "GROUP_JLP",
    "USER_JLP",
    "HOST_JLU",
    "MINI_JOB",
    "LEAST_RUN_TIME",
    "OPTIMAL_MINI_JOB",
];
const JOBTYPES: [&str; 5] = ["EXCLUSIVE", "BACKFILL", "AFFINITY", "GPU", "SHARED_RESOURCES"];

/// Reads PREEMPTION: `PREEMPTIVE[low+1 lower] PREEMPTABLE[high]`, each list with its brackets left
/// out where all queues are meant.
pub(super) fn of_queue(v: &mut Values<'_>) -> QueuePreemption {
    let mut read = QueuePreemption::default();
    let Some(value) = v.raw.get("PREEMPTION") else { return read };
    let mut rest = value.text.as_str();
    while !rest.trim_start().is_empty() {
        rest = rest.trim_start();
        let end = rest.find(|c: char| c.is_whitespace() || c == '[').unwrap_or(rest.len());
        let (keyword, behind) = rest.split_at(end);
        let behind = behind.trim_start();
        let (inner, after) = match behind.strip_prefix('[') {
            None => (None, behind),
            Some(list) => match list.split_once(']') {
                Some((inner, after)) => (Some(inner), after),
                None => return bad(v, value, behind, "the bracket is not closed"),
            },
        };
        rest = after;
        match keyword.to_ascii_uppercase().as_str() {
            word @ ("PREEMPTIVE" | "PREEMPTABLE") => {
                let preemptive = word == "PREEMPTIVE";
                let place = match preemptive {
                    true => &mut read.preemptive,
                    false => &mut read.preemptable,
                };
                if place.is_some() {
                    return bad(v, value, keyword, "each keyword may stand there once");
                }
                match queues(value, inner, preemptive) {
                    Ok(queues) => *place = Some(queues),
                    Err((piece, want)) => return bad(v, value, piece, want),
                }
            }
            _ => {
                let text = format!("unknown word <{}> in PREEMPTION", shown(keyword));
                let near = nearest(keyword, KEYWORDS);
                v.diags.add_near(Severity::Error, &value.pos_of(keyword), text, near);
                return QueuePreemption::default();
            }
        }
    }
    read
}

fn bad(v: &mut Values<'_>, value: &RawParam, piece: &str, want: &str) -> QueuePreemption {
    let text = format!("bad value <{}> of PREEMPTION: {want}", shown(piece.trim_end()));
    v.diags.error(&value.pos_of(piece), text);
    QueuePreemption::default()
}

/// The queues of a list; without one, none.
fn queues<'a>(
    value: &RawParam,
    inner: Option<&'a str>,
    preferred: bool,
) -> Result<Vec<PreemptedQueue>, (&'a str, &'static str)> {
    let Some(inner) = inner else { return Ok(Vec::new()) };
    let mut queues: Vec<PreemptedQueue> = Vec::new();
    for word in inner.split_whitespace() {
        let (name, preference) = match word.split_once('+') {
            None => (word, Some(0)),
            Some(_) if !preferred => {
                return Err((word, "a queue of PREEMPTABLE has no preference"));
            }
            Some((name, level)) => {
                let level = level.parse().ok();
                (name, level.filter(|level| (1..=MAX_PREFERENCE).contains(level)))
            }
        };
        let Some(preference) = preference.filter(|_| !name.is_empty()) else {
            return Err((word, "queue or queue+preference is wanted, the preference at least 1"));
        };
        if queues.iter().any(|known| known.name == name) {
            return Err((word, "the queue stands there twice"));
        }
        queues.push(PreemptedQueue { name: name.to_owned(), preference, pos: value.pos_of(word) });
    }
    match queues.is_empty() {
        true => Err((inner, "the brackets are empty")),
        false => Ok(queues),
    }
}

/// Reads the parameters that protect jobs; all three files have them.
pub(super) fn protection(v: &mut Values<'_>) {
    let _: Option<u64> = v.number("MAX_JOB_PREEMPT", 1..=MAX_NUMBER);
    let _: Option<u64> = v.number("MAX_TOTAL_TIME_PREEMPT", 1..=MAX_NUMBER);
    let _: Option<u64> = v.number("NO_PREEMPT_INTERVAL", 0..=MAX_NUMBER);
    let _: Option<u64> = v.number("PREEMPT_DELAY", 0..=MAX_NUMBER);
    for name in ["NO_PREEMPT_RUN_TIME", "NO_PREEMPT_FINISH_TIME"] {
        if let Some(value) = v.raw.get(name)
            && run_share(&value.text).is_none()
        {
            v.bad(name, value, "minutes, or 1% to 100%, are wanted");
        }
    }
}

/// A time of a job: minutes, or a percentage of its run limit.
pub fn run_share(text: &str) -> Option<RunShare> {
    let text = text.trim();
    match text.strip_suffix('%') {
        Some(percent) => {
            let percent = percent.trim_end().parse().ok()?;
            (1..=100).contains(&percent).then_some(RunShare::Percent(percent))
        }
        None if text == "-1" => Some(RunShare::Never),
        None => {
            let minutes: u64 = text.parse().ok()?;
            (minutes <= MAX_NUMBER).then_some(RunShare::Seconds(minutes * 60))
        }
    }
}

/// A time of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunShare {
    /// -1: the parameter protects nobody.
    Never,
    Seconds(u64),
    /// A share of the run limit, or of the estimated run time.
    Percent(u64),
}

/// Reads the parameters of lsb.params.
pub(super) fn of_cluster(v: &mut Values<'_>) -> PreemptionParams {
    protection(v);
    let mut p = PreemptionParams::default();
    for word in words(v, "PREEMPT_FOR", &PREEMPT_FOR) {
        match word {
            "GROUP_MAX" => p.group_max = true,
            "GROUP_JLP" => p.group_jlp = true,
            "USER_JLP" => p.user_jlp = true,
            "HOST_JLU" => p.host_jlu = true,
            "LEAST_RUN_TIME" => p.least_run_time = true,
            // no more jobs are preempted than needed, whether asked or not
            "MINI_JOB" => {}
            _ => p.fewest_jobs = true,
        }
    }
    for word in words(v, "PREEMPT_JOBTYPE", &JOBTYPES) {
        match word {
            "EXCLUSIVE" => p.exclusive = true,
            "BACKFILL" => p.backfill = true,
            "AFFINITY" => p.affinity = true,
            _ => {
                let Some(value) = v.raw.get("PREEMPT_JOBTYPE") else { continue };
                v.diags.notice(&value.pos, format!("{word} of PREEMPT_JOBTYPE is not acted on"));
            }
        }
    }
    v.flag(&mut p.gives_stopped, "USE_SUSP_SLOTS");
    if let Some(secs) = v.number("PREEMPTION_WAIT_TIME", 0..=MAX_NUMBER) {
        p.wait_secs = secs;
    }
    v.flag(&mut p.resets, "MAX_JOB_PREEMPT_RESET");
    p.resources = v.words("PREEMPTABLE_RESOURCES");
    p
}

/// The words of a list, each known.
fn words(v: &mut Values<'_>, name: &str, known: &[&'static str]) -> Vec<&'static str> {
    let mut found = Vec::new();
    // 0: nothing
    for word in v.words(name).into_iter().filter(|word| word.text != "0") {
        match known.iter().find(|known| known.eq_ignore_ascii_case(&word.text)) {
            Some(known) => found.push(*known),
            None => {
                let text = format!("unknown word <{}> in {name}", shown(&word.text));
                let near = nearest(&word.text, known.iter().copied());
                v.diags.add_near(Severity::Error, &word.pos, text, near);
            }
        }
    }
    found
}

/// The resources that PREEMPTABLE_RESOURCES names, and the queues that PREEMPTION names, which may
/// come later in the file.
pub(super) fn check(conf: &ClusterConf, diags: &mut Diags) {
    for word in &conf.batch.params.preemption.resources {
        check_resource(conf, word, diags);
    }
    for queue in &conf.batch.queues {
        let lists = [(true, &queue.preemption.preemptive), (false, &queue.preemption.preemptable)];
        for (preempts, list) in lists {
            for named in list.iter().flatten() {
                check_one(conf, (queue, preempts), named, diags);
            }
        }
    }
}

/// Is it a number that falls as the load grows, and that a suspended job gives back?
fn check_resource(conf: &ClusterConf, word: &RawParam, diags: &mut Diags) {
    let (name, all) = (word.text.as_str(), &conf.base.shared.resources);
    let why = match all.iter().find(|def| def.name == name) {
        None if name == "mem" => return,
        None if name == "slots" || Builtins.kind(name).is_some() => {
            "of the built-in resources it may name mem alone"
        }
        None => {
            let text = format!("unknown resource <{}> in PREEMPTABLE_RESOURCES", shown(name));
            let near = nearest(name, all.iter().map(|def| def.name.as_str()));
            return diags.add_near(Severity::Error, &word.pos, text, near);
        }
        Some(def) if def.kind != ResourceKind::Numeric => "it is not numeric",
        Some(def) if def.increasing == Some(true) => "more of it means more load (INCREASING=Y)",
        Some(def) if !def.release => "a suspended job keeps it (RELEASE=N)",
        Some(_) => return,
    };
    let text = format!("bad value <{}> of PREEMPTABLE_RESOURCES: {why}", shown(name));
    diags.error(&word.pos, text);
}

fn check_one(
    conf: &ClusterConf,
    (queue, preempts): (&QueueConf, bool),
    named: &PreemptedQueue,
    diags: &mut Diags,
) {
    let name = shown(&named.name);
    let Some(other) = conf.queue(&named.name) else {
        let known = conf.batch.queues.iter().map(|q| q.name.as_str());
        let text = format!("queue <{name}> of PREEMPTION is not in lsb.queues");
        let near = nearest(&named.name, known);
        return diags.add_near(Severity::Error, &named.pos, text, near);
    };
    let (high, low) = if preempts { (queue, other) } else { (other, queue) };
    if high.priority <= low.priority {
        let text = format!(
            "queue <{}> has no higher priority than queue <{}> and does not preempt its jobs",
            shown(&high.name),
            shown(&low.name)
        );
        diags.warning(&named.pos, text);
    }
}
