//! lsf.shared: the names that every cluster shares. See lsf.shared(5).

/// lsf.shared: the names every cluster shares.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shared {
    /// Section Cluster.
    pub clusters: Vec<ClusterName>,
    /// Section HostType.
    pub types: Vec<String>,
    /// Section HostModel.
    pub models: Vec<HostModel>,
    /// Section Resource (built-in resources are not listed here).
    pub resources: Vec<ResourceDef>,
}

impl Shared {
    /// The external load indices, in the order of lsf.shared.
    pub fn external_indices(&self) -> impl Iterator<Item = &ResourceDef> {
        let index = |r: &&ResourceDef| r.kind == ResourceKind::Numeric && r.interval.is_some();
        self.resources.iter().filter(index)
    }
}

/// A row of lsf.shared's Cluster section.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterName {
    /// ClusterName.
    pub name: String,
    /// Servers: candidate masters of a remote cluster.
    pub servers: Vec<String>,
}

/// A row of lsf.shared's HostModel section.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostModel {
    /// MODELNAME.
    pub name: String,
    /// CPUFACTOR, relative speed.
    pub cpu_factor: f64,
    /// ARCHITECTURE, as lim -t prints them.
    pub architectures: Vec<String>,
}

/// TYPE of a resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResourceKind {
    /// Present or not.
    #[default]
    Boolean,
    /// A number.
    Numeric,
    /// A word.
    String,
}

/// A row of lsf.shared's Resource section.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResourceDef {
    /// RESOURCENAME.
    pub name: String,
    /// TYPE.
    pub kind: ResourceKind,
    /// INTERVAL in seconds: a dynamic resource, fed by an elim. None: static.
    pub interval: Option<u64>,
    /// INCREASING: larger is more loaded. None for Boolean and String.
    pub increasing: Option<bool>,
    /// RELEASE: reserved amounts are released while the job is suspended.
    pub release: bool,
    /// CONSUMABLE: may appear in rusage.
    pub consumable: bool,
    /// DESCRIPTION.
    pub description: String,
}
