//! DJOB_ENV_SCRIPT of application profiles: the script that sets up the environment of a job before
//! its command and cleans up after it (lsb.applications(5)).

use super::rig::{Rig, job_id, program, wait_for};
use super::site::MultiUserSite;
use std::path::Path;

/// Says what it sees, and fails where the job asks for it.
const SCRIPT: &str = r#"#!/bin/sh
echo "$1 j$LSB_JOBID $LSF_LOCAL_HOST $(cat) $(wc -l < $LSB_DJOB_HOSTFILE) $(umask) $PWD"
echo "$1 said" >&2
test "$1" = setup || { echo status $LSB_JOBEXIT_STAT; ls -d $LSB_JOB_TMPDIR > /dev/null; }
case $1 in setup) eval "$AT_SETUP" ;; *) eval "$AT_CLEANUP" ;; esac
test "$1" = setup && exit ${SETUP:-0}
exit ${CLEANUP:-0}
"#;

/// A cluster of two hosts with a profile `mpi` that has this script.
fn up(name: &str) -> Rig {
    let rig = Rig::up(name, 2);
    program(&rig.path("bin/env.sh"), SCRIPT);
    let text = "Begin Application\nNAME = mpi\nDJOB_ENV_SCRIPT = env.sh\nEnd Application\n";
    std::fs::write(rig.configdir().join("lsb.applications"), text).unwrap();
    rig.ok("badmin", &["reconfig"]);
    rig
}

/// The output and error output of a job with these variables, and its exit code.
fn outcome(rig: &Rig, env: &str, more: &[&str], command: &str) -> (String, String, String) {
    let (out, err) = (rig.path("out"), rig.path("err"));
    let files = ["-oo", out.to_str().unwrap(), "-eo", err.to_str().unwrap()];
    let args = ["-app", "mpi", "-n", "2", "-R", "span[ptile=1]", "-env", env];
    let job = rig.bsub(&[&args[..], &files, more, &[command]].concat());
    rig.end_of(job);
    let text = std::fs::read_to_string(&out).unwrap();
    // the report stands above output that was kept, and below other output
    let output = text.split_once("The output (if any) follows:\n\n").map_or(&*text, |(_, o)| o);
    let output = output.split("\n---").next().unwrap().split("\n\nPS:\n").next().unwrap();
    let output = output.replace(&format!(" j{job} "), " JOB ");
    let err = std::fs::read_to_string(&err).unwrap();
    (output, err, rig.field(&job.to_string(), "exit_code"))
}

#[test]
fn script_runs_before_and_after_the_command_with_the_files_and_environment_of_the_job() {
    let rig = up("env-script");
    let dir = rig.dir.canonicalize().unwrap().display().to_string();
    for direct in ["Y", "N"] {
        let env = format!("all,LSB_STDOUT_DIRECT={direct}");
        let (out, err, code) = outcome(&rig, &env, &[], "umask 027; echo command; exit 7");
        let first = out.split(' ').nth(2).unwrap();
        let of = |word: &str| format!("{word} JOB {first}  2 0022 {dir}\n");
        let want = format!("{}command\n{}status 1792", of("setup"), of("cleanup"));
        assert_eq!(out.trim_end(), want, "{direct}");
        assert_eq!((err.as_str(), code.as_str()), ("setup said\ncleanup said\n", "7"), "{direct}");
    }
    // one file for both
    let both = rig.path("both");
    let job = rig.bsub(&["-app", "mpi", "-oo", both.to_str().unwrap(), "echo command"]);
    rig.end_of(job);
    let text = std::fs::read_to_string(&both).unwrap();
    let of = |line: &str| text.find(line).unwrap_or_else(|| panic!("{line}: {text}"));
    assert!(of("\nsetup said\n") < of("\ncommand\n") && of("\ncommand\n") < of("\ncleanup said\n"));
    // a terminal, and a script without a profile
    let said = rig.run("bsub", &["-app", "mpi", "-I", "echo command"]);
    assert!(said.out.contains("setup ") && said.out.contains("\ncommand\n"), "{said:?}");
    assert_eq!(rig.run("bsub", &["-I", "echo command"]).out.matches("setup").count(), 0);
}

#[test]
fn script_that_fails_at_setup_ends_the_job_and_at_cleanup_is_only_told() {
    let rig = up("env-script-fails");
    let path = rig.path("bin/env.sh").display().to_string();
    let (out, err, code) = outcome(&rig, "all,SETUP=3,CLEANUP=4", &[], "echo command");
    assert!(!out.contains("command") && out.contains("cleanup "), "{out}");
    let want = format!(
        "setup said\nDJOB_ENV_SCRIPT <{path} setup>: exit status: 3; the command of the job is not \
         run\ncleanup said\nDJOB_ENV_SCRIPT <{path} cleanup>: exit status: 4\n"
    );
    assert_eq!((err, code.as_str()), (want, "3"));
    let (out, err, code) = outcome(&rig, "all,CLEANUP=4", &[], "echo command");
    assert!(out.contains("command\n"), "{out}");
    assert!(err.ends_with(&format!("DJOB_ENV_SCRIPT <{path} cleanup>: exit status: 4\n")), "{err}");
    assert_eq!(code, "0");
    // by a signal
    let (out, _, code) = outcome(&rig, "all,AT_SETUP=kill -9 $$", &[], "echo command");
    assert!(!out.contains("command"), "{out}");
    assert_eq!(code, "137");
}

#[test]
fn bad_paths_of_a_script_end_the_job_with_words() {
    let rig = up("env-script-bad");
    let dir = rig.dir.canonicalize().unwrap().display().to_string();
    std::fs::write(rig.path("plain"), "#!/bin/sh\n").unwrap();
    // PATH and the working directory are not looked in
    program(&rig.path("own/here.sh"), "#!/bin/sh\n");
    program(&rig.path("here.sh"), "#!/bin/sh\n");
    for (script, code, why) in [
        ("/no/such", "127", "no such file or directory"),
        ("here.sh", "127", "no such file or directory"),
        (&*dir, "126", "permission denied"),
        (&*format!("{dir}/plain"), "126", "permission denied"),
        (&*format!("{dir}/plain/x"), "126", "not a directory"),
    ] {
        let env = format!("all,LSB_DJOB_ENV_SCRIPT={script},PATH={dir}/own:/bin:/usr/bin");
        let (out, err, got) = outcome(&rig, &env, &[], "echo command");
        assert!(!out.contains("command"), "{script}: {out}");
        let text = err.to_lowercase();
        assert!(text.contains(&format!("{script} setup>: {why}").to_lowercase()), "{err}");
        assert_eq!(got, code, "{script}: {err}");
    }
    // an empty value: no script
    let (out, err, code) = outcome(&rig, "all,LSB_DJOB_ENV_SCRIPT=", &[], "echo command");
    assert_eq!((out.trim_end(), err.as_str(), code.as_str()), ("command", "", "0"));
}

#[test]
fn bad_values_of_a_profile_are_told_with_their_line_and_change_nothing() {
    let rig = up("env-script-conf");
    for (line, why) in [
        (
            "DJOB_ENV_SCRIPT = a b",
            "bad value <a b> of DJOB_ENV_SCRIPT: the path of a script is wanted",
        ),
        (
            "DJOB_RU_INTERVAL = 0",
            "bad value <0> of DJOB_RU_INTERVAL: a number from 1 to 86400 is wanted",
        ),
    ] {
        let text = format!("Begin Application\nNAME = mpi\n{line}\nEnd Application\n");
        std::fs::write(rig.configdir().join("lsb.applications"), text).unwrap();
        for words in [&["ckconfig", "-v"][..], &["reconfig"]] {
            let said = rig.run("badmin", words);
            let all = format!("{}{}", said.out, said.err);
            let place = all.lines().find(|line| line.contains("lsb.applications:3:"));
            assert!(place.is_some_and(|place| place.contains(why)), "{words:?}: {all}");
            assert_ne!(said.code, 0, "{words:?}: {all}");
        }
        // the profile is the one before
        let (out, err, _) = outcome(&rig, "all", &[], "echo command");
        assert!(out.contains("command\n"), "{out}");
        assert_eq!(err, "setup said\ncleanup said\n", "{line}");
    }
}

#[test]
fn script_cleans_up_after_a_job_that_is_killed_and_bkill_does_not_end_it() {
    let rig = up("env-script-kill");
    let (here, made) = (rig.path("here"), rig.path("made"));
    std::fs::write(&here, "x").unwrap();
    let env = format!(
        "all,AT_CLEANUP=touch {}; while test -e {}; do sleep 0.1; done; echo at last",
        made.display(),
        here.display()
    );
    let out = rig.path("out");
    let back = format!("{0}.copy < {0}", here.display());
    let args = ["-app", "mpi", "-env", &env, "-f", &back, "-oo", out.to_str().unwrap()];
    let job = rig.bsub(&[&args[..], &["sleep 600"]].concat());
    wait_for("the job to run", || rig.stat(job) == "RUN");
    rig.ok("bkill", &["-s", "KILL", &job.to_string()]);
    wait_for("the script", || made.exists());
    rig.ok("bkill", &[&job.to_string()]);
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert_eq!(rig.stat(job), "RUN", "the script is part of the job");
    std::fs::remove_file(&here).unwrap();
    assert_eq!(rig.end_of(job), "EXIT");
    let text = std::fs::read_to_string(&out).unwrap();
    assert!(text.contains("\nat last\n"), "{text}");
}

/// The script of a job is run by its user alone: names of files and variables of a user lead to no
/// rights of another one.
#[test]
fn script_of_another_user_or_of_the_environment_gives_no_rights() {
    let name = "script_of_another_user_or_of_the_environment_gives_no_rights";
    if !MultiUserSite::possible(name) {
        return;
    }
    let mut site = MultiUserSite::new("env-script-users", 1);
    let text = "Begin Application\nNAME = mpi\nDJOB_ENV_SCRIPT = env.sh\nEnd Application\n";
    site.write("conf/lsbatch/personal/configdir/lsb.applications", text);
    let script =
        "#!/bin/sh\necho $1 $(id -u):$(id -ru):$(id -G) $(cat /proc/self/status | grep Uid)\n";
    program(&site.path("bin/env.sh"), script);
    site.start();
    let submit = |user: &str, env: &str| {
        let line = format!("bsub -app mpi -o out.%J -env 'all,{env}' 'echo command'");
        let job = job_id(&site.ok(user, &line)).unwrap();
        site.end_of(job);
        site.ok(user, &format!("cat out.{job}"))
    };
    let out = submit("bob", "BASH_ENV=/evil,ENV=/evil,LD_LIBRARY_PATH=/evil,IFS=x");
    let ids = "70003:70003:70003 70010 Uid: 70003 70003 70003 70003";
    let want = format!("setup {ids}\ncommand\ncleanup {ids}\n");
    assert!(out.starts_with(&want), "{out}");
    // a private script of ann
    let own = site.path("home/ann/own.sh");
    site.ok("ann", "printf '#!/bin/sh\\nid > /tmp/stolen' > own.sh; chmod 700 own.sh; chmod 700 .");
    let out = submit("bob", &format!("LSB_DJOB_ENV_SCRIPT={}", own.display()));
    assert!(out.to_lowercase().contains("own.sh setup>: permission denied"), "{out}");
    assert!(out.contains("Exited with exit code 126") && !out.contains("\ncommand\n"), "{out}");
    assert!(!Path::new("/tmp/stolen").exists());
}

#[test]
fn wrapper_of_another_user_or_of_the_environment_gives_no_rights() {
    let name = "wrapper_of_another_user_or_of_the_environment_gives_no_rights";
    if !MultiUserSite::possible(name) {
        return;
    }
    let mut site = MultiUserSite::new("wrapper-users", 1);
    let ids = "$(id -u):$(id -ru):$(id -G) $(grep Uid /proc/self/status)";
    let wrapper = format!("#!/bin/sh\necho $0 {ids}\nexec $LSF_TS $LSF_TS_OPTIONS \"$@\"\n");
    program(&site.path("bin/own_wrapper"), &wrapper);
    program(&site.path("bin/work"), &format!("#!/bin/sh\necho work {ids}\n"));
    site.start();
    site.ok("ann", "mkdir evil; printf '#!/bin/sh\\necho evil' > evil/own_wrapper");
    site.ok("ann", "cp evil/own_wrapper evil/work");
    site.ok("ann", "chmod 755 evil evil/*; chmod 711 .");
    let evil = site.path("home/ann/evil");
    let submit = |env: &str| {
        let line = format!("bsub -o out.%J -env \"all,{env}\" 'mpirun.lsf work'");
        let job = job_id(&site.ok("bob", &line)).unwrap();
        site.end_of(job);
        site.ok("bob", &format!("cat out.{job}"))
    };
    let evil_path = format!("PATH=$PATH:{},BASH_ENV=/evil,ENV=/evil,IFS=x", evil.display());
    let out = submit(&format!("LSF_PJL_TYPE=own,{evil_path}"));
    let ids = "70003:70003:70003 70010 Uid: 70003 70003 70003 70003";
    for line in [format!("/bin/own_wrapper {ids}\n"), format!("\nwork {ids}\n")] {
        assert!(out.contains(&line) && !out.contains("evil"), "{line}: {out}");
    }
    // a path is no type
    let out = submit(&format!("LSF_PJL_TYPE={}/own", evil.display()));
    assert!(out.contains("no MPI of type") && !out.contains("\nevil\n"), "{out}");
}
