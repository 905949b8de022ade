//! Jobs that left mbatchd's memory (CLEAN_PERIOD): answered from their history, which the command
//! reads itself, so that mbatchd is not kept from its work (lsb.events(5), then lsb.acct(5)).
//!
//! Invariant: only jobs that the master did not know are looked for, and only finished ones are
//! shown; what they show is what mbatchd showed of them, by the same code.

use super::super::bhist::files::{self, Damage, Only, Range};
use super::super::bhist::lines::concerns;
use super::listing::{Listing, operand};
use lsf::batch::past_jobs::past_rows;
use lsf::cli::site::LocalSite;
use lsf::conf::load::load_lenient;
use lsf::lang::jobname::JobName;
use lsf::log::codec::{read_brief, read_finish};
use lsf::model::event::{Event, Finish, JobNew, JobStart, JobStatus, Record};
use lsf::model::job::Usage;
use lsf::proto::client::{IdSel, Which};
use lsf::sys::files::RealFiles;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of logs that are read at most, newest first.
const MOST_READ: u64 = 2 << 30;

/// Records by job, oldest first.
type RecordsByJob = BTreeMap<u32, Vec<Record>>;

/// Prints the jobs that the master did not know and the logs do; the notices about them, for
/// stderr.
pub fn fill(out: &mut dyn Write, site: &LocalSite, listing: &mut Listing, now: i64) -> String {
    let gone = listing.unanswered();
    if gone.is_empty() {
        return String::new();
    }
    let Some(conf) = load_lenient(&RealFiles, &site.envdir, Some(&site.host)).0 else {
        return String::new();
    };
    let Some(dir) = conf.base.lsf.batch_logdir(&conf.base.name) else { return String::new() };
    let found = search(Path::new(&dir), &gone);
    if found.is_empty() {
        return String::new();
    }
    let mut query = listing.query();
    query.select.ids.clone_from(&gone);
    query.which = Which { done: true, ..Which::default() };
    let records = found.into_values().flatten().collect();
    let rows = past_rows(conf, &site.host, records, &query, now);
    if let Ok(text) = listing.slice(&rows) {
        let _ = out.write_all(text.as_bytes());
    }
    let still = listing.unanswered();
    let mut notices = String::new();
    for sel in gone.iter().filter(|g| !still.contains(g)) {
        let _ = writeln!(
            notices,
            "Job <{}> is no longer in the memory of mbatchd; shown from its history",
            operand(sel)
        );
    }
    notices
}

/// The records of the jobs in the logs of `dir`. A log that contains a job's submission contains
/// all of the job: the records of unfinished jobs are carried into the next log.
pub fn search(dir: &Path, gone: &[IdSel]) -> RecordsByJob {
    let mut wanted: Vec<u32> = gone.iter().map(|s| s.job).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let (mut found, mut room) = (RecordsByJob::new(), MOST_READ);
    let logs = Range::parse("0").map_or(Vec::new(), |all| all.files(dir));
    for path in logs.iter().rev() {
        let Some(file) = open(path, &mut room) else { continue };
        let here = in_log(file, &wanted);
        wanted.retain(|id| !here.contains_key(id));
        found.extend(here);
        if wanted.is_empty() {
            return found;
        }
    }
    let old = (1..).map(|n| dir.join(format!("lsb.acct.{n}"))).take_while(|p| p.exists());
    for path in std::iter::once(dir.join("lsb.acct")).chain(old).collect::<Vec<PathBuf>>() {
        let Some(file) = open(&path, &mut room) else { continue };
        let here = in_accounts(file, &wanted);
        wanted.retain(|id| !here.contains_key(id));
        found.extend(here);
        if wanted.is_empty() {
            break;
        }
    }
    found
}

/// A log, or as much of its end as there is room for.
fn open(path: &Path, room: &mut u64) -> Option<BufReader<File>> {
    let mut file = File::open(path).ok()?;
    let len = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(*room))).ok()?;
    *room = room.saturating_sub(len);
    Some(BufReader::with_capacity(files::BUFFER, file))
}

/// Malformed lines are ignored here; bhist reports them.
fn in_log(file: BufReader<File>, wanted: &[u32]) -> RecordsByJob {
    let mut found = RecordsByJob::new();
    let only = Only::of(wanted.iter().copied());
    let _ = files::records(file, "", &only, &mut Damage::default(), |rec| match &rec.event {
        Event::JobNew(new) if wanted.contains(&new.job) => {
            found.insert(new.job, vec![rec.clone()]);
        }
        event => {
            let of = concerns(event).and_then(|at| found.get_mut(&at.job));
            of.into_iter().for_each(|records| records.push(rec.clone()));
        }
    });
    found
}

fn in_accounts(file: BufReader<File>, wanted: &[u32]) -> RecordsByJob {
    let mut found = RecordsByJob::new();
    let only = Only::of(wanted.iter().copied());
    let _ = files::lines(file, "", &mut Damage::default(), &mut |line| {
        let this = only.may_be(line) && read_brief(line, &|b| wanted.contains(&b.job))?.is_some();
        if this {
            let fin = read_finish(line)?;
            let records = found.entry(fin.at.job).or_default();
            let known = records.first().is_some_and(
                |r| matches!(&r.event, Event::JobNew(new) if new.submit_time == fin.submit_time),
            );
            if !known {
                records.clear();
                records.push(submission(&fin));
            }
            life(records, fin);
        }
        Ok(())
    });
    found
}

/// The JOB_NEW that a JOB_FINISH tells of.
fn submission(fin: &Finish) -> Record {
    let mut spec = fin.spec.clone();
    let listed = JobName::parse(&spec.name)
        .is_ok_and(|n| n.array.is_some_and(|list| list.contains(fin.at.idx)));
    if fin.at.idx != 0 && !listed {
        spec.name = format!("{}[{}]", spec.name, fin.at.idx);
    }
    let new = JobNew {
        job: fin.at.job,
        uid: fin.uid,
        user: fin.user.clone(),
        submit_time: fin.submit_time,
        spec: spec.into(),
        ..JobNew::default()
    };
    Record { time: fin.submit_time, event: Event::JobNew(Box::new(new)) }
}

/// The JOB_START and JOB_STATUS that a JOB_FINISH tells of.
fn life(records: &mut Vec<Record>, fin: Finish) {
    let attempt = if fin.start_time > 0 { fin.attempt.max(1) } else { 0 };
    if fin.start_time > 0 {
        let start = JobStart {
            short_hosts: false,
            at: fin.at,
            attempt,
            hosts: fin.exec_hosts.into_iter().map(|(h, n)| (h.into(), n)).collect(),
            host_factor: fin.host_factor,
            eff_res_req: fin.eff_res_req.into(),
            slice: 0,
            forced: Default::default(),
            boot: Arc::default(),
            account: Arc::default(),
            affinity: Arc::default(),
            placed: None,
        };
        records.push(Record { time: fin.start_time, event: Event::JobStart(Box::new(start)) });
    }
    let status = JobStatus {
        at: fin.at,
        status: fin.status,
        end_time: fin.event_time,
        cpu: fin.usage.as_ref().map_or(0.0, Usage::cpu_secs),
        usage: fin.usage,
        exit_status: fin.exit_status,
        exit_info: fin.exit_info,
        attempt,
        unknown_end: fin.unknown_end,
        ..JobStatus::default()
    };
    records.push(Record { time: fin.event_time, event: Event::JobStatus(Box::new(status)) });
}

#[cfg(test)]
mod tests {
    use super::super::tests::T;
    use super::*;
    use lsf::log::codec::{write_finish, write_record};
    use lsf::model::JobRef;
    use lsf::model::event::{Event, Finish, JobNew, Record};
    use lsf::model::job_state::JobState;

    /// A directory of logs: job 7 in the current one and, as another job, in the one before; 8 in
    /// the one before; 9, and element 2 of 10, in lsb.acct alone; 11 nowhere.
    fn logs(dir: &Path) {
        let new = |job, queue: &str, time| {
            let spec = lsf::model::job::JobSpec { queue: queue.into(), ..Default::default() };
            let new = JobNew { job, submit_time: time, spec: spec.into(), ..JobNew::default() };
            Record { time, event: Event::JobNew(Box::new(new)) }
        };
        let clean =
            |job, time| Record { time, event: Event::JobClean { at: JobRef { job, idx: 0 } } };
        let write = |name: &str, records: &[Record]| {
            let mut text = b"#80\n".to_vec();
            records.iter().for_each(|r| write_record(r, &mut text));
            std::fs::write(dir.join(name), text).unwrap();
        };
        write("lsb.events", &[new(7, "short", T), new(12, "short", T), clean(7, T + 9)]);
        write("lsb.events.1", &[new(7, "long", T - 99), new(8, "long", T - 99), clean(8, T - 9)]);
        let mut text = Vec::new();
        for (job, idx, name) in [(7, 0, ""), (9, 0, ""), (10, 1, "a[1-3]"), (10, 2, "a[1-3]")] {
            let spec = lsf::model::job::JobSpec { name: name.into(), ..Default::default() };
            let fin = Finish {
                at: JobRef { job, idx },
                event_time: T,
                submit_time: T - 9,
                start_time: T - 5,
                status: JobState::Done.into(),
                spec,
                ..Finish::default()
            };
            write_finish(&fin, &mut text);
        }
        std::fs::write(dir.join("lsb.acct"), text).unwrap();
    }

    #[test]
    fn cleaned_jobs_are_found_in_the_logs() {
        let dir = std::env::temp_dir().join(format!("lsf-bjobs-past-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        logs(&dir);
        let ids = [7, 8, 9, 10, 11].map(|job| lsf::proto::client::IdSel { job, elems: vec![] });
        let found = search(&dir, &ids);
        std::fs::remove_dir_all(&dir).unwrap();
        assert_eq!(found.keys().copied().collect::<Vec<_>>(), [7, 8, 9, 10]);
        let count = |id| found[&id].len();
        // JOB_NEW alone, twice; JOB_NEW, JOB_START and JOB_STATUS; these of both elements.
        assert_eq!([7, 8, 9, 10].map(count), [1, 1, 3, 5]);
        let Event::JobNew(seven) = &found[&7][0].event else { panic!() };
        assert_eq!(seven.spec.queue, "short");
    }
}
