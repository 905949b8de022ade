//! A job's limits against its queue's: defaults are filled in, maxima are not exceeded.

use crate::batch::site::{Queue, Site};
use crate::conf::types::{Limit, TimeLimit};
use crate::model::further::FilledByQueue;
use crate::model::job::{JobSpec, Limits, opt};
use crate::model::limits::{LimitKind, LimitSet};
use crate::model::reason::err;
use crate::model::specfield::SpecField;
use crate::proto::Refusal;

/// Takes back what a queue gave.
pub fn unfill(spec: &mut JobSpec) {
    let filled = spec.further.filled_by_queue;
    if filled == FilledByQueue::default() {
        return;
    }
    spec.further.filled_by_queue = FilledByQueue::default();
    for kind in filled.limits.iter() {
        *spec.limits.get_mut(kind) = None;
    }
    if filled.slots {
        (spec.min_slots, spec.max_slots) = (0, 0);
    }
    if filled.rerunnable {
        spec.options &= !opt::RERUNNABLE;
    }
    if filled.checkpoint {
        spec.further.checkpoint = None;
    }
}

/// The limits that a submission asked for, of all that a queue may give.
pub struct LimitsAsked {
    limits: Limits,
    slots: bool,
    rerun: bool,
    checkpoint: bool,
}

impl LimitsAsked {
    /// Taken before the queue gives anything.
    pub fn by(spec: &JobSpec) -> Self {
        let rerun = spec.options & opt::RERUNNABLE != 0;
        let checkpoint = spec.further.checkpoint.is_some();
        LimitsAsked { limits: spec.limits.clone(), slots: spec.min_slots > 0, rerun, checkpoint }
    }

    /// Notes what the queue gave beyond it.
    pub fn note_filled(self, spec: &mut JobSpec) {
        let given = |kind: &LimitKind| spec.limits.get(*kind).is_some();
        let asked = |kind: &LimitKind| self.limits.get(*kind).is_some();
        let filled = FilledByQueue {
            limits: LimitKind::ALL.into_iter().filter(|k| given(k) && !asked(k)).collect(),
            // one slot is what every queue gives
            slots: !self.slots && spec.max_slots > 1,
            rerunnable: !self.rerun && spec.options & opt::RERUNNABLE != 0,
            checkpoint: !self.checkpoint && spec.further.checkpoint.is_some(),
        };
        if filled != FilledByQueue::default() {
            spec.further.filled_by_queue = filled;
        }
    }
}

/// The limit that an option of bmod sets.
fn kind_of(field: SpecField) -> Option<LimitKind> {
    Some(match field {
        SpecField::RunLimit => LimitKind::Run,
        SpecField::CpuLimit => LimitKind::Cpu,
        SpecField::MemLimit => LimitKind::Rss,
        SpecField::SwapLimit => LimitKind::Swap,
        SpecField::DataLimit => LimitKind::Data,
        SpecField::ProcessLimit => LimitKind::Process,
        SpecField::ThreadLimit => LimitKind::Thread,
        SpecField::FileLimit => LimitKind::Fsize,
        SpecField::StackLimit => LimitKind::Stack,
        SpecField::CoreLimit => LimitKind::Core,
        _ => return None,
    })
}

/// -ul of a submission that is changed: an option stands above it, `-ul` takes the limits of the
/// shell of bmod in the place of those before, `-uln` takes them back.
pub fn user_limits(spec: &mut JobSpec, asked: &JobSpec, fields: &[SpecField]) {
    let before = spec.further.user_limits;
    let mut kept = before;
    fields.iter().filter_map(|field| kind_of(*field)).for_each(|kind| kept.remove(kind));
    if fields.contains(&SpecField::UserLimits) {
        let mut set = LimitSet::default();
        for kind in LimitKind::ALL {
            let limit = spec.limits.get_mut(kind);
            if kept.contains(kind) {
                *limit = None;
            }
            if limit.is_none() && asked.further.user_limits.contains(kind) {
                *limit = asked.limits.get(kind);
                set.insert(kind);
            }
        }
        kept = set;
    }
    if kept != before {
        spec.further.user_limits = kept;
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
            // Both limits count in seconds of a host of factor 1.
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
