//! Bad values of the parameters of parallel jobs, in each file and in the environment: `badmin`
//! names the place, what was in force stays in force, and the commands that read a value for
//! themselves say what they do without it (lsf.conf(5), lsb.applications(5), lsb.params(5)).

use super::pam::{run, script, up};
use super::rig::{Rig, wait_for};
use std::path::PathBuf;

/// A file with a line put behind the first line that begins with these words, or at its end.
struct Edited {
    path: PathBuf,
    old: String,
    /// The number of the line.
    at: usize,
}

impl Edited {
    fn new(path: PathBuf, behind: &str, line: &str) -> Edited {
        let old = std::fs::read_to_string(&path).unwrap_or_default();
        let mut lines: Vec<&str> = old.lines().collect();
        let found = lines.iter().position(|l| !behind.is_empty() && l.starts_with(behind));
        let at = found.map_or(lines.len(), |n| n + 1);
        lines.insert(at, line);
        std::fs::write(&path, lines.join("\n") + "\n").unwrap();
        Edited { path, old, at: at + 1 }
    }
}

impl Drop for Edited {
    fn drop(&mut self) {
        let _ = std::fs::write(&self.path, &self.old);
    }
}

/// The exit code of a command of badmin, which says this of a line of a file.
fn told(rig: &Rig, words: &[&str], (file, at): (&str, usize), want: &str) -> i32 {
    let said = rig.run("badmin", words);
    let all = format!("{}{}", said.out, said.err);
    let place = format!("{file}:{at}:");
    let is = |line: &str| line.contains(&place) && line.contains(want);
    assert!(all.lines().any(is), "{words:?}: no {place} {want} in {all}");
    said.code
}

const APPLICATION: &str = "Begin Application\nNAME = mpi\nDJOB_ENV_SCRIPT = env.sh\n\
                           DJOB_DISABLED = Y\nEnd Application\n";

/// A row: the file, the words behind whose line the bad one stands, that line, what is said of it.
type Row = (&'static str, &'static str, &'static str, &'static str);

const fn conf(line: &'static str, want: &'static str) -> Row {
    ("lsf.conf", "", line, want)
}

const fn app(line: &'static str, want: &'static str) -> Row {
    ("lsb.applications", "NAME", line, want)
}

const fn queue(line: &'static str) -> Row {
    ("lsb.queues", "Begin Queue", line, "is a parameter of lsb.applications")
}

const fn params(line: &'static str, want: &'static str) -> Row {
    ("lsb.params", "Begin Parameters", line, want)
}

const YEAR: &str = "seconds are wanted, from 1 to a year";
const NUMBER: &str = "a number from 1 to 86400 is wanted";
const ENDS: &str = "KILLJOB_TASKDONE or KILLJOB_TASKEXIT, and IGNORE_TASKCRASH are known";
const HUNG: &str = "runlimit, host_unavail, both with : between them, or all is wanted";
const BAD: [Row; 23] = [
    conf("LSF_HPC_PJL_LOADENV_TIMEOUT=0", YEAR),
    conf("LSF_PAM_RUSAGE_UPD_FACTOR=-1", "seconds for each task are wanted, 0 to 100"),
    conf("LSF_PAM_CLEAN_JOB_DELAY=x", "seconds are wanted, a year at most"),
    conf("LSF_DJOB_TASK_REG_WAIT_TIME=0", YEAR),
    conf("LSB_FANOUT_TIMEOUT_PER_LAYER=x", YEAR),
    conf("LSF_RES_ALIVE_TIMEOUT=-1", "seconds are wanted, a year at most"),
    conf("LSF_RES_TIMEOUT=x", YEAR),
    app("DJOB_COMMFAIL_ACTION = KILL", "one of KILL_TASKS, IGNORE_COMMFAIL is wanted"),
    app("RTASK_GONE_ACTION = KILLJOB", ENDS),
    app("DJOB_HB_INTERVAL = 0", NUMBER),
    app("DJOB_RU_INTERVAL = x", NUMBER),
    // of two the last one counts
    ("lsb.applications", "DJOB_DIS", "DJOB_DISABLED = maybe", "Y or N is wanted"),
    ("lsb.applications", "DJOB_ENV", "DJOB_ENV_SCRIPT = a b", "the path of a script is wanted"),
    queue("DJOB_COMMFAIL_ACTION = KILL_TASKS"),
    queue("RTASK_GONE_ACTION = KILLJOB_TASKEXIT"),
    queue("DJOB_HB_INTERVAL = 5"),
    queue("DJOB_RU_INTERVAL = 5"),
    queue("DJOB_ENV_SCRIPT = env.sh"),
    queue("DJOB_DISABLED = Y"),
    queue("DJOB_TASK_BIND = Y"),
    params("DJOB_DISABLED = Y", "is a parameter of lsb.applications"),
    params("REMOVE_HUNG_JOBS_FOR = all,wait_time=0", HUNG),
    params("REMOVE_HUNG_JOBS_FOR = never", HUNG),
];

#[test]
fn bad_values_in_the_files_are_told_with_their_line_and_leave_in_force_what_was() {
    let rig = up("par-conf");
    let profile = rig.configdir().join("lsb.applications");
    std::fs::write(&profile, APPLICATION).unwrap();
    script(&rig, "bin/env.sh", "echo $1 >> script");
    rig.ok("badmin", &["reconfig"]);
    for (file, behind, line, want) in BAD {
        let path = match file {
            "lsf.conf" => rig.path("conf/lsf.conf"),
            _ => rig.configdir().join(file),
        };
        let edited = Edited::new(path, behind, line);
        for words in [&["ckconfig", "-v"][..], &["reconfig"]] {
            assert_ne!(told(&rig, words, (file, edited.at), want), 0, "{line}: {words:?}");
        }
    }
    // what does not act says so, and stops nothing
    let mut kept = Vec::new();
    for (file, behind, line) in [
        ("lsf.conf", "", "LSF_PAM_APPL_CHKPNT=Y"),
        ("lsf.conf", "", "LSF_PAM_HOSTLIST_USE=unique"),
        ("lsf.conf", "", "LSF_PAM_PLUGINDIR=/nowhere"),
        ("lsf.conf", "", "LSF_PAM_USE_ASH=Y"),
        ("lsf.conf", "", "LSF_VPLUGIN=/nowhere"),
        ("lsf.conf", "", "LSF_HPC_EXTENSIONS=\"NO_CUMULATIVE_RUSAGE\""),
        ("lsb.applications", "NAME", "DJOB_TASK_BIND = Y"),
        ("lsb.applications", "NAME", "DJOB_RESIZE_GRACE_PERIOD = 5"),
    ] {
        let path = match file {
            "lsf.conf" => rig.path("conf/lsf.conf"),
            _ => rig.configdir().join(file),
        };
        let edited = Edited::new(path, behind, line);
        let code = told(&rig, &["ckconfig", "-v"], (file, edited.at), "not acted on");
        assert_eq!(code, 0, "{line}");
        kept.push(edited);
    }
    rig.ok("badmin", &["reconfig"]);
    // each taken off is the file as it was before it
    while kept.pop().is_some() {}
    rig.ok("badmin", &["reconfig"]);
    // the profile is the one before
    let line = "blaunch host2 true; echo $?";
    let job =
        rig.bsub(&["-app", "mpi", "-n", "2", "-oo", "out", &format!("{{ {line}; }} > said 2>&1")]);
    assert_eq!(rig.end_of(job), "DONE");
    let disabled = "blaunch: The distributed application framework is disabled\n255\n";
    assert_eq!(rig.read("said"), disabled);
    wait_for("the script", || rig.read("script") == "setup\ncleanup\n");
}

/// Values that no daemon takes, and that are in lsf.conf before anybody has looked: blaunch and pam
/// say so and go on with the usual ones. The environment stands above the file.
#[test]
fn bad_values_that_commands_read_for_themselves_are_told_on_their_standard_error() {
    let rig = up("par-env");
    let bad = "LSF_HPC_PJL_LOADENV_TIMEOUT=0\nLSF_PAM_CLEAN_JOB_DELAY=x\n\
               LSF_PAM_RUSAGE_UPD_FACTOR=101\nLSF_DJOB_TASK_REG_WAIT_TIME=-5\n";
    let conf = rig.read("conf/lsf.conf");
    rig.write("conf/lsf.conf", &(conf + bad));
    let pam = "pam: LSF_HPC_PJL_LOADENV_TIMEOUT=0: not a number of seconds; 300 is used\n\
               pam: LSF_PAM_CLEAN_JOB_DELAY=x: not a number of seconds; 0 is used\n\
               pam: LSF_PAM_RUSAGE_UPD_FACTOR=101: not a number of seconds from 0 to 100; 0.01 is \
               used\n";
    let wait = |value: &str| {
        format!(
            "blaunch: LSF_DJOB_TASK_REG_WAIT_TIME={value}: not a number of seconds from 1 to \
             31536000; not heeded\n"
        )
    };
    let day = |name: &str, value: &str| {
        format!("blaunch: {name}={value}: not a number of seconds from 1 to 86400; not heeded\n")
    };
    let loss = "blaunch: LSB_DJOB_COMMFAIL_ACTION is not heeded: KILL_TASKS and IGNORE_COMMFAIL are \
                known\n";
    let gone = "blaunch: LSB_DJOB_RTASK_GONE_ACTION is not heeded: KILLJOB_TASKDONE or \
                KILLJOB_TASKEXIT, and IGNORE_TASKCRASH are known\n";
    let disabled = "blaunch: The distributed application framework is disabled\n";
    let env = "LSF_HPC_PJL_LOADENV_TIMEOUT=9 LSF_PAM_CLEAN_JOB_DELAY=1 LSF_PAM_RUSAGE_UPD_FACTOR=1";
    // the PJL has no blaunch, which would say words of its own
    script(&rig, "own.sh", "$LSF_TS $LSF_TS_OPTIONS \"$@\"");
    let good = "export LSF_DJOB_TASK_REG_WAIT_TIME=60; set -- $LSB_HOSTS;";
    for (line, code, err) in [
        ("pam -t -n 1 -g ./own.sh true".to_owned(), "0", pam.to_owned()),
        (format!("{env} pam -t -n 1 -g ./own.sh true"), "0", String::new()),
        ("set -- $LSB_HOSTS; blaunch $2 true".to_owned(), "0", wait("-5")),
        (format!("{good} blaunch $2 true"), "0", String::new()),
        (
            format!("{good} LSF_DJOB_TASK_REG_WAIT_TIME=31536001 blaunch $2 true"),
            "0",
            wait("31536001"),
        ),
        (
            format!("{good} LSB_DJOB_HB_INTERVAL=0 blaunch $2 true"),
            "0",
            day("LSB_DJOB_HB_INTERVAL", "0"),
        ),
        (
            format!("{good} LSB_DJOB_RU_INTERVAL=1h blaunch $2 true"),
            "0",
            day("LSB_DJOB_RU_INTERVAL", "1h"),
        ),
        (format!("{good} LSB_DJOB_COMMFAIL_ACTION=x blaunch $2 'exit 3'"), "3", loss.to_owned()),
        (format!("{good} LSB_DJOB_RTASK_GONE_ACTION=x blaunch $2 'exit 3'"), "3", gone.to_owned()),
        (format!("{good} LSB_DJOB_DISABLED=y blaunch $2 true"), "255", disabled.to_owned()),
        // no yes
        (format!("{good} LSB_DJOB_DISABLED=N blaunch $2 true"), "0", String::new()),
        (format!("{good} LSB_DJOB_DISABLED=maybe blaunch $2 true"), "0", String::new()),
    ] {
        let ran = run(&rig, &line);
        assert_eq!((ran.code.as_str(), ran.err), (code, err), "{line}: {}", ran.out);
    }
}
