//! PREEMPTION and the parameters about it: values, mistakes with their places, defaults.

use super::*;
use crate::conf::preemption::{RunShare, run_share};

/// Queues `high` and `low` with these lines of `high`.
fn queues(lines: &str) -> (Option<ClusterConf>, Vec<String>) {
    let mut files = site();
    let text = format!(
        "Begin Queue\nQUEUE_NAME = low\nPRIORITY = 10\nEnd Queue\n\
         Begin Queue\nQUEUE_NAME = high\nPRIORITY = 40\n{lines}\nEnd Queue\n\
         Begin Queue\nQUEUE_NAME = idle\nEnd Queue\n\
         Begin Queue\nQUEUE_NAME = normal\nPRIORITY = 40\nEnd Queue\n"
    );
    files.put(&format!("{BATCH}/lsb.queues"), text);
    let (conf, diags) = load(&files, ENVDIR);
    let said = diags.iter().map(|diag| placed(&files, diag));
    (conf, said.filter(|said| said.contains("PREEMPT")).collect())
}

#[test]
fn preemption_of_a_queue_is_read() {
    let (conf, said) = queues("PREEMPTION = PREEMPTIVE[low+3] PREEMPTABLE");
    assert_eq!(said, [""; 0]);
    let conf = conf.unwrap();
    let of = |name: &str| conf.queue(name).unwrap().preemption.clone();
    let high = of("high");
    let low = &high.preemptive.unwrap()[0];
    assert_eq!((low.name.as_str(), low.preference), ("low", 3));
    assert_eq!(high.preemptable, Some(Vec::new()));
    assert_eq!(of("low"), Default::default());
    let params = &conf.batch.params.preemption;
    assert!(params.resets && !params.exclusive && !params.least_run_time && !params.fewest_jobs);
}

#[test]
fn mistakes_in_preemption_of_a_queue_are_told_with_their_places() {
    for (line, want) in [
        (
            "PREEMPTION = PREEMPTIV[low]",
            "error lsb.queues PREEMPTION:14 unknown word <PREEMPTIV> in PREEMPTION ~PREEMPTIVE",
        ),
        (
            "PREEMPTION = PREEMPTIVE[low",
            "PREEMPTION:24 bad value <[low> of PREEMPTION: the bracket is not closed",
        ),
        (
            "PREEMPTION = PREEMPTIVE[low+x]",
            "PREEMPTION:25 bad value <low+x> of PREEMPTION: queue or queue+preference is wanted",
        ),
        ("PREEMPTION = PREEMPTIVE[low+0]", "the preference at least 1"),
        ("PREEMPTION = PREEMPTIVE[]", "the brackets are empty"),
        (
            "PREEMPTION = PREEMPTIVE[low low]",
            "PREEMPTION:29 bad value <low> of PREEMPTION: the queue stands there twice",
        ),
        ("PREEMPTION = PREEMPTABLE[normal+1]", "a queue of PREEMPTABLE has no preference"),
        (
            "PREEMPTION = PREEMPTIVE PREEMPTIVE[low]",
            "PREEMPTION:25 bad value <PREEMPTIVE> of PREEMPTION: each keyword may stand there once",
        ),
        (
            "PREEMPTION = PREEMPTIVE[lowe]",
            "PREEMPTION:25 queue <lowe> of PREEMPTION is not in lsb.queues ~low",
        ),
        (
            "PREEMPTION = PREEMPTIVE[normal]",
            "warning lsb.queues PREEMPTION:25 queue <high> has no higher priority than queue <normal>",
        ),
        ("MAX_JOB_PREEMPT = 0", "MAX_JOB_PREEMPT:19 bad value <0>"),
        ("MAX_TOTAL_TIME_PREEMPT = x", "a number from 1 to"),
        ("NO_PREEMPT_RUN_TIME = 110%", "minutes, or 1% to 100%, are wanted"),
        ("NO_PREEMPT_FINISH_TIME = soon", "minutes, or 1% to 100%, are wanted"),
        ("NO_PREEMPT_INTERVAL = -1", "a number from 0 to"),
        ("PREEMPT_DELAY = 1m", "a number from 0 to"),
    ] {
        let (_, said) = queues(line);
        assert!(said.len() == 1 && said[0].contains(want), "{line}: {said:?}");
    }
}

#[test]
fn mistakes_in_preemption_of_lsb_params_are_told_with_their_places() {
    for (line, want) in [
        (
            "PREEMPT_FOR = LEAST_RUNTIME",
            Some("unknown word <LEAST_RUNTIME> in PREEMPT_FOR ~LEAST_RUN_TIME"),
        ),
        ("PREEMPT_FOR = MINI_JOB least_run_time 0", None),
        ("PREEMPT_FOR = GROUP_MAX GROUP_JLP USER_JLP HOST_JLU", None),
        (
            "PREEMPT_JOBTYPE = EXCLUSIV",
            Some("unknown word <EXCLUSIV> in PREEMPT_JOBTYPE ~EXCLUSIVE"),
        ),
        ("PREEMPT_JOBTYPE = EXCLUSIVE GPU", Some("GPU of PREEMPT_JOBTYPE is not acted on")),
        ("PREEMPT_JOBTYPE = AFFINITY BACKFILL", None),
        ("USE_SUSP_SLOTS = N", None),
        ("USE_SUSP_SLOTS = Y", None),
        ("USE_SUSP_SLOTS = maybe", Some("Y or N is wanted")),
        ("PREEMPTABLE_RESOURCES = mem", None),
        (
            "PREEMPTABLE_RESOURCES = mem nosuch",
            Some("PREEMPTABLE_RESOURCES:29 unknown resource <nosuch> in PREEMPTABLE_RESOURCES"),
        ),
        (
            "PREEMPTABLE_RESOURCES = slots",
            Some("bad value <slots> of PREEMPTABLE_RESOURCES: of the built-in resources"),
        ),
        ("PREEMPTION_WAIT_TIME = 0", None),
        ("PREEMPTION_WAIT_TIME = 5m", Some("a number from 0 to")),
        ("MAX_JOB_PREEMPT_RESET = maybe", Some("Y or N is wanted")),
        ("NO_PREEMPT_RUN_TIME = 50%", None),
    ] {
        let mut files = site();
        let name = format!("{BATCH}/lsb.params");
        files.edit(&name, "End Parameters", &format!("{line}\nEnd Parameters"));
        let (_, diags) = load(&files, ENVDIR);
        let said: Vec<String> = diags.iter().map(|diag| placed(&files, diag)).collect();
        match want {
            None => assert_eq!(said, [""; 0], "{line}"),
            Some(want) => assert!(said.len() == 1 && said[0].contains(want), "{line}: {said:?}"),
        }
    }
}

#[test]
fn times_of_jobs_are_minutes_or_percentages() {
    assert_eq!(run_share("2"), Some(RunShare::Seconds(120)));
    assert_eq!(run_share(" 50 %"), Some(RunShare::Percent(50)));
    assert_eq!(run_share("-1"), Some(RunShare::Never));
    for bad in ["0%", "101%", "-2", "x", "", "1.5"] {
        assert_eq!(run_share(bad), None, "{bad}");
    }
}
