//! badmin showstatus: the peaks of hosts, processors and slots.

use super::cluster::cluster;

#[test]
fn peaks_of_showstatus_are_counted_where_hosts_change_and_not_for_numbers() {
    /// Status bits of LIM: unavailable.
    const UNAVAILABLE: &str = "status=32";
    let mut c = cluster().hosts(3, 2).up();
    let counted = c.hosts_counted();
    c.load("h1", "mem=5 ut=0.5");
    assert_eq!(c.hosts_counted(), counted);
    c.load("h1", UNAVAILABLE);
    assert_eq!(c.hosts_counted(), counted + 1);
    c.load("h1", "status=0");
    assert_eq!(c.hosts_counted(), counted + 2);
    c.reconfigure(cluster().hosts(3, 4));
    c.load("h1", "mem=6");
    assert_eq!(c.hosts_counted(), counted + 3);
}
