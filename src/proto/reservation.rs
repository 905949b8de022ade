//! brsvadd, brsvmod, brsvdel, brsvsub and brsvs to mbatchd: advance reservations (brsvadd(1),
//! brsvmod(1), brsvs(1)).

use crate::model::reservation::{ReservationKind, ReservationScripts, ReservationTime};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReservationRequest {
    /// Answered by `AdminDone` with one line, the ID; so are `Modify`, and `Delete` with one line
    /// an ID.
    Add(Box<NewReservation>),
    Modify {
        id: String,
        change: Box<ReservationChange>,
    },
    Delete {
        ids: Vec<String>,
    },
    /// Answered by `Reservations`: those of these IDs; none: all.
    List {
        ids: Vec<String>,
    },
    /// Answered by `ReservationPolicies`: those of these names; none: all.
    Policies {
        names: Vec<String>,
    },
}

/// brsvadd, brsvsub.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NewReservation {
    /// -N; empty: the first of `users` with a number.
    pub name: String,
    pub kind: ReservationKind,
    pub users: Vec<String>,
    /// Slots, or with `by_host` hosts; 0: all slots of the hosts named.
    pub units: u32,
    /// -unit host.
    pub by_host: bool,
    /// Hosts and host groups of -m, in the order of their use.
    pub hosts: Vec<String>,
    pub res_req: String,
    pub time: ReservationTime,
    /// Minutes of a reservation for which mbatchd finds the time (brsvsub -D); 0: `time` is given.
    #[serde(skip_serializing_if = "is_zero")]
    pub minutes: u32,
    pub open: bool,
    pub no_suspension: bool,
    /// -f: hosts with fewer started slots come first.
    pub idle_first: bool,
    pub queues: Vec<String>,
    pub description: String,
    pub scripts: ReservationScripts,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// A begin or an end of brsvmod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NewInstant {
    /// Seconds since the epoch.
    At(i64),
    /// Minutes from what it was.
    Shift(i64),
}

/// brsvmod: what is `None` or empty stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReservationChange {
    pub begin: Option<NewInstant>,
    pub end: Option<NewInstant>,
    /// -t.
    pub window: Option<String>,
    /// -u, -g.
    pub users: Option<(ReservationKind, Vec<String>)>,
    pub open: Option<bool>,
    pub no_suspension: Option<bool>,
    pub queues: Option<Vec<String>>,
    pub description: Option<String>,
    pub scripts: Option<ReservationScripts>,
    /// adduser, rmuser.
    pub add_users: Vec<String>,
    pub remove_users: Vec<String>,
    /// addhost, rmhost.
    pub add_hosts: Option<ChosenHosts>,
    pub remove_hosts: Option<ChosenHosts>,
    /// disable -td: seconds since the epoch, the second instant not included.
    pub disable: Vec<(i64, i64)>,
    /// disable -tn.
    pub enable: bool,
}

/// -n, -m and -R of `addhost` and `rmhost`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChosenHosts {
    /// 0: all slots of the hosts named.
    pub units: u32,
    pub hosts: Vec<String>,
    pub res_req: String,
    pub idle_first: bool,
}

/// A reservation of brsvs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReservationInfo {
    pub id: String,
    pub kind: ReservationKind,
    pub users: Vec<String>,
    pub creator: String,
    /// Host, slots in use by its jobs, slots reserved, and all slots of the host (0: no limit).
    pub hosts: Vec<(String, u64, u64, u64)>,
    pub time: ReservationTime,
    pub active: bool,
    /// The period that holds now, else the next one, seconds since the epoch; `None`: none.
    pub period: Option<(i64, i64)>,
    pub open: bool,
    pub by_host: bool,
    pub no_suspension: bool,
    pub queues: Vec<String>,
    pub description: String,
    pub scripts: ReservationScripts,
    pub disabled: Vec<(i64, i64)>,
    /// The jobs of the reservation: finished, pending, running, suspended.
    pub jobs: [Vec<u32>; 4],
}

/// A section ResourceReservation of lsb.resources, as written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReservationPolicyInfo {
    pub name: String,
    pub users: String,
    pub hosts: String,
    pub window: String,
}
