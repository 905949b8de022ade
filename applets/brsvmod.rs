//! brsvmod: changes an advance reservation (brsvmod(1)).

use super::reservations as common;
use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::Ctx;
use lsf::cli::front::{self, Exit};
use lsf::cli::long_format::clean;
use lsf::model::reservation::ReservationScripts;
use lsf::proto::reservation::{ChosenHosts, NewInstant, ReservationChange, ReservationRequest};

/// The words before the options that change hosts, users or occurrences.
const SUBCOMMANDS: [&str; 5] = ["addhost", "rmhost", "adduser", "rmuser", "disable"];
const ONE: &str = "One reservation must be specified.";

/// Changes an advance reservation. Before the options: addhost and rmhost (-n -m -R -f), adduser
/// and rmuser (-u), disable (-td -tn).
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// jobs of the reservation go on after its end
    #[argh(switch, short = 'o')]
    open: bool,
    /// they end with it
    #[argh(switch)]
    on: bool,
    /// jobs of others are not suspended for those of the reservation
    #[argh(switch)]
    nosusp: bool,
    /// they are
    #[argh(switch)]
    nosuspn: bool,
    /// they are
    #[argh(switch, hidden_help)]
    nonsuspn: bool,
    /// the begin, or minutes from what it was
    #[argh(option, short = 'b', arg_name = "begin_time | [+|-]minutes")]
    begin: Option<String>,
    /// the end, or minutes from what it was
    #[argh(option, short = 'e', arg_name = "end_time | [+|-]minutes")]
    end: Option<String>,
    /// the window that comes again each day or week
    #[argh(option, short = 't', arg_name = "[day:]hour[:minute]-[day:]hour[:minute]")]
    window: Option<String>,
    /// users and user groups instead of those before
    #[argh(option, short = 'u', arg_name = "\"user_name ... | user_group ...\"")]
    users: Option<String>,
    /// user groups instead of the users before
    #[argh(option, short = 'g', arg_name = "\"user_group ...\"")]
    groups: Option<String>,
    /// a description
    #[argh(option, short = 'd', arg_name = "\"description\"")]
    description: Option<String>,
    /// queues whose jobs may run into the reservation
    #[argh(option, short = 'q', arg_name = "\"queue_name ...\"")]
    queues: Option<String>,
    /// no such queues
    #[argh(switch)]
    qn: bool,
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
    /// no scripts
    #[argh(switch, long = "-en")]
    no_scripts: bool,
    /// addhost, rmhost: slots, or hosts of a reservation of hosts
    #[argh(option, short = 'n', arg_name = "number_unit")]
    number: Option<String>,
    /// addhost, rmhost: hosts
    #[argh(option, short = 'm', arg_name = "\"host_name ... | host_group ...\"")]
    hosts: Option<String>,
    /// addhost, rmhost: hosts that meet the select section
    #[argh(option, short = 'R', arg_name = "\"res_req\"")]
    res_req: Option<String>,
    /// addhost: hosts with fewer started slots come first
    #[argh(switch, short = 'f')]
    idle_first: bool,
    /// disable: days on which it does not begin
    #[argh(option, arg_name = "begin_date-end_date")]
    td: Vec<String>,
    /// disable: no such days any more
    #[argh(switch)]
    tn: bool,
    /// the reservation
    #[argh(positional, greedy, arg_name = "reservation_ID")]
    _ids: Vec<String>,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    plan(ctx).unwrap_or_else(|exit| exit.show(ctx))
}

fn plan(ctx: &mut Ctx) -> Result<i32, Exit> {
    let first = ctx.args.first().and_then(|word| word.to_str()).unwrap_or_default();
    let verb = SUBCOMMANDS.iter().find(|verb| first.trim_start_matches('-') == **verb);
    if verb.is_some() {
        ctx.args.remove(0);
    }
    let parsed = front::parse_of::<Opts>(ctx)?;
    let usage = |words: &str| front::usage_error::<Opts>("brsvmod", words);
    let id = common::one(&parsed.operands).ok_or_else(|| usage(ONE))?;
    let o = parsed.options;
    let change = match verb {
        None => properties(ctx, o)?,
        Some(verb) => part(verb, &o).map_err(|words| usage(&words))?,
    };
    if change == ReservationChange::default() {
        return Err(usage("What is to be changed must be specified."));
    }
    let request = ReservationRequest::Modify { id, change: Box::new(change) };
    common::change(ctx, request, "modified")
}

/// addhost, rmhost, adduser, rmuser, disable.
fn part(verb: &str, o: &Opts) -> Result<ReservationChange, String> {
    let mut change = ReservationChange::default();
    let users = common::list(&o.users);
    match verb {
        "adduser" | "rmuser" if users.is_empty() => return Err("Users are missing (-u).".into()),
        "adduser" => change.add_users = users,
        "rmuser" => change.remove_users = users,
        "disable" => {
            let (now, zone) = (common::now(), lsf::sys::zone());
            for text in &o.td {
                let dates = common::dates(text, now, &zone);
                let bad = || format!("{}: Bad dates for option -td.", clean(text));
                change.disable.push(dates.ok_or_else(bad)?);
            }
            change.enable = o.tn;
        }
        _ => {
            let units = o.number.as_deref().map_or(Ok(0), |text| common::count("-n", text));
            let chosen = ChosenHosts {
                units: units.map_err(|exit| exit.err.trim_end().to_string())?,
                hosts: common::list(&o.hosts),
                res_req: o.res_req.clone().unwrap_or_default(),
                idle_first: o.idle_first,
            };
            if chosen.hosts.is_empty() && chosen.res_req.is_empty() && chosen.units == 0 {
                return Err("Hosts must be specified with -m, -R or -n.".into());
            }
            match verb {
                "addhost" => change.add_hosts = Some(chosen),
                _ => change.remove_hosts = Some(chosen),
            }
        }
    }
    Ok(change)
}

fn properties(ctx: &mut Ctx, o: Opts) -> Result<ReservationChange, Exit> {
    if o.number.is_some() || o.hosts.is_some() || o.res_req.is_some() {
        return Err(Exit::fail("-n, -m and -R are options of addhost and rmhost."));
    }
    if !o.td.is_empty() || o.tn {
        return Err(Exit::fail("-td and -tn are options of disable."));
    }
    let users = match o.users.is_some() || o.groups.is_some() {
        true => Some(common::users(&o.users, &o.groups)?),
        false => None,
    };
    let of = |on: bool, off: bool| on.then_some(true).or(off.then_some(false));
    let given = [o.pre, o.pre_minutes, o.post, o.post_minutes];
    let scripts = match given.iter().any(Option::is_some) {
        true => Some(common::scripts(ctx, &given)?),
        false => o.no_scripts.then(ReservationScripts::default),
    };
    let queues = o.queues.is_some().then(|| common::list(&o.queues));
    Ok(ReservationChange {
        begin: o.begin.as_deref().map(new_instant).transpose()?,
        end: o.end.as_deref().map(new_instant).transpose()?,
        window: o.window.map(|text| text.trim().to_string()),
        users,
        open: of(o.open, o.on),
        no_suspension: of(o.nosusp, o.nosuspn || o.nonsuspn),
        queues: queues.or_else(|| o.qn.then(Vec::new)),
        description: o.description,
        scripts,
        ..ReservationChange::default()
    })
}

fn new_instant(text: &str) -> Result<NewInstant, Exit> {
    let text = text.trim();
    let shift = text.starts_with(['+', '-']).then(|| text.parse().ok().map(NewInstant::Shift));
    let at = || common::time(text, common::now(), &lsf::sys::zone()).map(NewInstant::At);
    let bad = || Exit::fail(format_args!("{}: Bad time specification.", clean(text)));
    shift.unwrap_or_else(at).ok_or_else(bad)
}
