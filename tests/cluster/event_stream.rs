//! ENABLE_EVENT_STREAM of lsb.params: lsb.stream repeats the records of lsb.events and lsb.acct,
//! for as long as that is asked for; a full disk there holds nobody up.

use crate::full::{Mounted, fill};
use crate::rig::{Rig, wait_for};

const STREAM: &str = "work/personal/logdir/stream/lsb.stream";

/// Puts these lines into lsb.params in place of those before, and has them read.
fn reconfigured(rig: &Rig, plain: &str, lines: &str) {
    let text = plain.replace("End Parameters", &format!("{lines}\nEnd Parameters"));
    std::fs::write(rig.configdir().join("lsb.params"), text).unwrap();
    rig.ok("badmin", &["reconfig"]);
}

/// The names of the records of a job in a file, in their order.
fn records(rig: &Rig, file: &str, job: u32) -> Vec<String> {
    let text = rig.read(file);
    let of_job = |line: &&str| line.split(' ').nth(3) == Some(&job.to_string());
    let name = |line: &str| line.split('"').nth(1).unwrap_or_default().to_owned();
    text.lines().filter(of_job).map(name).collect()
}

#[test]
fn event_stream_repeats_the_records_that_are_allowed_for_as_long_as_it_is_on() {
    let rig = Rig::up("stream", 1);
    let plain = std::fs::read_to_string(rig.configdir().join("lsb.params")).unwrap();
    let run = || {
        let job = rig.bsub(&["-o", "/dev/null", "true"]);
        assert_eq!(rig.end_of(job), "DONE");
        job
    };
    let before = run();
    assert!(!rig.path(STREAM).exists());
    reconfigured(&rig, &plain, "ENABLE_EVENT_STREAM = Y");
    let all = run();
    let ends = |job| records(&rig, STREAM, job).last().is_some_and(|name| name == "JOB_FINISH");
    wait_for("the end in the stream", || ends(all));
    let told = records(&rig, STREAM, all);
    let mut logged = records(&rig, "work/personal/logdir/lsb.events", all);
    logged.push("JOB_FINISH".to_owned());
    assert_eq!(told, logged);
    assert_eq!(records(&rig, STREAM, before), Vec::<String>::new());
    // the very lines
    let stream = rig.read(STREAM);
    let events =
        rig.read("work/personal/logdir/lsb.events") + &rig.read("work/personal/logdir/lsb.acct");
    assert!(stream.lines().all(|line| events.contains(line)), "{stream}");
    reconfigured(&rig, &plain, "ENABLE_EVENT_STREAM = Y\nALLOW_EVENT_TYPE = JOB_NEW JOB_FINISH");
    let some = run();
    wait_for("the end in the stream", || ends(some));
    assert_eq!(records(&rig, STREAM, some), ["JOB_NEW", "JOB_FINISH"]);
    reconfigured(&rig, &plain, "");
    let length = rig.read(STREAM).len();
    run();
    assert_eq!(rig.read(STREAM).len(), length);
}

#[test]
fn full_disk_of_the_event_stream_is_told_once_and_holds_no_job_up() {
    let name = "full_disk_of_the_event_stream_is_told_once_and_holds_no_job_up";
    let rig = Rig::up("streamfull", 1);
    let plain = std::fs::read_to_string(rig.configdir().join("lsb.params")).unwrap();
    let dir = rig.path("work/personal/logdir/stream");
    std::fs::create_dir(&dir).unwrap();
    let Some(mounted) = Mounted::over(name, dir) else { return };
    reconfigured(&rig, &plain, "ENABLE_EVENT_STREAM = Y");
    let run = || {
        let job = rig.bsub(&["-o", "/dev/null", "-J", &"x".repeat(4000), "true"]);
        assert_eq!(rig.end_of(job), "DONE");
        job
    };
    let first = run();
    wait_for("the stream", || records(&rig, STREAM, first).len() > 3);
    let filler = fill(&mounted.0);
    let log = || rig.read("log/mbatchd.log.host1");
    let [mut lost, mut count] = [0; 2];
    wait_for("the failure", || {
        (lost, count) = (run(), count + 1);
        log().contains("records are left out until it is written")
    });
    for _ in 0..3 {
        lost = run();
    }
    std::fs::remove_file(filler).unwrap();
    let last = run();
    wait_for("the stream", || records(&rig, STREAM, last).len() > 3);
    wait_for("words about it", || {
        run();
        log().contains("is written again; ")
    });
    assert_eq!(log().matches("records are left out until it is written").count(), 1, "{}", log());
    // the name of the job is longer than what is left of the last page
    assert!(!records(&rig, STREAM, lost).contains(&"JOB_NEW".to_owned()));
    // no record is cut off
    assert!(
        rig.read(STREAM).lines().all(|line| line.starts_with('"') && line.contains("\"10.1\""))
    );
    rig.down();
}
