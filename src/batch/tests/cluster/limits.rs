//! The limits of a test's cluster, and its service classes.

use super::{ADMINISTRATOR, Cluster};
use crate::batch::site;
use crate::batch::site::rules::Rules;
use crate::batch::state::State;
use crate::batch::state::names::HostId;
use crate::batch::usage::limits_ledger::LimitsLedger;
use crate::conf::UnixGroup;
use crate::proto::Msg;
use crate::proto::client::ClientMsg;
use crate::proto::limit_rows::ServiceClassInfo;
use crate::proto::machine::Input;
use std::rc::Rc;

impl Cluster {
    /// The counters of limits.
    pub fn limits(&self) -> (&LimitsLedger, &State, &site::Site) {
        (&self.machine.limits, &self.machine.state, &self.machine.site)
    }

    pub fn limits_mut(&mut self) -> (&mut LimitsLedger, &State, &site::Site) {
        (&mut self.machine.limits, &self.machine.state, &self.machine.site)
    }

    /// Has other limits than the files give. Nothing is started yet.
    pub fn use_rules(&mut self, rules: Rules) {
        let site = Rc::get_mut(&mut self.machine.site).unwrap();
        site.replace_rules(rules);
        self.machine.limits.recount(&self.machine.state, site);
    }

    /// The name service has answered that a group has this member.
    pub fn name_service_knows(&mut self, group: &str, member: &str) {
        let (name, members) = (group.to_owned(), vec![member.to_owned()]);
        let found = vec![UnixGroup { name, gid: 70, members }];
        self.tell(Input::Groups { asked: vec![group.to_owned()], found });
    }

    /// bsla.
    pub fn service_classes(&mut self) -> Vec<ServiceClassInfo> {
        match self.ask(ADMINISTRATOR, ClientMsg::Limits(Box::default())).pop() {
            Some(Msg::Client(ClientMsg::LimitRows(listing))) => listing.service_classes,
            other => panic!("{other:?}"),
        }
    }

    /// The service class of a job.
    pub fn service_class_of(&self, job: u32) -> String {
        let job = self.machine.state.job(job);
        job.map_or(String::new(), |job| job.spec.further.service_class.to_string())
    }

    /// The run limit that the submission of a job has, seconds.
    pub fn run_limit_of(&self, job: u32) -> Option<u64> {
        self.machine.state.job(job)?.spec.limits.run
    }

    /// Classes of pending jobs that there is room for.
    pub fn classes(&self) -> usize {
        self.machine.sched.places()
    }

    pub fn host_id(&self, name: &str) -> HostId {
        self.machine.site.host_id(name).unwrap_or_else(|| panic!("no host {name}"))
    }
}
