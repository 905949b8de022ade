//! Absolute priorities on a real cluster: bmod -aps, and what the commands show of them.

use crate::rig::Rig;

const QUEUE: &str = "
Begin Queue
QUEUE_NAME   = ranked
PRIORITY     = 45
APS_PRIORITY = WEIGHT[[QPRIORITY, 2] [PROC, 1]] LIMIT[[PROC, 8]] GRACE_PERIOD[[PROC, 1h]]
End Queue
";

fn aps(rig: &Rig) -> Vec<(String, String)> {
    let table = rig.ok("bjobs", &["-noheader", "-q", "ranked", "-aps"]);
    let ends = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        (words[0].to_owned(), words[words.len() - 1].to_owned())
    };
    table.lines().map(ends).collect()
}

#[test]
fn priorities_set_by_bmod_are_listed_recorded_and_outlive_mbatchd() {
    let rig = Rig::up("aps", 1);
    rig.ready();
    let queues = rig.configdir().join("lsb.queues");
    let text = std::fs::read_to_string(&queues).unwrap();
    std::fs::write(&queues, format!("{text}{QUEUE}")).unwrap();
    rig.ok("badmin", &["reconfig"]);
    rig.ok("badmin", &["qinact", "ranked"]);
    let submit = || rig.bsub(&["-q", "ranked", "-o", "/dev/null", "true"]);
    let [first, second, third] = [(); 3].map(|()| submit().to_string());
    let changed = |id: &str| format!("Parameters of job <{id}> are being changed\n");
    assert_eq!(rig.ok("bmod", &["-aps", "system=10", &third]), changed(&third));
    assert_eq!(rig.ok("bmod", &["-aps", "system=20", &second]), changed(&second));
    assert_eq!(rig.ok("bmod", &["-aps", "admin=-4.5", &second]), changed(&second));
    let shown = [(&third, "(10)"), (&first, "90.00"), (&second, "85.50")];
    let want = shown.map(|(id, value)| (id.clone(), value.to_owned())).to_vec();
    assert_eq!(aps(&rig), want);
    let factors = rig.ok("bjobs", &["-noheader", "-prio", &second]);
    assert!(
        factors
            .ends_with(" 85.50 -4.50 0.00 0.00 0.00 0.00 0.00 90.00 0.00 90.00 0.00 0.00 0.00\n"),
        "{factors}"
    );
    let long = |command: &str, id: &str| {
        rig.ok(command, &["-l", id]).replace("\n                     ", "")
    };
    assert!(long("bjobs", &third).contains(", System Absolute Priority <10>"));
    assert!(long("bjobs", &second).contains(", Admin factor value <-4.5>"));
    for (value, why) in [
        ("system=0", "APS value cannot be zero"),
        ("system=-3", "APS value is out of range"),
        ("often", "Illegal APS value"),
    ] {
        let said = rig.run("bmod", &["-aps", value, &first]);
        assert!(said.code != 0 && said.err.contains(why), "{value}: {}", said.err);
    }
    let mixed = rig.run("bmod", &["-aps", "admin=1", "-J", "name", &first]);
    assert!(
        mixed.err.contains("Option -aps cannot be combined with other options"),
        "{}",
        mixed.err
    );
    rig.ok("badmin", &["mbdrestart"]);
    rig.ready();
    assert_eq!(aps(&rig), want);
    rig.ok("bmod", &["-apsn", &second]);
    let history = long("bhist", &second);
    for words in [
        "Absolute Priority Scheduling factor string changed to : system=20;",
        "Absolute Priority Scheduling factor string changed to : admin=-4.5;",
        "Absolute Priority Scheduling factor string deleted;",
    ] {
        assert!(history.contains(words), "{words}: {history}");
    }
    let queue = rig.ok("bqueues", &["-l", "ranked"]);
    for line in [
        "SCHEDULING POLICIES:  APS_PRIORITY",
        "PROCESSORS                      1.00              8.00              1h",
        "QUEUE PRIORITY                  2.00                 -               -",
    ] {
        assert!(queue.lines().any(|l| l == line), "{line}\n{queue}");
    }
    rig.ok("badmin", &["qact", "ranked"]);
    for id in [&third, &first, &second] {
        crate::rig::wait_for("the end", || {
            rig.ok("bjobs", &["-noheader", "-o", "stat", id]).trim() == "DONE"
        });
    }
}
