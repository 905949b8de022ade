//! Helpers for tests of this crate on a real system.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Makes a program of this text and mode. Another process writes it: a child that a test beside
/// this one forks meanwhile would hold our descriptor until its exec, and exec refuses what is
/// open for writing ("Text file busy").
pub fn program(path: &Path, text: &str, mode: u32) {
    let mut c = Command::new("install");
    c.arg("-m").arg(format!("{mode:o}")).arg("/dev/stdin").arg(path).stdin(Stdio::piped());
    let mut child = c.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success(), "{}", path.display());
}
