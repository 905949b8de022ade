//! All that is known of a request, as attributes of NJS; and of a queue.

use lsf::cli::clock::Clock;
use lsf::cli::job_rows::{Cell, JobRow};
use lsf::cli::nqs::{first_reason, identifier, route, state};
use lsf::conf::nlb_map::NameMaps;
use lsf::model::nlb::NJS;
use lsf::proto::client::{Col, QueueInfo};

/// The further columns.
pub(super) const COLS: &[Col] = &[
    Col::CpuUsed,
    Col::MemKb,
    Col::Project,
    Col::OutFile,
    Col::ErrFile,
    Col::LoginShell,
    Col::ExecUser,
    Col::ExitCode,
];

/// A request in lines `description: value`.
pub(super) fn request(row: &JobRow, host: &str) -> String {
    let maps = NameMaps::shipped();
    let mut text = String::new();
    for attribute in maps.numbered(NJS).map(|map| map.attributes()).unwrap_or_default() {
        let name = attribute.name.to_ascii_uppercase();
        let Some(value) = value(row, host, name.strip_prefix("NJS_").unwrap_or(&name)) else {
            continue;
        };
        text.push_str(&format!("{}: {value}\n", attribute.description));
    }
    text.push('\n');
    text
}

/// The value of an attribute that has one.
fn value(row: &JobRow, host: &str, name: &str) -> Option<String> {
    let text = |col: Col| Some(row.text(col).into_owned()).filter(|t| !t.is_empty());
    let number = |n: i64| Some(n).filter(|n| *n != 0).map(|n| n.to_string());
    let limit = |key: &str| row.cell(Col::Limits).key(key).and_then(Cell::int);
    let date = |col: Col| {
        Some(row.int(col)).filter(|at| *at != 0).map(|at| {
            let mut text = String::new();
            Clock::system().full(&mut text, at);
            text
        })
    };
    let extra = |key: &str| {
        let value = row.cell(Col::Extra).key(key)?.text().into_owned();
        Some(value).filter(|v| !v.is_empty())
    };
    let reason = || Some(first_reason(row).1).filter(|t| !t.is_empty());
    match name {
        "NQSID" => Some(identifier(row, host)),
        "JOBSTAT" => Some(state(row).word().to_owned()),
        "NUMPROC" => number(row.list(Col::Pids).len() as i64),
        "RUNUSER" => text(Col::ExecUser).or_else(|| text(Col::User)),
        "QUENAM" => text(Col::Queue),
        "CPUREQLIM" => limit("cpu").map(|s| s.to_string()),
        "CPUREQUSE" => number(row.num(Col::CpuUsed) as i64),
        "MEMREQLIM" => limit("rss").map(|kb| format!("{}.0", kb.saturating_mul(1024))),
        "MEMREQUSE" => number(row.int(Col::MemKb))
            .map(|kb| format!("{}.0", kb.parse::<i64>().unwrap_or(0).saturating_mul(1024))),
        "ORGHOST" => text(Col::FromHost),
        "ORIGUSER" => text(Col::User),
        "REQNAME" => text(Col::Name),
        "EXECHOST" => {
            let hosts: Vec<String> = row.hosts(Col::ExecHosts).map(|h| h.0.into_owned()).collect();
            Some(hosts.join(" ")).filter(|t| !t.is_empty())
        }
        "JOBID" => number(row.int(Col::Job)),
        "JOBIDX" => number(row.int(Col::Idx)),
        "PRIORITY" => number(row.int(Col::Priority)),
        "CREATED" => date(Col::SubmitTime),
        "STARTED" => date(Col::StartTime),
        "PIPEQUEUE" => route(row).map(|r| r.from),
        "POLICY" => route(row).map(|r| r.policy).filter(|p| !p.is_empty()),
        "NLBVALUE" => route(row).map(|r| r.value).filter(|v| !v.is_empty()),
        "RANK" => route(row).map(|r| format!("{} of {}", r.rank, r.of)),
        "NEXTTRY" => reason()?.rsplit_once("; next try at ").map(|(_, at)| at.to_owned()),
        "REASON" => reason().map(|why| match why.rsplit_once("; next try at ") {
            Some((why, _)) => why.to_owned(),
            None => why,
        }),
        "ATTRS" => extra("nlbattr"),
        "SLOTS" => number(row.int(Col::MaxSlots)),
        "PROJECT" => text(Col::Project),
        "STDOUT" => text(Col::OutFile),
        "STDERR" => text(Col::ErrFile),
        "SHELL" => text(Col::LoginShell),
        "EXITCODE" => row.cell(Col::ExitCode).int().map(|n| n.to_string()),
        _ => None,
    }
}

/// A queue as it was defined.
pub(super) fn queue(queue: &QueueInfo) -> String {
    let mut text = String::new();
    for (name, value) in &queue.params {
        text.push_str(&format!("{name}: {value}\n"));
    }
    let state = |on: bool, yes: &str, no: &str| if on { yes.to_owned() } else { no.to_owned() };
    text.push_str(&format!("Status: {}\n", state(queue.open, "enabled", "disabled")));
    text.push_str(&format!("Started: {}\n\n", state(queue.active, "yes", "no")));
    text
}
