//! Pipe queues in a cluster: the manual's own commands from qmgr to the host that the policy put
//! first, over a kill -9 of mbatchd and of nlbserver.

use crate::nlb::{hosts, with_server};
use crate::rig::{Rig, Said, kill, skipped, wait_for};
use crate::site::{ADMIN, MultiUserSite, uid};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The policies file of the cluster's server.
const POLICIES: &str = "work/personal/nqe/nlbdir/policies";

/// Puts the hosts in this order for every policy: the last one is best.
fn order(rig: &Rig, hosts: &[&str]) {
    let map = rig.path("name_map");
    let map = map.to_str().unwrap();
    rig.ok("nlbconfig", &["-mdump", "-f", map]);
    let text = rig.read("name_map");
    if !text.contains("NLB_SITE_RANK") {
        let rank = "map NLB = 1024 {\n\tNLB_SITE_RANK \"Rank\" integer(8192);\n\
                    \thost_nastran \"Host supports nastran\" integer(8193);";
        let job = "map NLB_JOB = 1025 {\n\tjob_nastran \"Job requires nastran\" integer(8192);";
        let text = text.replace("map NLB = 1024 {", rank).replace("map NLB_JOB = 1025 {", job);
        rig.write("name_map", &text);
        rig.ok("nlbconfig", &["-mput", "-f", map]);
        let policy = "policy: nqs\nconstraint: exists(NLB_QUEUE_NAME)\n\
                      constraint: exists(job_nastran) => exists(host_nastran)\n\
                      sort: NLB_SITE_RANK\n";
        rig.write(POLICIES, policy);
        rig.ok("nlbconfig", &["-pol"]);
    }
    let objects: Vec<String> = hosts
        .iter()
        .zip(1..)
        .map(|(host, n)| format!("object NLB ({host}) {{ NLB_SITE_RANK = {n}; }}\n"))
        .collect();
    rig.write("objects", &objects.concat());
    rig.ok("nlbconfig", &["-oupdat", "objects"]);
}

/// The state and the host of a job.
fn where_is(rig: &Rig, job: &str) -> String {
    let out = rig.ok("bjobs", &["-a", "-noheader", "-o", "stat first_host queue", job]);
    out.trim().to_owned()
}

#[test]
fn request_runs_on_the_host_that_the_policy_put_first() {
    let rig = Rig::up("nqs", 3);
    with_server(&rig);
    hosts(&rig, &[]);
    order(&rig, &["host1", "host3", "host2"]);
    let commands = "create pipe_queue nlbqueue server=(pipeclient CRI_DS) priority=33\n\
                    set default batch_request queue nlbqueue\nquit\n";
    let said = rig.feed("qmgr", &[], commands);
    let answers = "Queue <nlbqueue> is created.\nThe default batch_request queue is <nlbqueue>.\n";
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (0, answers, ""));
    // the queue is one of LSF's, too
    assert!(rig.ok("bqueues", &["-l", "nlbqueue"]).contains("NQS DESTINATION QUEUES:  CRI_DS\n"));
    rig.write("job.sh", "#QSUB -r prod\nsleep 100\n");
    let said = rig.ok("cqsub", &["-lM", "10mw", "job.sh"]);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], "nqs-181 cqsub: INFO");
    let prefix = "  Request <1.host1>: Submitted to queue <nlbqueue> by <";
    assert!(lines[1].starts_with(prefix), "{said}");
    wait_for("the request to run", || where_is(&rig, "1").starts_with("RUN"));
    assert_eq!(where_is(&rig, "1"), "RUN host2 normal");
    let shown = rig.ok("cqstatl", &["-a"]);
    let row = shown.lines().last().unwrap();
    assert!(row.starts_with("1.host1           prod    "), "{shown}");
    assert!(row.contains(" normal@host2 ") && row.contains(" 80 "), "{shown}");
    let full = rig.ok("cqstatl", &["-f", "1"]);
    assert!(full.contains("NLB policy of the routing: nqs\n"), "{full}");
    assert!(full.contains("Choice among the hosts: 1 of 3\n"), "{full}");
    assert!(full.contains("Pipe queue of submission: nlbqueue\n"), "{full}");
    let words = "by policy <nqs> (3.000000, choice 1 of 3)";
    let history = rig.ok("bhist", &["-l", "1"]).replace("\n                     ", "");
    assert!(history.contains(&format!("Routed to normal@host2 {words}")), "{history}");
    let long = rig.ok("bjobs", &["-l", "1"]).replace("\n                     ", "");
    assert!(long.contains(words), "{long}");
    // not without -k
    let refused = rig.run("cqdel", &["1.host1"]);
    let words = "Request <1.host1> is running: use -k, or -s to signal it.\n";
    assert_eq!((refused.code, refused.err.as_str()), (255, words));
    assert_eq!(rig.ok("cqdel", &["-k", "1.host1"]), "Request <1.host1> has been deleted.\n");
    wait_for("the request to end", || where_is(&rig, "1").starts_with("EXIT"));
    let none = rig.run("cqstatl", &["1"]);
    assert_eq!((none.code, none.err.as_str()), (255, "Request <1.host1> does not exist.\n"));
}

#[test]
fn request_waits_for_the_server_and_for_a_host_with_its_package() {
    let rig = Rig::up("nqs-wait", 2);
    with_server(&rig);
    hosts(&rig, &[]);
    order(&rig, &["host1", "host2"]);
    rig.ok("qmgr", &["create pipe_queue nlbqueue server=(pipeclient CRI_DS) priority=33"]);
    rig.write("job.sh", "true\n");
    rig.ok("cqsub", &["-q", "nlbqueue", "-la", "nastran", "job.sh"]);
    let waits = |words: &str| {
        wait_for(words, || rig.ok("bjobs", &["-p", "1"]).replace("\n ", "").contains(words));
    };
    waits("no host meets the policy <nqs>; next try at ");
    // the request outlives both daemons
    assert!(rig.kill9("mbatchd", "host1"));
    rig.ready();
    waits("no host meets the policy <nqs>");
    rig.write("has", "object NLB (host1) { host_nastran = 1; }\n");
    rig.ok("nlbconfig", &["-oupdat", "has"]);
    // a reload is a change that may matter: nobody waits five minutes
    rig.ok("nlbconfig", &["-pol"]);
    wait_for("the request to end", || where_is(&rig, "1") == "DONE host1 normal");
    // definitions are there after the kill
    let snap = rig.ok("qmgr", &["snap"]);
    assert!(snap.contains("create pipe_queue nlbqueue priority=33 server=(pipeclient CRI_DS)\n"));
    // held until released, deleted without -k
    rig.ok("qmgr", &["stop queue nlbqueue"]);
    rig.ok("cqsub", &["-q", "nlbqueue", "job.sh"]);
    assert_eq!(rig.ok("cqdel", &["2"]), "Request <2.host1> has been deleted.\n");
}

#[test]
fn qmgr_refuses_what_is_wrong_and_changes_nothing() {
    let rig = Rig::up("qmgr", 1);
    let before = rig.ok("qmgr", &["snap"]);
    let said = rig.feed(
        "qmgr",
        &[],
        "create pipe_queue normal\nst queue q\n\ncreate pipe_queue a destination=(nosuch)\n\
         create pipe_queue a server=(pipeclient) destination=(normal)\n\
         create pipe_queue b server=(pipeclient) destination=(a)\nset validation password\n\
         add managers = joe\ndelete queue normal\nquit\n",
    );
    assert_eq!(said.code, 255);
    assert_eq!(said.out, "Queue <a> is created.\n");
    let path = "conf/lsbatch/personal/configdir/lsb.nqs";
    let path = rig.path(path);
    let told: Vec<&str> = said.err.lines().collect();
    let at = path.display();
    let want = [
        "stdin:1:1: queue <normal> is already defined in lsb.queues".to_owned(),
        "stdin:2:1: <st> is ambiguous: start or stop".to_owned(),
        format!("stdin:4:1: {at}:2:1: <nosuch>: there is no queue <nosuch>"),
        "nothing is changed".to_owned(),
        format!("stdin:6:1: {at}:3:1: <a> is a pipe queue, which is no destination"),
        "nothing is changed".to_owned(),
        "stdin:7:16: passwords are never sent".to_owned(),
        "stdin:8:1: managers are the administrators of LSF: lsf.cluster, lsb.queues".to_owned(),
        "stdin:9:1: queue <normal> is defined in lsb.queues: change it there".to_owned(),
    ];
    assert_eq!(told, want);
    rig.ok("qmgr", &["delete queue a"]);
    assert_eq!(rig.ok("qmgr", &["snap"]), before);
    for (args, words) in [
        (&["-P", "x"][..], "cqsub: -P: passwords are never sent\n"),
        (&["-d", "nqedb", "x"], "cqsub: -d nqedb: there is no NQE database here\n"),
        (&["-lU", "z", "2", "x"], "cqsub: -lU <z>: a type from a to h and a number are wanted\n"),
        // a script on standard input is not waited for
        (
            &["-lc", "x"],
            "cqsub: -lc <x>: a size is a number with one of the units b w kb kw mb mw gb gw tb tw\n",
        ),
    ] {
        rig.write("x", "true\n");
        let said = rig.run("cqsub", args);
        assert_eq!((said.code, said.err.as_str()), (255, words), "{args:?}");
    }
    let bad = rig.run("cqsub", &["-lM", "10q", "x"]);
    assert!(bad.code == 255 && bad.err.starts_with("cqsub: -lM <10q>: a size is"), "{}", bad.err);
    let unknown = rig.run("cqsub", &["-lX", "1", "x"]);
    assert_eq!((unknown.code, unknown.out.as_str()), (255, ""));
    assert!(rig.ok("bjobs", &["-a"]).is_empty(), "something was submitted");
}

#[test]
fn definitions_that_are_half_large_a_pipe_or_no_text_are_refused_with_their_place() {
    let rig = Rig::up("nqsfile", 1);
    rig.ok("qmgr", &["create batch_queue extra priority=3"]);
    let before = rig.ok("bqueues", &[]);
    let path = rig.configdir().join("lsb.nqs");
    let good = std::fs::read(&path).unwrap();
    let refused = |words: &str| {
        for command in ["ckconfig", "reconfig"] {
            let said = rig.run("badmin", &[command]);
            let text = format!("{}{}", said.out, said.err);
            assert_eq!(said.code, 255, "{command}: {text}");
            assert!(text.contains(words), "{command}: {text}, wanted {words}");
        }
        assert_eq!(rig.ok("bqueues", &[]), before, "{words}");
    };
    let half = good[..good.len() / 2].to_vec();
    let large = b"# x\n".repeat(5 << 18);
    for (bytes, words) in [
        (half, "lsb.nqs:2:18: the name of a queue is wanted at the end"),
        (large, "lsb.nqs: larger than 1 MB"),
        (b"\xff\xfe\n".to_vec(), "lsb.nqs:1:1: not UTF-8"),
    ] {
        std::fs::write(&path, bytes).unwrap();
        refused(words);
    }
    std::fs::remove_file(&path).unwrap();
    let fifo = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(fifo.success());
    refused("lsb.nqs: not a regular file");
    // what is there again is read again
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, good).unwrap();
    rig.ok("badmin", &["reconfig", "-f"]);
    assert_eq!(rig.ok("bqueues", &[]), before);
}

/// The request waits with these words.
fn waits(site: &MultiUserSite, job: u32, words: &str) {
    wait_for(words, || {
        let told = site.run("ann", &format!("bjobs -p {job}")).out;
        told.replace("\n ", "").contains(words)
    });
}

#[test]
fn file_validation_reads_the_files_of_the_submitter_as_the_submitter() {
    if !MultiUserSite::possible("file_validation_reads_the_files_of_the_submitter_as_the_submitter")
    {
        return;
    }
    let site = MultiUserSite::up("nqshosts", 2);
    // mbatchd writes lsb.nqs as the administrator
    let configdir = site.path("conf/lsbatch/personal/configdir");
    chown(configdir, Some(uid(ADMIN)), None).unwrap();
    let set = "lsf qmgr create batch_queue b && \
               lsf qmgr 'create pipe_queue p server=(pipeclient) destination=(b@host2)' && \
               lsf qmgr set validation file && lsf qmgr show parameters && lsf qmgr snap";
    let said = site.ok(ADMIN, set);
    assert!(said.contains("Requests are validated by files of their users.\n"), "{said}");
    assert!(said.contains("Validation = file\n") && said.ends_with("set validation file\n"));
    let line = "LSF_LOCAL_HOST=host1 bsub -q p -o /dev/null true";
    let submit = || super::rig::job_id(&site.ok("ann", line)).unwrap();
    let none = "b@host2 (user ann has no line for host1 in .nqshosts or .rhosts on host2";
    let job = submit();
    waits(&site, job, &format!("{none})"));
    // everybody, a file of root's with the right line, and a home that is closed to its user
    let home = site.path("home/ann");
    let file = home.join(".nqshosts");
    let write = |text: &str, owner: u32, mode: u32| {
        let _ = std::fs::remove_file(&file);
        std::fs::write(&file, text).unwrap();
        chown(&file, Some(owner), Some(owner)).unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
    };
    // the answer before holds for a minute: another user asks anew, as does another submission host
    let bobs = site.path("home/bob/.rhosts");
    std::fs::write(&bobs, "+ +\n+\nhost1 ann\nhost2\n").unwrap();
    chown(&bobs, Some(uid("bob")), Some(uid("bob"))).unwrap();
    std::fs::set_permissions(&bobs, PermissionsExt::from_mode(0o600)).unwrap();
    let bob = super::rig::job_id(&site.ok("bob", line)).unwrap();
    waits(&site, bob, "b@host2 (user bob has no line for host1 in .nqshosts or .rhosts on host2)");
    let other = line.replace("host1", "host2");
    let own = super::rig::job_id(&site.ok("bob", &other)).unwrap();
    assert_eq!(site.end_of(own), "DONE");
    // read with ann's rights alone: what ann cannot reach says nothing
    write("host2\n", uid("ann"), 0o600);
    chown(&home, Some(0), Some(0)).unwrap();
    std::fs::set_permissions(&home, PermissionsExt::from_mode(0o700)).unwrap();
    let submit2 = |dir: &str| {
        let line = format!("cd {dir} && LSF_LOCAL_HOST=host2 bsub -q p -o /dev/null true");
        super::rig::job_id(&site.ok("ann", &line)).unwrap()
    };
    let closed = submit2("/tmp");
    let words = "has no line for host2 in .nqshosts or .rhosts on host2; .nqshosts is not used: \
                 Permission denied";
    waits(&site, closed, words);
    chown(&home, Some(uid("ann")), Some(uid("ann"))).unwrap();
    // a minute later the file counts as it is then
    write("# mine\nhost1 ann\n", uid("ann"), 0o600);
    std::thread::sleep(std::time::Duration::from_secs(61));
    site.ok(ADMIN, "lsf qmgr set priority = 3 b");
    assert_eq!(site.end_of(job), "DONE");
    let history = site.ok("ann", &format!("bhist -l {job}")).replace("\n                     ", "");
    assert!(history.contains("Routed to b@host2"), "{history}");
    // without validation everybody goes
    assert!(site.ok(ADMIN, "lsf qmgr set no_validation").contains("are not validated"));
    assert_eq!(site.end_of(closed), "DONE");
    assert_eq!(site.end_of(bob), "DONE");
}

#[test]
fn snap_given_to_qmgr_of_an_empty_cluster_makes_the_same_snap() {
    let rig = Rig::up("snap", 2);
    let commands = "create batch_queue plain\n\
                    create batch_queue full priority=63 run_limit=7 loadonly pipeonly\n\
                    create batch_queue zero priority=0\n\
                    create pipe_queue nqs server=(pipeclient CRI_DS) priority=33\n\
                    create pipe_queue cpu server=(pipeclient CRI_DS CPU host1:6883) run_limit=3\n\
                    create pipe_queue own server=(pipeclient CRI_DS host2:6883)\n\
                    create pipe_queue to server=(pipeclient) \
                    destination=(full@host1,plain,normal)\n\
                    create pipe_queue bare server=(pipeclient)\n\
                    set default batch_request queue to\n\
                    set default destination_retry time 7\n\
                    set default destination_retry wait 100\n\
                    set validation file\n\
                    disable queue cpu\n\
                    stop queue plain\n\
                    stop queue normal\n";
    let said = rig.feed("qmgr", &[], commands);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{}", said.out);
    let file = rig.path("snap").display().to_string();
    assert_eq!(rig.ok("qmgr", &["snap", "file", "=", &file]), "");
    let snap = rig.read("snap");
    // batch queues, which are the destinations of the others, go before
    let want = "create batch_queue plain priority=1\n\
                create batch_queue full priority=63 run_limit=7 loadonly pipeonly\n\
                create batch_queue zero priority=0\n\
                create pipe_queue nqs priority=33 server=(pipeclient CRI_DS)\n\
                create pipe_queue cpu priority=1 server=(pipeclient CRI_DS CPU host1:6883) \
                run_limit=3\n\
                create pipe_queue own priority=1 server=(pipeclient CRI_DS nqs host2:6883)\n\
                create pipe_queue to priority=1 server=(pipeclient) \
                destination=(full@host1,plain,normal)\n\
                create pipe_queue bare priority=1 server=(pipeclient)\n\
                set default batch_request queue to\n\
                set default destination_retry time 7\n\
                set default destination_retry wait 100\n\
                set validation file\n";
    let (head, defined) = snap.split_once('\n').unwrap();
    assert!(head.starts_with("# "), "{snap}");
    assert!(defined.starts_with(want), "{snap}");
    let mut controls: Vec<&str> = defined[want.len()..].lines().collect();
    controls.sort_unstable();
    assert_eq!(controls, ["disable queue cpu", "stop queue normal", "stop queue plain"]);
    let empty = Rig::up("snapped", 2);
    assert_ne!(empty.ok("qmgr", &["snap"]), snap);
    let said = empty.feed("qmgr", &[], &snap);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{}", said.out);
    assert_eq!(empty.ok("qmgr", &["snap"]), snap);
    // also over a kill of mbatchd, and what the users see
    assert!(empty.kill9("mbatchd", "host1"));
    empty.ready();
    assert_eq!(empty.ok("qmgr", &["snap"]), snap);
    for args in [&["show", "parameters"][..], &["show", "destinations"], &["show", "queue", "full"]]
    {
        assert_eq!(empty.ok("qmgr", args), rig.ok("qmgr", args), "{args:?}");
    }
}

/// A request that has ended is shown until the commands after it have.
fn exits_while_commands_run_after_its_end(rig: &Rig, out: &str) {
    let post = format!("while [ ! -e {out}.go ]; do sleep 0.1; done");
    let job = rig.bsub(&["-q", "normal", "-o", "/dev/null", "-Ep", &post, "true"]);
    wait_for("the job to end", || rig.stat(job) == "DONE");
    let row = || {
        let all = rig.ok("cqstatl", &["-b"]);
        let row = all.lines().find(|line| line.starts_with("normal ")).map(str::to_owned);
        row.unwrap_or_else(|| panic!("{all}"))
    };
    let tail = |row: &str| row.split_whitespace().skip(2).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(tail(&row()), ["1", "yes", "on", "0", "0", "0", "0", "0", "1"]);
    // the request itself, for everybody who asks; nobody may think it can still be ended
    let user = rig.field(&job.to_string(), "user");
    let request = format!(
        "-----------------------------\nNQS BATCH REQUEST SUMMARY\n-----------------------------\n\
         IDENTIFIER        NAME    USER     QUEUE                 JID     PRTY REQMEM  REQTIM  ST\n\
         ----------------- ------- -------- --------------------- ------- ---- ------- ------- \
         ---\n\
         {:<17} {:<7} {user:<8} normal                2       0    --      --      E\n",
        "2.host1", "true"
    );
    for operands in [&["-a"][..], &["2"], &["-u", &user], &["-h", "host1"]] {
        assert_eq!(rig.ok("cqstatl", operands), request, "{operands:?}");
    }
    assert!(rig.ok("cqstatl", &["-f", "2"]).contains("Exiting\n"));
    let kept = rig.run("cqdel", &["-k", "2"]);
    let words = "Request <2.host1> has ended; the commands after it are left to run.\n";
    assert_eq!((kept.code, kept.err.as_str()), (255, words));
    rig.write("out.go", "");
    wait_for("the commands to end", || tail(&row())[8] == "0");
    let none = rig.run("cqstatl", &["2"]);
    assert_eq!((none.code, none.err.as_str()), (255, "Request <2.host1> does not exist.\n"));
    // users and hosts without requests, and those that there are not
    for operands in [&["-a"][..], &["-u", &user], &["-u", "all"], &["-h", "host1"]] {
        let said = rig.run("cqstatl", operands);
        assert_eq!((said.code, said.out + &said.err), (0, String::new()), "{operands:?}");
    }
    for (operands, words) in [
        (&["-u", "no_such"][..], "no_such: Unknown user"),
        (&["-a", "-h", "no_such"], "no_such: Bad host name, host group name or cluster name"),
    ] {
        let said = rig.run("cqstatl", operands);
        let want = (255, format!("cqstatl: {words}\n"));
        assert_eq!((said.code, said.out + &said.err), want, "{operands:?}");
    }
}

#[test]
fn request_has_its_identifier_and_what_the_esubs_of_the_site_change() {
    let rig = Rig::up("nqsesub", 1);
    let script = |name: &str, text: &str| {
        rig.write(
            name,
            &format!("#!/bin/sh\n{}\n", text.replace("DIR", rig.dir.to_str().unwrap())),
        );
        std::fs::set_permissions(rig.path(name), PermissionsExt::from_mode(0o755)).unwrap();
    };
    std::fs::create_dir_all(rig.path("etc")).unwrap();
    script(
        "etc/esub",
        "test $LSF_INVOKE_CMD = cqsub || exit 0\ncp $LSB_SUB_PARM_FILE DIR/shown\n\
         grep -q never $LSB_SUB_PARM_FILE && exit $LSB_SUB_ABORT_VALUE\n\
         echo 'LSB_SUB_PROJECT_NAME=\"changed\"' >> $LSB_SUB_MODIFY_FILE\n\
         echo 'FROM_ESUB=\"yes\"' >> $LSB_SUB_MODIFY_ENVFILE",
    );
    script("etc/epsub", "echo $LSB_SUB_JOB_ID $LSB_SUB_JOB_QUEUE $LSB_SUB_JOB_ERR >> DIR/told");
    let out = rig.path("out").display().to_string();
    let line = format!("echo $QSUB_REQID $QSUB_REQNAME $FROM_ESUB > {out}\n");
    rig.write("job.sh", &line);
    let said = rig.ok("cqsub", &["-q", "normal", "-A", "p", "-lM", "10mw", "job.sh"]);
    assert!(said.contains("Request <1.host1>: Submitted to queue <normal>"), "{said}");
    wait_for("the request to end", || where_is(&rig, "1") == "DONE host1 normal");
    assert_eq!(rig.read("out"), "1.host1 job.sh yes\n");
    assert_eq!(rig.field("1", "proj_name"), "changed");
    let shown = rig.read("shown");
    for line in
        ["LSB_SUB_PROJECT_NAME=\"p\"", "LSB_SUB_JOB_NAME=\"job.sh\"", "LSB_SUB_QUEUE=\"normal\""]
    {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    assert_eq!(rig.read("told"), "1 normal 0\n");
    let refused = rig.run("cqsub", &["-q", "normal", "-r", "never", "job.sh"]);
    let words = "cqsub: Request aborted by esub\n";
    assert_eq!((refused.code, refused.out.as_str(), refused.err.as_str()), (255, "", words));
    exits_while_commands_run_after_its_end(&rig, &out);
}

/// The object data of requests without what differs from run to run, and with `DIR` and `USER`.
fn plain(text: &str, dir: &str, user: &str) -> String {
    let differs = |line: &&str| !line.contains("NJS_SHELL") && !line.contains("NJS_CREATED");
    let lines: Vec<&str> = text.lines().filter(differs).collect();
    let text = lines.join("\n").replace(dir, "DIR");
    text.replace(&format!("\"{user}\""), "\"USER\"") + "\n"
}

#[test]
fn requests_are_objects_that_mbatchd_answers_for() {
    let rig = Rig::up("njs", 1);
    with_server(&rig);
    hosts(&rig, &[]);
    assert_eq!(rig.ok("nlbconfig", &["-t", "NJS", "-olist"]), "");
    assert_eq!(rig.ok("nlbconfig", &["-t", "NJS", "-odump"]), "");
    rig.ok("qmgr", &["stop queue normal"]);
    rig.write("job.sh", "sleep 100\n");
    let limits = ["-lM", "10mw", "-lT", "30", "-lt", "20", "-lm", "1mb", "-lF", "5kb"];
    rig.ok("cqsub", &[&["-q", "normal", "-A", "acct"][..], &limits, &["job.sh"]].concat());
    rig.ok("cqsub", &["-q", "normal", "-r", "second", "-la", "nastran", "job.sh"]);
    let listed = "object NJS (1.host1)\nobject NJS (2.host1)\n";
    assert_eq!(rig.ok("nlbconfig", &["-t", "njs", "-olist"]), listed);
    // of all types: what the server stores
    assert_eq!(rig.ok("nlbconfig", &["-olist"]), "object NLB (host1)\n");
    let dumped = rig.ok("nlbconfig", &["-odump", "-t", "NJS"]);
    let dir = rig.dir.display().to_string();
    let user = rig.field("1", "user");
    assert_eq!(plain(&dumped, &dir, &user), include_str!("expected/requests.objects"));
    // its names are those of the server's map; a dump is good object data
    rig.ok("nlbconfig", &["-mdump", "-t", "NJS", "-f", rig.path("map").to_str().unwrap()]);
    rig.write("map", &rig.read("map").replace("NJS_QUENAM", "NJS_QUEUE"));
    rig.ok("nlbconfig", &["-mput", "map"]);
    rig.ok("nlbconfig", &["-t", "NJS", "-odump", "-n", "2", "-f", "second"]);
    let second = rig.read("second");
    assert!(second.starts_with("object NJS (2.host1) {\n"), "{second}");
    assert!(second.contains("\tNJS_QUEUE = \"normal\";\n\t"), "{second}");
    assert!(rig.ok("nlbconfig", &["-check", "second"]).starts_with("1 object"));
    // nobody stores one
    for (args, words) in [
        (&["-t", "NJS", "-odump", "-n", "9"][..], "nlbconfig: no object <9>\n"),
        (
            &["-oupdat", "second"],
            "second: requests are not stored here: cqsub makes one\n\
             nlbconfig: host1: objects not taken\n",
        ),
        (
            &["-t", "NJS", "-odel", "-n", "2.host1"],
            "requests are not stored here: cqdel deletes one\n\
             nlbconfig: host1: nothing was deleted\n",
        ),
    ] {
        let said = rig.run("nlbconfig", args);
        assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (255, "", words), "{args:?}");
    }
    rig.ok("qmgr", &["start queue normal"]);
    wait_for("the request to run", || where_is(&rig, "1").starts_with("RUN"));
    let runs = rig.ok("nlbconfig", &["-odump", "-t", "NJS", "-n", "1.host1"]);
    assert!(runs.contains("\tNJS_JOBSTAT = \"Running\";\n"), "{runs}");
    assert!(runs.contains("\tNJS_EXECHOST = \"host1\";\n") && runs.contains("\tNJS_STARTED = "));
    assert!(!runs.contains("NJS_QUEENT"), "{runs}");
    rig.ok("cqdel", &["-k", "1", "2"]);
    wait_for("the requests to end", || rig.ok("nlbconfig", &["-t", "NJS", "-olist"]).is_empty());
}

/// The bytes that a command reads from its connections; `None`: strace cannot look.
fn bytes_read(rig: &Rig, command: &str, args: &[&str]) -> Option<u64> {
    let trace = rig.path("trace");
    let mut strace = Command::new("strace");
    strace.args(["-e", "trace=read,recvfrom", "-o"]).arg(&trace);
    strace.arg(rig.path("bin").join(command)).args(args);
    rig.dress(&mut strace);
    strace.output().ok().filter(|out| out.status.success())?;
    let text = std::fs::read_to_string(&trace).ok()?;
    let count = |line: &str| line.rsplit_once(" = ")?.1.split(' ').next()?.parse::<u64>().ok();
    Some(text.lines().filter_map(count).sum())
}

/// The place of a request in its queue is found without a list of all requests.
#[test]
fn place_of_a_request_is_shown_without_a_list_of_other_queues_or_of_those_behind_it() {
    let rig = Rig::up("njsplace", 1);
    let params = "conf/lsbatch/personal/configdir/lsb.params";
    let text = rig.read(params).replace("End Param", "MAX_JOB_ARRAY_SIZE = 20000\nEnd Param");
    rig.write(params, &text);
    rig.ok("badmin", &["reconfig"]);
    rig.ok("qmgr", &["stop queue normal"]);
    rig.ok("qmgr", &["stop queue idle"]);
    rig.write("job.sh", "true\n");
    rig.ok("cqsub", &["-q", "normal", "job.sh"]);
    rig.ok("cqsub", &["-q", "normal", "job.sh"]);
    let place = |id: &str, place: &str| {
        let shown = rig.ok("cqstatl", &["-f", id]);
        assert!(shown.contains(&format!("Position in queue: {place}\n")), "{shown}");
    };
    place("2", "2");
    let read = |id: &str| bytes_read(&rig, "cqstatl", &["-f", id]);
    let Some(before) = read("2") else {
        return skipped("place_of_a_request: strace cannot look");
    };
    for queue in ["idle", "normal"] {
        let array = ["-q", queue, "-J", "many[1-20000]", "-o", "/dev/null", "true"];
        rig.ok("bsub", &array);
    }
    // 20,000 rows are half a megabyte; the first piece of them is 64 KB
    for id in ["1", "2"] {
        place(id, id);
        let more = read(id).unwrap().saturating_sub(before);
        assert!(more < 200 << 10, "{id}: {more} bytes more than {before}");
    }
    place("4[3]", "5");
}

/// mbatchd dies between a change of lsb.nqs and its answer: qmgr asks again.
#[test]
fn definition_whose_answer_is_lost_is_made_once_and_told_as_made() {
    let rig = Rig::up("qmgrlost", 1);
    let path = rig.path("conf/lsbatch/personal/configdir/lsb.nqs");
    let inode = || std::fs::metadata(&path).map_or(0, |file| file.ino());
    for n in 0..4 {
        let (before, mbatchd) = (inode(), rig.pid("mbatchd", "host1").unwrap());
        let mut qmgr = rig.cmd("qmgr");
        qmgr.arg(format!("create batch_queue b{n}")).stdout(Stdio::piped()).stderr(Stdio::piped());
        let qmgr = qmgr.spawn().unwrap();
        // the answer follows within milliseconds
        let begun = Instant::now();
        while inode() == before && begun.elapsed() < Duration::from_secs(60) {
            std::thread::yield_now();
        }
        kill(mbatchd, 9);
        let said = Said::from(qmgr.wait_with_output().unwrap());
        let created = format!("Queue <b{n}> is created.\n");
        assert_eq!((said.code, said.out), (0, created), "{}", said.err);
        wait_for("another mbatchd", || rig.pid("mbatchd", "host1").is_some_and(|p| p != mbatchd));
    }
    let snap = rig.ok("qmgr", &["snap"]);
    for n in 0..4 {
        assert_eq!(snap.matches(&format!("create batch_queue b{n} ")).count(), 1, "{snap}");
    }
}
