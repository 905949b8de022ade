//! A job under pam that bstop stops and bresume continues: its tasks stand still, and the times of
//! pam with them (pam(1)).

use super::pam::{mark, rows, running, script, states, submit, up};
use super::rig::{Rig, kill, wait_for};
use std::time::{Duration, Instant};

/// Longer than the times of pam that the tests set.
const STOPPED: Duration = Duration::from_secs(12);

fn pause(secs: u64) {
    std::thread::sleep(Duration::from_secs(secs));
}

/// The lines that the tasks on host1 and host3 have written.
fn counts(rig: &Rig) -> [usize; 2] {
    ["n.host1", "n.host3"]
        .map(|file| std::fs::read_to_string(rig.path(file)).unwrap_or_default().lines().count())
}

/// Whether both tasks have written since.
fn grown(rig: &Rig, since: [usize; 2]) -> bool {
    counts(rig).iter().zip(since).all(|(now, then)| *now > then)
}

/// Stops a job for longer than any time of pam.
fn stop(rig: &Rig, job: u32, meanwhile: impl FnOnce()) {
    let job = job.to_string();
    rig.ok("bstop", &[&job]);
    wait_for("the job to stop", || rig.field(&job, "stat") == "USUSP");
    let began = Instant::now();
    meanwhile();
    std::thread::sleep(STOPPED.saturating_sub(began.elapsed()));
    rig.ok("bresume", &[&job]);
    wait_for("the job to go on", || rig.field(&job, "stat") == "RUN");
}

#[test]
fn tasks_of_mpirun_stand_still_while_their_job_is_stopped_and_the_delay_of_pam_too() {
    let rig = up("pam-stops");
    script(
        &rig,
        "launch.sh",
        "while test \"$1\" != \"$LSF_TS\"; do shift; done\n\
         for h in $LSB_HOSTS; do blaunch $h \"$@\" & done; wait; exit 3",
    );
    script(
        &rig,
        "app.sh",
        "echo up > up.$LSF_LOCAL_HOST\n\
         if test $LSF_LOCAL_HOST = host2; then\n\
         while ! test -e bad; do sleep 0.1; done; exit 7; fi\n\
         while :; do echo x >> n.$LSF_LOCAL_HOST; sleep 0.1; done",
    );
    let line = "export LSF_MPI_LAUNCHER=./launch.sh LSF_PAM_CLEAN_JOB_DELAY=10; \
                mpirun.lsf -pam -v ./app.sh > out 2> err";
    let args = ["-a", "mpich", "-n", "3", "-R", "span[ptile=1]", "-o", "/dev/null", line];
    let job = rig.bsub(&args);
    wait_for("the tasks", || (1..=3).all(|n| rig.path(&format!("up.host{n}")).exists()));
    rig.write("bad", "");
    wait_for("the end of one", || rig.read("err").contains(" on host2: Exit (7)\n"));
    stop(&rig, job, || {
        let mut last = counts(&rig);
        wait_for("the tasks to stand still", || {
            pause(1);
            let now = counts(&rig);
            std::mem::replace(&mut last, now) == now
        });
        let still = counts(&rig);
        pause(3);
        assert_eq!(counts(&rig), still);
    });
    // the ten seconds after which pam ends the others are not over: it was stopped in them
    let at = counts(&rig);
    wait_for("the tasks to go on", || grown(&rig, at));
    pause(2);
    let at = counts(&rig);
    pause(1);
    assert!(grown(&rig, at), "{}", rig.read("err"));
    assert_eq!(rig.end_of(job), "EXIT");
    let states = states(&rows(&rig.read("out")).1, "./app.sh");
    assert_eq!(states, ["Exit (7)", "Killed by PAM", "Killed by PAM"], "{}", rig.read("err"));
}

/// A SIGSTOP that comes while TaskStarter waits for its task to stop by SIGTSTP.
#[test]
fn task_starter_that_was_stopped_and_continued_does_not_stop_again() {
    let rig = up("pam-twice");
    script(
        &rig,
        "app.sh",
        "trap '' TSTP; echo $PPID > ppid; while ! test -e over; do sleep 0.1; done",
    );
    script(&rig, "one.sh", "exec \"$@\"");
    let job = submit(&rig, "pam -n 1 -g 1 ./one.sh ./app.sh");
    wait_for("the task", || rig.read("ppid").ends_with('\n'));
    let starter: u32 = rig.read("ppid").trim().parse().unwrap();
    let state = || {
        let stat = std::fs::read_to_string(format!("/proc/{starter}/stat")).unwrap_or_default();
        stat.rsplit(") ").next().and_then(|rest| rest.chars().next())
    };
    kill(starter, 20);
    std::thread::sleep(Duration::from_millis(200));
    kill(starter, 19);
    wait_for("TaskStarter to stop", || state() == Some('T'));
    pause(2);
    kill(starter, 18);
    pause(1);
    assert_ne!(state(), Some('T'));
    rig.write("over", "");
    assert_eq!(rig.end_of(job), "DONE", "{}", rig.read("err"));
}

#[test]
fn time_for_tasks_to_register_stands_still_while_their_job_is_stopped() {
    let rig = up("pam-stopreg");
    let word = mark(9);
    script(&rig, "never.sh", &format!("echo up > up; sleep {word}"));
    let job = submit(&rig, "LSF_HPC_PJL_LOADENV_TIMEOUT=10 pam -g 1 ./never.sh true");
    wait_for("the PJL", || rig.path("up").exists());
    stop(&rig, job, || ());
    pause(2);
    assert_eq!((rig.field(&job.to_string(), "stat"), rig.read("err")), ("RUN".into(), "".into()));
    assert_eq!(rig.end_of(job), "EXIT");
    let timeout = "pam: timeout: 0 of 3 tasks registered within 10 seconds\n";
    assert_eq!(rig.read("err"), timeout);
    assert_eq!(rig.field(&job.to_string(), "exit_code"), "125");
    wait_for("all to go", || running(&word) == 0);
}
