//! The stages of a setup, by which a starter tells what of it has failed.

use serde::{Deserialize, Serialize};

/// The part of a setup that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SetupStage {
    /// The plan could not be read.
    Plan,
    /// No such user, another uid than expected, or a set*id call failed.
    User,
    Limits,
    /// The working directory is missing and the job asked to exit then (exit status 2).
    Cwd,
    Input,
    Output,
    JobFile,
    Finish,
    /// The login shell of -L is not there.
    Shell,
    /// The account of ~/.lsfhosts does not accept the user of the job.
    Account,
    /// The pre-execution command of the job, of its queue, wants it to be tried again.
    PreExec,
    QueuePreExec,
    /// A pre-execution command wants the job to end.
    PreAbort,
}

/// Exit status by which a pre-execution command ends its job ($LSB_EXIT_PRE_ABORT).
pub const EXIT_PRE_ABORT: i32 = 99;

impl SetupStage {
    /// The exit status of a starter whose setup failed in this stage. Two of the statuses mean the
    /// job's own end; the others are never taken for the job's.
    pub fn exit_status(self) -> i32 {
        match self {
            SetupStage::Cwd => 2,
            SetupStage::PreAbort => EXIT_PRE_ABORT,
            _ => 125,
        }
    }
}
