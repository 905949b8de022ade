//! brestart: submits a job that goes on from the checkpoint of another (brestart(1)).

use super::bsub::opts::BsubOpts;
use super::bsub::rejection::Rejection;
use super::bsub::{self, Stop, spec, spool};
use argh::{ArgsInfo, FromArgs};
use lsf::cli::checkpoint::{METHOD_FILE, SUBMISSION_FILE, check_directory, read_file};
use lsf::cli::ctx::{Ctx, os_words};
use lsf::cli::front;
use lsf::cli::site;
use lsf::errln;
use lsf::lang::jobname::JobName;
use lsf::model::job::{JobSpec, opt, opt2};
use lsf::model::specfield::SpecField;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// Submits a job that goes on from a checkpoint.
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// programs of the site that check and change the submission (esub.NAME)
    #[argh(option, short = 'a', arg_name = "name[(arg,...)] ...")]
    esub: Option<String>,
    /// mail when the job starts
    #[argh(switch, short = 'B')]
    mail_begin: bool,
    /// restart also where the method would refuse
    #[argh(switch, short = 'f')]
    force: bool,
    /// mail the report at the end, also with -o
    #[argh(switch, short = 'N')]
    mail_end: bool,
    /// the job is alone on its hosts
    #[argh(switch, short = 'x')]
    exclusive: bool,
    /// not before this time
    #[argh(option, short = 'b', arg_name = "[[[year:]month:]day:]hour:minute")]
    begin: Option<String>,
    /// CPU limit
    #[argh(option, short = 'c', arg_name = "[hour:]minute[/host]")]
    cpu_limit: Option<String>,
    /// core file limit
    #[argh(option, short = 'C', arg_name = "limit")]
    core_limit: Option<String>,
    /// data segment limit
    #[argh(option, short = 'D', arg_name = "limit")]
    data_limit: Option<String>,
    /// a command that runs before the job on its host
    #[argh(option, short = 'E', arg_name = "command")]
    pre_exec: Option<String>,
    /// file size limit
    #[argh(option, short = 'F', arg_name = "limit")]
    file_limit: Option<String>,
    /// user group (accepted with a notice)
    #[argh(option, short = 'G', arg_name = "group")]
    user_group: Option<String>,
    /// candidate hosts with their preference
    #[argh(option, short = 'm', arg_name = "host[!|+pref] ...")]
    hosts: Option<String>,
    /// memory limit
    #[argh(option, short = 'M', arg_name = "limit")]
    mem_limit: Option<String>,
    /// candidate queues (default: that of the job)
    #[argh(option, short = 'q', arg_name = "queue ...")]
    queue: Option<String>,
    /// resource requirement; may be repeated
    #[argh(option, short = 'R', arg_name = "res_req")]
    res_req: Vec<String>,
    /// stack limit
    #[argh(option, short = 'S', arg_name = "limit")]
    stack_limit: Option<String>,
    /// the job is to end by this time
    #[argh(option, short = 't', arg_name = "[[[year:]month:]day:]hour:minute")]
    term: Option<String>,
    /// the limits of this shell that no option sets
    #[argh(switch, long = "ul")]
    user_limits: bool,
    /// not before this condition on other jobs holds
    #[argh(option, short = 'w', arg_name = "expression")]
    depend: Option<String>,
    /// run limit
    #[argh(option, short = 'W', arg_name = "[hour:]minute[/host]")]
    run_limit: Option<String>,
    /// the checkpoint directory, and the job (default: the one checkpointed last)
    #[argh(positional, greedy, arg_name = "checkpoint_dir [job_ID | \"job_ID[index]\"]")]
    _which: Vec<String>,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    let restarted = restart(ctx);
    bsub::shown(ctx, restarted)
}

fn restart(ctx: &mut Ctx) -> Result<i32, Stop> {
    let parsed = front::parse_of::<Opts>(ctx)?;
    let (force, opts) = (parsed.options.force, bsub_options(parsed.options));
    let (top, job) = match &parsed.operands[..] {
        [top] => (Path::new(top), None),
        [top, job] => (Path::new(top), Some(job.as_os_str())),
        _ => {
            let why = "the checkpoint directory must be specified";
            return Err(front::usage_error::<Opts>(ctx.name, why).into());
        }
    };
    let site = site::find().map_err(|e| Rejection::new(e.to_string()))?;
    let facts = bsub::facts(&site.lsf, opts.begin.is_some() || opts.term.is_some())?;
    let dir = directory(top, job)?;
    let mut spec = kept(&dir, force)?;
    let asked = spec::build(&opts, &facts)?;
    given(&opts).into_iter().for_each(|field| field.copy(&mut spec, &asked));
    (spec.home, spec.umask) = (asked.home, asked.umask);
    if opts.user_limits {
        spool::user_limits(&mut spec);
    }
    for word in opts.ignored() {
        errln!(ctx, "brestart: option {word} is accepted but not acted on yet");
    }
    bsub::submit_made(ctx, &site, opts.esub.as_deref().unwrap_or(""), spec, &facts)
}

/// The options as bsub has them.
fn bsub_options(o: Opts) -> BsubOpts {
    BsubOpts {
        esub: o.esub,
        user_group: o.user_group,
        user_limits: o.user_limits,
        mail_begin: o.mail_begin,
        mail_end: o.mail_end,
        exclusive: o.exclusive,
        begin: o.begin,
        cpu_limit: o.cpu_limit,
        core_limit: o.core_limit,
        data_limit: o.data_limit,
        pre_exec: o.pre_exec,
        file_limit: o.file_limit,
        hosts: o.hosts,
        mem_limit: o.mem_limit,
        queue: o.queue,
        res_req: o.res_req,
        stack_limit: o.stack_limit,
        term: o.term,
        depend: o.depend,
        run_limit: o.run_limit,
        ..BsubOpts::default()
    }
}

/// The fields that the options take the place of.
fn given(o: &BsubOpts) -> Vec<SpecField> {
    use SpecField::*;
    let given = [
        (UserGroup, o.user_group.is_some()),
        (MailBegin, o.mail_begin),
        (MailEnd, o.mail_end),
        (Exclusive, o.exclusive),
        (Begin, o.begin.is_some()),
        (CpuLimit, o.cpu_limit.is_some()),
        (CoreLimit, o.core_limit.is_some()),
        (DataLimit, o.data_limit.is_some()),
        (PreExec, o.pre_exec.is_some()),
        (FileLimit, o.file_limit.is_some()),
        (Hosts, o.hosts.is_some()),
        (MemLimit, o.mem_limit.is_some()),
        (Queue, o.queue.is_some()),
        (ResReq, !o.res_req.is_empty()),
        (StackLimit, o.stack_limit.is_some()),
        (Term, o.term.is_some()),
        (Depend, o.depend.is_some()),
        (RunLimit, o.run_limit.is_some()),
    ];
    given.into_iter().filter_map(|(field, given)| given.then_some(field)).collect()
}

/// The directory of the job: of the one checkpointed last where none is named.
fn directory(top: &Path, job: Option<&OsStr>) -> Result<PathBuf, Rejection> {
    let about = |path: &Path, why: &std::io::Error| {
        Rejection::new(format!("{}: {}", path.display(), os_words(why)))
    };
    let found = match job {
        Some(job) => top.join(job),
        None => {
            let entries = fs::read_dir(top).map_err(|e| about(top, &e))?;
            let dated = entries.filter_map(|entry| {
                let path = entry.ok()?.path();
                let own = fs::symlink_metadata(&path).ok()?.is_dir();
                let time = fs::metadata(path.join(METHOD_FILE)).ok()?.modified().ok()?;
                own.then_some((time, path))
            });
            let last = dated.max().map(|(_, path)| path);
            last.ok_or_else(|| Rejection::new(format!("{}: no checkpoint", top.display())))?
        }
    };
    // a job that was restarted before is known by its last ID
    fs::canonicalize(&found).map_err(|e| about(&found, &e))
}

/// The submission of the job that was checkpointed, to be repeated.
fn kept(dir: &Path, force: bool) -> Result<JobSpec, Rejection> {
    check_directory(dir).map_err(Rejection::new)?;
    read_file(&dir.join(METHOD_FILE)).map_err(Rejection::new)?;
    let path = dir.join(SUBMISSION_FILE);
    let text = read_file(&path).map_err(Rejection::new)?;
    let bad = |what: &str| Rejection::new(format!("{}: {what}", path.display()));
    let mut spec: JobSpec = serde_json::from_str(&text).map_err(|_| bad("not a submission"))?;
    let (Some(top), Some(name)) = (dir.parent(), dir.file_name().and_then(OsStr::to_str)) else {
        return Err(bad("not in the directory of a job"));
    };
    if let Some(checkpoint) = &mut spec.further.checkpoint {
        checkpoint.dir = top.to_string_lossy().into();
    }
    spec.further.restart = name.into();
    spec.options &= !(opt::RESTART_FORCE | opt::DEPEND_COND | opt::HOST);
    spec.options |= opt::RESTART | if force { opt::RESTART_FORCE } else { 0 };
    spec.options2 &= !(opt2::HOLD | opt2::WAIT | opt2::SCRIPT | opt2::DEFAULT_QUEUE);
    (spec.begin_time, spec.term_time) = (0, 0);
    (spec.depend, spec.hosts) = (String::new(), Vec::new());
    spec.further.resolved_condition = Box::default();
    spec.further.spooled_input = Box::default();
    // an element goes on as a job of its own
    spec.name = JobName::parse(&spec.name).map(|name| name.name).unwrap_or_default();
    Ok(spec)
}
