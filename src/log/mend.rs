//! Puts lsb.events in order again whose records do not lie where they were written (`recover`):
//! with the first commit the records that are whole go into a new file in their order, with that
//! commit behind them, and the files change their names. The damaged log and its checksum file are
//! kept as lsb.events.damaged (damaged.2, ...) for whoever wants to look at them.
//!
//! The damaged log stays as it is until that commit, so that a start that ends before finds the
//! same damage; the commit itself holds what follows from it (LSF_HOLD, closed queues and hosts). A
//! crash at any step recovers ([`finish_interrupted`]): as long as the new file has its own name,
//! it is thrown away; once it has not, it is whole and durable. The names are changed as a switch
//! changes them, so that a run that has lost the log takes no name away.

use super::checksums::{ChecksumEntry, ChecksumHead};
use super::disk::{Disk, PUBLIC, Tail, exists, read_full, remove};
use super::fail::{Fail, fatal, said};
use super::log_files::LogFiles;
use super::owner;
use super::record_walk::{HEAD, head_line};
use super::switch_names::{discard, same, sum_of};
use super::{EVENTS, EVENTS_SUM};
use std::io;

/// The new file: the run's word follows.
const NEW: &str = "lsb.events.mended";
const DAMAGED: &str = "lsb.events.damaged";

/// Bytes copied at a time.
const CHUNK: usize = 1 << 20;
/// Damaged logs kept, beyond which the last is written over.
const MAX_KEPT: u32 = 1000;

/// A line that is kept, and where it lies.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    pub at: u64,
    /// The checksum entry of the line; the place in the entry is not used.
    pub entry: ChecksumEntry,
}

/// The plan by which a log is rewritten in order.
#[derive(Clone, Debug, Default)]
pub struct Mend {
    /// The head line that replaces a damaged one.
    pub head: Option<Vec<u8>>,
    /// The end of the part in which no record has moved; `before` are its entries.
    pub kept: u64,
    pub before: Vec<ChecksumEntry>,
    /// The records behind it, in this order.
    pub pieces: Vec<Piece>,
}

/// The file that is made.
struct Making {
    new: Tail,
    sum: Tail,
    out: Vec<u8>,
    out_sum: Vec<u8>,
}

impl Mend {
    /// Makes records durable in a rewritten log, which replaces the damaged one.
    pub(super) fn commit<D: Disk>(
        &self,
        files: &mut LogFiles<D>,
        head: ChecksumHead,
        events: &[u8],
        entries: &[ChecksumEntry],
    ) -> Result<(), Fail> {
        let name = format!("{NEW}.{}", files.run());
        discard(&mut files.disk, &name).map_err(said(NEW))?;
        let new = files.disk.open(&name, Some(PUBLIC)).map_err(said(NEW))?;
        let sum = files.disk.open(&sum_of(&name), Some(PUBLIC)).map_err(said(NEW))?;
        let tail = |file| Tail { file, len: 0 };
        let (new, sum) = (tail(new), tail(sum));
        let mut m = Making { new, sum, out: Vec::new(), out_sum: head.put() };
        let made = files.check_owner_now().and_then(|()| self.make(files, events, entries, &mut m));
        if let Err(fail) = made.and_then(|()| files.check_owner_now()) {
            files.disk.close(m.new.file);
            files.disk.close(m.sum.file);
            // what cannot be removed now is with the next commit, or at the next start
            let _ = discard(&mut files.disk, &name);
            return Err(fail);
        }
        change_names(&mut files.disk, &name).map_err(fatal(EVENTS))?;
        files.disk.close(files.events.file);
        files.disk.close(files.sum.file);
        (files.events, files.sum) = (m.new, m.sum);
        Ok(())
    }

    fn make<D: Disk>(
        &self,
        files: &mut LogFiles<D>,
        events: &[u8],
        entries: &[ChecksumEntry],
        m: &mut Making,
    ) -> Result<(), Fail> {
        let from = match &self.head {
            Some(head) => {
                m.out.extend_from_slice(head);
                head.len() as u64
            }
            None => 0,
        };
        m.copy(files, from, self.kept.saturating_sub(from))?;
        if m.out.is_empty() && m.new.len == 0 {
            m.out = head_line(HEAD as i64);
        }
        self.before.iter().for_each(|entry| entry.put(&mut m.out_sum));
        let mut pieces = self.pieces.iter().peekable();
        while let Some(first) = pieces.next() {
            // lines that lie one behind the other are copied together
            let (mut len, mut at) = (0, m.new.len + m.out.len() as u64);
            let mut piece = Some(first);
            while let Some(Piece { entry, .. }) = piece {
                ChecksumEntry { at, ..*entry }.put(&mut m.out_sum);
                at += u64::from(entry.len);
                len += u64::from(entry.len);
                piece = pieces.next_if(|p| p.at == first.at + len);
            }
            m.copy(files, first.at, len)?;
        }
        let base = m.new.len + m.out.len() as u64;
        entries.iter().for_each(|e| ChecksumEntry { at: e.at + base, ..*e }.put(&mut m.out_sum));
        m.out.extend_from_slice(events);
        m.flush(files)?;
        files.disk.sync(m.new.file).map_err(said(NEW))?;
        files.disk.sync(m.sum.file).map_err(said(NEW))?;
        files.disk.sync_dir("").map_err(said("the log directory"))
    }
}

impl Making {
    /// Copies bytes of the damaged log.
    fn copy<D: Disk>(
        &mut self,
        files: &mut LogFiles<D>,
        mut at: u64,
        mut len: u64,
    ) -> Result<(), Fail> {
        while len > 0 {
            let (from, want) = (self.out.len(), len.min(CHUNK as u64) as usize);
            self.out.resize(from + want, 0);
            let got = read_full(&mut files.disk, files.events.file, at, &mut self.out[from..]);
            if got.map_err(said(EVENTS))? < want {
                return Err(Fail::Fatal(format!("{EVENTS}: shorter than it was")));
            }
            (at, len) = (at + want as u64, len - want as u64);
            if self.out.len() >= CHUNK {
                self.flush(files)?;
            }
        }
        if self.out_sum.len() >= CHUNK { self.flush(files) } else { Ok(()) }
    }

    fn flush<D: Disk>(&mut self, files: &mut LogFiles<D>) -> Result<(), Fail> {
        let put = |disk: &mut D, tail: &mut Tail, out: &mut Vec<u8>| {
            disk.write_at(tail.file, tail.len, out)?;
            tail.len += out.len() as u64;
            out.clear();
            io::Result::Ok(())
        };
        put(&mut files.disk, &mut self.new, &mut self.out).map_err(said(NEW))?;
        put(&mut files.disk, &mut self.sum, &mut self.out_sum).map_err(said(NEW))
    }
}

fn name_of(number: u32) -> String {
    if number == 1 { DAMAGED.to_string() } else { format!("{DAMAGED}.{number}") }
}

/// The damaged log gets a second name, and the new one its own; each step is durable before the
/// next.
fn change_names(disk: &mut dyn Disk, new: &str) -> io::Result<()> {
    let names = disk.list("")?;
    let free = (1..MAX_KEPT).find(|n| !names.contains(&name_of(*n))).unwrap_or(MAX_KEPT);
    let damaged = name_of(free);
    if exists(disk, EVENTS_SUM)? {
        remove(disk, &sum_of(&damaged))?;
        // it is of use to whoever looks at the damage, no more
        let _ = disk.link(EVENTS_SUM, &sum_of(&damaged));
    }
    if disk.link(EVENTS, &damaged).is_err() {
        // no second names here, or all are taken
        disk.rename(EVENTS, &damaged)?;
    }
    disk.sync_dir("")?;
    settle(disk, new)
}

/// The rest of the work once the damaged log has its second name.
fn settle(disk: &mut dyn Disk, new: &str) -> io::Result<()> {
    match disk.rename(new, EVENTS) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(owner::taken()),
        done => done?,
    }
    disk.sync_dir("")?;
    disk.rename(&sum_of(new), EVENTS_SUM)?;
    disk.sync_dir("")
}

/// Completes what a crash interrupted, or takes it back; says so in words. The log must be claimed.
pub fn finish_interrupted(disk: &mut dyn Disk) -> io::Result<Option<String>> {
    let mut told = None;
    let mut names = disk.list("")?;
    names.retain(|name| name.starts_with(NEW));
    names.iter_mut().for_each(|name| name.truncate(name.trim_end_matches(".sum").len()));
    names.dedup();
    for new in names {
        let completed = match exists(disk, EVENTS)? {
            true if discard(disk, &new)? => false,
            true => {
                disk.rename(&sum_of(&new), EVENTS_SUM)?;
                disk.sync_dir("")?;
                true
            }
            false if exists(disk, &new)? && exists(disk, &sum_of(&new))? => {
                settle(disk, &new)?;
                true
            }
            false => {
                discard(disk, &new)?;
                false
            }
        };
        told = Some(match completed {
            true => format!("{EVENTS} was put in order; the damaged one is {DAMAGED}"),
            false => format!("putting {EVENTS} in order was interrupted: begun again"),
        });
    }
    // the second name that a log got which was not put in order
    for name in disk.list("")?.iter().filter(|name| name.starts_with(DAMAGED)) {
        let first = if name.ends_with(".sum") { EVENTS_SUM } else { EVENTS };
        if same(disk, first, name)? {
            remove(disk, name)?;
        }
    }
    Ok(told)
}
