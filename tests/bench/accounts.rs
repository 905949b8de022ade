//! bacct over a million records, beside reading the same file.

use super::rig::Rig;
use super::table::{Figure, FigureTable, Unit, ms};
use super::{RUNS, ends_well};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Records of the file.
const RECORDS: u64 = 1_000_000;
/// Longest time of one run.
const STEP: Duration = Duration::from_secs(30);

/// A job's record, of the length that LSF's have (580 bytes).
fn record(n: u64) -> String {
    let end = 1_700_000_000 + n / 4;
    let (submit, start) = (end - 145, end - 134);
    let (user, queue) =
        (["alice", "bob", "carol"][n as usize % 3], ["normal", "night"][n as usize % 2]);
    format!(
        "\"JOB_FINISH\" \"10.1\" {end} {n} 1501 33554450 1 {submit} 0 0 {start} \"{user}\" \
         \"{queue}\" \"rusage[mem=1000]\" \"\" \"\" \"login1\" \"/home/{user}/work\" \"\" \"o.%J\" \
         \"\" \"{submit}.{n}\" 0 1 \"hosta\" 64 12.5 \"b_sim\" \"./b_sim.sh --input data.{n}\" \
         60.100000 2.000000 122880 0 -1 0 0 436 4 0 928 0 -1 0 0 0 19 2 -1 \"\" \"default\" 0 1 \
         \"\" \"\" 0 122880 0 \"\" \"\" \"\" \"\" 0 \"\" 0 \"\" -1 \"/{user}\" \"\" \"\" \"\" -1 \"\" \"\" \
         5136 \"\" {start} \"\" \"\" 0 0 -1 64 2048 \"select[type == local] order[r15s:pg]\" \"\" -1 \
         \"\" -1 0 \"\" 0 0 \"\" 134 \"/home/{user}/work\" 0 \"\" 0.000000 0.00 0.00 0.00 0.00 1 \
         \"hosta\" -1 0 0 0 0 1 \"schedulingOverhead\" \"0.00\"\n"
    )
}

fn timed(mut command: Command) -> Option<f64> {
    let from = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().ok()?;
    ends_well(&mut child, from + STEP).then(|| ms(from.elapsed()))
}

fn write(path: &Path) -> std::io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    (0..RECORDS).try_for_each(|n| file.write_all(record(n).as_bytes()))?;
    file.flush()
}

pub fn measure(rig: &Rig, table: &mut FigureTable) {
    let path = rig.path("lsb.acct.bench");
    if let Err(e) = write(&path) {
        eprintln!("  {}: {e}", path.display());
    }
    let reads = || {
        let mut wc = Command::new("wc");
        wc.arg("-l").arg(&path);
        timed(wc)
    };
    let name = "wc -l of that file";
    let limit = Figure::new(name, Unit::Ms, (0..RUNS).map_while(|_| reads()).collect());
    for (name, words) in [
        ("bacct of 1,000,000 records", &["-u", "all"][..]),
        ("bacct of 1,000,000 records, one job", &["999999"]),
    ] {
        let run = || {
            let mut bacct = rig.cmd("bacct");
            bacct.arg("-f").arg(&path).args(words);
            timed(bacct)
        };
        let runs = (0..RUNS).map_while(|_| run()).collect();
        table.add(Figure::new(name, Unit::Ms, runs), Some(limit.clone()));
    }
    let _ = std::fs::remove_file(&path);
}
