//! brsvdel: deletes advance reservations (brsvdel(1)).

use super::reservations as common;
use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::Ctx;
use lsf::cli::front::{self, Exit};
use lsf::proto::reservation::ReservationRequest;

/// Deletes advance reservations.
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// accepted; nothing is asked
    #[argh(switch, short = 'f')]
    _force: bool,
    /// the reservations
    #[argh(positional, greedy, arg_name = "reservation_ID")]
    _ids: Vec<String>,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    plan(ctx).unwrap_or_else(|exit| exit.show(ctx))
}

fn plan(ctx: &mut Ctx) -> Result<i32, Exit> {
    let parsed = front::parse_of::<Opts>(ctx)?;
    if parsed.operands.is_empty() {
        return Err(front::usage_error::<Opts>(ctx.name, "Reservation ID must be specified."));
    }
    let ids = parsed.operands.iter().map(|id| id.to_string_lossy().into_owned()).collect();
    common::change(ctx, ReservationRequest::Delete { ids }, "being deleted")
}
