//! bhist over the log of the cluster.

use crate::common::*;

#[test]
fn bhist_shows_the_life_of_a_job() {
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
fn bhist_of_held_elements_shows_the_kill_of_one() {
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
fn bhist_without_a_matching_job_says_so() {
    for args in [&["99999"][..], &["-l", "99999"], &["-J", "no_such_name"], &["-u", "nosuch", "-a"]]
    {
        let want = Said { code: 255, out: String::new(), err: "No matching job found\n".into() };
        assert_eq!(run("bhist", args), want, "{args:?}");
    }
    for (args, words) in [
        (&["abc"][..], "abc: Illegal job ID.\n"),
        (&["7[0]"], "7[0]: Illegal job ID.\n"),
        (&["-n", "x"], "bhist: Bad argument for option -n.\n"),
        (&["-n", "3,1"], "bhist: Bad argument for option -n.\n"),
        (&["-C", "x"], "x: Bad time specification\n"),
        (&["-S", "1,2,3"], "1,2,3: Bad time specification\n"),
        (&["-D", "13/45/"], "13/45/: Bad time specification\n"),
        (&["-t", "-T", "25:00"], "25:00: Bad time specification\n"),
        (&["-T", "1,"], "bhist: Option -T needs option -t.\n"),
        (&["-N", "0", "1"], "bhist: 0: Bad host specification\n"),
        (&["-t", "-T", "1999/1/1"], "No matching job/event found\n"),
    ] {
        let want = Said { code: 255, out: String::new(), err: words.into() };
        assert_eq!(run("bhist", args), want, "{args:?}");
    }
    let said = run("bhist", &["-f", "/nonexistent/lsb.events"]);
    assert_eq!((said.code, said.out.as_str()), (255, ""));
    assert!(said.err.contains("/nonexistent/lsb.events: No such file"), "{}", said.err);
}

#[test]
fn histories_show_the_year_with_lsb_display_year() {
    let log = include_str!("expected/past.events");
    for (value, stamp) in [("Y", "Fri Nov 20 09:30:13 2026: "), ("N", "Fri Nov 20 09:30:13: ")] {
        let path = scratch(&format!("bhist-year-{value}")).join("lsb.events");
        std::fs::write(&path, log).unwrap();
        let mut c = cmd("bhist");
        c.env("TZ", "UTC").env("LSB_DISPLAY_YEAR", value).arg("-f").arg(&path);
        let said = Said::from(c.args(["-l", "900013"]).output().unwrap());
        assert!(said.out.contains(&format!("\n{stamp}Submitted from host <vm>")), "{said:?}");
        let mut c = cmd("bacct");
        let acct = path.with_file_name("lsb.acct");
        std::fs::write(&acct, include_str!("expected/past.acct")).unwrap();
        c.env("TZ", "UTC").env("LSB_DISPLAY_YEAR", value).arg("-f").arg(&acct);
        let said = Said::from(c.args(["-l", "-u", "all"]).output().unwrap());
        let year = said.out.lines().any(|l| l.contains(" 2023: Submitted from host <"));
        assert_eq!(year, value == "Y", "{said:?}");
    }
}

/// bhist over another LSF's logs (written by an openlava descendant).
fn over(log: &str, args: &[&str]) -> Said {
    let path = scratch("bhist-over").join("lsb.events");
    std::fs::write(&path, log).unwrap();
    let mut c = cmd("bhist");
    c.env("TZ", "UTC").arg("-f").arg(&path).args(args);
    let said = c.output().unwrap().into();
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    said
}

#[test]
fn bhist_shows_the_log_of_another_lsf() {
    let log = include_str!("expected/past.events");
    let table = "\
Summary of time in seconds spent in various states:
JOBID   USER    JOB_NAME  PEND    PSUSP   RUN     USUSP   SSUSP   UNKWN   TOTAL
900013  user1   x[0-3]    0       0       0       0       0       0       0         
";
    let long = include_str!("expected/bhist-l-foreign.txt");
    for (args, want) in [
        (&["-a", "-u", "all"][..], table),
        (&["-b", "-e", "-u", "user1"], table),
        (&["-w", "-d", "-u", "all", "-q", "normal"], table),
        (&["-C", "2026/11/20", "-u", "all"], table),
        (&["-S", "2026/11/20/09:30", "-m", "vm", "900013"], table),
        (&["-l", "900013"], long),
        (&["-l", "-aff", "-gpu", "-hostfile", "-cname", "900013"], long),
    ] {
        let said = over(log, args);
        assert_eq!((said.out.as_str(), said.err.as_str(), said.code), (want, "", 0), "{args:?}");
    }
    for args in [
        &["-p", "-u", "all"][..],
        &["-r", "-u", "all"],
        &["-s", "-u", "all"],
        &["-a", "-u", "user2"],
        &["-a", "-u", "all", "-P", "other"],
        &["-a", "-u", "all", "-m", "elsewhere"],
        &["-a", "-u", "all", "-J", "y*"],
        &["-a", "-u", "all", "-G", "group"],
        &["-a", "-u", "all", "-Jd", "text*"],
        &["-a", "-u", "all", "-app", "big"],
        &["-a", "-u", "all", "-g", "/a"],
        &["-a", "-u", "all", "-Lp", "lp"],
        &["-D", "2026/11/21", "-u", "all"],
        &["-C", ",2026/11/19", "-u", "all"],
    ] {
        let want = Said { code: 255, out: String::new(), err: "No matching job found\n".into() };
        assert_eq!(over(log, args), want, "{args:?}");
    }
}
