//! The ends of tasks of a parallel job that end the job, and what the loss of a host does
//! (RTASK_GONE_ACTION and DJOB_COMMFAIL_ACTION, lsb.applications(5)).

use crate::model::job::End;
use serde::{Deserialize, Serialize};

/// The ends of a task started by blaunch after which its job is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskGoneAction {
    /// KILLJOB_TASKDONE: the exit code is 0.
    pub done: bool,
    /// KILLJOB_TASKEXIT: the exit code is another.
    pub exit: bool,
    /// No IGNORE_TASKCRASH: a signal ended it that no daemon had sent. SIGPIPE is no crash:
    /// `blaunch host cat file | head` ends a task by it whenever head has read enough.
    pub crash: bool,
}

/// A crash alone.
impl Default for TaskGoneAction {
    fn default() -> TaskGoneAction {
        TaskGoneAction { done: false, exit: false, crash: true }
    }
}

impl TaskGoneAction {
    /// Reads the value of RTASK_GONE_ACTION, with or without its quotes.
    ///
    /// # Errors
    /// The words that are known.
    pub fn parse(text: &str) -> Result<TaskGoneAction, &'static str> {
        const WANTED: &str = "KILLJOB_TASKDONE or KILLJOB_TASKEXIT, and IGNORE_TASKCRASH are known";
        let mut action = TaskGoneAction::default();
        let text = text.trim();
        let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        for word in inner.unwrap_or(text).split_whitespace() {
            match word.to_ascii_uppercase().as_str() {
                "KILLJOB_TASKDONE" if !action.exit => action.done = true,
                "KILLJOB_TASKEXIT" if !action.done => action.exit = true,
                "IGNORE_TASKCRASH" => action.crash = false,
                _ => return Err(WANTED),
            }
        }
        Ok(action)
    }

    /// Does this end of a task end its job? `signalled`: a daemon had sent the task a signal that
    /// may have ended it.
    pub fn ends_job(&self, end: &End, signalled: bool) -> bool {
        let End::Status(status) = *end else { return false };
        !signalled
            && match (status & 0x7f, status >> 8 & 0xff) {
                (0, 0) => self.done,
                (0, _) => self.exit,
                (libc::SIGPIPE, _) => false,
                _ => self.crash,
            }
    }
}

/// The action of a blaunch that has lost a host (DJOB_COMMFAIL_ACTION).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostLossAction {
    /// Ends its other tasks, and has mbatchd end the job.
    #[default]
    EndJob,
    /// KILL_TASKS: ends its other tasks.
    KillTasks,
    /// IGNORE_COMMFAIL: waits for its other tasks.
    Ignore,
}

impl HostLossAction {
    /// Reads the value of DJOB_COMMFAIL_ACTION; an empty one is the default.
    ///
    /// # Errors
    /// The words that are known.
    pub fn parse(text: &str) -> Result<HostLossAction, &'static str> {
        match text.trim().to_ascii_uppercase().as_str() {
            "" => Ok(HostLossAction::EndJob),
            "KILL_TASKS" => Ok(HostLossAction::KillTasks),
            "IGNORE_COMMFAIL" => Ok(HostLossAction::Ignore),
            _ => Err("KILL_TASKS and IGNORE_COMMFAIL are known"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_action_are_read_in_any_case_and_with_quotes() {
        let of = |done, exit, crash| Ok(TaskGoneAction { done, exit, crash });
        assert_eq!(TaskGoneAction::parse(""), of(false, false, true));
        assert_eq!(
            TaskGoneAction::parse("\"IGNORE_TASKCRASH killjob_taskexit\""),
            of(false, true, false)
        );
        assert_eq!(TaskGoneAction::parse(" KILLJOB_TASKDONE "), of(true, false, true));
        for bad in ["x", "KILLJOB_TASKDONE KILLJOB_TASKEXIT", "\"IGNORE_TASKCRASH", "a b"] {
            assert!(TaskGoneAction::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn end_of_a_task_ends_the_job_as_the_action_says_and_never_by_a_signal_of_ours() {
        let of = |text: &str| TaskGoneAction::parse(text).unwrap();
        let ends = |text: &str, status| of(text).ends_job(&End::Status(status), false);
        // exit code 0, 3, SIGSEGV with a core
        assert_eq!([0, 0x300, 0x8b].map(|s| ends("", s)), [false, false, true]);
        assert_eq!([0, 0x300, 0x8b].map(|s| ends("KILLJOB_TASKDONE", s)), [true, false, true]);
        let both = "KILLJOB_TASKEXIT IGNORE_TASKCRASH";
        assert_eq!([0, 0x300, 0x8b].map(|s| ends(both, s)), [false, true, false]);
        assert!(!of("").ends_job(&End::Status(9), true));
        assert!(!of("").ends_job(&End::Status(libc::SIGPIPE), false));
        assert!(!of("").ends_job(&End::Unknown, false));
    }

    #[test]
    fn action_on_the_loss_of_a_host_is_read_in_any_case_and_a_wrong_word_is_none() {
        let read = ["", " kill_tasks", "IGNORE_COMMFAIL"].map(HostLossAction::parse);
        let want = [HostLossAction::EndJob, HostLossAction::KillTasks, HostLossAction::Ignore];
        assert_eq!(read, want.map(Ok));
        for bad in ["x", "KILL_TASKS IGNORE_COMMFAIL", "\"KILL_TASKS\""] {
            assert!(HostLossAction::parse(bad).is_err(), "{bad}");
        }
    }
}
