//! The spool: exact bytes that the text of the log has no place for (environments, scripts,
//! submissions whose text loses something), in append-only files `info/lsb.spool.N` (0600).
//!
//! A new file is begun at each switch of the log, and files that no job in memory refers to any
//! more are removed then. This takes the place of rewriting the spool with live references: nothing
//! moves, so that places stay good for whoever holds one, and a crash can at worst leave a file too
//! many. The price is that one old job keeps its whole file.
//!
//! `info/lsb.spool.N.sum` has a checksum entry (`sum`) for each piece, written when the piece is
//! durable: at start what unfinished jobs refer to is compared with it.

use super::checksums;
use super::disk::{Disk, FileId, INFO, read_full};
use crate::model::job::SpoolRef;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

const PREFIX: &str = "lsb.spool.";

/// Bytes read at a time when checking.
const STRETCH: usize = 256 << 10;
/// Spool files kept open for reading.
const MAX_OPEN: usize = 16;

/// Name of a spool file.
pub fn name(number: u32) -> String {
    format!("{INFO}/{PREFIX}{number}")
}

/// Name of its checksum file.
pub fn sum_name(number: u32) -> String {
    format!("{INFO}/{PREFIX}{number}.sum")
}

/// The places, of those given in one spool file, whose bytes are not the ones that were written.
/// Places without a checksum entry are not judged.
pub fn damaged(
    disk: &mut dyn Disk,
    number: u32,
    places: &BTreeSet<(u64, u32)>,
) -> io::Result<Vec<(u64, u32)>> {
    let entries = checksums::read(disk, &sum_name(number))?.entries;
    let file = match disk.open(&name(number), None) {
        Ok(file) => file,
        // that is said of each job by itself
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(e),
    };
    let mut bad = Vec::new();
    // a stretch of the file that holds the piece looked at and, mostly, those behind it
    let (mut start, mut buf) = (0, Vec::new());
    for entry in entries.iter().filter(|e| places.contains(&(e.at, e.len))) {
        let len = entry.len as usize;
        if entry.end() > start + buf.len() as u64 {
            start = entry.at;
            buf.resize(len.max(STRETCH), 0);
            let got = read_full(disk, file, start, &mut buf).unwrap_or(0);
            buf.truncate(got);
        }
        let from = (entry.at - start) as usize;
        let bytes = buf.get(from..from + len);
        if bytes.is_none_or(|bytes| crc32fast::hash(bytes) != entry.crc) {
            bad.push((entry.at, entry.len));
        }
    }
    disk.close(file);
    Ok(bad)
}

/// Numbers of the spool files there are, ascending.
pub fn list(disk: &mut dyn Disk) -> io::Result<Vec<u32>> {
    let names = disk.list(INFO)?;
    let mut numbers: Vec<u32> =
        names.iter().filter_map(|n| n.strip_prefix(PREFIX)?.parse().ok()).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// Reads spooled bytes; keeps a few files open.
#[derive(Default)]
pub struct SpoolReader {
    open: BTreeMap<u32, FileId>,
    /// A spool file and the length it has at least.
    known: Option<(u32, u64)>,
}

impl SpoolReader {
    fn file(&mut self, disk: &mut dyn Disk, number: u32) -> io::Result<FileId> {
        if let Some(file) = self.open.get(&number) {
            return Ok(*file);
        }
        if self.open.len() >= MAX_OPEN {
            self.forget(disk);
        }
        let file = disk.open(&name(number), None)?;
        self.open.insert(number, file);
        Ok(file)
    }

    /// Closes all files (some may have been removed at a switch).
    pub fn forget(&mut self, disk: &mut dyn Disk) {
        self.known = None;
        for file in std::mem::take(&mut self.open).into_values() {
            disk.close(file);
        }
    }

    /// Length of a spool file; 0 where there is none.
    pub fn len(&mut self, disk: &mut dyn Disk, number: u32) -> io::Result<u64> {
        match self.file(disk, number) {
            Ok(file) => disk.len(file),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(e) => Err(e),
        }
    }

    /// Does this place lie within its file?
    pub fn holds(&mut self, disk: &mut dyn Disk, at: SpoolRef) -> io::Result<bool> {
        let Some(end) = at.at.checked_add(u64::from(at.len)) else { return Ok(false) };
        // spool files only grow
        if at.len == 0 || self.known.is_some_and(|(spool, len)| spool == at.spool && end <= len) {
            return Ok(true);
        }
        let len = self.len(disk, at.spool)?;
        self.known = Some((at.spool, len));
        Ok(end <= len)
    }

    /// The bytes at a place.
    pub fn read(&mut self, disk: &mut dyn Disk, at: SpoolRef) -> io::Result<Vec<u8>> {
        // the length comes from a file: it must fit before anything is allocated by it
        if !self.holds(disk, at)? {
            let text = format!("{}: shorter than byte {} + {}", name(at.spool), at.at, at.len);
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text));
        }
        let mut buf = vec![0; at.len as usize];
        if at.len > 0 {
            let file = self.file(disk, at.spool)?;
            let got = read_full(disk, file, at.at, &mut buf)?;
            buf.truncate(got);
        }
        if buf.len() < at.len as usize { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(buf) }
    }
}
