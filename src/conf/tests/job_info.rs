//! SECURE_JOB_INFO_LEVEL, ENABLE_JOB_INFO_BY_ADMIN_ROLE and GROUP_ADMIN as they are read.

use super::*;
use crate::conf::types::JobAccess;

/// The access that lines of lsb.params give, and what is told about them.
fn access(lines: &str) -> (JobAccess, Vec<String>) {
    let mut files = site();
    let path = format!("{BATCH}/lsb.params");
    files.edit(&path, "DEFAULT_QUEUE", &format!("{lines}\nDEFAULT_QUEUE"));
    let (conf, diags) = load_lenient(&files, ENVDIR, None);
    (conf.unwrap().batch.params.job_access, told(&diags))
}

#[test]
fn level_that_is_no_number_of_the_table_is_told_and_shows_least() {
    assert_eq!(access("SECURE_JOB_INFO_LEVEL = 3").0.level, 3);
    assert_eq!(access("SECURE_JOB_INFO_LEVEL = 0").0.level, 0);
    for bad in ["6", "-1", "x"] {
        let (access, told) = access(&format!("SECURE_JOB_INFO_LEVEL = {bad}"));
        assert_eq!(access.level, 4, "{bad}");
        assert!(told.iter().any(|line| line.contains("SECURE_JOB_INFO_LEVEL")), "{told:?}");
    }
}

#[test]
fn roles_are_read_in_any_case_and_an_unknown_one_is_told() {
    let (both, told) = access("ENABLE_JOB_INFO_BY_ADMIN_ROLE = Queue usergroup");
    let all = [both.user_group_admins, both.queue_admins, both.cluster_admins];
    assert_eq!((all, told.is_empty()), ([true, true, false], true));
    let (none, told) = access("ENABLE_JOB_INFO_BY_ADMIN_ROLE = host");
    assert_eq!(none, JobAccess::default());
    let words = "<host> of ENABLE_JOB_INFO_BY_ADMIN_ROLE is none of usergroup, queue and cluster";
    assert!(told.iter().any(|line| line.contains(words)), "{told:?}");
}

#[test]
fn administrators_of_a_group_of_all_users_without_strict_control_are_told() {
    let told_with = |strict: &str| {
        let mut files = site();
        let rows = "Begin UserGroup\nGROUP_NAME GROUP_MEMBER GROUP_ADMIN\n\
            every (all) (dan)\nEnd UserGroup\n";
        files.put(&format!("{BATCH}/lsb.users"), rows);
        let line = format!("STRICT_UG_CONTROL = {strict}\nDEFAULT_QUEUE");
        files.edit(&format!("{BATCH}/lsb.params"), "DEFAULT_QUEUE", &line);
        let all = told(&load_lenient(&files, ENVDIR, None).1);
        all.iter().filter(|line| line.contains("STRICT_UG_CONTROL=Y")).count()
    };
    assert_eq!(["N", "Y"].map(told_with), [1, 0]);
}
