//! The readings of the load balancer's collector. A value that cannot be read is missing, never 0:
//! a policy must not choose a host by a value that nobody has measured.

use super::load::{KernelFile, disk_kb, disks, idle_minutes, logins, value};
use crate::proto::collect::{Counters, CpuTime};
use std::collections::BTreeSet;

/// The file in which the highest frequency of a processor stands, in kHz.
const FREQUENCY: &str = "/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq";

/// The texts of the kernel that one reading is made of; empty: not there.
#[derive(Debug, Default)]
struct Texts {
    stat: String,
    memory: String,
    paging: String,
    pressure: String,
    disks: String,
    frequency: String,
    processors: String,
}

/// Counts the numbers in /proc.
fn processes() -> Option<u64> {
    let names = std::fs::read_dir("/proc").ok()?.flatten().map(|e| e.file_name());
    let numbers = names.filter(|n| n.as_encoded_bytes().iter().all(u8::is_ascii_digit));
    Some(numbers.count() as u64)
}

/// MB free for users in the file system of `path`.
fn free_mb(path: &str) -> Option<u64> {
    let s = rustix::fs::statvfs(path).ok()?;
    Some(((u128::from(s.f_bavail) * u128::from(s.f_frsize)) >> 20) as u64)
}

/// One reading; `tmp` is the directory of users' temporary files.
pub fn counters(tmp: &str) -> Counters {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let texts = Texts {
        stat: read("/proc/stat"),
        memory: read("/proc/meminfo"),
        paging: read("/proc/vmstat"),
        pressure: read("/proc/pressure/cpu"),
        disks: read("/proc/diskstats"),
        frequency: read(FREQUENCY),
        processors: read("/proc/cpuinfo"),
    };
    let at = super::now().mono_us;
    let system = rustix::system::uname();
    let parts = [system.sysname(), system.release(), system.version(), system.machine()];
    Counters {
        at,
        names: parts.map(|part| part.to_string_lossy().into_owned()),
        processes: processes(),
        tmp_mb: free_mb(tmp),
        idle_minutes: Some(idle_minutes(&logins(), &mut KernelFile::new("/proc/uptime"))),
        ..of_texts(&texts, &disks(), rustix::param::page_size() as u64)
    }
}

/// Processes that can run now without the one that asks, and processors.
pub fn glance() -> (u64, u64) {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    (runnable(&stat).unwrap_or(0), processors(&stat).unwrap_or(1))
}

fn runnable(stat: &str) -> Option<u64> {
    value(stat, "procs_running").map(|n| n.saturating_sub(1))
}

/// The processors that are online: those that have a line of their own.
fn processors(stat: &str) -> Option<u64> {
    let own = |l: &&str| l.strip_prefix("cpu").is_some_and(|l| l.starts_with(|c: char| c != ' '));
    Some(stat.lines().filter(own).count() as u64).filter(|n| *n > 0)
}

fn of_texts(texts: &Texts, disks: &BTreeSet<String>, page: u64) -> Counters {
    let swapped = value(&texts.paging, "pswpin").zip(value(&texts.paging, "pswpout"));
    let memory = |name: &str| value(&texts.memory, name);
    Counters {
        cpu: cpu_time(&texts.stat),
        runnable: runnable(&texts.stat),
        waited_us: waited(&texts.pressure),
        swapped_kb: swapped.map(|(i, o)| (i.saturating_add(o)).saturating_mul(page) / 1024),
        memory_kb: memory("MemTotal"),
        free_memory_kb: memory("MemAvailable"),
        swap_kb: memory("SwapTotal"),
        free_swap_kb: memory("SwapFree"),
        clock_hz: clock(&texts.frequency, &texts.processors),
        cpus: processors(&texts.stat),
        switches: value(&texts.stat, "ctxt"),
        disk_kb: (!texts.disks.is_empty()).then(|| disk_kb(&texts.disks, disks)),
        disk_requests: (!texts.disks.is_empty()).then(|| requests(&texts.disks, disks)),
        ..Counters::default()
    }
}

/// Guests' time is in that of users already.
fn cpu_time(stat: &str) -> Option<CpuTime> {
    let line = stat.lines().find_map(|l| l.strip_prefix("cpu "))?;
    let ticks = line.split_whitespace().take(8).map(|w| w.parse::<u64>());
    let ticks = ticks.collect::<Result<Vec<u64>, _>>().ok()?;
    let of = |fields: &[usize]| fields.iter().filter_map(|at| ticks.get(*at)).sum::<u64>();
    let total = ticks.iter().sum();
    ticks.get(3)?;
    Some(CpuTime { idle: of(&[3, 4]), system: of(&[2, 5, 6]), total })
}

/// `some ... total=N`, microseconds.
fn waited(pressure: &str) -> Option<u64> {
    let line = pressure.lines().find(|l| l.starts_with("some "))?;
    line.split_whitespace().find_map(|w| w.strip_prefix("total="))?.parse().ok()
}

/// Hz, by the highest frequency, else by that of the first processor now.
fn clock(highest_khz: &str, cpuinfo: &str) -> Option<f64> {
    let highest = highest_khz.trim().parse::<f64>().ok().map(|khz| khz * 1e3);
    let now = || {
        let mut lines = cpuinfo.lines().filter_map(|l| l.split_once(':'));
        let (_, mhz) = lines.find(|(name, _)| name.trim() == "cpu MHz")?;
        mhz.trim().parse::<f64>().ok().map(|mhz| mhz * 1e6)
    };
    highest.or_else(now).filter(|hz| *hz >= 1.0)
}

/// Reads and writes of whole disks that are complete.
fn requests(diskstats: &str, disks: &BTreeSet<String>) -> u64 {
    let mut count = 0u64;
    for line in diskstats.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        if fields.get(2).is_some_and(|name| disks.contains(*name)) {
            for at in [3, 7] {
                let n = fields.get(at).and_then(|w| w.parse::<u64>().ok()).unwrap_or(0);
                count = count.saturating_add(n);
            }
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_the_kernel_give_counters_and_what_is_absent_is_missing() {
        let texts = Texts {
            stat: "cpu  10 1 5 100 20 2 3 4 7 7\ncpu0 1 1 1 1\ncpu1 1 1 1 1\nctxt 77\n\
                   procs_running 4\n"
                .into(),
            memory: "MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable: 600 kB\nSwapTotal: 50 kB\n\
                     SwapFree: 40 kB\n"
                .into(),
            paging: "pswpin 3\npswpout 4\n".into(),
            pressure: "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234\nfull avg10=0 total=9\n"
                .into(),
            disks: " 254 0 vda 5 0 10 0 6 0 30 0 0 0\n 254 1 vda1 1 0 10 0 1 0 30 0 0 0\n".into(),
            frequency: "2500000\n".into(),
            processors: "cpu MHz : 2000.5\n".into(),
        };
        let disks = BTreeSet::from(["vda".to_owned()]);
        let wanted = Counters {
            cpu: Some(CpuTime { idle: 120, system: 10, total: 145 }),
            runnable: Some(3),
            waited_us: Some(1234),
            swapped_kb: Some(28),
            memory_kb: Some(1000),
            free_memory_kb: Some(600),
            swap_kb: Some(50),
            free_swap_kb: Some(40),
            clock_hz: Some(2.5e9),
            cpus: Some(2),
            switches: Some(77),
            disk_kb: Some(20),
            disk_requests: Some(11),
            ..Counters::default()
        };
        assert_eq!(of_texts(&texts, &disks, 4096), wanted);
        assert_eq!(of_texts(&Texts::default(), &disks, 4096), Counters::default());
        assert_eq!(clock("", "cpu MHz\t\t: 2000.5\n"), Some(2000.5e6));
        assert_eq!(clock("", "model name : x\n"), None);
        assert_eq!(cpu_time("cpu  1 x 3 4\n"), None);
    }

    /// Beside the same files, read here by other means.
    #[test]
    fn counters_are_those_of_the_files_of_the_same_moment() {
        let field = |file: &str, name: &str| -> u64 {
            let text = std::fs::read_to_string(file).unwrap();
            let line = text.lines().find(|l| l.split([' ', ':']).next() == Some(name));
            line.unwrap().split_whitespace().nth(1).unwrap().parse().unwrap()
        };
        let before = [field("/proc/stat", "ctxt"), field("/proc/vmstat", "pswpout")];
        let read = counters("/tmp");
        let after = [field("/proc/stat", "ctxt"), field("/proc/vmstat", "pswpout")];
        let switches = read.switches.unwrap();
        assert!(before[0] <= switches && switches <= after[0], "{before:?} {switches} {after:?}");
        assert_eq!(read.memory_kb, Some(field("/proc/meminfo", "MemTotal")));
        let near = |a: u64, b: u64| a.abs_diff(b) <= b / 20 + 64;
        let free = field("/proc/meminfo", "MemAvailable");
        assert!(near(read.free_memory_kb.unwrap(), free), "{read:?} {free}");
        assert!(read.swapped_kb.unwrap() >= 4 * before[1]);
        assert_eq!(read.cpus.unwrap(), std::thread::available_parallelism().unwrap().get() as u64);
        assert_eq!(read.names[0], "Linux");
        assert!(read.processes.unwrap() > 0 && read.tmp_mb.is_some());
        assert_eq!(counters("/nosuch").tmp_mb, None);
    }
}
