//! A master of the simulation of duplicate logging: its open log, and the jobs that it logs.

use super::duplicate_model::{DuplicateModel, RecordKey, keys, next_job, script_of};
use super::rng::Rng;
use crate::batch::Recovered;
use crate::log::batch::Batch;
use crate::log::duplicate::{lacking, takeover};
use crate::log::owner::{Owner, Read};
use crate::log::recover::{Params, recover};
use crate::log::simdisk::SimDisk;
use crate::log::spool::SpoolReader;
use crate::log::store::Store;
use crate::log::switch::SwitchOrder;
use crate::model::JobRef;
use crate::model::event::{Event, JobNew, JobStart, JobStatus, Record};
use crate::model::job::{JobSpec, SpoolRef};
use crate::model::job_state::JobState;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Why a log was not opened.
pub(super) struct OpenError(pub String);

/// A master that runs.
pub(super) struct Master {
    pub store: Store<SimDisk>,
    /// How far each job has come: 1 submitted, 2 started, 3 ended.
    jobs: BTreeMap<u32, u8>,
    next_job: u32,
    epoch: u64,
    spool: (u32, u64),
}

fn opened(
    disk: &mut SimDisk,
    me: &Owner,
    least_epoch: u64,
) -> Result<(Recovered, Store<SimDisk>), OpenError> {
    let failed = |e: &dyn std::fmt::Display| OpenError(e.to_string());
    let Owner { host, boot, run, process, .. } = me.clone();
    // the earlier run on a host has ended
    let ended = matches!(Owner::read(disk), Ok(Read::Is(before)) if before.host == host);
    let now = 1_900_000_000;
    let max_acct_at_start = crate::log::acct_copy::MAX_AT_START;
    let params = Params { host, boot, now, run, process, ended, least_epoch, max_acct_at_start };
    let mut found = recover(disk, &params).map_err(|e| failed(&e))?;
    let plan = std::mem::take(&mut found.plan);
    let store = Store::open(disk.clone(), plan).map_err(|e| failed(&e))?;
    Ok((found.recovered, store))
}

/// Opens the primary log, with the jobs that the copy lacked.
pub(super) fn open_primary(
    disk: &mut SimDisk,
    me: &Owner,
    tell: &mut dyn FnMut(&str),
) -> Result<(Recovered, Master), OpenError> {
    loop {
        let (found, mut store) = opened(disk, me, 0)?;
        let back = lacking::bring_back(&mut store, &found, tell);
        if !back.map_err(|e| OpenError(e.to_string()))? {
            let master = Master::new(disk, store, &found)?;
            return Ok((found, master));
        }
        store.close();
    }
}

/// Opens the shared log; a copy becomes this host's log, of which the words are returned.
pub(super) fn open_shared(
    disk: &mut SimDisk,
    me: &Owner,
) -> Result<(Recovered, Master, String), OpenError> {
    let now = 1_900_000_000;
    let note = takeover::look(disk, now).map_err(|e| OpenError(e.to_string()))?;
    let (mut found, mut store) = opened(disk, me, note.as_ref().map_or(0, |(_, epoch)| *epoch))?;
    let mut told = String::new();
    if let Some((note, _)) = &note {
        let took = takeover::take(&mut store, &mut found, note, &me.host, now);
        told = took.map_err(|e| OpenError(e.to_string()))?;
    }
    let master = Master::new(disk, store, &found)?;
    Ok((found, master, told))
}

impl Master {
    fn new(
        disk: &mut SimDisk,
        store: Store<SimDisk>,
        found: &Recovered,
    ) -> Result<Master, OpenError> {
        let mut jobs: BTreeMap<u32, u8> = BTreeMap::new();
        keys(found).into_iter().for_each(|(job, _)| *jobs.entry(job).or_default() += 1);
        let mut reader = SpoolReader::default();
        for record in &found.records {
            if let Event::JobNew(new) = &record.event {
                let right = reader.read(disk, new.script).is_ok_and(|b| b == script_of(new.job));
                if !right {
                    return Err(OpenError(format!("the script of job <{}> is lost", new.job)));
                }
            }
        }
        reader.forget(disk);
        if let Some((at, why)) = found.damaged.first() {
            return Err(OpenError(format!("job <{at}> is held: {why}")));
        }
        let (next_job, epoch) = (next_job(found), found.epoch);
        Ok(Master { store, jobs, next_job, epoch, spool: (found.spool, found.spool_end) })
    }

    /// Logs a few records; their keys, and whether they were acknowledged.
    pub(super) fn commit(
        &mut self,
        rng: &mut Rng,
        model: &mut DuplicateModel,
    ) -> (Vec<RecordKey>, bool) {
        let (mut batch, mut made) = (Batch::default(), Vec::new());
        for _ in 0..1 + rng.below(3) {
            let open: Vec<u32> =
                self.jobs.iter().filter(|(_, step)| **step < 3).map(|(job, _)| *job).collect();
            let job = match open.is_empty() || rng.chance(0.4) {
                true => self.next_job,
                false => open[rng.below(open.len() as u64) as usize],
            };
            let event = self.event(job, &mut batch);
            let time = model.next_time(rng);
            batch.append(&Record { time, event });
            made.push((job, time));
        }
        let done = self.store.commit(&batch, 0, &mut |_| {});
        (made, done.is_ok())
    }

    /// The next event of a job.
    fn event(&mut self, job: u32, batch: &mut Batch) -> Event {
        let at = JobRef { job, idx: 0 };
        let step = self.jobs.entry(job).or_default();
        *step += 1;
        match *step {
            1 => {
                self.next_job = job + 1;
                let bytes = script_of(job);
                let len = bytes.len() as u32;
                let script = SpoolRef { spool: self.spool.0, at: self.spool.1, len };
                self.spool.1 += u64::from(len);
                batch.spool(script, &bytes);
                let (queue, command) = ("normal".into(), "true".into());
                let spec =
                    JobSpec { queue, command, min_slots: 1, max_slots: 1, ..JobSpec::default() };
                let (user, spec) = ("ann".into(), Arc::new(spec));
                let new = JobNew { job, user, spec, script, uid: 1000, ..JobNew::default() };
                Event::JobNew(Box::new(new))
            }
            2 => {
                let hosts = vec![("host1".into(), 1)].into();
                let start = JobStart { at, attempt: 1, hosts, ..JobStart::default() };
                Event::JobStart(Box::new(start))
            }
            _ => {
                let status = JobState::Done.into();
                let status = JobStatus { at, status, attempt: 1, ..JobStatus::default() };
                Event::JobStatus(Box::new(status))
            }
        }
    }

    /// Begins a new lsb.events.
    pub(super) fn switch(&mut self, time: i64) -> Result<(), String> {
        self.spool = (self.spool.0 + 1, 0);
        let event = Event::Carried { next_job: self.next_job, epoch: self.epoch };
        let order = SwitchOrder {
            live: self.jobs.keys().copied().collect(),
            head: vec![Record { time, event }],
            spool: self.spool.0,
            oldest_spool: 0,
        };
        let failed = |e: crate::log::fail::Fail| format!("a switch failed: {e}");
        self.store.begin_switch(order).map_err(failed)?;
        while !self.store.switch_slice().map_err(failed)? {}
        Ok(())
    }
}
