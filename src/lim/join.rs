//! Hosts that lsf.cluster does not name and that join by themselves (dynamic hosts).
//!
//! A dynamic host asks the candidates, after LSF_DYNAMIC_HOST_WAIT_TIME without a word of the
//! master. The master lets it in when its address, which is that of the packet, is in
//! LSF_HOST_ADDR_RANGE, and answers with an announcement; else it says why not. Members are kept
//! beside the event log, where the next master and the other daemons find them, until they were
//! away for LSF_DYNAMIC_HOST_TIMEOUT.
//!
//! Invariant: a host that is let in holds the cluster key (the datagram was signed with it), and
//! takes neither name nor address of another host. See lsf.conf(5).

use super::state::{Lim, say};
use crate::conf::Member;
use crate::conf::members::{self, MAX_MEMBERS};
use crate::model::Now;
use crate::model::time::US;
use crate::proto::lim::LimMsg;
use crate::proto::{Effect, Msg};
use std::net::IpAddr;

/// Most refusals that are remembered, so that each is logged once.
const MAX_TOLD: usize = 1000;

impl Lim {
    /// Is this host one that must ask to be let in?
    pub(super) fn outsider(&self) -> bool {
        let own = |h: &&crate::conf::HostDef| h.name == self.host;
        self.base.cluster.hosts.iter().find(own).is_some_and(|h| h.dynamic)
    }

    /// The instant from which an outsider asks.
    pub(super) fn start_joining(&mut self, now: Now) {
        let wait = members::wait_time(&self.base.lsf).unwrap_or(0);
        self.joining.from = now.after(wait);
    }

    /// The request of a host to the candidates while it knows no master; None: not yet.
    pub(super) fn question(&self, now: Now) -> Option<LimMsg> {
        if !self.outsider() {
            return Some(LimMsg::WhoIsMaster);
        }
        let resources = self.base.lsf.get("LSF_LOCAL_RESOURCES").unwrap_or_default().to_owned();
        let (cluster, addr) = (self.base.name.clone(), String::new());
        (now.mono_us >= self.joining.from).then_some(LimMsg::Join { cluster, addr, resources })
    }

    /// The master's word that this host is not let in.
    pub(super) fn not_joined(&mut self, from: &str, why: String, out: &mut Vec<Effect>) {
        let master = self.election_has(from);
        if master && self.outsider() && self.joining.refused != why {
            say(out, log::Level::Error, format!("host {from} does not admit this host: {why}"));
            self.joining.refused = why;
        }
    }

    /// A host asks to be let in.
    pub(super) fn join(&mut self, now: Now, member: Member, cluster: &str, out: &mut Vec<Effect>) {
        if !self.is_master() || cluster != self.base.name {
            return;
        }
        let (name, addr) = (member.name.clone(), member.addr);
        if self.base.hosts.canonical(&name) == Some(&name) && self.base.hosts.owns(&name, addr) {
            return self.announce_to(&name, true, out);
        }
        if let Some(why) = self.refusal(&member) {
            let text = format!("host {} is not admitted: {why}", name.escape_debug());
            if self.joining.told.len() < MAX_TOLD && self.joining.told.insert(text.clone()) {
                say(out, log::Level::Warn, text);
            }
            let msg = Msg::Lim(LimMsg::NotJoined { why });
            return out.push(Effect::Reply { addr, to: name, msg });
        }
        let mut all = self.base.members.clone();
        all.push(member);
        say(out, log::Level::Info, format!("host {name} ({addr}) has joined"));
        self.members(now, all.clone(), out);
        out.push(Effect::Members(all));
        self.announce_to(&name, true, out);
    }

    /// Why this host is not let in.
    fn refusal(&self, member: &Member) -> Option<String> {
        let Member { name, addr, .. } = member;
        let conf = &self.base;
        if let Some(why) = member.fault() {
            return Some(why);
        }
        if conf.lsf.master_list().is_empty() {
            return Some("LSF_MASTER_LIST is not defined".to_owned());
        }
        if !conf.cluster.params.addr_range.contains(*addr) {
            let file = format!("lsf.cluster.{}", conf.name);
            return Some(format!("address {addr} is not in LSF_HOST_ADDR_RANGE of {file}"));
        }
        if conf.hosts.canonical(name).is_some() {
            return Some(format!("{name} is the name of a host with another address"));
        }
        if let Some(other) = conf.hosts.by_addr(*addr) {
            return Some(format!("{addr} is the address of host {other}"));
        }
        (conf.members.len() >= MAX_MEMBERS).then(|| "the cluster is full".to_owned())
    }

    /// The hosts that have joined are exactly these.
    pub(super) fn members(&mut self, now: Now, all: Vec<Member>, out: &mut Vec<Effect>) {
        if !self.base.set_members(&all, &self.host) {
            return;
        }
        let base = std::mem::take(&mut self.base);
        self.configure(base, out);
        for known in self.hosts.values_mut().filter(|k| k.gone.is_none()) {
            known.gone = Some(now.mono_us);
        }
    }

    /// Members that were away for too long are none any more.
    pub(super) fn expire(&mut self, now: Now, out: &mut Vec<Effect>) {
        let Some(secs) = members::timeout(&self.base.lsf) else { return };
        let gone = |m: &&Member| {
            let known = self.hosts.get(&m.name);
            let away = known.filter(|k| k.load.unavailable()).and_then(|k| k.gone);
            away.is_some_and(|at| now.mono_us >= at.saturating_add(secs * US))
        };
        let gone: Vec<Member> = self.base.members.iter().filter(gone).cloned().collect();
        if gone.is_empty() {
            return;
        }
        let mut left = self.base.members.clone();
        left.retain(|m| !gone.contains(m));
        for m in &gone {
            let text = format!("host {} was away for {secs} s: it is no longer a member", m.name);
            say(out, log::Level::Warn, text);
        }
        self.members(now, left.clone(), out);
        out.push(Effect::Members(left));
    }

    /// A datagram of a stranger that asks to be let in.
    pub(super) fn asks_in(&mut self, now: Now, from: &str, msg: Msg, out: &mut Vec<Effect>) {
        if let Msg::Lim(LimMsg::Join { cluster, addr, resources }) = msg
            && let Ok(addr) = addr.parse::<IpAddr>()
        {
            let member = Member { name: from.to_owned(), addr: addr.to_canonical(), resources };
            self.join(now, member, &cluster, out);
        }
    }
}

#[cfg(test)]
#[path = "join_tests.rs"]
mod tests;
