//! Where a job goes: the hosts a class may use, best first, and the slots one job takes on them.

use super::super::hosts::HostStatus;
use super::super::names::HostId;
use super::super::policy::Queue;
use super::super::require::{Req, Sight};
use super::super::{Cx, Mbd};
use crate::lang::resreq::{HostView, Order, SelectCx, Simple, Span, Tile};
use crate::lim::facts::DEFAULT_NAME;
use crate::model::job::host_slots;
use crate::model::reason::pend;
use crate::model::time::US;
use std::collections::{BTreeMap, BTreeSet};

/// Why a class found no place: codes, each with the hosts that it holds for.
pub(crate) type Reasons = Vec<(u32, Vec<HostId>)>;

/// The hosts of a class in one pass.
#[derive(Clone)]
pub struct Candidates {
    /// Best first.
    hosts: Vec<HostId>,
    /// Hosts before this one are used up for single-slot jobs: within a pass a host only fills.
    next: usize,
    /// Hosts of -m with `!`, of which one must be the first execution host; none: any.
    first: BTreeSet<HostId>,
    /// Why the other hosts are out.
    reasons: BTreeMap<u32, Vec<HostId>>,
}

impl Candidates {
    /// Drops the exhausted hosts before `next` and records their reasons, which are the first of
    /// `full`; the others are left there.
    fn skip(&mut self, next: usize, full: &mut Vec<(u32, HostId)>) {
        for (code, i) in full.drain(..next - self.next) {
            self.reasons.entry(code).or_default().push(i);
        }
        self.next = next;
    }
}

impl Mbd {
    /// The hosts a class may use now.
    pub(super) fn candidates(
        &mut self,
        cx: &Cx,
        queue: &Queue,
        class: usize,
        req: Option<&Req>,
    ) -> Candidates {
        let asked = self.asked_hosts(&self.sched.classes[class].kind.hosts);
        let mut ranked: Vec<(u32, Vec<f64>, HostId)> = Vec::new();
        let mut reasons: BTreeMap<u32, Vec<HostId>> = BTreeMap::new();
        let simple = req.and_then(|r| r.0.first());
        let local = self.local_of(&self.sched.classes[class].kind.from_host);
        let barred = self.barred_hosts(class);
        for i in self.net.hosts.ids() {
            let queue_pref = match &queue.hosts {
                None => Some(0),
                Some(set) => set.get(&i).copied(),
            };
            let ask_pref = match &asked {
                None => Some(0),
                Some(set) => set.get(&i).copied(),
            };
            let why = match (queue_pref, ask_pref) {
                (None, _) => Some(pend::NOT_QUEUE_HOST),
                (_, None) => Some(pend::NOT_ASKED_HOST),
                _ => barred
                    .iter()
                    .find(|bar| bar.0 == i)
                    .map(|bar| bar.1)
                    .or_else(|| self.host_out(cx, i, queue, simple, &local)),
            };
            match why {
                Some(code) => reasons.entry(code).or_default().push(i),
                None => {
                    let pref = queue_pref.unwrap_or(0) + ask_pref.unwrap_or(0);
                    ranked.push((pref, self.rank(i, simple), i));
                }
            }
        }
        ranked.sort_by(|a, b| {
            b.0.cmp(&a.0).then_with(|| Order::compare_ranks(&a.1, &b.1)).then(a.2.cmp(&b.2))
        });
        if reasons.contains_key(&pend::JUST_STARTED) {
            self.arm_accept_timer(cx, queue);
        }
        let first = self.first_hosts(class);
        let mut hosts: Vec<HostId> = ranked.into_iter().map(|r| r.2).collect();
        if !first.is_empty() && !hosts.iter().any(|i| first.contains(i)) {
            let none = hosts.drain(..);
            reasons.entry(pend::FIRST_HOST).or_default().extend(none);
        }
        Candidates { hosts, next: 0, first, reasons }
    }

    /// The hosts that the class is kept from, with why.
    fn barred_hosts(&self, class: usize) -> Vec<(HostId, u32)> {
        self.sched.classes[class].kind.barred.clone()
    }

    /// The hosts of -m that have a `!`.
    fn first_hosts(&self, class: usize) -> BTreeSet<HostId> {
        let words = self.sched.classes[class].kind.hosts.iter();
        let names: BTreeSet<&str> = words.filter_map(|w| w.strip_suffix('!')).collect();
        let hosts = names.into_iter().flat_map(|name| self.pol.expand_servers(name));
        hosts.collect()
    }

    /// -m as host -> preference; `None`: any host.
    fn asked_hosts(&self, words: &[String]) -> Option<BTreeMap<HostId, u32>> {
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
                for i in self.pol.expand_servers(name) {
                    set.entry(i).or_insert(pref);
                }
            }
        }
        if let Some(pref) = others {
            for i in self.pol.hosts.ids() {
                set.entry(i).or_insert(pref);
            }
        }
        Some(set)
    }

    /// Type and model of the submission host; nothing where they were to be found out and LIM
    /// has not heard of the host (it was down when the master changed).
    fn local_of(&self, from_host: &str) -> (String, String) {
        match self.pol.host_id(from_host) {
            Some(i) => {
                let s = self.sight(i);
                let facts = self.net.hosts[i].load.as_ref().and_then(|l| l.facts.as_ref());
                let heard = facts.is_some_and(|f| f.max_mem > 0);
                let sure = |t: &str| if heard || t != DEFAULT_NAME { t } else { "" }.to_string();
                (sure(s.host_type()), sure(s.model()))
            }
            None => (String::new(), String::new()),
        }
    }

    pub(crate) fn sight(&self, i: HostId) -> Sight<'_> {
        let used = self.host_used(i) as f64;
        let max = self.host_max(i).map_or(f64::MAX, |m| m as f64);
        let status = match self.host_status(i) {
            HostStatus::Ok => "ok",
            HostStatus::Unavail | HostStatus::Unreach => "unavail",
            HostStatus::ClosedBusy => "busy",
            HostStatus::ClosedLock => "lockU",
            _ => "ok",
        };
        Sight {
            def: &self.pol.hosts[i].def,
            rt: &self.net.hosts[i],
            slots: (max - used).max(0.0),
            max_slots: max,
            status,
            taken: self.reserve.on(i),
            names: &self.pol.names,
        }
    }

    fn rank(&self, i: HostId, simple: Option<&Simple>) -> Vec<f64> {
        match simple.and_then(|s| s.order.as_ref()) {
            Some(order) => order.rank(&self.sight(i) as &dyn HostView),
            None => Vec::new(),
        }
    }

    /// Why a host takes no job of a class at all, if so.
    fn host_out(
        &self,
        cx: &Cx,
        i: HostId,
        queue: &Queue,
        simple: Option<&Simple>,
        local: &(String, String),
    ) -> Option<u32> {
        match self.host_status(i) {
            HostStatus::Unavail => return Some(pend::LOAD_UNAVAIL),
            HostStatus::Unreach => return Some(pend::SBD_UNREACH),
            HostStatus::ClosedAdm => return Some(pend::HOST_CLOSED),
            HostStatus::ClosedLock => return Some(self.lock_reason(i)),
            HostStatus::ClosedWind => return Some(pend::HOST_WINDOW),
            HostStatus::ClosedExcl => return Some(pend::EXCLUSIVE_JOB),
            HostStatus::ClosedFull => return Some(pend::HOST_FULL),
            HostStatus::ClosedBusy => return Some(self.busy_reason(i)),
            HostStatus::Ok => {}
        }
        if let Some(reason) = self.load_reason(i, &queue.bounds, &queue.external) {
            return Some(reason);
        }
        let cx_local = SelectCx { local_type: &local.0, local_model: &local.1 };
        let sight = self.sight(i);
        if !simple.is_none_or(|s| s.selects(&sight, &cx_local)) {
            let own = queue.req.as_ref().and_then(|r| r.0.first());
            let queue_fails = own.is_some_and(|s| !s.selects(&sight, &cx_local));
            return Some(if queue_fails { pend::QUEUE_RES_REQ } else { pend::RES_REQ });
        }
        let asked = |name: &str| simple.is_some_and(|s| s.asks(name));
        if sight.def.resources.iter().any(|r| r.exclusive && !r.absent && !asked(&r.name)) {
            return Some(pend::RES_REQ);
        }
        let pause = self.pol.accept_interval(&queue.conf) * US;
        let last = self.net.hosts[i].last_dispatch;
        (pause > 0 && last.is_some_and(|t| t + pause > cx.now.mono_us))
            .then_some(pend::JUST_STARTED)
    }

    /// Looks again when the first host may take a job again.
    fn arm_accept_timer(&mut self, cx: &Cx, queue: &Queue) {
        let pause = self.pol.accept_interval(&queue.conf) * US;
        let free = self.net.hosts.values().filter_map(|h| h.last_dispatch).map(|t| t + pause);
        if let Some(t) = free.filter(|t| *t > cx.now.mono_us).min() {
            self.sched.timer = Some(self.sched.timer.map_or(t, |old| old.min(t)));
        }
    }

    /// Slots the queue and the user still have, and the reason when there are none.
    pub(super) fn consumer_room(&self, queue: &Queue, class: usize) -> (u64, u32) {
        let kind = &self.sched.classes[class].kind;
        let counts = &self.st.counts;
        let mut room = (u64::MAX, pend::QUEUE_JOB_LIMIT);
        let mut cap = |limit: Option<u64>, used: u64, code: u32| {
            if let Some(l) = limit {
                let left = l.saturating_sub(used);
                if left < room.0 {
                    room = (left, code);
                }
            }
        };
        let q = counts.queue.get(&kind.queue).map_or(0, |s| s.started());
        cap(queue.conf.qjob_limit.map(u64::from), q, pend::QUEUE_JOB_LIMIT);
        let qu = counts.queue_user.get(&(kind.queue, kind.user)).copied().unwrap_or(0);
        cap(queue.conf.ujob_limit.map(u64::from), qu, pend::QUEUE_USER_JOB_LIMIT);
        let u = counts.user.get(&kind.user).map_or(0, |s| s.started());
        let name = self.st.names.user(kind.user);
        cap(self.pol.user_max_jobs(name), u, pend::USER_JOB_LIMIT);
        room
    }

    /// Slots one class may take on a host now, and the reason when there are none.
    fn host_room(&self, i: HostId, queue: &Queue, class: usize) -> (u64, u32) {
        let kind = &self.sched.classes[class].kind;
        let counts = &self.st.counts;
        let mut room = (u64::MAX, pend::HOST_FULL);
        let mut cap = |limit: Option<u64>, used: u64, code: u32| {
            if let Some(l) = limit {
                let left = l.saturating_sub(used);
                if left < room.0 {
                    room = (left, code);
                }
            }
        };
        cap(self.host_max(i), self.host_used(i), pend::HOST_FULL);
        let hu = counts.host_user.get(&(i, kind.user)).copied().unwrap_or(0);
        cap(self.pol.hosts[i].jl_u.map(u64::from), hu, pend::HOST_USER);
        let hq = counts.host_queue.get(&(i, kind.queue)).copied().unwrap_or(0);
        cap(queue.conf.hjob_limit.map(u64::from), hq, pend::QUEUE_PER_HOST);
        let cpus = f64::from(self.net.hosts[i].ncpus());
        let per_cpu = queue.conf.pjob_limit.map(|p| (p * cpus).ceil() as u64);
        cap(per_cpu, hq, pend::QUEUE_PER_CPU);
        room
    }

    /// [`Mbd::host_room`] by what runs there at this moment: a job just started, one that is
    /// alone, what is reserved. Whoever has none here has none for every job of the class.
    #[inline]
    fn room_now(
        &self,
        cx: &Cx,
        queue: &Queue,
        class: usize,
        i: HostId,
        accept: u64,
        simple: Option<&Simple>,
    ) -> (u64, u32) {
        let (mut room, mut code) = self.host_room(i, queue, class);
        let last = self.net.hosts[i].last_dispatch;
        if accept > 0 && last.is_some_and(|t| t + accept > cx.now.mono_us) {
            (room, code) = (0, pend::JUST_STARTED);
        }
        if self.held_alone(i) {
            (room, code) = (0, pend::EXCLUSIVE_JOB);
        } else if self.sched.classes[class].kind.exclusive && self.host_used(i) > 0 {
            (room, code) = (0, pend::EXCLUSIVE);
        }
        let (left, why) = self.reserve_room(i, simple);
        if left < room {
            (room, code) = (left, why);
        }
        (room, code)
    }

    /// Hosts with slots for one job that asks for this, or why there are none. `room`: the slots
    /// that queue and user have left, which are enough.
    pub(super) fn find_place(
        &mut self,
        cx: &Cx,
        queue: &Queue,
        (class, room): (usize, u64),
        (cands, req): (&mut Candidates, Option<&Req>),
    ) -> Result<Vec<(HostId, u32)>, Reasons> {
        let (min, max) = {
            let k = &self.sched.classes[class].kind;
            (k.min, k.max)
        };
        let max = u64::from(max).min(room) as u32;
        let simple = req.and_then(|r| r.0.first());
        let span = simple.and_then(|s| s.span.clone());
        let accept = self.pol.accept_interval(&queue.conf) * US;
        let mut full: Vec<(u32, HostId)> = Vec::new();
        let mut free: Vec<(HostId, u32)> = Vec::new();
        let single = max == 1;
        let mut moved = cands.next;
        for k in cands.next..cands.hosts.len() {
            let i = cands.hosts[k];
            let (room, code) = self.room_now(cx, queue, class, i, accept, simple);
            if room == 0 {
                full.push((code, i));
                if single && moved == k {
                    moved = k + 1;
                }
                continue;
            }
            free.push((i, room.min(u64::from(max)) as u32));
            if single {
                break;
            }
        }
        let just_started = full.iter().any(|f| f.0 == pend::JUST_STARTED);
        cands.skip(moved, &mut full);
        let fixed = self.fixed_slots(class);
        let begins = |i: HostId| cands.first.is_empty() || cands.first.contains(&i);
        let hosts = match fixed.is_empty() {
            true if !free.iter().any(|f| begins(f.0)) => None,
            true => spread(&free, span.as_ref(), min, max),
            false => exactly(&free, &fixed),
        };
        let hosts = hosts.filter(|h| h.first().is_none_or(|h| begins(h.0)));
        hosts.ok_or_else(|| {
            if just_started {
                self.arm_accept_timer(cx, queue);
            }
            let code = match &span {
                _ if !free.iter().any(|f| begins(f.0)) => pend::FIRST_HOST,
                Some(_) => pend::SPAN,
                None => pend::NOT_ENOUGH_SLOTS,
            };
            all_reasons(cands, full, &free, code)
        })
    }

    /// The slots of -hostfile, host by host in the order of its lines.
    fn fixed_slots(&self, class: usize) -> Vec<(HostId, u32)> {
        let list = host_slots(&self.sched.classes[class].kind.fixed).unwrap_or_default();
        let mut out: Vec<(HostId, u32)> = Vec::new();
        let mut places: BTreeMap<HostId, usize> = BTreeMap::new();
        for (host, slots) in list {
            let known = self.pol.canonical(host).and_then(|h| self.pol.host_id(h));
            // a host that is gone since is never found among the free ones
            let i = known.unwrap_or(HostId::MAX);
            let place = *places.entry(i).or_insert(out.len());
            match out.get_mut(place) {
                Some((_, n)) => *n = n.saturating_add(slots),
                None => out.push((i, slots)),
            }
        }
        out
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

/// Why there is no place: what holds for the whole class, for this job, and the free hosts that
/// did not do.
fn all_reasons(
    cands: &Candidates,
    full: Vec<(u32, HostId)>,
    free: &[(HostId, u32)],
    code: u32,
) -> Reasons {
    let mut all = cands.reasons.clone();
    for (code, i) in full {
        all.entry(code).or_default().push(i);
    }
    if !free.is_empty() {
        all.entry(code).or_default().extend(free.iter().map(|f| f.0));
    }
    all.into_iter().collect()
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
        use crate::batch::names::Id;
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
