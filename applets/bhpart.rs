//! bhpart: shows the host partitions with the accounts that share them (bhpart(1)).

use argh::{ArgsInfo, FromArgs};
use lsf::cli::client::{self, ClientError};
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::front::{self, Exit};
use lsf::cli::long_format::{clean, push_clean};
use lsf::cli::share_table;
use lsf::errln;
use lsf::model::reason::{err, err_text};
use lsf::proto::client::{ClientMsg, PartitionInfo};

/// Shows the host partitions.
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// with the accounts of groups
    #[argh(switch, short = 'r')]
    recursive: bool,
    /// the host partitions (default: all)
    #[argh(positional, greedy, arg_name = "host_partition_name")]
    _names: Vec<String>,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    plan(ctx).unwrap_or_else(|exit| exit.show(ctx))
}

fn plan(ctx: &mut Ctx) -> Result<i32, Exit> {
    let parsed = front::parse_of::<Opts>(ctx)?;
    let names = parsed.operands.iter().map(|n| n.to_string_lossy().into_owned()).collect();
    let rows = match client::ask(ctx, ClientMsg::Partitions { names }) {
        Ok(ClientMsg::PartitionRows { rows }) => rows,
        other => {
            let e = other.err().unwrap_or(ClientError::Unexpected);
            return Err(Exit::fail(clean(&e.words())));
        }
    };
    if rows.is_empty() {
        errln!(ctx, "{}", err_text(err::NO_HPART));
        return Ok(FAIL);
    }
    let text = shown(&rows, parsed.options.recursive);
    let _ = ctx.out.write_all(text.as_bytes());
    Ok(0)
}

/// Each partition with the root of its share tree; `recursive`: and its groups.
fn shown(rows: &[PartitionInfo], recursive: bool) -> String {
    let mut out = String::new();
    for (i, partition) in rows.iter().enumerate() {
        out.push_str(if i > 0 { "\n" } else { "" });
        out.push_str("HOST_PARTITION_NAME: ");
        push_clean(&mut out, &partition.name);
        out.push_str("\nHOSTS: ");
        for word in &partition.hosts {
            push_clean(&mut out, word);
            out.push(' ');
        }
        out.push('\n');
        let tables = if recursive { partition.shares.len() } else { 1 };
        partition.shares.iter().take(tables).for_each(|table| share_table::push(&mut out, table));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use lsf::proto::client::{ShareRow, ShareTable};

    #[test]
    fn partitions_are_shown_with_their_hosts_and_accounts() {
        let row = |name: &str, shares, priority| ShareRow {
            name: name.into(),
            shares,
            priority,
            ..ShareRow::default()
        };
        let busy = ShareRow { started: 12, cpu_secs: 3.5, run_secs: 99.0, ..row("chip", 2, 0.05) };
        let root = ShareTable { path: "p1/".into(), rows: vec![row("ann", 1, 1.0 / 3.0), busy] };
        let group = ShareTable { path: "p1/chip/".into(), rows: vec![row("bob", 1, 0.25)] };
        let p1 = PartitionInfo {
            name: "p1".into(),
            hosts: vec!["h1".into(), "rack1/".into()],
            shares: vec![root, group],
        };
        let p2 = PartitionInfo { name: "p2".into(), hosts: vec!["all".into()], shares: vec![] };
        let want = include_str!("../tests/cmd/expected/bhpart.txt");
        assert_eq!(shown(&[p1.clone(), p2], false), want);
        let chip = "\nSHARE_INFO_FOR: p1/chip/\n";
        assert!(!want.contains(chip) && shown(&[p1], true).contains(chip));
    }
}
