//! The limits of a simulated cluster, and what must hold of them.
//!
//! At each start that mbatchd decides: the slots of all attempts that it takes for started, this
//! one included, exceed no limit to which the start is subject. These are MXJ and JL/U of each of
//! its hosts, HJOB_LIMIT and PJOB_LIMIT of its queue and JL/P of its user there, QJOB_LIMIT and
//! UJOB_LIMIT of its queue, and MAX_JOBS of its user. No array has more started elements than its
//! limit (%N). The job gets as many slots as it asks for, spread as span[] says.
//!
//! Taken for started is an attempt from the decision to start it until mbatchd knows its end or
//! gives it up: also while it is suspended, while its host cannot be reached, and before the host
//! has accepted it. An attempt that was given up is not counted though its process may run. A
//! preempted job has its slots back when it goes on, and until then neither MXJ nor MAX_JOBS counts
//! it, nor do JL/U and JL/P where PREEMPT_FOR says so. A
//! running job that bswitch moves to another queue may bring that queue above its limits; the next
//! start there must not.
//!
//! From time to time, and at each start of mbatchd: its counters are what a count over all jobs
//! gives, and so are the counters of its limits.

use super::rng::Rng;
use super::scale::Scale;
use crate::batch::Mbatchd;
use crate::batch::state::counts::Counts;
use crate::batch::state::names::{HostId, QueueId, UserId};
use crate::batch::state::started_elements::Slots;
use crate::batch::state::{ElemState, ElementView, Phase, Run, State};
use crate::conf::Pos;
use crate::conf::types::{BatchConf, HostPolicy, Mxj, PreemptedQueue};
use crate::conf::types::{QueueConf, QueuePreemption, RawParam, UserPolicy};
use crate::model::JobKey;
use crate::model::event::{Event, Forced, Record, ResizeStep};
use crate::model::reason::susp;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hash;

/// Processors of each simulated host.
pub(super) const CPUS: u32 = 8;
/// The most slots that a job asks for.
const WIDEST: u32 = 3;
/// Share of jobs on several slots.
const PARALLEL: f64 = 0.3;
/// The highest priority that a user gives to a job, MAX_USER_PRIORITY.
pub(super) const MAX_PRIORITY: u32 = 100;
/// Users, each of whom submits jobs: `user0`, `user1`, ...
pub(super) const USERS: usize = 4;
/// Queues with their priorities.
pub(super) const QUEUES: [(&str, u32); 3] = [("low", 20), ("normal", 30), ("high", 40)];
/// Share of the limits that a cluster has.
const LIMITED: f64 = 0.4;
/// Share of the clusters in which a limit leaves a queue or a user one slot of a host.
const ONE_A_HOST: f64 = 0.3;

/// Share of the queues that put jobs into chunks.
const CHUNKED: f64 = 0.2;
/// Share of the clusters in which jobs of the highest queue preempt those of the lowest, for slots
/// and memory.
const PREEMPTIVE: f64 = 0.4;

/// PREEMPTION of a queue of this name.
fn preemption(name: &str, preempts: bool) -> QueuePreemption {
    let high = preempts && name == QUEUES[2].0;
    let low = PreemptedQueue { name: QUEUES[0].0.into(), preference: 0, pos: Pos::default() };
    QueuePreemption { preemptive: high.then(|| vec![low]), preemptable: None }
}

/// Do jobs of a queue preempt those of another?
fn preempts(queue: &QueueConf, other: &str) -> bool {
    let named = queue.preemption.preemptive.as_deref().unwrap_or_default();
    named.iter().any(|of| of.name == other)
}

/// Are the slots of stopped jobs of a queue free for jobs of another: of one that preempts them,
/// or, with USE_SUSP_SLOTS, of one that they preempt?
fn leaves_to(conf: &BatchConf, queue: &str, other: &QueueConf) -> bool {
    let given = || {
        let own = conf.queues.iter().find(|of| of.name == queue);
        own.is_some_and(|own| preempts(own, &other.name))
    };
    preempts(other, queue) || conf.params.preemption.gives_stopped && given()
}

/// Are the slots of stopped jobs of a queue free for jobs of any other?
pub(super) fn leaves_slots(conf: &BatchConf, queue: &str) -> bool {
    conf.queues.iter().any(|other| leaves_to(conf, queue, other))
}

/// May a job need two slots of one host?
pub(super) fn has_pairs(conf: &BatchConf) -> bool {
    let one = |q: &QueueConf| q.hjob_limit == Some(1) || q.pjob_limit.is_some_and(|p| p < 0.2);
    !conf.queues.iter().any(one)
        && conf.hosts.hosts.iter().all(|h| h.jl_u != Some(1))
        && conf.users.users.iter().all(|u| u.jl_p.is_none_or(|p| p >= 0.2))
}

/// How many slots a job asks for, at least and at most, and how they are to be spread.
pub(super) fn shape(pairs: bool, rng: &mut Rng) -> (u32, u32, &'static str) {
    if !rng.chance(PARALLEL) {
        return (1, 1, "");
    }
    let most = 2 + rng.below(u64::from(WIDEST) - 1) as u32;
    let least = if rng.chance(0.3) { 1 } else { most };
    match rng.below(3) {
        0 => (least, most, " span[ptile=1]"),
        1 if pairs => (2, 2, " span[hosts=1]"),
        _ => (least, most, ""),
    }
}

/// The name of a queue.
pub(super) fn any_queue(rng: &mut Rng) -> String {
    QUEUES[rng.below(QUEUES.len() as u64) as usize].0.into()
}

/// A limit for each processor that makes so many slots on a host: a part of a slot more is one slot
/// more.
fn slots_per_cpu(slots: u32) -> f64 {
    (f64::from(slots) - 0.3) / f64::from(CPUS)
}

/// Gives a cluster its queues, and random limits to it. Each job can start in each queue.
pub(super) fn configure(conf: &mut BatchConf, scale: Scale, rng: &mut Rng) {
    let all = scale.hosts as u64 * u64::from(scale.slots);
    // of all slots of the cluster, and of those of a host
    let wide = |rng: &mut Rng| {
        // large ones have many jobs: less would take hours
        let least = (all / 8).max(u64::from(WIDEST));
        let some = least + rng.below((all / 2).max(least + 1) - least + 1);
        rng.chance(LIMITED).then_some(some as u32)
    };
    let least = if rng.chance(ONE_A_HOST) { 1 } else { 2 };
    let narrow = |rng: &mut Rng| rng.chance(LIMITED).then(|| least + rng.below(2) as u32);
    conf.params.max_user_priority = Some(MAX_PRIORITY);
    let preempts = rng.chance(PREEMPTIVE);
    if preempts {
        let memory = RawParam { text: "mem".into(), ..RawParam::default() };
        conf.params.preemption.resources.push(memory);
    }
    let words = &mut conf.params.preemption;
    words.user_jlp = preempts && rng.chance(LIMITED);
    words.host_jlu = preempts && rng.chance(LIMITED);
    for (name, priority) in QUEUES {
        conf.queues.push(QueueConf {
            name: name.into(),
            priority,
            qjob_limit: wide(rng),
            ujob_limit: wide(rng),
            hjob_limit: narrow(rng),
            pjob_limit: narrow(rng).map(slots_per_cpu),
            preemption: preemption(name, preempts),
            chunk_job_size: if rng.chance(CHUNKED) { 2 + rng.below(3) as u32 } else { 1 },
            ..QueueConf::default()
        });
    }
    for n in 0..USERS {
        let (name, max_jobs) = (format!("user{n}"), wide(rng));
        let jl_p = narrow(rng).map(slots_per_cpu);
        conf.users.users.push(UserPolicy { name, max_jobs, jl_p, ..UserPolicy::default() });
    }
    for host in 0..scale.hosts {
        let name = format!("host{}", host + 1);
        let mxj = Mxj::Slots(scale.slots);
        conf.hosts.hosts.push(HostPolicy { name, mxj, jl_u: narrow(rng), ..HostPolicy::default() });
    }
}

/// Slots in use, by each thing that a limit counts.
#[derive(Default)]
struct Used {
    host: BTreeMap<HostId, u64>,
    /// Without those of preempted jobs.
    host_runs: BTreeMap<HostId, u64>,
    /// Slots of suspended jobs among them, by queue.
    host_stopped: BTreeMap<(HostId, QueueId), u64>,
    host_user: BTreeMap<(HostId, UserId), u64>,
    /// Without those of preempted jobs.
    host_user_runs: BTreeMap<(HostId, UserId), u64>,
    host_queue: BTreeMap<(HostId, QueueId), u64>,
    queue: BTreeMap<QueueId, u64>,
    queue_user: BTreeMap<(QueueId, UserId), u64>,
    /// Without those of preempted jobs.
    user: BTreeMap<UserId, u64>,
    /// Started elements, by job.
    job: BTreeMap<u32, u64>,
}

impl Used {
    fn add(&mut self, run: &Run, queue: QueueId, user: UserId) {
        *self.job.entry(run.key.job).or_default() += 1;
        for &(host, slots) in &run.hosts {
            let slots = u64::from(slots);
            *self.host.entry(host).or_default() += slots;
            // the slots of a preempted job are free for the queue that preempted it
            if run.phase != Phase::Ssusp(susp::PREEMPTED) {
                *self.host_runs.entry(host).or_default() += slots;
                if matches!(run.phase, Phase::Ssusp(_) | Phase::Ususp(_)) {
                    *self.host_stopped.entry((host, queue)).or_default() += slots;
                }
            }
            *self.host_user.entry((host, user)).or_default() += slots;
            *self.host_queue.entry((host, queue)).or_default() += slots;
            *self.queue.entry(queue).or_default() += slots;
            *self.queue_user.entry((queue, user)).or_default() += slots;
            if !run.is_preempted() {
                *self.host_user_runs.entry((host, user)).or_default() += slots;
                *self.user.entry(user).or_default() += slots;
            }
        }
    }
}

/// The attempts that mbatchd has started, as its records say.
#[derive(Debug, Default)]
pub(super) struct Started {
    keys: BTreeSet<JobKey>,
}

fn run_of(state: &State, key: JobKey) -> Option<(&Run, QueueId, UserId)> {
    let job = state.job(key.job)?;
    Some((state.running(key)?, job.queue_at(key.idx), job.user))
}

impl Started {
    /// A start of mbatchd: its state comes of the log.
    pub(super) fn begin_anew(&mut self, state: &State) {
        self.keys = all_runs(state).map(|(run, ..)| run.key).collect();
    }

    /// mbatchd has appended these records; the limit that a start among them exceeds.
    pub(super) fn appended<'a>(
        &mut self,
        state: &State,
        conf: &BatchConf,
        records: impl Iterator<Item = &'a Record>,
    ) -> Result<(), String> {
        let mut fresh = Vec::new();
        for record in records {
            if let Event::JobStart(start) = &record.event
                && start.forced == Forced::No
            {
                fresh.push(JobKey { job: start.at.job, idx: start.at.idx, attempt: start.attempt });
            }
            if let Event::JobResize(r) = &record.event
                && matches!(r.step, ResizeStep::Begun { grows: true, .. })
            {
                fresh.push(JobKey { job: r.at.job, idx: r.at.idx, attempt: r.attempt });
            }
        }
        if fresh.is_empty() {
            return Ok(());
        }
        self.keys.retain(|key| state.running(*key).is_some());
        let mut used = Used::default();
        let add = |used: &mut Used, key: JobKey| {
            if let Some((run, queue, user)) = run_of(state, key) {
                used.add(run, queue, user);
            }
        };
        self.keys.iter().filter(|key| !fresh.contains(key)).for_each(|key| add(&mut used, *key));
        // one after the other: one that starts later may have slots that the one before may not
        for key in fresh {
            self.keys.insert(key);
            add(&mut used, key);
            may_start(state, conf, &used, key)?;
        }
        Ok(())
    }
}

/// The slots that started elements have on their first hosts: those that these records are about;
/// none given: all.
pub(super) fn on_first_hosts<'a>(
    state: &State,
    records: Option<impl Iterator<Item = &'a Record>>,
) -> Vec<(JobKey, u32)> {
    let slots = |run: &Run| (run.key, run.hosts.first().map_or(0, |host| host.1));
    let Some(records) = records else {
        return all_runs(state).map(|(run, ..)| slots(run)).collect();
    };
    let resized = records.filter_map(|record| match &record.event {
        Event::JobResize(r) => Some(JobKey { job: r.at.job, idx: r.at.idx, attempt: r.attempt }),
        _ => None,
    });
    resized.filter_map(|key| state.running(key).map(slots)).collect()
}

fn within(name: &str, limit: Option<u64>, used: Option<&u64>, key: JobKey) -> Result<(), String> {
    match (limit, used) {
        (Some(limit), Some(used)) if *used > limit => {
            Err(format!("{key} is started with {used} slots in use, {name} is {limit}"))
        }
        _ => Ok(()),
    }
}

/// The start keeps to all limits that concern it.
fn may_start(state: &State, conf: &BatchConf, used: &Used, key: JobKey) -> Result<(), String> {
    let Some((run, queue, user)) = run_of(state, key) else { return Ok(()) };
    let (queue_name, user_name) = (state.names().queue(queue), state.names().user(user));
    let limits = conf.queues.iter().find(|q| *q.name == **queue_name);
    let limits = limits.ok_or_else(|| format!("{key} is started in queue {queue_name}"))?;
    let of_queue = limits.qjob_limit.map(u64::from);
    within("QJOB_LIMIT", of_queue, used.queue.get(&queue), key)?;
    let each = limits.ujob_limit.map(u64::from);
    within("UJOB_LIMIT", each, used.queue_user.get(&(queue, user)), key)?;
    let user_row = conf.users.users.iter().find(|u| *u.name == **user_name);
    let of_user = user_row.and_then(|u| u.max_jobs).map(u64::from);
    within("MAX_JOBS", of_user, used.user.get(&user), key)?;
    let array = state.job(key.job).and_then(|job| job.name.array.as_ref());
    let elements = array.and_then(|array| array.limit).map(u64::from);
    within("the limit of the array", elements, used.job.get(&key.job), key)?;
    let change = run.resize.as_ref().and_then(|resize| resize.under_way.as_ref());
    // a job that grows gets slots of these hosts alone
    let given = change.filter(|change| change.grows).map_or(&run.hosts[..], |c| &c.hosts);
    for &(host, _) in given {
        let name = state.names().host(host);
        let row = conf.hosts.hosts.iter().find(|h| *h.name == **name);
        let row = row.ok_or_else(|| format!("{key} is started on {name}"))?;
        let Mxj::Slots(slots) = row.mxj else { continue };
        // those of suspended jobs are free for a queue that preempts theirs
        let stopped = |(of, n): (&(HostId, QueueId), &u64)| match of.0 == host
            && leaves_to(conf, state.names().queue(of.1), limits)
        {
            true => *n,
            false => 0,
        };
        let stopped: u64 = used.host_stopped.iter().map(stopped).sum();
        let runs = used.host_runs.get(&host).map(|n| n.saturating_sub(stopped));
        within("MXJ", Some(u64::from(slots)), runs.as_ref(), key)?;
        let words = &conf.params.preemption;
        let of_user = |ignores: bool| match ignores {
            true => used.host_user_runs.get(&(host, user)),
            false => used.host_user.get(&(host, user)),
        };
        within("JL/U", row.jl_u.map(u64::from), of_user(words.host_jlu), key)?;
        let here = used.host_queue.get(&(host, queue));
        let by_cpus = |limit: Option<f64>| limit.map(|p| (p * f64::from(CPUS)).ceil() as u64);
        let per_cpu = by_cpus(user_row.and_then(|u| u.jl_p));
        within("JL/P", per_cpu, of_user(words.user_jlp), key)?;
        within("HJOB_LIMIT", limits.hjob_limit.map(u64::from), here, key)?;
        within("PJOB_LIMIT", by_cpus(limits.pjob_limit), here, key)?;
    }
    as_asked(state, run)
}

/// The start has the slots that the job asks for.
fn as_asked(state: &State, run: &Run) -> Result<(), String> {
    let Some(job) = state.job(run.key.job) else { return Ok(()) };
    let spec = job.spec_at(run.key.idx);
    let slots: u32 = run.hosts.iter().map(|h| h.1).sum();
    let most = run.hosts.iter().map(|h| h.1).max().unwrap_or(0);
    let names: BTreeSet<HostId> = run.hosts.iter().map(|h| h.0).collect();
    let resize = run.resize.as_deref();
    // bresize may leave a job fewer slots than it asked for, and ask for more
    let least = if resize.is_some() { 1 } else { spec.min_slots.max(1) };
    let more = resize.and_then(|resize| resize.asked.as_ref()).map_or(0, |asked| asked.total);
    let asked = least..=spec.max_slots.max(1).max(more);
    // one that grows keeps what it was started with under another span[]
    let asks = |span: &str| {
        let started = run.own_requirement.contains(span);
        spec.res_req.contains(span) && (resize.is_none() || started)
    };
    let one_host = asks("span[hosts=1]") && names.len() != 1;
    let tiles = asks("span[ptile=1]") && most > 1;
    if !asked.contains(&slots) || one_host || tiles || names.len() != run.hosts.len() {
        let (key, req) = (run.key, &spec.res_req);
        return Err(format!("{key} asks for {asked:?} slots, {req}, and gets {:?}", run.hosts));
    }
    Ok(())
}

/// All started elements, with their queues and users.
pub(super) fn all_runs(state: &State) -> impl Iterator<Item = (&Run, QueueId, UserId)> {
    state.each_job().flat_map(|job| {
        job.indices().into_iter().filter_map(move |idx| match &job.elem(idx)?.state {
            ElemState::Run(run) => Some((&**run, job.queue_at(idx), job.user)),
            _ => None,
        })
    })
}

/// mbatchd's counters against a count over all jobs.
pub(super) fn recount(mbd: &Mbatchd) -> Result<(), String> {
    let state = mbd.state();
    let mut used = Used::default();
    let mut queues: BTreeMap<QueueId, Slots> = BTreeMap::new();
    let mut users: BTreeMap<UserId, Slots> = BTreeMap::new();
    for job in state.each_job() {
        for idx in job.indices() {
            let (queue, least) = (job.queue_at(idx), job.spec_at(idx).min_slots.max(1));
            let own = match job.view(idx) {
                Some(ElementView::Own(e)) => Some(&e.state),
                _ => None,
            };
            for of in [queues.entry(queue).or_default(), users.entry(job.user).or_default()] {
                match own {
                    None | Some(ElemState::Pend(_)) => {
                        of.pend_jobs += 1;
                        of.pend += u64::from(least);
                    }
                    Some(ElemState::Run(run)) => {
                        let slots: u32 = run.hosts.iter().map(|h| h.1).sum();
                        *by_phase(of, run.phase) += u64::from(slots);
                    }
                    Some(ElemState::End(_)) => {}
                }
            }
            if let Some(ElemState::Run(run)) = own {
                used.add(run, queue, job.user);
            }
        }
    }
    compare(state.counts(), &used, queues, users)
}

fn by_phase(of: &mut Slots, phase: Phase) -> &mut u64 {
    match phase {
        Phase::Starting | Phase::Running => &mut of.run,
        Phase::Ssusp(_) => &mut of.ssusp,
        Phase::Ususp(_) => &mut of.ususp,
    }
}

fn compare(
    counts: &Counts,
    used: &Used,
    queues: BTreeMap<QueueId, Slots>,
    users: BTreeMap<UserId, Slots>,
) -> Result<(), String> {
    let on_hosts = counts.hosts().map(|(host, of)| (host, of.slots.started()));
    same("queues", counts.queues().map(|(k, v)| (k, *v)), queues)?;
    same("users", counts.users().map(|(k, v)| (k, *v)), users)?;
    same("hosts", on_hosts, used.host.clone())?;
    same("users in queues", counts.queue_users(), used.queue_user.clone())
}

/// Are two counts the same, where nothing is zero?
fn same<K: Ord + Copy + Hash + std::fmt::Debug, N: Default + PartialEq + std::fmt::Debug>(
    what: &str,
    kept: impl Iterator<Item = (K, N)>,
    mut counted: BTreeMap<K, N>,
) -> Result<(), String> {
    let kept: BTreeMap<K, N> = kept.filter(|(_, n)| *n != N::default()).collect();
    counted.retain(|_, n| *n != N::default());
    if kept != counted {
        return Err(format!("slots of {what}: mbatchd has {kept:?}, the jobs have {counted:?}"));
    }
    Ok(())
}
