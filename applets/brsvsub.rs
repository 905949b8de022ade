//! brsvsub: makes a reservation for which mbatchd finds the first time (brsvsub(1)).

use super::reservations as common;
use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::Ctx;
use lsf::cli::front::{self, Exit};
use lsf::errln;
use lsf::proto::reservation::{NewReservation, ReservationRequest};

/// Makes an advance reservation at the first time at which its slots are free of others.
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// an interactive job fills it (accepted, not acted on)
    #[argh(switch, short = 'I')]
    interactive: bool,
    /// how long it lasts
    #[argh(option, short = 'D', arg_name = "minutes")]
    duration: Option<String>,
    /// jobs of the reservation go on after its end
    #[argh(switch, short = 'o')]
    open: bool,
    /// queue of the job that fills it (accepted, not acted on)
    #[argh(option, short = 'q', arg_name = "queue_name")]
    queue: Option<String>,
    /// slots to reserve, or hosts (-unit host)
    #[argh(option, short = 'n', arg_name = "job_slots")]
    number: Option<String>,
    /// what -n counts
    #[argh(option, arg_name = "slot | host")]
    unit: Option<String>,
    /// users and user groups whose jobs may use it
    #[argh(option, short = 'u', arg_name = "\"user_name ... | user_group ...\"")]
    users: Option<String>,
    /// hosts, in the order in which their slots are used
    #[argh(option, short = 'm', arg_name = "\"host_name ... | host_group ...\"")]
    hosts: Option<String>,
    /// hosts that meet the select section
    #[argh(option, short = 'R', arg_name = "\"res_req\"")]
    res_req: Option<String>,
    /// a name instead of a number
    #[argh(option, short = 'N', arg_name = "reservation_name")]
    name: Option<String>,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    plan(ctx).unwrap_or_else(|exit| exit.show(ctx))
}

fn plan(ctx: &mut Ctx) -> Result<i32, Exit> {
    let parsed = front::parse_of::<Opts>(ctx)?;
    let usage = |words: &str| front::usage_error::<Opts>("brsvsub", words);
    let o = parsed.options;
    let (Some(number), Some(duration)) = (&o.number, &o.duration) else {
        return Err(usage("-n and -D must be specified."));
    };
    if o.users.is_none() {
        return Err(usage("Users must be specified with -u."));
    }
    let (kind, users) = common::users(&o.users, &None)?;
    for (word, given) in [("-I", o.interactive), ("-q", o.queue.is_some())] {
        if given {
            errln!(ctx, "brsvsub: option {word} is accepted but not acted on yet");
        }
    }
    let new = NewReservation {
        name: o.name.unwrap_or_default(),
        kind,
        users,
        units: common::count("-n", number)?,
        by_host: common::by_host(&o.unit)?,
        hosts: common::list(&o.hosts),
        res_req: o.res_req.unwrap_or_default(),
        minutes: common::count("-D", duration)?,
        open: o.open,
        ..NewReservation::default()
    };
    common::change(ctx, ReservationRequest::Add(Box::new(new)), "created")
}
