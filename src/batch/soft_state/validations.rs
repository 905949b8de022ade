//! File validation of NQS (qmgr(8)): what hosts have answered about the files of users, what they
//! are asked now, and the decisions that wait for them.
//!
//! Invariants: a question is under way until its host answers, is lost, or has taken
//! [`ANSWER_WAIT`]; a decision waits only while a question that it needs is under way.

use crate::batch::soft_state::routing::Deciding;
use crate::batch::state::names::HostId;
use crate::model::time::US;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// How long an answer holds, microseconds.
pub const ANSWER_KEPT: u64 = 60 * US;
/// How long it holds that a host did not look, microseconds.
pub const FAILURE_KEPT: u64 = 10 * US;
/// How long an answer is waited for, microseconds.
pub const ANSWER_WAIT: u64 = 15 * US;
/// How long a request waits for all hosts that one destination may mean, microseconds.
pub const DESTINATION_WAIT: u64 = 30 * US;
/// Most answers that are kept.
pub const ANSWERS_MAX: usize = 20_000;
/// Most questions under way.
pub const QUESTIONS_MAX: usize = 4_096;

/// A user, and the host from which the user submitted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subject {
    pub uid: u32,
    pub user: String,
    pub from: String,
}

/// The knowledge of the files of a user on a host.
pub(crate) enum Known {
    Accepted,
    Refused(Rc<str>),
    Asked,
    Nothing,
}

/// An answer: accepted, or why not.
type Answer = Result<(), Rc<str>>;

#[derive(Debug)]
struct Parked {
    deciding: Deciding,
    /// The hosts whose answers it waits for.
    hosts: BTreeSet<HostId>,
}

/// All of it.
#[derive(Debug, Default)]
pub struct Validations {
    answers: BTreeMap<(Subject, HostId), (Answer, u64)>,
    /// The answers by the instants at which they no longer hold.
    ends: BTreeSet<(u64, Subject, HostId)>,
    /// Under way, with the instant until which each is waited for.
    questions: BTreeMap<u64, (Subject, HostId, u64)>,
    asked: BTreeMap<(Subject, HostId), u64>,
    last: u64,
    parked: BTreeMap<Subject, Vec<Parked>>,
}

impl Validations {
    /// The knowledge of a user's files on a host at this instant.
    pub(crate) fn known(&self, subject: &Subject, host: HostId, now: u64) -> Known {
        let key = (subject.clone(), host);
        match self.answers.get(&key) {
            Some((Ok(()), until)) if *until > now => Known::Accepted,
            Some((Err(why), until)) if *until > now => Known::Refused(why.clone()),
            _ if self.asked.contains_key(&key) => Known::Asked,
            _ => Known::Nothing,
        }
    }

    /// A host is asked: the number of the question; `None`: too many are under way.
    pub(crate) fn ask(&mut self, subject: &Subject, host: HostId, now: u64) -> Option<u64> {
        if self.questions.len() >= QUESTIONS_MAX {
            return None;
        }
        self.last += 1;
        self.questions.insert(self.last, (subject.clone(), host, now + ANSWER_WAIT));
        self.asked.insert((subject.clone(), host), self.last);
        Some(self.last)
    }

    /// The user that a host was asked about under this number.
    pub(crate) fn answered(&mut self, number: u64, host: HostId) -> Option<Subject> {
        let (_, of, _) = self.questions.get(&number)?;
        if *of != host {
            return None;
        }
        let (subject, ..) = self.questions.remove(&number)?;
        self.asked.remove(&(subject.clone(), host));
        Some(subject)
    }

    /// Keeps an answer for so many microseconds.
    pub(crate) fn keep(
        &mut self,
        subject: &Subject,
        host: HostId,
        (answer, time): (Answer, u64),
        now: u64,
    ) {
        while let Some((until, ..)) = self.ends.first()
            && (*until <= now || self.ends.len() >= ANSWERS_MAX)
        {
            if let Some((_, subject, host)) = self.ends.pop_first() {
                self.answers.remove(&(subject, host));
            }
        }
        let (key, until) = ((subject.clone(), host), now.saturating_add(time));
        if let Some((_, before)) = self.answers.insert(key, (answer, until)) {
            self.ends.remove(&(before, subject.clone(), host));
        }
        self.ends.insert((until, subject.clone(), host));
    }

    /// A decision waits for the answers of these hosts about a user.
    pub(crate) fn park(&mut self, subject: &Subject, deciding: Deciding, hosts: Vec<HostId>) {
        let hosts = hosts.into_iter().collect();
        self.parked.entry(subject.clone()).or_default().push(Parked { deciding, hosts });
    }

    /// A host has answered about a user, or will not: the decisions that wait no longer. A yes is
    /// enough for each of them; else all its hosts have to answer.
    pub(crate) fn go_on(&mut self, subject: &Subject, host: HostId, yes: bool) -> Vec<Deciding> {
        let Some(all) = self.parked.get_mut(subject) else { return Vec::new() };
        let goes =
            |parked: &mut Parked| parked.hosts.remove(&host) && (yes || parked.hosts.is_empty());
        let gone: Vec<Parked> = all.extract_if(.., goes).collect();
        if all.is_empty() {
            self.parked.remove(subject);
        }
        gone.into_iter().map(|parked| parked.deciding).collect()
    }

    /// Every decision that waits, which is made anew.
    pub(crate) fn take_parked(&mut self) -> Vec<Deciding> {
        let all = std::mem::take(&mut self.parked).into_values().flatten();
        all.map(|parked| parked.deciding).collect()
    }

    /// The connection to a host is gone: the users it was asked about.
    pub(crate) fn host_lost(&mut self, host: HostId) -> Vec<Subject> {
        let of = |(number, (_, of, _)): (&u64, &(Subject, HostId, u64))| {
            (*of == host).then_some(*number)
        };
        let numbers: Vec<u64> = self.questions.iter().filter_map(of).collect();
        numbers.into_iter().filter_map(|number| self.answered(number, host)).collect()
    }

    /// A question that was not answered in time.
    pub(crate) fn next_late(&mut self, now: u64) -> Option<(Subject, HostId)> {
        let (number, (_, host, until)) = self.questions.first_key_value()?;
        let (number, host) = (*number, *host);
        if *until > now {
            return None;
        }
        self.answered(number, host).map(|subject| (subject, host))
    }

    /// The state was read anew: no decision waits, and nothing is under way.
    pub(crate) fn forget(&mut self) {
        *self = Validations { last: self.last, ..Validations::default() };
    }

    /// When the first question is given up, microseconds of the monotonic clock.
    pub fn deadline(&self) -> Option<u64> {
        self.questions.first_key_value().map(|(_, (.., until))| *until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::state::names::Names;

    #[test]
    fn answers_are_bounded_and_end_in_their_order() {
        let (mut all, mut names) = (Validations::default(), Names::default());
        let host = names.host_id("h");
        let subject = |uid: u32| Subject { uid, user: "u".into(), from: "h".into() };
        for uid in 0..ANSWERS_MAX as u32 + 10 {
            all.keep(&subject(uid), host, (Ok(()), ANSWER_KEPT + u64::from(uid)), 5);
        }
        assert_eq!((all.answers.len(), all.ends.len()), (ANSWERS_MAX, ANSWERS_MAX));
        let known = |all: &Validations, uid: u32, now: u64| {
            matches!(all.known(&subject(uid), host, now), Known::Accepted)
        };
        assert!(!known(&all, 9, 6) && known(&all, 10, 6));
        assert!(!known(&all, 10, 5 + ANSWER_KEPT + 10));
        // one more, when all are over
        all.keep(&subject(1), host, (Ok(()), 1), 200 * US);
        all.keep(&subject(1), host, (Ok(()), 9), 200 * US);
        assert_eq!((all.answers.len(), all.ends.len()), (1, 1));
    }

    #[test]
    fn question_is_answered_by_its_host_alone() {
        let (mut all, mut names) = (Validations::default(), Names::default());
        let (h, other) = (names.host_id("h"), names.host_id("other"));
        let subject = Subject { uid: 1, user: "u".into(), from: "h".into() };
        let number = all.ask(&subject, h, 0).unwrap();
        assert!(matches!(all.known(&subject, h, 0), Known::Asked));
        assert_eq!(all.answered(number, other), None);
        assert_eq!(all.answered(number, h), Some(subject.clone()));
        assert_eq!(all.answered(number, h), None);
        for _ in 0..QUESTIONS_MAX {
            all.ask(&subject, h, 0).unwrap();
        }
        assert_eq!(all.ask(&subject, h, 0), None);
    }
}
