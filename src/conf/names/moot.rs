//! Names that change nothing here because of the way in which the cluster works, and why.

/// Names with the rest of the sentence that begins with the name.
const MOOT: &[(&str, &str)] = &[
    ("DEFAULT_SLA_VELOCITY", "it is about service classes with resources of EGO; there are none"),
    ("MAX_CONCURRENT_QUERY", "no query has a process of its own, and none holds up another"),
    ("MAX_RSCHED_TIME", "jobs are not forwarded to other clusters, and none are waited for there"),
    ("PEND_REASON_MAX_JOBS", "the reasons of every pending job are worked out when asked for"),
    ("PEND_REASON_UPDATE_INTERVAL", "pending reasons are worked out when they are asked for"),
    ("SLA_TIMER", "it is about service classes with resources of EGO; there are none"),
];

/// Why a name changes nothing; `None`: it is no such name.
pub(super) fn why_moot(name: &str) -> Option<&'static str> {
    MOOT.iter().find(|moot| moot.0 == name).map(|moot| moot.1)
}
