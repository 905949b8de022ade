//! The work of a starter for a job after its end, beside its report.

use crate::model::ByteStr;
use serde::{Deserialize, Serialize};

/// The files removed where no job of a user runs on a host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tidy {
    /// The host's name as LSF_MCPU_HOSTS of jobs has it: its files of hosts go.
    pub host: String,
    /// Seconds for which output without a file of its own is kept.
    pub keep_secs: u64,
}

/// A message about a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Mail {
    pub program: ByteStr,
    pub to: String,
    /// Header and text.
    pub text: ByteStr,
    /// `append_to` follows the text, and is removed once it is sent.
    pub output: bool,
    /// Largest message, KB; 0 any.
    pub limit_kb: u64,
}

/// DJOB_ENV_SCRIPT of a job whose command has ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cleanup {
    /// Run with the word `cleanup`; its path.
    pub script: ByteStr,
    /// The time after which it is killed, seconds.
    pub limit_secs: u64,
    /// NUL-separated `NAME=value` beside what runs after the job has.
    #[serde(skip_serializing_if = "ByteStr::is_empty")]
    pub env: ByteStr,
}
