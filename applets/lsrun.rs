//! lsrun: one command on the best host, as if it ran here. See lsrun(1).

use crate::blaunch;
use argh::{ArgsInfo, FromArgs};
use lsf::cli::client;
use lsf::cli::ctx::Ctx;
use lsf::cli::front;
use lsf::cli::lim::Cluster;
use lsf::cli::place::{self, TOO_FEW};
use lsf::cli::remote::{self, How, LSF_ERROR};
use lsf::cli::site::{self, LocalSite};
use lsf::cli::tasks::{self, Tasks};
use lsf::errln;
use lsf::proto::res::RunTask;
use std::ffi::{OsStr, OsString};

/// Run a command on the best host, or on one of those named. Exit as the command does.
#[derive(FromArgs, ArgsInfo)]
struct Options {
    /// print the name of the selected host
    #[argh(switch, short = 'v')]
    verbose: bool,
    /// on a pseudo-terminal
    #[argh(switch, short = 'P')]
    pty: bool,
    /// on a pseudo-terminal in shell mode: for shells and programs that interpret ^C and ^Z
    #[argh(switch, short = 'S')]
    shell: bool,
    /// use RES even when the selected host is the local one
    #[argh(switch, short = 'L')]
    res: bool,
    /// run locally when the command cannot run on another host
    #[argh(switch, short = 'l')]
    local: bool,
    /// hosts to choose from
    #[argh(option, short = 'm', arg_name = "host_name ...")]
    hosts: Option<String>,
    /// the resource requirement of the host
    #[argh(option, short = 'R', arg_name = "res_req")]
    res_req: Option<String>,
    /// the command
    #[argh(positional, greedy, arg_name = "command")]
    _command: Vec<String>,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    let parsed = match front::parse_of::<Options>(ctx) {
        Ok(parsed) => parsed,
        Err(exit) => return exit.show(ctx),
    };
    let (o, argv) = (parsed.options, parsed.operands);
    if argv.is_empty() {
        return front::usage_error::<Options>(ctx.name, "no command").show(ctx);
    }
    let pty = o.pty || o.shell;
    let how = How { pty, shell: o.shell, name: ctx.name, ..How::default() };
    let site = match site::find() {
        Ok(site) => site,
        Err(e) => {
            errln!(ctx, "{}: {e}", ctx.name);
            return LSF_ERROR;
        }
    };
    let found = chosen(&site, o.hosts.as_deref(), o.res_req.as_deref(), Some(&argv[0]));
    let call = Call { site, argv: &argv, how: &how, verbose: o.verbose };
    match found {
        Err(why) if o.local => call.instead(ctx, &why),
        Ok(f) if o.local && f.hosts.is_empty() => call.instead(ctx, TOO_FEW),
        // without a terminal of its own it needs no RES here
        Ok(f) if f.at_home() && !o.res && !pty && !remote::has_programs(&call.site) => {
            call.say(ctx, &f.hosts[0]);
            call.here(ctx)
        }
        found => {
            let here = o.local || found.as_ref().is_ok_and(|f| f.hosts.contains(&f.local));
            call.at(ctx, found, here)
        }
    }
}

/// One task to be run.
pub struct Call<'a> {
    pub site: LocalSite,
    pub argv: &'a [OsString],
    pub how: &'a How,
    /// Say the host.
    pub verbose: bool,
}

impl Call<'_> {
    /// Runs the task at the first of the hosts found, or says why there is none. `here`: on this
    /// host where the other does not answer.
    pub fn at(self, ctx: &mut Ctx, found: Result<TaskHosts, String>, here: bool) -> i32 {
        let host = match found.map(|f| f.hosts.into_iter().next()) {
            Ok(Some(host)) => host,
            Ok(None) => {
                errln!(ctx, "{}: {TOO_FEW}", ctx.name);
                return 1;
            }
            Err(why) => {
                errln!(ctx, "{}: {why}", ctx.name);
                return LSF_ERROR;
            }
        };
        let task = match remote::task(&self.site, self.argv, self.how) {
            Ok(task) => task,
            Err(why) => {
                errln!(ctx, "{}: {why}", ctx.name);
                return LSF_ERROR;
            }
        };
        // tasks of a job have no terminal
        let may = task.pty.is_none() && ["lsrun", "lsgrun"].contains(&self.how.name);
        let job = may.then(|| blaunch::own_job_at(&self.site, &host)).flatten();
        let task = RunTask { job, ..task };
        let done = match client::res_of(&self.site, &host) {
            Err(e) if here => return self.instead(ctx, &format!("{host}: {e:#}")),
            Err(e) => Err(e),
            Ok(client) => {
                self.say(ctx, &host);
                remote::run_at(&self.site, client, task)
            }
        };
        match done {
            Ok(ended) => remote::end(ended),
            Err(e) => {
                errln!(ctx, "{}: {host}: {e:#}", ctx.name);
                LSF_ERROR
            }
        }
    }

    fn say(&self, ctx: &mut Ctx, host: &str) {
        if self.verbose {
            let word = self.argv[0].to_string_lossy();
            // at once, so that lines of several hosts do not mix
            let line = format!("<<Execute {word} on remote host {host}>>\n");
            let _ = ctx.err.write_all(line.as_bytes());
        }
        ctx.flush();
    }

    fn instead(&self, ctx: &mut Ctx, why: &str) -> i32 {
        errln!(ctx, "{}: {why}; executed on this host", ctx.name);
        self.here(ctx)
    }

    /// Becomes the task on this host.
    fn here(&self, ctx: &mut Ctx) -> i32 {
        ctx.flush();
        let (code, why) = remote::here(&self.site, self.argv);
        errln!(ctx, "{}: {why}", ctx.name);
        code
    }
}

/// Hosts for a task, best first, and this one.
pub struct TaskHosts {
    hosts: Vec<String>,
    local: String,
}

impl TaskHosts {
    /// The best.
    pub fn best(&self) -> Option<&str> {
        self.hosts.first().map(String::as_str)
    }

    fn at_home(&self) -> bool {
        self.hosts.first() == Some(&self.local)
    }
}

/// The best of these hosts; none: none is eligible. A host that is named alone is not asked
/// about, whatever is required. `command`: its requirement in the list of remote tasks counts
/// where none is given.
pub fn chosen(
    site: &LocalSite,
    hosts: Option<&str>,
    res_req: Option<&str>,
    command: Option<&OsStr>,
) -> Result<TaskHosts, String> {
    let names = hosts.unwrap_or_default().split_whitespace().map(str::to_owned);
    let names: Vec<String> = names.collect();
    if names.len() == 1 {
        return Ok(TaskHosts { hosts: names, local: site.host.clone() });
    }
    let mut cluster = Cluster::of(site.clone())?;
    let listed = match (res_req, command) {
        (None, Some(command)) => {
            let lists = Tasks::load(&site.lsf, || cluster.name().to_owned());
            tasks::requirement(&lists, command)
        }
        _ => None,
    };
    let hosts = place::eligible(&mut cluster, &names, res_req.or(listed.as_deref()))?;
    Ok(TaskHosts { hosts, local: cluster.local_host().to_owned() })
}
