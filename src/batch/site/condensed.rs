//! The host groups and compute units that listings show in place of their hosts: CONDENSE of
//! lsb.hosts(5).

use crate::batch::site::units::hosts_of_unit;
use crate::batch::state::names::HostId;
use crate::conf::types::ClusterConf;
use std::collections::{BTreeSet, HashMap};

/// The host groups and compute units with CONDENSE, groups first, in the order of lsb.hosts.
#[derive(Debug, Default)]
pub struct Condensed {
    names: Vec<String>,
    /// Positions in `names`, ascending.
    of_host: HashMap<HostId, Vec<usize>>,
}

impl Condensed {
    pub fn compile(conf: &ClusterConf, host_id: impl Fn(&str) -> Option<HostId>) -> Condensed {
        let hosts = &conf.batch.hosts;
        let groups = hosts.groups.iter().filter(|group| group.condense);
        let groups = groups.map(|group| (&group.name, conf.expand_hosts(&group.name)));
        let groups = groups.map(|(name, all)| (name, all.into_iter().map(str::to_owned).collect()));
        let units = hosts.units.iter().filter(|unit| unit.condense);
        let units = units.map(|unit| (&unit.name, hosts_of_unit(conf, unit)));
        let mut condensed = Condensed::default();
        for (name, members) in groups.chain(units) {
            let members: BTreeSet<String> = members;
            for host in members.iter().filter_map(|host| host_id(host)) {
                condensed.of_host.entry(host).or_default().push(condensed.names.len());
            }
            condensed.names.push(name.clone());
        }
        condensed
    }

    /// Is every host shown by itself?
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The groups and units that are shown in place of a host.
    pub fn of(&self, host: HostId) -> impl Iterator<Item = &str> {
        let all = self.of_host.get(&host).map_or(&[][..], Vec::as_slice);
        all.iter().filter_map(|at| self.names.get(*at)).map(String::as_str)
    }
}
