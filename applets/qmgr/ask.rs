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
    lines(client::ask(ctx, ClientMsg::Admin(op))?)
}

/// Has mbatchd do a command that defines something, once; the lines of its answer.
pub fn define(ctx: &mut Ctx, command: &str) -> Result<Vec<AdminLine>, Failed> {
    let op = |again| AdminOp::DefineQueues { command: command.to_owned(), again };
    lines(client::ask_again(ctx, |again| ClientMsg::Admin(op(again)))?)
}

fn lines(answer: ClientMsg) -> Result<Vec<AdminLine>, Failed> {
    match answer {
        ClientMsg::AdminDone { lines } => Ok(lines),
        _ => Err(ClientError::Unexpected.into()),
    }
}
