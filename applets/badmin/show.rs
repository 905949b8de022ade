//! showconf and showstatus (badmin(8)).

use lsf::cli::client::{self, ClientError};
use lsf::cli::clock::Clock;
use lsf::cli::columns::Json;
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::front::Exit;
use lsf::cli::long_format::clean;
use lsf::cli::site;
use lsf::conf::load::load_base_lenient;
use lsf::proto::Msg;
use lsf::proto::client::{AdminLine, AdminOp, ClientMsg};
use lsf::proto::lim::LimMsg;
use lsf::sys::files::RealFiles;
use lsf::{errln, outln};

const SHOWCONF: &str = "Usage: badmin showconf mbd | [sbd] [host_name ... | all]";

/// The column of the values of showstatus.
const COLUMN: usize = 28;
/// The layout of showstatus: blanks before a label, the label, the value's name; no name: none;
/// `?`: a line only where there is a value; `@`: a time.
const LAYOUT: [(usize, &str, &str); 30] = [
    (4, "Available local hosts (current/peak):", ""),
    (8, "Clients:", "clients"),
    (8, "Servers:", "servers"),
    (8, "CPUs:", "cpus"),
    (8, "Cores:", "cores"),
    (8, "Slots:", "slots"),
    (0, "", ""),
    (4, "Number of servers:", "hosts"),
    (8, "Ok:", "ok"),
    (8, "Closed:", "closed"),
    (8, "Unreachable:", "unreach"),
    (8, "Unavailable:", "unavail"),
    // where a host has spoken for the jobs of another
    (8, "Refused reports:", "?refused"),
    (0, "", ""),
    (4, "Number of jobs:", "jobs"),
    (8, "Running:", "running"),
    (8, "Suspended:", "suspended"),
    (8, "Pending:", "pending"),
    (8, "Finished:", "finished"),
    (0, "", ""),
    (4, "Number of users:", "users"),
    (4, "Number of user groups:", "groups"),
    (4, "Number of active users:", "active"),
    (0, "", ""),
    (4, "Latest mbatchd start:", "@start"),
    (4, "Active mbatchd PID:", "pid"),
    (0, "", ""),
    (4, "Latest mbatchd reconfig:", "@reconfig"),
    (0, "", ""),
    (4, "mbatchd host:", "master"),
];

fn ask(ctx: &mut Ctx, what: &str) -> Result<Vec<AdminLine>, Exit> {
    let op = AdminOp::Show { what: what.to_owned() };
    match client::ask(ctx, ClientMsg::Admin(op)) {
        Ok(ClientMsg::AdminDone { lines }) => Ok(lines),
        Ok(_) => Err(Exit::fail(ClientError::Unexpected)),
        Err(e) => Err(Exit::fail(e)),
    }
}

/// `Wed Nov 22 21:17:01 2026`, or `-` for no time.
fn time(secs: i64) -> String {
    let mut text = String::new();
    match secs {
        0 => text.push('-'),
        _ => Clock::system().full(&mut text, secs),
    }
    text
}

pub fn showstatus(ctx: &mut Ctx) -> Result<i32, Exit> {
    let words = ctx.words();
    let json = words == ["-json"];
    if let Some(word) = words.first().filter(|_| !json) {
        let words = format!("Invalid argument <{}>\nUsage: badmin showstatus", clean(word));
        return Err(Exit::fail(words));
    }
    let values = ask(ctx, "status")?;
    let text = if json { status_json(&values) } else { status(&values) };
    let _ = ctx.out.write_all(text.as_bytes());
    Ok(0)
}

/// One record, in the order of the lines; the keys are the names of the values.
fn status_json(values: &[AdminLine]) -> String {
    let mut pairs: Vec<(String, String)> = Vec::new();
    for (_, _, name) in LAYOUT.iter().filter(|line| !line.2.is_empty()) {
        let bare = name.trim_start_matches(['@', '?']);
        let Some(value) = values.iter().find(|line| line.about == bare) else { continue };
        let value = match name.starts_with('@') {
            true => time(value.text.parse().unwrap_or(0)),
            false => value.text.clone(),
        };
        pairs.push((bare.to_uppercase(), value));
    }
    let mut text = Json::new("badmin showstatus", "CLUSTERS");
    let pairs: Vec<(&str, &str)> = pairs.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    text.pairs(&pairs);
    text.finish()
}

fn status(values: &[AdminLine]) -> String {
    let mut text = String::from("LSF runtime mbatchd information\n");
    for (indent, label, name) in LAYOUT {
        let bare = name.trim_start_matches(['@', '?']);
        let value = values.iter().find(|l| l.about == bare);
        if value.is_none() && name.starts_with('?') {
            continue;
        }
        let value = value.map_or("-", |l| l.text.as_str());
        let value = match name {
            "" => String::new(),
            _ if name.starts_with('@') => time(value.parse().unwrap_or(0)),
            _ => clean(value),
        };
        // the longest label fills its column
        let label = format!("{label} ");
        let line = format!("{:indent$}{label:<1$}{value}", "", COLUMN - indent.min(COLUMN));
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// `showconf mbd | [sbd] [host ... | all]`
pub fn showconf(ctx: &mut Ctx) -> Result<i32, Exit> {
    let words = ctx.words();
    match words.first().map(String::as_str) {
        Some("mbd") => {
            let lines = ask(ctx, "conf")?;
            let rows: Vec<(String, String)> =
                lines.into_iter().map(|l| (l.about, l.text)).collect();
            let host = rows.iter().find(|r| r.0 == "@host").map_or("", |r| r.1.as_str());
            show(ctx, "MBD", host, &rows);
            Ok(0)
        }
        Some("sbd") => hosts(ctx, "SBD", &words[1..]),
        None => Err(Exit::fail(SHOWCONF)),
        Some(word) if word == "all" || known_host(word) => hosts(ctx, "SBD", &words),
        Some(word) => Err(Exit::fail(format_args!(
            "{}: neither mbd nor sbd, nor a host of the cluster\n{SHOWCONF}",
            clean(word)
        ))),
    }
}

fn known_host(word: &str) -> bool {
    site::find().is_ok_and(|site| {
        let base = load_base_lenient(&RealFiles, &site.envdir, Some(&site.host)).0;
        base.is_some_and(|b| b.hosts.canonical(word).is_some())
    })
}

/// The settings that daemons of hosts have from lsf.conf, as the LIM there read it.
pub fn hosts(ctx: &mut Ctx, daemon: &str, names: &[String]) -> Result<i32, Exit> {
    let site = site::find().map_err(Exit::fail)?;
    let mut hosts = names.to_vec();
    if names == ["all"] {
        let base = load_base_lenient(&RealFiles, &site.envdir, Some(&site.host)).0;
        let all = base.map_or(Vec::new(), |b| b.cluster.hosts);
        hosts = all.into_iter().filter(|h| h.server).map(|h| h.name).collect();
    } else if names.is_empty() {
        hosts.push(site.host.clone());
    }
    let mut code = 0;
    for host in &hosts {
        let ask = Msg::Lim(LimMsg::Config);
        match client::lim_of(&site, host).and_then(|mut lim| lim.call(&ask, ctx.err)) {
            Ok(Msg::Lim(LimMsg::Settings { rows })) => show(ctx, daemon, host, &rows),
            Ok(_) => {
                errln!(ctx, "{host}: {}", ClientError::Unexpected);
                code = FAIL;
            }
            Err(e) => {
                errln!(ctx, "{host}: {e:#}");
                code = FAIL;
            }
        }
    }
    Ok(code)
}

/// A line that says whose they are, then `NAME = value` lines; none is without a value, on which
/// tools rely.
fn show(ctx: &mut Ctx, daemon: &str, host: &str, rows: &[(String, String)]) {
    let now = time(lsf::sys::now().secs());
    outln!(ctx, "{daemon} configuration at {now} on host <{}>", clean(host));
    for (name, value) in rows.iter().filter(|r| !r.1.is_empty() && !r.0.starts_with('@')) {
        outln!(ctx, "    {} = {}", clean(name), clean(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The documented layout; a dash stands for a value that is not told.
    #[test]
    fn the_status_has_a_line_for_everything() {
        let values = [
            ("clients", "0/1"),
            ("servers", "2/3"),
            ("cpus", "4/8"),
            ("cores", "16/32"),
            ("slots", "unlimited/unlimited"),
            ("hosts", "3"),
            ("ok", "1"),
            ("closed", "1"),
            ("unreach", "0"),
            ("unavail", "1"),
            ("jobs", "100007"),
            ("running", "100000"),
            ("suspended", "1"),
            ("pending", "2"),
            ("finished", "4"),
            ("users", "3"),
            ("groups", "1"),
            ("active", "2"),
            ("pid", "26283"),
            ("master", "a.host.with.a.wide.name"),
        ];
        let line = |(about, text): (&str, &str)| AdminLine {
            about: about.into(),
            code: 0,
            text: text.into(),
        };
        let want = include_str!("../../tests/cmd/expected/badmin-showstatus.txt");
        assert_eq!(status(&values.map(line)), want);
    }

    #[test]
    fn settings_are_lines_of_name_and_value() {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut ctx = Ctx::new("badmin", vec![], &mut out, &mut err);
        let row = |n: &str, v: &str| (n.to_owned(), v.to_owned());
        let rows = [row("A", "1"), row("EMPTY", ""), row("@host", "h"), row("B", "x y")];
        show(&mut ctx, "MBD", "hosta", &rows);
        let text = String::from_utf8(out).unwrap();
        let (head, rest) = text.split_once('\n').unwrap();
        assert!(head.starts_with("MBD configuration at ") && head.ends_with(" on host <hosta>"));
        assert_eq!(rest, "    A = 1\n    B = x y\n");
    }
}
