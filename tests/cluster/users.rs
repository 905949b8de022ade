//! A cluster of several users: who runs as whom, what belongs to whom, who may do what to whom.

use super::rig::wait_for;
use super::site::{ADMIN, MultiUserSite, PROJ, uid};
use std::os::unix::fs::{MetadataExt, PermissionsExt};

/// State of each socket of these tables of /proc/net, by inode.
fn states(tables: &[&str]) -> std::collections::BTreeMap<String, String> {
    let text = |table: &&str| std::fs::read_to_string(format!("/proc/net/{table}"));
    let rows = tables.iter().filter_map(|t| text(t).ok()).collect::<String>();
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        Some((words.get(9)?.to_string(), words.get(3)?.to_string()))
    };
    rows.lines().filter_map(row).collect()
}

/// Asserts that no network input reaches the process: its sockets are of the Unix kind, or ports
/// kept for daemons, on which it neither connects nor accepts; one of them, lim's, is for
/// datagrams.
fn hears_no_network(pid: u32) {
    /// LISTEN in /proc/net/tcp.
    const LISTENS: &str = "0A";
    let unix = std::fs::read_to_string("/proc/net/unix").unwrap();
    let inodes: Vec<&str> = unix.lines().filter_map(|l| l.split_whitespace().nth(6)).collect();
    let (tcp, udp) = (states(&["tcp", "tcp6"]), states(&["udp", "udp6"]));
    let (mut sockets, mut datagrams) = (0, 0);
    for fd in std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten() {
        let Ok(to) = std::fs::read_link(fd.path()) else { continue };
        let to = to.to_string_lossy().into_owned();
        if let Some(inode) = to.strip_prefix("socket:[").and_then(|t| t.strip_suffix("]")) {
            let kept = tcp.get(inode).is_none_or(|state| state == LISTENS);
            datagrams += u32::from(udp.contains_key(inode));
            assert!(kept && datagrams <= 1, "launcher {pid} has {to}");
            sockets += usize::from(inodes.contains(&inode));
        }
    }
    assert!(sockets > 0, "launcher {pid} has no socket of the Unix kind");
}

#[test]
fn jobs_can_be_controlled_by_their_owner_and_administrators_alone() {
    if !MultiUserSite::possible("jobs_can_be_controlled_by_their_owner_and_administrators_alone") {
        return;
    }
    let site = MultiUserSite::up("users", 3);
    // who runs as whom
    for (name, pid, owner) in site.processes() {
        match name.as_str() {
            "launcher" => {
                assert_eq!(owner, 0, "launcher {pid}");
                hears_no_network(pid);
            }
            "authd" | "lim" | "sbatchd" | "mbatchd" => {
                assert_eq!(owner, uid(ADMIN), "{name} {pid}");
            }
            _ => {}
        }
    }
    // a job has its user's ids, groups, umask and files
    for (user, host) in [("ann", "host2"), ("bob", "host3")] {
        let what = "'id -u; id -g; id -G; umask; ulimit -c; pwd; echo mine > made'";
        let line = format!("umask 027; bsub -C 0 -m {host} -o out.%J {what}");
        let out = site.ok(user, &line);
        let job = super::rig::job_id(&out).unwrap();
        assert_eq!(site.end_of(job), "DONE");
        let home = site.path(&format!("home/{user}"));
        let text = std::fs::read_to_string(home.join(format!("out.{job}"))).unwrap();
        let id = uid(user).to_string();
        let lines: Vec<&str> = text.lines().collect();
        let at = lines.iter().position(|l| *l == id).unwrap_or_else(|| panic!("{text}"));
        assert_eq!(lines[at + 1], id);
        assert_eq!(lines[at + 2], format!("{id} {PROJ}"));
        assert_eq!(&lines[at + 3..at + 6], ["0027", "0", home.to_str().unwrap()]);
        for file in [format!("out.{job}"), "made".into()] {
            let meta = std::fs::metadata(home.join(&file)).unwrap();
            assert_eq!((meta.uid(), meta.mode() & 0o777), (uid(user), 0o640), "{file}");
        }
    }
    // neither touches the other's
    let job = site.bsub("ann", "-o /dev/null sleep 1000");
    wait_for("the job to run", || site.stat(job) == "RUN");
    for line in ["bkill", "bstop", "bkill -r", "bkill -s USR1", "bresume", "bmig"] {
        let s = site.run("bob", &format!("{line} {job}"));
        let denied = s.err.contains("User permission denied");
        assert!(s.code == 255 && denied, "{line}: {}{}", s.out, s.err);
    }
    assert_eq!(site.stat(job), "RUN");
    // brun is for administrators
    let s = site.run("ann", &format!("brun -m host1 {job}"));
    let denied = "Failed to run the job: User permission denied\n";
    assert_eq!((s.code, s.err.as_str()), (255, denied));
    let s = site.run("root", &format!("bkill {job}"));
    assert!(s.code == 255 && s.err.contains("User permission denied"), "{}{}", s.out, s.err);
    let s = site.run("root", "bsub sleep 1");
    assert!(s.code == 255 && s.err.contains("Root job submission is disabled"), "{}", s.err);
    for line in ["badmin qclose normal", "badmin hclose host2", "badmin reconfig"] {
        let s = site.run("bob", line);
        assert!(s.code != 0 && s.err.contains("denied"), "{line}: {}{}", s.out, s.err);
    }
    site.ok(ADMIN, &format!("bkill {job}"));
    assert_eq!(site.end_of(job), "EXIT");
}

#[test]
fn scripts_environments_and_spools_are_private() {
    if !MultiUserSite::possible("scripts_environments_and_spools_are_private") {
        return;
    }
    let site = MultiUserSite::up("private", 1);
    let (token, said, text) = ("SeCrEt-5417", "SaId-8832", "TeXt-1190");
    // the output is made by the job, so that its text is not in the command
    site.write(
        "home/script",
        &format!("#!/bin/sh\n: {text}\necho SaId-$((8800 + 32))\nsleep 1000\n"),
    );
    let script = site.path("home/script");
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o600)).unwrap();
    std::os::unix::fs::chown(&script, Some(uid("ann")), None).unwrap();
    let out = site.ok("ann", &format!("TOKEN={token} bsub < {}", script.display()));
    let job = super::rig::job_id(&out).unwrap();
    let found = |user: &str, what: &str| {
        let look = format!(
            "grep -la {what} /proc/[0-9]*/environ 2>/dev/null; grep -rlsa {what} {} \
             /tmp/.lsbtmp{}; true",
            site.dir.display(),
            uid("ann"),
        );
        site.ok(user, &look)
    };
    wait_for("the job to write", || found("ann", said).contains(".lsbatch"));
    assert_eq!(found("bob", said), "", "the output");
    assert_eq!(found("bob", token), "", "the environment");
    // of a script the log tells what bjobs shows to everybody, as LSF's does
    let log = site.path("work/personal/logdir/lsb.events");
    assert_eq!(found("bob", text).trim(), log.to_str().unwrap(), "the script");
    assert!(found("ann", token).contains("/proc/"), "the owner finds it");
    site.ok("ann", &format!("bkill {job}"));
    assert_eq!(site.end_of(job), "EXIT");
}

/// The words of a launcher that must refuse to start.
fn refusal(site: &MultiUserSite) -> String {
    let out = site.launcher("host1").output().unwrap();
    assert!(!out.status.success());
    String::from_utf8_lossy(&out.stderr).into_owned()
}

#[test]
fn launcher_refuses_files_that_root_did_not_write() {
    if !MultiUserSite::possible("launcher_refuses_files_that_root_did_not_write") {
        return;
    }
    let site = MultiUserSite::new("guard", 1);
    let cluster = std::fs::read_to_string(site.path("conf/lsf.cluster.personal")).unwrap();
    let admin = |name: &str| {
        site.write("conf/lsf.cluster.personal", &cluster.replace(ADMIN, name));
        refusal(&site)
    };
    let said = admin("root");
    assert!(said.contains("the primary administrator must not be root"), "{said}");
    let said = admin("nosuchuser");
    assert!(said.contains("<nosuchuser> is not known on this host"), "{said}");
    site.write("conf/lsf.cluster.personal", &cluster);
    // the administrator cannot make it a personal cluster of root
    let conf = site.path("conf/lsf.conf");
    let plain = std::fs::read_to_string(&conf).unwrap();
    site.lsf_conf("LSF_PERSONAL=Y");
    std::os::unix::fs::chown(&conf, Some(uid(ADMIN)), None).unwrap();
    let said = refusal(&site);
    assert!(said.contains("lsf.conf can be changed by users other than root"), "{said}");
    std::fs::write(&conf, &plain).unwrap();
    // nor have root write where the administrator can put a link
    site.lsf_conf(&format!("LSF_RUNDIR={}", site.path("work/run").display()));
    let said = refusal(&site);
    assert!(said.contains("work can be changed by users other than root"), "{said}");
    std::fs::write(&conf, &plain).unwrap();
}

#[test]
fn a_user_with_another_uid_here_is_refused() {
    if !MultiUserSite::possible("a_user_with_another_uid_here_is_refused") {
        return;
    }
    let mut site = MultiUserSite::new("uids", 2);
    // host2 alone learns another number
    let passwd = std::fs::read_to_string(site.path("etc/passwd")).unwrap();
    let line = |id: u32| format!("ann:x:{id}:{}:", uid("ann"));
    let other = passwd.replace(&line(uid("ann")), &line(70_099));
    assert_ne!(passwd, other);
    std::fs::write(site.etc_of("host2").join("passwd"), &other).unwrap();
    site.start();
    let job = site.bsub("ann", "-m host2 -o out 'id -u'");
    // while the order to start it is on its way it is not pending
    let why = || site.run("ann", &format!("bjobs -p {job}")).out;
    wait_for("the refusal", || why().contains("There is no such user account"));
    let log = std::fs::read_to_string(site.path("log/mbatchd.log.host1")).unwrap();
    assert!(log.contains("user ann has uid 70099 here, not 70002"), "{log}");
    assert_ne!(site.stat(job), "DONE");
    assert!(!site.path("home/ann/out").exists());
}

#[test]
fn root_submits_when_lsf_root_user_allows_it() {
    if !MultiUserSite::possible("root_submits_when_lsf_root_user_allows_it") {
        return;
    }
    let mut site = MultiUserSite::new("rootjobs", 2);
    let sudoers = |etc: &std::path::Path, mode: u32| {
        let file = etc.join("lsf.sudoers");
        std::fs::write(&file, "LSF_ROOT_USER=Y\n").unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
    };
    // on host1, which takes submissions, and on host2 with a mode that is not believed
    sudoers(&site.path("etc"), 0o600);
    sudoers(&site.etc_of("host2"), 0o644);
    site.start();
    let job = site.bsub("root", "-m host1 -o /dev/null 'test $(id -u) = 0'");
    assert_eq!(site.end_of(job), "DONE");
    let job = site.bsub("root", "-m host2 -o /dev/null true");
    let log = || std::fs::read_to_string(site.path("log/launcher.log.host2")).unwrap();
    wait_for("the refusal", || log().contains("nothing is started as root"));
    assert!(log().contains("lsf.sudoers") && log().contains("must be 0600"), "{}", log());
    assert_ne!(site.stat(job), "DONE");
    let job = site.bsub("ann", "-m host1 -o /dev/null 'test $(id -u) != 0'");
    assert_eq!(site.end_of(job), "DONE");
}

#[test]
fn users_known_to_the_name_service_alone_run_jobs() {
    let name = "users_known_to_the_name_service_alone_run_jobs";
    let module = ["/usr/lib", "/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/usr/lib64"];
    let module = module.iter().map(|d| format!("{d}/libnss_extrausers.so.2"));
    if !module.into_iter().any(|m| std::path::Path::new(&m).exists()) {
        return super::rig::skipped(&format!("{name}: no libnss-extrausers"));
    }
    if !MultiUserSite::possible(name) {
        return;
    }
    let mut site = MultiUserSite::new("nss", 1);
    // ann moves from passwd to a file that only the module reads
    let passwd = std::fs::read_to_string(site.path("etc/passwd")).unwrap();
    let (ann, rest): (Vec<&str>, Vec<&str>) =
        passwd.split_inclusive('\n').partition(|l| l.starts_with("ann:"));
    site.write("etc/passwd", &rest.concat());
    std::fs::create_dir(site.path("extrausers")).unwrap();
    site.write("extrausers/passwd", &ann.concat());
    site.write("extrausers/group", "extra:x:70020:ann\n");
    site.write("etc/nsswitch.conf", "passwd: files extrausers\ngroup: files extrausers\n");
    site.extrausers = true;
    site.start();
    let job = site.bsub("ann", "-o out 'id -un; id -G'");
    assert_eq!(site.end_of(job), "DONE");
    let out = std::fs::read_to_string(site.path("home/ann/out")).unwrap();
    assert!(out.starts_with(&format!("ann\n{} 70010 70020\n", uid("ann"))), "{out}");
}

/// LSF_EAUTH_KEY reaches authd, after a restart as well, and nobody else.
#[test]
fn the_key_of_eauth_is_handed_to_authd_alone() {
    if !MultiUserSite::possible("the_key_of_eauth_is_handed_to_authd_alone") {
        return;
    }
    let mut site = MultiUserSite::new("eauthkey", 1);
    let file = site.path("etc/lsf.sudoers");
    let put = |key: &str, mode: u32| {
        std::fs::write(&file, format!("LSF_EAUTH_KEY={key}\n")).unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
    };
    put("first secret", 0o600);
    site.start();
    let ring = lsf::auth::KeyRing::parse(&std::fs::read(site.path("conf/lsf.key")).unwrap());
    let ring = ring.unwrap();
    let signed = |key: Option<&str>| {
        let text = site.ok("ann", "eauth -c host1");
        let own = key.map(|k| lsf::proto::frame::MacKey::new(k.as_bytes()));
        let now = lsf::sys::now().secs();
        let found =
            lsf::auth::eauth::Judge::default().judge(&ring, own.as_ref(), &text, "host1", now);
        found.map(|c| (c.user, c.uid))
    };
    let ann = Ok(("ann".to_owned(), uid("ann")));
    assert_eq!(signed(Some("first secret")), ann);
    assert!(signed(None).is_err() && signed(Some("other secret")).is_err());
    let authd =
        |site: &MultiUserSite| site.processes().into_iter().find(|p| p.0 == "authd").unwrap().1;
    for (name, pid, _) in site.processes() {
        let read = |f: &str| std::fs::read(format!("/proc/{pid}/{f}")).unwrap_or_default();
        let text =
            String::from_utf8_lossy(&[read("environ"), read("cmdline")].concat()).into_owned();
        assert!(!text.contains("first secret"), "{name}");
        assert_eq!(text.contains("LSF_EAUTH_KEY_FD"), name == "authd", "{name}");
    }
    // nothing of it is left to be read where it came from
    let pipe = format!("/proc/{}/fd/0", authd(&site));
    assert!(std::fs::read_link(&pipe).unwrap().to_string_lossy().starts_with("pipe:"));
    let script = format!("head -c 1 {pipe} | wc -c");
    let left = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&left.stdout).trim(), "0");
    // the next authd has what the file says then; one that others could read says nothing
    for (key, mode, want) in
        [("second secret", 0o600, Some("second secret")), ("third secret", 0o644, None)]
    {
        put(key, mode);
        let old = authd(&site);
        super::rig::kill(old, 9);
        wait_for("another authd", || {
            site.run("ann", "eauth -c host1").code == 0
                && site.processes().iter().any(|p| p.0 == "authd" && p.1 != old)
        });
        assert_eq!(signed(want), ann, "{key}");
    }
    let log = std::fs::read_to_string(site.path("log/launcher.log.host1")).unwrap();
    assert!(log.contains("mode is 0644, must be 0600") && !log.contains("secret"), "{log}");
}

/// A host that is no server any more, while its launcher was replaced: by itself, and after a kill.
#[test]
fn a_server_that_becomes_a_client_stops_its_daemons() {
    if !MultiUserSite::possible("a_server_that_becomes_a_client_stops_its_daemons") {
        return;
    }
    let mut site = MultiUserSite::up("client", 3);
    let file = "conf/lsf.cluster.personal";
    let text = std::fs::read_to_string(site.path(file)).unwrap();
    let changed: Vec<String> = text
        .lines()
        .map(|l| match l.split_whitespace().collect::<Vec<_>>().as_slice() {
            [host @ ("host2" | "host3"), model, kind, "1", rest @ ..] => {
                format!("{host} {model} {kind} 0 {}", rest.join(" "))
            }
            _ => l.to_owned(),
        })
        .collect();
    assert_ne!(changed.join("\n"), text.trim_end());
    site.write(file, &(changed.join("\n") + "\n"));
    let conf = std::fs::read_to_string(site.path("conf/lsf.conf")).unwrap();
    let without = |l: &&str| !l.starts_with("LSF_MASTER_LIST=");
    let conf: Vec<&str> = conf.lines().filter(without).collect();
    site.write("conf/lsf.conf", &(conf.join("\n") + "\nLSF_MASTER_LIST=host1\n"));
    site.ok(ADMIN, "badmin reconfig");
    let of = |site: &MultiUserSite, host: &str| {
        let mine = |pid: u32| {
            let env = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            let want = format!("LSF_LOCAL_HOST={host}");
            env.split(|b| *b == 0).any(|v| v == want.as_bytes())
        };
        let all = site.processes().into_iter().filter(|p| mine(p.1));
        let mut names: Vec<(String, u32)> = all.map(|p| (p.0, p.1)).collect();
        names.sort();
        names
    };
    let launcher = |site: &MultiUserSite, host: &str| {
        of(site, host).into_iter().find(|p| p.0 == "launcher").unwrap().1
    };
    super::rig::kill(launcher(&site, "host2"), 12);
    super::rig::kill(launcher(&site, "host3"), 9);
    site.again("host3");
    for host in ["host2", "host3"] {
        wait_for(&format!("{host} to be a client"), || {
            let names: Vec<String> = of(&site, host).into_iter().map(|p| p.0).collect();
            names == ["authd", "launcher"]
        });
    }
    assert!(of(&site, "host1").iter().any(|p| p.0 == "sbatchd"));
}

/// A site's own `eauth -s` runs as LSF_EAUTH_USER, who is not the administrator.
#[test]
fn eauth_of_a_site_runs_as_the_user_that_root_names() {
    if !MultiUserSite::possible("eauth_of_a_site_runs_as_the_user_that_root_names") {
        return;
    }
    let mut site = MultiUserSite::new("eauthuser", 1);
    let put = |rel: &str, text: &str, mode: u32| {
        std::fs::create_dir_all(site.path(rel).parent().unwrap()).unwrap();
        site.write(rel, &text.replace("DIR", site.dir.to_str().unwrap()));
        std::fs::set_permissions(site.path(rel), PermissionsExt::from_mode(mode)).unwrap();
    };
    put(
        "server/eauth",
        "#!/bin/sh\nif [ \"$1\" = -c ]; then echo \"I am $(id -un)\"; exit; fi\n\
         { id -u; id -G; env; } > DIR/home/bob/asked\n\
         while read -r u g n a p l d; do\n\
         case $d in *ann) exit 1;; *lsfadm) echo 1;; *) echo 0;; esac\ndone\n",
        0o755,
    );
    put("etc/lsf.sudoers", "LSF_EAUTH_USER=bob\n", 0o600);
    site.lsf_conf(&format!("LSF_AUTH=eauth\nLSF_SERVERDIR={}", site.path("server").display()));
    site.start();
    let of = |name: &str| site.processes().into_iter().find(|p| p.0 == name).unwrap();
    assert_eq!(of("eauthd").2, uid("bob"));
    let said = std::fs::read_to_string(site.path("home/bob/asked")).unwrap();
    let lines: Vec<&str> = said.lines().collect();
    let ids = (uid("bob").to_string(), format!("{} {PROJ}", uid("bob")));
    assert_eq!((lines[0], lines[1]), (ids.0.as_str(), ids.1.as_str()), "{said}");
    assert!(lines.contains(&"LSF_EAUTH_SERVER=mbatchd@personal"), "{said}");
    assert!(lines.contains(&"LSF_EAUTH_CLIENT=user") && !said.contains("LSF_EAUTH_USER"), "{said}");
    // whom it does not believe, and whom it dies of
    for user in ["bob", "ann"] {
        let s = site.run(user, "bqueues");
        assert!(s.code != 0 && s.err.contains("User permission denied"), "{user}: {}", s.err);
    }
    site.ok(ADMIN, "bqueues");
    // its socket is for the daemons
    let (mode, owner) = {
        let dir = site.path("run").join("host1/eauthd.sock");
        let meta = std::fs::metadata(dir).unwrap();
        (meta.mode() & 0o777, meta.uid())
    };
    assert_eq!((mode, owner), (0o600, uid(ADMIN)));
    // one that is gone is started again
    let old = of("eauthd").1;
    super::rig::kill(old, 9);
    wait_for("another eauthd", || {
        site.processes().iter().any(|p| p.0 == "eauthd" && p.1 != old)
            && site.run(ADMIN, "bqueues").code == 0
    });
}

/// A token that a site's eauth hands over beside its proof, with and without LSF_EAUTH_USER.
#[test]
fn eauth_of_a_site_hands_a_token_over_beside_its_proof() {
    if !MultiUserSite::possible("eauth_of_a_site_hands_a_token_over_beside_its_proof") {
        return;
    }
    for (name, judge) in [("auxown", ADMIN), ("auxuser", "bob")] {
        let mut site = MultiUserSite::new(name, 1);
        std::fs::create_dir_all(site.path("server")).unwrap();
        site.write(
            "server/eauth",
            "#!/bin/sh\nif [ \"$1\" = -c ]; then\n\
             [ -f ~/token ] && cat ~/token > \"$LSF_EAUTH_AUX_DATA\"; echo me; exit; fi\n\
             while read -r u g n a p l d; do t=$(cat \"$LSF_EAUTH_AUX_DATA\"); case $t in\n\
             \"token of $n\") w=known r=1;; '') w='no token' r=0;;\n\
             *) w=\"a token of ${#t}\" r=0;; esac\n\
             echo \"$w in $(stat -c '%a %u' \"$LSF_EAUTH_AUX_DATA\")\" > \"$LSF_EAUTH_AUX_STATUS\"\n\
             echo $r; done\n",
        );
        let put = |rel: &str, mode| {
            std::fs::set_permissions(site.path(rel), PermissionsExt::from_mode(mode)).unwrap();
        };
        put("server/eauth", 0o755);
        if judge != ADMIN {
            site.write("etc/lsf.sudoers", &format!("LSF_EAUTH_USER={judge}\n"));
            put("etc/lsf.sudoers", 0o600);
        }
        let dir = site.path("server");
        let lines =
            format!("LSF_AUTH=eauth\nLSF_SERVERDIR={}\nLSF_LOG_MASK=LOG_DEBUG", dir.display());
        site.lsf_conf(&lines);
        site.write("home/lsfadm/token", "token of lsfadm");
        site.write("home/ann/token", "token of ann");
        site.start();
        site.ok("ann", "bqueues");
        let refused = |user: &str, words: &str| {
            let s = site.run(user, "bqueues");
            assert!(s.code != 0 && s.err.contains(words), "{user}: {}", s.err);
        };
        refused("bob", "User permission denied");
        site.write("home/ann/token", &"secret".repeat(1000));
        refused("ann", "User permission denied");
        site.write("home/ann/token", &"secret".repeat(11_000));
        refused("ann", "auxiliary data of more than 64 KB");
        site.write("home/ann/token", "token of ann");
        site.ok("ann", "bqueues");
        let log = std::fs::read_to_string(site.path("log/mbatchd.log.host1")).unwrap();
        let there = format!("in 600 {}", uid(judge));
        for (user, words) in [
            ("bob", format!("eauth: eauth -s says no: no token {there}")),
            ("ann", format!("eauth: eauth -s says no: a token of 6000 {there}")),
            ("ann", format!("eauth -s about user ann: known {there}")),
        ] {
            let found =
                log.lines().any(|l| l.contains(&format!("user {user}")) && l.contains(&words));
            assert!(found, "{user}: {words}: {log}");
        }
        assert!(!log.contains("secret") && !log.contains("token of ann"), "{log}");
    }
}

/// A task whose environment would lead a program of the site astray.
const LURING: &str =
    "LSB_MARK=m1 BASH_ENV=/evil LSF_EVIL=1 lsrun -L -m host1 sh -c 'echo $$; id -u'";
/// Writes all that it was given to a file named by its user.
const EEXEC: &str = "#!/bin/sh\n{ cat; id -u; id -G; env; } > DIR/said/$(id -un)\n";

/// Writes a file of the site, in whose text DIR is the directory of the site.
fn put(site: &MultiUserSite, rel: &str, text: &str, mode: u32) {
    site.write(rel, &text.replace("DIR", site.dir.to_str().unwrap()));
    std::fs::set_permissions(site.path(rel), PermissionsExt::from_mode(mode)).unwrap();
}

fn process_of(site: &MultiUserSite, name: &str) -> Option<(String, u32, u32)> {
    site.processes().into_iter().find(|p| p.0 == name)
}

/// Starts the launcher again with this lsf.sudoers.
fn with_eexec_user(site: &mut MultiUserSite, user: &str) {
    put(site, "etc/lsf.sudoers", &format!("LSF_EEXEC_USER={user}\n"), 0o600);
    super::rig::kill(process_of(site, "launcher").unwrap().1, 15);
    site.again("host1");
}

/// A site whose eexec runs as bob, and which has one host.
fn with_eexec(name: &str) -> MultiUserSite {
    let mut site = MultiUserSite::new(name, 1);
    for dir in ["server", "said"] {
        std::fs::create_dir_all(site.path(dir)).unwrap();
    }
    std::fs::set_permissions(site.path("said"), PermissionsExt::from_mode(0o1777)).unwrap();
    put(&site, "server/esub", "#!/bin/sh\necho ticket\n", 0o755);
    put(&site, "server/eexec", EEXEC, 0o755);
    let passwd = std::fs::read_to_string(site.path("etc/passwd")).unwrap();
    site.write("etc/passwd", &format!("{passwd}toor:x:0:0::/:/bin/sh\n"));
    site.lsf_conf(&format!("LSF_SERVERDIR={}", site.path("server").display()));
    put(&site, "etc/lsf.sudoers", "LSF_EEXEC_USER=bob\n", 0o600);
    site.start();
    wait_for("res", || site.run("ann", LURING).code == 0);
    assert_eq!(process_of(&site, "eexecd").map(|p| p.2), Some(uid("bob")));
    site
}

/// eexec runs as LSF_EEXEC_USER with nothing of the task's user that could lead it astray.
#[test]
fn eexec_of_a_task_runs_as_the_user_that_root_names() {
    if !MultiUserSite::possible("eexec_of_a_task_runs_as_the_user_that_root_names") {
        return;
    }
    let site = with_eexec("eexectask");
    let out = site.ok("ann", LURING);
    let said = std::fs::read_to_string(site.path("said/bob")).unwrap();
    let lines: Vec<&str> = said.lines().collect();
    let (id, proj) = (uid("bob").to_string(), format!("{} {PROJ}", uid("bob")));
    assert_eq!(lines[..3], ["ticket", id.as_str(), proj.as_str()], "{said}");
    let pid = format!("LS_JOBPID={}", out.lines().next().unwrap());
    for there in ["LS_EXEC_T=START", "LSFUSER=ann", "LSB_MARK=m1", &pid] {
        assert!(lines.contains(&there), "{there}: {said}");
    }
    for gone in ["BASH_ENV", "LSF_EVIL", "LSF_EEXEC", "HOME=/"] {
        assert!(!said.contains(gone), "{gone}: {said}");
    }
    assert_eq!(out.lines().nth(1), Some(uid("ann").to_string().as_str()));
    assert!(!site.path("said/ann").exists());
    // nobody asks it but through the launcher
    let meta = std::fs::metadata(site.path("run/host1/eexecd.sock")).unwrap();
    assert_eq!((meta.mode() & 0o777, meta.uid()), (0o600, 0));
}

/// The eexec of a job runs when the job begins and when it has ended.
#[test]
fn eexec_of_a_job_runs_as_the_user_that_root_names() {
    if !MultiUserSite::possible("eexec_of_a_job_runs_as_the_user_that_root_names") {
        return;
    }
    let site = with_eexec("eexecjob");
    let id = uid("bob").to_string();
    std::fs::remove_file(site.path("said/bob")).unwrap();
    let file = site.path("said/bob");
    let batch = format!("LSB_MARK=m1 BASH_ENV=/evil bsub -o begun 'cat {}'", file.display());
    let job = super::rig::job_id(&site.ok("ann", &batch)).unwrap();
    assert_eq!(site.end_of(job), "DONE");
    let begun = std::fs::read_to_string(site.path("home/ann/begun")).unwrap();
    let mut ended = String::new();
    wait_for("the end to be told", || {
        ended = std::fs::read_to_string(&file).unwrap_or_default();
        ended.contains("LS_EXEC_T=END\n")
    });
    for (said, when) in [(begun, "LS_EXEC_T=START"), (ended, "LS_EXEC_T=END")] {
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines[..2], ["ticket", id.as_str()], "{said}");
        assert!(lines.contains(&when) && lines.contains(&&*format!("LSB_JOBID={job}")), "{said}");
        assert!(!said.contains("BASH_ENV=") && !said.contains("EEXEC_DATA"), "{said}");
    }
    assert!(!site.path("said/ann").exists());
}

#[test]
fn eexec_that_others_can_change_lets_no_task_begin() {
    if !MultiUserSite::possible("eexec_that_others_can_change_lets_no_task_begin") {
        return;
    }
    let site = with_eexec("eexecopen");
    put(&site, "server/eexec", EEXEC, 0o777);
    let s = site.run("ann", LURING);
    assert!(s.code != 0 && s.err.contains("can be changed by users other"), "{}{}", s.out, s.err);
    let job = site.ok("ann", "bsub -o /dev/null true");
    let job = super::rig::job_id(&job).unwrap().to_string();
    let reason = format!("bjobs -noheader -o pend_reason {job}");
    wait_for("no job without it", || site.ok("ann", &reason).contains("pre-exec command"));
    site.ok("ann", &format!("bkill {job}"));
}

#[test]
fn eexec_of_root_or_of_an_unknown_user_lets_no_task_begin() {
    if !MultiUserSite::possible("eexec_of_root_or_of_an_unknown_user_lets_no_task_begin") {
        return;
    }
    let mut site = with_eexec("eexecroot");
    for (user, words) in [
        ("root", "<root> is root, which it must not be"),
        ("toor", "<toor> is root, which it must not be"),
        ("nobodyhere", "user <nobodyhere> is not known on this host"),
    ] {
        std::fs::remove_file(site.path("said/bob")).unwrap_or_default();
        with_eexec_user(&mut site, user);
        // without a res lsrun runs the task itself
        wait_for(words, || {
            let s = site.run("ann", LURING);
            s.code != 0 && s.out.is_empty() && s.err.contains("eexec as LSF_EEXEC_USER")
        });
        assert!(process_of(&site, "eexecd").is_none(), "{user}");
        let log = std::fs::read_to_string(site.path("log/launcher.log.host1")).unwrap();
        assert!(log.contains(&format!("/etc/lsf.sudoers: LSF_EEXEC_USER: {words}")), "{log}");
        assert_eq!(std::fs::read_dir(site.path("said")).unwrap().count(), 0, "{user}");
    }
}

#[test]
fn lsf_sudoers_that_is_not_roots_names_no_user_of_eexec() {
    if !MultiUserSite::possible("lsf_sudoers_that_is_not_roots_names_no_user_of_eexec") {
        return;
    }
    let mut site = with_eexec("eexecfile");
    std::fs::remove_file(site.path("said/bob")).unwrap();
    std::os::unix::fs::chown(site.path("etc/lsf.sudoers"), Some(uid("ann")), None).unwrap();
    super::rig::kill(process_of(&site, "launcher").unwrap().1, 15);
    site.again("host1");
    wait_for("ann's own", || site.run("ann", LURING).code == 0 && site.path("said/ann").exists());
    let log = std::fs::read_to_string(site.path("log/launcher.log.host1")).unwrap();
    assert!(log.contains("must be 0; the file is not believed"), "{log}");
    assert!(!site.path("said/bob").exists());
}
