//! The load balancer in a cluster: the manual's example from the map to the chosen host, over a
//! kill -9 of the server, with a bad policies file, and without any nqeinfo.

use crate::rig::{Rig, Said, binary, wait_for};
use std::process::{Command, Stdio};

/// NLB_SERVER_DIR.
const DIR: &str = "work/personal/nqe/nlbdir";

/// A port that nobody listens on.
fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Has the cluster run a server on host1.
pub fn with_server(rig: &Rig) {
    assert_eq!(rig.down().code, 0);
    let mut up = Command::new(binary());
    up.args(["up", "--nlb", "--dir"]).arg(&rig.dir).env_remove("LSF_ENVDIR").stdin(Stdio::null());
    let said = Said::from(up.output().unwrap());
    assert_eq!(said.code, 0, "lsf up: {}{}", said.out, said.err);
    rig.ready();
}

/// The hosts that nlbpolicy prints for these words, as soon as it answers.
pub fn hosts(rig: &Rig, args: &[&str]) -> Vec<String> {
    wait_for("the NLB server to answer", || rig.run("nlbpolicy", args).code == 0);
    let out = rig.ok("nlbpolicy", args);
    out.lines().map(|l| l.split(' ').next().unwrap().to_owned()).collect()
}

#[test]
fn nlbserver_is_changed_while_it_runs_and_keeps_all_over_kill_9() {
    let rig = Rig::up("nlb", 2);
    assert!(rig.pids("nlbserver").is_empty(), "a server without nqeinfo");
    let none = rig.run("nlbpolicy", &[]);
    let words = "nlbpolicy: no NLB server is known: NLB_SERVER is neither in nqeinfo nor in the \
                 environment\n";
    assert_eq!((none.code, none.err.as_str()), (255, words));
    with_server(&rig);
    // LIM feeds the hosts
    let mut found = hosts(&rig, &[]);
    found.sort();
    assert_eq!(found, ["host1", "host2"]);
    let map = rig.path("name_map");
    let map = map.to_str().unwrap();
    rig.ok("nlbconfig", &["-mdump", "-f", map]);
    let text = rig.read("name_map");
    let norm = "map NLB = 1024 {\n\tNLB_SITE_CPUNORM \"CPU Normalization Factor\" float(8192);";
    rig.write("name_map", &text.replace("map NLB = 1024 {", norm));
    assert_eq!(rig.ok("nlbconfig", &["-mput", "-f", map]), "");
    rig.write(
        "obj_defs",
        "object NLB (host1) { NLB_SITE_CPUNORM = 1; }\n\
                           object NLB (host2) { NLB_SITE_CPUNORM = 1000; }\n",
    );
    assert_eq!(rig.ok("nlbconfig", &["-oupdat", "obj_defs"]), "");
    let policy = "policy: idlecpu sort: NLB_NCPUS * NLB_SITE_CPUNORM\n";
    rig.write("policies.new", policy);
    let said = rig.ok("nlbconfig", &["-check", "policies.new"]);
    assert_eq!(said, "1 policy, the default is <idlecpu>\n");
    rig.write(&format!("{DIR}/policies"), policy);
    assert_eq!(rig.ok("nlbconfig", &["-pol"]), "");
    assert_eq!(hosts(&rig, &["-p", "idlecpu"]), ["host2", "host1"]);
    let dump = rig.ok("nlbpolicy", &["-p", "idlecpu", "-d", "-c1"]);
    assert!(dump.starts_with("object NLB (host2) {\n"), "{dump}");
    assert!(dump.contains("\tNLB_SITE_CPUNORM = 1000.0;\n"), "{dump}");
    // a bad file changes nothing, also over a crash
    rig.write(&format!("{DIR}/policies"), "policy: a\nsort: NLB_NCPU\n");
    let bad = rig.run("nlbconfig", &["-pol"]);
    assert_eq!((bad.code, bad.out.as_str()), (255, ""));
    let lines: Vec<&str> = bad.err.lines().collect();
    let path = rig.path(&format!("{DIR}/policies"));
    let fault = "no attribute <NLB_NCPU> in the maps of NLB and NLB_JOB; did you mean <NLB_NCPUS>?";
    assert_eq!(lines[0], format!("{}:2:7: {fault}", path.display()));
    let kept = "nlbconfig: host1: policies not taken; those read at ";
    assert!(lines[1].starts_with(kept) && lines[1].ends_with(" stay in force"), "{}", lines[1]);
    assert!(rig.kill9("nlbserver", "host1"));
    assert_eq!(hosts(&rig, &["-p", "idlecpu"]), ["host2", "host1"]);
    let status = rig.ok("nlbconfig", &["-status"]);
    assert!(status.contains("POLICIES: idlecpu\n"), "{status}");
    // a dump loads again and dumps the same
    let dumped = rig.ok("nlbconfig", &["-mdump", "-t", "nlb"]);
    let own = |text: &str| {
        text.lines().filter(|l| !l.starts_with('#')).map(str::to_owned).collect::<Vec<_>>()
    };
    rig.write("again", &dumped);
    assert_eq!(rig.ok("nlbconfig", &["-mput", "again"]), "");
    assert_eq!(own(&rig.ok("nlbconfig", &["-mdump", "-t", "NLB"])), own(&dumped));
}

#[test]
fn nlbpolicy_says_what_it_does_not_find() {
    let rig = Rig::up("nlbpolicy", 1);
    with_server(&rig);
    hosts(&rig, &[]);
    let said = |args: &[&str]| {
        let s = rig.run("nlbpolicy", args);
        (s.code, s.err)
    };
    let (code, err) = said(&["-p", "nosuch"]);
    assert_eq!(code, 0);
    assert_eq!(err, "nlbpolicy: no policy <nosuch>: the default, <nqs>, is applied\n");
    let refused = |args: &[&str], words: &str| {
        assert_eq!(said(args), (255, format!("nlbpolicy: {words}\n")), "{args:?}");
    };
    refused(&["-a", "nastran"], "-a <nastran>: request attributes begin with JOB_");
    refused(&["-a", "JOB_NASTRAN"], "-a <JOB_NASTRAN>: not in the map of NLB_JOB");
    let units = "a decimal number is wanted, units expanded to bytes or seconds";
    refused(&["-a", "JOB_PRMEMSIZE=10kw"], &format!("-a <JOB_PRMEMSIZE=10kw>: {units}"));
    refused(&["-c", "0"], "-c <0>: a whole number from 1 is wanted");
    let (code, err) = said(&["-h", "nosuch"]);
    assert_eq!(code, 1);
    let lines: Vec<&str> = err.lines().collect();
    assert_eq!(
        lines,
        [
            "nlbpolicy: <nosuch> is not known to the NLB server",
            "nlbpolicy: no host meets the policy <nqs>",
        ]
    );
    let port = free_port();
    let at = format!("host1:{port}");
    refused(&["-s", &at], &format!("no NLB server answers at {at} (Connection refused)"));
    assert_eq!(said(&["-a", "JOB_PRMEMSIZE", "=", "5", "-c1"]), (0, String::new()));
}

#[test]
fn config_of_the_server_is_read_again_and_refuses_those_whom_it_does_not_name() {
    let rig = Rig::up("nlb-config", 1);
    with_server(&rig);
    hosts(&rig, &[]);
    let path = rig.path(&format!("{DIR}/config")).display().to_string();
    let config = |text: &str| rig.write(&format!("{DIR}/config"), text);
    config("master: somebody\nacl NLP: read=*\n");
    let bad = rig.run("nlbconfig", &["-conf"]);
    let lines: Vec<&str> = bad.err.lines().collect();
    let fault = format!("{path}:2:5: <NLP> is no object type; did you mean <NLB>?");
    assert_eq!((bad.code, bad.out.as_str(), lines[0]), (255, "", fault.as_str()));
    let kept = "nlbconfig: host1: config not taken; that read at ";
    assert!(lines[1].starts_with(kept) && lines[1].ends_with(" stays in force"), "{}", lines[1]);
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
    let bad = rig.run("nlbconfig", &["-conf"]);
    assert!(
        bad.err.starts_with(&format!("{path}: a symbolic link is not followed\n")),
        "{}",
        bad.err
    );
    std::fs::remove_file(&path).unwrap();
    config("# the caller is another one\nmaster: somebody-else\n");
    assert_eq!(rig.ok("nlbconfig", &["-conf"]), "");
    let own = rig.ok("nlbconfig", &["-status"]);
    assert!(own.contains("CONFIG_READ: "), "{own}");
    for verb in ["-conf", "-pol"] {
        let refused = rig.run("nlbconfig", &[verb]);
        let list = "is not in the master list of the NLB server on <host1>";
        assert_eq!((refused.code, refused.out.as_str()), (255, ""));
        let head = "nlbconfig: host1: User permission denied: <";
        let tail = format!("> {list} ({path}:2)\n");
        assert!(refused.err.starts_with(head) && refused.err.ends_with(&tail), "{}", refused.err);
    }
    // over a restart as well; a file with a fault hinders it
    config("mastr: x\n");
    assert!(rig.kill9("nlbserver", "host1"));
    let log = || rig.read("log/nlbserver.log.host1");
    let fault = format!("{path}:1:1: <mastr> is unknown");
    wait_for("the fault in the log", || log().contains(&fault));
    std::fs::remove_file(&path).unwrap();
    hosts(&rig, &[]);
    assert_eq!(rig.ok("nlbconfig", &["-pol"]), "");
}

/// Texts that are no good file of any kind.
fn bad_texts(half: &str) -> [(&'static str, Vec<u8>); 3] {
    let large = " ".repeat(5 << 20).into_bytes();
    [("half", half.into()), ("large", large), ("bytes", b"\xff\xfe\n".to_vec())]
}

/// The state in force: the count of changes, and the objects about requests.
fn in_force(rig: &Rig) -> (String, String) {
    let status = rig.ok("nlbconfig", &["-status"]);
    let line = status.lines().find(|l| l.starts_with("GENERATION: ")).unwrap().to_owned();
    (line, rig.ok("nlbconfig", &["-odump", "-t", "NLB_JOB"]))
}

fn bad_policies(rig: &Rig, refused: &dyn Fn(&[&str], &str)) {
    let path = rig.path(&format!("{DIR}/policies"));
    let put = |bytes: &[u8]| {
        let _ = std::fs::remove_file(&path);
        std::fs::write(&path, bytes).unwrap();
    };
    let unclosed =
        "/policies:2:17: <)> is wanted before the end of the file, for the <(> in line 2";
    let wanted = [unclosed, "/policies: larger than 1 MB", "/policies:1:1: not UTF-8"];
    for ((_, bytes), words) in bad_texts("policy: a\nsort: (NLB_NCPUS").into_iter().zip(wanted) {
        put(&bytes);
        refused(&["-pol"], words);
    }
    put(b"");
    refused(&["-pol"], "/policies: no policy is defined");
    std::fs::remove_file(&path).unwrap();
    refused(&["-pol"], "/policies: No such file or directory");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    refused(&["-pol"], "/policies: not a plain file");
    std::fs::remove_file(&path).unwrap();
    rig.write("elsewhere", "policy: a\nsort: NLB_NCPUS\n");
    std::os::unix::fs::symlink(rig.path("elsewhere"), &path).unwrap();
    refused(&["-pol"], "/policies: a symbolic link is not followed");
}

fn bad_config(rig: &Rig, refused: &dyn Fn(&[&str], &str)) {
    let config = rig.path(&format!("{DIR}/config"));
    let faults = [
        "/config:1:1: <mast>: a line with a colon is wanted",
        "/config: larger than",
        "/config:1:1: not UTF-8",
    ];
    for ((_, bytes), words) in bad_texts("mast").into_iter().zip(faults) {
        std::fs::write(&config, bytes).unwrap();
        refused(&["-conf"], words);
    }
    std::fs::remove_file(&config).unwrap();
    assert!(Command::new("mkfifo").arg(&config).status().unwrap().success());
    refused(&["-conf"], "/config: not a plain file");
    std::fs::remove_file(&config).unwrap();
}

#[test]
fn files_that_are_half_large_links_or_no_text_change_nothing_and_are_told() {
    let rig = Rig::up("nlbfiles", 1);
    with_server(&rig);
    hosts(&rig, &[]);
    let before = in_force(&rig);
    let refused = |args: &[&str], words: &str| {
        let said = rig.run("nlbconfig", args);
        assert_eq!((said.code, said.out.as_str()), (255, ""), "{args:?}: {}", said.err);
        assert!(said.err.contains(words), "{args:?}: {}, wanted {words}", said.err);
        assert_eq!(in_force(&rig), before, "{args:?}");
    };
    bad_policies(&rig, &refused);
    let maps = ["half:2:8: <int> is no kind", "large: larger than 2 MB", "bytes:1:1: not UTF-8"];
    for ((name, bytes), words) in bad_texts("map NLB = 1024 {\n\tX \"x\" int").into_iter().zip(maps)
    {
        std::fs::write(rig.path(name), bytes).unwrap();
        refused(&["-mput", "-f", name], words);
    }
    let value = "half:2:14: a value is wanted before the end of the file";
    let objects = [value, "large: larger than 2 MB", "bytes:1:1: not UTF-8"];
    for ((name, bytes), words) in
        bad_texts("object NLB (host1) {\n NLB_CLOCK = ").into_iter().zip(objects)
    {
        std::fs::write(rig.path(name), bytes).unwrap();
        refused(&["-oupdat", name], words);
        refused(&["-oput", name], words);
    }
    refused(&["-oupdat", "absent"], "absent: No such file or directory");
    refused(&["-oupdat", "."], ".: Is a directory");
    bad_config(&rig, &refused);
    // bad policies at a start: those last accepted run
    let good = hosts(&rig, &[]);
    assert!(rig.kill9("nlbserver", "host1"));
    assert_eq!(hosts(&rig, &[]), good);
    // a name map that is a link hinders it, with words
    let map = rig.path(&format!("{DIR}/name_map"));
    std::fs::rename(&map, rig.path("moved")).unwrap();
    std::os::unix::fs::symlink(rig.path("moved"), &map).unwrap();
    assert!(rig.kill9("nlbserver", "host1"));
    let words = format!("{}: a symbolic link is not followed", map.display());
    wait_for("the log to tell", || rig.read("log/nlbserver.log.host1").contains(&words));
    std::fs::rename(rig.path("moved"), &map).unwrap();
    assert_eq!(hosts(&rig, &[]), good);
}
