//! bpost, bread and bstatus to mbatchd: the external messages of a job (bpost(1), bread(1)).

use crate::model::{ByteStr, JobRef};
use serde::{Deserialize, Serialize};

/// Characters of the text of a message (LSF's own limit).
pub const MAX_MESSAGE_TEXT: usize = 512;
/// Largest data file that a message takes, bytes.
pub const MAX_ATTACHMENT: usize = 2 << 20;
/// The levels of bpost -N.
pub const LEVELS: [&str; 4] = ["INFO", "WARNING", "ERROR", "CRITICAL"];

/// A job (idx 0 of an array: all of it) or one element, or a job by its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OneJob {
    pub at: JobRef,
    /// -J: the caller's newest job of this name, in the place of `at`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum MessageRequest {
    /// Answered by `Controlled` with one outcome, or refused.
    Post(PostMessage),
    /// Answered by `Messages` with one row, or refused.
    Read { job: OneJob, index: u32 },
    /// bread -a: answered by `SbdMsg::Blob`, or refused.
    Attachment { job: OneJob, index: u32 },
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PostMessage {
    pub job: OneJob,
    pub index: u32,
    /// -d.
    pub text: String,
    /// -N, one of [`LEVELS`]; empty: not given.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub level: String,
    /// -a: the last part of the file's name; empty: no data.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// The bytes of the file.
    #[serde(skip_serializing_if = "ByteStr::is_empty")]
    pub data: ByteStr,
}

/// A message of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MessageInfo {
    pub job: u32,
    pub idx: u32,
    pub index: u32,
    pub user: String,
    /// Seconds since the epoch.
    pub time: i64,
    pub text: String,
    pub level: String,
    /// A data file came with the message.
    pub attached: bool,
    /// Length of the data, bytes.
    pub size: u64,
    /// CRC-32 of the data.
    pub crc: u32,
}

impl MessageInfo {
    /// Are these the data that came with the message?
    pub fn is_data(&self, data: &[u8]) -> bool {
        crc32fast::hash(data) == self.crc
    }
}
