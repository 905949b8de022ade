//! Upgrades of one host after the other, to a file that announces the next protocol version,
//! while jobs run: the hosts go on talking, and no job notices.

use super::rig::{Rig, Said, alive, binary, job_id, kill, wait_for};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const HOSTS: [&str; 3] = ["host1", "host2", "host3"];

/// The binary under test as one of the next version would be: it announces that.
fn next_version(to: &Path) {
    let mut bytes = std::fs::read(binary()).unwrap();
    let words = b"lsf protocol up to 1";
    let at: Vec<usize> = bytes
        .windows(words.len())
        .enumerate()
        .filter(|(_, w)| w == words)
        .map(|(at, _)| at)
        .collect();
    assert_eq!(at.len(), 1, "its version is in {} places", at.len());
    bytes[at[0] + words.len() - 1] = b'2';
    // made by another process, so that no child of this one has it open for writing
    let raw = to.with_extension("raw");
    std::fs::write(&raw, bytes).unwrap();
    put(&raw, to);
}

/// Puts a copy in place of what may be running.
fn put(from: &Path, to: &Path) {
    let new = to.with_extension("new");
    let copy = Command::new("install").args(["-m", "755"]).args([from, &new]).status();
    assert!(copy.unwrap().success());
    std::fs::rename(&new, to).unwrap();
}

struct RollingSite {
    rig: Rig,
    next: PathBuf,
    launchers: Vec<Child>,
}

impl RollingSite {
    /// Three hosts, each with a file of its own to run.
    fn new(name: &str) -> RollingSite {
        let rig = Rig::up(name, 3);
        rig.ready();
        assert_eq!(rig.down().code, 0);
        let next = rig.path("next");
        next_version(&next);
        let mut site = RollingSite { rig, next, launchers: Vec::new() };
        for host in HOSTS {
            std::fs::create_dir_all(site.file(host).parent().unwrap()).unwrap();
            put(&binary(), &site.file(host));
            let launcher = site.command(host, "launcher").spawn().unwrap();
            site.launchers.push(launcher);
        }
        site.all_well();
        site
    }

    fn file(&self, host: &str) -> PathBuf {
        self.rig.path(&format!("file.{host}/lsf"))
    }

    /// An applet as the host has it.
    fn command(&self, host: &str, applet: &str) -> Command {
        let mut c = Command::new(self.file(host));
        c.arg(applet);
        self.rig.dress(&mut c);
        c.env("LSF_LOCAL_HOST", host).stdout(Stdio::null()).stderr(Stdio::null());
        c
    }

    fn all_well(&self) {
        wait_for("every host", || {
            self.rig.run("bhosts", &["-w"]).out.matches(" ok ").count() == HOSTS.len()
        });
    }

    /// Every host takes a job from every host, with the commands of that host.
    fn works(&self) {
        for from in HOSTS {
            for to in HOSTS {
                let mut c = self.command(from, "bsub");
                c.args(["-m", to, "-o", "/dev/null", "true"]).stdout(Stdio::piped());
                let said = Said::from(c.stderr(Stdio::piped()).output().unwrap());
                let job = job_id(&said.out).unwrap_or_else(|| panic!("{from}: {}", said.err));
                assert_eq!(self.rig.end_of(job), "DONE", "{from} to {to}");
            }
        }
    }

    fn upgrade(&self, host: &str) {
        put(&self.next, &self.file(host));
        let launcher = self.rig.pid("launcher", host).unwrap();
        let mut c = self.command(host, "lsf_daemons");
        c.arg("reload").stdout(Stdio::piped()).stderr(Stdio::piped());
        let said = Said::from(c.output().unwrap());
        assert_eq!(said.code, 0, "{host}: {}{}", said.out, said.err);
        assert_eq!(self.rig.pid("launcher", host), Some(launcher), "{host}");
        let file = std::fs::metadata(self.file(host)).unwrap().ino();
        for daemon in ["launcher", "authd", "lim", "sbatchd"] {
            wait_for(&format!("{daemon} of {host} to be the new file"), || {
                let pid = self.rig.pid(daemon, host);
                let exe = pid.and_then(|p| std::fs::metadata(format!("/proc/{p}/exe")).ok());
                exe.is_some_and(|m| m.ino() == file)
            });
        }
    }
}

impl Drop for RollingSite {
    fn drop(&mut self) {
        for child in &mut self.launchers {
            if alive(child.id()) {
                kill(child.id(), 2);
            }
            let _ = child.wait();
        }
    }
}

fn rolls(name: &str, order: [&str; 3]) {
    let site = RollingSite::new(name);
    let rig = &site.rig;
    let line = |code: usize| {
        format!("while [ ! -e {}/go ]; do sleep 0.1; done; exit {code}", { rig.dir.display() })
    };
    // more than one step long: their ends come when every host is of the new version
    let jobs: Vec<(u32, usize)> = HOSTS
        .iter()
        .zip(3..)
        .map(|(host, code)| (rig.bsub(&["-m", host, "-o", "/dev/null", &line(code)]), code))
        .collect();
    let all_run = || jobs.iter().all(|(job, _)| rig.stat(*job) == "RUN");
    wait_for("the jobs to run", all_run);
    site.works();
    for host in order {
        site.upgrade(host);
        site.all_well();
        site.works();
        assert!(all_run(), "after {host}");
    }
    rig.write("go", "");
    for (job, code) in jobs {
        assert_eq!(rig.end_of(job), "EXIT");
        assert_eq!(rig.field(&job.to_string(), "exit_code"), code.to_string());
    }
    let mut logs = 0;
    for log in std::fs::read_dir(rig.path("log")).unwrap().flatten() {
        let text = std::fs::read_to_string(log.path()).unwrap();
        assert!(!text.contains("protocol version"), "{:?}: {text}", log.path());
        logs += usize::from(!text.is_empty());
    }
    assert!(logs > 0, "no log was written");
}

/// Jobs of one host that runs them all when it is upgraded.
const MANY: usize = 100;

#[test]
fn upgrade_under_a_hundred_running_jobs_loses_none_and_starts_none_again() {
    let site = RollingSite::new("rollmany");
    let rig = &site.rig;
    // one more, as a full host is not shown as ok
    let slots = format!("Begin Host\nHOST_NAME MXJ\ndefault {}\nEnd Host\n", MANY + 1);
    std::fs::write(rig.configdir().join("lsb.hosts"), slots).unwrap();
    rig.ok("badmin", &["reconfig", "-f"]);
    let line = format!("echo $$ >> {}/on.$LSB_JOBINDEX; exec sleep 600", rig.dir.display());
    let array = rig.bsub(&["-m", "host2", "-J", "many[1-100]", "-o", "/dev/null", &line]);
    let stats = |stat: &str| {
        let all = rig.field(&array.to_string(), "stat");
        all.lines().filter(|l| l.trim() == stat).count()
    };
    let begun = || (1..=MANY).map(|n| rig.read(&format!("on.{n}"))).collect::<Vec<_>>();
    wait_for("the jobs to run", || stats("RUN") == MANY && !begun().contains(&String::new()));
    let before = begun();
    site.upgrade("host2");
    site.all_well();
    assert_eq!(stats("RUN"), MANY);
    // each is the process that it was, written down once
    assert_eq!(begun(), before);
    assert!(before.iter().all(|pid| alive(pid.trim().parse().unwrap())));
    let log = std::fs::read_to_string(rig.logdir().join("lsb.events")).unwrap();
    let of = format!(" {array} ");
    let starts = log.lines().filter(|l| l.starts_with("\"JOB_START\"") && l.contains(&of));
    assert_eq!(starts.count(), MANY);
    rig.ok("bkill", &[&array.to_string()]);
    wait_for("all to end", || stats("EXIT") == MANY);
}

#[test]
fn rolling_upgrade_with_the_master_first_disturbs_no_job() {
    rolls("rollfirst", ["host1", "host2", "host3"]);
}

#[test]
fn rolling_upgrade_with_the_master_last_disturbs_no_job() {
    rolls("rolllast", ["host3", "host2", "host1"]);
}
