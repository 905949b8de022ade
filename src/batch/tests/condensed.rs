//! CONDENSE of lsb.hosts(5): the host groups and compute units that bhosts and bjobs show in place
//! of their hosts.

use super::cluster::{Cluster, cluster};
use crate::proto::Msg;
use crate::proto::client::{ClientMsg, Col};

/// Six hosts of two slots: h1 and h2 in the group `g1`, which is condensed, h2 and h3 in `g2`,
/// which is not, h3 and h4 in the unit `e1`, which is, itself in `r1` with h5, which is.
fn site(condense: &str) -> Cluster {
    let file = format!(
        "Begin Host\nHOST_NAME MXJ\ndefault 2\nEnd Host\n\n\
         Begin HostGroup\nGROUP_NAME CONDENSE GROUP_MEMBER\n\
         g1 {condense} (h1 h2)\ng2 N (h2 h3)\nEnd HostGroup\n\n\
         Begin ComputeUnit\nNAME TYPE CONDENSE MEMBER\n\
         e1 enclosure {condense} (h3 h4)\nr1 rack {condense} (e1 h5)\nEnd ComputeUnit\n"
    );
    let site = cluster().hosts(6, 2).param("COMPUTE_UNIT_TYPES = enclosure rack");
    site.lsb_hosts(&file).up()
}

fn groups(c: &mut Cluster) -> Vec<String> {
    c.hosts().iter().map(|host| format!("{} {}", host.name, host.condensed.join(" "))).collect()
}

#[test]
fn hosts_are_listed_with_the_groups_and_units_that_have_condense() {
    let rows = ["h1 g1", "h2 g1", "h3 e1 r1", "h4 e1 r1", "h5 r1", "h6 "];
    assert_eq!(groups(&mut site("Y")), rows);
    assert_eq!(groups(&mut site("N")), ["h1 ", "h2 ", "h3 ", "h4 ", "h5 ", "h6 "]);
}

#[test]
fn execution_hosts_of_a_group_are_shown_as_the_group_with_their_slots() {
    let mut c = site("Y");
    let job = c.submit("ann", "-n 11 -m 'h1+5 h6+4 h2+3 h3+2 h4+1 h5'");
    let shown = c.column(job, Col::CondensedHosts).to_string();
    assert_eq!(shown, r#"[["g1",4],["h6",2],["e1",4],["r1",1]]"#);
    let all = c.column(job, Col::ExecHosts).to_string();
    assert_eq!(all, r#"[["h1",2],["h6",2],["h2",2],["h3",2],["h4",2],["h5",1]]"#);
    let waiting = c.submit("ann", "-n 12");
    assert_eq!(c.column(waiting, Col::CondensedHosts).to_string(), "[]");
    let mut plain = site("N");
    let job = plain.submit("ann", "-n 2 -m h1");
    assert_eq!(plain.column(job, Col::CondensedHosts).to_string(), r#"[["h1",2]]"#);
}

#[test]
fn bhosts_takes_the_name_of_a_compute_unit() {
    let mut c = site("N");
    let mut names = |name: &str| {
        let names = vec![name.to_owned()];
        match c.ask("ann", ClientMsg::Hosts { names, res_req: String::new() }).pop() {
            Some(Msg::Client(ClientMsg::HostRows { rows })) => {
                rows.into_iter().map(|row| row.name).collect::<Vec<_>>().join(" ")
            }
            Some(Msg::Refused(why)) => why.words(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(names("r1"), "h3 h4 h5");
    assert_eq!(names("g2"), "h2 h3");
    assert_eq!(names("r9"), "r9: Bad host name, host group name or cluster name");
}
