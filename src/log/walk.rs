//! Walks over lsb.events from record to record, checked against the checksum entries where there
//! are any, as text where there are none. Nothing is judged here.
//!
//! At the first record that is not where its entry says, the rest of the file is looked through
//! for records that lie elsewhere ([`survey`]). Where there are any, the walk goes on by the order
//! of the entries, wherever the bytes lie; the places it tells are then those that they had.
//!
//! Invariant: every byte from the start to the limit is in exactly one step, or is told by
//! [`Walker::moved`] as no record.

mod survey;

use super::codec::MAX_RECORD;
use super::disk::{Disk, FileId, read_full};
use super::sum::Entry;
use std::io;
pub use survey::{Moved, Rest};

/// Bytes read ahead.
const CHUNK: usize = 1 << 20;

/// What lies at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A record whose checksum is right; its line was handed out.
    Checked(Entry),
    /// A line that no entry covers; it was handed out with its newline.
    Text,
    /// Text that no entry covers and that has no newline; it was handed out.
    Partial,
    /// A line without entry that is too long to be a record.
    Endless,
    /// A record that is not what its entry says.
    Wrong(Entry),
    /// A record that lay wholly or in part behind the end of the file.
    Beyond(Entry),
}

/// One step: the bytes `at .. end`, as the file was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub at: u64,
    pub end: u64,
    pub what: What,
    /// The bytes in the file as it is; of a record that is lost, those that stand in its place.
    pub file: (u64, u64),
}

impl Step {
    fn here(at: u64, end: u64, what: What) -> Step {
        Step { at, end, what, file: (at, end) }
    }
}

/// The walk.
pub struct Walker {
    file: FileId,
    pos: u64,
    limit: u64,
    entries: Vec<Entry>,
    next: usize,
    buf: Vec<u8>,
    /// Place of the buffer's first byte.
    start: u64,
    surveyed: bool,
    /// The entry behind text that was seen to be whole.
    sound: Option<usize>,
    moved: Option<Moved>,
    /// Before the first entry, records that were moved are looked for from here on.
    look_from: u64,
}

impl Walker {
    /// Walks `from .. limit` of an open file. `entries` by place, not overlapping.
    pub fn new(file: FileId, from: u64, limit: u64, entries: Vec<Entry>) -> Walker {
        let next = entries.partition_point(|e| e.at < from);
        Walker {
            file,
            pos: from,
            limit,
            entries,
            next,
            buf: Vec::new(),
            start: 0,
            surveyed: false,
            sound: None,
            moved: None,
            look_from: u64::MAX,
        }
    }

    /// Records that were moved may lie from here on, before the place where the walk begins.
    pub fn look_from(&mut self, place: u64) {
        self.look_from = place;
    }

    /// What was found of records that do not lie where they were written; `None`: every one that
    /// is whole does.
    pub fn moved(&self) -> Option<&Moved> {
        self.moved.as_ref()
    }

    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The next step; the bytes of a readable one replace those in `line`.
    pub fn step(&mut self, disk: &mut dyn Disk, line: &mut Vec<u8>) -> io::Result<Option<Step>> {
        line.clear();
        if self.moved.is_some() {
            return self.moved_step(disk, line);
        }
        let at = self.pos;
        match self.entries.get(self.next).copied() {
            Some(entry) if entry.at == at || at >= self.limit => {
                let what = self.check(disk, entry, line)?;
                if !self.surveyed && !matches!(what, What::Checked(_)) {
                    return self.look_round(disk, line);
                }
                self.next += 1;
                let end = entry.end().min(self.limit).max(at);
                self.pos = end;
                Ok(Some(Step::here(at, end, what)))
            }
            // text is where it was if the record behind it is
            Some(entry) if !self.surveyed && self.sound != Some(self.next) => {
                match self.check(disk, entry, line)? {
                    What::Checked(_) => self.sound = Some(self.next),
                    _ => return self.look_round(disk, line),
                }
                self.step(disk, line)
            }
            Some(entry) => self.text(disk, entry.at.min(self.limit), line).map(Some),
            None if at < self.limit => self.text(disk, self.limit, line).map(Some),
            None => Ok(None),
        }
    }

    /// Goes on after a survey; where nothing was moved it is the same as before.
    fn look_round(&mut self, disk: &mut dyn Disk, line: &mut Vec<u8>) -> io::Result<Option<Step>> {
        self.surveyed = true;
        self.moved = self.survey(disk)?;
        self.step(disk, line)
    }

    fn check(&mut self, disk: &mut dyn Disk, e: Entry, line: &mut Vec<u8>) -> io::Result<What> {
        if e.end() > self.limit {
            return Ok(What::Beyond(e));
        }
        if e.len as usize > MAX_RECORD {
            return Ok(What::Wrong(e));
        }
        let bytes = self.bytes(disk, e.at, e.len as usize)?;
        if bytes.len() == e.len as usize && crc32fast::hash(bytes) == e.crc {
            line.extend_from_slice(bytes);
            Ok(What::Checked(e))
        } else {
            Ok(What::Wrong(e))
        }
    }

    /// The next line before `stop`.
    fn text(&mut self, disk: &mut dyn Disk, stop: u64, line: &mut Vec<u8>) -> io::Result<Step> {
        let at = self.pos;
        let mut long = false;
        while self.pos < stop {
            let want = ((stop - self.pos) as usize).min(CHUNK);
            let pos = self.pos;
            let bytes = self.bytes(disk, pos, want.min(4096))?;
            if bytes.is_empty() {
                // the file is shorter than it was
                self.pos = stop;
                break;
            }
            let newline = bytes.iter().position(|b| *b == b'\n');
            let take = newline.map_or(bytes.len(), |n| n + 1);
            if line.len() + take > MAX_RECORD {
                long = true;
                line.clear();
            }
            if !long {
                line.extend_from_slice(&bytes[..take]);
            }
            self.pos += take as u64;
            if newline.is_some() {
                let what = if long { What::Endless } else { What::Text };
                return Ok(Step::here(at, self.pos, what));
            }
        }
        let what = if long { What::Endless } else { What::Partial };
        Ok(Step::here(at, self.pos, what))
    }

    /// Bytes at a place, fewer at the end of the file.
    fn bytes(&mut self, disk: &mut dyn Disk, at: u64, len: usize) -> io::Result<&[u8]> {
        let have = self.start + self.buf.len() as u64;
        if at < self.start || at + len as u64 > have {
            let left = self.limit.saturating_sub(at).min(CHUNK as u64) as usize;
            if self.buf.capacity() < len.max(left) {
                // fresh zeroes come from the system; a resize would write them
                self.buf = vec![0; len.max(left)];
            } else {
                self.buf.resize(len.max(left), 0);
            }
            let got = read_full(disk, self.file, at, &mut self.buf)?;
            self.buf.truncate(got);
            self.start = at;
        }
        let from = (at - self.start) as usize;
        let to = (from + len).min(self.buf.len());
        Ok(&self.buf[from.min(to)..to])
    }
}

/// The head line of a log file: `#<number>` padded to [`HEAD`] bytes with its newline.
pub fn head_line(number: i64) -> Vec<u8> {
    let mut out = format!("#{number}").into_bytes();
    out.resize(HEAD as usize - 1, b' ');
    out.push(b'\n');
    out
}

/// Length of the head line, bytes.
pub const HEAD: u64 = 80;

/// Reads the head line: (its number, its length); a length of 0 means that there is none.
pub fn read_head(disk: &mut dyn Disk, file: FileId) -> io::Result<(Option<i64>, u64)> {
    let mut buf = [0; 256];
    let got = read_full(disk, file, 0, &mut buf)?;
    let line = &buf[..got];
    if line.first() != Some(&b'#') {
        return Ok((None, 0));
    }
    let Some(newline) = line.iter().position(|b| *b == b'\n') else { return Ok((None, 0)) };
    let text = String::from_utf8_lossy(&line[1..newline]);
    Ok((text.trim().parse().ok(), newline as u64 + 1))
}
