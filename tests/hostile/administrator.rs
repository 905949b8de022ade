//! The primary administrator against root: the configuration is the administrator's own, and what
//! root's launcher and root's commands open by it must not be root's to lose.

use super::rig::{Said, kill, wait_for};
use super::site::{ADMIN, MultiUserSite, uid};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// The text of a file that only root can read.
const SECRET: &str = "SeCrEt-4711";
/// Longest that a launcher takes to come up or to refuse.
const SETTLED: Duration = Duration::from_secs(50);

/// A site whose configuration is the administrator's, and root's own directory beside it.
fn site(name: &str) -> Option<MultiUserSite> {
    if !MultiUserSite::possible(name) {
        return None;
    }
    let site = MultiUserSite::new("admin", 1);
    let own = std::process::Command::new("chown")
        .args(["-R", &format!("{0}:{0}", uid(ADMIN))])
        .arg(site.path("conf"))
        .status();
    assert!(own.unwrap().success());
    let root = site.path("root");
    std::fs::create_dir(&root).unwrap();
    site.write("root/file", &format!("{SECRET} {SECRET}\n{SECRET} = {SECRET}\n"));
    std::fs::set_permissions(root.join("file"), PermissionsExt::from_mode(0o600)).unwrap();
    Some(site)
}

/// The contents of root's directory: names, owners, kinds.
fn roots(site: &MultiUserSite) -> Vec<(String, u32, bool)> {
    let entries = std::fs::read_dir(site.path("root")).unwrap().flatten();
    let mut all: Vec<(String, u32, bool)> = entries
        .map(|e| (e.file_name().into_string().unwrap(), e.metadata().unwrap()))
        .map(|(name, meta)| (name, meta.uid(), meta.is_dir()))
        .collect();
    all.sort();
    all
}

fn ended(child: &Child) -> bool {
    // left to be waited for by the caller
    let pid = Pid::from_child(child);
    let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    waitid(WaitId::Pid(pid), how).unwrap().is_some()
}

/// Starts root's launcher and waits until it has refused or its authd serves, then stops it.
/// Returns its messages, and whether it came up.
fn launch(site: &MultiUserSite) -> (String, bool) {
    launch_as(site, site.launcher("host1"))
}

fn launch_as(site: &MultiUserSite, mut launcher: std::process::Command) -> (String, bool) {
    let out = std::fs::File::create(site.path("said")).unwrap();
    let child = launcher.stderr(Stdio::from(out)).spawn().unwrap();
    let until = Instant::now() + SETTLED;
    let up =
        |site: &MultiUserSite| site.processes().iter().any(|p| p.0 == "authd" && p.2 == uid(ADMIN));
    // one that may write no log ends at once, again and again
    let gives_up =
        || std::fs::read_to_string(site.path("said")).is_ok_and(|s| s.contains("authd ended"));
    while !ended(&child) && !up(site) && !gives_up() {
        assert!(Instant::now() < until, "the launcher hangs");
        std::thread::sleep(Duration::from_millis(20));
    }
    let came = up(site);
    kill(child.id(), 2);
    let mut child = child;
    child.wait().unwrap();
    (std::fs::read_to_string(site.path("said")).unwrap(), came)
}

/// Puts a link in place of a file of the administrator's, as the administrator.
fn link(site: &MultiUserSite, from: &str, to: &Path) -> String {
    let from = site.path(from);
    let old = std::fs::read_to_string(&from).unwrap_or_default();
    let _ = std::fs::remove_file(&from);
    symlink(to, &from).unwrap();
    std::os::unix::fs::lchown(&from, Some(uid(ADMIN)), Some(uid(ADMIN))).unwrap();
    old
}

fn put(site: &MultiUserSite, rel: &str, text: &str) {
    let _ = std::fs::remove_file(site.path(rel));
    site.write(rel, text);
    chown(site.path(rel), Some(uid(ADMIN)), Some(uid(ADMIN))).unwrap();
}

/// Adds to a file of the administrator's; gives the old text.
fn add(site: &MultiUserSite, rel: &str, text: &str) -> String {
    let old = std::fs::read_to_string(site.path(rel)).unwrap();
    put(site, rel, &format!("{old}{text}\n"));
    old
}

/// Files below the site's directory, but for root's own, that hold the secret.
fn leaks(site: &MultiUserSite, said: &str) -> Vec<String> {
    let mut all: Vec<String> =
        said.lines().filter(|l| l.contains("SeCrEt")).map(String::from).collect();
    let grep = std::process::Command::new("grep")
        .args(["-rls", "--exclude-dir=root", "--devices=skip", "SeCrEt"])
        .args(["conf", "log", "run", "work", "said"].map(|d| site.path(d)))
        .output()
        .unwrap();
    all.extend(String::from_utf8_lossy(&grep.stdout).lines().map(String::from));
    all
}

const CONF: [&str; 4] =
    ["conf/lsf.conf", "conf/lsf.shared", "conf/lsf.cluster.personal", "conf/hosts"];

#[test]
fn a_link_in_place_of_a_configuration_file_shows_nothing_of_roots() {
    let Some(site) = site("link_in_place_of_a_configuration_file") else { return };
    let secret = site.path("root/file");
    for file in CONF {
        let old = link(&site, file, &secret);
        let (said, _) = launch(&site);
        assert_eq!(leaks(&site, &said), [""; 0], "{file}");
        // sudo shows the administrator what root's command says
        for words in
            ["lsf_daemons status", "lsf_daemons start", "hostsetup --check", "lsfstartup -f"]
        {
            let said = site.run("root", words);
            assert_eq!(leaks(&site, &format!("{}{}", said.out, said.err)), [""; 0], "{words}");
        }
        put(&site, file, &old);
    }
    // as part of a file, and as a directory that is named
    let text = format!("#INCLUDE \"{}\"", secret.display());
    for file in &CONF[1..3] {
        let old = add(&site, file, &text);
        let (said, _) = launch(&site);
        assert_eq!(leaks(&site, &said), [""; 0], "{file}");
        put(&site, file, &old);
    }
    for file in ["lsf.shared", "hosts"] {
        std::fs::copy(&secret, site.path("root").join(file)).unwrap();
    }
    let old = add(&site, CONF[0], &format!("LSF_CONFDIR={}", site.path("root").display()));
    let (said, _) = launch(&site);
    assert_eq!(leaks(&site, &said), [""; 0], "LSF_CONFDIR");
    put(&site, CONF[0], &old);
    assert!(launch(&site).1, "what is the administrator's own is read");
}

#[test]
fn fifo_in_place_of_a_configuration_file_delays_no_start() {
    let Some(site) = site("fifo_in_place_of_a_configuration_file") else { return };
    for file in CONF {
        let old = std::fs::read_to_string(site.path(file)).unwrap_or_default();
        site.ok("root", &format!("rm -f {0}; mkfifo {0}", site.path(file).display()));
        launch(&site);
        put(&site, file, &old);
    }
}

#[test]
fn a_log_is_made_in_no_directory_of_roots() {
    let Some(site) = site("a_log_is_made_in_no_directory_of_roots") else { return };
    let before = roots(&site);
    let root = site.path("root");
    // as a file that a shell sources
    let cluster = std::fs::read_to_string(site.path(CONF[2])).unwrap();
    let hosts = std::fs::read_to_string(site.path(CONF[3])).unwrap();
    put(&site, CONF[2], &cluster.replace("host1", "x.sh"));
    put(&site, CONF[3], &hosts.replace("host1", "x.sh"));
    let conf =
        add(&site, CONF[0], &format!("LSF_LOGDIR={}\nLSF_LOG_MASK=LOG_INFO", root.display()));
    for from in ["root", "log/away"] {
        if from != "root" {
            symlink(&root, site.path(from)).unwrap();
            put(&site, CONF[0], &conf);
            add(&site, CONF[0], &format!("LSF_LOGDIR={}", site.path(from).display()));
        }
        launch_as(&site, site.launcher("x.sh"));
        assert_eq!(roots(&site), before, "{from}");
    }
    put(&site, CONF[0], &conf);
    put(&site, CONF[2], &cluster);
    put(&site, CONF[3], &hosts);
    // nor is a file of root's written to by a name in the administrator's directory
    site.write("victim", "");
    let log = site.path("log/launcher.log.host1");
    for kind in ["ln -s", "ln", "mkfifo"] {
        let _ = std::fs::remove_file(&log);
        let what = if kind == "mkfifo" { PathBuf::new() } else { site.path("victim") };
        site.ok("root", &format!("{kind} {} {}", what.display(), log.display()));
        assert!(launch(&site).1, "{kind}: a log that cannot be had stops no launcher");
        assert_eq!(std::fs::read_to_string(site.path("victim")).unwrap(), "", "{kind}");
    }
    let _ = std::fs::remove_file(&log);
    // and what is put aside is not put over a file of root's
    add(&site, CONF[0], "LSF_LOG_MASK=LOG_INFO\nLSF_LOG_MAXSIZE=1");
    site.write("root/kept", "kept");
    let old = site.path("log/launcher.log.host1.old");
    let _ = std::fs::remove_file(&old);
    symlink(site.path("root/kept"), &old).unwrap();
    put(&site, "log/launcher.log.host1", &"x".repeat(1020));
    assert!(launch(&site).1);
    assert_eq!(std::fs::read_to_string(site.path("root/kept")).unwrap(), "kept");
    // the log itself is there, and the administrator's
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(text.contains("authd is pid"), "{text}");
    assert_eq!(log.metadata().unwrap().uid(), uid(ADMIN));
}

/// A name that may mean something to another program, as /run/nologin does.
fn directory_of_another_program(refused: &dyn Fn(&Path) -> String) {
    let other = PathBuf::from(format!("/run/another-{}", std::process::id()));
    let said = refused(&other);
    assert!(!other.exists() && said.contains("below /run/lsf*"), "{said}");
    std::fs::create_dir(&other).unwrap();
    let said = refused(&other);
    let left = std::fs::read_dir(&other).unwrap().count();
    std::fs::remove_dir_all(&other).unwrap();
    assert!(left == 0 && said.contains("not made by a launcher"), "{said}");
}

#[test]
fn a_directory_of_roots_is_neither_given_away_nor_used() {
    let Some(site) = site("a_directory_of_roots_is_neither_given_away_nor_used") else { return };
    let old = std::fs::read_to_string(site.path(CONF[0])).unwrap();
    std::fs::create_dir_all(site.path("root/authd")).unwrap();
    std::fs::create_dir_all(site.path("root/host1/authd")).unwrap();
    let before = roots(&site);
    let refused = |site: &MultiUserSite, rundir: &Path, single: bool| {
        let single = if single { "LSF_ALLOW_LOCAL_HOST=N" } else { "" };
        put(site, CONF[0], &format!("{old}LSF_RUNDIR={}\n{single}\n", rundir.display()));
        let (said, up) = launch(site);
        assert!(!up && said.contains("LSF_RUNDIR"), "{}: {said}", rundir.display());
        assert_eq!(roots(site), before, "{}", rundir.display());
        assert_eq!(site.path("root/host1/authd").metadata().unwrap().uid(), 0);
        site.run("root", "lsf_daemons stop; lsf_daemons status");
        assert_eq!(roots(site), before, "lsf_daemons: {}", rundir.display());
        said
    };
    let cluster = std::fs::read_to_string(site.path(CONF[2])).unwrap();
    let hosts = std::fs::read_to_string(site.path(CONF[3])).unwrap();
    let rename = |to: &str| {
        put(&site, CONF[2], &cluster.replace("host1", to));
        put(&site, CONF[3], &hosts.replace("host1", to));
    };
    for single in [false, true] {
        if single {
            rename(rustix::system::uname().nodename().to_str().unwrap());
        }
        let root = site.path("root");
        if !single {
            let said = refused(&site, &root, single);
            assert!(said.contains("not made by a launcher"), "{said}");
        }
        if !single {
            // one that is a launcher's, with something else's directory in it
            let other = site.path("other");
            std::fs::create_dir_all(other.join("host1/authd")).unwrap();
            site.write("other/launcher.lock", "");
            let said = refused(&site, &other, single);
            assert!(said.contains("it contains other files"), "{said}");
            assert_eq!(other.join("host1/authd").metadata().unwrap().uid(), 0);
        }
        // an empty one may be that of a program which runs or sources what lies there
        let empty = root.join("authd");
        let said = refused(&site, &empty, single);
        assert!(said.contains("not made by a launcher"), "{said}");
        assert!(std::fs::read_dir(&empty).unwrap().next().is_none());
        // one that is not there, where root made something else
        refused(&site, &root.join("new"), single);
        // one that a link of the administrator's leads to
        let link = site.path("log/link");
        let _ = std::fs::remove_file(&link);
        symlink(&root, &link).unwrap();
        refused(&site, &link, single);
        refused(&site, &link.join("new"), single);
        refused(&site, &site.path("work/run"), single);
        refused(&site, Path::new("run"), single);
        directory_of_another_program(&|rundir| refused(&site, rundir, single));
    }
    // a host's name is no way out of the directory
    put(&site, CONF[0], &old);
    rename("../root/new");
    launch_as(&site, site.launcher("../root/new"));
    assert_eq!(roots(&site), before);
    rename("host1");
}

/// The launcher leaves a directory of another user alone and does not start.
#[test]
fn directory_of_authd_with_another_owner_keeps_it_and_stops_the_launcher() {
    let name = "directory_of_authd_with_another_owner_keeps_it_and_stops_the_launcher";
    let Some(site) = site(name) else { return };
    let authd = site.path("run/host1/authd");
    assert!(launch(&site).1);
    assert_eq!(authd.metadata().unwrap().uid(), uid(ADMIN));
    chown(&authd, Some(uid("ann")), None).unwrap();
    // an empty directory would be replaced, and authd may not have made its socket
    std::fs::write(authd.join("file of ann"), "").unwrap();
    let (said, up) = launch(&site);
    assert!(!up && said.contains("remove it"), "{said}");
    assert_eq!(authd.metadata().unwrap().uid(), uid("ann"));
    std::fs::remove_dir_all(&authd).unwrap();
    assert!(launch(&site).1);
}

#[test]
fn root_runs_no_launcher_that_the_administrator_could_exchange() {
    let Some(site) = site("root_runs_no_launcher_that_the_administrator") else { return };
    chown(site.path("bin"), Some(uid(ADMIN)), None).unwrap();
    let (said, up) = launch(&site);
    assert!(!up && said.contains("root must not run this program"), "{said}");
    chown(site.path("bin"), Some(0), None).unwrap();
    assert!(launch(&site).1);
}

#[test]
fn root_writes_no_key_where_a_link_leads() {
    let Some(site) = site("root_writes_no_key_where_a_link_leads") else { return };
    let before = roots(&site);
    symlink(site.path("root"), site.path("log/link")).unwrap();
    let old = std::fs::read_to_string(site.path(CONF[0])).unwrap();
    let setup = |key: &Path| -> Said {
        put(&site, CONF[0], &format!("{old}LSF_KEY_FILE={}\n", key.display()));
        let line = format!("timeout 30 hostsetup --top={} --newkey", site.dir.display());
        site.run("root", &line)
    };
    for (key, why) in [
        (site.path("log/link/lsf.key"), "can be changed by users other than root"),
        (site.path("log/link/no/lsf.key"), "can be changed by users other than root"),
        (site.path("root/server.key"), "named lsf*.key"),
        (site.path("root/lsf.pem"), "named lsf*.key"),
    ] {
        let said = setup(&key);
        assert!(said.code == 255 && said.err.contains(why), "{}: {said:?}", key.display());
        assert_eq!(roots(&site), before, "{}", key.display());
    }
    // what cannot be read is not waited for
    let fifo = site.path("log/lsf.key");
    site.ok("root", &format!("mkfifo {}", fifo.display()));
    put(&site, CONF[0], &format!("{old}LSF_KEY_FILE={}\n", fifo.display()));
    let key = lsf::auth::new_key().unwrap();
    site.write("key", &key);
    let dir = site.dir.display();
    let line = format!("timeout 30 hostsetup --top={dir} --key={dir}/key --check");
    assert_eq!(site.run("root", &line).code, 255, "hostsetup hangs");
}

#[test]
fn configuration_broken_under_a_running_launcher_stops_no_daemon() {
    let Some(mut site) = site("configuration_broken_under_a_running_launcher") else { return };
    site.start();
    let job = site.bsub("ann", "-o /dev/null 'while ! [ -e go ]; do sleep 0.1; done; exit 7'");
    wait_for("the job to run", || site.stat(job) == "RUN");
    let launcher = site.processes().into_iter().find(|p| p.0 == "launcher").unwrap().1;
    let log = || std::fs::read_to_string(site.path("log/launcher.log.host1")).unwrap();
    let conf = std::fs::read_to_string(site.path(CONF[0])).unwrap();
    let level = format!("{conf}LSF_LOG_MASK=LOG_INFO\n");
    link(&site, CONF[0], &site.path("root/file"));
    kill(launcher, 12);
    wait_for("the refusal", || log().contains("not replaced: "));
    assert_eq!(leaks(&site, &log()), [""; 0]);
    put(&site, CONF[0], &level);
    // a log that is put aside is the administrator's anew
    std::fs::remove_file(site.path("log/launcher.log.host1")).unwrap();
    kill(launcher, 1);
    kill(launcher, 12);
    wait_for("the replacement", || {
        std::fs::read_to_string(site.path("log/launcher.log.host1"))
            .is_ok_and(|text| text.contains("replaced by"))
    });
    assert_eq!(site.path("log/launcher.log.host1").metadata().unwrap().uid(), uid(ADMIN));
    site.ok("ann", "touch go");
    assert_eq!(site.end_of(job), "EXIT");
    assert!(site.ok("ann", &format!("bjobs -l {job}")).contains("Exited with exit code 7"));
}

/// The programs that lsf.conf names are the administrator's to exchange: root's commands do not run
/// it.
#[test]
fn roots_commands_run_no_program_that_the_administrator_could_exchange() {
    let Some(mut site) = site("roots_commands_run_no_program_that_the_administrator") else {
        return;
    };
    std::fs::create_dir(site.path("server")).unwrap();
    let ran = site.path("home/ran");
    std::fs::set_permissions(site.path("home"), PermissionsExt::from_mode(0o777)).unwrap();
    let text = format!("#!/bin/sh\nid -u >> {}\n", ran.display());
    super::rig::program(&site.path("server/esub"), &text);
    let server = site.path("server");
    let eauth = format!("#!/bin/sh\nexec {} \"$@\"\n", site.path("bin/eauth").display());
    super::rig::program(&server.join("eauth"), &eauth);
    chown(&server, Some(uid(ADMIN)), None).unwrap();
    add(&site, CONF[0], &format!("LSF_SERVERDIR={}", server.display()));
    site.start();
    for words in ["bsub -o /dev/null true", "lsrun -L -m host1 true", "bhosts"] {
        let said = site.run("root", words);
        assert!(said.err.contains("root does not run it"), "{words}: {said:?}");
    }
    assert!(!ran.exists());
    // everybody else does, and so does root where it is root's
    assert_eq!(site.end_of(site.bsub("ann", "-o /dev/null true")), "DONE");
    chown(&server, Some(0), None).unwrap();
    site.run("root", "bsub -o /dev/null true");
    assert_eq!(std::fs::read_to_string(&ran).unwrap(), format!("{}\n0\n", uid("ann")));
}
