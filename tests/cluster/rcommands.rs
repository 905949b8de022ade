//! lsgrun, lslogin, lsrcp, lsacct and lsacctmrg on a cluster of three hosts.

use super::rig::{Rig, Said, program, wait_for};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::{Command, Stdio};

fn up(name: &str) -> Rig {
    let rig = Rig::up(name, 3);
    for host in ["host1", "host2", "host3"] {
        wait_for("res to answer", || rig.run("lsrun", &["-L", "-m", host, "true"]).code == 0);
    }
    rig
}

const NAME: &str = "echo $LSF_LOCAL_HOST";

#[test]
fn lsgrun_runs_on_each_host() {
    let rig = up("lsgrun");
    let out = rig.ok("lsgrun", &["-m", "host3 host1 host2", "sh", "-c", NAME]);
    assert_eq!(out, "host3\nhost1\nhost2\n", "in the order named");
    rig.write("hosts.txt", "host2 # one\n\nhost3\n");
    assert_eq!(rig.ok("lsgrun", &["-f", "hosts.txt", "sh", "-c", NAME]), "host2\nhost3\n");
    // at the same time: each waits for the other two
    let meet = "touch met.$LSF_LOCAL_HOST; until [ $(ls met.* | wc -l) = 3 ]; do sleep 0.1; done; \
                echo all";
    let out = rig.ok("lsgrun", &["-p", "-m", "host1 host2 host3", "sh", "-c", meet]);
    assert_eq!(out, "all\nall\nall\n");
    // each has all of the input, and what does not read keeps nobody from the rest
    let input: String = (0..20_000).map(|n| format!("{n}\n")).collect();
    let count = "[ $LSF_LOCAL_HOST = host2 ] || wc -l";
    let said = rig.feed("lsgrun", &["-p", "-m", "host1 host2 host3", "sh", "-c", count], &input);
    let lines: Vec<&str> = said.out.lines().map(str::trim).collect();
    assert_eq!((said.code, lines), (0, vec!["20000"; 2]), "{}", said.err);
    // without a command it is read
    let said = rig.feed("lsgrun", &["-m", "host1 host3"], &format!("{NAME}\n"));
    assert_eq!((said.code, said.out.as_str()), (0, "Command> host1\nhost3\n"), "{}", said.err);
    // asked for all, then for each
    let said = rig.feed("lsgrun", &["-i", "-m", "host1 host3", "sh", "-c", NAME], "n\nn\ny\n");
    assert_eq!((said.code, said.out.as_str()), (0, "host3\n"), "{}", said.err);
    // the first exit code in the order of the hosts, and its own name in what is said
    let some = "case $LSF_LOCAL_HOST in host2) exit 5;; host3) exit 9;; esac";
    let hosts = "host1 host2 host3";
    assert_eq!(rig.run("lsgrun", &["-p", "-m", hosts, "sh", "-c", some]).code, 5);
    let said = rig.run("lsgrun", &["-m", "nosuch", "true"]);
    assert!(said.code == 246 && said.err.starts_with("lsgrun: nosuch: "), "{said:?}");
    wait_for("the loads of three hosts", || {
        let said = rig.run("lsgrun", &["-n", "3", "sh", "-c", NAME]);
        let mut hosts: Vec<&str> = said.out.lines().collect();
        hosts.sort_unstable();
        hosts == ["host1", "host2", "host3"]
    });
    let code = |args: &[&str]| rig.run("lsgrun", args).code;
    assert_eq!(code(&["-n", "4", "true"]), 1);
    assert_eq!(code(&["true"]), 255);
    assert_eq!(code(&["-m", "host1 nosuch", "true"]), 246);
    assert_eq!(rig.ok("lsgrun", &["-R", "select[hname==host2]", "sh", "-c", NAME]), "host2\n");
    assert_eq!(code(&["-m", hosts, "sh", "-c", some]), 5);
    let said = rig.run("lsgrun", &["-v", "-p", "-m", "host1 host2", "true"]);
    for host in ["host1", "host2"] {
        let line = format!("<<Execute true on remote host {host}>>");
        assert!(said.err.contains(&line), "{}", said.err);
    }
}

#[test]
fn lslogin_starts_a_login_shell_at_home() {
    let rig = up("lslogin");
    let home = std::env::var("HOME").unwrap();
    let mut c = rig.cmd("lslogin");
    c.args(["-m", "host3"]).env("SHELL", "/bin/sh").current_dir("/");
    c.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = c.spawn().unwrap();
    let keys = b"echo at=$(pwd) on=$LSF_LOCAL_HOST; test -t 0 && echo a\"\" tty\nexit 4\n";
    child.stdin.take().unwrap().write_all(keys).unwrap();
    let said = Said::from(child.wait_with_output().unwrap());
    assert_eq!(said.code, 4, "{said:?}");
    let want = format!("at={home} on=host3");
    assert!(said.out.contains(&want) && said.out.contains("\na tty"), "{said:?}");
    // with options of rlogin it is that program's matter, or ssh's; what is missing is named
    let other = |args: &[&str], path: &std::path::Path| {
        let mut c = rig.cmd("lslogin");
        Said::from(c.env("PATH", path).args(args).output().unwrap())
    };
    let own = rig.path("own");
    std::fs::create_dir(&own).unwrap();
    let args = ["-v", "-m", "host3", "-l", "bob", "-8"];
    for (name, package) in [("rlogin", "rsh-redone-client"), ("ssh", "openssh-client")] {
        let said = other(&args, &own);
        let want = format!("{name} is not installed (Debian: package {package})");
        assert!(said.code == 255 && said.err.contains(&want), "{said:?}");
        let file = own.join(name);
        program(&file, "#!/bin/sh\necho \"${0##*/} $*\"\nexit 7\n");
        let said = other(&args, &own);
        assert_eq!((said.code, said.out), (7, format!("{name} -l bob -8 host3\n")), "{}", said.err);
        rig.write("conf/lsf.conf", &(rig.read("conf/lsf.conf") + "\nLSF_LSLOGIN_SSH=Y\n"));
    }
}

#[test]
fn lsrcp_copies_either_way() {
    let rig = up("lsrcp");
    let data: Vec<u8> =
        (0..2_000_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    std::fs::write(rig.path("src"), &data).unwrap();
    std::fs::set_permissions(rig.path("src"), PermissionsExt::from_mode(0o640)).unwrap();
    let at = |rel: &str| format!("host2:{}", rig.path(rel).display());
    let same = |rel: &str| std::fs::read(rig.path(rel)).unwrap() == data;
    rig.ok("lsrcp", &["src", &at("there")]);
    assert!(same("there"));
    assert_eq!(std::fs::metadata(rig.path("there")).unwrap().mode() & 0o777, 0o640);
    rig.ok("lsrcp", &[&at("there"), "back"]);
    assert!(same("back"));
    // into a directory, and over what is there
    std::fs::create_dir(rig.path("dir")).unwrap();
    rig.write("dir/src", "older");
    rig.ok("lsrcp", &["src", &at("dir")]);
    assert!(same("dir/src"));
    let third = format!("host3:{}", rig.path("third").display());
    rig.ok("lsrcp", &[&at("src"), &third]);
    assert!(same("third"));
    rig.ok("lsrcp", &["-a", "src", &at("there")]);
    assert_eq!(std::fs::metadata(rig.path("there")).unwrap().len(), 2 * data.len() as u64);
    // names with what a shell could take for more
    let odd = "a b'$(touch evil)\"`";
    std::fs::write(rig.path(odd), "odd").unwrap();
    rig.ok("lsrcp", &[odd, &at("odd to '$(x)")]);
    assert_eq!(rig.read("odd to '$(x)"), "odd");
    assert!(!rig.path("evil").exists());
    let said = rig.run("lsrcp", &[&at("nosuch"), "x"]);
    assert_eq!(said.code, 255, "{}", said.err);
    assert!(said.err.contains("nosuch"), "{}", said.err);
}

#[test]
fn lsrcp_falls_back_on_the_site_s_command_or_on_rcp_or_on_scp() {
    let rig = up("fallback");
    let bin = rig.path("own");
    std::fs::create_dir(&bin).unwrap();
    let with = |names: &[&str], code: u8, args: &[&str]| {
        for name in names {
            let text = format!("#!/bin/sh\necho \"${{0##*/}} $* $LSF_LSRCP_ERRNO\"\nexit {code}\n");
            program(&bin.join(name), &text);
        }
        let mut c: Command = rig.cmd("lsrcp");
        let said = Said::from(c.env("PATH", &bin).args(args).output().unwrap());
        names.iter().for_each(|name| std::fs::remove_file(bin.join(name)).unwrap());
        (said.code, said.out, said.err)
    };
    rig.write("src", "x");
    let unknown = ["src", "nosuch:there"];
    let (code, out, err) = with(&["rcp", "scp"], 0, &unknown);
    assert_eq!((code, out.as_str()), (0, "rcp -- src nosuch:there 113\n"), "{err}");
    assert!(err.starts_with("lsrcp: nosuch: ") && err.ends_with("; trying rcp\n"), "{err}");
    // one that fails is the last one
    let (code, out, err) = with(&["rcp", "scp"], 7, &["src", "other@host2:there"]);
    assert_eq!((code, out.as_str()), (255, "rcp -- src other@host2:there 1\n"), "{err}");
    assert!(err.ends_with("lsrcp: rcp: exit status: 7\n"), "{err}");
    let (code, out, err) = with(&["scp"], 0, &unknown);
    assert_eq!((code, out.as_str()), (0, "scp -Bq -- src nosuch:there 113\n"));
    assert!(err.ends_with("lsrcp: rcp is not installed; trying scp\n"), "{err}");
    let (code, _, err) = with(&[], 0, &unknown);
    assert!(code == 255 && err.contains("scp is not installed (rcp or scp: Debian"), "{err}");
    let (code, out, _) = with(&["rcp"], 0, &["-a", "src", "nosuch:there"]);
    assert_eq!((code, out.as_str()), (255, ""), "it cannot append");
    // a host with a res that does not take the file is no reason
    let (code, out, _) = with(&["rcp"], 0, &["src", "host2:/nosuch/there"]);
    assert_eq!((code, out.as_str()), (255, ""));
    rig.set_conf("LSF_REMOTE_COPY_CMD", "\"mine -o 'a  b' $(x)\"");
    let (code, out, err) = with(&["mine", "rcp", "scp"], 0, &unknown);
    assert_eq!((code, out.as_str()), (0, "mine -o a  b $(x) src nosuch:there 113\n"), "{err}");
    let (_, out, _) = with(&["mine"], 0, &["--", "-src", "nosuch:there"]);
    assert_eq!(out, "", "there is no such file");
    rig.write("-src", "x");
    let (_, out, _) = with(&["mine"], 0, &["--", "-src", "nosuch:there"]);
    assert_eq!(out, "mine -o a  b $(x) ./-src nosuch:there 113\n");
    let (code, out, err) = with(&["mine"], 0, &["--", "src", "-oX=y:there"]);
    assert_eq!((code, out.as_str()), (255, ""), "{err}");
    let (code, _, err) = with(&["rcp", "scp"], 0, &unknown);
    assert!(code == 255 && err.contains("lsrcp: mine is not installed"), "{err}");
}

#[test]
fn tasks_are_accounted_when_lsf_res_acct_is_set() {
    let rig = Rig::up("lsacct", 2);
    let conf = rig.read("conf/lsf.conf");
    let dir = rig.path("acct");
    std::fs::create_dir(&dir).unwrap();
    let more = format!("LSF_RES_ACCT=100\nLSF_RES_ACCTDIR={}\n", dir.display());
    rig.write("conf/lsf.conf", &format!("{conf}\n{more}"));
    for host in ["host1", "host2"] {
        rig.kill9("res", host);
        wait_for("res to answer", || rig.run("lsrun", &["-L", "-m", host, "true"]).code == 0);
    }
    let burn = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done; exit 3";
    for host in ["host1", "host2"] {
        assert_eq!(rig.run("lsrun", &["-L", "-m", host, "sh", "-c", burn]).code, 3);
        rig.ok("lsrun", &["-L", "-m", host, "true"]);
    }
    let lines = |host: &str| rig.read(&format!("acct/lsf.acct.{host}")).lines().count();
    wait_for("both to be logged", || lines("host1") == 1 && lines("host2") == 1);
    let out = rig.ok("lsacct", &["-l", "-u", "all"]);
    for want in ["Number of tasks      1\n", "Execution host:  host1\n", "Exit status:     768\n"] {
        assert!(out.contains(want), "{want}: {out}");
    }
    // the caller's own, whoever the environment says that is
    let mut c = rig.cmd("lsacct");
    let said = Said::from(c.env("USER", "somebody").output().unwrap());
    let user = lsf::sys::users::UserDatabase::default().by_uid(lsf::sys::euid()).unwrap().name;
    assert!(said.out.contains(&format!("executed by user(s) {user}.\n")), "{said:?}");
    assert!(said.out.contains("Number of tasks      1\n"), "{said:?}");
    let (one, two) = ("acct/lsf.acct.host1", "acct/lsf.acct.host2");
    rig.ok("lsacctmrg", &[two, one, "all"]);
    assert_eq!(rig.run("lsacctmrg", &[two, one, "all"]).code, 255, "it is there");
    rig.ok("lsacctmrg", &["-f", two, one, "all"]);
    let count = |args: &[&str]| {
        let out = rig.ok("lsacct", &[&["-f", "all", "-u", "all"][..], args].concat());
        let line = out.lines().find_map(|l| l.strip_prefix("Number of tasks")).unwrap().to_owned();
        line.trim().parse::<u32>().unwrap()
    };
    assert_eq!((count(&[]), count(&["-m", "host2"]), count(&["-u", "nobody"])), (2, 1, 0));
    assert_eq!((count(&["-S", "1/1,"]), count(&["-C", ",2020/1/1"])), (2, 0));
    assert_eq!(rig.run("lsacct", &["-C", "soon"]).code, 255);
    // turned off and on while it runs
    rig.ok("lsadmin", &["reslogoff", "host2"]);
    rig.run("lsrun", &["-m", "host2", "sh", "-c", burn]);
    rig.ok("lsadmin", &["reslogon", "host2"]);
    rig.ok("lsrun", &["-m", "host2", "true"]);
    wait_for("the small one", || lines("host2") == 2);
}

#[test]
fn lsmake_runs_recipes_on_other_hosts() {
    let rig = up("lsmake");
    if Command::new("make").arg("-v").output().is_err() {
        return super::rig::skipped("lsmake_runs_recipes_on_other_hosts: needs make");
    }
    let file = "all: a b c\n\t@echo all on $$LSF_LOCAL_HOST\n\
                a b c:\n\t@echo $$LSF_LOCAL_HOST > $@.out; touch met.$@; \
                until [ `ls met.* | wc -l` = 3 ]; do sleep 0.1; done\n\
                sub:\n\t@$(MAKE) -s inner\ninner:\n\t@echo inner on $$LSF_LOCAL_HOST\n\
                bad:\n\t@exit 3\n";
    rig.write("Makefile", file);
    // three slots by -m: each recipe waits for the other two
    let out = rig.ok("lsmake", &["-m", "host1 host2 host3", "-s"]);
    assert!(out.starts_with("all on host"), "{out}");
    let mut hosts = ["a", "b", "c"].map(|t| rig.read(&format!("{t}.out")).trim().to_owned());
    hosts.sort_unstable();
    assert_eq!(hosts, ["host1", "host2", "host3"]);
    assert_eq!(rig.ok("lsmake", &["-m", "host2", "-s", "sub"]), "inner on host2\n");
    let said = rig.run("lsmake", &["-v", "-m", "host3", "inner"]);
    assert!(said.err.contains("[host3] echo inner on"), "{said:?}");
    let said = rig.run("lsmake", &["-m", "host2", "bad"]);
    assert_eq!(said.code, 2, "make's own code: {said:?}");
    assert!(said.err.contains("Error 3"), "{said:?}");
    lsmake_options(&rig);
    // a host that does not answer is passed over
    rig.ok("lsadmin", &["resshutdown", "-f", "host2"]);
    let out = rig.ok("lsmake", &["-m", "host2 host3", "-s", "inner"]);
    assert_eq!(out, "inner on host3\n");
    let mut c = rig.cmd("lsmake");
    let said = Said::from(c.env("PATH", "/nowhere").args(["-m", "host1"]).output().unwrap());
    assert!(said.code == 255 && said.err.contains("package make"), "{said:?}");
    let left = std::fs::read_dir(std::env::temp_dir()).unwrap().flatten();
    let own = |e: &std::fs::DirEntry| {
        use std::os::unix::fs::MetadataExt;
        let name = e.file_name().to_string_lossy().into_owned();
        name.starts_with("lsmake.") && e.metadata().is_ok_and(|m| m.uid() == lsf::sys::euid())
    };
    assert_eq!(left.filter(own).count(), 0, "directories of runs are left");
}

/// The effect of each option of lsmake.
fn lsmake_options(rig: &Rig) {
    let meet = "touch m.$@; until [ -e m.p1 -a -e m.p2 ]; do sleep 0.05; done";
    let file = format!(
        "inner:\n\t@echo inner on $$LSF_LOCAL_HOST\n\
         flaky:\n\t@test -e once || {{ touch once; exit 1; }}\n\
         q: p1 p2\n\t@date +%s%N > q.at\np1 p2:\n\t@{meet}; date +%s%N > $@.at\n\
         slow:\n\t@sleep 1.5\n\
         subs: s1 s2\ns1 s2:\n\t@$(MAKE) -s one\n\
         one:\n\t@mkdir busy && sleep 0.4 && rmdir busy\n\
         f: f1 f2\nf1 f2:\n\t@mkdir busy && sleep 0.4 && rmdir busy\n"
    );
    rig.write("Makefile", &file);
    assert_eq!(
        rig.ok("lsmake", &["-s", "inner"]),
        "inner on host1\n",
        "here, where nothing is said"
    );
    assert_eq!(
        rig.ok("lsmake", &["-E", "-A", "-T", "-m", "host2", "-s", "inner"]),
        "[1] inner on host2\n"
    );
    let said = rig.run("lsmake", &["-V", "-m", "host3", "-s", "inner"]);
    assert!(said.err.contains("[host3] echo inner on"), "{said:?}");
    // tries again, where it may
    assert_eq!(rig.run("lsmake", &["-m", "host2", "-x", "1", "-a", "0.1", "-s", "flaky"]).code, 0);
    std::fs::remove_file(rig.path("once")).unwrap();
    assert_eq!(rig.run("lsmake", &["-m", "host2", "-s", "flaky"]).code, 2);
    // two at a time on one host, by cores or by tasks; what was made there needs no delay
    let fresh = || {
        for name in ["m.p1", "m.p2", "p1.at", "p2.at", "q.at"] {
            let _ = std::fs::remove_file(rig.path(name));
        }
    };
    let at = |name: &str| rig.read(&format!("{name}.at")).trim().parse::<u64>().unwrap();
    for args in [["-m", "host2 2"], ["-c", "2"]] {
        fresh();
        let said = rig.run("lsmake", &[&args[..], &["-a", "60", "-y", "-s", "q"]].concat());
        assert!(said.code == 0 && said.err.contains("lsmake: 3 tasks in "), "{said:?}");
    }
    fresh();
    rig.ok("lsmake", &["-m", "host2 host3", "-a", "1.5", "-s", "q"]);
    let waited = at("q") - at("p1").min(at("p2"));
    assert!(waited > 1_400_000_000, "{waited} ns");
    // the count of tasks, second by second
    rig.ok("lsmake", &["-m", "host2", "-u", "-P", "0.001", "-s", "slow"]);
    let data = rig.read("lsmake.dat");
    assert!(data.lines().any(|l| l.ends_with(" 1")), "{data}");
    // makes below come one after the other, but with -M; so do lines while -F is not met
    let sub = |args: &[&str]| rig.run("lsmake", &[&["-m", "host2 2", "-s"], args].concat()).code;
    assert_eq!((sub(&["subs"]), sub(&["-M", "subs"])), (0, 2));
    let _ = std::fs::remove_dir(rig.path("busy"));
    assert_eq!((sub(&["-F", "select[mem<0]", "f"]), sub(&["-F", "select[mem>0]", "f"])), (0, 2));
    let _ = std::fs::remove_dir(rig.path("busy"));
    assert_eq!(rig.run("lsmake", &["-m", "host2", "-j", "2"]).code, 255);
}

#[test]
fn lstcsh_runs_listed_tasks_on_other_hosts() {
    let rig = up("lstcsh");
    let mut c = rig.cmd("lstcsh");
    let said = Said::from(c.env("PATH", "/nowhere").output().unwrap());
    assert!(said.code == 255 && said.err.contains("package tcsh"), "{said:?}");
    let found = std::env::var("LSF_TEST_TCSH").unwrap_or_else(|_| "tcsh".into());
    if Command::new(&found).arg("--version").output().is_err() {
        return super::rig::skipped("lstcsh_runs_listed_tasks_on_other_hosts: needs tcsh");
    }
    let home = rig.path("home");
    std::fs::create_dir(&home).unwrap();
    rig.write("home/.tcshrc", "echo own start\nset mine = yes\n");
    std::fs::create_dir(rig.path("own")).unwrap();
    let tcsh = Command::new("sh").args(["-c", &format!("command -v {found}")]).output().unwrap();
    let tcsh = String::from_utf8(tcsh.stdout).unwrap();
    std::os::unix::fs::symlink(tcsh.trim(), rig.path("own/tcsh")).unwrap();
    let path = format!("{}:/usr/bin:/bin", rig.path("own").display());
    let run = |applet: &str, args: &[&str]| {
        let mut c = rig.cmd(applet);
        Said::from(c.env("HOME", &home).env("PATH", &path).args(args).output().unwrap())
    };
    let said = run("lsrtasks", &["+", "printenv/select[hname==host3]"]);
    assert_eq!(said.code, 0, "{said:?}");
    let script = "echo $mine $HOME\nprintenv LSF_LOCAL_HOST\nlsmode off\n\
                  printenv LSF_LOCAL_HOST || echo here\nlsmode on\nprintenv LSF_LOCAL_HOST\n";
    rig.write("script", script);
    let said = run("lstcsh", &["-c", &format!("source {}", rig.path("script").display())]);
    let want = format!("own start\nyes {}\nhost3\nhere\nhost3\n", home.display());
    assert_eq!(said.out, want, "{}", said.err);
    // @, modes, what is said, connect; an alias of the user's own stays
    rig.write("home/.tcshrc", "alias id 'echo my own id'\n");
    let said = run("lsltasks", &["+", "uname"]);
    assert_eq!(said.code, 0, "{said:?}");
    let name = "sh -c 'echo on $LSF_LOCAL_HOST'";
    let script = format!(
        "{name} @host2\n{name} @loc\n{name}\n{name} '@/select[hname==host1]'\nid\n\
         echo me@host2 @x\nlsmode\nlsmode remote v e\nlsmode\n{name} >& seen\nuname >& here\n\
         lsmode local -v -e t\nconnect host3 nosuch\nconnect\ntrue\nsh -c 'exit 4' @host3\n\
         echo code $status\nlsmode what\n"
    );
    rig.write("script", &script);
    let source = format!("source {}", rig.path("script").display());
    let said = run("lstcsh", &["-c", &source]);
    let want = "on host2\non\non\non host1\nmy own id\nme@host2 @x\nlsmode: on local -e -v -t\n\
                lsmode: on remote e v -t\nConnected to host3\nCONNECTED WITH       SERVER SHELL\n\
                host3                -\ncode 4\nlsmode: what: no such mode\n";
    assert_eq!(said.out, want, "{}", said.err);
    assert!(said.err.contains(" seconds>>") && said.err.contains("connect: nosuch: "), "{said:?}");
    let (seen, here) = (rig.read("seen"), rig.read("here"));
    assert!(seen.contains("<<sh is eligible for remote execution>>"), "{seen}");
    assert!(seen.contains("<<Execute sh on remote host host"), "{seen}");
    assert!(here.contains("<<uname is to be executed locally>>\nLinux"), "{here}");
    // a script is tcsh's alone, but with -L; @ may be kept from users
    rig.write("script", &format!("{name} @host2\n"));
    assert_eq!(run("lstcsh", &["script"]).out, "on\n");
    assert_eq!(run("lstcsh", &["-L", "script"]).out, "on host2\n");
    rig.write("conf/lsf.conf", &(rig.read("conf/lsf.conf") + "\nLSF_SHELL_AT_USERS=nobody\n"));
    let said = run("lstcsh", &["-L", "script"]);
    assert!(said.out.is_empty() && said.err.contains("@: User permission denied"), "{said:?}");
}
