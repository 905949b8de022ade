//! Bad values of the parameters of parallel jobs, each told with its place.

use super::mistakes::of_applications;
use super::*;
use crate::conf::summary_not_acted_on;

#[test]
fn times_of_pam_and_blaunch_are_numbers_of_seconds_within_a_year() {
    let fine = "LSF_HPC_PJL_LOADENV_TIMEOUT=600\nLSF_PAM_CLEAN_JOB_DELAY=0\n\
                LSF_DJOB_TASK_REG_WAIT_TIME=1\nLSB_FANOUT_TIMEOUT_PER_LAYER=1\n\
                LSF_RES_ALIVE_TIMEOUT=0\nLSF_RES_TIMEOUT=1";
    assert_eq!(said("lsf.conf", "LSF_RUNDIR=/run/lsf", fine), [] as [&str; 0]);
    for (line, want) in [
        ("LSF_HPC_PJL_LOADENV_TIMEOUT=0", "from 1 to a year"),
        ("LSF_HPC_PJL_LOADENV_TIMEOUT=-1", "from 1 to a year"),
        ("LSF_HPC_PJL_LOADENV_TIMEOUT=x", "from 1 to a year"),
        ("LSF_PAM_CLEAN_JOB_DELAY=99999999", "a year at most"),
        ("LSF_DJOB_TASK_REG_WAIT_TIME=0", "from 1 to a year"),
        ("LSF_DJOB_TASK_REG_WAIT_TIME=x", "from 1 to a year"),
        ("LSB_FANOUT_TIMEOUT_PER_LAYER=0", "from 1 to a year"),
        ("LSB_FANOUT_TIMEOUT_PER_LAYER=20s", "from 1 to a year"),
        ("LSB_FANOUT_TIMEOUT_PER_LAYER=31536001", "from 1 to a year"),
        ("LSF_PAM_CLEAN_JOB_DELAY=-1", "a year at most"),
        ("LSF_PAM_CLEAN_JOB_DELAY=1.5", "a year at most"),
        ("LSF_RES_TIMEOUT=0", "from 1 to a year"),
        ("LSF_RES_TIMEOUT=15s", "from 1 to a year"),
        ("LSF_RES_ALIVE_TIMEOUT=-1", "a year at most"),
        ("LSF_RES_ALIVE_TIMEOUT=never", "a year at most"),
    ] {
        let (name, value) = line.split_once('=').unwrap();
        let at = name.len() + 2;
        let text = format!(
            "error lsf.conf {name}:{at} bad value <{value}> of {name}: seconds are wanted, {want}"
        );
        assert_eq!(said("lsf.conf", "LSF_RUNDIR=/run/lsf", line), [text]);
    }
}

#[test]
fn factor_of_pam_is_a_number_of_seconds_for_each_task() {
    for fine in ["0", "0.01", "1e-3", "100"] {
        let line = format!("LSF_PAM_RUSAGE_UPD_FACTOR={fine}");
        assert_eq!(said("lsf.conf", "LSF_RUNDIR=/run/lsf", &line), [] as [&str; 0], "{fine}");
    }
    for bad in ["-1", "100.1", "NaN", "inf", "x", "0,01"] {
        let line = format!("LSF_PAM_RUSAGE_UPD_FACTOR={bad}");
        let at = "error lsf.conf LSF_PAM_RUSAGE_UPD_FACTOR:27 bad value";
        let want = "seconds for each task are wanted, 0 to 100";
        let text = format!("{at} <{bad}> of LSF_PAM_RUSAGE_UPD_FACTOR: {want}");
        assert_eq!(said("lsf.conf", "LSF_RUNDIR=/run/lsf", &line), [text]);
    }
}

#[test]
fn words_of_lsf_hpc_extensions_that_do_not_act_are_told() {
    let of = |words: &str| {
        let line = format!("LSF_HPC_EXTENSIONS=\"{words}\"");
        said("lsf.conf", "LSF_RUNDIR=/run/lsf", &line)
    };
    let all = "CUMULATIVE_RUSAGE HOST_RUSAGE NO_HOST_RUSAGE SHORT_EVENTFILE SHORT_PIDLIST";
    assert_eq!(of(all), [] as [&str; 0]);
    let text = |word: &str| {
        let at = "notice lsf.conf LSF_HPC_EXTENSIONS:21";
        format!("{at} <{word}> of LSF_HPC_EXTENSIONS is not acted on")
    };
    assert_eq!(of("TASK_SWAPLIMIT short_pidlist"), ["TASK_SWAPLIMIT", "short_pidlist"].map(text));
}

#[test]
fn words_that_do_not_act_are_counted_in_the_summary() {
    let notice = |text: &str| Diag {
        severity: Severity::Notice,
        file: "lsf.conf".into(),
        line: 1,
        col: 1,
        text: text.into(),
        near: None,
    };
    let word = notice("<X> of LSF_HPC_EXTENSIONS is not acted on");
    let parameter = notice("LSB_X is known and not acted on");
    let of = |list: &[Diag]| summary_not_acted_on(list, "badmin ckconfig -v").unwrap();
    assert_eq!(
        of(std::slice::from_ref(&word)),
        "1 word is not acted on: badmin ckconfig -v lists them."
    );
    let all = [word.clone(), parameter, word];
    let told = "1 parameter is known and not acted on; 2 words are not acted on";
    assert_eq!(of(&all), format!("{told}: badmin ckconfig -v lists them."));
}

/// The line and column are those of the value.
#[test]
fn bad_values_of_djob_parameters_are_told_with_their_place_and_not_taken() {
    let number = "a number from 1 to 86400 is wanted";
    let path = "the path of a script is wanted";
    let ends = "KILLJOB_TASKDONE or KILLJOB_TASKEXIT, and IGNORE_TASKCRASH are known";
    let loss = "one of KILL_TASKS, IGNORE_COMMFAIL is wanted";
    for (name, value, want) in [
        ("DJOB_RU_INTERVAL", "0", number),
        ("DJOB_RU_INTERVAL", "-1", number),
        ("DJOB_RU_INTERVAL", "1.5", number),
        ("DJOB_RU_INTERVAL", "86401", number),
        ("DJOB_RU_INTERVAL", "x", number),
        ("DJOB_HB_INTERVAL", "86401", number),
        ("DJOB_ENV_SCRIPT", "a b", path),
        ("DJOB_ENV_SCRIPT", "/etc/", path),
        ("RTASK_GONE_ACTION", "KILLJOB", ends),
        ("RTASK_GONE_ACTION", "\"KILLJOB_TASKDONE KILLJOB_TASKEXIT\"", ends),
        ("RTASK_GONE_ACTION", "\"IGNORE_TASKCRASH", ends),
        ("DJOB_COMMFAIL_ACTION", "KILL_JOB", loss),
        ("DJOB_COMMFAIL_ACTION", "KILL_TASKS IGNORE_COMMFAIL", loss),
    ] {
        let bad = format!("{name} = {value}");
        let text = |line: &str| {
            format!(
                "Begin Application\nNAME = sim\n{line}\nDJOB_DISABLED = y\nNICE = 3\nEnd Application\n"
            )
        };
        let (conf, said) = of_applications(&text(&bad));
        let at = name.len() + 4;
        let told =
            format!("error lsb.applications {name}:{at} bad value <{value}> of {name}: {want}");
        assert_eq!(said, [told], "{bad}");
        // no daemon takes it: what was in force stays so
        assert!(conf.is_none(), "{bad}");
        assert!(of_applications(&text("")).0.is_some());
    }
}

/// Application profiles alone have these parameters.
#[test]
fn djob_parameters_in_a_queue_or_lsb_params_are_told_with_their_place() {
    for line in [
        "DJOB_COMMFAIL_ACTION = KILL_TASKS",
        "DJOB_DISABLED = Y",
        "DJOB_ENV_SCRIPT = env.sh",
        "DJOB_HB_INTERVAL = 20",
        "DJOB_RESIZE_GRACE_PERIOD = 5",
        "DJOB_RU_INTERVAL = 20",
        "DJOB_TASK_BIND = Y",
        "RTASK_GONE_ACTION = KILLJOB_TASKEXIT",
    ] {
        let name = line.split(' ').next().unwrap();
        let text = |file: &str, section: &str| {
            format!(
                "error {file} {name}:1 unknown keyword <{name}> in section {section}; {name} is a \
                 parameter of lsb.applications"
            )
        };
        let told = said("lsb.queues", "NICE           = 20", line);
        assert_eq!(told, [text("lsb.queues", "Queue")], "{line}");
        let lines = format!("Begin Parameters\n{line}");
        let told = said("lsb.params", "Begin Parameters", &lines);
        assert_eq!(told, [text("lsb.params", "Parameters")], "{line}");
    }
}

#[test]
fn parameters_of_parallel_jobs_that_do_not_act_are_told_with_their_place() {
    let notice =
        |file: &str, name: &str| format!("notice {file} {name}:1 {name} is known and not acted on");
    for name in [
        "LSF_PAM_APPL_CHKPNT",
        "LSF_PAM_HOSTLIST_USE",
        "LSF_PAM_PLUGINDIR",
        "LSF_PAM_USE_ASH",
        "LSF_VPLUGIN",
    ] {
        let told = said("lsf.conf", "LSF_RUNDIR=/run/lsf", &format!("{name}=/x y"));
        assert_eq!(told, [notice("lsf.conf", name)]);
    }
    for name in ["DJOB_TASK_BIND", "DJOB_RESIZE_GRACE_PERIOD"] {
        for value in ["Y", "5", "what"] {
            let text =
                format!("Begin Application\nNAME = sim\n{name} = {value}\nEnd Application\n");
            let (conf, told) = of_applications(&text);
            assert_eq!(told, [notice("lsb.applications", name)], "{value}");
            assert!(conf.is_some(), "{value}");
        }
    }
}

#[test]
fn bad_values_of_remove_hung_jobs_for_are_told_with_their_place() {
    for bad in [
        "host",
        "all:runlimit",
        "runlimit:runlimit",
        "runlimit,5",
        "runlimit,wait_time=0",
        "host_unavail,wait_time=x",
        "host_unavail,wait_time=-1",
        "all,wait_time=1,x",
        "runlimit:",
    ] {
        let lines = format!("Begin Parameters\nREMOVE_HUNG_JOBS_FOR = {bad}");
        let text = format!(
            "error lsb.params REMOVE_HUNG_JOBS_FOR:24 bad value <{bad}> of REMOVE_HUNG_JOBS_FOR: \
             runlimit, host_unavail, both with : between them, or all is wanted, each with \
             ,wait_time=minutes"
        );
        assert_eq!(said("lsb.params", "Begin Parameters", &lines), [text], "{bad}");
    }
}

#[test]
fn numbers_about_res_that_are_none_are_told_with_their_place() {
    for name in [
        "LSB_MAX_PACK_JOBS",
        "LSF_RES_ACTIVE_TIME",
        "LSF_RES_CONNECT_RETRY",
        "LSF_RES_SYNCUP_INTERVAL",
    ] {
        let of = |value: &str| said("lsf.conf", "LSF_RUNDIR=/run/lsf", &format!("{name}={value}"));
        assert_eq!(of("0"), [] as [&str; 0]);
        for bad in ["x", "-1", "1.5", "10s"] {
            let at = name.len() + 2;
            let text = format!(
                "error lsf.conf {name}:{at} bad value <{bad}> of {name}: a number is wanted"
            );
            assert_eq!(of(bad), [text]);
        }
    }
}
