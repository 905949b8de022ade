//! File validation of NQS (qmgr(8)): mbatchd asks whether a user's files on this host have a line
//! for the host of submission; a starter looks, as the user.
//!
//! Invariants: one starter looks for a user at a time, the next one when its end is known, and few
//! look at once; each question is answered in twice [`VALIDATION_MOST`] or not at all; a home
//! directory that does not answer holds up nobody but its user.

use super::agent::*;
use super::validation_table::*;
use super::*;
use crate::proto::validation::{Validate, Verdict};
use std::collections::VecDeque;

/// The launcher's key for it. No job has the number 0, and no directory of a job this attempt.
fn key_of(uid: u32) -> JobKey {
    JobKey { job: 0, idx: uid, attempt: u32::MAX }
}

fn task_of(uid: u32) -> TaskId {
    TaskId { key: key_of(uid), step: TaskStep::Finish }
}

fn is_validation(key: JobKey) -> bool {
    key == key_of(key.idx)
}

impl Sbatchd {
    pub(super) fn validate(&mut self, now: Now, ask: Validate, out: &mut Vec<Effect>) {
        let number = ask.number;
        let why = if ask.hosts.is_empty() {
            "no host of submission is named".to_owned()
        } else if self.validations.waiting.len() >= VALIDATIONS_MAX {
            format!("{VALIDATIONS_MAX} requests wait for it")
        } else {
            self.validations.waiting.push_back((now.mono_us + VALIDATION_MOST, ask));
            return self.look_for_users(now, out);
        };
        self.tell(SbdMsg::Validated { number, verdict: Verdict::NotRead(why) }, out);
    }

    /// Another mbatchd, or connection, has other numbers: what was asked before is not answered.
    pub(super) fn drop_validations(&mut self) {
        self.validations.forget_questions();
    }

    pub(super) fn validations_deadline(&self) -> Option<u64> {
        self.validations.deadline()
    }

    /// Ends what takes too long.
    pub(super) fn validations_due(&mut self, now: Now, out: &mut Vec<Effect>) {
        if self.validations_deadline().is_none_or(|at| at > now.mono_us) {
            return;
        }
        let late = self.validations.looking.iter().filter(|(_, l)| l.until <= now.mono_us);
        let late: Vec<u32> = late.map(|(uid, _)| *uid).collect();
        for uid in late {
            let id = task_of(uid);
            if self.linked {
                ask(out, LaunchMsg::Signal { id, signal: SIGKILL });
            }
            let secs = VALIDATION_MOST / US;
            self.looked(uid, Verdict::NotRead(format!("no answer in {secs} s")), out);
            if let Some(looking) = self.validations.looking.get_mut(&uid) {
                looking.until = NEVER;
            }
        }
        while let Some((until, _)) = self.validations.waiting.front()
            && *until <= now.mono_us
        {
            let Some((_, Validate { number, uid, .. })) = self.validations.waiting.pop_front()
            else {
                break;
            };
            let why = match self.validations.looking.contains_key(&uid) {
                true => "an earlier look into the files of the user has not ended",
                false => "too many requests are validated",
            };
            let verdict = Verdict::NotRead(why.to_owned());
            self.tell(SbdMsg::Validated { number, verdict }, out);
        }
        self.look_for_users(now, out);
    }

    /// Begins to look for those who wait.
    pub(super) fn look_for_users(&mut self, now: Now, out: &mut Vec<Effect>) {
        if !self.linked {
            return;
        }
        let most = self.validations.most();
        let Validations { waiting, looking } = &mut self.validations;
        let mut rest = VecDeque::new();
        while let Some((until, question)) = waiting.pop_front() {
            let uid = question.uid;
            if looking.len() >= most || looking.contains_key(&uid) {
                rest.push_back((until, question));
                continue;
            }
            let Validate { number, user, gid, hosts, .. } = question;
            looking.insert(
                uid,
                Looking { number: Some(number), until: now.mono_us + VALIDATION_MOST },
            );
            let what = FinishPlan { validate: hosts, ..FinishPlan::default() };
            let what = TaskPlan::Finish(Box::new(what));
            let plan = Box::new(Plan { uid, gid, user, what });
            let id = task_of(uid);
            ask(out, LaunchMsg::Start { id, plan, note: String::new() });
        }
        *waiting = rest;
    }

    /// A starter that looks tells, or has ended; whether the task is such a one.
    pub(super) fn validation_told(
        &mut self,
        now: Now,
        info: &TaskInfo,
        out: &mut Vec<Effect>,
    ) -> bool {
        if !is_validation(info.id.key) {
            return false;
        }
        let verdict = match &info.setup {
            Some(Setup::Ready(ready)) if ready.kept => Some(Verdict::Accepted),
            Some(Setup::Ready(ready)) => Some(Verdict::NoLine(ready.note.clone())),
            Some(Setup::Failed { why, .. }) => Some(Verdict::NotRead(why.clone())),
            None => None,
        };
        let uid = info.id.key.idx;
        if let Some(verdict) = verdict {
            self.looked(uid, verdict, out);
        }
        if info.ended.is_some() {
            self.looked(uid, Verdict::NotRead("its starter was killed".to_owned()), out);
            self.looking_over(now, uid, out);
        } else {
            // one that an earlier sbatchd has begun is no answer to another question
            let looking = Looking { number: None, until: now.mono_us + VALIDATION_MOST };
            self.validations.looking.entry(uid).or_insert(looking);
        }
        true
    }

    /// Looks that a launcher which was replaced does not know of are over.
    pub(super) fn validations_missed(
        &mut self,
        now: Now,
        known: &BTreeSet<TaskId>,
        out: &mut Vec<Effect>,
    ) {
        let is_known = |uid: &u32| known.contains(&task_of(*uid));
        let gone = self.validations.looking.keys().filter(|uid| !is_known(uid)).copied();
        for uid in gone.collect::<Vec<_>>() {
            self.looked(uid, Verdict::NotRead("its starter is gone".to_owned()), out);
            self.looking_over(now, uid, out);
        }
        self.look_for_users(now, out);
    }

    /// The launcher starts no starter that looks; whether the task was to be such a one.
    pub(super) fn validation_refused(
        &mut self,
        now: Now,
        key: JobKey,
        why: &str,
        out: &mut Vec<Effect>,
    ) -> bool {
        if is_validation(key) {
            self.looked(key.idx, Verdict::NotRead(why.to_owned()), out);
            self.looking_over(now, key.idx, out);
        }
        is_validation(key)
    }

    /// Answers the question that is being looked into for a user, once.
    fn looked(&mut self, uid: u32, mut verdict: Verdict, out: &mut Vec<Effect>) {
        let looking = self.validations.looking.get_mut(&uid);
        let Some(number) = looking.and_then(|looking| looking.number.take()) else { return };
        caps::cut_verdict(&mut verdict);
        self.tell(SbdMsg::Validated { number, verdict }, out);
    }

    fn looking_over(&mut self, now: Now, uid: u32, out: &mut Vec<Effect>) {
        self.validations.looking.remove(&uid);
        ask(out, LaunchMsg::Forget { key: key_of(uid), over_at: 0 });
        self.look_for_users(now, out);
    }
}
