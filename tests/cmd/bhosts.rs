//! bhosts: the table, -l, -R, -o and JSON, and what does not exist.

use crate::common::*;
use serde_json::Value;

#[test]
fn bhosts_has_the_columns_of_lsf() {
    let out = ok("bhosts", &[]);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(
        lines[0],
        "HOST_NAME          STATUS       JL/U    MAX  NJOBS    RUN  SSUSP  USUSP    RSV "
    );
    for line in &lines[1..] {
        assert_eq!(line.split_whitespace().count(), 9, "{line}");
    }
    let first = lines[1].split_whitespace().next().unwrap();
    assert_eq!(ok("bhosts", &[first]).lines().count(), 2);
    let long = ok("bhosts", &["-l", first]);
    assert!(long.starts_with(&format!("HOST  {first}\nSTATUS  ")), "{long}");
    for part in ["\n CURRENT LOAD USED FOR SCHEDULING:\n", "\n Total ", "\n loadStop "] {
        assert!(long.contains(part), "{part}: {long}");
    }
}

#[test]
fn bhosts_o_prints_integers_for_scripts() {
    let out = ok("bhosts", &["-noheader", "-o", "hname max ng"]);
    assert!(!out.is_empty());
    for line in out.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let numbers = words[1..].iter().filter(|w| w.parse::<u32>().is_ok()).count();
        assert_eq!((words.len(), numbers), (3, 2), "{line}");
    }
    let v: Value = serde_json::from_str(&ok("bhosts", &["-json", "-o", "hname stat"])).unwrap();
    assert_eq!(v["COMMAND"], "bhosts");
    let count = out.lines().count().to_string();
    assert_eq!(v["HOSTS"].to_string(), count);
    assert!(v["RECORDS"][0]["STATUS"].is_string());
}

#[test]
fn bhosts_r_selects_hosts_by_requirement() {
    let all = ok("bhosts", &[]);
    assert_eq!(ok("bhosts", &["-R", "select[ncpus>0]"]).lines().count(), all.lines().count());
    let none = run("bhosts", &["-R", "select[ncpus>100000]"]);
    assert_eq!((none.code, none.out.as_str()), (255, ""));
    assert_eq!(none.err, "Not enough host(s) currently eligible\n");
    let bad = run("bhosts", &["-R", "select["]);
    assert_eq!((bad.code, bad.out.as_str()), (255, ""));
    assert_eq!(bad.err, "select[: Bad resource requirement syntax\n");
}

#[test]
fn bhosts_of_an_unknown_host_says_so() {
    let words = "nosuch: Bad host name, host group name or cluster name\n";
    let want = Said { code: 255, out: String::new(), err: words.into() };
    assert_eq!(run("bhosts", &["nosuch"]), want);
}
