//! lsload: columns, chosen indices, numbers of hosts, the order.

use crate::common::*;

const HEAD: &str = " status  r15s   r1m  r15m   ut    pg  ls    it   tmp   swp   mem";

#[test]
fn lsload_has_a_row_for_each_host() {
    let hosts = ok("lshosts", &["-w"]);
    let mut hosts = first_words(&hosts);
    hosts.sort_unstable();
    for (options, width) in [(&[][..], 15), (&["-w"], 23)] {
        let out = ok("lsload", options);
        let head = format!("{:<width$}{HEAD}", "HOST_NAME");
        assert_eq!(out.lines().next(), Some(head.as_str()));
        let mut names = first_words(&out);
        names.sort_unstable();
        assert_eq!(names, hosts, "{out}");
        for line in rows(&out) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let own = matches!(installation(), Installation::Own(_));
            let whole = words.len() == 12 && words[5].ends_with('%');
            assert!(whole || words[1] == "unavail" && !own, "{line}");
        }
    }
    let long = ok("lsload", &["-l"]);
    assert!(long.lines().next().unwrap().contains("   ut    pg    io  ls"), "{long}");
}

/// Beyond one process a processor, a processor (-E), and by the speed of the host (-N).
#[test]
fn lsload_counts_run_queues_by_option() {
    let number = |word: Option<&str>| word.and_then(|w| w.trim_start_matches('*').parse().ok());
    let facts = ok("lshosts", &["-o", "hname ncpus cpuf"]);
    let facts: Vec<&str> = rows(&facts)[0].split_whitespace().collect();
    let host = facts[0];
    let [cpus, speed]: [f64; 2] = [1, 2].map(|n| number(Some(facts[n])).unwrap());
    // of three readings in a row, as long as the first and the last are alike
    let mut seen = [0.0; 3];
    wait_for(&format!("{host} to have a run queue that stays"), || {
        ok("lsloadadj", &["-R", "rusage[r15m=9]", host]);
        let reading = |options: &[&str]| -> f64 {
            let out = ok("lsload", &[options, &["-w", "-I", "r15m", host]].concat());
            number(rows(&out)[0].split_whitespace().nth(2)).unwrap_or(0.0)
        };
        seen = [reading(&[]), reading(&["-E"]), reading(&["-N"])];
        seen[0] > cpus && seen[0] == reading(&[])
    });
    let [raw, effective, normalised] = seen;
    let want = (raw - (cpus - 1.0)) / cpus;
    let near = |is: f64, want: f64| (is - want).abs() < 0.11;
    assert!(near(effective, want) && near(normalised, want / speed), "{cpus} {speed}: {seen:?}");
    let said = run("lsload", &["-E", "-N"]);
    assert_eq!((said.code, said.out.as_str()), (255, ""));
    assert!(said.err.starts_with("-E and -N exclude each other\nUsage: lsload "), "{}", said.err);
}

#[test]
fn lsload_shows_chosen_indices_and_hosts() {
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

/// JSON without -o has every field that -o knows.
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
fn lsload_orders_hosts_by_the_requirement() {
    let names = |order: &str| {
        let out = ok("lsload", &["-w", "-R", order]);
        first_words(&out).into_iter().map(str::to_string).collect::<Vec<_>>()
    };
    let mut hosts = names("order[r15s]");
    if hosts.len() < 2 {
        return crate::rig::skipped("lsload_orders_hosts_by_the_requirement: it needs two hosts");
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
