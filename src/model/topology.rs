//! The processor units of a host: NUMA nodes with their memory, sockets, cores and threads, and
//! sets of logical CPUs.
//!
//! Invariants: no logical CPU is twice in a topology; CPUs are ordered by NUMA node, socket, core
//! and number, so that a position in this order names a CPU; cores are numbered within their
//! socket from 0. A topology travels as text of at most [`MAX_TEXT`] bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Most logical CPUs of a host.
pub const MAX_CPUS: usize = 4096;
/// Numbers of logical CPUs and of NUMA nodes are smaller.
pub const MAX_NUMBER: u32 = 65_536;
/// Longest text of a topology, bytes: a datagram of LIM holds it.
pub const MAX_TEXT: usize = 32 << 10;

/// A kind of processor unit, the largest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unit {
    /// NUMA node
    Numa,
    /// Socket
    Socket,
    /// Core
    Core,
    /// Thread
    Thread,
}

impl Unit {
    /// Every kind, the largest first.
    pub const ALL: [Unit; 4] = [Unit::Numa, Unit::Socket, Unit::Core, Unit::Thread];

    /// The word of affinity[].
    pub fn name(self) -> &'static str {
        match self {
            Unit::Numa => "numa",
            Unit::Socket => "socket",
            Unit::Core => "core",
            Unit::Thread => "thread",
        }
    }

    /// The kind of a word; `mcm` and `cpu` are LoadLeveler's words.
    pub fn of_name(word: &str) -> Option<Unit> {
        match word {
            "mcm" => Some(Unit::Numa),
            "cpu" => Some(Unit::Thread),
            _ => Unit::ALL.into_iter().find(|unit| unit.name() == word),
        }
    }
}

/// A NUMA node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// The kernel's number.
    pub number: u32,
    /// MB.
    pub memory: u64,
}

/// A logical CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cpu {
    /// The number of its NUMA node.
    pub node: u32,
    /// The number of its socket, from 0.
    pub socket: u32,
    /// The number of its core within the socket, from 0.
    pub core: u32,
    /// The kernel's number.
    pub number: u32,
}

/// The units of one kind: the unit of each position, and the positions of each unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Grouping {
    of: Vec<u32>,
    members: Vec<Vec<u32>>,
}

impl Grouping {
    fn by<K: Ord>(cpus: &[Cpu], key: impl Fn(&Cpu) -> K) -> Grouping {
        let mut numbers: BTreeMap<K, u32> = BTreeMap::new();
        let mut all = Grouping::default();
        for (position, cpu) in cpus.iter().enumerate() {
            let next = all.members.len() as u32;
            let unit = *numbers.entry(key(cpu)).or_insert(next);
            if unit == next {
                all.members.push(Vec::new());
            }
            all.members[unit as usize].push(position as u32);
            all.of.push(unit);
        }
        all
    }
}

/// The processor units of a host; without CPUs where they are not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    nodes: Vec<Node>,
    cpus: Vec<Cpu>,
    /// The units of each kind, in the order of [`Unit::ALL`].
    units: [Grouping; 4],
}

impl Topology {
    /// The topology of these nodes and CPUs. Sockets and cores may have any numbers: they are
    /// counted anew from 0. Nothing where a CPU comes twice or there are too many.
    pub fn new(mut nodes: Vec<Node>, mut cpus: Vec<Cpu>) -> Option<Topology> {
        let numbers: BTreeSet<u32> = cpus.iter().map(|cpu| cpu.number).collect();
        let large = |number: &u32| *number >= MAX_NUMBER;
        if numbers.len() != cpus.len() || cpus.len() > MAX_CPUS || numbers.iter().any(large) {
            return None;
        }
        nodes.sort_by_key(|node| node.number);
        nodes.dedup_by_key(|node| node.number);
        if nodes.iter().any(|node| node.number >= MAX_NUMBER) {
            return None;
        }
        cpus.sort_unstable();
        let mut sockets: BTreeMap<u32, u32> = BTreeMap::new();
        let mut cores: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        let mut of_socket: BTreeMap<u32, u32> = BTreeMap::new();
        for cpu in &cpus {
            let next = sockets.len() as u32;
            sockets.entry(cpu.socket).or_insert(next);
            let count = of_socket.entry(cpu.socket).or_default();
            cores.entry((cpu.socket, cpu.core)).or_insert_with(|| {
                *count += 1;
                *count - 1
            });
        }
        for cpu in &mut cpus {
            (cpu.core, cpu.socket) = (cores[&(cpu.socket, cpu.core)], sockets[&cpu.socket]);
        }
        cpus.sort_unstable();
        let units = [
            Grouping::by(&cpus, |cpu| cpu.node),
            Grouping::by(&cpus, |cpu| cpu.socket),
            Grouping::by(&cpus, |cpu| (cpu.socket, cpu.core)),
            Grouping::by(&cpus, |cpu| cpu.number),
        ];
        Some(Topology { nodes, cpus, units })
    }

    /// The topology of a text ([`Topology`] is shown as one); nothing where it is none.
    pub fn parse(text: &str) -> Option<Topology> {
        if text.len() > MAX_TEXT {
            return None;
        }
        let (mut nodes, mut cpus) = (Vec::new(), Vec::new());
        let (mut socket, mut cores) = (None, BTreeMap::new());
        for word in text.split_ascii_whitespace() {
            if let Some(node) = word.strip_prefix('N') {
                let (number, memory) = node.split_once('=')?;
                nodes.push(Node { number: number.parse().ok()?, memory: memory.parse().ok()? });
                socket = None;
            } else if let Some(number) = word.strip_prefix('S') {
                socket = Some(number.parse::<u32>().ok()?);
            } else {
                let (node, socket) = (nodes.last()?.number, socket?);
                let core = cores.entry(socket).or_insert(0u32);
                for number in word.split(',') {
                    let number = number.parse().ok()?;
                    cpus.push(Cpu { node, socket, core: *core, number });
                }
                *core = core.checked_add(1)?;
            }
        }
        Topology::new(nodes, cpus)
    }

    /// Are the processor units not known?
    pub fn is_empty(&self) -> bool {
        self.cpus.is_empty()
    }

    /// The NUMA nodes, by number.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The logical CPUs, each at its position.
    pub fn cpus(&self) -> &[Cpu] {
        &self.cpus
    }

    fn grouping(&self, unit: Unit) -> &Grouping {
        &self.units[unit as usize]
    }

    /// The number of units of a kind.
    pub fn count(&self, unit: Unit) -> u32 {
        self.grouping(unit).members.len() as u32
    }

    /// The unit of a kind, counted from 0, that the CPU at a position belongs to.
    pub fn unit_of(&self, unit: Unit, position: u32) -> u32 {
        self.grouping(unit).of[position as usize]
    }

    /// The positions of the CPUs of a unit.
    pub fn members(&self, unit: Unit, index: u32) -> &[u32] {
        &self.grouping(unit).members[index as usize]
    }

    /// The path of a unit, as listings show it: `/node/socket/core/thread` down to the unit.
    pub fn path(&self, unit: Unit, index: u32) -> String {
        let cpu = self.cpus[self.members(unit, index)[0] as usize];
        match unit {
            Unit::Numa => format!("/{}", cpu.node),
            Unit::Socket => format!("/{}/{}", cpu.node, cpu.socket),
            Unit::Core => format!("/{}/{}/{}", cpu.node, cpu.socket, cpu.core),
            Unit::Thread => format!("/{}/{}/{}/{}", cpu.node, cpu.socket, cpu.core, cpu.number),
        }
    }
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut blank = "";
        for node in &self.nodes {
            write!(f, "{blank}N{}={}", node.number, node.memory)?;
            blank = " ";
            let mut at: Option<(u32, u32)> = None;
            for cpu in self.cpus.iter().filter(|cpu| cpu.node == node.number) {
                if at.is_none_or(|at| at.0 != cpu.socket) {
                    write!(f, " S{}", cpu.socket)?;
                }
                let sign = if at == Some((cpu.socket, cpu.core)) { ',' } else { ' ' };
                write!(f, "{sign}{}", cpu.number)?;
                at = Some((cpu.socket, cpu.core));
            }
        }
        Ok(())
    }
}

/// A set of small numbers, as of logical CPUs; below [`MAX_NUMBER`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuSet {
    words: Vec<u64>,
}

impl CpuSet {
    /// The set of a list as `0,2-5`; the error is the part that is none.
    pub fn parse(text: &str) -> Result<CpuSet, &str> {
        let mut set = CpuSet::default();
        for part in text.split(',').map(str::trim) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number = |text: &str| text.parse::<u32>().ok().filter(|n| *n < MAX_NUMBER);
            match (number(first), number(last)) {
                (Some(first), Some(last)) if first <= last => {
                    set.insert_range(first, last);
                }
                _ => return Err(part),
            }
        }
        Ok(set)
    }

    /// Adds the numbers from one to another, both below [`MAX_NUMBER`], a word of bits at a time: a
    /// list of a user may name all numbers very often.
    fn insert_range(&mut self, first: u32, last: u32) {
        let (from, to) = ((first / 64) as usize, (last / 64) as usize);
        if self.words.len() <= to {
            self.words.resize(to + 1, 0);
        }
        for word in from..=to {
            let low = if word == from { u64::MAX << (first % 64) } else { u64::MAX };
            let high = if word == to { u64::MAX >> (63 - last % 64) } else { u64::MAX };
            self.words[word] |= low & high;
        }
    }

    /// Adds a number; one that is too large is left out.
    pub fn insert(&mut self, number: u32) {
        if number >= MAX_NUMBER {
            return;
        }
        let word = (number / 64) as usize;
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (number % 64);
    }

    /// Is a number in the set?
    pub fn contains(&self, number: u32) -> bool {
        self.words.get((number / 64) as usize).is_some_and(|word| word & (1 << (number % 64)) != 0)
    }

    /// Adds all numbers of another set.
    pub fn add(&mut self, other: &CpuSet) {
        if self.words.len() < other.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        self.words.iter_mut().zip(&other.words).for_each(|(own, other)| *own |= other);
    }

    /// Removes all numbers of another set.
    pub fn remove(&mut self, other: &CpuSet) {
        self.words.iter_mut().zip(&other.words).for_each(|(own, other)| *own &= !other);
    }

    /// Have two sets a number in common?
    pub fn meets(&self, other: &CpuSet) -> bool {
        self.words.iter().zip(&other.words).any(|(own, other)| own & other != 0)
    }

    /// The bits of the numbers, 64 in each word, the lowest first.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Is no number in the set?
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// The numbers, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.words.iter().enumerate().flat_map(|(at, word)| {
            (0..64).filter(move |bit| word & (1 << bit) != 0).map(move |bit| at as u32 * 64 + bit)
        })
    }

    /// The numbers one by one with commas between them, as LSB_BIND_CPU_LIST has them.
    pub fn each(&self) -> String {
        let all: Vec<String> = self.iter().map(|number| number.to_string()).collect();
        all.join(",")
    }
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> CpuSet {
        let mut set = CpuSet::default();
        numbers.into_iter().for_each(|number| set.insert(number));
        set
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut run: Option<(u32, u32)> = None;
        let mut comma = "";
        let mut put = |f: &mut fmt::Formatter<'_>, (first, last): (u32, u32)| {
            write!(f, "{comma}{first}")?;
            comma = ",";
            if last > first { write!(f, "-{last}") } else { Ok(()) }
        };
        for number in self.iter() {
            run = match run {
                Some((first, last)) if last + 1 == number => Some((first, number)),
                Some(done) => {
                    put(f, done)?;
                    Some((number, number))
                }
                None => Some((number, number)),
            };
        }
        run.map_or(Ok(()), |last| put(f, last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "N0=64000 S0 0,4 1,5 N1=64000 S1 2,6 3,7";

    #[test]
    fn text_of_a_topology_is_read_back() {
        let two = Topology::parse(TWO).unwrap();
        assert_eq!(two.to_string(), TWO);
        assert_eq!(Unit::ALL.map(|unit| two.count(unit)), [2, 2, 4, 8]);
        assert_eq!(two.members(Unit::Core, 3).len(), 2);
        assert_eq!(two.path(Unit::Core, 3), "/1/1/1");
        assert_eq!(two.path(Unit::Thread, 7), "/1/1/1/7");
        assert_eq!(two.cpus()[1].number, 4);
        // one socket with two NUMA nodes: its cores are counted through
        let split = Topology::parse("N0=1 S0 0 1 N1=1 S0 2 3").unwrap();
        assert_eq!(Unit::ALL.map(|unit| split.count(unit)), [2, 1, 4, 4]);
        assert_eq!(split.path(Unit::Core, 3), "/1/0/3");
        assert_eq!(split.to_string(), "N0=1 S0 0 1 N1=1 S0 2 3");
        assert!(Topology::parse("").unwrap().is_empty());
    }

    #[test]
    fn text_that_is_no_topology_is_refused() {
        for bad in ["0", "N0 S0 0", "N0=1 0", "N0=1 S0 0 0", "N0=1 Sx 0", "N0=1 S0 65536", "x"] {
            assert_eq!(Topology::parse(bad), None, "{bad}");
        }
        let many: String = (0..=MAX_CPUS).map(|cpu| format!(" {cpu}")).collect();
        assert_eq!(Topology::parse(&format!("N0=1 S0{many}")), None);
        assert_eq!(Topology::parse(&" ".repeat(MAX_TEXT + 1)), None);
    }

    #[test]
    fn lists_of_cpus_are_read_and_shown() {
        let set = CpuSet::parse("0,2-4,66").unwrap();
        assert_eq!((set.to_string().as_str(), set.each().as_str()), ("0,2-4,66", "0,2,3,4,66"));
        assert!(set.contains(66) && !set.contains(1) && !set.contains(900));
        let mut other: CpuSet = [1, 2].into_iter().collect();
        assert!(set.meets(&other));
        other.add(&set);
        other.remove(&CpuSet::parse("0-3").unwrap());
        assert_eq!(other.to_string(), "4,66");
        for range in [0..=0, 5..=63, 60..=70, 63..=64, 64..=127, 1..=200, 65_500..=65_535] {
            let text = format!("{}-{}", range.start(), range.end());
            let one_by_one: CpuSet = range.collect();
            assert_eq!(CpuSet::parse(&text).unwrap().to_string(), one_by_one.to_string());
        }
        for (bad, part) in [("", ""), ("1,x", "x"), ("3-1", "3-1"), ("70000", "70000")] {
            assert_eq!(CpuSet::parse(bad), Err(part));
        }
    }
}
