//! Finds records that do not lie where they were written: after a line was taken out, doubled or
//! put elsewhere, or bytes were shifted, each that is whole is known by its length and checksum.
//!
//! The places of records in the file say nothing about the order of events: that is the order of
//! the checksum entries. Of bytes that are no record which an entry knows, those are text (of
//! another LSF, or not yet covered) that lie where no entry covered the file when it was written,
//! counted from the record before them; all others are what is left of lost records, or were put
//! there.
//!
//! A line behind all entries that has the bytes of a lost record is not that record, but a later
//! one that says the same, where the lost one was overwritten at its place (records behind it still
//! lie at theirs) and the line is no older than the one before it.
//!
//! Invariant: no record is told twice, and only damage leads here: the way of a log that is whole
//! has nothing of it.

use super::lines::{Lines, PlaceContents, WalkStep};
use crate::log::checksums::ChecksumEntry;
use crate::log::codec::MAX_RECORD;
use crate::log::disk::Disk;
use std::collections::HashSet;
use std::io;

/// Places in one line at which a record is searched behind bytes that belong to no record.
const MAX_STARTS: usize = 64;
/// Bytes of one line that are hashed for it, at most.
const MAX_HASHED: usize = 64 << 20;
/// Place of a record that is lost.
const LOST: u64 = u64::MAX;

/// Bytes of the file that are no record of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rest {
    pub from: u64,
    pub to: u64,
    /// The bytes say once more what a whole record says.
    pub repeated: bool,
}

/// The places of records that have moved.
#[derive(Clone, Debug, Default)]
pub struct Moved {
    /// The first entry that this is about, and the end of what lies before it.
    pub first: usize,
    pub kept: u64,
    /// Places of the records of entries from `first` on.
    places: Vec<u64>,
    /// Lines without entry: where they belong, and where they lie.
    loose: Vec<(u64, WalkStep)>,
    /// The bytes that are neither, by place.
    pub rests: Vec<Rest>,
    /// The next to be told.
    next_loose: usize,
    /// The end in the file of the record told last, and the next record there: (entry, place).
    told: u64,
    ahead: (usize, u64),
}

/// Bytes between the records that were searched.
struct Other {
    from: u64,
    to: u64,
    what: PlaceContents,
    /// CRC-32 of a whole line; `None`: it cannot say what an entry knows.
    crc: Option<u32>,
    /// A record follows on the same line: they are the end of nothing.
    cut: bool,
}

impl Moved {
    fn place(&self, entry: usize) -> Option<u64> {
        let place = *self.places.get(entry.checked_sub(self.first)?)?;
        (place != LOST).then_some(place)
    }

    /// The bytes that stand where a lost record was: behind the record before it, up to the one
    /// behind it.
    fn instead_of(&mut self, n: usize, limit: u64) -> (u64, u64) {
        if self.ahead.0 <= n {
            let all = n + 1..self.first + self.places.len();
            let next = all.clone().find_map(|k| Some((k, self.place(k)?)));
            self.ahead = next.unwrap_or((all.end, limit));
        }
        let (from, to) = (self.told, self.ahead.1);
        let at = self.rests.partition_point(|rest| rest.to <= from);
        let here = self.rests.get(at).filter(|r| r.from == from && r.to <= to && !r.repeated);
        (from, here.map_or(from, |rest| rest.to))
    }
}

/// The marks by which a record is known.
fn key(len: u64, crc: u32) -> u64 {
    len << 32 | u64::from(crc)
}

/// Records that are not at their places, by their checksum and length.
struct SearchedRecords {
    /// (key, entry), ascending; and whether it was found.
    keys: Vec<(u64, usize)>,
    found: Vec<bool>,
    /// The entry behind the one found last.
    next: usize,
    /// Entries before this one are not searched.
    least: usize,
}

impl SearchedRecords {
    fn new(mut keys: Vec<(u64, usize)>) -> SearchedRecords {
        keys.sort_unstable();
        let found = vec![false; keys.len()];
        SearchedRecords { keys, found, next: 0, least: 0 }
    }

    /// The entry that these bytes are the record of: of several alike the next one, else any.
    fn take(&mut self, bytes: &[u8]) -> Option<usize> {
        let key = key(bytes.len() as u64, crc32fast::hash(bytes));
        for from in [self.next.max(self.least), self.least] {
            let first = self.keys.partition_point(|k| *k < (key, from));
            let alike = self.keys[first..].iter().take_while(|k| k.0 == key).count();
            if let Some(at) = (first..first + alike).find(|at| !self.found[*at]) {
                self.found[at] = true;
                self.next = self.keys[at].1 + 1;
                return Some(self.keys[at].1);
            }
        }
        None
    }
}

/// The lines behind all entries, one after the other.
struct Tail {
    /// The time of the newest record before.
    newest: Option<i64>,
    /// The first of them is a record: they begin where the last record ended, and no bytes were put
    /// in or taken out before them.
    follows: bool,
}

impl Tail {
    /// The first entry that this line can be the record of: any, where the line is older than those
    /// before it; else none before `unmoved`, behind the last record that lies at its place, and
    /// none before `all` where the lines begin where they must. `first`: this line lies where the
    /// last record ended.
    fn least(&mut self, line: &[u8], first: bool, (unmoved, all): (usize, usize)) -> usize {
        let time = time_of(line);
        let later = time.is_some() && time >= self.newest;
        let least = match (later, self.follows) {
            (false, _) => 0,
            (true, false) => unmoved,
            (true, true) => all,
        };
        self.follows |= first && later;
        self.newest = self.newest.max(time);
        least
    }
}

/// The time of a record, seconds since the epoch: its third field.
fn time_of(line: &[u8]) -> Option<i64> {
    let field = line.get(..line.len().min(256))?.split(|b| *b == b' ').nth(2)?;
    str::from_utf8(field).ok()?.parse().ok()
}

/// The places in a line at which another record may begin.
fn starts(line: &[u8]) -> impl Iterator<Item = usize> + '_ {
    let names = |at: &usize| {
        let name = |b: &&u8| b.is_ascii_uppercase() || **b == b'_' || b.is_ascii_digit();
        let len = line[at + 1..].iter().take_while(name).count();
        len > 0 && line[at + 1 + len..].starts_with(b"\" \"")
    };
    memchr::memchr_iter(b'"', line).filter(names).take(MAX_STARTS)
}

impl Moved {
    /// Looks for every record from the next entry on; `None`: those that are whole are where they
    /// belong. Before the first entry it looks from `look_from` on.
    pub(super) fn find(
        lines: &mut Lines,
        disk: &mut dyn Disk,
        look_from: u64,
    ) -> io::Result<Option<Moved>> {
        let (first, kept) = (lines.next, lines.pos);
        let mut moved = Moved { first, kept, told: kept, ..Moved::default() };
        let mut wanted = Vec::new();
        let holes = moved.holes(lines, disk, look_from, &mut wanted)?;
        let mut wanted = SearchedRecords::new(wanted);
        let mut others = Vec::new();
        let (mut any, mut line) = (false, Vec::new());
        let covered = lines.entries.last().map_or(0, ChecksumEntry::end);
        let unmoved = moved.last_unmoved(lines).map_or(0, |n| n + 1);
        let mut tail = Tail { newest: None, follows: false };
        if let Some(e) = unmoved.checked_sub(1).map(|n| lines.entries[n]) {
            tail.newest = time_of(lines.bytes(disk, e.at, e.len as usize)?);
        }
        for (from, to) in holes {
            lines.pos = from;
            while lines.pos < to {
                line.clear();
                let WalkStep { at, end, what, .. } = lines.text(disk, to, &mut line)?;
                if at >= covered {
                    let last = if any { unmoved } else { lines.entries.len() };
                    wanted.least = tail.least(&line, at == covered, (unmoved, last));
                }
                let whole = what == PlaceContents::Text;
                match whole.then(|| find(&mut wanted, &line)).flatten() {
                    Some((skip, entry)) => {
                        any = true;
                        moved.places[entry - first] = at + skip;
                        if skip > 0 {
                            others.push(Other {
                                from: at,
                                to: at + skip,
                                what,
                                crc: None,
                                cut: true,
                            });
                        }
                    }
                    None => {
                        let crc = whole.then(|| crc32fast::hash(&line));
                        others.push(Other { from: at, to: end, what, crc, cut: false });
                    }
                }
            }
        }
        lines.pos = kept;
        if any {
            moved.sort_out(&lines.entries, others);
        }
        Ok(any.then_some(moved))
    }

    /// The ranges of the file in which no record lies at its place. Records at their places are
    /// noted, the others are added to `wanted`.
    fn holes(
        &mut self,
        lines: &mut Lines,
        disk: &mut dyn Disk,
        look_from: u64,
        wanted: &mut Vec<(u64, usize)>,
    ) -> io::Result<Vec<(u64, u64)>> {
        let mut holes = Vec::new();
        let begin = lines.entries.first().map_or(lines.limit, |e| e.at);
        let mut pos = if self.first == 0 { look_from.min(self.kept) } else { self.kept };
        if self.first > 0 && look_from < begin {
            holes.push((look_from, begin.min(lines.limit)));
        }
        let mut line = Vec::new();
        for n in self.first..lines.entries.len() {
            let entry = lines.entries[n];
            line.clear();
            if !matches!(lines.check(disk, entry, &mut line)?, PlaceContents::Checked(_)) {
                wanted.push((key(u64::from(entry.len), entry.crc), n));
                self.places.push(LOST);
                continue;
            }
            self.places.push(entry.at);
            if pos < entry.at {
                holes.push((pos, entry.at));
            }
            pos = entry.end();
        }
        if pos < lines.limit {
            holes.push((pos, lines.limit));
        }
        Ok(holes)
    }

    /// The last entry whose record lies at its place.
    fn last_unmoved(&self, lines: &Lines) -> Option<usize> {
        let there = |n: &usize| *n < self.first || self.place(*n) == Some(lines.entries[*n].at);
        (0..lines.entries.len()).rfind(there)
    }

    /// Tells text that no entry covered from what is no record.
    fn sort_out(&mut self, entries: &[ChecksumEntry], others: Vec<Other>) {
        let known: HashSet<u64> = match others.is_empty() {
            true => HashSet::new(),
            false => entries.iter().map(|e| key(u64::from(e.len), e.crc)).collect(),
        };
        let all = self.places.iter().enumerate().filter(|(_, place)| **place != LOST);
        let mut by_place: Vec<(u64, usize)> = all.map(|(n, at)| (*at, self.first + n)).collect();
        by_place.sort_unstable();
        for Other { from, to, what, crc, cut } in others {
            let repeated = crc.is_some_and(|crc| known.contains(&key(to - from, crc)));
            let at = self.written_at(entries, &by_place, (from, to)).filter(|_| !repeated && !cut);
            match at {
                Some(at) => {
                    let step = WalkStep { at, end: at + (to - from), what, file: (from, to) };
                    self.loose.push((at, step));
                }
                None => match self.rests.last_mut() {
                    Some(last) if last.to == from && last.repeated == repeated => last.to = to,
                    _ => self.rests.push(Rest { from, to, repeated }),
                },
            }
        }
        self.loose.sort_by_key(|(at, _)| *at);
    }

    /// The place at which bytes that belong to no entry were written, as far as the record before
    /// them tells; `None`: an entry covered that place.
    fn written_at(
        &self,
        entries: &[ChecksumEntry],
        by_place: &[(u64, usize)],
        (from, to): (u64, u64),
    ) -> Option<u64> {
        let n = by_place.partition_point(|(place, _)| *place < from);
        let before = n.checked_sub(1).map(|n| by_place[n].1);
        // the records before the first one looked for are all at their places
        let (end, written, next) = match before {
            None if from < self.kept => return None,
            None => (self.kept, self.kept, self.first),
            Some(entry) => {
                let e = entries[entry];
                (self.place(entry)? + u64::from(e.len), e.end(), entry + 1)
            }
        };
        let mut at = written + from.checked_sub(end)?;
        if n < by_place.len() {
            // between two records without a third
            let over = entries.partition_point(|e| e.end() <= at);
            let fits = |e: &ChecksumEntry| at + (to - from) <= e.at;
            return entries.get(over).is_some_and(fits).then_some(at);
        }
        // behind all records: what is left of the lost ones first
        let mut lost = written;
        for (n, entry) in entries.iter().enumerate().skip(next) {
            if self.place(n).is_some() {
                break;
            }
            lost = entry.end();
        }
        at = at.checked_sub(lost)?;
        Some(entries.last().map_or(0, ChecksumEntry::end) + at)
    }

    /// The next step by the order of the entries.
    pub(super) fn step(
        &mut self,
        lines: &mut Lines,
        disk: &mut dyn Disk,
        line: &mut Vec<u8>,
    ) -> io::Result<Option<WalkStep>> {
        let entry = lines.entries.get(lines.next).copied();
        if let Some(&(at, step)) = self.loose.get(self.next_loose)
            && entry.is_none_or(|e| at < e.at)
        {
            self.next_loose += 1;
            let (from, to) = step.file;
            if (to - from) as usize <= MAX_RECORD {
                let bytes = lines.bytes(disk, from, (to - from) as usize)?;
                line.extend_from_slice(bytes);
            }
            return Ok(Some(step));
        }
        let Some(entry) = entry else { return Ok(None) };
        let n = lines.next;
        lines.next += 1;
        let (at, end) = (entry.at, entry.end());
        let Some(place) = self.place(n) else {
            let file = self.instead_of(n, lines.limit);
            return Ok(Some(WalkStep { at, end, what: PlaceContents::Wrong(entry), file }));
        };
        self.told = place + u64::from(entry.len);
        let file = (place, self.told);
        let bytes = lines.bytes(disk, place, entry.len as usize)?;
        line.extend_from_slice(bytes);
        Ok(Some(WalkStep { at, end, what: PlaceContents::Checked(entry), file }))
    }
}

/// A record that is wanted, in a line: how many bytes stand before it, and its entry.
fn find(wanted: &mut SearchedRecords, line: &[u8]) -> Option<(u64, usize)> {
    if let Some(entry) = wanted.take(line) {
        return Some((0, entry));
    }
    let mut hashed = 0;
    for start in starts(line).filter(|start| *start > 0) {
        hashed += line.len() - start;
        if hashed > MAX_HASHED {
            break;
        }
        if let Some(entry) = wanted.take(&line[start..]) {
            return Some((start as u64, entry));
        }
    }
    None
}
