//! The event log of the simulated mbatchd: records travel as their classic text, a commit takes
//! time, a crash keeps what was synced and perhaps part of what was being written.

use super::Rng;
use crate::batch::Recovered;
use crate::log::codec;
use crate::model::ByteStr;
use crate::model::event::{Finish, Record};
use crate::model::job::SpoolRef;
use crate::proto::Msg;
use crate::proto::machine::ConnId;
use std::collections::BTreeMap;

/// The disk side, which outlives mbatchd, and the process side, which does not.
#[derive(Debug, Default)]
pub struct Wal {
    durable: Vec<u8>,
    spool: BTreeMap<(u32, u64), ByteStr>,
    /// Appended, not yet handed to a commit.
    open: Vec<u8>,
    open_spool: Vec<(SpoolRef, ByteStr)>,
    /// Being made durable.
    syncing: Option<(Vec<u8>, Vec<(SpoolRef, ByteStr)>)>,
    /// Replies that wait: for the commit under way, for the next one.
    held_now: Vec<(ConnId, Msg)>,
    held_next: Vec<(ConnId, Msg)>,
    epoch: u64,
    /// Writes fail until told otherwise.
    pub broken: bool,
    /// Accounting records by element.
    pub acct: BTreeMap<(u32, u32, u32), u32>,
}

impl Wal {
    pub fn append(&mut self, rec: &Record) {
        codec::write_record(rec, &mut self.open);
        if self.open.last() != Some(&b'\n') {
            self.open.push(b'\n');
        }
    }

    pub fn spool(&mut self, at: SpoolRef, data: ByteStr) {
        self.open_spool.push((at, data));
    }

    pub fn account(&mut self, f: &Finish) {
        *self.acct.entry((f.at.job, f.at.idx, f.attempt)).or_default() += 1;
    }

    /// Holds a reply, or gives it back where nothing has to become durable first.
    pub fn hold(&mut self, conn: ConnId, msg: Msg) -> Option<Msg> {
        if !self.open.is_empty() || !self.open_spool.is_empty() {
            self.held_next.push((conn, msg));
            return None;
        }
        if self.syncing.is_some() {
            self.held_now.push((conn, msg));
            return None;
        }
        Some(msg)
    }

    /// Starts a commit if there is something and none is under way.
    pub fn seal(&mut self) -> bool {
        if self.syncing.is_some() || (self.open.is_empty() && self.open_spool.is_empty()) {
            return false;
        }
        let spool = std::mem::take(&mut self.open_spool);
        self.syncing = Some((std::mem::take(&mut self.open), spool));
        self.held_now = std::mem::take(&mut self.held_next);
        true
    }

    /// The commit is through: what waited for it may go. `None`: it failed.
    pub fn committed(&mut self) -> Option<Vec<(ConnId, Msg)>> {
        if self.broken {
            return None;
        }
        if let Some((text, spool)) = self.syncing.take() {
            self.durable.extend_from_slice(&text);
            self.spool.extend(spool.into_iter().map(|(at, d)| ((at.spool, at.at), d)));
        }
        Some(std::mem::take(&mut self.held_now))
    }

    pub fn blob(&self, at: SpoolRef) -> Option<ByteStr> {
        self.spool.get(&(at.spool, at.at)).cloned()
    }

    /// mbatchd died. What was being written may be there in part.
    pub fn crash(&mut self, rng: &mut Rng) {
        if let Some((text, spool)) = self.syncing.take() {
            let keep = match rng.below(3) {
                0 => 0,
                1 => text.len(),
                _ => rng.below(text.len() as u64 + 1) as usize,
            };
            // The spool is synced before the records that point into it.
            if keep > 0 {
                self.spool.extend(spool.into_iter().map(|(at, d)| ((at.spool, at.at), d)));
            }
            self.durable.extend_from_slice(&text[..keep]);
        }
        self.void();
    }

    /// Forgets all that is not durable; cuts a torn tail.
    pub fn void(&mut self) {
        self.open.clear();
        self.open_spool.clear();
        self.syncing = None;
        self.held_now.clear();
        self.held_next.clear();
        let whole = self.durable.iter().rposition(|b| *b == b'\n').map_or(0, |i| i + 1);
        self.durable.truncate(whole);
    }

    /// What a starting mbatchd finds.
    pub fn recover(&mut self, new_run: bool) -> Result<Recovered, String> {
        if new_run {
            self.epoch += 1;
        }
        let mut found = Recovered { epoch: self.epoch, ..Recovered::default() };
        for line in self.durable.split(|b| *b == b'\n').filter(|l| !l.is_empty()) {
            let rec = codec::read_record(line);
            let text = || String::from_utf8_lossy(line).into_owned();
            found.records.push(rec.map_err(|e| format!("{e} in {}", text()))?);
        }
        for ((spool, at), data) in &self.spool {
            let end = at + data.len() as u64;
            (found.spool, found.spool_end) = (found.spool, found.spool_end).max((*spool, end));
        }
        Ok(found)
    }
}
