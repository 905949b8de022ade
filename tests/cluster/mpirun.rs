//! mpirun.lsf: an MPI program under pam, by the type that `bsub -a` names (mpirun.lsf(1)). The
//! tests with MPICH are skipped where it is not installed.

use super::mpich;
use super::rig::{Rig, Said, skipped, wait_for};
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

fn sorted(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn ranks_of_mpich_run_under_pam_on_the_hosts_of_their_job() {
    let Some(rig) = mpich::up("mpirun") else { return };
    let (out, err, code) = run(&rig, &["-a", "mpich"], "mpirun.lsf ./ranks");
    assert_eq!((code.as_str(), err.as_str()), ("0", ""), "{out}");
    let (ranks, table) = out.split_once("TID   HOST_NAME").expect(&out);
    let hosts = rig.read("hosts");
    let each = hosts.split_whitespace().enumerate();
    let want: Vec<String> = each.map(|(rank, host)| format!("{rank} 6 {host} 15")).collect();
    assert_eq!(sorted(ranks), want);
    for host in hosts.split_whitespace() {
        let rows = table.lines().filter(|line| line.contains(&format!(" {host} ")));
        assert_eq!(rows.filter(|line| line.contains(" ./ranks ")).count(), 2, "{table}");
    }
    assert_eq!(table.matches(" Done ").count(), 6, "{table}");
    // a rank that fails is the end of the job; mpiexec has time to end by itself, with its code
    for (how, codes, state) in
        [("exit 7", &["7"][..], "Exit (7)"), ("kill 9", &["9", "137", "255"], "Signal (9)")]
    {
        let line = format!("LSF_PAM_CLEAN_JOB_DELAY=20 mpirun.lsf ./ranks {how}");
        let (out, err, code) = run(&rig, &["-a", "mpich"], &line);
        assert!(codes.contains(&code.as_str()), "{how}: {code}: {out}{err}");
        let wrapper = rig.path("bin/mpich_wrapper");
        let title = format!("Job  {} ./ranks {how}\n", wrapper.display());
        assert!(out.contains(&title) && out.contains(state), "{how}: {out}{err}");
        wait_for("the ranks to go", || mpich::running(&rig) == 0);
    }
}

#[test]
fn tasks_are_where_their_geometry_says() {
    let Some(rig) = mpich::up("mpirun-geometry") else { return };
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
fn ranks_of_mpich_under_pam_are_killed_with_their_job() {
    let Some(rig) = mpich::up("mpirun-kill") else { return };
    let dir = rig.path("beats");
    std::fs::create_dir(&dir).unwrap();
    let line = format!("mpirun.lsf ./ranks beat {}", dir.display());
    let args = ["-a", "mpich", "-n", "6", "-R", "span[ptile=2]", "-o", "/dev/null"];
    let job = rig.bsub(&[&args[..], &[&line]].concat());
    wait_for("all ranks", || (0..6).all(|rank| dir.join(rank.to_string()).exists()));
    rig.ok("bkill", &[&job.to_string()]);
    assert_eq!(rig.end_of(job), "EXIT");
    wait_for("the ranks to go", || mpich::running(&rig) == 0);
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

/// The directory of another MPI's programs: that which the variable names.
fn programs(variable: &str) -> Option<String> {
    let dir = std::env::var(variable).ok().filter(|dir| !dir.is_empty());
    if dir.is_none() {
        skipped(&format!("mpirun: {variable}, the prefix of an installed MPI, is wanted"));
    }
    dir.map(|dir| format!("{dir}/bin"))
}

/// Open MPI knows nothing of LSF here: blaunch stands in the place of ssh.
#[test]
fn ranks_of_open_mpi_run_under_pam_and_without_it() {
    let Some(bin) = programs("LSF_TEST_OPENMPI") else { return };
    let rig = Rig::up("openmpi", 3);
    std::fs::write(rig.path("ranks.c"), mpich::PROGRAM).unwrap();
    let mut c = Command::new(format!("{bin}/mpicc"));
    let out = c.current_dir(&rig.dir).args(["-o", "ranks", "ranks.c"]).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let root = "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1";
    let root = format!("export {root} PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1");
    // the hosts are one machine here, and would take each other's shared memory for their own
    let tcp = "OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,tcp OMPI_MCA_coll=^han";
    let path = format!("{root} {tcp} PATH={bin}:$PATH LSF_PAM_CLEAN_JOB_DELAY=20");
    let own = "mpirun --prtemca plm_ssh_agent blaunch --hostfile $LSB_DJOB_HOSTFILE";
    for (line, table) in [(own, false), ("mpirun.lsf", true)] {
        let (out, err, code) = run(&rig, &["-a", "openmpi"], &format!("{path}; {line} ./ranks"));
        assert_eq!(code, "0", "{line}: {out}{err}");
        let ranks = out.lines().take(6).collect::<Vec<_>>().join("\n");
        let hosts = rig.read("hosts");
        let each = hosts.split_whitespace().enumerate();
        let want: Vec<String> = each.map(|(rank, host)| format!("{rank} 6 {host} 15")).collect();
        assert_eq!(sorted(&ranks), want, "{line}: {err}");
        assert_eq!(out.matches(" Done ").count(), if table { 6 } else { 0 }, "{out}");
        let (out, err, code) =
            run(&rig, &["-a", "openmpi"], &format!("{path}; {line} ./ranks exit 7"));
        assert_eq!(code, "7", "{line}: {out}{err}");
        wait_for("the ranks to go", || mpich::running(&rig) == 0);
    }
    let dir = rig.path("beats");
    std::fs::create_dir(&dir).unwrap();
    let line = format!("{path}; mpirun.lsf ./ranks beat {}", dir.display());
    let args = ["-a", "openmpi", "-n", "6", "-R", "span[ptile=2]", "-o", "/dev/null"];
    let job = rig.bsub(&[&args[..], &[&line]].concat());
    wait_for("all ranks", || (0..6).all(|rank| dir.join(rank.to_string()).exists()));
    rig.ok("bkill", &[&job.to_string()]);
    assert_eq!(rig.end_of(job), "EXIT");
    wait_for("the ranks to go", || mpich::running(&rig) == 0);
}

#[test]
fn ranks_of_intel_mpi_run_under_pam_and_without_it() {
    let Some(bin) = programs("LSF_TEST_IMPI") else { return };
    let rig = Rig::up("intelmpi", 3);
    // a program without MPI: the wheel has no compiler
    let text = "echo $PMI_RANK $PMI_SIZE $(tr '\\0' '\\n' < /proc/$PPID/environ | \
        sed -n 's/^LSF_LOCAL_HOST=//p')\nexit ${1:-0}\n";
    std::fs::write(rig.path("ranks"), format!("#!/bin/sh\n{text}")).unwrap();
    let chmod = Command::new("chmod").arg("+x").arg(rig.path("ranks")).status();
    assert!(chmod.unwrap().success());
    let path = format!("export PATH={bin}:$PATH I_MPI_ROOT={bin}/.. LSF_PAM_CLEAN_JOB_DELAY=20");
    for (line, table) in [("mpiexec -n 6", false), ("mpirun.lsf", true)] {
        let (out, err, code) = run(&rig, &["-a", "intelmpi"], &format!("{path}; {line} ./ranks"));
        assert_eq!(code, "0", "{line}: {out}{err}");
        let ranks: Vec<String> = out
            .lines()
            .take(6)
            .map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" "))
            .collect();
        let want: Vec<String> = (0..6).map(|rank| format!("{rank} 6")).collect();
        assert_eq!(sorted(&ranks.join("\n")), want, "{line}: {out}{err}");
        let hosts = rig.read("hosts");
        for host in hosts.split_whitespace() {
            let at = if table { format!(" {host} ") } else { format!(" {host}\n") };
            assert_eq!(out.matches(&at).count(), 2, "{line}: {host}: {out}{err}");
        }
        let (out, err, code) = run(&rig, &["-a", "intelmpi"], &format!("{path}; {line} ./ranks 7"));
        assert_eq!(code, "7", "{line}: {out}{err}");
        wait_for("the ranks to go", || mpich::running(&rig) == 0);
    }
}
