//! Watchers of the policies: mbatchd asks again when others are in force.

use super::server::NlbServer;
use crate::model::nlb::NLB_JOB;
use crate::proto::machine::ConnId;
use crate::proto::nlb::NlbMsg;
use crate::proto::{Effect, Msg};

impl NlbServer {
    /// One of them hears of the policies in force.
    pub(super) fn tell_watcher(&self, conn: ConnId, out: &mut Vec<Effect>) {
        let policies = self.policies.list().iter().map(|p| p.name().to_owned()).collect();
        let map = self.maps.numbered(NLB_JOB);
        let attributes = map.iter().flat_map(|map| map.attributes());
        let attributes = attributes.map(|a| a.name.to_string()).collect();
        let generation = self.generation;
        let msg = Msg::Nlb(NlbMsg::Watched { generation, policies, attributes });
        out.push(Effect::Send { conn, msg });
    }

    /// Other policies are in force: all of them hear of it.
    pub(super) fn tell_watchers(&self, out: &mut Vec<Effect>) {
        self.watchers.iter().for_each(|conn| self.tell_watcher(*conn, out));
    }
}
