//! The daemons, by their log and process names.

use serde::{Deserialize, Serialize};

/// The daemons, by their log and process names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Daemon {
    Launcher,
    Authd,
    Lim,
    Sbatchd,
    Mbatchd,
    Res,
    /// Has a site's `eauth -s` run as LSF_EAUTH_USER.
    Eauthd,
    /// Has a site's eexec run as LSF_EEXEC_USER.
    Eexecd,
    /// The server of the NQE load balancer.
    NlbServer,
    /// The collector of the NQE load balancer on one host.
    Ccollect,
    /// No daemon: pam(1), which its user runs, and which the tasks' starters call.
    Pam,
}

impl Daemon {
    pub fn name(self) -> &'static str {
        match self {
            Daemon::Launcher => "launcher",
            Daemon::Authd => "authd",
            Daemon::Lim => "lim",
            Daemon::Sbatchd => "sbatchd",
            Daemon::Mbatchd => "mbatchd",
            Daemon::Res => "res",
            Daemon::Eauthd => "eauthd",
            Daemon::Eexecd => "eexecd",
            Daemon::NlbServer => "nlbserver",
            Daemon::Ccollect => "ccollect",
            Daemon::Pam => "pam",
        }
    }
}
