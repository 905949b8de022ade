//! The resource limits of a job.

use serde::{Deserialize, Serialize};

fn unset(value: &Option<u64>) -> bool {
    value.is_none()
}

/// Resource limits of a job; `None` is unlimited. Sizes in KB, times in seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    #[serde(skip_serializing_if = "unset")]
    pub cpu: Option<u64>,
    #[serde(skip_serializing_if = "unset")]
    pub fsize: Option<u64>,
    #[serde(skip_serializing_if = "unset")]
    pub data: Option<u64>,
    #[serde(skip_serializing_if = "unset")]
    pub stack: Option<u64>,
    #[serde(skip_serializing_if = "unset")]
    pub core: Option<u64>,
    /// -M: resident memory.
    #[serde(skip_serializing_if = "unset")]
    pub rss: Option<u64>,
    /// -M with `!`: the host enforces the memory limit of the job whatever lsf.conf says.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub hard_memory: bool,
    /// MEMLIMIT_TYPE, in the order for a host: it takes the place of lsf.conf.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_of: Option<MemoryOf>,
    #[serde(skip_serializing_if = "unset")]
    pub swap: Option<u64>,
    /// -W: run limit, seconds.
    #[serde(skip_serializing_if = "unset")]
    pub run: Option<u64>,
    #[serde(skip_serializing_if = "unset")]
    pub process: Option<u64>,
    #[serde(skip_serializing_if = "unset")]
    pub thread: Option<u64>,
}

/// The things that each have the memory limit of a job (MEMLIMIT_TYPE of lsb.applications(5)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct MemoryOf {
    /// All its processes together.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub job: bool,
    /// Each process.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub process: bool,
    /// The processes of each task together.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub task: bool,
}

/// Limits of a job on one host by its control group (LSB_RESOURCE_ENFORCE), KB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupMemory {
    pub memory_kb: u64,
    /// Swap space beside the memory; `None`: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap_kb: Option<u64>,
}

/// The enforcement of the CPU and memory limits of jobs on a host: LSB_JOB_CPULIMIT,
/// LSB_JOB_MEMLIMIT, LSB_MEMLIMIT_ENFORCE and LSB_RESOURCE_ENFORCE of its lsf.conf(5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitEnforcement {
    /// The host, for all processes of a job together.
    pub cpu_of_job: bool,
    /// The kernel, for each process.
    pub cpu_of_process: bool,
    /// The host, for all processes of a job together.
    pub memory_of_job: bool,
    /// The kernel, for each process; Linux enforces no such limit.
    pub memory_of_process: bool,
    /// The kernel, by the control group of the job; the host where there is no such group.
    pub memory_by_group: bool,
    /// LSB_MEMLIMIT_ENF_CONTROL: when the host ends jobs beyond their memory limits; `None`: at
    /// once.
    pub memory_control: Option<MemoryControl>,
}

/// A host ends jobs beyond their memory limits only while its memory is used so far
/// (LSB_MEMLIMIT_ENF_CONTROL).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryControl {
    /// Percent of the memory of the host, 1 to 100.
    pub memory_percent: u64,
    /// Percent of its swap space, 1 to 100; 0: that does not count.
    pub swap_percent: u64,
    /// Seconds between two looks.
    pub pause: u64,
    /// All jobs beyond their limits are ended, not only the worst one.
    pub all: bool,
}

impl MemoryControl {
    /// `MEMORY:SWAP:SECONDS` or `MEMORY:SWAP:SECONDS:all`; `None`: it is none.
    pub fn parse(text: &str) -> Option<MemoryControl> {
        let words: Vec<&str> = text.split(':').map(str::trim).collect();
        let (numbers, all) = match words[..] {
            [memory, swap, pause] | [memory, swap, pause, ""] => ([memory, swap, pause], false),
            [memory, swap, pause, all] if all.eq_ignore_ascii_case("all") => {
                ([memory, swap, pause], true)
            }
            _ => return None,
        };
        let number = |word: &str| word.parse::<u64>().ok();
        let (memory_percent, swap_percent) = (number(numbers[0])?, number(numbers[1])?);
        let pause = number(numbers[2])?;
        let fits = (1..=100).contains(&memory_percent)
            && swap_percent <= 100
            && (1..=MAX_CONTROL_PAUSE).contains(&pause);
        fits.then_some(MemoryControl { memory_percent, swap_percent, pause, all })
    }

    /// Is so much of the host's memory in use that jobs beyond their limits are ended?
    pub fn is_reached(&self, host: &HostMemory) -> bool {
        let reached = |percent: u64, (used, all): (u64, u64)| {
            used.saturating_mul(100) >= all.saturating_mul(percent)
        };
        // a host without swap space has none left
        reached(self.memory_percent, host.memory_kb)
            && (self.swap_percent == 0 || reached(self.swap_percent, host.swap_kb))
    }
}

/// Longest pause of LSB_MEMLIMIT_ENF_CONTROL, seconds: a day.
const MAX_CONTROL_PAUSE: u64 = 24 * 3600;

/// The memory of a host, KB: in use, and all of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostMemory {
    pub memory_kb: (u64, u64),
    pub swap_kb: (u64, u64),
}

/// The enforcement where lsf.conf says nothing.
impl Default for LimitEnforcement {
    fn default() -> Self {
        LimitEnforcement {
            cpu_of_job: true,
            cpu_of_process: true,
            memory_of_job: false,
            memory_of_process: true,
            memory_by_group: false,
            memory_control: None,
        }
    }
}

/// One of the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitKind {
    Cpu,
    Fsize,
    Data,
    Stack,
    Core,
    Rss,
    Swap,
    Run,
    Process,
    Thread,
}

impl LimitKind {
    pub const ALL: [LimitKind; 10] = [
        LimitKind::Cpu,
        LimitKind::Fsize,
        LimitKind::Data,
        LimitKind::Stack,
        LimitKind::Core,
        LimitKind::Rss,
        LimitKind::Swap,
        LimitKind::Run,
        LimitKind::Process,
        LimitKind::Thread,
    ];

    /// The word of records and messages.
    pub fn word(self) -> &'static str {
        match self {
            LimitKind::Cpu => "cpu",
            LimitKind::Fsize => "fsize",
            LimitKind::Data => "data",
            LimitKind::Stack => "stack",
            LimitKind::Core => "core",
            LimitKind::Rss => "rss",
            LimitKind::Swap => "swap",
            LimitKind::Run => "run",
            LimitKind::Process => "process",
            LimitKind::Thread => "thread",
        }
    }

    pub fn of_word(word: &str) -> Option<LimitKind> {
        LimitKind::ALL.into_iter().find(|kind| kind.word() == word)
    }
}

impl Limits {
    pub fn get(&self, kind: LimitKind) -> Option<u64> {
        match kind {
            LimitKind::Cpu => self.cpu,
            LimitKind::Fsize => self.fsize,
            LimitKind::Data => self.data,
            LimitKind::Stack => self.stack,
            LimitKind::Core => self.core,
            LimitKind::Rss => self.rss,
            LimitKind::Swap => self.swap,
            LimitKind::Run => self.run,
            LimitKind::Process => self.process,
            LimitKind::Thread => self.thread,
        }
    }

    pub fn get_mut(&mut self, kind: LimitKind) -> &mut Option<u64> {
        match kind {
            LimitKind::Cpu => &mut self.cpu,
            LimitKind::Fsize => &mut self.fsize,
            LimitKind::Data => &mut self.data,
            LimitKind::Stack => &mut self.stack,
            LimitKind::Core => &mut self.core,
            LimitKind::Rss => &mut self.rss,
            LimitKind::Swap => &mut self.swap,
            LimitKind::Run => &mut self.run,
            LimitKind::Process => &mut self.process,
            LimitKind::Thread => &mut self.thread,
        }
    }
}

/// Some of the limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitSet(u16);

impl LimitSet {
    pub fn insert(&mut self, kind: LimitKind) {
        self.0 |= 1 << kind as u16;
    }
    pub fn remove(&mut self, kind: LimitKind) {
        self.0 &= !(1 << kind as u16);
    }
    pub fn contains(self, kind: LimitKind) -> bool {
        self.0 >> kind as u16 & 1 == 1
    }
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
    pub fn iter(self) -> impl Iterator<Item = LimitKind> {
        LimitKind::ALL.into_iter().filter(move |kind| self.contains(*kind))
    }
}

impl FromIterator<LimitKind> for LimitSet {
    fn from_iter<I: IntoIterator<Item = LimitKind>>(kinds: I) -> LimitSet {
        let mut set = LimitSet::default();
        kinds.into_iter().for_each(|kind| set.insert(kind));
        set
    }
}
