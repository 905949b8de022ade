//! Control groups of the kernel as the way to know the processes of a task: a process is born into
//! the group of its parent, and an ordinary user cannot move it elsewhere.
//!
//! The group of a task is a directory below one that the launcher makes within its own group. It
//! is of version 2 where that is mounted, with or without controllers, otherwise of the freezer of
//! version 1. Nothing is assumed about either: a file that is not there or cannot be written is an
//! error, and the caller falls back.

use super::files::read_text;
use crate::model::limits::GroupMemory;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Largest file that is read here, bytes: the process IDs of a group.
const READ_MAX: u64 = 16 << 20;

/// The kind of a hierarchy of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// One hierarchy for everything; a process can begin in a group.
    Two,
    /// The freezer of version 1; a process is moved into a group.
    Freezer,
    /// The memory controller of version 1, which holds limits and finds no processes.
    Memory,
}

/// The mounted hierarchies in which this process has a group, version 2 first.
pub fn own_groups() -> Vec<(Version, PathBuf)> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let mut found = groups_in(&read("/proc/self/mountinfo"), &read("/proc/self/cgroup"));
    found.sort_by_key(|(version, _)| *version != Version::Two);
    found
}

fn groups_in(mounts: &str, groups: &str) -> Vec<(Version, PathBuf)> {
    let mut found = Vec::new();
    for line in mounts.lines() {
        let Some((left, right)) = line.split_once(" - ") else { continue };
        let left: Vec<&str> = left.split(' ').collect();
        let right: Vec<&str> = right.split(' ').collect();
        let (Some(root), Some(point)) = (left.get(3), left.get(4)) else { continue };
        let has = |name: &str| right.get(2).is_some_and(|o| o.split(',').any(|o| o == name));
        let version = match right.first() {
            Some(&"cgroup2") => Version::Two,
            Some(&"cgroup") if has("freezer") => Version::Freezer,
            Some(&"cgroup") if has("memory") => Version::Memory,
            _ => continue,
        };
        let Some(own) = own_path(groups, version) else { continue };
        // a group outside of the mounted part cannot be reached
        let Some(below) = own.strip_prefix(root.trim_end_matches('/')) else { continue };
        if !(below.is_empty() || below.starts_with('/')) || below.contains("/..") {
            continue;
        }
        found.push((version, Path::new(point).join(below.trim_start_matches('/'))));
    }
    found
}

/// The path of a process's group, from its /proc/PID/cgroup.
fn own_path(groups: &str, version: Version) -> Option<&str> {
    groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let is = match version {
            Version::Two => number == "0" && controllers.is_empty(),
            Version::Freezer => controllers.split(',').any(|c| c == "freezer"),
            Version::Memory => controllers.split(',').any(|c| c == "memory"),
        };
        is.then_some(path)
    })
}

/// Makes the directory of a group, unless it is there.
pub fn make(dir: &Path) -> io::Result<()> {
    match fs::create_dir(dir) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// Removes a group without processes.
pub fn remove(dir: &Path) -> io::Result<()> {
    fs::remove_dir(dir)
}

/// The groups below one.
pub fn below(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter(|e| e.file_type().is_ok_and(|t| t.is_dir())).map(|e| e.path()).collect()
}

/// The process IDs in a group.
pub fn processes(dir: &Path) -> io::Result<Vec<u32>> {
    let text = read(&dir.join("cgroup.procs"))?;
    Ok(text.lines().filter_map(|line| line.parse().ok()).filter(|pid| *pid != 0).collect())
}

/// Whether the process of this number is in the group.
pub fn holds(dir: &Path, pid: u32) -> bool {
    names(&groups_of(pid), dir)
}

/// The /proc/PID/cgroup of a process, for [`names`]; empty: it is gone.
pub fn groups_of(pid: u32) -> String {
    read(Path::new(&format!("/proc/{pid}/cgroup"))).unwrap_or_default()
}

/// Whether a process with this /proc/PID/cgroup is in the group. The directory is known by its
/// last two names; its mount may be another one's.
pub fn names(groups: &str, dir: &Path) -> bool {
    let mut wanted = dir.iter().rev();
    let (Some(last), Some(parent)) = (wanted.next(), wanted.next()) else { return false };
    groups.lines().filter_map(|line| line.splitn(3, ':').nth(2)).any(|path| {
        let mut names = Path::new(path).iter().rev();
        names.next() == Some(last) && names.next() == Some(parent)
    })
}

/// Moves a process into a group.
pub fn enter(dir: &Path, pid: u32) -> io::Result<()> {
    write(&dir.join("cgroup.procs"), pid.to_string().as_bytes())
}

/// Kills all processes of a group at once, those that are being made included. An error where the
/// kernel cannot: version 1, and kernels before 5.14.
pub fn kill(dir: &Path) -> io::Result<()> {
    write(&dir.join("cgroup.kill"), b"1")
}

/// User and system time of all processes that have ever been in the group, microseconds. Only of
/// version 2.
pub fn cpu_time(dir: &Path) -> Option<(u64, u64)> {
    let text = read(&dir.join("cpu.stat")).ok()?;
    let value = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        lines.find(|(n, _)| *n == name)?.1.trim().parse().ok()
    };
    Some((value("user_usec")?, value("system_usec")?))
}

/// Has the groups below this one of version 2 limit the memory of their processes.
pub fn pass_memory_on(dir: &Path) -> io::Result<()> {
    write(&dir.join("cgroup.subtree_control"), b"+memory")
}

/// Limits the memory of all processes of a group together, and the swap space beside it. Beyond
/// it the kernel kills processes of the group.
pub fn limit_memory(dir: &Path, version: Version, limit: GroupMemory) -> io::Result<()> {
    let bytes = |kb: u64| kb.saturating_mul(1024).min(i64::MAX as u64).to_string();
    let put = |name: &str, kb: u64| write(&dir.join(name), bytes(kb).as_bytes());
    let memory = limit.memory_kb;
    if version == Version::Two {
        // with one process of a job all are killed, where the kernel can
        let _ = write(&dir.join("memory.oom.group"), b"1");
        put("memory.max", memory)?;
        return limit.swap_kb.map_or(Ok(()), |swap| put("memory.swap.max", swap));
    }
    put("memory.limit_in_bytes", memory)?;
    let both = limit.swap_kb.map(|swap| memory.saturating_add(swap));
    both.map_or(Ok(()), |both| put("memory.memsw.limit_in_bytes", both))
}

/// Whether the kernel has killed a process of the group at its memory limit.
pub fn out_of_memory(dir: &Path) -> bool {
    let killed = |text: String| {
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        lines.any(|(name, count)| name == "oom_kill" && count.trim() != "0")
    };
    ["memory.events", "memory.oom_control"]
        .iter()
        .any(|name| read(&dir.join(name)).is_ok_and(killed))
}

fn read(path: &Path) -> io::Result<String> {
    read_text(path, READ_MAX)
}

fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    File::options().write(true).open(path)?.write_all(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_group_is_found_below_each_mount() {
        let mounts = "\
25 1 0:22 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
30 25 0:27 / /sys/fs/cgroup/freezer rw,relatime shared:9 - cgroup cgroup rw,freezer
31 25 0:28 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
35 25 0:30 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";
        let groups = "8:freezer:/a\n4:memory:/m\n0::/s/x.service\n";
        let path = PathBuf::from;
        let freezer = (Version::Freezer, path("/sys/fs/cgroup/freezer/a"));
        let two = (Version::Two, path("/sys/fs/cgroup/unified/s/x.service"));
        let memory = (Version::Memory, path("/sys/fs/cgroup/memory/m"));
        assert_eq!(groups_in(mounts, groups), [freezer.clone(), memory, two]);
        // without version 2; a group of a container, mounted as its root
        let old = mounts.lines().take(3).collect::<Vec<_>>().join("\n");
        assert_eq!(groups_in(&old.replace("memory", "cpu"), groups), [freezer]);
        let inside = "30 25 0:27 /docker/1 /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        let two = |dir| vec![(Version::Two, path(dir))];
        assert_eq!(groups_in(inside, "0::/docker/1/b\n"), two("/sys/fs/cgroup/b"));
        assert_eq!(groups_in(inside, "0::/docker/1\n"), two("/sys/fs/cgroup/"));
        for outside in ["0::/docker/12\n", "0::/\n", "0::/docker/1/../2\n"] {
            assert_eq!(groups_in(inside, outside), [], "{outside}");
        }
    }

    #[test]
    fn process_is_in_the_group_that_its_own_file_names() {
        let groups = "8:freezer:/\n4:memory:/lsf-a/70\n0::/s/lsf-a/7\n";
        for (dir, is) in
            [("lsf-a/7", true), ("lsf-a/70", true), ("lsf-a/71", false), ("lsf-b/7", false)]
        {
            assert_eq!(names(groups, &Path::new("/anywhere").join(dir)), is, "{dir}");
        }
        assert!(!names("0::/7\n", Path::new("/anywhere/lsf-a/7")));
        assert!(!holds(Path::new("/anywhere/lsf-a/7"), u32::MAX));
    }
}
