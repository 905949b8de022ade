//! Exceptional hosts and jobs: EXIT_RATE of lsb.hosts(5), JOB_OVERRUN, JOB_UNDERRUN and JOB_IDLE of
//! lsb.queues(5). Every EADMIN_TRIGGER_DURATION the new ones are told to eadmin(8). Where the site
//! has no such program, the hosts are closed and the primary administrator gets a mail.
//!
//! A round looks at all started jobs, a bounded number in each turn
//! (`soft_state::started_walk`), and tells all that it has found at its end.
//!
//! Exits are counted, and exceptions told, since mbatchd has started: a restart begins anew.

use crate::batch::state::ElemState;
use crate::batch::state::names::HostId;
use crate::batch::step::RECORDS_PER_TURN;
use crate::batch::{Mbatchd, StepContext};
use crate::model::JobRef;
use crate::model::event::{Ctrl, Event};
use crate::model::exception::{Exceptions, HostException, JobException};
use crate::model::job::except;
use crate::model::reason::term;
use crate::proto::machine::Effect;

/// Most exceptions of one call; later ones are told by the next.
pub const MOST_TOLD: usize = 500;
/// The comment of a host that is closed for its exit rate.
pub const CLOSED_FOR_EXITS: &str = "eadmin: JOB EXIT THRESHOLD EXCEEDED";

/// The parameters of lsb.queues that make jobs exceptional while they run.
const WHILE_RUNNING: [&str; 2] = ["JOB_OVERRUN", "JOB_IDLE"];

/// Was a job ended by a user or by a policy, or with its host, so that its exit says nothing about
/// the host?
fn caused_by_lsf(exit_info: u32) -> bool {
    !matches!(
        exit_info,
        term::UNKNOWN | term::EXTERNAL_SIGNAL | term::CWD_NOTEXIST | term::PRE_EXEC_FAIL
    )
}

impl Mbatchd {
    /// A started job has exited on its first host, by a request or for the reason of this number.
    pub(crate) fn note_exit(
        &mut self,
        context: &StepContext,
        host: Option<HostId>,
        by_request: bool,
        exit_info: u32,
    ) {
        let types = self.site.params().exceptions.exit_types;
        let counts =
            types.exits && (types.caused_by_lsf || !by_request && !caused_by_lsf(exit_info));
        if let Some(host) = host.filter(|_| counts) {
            self.count_exit(context, host);
        }
    }

    /// A job could not be started: `first`, on its first host; `several`, it has several hosts.
    pub(crate) fn note_failed_start(
        &mut self,
        context: &StepContext,
        host: HostId,
        (first, several): (bool, bool),
    ) {
        let types = self.site.params().exceptions.exit_types;
        if types.starts && first || types.starts_of_several && several {
            self.count_exit(context, host);
        }
    }

    fn count_exit(&mut self, context: &StepContext, host: HostId) {
        if self.exit_threshold(host).is_some() {
            let span = self.site.params().exceptions.exit_rate_secs;
            self.exit_rates.add(host, context.now, span);
        }
    }

    /// A job has ended: it may have done so too soon.
    pub(crate) fn note_early_end(&mut self, context: &StepContext, at: JobRef) {
        let Some(job) = self.state.job(at.job) else { return };
        let Some(elem) = job.elem(at.idx) else { return };
        let bits = self.exceptions(job, elem.part, elem, context.now.secs());
        if bits & except::UNDERRUN != 0 {
            let found = self.job_exception(at, except::UNDERRUN);
            found.into_iter().for_each(|found| self.exit_rates.note_ended(found));
        }
    }

    fn job_exception(&self, at: JobRef, bit: u32) -> Option<JobException> {
        let job = self.state.job(at.job)?;
        let names = self.state.names();
        let kind = match bit {
            except::OVERRUN => "overrun",
            except::UNDERRUN => "underrun",
            _ => "idle",
        };
        let queue = names.queue(job.queue_at(at.idx)).to_string();
        Some(JobException { at, kind, queue, user: names.user(job.user).to_string() })
    }

    /// Tells eadmin of new exceptions, where a look is due or under way.
    pub(crate) fn exceptions_due(&mut self, context: &mut StepContext) {
        let p = self.site.params().exceptions;
        if self.exception_checks.begin(context.now, p.trigger_secs, self.site.has_exceptions) {
            self.tell_exceptional_hosts(context);
            let ended = || self.exit_rates.take_ended(MOST_TOLD);
            self.exception_round.begin(ended);
        }
        if self.exception_round.is_under_way() {
            self.look_for_exceptions(context);
        }
    }

    fn tell(&self, context: &mut StepContext, all: Exceptions) {
        let program = self.site.conf.base.lsf.serverdir().map(|dir| format!("{dir}/eadmin"));
        let program = program.unwrap_or_default();
        context.out.push(Effect::Exceptions { program, all: Box::new(all) });
    }

    fn tell_exceptional_hosts(&mut self, context: &mut StepContext) {
        let span = (context.now, self.site.params().exceptions.exit_rate_secs);
        let mut rates = std::mem::take(&mut self.exit_rates);
        let new = rates.take_new(span, MOST_TOLD, |host| self.exit_threshold(host));
        self.exit_rates = rates;
        let hosts: Vec<HostException> = new
            .into_iter()
            .map(|(host, exits, threshold)| {
                let host = self.state.names().host(host).to_string();
                HostException { host, exits, threshold }
            })
            .collect();
        if !hosts.is_empty() {
            self.tell(context, Exceptions::Hosts(hosts));
        }
    }

    /// Looks at the next started jobs of the round under way. At its end the exceptions are told
    /// that have not been told yet.
    fn look_for_exceptions(&mut self, context: &mut StepContext) {
        let now = context.now.secs();
        let some = |name: &&str| self.site.queues.iter().any(|q| q.conf.raw.contains_key(*name));
        match WHILE_RUNNING.iter().any(some) {
            true => {
                for (host, at) in self.exception_round.slice(self.state.counts()) {
                    self.look_at_started(at, host, now);
                }
            }
            false => self.exception_round.stop(),
        }
        if self.exception_round.is_under_way() {
            return;
        }
        let found = self.exception_round.end();
        if !found.is_empty() {
            self.tell(context, Exceptions::Jobs(found));
        }
    }

    /// A look at a started element, if this is its first host.
    fn look_at_started(&mut self, at: JobRef, host: HostId, now: i64) {
        let Some(job) = self.state.job(at.job) else { return };
        let Some(elem) = job.elem(at.idx) else { return };
        let ElemState::Run(run) = &elem.state else { return };
        if run.hosts.first().map(|first| first.0) != Some(host) {
            return;
        }
        let bits = self.exceptions(job, elem.part, elem, now);
        let key = run.key;
        let mut known = self.exception_round.take_told(key);
        for bit in [except::OVERRUN, except::IDLE] {
            if bits & bit & !known != 0 && self.exception_round.found() < MOST_TOLD {
                known |= bit;
                let new = self.job_exception(at, bit);
                new.into_iter().for_each(|new| self.exception_round.find(new));
            }
        }
        self.exception_round.set_told(key, known & bits);
    }

    /// The site has no eadmin: the hosts are closed, and the primary administrator gets a mail.
    pub(crate) fn no_eadmin(&mut self, context: &mut StepContext, all: &Exceptions) {
        let to = self.site.conf.base.cluster.admins.first().cloned().unwrap_or_default();
        let cluster = self.site.cluster.clone();
        let mut text = format!("Subject: Cluster <{cluster}>: {}\n\n", all.kind());
        match all {
            Exceptions::Hosts(hosts) => {
                for of in hosts.iter().take(RECORDS_PER_TURN) {
                    let HostException { host, exits, threshold } = of;
                    let minutes = self.site.params().exceptions.exit_rate_secs / 60;
                    let closed = match self.close_for_exits(context, host, &to) {
                        true => "The host has been closed.",
                        false => "The host was closed before.",
                    };
                    text += &format!(
                        "Host <{host}>: {exits} jobs have exited in {minutes} minutes; the \
                         threshold (EXIT_RATE) is {threshold}. {closed}\n"
                    );
                }
            }
            Exceptions::Jobs(jobs) => {
                for JobException { at, kind, queue, user } in jobs {
                    text += &format!("Job <{at}> of user <{user}> in queue <{queue}>: {kind}\n");
                }
            }
        }
        if !to.is_empty() {
            context.out.push(Effect::Mail { to, text });
        }
    }

    /// Closes a host, unless it is closed; whether it was closed now.
    fn close_for_exits(&mut self, context: &mut StepContext, host: &str, user: &str) -> bool {
        let closed = self.state.host_control_of(host).is_some_and(|control| control.closed);
        if closed || self.site.host_id(host).is_none() {
            return false;
        }
        context.say(log::Level::Warn, format!("host <{host}> is closed: {CLOSED_FOR_EXITS}"));
        let (host, user) = (host.to_owned(), user.to_owned());
        let (message, lock) = (CLOSED_FOR_EXITS.to_owned(), String::new());
        let event = Event::HostCtrl { op: Ctrl::Close, host, uid: 0, user, message, lock };
        self.emit(context, event);
        self.sched.changed();
        self.note_room();
        true
    }
}
