//! Classes: pending jobs that ask for the same thing are one, and are held against hosts once.

use crate::batch::cluster::nlb_lists::NlbLists;
use crate::batch::sched::aps_rank::{ApsClass, ApsClock};
use crate::batch::sched::class_key::{ApsKey, ClassKey, TimeKey};
use crate::batch::sched::dispatch_key::{Bidder, ClassHead, DispatchKey};
use crate::batch::sched::order::DispatchOrder;
use crate::batch::sched::place::at_once::OneHostNeeds;
use crate::batch::sched::place::{Compiled, Requirements};
use crate::batch::sched::view::View;
use crate::batch::site::Site;
use crate::batch::site::aps::ApsFormula;
use crate::batch::site::nlb_request::{self, NlbKey};
use crate::batch::site::service_classes::ServiceClassId;
use crate::batch::state::names::{HostId, QueueId, UserId};
use crate::batch::usage::limits_ledger::ConsumerLimits;
use crate::model::job::{JobSpec, opt};
use crate::model::reason::PendReason;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;

/// Bytes of requirements and of hosts asked for that are kept compiled; a requirement takes many
/// times as much compiled as its text.
const MAX_COMPILED: usize = 4 << 20;
/// Number of classes up to which even those without a pending job are kept.
pub const CLASSES_KEPT: usize = 1024;
/// Bytes of a host among those that a class asks for.
pub const BYTES_PER_HOST: usize = 32;
/// Finding a host that a word stands for costs as much as so many looks at a host.
const LOOKS_TO_EXPAND: usize = 4;

/// A class of pending jobs.
#[derive(Debug)]
pub(super) struct Class {
    pub(super) kind: Rc<ClassKey>,
    /// The user, or user and group, among all with jobs in the queue.
    pub(super) bidder: Bidder,
    compiled: Option<Rc<Compiled>>,
    /// The needs of its jobs that a host must meet at least, while the class is kept compiled.
    pub(super) one_host: Option<OneHostNeeds>,
    /// The limits of its jobs, once they were worked out.
    limits: Option<Rc<ConsumerLimits>>,
    /// Pending jobs and parts of them.
    pub(super) pending: u32,
    /// In dispatch order; jobs that were moved within two queues may have one place.
    pub(super) ready: BTreeSet<(DispatchKey, u32)>,
    /// The class is to be held against all open hosts.
    pub(super) unseen: bool,
    /// A limit makes the pending time of its jobs ineligible.
    pub(super) ineligible: bool,
    /// The class as its rank is made of, where the queue has APS_PRIORITY.
    pub(super) aps: Option<Box<ApsClass>>,
}

impl Class {
    /// Bytes of a class while it is kept compiled: a short word may stand for very many hosts.
    fn compiled_bytes(&self, compiled: &Compiled) -> usize {
        self.kind.bytes() + BYTES_PER_HOST * compiled.asked.hosts()
    }

    /// The first ready job of the class, at the place of the class.
    fn head(&self) -> Option<(DispatchKey, u32)> {
        let (place, job) = self.ready.first().copied()?;
        Some((self.aps.as_ref().map_or(place, |aps| aps.head(place)), job))
    }
}

/// All classes.
#[derive(Debug, Default)]
pub(super) struct Classes {
    all: Vec<Class>,
    by_key: HashMap<Rc<ClassKey>, u32>,
    /// Bytes of what is kept compiled.
    compiled: usize,
    requirements: Requirements,
    /// The groups of bsub -G by which users share, from number 1.
    groups: Vec<Box<str>>,
    /// Classes that were forgotten: their places are given to new ones.
    free: Vec<u32>,
    /// Number of classes at which unused ones are dropped next; see [`Classes::forget`].
    crowded: usize,
    /// Classes of jobs of advance reservations that have a ready job.
    reserved: BTreeSet<u32>,
    /// Classes of jobs of service classes that have a ready job.
    of_services: BTreeSet<(ServiceClassId, u32)>,
    /// Classes for which the load balancer chooses hosts and that have a ready job, by their list.
    of_nlb: BTreeMap<Rc<NlbKey>, BTreeSet<u32>>,
    /// A list is wanted that was not before.
    nlb_news: bool,
    /// Jobs with other run limits are of other classes.
    timed: bool,
    /// The instants of absolute priorities.
    ranks: ApsClock,
    /// The class found last, and of what: very many jobs share a submission.
    recent: Option<(QueueId, UserId, Arc<JobSpec>, u32)>,
}

impl Classes {
    pub fn get(&self, class: u32) -> &Class {
        &self.all[class as usize]
    }

    pub fn get_mut(&mut self, class: u32) -> &mut Class {
        &mut self.all[class as usize]
    }

    /// The compiled form of a class, kept where there is room, and the work of making it in looks
    /// at a host.
    pub fn compiled(&mut self, view: &View, class: u32) -> (Rc<Compiled>, usize) {
        let c = &mut self.all[class as usize];
        if let Some(compiled) = &c.compiled {
            return (compiled.clone(), 0);
        }
        let requirement = self.requirements.of(view, &c.kind);
        let compiled = Rc::new(Compiled::new(view, &c.kind, requirement));
        let bytes = c.compiled_bytes(&compiled);
        if self.compiled + bytes <= MAX_COMPILED {
            self.compiled += bytes;
            c.one_host = OneHostNeeds::of(&c.kind, &compiled);
            c.compiled = Some(compiled.clone());
        }
        let looks = c.kind.looks() + LOOKS_TO_EXPAND * compiled.asked.hosts();
        (compiled, looks)
    }

    /// Works out what a walk asks about a new class, so that it does not do so while a slot waits
    /// for a job: nearly always the first job of a class comes long before its first start. Left to
    /// the walk: what may stand for very many hosts, and what is not kept anyway.
    pub fn prepare(&mut self, view: &View, class: u32) {
        let c = self.get(class);
        if c.compiled.is_some() {
            return;
        }
        let named = !c.kind.hosts.is_empty() || !c.kind.fixed.is_empty();
        if !named && self.compiled + c.kind.bytes() <= MAX_COMPILED {
            let (compiled, _) = self.compiled(view, class);
            compiled.requirement.resolve_ahead(view);
        }
    }

    /// The compiled form of a class, where it is kept.
    pub fn kept(&self, class: u32) -> Option<&Rc<Compiled>> {
        self.get(class).compiled.as_ref()
    }

    /// The limits of the jobs of a class.
    pub fn limits(&mut self, view: &View, class: u32) -> Rc<ConsumerLimits> {
        let of = self.get(class);
        if let Some(limits) = &of.limits {
            return limits.clone();
        }
        let limits = view.limits_of(of.kind.consumer);
        self.get_mut(class).limits = Some(limits.clone());
        limits
    }

    /// The groups of users may be others than before.
    pub fn forget_users(&mut self) {
        for class in &mut self.all {
            class.limits = None;
            class.aps.iter_mut().for_each(|aps| aps.forget_account());
        }
        self.ranks.forget_accounts();
    }

    fn drop_compiled(&mut self, class: u32) {
        let class = &mut self.all[class as usize];
        class.one_host = None;
        if let Some(compiled) = class.compiled.take() {
            self.compiled -= class.compiled_bytes(&compiled);
        }
    }

    /// The number of a group of bsub -G.
    fn group_number(&mut self, group: &str) -> u32 {
        if group.is_empty() {
            return 0;
        }
        let known = self.groups.iter().position(|known| **known == *group);
        let position = known.unwrap_or_else(|| {
            self.groups.push(group.into());
            self.groups.len() - 1
        });
        position as u32 + 1
    }

    /// The group of a number.
    pub fn share_group(&self, number: u32) -> &str {
        let position = (number as usize).checked_sub(1);
        position.and_then(|position| self.groups.get(position)).map_or("", |group| group)
    }

    fn add(&mut self, kind: ClassKey) -> u32 {
        let kind = Rc::new(kind);
        let (ready, compiled, limits) = (BTreeSet::new(), None, None);
        let bidder = Bidder { user: kind.user, group: self.group_number(&kind.share_group) };
        let class = Class {
            kind: kind.clone(),
            bidder,
            compiled,
            one_host: None,
            limits,
            pending: 0,
            ready,
            unseen: true,
            ineligible: false,
            aps: None,
        };
        let c = self.free.pop().unwrap_or(self.all.len() as u32);
        match self.all.get_mut(c as usize) {
            Some(place) => *place = class,
            None => self.all.push(class),
        }
        self.by_key.insert(kind, c);
        c
    }

    /// Forgets the classes without a pending job once they may be half of many: jobs that each
    /// ask for something of their own must not fill the memory. Not within a walk, which knows
    /// classes by their number.
    pub fn forget(&mut self) {
        if self.by_key.len() < self.crowded.max(2 * CLASSES_KEPT) {
            return;
        }
        let gone = self.by_key.values().copied().filter(|c| self.get(*c).pending == 0);
        for c in gone.collect::<Vec<u32>>() {
            self.drop_compiled(c);
            if let Some(aps) = self.get_mut(c).aps.take() {
                self.ranks.forget(c, &aps);
            }
            let kind = std::mem::take(&mut self.get_mut(c).kind);
            self.by_key.remove(&kind);
            self.free.push(c);
        }
        self.recent = None;
        self.crowded = 2 * self.by_key.len();
    }

    /// There are advance reservations: jobs with other run limits are of other classes from now on.
    pub fn set_timed(&mut self, timed: bool) {
        self.timed = timed;
    }

    pub fn is_timed(&self) -> bool {
        self.timed
    }

    /// The least slots that a ready job of an advance reservation needs; `None`: none is ready.
    pub fn waiting_in(&self, reservation: &str) -> Option<u32> {
        let kinds = self.reserved.iter().map(|class| &self.get(*class).kind);
        kinds.filter(|kind| &*kind.reservation == reservation).map(|kind| kind.min).min()
    }

    /// The classes with a ready job whose jobs are of this service class.
    pub fn ready_of(&self, service: ServiceClassId) -> impl Iterator<Item = u32> + '_ {
        self.of_services.range((service, 0)..=(service, u32::MAX)).map(|of| of.1)
    }

    /// A class with a ready job wants a list of the load balancer, or no longer.
    fn want_list(&mut self, key: &Rc<NlbKey>, class: u32, wants: bool) {
        if wants {
            self.nlb_news |= !self.of_nlb.contains_key(key);
            self.of_nlb.entry(key.clone()).or_default().insert(class);
        } else if let Some(all) = self.of_nlb.get_mut(key) {
            all.remove(&class);
            if all.is_empty() {
                self.of_nlb.remove(key);
            }
        }
    }

    /// The lists of the load balancer that classes with a ready job want, in order.
    pub fn wanted_lists(&self) -> impl Iterator<Item = &Rc<NlbKey>> {
        self.of_nlb.keys()
    }

    /// Is a list wanted that was not when this was asked last?
    pub fn take_nlb_news(&mut self) -> bool {
        std::mem::take(&mut self.nlb_news)
    }

    /// The classes with a ready job that want a list.
    pub fn of_list(&self, key: &NlbKey) -> BTreeSet<u32> {
        self.of_nlb.get(key).cloned().unwrap_or_default()
    }

    /// The first ready job of a class.
    pub fn head(&self, class: u32) -> Option<(DispatchKey, u32)> {
        self.get(class).head()
    }

    /// Gives a class its ranks.
    pub fn set_aps(&mut self, class: u32, aps: ApsClass) {
        self.ranks.watch(class, &aps);
        self.get_mut(class).aps = Some(Box::new(aps));
    }

    /// Finds the share accounts of the classes with ranks, where they are not known any more.
    pub fn find_accounts(&mut self, view: &View) {
        for class in self.ranks.take_unknown() {
            let c = &mut self.all[class as usize];
            let (Some(key), Some(aps)) = (&c.kind.aps, &mut c.aps) else { continue };
            aps.find_account(view, c.kind.user, &key.share_group);
            self.ranks.watch(class, aps);
        }
    }

    pub fn ranks(&self) -> &ApsClock {
        &self.ranks
    }

    pub fn ranks_mut(&mut self) -> &mut ApsClock {
        &mut self.ranks
    }

    /// Takes the dynamic priority of the user of a class.
    pub fn take_share(&mut self, view: &View, class: u32) {
        if let Some(aps) = &mut self.get_mut(class).aps {
            aps.take_share(view);
        }
    }

    /// Works out the rank of a class anew; whether it stands further in front than before.
    pub fn rank_again(&mut self, order: &mut DispatchOrder, class: u32) -> bool {
        let c = &mut self.all[class as usize];
        let before = c.head();
        let first = c.ready.first().map(|first| first.0);
        if let Some(aps) = &mut c.aps {
            self.ranks.set_rank(class, aps, first);
        }
        let Some(((before, _), (after, _))) = before.zip(c.head()) else { return false };
        if before != after {
            let of = (c.kind.queue, c.bidder);
            order.replace(of, (before, class), (after, class), c.unseen);
        }
        after < before
    }

    /// A job becomes ready, or is no more.
    pub fn set_ready(
        &mut self,
        order: &mut DispatchOrder,
        (class, place, job): (u32, DispatchKey, u32),
        ready: bool,
    ) {
        let c = &mut self.all[class as usize];
        let of = (c.kind.queue, c.bidder);
        let before = c.head().map(|first| first.0);
        match ready {
            true => c.ready.insert((place, job)),
            false => c.ready.remove(&(place, job)),
        };
        let first = c.ready.first().map(|first| first.0);
        if let Some(aps) = &mut c.aps {
            self.ranks.set_rank(class, aps, first);
        }
        let after = c.head().map(|first| first.0);
        if before == after {
            return;
        }
        if !c.kind.reservation.is_empty() {
            match after {
                Some(_) => self.reserved.insert(class),
                None => self.reserved.remove(&class),
            };
        }
        if let Some(service) = c.kind.service_class {
            match after {
                Some(_) => self.of_services.insert((service, class)),
                None => self.of_services.remove(&(service, class)),
            };
        }
        if let Some(key) = c.kind.nlb.clone().filter(|_| before.is_some() != after.is_some()) {
            self.want_list(&key, class, after.is_some());
        }
        let c = &mut self.all[class as usize];
        // while it had no ready job, it was not held against the hosts that changed
        c.unseen |= before.is_none();
        let head = |place: DispatchKey| -> ClassHead { (place, class) };
        match (before, after) {
            (Some(before), Some(after)) => order.replace(of, head(before), head(after), c.unseen),
            (None, Some(after)) => order.insert(of, head(after), c.unseen),
            (Some(before), None) => order.remove(of, head(before)),
            (None, None) => {}
        }
    }

    /// The class of a submission; `by_group`: those of different groups differ.
    pub fn find(
        &mut self,
        (site, nlb_lists): (&Site, &NlbLists),
        (queue, user): (QueueId, UserId),
        spec: &Arc<JobSpec>,
        barred: &[(HostId, PendReason)],
        by_group: bool,
        since: i64,
    ) -> u32 {
        let formula = site.queue(queue).and_then(|queue| queue.aps.as_deref());
        let alike = formula.is_none_or(ApsFormula::favours_age);
        if let Some((of, who, like, c)) = &self.recent
            && barred.is_empty()
            && alike
            && (*of, *who) == (queue, user)
            && Arc::ptr_eq(like, spec)
        {
            return *c;
        }
        let kind = ClassKey {
            queue,
            user,
            consumer: site.rules.consumer((queue, user), spec),
            from_host: spec.from_host.clone(),
            res_req: spec.res_req.clone(),
            min: spec.min_slots.max(1),
            max: spec.max_slots.max(spec.min_slots).max(1),
            hosts: spec.hosts.clone(),
            exclusive: spec.options & opt::EXCLUSIVE != 0,
            application: spec.further.application.clone(),
            group: spec.further.job_group.clone(),
            share_group: if by_group { spec.user_group.as_str().into() } else { "".into() },
            reservation: spec.further.reservation.clone(),
            run_limit: spec.limits.run.filter(|_| self.timed),
            service_class: site.service_classes.id(&spec.further.service_class),
            loan_seconds: spec.limits.run.filter(|_| site.pools.are_timed()),
            fixed: spec.further.host_lines.clone(),
            time: TimeKey::of(site, site.queue(queue), spec),
            aps: formula.map(|formula| ApsKey::of(site, formula, spec, since)),
            nlb: site
                .nlb_policy(spec, site.queue(queue))
                .map(|policy| Rc::new(nlb_request::key_of(policy, spec, nlb_lists.used(policy)))),
            barred: barred.to_vec(),
        };
        let c = match self.by_key.get(&kind) {
            Some(c) => *c,
            None => self.add(kind),
        };
        if barred.is_empty() {
            self.recent = Some((queue, user, spec.clone(), c));
        }
        c
    }

    /// The classes with a ready job, and that job.
    pub fn with_ready_job(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let all = self.all.iter().enumerate();
        all.filter_map(|(class, c)| Some((class as u32, c.ready.first()?.1)))
    }

    /// Places for classes that there are.
    #[cfg(test)]
    pub fn places(&self) -> usize {
        self.all.len()
    }

    /// Requirements that were compiled and are not forgotten.
    #[cfg(test)]
    pub fn requirements(&self) -> usize {
        self.requirements.len()
    }

    /// Bytes of what is kept compiled.
    #[cfg(test)]
    pub fn compiled_bytes(&self) -> usize {
        self.compiled
    }
}
