//! Open files, mask, limits and environment that root's launcher has from its starter: none of them
//! reaches a user, and none of them opens a file to others.

use super::rig::{Rig, wait_for};
use super::site::MultiUserSite;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const SECRET: &str = "SeCrEt-0815";

/// Files and directories below a path whose mode has one of these bits; sockets are made with a
/// mode of their own.
fn with_mode(dir: &Path, bits: u32, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let meta = entry.path().symlink_metadata().unwrap();
        let own = meta.is_file() || meta.is_dir();
        if own && meta.permissions().mode() & bits != 0 {
            found.push(format!("{} {:o}", entry.path().display(), meta.permissions().mode()));
        }
        if meta.is_dir() {
            with_mode(&entry.path(), bits, found);
        }
    }
}

/// The files that a process has open.
fn open_files(pid: u32) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    entries.filter_map(|e| std::fs::read_link(e.path()).ok()).collect()
}

#[test]
fn open_files_umask_and_environment_of_the_caller_pass_no_launcher() {
    if !MultiUserSite::possible("open_files_umask_and_environment_of_the_caller_pass_no_launcher") {
        return;
    }
    let mut site = MultiUserSite::new("around", 1);
    let secret = site.path("secret");
    std::fs::write(&secret, SECRET).unwrap();
    std::fs::set_permissions(&secret, PermissionsExt::from_mode(0o600)).unwrap();
    site.prelude = format!(
        "umask 0; exec 7<{0} 9<>{0}; export {1}=1 EVIL=$(head -c 100000 /dev/zero | tr '\\0' x) \
         BASH_ENV={0} LD_LIBRARY_PATH=/tmp",
        secret.display(),
        SECRET.replace('-', "_")
    );
    site.start();
    let look = "ls -l /proc/self/fd /proc/$PPID/fd 2>/dev/null; cat <&7; cat <&9; env";
    for how in ["", "-L /bin/sh ", "-E true -Ep true "] {
        let job = site.bsub("ann", &format!("{how}-o out.%J '{look}'"));
        site.end_of(job);
        let out = site.ok("ann", &format!("cat out.{job}"));
        for bad in [SECRET, "secret", "EVIL", "BASH_ENV", "LD_LIBRARY_PATH"] {
            let said = out.split("The output (if any)").next().unwrap_or_default();
            let lines = said.lines().filter(|l| !l.starts_with("ls -l"));
            let seen: Vec<&str> = lines.filter(|l| l.contains(bad)).collect();
            assert_eq!(seen, [""; 0], "{how}: {bad}");
        }
    }
    let launcher = site.processes().into_iter().find(|p| p.0 == "launcher").unwrap().1;
    let mut all = vec![launcher];
    all.extend(lsf::sys::procs::below(launcher).iter().map(|p| p.pid));
    assert!(all.len() > 6, "{all:?}");
    for pid in all {
        let open = open_files(pid);
        assert!(!open.contains(&secret), "{pid}: {open:?}");
    }
    let mut found = Vec::new();
    for dir in ["work", "log", "run", "conf"] {
        with_mode(&site.path(dir), 0o022, &mut found);
    }
    assert_eq!(found, [""; 0]);
}

/// A host that has no descriptors left starts no job, says so, and goes on when there are some.
#[test]
fn jobs_wait_where_a_launcher_has_no_descriptors_left_and_say_so() {
    let rig = Rig::up("nofile", 1);
    let launcher = rig.pid("launcher", "host1").unwrap();
    let pid = Pid::from_raw(launcher as i32).unwrap();
    let before = getrlimit(Resource::Nofile);
    let set = |soft: u64| {
        let limit = Rlimit { current: Some(soft), maximum: before.maximum };
        prlimit(Some(pid), Resource::Nofile, limit).unwrap();
    };
    assert_eq!(rig.end_of(rig.bsub(&["-o", "/dev/null", "true"])), "DONE");
    // the first number that is free
    let open = |fd: &u64| !Path::new(&format!("/proc/{launcher}/fd/{fd}")).exists();
    set((0..).find(open).unwrap());
    let jobs: Vec<u32> = (0..3).map(|_| rig.bsub(&["-o", "/dev/null", "true"])).collect();
    for job in &jobs {
        wait_for("the reason", || {
            let long =
                rig.ok("bjobs", &["-l", &job.to_string()]).replace("\n                     ", "");
            // in the words of either C library
            let words = ["too many open files", "no file descriptors available"];
            rig.stat(*job) == "PEND" && words.iter().any(|w| long.to_lowercase().contains(w))
        });
    }
    // who calls the launcher meanwhile does not make it run in circles
    let mut socket = Vec::new();
    super::rig::find(&rig.path("run"), "launcher.sock", &mut socket);
    let _caller = std::os::unix::net::UnixStream::connect(&socket[0]).unwrap();
    let log = || rig.read("log/launcher.log.host1").matches("cannot be accepted").count();
    wait_for("a pause", || log() > 0);
    let (began, said) = (Instant::now(), log());
    wait_for("some pauses more", || log() > said + 3);
    assert!(began.elapsed() > Duration::from_secs(1), "{:?}", began.elapsed());
    set(before.current.unwrap_or(1024));
    for job in jobs {
        assert_eq!(rig.end_of(job), "DONE");
    }
}
