//! Suspending reasons, which LSF has as bits.

use super::*;
use crate::model::reason::susp;

fn status(state: JobState, reason: u32, subreason: u32) -> JobStatus {
    let at = JobRef { job: 9, idx: 0 };
    JobStatus { at, status: state.into(), reason, subreason, attempt: 1, ..JobStatus::default() }
}

#[test]
fn suspending_reasons_are_written_as_the_bits_of_lsf_and_come_back() {
    for (code, bits) in [
        (susp::RESUMED, "1 0"),
        (susp::USER, "2 0"),
        (susp::WINDOW, "8 0"),
        (susp::LOAD + 3, "64 3"),
        (susp::EXTERNAL, "64 11"),
        (susp::of_external(4), "64 15"),
        (susp::PREEMPTED, "128 0"),
        (susp::STOP_COND, "512 0"),
        (susp::RESUME_COND, "1024 0"),
        (susp::ADMIN, "16384 0"),
        (susp::RESERVED, "1048576 0"),
    ] {
        let written = Event::JobStatus(Box::new(status(JobState::Ssusp, code, 0)));
        let text = line(written.clone());
        assert!(text.contains(&format!(" 9 8 {bits} ")), "{text}");
        assert_eq!(read_record(text.as_bytes()).unwrap().event, written);
        let (reason, index) = susp::bits(code);
        assert_eq!(susp::of_bits(reason, index), code);
    }
    // other states have pending reasons
    let text = line(Event::JobStatus(Box::new(status(JobState::Pend, 5, 0))));
    assert!(text.contains(" 9 1 5 0 ") && !text.contains("lsf.susp"), "{text}");
}

#[test]
fn suspending_reasons_of_another_lsf_and_of_our_older_records_are_told_apart() {
    let reason = |text: &str| match read_record(text.as_bytes()).unwrap().event {
        Event::JobStatus(status) => (status.reason, status.subreason),
        other => panic!("{other:?}"),
    };
    let lsf = r#""JOB_STATUS" "10.1" 1700000000 9 8 64 3 0.0000 0 0 0 0 0 0 0 0 "" -1 "" -1 0 0"#;
    assert_eq!(reason(lsf), (susp::LOAD + 3, 0));
    let openlava = r#""JOB_STATUS" "22" 1795167013 9 16 2 0 0.0000 1795167013 0 0 0 0 0"#;
    assert_eq!(reason(openlava), (susp::USER, 0));
    let older = format!("{} 1 \"lsf.attempt\" \"1\"", lsf.replace(" 64 3 ", " 31 0 "));
    assert_eq!(reason(&older), (susp::LOAD_EXTERNAL, 0));
}
