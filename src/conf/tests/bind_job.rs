//! LSF_BIND_JOB, BIND_JOB and MEMLIMIT_TYPE: values, and mistakes with their places.

use super::*;
use crate::model::bind_job::BindPolicy;

/// The policies of lsf.conf and lsb.applications, and the mistakes that are told.
fn read(host: &str, profile: &str) -> (BindPolicy, Option<BindPolicy>, Vec<String>) {
    let mut files = site();
    files.edit(
        &format!("{ENVDIR}/lsf.conf"),
        "LSF_UNIT_FOR_LIMITS=MB",
        &format!("LSF_BIND_JOB={host}\nLSF_UNIT_FOR_LIMITS=MB"),
    );
    let text = format!("Begin Application\nNAME = sim\nBIND_JOB = {profile}\nEnd Application\n");
    files.put(&format!("{BATCH}/lsb.applications"), text);
    let (conf, diags) = load_lenient(&files, ENVDIR, None);
    let conf = conf.unwrap();
    let said = diags.iter().map(|diag| placed(&files, diag));
    let said = said.filter(|said| said.contains("BIND_JOB")).collect();
    (conf.base.lsf.bind_job(), conf.batch.applications[0].bind_job, said)
}

#[test]
fn policies_of_binding_are_read_in_any_case_and_other_words_are_told() {
    let (host, profile, said) = read("user_cpu_list", "Y");
    let want = (BindPolicy::UserCpuList, Some(BindPolicy::Balance));
    assert_eq!(((host, profile), said), (want, Vec::new()));
    let (host, profile, said) = read("SPREAD", "CORES");
    assert_eq!((host, profile, said.len()), (BindPolicy::None, None, 2), "{said:?}");
    let bad = [
        "LSF_BIND_JOB:14 bad value <SPREAD> of LSF_BIND_JOB: NONE,",
        "BIND_JOB:12 bad value <CORES> of BIND_JOB: one of NONE,",
    ];
    for (said, bad) in said.iter().zip(bad) {
        assert!(said.contains(bad), "{said}");
    }
}

#[test]
fn memory_limit_types_are_words_in_any_order_and_others_are_told_with_their_places() {
    let read = |line: &str| {
        let mut files = site();
        let text = format!("Begin Application\nNAME = sim\n{line}\nEnd Application\n");
        files.put(&format!("{BATCH}/lsb.applications"), text);
        let (conf, diags) = load_lenient(&files, ENVDIR, None);
        let said: Vec<String> = diags.iter().map(|diag| placed(&files, diag)).collect();
        let of = conf.unwrap().batch.applications[0].memory_of;
        (of.map(|of| (of.job, of.process, of.task)), said)
    };
    for (line, want) in [
        ("MEMLIMIT_TYPE = JOB", Some((true, false, false))),
        ("MEMLIMIT_TYPE = process task", Some((false, true, true))),
        ("MEMLIMIT_TYPE = TASK PROCESS JOB", Some((true, true, true))),
        ("MEMLIMIT = 9", None),
    ] {
        let (of, said) = read(line);
        assert_eq!((of, said.iter().any(|said| said.contains("_TYPE"))), (want, false), "{said:?}");
    }
    let (of, said) = read("MEMLIMIT_TYPE = JOB HOST");
    assert_eq!(of, None);
    let bad = "MEMLIMIT_TYPE:21 bad value <HOST> of MEMLIMIT_TYPE: JOB, PROCESS or TASK is wanted";
    assert!(said.iter().any(|said| said.contains(bad)), "{said:?}");
}
