//! bresources: what lsb.resources contains (bresources(1)).

use super::{blimits, bresources_pools};
use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::front::{self, Exit};
use lsf::cli::long_format::clean;
use lsf::conf::names::tables::RESERVATION_USAGE;
use lsf::errln;
use lsf::proto::limit_rows::{LimitQuery, PoolInfo};
use std::fmt::Write;

/// Shows what lsb.resources contains: limits, and with -s how resources are reserved.
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// how resources are reserved: the sections ReservationUsage
    #[argh(switch, short = 's')]
    usage: bool,
    /// guaranteed resource pools
    #[argh(switch, short = 'g')]
    guaranteed: bool,
    /// with -g, in the long format
    #[argh(switch, short = 'l')]
    long: bool,
    /// with -g and -l, the hosts that are in the pools now
    #[argh(switch, short = 'm')]
    hosts: bool,
    /// with -g and -l, the pools that lend to this queue
    #[argh(option, short = 'q', arg_name = "queue_name")]
    queue: Option<String>,
    /// not acted on: packages
    #[argh(switch, short = 'p', hidden_help)]
    packages: bool,
    /// accepted for compatibility; nothing is cut
    #[argh(switch, short = 'w', hidden_help)]
    _wide: bool,
    /// with -s, these resources; with -g, these pools
    #[argh(positional, greedy, arg_name = "name")]
    _names: Vec<String>,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    show(ctx).unwrap_or_else(|exit| exit.show(ctx))
}

fn show(ctx: &mut Ctx) -> Result<i32, Exit> {
    let parsed = front::parse_of::<Opts>(ctx)?;
    let o = parsed.options;
    let names: Vec<String> =
        parsed.operands.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    if o.packages {
        errln!(ctx, "bresources: option -p is accepted but not acted on yet");
        return Ok(FAIL);
    }
    if o.guaranteed {
        return show_pools(ctx, &o, &names);
    }
    let of_pools = [("-l", o.long), ("-m", o.hosts), ("-q", o.queue.is_some())];
    if let Some((word, _)) = of_pools.iter().find(|(_, given)| *given) {
        let text = format!("{word} goes with -g alone");
        return Err(front::usage_error::<Opts>(ctx.name, &text));
    }
    if !names.is_empty() && !o.usage {
        return Err(front::usage_error::<Opts>(ctx.name, "resource names go with -s alone"));
    }
    let listing = blimits::ask(ctx, LimitQuery::default())?;
    if !o.usage {
        if listing.limits.is_empty() {
            errln!(ctx, "No resource configuration found.");
            return Ok(0);
        }
        let text = blimits::configuration(&listing.limits);
        let _ = ctx.out.write_all(text.as_bytes());
        return Ok(0);
    }
    let all = &listing.reservation_usage;
    if let Some(bad) = names.iter().find(|name| !all.iter().any(|row| row.0 == **name)) {
        errln!(ctx, "{}: No reservation usage is configured", clean(bad));
        return Ok(FAIL);
    }
    let rows: Vec<_> =
        all.iter().filter(|row| names.is_empty() || names.contains(&row.0)).collect();
    if rows.is_empty() {
        errln!(ctx, "No resource configuration found.");
        return Ok(0);
    }
    let text = reservation_usage(&rows);
    let _ = ctx.out.write_all(text.as_bytes());
    Ok(0)
}

/// The pools of these names, or all.
fn show_pools(ctx: &mut Ctx, o: &Opts, names: &[String]) -> Result<i32, Exit> {
    if (o.hosts || o.queue.is_some()) && !o.long {
        return Err(front::usage_error::<Opts>(ctx.name, "-m and -q go with -g and -l"));
    }
    let listing = blimits::ask(ctx, LimitQuery::default())?;
    let all = &listing.pools;
    if let Some(bad) = names.iter().find(|name| !all.iter().any(|pool| pool.name == **name)) {
        errln!(ctx, "{}: Guaranteed resource pool does not exist", clean(bad));
        return Ok(FAIL);
    }
    let lends = |pool: &&PoolInfo| {
        let to = |queue: &String| pool.borrowers.iter().any(|q| q == queue || q == "all");
        o.queue.as_ref().is_none_or(to)
    };
    let chosen = all.iter().filter(|pool| names.is_empty() || names.contains(&pool.name));
    let chosen: Vec<&PoolInfo> = chosen.filter(lends).collect();
    if chosen.is_empty() {
        errln!(ctx, "No guaranteed resource pool found.");
        return Ok(FAIL);
    }
    let text = match o.long {
        false => bresources_pools::table(&chosen),
        true => {
            let texts: Vec<String> =
                chosen.iter().map(|pool| bresources_pools::long(pool, o.hosts)).collect();
            texts.join("\n")
        }
    };
    let _ = ctx.out.write_all(text.as_bytes());
    Ok(0)
}

fn reservation_usage(rows: &[&(String, String, String)]) -> String {
    let mut out = String::from("\nBegin ReservationUsage\n");
    let _ = writeln!(out, "{:<19} {:<12} RESERVE", "RESOURCE", "METHOD");
    let shown = |text: &str| if text.is_empty() { "-".to_owned() } else { clean(text) };
    for (resource, method, reserve) in rows {
        let (method, reserve) = (shown(method), shown(reserve));
        let _ = write!(out, "{:<19} {method:<12} {reserve}", clean(resource));
        let _ = writeln!(out, "{}", RESERVATION_USAGE.mark("RESERVE"));
    }
    out.push_str("End ReservationUsage\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservation_usage_is_told_as_a_section() {
        let row = |resource: &str, method: &str, reserve: &str| {
            (resource.to_owned(), method.to_owned(), reserve.to_owned())
        };
        let rows = [row("lic", "PER_JOB", "Y"), row("tok", "", "N")];
        let want = include_str!("../tests/cmd/expected/bresources-s.txt");
        assert_eq!(reservation_usage(&rows.iter().collect::<Vec<_>>()), want);
    }
}
