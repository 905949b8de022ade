//! Requests of badmin to mbatchd, and the lines of their answers.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AdminOp {
    /// Empty names: the local host for hosts is filled in by the command; `all` means all.
    HostCtrl {
        open: bool,
        hosts: Vec<String>,
        comment: String,
        /// -i: the lock ID that is attached or taken away; empty none.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        lock: String,
    },
    QueueCtrl {
        op: QueueOp,
        queues: Vec<String>,
        comment: String,
    },
    Reconfig {
        comment: String,
    },
    /// `lsf down`, badmin mbdrestart.
    Shutdown {
        comment: String,
    },
    /// The new log settings of mbatchd, or with hosts of their sbatchd.
    Logging {
        hosts: Vec<String>,
        set: super::logging::Logging,
    },
    /// badmin hghostadd, hghostdel: dynamic hosts become members of a host group or compute unit,
    /// or are so no longer.
    GroupHosts {
        add: bool,
        group: String,
        hosts: Vec<String>,
        comment: String,
    },
    /// badmin perfmon: `start`, `stop`, `view`, `setperiod`; `secs`: of the period, 0 none given.
    Perfmon {
        what: String,
        secs: u64,
    },
    /// badmin diagnose: `query`: note who asks for what, or no more, in a file, for some minutes
    /// (0: until it ends); `job`: may the caller see why jobs wait?
    Diagnose {
        what: String,
        on: bool,
        file: String,
        minutes: u64,
    },
    /// qmgr: a command that changes what lsb.nqs defines.
    DefineQueues {
        command: String,
        /// Sent before, with the answer lost: the change may have been made.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        again: bool,
    },
    /// `status` or `conf`: lines of a name and its value; `nqs`: the text of lsb.nqs.
    Show {
        what: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum QueueOp {
    Open,
    Close,
    Activate,
    Inactivate,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdminLine {
    pub about: String,
    /// lsberrno, 0 done.
    pub code: i32,
    /// Diagnostics or other words; may be empty.
    pub text: String,
}
