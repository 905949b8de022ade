//! bparams: the parameters of lsb.params in force (bparams(1)).

use argh::{ArgsInfo, FromArgs};
use lsf::cli::client::{self, ClientError};
use lsf::cli::columns::Json;
use lsf::cli::ctx::Ctx;
use lsf::cli::front::{self, Exit};
use lsf::cli::long_format::{clean, push_clean};
use lsf::conf::names::lsb_params::PARAMETERS;
use lsf::proto::client::ClientMsg;
use std::fmt::Write;

/// Values of mbatchd's answer that are not parameters.
const NO_PARAMS: [&str; 3] = ["CLUSTER", "MASTER", "LOG_FAILED"];

/// The sentences of -l: of which parameter, and what follows its value. A parameter that is not
/// set has none.
const SENTENCES: &[(&str, &str, &str)] = &[
    ("System default queues for automatic queue selection:", "DEFAULT_QUEUE", ""),
    ("System default host or host model for adjusting CPU time limit:", "DEFAULT_HOST_SPEC", ""),
    ("The interval for dispatching jobs by master batch daemon:", "MBD_SLEEP_TIME", " (seconds)"),
    ("The interval for checking jobs by slave batch daemon:", "SBD_SLEEP_TIME", " (seconds)"),
    (
        "The interval for a host to accept two batch jobs:",
        "JOB_ACCEPT_INTERVAL",
        " (* MBD_SLEEP_TIME)",
    ),
    ("The idle time of a host for resuming pg suspended jobs:", "PG_SUSP_IT", " (seconds)"),
    (
        "The amount of time during which finished jobs are kept in core:",
        "CLEAN_PERIOD",
        " (seconds)",
    ),
    (
        "The maximum number of finished jobs that can be stored in current events file:",
        "MAX_JOB_NUM",
        "",
    ),
    ("The maximum number of retries for reaching a slave batch daemon:", "MAX_SBD_FAIL", ""),
    ("The default project assigned to jobs.", "DEFAULT_PROJECT", ""),
    ("The interval to terminate a job.", "JOB_TERMINATE_INTERVAL", " "),
    ("The maximum number of jobs in a job array.", "MAX_JOB_ARRAY_SIZE", ""),
    ("User level account mapping for remote jobs is", ACCOUNT_MAP_OFF, ""),
    ("Maximal job priority defined for all users: ", "MAX_USER_PRIORITY", ""),
    ("The Maximum JobId defined in the system:", "MAX_JOBID", ""),
    ("Job submission retry interval:", "SUB_TRY_INTERVAL", " seconds"),
    ("Mbatchd reserves resources based on job tasks:", "RESOURCE_RESERVE_PER_TASK", ""),
    ("Run time weighting factor for fairshare scheduling policy:", "RUN_TIME_FACTOR", ""),
    ("CPU time weighting factor for fairshare scheduling policy:", "CPU_TIME_FACTOR", ""),
    ("Job slots weighting factor for fairshare scheduling policy:", "RUN_JOB_FACTOR", ""),
    ("The number of hours of resource consumption history::", "HIST_HOURS", ""),
];

/// The parameter that disables ~/.lsfhosts; told in a sentence alone.
const ACCOUNT_MAP_OFF: &str = "DISABLE_UACCT_MAP";

/// Shows the parameters of lsb.params.
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// long format: each parameter after a sentence that describes it
    #[argh(switch, short = 'l')]
    long: bool,
    /// all parameters, one on a line
    #[argh(switch, short = 'a')]
    all: bool,
    /// all parameters as JSON
    #[argh(switch, long = "json")]
    json: bool,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    match show(ctx) {
        Ok(code) => code,
        Err(exit) => exit.show(ctx),
    }
}

fn show(ctx: &mut Ctx) -> Result<i32, Exit> {
    let o = front::parse_of::<Opts>(ctx)?.options;
    let values = match client::ask(ctx, ClientMsg::Params) {
        Ok(ClientMsg::ParamRows { values }) => values,
        other => {
            let e = other.err().unwrap_or(ClientError::Unexpected);
            return Err(Exit::fail(clean(&e.words())));
        }
    };
    let mut out = String::new();
    match (o.all, o.long) {
        _ if o.json => out = json(&values),
        (true, _) => all(&mut out, &values),
        (_, true) => long(&mut out, &values),
        _ => short(&mut out, &values),
    }
    let _ = ctx.out.write_all(out.as_bytes());
    Ok(0)
}

type Values = [(String, String)];

fn value<'a>(values: &'a Values, name: &str) -> Option<&'a str> {
    values.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
}

/// One record, whose keys are the parameters.
fn json(values: &Values) -> String {
    let mut text = Json::new("bparams", "PARAMETERS");
    let pairs: Vec<(&str, &str)> = parameters(values).collect();
    text.pairs(&pairs);
    text.finish()
}

/// The parameters, without the other values of mbatchd's answer.
fn parameters(values: &Values) -> impl Iterator<Item = (&str, &str)> {
    let all = values.iter().filter(|(name, _)| !NO_PARAMS.contains(&name.as_str()));
    all.map(|(name, value)| (name.as_str(), value.as_str()))
}

fn short(out: &mut String, values: &Values) {
    let text = |name: &str| clean(value(values, name).unwrap_or("-"));
    let number = |name: &str| value(values, name).and_then(|v| v.parse::<u64>().ok()).unwrap_or(0);
    let sleep = number("MBD_SLEEP_TIME");
    let accept = number("JOB_ACCEPT_INTERVAL").saturating_mul(sleep);
    let _ = writeln!(out, "Default Queues:  {}", text("DEFAULT_QUEUE"));
    if let Some(spec) = value(values, "DEFAULT_HOST_SPEC") {
        let _ = writeln!(out, "Default Host Specification:  {}", clean(spec));
    }
    let _ = writeln!(out, "MBD_SLEEP_TIME used for calculations:  {sleep} seconds");
    let _ = writeln!(out, "Job Checking Interval:  {} seconds", number("SBD_SLEEP_TIME"));
    let _ = writeln!(out, "Job Accepting Interval:  {accept} seconds");
}

fn long(out: &mut String, values: &Values) {
    for (sentence, name, unit) in SENTENCES {
        if *name == ACCOUNT_MAP_OFF {
            let off = value(values, name).is_some_and(|v| v.eq_ignore_ascii_case("y"));
            let _ = writeln!(out, "\n{sentence} {}.", if off { "disabled" } else { "permitted" });
            continue;
        }
        let Some(value) = value(values, name) else { continue };
        let _ = write!(out, "\n{sentence}\n    {name} = ");
        push_clean(out, value);
        out.push_str(unit);
        out.push_str(PARAMETERS.mark(name));
        out.push('\n');
        if let (&"MAX_USER_PRIORITY", Ok(max)) = (name, value.parse::<u64>()) {
            let _ = writeln!(out, "The default job priority is: {}", max / 2);
        }
    }
    out.push('\n');
}

fn all(out: &mut String, values: &Values) {
    for (name, value) in parameters(values) {
        push_clean(out, name);
        out.push_str(" = ");
        push_clean(out, value);
        let told = SENTENCES.iter().find(|(_, n, unit)| *n == name && unit.contains('('));
        out.push_str(told.map_or("", |(_, _, unit)| unit));
        out.push_str(PARAMETERS.mark(name));
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> Vec<(String, String)> {
        [
            ("CLUSTER", "c"),
            ("DEFAULT_QUEUE", "normal"),
            ("MBD_SLEEP_TIME", "20"),
            ("SBD_SLEEP_TIME", "15"),
            ("JOB_ACCEPT_INTERVAL", "1"),
            ("SUB_TRY_INTERVAL", "60"),
            ("MAX_USER_PRIORITY", "100"),
        ]
        .map(|(n, v)| (n.to_string(), v.to_string()))
        .to_vec()
    }

    #[test]
    fn bparams_json_has_a_key_for_each_parameter() {
        let want = concat!(
            "{\n  \"COMMAND\":\"bparams\",\n  \"PARAMETERS\":1,\n  \"RECORDS\":[\n    {\n",
            "      \"DEFAULT_QUEUE\":\"normal\",\n      \"MBD_SLEEP_TIME\":\"20\",\n",
        );
        let text = json(&values());
        assert!(text.starts_with(want), "{text}");
        assert!(!text.contains("CLUSTER"), "{text}");
    }

    #[test]
    fn bparams_shows_the_short_form() {
        let mut out = String::new();
        short(&mut out, &values());
        assert_eq!(
            out,
            "Default Queues:  normal\nMBD_SLEEP_TIME used for calculations:  20 seconds\n\
             Job Checking Interval:  15 seconds\nJob Accepting Interval:  20 seconds\n"
        );
    }

    #[test]
    fn bparams_shows_defaults_and_all_parameters() {
        let values = [
            ("CLUSTER", "c"),
            ("MASTER", "hosta"),
            ("DEFAULT_QUEUE", "normal idle"),
            ("DEFAULT_HOST_SPEC", "hosta"),
            ("MBD_SLEEP_TIME", "20"),
            ("SBD_SLEEP_TIME", "15"),
            ("JOB_ACCEPT_INTERVAL", "2"),
            ("MAX_JOBID", "999999"),
            ("OUR_OWN", "a \x1b[1m value"),
            ("LOG_FAILED", "disk full"),
        ]
        .map(|(n, v)| (n.to_string(), v.to_string()));
        let shown = |form: fn(&mut String, &Values)| {
            let mut out = String::new();
            form(&mut out, &values);
            out
        };
        assert_eq!(shown(short), include_str!("../tests/cmd/expected/bparams.txt"));
        assert_eq!(shown(all), include_str!("../tests/cmd/expected/bparams-a.txt"));
    }

    /// The lines of LSF, without those that openlava's descendants alone have.
    #[test]
    fn bparams_shows_the_values_of_the_sample() {
        let values: Vec<(String, String)> = [
            ("DEFAULT_QUEUE", "normal"),
            ("MBD_SLEEP_TIME", "2"),
            ("SBD_SLEEP_TIME", "2"),
            ("JOB_ACCEPT_INTERVAL", "0"),
            ("PG_SUSP_IT", "180"),
            ("CLEAN_PERIOD", "3600"),
            ("MAX_JOB_NUM", "1000"),
            ("MAX_SBD_FAIL", "3"),
            ("DEFAULT_PROJECT", "default"),
            ("JOB_TERMINATE_INTERVAL", "10"),
            ("MAX_JOB_ARRAY_SIZE", "1000"),
            ("DISABLE_UACCT_MAP", "Y"),
            ("MAX_USER_PRIORITY", "100"),
            ("MAX_JOBID", "999999"),
            ("SUB_TRY_INTERVAL", "60"),
            ("RESOURCE_RESERVE_PER_TASK", "N"),
            ("RUN_TIME_FACTOR", "0.700000"),
            ("CPU_TIME_FACTOR", "0.700000"),
            ("RUN_JOB_FACTOR", "3.000000"),
            ("HIST_HOURS", "3.000000"),
        ]
        .map(|(n, v)| (n.to_string(), v.to_string()))
        .to_vec();
        let mut out = String::new();
        long(&mut out, &values);
        assert_eq!(out, include_str!("../tests/cmd/expected/bparams-l.txt"));
    }

    /// The layout that LSF prints.
    #[test]
    fn bparams_l_shows_the_long_form() {
        let mut out = String::new();
        long(&mut out, &values());
        let want = "
System default queues for automatic queue selection:
    DEFAULT_QUEUE = normal

The interval for dispatching jobs by master batch daemon:
    MBD_SLEEP_TIME = 20 (seconds)

The interval for checking jobs by slave batch daemon:
    SBD_SLEEP_TIME = 15 (seconds)

The interval for a host to accept two batch jobs:
    JOB_ACCEPT_INTERVAL = 1 (* MBD_SLEEP_TIME)

User level account mapping for remote jobs is permitted.

Maximal job priority defined for all users:\x20
    MAX_USER_PRIORITY = 100
The default job priority is: 50

Job submission retry interval:
    SUB_TRY_INTERVAL = 60 seconds

";
        assert_eq!(out, want);
        let mut out = String::new();
        all(&mut out, &values());
        assert!(
            out.starts_with("DEFAULT_QUEUE = normal\nMBD_SLEEP_TIME = 20 (seconds)\n"),
            "{out}"
        );
    }
}
