//! Application profiles: a job belongs to one by -app or DEFAULT_APPLICATION, and what its own
//! options leave open comes from it, within the limits of its queue.

use super::cluster::{Cluster, ClusterBuilder, cluster, elements};
use super::*;
use crate::model::job::opt;
use crate::model::limits::MemoryOf;
use crate::model::reason::err;
use crate::model::specfield::SpecField;
use crate::proto::client::ApplicationInfo;

fn profiles(c: &mut Cluster, names: &[&str]) -> Result<Vec<ApplicationInfo>, Refusal> {
    let names = names.iter().map(|name| name.to_string()).collect();
    match c.ask("ann", ClientMsg::Applications { names }).pop() {
        Some(Msg::Client(ClientMsg::ApplicationRows { rows })) => Ok(rows),
        Some(Msg::Refused(refusal)) => Err(refusal),
        other => panic!("{other:?}"),
    }
}

/// Pending, running and suspended slots of a profile.
fn slots(c: &mut Cluster, name: &str) -> [u64; 3] {
    let row = profiles(c, &[name]).unwrap().remove(0);
    [row.pend, row.run, row.ssusp + row.ususp]
}

fn limited() -> ClusterBuilder {
    cluster().hosts(1, 4).queue("normal", "RUNLIMIT = 20 100; MEMLIMIT = 1000")
}

/// The run limit of a started job, minutes.
fn run_limit(c: &mut Cluster, options: &str) -> Option<u64> {
    let job = c.submit("ann", options);
    let order = c.start_orders().into_iter().find(|order| order.key.job_ref() == job);
    c.end(job, 0);
    order.unwrap().limits.run.map(|secs| secs / 60)
}

fn code(refused: Result<JobRef, Refusal>) -> i32 {
    refused.expect_err("submitted").code
}

#[test]
fn submission_to_an_unknown_profile_is_refused() {
    let mut c = limited().application("sim", "").up();
    let refused = c.try_submit("ann", "-app sin").unwrap_err();
    assert_eq!(refused.words(), "sin: Application profile does not exist");
    assert_eq!(refused.code, err::NO_APP);
    assert_eq!(code(c.try_submit("ann", "-app sim -q no")), err::BAD_QUEUE);
    assert_eq!(profiles(&mut c, &["sim", "x"]).unwrap_err().code, err::NO_APP);
}

#[test]
fn limits_come_from_the_job_then_the_profile_then_the_queue() {
    let mut c = limited()
        .application("sim", "RUNLIMIT = 30")
        .application("both", "RUNLIMIT = 30 40")
        .application("bare", "DESCRIPTION = x")
        .application("large", "RUNLIMIT = 101")
        .application("memory", "MEMLIMIT = 2000")
        .up();
    for (options, minutes) in [
        ("", 20),
        ("-app bare", 20),
        ("-app sim", 30),
        ("-app both", 30),
        ("-app sim -W 50", 50),
        ("-app both -W 40", 40),
    ] {
        assert_eq!(run_limit(&mut c, options), Some(minutes), "{options}");
    }
    assert_eq!(code(c.try_submit("ann", "-app sim -W 101")), err::OVER_LIMIT);
    assert_eq!(code(c.try_submit("ann", "-app both -W 41")), err::OVER_APP_LIMIT);
    let refused = c.try_submit("ann", "-app large").unwrap_err();
    assert_eq!(refused.words(), "RUNLIMIT: Application profile exceeds the queue's hard limit(s)");
    assert_eq!(code(c.try_submit("ann", "-app memory")), err::APP_OVER_LIMIT);
    assert_eq!(run_limit(&mut c, "-app large -W 99"), Some(99));
}

#[test]
fn task_limits_of_profile_and_queue_both_hold() {
    let mut c = cluster()
        .hosts(4, 8)
        .queue("normal", "TASKLIMIT = 2 2 8")
        .application("wide", "TASKLIMIT = 3 4 6")
        .application("huge", "TASKLIMIT = 9 9 9")
        .application("top", "TASKLIMIT = 5")
        .up();
    for (options, tasks) in [("", 2), ("-app wide", 4), ("-app wide -n 6", 6), ("-app top -n 3", 3)]
    {
        let job = c.submit("ann", options);
        assert_eq!(c.running_on(job).len(), tasks, "{options}");
    }
    assert_eq!(code(c.try_submit("ann", "-app wide -n 7")), err::PROC_APP);
    assert_eq!(code(c.try_submit("ann", "-app wide -n 2")), err::PROC_APP);
    assert_eq!(code(c.try_submit("ann", "-app huge")), err::PROC_APP_QUEUE);
    assert_eq!(code(c.try_submit("ann", "-app huge -n 9")), err::PROC_NUM);
    // one task is less than the queue takes
    assert_eq!(code(c.try_submit("ann", "-app top")), err::PROC_APP_QUEUE);
}

#[test]
fn jobs_without_app_belong_to_the_default_profile() {
    let site = limited().param("DEFAULT_APPLICATION = sim").application("sim", "RUNLIMIT = 30");
    let mut c = site.application("other", "RUNLIMIT = 40").up();
    assert_eq!(run_limit(&mut c, ""), Some(30));
    assert_eq!(run_limit(&mut c, "-app other"), Some(40));
    assert!(profiles(&mut c, &["sim"]).unwrap()[0].is_default);
    c.submit("ann", "-b +100 -app other");
    let later = c.submit("ann", "-b +100 -app other");
    assert_eq!(c.modify("ann", later, &[SpecField::App], ""), 0);
    assert_eq!((slots(&mut c, "sim")[0], slots(&mut c, "other")[0]), (1, 1));
}

#[test]
fn profile_of_a_pending_job_can_be_changed_with_what_it_gave() {
    let mut c = limited().application("sim", "RUNLIMIT = 30; TASKLIMIT = 2 2 4").up();
    let job = c.submit("ann", "-app sim -b +60");
    assert_eq!(slots(&mut c, "sim"), [2, 0, 0]);
    assert_eq!(c.modify("ann", job, &[SpecField::App], "-app sin"), err::NO_APP);
    assert_eq!(c.modify("ann", job, &[SpecField::App], ""), 0);
    assert_eq!(slots(&mut c, "sim"), [0, 0, 0]);
    c.advance(61);
    let order = c.start_orders().pop().unwrap();
    assert_eq!((order.limits.run, order.hosts[0].1), (Some(20 * 60), 1));
}

#[test]
fn slots_of_a_profile_are_counted_by_state() {
    let mut c = limited().application("sim", "").application("idle", "").up();
    let array = c.submit("ann", "-app sim -J a[1-6]");
    let alone = c.submit("ann", "-app sim -b +60 -n 2");
    c.submit("ann", "-b +60");
    assert_eq!(slots(&mut c, "sim"), [4, 4, 0]);
    c.stop("ann", super::cluster::element(array, 1));
    assert_eq!(slots(&mut c, "sim"), [4, 3, 1]);
    let some = elements(array, 5, 6);
    assert_eq!(c.modify("ann", some, &[SpecField::App], "-app idle"), 0);
    assert_eq!((slots(&mut c, "sim"), slots(&mut c, "idle")), ([2, 3, 1], [2, 0, 0]));
    c.restart();
    assert_eq!((slots(&mut c, "sim"), slots(&mut c, "idle")), ([2, 3, 1], [2, 0, 0]));
    c.kill("ann", alone);
    assert_eq!(slots(&mut c, "sim"), [0, 3, 1]);
}

#[test]
fn jobs_of_a_removed_profile_keep_running() {
    let with = limited().application("sim", "RUNLIMIT = 30");
    let mut c = with.up();
    let running = c.submit("ann", "-app sim");
    c.reconfigure(limited());
    assert_eq!(c.state(running), "RUN");
    assert_eq!(profiles(&mut c, &[]).unwrap(), []);
    assert_eq!(code(c.try_submit("ann", "-app sim")), err::NO_APP);
    c.end(running, 0);
    assert_eq!(c.state(running), "DONE");
}

/// The order that starts a job.
fn order(c: &mut Cluster, options: &str) -> crate::proto::sbd::StartJob {
    let job = c.submit("ann", options);
    let found = c.start_orders().into_iter().find(|order| order.key.job_ref() == job);
    found.unwrap_or_else(|| panic!("{options}: not started"))
}

#[test]
fn requirements_of_job_profile_and_queue_are_merged() {
    let queue = "RES_REQ = select[mem>=0] order[mem] rusage[mem=1,swp=2]";
    let profile = "RES_REQ = select[fast] order[ut] span[hosts=1] rusage[mem=5]";
    let mut c = cluster()
        .hosts(2, 8)
        .resource("fast Boolean () ()")
        .host_resources("h2", "fast")
        .queue("normal", queue)
        .application("sim", profile)
        .up();
    let job = c.submit("ann", "-app sim -R 'order[pg]'");
    assert_eq!(c.running_on(job), ["h2"]);
    let shown = c.column(job, Col::CombinedResReq).to_string();
    let own = "select[((fast) && (mem>=0)) && (type == any)] order[pg] \
               rusage[mem=5.00,swp=2.00] span[hosts=1]";
    assert_eq!(shown, format!("\"{own}\""));
    // a job of another profile is of another class
    let plain = c.submit("ann", "-R 'order[pg]' -m h1");
    assert_eq!(c.running_on(plain), ["h1"]);
    let never = c.submit("ann", "-app sim -m h1");
    assert_eq!(c.reason(never), PendReason::Requirement);
    assert_eq!(c.modify("ann", never, &[SpecField::App], ""), 0);
    c.advance(60);
    assert_eq!(c.running_on(never), ["h1"]);
}

#[test]
fn commands_come_from_the_job_then_the_profile_then_the_queue() {
    let queue = "PRE_EXEC = qpre; POST_EXEC = qpost; JOB_STARTER = qstart; NICE = 5\n\
                 HOST_PRE_EXEC = qhpre\nHOST_POST_EXEC = qhpost\n\
                 JOB_CONTROLS = SUSPEND[qs] RESUME[qr]";
    let profile = "PRE_EXEC = apre; POST_EXEC = apost; JOB_STARTER = astart; NICE = 7\n\
                   HOST_PRE_EXEC = ahpre\nHOST_POST_EXEC = ahpost\n\
                   SUSPEND_CONTROL = as; TERMINATE_CONTROL = SIGUSR2";
    let site = cluster().hosts(2, 8).queue("normal", queue);
    let mut c = site.clone().application("sim", profile).application("bare", "").up();
    let of = |o: &crate::proto::sbd::StartJob| {
        let job = (o.spec.pre_exec.lossy(), o.spec.post_exec.lossy());
        format!("{} {} {} {} {} {}", o.pre_exec, job.0, job.1, o.post_exec, o.starter, o.nice)
    };
    assert_eq!(of(&order(&mut c, "-app bare")), "qpre   qpost qstart 5");
    assert_eq!(of(&order(&mut c, "-app sim -E jpre")), "qpre jpre apost qpost astart 7");
    let o = order(&mut c, "-app sim");
    assert_eq!(of(&o), "qpre apre apost qpost astart 7");
    assert_eq!(o.host_pre_exec, "(\nqhpre\n) && (\nahpre\n)");
    let after = "(\nahpost\n)\nlsf_first=$?\n(\nqhpost\n) && exit $lsf_first";
    assert_eq!(o.host_post_exec, after);
    assert_eq!(
        serde_json::to_string(&o.controls).unwrap(),
        r#"{"suspend":{"Command":"as"},"resume":{"Command":"qr"},"terminate":{"Signal":12}}"#
    );
    // a job that waits when its profile is removed has what its queue says
    let waiting = c.submit("ann", "-app sim -b +60");
    c.reconfigure(site);
    c.advance(61);
    let o = c.start_orders().pop().unwrap();
    assert_eq!(o.key.job_ref(), waiting);
    assert_eq!((of(&o), &*o.host_pre_exec), ("qpre   qpost qstart 5".to_owned(), "qhpre"));
}

#[test]
fn exit_values_of_a_profile_requeue_or_count_as_success() {
    let mut c = cluster()
        .hosts(1, 8)
        .queue("normal", "REQUEUE_EXIT_VALUES = 2")
        .application(
            "sim",
            "REQUEUE_EXIT_VALUES = 3; SUCCESS_EXIT_VALUES = 4 2; MAX_JOB_REQUEUE = 1",
        )
        .up();
    for (options, code, state) in [
        ("", 2, "PEND"),
        ("", 3, "EXIT"),
        ("", 4, "EXIT"),
        ("-app sim", 2, "DONE"),
        ("-app sim", 4, "DONE"),
        ("-app sim", 5, "EXIT"),
        ("-app sim -Q 4", 3, "EXIT"),
        ("-app sim -Q 4", 4, "PEND"),
    ] {
        let job = c.submit("ann", options);
        c.end(job, code);
        assert_eq!(c.state(job), state, "{options} {code}");
        if state == "PEND" {
            c.kill("ann", job);
        }
    }
    let job = c.submit("ann", "-app sim");
    let after = c.submit("ann", &format!("-w 'done({})'", job.job));
    c.end(job, 3);
    assert_eq!(c.state(job), "PEND");
    c.advance(60);
    assert_eq!(c.state(job), "RUN");
    c.end(job, 3);
    assert_eq!(c.state(job), "PSUSP");
    c.resume("ann", job);
    c.advance(60);
    c.end(job, 4);
    assert_eq!(c.state(job), "DONE");
    c.advance(60);
    assert_eq!(c.state(after), "RUN");
}

#[test]
fn rerun_and_checkpoint_of_a_profile_override_those_of_the_queue() {
    let mut c = cluster()
        .hosts(1, 8)
        .queue("normal", "RERUNNABLE = Y; CHKPNT = /q 10")
        .application("no", "RERUNNABLE = N")
        .application("dir", "CHKPNT_DIR = /a; CHKPNT_PERIOD = 20; CHKPNT_METHOD = m")
        .up();
    for (options, rerun, directory) in [
        ("", true, "/q 10"),
        ("-app no", false, "/q 10"),
        ("-app no -r", true, "/q 10"),
        ("-app dir", true, "/a 20 method=m"),
        ("-app dir -k /j", true, "/j"),
    ] {
        let o = order(&mut c, options);
        let may = o.spec.options & opt::RERUNNABLE != 0;
        let checkpoint = o.spec.further.checkpoint.as_ref().unwrap().to_string();
        assert_eq!((may, checkpoint.as_str()), (rerun, directory), "{options}");
    }
}

#[test]
fn jobs_of_a_profile_are_resizable_where_their_queue_is_not() {
    let site = cluster().hosts(1, 8).application("sim", "RESIZABLE_JOBS = Y; MIG = 5");
    let mut c = site.application("auto", "RESIZABLE_JOBS = auto; TASKLIMIT = 3").up();
    assert!(!order(&mut c, "-n 1,2").resizable);
    assert!(order(&mut c, "-app sim -n 1,2").resizable);
    let filler = c.submit("ann", "-n 3");
    let job = c.submit("ann", "-app auto -n 1,3");
    assert_eq!(c.running_on(job).len(), 1);
    c.end(filler, 0);
    c.advance(60);
    assert_eq!(c.running_on(job).len(), 3);
}

#[test]
fn pending_jobs_follow_a_profile_that_changes_or_is_removed() {
    let with = |lines: &str| limited().application("sim", lines);
    let mut c = with("RUNLIMIT = 30; TASKLIMIT = 1 2 4; ESTIMATED_RUNTIME = 7").up();
    let first = c.submit("ann", "-app sim -b +60");
    let own = c.submit("ann", "-app sim -b +60 -W 50");
    let array = c.submit("ann", "-app sim -b +60 -J a[1-4]");
    assert_eq!(c.modify("ann", elements(array, 3, 3), &[SpecField::RunLimit], "-W 60"), 0);
    c.reconfigure(with("RUNLIMIT = 40; TASKLIMIT = 1 1 4"));
    let limit = |c: &mut Cluster, at: JobRef| c.column(at, Col::Limits).to_string();
    assert!(limit(&mut c, first).contains("2400"), "{}", limit(&mut c, first));
    assert!(limit(&mut c, own).contains("3000"));
    let fourth = super::cluster::element(array, 4);
    assert!(limit(&mut c, fourth).contains("2400"));
    assert!(limit(&mut c, super::cluster::element(array, 3)).contains("3600"));
    c.restart();
    assert!(limit(&mut c, fourth).contains("2400"));
    assert_eq!(slots(&mut c, "sim"), [6, 0, 0]);
    c.reconfigure(limited());
    assert!(limit(&mut c, first).contains("1200"));
    let written = c.logged(|event| matches!(event, Event::JobModify(_)));
    c.reconfigure(limited());
    assert_eq!(c.logged(|event| matches!(event, Event::JobModify(_))), written);
    c.advance(61);
    let order = c.start_orders().remove(0);
    assert_eq!((order.limits.run, order.hosts[0].1), (Some(20 * 60), 1));
    assert_eq!(&*order.spec.further.estimate, "");
}

#[test]
fn environment_directory_and_times_come_from_the_profile() {
    let lines = "ENV_VARS = A='x y',B=z; JOB_CWD = run/%J; JOB_INCLUDE_POSTPROC = Y\n\
                 JOB_POSTPROC_TIMEOUT = 2\nJOB_PREPROC_TIMEOUT = 3\nRUNTIME = 1:30\n\
                 RESIZE_NOTIFY_CMD = told\nRESIZABLE_JOBS = Y\nPEND_TIME_LIMIT = 4\n\
                 DJOB_DISABLED = y\nDJOB_COMMFAIL_ACTION = ignore_commfail\nDJOB_HB_INTERVAL = 20\n\
                 BIND_JOB = pack\n\
                 RTASK_GONE_ACTION = \"KILLJOB_TASKEXIT IGNORE_TASKCRASH\"";
    let mut c = cluster()
        .hosts(1, 8)
        .param("JOB_PREPROC_TIMEOUT = 5")
        .queue("normal", "PEND_TIME_LIMIT = 9; ELIGIBLE_PEND_TIME_LIMIT = 8")
        .application("sim", lines)
        .up();
    let plain = order(&mut c, "");
    assert_eq!(plain.bind_job, "");
    assert_eq!((plain.include_post, plain.post_timeout, plain.pre_timeout), (false, 0, 300));
    let o = order(&mut c, "-app sim");
    assert_eq!(o.bind_job, "PACK");
    assert_eq!((o.include_post, o.post_timeout, o.pre_timeout), (true, 120, 180));
    let vars: Vec<String> =
        o.env_vars.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let launch = ["LSB_DJOB_DISABLED=Y", "LSB_DJOB_COMMFAIL_ACTION=IGNORE_COMMFAIL"];
    assert_eq!(vars[..2], ["A=x y", "B=z"]);
    let gone = "LSB_DJOB_RTASK_GONE_ACTION=KILLJOB_TASKEXIT IGNORE_TASKCRASH";
    assert_eq!(vars[2..], [launch[0], launch[1], gone, "LSB_DJOB_HB_INTERVAL=20"]);
    assert_eq!(o.spec.cwd.lossy(), "/run/%J");
    assert_eq!(&*o.spec.further.estimate, "1:30");
    let job = o.key.job_ref();
    assert_eq!(c.column(job, Col::PendLimits).to_string(), "[240,480]");
    assert_eq!(c.column(plain.key.job_ref(), Col::PendLimits).to_string(), "[540,480]");
}

#[test]
fn the_directory_of_jobs_is_their_own_else_the_profiles_else_the_clusters() {
    let mut c = cluster()
        .hosts(1, 8)
        .param("DEFAULT_JOB_CWD = all/%J")
        .param("JOB_CWD_TTL = 2")
        .application("sim", "JOB_CWD = /run/%J; JOB_CWD_TTL = 0")
        .application("kept", "JOB_CWD_TTL = 2147483647")
        .application("plain", "NICE = 1")
        .up();
    let dir = |o: crate::proto::sbd::StartJob| o.spec.cwd.lossy().into_owned();
    assert_eq!(dir(order(&mut c, "")), "/all/%J");
    assert_eq!(dir(order(&mut c, "-app plain")), "/all/%J");
    assert_eq!(dir(order(&mut c, "-app sim")), "/run/%J");
    assert_eq!(dir(order(&mut c, "-cwd /mine")), "/mine");
    assert_eq!(dir(order(&mut c, "-app sim -cwd /mine")), "/mine");
    let mut ttl = |options| order(&mut c, options).cwd_ttl;
    assert_eq!([ttl(""), ttl("-app sim"), ttl("-app kept")], [Some(7200), Some(0), None]);
}

#[test]
fn output_directory_of_a_job_is_its_own_else_the_clusters() {
    let own = |out_dir: &str, options2: u32| {
        let mut job = JobSpec { cwd: "/home/ann".into(), options2, ..spec("x") };
        job.further.out_dir = out_dir.into();
        if options2 != 0 {
            job.cwd = "/elsewhere".into();
            job.further.submission_directory = "/home/ann".into();
        }
        job
    };
    let dir = |of_site: &str, spec: JobSpec| {
        let site = cluster().hosts(1, 8).param("DEFAULT_JOB_CWD = /run/%J");
        let mut c = site.param(of_site).up();
        c.ask("ann", ClientMsg::Submit(Box::new(Submit { spec, ..Submit::default() })));
        c.start_orders().pop().unwrap().spec.further.out_dir.to_string()
    };
    let absolute = "DEFAULT_JOB_OUTDIR = /out/%U/%J";
    assert_eq!(dir(absolute, own("", 0)), "/out/%U/%J");
    assert_eq!(dir(absolute, own("mine", 0)), "mine");
    // relative to the directory of the submission, wherever the job works
    let relative = "DEFAULT_JOB_OUTDIR = out/%J";
    assert_eq!(dir(relative, own("", 0)), "/home/ann/out/%J");
    assert_eq!(dir(relative, own("", crate::model::job::opt2::CWD)), "/home/ann/out/%J");
    assert_eq!(dir("JOB_CWD_TTL = 2", own("", 0)), "");
}

#[test]
fn warning_and_estimate_of_the_queue_are_those_of_jobs_without_their_own() {
    let lines = "JOB_WARNING_ACTION = URG\nJOB_ACTION_WARNING_TIME = 2\nESTIMATED_RUNTIME = 30";
    let mut c = cluster().hosts(1, 9).queue("normal", lines).queue("c", "").up();
    let of = |c: &mut Cluster, options: &str| {
        c.submit("ann", options);
        let order = c.start_orders().pop().unwrap();
        let further = &order.spec.further;
        let columns =
            ["wa", "wt", "We"].map(|name| further.text(name).map(|text| text.into_owned()));
        columns.map(Option::unwrap_or_default)
    };
    assert_eq!(of(&mut c, ""), ["URG", "120", "30"]);
    assert_eq!(of(&mut c, "-wt 50% -We 5"), ["URG", "50%", "5"]);
    assert_eq!(of(&mut c, "-wa USR2"), ["USR2", "120", "30"]);
    assert_eq!(of(&mut c, "-q c"), ["", "", ""]);
}

#[test]
fn warning_checkpoint_of_the_queue_is_of_jobs_with_a_directory() {
    let lines = "JOB_WARNING_ACTION = CHKPNT\nJOB_ACTION_WARNING_TIME = 2";
    let mut c = cluster().hosts(1, 9).queue("normal", lines).up();
    for (options, want) in [("", false), ("-k /own", true)] {
        c.submit("ann", options);
        let order = c.start_orders().pop().unwrap();
        assert_eq!(order.spec.further.warn_action.is_some(), want, "{options}");
    }
}

#[test]
fn hosts_are_told_the_memory_limit_type_of_the_profile() {
    let site = cluster().hosts(1, 8).queue("normal", "PRIORITY = 30; MEMLIMIT = 4M");
    let site = site.application("sim", "MEMLIMIT_TYPE = task PROCESS").application("other", "");
    let mut c = site.up();
    let both = Some(MemoryOf { process: true, task: true, ..MemoryOf::default() });
    for (options, want) in [("-app sim", both), ("-app other", None), ("", None)] {
        c.submit("ann", options);
        let limits = c.start_orders().pop().unwrap().limits;
        assert_eq!((limits.rss, limits.memory_of), (Some(4096), want), "{options}");
    }
}
