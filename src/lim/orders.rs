//! Orders of administrators and commands to LIM: locks, load adjustments, a wordier log; and
//! whether RES of this host is there.
//!
//! Locks outlive LIM: that of this host is kept on it, those of the master where the next master
//! finds them; those of exclusive jobs mbatchd tells whenever it has found the master LIM.
//!
//! Invariant: who may is decided by the authenticated peer alone. See lsadmin(8) and lsloadadj(1).

use super::local::RES_ACTIVE_MIN;
use super::state::Lim;
use crate::model::Now;
use crate::model::reason::err;
use crate::model::time::US;
use crate::proto::launch::LaunchMsg;
use crate::proto::lim::{HostLoad, LimMsg, status};
use crate::proto::machine::{ConnId, Endpoint, OWN};
use crate::proto::{Daemon, Effect, LockRecord, Logging, Msg, Peer, Refusal};
use std::collections::{BTreeMap, BTreeSet};

/// The connection to this host's launcher.
pub const LAUNCHER: ConnId = OWN - 1;
/// Seconds for which RES may be away where LSF_RES_ACTIVE_TIME says nothing.
const RES_ACTIVE: u64 = 90;
/// Looks at RES in that time.
const RES_LOOKS: u64 = 6;
/// Most adjustments kept of one host.
const MAX_ADJUSTED: usize = 1024;
/// Most tasks of one adjustment.
const MAX_TASKS: u32 = 10_000;

impl Lim {
    /// Whether a connection is an administrator's of the cluster.
    fn administers(&self, conn: ConnId) -> bool {
        let admins = &self.base.cluster.admins;
        matches!(self.peers.get(&conn), Some(Peer::User { user, .. }) if admins.contains(user))
    }

    /// Carries out an order; the answer.
    pub(super) fn order(
        &mut self,
        now: Now,
        conn: ConnId,
        msg: LimMsg,
        out: &mut Vec<Effect>,
    ) -> Msg {
        let admin =
            matches!(msg, LimMsg::Lock { .. } | LimMsg::Verbose { .. } | LimMsg::Logging(_));
        if admin && !self.administers(conn) {
            return Msg::Refused(Refusal::new(err::PERMISSION));
        }
        match msg {
            LimMsg::Lock { host, on, secs } if host.is_empty() => {
                let until = if secs == 0 { u64::MAX } else { now.after(secs) };
                self.local.lock = on.then_some(until);
                // by the wall clock: the other one begins anew with the host
                let left = (until - now.mono_us.min(until)) as i64;
                let until = now.wall_us.saturating_add(if secs == 0 { i64::MAX } else { left });
                let text = if on { until.to_string() } else { String::new() };
                out.push(Effect::Keep { what: LockRecord::Lock, text });
                self.again(now, out);
            }
            LimMsg::Verbose { level } => {
                let set = Logging { level: Some(level), ..Logging::default() };
                out.push(Effect::Logging(set));
            }
            LimMsg::Logging(set) => out.push(Effect::Logging(set)),
            _ if !self.is_master() => {
                return Msg::Refused(Refusal::text(err::BAD_ARG, "not the master LIM"));
            }
            LimMsg::Lock { host, on, .. } => {
                let name = self.base.hosts.canonical(&host).map(str::to_owned);
                let Some(known) = name.and_then(|n| self.hosts.get_mut(&n)) else {
                    return Msg::Refused(Refusal::about(err::BAD_HOST, host));
                };
                known.locked = on;
                known.load.status &= !status::LOCK_M;
                known.load.status |= if on { status::LOCK_M } else { 0 };
                self.fresh.insert(known.load.host.clone());
                let locked = self.hosts.iter().filter(|(_, k)| k.locked);
                let text = locked.map(|(name, _)| format!("{name}\n")).collect();
                out.push(Effect::Keep { what: LockRecord::Locks, text });
            }
            LimMsg::Adjust { hosts } => {
                // each host once, and all of them or none
                let mut more: BTreeMap<String, u32> = BTreeMap::new();
                for (host, tasks) in hosts {
                    let name = self.base.hosts.canonical(&host).map(str::to_owned);
                    let Some(name) = name.filter(|name| self.hosts.contains_key(name)) else {
                        return Msg::Refused(Refusal::about(err::BAD_HOST, host));
                    };
                    let sum = more.entry(name).or_default();
                    *sum = sum.saturating_add(tasks).min(MAX_TASKS);
                }
                for (name, tasks) in more {
                    let Some(known) = self.hosts.get_mut(&name) else { continue };
                    if known.adjusted.len() >= MAX_ADJUSTED {
                        known.adjusted.remove(0);
                    }
                    known.adjusted.push((now.mono_us, tasks));
                    self.fresh.insert(name);
                }
            }
            _ => return Msg::Refused(Refusal::text(err::BAD_ARG, "not a request to LIM")),
        }
        Msg::Lim(LimMsg::Done)
    }

    /// The hosts of exclusive jobs, as mbatchd of this host tells them to the master. The hosts
    /// stay locked while there is no mbatchd, because the jobs go on; the next mbatchd sends a new
    /// list.
    pub(super) fn exclusive(&mut self, conn: ConnId, hosts: &[String], out: &mut Vec<Effect>) {
        let ours = matches!(self.peers.get(&conn),
            Some(Peer::Daemon { daemon: Daemon::Mbatchd, host }) if *host == self.host);
        if !ours || !self.is_master() {
            let msg = Msg::Refused(Refusal::new(err::PERMISSION));
            return out.push(Effect::Send { conn, msg });
        }
        let hosts: BTreeSet<&String> = hosts.iter().collect();
        let mut changed = BTreeSet::new();
        for (name, known) in &mut self.hosts {
            let on = hosts.contains(name);
            if known.exclusive != on {
                known.exclusive = on;
                known.load.status ^= status::LOCK_X;
                changed.insert(name.clone());
            }
        }
        self.push(&changed, out);
    }

    /// Data that an earlier LIM kept.
    pub(super) fn kept(&mut self, now: Now, what: LockRecord, text: &str, out: &mut Vec<Effect>) {
        match what {
            LockRecord::Lock => {
                let until = text.trim().parse::<i64>().unwrap_or(0);
                let left = until.saturating_sub(now.wall_us).max(0) as u64;
                self.local.lock = (left > 0).then(|| now.mono_us.saturating_add(left));
                self.again(now, out);
            }
            LockRecord::Locks if self.is_master() => {
                let locked: BTreeSet<&str> = text.lines().collect();
                for (name, known) in &mut self.hosts {
                    known.locked = locked.contains(name.as_str());
                    known.load.status &= !status::LOCK_M;
                    known.load.status |= if known.locked { status::LOCK_M } else { 0 };
                    self.fresh.insert(name.clone());
                }
            }
            LockRecord::Locks => {}
        }
    }

    /// The state of this host has changed without a measurement.
    fn again(&mut self, now: Now, out: &mut Vec<Effect>) {
        let Some(known) = self.hosts.get(&self.host) else { return };
        let load = HostLoad { facts: known.found.clone(), ..known.load.clone() };
        let load = HostLoad { status: load.status & !(status::LOCK_U | status::RES_DOWN), ..load };
        let host = self.host.clone();
        self.record(now, &host, load, out);
        self.beat(out);
    }

    /// Asks the launcher from time to time whether RES runs.
    pub(super) fn look_for_res(&mut self, now: Now, out: &mut Vec<Effect>) {
        if now.mono_us < self.local.res_at {
            return;
        }
        let active = self.base.lsf.int("LSF_RES_ACTIVE_TIME", RES_ACTIVE).max(RES_ACTIVE_MIN);
        self.local.res_active = active * US;
        self.local.res_at = now.mono_us + active * US / RES_LOOKS;
        out.push(Effect::Close { conn: LAUNCHER });
        out.push(Effect::Connect { conn: LAUNCHER, to: Endpoint::Launcher });
    }

    pub(super) fn ask_launcher(&self, out: &mut Vec<Effect>) {
        let msg = Msg::Launch(LaunchMsg::Daemons);
        out.push(Effect::Send { conn: LAUNCHER, msg });
    }

    /// The launcher's list of daemons; whether mbatchd hangs on this host.
    pub(super) fn daemons(&mut self, now: Now, msg: &Msg, out: &mut Vec<Effect>) -> bool {
        out.push(Effect::Close { conn: LAUNCHER });
        let Msg::Launch(LaunchMsg::DaemonList { pids, hung }) = msg else { return false };
        if pids.iter().any(|(daemon, _)| *daemon == Daemon::Res) {
            self.local.res_seen = now.mono_us;
        }
        hung.contains(&Daemon::Mbatchd)
    }
}
