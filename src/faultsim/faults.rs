//! The faults and their times: daemons die, links break, hosts die and are cut off
//! ([`super::host_death`]), the disk refuses writes. Faults come at random until a given instant,
//! then everything heals.

use super::balancer::{SERVER, WHOLE_HOSTS};
use super::event::SimEvent;
use super::host_death::SURELY_SECS;
use super::parallel_tasks::SILENCE;
use super::world::World;
use crate::model::time::US;
use crate::proto::Daemon;

/// Seconds until the supervisor starts a crashed launcher again.
const LAUNCHER_BACK: u64 = 1;
/// Share of deaths and cuts that last for so long.
const LONG: f64 = 0.35;

impl World {
    /// Plans the first fault.
    pub(super) fn plan_fault(&mut self) {
        if self.scale.fault_every <= 0.0 {
            return;
        }
        let after = (self.rng.exp(self.scale.fault_every) * 1e6) as u64;
        let at = self.now_us + after.max(1000);
        if at < self.scale.fault_secs * 1_000_000 {
            self.push(at, SimEvent::Fault);
        }
    }

    pub(super) fn fault(&mut self) {
        self.faults += 1;
        log::info!("{:.6} fault {}", self.now_us as f64 / 1e6, self.faults);
        let mut host = self.rng.below(self.scale.hosts as u64) as usize;
        if self.only_collects(host) && self.rng.chance(0.8) {
            host %= WHOLE_HOSTS;
        }
        match self.rng.below(100) {
            0..25 => {
                if self.rng.chance(0.3) {
                    self.log.stop_next = true;
                    return self.plan_fault();
                }
                let up = self.mbd_proc().is_some();
                self.crash_daemon(self.log.host, Daemon::Mbatchd);
                if up && self.rng.chance(0.03) {
                    self.damage_log();
                }
                self.power_later(0.1);
            }
            25..45 => self.crash_daemon(host, Daemon::Sbatchd),
            45..52 if self.tasks.chance(0.5) => self.crash_daemon(host, Daemon::Res),
            45..52 => self.crash_daemon(host, Daemon::Lim),
            52..60 => self.crash_launcher(host),
            60..66 => self.host_dies(host),
            66..74 if self.balancer.is_some() && self.rng.chance(0.7) => {
                if self.rng.chance(0.6) {
                    self.crash_daemon(SERVER, Daemon::NlbServer);
                } else {
                    self.crash_daemon(host, Daemon::Ccollect);
                }
            }
            66..82 => self.cut_one(),
            82..90 => self.host_cut_off(host),
            90..94 => self.step_clock(host),
            _ => self.break_disk(),
        }
        self.plan_fault();
    }

    /// The wall clock of a host is set: by an hour, by seconds, or right again.
    fn step_clock(&mut self, host: usize) {
        let seconds = match self.rng.below(4) {
            0 => -3600,
            1 => 3600,
            2 => self.rng.below(20) as i64 - 10,
            _ => 0,
        };
        self.hosts[host].clock_off_us = seconds * US as i64;
        if seconds != 0 {
            self.log.shadow.set_clock();
            self.check.clock_was_set = true;
        }
    }

    fn crash_daemon(&mut self, host: usize, daemon: Daemon) {
        if let Some(p) = self.find(host, daemon) {
            self.kill_proc(p, true);
        }
    }

    /// Tests the files that mbatchd left when it ended: its host may lose power soon.
    fn power_later(&mut self, chance: f64) {
        if self.rng.chance(chance) {
            let at = self.now_us + 100_000 + self.rng.below(3_000_000);
            self.push(at, SimEvent::Power { host: self.log.host });
        }
    }

    fn crash_launcher(&mut self, host: usize) {
        if let Some(p) = self.find(host, Daemon::Launcher) {
            self.kill_proc(p, false);
            let boot = self.hosts[host].os.boot;
            let at = self.now_us + LAUNCHER_BACK * 1_000_000;
            self.push(at, SimEvent::Boot { host, boot });
        }
    }

    fn cut_one(&mut self) {
        let n = self.conns.len() as u64;
        if n == 0 {
            return;
        }
        let k = self.rng.below(n) as usize;
        if let Some(&id) = self.conns.keys().nth(k) {
            self.cut(id);
        }
    }

    /// The disk is full for a while, or a write or a sync of the log fails once.
    fn break_disk(&mut self) {
        let mut faults = self.log.usual_faults();
        match self.rng.below(4) {
            0 => {
                faults.eio_at_write = Some(self.log.disk.writes() + self.rng.below(8));
            }
            1 => {
                faults.fail_at_sync = Some(self.log.disk.syncs() + self.rng.below(4));
                self.power_later(0.5);
            }
            _ if self.log.full => return,
            _ => {
                self.log.full = true;
                faults.bytes_left = Some(self.rng.below(4096));
                let until = self.now_us + 500_000 + self.rng.below(5_000_000);
                self.push(until, SimEvent::DiskBack);
            }
        }
        self.log.disk.set_faults(faults);
    }

    /// Loses power; what is below /run may outlive it, and the host may be away for long.
    pub(super) fn host_dies(&mut self, host: usize) {
        let journal = self.hosts[host].os.journal.clone();
        let back = self.crash_host(host);
        if self.rng.chance(0.5) {
            self.hosts[host].os.journal = journal;
        }
        if self.rng.chance(LONG) {
            let boot = self.hosts[host].os.boot;
            self.hosts[host].dead_until = back + self.long();
            self.push(self.hosts[host].dead_until, SimEvent::Boot { host, boot });
        }
    }

    /// A host loses power, all that it knew with it; when it is back.
    pub(super) fn crash_host(&mut self, host: usize) -> u64 {
        self.host_away(host);
        let own = [Daemon::Mbatchd, Daemon::Sbatchd, Daemon::Lim, Daemon::Launcher];
        for daemon in own.into_iter().chain([Daemon::NlbServer, Daemon::Ccollect, Daemon::Res]) {
            if let Some(p) = self.find(host, daemon) {
                self.kill_proc(p, false);
            }
        }
        if host == self.log.host {
            self.log.power_cut(&mut self.rng);
        }
        self.nlb_power_cut(host);
        for key in self.hosts[host].os.reboot() {
            self.check.ended(host, key, None);
        }
        self.callers_end(host);
        let boot = self.hosts[host].os.boot;
        let at = self.now_us + 1_000_000 + self.rng.below(20_000_000);
        self.hosts[host].dead_until = at;
        self.push(at, SimEvent::Boot { host, boot });
        at
    }

    /// Cuts a host off from all others for a while.
    pub(super) fn host_cut_off(&mut self, host: usize) {
        let mut until = self.now_us + US + self.rng.below(20 * US);
        if self.rng.chance(LONG) {
            until += self.long();
        }
        self.hosts[host].isolated = true;
        self.host_away(host);
        let until = until.max(self.hosts[host].isolated_until);
        self.hosts[host].isolated_until = until;
        self.push(until, SimEvent::Rejoin { host });
        if self.tasks.on() {
            self.push(self.now_us + SILENCE, SimEvent::Silence { host });
        }
    }

    fn long(&mut self) -> u64 {
        (SURELY_SECS + self.rng.below(200)) * US
    }

    pub(super) fn rejoin(&mut self, host: usize) {
        if self.now_us >= self.hosts[host].isolated_until {
            self.host_back(host);
            self.hosts[host].isolated = false;
        }
    }
}
