//! Processes known by pid and start time, so that a reused pid is never taken for them.

use rustix::process::{Pid, PidfdFlags, Signal};
use std::fs;
use std::io::{self, Read};

/// A process: the pid, and its start in clock ticks since boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Proc {
    pub pid: u32,
    pub ticks: u64,
}

/// The contents of /proc/PID/stat.
struct Stat {
    state: char,
    parent: u32,
    session: u32,
    ticks: u64,
}

/// Longest line of /proc/PID/stat, bytes.
const STAT_MAX: usize = 2048;
/// Longest environment that is searched for a variable, bytes.
const ENVIRONMENT_MAX: usize = 4 << 20;
/// Most readings of an environment that is empty.
const READINGS_MAX: usize = 4;

fn stat(pid: u32) -> Option<Stat> {
    let mut line = [0u8; STAT_MAX];
    // the kernel makes it whole at the first reading
    let len = fs::File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut line).ok()?;
    parse_stat(&line[..len])
}

/// The name in parentheses may hold anything: the fields begin after the last one.
fn parse_stat(line: &[u8]) -> Option<Stat> {
    let end = line.iter().rposition(|&b| b == b')')?;
    let rest = std::str::from_utf8(&line[end + 1..]).ok()?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    Some(Stat {
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        ticks: fields.get(19)?.parse().ok()?,
    })
}

impl Proc {
    /// The living process of this pid.
    pub fn of(pid: u32) -> Option<Proc> {
        let s = stat(pid)?;
        (!matches!(s.state, 'Z' | 'X')).then_some(Proc { pid, ticks: s.ticks })
    }

    /// A child just made. A child that has ended has no start time any more, and no other process
    /// gets its pid before it is reaped.
    pub fn child(pid: u32) -> Proc {
        Proc::of(pid).unwrap_or(Proc { pid, ticks: 1 })
    }

    /// Is it still there (a zombie is not)?
    pub fn alive(self) -> bool {
        Proc::of(self.pid) == Some(self)
    }

    /// Sends a signal to this very process; false where it is gone.
    pub fn signal(self, signal: Signal) -> io::Result<bool> {
        let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) else {
            return Ok(false);
        };
        // The descriptor holds the identity between the look and the signal; without pidfd
        // (old kernels) the look alone must do.
        let fd = rustix::process::pidfd_open(pid, PidfdFlags::empty());
        if !self.alive() {
            return Ok(false);
        }
        let sent = match fd {
            Ok(fd) => rustix::process::pidfd_send_signal(fd, signal),
            Err(_) => rustix::process::kill_process(pid, signal),
        };
        match sent {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::SRCH) => Ok(false),
            Err(e) => Err(e.into()),
        }
    }

    /// A variable of the environment it was started with (of processes of our own uid).
    pub fn variable(self, name: &str) -> Option<Vec<u8>> {
        let text = environment(self.pid)?;
        let own =
            |w: &&[u8]| w.strip_prefix(name.as_bytes()).is_some_and(|r| r.first() == Some(&b'='));
        text.split(|&b| b == 0).find(own).map(|w| w[name.len() + 1..].to_vec())
    }

    /// The name it was called by: the last part of its first word.
    pub fn name(self) -> String {
        let words = fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        let first = words.split(|&b| b == 0).next().unwrap_or_default();
        let last = first.rsplit(|&b| b == b'/').next().unwrap_or_default();
        String::from_utf8_lossy(last).into_owned()
    }
}

/// The environment that a process began with: `NAME=value`, each with a NUL behind it; empty where
/// it cannot be read. `None`: it is beginning a program, and has neither an environment nor
/// arguments until it has.
pub fn environment(pid: u32) -> Option<Vec<u8>> {
    // at once: of a later part nothing is left where the process has begun another program
    let mut text = vec![0; ENVIRONMENT_MAX];
    let mut read = |name: &str| {
        let file = fs::File::open(format!("/proc/{pid}/{name}"));
        let len = file.and_then(|mut file| file.read(&mut text)).unwrap_or(0);
        text[..len].to_vec()
    };
    for _ in 0..READINGS_MAX {
        let environment = read("environ");
        if !environment.is_empty() {
            return Some(environment);
        }
        if read("cmdline").is_empty() {
            return None;
        }
        // it has none, or began its program between the two readings
    }
    Some(Vec::new())
}

/// The living children of a process, sorted by pid.
pub fn children(pid: u32) -> Vec<Proc> {
    living(|s| s.parent == pid)
}

/// The living children of a process, and the members of the session that it leads (they may have
/// lost their parent).
pub fn below(pid: u32) -> Vec<Proc> {
    living(|s| s.parent == pid || s.session == pid)
}

/// Every living process, sorted by pid.
pub fn all() -> Vec<Proc> {
    living(|_| true)
}

fn living(wanted: impl Fn(&Stat) -> bool) -> Vec<Proc> {
    let Ok(dir) = fs::read_dir("/proc") else { return Vec::new() };
    let mut found: Vec<Proc> = dir
        .flatten()
        .filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok())
        .filter_map(|p| stat(p).map(|s| (p, s)))
        .filter(|(_, s)| !matches!(s.state, 'Z' | 'X') && wanted(s))
        .map(|(p, s)| Proc { pid: p, ticks: s.ticks })
        .collect();
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_blanks_and_parentheses() {
        let mut line = String::from("42 (a) b) (c) S 7");
        for n in 3..=50 {
            line.push_str(&format!(" {n}"));
        }
        let s = parse_stat(line.as_bytes()).unwrap();
        // field 22 of the file is the 20th after the name
        assert_eq!((s.state, s.parent, s.session, s.ticks), ('S', 7, 4, 20));
        let mut named = line.into_bytes();
        named[4] = 0xff;
        assert_eq!(parse_stat(&named).unwrap().ticks, 20);
        assert!(parse_stat(b"42 (x").is_none());
    }

    #[test]
    fn a_child_is_found_signalled_and_gone() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let me = Proc::of(child.id()).unwrap();
        assert!(children(std::process::id()).contains(&me));
        assert!(me.alive());
        let other = Proc { ticks: me.ticks + 1, ..me };
        assert!(!other.alive());
        assert!(!other.signal(Signal::KILL).unwrap());
        assert!(me.signal(Signal::KILL).unwrap());
        // dead but not reaped
        for _ in 0..500 {
            if !me.alive() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        assert!(!me.alive());
        child.wait().unwrap();
    }
}
