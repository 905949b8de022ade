//! mpirun.lsf: an MPI program under pam, by the type that `bsub -a` names (mpirun.lsf(1)).

use super::mpi::{Beats, Mpi, expected, running, sorted};
use super::rig::{Rig, Said, wait_for};
use std::process::Command;

/// The output, the error output and the exit code of a job on three hosts with these words.
fn run(rig: &Rig, words: &[&str], line: &str) -> (String, String, String) {
    for file in ["out", "err"] {
        let _ = std::fs::remove_file(rig.path(file));
    }
    let line = format!("echo $LSB_HOSTS > hosts; {line} > out 2> err");
    let args = ["-n", "6", "-R", "span[ptile=2]", "-o", "/dev/null"];
    let job = rig.bsub(&[words, &args[..], &[&line]].concat());
    rig.end_of(job);
    (rig.read("out"), rig.read("err"), rig.field(&job.to_string(), "exit_code"))
}

fn ranks_under_pam(mpi: Mpi) {
    let Some(rig) = mpi.up("pam", 3) else { return };
    // a rank that fails ends the job; the launcher has time to end by itself, with its code
    let set = format!("{}export LSF_PAM_CLEAN_JOB_DELAY=20; ", mpi.environment());
    let (out, err, code) = run(&rig, &["-a", mpi.kind()], &format!("{set}mpirun.lsf ./ranks"));
    // a blaunch may run before Open MPI has given it its process group, of which it warns
    let warns = |line: &&str| mpi == Mpi::Open && line.contains("plm:ssh: Warning: setpgid(");
    let said: Vec<&str> = err.lines().filter(|line| !warns(line)).collect();
    assert_eq!((code.as_str(), &said[..]), ("0", &[][..]), "{out}{err}");
    let (ranks, table) = out.split_once("TID   HOST_NAME").expect(&out);
    let hosts = rig.read("hosts");
    assert_eq!(sorted(ranks), expected(&hosts));
    for host in hosts.split_whitespace() {
        let rows = table.lines().filter(|line| line.contains(&format!(" {host} ")));
        assert_eq!(rows.filter(|line| line.contains(" ./ranks ")).count(), 2, "{table}");
    }
    assert_eq!(table.matches(" Done ").count(), 6, "{table}");
    for (how, state) in [("exit 7", "Exit (7)"), ("kill 9", "Signal (9)")] {
        let line = format!("{set}mpirun.lsf ./ranks {how}");
        let (out, err, code) = run(&rig, &["-a", mpi.kind()], &line);
        assert!(mpi.codes(how).contains(&code.as_str()), "{how}: {code}: {out}{err}");
        let wrapper = rig.path(&format!("bin/{}_wrapper", mpi.kind()));
        let title = format!("Job  {} ./ranks {how}\n", wrapper.display());
        assert!(out.contains(&title) && out.contains(state), "{how}: {out}{err}");
        wait_for("the ranks to go", || running(&rig) == 0);
    }
    let beats = Beats::new(&rig, 6);
    let line = format!("{set}mpirun.lsf ./ranks {}", beats.args());
    let args = ["-a", mpi.kind(), "-n", "6", "-R", "span[ptile=2]", "-o", "/dev/null"];
    let job = rig.bsub(&[&args[..], &[&line]].concat());
    beats.wait_for_all();
    rig.ok("bkill", &[&job.to_string()]);
    assert_eq!(rig.end_of(job), "EXIT");
    wait_for("the ranks to go", || running(&rig) == 0);
}

#[test]
fn ranks_of_mpich_run_under_pam_on_the_hosts_of_their_job() {
    ranks_under_pam(Mpi::Mpich);
}

#[test]
fn ranks_of_intel_mpi_run_under_pam_on_the_hosts_of_their_job() {
    ranks_under_pam(Mpi::Intel);
}

#[test]
fn ranks_of_open_mpi_run_under_pam_on_the_hosts_of_their_job() {
    ranks_under_pam(Mpi::Open);
}

#[test]
fn tasks_are_where_their_geometry_says() {
    let Some(rig) = Mpi::Mpich.up("geometry", 3) else { return };
    let geometry = "LSB_PJL_TASK_GEOMETRY='{(2,4)(0,1)(3)}'";
    let (out, err, code) =
        run(&rig, &["-a", "mpich"], &format!("{geometry} mpirun.lsf -pam -t ./ranks"));
    assert_eq!((code.as_str(), err.as_str()), ("0", ""), "{out}");
    let hosts = rig.read("hosts");
    let host: Vec<&str> = hosts.split_whitespace().step_by(2).collect();
    let want: Vec<String> = [1, 1, 0, 2, 0]
        .iter()
        .enumerate()
        .map(|(rank, at)| format!("{rank} 5 {} 10", host[*at]))
        .collect();
    assert_eq!(sorted(&out), want);
}

#[test]
fn type_or_geometry_that_does_not_fit_runs_nothing() {
    let rig = Rig::up("mpirun-bad", 3);
    let bin = rig.path("bin");
    let there = "intelmpi, mpich, mpich2, mpich3, mvapich, openmpi";
    let unset = "mpirun.lsf: LSF_PJL_TYPE is not set: submit with bsub -a TYPE\n".to_owned();
    let unknown =
        format!("mpirun.lsf: no MPI of type poe in {}; there are: {there}\n", bin.display());
    let bad = |why: &str| format!("mpirun.lsf: bad task geometry: {why}\n");
    for (line, code, err) in [
        ("mpirun.lsf ./a", "1", unset),
        ("LSF_PJL_TYPE=poe mpirun.lsf ./a", "1", unknown),
        (
            "LSB_TASK_GEOMETRY='{(0)(2)}' mpirun.lsf ./a",
            "255",
            bad("task 2 of 2 tasks, which are 0 to 1"),
        ),
        ("LSB_TASK_GEOMETRY='{(0)(0)}' mpirun.lsf ./a", "255", bad("task 0 is there twice")),
        ("LSB_TASK_GEOMETRY='{(a)}' mpirun.lsf ./a", "255", bad("<a> is no task number")),
        (
            "LSB_TASK_GEOMETRY='{(0)(1)(2)(3)}' mpirun.lsf ./a",
            "255",
            bad("4 groups of tasks, and the job has 3 hosts"),
        ),
    ] {
        let kind: &[&str] = if code == "1" { &[] } else { &["-a", "mpich"] };
        let (out, said, ended) = run(&rig, kind, line);
        assert_eq!((ended.as_str(), said, out.as_str()), (code, err, ""), "{line}");
    }
    let usage = |words: &[&str]| {
        let Said { code, err, .. } = rig.run("mpirun.lsf", words);
        (code, err.lines().next().unwrap_or_default().to_owned())
    };
    assert_eq!(usage(&[]), (255, "no program".into()));
    assert_eq!(usage(&["-pam"]), (255, "-pam: a word is missing".into()));
}

#[test]
fn wrapper_puts_its_options_and_the_starter_among_the_words() {
    let rig = Rig::up("mpirun-words", 3);
    let bin = rig.path("bin");
    // a launcher that shows its words
    std::fs::write(rig.path("show"), "#!/bin/sh\nfor word; do echo \"$word\"; done\nexit 3\n")
        .unwrap();
    let chmod = Command::new("chmod").arg("+x").arg(rig.path("show")).status();
    assert!(chmod.unwrap().success());
    let line = "LSF_MPI_LAUNCHER=./show mpirun.lsf -pam '-t' -np 2 -env A 'b c' ./a 'x  y'";
    let (out, _, code) = run(&rig, &["-a", "intelmpi"], line);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(
        (&lines[..10], code.as_str()),
        (
            &[
                "-bootstrap",
                "lsf",
                "-rmk",
                "lsf",
                "-np",
                "2",
                "-env",
                "A",
                "b c",
                &*format!("{}/TaskStarter", bin.display())
            ][..],
            "3",
        )
    );
    assert_eq!(
        &lines[lines.len() - 4..],
        [
            "./a",
            "x  y",
            &format!("Job  {}/intelmpi_wrapper -np 2 -env A b c ./a x  y", bin.display()),
            ""
        ]
    );
}
