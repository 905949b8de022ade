//! Mistakes in single values, each told with its place.

use super::*;

const MAX_JOBID: &str = "MAX_JOBID = 9999999";

/// The diagnostics of further lines of lsb.params.
fn of_params(lines: &str) -> Vec<String> {
    said("lsb.params", MAX_JOBID, &format!("{MAX_JOBID}\n{lines}"))
}

#[test]
fn period_of_done_jobs_is_ignored_unless_it_is_the_shorter_one() {
    let with = |done: &str| of_params(&format!("CLEAN_PERIOD_DONE = {done}"));
    assert!(with("3599").is_empty());
    let ignored = "warning lsb.params CLEAN_PERIOD_DONE:21 CLEAN_PERIOD_DONE is ignored: it is not \
                   less than CLEAN_PERIOD, 3600";
    assert_eq!(with("3600"), [ignored]);
    let bad = "error lsb.params CLEAN_PERIOD_DONE:21 bad value <1h> of CLEAN_PERIOD_DONE: a number \
               from 0 to 2147483647 is wanted";
    assert_eq!(with("1h"), [bad]);
}

#[test]
fn mistakes_in_sizes_of_jobs_are_told_with_their_place() {
    let q = |line: &str| said("lsb.queues", "NICE           = 20", line);
    assert!(q("JOB_SIZE_LIST = 4 2147483646 1\nHOSTLIMIT_PER_JOB = 3").is_empty());
    for (line, told) in [
        (
            "JOB_SIZE_LIST = 4 x 0",
            &[
                "error lsb.queues JOB_SIZE_LIST:19 bad value <x> of JOB_SIZE_LIST: a number from 1 \
                 to 2147483646 is wanted",
                "error lsb.queues JOB_SIZE_LIST:21 bad value <0> of JOB_SIZE_LIST: a number from 1 \
                 to 2147483646 is wanted",
            ][..],
        ),
        (
            "JOB_SIZE_LIST = 4 2 4",
            &["warning lsb.queues JOB_SIZE_LIST:21 JOB_SIZE_LIST has 4 twice"],
        ),
        (
            "HOSTLIMIT_PER_JOB = 0",
            &[
                "error lsb.queues HOSTLIMIT_PER_JOB:21 bad value <0> of HOSTLIMIT_PER_JOB: a number \
               from 1 to 2147483647 is wanted",
            ],
        ),
    ] {
        assert_eq!(q(line), told, "{line}");
    }
}

#[test]
fn parameters_about_user_groups_are_y_or_n() {
    for name in ["ENFORCE_ONE_UG_LIMITS", "ENFORCE_UG_TREE", "DEFAULT_LIMIT_IGNORE_USER_GROUP"] {
        assert!(of_params(&format!("{name} = N")).is_empty(), "{name}");
        let column = name.len() + 4;
        let bad =
            format!("error lsb.params {name}:{column} bad value <2> of {name}: Y or N is wanted");
        assert_eq!(of_params(&format!("{name} = 2")), [bad]);
    }
}

#[test]
fn parameters_that_have_nothing_to_change_say_why() {
    let ego = "it is about service classes with resources of EGO; there are none";
    for (name, why) in [
        ("DEFAULT_SLA_VELOCITY", ego),
        ("SLA_TIMER", ego),
        ("MAX_CONCURRENT_QUERY", "no query has a process of its own, and none holds up another"),
        ("PEND_REASON_MAX_JOBS", "the reasons of every pending job are worked out when asked for"),
        ("PEND_REASON_UPDATE_INTERVAL", "pending reasons are worked out when they are asked for"),
    ] {
        let notice = format!("notice lsb.params {name}:1 {name} changes nothing: {why}");
        assert_eq!(of_params(&format!("{name} = 5")), [notice.as_str()]);
        let told = of_params(&format!("{name} = often"));
        let bad = format!("error lsb.params {name}:{} bad value <often> of", name.len() + 4);
        assert!(told.len() == 2 && told[1].starts_with(&bad), "{told:?}");
        assert_eq!(told[0], notice);
    }
    let of_queue = |value: &str| {
        let line = format!("MAX_RSCHED_TIME = {value}");
        said("lsb.queues", "NICE           = 20", &line)
    };
    let notice = "notice lsb.queues MAX_RSCHED_TIME:1 MAX_RSCHED_TIME changes nothing: jobs are not \
                  forwarded to other clusters, and none are waited for there";
    assert_eq!(of_queue("20"), [notice]);
    assert_eq!(of_queue("infinit"), [notice]);
    assert_eq!(of_queue("20 h").len(), 2);
}

#[test]
fn ways_to_condense_pending_reasons_and_to_sort_hosts_are_checked() {
    for good in [
        "CONDENSE_PENDING_REASONS = all",
        "CONDENSE_PENDING_REASONS = Partial",
        "SCHED_PER_JOB_SORT = y",
    ] {
        assert!(of_params(good).is_empty(), "{good}");
    }
    let bad = "error lsb.params CONDENSE_PENDING_REASONS:28 bad value <some> of \
               CONDENSE_PENDING_REASONS: one of ALL, Y, PARTIAL, N is wanted";
    assert_eq!(of_params("CONDENSE_PENDING_REASONS = some"), [bad]);
    let bad = "error lsb.params SCHED_PER_JOB_SORT:22 bad value <2> of SCHED_PER_JOB_SORT: Y or N \
               is wanted";
    assert_eq!(of_params("SCHED_PER_JOB_SORT = 2"), [bad]);
}

#[test]
fn second_parent_of_a_user_group_is_told_where_groups_form_a_tree() {
    let rows = "Begin UserGroup\nGROUP_NAME GROUP_MEMBER\nug1 (ann)\nug2 (ug1 bob)\n\
        ug3 (eve ug1 ~ug2)\nEnd UserGroup\n";
    let told = |tree: &str| {
        let mut files = site();
        let users = format!("{rows}\nBegin UserGroup");
        files.edit(&format!("{BATCH}/lsb.users"), "Begin UserGroup", &users);
        let path = format!("{BATCH}/lsb.params");
        files.edit(&path, MAX_JOBID, &format!("{MAX_JOBID}\n{tree}"));
        let (conf, diags) = load(&files, ENVDIR);
        let of_users = |d: &&crate::conf::Diag| d.file.ends_with("lsb.users");
        let told: Vec<String> = diags.iter().filter(of_users).map(|d| placed(&files, d)).collect();
        let members = conf.map(|conf| {
            let last = &conf.batch.users.groups[2].members;
            last.iter().map(|m| m.name.clone()).collect::<Vec<_>>()
        });
        (told, members)
    };
    let all = ["eve", "ug1", "ug2"].map(str::to_owned).to_vec();
    assert_eq!(told("ENFORCE_UG_TREE = N"), (vec![], Some(all)));
    let warning = "warning lsb.users ug3:10 user group <ug1> is not a member of <ug3>: it is one \
                   of <ug2> (ENFORCE_UG_TREE)";
    let kept = ["eve", "ug2"].map(str::to_owned).to_vec();
    assert_eq!(told("ENFORCE_UG_TREE = Y"), (vec![warning.to_owned()], Some(kept)));
}

#[test]
fn condense_of_a_group_or_a_unit_is_y_or_n() {
    let told = |rows: &str| said("lsb.hosts", "Begin HostGroup", rows);
    let with = |word: &str| {
        told(&format!(
            "Begin HostGroup\nGROUP_NAME CONDENSE GROUP_MEMBER\ncg1 {word} (all)\nEnd HostGroup\n\
             Begin ComputeUnit\nNAME MEMBER CONDENSE\ncu1 (all) {word}\nEnd ComputeUnit\n\
             Begin HostGroup"
        ))
    };
    let bad: Vec<String> = with("maybe");
    let of = |text: &str| bad.iter().filter(|line| line.ends_with(text)).count();
    assert_eq!(of("bad value <maybe> of CONDENSE: Y or N is wanted"), 2, "{bad:?}");
    let places = ["error lsb.hosts cg1:5 ", "error lsb.hosts cu1:11 "];
    assert!(places.iter().all(|at| bad.iter().any(|line| line.starts_with(at))), "{bad:?}");
    assert!(with("Y").iter().all(|line| !line.contains("CONDENSE")), "{:?}", with("Y"));
}

#[test]
fn words_of_the_display_of_requirements_are_checked() {
    for word in ["none", "Brief", "full"] {
        assert!(of_params(&format!("BJOBS_RES_REQ_DISPLAY = {word}")).is_empty(), "{word}");
    }
    let bad = "error lsb.params BJOBS_RES_REQ_DISPLAY:25 bad value <all> of BJOBS_RES_REQ_DISPLAY: \
               one of none, brief, full is wanted";
    assert_eq!(of_params("BJOBS_RES_REQ_DISPLAY = all"), [bad]);
    let bad = "error lsb.params BSWITCH_MODIFY_RUSAGE:25 bad value <maybe> of \
               BSWITCH_MODIFY_RUSAGE: Y or N is wanted";
    assert_eq!(of_params("BSWITCH_MODIFY_RUSAGE = maybe"), [bad]);
}

#[test]
fn temporary_directories_of_jobs_are_read_from_three_variables() {
    use crate::conf::types::LsfConf;
    let of = |lines: &str| {
        let mut files = site();
        let path = format!("{ENVDIR}/lsf.conf");
        let text = String::from_utf8(files.read(&path).unwrap().to_vec()).unwrap();
        files.put(&path, format!("{text}\n{lines}\n"));
        let (conf, diags) = load(&files, ENVDIR);
        let told: Vec<String> = diags.iter().map(|d| placed(&files, d)).collect();
        let found =
            |lsf: &LsfConf| lsf.job_tmpdir().map(|(base, variable)| format!("{base} {variable}"));
        (conf.and_then(|conf| found(&conf.base.lsf)), told)
    };
    for (lines, want) in [
        ("", None),
        ("LSB_SET_TMPDIR=n", None),
        ("LSB_SET_TMPDIR=y", Some("/tmp TMPDIR")),
        ("LSB_SET_TMPDIR=MY_TMP", Some("/tmp MY_TMP")),
        ("LSF_TMPDIR=/scratch", Some("/scratch ")),
        ("LSF_TMPDIR=/scratch\nLSB_JOB_TMPDIR=/%H/jobs\nLSB_SET_TMPDIR=Y", Some("/%H/jobs TMPDIR")),
    ] {
        assert_eq!(of(lines), (want.map(str::to_owned), vec![]), "{lines}");
    }
    for (line, told) in [
        (
            "LSB_SET_TMPDIR=LD_PRELOAD",
            "error lsf.conf LSB_SET_TMPDIR:16 bad value <LD_PRELOAD> of LSB_SET_TMPDIR: Y, N or the \
             name of a variable is wanted",
        ),
        (
            "LSB_JOB_TMPDIR=tmp",
            "error lsf.conf LSB_JOB_TMPDIR:16 bad value <tmp> of LSB_JOB_TMPDIR: an absolute path \
             of at most 256 bytes is wanted",
        ),
    ] {
        assert_eq!(of(line).1, [told], "{line}");
    }
}

#[test]
fn archives_of_the_accounts_are_read_and_bad_values_are_named() {
    let read = |text: &str| {
        let text = format!("Begin Parameters\n{text}\nEnd Parameters\n");
        let mut diags = crate::conf::Diags::new();
        let files = MapFiles::one("/c/lsb.params", text);
        let conf = crate::conf::lsb_params::parse(&files, "/c/lsb.params", &mut diags).unwrap();
        let said: Vec<String> = diags.list().iter().map(|d| d.to_string()).collect();
        (conf.log.archives, said)
    };
    let all = "ACCT_ARCHIVE_AGE = 2\nACCT_ARCHIVE_SIZE = 3\nACCT_ARCHIVE_TIME = 23:05\n\
               MAX_ACCT_ARCHIVE_FILE = 4";
    let (age, size, minute, keep) = (Some(172_800), Some(3072), Some(23 * 60 + 5), Some(4));
    let want = crate::conf::types::AcctArchiveParams { age, size, minute, keep };
    assert_eq!(read(all), (want, vec![]));
    assert_eq!(read("MAX_JOBID = 9999999"), (Default::default(), vec![]));
    for bad in ["24:00", "7", "7:5", "07:60", "a:10", "-1:10", "1:+5"] {
        let (_, said) = read(&format!("ACCT_ARCHIVE_TIME = {bad}"));
        assert!(said[0].contains("2:21") && said[0].contains("hh:mm"), "{bad}: {said:?}");
    }
}

#[test]
fn archives_of_the_accounts_are_named_where_the_log_is_duplicated() {
    let mut files = site();
    let lines = format!("{MAX_JOBID}\nACCT_ARCHIVE_SIZE = 3");
    files.edit(&format!("{BATCH}/lsb.params"), MAX_JOBID, &lines);
    let warned = |files: &MapFiles| {
        let (_, diags) = load(files, ENVDIR);
        diags.iter().filter(|d| d.to_string().contains("ACCT_ARCHIVE_SIZE has no effect")).count()
    };
    assert_eq!(warned(&files), 0);
    let local = "LSB_LOCALDIR=/var/lsf\nLSB_SHAREDIR=";
    files.edit(&format!("{ENVDIR}/lsf.conf"), "LSB_SHAREDIR=", local);
    assert_eq!(warned(&files), 1);
}
