//! The choice of processor units of a host for the tasks of a job (affinity[]). Pure: a topology,
//! the CPUs that are not to be had, and a requirement.
//!
//! Tasks get their units one after the other, so that fewer tasks get what the first of more would
//! have got. `same` names the containers from which a group of units comes; without it a group
//! comes from one container where it can: of what is exclusive, or with pack and balance of a
//! socket. pack takes the containers with the fewest free units first, balance those with the most.
//!
//! The work of a search has a bound ([`MOST_STEPS`]): a host may have thousands of CPUs, or say so,
//! and the tasks, the containers and the CPUs multiply. A search that reaches it finds no further
//! tasks on the host.

use crate::lang::resreq::{Affinity, Distribute, Scopes};
use crate::model::topology::{CpuSet, Topology, Unit};
use std::cell::Cell;
use std::cmp::Reverse;

/// Most looks at CPUs for one host in one search, about 5 ms. Tasks on a host of 256 CPUs that are
/// packed into single threads need 150,000.
pub(crate) const MOST_STEPS: u32 = 1 << 20;

/// The units of a host as a job finds them; CPUs are named by their positions in the topology.
#[derive(Clone, Debug)]
pub(crate) struct FreeUnits<'a> {
    pub(super) topology: &'a Topology,
    /// CPUs that jobs may be given at all (AFFINITY of lsb.hosts); `None`: all.
    pub(super) eligible: Option<CpuSet>,
    /// CPUs that other jobs have.
    pub(super) taken: CpuSet,
    /// The memory of each NUMA node that no job has, MB, in the order of the nodes.
    pub(super) memory: Vec<u64>,
    /// Looks at CPUs so far.
    pub(super) steps: Cell<u32>,
}

/// The units that the tasks of a job ask for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnitRequest<'a> {
    pub(super) affinity: &'a Affinity,
    /// How units are chosen where the job does not say: JOB_DISTRIBUTE_ON_HOST.
    pub(super) default: Distribute,
    /// The memory that a task must have on its NUMA nodes, MB; 0: any.
    pub(super) memory: u64,
}

/// The units of a task: their numbers among those of their kind, and all CPUs that are taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TaskPlace {
    pub(super) units: Vec<u32>,
    pub(super) taken: CpuSet,
}

impl FreeUnits<'_> {
    /// Units for as many tasks as there is room for, no more than `tasks`.
    pub fn place(&self, asked: &UnitRequest, tasks: u32) -> Vec<TaskPlace> {
        match asked.affinity.distribute.unwrap_or(asked.default) {
            Distribute::Pack(Some((unit, Some(most)))) => {
                self.packed_into(asked, tasks, unit, Some(most))
            }
            Distribute::Pack(Some((unit, None))) => self.packed_into(asked, tasks, unit, None),
            Distribute::Pack(None) => self.packed(asked, tasks),
            Distribute::Any | Distribute::Balance => Filling::new(self, asked, None).fill(tasks),
        }
    }

    /// On the smallest kind of unit that has room for all tasks, else wherever there is room.
    fn packed(&self, asked: &UnitRequest, tasks: u32) -> Vec<TaskPlace> {
        for unit in [Unit::Socket, Unit::Numa] {
            let whole = |placed: &Vec<TaskPlace>| placed.len() as u32 == tasks;
            let mut containers: Vec<u32> = (0..self.topology.count(unit)).collect();
            containers.sort_by_cached_key(|index| self.free_cpus(unit, *index));
            for index in containers {
                let within = self.topology.members(unit, index).iter().copied().collect();
                let placed = Filling::new(self, asked, Some(&within)).fill(tasks);
                if whole(&placed) {
                    return placed;
                }
            }
        }
        self.packed_into(asked, tasks, Unit::Socket, None)
    }

    /// Counts looks at CPUs; false: the search has made too many.
    fn look(&self, cpus: usize) -> bool {
        let steps = self.steps.get().saturating_add(u32::try_from(cpus).unwrap_or(u32::MAX));
        self.steps.set(steps);
        steps <= MOST_STEPS
    }

    /// On as few units of a kind as have room, and no more than `most`.
    fn packed_into(
        &self,
        asked: &UnitRequest,
        tasks: u32,
        unit: Unit,
        most: Option<u32>,
    ) -> Vec<TaskPlace> {
        let members = |index: &u32| self.topology.members(unit, *index).iter().copied().collect();
        let room = |index: &u32| Filling::new(self, asked, Some(&members(index))).fill(tasks).len();
        let mut containers: Vec<u32> = (0..self.topology.count(unit)).collect();
        containers.sort_by_cached_key(|index| (Reverse(room(index)), self.free_cpus(unit, *index)));
        containers.truncate(most.map_or(usize::MAX, |most| most as usize));
        // with fewer free CPUs there is no room for all tasks
        let groups = u64::from(asked.affinity.times.unwrap_or(1));
        let least = groups.saturating_mul(asked.affinity.count.into()).saturating_mul(tasks.into());
        let (mut within, mut cpus) = (CpuSet::default(), 0);
        let mut best = Vec::new();
        for (n, index) in containers.iter().enumerate() {
            within.add(&members(index));
            cpus += self.free_cpus(unit, *index) as u64;
            if cpus < least && n + 1 < containers.len() {
                continue;
            }
            best = Filling::new(self, asked, Some(&within)).fill(tasks);
            if best.len() as u32 == tasks || !self.look(0) {
                break;
            }
        }
        best
    }

    /// May jobs be given the CPU at a position at all?
    fn is_eligible(&self, position: u32) -> bool {
        self.eligible.as_ref().is_none_or(|eligible| eligible.contains(position))
    }

    fn free_cpus(&self, unit: Unit, index: u32) -> usize {
        let free =
            |position: &&u32| self.is_eligible(**position) && !self.taken.contains(**position);
        let members = self.topology.members(unit, index);
        self.look(members.len());
        members.iter().filter(free).count()
    }
}

/// May a group have a unit?
#[derive(Clone, Copy, PartialEq, Eq)]
enum Usable {
    Now,
    /// Another task or group may.
    Later,
    /// Nobody may any more.
    Never,
}

/// Tasks being given their units.
struct Filling<'a> {
    free: &'a FreeUnits<'a>,
    asked: &'a UnitRequest<'a>,
    scopes: Scopes,
    /// The only units that are looked at, ascending, where tasks lie within some CPUs; these.
    within: Option<(Vec<u32>, &'a CpuSet)>,
    /// How many of the first units nobody may have any more.
    passed: usize,
    /// CPUs that are not to be had any more.
    closed: CpuSet,
    memory: Vec<u64>,
    /// The task, and the group of units within it, that last had a part of each unit of the
    /// exclusive kind.
    owners: Vec<Option<(u32, u32)>>,
}

impl<'a> Filling<'a> {
    /// `within`: only units that lie in these CPUs.
    fn new(
        free: &'a FreeUnits<'a>,
        asked: &'a UnitRequest<'a>,
        within: Option<&'a CpuSet>,
    ) -> Filling<'a> {
        let kind = asked.affinity.unit;
        let units = |cpus: &CpuSet| {
            let mut units: Vec<u32> =
                cpus.iter().map(|position| free.topology.unit_of(kind, position)).collect();
            free.look(units.len());
            units.sort_unstable();
            units.dedup();
            units
        };
        let exclusive = asked.affinity.exclusive;
        let owners = exclusive.map_or(0, |exclusive| free.topology.count(exclusive.level));
        Filling {
            free,
            asked,
            scopes: exclusive.map(|exclusive| exclusive.acting()).unwrap_or_default(),
            within: within.map(|within| (units(within), within)),
            passed: 0,
            closed: free.taken.clone(),
            memory: free.memory.clone(),
            owners: vec![None; owners as usize],
        }
    }

    fn fill(mut self, tasks: u32) -> Vec<TaskPlace> {
        let mut placed = Vec::new();
        for task in 0..tasks {
            let mut place = TaskPlace::default();
            for group in 0..self.asked.affinity.times.unwrap_or(1) {
                let Some(units) = self.group(task, group) else { return placed };
                self.take(&units, (task, group), &mut place);
            }
            self.take_memory(&place.units);
            placed.push(place);
        }
        placed
    }

    /// The next group of units of a task.
    fn group(&mut self, task: u32, group: u32) -> Option<Vec<u32>> {
        let affinity = self.asked.affinity;
        let wanted = affinity.count as usize;
        let distribute = affinity.distribute.unwrap_or(self.asked.default);
        let prefers = match (affinity.same, affinity.exclusive) {
            (Some(same), _) => Some(same),
            (None, Some(exclusive)) if exclusive.level < affinity.unit => Some(exclusive.level),
            (None, _) if distribute != Distribute::Any && Unit::Socket < affinity.unit => {
                Some(Unit::Socket)
            }
            _ => None,
        };
        let Some(container) = prefers else {
            let units = self.usable((task, group), wanted);
            return (units.len() == wanted).then_some(units);
        };
        let usable = self.usable((task, group), usize::MAX);
        let mut by_container: Vec<Vec<u32>> =
            vec![Vec::new(); self.free.topology.count(container) as usize];
        for unit in &usable {
            if let Some(index) = self.container(container, *unit) {
                by_container[index as usize].push(*unit);
            }
        }
        let enough = by_container.iter().filter(|units| units.len() >= wanted);
        let chosen = match distribute {
            Distribute::Any => enough.take(1).next(),
            Distribute::Balance => enough.min_by_key(|units| Reverse(units.len())),
            Distribute::Pack(_) => enough.min_by_key(|units| units.len()),
        };
        match chosen {
            Some(units) => Some(units[..wanted].to_vec()),
            None if affinity.same.is_some() => None,
            None => {
                by_container.sort_by_key(|units| Reverse(units.len()));
                let units: Vec<u32> = by_container.concat().into_iter().take(wanted).collect();
                (units.len() == wanted).then_some(units)
            }
        }
    }

    /// The unit of a larger kind that a unit lies in as a whole.
    fn container(&self, kind: Unit, unit: u32) -> Option<u32> {
        let topology = self.free.topology;
        let mut all = topology.members(self.asked.affinity.unit, unit).iter();
        let first = topology.unit_of(kind, *all.next()?);
        all.all(|position| topology.unit_of(kind, *position) == first).then_some(first)
    }

    /// The units that a group may have, in the order of the topology, the first so many.
    fn usable(&mut self, of: (u32, u32), most: usize) -> Vec<u32> {
        let count = match &self.within {
            Some((units, _)) => units.len(),
            None => self.free.topology.count(self.asked.affinity.unit) as usize,
        };
        let mut found = Vec::new();
        for at in self.passed..count {
            let unit = self.within.as_ref().map_or(at as u32, |within| within.0[at]);
            match self.use_of(unit, of) {
                Usable::Now => found.push(unit),
                Usable::Never if at == self.passed => self.passed += 1,
                Usable::Later | Usable::Never => {}
            }
            if found.len() >= most {
                break;
            }
        }
        found
    }

    fn use_of(&self, unit: u32, (task, group): (u32, u32)) -> Usable {
        let topology = self.free.topology;
        let members = topology.members(self.asked.affinity.unit, unit);
        if !self.free.look(members.len()) {
            return Usable::Never;
        }
        let (mut any, mut mine) = (false, true);
        for position in members {
            let outside = self.within.as_ref().is_some_and(|within| !within.1.contains(*position));
            if outside || self.closed.contains(*position) {
                return Usable::Never;
            }
            any |= self.free.is_eligible(*position);
            let node = topology.unit_of(Unit::Numa, *position) as usize;
            let left = self.memory.get(node).copied().unwrap_or(u64::MAX);
            if self.asked.memory > left {
                return Usable::Never;
            }
            let Some(exclusive) = self.asked.affinity.exclusive else { continue };
            let index = topology.unit_of(exclusive.level, *position);
            mine &= match self.owners[index as usize] {
                None => true,
                Some((owner, _)) if owner != task => !self.scopes.in_job,
                Some((_, owner)) => owner == group || !self.scopes.in_task,
            };
            if self.scopes.all_jobs && self.has_others(exclusive.level, index) {
                return Usable::Never;
            }
        }
        match (any, mine) {
            (false, _) => Usable::Never,
            (true, false) => Usable::Later,
            (true, true) => Usable::Now,
        }
    }

    /// Do other jobs have CPUs of a unit?
    fn has_others(&self, kind: Unit, index: u32) -> bool {
        let members = self.free.topology.members(kind, index);
        self.free.look(members.len());
        members.iter().any(|position| self.free.taken.contains(*position))
    }

    fn take(&mut self, units: &[u32], of: (u32, u32), place: &mut TaskPlace) {
        let topology = self.free.topology;
        for unit in units {
            for position in topology.members(self.asked.affinity.unit, *unit) {
                self.closed.insert(*position);
                if self.free.is_eligible(*position) {
                    place.taken.insert(*position);
                }
                let Some(exclusive) = self.asked.affinity.exclusive else { continue };
                let index = topology.unit_of(exclusive.level, *position);
                self.owners[index as usize] = Some(of);
                if self.scopes.all_jobs {
                    let members = topology.members(exclusive.level, index);
                    self.free.look(members.len());
                    members.iter().for_each(|p| place.taken.insert(*p));
                }
            }
        }
        place.units.extend(units);
    }

    fn take_memory(&mut self, units: &[u32]) {
        let nodes = nodes_of(self.free.topology, self.asked.affinity.unit, units);
        let share = self.asked.memory.div_ceil(nodes.len().max(1) as u64);
        for node in nodes {
            if let Some(left) = self.memory.get_mut(node as usize) {
                *left = left.saturating_sub(share);
            }
        }
    }
}

/// The NUMA nodes of units, by their place among the nodes that have CPUs; each once.
pub(crate) fn nodes_of(topology: &Topology, kind: Unit, units: &[u32]) -> Vec<u32> {
    let positions = units.iter().flat_map(|unit| topology.members(kind, *unit));
    let nodes: CpuSet = positions.map(|position| topology.unit_of(Unit::Numa, *position)).collect();
    nodes.iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lang::resreq::{ResReq, Syntax};

    /// Two NUMA nodes, each with a socket of two cores of two threads.
    const TWO: &str = "N0=100 S0 0,4 1,5 N1=100 S1 2,6 3,7";

    fn affinity(text: &str) -> Affinity {
        let names = crate::batch::site::requirements::Names::new(&Default::default());
        let req = ResReq::parse(&format!("affinity[{text}]"), &Syntax::new(&names)).unwrap();
        req.first().and_then(|simple| simple.affinity).unwrap()
    }

    /// The units of each task, as paths, where other jobs have these CPUs.
    fn placed(topology: &str, taken: &[u32], asked: (&str, u64), tasks: u32) -> Vec<String> {
        let topology = Topology::parse(topology).unwrap();
        let position =
            |cpu: &u32| topology.cpus().iter().position(|c| c.number == *cpu).unwrap() as u32;
        let free = FreeUnits {
            topology: &topology,
            eligible: None,
            taken: taken.iter().map(position).collect(),
            memory: topology.nodes().iter().map(|node| node.memory).collect(),
            steps: Cell::new(0),
        };
        let affinity = affinity(asked.0);
        let request =
            UnitRequest { affinity: &affinity, default: Distribute::Any, memory: asked.1 };
        let paths = |place: &TaskPlace| {
            let all = place.units.iter().map(|unit| topology.path(affinity.unit, *unit));
            all.collect::<Vec<_>>().join("+")
        };
        free.place(&request, tasks).iter().map(paths).collect()
    }

    #[test]
    fn each_task_gets_units_of_its_own() {
        let two = |asked: &str, tasks| placed(TWO, &[], (asked, 0), tasks);
        assert_eq!(two("core(1)", 9), ["/0/0/0", "/0/0/1", "/1/1/0", "/1/1/1"]);
        assert_eq!(two("core(2)", 1), ["/0/0/0+/0/0/1"]);
        assert_eq!(two("core(3)", 2), ["/0/0/0+/0/0/1+/1/1/0"]);
        assert_eq!(two("core(2)", 9).len(), 2);
        assert_eq!(two("thread(1)", 99).len(), 8);
        assert_eq!(two("socket(1)", 9), ["/0/0", "/1/1"]);
        assert_eq!(two("numa*2", 9), ["/0+/1"]);
        assert_eq!(two("core(5)", 1), [""; 0]);
    }

    #[test]
    fn unit_of_which_a_part_is_taken_is_not_given() {
        let two = |asked: &str| placed(TWO, &[4], (asked, 0), 9);
        assert_eq!(two("core(1)"), ["/0/0/1", "/1/1/0", "/1/1/1"]);
        assert_eq!(two("socket(1)"), ["/1/1"]);
        assert_eq!(two("thread(1)").len(), 7);
        assert_eq!(two("core(2,same=socket)"), ["/1/1/0+/1/1/1"]);
    }

    #[test]
    fn group_of_units_lies_in_one_container() {
        let one_core_taken = |asked: &str, tasks| placed(TWO, &[0], (asked, 0), tasks);
        assert_eq!(one_core_taken("core(2)", 1), ["/0/0/1+/1/1/0"]);
        assert_eq!(one_core_taken("core(2,same=numa)", 1), ["/1/1/0+/1/1/1"]);
        let threads = placed(TWO, &[], ("thread(2,same=core,exclusive=(socket,intask))*2", 0), 2);
        assert_eq!(threads[0], "/0/0/0/0+/0/0/0/4+/1/1/0/2+/1/1/0/6");
        assert_eq!(threads.len(), 2);
    }

    #[test]
    fn exclusive_units_are_kept_from_others() {
        let tasks = |asked: &str| placed(TWO, &[], (asked, 0), 9);
        assert_eq!(tasks("core(1,exclusive=(socket,injob))"), ["/0/0/0", "/1/1/0"]);
        assert_eq!(tasks("core(1,exclusive=(socket))").len(), 2);
        assert_eq!(tasks("core(1,exclusive=(socket,intask))").len(), 4);
        let other = placed(TWO, &[1], ("core(1,exclusive=(socket,alljobs))", 0), 9);
        assert_eq!(other, ["/1/1/0", "/1/1/1"]);
    }

    #[test]
    fn tasks_are_packed_or_balanced() {
        let tasks = |taken: &[u32], asked: &str, n| placed(TWO, taken, (asked, 0), n);
        let pack = "core(1):distribute=pack";
        assert_eq!(tasks(&[0], pack, 2), ["/1/1/0", "/1/1/1"]);
        assert_eq!(tasks(&[0], pack, 1), ["/0/0/1"]);
        assert_eq!(tasks(&[0], pack, 3).len(), 3);
        let balance = "core(1):distribute=balance";
        assert_eq!(tasks(&[], balance, 3), ["/0/0/0", "/1/1/0", "/0/0/1"]);
        assert_eq!(tasks(&[], "core(1):distribute=pack(socket=1)", 3).len(), 2);
        assert_eq!(tasks(&[], "core(1):distribute=pack(socket)", 3).len(), 3);
    }

    /// The looks at CPUs for tasks on a host of so many cores of two threads in eight sockets.
    fn steps(cores: u32, asked: &str, tasks: u32) -> (u32, usize) {
        let of_socket = cores / 8;
        let socket = |n: u32| {
            let of = n * of_socket..(n + 1) * of_socket;
            let cores: String = of.map(|core| format!(" {},{}", 2 * core, 2 * core + 1)).collect();
            format!("N{n}=64000 S{n}{cores} ")
        };
        let text: String = (0..8).map(socket).collect();
        let topology = Topology::parse(&text).unwrap();
        let memory = topology.nodes().iter().map(|node| node.memory).collect();
        let (taken, steps) = (CpuSet::default(), Cell::new(0));
        let free = FreeUnits { topology: &topology, eligible: None, taken, memory, steps };
        let affinity = affinity(asked);
        let request = UnitRequest { affinity: &affinity, default: Distribute::Any, memory: 1 };
        let placed = free.place(&request, tasks).len();
        (free.steps.get(), placed)
    }

    #[test]
    fn work_of_a_search_has_a_bound() {
        // what is usual costs a few looks at each CPU
        assert_eq!(steps(128, "core(1)", 128), (510, 128));
        let (usual, placed) = steps(128, "thread(1):distribute=pack(thread)", 256);
        assert!(placed == 256 && usual < 200_000, "{usual} for {placed}");
        for asked in [
            "thread(1):distribute=pack(thread)",
            "thread(1,exclusive=(socket,alljobs)):distribute=pack(core)",
            "core(1,same=socket):distribute=balance",
            "thread(1)*4000000000:distribute=pack",
        ] {
            let (most, placed) = steps(2048, asked, 4096);
            assert!(most <= 2 * MOST_STEPS, "{asked}: {most} for {placed}");
        }
    }

    #[test]
    fn memory_of_a_task_fits_into_its_nodes() {
        let tasks = |memory| placed(TWO, &[], ("core(1):membind=localonly", memory), 9);
        assert_eq!(tasks(60), ["/0/0/0", "/1/1/0"]);
        assert_eq!(tasks(50).len(), 4);
        assert_eq!(tasks(101).len(), 0);
    }
}
