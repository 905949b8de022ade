//! MPI programs in a job, by the launcher of their own MPI: MPICH's and Intel's see by themselves
//! that they are in a job of LSF, Open MPI's is told by a word; each starts its processes on the
//! hosts of the job by blaunch (blaunch(1), mpirun.lsf(1)).

use super::mpi::{Beats, Mpi, expected, running, sorted};
use super::rig::{Rig, program, skipped, wait_for};
use std::process::Command;
use std::time::Duration;

/// Submits the program on two slots of each of three hosts.
fn submit(mpi: Mpi, rig: &Rig, words: &[&str], args: &str) -> u32 {
    let launcher = format!("{}exec {}", mpi.environment(), mpi.launcher());
    let line = format!("echo $LSB_HOSTS > hosts; {launcher} ./ranks {args} > out 2> err");
    let _ = std::fs::remove_file(rig.path("out"));
    let own = ["-n", "6", "-R", "span[ptile=2]", "-o", "/dev/null"];
    rig.bsub(&[&own[..], words, &[&line]].concat())
}

fn ends_of_ranks(mpi: Mpi) {
    let Some(rig) = mpi.up("ranks", 3) else { return };
    let job = submit(mpi, &rig, &[], "");
    assert_eq!(rig.end_of(job), "DONE", "{}", rig.read("err"));
    assert_eq!(sorted(&rig.read("out")), expected(&rig.read("hosts")), "{}", rig.read("err"));
    // ends of a rank are those of the job, and leave nothing behind
    for how in ["exit 7", "kill 9", "abort 5"] {
        let job = submit(mpi, &rig, &[], how);
        assert_eq!(rig.end_of(job), "EXIT", "{how}");
        let code = rig.field(&job.to_string(), "exit_code");
        assert!(mpi.codes(how).contains(&code.trim()), "{how}: {code}, {}", rig.read("err"));
        wait_for("the ranks to go", || running(&rig) == 0);
    }
}

#[test]
fn ranks_of_mpich_run_on_the_hosts_of_their_job_in_the_order_of_its_slots() {
    ends_of_ranks(Mpi::Mpich);
}

#[test]
fn ranks_of_intel_mpi_run_on_the_hosts_of_their_job_in_the_order_of_its_slots() {
    ends_of_ranks(Mpi::Intel);
}

#[test]
fn ranks_of_open_mpi_run_on_the_hosts_of_their_job_in_the_order_of_its_slots() {
    ends_of_ranks(Mpi::Open);
}

fn signals_to_ranks(mpi: Mpi) {
    let Some(rig) = mpi.up("act", 3) else { return };
    let beats = Beats::new(&rig, 6);
    let job = submit(mpi, &rig, &[], &beats.args());
    let id = job.to_string();
    beats.wait_for_all();
    let still = || {
        let before = beats.now();
        std::thread::sleep(Duration::from_millis(600));
        beats.now() == before
    };
    assert!(!still());
    rig.ok("bstop", &[&id]);
    wait_for("all to stand still", still);
    std::thread::sleep(Duration::from_secs(1));
    assert!(still());
    rig.ok("bresume", &[&id]);
    let before = beats.now();
    wait_for("all to go on", || beats.now().iter().zip(&before).all(|(now, then)| now != then));
    rig.ok("bkill", &[&id]);
    assert_eq!(rig.end_of(job), "EXIT");
    wait_for("the ranks to go", || running(&rig) == 0);
}

#[test]
fn ranks_of_mpich_are_stopped_continued_and_killed_with_their_job() {
    signals_to_ranks(Mpi::Mpich);
}

#[test]
fn ranks_of_intel_mpi_are_stopped_continued_and_killed_with_their_job() {
    signals_to_ranks(Mpi::Intel);
}

#[test]
fn ranks_of_open_mpi_are_stopped_continued_and_killed_with_their_job() {
    signals_to_ranks(Mpi::Open);
}

/// The reason of a job's end, without its text.
fn reason(rig: &Rig, job: u32) -> String {
    let reason = rig.field(&job.to_string(), "exit_reason");
    reason.split(':').next().unwrap_or_default().trim().to_owned()
}

fn limits_of_ranks(mpi: Mpi) {
    let Some(rig) = mpi.up("limit", 3) else { return };
    // no host has more than half of the limit; the three together have more than it
    let eaten = submit(mpi, &rig, &["-M", "1000"], "eat 200");
    assert_eq!(rig.end_of(eaten), "EXIT");
    assert_eq!(reason(&rig, eaten), "TERM_MEMLIMIT");
    wait_for("the ranks to go", || running(&rig) == 0);
}

#[test]
fn ranks_of_mpich_end_when_their_sum_exceeds_a_limit() {
    limits_of_ranks(Mpi::Mpich);
}

#[test]
fn ranks_of_intel_mpi_end_when_their_sum_exceeds_a_limit() {
    limits_of_ranks(Mpi::Intel);
}

#[test]
fn ranks_of_open_mpi_end_when_their_sum_exceeds_a_limit() {
    limits_of_ranks(Mpi::Open);
}

#[test]
fn ranks_of_mpich_end_after_the_run_limit_of_their_job() {
    let Some(rig) = Mpi::Mpich.up("runlimit", 3) else { return };
    let late = submit(Mpi::Mpich, &rig, &["-W", "1"], "eat 1");
    // of the minute itself
    std::thread::sleep(Duration::from_secs(50));
    assert_eq!(rig.stat(late), "RUN");
    assert_eq!(rig.end_of(late), "EXIT");
    assert_eq!(reason(&rig, late), "TERM_RUNLIMIT");
    wait_for("the ranks to go", || running(&rig) == 0);
}

/// All daemons of a host die. blaunch notices, and has the job ended where its launcher does not
/// end by that; once the host is back no rank is left anywhere.
fn loss_of_a_host(mpi: Mpi) {
    let Some(rig) = mpi.up("loss", 3) else { return };
    let beats = Beats::new(&rig, 6);
    let job = submit(mpi, &rig, &["-m", "host1! host2 host3"], &beats.args());
    beats.wait_for_all();
    for daemon in ["launcher", "lim", "sbatchd", "reskeeper", "res", "authd"] {
        rig.kill9(daemon, "host2");
    }
    assert_eq!(rig.end_of(job), "EXIT", "{}", rig.read("err"));
    // Intel's launcher ends at once, or waits until blaunch has said why
    let said = rig.read("err");
    let named = said.contains("blaunch: host2: ");
    assert!(named || mpi == Mpi::Intel && said.contains("abnormally"), "{said}");
    rig.start();
    wait_for("the ranks to go", || running(&rig) == 0);
}

#[test]
fn loss_of_a_host_ends_the_ranks_of_mpich() {
    loss_of_a_host(Mpi::Mpich);
}

#[test]
fn loss_of_a_host_ends_the_ranks_of_intel_mpi() {
    loss_of_a_host(Mpi::Intel);
}

#[test]
fn loss_of_a_host_ends_the_ranks_of_open_mpi() {
    loss_of_a_host(Mpi::Open);
}

/// On 40 hosts Intel's launcher calls blaunch for 16 of them, and those proxies call it for the
/// others. Each call passes a script that notes the host where it stands.
fn ranks_on_many_hosts(mpi: Mpi) {
    let Some(rig) = mpi.up("many", 40) else { return };
    let lsf = rig.path("bin/blaunch");
    let calls = rig.path("calls");
    let bin = rig.path("noting");
    std::fs::create_dir(&bin).unwrap();
    program(
        &bin.join("blaunch"),
        &format!(
            "#!/bin/sh\necho $LSF_LOCAL_HOST >> {}\nexec {} \"$@\"\n",
            calls.display(),
            lsf.display()
        ),
    );
    let line = format!(
        "echo $LSB_HOSTS > hosts; {}export LSF_BINDIR={bin} PATH={bin}:$PATH; \
         exec {} ./ranks > out 2> err",
        mpi.environment(),
        mpi.launcher(),
        bin = bin.display(),
    );
    let job = rig.bsub(&["-n", "80", "-R", "span[ptile=2]", "-o", "/dev/null", &line]);
    let end = rig.end_of(job);
    let code = rig.field(&job.to_string(), "exit_code");
    assert_eq!(end, "DONE", "{code}: {}", rig.read("err"));
    let hosts = rig.read("hosts");
    assert_eq!(sorted(&rig.read("out")), expected(&hosts), "{}", rig.read("err"));
    let first = hosts.split(' ').next().unwrap();
    let calls = rig.read("calls");
    let elsewhere = calls.lines().filter(|host| *host != first).count();
    let (all, beside) = if mpi == Mpi::Intel { (17, 15) } else { (40, 0) };
    assert!(calls.lines().count() >= all && elsewhere >= beside, "{calls}");
    wait_for("the ranks to go", || running(&rig) == 0);
}

#[test]
fn ranks_of_mpich_run_on_forty_hosts() {
    ranks_on_many_hosts(Mpi::Mpich);
}

#[test]
fn ranks_of_intel_mpi_run_on_forty_hosts_of_which_some_start_others() {
    ranks_on_many_hosts(Mpi::Intel);
}

#[test]
fn ranks_of_open_mpi_run_on_forty_hosts() {
    ranks_on_many_hosts(Mpi::Open);
}

/// The examples of the source, in C and in Python; the latter where there is an mpi4py.
#[test]
fn examples_of_parallel_jobs_run_on_all_hosts_of_their_job() {
    let name = "examples_of_parallel_jobs_run_on_all_hosts_of_their_job";
    let Some(rig) = Mpi::Mpich.up("examples", 3) else { return };
    let jobs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("conf-examples/jobs");
    let mut c = Command::new("mpicc");
    c.current_dir(&rig.dir).args(["-O2", "-o", "pi"]).arg(jobs.join("mpi.c"));
    let out = c.output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let run = |command: &str| {
        let _ = std::fs::remove_file(rig.path("pi.out"));
        let words = ["-n", "6", "-R", "span[ptile=2]", "-o", "pi.out", command];
        let job = rig.bsub(&words);
        assert_eq!(rig.end_of(job), "DONE", "{}", rig.read("pi.out"));
        rig.read("pi.out")
    };
    assert!(run("mpiexec ./pi").contains("pi is 3.141593, by 6 ranks\n"));
    // a Python beside an MPI of its own
    let python = std::env::var("LSF_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let there = Command::new(&python).args(["-c", "import mpi4py.MPI"]).output();
    if there.is_ok_and(|out| out.status.success()) {
        let out = run(&format!("mpiexec {python} {}", jobs.join("mpi.py").display()));
        assert!(out.contains("pi is 3.141593, by 6 ranks\n"), "{out}");
    } else {
        skipped(&format!("{name}, the part in Python: mpi4py is wanted"));
    }
}
