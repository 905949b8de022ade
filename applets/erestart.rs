//! erestart: starts a job from its last checkpoint (erestart(8)). Before the job, `-p` has the
//! method prepare the restart, so that a host where it fails is one where the pre-execution of the
//! job fails; in place of the command of the job, `-r` becomes the command that the method gave.
//! Without either it does both.

use argh::{ArgsInfo, FromArgs};
use lsf::cli::checkpoint::{self, Method, RESTART_FILE, SUBMISSION_FILE};
use lsf::cli::ctx::{Ctx, FAIL, os_words};
use lsf::cli::{front, site};
use lsf::errln;
use lsf::model::job::JobSpec;
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Starts a job from its last checkpoint.
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// the method may copy the files of the job back
    #[argh(switch, short = 'c')]
    copy: bool,
    /// also where the method would refuse
    #[argh(switch, short = 'f')]
    force: bool,
    /// only have the method prepare the restart, before the job
    #[argh(switch, short = 'p')]
    prepare: bool,
    /// only become the command of a restart that -p has prepared
    #[argh(switch, short = 'r')]
    run: bool,
    /// the directory with the checkpoint of the job
    #[argh(positional, arg_name = "checkpoint_dir/job_ID")]
    _dir: Vec<String>,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    let parsed = match front::parse_of::<Opts>(ctx) {
        Ok(parsed) => parsed,
        Err(exit) => return exit.show(ctx),
    };
    let done = match &parsed.operands[..] {
        _ if parsed.options.prepare && parsed.options.run => {
            Err("-p and -r exclude each other".into())
        }
        [dir] if parsed.options.prepare => prepare(&parsed.options, Path::new(dir)),
        [dir] => restart(&parsed.options, Path::new(dir)),
        _ => Err("the directory of a checkpoint is wanted".into()),
    };
    match done {
        Ok(()) => 0,
        Err(why) => {
            errln!(ctx, "{}: {why}", ctx.name);
            FAIL
        }
    }
}

/// Has the method prepare the restart. A directory that this host cannot reach may be there on
/// another; anything else that is wrong with the checkpoint is so on every host and ends the job:
/// it is left to the job's own command to say.
fn prepare(opts: &Opts, from: &Path) -> Result<(), String> {
    let site = site::find().map_err(|e| e.to_string())?;
    fs::metadata(from).map_err(|e| format!("{}: {}", from.display(), os_words(&e)))?;
    let Ok((dir, old)) = taken_over(from) else { return Ok(()) };
    let Ok(method) = Method::of(&dir) else { return Ok(()) };
    command_of_method(&site, opts, (&dir, &old), &method).map(|_| ())
}

/// Becomes the command by which the method restarts the job; returns only the reason why not.
fn restart(opts: &Opts, from: &Path) -> Result<(), String> {
    let site = site::find().map_err(|e| e.to_string())?;
    let (dir, old) = taken_over(from)?;
    let text = match opts.run {
        true => Method::of(&dir).and_then(|_| prepared_command(&dir)),
        false => Method::of(&dir).and_then(|m| command_of_method(&site, opts, (&dir, &old), &m)),
    }?;
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(text).envs(variables(&dir, &old));
    Err(format!("/bin/sh: {}", os_words(&command.exec())))
}

/// The name of this job's directory: `12`, `12[3]`.
fn own_name() -> Result<String, String> {
    let number = |name: &str| std::env::var(name).ok().and_then(|v| v.parse::<u32>().ok());
    let job = number("LSB_JOBID").filter(|n| *n > 0).ok_or("LSB_JOBID is not set")?;
    let idx = number("LSB_JOBINDEX").unwrap_or(0);
    Ok(lsf::model::JobRef { job, idx }.to_string())
}

/// Moves the directory of the job that was checkpointed to this job; the old name leads there.
fn taken_over(from: &Path) -> Result<(PathBuf, String), String> {
    let words = |path: &Path, e: &std::io::Error| format!("{}: {}", path.display(), os_words(e));
    let old = fs::canonicalize(from).map_err(|e| words(from, &e))?;
    let name = |path: &Path| path.file_name().map(|n| n.to_string_lossy().into_owned());
    let (Some(top), Some(old_name)) = (old.parent(), name(&old)) else {
        return Err(format!("{}: not the directory of a job", from.display()));
    };
    checkpoint::check_directory(&old)?;
    let own = own_name()?;
    let new = top.join(&own);
    if new != old {
        fs::rename(&old, &new).map_err(|e| words(&old, &e))?;
        symlink(&own, &old).map_err(|e| words(&old, &e))?;
    }
    Ok((new, old_name))
}

fn variables(dir: &Path, old: &str) -> [(&'static str, String); 3] {
    [
        ("LSB_CHKPNT_DIR", dir.display().to_string()),
        ("LSB_OLD_JOBID", old.to_string()),
        ("LSB_RESTART", "Y".to_string()),
    ]
}

/// Has the method prepare the restart, logs that, and returns the command that it wants.
fn command_of_method(
    site: &site::LocalSite,
    opts: &Opts,
    (dir, old): (&Path, &str),
    method: &Method,
) -> Result<String, String> {
    let done = run_method(site, opts, (dir, old), method).and_then(|()| prepared_command(dir));
    match &done {
        Ok(text) => checkpoint::log(dir, &format!("restart of job {old}: {text}")),
        Err(why) => checkpoint::log(dir, &format!("restart of job {old} failed: {why}")),
    }
    done
}

fn run_method(
    site: &site::LocalSite,
    opts: &Opts,
    (dir, old): (&Path, &str),
    method: &Method,
) -> Result<(), String> {
    let told = dir.join(RESTART_FILE);
    if let Err(e) = fs::remove_file(&told)
        && e.kind() != std::io::ErrorKind::NotFound
    {
        return Err(format!("{}: {}", told.display(), os_words(&e)));
    }
    let mut command = method.command("erestart");
    command.args([("-c", opts.copy), ("-f", opts.force)].iter().filter(|s| s.1).map(|s| s.0));
    command.arg(dir).envs(variables(dir, old));
    let submission = checkpoint::read_file(&dir.join(SUBMISSION_FILE)).ok();
    if let Some(spec) = submission.and_then(|t| serde_json::from_str::<JobSpec>(&t).ok()) {
        command.env("LSB_ERESTART_USRCMD", spec.command.lossy().into_owned());
    }
    checkpoint::run(site, dir, "erestart", command)
}

/// The command that the method has left in the directory of the job.
fn prepared_command(dir: &Path) -> Result<String, String> {
    let told = dir.join(RESTART_FILE);
    let text = checkpoint::read_file(&told)?;
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix("LSB_RESTART_CMD="));
    match line.map(str::trim).filter(|command| !command.is_empty()) {
        Some(command) => Ok(command.to_string()),
        None => Err(format!("{}: has no LSB_RESTART_CMD", told.display())),
    }
}
