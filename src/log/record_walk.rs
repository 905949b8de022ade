//! Walks over lsb.events from record to record, checked against the checksum entries where there
//! are any, as text where there are none. Nothing is judged here.
//!
//! At the first record that is not where its entry says, the rest of the file is looked through
//! for records that lie elsewhere ([`survey`]). Where there are any, the walk goes on by the order
//! of the entries, wherever the bytes lie; the places it tells are then those that they had.
//!
//! Invariant: every byte from the start to the limit is in exactly one step, or is told by
//! [`RecordWalker::moved`] as no record.

mod lines;
mod survey;

use super::checksums::ChecksumEntry;
use super::disk::{Disk, FileId, read_full};
use lines::Lines;
pub use lines::{PlaceContents, WalkStep};
use std::io;
pub use survey::{Moved, Rest};

/// The walk.
pub struct RecordWalker {
    lines: Lines,
    surveyed: bool,
    /// The entry behind text that was seen to be whole.
    sound: Option<usize>,
    moved: Option<Moved>,
    /// Before the first entry, records that were moved are looked for from here on.
    look_from: u64,
}

impl RecordWalker {
    /// Walks `from .. limit` of an open file. `entries` by place, not overlapping.
    pub fn new(file: FileId, from: u64, limit: u64, entries: Vec<ChecksumEntry>) -> RecordWalker {
        RecordWalker {
            lines: Lines::new(file, from, limit, entries),
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

    /// The records that do not lie where they were written; `None`: every whole record lies there.
    pub fn moved(&self) -> Option<&Moved> {
        self.moved.as_ref()
    }

    pub fn entries(&self) -> &[ChecksumEntry] {
        &self.lines.entries
    }

    /// The next step; the bytes of a readable one replace those in `line`.
    pub fn step(
        &mut self,
        disk: &mut dyn Disk,
        line: &mut Vec<u8>,
    ) -> io::Result<Option<WalkStep>> {
        line.clear();
        let lines = &mut self.lines;
        if let Some(moved) = &mut self.moved {
            return moved.step(lines, disk, line);
        }
        let at = lines.pos;
        match lines.entries.get(lines.next).copied() {
            Some(entry) if entry.at == at || at >= lines.limit => {
                let what = lines.check(disk, entry, line)?;
                if !self.surveyed && !matches!(what, PlaceContents::Checked(_)) {
                    return self.look_round(disk, line);
                }
                lines.next += 1;
                let end = entry.end().min(lines.limit).max(at);
                lines.pos = end;
                Ok(Some(WalkStep::here(at, end, what)))
            }
            // text is where it was if the record behind it is
            Some(entry) if !self.surveyed && self.sound != Some(lines.next) => {
                match lines.check(disk, entry, line)? {
                    PlaceContents::Checked(_) => self.sound = Some(lines.next),
                    _ => return self.look_round(disk, line),
                }
                self.step(disk, line)
            }
            Some(entry) => lines.text(disk, entry.at.min(lines.limit), line).map(Some),
            None if at < lines.limit => lines.text(disk, lines.limit, line).map(Some),
            None => Ok(None),
        }
    }

    /// Goes on after a survey; where nothing was moved it is the same as before.
    fn look_round(
        &mut self,
        disk: &mut dyn Disk,
        line: &mut Vec<u8>,
    ) -> io::Result<Option<WalkStep>> {
        self.surveyed = true;
        self.moved = Moved::find(&mut self.lines, disk, self.look_from)?;
        self.step(disk, line)
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
