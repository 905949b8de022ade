//! bhist over the log of the cluster (clients.md rule 18).

use crate::common::*;

#[test]
fn the_life_of_a_job() {
    let id = bsub(&["-J", "history", "-o", "/dev/null", "exit 3"]);
    assert_eq!(end_of(&id), "EXIT");
    let table = ok("bhist", &[&id]);
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines[0], "Summary of time in seconds spent in various states:");
    assert_eq!(lines[1].split_whitespace().count(), 10);
    assert_eq!(lines[2].split_whitespace().count(), 10, "{table}");
    assert_eq!(lines.len(), 3);
    let long = ok("bhist", &["-l", &id]).replace("\n                     ", "");
    let mut from = 0;
    for part in [
        &format!("\nJob <{id}>, Job Name <history>, User <"),
        ": Submitted from host <",
        ": Dispatched to <",
        ": Starting (Pid ",
        ": Running with execution home <",
        ": Exited with exit code 3. The CPU time used is ",
        "\nSummary of time in seconds spent in various states by  ",
    ] {
        let at = long[from..].find(part).unwrap_or_else(|| panic!("{part}: {long}"));
        from += at + part.len();
    }
    assert_eq!(ok("bhist", &["-n", "0", "-l", &id]).replace("\n                     ", ""), long);
    assert_eq!(ok("bhist", &["-e", "-J", "history", &id]).lines().count(), 3);
}

#[test]
fn held_and_killed() {
    let id = bsub(&["-H", "-J", "hist[1-3]", "sleep", "300"]);
    assert_eq!(ok("bhist", &[&id]).lines().count(), 5);
    ok("bkill", &[&format!("{id}[2]")]);
    until(&format!("{id}[2]"), "EXIT");
    let long = ok("bhist", &["-UF", &format!("{id}[2]")]);
    assert!(long.contains(": Signal <KILL> requested by user or administrator <"), "{long}");
    assert!(long.contains(": Completed <exit>; TERM_OWNER: job killed by owner;"), "{long}");
    assert_eq!(ok("bhist", &["-s", "-J", "hist", &id]).lines().count(), 4);
    ok("bkill", &[&id]);
}

#[test]
fn nothing_matched() {
    for args in [&["99999"][..], &["-l", "99999"], &["-J", "no_such_name"], &["-u", "nosuch", "-a"]]
    {
        let want = Said { code: 255, out: String::new(), err: "No matching job found\n".into() };
        assert_eq!(run("bhist", args), want, "{args:?}");
    }
    let said = run("bhist", &["-f", "/nonexistent/lsb.events"]);
    assert_eq!((said.code, said.out.as_str()), (255, ""));
    assert!(said.err.contains("/nonexistent/lsb.events: No such file"), "{}", said.err);
}
