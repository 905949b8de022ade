//! The cluster key on real processes: rotated under load, missing, readable by others, different on
//! two hosts; a host that has authd and nothing else. Errors name file and host.

use crate::rig::{Rig, alive, binary, kill, wait_for};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

/// A process of a test's own; a launcher so ended ends its daemons.
struct Own(Child);

impl Drop for Own {
    fn drop(&mut self) {
        kill(self.0.id(), 2);
        let _ = self.0.wait();
    }
}

fn private(path: &Path, text: &str) {
    let _ = std::fs::remove_file(path);
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o600)).unwrap();
}

/// Another LSF_ENVDIR, as a host with a disk of its own has it, whose key is elsewhere.
fn own_conf(rig: &Rig) -> (PathBuf, PathBuf) {
    let (dir, key) = (rig.path("conf2"), rig.path("lsf.key2"));
    std::fs::create_dir_all(&dir).unwrap();
    let text = rig.read("conf/lsf.conf");
    let line = |l: &str| match l.starts_with("LSF_KEY_FILE=") {
        true => format!("LSF_KEY_FILE={}\n", key.display()),
        false => format!("{l}\n"),
    };
    let text: String = text.lines().map(line).collect();
    std::fs::write(dir.join("lsf.conf"), text).unwrap();
    (dir, key)
}

/// Starts something of host2 with that LSF_ENVDIR.
fn start(rig: &Rig, envdir: &Path, applet: &str, host: &str) -> Own {
    let mut cmd = Command::new(binary());
    cmd.arg(applet);
    rig.dress(&mut cmd);
    cmd.env("LSF_ENVDIR", envdir).env("LSF_LOCAL_HOST", host);
    Own(cmd.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

/// A cluster of two hosts, the second one stopped.
fn two_hosts(name: &str) -> Rig {
    let rig = Rig::up(name, 2);
    rig.ready();
    let launcher = rig.pid("launcher", "host2").unwrap();
    kill(launcher, 2);
    wait_for("host2 to stop", || !alive(launcher));
    rig
}

fn logged(rig: &Rig, log: &str, words: &[&str]) {
    let file = format!("log/{log}");
    wait_for(&format!("{words:?} in {file}"), || {
        let text = rig.read(&file);
        text.lines().any(|line| words.iter().all(|w| line.contains(w)))
    });
}

fn host_is(rig: &Rig, host: &str, state: &str) -> bool {
    let out = rig.run("bhosts", &[]).out;
    out.lines().any(|l| l.starts_with(&format!("{host} ")) && l.contains(state))
}

#[test]
fn a_key_that_is_missing_or_not_private_is_named_with_file_and_host() {
    let rig = two_hosts("nokey");
    let (envdir, key) = own_conf(&rig);
    let good = rig.read("conf/lsf.key");
    let told = |why: &str| {
        let file = format!("host host2: cluster key file {}: ", key.display());
        for daemon in ["authd", "lim", "sbatchd"] {
            logged(&rig, &format!("{daemon}.log.host2"), &[&file, why]);
        }
    };
    let _host2 = start(&rig, &envdir, "launcher", "host2");
    told("No such file or directory");
    private(&key, &good);
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o640)).unwrap();
    told("mode is 0640, must be 0600");
    std::fs::remove_file(&key).unwrap();
    symlink(rig.path("conf/lsf.key"), &key).unwrap();
    // libraries differ in the other words
    told("ymbolic link");
    if lsf::sys::euid() == 0 {
        private(&key, &good);
        std::os::unix::fs::chown(&key, Some(65534), None).unwrap();
        told("owner is uid 65534, must be 0");
    }
    private(&key, "k1 0123\n");
    told("line 1: the key must be 32 to 64 bytes long");
    assert!(!host_is(&rig, "host2", "ok"));
    // The key bytes are in no log.
    let secret = good.split_whitespace().last().unwrap();
    let mut logs = 0;
    for e in std::fs::read_dir(rig.path("log")).unwrap().flatten() {
        let text = std::fs::read(e.path()).unwrap();
        assert!(!String::from_utf8_lossy(&text).contains(&secret[..16]), "{:?}", e.path());
        logs += usize::from(!text.is_empty());
    }
    assert!(logs > 0, "no log was written");
    // The hosts come back by themselves once the key is right.
    private(&key, &good);
    wait_for("host2 to be back", || host_is(&rig, "host2", "ok"));
    assert!(rig.ok("bsub", &["-m", "host2", "-o", "/dev/null", "true"]).contains("submitted"));
}

#[test]
fn different_keys_of_two_hosts_are_logged_by_both() {
    let rig = two_hosts("keys");
    let (envdir, key) = own_conf(&rig);
    private(&key, &lsf::auth::new_key().unwrap());
    let theirs = format!("(cluster key file {} of host host2)", key.display());
    let ours = format!("(cluster key file {} of host host1)", rig.path("conf/lsf.key").display());
    {
        let _host2 = start(&rig, &envdir, "launcher", "host2");
        logged(&rig, "lim.log.host1", &["datagram from", "unknown cluster key", &ours]);
        let words = ["connection to sbatchd on host2: no cluster key in common", &ours];
        logged(&rig, "mbatchd.log.host1", &words);
        // A user there is told, too.
        let mut cmd = rig.cmd("bqueues");
        cmd.env("LSF_ENVDIR", &envdir).env("LSF_LOCAL_HOST", "host2").env("LSB_NTRIES", "1");
        wait_for("authd of host2", || {
            let said = String::from_utf8_lossy(&cmd.output().unwrap().stderr).into_owned();
            said.contains("User permission denied") && said.contains(&theirs)
        });
        assert!(!host_is(&rig, "host2", "ok"));
    }
    // Another key under the same id looks like a forgery.
    let id = rig.read("conf/lsf.key").split_whitespace().next().unwrap().to_owned();
    private(&key, &format!("{id} {}\n", "0123456789abcdef".repeat(4)));
    let _host2 = start(&rig, &envdir, "launcher", "host2");
    let words = ["of user mbatchd", "of host host1", "wrongly signed", &theirs];
    logged(&rig, "sbatchd.log.host2", &words);
    logged(&rig, "mbatchd.log.host1", &["connection to sbatchd on host2: refused", &ours]);
}

/// Every daemon of the cluster.
fn daemons(rig: &Rig) -> Vec<u32> {
    let of = |d: &str| rig.pids(d).into_values().collect::<Vec<_>>();
    ["authd", "lim", "sbatchd", "mbatchd"].iter().flat_map(|d| of(d)).collect()
}

#[test]
fn key_rotation_under_load_fails_no_request() {
    let rig = Rig::up("rotate", 3);
    rig.ready();
    let file = rig.path("conf/lsf.key");
    let old = rig.read("conf/lsf.key");
    let new = lsf::auth::new_key().unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|s| {
        let load = s.spawn(|| {
            let mut jobs = Vec::new();
            while !done.load(Ordering::Relaxed) {
                let host = format!("host{}", 1 + jobs.len() % 3);
                let mut cmd = rig.cmd("bsub");
                cmd.args(["-m", &host, "-o", "/dev/null", "true"]);
                let out = cmd.env("LSF_LOCAL_HOST", &host).env("LSB_NTRIES", "1").output().unwrap();
                let said = String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned();
                let job = crate::rig::job_id(&said);
                jobs.push(job.unwrap_or_else(|| panic!("on {host}: {said}")));
            }
            jobs
        });
        // New behind old; new first; new alone: each step reaches some daemons before others.
        for text in [format!("{old}{new}"), format!("{new}{old}"), new.clone()] {
            let next = rig.path("conf/next");
            private(&next, &text);
            std::fs::rename(&next, &file).unwrap();
            for (n, pid) in daemons(&rig).into_iter().enumerate() {
                kill(pid, 1);
                std::thread::sleep(std::time::Duration::from_millis(if n % 4 == 0 {
                    150
                } else {
                    5
                }));
            }
            // New connections use the keys as they are now.
            let sbatchd = rig.pid("sbatchd", "host2").unwrap();
            kill(sbatchd, 9);
            wait_for("another sbatchd", || {
                rig.pid("sbatchd", "host2").is_some_and(|p| p != sbatchd)
            });
            wait_for("host2", || host_is(&rig, "host2", "ok"));
        }
        done.store(true, Ordering::Relaxed);
        let jobs = load.join().unwrap();
        assert!(jobs.len() >= 10, "{}", jobs.len());
        for job in jobs {
            assert_eq!(rig.end_of(job), "DONE");
        }
    });
    // The old key opens nothing any more.
    let (envdir, key) = own_conf(&rig);
    private(&key, &old);
    let mut ask = rig.cmd("bqueues");
    ask.env("LSF_ENVDIR", &envdir).env("LSB_NTRIES", "1");
    assert!(ask.output().unwrap().status.success(), "authd has the new one");
    let launcher = rig.pid("launcher", "host3").unwrap();
    kill(launcher, 2);
    wait_for("host3 to stop", || !alive(launcher));
    let _authd = start(&rig, &envdir, "authd", "host3");
    let mut ask = rig.cmd("bqueues");
    ask.env("LSF_ENVDIR", &envdir).env("LSF_LOCAL_HOST", "host3").env("LSB_NTRIES", "1");
    wait_for("the old key to be refused", || {
        let said = String::from_utf8_lossy(&ask.output().unwrap().stderr).into_owned();
        said.contains("no cluster key in common")
    });
}

#[test]
fn client_host_runs_authd_alone() {
    let rig = Rig::up("client", 2);
    rig.ready();
    assert_eq!(rig.down().code, 0);
    let cluster = std::fs::read_dir(rig.path("conf")).unwrap().flatten();
    let cluster = cluster.map(|e| e.path()).find(|p| p.to_string_lossy().contains("lsf.cluster."));
    let cluster = cluster.unwrap();
    let text = std::fs::read_to_string(&cluster).unwrap();
    let row = |l: &str| match l.starts_with("host2 ") {
        true => "host2 ! ! 0 - ()\n".to_string(),
        false => format!("{l}\n"),
    };
    std::fs::write(&cluster, text.lines().map(row).collect::<String>()).unwrap();
    let conf = rig.read("conf/lsf.conf");
    let masters = |l: &str| match l.starts_with("LSF_MASTER_LIST=") {
        true => "LSF_MASTER_LIST=host1\n".to_string(),
        false => format!("{l}\n"),
    };
    rig.write("conf/lsf.conf", &conf.lines().map(masters).collect::<String>());
    // The host has no leftovers of its time with other daemons.
    std::fs::remove_dir_all(rig.path("run/host2")).unwrap();
    rig.start();
    rig.ready();
    wait_for("authd of host2", || rig.pid("authd", "host2").is_some());
    for daemon in ["lim", "sbatchd", "mbatchd"] {
        assert!(rig.pid(daemon, "host1").is_some() && rig.pid(daemon, "host2").is_none());
    }
    let mut cmd = rig.cmd("bsub");
    cmd.args(["-o", "/dev/null", "true"]).env("LSF_LOCAL_HOST", "host2");
    let out = cmd.output().unwrap();
    let said = String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned();
    let job = crate::rig::job_id(&said).unwrap_or_else(|| panic!("{said}"));
    assert_eq!(rig.end_of(job), "DONE");
    assert_eq!(rig.field(&job.to_string(), "from_host"), "host2");
}

#[test]
fn refused_callers_are_logged_with_the_rule() {
    let rig = Rig::up("rule", 1);
    rig.ready();
    let conf = rig.read("conf/lsf.conf");
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    rig.write("conf/lsf.conf", &format!("{conf}\nLSF_AUTH=ident\nLSF_IDENT_PORT={port}\n"));
    rig.kill9("mbatchd", "host1");
    let mut said = rig.run("bqueues", &[]);
    wait_for("mbatchd with ident", || {
        let mut cmd = rig.cmd("bqueues");
        let out = cmd.env("LSB_NTRIES", "1").output().unwrap();
        said.err = String::from_utf8_lossy(&out.stderr).into_owned();
        said.code = out.status.code().unwrap();
        said.err.contains("User permission denied")
    });
    assert_eq!(said.code, 255);
    let uid = format!("(uid {}) of host host1 from 127.", lsf::sys::euid());
    logged(&rig, "mbatchd.log.host1", &["connection of user", &uid, "ident: Connection refused"]);
    rig.write("conf/lsf.conf", &format!("{conf}\nLSF_USE_HOSTEQUIV=Y\nLSF_HOSTS_EQUIV=/nowhere\n"));
    rig.kill9("mbatchd", "host1");
    let why = "hosts.equiv does not allow it (LSF_USE_HOSTEQUIV)";
    wait_for("mbatchd with hosts.equiv", || {
        let _ = rig.run("bqueues", &[]);
        rig.read("log/mbatchd.log.host1").lines().any(|l| l.contains(&uid) && l.contains(why))
    });
    rig.write("conf/lsf.conf", &conf);
    rig.kill9("mbatchd", "host1");
    rig.ready();
}
