//! Bad values of the parameters of parallel jobs, each told with its place.

use super::mistakes::of_applications;
use super::*;
use crate::conf::summary_not_acted_on;

#[test]
fn times_of_pam_and_blaunch_are_numbers_of_seconds_within_a_year() {
    let fine = "LSF_HPC_PJL_LOADENV_TIMEOUT=600\nLSF_PAM_CLEAN_JOB_DELAY=0\n\
                LSF_DJOB_TASK_REG_WAIT_TIME=1\nLSB_FANOUT_TIMEOUT_PER_LAYER=1\n\
                LSF_RES_ALIVE_TIMEOUT=0";
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
fn djob_parameters_in_a_queue_are_told_with_their_place() {
    for line in ["RTASK_GONE_ACTION = KILLJOB_TASKEXIT", "DJOB_COMMFAIL_ACTION = KILL_TASKS"] {
        let name = line.split(' ').next().unwrap();
        let told = said("lsb.queues", "NICE           = 20", line);
        let text = format!("error lsb.queues {name}:1 unknown keyword <{name}> in section Queue");
        assert!(told.iter().any(|one| one.starts_with(&text)), "{line}: {told:?}");
    }
}
