//! Whether a destination accepts a request: the conditions of qmgr(8) in their order, the first
//! that fails in its words.

use crate::batch::Mbatchd;
use crate::batch::cluster::hosts::HostStatus;
use crate::batch::lifecycle::route_query::acceptable;
use crate::batch::site::Queue;
use crate::batch::site::permissions::Caller;
use crate::batch::soft_state::routing::Choice;
use crate::batch::state::names::HostId;
use crate::model::job::JobSpec;

/// A request that is held against destinations.
pub(crate) struct Asking<'a> {
    pub owner: &'a Caller,
    pub spec: &'a JobSpec,
    /// The hosts of its -m; empty: all.
    pub hosts: Vec<String>,
}

/// A destination that accepts: its queue, and its host where it names one.
pub(crate) struct Accepted {
    pub queue: String,
    pub host: Option<String>,
}

impl Mbatchd {
    pub(crate) fn asking<'a>(&self, owner: &'a Caller, spec: &'a JobSpec) -> Asking<'a> {
        Asking { owner, spec, hosts: acceptable(&self.site, spec) }
    }

    /// Does a destination accept a request?
    ///
    /// # Errors
    /// Why not, in words.
    pub(crate) fn accepts(
        &self,
        asking: &Asking,
        choice: &Choice,
        selected: bool,
    ) -> Result<Accepted, String> {
        let host = match &choice.host {
            Some(name) => {
                let own = self.site.canonical(name).and_then(|name| self.site.host_id(name));
                Some(own.ok_or("no host of this cluster")?)
            }
            None => None,
        };
        if selected && choice.queue.is_empty() {
            return Err("has no NLB_QUEUE_NAME".to_owned());
        }
        let queue = self.site.find_queue(&choice.queue).ok_or("no such queue")?;
        if queue.conf.nqs.pipe.is_some() {
            return Err("is a pipe queue".to_owned());
        }
        if self.state.queue_control_of(&choice.queue).is_some_and(|c| c.closed) {
            return Err("queue closed".to_owned());
        }
        let owner = asking.owner;
        if !self.site.may_use(&queue.conf, &owner.user, Some(owner.gid)) {
            return Err("User cannot use the queue".to_owned());
        }
        let refused = |r: crate::proto::Refusal| r.words();
        self.queue_takes(&choice.queue, owner, asking.spec).map_err(refused)?;
        let mut fitted = asking.spec.clone();
        choice.queue.clone_into(&mut fitted.queue);
        self.fit(&mut fitted, queue).map_err(refused)?;
        let accepted = |host: Option<HostId>| Accepted {
            queue: choice.queue.clone(),
            host: host.map(|host| self.state.names().host(host).to_string()),
        };
        if let Some(host) = host {
            self.host_accepts(asking, queue, &fitted, host)?;
            return Ok(accepted(Some(host)));
        }
        // any host: it is bound to none
        let mut why = "no host".to_owned();
        for host in self.links.hosts().ids() {
            match self.host_accepts(asking, queue, &fitted, host) {
                Ok(()) => return Ok(accepted(None)),
                Err(other) => why = other,
            }
        }
        Err(why)
    }

    /// Does a host of a queue accept it?
    fn host_accepts(
        &self,
        asking: &Asking,
        queue: &Queue,
        spec: &JobSpec,
        host: HostId,
    ) -> Result<(), String> {
        let name = self.state.names().host(host);
        if queue.hosts.as_ref().is_some_and(|hosts| !hosts.contains_key(&host)) {
            return Err("no host of the queue".to_owned());
        }
        let own = asking.hosts.is_empty() || asking.hosts.iter().any(|own| **own == **name);
        if !own {
            return Err("not among the hosts that the request names".to_owned());
        }
        let view = self.view();
        match view.host_status(host) {
            HostStatus::ClosedAdm => return Err("host closed".to_owned()),
            HostStatus::Unavail | HostStatus::Unreach => return Err("host unreachable".to_owned()),
            _ => {}
        }
        let least = u64::from(spec.min_slots.max(1));
        if let Some(most) = view.host_max(host).filter(|most| *most < least) {
            return Err(format!("needs {least} slots, {name} has {most}"));
        }
        if queue.conf.nqs.load_only {
            let free = view.host_status(host) == HostStatus::Ok && view.free_slots(host) >= least;
            if !free || self.routing.is_bound_to(queue.id, host) {
                return Err("no free slot now".to_owned());
            }
        }
        Ok(())
    }
}
