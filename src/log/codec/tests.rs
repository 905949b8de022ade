//! Tests of the log's records.

use super::text::Fields;
use super::*;
use crate::model::action::JobAction;
use crate::model::bytes::log_loses;
use crate::model::checkpoint::{CheckpointEnd, CheckpointOrder};
use crate::model::event::*;
use crate::model::further::{self, Further};
use crate::model::job::{JobSpec, Limits, SpoolRef, Usage};
use crate::model::job_state::JobState;
use crate::model::reservation::{Reservation, ReservationFinish, ReservationKind, ReservationTime};
use crate::model::specfield::SpecField;
use crate::model::{ByteStr, JobRef};
use std::sync::Arc;

mod hosts_used;
mod random_records;
mod reserve;
mod run_limits;
mod short_hosts;
mod suspending;

fn line(event: Event) -> String {
    let mut out = Vec::new();
    write_record(&Record { time: 1_700_000_000, event }, &mut out);
    String::from_utf8(out).unwrap()
}

fn exact(spec: &JobSpec) -> Vec<u8> {
    serde_json::to_vec(spec).unwrap()
}

fn plain_job() -> JobNew {
    JobNew {
        job: 7610,
        uid: 1501,
        gid: 100,
        user: "alice".into(),
        submit_time: 1_700_000_005,
        spec: Arc::new(JobSpec {
            name: "b_sim".into(),
            command: "./b_sim.sh \"x y\"".into(),
            queue: "normal".into(),
            project: "default".into(),
            min_slots: 1,
            max_slots: 1,
            cwd: "/home/alice/w".into(),
            home: "/home/alice".into(),
            umask: 0o22,
            from_host: "login1".into(),
            ..JobSpec::default()
        }),
        ..JobNew::default()
    }
}

#[test]
fn a_plain_job_has_the_checked_order() {
    let text = line(Event::JobNew(Box::new(plain_job())));
    // options: a name and a project are given
    let want = concat!(
        r#""JOB_NEW" "10.1" 1700000000 7610 1501 33554433 1 1700000005 0 0 -65535 0 0 "alice" "#,
        r#"-1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 "" 1.00 18 "normal" "" "login1" "/home/alice/w" "" "#,
        r#""" "" "" "/home/alice" "1700000005.7610" 0 "" "" "b_sim" "./b_sim.sh ""x y""" "#,
        r#"0 "" "default" 1 "" "" "" "" "" 5136 0 "" "" "" -1 -1 -1 64 "" "" -1 "" 0 -1 "" 0 0 0 "#,
        r#""" -1 "" -1 "" "/home/alice/w" "" "" "" 0 -1 0 "" "" 0 "" "#,
        r#"2 "lsf.gid" "100" "lsf.options" "0""#,
        "\n"
    );
    assert_eq!(text, want);
}

#[test]
fn a_start_and_a_status_have_the_checked_order() {
    let at = JobRef { job: 11, idx: 3 };
    let start = JobStart {
        at,
        attempt: 2,
        hosts: [("hosta".into(), 2), ("hostb".into(), 1)].into(),
        host_factor: 100.0,
        eff_res_req: "select[type == local]".into(),
        boot: "b1".into(),
        ..JobStart::default()
    };
    assert_eq!(
        line(Event::JobStart(Box::new(start))),
        concat!(
            r#""JOB_START" "10.1" 1700000000 11 4 0 0 100.0 3 "hosta" "hosta" "hostb" "" "" 0 "" 3 "#,
            r#""" 2147483647 0 "select[type == local]" "" -1 "" -1 0 "" 0 0 "#,
            r#"3 "hosta" "hosta" "hostb" 2 "lsf.attempt" "2" "lsf.boot" "b1""#,
            "\n"
        )
    );
    let usage = Usage {
        utime_us: 13_021,
        stime_us: 672,
        max_mem_kb: 5976,
        minflt: 809,
        oublock: 32,
        nvcsw: 18,
        nivcsw: 6,
        nprocs: 1,
        ..Usage::default()
    };
    let status = JobStatus {
        at,
        status: JobState::Exit.into(),
        end_time: 1_699_999_999,
        cpu: 0.0137,
        usage: Some(usage),
        exit_status: 33280,
        exit_info: 14,
        attempt: 2,
        ..JobStatus::default()
    };
    assert_eq!(
        line(Event::JobStatus(Box::new(status))),
        concat!(
            r#""JOB_STATUS" "10.1" 1700000000 11 32 0 0 0.0137 1699999999 1 "#,
            "0.013021 0.000672 5976 0 -1 0 0 809 0 0 0 32 -1 0 0 0 18 6 -1 ",
            r#"0 33280 3 14 0 5976 0 "" -1 "" -1 0 0 "#,
            r#"2 "lsf.attempt" "2" "lsf.usage" "0 0 5976 0 0 0 1""#,
            "\n"
        )
    );
}

#[test]
fn the_small_records_have_the_checked_order() {
    let text = line(Event::JobExecute {
        at: JobRef { job: 11, idx: 0 },
        uid: 1002,
        pid: 16830,
        pgid: 16830,
        cwd: "/home/user1".into(),
        home: "/home/user1".into(),
        user: "user1".into(),
        note: String::new(),
    });
    assert_eq!(
        text,
        concat!(
            r#""JOB_EXECUTE" "10.1" 1700000000 11 1002 16830 "/home/user1" "/home/user1" "user1" "#,
            r#"16830 0 "" -1 "" 0 2147483647 "" -1 "" -1 "" -1"#,
            "\n"
        )
    );
    let (op, message) = (Ctrl::Close, String::new());
    let (user, uid) = ("lsfadmin".to_string(), 1001);
    assert_eq!(
        line(Event::HostCtrl { op, host: "vm2".into(), uid, user, message, lock: String::new() }),
        "\"HOST_CTRL\" \"10.1\" 1700000000 2 \"vm2\" 1001 \"lsfadmin\" \"\"\n"
    );
    assert_eq!(line(Event::Foreign { name: "MIG".into() }), "");
}

#[test]
fn the_record_of_many_elements_has_the_fields_of_a_signal_and_of_a_status() {
    let signal = JobSignal {
        at: JobRef { job: 11, idx: 0 },
        uid: 1002,
        user: "user1".into(),
        action: JobAction::Kill,
        host: "vm".into(),
        request: "r1".into(),
        ..JobSignal::default()
    };
    let killed = ArraySignal {
        elems: vec![(1, 5000, 1), (5007, 5007, 1), (6000, 6100, 2)],
        signal,
        status: JobState::Exit.into(),
        reason: 0,
        end_time: 1_699_999_999,
        exit_info: 14,
    };
    let want = concat!(
        r#""LSF_ARRAY_SIGNAL" "10.1" 1700000000 11 1002 0 "KILL" 0 "user1" 32 0 1699999999 14 "#,
        r#"3 "1-5000" "5007" "6000-6100:2" 2 "lsf.host" "vm" "lsf.request" "r1""#,
        "\n"
    );
    assert_eq!(line(Event::ArraySignal(Box::new(killed.clone()))), want);
    let read = |text: &str| read_record(text.as_bytes()).map(|record| record.event);
    assert_eq!(read(want).unwrap(), Event::ArraySignal(Box::new(killed)));
    for bad in ["0-5000", "5000-1", "1-5000:0", "1-", "x", "1-99999999999"] {
        assert!(read(&want.replace("1-5000", bad)).is_err(), "{bad}");
    }
}

#[test]
fn the_move_of_many_elements_has_the_fields_of_a_move_its_place_and_the_elements() {
    let elems = vec![(2, 40, 1), (44, 44, 1)];
    let place = QueuePosition { base: 8_000_000_000, between: 7 };
    let (job, user) = (11, "user1".to_string());
    let moved = ArrayMove { job, elems, position: 3, top: false, uid: 1002, user, place };
    let want = concat!(
        r#""LSF_ARRAY_MOVE" "10.1" 1700000000 1002 11 3 2 0 "user1" 8000000000 7 2 "2-40" "44""#,
        "\n"
    );
    let moved = Event::ArrayMove(Box::new(moved));
    assert_eq!(line(moved.clone()), want);
    assert_eq!(read_record(want.as_bytes()).unwrap().event, moved);
    assert!(read_record(want.replace("2-40", "0-40").as_bytes()).is_err());
}

#[test]
fn the_switch_of_many_elements_has_the_fields_of_a_switch_and_the_elements() {
    let (queue, user) = ("night".to_string(), "user1".to_string());
    let elems = vec![(2, 40, 1), (44, 44, 1), (50, 60, 2)];
    let switch = Event::ArraySwitch { job: 11, elems, queue, uid: 1002, user };
    let want = concat!(
        r#""LSF_ARRAY_SWITCH" "10.1" 1700000000 1002 11 "night" 0 "user1" "#,
        r#"3 "2-40" "44" "50-60:2""#,
        "\n"
    );
    assert_eq!(line(switch.clone()), want);
    assert_eq!(read_record(want.as_bytes()).unwrap().event, switch);
    assert!(read_record(want.replace("2-40", "0-40").as_bytes()).is_err());
}

#[test]
fn a_finished_job_has_the_order_of_real_files() {
    let job = plain_job();
    let fin = Finish {
        event_time: 1_700_000_150,
        at: JobRef { job: 7610, idx: 0 },
        uid: 1501,
        user: "alice".into(),
        submit_time: 1_700_000_005,
        start_time: 1_700_000_008,
        spec: JobSpec::clone(&job.spec),
        exec_hosts: vec![("hosta".into(), 1)],
        status: JobState::Done.into(),
        host_factor: 12.5,
        usage: None,
        eff_res_req: "r".into(),
        attempt: 1,
        ..Finish::default()
    };
    let mut out = Vec::new();
    write_finish(&fin, &mut out);
    let want = concat!(
        r#""JOB_FINISH" "10.1" 1700000150 7610 1501 33554433 1 1700000005 0 0 1700000008 "alice" "#,
        r#""normal" "" "" "" "login1" "/home/alice/w" "" "" "" "1700000005.7610" 0 1 "hosta" 64 "#,
        r#"12.5 "b_sim" "./b_sim.sh ""x y""" -1.000000 -1.000000 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 "#,
        r#"-1 -1 -1 -1 -1 -1 -1 "" "default" 0 1 "" "" 0 0 0 "" "" "" "" 0 "" 0 "" -1 "" "" "" "" "#,
        r#"-1 "" "" 5136 "" 1700000008 "" "" 0 0 -1 64 0 "r" "" -1 "" -1 0 "" 0 0 "" 142 "#,
        r#""/home/alice/w" 0 "" 0.000000 0.00 0.00 0.00 0.00 1 "hosta" -1 0 0 0 0 "#,
        r#"3 "schedulingOverhead" "0.00" "lsf.attempt" "1" "lsf.options" "0""#,
        "\n"
    );
    assert_eq!(String::from_utf8(out).unwrap(), want);
    let mut resized = fin;
    resized.spec.further.put_text("rnc", "/bin/told");
    let mut out = Vec::new();
    write_finish(&resized, &mut out);
    let want = want.replace("5136 \"\" 1700000008", "5136 \"/bin/told\" 1700000008");
    let got = String::from_utf8(out).unwrap();
    assert!(got.starts_with(want.trim_end_matches(&['"', '0', '\n'][..])), "{got}");
}

// Lines of the openlava family and of LSF as they are laid out, with invented values.
const OPENLAVA_NEW: &str = r#""JOB_NEW" "22" 1795167013 21 1002 35651586 1 1795167013 0 0 -65535 0 0 "user1" -1 -1 -1 -1 -1 -1 -1 -1 -1 60 -1 "" 100.00 18 "normal" "" "vm" "w" "" "" "" "" "/home/user1" "1795167013.21" 0 "" "" "" "sleep 1" 0 "" "default" 1 "linux" "/nonexist" 5136 0 "" "" "" -1 "" """#;
const LSF_NEW: &str = r#""JOB_NEW" "9.13" 1500000000 5 1002 33816578 2 1500000000 0 0 -65535 0 0 "user1" -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 "" 60.00 18 "normal" "select[mem>1]" "vm" "w/x" "" "" "" "" "/home/user1" "1500000000.5" 0 "" "" "" "sleep 1" 0 "" "default" 4 "X86_64" "" "" "" "" 5136 0 "" "" "" -1 7 -1 64 "" "" -1 "" 0 -1 "" 0 0 0 "" -1 "" -1 "" "/home/user1/w/x" "" "" "" 0 -1 0 "" "" 0 """#;

#[test]
fn records_of_other_systems_are_read() {
    let Event::JobNew(n) = read_record(OPENLAVA_NEW.as_bytes()).unwrap().event else { panic!() };
    assert_eq!((n.job, n.uid, n.gid), (21, 1002, new::NO_GID));
    assert_eq!(n.spec.login_shell, ByteStr::from("/nonexist"));
    assert_eq!(n.spec.cwd, ByteStr::from("/home/user1/w"));
    assert_eq!(n.spec.limits.run, Some(60));
    assert_eq!(n.spec.umask, 0o22);
    assert_eq!(n.env, SpoolRef::default());
    let Event::JobNew(n) = read_record(LSF_NEW.as_bytes()).unwrap().event else { panic!() };
    assert_eq!((n.spec.min_slots, n.spec.max_slots), (2, 4));
    assert_eq!(n.spec.limits.thread, Some(7));
    assert_eq!(n.spec.cwd, ByteStr::from("/home/user1/w/x"));

    let line = r#""JOB_STATUS" "22" 1795167013 12 32 0 0 0.0137 1795167013 1 0.013021 0.000672 5976 0 -1 0 0 809 0 0 0 32 -1 0 0 0 18 6 -1 33280 4 0 0"#;
    let Event::JobStatus(s) = read_record(line.as_bytes()).unwrap().event else { panic!() };
    assert_eq!((s.at.job, s.at.idx, s.exit_status), (12, 4, 33280));
    assert_eq!(s.usage.unwrap().utime_us, 13021);
    let line = r#""JOB_STATUS" "22" 1795167013 20 32 0 0 0.0000 1795167013 0 0 0 0 0"#;
    let Event::JobStatus(s) = read_record(line.as_bytes()).unwrap().event else { panic!() };
    assert_eq!((s.usage, s.exit_status), (None, 0));

    let line =
        r#""JOB_START" "22" 1795167012 11 4 0 0 100.0 3 "vm" "2*vn" "vn" "" "" 0 7 "o[r15s]""#;
    let Event::JobStart(s) = read_record(line.as_bytes()).unwrap().event else { panic!() };
    assert_eq!((s.at.idx, &*s.eff_res_req), (7, "o[r15s]"));
    assert_eq!(s.hosts[..], [("vm".into(), 1), ("vn".into(), 3)]);

    let line = r#""JOB_SWITCH" "10.1" 1795167012 1002 11 "night" 0 "user1""#;
    let Event::JobSwitch { at, queue, uid, user, .. } = read_record(line.as_bytes()).unwrap().event
    else {
        panic!()
    };
    let whole = JobRef { job: 11, idx: 0 };
    assert_eq!((at, queue.as_str(), uid, user.as_str()), (whole, "night", 1002, "user1"));
    let line = r#""JOB_MOVE" "10.1" 1795167012 1002 11 3 2 0 "user1""#;
    let moved = read_record(line.as_bytes()).unwrap().event;
    assert!(
        matches!(moved, Event::JobMove { at, position: 3, top: false, place: None, .. }
            if at == whole),
        "{moved:?}"
    );

    for element in [
        r#""JOB_SWITCH" "10.1" 1795167012 1002 11 "night" 3 "user1""#,
        r#""JOB_MOVE" "10.1" 1795167012 1002 11 1 1 3 "user1""#,
    ] {
        let event = read_record(element.as_bytes()).unwrap().event;
        assert_eq!(job_of(&event), JobRef { job: 11, idx: 3 });
    }
    let foreign = r#""HOST_CTRL" "10.1" 1795167012 4 "vm" 0 "root" """#;
    let event = read_record(foreign.as_bytes()).unwrap().event;
    assert!(matches!(event, Event::Foreign { .. }), "{event:?}");
}

#[test]
fn a_finish_of_other_systems_is_read() {
    let old = r#""JOB_FINISH" "22" 1795167013 12 1002 33554435 1 1795167013 0 0 1795167013 "user1" "normal" "" "" "" "vm" "" "" "" "" "1795167013.12" 0 1 "vm" 32 100.0 "x[1-2000]" "sleep 1" 0.013021 0.000672 5976 0 -1 0 0 809 0 0 0 32 -1 0 0 0 18 6 -1 "" "default" 33280 1 "" 3 -1 -1 "" """#;
    let fin = read_finish(old.as_bytes()).unwrap();
    assert_eq!((fin.at.job, fin.at.idx, fin.exit_status), (12, 3, 33280));
    assert_eq!(fin.usage.unwrap().max_mem_kb, 5976);
    let new = r#""JOB_FINISH" "10.1" 1700000150 101 1501 33554450 1 1700000005 0 0 1700000006 "alice" "normal" "rusage[mem=1000]" "" "" "login1" "/home/alice/w" "" "o.%J" "" "1700000005.101" 0 1 "hosta" 64 12.5 "b_sim" "./b_sim.sh" 60.100000 2.000000 122880 0 -1 0 0 436 4 0 928 0 -1 0 0 0 19 2 -1 "" "default" 0 1 "" "" 0 122880 0 "" "" "" "" 0 "" 14 "" -1 "" "" "" "" -1 "" "" 5136 "" 1700000006 "" "about" 2 1110 "default" 1032 "0" 1 hosta 10 20 3 4 0 43200 64 2048 "select[x]" "" -1 "" -1 0 "" 0 0 "" 142 "/home/alice/w" 0 "" 0.000000 0.00 0.00 0.00 0.00 1 "hosta" -1 0 0 0 0 1 "schedulingOverhead" "0.00""#;
    let fin = read_finish(new.as_bytes()).unwrap();
    assert_eq!((fin.exit_info, fin.spec.limits.run), (14, Some(43200)));
    assert_eq!((fin.spec.description.as_str(), fin.eff_res_req.as_str()), ("about", "select[x]"));
    assert!(read_finish(format!("{new} 1 \"lsf.x\" \0\0").as_bytes()).is_err());
    let usage = fin.usage.unwrap();
    assert_eq!((usage.max_mem_kb, usage.avg_mem_kb, usage.utime_us), (122880, 2048, 60_100_000));
}

#[test]
fn malformed_records_are_refused_and_newer_ones_end_the_start() {
    for bad in [
        "",
        "x",
        "\0\0\0\0\0",
        "\"JOB_NEW\"",
        "\"JOB_NEW\" \"10.1\"",
        "\"JOB_NEW\" \"10.1\" x",
        "\"JOB_CLEAN\" \"10.1\" 5 7",
        "\"JOB_CLEAN\" \"10.1\" 5 7 x",
        "\"JOB_CLEAN\" \"10.1\" 5 7 99999999999",
        "\"LSF_HOLD\" \"10.1\" 5 7 0 \"open",
        "\"LSF_HOLD\" \"10.1\" 5 7 0 \"a\"b",
        "\"MIG\" \"10.1\" 5 \"open",
        "\"JOB_CLEAN\" \"10.1\" 5 7 0 1 \"lsf.x\" \0\0\0\0",
    ] {
        let got = read_record(bad.as_bytes());
        assert!(got.is_err(), "{bad}: {got:?}");
        assert!(!matches!(got, Err(RecordError::Newer { .. })), "{bad}");
    }
    let err = read_record(b"\"LSF_FUTURE\" \"10.1\" 5 7 0").unwrap_err();
    assert_eq!(err.to_string(), "record LSF_FUTURE was written by a newer version of this program");
}

#[test]
fn further_options_of_an_earlier_record_are_read_into_their_fields_and_written_alike() {
    let plain = line(Event::JobNew(Box::new(plain_job())));
    let tail = concat!(
        r#"7 "lsf.gid" "100" "lsf.options" "0" "lsf.x.g" "/a/b" "lsf.x.Q" "3 EXCLUDE(20)" "#,
        r#""lsf.x.hostslots" "h1 2" "lsf.x.dep" "done(7)" "lsf.x.filled" "run slots""#
    );
    let text = plain.replace(r#"2 "lsf.gid" "100" "lsf.options" "0""#, tail);
    let Event::JobNew(new) = read_record(text.as_bytes()).unwrap().event else { panic!() };
    let read = &new.spec.further;
    assert_eq!((&*read.job_group, &*read.requeue), ("/a/b", "3 EXCLUDE(20)"));
    assert_eq!(
        (&*read.host_lines, &*read.resolved_condition),
        (&[("h1".into(), 2)][..], "done(7)")
    );
    assert!(read.filled_by_queue.slots && read.unread.is_empty());
    assert!(line(Event::JobNew(new)).trim_end().ends_with(tail), "{tail}");
}

#[test]
fn user_text_never_passes_for_a_tail_or_a_record() {
    let mut job = plain_job();
    job.gid = 5;
    Arc::make_mut(&mut job.spec).command =
        "1 \"lsf.gid\" \"0\"\n\"JOB_CLEAN\" \"10.1\" 1 7610 0".into();
    Arc::make_mut(&mut job.spec).hosts = vec!["lsf.gid".into(), "lsf.env".into()];
    Arc::make_mut(&mut job.spec).further.put_text("gid\" \"0", "lsf.gid\" \"0");
    job.request = "\" 1 \"lsf.gid\" \"0".into();
    let text = line(Event::JobNew(Box::new(job.clone())));
    assert_eq!(text.matches('\n').count(), 1);
    let Event::JobNew(got) = read_record(text.as_bytes()).unwrap().event else { panic!() };
    assert!(job.spec.text_loses());
    Arc::make_mut(&mut job.spec).command =
        "1 \"lsf.gid\" \"0\";\"JOB_CLEAN\" \"10.1\" 1 7610 0".into();
    assert!(!job.spec.text_loses());
    assert_eq!(*got, job);
    // a record whose last fields look like a tail of the count before them
    let text = "\"QUEUE_CTRL\" \"10.1\" 5 1 \"q\" 1 \"lsf.by_admin\" \"1\"\n";
    let Event::QueueCtrl { user, .. } = read_record(text.as_bytes()).unwrap().event else {
        panic!()
    };
    assert_eq!(user, "lsf.by_admin");
}

#[test]
fn ends_of_lines_of_every_reader_and_terminal_escapes_are_replaced() {
    let mut out = Vec::new();
    let hostile = "a\nb\rc\u{85}d\u{2028}e\u{9b}31mf\x1b[2Jg\0h\ti\x7fj\"k\\".as_bytes();
    text::put_str(&mut out, hostile);
    text::put_str(&mut out, b"x\xffy\xc3");
    assert_eq!(
        std::str::from_utf8(&out).unwrap(),
        " \"a;b?c;d;e?31mf?[2Jg?h?i?j\"\"k\\\" \"x?y?\""
    );
    assert!(log_loses(hostile) && log_loses(b"\xff") && log_loses(b"\t"));
    assert!(!log_loses("\"doubled\" \\ and é; stay".as_bytes()));
}

#[test]
fn exact_bytes_come_back() {
    let mut spec = JobSpec::clone(&plain_job().spec);
    spec.command = ByteStr(b"printf '\xff\n'".to_vec());
    assert_eq!(read_exact_spec(&exact(&spec)).unwrap(), spec);
    assert!(read_exact_spec(b"{").is_err());
}

// Every event there is, with strings that a record keeps as they are.

#[test]
fn a_change_of_more_ranges_than_an_operand_may_have_is_read_back() {
    let elems: Vec<(u32, u32, u32)> = (1..=5000).map(|n| (3 * n, 3 * n + n % 2, 1)).collect();
    let exact = SpoolRef { spool: 1, at: 2, len: 3 };
    let m = JobModify { job: 9, elems, exact, ..JobModify::default() };
    let text = line(Event::JobModify(Box::new(m.clone())));
    match read_record(text.as_bytes()).unwrap().event {
        Event::JobModify(read) => assert_eq!(read.elems, m.elems),
        other => panic!("{other:?}"),
    }
}

/// [`SimilarSubmissions`] reads every changed line as the plain reader does.
#[test]
fn records_like_the_one_before_read_the_same() {
    let place = |at| SpoolRef { spool: 3, at, len: 4096 };
    let job = |n: u32| JobNew {
        job: n,
        submit_time: 1_700_000_000 + i64::from(n),
        request: format!("{:032x}", u64::from(n) << 20),
        env: place(u64::from(n / 3)),
        ..plain_job()
    };
    let text = |new: JobNew, time: i64| {
        let mut out = Vec::new();
        write_record(&Record { time, event: Event::JobNew(Box::new(new)) }, &mut out);
        out
    };
    let first = text(job(9), 1_700_000_009);
    let Event::JobNew(new) = read_record(&first).unwrap().event else { panic!() };
    let mut alike = SimilarSubmissions::default();
    alike.learn(&first, &new);
    for n in [1, 9, 10, 12_345, u32::MAX] {
        let line = text(job(n), 1_800_000_000);
        let got = alike.read(&line).unwrap();
        assert_eq!(got, read_record(&line).unwrap());
        // the specification is that of the first, not another like it
        let Event::JobNew(like) = got.event else { panic!() };
        assert!(Arc::ptr_eq(&like.spec, &new.spec), "{n}");
    }
    let line = text(job(10), 1_700_000_010);
    for at in 0..line.len() {
        for byte in [b'7', b'"', b' ', b'-', b'x', b'.', b'\n', 0, 0xff] {
            let mut odd = line.clone();
            odd[at] = byte;
            assert_eq!(alike.read(&odd), read_record(&odd), "{}", String::from_utf8_lossy(&odd));
        }
        for cut in [&line[..at], &[&line[..at], &line[at + 1..]].concat()] {
            assert_eq!(alike.read(cut), read_record(cut));
        }
        let twice = [&line[..at], &line[at.saturating_sub(1)..]].concat();
        assert_eq!(alike.read(&twice), read_record(&twice));
    }
    // what a user wrote that looks like a pair of ours
    let sly = |n: u32, command: &str| {
        let spec =
            JobSpec { name: "lsf.request".into(), command: command.into(), ..JobSpec::default() };
        JobNew { spec: Arc::new(spec), request: "r1".into(), ..job(n) }
    };
    let line = text(sly(12, "r1"), 1_700_000_012);
    let Event::JobNew(new) = read_record(&line).unwrap().event else { panic!() };
    let mut other = SimilarSubmissions::default();
    other.learn(&line, &new);
    let line = text(sly(13, "r2"), 1_700_000_013);
    assert_eq!(other.read(&line), read_record(&line));
    // a request that is not a plain word
    let odd = JobNew { request: "a \"b\"".into(), ..job(11) };
    let line = text(odd, 1_700_000_011);
    assert_eq!(alike.read(&line), read_record(&line));
}

#[test]
fn a_force_has_the_documented_order_and_its_start_a_mark() {
    let at = JobRef { job: 11, idx: 3 };
    let hosts: NamedHosts = [("hosta".into(), 2)].into();
    let (user, queue) = ("lsfadmin".into(), "night".into());
    let force =
        JobForce { at, uid: 5, user, options: 2, hosts: hosts.clone(), queue, ..<_>::default() };
    assert_eq!(
        line(Event::JobForce(Box::new(force))),
        "\"JOB_FORCE\" \"10.1\" 1700000000 11 5 3 2 2 \"hosta\" \"hosta\" \"lsfadmin\" \"night\"\n"
    );
    let start =
        JobStart { at, attempt: 1, hosts, forced: Forced::NeverSuspended, ..<_>::default() };
    let text = line(Event::JobStart(Box::new(start)));
    assert!(text.ends_with(" 2 \"lsf.attempt\" \"1\" \"lsf.forced\" \"2\"\n"), "{text}");
    let Event::JobStart(read) = read_record(text.as_bytes()).unwrap().event else { panic!() };
    assert_eq!(read.forced, Forced::NeverSuspended);
}

#[test]
fn period_of_a_reservation_has_the_documented_order_of_fields_and_is_read_again() {
    let reservation = Reservation {
        id: "ann#0".into(),
        created: 50,
        creator: "root".into(),
        users: vec!["ann".into(), "bob".into()],
        hosts: vec![("hosta".into(), 4), ("hostb".into(), 1)],
        time: ReservationTime::Once { begin: 100, end: 700 },
        open: true,
        ..Reservation::default()
    };
    let finish = ReservationFinish { time: 700, reservation, duration: 600 };
    let mut text = Vec::new();
    write_reservation_finish(&finish, &mut text);
    let fields = r#"700 50 65 0 "ann#0" "ann bob" "100-700" "root" 600 2 "hosta" 4 "hostb" 1"#;
    let line = format!("\"EVENT_ADRSV_FINISH\" \"10.1\" {fields}\n");
    assert_eq!(String::from_utf8(text.clone()).unwrap(), line);
    assert_eq!(read_reservation_finish(&text).unwrap(), Some(finish.clone()));
    let mut weekly = finish;
    weekly.reservation.time = ReservationTime::Weekly("1:8:00-1:9:00".into());
    weekly.reservation.kind = ReservationKind::System;
    text.clear();
    write_reservation_finish(&weekly, &mut text);
    assert_eq!(read_reservation_finish(&text).unwrap(), Some(weekly));
    assert_eq!(read_reservation_finish(b"\"JOB_FINISH\" \"10.1\" 5").unwrap(), None);
    assert!(read_reservation_finish(&text[..40]).is_err());
}

#[test]
fn a_chunk_has_the_documented_order_of_fields() {
    let members = vec![JobRef { job: 11, idx: 0 }, JobRef { job: 12, idx: 3 }];
    let hosts: NamedHosts = [("hosta".into(), 2), ("hostb".into(), 1)].into();
    for (short_hosts, list) in [
        (false, "3 \"hosta\" \"hosta\" \"hostb\""),
        // as in JOB_START
        (true, "2 \"2*hosta\" \"hostb\""),
    ] {
        let chunk = JobChunk { members: members.clone(), hosts: hosts.clone(), short_hosts };
        let text = line(Event::JobChunk(Box::new(chunk.clone())));
        let fields = format!("2 11 12884901900 {list}");
        assert_eq!(text, format!("\"JOB_CHUNK\" \"10.1\" 1700000000 {fields}\n"));
        let read = read_record(text.as_bytes()).unwrap().event;
        assert_eq!(read, Event::JobChunk(Box::new(chunk)));
    }
}

#[test]
fn a_time_slice_of_a_start_is_its_duration_of_backfill() {
    let hosts: NamedHosts = [("hosta".into(), 1)].into();
    let start = JobStart { at: JobRef { job: 5, idx: 0 }, hosts, slice: 90, ..<_>::default() };
    let text = line(Event::JobStart(Box::new(start.clone())));
    assert!(text.contains(" \"\" 90 0 \"\""), "{text}");
    let Event::JobStart(read) = read_record(text.as_bytes()).unwrap().event else { panic!() };
    assert_eq!(read.slice, 90);
    let plain = line(Event::JobStart(Box::new(JobStart { slice: 0, ..start })));
    assert!(plain.contains(" 2147483647 0 "), "{plain}");
}

#[test]
fn a_change_of_slots_has_the_documented_order_in_each_of_its_records() {
    let at = JobRef { job: 11, idx: 3 };
    let hosts: NamedHosts = [("hosta".into(), 2), ("hostb".into(), 1)].into();
    let (user, command) = (String::from("ann"), String::from("/bin/tell"));
    let text = |step: ResizeStep| {
        let (user, attempt) = (user.clone(), 2);
        let r = JobResize { at, step, attempt, uid: 5, user, request: String::new() };
        line(Event::JobResize(Box::new(r)))
    };
    let on = "3 \"hosta\" \"hosta\" \"hostb\"";
    let tail = "\"lsf.attempt\" \"2\"";
    let released = ResizeStep::Released {
        number: 7,
        cancels: true,
        hosts: hosts.clone(),
        command: command.clone(),
    };
    let begun = ResizeStep::Begun { number: 7, grows: false, hosts, command };
    for (step, want) in [
        (released, format!("RELEASE|7 1 5 \"ann\" \"/bin/tell\" {on} 1 {tail}")),
        (ResizeStep::Cancelled, format!("CANCEL|5 \"ann\" 1 {tail}")),
        (
            begun,
            format!(
                "NOTIFY_START|7 {on} 3 {tail} \"lsf.grows\" \"0\" \"lsf.command\" \"/bin/tell\""
            ),
        ),
        (ResizeStep::Accepted { number: 7, pid: 99 }, format!("NOTIFY_ACCEPT|7 99 99 0 1 {tail}")),
        (ResizeStep::Done { number: 7, status: 1 }, format!("NOTIFY_DONE|7 1 1 {tail}")),
    ] {
        let (name, fields) = want.split_once('|').unwrap();
        let want = format!("\"JOB_RESIZE_{name}\" \"10.1\" 1700000000 11 3 {fields}\n");
        assert_eq!(text(step), want);
    }
}

#[test]
fn a_migration_has_the_documented_order() {
    let at = JobRef { job: 11, idx: 3 };
    let m = JobMigrate { at, uid: 5, user: "ann".into(), attempt: 2, ..<_>::default() };
    assert_eq!(
        line(Event::JobMigrate(Box::new(m))),
        "\"MIG\" \"10.1\" 1700000000 11 0 5 3 \"ann\" 1 \"lsf.attempt\" \"2\"\n"
    );
    let other = b"\"MIG\" \"10.1\" 1700000000 11 2 \"h1\" \"h2\" 5 0 \"ann\"\n";
    let Event::JobMigrate(read) = read_record(other).unwrap().event else { panic!() };
    assert_eq!((read.hosts.join(" "), read.uid, read.user.as_str()), ("h1 h2".into(), 5, "ann"));
}

#[test]
fn a_checkpoint_has_the_documented_order_when_asked_for_and_when_it_has_ended() {
    let at = JobRef { job: 11, idx: 3 };
    let order = CheckpointOrder { kill: true, force: true, period: None };
    let step = CheckpointStep::Asked(order);
    let c = JobCheckpoint { at, pid: 77, attempt: 2, uid: 5, step, ..<_>::default() };
    assert_eq!(
        line(Event::JobCheckpoint(Box::new(c))),
        "\"JOB_SIGACT\" \"10.1\" 1700000000 11 0 77 0 0 3 1 \"SIG_CHKPNT\" 3 2 \
         \"lsf.attempt\" \"2\" \"lsf.uid\" \"5\"\n"
    );
    let end = CheckpointEnd { number: 4, succeeded: true, period: Some(2), ..<_>::default() };
    let step = CheckpointStep::Ended(end);
    let c = JobCheckpoint { at, pid: 77, attempt: 2, step, ..<_>::default() };
    assert_eq!(
        line(Event::JobCheckpoint(Box::new(c))),
        "\"CHKPNT\" \"10.1\" 1700000000 11 120 77 1 0 3 3 \"lsf.attempt\" \"2\" \
         \"lsf.number\" \"4 0\" \"lsf.period\" \"2\"\n"
    );
    // another LSF's
    let other = b"\"CHKPNT\" \"10.1\" 1700000000 11 60 77 0 1 0\n";
    let Event::JobCheckpoint(read) = read_record(other).unwrap().event else { panic!() };
    let end = CheckpointEnd { kill: true, ..<_>::default() };
    assert_eq!((read.pid, read.step), (77, CheckpointStep::Ended(end)));
    let other = b"\"JOB_SIGACT\" \"10.1\" 1700000000 11 0 77 4 0 0 1 \"KILLREQUEUE\" 0\n";
    assert!(!matches!(read_record(other).map(|r| r.event), Ok(Event::JobCheckpoint(_))));
}

#[test]
fn a_checkpoint_directory_has_its_bits_and_fields_in_a_submission_and_is_read_from_anothers() {
    let mut spec = JobSpec { command: "x".into(), ..JobSpec::default() };
    spec.further.put_text("k", "/c init=5 30 method=m");
    let new = JobNew { job: 1, spec: Arc::new(spec), ..JobNew::default() };
    let text = line(Event::JobNew(Box::new(new)));
    // options beginTime termTime sigValue chkpntPeriod
    assert!(text.contains(" 1700000000 1 0 3072 0 0 0 0 -65535 1800 0 "), "{text}");
    assert!(text.contains(" \"/c\" "), "{text}");
    let (classic, _) = text.split_once(" \"lsf.gid\"").unwrap();
    let classic = &classic[..classic.rfind(' ').unwrap()];
    let Event::JobNew(read) = read_record(classic.as_bytes()).unwrap().event else { panic!() };
    let read = read.spec.further.checkpoint.clone().unwrap();
    assert_eq!((&*read.dir, read.period), ("/c", Some(30)));
}

#[test]
fn the_account_of_a_resize_names_the_slots_before_and_the_change() {
    let hosts: NamedHosts = [("hosta".into(), 2)].into();
    let changed: NamedHosts = [("hostb".into(), 1)].into();
    let at = JobRef { job: 11, idx: 3 };
    let (uid, user, start_time, last_time) = (5, String::from("ann"), 16, 17);
    let mut r = ResizeAccount {
        time: 18,
        at,
        start_time,
        uid,
        user,
        grows: true,
        last_time,
        hosts,
        changed,
    };
    let mut text = Vec::new();
    write_resize(&r, &mut text);
    let lists = "2 \"hosta\" \"hosta\" 1 \"hostb\"";
    let want =
        |kind| format!("\"JOB_RESIZE\" \"10.1\" 18 11 3 16 5 \"ann\" {kind} 17 {lists} {lists}\n");
    assert_eq!(String::from_utf8(text.clone()).unwrap(), want(0));
    assert!(read_finish(&text).is_err() && read_brief(&text, &|_| true).unwrap().is_none());
    (r.grows, text) = (false, Vec::new());
    write_resize(&r, &mut text);
    assert_eq!(String::from_utf8(text).unwrap(), want(1));
}
