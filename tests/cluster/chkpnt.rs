//! Checkpoints and restarts with real processes, by the method of conf-examples/checkpoint.

use super::rig::{Rig, job_id, skipped, wait_for};
use std::path::{Path, PathBuf};

/// A cluster with the method of the example, and the directory of its checkpoints.
fn cluster(name: &str, hosts: usize) -> (Rig, PathBuf) {
    let rig = Rig::up(name, hosts);
    let methods = Path::new(env!("CARGO_MANIFEST_DIR")).join("conf-examples/checkpoint");
    rig.set_conf("LSB_ECHKPNT_METHOD_DIR", &methods.display().to_string());
    let said = rig.run("badmin", &["reconfig", "-f"]);
    assert_eq!(said.code, 0, "{said:?}");
    let dir = rig.path("chk");
    std::fs::create_dir(&dir).unwrap();
    (rig, dir)
}

fn count() -> String {
    let methods = Path::new(env!("CARGO_MANIFEST_DIR")).join("conf-examples/checkpoint");
    methods.join("count").display().to_string()
}

/// The program criu: that of LSF_TEST_CRIU, else of PATH; `None` where there is none.
fn criu() -> Option<String> {
    let program = std::env::var("LSF_TEST_CRIU").unwrap_or_else(|_| "criu".into());
    let found = std::process::Command::new(&program).arg("--version").output();
    found.is_ok_and(|said| said.status.success()).then_some(program)
}

/// Whether CRIU can work with the kernel of this machine.
fn criu_works(program: &str) -> bool {
    let said = std::process::Command::new(program).arg("check").output();
    said.is_ok_and(|said| said.status.success())
}

/// The numbers that the program has counted into a file.
fn numbers(path: &Path) -> Vec<u64> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

fn saved(dir: &Path, job: u32) -> Option<u64> {
    let text = std::fs::read_to_string(dir.join(job.to_string()).join("counter")).ok()?;
    text.trim().parse().ok()
}

/// Submits the counting program to host1; it counts into a file.
fn counting(rig: &Rig, dir: &Path, out: &Path, more: &[&str]) -> u32 {
    let option = format!("{} method=counter", dir.display());
    let mut args = vec!["-k", &option, "-o", "/dev/null", "-env", "all, STEP=0.1"];
    args.extend(more);
    rig.ok("badmin", &["hclose", "host2"]);
    let redirected = rig.path("count");
    let text = format!("#!/bin/sh\nexec {} \"$@\" >> {}\n", count(), out.display());
    super::rig::program(&redirected, &text);
    let line = format!("{} 0", redirected.display());
    args.push(&line);
    let job = rig.bsub(&args);
    wait_for("the first numbers", || numbers(out).len() > 2);
    wait_for("RUN", || rig.stat(job) == "RUN");
    job
}

#[test]
fn a_counter_is_checkpointed_killed_and_goes_on_from_its_number_on_another_host() {
    let (rig, dir) = cluster("chkpnt", 2);
    let out = rig.path("numbers");
    let job = counting(&rig, &dir, &out, &["-J", "counter"]);
    let id = job.to_string();
    // once more while the job goes on
    assert_eq!(rig.ok("bchkpnt", &[&id]), format!("Job <{id}> is being checkpointed\n"));
    wait_for("a checkpoint", || rig.ok("bhist", &["-l", &id]).contains("Checkpoint succeeded"));
    let first = saved(&dir, job).unwrap();
    wait_for("more numbers", || *numbers(&out).last().unwrap() > first);
    assert_eq!(rig.stat(job), "RUN");
    // and to end it
    rig.ok("bchkpnt", &["-k", &id]);
    assert_eq!(rig.end_of(job), "EXIT");
    let last = saved(&dir, job).unwrap();
    assert!(last > first);
    assert_eq!(numbers(&out).last(), Some(&last), "nothing is counted after the checkpoint");
    let why = rig.ok("bjobs", &["-l", &id]);
    assert!(why.contains("TERM_CHKPNT"), "{why}");
    // without the breaks of long lines
    let why: String = why.lines().map(str::trim_start).collect();
    assert!(why.contains(&format!("Checkpoint directory <{}>", dir.display())), "{why}");
    rig.ok("badmin", &["hclose", "host1"]);
    rig.ok("badmin", &["hopen", "host2"]);
    let said = rig.ok("brestart", &[dir.to_str().unwrap(), &id]);
    let again = job_id(&said).unwrap();
    wait_for("later numbers", || *numbers(&out).last().unwrap() > last + 2);
    assert_eq!(rig.field(&again.to_string(), "exec_host"), "host2");
    assert_eq!(rig.field(&again.to_string(), "job_name"), "counter");
    let all = numbers(&out);
    let after: Vec<u64> = all.iter().copied().skip_while(|n| *n != last).collect();
    assert!(after.windows(2).all(|two| two[1] == two[0] + 1), "{after:?}");
    // the directory is that of the new job, and the old name leads there
    let link = std::fs::read_link(dir.join(&id)).unwrap();
    assert_eq!(link, PathBuf::from(again.to_string()));
    let log = std::fs::read_to_string(dir.join(again.to_string()).join("chklog")).unwrap();
    assert!(log.contains("checkpoint by counter succeeded"), "{log}");
    assert!(log.contains(&format!("restart of job {id}")), "{log}");
    rig.run("bkill", &[&again.to_string()]);
}

#[test]
fn a_checkpointable_job_migrates_and_one_whose_checkpoint_fails_goes_on() {
    let (rig, dir) = cluster("chkmig", 2);
    let out = rig.path("numbers");
    let job = counting(&rig, &dir, &out, &[]);
    let id = job.to_string();
    rig.ok("badmin", &["hclose", "host1"]);
    rig.ok("badmin", &["hopen", "host2"]);
    assert_eq!(rig.ok("bmig", &[&id]), format!("Job <{id}> is being migrated\n"));
    wait_for("the second run", || rig.field(&id, "exec_host") == "host2");
    let last = saved(&dir, job).unwrap();
    wait_for("later numbers", || *numbers(&out).last().unwrap() > last + 1);
    let all = numbers(&out);
    assert!(all.windows(2).all(|two| two[1] == two[0] + 1), "{all:?}");
    rig.ok("badmin", &["hopen", "host1"]);
    // a method that fails: the job is neither ended nor moved
    let bad = rig.bsub(&["-k", &format!("{} method=none", dir.display()), "sleep 4000"]);
    wait_for("RUN", || rig.stat(bad) == "RUN");
    let bad_id = bad.to_string();
    rig.ok("bmig", &[&bad_id]);
    wait_for("the failure", || rig.ok("bhist", &["-l", &bad_id]).contains("Checkpoint failed"));
    assert_eq!(rig.stat(bad), "RUN");
    let said = rig.run("brestart", &[dir.to_str().unwrap(), &bad_id]);
    assert_eq!(said.code, 255, "{said:?}");
    // a job that has no directory
    let plain = rig.bsub(&["-o", "/dev/null", "sleep 4000"]);
    wait_for("RUN", || rig.stat(plain) == "RUN");
    let said = rig.run("bchkpnt", &[&plain.to_string()]);
    assert_eq!(said.err, format!("Job <{plain}>: Job is not checkpointable\n"));
    rig.run("bkill", &["0"]);
}

#[test]
fn a_migrated_job_whose_restart_fails_on_a_host_waits_and_goes_on_from_its_checkpoint() {
    let (rig, dir) = cluster("chkfail", 2);
    let (out, blocked) = (rig.path("numbers"), rig.path("blocked"));
    let methods = Path::new(env!("CARGO_MANIFEST_DIR")).join("conf-examples/checkpoint");
    let own = rig.path("methods");
    std::fs::create_dir(&own).unwrap();
    std::fs::copy(methods.join("echkpnt.counter"), own.join("echkpnt.counter")).unwrap();
    let text = format!(
        "#!/bin/sh\ntest ! -e {} || {{ echo no licence >&2; exit 3; }}\nexec {}/erestart.counter \"$@\"\n",
        blocked.display(),
        methods.display()
    );
    super::rig::program(&own.join("erestart.counter"), &text);
    rig.set_conf("LSB_ECHKPNT_METHOD_DIR", &own.display().to_string());
    assert_eq!(rig.run("badmin", &["reconfig", "-f"]).code, 0);
    std::fs::write(&blocked, "").unwrap();
    let job = counting(&rig, &dir, &out, &[]);
    let id = job.to_string();
    rig.ok("badmin", &["hclose", "host1"]);
    rig.ok("badmin", &["hopen", "host2"]);
    rig.ok("bmig", &[&id]);
    let log = || std::fs::read_to_string(dir.join(&id).join("chklog")).unwrap_or_default();
    wait_for("a restart that fails", || log().contains("restart of job"));
    assert!(log().contains("exit status: 3: no licence"), "{}", log());
    wait_for("PEND", || rig.stat(job) == "PEND");
    let last = saved(&dir, job).unwrap();
    assert_eq!(numbers(&out).last(), Some(&last), "nothing is counted without a restart");
    std::fs::remove_file(&blocked).unwrap();
    wait_for("later numbers", || *numbers(&out).last().unwrap() > last + 1);
    assert_eq!(rig.field(&id, "exec_host"), "host2");
    let all = numbers(&out);
    assert!(all.windows(2).all(|two| two[1] == two[0] + 1), "{all:?}");
    rig.run("bkill", &["0"]);
}

/// Submits a program that knows nothing of checkpoints: it counts into a file, and ends with 7 when
/// `stop` is there.
fn unaware(rig: &Rig, criu: &str, dir: &Path, out: &Path, stop: &Path) -> u32 {
    let program = rig.path("unaware");
    let text = format!(
        "#!/bin/sh\nn=0\nwhile [ ! -e {} ]; do\nn=$((n + 1))\necho $n >> {}\necho said $n\n\
         sleep 0.1\ndone\nexit 7\n",
        stop.display(),
        out.display()
    );
    super::rig::program(&program, &text);
    let option = format!("{} method=criu", dir.display());
    let variable = format!("all, CRIU={criu}");
    let output = rig.path("said.%J").display().to_string();
    let program = program.display().to_string();
    let job = rig.bsub(&["-k", &option, "-o", &output, "-env", &variable, &program]);
    wait_for("the first numbers", || numbers(out).len() > 2);
    job
}

#[test]
fn any_program_is_saved_and_goes_on_by_criu_where_the_kernel_allows_it() {
    let Some(criu) = criu() else { return skipped("criu is not installed") };
    let (rig, dir) = cluster("criu", 1);
    let (out, stop) = (rig.path("numbers"), rig.path("stop"));
    let job = unaware(&rig, &criu, &dir, &out, &stop);
    let id = job.to_string();
    let log = |job: u32| {
        std::fs::read_to_string(dir.join(job.to_string()).join("chklog")).unwrap_or_default()
    };
    rig.ok("bchkpnt", &["-k", &id]);
    if !criu_works(&criu) {
        wait_for("the failure", || rig.ok("bhist", &["-l", &id]).contains("Checkpoint failed"));
        let words = log(job);
        assert!(words.contains("echkpnt.criu: exit status: 1: CRIU does not work on "), "{words}");
        assert!(words.contains("Error"), "the words of CRIU: {words}");
        assert_eq!(rig.stat(job), "RUN");
        rig.run("bkill", &[&id]);
        return skipped("criu does not work with this kernel: nothing was saved");
    }
    assert_eq!(rig.end_of(job), "EXIT", "{}", log(job));
    let last = *numbers(&out).last().unwrap();
    let restart = |id: &str| {
        let mut brestart = rig.cmd("brestart");
        let said = brestart.env("CRIU", &criu).arg(&dir).arg(id).output().unwrap();
        job_id(&String::from_utf8_lossy(&said.stdout)).unwrap_or_else(|| panic!("{said:?}"))
    };
    let again = restart(&id);
    wait_for("later numbers", || *numbers(&out).last().unwrap() > last + 2);
    let all = numbers(&out);
    assert!(all.windows(2).all(|two| two[1] == two[0] + 1), "{all:?}");
    // the restarted job is stopped, resumed, saved and restarted like any other
    let again_id = again.to_string();
    rig.ok("bstop", &[&again_id]);
    wait_for("USUSP", || rig.stat(again) == "USUSP");
    let stopped = numbers(&out).len();
    std::thread::sleep(std::time::Duration::from_millis(400));
    assert!(numbers(&out).len() <= stopped + 1, "the processes do not run");
    rig.ok("bresume", &[&again_id]);
    wait_for("more numbers", || numbers(&out).len() > stopped + 2);
    rig.ok("bchkpnt", &["-k", &again_id]);
    assert_eq!(rig.end_of(again), "EXIT", "{}", log(again));
    let last = *numbers(&out).last().unwrap();
    let third = restart(&again_id);
    wait_for("later numbers", || *numbers(&out).last().unwrap() > last + 2);
    std::fs::write(&stop, "").unwrap();
    assert_eq!(rig.end_of(third), "EXIT");
    assert_eq!(rig.field(&third.to_string(), "exit_code"), "7");
    let said = std::fs::read_to_string(rig.path(&format!("said.{third}"))).unwrap();
    assert!(said.contains(&format!("said {}\n", last + 2)), "{said}");
}
