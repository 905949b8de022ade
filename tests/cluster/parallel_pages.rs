//! The examples in the pages about parallel jobs, run as they stand there: blaunch(1), pam(1),
//! TaskStarter(1), mpirun.lsf(1), lsf-parallel(7). Only names of hosts and directories are those
//! of the test. A new example is none of these lines, and fails the test until it has a row here.

use super::mpi::Mpi;
use super::pam::script;
use super::rig::{Rig, Said, job_id, wait_for};
use std::path::Path;

/// The lines of the EXAMPLES of a page, without the markup and its prompt.
fn examples(page: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("man").join(page);
    let text = std::fs::read_to_string(path).unwrap();
    let section = text.split_once("\n.SH EXAMPLES\n").unwrap().1;
    let section = section.split("\n.SH ").next().unwrap();
    let blocks = section.split(".nf\n").skip(1).map(|block| block.split("\n.fi").next().unwrap());
    let line = |line: &str| {
        let line = line.replace("\\e", "\\").replace("\\&", "");
        line.strip_prefix("$ ").unwrap_or(&line).to_owned()
    };
    blocks.flat_map(str::lines).map(line).collect()
}

/// Runs a script in a job of `bsub -n 6 -R 'span[ptile=2]'`: its output, sorted, and its code.
fn in_job(rig: &Rig, line: &str) -> (Vec<String>, String) {
    rig.write("line.sh", line);
    let args = ["-n", "6", "-R", "span[ptile=2]", "-m", "host1! host2 host3", "-o", "/dev/null"];
    let job = rig.bsub(&[&args[..], &["sh line.sh > said 2>&1"]].concat());
    rig.end_of(job);
    let mut lines: Vec<String> = rig.read("said").lines().map(str::to_owned).collect();
    lines.sort();
    (lines, rig.field(&job.to_string(), "exit_code"))
}

/// Runs a line that submits a job as a shell does; the output of the job.
fn submitted(rig: &Rig, line: &str) -> (String, String) {
    let mut c = std::process::Command::new("sh");
    rig.dress(&mut c);
    let said = Said::from(c.args(["-c", line]).output().unwrap());
    let job = job_id(&said.out).unwrap_or_else(|| panic!("{line}: {said:?}"));
    rig.end_of(job);
    (rig.read(&format!("out.{job}")), rig.field(&job.to_string(), "exit_code"))
}

#[test]
fn examples_of_blaunch_run_in_a_job_of_three_hosts() {
    let rig = Rig::up("page-blaunch", 3);
    script(&rig, "worker", "echo $LSF_LOCAL_HOST \"$@\" $(cat)");
    rig.write("input", "read\n");
    let lines = examples("blaunch.1");
    let dir = rig.path("made").display().to_string();
    for line in &lines {
        let here = line.replace("hosta", "host1").replace("hostb", "host2");
        let here = here.replace("/tmp/", &format!("{dir}/"));
        let (said, code) = in_job(&rig, &here);
        assert_eq!(code, "0", "{line}: {said:?}");
        match line.as_str() {
            "blaunch hostname" => {
                let name = Said::from(std::process::Command::new("hostname").output().unwrap());
                assert_eq!(said, vec![name.out.trim(); 6]);
            }
            "blaunch -z \"hosta hostb\" 'mkdir -p /tmp/$LSB_JOBID'" => {
                assert_eq!((said.len(), std::fs::read_dir(&dir).unwrap().count()), (0, 1));
            }
            "blaunch -no-shell hostb ./worker --rank 1 < input" => {
                assert_eq!(said, ["host2 --rank 1 read"]);
            }
            _ => panic!("{line}: has no row in this test"),
        }
    }
    assert_eq!(lines.len(), 3, "{lines:?}");
}

/// The PJL of the page of pam is written from there.
#[test]
fn examples_of_pam_and_taskstarter_run_in_a_job() {
    let rig = Rig::up("page-pam", 2);
    script(&rig, "a.out", "echo task $* > task.$LSF_TASK.$$");
    let tasks = |words: &str| {
        let all = std::fs::read_dir(&rig.dir).unwrap().flatten();
        let mine: Vec<_> =
            all.filter(|e| e.file_name().to_string_lossy().starts_with("task.")).collect();
        let like = |e: &&std::fs::DirEntry| {
            std::fs::read_to_string(e.path()).unwrap().trim_end() == format!("task{words}")
        };
        let count = mine.iter().filter(like).count();
        assert_eq!(count, mine.len());
        mine.iter().for_each(|e| std::fs::remove_file(e.path()).unwrap());
        count
    };
    let lines = examples("pam.1");
    let (pjl, commands): (Vec<String>, Vec<String>) =
        lines.iter().cloned().partition(|line| line.starts_with("    "));
    assert_eq!(pjl[0].trim(), "#!/bin/sh");
    script(&rig, "pjl", &pjl[1..].join("\n"));
    // the launcher of the second example: -np N and the application
    script(&rig, "bin/mpirun", "n=$2; shift 2; for i in $(seq $n); do \"$@\" & done; wait");
    for line in &commands {
        match line.as_str() {
            "bsub -n 4 pam -g 1 ./pjl ./a.out" => {
                let (out, code) = submitted(&rig, &line.replace("-n 4", "-n 4 -o out.%J"));
                assert_eq!((tasks(""), code.as_str()), (4, "0"), "{out}");
                assert_eq!(out.matches(" ./a.out ").count(), 4, "{out}");
                assert_eq!(out.matches(" Done ").count(), 4, "{out}");
            }
            "pam -t -v -n 2 -g 3 mpirun -np 2 ./a.out input" => {
                let (said, code) = submitted(&rig, &format!("bsub -n 2 -o out.%J '{line}'"));
                assert_eq!((tasks(" input"), code.as_str()), (2, "0"), "{said}");
                assert!(!said.contains("TID ") && said.contains(": registered\n"), "{said}");
            }
            _ => panic!("{line}: has no row in this test"),
        }
    }
    assert_eq!(commands.len(), 2, "{commands:?}");
    let lines = examples("TaskStarter.1");
    assert_eq!(lines, ["blaunch $LSF_TS $LSF_TS_OPTIONS ./a.out"]);
    script(&rig, "script", &lines[0]);
    let (said, code) = submitted(&rig, "bsub -n 4 -o out.%J pam -g ./script");
    assert_eq!((tasks(""), code.as_str()), (4, "0"), "{said}");
}

#[test]
fn examples_of_mpirun_lsf_and_of_parallel_jobs_run() {
    let Some(rig) = Mpi::Mpich.up("pages", 4) else { return };
    for name in ["a.out", "pi"] {
        std::fs::copy(rig.path("ranks"), rig.path(name)).unwrap();
    }
    let ranks = |out: &str, n: usize| {
        let own = |line: &&str| {
            let words: Vec<&str> = line.split(' ').collect();
            words.len() == 4 && words[1] == n.to_string() && words[2].starts_with("host")
        };
        assert_eq!(out.lines().filter(own).count(), n, "{out}");
    };
    let lines = examples("mpirun.lsf.1");
    for line in &lines {
        match line.as_str() {
            "bsub -a mpich -n 8 mpirun.lsf ./a.out" => {
                let (out, code) = submitted(&rig, &line.replace("-n 8", "-n 8 -o out.%J"));
                assert_eq!((code.as_str(), out.matches(" Done ").count()), ("0", 8), "{out}");
                ranks(&out, 8);
            }
            "mpirun.lsf -pam \"-t\" -np 4 ./a.out input" => {
                let line = format!("bsub -a mpich -n 4 -o out.%J '{line}'");
                let (out, code) = submitted(&rig, &line);
                assert_eq!((code.as_str(), out.contains("TID ")), ("0", false), "{out}");
                ranks(&out, 4);
            }
            _ => panic!("{line}: has no row in this test"),
        }
    }
    assert_eq!(lines.len(), 2, "{lines:?}");
    let lines = examples("lsf-parallel.7");
    for line in &lines {
        match line.as_str() {
            "bsub -n 6 -R 'span[ptile=2]' -o pi.out mpiexec ./pi" => {
                let (_, code) = submitted(&rig, line);
                wait_for("the output", || {
                    rig.read("pi.out").contains("PS:") || rig.path("pi.out").exists()
                });
                assert_eq!(code, "0", "{}", rig.read("pi.out"));
                ranks(&rig.read("pi.out"), 6);
            }
            "bsub -n 6 -R 'span[ptile=2]' -a openmpi mpirun.lsf ./pi" => open_mpi(line),
            "bsub -n 6 -R 'span[ptile=2]' blaunch hostname" => {
                let (out, code) = submitted(&rig, &line.replace("bsub", "bsub -o out.%J"));
                let name = Said::from(std::process::Command::new("hostname").output().unwrap());
                let count = out.lines().filter(|line| *line == name.out.trim()).count();
                assert_eq!((code.as_str(), count), ("0", 6), "{out}");
            }
            _ => panic!("{line}: has no row in this test"),
        }
    }
    assert_eq!(lines.len(), 3, "{lines:?}");
}

/// The line for Open MPI, where that is installed.
fn open_mpi(line: &str) {
    let Some(rig) = Mpi::Open.up("pages", 3) else { return };
    std::fs::copy(rig.path("ranks"), rig.path("pi")).unwrap();
    let line = line.replace("bsub", "bsub -o out.%J");
    let line = format!("{}{line}", Mpi::Open.environment());
    let (out, code) = submitted(&rig, &line);
    assert_eq!((code.as_str(), out.matches(" Done ").count()), ("0", 6), "{out}");
}
