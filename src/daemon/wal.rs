//! mbatchd's log on disk, off the loop's thread: one commit makes a turn's records durable.

use super::shell::Remote;
use crate::batch::Recovered;
use crate::log::codec;
use crate::model::event::{Finish, Record};
use crate::model::job::SpoolRef;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};

#[derive(Default)]
pub struct Batch {
    ticket: u64,
    events: Vec<u8>,
    spool: Vec<(SpoolRef, Vec<u8>)>,
    acct: Vec<u8>,
}

pub struct Wal {
    dir: PathBuf,
    open: Batch,
    tx: Option<Sender<Batch>>,
}

impl Wal {
    pub fn open(dir: &Path) -> io::Result<(Wal, Recovered)> {
        std::fs::create_dir_all(dir.join("info"))?;
        let path = dir.join("lsb.events");
        let mut text = Vec::new();
        if let Ok(mut f) = File::open(&path) {
            f.read_to_end(&mut text)?;
        } else {
            let mut head = vec![b' '; 79];
            head[..3].copy_from_slice(b"#80");
            head.push(b'\n');
            std::fs::write(&path, head)?;
        }
        let mut found = Recovered { epoch: 1, ..Recovered::default() };
        for line in text.split(|b| *b == b'\n').filter(|l| !l.is_empty() && l[0] != b'#') {
            if let Ok(r) = codec::read_record(line) {
                if matches!(r.event, crate::model::event::Event::MbdStart { .. }) {
                    found.epoch += 1;
                }
                found.records.push(r);
            }
        }
        let spool = dir.join("info/lsb.spool.0");
        found.spool_end = std::fs::metadata(spool).map_or(0, |m| m.len());
        Ok((Wal { dir: dir.to_path_buf(), open: Batch::default(), tx: None }, found))
    }

    pub fn start(&mut self, remote: Remote) -> io::Result<()> {
        let (tx, rx) = channel::<Batch>();
        let open =
            |name: &str| OpenOptions::new().create(true).append(true).open(self.dir.join(name));
        let mut events = open("lsb.events")?;
        let mut acct = open("lsb.acct")?;
        let spool = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(self.dir.join("info/lsb.spool.0"))?;
        std::thread::Builder::new().name("log".into()).spawn(move || {
            for b in rx {
                let done = (|| -> io::Result<()> {
                    for (at, data) in &b.spool {
                        spool.write_all_at(data, at.at)?;
                    }
                    if !b.spool.is_empty() {
                        spool.sync_data()?;
                    }
                    events.write_all(&b.events)?;
                    events.sync_data()?;
                    acct.write_all(&b.acct)
                })();
                match done {
                    Ok(()) => remote.durable(b.ticket),
                    Err(e) => remote.failed(b.ticket, e.to_string()),
                }
            }
        })?;
        self.tx = Some(tx);
        Ok(())
    }

    pub fn append(&mut self, r: &Record) {
        codec::write_record(r, &mut self.open.events);
        if self.open.events.last() != Some(&b'\n') {
            self.open.events.push(b'\n');
        }
    }
    pub fn account(&mut self, f: &Finish) {
        codec::write_finish(f, &mut self.open.acct);
        if self.open.acct.last() != Some(&b'\n') {
            self.open.acct.push(b'\n');
        }
    }
    pub fn spool(&mut self, at: SpoolRef, data: Vec<u8>) {
        self.open.spool.push((at, data));
    }
    pub fn submit(&mut self, ticket: u64) {
        let mut b = std::mem::take(&mut self.open);
        b.ticket = ticket;
        if let Some(tx) = &self.tx {
            let _ = tx.send(b);
        }
    }
    pub fn blob(&self, at: SpoolRef) -> io::Result<Vec<u8>> {
        let f = File::open(self.dir.join("info/lsb.spool.0"))?;
        let mut data = vec![0; at.len as usize];
        f.read_exact_at(&mut data, at.at)?;
        Ok(data)
    }
    pub fn stop(&mut self) {
        self.tx = None;
    }
}
