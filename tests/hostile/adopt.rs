//! Processes that somebody wants taken into a job (TaskStarter(1)): another user's, those of
//! another job, of the batch system, and those that are none. Each is refused with words, and none
//! is signalled with the job.

use crate::rig::{Rig, alive, kill, wait_for};
use crate::script;
use crate::site::{ADMIN, MultiUserSite};
use lsf::cli::client::{self, ClientError};
use lsf::cli::site::LocalSite;
use lsf::model::JobRef;
use lsf::proto::Msg;
use lsf::proto::res::{AdoptProcess, ResMsg};
use lsf::sys::process_table::see;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The question of a user to RES, for this test run as that user: `adopt JOB PID TICKS` or
/// `ending JOB PID TICKS`.
const ASK: &str = "LSF_TEST_ADOPT";

/// The answer of the RES of a host, in words.
fn answer(site: &LocalSite, host: &str, msg: ResMsg) -> String {
    let mut client = match client::res_of(site, host) {
        Ok(client) => client,
        Err(e) => return format!("{e:#}"),
    };
    client.send(&Msg::Res(msg)).unwrap();
    match client.next(Some(Duration::from_secs(20))) {
        Ok(Msg::Res(ResMsg::Adopted { within, .. })) => format!("adopted, within: {within}"),
        Ok(Msg::Res(ResMsg::Done)) => "done".into(),
        Err(ClientError::Refused(why)) => format!("{} {}", why.code, why.words()),
        other => format!("{other:?}"),
    }
}

fn adopt(job: u32, (pid, ticks): (u32, u64)) -> ResMsg {
    ResMsg::Adopt(AdoptProcess { job: JobRef { job, idx: 0 }, pid, ticks, pam_ms: None })
}

fn ending(job: u32, (pid, ticks): (u32, u64)) -> ResMsg {
    ResMsg::Ending(AdoptProcess { job: JobRef { job, idx: 0 }, pid, ticks, pam_ms: None })
}

fn by_hand(ask: &str) {
    let words: Vec<&str> = ask.split(' ').collect();
    let number = |at: usize| words[at].parse::<u64>().unwrap();
    let (pid, ticks) = (number(2) as u32, number(3));
    let msg = match words[0] {
        "adopt" => adopt(number(1) as u32, (pid, ticks)),
        _ => ending(number(1) as u32, (pid, ticks)),
    };
    let site = lsf::cli::site::find().unwrap();
    println!("answer: {}", answer(&site, "host1", msg));
}

fn process(pid: u32) -> (u32, u64) {
    (pid, see(pid).unwrap().start)
}

fn sleeper() -> Child {
    Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap()
}

#[test]
fn process_of_another_user_or_for_another_users_job_is_not_taken_in() {
    const NAME: &str = "process_of_another_user_or_for_another_users_job_is_not_taken_in";
    if let Ok(ask) = std::env::var(ASK) {
        return by_hand(&ask);
    }
    if !MultiUserSite::possible(NAME) {
        return;
    }
    let site = MultiUserSite::up("adopt", 1);
    // where the test was built others may not look
    let copy = site.path("bin/asks");
    std::fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    let asked = |user: &str, ask: String| {
        let asks = copy.display();
        let line = format!("{ASK}='{ask}' {asks} --exact adopt::{NAME} --nocapture");
        let said = site.run(user, &line);
        let found = said.out.lines().find_map(|line| line.split_once("answer: "));
        found.unwrap_or_else(|| panic!("{user} {ask}: {said:?}")).1.to_owned()
    };
    let job = |user: &str| {
        let job = site.bsub(user, "-o /dev/null sleep 600");
        wait_for("the job to run", || site.stat(job) == "RUN");
        job
    };
    let own = |user: &str| {
        let child = site.shell(user, "exec sleep 601").stdin(Stdio::null()).spawn().unwrap();
        wait_for("its user", || {
            let words = std::fs::read(format!("/proc/{}/cmdline", child.id())).unwrap_or_default();
            words.starts_with(b"sleep")
        });
        child
    };
    let (of_ann, of_bob) = (job("ann"), job("bob"));
    let (mut ann, mut bob) = (own("ann"), own("bob"));
    let words = |(pid, ticks): (u32, u64)| format!("{pid} {ticks}");
    let (anns, bobs) = (process(ann.id()), process(bob.id()));
    // a job of another user, by everybody
    for (user, pid) in [("bob", bobs), (ADMIN, bobs), ("bob", anns)] {
        let said = asked(user, format!("adopt {of_ann} {}", words(pid)));
        assert_eq!(said, "281 Validation failed: wrong user", "{user}");
    }
    // a process of another user, for a job of one's own
    let launcher = process(1);
    for pid in [anns, launcher] {
        let said = asked("bob", format!("adopt {of_bob} {}", words(pid)));
        assert!(said.ends_with(&format!("process {} is not one of the user's", pid.0)), "{said}");
    }
    assert!(asked("root", format!("adopt {of_ann} {}", words(anns))).contains("Root user can't"));
    assert_eq!(asked("ann", format!("adopt {of_ann} {}", words(anns))), "adopted, within: false");
    // what another user says of its end changes nothing
    let said = asked("bob", format!("ending {of_ann} {}", words(anns)));
    assert_eq!(said, "281 Validation failed: wrong user");
    assert_eq!(asked("bob", format!("ending {of_bob} {}", words(anns))), "done");
    assert_eq!(asked("ann", format!("adopt {of_ann} {}", words(anns))), "adopted, within: true");
    site.ok("bob", &format!("bkill {of_bob}"));
    site.end_of(of_bob);
    assert!(alive(anns.0) && alive(bobs.0));
    site.ok("ann", &format!("bkill {of_ann}"));
    wait_for("the process of the job to end", || !alive(anns.0));
    assert!(alive(bobs.0));
    kill(bobs.0, 9);
    let _ = (ann.wait(), bob.wait());
}

#[test]
fn process_of_a_job_or_of_the_batch_system_is_not_taken_in() {
    let rig = Rig::up("adopted", 2);
    let site = script::site(&rig, "host1");
    let begin = |host: &str| {
        let job = rig.bsub(&["-m", host, "-o", "/dev/null", "sleep 600"]);
        let pids = || rig.field(&job.to_string(), "pids");
        wait_for("the job to run", || rig.stat(job) == "RUN" && pids().len() > 1);
        let first = pids().split(',').next().unwrap().parse::<u32>().unwrap();
        (job, process(first))
    };
    let ((job, own), (other, others)) = (begin("host1"), begin("host1"));
    let at = |job, pid| answer(&site, "host1", adopt(job, pid));
    let refused = |job, pid: (u32, u64), why: &str| {
        let said = at(job, pid);
        assert!(said.ends_with(&format!("process {}{why}", pid.0)), "{said}");
    };
    let none = ": No such process";
    let mut ended = sleeper();
    let gone = process(ended.id());
    kill(gone.0, 9);
    // one that nobody has waited for, and one that is gone
    wait_for("it to end", || !alive(gone.0));
    refused(job, gone, none);
    ended.wait().unwrap();
    refused(job, gone, none);
    let mut child = sleeper();
    let mine = process(child.id());
    refused(job, (mine.0, mine.1 + 1), none);
    refused(job, (0, 1), none);
    refused(job, process(1), " is not one of the user's");
    refused(job, (u32::MAX, 1), none);
    let system = " is of the batch system";
    for daemon in ["launcher", "sbatchd", "res", "mbatchd", "lim"] {
        let pid = rig.pid(daemon, "host1").unwrap();
        refused(job, process(pid), system);
        assert!(alive(pid));
    }
    refused(job, others, &format!(" is of job <{other}>"));
    assert_eq!(at(job, own), "adopted, within: true");
    assert_eq!(at(job, mine), "adopted, within: false");
    assert_eq!(at(job, mine), "adopted, within: true");
    refused(other, mine, &format!(" is of job <{job}>"));
    // a host without slots of the job, and a job that is over or never was
    let bad = "279 Validation failed: bad job ID";
    assert_eq!(answer(&site, "host2", adopt(job, mine)), bad);
    assert_eq!(at(other + 1000, mine), bad);
    rig.ok("bkill", &[&job.to_string()]);
    wait_for("it to be killed with its job", || !alive(mine.0));
    assert_eq!(rig.end_of(job), "EXIT");
    let mut next = sleeper();
    assert_eq!(at(job, process(next.id())), bad);
    assert_eq!(rig.stat(other), "RUN");
    rig.ok("bkill", &[&other.to_string()]);
    rig.end_of(other);
    assert!(alive(next.id()));
    kill(next.id(), 9);
    let _ = (child.wait(), next.wait());
}
