//! The processes of hosts: their daemons start, and are killed.

use super::event::SimEvent;
use super::world::{DaemonMachine, Process, World};
use crate::exec::launcher::{self, Launcher};
use crate::exec::plan::HostEnvironment;
use crate::exec::sbatchd::{self, Sbatchd};
use crate::lim::Lim;
use crate::model::time::US;
use crate::proto::Daemon;
use crate::proto::launch::OsInput;
use crate::proto::machine::Input;
use crate::res::{Res, ResConf};
use std::collections::BTreeMap;

impl World {
    pub(super) fn boot(&mut self, host: usize, boot: u64) {
        if self.hosts[host].os.boot != boot || self.find(host, Daemon::Launcher).is_some() {
            return;
        }
        if self.now_us < self.hosts[host].dead_until {
            return;
        }
        if self.only_collects(host) {
            return self.boot_collector(host);
        }
        if !self.hosts[host].isolated {
            self.host_back(host);
        }
        let conf = launcher::LauncherConf {
            uid: 0,
            personal: false,
            boot_id: self.hosts[host].os.boot_id(),
            daemons: self.daemons_of(host),
            peers: vec![500],
            root_jobs: false,
            users: Default::default(),
            end_left_processes: true,
            hang: 0,
        };
        let journal = self.hosts[host].os.journal.clone();
        let mach = DaemonMachine::Launcher(Box::new(Launcher::new(conf, journal)));
        let pid = self.hosts[host].os.pid();
        // Starters that wait for their launcher's word end with it.
        self.hosts[host].os.tasks.retain(|_, t| !t.waiting);
        self.start_proc(host, Daemon::Launcher, pid, mach);
    }

    /// A host without a launcher: its collector starts.
    fn boot_collector(&mut self, host: usize) {
        if self.find(host, Daemon::Ccollect).is_none() {
            let (pid, mach) = (self.hosts[host].os.pid(), self.new_collector(host));
            self.start_proc(host, Daemon::Ccollect, pid, mach);
        }
    }

    fn start_proc(&mut self, host: usize, daemon: Daemon, pid: u32, mach: DaemonMachine) -> usize {
        if daemon == Daemon::Mbatchd {
            self.mbd_unwell();
        }
        self.births += 1;
        let born = self.births;
        let fresh = Process {
            host,
            daemon,
            pid,
            mach: Some(mach),
            born,
            tick_gen: 0,
            tick_at: None,
            conns: BTreeMap::new(),
        };
        let free = self.procs.iter().position(|p| p.mach.is_none());
        let p = match free {
            Some(i) => {
                let gen_ = self.procs[i].tick_gen + 1;
                self.procs[i] = Process { tick_gen: gen_, ..fresh };
                i
            }
            None => {
                self.procs.push(fresh);
                self.procs.len() - 1
            }
        };
        let at = self.now_us + 1000 + self.rng.below(20_000);
        self.push(at, SimEvent::Input { proc_: p, born, input: Box::new(Input::Start) });
        p
    }

    pub(super) fn spawn_daemon(
        &mut self,
        host: usize,
        daemon: Daemon,
    ) -> Result<(u32, u64), String> {
        let name = self.hosts[host].name.clone();
        let mach = match daemon {
            Daemon::Lim => DaemonMachine::Lim(Box::new(Lim::new(self.conf.base.clone(), &name))),
            Daemon::Sbatchd => DaemonMachine::Sbd(Box::new(Sbatchd::new(self.sbatchd_conf(&name)))),
            Daemon::Mbatchd => match self.start_log(host) {
                Ok(mbd) => DaemonMachine::Mbd(Box::new(mbd)),
                Err(why) => {
                    let pid = self.hosts[host].os.pid();
                    self.failed_start(host, pid, &why);
                    return Ok((pid, self.now_us + 1));
                }
            },
            Daemon::Ccollect => self.new_collector(host),
            Daemon::Res => {
                let conf = ResConf { host: name, timeout: 10, ..ResConf::default() };
                DaemonMachine::Res(Box::new(Res::new(conf, self.tasks.res_seed())))
            }
            Daemon::NlbServer => self.new_nlb_server()?,
            other => return Err(format!("no {} here", other.name())),
        };
        let pid = self.hosts[host].os.pid();
        let ticks = self.now_us + 1;
        self.hosts[host].os.daemons.insert(pid, (daemon, ticks));
        self.start_proc(host, daemon, pid, mach);
        Ok((pid, ticks))
    }

    fn sbatchd_conf(&self, host: &str) -> sbatchd::SbatchdConf {
        sbatchd::SbatchdConf {
            site: HostEnvironment {
                host: host.to_string(),
                terminate_interval: 10,
                ..HostEnvironment::default()
            },
            cluster: self.conf.base.name.clone(),
            admin: "admin".to_string(),
            candidates: self.hosts.iter().map(|h| h.name.clone()).collect(),
            pim_interval: 0,
            personal: false,
            zone: jiff::tz::TimeZone::UTC,
        }
    }

    /// kill -9. `told`: its launcher hears of it as its parent.
    pub(super) fn kill_proc(&mut self, p: usize, told: bool) {
        let (host, daemon, pid) = (self.procs[p].host, self.procs[p].daemon, self.procs[p].pid);
        if daemon == Daemon::Mbatchd {
            self.is_as_logged();
        }
        self.procs[p].mach = None;
        self.procs[p].born = 0;
        self.procs[p].tick_gen += 1;
        for id in std::mem::take(&mut self.procs[p].conns).into_values() {
            self.cut(id);
        }
        self.hosts[host].os.daemons.remove(&pid);
        if daemon == Daemon::Mbatchd {
            self.log_killed();
            self.mails_leave(None);
        }
        if self.only_collects(host) {
            let boot = self.hosts[host].os.boot;
            self.push(self.now_us + US, SimEvent::Boot { host, boot });
        }
        if told && let Some(l) = self.find(host, Daemon::Launcher) {
            let input = OsInput::Exited { pid, status: 9, usage: Default::default() };
            self.later(l, 500, Input::Os(input));
        }
    }
}
