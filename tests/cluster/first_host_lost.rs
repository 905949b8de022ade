//! The first host of a parallel job is lost before the other host has joined the job, so that no
//! process of it is there yet (lsf-parallel(7)).

use super::host_death::{host, kill_daemons, up};
use super::parallel_losses::{nothing_left, with_word, word};
use super::rig::{Rig, kill, wait_for};

/// A job of four slots on host3, its first host, and host2, whose sbatchd stands still.
struct Waiting<'a> {
    rig: &'a Rig,
    job: u32,
    word: String,
}

impl Waiting<'_> {
    /// The daemons of host3 are gone when this is over.
    fn new<'a>(rig: &'a Rig, options: &[&str]) -> Waiting<'a> {
        wait_for("all hosts", || ["host1", "host2", "host3"].iter().all(|h| host(rig, h) == "ok"));
        let word = word(600);
        let _ = std::fs::remove_file(rig.path("runs"));
        let script = format!(
            "echo $LSB_MCPU_HOSTS >> runs; blaunch -z \"$LSB_HOSTS\" sleep {word}; sleep {word}"
        );
        kill(rig.pid("sbatchd", "host2").unwrap(), 19);
        let hosts = ["-m", "host3+2 host2+1 host1", "-R", "span[ptile=2]"];
        let args = [options, &["-n", "4", "-o", "/dev/null"], &hosts, &[&script]].concat();
        let waiting = Waiting { rig, job: rig.bsub(&args), word };
        wait_for("its hosts", || waiting.hosts() == "2*host3:2*host2");
        kill_daemons(rig, "host3");
        waiting
    }

    fn hosts(&self) -> String {
        self.rig.field(&self.job.to_string(), "exec_host")
    }

    fn is(&self, state: &str) {
        wait_for(state, || self.rig.stat(self.job) == state);
    }

    /// sbatchd of host2 goes on, and hears what it was told.
    fn other_host_goes_on(&self) {
        kill(self.rig.pid("sbatchd", "host2").unwrap(), 18);
    }

    /// The job runs on these hosts, for the first time, and on no other.
    fn runs_once_on(&self, hosts: [&str; 2]) {
        wait_for("the tasks", || {
            hosts.iter().all(|host| with_word(&self.word, Some(host)).len() >= 2)
        });
        assert_eq!(self.rig.stat(self.job), "RUN");
        let runs = self.rig.read("runs");
        assert_eq!(runs, format!("{} 2 {} 2\n", hosts[0], hosts[1]));
        let third = ["host1", "host2", "host3"].into_iter().find(|h| !hosts.contains(h)).unwrap();
        assert!(with_word(&self.word, Some(third)).is_empty());
    }

    /// Ends the job; no process of it is left, and no slot in use.
    fn end(self) {
        self.rig.ok("bkill", &[&self.job.to_string()]);
        assert_eq!(self.rig.end_of(self.job), "EXIT");
        for host in ["host1", "host2", "host3"] {
            nothing_left(self.rig, &self.word, host);
        }
    }

    fn history(&self) -> String {
        self.rig.ok("bhist", &["-l", &self.job.to_string()])
    }
}

#[test]
fn job_whose_first_host_is_lost_before_the_other_has_joined_in_time_runs_once_elsewhere() {
    let rig = up("first-late");
    rig.set_conf("LSB_FANOUT_TIMEOUT_PER_LAYER", "8");
    rig.ok("badmin", &["reconfig"]);
    let waiting = Waiting::new(&rig, &[]);
    waiting.is("UNKWN");
    waiting.is("PEND");
    assert!(rig.read("runs").is_empty() && with_word(&waiting.word, None).is_empty());
    let history = waiting.history();
    assert!(history.contains("Failed to send fan-out information to other SBDs"), "{history}");
    waiting.other_host_goes_on();
    waiting.is("RUN");
    let hosts = waiting.hosts();
    assert!(["2*host1:2*host2", "2*host2:2*host1"].contains(&&*hosts), "{hosts}");
    let order = if hosts.starts_with("2*host1") { ["host1", "host2"] } else { ["host2", "host1"] };
    waiting.runs_once_on(order);
    // the lost host comes back, and has nothing of the job
    rig.start();
    wait_for("host3", || host(&rig, "host3") == "ok");
    waiting.runs_once_on(order);
    waiting.end();
}

#[test]
fn job_whose_first_host_is_lost_before_the_other_has_joined_begins_when_it_is_back() {
    let rig = up("first-back");
    let waiting = Waiting::new(&rig, &[]);
    waiting.is("UNKWN");
    waiting.other_host_goes_on();
    wait_for("host3 to be given up", || host(&rig, "host3") == "unavail");
    assert_eq!((rig.stat(waiting.job).as_str(), rig.read("runs").as_str()), ("UNKWN", ""));
    rig.start();
    waiting.runs_once_on(["host3", "host2"]);
    waiting.end();
}

#[test]
fn rerunnable_job_whose_first_host_is_lost_before_the_other_has_joined_runs_once_elsewhere() {
    let rig = up("first-rerun");
    let waiting = Waiting::new(&rig, &["-r"]);
    waiting.is("UNKWN");
    waiting.other_host_goes_on();
    waiting.is("RUN");
    let order = if waiting.hosts().starts_with("2*host1") {
        ["host1", "host2"]
    } else {
        ["host2", "host1"]
    };
    waiting.runs_once_on(order);
    rig.start();
    wait_for("host3", || host(&rig, "host3") == "ok");
    waiting.runs_once_on(order);
    waiting.end();
}

#[test]
fn job_that_is_killed_with_its_first_host_lost_and_no_other_joined_ends_at_once() {
    let rig = up("first-kill");
    let waiting = Waiting::new(&rig, &[]);
    waiting.is("UNKWN");
    rig.ok("bkill", &[&waiting.job.to_string()]);
    let began = std::time::Instant::now();
    assert_eq!(rig.end_of(waiting.job), "EXIT");
    assert!(began.elapsed().as_secs() < 10, "{:?}", began.elapsed());
    let reason = rig.field(&waiting.job.to_string(), "exit_reason");
    assert!(reason.starts_with("TERM_OWNER"), "{reason}");
    waiting.other_host_goes_on();
    rig.start();
    wait_for("host3", || host(&rig, "host3") == "ok");
    for host in ["host1", "host2", "host3"] {
        nothing_left(&rig, &waiting.word, host);
    }
    assert_eq!(rig.read("runs"), "");
}

/// The tasks on the host that is there end, and the processes on the lost one when it is back.
#[test]
fn job_that_hangs_with_its_first_host_lost_is_removed_from_the_other_hosts_too() {
    let rig = up("first-hung");
    // no silence is to end the tasks before
    rig.set_conf("LSF_RES_ALIVE_TIMEOUT", "0");
    let path = rig.configdir().join("lsb.params");
    let text = std::fs::read_to_string(&path).unwrap();
    let rule = "REMOVE_HUNG_JOBS_FOR = host_unavail,wait_time=1\nEnd Parameters";
    std::fs::write(&path, text.replace("End Parameters", rule)).unwrap();
    rig.ok("badmin", &["reconfig"]);
    let word = word(600);
    let script = format!("blaunch -no-wait -z \"$LSB_HOSTS\" sleep {word}; sleep {word}");
    let hosts = ["-m", "host3+2 host2+1", "-R", "span[ptile=2]"];
    let job = rig.bsub(&[&["-n", "4", "-o", "/dev/null"], &hosts[..], &[&script]].concat());
    wait_for("the tasks", || {
        ["host2", "host3"].iter().all(|host| with_word(&word, Some(host)).len() >= 2)
    });
    let here = with_word(&word, Some("host3"));
    kill_daemons(&rig, "host3");
    wait_for("UNKWN", || rig.stat(job) == "UNKWN");
    assert_eq!(with_word(&word, Some("host2")).len(), 2, "its tasks go on");
    let until = std::time::Instant::now() + std::time::Duration::from_secs(150);
    while rig.stat(job) != "EXIT" && std::time::Instant::now() < until {
        std::thread::sleep(std::time::Duration::from_millis(500));
    }
    assert_eq!(rig.stat(job), "EXIT");
    let reason = rig.field(&job.to_string(), "exit_reason");
    assert!(reason.starts_with("TERM_REMOVE_HUNG_JOB"), "{reason}");
    wait_for("the tasks on host2 to end", || with_word(&word, Some("host2")).is_empty());
    let slots = || rig.run("bhosts", &["-noheader", "-o", "njobs", "host2"]).out;
    wait_for("its slots to be free", || slots().trim() == "0");
    assert_eq!(with_word(&word, Some("host3")), here, "nobody has reached them");
    rig.start();
    nothing_left(&rig, &word, "host3");
}
