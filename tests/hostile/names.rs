//! A condition on a name that very many of the user's jobs bear, said again and again.

use crate::rig::Rig;
use std::time::{Duration, Instant};

/// Jobs of the name.
const JOBS: usize = 2_000;
/// Conditions on it.
const CONDITIONS: usize = 50;
/// Bytes of log that a submission may take, whatever its condition names.
const RECORD_MAX: u64 = 4 << 10;
/// Longest time for all of it.
const DEADLINE: Duration = Duration::from_secs(120);

fn log_size(rig: &Rig) -> u64 {
    let dirs = std::fs::read_dir(rig.path("work")).unwrap().flatten();
    let logs = dirs.map(|d| d.path().join("logdir/lsb.events"));
    logs.filter_map(|log| std::fs::metadata(log).ok()).map(|m| m.len()).sum()
}

#[test]
fn a_condition_on_the_name_of_very_many_jobs_is_recorded_as_that_name() {
    let rig = Rig::up("names", 1);
    let began = Instant::now();
    rig.ok("badmin", &["qinact", "all"]);
    let pack = |lines: usize, line: &dyn Fn(usize) -> String| {
        let text: String = (0..lines).map(|n| line(n) + "\n").collect();
        rig.write("pack", &text);
        rig.ok("bsub", &["-pack", rig.path("pack").to_str().unwrap()]);
    };
    pack(JOBS, &|n| format!("-J s{n} -o /dev/null true"));
    let before = log_size(&rig);
    assert!(before > JOBS as u64 * 100, "{before}: this is not the log");
    pack(CONDITIONS, &|_| "-J w -o /dev/null -w 'done(\"s*\")' true".to_string());
    let each = (log_size(&rig) - before) / CONDITIONS as u64;
    assert!(each < RECORD_MAX, "{each} bytes of log for each submission");
    assert!(rig.ok("bjobs", &["-p", "-J", "w"]).contains("dependency condition not satisfied"));
    assert!(began.elapsed() < DEADLINE, "{:?}", began.elapsed());
    rig.ok("bkill", &["0"]);
}
