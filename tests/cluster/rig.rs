//! A personal cluster for one test: `lsf up` in a directory of its own, commands run in it,
//! daemons found by their environment (never by name alone), all of it stopped at the end.
//! Shared by the test programs that need real processes. On failure the directory is kept.

#![allow(dead_code)]

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Longest a test waits for something to become true.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The binary under test.
pub fn binary() -> PathBuf {
    match std::env::var_os("LSF_TEST_BIN") {
        // commands run in other directories
        Some(b) => std::fs::canonicalize(&b).unwrap_or(PathBuf::from(b)),
        None => PathBuf::from(env!("CARGO_BIN_EXE_lsf")),
    }
}

/// The output and the exit code of a command.
#[derive(Clone, Debug)]
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Said {
    pub fn from(o: Output) -> Said {
        use std::os::unix::process::ExitStatusExt;
        let code = o.status.code().unwrap_or_else(|| 128 + o.status.signal().unwrap_or(0));
        let text = |b: Vec<u8>| String::from_utf8_lossy(&b).into_owned();
        Said { code, out: text(o.stdout), err: text(o.stderr) }
    }
}

pub struct Rig {
    pub dir: PathBuf,
    pub hosts: usize,
    keep: bool,
}

static COUNT: AtomicU32 = AtomicU32::new(0);

impl Rig {
    /// A running cluster of `hosts` hosts.
    pub fn up(name: &str, hosts: usize) -> Rig {
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("lsf-{name}-{}-{n}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        let rig = Rig { dir, hosts, keep: false };
        rig.start();
        rig
    }

    pub fn start(&self) {
        let out = Command::new(binary())
            .args(["up", "--dir"])
            .arg(&self.dir)
            .args(["--hosts", &self.hosts.to_string()])
            .env_remove("LSF_ENVDIR")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = Said::from(out);
        assert_eq!(said.code, 0, "lsf up: {}{}", said.out, said.err);
    }

    pub fn down(&self) -> Said {
        let mut c = Command::new(binary());
        c.args(["down", "--dir"]).arg(&self.dir).stdin(Stdio::null());
        Said::from(c.output().unwrap())
    }

    pub fn path(&self, rel: &str) -> PathBuf {
        self.dir.join(rel)
    }

    /// A command of the cluster as a user of host1 would run it.
    pub fn cmd(&self, applet: &str) -> Command {
        let mut c = Command::new(binary());
        c.arg(applet);
        self.dress(&mut c);
        c
    }

    pub fn dress(&self, c: &mut Command) {
        for (k, _) in std::env::vars_os() {
            let k = k.to_string_lossy().into_owned();
            if k.starts_with("LSB_") || k.starts_with("LSF_") || k.starts_with("BSUB_") {
                c.env_remove(k);
            }
        }
        c.env("LSF_ENVDIR", self.path("conf")).env("TZ", "UTC").current_dir(&self.dir);
        let path = std::env::var("PATH").unwrap_or_default();
        c.env("PATH", format!("{}:{path}", self.path("bin").display()));
        c.stdin(Stdio::null());
    }

    pub fn run(&self, applet: &str, args: &[&str]) -> Said {
        Said::from(self.cmd(applet).args(args).output().unwrap())
    }

    /// Runs a command that must succeed; its stdout. bhist reads the log, which may be behind what
    /// bjobs has shown: what badmin answers comes when all before it is written.
    pub fn ok(&self, applet: &str, args: &[&str]) -> String {
        if applet == "bhist" {
            self.run("badmin", &["showstatus"]);
        }
        let s = self.run(applet, args);
        assert_eq!(s.code, 0, "{applet} {args:?}: {}{}", s.out, s.err);
        s.out
    }

    pub fn feed(&self, applet: &str, args: &[&str], input: &str) -> Said {
        let mut c = self.cmd(applet);
        c.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = c.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        Said::from(child.wait_with_output().unwrap())
    }

    /// Submits and returns the job's ID.
    pub fn bsub(&self, args: &[&str]) -> u32 {
        let out = self.ok("bsub", args);
        job_id(&out).unwrap_or_else(|| panic!("bsub {args:?} said {out:?}"))
    }

    /// One -o field of a job.
    pub fn field(&self, job: &str, field: &str) -> String {
        let s = self.run("bjobs", &["-noheader", "-o", field, job]);
        s.out.trim().to_string()
    }

    pub fn stat(&self, job: u32) -> String {
        self.field(&job.to_string(), "stat")
    }

    /// Waits until the job has ended; its state.
    pub fn end_of(&self, job: u32) -> String {
        let mut last = String::new();
        wait_for(&format!("the end of job {job}"), || {
            last = self.stat(job);
            !last.is_empty() && last.lines().all(|l| l == "DONE" || l == "EXIT")
        });
        last
    }

    /// Pids of a daemon, by host; found by LSF_ENVDIR in its environment. A child of a daemon has
    /// the same command line until exec: of two, the parent is meant.
    pub fn pids(&self, daemon: &str) -> BTreeMap<String, u32> {
        let mut found: Vec<(String, u32, u32)> = Vec::new();
        let env_want = format!("LSF_ENVDIR={}", self.path("conf").display());
        for e in std::fs::read_dir("/proc").unwrap().flatten() {
            let Ok(pid) = e.file_name().to_string_lossy().parse::<u32>() else { continue };
            let Ok(env) = std::fs::read(e.path().join("environ")) else { continue };
            let Ok(cmd) = std::fs::read(e.path().join("cmdline")) else { continue };
            let vars: Vec<String> =
                env.split(|b| *b == 0).map(|v| String::from_utf8_lossy(v).into_owned()).collect();
            if !vars.contains(&env_want) {
                continue;
            }
            let words: Vec<String> = cmd
                .split(|b| *b == 0)
                .take(2)
                .map(|w| {
                    let w = String::from_utf8_lossy(w).into_owned();
                    Path::new(&w)
                        .file_name()
                        .map_or(w.clone(), |n| n.to_string_lossy().into_owned())
                })
                .collect();
            if words.iter().any(|w| w == daemon) {
                let host = vars.iter().find_map(|v| v.strip_prefix("LSF_LOCAL_HOST="));
                found.push((host.unwrap_or("host1").to_string(), pid, parent(pid)));
            }
        }
        let all: Vec<u32> = found.iter().map(|f| f.1).collect();
        found.retain(|f| !all.contains(&f.2));
        found.into_iter().map(|f| (f.0, f.1)).collect()
    }

    pub fn pid(&self, daemon: &str, host: &str) -> Option<u32> {
        self.pids(daemon).get(host).copied()
    }

    /// kill -9 of a daemon of this cluster.
    pub fn kill9(&self, daemon: &str, host: &str) -> bool {
        match self.pid(daemon, host) {
            Some(pid) => {
                kill(pid, 9);
                // on a busy machine even that takes a while
                wait_for("it to be dead", || !alive(pid));
                true
            }
            None => false,
        }
    }

    /// Waits until commands are answered.
    pub fn ready(&self) {
        wait_for("mbatchd to answer", || {
            let mut c = self.cmd("bqueues");
            c.env("LSB_NTRIES", "1");
            c.output().unwrap().status.success()
        });
    }

    pub fn write(&self, rel: &str, text: &str) {
        std::fs::write(self.path(rel), text).unwrap();
    }

    pub fn read(&self, rel: &str) -> String {
        std::fs::read_to_string(self.path(rel)).unwrap_or_default()
    }

    /// Sets a parameter of lsf.conf, which then has it once.
    pub fn set_conf(&self, name: &str, value: &str) {
        let old = self.read("conf/lsf.conf");
        let others = old.lines().filter(|l| l.split_once('=').is_none_or(|(n, _)| n != name));
        let others: String = others.flat_map(|l| [l, "\n"]).collect();
        self.write("conf/lsf.conf", &format!("{others}{name}={value}\n"));
    }

    /// The file's path below the cluster's lsb.* directory.
    pub fn configdir(&self) -> PathBuf {
        let base = self.path("conf/lsbatch");
        let cluster = std::fs::read_dir(&base).unwrap().flatten().next().unwrap().path();
        cluster.join("configdir")
    }

    /// The cluster has this application profile, and no other one.
    #[allow(dead_code)]
    pub fn application(&self, name: &str) {
        let text = format!("Begin Application\nNAME = {name}\nEnd Application\n");
        std::fs::write(self.configdir().join("lsb.applications"), text).unwrap();
        self.ok("badmin", &["reconfig"]);
    }

    pub fn logdir(&self) -> PathBuf {
        let mut found = Vec::new();
        find(&self.dir, "lsb.events", &mut found);
        found.first().and_then(|p| p.parent()).unwrap().to_path_buf()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        let _ = self.down();
        if std::thread::panicking() || self.keep {
            eprintln!("kept for inspection: {}", self.dir.display());
        } else {
            let _ = std::fs::remove_dir_all(&self.dir);
        }
    }
}

pub fn find(dir: &Path, name: &str, out: &mut Vec<PathBuf>) {
    for e in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let p = e.path();
        if p.is_dir() && !p.is_symlink() {
            find(&p, name, out);
        } else if p.file_name().is_some_and(|n| n == name) {
            out.push(p);
        }
    }
}

/// The ID in bsub's answer.
pub fn job_id(out: &str) -> Option<u32> {
    out.strip_prefix("Job <")?.split('>').next()?.parse().ok()
}

/// Makes a program of this text. Another process writes it: a child that a test beside this one
/// forks meanwhile would hold our descriptor until its exec, and exec refuses what is open for
/// writing ("Text file busy").
pub fn program(path: &Path, text: &str) {
    let mut c = Command::new("install");
    c.args(["-D", "-m", "755", "/dev/stdin"]).arg(path).stdin(Stdio::piped());
    let mut child = c.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success(), "{}", path.display());
}

pub fn kill(pid: u32, signal: i32) {
    let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
    let sig = match signal {
        9 => rustix::process::Signal::KILL,
        15 => rustix::process::Signal::TERM,
        10 => rustix::process::Signal::USR1,
        12 => rustix::process::Signal::USR2,
        1 => rustix::process::Signal::HUP,
        2 => rustix::process::Signal::INT,
        18 => rustix::process::Signal::CONT,
        19 => rustix::process::Signal::STOP,
        20 => rustix::process::Signal::TSTP,
        _ => panic!("signal {signal}"),
    };
    let _ = rustix::process::kill_process(pid, sig);
}

/// The pid of its parent; 0 where it has gone.
fn parent(pid: u32) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // behind the name, which may hold anything: state, parent
    let words = stat.rsplit(')').next().unwrap_or_default();
    words.split_whitespace().nth(1).and_then(|w| w.parse().ok()).unwrap_or(0)
}

pub fn alive(pid: u32) -> bool {
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(s) => !s.rsplit(')').next().is_some_and(|r| r.trim_start().starts_with('Z')),
        Err(_) => false,
    }
}

/// Counts a test as skipped (tests/run reads the file): `NAME: WHY`.
pub fn skipped(why: &str) {
    eprintln!("skipped: {why}");
    let Some(path) = std::env::var_os("LSF_TEST_SKIPS") else { return };
    let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
    if let Ok(mut file) = file {
        let _ = writeln!(file, "{why}");
    }
}

/// Polls until true.
pub fn wait_for(what: &str, mut f: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !f() {
        assert!(Instant::now() < end, "waited {PATIENCE:?} for {what}");
        std::thread::sleep(Duration::from_millis(30));
    }
}
