//! Hosts and daemons that are lost to a parallel job: after a task of theirs has ended, while one
//! of many runs, before res has told of its tasks, and before the hosts have joined the job
//! (lsf-parallel(7)).

use super::host_death::{host, kill_daemons, up};
use super::interactive::Bsub;
use super::rig::{Rig, alive, kill, wait_for};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Processes on a host, or on any, one of whose words is this.
pub(super) fn with_word(word: &str, host: Option<&str>) -> Vec<u32> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_string_lossy().parse::<u32>().ok());
    let has = |file: String, word: &str| {
        let text = std::fs::read(file).unwrap_or_default();
        text.split(|b| *b == 0).any(|w| w == word.as_bytes())
    };
    let there = |pid: &u32| {
        has(format!("/proc/{pid}/cmdline"), word)
            && host.is_none_or(|host| {
                has(format!("/proc/{pid}/environ"), &format!("LSF_LOCAL_HOST={host}"))
            })
    };
    pids.filter(there).collect()
}

/// A word for `sleep` that no process has yet: how long it sleeps, about. Tests run beside each
/// other.
pub(super) fn word(secs: u32) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{secs}.{:05}{n:03}", std::process::id() % 100_000)
}

/// Waits until a host has no slot in use, and no process of the job is left anywhere.
pub(super) fn nothing_left(rig: &Rig, word: &str, host: &str) {
    wait_for("the processes to go", || with_word(word, None).is_empty());
    let slots = || {
        let said = rig.run("bhosts", &["-noheader", "-o", "njobs", host]);
        said.out.trim().to_owned()
    };
    wait_for("the slots to be free", || slots() == "0");
}

#[test]
fn host_lost_after_its_task_has_ended_ends_neither_blaunch_nor_job() {
    let rig = up("lost-after");
    let script = "blaunch -z 'host2 host3' 'test $LSF_LOCAL_HOST = host2 || while ! test -e go; \
                  do sleep 0.1; done; echo $LSF_LOCAL_HOST >> ends'; echo code $?";
    let line = format!("{{ {script}; }} > said 2>&1");
    let args = ["-n", "6", "-R", "span[ptile=2]", "-m", "host1! host2 host3", "-o", "/dev/null"];
    let job = rig.bsub(&[&args[..], &[&line]].concat());
    wait_for("the end of the task on host2", || rig.read("ends") == "host2\n");
    kill_daemons(&rig, "host2");
    wait_for("host2 to be given up", || host(&rig, "host2") == "unavail");
    assert_eq!(rig.stat(job), "RUN");
    rig.write("go", "");
    wait_for("the end of the script", || rig.read("said").contains("code"));
    let began = Instant::now();
    assert_eq!(rig.end_of(job), "DONE");
    // it is not waited for longer than a host that is slow to leave
    assert!(began.elapsed() < Duration::from_secs(14), "{:?}", began.elapsed());
    assert_eq!(
        (rig.read("said").as_str(), rig.read("ends").as_str()),
        ("code 0\n", "host2\nhost3\n")
    );
    let history = rig.ok("bhist", &["-l", &job.to_string()]);
    assert!(!history.contains("Signal <"), "{history}");
    // the host is back, and has nothing of the job
    rig.start();
    wait_for("host2", || host(&rig, "host2") == "ok");
    nothing_left(&rig, "ends", "host2");
    assert_eq!(rig.stat(job), "DONE");
}

/// The daemons of a host and its part of the job die: its task with them.
fn lose(rig: &Rig, lost: &str, task: u32) {
    kill_daemons(rig, lost);
    kill(task, 9);
}

#[test]
fn one_of_twelve_hosts_lost_during_the_run_ends_the_other_tasks_unless_it_is_ignored() {
    let rig = Rig::up("twelve", 12);
    let all_up = || rig.run("bhosts", &["-w"]).out.matches(" ok ").count() == 12;
    for (how, action) in
        [("-z \"$LSB_HOSTS\"", ""), ("-u hosts", "IGNORE_COMMFAIL"), ("-u hosts", "no")]
    {
        wait_for("all hosts", all_up);
        let word = word(600);
        for file in ["up", "said", "go"] {
            let _ = std::fs::remove_file(rig.path(file));
        }
        let task = "while ! test -e go; do sleep 0.2; done; echo end of $LSF_LOCAL_HOST";
        rig.write("task.sh", &format!("echo $LSF_LOCAL_HOST $$ >> up\n{task}\n"));
        let script = format!(
            "export LSB_DJOB_COMMFAIL_ACTION={action}; echo $LSB_HOSTS | tr ' ' '\\n' > hosts; \
             blaunch {how} sh task.sh {word}; echo code $?; sleep 600"
        );
        let line = format!("{{ {script}; }} > said 2>&1");
        let hosts = (2..=12).fold("host1!".to_owned(), |all, n| format!("{all} host{n}"));
        let args = ["-n", "12", "-R", "span[ptile=1]", "-m", &hosts, "-o", "/dev/null"];
        let job = rig.bsub(&[&args[..], &[&line]].concat());
        wait_for("the tasks", || rig.read("up").lines().count() == 12);
        let up = rig.read("up");
        let lost = up.lines().find_map(|line| line.strip_prefix("host7 ")).unwrap();
        lose(&rig, "host7", lost.trim().parse().unwrap());
        let failed = "blaunch: host7: I/O error on the connection to RES";
        let waiting = "lsb_launch(): Failed while waiting for tasks to finish.\n";
        if action == "IGNORE_COMMFAIL" {
            // the others go on, and blaunch with them
            std::thread::sleep(Duration::from_secs(12));
            assert_eq!((with_word(&word, None).len() >= 11, rig.stat(job).as_str()), (true, "RUN"));
            rig.write("go", "");
            wait_for("the end of blaunch", || rig.read("said").contains("code"));
            assert_eq!(rig.read("said").matches("end of host").count(), 11);
            assert!(rig.read("said").ends_with("code 255\n"), "{}", rig.read("said"));
            rig.ok("bkill", &[&job.to_string()]);
        }
        assert_eq!(rig.end_of(job), "EXIT");
        let said = rig.read("said");
        assert_eq!((said.matches(failed).count(), said.matches(waiting).count()), (1, 1), "{said}");
        assert_eq!(said.matches("blaunch: ").count(), if action == "no" { 2 } else { 1 }, "{said}");
        if action == "no" {
            let told = "blaunch: LSB_DJOB_COMMFAIL_ACTION is not heeded: KILL_TASKS and \
                        IGNORE_COMMFAIL are known\n";
            assert!(said.starts_with(told), "{said}");
        }
        if action != "IGNORE_COMMFAIL" {
            let reason = rig.field(&job.to_string(), "exit_reason");
            assert!(reason.starts_with("TERM_OTHER: "), "{reason}");
        }
        wait_for("the processes to go", || with_word(&word, None).is_empty());
        rig.start();
    }
}

/// A value that is none: it is told, and the job is as without it.
#[test]
fn task_that_crashes_under_a_wrong_action_ends_its_job_with_words() {
    let rig = up("wrong-action");
    let script = "export LSB_DJOB_RTASK_GONE_ACTION=KILLJOB; blaunch host2 'exit 3'; echo code $?; \
                  blaunch host2 'kill -SEGV $$'; sleep 600";
    let line = format!("{{ {script}; }} > said 2>&1");
    let args = ["-n", "4", "-R", "span[ptile=2]", "-m", "host1! host2", "-o", "/dev/null"];
    let job = rig.bsub(&[&args[..], &[&line]].concat());
    assert_eq!(rig.end_of(job), "EXIT");
    let told = "blaunch: LSB_DJOB_RTASK_GONE_ACTION is not heeded: KILLJOB_TASKDONE or \
                KILLJOB_TASKEXIT, and IGNORE_TASKCRASH are known\n";
    let said = rig.read("said");
    assert!(said.starts_with(&format!("{told}code 3\n{told}")), "{said}");
    let reason = rig.field(&job.to_string(), "exit_reason");
    assert!(reason.starts_with("TERM_EXTERNAL_SIGNAL"), "{reason}");
}

/// res is killed as soon as a task of a job is there: sbatchd stands still meanwhile. With `kept`
/// false its keeper does, too, and the next res cannot take the tasks over.
#[test]
fn tasks_of_a_res_that_dies_before_they_are_known_leave_nothing_and_count_once() {
    let rig = up("res-early");
    for kept in [true, false, true] {
        let word = word(if kept { 4 } else { 600 });
        for file in ["said", "go"] {
            let _ = std::fs::remove_file(rig.path(file));
        }
        let burn = "(ulimit -t 1; while :; do :; done) 2> /dev/null; exec sleep $1";
        rig.write("task.sh", &format!("{burn}\n"));
        let script = format!(
            "export LSB_DJOB_COMMFAIL_ACTION=KILL_TASKS; blaunch -z 'host2 host2 host2' sh task.sh \
             {word}; echo code $?; while ! test -e go; do sleep 0.1; done"
        );
        let line = format!("{{ {script}; }} > said 2>&1");
        if !kept {
            // so that there is one
            rig.ok("lsrun", &["-m", "host2", "true"]);
            kill(rig.pid("reskeeper", "host2").unwrap(), 19);
        }
        let args = ["-n", "4", "-R", "span[ptile=2]", "-m", "host1! host2", "-o", "/dev/null"];
        let job = rig.bsub(&[&args[..], &[&line]].concat());
        wait_for("a task", || !with_word(&word, Some("host2")).is_empty());
        let sbatchd = rig.pid("sbatchd", "host2").unwrap();
        kill(sbatchd, 19);
        rig.kill9("res", "host2");
        std::thread::sleep(Duration::from_millis(500));
        kill(sbatchd, 18);
        wait_for("the end of blaunch", || rig.read("said").contains("code"));
        let said = rig.read("said");
        let failed = "lsb_launch(): Failed while";
        assert_eq!(said.contains(failed), said.ends_with("code 255\n"), "{said}");
        assert!(kept || said.ends_with("code 255\n"), "{said}");
        assert!(said.ends_with("code 255\n") || said.ends_with("code 0\n"), "{said}");
        wait_for("the tasks to go", || with_word(&word, None).is_empty());
        rig.write("go", "");
        assert_eq!(rig.end_of(job), "DONE");
        nothing_left(&rig, &word, "host2");
        let shown = rig.field(&job.to_string(), "cpu_used");
        let used: f64 = shown.split_whitespace().next().unwrap().parse().unwrap();
        // three tasks of a second each at most
        assert!(used < 5.0, "{shown}: {said}");
        assert!(used > 2.0 || said.ends_with("code 255\n"), "{shown}: {said}");
    }
}

/// The words of a task still come to blaunch; only the launcher would have known how it has ended.
#[test]
fn task_whose_launcher_is_killed_goes_on_and_its_end_is_told_as_unknown() {
    let rig = up("launcher-lost");
    let task = "echo $$ >> up; while ! test -e go; do sleep 0.1; done; echo end of $LSF_LOCAL_HOST; \
                exit 3";
    let script = format!("blaunch -z 'host2 host3' '{task}'; echo code $?; exit 4");
    let args = ["-n", "6", "-R", "span[ptile=2]", "-m", "host1! host2 host3", "-o", "/dev/null"];
    let job = rig.bsub(&[&args[..], &[&format!("{{ {script}; }} > said 2>&1")]].concat());
    wait_for("the tasks", || rig.read("up").lines().count() == 2);
    let pids = rig.read("up");
    rig.kill9("launcher", "host2");
    // the next one
    rig.start();
    wait_for("a launcher", || rig.pid("launcher", "host2").is_some());
    wait_for("host2", || host(&rig, "host2") == "ok");
    assert!(pids.lines().all(|pid| alive(pid.parse().unwrap())), "{}", rig.read("said"));
    assert_eq!(rig.stat(job), "RUN");
    rig.write("go", "");
    assert_eq!(rig.end_of(job), "EXIT");
    let said = rig.read("said");
    let mut lines: Vec<&str> = said.lines().collect();
    lines[..2].sort_unstable();
    let told = [
        "end of host2",
        "end of host3",
        "blaunch: host2: a task has ended, and its exit code is not known",
        "lsb_launch(): Failed while waiting for tasks to finish.",
        "code 255",
    ];
    assert_eq!(lines, told, "{said}");
    // the script has gone on, and nothing else has ended the job
    assert_eq!(rig.field(&job.to_string(), "exit_code"), "4");
    for host in ["host1", "host2", "host3"] {
        nothing_left(&rig, "up", host);
    }
}

/// sbatchd of the other host stands still: it does not join the job, which has no process yet.
#[test]
fn interactive_job_whose_other_host_has_not_joined_ends_with_words_and_leaves_nothing() {
    let rig = up("inter-join");
    let word = word(600);
    let line = format!("echo on; blaunch sleep {word}");
    let begin = |hosts: &str| {
        wait_for("host2", || host(&rig, "host2") == "ok");
        kill(rig.pid("sbatchd", "host2").unwrap(), 19);
        let args = ["-I", "-n", "4", "-R", "span[ptile=2]", "-m", hosts, &line];
        let b = Bsub::start(&rig, &args);
        let given = || rig.field(&b.job.to_string(), "exec_host");
        wait_for("hosts", || given().contains("host2"));
        b
    };
    let back = || kill(rig.pid("sbatchd", "host2").unwrap(), 18);
    for how in ["bkill", "int"] {
        let b = begin("host1! host2");
        let (job, pid) = (b.job, b.child.id());
        match how {
            "bkill" => _ = rig.ok("bkill", &[&job.to_string()]),
            _ => kill(pid, 2),
        }
        let began = Instant::now();
        let said = b.end();
        assert!(began.elapsed() < Duration::from_secs(10), "{how}: {:?}", began.elapsed());
        let told = "<<Starting on host1>>\n<<Terminated while pending>>\n";
        assert!(said.code == 246 && said.err.ends_with(told), "{how}: {said:?}");
        assert_eq!(rig.end_of(job), "EXIT", "{how}");
        back();
        nothing_left(&rig, &word, "host2");
        nothing_left(&rig, &word, "host1");
    }
    // the host dies: the job waits for another one
    rig.ok("badmin", &["hclose", "host3"]);
    let mut b = begin("host1! host2 host3");
    kill_daemons(&rig, "host2");
    rig.ok("badmin", &["hopen", "host3"]);
    b.line("on");
    wait_for("the tasks", || with_word(&word, Some("host3")).len() == 2);
    let hosts = rig.field(&b.job.to_string(), "exec_host");
    assert!(hosts.contains("host3") && !hosts.contains("host2"), "{hosts}");
    let job = b.job;
    rig.ok("bkill", &[&job.to_string()]);
    let said = b.end();
    let told = "<<Starting on host1>>\n<<Waiting for dispatch ...>>\n<<Starting on host1>>\n";
    assert!(said.code == 137 && said.err.contains(told), "{said:?}");
    assert_eq!(rig.end_of(job), "EXIT");
    nothing_left(&rig, &word, "host3");
}
