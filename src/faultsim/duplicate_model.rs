//! The model of a duplicate event log: which records each master has acknowledged, which of them a
//! log must have when it is opened, and which must be named as missing.

use super::rng::Rng;
use crate::batch::Recovered;
use crate::log::codec::job_of;
use crate::model::event::Event;
use std::collections::BTreeSet;

/// A record: its job, and its time, which no other has.
pub(super) type RecordKey = (u32, i64);

/// A log as its master knows it.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownLog {
    /// Acknowledged, in their order.
    pub acked: Vec<RecordKey>,
    /// Records of the commit that failed last: a beginning of them may be in the log.
    pub maybe: Vec<RecordKey>,
}

impl KnownLog {
    fn all(&self) -> Vec<RecordKey> {
        self.acked.iter().chain(&self.maybe).copied().collect()
    }

    /// Is this all that was acknowledged, with a beginning of what may be there?
    fn check(&self, found: &[RecordKey], whose: &str) -> Result<(), String> {
        let all = self.all();
        if found.len() < self.acked.len() || !all.starts_with(found) {
            let (n, m) = (found.len(), self.acked.len());
            return Err(format!("{whose} log has {n} records, {m} were acknowledged"));
        }
        Ok(())
    }

    fn become_found(&mut self, found: &[RecordKey]) {
        (self.acked, self.maybe) = (found.to_vec(), Vec::new());
    }
}

/// The log of each master, and whose is the last one.
#[derive(Debug, Default)]
pub(super) struct DuplicateModel {
    pub primary: KnownLog,
    pub shared: KnownLog,
    /// The second master has taken the copy over, when it had so many records.
    pub taken_at: Option<usize>,
    /// Records that the copy has at least.
    pub copied: usize,
    /// Words of the first master on what the copy lacked.
    pub told: Vec<String>,
    /// The clock of records.
    time: i64,
}

/// The records of jobs, in their order.
pub(super) fn keys(found: &Recovered) -> Vec<RecordKey> {
    let of_jobs = found.records.iter().map(|r| (job_of(&r.event).job, r.time));
    of_jobs.filter(|(job, _)| *job != 0).collect()
}

/// Bytes that job `job` has in the spool.
pub(super) fn script_of(job: u32) -> Vec<u8> {
    format!("script of job {job} ").repeat(1 + job as usize % 7).into_bytes()
}

impl DuplicateModel {
    /// A time that no record has.
    pub(super) fn next_time(&mut self, rng: &mut Rng) -> i64 {
        self.time = self.time.max(1_800_000_000) + 1 + rng.below(3) as i64;
        self.time
    }

    /// The first master has opened its log where nobody has taken the copy over.
    pub(super) fn reopened(&mut self, found: &Recovered) -> Result<(), String> {
        let found = keys(found);
        self.primary.check(&found, "the primary")?;
        self.primary.become_found(&found);
        Ok(())
    }

    /// The second master has taken the copy over.
    pub(super) fn taken_over(
        &mut self,
        found: &Recovered,
        told: &str,
        complete: bool,
    ) -> Result<(), String> {
        let keys = keys(found);
        let (n, acked) = (keys.len(), self.primary.acked.len());
        if !self.primary.all().starts_with(&keys) {
            return Err(format!(
                "the copy is not a beginning of the primary log {keys:?} {:?}",
                self.primary
            ));
        }
        if n < self.copied {
            return Err(format!("the copy has {n} records, {} were copied", self.copied));
        }
        if n < acked && (complete || !told.contains("is a copy of the log of host host1")) {
            return Err(format!("the copy lacks {} records, which is not told: {told}", acked - n));
        }
        let known = self.primary.acked.iter().map(|(job, _)| *job).max().unwrap_or(0);
        if !complete && next_job(found) <= known {
            return Err(format!("job ID {known} of the first master is given again"));
        }
        (self.taken_at, self.shared) = (Some(n), KnownLog::default());
        self.shared.become_found(&keys);
        Ok(())
    }

    /// The second master has opened its own log again.
    pub(super) fn reopened_shared(&mut self, found: &Recovered) -> Result<(), String> {
        let found = keys(found);
        self.shared.check(&found, "the shared")?;
        self.shared.become_found(&found);
        Ok(())
    }

    /// The first master is back, and continues from the shared log.
    pub(super) fn taken_back(&mut self, found: &Recovered) -> Result<(), String> {
        let found = keys(found);
        let at = self.taken_at.take().unwrap_or_default();
        let all = self.primary.all();
        let (known, lacked) = all.split_at(at.min(all.len()));
        let known: BTreeSet<u32> = known.iter().map(|(job, _)| *job).collect();
        let acked = self.primary.acked.len().saturating_sub(at);
        let new = |key: &&RecordKey| !known.contains(&key.0);
        let back: Vec<RecordKey> = lacked.iter().filter(new).copied().collect();
        let least = lacked.iter().take(acked).filter(new).count();
        let begins = found.iter().zip(&self.shared.all()).take_while(|(a, b)| a == b).count();
        if begins < self.shared.acked.len() {
            let n = self.shared.acked.len();
            return Err(format!("{begins} of {n} records of the second master are left"));
        }
        let rest = &found[begins..];
        if rest.len() < least || !back.starts_with(rest) {
            return Err(format!("{rest:?} come back, {least} at least of {back:?}"));
        }
        let told = self.told.join("\n");
        for (job, _) in lacked.iter().take(acked) {
            if !told.contains(&format!("<{job}>")) && !told.contains(" more") {
                return Err(format!("the copy lacked records of job <{job}>: not told: {told}"));
            }
        }
        self.told.clear();
        self.copied = begins;
        self.primary.become_found(&found);
        Ok(())
    }
}

/// The ID of the next job.
pub(super) fn next_job(found: &Recovered) -> u32 {
    let carried = found.records.iter().filter_map(|r| match r.event {
        Event::Carried { next_job, .. } => Some(next_job),
        _ => None,
    });
    let seen = found.seen_ids.iter().map(|id| id + 1);
    carried.chain(seen).max().unwrap_or(1).max(1)
}
