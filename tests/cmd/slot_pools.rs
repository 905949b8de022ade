//! Slot pools on a real cluster: bqueues -l, badmin ckconfig -v, and shares by which jobs start.

use crate::rig::{Rig, wait_for};

const QUEUES: &str = "
Begin Queue
QUEUE_NAME           = roma
PRIORITY             = 45
SLOT_POOL            = poolA
SLOT_SHARE           = 50
MAX_SLOTS_IN_POOL    = 2
USE_PRIORITY_IN_POOL = N
End Queue
Begin Queue
QUEUE_NAME           = verona
PRIORITY             = 44
SLOT_POOL            = poolA
SLOT_SHARE           = 40
End Queue
";

#[test]
fn slot_pools_are_listed_and_shared_by_their_queues() {
    let rig = Rig::up("slotpools", 1);
    rig.ready();
    let queues = rig.configdir().join("lsb.queues");
    let text = std::fs::read_to_string(&queues).unwrap();
    std::fs::write(&queues, format!("{text}{QUEUES}")).unwrap();
    let checked = rig.run("badmin", &["ckconfig", "-v"]);
    let told = format!("{}{}", checked.out, checked.err);
    assert!(checked.code == 0 && !told.contains("_POOL") && !told.contains("SLOT_"), "{told}");
    rig.ok("badmin", &["reconfig"]);
    let long = rig.ok("bqueues", &["-l", "roma"]);
    for line in [
        "SLOT_SHARE:  50%",
        "SLOT_POOL:  poolA",
        "MAX_SLOTS_IN_POOL:  2",
        "USE_PRIORITY_IN_POOL:  N",
    ] {
        assert!(long.lines().any(|l| l == line), "{line}\n{long}");
    }
    assert!(!rig.ok("bqueues", &["-l", "normal"]).contains("SLOT_"));
    rig.ok("badmin", &["qinact", "roma", "verona"]);
    let submit =
        |queue: &str| rig.bsub(&["-q", queue, "-o", "/dev/null", "sleep", "600"]).to_string();
    let (first, second, third) = (submit("roma"), submit("roma"), submit("verona"));
    rig.ok("badmin", &["qact", "roma"]);
    let state = |id: &str| rig.ok("bjobs", &["-noheader", "-o", "stat", id]).trim().to_owned();
    // roma has the whole pool as long as verona is inactive
    wait_for("the starts", || state(&first) == "RUN" && state(&second) == "RUN");
    rig.ok("badmin", &["qact", "verona"]);
    let why = "MAX_SLOTS_IN_POOL of the queue's slot pool is reached";
    wait_for("the reason", || rig.ok("bjobs", &["-p", &third]).contains(why));
    rig.ok("bkill", &[&first]);
    wait_for("the start in verona", || state(&third) == "RUN");
    rig.ok("bkill", &[&second, &third]);
}
