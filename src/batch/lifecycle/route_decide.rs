//! Carries out where requests go: one JOB_SWITCH with the facts, or the end of a request that no
//! destination accepted in time, with mail to its owner.

use crate::batch::lifecycle::route_accept::{Accepted, Refused};
use crate::batch::site::Queue;
use crate::batch::site::permissions::Caller;
use crate::batch::soft_state::routing::{Choice, Deciding, Group};
use crate::batch::soft_state::validations::DESTINATION_WAIT;
use crate::batch::{Mbatchd, StepContext};
use crate::conf::nlb_objects::date;
use crate::model::JobRef;
use crate::model::event::{Event, JobModify};
use crate::model::nqs::Route;
use crate::model::reason::term;
use crate::proto::client::IdSel;
use crate::proto::machine::Effect;

/// Requests that one turn routes or finds no destination for.
const DECISIONS_PER_TURN: usize = 1_000;
/// Destinations that one turn looks at.
const CHOICES_PER_TURN: usize = 20_000;
/// Refusals that are named.
const NAMED: usize = 8;

impl Mbatchd {
    /// Decides about requests whose destinations are known.
    pub(crate) fn decide_due(&mut self, context: &mut StepContext) {
        let (mut decisions, mut looks) = (DECISIONS_PER_TURN, CHOICES_PER_TURN);
        while decisions > 0 && looks > 0 {
            let Some(mut deciding) = self.routing.next_decision() else { return };
            while let Some(at) = deciding.group.requests.get(deciding.tried).copied() {
                if decisions == 0 || looks == 0 {
                    self.routing.decide_further(deciding);
                    return;
                }
                deciding.tried += 1;
                decisions -= 1;
                self.decide_one(context, at, &deciding, &mut looks);
            }
        }
    }

    fn decide_one(
        &mut self,
        context: &mut StepContext,
        at: JobRef,
        deciding: &Deciding,
        looks: &mut usize,
    ) {
        // it may be gone, or another try may be under way
        if self.routing.get(at).is_none_or(|waiting| waiting.next.is_some()) {
            return;
        }
        let (Ok(owner), Some(job)) = (self.owner(at.job), self.state.job(at.job)) else { return };
        let spec = job.spec_at(at.idx).clone();
        let one = IdSel { job: at.job, elems: vec![(at.idx, at.idx, 1)] };
        if job.is_array() && self.room_for_parts(job, &one, 1).is_err() {
            let words = "the elements of the array differ too much";
            return self.none_accepts(context, &[at], words);
        }
        let now = context.now.mono_us;
        let mut asking = self.asking(&owner, &spec, now);
        let selected = !deciding.policy.is_empty();
        let mut refused = deciding.refused.clone();
        let mut found = None;
        for (n, choice) in deciding.choices.iter().enumerate().skip(deciding.at) {
            *looks = looks.saturating_sub(1);
            let since = deciding.since.filter(|_| n == deciding.at);
            asking.late = since.is_some_and(|since| now >= since.saturating_add(DESTINATION_WAIT));
            match self.accepts(&asking, choice, selected) {
                Ok(accepted) => {
                    found = Some((n, choice, accepted));
                    break;
                }
                Err(Refused::Because(why)) if refused.len() < NAMED => {
                    refused.push(refusal(choice, &why));
                }
                Err(Refused::Because(_)) => {}
                Err(Refused::Unvalidated(hosts)) => {
                    let group = Group { queue: deciding.group.queue, requests: vec![at] };
                    let (policy, choices) = (deciding.policy.clone(), deciding.choices.clone());
                    let since = Some(since.unwrap_or(now));
                    let further =
                        Deciding { group, policy, choices, refused, since, at: n, ..*deciding };
                    let (further, subject) = (Deciding { tried: 0, ..further }, asking.subject);
                    return self.await_validation(context, &subject, owner.gid, (further, hosts));
                }
            }
        }
        match found {
            Some((n, choice, accepted)) => {
                let route = Route {
                    host: accepted.host.clone().unwrap_or_default(),
                    policy: deciding.policy.clone(),
                    value: choice.value.clone(),
                    rank: n as u32 + 1,
                    of: deciding.choices.len() as u32,
                    from: spec.queue.clone(),
                    asked: spec.hosts.clone(),
                    generation: deciding.generation,
                };
                self.route_to(context, at, accepted, route);
            }
            None => {
                let more = deciding.choices.len() - refused.len();
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                let words = format!("no destination accepted: {}{more}", refused.join(", "));
                self.none_accepts(context, &[at], &words);
            }
        }
    }

    /// The request goes to a queue, where it asks for the host alone.
    fn route_to(
        &mut self,
        context: &mut StepContext,
        at: JobRef,
        accepted: Accepted,
        route: Route,
    ) {
        let Accepted { queue, host } = accepted;
        let (words, request) = (route.words(), self.request_name(at));
        let to = host.map_or(queue.clone(), |host| format!("{queue}@{host}"));
        self.routing.drop_request(at);
        self.sched.drop_entry(at.job);
        let user = self.site.conf.base.cluster.admins.first().cloned().unwrap_or_default();
        let (route, who) = (Some(Box::new(route)), self.me_as(user.clone()));
        self.emit(context, Event::JobSwitch { at, queue: queue.clone(), uid: 0, user, route });
        self.fit_routed(context, &who, at, &queue);
        self.queue_changed(context, at.job, &[at.idx]);
        context.say(log::Level::Info, format!("Request <{request}>: routed to {to} {words}"));
        // the next one of the group must see that it waits there
        self.note_bound(at);
    }

    fn me_as(&self, user: String) -> Caller {
        Caller { uid: 0, gid: 0, user, host: self.me.clone() }
    }

    /// A request that was bound just now.
    fn note_bound(&mut self, at: JobRef) {
        let Some(job) = self.state.job(at.job) else { return };
        let queue = self.site.queue(job.queue_at(at.idx)).filter(|q| q.conf.nqs.load_only);
        let route = &job.spec_at(at.idx).further.route;
        let host = route.as_ref().and_then(|route| self.site.host_id(&route.host));
        let to = queue.map(|q| q.id).zip(host);
        if to.is_some() {
            self.routing.set_bound(at, to);
        }
    }

    /// The limits of the queue take the place of those of the pipe queue.
    fn fit_routed(&mut self, context: &mut StepContext, who: &Caller, at: JobRef, to: &str) {
        let site = self.site.clone();
        let (Some(queue), Some(job)) = (site.find_queue(to), self.state.job(at.job)) else {
            return;
        };
        let now = job.spec_at(at.idx).clone();
        let mut spec = (*now).clone();
        if self.fit(&mut spec, queue).is_ok() {
            spec.further.trim();
        }
        if spec != *now {
            let elems = if job.is_array() { vec![(at.idx, at.idx, 1)] } else { Vec::new() };
            let change = JobModify { job: at.job, elems, spec, ..JobModify::default() };
            self.record_modified(context, who, change);
        }
    }

    /// No destination has accepted a request in time, or there is none: it ends.
    pub(crate) fn give_up(
        &mut self,
        context: &mut StepContext,
        at: JobRef,
        queue: &Queue,
        info: u32,
    ) {
        let (name, request) = (&queue.conf.name, self.request_name(at));
        let hours = self.site.conf.batch.nqs.wait_hours;
        let last = self.routing.get(at).map(|w| w.why.to_string()).unwrap_or_default();
        let why = match info == term::NO_DESTINATIONS {
            true => {
                format!("The request was submitted to queue <{name}>, which has no destinations.")
            }
            false => {
                let words = "No destination of queue";
                let within = format!("accepted the request within {hours} hours");
                format!("{words} <{name}> {within}. The last answer: {last}")
            }
        };
        let Some(job) = self.state.job(at.job) else { return };
        let owner = self.state.names().user(job.user).to_string();
        let to = match job.spec_at(at.idx).mail_user.as_str() {
            "" => owner.clone(),
            other => other.to_owned(),
        };
        let reqname = job.display_name(at.idx);
        let sent = date(context.now.secs(), self.windows.zone());
        let text = format!(
            "Subject: NQS request: {request} deleted\n\nRequest name:   {reqname}\n\
             Request owner:  {owner}\nMail sent at:   {sent}\n\n{why}\n\nRequest deleted.\n"
        );
        context.say(log::Level::Info, format!("Request <{request}>: deleted. {why}"));
        self.routing.drop_request(at);
        self.exit_unstarted(context, at, info);
        context.out.push(Effect::Mail { to, text });
    }
}

/// `nqebatch@cool (queue closed)`.
fn refusal(choice: &Choice, why: &str) -> String {
    match (&choice.host, choice.queue.as_str()) {
        (Some(host), "") => format!("{host} ({why})"),
        (Some(host), queue) => format!("{queue}@{host} ({why})"),
        (None, queue) => format!("{queue} ({why})"),
    }
}
