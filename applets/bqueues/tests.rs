//! Rendering against the texts of tests/cmd/expected, written by hand from the documentation.

use super::{long, table};
use lsf::conf::units::SizeUnit;
use lsf::proto::client::{QueueInfo, ShareRow, ShareTable};

fn queue(name: &str) -> QueueInfo {
    QueueInfo {
        name: name.into(),
        priority: 30,
        nice: 20,
        open: true,
        active: true,
        thresholds: vec![(None, None); 11],
        ..QueueInfo::default()
    }
}

fn zoo() -> Vec<QueueInfo> {
    let busy = QueueInfo { njobs: 20, pend: 8, run: 12, pjobs: 8, ..queue("normal") };
    vec![
        QueueInfo {
            priority: 43,
            max: Some(10),
            jl_u: Some(4),
            jl_p: Some(2.0),
            jl_h: Some(3),
            ..queue("priority")
        },
        busy,
        QueueInfo { window_closed: true, priority: 20, ..queue("night") },
        QueueInfo { open: false, active: false, ..queue("a_name_of_more_than_fifteen") },
        QueueInfo {
            open: false,
            priority: 1,
            jl_p: Some(0.5),
            ssusp: 2,
            ususp: 3,
            rsv: 1,
            njobs: 123_456,
            ..queue("esc\u{1b}[1m")
        },
    ]
}

fn render(wide: bool) -> String {
    let mut out = String::new();
    table::head(&mut out, wide);
    zoo().iter().for_each(|q| table::row(&mut out, q, wide));
    out
}

#[test]
fn bqueues_shows_the_default_table() {
    assert_eq!(render(false), include_str!("../../tests/cmd/expected/bqueues.txt"));
}

#[test]
fn bqueues_w_shows_the_wide_table() {
    assert_eq!(render(true), include_str!("../../tests/cmd/expected/bqueues-w.txt"));
}

fn params(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(n, t)| (n.to_string(), t.to_string())).collect()
}

#[test]
fn a_plain_queue_at_length() {
    let q = QueueInfo {
        description: "Default queue for normal jobs.".into(),
        is_default: true,
        njobs: 20,
        pend: 8,
        run: 12,
        pjobs: 8,
        params: params(&[("RUNLIMIT", "60 24:00")]),
        ..queue("normal")
    };
    let mut out = String::new();
    long::queue(&mut out, &q, SizeUnit::KB, false);
    assert_eq!(out, include_str!("../../tests/cmd/expected/bqueues-l.txt"));
}

#[test]
fn a_queue_with_everything() {
    let mut q = QueueInfo {
        description: "Jobs submitted for this queue are scheduled as urgent jobs.".into(),
        priority: 43,
        nice: 10,
        max: Some(10),
        jl_u: Some(4),
        jl_p: Some(2.0),
        jl_h: Some(3),
        window_closed: true,
        admin_comment: "for \u{7}maintenance".into(),
        params: params(&[
            ("CPULIMIT", "60/hosta"),
            ("RUNLIMIT", "120/hosta"),
            ("PROCLIMIT", "1  2 4"),
            ("FILELIMIT", "200000"),
            ("MEMLIMIT", "2G"),
            ("INTERACTIVE", "NO"),
            ("EXCLUSIVE", "Y"),
            ("RUN_WINDOW", "3:00-4:00"),
            ("DISPATCH_WINDOW", "3:00-3:30"),
            ("USERS", "lsfadmin user1"),
            ("HOSTS", "hgall/"),
            ("ADMINISTRATORS", "lsfadmin"),
            ("PRE_EXEC", "/bin/true"),
            ("POST_EXEC", "/bin/true"),
            ("REQUEUE_EXIT_VALUES", "55"),
            ("RES_REQ", "select[mem>10]"),
            ("RERUNNABLE", "yes"),
            ("NEW_JOB_SCHED_DELAY", "0"),
        ]),
        ..queue("priority")
    };
    q.thresholds[1] = (Some(20.0), Some(40.0));
    let mut out = String::new();
    long::queue(&mut out, &q, SizeUnit::KB, false);
    assert_eq!(out, include_str!("../../tests/cmd/expected/bqueues-l-full.txt"));
    assert_eq!(long::RULE.len(), 79);
}

#[test]
fn parameters_that_do_not_act_are_marked() {
    let q = QueueInfo {
        params: params(&[
            ("EXCLUSIVE", "CU[rack]"),
            ("SLA_GUARANTEES_IGNORE", "y"),
            ("RESRSV_LIMIT", "[mem=100,2000]"),
            ("JOB_STARTER", "/bin/env %USRCMD"),
            ("MIG", "30"),
            ("NEW_JOB_SCHED_DELAY", "0"),
            ("PRE_EXEC", "/bin/true"),
        ]),
        ..queue("normal")
    };
    let mut out = String::new();
    long::queue(&mut out, &q, SizeUnit::KB, false);
    for line in [
        "Migration threshold is 30 minutes",
        "Schedule delay for a new job is 0 seconds",
        "SCHEDULING POLICIES:  SLA_GUARANTEES_IGNORE  EXCLUSIVE",
        "PRE_EXEC:  /bin/true",
        "RESRSV_LIMIT:  [mem=100,2000]",
        "JOB_STARTER:  /bin/env %USRCMD",
    ] {
        assert!(out.lines().any(|l| l == line), "{line}\n{out}");
    }
}

fn call(words: &[&str]) -> super::Call {
    let args: Vec<std::ffi::OsString> = words.iter().map(std::ffi::OsString::from).collect();
    super::plan(&args, None).unwrap_or_else(|e| panic!("{words:?}: {}", e.err))
}

#[test]
fn bqueues_o_shows_the_given_fields() {
    let mut rows = zoo();
    rows[1].params = params(&[("RUNLIMIT", "60 24:00"), ("PROCLIMIT", "1 2 4")]);
    rows.truncate(2);
    let show = |words: &[&str]| call(words).show(&rows, SizeUnit::KB);
    assert_eq!(
        show(&["-o", "qname:8 prio:-4 jl_p runlimit def_runlimit min_tasklimit tasklimit"]),
        "QUEUE_NA PRIO JL_P MAX_RUNLIMIT DEFAULT_RUNLIMIT MIN_TASKLIMIT MAX_TASKLIMIT\n\
         priority   43 2 - - - -\nnormal     30 - 24:00 60 1 4\n"
    );
    let json: serde_json::Value =
        serde_json::from_str(&show(&["-json", "-o", "qname stat"])).unwrap();
    assert_eq!(
        json,
        serde_json::json!({"COMMAND": "bqueues", "QUEUES": 2, "RECORDS": [
            {"QUEUE_NAME": "priority", "STATUS": "Open:Active"},
            {"QUEUE_NAME": "normal", "STATUS": "Open:Active"},
        ]})
    );
    let both = show(&["-l"]);
    assert!(both.contains(&format!("\n\n{}\n\nQUEUE: normal\n", long::RULE)), "{both}");
}

#[test]
fn options_of_bqueues_go_into_the_request() {
    let c = call(&["-u", "alice", "-m", "hosta", "-w", "normal", "night"]);
    let lsf::proto::client::ClientMsg::Queues { names, user, host } = c.request() else { panic!() };
    assert_eq!(
        (names.join(" ").as_str(), user.as_str(), host.as_str()),
        ("normal night", "alice", "hosta")
    );
}

#[test]
fn bqueues_json_shows_records() {
    let words = ["-json", "-alloc", "-o", "qname stat njobs max runlimit"];
    let args: Vec<std::ffi::OsString> = words.iter().map(std::ffi::OsString::from).collect();
    let call = super::plan(&args, None).unwrap_or_else(|e| panic!("{}", e.err));
    let got = call.show(&zoo()[1..2], SizeUnit::KB);
    assert_eq!(got, include_str!("../../tests/cmd/expected/bqueues-json.txt"));
}

/// The lines that a queue has for what lsb.queues says of it.
#[test]
fn bqueues_l_shows_further_parameters() {
    let params = [
        ("FAIRSHARE", "USER_SHARES[[user1, 10] [grp@,3] [default,1]]"),
        ("PREEMPTION", "PREEMPTIVE[low] PREEMPTABLE[high]"),
        (
            "APS_PRIORITY",
            "WEIGHT[[JPRIORITY, 1]] LIMIT[[JPRIORITY, 50]] GRACE_PERIOD[[JPRIORITY, 10m]]",
        ),
        ("SLOT_RESERVE", "MAX_RESERVE_TIME[5]"),
        ("CHKPNT", "/share/chk 30"),
        ("JOB_CONTROLS", "SUSPEND[kill -STOP -$LSB_JOBPGIDS] RESUME[SIGCONT] TERMINATE[a[1]]"),
        ("EXTENDABLE_RUNLIMIT", "BASE[60] GRACE[5]"),
        ("SNDJOBS_TO", "q1@c2"),
        ("CHUNK_JOB_SIZE", "4"),
        ("HOSTLIMIT_PER_JOB", "2"),
        ("JOB_SIZE_LIST", "4 2 8"),
    ];
    let params = params.map(|(n, v)| (n.to_string(), v.to_string())).to_vec();
    let q = QueueInfo { params, sleep_secs: 10, ..queue("normal") };
    let mut out = String::new();
    long::queue(&mut out, &q, SizeUnit::KB, false);
    let want = "\
SCHEDULING POLICIES:  FAIRSHARE  PREEMPTIVE  PREEMPTABLE  APS_PRIORITY

APS_PRIORITY:
                      WEIGHT FACTORS     LIMIT FACTORS    GRACE PERIOD
FAIRSHARE                          -                 -               -
RESOURCE                           -                 -               -
PROCESSORS                         -                 -               -
MEMORY                             -                 -               -
SWAP                               -                 -               -
WORK                            1.00                 -               -
JOB PRIORITY                    1.00             50.00             10m
QUEUE PRIORITY                     -                 -               -
APP PRIORITY                       -                 -               -
USER PRIORITY                      -                 -               -
UG PRIORITY                        -                 -               -
USER_SHARES:  [user1, 10] [grp@, 3] [default, 1]\x20
PREEMPTION = PREEMPTIVE[low] PREEMPTABLE[high]

USERS: all \x20
HOSTS:  all\x20
Maximum slot reservation time: 50 seconds
CHKPNTDIR : /share/chk
CHKPNTPERIOD : 30
JOB_CONTROLS:
    SUSPEND:    [kill -STOP -$LSB_JOBPGIDS]
    RESUME:     [SIGCONT]
    TERMINATE:  [a[1]]
EXTENDABLE_RUNLIMIT:  BASE[60] GRACE[5]
SEND_JOBS_TO:  q1@c2 (not acted on)
CHUNK_JOB_SIZE:  4
JOB_SIZE_LIST:  4 2 8
HOSTLIMIT_PER_JOB:  2
";
    assert!(out.contains(want), "{out}");
}

/// The documented names, in their order.
#[test]
fn every_field_of_the_manual() {
    use lsf::cli::columns::Fields;
    let all: Vec<&str> =
        (0..super::fields::FIELDS.count()).map(|f| super::fields::FIELDS.name(f)).collect();
    let want = include_str!("../../tests/cmd/expected/bqueues-fields.txt");
    assert_eq!(all, want.split_whitespace().collect::<Vec<_>>());
}

/// The documented sample of -l; -r shows the groups of the tree, too.
#[test]
fn fairshare_queue_shows_its_shares_and_priorities() {
    let row = |name: &str, shares, priority| ShareRow {
        name: name.into(),
        shares,
        priority,
        ..ShareRow::default()
    };
    let chip =
        ShareRow { started: 3, cpu_secs: 7200.5, run_secs: 3600.0, ..row("chip", 3, 0.10638) };
    let rows = vec![row("alice", 1, 1.0 / 3.0), chip];
    let root = ShareTable { path: "normal/".into(), rows };
    let group = ShareTable { path: "normal/chip/".into(), rows: vec![row("bob", 2, 0.5)] };
    let q = QueueInfo {
        description: "Default queue for normal jobs.".into(),
        is_default: true,
        priority: 30,
        nice: 20,
        njobs: 20,
        pend: 8,
        run: 12,
        pjobs: 8,
        params: params(&[
            ("RUNLIMIT", "60 24:00"),
            ("FAIRSHARE", "USER_SHARES[[default,1]]"),
            ("BACKFILL", "Y"),
            ("EXCLUSIVE", "Y"),
        ]),
        shares: vec![root, group],
        ..queue("normal")
    };
    let want = include_str!("../../tests/cmd/expected/bqueues-r.txt");
    let shown = |words: &[&str]| call(words).show(std::slice::from_ref(&q), SizeUnit::KB);
    assert_eq!(shown(&["-l"]), want);
    let chip = "\nSHARE_INFO_FOR: normal/chip/\n USER/GROUP   SHARES  PRIORITY  STARTED  \
                RESERVED  CPU_TIME  RUN_TIME   ADJUST\n\
                bob            2       0.500      0        0         0.0        0       0.000\n\n\
                USERS: all";
    let all = want.replace("\nUSERS: all", chip);
    for words in [&["-r"][..], &["-l", "-r"], &["-lr"]] {
        assert_eq!(shown(words), all, "{words:?}");
    }
}

/// One line a field: its name, width and other names, then its value for a queue with everything
/// and one with nothing.
#[test]
fn every_field_and_its_value() {
    use super::fields::FIELDS;
    use lsf::cli::columns::{Fields, Format, Json};
    let full = QueueInfo {
        description: "urgent work".into(),
        priority: 43,
        open: false,
        active: false,
        max: Some(10),
        jl_u: Some(4),
        jl_p: Some(2.0),
        jl_h: Some(3),
        njobs: 21,
        pend: 8,
        run: 7,
        ssusp: 2,
        ususp: 3,
        rsv: 1,
        params: params(&[
            ("HOSTS", "hg1 hosta+2"),
            ("RES_REQ", "select[mem>9]"),
            ("CORELIMIT", "100"),
            ("CPULIMIT", "60/hosta"),
            ("DATALIMIT", "200 300"),
            ("FILELIMIT", "200000"),
            ("MEMLIMIT", "1G 2G"),
            ("PROCESSLIMIT", "10 20"),
            ("RUNLIMIT", "60 24:00"),
            ("STACKLIMIT", "8M"),
            ("SWAPLIMIT", "3G"),
            ("TASKLIMIT", "1 2 4"),
            ("THREADLIMIT", "40 50"),
        ]),
        ..queue("priority")
    };
    let rows = [full, queue("normal")];
    let shown = |text: &str| {
        let f = Format::parse(text, &FIELDS).unwrap();
        let mut out = String::new();
        f.header(&mut out, &FIELDS);
        rows.iter().for_each(|q| f.row(&mut out, &FIELDS, |o, c| FIELDS.value(o, c.field, q)));
        out
    };
    let lines: Vec<&str> =
        include_str!("../../tests/cmd/expected/bqueues-values.txt").lines().collect();
    assert_eq!(lines.len(), FIELDS.count());
    for (i, line) in lines.iter().enumerate() {
        let words: Vec<&str> = line.split(" | ").collect();
        let [name, width, alias, a, b] = words[..] else { panic!("{line}") };
        assert_eq!((FIELDS.name(i), FIELDS.width(i).to_string().as_str()), (name, width));
        assert_eq!(FIELDS.aliases(i).join(" "), alias.trim());
        let want = format!("{}\n{a}\n{b}\n", name.to_uppercase());
        for name in [vec![name], FIELDS.aliases(i).to_vec()].concat() {
            assert_eq!(shown(&name.to_uppercase()), want, "{name}");
        }
        let head = name.to_uppercase();
        assert_eq!(shown(&format!("{name}:-60")), format!("{head:>60}\n{a:>60}\n{b:>60}\n"));
    }
    let f = Format::parse("all", &FIELDS).unwrap();
    let mut json = Json::new("bqueues", "QUEUES");
    rows.iter().for_each(|q| f.record(&mut json, &FIELDS, |o, c| FIELDS.value(o, c.field, q)));
    let v: serde_json::Value = serde_json::from_str(&json.finish()).unwrap();
    assert_eq!((&v["QUEUES"], &v["RECORDS"][0]["STATUS"]), (&2.into(), &"Closed:Inact_Adm".into()));
    // no limit is a value, no text is none
    let (max, about) = (&v["RECORDS"][1]["MAX"], &v["RECORDS"][1]["DESCRIPTION"]);
    assert_eq!((max, about), (&"-".into(), &"".into()));
}
