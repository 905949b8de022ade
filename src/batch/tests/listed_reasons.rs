//! Pending reasons in listings: the number of hosts or their names, and hosts that are closed to
//! every job, which the classes have in common.

use super::cluster::{ADMINISTRATOR, Cluster, cluster};
use crate::model::JobRef;
use crate::model::reason::PendReason;
use crate::proto::Msg;
use crate::proto::client::{ClientMsg, Col, IdSel, JobQuery, JobSelect, Which};

/// The reasons of a job on the wire, without the names of hosts where their number is enough.
fn told(c: &mut Cluster, at: JobRef, reason_counts: bool) -> String {
    let select =
        JobSelect { ids: vec![IdSel { job: at.job, ..IdSel::default() }], ..JobSelect::default() };
    let (which, cols) = (Which { all: true, ..Which::default() }, vec![Col::PendReasons]);
    let query = JobQuery { select, which, cols, reason_counts, ..JobQuery::default() };
    match c.ask(ADMINISTRATOR, ClientMsg::Jobs(Box::new(query))).first() {
        Some(Msg::Client(ClientMsg::Rows { rows, .. })) => rows.get().to_owned(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn reasons_name_their_hosts_unless_the_number_of_them_is_enough() {
    let mut c = cluster().hosts(3, 1).up();
    for _ in 0..3 {
        c.submit("ann", "");
    }
    let waiting = c.submit("ann", "");
    let full = PendReason::HostFull.number();
    assert_eq!(told(&mut c, waiting, false), format!(r#"[[[[{full},3,["h1","h2","h3"]]]]]"#));
    assert_eq!(told(&mut c, waiting, true), format!("[[[[{full},3,[]]]]]"));
}

#[test]
fn hosts_closed_to_every_job_are_told_for_each_class_by_its_own_reasons() {
    let mut c =
        cluster().hosts(4, 1).queue("few", "HOSTS = h2 h4\n").queue("wide", "PRIORITY = 40\n").up();
    // h1 is full, h2 and h3 are closed, h4 is open
    let first = c.submit("ann", "-q wide -m h1");
    assert_eq!(c.running_on(first), ["h1"]);
    c.badmin("hclose h2");
    c.badmin("hclose h3");
    let names = |hosts: &[&str]| hosts.iter().map(|h| h.to_string()).collect::<Vec<_>>();
    let (full, closed) = (PendReason::HostFull, PendReason::HostClosed);
    let of_wide = c.submit("ann", "-q wide -R select[mem>99999999]");
    let want = vec![
        (PendReason::Requirement, names(&["h4"])),
        (closed, names(&["h2", "h3"])),
        (full, names(&["h1"])),
    ];
    let sorted = |mut reasons: Vec<(PendReason, Vec<String>)>| {
        reasons.sort_by_key(|reason| reason.0);
        reasons
    };
    assert_eq!(sorted(c.reasons(of_wide)), sorted(want));
    // what keeps the job from a host comes before the host's status
    let of_few = c.submit("ann", "-q few -R select[mem>99999999]");
    let want = vec![
        (PendReason::NotQueueHost, names(&["h1", "h3"])),
        (PendReason::Requirement, names(&["h4"])),
        (closed, names(&["h2"])),
    ];
    assert_eq!(sorted(c.reasons(of_few)), sorted(want));
    // a host that is opened, or has a free slot, is told as such at once
    c.badmin("hopen h2");
    c.end(first, 0);
    let want =
        vec![(PendReason::Requirement, names(&["h1", "h2", "h4"])), (closed, names(&["h3"]))];
    assert_eq!(sorted(c.reasons(of_wide)), sorted(want));
}
