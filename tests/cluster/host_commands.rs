//! HOST_PRE_EXEC and HOST_POST_EXEC of a queue: on each host of a job, before and after it.

use super::rig::{Rig, wait_for};

const QUEUE: &str = "
Begin Queue
QUEUE_NAME     = wide
PRIORITY       = 50
HOST_PRE_EXEC  = echo pre $LSF_LOCAL_HOST $LSB_JOBID $MINE >> DIR/trail; sleep 0.3; \\
                 test ! -e DIR/bad-$LSF_LOCAL_HOST || exit 3
HOST_POST_EXEC = test ! -e DIR/worse-$LSF_LOCAL_HOST && \\
                 echo post $LSF_LOCAL_HOST $LSB_JOBEXIT_STAT $MINE >> DIR/trail
PRE_EXEC       = echo queue $LSF_LOCAL_HOST >> DIR/trail
POST_EXEC      = echo after >> DIR/trail
End Queue
";

fn cluster() -> Rig {
    let rig = Rig::up("hostcmd", 3);
    let dir = rig.dir.display().to_string();
    let queues = rig.configdir().join("lsb.queues");
    let text = std::fs::read_to_string(&queues).unwrap();
    std::fs::write(&queues, format!("{text}{}", QUEUE.replace("DIR", &dir))).unwrap();
    let params = rig.configdir().join("lsb.params");
    let text = std::fs::read_to_string(&params).unwrap();
    std::fs::write(&params, text.replace("MBD_SLEEP_TIME = 10", "MBD_SLEEP_TIME = 1")).unwrap();
    rig.ok("badmin", &["reconfig"]);
    rig.ready();
    rig
}

/// A job on host2 and both others.
fn submit(rig: &Rig, command: &str) -> u32 {
    let hosts = ["-n", "3", "-R", "span[ptile=1]", "-m", "host2! host1 host3"];
    let rest = ["-q", "wide", "-env", "all, MINE=x", "-o", "/dev/null", command];
    rig.bsub(&[&hosts[..], &rest].concat())
}

/// The lines that begin with a word, sorted.
fn lines(rig: &Rig, word: &str) -> Vec<String> {
    let text = rig.read("trail");
    let mut all: Vec<String> =
        text.lines().filter(|l| l.starts_with(word)).map(str::to_string).collect();
    all.sort();
    all
}

fn each(before: &str, after: &str) -> Vec<String> {
    ["host1", "host2", "host3"].map(|host| format!("{before} {host} {after}")).into()
}

#[test]
fn commands_run_on_each_host_before_and_after_the_job() {
    let rig = cluster();
    let trail = rig.path("trail").display().to_string();
    let id = submit(&rig, &format!("echo job >> {trail}; exit 2"));
    assert_eq!(rig.end_of(id), "EXIT");
    wait_for("the commands after the job", || lines(&rig, "post").len() == 3);
    assert_eq!(lines(&rig, "pre"), each("pre", &format!("{id} x")));
    assert_eq!(lines(&rig, "post"), each("post", "512 x"));
    let text = rig.read("trail");
    let order: Vec<&str> = text.lines().map(|l| l.split(' ').next().unwrap()).collect();
    let want = ["pre", "pre", "pre", "queue", "job", "after", "post", "post", "post"];
    assert_eq!(order, want, "{text}");
    let long = |id: u32| rig.ok("bhist", &["-UF", "-l", &id.to_string()]);
    wait_for("its end", || long(id).contains("Post job process done successfully"));
    assert!(rig.ok("bqueues", &["-l", "wide"]).contains("\nHOST_PRE_EXEC:  echo pre"));

    // a job that fails on one host waits, and another goes on
    rig.write("bad-host3", "");
    let id = submit(&rig, "true");
    let words = "host3: the queue's host command: exit status: 3";
    wait_for("the reason", || rig.run("bjobs", &["-p", &id.to_string()]).out.contains(words));
    assert_eq!(rig.end_of(rig.bsub(&["-q", "wide", "-m", "host1", "true"])), "DONE");
    std::fs::remove_file(rig.path("bad-host3")).unwrap();
    rig.write("worse-host1", "");
    assert_eq!(rig.end_of(id), "DONE");
    wait_for("the failure", || long(id).contains("Post job process failed"));
    assert!(long(id).contains(words), "{}", long(id));
}

#[test]
fn daemons_may_be_killed_while_other_hosts_prepare() {
    let rig = cluster();
    rig.write("bad-host1", "");
    let id = submit(&rig, "true");
    for (daemon, host) in [("sbatchd", "host1"), ("mbatchd", "host1"), ("sbatchd", "host2")] {
        rig.kill9(daemon, host);
    }
    std::fs::remove_file(rig.path("bad-host1")).unwrap();
    assert_eq!(rig.end_of(id), "DONE");
}
