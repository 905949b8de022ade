//! echkpnt: makes a checkpoint of a job by the method of the site or the job (echkpnt(8)). sbatchd
//! runs it as the user of the job.

use argh::{ArgsInfo, FromArgs};
use lsf::cli::checkpoint::{self, Method, SUBMISSION_FILE};
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::{front, site};
use lsf::errln;
use lsf::exec::checkpoint::SUBMISSION;
use std::path::{Path, PathBuf};

/// Makes a checkpoint of the processes of a job.
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// copy all files that the job has open
    #[argh(switch, short = 'c')]
    copy: bool,
    /// also where the method would refuse
    #[argh(switch, short = 'f')]
    force: bool,
    /// end the job after a checkpoint that succeeded
    #[argh(switch, short = 'k')]
    kill: bool,
    /// stop the job after a checkpoint that succeeded
    #[argh(switch, short = 's')]
    stop: bool,
    /// all processes of the job are in the group
    #[argh(switch, short = 'x')]
    exclusive: bool,
    /// the directory of the job's checkpoints (default: LSB_CHKPNT_DIR)
    #[argh(option, short = 'd', arg_name = "checkpoint_dir")]
    dir: Option<String>,
    /// the process group of the job
    #[argh(positional, arg_name = "process_group_ID")]
    _group: Vec<String>,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    let parsed = match front::parse_of::<Opts>(ctx) {
        Ok(parsed) => parsed,
        Err(exit) => return exit.show(ctx),
    };
    let group = match &parsed.operands[..] {
        [one] => one.to_string_lossy().parse::<u32>().ok().filter(|n| *n > 1),
        _ => None,
    };
    let done = match group {
        Some(group) => checkpoint_of(&parsed.options, group),
        None => Err("the process group of a job is wanted".into()),
    };
    match done {
        Ok(()) => 0,
        Err(why) => {
            errln!(ctx, "{}: {why}", ctx.name);
            FAIL
        }
    }
}

fn checkpoint_of(opts: &Opts, group: u32) -> Result<(), String> {
    let site = site::find().map_err(|e| e.to_string())?;
    let dir = opts.dir.clone().or_else(|| std::env::var("LSB_CHKPNT_DIR").ok());
    let dir = PathBuf::from(dir.ok_or("-d checkpoint_dir must be specified")?);
    checkpoint::make_directory(&dir)?;
    let done = by_method(&site, opts, group, &dir);
    match &done {
        Ok(name) => checkpoint::log(&dir, &format!("checkpoint by {name} succeeded")),
        Err(why) => checkpoint::log(&dir, &format!("checkpoint failed: {why}")),
    }
    done.map(drop)
}

/// Has the method make the checkpoint; its name.
fn by_method(
    site: &site::LocalSite,
    opts: &Opts,
    group: u32,
    dir: &Path,
) -> Result<String, String> {
    let method = Method::configured(site)?;
    let mut command = method.command("echkpnt");
    let switches = [("-c", opts.copy), ("-f", opts.force), ("-k", opts.kill), ("-s", opts.stop)];
    command.args(switches.iter().filter(|s| s.1).map(|s| s.0));
    command.arg("-d").arg(dir);
    if opts.exclusive {
        command.arg("-x");
    }
    command.arg(group.to_string()).env("LSB_CHKPNT_DIR", dir).env_remove(SUBMISSION);
    // written first: the method may end the job, and with it everything that is left to do
    if let Ok(submission) = std::env::var(SUBMISSION) {
        checkpoint::write_file(&dir.join(SUBMISSION_FILE), submission.as_bytes())?;
    }
    checkpoint::run(site, dir, "echkpnt", command)?;
    method.note(dir)?;
    Ok(method.name)
}
