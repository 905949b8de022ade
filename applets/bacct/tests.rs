//! bacct without files: the words of a call, and layouts written from the documentation.

use super::*;
use lsf::model::JobRef;
use lsf::model::event::{Finish, HostUsage};
use lsf::model::job::{JobSpec, Usage};
use lsf::model::job_state::JobState;

/// 2026-11-20 12:48:20 UTC.
const NOW: i64 = 1_795_178_900;

fn call(words: &[&str]) -> Result<Call, Exit> {
    let args: Vec<OsString> = words.iter().map(OsString::from).collect();
    plan(&args, NOW, &TimeZone::UTC, || "alice".to_string())
}

fn finish() -> Finish {
    let usage =
        Usage { utime_us: 1_000_000, stime_us: 20_000, max_mem_kb: 120 * 1024, ..Usage::default() };
    Finish {
        event_time: NOW,
        at: JobRef { job: 101, idx: 0 },
        user: "alice".into(),
        submit_time: NOW - 142,
        start_time: NOW - 140,
        spec: JobSpec {
            queue: "normal".into(),
            project: "p1".into(),
            command: "sleep 1".into(),
            from_host: "hosta".into(),
            cwd: "/w".into(),
            min_slots: 1,
            max_slots: 1,
            ..JobSpec::default()
        },
        exec_hosts: vec![("hosta".into(), 1)],
        status: JobState::Done.into(),
        usage: Some(usage),
        ..Finish::default()
    }
}

fn look(form: AccountingForm) -> JobForm {
    JobForm { form, tasks: false, ineligible: 0 }
}

fn brief_of(f: &Finish, wants: impl FnOnce(&Brief<'_>) -> bool) -> bool {
    let mut line = Vec::new();
    lsf::log::codec::write_finish(f, &mut line);
    wants(&read_brief(&line, &|_| true).unwrap().unwrap())
}

#[test]
fn options_select_jobs_of_the_log() {
    let rows: &[(&[&str], bool)] = &[
        (&[], true),
        (&["-u", "bob"], false),
        (&["-u", "bob alice"], true),
        (&["-u", "all"], true),
        (&["-q", "normal"], true),
        (&["-q", "night"], false),
        (&["-P", "p2 p1"], true),
        (&["-P", "p2"], false),
        (&["-d"], true),
        (&["-e"], false),
        (&["-d", "-e"], true),
        (&["-C", "20"], true),
        (&["-C", "19"], false),
        (&["-S", "12:45,"], true),
        (&["-S", "12:47,"], false),
        (&["-D", "12:46"], true),
        (&["-D", "12:47"], false),
        (&["101"], true),
        (&["100"], false),
        (&["-u", "bob", "101"], false),
        (&["-rcacct", "all"], false),
        (&["-rcalloc", "a b"], false),
    ];
    for (words, want) in rows {
        let call = call(words).unwrap_or_else(|e| panic!("{words:?}: {}", e.err));
        assert_eq!(
            brief_of(&finish(), |b| call.filter.may_want(b) && call.filter.wants(b)),
            *want,
            "{words:?}"
        );
    }
    let mut on_host = call(&["-m", "hosta"]).unwrap().filter;
    on_host.hosts = vec!["hosta".into()];
    assert!(brief_of(&finish(), |b| on_host.wants(b)));
    let two = Finish { exec_hosts: vec![("hostb".into(), 2)], ..finish() };
    assert!(!brief_of(&two, |b| on_host.wants(b)));
    assert_eq!(call(&["-C", "x"]).err().unwrap().err, "x: Bad time specification\n");
    assert_eq!(call(&["abc"]).err().unwrap().err, "abc: Illegal job ID.\n");
}

/// The lines of the documentation, with figures that give them.
#[test]
fn the_summary_is_that_of_lsf() {
    let mut sums = Sums::default();
    let base = 1_792_923_600; // Oct 25 10:20
    let brief = |end: i64, wait: i64, run: i64, cpu: f64, done: bool| {
        let mut b = Brief::default();
        (b.end_time, b.submit_time, b.start_time) = (end, end - run - wait, end - run);
        (b.cpu, b.done) = (cpu, done);
        b
    };
    sums.add(&brief(base, 100, 100, 5.5, true), 0);
    sums.add(&brief(base + 2_255_292, 1, 1, 1.0, false), 0);
    let mut out = String::new();
    sums.show(&mut out, &Clock::utc());
    let want = "
SUMMARY:      ( time unit: second )\x20
 Total number of done jobs:       1      Total number of exited jobs:     1
 Total CPU time consumed:       6.5      Average CPU time consumed:     3.2
 Maximum CPU time of a job:     5.5      Minimum CPU time of a job:     1.0
 Total wait time in queues:   101.0
 Average wait time in queue:   50.5
 Maximum wait time in queue:  100.0      Minimum wait time in queue:    1.0
 Average turnaround time:       101 (seconds/job)
 Maximum turnaround time:       200      Minimum turnaround time:         2
 Average hog factor of a job:  0.26 ( cpu time / turnaround time )
 Maximum hog factor of a job:  0.50      Minimum hog factor of a job:  0.03
 Average expansion factor of a job:  2.00 ( turnaround time / run time )
 Maximum expansion factor of a job:  2.00
 Minimum expansion factor of a job:  2.00
 Total Run time consumed:       101      Average Run time consumed:      50
 Maximum Run time of a job:     100      Minimum Run time of a job:       1
 Total throughput:             0.00 (jobs/hour)  during   626.47 hours
 Beginning time:       Oct 25 10:20      Ending time:          Nov 20 12:48
";
    assert_eq!(out, want);
    let mut none = String::new();
    Sums::default().show(&mut none, &Clock::utc());
    assert!(none.contains(" Total number of done jobs:       0      Total"), "{none}");
    assert!(!none.contains("NaN") && !none.contains("inf") && !none.contains("Beginning"));
}

#[test]
fn the_head_tells_the_selection() {
    let head = |words: &[&str]| {
        let mut out = String::new();
        sums::head(&mut out, &call(words).unwrap().filter, &Clock::utc());
        out
    };
    assert_eq!(
        head(&[]),
        "Accounting information about jobs that are: \n  - submitted by users alice, \n  \
         - accounted on all projects.\n  - completed normally or exited\n  \
         - executed on all hosts.\n  - submitted to all queues.\n  \
         - accounted on all service classes.\n\
         ------------------------------------------------------------------------------\n"
    );
    let some = head(&["-u", "all", "-q", "a b", "-m", "h", "-e", "-C", "20"]);
    for line in [
        "  - submitted by all users.\n",
        "  - exited\n",
        "  - executed on hosts h, \n",
        "  - submitted to queues a, b, \n",
        "  - completed between  Fri Nov 20 00:00:00 2026\n                ,and   \
         Fri Nov 20 23:59:59 2026\n",
    ] {
        assert!(some.contains(line), "{some}");
    }
}

#[test]
fn a_job_in_the_long_form() {
    let mut out = String::new();
    let f = Finish { eff_res_req: "order[r15s:pg]".into(), ..finish() };
    jobs::show(&mut out, &f, &look(AccountingForm::Long { wrap: true }), true, &Clock::utc());
    let want = "
Job <101>, User <alice>, Project <p1>, Status <DONE>, Queue <normal>, Command <
                     sleep 1>
Fri Nov 20 12:45:58: Submitted from host <hosta>, CWD </w>;
Fri Nov 20 12:46:00: Dispatched to <hosta>, Effective RES_REQ <order[r15s:pg]>;
Fri Nov 20 12:48:20: Completed <done>.

Accounting information about this job:
     CPU_T     WAIT     TURNAROUND   STATUS     HOG_FACTOR    MEM    SWAP
      1.02        2            142     done         0.0072   120M      0M
------------------------------------------------------------------------------
";
    assert_eq!(out, want);
    // our own records tell more
    let usage = Usage { cpu_peak: 150, cpu_peak_secs: 54, ..f.usage.unwrap() };
    let eff_res_req = "rusage[mem=480.00]".to_string();
    let hosts = vec![("hosta".into(), 2), ("hostb".into(), 1)];
    let ours = Finish {
        attempt: 1,
        exceptions: 0x80,
        usage: Some(usage),
        exec_hosts: hosts,
        eff_res_req,
        ..f
    };
    out.clear();
    jobs::show(&mut out, &ours, &look(AccountingForm::Long { wrap: true }), true, &Clock::utc());
    let want = "
Fri Nov 20 12:48:20: Completed <done>.

 EXCEPTION STATUS:  idle

Accounting information about this job:
     CPU_T     WAIT     TURNAROUND   STATUS     HOG_FACTOR    MEM    SWAP
      1.02        2            142     done         0.0072   120M      0M
     CPU_PEAK     CPU_PEAK_DURATION     CPU_PEAK_EFFICIENCY
         1.50          54 second(s)                  50.00%
     CPU_AVERAGE_EFFICIENCY      MEM_EFFICIENCY
                      0.24%              25.00%
------------------------------------------------------------------------------
";
    assert!(out.ends_with(want), "{out}");
    let killed = Finish { status: JobState::Exit.into(), exit_info: 14, ..finish() };
    out.clear();
    jobs::show(
        &mut out,
        &killed,
        &look(AccountingForm::Long { wrap: false }),
        false,
        &Clock::utc(),
    );
    assert!(out.contains(": Completed <exit>; TERM_OWNER: job killed by owner.\n"), "{out}");
}

#[test]
fn usage_of_each_host_stands_below_that_of_its_job() {
    let used = |host: &str, mem_kb, utime| HostUsage {
        host: host.into(),
        mem_kb,
        swap_kb: 0,
        utime_us: utime,
        stime_us: 1_120_000,
    };
    let hosts_used = [used("hosta", 122_880, 3_040_000), used("hostb", 2 << 20, 12_000_000)].into();
    let f = Finish { hosts_used, attempt: 1, ..finish() };
    let mut out = String::new();
    jobs::show(&mut out, &f, &look(AccountingForm::Long { wrap: true }), true, &Clock::utc());
    let want = "   120M      0M
     HOST                  UTIME     STIME     MEM    SWAP
     hosta                  3.04      1.12    120M      0M
     hostb                 12.00      1.12    2.0G      0M
     CPU_PEAK ";
    assert!(out.contains(want), "{out}");
}

/// A sample record of lsb.acct with the fields filled that selectors go by: another LSF's record.
const FOREIGN: &str = concat!(
    r#""JOB_FINISH" "10.1" 1700000150 101 1501 33554450 1 1700000005 0 0 1700000016 "alice" "#,
    r#""normal" "rusage[mem=1000]" "" "" "login1" "/home/alice/w" "" "o.%J" "" "1700000005.101" "#,
    r#"0 1 "2*hosta" 64 12.5 "b_sim" "./b_sim.sh" 60.100000 2.000000 122880 0 -1 0 0 436 4 0 928 "#,
    r#"0 -1 0 0 0 19 2 -1 "" "default" 0 1 "" "" 0 122880 0 "" "" "alice#1" "gold" 6 "" 0 "" -1 "#,
    r#""/alice" "lp" "big" "" -1 "" "" 5136 "" 1700000016 "" "" 0 0 -1 64 2048 "order[ut]" "" -1 "#,
    r#""" -1 0 "" 0 0 "" 134 "/home/alice/w" 0 "" 0.000000 0.00 0.00 0.00 0.00 1 "hosta" 7 0 0 0 "#,
    "0 1 \"schedulingOverhead\" \"0.00\"\n",
);

#[test]
fn selections_by_what_stands_far_behind() {
    for (words, want) in [
        (&["-app", "big"][..], true),
        (&["-app", "small big"], true),
        (&["-app", "small"], false),
        (&["-sla", "gold"], true),
        (&["-sla", "lead"], false),
        (&["-Lp", "lp"], true),
        (&["-Lp", "l"], false),
        (&["-x"], true),
        (&["-U", "alice#1"], true),
        (&["-U", "alice#2"], false),
        (&["-U", "all"], true),
    ] {
        let call = call(words).unwrap();
        let b = read_brief(FOREIGN.as_bytes(), &|b| call.filter.may_want(b)).unwrap().unwrap();
        assert_eq!(call.filter.wants(&b), want, "{words:?}");
    }
    // A job of ours was in no reservation and had no exceptions.
    for words in [&["-x"][..], &["-U", "all"], &["-app", "big"]] {
        let call = call(words).unwrap();
        assert!(!brief_of(&finish(), |b| call.filter.wants(b)), "{words:?}");
    }
}

/// The output of a call on a file that contains FOREIGN: stdout, stderr.
fn over_foreign(words: &[&str]) -> (String, String) {
    let mut call = call(words).unwrap();
    call.factor = call.norm.as_deref().map(|n| n.parse().unwrap());
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut ctx = Ctx::new("bacct", vec![], &mut out, &mut err);
    let mut damage = Damage::default();
    let clock = Clock::utc();
    let mut json = Json::new("bacct", "JOBS");
    let kept = (&mut json, &mut damage);
    let sums = read(&mut ctx, &call, &clock, FOREIGN.as_bytes(), "f", kept).unwrap();
    out.extend_from_slice(summary(&call, &sums, json, &clock).as_bytes());
    assert_eq!(damage, Damage::default());
    (String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
}

#[test]
fn waiting_time_of_a_job_is_shown() {
    let mut f = finish();
    f.ineligible_secs = Some(1);
    let shown = |f: &Finish| {
        let mut out = String::new();
        jobs::show(&mut out, f, &look(AccountingForm::Long { wrap: true }), true, &Clock::utc());
        out
    };
    let want = "\n PENDING TIME DETAILS:\n Eligible pending time (seconds):       1\n Ineligible \
                pending time (seconds):     1\n\nAccounting information about this job:\n";
    assert!(shown(&f).contains(want), "{}", shown(&f));
    f.ineligible_secs = None;
    assert!(!shown(&f).contains("PENDING TIME"));
}

#[test]
fn another_lsfs_record_in_the_long_form() {
    let want = include_str!("../../tests/cmd/expected/bacct-l-foreign.txt");
    assert_eq!(over_foreign(&["-l", "-u", "all"]), (want.into(), String::new()));
}

#[test]
fn bacct_json_has_the_summary_and_each_job() {
    let (out, err) = over_foreign(&["-json", "-u", "all"]);
    let json: serde_json::Value =
        serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}"));
    assert_eq!((err.as_str(), &json["COMMAND"]), ("", &"bacct".into()));
    assert_eq!((&json["JOBS"], &json["RECORDS"]), (&1.into(), &serde_json::json!([])));
    assert_eq!(json["SUMMARY"]["TOTAL_NUMBER_OF_EXITED_JOBS"], "0");
    let (plain, _) = over_foreign(&["-u", "all"]);
    let of_label = plain.split("Maximum turnaround time:").nth(1).unwrap();
    let value = of_label.split_whitespace().next().unwrap();
    assert_eq!(json["SUMMARY"]["MAXIMUM_TURNAROUND_TIME"], value);
    for form in ["-l", "-b", "-w", "-UF"] {
        let (out, _) = over_foreign(&[form, "-json", "-u", "all"]);
        let want = include_str!("../../tests/cmd/expected/bacct-json-foreign.txt");
        assert_eq!(out, want, "{form}");
        let json: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!(json["RECORDS"].as_array().map(Vec::len), Some(1));
    }
}

#[test]
fn normalised_time_and_time_that_does_not_count() {
    // 62.1 s on a host of factor 12.5
    let (out, _) = over_foreign(&["-N", "25", "-u", "all"]);
    assert!(out.contains(" Total CPU time consumed:      31.1  "), "{out}");
    let (out, _) = over_foreign(&["-l", "-N", "6.25", "-u", "all"]);
    assert!(out.contains("\n    124.20       11            145     done         0.8566"), "{out}");
    // 7 of the 11 seconds before the start
    let (out, _) = over_foreign(&["-E", "-u", "all"]);
    assert!(out.contains(" Total wait time in queues:     4.0\n"), "{out}");
    let (out, _) = over_foreign(&["-u", "all"]);
    assert!(out.contains(" Total wait time in queues:    11.0\n"), "{out}");
}

/// Every rejection of bacct: words, stderr.
#[test]
fn wrong_options_are_rejected_with_the_words_of_lsf() {
    for (words, want) in [
        (&["-C", "x"][..], "x: Bad time specification\n"),
        (&["-S", "1,2,3"], "1,2,3: Bad time specification\n"),
        (&["-D", "13/45/"], "13/45/: Bad time specification\n"),
        (&["abc"], "abc: Illegal job ID.\n"),
        (&["7[0]"], "7[0]: Illegal job ID.\n"),
        (&["-M", "/nonexistent/h"], "bacct: /nonexistent/h: No such file or directory\n"),
    ] {
        let exit = call(words).err().unwrap();
        assert_eq!((exit.err.as_str(), exit.code), (want, 255), "{words:?}");
    }
    for bad in ["0", "-1", "inf"] {
        let want = format!("{bad}: Bad host specification");
        assert_eq!(lim::cpu_factor(bad), Err(want));
    }
}

#[test]
fn bacct_shows_each_job_in_a_line() {
    let other = Finish {
        at: JobRef { job: 25, idx: 1000 },
        status: JobState::Exit.into(),
        spec: JobSpec {
            queue: "a_queue_of_a_long_name".into(),
            from_host: "login-node-1".into(),
            ..finish().spec
        },
        ..finish()
    };
    let show = |wide| {
        let mut out = String::new();
        for (i, f) in [finish(), other.clone()].iter().enumerate() {
            jobs::show(&mut out, f, &look(AccountingForm::Lines { wide }), i == 0, &Clock::utc());
        }
        out
    };
    assert_eq!(show(false), include_str!("../../tests/cmd/expected/bacct-b.txt"));
    assert_eq!(show(true), include_str!("../../tests/cmd/expected/bacct-w.txt"));
}

#[test]
fn the_whole_of_the_default_form() {
    let shown = |words: &[&str]| over_foreign(words).0;
    let all = include_str!("../../tests/cmd/expected/bacct.txt");
    assert_eq!(shown(&["-u", "all"]), all);
    assert_eq!(shown(&["-u", "all", "101"]), all);
    let none = include_str!("../../tests/cmd/expected/bacct-none.txt");
    assert_eq!(shown(&["-u", "all", "-q", "night"]), none);
    assert_eq!(shown(&["-l", "-u", "all", "-q", "night"]), none);
    let words = "-u_alice bob_-P_p1_-d_-C_20_-S_19,20_-D_9:00_-m_hosta hostb_-q_normal night_\
                 -sla_gold_-app_big_-Lp_lp_-U_alice#1_-x";
    let words: Vec<&str> = words.split('_').collect();
    let mut out = String::new();
    sums::head(&mut out, &call(&words).unwrap().filter, &Clock::utc());
    assert_eq!(out, include_str!("../../tests/cmd/expected/bacct-head.txt"));
}

/// Least time of a few runs.
fn least(mut run: impl FnMut()) -> Duration {
    let once = |_| {
        let from = Instant::now();
        run();
        from.elapsed()
    };
    (0..7).map(once).min().unwrap()
}

/// Against looking at each byte once in the same build, so that neither the machine nor its load
/// matters: ten times slower than now and it fails.
#[test]
fn a_line_costs_less_than_looking_at_each_of_its_bytes() {
    let mut text = Vec::new();
    for _ in 0..2000 {
        text.extend_from_slice(FOREIGN.as_bytes());
    }
    let call = call(&["-u", "all"]).unwrap();
    let mut jobs = 0;
    let bacct = least(|| {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut ctx = Ctx::new("bacct", vec![], &mut out, &mut err);
        let from = BufReader::with_capacity(files::BUFFER, &text[..]);
        let mut damage = Damage::default();
        let kept = (&mut Json::new("bacct", "JOBS"), &mut damage);
        jobs = read(&mut ctx, &call, &Clock::utc(), from, "f", kept).unwrap().jobs();
    });
    assert_eq!(jobs, 2000);
    let mut lines = 0;
    let bytes =
        least(|| lines = text.iter().filter(|b| std::hint::black_box(**b) == b'\n').count());
    assert_eq!(lines, 2000);
    assert!(bacct < bytes * 3, "{bacct:?} against {bytes:?}");
}
