//! `lsb.events.sum`, the checksum file beside lsb.events: one entry a record, written after the
//! record is durable, so that damage is known exactly, with the jobs it hit, even where nothing can
//! be read.
//!
//! Layout, little endian. Head, 32 bytes: `LSFEVSUM`, version u32, number of the first spool
//! file u32, length of lsb.acct when the log was begun u64, CRC-32 of the last bytes of that
//! length u32, CRC-32 of the head so far u32. Entry, 32 bytes: place in lsb.events u64, length
//! u32, CRC-32 of the record with its newline u32, job u32, element u32, kind u32, CRC-32 of the
//! entry so far u32.
//!
//! Each entry stands alone: a damaged one only uncovers its own record. Entries lie in the order of
//! their places. The part that no entry covers is read like the log of another LSF.

use super::codec::name_of;
use super::disk::{Disk, FileId, read_full};
use crate::model::JobRef;
use crate::model::event::{Event, name_mark};
use crate::model::record_names::RECORD_NAMES;
use std::io;

/// Bytes of the head and of each entry.
pub const ENTRY: usize = 32;
const MAGIC: &[u8; 8] = b"LSFEVSUM";
const VERSION: u32 = 1;

/// Bytes of lsb.acct before a place that identify it.
pub const ACCT_MARK: u64 = 256;

/// One record, as the checksum file knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChecksumEntry {
    /// Byte offset of the record in lsb.events.
    pub at: u64,
    /// Length of the record with its newline, bytes.
    pub len: u32,
    pub crc: u32,
    /// The job it concerns; job 0 none, and with it the element is that of a control record's
    /// queue or host ([`name_mark`]), so that it is known whose record was lost.
    pub job: JobRef,
    /// Index into [`RECORD_NAMES`] plus 1; 0 another.
    pub kind: u32,
}

/// The kind of an event.
pub fn kind_of(event: &Event) -> u32 {
    let name = name_of(event);
    RECORD_NAMES.iter().position(|k| *k == name).map_or(0, |n| n as u32 + 1)
}

/// Is this the name of a kind?
pub fn is_kind(name: &str) -> bool {
    RECORD_NAMES.contains(&name)
}

impl ChecksumEntry {
    /// The entry of a record's line.
    pub fn of(at: u64, line: &[u8], event: &Event) -> ChecksumEntry {
        let crc = crc32fast::hash(line);
        let job = match event {
            Event::QueueCtrl { queue: name, .. } | Event::HostCtrl { host: name, .. } => {
                JobRef { job: 0, idx: name_mark(name) }
            }
            _ => super::codec::job_of(event),
        };
        ChecksumEntry { at, len: line.len() as u32, crc, job, kind: kind_of(event) }
    }

    /// Has the record the request ID of a submission?
    pub fn has_request_id(&self) -> bool {
        matches!(self.name(), "JOB_NEW" | "LSF_SUBMITTED")
    }

    /// First byte behind the record.
    pub fn end(&self) -> u64 {
        self.at + u64::from(self.len)
    }

    /// The record's name, `record` where it is none of ours.
    pub fn name(&self) -> &'static str {
        let at = (self.kind as usize).wrapping_sub(1);
        RECORD_NAMES.get(at).copied().unwrap_or("record")
    }

    /// Is the record a JOB_NEW?
    pub fn is_submission(&self) -> bool {
        self.name() == "JOB_NEW"
    }

    /// Appends the entry's bytes.
    pub fn put(&self, out: &mut Vec<u8>) {
        let from = out.len();
        out.extend_from_slice(&self.at.to_le_bytes());
        for n in [self.len, self.crc, self.job.job, self.job.idx, self.kind] {
            out.extend_from_slice(&n.to_le_bytes());
        }
        let check = crc32fast::hash(&out[from..]);
        out.extend_from_slice(&check.to_le_bytes());
    }

    /// The entry in these bytes, `None` where they are damaged.
    pub fn get(bytes: &[u8]) -> Option<ChecksumEntry> {
        let bytes: &[u8; ENTRY] = bytes.try_into().ok()?;
        if crc32fast::hash(&bytes[..28]) != word(bytes, 28) {
            return None;
        }
        let job = JobRef { job: word(bytes, 16), idx: word(bytes, 20) };
        let at = u64::from(word(bytes, 4)) << 32 | u64::from(word(bytes, 0));
        Some(ChecksumEntry {
            at,
            len: word(bytes, 8),
            crc: word(bytes, 12),
            job,
            kind: word(bytes, 24),
        })
    }
}

fn word(bytes: &[u8; ENTRY], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The head of a checksum file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChecksumHead {
    /// Spool file that was begun with this log.
    pub spool: u32,
    /// lsb.acct held everything about earlier logs up to here.
    pub acct_at: u64,
    /// CRC-32 of the [`ACCT_MARK`] bytes before that place: is it still the same file?
    pub acct_crc: u32,
}

impl ChecksumHead {
    pub fn put(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(ENTRY);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&self.spool.to_le_bytes());
        out.extend_from_slice(&self.acct_at.to_le_bytes());
        out.extend_from_slice(&self.acct_crc.to_le_bytes());
        let check = crc32fast::hash(&out);
        out.extend_from_slice(&check.to_le_bytes());
        out
    }

    fn get(bytes: &[u8]) -> Result<ChecksumHead, BadHead> {
        let bytes: &[u8; ENTRY] = bytes.try_into().map_err(|_| BadHead::Damaged)?;
        if &bytes[..8] != MAGIC || crc32fast::hash(&bytes[..28]) != word(bytes, 28) {
            return Err(BadHead::Damaged);
        }
        match word(bytes, 8) {
            VERSION => {}
            newer => return Err(BadHead::Newer(newer)),
        }
        let acct_at = u64::from(word(bytes, 20)) << 32 | u64::from(word(bytes, 16));
        Ok(ChecksumHead { spool: word(bytes, 12), acct_at, acct_crc: word(bytes, 24) })
    }
}

enum BadHead {
    Damaged,
    Newer(u32),
}

/// The contents of a checksum file.
#[derive(Clone, Debug, Default)]
pub struct Checksums {
    /// The head; `None`: missing or damaged.
    pub head: Option<ChecksumHead>,
    /// All that can be trusted, by place, none overlapping.
    pub entries: Vec<ChecksumEntry>,
    /// Bytes of the file up to and with the last of them.
    pub len: u64,
    /// How many between them are damaged.
    pub bad: u64,
    /// The file is there.
    pub present: bool,
    /// A version of this format that is not known here: start-up must stop.
    pub newer: Option<u32>,
}

/// Reads a checksum file; one that is missing or damaged is no error.
pub fn read(disk: &mut dyn Disk, name: &str) -> io::Result<Checksums> {
    let file = match disk.open(name, None) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Checksums::default()),
        Err(e) => return Err(e),
    };
    let got = read_open(disk, file);
    disk.close(file);
    got
}

/// Length of a checksum file up to and with the last entry of a record that ends at or before
/// `end`.
pub fn len_below(disk: &mut dyn Disk, name: &str, end: u64) -> io::Result<u64> {
    let file = disk.open(name, None)?;
    let (mut at, mut len) = (0, ENTRY as u64);
    let mut buf = vec![0; chunk(disk.len(file)?)];
    loop {
        let got = match read_full(disk, file, at, &mut buf) {
            Ok(got) => got,
            Err(e) => {
                disk.close(file);
                return Err(e);
            }
        };
        for (i, bytes) in buf[..got].chunks_exact(ENTRY).enumerate() {
            let place = at + (i * ENTRY) as u64;
            if place > 0 && ChecksumEntry::get(bytes).is_some_and(|e| e.end() <= end) {
                len = place + ENTRY as u64;
            }
        }
        if got < buf.len() || got == 0 {
            disk.close(file);
            return Ok(len);
        }
        at += got as u64;
    }
}

/// Bytes read at a time; a multiple of [`ENTRY`].
const CHUNK: usize = 1 << 20;

/// Size of the buffer for a file: whole entries, one more than there are if it can be.
fn chunk(len: u64) -> usize {
    (len as usize / ENTRY + 1).saturating_mul(ENTRY).min(CHUNK)
}

fn read_open(disk: &mut dyn Disk, file: FileId) -> io::Result<Checksums> {
    let mut reader = Reader::new(disk, file, u64::MAX)?;
    while reader.step(disk)? {}
    Ok(reader.sums)
}

/// Reads a checksum file slice by slice.
pub struct Reader {
    pub file: FileId,
    pub sums: Checksums,
    at: u64,
    limit: u64,
    bad: u64,
    buf: Vec<u8>,
}

impl Reader {
    /// Reads the checksums of the first `limit` bytes.
    pub fn new(disk: &mut dyn Disk, file: FileId, limit: u64) -> io::Result<Reader> {
        let buf = vec![0; chunk(disk.len(file)?.min(limit))];
        let sums = Checksums { present: true, ..Checksums::default() };
        Ok(Reader { file, sums, at: 0, limit, bad: 0, buf })
    }

    /// Reads a slice; false: that was the last.
    pub fn step(&mut self, disk: &mut dyn Disk) -> io::Result<bool> {
        let most = self.buf.len().min(usize::try_from(self.limit - self.at).unwrap_or(usize::MAX));
        let got = read_full(disk, self.file, self.at, &mut self.buf[..most])?;
        let sums = &mut self.sums;
        for (i, bytes) in self.buf[..got].chunks_exact(ENTRY).enumerate() {
            let place = self.at + (i * ENTRY) as u64;
            if place == 0 {
                match ChecksumHead::get(bytes) {
                    Ok(head) => sums.head = Some(head),
                    Err(BadHead::Newer(version)) => sums.newer = Some(version),
                    Err(BadHead::Damaged) => {}
                }
                sums.len = ENTRY as u64;
                continue;
            }
            let before = sums.entries.last().map_or(0, ChecksumEntry::end);
            match ChecksumEntry::get(bytes) {
                Some(entry) if entry.at >= before && entry.len > 0 => {
                    sums.entries.push(entry);
                    sums.len = place + ENTRY as u64;
                    sums.bad += self.bad;
                    self.bad = 0;
                }
                _ => self.bad += 1,
            }
        }
        self.at += got as u64;
        Ok(got == self.buf.len() && got > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::simdisk::SimDisk;
    use super::*;

    fn file(entries: &[ChecksumEntry]) -> Vec<u8> {
        let mut out = ChecksumHead { spool: 3, acct_at: 1 << 33, acct_crc: 7 }.put();
        for e in entries {
            e.put(&mut out);
        }
        out
    }

    fn entries() -> Vec<ChecksumEntry> {
        let job = JobRef { job: 5, idx: 2 };
        (0..4).map(|n| ChecksumEntry { at: 80 + n * 100, len: 100, crc: 9, job, kind: 5 }).collect()
    }

    #[test]
    fn a_file_comes_back() {
        let mut disk = SimDisk::new();
        disk.put("s", &file(&entries()));
        let sums = read(&mut disk, "s").unwrap();
        assert_eq!(sums.entries, entries());
        assert_eq!(sums.head, Some(ChecksumHead { spool: 3, acct_at: 1 << 33, acct_crc: 7 }));
        assert_eq!((sums.len, sums.bad), (160, 0));
        assert_eq!(sums.entries[0].name(), "JOB_STATUS");
        assert!(!read(&mut disk, "none").unwrap().present);
    }

    #[test]
    fn damage_uncovers_only_what_it_hits() {
        let whole = file(&entries());
        let mut disk = SimDisk::new();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x40;
            disk.put("s", &bytes);
            let sums = read(&mut disk, "s").unwrap();
            let mut want = entries();
            if at >= ENTRY {
                want.remove(at / ENTRY - 1);
            }
            assert_eq!(sums.entries, want, "byte {at}");
            assert_eq!(sums.head.is_none(), at < ENTRY, "byte {at}");
            // cut there: what is whole stays
            disk.put("s", &whole[..at]);
            let sums = read(&mut disk, "s").unwrap();
            assert_eq!(sums.entries, entries()[..(at / ENTRY).saturating_sub(1)]);
        }
        let zeros = vec![0; 4096];
        disk.put("s", &zeros);
        assert!(read(&mut disk, "s").unwrap().entries.is_empty());
    }
}
