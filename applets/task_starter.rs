//! TaskStarter: starts one task of a parallel job for pam. See TaskStarter(1).

use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::Ctx;
use lsf::cli::front;
use lsf::cli::job_launcher::job_launcher;
use lsf::cli::pam::signal_processes;
use lsf::cli::pam::task::{self, StarterEnd, StarterRun};
use lsf::cli::remote;
use lsf::cli::site;
use lsf::errln;
use lsf::model::JobRef;
use std::ffi::OsString;

/// Exit code where nothing was started.
const NO_PAM: i32 = 125;

/// Start a program as a task of a parallel job that pam watches. The PJL calls it.
#[derive(FromArgs, ArgsInfo)]
struct Options {
    /// the host and port of pam
    #[argh(option, short = 'p', arg_name = "host:port")]
    pam: Option<String>,
    /// the directory of lsf.conf
    #[argh(option, short = 'c', arg_name = "LSF_ENVDIR")]
    envdir: Option<String>,
    /// taken and not used
    #[argh(option, short = 's', arg_name = "LSF_SERVERDIR")]
    _serverdir: Option<String>,
    /// taken and not used
    #[argh(option, short = 'a', arg_name = "host_type")]
    _host_type: Option<String>,
    /// start nothing: send this signal to the processes that follow, each pid:start; pam's own
    #[argh(option, short = 'k', arg_name = "signal")]
    signal: Option<i32>,
    /// tell the steps on stderr
    #[argh(switch, short = 'd')]
    debug: bool,
    /// the program and its arguments
    #[argh(positional, greedy, arg_name = "program")]
    _program: Vec<String>,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    let parsed = match front::parse::<Options>(ctx.name, &words(ctx.args.clone())) {
        Ok(parsed) => parsed,
        Err(exit) => return exit.show(ctx),
    };
    let (options, program) = (parsed.options, parsed.operands);
    let wrong = |why: &str| front::usage_error::<Options>(ctx.name, why);
    if let Some(signal) = options.signal {
        return match signal_processes(signal, &program) {
            Ok(()) => 0,
            Err(why) => wrong(&why).show(ctx),
        };
    }
    let Some(at) = options.pam else {
        return wrong("-p is wanted, or LSF_TS_OPTIONS").show(ctx);
    };
    let port = |port: &str| port.parse().ok().filter(|port| *port != 0);
    let Some((host, port)) = at.rsplit_once(':').and_then(|(h, p)| Some((h.to_owned(), port(p)?)))
    else {
        return wrong(&format!("-p {}: not host:port", at.escape_debug())).show(ctx);
    };
    if program.is_empty() {
        return wrong("no program").show(ctx);
    }
    let mut around = site::Around::process();
    around.envdir = options.envdir.map(OsString::from).or(around.envdir);
    around.local_host = own_host().or(around.local_host);
    let site = match site::find_from(&around) {
        Ok(site) => site,
        Err(e) => {
            errln!(ctx, "{}: {e}", ctx.name);
            return NO_PAM;
        }
    };
    ctx.flush();
    let debug = options.debug;
    let of = StarterRun { site: &site, host, port, job: own_job(), program, debug };
    match task::run(of, ctx.err) {
        StarterEnd::Task(status) => remote::end(status),
        StarterEnd::Code(code) => code,
    }
}

/// The host of the task's first process, where several hosts share a machine: launchers hand the
/// environment of the first host of a job on to all of their processes.
fn own_host() -> Option<String> {
    let name = job_launcher()?.first.variable("LSF_LOCAL_HOST")?;
    String::from_utf8(name).ok().filter(|name| !name.is_empty())
}

/// The words, with those of LSF_TS_OPTIONS before them where they do not say where pam is.
fn words(args: Vec<OsString>) -> Vec<OsString> {
    let first = args.first().and_then(|word| word.to_str());
    let told = args.iter().take_while(|word| word.as_encoded_bytes().starts_with(b"-"));
    if first.is_some_and(|word| word == "-h" || word == "-V") || told.clone().any(|w| w == "-p") {
        return args;
    }
    let given = std::env::var("LSF_TS_OPTIONS").unwrap_or_default();
    given.split_whitespace().map(OsString::from).chain(args).collect()
}

fn own_job() -> Option<JobRef> {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse().ok());
    let job = number("LSB_JOBID").filter(|job| *job > 0)?;
    Some(JobRef { job, idx: number("LSB_JOBINDEX").unwrap_or(0) })
}
