//! Parallel jobs in real processes: blaunch starts tasks on the hosts of a job, through their res,
//! and nothing of a job is left anywhere when it is over (blaunch(1)).

use super::rig::{PATIENCE, Rig, Said, wait_for};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A cluster of three hosts with two slots each.
fn up(name: &str) -> Rig {
    Rig::up(name, 3)
}

/// A cluster of three hosts whose tasks have control groups, or are known by their ancestors.
fn up_with(name: &str, tracking: &str) -> Rig {
    let rig = up(name);
    if tracking != "Y" {
        rig.down();
        rig.set_conf("LSF_PROCESS_TRACKING", tracking);
        rig.start();
    }
    rig
}

/// The output of a job on all hosts that runs this script, and the hosts in their order.
pub(super) fn output(rig: &Rig, script: &str) -> (String, Vec<String>) {
    let out = rig.path("out");
    let _ = std::fs::remove_file(&out);
    std::fs::write(rig.path("job.sh"), script).unwrap();
    let line = format!("sh {}", rig.path("job.sh").display());
    let args = ["-n", "6", "-R", "span[ptile=2]", "-o", "/dev/null", "-e", "/dev/null"];
    let line = format!("echo $LSB_HOSTS > {0}; {line} >> {0} 2>&1", out.display());
    let job = rig.bsub(&[&args[..], &[&line]].concat());
    rig.end_of(job);
    let text = std::fs::read_to_string(&out).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    let mut hosts: Vec<String> = first.split_whitespace().map(str::to_owned).collect();
    hosts.dedup();
    (rest.to_owned(), hosts)
}

/// Number of processes of this word, wherever.
pub(super) fn running(word: &str) -> usize {
    pids(word).len()
}

fn pids(word: &str) -> Vec<u32> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let has = |pid: &u32| {
        let text = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        text.split(|b| *b == 0).any(|w| w == word.as_bytes())
    };
    all.filter_map(|entry| entry.file_name().to_string_lossy().parse().ok()).filter(has).collect()
}

#[test]
fn tasks_run_on_the_hosts_of_their_job_with_its_environment_input_and_ends() {
    let rig = up("blaunch");
    let script = r#"set -- $LSB_HOSTS
two=$3 three=$5
echo "== all"
blaunch 'echo $LSF_PM_TASKID $LSB_TASKID $LSB_TASKINDEX $LSF_LOCAL_HOST' | sort -n
echo "== list"
blaunch -z " $three	$two  $two" 'echo $LSF_PM_TASKID $LSF_LOCAL_HOST' | sort -n
echo "== env"
env -u LSB_QUEUE -u LSB_MCPU_HOSTS_X MARK=here sh -c "cd /usr; umask 027; \
    blaunch $two 'echo \$MARK \$LSB_QUEUE \$LSB_JOBID \$LSF_LOCAL_HOST; pwd; umask'" | sed s/$LSB_JOBID/ID/
echo "== words"
blaunch -x -o A=b $two -q -p 22 "\"/bin/echo\"" "a   b" '; echo $((1+1))'
blaunch -no-shell $two /bin/echo 'a   b' ';c'
blaunch -use-login-shell $two 'echo $0' | grep -c -- -
echo "== input"
seq 3 | blaunch $two cat
seq 2 | blaunch -z "$two $three" cat | sort | uniq -c | sed 's/^ *//'
echo lost | blaunch -n $two cat
head -c 3000000 /dev/zero | blaunch $two wc -c
blaunch $two 'head -c 3000000 /dev/zero' | wc -c
echo "== ends"
blaunch $two exit 7; echo $?
LSB_DJOB_RTASK_GONE_ACTION=IGNORE_TASKCRASH blaunch $two 'kill -9 $$'; echo $?
blaunch -z "$1 $two $three" 'exit $(((LSF_PM_TASKID - 1) * 5))'; echo $?
blaunch $two /no/such/program 2> /dev/null; echo $?
blaunch $two 'echo out; echo err >&2' 2> /dev/null
blaunch $two "blaunch $three 'echo nested \$LSF_LOCAL_HOST'"
printf '%s\n# no\n\n%s x\n' $two $three > hosts.$LSB_JOBID
blaunch -u hosts.$LSB_JOBID 'echo $LSF_PM_TASKID' | sort
exec 0<&-
blaunch $two echo without input
"#;
    let (out, hosts) = output(&rig, script);
    let [one, two, three] = &hosts[..] else { panic!("{hosts:?}") };
    let tasks = [one, one, two, two, three, three];
    let all: Vec<String> =
        tasks.iter().enumerate().map(|(n, host)| format!("{0} {0} {0} {host}\n", n + 1)).collect();
    let want = format!(
        "== all\n{}== list\n1 {three}\n2 {two}\n3 {two}\n== env\nhere normal ID {two}\n/usr\n0027\n\
         == words\na b\n2\na   b ;c\n1\n== input\n1\n2\n3\n2 1\n2 2\n3000000\n3000000\n\
         == ends\n7\n137\n5\n127\nout\nnested {three}\n1\n2\nwithout input\n",
        all.concat()
    );
    assert_eq!(out, want);
}

#[test]
fn task_is_refused_where_the_job_is_not_the_callers_or_not_there() {
    let rig = up("blaunch-bad");
    let script = r#"set -- $LSB_HOSTS
two=$3
t() { echo "== $1"; shift; "$@"; echo $?; }
t unknown blaunch -z "$two host9" true
t other blaunch host9 true
t empty blaunch -z ' ' true 2> /dev/null
t both blaunch -z $two -u /dev/null true 2> /dev/null
t behind blaunch $two -z $two true 2> /dev/null
t nothing blaunch -z $two 2> /dev/null
t file blaunch -u /no/such true
t blank blaunch -u /dev/null true
t directory blaunch -u / true
t user blaunch -l nobody $two true
t at blaunch nobody@$two true
t number env LSB_JOBID=x blaunch $two true
t forged env LSB_JOBID=4000000 blaunch $two true
t hosts env LSB_MCPU_HOSTS="$two x" blaunch $two true
t outside env -u LSB_JOBID blaunch $two true
t disabled env LSB_DJOB_DISABLED=Y blaunch $two true
t long sh -c 'head -c 2200000 /dev/zero | tr "\0" x > long; blaunch -u long true'
t few sh -c "ulimit -n 20; blaunch -z '$1 $1 $1 $1 $1 $1 $1' true"
t closed sh -c "blaunch $two echo x >&-"
"#;
    let (out, hosts) = output(&rig, script);
    let bad = "Validation failed: the host is not allocated to the job";
    let two = &hosts[1];
    let long = "x".repeat(255);
    let want = [
        ("unknown", format!("blaunch: host9: {bad}")),
        ("other", format!("blaunch: host9: {bad}")),
        ("empty", String::new()),
        ("both", String::new()),
        ("behind", String::new()),
        ("nothing", String::new()),
        ("file", "blaunch: /no/such: No such file or directory".into()),
        ("blank", "blaunch: /dev/null: no host name in it".into()),
        ("directory", "blaunch: /: Is a directory".into()),
        ("user", "blaunch: Validation failed: wrong user".into()),
        ("at", "blaunch: Validation failed: wrong user".into()),
        ("number", "blaunch: Validation failed: bad job ID".into()),
        (
            "forged",
            format!(
                "blaunch: {two}: Validation failed: bad job ID\n\
                 lsb_launch(): Failed while executing tasks."
            ),
        ),
        ("hosts", "blaunch: LSB_MCPU_HOSTS: bad word x".into()),
        ("outside", "blaunch: Cannot be run outside an LSF job".into()),
        ("disabled", "blaunch: The distributed application framework is disabled".into()),
        ("long", format!("blaunch: {long}: {bad}")),
        ("few", "blaunch: 7 tasks need 23 descriptors, and the limit is 20".into()),
    ];
    let line = |(name, words): &(&str, String)| match words.is_empty() {
        true => format!("== {name}\n255\n"),
        false => format!("== {name}\n{words}\n255\n"),
    };
    let want: String = want.iter().map(line).collect();
    assert_eq!(out, want + "== closed\nblaunch: standard output: Bad file descriptor\n255\n");
    // nothing of it is left, and the job's hosts have their slots again
    let said = rig.run("blaunch", &["host2", "true"]);
    assert_eq!(
        (said.code, said.err.as_str()),
        (255, "blaunch: Cannot be run outside an LSF job\n")
    );
}

#[test]
fn command_outside_the_job_has_no_task_of_it_from_a_host_without_its_slots() {
    let rig = up("blaunch-host");
    // host1 has no slot of it
    let job = rig.bsub(&["-n", "4", "-m", "host2 host3", "-o", "/dev/null", "sleep", "60"]);
    wait_for("RUN", || rig.stat(job) == "RUN");
    let mut c = rig.cmd("blaunch");
    c.env("LSB_JOBID", job.to_string()).env("LSB_MCPU_HOSTS", "host2 2 host3 2");
    let said = Said::from(c.args(["host2", "echo", "in"]).output().unwrap());
    let want = "blaunch: host2: Validation failed: the host is not allocated to the job\n\
                lsb_launch(): Failed while executing tasks.\n";
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (255, "", want));
    rig.run("bkill", &[&job.to_string()]);
    rig.end_of(job);
}

/// A word for `sleep` that only processes of this test have: tests run beside each other.
fn mark() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    format!("{}.{}5", 3000 + std::process::id() % 997, NEXT.fetch_add(1, Ordering::Relaxed))
}

#[test]
fn task_ends_with_its_job_however_that_ends() {
    let rig = up("blaunch-end");
    let word = mark();
    let launch = |how: &str| format!("blaunch {how} -z 'host1 host2 host3' sleep {word} &");
    // the script ends by itself, and leaves tasks behind that nobody waits for
    let (_, _) = output(&rig, &format!("{} sleep 1; exit 0\n", launch("-no-wait")));
    wait_for("the tasks to go", || running(&word) == 0);
    // bkill, with a launcher that is killed, too
    let args = ["-n", "6", "-R", "span[ptile=2]", "-o", "/dev/null"];
    for how in ["", "-no-wait"] {
        let line = format!("{} sleep {word}", launch(how));
        let job = rig.bsub(&[&args[..], &[&line]].concat());
        wait_for("all to run", || running(&word) >= 4);
        rig.ok("bkill", &[&job.to_string()]);
        rig.end_of(job);
        assert_eq!(rig.stat(job), "EXIT");
        wait_for("all to go", || running(&word) == 0);
    }
}

fn what_a_task_leaves_behind_ends(tracking: &str) {
    let rig = up_with("blaunch-left", tracking);
    let word = mark();
    let behind = format!("(setsid sleep {word} > /dev/null 2>&1 < /dev/null &)");
    let line =
        format!("blaunch -z 'host1 host2 host3' '{behind}'; sleep 1; pgrep -fc 'sleep {word}$'");
    let (out, _) = output(&rig, &line);
    assert_eq!(out, "3\n");
    let until = Instant::now() + PATIENCE;
    while running(&word) > 0 {
        assert!(Instant::now() < until, "left for {PATIENCE:?}: {}", state_of(&rig, &word));
        std::thread::sleep(Duration::from_millis(30));
    }
}

/// The processes of this word with what the launcher knows them by, and the ends of the logs of
/// the daemons: the words of a failure that is too rare to be watched.
fn state_of(rig: &Rig, word: &str) -> String {
    const LINES: usize = 8;
    let mut out = String::new();
    for pid in pids(word) {
        let read = |name: &str| std::fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
        let environment = read("environ");
        let names = ["LSB_JOBID=", "LS_JOBPID=", "LSF_LOCAL_HOST="];
        let told = |w: &&[u8]| names.iter().any(|name| w.starts_with(name.as_bytes()));
        let told = environment.split(|b| *b == 0).filter(told);
        let told: Vec<_> = told.map(String::from_utf8_lossy).collect();
        let stat = read("stat");
        out += &format!("\n{} {}", String::from_utf8_lossy(&stat).trim_end(), told.join(" "));
    }
    for entry in std::fs::read_dir(rig.path("log")).into_iter().flatten().flatten() {
        let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let last = &lines[lines.len().saturating_sub(LINES)..];
        out += &format!("\n{}:\n{}", entry.file_name().display(), last.join("\n"));
    }
    out
}

#[test]
fn process_that_a_task_leaves_behind_ends_with_its_job() {
    what_a_task_leaves_behind_ends("Y");
}

#[test]
fn process_that_a_task_leaves_behind_without_a_control_group_ends_with_its_job() {
    what_a_task_leaves_behind_ends("N");
}

fn tasks_have_each_signal_once(tracking: &str) {
    let rig = up_with("blaunch-sig", tracking);
    let dir = rig.path("counts");
    std::fs::create_dir(&dir).unwrap();
    let task = format!(
        "trap 'echo u >> {0}/usr1.$LSF_PM_TASKID' USR1; echo up >> {0}/up.$LSF_PM_TASKID; \
         while :; do date +%s%N > {0}/beat.$LSF_PM_TASKID; sleep 0.1; done",
        dir.display()
    );
    std::fs::write(rig.path("task.sh"), task).unwrap();
    // the script and blaunch themselves ignore what the tasks count
    let line = format!(
        "trap '' USR1; blaunch -z 'host1 host2 host3' exec sh {}",
        rig.path("task.sh").display()
    );
    let job = rig.bsub(&["-n", "6", "-R", "span[ptile=2]", "-o", "/dev/null", &line]);
    let file = |name: &str, n: u32| {
        std::fs::read_to_string(dir.join(format!("{name}.{n}"))).unwrap_or_default()
    };
    wait_for("the tasks", || (1..=3).all(|n| !file("up", n).is_empty()));
    let id = job.to_string();
    rig.ok("bkill", &["-s", "USR1", &id]);
    wait_for("USR1", || (1..=3).all(|n| !file("usr1", n).is_empty()));
    rig.ok("bstop", &[&id]);
    let beats = || (1..=3).map(|n| file("beat", n)).collect::<Vec<_>>();
    let quiet = |ms: u64| {
        let before = beats();
        std::thread::sleep(Duration::from_millis(ms));
        before == beats()
    };
    wait_for("all to stand still", || quiet(700));
    assert!(quiet(1500));
    rig.ok("bresume", &[&id]);
    let before = beats();
    wait_for("all to go on", || beats().iter().zip(&before).all(|(now, then)| now != then));
    for n in 1..=3 {
        assert_eq!(file("usr1", n), "u\n", "task {n} has had the signal once");
    }
    rig.ok("bkill", &[&id]);
    rig.end_of(job);
}

#[test]
fn tasks_are_stopped_and_continued_and_signalled_once_each() {
    tasks_have_each_signal_once("Y");
}

#[test]
fn tasks_without_control_groups_are_stopped_and_continued_and_signalled_once_each() {
    tasks_have_each_signal_once("N");
}

#[test]
fn job_on_several_hosts_survives_the_end_of_each_daemon() {
    let rig = up("blaunch-crash");
    let go = rig.path("go");
    let script = format!(
        "blaunch -no-wait -z 'host1 host2 host3' 'echo up >> {0}.up; while ! test -e {0}; do sleep 0.1; done; \
         echo $LSF_PM_TASKID >> {0}.ends'; while ! test -e {0}; do sleep 0.1; done; \
         blaunch 'echo again' | sort | uniq -c; while ! test -e {0}.over; do sleep 0.1; done",
        go.display()
    );
    let out = rig.path("out");
    let args = ["-n", "6", "-R", "span[ptile=2]", "-oo", out.to_str().unwrap(), &script];
    let job = rig.bsub(&args);
    let ends = |what: &str| {
        std::fs::read_to_string(go.with_extension(what)).unwrap_or_default().lines().count()
    };
    wait_for("the tasks", || ends("up") == 3);
    for daemon in ["sbatchd", "res", "mbatchd"] {
        for (host, _) in rig.pids(daemon) {
            rig.kill9(daemon, &host);
        }
    }
    wait_for("the master", || rig.run("bjobs", &[&job.to_string()]).code == 0);
    wait_for("all hosts", || {
        rig.ok("bhosts", &[]).matches(" ok ").count()
            + rig.ok("bhosts", &[]).matches("closed").count()
            >= 3
    });
    std::fs::write(&go, "").unwrap();
    wait_for("the tasks' ends", || ends("ends") == 3);
    wait_for("new tasks", || std::fs::read_to_string(&out).unwrap_or_default().contains("again"));
    std::fs::write(go.with_extension("over"), "").unwrap();
    rig.end_of(job);
    assert_eq!(rig.stat(job), "DONE");
}

/// The command that a signal ends, with the code that a shell has for it.
#[test]
fn blaunch_passes_signals_on_and_hangs_up_when_it_is_killed() {
    let rig = up("blaunch-int");
    let word = mark();
    let script = format!(
        "blaunch -z 'host2 host3' sleep {word} & pid=$!; sleep 2; kill -TERM $pid; wait $pid; \
         echo term $?\nblaunch host2 sleep {word} & pid=$!; sleep 2; kill -9 $pid; wait $pid; \
         sleep 1; echo left $(pgrep -fc 'sleep {word}$')\n"
    );
    let mut pgrep = Command::new("pgrep");
    if pgrep.arg("-V").output().is_err() {
        return super::rig::skipped("blaunch_passes_signals_on: pgrep is wanted");
    }
    let (out, _) = output(&rig, &script);
    let said: Vec<&str> =
        out.lines().filter(|l| l.starts_with("term") || l.starts_with("left")).collect();
    assert_eq!(said, ["term 143", "left 0"], "{out}");
}

#[test]
fn usage_of_a_job_is_that_of_its_tasks_on_all_hosts() {
    let rig = up("blaunch-use");
    let pids = rig.path("pids");
    std::fs::create_dir(&pids).unwrap();
    let script = format!(
        "blaunch -z 'host1 host2 host3' 'echo > {0}/$LS_JOBPID; sleep 1000 & \
         while test -e {0}; do sleep 0.2; done; kill $!; i=0; \
         while test $i -lt 400000; do i=$((i+1)); done; times > {1}.$LSF_PM_TASKID; \
         head -1 {1}.$LSF_PM_TASKID' > {1}",
        pids.display(),
        rig.path("times").display()
    );
    let job = rig.bsub(&["-n", "6", "-R", "span[ptile=2]", "-o", "/dev/null", &script]);
    let id = job.to_string();
    let tasks = || {
        let all = std::fs::read_dir(&pids).unwrap().flatten();
        all.map(|e| e.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    wait_for("the tasks", || tasks().len() == 3);
    let shown = || rig.field(&id, "pids").replace(',', " ");
    let has = |all: &str, pid: &String| all.split_whitespace().any(|word| word == pid);
    wait_for("all to be counted", || tasks().iter().all(|pid| has(&shown(), pid)));
    let all = shown();
    let mut each: Vec<&str> = all.split_whitespace().collect();
    let count = each.len();
    each.sort_unstable();
    each.dedup();
    assert_eq!(each.len(), count, "a process is counted twice: {all}");
    std::fs::remove_dir_all(&pids).unwrap();
    assert_eq!(rig.end_of(job), "DONE");
    let seconds = |word: &str| -> f64 {
        let (minutes, rest) = word.split_once('m').unwrap();
        60.0 * minutes.parse::<f64>().unwrap() + rest.trim_end_matches('s').parse::<f64>().unwrap()
    };
    let text = rig.read("times");
    assert_eq!(text.lines().count(), 3, "{text}");
    let used: f64 = text.split_whitespace().map(seconds).sum();
    let shown = rig.field(&id, "cpu_used");
    let told: f64 = shown.split_whitespace().next().unwrap().parse().unwrap();
    // the script, blaunch and the sleeping commands use a little, too
    assert!(told > 0.9 * used && told < 1.1 * used + 2.0, "{shown}, the tasks used {used}: {text}");
}

#[test]
fn loss_of_a_host_ends_the_other_tasks_unless_it_is_ignored() {
    let rig = up("blaunch-loss");
    for (action, ends) in [("KILL_TASKS", 0), ("IGNORE_COMMFAIL", 2)] {
        let (ran, up) = (rig.path(&format!("ran.{action}")), rig.path(&format!("up.{action}")));
        let script = format!(
            "export LSB_DJOB_COMMFAIL_ACTION={action}; blaunch -z 'host1 host2 host3' \
             'echo >> {0}; sleep 5; echo end'; echo $?",
            up.display()
        );
        let line = format!("{{ {script}; }} > {} 2>&1", ran.display());
        let args = ["-n", "6", "-R", "span[ptile=2]", "-m", "host1! host2 host3"];
        let job = rig.bsub(&[&args[..], &["-o", "/dev/null", &line]].concat());
        let tasks = || std::fs::read_to_string(&up).unwrap_or_default().lines().count();
        wait_for("the tasks", || tasks() == 3);
        rig.kill9("reskeeper", "host2");
        rig.kill9("res", "host2");
        rig.end_of(job);
        let text = std::fs::read_to_string(&ran).unwrap();
        assert_eq!(text.lines().filter(|line| *line == "end").count(), ends, "{action}: {text}");
        let lost = "blaunch: host2: I/O error on the connection to RES";
        assert!(text.contains(lost) && text.ends_with("\n255\n"), "{action}: {text}");
        wait_for("res of host2", || rig.pids("res").iter().any(|(host, _)| host == "host2"));
    }
}

/// Without DJOB_COMMFAIL_ACTION, whatever the script would do next.
#[test]
fn loss_of_a_host_ends_the_job() {
    let rig = up("blaunch-end");
    let up = rig.path("up");
    let script =
        format!("blaunch -z 'host1 host2 host3' 'echo >> {0}; sleep 300'; sleep 300", up.display());
    let args = ["-n", "6", "-R", "span[ptile=2]", "-m", "host1! host2 host3", "-o", "out.%J"];
    let job = rig.bsub(&[&args[..], &[&script]].concat());
    wait_for("the tasks", || rig.read("up").lines().count() == 3);
    rig.kill9("reskeeper", "host2");
    rig.kill9("res", "host2");
    assert_eq!(rig.end_of(job), "EXIT");
    let id = job.to_string();
    assert!(rig.field(&id, "exit_reason").starts_with("TERM_OTHER: "), "{id}");
    let history = rig.ok("bhist", &["-l", &id]).replace("\n                     ", "");
    let said = "Signal <SIG_TERM_OTHER> requested by user or administrator <";
    assert!(history.contains(said), "{history}");
    assert!(history.contains("Reason <blaunch lost host2>;"), "{history}");
    wait_for("the tasks to go", || running("sleep 300") == 0);
}

/// The launcher of a host stands still: the host has the order to start a task, and does not.
#[test]
fn task_that_does_not_start_in_time_fails_and_ends_when_it_starts_late() {
    let rig = up("blaunch-late");
    let word = mark();
    let (go, ran) = (rig.path("go"), rig.path("ran"));
    let run = |env: &str| format!("{env} blaunch -z 'host2 host3' sleep {word}; echo $? $SECONDS");
    let unused = |value: &str| {
        format!(
            "blaunch: LSF_DJOB_TASK_REG_WAIT_TIME={value}: not a number of seconds from 1 to \
             31536000; not heeded\n"
        )
    };
    let script = format!(
        "while ! test -e {}; do sleep 0.1; done; SECONDS=0; {}; LSF_DJOB_TASK_REG_WAIT_TIME=x \
         LSB_DJOB_RU_INTERVAL=-1 LSB_DJOB_HB_INTERVAL=1.5 blaunch host3 echo ran; \
         LSF_DJOB_TASK_REG_WAIT_TIME=0 blaunch host3 echo ran; sleep 60",
        go.display(),
        run("LSF_DJOB_TASK_REG_WAIT_TIME=2")
    );
    std::fs::write(rig.path("late.sh"), script).unwrap();
    let line = format!("bash {} > {} 2>&1", rig.path("late.sh").display(), ran.display());
    let args = ["-n", "6", "-R", "span[ptile=2]", "-m", "host1! host2 host3", "-o", "/dev/null"];
    let job = rig.bsub(&[&args[..], &[&line]].concat());
    wait_for("the job", || rig.stat(job) == "RUN");
    let launcher = rig.pid("launcher", "host2").unwrap();
    super::rig::kill(launcher, 19);
    std::fs::write(&go, "").unwrap();
    let text = || std::fs::read_to_string(&ran).unwrap_or_default();
    wait_for("the end of blaunch", || text().matches("ran\n").count() == 2);
    super::rig::kill(launcher, 18);
    let (said, rest) =
        text().split_once("\n255 ").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    let why = "Timeout in communication with RES (the task has not started within 2 seconds)";
    let words = "lsb_launch(): Failed while executing tasks.";
    assert_eq!(said, format!("blaunch: host2: {why}\n{words}"));
    let (secs, rest) = rest.split_once('\n').unwrap();
    assert!((2..20).contains(&secs.parse::<u32>().unwrap()), "{secs}");
    let day = |name: &str| {
        format!("blaunch: {name}: not a number of seconds from 1 to 86400; not heeded\n")
    };
    let of_day = [day("LSB_DJOB_HB_INTERVAL=1.5"), day("LSB_DJOB_RU_INTERVAL=-1")].concat();
    assert_eq!(rest, format!("{}{of_day}ran\n{}ran\n", unused("x"), unused("0")));
    wait_for("no task", || running(&word) == 0);
    rig.ok("bkill", &[&job.to_string()]);
    rig.end_of(job);
    assert_eq!(running(&word), 0);
}

#[test]
fn tasks_on_other_hosts_are_measured_as_often_as_the_application_profile_says() {
    let rig = up("blaunch-often");
    let params = rig.configdir().join("lsb.params");
    let text = std::fs::read_to_string(&params).unwrap();
    let lines = text.lines().filter(|line| !line.trim().starts_with("SBD_SLEEP_TIME"));
    let lines: String = lines.flat_map(|line| [line, "\n"]).collect();
    let text = lines.replacen("Begin Parameters\n", "Begin Parameters\nSBD_SLEEP_TIME = 600\n", 1);
    std::fs::write(&params, text).unwrap();
    let text = "Begin Application\nNAME = often\nDJOB_RU_INTERVAL = 2\nEnd Application\n";
    std::fs::write(rig.configdir().join("lsb.applications"), text).unwrap();
    rig.ok("badmin", &["reconfig"]);
    let late = rig.path("late");
    let script =
        format!("blaunch host2 'sleep 5; sleep 1000 & echo $! > {0}; wait'", late.display());
    let args = ["-app", "often", "-n", "4", "-R", "span[ptile=2]", "-m", "host1! host2"];
    let job = rig.bsub(&[&args[..], &["-o", "/dev/null", &script]].concat()).to_string();
    let pid = || std::fs::read_to_string(&late).unwrap_or_default().trim().to_owned();
    wait_for("a later process", || {
        let shown = rig.field(&job, "pids");
        !pid().is_empty() && shown.split(',').any(|word| word == pid())
    });
    rig.ok("bkill", &[&job]);
    rig.end_of(job.parse().unwrap());
}

/// RTASK_GONE_ACTION of the environment: a task that crashes ends the job, one that a signal of
/// blaunch or bkill has ended does not; other ends do where the action says so.
#[test]
fn end_of_a_task_ends_the_job_as_the_action_says() {
    let rig = up("blaunch-gone");
    let run = |action: &str, task: &str| {
        let line = format!(
            "export LSB_DJOB_RTASK_GONE_ACTION='{action}'; blaunch -z host2 '{task}'; sleep 5; exit 7"
        );
        let args = ["-n", "4", "-R", "span[ptile=2]", "-m", "host1! host2", "-o", "/dev/null"];
        let job = rig.bsub(&[&args[..], &[&line]].concat());
        rig.end_of(job);
        let said = rig.ok("bhist", &["-l", &job.to_string()]);
        let ended = said.contains("TERM_EXTERNAL_SIGNAL");
        assert_eq!(ended, !said.contains("Exited with exit code 7"), "{said}");
        ended
    };
    assert!(run("", "kill -SEGV $$"));
    assert!(!run("IGNORE_TASKCRASH", "kill -SEGV $$"));
    assert!(!run("", "exit 3"));
    assert!(run("KILLJOB_TASKEXIT", "exit 3"));
    assert!(run("KILLJOB_TASKDONE", "true"));
    // USR1, which ends the task, is that of bkill
    let line = "trap : USR1; blaunch -z host2 'echo > up; exec sleep 100'; exit 9";
    let _ = std::fs::remove_file(rig.path("up"));
    let dir = rig.path("").display().to_string();
    let args =
        ["-n", "4", "-R", "span[ptile=2]", "-m", "host1! host2", "-o", "/dev/null", "-cwd", &dir];
    let job = rig.bsub(&[&args[..], &[line]].concat());
    wait_for("the task", || rig.path("up").exists());
    rig.ok("bkill", &["-s", "USR1", &job.to_string()]);
    rig.end_of(job);
    let said = rig.ok("bhist", &["-l", &job.to_string()]);
    assert!(said.contains("Exited with exit code 9"), "{said}");
}

/// blaunch goes on to wait, as rsh and ssh do, and each way to continue the task does so.
#[test]
fn task_that_stops_itself_goes_on_by_cont_to_blaunch_or_the_job_and_by_bresume() {
    let rig = up("blaunch-self-stop");
    let task = "echo $$ >> tasks; kill -STOP $$; echo on";
    let script = format!("blaunch host2 '{task}' & echo $! > pid; wait $!; echo code $?");
    let line = format!("{{ {script}; }} > said 2>&1");
    let stopped = || {
        let pid = rig.read("tasks").trim().to_owned();
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        !pid.is_empty() && stat.contains(") T ")
    };
    let args = ["-n", "4", "-R", "span[ptile=2]", "-m", "host1! host2", "-o", "/dev/null"];
    for how in ["blaunch", "job", "bresume", "bkill"] {
        for file in ["said", "tasks", "pid"] {
            let _ = std::fs::remove_file(rig.path(file));
        }
        let job = rig.bsub(&[&args[..], &[&line]].concat());
        wait_for("the task to stop", stopped);
        std::thread::sleep(Duration::from_secs(2));
        assert!(stopped() && rig.stat(job) == "RUN", "{how}");
        let id = job.to_string();
        match how {
            "blaunch" => super::rig::kill(rig.read("pid").trim().parse().unwrap(), 18),
            "job" => _ = rig.ok("bkill", &["-s", "CONT", &id]),
            "bresume" => {
                rig.ok("bstop", &[&id]);
                wait_for("the stop", || rig.stat(job) == "USUSP");
                rig.ok("bresume", &[&id]);
            }
            _ => _ = rig.ok("bkill", &[&id]),
        }
        let want = if how == "bkill" { ("EXIT", "") } else { ("DONE", "on\ncode 0\n") };
        assert_eq!((rig.end_of(job).as_str(), rig.read("said").as_str()), want, "{how}");
        let pid = rig.read("tasks");
        wait_for("the end of the task", || !super::rig::alive(pid.trim().parse().unwrap()));
    }
}

/// The job has left its other hosts when its script has ended.
#[test]
fn post_execution_command_that_calls_blaunch_is_told_at_once_that_the_job_is_over() {
    let rig = up("blaunch-post");
    let said = rig.path("post").display().to_string();
    let post = format!(
        "{{ blaunch host2 echo on; echo code $?; blaunch -z \"$LSB_HOSTS\" echo on; echo code $?; \
         lsrun -m host2 echo ordinary; echo over; }} > {said} 2>&1"
    );
    let args = ["-n", "4", "-R", "span[ptile=2]", "-m", "host1! host2", "-o", "/dev/null"];
    let job = rig.bsub(&[&args[..], &["-Ep", &post, "blaunch host2 true"]].concat());
    assert_eq!(rig.end_of(job), "DONE");
    let began = Instant::now();
    wait_for("the end of the post-execution command", || rig.read("post").contains("over\n"));
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    let refused = "blaunch: Validation failed: bad job ID (the job is over: its post-execution \
                   commands start no tasks)\ncode 255\n";
    assert_eq!(rig.read("post"), format!("{refused}{refused}ordinary\nover\n"));
}
