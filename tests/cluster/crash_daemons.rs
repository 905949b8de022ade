//! kill -9 of sbatchd, of mbatchd, of both: no job is disturbed. Of the launcher: jobs survive,
//! their ends are unknown and said so. An upgrade of the launcher loses nothing.

use crate::rig::{Rig, alive, kill, program, wait_for};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A job that burns two seconds of CPU, makes a file, then exits with the code given.
fn burner(code: u32) -> String {
    // The job reads its own CPU time, so that a busy machine changes nothing.
    format!(
        "python3 -c 'import time,sys\nwhile time.process_time()<2: pass\n\
         open(\"burnt{code}\",\"w\")\nsys.exit({code})'"
    )
}

#[test]
fn jobs_go_on_when_daemons_are_killed() {
    let rig = Rig::up("daemons", 1);
    let victims: [&[&str]; 3] = [&["sbatchd"], &["mbatchd"], &["sbatchd", "mbatchd"]];
    for (n, kinds) in victims.iter().enumerate() {
        let code = 10 + n as u32;
        let job = rig.bsub(&["-o", "/dev/null", &burner(code)]);
        wait_for("the job to run", || rig.stat(job) == "RUN");
        std::thread::sleep(Duration::from_millis(300));
        for k in *kinds {
            assert!(rig.kill9(k, "host1"), "no {k}");
        }
        rig.ready();
        wait_for("the end of the job's work", || rig.path(&format!("burnt{code}")).exists());
        let begin = Instant::now();
        assert_eq!(rig.end_of(job), "EXIT");
        let waited = begin.elapsed().as_secs_f64();
        assert_eq!(rig.field(&job.to_string(), "exit_code"), code.to_string());
        let cpu = rig.field(&job.to_string(), "cpu_used");
        let cpu: f64 = cpu.split_whitespace().next().unwrap().parse().unwrap();
        assert!((1.75..=2.3).contains(&cpu), "{kinds:?}: CPU time {cpu}");
        assert!(waited < 20.0, "{kinds:?}: {waited} s");
    }
}

#[test]
fn end_time_of_a_job_is_exact_though_daemons_were_down() {
    let rig = Rig::up("endtime", 1);
    let job = rig.bsub(&["-o", "/dev/null", "sleep 2; date +%s > end"]);
    wait_for("the job to run", || rig.stat(job) == "RUN");
    rig.kill9("sbatchd", "host1");
    rig.kill9("mbatchd", "host1");
    std::thread::sleep(Duration::from_secs(3));
    rig.ready();
    rig.end_of(job);
    let real: i64 = rig.read("end").trim().parse().unwrap();
    let acct = std::fs::read_to_string(rig.logdir().join("lsb.acct")).unwrap();
    let logged: i64 = acct.lines().last().unwrap().split(' ').nth(2).unwrap().parse().unwrap();
    assert!((real - logged).abs() <= 1, "ended at {real}, logged {logged}");
}

#[test]
fn jobs_of_a_lost_launcher_have_an_unknown_end() {
    let rig = Rig::up("launcher", 1);
    let job = rig.bsub(&["-o", "/dev/null", "sleep 4; echo survived > survived"]);
    let after_end = rig.bsub(&["-w", &format!("ended({job})"), "-o", "/dev/null", "true"]);
    let after_done = rig.bsub(&["-w", &format!("done({job})"), "-o", "/dev/null", "true"]);
    let after_exit = rig.bsub(&["-w", &format!("exit({job},0)"), "-o", "/dev/null", "true"]);
    wait_for("the job to run", || rig.stat(job) == "RUN");
    std::thread::sleep(Duration::from_millis(500));
    assert!(rig.kill9("launcher", "host1"));
    std::thread::sleep(Duration::from_millis(300));
    rig.start();
    rig.ready();
    assert_eq!(rig.end_of(job), "EXIT");
    assert_eq!(rig.read("survived"), "survived\n");
    assert_eq!(rig.field(&job.to_string(), "exit_code"), "-");
    assert!(rig.field(&job.to_string(), "exit_reason").starts_with("TERM_LOST_STATUS"));
    assert_eq!(rig.end_of(after_end), "DONE");
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(rig.stat(after_done), "PEND");
    assert_eq!(rig.stat(after_exit), "PEND");
}

#[test]
fn jobs_survive_an_upgrade_of_the_launcher() {
    let rig = Rig::up("upgrade", 1);
    let hosts = rig.configdir().join("lsb.hosts");
    let text = std::fs::read_to_string(&hosts).unwrap();
    let wide: String = text
        .lines()
        .map(|l| if l.starts_with("default") { l.replacen('!', "32", 1) } else { l.to_string() })
        .map(|l| l + "\n")
        .collect();
    std::fs::write(&hosts, wide).unwrap();
    rig.ok("badmin", &["reconfig"]);
    let go = rig.path("go");
    let line =
        |i: u32| format!("while ! test -e {}; do sleep 0.3; done; sleep 1; exit {i}", go.display());
    let jobs: Vec<u32> = (0..20).map(|i| rig.bsub(&["-o", "/dev/null", &line(i)])).collect();
    wait_for("all to run", || jobs.iter().all(|j| rig.stat(*j) == "RUN"));
    rig.write("go", "");
    let launcher = rig.pid("launcher", "host1").unwrap();
    kill(launcher, 12);
    std::thread::sleep(Duration::from_millis(500));
    assert!(alive(launcher), "the launcher keeps its pid");
    for (i, job) in jobs.iter().enumerate() {
        rig.end_of(*job);
        let code = rig.field(&job.to_string(), "exit_code");
        let want = if i == 0 { vec!["0", "-"] } else { vec![] };
        assert!(code == i.to_string() || want.contains(&code.as_str()), "job {job}: {code}");
    }
    assert_eq!(rig.stat(jobs[0]), "DONE");
}

#[test]
fn daemon_is_distinguished_from_a_child_it_has_just_forked() {
    let rig = Rig::up("twin", 1);
    let path = rig.path("twin");
    program(&path, "#!/bin/sh\n(while :; do sleep 0.1; done) &\necho $!\nwait\n");
    let mut c = Command::new(&path);
    rig.dress(&mut c);
    let mut daemon = c.stdout(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    let mut out = BufReader::new(daemon.stdout.take().unwrap());
    out.read_line(&mut said).unwrap();
    let child: u32 = said.trim().parse().unwrap();
    let found = rig.pids("twin");
    kill(child, 9);
    kill(daemon.id(), 9);
    assert_eq!(found.into_iter().collect::<Vec<_>>(), [("host1".to_string(), daemon.id())]);
    daemon.wait().unwrap();
}
