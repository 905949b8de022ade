//! Reads JOB_NEW records that differ from one read before in nothing but their numbers: time,
//! job, submission time, request and the place of the environment. Of a million jobs pending very
//! many do, and comparing what is fixed is ten times as fast as going over a hundred fields.
//!
//! Invariant: what is read so is what [`read_record`] reads from the same line. Where anything but
//! those numbers differs, or one of them looks unusual, that is asked.

use super::new::get_place;
use super::read::read_record;
use super::record::job_of;
use super::record_error::RecordError;
use super::text::{Field, Fields, find_tail};
use crate::model::event::{Event, JobNew, Record};
use crate::model::job::SpoolRef;
use std::ops::Range;

/// Fields of the record, from 1.
const TIME: usize = 3;
const JOB: usize = 4;
const SUBMIT_TIME: usize = 8;
const JOB_FILE: usize = 38;

/// The text in a gap between two fixed stretches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gap {
    Time,
    Job,
    SubmitTime,
    Request,
    Env,
}

/// The record that others are held against.
#[derive(Debug, Default)]
pub struct SimilarSubmissions {
    /// The line of the record, without the newline.
    line: Vec<u8>,
    /// The places of the gaps in the line, ascending.
    gaps: Vec<(Gap, Range<usize>)>,
    new: JobNew,
}

/// Digits at the beginning: their value, and how many.
fn number(text: &[u8]) -> Option<(u64, usize)> {
    let len = text.iter().take_while(|b| b.is_ascii_digit()).count();
    // no sum of 18 overflows
    let value = text[..len].iter().fold(0, |n, b| n * 10 + u64::from(b - b'0'));
    (1..=18).contains(&len).then_some((value, len))
}

/// A word of plain characters up to a quote.
fn word(text: &[u8]) -> Option<&str> {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b':' | b'.');
    let len = text.iter().take_while(|b| plain(b)).count();
    std::str::from_utf8(&text[..len]).ok()
}

impl SimilarSubmissions {
    /// Reads a line.
    pub fn read(&self, line: &[u8]) -> Result<Record, RecordError> {
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        self.as_before(text).map_or_else(|| read_record(line), Ok)
    }

    fn as_before(&self, mut rest: &[u8]) -> Option<Record> {
        let (mut time, mut from) = (None, 0);
        let (mut job, mut submit_time) = (None, None);
        let mut request = None;
        let mut env = SpoolRef::default();
        for (gap, at) in &self.gaps {
            rest = rest.strip_prefix(&self.line[from..at.start])?;
            from = at.end;
            let len = match gap {
                Gap::Request => {
                    let text = word(rest)?;
                    request = Some(text);
                    text.len()
                }
                Gap::Env => {
                    let text = word(rest)?;
                    env = get_place(text.as_bytes());
                    text.len()
                }
                _ => {
                    let (value, len) = number(rest)?;
                    let before = match gap {
                        Gap::Time => time.replace(value),
                        Gap::Job => job.replace(value),
                        _ => submit_time.replace(value),
                    };
                    // the name of the job file says two of them again
                    if before.is_some_and(|before| before != value) {
                        return None;
                    }
                    len
                }
            };
            rest = &rest[len..];
        }
        if self.gaps.is_empty() || rest != &self.line[from..] {
            return None;
        }
        let new = JobNew {
            job: job?.try_into().ok()?,
            submit_time: submit_time?.try_into().ok()?,
            user: self.new.user.clone(),
            spec: self.new.spec.clone(),
            request: request.unwrap_or_default().to_string(),
            env,
            ..self.new
        };
        Some(Record { time: time?.try_into().ok()?, event: Event::JobNew(Box::new(new)) })
    }

    /// Holds the next lines against this one, which was read as `new`.
    pub fn learn(&mut self, line: &[u8], new: &JobNew) {
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        self.gaps.clear();
        self.line.clear();
        self.line.extend_from_slice(text);
        self.new = new.clone();
        let Some(gaps) = gaps_of(text, new) else { return };
        self.gaps = gaps;
        // a record that does not read as itself is no pattern
        let same = |r: &Record| job_of(&r.event).job == new.job && is(r, new);
        if !self.as_before(text).is_some_and(|r| same(&r)) {
            self.gaps.clear();
        }
    }
}

fn is(record: &Record, new: &JobNew) -> bool {
    matches!(&record.event, Event::JobNew(n) if **n == *new)
}

/// The gaps of a line of our own making; `None`: it is not laid out so.
fn gaps_of(line: &[u8], new: &JobNew) -> Option<Vec<(Gap, Range<usize>)>> {
    let mut fields = Fields::new(line);
    // what a user named `lsf.request` does not stand in the pairs at the end
    let pairs = find_tail(&fields)?.len();
    let mut all = Vec::new();
    while let Some(field) = fields.field().ok()? {
        let (text, end) = match field {
            Field::Bare(text) => (text, fields.pos()),
            Field::Quoted(text, _) => (text, fields.pos() - 1),
        };
        all.push((text, end - text.len()..end));
    }
    let field = |n: usize| all.get(n - 1).cloned();
    let (_, time) = field(TIME)?;
    let (_, job) = field(JOB)?;
    let (_, submit) = field(SUBMIT_TIME)?;
    let (name, file) = field(JOB_FILE)?;
    let dot = file.start + name.iter().position(|b| *b == b'.')?;
    let mut gaps = vec![
        (Gap::Time, time),
        (Gap::Job, job),
        (Gap::SubmitTime, submit),
        (Gap::SubmitTime, file.start..dot),
        (Gap::Job, dot + 1..file.end),
    ];
    let tail = &all[all.len().checked_sub(2 * pairs)?..];
    for pair in tail.chunks_exact(2) {
        let (value, at) = pair[1].clone();
        match pair[0].0 {
            b"lsf.request" if value == new.request.as_bytes() => gaps.push((Gap::Request, at)),
            b"lsf.env" if get_place(value) == new.env => gaps.push((Gap::Env, at)),
            _ => {}
        }
    }
    Some(gaps)
}
