//! The measurements of LIM: the counters of /proc, the disks of /sys, terminals and logins.
//!
//! Everything absent (an old kernel, a container without utmp) reads as zero or as the best
//! substitute; measuring never fails. Readers of text are apart from the files they read.

use crate::model::limits::HostMemory;
use crate::proto::lim::{HostFacts, LoadSample};
use crate::sys::topology;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Bytes of one record of utmp (64-bit Linux keeps the 32-bit layout).
const UTMP_RECORD: usize = 384;
/// ut_type of a logged-in user.
const USER_PROCESS: i16 = 7;
/// Most of a pseudo file that is read, bytes.
const MAX_READ: u64 = 4 << 20;
/// Read at once of a pseudo file, bytes.
const READ_AT_ONCE: usize = 16 << 10;
/// Bytes of a sector in /proc/diskstats, whatever the disk has.
const SECTOR: u64 = 512;

/// Measures this host. The files that each measurement reads stay open.
pub struct Probe {
    cpu: HostFacts,
    boot_id: String,
    memory: KernelFile,
    paging: KernelFile,
    processors: KernelFile,
    average: KernelFile,
    disks: KernelFile,
    uptime: KernelFile,
    /// Pages swapped since boot, as they were read last.
    pages: Option<u64>,
    /// The names in /proc/diskstats, and which of them are disks with hardware behind them. A disk
    /// that comes or goes changes the names, so that /sys is looked through only then.
    block_devices: Vec<String>,
    hardware: BTreeSet<String>,
}

/// A file that the kernel makes up anew whenever it is read from its beginning.
pub(super) struct KernelFile {
    path: &'static str,
    file: Option<fs::File>,
}

impl KernelFile {
    pub(super) fn new(path: &'static str) -> KernelFile {
        KernelFile { path, file: None }
    }

    fn text(&mut self) -> String {
        use std::os::unix::fs::FileExt;
        if self.file.is_none() {
            self.file = fs::File::open(self.path).ok();
        }
        let Some(file) = &self.file else { return String::new() };
        let mut data = vec![0; READ_AT_ONCE];
        let mut len = 0;
        loop {
            match file.read_at(&mut data[len..], len as u64) {
                Ok(0) => break,
                Ok(n) => len += n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => {
                    // opened anew by the next measurement
                    self.file = None;
                    break;
                }
            }
            if len as u64 >= MAX_READ {
                break;
            }
            if data.len() - len < READ_AT_ONCE / 2 {
                data.resize(2 * data.len(), 0);
            }
        }
        data.truncate(len);
        String::from_utf8_lossy(&data).into_owned()
    }
}

impl Default for Probe {
    fn default() -> Self {
        Self::new()
    }
}

impl Probe {
    /// Reads what does not change.
    pub fn new() -> Self {
        let arch = std::env::consts::ARCH;
        let mut cpu = processors(&text("/proc/cpuinfo"), arch);
        cpu.host_type = type_of(arch);
        let memory = value(&text("/proc/meminfo"), "MemTotal").unwrap_or(0) / 1024;
        cpu.topology = topology::of_host(memory);
        Probe {
            cpu,
            boot_id: text("/proc/sys/kernel/random/boot_id").trim().to_owned(),
            memory: KernelFile::new("/proc/meminfo"),
            paging: KernelFile::new("/proc/vmstat"),
            processors: KernelFile::new("/proc/stat"),
            average: KernelFile::new("/proc/loadavg"),
            disks: KernelFile::new("/proc/diskstats"),
            uptime: KernelFile::new("/proc/uptime"),
            pages: None,
            block_devices: Vec::new(),
            hardware: BTreeSet::new(),
        }
    }

    /// One measurement.
    pub fn sample(&mut self) -> LoadSample {
        let mem = self.memory.text();
        let get = |text: &str, name: &str| value(text, name).unwrap_or(0);
        let pages = self.pages_swapped(get(&mem, "SwapTotal") > 0);
        let (cpu_busy, cpu_total) = jiffies(&self.processors.text());
        let diskstats = self.disks.text();
        self.look_for_disks(&diskstats);
        let loadavg = self.average.text();
        let lines = logins();
        let (tmp, max_tmp) = space("/tmp");
        let free = || get(&mem, "MemFree") + get(&mem, "Buffers") + get(&mem, "Cached");
        let mut facts = self.cpu.clone();
        facts.max_mem = get(&mem, "MemTotal") / 1024;
        facts.max_swp = get(&mem, "SwapTotal") / 1024;
        facts.max_tmp = max_tmp;
        facts.ndisks = self.hardware.len() as u32;
        LoadSample {
            run_queue: runnable(&loadavg),
            load_avg: averages(&loadavg),
            cpu_busy,
            cpu_total,
            pages,
            io_kb: disk_kb(&diskstats, &self.hardware),
            logins: lines.iter().map(|l| &l.user).collect::<BTreeSet<_>>().len() as u32,
            idle_minutes: idle_minutes(&lines, &mut self.uptime),
            tmp,
            swp: get(&mem, "SwapFree") / 1024,
            mem: value(&mem, "MemAvailable").unwrap_or_else(free) / 1024,
            facts,
            boot_id: self.boot_id.clone(),
            copies: Vec::new(),
        }
    }

    /// Pages swapped in and out since boot: they grow no further where there is no swap space.
    fn pages_swapped(&mut self, swaps: bool) -> u64 {
        if let Some(pages) = self.pages.filter(|_| !swaps) {
            return pages;
        }
        let text = self.paging.text();
        let get = |name: &str| value(&text, name).unwrap_or(0);
        *self.pages.insert(get("pswpin") + get("pswpout"))
    }

    /// Looks through /sys where the block devices are others than before.
    fn look_for_disks(&mut self, diskstats: &str) {
        let names = || diskstats.lines().filter_map(|line| line.split_whitespace().nth(2));
        if self.hardware.is_empty() || !names().eq(self.block_devices.iter().map(String::as_str)) {
            self.block_devices = names().map(str::to_owned).collect();
            self.hardware = disks();
        }
    }
}

fn bytes(path: &str) -> Vec<u8> {
    use std::io::Read;
    // what the kernel makes up has no length: room for all of it is read at once
    let mut data = Vec::with_capacity(READ_AT_ONCE);
    if let Ok(file) = fs::File::open(path) {
        let _ = file.take(MAX_READ).read_to_end(&mut data);
    }
    data
}

fn text(path: &str) -> String {
    String::from_utf8_lossy(&bytes(path)).into_owned()
}

/// LSF's name of a machine type.
fn type_of(arch: &str) -> String {
    match arch {
        "x86_64" => "X86_64".into(),
        "x86" => "LINUX86".into(),
        "aarch64" => "LINUX_ARM64".into(),
        "powerpc64" => "LINUXPPC64".into(),
        "s390x" => "LINUXS390X".into(),
        other => other.to_ascii_uppercase(),
    }
}

/// Processors, cores of each, threads of each core, and the architecture as lsf.shared's
/// HostModel spells it: `x6_5586_IntelXeonProcessor280GHz`.
fn processors(cpuinfo: &str, arch: &str) -> HostFacts {
    let mut threads = 0u32;
    let mut sockets = BTreeSet::new();
    let mut first: BTreeMap<&str, &str> = BTreeMap::new();
    for line in cpuinfo.lines() {
        let Some((key, value)) = line.split_once(':') else { continue };
        let (key, value) = (key.trim(), value.trim());
        match key {
            "processor" => threads += 1,
            "physical id" => {
                sockets.insert(value);
            }
            _ => {}
        }
        first.entry(key).or_insert(value);
    }
    let threads = threads.max(1);
    let number = |key: &str| first.get(key).and_then(|v| v.parse::<f64>().ok()).map(|v| v as u32);
    let nprocs = (sockets.len() as u32).max(1);
    let each = (threads / nprocs).max(1);
    let ncores = number("cpu cores").filter(|&n| n > 0 && n <= each).unwrap_or(each);
    let name: String = first
        .get("model name")
        .map(|n| n.replace("(R)", "").replace("(TM)", "").replace("(tm)", ""))
        .unwrap_or_default()
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .collect();
    let family = number("cpu family").map_or(arch.to_owned(), |n| format!("x{n}"));
    let speed = number("bogomips").or_else(|| number("BogoMIPS")).unwrap_or(0);
    HostFacts {
        nprocs,
        ncores,
        nthreads: (each / ncores).max(1),
        ncpus: nprocs * ncores,
        model: format!("{family}_{speed}_{name}"),
        ..HostFacts::default()
    }
}

/// Processes runnable now, without the one that asks.
fn runnable(loadavg: &str) -> f64 {
    let field = loadavg.split_whitespace().nth(3).and_then(|f| f.split('/').next());
    let running: u64 = field.and_then(|n| n.parse().ok()).unwrap_or(1);
    running.saturating_sub(1) as f64
}

/// The averages over 1 and 15 minutes.
fn averages(loadavg: &str) -> [f64; 2] {
    let field = |n| loadavg.split_whitespace().nth(n).and_then(|w| w.parse().ok());
    [field(0).unwrap_or(0.0), field(2).unwrap_or(0.0)]
}

/// Busy and all jiffies since boot. Waiting for a disk is idle; guests are counted already.
fn jiffies(stat: &str) -> (u64, u64) {
    let line = stat.lines().find(|l| l.starts_with("cpu ")).unwrap_or_default();
    let n: Vec<u64> =
        line.split_whitespace().skip(1).take(8).map(|w| w.parse().unwrap_or(0)).collect();
    let total = n.iter().fold(0u64, |a, &b| a.saturating_add(b));
    let idle = n.get(3).copied().unwrap_or(0).saturating_add(n.get(4).copied().unwrap_or(0));
    (total.saturating_sub(idle), total)
}

/// The value of a `Name: value kB` or `name value` line.
/// The memory of this host, as `mem` and `swp` measure it.
pub fn host_memory() -> HostMemory {
    let mem = text("/proc/meminfo");
    let get = |name: &str| value(&mem, name).unwrap_or(0);
    let used = |free: u64, all: u64| (all.saturating_sub(free), all);
    let free = get("MemFree") + get("Buffers") + get("Cached");
    HostMemory {
        memory_kb: used(free, get("MemTotal")),
        swap_kb: used(get("SwapFree"), get("SwapTotal")),
    }
}

pub(super) fn value(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix([':', ' ']))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The disks of this host: block devices with hardware behind them.
pub(super) fn disks() -> BTreeSet<String> {
    let Ok(dir) = fs::read_dir("/sys/block") else { return BTreeSet::new() };
    dir.flatten()
        .filter(|e| e.path().join("device").exists())
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect()
}

/// KB read and written since boot by these disks.
pub(super) fn disk_kb(diskstats: &str, disks: &BTreeSet<String>) -> u64 {
    let mut sectors = 0u64;
    for line in diskstats.lines() {
        let f: Vec<&str> = line.split_whitespace().collect();
        if f.get(2).is_some_and(|name| disks.contains(*name)) {
            for at in [5, 9] {
                let n = f.get(at).and_then(|w| w.parse::<u64>().ok()).unwrap_or(0);
                sectors = sectors.saturating_add(n);
            }
        }
    }
    sectors.saturating_mul(SECTOR) / 1024
}

/// A user on a terminal.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Login {
    user: Vec<u8>,
    line: Vec<u8>,
}

pub(super) fn logins() -> Vec<Login> {
    let found = ["/run/utmp", "/var/run/utmp"].map(bytes).into_iter().find(|d| !d.is_empty());
    utmp(&found.unwrap_or_default())
}

fn utmp(data: &[u8]) -> Vec<Login> {
    let field = |record: &[u8], from: usize, len: usize| -> Vec<u8> {
        record[from..from + len].iter().copied().take_while(|&b| b != 0).collect()
    };
    data.chunks_exact(UTMP_RECORD)
        .filter(|r| i16::from_ne_bytes([r[0], r[1]]) == USER_PROCESS)
        .map(|r| Login { line: field(r, 8, 32), user: field(r, 44, 32) })
        .filter(|l| !l.user.is_empty())
        .collect()
}

/// Minutes since the last key was typed; since boot if there is no terminal.
pub(super) fn idle_minutes(lines: &[Login], uptime: &mut KernelFile) -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs() as i64);
    let mut terminals: Vec<PathBuf> = lines
        .iter()
        .map(|l| Path::new("/dev").join(std::ffi::OsStr::from_bytes(&l.line)))
        .collect();
    if let Ok(dir) = fs::read_dir("/dev/pts") {
        let numbered = |p: &Path| p.file_name().is_some_and(|n| n != "ptmx");
        terminals.extend(dir.flatten().map(|e| e.path()).filter(|p| numbered(p)));
    }
    let touched = terminals.iter().filter_map(|p| fs::metadata(p).ok()).map(|m| m.atime()).max();
    let idle = match touched {
        Some(at) => now.saturating_sub(at).max(0) as f64,
        None => uptime.text().split_whitespace().next().and_then(|w| w.parse().ok()).unwrap_or(0.0),
    };
    idle / 60.0
}

/// MB free for users, and in all.
fn space(path: &str) -> (u64, u64) {
    match rustix::fs::statvfs(path) {
        Ok(s) => {
            let mb = |blocks: u64| ((u128::from(blocks) * u128::from(s.f_frsize)) >> 20) as u64;
            (mb(s.f_bavail), mb(s.f_blocks))
        }
        Err(_) => (0, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPU: &str = "processor\t: 0\nphysical id\t: 0\ncpu cores\t: 2\ncpu family\t: 6\n\
        model name\t: Intel(R) Xeon(R) CPU E5 @ 2.80GHz\nbogomips\t: 5586.87\n";

    #[test]
    fn cpuinfo_gives_processors_cores_and_threads() {
        let cpus: String = (0..8)
            .map(|i| {
                CPU.replace("processor\t: 0", &format!("processor\t: {i}"))
                    .replace("physical id\t: 0", &format!("physical id\t: {}", i % 2))
            })
            .collect();
        let f = processors(&cpus, "x86_64");
        assert_eq!((f.nprocs, f.ncores, f.nthreads, f.ncpus), (2, 2, 2, 4));
        assert_eq!(f.model, "x6_5586_IntelXeonCPUE5280GHz");
        let f = processors("processor : 0\nBogoMIPS : 50.00\n\nprocessor : 1\n", "aarch64");
        assert_eq!((f.nprocs, f.ncores, f.nthreads, f.ncpus), (1, 2, 1, 2));
        assert_eq!(f.model, "aarch64_50_");
        assert_eq!(processors("", "x").ncpus, 1);
    }

    #[test]
    fn counters_of_proc_are_read() {
        assert_eq!(runnable("3.44 3.01 1.81 3/96 24108\n"), 2.0);
        assert_eq!(runnable(""), 0.0);
        assert_eq!(averages("3.44 3.01 1.81 3/96 24108\n"), [3.44, 1.81]);
        assert_eq!(jiffies("cpu  10 1 5 100 20 2 3 4 7 7\ncpu0 1 1 1 1\n"), (25, 145));
        let mem = "MemTotal:       24684092 kB\nHugePages_Total:       0\npswpin_x 1\npswpin 7\n";
        assert_eq!((value(mem, "MemTotal"), value(mem, "pswpin")), (Some(24684092), Some(7)));
        assert_eq!((value(mem, "Mem"), value(mem, "HugePages_Total")), (None, Some(0)));
        let stats = " 254 0 vda 1 0 10 0 1 0 30 0 0 0\n 254 1 vda1 1 0 10 0 1 0 30 0 0 0\n";
        assert_eq!(disk_kb(stats, &BTreeSet::from(["vda".to_owned()])), 20);
    }

    #[test]
    fn utmp_gives_the_users_logged_in() {
        let mut data = vec![0u8; 3 * UTMP_RECORD + 5];
        for (i, (kind, user)) in [(7i16, "ann"), (8, "gone"), (7, "bob")].iter().enumerate() {
            let r = &mut data[i * UTMP_RECORD..];
            r[..2].copy_from_slice(&kind.to_ne_bytes());
            r[8..13].copy_from_slice(b"pts/0");
            r[44..44 + user.len()].copy_from_slice(user.as_bytes());
        }
        let got = utmp(&data);
        assert_eq!(got.len(), 2);
        assert_eq!((got[1].user.as_slice(), got[1].line.as_slice()), (&b"bob"[..], &b"pts/0"[..]));
    }

    #[test]
    fn file_that_is_kept_open_is_read_from_its_beginning_each_time() {
        let path = std::env::temp_dir().join(format!("lsf-load-{}", std::process::id()));
        let shown: &'static str = Box::leak(path.to_str().unwrap().to_owned().into_boxed_str());
        let mut file = KernelFile::new(shown);
        // longer than what is read at once, and shorter again
        for length in [3 * READ_AT_ONCE, 10] {
            let text = "x".repeat(length);
            fs::write(&path, &text).unwrap();
            assert_eq!(file.text(), text);
            assert_eq!(file.text(), text, "from where the last reading ended");
        }
        fs::remove_file(&path).unwrap();
        assert_eq!(KernelFile::new("/proc/absent").text(), "");
    }

    #[test]
    fn disks_are_looked_for_again_when_a_block_device_comes() {
        let mut probe = Probe::new();
        probe.sample();
        let (names, hardware) = (probe.block_devices.clone(), probe.hardware.clone());
        probe.hardware = BTreeSet::from(["kept".to_owned()]);
        probe.sample();
        assert_eq!(probe.hardware, BTreeSet::from(["kept".to_owned()]), "{names:?}");
        probe.block_devices.push("gone".to_owned());
        probe.sample();
        assert_eq!((probe.block_devices, probe.hardware), (names, hardware));
    }

    #[test]
    fn this_host_can_be_measured() {
        let s = Probe::new().sample();
        assert!(s.facts.ncpus >= 1 && s.facts.max_mem > 0 && s.mem <= s.facts.max_mem);
        assert!(s.cpu_total >= s.cpu_busy && s.cpu_total > 0);
        assert!(s.facts.max_tmp >= s.tmp);
    }
}
