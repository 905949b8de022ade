//! brsvs: shows advance reservations, and the policies by which users may make some (brsvs(1)).

mod planner;
mod table;

use argh::{ArgsInfo, FromArgs};
use lsf::cli::client;
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::front::{self, Exit};
use lsf::cli::long_format::clean;
use lsf::errln;
use lsf::model::reason::{err, err_text};
use lsf::proto::client::ClientMsg;
use lsf::proto::reservation::{ReservationPolicyInfo, ReservationRequest};
use std::fmt::Write;

/// Shows advance reservations.
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// long format
    #[argh(switch, short = 'l')]
    long: bool,
    /// names are not cut
    #[argh(switch, short = 'w')]
    wide: bool,
    /// the policies of lsb.resources
    #[argh(option, short = 'c', arg_name = "all | \"policy_name ...\"")]
    policies: Option<String>,
    /// the weekly planner of hosts
    #[argh(option, short = 'p', arg_name = "all | \"host_name ... | host_group ...\"")]
    planner: Option<String>,
    /// the planner without the lines in which nothing changes
    #[argh(option, short = 'z', arg_name = "all | \"host_name ... | host_group ...\"")]
    short_planner: Option<String>,
    /// these reservations alone (default: all)
    #[argh(positional, greedy, arg_name = "reservation_ID")]
    _ids: Vec<String>,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    plan(ctx).unwrap_or_else(|exit| exit.show(ctx))
}

fn plan(ctx: &mut Ctx) -> Result<i32, Exit> {
    let parsed = front::parse_of::<Opts>(ctx)?;
    let o = parsed.options;
    if let Some(names) = &o.policies {
        return show_policies(ctx, names);
    }
    let ids = parsed.operands.iter().map(|id| id.to_string_lossy().into_owned()).collect();
    let mut rows = match ask(ctx, ReservationRequest::List { ids })? {
        ClientMsg::Reservations(rows) => rows,
        _ => return Err(Exit::fail(err_text(err::MBATCHD))),
    };
    let planner = o.planner.as_deref().map(|hosts| (hosts, false));
    let planner = planner.or(o.short_planner.as_deref().map(|hosts| (hosts, true)));
    if let Some((hosts, _)) = planner.filter(|(hosts, _)| hosts.trim() != "all") {
        let hosts = planner::named(ctx, hosts)?;
        rows.retain(|row| row.hosts.iter().any(|of| hosts.contains(&of.0)));
        rows.iter_mut().for_each(|row| row.hosts.retain(|of| hosts.contains(&of.0)));
    }
    if rows.is_empty() {
        errln!(ctx, "No reservation found");
        return Ok(FAIL);
    }
    let zone = lsf::sys::zone();
    // active ones first, as -l sorts them
    if o.long {
        rows.sort_by_key(|row| !row.active);
    }
    let mut text = match o.long {
        true => table::long(&rows, o.wide, &zone),
        false => table::table(&rows, o.wide, &zone),
    };
    if let Some((_, short)) = planner {
        text.push_str(&planner::planner(&rows, short, super::reservations::now(), &zone));
    }
    let _ = ctx.out.write_all(text.as_bytes());
    Ok(0)
}

fn ask(ctx: &mut Ctx, request: ReservationRequest) -> Result<ClientMsg, Exit> {
    let answer = client::ask(ctx, ClientMsg::Reservation(Box::new(request)));
    answer.map_err(|e| Exit::fail(clean(&e.words())))
}

fn show_policies(ctx: &mut Ctx, names: &str) -> Result<i32, Exit> {
    let names: Vec<String> = match names.trim() {
        "all" => Vec::new(),
        some => some.split_whitespace().map(str::to_string).collect(),
    };
    match ask(ctx, ReservationRequest::Policies { names })? {
        ClientMsg::ReservationPolicies(rows) if rows.is_empty() => {
            errln!(ctx, "No reservation policy found");
            Ok(FAIL)
        }
        ClientMsg::ReservationPolicies(rows) => {
            let text = rows.iter().map(policy).collect::<Vec<_>>().join("\n");
            let _ = ctx.out.write_all(text.as_bytes());
            Ok(0)
        }
        _ => Err(Exit::fail(err_text(err::MBATCHD))),
    }
}

fn policy(p: &ReservationPolicyInfo) -> String {
    let or = |text: &str, all: &str| clean(if text.is_empty() { all } else { text });
    let mut out = format!("Policy Name: {}\n", clean(&p.name));
    let _ = writeln!(out, "Users: {}", or(&p.users, "all"));
    let _ = writeln!(out, "Hosts: {}", or(&p.hosts, "all"));
    let _ = writeln!(out, "Time Window: {}", or(&p.window, "-"));
    out
}
