//! Changes of a daemon's log.

use serde::{Deserialize, Serialize};

/// The new log settings of a daemon (limdebug, mbdtime and others); absent ones do not change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Logging {
    /// 0 as lsf.conf says, 1 debugging, 2 all.
    pub level: Option<u8>,
    /// Level of timing: the turns whose time is logged. 0 none, 1 those of 0.1 s and more, each
    /// further level those ten times shorter, 5 all.
    pub timing: Option<u8>,
    /// The file is named FILE.DAEMON.log.HOST, in LSF_LOGDIR unless FILE has a directory; empty:
    /// as usual.
    pub file: Option<String>,
}
