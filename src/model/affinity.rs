//! The processor units that a started job has (affinity[]): for each of its tasks the units, the
//! CPUs that the task is bound to, and the NUMA nodes of its memory.
//!
//! The text goes into the field `affinity` of JOB_START, to the execution host and to listings:
//! `unit,level,exclusive,policy` of a part of the job, and for each of its tasks
//! ` host:/path+/path:bound:taken:node=MB+node=MB`; parts are separated by ` | `. `-` stands for
//! what is not asked for. `taken` is empty where the task is bound to just what it has taken.

use super::topology::{CpuSet, Unit};
use std::fmt;

/// membind=
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemoryPolicy {
    /// Without membind: memory comes from where the kernel takes it.
    #[default]
    Unbound,
    /// localonly: memory comes from the NUMA nodes of the task.
    Only,
    /// localprefer: memory comes from these while they have some.
    Prefer,
}

impl MemoryPolicy {
    const NAMES: [(&'static str, MemoryPolicy); 3] = [
        ("-", MemoryPolicy::Unbound),
        ("localonly", MemoryPolicy::Only),
        ("localprefer", MemoryPolicy::Prefer),
    ];

    /// The word of membind=, and of LSB_BIND_MEM_POLICY; `-` for none.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, policy)| *policy == self).map_or("-", |(name, _)| name)
    }

    /// The policy of a word.
    pub fn of_name(word: &str) -> Option<MemoryPolicy> {
        Self::NAMES.iter().find(|(name, _)| *name == word).map(|(_, policy)| *policy)
    }
}

/// The units of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskUnits {
    /// The name of its host.
    pub host: String,
    /// The path of each unit: `/node/socket/core/thread` down to the kind asked for.
    pub units: Vec<String>,
    /// The CPUs that it is bound to.
    pub bound: CpuSet,
    /// The CPUs that no other job gets: those of its units, and of what is exclusive.
    pub taken: CpuSet,
    /// The NUMA nodes of its units, with the memory it is to have there in MB; 0: it asks for none.
    pub memory: Vec<(u32, u64)>,
}

/// The tasks of a job, or of a part of a compound requirement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartUnits {
    /// The kind of units.
    pub unit: Unit,
    /// cpubind=
    pub level: Option<Unit>,
    /// exclusive=
    pub exclusive: Option<Unit>,
    /// membind=
    pub policy: MemoryPolicy,
    /// In the order of the execution hosts.
    pub tasks: Vec<TaskUnits>,
}

/// All processor units of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobUnits {
    /// The parts that ask for units.
    pub parts: Vec<PartUnits>,
}

impl JobUnits {
    /// The units of a text; nothing where it is none.
    pub fn parse(text: &str) -> Option<JobUnits> {
        let parts = text.split(" | ").filter(|part| !part.is_empty());
        Some(JobUnits { parts: parts.map(PartUnits::parse).collect::<Option<_>>()? })
    }

    /// The tasks, each with its part.
    pub fn tasks(&self) -> impl Iterator<Item = (&PartUnits, &TaskUnits)> {
        self.parts.iter().flat_map(|part| part.tasks.iter().map(move |task| (part, task)))
    }

    /// The tasks on a host, each with its part.
    pub fn on<'a>(&'a self, host: &'a str) -> impl Iterator<Item = (&'a PartUnits, &'a TaskUnits)> {
        self.tasks().filter(move |(_, task)| task.host == host)
    }

    /// The lines of LSB_AFFINITY_HOSTFILE, one for each task: `host cpu,cpu[ node policy]`.
    pub fn host_file(&self) -> String {
        let mut text = String::new();
        for (part, task) in self.tasks() {
            text.push_str(&task.host);
            text.push(' ');
            text.push_str(&task.bound.each());
            if part.policy != MemoryPolicy::Unbound {
                text.push(' ');
                text.push_str(&task.nodes().each());
                text.push_str(if part.policy == MemoryPolicy::Only { " 1" } else { " 2" });
            }
            text.push('\n');
        }
        text
    }
}

impl TaskUnits {
    /// The NUMA nodes of its units.
    pub fn nodes(&self) -> CpuSet {
        self.memory.iter().map(|(node, _)| *node).collect()
    }

    fn parse(text: &str) -> Option<TaskUnits> {
        let mut fields = text.split(':');
        let host = fields.next().filter(|host| !host.is_empty())?.to_owned();
        let units = fields.next()?.split('+').map(str::to_owned).collect();
        let bound = CpuSet::parse(fields.next()?).ok()?;
        let taken = match fields.next()? {
            "" => bound.clone(),
            list => CpuSet::parse(list).ok()?,
        };
        let node = |text: &str| {
            let (node, mb) = text.split_once('=')?;
            Some((node.parse().ok()?, mb.parse().ok()?))
        };
        let memory = fields.next()?.split('+').map(node).collect::<Option<_>>()?;
        fields.next().is_none().then_some(TaskUnits { host, units, bound, taken, memory })
    }
}

impl PartUnits {
    fn parse(text: &str) -> Option<PartUnits> {
        let mut words = text.split(' ');
        let head: Vec<&str> = words.next()?.split(',').collect();
        let [unit, level, exclusive, policy] = head.as_slice() else { return None };
        let level_of = |word: &str| match word {
            "-" => Some(None),
            word => Unit::of_name(word).map(Some),
        };
        Some(PartUnits {
            unit: Unit::of_name(unit)?,
            level: level_of(level)?,
            exclusive: level_of(exclusive)?,
            policy: MemoryPolicy::of_name(policy)?,
            tasks: words.map(TaskUnits::parse).collect::<Option<_>>()?,
        })
    }
}

impl fmt::Display for JobUnits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, part) in self.parts.iter().enumerate() {
            let word = |unit: Option<Unit>| unit.map_or("-", Unit::name);
            let before = if n > 0 { " | " } else { "" };
            let (level, exclusive) = (word(part.level), word(part.exclusive));
            let (unit, policy) = (part.unit.name(), part.policy.name());
            write!(f, "{before}{unit},{level},{exclusive},{policy}")?;
            for task in &part.tasks {
                write!(f, " {}:{}:{}:", task.host, task.units.join("+"), task.bound)?;
                if task.taken != task.bound {
                    write!(f, "{}", task.taken)?;
                }
                let nodes: Vec<String> =
                    task.memory.iter().map(|(node, mb)| format!("{node}={mb}")).collect();
                write!(f, ":{}", nodes.join("+"))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_a_job_are_read_back_from_their_text() {
        let text = "core,socket,socket,localonly h1:/0/0/0:0-3:0-1:0=100 h2:/1/0/0+/1/0/1:4-5::1=0 \
                    | thread,-,-,- h1:/0/0/3/9:9::0=0";
        let units = JobUnits::parse(text).unwrap();
        assert_eq!(units.to_string(), text);
        assert_eq!(units.on("h1").count(), 2);
        assert_eq!(units.host_file(), "h1 0,1,2,3 0 1\nh2 4,5 1 1\nh1 9\n");
        assert_eq!(JobUnits::parse(""), Some(JobUnits::default()));
        for bad in ["core", "core,-,-,- h1", "core,-,-,- h1:/0:x::0=0", "core,-,-,- :/0:1::0=0"] {
            assert_eq!(JobUnits::parse(bad), None, "{bad}");
        }
    }
}
