//! brsvadd: makes an advance reservation (brsvadd(1)).

use super::reservations as common;
use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::Ctx;
use lsf::cli::front::{self, Exit};
use lsf::cli::long_format::clean;
use lsf::model::reservation::{ReservationKind, ReservationTime};
use lsf::proto::reservation::{NewReservation, ReservationRequest};

/// Makes an advance reservation.
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// jobs of the reservation go on after its end
    #[argh(switch, short = 'o')]
    open: bool,
    /// hosts with fewer started slots come first
    #[argh(switch, short = 'f')]
    idle_first: bool,
    /// a system reservation: no job is started on the hosts
    #[argh(switch, short = 's')]
    system: bool,
    /// jobs of others are not suspended for those of the reservation
    #[argh(switch)]
    nosusp: bool,
    /// slots to reserve, or hosts (-unit host)
    #[argh(option, short = 'n', arg_name = "job_slots")]
    number: Option<String>,
    /// what -n counts
    #[argh(option, arg_name = "slot | host")]
    unit: Option<String>,
    /// hosts, in the order in which their slots are used
    #[argh(option, short = 'm', arg_name = "\"host_name ... | host_group ...\"")]
    hosts: Option<String>,
    /// hosts that meet the select section
    #[argh(option, short = 'R', arg_name = "\"res_req\"")]
    res_req: Option<String>,
    /// users and user groups whose jobs may use it
    #[argh(option, short = 'u', arg_name = "\"user_name ... | user_group ...\"")]
    users: Option<String>,
    /// user groups whose jobs may use it
    #[argh(option, short = 'g', arg_name = "\"user_group ...\"")]
    groups: Option<String>,
    /// the begin, once
    #[argh(option, short = 'b', arg_name = "[[[year:]month:]day:]hour:minute")]
    begin: Option<String>,
    /// the end, once
    #[argh(option, short = 'e', arg_name = "[[[year:]month:]day:]hour:minute")]
    end: Option<String>,
    /// the window that comes again each day or week
    #[argh(option, short = 't', arg_name = "[day:]hour[:minute]-[day:]hour[:minute]")]
    window: Option<String>,
    /// a name instead of a number
    #[argh(option, short = 'N', arg_name = "reservation_name")]
    name: Option<String>,
    /// a description
    #[argh(option, short = 'd', arg_name = "\"description\"")]
    description: Option<String>,
    /// queues whose jobs may run into the reservation
    #[argh(option, short = 'q', arg_name = "\"queue_name ...\"")]
    queues: Option<String>,
    /// script before the begin (kept, not acted on)
    #[argh(option, short = 'E', arg_name = "pre_ar_script")]
    pre: Option<String>,
    /// minutes before the begin
    #[argh(option, long = "-et", arg_name = "pre_ar_time")]
    pre_minutes: Option<String>,
    /// script at the end (kept, not acted on)
    #[argh(option, long = "-ep", arg_name = "post_ar_script")]
    post: Option<String>,
    /// minutes before the end
    #[argh(option, long = "-ept", arg_name = "post_ar_time")]
    post_minutes: Option<String>,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    plan(ctx).unwrap_or_else(|exit| exit.show(ctx))
}

fn plan(ctx: &mut Ctx) -> Result<i32, Exit> {
    let parsed = front::parse_of::<Opts>(ctx)?;
    let usage = |words: &str| front::usage_error::<Opts>("brsvadd", words);
    if !parsed.operands.is_empty() {
        return Err(usage("brsvadd takes no operand."));
    }
    let o = parsed.options;
    let time = time(&o).map_err(|words| usage(&words))?;
    let (kind, users) = match o.system {
        true if o.users.is_some() || o.groups.is_some() => {
            return Err(usage("-s cannot be combined with -u and -g."));
        }
        true => (ReservationKind::System, Vec::new()),
        false => common::users(&o.users, &o.groups)?,
    };
    if !o.system && users.is_empty() {
        return Err(usage("One of -s, -u and -g must be specified."));
    }
    if !o.system && o.number.is_none() {
        return Err(usage("The number of slots or hosts must be specified with -n."));
    }
    if o.hosts.is_none() && o.res_req.is_none() {
        return Err(usage("Hosts must be specified with -m or -R."));
    }
    let units = o.number.as_deref().map_or(Ok(0), |text| common::count("-n", text))?;
    let scripts = [o.pre, o.pre_minutes, o.post, o.post_minutes];
    let new = NewReservation {
        name: o.name.unwrap_or_default(),
        kind,
        users,
        units,
        by_host: common::by_host(&o.unit)?,
        hosts: common::list(&o.hosts),
        res_req: o.res_req.unwrap_or_default(),
        time,
        minutes: 0,
        open: o.open,
        no_suspension: o.nosusp,
        idle_first: o.idle_first,
        queues: common::list(&o.queues),
        description: o.description.unwrap_or_default(),
        scripts: common::scripts(ctx, &scripts)?,
    };
    common::change(ctx, ReservationRequest::Add(Box::new(new)), "created")
}

fn time(o: &Opts) -> Result<ReservationTime, String> {
    let (now, zone) = (common::now(), lsf::sys::zone());
    let read = |text: &String| {
        let bad = || format!("{}: Bad time specification.", clean(text));
        common::time(text, now, &zone).ok_or_else(bad)
    };
    match (&o.begin, &o.end, &o.window) {
        (Some(begin), Some(end), None) => {
            Ok(ReservationTime::Once { begin: read(begin)?, end: read(end)? })
        }
        (None, None, Some(window)) => Ok(ReservationTime::Weekly(window.trim().to_string())),
        _ => Err("Either -b and -e, or -t, must be specified.".to_string()),
    }
}
