//! A host whose daemons were all killed, or that was started again. For the latter its daemons die,
//! and those that come next see another boot ID, as a file that is mounted over the system's has
//! it. The processes of before stay alive and stand for those that have their numbers after a real
//! start: nobody may touch them.

use super::host_death::{host, kill_daemons, up};
use super::parallel_losses::{nothing_left, with_word, word};
use super::rig::{Rig, alive, kill, skipped, wait_for};
use std::os::unix::ffi::OsStringExt;
use std::process::{Command, Stdio};

/// Can a file be mounted over the boot ID here? Else the test counts as skipped.
fn possible(name: &str, rig: &Rig) -> bool {
    rig.write("boot", "11111111-2222-3333-4444-555555555555\n");
    let mut c = Command::new("unshare");
    c.args(["-m", "mount", "--bind"]).arg(rig.path("boot"));
    let status = c.arg("/proc/sys/kernel/random/boot_id").stderr(Stdio::null()).status();
    let can = status.is_ok_and(|status| status.success());
    if !can {
        skipped(&format!("{name}: needs root and mounts of its own"));
    }
    can
}

/// The words or variables in a file of /proc.
fn words(pid: u32, file: &str) -> Vec<std::ffi::OsString> {
    let text = std::fs::read(format!("/proc/{pid}/{file}")).unwrap();
    let words = text.split(|b| *b == 0).filter(|word| !word.is_empty());
    words.map(|word| std::ffi::OsString::from_vec(word.to_vec())).collect()
}

/// All daemons of a host die, and its launcher starts as after a start of the host.
fn restart(rig: &Rig, name: &str) {
    let launcher = rig.pid("launcher", name).unwrap();
    let (line, environment) = (words(launcher, "cmdline"), words(launcher, "environ"));
    let exe = std::fs::read_link(format!("/proc/{launcher}/exe")).unwrap();
    let cwd = std::fs::read_link(format!("/proc/{launcher}/cwd")).unwrap();
    kill_daemons(rig, name);
    let mut c = Command::new("unshare");
    c.args(["-m", "sh", "-c"]);
    c.arg("mount --bind \"$1\" /proc/sys/kernel/random/boot_id && shift && exec setsid \"$@\"");
    c.arg("sh").arg(rig.path("boot")).arg(exe).args(&line).env_clear();
    for variable in &environment {
        let variable = variable.to_str().unwrap();
        let (name, value) = variable.split_once('=').unwrap();
        c.env(name, value);
    }
    c.current_dir(cwd).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    c.spawn().unwrap();
    wait_for("the launcher", || rig.pid("launcher", name).is_some());
    wait_for("the host", || host(rig, name) == "ok");
}

/// A job that has a task on host2, and wants another one there later.
fn with_a_later_task(rig: &Rig, word: &str) -> u32 {
    let line = format!(
        "blaunch -no-wait host2 sleep {word}; touch ready; while ! test -e go; do sleep 0.1; done; \
         blaunch host2 echo again; echo code $?"
    );
    let job = rig.bsub(&[&PARALLEL[..], &[&format!("{{ {line}; }} > said 2>&1")]].concat());
    wait_for("the task", || rig.path("ready").exists() && !with_word(word, None).is_empty());
    job
}

const PARALLEL: [&str; 8] =
    ["-n", "2", "-R", "span[ptile=1]", "-m", "host1! host2", "-o", "/dev/null"];

#[test]
fn job_has_tasks_again_on_a_host_whose_daemons_were_all_killed() {
    let rig = up("daemons-killed");
    let word = word(604);
    let job = with_a_later_task(&rig, &word);
    kill_daemons(&rig, "host2");
    rig.start();
    wait_for("the host", || host(&rig, "host2") == "ok");
    rig.write("go", "");
    assert_eq!((rig.end_of(job), rig.read("said")), ("DONE".into(), "again\ncode 0\n".into()));
    nothing_left(&rig, &word, "host2");
}

#[test]
fn jobs_of_a_host_that_was_started_again_are_lost_and_no_process_is_taken_for_theirs() {
    let name = "jobs_of_a_host_that_was_started_again_are_lost_and_no_process_is_taken_for_theirs";
    let rig = up("reboot");
    if !possible(name, &rig) {
        return;
    }
    let [plain, rerun, task, other] = [600, 601, 602, 603].map(word);
    let sleeps = |args: &[&str], word: &str| {
        let line = format!("exec sleep {word}");
        let job = rig.bsub(&[args, &["-o", "/dev/null", &line]].concat());
        wait_for("the job to run", || rig.stat(job) == "RUN" && !with_word(word, None).is_empty());
        job
    };
    let lost = sleeps(&["-m", "host2"], &plain);
    let again = sleeps(&["-r", "-m", "host2+5 host3"], &rerun);
    // one job is without a task on the host when that starts, one waits for a task there
    let member = with_a_later_task(&rig, &task);
    let waits = format!("blaunch host2 sleep {other}; echo code $?");
    let waiting = rig.bsub(&[&PARALLEL[..], &[&format!("{{ {waits}; }} > waited 2>&1")]].concat());
    wait_for("its task", || !with_word(&other, None).is_empty());
    let words = [&plain, &rerun, &task, &other];
    let all = words.map(|word| with_word(word, Some("host2")));
    restart(&rig, "host2");

    assert_eq!(rig.end_of(lost), "EXIT");
    wait_for("the job to run again", || rig.stat(again) == "RUN");
    assert_eq!(rig.end_of(waiting), "EXIT", "{}", rig.read("waited"));
    assert!(rig.read("waited").contains("blaunch: host2: "), "{}", rig.read("waited"));
    rig.write("go", "");
    assert_eq!((rig.end_of(member), rig.read("said")), ("DONE".into(), "again\ncode 0\n".into()));
    rig.ok("bkill", &[&again.to_string()]);
    assert_eq!(rig.end_of(again), "EXIT");
    let alive: [Vec<u32>; 4] =
        all.clone().map(|pids| pids.into_iter().filter(|pid| alive(*pid)).collect());
    all.iter().flatten().filter(|pid| super::rig::alive(**pid)).for_each(|pid| kill(*pid, 9));
    rig.down();
    assert_eq!(all, alive);
    assert!(all.iter().all(|pids| !pids.is_empty()), "{all:?}");
}
