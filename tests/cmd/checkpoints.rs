//! bchkpnt and brestart on a real cluster: the words of each outcome, the options that select jobs
//! and change a submission, and nothing logged where a request is refused. Checkpoints of real
//! processes are in tests/cluster.

use crate::common::*;
use std::os::unix::fs::PermissionsExt;

/// The records that a checkpoint of a job was asked for, or has ended.
fn checkpoints(id: &str) -> usize {
    let log = event_log();
    let of = |line: &&str| line.starts_with("\"CHKPNT\"") && line.split(' ').nth(3) == Some(id);
    log.lines().filter(of).count()
}

#[test]
fn bchkpnt_refuses_in_the_documented_words_and_logs_nothing() {
    let plain = bsub(&["-o", "/dev/null", "sleep", "300"]);
    let held = bsub(&["-H", "-k", "/tmp", "-o", "/dev/null", "true"]);
    let over = bsub(&["-o", "/dev/null", "true"]);
    end_of(&over);
    until(&plain, "RUN");
    for (args, why) in [
        (&[plain.as_str()][..], format!("Job <{plain}>: Job is not checkpointable\n")),
        (&["-k", &held], format!("Job <{held}>: Job has not started yet\n")),
        (&[&over], format!("Job <{over}>: Job has already finished\n")),
        (&["99999"], "Job <99999>: No matching job found\n".to_string()),
        (&["abc"], "abc: Illegal job ID.\n".to_string()),
        (&["-J", "nojob"], "Job <nojob> is not found\n".to_string()),
        (&["-q", "nosuch", "0"], "nosuch: No such queue\n".to_string()),
        (&["-u", "no-such-user", "0"], "no-such-user: Unknown user\n".to_string()),
        (&["-m", "nosuch", "0"], {
            "nosuch: Bad host name, host group name or cluster name\n".to_string()
        }),
    ] {
        let said = run("bchkpnt", args);
        assert_eq!((said.code, said.err, said.out.as_str()), (255, why, ""), "{args:?}");
    }
    let said = run("bchkpnt", &["-p", "soon", &plain]);
    assert_eq!(said.code, 255);
    assert!(said.err.starts_with("soon: bad period of checkpoints\n"), "{}", said.err);
    assert_eq!([&plain, &held, &over].map(|id| checkpoints(id)), [0, 0, 0]);
    ok("bkill", &[&plain, &held]);
}

#[test]
fn bchkpnt_selects_jobs_by_its_options_and_sets_their_period() {
    let dir = scratch("bchkpnt");
    let option = dir.display().to_string();
    let base = ["-k", &option, "-o", "/dev/null"];
    let job = |more: &[&str]| bsub(&[&base[..], more, &["sleep", "300"]].concat());
    let (one, other) = (job(&["-J", "period_one", "-g", "/period"]), job(&["-J", "period_two"]));
    until(&one, "RUN");
    until(&other, "RUN");
    let set = |id: &str| format!("Job <{id}>: Checkpoint period is now 30 min.\n");
    assert_eq!(ok("bchkpnt", &["-p", "30", "-J", "period_one"]), set(&one));
    assert_eq!(ok("bchkpnt", &["-p", "30", "-g", "/period", "0"]), set(&one));
    let said = ok("bchkpnt", &["-p", "30", "-J", "period_*", "-q", "normal", "0"]);
    let mut both: Vec<&str> = said.lines().collect();
    both.sort_unstable();
    let mut want = [set(&one), set(&other)].map(|s| s.trim_end().to_string());
    want.sort_unstable();
    assert_eq!(both, want);
    let told = ok("bjobs", &["-UF", &one]);
    assert!(told.contains(", Checkpoint period 30 min., Checkpoint directory <"), "{told}");
    let none = ok("bchkpnt", &["-p", "0", &one]);
    assert_eq!(none, format!("Job <{one}>: Periodic checkpointing is disabled\n"));
    assert!(!ok("bjobs", &["-UF", &one]).contains("Checkpoint period"));
    ok("bkill", &[&one, &other]);
    std::fs::remove_dir_all(&dir).unwrap();
}

/// The directory of a job that was checkpointed, with this submission.
fn checkpointed(top: &std::path::Path, job: &str, submission: &str) {
    let dir = top.join(job);
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o700)).unwrap();
    std::fs::write(dir.join(".echkpnt"), "LSB_ECHKPNT_METHOD=x\n").unwrap();
    std::fs::write(dir.join(".submission"), submission).unwrap();
}

#[test]
fn brestart_repeats_a_submission_as_its_options_change_it() {
    let dir = scratch("brestart");
    let top = dir.display().to_string();
    // what a checkpoint keeps is the submission of its job
    let id = bsub(&["-H", "-k", &top, "-J", "kept", "-P", "kept", "-W", "5", "sleep", "300"]);
    ok("bkill", &[&id]);
    let spec = r#"{"name":"kept","command":"sleep 300","queue":"normal","project":"kept",
        "min_slots":1,"max_slots":1,"limits":{"run":300}}"#;
    checkpointed(&dir, "7", spec);
    let lines = ["-q", "short", "-W", "9", "-b", "2035:1:2:3:4", "-R", "mem>1", "-M", "90MB"];
    let more = ["-c", "20", "-C", "0", "-D", "10MB", "-F", "20MB", "-S", "30MB", "-x", "-ul"];
    let all: Vec<&str> = [&lines[..], &more[..11], &["-ul", &top, "7"]].concat();
    let said = run("brestart", &all);
    assert_eq!(said.code, 255, "the queue takes no exclusive jobs");
    assert_eq!(said.err, "short: Queue does not accept EXCLUSIVE jobs. Job not submitted.\n");
    let all: Vec<&str> = [&lines[..], &more[..10], &["-B", "-N", "-ul", &top, "7"]].concat();
    let said = run("brestart", &all);
    let id = job_id(&said.out).unwrap_or_else(|| panic!("{said:?}")).to_string();
    assert!(said.out.ends_with("is submitted to queue <short>.\n"), "{said:?}");
    for (name, value) in
        [("job_name", "kept"), ("proj_name", "kept"), ("queue", "short"), ("runtimelimit", "9.0")]
    {
        assert_eq!(field(&id, name), value, "{name}");
    }
    let told = ok("bjobs", &["-UF", &id]);
    for words in
        ["Requested Resources <mem>1>", "Specified Start Time", "Notify when job begins/ends"]
    {
        assert!(told.contains(words), "{words}: {told}");
    }
    let said = run("brestart", &["-G", "staff", "-b", "2035:1:2:3:4", &top]);
    assert_eq!(said.err, "");
    let last = job_id(&said.out).unwrap().to_string();
    assert_eq!(field(&last, "job_name"), "kept", "the job that was checkpointed last");
    ok("bkill", &[&id, &last]);
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn brestart_refuses_what_is_no_checkpoint_and_submits_nothing() {
    let dir = scratch("brestart-wrong");
    let top = dir.display().to_string();
    let mark = "restarted-by-mistake";
    let at = |name: &str| dir.join(name).display().to_string();
    checkpointed(&dir, "8", "{");
    checkpointed(&dir, "9", &format!("{{\"command\":\"{mark}\"}}"));
    std::fs::create_dir(dir.join("10")).unwrap();
    std::fs::set_permissions(dir.join("10"), std::fs::Permissions::from_mode(0o700)).unwrap();
    checkpointed(&dir, "11", "{}");
    std::fs::set_permissions(dir.join("11"), std::fs::Permissions::from_mode(0o777)).unwrap();
    for (args, words) in [
        (&["/nosuch/dir", "1"][..], "/nosuch/dir/1: No such file or directory".to_string()),
        (&["/nosuch/dir"], "/nosuch/dir: No such file or directory".to_string()),
        (&[&top, "7"], format!("{}: No such file or directory", at("7"))),
        (&[&top, "8"], format!("{}: not a submission", at("8/.submission"))),
        (&[&top, "10"], format!("{}: No such file or directory", at("10/.echkpnt"))),
        (&[&top, "11"], format!("{}: others may write in it", at("11"))),
        (&["-W", "soon", &top, "9"], "soon: Bad RUNLIMIT specification".to_string()),
        (&["-q", "nosuch", &top, "9"], "nosuch: No such queue".to_string()),
    ] {
        let said = run("brestart", args);
        assert_eq!((said.code, said.out.as_str()), (255, ""), "{args:?}");
        assert_eq!(said.err, format!("{words}. Job not submitted.\n"), "{args:?}");
    }
    let said = run("brestart", &[]);
    assert!(said.err.starts_with("the checkpoint directory must be specified\n"), "{}", said.err);
    assert!(!event_log().contains(mark));
    std::fs::remove_dir_all(&dir).unwrap();
}
