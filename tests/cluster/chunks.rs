//! Chunk jobs and goals of service classes with real jobs: the members of a chunk run one after the
//! other on one slot (lsb.queues(5), CHUNK_JOB_SIZE), and no more jobs of a class run than its goal
//! wants (lsb.serviceclasses(5)).

use crate::rig::{Rig, wait_for};

const QUEUE: &str = "
Begin Queue
QUEUE_NAME     = chunked
PRIORITY       = 40
CHUNK_JOB_SIZE = 4
End Queue
";
const CLASS: &str = "Begin ServiceClass\nNAME = steady\nGOALS = [VELOCITY 1]\nEnd ServiceClass\n";

fn cluster(name: &str) -> Rig {
    let rig = Rig::up(name, 1);
    let queues = rig.configdir().join("lsb.queues");
    let text = std::fs::read_to_string(&queues).unwrap();
    std::fs::write(&queues, format!("{text}{QUEUE}")).unwrap();
    std::fs::write(rig.configdir().join("lsb.serviceclasses"), CLASS).unwrap();
    rig.ok("badmin", &["reconfig"]);
    rig
}

#[test]
fn members_of_a_chunk_run_one_after_the_other_on_the_host_of_the_first() {
    let rig = cluster("chunks");
    let (trail, go) = (rig.path("trail"), rig.path("go"));
    let (trail, go) = (trail.display(), go.display());
    let script = format!(
        "echo begin $LSB_JOBINDEX >> {trail}; until test -e {go}; do sleep 0.05; done; \
         echo end $LSB_JOBINDEX >> {trail}"
    );
    rig.bsub(&["-q", "chunked", "-J", "c[1-4]", "-o", "/dev/null", &script]);
    wait_for("the first to begin", || rig.path("trail").exists());
    let shown = rig.ok("bjobs", &["-noheader", "-o", "stat exec_host"]);
    let shown: Vec<&str> = shown.split_whitespace().collect();
    assert_eq!(shown, ["RUN", "host1", "WAIT", "host1", "WAIT", "host1", "WAIT", "host1"]);
    std::fs::write(rig.path("go"), "").unwrap();
    wait_for("all to end", || rig.read("trail").lines().count() == 8);
    let want: String = (1..=4).map(|n| format!("begin {n}\nend {n}\n")).collect();
    assert_eq!(rig.read("trail"), want);
}

#[test]
fn no_more_jobs_of_a_class_run_than_its_velocity() {
    let rig = cluster("goals");
    let first = rig.bsub(&["-sla", "steady", "-o", "/dev/null", "sleep", "300"]);
    wait_for("it to run", || rig.stat(first) == "RUN");
    let second = rig.bsub(&["-sla", "steady", "-o", "/dev/null", "sleep", "300"]);
    let other = rig.bsub(&["-o", "/dev/null", "sleep", "300"]);
    wait_for("a job of no class to run", || rig.stat(other) == "RUN");
    let why = rig.ok("bjobs", &["-p", &second.to_string()]);
    assert!(why.contains("As many jobs of the service class run as its goals want"), "{why}");
    let shown = rig.ok("bsla", &["steady"]);
    assert!(shown.contains("\nSTATUS:  Active:On time\n"), "{shown}");
    assert!(shown.ends_with("\n2       1       1       0       0       0\n"), "{shown}");
    rig.ok("bkill", &[&first.to_string()]);
    wait_for("the second to run", || rig.stat(second) == "RUN");
}
