//! pam and TaskStarter in real processes, with a PJL of a few lines of shell that starts the tasks
//! by blaunch on the hosts of its job (pam(1)).

use super::rig::{Rig, wait_for};

/// A cluster of three hosts with one job slot used on each, and the PJLs.
pub(super) fn up(name: &str) -> Rig {
    let rig = Rig::up(name, 3);
    // method 1: the words behind its own are the TaskStarter and the application
    script(
        &rig,
        "pjl1.sh",
        "for h in $LSB_HOSTS; do blaunch $h \"$@\" & done; wait\nexit ${PJL:-0}",
    );
    // method 2: it calls the TaskStarter itself
    let line = "for h in $LSB_HOSTS; do blaunch $h $LSF_TS $LSF_TS_OPTIONS \"$@\" & done; wait\n\
                exit ${PJL:-0}";
    script(&rig, "pjl2.sh", line);
    rig
}

pub(super) fn script(rig: &Rig, name: &str, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    let path = rig.path(name);
    std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
}

/// The output of a job of three slots on three hosts, and its exit code.
pub(super) struct Ran {
    pub(super) out: String,
    pub(super) err: String,
    pub(super) code: String,
}

pub(super) fn submit(rig: &Rig, line: &str) -> u32 {
    for file in ["out", "err"] {
        let _ = std::fs::remove_file(rig.path(file));
    }
    let line = format!("{{ {line}; }} > out 2> err");
    rig.bsub(&["-n", "3", "-R", "span[ptile=1]", "-o", "/dev/null", &line])
}

pub(super) fn run(rig: &Rig, line: &str) -> Ran {
    let job = submit(rig, line);
    rig.end_of(job);
    let code = rig.field(&job.to_string(), "exit_code");
    Ran { out: rig.read("out"), err: rig.read("err"), code }
}

/// The rows of the table without its times, sorted by hosts; and what stands before it.
pub(super) fn rows(out: &str) -> (Vec<String>, Vec<String>) {
    let at = out.find("TID   HOST_NAME").unwrap_or(out.len());
    let mut before: Vec<String> = out[..at].lines().map(str::to_owned).collect();
    before.sort();
    let mut rows: Vec<String> = out[at..]
        .lines()
        .skip(2)
        .map(|line| {
            let words: Vec<&str> = line[5..].split_whitespace().collect();
            let date = words.iter().rposition(|word| word.matches('/').count() == 2);
            words[..date.unwrap_or(words.len())].join(" ")
        })
        .collect();
    rows.sort();
    (before, rows)
}

#[test]
fn tasks_run_on_three_hosts_and_pam_ends_as_its_pjl() {
    let rig = up("pam");
    script(&rig, "app.sh", "echo $LSF_LOCAL_HOST \"$@\"");
    for (line, code) in [
        ("pam -g 1 ./pjl1.sh ./app.sh 'x  y'", "0"),
        ("PJL=7 pam -g ./pjl2.sh ./app.sh 'x  y'", "7"),
    ] {
        let ran = run(&rig, line);
        let (before, rows) = rows(&ran.out);
        assert_eq!((ran.code.as_str(), ran.err.as_str()), (code, ""), "{line}: {}", ran.out);
        // blaunch, as rsh, joins the words by blanks, and a shell splits them
        assert_eq!(before, ["host1 x y", "host2 x y", "host3 x y"]);
        let want = ["host1", "host2", "host3"].map(|host| format!("{host} ./app.sh x y Done"));
        let want = want.map(|row| row.replace("x y", "x  y"));
        let want = want.map(|row| row.split_whitespace().collect::<Vec<_>>().join(" "));
        assert_eq!(rows, want, "{}", ran.out);
    }
    let ran = run(&rig, "pam -t -g ./pjl2.sh ./app.sh");
    assert_eq!(ran.out.lines().count(), 3, "{}", ran.out);
    // more tasks than it expects are tasks like others
    let ran = run(&rig, "pam -n 1 -g 1 ./pjl1.sh ./app.sh");
    assert_eq!((ran.code.as_str(), rows(&ran.out).1.len(), ran.err.as_str()), ("0", 3, ""));
    // two at the same time have their own tasks
    let line = "pam -g 1 ./pjl1.sh ./app.sh a > a & PJL=4 pam -g ./pjl2.sh ./app.sh b > b; echo $?; wait $!";
    let ran = run(&rig, line);
    assert_eq!((ran.code.as_str(), ran.out.as_str(), ran.err.as_str()), ("0", "4\n", ""));
    for name in ["a", "b"] {
        let (before, rows) = self::rows(&rig.read(name));
        assert_eq!(before, ["host1", "host2", "host3"].map(|host| format!("{host} {name}")));
        assert_eq!(rows.iter().filter(|row| row.ends_with(" Done")).count(), 3, "{rows:?}");
    }
}

/// Processes whose words include this one.
pub(super) fn running(word: &str) -> usize {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let has = |entry: &std::fs::DirEntry| {
        let text = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        text.split(|b| *b == 0).any(|w| w == word.as_bytes())
    };
    all.filter(|entry| entry.file_name().to_string_lossy().parse::<u32>().is_ok() && has(entry))
        .count()
}

#[test]
fn bkill_of_a_job_under_pam_leaves_no_process() {
    let rig = up("pam-kill");
    let word = format!("{}.25", 4000 + std::process::id() % 997);
    let job = submit(&rig, &format!("pam -g 1 ./pjl1.sh sleep {word}"));
    // the TaskStarters and the tasks
    wait_for("the tasks", || running(&word) >= 6);
    rig.ok("bkill", &[&job.to_string()]);
    assert_eq!(rig.end_of(job), "EXIT");
    wait_for("all to go", || running(&word) == 0);
}

/// Words that only processes of this test have, for `sleep`.
pub(super) fn mark(n: u32) -> String {
    format!("{}.{n}25", 5000 + std::process::id() % 997)
}

/// Runs a line, which ends with this code; nothing of it with this word is left soon after.
fn ends(rig: &Rig, line: &str, (code, err): (&str, &str), word: &str) -> Vec<String> {
    let ran = run(rig, line);
    let lines: Vec<&str> = ran.err.lines().filter(|line| line.starts_with("pam: ")).collect();
    let said = (ran.code.as_str(), lines.join("|"));
    assert_eq!(said, (code, err.to_owned()), "{line}: {}{}", ran.err, ran.out);
    wait_for(&format!("all of {line} to go"), || running(word) == 0);
    rows(&ran.out).1
}

/// The states of the rows, sorted, without hosts and commands.
pub(super) fn states(rows: &[String], word: &str) -> Vec<String> {
    let mut all: Vec<String> = rows
        .iter()
        .map(|row| row.rsplit(word).next().unwrap_or_default().trim().to_owned())
        .collect();
    all.sort();
    all
}

#[test]
fn pjl_that_does_not_start_its_tasks_ends_the_job_with_its_reason() {
    let rig = up("pam-pjl");
    let word = mark(1);
    std::fs::write(rig.path("plain"), "#!/bin/sh\n").unwrap();
    script(&rig, "ends.sh", "exit $1");
    script(&rig, "never.sh", &format!("sleep {word}"));
    script(
        &rig,
        "fewer.sh",
        "set -- ${LSB_HOSTS%% *} \"$@\"; h=$1; shift; blaunch $h \"$@\"; sleep 1000",
    );
    script(&rig, "away.sh", "setsid sh -c 'sleep 2; exec \"$@\"' x \"$@\" > /dev/null 2>&1 &");
    let app = format!("sleep {word}");
    let short = "LSF_HPC_PJL_LOADENV_TIMEOUT=2 ";
    let none = "No such file or directory";
    let timeout = |n| format!("pam: timeout: {n} of 3 tasks registered within 2 seconds");
    for (line, code, err) in [
        (
            format!("pam -g 1 ./nothere {app}"),
            "127",
            format!("pam: cannot start ./nothere: {none}"),
        ),
        (format!("pam -g 1 nothere {app}"), "127", format!("pam: cannot start nothere: {none}")),
        (
            format!("pam -g ./plain {app}"),
            "126",
            "pam: cannot start ./plain: Permission denied".into(),
        ),
        (format!("pam -g 1 /tmp {app}"), "126", "pam: cannot start /tmp: Permission denied".into()),
        (format!("pam -g ./ends.sh 0 {app}"), "0", "pam: no task registered".into()),
        (format!("pam -g ./ends.sh 3 {app}"), "3", String::new()),
        (format!("{short} pam -g 1 ./never.sh {app}"), "125", timeout(0)),
        (format!("{short} pam -g 1 ./fewer.sh {app}"), "125", timeout(1)),
        (format!("pam -g 1 ./away.sh {app}"), "0", "pam: no task registered".into()),
    ] {
        ends(&rig, &line, (code, &err), &word);
    }
    // a PJL that ignores TERM is killed
    script(&rig, "deaf.sh", &format!("trap '' TERM; sleep {word}"));
    let began = std::time::Instant::now();
    ends(&rig, &format!("{short} pam -g 1 ./deaf.sh {app}"), ("125", &timeout(0)), &word);
    assert!(began.elapsed().as_secs() >= 12, "{:?}", began.elapsed());
}

#[test]
fn task_that_cannot_be_started_on_one_host_ends_all_of_them() {
    let rig = up("pam-start");
    let word = mark(2);
    // an application that only two hosts have
    script(
        &rig,
        "link.sh",
        "for h in $LSB_HOSTS; do p=./app.$h; test $h = host2 || cp app.sh app.$h; \
        blaunch $h $LSF_TS $LSF_TS_OPTIONS ./app.$h & done; wait",
    );
    script(&rig, "app.sh", &format!("exec sleep {word}"));
    let none = "No such file or directory";
    let job = submit(&rig, "pam -g ./link.sh x");
    rig.end_of(job);
    let err = rig.read("err");
    let said: Vec<&str> = err.lines().filter(|line| line.starts_with("pam: ")).collect();
    assert_eq!(said.len(), 1, "{err}");
    assert!(said[0].ends_with(&format!(" on host2 could not be started: {none}")), "{err}");
    assert!(err.contains(&format!("TaskStarter: ./app.host2: {none}")), "{err}");
    assert_eq!(rig.field(&job.to_string(), "exit_code"), "125");
    let rows = rows(&rig.read("out")).1;
    let want = ["Failed (No such file or directory)", "Killed by PAM", "Killed by PAM"];
    let mut all: Vec<&str> =
        rows.iter().map(|row| row.splitn(3, ' ').nth(2).unwrap_or_default()).collect();
    all.sort();
    assert_eq!(all, want);
    wait_for("all to go", || running(&word) == 0);
}

#[test]
fn bad_end_of_one_task_ends_the_others_and_the_pjl_decides_the_code() {
    let rig = up("pam-bad");
    let word = mark(3);
    let app = format!("test $LSF_LOCAL_HOST != host2 || {{ sleep 1; exit 7; }}; exec sleep {word}");
    script(&rig, "app.sh", &app);
    let killed = ["Exit (7)", "Killed by PAM", "Killed by PAM"];
    let rows = ends(&rig, "PJL=9 pam -g 1 ./pjl1.sh ./app.sh", ("9", ""), &word);
    assert_eq!(states(&rows, "./app.sh"), killed);
    // a PJL that does not end by itself
    script(&rig, "slow.sh", "for h in $LSB_HOSTS; do blaunch $h \"$@\" & done; wait; sleep 1000");
    let rows = ends(&rig, "pam -g 1 ./slow.sh ./app.sh", ("7", ""), &word);
    assert_eq!(states(&rows, "./app.sh"), killed);
    // within the delay the others end by themselves
    script(&rig, "app.sh", "test $LSF_LOCAL_HOST != host2 || kill -9 $$; sleep 1");
    let rows =
        ends(&rig, "LSF_PAM_CLEAN_JOB_DELAY=4 pam -g 1 ./pjl1.sh ./app.sh", ("0", ""), &word);
    assert_eq!(states(&rows, "./app.sh"), ["Done", "Done", "Signal (9)"]);
    // all tasks have ended, the PJL has not
    let line = "LSF_HPC_PJL_LOADENV_TIMEOUT=2 pam -g 1 ./slow.sh true";
    let rows = ends(&rig, line, ("125", "pam: the PJL did not end"), &word);
    assert_eq!(states(&rows, "true"), ["Done"; 3]);
    // one of them badly
    script(&rig, "app.sh", "test $LSF_LOCAL_HOST != host2 || exit 7");
    let line =
        "LSF_PAM_CLEAN_JOB_DELAY=60 LSF_HPC_PJL_LOADENV_TIMEOUT=2 pam -g 1 ./slow.sh ./app.sh";
    let rows = ends(&rig, line, ("7", "pam: the PJL did not end"), &word);
    assert_eq!(states(&rows, "./app.sh"), ["Done", "Done", "Exit (7)"]);
}

#[test]
fn end_of_the_pjl_ends_tasks_that_go_on() {
    let rig = up("pam-early");
    let word = mark(4);
    script(&rig, "early.sh", "for h in $LSB_HOSTS; do blaunch $h \"$@\" & done; sleep 3; exit 5");
    let rows = ends(&rig, &format!("pam -g 1 ./early.sh sleep {word}"), ("5", ""), &word);
    assert_eq!(states(&rows, &word), ["Killed by PAM"; 3]);
}

#[test]
fn loss_of_a_starter_kills_its_task_and_loss_of_pam_ends_with_the_job() {
    let rig = up("pam-lost");
    let word = mark(5);
    script(&rig, "app.sh", &format!("echo $PPID > ts.$LSF_LOCAL_HOST; sleep ${{1:-{word}}}"));
    let job = submit(&rig, "pam -g 1 ./pjl1.sh ./app.sh 6.5");
    let starter = || rig.path("ts.host2").metadata().is_ok_and(|file| file.len() > 0);
    wait_for("the task on host2", starter);
    std::thread::sleep(std::time::Duration::from_millis(300));
    let pid: i32 = rig.read("ts.host2").trim().parse().unwrap();
    let kill = |pid: i32| {
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    };
    kill(pid);
    assert_eq!(rig.end_of(job), "DONE", "{}", rig.read("err"));
    let rows = rows(&rig.read("out")).1;
    assert_eq!(states(&rows, "6.5"), ["Done", "Done", "Unknown"]);
    // pam itself
    std::fs::remove_file(rig.path("ts.host2")).unwrap();
    let job = submit(&rig, "echo $$ > pam.pid; exec pam -g 1 ./pjl1.sh ./app.sh");
    wait_for("the tasks", || running(&word) == 3 && starter());
    kill(rig.read("pam.pid").trim().parse().unwrap());
    assert_eq!(rig.end_of(job), "EXIT");
    wait_for("all to go", || running(&word) == 0);
}

#[test]
fn signals_to_a_job_and_to_its_pam_come_to_each_task_once() {
    let rig = up("pam-signal");
    let app = "trap 'echo u >> usr1.$LSF_LOCAL_HOST' USR1; trap 'echo t >> term.$LSF_LOCAL_HOST; exit 0' TERM\n\
        echo up > up.$LSF_LOCAL_HOST; while :; do sleep 0.1; done";
    script(&rig, "app.sh", app);
    // the PJL ignores what the tasks count; no shell stands between blaunch and TaskStarter
    script(
        &rig,
        "pjl.sh",
        "trap '' USR1; trap : TERM\nfor h in $LSB_HOSTS; do blaunch -no-shell $h \"$@\" & done; \
        while ! wait; do :; done; exit 0",
    );
    let job = submit(
        &rig,
        "trap '' USR1; echo $$ > sh.pid; pam -g 1 ./pjl.sh ./app.sh & \
        echo $! > pam.pid; wait; wait; wait",
    );
    let all =
        |name: &str, text: &str| (1..=3).all(|n| rig.read(&format!("{name}.host{n}")) == text);
    wait_for("the tasks", || all("up", "up\n"));
    std::thread::sleep(std::time::Duration::from_millis(500));
    rig.ok("bkill", &["-s", "USR1", &job.to_string()]);
    wait_for("the signal of bkill", || all("usr1", "u\n"));
    std::thread::sleep(std::time::Duration::from_millis(1500));
    assert!(all("usr1", "u\n"));
    let pid: i32 = rig.read("pam.pid").trim().parse().unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::USR1).unwrap();
    wait_for("the signal of pam", || all("usr1", "u\nu\n"));
    std::thread::sleep(std::time::Duration::from_millis(1500));
    assert!(all("usr1", "u\nu\n"));
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    rig.end_of(job);
    assert!(all("term", "t\n"), "{}", rig.read("err"));
    assert_eq!(states(&rows(&rig.read("out")).1, "app.sh"), ["Done"; 3]);
}

/// The factor of lsf.conf is so great that the first measurement remains the only one; that of the
/// environment stands above it.
#[test]
fn tasks_on_other_hosts_are_measured_the_less_often_the_more_there_are() {
    let rig = up("pam-often");
    let params = rig.configdir().join("lsb.params");
    let text = std::fs::read_to_string(&params).unwrap();
    let lines = text.lines().filter(|line| !line.trim().starts_with("SBD_SLEEP_TIME"));
    let lines: String = lines.flat_map(|line| [line, "\n"]).collect();
    let text = lines.replacen("Begin Parameters\n", "Begin Parameters\nSBD_SLEEP_TIME = 1\n", 1);
    std::fs::write(&params, text).unwrap();
    let conf = rig.path("conf/lsf.conf");
    let text = std::fs::read_to_string(&conf).unwrap();
    std::fs::write(&conf, text + "LSF_PAM_RUSAGE_UPD_FACTOR=90\n").unwrap();
    rig.ok("badmin", &["reconfig"]);
    let late = "sleep 4; sleep 1000 & echo $! > $1.$LSF_LOCAL_HOST; wait";
    script(&rig, "app.sh", late);
    let begin = |name: &str, set: &str| {
        let line = format!("{set} pam -g 1 ./pjl1.sh ./app.sh {name}");
        rig.bsub(&["-n", "3", "-R", "span[ptile=1]", "-o", "/dev/null", &line]).to_string()
    };
    let [seldom, often] = [begin("seldom", ""), begin("often", "LSF_PAM_RUSAGE_UPD_FACTOR=0.5")];
    let (hosts, has) = (["host1", "host2", "host3"], |job: &str, name: &str, host: &str| {
        let pid = rig.read(&format!("{name}.{host}")).trim().to_owned();
        !pid.is_empty() && rig.field(job, "pids").split(',').any(|word| word == pid)
    });
    let seen = |job: &str, name: &str| hosts.map(|host| has(job, name, host));
    wait_for("the later processes", || seen(&often, "often") == [true; 3]);
    // the usage of the first host is measured with the job
    let all = rig.field(&seldom, "exec_host");
    let first = all.split(':').next().unwrap_or_default();
    wait_for("the one on the first host", || has(&seldom, "seldom", first));
    std::thread::sleep(std::time::Duration::from_secs(5));
    assert!(hosts.iter().all(|host| !rig.read(&format!("seldom.{host}")).is_empty()));
    assert_eq!(seen(&seldom, "seldom"), hosts.map(|host| host == first));
    rig.ok("bkill", &[&seldom, &often]);
    for job in [seldom, often] {
        rig.end_of(job.parse().unwrap());
    }
}
