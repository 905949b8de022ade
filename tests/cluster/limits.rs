//! Slots and limits as in the manual pages of lsb.queues, lsb.hosts, lsb.users and lsb.params, on a
//! running cluster.

use super::rig::{Rig, Said, job_id, wait_for};
use std::time::Duration;

/// Puts new files into effect; lsb.queues gets `queues` behind those of `lsf up`.
fn configure(rig: &Rig, queues: &str, files: &[(&str, &str)]) {
    let dir = rig.configdir();
    let path = dir.join("lsb.queues");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text + queues).unwrap();
    for (name, text) in files {
        std::fs::write(dir.join(name), text).unwrap();
    }
    rig.ok("badmin", &["reconfig", "-f"]);
}

fn queue(name: &str, lines: &str) -> String {
    format!("\nBegin Queue\nQUEUE_NAME = {name}\n{lines}\nEnd Queue\n")
}

/// Submits four jobs that stay; how many of them run.
fn running(rig: &Rig, queue: &str, more: &[&str]) -> usize {
    let job = |_| rig.bsub(&[&["-q", queue, "-o", "/dev/null"], more, &["sleep", "60"]].concat());
    let jobs: Vec<String> = (0..4).map(|i: u32| job(i).to_string()).collect();
    let ids: Vec<&str> = jobs.iter().map(String::as_str).collect();
    let count = || {
        let out = rig.run("bjobs", &[&["-noheader", "-o", "stat"][..], &ids].concat()).out;
        out.lines().filter(|l| l.trim() == "RUN").count()
    };
    // dispatch follows at once; what runs after a second stays as it is
    wait_for("a job to run", || count() > 0);
    std::thread::sleep(Duration::from_millis(1000));
    let found = count();
    rig.run("bkill", &[&["-s", "KILL"][..], &ids].concat());
    wait_for("the jobs to end", || {
        let out = rig.run("bjobs", &[&["-a", "-noheader", "-o", "stat"][..], &ids].concat()).out;
        out.lines().filter(|l| l.trim() == "EXIT").count() == ids.len()
    });
    found
}

const HOSTS: &str = "Begin Host\nHOST_NAME MXJ JL/U\ndefault 3 ()\nEnd Host\n";

#[test]
fn slots_of_started_jobs_stay_within_the_documented_limits() {
    let rig = Rig::up("limits", 1);
    let queues = [
        queue("q", "QJOB_LIMIT = 2"),
        queue("u", "UJOB_LIMIT = 1"),
        queue("h", "HJOB_LIMIT = 2"),
        queue("free", ""),
    ];
    configure(&rig, &queues.concat(), &[("lsb.hosts", HOSTS)]);
    assert_eq!(running(&rig, "free", &[]), 3, "MXJ");
    assert_eq!(running(&rig, "q", &[]), 2, "QJOB_LIMIT");
    assert_eq!(running(&rig, "u", &[]), 1, "UJOB_LIMIT");
    assert_eq!(running(&rig, "h", &[]), 2, "HJOB_LIMIT");
    assert_eq!(running(&rig, "free", &["-n", "2"]), 1, "two slots a job");

    configure(&rig, "", &[("lsb.hosts", &HOSTS.replace("3 ()", "3 1"))]);
    assert_eq!(running(&rig, "free", &[]), 1, "JL/U");

    let users = "Begin User\nUSER_NAME MAX_JOBS\ndefault 2\nEnd User\n";
    configure(&rig, "", &[("lsb.hosts", HOSTS), ("lsb.users", users)]);
    assert_eq!(running(&rig, "free", &[]), 2, "MAX_JOBS");
}

#[test]
fn submissions_beyond_the_documented_bounds_are_refused() {
    let rig = Rig::up("bounds", 1);
    let low = "TASKLIMIT = 1 2\nRUNLIMIT = 1 2\nMEMLIMIT = 50\nFILELIMIT = 10";
    let queues = [
        queue("low", low),
        queue("nohost", "HOSTS = none"),
        queue("nice", "NICE = 5\nCORELIMIT = 100K\nSTACKLIMIT = 4M\nDATALIMIT = 100M 200M"),
    ];
    let params = "Begin Parameters\nDEFAULT_QUEUE = nice\nDEFAULT_PROJECT = p1\n\
                  MAX_PEND_JOBS = 5\nMAX_JOB_ARRAY_SIZE = 4\nMAX_USER_PRIORITY = 7\n\
                  JOB_ACCEPT_INTERVAL = 0\nEnd Parameters\n";
    configure(&rig, &queues.concat(), &[("lsb.params", params)]);
    let refused = |args: &[&str], why: &str| {
        let said = Said::from(rig.cmd("bsub").args(args).env("LSB_NTRIES", "1").output().unwrap());
        assert_eq!((said.code, said.out.as_str()), (255, ""), "{args:?}: {}", said.err);
        assert_eq!(said.err, format!("{why}. Job not submitted.\n"), "{args:?}");
    };
    refused(&["-q", "low", "-n", "3", "true"], "Too many processors requested");
    refused(&["-q", "low", "-W", "5", "true"], "RUNLIMIT: Cannot exceed queue's hard limit(s)");
    refused(&["-q", "low", "-M", "60", "true"], "MEMLIMIT: Cannot exceed queue's hard limit(s)");
    refused(&["-q", "low", "-F", "11M", "true"], "FILELIMIT: Cannot exceed queue's hard limit(s)");
    refused(&["-q", "low", "-x", "true"], "low: Queue does not accept EXCLUSIVE jobs");
    refused(&["-J", "a[1-5]", "true"], "Job array index too large");

    let out = rig.path("limits.out");
    let script = "nice; ulimit -c; ulimit -s; ulimit -d";
    let said = rig.run("bsub", &["-K", "-o", &out.to_string_lossy(), script]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    let text = std::fs::read_to_string(&out).unwrap();
    let lines: Vec<&str> = text.lines().take(4).collect();
    // dash counts core files in blocks of 512 bytes, bash in KB
    assert!(matches!(lines[..], [_, "200" | "100", "4096", "102400"]), "{lines:?}");
    // the queue's NICE adds to the niceness of the daemons, which is that of this test
    let own = std::process::Command::new("nice").output().unwrap().stdout;
    let own: i32 = String::from_utf8_lossy(&own).trim().parse().unwrap();
    assert_eq!(lines[0], (own + 5).min(19).to_string());
    let job = job_id(&said.out).unwrap();
    assert_eq!(rig.field(&job.to_string(), "proj_name"), "p1");
    assert_eq!(rig.field(&job.to_string(), "queue"), "nice");

    for _ in 0..5 {
        rig.bsub(&["-q", "nohost", "-o", "/dev/null", "true"]);
    }
    refused(&["-q", "nohost", "true"], "Pending job threshold reached");
}

#[test]
fn an_exclusive_job_locks_its_host_at_lim_whatever_daemon_dies() {
    let rig = Rig::up("exclusive", 2);
    let queues = rig.configdir().join("lsb.queues");
    let text = std::fs::read_to_string(&queues).unwrap();
    std::fs::write(&queues, text.replace("PRIORITY ", "EXCLUSIVE = Y\nPRIORITY ")).unwrap();
    rig.ok("badmin", &["reconfig"]);
    let status = |host: &str| {
        let said = rig.run("lsload", &["-w", host]);
        let row = said.out.lines().find(|l| l.starts_with(host)).unwrap_or_default().to_string();
        row.split_whitespace().nth(1).unwrap_or_default().to_string()
    };
    let free = |host: &str| rig.run("lsplace", &[host]).out.trim() == host;
    wait_for("the hosts", || status("host1") == "ok" && status("host2") == "ok");
    let job = rig.bsub(&["-x", "-m", "host2", "-o", "/dev/null", "sleep 1000"]);
    wait_for("the lock", || status("host2") == "lockU");
    assert!(free("host1") && !free("host2"));
    // the administrator's own is another one
    rig.ok("lsadmin", &["limlock", "-l", "1"]);
    wait_for("his to end", || status("host1") == "ok");
    for (daemon, host) in [("mbatchd", "host1"), ("lim", "host1"), ("sbatchd", "host2")] {
        assert!(rig.kill9(daemon, host), "{daemon}");
        wait_for("another one", || rig.pid(daemon, host).is_some());
        rig.ready();
        wait_for(&format!("the lock after the end of {daemon}"), || status("host2") == "lockU");
        assert_eq!(rig.stat(job), "RUN");
    }
    // a job that ends while nobody looks
    rig.ok("bkill", &[&job.to_string()]);
    assert!(rig.kill9("mbatchd", "host1"));
    wait_for("the lock to be taken away", || status("host2") == "ok");
    assert_eq!(rig.end_of(job), "EXIT");
    wait_for("the host to be free", || free("host2"));
}

#[test]
fn memory_and_cpu_limits_are_enforced_by_the_host_or_the_kernel_as_lsf_conf_says() {
    let rig = Rig::up("enforced", 1);
    // the limits of the kernel, KB and seconds
    let shown = || {
        let job = rig.bsub(&["-M", "40M", "-c", "1", "-o", "shown.%J", "ulimit -m; ulimit -t"]);
        assert_eq!(rig.end_of(job), "DONE");
        let text = rig.read(&format!("shown.{job}"));
        let words: Vec<String> = text.lines().take(2).map(str::to_owned).collect();
        words.join(" ")
    };
    // a process that holds 60 MB
    let hog = "head -c 60000000 /dev/zero | tail | sleep 4";
    let end = |limit: &str| {
        let job = rig.bsub(&["-M", limit, "-o", "/dev/null", hog]);
        (rig.end_of(job), rig.field(&job.to_string(), "exit_reason"))
    };
    let enforced = |limit: &str| end(limit).1.starts_with("TERM_MEMLIMIT");
    let configured = |name: &str, value: &str| {
        rig.down();
        rig.set_conf(name, value);
        rig.start();
    };
    assert!(rig.read("conf/lsf.conf").contains("\nLSB_JOB_MEMLIMIT=Y\n"));
    assert_eq!((shown().as_str(), enforced("40M")), ("unlimited 60", true));
    configured("LSB_JOB_MEMLIMIT", "N");
    assert_eq!((shown().as_str(), end("40M").0.as_str()), ("40960 60", "DONE"));
    assert!(enforced("40M!"));
    configured("LSB_JOB_CPULIMIT", "Y");
    assert_eq!(shown(), "40960 unlimited");
}

#[test]
fn jobs_beyond_their_memory_limits_go_on_while_the_host_has_memory() {
    let rig = Rig::up("control", 1);
    let configured = |value: &str| {
        rig.down();
        rig.set_conf("LSB_MEMLIMIT_ENF_CONTROL", value);
        rig.start();
    };
    // a process that holds 60 MB
    let hog = "head -c 60000000 /dev/zero | tail | sleep 6";
    let hogs = |limits: &[&str]| {
        let jobs: Vec<u32> =
            limits.iter().map(|limit| rig.bsub(&["-M", limit, "-o", "/dev/null", hog])).collect();
        jobs.iter().for_each(|job| drop(rig.end_of(*job)));
        let reasons = jobs.iter().map(|job| rig.field(&job.to_string(), "exit_reason"));
        reasons.filter(|reason| reason.starts_with("TERM_MEMLIMIT")).count()
    };
    // a host never uses all of its memory, and always more than one percent
    configured("100:0:1");
    assert_eq!(hogs(&["40M"]), 0);
    assert_eq!(hogs(&["40M!"]), 1);
    configured("1:0:600");
    assert_eq!(hogs(&["40M", "40M"]), 1);
    configured("1:0:1:all");
    assert_eq!(hogs(&["40M", "40M"]), 2);
}
