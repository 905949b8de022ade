//! The event log of `lims` on a file server: its lock is a lease. A host that the server does not
//! hear of for [`LEASE`] seconds loses the lock, while its mbatchd lives on and knows nothing of
//! that; another one may take it. The log is the code that ships, on a disk in memory.

use lsf::log::batch::Batch;
use lsf::log::fail::Fail;
use lsf::log::recover::{Params, recover};
use lsf::log::simdisk::SimDisk;
use lsf::log::store::Store;
use lsf::model::event::{Event, Record};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

/// Seconds for which the server keeps the lock of a host that it does not hear of.
pub const LEASE: u64 = 30;
const US: u64 = 1_000_000;

/// A run of mbatchd that believes that it has the log.
struct Writer {
    store: Store<SimDisk>,
    epoch: u64,
    commits: u32,
}

#[derive(Default)]
pub struct FileServer {
    disk: SimDisk,
    /// The host that holds the lock, and when the server heard of that host last.
    lock: Option<(usize, u64)>,
    writers: BTreeMap<usize, Writer>,
    /// The acknowledged commits: epoch and number, in the order of time.
    done: Vec<(u64, u32)>,
    /// Locks taken, runs that found their log taken over, most that believed to have it.
    pub moves: usize,
    pub ended: usize,
    pub most: usize,
}

fn params(host: usize, now: u64) -> Params {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    Params {
        host: format!("h{host}"),
        boot: format!("b{host}"),
        now: (now / US) as i64,
        run: format!("{:x}", RUNS.fetch_add(1, Ordering::Relaxed)),
        ..Params::default()
    }
}

impl FileServer {
    /// Starts and ends mbatchds: `wants` are the hosts that are told to be master, `reach` tells
    /// whether the server hears a host.
    pub fn turn(&mut self, now: u64, wants: &[usize], reach: &dyn Fn(usize) -> bool) {
        // a process that ends gives the lock back, if the server hears of it
        let lock = self.lock.map(|(host, _)| host);
        self.writers.retain(|host, _| wants.contains(host));
        if lock.is_some_and(|h| reach(h) && !self.writers.contains_key(&h)) {
            self.lock = None;
        }
        if let Some((host, heard)) = &mut self.lock {
            if reach(*host) {
                *heard = now;
            } else if now >= *heard + LEASE * US {
                self.lock = None;
            }
        }
        for &host in wants.iter().filter(|h| reach(**h)) {
            if self.lock.is_none() && !self.writers.contains_key(&host) {
                self.start(now, host);
            }
        }
        self.most = self.most.max(self.writers.len());
    }

    fn start(&mut self, now: u64, host: usize) {
        let mut found = recover(&mut self.disk.clone(), &params(host, now)).unwrap();
        let plan = std::mem::take(&mut found.plan);
        let store = Store::open(self.disk.clone(), plan).unwrap();
        let writer = Writer { store, epoch: found.recovered.epoch, commits: 0 };
        self.writers.insert(host, writer);
        self.lock = Some((host, now));
        self.moves += 1;
    }

    /// Every mbatchd that reaches the server appends a record.
    pub fn commit(&mut self, now: u64, reach: &dyn Fn(usize) -> bool) {
        let holder = self.lock.map(|(host, _)| host);
        let hosts: Vec<usize> = self.writers.keys().copied().filter(|h| reach(*h)).collect();
        for host in hosts {
            let Some(w) = self.writers.get_mut(&host) else { continue };
            w.commits += 1;
            let event = Event::MbdDie {
                master: format!("h{host}"),
                removed: w.epoch as u32,
                code: w.commits as i32,
                message: String::new(),
            };
            let mut batch = Batch::default();
            batch.append(&Record { time: (now / US) as i64, event });
            match w.store.commit(&batch, now, &mut |_| {}) {
                Ok(()) => {
                    // without the lock only as long as nobody else has it
                    let own = holder.is_none_or(|h| h == host);
                    assert!(own, "h{host} wrote a log that is not its own");
                    self.done.push((w.epoch, w.commits));
                }
                Err(Fail::Fatal(_)) => {
                    // the process ends
                    self.writers.remove(&host);
                    self.ended += 1;
                }
                Err(e) => panic!("{e}"),
            }
        }
    }

    /// The log is what was acknowledged, run after run.
    pub fn check(&self, now: u64) {
        let found = recover(&mut self.disk.fork(), &params(0, now)).unwrap();
        let of = |r: &Record| match &r.event {
            Event::MbdDie { removed, code, .. } => Some((u64::from(*removed), *code as u32)),
            _ => None,
        };
        let log: Vec<(u64, u32)> = found.recovered.records.iter().filter_map(of).collect();
        assert_eq!(log, self.done);
        assert!(self.done.is_sorted(), "runs in turns");
    }
}
