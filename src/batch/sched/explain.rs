//! Why a class finds no host: the pass's own functions, asked about every host.

use crate::batch::sched::Sched;
use crate::batch::sched::dispatch_key::ClassEntry;
use crate::batch::sched::explained::{ClosedHosts, HostsByReason, KEPT_FOR, Kept, MAX_KEPT_HOSTS};
use crate::batch::sched::joint_room::JointRoom;
use crate::batch::sched::open_hosts::Rank;
use crate::batch::sched::place::{Alternative, Compiled, HostMatch, Reasons, Requirement};
use crate::batch::sched::policy::host_status;
use crate::batch::sched::view::{SharesHeld, View};
use crate::batch::state::names::HostId;
use crate::model::JobRef;
use crate::model::reason::PendReason;
use std::cell::RefMut;
use std::rc::Rc;

impl Sched {
    /// Why a pending element finds no host; nothing: it was not looked at yet.
    pub(crate) fn reasons(&self, view: &View, at: JobRef, part: u32) -> Rc<Reasons> {
        let entry = match self.lone.get(at) {
            Some(lone) => lone.entry,
            None => self.entry(at.job, part).copied(),
        };
        let Some(ClassEntry { class, .. }) = entry else { return Rc::default() };
        let mut kept = self.explained.kept.borrow_mut();
        let now = self.moment(view);
        if kept.at != now || kept.hosts > MAX_KEPT_HOSTS {
            *kept = Kept { at: now, ..Kept::default() };
        }
        if let Some(reasons) = kept.of.get(&class) {
            return reasons.clone();
        }
        let reasons = Rc::new(self.explain(view, class));
        kept.hosts += reasons.iter().map(|r| r.1.len()).sum::<usize>();
        kept.of.insert(class, reasons.clone());
        reasons
    }

    /// A job that could start although no pass is due, of the first so many ready classes; for
    /// tests and the simulator. Classes that have turns are left out.
    pub(crate) fn overlooked(&self, view: &View, most: usize) -> Option<u32> {
        if self.needed || self.walk.is_some() || self.order.deadline().is_some() {
            return None;
        }
        let ready = self.classes.with_ready_job().take(most);
        let mut free = ready.filter(|(class, _)| self.explain(view, *class).is_empty());
        free.next().map(|(_, job)| job).or_else(|| self.overlooked_preempted(view))
    }

    /// Looks at hosts so far that reasons were found by, for those who bound their turn.
    pub(crate) fn explain_looks(&self) -> usize {
        self.explained.looks.get()
    }

    /// Reasons and closed hosts are kept for as long as this is the same.
    fn moment(&self, view: &View) -> (u64, u64) {
        (self.changes, view.now.mono_us / KEPT_FOR)
    }

    /// The hosts that are closed to every job.
    fn closed_hosts(&self, view: &View) -> RefMut<'_, ClosedHosts> {
        let (mut known, at) = (self.explained.closed.borrow_mut(), self.moment(view));
        if known.at != at || known.open.is_empty() && known.closed.is_empty() {
            self.explained.add(view.hosts.len());
            *known = ClosedHosts { at, ..ClosedHosts::default() };
            for host in view.hosts.ids() {
                match host_status::closed(view, host, view.host_status(host)) {
                    Some(why) => known.closed.of(why).push(host),
                    None => known.open.push(host),
                }
            }
        }
        known
    }

    fn explain(&self, view: &View, number: u32) -> Reasons {
        let view = &View { shares_held: SharesHeld::NotLent, ..*view };
        let kind = &self.classes.get(number).kind;
        let Some(queue) = view.site.queue(kind.queue) else {
            let why = view.queue_closed(kind.queue).unwrap_or(PendReason::QueueInactive);
            return vec![(why, Vec::new())];
        };
        let limits = view.limits_of(kind.consumer);
        let of_user = self.policies.user(view, queue, &limits);
        let own = self.classes.head(number).and_then(|(place, id)| match kind.barred.is_empty() {
            true => self.next_element(view, id, place.part()),
            false => Some(JobRef { job: id, idx: place.next() }),
        });
        let room = self.policies.beside_reservations((view, queue, &limits), of_user, own);
        if room.slots < u64::from(kind.min) {
            let some = room.slots > 0;
            let reason = if some { room.reason.for_parallel_job() } else { room.reason };
            return vec![(reason, Vec::new())];
        }
        if let Some(why) = view.reservations.closed(&kind.reservation) {
            return vec![(why, Vec::new())];
        }
        if view.group_counts.is_full(view.state, &kind.group) {
            return vec![(PendReason::GroupLimit, Vec::new())];
        }
        if view.goals.is_full(kind.service_class) {
            return vec![(PendReason::GoalReached, Vec::new())];
        }
        let compiled = match self.classes.kept(number) {
            Some(compiled) => compiled.clone(),
            None => {
                let requirement = Rc::new(Requirement::new(view, kind));
                Rc::new(Compiled::new(view, kind, requirement))
            }
        };
        let mut first = None;
        let head = self.classes.head(number).map(|head| head.1);
        for req in compiled.requirement.alternatives.iter() {
            let later =
                |req: &Alternative| head.is_some_and(|id| req.starts_later(view, id).is_some());
            if req.as_deref().is_some_and(later) {
                continue;
            }
            self.explained.add(kind.looks() + compiled.asked.hosts());
            let look = HostMatch::new(
                (view, queue, room.slots),
                (kind, &limits),
                &compiled.asked,
                req.as_deref(),
            )
            .of(own);
            let compound = req.as_deref().filter(|req| req.is_compound());
            let place = |look: &HostMatch| {
                let found = self.placement(look);
                self.explained.add(look.take_unit_looks());
                found
            };
            let refused = match compound {
                None => place(&look),
                Some(all) => look.compound(all, place).and_then(|hosts| joint_limits(&look, hosts)),
            };
            match refused.err() {
                None => return Reasons::new(),
                // the first one's tell most
                Some(reasons) => drop(first.get_or_insert(reasons)),
            }
        }
        first.unwrap_or_else(|| vec![(PendReason::Delayed, Vec::new())])
    }

    /// Hosts for a job, or why each host does not do.
    fn placement(&self, look: &HostMatch) -> Result<Vec<(HostId, u32)>, Reasons> {
        let joint = JointRoom::new(look);
        if let Some((_, why)) = joint.full(look.min_slots()) {
            return Err(vec![(why, Vec::new())]);
        }
        let mut free: Vec<(HostId, u32)> = Vec::new();
        let mut hold = |all: &mut HostsByReason, host| match self.policies.host(look, host) {
            Ok(slots) => free.push((host, slots.min(look.most_counted()) as u32)),
            Err(why) => all.of(why).push(host),
        };
        let mut all = HostsByReason::default();
        if look.is_told_status_first() {
            let known = self.closed_hosts(&look.view);
            // a copy of them costs some sixtieth of a look at each
            self.explained.add(known.open.len() + look.view.hosts.len() / 64);
            all = known.closed.clone();
            known.open.iter().for_each(|host| hold(&mut all, *host));
        } else {
            self.explained.add(look.view.hosts.len());
            look.view.hosts.ids().for_each(|host| hold(&mut all, host));
        }
        free.sort_by_key(|f| std::cmp::Reverse(look.preference(f.0).unwrap_or_default()));
        let mut cut = Vec::new();
        if !joint.is_empty() {
            (free, cut) = gathered(look, joint, free);
        }
        if let Some(Ok(hosts)) = JointRoom::allocate(look, &free) {
            return Ok(hosts);
        }
        for (why, host) in &cut {
            all.of(*why).push(*host);
        }
        let few = free.iter().map(|f| f.0).filter(|host| cut.iter().all(|cut| cut.1 != *host));
        let few: Vec<HostId> = few.collect();
        if !few.is_empty() {
            all.of(look.too_few(&free)).extend(few);
        }
        Err(all.into_reasons())
    }
}

/// Hosts with slots, and hosts that a limit leaves less than the job could have had.
type Gathered = (Vec<(HostId, u32)>, Vec<(PendReason, HostId)>);

/// The slots of hosts that limits leave which several hosts have together, in the order in which
/// the pass comes to the hosts.
fn gathered(look: &HostMatch, mut joint: JointRoom, mut free: Vec<(HostId, u32)>) -> Gathered {
    let order = look.simple.and_then(|s| s.order.as_ref());
    free.sort_by_cached_key(|(host, _)| {
        let preferred = std::cmp::Reverse(look.preference(*host).unwrap_or_default());
        (preferred, Rank::of(&look.view, *host, order))
    });
    let (mut left, mut cut, mut counted) = (Vec::new(), Vec::new(), 0);
    let least = if look.one_host() { u64::from(look.min_slots()) } else { 1 };
    for (host, slots) in free {
        let want = look.would_take(host, slots.into(), counted);
        let slots = joint.gather(look, host, (slots.into(), counted));
        // too few whatever the limits leave: that is the reason then
        if slots >= least || slots >= want && slots > 0 {
            left.push((host, slots as u32));
            counted += look.counting(host, slots as u32);
        }
        cut.extend(joint.why().filter(|_| slots < want).map(|why| (why, host)));
    }
    (left, cut)
}

/// Hosts of all parts of a job, where the limits that hosts have together allow them.
fn joint_limits(
    look: &HostMatch,
    hosts: Vec<(HostId, u32)>,
) -> Result<Vec<(HostId, u32)>, Reasons> {
    let short = match JointRoom::new(look).fits(&hosts) {
        Ok(()) => return Ok(hosts),
        Err(short) => short,
    };
    let reasons = short.reasons(look.view.site);
    Err(reasons.into_iter().map(|reason| (reason, Vec::new())).collect())
}
