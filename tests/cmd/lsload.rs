//! lsload: columns, chosen indices, numbers of hosts, the order.

use crate::common::*;

const HEAD: &str = " status  r15s   r1m  r15m   ut    pg  ls    it   tmp   swp   mem";

#[test]
fn tables() {
    let out = ok("lsload", &[]);
    assert_eq!(out.lines().next(), Some(format!("{:<15}{HEAD}", "HOST_NAME").as_str()));
    let wide = ok("lsload", &["-w"]);
    assert_eq!(wide.lines().next(), Some(format!("{:<23}{HEAD}", "HOST_NAME").as_str()));
    for line in wide.lines().skip(1) {
        let words: Vec<&str> = line.split_whitespace().collect();
        assert!(words.len() == 12 || words[1] == "unavail", "{line}");
        assert!(words.len() != 12 || words[5].ends_with('%'), "{line}");
    }
    let long = ok("lsload", &["-l"]);
    assert!(long.lines().next().unwrap().contains("   ut    pg    io  ls"), "{long}");
}

#[test]
fn run_queues_are_counted_as_asked() {
    for option in ["-E", "-N"] {
        assert_eq!(ok("lsload", &[option]).lines().count(), ok("lsload", &[]).lines().count());
    }
    assert_eq!(run("lsload", &["-E", "-N"]).code, 255);
}

#[test]
fn chosen_indices_and_hosts() {
    let out = ok("lsload", &["-I", "ut:mem", "-n", "1"]);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines[0], "HOST_NAME       status   ut   mem");
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[1].split_whitespace().count(), 4, "{out}");
    let bad = run("lsload", &["-I", "ut:nosuch"]);
    assert_eq!((bad.code, bad.err.as_str()), (255, "nosuch: Unknown resource name\n"));
    let none = run("lsload", &["-R", "select[mem<0]"]);
    assert_eq!((none.code, none.err.as_str()), (255, "No host is eligible\n"));
}

/// Without -o, JSON has every field that -o knows.
#[test]
fn json_without_a_format_has_every_field() {
    for (applet, fields) in [
        ("lsload", &["HOST_NAME", "STATUS", "R15S", "R1M", "R15M", "UT", "PG", "MEM"][..]),
        ("lshosts", &["HOST_NAME", "TYPE", "MODEL", "CPUF", "MAXMEM", "NTHREADS", "STATUS"]),
    ] {
        let json: serde_json::Value = serde_json::from_str(&ok(applet, &["-json"])).unwrap();
        assert_eq!(json["COMMAND"], applet);
        let record = json["RECORDS"][0].as_object().unwrap();
        for field in fields {
            assert!(record.contains_key(*field), "{applet}: {field}: {record:?}");
        }
    }
}

/// The hosts are alike; one of them is told that it has more to do.
#[test]
fn the_order_is_the_requirements() {
    let names = |order: &str| {
        let out = ok("lsload", &["-w", "-R", order]);
        let names = out.lines().skip(1).map(|l| l.split(' ').next().unwrap().to_string());
        names.collect::<Vec<_>>()
    };
    let mut hosts = names("order[r15s]");
    if hosts.len() < 2 {
        return;
    }
    hosts.sort();
    let (busy, mut seen) = (hosts[0].clone(), (vec![], vec![]));
    wait_for(&format!("{busy} to have the longest queue"), || {
        // it is forgotten by and by, and hosts have other things to do
        ok("lsloadadj", &[&format!("{busy}:5")]);
        seen = (names("order[r15s]"), names("order[-r15s]"));
        seen.0.last() == Some(&busy) && seen.1.first() == Some(&busy)
    });
    for mut order in [seen.0, seen.1] {
        order.sort();
        assert_eq!(order, hosts);
    }
}
