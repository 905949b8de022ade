//! bsub: its answer, its rejections, what reaches the job.

use crate::common::*;
use std::os::unix::ffi::OsStrExt;

/// A command that no other test runs: what must not be in the log after a rejection.
const MARK: &str = "rejected-submission-mark";

#[test]
fn answer_of_bsub_is_the_first_text_on_stdout() {
    let said = run("bsub", &["-o", "/dev/null", "true"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    let id = job_id(&said.out).unwrap();
    assert_eq!(said.out, format!("Job <{id}> is submitted to default queue <normal>.\n"));
    let said = run("bsub", &["-q", "normal", "-gpu", "-", "-o", "/dev/null", "true"]);
    let id = job_id(&said.out).unwrap();
    assert_eq!(said.out, format!("Job <{id}> is submitted to queue <normal>.\n"));
    assert!(said.err.contains("-gpu"), "{}", said.err);
}

#[test]
fn service_class_where_none_is_configured_is_said_to_have_no_effect() {
    let words = "bsub: the service class has no effect: no service class is configured\n";
    let said = run("bsub", &["-sla", "gold", "-o", "/dev/null", "true"]);
    let id = job_id(&said.out).unwrap();
    assert_eq!((said.code, said.err.as_str()), (0, words));
    assert_eq!(said.out, format!("Job <{id}> is submitted to default queue <normal>.\n"));
    let said = run("bsub", &["-o", "/dev/null", "true"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
}

#[test]
fn answer_of_bsub_follows_the_environment() {
    let with = |var: &str, value: &str| -> Said {
        let mut c = cmd("bsub");
        c.env(var, value).args(["-o", "/dev/null", "true"]).output().unwrap().into()
    };
    assert_eq!(with("BSUB_QUIET", "Y").out, "");
    let said = with("BSUB_STDERR", "Y");
    assert!(said.out.is_empty() && said.err.starts_with("Job <"), "{said:?}");
    assert!(with("LSB_DEFAULTQUEUE", "normal").out.ends_with("to default queue <normal>.\n"));
    let said = with("LSB_DEFAULTQUEUE", "nosuch");
    assert_eq!(said.err, "nosuch: No such queue. Job not submitted.\n");
    let said = with("BSUB_CHK_RESREQ", "Y");
    assert_eq!((said.code, said.out.as_str()), (0, ""));
}

#[test]
fn requirement_of_the_list_of_remote_tasks_counts_where_r_gives_none() {
    let home = scratch("tasks");
    let list = |req: &str| {
        let text = format!("Begin RemoteTasks\n+ env/{req}\nEnd RemoteTasks\n");
        std::fs::write(home.join(".lsftask"), text).unwrap();
    };
    let bsub = |args: &[&str]| -> Said {
        let mut c = cmd("bsub");
        c.env("HOME", &home).args(["-o", "/dev/null"]).args(args).output().unwrap().into()
    };
    let requested = |args: &[&str]| {
        let id = job_id(&bsub(args).out).unwrap().to_string();
        let shown = run("bjobs", &["-a", "-l", &id]).out.replace("\n                     ", "");
        let part = shown.split_once("Requested Resources <").map(|(_, rest)| rest.to_owned());
        part.and_then(|rest| Some(rest.split_once('>')?.0.to_owned())).unwrap_or_default()
    };
    list("select[mem-1]");
    assert_eq!(requested(&["env"]), "select[mem-1]");
    assert_eq!(requested(&["/usr/bin/env true"]), "select[mem-1]");
    assert_eq!(requested(&["-R", "rusage[mem=1]", "env"]), "rusage[mem=1]");
    assert_eq!(requested(&["true"]), "");
    list("select[");
    let said = bsub(&["env"]);
    assert_eq!((said.code, said.out.as_str()), (255, ""));
    let words = "missing ] at column 8 of <select[>: Bad resource requirement syntax, in the \
                 list of remote tasks (lsrtasks). Job not submitted.\n";
    assert_eq!(said.err, words);
}

/// Every rejection: arguments, standard error, exit code 255, nothing logged.
#[test]
fn bsub_rejects_wrong_options_with_the_words_of_lsf() {
    let rows: &[(&[&str], &str)] = &[
        (&["-q", "nosuch"], "nosuch: No such queue"),
        (&["-m", "nosuch"], "nosuch: Bad host name, host group name or cluster name"),
        (&["-m", "host1 nosuch"], "nosuch: Bad host name, host group name or cluster name"),
        (&["-R", "select["], "Bad resource requirement syntax"),
        (&["-R", "badres>1"], "Bad resource requirement syntax"),
        (&["-R", "rusage[foo=1]"], "Bad resource requirement syntax"),
        (&["-R", "span[hosts=2]"], "Bad resource requirement syntax"),
        (&["-R", "select[mem>1] foo[1]"], "Bad resource requirement syntax"),
        (&["-w", "foo("], "foo(: Dependency condition syntax error"),
        (&["-w", "done(99999)"], "99999: No matching job found"),
        (&["-W", "abc"], "abc: Bad RUNLIMIT specification"),
        (&["-J", "x[1-"], "x[1-: Bad job name"),
        (&["-J", "x[0-3]"], "x[0-3]: Job array index error"),
        (&["-J", "x[1-1000000]"], "Job array index too large"),
        (&["-n", "0"], "The number of processors must be a positive integer"),
        (&["-n", "abc"], "Bad argument for option -n"),
        (&["-n", "5,2"], "Bad argument for option -n"),
        (&["-M", "abc"], "abc: MEMLIMIT value should be a positive integer"),
        (&["-b", "25:00"], "25:00: Bad time specification"),
        (&["-t", "99"], "99: Bad time specification"),
        (&["-sp", "abc"], "abc: Illegal job priority"),
        (&["-env", "~"], "~: Bad argument for option -env"),
        (&["-I", "-K"], "Option -I cannot be combined with option -K"),
    ];
    for (args, words) in rows {
        let args: Vec<&str> = args.iter().copied().chain(["sleep", MARK]).collect();
        let said = run("bsub", &args);
        let want =
            Said { code: 255, out: String::new(), err: format!("{words}. Job not submitted.\n") };
        // before these words stands what is wrong where
        let place = format!(" of <{}>: {words}. Job not submitted.\n", args[1]);
        match words.starts_with("Bad resource requirement") {
            true => assert!(said.code == 255 && said.err.ends_with(&place), "{said:?}"),
            false => assert_eq!(said, want, "bsub {args:?}"),
        }
    }
    let said = run("bsub", &["-x", "sleep", MARK]);
    assert_eq!(said.code, 255);
    assert!(said.err.ends_with("Queue does not accept EXCLUSIVE jobs. Job not submitted.\n"));
    assert!(!event_log().contains(MARK), "something was logged");
}

#[test]
fn bsub_with_wrong_usage_prints_an_error_and_submits_nothing() {
    for (args, words) in [
        (&["-u"][..], "bsub: option requires an argument -- u\nUsage: bsub [-h] [-V]"),
        (&["-z", "sleep", MARK], "bsub: illegal option -- z\nUsage: bsub [-h] [-V]"),
    ] {
        let said = run("bsub", args);
        assert_eq!((said.code, said.out.as_str()), (255, ""), "{args:?}");
        assert!(said.err.starts_with(words), "{}", said.err);
    }
    let said = run("bsub", &[]);
    assert_eq!(said.err, "No command is specified. Job not submitted.\n");
    assert_eq!(said.code, 255);
    // the forgotten value of an option: the command is read as that value
    let said = run("bsub", &["-n", "true"]);
    assert_eq!(said.err, "Bad argument for option -n. Job not submitted.\n");
    assert_eq!((said.code, said.out.as_str()), (255, ""));
    assert_eq!(run("bsub", &["-h"]).code, 0);
    let said = run("bsub", &["-V"]);
    assert!(said.code == 0 && said.err.contains("IBM Spectrum LSF Standard 10.1"));
}

#[test]
fn bsub_of_a_script_that_cannot_be_read_says_so() {
    let mut c = cmd("bsub");
    c.stdin(std::fs::File::open("/").unwrap());
    let said: Said = c.output().unwrap().into();
    assert_eq!((said.code, said.out.as_str()), (255, ""));
    assert!(said.err.contains("Is a directory. Job not submitted."), "{}", said.err);
    let said = feed(cmd("bsub"), b"#BSUB -J 'x\necho\n");
    let words = "line 1 of the script: a quote is not closed. Job not submitted.\n";
    assert_eq!(said, Said { code: 255, out: String::new(), err: words.into() });
}

#[test]
fn bsub_without_an_answer_of_mbatchd_says_that_nothing_was_submitted() {
    let dir = scratch("silent");
    // A port that nobody listens on, and no daemons at all.
    let text = format!(
        "LSF_CONFDIR={0}\nLSF_RUNDIR={0}/run\nLSF_MASTER_LIST=nohost\nLSF_SERVER_HOSTS=nohost\n",
        dir.display()
    );
    std::fs::write(dir.join("lsf.conf"), text).unwrap();
    let mut c = cmd("bsub");
    c.env("LSF_ENVDIR", &dir).env("LSB_NTRIES", "1").args(["sleep", MARK]);
    let said: Said = c.output().unwrap().into();
    assert_eq!((said.code, said.out.as_str()), (255, ""), "{said:?}");
    assert!(said.err.ends_with("Job not submitted.\n"), "{}", said.err);
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_script_on_stdin_gives_options_and_runs() {
    let dir = scratch("stdin");
    let out = dir.join("out");
    let script = format!(
        "\n#BSUB -J from_script # the name\n#BSUB-q short\n    #BSUB -J no\n#BSUB -oo \"{}\"\n\
         echo \"$LSB_JOBNAME $LSB_QUEUE\"\n#BSUB -n 1\nexit 3\n",
        out.display()
    );
    let mut c = cmd("bsub");
    c.args(["-q", "normal"]);
    let said = feed(c, script.as_bytes());
    assert!(said.out.ends_with("is submitted to queue <normal>.\n"), "{said:?}");
    let id = job_id(&said.out).unwrap().to_string();
    assert_eq!(end_of(&id), "EXIT");
    assert_eq!(field(&id, "exit_code"), "3");
    wait_for("the output", || out.exists());
    let text = std::fs::read_to_string(&out).unwrap();
    assert!(text.contains("from_script normal\n"), "{text}");
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_script_file_is_read_at_once() {
    let dir = scratch("file");
    let Some(envdir) = other_envdir(&dir, "LSB_BSUB_PARSE_SCRIPT=Y\n") else { return };
    let (script, out) = (dir.join("job.sh"), dir.join("out"));
    let text = format!("#!/bin/sh\n#BSUB -J in_file -oo {}\necho \"$@\"\n", out.display());
    std::fs::write(&script, text).unwrap();
    let mut c = cmd("bsub");
    c.env("LSF_ENVDIR", &envdir).args(["-H"]).arg(&script).args(["a  b", "c"]);
    let said: Said = c.output().unwrap().into();
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    std::fs::remove_file(&script).unwrap();
    let id = job_id(&said.out).unwrap().to_string();
    assert_eq!(field(&id, "job_name"), "in_file");
    ok("bresume", &[&id]);
    assert_eq!(end_of(&id), "DONE");
    wait_for("the output", || out.exists());
    let text = std::fs::read_to_string(&out).unwrap();
    assert!(text.starts_with("a  b c\n"), "{text}");
    let mut c = cmd("bsub");
    c.env("LSF_ENVDIR", &envdir).arg(&dir);
    let said: Said = c.output().unwrap().into();
    assert_eq!(said.code, 255);
    assert!(said.err.ends_with("Is a directory. Job not submitted.\n"), "{}", said.err);
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_priority_without_use_is_no_reason_to_refuse() {
    let said = run("bsub", &["-sp", "10", "-o", "/dev/null", "true"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(job_id(&said.out).is_some() && said.err.contains("-sp is ignored"), "{said:?}");
}

#[test]
fn working_directory_of_a_job_is_the_one_the_user_sees() {
    let dir = scratch("cwd");
    std::fs::create_dir(dir.join("real")).unwrap();
    let link = dir.join("link");
    std::os::unix::fs::symlink(dir.join("real"), &link).unwrap();
    let cwd = |pwd: &std::path::Path, extra: &[&str]| {
        let mut c = cmd("bsub");
        c.current_dir(&link).env("PWD", pwd).args(["-H"]).args(extra).arg("true");
        let said: Said = c.output().unwrap().into();
        let id = job_id(&said.out).unwrap().to_string();
        let cwd = field(&id, "sub_cwd");
        ok("bkill", &[&id]);
        cwd
    };
    assert_eq!(cwd(&link, &[]), link.to_str().unwrap());
    assert_eq!(cwd(std::path::Path::new("/elsewhere"), &[]), dir.join("real").to_str().unwrap());
    assert_eq!(cwd(&link, &["-cwd", "sub"]), link.join("sub").to_str().unwrap());
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn bsub_b_and_t_print_the_times() {
    let times = ["-b", "2035:1:2:3:4", "-t", "2035:1:2:4:5"];
    let said = run("bsub", &[&["-o", "/dev/null"], &times[..], &["true"]].concat());
    let told = "Job will be scheduled after Tue Jan  2 03:04:00 2035\n\
                Job will be terminated by Tue Jan  2 04:05:00 2035\n";
    assert_eq!((said.code, said.err.as_str()), (0, told));
    let id = job_id(&said.out).unwrap().to_string();
    assert_eq!(field(&id, "stat"), "PEND");
    ok("bkill", &[&id]);
}

#[test]
fn job_gets_the_words_typed() {
    let dir = scratch("words");
    let out = dir.join("out");
    let hard = ["a b", "it's", "say \"x\"", ""];
    let mut args = vec!["-K", "-o", "/dev/null", "sh", "-c", "printf '<%s>' \"$@\" > \"$0\""];
    let path = out.to_str().unwrap();
    args.push(path);
    args.extend(hard);
    ok("bsub", &args);
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "<a b><it's><say \"x\"><>");
    let odd = std::ffi::OsStr::from_bytes(b"\xff\xfe");
    let mut c = cmd("bsub");
    c.args(["-K", "-o", "/dev/null", "sh", "-c", "printf %s \"$1\" > \"$0\"", path]).arg(odd);
    assert!(c.output().unwrap().status.success());
    assert_eq!(std::fs::read(&out).unwrap(), b"\xff\xfe");
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn environment_of_bsub_follows_the_documented_rules() {
    let dir = scratch("env");
    let shown = |extra: &[&str]| {
        let out = dir.join("out");
        let script = format!("env > {}", out.display());
        let mut c = cmd("bsub");
        c.args(["-K", "-o", "/dev/null"]).args(extra).arg(&script);
        c.env("MINE", "x y").env("TERM", "strange").env("LSB_JOBNAME", "outer");
        assert!(c.output().unwrap().status.success());
        std::fs::read_to_string(&out).unwrap()
    };
    let text = shown(&[]);
    assert!(text.contains("\nMINE=x y\n") || text.starts_with("MINE=x y\n"), "{text}");
    assert!(!text.contains("TERM=strange") && !text.contains("LSB_JOBNAME=outer"), "{text}");
    assert!(text.contains("LS_SUBCWD=") && text.contains("LSB_JOBID="), "{text}");
    let text = shown(&["-env", "all, ~MINE, W=a=b"]);
    assert!(!text.contains("MINE=") && text.contains("W=a=b\n"), "{text}");
    assert!(!shown(&["-env", "none"]).contains("MINE="));
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn bsub_k_waits_and_takes_the_exit_code() {
    let said = run("bsub", &["-K", "-o", "/dev/null", "sleep 1; exit 7"]);
    assert_eq!(said.code, 7, "{said:?}");
    let id = job_id(&said.out).unwrap();
    let lines: Vec<&str> = said.out.lines().collect();
    assert_eq!(lines[0], format!("Job <{id}> is submitted to default queue <normal>."));
    assert_eq!(lines[1], "<<Waiting for dispatch ...>>");
    assert!(lines[2].starts_with("<<Starting on ") && lines[2].ends_with(">>"), "{said:?}");
    assert_eq!(lines[3..], ["<<Job is finished>>"]);
    let quiet = cmd("bsub")
        .env("BSUB_QUIET", "Y")
        .env("BSUB_QUIET2", "Y")
        .args(["-K", "-o", "/dev/null", "true"])
        .output()
        .unwrap();
    assert!(quiet.status.success() && quiet.stdout.is_empty());
    // a site says how much is told
    let told = cmd("bsub")
        .env("LSB_SUBK_SHOW_EXEC_HOST", "N")
        .env("LSB_SUBK_SHOW_JOBID", "Y")
        .args(["-K", "-o", "/dev/null", "true"])
        .output()
        .unwrap();
    let told = Said::from(told);
    let id = job_id(&told.out).unwrap();
    let lines: Vec<&str> = told.out.lines().skip(1).collect();
    assert_eq!(lines, ["<<Waiting for dispatch ...>>", &format!("<<Job <{id}> is finished>>")]);
}

#[test]
fn bsub_k_of_an_array_takes_the_first_failure() {
    let said = run("bsub", &["-K", "-J", "k[1-3]", "-o", "/dev/null", "exit $((LSB_JOBINDEX-1))"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.out.ends_with("<<Job is finished>>\n"), "{said:?}");
}

#[test]
fn bsub_k_of_a_job_killed_pending_ends_with_126() {
    let mut c = cmd("bsub");
    c.args(["-K", "-H", "-J", "held_k", "true"]);
    c.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let child = c.spawn().unwrap();
    wait_for("the held job", || run("bkill", &["-J", "held_k"]).code == 0);
    let said: Said = child.wait_with_output().unwrap().into();
    assert_eq!(said.code, 126, "{said:?}");
    assert!(said.out.contains("<<Terminated while pending>>"), "{said:?}");
}

#[test]
fn bsub_k_interrupted_leaves_the_job() {
    let mut c = cmd("bsub");
    c.args(["-K", "-H", "-J", "left_alone", "true"]);
    c.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let child = c.spawn().unwrap();
    wait_for("the held job", || run("bjobs", &["-J", "left_alone"]).out.contains("PSUSP"));
    std::thread::sleep(std::time::Duration::from_millis(200));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let said: Said = child.wait_with_output().unwrap().into();
    assert_eq!(said.code, 130, "{said:?}");
    assert!(said.err.contains("continues"), "{said:?}");
    let id = job_id(&said.out).unwrap().to_string();
    assert_eq!(field(&id, "stat"), "PSUSP");
    ok("bkill", &[&id]);
}

#[test]
fn bsub_of_an_array_makes_one_job() {
    let dir = scratch("array");
    let out = format!("{}/%I", dir.display());
    let id = bsub(&["-J", "arr[1-3]%2", "-oo", &out, "echo element $LSB_JOBINDEX"]);
    assert_eq!(end_of(&id), "DONE\nDONE\nDONE");
    for i in 1..=3 {
        let file = dir.join(i.to_string());
        wait_for("the output", || file.exists());
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.contains(&format!("element {i}\n")), "{text}");
    }
    std::fs::remove_dir_all(&dir).unwrap();
}
