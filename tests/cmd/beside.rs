//! Commands that bsub runs beside a job: pre- and post-execution commands of the job and its queue,
//! a login shell, file transfers, esubs; hosts held alone; job groups; files of submissions. On a
//! cluster of its own, since its queues and lsf.conf are other ones.

use crate::rig::{Rig, job_id, program, wait_for};

const QUEUE: &str = "
Begin Queue
QUEUE_NAME = hooks
PRIORITY   = 50
EXCLUSIVE  = Y
PRE_EXEC   = DIR/qpre
POST_EXEC  = DIR/qpost
End Queue
";

fn cluster() -> Rig {
    let rig = Rig::up("beside", 2);
    rig.ready();
    let dir = rig.dir.display().to_string();
    let queues = rig.configdir().join("lsb.queues");
    let text = std::fs::read_to_string(&queues).unwrap();
    std::fs::write(&queues, format!("{text}{}", QUEUE.replace("DIR", &dir))).unwrap();
    let params = rig.configdir().join("lsb.params");
    let text = std::fs::read_to_string(&params).unwrap();
    let text = text.replace(
        "MBD_SLEEP_TIME = 10",
        "MBD_SLEEP_TIME = 1\nPREEXEC_EXCLUDE_HOST_EXIT_VALUES = 20 21",
    );
    std::fs::write(&params, text).unwrap();
    script(&rig, "qpre", "echo qpre $PATH $PWD >> DIR/trail");
    script(&rig, "qpost", "echo qpost $LSB_JOBEXIT_STAT >> DIR/trail");
    rig.ok("badmin", &["reconfig"]);
    rig
}

fn script(rig: &Rig, name: &str, text: &str) {
    let text = format!("#!/bin/sh\n{}\n", text.replace("DIR", &rig.dir.display().to_string()));
    program(&rig.path(name), &text);
}

/// Why a job waits; nothing where it does not.
fn why(rig: &Rig, id: &str) -> String {
    rig.run("bjobs", &["-p", id]).out
}

#[test]
fn submissions_use_commands_files_and_programs_of_the_site() {
    let rig = cluster();
    commands_before_and_after(&rig);
    pre_execution_that_aborts(&rig);
    pre_execution_that_excludes_its_host(&rig);
    a_login_shell(&rig);
    files_travel(&rig);
    hosts_held_alone(&rig);
    job_groups(&rig);
    esubs(&rig);
    a_file_of_submissions(&rig);
    limits_of_a_running_job(&rig);
}

fn commands_before_and_after(rig: &Rig) {
    let log = rig.path("trail").display().to_string();
    let go = rig.path("go").display().to_string();
    let pre = format!("echo pre $MINE >> {log}; test -e {go}");
    let post = format!("echo post $LSB_JOBEXIT_STAT $MINE $PWD >> {log}");
    let id = rig
        .bsub(&[
            "-q",
            "hooks",
            "-env",
            "all, MINE=x",
            "-E",
            &pre,
            "-Ep",
            &post,
            "-o",
            "/dev/null",
            &format!("echo job >> {log}; exit 3"),
        ])
        .to_string();
    wait_for("the pre-exec command to fail", || {
        why(rig, &id).contains("The job's pre-exec command exited with non-zero status")
    });
    std::fs::write(&go, "").unwrap();
    assert_eq!(rig.end_of(id.parse().unwrap()), "EXIT");
    assert_eq!(rig.field(&id, "exit_code"), "3");
    wait_for("the post-exec commands", || rig.read("trail").contains("qpost 768"));
    let text = rig.read("trail");
    let lines: Vec<&str> = text.lines().collect();
    let end = lines.len();
    assert!(end >= 7, "{text}");
    let dir = rig.dir.display();
    assert_eq!(
        lines[end - 5..],
        [
            "qpre /bin:/usr/bin:/sbin:/usr/sbin /tmp",
            "pre x",
            "job",
            &format!("post 768 x {dir}"),
            "qpost 768"
        ],
        "{text}"
    );
    let long = rig.ok("bjobs", &["-UF", &id]);
    assert!(long.contains(", Pre-execute Command <echo pre"), "{long}");
    assert!(long.contains(", Post-execute Command <echo post"), "{long}");
}

fn pre_execution_that_aborts(rig: &Rig) {
    let ran = rig.path("ran").display().to_string();
    let id = rig.bsub(&["-E", "exit $LSB_EXIT_PRE_ABORT", "-o", "/dev/null", "touch", &ran]);
    assert_eq!(rig.end_of(id), "EXIT");
    assert_eq!(rig.field(&id.to_string(), "exit_code"), "99");
    assert!(!rig.path("ran").exists());
}

fn pre_execution_that_excludes_its_host(rig: &Rig) {
    let first = rig.path("first").display().to_string();
    let pre = format!("test ! -e {first} && echo $LSB_HOSTS > {first} && exit 20; exit 0");
    let id = rig.bsub(&["-E", &pre, "-o", "/dev/null", "sleep 0"]);
    assert_eq!(rig.end_of(id), "DONE");
    let id = id.to_string();
    assert_ne!(rig.field(&id, "exec_host"), rig.read("first").trim());
    let told = rig.ok("bhist", &["-UF", "-l", &id]);
    let words = "exit status: 20; no further start on this host;";
    assert!(told.contains(words), "{told}");
}

fn a_login_shell(rig: &Rig) {
    script(rig, "loginsh", "FROM_LOGIN=yes exec /bin/sh \"$@\"");
    let shell = rig.path("loginsh").display().to_string();
    let out = rig.path("login.out").display().to_string();
    rig.ok("bsub", &["-K", "-L", &shell, "-o", "/dev/null", &format!("echo $FROM_LOGIN > {out}")]);
    assert_eq!(rig.read("login.out"), "yes\n");
    let id = rig.bsub(&["-L", "/no/such/shell", "-o", "/dev/null", "true"]).to_string();
    wait_for("the job to wait for its shell", || {
        why(rig, &id).contains("Unable to set job's environment variables")
    });
    rig.ok("bkill", &[&id]);
}

fn files_travel(rig: &Rig) {
    rig.write("in.txt", "in\n");
    rig.write("all.txt", "old\n");
    for host in ["host1", "host2"] {
        let made = format!("made-{host}.txt");
        rig.ok(
            "bsub",
            &[
                "-K",
                "-m",
                host,
                "-o",
                "/dev/null",
                "-f",
                "in.txt > copied.txt",
                "-f",
                &format!("{made} < there.txt"),
                "-f",
                "all.txt << there.txt",
                "-f",
                "in.txt > in.txt",
                &format!("cat copied.txt > there.txt; echo {host} >> there.txt; rm copied.txt"),
            ],
        );
        // it is there before all of it is
        wait_for("the file to come back", || {
            std::fs::read_to_string(rig.path(&made)).is_ok_and(|t| t == format!("in\n{host}\n"))
        });
        // the next job writes the same there.txt
        let end = format!("{host}\n");
        wait_for("what is appended", || rig.read("all.txt").ends_with(&end));
    }
    assert_eq!(rig.read("all.txt"), "old\nin\nhost1\nin\nhost2\n");
    assert_eq!(rig.read("in.txt"), "in\n");
    let id = rig.bsub(&["-H", "-f", "a > b", "-f", "c <> c", "true"]).to_string();
    let long = rig.ok("bjobs", &["-UF", &id]);
    assert!(long.contains(", Copy Files \"a > b\" \"c >< c\";"), "{long}");
    rig.ok("bkill", &[&id]);
}

fn hosts_held_alone(rig: &Rig) {
    let other = rig.bsub(&["-m", "host1", "-o", "/dev/null", "sleep", "300"]);
    wait_for("it to run", || rig.stat(other) == "RUN");
    let alone = |host: &str| {
        rig.bsub(&["-q", "hooks", "-x", "-m", host, "-o", "/dev/null", "sleep", "300"])
    };
    // not where something runs
    let waits = alone("host1");
    let runs = alone("host2");
    wait_for("it to run", || rig.stat(runs) == "RUN");
    let text = why(rig, &waits.to_string());
    assert!(text.contains("Job's requirement for exclusive execution not satisfied"), "{text}");
    assert!(rig.ok("bhosts", &["-w", "host2"]).contains("closed_Excl"));
    let second = rig.bsub(&["-m", "host2", "-o", "/dev/null", "true"]);
    wait_for("the reason", || why(rig, &second.to_string()).contains("Running an exclusive job"));
    rig.ok("bkill", &[&runs.to_string(), &other.to_string()]);
    assert_eq!(rig.end_of(second), "DONE");
    wait_for("the other one to run", || rig.stat(waits) == "RUN");
    rig.ok("bkill", &[&waits.to_string()]);
}

fn job_groups(rig: &Rig) {
    rig.application("fluent");
    let a = rig.bsub(&["-H", "-g", "/risk/a", "true"]);
    let b = rig.bsub(&["-H", "-g", "/risk/b", "-app", "fluent", "true"]);
    let out = rig.ok("bstop", &["-g", "/risk/b", "0"]);
    assert_eq!(out, format!("Job <{b}> is being stopped\n"));
    rig.ok("bmod", &["-g", "/risk/a", &b.to_string()]);
    let out = rig.ok("bkill", &["-g", "/risk/a", "0"]);
    assert_eq!(out.lines().count(), 2, "{out}");
    assert_eq!((rig.end_of(a), rig.end_of(b)), ("EXIT".into(), "EXIT".into()));
    let said = rig.run("bkill", &["-app", "fluent", "0"]);
    assert_eq!((said.code, said.err.as_str()), (255, "No unfinished job found\n"));
    let log = std::fs::read(rig.logdir().join("lsb.events")).unwrap();
    assert!(String::from_utf8_lossy(&log).contains("\"/risk/a\""));
}

/// The output of a command under the configuration whose esubs are the site's own.
fn with_site(rig: &Rig, applet: &str, args: &[&str]) -> (i32, String, String) {
    let mut c = rig.cmd(applet);
    c.env("LSF_ENVDIR", rig.path("envdir")).args(args);
    let said = crate::rig::Said::from(c.output().unwrap());
    (said.code, said.out, said.err)
}

fn esubs(rig: &Rig) {
    std::fs::create_dir(rig.path("site")).unwrap();
    std::fs::create_dir(rig.path("envdir")).unwrap();
    let conf = rig.read("conf/lsf.conf");
    let dir = rig.path("site").display().to_string();
    rig.write("envdir/lsf.conf", &format!("{conf}\nLSF_SERVERDIR={dir}\n"));
    script(
        rig,
        "site/esub.change",
        "grep -q 'LSB_SUB_PROJECT_NAME=\"p\"' $LSB_SUB_PARM_FILE || exit 1
echo \"LSB_SUB_QUEUE=\\\"$1\\\"\" >> $LSB_SUB_MODIFY_FILE
echo 'FROM_ESUB=\"yes\"' >> $LSB_SUB_MODIFY_ENVFILE; echo noise",
    );
    script(rig, "site/esub.never", "exit $LSB_SUB_ABORT_VALUE");
    script(rig, "site/epsub.change", "echo $LSB_SUB_JOB_ID $LSB_SUB_JOB_QUEUE > DIR/told");
    esub_of_bsub(rig);
    esub_of_bswitch(rig);
    esub_of_bmod(rig);
}

/// bsub shows them the whole submission.
fn esub_of_bsub(rig: &Rig) {
    let out = rig.path("esub.out").display().to_string();
    let (_, said, err) = with_site(
        rig,
        "bsub",
        &[
            "-K",
            "-P",
            "p",
            "-a",
            "change(idle)",
            "-o",
            "/dev/null",
            &format!("echo $FROM_ESUB $LSB_QUEUE > {out}"),
        ],
    );
    let id = job_id(&said).unwrap();
    assert!(
        said.starts_with(&format!("Job <{id}> is submitted to queue <idle>.\n")),
        "{said}{err}"
    );
    assert_eq!(rig.read("esub.out"), "yes idle\n");
    assert_eq!(rig.read("told"), format!("{id} idle\n"));
    for (name, words) in [
        ("never", "Request aborted by esub. Job not submitted.\n"),
        ("none", "none: Cannot find esub.none. Request aborted by esub. Job not submitted.\n"),
    ] {
        let said = with_site(rig, "bsub", &["-a", name, "true"]);
        assert_eq!(said, (255, String::new(), words.to_string()));
    }
}

/// bswitch shows them the queue alone, which they may change.
fn esub_of_bswitch(rig: &Rig) {
    script(
        rig,
        "site/esub.other",
        "grep -v '^LSB_SUB_QUEUE' $LSB_SUB_PARM_FILE > DIR/more
grep -q '^LSB_SUB_QUEUE=\"night\"' $LSB_SUB_PARM_FILE && test $LSF_INVOKE_CMD = bswitch || exit 97
echo \"LSB_SUB_QUEUE=\\\"$1\\\"\" >> $LSB_SUB_MODIFY_FILE",
    );
    let held = rig.bsub(&["-H", "true"]).to_string();
    let bswitch = |args: &[&str]| with_site(rig, "bswitch", &[args, &[&held]].concat());
    let moved = format!("Job <{held}> is switched to queue <idle>\n");
    assert_eq!(bswitch(&["-a", "other(idle)", "night"]), (0, moved, String::new()));
    let named = "LSB_SUB_ADDITIONAL=\"other(idle)\"\n";
    assert_eq!((rig.field(&held, "queue").as_str(), rig.read("more").as_str()), ("idle", named));
    let refused = || (255, String::new(), "Request aborted by esub\n".to_string());
    assert_eq!(bswitch(&["-a", "other(idle)", "normal"]), refused());
    assert_eq!(bswitch(&["-a", "never", "normal"]), refused());
    assert_eq!(rig.field(&held, "queue"), "idle");
    rig.ok("bkill", &[&held]);
}

/// bmod shows them the changes, and takes over what they change besides.
fn esub_of_bmod(rig: &Rig) {
    let held = rig.bsub(&["-H", "-q", "idle", "true"]).to_string();
    script(
        rig,
        "site/esub.mod",
        "cp $LSB_SUB_PARM_FILE DIR/more; test $LSF_INVOKE_CMD = bmod || exit 97
echo \"LSB_SUB_JOB_NAME=\\\"$1\\\"\" >> $LSB_SUB_MODIFY_FILE
echo 'LSB_SUB_QUEUE=\"short\"' >> $LSB_SUB_MODIFY_FILE
echo 'LSB_SUB_MAIL_USER=SUB_RESET' >> $LSB_SUB_MODIFY_FILE",
    );
    let bmod = |args: &[&str]| with_site(rig, "bmod", &[args, &[&held]].concat());
    let changed = format!("Parameters of job <{held}> are being changed\n");
    let words = ["-a", "mod(named)", "-P", "px", "-q", "normal", "-u", "x@y"];
    assert_eq!(bmod(&words), (0, changed, String::new()));
    let mut shown: Vec<String> = rig.read("more").lines().map(str::to_string).collect();
    shown.sort_unstable();
    let want = [
        "LSB_SUB_ADDITIONAL=\"mod(named)\"",
        "LSB_SUB_MAIL_USER=\"x@y\"",
        "LSB_SUB_MODIFY=Y",
        "LSB_SUB_PROJECT_NAME=\"px\"",
        "LSB_SUB_QUEUE=\"normal\"",
    ];
    assert_eq!(shown, want);
    let now = ["job_name", "proj_name", "queue"].map(|name| rig.field(&held, name));
    assert_eq!(now, ["named", "px", "short"]);
    assert!(!rig.ok("bjobs", &["-UF", &held]).contains("x@y"));
    let refused = (255, String::new(), "Request aborted by esub. Job not modified.\n".into());
    assert_eq!(bmod(&["-a", "never", "-J", "other"]), refused);
    assert_eq!(rig.field(&held, "job_name"), "named");
    rig.ok("bkill", &[&held]);
}

fn a_file_of_submissions(rig: &Rig) {
    // past LSB_MAX_PACK_JOBS the environment is named by its hash, and is what it was
    let many: String = "-H -J many true\n".repeat(310);
    rig.write(
        "pack",
        &format!("{many}-o packed.out 'echo $PACKED'\n-env 'none, X=y' -o x.out env\n"),
    );
    let out = rig.cmd("bsub").args(["-pack", "pack"]).env("PACKED", "with it").output().unwrap();
    let out = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.ends_with("\n312 lines parsed, 312 jobs submitted, 0 errors found.\n"), "{out}");
    wait_for("its output", || rig.read("packed.out").starts_with("with it\n"));
    wait_for("its output", || rig.read("x.out").contains("X=y\n"));
    assert!(!rig.read("x.out").contains("PACKED="));
    rig.ok("bkill", &["-J", "many", "0"]);
    let good: String = (0..40).map(|n| format!("-H -J p{n} -q idle 'echo {n}'\n")).collect();
    rig.write("pack", &format!("# forty\n\n{good}"));
    let out = rig.ok("bsub", &["-pack", "pack"]);
    assert!(out.ends_with("\n40 lines parsed, 40 jobs submitted, 0 errors found.\n"), "{out}");
    assert_eq!(out.lines().filter(|l| l.ends_with("is submitted to queue <idle>.")).count(), 40);
    assert_eq!(rig.ok("bkill", &["-J", "p*", "0"]).lines().count(), 40);
    the_first_mistake_ends_it(rig);
    // esubs see each of them, unless lsf.conf says that none does
    rig.write("pack", "-H -J q3 -a none true\n");
    let said = rig.run("bsub", &["-pack", "pack"]);
    assert!(said.code == 255 && said.err.contains("Cannot find esub.none"), "{said:?}");
    let conf = rig.read("conf/lsf.conf");
    rig.write("conf/lsf.conf", &format!("{conf}\nLSB_PACK_MESUB=N\n"));
    let out = rig.ok("bsub", &["-pack", "pack"]);
    rig.write("conf/lsf.conf", &conf);
    assert!(out.ends_with("1 lines parsed, 1 jobs submitted, 0 errors found.\n"), "{out}");
    rig.ok("bkill", &["-J", "q3"]);
}

fn limits_of_a_running_job(rig: &Rig) {
    let id = rig.bsub(&["-o", "/dev/null", "sleep", "300"]);
    wait_for("it to run", || rig.stat(id) == "RUN");
    let id = id.to_string();
    let conf = rig.read("conf/lsf.conf");
    rig.write("conf/lsf.conf", &conf.replace("LSB_MOD_ALL_JOBS=Y", "LSB_MOD_ALL_JOBS=N"));
    rig.ok("badmin", &["reconfig"]);
    let said = rig.run("bmod", &["-M", "1", &id]);
    let words = "Job parameters cannot be changed now; non-repetitive job is running. \
                 Job not modified.\n";
    assert_eq!((said.code, said.err.as_str()), (255, words));
    rig.write("conf/lsf.conf", &conf);
    rig.ok("badmin", &["reconfig"]);
    // more memory than this does a sleeping shell use
    rig.ok("bmod", &["-M", "1", &id]);
    assert_eq!(rig.end_of(id.parse().unwrap()), "EXIT");
    let why = rig.field(&id, "exit_reason");
    assert!(why.starts_with("TERM_MEMLIMIT"), "{why}");
}

/// Unless LSB_PACK_SKIP_ERROR says otherwise, nothing behind the first line that is wrong is
/// submitted, however much is on the way at once.
fn the_first_mistake_ends_it(rig: &Rig) {
    let pack = |lines: &str| {
        rig.write("pack", lines);
        rig.run("bsub", &["-pack", "pack"])
    };
    let many = "-H -J q2 true\n".repeat(50);
    let said = pack(&format!("-H -J q1 true\n-q nosuch true\n{many}-n x true\n"));
    let told = |said: &super::rig::Said| said.out.lines().last().unwrap().to_string();
    assert_eq!(told(&said), "2 lines parsed, 1 jobs submitted, 1 errors found.");
    let nosuch = "line 2: nosuch: No such queue. Job not submitted.\n";
    assert_eq!((said.code, said.err.as_str()), (255, nosuch));
    assert_eq!(rig.ok("bkill", &["-J", "q*", "0"]).lines().count(), 1);
    let bad_n =
        |line: u32| format!("line {line}: Bad argument for option -n. Job not submitted.\n");
    let said = pack(&format!("-H -J q1 true\n-n x true\n-q nosuch true\n{many}"));
    assert_eq!(told(&said), "2 lines parsed, 1 jobs submitted, 1 errors found.");
    assert_eq!((said.code, said.err), (255, bad_n(2)));
    // a priority without use in the cluster is no mistake, and later lines keep their order
    let said = pack("-H -J q1 true\n-H -J q2 -sp 3 true\n-H -J q3 true\n");
    assert_eq!(told(&said), "3 lines parsed, 3 jobs submitted, 0 errors found.");
    let names = rig.ok("bjobs", &["-noheader", "-J", "q*", "-o", "job_name"]);
    assert_eq!(names.split_whitespace().collect::<Vec<_>>(), ["q1", "q1", "q2", "q3"]);
    rig.ok("bkill", &["-J", "q*", "0"]);
    let conf = rig.read("conf/lsf.conf");
    rig.write("conf/lsf.conf", &format!("{conf}\nLSB_PACK_SKIP_ERROR=Y\n"));
    let said = pack(&format!("-H -J q1 true\n-q nosuch true\n{many}-n x true\n-H -J q3 true\n"));
    assert_eq!(told(&said), "54 lines parsed, 52 jobs submitted, 2 errors found.");
    let mut lines: Vec<&str> = said.err.split_inclusive('\n').collect();
    lines.sort_unstable();
    assert_eq!(lines, [nosuch, &bad_n(53)]);
    rig.write("conf/lsf.conf", &conf);
    rig.ok("bkill", &["-J", "q*", "0"]);
}
