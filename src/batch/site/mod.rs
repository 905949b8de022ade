//! The configuration as the scheduler wants it: queues in dispatch order, hosts and users
//! expanded, requirements compiled. Rebuilt whole at start and at a reconfiguration; never
//! changed in between.

pub mod applications;
pub mod aps;
mod aps_inputs;
mod condensed;
mod dispatch_groups;
mod exceptions;
pub mod guarantees;
pub mod limits;
pub mod nlb_request;
pub mod permissions;
pub mod preemption;
pub mod requirements;
pub mod reservation_methods;
pub mod retry_limits;
pub mod rules;
pub mod service_classes;
pub mod settings;
pub mod shares;
pub mod slot_pools;
pub mod task_rule;
pub mod units;
pub mod user_limits;

use crate::batch::site::applications::Applications;
use crate::batch::site::aps::ApsFormula;
use crate::batch::site::condensed::Condensed;
use crate::batch::site::dispatch_groups::QueueOrder;
use crate::batch::site::guarantees::{PoolSources, Pools};
use crate::batch::site::preemption::PreemptionLimits;
use crate::batch::site::requirements::{Names, Req};
use crate::batch::site::reservation_methods::{ReservationMethod, ReservationMethods};
use crate::batch::site::retry_limits::RetryLimits;
use crate::batch::site::rules::{Counter, HostRows, Lookup, Rules};
use crate::batch::site::service_classes::ServiceClasses;
use crate::batch::site::shares::{SharePath, ShareTrees, TreeId};
use crate::batch::site::slot_pools::SlotPools;
use crate::batch::state::names::{self, HostId, HostMap, Id, QueueId, ResourceId};
use crate::conf::types::{
    AffinityCpus, BatchParams, GuaranteedPoolConf, HostPolicy, Mxj, QueueConf, Thresholds, UserTerm,
};
use crate::conf::{ClusterConf, HostDef, Shared};
use crate::lang::exitcodes::ExitCodes;
use crate::lang::resreq::{RusageRange, RusageTerm};
use crate::lang::window::Windows;
use crate::model::reason::{PendReason, susp};
use crate::model::sort::sort_by_key;
use crate::proto::lim::INDEX_NAMES;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;

/// sched and stop of the 11 built-in indices.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bounds {
    of_index: [(Option<f64>, Option<f64>); INDEX_NAMES.len()],
    /// Has some index a loadSched? A pass asks this of each host for each job.
    keeps_jobs_away: bool,
}

impl Bounds {
    /// Is there a loadSched?
    pub fn keep_jobs_away(&self) -> bool {
        self.keeps_jobs_away
    }
}

impl Deref for Bounds {
    type Target = [(Option<f64>, Option<f64>)];

    fn deref(&self) -> &Self::Target {
        &self.of_index
    }
}

/// Thresholds of external indices.
pub type External = Vec<Bound>;

/// The thresholds of an external index.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    pub name: String,
    pub id: ResourceId,
    pub sched: Option<f64>,
    pub stop: Option<f64>,
    /// More of it is more loaded.
    pub up: bool,
    /// The suspending reason of jobs where it is beyond its loadStop.
    pub suspends_for: u32,
}

/// A compiled queue.
#[derive(Debug)]
pub struct Queue {
    pub id: QueueId,
    pub conf: QueueConf,
    /// Limits of the queue as a whole.
    pub limits: Vec<Counter>,
    /// The share tree by which its jobs are dispatched: that of FAIRSHARE, or of the host partition
    /// that has all its hosts.
    pub tree: Option<TreeId>,
    /// APS_PRIORITY, its own or of the queue whose QUEUE_GROUP names it: its jobs are dispatched by
    /// it.
    pub aps: Option<Rc<ApsFormula>>,
    /// Hosts with preference; `None`: every host.
    pub hosts: Option<BTreeMap<HostId, u32>>,
    pub req: Option<Rc<Req>>,
    pub bounds: Bounds,
    pub external: External,
    pub dispatch_window: Windows,
    pub run_window: Windows,
    /// STOP_COND and RESUME_COND.
    pub stop_cond: Option<Req>,
    pub resume_cond: Option<Req>,
    /// TERMINATE_WHEN: what ends a job that would be suspended: load, a run window that closes,
    /// preemption.
    pub end_by_load: bool,
    pub end_by_window: bool,
    pub end_by_preemption: bool,
    /// The queues whose jobs its jobs preempt, the first to be preempted first.
    pub preempts: Vec<QueueId>,
    /// Some queue preempts its jobs.
    pub preemptable: bool,
    /// USE_SUSP_SLOTS: the queues that preempt its jobs, and whose stopped jobs leave it slots.
    pub takes_stopped: Vec<QueueId>,
    /// Other queues get the slots of its stopped jobs.
    pub gives_stopped: bool,
    pub preemption_limits: PreemptionLimits,
    pub retry_limits: RetryLimits,
    /// RESRSV_LIMIT: the amounts that jobs may reserve.
    pub ranges: Vec<RusageRange>,
    /// REQUEUE_EXIT_VALUES.
    pub requeue_codes: Option<ExitCodes>,
}

impl Queue {
    /// Does the scheduler look at how long the jobs of this queue may run? A job without -t;
    /// `until`: one that has a termination deadline.
    pub(crate) fn is_timed(&self, until: bool) -> bool {
        let deadline = !self.conf.ignores.deadline && (until || !self.run_window.is_empty());
        deadline || self.conf.backfill || self.conf.reserve.is_some()
    }

    /// Are there thresholds or a condition by which the load of a host suspends its jobs?
    pub fn stops(&self) -> bool {
        self.stop_cond.is_some() || any_stop(&self.bounds, &self.external)
    }
}

/// Is there a loadStop among thresholds?
fn any_stop(bounds: &Bounds, external: &External) -> bool {
    bounds.iter().any(|bound| bound.1.is_some())
        || external.iter().any(|bound| bound.stop.is_some())
}

/// A compiled batch server host.
#[derive(Debug)]
pub struct ConfiguredHost {
    pub def: HostDef,
    pub dispatch_window: String,
    pub window: Windows,
    pub bounds: Bounds,
    pub external: External,
    /// The host has a resource that keeps jobs away which do not ask for it (`!` in lsf.cluster).
    pub exclusive_resource: bool,
    /// MIG, minutes.
    pub mig: Option<u64>,
    /// EXIT_RATE or GLOBAL_EXIT_RATE, exits of jobs that are no exception; `None`: any number.
    pub exit_rate: Option<u32>,
    /// AFFINITY.
    pub affinity: AffinityCpus,
    /// Columns of lsb.hosts that nothing acts on, as written.
    pub not_acted_on: Vec<(String, String)>,
}

#[derive(Debug)]
pub struct Site {
    pub conf: ClusterConf,
    /// The name of the cluster.
    pub cluster: Arc<str>,
    /// The queues by priority, highest first; equal ones in the order of lsb.queues.
    pub queues: Vec<Queue>,
    /// The application profiles.
    pub applications: Applications,
    /// The service classes.
    pub service_classes: ServiceClasses,
    /// The guaranteed pools that act.
    pub pools: Pools,
    /// The queues that share slots.
    pub slot_pools: SlotPools,
    /// Positions in `queues` in the order in which a pass comes to them: those whose jobs are
    /// dispatched in one order (QUEUE_GROUP) together, at the place of the first.
    pub dispatch_groups: Vec<Vec<usize>>,
    /// Has a queue or an application profile JOB_SIZE_LIST?
    pub sized: bool,
    reservation_methods: ReservationMethods,
    queue_ids: HashMap<String, QueueId>,
    /// Positions in `queues` by id.
    queue_positions: Vec<Option<usize>>,
    /// The positions of their groups, likewise.
    group_positions: Vec<Option<usize>>,
    /// Server hosts in the order of lsf.cluster.
    pub hosts: HostMap<ConfiguredHost>,
    /// Server hosts by name.
    host_ids: HashMap<String, HostId>,
    pub names: Rc<Names>,
    /// The limits of queues, users and hosts.
    pub rules: Rules,
    /// The share trees of queues and host partitions.
    pub shares: ShareTrees,
    /// The host partitions.
    partitions: HostMap<TreeId>,
    pub units: units::ComputeUnits,
    /// Host groups and compute units that are shown in place of their hosts.
    pub condensed: Condensed,
    /// Some queue or host has a loadStop threshold, or a STOP_COND.
    pub stops: bool,
    /// Some queue preempts jobs of another.
    pub preempts: bool,
    /// Some queue or application profile starts jobs in chunks.
    pub forms_chunks: bool,
    /// Some queue is a pipe queue.
    pub routes: bool,
    /// Some queue reserves slots: when started jobs end is of interest.
    pub keeps_timeline: bool,
    /// Hosts or jobs of some queue may be exceptional.
    pub has_exceptions: bool,
    /// The limits for jobs whose queue is not configured any more.
    retry_limits: RetryLimits,
}

/// Windows of the files; what cannot be read is open (the reader has said so).
fn windows(text: &str) -> Windows {
    Windows::parse(text).unwrap_or_default()
}

fn bounds(t: &Thresholds) -> Bounds {
    let mut of_index = Bounds::default().of_index;
    for th in t {
        if let Some(i) = INDEX_NAMES.iter().position(|n| *n == th.index) {
            of_index[i] = (th.sched, th.stop);
        }
    }
    Bounds { of_index, keeps_jobs_away: of_index.iter().any(|bound| bound.0.is_some()) }
}

fn external(t: &Thresholds, shared: &Shared, names: &Names) -> External {
    let own = |th: &crate::conf::types::Threshold| {
        let def = shared.resources.iter().find(|r| r.name == th.index)?;
        let place = shared.external_indices().position(|r| r.name == th.index);
        let (name, up) = (th.index.clone(), def.increasing.unwrap_or(false));
        let suspends_for = place.map_or(susp::LOAD_EXTERNAL, susp::of_external);
        Some(Bound { id: names.id(&name)?, name, sched: th.sched, stop: th.stop, up, suspends_for })
    };
    t.iter().filter_map(own).collect()
}

/// Compiles whose jobs each queue preempts: does any? `give`: USE_SUSP_SLOTS.
fn compile_preemption(queues: &mut [Queue], give: bool) -> bool {
    let of = |high: &Queue| {
        preemption::victims(&high.conf, queues.iter().map(|low| (low.id, &low.conf)))
    };
    let all: Vec<Vec<QueueId>> = queues.iter().map(of).collect();
    let preemptable: BTreeSet<QueueId> = all.iter().flatten().copied().collect();
    let high: Vec<(QueueId, Vec<QueueId>)> =
        queues.iter().map(|queue| queue.id).zip(all.iter().cloned()).filter(|_| give).collect();
    for (queue, preempts) in queues.iter_mut().zip(all) {
        let takes = high.iter().filter(|(_, low)| low.contains(&queue.id));
        queue.takes_stopped = takes.map(|(id, _)| *id).collect();
        queue.gives_stopped = give && !preempts.is_empty();
        (queue.preempts, queue.preemptable) = (preempts, preemptable.contains(&queue.id));
    }
    !preemptable.is_empty()
}

impl Site {
    /// A site before its hosts and queues are compiled.
    fn without_hosts(conf: ClusterConf, resources: Rc<Names>) -> Site {
        Site {
            cluster: conf.base.name.as_str().into(),
            retry_limits: RetryLimits::compile([None; 2], &conf.batch.params),
            applications: Applications::compile(&conf.batch.applications, &resources),
            service_classes: ServiceClasses::compile(&conf.batch.service_classes),
            pools: Pools::default(),
            slot_pools: SlotPools::default(),
            sized: conf.batch.has_job_sizes(),
            reservation_methods: ReservationMethods::compile(&conf.batch),
            conf,
            queues: Vec::new(),
            dispatch_groups: Vec::new(),
            queue_ids: HashMap::new(),
            queue_positions: Vec::new(),
            group_positions: Vec::new(),
            hosts: HostMap::default(),
            host_ids: HashMap::new(),
            names: resources,
            rules: Rules::default(),
            shares: ShareTrees::default(),
            partitions: HostMap::default(),
            units: units::ComputeUnits::default(),
            condensed: Condensed::default(),
            stops: false,
            preempts: false,
            forms_chunks: false,
            routes: false,
            keeps_timeline: false,
            has_exceptions: false,
        }
    }

    /// Has some queue EXTENDABLE_RUNLIMIT?
    pub fn extends_run_limits(&self) -> bool {
        self.queues.iter().any(|queue| queue.conf.extendable.is_some())
    }

    /// The policy of a configuration; its users, queues and hosts get ids.
    pub fn new(conf: ClusterConf, names: &mut names::Names) -> Site {
        let mut resources = Names::new(&conf.base);
        resources.set_params(&conf.batch.params);
        let resources = Rc::new(resources);
        let mut p = Site::without_hosts(conf, resources);
        let mut host_rows = HostRows::default();
        let defs = p.conf.base.cluster.hosts.clone();
        for def in defs.into_iter().filter(|d| d.server) {
            let policy = p.host_policy(&def);
            // A host without a row takes no jobs if lsb.hosts has rows.
            let none = p.conf.batch.hosts.hosts.is_empty();
            let mxj = if none { Mxj::Cpus } else { Mxj::Slots(0) };
            let id = names.host_id(&def.name);
            let unlisted = || HostPolicy { mxj, ..HostPolicy::default() };
            host_rows.add(policy.as_ref().unwrap_or(&unlisted()), id);
            p.host_ids.insert(def.name.clone(), id);
            let row = policy.as_ref();
            let host = ConfiguredHost {
                window: windows(row.map_or("", |h| &h.dispatch_window)),
                dispatch_window: row.map_or(String::new(), |h| h.dispatch_window.clone()),
                bounds: policy.as_ref().map_or(Bounds::default(), |h| bounds(&h.thresholds)),
                external: policy.as_ref().map_or(External::new(), |h| {
                    external(&h.thresholds, &p.conf.base.shared, &p.names)
                }),
                exclusive_resource: def.resources.iter().any(|r| r.exclusive && !r.absent),
                mig: row.and_then(|h| h.mig),
                exit_rate: exceptions::exit_rate(&p.conf.batch, row),
                affinity: policy.as_ref().map_or(AffinityCpus::None, |h| h.affinity.clone()),
                not_acted_on: policy.map_or(Vec::new(), |h| h.not_acted_on),
                def,
            };
            p.hosts.insert(id, host);
        }
        p.shares = ShareTrees::compile(&p.conf);
        p.partitions = p.partitions_of_hosts();
        p.compile_groups_of_hosts();
        let mut queues: Vec<Queue> = Vec::new();
        for conf in &p.conf.batch.queues {
            queues.push(p.compiled(conf, names.queue_id(&conf.name)));
        }
        sort_by_key(&mut queues, |q| std::cmp::Reverse(q.conf.priority));
        p.preempts = compile_preemption(&mut queues, p.params().preemption.gives_stopped);
        p.queue_ids = queues.iter().map(|q| (q.conf.name.clone(), q.id)).collect();
        p.queue_positions = vec![None; names.queue_count()];
        for (position, queue) in queues.iter().enumerate() {
            p.queue_positions[queue.id.index()] = Some(position);
        }
        let orders = queues.iter().map(|queue| QueueOrder {
            priority: queue.conf.priority,
            formula: queue.aps.as_ref().map(|aps| aps.queue.as_str()),
            tree: queue.tree,
        });
        p.dispatch_groups = dispatch_groups::compile(orders, &p.shares);
        p.group_positions = vec![None; names.queue_count()];
        for (group, members) in p.dispatch_groups.iter().enumerate() {
            members.iter().for_each(|at| p.group_positions[queues[*at].id.index()] = Some(group));
        }
        p.routes = queues.iter().any(|q| q.conf.nqs.pipe.is_some());
        p.queues = queues;
        let rules = p.compiled_rules(&host_rows);
        p.use_rules(rules);
        (p.pools, p.slot_pools) = (p.compiled_pools(), p.compiled_slot_pools());
        (p.stops, p.has_exceptions) = (p.any_stop(), exceptions::are_possible(&p.conf.batch));
        let of_queues = p.queues.iter().map(|queue| queue.conf.chunk_job_size);
        let of_profiles = p.conf.batch.applications.iter().filter_map(|a| a.chunk_job_size);
        p.forms_chunks = of_queues.chain(of_profiles).any(|size| size > 1);
        p.keeps_timeline = p.queues.iter().any(|queue| queue.conf.reserve.is_some());
        p
    }

    /// Compute units and condensed groups, once hosts are known.
    fn compile_groups_of_hosts(&mut self) {
        let host_id = |name: &str| self.host_ids.get(name).copied();
        let units = units::ComputeUnits::compile(&self.conf, host_id);
        (self.condensed, self.units) = (Condensed::compile(&self.conf, host_id), units);
    }

    /// The limits, once queues and hosts are known.
    fn compiled_rules(&self, hosts: &HostRows) -> Rules {
        let lookup = Lookup {
            queue: &|name| self.find_queue(name).map(|queue| queue.id),
            hosts: &|name| self.expand_servers(name),
            resource: &|name| self.names.id(name),
        };
        let queues = self.queues.iter().map(|q| (q.id, &q.conf));
        Rules::compile(queues, &self.conf.batch, hosts, &lookup)
    }

    /// The guaranteed pools, once queues and hosts are known.
    fn compiled_pools(&self) -> Pools {
        let hosts = |pool: &GuaranteedPoolConf| {
            let has = |name: &str| self.conf.hosts_hold(&pool.hosts, name);
            let of = self.hosts.iter().filter(|(_, host)| has(&host.def.name));
            of.map(|(id, _)| id).collect()
        };
        let queue = |name: &str| self.find_queue(name).map(|queue| queue.id);
        let sources = PoolSources {
            classes: &self.service_classes,
            names: &self.names,
            base: &self.conf.base,
            hosts: &hosts,
            queue: &queue,
            host: &|name| self.host_id(name),
        };
        Pools::compile(self.conf.batch.resources.pools.iter(), &sources)
    }

    /// The slot pools, likewise.
    fn compiled_slot_pools(&self) -> SlotPools {
        let queues = self.queues.iter();
        let queues = queues.map(|queue| (queue.id, &queue.conf, queue.hosts.as_ref()));
        SlotPools::compile(&self.conf.batch.queues, queues)
    }

    fn use_rules(&mut self, rules: Rules) {
        for queue in &mut self.queues {
            queue.limits = rules.of_queue(queue.id);
        }
        self.rules = rules;
    }

    /// The rules of a test in place of those of the configuration.
    #[cfg(test)]
    pub(crate) fn replace_rules(&mut self, rules: Rules) {
        self.use_rules(rules);
    }

    fn any_stop(&self) -> bool {
        self.queues.iter().any(Queue::stops)
            || self.hosts.values().any(|host| any_stop(&host.bounds, &host.external))
    }

    fn compiled(&self, q: &QueueConf, id: QueueId) -> Queue {
        let parse = |t: &Option<String>| Req::parse(t.as_deref()?, &self.names).ok();
        let ranges = q.reservation_limit.as_deref().and_then(|text| self.names.ranges(text).ok());
        let ranges = ranges.unwrap_or_default();
        let req = parse(&q.res_req).map(|req| req.within(&ranges));
        let chooses = |r: &Req| r.0.first().is_some_and(|s| s.select.is_some());
        let cond = |t: &Option<String>| parse(t).filter(chooses);
        let ends = |word: &str| {
            let words = q.terminate_when.as_deref().unwrap_or_default();
            words.split_whitespace().any(|w| w.eq_ignore_ascii_case(word))
        };
        Queue {
            id,
            hosts: self.queue_hosts(q),
            req: req.map(Rc::new),
            bounds: bounds(&q.thresholds),
            external: external(&q.thresholds, &self.conf.base.shared, &self.names),
            dispatch_window: windows(&q.dispatch_window),
            run_window: windows(&q.run_window),
            stop_cond: cond(&q.stop_cond),
            resume_cond: cond(&q.resume_cond),
            end_by_load: ends("LOAD"),
            end_by_window: ends("WINDOW"),
            end_by_preemption: ends("PREEMPT"),
            preempts: Vec::new(),
            preemptable: false,
            takes_stopped: Vec::new(),
            gives_stopped: false,
            preemption_limits: PreemptionLimits::compile([None, Some(&q.raw)], self.params()),
            retry_limits: RetryLimits::compile([None, Some(&q.raw)], self.params()),
            ranges,
            requeue_codes: q.requeue_exit_values.as_deref().and_then(ExitCodes::parse),
            tree: self.shares.of_queue(&q.name).or_else(|| self.partition_of_queue(q)),
            aps: ApsFormula::of(&self.conf, &self.shares, &q.name).map(Rc::new),
            conf: q.clone(),
            limits: Vec::new(),
        }
    }

    /// How often jobs of this queue go back to it; `None`: their queue is not configured any more.
    pub fn retry_limits<'a>(&'a self, queue: Option<&'a Queue>) -> &'a RetryLimits {
        queue.map_or(&self.retry_limits, |queue| &queue.retry_limits)
    }

    fn host_policy(&self, def: &HostDef) -> Option<HostPolicy> {
        let kinds = (def.host_type.as_deref(), def.model.as_deref());
        self.conf.host_policy(&def.name, kinds.0, kinds.1).cloned()
    }

    fn queue_hosts(&self, queue: &QueueConf) -> Option<BTreeMap<HostId, u32>> {
        if queue.hosts.is_empty() {
            return None;
        }
        let hosts = self.conf.queue_hosts(queue);
        Some(
            hosts
                .into_iter()
                .filter_map(|(host, pref)| Some((self.host_id(host)?, pref)))
                .collect(),
        )
    }

    /// The cluster's spelling of a host name.
    pub fn canonical(&self, name: &str) -> Option<&str> {
        self.conf.base.hosts.canonical(name)
    }

    /// The id of a server host of the cluster.
    pub fn host_id(&self, name: &str) -> Option<HostId> {
        self.host_ids.get(name).copied()
    }

    /// The server hosts that a word means.
    pub fn expand_servers(&self, word: &str) -> BTreeSet<HostId> {
        self.expand_host(word).iter().filter_map(|name| self.host_id(name)).collect()
    }

    /// The hosts that the words of -m mean.
    pub fn expand_host_words(&self, words: &str) -> BTreeSet<String> {
        words.split_whitespace().flat_map(|word| self.expand_host(word)).collect()
    }

    /// The hosts a word means: `all`, a host, a group, a pattern; empty where it means none.
    pub fn expand_host(&self, word: &str) -> BTreeSet<String> {
        // the cluster's own name stands for all its hosts
        let all = word == "default" || word == self.conf.base.name;
        let word = if all { "all" } else { word };
        self.conf.expand_hosts(word).into_iter().map(str::to_string).collect()
    }

    /// Is `user` meant by these words (USERS of a queue, members of a group)? `gid`: the primary
    /// group, where it is known.
    pub fn user_in(&self, terms: &[UserTerm], user: &str, gid: Option<u32>) -> bool {
        self.conf.user_in(terms, user, &self.conf.unix.of(user, gid))
    }

    pub fn may_use(&self, queue: &QueueConf, user: &str, gid: Option<u32>) -> bool {
        queue.users.is_empty() || self.user_in(&queue.users, user, gid) || self.is_admin(user)
    }

    pub fn is_admin(&self, user: &str) -> bool {
        self.conf.base.cluster.admins.iter().any(|a| a == user)
    }

    pub fn is_queue_admin(&self, queue: &str, user: &str, gid: u32) -> bool {
        let groups = self.conf.unix.of(user, Some(gid));
        self.find_queue(queue).is_some_and(|q| self.conf.administers(&q.conf, user, &groups))
    }

    pub fn find_queue(&self, name: &str) -> Option<&Queue> {
        self.queue(*self.queue_ids.get(name)?)
    }

    /// The queue of an id, where the configuration still has it.
    pub fn queue(&self, id: QueueId) -> Option<&Queue> {
        self.queue_position(id).map(|i| &self.queues[i])
    }

    /// The share tree that jobs of a queue are charged to which run on this host first: that of
    /// FAIRSHARE, or of the partition of the host.
    pub fn charged_tree(&self, queue: QueueId, host: HostId) -> Option<TreeId> {
        let own = self.queue(queue).and_then(|queue| queue.tree);
        own.filter(|tree| !self.shares.get(*tree).is_partition())
            .or_else(|| self.partition_of(host))
    }

    /// The share trees that jobs of a queue may be charged to.
    pub fn trees_of(&self, queue: QueueId) -> impl Iterator<Item = TreeId> {
        let own = self.queue(queue).and_then(|queue| queue.tree);
        let own = own.filter(|tree| !self.shares.get(*tree).is_partition());
        let is_partition = move |tree: &TreeId| self.shares.get(*tree).is_partition();
        let partitions = self.shares.ids().filter(move |tree| own.is_none() && is_partition(tree));
        own.into_iter().chain(partitions)
    }

    /// The host partition of a host.
    pub fn partition_of(&self, host: HostId) -> Option<TreeId> {
        self.partitions.get(host).copied()
    }

    /// The partition of each host that is in one.
    fn partitions_of_hosts(&self) -> HostMap<TreeId> {
        let mut all = HostMap::default();
        for tree in self.shares.ids() {
            let Some(words) = &self.shares.get(tree).hosts else { continue };
            for host in self.conf.partition_hosts(words) {
                if let Some(host) = self.host_id(&host) {
                    all.insert(host, tree);
                }
            }
        }
        all
    }

    /// The partition that has all hosts of a queue.
    fn partition_of_queue(&self, queue: &QueueConf) -> Option<TreeId> {
        if self.shares.is_empty() {
            return None;
        }
        let hosts = self.queue_hosts(queue);
        let mut hosts: Box<dyn Iterator<Item = HostId>> = match &hosts {
            Some(hosts) => Box::new(hosts.keys().copied()),
            None => Box::new(self.hosts.ids()),
        };
        let first = self.partition_of(hosts.next()?)?;
        hosts.all(|host| self.partition_of(host) == Some(first)).then_some(first)
    }

    /// The places of a user in a share tree; none: no share.
    pub fn share_paths(&self, tree: TreeId, user: &str) -> Vec<SharePath> {
        let unix_groups = self.conf.unix.of(user, None);
        let in_group = |group: &str| self.conf.in_user_group(user, group, &unix_groups);
        self.shares.get(tree).paths_of(user, &in_group)
    }

    /// The position of the group in which a queue is dispatched.
    pub fn dispatch_group_of(&self, id: QueueId) -> Option<usize> {
        self.group_positions.get(id.index()).copied().flatten()
    }

    /// The position of a queue in dispatch order.
    pub fn queue_position(&self, id: QueueId) -> Option<usize> {
        self.queue_positions.get(id.index()).copied().flatten()
    }

    pub fn params(&self) -> &BatchParams {
        &self.conf.batch.params
    }

    pub fn personal(&self) -> bool {
        self.conf.base.lsf.personal()
    }

    /// Whether root may administer.
    pub fn root_user(&self) -> bool {
        self.personal() || self.conf.base.lsf.root_user()
    }

    /// Are the jobs of a queue routed, never dispatched?
    pub fn is_pipe(&self, queue: QueueId) -> bool {
        self.routes && self.queue(queue).is_some_and(|q| q.conf.nqs.pipe.is_some())
    }

    /// The queue that qmgr made the default one, DEFAULT_QUEUE, or the queue named `default`.
    pub fn default_queues(&self) -> Vec<String> {
        if let Some(queue) = &self.conf.batch.nqs.default_queue {
            return vec![queue.clone()];
        }
        let named = &self.params().default_queue;
        if named.is_empty() { vec!["default".to_string()] } else { named.clone() }
    }

    /// Whether a user is in a user group.
    pub fn in_group(&self, user: &str, group: &str) -> bool {
        self.conf.in_user_group(user, group, &self.conf.unix.of(user, None))
    }

    /// Seconds a host waits between two dispatches for this queue.
    pub fn accept_interval(&self, queue: &QueueConf) -> u64 {
        let n = queue.job_accept_interval.unwrap_or(self.params().job_accept_interval);
        n * self.params().mbd_sleep_time
    }

    /// The unit by which the amount of a rusage term is counted.
    pub fn reservation_method(&self, term: &RusageTerm) -> ReservationMethod {
        self.reservation_methods.of(term)
    }

    /// Is the amount of a rusage term reserved for each task?
    pub fn reserves_per_task(&self, term: &RusageTerm) -> bool {
        self.reservation_method(term) == ReservationMethod::PerTask
    }

    /// The name of the resource that a pending reason is about; none: empty.
    pub fn resource_told(&self, reason: PendReason) -> &str {
        let all = &self.conf.base.shared.resources;
        let resource = reason.resource().and_then(|about| all.get(about.0 as usize));
        resource.map_or("", |resource| &resource.name)
    }
}
