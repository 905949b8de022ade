//! Runs the scenarios of tests/policy: configuration files, a timeline, and the expected starts,
//! written by hand from the manual pages. The format of these files is described in
//! tests/policy/README. Every scenario names the sentence of a manual page that it stands on.
//!
//! | file | its part |
//! |---|---|
//! | parse | reads a file into scenarios |
//! | steps | carries out one step of a timeline, or says how the cluster differs from it |

mod parse;
mod steps;

use parse::{Scenario, scenarios_of};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::thread;

/// The threads that share the files.
const THREADS: usize = 2;

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/policy"))
}

/// Every scenario of the folder, in the order of the names of files.
fn all_scenarios() -> Vec<Scenario> {
    let listed = std::fs::read_dir(folder()).unwrap();
    let mut paths: Vec<PathBuf> = listed.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "txt"));
    paths.sort();
    let read = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(path).unwrap();
        scenarios_of(&name, &text).unwrap_or_else(|why| panic!("{why}"))
    };
    paths.iter().flat_map(read).collect()
}

/// The first difference between a scenario and the cluster, with its line.
fn difference(scenario: &Scenario) -> Option<String> {
    let at = std::cell::Cell::new(scenario.line);
    let run = || {
        let mut steps = steps::Steps::new(scenario);
        scenario.steps.iter().find_map(|step| {
            at.set(step.line);
            steps.take(step).err()
        })
    };
    let told = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Some(text.unwrap_or_else(|| "a panic without words".to_owned()))
    });
    told.map(|why| format!("{}:{}: {}: {why}", scenario.file, at.get(), scenario.name))
}

#[test]
fn every_scenario_goes_as_its_file_says() {
    let all = all_scenarios();
    // LSF_SCENARIO selects scenarios by a part of file:name
    let part = std::env::var("LSF_SCENARIO").unwrap_or_default();
    let chosen: Vec<&Scenario> =
        all.iter().filter(|s| format!("{}:{}", s.file, s.name).contains(&part)).collect();
    assert!(!chosen.is_empty(), "no scenario is called {part}");
    let of_thread = |n: usize| -> Vec<String> {
        chosen.iter().skip(n).step_by(THREADS).filter_map(|s| difference(s)).collect()
    };
    let found: Vec<String> = thread::scope(|scope| {
        let spawned = |n: usize| scope.spawn(move || of_thread(n));
        let running: Vec<_> = (0..THREADS).map(spawned).collect();
        running.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(found.is_empty(), "{} of {}:\n{}", found.len(), chosen.len(), found.join("\n"));
}

#[test]
fn every_scenario_has_a_name_of_its_own_and_a_sentence_of_the_manual() {
    let all = all_scenarios();
    let mut names: Vec<&str> = all.iter().map(|s| s.name.as_str()).collect();
    names.sort_unstable();
    let twice = names.windows(2).find(|pair| pair[0] == pair[1]);
    assert_eq!(twice, None, "two scenarios have one name");
    let bare = all.iter().find(|s| s.manual.is_empty());
    assert_eq!(bare.map(|s| &s.name), None, "this scenario names no sentence of the manual");
    let pages = folder().join("../../man");
    for sentence in all.iter().flat_map(|s| &s.manual) {
        let page = sentence.split_once(')').map_or("", |(page, _)| page).replace('(', ".");
        assert!(pages.join(&page).is_file(), "no such page: {sentence}");
    }
}

#[test]
fn scenario_that_does_not_go_as_written_is_told_with_its_line() {
    let text = "scenario a\nmanual x\nhosts 1 of 1\n0 ann: bsub -> j\n0 j runs on h2\n";
    let all = scenarios_of("f.txt", text).unwrap();
    let told = difference(&all[0]).unwrap();
    assert_eq!(told, "f.txt:5: a: j runs on h1, not on h2");
    let text = "scenario a\nmanual x\nhosts 1 of 1\n0 nobody does this\n";
    let all = scenarios_of("f.txt", text).unwrap();
    assert_eq!(difference(&all[0]).unwrap(), "f.txt:4: a: nobody is no job of this scenario");
}
