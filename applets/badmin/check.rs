//! ckconfig, reconfig and mbdrestart: the files are checked first, here.

use super::ask::{ask, interactive};
use argh::{ArgsInfo, FromArgs};
use lsf::cli::client::{self, ClientError};
use lsf::cli::clock::Clock;
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::front::{self, Exit};
use lsf::cli::{site, version};
use lsf::conf::{self, ClusterConf, Diag, Severity};
use lsf::model::reason::err;
use lsf::proto::Msg;
use lsf::proto::client::{AdminLine, AdminOp, ClientMsg};
use lsf::sys::files::RealFiles;
use lsf::sys::users::{UserDatabase, getent, is_name};
use lsf::{errln, outln};
use std::collections::BTreeMap;
use std::time::Duration;

/// Options of reconfig and mbdrestart.
#[derive(FromArgs, ArgsInfo)]
struct ActOpts {
    /// print every diagnostic
    #[argh(switch, short = 'v')]
    verbose: bool,
    /// ask no questions; continue unless there are errors
    #[argh(switch, short = 'f')]
    force: bool,
    /// a comment for the log
    #[argh(option, short = 'C', arg_name = "comment")]
    comment: Option<String>,
    /// accepted; the master restarts in the same way with and without it
    #[argh(switch, short = 's', hidden_help)]
    _serial: bool,
    /// accepted
    #[argh(switch, short = 'p', hidden_help)]
    _parallel: bool,
}

/// Options of ckconfig.
#[derive(FromArgs, ArgsInfo)]
struct CheckOpts {
    /// print every diagnostic
    #[argh(switch, short = 'v')]
    verbose: bool,
    /// accepted
    #[argh(switch, short = 's', hidden_help)]
    _short: bool,
}

/// The worst that the files hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum CheckVerdict {
    Clean,
    Warnings,
    Errors,
}

impl CheckVerdict {
    fn of(diags: &[Diag]) -> CheckVerdict {
        if conf::has_errors(diags) {
            CheckVerdict::Errors
        } else if conf::has_warnings(diags) {
            CheckVerdict::Warnings
        } else {
            CheckVerdict::Clean
        }
    }

    fn words(self) -> &'static str {
        match self {
            CheckVerdict::Clean => "No errors found.",
            CheckVerdict::Warnings => "There are warning errors.",
            CheckVerdict::Errors => "There are fatal errors.",
        }
    }
}

/// One line of ckconfig: where, how grave, what.
fn line(d: &Diag) -> String {
    match d.severity {
        Severity::Error => d.to_string(),
        s => format!("{d} ({})", s.word()),
    }
}

/// Prints what was found. With `verbose` everything goes to stderr, notices included;
/// without, and without anybody to ask, warnings and errors do.
fn report(ctx: &mut Ctx, diags: &[Diag], verbose: bool, quiet: bool) -> CheckVerdict {
    let found = CheckVerdict::of(diags);
    errln!(ctx, "\nChecking configuration files ...");
    if verbose {
        errln!(ctx, "\n{}", version::line());
        errln!(ctx, "Reading configuration from {}", lsf_conf());
    }
    let shown = |d: &&Diag| verbose || (!quiet && d.severity > Severity::Notice);
    let mut any = false;
    for d in diags.iter().filter(shown) {
        errln!(ctx, "{}", line(d));
        any = true;
    }
    if verbose {
        errln!(ctx, "{} {} Checking Done", date(), std::process::id());
        if let Some(summary) = conf::summary_not_acted_on(diags, "") {
            errln!(ctx, "{summary}");
        }
        errln!(ctx, "---------------------------------------------------------");
        errln!(ctx, "{}\n", found.words());
        return found;
    }
    if !any {
        errln!(ctx);
    }
    if let Some(summary) = conf::summary_not_acted_on(diags, "badmin ckconfig -v") {
        errln!(ctx, "{summary}");
    }
    outln!(ctx, "{}\n", found.words());
    found
}

/// The file that says where the others are.
fn lsf_conf() -> String {
    let dir = site::find().map(|s| s.envdir).unwrap_or_default();
    format!("{dir}/lsf.conf")
}

/// `Nov 20 09:12:33 2026`.
fn date() -> String {
    let mut text = String::new();
    Clock::system().with_year(true).long(&mut text, lsf::sys::now().secs());
    text.split_once(' ').map(|(_, rest)| rest.to_string()).unwrap_or(text)
}

fn check() -> Result<Vec<Diag>, Exit> {
    let site = site::find().map_err(Exit::fail)?;
    let mut diags = conf::check_batch(&RealFiles, &site.envdir);
    if let (Some(conf), _) = conf::load_lenient(&RealFiles, &site.envdir, None) {
        diags.extend(unknown_users(&conf, user_known));
    }
    Ok(diags)
}

/// Most names of USERS that the system is asked about, and how long each may take.
const MAX_LOOKUPS: usize = 100;
const LOOKUP_WAIT: Duration = Duration::from_secs(2);

/// Does the system know a user or group of this name? None: it did not say in time.
fn user_known(name: &str) -> Option<bool> {
    if UserDatabase::default().by_name(name).is_some() {
        return Some(true);
    }
    if !is_name(name) {
        return Some(false);
    }
    for database in ["passwd", "group"] {
        if getent(database, name, LOOKUP_WAIT).ok()?.is_some() {
            return Some(true);
        }
    }
    Some(false)
}

/// A warning for each user of USERS in lsb.queues whom neither lsb.users nor the system knows. The
/// look-ups end at the first name for which no answer comes in time.
fn unknown_users(conf: &ClusterConf, known: impl Fn(&str) -> Option<bool>) -> Vec<Diag> {
    let group = |name: &str| conf.batch.users.groups.iter().any(|g| g.name == name);
    let mut asked: BTreeMap<&str, bool> = BTreeMap::new();
    let mut found = Vec::new();
    for term in conf.batch.queues.iter().flat_map(|q| &q.users) {
        let name = term.name.as_str();
        if ["all", "none", "default"].contains(&name) || group(name) {
            continue;
        }
        if !asked.contains_key(name) {
            match known(name) {
                Some(answer) if asked.len() < MAX_LOOKUPS => asked.insert(name, answer),
                _ => break,
            };
        }
        if asked.get(name) == Some(&false) {
            found.push(Diag {
                severity: Severity::Warning,
                file: term.pos.file.to_string(),
                line: term.pos.line,
                col: term.pos.col,
                text: format!(
                    "<{}> of USERS is neither a user nor a user group",
                    name.escape_debug()
                ),
                near: None,
            });
        }
    }
    found
}

pub fn ckconfig(ctx: &mut Ctx) -> Result<i32, Exit> {
    let opts = front::parse::<CheckOpts>("badmin ckconfig", &ctx.args)?.options;
    let diags = check()?;
    match looked_at(ctx, &diags, opts.verbose) {
        CheckVerdict::Errors => Ok(FAIL),
        _ => Ok(0),
    }
}

/// Reports, and on a terminal offers the details.
fn looked_at(ctx: &mut Ctx, diags: &[Diag], verbose: bool) -> CheckVerdict {
    let ask_first = !verbose && interactive();
    let found = report(ctx, diags, verbose, ask_first);
    if ask_first && found > CheckVerdict::Clean && ask(ctx, "Do you want to see detailed messages?")
    {
        for d in diags {
            errln!(ctx, "{}", line(d));
        }
    }
    found
}

pub fn reconfig(ctx: &mut Ctx) -> Result<i32, Exit> {
    act(ctx, "reconfig", "Reconfiguration", |comment| AdminOp::Reconfig { comment })
}

pub fn mbdrestart(ctx: &mut Ctx) -> Result<i32, Exit> {
    act(ctx, "mbdrestart", "MBD restart", |comment| AdminOp::Shutdown { comment })
}

/// Checks, asks where somebody can answer, then tells the master.
fn act(ctx: &mut Ctx, verb: &str, what: &str, op: fn(String) -> AdminOp) -> Result<i32, Exit> {
    let opts = front::parse::<ActOpts>(&format!("badmin {verb}"), &ctx.args)?.options;
    let diags = check()?;
    let found = match opts.force {
        true => report(ctx, &diags, opts.verbose, false),
        false => looked_at(ctx, &diags, opts.verbose),
    };
    let question = match verb {
        "reconfig" => "Do you want to reconfigure?",
        _ => "Do you want to restart MBD?",
    };
    let asks = found == CheckVerdict::Warnings && !opts.force && interactive();
    if found == CheckVerdict::Errors || (asks && !ask(ctx, question)) {
        errln!(ctx, "{what} aborted.");
        return Ok(FAIL);
    }
    match tell(ctx, op(opts.comment.unwrap_or_default())) {
        Ok(lines) => Ok(answered(ctx, what, &lines)),
        Err(e) => {
            let failed = if e.code() == Some(err::PERMISSION) { "Failed: " } else { "" };
            errln!(ctx, "{failed}{e}");
            if matches!(e, ClientError::Lost(_) | ClientError::Timeout(_)) {
                errln!(ctx, "The answer was lost: whether {verb} takes effect is not known.");
            }
            Ok(FAIL)
        }
    }
}

/// Tells the master once: where it goes away over it, asking again would end the next one too.
fn tell(ctx: &mut Ctx, op: AdminOp) -> Result<Vec<AdminLine>, ClientError> {
    let site = site::find().map_err(|e| ClientError::Conf(e.to_string()))?;
    let mut master = client::mbatchd(&site, ctx.err)?;
    match master.call(&Msg::Client(ClientMsg::Admin(op)), ctx.err) {
        Ok(Msg::Client(ClientMsg::AdminDone { lines })) => Ok(lines),
        Ok(_) => Err(ClientError::Unexpected),
        Err(e) => Err(e),
    }
}

/// The master read the files itself: what it found wrong ends it, the rest was seen already.
fn answered(ctx: &mut Ctx, what: &str, lines: &[AdminLine]) -> i32 {
    if lines.iter().all(|l| l.code == 0) {
        outln!(ctx, "{what} initiated");
        return 0;
    }
    let aborted = format!("{what} aborted.");
    for l in lines.iter().filter(|l| l.code != 0 && l.text != aborted) {
        errln!(ctx, "{}", l.text);
    }
    errln!(ctx, "{aborted}");
    FAIL
}

#[cfg(test)]
mod tests {
    use super::*;
    use lsf::conf::types::{QueueConf, UserGroup, UserTerm};

    fn diag(severity: Severity) -> Diag {
        Diag {
            severity,
            file: "/c/lsb.queues".into(),
            line: 3,
            col: 5,
            text: "<PRIORTY> is no parameter".into(),
            near: Some("PRIORITY".into()),
        }
    }

    fn said(f: impl FnOnce(&mut Ctx)) -> (String, String) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        f(&mut Ctx::new("badmin", vec![], &mut out, &mut err));
        (String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
    }

    /// The layout that LSF prints.
    #[test]
    fn check_of_a_clean_configuration_finds_no_errors() {
        let (out, err) = said(|c| assert_eq!(report(c, &[], false, false), CheckVerdict::Clean));
        assert_eq!(out, "No errors found.\n\n");
        assert_eq!(err, "\nChecking configuration files ...\n\n");
        let (out, err) = said(|c| assert_eq!(report(c, &[], true, false), CheckVerdict::Clean));
        assert_eq!(out, "");
        assert!(err.ends_with("---\nNo errors found.\n\n"), "{err}");
    }

    #[test]
    fn errors_are_printed_where_nobody_can_be_asked() {
        let diags = [diag(Severity::Notice), diag(Severity::Error)];
        let (out, err) =
            said(|c| assert_eq!(report(c, &diags, false, false), CheckVerdict::Errors));
        assert_eq!(out, "There are fatal errors.\n\n");
        let line = "/c/lsb.queues:3:5: <PRIORTY> is no parameter; did you mean <PRIORITY>?\n";
        assert_eq!(err, format!("\nChecking configuration files ...\n{line}"));
        let (_, err) = said(|c| assert_eq!(report(c, &diags, true, false), CheckVerdict::Errors));
        assert!(err.contains("(notice)\n"), "{err}");
    }

    #[test]
    fn users_whom_nobody_knows_are_warned_about_with_their_place() {
        let mut conf = ClusterConf::default();
        let term = |name: &str, col| UserTerm {
            name: name.into(),
            pos: conf::Pos { file: "/c/lsb.queues".into(), line: 7, col },
            ..UserTerm::default()
        };
        conf.batch.users.groups.push(UserGroup { name: "chip".into(), ..UserGroup::default() });
        let users = ["all", "chip", "ann", "gone", "slow", "gone2"];
        let users = users.iter().zip(1..).map(|(name, col)| term(name, col)).collect();
        conf.batch.queues.push(QueueConf { users, ..QueueConf::default() });
        let found = unknown_users(&conf, |name| match name {
            "ann" => Some(true),
            "slow" => None,
            _ => Some(false),
        });
        let told: Vec<String> = found.iter().map(line).collect();
        assert_eq!(
            told,
            ["/c/lsb.queues:7:4: <gone> of USERS is neither a user nor a user group (warning)"]
        );
        assert_eq!(user_known("root"), Some(true));
        assert_eq!(user_known("no such user"), Some(false));
    }

    #[test]
    fn the_master_may_still_refuse() {
        let line = |code, text: &str| AdminLine { about: String::new(), code, text: text.into() };
        let lines =
            [line(0, "a notice"), line(1, "x:1: bad"), line(35, "Reconfiguration aborted.")];
        let (out, err) = said(|c| assert_eq!(answered(c, "Reconfiguration", &lines), FAIL));
        assert_eq!((out.as_str(), err.as_str()), ("", "x:1: bad\nReconfiguration aborted.\n"));
        let (out, _) = said(|c| assert_eq!(answered(c, "MBD restart", &lines[..1]), 0));
        assert_eq!(out, "MBD restart initiated\n");
    }
}
