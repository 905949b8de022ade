//! The table SHARE_INFO_FOR of the accounts that share a queue or a host partition (bqueues(1),
//! bhpart(1)).

use super::long_format::push_clean;
use crate::proto::client::ShareTable;
use std::fmt::Write;

const HEAD: &str =
    " USER/GROUP   SHARES  PRIORITY  STARTED  RESERVED  CPU_TIME  RUN_TIME   ADJUST\n";

/// A table: the accounts right below a group.
pub fn push(out: &mut String, table: &ShareTable) {
    out.push_str("\nSHARE_INFO_FOR: ");
    push_clean(out, &table.path);
    out.push('\n');
    out.push_str(HEAD);
    for row in &table.rows {
        let mut name = String::new();
        push_clean(&mut name, &row.name);
        let _ = writeln!(
            out,
            "{name:<10} {:>5}{:>12.3}{:>7}{:>9}{:>12.1}{:>9.0}{:>12.3}",
            row.shares,
            row.priority,
            row.started,
            row.reserved,
            row.cpu_secs,
            row.run_secs,
            row.adjust
        );
    }
}
