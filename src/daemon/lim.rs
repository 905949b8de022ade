//! The real LIM: the machine of `crate::lim` under the shell, with this host's measurements.

use super::boot::{Boot, BootError};
use super::shell::{self, Ctl, Host};
use crate::lim::Lim;
use crate::proto::{Daemon, Effect, Input};
use crate::sys::load::Probe;
use jiff::tz::TimeZone;

/// What the shell does not do by itself: measuring.
struct LimHost {
    probe: Probe,
}

impl Host for LimHost {
    type M = Lim;

    fn effect(&mut self, _: &mut Lim, eff: Effect, ctl: &mut Ctl) {
        match eff {
            Effect::Sample => ctl.input(Input::Sample(Box::new(self.probe.sample()))),
            other => log::warn!("lim does not carry out an effect: {}", other.name()),
        }
    }
}

/// Runs LIM for this host until it is told to end.
pub fn run(boot: Boot) -> Result<i32, BootError> {
    let cfg = boot.shell(Daemon::Lim);
    let machine = Lim::new(boot.conf, &boot.host).with_zone(TimeZone::system());
    let host = LimHost { probe: Probe::new() };
    shell::run(cfg, machine, host).map_err(|e| BootError(e.to_string()))
}
