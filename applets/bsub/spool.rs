//! The parts of a submission that come from the place where it is made: a copy of the input file
//! (-is), the limits of the shell (-ul).
//!
//! The copy lies in JOB_SPOOL_DIR of lsb.params, else in ~/.lsbatch; it is removed after the job.

use super::caller::{home, request_id};
use super::rejection::Rejection;
use super::stop::Stop;
use lsf::cli::client;
use lsf::cli::ctx::Ctx;
use lsf::lang::jobname::JobName;
use lsf::model::ByteStr;
use lsf::model::job::{JobSpec, opt};
use lsf::model::limits::{LimitKind, LimitSet};
use lsf::proto::client::ClientMsg;
use lsf::sys::files::regular;
use rustix::process::{Resource, getrlimit};
use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Elements whose files are copied, at most.
const MAX_COPIES: usize = 10_000;

/// The soft limits of this process, where nothing else was asked for; which these are is kept.
pub fn user_limits(spec: &mut JobSpec) {
    let kb = |r: Resource| getrlimit(r).current.map(|n| n / 1024);
    let all = [
        (LimitKind::Cpu, getrlimit(Resource::Cpu).current),
        (LimitKind::Fsize, kb(Resource::Fsize)),
        (LimitKind::Data, kb(Resource::Data)),
        (LimitKind::Stack, kb(Resource::Stack)),
        (LimitKind::Core, kb(Resource::Core)),
        (LimitKind::Rss, kb(Resource::Rss)),
    ];
    let mut set = LimitSet::default();
    for (kind, own) in all {
        let limit = spec.limits.get_mut(kind);
        if limit.is_none() && own.is_some() {
            *limit = own;
            set.insert(kind);
        }
    }
    spec.further.user_limits = set;
}

/// Copies the input file, or those of all elements, and makes the copies the job's input.
pub fn input(ctx: &mut Ctx, file: &str, spec: &mut JobSpec) -> Result<(), Stop> {
    if file.contains("%J") {
        let words = format!("{file}: option -is takes no %J: the job has no ID yet");
        return Err(Rejection::new(words).into());
    }
    let dir = directory(ctx)?;
    let base = request_id()?;
    let array = JobName::parse(&spec.name).ok().and_then(|n| n.array);
    let copy = |from: &str, to: &str| {
        let why = |e: io::Error| {
            Rejection::new(format!(
                "{from}: the input file cannot be copied to {}: {}",
                dir.display(),
                lsf::sys::words(&e)
            ))
        };
        copied(Path::new(from), &dir.join(to)).map_err(why)
    };
    let name = match (array, file.contains("%I")) {
        (Some(array), true) => {
            if array.len() > MAX_COPIES as u64 {
                let words = format!("{file}: option -is copies at most {MAX_COPIES} files");
                return Err(Rejection::new(words).into());
            }
            for idx in array.iter() {
                let idx = idx.to_string();
                copy(&file.replace("%I", &idx), &format!("{base}.{idx}.in"))?;
            }
            format!("{base}.%I.in")
        }
        _ => {
            copy(&file.replace("%I", "0"), &format!("{base}.in"))?;
            format!("{base}.in")
        }
    };
    let path = dir.join(name).into_os_string().into_vec();
    spec.further.spooled_input = String::from_utf8_lossy(&path).into();
    spec.in_file = ByteStr(path);
    spec.options |= opt::IN_FILE;
    Ok(())
}

/// The directory of the copies; made if it is missing.
fn directory(ctx: &mut Ctx) -> Result<PathBuf, Stop> {
    let values = match client::ask(ctx, ClientMsg::Params)? {
        ClientMsg::ParamRows { values } => values,
        _ => Vec::new(),
    };
    let of_site = values.into_iter().find(|(name, _)| name == "JOB_SPOOL_DIR");
    let user = lsf::sys::users::UserDatabase::default().by_uid(lsf::sys::euid());
    let user = user.map(|u| u.name.clone()).unwrap_or_default();
    let dir = match of_site {
        Some((_, dir)) if !dir.is_empty() => PathBuf::from(dir.replace("%U", &user)),
        _ => PathBuf::from(std::ffi::OsString::from_vec(home())).join(".lsbatch"),
    };
    match DirBuilder::new().mode(0o700).create(&dir) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => {
            let words = format!("{}: {}", dir.display(), lsf::sys::words(&e));
            Err(Rejection::new(words).into())
        }
        _ => Ok(dir),
    }
}

/// A new file with the bytes of another.
fn copied(from: &Path, to: &Path) -> io::Result<()> {
    let (mut source, _) = regular(from)?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
    io::copy(&mut source, &mut file).map(|_| ())
}

/// Removes the copies for a job that was not accepted.
pub fn forget(copy: &str) {
    let path = Path::new(copy);
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else { return };
    let name = name.to_string_lossy();
    let Some((base, end)) = name.split_once("%I") else {
        let _ = std::fs::remove_file(path);
        return;
    };
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let own = entry.file_name().to_string_lossy().into_owned();
        if own.starts_with(base) && own.ends_with(end) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}
