//! Groups whose members egroup(8) names, on a running cluster.

use super::rig::{Rig, wait_for};
use std::os::unix::fs::PermissionsExt;

/// Has egroup answer with the files `members/-u.GROUP` and `members/-m.GROUP`.
fn install(rig: &Rig) {
    std::fs::create_dir(rig.path("members")).unwrap();
    let dir = rig.path("members");
    let script = format!("#!/bin/sh\nexec cat '{}'/\"$1.$2\"\n", dir.display());
    rig.write("etc/egroup", &script);
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(rig.path("etc/egroup"), mode).unwrap();
}

fn append(rig: &Rig, file: &str, text: &str) {
    let path = rig.configdir().join(file);
    let old = std::fs::read_to_string(&path).unwrap_or_default();
    std::fs::write(&path, old + text).unwrap();
}

#[test]
fn members_of_external_groups_come_from_egroup() {
    let rig = Rig::up("egroup", 2);
    install(&rig);
    let me = rustix::process::geteuid().as_raw();
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap();
    let line = passwd.lines().find(|l| l.split(':').nth(2) == Some(&me.to_string())).unwrap();
    let me = line.split(':').next().unwrap();
    append(
        &rig,
        "lsb.users",
        "\nBegin UserGroup\nGROUP_NAME GROUP_MEMBER\nchip (!)\nEnd UserGroup\n",
    );
    append(
        &rig,
        "lsb.hosts",
        "\nBegin HostGroup\nGROUP_NAME GROUP_MEMBER\nfast (!)\nEnd HostGroup\n",
    );
    append(
        &rig,
        "lsb.queues",
        "\nBegin Queue\nQUEUE_NAME = chipq\nUSERS = chip\nHOSTS = fast\nEnd Queue\n",
    );
    // egroup fails: the groups have no members
    rig.ok("badmin", &["reconfig"]);
    let members = |command: &str, group: &str| {
        let out = rig.ok(command, &[group]);
        let row = out.lines().find(|l| l.split_whitespace().next() == Some(group)).unwrap();
        row.split_whitespace().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!((members("bugroup", "chip").len(), members("bmgroup", "fast").len()), (0, 0));
    let waiting = rig.bsub(&["-q", "chipq", "-o", "/dev/null", "true"]);
    assert_eq!(rig.stat(waiting), "PEND");
    rig.write("members/-u.chip", &format!("{me} nobody\n"));
    rig.write("members/-m.fast", "host2\n");
    rig.ok("badmin", &["reconfig"]);
    assert_eq!(members("bugroup", "chip"), [me, "nobody"]);
    assert_eq!(members("bmgroup", "fast"), ["host2"]);
    assert_eq!(rig.end_of(waiting), "DONE");
    for _ in 0..3 {
        let job = rig.bsub(&["-q", "chipq", "-o", "/dev/null", "true"]);
        assert_eq!(rig.end_of(job), "DONE");
        assert_eq!(rig.field(&job.to_string(), "exec_host"), "host2");
    }
    // a program that prints rubbish changes nothing, a new master asks it again
    rig.write("members/-u.chip", "a:b\n");
    rig.ok("badmin", &["reconfig"]);
    assert_eq!(members("bugroup", "chip"), [me, "nobody"]);
    rig.ok("badmin", &["mbdrestart"]);
    wait_for("a master without members of the group", || members("bugroup", "chip").is_empty());
    assert_eq!(members("bmgroup", "fast"), ["host2"]);
}
