//! Pending reasons by the limits of lsb.resources: what is limited, on whom, and by which limit.

/// A resource of the site: its position in lsf.shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SiteResource(pub u32);

/// Built-in load indices: r15s, r1m, r15m, ut, pg, io, ls, it, tmp, swp, mem.
const INDICES: u32 = 11;
/// The offset of a resource of the site.
const EXTERNAL: u32 = INDICES + 1;

/// The consumer that a limit is defined on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LimitOn {
    User,
    Queue,
    Project,
    Cluster,
    Host,
    Application,
    LicenseProject,
}

/// The quantity that is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LimitOf {
    Slots,
    Jobs,
    /// The built-in load index of this position.
    Index(u8),
    /// A resource of the site; where known, which.
    Resource(Option<SiteResource>),
}

/// A limit that leaves a job too little.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LimitReason {
    pub on: LimitOn,
    pub of: LimitOf,
    /// The position of the limit in lsb.resources, where it is known.
    pub limit: Option<u32>,
}

macro_rules! texts {
    ($on:literal) => {
        [
            concat!("Resource (slot) limit defined ", $on, " has been reached"),
            concat!("Resource (r15s) limit defined ", $on, " has been reached"),
            concat!("Resource (r1m) limit defined ", $on, " has been reached"),
            concat!("Resource (r15m) limit defined ", $on, " has been reached"),
            concat!("Resource (ut) limit defined ", $on, " has been reached"),
            concat!("Resource (pg) limit defined ", $on, " has been reached"),
            concat!("Resource (io) limit defined ", $on, " has been reached"),
            concat!("Resource (ls) limit defined ", $on, " has been reached"),
            concat!("Resource (it) limit defined ", $on, " has been reached"),
            concat!("Resource (tmp) limit defined ", $on, " has been reached"),
            concat!("Resource (swp) limit defined ", $on, " has been reached"),
            concat!("Resource (mem) limit defined ", $on, " has been reached"),
            concat!("Resource limit defined ", $on, " has been reached"),
        ]
    };
}

/// A consumer: LSF's number of the first of its reasons and of that about jobs, the words for it,
/// and the texts. The numbers of application profiles and license projects are ours.
struct Row {
    on: LimitOn,
    first: u32,
    jobs: u32,
    words: &'static str,
    texts: [&'static str; EXTERNAL as usize + 1],
    jobs_text: &'static str,
}

static ROWS: [Row; 7] = [
    Row {
        on: LimitOn::User,
        first: 3201,
        jobs: 4701,
        words: "on user or user group",
        texts: texts!("on user or user group"),
        jobs_text: "JOBS limit defined for the user or user group has been reached",
    },
    Row {
        on: LimitOn::Queue,
        first: 3501,
        jobs: 4702,
        words: "on queue",
        texts: texts!("on queue"),
        jobs_text: "JOBS limit defined for the queue has been reached",
    },
    Row {
        on: LimitOn::Project,
        first: 3801,
        jobs: 4703,
        words: "on project",
        texts: texts!("on project"),
        jobs_text: "JOBS limit defined for the project has been reached",
    },
    Row {
        on: LimitOn::Cluster,
        first: 4101,
        jobs: 4704,
        words: "cluster-wide",
        texts: texts!("cluster-wide"),
        jobs_text: "JOBS limit defined cluster-wide has been reached",
    },
    Row {
        on: LimitOn::Host,
        first: 4401,
        jobs: 4705,
        words: "on host(s) and/or host group",
        texts: texts!("on host(s) and/or host group"),
        jobs_text: "JOBS limit defined on host(s) and/or host group has been reached",
    },
    Row {
        on: LimitOn::Application,
        first: 9101,
        jobs: 9118,
        words: "on application profile",
        texts: texts!("on application profile"),
        jobs_text: "JOBS limit defined for the application profile has been reached",
    },
    Row {
        on: LimitOn::LicenseProject,
        first: 9121,
        jobs: 9138,
        words: "on license project",
        texts: texts!("on license project"),
        jobs_text: "JOBS limit defined for the license project has been reached",
    },
];

impl LimitReason {
    fn row(self) -> &'static Row {
        ROWS.iter().find(|row| row.on == self.on).unwrap_or(&ROWS[0])
    }

    /// The offset of what is limited; `None`: jobs.
    fn offset(self) -> Option<u32> {
        match self.of {
            LimitOf::Slots => Some(0),
            LimitOf::Jobs => None,
            LimitOf::Index(k) => Some((1 + u32::from(k)).min(EXTERNAL)),
            LimitOf::Resource(_) => Some(EXTERNAL),
        }
    }

    pub(super) fn number(self) -> u32 {
        let row = self.row();
        self.offset().map_or(row.jobs, |offset| row.first + offset)
    }

    /// The reason of a number, without the resource of the site and the limit.
    pub(super) fn of_number(number: u32) -> Option<LimitReason> {
        let with = |row: &Row, of| LimitReason { on: row.on, of, limit: None };
        ROWS.iter().find_map(|row| match number.checked_sub(row.first) {
            _ if number == row.jobs => Some(with(row, LimitOf::Jobs)),
            Some(0) => Some(with(row, LimitOf::Slots)),
            Some(n) if n <= INDICES => Some(with(row, LimitOf::Index(n as u8 - 1))),
            Some(EXTERNAL) => Some(with(row, LimitOf::Resource(None))),
            _ => None,
        })
    }

    /// LSF's text, without the name of a resource of the site.
    pub(super) fn text(self) -> &'static str {
        let row = self.row();
        self.offset().map_or(row.jobs_text, |offset| row.texts[offset as usize])
    }

    /// The words for the consumer: `on queue`, `cluster-wide`.
    pub fn words(self) -> &'static str {
        self.row().words
    }

    /// The text with the limit that is reached, as LSF 10.1 has it.
    pub fn told(self, resource: &str, name: &str, value: &str) -> String {
        let (words, of) = (self.words(), "has been reached");
        match self.of {
            LimitOf::Jobs => {
                let text = self.text();
                format!("{text} (Limit Name: {name}, Limit Value: {value})")
            }
            _ => format!(
                "Resource limit defined {words} {of} (Resource: {resource}, Limit Name: {name}, \
                 Limit Value: {value})"
            ),
        }
    }

    pub(super) fn resource(self) -> Option<SiteResource> {
        match self.of {
            LimitOf::Resource(resource) => resource,
            _ => None,
        }
    }

    /// Every reason that has no data.
    #[cfg(test)]
    pub(super) fn all() -> impl Iterator<Item = LimitReason> {
        let of = (0..INDICES as u8).map(LimitOf::Index);
        let of: Vec<LimitOf> = [LimitOf::Slots, LimitOf::Jobs, LimitOf::Resource(None)]
            .into_iter()
            .chain(of)
            .collect();
        ROWS.iter().flat_map(move |row| {
            let with = |of| LimitReason { on: row.on, of, limit: None };
            of.clone().into_iter().map(with).collect::<Vec<_>>()
        })
    }
}
