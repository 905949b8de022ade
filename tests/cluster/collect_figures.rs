//! The figures of ccollect beside those that /proc and vmstat count right before and right after.

use crate::rig::skipped;
use lsf::conf::nlb_map::NameMaps;
use lsf::nlb::{Surroundings, object_text};
use lsf::proto::collect::Counters;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Counts of the kernel so far.
#[derive(Clone, Copy, Debug)]
struct Counted {
    switches: u64,
    swapped_kb: u64,
    disk_kb: u64,
    disk_requests: u64,
    idle: u64,
    system: u64,
    ticks: u64,
}

impl Counted {
    fn all(&self) -> [u64; 7] {
        let c = self;
        [c.switches, c.swapped_kb, c.disk_kb, c.disk_requests, c.idle, c.system, c.ticks]
    }
}

/// Requests and KB of whole disks, by lines that have the name, and the four counters at `at`.
fn disks(text: &str, name: usize, at: [usize; 4]) -> (u64, u64) {
    let lines = text.lines().map(|l| l.split_whitespace().collect::<Vec<_>>());
    let whole = |n: &str| Path::new("/sys/block").join(n).join("device").exists();
    let lines = lines.filter(|words| words.len() > at[3] && whole(words[name]));
    let (mut requests, mut sectors) = (0, 0);
    for words in lines {
        let of = |n: usize| words[n].parse().unwrap_or(0u64);
        requests += of(at[0]) + of(at[2]);
        sectors += of(at[1]) + of(at[3]);
    }
    (requests, sectors / 2)
}

fn of_proc() -> Counted {
    let read = |path: &str| std::fs::read_to_string(path).unwrap();
    let (stat, paging) = (read("/proc/stat"), read("/proc/vmstat"));
    let number = |text: &str, name: &str| -> u64 {
        let line = text.lines().find(|l| l.split(' ').next() == Some(name));
        line.map_or(0, |l| l.split(' ').nth(1).unwrap().parse().unwrap())
    };
    let cpu = stat.lines().next().unwrap().split_whitespace().skip(1);
    let cpu: Vec<u64> = cpu.map(|n| n.parse().unwrap()).collect();
    let page = rustix::param::page_size() as u64 / 1024;
    let (disk_requests, disk_kb) = disks(&read("/proc/diskstats"), 2, [3, 5, 7, 9]);
    Counted {
        switches: number(&stat, "ctxt"),
        swapped_kb: (number(&paging, "pswpin") + number(&paging, "pswpout")) * page,
        disk_kb,
        disk_requests,
        idle: cpu[3] + cpu[4],
        system: cpu[2] + cpu[5] + cpu[6],
        ticks: cpu[..8].iter().sum(),
    }
}

fn of_vmstat() -> Option<Counted> {
    let run = |option: &str| {
        let out = Command::new("vmstat").arg(option).env("LC_ALL", "C").output().ok()?;
        out.status.success().then(|| String::from_utf8_lossy(&out.stdout).into_owned())
    };
    let (all, of_disks) = (run("-s")?, run("-d")?);
    let number = |what: &str| -> u64 {
        let line = all.lines().find(|l| {
            l.trim_start().trim_start_matches(|c: char| c.is_ascii_digit()).trim() == what
        });
        line.and_then(|l| l.split_whitespace().next()?.parse().ok()).unwrap_or_default()
    };
    let sum = |names: &[&str]| names.iter().map(|name| number(name)).sum::<u64>();
    let page = rustix::param::page_size() as u64 / 1024;
    let idle = sum(&["idle cpu ticks", "IO-wait cpu ticks"]);
    let system = sum(&["system cpu ticks", "IRQ cpu ticks", "softirq cpu ticks"]);
    let rest = sum(&["non-nice user cpu ticks", "nice user cpu ticks", "stolen cpu ticks"]);
    let (disk_requests, disk_kb) = disks(&of_disks, 0, [1, 3, 5, 7]);
    Some(Counted {
        switches: number("CPU context switches"),
        swapped_kb: sum(&["pages swapped in", "pages swapped out"]) * page,
        disk_kb,
        disk_requests,
        idle,
        system,
        ticks: idle + system + rest,
    })
}

/// Counts of the kernel by one tool, where it is there.
type Tool = fn() -> Option<Counted>;

/// A reading of the collector, and what a tool had counted before and after it.
struct Moment {
    before: Counted,
    read: Counters,
    after: Counted,
}

fn moment(tool: impl Fn() -> Counted) -> Moment {
    let before = tool();
    let read = lsf::sys::collect::counters("/tmp");
    Moment { before, read, after: tool() }
}

/// The numbers that the collector makes of two readings lie between those that the least and the
/// most make which the tool can have counted between them, rounded as they are.
fn compare(name: &str, [old, new]: [&Moment; 2]) {
    let around = Surroundings::default();
    let readings = [&old.read, &new.read];
    let maps = NameMaps::shipped();
    let (text, faults) = object_text("h", readings, &around, Vec::new(), &maps, |_| false);
    assert_eq!(faults, Vec::<String>::new());
    let shown = |attribute: &str| -> f64 {
        let line = text.lines().find_map(|l| l.trim().strip_prefix(attribute)?.strip_prefix(" = "));
        let line = line.unwrap_or_else(|| panic!("{attribute}: {text}"));
        line.trim_end_matches(';').parse().unwrap()
    };
    let pairs = |a: &Counted, b: &Counted| -> Vec<f64> {
        let both = a.all().into_iter().zip(b.all());
        both.map(|(a, b)| b.saturating_sub(a) as f64).collect()
    };
    let (least, most) = (pairs(&old.after, &new.before), pairs(&old.before, &new.after));
    let secs = (new.read.at - old.read.at) as f64 / 1e6;
    for (at, attribute, rounded) in [
        (0, "NLB_PSWCH", 0.5),
        (1, "NLB_SWAPPING", 1e-6),
        (2, "NLB_IOTOTAL", 0.5),
        (3, "NLB_IOREQS", 0.5),
    ] {
        let (low, high, is) = (least[at] / secs, most[at] / secs, shown(attribute));
        let range = low - rounded..=high + rounded;
        assert!(range.contains(&is), "{name}, {attribute}: {is} is not of {range:?}");
    }
    // a processor's ticks are not all counted in the same instant
    let skew = 2.0 * shown("NLB_NCPUS");
    for (at, attribute) in [(4, "NLB_IDLECPU"), (5, "NLB_SYSCPU")] {
        let low = 100.0 * (least[at] - skew).max(0.0) / (most[6] + skew);
        let high = 100.0 * (most[at] + skew) / (least[6] - skew);
        let is = shown(attribute);
        assert!(low <= is && is <= high, "{name}, {attribute}: {low} {is} {high}");
    }
}

#[test]
fn figures_of_a_collector_are_those_of_proc_and_vmstat_within_rounding() {
    let tools: [(&str, Tool); 2] = [("proc", || Some(of_proc())), ("vmstat", of_vmstat)];
    let file = std::env::temp_dir().join(format!("lsf-figures-{}", std::process::id()));
    for (name, tool) in tools {
        if tool().is_none() {
            skipped("figures_of_a_collector_are_those_of_proc_and_vmstat: vmstat is wanted");
            continue;
        }
        let tool = || tool().unwrap();
        let mut old = moment(tool);
        for turn in 0..3 {
            // something to measure
            let mut disk = std::fs::File::create(&file).unwrap();
            disk.write_all(&vec![turn; 4 << 20]).unwrap();
            disk.sync_all().unwrap();
            std::thread::sleep(Duration::from_secs(1));
            let new = moment(tool);
            compare(name, [&old, &new]);
            assert!(new.after.disk_kb >= old.before.disk_kb, "{name}");
            old = new;
        }
    }
    let _ = std::fs::remove_file(&file);
}
