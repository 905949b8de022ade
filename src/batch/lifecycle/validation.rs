//! File validation of NQS (qmgr(8)): before a destination accepts a request, its host says whether
//! files of the submitter there have a line for the host of submission.
//!
//! Invariant: nothing waits for a host but the requests that need its answer.

use crate::batch::soft_state::routing::Deciding;
use crate::batch::soft_state::validations::{
    ANSWER_KEPT, ANSWER_WAIT, FAILURE_KEPT, Known, QUESTIONS_MAX, Subject,
};
use crate::batch::state::names::HostId;
use crate::batch::{Mbatchd, StepContext};
use crate::model::time::US;
use crate::proto::sbd::SbdMsg;
use crate::proto::validation::{MAX_HOST_NAMES, Validate, Verdict};

/// The validation of a request at a host.
pub(crate) enum Validation {
    Done,
    /// The host has to be asked, or is asked.
    Awaited,
    Refused(String),
}

impl Mbatchd {
    /// Do files of a submitter on a host accept a request, as far as that is known at this instant?
    /// `late`: a host that has not answered by now is not waited for.
    pub(crate) fn validation(
        &self,
        subject: &Subject,
        host: HostId,
        (now, late): (u64, bool),
    ) -> Validation {
        if !self.site.conf.batch.nqs.validation {
            return Validation::Done;
        }
        let runtime = &self.links.hosts()[host];
        let name = &runtime.name;
        match self.validations.known(subject, host, now) {
            Known::Accepted => Validation::Done,
            Known::Refused(why) => Validation::Refused(why.to_string()),
            _ if runtime.reached().is_none() => Validation::Refused("host unreachable".to_owned()),
            _ if !runtime.validates => {
                let older = "is of an older release, which reads no .nqshosts";
                Validation::Refused(format!("sbatchd of {name} {older}"))
            }
            Known::Asked | Known::Nothing if late => {
                Validation::Refused(not_read(name, "no answer in time"))
            }
            Known::Asked | Known::Nothing => Validation::Awaited,
        }
    }

    /// Has hosts asked about a user, and the decision wait for their answers.
    pub(crate) fn await_validation(
        &mut self,
        context: &mut StepContext,
        subject: &Subject,
        gid: u32,
        (deciding, hosts): (Deciding, Vec<HostId>),
    ) {
        let now = context.now.mono_us;
        let mut asked = Vec::new();
        for host in hosts {
            if matches!(self.validations.known(subject, host, now), Known::Asked) {
                asked.push(host);
            } else if let Some(number) = self.validations.ask(subject, host, now) {
                let Subject { uid, user, from } = subject.clone();
                let ask = Validate { number, user, uid, gid, hosts: self.names_of_host(&from) };
                self.order(context, host, SbdMsg::Validate(Box::new(ask)));
                asked.push(host);
            } else {
                let why = format!("{QUESTIONS_MAX} other requests are validated");
                self.keep_failure(subject, host, &why, now);
            }
        }
        match asked.is_empty() {
            true => self.routing.decide(deciding),
            false => self.validations.park(subject, deciding, asked),
        }
    }

    /// A host has looked into the files of a user.
    pub(crate) fn validated(
        &mut self,
        context: &mut StepContext,
        host: HostId,
        number: u64,
        verdict: Verdict,
    ) {
        let Some(subject) = self.validations.answered(number, host) else {
            return self.refuse(context, host, "an answer about files that was not asked for");
        };
        let (now, yes) = (context.now.mono_us, verdict == Verdict::Accepted);
        let clean = |text: String| text.replace(char::is_control, "?");
        match verdict {
            Verdict::Accepted => {
                self.validations.keep(&subject, host, (Ok(()), ANSWER_KEPT), now);
            }
            Verdict::NoLine(unused) => {
                let (Subject { user, from, .. }, name) = (&subject, self.state.names().host(host));
                let unused = clean(unused);
                let unused = if unused.is_empty() { unused } else { format!("; {unused}") };
                let files = "in .nqshosts or .rhosts on";
                let why = format!("user {user} has no line for {from} {files} {name}{unused}");
                self.validations.keep(&subject, host, (Err(why.into()), ANSWER_KEPT), now);
            }
            Verdict::NotRead(why) => self.keep_failure(&subject, host, &clean(why), now),
        }
        self.decide_again(&subject, host, yes);
    }

    fn keep_failure(&mut self, subject: &Subject, host: HostId, why: &str, now: u64) {
        let why = not_read(self.state.names().host(host), why);
        self.validations.keep(subject, host, (Err(why.into()), FAILURE_KEPT), now);
    }

    fn decide_again(&mut self, subject: &Subject, host: HostId, yes: bool) {
        for deciding in self.validations.go_on(subject, host, yes) {
            self.routing.decide(deciding);
        }
    }

    /// The connection to a host is gone, and with it its answers to come.
    pub(crate) fn validations_lost(&mut self, host: HostId) {
        for subject in self.validations.host_lost(host) {
            self.decide_again(&subject, host, false);
        }
    }

    /// Gives up the questions that were not answered in time.
    pub(crate) fn validations_due(&mut self, context: &StepContext) {
        let now = context.now.mono_us;
        while let Some((subject, host)) = self.validations.next_late(now) {
            let why = format!("no answer in {} s", ANSWER_WAIT / US);
            self.keep_failure(&subject, host, &why, now);
            self.decide_again(&subject, host, false);
        }
    }

    /// Another configuration: what waits is decided by it.
    pub(crate) fn validations_renewed(&mut self) {
        for deciding in self.validations.take_parked() {
            self.routing.decide(deciding);
        }
    }

    /// All names of a host, as far as the cluster knows them.
    fn names_of_host(&self, name: &str) -> Vec<String> {
        let mut all = vec![name.to_owned()];
        if let Some(entry) = self.site.conf.base.hosts.entry(name) {
            let short = entry.name.split('.').next().unwrap_or_default();
            let same = self.site.canonical(short) == Some(&*entry.name);
            let short = same.then(|| short.to_owned());
            all.extend([entry.name.clone()].into_iter().chain(entry.aliases.clone()).chain(short));
        }
        all.sort_unstable();
        all.dedup();
        all.truncate(MAX_HOST_NAMES);
        all
    }
}

fn not_read(host: &str, why: &str) -> String {
    format!(".nqshosts is not read on {host}: {why}")
}
