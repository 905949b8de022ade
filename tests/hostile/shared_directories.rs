//! Files that another user has put into a directory that everybody may write.

use super::rig::{Rig, Said, wait_for};
use super::site::MultiUserSite;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Stdio};

fn fifo(path: &std::path::Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// A command that must not hang; its exit code, and what it complained of.
fn soon(rig: &Rig, words: &[&str]) -> (i32, String) {
    let mut c = Command::new("timeout");
    c.arg("40").arg(rig.path("bin").join(words[0])).args(&words[1..]);
    rig.dress(&mut c);
    let said = Said::from(c.stdin(Stdio::null()).output().unwrap());
    (said.code, said.err)
}

/// A task by way of res.
fn task(rig: &Rig) {
    let done = soon(rig, &["lsrun", "-L", "-m", "host1", "true"]);
    assert_eq!(done, (0, String::new()), "res hangs");
}

#[test]
fn files_that_others_put_in_place_of_lsf_acct_stop_no_res() {
    let rig = Rig::up("acct", 1);
    let dir = rig.path("acct");
    std::fs::create_dir(&dir).unwrap();
    std::fs::set_permissions(&dir, PermissionsExt::from_mode(0o1777)).unwrap();
    let conf = rig.read("conf/lsf.conf");
    rig.write("conf/lsf.conf", &format!("{conf}\nLSF_RES_ACCTDIR={}\n", dir.display()));
    rig.kill9("res", "host1");
    let on = ["lsadmin", "reslogon", "-c", "0", "host1"];
    wait_for("res to answer", || soon(&rig, &on).0 == 0);
    let file = dir.join("lsf.acct.host1");
    fifo(&file);
    (0..3).for_each(|_| task(&rig));
    assert_eq!(soon(&rig, &["lsacct"]).0, 255, "lsacct hangs");
    std::fs::remove_file(&file).unwrap();
    rig.write("victim", "");
    symlink(rig.path("victim"), &file).unwrap();
    task(&rig);
    std::fs::remove_file(&file).unwrap();
    // another name of a file of ours
    std::fs::hard_link(rig.path("victim"), &file).unwrap();
    task(&rig);
    std::fs::remove_file(&file).unwrap();
    task(&rig);
    wait_for("a record", || std::fs::read_to_string(&file).is_ok_and(|t| t.lines().count() == 1));
    assert_eq!(rig.read("victim"), "");
    assert_eq!(soon(&rig, &["lsacct"]).0, 0);
    let log = rig.read("log/res.log.host1");
    assert_eq!(log.matches("records of tasks are lost").count(), 1, "{log}");
}

#[test]
fn files_that_others_put_in_place_of_a_log_stop_no_daemon() {
    if !MultiUserSite::possible("files_that_others_put_in_place_of_a_log_stop_no_daemon") {
        return;
    }
    let mut site = MultiUserSite::new("logs", 1);
    std::fs::set_permissions(site.path("log"), PermissionsExt::from_mode(0o1777)).unwrap();
    site.write("victim", "");
    let (log, victim) = (site.path("log"), site.path("victim"));
    let make = |how: &str, name: &str| {
        let to = log.join(format!("{name}.log.host1"));
        site.ok("ann", &format!("{how} {}", to.display()));
    };
    make("mkfifo", "lim");
    make("echo text >", "mbatchd");
    make(&format!("ln -s {}", victim.display()), "sbatchd");
    make("mkdir", "res");
    make("mkfifo", "authd");
    make("mkfifo", "launcher");
    site.start();
    assert_eq!(site.end_of(site.bsub("ann", "-o /dev/null true")), "DONE");
    wait_for("res to answer", || site.run("ann", "lsrun -m host1 true").code == 0);
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "");
    assert_eq!(std::fs::read_to_string(log.join("mbatchd.log.host1")).unwrap(), "text\n");
}
