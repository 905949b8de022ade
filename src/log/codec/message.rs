//! JOB_EXT_MSG and JOB_ATTA_DATA: the external messages of a job and the data that came with them
//! (lsb.events(5)).

use super::record_error::RecordError;
use super::text::{Fields, Tail, find_tail, nums, put_int, put_str, put_u64};
use crate::model::JobRef;
use crate::model::event::{Event, JobAttachment, JobMessage};
use crate::model::job::SpoolRef;

/// jobId idx msgIdx userId dataSize postTime dataStatus desc userName.
pub(super) fn put_message(out: &mut Vec<u8>, m: &JobMessage) {
    for n in [m.at.job, m.at.idx, m.index, m.uid] {
        put_int(out, n);
    }
    put_u64(out, m.size);
    put_int(out, m.post_time);
    put_int(out, m.status);
    put_str(out, m.text.as_bytes());
    put_str(out, m.user.as_bytes());
    let mut tail = Tail::begin(out);
    if !m.level.is_empty() {
        tail.text(out, "lsf.level", m.level.as_bytes());
    }
    tail.end(out);
}

pub(super) fn get_message(f: &mut Fields<'_>) -> Result<Event, RecordError> {
    let at = JobRef { job: f.num()?, idx: f.num()? };
    let (index, uid, size) = (f.num()?, f.num()?, f.num()?);
    let (post_time, status) = (f.num()?, f.num()?);
    let (text, user) = (f.text()?, f.text()?);
    let tail = find_tail(f).unwrap_or_default();
    let level = tail.iter().find(|(key, _)| &**key == b"lsf.level");
    let level = level.map_or(String::new(), |(_, v)| String::from_utf8_lossy(v).into_owned());
    let m = JobMessage { at, index, uid, size, post_time, status, text, user, level };
    Ok(Event::JobMessage(Box::new(m)))
}

/// jobId idx msgIdx dataSize dataStatus fileName.
pub(super) fn put_attachment(out: &mut Vec<u8>, a: &JobAttachment) {
    for n in [a.at.job, a.at.idx, a.index] {
        put_int(out, n);
    }
    put_u64(out, a.size);
    put_int(out, a.status);
    put_str(out, a.file.as_bytes());
    let mut tail = Tail::begin(out);
    if a.data.len > 0 {
        let place = [u64::from(a.data.spool), a.data.at, u64::from(a.data.len), u64::from(a.crc)];
        tail.nums(out, "lsf.data", b' ', &place);
    }
    tail.end(out);
}

pub(super) fn get_attachment(f: &mut Fields<'_>) -> Result<Event, RecordError> {
    let at = JobRef { job: f.num()?, idx: f.num()? };
    let (index, size, status) = (f.num()?, f.num()?, f.num()?);
    let file = f.text()?;
    let tail = find_tail(f).unwrap_or_default();
    let place = tail.iter().find(|(key, _)| &**key == b"lsf.data");
    let (data, crc) = match place.and_then(|(_, v)| nums(v, ' ')).as_deref() {
        Some(&[spool, at, len, crc]) => {
            let small = |n: u64| u32::try_from(n).unwrap_or(0);
            (SpoolRef { spool: small(spool), at, len: small(len) }, small(crc))
        }
        _ => Default::default(),
    };
    let a = JobAttachment { at, index, size, status, file, data, crc };
    Ok(Event::JobAttachment(Box::new(a)))
}
