//! Input that every applet bears: -V and -h, options and operands that are none, words that are not
//! UTF-8, streams that are closed or go away, very many words.

use crate::common::*;
use crate::rig::binary;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

fn applets() -> Vec<String> {
    let out = Command::new(binary()).arg("--list").output().unwrap().stdout;
    String::from_utf8(out).unwrap().lines().map(str::to_string).collect()
}

/// The commands that only show something, on a cluster where there is something to show.
const SHOW: &[&str] = &[
    "bjobs -a",
    "bjobs -a -l",
    "bqueues",
    "bqueues -l",
    "bhosts",
    "bhosts -l",
    "busers",
    "bslots",
    "bugroup",
    "bmgroup",
    "bparams -l",
    "bhist -a",
    "bacct",
    "lsid",
    "lsload",
    "lshosts",
    "lsclusters",
    "lsinfo",
    "lsplace",
    "badmin mbdhist",
    "lseligible x",
    "lsltasks",
];

fn shell(script: &str) -> Said {
    program(&["/bin/sh", "-c", script]).output().unwrap().into()
}

#[test]
fn every_applet_has_its_version_and_help() {
    let words = ["up", "down", "status"];
    for name in applets() {
        // -h is a host there
        let host = ["cqdel", "cqstatl", "nlbpolicy", "qdel", "qstat"].contains(&name.as_str());
        let help = if host { "-help" } else { "-h" };
        for option in ["-V", help] {
            let mut c = Command::new(binary());
            let said: Said = c.args([&name, option]).output().unwrap().into();
            assert_eq!((said.code, said.out.as_str()), (0, ""), "{name} {option}");
            let begins = if option == "-V" { "lsf " } else { "Usage: " };
            assert!(
                said.err.starts_with(begins) || words.contains(&name.as_str()),
                "{name} {said:?}"
            );
        }
    }
}

#[test]
fn applets_refuse_unknown_options_with_words() {
    // tcsh, make and MPI have options of their own
    let other = ["lstcsh", "lsmake", "mpirun.lsf"];
    for name in applets().iter().filter(|n| !other.contains(&n.as_str())) {
        for word in [&b"-zq~"[..], b"--no-such", b"-\xff\xfe"] {
            let mut c = cmd(name);
            c.arg(OsStr::from_bytes(word));
            let said: Said = c.output().unwrap().into();
            assert!(said.out.is_empty() && !said.err.is_empty(), "{name} {said:?}");
            assert_eq!(said.code, 255, "{name} {said:?}");
            assert!(!said.err.contains("panicked"), "{name} {said:?}");
        }
    }
}

#[test]
fn operands_that_are_not_utf_8_are_named() {
    let table = "bjobs bkill bstop bresume bpeek brequeue btop bbot bhist bacct bqueues bhosts \
                 busers bugroup bmgroup lsload lshosts lsclusters lsinfo";
    for name in table.split_whitespace() {
        let mut c = cmd(name);
        c.arg(OsStr::from_bytes(b"no\xff\xfesuch"));
        let said: Said = c.output().unwrap().into();
        assert_eq!((said.code, said.out.as_str()), (255, ""), "{name} {said:?}");
        assert!(said.err.starts_with("no\u{fffd}\u{fffd}such: "), "{name} {said:?}");
    }
}

#[test]
fn streams_that_are_closed_end_no_command_by_a_signal() {
    for line in SHOW {
        let said = shell(&format!("{line} <&- >&- 2>&-; echo $?"));
        let code: i32 = said.out.trim().parse().unwrap();
        assert!(code < 126 || code == 255, "{line} {said:?}");
        // a reader that goes away is no failure to tell of
        let said = shell(&format!("{line} | true"));
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{line} {said:?}");
    }
}

#[test]
fn a_job_is_submitted_without_any_stream() {
    let said = shell("bsub -J no_streams true <&- >&- 2>&-; echo $?");
    assert_eq!(said.out, "0\n");
    wait_for("the job", || {
        run("bjobs", &["-a", "-noheader", "-o", "stat", "-J", "no_streams"]).out.contains("DONE")
    });
}

#[test]
fn commands_take_thousands_of_job_ids() {
    let ids: Vec<String> = (1_000_000..1_005_000).map(|n| n.to_string()).collect();
    let words: Vec<&str> = ids.iter().map(String::as_str).collect();
    for name in ["bjobs", "bkill", "bhist"] {
        let said = run(name, &words);
        assert_eq!((said.code, said.out.as_str()), (255, ""), "{name}");
        let last = match name {
            "bjobs" => "Job <1004999> is not found",
            "bkill" => "Job <1004999>: No matching job found",
            // it looks for all of them at once
            _ => "No matching job found",
        };
        assert_eq!(said.err.lines().last(), Some(last), "{name}");
    }
    let long = "x".repeat(100_000);
    for (name, option, end) in [
        ("bjobs", "-q", "true: Illegal job ID.\n"),
        ("bsub", "-q", ": Bad argument. Job not submitted.\n"),
        ("bhosts", "--", "a name is 100000 bytes long; the limit is 4094\n"),
        ("lsload", "--", "a name is 100000 bytes long; the limit is 4094\n"),
    ] {
        let said = run(name, &[option, &long, "true"]);
        let told = said.err.get(said.err.len().saturating_sub(end.len())..);
        assert_eq!((said.code, said.out.as_str(), told), (255, "", Some(end)), "{name}");
    }
}
