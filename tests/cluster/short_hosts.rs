//! SHORT_EVENTFILE of LSF_HPC_EXTENSIONS: the logs name a host of several slots once, and all that
//! read them know its slots (lsf.conf(5)).

use super::rig::{Rig, wait_for};

#[test]
fn logs_with_hosts_in_short_are_read_by_mbatchd_bhist_and_bacct() {
    let rig = Rig::up("short-hosts", 3);
    rig.set_conf("LSF_HPC_EXTENSIONS", "SHORT_EVENTFILE");
    rig.kill9("mbatchd", "host1");
    rig.ready();
    wait_for("all hosts", || rig.run("bhosts", &["-w"]).out.matches(" ok ").count() == 3);
    let args = ["-n", "4", "-R", "span[ptile=2]", "-m", "host1! host2", "-o", "/dev/null"];
    let job = rig.bsub(&[&args[..], &["while ! test -e go; do sleep 0.1; done"]].concat());
    let id = job.to_string();
    wait_for("the job", || rig.stat(job) == "RUN");
    let log = |file: &str| std::fs::read_to_string(rig.logdir().join(file)).unwrap_or_default();
    let words = "2 \"2*host1\" \"2*host2\"";
    let start =
        || log("lsb.events").lines().find(|l| l.starts_with("\"JOB_START\"")).map(str::to_owned);
    assert_eq!(start().unwrap().matches(words).count(), 2, "{}", log("lsb.events"));
    // the next mbatchd knows the slots by the record alone
    rig.kill9("mbatchd", "host1");
    rig.ready();
    wait_for("the job to be known again", || rig.stat(job) == "RUN");
    assert_eq!(rig.field(&id, "slots"), "4");
    assert_eq!(rig.field(&id, "exec_host"), "2*host1:2*host2");
    rig.write("go", "");
    assert_eq!(rig.end_of(job), "DONE");
    wait_for("the account", || log("lsb.acct").contains("\"JOB_FINISH\""));
    assert_eq!(log("lsb.acct").matches(words).count(), 2, "{}", log("lsb.acct"));
    for command in ["bhist", "bacct"] {
        let said = rig.ok(command, &["-l", &id]).replace("\n                     ", "");
        let each = "Dispatched to 4 Hosts/Processors <host1> <host1> <host2> <host2>";
        assert!(said.contains(each), "{command}: {said}");
    }
}
