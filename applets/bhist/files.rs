//! The event logs that bhist reads, and their records (lsb.events(5)).
//!
//! Invariant: a line that is no record is named and passed over (where jobs are asked for, of the
//! lines that may be theirs); a last line without its newline is still being written and is passed
//! over in silence.

use lsf::cli::ctx::{Ctx, os_words};
use lsf::cli::long_format::clean;
use lsf::errln;
use lsf::log::codec::{MAX_RECORD, RecordError, read_record};
use lsf::model::event::Record;
use memchr::memchr;
use memchr::memmem::Finder;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

/// The malformed lines that are reported one by one; more are only counted.
const NAMED: usize = 3;
/// Bytes read at a time.
pub const BUFFER: usize = 1 << 20;

/// -n: which of lsb.events, lsb.events.1, lsb.events.2 ...
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    first: u32,
    last: u32,
}

impl Range {
    /// The current log alone.
    pub const CURRENT: Range = Range { first: 0, last: 0 };

    /// `num_logfiles` (0: all) or `min,max`.
    pub fn parse(text: &str) -> Option<Range> {
        let number = |t: &str| t.trim().parse::<u32>().ok();
        match text.split_once(',') {
            Some((min, max)) => {
                let (first, last) = (number(min)?, number(max)?);
                (first <= last).then_some(Range { first, last })
            }
            None => match number(text)? {
                0 => Some(Range { first: 0, last: u32::MAX }),
                n => Some(Range { first: 0, last: n - 1 }),
            },
        }
    }

    /// The files of `dir`, oldest first; the numbered ones as far as they exist.
    pub fn files(self, dir: &Path) -> Vec<PathBuf> {
        let mut files = Vec::new();
        for n in self.first..=self.last {
            let path = match n {
                0 => dir.join("lsb.events"),
                n => dir.join(format!("lsb.events.{n}")),
            };
            if n > self.first && !path.exists() {
                break;
            }
            files.push(path);
        }
        files.reverse();
        files
    }
}

/// The lines that could not be read.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// Words about the first bad lines.
    pub named: Vec<String>,
    /// Bad lines altogether.
    pub lines: usize,
}

impl Damage {
    /// Names what could not be read.
    pub fn tell(&self, ctx: &mut Ctx) {
        for words in &self.named {
            errln!(ctx, "{}: {}", ctx.name, clean(words));
        }
        if self.lines > self.named.len() {
            errln!(ctx, "{}: {} malformed lines ignored", ctx.name, self.lines);
        }
    }

    fn add(&mut self, file: &str, line: u64, why: &dyn std::fmt::Display) {
        self.lines += 1;
        if self.named.len() < NAMED {
            self.named.push(format!("{file}: line {line}: {why}; ignored"));
        }
    }
}

/// The numbers of the jobs wanted: a line that has none of them is of another job.
pub struct Only(Vec<Finder<'static>>);

/// Numbers that lines are searched for; with more, every line is read.
const MOST: usize = 8;

/// Every job.
pub const ALL: Only = Only(Vec::new());

impl Only {
    /// No jobs: all of them.
    pub fn of(jobs: impl Iterator<Item = u32>) -> Self {
        let found: Vec<_> =
            jobs.take(MOST + 1).map(|id| Finder::new(&id.to_string()).into_owned()).collect();
        Only(if found.len() > MOST { Vec::new() } else { found })
    }

    /// Whether a line may be of one of them.
    pub fn may_be(&self, line: &[u8]) -> bool {
        self.0.is_empty() || self.0.iter().any(|f| f.find(line).is_some())
    }
}

/// Calls `each` for every record of a file that may be of one of the jobs.
pub fn each_record(
    path: &Path,
    only: &Only,
    damage: &mut Damage,
    each: impl FnMut(&Record),
) -> Result<(), String> {
    let name = path.display().to_string();
    let words = |e: io::Error| format!("{name}: {}", os_words(&e));
    let file = File::open(path).map_err(words)?;
    records(BufReader::with_capacity(BUFFER, file), &name, only, damage, each).map_err(words)
}

/// Calls `each` for every record of a stream that may be of one of the jobs.
pub fn records(
    from: impl BufRead,
    name: &str,
    only: &Only,
    damage: &mut Damage,
    mut each: impl FnMut(&Record),
) -> io::Result<()> {
    lines(from, name, damage, &mut |line| match only.may_be(line) {
        true => read_record(line).map(|rec| each(&rec)),
        false => Ok(()),
    })
}

/// Calls `each` for every line that is whole and may be a record; what it cannot read is noted.
/// Lines are handed out where they lie in the buffer; only one that reaches over its end is put
/// together.
pub fn lines(
    mut from: impl BufRead,
    name: &str,
    damage: &mut Damage,
    each: &mut dyn FnMut(&[u8]) -> Result<(), RecordError>,
) -> io::Result<()> {
    // The beginning of a line whose end was not yet read; `endless`: it was too long to keep.
    let (mut part, mut endless, mut number) = (Vec::new(), false, 0);
    loop {
        let buf = match from.fill_buf() {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            done => done?,
        };
        if buf.is_empty() {
            return Ok(());
        }
        let (len, mut rest) = (buf.len(), buf);
        while let Some(end) = memchr(b'\n', rest) {
            let (line, behind) = rest.split_at(end + 1);
            rest = behind;
            number += 1;
            let whole = match (endless, part.is_empty()) {
                (false, true) if line.len() <= MAX_RECORD => Some(line),
                (false, false) if part.len() + line.len() <= MAX_RECORD => {
                    part.extend_from_slice(line);
                    Some(&part[..])
                }
                _ => None,
            };
            match whole {
                None => damage.add(name, number, &"longer than any record"),
                Some([b'#', ..]) => {}
                Some(line) if line.trim_ascii().is_empty() => {}
                Some(line) => {
                    if let Err(why) = each(line) {
                        damage.add(name, number, &why);
                    }
                }
            }
            part.clear();
            endless = false;
        }
        endless |= part.len() + rest.len() > MAX_RECORD;
        match endless {
            true => part.clear(),
            false => part.extend_from_slice(rest),
        }
        from.consume(len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lsf::log::codec::write_record;
    use lsf::model::event::Event;

    #[test]
    fn options_choose_the_range_of_log_files() {
        let dir = std::env::temp_dir().join(format!("lsf-bhist-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        for name in ["lsb.events", "lsb.events.1", "lsb.events.2", "lsb.events.4"] {
            std::fs::write(dir.join(name), "").unwrap();
        }
        let names = |text: &str| {
            let files = Range::parse(text).unwrap().files(&dir);
            let name = |p: &PathBuf| p.file_name().unwrap().to_string_lossy().into_owned();
            files.iter().map(name).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names("1"), "lsb.events");
        assert_eq!(names("2"), "lsb.events.1 lsb.events");
        assert_eq!(names("0"), "lsb.events.2 lsb.events.1 lsb.events");
        assert_eq!(names("9"), "lsb.events.2 lsb.events.1 lsb.events");
        assert_eq!(names("1, 2"), "lsb.events.2 lsb.events.1");
        for bad in ["", "x", "-1", "2,1", "1,"] {
            assert_eq!(Range::parse(bad), None, "{bad}");
        }
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn bad_lines_are_named_and_a_torn_tail_is_not() {
        let mut log = b"#80    \n".to_vec();
        let event = Event::JobClean { at: lsf::model::JobRef { job: 7, idx: 0 } };
        let rec = Record { time: 1, event };
        write_record(&rec, &mut log);
        log.extend_from_slice(b"garbage\n\n");
        write_record(&rec, &mut log);
        log.extend_from_slice(b"\"JOB_CLEAN\" \"10.1\" 1");
        let (mut seen, mut damage) = (0, Damage::default());
        records(&log[..], "f", &ALL, &mut damage, |r| {
            assert_eq!(r, &rec);
            seen += 1;
        })
        .unwrap();
        assert_eq!((seen, damage.lines), (2, 1));
        assert_eq!(damage.named, ["f: line 3: not a record; ignored"]);
        // A line of another job is not looked at.
        for (job, count) in [(7, 2), (8, 0)] {
            let (mut seen, mut damage) = (0, Damage::default());
            let only = Only::of([job].into_iter());
            records(&log[..], "f", &only, &mut damage, |_| seen += 1).unwrap();
            assert_eq!((seen, damage.lines), (count, 0), "{job}");
        }
    }

    /// A line is handed out whole and once, at every size of the buffer.
    #[test]
    fn lines_that_reach_over_the_end_of_the_buffer() {
        let text = b"# head\nfirst line\n\n  \nsecond\nthird, longer than most\nopen";
        for size in 1..text.len() + 2 {
            let (mut got, mut damage) = (Vec::new(), Damage::default());
            let mut each = |line: &[u8]| {
                got.push(String::from_utf8_lossy(line).into_owned());
                Ok(())
            };
            lines(BufReader::with_capacity(size, &text[..]), "f", &mut damage, &mut each).unwrap();
            assert_eq!(got, ["first line\n", "second\n", "third, longer than most\n"], "{size}");
            assert_eq!(damage, Damage::default());
        }
        let mut text = vec![b'x'; MAX_RECORD + 1];
        text.extend_from_slice(b"\nnext\n");
        for size in [1 << 16, 1 << 26] {
            let (mut got, mut damage) = (Vec::new(), Damage::default());
            let mut each = |line: &[u8]| {
                got.extend_from_slice(line);
                Ok(())
            };
            lines(BufReader::with_capacity(size, &text[..]), "f", &mut damage, &mut each).unwrap();
            assert_eq!((&got[..], damage.lines), (&b"next\n"[..], 1), "{size}");
        }
    }
}
