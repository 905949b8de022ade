//! bqueues: the table, -l, -o and JSON, and what does not exist.

use crate::common::*;
use serde_json::Value;

#[test]
fn bqueues_has_the_columns_of_lsf() {
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
        rows(&all).iter().map(|l| l.split_whitespace().nth(1).unwrap().parse().unwrap()).collect();
    assert!(priorities.len() > 1 && priorities.is_sorted_by(|a, b| a >= b), "{all}");
}

#[test]
fn bqueues_l_shows_parameters_counts_limits_and_thresholds() {
    if own_cluster().is_none() {
        return;
    }
    let id = bsub(&["-H", "-n", "2", "-q", "idle", "true"]);
    let out = ok("bqueues", &["-l", "idle"]);
    // others may have jobs in the queue meanwhile
    let counts = out.lines().nth(6).unwrap_or_default();
    let numbers: Vec<u64> =
        counts.split_whitespace().skip(7).map(|word| word.parse().unwrap()).collect();
    let [jobs, pending, .., reserved, elements] = numbers[..] else { panic!("{out}") };
    assert!(pending >= 2 && elements >= 1 && reserved == 0, "{out}");
    assert_eq!(jobs, numbers[1..5].iter().sum::<u64>(), "{out}");
    let widths = [6, 6, 6, 6, 6, 5, 6];
    let cells = numbers.iter().zip(widths).map(|(n, width)| format!("{n:>width$}"));
    let cells: String = cells.collect();
    assert_eq!(counts, format!(" 20   20  Open:Active       -    -    -    -{cells}"));
    assert_eq!(out.replace(counts, "COUNTS"), IDLE_AT_LENGTH);
    let all = ok("bqueues", &["-l"]);
    let queues = rows(&ok("bqueues", &[])).len();
    assert_eq!(all.matches("\nQUEUE: ").count(), queues);
    assert_eq!(all.matches(&"-".repeat(79)).count(), queues - 1);
    ok("bkill", &[&id]);
}

/// A queue as `lsf up` makes it.
const IDLE_AT_LENGTH: &str = "
QUEUE: idle
  -- For jobs that can wait until nothing else does

PARAMETERS/STATISTICS
PRIO NICE STATUS          MAX JL/U JL/P JL/H NJOBS  PEND   RUN SSUSP USUSP  RSV PJOBS
COUNTS
Interval for a host to accept two jobs is 0 seconds

SCHEDULING PARAMETERS
           r15s   r1m  r15m   ut      pg    io   ls    it    tmp    swp    mem
 loadSched   -     -     -     -       -     -    -     -     -      -      -\x20\x20
 loadStop    -     -     -     -       -     -    -     -     -      -      -\x20\x20

USERS: all\x20\x20
HOSTS:  all\x20

";

#[test]
fn bqueues_o_prints_fields_and_json() {
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
fn bqueues_of_an_unknown_queue_says_so() {
    let said = |err: &str| Said { code: 255, out: String::new(), err: err.into() };
    assert_eq!(run("bqueues", &["nosuch"]), said("nosuch: No such queue\n"));
    assert_eq!(run("bqueues", &["normal", "nosuch"]), said("nosuch: No such queue\n"));
    let words = "nosuch: Bad host name, host group name or cluster name\n";
    assert_eq!(run("bqueues", &["-m", "nosuch"]), said(words));
}
