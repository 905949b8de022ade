//! A cluster of several users, for tests that root alone can run: its launchers are root's, its
//! administrator and users are known only in mount namespaces of the test's own, which have another
//! /etc.

use super::rig::{Said, alive, binary, kill, skipped, wait_for};
use lsf::auth::ring::new_key;
use lsf::conf::generate::{SitePlan, generate};
use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

pub const ADMIN: &str = "lsfadm";

/// Name, uid, which is the gid too.
pub const USERS: [(&str, u32); 4] =
    [(ADMIN, 70_001), ("ann", 70_002), ("bob", 70_003), ("root", 0)];
/// A group of ann and bob.
pub const PROJ: u32 = 70_010;

pub struct MultiUserSite {
    pub dir: PathBuf,
    hosts: usize,
    /// The name service reads extrausers/passwd and group too.
    pub extrausers: bool,
    /// Files that replace files of the system: the file here, its path there.
    pub instead: Vec<(String, String)>,
    /// Shell lines before a launcher is started, by the shell that becomes it.
    pub prelude: String,
    /// Directories that are file systems of their own, with their options.
    pub mounts: Vec<(&'static str, &'static str)>,
    launchers: BTreeMap<String, Child>,
}

static COUNT: AtomicU32 = AtomicU32::new(0);

pub fn uid(user: &str) -> u32 {
    USERS.iter().find(|u| u.0 == user).unwrap().1
}

impl MultiUserSite {
    /// Whether such a cluster can be had here; counts the test as skipped where not.
    pub fn possible(name: &str) -> bool {
        let own = Command::new("unshare").args(["-m", "true"]).stderr(Stdio::null()).status();
        let can = lsf::sys::euid() == 0 && own.is_ok_and(|s| s.success());
        if !can {
            skipped(&format!("{name}: needs root and a mount namespace of its own"));
        }
        can
    }

    /// A cluster that does not run yet.
    pub fn new(name: &str, hosts: usize) -> MultiUserSite {
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("lsf-{name}-{}-{n}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        // root makes directories below /run alone, and uses others only where they are marked
        for sub in ["bin", "home", "log", "run", "work/personal/logdir"] {
            std::fs::create_dir_all(dir.join(sub)).unwrap();
        }
        std::fs::write(dir.join("run/launcher.lock"), "").unwrap();
        let launchers = BTreeMap::new();
        let (instead, prelude, mounts) = (Vec::new(), String::new(), Vec::new());
        let site =
            MultiUserSite { dir, hosts, extrausers: false, instead, prelude, mounts, launchers };
        site.accounts();
        site.configure();
        // users must reach the file, wherever it was built; no child made meanwhile by another
        // test may have it open for writing
        let copy = Command::new("cp").arg(binary()).arg(site.path("bin/lsf")).status().unwrap();
        assert!(copy.success());
        let mut links = Command::new(site.path("bin/lsf"));
        let links = links.arg("--install").arg(site.path("bin")).output().unwrap();
        assert!(links.status.success());
        site
    }

    pub fn up(name: &str, hosts: usize) -> MultiUserSite {
        let mut site = MultiUserSite::new(name, hosts);
        site.start();
        site
    }

    fn accounts(&self) {
        let copy = Command::new("cp").args(["-a", "/etc"]).arg(self.path("etc")).status().unwrap();
        assert!(copy.success());
        let mut passwd = std::fs::read_to_string("/etc/passwd").unwrap();
        let mut group = std::fs::read_to_string("/etc/group").unwrap();
        for (name, id) in USERS.into_iter().filter(|u| u.1 != 0) {
            let home = self.path(&format!("home/{name}"));
            std::fs::create_dir(&home).unwrap();
            chown(&home, Some(id), Some(id)).unwrap();
            passwd.push_str(&format!("{name}:x:{id}:{id}::{}:/bin/sh\n", home.display()));
            group.push_str(&format!("{name}:x:{id}:\n"));
        }
        group.push_str(&format!("proj:x:{PROJ}:ann,bob\n"));
        self.write("etc/passwd", &passwd);
        self.write("etc/group", &group);
    }

    fn configure(&self) {
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let mut spec = SitePlan::personal(self.dir.to_str().unwrap(), ADMIN, self.hosts as u32);
        spec.personal = Some((100 + (std::process::id() + n) % 150) as u8);
        let base = 25_000 + (std::process::id() % 500) as u16 * 8;
        (spec.lim_port, spec.res_port) = (base, base + 1);
        (spec.mbd_port, spec.sbd_port) = (base + 2, base + 3);
        for (path, text, _) in generate(&spec) {
            let path = self.path(&path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text.replace("LSF_PERSONAL=Y", "LSF_PERSONAL=N")).unwrap();
        }
        let key = self.path("conf/lsf.key");
        std::fs::write(&key, new_key().unwrap()).unwrap();
        std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
        let admin = uid(ADMIN);
        for own in ["conf/lsf.key", "log", "work", "work/personal", "work/personal/logdir"] {
            chown(self.path(own), Some(admin), Some(admin)).unwrap();
        }
    }

    pub fn path(&self, rel: &str) -> PathBuf {
        self.dir.join(rel)
    }

    pub fn write(&self, rel: &str, text: &str) {
        std::fs::write(self.path(rel), text).unwrap();
    }

    /// Another /etc for a host that does not run yet.
    pub fn etc_of(&self, host: &str) -> PathBuf {
        let to = self.path(&format!("etc.{host}"));
        let copy = Command::new("cp").arg("-a").arg(self.path("etc")).arg(&to).status().unwrap();
        assert!(copy.success());
        to
    }

    /// Adds lines to lsf.conf; later ones of a name count.
    pub fn lsf_conf(&self, lines: &str) {
        let old = std::fs::read_to_string(self.path("conf/lsf.conf")).unwrap();
        self.write("conf/lsf.conf", &format!("{old}{lines}\n"));
    }

    /// `words` in a namespace with this /etc.
    fn inside(&self, etc: &str, words: &[&str]) -> Command {
        let mut c = Command::new("unshare");
        let bind =
            |from: &str, to: &str| format!("mount --bind {} {to} && ", self.path(from).display());
        let mut script = bind(etc, "/etc");
        if self.extrausers {
            script.push_str(&bind("extrausers", "/var/lib/extrausers"));
        }
        self.instead.iter().for_each(|(here, there)| script.push_str(&bind(here, there)));
        for (dir, options) in &self.mounts {
            let to = self.path(dir);
            script.push_str(&format!("mount -t tmpfs -o {options} none {} && ", to.display()));
        }
        // whoever may have cores has them
        script.push_str("ulimit -S -c \"$(ulimit -H -c)\" && exec \"$@\"");
        c.args(["-m", "sh", "-c", &script, "sh"]).args(words).env_clear();
        c.env("LSF_ENVDIR", self.path("conf")).env("TZ", "UTC").stdin(Stdio::null());
        c.env("PATH", format!("{}:/usr/bin:/bin:/usr/sbin:/sbin", self.path("bin").display()));
        c
    }

    pub fn launcher(&self, host: &str) -> Command {
        let own = format!("etc.{host}");
        let etc = if self.path(&own).exists() { &own } else { "etc" };
        let begin = format!("{}\nexec \"$0\"", self.prelude);
        let path = self.path("bin/launcher");
        let path = path.to_str().unwrap();
        let words = ["sh", "-c", &begin, path];
        let words = if self.prelude.is_empty() { &words[3..] } else { &words[..] };
        let mut c = self.inside(etc, words);
        c.env("LSF_LOCAL_HOST", host).current_dir("/").stderr(Stdio::piped());
        c
    }

    pub fn start(&mut self) {
        for n in 1..=self.hosts {
            let host = format!("host{n}");
            let child = self.launcher(&host).stderr(Stdio::null()).spawn().unwrap();
            self.launchers.insert(host, child);
        }
        wait_for("the hosts to be ready", || {
            let s = self.run(ADMIN, "bhosts -w");
            s.out.matches(" ok ").count() == self.hosts
        });
    }

    /// Another launcher where one was killed.
    #[allow(dead_code)]
    pub fn again(&mut self, host: &str) {
        if let Some(mut old) = self.launchers.remove(host) {
            old.wait().unwrap();
        }
        let child = self.launcher(host).stderr(Stdio::null()).spawn().unwrap();
        self.launchers.insert(host.to_owned(), child);
    }

    /// A shell line of a user, in the user's home; each word that is an applet is ours.
    pub fn shell(&self, user: &str, line: &str) -> Command {
        let id = uid(user).to_string();
        let (to, group) = (format!("--reuid={id}"), format!("--regid={id}"));
        let words = ["setpriv", &to, &group, "--init-groups", "sh", "-c", line];
        let mut c = self.inside("etc", &words);
        let home = self.path(&format!("home/{user}"));
        c.env("HOME", &home).env("USER", user).env("LOGNAME", user);
        c.current_dir(if home.is_dir() { &home } else { &self.dir });
        c
    }

    pub fn run(&self, user: &str, line: &str) -> Said {
        Said::from(self.shell(user, line).output().unwrap())
    }

    /// A line that must succeed; its stdout.
    pub fn ok(&self, user: &str, line: &str) -> String {
        let s = self.run(user, line);
        assert_eq!(s.code, 0, "{user}: {line}: {}{}", s.out, s.err);
        s.out
    }

    /// A job of a user and its ID.
    pub fn bsub(&self, user: &str, args: &str) -> u32 {
        let out = self.ok(user, &format!("bsub {args}"));
        super::rig::job_id(&out).unwrap_or_else(|| panic!("bsub {args} said {out:?}"))
    }

    pub fn stat(&self, job: u32) -> String {
        self.run(ADMIN, &format!("bjobs -a -noheader -o stat {job}")).out.trim().to_owned()
    }

    /// Waits until the job has ended; its state.
    pub fn end_of(&self, job: u32) -> String {
        let mut last = String::new();
        wait_for(&format!("the end of job {job}"), || {
            last = self.stat(job);
            last == "DONE" || last == "EXIT"
        });
        last
    }

    /// Command name, pid and uid of every process of this cluster.
    pub fn processes(&self) -> Vec<(String, u32, u32)> {
        use std::os::unix::fs::MetadataExt;
        let want = format!("LSF_ENVDIR={}", self.path("conf").display());
        let mut found = Vec::new();
        for e in std::fs::read_dir("/proc").unwrap().flatten() {
            let Ok(pid) = e.file_name().to_string_lossy().parse::<u32>() else { continue };
            let read = |f: &str| std::fs::read(e.path().join(f)).unwrap_or_default();
            let mine = read("environ").split(|b| *b == 0).any(|v| v == want.as_bytes());
            let cmd = read("cmdline");
            let word = cmd.split(|b| *b == 0).next().unwrap_or_default();
            if mine && let Ok(meta) = e.metadata() {
                let word = String::from_utf8_lossy(word).into_owned();
                let name = Path::new(&word).file_name().unwrap_or_default();
                found.push((name.to_string_lossy().into_owned(), pid, meta.uid()));
            }
        }
        found
    }
}

impl Drop for MultiUserSite {
    fn drop(&mut self) {
        // the launcher is the namespace's first command itself: everything before it exec'ed
        for child in self.launchers.values() {
            kill(child.id(), 2);
        }
        for child in self.launchers.values_mut() {
            let _ = child.wait();
        }
        for (_, pid, _) in self.processes() {
            if alive(pid) {
                kill(pid, 9);
            }
        }
        if std::thread::panicking() {
            eprintln!("kept for inspection: {}", self.dir.display());
        } else {
            let _ = std::fs::remove_dir_all(&self.dir);
        }
    }
}
