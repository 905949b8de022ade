//! A PJL that starts its TaskStarters outside of blaunch, as by ssh: the server that starts them is
//! this test, whose processes are of no job. RES of each host takes them into the job: usage,
//! signals and the end reach them like the tasks of blaunch (pam(1), TaskStarter(1)).

use super::pam::{mark, rows, running, script, states, up};
use super::rig::{Rig, wait_for};
use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The PJL: has the server start the task on each host, and waits for all of them.
const PJL: &str = "for h in $LSB_HOSTS; do\n\
    echo \"exec $LSF_TS $LSF_TS_OPTIONS $*\" > call.new; mv call.new call.$h; done\n\
    for h in $LSB_HOSTS; do while ! test -e ended.$h; do sleep 0.1; done; done\n\
    exit ${PJL:-0}";

/// Starts what the files `call.HOST` ask for, each in a session of its own with a bare environment.
struct Server {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    fn new(rig: &Rig) -> Server {
        let over = Arc::new(AtomicBool::new(false));
        let dir = rig.path("");
        let hosts: Vec<String> = (1..=rig.hosts).map(|n| format!("host{n}")).collect();
        let stop = over.clone();
        let serve = move || {
            while !stop.load(Ordering::Relaxed) {
                for host in &hosts {
                    let (call, taken) = (format!("call.{host}"), format!("taken.{host}"));
                    if std::fs::rename(dir.join(&call), dir.join(&taken)).is_err() {
                        continue;
                    }
                    let line = format!(
                        "sh {taken}; echo $? > ended.new.{host}; mv ended.new.{host} ended.{host}"
                    );
                    let mut c = Command::new("setsid");
                    c.args(["-f", "nohup", "sh", "-c", &line]).env_clear().current_dir(&dir);
                    c.env("PATH", "/usr/bin:/bin").env("LSF_LOCAL_HOST", host);
                    c.stdin(Stdio::null()).stdout(Stdio::null());
                    c.stderr(std::fs::File::create(dir.join(format!("err.{host}"))).unwrap());
                    assert!(c.status().unwrap().success());
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        };
        Server { over, thread: Some(std::thread::spawn(serve)) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn cluster(name: &str) -> (Rig, Server) {
    let rig = up(name);
    script(&rig, "pjl.sh", PJL);
    let server = Server::new(&rig);
    (rig, server)
}

/// A job of three hosts; its first host is host1.
fn submit(rig: &Rig, line: &str) -> u32 {
    for file in ["out", "err"] {
        let _ = std::fs::remove_file(rig.path(file));
    }
    for host in ["host1", "host2", "host3"] {
        let _ = std::fs::remove_file(rig.path(&format!("ended.{host}")));
    }
    let line = format!("{{ {line}; }} > out 2> err");
    let three = ["-n", "3", "-R", "span[ptile=1]", "-m", "host1! host2 host3"];
    rig.bsub(&[&three[..], &["-o", "/dev/null", &line]].concat())
}

/// The processes of a job by host, as bjobs lists them, and its CPU time there, seconds.
fn listed(rig: &Rig, job: u32) -> BTreeMap<String, (Vec<u32>, f64)> {
    let text = rig.ok("bjobs", &["-UF", &job.to_string()]);
    let host = |part: &str| {
        let line = part.lines().next()?;
        let mut pieces = line.split(';').map(str::trim);
        let name = pieces.next()?.to_owned();
        let value = |key: &str| line.split(';').find_map(|p| p.trim().strip_prefix(key));
        let pids = value("PIDs: ").unwrap_or_default().split_whitespace();
        let cpu = value("CPU_TIME: ").and_then(|v| v.split_whitespace().next()?.parse().ok());
        Some((name, (pids.map(|pid| pid.parse().unwrap()).collect(), cpu.unwrap_or(0.0))))
    };
    text.split("HOST: ").skip(1).filter_map(host).collect()
}

fn pid_of(rig: &Rig, host: &str) -> Option<u32> {
    rig.read(&format!("pid.{host}")).trim().parse().ok()
}

/// CPU time in three parts: before the first look, while it runs, and in the last moment.
#[test]
fn tasks_that_the_pjl_starts_by_its_own_means_count_in_the_usage_of_their_hosts() {
    let (rig, _server) = cluster("pam-outside");
    let burn = |secs: u32| format!("(ulimit -t {secs}; while :; do :; done) 2> /dev/null");
    let (first, last) = (burn(2), burn(2));
    script(
        &rig,
        "app.sh",
        &format!(
            "echo $$ > pid.$LSF_LOCAL_HOST; {first}\nwhile ! test -e go; do sleep 0.1; done\n\
             {last}; exit 0"
        ),
    );
    let job = submit(&rig, "pam -v -g ./pjl.sh ./app.sh");
    let hosts = ["host1", "host2", "host3"];
    wait_for("each host to have its task with its time", || {
        let told = listed(&rig, job);
        hosts.iter().all(|host| {
            let has = |(pids, cpu): &(Vec<u32>, f64)| {
                pid_of(&rig, host).is_some_and(|pid| pids.contains(&pid)) && *cpu >= 1.5
            };
            told.get(*host).is_some_and(has)
        })
    });
    let told = listed(&rig, job);
    let mut all: Vec<u32> = told.values().flat_map(|(pids, _)| pids.clone()).collect();
    let many = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), many, "no process twice: {told:?}");
    let of_job = rig.field(&job.to_string(), "pids");
    for host in hosts {
        let pid = pid_of(&rig, host).unwrap().to_string();
        assert_eq!(of_job.split(',').filter(|word| *word == pid).count(), 1, "{of_job}");
    }
    rig.write("go", "");
    assert_eq!(rig.end_of(job), "DONE", "{}", rig.read("err"));
    let cpu = rig.field(&job.to_string(), "cpu_used");
    let cpu: f64 = cpu.split_whitespace().next().unwrap().parse().unwrap();
    assert!((cpu - 12.0).abs() <= 2.0, "{cpu}");
    let (out, err) = (rig.read("out"), rig.read("err"));
    assert_eq!(states(&rows(&out).1, "./app.sh"), ["Done"; 3], "{err}");
    assert!(!err.contains("not in the job"), "{err}");
    for host in hosts {
        assert_eq!(rig.read(&format!("ended.{host}")), "0\n");
    }
}

#[test]
fn signals_stops_and_the_end_of_a_job_reach_tasks_that_the_pjl_starts_by_its_own_means() {
    let (rig, _server) = cluster("pam-outsig");
    let word = mark(6);
    let app = format!(
        "trap 'echo u >> usr1.$LSF_LOCAL_HOST' USR1; (trap '' USR1; exec sleep {word}) &\n\
         echo $$ > pid.$LSF_LOCAL_HOST\n\
         while :; do echo x >> n.$LSF_LOCAL_HOST; sleep 0.1; done"
    );
    script(&rig, "app.sh", &app);
    // neither pam nor its PJL ends by what the tasks count
    let job = submit(&rig, "trap '' USR1; pam -g ./pjl.sh ./app.sh");
    let hosts = ["host1", "host2", "host3"];
    wait_for("the tasks", || hosts.iter().all(|host| pid_of(&rig, host).is_some()));
    let id = job.to_string();
    let all = |text: &str| hosts.iter().all(|h| rig.read(&format!("usr1.{h}")) == text);
    rig.ok("bkill", &["-s", "USR1", &id]);
    wait_for("the signal", || all("u\n"));
    std::thread::sleep(Duration::from_millis(1500));
    assert!(all("u\n"), "each once");
    let counts = || hosts.map(|host| rig.read(&format!("n.{host}")).lines().count());
    rig.ok("bstop", &[&id]);
    wait_for("the tasks to stand still", || {
        let before = counts();
        std::thread::sleep(Duration::from_secs(1));
        counts() == before
    });
    let still = counts();
    rig.ok("bresume", &[&id]);
    wait_for("the tasks to go on", || counts().iter().zip(still).all(|(now, then)| *now > then));
    assert_eq!(running(&word), 3);
    rig.ok("bkill", &[&id]);
    assert_eq!(rig.end_of(job), "EXIT");
    // TaskStarters and tasks, with what these have left in the background
    wait_for("all to go", || running(&word) == 0 && running("./app.sh") == 0);
}

/// The res that has taken them in, and then the launcher that knows them, are killed.
#[test]
fn tasks_that_were_taken_into_a_job_stay_in_it_when_res_and_launcher_are_killed() {
    let (rig, _server) = cluster("pam-outkill");
    let word = mark(7);
    script(&rig, "app.sh", &format!("echo $$ > pid.$LSF_LOCAL_HOST; exec sleep {word}"));
    let job = submit(&rig, "pam -g ./pjl.sh ./app.sh");
    let hosts = ["host1", "host2", "host3"];
    wait_for("the tasks", || running(&word) == 3);
    let has = |host: &str| {
        let told = listed(&rig, job);
        let pid = pid_of(&rig, host);
        told.get(host).is_some_and(|(pids, _)| pid.is_some_and(|pid| pids.contains(&pid)))
    };
    wait_for("their usage", || hosts.iter().all(|host| has(host)));
    assert!(rig.kill9("res", "host2"));
    wait_for("a new res", || rig.pid("res", "host2").is_some());
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(running(&word), 3);
    assert!(rig.kill9("launcher", "host2"));
    rig.ok("lsf_daemons", &["status"]);
    rig.start();
    wait_for("a new launcher", || rig.pid("launcher", "host2").is_some());
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(running(&word), 3);
    rig.ok("bkill", &[&job.to_string()]);
    assert_eq!(rig.end_of(job), "EXIT");
    wait_for("all to go", || running(&word) == 0);
}

/// Without res a task runs all the same, and pam says what that means.
#[test]
fn task_on_a_host_whose_res_is_away_runs_outside_of_the_job_and_pam_says_so() {
    let (rig, _server) = cluster("pam-outres");
    script(&rig, "app.sh", "echo $LSF_LOCAL_HOST > ran.$LSF_LOCAL_HOST");
    rig.ok("lsadmin", &["resshutdown", "-f", "host2"]);
    wait_for("res to end", || rig.pid("res", "host2").is_none());
    let job = submit(&rig, "pam -g ./pjl.sh ./app.sh");
    assert_eq!(rig.end_of(job), "DONE", "{}", rig.read("err"));
    let err = rig.read("err");
    let words = "pam: host host2: tasks are not in the job: its usage and limits do not count \
                 them, and bkill does not reach them: RES: ";
    assert!(err.lines().count() == 1 && err.starts_with(words), "{err}");
    assert_eq!(states(&rows(&rig.read("out")).1, "./app.sh"), ["Done"; 3]);
}
