//! The request of blimits and bresources, and its answer.

use serde::{Deserialize, Serialize};

/// blimits: limits and consumers; none of a kind: all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitQuery {
    /// Names of limits.
    pub names: Vec<String>,
    pub users: Vec<String>,
    pub queues: Vec<String>,
    pub hosts: Vec<String>,
    pub projects: Vec<String>,
    pub apps: Vec<String>,
    pub lic_projects: Vec<String>,
    /// Limits under which nothing is used are listed as well.
    pub all: bool,
}

/// The answer: the limits as they are configured, and what is used under them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitListing {
    pub limits: Vec<LimitInfo>,
    pub rows: Vec<LimitUsage>,
    /// The rows of ReservationUsage: RESOURCE, METHOD, RESERVE.
    pub reservation_usage: Vec<(String, String, String)>,
}

/// A limit of lsb.resources as it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitInfo {
    pub name: String,
    /// (keyword, value) pairs, NAME first, then consumers, then amounts.
    pub params: Vec<(String, String)>,
}

/// The use of one limit by those who have its amount together. A dimension that the limit is not
/// about is empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitUsage {
    pub name: String,
    pub users: String,
    pub queues: String,
    pub hosts: String,
    pub projects: String,
    pub apps: String,
    pub lic_projects: String,
    pub amounts: Vec<LimitedUse>,
    /// INELIGIBLE=Y.
    pub ineligible: bool,
}

/// The use of one amount.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitedUse {
    /// SLOTS, JOBS, MEM, TMP, SWP, or the name of a resource.
    pub what: String,
    /// The quantity is a resource of lsf.shared.
    pub external: bool,
    pub used: f64,
    pub limit: f64,
}
