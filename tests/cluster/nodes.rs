//! Hosts as they are apart from each other, for tests that root alone can run: each has its own
//! name, address, processes, /etc and /run, in namespaces of the test's own, and `rsh HOST LINE`
//! runs a line of root's on another. The hosts share the disk below the test's directory.

use super::rig::{Said, program, skipped, wait_for};
use super::site::{PROJ, USERS};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

pub struct Nodes {
    pub dir: PathBuf,
    hosts: Vec<(String, Child, u32)>,
}

static COUNT: AtomicU32 = AtomicU32::new(0);

/// The first process of a node: does what `rsh` asks for, one line after the other.
const RSHD: &str = r#"
cd "$1" || exit 1
while :; do
    for req in *.req; do
        [ -e "$req" ] || continue
        n=${req%.req}
        mv "$req" "$n.run"
        env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/ sh "$n.run" \
            < "$n.in" > "$n.out" 2> "$n.err"
        echo $? > "$n.new" && mv "$n.new" "$n.code"
    done
    sleep 0.02
done
"#;

/// Hands a line to another node, and gives what it said.
const RSH: &str = r#"#!/bin/sh
while [ "$1" = -o ]; do shift 2; done
host=$1; shift
[ -d DIR/rsh/$host ] || { echo "$host: no such host" >&2; exit 1; }
at=DIR/rsh/$host/$$.$(date +%N)
if [ -p /dev/stdin ] || [ -f /dev/stdin ]; then cat > "$at.in"; else : > "$at.in"; fi
echo "$*" > "$at.tmp"; mv "$at.tmp" "$at.req"
while [ ! -e "$at.code" ]; do sleep 0.02; done
cat "$at.out"; cat "$at.err" >&2
exit "$(cat "$at.code")"
"#;

#[allow(dead_code)]
impl Nodes {
    /// Whether nodes can be had here; counts the test as skipped where not.
    pub fn possible(name: &str) -> bool {
        let all = ["-m", "-u", "-n", "-p", "-f", "--mount-proc"];
        let line = "ip link add br0 type bridge && hostname node && mount -t tmpfs none /run";
        let own = Command::new("unshare").args(all).args(["sh", "-c", line]).output();
        let can = lsf::sys::euid() == 0 && own.is_ok_and(|o| o.status.success());
        if !can {
            skipped(&format!("{name}: needs root, namespaces of its own and ip"));
        }
        can
    }

    /// Nodes of these names, at 10.99.0.1 and on.
    pub fn new(name: &str, hosts: &[&str]) -> Nodes {
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("lsf-{name}-{}-{n}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(dir.join("home")).unwrap();
        for (name, id) in USERS.into_iter().filter(|u| u.1 != 0) {
            let home = dir.join("home").join(name);
            std::fs::create_dir(&home).unwrap();
            std::os::unix::fs::chown(&home, Some(id), Some(id)).unwrap();
        }
        let mut nodes = Nodes { dir, hosts: Vec::new() };
        let rsh = RSH.replace("DIR", nodes.dir.to_str().unwrap());
        for tool in ["bin/rsh", "bin/ssh"] {
            program(&nodes.path(tool), &rsh);
        }
        for (host, number) in hosts.iter().zip(1..) {
            nodes.boot(host, number, hosts);
        }
        nodes
    }

    fn boot(&mut self, host: &str, number: usize, all: &[&str]) {
        let etc = self.path(&format!("etc.{host}"));
        let copied = Command::new("cp").arg("-a").args([Path::new("/etc"), &etc]).status();
        assert!(copied.unwrap().success());
        self.accounts(&etc);
        let mut table = "127.0.0.1 localhost\n".to_owned();
        for (name, n) in all.iter().zip(1..) {
            table.push_str(&format!("10.99.0.{n} {name}\n"));
        }
        std::fs::write(etc.join("hosts"), table).unwrap();
        let rshd = self.path(&format!("rsh/{host}"));
        std::fs::create_dir_all(&rshd).unwrap();
        let script = format!(
            "mount --bind {etc} /etc && mount -t tmpfs none /run && hostname {host} && ip link set \
             lo up && exec sh -c '{RSHD}' rshd {}",
            rshd.display(),
            etc = etc.display()
        );
        let mut c = Command::new("unshare");
        c.args(["-m", "-u", "-n", "-p", "-f", "--mount-proc", "--kill-child", "sh", "-c", &script]);
        let child = c.current_dir("/").stdin(Stdio::null()).spawn().unwrap();
        let mut first = None;
        wait_for("the node's first process", || {
            first = lsf::sys::procs::children(child.id()).first().map(|p| p.pid);
            first.is_some()
        });
        let pid = first.unwrap();
        self.hosts.push((host.to_owned(), child, pid));
        wait_for("the node to be up", || self.run("root", host, "hostname").out.trim() == host);
        // the first node has the bridge; an end of each pair lies in it
        let hub = self.hosts[0].2;
        let mut net = String::new();
        if number == 1 {
            net.push_str("ip link add br0 type bridge; ip addr add 10.99.0.1/24 dev br0; ");
            net.push_str("ip link set br0 up; ");
        } else {
            net.push_str(&format!("ip link add v{number} type veth peer name eth0 netns {pid}; "));
            net.push_str(&format!("ip link set v{number} master br0 up; "));
        }
        // in the test's own /proc, where the other node's pid means something
        let hub = hub.to_string();
        let made = Command::new("nsenter").args(["-t", &hub, "-n", "sh", "-ec", &net]).output();
        let said = Said::from(made.unwrap());
        assert_eq!(said.code, 0, "{}", said.err);
        if number > 1 {
            let line = format!("ip addr add 10.99.0.{number}/24 dev eth0 && ip link set eth0 up");
            let said = self.run("root", host, &line);
            assert_eq!(said.code, 0, "{}", said.err);
        }
    }

    fn accounts(&self, etc: &Path) {
        let mut passwd = std::fs::read_to_string("/etc/passwd").unwrap();
        let mut group = std::fs::read_to_string("/etc/group").unwrap();
        for (name, id) in USERS.into_iter().filter(|u| u.1 != 0) {
            let home = self.dir.join("home").join(name);
            passwd.push_str(&format!("{name}:x:{id}:{id}::{}:/bin/sh\n", home.display()));
            group.push_str(&format!("{name}:x:{id}:\n"));
        }
        group.push_str(&format!("proj:x:{PROJ}:ann,bob\n"));
        std::fs::write(etc.join("passwd"), passwd).unwrap();
        std::fs::write(etc.join("group"), group).unwrap();
        for old in ["lsf.conf", "lsf.key", "lsf.sudoers"] {
            let _ = std::fs::remove_file(etc.join(old));
        }
    }

    pub fn path(&self, rel: &str) -> PathBuf {
        self.dir.join(rel)
    }

    pub fn write(&self, rel: &str, text: &str) {
        std::fs::create_dir_all(self.path(rel).parent().unwrap()).unwrap();
        std::fs::write(self.path(rel), text).unwrap();
    }

    /// A line of a user on a host; `top`/bin of the test's directory is in PATH.
    pub fn shell(&self, user: &str, host: &str, line: &str) -> Command {
        let pid = self.hosts.iter().find(|h| h.0 == host).unwrap().2.to_string();
        let id = super::site::uid(user).to_string();
        let (to, group) = (format!("--reuid={id}"), format!("--regid={id}"));
        let mut c = Command::new("nsenter");
        c.args(["-t", &pid, "-m", "-u", "-n", "-p"]);
        // entering a mount namespace leads to its root
        let line = format!("cd \"$HOME\" && {{ {line}\n}}");
        c.args(["setpriv", &to, &group, "--init-groups", "sh", "-c", &line]);
        c.env_clear().env("TZ", "UTC").env("USER", user).env("LOGNAME", user);
        let bins = [self.path("top/bin"), self.path("bin")].map(|p| p.display().to_string());
        c.env("PATH", format!("{}:/usr/bin:/bin:/usr/sbin:/sbin", bins.join(":")));
        let home = self.path(&format!("home/{user}"));
        let home = if home.is_dir() { home } else { self.dir.clone() };
        c.env("HOME", &home).current_dir(home).stdin(Stdio::null());
        c
    }

    pub fn run(&self, user: &str, host: &str, line: &str) -> Said {
        Said::from(self.shell(user, host, line).output().unwrap())
    }

    /// A line that must succeed; its stdout.
    pub fn ok(&self, user: &str, host: &str, line: &str) -> String {
        let s = self.run(user, host, line);
        assert_eq!(s.code, 0, "{user}@{host}: {line}: {}{}", s.out, s.err);
        s.out
    }

    /// Waits until a job has ended; its state.
    pub fn end_of(&self, host: &str, job: u32) -> String {
        let mut last = String::new();
        wait_for(&format!("the end of job {job}"), || {
            let s = self.run("lsfadm", host, &format!("bjobs -a -noheader -o stat {job}"));
            last = s.out.trim().to_owned();
            last == "DONE" || last == "EXIT"
        });
        last
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for (_, child, pid) in &mut self.hosts {
            // with its first process a node ends whole
            super::rig::kill(*pid, 9);
            let _ = child.wait();
        }
        if std::thread::panicking() {
            eprintln!("kept for inspection: {}", self.dir.display());
        } else {
            let _ = std::fs::remove_dir_all(&self.dir);
        }
    }
}
