//! lsrun on a cluster of several users: whose a remote task is, and each way to prove who one is,
//! right and wrong, with hosts.equiv on top.

use super::rig::{Said, kill, wait_for};
use super::site::{ADMIN, Site, uid};
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, TcpListener};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

const ID: &str = "lsrun -m host2 id -u";

fn up(name: &str, prepare: &dyn Fn(&Site) -> String) -> Site {
    let mut site = Site::new(name, 2);
    let lines = prepare(&site);
    site.lsf_conf(&lines);
    site.start();
    wait_for("res of host2", || site.processes().iter().filter(|p| p.0 == "res").count() == 2);
    site
}

fn right(said: &Said, user: &str) -> bool {
    said.code == 0 && said.out == format!("{}\n", uid(user))
}

fn denied(said: &Said) {
    assert!(said.code == 246 && said.out.is_empty(), "{said:?}");
    assert!(said.err.contains("User permission denied"), "{said:?}");
}

#[test]
fn a_remote_task_is_its_user_s_and_nobody_else_s() {
    if !Site::possible("a_remote_task_is_its_user_s_and_nobody_else_s") {
        return;
    }
    let site = up("whose", &|_| String::new());
    wait_for("res to answer", || site.run("ann", ID).code == 0);
    for user in ["ann", "bob"] {
        assert!(right(&site.run(user, ID), user));
        let line = "umask 027; lsrun -m host2 sh -c 'id -g; touch made; pwd'";
        let home = site.path(&format!("home/{user}"));
        assert_eq!(site.ok(user, line), format!("{}\n{}\n", uid(user), home.display()));
        let meta = std::fs::metadata(home.join("made")).unwrap();
        assert_eq!((meta.uid(), meta.mode() & 0o777), (uid(user), 0o640));
        let tty = "lsrun -P -m host2 sh -c 'stat -c %u $(tty)'";
        assert_eq!(site.ok(user, tty).trim(), uid(user).to_string(), "its terminal");
    }
    // root's are not run, and res itself is not root
    let said = site.run("root", ID);
    assert!(said.code == 246 && said.err.contains("Root user"), "{said:?}");
    for (name, pid, owner) in site.processes() {
        assert!(name != "res" || owner == uid(ADMIN), "res {pid} runs as {owner}");
    }
    // what the other starts is out of reach
    let mut child = site.shell("ann", "exec lsrun -m host2 sleep 923").spawn().unwrap();
    let task = || site.processes().into_iter().find(|p| p.0 == "sleep" && p.2 == uid("ann"));
    wait_for("the task", || task().is_some());
    let pid = task().unwrap().1;
    for line in [format!("kill {pid}"), format!("cat /proc/{pid}/environ")] {
        assert_ne!(site.run("bob", &line).code, 0, "{line}");
    }
    // the socket over which starters come takes nobody at his word
    let path = site.path("run").join("host2/authd/res");
    let found = site.run("bob", &format!("test -S {}", path.display())).code == 0;
    if found && let Ok(mut sock) = std::os::unix::net::UnixStream::connect(&path) {
        sock.write_all(&[7; 32]).unwrap();
    }
    assert!(right(&site.run("bob", ID), "bob") && task().is_some());
    kill(child.id(), 15);
    child.wait().unwrap();
    // the log of tasks is the administrator's to turn on
    denied_admin(&site.run("bob", "lsadmin reslogon host2"));
    assert_eq!(site.run(ADMIN, "lsadmin reslogon host2").code, 0);
}

fn denied_admin(said: &Said) {
    assert!(said.code == 255 && said.err.contains("User permission denied"), "{said:?}");
}

#[test]
fn the_built_in_credential_lets_in_by_the_cluster_s_key_alone() {
    if !Site::possible("the_built_in_credential_lets_in_by_the_cluster_s_key_alone") {
        return;
    }
    let site = up("builtin", &|_| String::new());
    wait_for("res to answer", || right(&site.run("ann", ID), "ann"));
    // authd starts again with another key; res of host2 keeps the cluster's
    let authd = |site: &Site| site.processes().into_iter().filter(|p| p.0 == "authd");
    std::fs::write(site.path("conf/lsf.key"), lsf::auth::new_key().unwrap()).unwrap();
    authd(&site).for_each(|p| kill(p.1, 9));
    let mut said = site.run("ann", ID);
    wait_for("authd to answer again", || {
        said = site.run("ann", ID);
        !said.err.contains("authd/sock")
    });
    denied(&said);
}

/// A directory for LSF_SERVERDIR with this eauth.
fn eauth(site: &Site, script: &str) -> String {
    let dir = site.path("srv");
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join("eauth");
    std::fs::write(&path, script.replace("DIR", site.dir.to_str().unwrap())).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    format!("LSF_SERVERDIR={}\n", dir.display())
}

#[test]
fn a_site_s_own_eauth_decides() {
    if !Site::possible("a_site_s_own_eauth_decides") {
        return;
    }
    let script = "#!/bin/sh\n[ \"$1\" = -c ] && exec echo \"pass of $(id -un)\"\n\
                  while read -r uid gid user addr port len cred; do\n\
                  case $user in ann|lsfadm) ;; *) cred=none;; esac\n\
                  [ \"$cred\" = \"pass of $user\" ] && echo 1 || echo 0\ndone\n";
    let site = up("eauthrun", &|site| eauth(site, script));
    wait_for("res to answer", || right(&site.run("ann", ID), "ann"));
    denied(&site.run("bob", ID));
}

#[test]
fn munge_decides() {
    let munged = ["/usr/sbin/munged", "/sbin/munged"].into_iter();
    let Some(munged) = munged.into_iter().find(|p| std::path::Path::new(p).exists()) else {
        return super::rig::skipped("munge_decides: needs munge");
    };
    if !Site::possible("munge_decides") {
        return;
    }
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/conf-examples/eauth/munge");
    let script = std::fs::read_to_string(example).unwrap();
    let script = script.replace("SOCKET=/run/munge/munge.socket.2", "SOCKET=DIR/munge/sock");
    let daemon = Mutex::new(None);
    let site = up("mungerun", &|site| {
        let dir = site.path("munge");
        std::fs::create_dir(&dir).unwrap();
        let at = |name: &str| dir.join(name).to_string_lossy().into_owned();
        std::fs::write(at("key"), lsf::sys::random::<64>().unwrap()).unwrap();
        std::fs::set_permissions(at("key"), PermissionsExt::from_mode(0o600)).unwrap();
        let mut cmd = Command::new(munged);
        cmd.arg("-F").arg(format!("--key-file={}", at("key")));
        cmd.arg(format!("--socket={}", at("sock"))).arg(format!("--pid-file={}", at("pid")));
        cmd.arg(format!("--seed-file={}", at("seed"))).stdin(Stdio::null());
        let child = cmd.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        *daemon.lock().unwrap() = Some(child);
        eauth(site, &script)
    });
    let mut munged = daemon.into_inner().unwrap().unwrap();
    wait_for("munge to let ann in", || right(&site.run("ann", ID), "ann"));
    assert!(right(&site.run("bob", ID), "bob"));
    munged.kill().unwrap();
    munged.wait().unwrap();
    denied(&site.run("ann", ID));
}

/// Answers that every connection is this user's, on all of the hosts' addresses.
fn identd(site: &Site, port: u16, says: Arc<Mutex<String>>) {
    let text = std::fs::read_to_string(site.path("conf/hosts")).unwrap();
    let addrs = text.lines().filter_map(|l| l.split_whitespace().next()?.parse::<IpAddr>().ok());
    for addr in addrs {
        let listener = TcpListener::bind((addr, port)).unwrap();
        let says = says.clone();
        std::thread::spawn(move || {
            for sock in listener.incoming().flatten() {
                let mut line = String::new();
                let _ = BufReader::new(&sock).read_line(&mut line);
                let user = says.lock().unwrap().clone();
                let _ = write!(&sock, "{} : USERID : UNIX : {user}\r\n", line.trim());
            }
        });
    }
}

#[test]
fn the_client_s_ident_server_decides() {
    if !Site::possible("the_client_s_ident_server_decides") {
        return;
    }
    let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let says = Arc::new(Mutex::new(ADMIN.to_owned()));
    let site = up("identrun", &|site| {
        identd(site, port, says.clone());
        format!("LSF_AUTH=ident\nLSF_IDENT_PORT={port}\n")
    });
    *says.lock().unwrap() = "ann".into();
    wait_for("res to answer", || right(&site.run("ann", ID), "ann"));
    denied(&site.run("bob", ID));
    *says.lock().unwrap() = "bob".into();
    assert!(right(&site.run("bob", ID), "bob"));
    denied(&site.run("ann", ID));
}

#[test]
fn a_privileged_port_decides() {
    if !Site::possible("a_privileged_port_decides") {
        return;
    }
    let site = up("portrun", &|site| {
        let dir = site.path("port");
        std::fs::create_dir(&dir).unwrap();
        let mut made = Command::new(site.path("bin/lsf"));
        made.args(["--install", "--setuid"]).arg(&dir);
        assert!(made.output().unwrap().status.success());
        format!("LSF_AUTH=setuid\nLSF_SETUIDDIR={}\n", dir.display())
    });
    wait_for("res to answer", || right(&site.run("ann", ID), "ann"));
    assert!(right(&site.run("bob", ID), "bob"));
    // without its bit the helper has an ordinary port, or none
    let helper = site.path("port/lsf-port");
    std::fs::set_permissions(helper, PermissionsExt::from_mode(0o755)).unwrap();
    let said = site.run("ann", ID);
    assert!(said.code == 246 && said.out.is_empty(), "{said:?}");
}

#[test]
fn hosts_equiv_decides_at_res() {
    if !Site::possible("hosts_equiv_decides_at_res") {
        return;
    }
    let site = up("equivrun", &|site| {
        site.write("hosts.equiv", "host1 ann\nhost1 lsfadm\nhost2 bob\n");
        format!("LSF_USE_HOSTEQUIV=Y\nLSF_HOSTS_EQUIV={}\n", site.path("hosts.equiv").display())
    });
    wait_for("res to answer", || right(&site.run("ann", ID), "ann"));
    // commands of these lines run on host1
    denied(&site.run("bob", ID));
    denied(&site.run("root", ID));
}
