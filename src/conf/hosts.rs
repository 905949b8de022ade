//! Names and addresses of the cluster's hosts, and the `hosts` file.
//!
//! A host's canonical name is its spelling in lsf.cluster; everything else (alias, address, short
//! name) leads to that. Look-ups ignore ASCII case, as the resolver does. Addresses come from
//! LSF_CONFDIR/hosts, and from /etc/hosts for hosts that file does not name; what neither knows is
//! added at run time with [`HostTable::add_address`]. See lsf.hosts(5).

use super::diag::{Diags, Pos};
use core::net::IpAddr;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One host of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostEntry {
    /// The spelling of lsf.cluster.
    pub name: String,
    /// Other names, in the order of the files.
    pub aliases: Vec<String>,
    /// The addresses, in the order of the files; the first is the one to connect to.
    pub addrs: Vec<IpAddr>,
}

/// The host that a name identifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    /// One host, by index.
    One(usize),
    /// Several hosts share it: it leads nowhere.
    Shared,
}

/// The hosts of the cluster by name, alias, address and unique short name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostTable {
    entries: Vec<HostEntry>,
    names: BTreeMap<String, usize>,
    aliases: BTreeMap<String, Slot>,
    shorts: BTreeMap<String, Slot>,
    addrs: BTreeMap<IpAddr, usize>,
    domains: Vec<String>,
}

impl HostTable {
    /// A table of the names of lsf.cluster. `domains` are those of LSF_STRIP_DOMAIN.
    /// A repeated name is entered once.
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>, domains: &[String]) -> Self {
        let mut table = HostTable {
            domains: domains
                .iter()
                .map(|d| d.trim_start_matches('.').to_ascii_lowercase())
                .filter(|d| !d.is_empty())
                .collect(),
            ..HostTable::default()
        };
        for name in names {
            table.add_host(name);
        }
        table
    }

    /// Adds a host, as lsf.cluster or a dynamic host spells it.
    pub fn add_host(&mut self, name: &str) {
        let key = name.to_ascii_lowercase();
        if self.names.contains_key(&key) {
            return;
        }
        let index = self.entries.len();
        if let Some(short) = self.short_of(&key) {
            claim(&mut self.shorts, short, index);
        }
        self.names.insert(key, index);
        self.entries.push(HostEntry { name: name.to_owned(), ..HostEntry::default() });
    }

    /// This table without the named hosts.
    pub fn without(&self, names: &[&str]) -> HostTable {
        let mut table = HostTable { domains: self.domains.clone(), ..HostTable::default() };
        for entry in self.entries.iter().filter(|e| !names.contains(&e.name.as_str())) {
            table.add_host(&entry.name);
        }
        for entry in &table.entries.clone() {
            let Some(old) = self.find(&entry.name).map(|i| &self.entries[i]) else { continue };
            let Some(index) = table.find(&entry.name) else { continue };
            for addr in &old.addrs {
                table.enter_address(index, *addr);
            }
            old.aliases.iter().for_each(|a| table.enter_alias(index, a));
        }
        table
    }

    /// Adds an address of a host already in the table.
    pub fn add_address(&mut self, canonical: &str, addr: IpAddr) {
        if let Some(&index) = self.names.get(&canonical.to_ascii_lowercase()) {
            self.enter_address(index, addr);
        }
    }

    /// The hosts, in the order of lsf.cluster.
    pub fn entries(&self) -> &[HostEntry] {
        &self.entries
    }

    /// The canonical name of what `name` spells: a name, an alias, a short name, or the text of
    /// an address.
    pub fn canonical(&self, name: &str) -> Option<&str> {
        self.find(name).map(|i| self.entries[i].name.as_str())
    }

    /// The entry `name` leads to.
    pub fn entry(&self, name: &str) -> Option<&HostEntry> {
        self.find(name).map(|i| &self.entries[i])
    }

    /// The canonical name of the host that has this address.
    pub fn by_addr(&self, addr: IpAddr) -> Option<&str> {
        self.addrs.get(&addr.to_canonical()).map(|&i| self.entries[i].name.as_str())
    }

    /// The addresses of a host; empty where unknown.
    pub fn addrs(&self, name: &str) -> &[IpAddr] {
        self.find(name).map_or(&[], |i| self.entries[i].addrs.as_slice())
    }

    /// Whether `addr` is one of the addresses of `name`.
    pub fn owns(&self, name: &str, addr: IpAddr) -> bool {
        self.addrs(name).contains(&addr.to_canonical())
    }

    fn find(&self, name: &str) -> Option<usize> {
        let key = name.to_ascii_lowercase();
        if let Some(&index) = self.names.get(&key) {
            return Some(index);
        }
        if let Some(slot) = self.aliases.get(&key) {
            return slot.one();
        }
        let short = self.short_of(&key);
        if let Some(&index) = short.as_ref().and_then(|s| self.names.get(s)) {
            return Some(index);
        }
        if let Some(slot) = self.shorts.get(short.as_ref().unwrap_or(&key)) {
            return slot.one();
        }
        key.parse::<IpAddr>().ok().and_then(|a| self.addrs.get(&a.to_canonical()).copied())
    }

    /// A lower-case name less a domain of LSF_STRIP_DOMAIN.
    fn short_of(&self, key: &str) -> Option<String> {
        self.domains.iter().find_map(|domain| {
            let rest = key.strip_suffix(domain.as_str())?.strip_suffix('.')?;
            (!rest.is_empty()).then(|| rest.to_owned())
        })
    }

    fn enter_address(&mut self, index: usize, addr: IpAddr) -> Option<usize> {
        let addr = addr.to_canonical();
        if !self.entries[index].addrs.contains(&addr) {
            self.entries[index].addrs.push(addr);
        }
        let owner = *self.addrs.entry(addr).or_insert(index);
        (owner != index).then_some(owner)
    }

    fn enter_alias(&mut self, index: usize, alias: &str) {
        let key = alias.to_ascii_lowercase();
        if self.names.contains_key(&key) {
            return;
        }
        claim(&mut self.aliases, key, index);
        let entry = &mut self.entries[index];
        if !entry.aliases.iter().any(|a| a.eq_ignore_ascii_case(alias)) {
            entry.aliases.push(alias.to_owned());
        }
    }

    /// Reads a file of `address official-name alias...` lines. With `ours` the file is LSF's own
    /// `hosts`: its mistakes are told. Otherwise it is /etc/hosts, which may say anything, and
    /// hosts that already have an address are left alone.
    pub fn read(&mut self, path: &str, text: &[u8], ours: bool, diags: &mut Diags) {
        let file: Arc<str> = Arc::from(path);
        let settled: Vec<bool> =
            self.entries.iter().map(|e| !ours && !e.addrs.is_empty()).collect();
        let mut quiet = Diags::new();
        let diags = if ours { diags } else { &mut quiet };
        for (number, line) in text.split(|&b| b == b'\n').enumerate() {
            let line = String::from_utf8_lossy(line);
            let line = line.split('#').next().unwrap_or_default();
            let at = |word: &str| {
                let offset = word.as_ptr() as usize - line.as_ptr() as usize;
                Pos::new(&file, number as u32 + 1, line[..offset].chars().count() as u32 + 1)
            };
            self.read_line(line, &settled, &at, diags);
        }
    }

    fn read_line(
        &mut self,
        line: &str,
        settled: &[bool],
        at: &dyn Fn(&str) -> Pos,
        diags: &mut Diags,
    ) {
        let mut words = line.split_whitespace();
        let Some(first) = words.next() else { return };
        let Ok(addr) = first.parse::<IpAddr>() else {
            diags.error(&at(first), format!("<{first}> is not an IP address"));
            return;
        };
        let names: Vec<&str> = words.collect();
        if names.is_empty() {
            diags.error(&at(first), format!("address <{first}> has no host name"));
            return;
        }
        let Some(index) = names.iter().find_map(|n| self.find_name(n)) else {
            // Names outside the cluster (clients, floating hosts) may well stand here.
            return;
        };
        if settled[index] {
            return;
        }
        if let Some(owner) = self.enter_address(index, addr) {
            let other = self.entries[owner].name.clone();
            let text = format!("address <{first}> is already that of host <{other}>");
            diags.warning(&at(first), text);
        }
        for name in names {
            self.enter_alias(index, name);
        }
    }

    /// Finds a host like `find`, without reading the name as an address.
    fn find_name(&self, name: &str) -> Option<usize> {
        if name.parse::<IpAddr>().is_ok() { None } else { self.find(name) }
    }
}

impl Slot {
    fn one(self) -> Option<usize> {
        match self {
            Slot::One(index) => Some(index),
            Slot::Shared => None,
        }
    }
}

fn claim(map: &mut BTreeMap<String, Slot>, key: String, index: usize) {
    map.entry(key)
        .and_modify(|slot| {
            if *slot != Slot::One(index) {
                *slot = Slot::Shared;
            }
        })
        .or_insert(Slot::One(index));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("address")
    }

    fn table(hosts: &str) -> (HostTable, Vec<String>) {
        let mut table = HostTable::new(["hostA", "hostB.eng", "c1"], &["eng".into(), "lab".into()]);
        let mut diags = Diags::new();
        table.read("hosts", hosts.as_bytes(), true, &mut diags);
        (table, diags.list().iter().map(|d| d.to_string()).collect())
    }

    #[test]
    fn names_aliases_addresses_and_short_names_lead_to_the_canonical_name() {
        let (t, d) = table(
            "10.0.0.1 hosta.corp HostA # note\n10.0.0.11 hostA\n\
             fe80::2 b2 hostB.eng\r\n\n10.9.9.9 x\n",
        );
        assert_eq!(d, Vec::<String>::new());
        for name in ["hostA", "HOSTA", "hosta.corp", "10.0.0.1", "10.0.0.11", "hosta.eng"] {
            assert_eq!(t.canonical(name), Some("hostA"), "{name}");
        }
        for name in ["hostB", "hostb.lab", "hostB.eng", "b2", "fe80::2"] {
            assert_eq!(t.canonical(name), Some("hostB.eng"), "{name}");
        }
        assert_eq!(t.canonical("x"), None);
        assert_eq!(t.canonical("hosta.other"), None);
        assert_eq!(t.by_addr(ip("::ffff:10.0.0.1")), Some("hostA"));
        assert!(t.owns("hostA", ip("10.0.0.11")) && !t.owns("hostA", ip("10.9.9.9")));
        assert_eq!(t.addrs("hostA"), &[ip("10.0.0.1"), ip("10.0.0.11")]);
        assert_eq!(t.entries()[1].aliases, ["b2"]);
    }

    #[test]
    fn a_short_name_of_two_hosts_leads_nowhere() {
        let t = HostTable::new(["a.eng", "a.lab"], &["eng".into(), "lab".into()]);
        assert_eq!(t.canonical("a"), None);
        assert_eq!(t.canonical("A.ENG"), Some("a.eng"));
    }

    #[test]
    fn an_alias_of_two_hosts_leads_nowhere_and_never_hides_a_name() {
        let (t, _) = table("10.0.0.1 hostA both c1\n10.0.0.2 c1 both\n");
        assert_eq!(t.canonical("both"), None);
        assert_eq!(t.canonical("c1"), Some("c1"));
    }

    #[test]
    fn mistakes_carry_their_place() {
        let (_, d) = table("10.0.0.1 hostA\n  10.0.0.300 c1\n10.0.0.7\n10.0.0.1 c1\n");
        assert_eq!(
            d,
            [
                "hosts:2:3: <10.0.0.300> is not an IP address",
                "hosts:3:1: address <10.0.0.7> has no host name",
                "hosts:4:1: address <10.0.0.1> is already that of host <hostA>",
            ]
        );
    }

    #[test]
    fn etc_hosts_fills_only_what_is_missing_and_stays_silent() {
        let (mut t, _) = table("10.0.0.1 hostA\n");
        let mut d = Diags::new();
        t.read(
            "/etc/hosts",
            b"nonsense\n127.0.1.1 hostA\n10.0.0.3 c1\n10.0.0.4 c1\n",
            false,
            &mut d,
        );
        assert!(d.list().is_empty());
        assert_eq!(t.addrs("hostA"), &[ip("10.0.0.1")]);
        assert_eq!(t.addrs("c1"), &[ip("10.0.0.3"), ip("10.0.0.4")]);
    }

    #[test]
    fn addresses_can_be_learnt_later() {
        let (mut t, _) = table("");
        t.add_address("C1", ip("::1"));
        t.add_address("nobody", ip("::2"));
        assert_eq!(t.by_addr(ip("::1")), Some("c1"));
        assert_eq!(t.by_addr(ip("::2")), None);
    }
}
