//! Who is the master: the first candidate, in the order of LSF_MASTER_LIST or lsf.cluster.
//!
//! The later candidates take over when news of the earlier ones stays away (semantics.md
//! section 27); that rule has its place here, in [`Election::heard`] and [`Election::master`],
//! and is not acted on yet: the answer is always the first candidate.

use crate::conf::BaseConf;

/// The candidates and what is known of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Election {
    candidates: Vec<String>,
}

impl Election {
    /// The server hosts of LSF_MASTER_LIST in its order, else those of lsf.cluster in its order.
    pub fn new(base: &BaseConf) -> Self {
        let server = |name: &str| base.cluster.hosts.iter().any(|h| h.server && h.name == name);
        let listed: Vec<String> = base
            .lsf
            .master_list()
            .iter()
            .filter_map(|name| base.hosts.canonical(name))
            .filter(|name| server(name))
            .map(str::to_owned)
            .collect();
        if !listed.is_empty() {
            return Election { candidates: listed };
        }
        let hosts = base.cluster.hosts.iter().filter(|h| h.server);
        Election { candidates: hosts.map(|h| h.name.clone()).collect() }
    }

    /// In their order.
    pub fn candidates(&self) -> &[String] {
        &self.candidates
    }

    /// News of a candidate.
    pub fn heard(&mut self, _host: &str, _mono_us: u64) {}

    /// The master as far as this host can tell.
    pub fn master(&self) -> Option<&str> {
        self.candidates.first().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conf::{HostDef, HostTable};

    fn base(list: &str) -> BaseConf {
        let names = [("client", false), ("h1", true), ("h2.eng", true), ("h3", true)];
        let mut base = BaseConf {
            hosts: HostTable::new(names.map(|(n, _)| n), &["eng".to_string()]),
            ..BaseConf::default()
        };
        base.cluster.hosts = names
            .map(|(name, server)| HostDef { name: name.into(), server, ..HostDef::default() })
            .to_vec();
        base.lsf.set("LSF_MASTER_LIST", list);
        base
    }

    #[test]
    fn the_list_rules_then_the_cluster_file() {
        assert_eq!(Election::new(&base("")).master(), Some("h1"));
        assert_eq!(Election::new(&base("h2 h1")).master(), Some("h2.eng"));
        assert_eq!(Election::new(&base("client nosuch H3")).master(), Some("h3"));
        assert_eq!(Election::new(&base("client nosuch")).master(), Some("h1"));
        assert_eq!(Election::default().master(), None);
    }
}
