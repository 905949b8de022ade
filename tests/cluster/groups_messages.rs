//! Messages with their data, and job groups with their limits: kept when mbatchd is killed, and
//! carried over when the log is switched (bpost(1), bgadd(1), lsb.events(5)).

use crate::rig::{Rig, wait_for};

#[test]
fn messages_and_groups_survive_kills_of_mbatchd_and_a_switch_of_the_log() {
    let rig = Rig::up("groups", 1);
    let data: Vec<u8> = (0..200_000u32).map(|n| (n * 31 % 251) as u8).collect();
    std::fs::write(rig.path("data"), &data).unwrap();
    let (from, to) = (rig.path("data").display().to_string(), rig.path("copy"));
    let job = rig.bsub(&["-H", "-g", "/kept/by/job", "sleep", "300"]);
    let id = job.to_string();
    rig.ok("bpost", &["-i", "3", "-d", "with data", "-a", &from, &id]);
    rig.ok("bstatus", &["-d", "half way", &id]);
    rig.ok("bgadd", &["-L", "0", "/kept/none"]);
    let held_back = rig.bsub(&["-g", "/kept/none/below", "true"]);
    let same = || {
        rig.kill9("mbatchd", "host1");
        rig.ready();
        // later submissions do not overwrite what is spooled
        rig.bsub(&["-o", "/dev/null", "-env", "all,LATER=1", "true"]);
        let _ = std::fs::remove_file(&to);
        rig.ok("bread", &["-i", "3", "-a", &to.display().to_string(), &id]);
        assert!(std::fs::read(&to).unwrap() == data, "the data are others");
        assert!(rig.ok("bstatus", &[&id]).contains(" half way "));
        let groups = rig.ok("bjgroup", &["-s", "/kept"]);
        let names: Vec<&str> =
            groups.lines().skip(1).filter_map(|l| l.split_whitespace().next()).collect();
        let want = ["/kept", "/kept/by", "/kept/by/job", "/kept/none", "/kept/none/below"];
        assert_eq!(names, want);
        assert_eq!(rig.stat(held_back), "PEND");
    };
    same();
    // a new log has them at its head, and the spool that they lie in stays
    let params = rig.configdir().join("lsb.params");
    let text = std::fs::read_to_string(&params).unwrap();
    let with = text
        .replace("MAX_JOB_NUM = 1000", "MAX_JOB_NUM = 1")
        .replace("CLEAN_PERIOD = 3600", "CLEAN_PERIOD = 1");
    std::fs::write(&params, with).unwrap();
    rig.ok("badmin", &["reconfig"]);
    wait_for("a new log", || {
        rig.end_of(rig.bsub(&["-o", "/dev/null", "true"]));
        rig.logdir().join("lsb.events.1").exists()
    });
    same();
    rig.ok("bgmod", &["-Ln", "/kept/none"]);
    assert_eq!(rig.end_of(held_back), "DONE");
    wait_for("the counters", || rig.ok("bjgroup", &["/kept/none"]).contains(" 0/- "));
}

#[test]
fn job_that_waits_for_jobs_of_a_group_starts_when_enough_are_done() {
    let rig = Rig::up("group-condition", 1);
    let refused = rig.run("bsub", &["-w", "numdone(/risk, >= 2)", "true"]);
    assert_eq!((refused.code, refused.out.as_str()), (255, ""));
    let words = "/risk: Job group does not exist. Job not submitted.\n";
    assert_eq!(refused.err, words);
    let held = ["-H", "-o", "/dev/null", "-g", "/risk/eu", "true"];
    let jobs = [rig.bsub(&held), rig.bsub(&held), rig.bsub(&held)];
    let waits = rig.bsub(&["-o", "/dev/null", "-w", "numdone(/risk, >= 2)", "true"]).to_string();
    let run = |job: u32| {
        rig.ok("bresume", &[&job.to_string()]);
        assert_eq!(rig.end_of(job), "DONE");
    };
    run(jobs[0]);
    assert_eq!(rig.field(&waits, "stat"), "PEND");
    let long = rig.ok("bjobs", &["-l", &waits]).replace("\n                     ", "");
    assert!(long.contains("Dependency Condition <numdone(/risk, >= 2)>"), "{long}");
    let told = rig.ok("bjdepinfo", &["-l", &waits]);
    assert!(told.contains(&format!("job <{waits}> is not satisfied: numdone(/risk, >= 2)")));
    assert_eq!(told.lines().count(), 5, "{told}");
    // the count is made again by the next mbatchd
    rig.kill9("mbatchd", "host1");
    rig.ready();
    run(jobs[1]);
    assert_eq!(rig.end_of(waits.parse().unwrap()), "DONE");
    let rest = rig.run("bwait", &["-t", "1", "-w", "numhold(/risk, 1) && numended(/risk, == 2)"]);
    assert_eq!(rest.code, 0, "{rest:?}");
}
