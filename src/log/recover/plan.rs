//! The conclusions from the whole log that was read: which jobs are held, what `Store::open` must
//! mend, what the administrator is told. No line of the log is looked at here.

use super::super::checksums::{self, ChecksumEntry};
use super::super::disk::Disk;
use super::super::mend::Mend;
use super::super::record_walk::{HEAD, RecordWalker, Rest, head_line};
use super::super::{EVENTS, EVENTS_SUM, spool};
use super::found::{RecoverError, RecoveryNotice, RecoveryPlan, RecoveryResult, failed};
use super::scan::{LogScan, Track};
use crate::batch::Recovered;
use crate::model::JobRef;
use crate::model::event::{Event, Record};
use std::collections::BTreeSet;

/// Lost records told one by one in a notice.
const TOLD: usize = 20;

impl LogScan {
    /// The result, and the indices of its records that ended a job, ascending.
    pub(super) fn finish(
        mut self,
        disk: &mut dyn Disk,
    ) -> Result<(RecoveryResult, Vec<usize>), RecoverError> {
        self.check_spool(disk)?;
        self.tell();
        self.spool.reader.forget(disk);
        let mut recovered =
            Recovered { damaged: self.incomplete(), epoch: self.epoch, ..Recovered::default() };
        recovered.controls = self.controls.take();
        if !self.carried {
            self.carry_from_old_logs(disk)?;
        }
        let newest_file = spool::list(disk).map_err(failed("info"))?.pop().unwrap_or(0);
        let begun = self.sums.head.map_or(1, |head| head.spool);
        let known = self.spool.seen.0.max(begun);
        // one that nothing refers to may be another run's: it is left alone
        let spool = if newest_file > known { newest_file + 1 } else { known };
        let len = self.spool.reader.len(disk, spool).map_err(failed("info"))?;
        self.spool.reader.forget(disk);
        let seen = if self.spool.seen.0 == spool { self.spool.seen.1 } else { 0 };
        (recovered.spool, recovered.spool_end) = (spool, len.max(seen));
        self.ids.sort_unstable();
        self.ids.dedup();
        self.ids.retain(|id| *id != 0);
        recovered.seen_ids = std::mem::take(&mut self.ids);
        recovered.records = std::mem::take(&mut self.records);
        let mut plan = self.plan(disk)?;
        plan.spool_file = newest_file;
        if let Some(file) = self.file {
            disk.close(file);
        }
        Ok((RecoveryResult { recovered, notices: self.notices, plan }, self.finishes))
    }

    fn plan(&mut self, disk: &mut dyn Disk) -> Result<RecoveryPlan, RecoverError> {
        if let Some(mend) = self.mend() {
            return Ok(RecoveryPlan {
                end: self.file_len,
                sum_head: self.sums.head,
                // nothing is touched before the first commit
                stale: true,
                sum_len: self.sums.len.max(checksums::ENTRY as u64),
                same_boot: self.same_boot,
                spooled: std::mem::take(&mut self.spooled),
                newest: self.times.newest,
                mend: Some(Box::new(mend)),
                ..RecoveryPlan::default()
            });
        }
        let no_head = self.head_len == 0 && self.file_len < HEAD && self.headish(disk)?;
        let cut = [self.cut_from, self.stump].into_iter().flatten().min();
        let end = if no_head { 0 } else { cut.unwrap_or(self.file_len) };
        // entries of what is behind the end must not cover what will be written there
        let entries = self.walker.as_ref().map_or(&[][..], RecordWalker::entries);
        let stale = entries.last().is_some_and(|last| last.end() > end);
        let sum_len = if stale {
            checksums::len_below(disk, EVENTS_SUM, end).map_err(failed(EVENTS_SUM))?
        } else {
            self.sums.len
        };
        self.backfill.retain(|e| e.end() <= end);
        Ok(RecoveryPlan {
            end,
            cut: (self.file_len > end).then_some(self.file_len),
            save_cut: self.save_cut,
            write_head: end == 0 || self.bad_head,
            end_line: end > 0 && self.last_byte(disk, end)? != b'\n',
            new: end == 0 && self.covered == 0,
            sum_head: self.sums.head,
            sum_len: sum_len.max(checksums::ENTRY as u64),
            stale,
            backfill: std::mem::take(&mut self.backfill),
            covered: self.covered.min(end),
            same_boot: self.same_boot,
            spooled: std::mem::take(&mut self.spooled),
            newest: self.times.newest,
            ..RecoveryPlan::default()
        })
    }

    /// The plan for a log whose records do not lie where they were written.
    fn mend(&mut self) -> Option<Mend> {
        let walker = self.walker.as_ref()?;
        let moved = walker.moved()?;
        let head = self.bad_head.then(|| head_line(self.head_pos.max(HEAD) as i64));
        let before = walker.entries()[..moved.first].to_vec();
        let pieces = std::mem::take(&mut self.pieces);
        Some(Mend { head, kept: moved.kept, before, pieces })
    }

    /// Is what little there is the beginning of a head line?
    fn headish(&mut self, disk: &mut dyn Disk) -> Result<bool, RecoverError> {
        Ok(self.file_len == 0 || matches!(self.last_byte(disk, 1)?, b'#' | 0))
    }

    /// The byte before a place.
    fn last_byte(&mut self, disk: &mut dyn Disk, end: u64) -> Result<u8, RecoverError> {
        let mut byte = [b'\n'];
        if let Some(file) = self.file {
            disk.read_at(file, end.saturating_sub(1), &mut byte).map_err(failed(EVENTS))?;
        }
        Ok(byte[0])
    }

    /// Jobs with incomplete history that no LSF_HOLD behind the damage has marked yet. Jobs that
    /// have ended and were not put back to their queue are complete enough.
    fn incomplete(&mut self) -> Vec<(JobRef, String)> {
        let mut hurt = Vec::new();
        for (job, trouble) in &mut self.troubles {
            // An ended job whose record is lost is held too: it may be requeued, and a switch of
            // the log finds the same damage and holds it.
            let asked = |track: &Track| !track.over || trouble.record_lost;
            if self.jobs.get(job).is_some_and(asked)
                && let Some((at, why)) = trouble.hurt.take()
                && trouble.held <= at
            {
                hurt.push((*job, why));
            }
        }
        if let Some((at, why)) = self.unknown.take() {
            let told: BTreeSet<u32> = hurt.iter().map(|(job, _)| *job).collect();
            let held = |job| self.troubles.get(job).map_or(0, |trouble| trouble.held);
            let there = self.jobs.iter().filter(|(_, track)| !track.over && track.new_at < at);
            let more = there.filter(|(job, _)| !told.contains(job) && held(job) <= at);
            hurt.extend(more.map(|(job, _)| (*job, why.clone())));
        }
        let mut out: Vec<(JobRef, String)> =
            hurt.into_iter().map(|(job, why)| (JobRef { job, idx: 0 }, why)).collect();
        out.sort_unstable();
        out
    }

    /// A log that does not begin with LSF_SWITCHED though older ones exist lost the numbers that
    /// must not go back: the highest job ID of the newest old log takes their place.
    fn carry_from_old_logs(&mut self, disk: &mut dyn Disk) -> Result<(), RecoverError> {
        let old = checksums::read(disk, &format!("{EVENTS}.1.sum")).map_err(failed(EVENTS_SUM))?;
        let Some(last) = old.entries.iter().map(|e| e.job.job).max() else { return Ok(()) };
        let text =
            format!("{EVENTS} has no LSF_SWITCHED: job IDs continue after those of {EVENTS}.1");
        self.warn(text);
        let event = Event::Carried { next_job: last.saturating_add(1), epoch: self.epoch };
        self.records.insert(0, Record { time: self.times.newest, event });
        self.finishes.iter_mut().for_each(|index| *index += 1);
        Ok(())
    }

    fn tell(&mut self) {
        let level = log::Level::Error;
        self.tell_moved();
        for d in std::mem::take(&mut self.damage) {
            let mut text = match d.file.1 > d.file.0 {
                true => format!("{EVENTS}: damage in bytes {}-{}", d.file.0, d.file.1 - 1),
                false => format!("{EVENTS}: damage at byte {}", d.file.0),
            };
            text.push_str(&format!(" ({})", d.why));
            let lost: Vec<String> = d.lost.iter().take(TOLD).map(told).collect();
            match lost.is_empty() {
                true => text.push_str("; which records were lost is not known"),
                false => text.push_str(&format!("; lost: {}", lost.join(", "))),
            }
            if d.lost.len() > TOLD {
                text.push_str(&format!(" and {} more", d.lost.len() - TOLD));
            }
            self.notices.push(RecoveryNotice { level, text });
        }
        if let Some(from) = self.cut_from {
            let (to, why) = (self.file_len, self.doubtful.first().map_or("", |d| &d.why));
            let text = format!(
                "{EVENTS}: the last {} bytes, from byte {from}, are not whole ({why}) and are cut",
                to - from
            );
            self.notices.push(RecoveryNotice { level: log::Level::Warn, text });
        }
        if self.sums.bad > 0 || self.sums.present && self.sums.head.is_none() {
            let n = self.sums.bad;
            self.warn(format!("{EVENTS_SUM}: its head or {n} of its entries are damaged"));
        }
        if !self.sums.present && !self.records.is_empty() {
            self.warn(format!("{EVENTS_SUM} is missing: {EVENTS} is read without checksums"));
        }
        for (name, n) in std::mem::take(&mut self.foreign) {
            self.warn(format!("{EVENTS}: {n} records {name} are not acted upon"));
        }
    }
}

impl LogScan {
    /// Records that do not lie where they were written, and bytes that are none.
    fn tell_moved(&mut self) {
        let Some(moved) = self.walker.as_ref().and_then(RecordWalker::moved) else { return };
        let (level, kept) = (log::Level::Error, moved.kept);
        let mut out = vec![format!(
            "{EVENTS}: from byte {kept} on records do not lie where they were written; those that \
             are whole are kept, in their order"
        )];
        let within = |rest: &Rest| self.damage.iter().any(|d| d.file == (rest.from, rest.to));
        for rest in moved.rests.iter().filter(|rest| !within(rest)).take(TOLD) {
            let what = match rest.repeated {
                true => "repeat records that stand elsewhere",
                false => "are no record",
            };
            let (from, to) = (rest.from, rest.to - 1);
            out.push(format!("{EVENTS}: bytes {from}-{to} {what}: ignored"));
        }
        self.notices.extend(out.into_iter().map(|text| RecoveryNotice { level, text }));
    }
}

fn told(e: &ChecksumEntry) -> String {
    match e.job.job {
        0 => e.name().to_string(),
        _ => format!("{} of job <{}>", e.name(), e.job),
    }
}
