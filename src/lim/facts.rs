//! The properties of a host: the configuration overrides the measurement.
//!
//! See lsf.shared(5), lsf.cluster(5) and EGO_DEFINE_NCPUS in lsf.conf(5).

use crate::conf::{BaseConf, HostDef, ResourceInstance, ResourceMapping};
use crate::proto::lim::{HostFacts, INDEX_NAMES, SharedRow};

/// Type and model of a host that no table names.
pub const DEFAULT_NAME: &str = "DEFAULT";

/// The facts of `host`. `found` is what its LIM measured: its type, and in `model` its
/// architecture as lsf.shared's HostModel spells it; None while nothing was heard of it.
pub fn of_host(base: &BaseConf, host: &str, found: Option<&HostFacts>) -> HostFacts {
    let def = base.cluster.hosts.iter().find(|h| h.name == host);
    let mut facts = found.cloned().unwrap_or_default();
    facts.host_type = host_type(base, def, &facts.host_type);
    facts.model = model(base, def, &facts.model);
    facts.cpu_factor = factor(base, &facts.model);
    facts.ncpus = ncpus(base, &facts);
    facts.shared = shared_of(base, host);
    let Some(def) = def else { return facts };
    if let Some(disks) = def.ndisks {
        facts.ndisks = disks;
    }
    facts.server = def.server;
    facts.rexpri = def.rexpri;
    facts.run_window = def.run_window.clone();
    facts.thresholds = thresholds(def);
    let has = def.resources.iter().filter(|r| !r.absent);
    facts.resources = has.clone().map(|r| (r.name.clone(), r.value.clone())).collect();
    facts.exclusive = has.filter(|r| r.exclusive).map(|r| r.name.clone()).collect();
    facts
}

fn host_type(base: &BaseConf, def: Option<&HostDef>, found: &str) -> String {
    if let Some(given) = def.and_then(|d| d.host_type.clone()) {
        return given;
    }
    let known = base.shared.types.iter().find(|t| t.eq_ignore_ascii_case(found));
    known.cloned().unwrap_or_else(|| DEFAULT_NAME.to_owned())
}

/// The model given, else the one with the longest architecture that the measured one begins
/// with.
fn model(base: &BaseConf, def: Option<&HostDef>, found: &str) -> String {
    if let Some(given) = def.and_then(|d| d.model.clone()) {
        return given;
    }
    let mut best: Option<(usize, &str)> = None;
    for m in &base.shared.models {
        for arch in &m.architectures {
            let longer = best.is_none_or(|(len, _)| arch.len() > len);
            if !arch.is_empty() && found.starts_with(arch.as_str()) && longer {
                best = Some((arch.len(), &m.name));
            }
        }
    }
    best.map_or(DEFAULT_NAME, |(_, name)| name).to_owned()
}

fn factor(base: &BaseConf, model: &str) -> f64 {
    let known = base.shared.models.iter().find(|m| m.name == model);
    known.map(|m| m.cpu_factor).filter(|f| *f > 0.0).unwrap_or(1.0)
}

/// ncpus by EGO_DEFINE_NCPUS: processors, cores (the default) or threads.
fn ncpus(base: &BaseConf, f: &HostFacts) -> u32 {
    if f.nprocs == 0 {
        return f.ncpus;
    }
    let cores = f.nprocs.saturating_mul(f.ncores.max(1));
    match base.lsf.get("EGO_DEFINE_NCPUS") {
        Some("procs") => f.nprocs,
        Some("threads") => cores.saturating_mul(f.nthreads.max(1)),
        _ => cores,
    }
}

fn thresholds(def: &HostDef) -> Vec<Option<f64>> {
    let of = |name: &str| def.thresholds.iter().find(|(n, _)| n == name).map(|(_, v)| *v);
    INDEX_NAMES.map(of).to_vec()
}

/// Every static instance of the ResourceMap.
pub fn shared_rows(base: &BaseConf) -> Vec<SharedRow> {
    let mut rows = Vec::new();
    for mapping in &base.cluster.resource_map {
        for instance in &mapping.instances {
            let Some(value) = &instance.value else { continue };
            for hosts in instance_hosts(base, mapping, instance) {
                let name = mapping.resource.clone();
                rows.push(SharedRow { name, value: value.clone(), hosts, dynamic: false });
            }
        }
    }
    rows
}

/// The host whose elims report an instance of a dynamic resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reporter {
    /// `[default]`: every host its own.
    Each,
    /// `[all]`: the master's.
    Master,
    /// A list: those of its first available host.
    First,
}

/// An instance of a dynamic resource.
#[derive(Clone, Debug, PartialEq)]
pub struct Instance {
    pub resource: String,
    pub hosts: Vec<String>,
    pub reporter: Reporter,
}

/// The instances that elims report, in the order of the ResourceMap.
pub fn dynamic_instances(base: &BaseConf) -> Vec<Instance> {
    let dynamic =
        |name: &str| base.shared.resources.iter().any(|r| r.name == name && r.interval.is_some());
    let mut found = Vec::new();
    for mapping in base.cluster.resource_map.iter().filter(|m| dynamic(&m.resource)) {
        for instance in mapping.instances.iter().filter(|i| i.value.is_none()) {
            let has = |word: &str| instance.hosts.iter().any(|w| w == word);
            let reporter = match (has("default"), has("all")) {
                (true, _) => Reporter::Each,
                (_, true) => Reporter::Master,
                _ => Reporter::First,
            };
            let hosts = instance_hosts(base, mapping, instance).concat();
            found.push(Instance { resource: mapping.resource.clone(), hosts, reporter });
        }
    }
    found
}

/// The hosts of each instance of a resource, static or dynamic.
pub fn all_instances(base: &BaseConf, resource: &str) -> Vec<Vec<String>> {
    let fixed = shared_rows(base).into_iter().filter(|row| row.name == resource);
    let moving = dynamic_instances(base).into_iter().filter(|of| of.resource == resource);
    let moving = moving.flat_map(|of| match of.reporter {
        Reporter::Each => of.hosts.into_iter().map(|host| vec![host]).collect(),
        Reporter::Master | Reporter::First => vec![of.hosts],
    });
    fixed.map(|row| row.hosts).chain(moving).collect()
}

fn shared_of(base: &BaseConf, host: &str) -> Vec<(String, String)> {
    let rows = shared_rows(base).into_iter();
    rows.filter(|r| r.hosts.iter().any(|h| h == host)).map(|r| (r.name, r.value)).collect()
}

/// The hosts of a bracket; `[default]` makes one instance a host.
fn instance_hosts(
    base: &BaseConf,
    mapping: &ResourceMapping,
    instance: &ResourceInstance,
) -> Vec<Vec<String>> {
    let all = || base.cluster.hosts.iter().filter(|h| h.server).map(|h| h.name.clone());
    if instance.hosts.iter().any(|w| w == "default") {
        return all().map(|h| vec![h]).collect();
    }
    let name_of = |word: &str| base.hosts.canonical(word).unwrap_or(word).to_owned();
    let named = |i: &ResourceInstance, host: &str| {
        i.hosts.iter().any(|w| !w.starts_with('~') && name_of(w) == host)
    };
    let mut hosts: Vec<String> = Vec::new();
    for word in &instance.hosts {
        match word.as_str() {
            "all" => hosts.extend(all()),
            "others" => {
                let free = |h: &String| !mapping.instances.iter().any(|i| named(i, h));
                hosts.extend(all().filter(free));
            }
            w if w.starts_with('~') => {}
            w => hosts.push(name_of(w)),
        }
    }
    let out = |h: &String| {
        instance.hosts.iter().filter_map(|w| w.strip_prefix('~')).any(|w| name_of(w) == *h)
    };
    hosts.retain(|h| !out(h));
    let mut seen = std::collections::BTreeSet::new();
    hosts.retain(|h| seen.insert(h.clone()));
    vec![hosts]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conf::{HostModel, HostResource, HostTable};

    fn base() -> BaseConf {
        let mut base =
            BaseConf { hosts: HostTable::new(["h1", "h2", "h3"], &[]), ..BaseConf::default() };
        base.shared.types = vec!["X86_64".into(), "LINUX".into()];
        let model = |name: &str, cpu_factor, arch: &str| HostModel {
            name: name.into(),
            cpu_factor,
            architectures: vec![arch.into()],
        };
        base.shared.models =
            vec![model("Any86", 5.0, "x"), model("Intel_E5", 12.5, "x6_"), model("P9", 20.0, "p9")];
        base.cluster.hosts = ["h1", "h2", "h3"]
            .map(|n| HostDef { name: n.into(), server: true, ..HostDef::default() })
            .to_vec();
        base
    }

    fn found() -> HostFacts {
        HostFacts {
            host_type: "X86_64".into(),
            model: "x6_4800_Xeon".into(),
            nprocs: 2,
            ncores: 8,
            nthreads: 2,
            ndisks: 3,
            max_mem: 64000,
            ..HostFacts::default()
        }
    }

    #[test]
    fn measured_type_and_model_are_looked_up() {
        let f = of_host(&base(), "h1", Some(&found()));
        assert_eq!((f.host_type.as_str(), f.model.as_str()), ("X86_64", "Intel_E5"));
        assert_eq!((f.cpu_factor, f.ncpus, f.ndisks, f.server), (12.5, 16, 3, true));
        let f = of_host(&base(), "h1", None);
        assert_eq!((f.host_type.as_str(), f.model.as_str()), ("DEFAULT", "DEFAULT"));
        assert_eq!((f.cpu_factor, f.ncpus), (1.0, 0));
    }

    #[test]
    fn the_cluster_file_has_the_last_word() {
        let mut base = base();
        let def = &mut base.cluster.hosts[0];
        def.model = Some("P9".into());
        def.host_type = Some("PPC".into());
        def.ndisks = Some(9);
        def.thresholds = vec![("r1m".into(), 3.5), ("swp".into(), 10.0)];
        def.resources = vec![
            HostResource { name: "cs".into(), ..HostResource::default() },
            HostResource { name: "no".into(), absent: true, ..HostResource::default() },
            HostResource { name: "n".into(), value: Some("4".into()), ..HostResource::default() },
        ];
        base.lsf.set("EGO_DEFINE_NCPUS", "threads");
        let f = of_host(&base, "h1", Some(&found()));
        assert_eq!((f.host_type.as_str(), f.model.as_str(), f.cpu_factor), ("PPC", "P9", 20.0));
        assert_eq!((f.ndisks, f.ncpus), (9, 32));
        assert_eq!(f.thresholds[1], Some(3.5));
        assert_eq!(f.thresholds[9], Some(10.0));
        assert_eq!(f.thresholds.iter().flatten().count(), 2);
        assert_eq!(f.resources, [("cs".into(), None), ("n".into(), Some("4".into()))]);
    }

    #[test]
    fn brackets_of_the_resource_map() {
        let mut base = base();
        let inst = |value: &str, hosts: &[&str]| ResourceInstance {
            value: Some(value.into()),
            hosts: hosts.iter().map(|h| h.to_string()).collect(),
        };
        let map = |resource: &str, instances| ResourceMapping {
            resource: resource.into(),
            instances,
            ..ResourceMapping::default()
        };
        base.cluster.resource_map = vec![
            map("lic", vec![inst("10", &["all", "~h2"])]),
            map("disk", vec![inst("5", &["h2"]), inst("7", &["others"])]),
            map("each", vec![inst("1", &["default"])]),
            map("dyn", vec![ResourceInstance { value: None, hosts: vec!["all".into()] }]),
        ];
        let text: Vec<String> = shared_rows(&base)
            .iter()
            .map(|r| format!("{} {} {}", r.name, r.value, r.hosts.join(",")))
            .collect();
        assert_eq!(
            text,
            ["lic 10 h1,h3", "disk 5 h2", "disk 7 h1,h3", "each 1 h1", "each 1 h2", "each 1 h3"]
        );
        let f = of_host(&base, "h2", None);
        assert_eq!(f.shared, [("disk".into(), "5".into()), ("each".into(), "1".into())]);
    }
}
