//! lsid: three lines that tools search, and the end without a LIM.

use crate::common::*;
use std::process::Command;

#[test]
fn lsid_prints_version_cluster_and_master() {
    let out = ok("lsid", &[]);
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines[0].contains("IBM Spectrum LSF Standard 10.1.0.0, "), "{out}");
    assert_eq!(lines[1], "");
    assert!(lines[2].starts_with("My cluster name is "), "{out}");
    assert!(lines[3].starts_with("My master name is "), "{out}");
    assert_eq!(lines.len(), 4);
}

#[test]
fn lsid_help_and_version_exit_0() {
    for option in ["-h", "-V"] {
        assert_eq!(run("lsid", &[option]).code, 0);
    }
    let version = run("lsid", &["-V"]);
    assert_eq!((version.out.as_str(), version.err.lines().count()), ("", 1));
    assert_eq!(run("lsid", &["-x"]).code, 255);
}

#[test]
fn base_commands_without_a_lim_say_that_it_is_down() {
    let dir = scratch("lsid");
    let Some(envdir) = other_envdir(&dir, "LSF_LIM_PORT=1\n") else { return };
    let said: Said = cmd("lsid").env("LSF_ENVDIR", envdir).output().unwrap().into();
    assert_eq!(said.code, 255);
    assert_eq!(said.err, "ls_getclustername(): LIM is down; try later\n");
    assert!(said.out.starts_with("lsf "), "{}", said.out);
    for command in ["lsload", "lshosts"] {
        let said: Said = cmd(command).env("LSF_ENVDIR", &dir).output().unwrap().into();
        assert_eq!((said.code, said.out.as_str()), (255, ""));
        assert_eq!(said.err, "LIM is down; try later\n");
    }
    // one that accepts and says nothing is waited for so long; one that is not there, so often
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let lines = format!("LSF_SERVER_HOSTS=127.0.0.1\nLSF_LIM_PORT={port}\nLSF_API_CONNTIMEOUT=1\n");
    other_envdir(&dir, &lines);
    let took = |c: &mut Command| {
        let began = std::time::Instant::now();
        assert_eq!(c.env("LSF_ENVDIR", &dir).output().unwrap().status.code(), Some(255));
        began.elapsed().as_secs_f64()
    };
    let once = took(&mut cmd("lsid"));
    let thrice = took(cmd("lsid").env("LSF_LIM_API_NTRIES", "3"));
    assert!(once < 4.0 && thrice > once + 0.2, "{once} {thrice}");
    std::fs::remove_dir_all(dir).unwrap();
}
