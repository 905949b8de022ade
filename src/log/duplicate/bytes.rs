//! Copying and comparing bytes of files on two disks, in slices.

use crate::log::disk::{Disk, FileId, Tail, read_full};
use crate::log::fence::copy_name;
use std::io;

/// Bytes copied or compared at a time.
const SLICE: usize = 1 << 20;

/// Bytes after which a long copy is synced.
const SYNC: u64 = 8 << 20;
/// Bytes at the end of a copied file that may not be what was written: a loss of power tears what
/// was not synced. A copy that goes on compares them.
pub(super) const TORN: u64 = 2 * SYNC;

/// A disk and an open file on it.
pub(super) struct On<'a> {
    pub disk: &'a mut dyn Disk,
    pub file: FileId,
}

/// Appends the bytes from the end of `to` up to `end`; `false` where there were none. The last of
/// them are not synced.
pub(super) fn append(
    from: On<'_>,
    share: &mut dyn Disk,
    to: &mut Tail,
    end: u64,
) -> io::Result<bool> {
    let (before, mut synced) = (to.len, to.len);
    let mut buf = vec![0; SLICE.min(end.saturating_sub(to.len) as usize)];
    while to.len < end {
        let want = buf.len().min((end - to.len) as usize);
        if read_full(from.disk, from.file, to.len, &mut buf[..want])? < want {
            return Err(io::Error::other("the primary file is shorter than it was"));
        }
        share.write_at(to.file, to.len, &buf[..want])?;
        to.len += want as u64;
        if to.len - synced >= SYNC {
            share.sync(to.file)?;
            synced = to.len;
        }
    }
    Ok(to.len > before)
}

/// The place up to which the bytes `at .. end` of two files are the same.
pub(super) fn common(a: On<'_>, b: On<'_>, mut at: u64, end: u64) -> io::Result<u64> {
    let len = SLICE.min(end.saturating_sub(at) as usize);
    let (mut of_a, mut of_b) = (vec![0; len], vec![0; len]);
    while at < end {
        let want = len.min((end - at) as usize);
        let got_a = read_full(a.disk, a.file, at, &mut of_a[..want])?;
        let got_b = read_full(b.disk, b.file, at, &mut of_b[..want])?;
        let same = of_a[..got_a].iter().zip(&of_b[..got_b]).take_while(|(a, b)| a == b).count();
        at += same as u64;
        if same < want {
            break;
        }
    }
    Ok(at)
}

/// The file of a name on another disk, and how it is to be called here.
pub(super) struct Whole<'a> {
    pub from: &'a str,
    pub to: &'a str,
    pub mode: u32,
    /// Bytes to copy; `None`: all.
    pub end: Option<u64>,
}

/// Replaces a file by a copy of another; without a source it is left as it is. The caller makes
/// the name durable.
pub(super) fn replace(
    from: &mut dyn Disk,
    to: &mut dyn Disk,
    run: &str,
    what: &Whole<'_>,
) -> io::Result<()> {
    let source = match from.open(what.from, None) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        open => open?,
    };
    let temp = copy_name(run, what.to);
    let done = copy_to(from, source, to, &temp, what);
    from.close(source);
    done.and_then(|()| to.rename(&temp, what.to))
}

fn copy_to(
    from: &mut dyn Disk,
    source: FileId,
    to: &mut dyn Disk,
    temp: &str,
    what: &Whole<'_>,
) -> io::Result<()> {
    crate::log::disk::remove(to, temp)?;
    let len = from.len(source)?;
    let end = what.end.map_or(len, |end| end.min(len));
    let file = to.create_new(temp, what.mode)?;
    let mut tail = Tail { file, len: 0 };
    let done = append(On { disk: from, file: source }, to, &mut tail, end);
    let done = done.and_then(|_| to.sync(file));
    to.close(file);
    done
}
