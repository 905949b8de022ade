//! qlimit: the limits of requests that are enforced here. See qlimit(1).

use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::Ctx;
use lsf::cli::front;

/// Show which limits of a request are enforced while it runs.
#[derive(FromArgs, ArgsInfo)]
struct Options {}

/// The limits: description, option of cqsub, and whether they are enforced.
const LIMITS: [(&str, &str, bool); 16] = [
    ("Per-process core file size", "-lc", true),
    ("Per-process data size", "-ld", true),
    ("Per-process permanent file size", "-lf", true),
    ("Per-request permanent file space", "-lF", false),
    ("Per-process memory size", "-lm", true),
    ("Per-request memory size", "-lM", true),
    ("Nice value", "-ln", false),
    ("Per-process quick file size", "-lq", false),
    ("Per-request quick file space", "-lQ", false),
    ("Per-process stack size", "-ls", true),
    ("Per-process CPU time", "-lt", true),
    ("Per-request CPU time", "-lT", true),
    ("Per-request tape drives", "-lU", true),
    ("Per-process temporary file size", "-lv", false),
    ("Per-request temporary file space", "-lV", false),
    ("Per-process working set size", "-lw", false),
];

/// The table.
pub fn table() -> String {
    let mut text = String::new();
    for (what, option, enforced) in LIMITS {
        let line = format!("  {what:<37}{option}");
        let note = if enforced { "" } else { "   Not run-time enforceable" };
        text.push_str(&format!("{line}{note}\n"));
    }
    text
}

pub fn run(ctx: &mut Ctx) -> i32 {
    match front::parse_of::<Options>(ctx) {
        Ok(_) => {
            let _ = write!(ctx.out, "{}", table());
            0
        }
        Err(exit) => exit.show(ctx),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn table_has_the_layout_of_the_manual() {
        let table = super::table();
        assert!(table.starts_with("  Per-process core file size           -lc\n"), "{table}");
        assert!(table.contains("-lF   Not run-time enforceable\n"), "{table}");
    }
}
