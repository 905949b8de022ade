//! TaskStarters whose connection to pam is cut come back with their task, and the end of tasks when
//! too few have registered (pam(1), TaskStarter(1)).

use super::pam::{mark, rows, running, script, states, submit, up};
use super::rig::{Rig, kill, wait_for};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Cuts the connection of a TaskStarter to this port, as a loss of the network would: both sides
/// find it closed.
fn cut(starter: u32, port: u16) {
    use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
    let pid = Pid::from_raw(starter as i32).unwrap();
    let of = pidfd_open(pid, PidfdFlags::empty()).unwrap();
    let mut many = 0;
    for entry in std::fs::read_dir(format!("/proc/{starter}/fd")).unwrap().flatten() {
        let number: i32 = entry.file_name().to_string_lossy().parse().unwrap();
        let is = std::fs::read_link(entry.path());
        if !is.is_ok_and(|name| name.to_string_lossy().starts_with("socket:")) {
            continue;
        }
        let sock = pidfd_getfd(&of, number, PidfdGetfdFlags::empty()).unwrap();
        let peer = rustix::net::getpeername(&sock).ok().flatten();
        let peer = peer.and_then(|addr| SocketAddr::try_from(addr).ok());
        if peer.is_some_and(|peer| peer.port() == port) {
            rustix::net::shutdown(&sock, rustix::net::Shutdown::Both).unwrap();
            many += 1;
        }
    }
    assert_eq!(many, 1, "connections to pam");
}

/// A job of three tasks that end when a file is there, the one on host2 badly; the port of its pam,
/// and the TaskStarter of host2.
fn waiting(rig: &Rig) -> (u32, u16, u32) {
    script(
        rig,
        "app.sh",
        "echo $PPID > ts.$LSF_LOCAL_HOST; while ! test -e go; do sleep 0.1; done\n\
         test $LSF_LOCAL_HOST = host2 && exit 3; exit 0",
    );
    script(rig, "pjl.sh", "echo $LSF_TS_OPTIONS > options; exec ./pjl1.sh \"$@\"");
    let line = "echo $$ > pam.pid; LSF_PAM_CLEAN_JOB_DELAY=20 exec pam -v -g 1 ./pjl.sh ./app.sh";
    let job = submit(rig, line);
    let told = |n: u32| rig.read("err").contains(&format!("task {n} on "));
    wait_for("the tasks", || (0..3).all(told) && rig.read("err").matches("started").count() == 3);
    wait_for("the TaskStarter", || rig.read("ts.host2").ends_with('\n'));
    let options = rig.read("options");
    let at = options.split_whitespace().nth(1).unwrap();
    let port = at.rsplit(':').next().unwrap().parse().unwrap();
    (job, port, rig.read("ts.host2").trim().parse().unwrap())
}

fn ends(rig: &Rig, job: u32) {
    assert_eq!(rig.end_of(job), "DONE", "{}", rig.read("err"));
    let states = states(&rows(&rig.read("out")).1, "./app.sh");
    assert_eq!(states, ["Done", "Done", "Exit (3)"], "{}", rig.read("err"));
}

#[test]
fn starter_whose_connection_to_pam_is_cut_comes_back_and_tells_the_end_of_its_task() {
    let rig = up("pam-cut");
    let (job, port, starter) = waiting(&rig);
    for n in 1..=2 {
        cut(starter, port);
        let many = |words: &str| rig.read("err").matches(words).count();
        wait_for("the loss", || many(" on host2: its TaskStarter is lost") == n);
        wait_for("it to be back", || many(" on host2: connected again") == n);
    }
    rig.write("go", "");
    ends(&rig, job);
}

/// pam answers nobody while the task ends; its TaskStarter waits, and the PJL with it.
#[test]
fn end_of_a_task_is_told_to_a_pam_that_was_not_reached_when_it_ended() {
    let rig = up("pam-away");
    let (job, port, starter) = waiting(&rig);
    let pam: u32 = rig.read("pam.pid").trim().parse().unwrap();
    kill(pam, 19);
    cut(starter, port);
    rig.write("go", "");
    let child = || std::fs::read_to_string(format!("/proc/{starter}/task/{starter}/children"));
    wait_for("the task to end", || child().is_ok_and(|pids| pids.is_empty()));
    std::thread::sleep(Duration::from_secs(3));
    assert!(child().is_ok(), "TaskStarter waits for pam");
    kill(pam, 18);
    ends(&rig, job);
}

/// One of three tasks registers. This one and the PJL have TERM, once, and ten seconds to end.
#[test]
fn time_out_of_the_registration_terminates_tasks_and_pjl_and_kills_both_ten_seconds_later() {
    let rig = up("pam-order");
    let word = mark(8);
    let beat = |name: &str| {
        format!(
            "(exec sleep {word}) & trap 'echo {name} >> term' TERM; trap '' HUP INT\n\
             while :; do echo x >> beat.{name}; sleep 0.1; done"
        )
    };
    script(&rig, "app.sh", &beat("task"));
    script(&rig, "few.sh", &format!("blaunch host2 \"$@\" & {}", beat("pjl")));
    let line = "LSF_HPC_PJL_LOADENV_TIMEOUT=2 pam -g 1 ./few.sh ./app.sh";
    let job = submit(&rig, line);
    let has = |name: &str| rig.read("term").lines().filter(|line| *line == name).count();
    wait_for("TERM for both", || has("task") > 0 && has("pjl") > 0);
    let began = Instant::now();
    let beats = || ["beat.task", "beat.pjl"].map(|file| rig.read(file).lines().count());
    std::thread::sleep(Duration::from_secs(8));
    let late = beats();
    std::thread::sleep(Duration::from_millis(500));
    assert!(beats().iter().zip(late).all(|(now, then)| *now > then), "both go on: {late:?}");
    assert_eq!(rig.end_of(job), "EXIT");
    assert!((9..20).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    assert_eq!((has("task"), has("pjl")), (1, 1));
    assert_eq!(rig.field(&job.to_string(), "exit_code"), "125");
    let err = rig.read("err");
    let said: Vec<&str> = err.lines().filter(|line| line.starts_with("pam: ")).collect();
    assert_eq!(said, ["pam: timeout: 1 of 3 tasks registered within 2 seconds"], "{err}");
    let states = states(&rows(&rig.read("out")).1, "./app.sh");
    assert_eq!(states, ["Killed by PAM"], "{err}");
    wait_for("all to go", || running(&word) == 0);
}

/// A job of three tasks that count USR1, whose PJL ends with 5 once `go` is there, and whose script
/// goes on after pam; the port of pam, and the process IDs of TaskStarter and task of host2.
fn counting(rig: &Rig) -> (u32, u16, u32, u32) {
    script(
        rig,
        "app.sh",
        "trap 'echo u >> usr1.$LSF_LOCAL_HOST' USR1\necho $PPID $$ > ids.$LSF_LOCAL_HOST\n\
         while :; do sleep 0.1; done",
    );
    script(
        rig,
        "pjl.sh",
        "trap '' USR1; echo $LSF_TS_OPTIONS > options\n\
         for h in $LSB_HOSTS; do blaunch -no-shell $h \"$@\" & done\n\
         while ! test -e go; do sleep 0.1; done; exit 5",
    );
    let line = "trap '' USR1; pam -v -g 1 ./pjl.sh ./app.sh & echo $! > pam.pid; wait $!; \
                echo $? > code; sleep 1000";
    let job = submit(rig, line);
    wait_for("the tasks", || rig.read("err").matches(": started").count() == 3);
    wait_for("their numbers", || {
        (1..=3).all(|n| rig.read(&format!("ids.host{n}")).ends_with('\n'))
    });
    // the shell of each has set its trap before it told its number
    let options = rig.read("options");
    let at = options.split_whitespace().nth(1).unwrap();
    let ids = rig.read("ids.host2");
    let mut ids = ids.split_whitespace().map(|id| id.parse().unwrap());
    let mut id = || ids.next().unwrap();
    (job, at.rsplit(':').next().unwrap().parse().unwrap(), id(), id())
}

fn all_have_usr1(rig: &Rig, times: usize) -> bool {
    (1..=3).all(|n| rig.read(&format!("usr1.host{n}")) == "u\n".repeat(times))
}

/// The TaskStarter stands still, so that it does not come back.
#[test]
fn task_whose_starter_is_cut_off_has_signals_by_res_and_is_killed_when_the_pjl_ends() {
    let rig = up("pam-mute");
    let (job, port, starter, task) = counting(&rig);
    kill(starter, 19);
    cut(starter, port);
    wait_for("the loss", || rig.read("err").contains(" on host2: its TaskStarter is lost"));
    let pam: u32 = rig.read("pam.pid").trim().parse().unwrap();
    kill(pam, 10);
    wait_for("the signal", || all_have_usr1(&rig, 1));
    std::thread::sleep(Duration::from_secs(1));
    assert!(all_have_usr1(&rig, 1));
    rig.write("go", "");
    wait_for("pam to end", || rig.read("code") == "5\n");
    let stat = std::fs::read_to_string(format!("/proc/{task}/stat")).unwrap_or_default();
    // its parent, which stands still, does not reap it
    assert!(stat.is_empty() || stat.contains(") Z "), "{stat}");
    assert_eq!(rig.stat(job), "RUN");
    let err = rig.read("err");
    assert!(!err.contains("RES does not signal"), "{err}");
    let states = states(&rows(&rig.read("out")).1, "./app.sh");
    assert_eq!(states, ["Killed by PAM", "Killed by PAM", "Unknown"], "{err}");
    rig.ok("bkill", &[&job.to_string()]);
    assert_eq!(rig.end_of(job), "EXIT");
}

#[test]
fn signals_of_pam_come_to_a_task_whose_res_is_not_there() {
    let rig = up("pam-nores");
    let (job, ..) = counting(&rig);
    for daemon in ["launcher", "res"] {
        rig.kill9(daemon, "host2");
    }
    let pam: u32 = rig.read("pam.pid").trim().parse().unwrap();
    kill(pam, 10);
    wait_for("the signal", || all_have_usr1(&rig, 1));
    rig.start();
    rig.ok("bkill", &[&job.to_string()]);
    assert_eq!(rig.end_of(job), "EXIT");
}
