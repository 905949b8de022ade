//! A host on which no process can be begun: the group of its launcher may have no more than it has.

use super::rig::{Rig, skipped, wait_for};
use std::path::{Path, PathBuf};

/// A group of processes that may have no more than it has (cgroups(7), pids).
struct Group(PathBuf);

impl Group {
    /// A group; `None` if none can be made here: the test counts as skipped.
    fn new(name: &str) -> Option<Group> {
        let own = format!("lsf-test-{}", std::process::id());
        let roots = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"].map(Path::new);
        let group = roots.iter().map(|root| root.join(&own)).find(|group| {
            let made = std::fs::create_dir(group).is_ok();
            let limits = group.join("pids.max").exists();
            if made && !limits {
                let _ = std::fs::remove_dir(group);
            }
            made && limits
        });
        if group.is_none() {
            skipped(&format!("{name}: needs root and a pids controller of cgroups"));
        }
        group.map(Group)
    }

    fn takes(&self, pid: u32) {
        std::fs::write(self.0.join("cgroup.procs"), pid.to_string()).unwrap();
    }

    fn may_have(&self, most: &str) {
        std::fs::write(self.0.join("pids.max"), most).unwrap();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::write(self.0.join("pids.max"), "max");
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn task_and_job_on_a_host_without_processes_are_not_started_and_say_why() {
    let name = "task_and_job_on_a_host_without_processes_are_not_started_and_say_why";
    let Some(group) = Group::new(name) else { return };
    let rig = Rig::up("noprocesses", 2);
    // all that it begins from now on is in the group, too
    group.takes(rig.pid("launcher", "host2").unwrap());
    let script = "blaunch host2 echo before\nwhile ! test -e go; do sleep 0.1; done\n\
                  blaunch host2 touch x; echo code $?\n\
                  touch full; while ! test -e free; do sleep 0.1; done\n\
                  blaunch host2 echo behind; echo code $?";
    rig.write("job.sh", script);
    let hosts = ["-n", "2", "-R", "span[ptile=1]", "-m", "host1! host2", "-o", "/dev/null"];
    let job = rig.bsub(&[&hosts[..], &["sh job.sh > said 2>&1"]].concat());
    wait_for("the job to run", || rig.read("said") == "before\n");
    group.may_have("1");
    rig.write("go", "");
    wait_for("a refusal", || rig.path("full").exists());
    let late = rig.bsub(&["-m", "host2", "-o", "/dev/null", "true"]);
    let why = || rig.run("bjobs", &["-l", &late.to_string()]).out;
    let words = "Resource temporarily unavailable";
    wait_for("the reason", || why().replace("\n                     ", "").contains(words));
    assert_eq!(rig.stat(late), "PEND", "{}", why());
    group.may_have("max");
    rig.write("free", "");
    assert_eq!((rig.end_of(job), rig.end_of(late)), ("DONE".into(), "DONE".into()));
    let want = format!(
        "before\nblaunch: host2: RES failed internally ({words})\n\
         lsb_launch(): Failed while executing tasks.\ncode 255\nbehind\ncode 0\n"
    );
    assert_eq!(rig.read("said"), want);
    assert!(!rig.path("x").exists());
    rig.down();
}
