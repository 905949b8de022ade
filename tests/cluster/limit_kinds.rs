//! Every kind of resource limit with real jobs: the queue's default, its hard limit, the job's own
//! limit, and what becomes of a job that exceeds one (lsb.queues(5), bsub(1), sbatchd(8)).

use super::rig::{Rig, skipped, wait_for};

/// Defaults and hard limits; sizes in MB, as the site of `lsf up` counts them.
const QUEUE: &str = "\nBegin Queue\nQUEUE_NAME = lim\nCPULIMIT = 1 2\nRUNLIMIT = 2 3\n\
                     MEMLIMIT = 200 300\nDATALIMIT = 100 200\nPROCESSLIMIT = 20 30\n\
                     THREADLIMIT = 25 35\nSWAPLIMIT = 3000\nFILELIMIT = 10\nSTACKLIMIT = 8\n\
                     CORELIMIT = 2\nEnd Queue\n";

fn up(name: &str) -> Rig {
    let rig = Rig::up(name, 1);
    let path = rig.configdir().join("lsb.queues");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text + QUEUE).unwrap();
    let path = rig.configdir().join("lsb.params");
    let text = std::fs::read_to_string(&path).unwrap();
    let text = text.replace("JOB_TERMINATE_INTERVAL = 10", "JOB_TERMINATE_INTERVAL = 1");
    std::fs::write(&path, text).unwrap();
    rig.ok("badmin", &["reconfig", "-f"]);
    rig.ready();
    rig
}

/// The soft limits of the kernel in a job: CPU seconds, and KB of data, file, stack, core.
fn kernel_limits(rig: &Rig, args: &[&str]) -> Vec<String> {
    let script = "bash -c 'ulimit -St; ulimit -Sd; ulimit -Sf; ulimit -Ss; ulimit -Sc'";
    let job = rig.bsub(&[&["-q", "lim", "-o", "shown.%J"], args, &[script]].concat());
    assert_eq!(rig.end_of(job), "DONE");
    rig.read(&format!("shown.{job}")).lines().take(5).map(str::to_owned).collect()
}

#[test]
fn each_limit_is_the_queues_default_or_the_jobs_own_below_the_queues_hard_one() {
    let rig = up("limitkinds");
    let hard = ["8192", "2048"];
    assert_eq!(kernel_limits(&rig, &[])[1..], ["102400", "10240", hard[0], hard[1]]);
    let own = ["-c", "2", "-D", "150", "-F", "5", "-S", "4", "-C", "1"];
    assert_eq!(kernel_limits(&rig, &own)[1..], ["153600", "5120", "4096", "1024"]);
    for (option, value, name) in [
        ("-c", "3", "CPULIMIT"),
        ("-W", "4", "RUNLIMIT"),
        ("-M", "301", "MEMLIMIT"),
        ("-v", "3001", "SWAPLIMIT"),
        ("-F", "11", "FILELIMIT"),
        ("-D", "201", "DATALIMIT"),
        ("-S", "9", "STACKLIMIT"),
        ("-C", "3", "CORELIMIT"),
        ("-p", "31", "PROCESSLIMIT"),
        ("-T", "36", "THREADLIMIT"),
    ] {
        let said = rig.run("bsub", &["-q", "lim", option, value, "true"]);
        let words = format!("{name}: Cannot exceed queue's hard limit(s). Job not submitted.\n");
        assert_eq!((said.code, said.err), (255, words), "{option}");
    }
    // the listing has the limits in force, with their unit
    let job = rig.bsub(&["-q", "lim", "-H", "-D", "150", "-p", "5", "true"]).to_string();
    let long = rig.ok("bjobs", &["-l", &job]);
    let head = "FILELIMIT DATALIMIT STACKLIMIT CORELIMIT MEMLIMIT SWAPLIMIT PROCESSLIMIT \
                THREADLIMIT";
    let at = long.find(head).unwrap_or_else(|| panic!("{long}"));
    let values: Vec<&str> = long[at..].lines().nth(1).unwrap().split_whitespace().collect();
    let sizes = ["10", "M", "150", "M", "8", "M", "2", "M", "200", "M", "3000", "M", "5", "25"];
    assert_eq!(values, sizes, "{long}");
    assert!(long.contains("CPULIMIT") && long.contains("1.0 min"), "{long}");
    assert!(long.contains("RUNLIMIT") && long.contains("2.0 min"), "{long}");
}

#[test]
fn job_beyond_each_limit_ends_with_the_reason_of_that_limit() {
    let rig = up("limitends");
    let end = |args: &[&str], script: &str| {
        let job = rig.bsub(&[&["-q", "lim", "-o", "out.%J"], args, &[script]].concat());
        assert_eq!(rig.end_of(job), "EXIT", "{args:?}");
        let id = job.to_string();
        let reason = rig.field(&id, "exit_reason");
        let reason = reason.split(':').next().unwrap_or_default().trim().to_owned();
        (reason, rig.field(&id, "exit_code"), rig.read(&format!("out.{job}")))
    };
    let processes = "for i in $(seq 40); do sleep 60 & done; wait";
    // the defaults of the queue, then limits of the job
    assert_eq!(end(&[], processes).0, "TERM_PROCESSLIMIT");
    let fewer = processes.replace("40", "15");
    assert_eq!(end(&["-p", "30", "-T", "10"], &fewer).0, "TERM_THREADLIMIT");
    assert_eq!(end(&["-v", "3"], "sleep 60 & sleep 60").0, "TERM_SWAP");
    let hog = "head -c 70000000 /dev/zero | tail | sleep 60";
    assert_eq!(end(&["-M", "40"], hog).0, "TERM_MEMLIMIT");
    // by the kernel: the signal XFSZ, and memory that is not given
    let said = end(&[], "exec head -c 11000000 /dev/zero > large");
    assert_eq!((said.0.as_str(), said.1.as_str()), ("-", "153"), "{}", said.2);
    assert_eq!(std::fs::metadata(rig.path("large")).unwrap().len(), 10 << 20);
    let said = end(&["-D", "20"], "head -c 70000000 /dev/zero | tail");
    assert!(said.2.contains("memory exhausted"), "{}", said.2);
    // a job that catches the signals meets them in their order, and its reason stays
    let script = "trap 'echo INT' INT; trap 'echo TERM' TERM; echo begun; \
                  { head -c 70000000 /dev/zero | tail | sleep 60; } & \
                  while :; do sleep 0.1; done";
    let said = end(&["-M", "40"], script);
    let shown = |line: &&str| ["begun", "INT", "TERM"].contains(line);
    let lines: Vec<&str> = said.2.lines().filter(shown).collect();
    assert_eq!((said.0.as_str(), &lines[..]), ("TERM_MEMLIMIT", &["begun", "INT", "TERM"][..]));
    assert_eq!(said.1, "137");
}

#[test]
fn memory_limit_is_held_by_the_kernel_where_its_controller_can_be_used_and_measured_elsewhere() {
    let rig = up("limitgroup");
    rig.down();
    rig.set_conf("LSB_RESOURCE_ENFORCE", "\"memory cpu\"");
    rig.start();
    rig.ready();
    let log = || rig.read("log/launcher.log.host1");
    let held = "the kernel holds the memory limits of jobs";
    let measured = "sbatchd measures the memory of jobs instead";
    wait_for("a word about limits", || log().contains(held) || log().contains(measured));
    let end = |args: &[&str], script: &str| {
        let job = rig.bsub(&[&["-o", "out.%J"], args, &[script]].concat());
        let state = rig.end_of(job);
        let id = job.to_string();
        let reason = rig.field(&id, "exit_reason");
        let reason = reason.split(':').next().unwrap_or_default().trim().to_owned();
        (state, reason, rig.read(&format!("out.{job}")))
    };
    let hog = "head -c 70000000 /dev/zero | tail | sleep 60";
    assert_eq!(end(&["-M", "40"], hog).1, "TERM_MEMLIMIT");
    // the limits of each process are gone, as with LSB_JOB_MEMLIMIT
    let (state, _, text) = end(&["-M", "40"], "ulimit -m; cat /proc/self/cgroup");
    assert!(state == "DONE" && text.starts_with("unlimited\n"), "{text}");
    if !log().contains(held) {
        return skipped("memory limits by the kernel: no memory controller can be used here");
    }
    // too quick for a look at it: the kernel tells at the end of the job
    let quick = "head -c 46000000 /dev/zero | tail > /dev/null; exit 3";
    assert_eq!(end(&["-M", "30"], quick).1, "TERM_MEMLIMIT");
    // two tasks have twice the memory, unless -hl
    assert_eq!(end(&["-M", "30", "-n", "2"], quick).1, "-");
    assert_eq!(end(&["-M", "30", "-n", "2", "-hl"], quick).1, "TERM_MEMLIMIT");
    assert_eq!(end(&[], quick).1, "-");
    // nothing stays behind
    let groups = || log().lines().find_map(|l| Some(l.split_once(held)?.1.get(2..)?.to_owned()));
    let below = |dir: &str| std::fs::read_dir(dir).into_iter().flatten().flatten();
    let dir = groups().unwrap_or_default();
    wait_for("the groups to be gone", || {
        !below(&dir).any(|e| e.file_type().is_ok_and(|t| t.is_dir()))
    });
}
