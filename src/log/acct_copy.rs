//! The new file that a takeover gives a large lsb.acct (`fence`): copied in slices between commits,
//! so that no start takes long. Until the copy has its name the accounting records of this run wait
//! in memory, and the file is only read: an earlier run may still write at its end.
//!
//! Bytes before [`AcctCopy::end`] are changed by nobody. Without room the copy is tried again; what
//! waits until then is derived again by the next start, as is what a crash takes.

use super::ACCT;
use super::disk::{Disk, FileId, PUBLIC, read_full};
use super::fence;
use super::owner;
use super::store::{Fail, Store, Tail, said};
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
}

impl<D: Disk> Store<D> {
    /// Has lsb.acct yet to get its new file?
    pub fn is_copying_acct(&self) -> bool {
        self.acct_copy.is_some()
    }

    /// Copies a slice of lsb.acct. After [`Fail::Write`] the copy is to be begun again, later.
    pub fn copy_acct(&mut self) -> Result<(), Fail> {
        let Some(mut copy) = self.acct_copy.take() else { return Ok(()) };
        let done = self.copy_slice(&mut copy);
        match &done {
            Ok(true) => drop(self.flush_acct()),
            Ok(false) => self.acct_copy = Some(copy),
            Err(_) => {
                self.discard_acct(&copy);
                self.acct_copy = Some(AcctCopy::new(self.run(), copy.end));
            }
        }
        done.map(|_| ())
    }

    fn discard_acct(&mut self, copy: &AcctCopy) {
        if let Some(to) = copy.to {
            self.disk.close(to);
            // what cannot be removed now is removed at the next start
            let _ = self.disk.remove(&copy.temp);
        }
    }

    /// `true` when the copy has its name.
    fn copy_slice(&mut self, copy: &mut AcctCopy) -> Result<bool, Fail> {
        let to = match copy.to {
            Some(to) => to,
            None => {
                fence::remove(&mut self.disk, &copy.temp).map_err(said(ACCT))?;
                self.disk.create_new(&copy.temp, PUBLIC).map_err(said(ACCT))?
            }
        };
        copy.to = Some(to);
        let mut buf = vec![0; SLICE.min((copy.end - copy.at) as usize)];
        let from = self.acct.file;
        let got = read_full(&mut self.disk, from, copy.at, &mut buf).map_err(said(ACCT))?;
        if got < buf.len() {
            return Err(Fail::Write(format!("{ACCT}: shorter than it was")));
        }
        self.disk.write_at(to, copy.at, &buf).map_err(said(ACCT))?;
        copy.at += got as u64;
        if copy.at < copy.end {
            return Ok(false);
        }
        // a copy without a name is no state: another one can be made
        self.disk.sync(to).map_err(said(ACCT))?;
        self.check_owner_now()?;
        match self.disk.rename(&copy.temp, ACCT) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                return Err(Fail::Fatal(format!("{ACCT}: {}", owner::taken())));
            }
            renamed => renamed.map_err(said(ACCT))?,
        }
        self.disk.close(from);
        self.acct = Tail { file: to, len: copy.end };
        // without it a loss of power leaves the old file, whose records are the same so far
        let _ = self.disk.sync_dir("");
        Ok(true)
    }
}
