//! The state that passes from a launcher to the launcher by which it replaces itself: an unlinked
//! file, whose descriptor stays open over exec.

use super::ports;
use crate::exec::launcher_state::Saved;
use crate::proto::launch::TaskId;
use crate::sys::{raw, words};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// Carries the number of the state's descriptor over exec.
pub(super) const STATE_FD: &str = "LSF_LAUNCHER_STATE";

/// The state that survives exec.
#[derive(Serialize, Deserialize)]
pub(super) struct Handover {
    pub(super) saved: Saved,
    pub(super) lock: i32,
    pub(super) listener: i32,
    /// Pid, descriptor, what was read of the report.
    pub(super) setups: Vec<(TaskId, u32, i32, Vec<u8>)>,
    #[serde(default)]
    pub(super) ports: ports::Handed,
}

/// The state of the launcher that this process replaced.
pub(super) fn handed_over() -> Option<Handover> {
    let fd = std::env::var(STATE_FD).ok()?.parse().ok()?;
    let read = raw::inherited_fd(fd).and_then(|fd| {
        let mut file = File::from(fd);
        file.seek(SeekFrom::Start(0))?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        serde_json::from_slice(&text).map_err(io::Error::other)
    });
    read.map_err(|e| log::error!("the state handed over cannot be read: {}", words(&e))).ok()
}
