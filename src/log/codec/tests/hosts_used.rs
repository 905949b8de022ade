//! The usage of a job on each of its hosts in JOB_STATUS and JOB_FINISH.

use super::*;
use crate::model::event::HostUsage;
use crate::model::time::US;

fn two() -> Box<[HostUsage]> {
    let of = |host: &str, figures: [u64; 4]| {
        let [mem_kb, swap_kb, utime, stime] = figures;
        let (utime_us, stime_us) = (utime * US, stime * US);
        HostUsage { host: host.into(), mem_kb, swap_kb, utime_us, stime_us }
    };
    [of("hosta", [5976, 10, 2, 0]), of("hostb", [100, 0, 30, 4])].into()
}

#[test]
fn end_of_a_job_has_the_usage_of_its_hosts_in_the_place_that_lsf_documents() {
    let at = JobRef { job: 11, idx: 0 };
    let status = JobStatus {
        at,
        status: JobState::Done.into(),
        hosts: two(),
        attempt: 1,
        ..JobStatus::default()
    };
    let text = line(Event::JobStatus(Box::new(status.clone())));
    let want = r#" 0 0 0 0 2 "hosta" 5976 10 2 0 "hostb" 100 0 30 4 0 0 "" -1 "" -1 0 0 "#;
    assert!(text.contains(want), "{text}");
    assert_eq!(read_record(text.as_bytes()).unwrap().event, Event::JobStatus(Box::new(status)));
    // a count that the line does not have room for allocates nothing, and is not believed
    let many = text.replace(" 2 \"hosta\"", " 4000000000 \"hosta\"");
    let Event::JobStatus(read) = read_record(many.as_bytes()).unwrap().event else { panic!() };
    assert!(read.hosts.is_empty());
}

#[test]
fn accounting_record_has_the_usage_of_hosts_as_real_files_and_older_ones_do() {
    let fin = Finish { at: JobRef { job: 7, idx: 0 }, hosts_used: two(), ..Finish::default() };
    let mut out = Vec::new();
    write_finish(&fin, &mut out);
    let text = String::from_utf8(out).unwrap();
    let six = " 0 2 hosta 5976 10 2 0 0 hostb 100 0 30 4 0 -1 ";
    assert!(text.contains(six), "{text}");
    assert_eq!(read_finish(text.as_bytes()).unwrap().hosts_used, two());
    // five values a host, as the manual has it
    let five = text.replace(six, " 0 2 \"hosta\" 5976 10 2 0 \"hostb\" 100 0 30 4 -1 ");
    assert_eq!(read_finish(five.as_bytes()).unwrap().hosts_used, two());
}

/// The fields of LSF have whole seconds; the tail tells the rest.
#[test]
fn fractions_of_seconds_of_each_host_are_kept_beside_the_whole_ones() {
    let mut hosts_used = two();
    (hosts_used[0].utime_us, hosts_used[1].stime_us) = (2_370_000, 3_600_001);
    let at = JobRef { job: 7, idx: 0 };
    let fin = Finish { at, hosts_used: hosts_used.clone(), ..Finish::default() };
    let mut out = Vec::new();
    write_finish(&fin, &mut out);
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains(" 0 2 hosta 5976 10 2 0 0 hostb 100 0 30 4 0 -1 "), "{text}");
    let tail = r#""lsf.hosts_cpu" "2370000 0 30000000 3600001""#;
    assert!(text.contains(tail), "{text}");
    assert_eq!(read_finish(text.as_bytes()).unwrap().hosts_used, hosts_used);
    // values that another program has changed
    for (from, to) in
        [(tail, r#""lsf.hosts_cpu" "2370000 0""#), ("hosta 5976 10 2", "hosta 5976 10 9")]
    {
        let read = read_finish(text.replace(from, to).as_bytes()).unwrap().hosts_used;
        assert_eq!(read[0].utime_us % US, 0, "{to}");
    }
    let status = JobState::Done.into();
    let status = JobStatus { at, status, hosts: hosts_used, attempt: 1, ..JobStatus::default() };
    let text = line(Event::JobStatus(Box::new(status.clone())));
    assert!(text.contains(tail) && text.contains(r#" "hostb" 100 0 30 4 0 0 "#), "{text}");
    assert_eq!(read_record(text.as_bytes()).unwrap().event, Event::JobStatus(Box::new(status)));
}
