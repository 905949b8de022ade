//! The compute units of lsb.hosts: for each type of COMPUTE_UNIT_TYPES its units, in the order of
//! the file, with their hosts.

use crate::batch::state::names::{HostId, Id};
use crate::conf::types::{ClusterConf, ComputeUnit};
use std::collections::BTreeSet;

/// Deepest nesting of units that is followed.
const MAX_DEPTH: usize = 16;
/// A host that is in no unit of a type.
const NONE: u32 = u32::MAX;

/// All compute units.
#[derive(Debug, Default)]
pub struct ComputeUnits {
    /// In the order of COMPUTE_UNIT_TYPES: finest first.
    kinds: Vec<UnitKind>,
    /// The type that cu[] without one means.
    default: usize,
}

/// The units of one type.
#[derive(Debug)]
pub struct UnitKind {
    name: String,
    /// The hosts of each unit, ascending.
    units: Vec<Vec<HostId>>,
    /// The unit of each host.
    of_host: Vec<u32>,
}

impl ComputeUnits {
    pub fn compile(conf: &ClusterConf, host_id: impl Fn(&str) -> Option<HostId>) -> ComputeUnits {
        let types = &conf.batch.params.compute_unit_types;
        let kind = |name: &String| {
            let of_kind = conf.batch.hosts.units.iter().filter(|unit| unit.kind == *name);
            let hosts = |unit: &ComputeUnit| {
                let names = hosts_of_unit(conf, unit);
                let ids: BTreeSet<HostId> = names.iter().filter_map(|name| host_id(name)).collect();
                ids.into_iter().collect()
            };
            UnitKind::new(name.clone(), of_kind.map(hosts).collect())
        };
        ComputeUnits { kinds: types.names.iter().map(kind).collect(), default: types.default }
    }

    /// The units of a type; without one, of the default type. `None`: there is no such type.
    pub fn kind(&self, name: Option<&str>) -> Option<&UnitKind> {
        match name {
            Some(name) => self.kinds.iter().find(|kind| kind.name == name),
            None => self.kinds.get(self.default),
        }
    }

    /// The position of a type among the types, finest first; without one, of the default type.
    pub fn level(&self, name: Option<&str>) -> Option<usize> {
        match name {
            Some(name) => self.kinds.iter().position(|kind| kind.name == name),
            None => Some(self.default).filter(|at| *at < self.kinds.len()),
        }
    }

    /// The names of the types, finest first.
    pub fn kinds(&self) -> impl Iterator<Item = &str> {
        self.kinds.iter().map(|kind| kind.name.as_str())
    }
}

impl UnitKind {
    fn new(name: String, units: Vec<Vec<HostId>>) -> UnitKind {
        let most = units.iter().flatten().map(|host| host.index() + 1).max().unwrap_or(0);
        let mut of_host = vec![NONE; most];
        // a host in two units of a type is in the first
        for (number, hosts) in units.iter().enumerate() {
            for host in hosts {
                let unit = &mut of_host[host.index()];
                *unit = (*unit).min(number as u32);
            }
        }
        UnitKind { name, units, of_host }
    }

    /// The number of the unit that a host is in.
    pub fn unit_of(&self, host: HostId) -> Option<usize> {
        self.of_host.get(host.index()).copied().filter(|unit| *unit != NONE).map(|n| n as usize)
    }

    /// The hosts of a unit.
    pub fn hosts(&self, unit: usize) -> &[HostId] {
        self.units.get(unit).map_or(&[], Vec::as_slice)
    }
}

/// The names of the hosts of the unit of this name; empty where there is none.
pub fn hosts_named(conf: &ClusterConf, name: &str) -> BTreeSet<String> {
    let unit = conf.batch.hosts.units.iter().find(|unit| unit.name == name);
    unit.map_or(BTreeSet::new(), |unit| hosts_of_unit(conf, unit))
}

/// The names of the hosts of a unit, those of the units within it too.
pub fn hosts_of_unit(conf: &ClusterConf, unit: &ComputeUnit) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    hosts_of(conf, unit, 0, &mut names);
    names
}

fn hosts_of(conf: &ClusterConf, unit: &ComputeUnit, depth: usize, out: &mut BTreeSet<String>) {
    for member in &unit.members {
        let inner = conf.batch.hosts.units.iter().find(|u| u.name == *member);
        match inner.filter(|inner| inner.name != unit.name) {
            Some(inner) if depth < MAX_DEPTH => hosts_of(conf, inner, depth + 1, out),
            Some(_) => {}
            None => out.extend(conf.expand_hosts(member).into_iter().map(str::to_owned)),
        }
    }
}
