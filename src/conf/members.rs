//! Hosts that lsf.cluster does not name (dynamic hosts): which may join, what they are, and the
//! file `hostcache` beside the event log, in which the master LIM keeps those that have.
//!
//! Only a host whose address is in LSF_HOST_ADDR_RANGE may join, and only where LSF_MASTER_LIST
//! says who is master: such a host is never a candidate. See LSF_DYNAMIC_HOST_WAIT_TIME,
//! LSF_DYNAMIC_HOST_TIMEOUT, LSF_LOCAL_RESOURCES in lsf.conf(5) and LSF_HOST_ADDR_RANGE in
//! lsf.cluster(5).

use super::files::Files;
use super::hosts::HostTable;
use super::lexer::MAX_BYTES;
use super::section::name_fault;
use super::types::{BaseConf, HostDef, HostResource, LsfConf, Member, Shared};
use core::net::Ipv4Addr;
use std::fmt::Write;

/// Most hosts that may join.
pub const MAX_MEMBERS: usize = 10_000;
/// Longest name of one, and longest text of its resources, bytes.
const MAX_NAME: usize = 255;
const MAX_RESOURCES: usize = 4096;
/// Bounds of LSF_DYNAMIC_HOST_TIMEOUT, seconds.
const MIN_TIMEOUT: u64 = 600;
const MAX_TIMEOUT: u64 = 100 * 3600;
/// Words that mean several hosts, or none.
const NOT_NAMES: [&str; 7] = ["all", "allremote", "default", "none", "others", "localhost", "lost"];

impl Member {
    /// The reason why no host can join with these settings; `None`: a host may.
    pub fn fault(&self) -> Option<String> {
        let name = self.name.as_str();
        let fine = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
        let special = NOT_NAMES.iter().any(|n| n.eq_ignore_ascii_case(name));
        let odd = name.starts_with(['-', '.']) || !name.chars().all(fine);
        if name_fault(name).is_some() || odd || special || name.len() > MAX_NAME {
            return Some(format!("<{}> cannot name a host", name.escape_debug()));
        }
        let long = self.resources.len() > MAX_RESOURCES;
        if long || self.resources.contains(char::is_control) {
            return Some(format!("bad LSF_LOCAL_RESOURCES of host {name}"));
        }
        None
    }

    /// The row of lsf.cluster that this host would have. Words that lsf.shared does not define are
    /// left out.
    pub fn def(&self, shared: &Shared) -> HostDef {
        let mut def =
            HostDef { name: self.name.clone(), server: true, dynamic: true, ..HostDef::default() };
        for group in self.resources.split('[').skip(1) {
            let mut words = group.split(']').next().unwrap_or_default().split_whitespace();
            let (kind, rest) = (words.next().unwrap_or_default(), words);
            for word in rest {
                match kind.to_ascii_lowercase().as_str() {
                    "resource" => def.resources.extend(resource(word, None, shared)),
                    "resourcemap" => {
                        let Some((value, name)) = word.split_once('*') else { continue };
                        def.resources.extend(resource(name, Some(value), shared));
                    }
                    "type" => def.host_type = shared.types.iter().find(|t| *t == word).cloned(),
                    "model" => {
                        let model = shared.models.iter().find(|m| m.name == word);
                        def.model = model.map(|m| m.name.clone());
                    }
                    _ => {}
                }
            }
        }
        def
    }
}

fn resource(word: &str, value: Option<&str>, shared: &Shared) -> Option<HostResource> {
    let (exclusive, name) = match word.strip_prefix('!') {
        Some(name) => (true, name),
        None => (false, word),
    };
    let known = shared.resources.iter().find(|r| r.name == name)?;
    let value = value.map(str::to_owned);
    Some(HostResource { name: known.name.clone(), value, exclusive, absent: false })
}

/// Seconds after which a host that is not there is no member any more: LSF_DYNAMIC_HOST_TIMEOUT
/// in hours, or minutes with `m`, also as `EXPIRY[...]`. None: it stays one.
pub fn timeout(lsf: &LsfConf) -> Option<u64> {
    let text = lsf.get("LSF_DYNAMIC_HOST_TIMEOUT")?.trim();
    let text = match text.split_once("EXPIRY[") {
        Some((_, rest)) => rest.split(']').next()?,
        None => text,
    };
    let (number, unit) = match text.strip_suffix(['m', 'M']) {
        Some(number) => (number, 60),
        None => (text.strip_suffix(['h', 'H']).unwrap_or(text), 3600),
    };
    let secs = number.trim().parse::<u64>().ok()?.saturating_mul(unit);
    Some(secs.clamp(MIN_TIMEOUT, MAX_TIMEOUT))
}

/// Seconds that a host that lsf.cluster does not name waits before it asks to join; None: it
/// never does.
pub fn wait_time(lsf: &LsfConf) -> Option<u64> {
    lsf.get("LSF_DYNAMIC_HOST_WAIT_TIME")?.trim().parse().ok()
}

/// The contents of the file; malformed lines are left out.
pub fn parse(text: &str) -> Vec<Member> {
    let member = |line: &str| {
        let line = line.split('#').next()?.trim();
        let (name, rest) = line.split_once(' ')?;
        let (addr, resources) = rest.split_once(' ').unwrap_or((rest, ""));
        let (name, resources) = (name.to_owned(), resources.to_owned());
        let member = Member { name, addr: addr.parse().ok()?, resources };
        member.fault().is_none().then_some(member)
    };
    text.lines().filter_map(member).take(MAX_MEMBERS).collect()
}

/// The file.
pub fn write(members: &[Member]) -> String {
    let mut text = "# Hosts that joined by themselves: kept by the master lim.\n".to_owned();
    for Member { name, addr, resources } in members {
        // writing to a String cannot fail
        let _ = writeln!(text, "{name} {addr} {}", resources.replace('#', " "));
    }
    text
}

/// Takes these members into a table of names, and those out who are no more.
pub fn merge(table: &mut HostTable, old: &[Member], new: &[Member]) {
    let left = |m: &&Member| !new.contains(m);
    let gone: Vec<&str> = old.iter().filter(left).map(|m| m.name.as_str()).collect();
    if !gone.is_empty() {
        *table = table.without(&gone);
    }
    for m in new {
        if table.canonical(&m.name).is_none() && table.by_addr(m.addr).is_none() {
            table.add_host(&m.name);
            table.add_address(&m.name, m.addr);
        }
    }
}

impl BaseConf {
    /// The path of the file of members; `None`: no host can join.
    pub fn hostcache(&self) -> Option<String> {
        let open = !self.cluster.params.addr_range.is_empty() || wait_time(&self.lsf).is_some();
        let dir = self.lsf.batch_logdir(&self.name).filter(|_| open)?;
        (!self.lsf.master_list().is_empty()).then(|| format!("{dir}/hostcache"))
    }

    /// The hosts that may become master: the server hosts of LSF_MASTER_LIST in its order, else
    /// those of lsf.cluster in its order.
    pub fn master_candidates(&self) -> Vec<String> {
        let server = |name: &str| {
            self.cluster.hosts.iter().any(|h| h.server && !h.dynamic && h.name == name)
        };
        let listed = self.lsf.master_list();
        let listed = listed.iter().filter_map(|name| self.hosts.canonical(name));
        let found: Vec<String> = listed.filter(|name| server(name)).map(str::to_owned).collect();
        if !found.is_empty() {
            return found;
        }
        let hosts = self.cluster.hosts.iter().filter(|h| h.server && !h.dynamic);
        hosts.map(|h| h.name.clone()).collect()
    }

    /// The directory of the primary event log, if this host is to have it (LSB_LOCALDIR).
    pub fn primary_logdir(&self, host: &str) -> Option<String> {
        let dir = self.lsf.local_logdir(&self.name)?;
        self.master_candidates().first().is_some_and(|first| first == host).then_some(dir)
    }

    /// The hosts that lsf.cluster names.
    pub fn named_hosts(&self) -> impl Iterator<Item = &HostDef> {
        self.cluster.hosts.iter().filter(|h| !h.dynamic)
    }

    /// Takes these members, and no others; `me` stays what it is. True: something has changed.
    pub fn set_members(&mut self, members: &[Member], me: &str) -> bool {
        let old: Vec<Member> = self.members.iter().filter(|m| m.name != me).cloned().collect();
        let new: Vec<Member> = members.iter().filter(|m| m.name != me).cloned().collect();
        if old == new {
            return false;
        }
        merge(&mut self.hosts, &old, &new);
        self.cluster.hosts.retain(|h| !h.dynamic || h.name == me);
        for m in &new {
            if self.hosts.canonical(&m.name) == Some(&m.name) && self.hosts.owns(&m.name, m.addr) {
                self.cluster.hosts.push(m.def(&self.shared));
            }
        }
        self.members = new;
        true
    }

    /// Takes the members that the file has.
    pub(super) fn read_members(&mut self, files: &dyn Files, me: &str) {
        let Some(path) = self.hostcache().filter(|path| files.exists(path)) else { return };
        let Ok(bytes) = files.read(&path) else { return };
        if bytes.len() <= MAX_BYTES {
            let members = parse(&String::from_utf8_lossy(&bytes));
            self.set_members(&members, me);
        }
    }

    /// Adds this host, where lsf.cluster does not name it and it may ask to join. True: it is
    /// new.
    pub(super) fn add_self(&mut self, me: &str) -> bool {
        let may = wait_time(&self.lsf).is_some() && !self.lsf.master_list().is_empty();
        if !may || me.is_empty() || self.hosts.canonical(me).is_some() {
            return false;
        }
        let resources = self.lsf.get("LSF_LOCAL_RESOURCES").unwrap_or_default().to_owned();
        let own = Member { name: me.to_owned(), addr: Ipv4Addr::UNSPECIFIED.into(), resources };
        if own.fault().is_some() {
            return false;
        }
        self.hosts.add_host(me);
        self.cluster.hosts.push(own.def(&self.shared));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conf::{HostModel, ResourceDef};
    use core::net::IpAddr;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn timeouts_are_hours_or_minutes_within_bounds() {
        let of = |text: &str| {
            let mut lsf = LsfConf::default();
            lsf.set("LSF_DYNAMIC_HOST_TIMEOUT", text);
            timeout(&lsf)
        };
        assert_eq!(
            [of("2"), of("2h"), of("30m"), of("EXPIRY[40m] THRESHOLD[5]")],
            [Some(7200), Some(7200), Some(1800), Some(2400)]
        );
        assert_eq!([of("1m"), of("1000"), of("never")], [Some(600), Some(360_000), None]);
        assert_eq!(timeout(&LsfConf::default()), None);
    }

    fn member(name: &str, addr: &str, resources: &str) -> Member {
        Member { name: name.into(), addr: ip(addr), resources: resources.into() }
    }

    #[test]
    fn the_file_is_read_back_and_nonsense_left_out() {
        let all = [
            member("d1", "10.0.0.1", "[resource fast] [type X86_64]"),
            member("d2.eng", "fe80::1", ""),
        ];
        let text = write(&all);
        assert_eq!(parse(&text), all);
        let bad = "d3\nall 1.2.3.4\n-x 1.2.3.4\nd4 nowhere\na/b 1.2.3.4\n";
        assert_eq!(parse(&format!("{bad}{text}")), all);
    }

    #[test]
    fn members_come_and_go_beside_the_hosts_of_the_cluster_file() {
        let mut base = BaseConf { hosts: HostTable::new(["h1"], &[]), ..BaseConf::default() };
        base.hosts.add_address("h1", ip("10.0.0.9"));
        base.cluster.hosts = vec![HostDef { name: "h1".into(), ..HostDef::default() }];
        base.shared.types = vec!["T".into()];
        base.shared.models = vec![HostModel { name: "M".into(), ..HostModel::default() }];
        base.shared.resources = ["fast", "lic"]
            .map(|n| ResourceDef { name: n.into(), ..ResourceDef::default() })
            .to_vec();
        let words = "[resource fast !lic nosuch] [type T] [model M] [resourcemap 3*lic]";
        // one that takes another's name or address gets neither
        let all = [
            member("d1", "10.0.0.1", words),
            member("H1", "10.0.0.2", ""),
            member("d3", "10.0.0.9", ""),
        ];
        assert!(base.set_members(&all, "") && !base.set_members(&all, ""));
        let names =
            |b: &BaseConf| b.cluster.hosts.iter().map(|h| h.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&base), ["h1", "d1"]);
        let def = &base.cluster.hosts[1];
        assert!(def.dynamic && def.server);
        assert_eq!((def.host_type.as_deref(), def.model.as_deref()), (Some("T"), Some("M")));
        let has: Vec<_> = def
            .resources
            .iter()
            .map(|r| (r.name.as_str(), r.value.as_deref(), r.exclusive))
            .collect();
        assert_eq!(has, [("fast", None, false), ("lic", None, true), ("lic", Some("3"), false)]);
        assert_eq!(base.hosts.by_addr(ip("10.0.0.1")), Some("d1"));
        assert_eq!(base.hosts.by_addr(ip("10.0.0.9")), Some("h1"));
        assert!(base.set_members(&[], ""));
        assert_eq!((names(&base), base.hosts.canonical("d1")), (vec!["h1".to_owned()], None));
        assert_eq!(base.hosts.by_addr(ip("10.0.0.1")), None);
        // a host that has joined is always its own
        base.set_members(&all[..1], "");
        base.members.clear();
        assert!(!base.set_members(&[], "d1") && base.hosts.canonical("d1").is_some());
    }
}
