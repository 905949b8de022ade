//! A job's limits against its queue's: defaults are filled in, maxima are not exceeded.

use crate::batch::site::{Queue, Site};
use crate::conf::types::{Limit, TimeLimit};
use crate::model::job::{JobSpec, Limits, extra, opt};
use crate::model::reason::err;
use crate::model::specfield::SpecField;
use crate::proto::Refusal;

/// Key of [`JobSpec::extra`] under which is kept what a queue gave to a job, so that another
/// queue can take it back.
pub const EXTRA_FILLED: &str = "filled";

/// The limits that a queue may give.
fn limits(l: &mut Limits) -> [(&'static str, &mut Option<u64>); 10] {
    [
        ("run", &mut l.run),
        ("cpu", &mut l.cpu),
        ("rss", &mut l.rss),
        ("swap", &mut l.swap),
        ("data", &mut l.data),
        ("process", &mut l.process),
        ("thread", &mut l.thread),
        ("fsize", &mut l.fsize),
        ("stack", &mut l.stack),
        ("core", &mut l.core),
    ]
}

/// Takes back what a queue gave.
pub fn unfill(spec: &mut JobSpec) {
    let Some(at) = spec.extra.iter().position(|(k, _)| k == EXTRA_FILLED) else { return };
    let (_, words) = spec.extra.remove(at);
    for word in words.split(' ') {
        match word {
            "slots" => (spec.min_slots, spec.max_slots) = (0, 0),
            "rerun" => spec.options &= !opt::RERUNNABLE,
            _ => {
                let all = limits(&mut spec.limits).into_iter();
                all.filter(|l| l.0 == word).for_each(|l| *l.1 = None)
            }
        }
    }
}

/// The limits that a submission asked for, of all that a queue may give.
pub struct Asked {
    limits: Limits,
    slots: bool,
    rerun: bool,
}

impl Asked {
    /// Taken before the queue gives anything.
    pub fn by(spec: &JobSpec) -> Self {
        let rerun = spec.options & opt::RERUNNABLE != 0;
        Asked { limits: spec.limits.clone(), slots: spec.min_slots > 0, rerun }
    }

    /// Notes what the queue gave beyond it.
    pub fn note_filled(mut self, spec: &mut JobSpec) {
        let mut words: Vec<&str> = Vec::new();
        for ((word, has), (_, had)) in
            limits(&mut spec.limits).into_iter().zip(limits(&mut self.limits))
        {
            if has.is_some() && had.is_none() {
                words.push(word);
            }
        }
        // One slot is what every queue gives.
        if !self.slots && spec.max_slots > 1 {
            words.push("slots");
        }
        if !self.rerun && spec.options & opt::RERUNNABLE != 0 {
            words.push("rerun");
        }
        if !words.is_empty() {
            spec.extra.push((EXTRA_FILLED.to_string(), words.join(" ")));
        }
    }
}

/// The limit that an option of bmod sets.
fn word_of(field: SpecField) -> Option<&'static str> {
    Some(match field {
        SpecField::RunLimit => "run",
        SpecField::CpuLimit => "cpu",
        SpecField::MemLimit => "rss",
        SpecField::SwapLimit => "swap",
        SpecField::DataLimit => "data",
        SpecField::ProcessLimit => "process",
        SpecField::ThreadLimit => "thread",
        SpecField::FileLimit => "fsize",
        SpecField::StackLimit => "stack",
        SpecField::CoreLimit => "core",
        _ => return None,
    })
}

/// -ul of a submission that is changed: an option stands above it, `-ul` takes the limits of the
/// shell of bmod in the place of those before, `-uln` takes them back.
pub fn user_limits(spec: &mut JobSpec, asked: &JobSpec, fields: &[SpecField]) {
    let words = |of: &JobSpec| -> Vec<String> {
        of.given(extra::USER_LIMITS).split_whitespace().map(str::to_string).collect()
    };
    let mut kept = words(spec);
    kept.retain(|word| !fields.iter().any(|f| word_of(*f) == Some(word.as_str())));
    if fields.contains(&SpecField::UserLimits) {
        let mut theirs = asked.limits.clone();
        let new = words(asked);
        let all = limits(&mut spec.limits).into_iter().zip(limits(&mut theirs));
        let mut set = Vec::new();
        for ((word, has), (_, gives)) in all {
            if kept.iter().any(|w| w == word) {
                *has = None;
            }
            if has.is_none() && new.iter().any(|w| w == word) {
                *has = *gives;
                set.push(word.to_string());
            }
        }
        kept = set;
    }
    spec.extra.retain(|(key, _)| key != extra::USER_LIMITS);
    if !kept.is_empty() {
        spec.extra.push((extra::USER_LIMITS.to_string(), kept.join(" ")));
    }
}

/// Fills in the queue's defaults and refuses what exceeds its maxima.
pub fn check(spec: &mut JobSpec, queue: &Queue, site: &Site) -> Result<(), Refusal> {
    let q = &queue.conf;
    let own = spec.limit_spec.clone();
    if !known(site, &own) {
        return Err(Refusal::about(err::BAD_HOST_SPEC, own));
    }
    let l = &mut spec.limits;
    time(&mut l.run, &q.run_limit, "RUNLIMIT", &own, site)?;
    time(&mut l.cpu, &q.cpu_limit, "CPULIMIT", &own, site)?;
    pair(&mut l.rss, &q.mem_limit, "MEMLIMIT")?;
    pair(&mut l.swap, &q.swap_limit, "SWAPLIMIT")?;
    pair(&mut l.data, &q.data_limit, "DATALIMIT")?;
    pair(&mut l.process, &q.process_limit, "PROCESSLIMIT")?;
    pair(&mut l.thread, &q.thread_limit, "THREADLIMIT")?;
    let hard = |v: Option<u64>| Limit { default: None, maximum: v };
    pair(&mut l.fsize, &hard(q.file_limit), "FILELIMIT")?;
    pair(&mut l.stack, &hard(q.stack_limit), "STACKLIMIT")?;
    pair(&mut l.core, &hard(q.core_limit), "CORELIMIT")
}

fn over(what: &str) -> Refusal {
    Refusal::about(err::OVER_LIMIT, what)
}

fn pair(own: &mut Option<u64>, queue: &Limit<u64>, what: &str) -> Result<(), Refusal> {
    match (*own, queue.maximum) {
        (Some(v), Some(max)) if v > max => return Err(over(what)),
        (None, max) => *own = queue.default.or(max),
        _ => {}
    }
    Ok(())
}

fn time(
    own: &mut Option<u64>,
    queue: &Limit<TimeLimit>,
    what: &str,
    spec: &str,
    site: &Site,
) -> Result<(), Refusal> {
    let max = queue.maximum.as_ref();
    match (*own, max) {
        (Some(v), Some(max)) => {
            // Both sides in seconds of a host of factor 1.
            let theirs = max.spec.as_deref().map_or(1.0, |s| factor(site, s));
            let ours = if spec.is_empty() { theirs } else { factor(site, spec) };
            if v as f64 * ours > max.seconds as f64 * theirs * 1.000_001 {
                return Err(over(what));
            }
        }
        (None, max) => *own = queue.default.as_ref().or(max).map(|t| t.seconds),
        _ => {}
    }
    Ok(())
}

/// May a time limit be given for this: nothing, DEFAULT, a host or a model?
fn known(site: &Site, spec: &str) -> bool {
    let models = &site.conf.base.shared.models;
    spec.is_empty()
        || spec == "DEFAULT"
        || site.canonical(spec).is_some()
        || models.iter().any(|m| m.name == spec)
}

/// CPU factor of a model, or of a host whose model is configured; 1 where unknown.
fn factor(site: &Site, spec: &str) -> f64 {
    let host = site.canonical(spec).and_then(|h| site.host_id(h)).map(|i| &site.hosts[i]);
    let model = host.and_then(|h| h.def.model.as_deref()).unwrap_or(spec);
    let models = &site.conf.base.shared.models;
    models.iter().find(|m| m.name == model).map_or(1.0, |m| m.cpu_factor)
}
