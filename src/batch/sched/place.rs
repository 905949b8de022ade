//! A class as it is held against hosts, and the slots that a job gets on hosts that take it.
//! `policy` says whether a host takes a job of a class.

use crate::batch::sched::class_key::ClassKey;
use crate::batch::sched::fixed_match::FixedMatch;
use crate::batch::sched::host_snapshot::HostSnapshot;
use crate::batch::sched::view::View;
use crate::batch::site::Queue;
use crate::batch::site::requirements::Req;
use crate::batch::state::names::{HostId, QueueId};
use crate::batch::usage::limits_ledger::ConsumerLimits;
use crate::lang::resreq::{SelectContext, Simple, Span, Tile};
use crate::lim::facts::DEFAULT_NAME;
use crate::model::further::HostLines;
use crate::model::reason::PendReason;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::{Rc, Weak};
use std::sync::Arc;

/// Why a class found no place: reasons, each with the hosts that it holds for; no host: all.
pub(crate) type Reasons = Vec<(PendReason, Vec<HostId>)>;

/// The requirement and the hosts that a class asks for, compiled.
#[derive(Clone, Debug)]
pub(super) struct Compiled {
    pub(super) requirement: Rc<Requirement>,
    pub(super) asked: Rc<RequestedHosts>,
}

/// A requirement, compiled.
#[derive(Debug)]
pub(super) struct Requirement {
    /// The whole of it.
    pub(super) req: Option<Rc<Req>>,
    /// The requirement, one entry per rusage alternative; never empty.
    pub(super) alternatives: Vec<Option<Rc<Alternative>>>,
}

/// The key of a compiled requirement: everything in the class that it is made of.
#[derive(Debug, PartialEq, Eq, Hash)]
struct RequirementKey {
    /// The queue, where it has a requirement of its own.
    queue: Option<QueueId>,
    /// The application profile, where it has a requirement of its own; else empty.
    application: Box<str>,
    res_req: String,
    hosts_asked: bool,
}

/// Compiled requirements that classes have: classes of several users and queues share one. A
/// requirement is forgotten with the last class that has it, and all are with the configuration
/// that they were compiled by ([`super::Sched::anew`]).
#[derive(Debug, Default)]
pub(super) struct Requirements {
    known: HashMap<RequirementKey, Weak<Requirement>>,
    /// Number of requirements at which forgotten ones are dropped next.
    crowded: usize,
}

/// Number of keys up to which even those of forgotten requirements are kept.
const KEYS_KEPT: usize = 1024;

impl Requirements {
    /// The requirement of a class.
    pub fn of(&mut self, view: &View, class: &ClassKey) -> Rc<Requirement> {
        let of_queue = view.site.queue(class.queue).is_some_and(|queue| queue.req.is_some());
        let application = view.site.applications.get(&class.application);
        let of_application = application.is_some_and(|a| a.req.is_some());
        let key = RequirementKey {
            queue: of_queue.then_some(class.queue),
            application: if of_application { class.application.clone() } else { "".into() },
            res_req: class.res_req.clone(),
            hosts_asked: !class.hosts.is_empty(),
        };
        if let Some(known) = self.known.get(&key).and_then(Weak::upgrade) {
            return known;
        }
        let new = Rc::new(Requirement::new(view, class));
        if self.known.len() >= self.crowded.max(KEYS_KEPT) {
            self.known.retain(|_, requirement| requirement.strong_count() > 0);
            self.crowded = 2 * self.known.len();
        }
        self.known.insert(key, Rc::downgrade(&new));
        new
    }

    /// Requirements that are known, forgotten ones too.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.known.len()
    }
}

/// A requirement with one alternative of its rusage, and its text for the log.
#[derive(Debug)]
pub(crate) struct Alternative {
    pub req: Req,
    /// The fixed part of its select[].
    fixed: Option<FixedMatch>,
    pub text: Arc<str>,
}

/// The hosts that a class asks for.
#[derive(Debug)]
pub(crate) struct RequestedHosts {
    /// -m with preferences; `None`: any host.
    preferred: Option<BTreeMap<HostId, u32>>,
    /// Hosts of -m with `!`, of which one must be the first execution host; none: any.
    first: BTreeSet<HostId>,
    /// The slots of -hostfile, host by host in the order of its lines; empty: none given.
    fixed: Vec<(HostId, u32)>,
    /// The host that the jobs were submitted on, where it is a server of the cluster.
    submitted_on: Option<HostId>,
}

impl RequestedHosts {
    /// Hosts that the words of -m and the lines of -hostfile stand for.
    pub fn hosts(&self) -> usize {
        self.preferred.as_ref().map_or(0, BTreeMap::len) + self.fixed.len()
    }
}

impl Compiled {
    pub fn new(view: &View, kind: &ClassKey, requirement: Rc<Requirement>) -> Compiled {
        let asked = RequestedHosts {
            preferred: preferred(view, &kind.hosts),
            first: first_hosts(view, &kind.hosts),
            fixed: fixed_slots(view, &kind.fixed),
            submitted_on: view.site.host_id(&kind.from_host),
        };
        Compiled { requirement, asked: Rc::new(asked) }
    }
}

impl Requirement {
    pub fn new(view: &View, kind: &ClassKey) -> Requirement {
        let req = view.combined_req(
            (kind.queue, &kind.application),
            &kind.res_req,
            !kind.hosts.is_empty(),
        );
        let req = req.ok().map(Rc::new);
        let alternative = |req: Req| {
            let text = req.0.to_string().into();
            let fixed = req.0.first().and_then(FixedMatch::of);
            Some(Rc::new(Alternative { req, fixed, text }))
        };
        let alternatives = match &req {
            Some(r) => r.alternatives().map_or_else(
                || vec![alternative(Req::clone(r))],
                |all| all.into_iter().map(alternative).collect(),
            ),
            None => vec![None],
        };
        Requirement { req, alternatives }
    }
}

/// -m as host -> preference; `None`: any host.
fn preferred(view: &View, words: &[String]) -> Option<BTreeMap<HostId, u32>> {
    if words.is_empty() {
        return None;
    }
    let mut set = BTreeMap::new();
    let mut others = None;
    // the first word of a name decides: the others are not expanded
    let mut known = BTreeSet::new();
    for word in words {
        let (name, pref) = split_host_word(word);
        if name == "others" {
            others = Some(pref);
        } else if known.insert(name) {
            for host in view.site.expand_servers(name) {
                set.entry(host).or_insert(pref);
            }
        }
    }
    if let Some(pref) = others {
        for host in view.hosts.ids() {
            set.entry(host).or_insert(pref);
        }
    }
    Some(set)
}

/// The hosts of -m that have a `!`.
fn first_hosts(view: &View, words: &[String]) -> BTreeSet<HostId> {
    let names: BTreeSet<&str> = words.iter().filter_map(|w| w.strip_suffix('!')).collect();
    names.into_iter().flat_map(|name| view.site.expand_servers(name)).collect()
}

fn fixed_slots(view: &View, host_lines: &HostLines) -> Vec<(HostId, u32)> {
    let mut out: Vec<(HostId, u32)> = Vec::new();
    let mut lines: BTreeMap<HostId, usize> = BTreeMap::new();
    for (host, slots) in host_lines.iter() {
        let known = view.site.canonical(host).and_then(|h| view.site.host_id(h));
        // a host that is gone since is never found among the free ones
        let host = known.unwrap_or(HostId::MAX);
        let line = *lines.entry(host).or_insert(out.len());
        match out.get_mut(line) {
            Some((_, n)) => *n = n.saturating_add(*slots),
            None => out.push((host, *slots)),
        }
    }
    out
}

/// One look for hosts for a job of a class.
pub(crate) struct HostMatch<'a> {
    pub(super) view: View<'a>,
    pub(super) queue: &'a Queue,
    pub(super) kind: &'a ClassKey,
    /// The limits of its jobs.
    pub(super) limits: &'a ConsumerLimits,
    pub(super) asked: &'a RequestedHosts,
    /// The requirement with one alternative of its rusage.
    pub(super) simple: Option<&'a Simple>,
    fixed: Option<&'a FixedMatch>,
    /// Slots that queue and user have left, which are enough.
    pub(super) room: u64,
    /// Type and model of the submission host, once they were asked for.
    local: OnceCell<(&'a str, &'a str)>,
}

impl<'a> HostMatch<'a> {
    pub fn new(
        (view, queue, room): (&View<'a>, &'a Queue, u64),
        (kind, limits): (&'a ClassKey, &'a ConsumerLimits),
        asked: &'a RequestedHosts,
        alternative: Option<&'a Alternative>,
    ) -> HostMatch<'a> {
        let local = OnceCell::new();
        let simple = alternative.and_then(|alternative| alternative.req.0.first());
        let fixed = alternative.and_then(|alternative| alternative.fixed.as_ref());
        HostMatch { view: *view, queue, kind, limits, asked, simple, fixed, room, local }
    }

    /// Does a host match select[]?
    pub fn selects(&self, host: HostId, snapshot: &HostSnapshot) -> bool {
        let Some(fixed) = self.fixed else { return true };
        let context = self.select_context();
        let selects = fixed.selects((host, snapshot), &context, self.view.facts_changes);
        debug_assert_eq!(selects, self.simple.is_none_or(|s| s.selects(snapshot, &context)));
        selects
    }

    /// The most slots that a job may get.
    pub fn max(&self) -> u32 {
        u64::from(self.kind.max).min(self.room) as u32
    }

    /// Does one free slot do, on whatever host takes the job?
    pub fn any_slot(&self) -> bool {
        self.max() == 1 && self.asked.fixed.is_empty()
    }

    /// Does a job need all its slots on one host, whichever that is?
    pub fn one_host(&self) -> bool {
        let span = self.simple.and_then(|s| s.span.as_ref());
        span.is_some_and(Span::one_host)
            && self.asked.fixed.is_empty()
            && self.asked.first.is_empty()
    }

    /// The preference of a host: the larger goes first. None: queue or job do not name the host.
    pub fn preference(&self, host: HostId) -> Result<u32, PendReason> {
        let of_queue = match &self.queue.hosts {
            None => Some(0),
            Some(set) => set.get(&host).copied(),
        };
        let of_job = match &self.asked.preferred {
            None => Some(0),
            Some(set) => set.get(&host).copied(),
        };
        match (of_queue, of_job) {
            (None, _) => Err(PendReason::NotQueueHost),
            (_, None) => Err(PendReason::NotAskedHost),
            (Some(queue), Some(job)) => Ok(queue + job),
        }
    }

    /// The hosts that are preferred to others; None: all hosts are alike.
    pub fn named_hosts(&self) -> Option<Vec<HostId>> {
        let differs = |set: &&BTreeMap<HostId, u32>| set.values().any(|pref| *pref > 0);
        let queue = self.queue.hosts.as_ref();
        match &self.asked.preferred {
            Some(set) => Some(set.keys().copied().collect()),
            None => queue.filter(differs).map(|set| set.keys().copied().collect()),
        }
    }

    /// Must a job begin on one of some hosts, and is this one?
    pub fn begins(&self, host: HostId) -> bool {
        self.asked.first.is_empty() || self.asked.first.contains(&host)
    }

    /// The submission host, for `type` and `model` that are to be like its own.
    pub fn select_context(&self) -> SelectContext<'a> {
        let (local_type, local_model) = *self.local.get_or_init(|| self.local());
        SelectContext { local_type, local_model }
    }

    /// Type and model of the submission host; nothing where they were to be found out and LIM
    /// has not heard of the host (it was down when the master changed).
    fn local(&self) -> (&'a str, &'a str) {
        let Some(host) = self.asked.submitted_on else { return ("", "") };
        let (def, rt) = (&self.view.site.hosts[host].def, &self.view.hosts[host]);
        let facts = rt.load.as_ref().and_then(|l| l.facts.as_ref());
        let heard = facts.is_some_and(|f| f.max_mem > 0);
        let sure = |of: Option<&'a str>| {
            of.filter(|text| heard || *text != DEFAULT_NAME).unwrap_or_default()
        };
        let host_type = def.host_type.as_deref().or(facts.map(|f| f.host_type.as_str()));
        let model = def.model.as_deref().or(facts.map(|f| f.model.as_str()));
        (sure(host_type), sure(model))
    }

    /// The slots of one job among hosts that have some, best host first.
    pub fn allocate(&self, free: &[(HostId, u32)]) -> Option<Vec<(HostId, u32)>> {
        let max = self.max();
        let hosts = match self.asked.fixed.is_empty() {
            true if !free.iter().any(|f| self.begins(f.0)) => None,
            true => {
                let span = self.simple.and_then(|s| s.span.as_ref());
                spread(free, span, self.kind.min, max)
            }
            false => exactly(free, &self.asked.fixed),
        };
        hosts.filter(|h| h.first().is_some_and(|h| self.begins(h.0)))
    }

    /// Slots of a host that count towards a job's, as its span[] has it.
    pub fn counting(&self, slots: u64) -> u64 {
        match self.simple.and_then(|s| s.span.as_ref()) {
            Some(span) if span.one_host() => slots,
            Some(Span { ptile: Some(Tile::Tasks(tile)), .. }) => {
                let tile = u64::from((*tile).max(1));
                if slots < tile { 0 } else { tile }
            }
            _ => slots,
        }
    }

    /// The slots of a host that a job would take for which so many count already, of those there.
    pub fn would_take(&self, host: HostId, slots: u64, counted: u64) -> u64 {
        if let Some(line) = self.asked.fixed.iter().find(|line| line.0 == host) {
            return slots.min(line.1.into());
        }
        match self.simple.and_then(|s| s.span.as_ref()) {
            Some(span) if span.one_host() => slots,
            Some(Span { ptile: Some(Tile::Tasks(tile)), .. }) => slots.min((*tile).max(1).into()),
            _ => slots.min(u64::from(self.max()).saturating_sub(counted)),
        }
    }

    /// Can no further host change what a job gets? Hosts are taken in their order.
    pub fn enough(&self, counting: u64) -> bool {
        self.asked.fixed.is_empty()
            && self.asked.first.is_empty()
            && counting >= u64::from(self.max())
    }

    /// Why hosts that have slots do not do.
    pub fn too_few(&self, free: &[(HostId, u32)]) -> PendReason {
        match self.simple.and_then(|s| s.span.as_ref()) {
            _ if !free.iter().any(|f| self.begins(f.0)) => PendReason::FirstHost,
            Some(_) => PendReason::Span,
            None => PendReason::NotEnoughSlots,
        }
    }
}

/// `h+2`, `h!`, `h`: the name and its preference. A first execution host comes before all.
pub(crate) fn split_host_word(word: &str) -> (&str, u32) {
    if let Some(name) = word.strip_suffix('!') {
        return (name, u32::MAX / 4);
    }
    match word.split_once('+') {
        Some((name, "")) => (name, 1),
        Some((name, n)) => (name, n.parse().unwrap_or(1)),
        None => (word, 0),
    }
}

/// Hosts and slots as span[] asks for.
fn spread(
    free: &[(HostId, u32)],
    span: Option<&Span>,
    min: u32,
    max: u32,
) -> Option<Vec<(HostId, u32)>> {
    match span {
        Some(s) if s.one_host() => one_host(free, min, max),
        Some(Span { ptile: Some(Tile::Tasks(n)), .. }) => tiled(free, min, max, (*n).max(1)),
        _ => filled(free, min, max),
    }
}

/// The first host with all of `max`, else the one with most of at least `min`.
fn one_host(free: &[(HostId, u32)], min: u32, max: u32) -> Option<Vec<(HostId, u32)>> {
    if let Some(&(i, _)) = free.iter().find(|f| f.1 >= max) {
        return Some(vec![(i, max)]);
    }
    let best = free.iter().filter(|f| f.1 >= min).max_by_key(|f| f.1)?;
    Some(vec![*best])
}

/// These slots on these hosts, or nothing.
fn exactly(free: &[(HostId, u32)], want: &[(HostId, u32)]) -> Option<Vec<(HostId, u32)>> {
    let free: BTreeMap<HostId, u32> = free.iter().copied().collect();
    let has = |w: &(HostId, u32)| free.get(&w.0).is_some_and(|n| *n >= w.1);
    want.iter().all(has).then(|| want.to_vec())
}

/// Hosts filled one after the other.
fn filled(free: &[(HostId, u32)], min: u32, max: u32) -> Option<Vec<(HostId, u32)>> {
    let mut left = max;
    let mut out = Vec::new();
    for &(i, n) in free {
        let take = n.min(left);
        out.push((i, take));
        left -= take;
        if left == 0 {
            break;
        }
    }
    (max - left >= min).then_some(out)
}

/// Exactly `tile` on each host, fewer only on the last.
fn tiled(free: &[(HostId, u32)], min: u32, max: u32, tile: u32) -> Option<Vec<(HostId, u32)>> {
    let hosts: Vec<HostId> = free.iter().filter(|f| f.1 >= tile).map(|f| f.0).collect();
    let most = (hosts.len() as u32).saturating_mul(tile).min(max);
    let mut out: Vec<(HostId, u32)> = Vec::new();
    let mut left = most;
    for &i in &hosts {
        if left == 0 {
            break;
        }
        out.push((i, tile.min(left)));
        left -= tile.min(left);
    }
    if most < max && most >= min {
        return Some(out);
    }
    if most >= max {
        return Some(out);
    }
    // The last host may have fewer than a whole tile free.
    let rest = min - most;
    let last = free.iter().find(|f| f.1 >= rest && rest < tile && !hosts.contains(&f.0))?;
    out.push((last.0, rest));
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_fill_in_order() {
        use crate::batch::state::names::Id;
        let on = |hosts: &[(usize, u32)]| -> Vec<(HostId, u32)> {
            hosts.iter().map(|(i, n)| (HostId::from_index(*i), *n)).collect()
        };
        let free = on(&[(3, 2), (1, 4), (2, 1)]);
        assert_eq!(filled(&free, 1, 3), Some(on(&[(3, 2), (1, 1)])));
        assert_eq!(filled(&free, 5, 9), Some(on(&[(3, 2), (1, 4), (2, 1)])));
        assert_eq!(filled(&free, 8, 9), None);
        assert_eq!(one_host(&free, 2, 4), Some(on(&[(1, 4)])));
        assert_eq!(one_host(&free, 2, 9), Some(on(&[(1, 4)])));
        assert_eq!(one_host(&free, 5, 9), None);
        assert_eq!(tiled(&free, 4, 4, 2), Some(on(&[(3, 2), (1, 2)])));
        assert_eq!(tiled(&free, 5, 5, 2), Some(on(&[(3, 2), (1, 2), (2, 1)])));
        assert_eq!(tiled(&free, 8, 8, 2), None);
        assert_eq!(split_host_word("a+3"), ("a", 3));
        assert_eq!(split_host_word("a+"), ("a", 1));
    }
}
