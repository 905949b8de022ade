//! A hand-made log against the texts of tests/cmd/expected, written by hand from the documentation.

use super::history::{Elem, History, HistoryFilter, Job, States};
use super::show::{self, Show};
use jiff::tz::TimeZone;
use lsf::cli::clock::Clock;
use lsf::cli::ctx::Ctx;
use lsf::cli::long_format::RULE;
use lsf::log::codec::read_record;
use lsf::model::JobRef;
use lsf::model::action::JobAction;
use lsf::model::event::{
    ArrayMove, ArraySignal, Ctrl, Event, JobNew, JobSignal, JobStart, JobStatus, QueuePosition,
    Record, Retry,
};
use lsf::model::job::{JobSpec, Limits, Usage, opt2};
use lsf::model::job_state::JobState;
use lsf::proto::client::IdSel;

/// 2026-11-20 09:30:13 UTC.
const T: i64 = 1_795_167_013;

fn show() -> Show {
    Show {
        clock: Clock::utc(),
        wide: false,
        unwrapped: false,
        tasks: false,
        factor: None,
        now: T + 200,
    }
}

fn at(job: u32, idx: u32) -> JobRef {
    JobRef { job, idx }
}

fn rec(after: i64, event: Event) -> Record {
    Record { time: T + after, event }
}

fn new(job: u32, name: &str, command: &str, spec: JobSpec) -> Record {
    let spec = JobSpec {
        name: name.into(),
        command: command.into(),
        queue: "normal".into(),
        project: "default".into(),
        cwd: "/home/user1".into(),
        home: "/home/user1".into(),
        from_host: "vm".into(),
        min_slots: spec.min_slots.max(1),
        max_slots: spec.max_slots.max(1),
        ..spec
    };
    let new = JobNew {
        job,
        user: "user1".into(),
        submit_time: T,
        spec: spec.into(),
        ..JobNew::default()
    };
    rec(0, Event::JobNew(Box::new(new)))
}

fn start(after: i64, at: JobRef, hosts: &[(&str, u32)], res: &str) -> [Record; 3] {
    let hosts = hosts.iter().map(|(h, n)| ((*h).into(), *n)).collect();
    let s = JobStart { at, attempt: 1, hosts, eff_res_req: res.into(), ..JobStart::default() };
    let pid = 17157;
    let accept = Event::JobStartAccept { at, attempt: 1, pid, pgid: pid };
    let execute = Event::JobExecute {
        at,
        uid: 1,
        pid,
        pgid: pid,
        cwd: "/home/user1".into(),
        home: "/home/user1".into(),
        user: "user1".into(),
        note: String::new(),
    };
    [rec(after, Event::JobStart(Box::new(s))), rec(after, accept), rec(after, execute)]
}

fn status(after: i64, at: JobRef, state: JobState, reason: u32) -> Record {
    let s = JobStatus { at, status: state.into(), reason, attempt: 1, ..JobStatus::default() };
    rec(after, Event::JobStatus(Box::new(s)))
}

fn end(after: i64, at: JobRef, code: i32, info: u32) -> Record {
    let usage = Usage {
        utime_us: 54_000_000,
        max_mem_kb: 4_089_446,
        avg_mem_kb: 4_089_446,
        cpu_peak: 75,
        cpu_peak_secs: 60,
        ..Usage::default()
    };
    let s = JobStatus {
        at,
        status: JobState::of_end(code == 0).into(),
        end_time: T + after,
        cpu: 0.04,
        exit_status: code << 8,
        exit_info: info,
        attempt: 1,
        usage: Some(usage),
        ..JobStatus::default()
    };
    rec(after + 1, Event::JobStatus(Box::new(s)))
}

fn signal(after: i64, at: JobRef, signal: &str) -> Record {
    let (user, action) = ("user1".to_string(), JobAction::of_word(signal));
    let s = JobSignal { at, uid: 1, user, action, run_count: 1, ..JobSignal::default() };
    rec(after, Event::JobSignal(Box::new(s)))
}

/// A log with jobs in every state.
fn log() -> Vec<Record> {
    let mut log = vec![new(23, "", "sleep 300", JobSpec::default())];
    let needs = "select[type == local] rusage[mem=4000]";
    log.extend(start(0, at(23, 0), &[("vm", 1)], needs));
    log.push(status(96, at(23, 0), JobState::Ususp, 1));
    log.push(status(99, at(23, 0), JobState::Ssusp, 3));
    log.push(status(99, at(23, 0), JobState::Run, 0));
    log.push(signal(111, at(23, 0), "KILL"));
    log.push(end(111, at(23, 0), 130, 14));
    let wide = JobSpec {
        min_slots: 2,
        max_slots: 2,
        out_file: "out.%J".into(),
        limits: Limits { run: Some(600), ..Limits::default() },
        ..JobSpec::default()
    };
    log.push(new(24, "myname", "echo hello", wide));
    log.extend(start(4, at(24, 0), &[("vm", 2)], ""));
    let back = format!("\"JOB_REQUEUE\" \"10.1\" {} 24 0", T + 107);
    log.push(read_record(back.as_bytes()).unwrap());
    log.push(new(25, "arr[1-5:2]%2", "sleep 100", JobSpec::default()));
    log.extend(start(5, at(25, 1), &[("vm2", 1)], ""));
    log.push(end(105, at(25, 1), 0, 0));
    log.extend(start(7, at(25, 3), &[("vm3", 1)], ""));
    let held = JobSpec { options2: opt2::HOLD, ..JobSpec::default() };
    log.push(new(26, "held_for_long", "sleep 5", held));
    log.push(status(50, at(26, 0), JobState::Pend, 605));
    log.push(new(27, "e\u{1b}[1mé", "x", JobSpec::default()));
    log.push(signal(10, at(27, 0), "DELETEJOB"));
    let never = JobStatus {
        at: at(27, 0),
        status: JobState::Exit.into(),
        end_time: T + 10,
        exit_info: 8,
        ..JobStatus::default()
    };
    log.push(rec(10, Event::JobStatus(Box::new(never))));
    log.push(rec(11, Event::JobClean { at: at(27, 0) }));
    log.push(new(28, "lost", "x", JobSpec::default()));
    log.extend(start(1, at(28, 0), &[("vm", 1)], ""));
    let lost = JobStatus {
        at: at(28, 0),
        status: JobState::Exit.into(),
        end_time: T + 21,
        exit_info: 9001,
        attempt: 1,
        unknown_end: true,
        ..JobStatus::default()
    };
    log.push(rec(21, Event::JobStatus(Box::new(lost))));
    log
}

fn table(filter: HistoryFilter) -> String {
    let mut h = History::new(filter, false, false);
    log().iter().for_each(|r| h.add(r));
    let mut out = String::new();
    show::head(&mut out);
    h.wanted().for_each(|(at, job, e)| show::row(&mut out, at, job, e, &show()));
    out
}

fn states(set: impl Fn(&mut States)) -> HistoryFilter {
    let mut f = HistoryFilter::default();
    set(&mut f.states);
    f
}

fn ids(filter: HistoryFilter) -> String {
    let text = table(filter);
    let ids = text.lines().skip(2).map(|l| l.split(' ').next().unwrap_or(""));
    ids.collect::<Vec<_>>().join(" ")
}

#[test]
fn bhist_shows_the_table_of_times() {
    let want = include_str!("../../tests/cmd/expected/bhist.txt");
    assert_eq!(table(states(|s| s.all = true)), want);
}

/// One record for many elements: each is shown as records of its own would show it.
#[test]
fn elements_that_were_signalled_together_have_their_stories_each() {
    let signal = |action: &str, state: JobState, reason, elems: &[(u32, u32, u32)], after| {
        let (user, action) = ("user1".to_string(), JobAction::of_word(action));
        let signal = JobSignal { at: at(30, 0), uid: 1, user, action, ..JobSignal::default() };
        let end_time = if state.is_finished() { T + after } else { 0 };
        let exit_info = if state.is_finished() { 14 } else { 0 };
        let (elems, status) = (elems.to_vec(), state.into());
        let s = ArraySignal { elems, signal, status, reason, end_time, exit_info };
        rec(after, Event::ArraySignal(Box::new(s)))
    };
    let all = [
        new(30, "arr[1-50]", "sleep 100", JobSpec::default()),
        signal("STOP", JobState::Psusp, 28, &[(1, 40, 1)], 10),
        signal("CONT", JobState::Pend, 27, &[(1, 30, 1)], 20),
        // an index that the array does not have is nobody's
        signal("KILL", JobState::Exit, 0, &[(1, 20, 1), (45, 99, 2)], 30),
    ];
    let each: Vec<Record> = all
        .iter()
        .flat_map(|r| match &r.event {
            Event::ArraySignal(s) => s
                .indices()
                .flat_map(|idx| {
                    let (signal, status) = (s.signal_of(idx), s.status_of(idx));
                    [Event::JobSignal(Box::new(signal)), Event::JobStatus(Box::new(status))]
                })
                .map(|event| Record { time: r.time, event })
                .collect(),
            _ => vec![r.clone()],
        })
        .collect();
    let shown = |log: &[Record]| {
        let mut h = History::new(states(|s| s.all = true), true, false);
        log.iter().for_each(|r| h.add(r));
        let line = |(at, _, e): (JobRef, &Job, &Elem)| format!("{at} {e:?}");
        h.wanted().map(line).collect::<Vec<String>>()
    };
    let together = shown(&all);
    assert_eq!(together, shown(&each));
    assert_eq!(together.len(), 50);
    let killed = together.iter().filter(|t| t.contains("Signal <KILL> requested")).count();
    assert_eq!(killed, 23);
}

#[test]
fn elements_that_were_switched_or_moved_together_have_their_stories_each() {
    let (job, queue, user) = (30, "night".to_string(), "user1".to_string());
    let elems = vec![(2, 40, 1), (45, 99, 2)];
    let place = QueuePosition { base: 1, between: 2 };
    let (position, uid, top) = (3, 1, true);
    let mine = (elems.clone(), user.clone());
    let moved = ArrayMove { job, elems: mine.0, position, top, uid, user: mine.1, place };
    let switched = Event::ArraySwitch { job, elems, queue, uid, user };
    let records = [
        (switched, "Switched to Queue <night> by user or administrator <user1>;"),
        (
            Event::ArrayMove(Box::new(moved)),
            "Job moved to position 3 relative to <top> by user or administrator <user1>;",
        ),
    ];
    for (together, line) in records {
        let mut h = History::new(states(|s| s.all = true), true, false);
        h.add(&new(30, "arr[1-50]", "sleep 100", JobSpec::default()));
        h.add(&rec(10, together));
        let told =
            |(at, _, e): (JobRef, &Job, &Elem)| format!("{e:?}").contains(line).then_some(at.idx);
        let told: Vec<u32> = h.wanted().filter_map(told).collect();
        assert_eq!(told, (2..=40).chain([45, 47, 49]).collect::<Vec<u32>>(), "{line}");
    }
}

#[test]
fn state_options_select_jobs() {
    assert_eq!(ids(HistoryFilter::default()), "24 25[3] 25[5] 26");
    assert_eq!(ids(states(|s| s.done = true)), "23 25[1] 27 28");
    assert_eq!(ids(states(|s| s.exit = true)), "23 27 28");
    assert_eq!(ids(states(|s| s.pend = true)), "24 25[5] 26");
    assert_eq!(ids(states(|s| s.run = true)), "25[3]");
    assert_eq!(ids(states(|s| s.susp = true)), "");
}

#[test]
fn filters_of_bhist_select_jobs() {
    let all = || states(|s| s.all = true);
    let sel = |job, elems: &[(u32, u32, u32)]| IdSel { job, elems: elems.to_vec() };
    assert_eq!(ids(HistoryFilter { ids: vec![sel(23, &[])], ..HistoryFilter::default() }), "23");
    assert_eq!(
        ids(HistoryFilter { ids: vec![sel(25, &[(2, 4, 1)])], ..HistoryFilter::default() }),
        "25[3]"
    );
    assert_eq!(ids(HistoryFilter { ids: vec![sel(99, &[])], ..HistoryFilter::default() }), "");
    assert_eq!(ids(HistoryFilter { name: "arr".into(), ..all() }), "25[1] 25[3] 25[5]");
    assert_eq!(ids(HistoryFilter { name: "ar*".into(), ..all() }), "25[1] 25[3] 25[5]");
    assert_eq!(ids(HistoryFilter { name: "arr[5]".into(), ..all() }), "25[5]");
    assert_eq!(ids(HistoryFilter { name: "sleep 300".into(), ..all() }), "23");
    assert_eq!(
        ids(HistoryFilter { hosts: vec!["vm2".into(), "vm3".into()], ..all() }),
        "25[1] 25[3]"
    );
    assert_eq!(ids(HistoryFilter { queue: "night".into(), ..all() }), "");
    assert_eq!(ids(HistoryFilter { user: "user2".into(), ..all() }), "");
    let mine = HistoryFilter { project: "default".into(), user: "user1".into(), ..all() };
    assert_eq!(ids(mine), "23 24 25[1] 25[3] 25[5] 26 27 28");
}

fn long(filter: HistoryFilter, s: &Show) -> String {
    let mut h = History::new(filter, true, s.tasks);
    log().iter().for_each(|r| h.add(r));
    let mut out = String::new();
    for (i, (at, job, e)) in h.wanted().enumerate() {
        if i > 0 {
            out.push_str(RULE);
            out.push('\n');
        }
        show::long(&mut out, at, job, e, s, h.tracked);
    }
    out
}

fn only(job: u32) -> HistoryFilter {
    HistoryFilter { ids: vec![IdSel { job, elems: vec![] }], ..HistoryFilter::default() }
}

#[test]
fn bhist_l_shows_the_life_of_a_job() {
    assert_eq!(long(only(23), &show()), include_str!("../../tests/cmd/expected/bhist-l-23.txt"));
    assert_eq!(long(only(24), &show()), include_str!("../../tests/cmd/expected/bhist-l-24.txt"));
    assert_eq!(long(only(27), &show()), include_str!("../../tests/cmd/expected/bhist-l-27.txt"));
}

#[test]
fn bhist_l_shows_the_reasons_of_waiting() {
    let told = |after, at, on| rec(after, Event::Eligible { at, on });
    let over = |records: &[Record], job| {
        let mut h = History::new(only(job), true, false);
        records.iter().for_each(|r| h.add(r));
        let mut out = String::new();
        for (at, job, e) in h.wanted() {
            show::long(&mut out, at, job, e, &show(), h.tracked);
        }
        out
    };
    let mut log = vec![
        new(7, "", "x", JobSpec::default()),
        new(8, "a[1-3]", "x", JobSpec::default()),
        told(10, at(7, 0), false),
        told(15, at(8, 0), false),
        told(25, at(8, 2), true),
        told(30, at(7, 0), true),
        told(40, at(7, 0), false),
    ];
    log.extend(start(50, at(7, 0), &[("vm", 1)], ""));
    log.extend(start(55, at(8, 1), &[("vm", 1)], ""));
    log.extend([(60, true), (70, false), (80, true)].map(|(t, on)| told(t, at(8, 0), on)));
    log.push(end(90, at(7, 0), 0, 0));
    let want = |may, not| {
        format!(
            "\n\nPENDING TIME DETAILS:\nEligible pending time (seconds):       {may}\n\
             Ineligible pending time (seconds):     {not}\n\nSummary of time"
        )
    };
    let got = over(&log, 7);
    assert!(got.contains(&want(20, 30)), "{got}");
    // up to now: T + 200
    let got = over(&log, 8);
    for (may, not) in [(15, 40), (190, 10), (145, 55)] {
        let want = want(may, not);
        assert!(got.contains(&want[1..]), "{want}\nin {got}");
    }
    assert!(!over(&log[..2], 7).contains("PENDING TIME"));
}

#[test]
fn elements_have_lives_of_their_own() {
    let got = long(only(25), &show());
    assert_eq!(got.matches(RULE).count(), 2);
    assert!(got.contains("\nJob <25[5]>, Job Name <arr[5]>, User <user1>"), "{got}");
    assert_eq!(got.matches("Done successfully. The CPU time used is 0.0 seconds;").count(), 1);
    assert!(got.contains("by  Fri Nov 20 09:31:58\n"), "{got}");
}

#[test]
fn an_unknown_end_has_no_exit_code() {
    let got = long(only(28), &Show { unwrapped: true, ..show() });
    assert!(got.contains(": Exited. The CPU time used is unknown;\n"), "{got}");
    assert!(got.contains(": Completed <exit>; TERM_LOST_STATUS: exit status unknown"), "{got}");
    assert!(!got.contains("code"));
}

#[test]
fn tasks_are_worded_as_the_site_says() {
    let got = long(only(24), &Show { tasks: true, unwrapped: true, ..show() });
    let want = ": Dispatched 2 Task(s) on Host(s) <2*vm>, Allocated 2 Slot(s) on Host(s) <2*vm>;";
    assert!(got.contains(want), "{got}");
}

#[test]
fn a_job_carried_into_a_newer_log_is_counted_once() {
    let mut h = History::new(only(23), false, false);
    log().iter().chain(&log()).for_each(|r| h.add(r));
    let all: Vec<_> = h.wanted().collect();
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].2.times(T + 999), [0, 0, 108, 3, 0, 0]);
}

/// The output of a call on a log of its own: stdout, stderr, exit code.
fn call(words: &[&str]) -> (String, String, i32) {
    call_over(words, &[("lsb.events", &log())], b"garbage\n", &show())
}

/// Calls bhist over these logs, the first with `behind` at its end.
fn call_over(
    words: &[&str],
    logs: &[(&str, &[Record])],
    behind: &[u8],
    show: &Show,
) -> (String, String, i32) {
    static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let n = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let dir = std::env::temp_dir().join(format!("lsf-bhist-{}-{n}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    for (i, (name, records)) in logs.iter().enumerate() {
        let mut text = b"#80\n".to_vec();
        records.iter().for_each(|r| lsf::log::codec::write_record(r, &mut text));
        text.extend_from_slice(if i == 0 { behind } else { b"" });
        std::fs::write(dir.join(name), &text).unwrap();
    }
    let args: Vec<std::ffi::OsString> = words.iter().map(std::ffi::OsString::from).collect();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut ctx = Ctx::new("bhist", vec![], &mut out, &mut err);
    let code = match super::plan(&args, (show.now, &TimeZone::UTC), || "user1".to_string()) {
        Ok(call) => super::search(&mut ctx, call, Some(&dir), show),
        Err(exit) => exit.show(&mut ctx),
    };
    std::fs::remove_dir_all(&dir).unwrap();
    let text = |b: Vec<u8>| String::from_utf8(b).unwrap().replace(&*dir.to_string_lossy(), "DIR");
    (text(out), text(err), code)
}

#[test]
fn records_of_a_file_become_the_table() {
    let (out, err, code) = call(&["-a", "-n", "0"]);
    assert_eq!(out, include_str!("../../tests/cmd/expected/bhist.txt"));
    let lines = log().len() + 2;
    assert_eq!(err, format!("bhist: DIR/lsb.events: line {lines}: not a record; ignored\n"));
    assert_eq!(code, 0);
    let (out, _, code) = call(&["-l", "23"]);
    assert_eq!(out, format!("{}\n", include_str!("../../tests/cmd/expected/bhist-l-23.txt")));
    assert_eq!(code, 0);
}

#[test]
fn bhist_json_has_the_columns_and_the_events() {
    let (out, _, code) = call(&["-a", "-json"]);
    let json: serde_json::Value =
        serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}"));
    let (table, _, _) = call(&["-a", "-w"]);
    let rows: Vec<&str> = table.lines().skip(2).collect();
    let records = json["RECORDS"].as_array().unwrap();
    assert_eq!(
        (code, json["JOBS"].as_u64(), records.len()),
        (0, Some(rows.len() as u64), rows.len())
    );
    let headings = table.lines().nth(1).unwrap().split_whitespace();
    for (key, column) in headings.zip(0..) {
        for (record, row) in records.iter().zip(&rows) {
            let values: Vec<&str> = row.split_whitespace().collect();
            // a name may have blanks
            let at = if column < 2 { column } else { values.len() + column - 10 };
            if column != 2 {
                assert_eq!(record[key], values[at], "{key} of {row}");
            }
        }
    }
    let (out, _, _) = call(&["-l", "-json", "23"]);
    assert_eq!(out, include_str!("../../tests/cmd/expected/bhist-json-23.txt"));
    let (out, err, code) = call(&["-json", "-P", "none"]);
    let nothing = "{\n  \"COMMAND\":\"bhist\",\n  \"RECORDS\":[\n  ],\n  \"JOBS\":0\n}\n";
    assert_eq!((out.as_str(), code), (nothing, 0), "{err}");
    let (_, err, code) = call(&["-json", "-t"]);
    assert_eq!((err.as_str(), code), ("bhist: Option -json cannot be used with option -t.\n", 255));
}

#[test]
fn bhist_without_a_match_says_so() {
    for words in [&["99999"][..], &["-u", "nosuch", "-a"], &["-q", "x"], &["-l", "23[1]", "999"]] {
        let (out, err, code) = call(words);
        assert_eq!((out.as_str(), code), ("", 255), "{words:?}");
        assert!(err.ends_with("No matching job found\n"), "{err}");
    }
    for words in [&["-l", "23[1]"][..], &["99999[2-7]", "99998[1]"]] {
        let (out, err, code) = call(words);
        assert_eq!((out.as_str(), code), ("", 255), "{words:?}");
        assert!(err.ends_with("No matching job array found\n"), "{err}");
    }
    assert_eq!(call(&["abc"]).1, "abc: Illegal job ID.\n");
    assert_eq!(call(&["-n", "x"]).1, "bhist: Bad argument for option -n.\n");
    assert_eq!(call(&["-C", "x"]).1, "x: Bad time specification\n");
    assert_eq!(call(&["-T", "1,"]).1, "bhist: Option -T needs option -t.\n");
    let (out, err, code) = call(&["-f", "/nonexistent/x"]);
    assert_eq!((out.as_str(), code), ("", 255));
    assert_eq!(err, "bhist: /nonexistent/x: No such file or directory\n");
}

/// The IDs of the table's lines.
fn listed(words: &[&str]) -> Vec<String> {
    let (out, _, _) = call(words);
    out.lines().skip(2).filter_map(|l| l.split(' ').next().map(str::to_string)).collect()
}

#[test]
fn intervals_of_time_select_jobs() {
    let all = listed(&["-a", "-u", "all"]);
    // Every job of the log was submitted on that day, and finished jobs are meant too.
    assert_eq!(listed(&["-S", "2026/11/20", "-u", "all"]), all);
    assert_eq!(listed(&["-S", "2026/11/19", "-u", "all"]), [""; 0]);
    let ended = listed(&["-C", "2026/11/20", "-u", "all"]);
    assert_eq!(ended, listed(&["-d", "-u", "all"]));
    assert!(ended.len() < all.len(), "{ended:?} of {all:?}");
    assert!(listed(&["-D", "2026/11/20", "23"]) == ["23"]);
    assert_eq!(listed(&["-D", ",2026/11/19", "23"]), [""; 0]);
}

#[test]
fn events_in_the_order_of_time() {
    let (out, _, code) = call(&["-t", "-T", "2026/11/20", "-a", "-u", "all"]);
    assert_eq!(code, 0);
    let first = out.lines().next().unwrap();
    assert!(first.starts_with("Fri Nov 20 09:30:") && first.contains(": Job <"), "{out}");
    let times: Vec<&str> =
        out.lines().filter(|l| l.starts_with("Fri Nov")).map(|l| &l[..19]).collect();
    let mut sorted = times.clone();
    sorted.sort_unstable();
    assert!(times.len() > 10 && times == sorted, "{times:?}");
    let joined = out.replace("\n                     ", "");
    assert!(joined.contains("Job <23> Dispatched to <vm>"), "{joined}");
    assert_eq!(call(&["-t", "-T", "2026/11/19"]).2, 255);
}

fn on_queue(after: i64, op: Ctrl, queue: &str, message: &str) -> Record {
    let (user, queue, message) = ("lsfadmin".into(), queue.into(), message.into());
    rec(after, Event::QueueCtrl { op, queue, uid: 1, user, message })
}

fn on_host(after: i64, op: Ctrl, message: &str) -> Record {
    let (user, host, message) = ("lsfadmin".into(), "vm2".into(), message.into());
    rec(after, Event::HostCtrl { op, host, uid: 1, user, message, lock: String::new() })
}

/// Records of queues, hosts and mbatchd around the records of a job.
fn around() -> Vec<Record> {
    let (master, cluster) = ("vm".to_string(), "volclava".to_string());
    let mut log = vec![
        rec(-10, Event::MbdStart { master: master.clone(), cluster, hosts: 1, queues: 5 }),
        on_queue(-9, Ctrl::Close, "normal", "disks are full"),
        on_queue(-8, Ctrl::Inactivate, "night", ""),
        on_host(-7, Ctrl::Close, "disk swap"),
        on_host(-6, Ctrl::Open, ""),
        new(23, "", "sleep 300", JobSpec::default()),
    ];
    log.extend(start(1, at(23, 0), &[("vm", 1)], "select[type == local]"));
    log.push(signal(111, at(23, 0), "KILL"));
    log.push(end(111, at(23, 0), 130, 14));
    log.push(rec(120, Event::LogSwitch { last_job: 23 }));
    log.push(rec(121, Event::MbdDie { master, removed: 0, code: 202, message: String::new() }));
    log
}

#[test]
fn events_of_the_system_are_shown_in_the_order_of_time() {
    let over = |words: &[&str]| call_over(words, &[("lsb.events", &around())], b"", &show());
    let all = include_str!("../../tests/cmd/expected/bhist-t.txt");
    let early = include_str!("../../tests/cmd/expected/bhist-T.txt");
    for (words, want) in [
        (&["-t"][..], all),
        (&["-t", "-u", "all"], all),
        (&["-t", "-T", "2026/11/20/09:30,2026/11/20/09:31", "-u", "nobody"], ""),
        (&["-t", "-T", "2026/11/20/09:29,2026/11/20/09:29"], ""),
    ] {
        let (out, err, code) = over(words);
        match want {
            "" if words.len() == 5 => {
                let system: String = all.split_inclusive('\n').take(8).collect();
                assert_eq!((out.as_str(), err.as_str(), code), (system.as_str(), "", 0));
            }
            "" => {
                let none = "No matching job/event found\n";
                assert_eq!((out.as_str(), err.as_str(), code), ("", none, 255), "{words:?}");
            }
            want => assert_eq!((out.as_str(), err.as_str(), code), (want, "", 0), "{words:?}"),
        }
    }
    // of a queue or hosts, and of a job alone
    let lines = |words: &[&str]| -> Vec<String> {
        let (out, _, _) = over(words);
        let joined = out.replace("\n                     ", "");
        joined.lines().map(|l| l[21..].chars().take(12).collect()).collect()
    };
    assert_eq!(lines(&["-t", "-q", "night"]), ["Queue <night"]);
    assert_eq!(lines(&["-t", "-m", "vm2"]), ["Host <vm2> c", "Host <vm2> o"]);
    assert!(lines(&["-t", "23"]).iter().all(|l| l.starts_with("Job <23>")));
    let (out, _, _) = over(&["-t", "-T", "2026/11/20/09:30"]);
    assert!(out.starts_with(early), "{out}");
}

/// A job that waited and ran for these seconds.
fn finished(job: u32, name: &str, wait: i64, run: i64) -> Vec<Record> {
    let mut log = vec![new(job, name, "x", JobSpec::default())];
    log.extend(start(wait, at(job, 0), &[("vm", 1)], ""));
    log.push(end(wait + run, at(job, 0), 0, 0));
    log
}

#[test]
fn logs_that_were_switched() {
    let (now, then) = (finished(6, "newer", 1, 20), finished(5, "older", 2, 10));
    let logs = [("lsb.events", &now[..]), ("lsb.events.1", &then[..])];
    let over = |words: &[&str]| call_over(&[words, &["-a"]].concat(), &logs, b"", &show());
    let current = include_str!("../../tests/cmd/expected/bhist-n-current.txt");
    let first = include_str!("../../tests/cmd/expected/bhist-n-1.txt");
    let both = include_str!("../../tests/cmd/expected/bhist-n.txt");
    for (words, want) in [
        (&[][..], current),
        (&["-n", "1"], current),
        (&["-n", "0"], both),
        (&["-n", "2"], both),
        (&["-n", "9"], both),
        (&["-n", "0,1"], both),
        (&["-n", "1,1"], first),
        (&["-n", "1,5"], first),
    ] {
        assert_eq!(over(words), (want.to_string(), String::new(), 0), "{words:?}");
    }
}

#[test]
fn a_job_of_ten_years_ago() {
    // 2016-11-20 09:30:13: two leap days lie between
    let back = -3652 * 86400;
    let shift = |r: Record| Record { time: r.time + back, ..r };
    let mut log = vec![new(16, "decade", "sleep 315532800", JobSpec::default())];
    if let Event::JobNew(new) = &mut log[0].event {
        new.submit_time += back;
    }
    log.extend(start(1, at(16, 0), &[("vm", 1)], ""));
    let log: Vec<Record> = log.into_iter().map(shift).collect();
    let plain = Show { now: T, ..show() };
    let year = Show { clock: Clock::utc().with_year(true), now: T, ..show() };
    let over = |words: &[&str], show| call_over(words, &[("lsb.events", &log)], b"", show).0;
    assert_eq!(over(&[], &plain), include_str!("../../tests/cmd/expected/bhist-old.txt"));
    let long = include_str!("../../tests/cmd/expected/bhist-old-year-l.txt");
    assert_eq!(over(&["-l", "16"], &year), format!("{long}\n"));
}

#[test]
fn a_requeue_tells_the_exit_value_and_a_failed_start_what_its_host_said() {
    let passed = Vec::new();
    let (held, uncounted, until) = (None, false, T + 20);
    let at = at(1, 0);
    let back = Event::JobRequeue {
        at,
        held,
        uncounted,
        passed,
        until,
        exit: Some(5),
        request: String::new(),
    };
    let said = super::lines::sentence(&back, false).unwrap();
    assert_eq!(said, "Pending: Requeued job is waiting for rescheduling;(exit code 5)");
    let note = "input file </root/in>: Permission denied".to_string();
    let retry = Some(Box::new(Retry { note, ..Retry::default() }));
    let s =
        JobStatus { at, status: JobState::Pend.into(), reason: 10, retry, ..JobStatus::default() };
    let said = super::lines::sentence(&Event::JobStatus(Box::new(s)), false).unwrap();
    let want =
        "Pending: Unable to open job's I/O buffers: input file </root/in>: Permission denied;";
    assert_eq!(said, want);
}
