//! nlbconfig: administration of the load balancer's servers. See nlbconfig(8).

mod requests;

use argh::{ArgsInfo, FromArgs};
use lsf::cli::client::ClientError;
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::front;
use lsf::cli::nlb::{NlbServers, cause, file_text};
use lsf::proto::nlb::{NlbFile, NlbMsg, NlbObjects, NlbOutcome};
use lsf::{errln, outln};
use std::ffi::OsString;

/// Administer the servers of the load balancer.
#[derive(Default, FromArgs, ArgsInfo)]
struct Options {
    /// the server; without it, those that read ask the first of NLB_SERVER that answers, and
    /// those that change go to all
    #[argh(option, short = 's', arg_name = "server[:port]")]
    server: Option<String>,
    /// objects and the map of this type
    #[argh(option, short = 't', arg_name = "type")]
    object_type: Option<String>,
    /// the file; - is standard input or output
    #[argh(option, short = 'f', arg_name = "file")]
    file: Option<String>,
    /// an object; further names may follow
    #[argh(option, short = 'n', arg_name = "name")]
    names: Vec<String>,
    /// one line a server that did it
    #[argh(switch, short = 'v')]
    verbose: bool,
    /// read the policies file again
    #[argh(switch)]
    pol: bool,
    /// read the config file again: who may do what
    #[argh(switch)]
    conf: bool,
    /// show the name maps
    #[argh(switch)]
    mdump: bool,
    /// put the name maps of a file in the place of those of the same types
    #[argh(switch)]
    mput: bool,
    /// show the names of objects
    #[argh(switch)]
    olist: bool,
    /// show objects as data
    #[argh(switch)]
    odump: bool,
    /// set attributes of objects; others stay
    #[argh(switch)]
    oupdat: bool,
    /// set attributes of objects in the place of all that were stored
    #[argh(switch)]
    oput: bool,
    /// delete objects
    #[argh(switch)]
    odel: bool,
    /// say whether a policies file, name map or object file is good; change nothing
    #[argh(option, arg_name = "file")]
    check: Option<String>,
    /// show how the server fares
    #[argh(switch)]
    status: bool,
    /// refused: the launcher runs the server
    #[argh(switch)]
    kill: bool,
    /// a file, or further names of objects
    #[argh(positional, greedy, arg_name = "word")]
    _words: Vec<String>,
}

/// The verbs.
#[derive(Clone, Copy, PartialEq)]
enum Verb {
    Pol,
    Conf,
    MapDump,
    MapPut,
    List,
    Dump,
    Update,
    Put,
    Delete,
    Check,
    Status,
    Kill,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    let parsed = match front::parse_of::<Options>(ctx) {
        Ok(parsed) => parsed,
        Err(exit) => return exit.show(ctx),
    };
    done(ctx, parsed.options, &parsed.operands).unwrap_or_else(|words| {
        errln!(ctx, "{}: {words}", ctx.name);
        FAIL
    })
}

/// The verb of the command line, which has one.
fn verb(o: &Options) -> Result<Verb, String> {
    let given = [
        (o.pol, Verb::Pol),
        (o.conf, Verb::Conf),
        (o.mdump, Verb::MapDump),
        (o.mput, Verb::MapPut),
        (o.olist, Verb::List),
        (o.odump, Verb::Dump),
        (o.oupdat, Verb::Update),
        (o.oput, Verb::Put),
        (o.odel, Verb::Delete),
        (o.check.is_some(), Verb::Check),
        (o.status, Verb::Status),
        (o.kill, Verb::Kill),
    ];
    let mut found = given.iter().filter(|(is, _)| *is).map(|(_, verb)| *verb);
    match (found.next(), found.next()) {
        (Some(verb), None) => Ok(verb),
        (None, _) => {
            Err("a verb is wanted: -pol, -conf, -mdump, -mput, -olist, -odump, -oupdat, -oput, \
                          -odel, -check or -status"
                .to_owned())
        }
        (Some(_), Some(_)) => Err("one verb at a time".to_owned()),
    }
}

fn done(ctx: &mut Ctx, mut options: Options, operands: &[OsString]) -> Result<i32, String> {
    let verb = verb(&options)?;
    let mut words: Vec<String> =
        operands.iter().map(|w| w.to_string_lossy().into_owned()).collect();
    match verb {
        Verb::MapPut | Verb::Update | Verb::Put if options.file.is_none() && words.len() == 1 => {
            options.file = words.pop();
        }
        Verb::Dump | Verb::Delete if !options.names.is_empty() => {
            options.names.append(&mut words);
        }
        _ => {}
    }
    if let Some(word) = words.first() {
        return Err(format!("unexpected word -- {word}"));
    }
    let servers = NlbServers::find(options.server.as_deref())?;
    let msg = message(verb, &options)?;
    match verb {
        Verb::List | Verb::Dump if requests::are_meant(options.object_type.as_deref()) => {
            let map = servers.first()?.maps("NJS")?;
            let text = match verb {
                Verb::List => requests::names(ctx)?,
                _ => requests::data(ctx, &map, &options.names)?,
            };
            shown(ctx, &text, options.file.as_deref())
        }
        Verb::MapDump | Verb::List | Verb::Dump | Verb::Status => {
            let mut link = servers.first()?;
            let text = link.text(msg).map_err(|e| e.words())?;
            shown(ctx, &text, options.file.as_deref())
        }
        Verb::Check => {
            let mut link = servers.first()?;
            let outcome = link.outcome(msg).map_err(|e| e.words())?;
            told(ctx, &outcome);
            if outcome.taken {
                outln!(ctx, "{}", outcome.words);
            }
            Ok(if outcome.taken { 0 } else { FAIL })
        }
        Verb::Kill => {
            let host = &servers.list()[0].host;
            Err(format!(
                "the server is run by the launcher: lsf_daemons stop nlbserver on <{host}>"
            ))
        }
        _ => Ok(everywhere(ctx, &servers, &msg, options.verbose)),
    }
}

/// The message of a verb, with the file it needs.
fn message(verb: Verb, o: &Options) -> Result<NlbMsg, String> {
    let object_type = o.object_type.clone().unwrap_or_default();
    let which = NlbObjects { object_type: object_type.clone(), names: o.names.clone() };
    let file = |path: Option<&String>| {
        let path = path.ok_or("a file is wanted: -f file")?;
        let text = file_text(path)?;
        Ok::<_, String>(NlbFile {
            name: path.clone(),
            text,
            object_type: object_type.clone(),
            replace: verb == Verb::Put,
        })
    };
    Ok(match verb {
        Verb::Pol => NlbMsg::Reload,
        Verb::Conf => NlbMsg::Conf,
        Verb::MapDump => NlbMsg::Map { object_type },
        Verb::MapPut => NlbMsg::MapPut(file(o.file.as_ref())?),
        Verb::List => NlbMsg::List(which),
        Verb::Dump => NlbMsg::Dump(which),
        Verb::Update | Verb::Put => NlbMsg::Put(file(o.file.as_ref())?),
        Verb::Delete if o.object_type.is_none() || o.names.is_empty() => {
            return Err("-odel wants -t type and -n name".to_owned());
        }
        Verb::Delete => NlbMsg::Delete(which),
        Verb::Check => NlbMsg::Check(file(o.check.as_ref())?),
        Verb::Status | Verb::Kill => NlbMsg::Status,
    })
}

/// Writes a text to its file, or to standard output.
fn shown(ctx: &mut Ctx, text: &str, file: Option<&str>) -> Result<i32, String> {
    match file.filter(|f| *f != "-") {
        None => _ = ctx.out.write_all(text.as_bytes()),
        Some(path) => {
            std::fs::write(path, text).map_err(|e| format!("{path}: {}", lsf::sys::words(&e)))?
        }
    }
    Ok(0)
}

/// Prints faults and warnings as they are.
fn told(ctx: &mut Ctx, outcome: &NlbOutcome) {
    for line in &outcome.lines {
        errln!(ctx, "{line}");
    }
}

/// Has every server do it, so that redundant ones do not drift apart; each failure is named.
fn everywhere(ctx: &mut Ctx, servers: &NlbServers, msg: &NlbMsg, verbose: bool) -> i32 {
    let mut code = 0;
    for to in servers.list() {
        let done = servers.connect(to).and_then(|mut link| {
            let outcome = link.outcome(msg.clone())?;
            Ok((link.server().to_owned(), outcome))
        });
        match done {
            Ok((host, outcome)) => {
                told(ctx, &outcome);
                if !outcome.taken {
                    errln!(ctx, "{}: {host}: {}", ctx.name, outcome.words);
                    code = FAIL;
                } else if verbose {
                    outln!(ctx, "{host}: done");
                }
            }
            Err(e) => {
                let (host, port) = (&to.host, to.port);
                match &e {
                    ClientError::Refused(_) => errln!(ctx, "{}: {host}: {}", ctx.name, e.words()),
                    _ => {
                        let why = cause(&e);
                        let name = ctx.name;
                        errln!(ctx, "{name}: no NLB server answers at {host}:{port} ({why})");
                    }
                }
                code = FAIL;
            }
        }
    }
    code
}
