//! mpiexec of MPICH in a job: it sees by itself that it is in a job of LSF, and starts its proxies
//! on the other hosts by blaunch (blaunch(1)). Skipped where mpicc and mpiexec are not installed.

use super::rig::{Rig, skipped, wait_for};
use std::process::Command;

/// Prints the host of each rank, as its proxy knows it, and a sum over all ranks. With `exit N` the
/// last rank ends with N, with `kill N` by that signal, with `abort N` by MPI_Abort; with `beat
/// DIR` all write to a file of theirs for ever.
pub(super) const PROGRAM: &str = r#"
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static const char *host(void) {
    static char text[1 << 20];
    char path[64];
    int pid = getppid(), parent = 0;
    /* pam's TaskStarter stands between the proxy and the rank */
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *s = fopen(path, "r");
    if (s && fscanf(s, "%*d (TaskStarter) %*c %d", &parent) == 1) pid = parent;
    snprintf(path, sizeof path, "/proc/%d/environ", pid);
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    for (char *at = text; at < text + n; at += strlen(at) + 1)
        if (!strncmp(at, "LSF_LOCAL_HOST=", 15)) return at + 15;
    return "?";
}
int main(int argc, char **argv) {
    int rank, size, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    const char *what = argc > 2 ? argv[1] : "";
    int number = argc > 2 ? atoi(argv[2]) : 0;
    if (!strcmp(what, "beat")) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%d", argv[2], rank);
        for (long n = 0;; n++, usleep(50000)) {
            FILE *f = fopen(path, "w");
            fprintf(f, "%ld\n", n);
            fclose(f);
        }
    }
    printf("%d %d %s %d\n", rank, size, host(), sum);
    fflush(stdout);
    if (rank == size - 1 && !strcmp(what, "kill")) kill(getpid(), number);
    if (rank == size - 1 && !strcmp(what, "abort")) MPI_Abort(MPI_COMM_WORLD, number);
    MPI_Finalize();
    return rank == size - 1 && !strcmp(what, "exit") ? number : 0;
}
"#;

/// A cluster of three hosts with the program, if there is an MPICH.
pub(super) fn up(name: &str) -> Option<Rig> {
    let has = |words: [&str; 2], says: &str| {
        let out = Command::new(words[0]).arg(words[1]).output();
        out.is_ok_and(|out| String::from_utf8_lossy(&out.stdout).contains(says))
    };
    if !has(["mpiexec", "--version"], "HYDRA") || !has(["mpichversion", "--version"], "MPICH") {
        skipped(&format!("{name}: mpicc, mpiexec and mpichversion of MPICH are wanted"));
        return None;
    }
    let rig = Rig::up(name, 3);
    std::fs::write(rig.path("ranks.c"), PROGRAM).unwrap();
    let mut c = Command::new("mpicc");
    let out = c.current_dir(&rig.dir).args(["-o", "ranks", "ranks.c"]).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    Some(rig)
}

fn submit(rig: &Rig, args: &str) -> u32 {
    let line = format!("echo $LSB_HOSTS > hosts; exec mpiexec ./ranks {args} > out 2> err");
    let words = ["-n", "6", "-R", "span[ptile=2]", "-o", "/dev/null", &line];
    let _ = std::fs::remove_file(rig.path("out"));
    rig.bsub(&words)
}

/// Processes of the program, and proxies of mpiexec.
pub(super) fn running(rig: &Rig) -> usize {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let here = all.filter(|entry| {
        let cwd = std::fs::read_link(entry.path().join("cwd")).unwrap_or_default();
        let name = std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        cwd == rig.dir
            && ["ranks", "hydra_pmi_proxy", "mpiexec", "prted", "mpirun", "TaskStarter"]
                .contains(&name.trim())
    });
    here.count()
}

#[test]
fn ranks_of_mpich_run_on_the_hosts_of_their_job_in_the_order_of_its_slots() {
    let Some(rig) = up("mpich") else { return };
    let job = submit(&rig, "");
    assert_eq!(rig.end_of(job), "DONE", "{}", rig.read("err"));
    let hosts = rig.read("hosts");
    let ranks = hosts.split_whitespace().enumerate();
    let want: Vec<String> = ranks.map(|(rank, host)| format!("{rank} 6 {host} 15")).collect();
    let mut lines: Vec<String> = rig.read("out").lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, want, "{}", rig.read("err"));
    // ends of a rank are those of the job, and leave nothing behind; of a killed one MPICH 4.0 says
    // 9, or 255 where the proxies of the other hosts have noticed it themselves
    for (how, codes) in
        [("exit 7", vec!["7"]), ("kill 9", vec!["9", "137", "255"]), ("abort 5", vec!["5"])]
    {
        let job = submit(&rig, how);
        assert_eq!(rig.end_of(job), "EXIT", "{how}");
        let code = rig.field(&job.to_string(), "exit_code");
        assert!(codes.contains(&code.trim()), "{how}: {code}, {}", rig.read("err"));
        wait_for("the ranks to go", || running(&rig) == 0);
    }
}

#[test]
fn ranks_of_mpich_are_stopped_continued_and_killed_with_their_job() {
    let Some(rig) = up("mpich-act") else { return };
    let dir = rig.path("beats");
    std::fs::create_dir(&dir).unwrap();
    let job = submit(&rig, &format!("beat {}", dir.display()));
    let id = job.to_string();
    let beats = || -> Vec<String> {
        let of = |n: usize| std::fs::read_to_string(dir.join(n.to_string())).unwrap_or_default();
        (0..6).map(of).collect()
    };
    wait_for("all ranks", || beats().iter().all(|beat| !beat.is_empty()));
    let still = || {
        let before = beats();
        std::thread::sleep(std::time::Duration::from_millis(600));
        beats() == before
    };
    assert!(!still());
    rig.ok("bstop", &[&id]);
    wait_for("all to stand still", still);
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert!(still());
    rig.ok("bresume", &[&id]);
    let before = beats();
    wait_for("all to go on", || beats().iter().zip(&before).all(|(now, then)| now != then));
    rig.ok("bkill", &[&id]);
    assert_eq!(rig.end_of(job), "EXIT");
    wait_for("the ranks to go", || running(&rig) == 0);
}

/// The examples of the source, in C and in Python; the latter where there is an mpi4py.
#[test]
fn examples_of_parallel_jobs_run_on_all_hosts_of_their_job() {
    let name = "examples_of_parallel_jobs_run_on_all_hosts_of_their_job";
    let Some(rig) = up("mpich-examples") else { return };
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
    let there = Command::new("python3").args(["-c", "import mpi4py.MPI"]).output();
    if there.is_ok_and(|out| out.status.success()) {
        let out = run(&format!("mpiexec python3 {}", jobs.join("mpi.py").display()));
        assert!(out.contains("pi is 3.141593, by 6 ranks\n"), "{out}");
    } else {
        skipped(&format!("{name}, the part in Python: mpi4py is wanted"));
    }
}
