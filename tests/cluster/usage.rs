//! The usage of a real job in the columns of the commands that show it: memory, threads and
//! processes while it runs, memory and time when it has ended.

use super::rig::{Rig, wait_for};

/// Memory that the job holds, MB.
const HELD: f64 = 80.0;

/// Megabytes of `120 Mbytes` or `1.2 Gbytes`.
fn megabytes(text: &str) -> f64 {
    let mut words = text.split_whitespace();
    let number: f64 = words.next().and_then(|n| n.parse().ok()).unwrap_or(0.0);
    match words.next() {
        Some(unit) if unit.starts_with('G') => number * 1024.0,
        Some(unit) if unit.starts_with('M') => number,
        _ => 0.0,
    }
}

/// The word of a column below its heading.
fn below<'a>(text: &'a str, heading: &str, column: &str) -> &'a str {
    let mut lines = text.lines().skip_while(|line| !line.contains(heading));
    let head = lines.next().unwrap_or_else(|| panic!("no {heading}: {text}"));
    let at = head.split_whitespace().position(|word| word == column).unwrap();
    lines.next().and_then(|line| line.split_whitespace().nth(at)).unwrap_or_default()
}

#[test]
fn memory_threads_and_processes_of_a_job_are_in_the_columns_of_bjobs_and_bacct() {
    let rig = Rig::up("usage-columns", 1);
    // tail keeps all of it while nobody reads
    let bytes = HELD as u64 * 1024 * 1024;
    let script = format!("head -c {bytes} /dev/zero | tail -c {bytes} | sleep 300");
    let job = rig.bsub(&["-o", "/dev/null", &script]);
    let id = job.to_string();
    wait_for("its memory to be measured", || megabytes(&rig.field(&id, "mem")) >= HELD);
    let number = |field: &str| rig.field(&id, field).parse::<u32>().unwrap_or(0);
    // the shell, tail and sleep
    assert!((2..=6).contains(&number("nthreads")), "{}", rig.field(&id, "nthreads"));
    assert!(rig.field(&id, "pids").split(',').count() >= 2, "{}", rig.field(&id, "pids"));
    let most = megabytes(&rig.field(&id, "max_mem"));
    assert!((HELD..HELD * 3.0).contains(&most), "{most}");
    assert!(megabytes(&rig.field(&id, "avg_mem")) > 0.0);
    let long = rig.ok("bjobs", &["-l", &id]);
    let line = long.lines().find(|line| line.trim_start().starts_with("MEM: ")).unwrap_or(&long);
    let of = |name: &str| {
        line.split(';').find_map(|part| part.trim().strip_prefix(name)).map(str::trim).unwrap_or("")
    };
    assert!((HELD..HELD * 3.0).contains(&megabytes(of("MEM:"))), "{long}");
    assert!(of("SWAP:").ends_with("bytes"), "{long}");
    assert!(of("NTHREAD:").parse::<u32>().is_ok_and(|n| (2..=6).contains(&n)), "{long}");
    assert!(long.contains("PGID: ") && long.contains(" MAX MEM: "), "{long}");
    rig.ok("bkill", &[&id]);
    assert_eq!(rig.end_of(job), "EXIT");
    let ended = rig.ok("bacct", &["-l", &id]);
    let memory = below(&ended, "HOG_FACTOR", "MEM");
    let megabytes = memory.strip_suffix('M').and_then(|n| n.parse::<f64>().ok()).unwrap_or(0.0);
    assert!((HELD..HELD * 3.0).contains(&megabytes), "{memory}: {ended}");
    assert!(!below(&ended, "HOG_FACTOR", "SWAP").is_empty(), "{ended}");
}
