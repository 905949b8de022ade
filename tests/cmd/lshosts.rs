//! lshosts: the tables, host operands, -R, -s, and what does not exist.

use crate::common::*;

const NARROW: &str = "HOST_NAME      type    model  cpuf ncpus maxmem maxswp server RESOURCES";
const WIDE: &str = "HOST_NAME                       type       model  cpuf ncpus maxmem maxswp \
                    server RESOURCES";

fn first_host() -> String {
    let out = ok("lshosts", &["-w"]);
    out.lines().nth(1).and_then(|l| l.split_whitespace().next()).unwrap().to_string()
}

#[test]
fn lshosts_has_the_columns_of_lsf_narrow_and_wide() {
    let narrow = ok("lshosts", &[]);
    assert_eq!(narrow.lines().next(), Some(NARROW));
    let wide = ok("lshosts", &["-w"]);
    assert_eq!(wide.lines().next(), Some(WIDE));
    assert_eq!(first_words(&narrow), first_words(&wide));
    for line in rows(&wide) {
        let words: Vec<&str> = line.split_whitespace().collect();
        assert!(words.len() >= 9, "{line}");
        assert!(words[4].parse::<u32>().is_ok(), "{line}");
        assert!(line.ends_with(')'), "{line}");
    }
}

#[test]
fn lshosts_l_shows_one_host_at_length() {
    let host = first_host();
    let long = ok("lshosts", &["-l", &host]);
    assert!(long.starts_with(&format!("\nHOST_NAME:  {host}\ntype  ")), "{long}");
    for part in ["\nRESOURCES: (", "\nRUN_WINDOWS:  (always open)\n", "\nLOAD_THRESHOLDS:\n  r15s"]
    {
        assert!(long.contains(part), "{part}: {long}");
    }
}

#[test]
fn lshosts_r_selects_hosts_by_requirement() {
    let host = first_host();
    let one = ok("lshosts", &["-R", &format!("select[hname=='{host}']")]);
    assert_eq!(one.lines().count(), 2, "{one}");
    let none = run("lshosts", &["-R", "select[ncpus>100000]"]);
    let want = Said { code: 255, out: String::new(), err: "No host is eligible\n".into() };
    assert_eq!(none, want);
    let bad = run("lshosts", &["-R", "select[nosuch>1]"]);
    assert_eq!((bad.code, bad.out.as_str()), (255, ""));
    assert!(bad.err.starts_with("Bad resource requirement syntax"), "{}", bad.err);
    assert!(bad.err.contains("nosuch"), "{}", bad.err);
}

#[test]
fn lshosts_of_an_unknown_host_says_so() {
    for command in ["lshosts", "lsload"] {
        let want = Said { code: 255, out: String::new(), err: "nosuch: Bad host name\n".into() };
        assert_eq!(run(command, &["nosuch"]), want);
        assert_eq!(run(command, &[&first_host(), "nosuch"]), want);
    }
    let said = run("lshosts", &["-s", "nosuch"]);
    assert_eq!((said.code, said.err.as_str()), (255, "nosuch: Resource name not found\n"));
}
