//! Whole clusters in virtual time with faults, through the binary (`lsfsim`), so that the
//! machines run at their real speed. Fixed seeds here; `make soak` runs fresh ones.

mod lease;
mod lims;

use std::path::PathBuf;
use std::process::{Command, Output};

fn output(args: &[&str]) -> Output {
    let binary = match std::env::var_os("LSF_TEST_BIN") {
        Some(b) => PathBuf::from(b),
        None => PathBuf::from(env!("CARGO_BIN_EXE_lsf")),
    };
    Command::new(binary).arg("lsfsim").args(args).output().unwrap()
}

fn lsfsim(args: &[&str]) -> String {
    let out = output(args);
    let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    println!("{}", text(&out.stdout));
    assert!(out.status.success(), "{}", text(&out.stderr));
    text(&out.stdout)
}

// Two tests, for two processors: together 980 clusters of three hosts and 50 jobs, and 20 of 50
// hosts and 5,000 jobs.

#[test]
fn small_clusters_and_some_large_ones() {
    let said = lsfsim(&["-j", "1", "-s", "0-979"]);
    // daemons have died at each message by which hosts join and leave a parallel job
    let deaths = said.split("deaths of daemons: ").nth(1).and_then(|rest| rest.split(',').next());
    let words: Vec<&str> = deaths.unwrap_or_default().split(' ').collect();
    let (counts, names): (Vec<&str>, Vec<&str>) =
        words.chunks(3).map(|words| (words[0], words[2])).unzip();
    assert_eq!(names, ["Join", "Joined", "Start", "Leave", "Left"], "{said}");
    assert!(counts.iter().all(|n| n.parse::<u32>().unwrap() >= 20), "{said}");
    // and tasks of such jobs have run and had signals
    let tasks = said.split(", ").find_map(|part| part.split_once(" tasks with ")).expect(&said);
    let tasks = [tasks.0, tasks.1.split(' ').next().unwrap()].map(|n| n.parse::<u32>().unwrap());
    assert!(tasks[0] >= 2000 && tasks[1] >= 400, "{said}");
    lsfsim(&["-j", "1", "-l", "-s", "0-5"]);
}

#[test]
fn seeds_of_a_soak_that_found_defects_stay_whole() {
    for seed in ["717", "1780", "2898", "3592", "5937", "9347", "10480"] {
        lsfsim(&["-j", "1", "-s", seed]);
    }
    // tasks of a requeued job on a further host, after a restart of mbatchd; a clock set back
    for seed in ["1883359993135633", "1883361942441923", "1883362024234325"] {
        lsfsim(&["-j", "1", "-s", seed]);
    }
    // hosts that an attempt has not left, for the next of a chunk and after a lost first host; a
    // flipped bit behind a loss of power
    for seed in ["1883369817333683", "1883369817351163", "1883369817333697"] {
        lsfsim(&["-j", "1", "-s", seed]);
    }
    // a launcher that died before it had taken the signal that continues a job
    lsfsim(&["-j", "1", "-s", "1883381410398925"]);
    // a file of the server that a crash has replaced, and one that was refused
    for seed in ["1883361817662846", "1883361937195011"] {
        lsfsim(&["-j", "1", "--nlb", "-s", seed]);
    }
    // a torn head line; a takeover that was cut off twice; the first host loses power when the
    // second one has something in its memory still
    for seed in ["1883360925332058", "1883360002573663", "1883384392475714", "1883384392495048"] {
        lsfsim(&["-j", "1", "-d", "-s", seed]);
    }
}

#[test]
fn balancer_routes_each_request_once_by_the_policies_of_its_record() {
    lsfsim(&["-j", "1", "--nlb", "-s", "0-39"]);
}

#[test]
fn duplicate_logs_lose_nothing_that_was_acknowledged() {
    lsfsim(&["-j", "1", "-d", "-s", "0-999"]);
}

#[test]
fn large_clusters_keep_all_jobs_over_faults() {
    lsfsim(&["-j", "1", "-l", "-s", "6-19"]);
}

#[test]
fn options_of_which_one_would_not_act_are_refused() {
    for (args, told) in [
        (&["--nlb", "-l"][..], "--nlb and -l"),
        (&["-d", "--nlb"], "-d and --nlb"),
        (&["-t", "1s", "-l"], "-t and -l"),
        (&["-t", "1s", "-s", "1"], "-t and -s"),
    ] {
        let out = output(args);
        assert_eq!(out.status.code(), Some(255), "{args:?}");
        let want = format!("lsfsim: {told} exclude each other\n");
        assert_eq!(String::from_utf8_lossy(&out.stderr), want, "{args:?}");
        assert!(out.stdout.is_empty(), "{args:?}");
    }
}
