//! CONTROL_ACTION of lsb.serviceclasses(5): a real command of a class that misses its goal.

use super::rig::{Rig, program, wait_for};
use std::time::{Duration, Instant};

#[test]
fn command_of_a_class_that_misses_its_goal_is_run_once_a_minute() {
    let rig = Rig::up("action", 1);
    let (told, late) = (rig.path("told"), rig.path("late"));
    let says = "#!/bin/sh\necho \"$1 $(id -u) $(pwd) ${LSF_ENVDIR:+env}\" >> \"${0%/*}/told\"\n";
    program(&late, &format!("{says}exec sleep 600\n"));
    let class = "Begin ServiceClass\nNAME = steady\nGOALS = [VELOCITY 2]\n\
        CONTROL_ACTION = VIOLATION_PERIOD[1] CMD";
    let text = format!("{class}[{} [late]]\nEnd ServiceClass\n", late.display());
    std::fs::write(rig.configdir().join("lsb.serviceclasses"), text).unwrap();
    rig.ok("badmin", &["reconfig"]);
    rig.ok("badmin", &["qinact", "normal"]);
    let begun = Instant::now();
    rig.bsub(&["-q", "normal", "-sla", "steady", "-o", "/dev/null", "true"]);
    let lines = || std::fs::read_to_string(&told).unwrap_or_default();
    while lines().is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(150), "the command was not run");
        // the loop is not kept waiting by a command that takes long
        rig.ok("bsla", &[]);
        std::thread::sleep(Duration::from_secs(1));
    }
    assert!(begun.elapsed() >= Duration::from_secs(59), "{:?}", begun.elapsed());
    let me = rustix::process::geteuid().as_raw();
    assert_eq!(lines(), format!("[late] {me} / env\n"));
    // a new master runs it no second time at once
    rig.ok("badmin", &["mbdrestart"]);
    wait_for("the class of the new master", || rig.run("bsla", &[]).out.contains("Active:Delayed"));
    std::thread::sleep(Duration::from_secs(10));
    assert_eq!(lines().lines().count(), 1);
}
