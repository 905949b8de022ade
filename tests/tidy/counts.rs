//! tests/run over a cargo that only prints: what is counted, what is shown, what is left out.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Prints what a test program would, by the program that it is asked for.
const CARGO: &str = r#"#!/bin/sh
echo "$*" >> "$FAKE/asked"
result() { echo "test result: ok. $1 passed; $2 failed; $3 ignored; 0 measured"; }
case "$*" in
*--no-run*) ;;
*"--test cluster"*) result 3 0 1 ;;
*"--test hostile"*) echo "test a::b ... FAILED"; result 1 1 0; exit 101 ;;
*"--test sim"*) exit "$SIM" ;;
*"--test cmd"*) echo "c: no root" >> "$LSF_TEST_SKIPS"; result 2 0 0; result 1 0 0 ;;
*) result 10 0 0 ;;
esac
"#;

struct Fake {
    dir: PathBuf,
}

impl Fake {
    fn new(name: &str) -> Fake {
        let dir = std::env::temp_dir().join(format!("lsf-counts-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let cargo = dir.join("cargo");
        // written by another process: see tests/cluster/rig.rs, program
        let mut c = Command::new("install");
        c.args(["-m", "755", "/dev/stdin"]).arg(&cargo).stdin(Stdio::piped());
        let mut child = c.spawn().unwrap();
        child.stdin.take().unwrap().write_all(CARGO.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success());
        Fake { dir }
    }

    /// The output of tests/run, and its exit code.
    fn run(&self, sim: &str, build: &str) -> (String, i32) {
        let path = format!("{}:{}", self.dir.display(), std::env::var("PATH").unwrap());
        let mut c = Command::new("bash");
        c.arg(super::root().join("tests/run")).env("PATH", path).env("FAKE", &self.dir);
        c.env("SIM", sim).env("LSF_TEST_BUILD", build).env("LSF_TEST_BIN", "/bin/true");
        let out = c.stdin(Stdio::null()).output().unwrap();
        (String::from_utf8_lossy(&out.stdout).into_owned(), out.status.code().unwrap())
    }

    fn asked(&self) -> String {
        std::fs::read_to_string(self.dir.join("asked")).unwrap()
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

#[test]
fn every_part_is_counted() {
    let fake = Fake::new("all");
    let (out, code) = fake.run("101", "echo built");
    assert_eq!(code, 1);
    let tail: Vec<&str> = out.lines().rev().take(6).collect();
    assert_eq!(tail[0], "16 passed, 2 failed, 2 skipped", "{out}");
    assert!(tail.contains(&"    a::b") && tail.contains(&"    sim.log ended with 101"), "{out}");
    assert!(out.contains("\nskipped:\n    c: no root\n") && out.contains("built\n"), "{out}");
    // no program of Cargo.toml is forgotten
    let manifest = std::fs::read_to_string(super::root().join("Cargo.toml")).unwrap();
    let asked = fake.asked();
    let mut programs = 0;
    for at in manifest.split("[[test]]").skip(1) {
        let name = at.split('"').nth(1).unwrap();
        assert_eq!(asked.matches(&format!("--test {name}")).count(), 1, "{name}: {asked}");
        programs += 1;
    }
    assert!(programs >= 8, "{programs}");
}

#[test]
fn a_run_without_failures_says_so() {
    let fake = Fake::new("good");
    let (out, _) = fake.run("0", "");
    assert!(!out.contains("ended with 0"), "{out}");
    assert!(out.ends_with("16 passed, 1 failed, 2 skipped\n"), "{out}");
}

#[test]
fn a_file_that_was_not_built_is_not_tested() {
    let fake = Fake::new("broken");
    let (out, code) = fake.run("0", "echo no such thing; exit 3");
    assert!(out.contains("no such thing\n") && !fake.asked().contains("cluster"), "{out}");
    assert!(out.ends_with("    build.log ended with 3\n10 passed, 1 failed, 0 skipped\n"), "{out}");
    assert_eq!(code, 1);
}
