//! The tables with one line for each queue: default and -w.

use lsf::cli::columns::count;
use lsf::cli::long_format::push_clean;
use lsf::proto::client::QueueInfo;
use std::fmt::Write;

/// `Open:Active`, `Closed:Inact_Adm`, `Open:Inact_Win` ...
pub fn status(q: &QueueInfo) -> &'static str {
    match (q.open, q.active, q.window_closed) {
        (true, true, false) => "Open:Active",
        (true, false, _) => "Open:Inact_Adm",
        (true, true, true) => "Open:Inact_Win",
        (false, true, false) => "Closed:Active",
        (false, false, _) => "Closed:Inact_Adm",
        (false, true, true) => "Closed:Inact_Win",
    }
}

/// A limit per processor: `2`, `0.5`; `2.0` in -l.
pub fn per_processor(n: Option<f64>, fixed: bool) -> String {
    match n {
        None => "-".to_string(),
        Some(n) if fixed || n.fract() != 0.0 => format!("{n:.1}"),
        Some(n) => format!("{n:.0}"),
    }
}

pub fn head(out: &mut String, wide: bool) {
    out.push_str(
        "QUEUE_NAME      PRIO STATUS          MAX JL/U JL/P JL/H NJOBS  PEND   RUN  SUSP ",
    );
    out.push_str(if wide { " RSV PJOBS\n" } else { "\n" });
}

pub fn row(out: &mut String, q: &QueueInfo, wide: bool) {
    const NAME: usize = 15;
    let mut name = String::new();
    push_clean(&mut name, &q.name);
    if !wide {
        name = name.chars().take(NAME).collect();
    }
    let _ = write!(
        out,
        "{name:<NAME$} {:>3}  {:<14} {:>4} {:>4} {:>4} {:>4} {:>5} {:>5} {:>5} {:>5}",
        q.priority,
        status(q),
        count(q.max),
        count(q.jl_u),
        per_processor(q.jl_p, false),
        count(q.jl_h),
        q.njobs,
        q.pend,
        q.run,
        q.ssusp + q.ususp,
    );
    if wide {
        let _ = write!(out, " {:>4} {:>5}", q.rsv, q.pjobs);
    }
    out.push('\n');
}
