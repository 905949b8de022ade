//! Whether a destination accepts a request: the conditions of qmgr(8) in their order, the first
//! that fails in its words.

use crate::batch::Mbatchd;
use crate::batch::cluster::hosts::HostStatus;
use crate::batch::lifecycle::route_query::acceptable;
use crate::batch::lifecycle::validation::Validation;
use crate::batch::site::Queue;
use crate::batch::site::permissions::Caller;
use crate::batch::soft_state::routing::Choice;
use crate::batch::soft_state::validations::Subject;
use crate::batch::state::names::HostId;
use crate::model::job::JobSpec;

/// A request that is held against destinations.
pub(crate) struct Asking<'a> {
    pub owner: &'a Caller,
    pub spec: &'a JobSpec,
    /// The hosts of its -m; empty: all.
    pub hosts: Vec<String>,
    /// The user whose files are validated, and the host of submission.
    pub subject: Subject,
    /// Microseconds of the monotonic clock.
    pub now: u64,
    /// A host that has not answered by now is not waited for.
    pub late: bool,
}

/// Why a destination does not accept a request.
pub(crate) enum Refused {
    /// The words.
    Because(String),
    /// These hosts have to say first whether files of the submitter accept it.
    Unvalidated(Vec<HostId>),
}

impl From<String> for Refused {
    fn from(why: String) -> Refused {
        Refused::Because(why)
    }
}

impl From<&str> for Refused {
    fn from(why: &str) -> Refused {
        Refused::Because(why.to_owned())
    }
}

/// Hosts of one destination that are asked about a user's files at once.
const ASKED_AT_ONCE: usize = 64;

/// A destination that accepts: its queue, and its host where it names one.
pub(crate) struct Accepted {
    pub queue: String,
    pub host: Option<String>,
}

impl Mbatchd {
    pub(crate) fn asking<'a>(&self, owner: &'a Caller, spec: &'a JobSpec, now: u64) -> Asking<'a> {
        let (uid, user, from) = (owner.uid, owner.user.clone(), spec.from_host.clone());
        let (hosts, subject) = (acceptable(&self.site, spec), Subject { uid, user, from });
        Asking { owner, spec, hosts, subject, now, late: false }
    }

    /// Does a destination accept a request?
    ///
    /// # Errors
    /// Why not.
    pub(crate) fn accepts(
        &self,
        asking: &Asking,
        choice: &Choice,
        selected: bool,
    ) -> Result<Accepted, Refused> {
        let host = match &choice.host {
            Some(name) => {
                let own = self.site.canonical(name).and_then(|name| self.site.host_id(name));
                Some(own.ok_or("no host of this cluster")?)
            }
            None => None,
        };
        if selected && choice.queue.is_empty() {
            return Err("has no NLB_QUEUE_NAME".into());
        }
        let queue = self.site.find_queue(&choice.queue).ok_or("no such queue")?;
        if queue.conf.nqs.pipe.is_some() {
            return Err("is a pipe queue".into());
        }
        if self.state.queue_control_of(&choice.queue).is_some_and(|c| c.closed) {
            return Err("queue closed".into());
        }
        let owner = asking.owner;
        if !self.site.may_use(&queue.conf, &owner.user, Some(owner.gid)) {
            return Err("User cannot use the queue".into());
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
        // any host: it is bound to none, or to the one whose files have a line for it
        let bound = |host| accepted(Some(host).filter(|_| self.site.conf.batch.nqs.validation));
        self.any_host_accepts(asking, queue, &fitted).map(bound)
    }

    /// A host of a queue that accepts it; one with free slots first, where files are validated.
    fn any_host_accepts(
        &self,
        asking: &Asking,
        queue: &Queue,
        spec: &JobSpec,
    ) -> Result<HostId, Refused> {
        let (view, least) = (self.view(), u64::from(spec.min_slots.max(1)));
        let validates = self.site.conf.batch.nqs.validation;
        let is_free = |host: &HostId| validates && view.free_slots(*host) >= least;
        let hosts = || self.links.hosts().ids();
        let (mut why, mut unvalidated) = ("no host".to_owned(), Vec::new());
        for host in hosts().filter(is_free).chain(hosts().filter(|host| !is_free(host))) {
            match self.host_accepts(asking, queue, spec, host) {
                Ok(()) => return Ok(host),
                Err(Refused::Because(other)) => why = other,
                Err(Refused::Unvalidated(hosts)) => unvalidated.extend(hosts),
            }
            if unvalidated.len() == ASKED_AT_ONCE {
                break;
            }
        }
        match unvalidated.is_empty() {
            true => Err(why.into()),
            false => Err(Refused::Unvalidated(unvalidated)),
        }
    }

    /// Does a host of a queue accept it?
    fn host_accepts(
        &self,
        asking: &Asking,
        queue: &Queue,
        spec: &JobSpec,
        host: HostId,
    ) -> Result<(), Refused> {
        let name = self.state.names().host(host);
        if queue.hosts.as_ref().is_some_and(|hosts| !hosts.contains_key(&host)) {
            return Err("no host of the queue".into());
        }
        let own = asking.hosts.is_empty() || asking.hosts.iter().any(|own| **own == **name);
        if !own {
            return Err("not among the hosts that the request names".into());
        }
        let view = self.view();
        match view.host_status(host) {
            HostStatus::ClosedAdm => return Err("host closed".into()),
            HostStatus::Unavail | HostStatus::Unreach => return Err("host unreachable".into()),
            _ => {}
        }
        let least = u64::from(spec.min_slots.max(1));
        if let Some(most) = view.host_max(host).filter(|most| *most < least) {
            return Err(format!("needs {least} slots, {name} has {most}").into());
        }
        match self.validation(&asking.subject, host, (asking.now, asking.late)) {
            Validation::Done => {}
            Validation::Awaited => return Err(Refused::Unvalidated(vec![host])),
            Validation::Refused(why) => return Err(why.into()),
        }
        if queue.conf.nqs.load_only {
            let free = view.host_status(host) == HostStatus::Ok && view.free_slots(host) >= least;
            if !free || self.routing.is_bound_to(queue.id, host) {
                return Err("no free slot now".into());
            }
        }
        Ok(())
    }
}
