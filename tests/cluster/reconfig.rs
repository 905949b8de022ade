//! badmin reconfig: a broken file changes nothing and is pointed at; the mended one takes effect;
//! cron swaps day and night.

use crate::rig::{Rig, binary};
use std::path::Path;
use std::process::{Command, Stdio};

fn policy(name: &str) -> String {
    let p = Path::new(env!("CARGO_MANIFEST_DIR")).join("conf-examples/policies").join(name);
    let p = if p.is_dir() { p.join("lsb.queues") } else { p };
    std::fs::read_to_string(p).unwrap()
}

#[test]
fn a_broken_file_keeps_the_old_policy() {
    let rig = Rig::up("reconfig", 1);
    let queues = rig.configdir().join("lsb.queues");
    let good = std::fs::read_to_string(&queues).unwrap();
    let held = rig.bsub(&["-H", "-o", "/dev/null", "true"]);
    let before = rig.ok("bqueues", &[]);
    let broken = format!("{good}\nBegin Queue\nQUEUE_NAME = extra\nPRIORITTY = 7\nEnd Queue\n");
    std::fs::write(&queues, &broken).unwrap();
    let line = broken.lines().position(|l| l.starts_with("PRIORITTY")).unwrap() + 1;
    let said = rig.run("badmin", &["reconfig"]);
    assert_eq!(said.code, 255, "{said:?}");
    let words = format!("{}{}", said.out, said.err);
    assert!(words.contains(&format!("lsb.queues:{line}:")), "{words}");
    assert!(words.contains("PRIORITY"), "the nearest word: {words}");
    assert_eq!(rig.ok("bqueues", &[]), before);
    assert_eq!(rig.run("badmin", &["ckconfig", "-v"]).code, 255);
    std::fs::write(&queues, broken.replace("PRIORITTY", "PRIORITY")).unwrap();
    rig.ok("badmin", &["reconfig"]);
    assert!(rig.ok("bqueues", &[]).contains("extra"));
    assert_eq!(rig.stat(held), "PSUSP");
    rig.ok("bresume", &[&held.to_string()]);
    assert_eq!(rig.end_of(held), "DONE");
}

/// What a crontab line does: a bare environment, no terminal, LSF_ENVDIR unset.
fn as_cron(rig: &Rig, name: &str) -> std::process::Output {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("conf-examples/policies").join(name);
    let src = if src.is_dir() { src.join("lsb.queues") } else { src };
    let line = format!(
        "cp {} {} && {} reconfig",
        src.display(),
        rig.configdir().join("lsb.queues").display(),
        rig.path("bin/badmin").display()
    );
    Command::new("/bin/sh")
        .args(["-c", &line])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("SHELL", "/bin/sh")
        .env("HOME", "/nonexistent")
        .current_dir("/")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[test]
fn cron_swaps_day_and_night() {
    assert!(binary().exists());
    let rig = Rig::up("cron", 3);
    for name in ["night", "day"] {
        let out = as_cron(&rig, name);
        let err = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(0), "{name}: {err}");
        let text = policy(name);
        let wanted = text.lines().filter_map(|l| l.trim().strip_prefix("QUEUE_NAME")).map(|l| {
            l.trim_start_matches([' ', '=']).split('#').next().unwrap().trim().to_string()
        });
        let shown = rig.ok("bqueues", &[]);
        for q in wanted {
            assert!(shown.contains(&q), "{name}: {q} in {shown}");
        }
    }
}
