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

/// Method 1: the launcher itself is the PJL, whose words pam counts.
fn counted_words(mpi: Mpi, rig: &Rig, set: &str) {
    let launcher = mpi.launcher();
    let words = launcher.split(' ').count();
    let line = format!("{set}pam -g {words} {launcher} ./ranks");
    let (out, err, code) = run(rig, &[], &line);
    assert_eq!(code, "0", "{out}{err}");
    let (ranks, table) = out.split_once("TID   HOST_NAME").expect(&out);
    assert_eq!(sorted(ranks), expected(&rig.read("hosts")));
    assert_eq!(table.matches(" Done ").count(), 6, "{table}");
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
    counted_words(mpi, &rig, &set);
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

/// Geometries for a job of six slots on three hosts, and what is wrong with them.
const BAD_GEOMETRIES: [(&str, &str); 10] = [
    ("LSB_TASK_GEOMETRY='{(0)(2)}' mpirun.lsf", "task 2 of 2 tasks, which are 0 to 1"),
    ("LSB_TASK_GEOMETRY='{(0)(0)}' mpirun.lsf", "task 0 is there twice"),
    ("LSB_TASK_GEOMETRY='{(a)}' mpirun.lsf", "<a> is no task number"),
    ("LSB_TASK_GEOMETRY='{(0,-1)}' mpirun.lsf", "<-1> is no task number"),
    ("LSB_TASK_GEOMETRY='(0)(1)' mpirun.lsf", "{(task,...)(task,...)...} is wanted"),
    ("LSB_TASK_GEOMETRY='{(0)(1)' mpirun.lsf", "{(task,...)(task,...)...} is wanted"),
    ("LSB_TASK_GEOMETRY='{(0,1,2,3)(4,5,6)}' mpirun.lsf", "7 tasks, and the job has 6 slots"),
    ("LSB_TASK_GEOMETRY='{(0)(1)(2)(3)}' mpirun.lsf", "4 groups of tasks, and the job has 3 hosts"),
    // the hosts of -m alone count, and the first variable stands above the second
    (
        "LSB_TASK_GEOMETRY='{(0)(1)(2)}' mpirun.lsf -pam \"-m ${LSB_HOSTS%% *}\"",
        "3 groups of tasks, and the job has 1 hosts",
    ),
    ("LSB_PJL_TASK_GEOMETRY='{(x)}' LSB_TASK_GEOMETRY='{(0)}' mpirun.lsf", "<x> is no task number"),
];

#[test]
fn type_or_geometry_that_does_not_fit_runs_nothing() {
    let rig = Rig::up("mpirun-bad", 3);
    let bin = rig.path("bin");
    let there = "intelmpi, mpich, mpich2, mpich3, mvapich, openmpi";
    let unset = || "mpirun.lsf: LSF_PJL_TYPE is not set: submit with bsub -a TYPE\n".to_owned();
    let unknown = |kind: &str| {
        let bin = bin.display();
        format!("mpirun.lsf: no MPI of type {kind} in {bin}; there are: {there}\n")
    };
    for (line, err) in [
        ("mpirun.lsf ./a", unset()),
        ("LSF_PJL_TYPE= mpirun.lsf ./a", unset()),
        ("LSF_PJL_TYPE=poe mpirun.lsf ./a", unknown("poe")),
        ("LSF_PJL_TYPE=../bin/mpich mpirun.lsf ./a", unknown("../bin/mpich")),
        ("LSF_PJL_TYPE='mpich openmpi' mpirun.lsf ./a", unknown("mpich openmpi")),
    ] {
        let (out, said, ended) = run(&rig, &[], line);
        assert_eq!((ended.as_str(), said, out.as_str()), ("1", err, ""), "{line}");
    }
    for (words, why) in BAD_GEOMETRIES {
        let (line, err) =
            (words.to_owned() + " ./a", format!("mpirun.lsf: bad task geometry: {why}\n"));
        let (out, said, ended) = run(&rig, &["-a", "mpich"], &line);
        assert_eq!((ended.as_str(), said, out.as_str()), ("255", err, ""), "{line}");
    }
    // a launcher that cannot be run is told by the wrapper's shell or by pam, as a file of any name
    let (_, said, ended) = run(&rig, &["-a", "mpich"], "LSF_MPI_LAUNCHER=./none mpirun.lsf ./a");
    assert!(ended == "127" && said.contains("./none: not found"), "{ended} {said}");
    rig.write("bin/plain_wrapper", "#!/bin/sh\n");
    let (_, said, ended) = run(&rig, &[], "LSF_PJL_TYPE=plain mpirun.lsf ./a");
    let wrapper = bin.join("plain_wrapper");
    let told = format!("mpirun.lsf: cannot start {}: Permission denied\n", wrapper.display());
    assert_eq!((ended.as_str(), said), ("126", told));
    // no file with the hosts of tasks is left
    let line = "LSB_TASK_GEOMETRY='{(0)(1)}' LSF_MPI_LAUNCHER=./none mpirun.lsf ./a 2> /dev/null; \
                ls -A ${LSB_DJOB_HOSTFILE%/*} | grep -c geometry";
    let (out, _, _) = run(&rig, &["-a", "mpich"], line);
    assert_eq!(out, "0\n");
    let usage = |words: &[&str]| {
        let Said { code, err, .. } = rig.run("mpirun.lsf", words);
        (code, err.lines().next().unwrap_or_default().to_owned())
    };
    assert_eq!(usage(&[]), (255, "no program".into()));
    assert_eq!(usage(&["-pam"]), (255, "-pam: a word is missing".into()));
    let set = |words: &[&str]| {
        let mut c = rig.cmd("mpirun.lsf");
        let said = Said::from(c.env("LSF_PJL_TYPE", "mpich").args(words).output().unwrap());
        (said.code, said.err.lines().next().unwrap_or_default().to_owned())
    };
    for (words, why) in [
        (&["./a"][..], "mpirun.lsf: not inside a batch job"),
        (&["-pam", "-g 1", "./a"], "-pam: -g is put in by mpirun.lsf"),
        (&["-pam", "-n x", "./a"], "-pam: -n x: not a number of tasks"),
        (&["-pam", "-what", "./a"], "-pam: -what: no option of pam; -g is wanted"),
    ] {
        assert_eq!(set(words), (255, why.to_owned()), "{words:?}");
    }
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
