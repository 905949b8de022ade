//! pam and TaskStarter in real processes, with a PJL of a few lines of shell that starts the tasks
//! by blaunch on the hosts of its job (pam(1)).

use super::rig::{Rig, wait_for};

/// A cluster of three hosts with one job slot used on each, and the PJLs.
fn up(name: &str) -> Rig {
    let rig = Rig::up(name, 3);
    // method 1: the words behind its own are the TaskStarter and the application
    script(
        &rig,
        "pjl1.sh",
        "for h in $LSB_HOSTS; do blaunch $h \"$@\" & done; wait\nexit ${PJL:-0}",
    );
    // method 2: it calls the TaskStarter itself
    let line = "for h in $LSB_HOSTS; do blaunch $h $LSF_TS $LSF_TS_OPTIONS \"$@\" & done; wait\n\
                exit ${PJL:-0}";
    script(&rig, "pjl2.sh", line);
    rig
}

fn script(rig: &Rig, name: &str, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    let path = rig.path(name);
    std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
}

/// The output of a job of three slots on three hosts, and its exit code.
struct Ran {
    out: String,
    err: String,
    code: String,
}

fn submit(rig: &Rig, line: &str) -> u32 {
    for file in ["out", "err"] {
        let _ = std::fs::remove_file(rig.path(file));
    }
    let line = format!("{line} > out 2> err");
    rig.bsub(&["-n", "3", "-R", "span[ptile=1]", "-o", "/dev/null", &line])
}

fn run(rig: &Rig, line: &str) -> Ran {
    let job = submit(rig, line);
    rig.end_of(job);
    let code = rig.field(&job.to_string(), "exit_code");
    Ran { out: rig.read("out"), err: rig.read("err"), code }
}

/// The rows of the table without its times, sorted by hosts; and what stands before it.
fn rows(out: &str) -> (Vec<String>, Vec<String>) {
    let at = out.find("TID   HOST_NAME").unwrap_or(out.len());
    let mut before: Vec<String> = out[..at].lines().map(str::to_owned).collect();
    before.sort();
    let mut rows: Vec<String> = out[at..]
        .lines()
        .skip(2)
        .map(|line| {
            let words: Vec<&str> = line[5..].split_whitespace().collect();
            let date = words.iter().rposition(|word| word.matches('/').count() == 2);
            words[..date.unwrap_or(words.len())].join(" ")
        })
        .collect();
    rows.sort();
    (before, rows)
}

#[test]
fn tasks_run_on_three_hosts_and_pam_ends_as_its_pjl() {
    let rig = up("pam");
    script(&rig, "app.sh", "echo $LSF_LOCAL_HOST \"$@\"");
    for (line, code) in [
        ("pam -g 1 ./pjl1.sh ./app.sh 'x  y'", "0"),
        ("PJL=7 pam -g ./pjl2.sh ./app.sh 'x  y'", "7"),
    ] {
        let ran = run(&rig, line);
        let (before, rows) = rows(&ran.out);
        assert_eq!((ran.code.as_str(), ran.err.as_str()), (code, ""), "{line}: {}", ran.out);
        // blaunch, as rsh, joins the words by blanks, and a shell splits them
        assert_eq!(before, ["host1 x y", "host2 x y", "host3 x y"]);
        let want = ["host1", "host2", "host3"].map(|host| format!("{host} ./app.sh x y Done"));
        let want = want.map(|row| row.replace("x y", "x  y"));
        let want = want.map(|row| row.split_whitespace().collect::<Vec<_>>().join(" "));
        assert_eq!(rows, want, "{}", ran.out);
    }
    let ran = run(&rig, "pam -t -g ./pjl2.sh ./app.sh");
    assert_eq!(ran.out.lines().count(), 3, "{}", ran.out);
}

/// Processes whose words include this one.
fn running(word: &str) -> usize {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let has = |entry: &std::fs::DirEntry| {
        let text = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        text.split(|b| *b == 0).any(|w| w == word.as_bytes())
    };
    all.filter(|entry| entry.file_name().to_string_lossy().parse::<u32>().is_ok() && has(entry))
        .count()
}

#[test]
fn bkill_of_a_job_under_pam_leaves_no_process() {
    let rig = up("pam-kill");
    let word = format!("{}.25", 4000 + std::process::id() % 997);
    let job = submit(&rig, &format!("pam -g 1 ./pjl1.sh sleep {word}"));
    // the TaskStarters and the tasks
    wait_for("the tasks", || running(&word) >= 6);
    rig.ok("bkill", &[&job.to_string()]);
    assert_eq!(rig.end_of(job), "EXIT");
    wait_for("all to go", || running(&word) == 0);
}
