//! lsrun on a cluster of several users: whose a remote task is, and each way to prove who one is,
//! right and wrong, with hosts.equiv on top.

use super::rig::{Said, kill, program, wait_for};
use super::site::{ADMIN, MultiUserSite, uid};
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

const ID: &str = "lsrun -m host2 id -u";
/// A uid that only host1 knows, by a name that host2 knows as another's.
const STRANGER: u32 = 70_004;
/// This reply makes the ident server hang up instead of answering.
const HANG_UP: &str = "-";

fn up(name: &str, prepare: &dyn Fn(&MultiUserSite) -> String) -> MultiUserSite {
    let mut site = MultiUserSite::new(name, 2);
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
fn remote_task_obeys_its_user_alone() {
    if !MultiUserSite::possible("remote_task_obeys_its_user_alone") {
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
    let owners: Vec<u32> =
        site.processes().into_iter().filter(|p| p.0 == "res").map(|p| p.2).collect();
    assert!(!owners.is_empty() && owners.iter().all(|o| *o == uid(ADMIN)), "{owners:?}");
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
fn callers_are_admitted_by_the_cluster_key_alone() {
    if !MultiUserSite::possible("callers_are_admitted_by_the_cluster_key_alone") {
        return;
    }
    let site = up("builtin", &|_| String::new());
    wait_for("res to answer", || right(&site.run("ann", ID), "ann"));
    let again = |text: &str, name: &str| {
        std::fs::write(site.path("conf/lsf.key"), text).unwrap();
        let authd = site.processes().into_iter().filter(|p| p.0 == "authd");
        authd.for_each(|p| kill(p.1, 9));
        let mut said = site.run("ann", ID);
        wait_for(&format!("authd with {name}"), || {
            said = site.run("ann", ID);
            !said.err.contains("authd/sock")
        });
        said
    };
    // res keeps the cluster's key; authd has another of the same name, and signs with it: what
    // res makes of the signature is all that stands between
    let right_key = std::fs::read_to_string(site.path("conf/lsf.key")).unwrap();
    let id = right_key.split_whitespace().next().unwrap();
    let forged = lsf::auth::new_key().unwrap();
    let forged = forged.split_whitespace().nth(1).unwrap();
    denied(&again(&format!("{id} {forged}\n"), "a forged key"));
    // one of another name is not even offered
    let said = again(&lsf::auth::new_key().unwrap(), "another cluster's key");
    denied(&said);
    assert!(said.err.contains("no cluster key in common"), "{said:?}");
    assert!(right(&again(&right_key, "the right key"), "ann"));
}

/// A directory for LSF_SERVERDIR with this eauth.
fn eauth(site: &MultiUserSite, script: &str) -> String {
    let dir = site.path("srv");
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join("eauth");
    program(&path, &script.replace("DIR", site.dir.to_str().unwrap()));
    format!("LSF_SERVERDIR={}\n", dir.display())
}

#[test]
fn callers_are_admitted_by_the_eauth_of_the_site() {
    if !MultiUserSite::possible("callers_are_admitted_by_the_eauth_of_the_site") {
        return;
    }
    let script = "#!/bin/sh\n[ \"$1\" = -c ] && exec echo \"pass of $(id -un)\"\n\
                  while read -r uid gid user addr port len cred; do\n\
                  case $user in ann|lsfadm) ;; *) cred=none;; esac\n\
                  [ \"$cred\" = \"pass of $user\" ] && echo 1 || echo 0\ndone\n";
    let site = up("eauthrun", &|site| eauth(site, script));
    wait_for("res to answer", || right(&site.run("ann", ID), "ann"));
    denied(&site.run("bob", ID));
    // daemons that run still want it after it has gone
    std::fs::rename(site.path("srv/eauth"), site.path("srv/gone")).unwrap();
    let said = site.run("ann", ID);
    denied(&said);
    assert!(said.err.contains("put it back, or run lsf_daemons restart on that host"), "{said:?}");
}

/// A munged with a key of its own, at DIR/NAME/sock.
struct Munged(std::process::Child);

impl Munged {
    fn start(munged: &str, site: &MultiUserSite, name: &str) -> Munged {
        let dir = site.path(name);
        std::fs::create_dir(&dir).unwrap();
        let at = |name: &str| dir.join(name).to_string_lossy().into_owned();
        std::fs::write(at("key"), lsf::sys::random::<64>().unwrap()).unwrap();
        std::fs::set_permissions(at("key"), PermissionsExt::from_mode(0o600)).unwrap();
        let mut cmd = Command::new(munged);
        cmd.arg("-F").arg(format!("--key-file={}", at("key")));
        cmd.arg(format!("--socket={}", at("sock"))).arg(format!("--pid-file={}", at("pid")));
        cmd.arg(format!("--seed-file={}", at("seed"))).stdin(Stdio::null());
        let child = cmd.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        wait_for("munged", || std::path::Path::new(&at("sock")).exists());
        Munged(child)
    }
}

impl Drop for Munged {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Words before a command that give it a configuration of the caller's own, whose lsf.conf is the
/// site's with these lines: nothing that a user writes there may let him in.
fn own_conf(site: &MultiUserSite, name: &str, lines: &str) -> String {
    let to = site.path(name);
    let copy = Command::new("cp").arg("-a").arg(site.path("conf")).arg(&to).status().unwrap();
    assert!(copy.success());
    let conf = std::fs::read_to_string(to.join("lsf.conf")).unwrap();
    std::fs::write(to.join("lsf.conf"), format!("{conf}{lines}\n")).unwrap();
    format!("LSF_ENVDIR={} ", to.display())
}

/// A configuration like [`own_conf`], with an eauth of the caller's own.
fn own_eauth(site: &MultiUserSite, name: &str, script: &str) -> String {
    let dir = site.path(&format!("{name}.srv"));
    std::fs::create_dir(&dir).unwrap();
    program(&dir.join("eauth"), script);
    own_conf(site, name, &format!("LSF_SERVERDIR={}", dir.display()))
}

#[test]
fn callers_are_admitted_by_munge() {
    let munged = ["/usr/sbin/munged", "/sbin/munged"].into_iter();
    let Some(munged) = munged.into_iter().find(|p| std::path::Path::new(p).exists()) else {
        return super::rig::skipped("callers_are_admitted_by_munge: needs munge");
    };
    if !MultiUserSite::possible("callers_are_admitted_by_munge") {
        return;
    }
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/conf-examples/eauth/munge");
    let example = std::fs::read_to_string(example).unwrap();
    let with = |socket: &str| example.replace("SOCKET=/run/munge/munge.socket.2", socket);
    let daemons = Mutex::new(Vec::new());
    let site = up("mungerun", &|site| {
        let both = ["munge", "other"].map(|name| Munged::start(munged, site, name));
        daemons.lock().unwrap().extend(both);
        eauth(site, &with("SOCKET=DIR/munge/sock"))
    });
    wait_for("munge to let ann in", || right(&site.run("ann", ID), "ann"));
    assert!(right(&site.run("bob", ID), "bob"));
    // what munge made for another user, for another host, and what a munge of another key made
    let cred = |user: &str, to: &str| {
        // in ann's group
        let (id, group) = (format!("--reuid={}", uid(user)), format!("--regid={}", uid("ann")));
        let sock = site.path("munge/sock");
        let line =
            format!("setpriv {id} {group} --clear-groups munge -S {} -s {to}", sock.display());
        site.ok("root", &line).trim().to_owned()
    };
    let dir = site.dir.to_str().unwrap();
    let lim = format!("[ \"$LSF_EAUTH_SERVER\" = res@personal ] || exec {dir}/srv/eauth \"$@\"\n");
    let hers = format!("echo {}", cred("ann", "host2"));
    for (name, script, fine) in [
        ("hers", hers.clone(), true),
        ("again", hers, false),
        ("stolen", format!("echo {}", cred("bob", "host2")), false),
        ("elsewhere", format!("echo {}", cred("ann", "host1")), false),
        ("made-up", "echo MUNGE:AwQFAAC:".to_owned(), false),
    ] {
        let own = own_eauth(&site, name, &format!("#!/bin/sh\n{lim}{script}\n"));
        let said = site.run("ann", &format!("{own}{ID}"));
        if fine {
            assert!(right(&said, "ann"), "{name}: {said:?}");
        } else {
            denied(&said);
        }
    }
    let own = own_eauth(&site, "foreign", &with(&format!("SOCKET={dir}/other/sock")));
    denied(&site.run("ann", &format!("{own}{ID}")));
    // without munge nobody
    drop(daemons.into_inner().unwrap());
    denied(&site.run("ann", ID));
}

/// Answers that every connection is this user's, on all of the hosts' addresses.
fn identd(site: &MultiUserSite, port: u16, says: Arc<Mutex<String>>) {
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
                if user == HANG_UP {
                    continue;
                }
                let _ = write!(&sock, "{} : USERID : UNIX : {user}\r\n", line.trim());
            }
        });
    }
}

#[test]
fn callers_are_admitted_by_their_ident_server() {
    if !MultiUserSite::possible("callers_are_admitted_by_their_ident_server") {
        return;
    }
    let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let says = Arc::new(Mutex::new(ADMIN.to_owned()));
    let site = up("identrun", &|site| {
        identd(site, port, says.clone());
        // at host1 somebody else is called bob; at both, bobby is another name of bob's
        let passwd = std::fs::read_to_string(site.path("etc/passwd")).unwrap();
        let bob = uid("bob");
        let passwd = format!("{passwd}bobby:x:{bob}:{bob}::/:/bin/sh\n");
        site.write("etc/passwd", &passwd);
        let own = site.etc_of("host1").join("passwd");
        let other = passwd.replace(&format!("bob:x:{bob}:"), &format!("bob:x:{STRANGER}:"));
        std::fs::write(own, other.replace("bobby:", "rob:")).unwrap();
        format!("LSF_AUTH=ident\nLSF_IDENT_PORT={port}\n")
    });
    let say = |user: &str| *says.lock().unwrap() = user.into();
    say("ann");
    wait_for("res to answer", || right(&site.run("ann", ID), "ann"));
    // another's name
    say("lsfadm");
    denied(&site.run("ann", ID));
    // a name that nobody has, no name, an answer that is none
    for word in ["nobodyatall", "", "ann bob", HANG_UP] {
        say(word);
        denied(&site.run("ann", ID));
    }
    // his uid by another name, as host2 knows it
    say("bobby");
    denied(&site.run("bob", ID));
    // the right name, and a uid that it has not got at host2
    say("bob");
    let (id, group) = (format!("--reuid={STRANGER}"), format!("--regid={STRANGER}"));
    let line = format!("exec setpriv {id} {group} --clear-groups {ID}");
    denied(&site.run("root", &line));
    say("ann");
    assert!(right(&site.run("ann", ID), "ann"));
}

/// Carries every connection to `to`, from `from` and a port of this kind.
fn relay(at: SocketAddr, to: SocketAddr, from: IpAddr, privileged: bool) -> u16 {
    let listener = TcpListener::bind(at).unwrap();
    let port = listener.local_addr().unwrap().port();
    let call = move || {
        let ports = if privileged { 512..=1023 } else { 0..=0 };
        let own = ports.rev().find_map(|port| {
            let fd = lsf::net::sock::tcp_from(None, to, false).unwrap();
            rustix::net::bind(&fd, &SocketAddr::new(from, port)).ok().map(|()| fd)
        });
        let own = own.unwrap();
        rustix::net::connect(&own, &to).unwrap();
        TcpStream::from(own)
    };
    std::thread::spawn(move || {
        for near in listener.incoming().flatten() {
            let far = call();
            for (mut from, mut to) in
                [(near.try_clone().unwrap(), far.try_clone().unwrap()), (far, near)]
            {
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(std::net::Shutdown::Write);
                });
            }
        }
    });
    port
}

#[test]
fn callers_are_admitted_by_their_privileged_port() {
    if !MultiUserSite::possible("callers_are_admitted_by_their_privileged_port") {
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
    // The helper says it all as it should, but what reaches res comes from another port: who has
    // only such a port could have said anything.
    let hosts = std::fs::read_to_string(site.path("conf/hosts")).unwrap();
    let addr = |host: &str| -> IpAddr {
        let line = hosts.lines().find(|l| l.split_whitespace().any(|w| w == host)).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    };
    let conf = std::fs::read_to_string(site.path("conf/lsf.conf")).unwrap();
    let port = conf.lines().find_map(|l| l.strip_prefix("LSF_RES_PORT=")).unwrap();
    let (here, there) = (addr("host1"), addr("host2"));
    let res = SocketAddr::new(there, port.trim().parse().unwrap());
    for privileged in [true, false] {
        let port = relay(SocketAddr::new(there, 0), res, here, privileged);
        let name = format!("relay{privileged}");
        let own = own_conf(&site, &name, &format!("LSF_RES_PORT={port}"));
        let said = site.run("ann", &format!("{own}{ID}"));
        if privileged {
            assert!(right(&said, "ann"), "{said:?}");
        } else {
            denied(&said);
        }
    }
    // nor does a host outside the cluster have such ports that count
    let port = relay(SocketAddr::new(there, 0), res, "127.0.0.1".parse().unwrap(), true);
    let own = own_conf(&site, "outside", &format!("LSF_RES_PORT={port}"));
    let said = site.run("ann", &format!("{own}{ID}"));
    assert!(said.code == 246 && said.out.is_empty(), "{said:?}");
    // without its bit the helper has no such port to begin with
    let helper = site.path("port/lsf-port");
    std::fs::set_permissions(helper, PermissionsExt::from_mode(0o755)).unwrap();
    let said = site.run("ann", ID);
    assert!(said.code == 246 && said.out.is_empty(), "{said:?}");
}

#[test]
fn callers_of_res_are_admitted_by_hosts_equiv() {
    if !MultiUserSite::possible("callers_of_res_are_admitted_by_hosts_equiv") {
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

#[test]
fn next_method_is_used_when_the_first_is_missing() {
    if !MultiUserSite::possible("next_method_is_used_when_the_first_is_missing") {
        return;
    }
    // nobody answers on the port of ident servers, and its users have the helper
    let unused = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let with = |site: &MultiUserSite, ways: &str, port: u16| {
        let dir = site.path("port");
        std::fs::create_dir_all(&dir).unwrap();
        let mut made = Command::new(site.path("bin/lsf"));
        made.args(["--install", "--setuid"]).arg(&dir);
        assert!(made.output().unwrap().status.success());
        format!("LSF_AUTH={ways}\nLSF_SETUIDDIR={}\nLSF_IDENT_PORT={port}\n", dir.display())
    };
    let site = up("identless", &|site| with(site, "\"ident setuid\"", unused));
    wait_for("res to answer", || right(&site.run("ann", ID), "ann"));
    assert!(right(&site.run("bob", ID), "bob"));
    // with neither there is no way left
    let helper = site.path("port/lsf-port");
    std::fs::set_permissions(&helper, PermissionsExt::from_mode(0o755)).unwrap();
    let said = site.run("ann", ID);
    assert!(said.code != 0 && said.out.is_empty(), "{said:?}");
    drop(site);
    // the other way round
    let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let says = Arc::new(Mutex::new("ann".to_owned()));
    let site = up("helperless", &|site| {
        identd(site, port, says.clone());
        with(site, "\"setuid ident\"", port)
    });
    std::fs::remove_file(site.path("port/lsf-port")).unwrap();
    wait_for("res to answer", || right(&site.run("ann", ID), "ann"));
    denied(&site.run("bob", ID));
}
