//! AFFINITY of lsb.hosts.

use super::*;
use crate::conf::types::AffinityCpus;
use crate::model::topology::CpuSet;

fn hosts(value: &str) -> (Option<AffinityCpus>, Vec<String>) {
    let mut files = site();
    let rows = format!("Begin Host\nHOST_NAME MXJ AFFINITY\nalpha 6 {value}\nEnd Host\n");
    files.put(&format!("{BATCH}/lsb.hosts"), &rows);
    let (conf, diags) = load(&files, ENVDIR);
    let errors = diags.iter().filter(|d| d.severity == Severity::Error);
    let errors = errors.map(|d| placed(&files, d)).collect();
    (conf.map(|conf| conf.batch.hosts.hosts[0].affinity.clone()), errors)
}

#[test]
fn affinity_of_a_host_is_read_with_its_cpus() {
    let list = |text: &str| AffinityCpus::List(CpuSet::parse(text).unwrap());
    for (value, want) in [
        ("Y", AffinityCpus::All),
        ("N", AffinityCpus::None),
        ("()", AffinityCpus::None),
        ("(Y)", AffinityCpus::All),
        ("(CPU_LIST=\"0,2-5\")", list("0,2-5")),
        ("CPU_LIST=\"1\"", list("1")),
    ] {
        assert_eq!(hosts(value), (Some(want), Vec::new()), "{value}");
    }
}

#[test]
fn mistakes_in_affinity_of_a_host_are_told_with_their_place() {
    for (value, column, why) in [
        ("yes", 9, "<yes> of AFFINITY: Y, N or CPU_LIST=\"0,2-5\" is wanted"),
        (
            "(CPU_LIST=\"3-1\")",
            10,
            "<CPU_LIST=\"3-1\"> of AFFINITY: <3-1> is no CPU or range of CPUs",
        ),
    ] {
        let told = format!("error lsb.hosts alpha:{column} bad value {why}");
        assert_eq!(hosts(value).1, [told], "{value}");
    }
}
