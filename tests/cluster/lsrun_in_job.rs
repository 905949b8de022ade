//! lsrun and lsgrun inside a parallel job: their tasks on hosts of the job are tasks of the job,
//! those on other hosts are ordinary ones (lsrun(1)).

use super::rig::{Rig, kill, wait_for};
use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

/// The processes of `sleep` with this argument, which no other test uses.
fn sleeping(seconds: &str) -> BTreeSet<u32> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line == format!("sleep\0{seconds}\0").as_bytes()
    };
    pids.filter(is).collect()
}

/// A job on host1 and host2 that runs this script; its output is in `out`.
fn submit(rig: &Rig, script: &str) -> u32 {
    std::fs::write(rig.path("job.sh"), script).unwrap();
    let (job, out) = (rig.path("job.sh"), rig.path("out"));
    let line = format!("sh {} > {} 2>&1", job.display(), out.display());
    let hosts = ["-n", "2", "-R", "span[ptile=1]", "-m", "host1! host2", "-o", "/dev/null"];
    rig.bsub(&[&hosts[..], &[&line]].concat())
}

#[test]
fn tasks_on_hosts_of_the_job_count_for_it_and_end_with_it() {
    let rig = Rig::up("lsrunjob", 3);
    let script = "lsrun -m host2 sleep 77001 &\n\
        lsgrun -p -m \"$LSB_HOSTS\" sleep 77002 &\n\
        lsrun -m host3 sleep 77003 &\n\
        wait\n";
    let job = submit(&rig, script);
    let all = || ["77001", "77002", "77003"].map(sleeping);
    wait_for("the tasks", || all().map(|pids| pids.len()) == [1, 2, 1]);
    let [one, group, other] = all();
    let of_job = || -> BTreeSet<u32> {
        let pids = rig.field(&job.to_string(), "pids");
        pids.split(',').filter_map(|pid| pid.trim().parse().ok()).collect()
    };
    wait_for("their usage", || {
        let pids = of_job();
        one.is_subset(&pids) && group.is_subset(&pids)
    });
    assert!(other.is_disjoint(&of_job()), "host3 has no slot of the job");
    rig.ok("bkill", &["-s", "STOP", &job.to_string()]);
    let state = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(") ").next().unwrap().starts_with('T')
    };
    wait_for("the signal to reach them", || one.iter().chain(&group).all(state));
    rig.ok("bkill", &[&job.to_string()]);
    assert_eq!(rig.end_of(job), "EXIT");
    wait_for("their end", || all().iter().all(BTreeSet::is_empty));
}

#[test]
fn task_of_a_job_has_input_output_and_exit_code_like_any_other() {
    let rig = Rig::up("lsruninput", 2);
    let script = "seq 3 | lsrun -m host2 sh -c 'cat; echo on $LSF_LOCAL_HOST; exit 3'\n\
        echo code $?\n\
        echo in | LSB_JOBID=99999 lsrun -m host2 sh -c 'cat; echo of another job'\n\
        lsrun -m host2 sh -c 'kill -9 $$'\n\
        echo code $?\n\
        lsrun -P -m host2 echo terminal | tr -d '\\r'\n";
    let job = submit(&rig, script);
    assert_eq!(rig.end_of(job), "DONE");
    let text = std::fs::read_to_string(rig.path("out")).unwrap();
    let want = "1\n2\n3\non host2\ncode 3\nin\nof another job\n";
    assert!(text.starts_with(want), "{text}");
    assert!(text.contains("code 137\n") && text.ends_with("terminal\n"), "{text}");
}

#[test]
fn task_that_waits_for_a_silent_sbatchd_can_be_interrupted_and_is_an_ordinary_one_then() {
    let rig = Rig::up("lsrunwait", 2);
    let lsrun = |words: &[&str]| {
        let mut c = rig.cmd("lsrun");
        c.envs([("LSB_JOBID", "77"), ("LSB_MCPU_HOSTS", "host2 1")]);
        c.args(["-m", "host2"]).args(words);
        c
    };
    rig.ready();
    let sbatchd = rig.pid("sbatchd", "host2").unwrap();
    kill(sbatchd, 19);
    let mut waits = lsrun(&["sleep", "77004"]).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(1));
    assert!(sleeping("77004").is_empty(), "it waits for sbatchd");
    let from = Instant::now();
    kill(waits.id(), 2);
    assert_eq!(waits.wait().unwrap().signal(), Some(2));
    assert!(from.elapsed() < Duration::from_secs(3));
    let said = lsrun(&["echo", "ordinary"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&said.stdout), "ordinary\n");
    kill(sbatchd, 18);
    assert!(sleeping("77004").is_empty());
}
