//! Compares the state that a recovery finds with the state that was known before, in full: it holds
//! every record that a reply waited for, and of the records behind them, which nobody was told of,
//! the first few or none.
//!
//! For that a second state, the shadow, is kept of all durable records as mbatchd appended them,
//! across restarts, switches of the log and its moves to other hosts. At each start, and after each
//! commit that failed, the state read from the log is held against it; when mbatchd is killed, so
//! is its own state, which nothing but records may change.

use crate::batch::state::State;
use crate::log::writer::Command;
use crate::model::JobRef;
use crate::model::event::{Event, Record};
use std::collections::{BTreeSet, HashSet, VecDeque};

/// The state that must be found again, and the records that may be found behind it.
#[derive(Debug)]
pub(super) struct Shadow {
    /// The state after all durable records.
    state: State,
    /// Records appended since, with the number of them that each ticket covers.
    later: VecDeque<Record>,
    tickets: VecDeque<(u64, usize)>,
    /// Records of commits that failed since the last one that did not: a crash may come before
    /// they are cut off.
    refused: Vec<VecDeque<Record>>,
    /// Elements that requests with an id sent back to their queue.
    requeued: HashSet<(String, JobRef)>,
    /// A request did so twice.
    twice: Option<String>,
    /// The log was damaged. A switch marks every job that lost a record to damage as held, also
    /// one that had ended, which a start does not.
    damaged: bool,
    /// The clock of a master was set. The hosts of EXCLUDE() are forgotten when mbatchd starts; in
    /// a log that was switched, the times of records tell what was before the start, and clocks
    /// that were set mislead that.
    clock_was_set: bool,
}

impl Default for Shadow {
    fn default() -> Shadow {
        let state = State::new();
        let (later, tickets, refused, requeued) = Default::default();
        Shadow {
            state,
            later,
            tickets,
            refused,
            requeued,
            twice: None,
            damaged: false,
            clock_was_set: false,
        }
    }
}

/// The entry of a job without attempts, behind its number and without its excluded hosts.
const NO_TRIES: &str = " tried (0, 0, 0, false) (0, 0)";

/// Whether a difference `what: [one] is [other]` is one of excluded hosts alone, which are in the
/// brackets behind `tried (...)`.
fn same_but_excluded(text: &str) -> bool {
    let without = |text: &str| {
        let mut parts = text.split(" tried (");
        let first = parts.next().unwrap_or_default().to_string();
        parts.fold(first, |all, part| match part.split_once(") [") {
            Some((counts, rest)) => {
                let rest = rest.split_once(']').map_or(rest, |(_, rest)| rest);
                format!("{all} tried ({counts}){rest}")
            }
            None => format!("{all} tried ({part}"),
        })
    };
    let Some((_, both)) = text.split_once(": [") else { return false };
    let mut both = without(both.trim_end_matches(']'));
    // the entry of a job without excluded hosts and attempts is missing: ` 2 tried (...) (0, 0)`
    while let Some(at) = both.find(NO_TRIES) {
        let from = both[..at].rfind(' ').unwrap_or(at);
        both.replace_range(from..at + NO_TRIES.len(), "");
    }
    both.split_once("] is [").is_some_and(|(one, other)| one == other)
}

impl Shadow {
    /// The clock of a host is set.
    pub(super) fn set_clock(&mut self) {
        self.clock_was_set = true;
    }

    /// mbatchd appends a record.
    pub(super) fn appended(&mut self, record: &Record) {
        self.later.push_back(record.clone());
    }

    /// The appended records go to the log's thread.
    pub(super) fn ordered(&mut self, command: &Command) {
        if let Command::Batch(batch) = command {
            let before: usize = self.tickets.iter().map(|t| t.1).sum();
            self.tickets.push_back((batch.ticket, self.later.len() - before));
        }
    }

    /// Are all appended records durable?
    pub(super) fn is_durable(&self) -> bool {
        self.later.is_empty()
    }

    /// Everything up to this ticket is durable.
    pub(super) fn durable(&mut self, ticket: u64) {
        while let Some((_, n)) = self.tickets.front().copied().filter(|t| t.0 <= ticket) {
            self.tickets.pop_front();
            self.refused.clear();
            self.settle(n);
        }
    }

    /// The first `n` of the later records are durable.
    fn settle(&mut self, n: usize) {
        for record in self.later.drain(..n) {
            self.state.recover(&record);
            if let Event::JobRequeue { at, request, .. } = &record.event
                && !request.is_empty()
                && !self.requeued.insert((request.clone(), *at))
            {
                let text = format!("a request that was made again has <{at}> requeued again");
                self.twice.get_or_insert(text);
            }
        }
    }

    /// Begins anew with the records that a damaged log still had.
    pub(super) fn begin_anew(&mut self, records: &[Record]) {
        let clock_was_set = self.clock_was_set;
        *self = Shadow { damaged: true, clock_was_set, ..Shadow::default() };
        self.later.extend(records.iter().cloned());
        self.settle(records.len());
    }

    /// A commit failed: its records may be found at the next start, until another one succeeds.
    pub(super) fn refuse(&mut self) {
        self.tickets.clear();
        self.refused.push(std::mem::take(&mut self.later));
    }

    /// Takes over what was read from the log, of which `last` is the last record; returns the
    /// differences. A later record that was found is durable from now on.
    pub(super) fn found(&mut self, found: &State, last: Option<&Record>) -> Vec<String> {
        let up_to_last = |all: &VecDeque<Record>| {
            (1..=all.len()).rev().find(|n| all.get(n - 1) == last).unwrap_or(0)
        };
        // of the records of failed commits only where the log ends with one of them: where a switch
        // was completed, it ends with none, and the later ones are those that it may hold
        if up_to_last(&self.later) == 0
            && let Some(at) = self.refused.iter().rposition(|all| up_to_last(all) > 0)
        {
            self.later = self.refused.swap_remove(at);
        }
        self.settle(up_to_last(&self.later));
        let first = self.differences(found);
        let mut told = first.clone();
        while !told.is_empty() && !self.later.is_empty() {
            self.settle(1);
            told = self.differences(found);
        }
        self.later.clear();
        self.tickets.clear();
        self.refused.clear();
        if told.is_empty() { told } else { first }
    }

    pub(super) fn differences(&self, found: &State) -> Vec<String> {
        let mut told = self.state.differences(found, &BTreeSet::new());
        told.extend(self.twice.clone());
        // nor is the number of a last job that was lost with its JOB_NEW given again
        let by_damage = |text: &str| text.contains("> held:") || text.starts_with("the next job");
        told.retain(|text| !self.damaged || !by_damage(text));
        told.retain(|text| !self.clock_was_set || !same_but_excluded(text));
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::event::{JobNew, JobStatus};
    use crate::model::job::JobSpec;
    use crate::model::job_state::JobState;

    fn record(event: Event) -> Record {
        Record { time: 100, event }
    }

    fn new(job: u32) -> Record {
        let spec = JobSpec { queue: "normal".into(), command: "a".into(), ..JobSpec::default() };
        record(Event::JobNew(Box::new(JobNew { job, spec: spec.into(), ..JobNew::default() })))
    }

    #[test]
    fn differences_of_excluded_hosts_alone_are_told_from_others() {
        let one = "job <2> beside: [None 0 2 tried (1, 0) [] (0, 0)] is [None 0 2 tried (1, 0) \
                   [\"h2\"] (0, 0)]";
        assert!(same_but_excluded(one));
        assert!(!same_but_excluded(&one.replacen("(1, 0)", "(2, 0)", 1)));
        let none = "job <2> beside: [0 2 a] is [0 2 tried (0, 0, 0, false) [\"h1\"] (0, 0) 2 a]";
        assert!(same_but_excluded(none));
        assert!(!same_but_excluded(&one.replacen("None 0", "None 1", 1)));
        assert!(!same_but_excluded("the next job: [5] is [6]"));
        assert!(!same_but_excluded("the request of job <2> is forgotten"));
    }

    #[test]
    fn shadow_takes_a_completed_switch_for_no_refused_commit() {
        let at = JobRef { job: 5, idx: 0 };
        let status = JobState::Exit.into();
        let ended = Event::JobStatus(Box::new(JobStatus { at, status, ..JobStatus::default() }));
        let known = [new(5), record(ended)];
        let clean = record(Event::JobClean { at });
        let mut shadow = Shadow::default();
        shadow.later.extend(known.iter().cloned());
        shadow.settle(known.len());
        shadow.refused.push([new(6)].into());
        shadow.later.extend([clean.clone(), record(Event::LogSwitch { last_job: 5 })]);
        let mut found = State::new();
        known.iter().chain([&clean]).for_each(|r| drop(found.recover(r)));
        // the log after the switch ends with a record that was known before
        assert_eq!(shadow.found(&found, known.last()), Vec::<String>::new());
        // a log that ends with a record of the commit that failed holds that commit
        let mut shadow = Shadow::default();
        shadow.refused.push([new(6)].into());
        let mut found = State::new();
        found.recover(&new(6));
        assert_eq!(shadow.found(&found, Some(&new(6))), Vec::<String>::new());
    }
}
