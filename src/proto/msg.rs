//! Messages on authenticated connections.

use super::refusal::Refusal;
use super::{client, launch, lim, member, nlb, pam, res, sbd};
use serde::{Deserialize, Serialize};

/// Messages on authenticated connections.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Msg {
    /// A command and mbatchd.
    Client(client::ClientMsg),
    /// mbatchd and sbatchd.
    Sbd(sbd::SbdMsg),
    /// sbatchd and its launcher (Unix socket).
    Launch(launch::LaunchMsg),
    /// A LIM and its callers; LIM datagrams.
    Lim(lim::LimMsg),
    /// res and the sbatchd of its host.
    Member(member::MemberMsg),
    /// A command and res.
    Res(res::ResMsg),
    /// The server of the load balancer and its callers.
    Nlb(nlb::NlbMsg),
    /// pam and the starters of its tasks.
    Pam(pam::PamMsg),
    /// Input or output of a task: a stream frame, not JSON.
    #[serde(skip)]
    Data(res::Data),
    /// The request was refused.
    Refused(Refusal),
    /// Liveness probe and its answer.
    Ping {
        n: u64,
    },
    Pong {
        n: u64,
    },
}

impl Msg {
    /// Does a further message of the same answer follow when this one was read?
    pub fn goes_on(&self) -> bool {
        use client::ClientMsg::{Controlled, Rows};
        match self {
            Msg::Client(Rows { more, .. } | Controlled { more, .. }) => *more,
            Msg::Launch(launch::LaunchMsg::Tasks { more, .. }) => *more,
            Msg::Nlb(m) => m.goes_on(),
            _ => false,
        }
    }
}
