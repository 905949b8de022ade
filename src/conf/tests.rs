//! Whole configurations: the examples that are shipped, and files that are missing or spoiled.

use super::generate::{SitePlan, generate};
use super::testing::MapFiles;
use super::types::*;
use super::{Diag, Files, Severity, check_batch, has_errors, load, load_base, load_lenient};
use proptest::prelude::*;

mod affinity;
mod aps;
mod bind_job;
mod event_stream;
mod extendable_run_limit;
mod job_info;
mod limits;
mod membership;
mod mistakes;
mod nlb_policy;
mod parallel_jobs;
mod preemption;
mod service_classes;
mod shares;
mod slot_pools;
mod units_and_ranges;
mod values;

/// The example site, as its files are shipped.
fn site() -> MapFiles {
    let mut files = MapFiles::default();
    macro_rules! put {
        ($($name:literal),*) => {$(
            files.put(
                concat!("/opt/lsf/conf/", $name),
                include_str!(concat!("../../conf-examples/site/", $name)),
            );
        )*};
    }
    put!("lsf.conf", "lsf.shared", "lsf.cluster.example", "hosts");
    put!("lsbatch/example/configdir/lsb.params", "lsbatch/example/configdir/lsb.hosts");
    put!("lsbatch/example/configdir/lsb.queues", "lsbatch/example/configdir/lsb.users");
    put!("lsbatch/example/configdir/lsb.resources");
    files
}

const ENVDIR: &str = "/opt/lsf/conf";
const BATCH: &str = "/opt/lsf/conf/lsbatch/example/configdir";

fn told(diags: &[Diag]) -> Vec<String> {
    diags.iter().map(|d| format!("{}: {d}", d.severity.word())).collect()
}

/// The diagnostics of the example site after one edit, paths cut off.
fn said(file: &str, from: &str, to: &str) -> Vec<String> {
    let mut files = site();
    let path = if file.starts_with("lsb.") {
        format!("{BATCH}/{file}")
    } else {
        format!("{ENVDIR}/{file}")
    };
    files.edit(&path, from, to);
    let (conf, diags) = load(&files, ENVDIR);
    assert_eq!(conf.is_none(), has_errors(&diags), "{:?}", told(&diags));
    diags.iter().map(|d| placed(&files, d)).collect()
}

/// A diagnostic with the first word of its line instead of the line's number, so that the
/// examples may be edited.
fn placed(files: &MapFiles, diag: &Diag) -> String {
    let bytes = files.read(&diag.file).expect("a diagnostic names a file");
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let line = text.lines().nth(diag.line as usize - 1).unwrap_or_default();
    let word = line.trim().split([' ', '=']).next().unwrap_or_default();
    let file = diag.file.rsplit('/').next().unwrap_or_default();
    let near = diag.near.as_deref().map(|n| format!(" ~{n}")).unwrap_or_default();
    format!("{} {file} {word}:{} {}{near}", diag.severity.word(), diag.col, diag.text)
}

fn example() -> ClusterConf {
    let (conf, diags) = load(&site(), ENVDIR);
    assert_eq!(told(&diags), Vec::<String>::new());
    conf.expect("the example loads")
}

#[test]
fn the_example_site_reads_without_a_word() {
    let conf = example();
    assert_eq!(conf.base.name, "example");
    assert_eq!(conf.base.cluster.admins, ["lsfadmin", "carla"]);
    assert_eq!(conf.server_hosts().collect::<Vec<_>>(), ["alpha", "beta", "gamma"]);
    assert_eq!(conf.base.hosts.canonical("beta.example.com"), Some("beta"));
    assert_eq!(conf.base.hosts.canonical("198.51.100.12"), Some("beta"));
    assert_eq!(conf.base.hosts.canonical("2001:DB8:0::13"), Some("gamma"));
    assert_eq!(conf.base.lsf.master_list(), ["alpha", "beta"]);
    let beta = &conf.base.cluster.hosts[1];
    assert_eq!((beta.model.as_deref(), beta.server), (Some("PC_new"), true));
    assert_eq!(beta.thresholds, [("mem".to_owned(), 500.0), ("r1m".to_owned(), 24.0)]);
    let rack =
        HostResource { name: "rack".into(), value: Some("r1".into()), ..HostResource::default() };
    assert_eq!(beta.resources[0], rack);
    let map = &conf.base.cluster.resource_map[0];
    let ten = ResourceInstance { value: Some("10".into()), hosts: vec!["all".into()] };
    assert_eq!((map.resource.as_str(), &map.instances), ("licence", &vec![ten]));
    let licence = conf.base.shared.resources.iter().find(|r| r.name == "licence").unwrap();
    assert!(licence.consumable && licence.increasing == Some(false));
    assert_eq!(conf.batch.params.max_jobid, 9_999_999);
    assert!(conf.batch.params.job_dep_last_sub);
    let p = &conf.batch.params;
    assert_eq!((p.max_user_jobs, p.max_user_space_mb), (None, 2048));
}

#[test]
fn limits_of_a_user_are_read() {
    let text = "Begin Parameters\nMAX_USER_JOBS = 20000\nMAX_USER_SPACE = 100\nEnd Parameters\n";
    let files = MapFiles::one("/c/lsb.params", text);
    let mut diags = super::Diags::new();
    let p = super::lsb_params::parse(&files, "/c/lsb.params", &mut diags).unwrap();
    assert_eq!((p.max_user_jobs, p.max_user_space_mb), (Some(20_000), 100));
}

#[test]
fn queues_of_the_example_have_their_values() {
    let conf = example();
    let urgent = conf.queue("urgent").unwrap();
    assert_eq!((urgent.qjob_limit, urgent.ujob_limit), (Some(8), Some(2)));
    assert_eq!(urgent.run_limit.default.as_ref().unwrap().seconds, 1800);
    assert_eq!(urgent.run_limit.maximum.as_ref().unwrap().seconds, 7200);
    assert_eq!(urgent.admins, ["dora"]);
    let normal = conf.queue("normal").unwrap();
    assert_eq!(normal.mem_limit, Limit { default: Some(2 << 20), maximum: Some(32 << 20) });
    assert_eq!(normal.tasks.limit, Some(TaskLimit { min: 1, default: 1, max: 16 }));
    let big = conf.queue("big").unwrap();
    assert_eq!(conf.queue_hosts(big), [("beta", 1), ("gamma", 2)]);
    assert_eq!(big.res_req.as_deref(), Some("select[mem > 4000] order[mem]"));
    let idle = conf.queue("idle").unwrap();
    assert_eq!((idle.nice, idle.rerunnable, idle.priority), (20, true, 10));
    assert_eq!(conf.queue_hosts(idle).len(), 3);
}

#[test]
fn hosts_of_a_queue_are_those_of_its_list() {
    let hosts = |value: &str| -> Vec<String> {
        let mut files = site();
        let to = format!("HOSTS = {value}\nNICE           = 20");
        files.edit(&format!("{BATCH}/lsb.queues"), "NICE           = 20", &to);
        let (conf, diags) = load(&files, ENVDIR);
        let conf = conf.unwrap_or_else(|| panic!("{:?}", told(&diags)));
        let idle = conf.queue("idle").unwrap();
        conf.queue_hosts(idle).iter().map(|(host, pref)| format!("{host}+{pref}")).collect()
    };
    assert_eq!(hosts("all"), ["alpha+0", "beta+0", "gamma+0"]);
    assert_eq!(hosts("~gamma"), ["alpha+0", "beta+0"]);
    assert_eq!(hosts("all ~rack1/"), ["gamma+0"]);
    assert_eq!(hosts("others+1 beta+5"), ["alpha+1", "beta+5", "gamma+1"]);
    assert_eq!(hosts("(*a ~g*)"), ["alpha+0", "beta+0"]);
    assert_eq!(hosts("compute rack1+2"), ["alpha+2", "beta+2", "gamma+0"]);
    assert_eq!(hosts("desk1 alpha.eng.example.com"), ["alpha+0"], "desk1 runs no jobs");
    assert_eq!(hosts("none"), Vec::<String>::new());
}

#[test]
fn groups_users_and_slots_of_the_example() {
    let conf = example();
    assert_eq!(conf.host_group("compute").unwrap(), ["beta", "gamma"]);
    assert_eq!(conf.host_group("everyone").unwrap(), ["alpha", "beta", "gamma"]);
    assert_eq!(conf.host_group("nobody"), None);
    let none: &[String] = &[];
    assert!(conf.in_user_group("anna", "developers", none));
    assert!(!conf.in_user_group("zoe", "developers", none));
    let urgent = conf.queue("urgent").unwrap();
    assert!(conf.queue_admits(urgent, "bert", none));
    assert!(!conf.queue_admits(urgent, "trainee", none), "left out by ~trainee");
    assert!(!conf.queue_admits(urgent, "zoe", none));
    assert!(conf.queue_admits(conf.queue("normal").unwrap(), "zoe", none));
    assert!(conf.administers(urgent, "dora", none) && conf.administers(urgent, "carla", none));
    assert!(!conf.administers(urgent, "anna", none));
    assert_eq!(conf.host_slots("alpha", None, None, 8), Some(6));
    assert_eq!(conf.host_slots("beta", None, Some("PC_new"), 16), Some(16));
}

#[test]
fn groups_of_the_operating_system_count() {
    let mut files = site();
    files.edit(&format!("{BATCH}/lsb.users"), "(solver interface)", "(solver staff)");
    let conf = load(&files, ENVDIR).0.expect("loads");
    assert!(conf.in_user_group("zoe", "developers", &["staff".to_owned()]));
    assert!(!conf.in_user_group("zoe", "developers", &["guests".to_owned()]));
}

#[test]
fn policies_of_day_night_and_weekend_fit_the_site_and_a_personal_cluster() {
    macro_rules! policy {
        ($name:literal) => {
            [
                include_str!(concat!("../../conf-examples/policies/", $name, "/lsb.queues")),
                include_str!(concat!("../../conf-examples/policies/", $name, "/lsb.resources")),
            ]
        };
    }
    let policies =
        [(policy!("day"), "short"), (policy!("night"), "idle"), (policy!("weekend"), "normal")];
    let mut personal = MapFiles::default();
    for (path, text, _) in generate(&SitePlan::personal("/p", "u", 3)) {
        personal.put(&format!("/p/{path}"), text);
    }
    let places = [
        (site(), ENVDIR, BATCH.to_owned()),
        (personal, "/p/conf", "/p/conf/lsbatch/personal/configdir".to_owned()),
    ];
    for (mut files, envdir, configdir) in places {
        for ([queues, resources], first) in policies {
            files.put(&format!("{configdir}/lsb.queues"), queues);
            files.put(&format!("{configdir}/lsb.resources"), resources);
            let (conf, diags) = load(&files, envdir);
            assert_eq!(told(&diags), Vec::<String>::new());
            let queues = conf.expect("the policy loads").batch.queues;
            let best = queues.iter().max_by_key(|q| q.priority).map(|q| q.name.as_str());
            assert_eq!(best, Some(first));
            assert_eq!(queues.len(), 3, "a swap loses no queue");
        }
    }
}

#[test]
fn a_host_has_fairshare_of_queues_or_of_a_partition() {
    let with = |queue: &str, hosts: &str| {
        let mut files = site();
        let part = "Begin HostPartition\nHPART_NAME = part\nHOSTS = HOSTS_HERE\n\
                    USER_SHARES = [default, 1]\nEnd HostPartition\n\nBegin HostGroup";
        let part = part.replace("HOSTS_HERE", hosts);
        files.edit(&format!("{BATCH}/lsb.hosts"), "Begin HostGroup", &part);
        let name = format!("QUEUE_NAME     = {queue}");
        let fair = format!("{name}\nFAIRSHARE = USER_SHARES[[default, 1]]");
        files.edit(&format!("{BATCH}/lsb.queues"), &name, &fair);
        let (conf, diags) = load(&files, ENVDIR);
        let errors = diags.iter().filter(|d| d.severity == Severity::Error);
        let errors: Vec<String> = errors.map(|d| placed(&files, d)).collect();
        assert_eq!(conf.is_none(), !errors.is_empty());
        errors
    };
    let told = |queue: &str, host: &str| {
        format!(
            "error lsb.queues Begin:7 queue <{queue}> has FAIRSHARE, and its host <{host}> is in \
             host partition <part>: a host has fairshare of queues or of a partition, not both"
        )
    };
    assert_eq!(with("normal", "all"), [told("normal", "alpha")]);
    assert_eq!(with("normal", "rack1 ~alpha"), [told("normal", "beta")]);
    // of hosts that the queue does not use nothing is said
    assert_eq!(with("big", "alpha"), Vec::<String>::new());
}

#[test]
fn slots_of_a_user_for_each_processor_are_a_number_or_unlimited() {
    let text =
        |value: &str| format!("Begin User\nUSER_NAME MAX_JOBS JL/P\nann 5 {value}\nEnd User\n");
    for (value, want) in [("1.5", Some(1.5)), ("0", Some(0.0)), ("-", None), ("()", None)] {
        let (path, mut diags) = ("/c/lsb.users", super::Diags::new());
        let files = MapFiles::one(path, text(value));
        let users = super::lsb_users::parse(&files, path, &mut diags).unwrap();
        assert_eq!((users.users[0].jl_p, diags.list().len()), (want, 0), "{value}");
    }
    for bad in ["-1", "x"] {
        let (path, mut diags) = ("/c/lsb.users", super::Diags::new());
        super::lsb_users::parse(&MapFiles::one(path, text(bad)), path, &mut diags);
        let told: Vec<String> = diags.list().iter().map(|d| d.to_string()).collect();
        let place = format!("{path}:3:7: bad value <{bad}> of JL/P");
        assert!(told.len() == 1 && told[0].starts_with(&place), "{told:?}");
    }
}

#[test]
fn a_site_may_want_no_mail() {
    let mut lsf = super::LsfConf::default();
    assert_eq!(lsf.mail_program(), "/usr/lib/sendmail");
    lsf.set("LSB_MAILPROG", "/opt/mail");
    assert_eq!(lsf.mail_program(), "/opt/mail");
    lsf.set("LSB_JOB_REPORT_MAIL", "N");
    assert_eq!(lsf.mail_program(), "");
}

#[test]
fn a_host_that_is_gone_from_the_cluster_is_left_out_of_queues_with_a_warning() {
    let mut files = site();
    let cluster = format!("{ENVDIR}/lsf.cluster.example");
    let text = String::from_utf8_lossy(&files.read(&cluster).unwrap()).into_owned();
    let kept: String =
        text.lines().filter(|l| !l.starts_with("gamma ")).map(|l| format!("{l}\n")).collect();
    files.put(&cluster, &kept);
    files.edit(&format!("{ENVDIR}/lsf.conf"), "LSF_MASTER_LIST", "# LSF_MASTER_LIST");
    let (conf, diags) = load(&files, ENVDIR);
    let named = |l: &String| l.starts_with("warning: ") && l.contains("<gamma> is neither a host");
    assert!(told(&diags).iter().any(named), "{:?}", told(&diags));
    let conf = conf.unwrap_or_else(|| panic!("{:?}", told(&diags)));
    for queue in &conf.batch.queues {
        assert!(conf.queue_hosts(queue).iter().all(|(host, _)| *host != "gamma"));
    }
}

#[test]
fn the_obsolete_name_of_a_parameter_acts_until_the_newer_one_is_there() {
    let per_task = |lines: &str| {
        let mut files = site();
        let path = format!("{BATCH}/lsb.params");
        files.edit(&path, "DEFAULT_QUEUE", &format!("{lines}\nDEFAULT_QUEUE"));
        load(&files, ENVDIR).0.unwrap().batch.params.resource_reserve_per_task
    };
    assert!(per_task("RESOURCE_RESERVE_PER_SLOT = Y"));
    assert!(!per_task("RESOURCE_RESERVE_PER_SLOT = Y\nRESOURCE_RESERVE_PER_TASK = N"));
    assert!(!per_task("RESOURCE_RESERVE_PER_SLOT = N"));
    assert!(per_task("SLOT_RESOURCE_RESERVE = y"));
    assert!(!per_task("SLOT_RESOURCE_RESERVE = Y\nRESOURCE_RESERVE_PER_SLOT = N"));
}

#[test]
fn names_that_nothing_acts_on_are_counted_on_one_line() {
    let mut files = site();
    let (_, before) = load(&files, ENVDIR);
    let count = |diags: &[Diag]| super::summary_not_acted_on(diags, "");
    assert_eq!(count(&before), None, "{:?}", told(&before));
    let path = format!("{BATCH}/lsb.queues");
    files.edit(&path, "NICE           = 20", "NICE = 20\nPLAN = Y\nRES_REQ = span[gtile=2]");
    let (_, after) = load(&files, ENVDIR);
    assert_eq!(count(&after).unwrap(), "2 parameters are known and not acted on.");
    let text = super::summary_not_acted_on(&after[..1], "badmin ckconfig -v").unwrap();
    assert_eq!(text, "1 parameter is known and not acted on: badmin ckconfig -v lists them.");
}

#[test]
fn columns_of_hosts_that_nothing_acts_on_are_kept_as_written() {
    let mut files = site();
    let rows = "Begin Host\nHOST_NAME MXJ CHKPNT\nalpha 6 C\nEnd Host\n";
    files.put(&format!("{BATCH}/lsb.hosts"), rows);
    files.put(&format!("{BATCH}/lsb.queues"), "Begin Queue\nQUEUE_NAME = idle\nEnd Queue\n");
    files.edit(&format!("{BATCH}/lsb.params"), "DEFAULT_QUEUE", "# DEFAULT_QUEUE");
    let (conf, diags) = load(&files, ENVDIR);
    let conf = conf.unwrap_or_else(|| panic!("{:?}", told(&diags)));
    let of = |row: usize| conf.batch.hosts.hosts[row].not_acted_on.clone();
    assert_eq!(of(0), [("CHKPNT".to_owned(), "C".to_owned())]);
}

#[test]
fn the_unit_of_requirements_is_the_one_for_limits_where_it_is_given() {
    let unit = |line: &str| {
        let mut files = site();
        files.edit("/opt/lsf/conf/lsf.conf", "LSF_UNIT_FOR_LIMITS=MB", line);
        load_base(&files, ENVDIR).0.unwrap().lsf.requirement_unit_mb()
    };
    assert_eq!(unit("# no unit"), 1.0);
    assert_eq!(unit("LSF_UNIT_FOR_LIMITS=KB"), 1.0 / 1024.0);
    assert_eq!(unit("LSF_UNIT_FOR_LIMITS=GB"), 1024.0);
}

#[test]
fn missing_files_are_told_and_the_rest_is_read() {
    let mut files = site();
    files.remove(&format!("{BATCH}/lsb.users"));
    let (conf, diags) = load(&files, ENVDIR);
    let line = format!("notice: {BATCH}/lsb.users: is not there; nothing is limited by it");
    assert_eq!(told(&diags)[0], line);
    assert!(conf.is_some(), "lsb.users may be absent: developers is a group of the system then");
    files.remove(&format!("{BATCH}/lsb.queues"));
    let (conf, diags) = load_lenient(&files, ENVDIR, None);
    assert!(conf.is_none());
    let line = format!("error: {BATCH}/lsb.queues: cannot be read: No such file or directory");
    assert!(told(&diags).contains(&line));
    assert!(load_base(&files, ENVDIR).0.is_some());
    let (conf, diags) = load(&MapFiles::default(), "/nowhere/");
    assert!(conf.is_none());
    let line = "error: /nowhere/lsf.conf: cannot be read: No such file or directory";
    assert_eq!(told(&diags), [line]);
}

#[test]
fn a_lenient_start_leaves_out_what_is_broken() {
    let mut files = site();
    files.edit(&format!("{BATCH}/lsb.queues"), "PRIORITY       = 30", "PRIORITY = x");
    let (conf, diags) = load_lenient(&files, ENVDIR, None);
    assert!(has_errors(&diags));
    assert_eq!(conf.unwrap().queue("normal").unwrap().priority, 1);
}

#[test]
fn the_cluster_of_the_local_host_is_ours() {
    let mut files = site();
    files.edit(&format!("{ENVDIR}/lsf.shared"), "\nexample\n", "\nother\nexample\n");
    let other = "Begin ClusterAdmins\nAdministrators = x\nEnd ClusterAdmins\n\
                 Begin Host\nHOSTNAME model type server RESOURCES\nomega ! ! 1 ()\nEnd Host\n";
    // Without its file a remote cluster is only a name.
    assert_eq!(load(&files, ENVDIR).0.expect("loads").base.name, "example");
    files.put(&format!("{ENVDIR}/lsf.cluster.other"), other);
    let name = |host| super::load_base_lenient(&files, ENVDIR, host).0.unwrap().base_name();
    assert_eq!(name(Some("gamma")), "example");
    assert_eq!(name(Some("omega")), "other");
    assert_eq!(name(None), "other");
}

impl BaseConf {
    fn base_name(self) -> String {
        self.name
    }
}

#[test]
fn severities_order_and_errors_survive_a_flood() {
    assert!(Severity::Notice < Severity::Warning && Severity::Warning < Severity::Error);
    let mut files = site();
    let path = format!("{BATCH}/lsb.queues");
    files.edit(&path, "Begin Queue", &("stray\n".repeat(5_000) + "Begin Queue\nWRONG = 1"));
    let (conf, diags) = load(&files, ENVDIR);
    assert!(conf.is_none() && has_errors(&diags));
    assert!(diags.len() <= super::diag::MAX_DIAGS);
}

/// A file to spoil, a place in it, and the bytes to put there.
fn spoiled() -> impl Strategy<Value = (usize, usize, Vec<u8>)> {
    let piece = prop_oneof![
        Just(b"(".to_vec()),
        Just(b"\"".to_vec()),
        Just(b"\\\n".to_vec()),
        Just(b"\nEnd X\n".to_vec()),
        Just(b"\nBegin Queue\n".to_vec()),
        Just(b"\n#if time(1-2)\n".to_vec()),
        Just(b"\n#INCLUDE \"lsb.queues\"\n".to_vec()),
        Just(b"= 99999999999999999999 ".to_vec()),
        Just("\u{0}\u{fffd}é\u{202e}".as_bytes().to_vec()),
        Just(vec![0xff, 0xc3, b'[']),
        proptest::collection::vec(any::<u8>(), 0..12),
    ];
    (any::<proptest::sample::Index>(), 0usize..6_000, piece)
        .prop_map(|(i, at, p)| (i.index(9), at, p))
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_spoiled_file_is_read_without_panic(
        spoils in proptest::collection::vec(spoiled(), 1..6),
    ) {
        let mut files = site();
        let paths = files.paths();
        for (which, at, piece) in spoils {
            let path = &paths[which % paths.len()];
            let mut bytes = files.read(path).unwrap();
            let at = at % (bytes.len() + 1);
            bytes.splice(at..at, piece);
            files.put(path, bytes);
        }
        let (conf, diags) = load(&files, ENVDIR);
        prop_assert_eq!(conf.is_none(), has_errors(&diags));
        for diag in &diags {
            prop_assert!(!diag.to_string().contains(char::is_control), "{}", diag);
        }
    }

    #[test]
    fn any_bytes_of_a_file_are_read_without_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
    ) {
        for path in site().paths() {
            let mut files = site();
            files.put(&path, &bytes);
            let _ = load(&files, ENVDIR);
        }
    }
}

#[test]
fn every_branch_is_checked_whatever_the_time_is() {
    let mut files = site();
    let path = format!("{BATCH}/lsb.params");
    files.edit(
        &path,
        "End Parameters",
        "#if time(8:00-17:00)\nMAX_JOB_NUM = 10\n#elif time(17:00-20:00)\nMAX_JOBNUM = 20\n\
         #if time(18:00-19:00)\nCLEAN_PERIOD = x\n#endif\n#else\nMAX_JOB_NUM = 30\n#endif\n\
         End Parameters",
    );
    // Tuesday 2023-11-14, 10:00 UTC
    files.at = Some(1_699_956_000);
    let (conf, diags) = load(&files, ENVDIR);
    let conf = conf.unwrap_or_else(|| panic!("{:?}", told(&diags)));
    assert_eq!(conf.batch.params.max_job_num, 10);
    assert_eq!(conf.changes, Some(1_699_956_000 + 7 * 3600));
    let checked = super::check_batch(&files, ENVDIR);
    let wrong: Vec<String> = checked
        .iter()
        .filter(|d| d.severity == Severity::Error)
        .map(|d| placed(&files, d))
        .collect();
    assert_eq!(wrong.len(), 2, "{wrong:?}");
    assert!(wrong[0].starts_with("error lsb.params MAX_JOBNUM:1 "), "{wrong:?}");
    assert!(wrong[1].starts_with("error lsb.params CLEAN_PERIOD:16 "), "{wrong:?}");
    // at night that is what holds
    files.at = Some(1_699_956_000 + 12 * 3600);
    assert_eq!(load(&files, ENVDIR).0.unwrap().batch.params.max_job_num, 30);
    files.at = Some(1_699_956_000 + 8 * 3600);
    assert!(load(&files, ENVDIR).0.is_none());
}

#[test]
fn conditions_of_queues_are_read() {
    let read = |lines: &str| {
        let mut files = site();
        let text = format!("{lines}\nEnd Parameters");
        files.edit(&format!("{BATCH}/lsb.params"), "End Parameters", &text);
        let wrong = super::check_batch(&files, ENVDIR);
        let wrong = wrong.iter().filter(|d| d.severity == Severity::Error);
        let wrong: Vec<String> = wrong.map(|d| placed(&files, d)).collect();
        let params = load(&files, ENVDIR).0.map(|conf| conf.batch.params);
        let of =
            |p: BatchParams| (p.removal.orphan_grace, p.evaluation.most, p.evaluation.timeout_ms);
        (params.map(of), wrong)
    };
    assert_eq!(read("").0, Some((None, None, None)));
    for (text, ms) in [("2", 2_000), ("250 ms", 250), ("250ms", 250), ("1000000ms", 1_000_000)] {
        let line = format!("EVALUATE_JOB_DEPENDENCY_TIMEOUT = {text}");
        assert_eq!(read(&line), (Some((None, None, Some(ms))), vec![]), "{text}");
    }
    let both = "ORPHAN_JOB_TERM_GRACE_PERIOD = 0\nEVALUATE_JOB_DEPENDENCY = 100";
    assert_eq!(read(both), (Some((Some(0), Some(100), None)), vec![]));
    for (bad, at) in [
        ("ORPHAN_JOB_TERM_GRACE_PERIOD = soon", "ORPHAN_JOB_TERM_GRACE_PERIOD:32 "),
        ("EVALUATE_JOB_DEPENDENCY = 0", "EVALUATE_JOB_DEPENDENCY:27 "),
        ("EVALUATE_JOB_DEPENDENCY_TIMEOUT = 0", "EVALUATE_JOB_DEPENDENCY_TIMEOUT:35 "),
        ("EVALUATE_JOB_DEPENDENCY_TIMEOUT = 3 s", "EVALUATE_JOB_DEPENDENCY_TIMEOUT:35 "),
        ("EVALUATE_JOB_DEPENDENCY_TIMEOUT = 1000001ms", "EVALUATE_JOB_DEPENDENCY_TIMEOUT:35 "),
    ] {
        let (_, wrong) = read(bad);
        assert!(wrong[0].starts_with(&format!("error lsb.params {at}")), "{wrong:?}");
    }
}

#[test]
fn the_time_of_what_runs_after_jobs_is_in_minutes() {
    let read = |line: &str| {
        let mut files = site();
        let text = format!("{line}\nEnd Parameters");
        files.edit(&format!("{BATCH}/lsb.params"), "End Parameters", &text);
        let wrong = super::check_batch(&files, ENVDIR);
        let wrong = wrong.iter().filter(|d| d.severity == Severity::Error);
        let wrong: Vec<String> = wrong.map(|d| placed(&files, d)).collect();
        let found = load(&files, ENVDIR).0.map(|conf| conf.batch.params.command_timeouts.post);
        (found, wrong)
    };
    assert_eq!(read(""), (Some(None), vec![]));
    assert_eq!(read("JOB_POSTPROC_TIMEOUT = 3"), (Some(Some(180)), vec![]));
    for bad in ["0", "-1", "1:30", "soon"] {
        let (_, wrong) = read(&format!("JOB_POSTPROC_TIMEOUT = {bad}"));
        assert!(wrong[0].starts_with("error lsb.params JOB_POSTPROC_TIMEOUT:24 "), "{wrong:?}");
    }
}

#[test]
fn parameters_of_job_groups_and_messages_are_read_and_checked() {
    use crate::conf::types::GroupClean;
    let read = |line: &str| {
        let mut diags = crate::conf::Diags::new();
        let text = format!("Begin Parameters\n{line}\nEnd Parameters\n");
        let files = MapFiles::one("/c/lsb.params", &text);
        let p = super::lsb_params::parse(&files, "/c/lsb.params", &mut diags).unwrap();
        let told = diags.list().iter().map(|diag| diag.text.clone()).collect::<Vec<_>>();
        (p.job_group_clean, p.default_jobgroup, p.max_job_msg_num, p.max_job_atta_kb, told)
    };
    let (clean, group, messages, kb, told) = read("");
    assert_eq!((clean, group, messages, kb, told), (GroupClean::No, None, 128, None, vec![]));
    assert_eq!(read("JOB_GROUP_CLEAN = Y").0, GroupClean::Implicit);
    assert_eq!(read("JOB_GROUP_CLEAN = ALL").0, GroupClean::All);
    let bad = "bad value <x> of JOB_GROUP_CLEAN: Y, N or all is wanted";
    assert_eq!(read("JOB_GROUP_CLEAN = x").4, [bad]);
    assert_eq!(read("DEFAULT_JOBGROUP = /a/%u").1.as_deref(), Some("/a/%u"));
    assert_eq!((read("MAX_JOB_MSG_NUM = 0").2, read("MAX_JOB_ATTA_SIZE = 7").3), (0, Some(7)));
    assert_eq!(read("MAX_JOB_MSG_NUM = x").4.len() + read("MAX_JOB_ATTA_SIZE = -1").4.len(), 2);
}
