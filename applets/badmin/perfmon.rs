//! badmin perfmon (badmin(8)): the table of `view` has the labels and the width of "Achieving
//! Performance and Scalability" in the documentation of LSF 8.0; the words for samples that are not
//! there, and those after start, stop and setperiod, are of no source.

use lsf::cli::client::{self, ClientError};
use lsf::cli::clock::Clock;
use lsf::cli::ctx::Ctx;
use lsf::cli::front::Exit;
use lsf::cli::long_format::clean;
use lsf::outln;
use lsf::proto::client::{AdminLine, AdminOp, ClientMsg};
use std::fmt::Write;

const USAGE: &str =
    "Usage: badmin perfmon start [sample_period] | stop | view | setperiod sample_period";
const RULE: &str = "------------------------------------------------------------------";

pub fn perfmon(ctx: &mut Ctx) -> Result<i32, Exit> {
    let words = ctx.words();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let secs = |text: &str| match text.parse::<u64>() {
        Ok(n) if n > 0 => Ok(n),
        _ => Err(Exit::fail(format_args!("{}: Illegal sample period\n{USAGE}", clean(text)))),
    };
    let (what, secs) = match words[..] {
        [what @ ("start" | "stop" | "view")] => (what, 0),
        [what @ ("start" | "setperiod"), text] => (what, secs(text)?),
        _ => return Err(Exit::fail(USAGE)),
    };
    let op = AdminOp::Perfmon { what: what.to_string(), secs };
    let lines = match client::ask(ctx, ClientMsg::Admin(op)) {
        Ok(ClientMsg::AdminDone { lines }) => lines,
        Ok(_) => return Err(Exit::fail(ClientError::Unexpected)),
        Err(e) => return Err(Exit::fail(e)),
    };
    match what {
        "start" => outln!(ctx, "Performance metric sampling has been started."),
        "stop" => outln!(ctx, "Performance metric sampling has been stopped."),
        "setperiod" => outln!(ctx, "The sample period is {secs} seconds."),
        _ => {
            let text = view(&lines, &Clock::system()).map_err(Exit::fail)?;
            let _ = ctx.out.write_all(text.as_bytes());
        }
    }
    Ok(0)
}

/// The table; why there is none.
fn view(lines: &[AdminLine], clock: &Clock) -> Result<String, &'static str> {
    if lines.is_empty() {
        return Err("Performance metric sampling has not been started.");
    }
    let value = |about: &str| lines.iter().find(|l| l.about == about).map_or("", |l| &l.text);
    let time = |about: &str| {
        let mut text = String::new();
        clock.long(&mut text, value(about).parse().unwrap_or(0));
        text
    };
    if value("@end") == "0" {
        return Err("No performance metric data available. Please wait until first sample period \
                    ends.");
    }
    let mut out = String::new();
    for (label, text) in [
        ("Performance monitor start time:", time("@start")),
        ("End time of last sample period:", time("@end")),
        ("Sample period :", format!("{} Seconds", clean(value("@period")))),
    ] {
        let _ = writeln!(out, "{label:<33}{text}");
    }
    let mut row = |name: &str, values: &[&str]| {
        let mut line = format!("{name:<34}");
        for (text, width) in values.iter().zip([6, 7, 6, 6, 7]) {
            let _ = write!(line, "{text:>width$}");
        }
        let _ = writeln!(out, "{}", line.trim_end());
    };
    row(RULE, &[]);
    row("Metrics", &["Last", "Max", "Min", "Avg", "Total"]);
    row(RULE, &[]);
    for line in lines.iter().filter(|l| !l.about.starts_with('@')) {
        let text = clean(&line.text);
        row(&clean(&line.about), &text.split(' ').collect::<Vec<_>>());
    }
    row(RULE, &[]);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(about: &str, text: &str) -> AdminLine {
        AdminLine { about: about.into(), code: 0, text: text.into() }
    }

    #[test]
    fn perfmon_shows_the_documented_table() {
        // 2007-01-19 15:07:54 UTC
        let mut lines = vec![
            line("@start", "1169219274"),
            line("@end", "1169220355"),
            line("@period", "60"),
            line("Total queries", "0 25 0 8 159"),
            line("Jobs submitted", "0 100 0 5 100"),
        ];
        let want = "\
Performance monitor start time:  Fri Jan 19 15:07:54
End time of last sample period:  Fri Jan 19 15:25:55
Sample period :                  60 Seconds
------------------------------------------------------------------
Metrics                             Last    Max   Min   Avg  Total
------------------------------------------------------------------
Total queries                          0     25     0     8    159
Jobs submitted                         0    100     0     5    100
------------------------------------------------------------------
";
        assert_eq!(view(&lines, &Clock::utc()).unwrap(), want);
        lines[1].text = "0".into();
        let wait = "No performance metric data available. Please wait until first sample period \
                    ends.";
        assert_eq!(view(&lines, &Clock::utc()), Err(wait));
        let off = "Performance metric sampling has not been started.";
        assert_eq!(view(&[], &Clock::utc()), Err(off));
    }
}
