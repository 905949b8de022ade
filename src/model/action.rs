//! The actions on a job that JOB_SIGNAL records, with their words in the log.

use super::further::SignalNumber;
use super::signals;
use std::borrow::Cow;

/// Signals that are actions of their own.
const SIGKILL: i32 = 9;
const SIGCONT: i32 = 18;
const SIGSTOP: i32 = 19;
/// A stop that a job can catch.
pub const SIGTSTP: SignalNumber = SignalNumber(20);

/// The state of a requeued job after its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requeued {
    Pending,
    /// brequeue -H of its owner.
    HeldByOwner,
    /// brequeue -H of an administrator.
    HeldByAdmin,
}

/// The action of a JOB_SIGNAL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum JobAction {
    #[default]
    Kill,
    /// bkill -r.
    Remove,
    Stop,
    Resume,
    /// bkill -s.
    Signal(SignalNumber),
    /// The signal of bsub -s, sent when the run windows close.
    WindowSignal(SignalNumber),
    /// The end for the load of the host (TERMINATE_WHEN).
    EndByLoad,
    /// The end because the run windows close (TERMINATE_WHEN).
    EndByWindow,
    /// The end in place of a preemption (TERMINATE_WHEN).
    EndByPreemption,
    /// The end at a run limit that is not extended any more (EXTENDABLE_RUNLIMIT).
    EndByRunLimit,
    /// The end because the advance reservation of the job is over.
    EndByReservation,
    /// The end because a task of the job has ended (RTASK_GONE_ACTION).
    EndByTask,
    /// The end because a blaunch of the job has lost a host of it (DJOB_COMMFAIL_ACTION).
    EndByLostHost,
    Requeue(Requeued),
    /// A word that this version does not know: it is kept, and nothing is done about it.
    Other(Box<str>),
}

/// The actions that have one word.
static WORDS: [(&str, JobAction); 14] = [
    ("KILL", JobAction::Kill),
    ("DELETEJOB", JobAction::Remove),
    ("STOP", JobAction::Stop),
    ("CONT", JobAction::Resume),
    ("SIG_TERM_LOAD", JobAction::EndByLoad),
    ("SIG_TERM_WINDOW", JobAction::EndByWindow),
    ("SIG_TERM_PREEMPT", JobAction::EndByPreemption),
    ("SIG_TERM_RUNLIMIT", JobAction::EndByRunLimit),
    ("SIG_TERM_ADVRSV", JobAction::EndByReservation),
    ("SIG_TERM_TASK", JobAction::EndByTask),
    ("SIG_TERM_OTHER", JobAction::EndByLostHost),
    ("REQUEUE_PEND", JobAction::Requeue(Requeued::Pending)),
    ("REQUEUE_PSUSP_USER", JobAction::Requeue(Requeued::HeldByOwner)),
    ("REQUEUE_PSUSP_ADMIN", JobAction::Requeue(Requeued::HeldByAdmin)),
];

/// Stands before the name of a [`JobAction::WindowSignal`].
const WINDOW: &str = "SIG_WINDOW_";

impl JobAction {
    /// The action of a signal.
    pub fn of_signal(number: i32) -> JobAction {
        match number {
            SIGKILL => JobAction::Kill,
            SIGCONT => JobAction::Resume,
            SIGSTOP => JobAction::Stop,
            number => JobAction::Signal(SignalNumber(number)),
        }
    }

    /// The action of a word of the log.
    pub fn of_word(word: &str) -> JobAction {
        if let Some((_, action)) = WORDS.iter().find(|(known, _)| *known == word) {
            return action.clone();
        }
        let signal = |name: &str| signals::number(name).map(SignalNumber);
        let action = match word.strip_prefix(WINDOW) {
            Some(name) => signal(name).map(JobAction::WindowSignal),
            None => signal(word).map(JobAction::Signal),
        };
        // a second name of a signal stays as it is
        action
            .filter(|action| action.word() == word)
            .unwrap_or_else(|| JobAction::Other(word.into()))
    }

    /// The word of the log.
    pub fn word(&self) -> Cow<'_, str> {
        match self {
            JobAction::Signal(SignalNumber(number)) => signals::text(*number),
            JobAction::WindowSignal(SignalNumber(number)) => {
                Cow::Owned(format!("{WINDOW}{}", signals::text(*number)))
            }
            JobAction::Other(word) => Cow::Borrowed(word),
            action => {
                let word = WORDS.iter().find(|(_, known)| known == action);
                Cow::Borrowed(word.map_or("", |(word, _)| word))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_comes_back_and_known_ones_are_actions() {
        let window = JobAction::WindowSignal(SignalNumber(12));
        let own = WORDS.clone().into_iter().chain([
            ("USR1", JobAction::Signal(SignalNumber(10))),
            ("40", JobAction::Signal(SignalNumber(40))),
            ("TSTP", JobAction::Signal(SIGTSTP)),
            ("SIG_WINDOW_USR2", window),
        ]);
        for (word, action) in own {
            assert_eq!((JobAction::of_word(word), &*action.word()), (action.clone(), word));
        }
        for word in ["", "IOT", "SIGUSR1", "usr1", "SIG_WINDOW_", "SIG_WINDOW_SIGUSR2", "CHKPNT"] {
            assert_eq!(JobAction::of_word(word), JobAction::Other(word.into()));
            assert_eq!(JobAction::of_word(word).word(), word);
        }
    }

    #[test]
    fn signals_that_are_actions_of_their_own_are_told_by_their_numbers() {
        assert_eq!(JobAction::of_signal(9), JobAction::Kill);
        assert_eq!(JobAction::of_signal(19), JobAction::Stop);
        assert_eq!(JobAction::of_signal(18), JobAction::Resume);
        assert_eq!(JobAction::of_signal(20), JobAction::Signal(SIGTSTP));
    }
}
