//! Compares the bytes in the spool that unfinished jobs refer to with the checksums of the spool,
//! at the end of the pass.

use super::super::disk::Disk;
use super::super::spool;
use super::found::{RecoverError, RecoveryNotice, failed};
use super::scan::{LogScan, Track};
use crate::model::event::Event;
use crate::model::job::SpoolRef;
use std::collections::{BTreeMap, BTreeSet};

impl LogScan {
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
                self.notices.push(RecoveryNotice { level: log::Level::Error, text });
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
