//! bqueues: the table, -l, -o and JSON, and what does not exist.

use crate::common::*;
use serde_json::Value;

#[test]
fn the_table() {
    let out = ok("bqueues", &["normal"]);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(
        lines[0],
        "QUEUE_NAME      PRIO STATUS          MAX JL/U JL/P JL/H NJOBS  PEND   RUN  SUSP "
    );
    assert!(lines[1].starts_with("normal "), "{out}");
    assert_eq!(lines.len(), 2);
    let all = ok("bqueues", &["-w"]);
    let priorities: Vec<i64> =
        all.lines().skip(1).filter_map(|l| l.split_whitespace().nth(1)?.parse().ok()).collect();
    assert!(priorities.len() > 1 && priorities.is_sorted_by(|a, b| a >= b), "{all}");
}

#[test]
fn at_length() {
    let out = ok("bqueues", &["-l", "normal"]);
    assert!(out.starts_with("\nQUEUE: normal\n  -- "), "{out}");
    for part in ["\nPARAMETERS/STATISTICS\n", "\nSCHEDULING PARAMETERS\n", "\nUSERS: ", "\nHOSTS: "]
    {
        assert!(out.contains(part), "{part}: {out}");
    }
    let all = ok("bqueues", &["-l"]);
    assert_eq!(all.matches("\nQUEUE: ").count(), all.matches(&"-".repeat(79)).count() + 1);
}

#[test]
fn fields_and_json() {
    let id = bsub(&["-H", "-q", "short", "true"]);
    let got = ok("bqueues", &["-noheader", "-o", "qname stat delimiter='|'", "short"]);
    assert_eq!(got, "short|Open:Active\n");
    let got = ok("bqueues", &["-json", "-o", "queue_name njobs", "short"]);
    let v: Value = serde_json::from_str(&got).unwrap();
    assert_eq!((&v["COMMAND"], &v["QUEUES"]), (&"bqueues".into(), &1.into()));
    assert_eq!(v["RECORDS"][0]["QUEUE_NAME"], "short");
    let jobs: u64 = v["RECORDS"][0]["NJOBS"].as_str().unwrap().parse().unwrap();
    assert!(jobs >= 1, "{got}");
    ok("bkill", &[&id]);
}

#[test]
fn what_does_not_exist() {
    let said = |err: &str| Said { code: 255, out: String::new(), err: err.into() };
    assert_eq!(run("bqueues", &["nosuch"]), said("nosuch: No such queue\n"));
    assert_eq!(run("bqueues", &["normal", "nosuch"]), said("nosuch: No such queue\n"));
    let words = "nosuch: Bad host name, host group name or cluster name\n";
    assert_eq!(run("bqueues", &["-m", "nosuch"]), said(words));
}
