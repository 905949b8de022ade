//! Messages between the load balancer's server and those who ask or administer it.
//!
//! Texts are files as their pages describe them, at most [`MAX_TEXT`] bytes; a longer listing comes
//! in pieces of [`PIECE`] bytes.

use super::collect::{CollectorEffect, CollectorInput};
use crate::model::nqs::RequestValue;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Largest file in one message, bytes. A frame of a user holds it with every character escaped.
pub const MAX_TEXT: usize = 2 << 20;
/// Largest piece of a listing, bytes.
pub const PIECE: usize = 256 << 10;
/// Most hosts in one piece of an answer.
pub const PIECE_HOSTS: usize = 2_000;
/// Most request attributes of a query.
pub const MAX_QUERY_ATTRIBUTES: usize = 256;
/// Longest time between two reports of a collector, seconds.
pub const MAX_INTERVAL: u32 = 3_600;
/// Largest custom data of one report, bytes.
pub const MAX_REPORT: usize = 1 << 20;
/// Most acceptable hosts that a query names.
pub const MAX_QUERY_HOSTS: usize = 4_096;

/// A request attribute's value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum AttributeValue {
    Number(f64),
    Text(String),
}

impl From<RequestValue> for AttributeValue {
    fn from(value: RequestValue) -> Self {
        match value {
            RequestValue::Number(n) => AttributeValue::Number(n),
            RequestValue::Text(text) => AttributeValue::Text(text),
        }
    }
}

/// The value of a sort expression. JSON has no infinity.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum SortValue {
    Number(f64),
    Infinity,
    MinusInfinity,
    Missing,
}

/// Asks which hosts are best.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NlbQuery {
    /// Empty: the default policy.
    pub policy: String,
    /// Attributes of the request, at most [`MAX_QUERY_ATTRIBUTES`].
    pub attributes: Vec<(String, AttributeValue)>,
    /// Acceptable hosts, at most [`MAX_QUERY_HOSTS`]; empty: all.
    pub hosts: Vec<String>,
    /// Most hosts; 0: no limit but the policy's.
    pub count: u32,
    /// The objects are wanted: [`NlbMsg::Text`] follows the last piece.
    pub objects: bool,
}

/// A piece of the answer to a query.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NlbRanking {
    /// The policy that was applied.
    pub policy: String,
    /// The query named a policy that does not exist.
    pub unknown: bool,
    /// Number of the set of policies.
    pub generation: u64,
    /// Request attributes that the policy looks at.
    pub used: Vec<String>,
    /// Request attributes that the name map lacks.
    pub dropped: Vec<String>,
    /// Acceptable hosts of which the server has no object.
    pub strangers: Vec<String>,
    pub rows: Vec<NlbRow>,
    pub more: bool,
}

/// A host of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NlbRow {
    pub host: Arc<str>,
    pub value: SortValue,
    /// NLB_QUEUE_NAME.
    #[serde(default)]
    pub queue: Option<Arc<str>>,
}

/// A request to set or replace attributes, or to check a file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NlbFile {
    /// The file's name, for diagnostics.
    pub name: String,
    /// The text, at most [`MAX_TEXT`] bytes.
    pub text: String,
    /// The object type that alone is wanted; empty: all.
    pub object_type: String,
    /// Replace an object's attributes rather than merge.
    pub replace: bool,
}

/// Objects by type and name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NlbObjects {
    /// Empty: all types.
    pub object_type: String,
    /// Empty: all objects.
    pub names: Vec<String>,
}

/// The result of a request to change or check something.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NlbOutcome {
    /// The request was carried out, or the file is good.
    pub taken: bool,
    /// Faults and warnings, each one line with its place.
    pub lines: Vec<String>,
    /// The result in words, where there is something to say.
    pub words: String,
}

/// The messages of the load balancer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum NlbMsg {
    Query(NlbQuery),
    Ranked(NlbRanking),
    /// The name maps; of one type, or empty: of all.
    Map {
        object_type: String,
    },
    /// The names of objects.
    List(NlbObjects),
    /// Objects as data.
    Dump(NlbObjects),
    /// How the server fares.
    Status,
    /// A piece of the text asked for.
    Text {
        text: String,
        more: bool,
    },
    /// Read the policies file again.
    Reload,
    /// Read the config file again.
    Conf,
    /// Put name maps in the place of those of the same types.
    MapPut(NlbFile),
    /// Set attributes.
    Put(NlbFile),
    /// Delete objects.
    Delete(NlbObjects),
    /// Say whether the file is good: policies, a name map or object data.
    Check(NlbFile),
    Outcome(NlbOutcome),
    /// Tell of the policies now and at each change (mbatchd).
    Watch,
    /// Other policies are in force.
    Watched {
        generation: u64,
        policies: Vec<String>,
        /// The attributes that requests may have.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attributes: Vec<String>,
    },
    /// Replace what this collector said of its host before (ccollect).
    Report(NlbReport),
    /// The report is in force; the maps have this number.
    Reported {
        map: u64,
    },
}

/// A value that a collector reports. Its kind is that of the attribute.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ReportedValue {
    Float(f64),
    Integer(i64),
    Text(String),
}

/// Values by the number of their attribute.
pub type ReportedValues = Vec<(u32, ReportedValue)>;

/// An object of custom data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportedObject {
    /// The number of its type: NLB or NLB_JOB.
    pub object_type: u16,
    /// The name of the host that reports.
    pub name: String,
    pub values: ReportedValues,
}

/// The report of a collector about its own host. It replaces the one before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NlbReport {
    /// Seconds until the next one.
    pub interval: u32,
    /// The attributes that the collector measures itself.
    pub collector: ReportedValues,
    /// The objects of the site's own files.
    pub custom: Vec<ReportedObject>,
}

impl NlbMsg {
    /// Does a further message of the same answer follow when this one was read? Of a ranking with
    /// objects the texts follow the last piece.
    pub fn goes_on(&self) -> bool {
        match self {
            NlbMsg::Ranked(NlbRanking { more, .. }) | NlbMsg::Text { more, .. } => *more,
            _ => false,
        }
    }
}

/// A file in NLB_SERVER_DIR that the server writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NlbStored {
    NameMap,
    Objects,
    /// The text of the policies last accepted.
    PoliciesLast,
}

impl NlbStored {
    /// The name.
    pub fn name(self) -> &'static str {
        match self {
            NlbStored::NameMap => "name_map",
            NlbStored::Objects => "objects",
            NlbStored::PoliciesLast => "policies.last",
        }
    }
}

/// The work of the server's runner on files.
#[derive(Clone, Debug, PartialEq)]
pub enum NlbEffect {
    /// Replace these files, durably, each as a whole; answered by [`NlbInput::Written`].
    Write { n: u64, files: Vec<(NlbStored, String)> },
    /// Read the policies file; answered by [`NlbInput::Policies`].
    ReadPolicies { n: u64 },
    /// Read the config file; answered by [`NlbInput::Config`].
    ReadConfig { n: u64 },
    /// The work of a collector's runner.
    Collector(CollectorEffect),
}

/// The reports of the runner.
#[derive(Clone, Debug, PartialEq)]
pub enum NlbInput {
    /// All files are durable, or why not.
    Written {
        n: u64,
        failed: Option<String>,
    },
    Policies {
        n: u64,
        read: Result<Vec<u8>, String>,
    },
    /// The config file; `None`: there is none.
    Config {
        n: u64,
        read: Result<Option<Vec<u8>>, String>,
    },
    Collector(CollectorInput),
}
