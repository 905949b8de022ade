//! affinity[]: the processor units of hosts as a class finds them, how many tasks a host has room
//! for, and which units a job that starts gets.

use crate::batch::sched::place::requirement::Alternative;
use crate::batch::sched::place::unit_search::{FreeUnits, TaskPlace, UnitRequest, nodes_of};
use crate::batch::sched::view::View;
use crate::batch::site::Queue;
use crate::batch::site::reservation_methods::ReservationMethod;
use crate::batch::state::names::{HostId, ResourceId};
use crate::batch::usage::processor_units::UnitsInUse;
use crate::conf::types::AffinityCpus;
use crate::lang::resreq::{Affinity, Simple};
use crate::model::JobRef;
use crate::model::affinity::{JobUnits, MemoryPolicy, PartUnits, TaskUnits};
use crate::model::reason::PendReason;
use crate::model::topology::{CpuSet, Topology, Unit};
use crate::proto::lim::MEMORY_INDEX;
use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The resource of which membind=localonly needs enough on the NUMA nodes of a task.
const MEMORY: &str = "mem";

/// Tasks of an earlier part of a job, with the CPUs that they take on a host: by number.
pub(super) type Drafted = Vec<(HostId, CpuSet)>;

fn policy_of(affinity: &Affinity) -> MemoryPolicy {
    affinity.membind.and_then(MemoryPolicy::of_name).unwrap_or_default()
}

/// The memory that each of so many tasks on a host asks for, MB; 0: none is asked for.
fn memory_of(view: &View, simple: &Simple, tasks: u32) -> u64 {
    let rusage = simple.rusage.as_ref().map_or(&[][..], |rusage| rusage.terms());
    let Some(term) = rusage.iter().find(|term| term.res == MEMORY) else { return 0 };
    let amount = term.amount().max(0.0).ceil() as u64;
    match view.site.reservation_method(term) {
        ReservationMethod::PerTask => amount,
        _ => amount.div_ceil(u64::from(tasks.max(1))),
    }
}

/// For whom units are looked for.
#[derive(Clone, Copy)]
pub(super) struct UnitsFor<'a> {
    pub(super) queue: &'a Queue,
    /// The jobs on a host that are to be preempted there; `None`: all.
    pub(super) leaving: Option<&'a [JobRef]>,
}

impl UnitsFor<'_> {
    /// The units of a host that the queue finds in use: without those of the jobs that it has
    /// preempted, where PREEMPT_JOBTYPE gives them away.
    fn in_use<'v>(&self, view: &View<'v>, host: HostId) -> Option<Cow<'v, UnitsInUse>> {
        let all = view.processor_units.on(host)?;
        if !view.site.params().preemption.affinity || self.queue.preempts.is_empty() {
            return Some(Cow::Borrowed(all));
        }
        let vacated = view.preemptions.vacated_units(host, self.queue, view.site);
        let mut gone: BTreeSet<JobRef> = vacated.collect();
        gone.extend(self.leaving.into_iter().flatten());
        if gone.is_empty() && self.leaving.is_some() {
            return Some(Cow::Borrowed(all));
        }
        let gone = |at: JobRef| self.leaving.is_none() || gone.contains(&at);
        let memory = !view.site.names.preemptable(ResourceId::of_load_index(MEMORY_INDEX));
        Some(Cow::Owned(view.processor_units.on_without(host, gone, memory)))
    }
}

/// May a preempted job have its units on a host again, beside those of the jobs that run there?
pub(in crate::batch::sched) fn has_units_again(view: &View, at: JobRef, host: HostId) -> bool {
    let Some(own) = view.processor_units.of_job(host, at) else { return true };
    let idle = |other: JobRef| {
        other == at || view.preemptions.is_suspended(other) || view.preemptions.is_stopped(other)
    };
    let others = view.processor_units.on_without(host, idle, false);
    let Some(topology) = view.hosts.get(host).map(|host| &host.topology) else { return true };
    let fits = |(node, mb): (u32, u64)| {
        let whole = topology.nodes().iter().find(|n| n.number == node).map_or(0, |n| n.memory);
        let taken = others.memory_on(node);
        // there may be less of it now than the job was given
        taken == 0 || taken.saturating_add(mb) <= whole
    };
    !others.cpus().meets(own.cpus()) && own.memory().all(fits)
}

/// The units of a host that may be given to a job; `None`: the host gives none to any.
fn free_units<'a>(
    view: &View<'a>,
    by: UnitsFor,
    host: HostId,
    drafted: &Drafted,
) -> Option<FreeUnits<'a>> {
    let topology: &'a Topology = &view.hosts.get(host)?.topology;
    if topology.is_empty() {
        return None;
    }
    let positions = |cpus: &dyn Fn(u32) -> bool| -> CpuSet {
        let all = topology.cpus().iter().enumerate();
        all.filter(|(_, cpu)| cpus(cpu.number)).map(|(position, _)| position as u32).collect()
    };
    let eligible = match &view.site.hosts.get(host)?.affinity {
        AffinityCpus::None => return None,
        AffinityCpus::All => None,
        AffinityCpus::List(list) => Some(positions(&|cpu| list.contains(cpu))),
    };
    let used = by.in_use(view, host);
    let mut others = used.as_ref().map_or(CpuSet::default(), |used| used.cpus().clone());
    drafted.iter().filter(|own| own.0 == host).for_each(|own| others.add(&own.1));
    let taken = positions(&|cpu| others.contains(cpu));
    let left = |node: u32| {
        let memory = topology.nodes().iter().find(|n| n.number == node).map_or(0, |n| n.memory);
        memory.saturating_sub(used.as_ref().map_or(0, |used| used.memory_on(node)))
    };
    // in the order in which the search counts nodes
    let nodes = 0..topology.count(Unit::Numa);
    let number = |index| topology.cpus()[topology.members(Unit::Numa, index)[0] as usize].node;
    let memory = nodes.map(|index| left(number(index))).collect();
    Some(FreeUnits { topology, eligible, taken, memory, steps: Cell::new(0) })
}

/// Units for so many tasks of a requirement, or fewer where there is room for no more.
fn place(
    view: &View,
    free: &FreeUnits,
    (simple, affinity): (&Simple, &Affinity),
    tasks: u32,
) -> Vec<TaskPlace> {
    let default = view.site.params().job_distribute();
    let only = policy_of(affinity) == MemoryPolicy::Only;
    let mut asked = UnitRequest { affinity, default, memory: 0 };
    let mut wanted = tasks;
    loop {
        asked.memory = if only { memory_of(view, simple, wanted) } else { 0 };
        let placed = free.place(&asked, wanted);
        let got = placed.len() as u32;
        // of fewer tasks on the host each asks for more of the memory
        if got == wanted || asked.memory == 0 || got == 0 && wanted <= 1 {
            return placed;
        }
        wanted = got.max(1).min(wanted - 1);
    }
}

/// The tasks that a host has processor units for, no more than `most`; the reason where there is
/// none. `None`: no units are asked for. The looks at CPUs are added to `steps`.
pub(super) fn room_for_tasks(
    (view, by): (&View, UnitsFor),
    simple: &Simple,
    (host, drafted): (HostId, &Drafted),
    most: u32,
    steps: &Cell<usize>,
) -> Option<Result<u64, PendReason>> {
    let affinity = simple.affinity.as_ref()?;
    let Some(free) = free_units(view, by, host, drafted) else {
        return Some(Err(PendReason::NoAffinity));
    };
    let placed = place(view, &free, (simple, affinity), most);
    steps.set(steps.get() + free.topology.cpus().len() + free.steps.get() as usize);
    Some(match placed.len() {
        0 => Err(PendReason::ProcessorUnits),
        tasks => Ok(tasks as u64),
    })
}

/// The CPUs that tasks of a part take on these hosts, after those of the parts before.
pub(super) fn drafted_units(
    (view, by): (&View, UnitsFor),
    simple: Option<&Simple>,
    hosts: &[(HostId, u32)],
    before: &Drafted,
) -> Drafted {
    let mut all = before.clone();
    let Some(simple) = simple else { return all };
    let Some(affinity) = simple.affinity.as_ref() else { return all };
    for (host, tasks) in hosts {
        let Some(free) = free_units(view, by, *host, &all) else { continue };
        for place in place(view, &free, (simple, affinity), *tasks) {
            all.push((*host, numbers(free.topology, &place.taken)));
        }
    }
    all
}

/// The numbers of the CPUs at these positions.
fn numbers(topology: &Topology, positions: &CpuSet) -> CpuSet {
    positions.iter().map(|position| topology.cpus()[position as usize].number).collect()
}

/// The processor units of a job that starts on these hosts by a requirement, as text
/// ([`JobUnits`]); empty: it asks for none. Nothing where there are too few, which a host found to
/// have room does not come to.
pub(crate) fn units_of_job(
    view: &View,
    queue: &Queue,
    alternative: &Alternative,
    hosts: &[(HostId, u32)],
) -> Option<Arc<str>> {
    if alternative.parts.iter().all(|part| part.simple.affinity.is_none()) {
        return Some(Arc::default());
    }
    let by = UnitsFor { queue, leaving: Some(&[]) };
    let mut left = hosts.to_vec();
    left.reverse();
    let mut drafted = Drafted::new();
    let mut all = JobUnits::default();
    for part in &alternative.parts {
        let own = take_tasks(&mut left, part.tasks);
        let Some(affinity) = part.simple.affinity.as_ref() else { continue };
        let mut units = PartUnits {
            unit: affinity.unit,
            level: affinity.cpubind,
            exclusive: affinity.exclusive.map(|exclusive| exclusive.level),
            policy: policy_of(affinity),
            tasks: Vec::new(),
        };
        for (host, tasks) in own {
            let free = free_units(view, by, host, &drafted)?;
            let mut placed = place(view, &free, (&part.simple, affinity), tasks);
            if placed.len() < tasks as usize {
                // fewer tasks than a host has room for may each ask for more of its memory
                let free = FreeUnits { memory: Vec::new(), ..free.clone() };
                placed = place(view, &free, (&part.simple, affinity), tasks);
            }
            if placed.len() < tasks as usize {
                return None;
            }
            for place in &placed {
                let task = task_units(view, (&free, host), (&part.simple, affinity), place, tasks);
                drafted.push((host, task.taken.clone()));
                units.tasks.push(task);
            }
        }
        all.parts.push(units);
    }
    Some(all.to_string().into())
}

/// The hosts of the next tasks; `None`: of all that are left. `left` ends with the first host.
fn take_tasks(left: &mut Vec<(HostId, u32)>, tasks: Option<u32>) -> Vec<(HostId, u32)> {
    let mut wanted = tasks.unwrap_or(u32::MAX);
    let mut own = Vec::new();
    while wanted > 0
        && let Some((host, slots)) = left.pop()
    {
        let taken = slots.min(wanted);
        own.push((host, taken));
        wanted -= taken;
        if taken < slots {
            left.push((host, slots - taken));
        }
    }
    own
}

fn task_units(
    view: &View,
    (free, host): (&FreeUnits, HostId),
    (simple, affinity): (&Simple, &Affinity),
    place: &TaskPlace,
    tasks: u32,
) -> TaskUnits {
    let topology = free.topology;
    let mut bound = CpuSet::default();
    for unit in &place.units {
        for position in topology.members(affinity.unit, *unit) {
            match affinity.cpubind.filter(|level| *level < affinity.unit) {
                Some(level) => {
                    let whole = topology.unit_of(level, *position);
                    topology.members(level, whole).iter().for_each(|p| bound.insert(*p));
                }
                None if free.eligible.as_ref().is_none_or(|list| list.contains(*position)) => {
                    bound.insert(*position);
                }
                None => {}
            }
        }
    }
    let nodes = nodes_of(topology, affinity.unit, &place.units);
    let memory = match policy_of(affinity) {
        MemoryPolicy::Unbound => 0,
        _ => memory_of(view, simple, tasks).div_ceil(nodes.len().max(1) as u64),
    };
    let number = |index| topology.cpus()[topology.members(Unit::Numa, index)[0] as usize].node;
    TaskUnits {
        host: view.hosts[host].name.clone(),
        units: place.units.iter().map(|unit| topology.path(affinity.unit, *unit)).collect(),
        bound: numbers(topology, &bound),
        taken: numbers(topology, &place.taken),
        memory: nodes.into_iter().map(|node| (number(node), memory)).collect(),
    }
}
