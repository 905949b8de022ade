//! pam and a TaskStarter that SIGKILL ends while tasks register and while pam ends them: the others
//! go on or end as documented, and nothing is left anywhere (pam(1), TaskStarter(1)).

use super::pam::{mark, rows, running, script, states, submit, up};
use super::rig::{Rig, alive, kill, wait_for};
use std::time::{Duration, Instant};

/// A cluster with a PJL that starts its tasks on host1 and host2, and that on host3 once `go` is
/// there; it ends with 5 when all have, or once `over` is there.
fn cluster(name: &str) -> Rig {
    let rig = up(name);
    script(
        &rig,
        "late.sh",
        "for h in host1 host2; do blaunch -no-shell $h \"$@\" & done\n\
         while ! test -e go; do sleep 0.1; done; blaunch -no-shell host3 \"$@\" & all=$!\n\
         while kill -0 $all 2> /dev/null && ! test -e over; do sleep 0.1; done\n\
         test -e over || wait; exit 5",
    );
    rig
}

/// The TaskStarter and the task of a host, once the task has told them.
fn pids(rig: &Rig, host: &str) -> (u32, u32) {
    let file = format!("pids.{host}");
    wait_for("a task", || rig.read(&file).ends_with('\n'));
    let text = rig.read(&file);
    let mut words = text.split_whitespace().map(|word| word.parse().unwrap());
    (words.next().unwrap(), words.next().unwrap())
}

fn forget(rig: &Rig) {
    let of_hosts = ["host1", "host2", "host3"].map(|host| format!("pids.{host}"));
    for file in ["go", "over", "code", "pam.pid"].map(str::to_owned).iter().chain(&of_hosts) {
        let _ = std::fs::remove_file(rig.path(file));
    }
}

/// The kernel kills the task of a TaskStarter that is killed; pam would do so half a minute later.
fn gone(pid: u32) {
    let killed = Instant::now();
    wait_for("a process to be dead", || !alive(pid));
    assert!(killed.elapsed() < Duration::from_secs(5), "{:?}", killed.elapsed());
}

/// Runs pam with this application. The job goes on after it; its script says how it has ended.
fn line(app: &str) -> String {
    format!("pam -v -g 1 ./late.sh {app} & echo $! > pam.pid; wait $!; echo $? > code")
}

/// An application whose name processes of this test alone have, and which tells its numbers.
fn application(rig: &Rig, word: &str, text: &str) -> String {
    let name = format!("a{word}");
    script(rig, &name, &text.replace("TELL", "echo $PPID $$ > pids.$LSF_LOCAL_HOST"));
    format!("./{name}")
}

fn pam(rig: &Rig) -> u32 {
    wait_for("pam", || rig.read("pam.pid").ends_with('\n'));
    rig.read("pam.pid").trim().parse().unwrap()
}

fn start(rig: &Rig, line: &str) -> u32 {
    forget(rig);
    let job = submit(rig, line);
    for host in ["host1", "host2"] {
        pids(rig, host);
    }
    wait_for("two tasks", || rig.read("err").matches(": started").count() == 2);
    job
}

#[test]
fn starter_that_is_killed_while_others_register_leaves_its_task_unknown() {
    let rig = cluster("pam-start");
    let word = mark(11);
    let text = format!("TELL; test -e go && exit 0; sleep {word}");
    let app = application(&rig, &word, &text);
    let job = start(&rig, &line(&app));
    let (starter, task) = pids(&rig, "host2");
    kill(starter, 9);
    gone(task);
    // pam waits for the third task, which counts
    wait_for("its loss", || rig.read("err").contains(" on host2: its TaskStarter is lost"));
    rig.write("go", "");
    wait_for("the third", || rig.read("err").matches(": started").count() == 3);
    pids(&rig, "host3");
    rig.write("over", "");
    assert_eq!(rig.end_of(job), "DONE", "{}", rig.read("err"));
    assert_eq!(rig.read("code"), "5\n");
    let states = states(&rows(&rig.read("out")).1, &app);
    assert_eq!(states, ["Done", "Killed by PAM", "Unknown"], "{}", rig.read("err"));
    wait_for("all to go", || running(&word) == 0);
}

/// With its pam the job has no one that ends it: its script does. Tasks that are started later
/// are none.
#[test]
fn pam_that_is_killed_while_tasks_register_leaves_them_to_the_end_of_the_job() {
    let rig = cluster("pam-start-pam");
    let word = mark(12);
    let app = application(&rig, &word, &format!("TELL; sleep {word}"));
    let line = format!("{}; while ! test -e over; do sleep 0.1; done; exit 3", line(&app));
    let job = start(&rig, &line);
    kill(pam(&rig), 9);
    wait_for("its end", || rig.read("code") == "137\n");
    rig.write("go", "");
    std::thread::sleep(Duration::from_secs(2));
    // the tasks of before go on, a new one has nobody to register with
    assert_eq!((running(&word), rig.path("pids.host3").exists()), (2, false));
    rig.write("over", "");
    let ending = Instant::now();
    assert_eq!(rig.end_of(job), "EXIT");
    assert!(ending.elapsed() < Duration::from_secs(20), "{:?}", ending.elapsed());
    assert_eq!(rig.field(&job.to_string(), "exit_code"), "3");
    wait_for("all to go", || running(&word) == 0 && running(&app) == 0);
}

/// The tasks ignore TERM: pam has sent it, and would kill them ten seconds later.
fn ending(rig: &Rig, word: &str) -> (u32, String) {
    let text = format!(
        "(exec sleep {word}) & trap 'echo t >> term.$LSF_LOCAL_HOST' TERM\n\
         TELL; while :; do sleep 0.1; done"
    );
    let app = application(rig, word, &text);
    for host in ["host1", "host2", "host3"] {
        let _ = std::fs::remove_file(rig.path(&format!("term.{host}")));
    }
    let job = start(rig, &format!("{}; exit 4", line(&app)));
    rig.write("go", "");
    pids(rig, "host3");
    wait_for("the third", || rig.read("err").matches(": started").count() == 3);
    rig.write("over", "");
    let told = |host: &str| !rig.read(&format!("term.{host}")).is_empty();
    wait_for("TERM", || ["host1", "host2", "host3"].iter().all(|host| told(host)));
    (job, app)
}

#[test]
fn starter_that_is_killed_while_pam_ends_the_tasks_keeps_none_from_its_end() {
    let rig = cluster("pam-end");
    let word = mark(13);
    let (job, app) = ending(&rig, &word);
    let began = Instant::now();
    let (starter, task) = pids(&rig, "host2");
    kill(starter, 9);
    gone(task);
    wait_for("the end of pam", || rig.read("code") == "5\n");
    assert!((8..16).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    assert_eq!(rig.end_of(job), "EXIT");
    let states = states(&rows(&rig.read("out")).1, &app);
    assert_eq!(states, ["Killed by PAM", "Killed by PAM", "Unknown"], "{}", rig.read("err"));
    wait_for("all to go", || running(&word) == 0 && running(&app) == 0);
}

#[test]
fn pam_that_is_killed_while_it_ends_the_tasks_leaves_them_to_the_end_of_the_job() {
    let rig = cluster("pam-end-pam");
    let word = mark(14);
    let (job, app) = ending(&rig, &word);
    kill(pam(&rig), 9);
    let began = Instant::now();
    assert_eq!(rig.end_of(job), "EXIT");
    assert!(began.elapsed() < Duration::from_secs(25), "{:?}", began.elapsed());
    assert_eq!(
        (rig.read("code"), rig.field(&job.to_string(), "exit_code")),
        ("137\n".into(), "4".into())
    );
    wait_for("all to go", || running(&word) == 0 && running(&app) == 0);
    assert!(!rig.read("out").contains("TID "), "no table: {}", rig.read("out"));
}
