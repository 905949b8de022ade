//! The rows of busers, bapp, bslots, bhpart and blimits.

use super::{ADMINISTRATOR, Cluster};
use crate::proto::Msg;
use crate::proto::client::*;
use crate::proto::limit_rows::{LimitListing, LimitQuery};

impl Cluster {
    /// busers of all users and groups.
    pub fn users(&mut self) -> Vec<UserInfo> {
        match self.ask(ADMINISTRATOR, ClientMsg::Users { names: Vec::new() }).pop() {
            Some(Msg::Client(ClientMsg::UserRows { rows })) => rows,
            other => panic!("{other:?}"),
        }
    }

    /// bapp of all profiles.
    pub fn applications(&mut self) -> Vec<ApplicationInfo> {
        match self.ask(ADMINISTRATOR, ClientMsg::Applications { names: Vec::new() }).pop() {
            Some(Msg::Client(ClientMsg::ApplicationRows { rows })) => rows,
            other => panic!("{other:?}"),
        }
    }

    /// bslots of all hosts.
    pub fn slot_windows(&mut self) -> Vec<SlotWindow> {
        match self.ask(ADMINISTRATOR, ClientMsg::Slots { res_req: String::new() }).pop() {
            Some(Msg::Client(ClientMsg::SlotRows { rows })) => rows,
            other => panic!("{other:?}"),
        }
    }

    /// bhpart of these partitions, or of all; else the lsberrno.
    pub fn partitions(&mut self, names: &[&str]) -> Result<Vec<PartitionInfo>, i32> {
        let names = names.iter().map(|name| name.to_string()).collect();
        match self.ask(ADMINISTRATOR, ClientMsg::Partitions { names }).pop() {
            Some(Msg::Client(ClientMsg::PartitionRows { rows })) => Ok(rows),
            Some(Msg::Refused(refusal)) => Err(refusal.code),
            other => panic!("{other:?}"),
        }
    }

    /// blimits.
    pub fn limit_listing(&mut self, query: LimitQuery) -> LimitListing {
        match self.ask(ADMINISTRATOR, ClientMsg::Limits(Box::new(query))).pop() {
            Some(Msg::Client(ClientMsg::LimitRows(listing))) => *listing,
            other => panic!("{other:?}"),
        }
    }
}
