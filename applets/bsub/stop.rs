//! Why bsub ends without a job.

use super::rejection::Rejection;
use lsf::cli::client::ClientError;
use lsf::cli::front::Exit;

/// Why bsub ends without a job.
pub enum Stop {
    /// A usage error, help.
    Exit(Exit),
    Rejected(Rejection),
    Client(ClientError),
}

impl Stop {
    /// The reason as a rejection, for a submission that did not reach mbatchd.
    pub fn rejection(self) -> Result<Rejection, Exit> {
        match self {
            Stop::Exit(exit) => Err(exit),
            Stop::Rejected(why) => Ok(why),
            Stop::Client(e) => Ok(Rejection::new(e.to_string())),
        }
    }
}

impl From<Exit> for Stop {
    fn from(e: Exit) -> Self {
        Stop::Exit(e)
    }
}

impl From<Rejection> for Stop {
    fn from(r: Rejection) -> Self {
        Stop::Rejected(r)
    }
}

impl From<ClientError> for Stop {
    fn from(e: ClientError) -> Self {
        Stop::Client(e)
    }
}
