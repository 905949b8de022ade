//! A disk in memory that behaves as badly as a real one may: at a crash what was not synced is
//! lost, kept or torn, as a seed says; writes and syncs fail on order; bytes can be flipped and
//! blocks zeroed. For the simulator and the tests.
//!
//! Invariant: what a successful sync covered survives every crash.

use super::disk::{Disk, FileId};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Size of the blocks in which a torn write survives, bytes: a sector.
pub const BLOCK: usize = 512;

/// The faults, until they are changed.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Every write fails with this errno.
    pub fail_writes: Option<i32>,
    /// The number of bytes that still fit on the disk; then writes fail with ENOSPC (the part that
    /// fits is written).
    pub bytes_left: Option<u64>,
    /// Names that begin so are on a file system of their own, which is full.
    pub full: Option<&'static str>,
    /// The write with this number (see [`SimDisk::writes`]) fails once with EIO, half done.
    pub eio_at_write: Option<u64>,
    /// The sync with this number fails once. As on Linux, what it should have covered can still
    /// be read and no later sync covers it: only what is written anew is.
    pub fail_at_sync: Option<u64>,
    /// The process dies at this operation (writes, truncations, syncs and changes of names are
    /// counted, see [`SimDisk::ops`]): it and all later ones fail until [`SimDisk::crash`].
    pub die_at_op: Option<u64>,
    /// The operation with this number, counted likewise, fails once with ENOSPC and does nothing.
    pub fail_at_op: Option<u64>,
    /// The file server is away: nothing can be opened, read, listed or changed.
    pub away: bool,
}

/// How a crash treats what was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// The process died, the machine did not: everything written is there.
    Process,
    /// The machine lost power: a prefix of the unsynced writes to each file survives, the last
    /// of it torn.
    Power(u64),
    /// The machine lost power; of the last write any blocks survive, the others are zeroed.
    PowerTorn(u64),
}

#[derive(Clone, Debug)]
enum DiskChange {
    Write { at: u64, data: Vec<u8> },
    Truncate(u64),
}

#[derive(Clone, Debug, Default)]
struct Inode {
    now: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<DiskChange>,
}

#[derive(Clone, Debug)]
enum NameChange {
    Create(String, usize),
    Rename(String, String),
    Remove(String),
    /// A second name for what the first has.
    Link(String, String),
}

#[derive(Default)]
struct Inner {
    inodes: Vec<Inode>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    pending_names: Vec<NameChange>,
    open: Vec<Option<usize>>,
    faults: Faults,
    writes: u64,
    syncs: u64,
    ops: u64,
}

/// The disk; clones are the same disk.
#[derive(Clone, Default)]
pub struct SimDisk(Arc<Mutex<Inner>>);

/// A small generator of our own (splitmix64), so that a seed means the same for ever.
fn next(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *seed;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn apply(data: &mut Vec<u8>, change: &DiskChange) {
    match change {
        DiskChange::Write { at, data: new } => {
            let end = *at as usize + new.len();
            if data.len() < end {
                data.resize(end, 0);
            }
            data[*at as usize..end].copy_from_slice(new);
        }
        DiskChange::Truncate(len) => data.resize(*len as usize, 0),
    }
}

fn apply_name(names: &mut BTreeMap<String, usize>, change: &NameChange) {
    match change {
        NameChange::Create(name, inode) => {
            names.insert(name.clone(), *inode);
        }
        NameChange::Rename(from, to) => {
            if let Some(inode) = names.remove(from) {
                names.insert(to.clone(), inode);
            }
        }
        NameChange::Remove(name) => {
            names.remove(name);
        }
        NameChange::Link(from, to) => {
            if let Some(inode) = names.get(from).copied() {
                names.insert(to.clone(), inode);
            }
        }
    }
}

fn not_found() -> io::Error {
    io::ErrorKind::NotFound.into()
}

fn errno(code: i32) -> io::Error {
    io::Error::from_raw_os_error(code)
}

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

impl Inner {
    fn reachable(&self) -> io::Result<()> {
        if self.faults.away { Err(errno(EIO)) } else { Ok(()) }
    }

    fn inode(&mut self, file: FileId) -> io::Result<&mut Inode> {
        self.reachable()?;
        let inode = self.open.get(file.0).copied().flatten();
        let inode = inode.ok_or_else(|| io::Error::other("the file is not open"))?;
        Ok(&mut self.inodes[inode])
    }

    fn is_in(&self, file: FileId, dir: &str) -> bool {
        let inode = self.open.get(file.0).copied().flatten();
        self.names.iter().any(|(name, of)| Some(*of) == inode && name.starts_with(dir))
    }

    /// Counts an operation that changes something; fails where the process is to die.
    fn op(&mut self) -> io::Result<()> {
        self.reachable()?;
        self.ops += 1;
        match self.faults.die_at_op {
            Some(n) if self.ops >= n => return Err(io::Error::other("the process died")),
            _ => {}
        }
        match self.faults.fail_at_op.take_if(|n| *n == self.ops) {
            Some(_) => Err(errno(ENOSPC)),
            None => Ok(()),
        }
    }

    fn name(&mut self, change: NameChange) -> io::Result<()> {
        self.op()?;
        apply_name(&mut self.names, &change);
        self.pending_names.push(change);
        Ok(())
    }

    fn write(&mut self, file: FileId, at: u64, data: &[u8]) {
        if let Ok(inode) = self.inode(file)
            && !data.is_empty()
        {
            let change = DiskChange::Write { at, data: data.to_vec() };
            apply(&mut inode.now, &change);
            inode.pending.push(change);
        }
    }
}

/// The surviving part of a file: a prefix of the changes, the last of them torn.
fn survive(inode: &mut Inode, seed: &mut u64, blocks: bool) {
    let keep = next(seed) as usize % (inode.pending.len() + 1);
    for change in &inode.pending[..keep] {
        apply(&mut inode.durable, change);
    }
    if let Some(DiskChange::Write { at, data }) = inode.pending.get(keep) {
        let mut data = data.clone();
        if blocks && next(seed).is_multiple_of(2) {
            let mut from = 0;
            while from < data.len() {
                let to = (from + BLOCK - (*at as usize + from) % BLOCK).min(data.len());
                if next(seed).is_multiple_of(2) {
                    // as if it had not been written: what was there stays, new blocks are zeros
                    let there = inode.durable.get(*at as usize + from..).unwrap_or_default();
                    let kept = there.len().min(to - from);
                    data[from..from + kept].copy_from_slice(&there[..kept]);
                    data[from + kept..to].fill(0);
                }
                from = to;
            }
        } else {
            data.truncate(next(seed) as usize % (data.len() + 1));
        }
        apply(&mut inode.durable, &DiskChange::Write { at: *at, data });
    }
}

impl SimDisk {
    pub fn new() -> SimDisk {
        SimDisk::default()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets what goes wrong from now on.
    pub fn set_faults(&self, faults: Faults) {
        self.lock().faults = faults;
    }

    /// Writes so far; the next one has this number.
    pub fn writes(&self) -> u64 {
        self.lock().writes
    }

    /// Syncs of files so far; the next one has this number.
    pub fn syncs(&self) -> u64 {
        self.lock().syncs
    }

    /// Operations so far that change something; the next one has this number plus 1.
    pub fn ops(&self) -> u64 {
        self.lock().ops
    }

    /// The process is gone; `how` says what is left. All faults end, nothing is open.
    pub fn crash(&self, how: Crash) {
        let mut inner = self.lock();
        let inner = &mut *inner;
        inner.open.clear();
        inner.faults = Faults::default();
        let (mut seed, blocks) = match how {
            Crash::Process => return,
            Crash::Power(seed) => (seed, false),
            Crash::PowerTorn(seed) => (seed, true),
        };
        for inode in &mut inner.inodes {
            survive(inode, &mut seed, blocks);
            inode.pending.clear();
            inode.now = inode.durable.clone();
        }
        let keep = next(&mut seed) as usize % (inner.pending_names.len() + 1);
        for change in &inner.pending_names[..keep] {
            apply_name(&mut inner.durable_names, change);
        }
        inner.pending_names.clear();
        inner.names = inner.durable_names.clone();
    }

    /// The system has written all that waited: a later crash does not take it.
    pub fn write_back(&self) {
        let mut inner = self.lock();
        let inner = &mut *inner;
        for inode in &mut inner.inodes {
            inode.pending.clear();
            inode.durable = inode.now.clone();
        }
        inner.pending_names.clear();
        inner.durable_names = inner.names.clone();
    }

    /// A copy of the whole disk as it stands, for trying several fates of one moment.
    pub fn fork(&self) -> SimDisk {
        let from = self.lock();
        SimDisk(Arc::new(Mutex::new(Inner {
            inodes: from.inodes.clone(),
            names: from.names.clone(),
            durable_names: from.durable_names.clone(),
            pending_names: from.pending_names.clone(),
            open: from.open.clone(),
            faults: from.faults.clone(),
            writes: from.writes,
            syncs: from.syncs,
            ops: from.ops,
        })))
    }

    /// The bytes of a file as they stand.
    pub fn get(&self, name: &str) -> Option<Vec<u8>> {
        let inner = self.lock();
        inner.names.get(name).map(|inode| inner.inodes[*inode].now.clone())
    }

    /// Puts a file there, durable.
    pub fn put(&self, name: &str, data: &[u8]) {
        let mut inner = self.lock();
        let inode = inner.inodes.len();
        let data = data.to_vec();
        inner.inodes.push(Inode { now: data.clone(), durable: data, pending: Vec::new() });
        inner.names.insert(name.to_string(), inode);
        inner.durable_names.insert(name.to_string(), inode);
    }

    /// Damages a file where it stands; what is left of it is durable.
    pub fn damage(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut inner = self.lock();
        if let Some(inode) = inner.names.get(name).copied() {
            let inode = &mut inner.inodes[inode];
            change(&mut inode.now);
            inode.durable = inode.now.clone();
            inode.pending.clear();
        }
    }
}

impl Disk for SimDisk {
    fn open(&mut self, name: &str, create: Option<u32>) -> io::Result<FileId> {
        let mut inner = self.lock();
        inner.reachable()?;
        let inode = match (inner.names.get(name), create) {
            (Some(inode), _) => *inode,
            (None, None) => return Err(not_found()),
            (None, Some(_)) => {
                let inode = inner.inodes.len();
                inner.name(NameChange::Create(name.to_string(), inode))?;
                inner.inodes.push(Inode::default());
                inode
            }
        };
        let slot = inner.open.iter().position(Option::is_none).unwrap_or(inner.open.len());
        if slot == inner.open.len() {
            inner.open.push(None);
        }
        inner.open[slot] = Some(inode);
        Ok(FileId(slot))
    }

    fn create_new(&mut self, name: &str, mode: u32) -> io::Result<FileId> {
        if self.lock().names.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.open(name, Some(mode))
    }

    fn close(&mut self, file: FileId) {
        if let Some(slot) = self.lock().open.get_mut(file.0) {
            *slot = None;
        }
    }

    fn len(&mut self, file: FileId) -> io::Result<u64> {
        Ok(self.lock().inode(file)?.now.len() as u64)
    }

    fn read_at(&mut self, file: FileId, at: u64, buf: &mut [u8]) -> io::Result<usize> {
        let mut inner = self.lock();
        let data = &inner.inode(file)?.now;
        let from = (at as usize).min(data.len());
        let n = buf.len().min(data.len() - from);
        buf[..n].copy_from_slice(&data[from..from + n]);
        Ok(n)
    }

    fn write_at(&mut self, file: FileId, at: u64, data: &[u8]) -> io::Result<()> {
        let mut inner = self.lock();
        inner.inode(file)?;
        let number = inner.writes;
        inner.writes += 1;
        if let Err(e) = inner.op() {
            // how far it came before the process died is up to the number
            let part = next(&mut inner.ops.clone()) as usize % (data.len() + 1);
            if inner.faults.die_at_op == Some(inner.ops) {
                inner.write(file, at, &data[..part]);
            }
            return Err(e);
        }
        if let Some(code) = inner.faults.fail_writes {
            return Err(errno(code));
        }
        if inner.faults.eio_at_write == Some(number) {
            inner.faults.eio_at_write = None;
            inner.write(file, at, &data[..data.len() / 2]);
            return Err(errno(EIO));
        }
        if inner.faults.full.is_some_and(|dir| inner.is_in(file, dir)) {
            return Err(errno(ENOSPC));
        }
        let fits = inner.faults.bytes_left.map_or(data.len(), |n| data.len().min(n as usize));
        if let Some(left) = &mut inner.faults.bytes_left {
            *left -= fits as u64;
        }
        inner.write(file, at, &data[..fits]);
        if fits < data.len() { Err(errno(ENOSPC)) } else { Ok(()) }
    }

    fn truncate(&mut self, file: FileId, len: u64) -> io::Result<()> {
        let mut inner = self.lock();
        inner.op()?;
        let inode = inner.inode(file)?;
        let change = DiskChange::Truncate(len);
        apply(&mut inode.now, &change);
        inode.pending.push(change);
        Ok(())
    }

    fn sync(&mut self, file: FileId) -> io::Result<()> {
        let mut inner = self.lock();
        inner.op()?;
        let number = inner.syncs;
        inner.syncs += 1;
        if inner.faults.fail_at_sync == Some(number) {
            inner.faults.fail_at_sync = None;
            inner.inode(file)?.pending.clear();
            return Err(errno(EIO));
        }
        let inode = inner.inode(file)?;
        for change in std::mem::take(&mut inode.pending) {
            apply(&mut inode.durable, &change);
        }
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        let mut inner = self.lock();
        inner.reachable()?;
        if !inner.names.contains_key(from) {
            return Err(not_found());
        }
        inner.name(NameChange::Rename(from.to_string(), to.to_string()))
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        let mut inner = self.lock();
        inner.reachable()?;
        if !inner.names.contains_key(name) {
            return Err(not_found());
        }
        inner.name(NameChange::Remove(name.to_string()))
    }

    fn link(&mut self, from: &str, to: &str) -> io::Result<()> {
        let mut inner = self.lock();
        inner.reachable()?;
        if !inner.names.contains_key(from) {
            return Err(not_found());
        }
        if inner.names.contains_key(to) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        inner.name(NameChange::Link(from.to_string(), to.to_string()))
    }

    fn list(&mut self, dir: &str) -> io::Result<Vec<String>> {
        let inner = self.lock();
        inner.reachable()?;
        let prefix = if dir.is_empty() { String::new() } else { format!("{dir}/") };
        let inside = inner.names.keys().filter_map(|name| name.strip_prefix(&prefix));
        Ok(inside.filter(|name| !name.contains('/')).map(str::to_string).collect())
    }

    fn nameless(&mut self, file: FileId) -> io::Result<bool> {
        let inner = self.lock();
        let inode = inner.open.get(file.0).copied().flatten();
        Ok(!inner.names.values().any(|named| Some(*named) == inode))
    }

    fn named(&mut self, file: FileId, name: &str) -> io::Result<bool> {
        let inner = self.lock();
        let inode = inner.open.get(file.0).copied().flatten();
        Ok(inode.is_some() && inner.names.get(name).copied() == inode)
    }

    fn sync_dir(&mut self, _dir: &str) -> io::Result<()> {
        let mut inner = self.lock();
        inner.op()?;
        // as on journalling file systems, earlier changes of names come with it
        for change in std::mem::take(&mut inner.pending_names) {
            apply_name(&mut inner.durable_names, &change);
        }
        Ok(())
    }
}
