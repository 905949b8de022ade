//! The real LIM: the machine of `crate::lim` under the shell, with this host's measurements.

use super::boot::{Boot, BootError};
use super::melim::Elims;
use super::shell::{self, Ctl, Host};
use crate::conf::BaseConf;
use crate::lim::{Lim, copies};
use crate::proto::{Daemon, Effect, Input};
use crate::sys::files::RealFiles;
use crate::sys::load::Probe;
use jiff::tz::TimeZone;
use std::os::unix::fs::MetadataExt;

/// What the shell does not do by itself: measuring.
struct LimHost {
    probe: Probe,
    conf: BaseConf,
    host: String,
    elims: Elims,
    copies: copies::Copies,
    /// What the copies looked like when they were read.
    seen: Vec<Option<Looks>>,
}

/// Device, inode, length and last change of a file; the last in nanoseconds.
type Looks = (u64, u64, u64, i64, i64);

impl LimHost {
    /// The copies of the configuration, read again where one does not look as it did.
    fn copies(&mut self) -> copies::Copies {
        let looks = |(_, path): &(String, String)| {
            let m = std::fs::metadata(path).ok()?;
            Some((m.dev(), m.ino(), m.len(), m.ctime(), m.ctime_nsec()))
        };
        let seen: Vec<_> = copies::files(&self.conf, &self.host).iter().map(looks).collect();
        if self.copies.is_empty() || seen != self.seen {
            self.copies = copies::read(&RealFiles, &self.conf, &self.host);
            self.seen = seen;
        }
        self.copies.clone()
    }
}

impl Host for LimHost {
    type M = Lim;

    fn effect(&mut self, _: &mut Lim, eff: Effect, ctl: &mut Ctl) {
        match eff {
            Effect::Sample => {
                let mut sample = Box::new(self.probe.sample());
                sample.copies = self.copies();
                ctl.input(Input::Sample(sample));
            }
            Effect::Melim { resources, master } => self.elims.run(resources, master, ctl.remote()),
            other => log::warn!("lim does not carry out an effect: {}", other.name()),
        }
    }

    fn stopping(&mut self, _: &mut Lim, _: i32) {
        self.elims.stop();
    }

    fn woken(&mut self, _: &mut Lim, ctl: &mut Ctl) {
        self.elims.again(ctl.remote());
    }
}

/// Runs LIM for this host until it is told to end.
pub fn run(boot: Boot) -> Result<i32, BootError> {
    let cfg = boot.shell(Daemon::Lim);
    let host = LimHost {
        probe: Probe::new(),
        conf: boot.conf.clone(),
        elims: Elims::new(&boot),
        host: boot.host.clone(),
        copies: Vec::new(),
        seen: Vec::new(),
    };
    let machine = Lim::new(boot.conf, &boot.host).with_zone(TimeZone::system());
    shell::run(cfg, machine, host).map_err(|e| BootError(e.to_string()))
}
