//! Requests of administrators to mbatchd, and the words for what was not done.

use lsf::cli::client::{self, ClientError};
use lsf::cli::ctx::Ctx;
use lsf::proto::client::{AdminLine, AdminOp, ClientMsg};

/// The words for which a command was not done.
pub struct Failed(pub String);

impl From<ClientError> for Failed {
    fn from(e: ClientError) -> Failed {
        Failed(e.words())
    }
}

/// Asks mbatchd; the lines of its answer.
pub fn admin(ctx: &mut Ctx, op: AdminOp) -> Result<Vec<AdminLine>, Failed> {
    match client::ask(ctx, ClientMsg::Admin(op))? {
        ClientMsg::AdminDone { lines } => Ok(lines),
        _ => Err(ClientError::Unexpected.into()),
    }
}
