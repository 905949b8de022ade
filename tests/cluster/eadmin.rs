//! EXIT_RATE of lsb.hosts(5) and eadmin(8) with real jobs that exit.

use super::rig::{Rig, program, wait_for};

/// Has mbatchd look for exceptions every minute, and a host be exceptional after two exits.
fn configure(rig: &Rig) {
    let path = rig.configdir().join("lsb.params");
    let text = std::fs::read_to_string(&path).unwrap();
    let params = "Begin Parameters\nGLOBAL_EXIT_RATE = 1\nEADMIN_TRIGGER_DURATION = 1\n";
    std::fs::write(&path, text.replacen("Begin Parameters\n", params, 1)).unwrap();
    rig.ok("badmin", &["reconfig"]);
}

fn exit_twice(rig: &Rig) {
    for _ in 0..2 {
        let job = rig.bsub(&["-o", "/dev/null", "exit 1"]);
        assert_eq!(rig.end_of(job), "EXIT");
    }
}

#[test]
fn eadmin_of_the_site_is_told_of_a_host_on_which_jobs_exit() {
    let rig = Rig::up("eadmin", 1);
    configure(&rig);
    assert!(rig.run("bhosts", &["-x"]).err.contains("There is no exceptional host found"));
    let says = "#!/bin/sh\necho \"$* $(id -u) $(pwd) ${LSF_ENVDIR:+env}\" >> \"${0%/*}/told\"\n";
    program(&rig.path("etc/eadmin"), says);
    exit_twice(&rig);
    assert!(rig.ok("bhosts", &["-x"]).contains("host1"));
    let long = rig.ok("bhosts", &["-l", "host1"]);
    let shown = " THRESHOLD AND LOAD USED FOR EXCEPTIONS:\n            JOB_EXIT_RATE\n \
                 Threshold       1.00\n Load            2.00\n";
    assert!(long.contains(shown), "{long}");
    let told = || std::fs::read_to_string(rig.path("etc/told")).unwrap_or_default();
    wait_for("the call of eadmin", || !told().is_empty());
    let me = rustix::process::geteuid().as_raw();
    assert_eq!(told(), format!("host host1:2:1 {me} / env\n"));
    // the program decides what is done
    assert!(rig.ok("bhosts", &["-w", "host1"]).contains(" ok "));
}

#[test]
fn host_is_closed_where_the_site_has_no_eadmin() {
    let rig = Rig::up("noeadmin", 1);
    configure(&rig);
    exit_twice(&rig);
    wait_for("the host to be closed", || rig.ok("bhosts", &["-w", "host1"]).contains("closed_Adm"));
    let comment = "ADMIN ACTION COMMENT: \"eadmin: JOB EXIT THRESHOLD EXCEEDED\"";
    assert!(rig.ok("bhosts", &["-l", "host1"]).contains(comment));
    // its lines are cut at the width of a terminal
    let history: String = rig.ok("badmin", &["hhist"]).split_whitespace().collect();
    assert!(history.contains("eadmin:JOBEXITTHRESHOLDEXCEEDED"), "{history}");
}
