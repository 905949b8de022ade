//! Eligible and ineligible pending time (TRACK_ELIGIBLE_PENDINFO=Y) from bsub to lsb.acct, over a
//! restart of mbatchd.

use crate::rig::{Rig, kill, wait_for};

/// Adds lines to the section of a file of the cluster that ends so.
fn add(rig: &Rig, file: &str, end: &str, lines: &str) {
    let path = rig.configdir().join(file);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen(end, &format!("{lines}\n{end}"), 1)).unwrap();
}

fn secs(rig: &Rig, job: u32, field: &str) -> Option<i64> {
    rig.field(&job.to_string(), field).parse().ok()
}

#[test]
fn waiting_options_of_a_job_reach_lsb_acct() {
    let rig = Rig::up("waited", 1);
    let off = rig.bsub(&["-H", "-o", "/dev/null", "true"]);
    assert_eq!(rig.field(&off.to_string(), "ipendtime"), "-");
    add(&rig, "lsb.params", "End Parameters", "TRACK_ELIGIBLE_PENDINFO = Y");
    add(&rig, "lsb.queues", "End Queue", "PEND_TIME_LIMIT = 2:00\nELIGIBLE_PEND_TIME_LIMIT = 30");
    let queues = std::fs::read_to_string(rig.configdir().join("lsb.queues")).unwrap();
    let name = |l: &str| Some(l.strip_prefix("QUEUE_NAME")?.trim_matches([' ', '=']).to_string());
    let queue = queues.lines().find_map(name).unwrap();
    rig.ok("badmin", &["reconfig"]);
    let job = rig.bsub(&["-q", &queue, "-H", "-o", "/dev/null", "true"]);
    let id = job.to_string();
    wait_for("a held job to have waited ineligible", || secs(&rig, job, "ipendtime") >= Some(2));
    let shown = |fields: &str| rig.field(&id, &format!("{fields} delimiter=','"));
    assert_eq!(shown("pendstate effective_plimit effective_eplimit"), "IPEND,7200,1800");
    assert!(secs(&rig, job, "ependtime") < Some(2));
    // it is on the disk, not in the process
    let old = rig.pid("mbatchd", "host1").unwrap();
    kill(old, 9);
    wait_for("another mbatchd", || rig.pid("mbatchd", "host1").is_some_and(|new| new != old));
    let before = secs(&rig, job, "ipendtime").unwrap();
    assert!(before >= 2, "{before}");
    rig.ok("bresume", &[&id]);
    assert_eq!(rig.end_of(job), "DONE");
    let waited = secs(&rig, job, "ipendtime").unwrap();
    assert!(waited >= before);
    let line = format!(" Ineligible pending time (seconds):     {waited}\n");
    for (command, words) in [("bjobs", ["-l", &id]), ("bacct", ["-l", &id])] {
        let said = rig.ok(command, &words);
        assert!(said.contains("\n PENDING TIME DETAILS:\n") && said.contains(&line), "{said}");
    }
    let said = rig.ok("bhist", &["-l", &id]);
    assert!(said.contains("\nPENDING TIME DETAILS:\n"), "{said}");
    assert!(said.contains(&line[1..]), "{said}");
    let log = std::fs::read_to_string(rig.logdir().join("lsb.events")).unwrap();
    let of = log.lines().filter_map(|l| l.strip_prefix("\"LSF_ELIGIBLE\" \"10.1\" "));
    let of: Vec<&str> =
        of.filter_map(|l| l.split_once(&format!(" {id} 0 "))).map(|l| l.1).collect();
    assert_eq!(of, ["0", "1"], "{log}");
}
