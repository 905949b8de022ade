//! Bytes in the spool that records refer to: read with them, and compared with the checksums of the
//! spool at the end.

use super::super::codec::read_exact_spec;
use super::super::disk::Disk;
use super::super::spool;
use super::scan::{Scan, Track};
use super::{Notice, RecoverError, failed};
use crate::model::event::Event;
use crate::model::job::{JobSpec, SpoolRef};
use std::collections::{BTreeMap, BTreeSet};

impl Scan {
    /// Checks what a submission has in the spool; returns its exact text where there is one, or
    /// what is lost.
    pub(super) fn spooled(
        &mut self,
        disk: &mut dyn Disk,
        places: &[SpoolRef],
        exact: SpoolRef,
    ) -> Result<Option<JobSpec>, String> {
        for at in places.iter().filter(|at| at.len > 0) {
            let end = at.at.saturating_add(u64::from(at.len));
            self.spool_seen = self.spool_seen.max((at.spool, end));
        }
        for &at in places {
            if !self.spool.holds(disk, at).unwrap_or(false) {
                return Err(format!("{} is missing or too short", spool::name(at.spool)));
            }
        }
        if exact == SpoolRef::default() {
            return Ok(None);
        }
        let bytes = self.spool.read(disk, exact).map_err(|e| e.to_string());
        let spec = bytes.and_then(|b| read_exact_spec(&b).map_err(|e| e.to_string()));
        spec.map(Some).map_err(|e| format!("{}: {e}", spool::name(exact.spool)))
    }

    /// Gives each place in the spool that an unfinished job has to `each`; one that the record
    /// before has too is given once, where `all` is not asked for.
    fn places(&self, all: bool, each: &mut dyn FnMut(u32, SpoolRef)) {
        let mut last = SpoolRef::default();
        for (i, record) in self.records.iter().enumerate() {
            let (job, places) = match &record.event {
                Event::JobNew(new) => (new.job, [new.env, new.script, new.exact]),
                Event::JobModify(m) => (m.job, [m.env, m.script, m.exact]),
                _ => continue,
            };
            if places.iter().all(|at| at.len == 0 || !all && *at == last) {
                continue;
            }
            let is_new = matches!(record.event, Event::JobNew(_));
            let open = |t: &Track| !t.over && if is_new { t.new == i } else { t.new <= i };
            if self.jobs.get(&job).is_some_and(open) {
                for at in places.into_iter().filter(|at| at.len > 0) {
                    each(job, at);
                    last = at;
                }
            }
        }
    }

    /// Compares what unfinished jobs have in the spool with its checksums.
    pub(super) fn check_spool(&mut self, disk: &mut dyn Disk) -> Result<(), RecoverError> {
        let mut places: BTreeMap<u32, BTreeSet<(u64, u32)>> = BTreeMap::new();
        self.places(false, &mut |_, at| {
            places.entry(at.spool).or_default().insert((at.at, at.len));
        });
        for (number, places) in places {
            let name = spool::name(number);
            let bad = spool::damaged(disk, number, &places).map_err(failed(&name))?;
            for &(at, len) in &bad {
                let text = format!("{name}: damage in bytes {at}-{}", at + u64::from(len) - 1);
                self.notices.push(Notice { level: log::Level::Error, text });
            }
            if bad.is_empty() {
                continue;
            }
            let hit = |r: &SpoolRef| r.spool == number && bad.contains(&(r.at, r.len));
            let mut hits = Vec::new();
            self.places(true, &mut |job, r| hits.extend(hit(&r).then_some((job, r))));
            for (job, r) in hits {
                let at = self.jobs.get(&job).map_or(0, |track| track.new_at);
                let why = format!("{name} is damaged at byte {}", r.at);
                self.troubles.entry(job).or_default().hurt.get_or_insert((at, why));
            }
        }
        Ok(())
    }
}
