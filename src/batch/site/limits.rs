//! A job's limits against those of its application profile and its queue: defaults are filled in,
//! maxima are not exceeded.

use crate::batch::site::applications::Application;
use crate::batch::site::{Queue, Site};
use crate::conf::types::{ApplicationConf, Limit, TimeLimit};
use crate::model::further::FilledByQueue;
use crate::model::job::{JobSpec, Limits, opt};
use crate::model::limits::{LimitKind, LimitSet};
use crate::model::reason::err;
use crate::model::specfield::SpecField;
use crate::proto::Refusal;

/// Takes back what the application profile and the queue gave.
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
    if filled.estimate {
        spec.further.estimate = "".into();
    }
}

/// The seconds that a job is expected to run: those of -We or RUNTIME, at most the run limit.
pub fn expected_run_time(spec: &JobSpec) -> Option<u64> {
    let estimate = crate::conf::units::time_limit(&spec.further.estimate);
    let estimate = estimate.map(|limit| limit.seconds).filter(|secs| *secs > 0);
    estimate.into_iter().chain(spec.limits.run).min()
}

/// The limits that a submission asked for, of all that a queue may give.
pub struct LimitsAsked {
    limits: Limits,
    slots: bool,
    rerun: bool,
    checkpoint: bool,
    estimate: bool,
}

impl LimitsAsked {
    /// Taken before the queue gives anything.
    pub fn by(spec: &JobSpec) -> Self {
        let rerun = spec.options & opt::RERUNNABLE != 0;
        let checkpoint = spec.further.checkpoint.is_some();
        let (slots, estimate) = (spec.min_slots > 0, !spec.further.estimate.is_empty());
        LimitsAsked { limits: spec.limits.clone(), slots, rerun, checkpoint, estimate }
    }

    /// Notes what the queue gave beyond it; `sized`: some queue or profile has JOB_SIZE_LIST.
    pub fn note_filled(self, spec: &mut JobSpec, sized: bool) {
        let given = |kind: &LimitKind| spec.limits.get(*kind).is_some();
        let asked = |kind: &LimitKind| self.limits.get(*kind).is_some();
        let filled = FilledByQueue {
            limits: LimitKind::ALL.into_iter().filter(|k| given(k) && !asked(k)).collect(),
            // one slot is what every queue gives that has no list
            slots: !self.slots && (sized || spec.max_slots > 1),
            rerunnable: !self.rerun && spec.options & opt::RERUNNABLE != 0,
            checkpoint: !self.checkpoint && spec.further.checkpoint.is_some(),
            estimate: !self.estimate && !spec.further.estimate.is_empty(),
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

/// Fills in the defaults of the application profile and of the queue, and refuses what exceeds
/// their maxima.
pub fn check(
    spec: &mut JobSpec,
    application: Option<&Application>,
    queue: &Queue,
    site: &Site,
) -> Result<(), Refusal> {
    let q = &queue.conf;
    let own = spec.limit_spec.clone();
    if !known(site, &own) {
        return Err(Refusal::about(err::BAD_HOST_SPEC, own));
    }
    let none = ApplicationConf::default();
    let a = application.map_or(&none, |application| &application.conf);
    if spec.limits.run.is_none() {
        spec.limits.run = most_by_estimate(spec, queue, site);
    }
    let l = &mut spec.limits;
    let hard = |v: Option<u64>| Limit { default: None, maximum: v };
    time(&mut l.run, [&a.run_limit, &q.run_limit], "RUNLIMIT", &own, site)?;
    time(&mut l.cpu, [&a.cpu_limit, &q.cpu_limit], "CPULIMIT", &own, site)?;
    pair(&mut l.rss, [&a.mem_limit, &q.mem_limit], "MEMLIMIT")?;
    pair(&mut l.swap, [&a.swap_limit, &q.swap_limit], "SWAPLIMIT")?;
    pair(&mut l.data, [&a.data_limit, &q.data_limit], "DATALIMIT")?;
    pair(&mut l.process, [&a.process_limit, &q.process_limit], "PROCESSLIMIT")?;
    pair(&mut l.thread, [&a.thread_limit, &q.thread_limit], "THREADLIMIT")?;
    pair(&mut l.fsize, [&a.file_limit, &hard(q.file_limit)], "FILELIMIT")?;
    pair(&mut l.stack, [&a.stack_limit, &hard(q.stack_limit)], "STACKLIMIT")?;
    pair(&mut l.core, [&a.core_limit, &hard(q.core_limit)], "CORELIMIT")
}

/// JOB_RUNLIMIT_RATIO: the longest run limit, seconds, of a job whose submission has an estimate
/// (-We); the estimate of a profile or queue does not count. `None`: any. The caller has taken
/// back what the profile and the queue gave.
fn most_by_estimate(spec: &JobSpec, queue: &Queue, site: &Site) -> Option<u64> {
    /// The most seconds that a record of the log holds.
    const MOST: u64 = i32::MAX as u64;
    let ratio = u64::from(site.params().run_limits.ratio);
    if ratio == 0 {
        return None;
    }
    let estimate = crate::conf::units::time_limit(&spec.further.estimate)?;
    let by_default = queue.conf.default_host_spec.as_deref();
    let by_default = by_default.or(site.params().default_host_spec.as_deref());
    let counted_on = |named: &str| match named {
        "" | "DEFAULT" => factor(site, by_default.unwrap_or(&spec.from_host)),
        named => factor(site, named),
    };
    let (from, to) =
        (counted_on(estimate.spec.as_deref().unwrap_or_default()), counted_on(&spec.limit_spec));
    let seconds = estimate.seconds.saturating_mul(ratio);
    let scaled = if from == to { seconds } else { (seconds as f64 * from / to).round() as u64 };
    Some(scaled.clamp(1, MOST))
}

/// Holds the run limit that a submission asks for against its estimate. `lower`: a limit of before
/// that a new estimate does not allow becomes the longest one that it does.
pub fn keep_to_estimate(
    spec: &mut JobSpec,
    queue: &Queue,
    site: &Site,
    lower: bool,
) -> Result<(), Refusal> {
    let most = most_by_estimate(spec, queue, site);
    match spec.limits.run.zip(most) {
        Some((run, most)) if run > most && lower => spec.limits.run = Some(most),
        Some((run, most)) if run > most => {
            let ratio = site.params().run_limits.ratio;
            let text = format!("RUNLIMIT: Cannot exceed {ratio} times the estimated run time");
            return Err(Refusal::text(err::OVER_LIMIT, text));
        }
        _ => {}
    }
    Ok(())
}

/// Decides about one limit of a job: `own`, else the default of the application profile, else that
/// of the queue; `more`: is the first one more than the second?
fn decide<T: Clone>(
    own: &Option<T>,
    [application, queue]: [&Limit<T>; 2],
    what: &str,
    more: impl Fn(&T, &T) -> bool,
) -> Result<Option<T>, Refusal> {
    let over = |value: &T, maximum: &Option<T>| maximum.as_ref().is_some_and(|m| more(value, m));
    match (own, &application.default) {
        (Some(value), _) if over(value, &queue.maximum) => {
            Err(Refusal::about(err::OVER_LIMIT, what))
        }
        (Some(value), _) if over(value, &application.maximum) => {
            Err(Refusal::about(err::OVER_APP_LIMIT, what))
        }
        (None, Some(value)) if over(value, &queue.maximum) => {
            Err(Refusal::about(err::APP_OVER_LIMIT, what))
        }
        (Some(value), _) | (None, Some(value)) => Ok(Some(value.clone())),
        (None, None) => Ok(queue.default.clone().or_else(|| queue.maximum.clone())),
    }
}

fn pair(own: &mut Option<u64>, of: [&Limit<u64>; 2], what: &str) -> Result<(), Refusal> {
    *own = decide(own, of, what, |value, maximum| value > maximum)?;
    Ok(())
}

fn time(
    own: &mut Option<u64>,
    of: [&Limit<TimeLimit>; 2],
    what: &str,
    spec: &str,
    site: &Site,
) -> Result<(), Refusal> {
    let spec = Some(spec).filter(|spec| !spec.is_empty());
    let asked = own.map(|seconds| TimeLimit { seconds, spec: spec.map(str::to_owned) });
    // Both limits count in seconds of a host of factor 1; one that names no host counts as the
    // maximum does.
    let more = |value: &TimeLimit, maximum: &TimeLimit| {
        let theirs = maximum.spec.as_deref().map_or(1.0, |s| factor(site, s));
        let ours = value.spec.as_deref().map_or(theirs, |s| factor(site, s));
        value.seconds as f64 * ours > maximum.seconds as f64 * theirs * 1.000_001
    };
    *own = decide(&asked, of, what, more)?.map(|limit| limit.seconds);
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
