//! The new file that a takeover gives a large lsb.acct (`fence`): copied in slices between commits,
//! so that no start takes long. Until the copy has its name the accounting records of this run wait
//! in memory, and the file is only read: an earlier run may still write at its end.
//!
//! Bytes before [`AcctCopy::end`] are changed by nobody. Without room the copy is tried again; what
//! waits until then is derived again by the next start, as is what a crash takes.

use super::ACCT;
use super::disk::{Disk, FileId, PUBLIC, Tail, read_full, remove};
use super::fail::{Fail, said};
use super::fence;
use super::log_files::LogFiles;
use super::owner;
use std::io;

/// lsb.acct is copied before the start up to this length, bytes, and between commits beyond it.
pub const MAX_AT_START: u64 = 256 << 20;
/// Bytes copied between two commits.
const SLICE: usize = 4 << 20;

/// A copy that is being made.
pub(super) struct AcctCopy {
    temp: String,
    /// There from the first slice on.
    to: Option<FileId>,
    at: u64,
    /// Length of the whole lines when this run began.
    end: u64,
}

impl AcctCopy {
    pub(super) fn new(run: &str, end: u64) -> AcctCopy {
        AcctCopy { temp: fence::copy_name(run, ACCT), to: None, at: 0, end }
    }

    /// Copies a slice of lsb.acct; `true` when the copy has its name. After a failure it begins
    /// again.
    pub(super) fn slice<D: Disk>(&mut self, files: &mut LogFiles<D>) -> Result<bool, Fail> {
        let done = self.copy_slice(files);
        if done.is_err() {
            if let Some(to) = self.to {
                files.disk.close(to);
                // what cannot be removed now is removed at the next start
                let _ = files.disk.remove(&self.temp);
            }
            *self = AcctCopy::new(files.run(), self.end);
        }
        done
    }

    fn copy_slice<D: Disk>(&mut self, files: &mut LogFiles<D>) -> Result<bool, Fail> {
        let to = match self.to {
            Some(to) => to,
            None => {
                remove(&mut files.disk, &self.temp).map_err(said(ACCT))?;
                files.disk.create_new(&self.temp, PUBLIC).map_err(said(ACCT))?
            }
        };
        self.to = Some(to);
        let mut buf = vec![0; SLICE.min((self.end - self.at) as usize)];
        let from = files.acct.file;
        let got = read_full(&mut files.disk, from, self.at, &mut buf).map_err(said(ACCT))?;
        if got < buf.len() {
            return Err(Fail::Write(format!("{ACCT}: shorter than it was")));
        }
        files.disk.write_at(to, self.at, &buf).map_err(said(ACCT))?;
        self.at += got as u64;
        if self.at < self.end {
            return Ok(false);
        }
        // a copy without a name is no state: another one can be made
        files.disk.sync(to).map_err(said(ACCT))?;
        files.check_owner_now()?;
        match files.disk.rename(&self.temp, ACCT) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                return Err(Fail::Fatal(format!("{ACCT}: {}", owner::taken())));
            }
            renamed => renamed.map_err(said(ACCT))?,
        }
        files.disk.close(from);
        files.acct = Tail { file: to, len: self.end };
        // without it a loss of power leaves the old file, whose records are the same so far
        let _ = files.disk.sync_dir("");
        Ok(true)
    }
}
