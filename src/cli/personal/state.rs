//! The running launchers of a personal cluster, by what they hold themselves: each host's directory
//! below LSF_RUNDIR has the launcher's socket, its lock and its journal. The starter does not
//! matter: `lsf up`, `lsf_daemons`, `lsfrestart`.
//!
//! Invariant: a launcher that was killed is listed as long as its journal names a task whose end
//! it does not know, or a daemon that lives: a new one knows by it what there is to clear up.

use super::{PersonalDir, at};
use crate::net::sock::{peer_cred, with_unix_path};
use crate::proto::launch::Journal;
use crate::sys::procs::{self, Proc};
use crate::sys::site::{Around, LocalSite, find_from};
use std::collections::BTreeMap;
use std::fs;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// A process that is not there any more.
pub(super) const GONE: Proc = Proc { pid: 0, ticks: 0 };

/// The launchers that run, or have left something running, by host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunningLaunchers {
    pub launchers: Vec<(String, Proc)>,
}

impl RunningLaunchers {
    /// Looks for them.
    pub fn read(place: &PersonalDir) -> Result<RunningLaunchers, String> {
        let envdir = Some(place.conf().into_os_string());
        let site = find_from(&Around { envdir, ..Around::default() }).map_err(|e| e.to_string())?;
        let dir = Path::new(site.lsf.rundir());
        let mut hosts = Vec::new();
        if site.shared_machine {
            match fs::read_dir(dir) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(at(dir, &e)),
                entries => hosts.extend(entries.into_iter().flatten().flatten().filter_map(|e| {
                    e.path()
                        .join("launcher.lock")
                        .exists()
                        .then(|| e.file_name().into_string().ok())?
                })),
            }
        } else {
            hosts.push(site.host.clone());
        }
        hosts.sort_unstable();
        let launchers = hosts.into_iter().filter_map(|host| {
            let found = look(place, &LocalSite { host: host.clone(), ..site.clone() })?;
            Some((host, found))
        });
        Ok(RunningLaunchers { launchers: launchers.collect() })
    }

    /// The launcher of a host, if it lives.
    pub fn alive(&self, host: &str) -> Option<Proc> {
        let found = self.launchers.iter().find(|(h, _)| h == host)?;
        found.1.alive().then_some(found.1)
    }

    /// Whether a host has a launcher, or what a dead one has left.
    pub fn known(&self, host: &str) -> bool {
        self.launchers.iter().any(|(h, _)| h == host)
    }

    /// Names the launcher of a host, in place of an earlier one.
    pub fn set(&mut self, host: &str, p: Proc) {
        self.launchers.retain(|(h, _)| h != host);
        self.launchers.push((host.to_owned(), p));
    }

    /// Forgets the launcher of a host.
    pub fn forget(&mut self, host: &str) {
        self.launchers.retain(|(h, _)| h != host);
    }
}

/// The launcher of a host: one that listens, one that holds its lock and does not listen yet, or
/// what a dead one has left.
fn look(place: &PersonalDir, site: &LocalSite) -> Option<Proc> {
    let dial = |p: &Path| UnixStream::connect(p);
    if let Ok(sock) = with_unix_path(&site.launcher_socket(), dial)
        && let Ok((_, _, pid)) = peer_cred(sock.as_fd())
        && let Some(listening) = Proc::of(pid)
    {
        return Some(listening);
    }
    if locked(&site.rundir().join("launcher.lock")) {
        let found = procs::all().into_iter().find(|p| is_launcher(*p, place, site));
        return Some(found.unwrap_or(GONE));
    }
    let journal = fs::read_to_string(site.rundir().join("launcher.journal")).unwrap_or_default();
    leaves(&journal, &boot_id()).then_some(GONE)
}

/// A process holds this lock. A lock that could be taken is released at once.
fn locked(path: &Path) -> bool {
    let Ok(file) = fs::OpenOptions::new().read(true).open(path) else { return false };
    let how = rustix::fs::FlockOperation::NonBlockingLockShared;
    matches!(rustix::fs::flock(&file, how), Err(rustix::io::Errno::WOULDBLOCK))
}

fn is_launcher(p: Proc, place: &PersonalDir, site: &LocalSite) -> bool {
    let is = |name: &str, value: &[u8]| p.variable(name).is_some_and(|v| v == value);
    p.name() == "launcher"
        && is("LSF_ENVDIR", place.conf().as_os_str().as_bytes())
        && (!site.shared_machine || is("LSF_LOCAL_HOST", site.host.as_bytes()))
}

/// Whether this journal names, of this boot, a task without an end or a daemon that lives.
fn leaves(journal: &str, boot: &str) -> bool {
    let (mut current, mut tasks, mut daemons) = (false, Vec::new(), BTreeMap::new());
    // a damaged line says nothing; the next launcher tells of it
    for line in journal.lines().filter_map(|line| serde_json::from_str(line).ok()) {
        match line {
            Journal::Boot { boot_id } => current = boot_id == boot,
            Journal::Task { id, .. } if current => tasks.push(id),
            Journal::End { id, .. } => tasks.retain(|t| *t != id),
            Journal::Forget { key } => tasks.retain(|t| t.key != key),
            Journal::Daemon { daemon, pid, ticks } if current => {
                daemons.insert(daemon, Proc { pid, ticks });
            }
            _ => {}
        }
    }
    !tasks.is_empty() || daemons.into_values().any(Proc::alive)
}

/// Changes with every boot of the machine.
fn boot_id() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::make_dir;
    use super::*;
    use crate::model::JobKey;
    use crate::proto::Daemon;
    use crate::proto::launch::{TaskId, TaskStep};

    fn text(lines: &[Journal]) -> String {
        lines.iter().map(|l| serde_json::to_string(l).unwrap() + "\n").collect()
    }

    #[test]
    fn a_journal_tells_what_a_dead_launcher_has_left() {
        let me = Proc::of(std::process::id()).unwrap();
        let id = TaskId { key: JobKey { job: 1, idx: 0, attempt: 1 }, step: TaskStep::Job };
        let boot = |id: &str| Journal::Boot { boot_id: id.into() };
        let task = || {
            let note = String::new();
            Journal::Task { id, uid: 1, pid: me.pid, ticks: 1, started: 0, note, group: None }
        };
        let daemon = |ticks| Journal::Daemon { daemon: Daemon::Lim, pid: me.pid, ticks };
        let forget = || Journal::Forget { key: id.key };
        let want = Journal::Want { daemon: Daemon::Lim, on: true };
        for (lines, left) in [
            (vec![boot("b"), want], false),
            (vec![boot("b"), task()], true),
            (vec![boot("b"), task(), forget()], false),
            (vec![boot("b"), daemon(me.ticks)], true),
            (vec![boot("b"), daemon(me.ticks + 1)], false),
            (vec![boot("other"), task(), daemon(me.ticks)], false),
            (vec![], false),
        ] {
            assert_eq!(leaves(&text(&lines), "b"), left, "{lines:?}");
        }
        let damaged = text(&[boot("b")]) + "rubbish\n" + &text(&[task()]);
        assert!(leaves(&damaged, "b"));
    }

    #[test]
    fn a_launcher_is_found_by_its_socket_its_lock_or_its_journal() {
        let dir = std::env::temp_dir().join(format!("lsf-state-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        let place = PersonalDir { top: dir.clone() };
        make_dir(&place.conf()).unwrap();
        let conf = format!("LSF_RUNDIR={0}/run\nLSF_ALLOW_LOCAL_HOST=Y\n", dir.display());
        fs::write(place.conf().join("lsf.conf"), conf).unwrap();
        let none = RunningLaunchers::default();
        assert_eq!(RunningLaunchers::read(&place), Ok(none.clone()), "no directory yet");
        let host = dir.join("run/h1");
        make_dir(&host).unwrap();
        let lock = fs::File::create(host.join("launcher.lock")).unwrap();
        assert_eq!(RunningLaunchers::read(&place), Ok(none.clone()), "nobody holds the lock");
        rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
        let starting = RunningLaunchers::read(&place).unwrap();
        assert_eq!(starting.launchers, [("h1".to_owned(), GONE)]);
        assert_eq!(starting.alive("h1"), None);
        drop(lock);
        let path = host.join("launcher.sock");
        let listener =
            with_unix_path(&path, |p| std::os::unix::net::UnixListener::bind(p)).unwrap();
        let me = Proc::of(std::process::id());
        assert_eq!(RunningLaunchers::read(&place).unwrap().alive("h1"), me);
        drop(listener);
        // a child that another test forks meanwhile has lock and listener until it is exec'ed
        let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while RunningLaunchers::read(&place) != Ok(none.clone()) {
            assert!(std::time::Instant::now() < until, "a socket without a listener");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let daemon =
            Journal::Daemon { daemon: Daemon::Lim, pid: me.unwrap().pid, ticks: me.unwrap().ticks };
        fs::write(
            host.join("launcher.journal"),
            text(&[Journal::Boot { boot_id: boot_id() }, daemon]),
        )
        .unwrap();
        assert_eq!(RunningLaunchers::read(&place).unwrap().launchers, [("h1".to_owned(), GONE)]);
        fs::remove_dir_all(&dir).unwrap();
    }
}
