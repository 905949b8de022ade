//! Jobs whose slots come and go, with real processes: the notification command, the host file, and
//! mbatchd that dies while a change is under way (bresize(1)).

use super::rig::{Rig, program, wait_for};

fn slots(rig: &Rig, job: u32) -> String {
    rig.field(&job.to_string(), "nalloc_slot")
}

#[test]
fn a_job_grows_and_shrinks_as_its_notification_command_says() {
    let rig = Rig::up("resize", 2);
    let all: u32 = 4;
    let (notify, said, allow) = (rig.path("notify"), rig.path("said"), rig.path("allow"));
    // it waits for a word, and takes the change by that
    let text = format!(
        "#!/bin/sh\necho \"$LSB_RESIZE_EVENT $LSB_RESIZE_HOSTS\" >> {}\n\
         while ! test -s {1}; do sleep 0.05; done\nread word < {1}\nrm {1}\n\
         test $word = yes && exit $LSB_RESIZE_NOTIFY_OK\nexit $LSB_RESIZE_NOTIFY_FAIL\n",
        said.display(),
        allow.display()
    );
    program(&notify, &text);
    let answer = |word: &str| std::fs::write(&allow, format!("{word}\n")).unwrap();
    let told = || std::fs::read_to_string(&said).unwrap_or_default();
    let other = rig.bsub(&["-n", "3", "-o", "/dev/null", "sleep", "300"]);
    wait_for("RUN", || rig.stat(other) == "RUN");
    let (hosts, max) = (rig.path("hosts"), format!("1,{all}"));
    let line = format!("echo $LSB_DJOB_HOSTFILE > {}; sleep 300", hosts.display());
    let rnc = notify.display().to_string();
    let job = rig.bsub(&["-n", &max, "-ar", "-rnc", &rnc, "-o", "/dev/null", &line]);
    wait_for("RUN", || rig.stat(job) == "RUN");
    rig.run("bkill", &[&other.to_string()]);
    wait_for("the notification", || told().starts_with("grow "));
    assert_eq!(slots(&rig, job), "4", "the slots are reserved while the command runs");
    // mbatchd dies while the command runs
    let (host, _) = rig.pids("mbatchd").into_iter().next().unwrap();
    assert!(rig.kill9("mbatchd", &host));
    answer("yes");
    let id = job.to_string();
    let long = || rig.run("bhist", &["-l", &id]).out.replace("\n                     ", "");
    wait_for("its end", || long().contains("Resize notification completed"));
    assert_eq!(told().lines().count(), 1, "the command is run once");
    let file = std::fs::read_to_string(&hosts).unwrap();
    let lines = || std::fs::read_to_string(file.trim()).unwrap_or_default();
    assert_eq!(lines().lines().count(), 4);
    // a release that the command does not take
    rig.ok("bresize", &["release", "all", &id]);
    answer("no");
    wait_for("the refusal", || long().contains("Resize notification failed"));
    assert_eq!((slots(&rig, job).as_str(), lines().lines().count()), ("4", 4));
    // and one without a command
    rig.ok("bresize", &["release", "-rncn", "all", &id]);
    wait_for("one slot", || slots(&rig, job) == "1");
    assert_eq!(lines().lines().count(), 1);
    assert_eq!(told().lines().count(), 2);
    rig.run("bkill", &[&id]);
    rig.end_of(job);
    let log = std::fs::read_to_string(rig.logdir().join("lsb.events")).unwrap();
    assert_eq!(log.matches("\"JOB_RESIZE_NOTIFY_DONE\"").count(), 3);
    // lsb.acct tells of the two changes that were made
    let accounts = std::fs::read_to_string(rig.logdir().join("lsb.acct")).unwrap();
    let resized = accounts.lines().filter(|line| line.starts_with("\"JOB_RESIZE\" "));
    let resized: Vec<Vec<&str>> = resized.map(|line| line.split(' ').collect()).collect();
    let kinds: Vec<[&str; 3]> = resized.iter().map(|f| [f[3], f[8], f[10]]).collect();
    assert_eq!(kinds, [[&id, "0", "1"], [&id, "1", "4"]], "{accounts}");
    assert!(rig.ok("bacct", &["-l", &id]).contains(&format!("Job <{id}>")));
    wait_for("the file to go", || !std::path::Path::new(file.trim()).exists());
}
