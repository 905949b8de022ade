//! APS_PRIORITY of lsb.queues: the factors of the absolute priority. See lsb.queues(5).

/// A factor or subfactor of the absolute priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApsFactor {
    /// FS: the dynamic priority of the user.
    Fairshare,
    /// RSRC: what a job asks for.
    Resource,
    /// PROC, below RSRC: tasks.
    Processors,
    /// MEM, below RSRC.
    Memory,
    /// SWAP, below RSRC.
    Swap,
    /// WORK: the priorities of a job.
    Work,
    /// JPRIORITY, below WORK: that of bsub -sp, escalated.
    JobPriority,
    /// QPRIORITY, below WORK: that of the queue.
    QueuePriority,
    /// APP, below WORK: that of the application profile.
    Application,
    /// USER, below WORK: that of the user in lsb.users.
    User,
    /// UG, below WORK: that of the group of bsub -G in lsb.users.
    UserGroup,
}

/// Number of factors and subfactors.
pub const APS_FACTORS: usize = ApsFactor::ALL.len();

impl ApsFactor {
    /// Every one, each factor before its subfactors.
    pub const ALL: [ApsFactor; 11] = [
        ApsFactor::Fairshare,
        ApsFactor::Resource,
        ApsFactor::Processors,
        ApsFactor::Memory,
        ApsFactor::Swap,
        ApsFactor::Work,
        ApsFactor::JobPriority,
        ApsFactor::QueuePriority,
        ApsFactor::Application,
        ApsFactor::User,
        ApsFactor::UserGroup,
    ];

    /// The name in APS_PRIORITY.
    pub fn word(self) -> &'static str {
        match self {
            ApsFactor::Fairshare => "FS",
            ApsFactor::Resource => "RSRC",
            ApsFactor::Processors => "PROC",
            ApsFactor::Memory => "MEM",
            ApsFactor::Swap => "SWAP",
            ApsFactor::Work => "WORK",
            ApsFactor::JobPriority => "JPRIORITY",
            ApsFactor::QueuePriority => "QPRIORITY",
            ApsFactor::Application => "APP",
            ApsFactor::User => "USER",
            ApsFactor::UserGroup => "UG",
        }
    }

    /// The name in `bqueues -l`.
    pub fn label(self) -> &'static str {
        match self {
            ApsFactor::Fairshare => "FAIRSHARE",
            ApsFactor::Resource => "RESOURCE",
            ApsFactor::Processors => "PROCESSORS",
            ApsFactor::Memory => "MEMORY",
            ApsFactor::Swap => "SWAP",
            ApsFactor::Work => "WORK",
            ApsFactor::JobPriority => "JOB PRIORITY",
            ApsFactor::QueuePriority => "QUEUE PRIORITY",
            ApsFactor::Application => "APP PRIORITY",
            ApsFactor::User => "USER PRIORITY",
            ApsFactor::UserGroup => "UG PRIORITY",
        }
    }

    /// The factor that a subfactor is part of; `None`: it is a factor.
    pub fn parent(self) -> Option<ApsFactor> {
        match self {
            ApsFactor::Fairshare | ApsFactor::Resource | ApsFactor::Work => None,
            ApsFactor::Processors | ApsFactor::Memory | ApsFactor::Swap => {
                Some(ApsFactor::Resource)
            }
            _ => Some(ApsFactor::Work),
        }
    }

    /// The position in [`ApsFactor::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }
}

/// The parameters of one factor.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ApsTerm {
    /// WEIGHT, not 0; `None`: the factor counts for nothing.
    pub weight: Option<f64>,
    /// LIMIT of the weighted value, above 0.
    pub limit: Option<f64>,
    /// GRACE_PERIOD, seconds pending from which on the factor counts.
    pub grace: Option<u64>,
}

/// APS_PRIORITY.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ApsConf {
    /// The parameters of each factor, by [`ApsFactor::index`].
    pub terms: [ApsTerm; APS_FACTORS],
}

impl ApsConf {
    pub fn term(&self, factor: ApsFactor) -> &ApsTerm {
        &self.terms[factor.index()]
    }

    /// The weight that acts: of a factor without one 1, where a subfactor of it has one; else 0.
    pub fn weight(&self, factor: ApsFactor) -> f64 {
        let below = |sub: &&ApsFactor| sub.parent() == Some(factor);
        let parts = ApsFactor::ALL;
        let mut parts = parts.iter().filter(below);
        let implied = parts.any(|sub| self.term(*sub).weight.is_some());
        self.term(factor).weight.unwrap_or(if implied { 1.0 } else { 0.0 })
    }
}
