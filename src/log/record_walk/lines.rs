//! Reads lines and records of a log file at their places, with bytes read ahead.

use crate::log::checksums::ChecksumEntry;
use crate::log::codec::MAX_RECORD;
use crate::log::disk::{Disk, FileId, read_full};
use std::io;

/// Bytes read ahead.
const CHUNK: usize = 1 << 20;

/// The contents at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceContents {
    /// A record whose checksum is right; its line was handed out.
    Checked(ChecksumEntry),
    /// A line that no entry covers; it was handed out with its newline.
    Text,
    /// Text that no entry covers and that has no newline; it was handed out.
    Partial,
    /// A line without entry that is too long to be a record.
    Endless,
    /// A record that is not what its entry says.
    Wrong(ChecksumEntry),
    /// A record that lay wholly or in part behind the end of the file.
    Beyond(ChecksumEntry),
}

/// One step: the bytes `at .. end`, as the file was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalkStep {
    pub at: u64,
    pub end: u64,
    pub what: PlaceContents,
    /// The bytes in the file as it is; of a record that is lost, those that stand in its place.
    pub file: (u64, u64),
}

impl WalkStep {
    pub(super) fn here(at: u64, end: u64, what: PlaceContents) -> WalkStep {
        WalkStep { at, end, what, file: (at, end) }
    }
}

/// A log file, its checksum entries, and how far it has been read.
pub(super) struct Lines {
    file: FileId,
    pub(super) pos: u64,
    pub(super) limit: u64,
    pub(super) entries: Vec<ChecksumEntry>,
    /// The next entry.
    pub(super) next: usize,
    buf: Vec<u8>,
    /// Place of the buffer's first byte.
    start: u64,
}

impl Lines {
    /// Reads `from .. limit` of an open file. `entries` by place, not overlapping.
    pub(super) fn new(file: FileId, from: u64, limit: u64, entries: Vec<ChecksumEntry>) -> Lines {
        let next = entries.partition_point(|e| e.at < from);
        Lines { file, pos: from, limit, entries, next, buf: Vec::new(), start: 0 }
    }

    pub(super) fn check(
        &mut self,
        disk: &mut dyn Disk,
        e: ChecksumEntry,
        line: &mut Vec<u8>,
    ) -> io::Result<PlaceContents> {
        if e.end() > self.limit {
            return Ok(PlaceContents::Beyond(e));
        }
        if e.len as usize > MAX_RECORD {
            return Ok(PlaceContents::Wrong(e));
        }
        let bytes = self.bytes(disk, e.at, e.len as usize)?;
        if bytes.len() == e.len as usize && crc32fast::hash(bytes) == e.crc {
            line.extend_from_slice(bytes);
            Ok(PlaceContents::Checked(e))
        } else {
            Ok(PlaceContents::Wrong(e))
        }
    }

    /// The next line before `stop`.
    pub(super) fn text(
        &mut self,
        disk: &mut dyn Disk,
        stop: u64,
        line: &mut Vec<u8>,
    ) -> io::Result<WalkStep> {
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
                let what = if long { PlaceContents::Endless } else { PlaceContents::Text };
                return Ok(WalkStep::here(at, self.pos, what));
            }
        }
        let what = if long { PlaceContents::Endless } else { PlaceContents::Partial };
        Ok(WalkStep::here(at, self.pos, what))
    }

    /// Bytes at a place, fewer at the end of the file.
    pub(super) fn bytes(&mut self, disk: &mut dyn Disk, at: u64, len: usize) -> io::Result<&[u8]> {
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
