//! The real ccollect: the machine of `crate::nlb` under the shell, with this host's counters, the
//! site's files and its custom collectors. See ccollect(8).
//!
//! Invariants: nothing of a site's file but its content counts, and no link is followed to it; a
//! custom collector never runs as root, but in a personal cluster of root.

use super::boot::Boot;
use super::boot_error::BootError;
use super::custom_collectors::CustomCollectors;
use super::driver::{DaemonDriver, ShellControl};
use super::shell;
use crate::conf::diag::Diags;
use crate::conf::nqeinfo::{self, NqeInfo};
use crate::conf::{LsfConf, Severity, nqs};
use crate::model::nlb::NlbAddress;
use crate::nlb::{Collector, CollectorConf};
use crate::proto::collect::{CollectorEffect, CollectorInput, Counters, CustomContent};
use crate::proto::nlb::{MAX_REPORT, NlbEffect, NlbInput};
use crate::proto::{Daemon, Effect, Input};
use crate::sys::files::RealFiles;
use crate::sys::{collect, words};
use std::fs::File;
use std::io::{self, Read};

/// The options of a collector.
#[derive(Clone, Debug, Default)]
pub struct CollectSettings {
    /// NLB_QUEUE_NAME; empty: none.
    pub queue: String,
    /// The directory of NLB_FREETMP.
    pub tmp: String,
    /// Time between two reports, seconds.
    pub interval: u32,
    /// The window of means, seconds.
    pub window: u32,
    /// Files of custom objects.
    pub files: Vec<String>,
    pub servers: Vec<NlbAddress>,
    /// Custom collectors with their words.
    pub collectors: Vec<Vec<String>>,
    /// The directory in which relative names of these start.
    pub bin: String,
    /// The directory in which these run.
    pub spool: String,
}

struct CollectDriver {
    tmp: String,
    /// The directory of lsb.nqs.
    confdir: String,
    programs: CustomCollectors,
}

impl DaemonDriver for CollectDriver {
    type M = Collector;

    fn effect(&mut self, _: &mut Collector, eff: Effect, shell: &mut ShellControl) {
        let done = match eff {
            Effect::Nlb(NlbEffect::Collector(CollectorEffect::Measure { files })) => {
                let validates = nqs::validation(&RealFiles, &self.confdir);
                let counters = Counters { validates, ..collect::counters(&self.tmp) };
                let counters = Box::new(counters);
                let files = files.into_iter().map(read).collect();
                CollectorInput::Reading { counters, files }
            }
            Effect::Nlb(NlbEffect::Collector(CollectorEffect::Glance)) => {
                let (runnable, cpus) = collect::glance();
                CollectorInput::Glance { runnable, cpus }
            }
            Effect::Nlb(NlbEffect::Collector(CollectorEffect::Start { program })) => {
                match self.programs.start(program, shell.remote()) {
                    None => return,
                    Some(instead) => instead,
                }
            }
            other => {
                return log::warn!("ccollect does not carry out an effect: {}", other.name());
            }
        };
        shell.input(Input::Nlb(NlbInput::Collector(done)));
    }

    fn stopping(&mut self, _: &mut Collector, _: i32) {
        self.programs.stop();
    }
}

/// The content of a file of custom objects.
pub fn read(path: String) -> CustomContent {
    let content = || -> io::Result<Vec<u8>> {
        use rustix::fs::{Mode, OFlags};
        // neither a FIFO holds us up, nor is a link of another user's followed
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = match rustix::fs::open(path.as_str(), flags, Mode::empty()) {
            Err(rustix::io::Errno::LOOP) => {
                return Err(io::Error::other("a symbolic link is not followed"));
            }
            opened => File::from(opened?),
        };
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("not a plain file"));
        }
        let mut bytes = Vec::new();
        file.take(MAX_REPORT as u64 + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let content = content().map_err(|e| words(&e));
    (path, content)
}

/// The nqeinfo of the site, and its faults; `None`: there is none.
pub fn info(lsf: &LsfConf, cluster: &str, host: &str) -> (Option<NqeInfo>, Vec<String>) {
    let (places, mut diags) = (nqeinfo::places(lsf), Diags::new());
    let info = nqeinfo::read(&RealFiles, &places, lsf, cluster, host, &mut diags);
    let told = diags.list().iter().filter(|d| d.severity >= Severity::Warning);
    (info, told.map(ToString::to_string).collect())
}

/// Collects on this host until it is told to end.
pub fn run(boot: Boot, settings: CollectSettings) -> Result<i32, BootError> {
    let conf = CollectorConf {
        host: boot.host.clone(),
        hosts: boot.conf.hosts.clone(),
        servers: settings.servers.clone(),
        queue: settings.queue.clone(),
        tmp: settings.tmp.clone(),
        interval: settings.interval,
        window: settings.window,
        files: settings.files.clone(),
        programs: settings.collectors.iter().filter_map(|w| w.first().cloned()).collect(),
    };
    let directories = (settings.bin.as_str(), settings.spool.as_str());
    let programs = CustomCollectors::new(&boot, settings.collectors.clone(), directories);
    programs.end_those_before();
    let random = crate::sys::random::<8>().map(u64::from_le_bytes).unwrap_or(1);
    let confdir = boot.conf.lsf.batch_confdir(&boot.conf.name);
    let driver = CollectDriver { tmp: settings.tmp, confdir, programs };
    let shell_config = boot.shell(Daemon::Ccollect);
    let machine = Collector::new(conf, random);
    shell::run(shell_config, machine, driver).map_err(|e| BootError(e.to_string()))
}
