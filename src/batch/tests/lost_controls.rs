//! Queues and hosts whose control records the log lost.

use super::*;
use crate::batch::soft_state::lost_controls::LostControl;
use crate::model::event::name_mark;

fn started(controls: Vec<LostControl>) -> Rig {
    let found = Recovered { epoch: 1, controls, ..Default::default() };
    let now = Now { mono_us: 1_000_000, wall_us: 1_700_000_000_000_000 };
    Rig::with(Mbatchd::new(conf(), "h1", found), now)
}

fn lost(queue: bool, name: &str) -> LostControl {
    let mark = if name.is_empty() { 0 } else { name_mark(name) };
    LostControl { queues: queue, hosts: !queue, mark, why: "bytes 1-2".into(), ..<_>::default() }
}

/// The closed and inactive queues, and the closed hosts.
fn shut(r: &Rig) -> String {
    let mut out = Vec::new();
    for queue in ["high", "normal"] {
        let control = r.mbd.state.queue_control_of(queue).cloned().unwrap_or_default();
        out.extend(control.closed.then(|| format!("{queue} closed")));
        out.extend(control.inactive.then(|| format!("{queue} inactive")));
    }
    for host in ["h1", "h2"] {
        let control = r.mbd.state.host_control_of(host).cloned().unwrap_or_default();
        out.extend(control.closed.then(|| format!("{host} closed")));
    }
    out.join(", ")
}

#[test]
fn a_lost_control_record_leaves_its_queue_or_host_closed_and_says_so() {
    let r = started(vec![lost(true, "high")]);
    assert_eq!(shut(&r), "high closed, high inactive");
    assert!(
        r.said
            .iter()
            .any(|text| { text == "queue <high> is closed: a control record was lost: bytes 1-2" })
    );
    let mut r = started(vec![lost(false, "h2")]);
    assert_eq!(shut(&r), "h2 closed");
    assert!(r.said.iter().any(|text| text.starts_with("host <h2> is closed")), "{:?}", r.said);
    // nothing starts there
    for _ in 0..4 {
        r.submit(spec("x")).unwrap();
    }
    assert_eq!(r.starts().len(), 2);
    // it is in the log, and outlives a restart
    r.reread();
    assert_eq!(shut(&r), "h2 closed");
    // a name that is not known any more closes nothing
    assert_eq!(shut(&started(vec![lost(false, "gone")])), "");
}

#[test]
fn a_control_record_of_nobody_knows_whom_closes_all_but_what_is_known() {
    let r = started(vec![lost(false, "")]);
    assert_eq!(shut(&r), "h1 closed, h2 closed");
    let mut control = lost(true, "");
    control.hosts = true;
    control.known.insert((true, false, "high".into()));
    control.known.insert((false, false, "h1".into()));
    let r = started(vec![control]);
    assert_eq!(shut(&r), "high inactive, normal closed, normal inactive, h2 closed");
}
