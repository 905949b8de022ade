//! Plans from start orders.

use super::*;
use crate::model::JobKey;
use crate::model::further::Mark;
use crate::model::job::JobSpec;
use std::sync::Arc;

fn order() -> StartJob {
    StartJob {
        key: JobKey { job: 101, idx: 3, attempt: 1 },
        user: "alice".into(),
        cluster: "c1".into(),
        hosts: [("h1".into(), 2), ("h2".into(), 1)].into(),
        name: "sim[3]".into(),
        index_end: 9,
        index_step: 2,
        spec: JobSpec {
            command: "./sim".into(),
            queue: "normal".into(),
            cwd: "/home/alice/w".into(),
            out_file: "o.%J.%I".into(),
            max_slots: 3,
            ..JobSpec::default()
        }
        .into(),
        ..StartJob::default()
    }
}

fn env_of(o: &StartJob, user: &[u8]) -> Vec<String> {
    let site = HostEnvironment {
        env: vec![("LSF_ENVDIR".into(), "/conf".into()), ("LSF_LOCAL_HOST".into(), "h1".into())],
        terminate_interval: 10,
        ..HostEnvironment::default()
    };
    let TaskPlan::Job(job) = plan(&site, o, user, b"").what else { panic!() };
    let vars = job.env.0.split(|&b| b == 0).filter(|v| !v.is_empty());
    vars.map(|v| String::from_utf8_lossy(v).into_owned()).collect()
}

#[test]
fn the_job_finds_its_variables() {
    let got = env_of(&order(), b"");
    for want in [
        "LSB_JOBID=101",
        "LSB_JOBINDEX=3",
        "LSB_JOBINDEX_END=9",
        "LSB_JOBINDEX_STEP=2",
        "LSB_JOBNAME=sim[3]",
        "LSB_QUEUE=normal",
        "LSB_HOSTS=h1 h1 h2",
        "LSB_MCPU_HOSTS=h1 2 h2 1",
        "LSB_DJOB_NUMPROC=3",
        "LSB_DJOB_ATTEMPT=1",
        "LSB_MAX_NUM_PROCESSORS=3",
        "LS_SUBCWD=/home/alice/w",
        "LSB_OUTPUTFILE=o.101.3",
        "LSF_ENVDIR=/conf",
        "LSF_LOCAL_HOST=h1",
        "JOB_TERMINATE_INTERVAL=10",
        "LSB_SUB_USER=alice",
    ] {
        assert!(got.iter().any(|v| v == want), "{want} not in {got:?}");
    }
    let mut o = order();
    o.key.idx = 0;
    let got = env_of(&o, b"");
    assert!(got.iter().any(|v| v == "LSB_JOBINDEX=0"));
    assert!(!got.iter().any(|v| v.starts_with("LSB_JOBINDEX_END")));
}

#[test]
fn the_submitters_variables_pass_but_for_the_stale_ones() {
    let user = b"PATH=/bin\0HOME=/h\0PWD=/x\0USER=u\0TERM=vt\0LSB_JOBID=7\0LSB_HOSTS=old\0\
        LSF_LOCAL_HOST=h9\0LSB_DJOB_HOSTFILE=/f\0LSB_DEFAULTQUEUE=q\0=odd\0noequals\0EMPTY=\0\
        MULTI=a\nb=c\0RAW=\xff\0";
    let got = env_of(&order(), user);
    for want in ["PATH=/bin", "LSB_DEFAULTQUEUE=q", "EMPTY=", "MULTI=a\nb=c", "RAW=\u{fffd}"] {
        assert!(got.iter().any(|v| v == want), "{want}");
    }
    let gone = ["HOME=", "PWD=", "USER=", "TERM=", "LSB_JOBID=7", "LSF_LOCAL_HOST=h9", "=odd"];
    for bad in gone.iter().chain(&["LSB_DJOB_HOSTFILE", "LSB_HOSTS=old", "noequals"]) {
        assert!(!got.iter().any(|v| v.starts_with(bad)), "{bad}");
    }
    let ids = got.iter().filter(|v| v.starts_with("LSB_JOBID=")).count();
    assert_eq!(ids, 1);
}

#[test]
fn a_very_wide_job_has_no_lsb_hosts() {
    let mut o = order();
    o.hosts = [("a-long-host-name".into(), 1000)].into();
    let got = env_of(&o, b"");
    assert!(!got.iter().any(|v| v.starts_with("LSB_HOSTS=")));
    assert!(got.iter().any(|v| v == "LSB_MCPU_HOSTS=a-long-host-name 1000"));
}

#[test]
fn job_and_index_numbers_replace_their_patterns() {
    assert_eq!(expand(b"a%J-%I.%x%", 12, 3), b"a12-3.%x%");
    assert_eq!(expand(b"%%J", 12, 0), b"%12");
}

#[test]
fn background_commands_are_waited_for() {
    for plain in ["sleep 1", "a && b", "a > f 2>&1", "a &> f", "echo a\\&b", "a >& f"] {
        assert_eq!(with_wait(plain.as_bytes()), plain.as_bytes(), "{plain}");
    }
    for bg in ["sleep 5 &", "a & b", "(a; b)& c && d"] {
        assert!(with_wait(bg.as_bytes()).ends_with(b"\nwait\nexit $ExitStat\n"), "{bg}");
    }
}

#[test]
fn a_shell_is_left_out_only_where_it_would_change_nothing() {
    let words = |c: &str| {
        let all: Vec<String> =
            plain_words(c.as_bytes()).iter().map(|w| w.lossy().into_owned()).collect();
        all.join("|")
    };
    assert_eq!(words("/bin/true"), "/bin/true");
    assert_eq!(words(" ./run.sh  -n 3 a,b:c@d%e+f=g "), "./run.sh|-n|3|a,b:c@d%e+f=g");
    let kept = [
        "true",
        "",
        "  ",
        "exit 3",
        "A=/b /bin/env",
        "A=/b",
        "/bin/a; b",
        "/bin/a *",
        "/bin/a ~",
        "/bin/a $X",
        "/bin/a 'b'",
        "/bin/a \"b\"",
        "/bin/a\tb",
        "/bin/a\nb",
        "/bin/a &",
        "/bin/a #x",
        "/bin/a [b]",
        "/bin/a {b,c}",
        "/bin/a !b",
        "/bin/a ^b",
        "/bin/a b\\ c",
        "/bin/a `b`",
        "/bin/a <b",
        "/bin/a >b",
        "/bin/a|b",
        "(/bin/a)",
        "/bin/a b?",
        "/bin/\u{e9}",
    ];
    for shell in kept {
        assert_eq!(words(shell), "", "{shell}");
    }
}

#[test]
fn directories_below_home_move_with_it() {
    let m = |d: &str| map_home(d.as_bytes(), b"/home/al/", b"/users/al");
    assert_eq!(m("/home/al"), b"/users/al");
    assert_eq!(m("/home/al/w/x"), b"/users/al/w/x");
    assert_eq!(m("/home/alan"), b"/home/alan");
    assert_eq!(m("/data"), b"/data");
    assert_eq!(map_home(b"/x", b"/", b"/users/al"), b"/x");
    assert_eq!(map_home(b"/x", b"", b"/users/al"), b"/x");
}

#[test]
fn a_cwd_that_must_exist() {
    let site = HostEnvironment::default();
    let need = |env: &[u8]| match plan(&site, &order(), env, b"").what {
        TaskPlan::Job(j) => j.need_cwd,
        _ => panic!(),
    };
    assert!(!need(b"A=1") && need(b"A=1\0LSB_EXIT_IF_CWD_NOTEXIST=Y\0"));
}

#[test]
fn hooks_of_a_job_run_in_their_order() {
    let mut o = order();
    (o.pre_exec, o.post_exec) = ("q1".into(), "q2".into());
    Arc::make_mut(&mut o.spec).from_host = "s".into();
    let spec = Arc::make_mut(&mut o.spec);
    (spec.pre_exec, spec.post_exec) = ("j1".into(), "j2".into());
    spec.further.put_text("f", "in.%J > i c <> c");
    let texts = |hooks: &[Hook]| -> Vec<(HookOf, String)> {
        hooks.iter().map(|h| (h.of, h.text.lossy().into_owned())).collect()
    };
    let back = copies_back(&o);
    let (before, after) = (texts(&pre(&o)), texts(&post(&o)));
    let kinds = |all: &[(HookOf, String)]| all.iter().map(|h| h.0).collect::<Vec<_>>();
    use HookOf::*;
    assert_eq!(kinds(&before), [Copy, Copy, Queue, Job]);
    assert_eq!(kinds(&after), [Job, Queue]);
    assert!(before[0].1.contains("lsrcp\" 's:/home/alice/w/in.101' 'i'"), "{}", before[0].1);
    let text = back[0].text.lossy();
    assert!(text.contains("lsrcp\" 'c' 's:/home/alice/w/c'"), "{text}");
    let shown = |hooks: &[Hook]| hooks.iter().map(|h| h.shown.clone()).collect::<Vec<_>>();
    assert_eq!((shown(&back), back.len()), (vec!["c >< c".to_string()], 1));
    assert_eq!(shown(&pre(&o))[0], "in.%J > i");
    assert_eq!((after[0].1.as_str(), after[1].1.as_str()), ("j2", "q2"));
    // A file on the same host is not copied onto itself.
    Arc::make_mut(&mut o.spec).from_host = "h1".into();
    assert!(texts(&pre(&o))[0].1.starts_with("test '/home/alice/w/in.101' -ef 'i' || exec"));
}

#[test]
fn output_of_esub_reaches_eexec_and_not_the_job() {
    let data = crate::model::bytes::b64_encode(b"a\0b\n");
    let env = format!("A=1\0LSB_EEXEC_DATA={data}\0B=2\0");
    let site = HostEnvironment { eexec: "/srv/eexec".into(), ..HostEnvironment::default() };
    let got = eexec(&site, env.as_bytes());
    assert_eq!((got.program.lossy(), got.data.as_bytes()), ("/srv/eexec".into(), &b"a\0b\n"[..]));
    assert_eq!(eexec(&site, b"A=1\0LSB_EEXEC_DATAX=YQ==\0").data.as_bytes(), b"");
    assert_eq!(eexec(&site, b"LSB_EEXEC_DATA=?\0").data.as_bytes(), b"");
    assert!(eexec(&HostEnvironment::default(), env.as_bytes()).is_none());
    let vars = env_of(&order(), env.as_bytes());
    assert!(vars.iter().any(|v| v == "B=2") && !vars.iter().any(|v| v.contains("EEXEC_DATA")));
}

#[test]
fn a_rerunnable_job_goes_back_to_its_queue_when_its_host_was_restarted() {
    use crate::model::reason::term;
    let order = |options| {
        let spec = JobSpec { options, ..JobSpec::default() };
        StartJob { spec: spec.into(), ..StartJob::default() }
    };
    let end = |info| Some((End::Unknown, info, 1));
    let (rerun, plain) = (order(opt::RERUNNABLE), order(0));
    assert!(goes_back(&rerun, end(term::HOST_RESTART)));
    assert!(!goes_back(&plain, end(term::HOST_RESTART)));
    assert!(!goes_back(&rerun, end(term::LOST_STATUS)) && !goes_back(&rerun, None));
}

#[test]
fn memory_of_the_group_is_that_of_the_tasks_on_this_host_and_with_hl_of_the_job() {
    let memory = |by_group: bool, per_host: bool, limits: Limits| {
        let enforcement =
            LimitEnforcement { memory_by_group: by_group, ..LimitEnforcement::default() };
        let site = HostEnvironment { host: "h2".into(), enforcement, ..HostEnvironment::default() };
        let mut spec = JobSpec::default();
        spec.further.per_host = Mark(per_host);
        let hosts = vec![("h1".into(), 2), ("h2".into(), 3)].into();
        let order = StartJob { limits, hosts, spec: spec.into(), ..order() };
        let TaskPlan::Job(job) = plan(&site, &order, b"", b"").what else { panic!() };
        job.memory.map(|m| (m.memory_kb, m.swap_kb))
    };
    let both = Limits { rss: Some(70), swap: Some(20), ..Limits::default() };
    let one = Limits { rss: Some(70), ..Limits::default() };
    assert_eq!(memory(true, false, both.clone()), Some((210, Some(60))));
    assert_eq!(memory(true, true, both.clone()), Some((70, Some(20))));
    assert_eq!(memory(true, false, one), Some((210, None)));
    assert_eq!(memory(true, false, Limits { swap: Some(20), ..Limits::default() }), None);
    assert_eq!(memory(false, false, both), None);
}

#[test]
fn limits_of_processes_are_those_that_the_kernel_enforces() {
    let limits = |enforcement| {
        let limits = Limits { cpu: Some(60), rss: Some(70), core: Some(8), ..Limits::default() };
        let site = HostEnvironment { enforcement, ..HostEnvironment::default() };
        let order = StartJob { limits, ..order() };
        let TaskPlan::Job(job) = plan(&site, &order, b"", b"").what else { panic!() };
        (job.limits.cpu, job.limits.rss, job.limits.core)
    };
    let unset = LimitEnforcement::default();
    assert_eq!(limits(unset), (Some(60), Some(70), Some(8)));
    let cpu_of_job = LimitEnforcement { cpu_of_process: false, ..unset };
    assert_eq!(limits(cpu_of_job), (None, Some(70), Some(8)));
    let memory_of_job = LimitEnforcement { memory_of_process: false, ..unset };
    assert_eq!(limits(memory_of_job), (Some(60), None, Some(8)));
}

#[test]
fn variables_of_the_application_profile_give_way_to_those_of_user_and_batch_system() {
    let pair = |name: &str| (name.to_owned(), "profile".to_owned());
    let env_vars = ["OWN", "LANG", "LSB_QUEUE"].map(pair).to_vec();
    let mut o = StartJob { env_vars, ..order() };
    let spec = std::sync::Arc::make_mut(&mut o.spec);
    spec.further.application = "sim".into();
    let got = env_of(&o, b"LANG=C\0OWNER=x\0");
    for want in ["OWN=profile", "LANG=C", "LSB_QUEUE=normal", "LSB_APPLICATION_NAME=sim"] {
        let name = want.split_once('=').unwrap().0;
        let all: Vec<&String> =
            got.iter().filter(|v| v.split_once('=').unwrap().0 == name).collect();
        assert_eq!(all, [want]);
    }
}

#[test]
fn temporary_directory_of_a_job_has_its_number_in_the_name() {
    let of = |base: &str, idx: u32| {
        let tmpdir = Some((base.to_owned(), "SCRATCH".to_owned()));
        let site = HostEnvironment { tmpdir, ..HostEnvironment::default() };
        let mut o = order();
        o.key.idx = idx;
        let TaskPlan::Job(job) = plan(&site, &o, b"LSB_JOB_TMPDIR=/x\0", b"").what else {
            panic!()
        };
        assert!(!job.env.lossy().contains("LSB_JOB_TMPDIR"));
        let temporary = job.temporary.unwrap();
        assert_eq!(temporary.variable, "SCRATCH");
        temporary.path.lossy().into_owned()
    };
    assert_eq!(of("/scratch", 0), "/scratch/101.tmpdir");
    assert_eq!(of("/scratch/%H/", 3), "/scratch/h1/101_3.tmpdir");
    let TaskPlan::Job(job) = plan(&HostEnvironment::default(), &order(), b"", b"").what else {
        panic!()
    };
    assert_eq!(job.temporary, None);
}

#[test]
fn script_of_an_application_profile_is_looked_for_in_the_directory_of_commands() {
    let env = |script: &str| vec![("LSB_DJOB_ENV_SCRIPT".to_string(), script.to_string())];
    let of = |script: &str, own: &[u8]| {
        let o = StartJob { env_vars: env(script), ..order() };
        let env = vec![("LSF_BINDIR".into(), "/lsf/bin".into())];
        let site = HostEnvironment { env, ..HostEnvironment::default() };
        let TaskPlan::Job(job) = plan(&site, &o, own, b"").what else { panic!() };
        job.env_script.lossy().into_owned()
    };
    assert_eq!(of("mpi.sh", b""), "/lsf/bin/mpi.sh");
    assert_eq!(of("mpi/e.sh", b"LSF_BINDIR=/evil\0"), "/lsf/bin/mpi/e.sh");
    assert_eq!(of("/x/mpi.sh", b""), "/x/mpi.sh");
    assert_eq!(of("mpi.sh", b"LSB_DJOB_ENV_SCRIPT=own\0"), "/lsf/bin/own");
    assert_eq!(of("mpi.sh", b"LSB_DJOB_ENV_SCRIPT=\0"), "");
}

#[test]
fn request_of_nqs_has_its_identifier_and_other_jobs_have_none() {
    let site = HostEnvironment { request_host: "m1".into(), ..HostEnvironment::default() };
    let vars = |o: &StartJob, user: &[u8]| {
        let TaskPlan::Job(job) = plan(&site, o, user, b"").what else { panic!() };
        let text = job.env.lossy().into_owned();
        let own: Vec<String> =
            text.split('\0').filter(|v| v.starts_with("QSUB_")).map(str::to_owned).collect();
        own
    };
    let mut request = order();
    Arc::make_mut(&mut request.spec).further.nqs = Mark(true);
    // what was submitted within another request
    let user = b"QSUB_REQNAME=n\0QSUB_REQID=7.m1\0";
    assert_eq!(vars(&request, user), ["QSUB_REQNAME=n", "QSUB_REQID=101[3].m1"]);
    request.key.idx = 0;
    assert_eq!(vars(&request, b""), ["QSUB_REQID=101.m1"]);
    assert_eq!(vars(&order(), user), ["QSUB_REQNAME=n"]);
}
