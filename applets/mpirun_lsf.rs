//! mpirun.lsf: runs an MPI program under pam, with the wrapper of its type of MPI. See
//! mpirun.lsf(1).

use super::pam::{Beside, run_with};
use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::{Ctx, os_words};
use lsf::cli::front;
use lsf::cli::site::{self, param};
use lsf::errln;
use lsf::pam::command::{PamOptions, WordsFault};
use lsf::pam::geometry::hosts_of_tasks;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Exit code where the type of MPI is not known.
const NO_TYPE: i32 = 1;
/// Exit code of a bad geometry and of a usage error.
const BAD: i32 = 255;
/// The end of a wrapper's name.
const WRAPPER: &str = "_wrapper";

/// Run an MPI program under pam. LSF_PJL_TYPE, which `bsub -a TYPE` sets, says which MPI it is of.
#[derive(FromArgs, ArgsInfo)]
struct Options {
    /// options for pam, in one word
    #[argh(option, long = "pam", arg_name = "\"pam options\"")]
    _pam: Option<String>,
    /// options for the launcher of the MPI, the program and its arguments
    #[argh(positional, greedy, arg_name = "[mpi_option ...] program")]
    _command: Vec<String>,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    let mut rest = ctx.args.clone();
    let mut given = String::new();
    match rest.first().and_then(|word| word.to_str()) {
        Some("-h" | "--help" | "-V" | "--version") => {
            return front::parse::<Options>(ctx.name, &rest[..1])
                .map_or_else(|exit| exit.show(ctx), |_| 0);
        }
        Some("-pam") if rest.len() > 1 => {
            given = rest[1].to_string_lossy().into_owned();
            rest.drain(..2);
        }
        Some("-pam") => return wrong(ctx, "-pam: a word is missing"),
        _ => {}
    }
    if rest.is_empty() {
        return wrong(ctx, "no program");
    }
    let wrapper = match wrapper() {
        Ok(wrapper) => wrapper,
        Err(words) => {
            errln!(ctx, "{}: {words}", ctx.name);
            return NO_TYPE;
        }
    };
    let mut words: Vec<OsString> = given.split_whitespace().map(OsString::from).collect();
    if words.iter().any(|word| word == "-g") {
        return wrong(ctx, "-pam: -g is put in by mpirun.lsf");
    }
    words.extend(["-g".into(), wrapper.clone().into_os_string()]);
    words.extend(rest.iter().cloned());
    let options = match PamOptions::read(&words) {
        Ok(options) => options,
        Err(WordsFault::Usage(words) | WordsFault::Words(words)) => {
            return wrong(ctx, &format!("-pam: {words}"));
        }
    };
    let program = rest.join(OsStr::new(" "));
    let title = format!("Job  {} {}", wrapper.display(), program.to_string_lossy());
    run_with(ctx, options, &|hosts| beside(title.clone(), hosts))
}

fn wrong(ctx: &mut Ctx, words: &str) -> i32 {
    front::usage_error::<Options>(ctx.name, words).show(ctx)
}

/// The wrapper of the type of MPI.
fn wrapper() -> Result<PathBuf, String> {
    let site = site::find().map_err(|e| e.to_string())?;
    let kind = std::env::var("LSF_PJL_TYPE").ok().filter(|kind| !kind.is_empty());
    let kind = kind.ok_or("LSF_PJL_TYPE is not set: submit with bsub -a TYPE")?;
    let bindir = param(Some(&site), "LSF_BINDIR").unwrap_or_default();
    let path = Path::new(&bindir).join(format!("{kind}{WRAPPER}"));
    if !kind.contains('/') && path.is_file() {
        return Ok(path);
    }
    let there = std::fs::read_dir(&bindir).into_iter().flatten().flatten();
    let name = |entry: std::fs::DirEntry| {
        Some(entry.file_name().to_str()?.strip_suffix(WRAPPER)?.to_owned())
    };
    let mut names: Vec<String> = there.filter_map(name).collect();
    names.sort();
    let (kind, names) = (kind.escape_debug(), names.join(", "));
    Err(format!("no MPI of type {kind} in {bindir}; there are: {names}"))
}

/// The line of a failed job; and where the tasks have a geometry, their hosts in a file.
fn beside(title: String, hosts: &[(String, u32)]) -> Result<Beside, (String, i32)> {
    let mut beside = Beside { title, ..Beside::default() };
    let var = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let geometry = var("LSB_PJL_TASK_GEOMETRY").or_else(|| var("LSB_TASK_GEOMETRY"));
    let Some(geometry) = geometry else { return Ok(beside) };
    let bad = |why: String| (format!("bad task geometry: {why}"), BAD);
    let tasks = hosts_of_tasks(&geometry, hosts).map_err(bad)?;
    let name = format!(".lsf-geometry.{}", std::process::id());
    let own = var("LSB_DJOB_HOSTFILE").map(|file| PathBuf::from(file + &name));
    let path = own.unwrap_or_else(|| std::env::temp_dir().join(&name[1..]));
    let text: String = tasks.iter().map(|host| format!("{host}\n")).collect();
    let written = std::fs::File::create_new(&path)
        .and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()));
    written.map_err(|e| (format!("{}: {}", path.display(), os_words(&e)), BAD))?;
    beside.env.push(("LSB_DJOB_HOSTFILE".into(), path.to_string_lossy().into_owned()));
    (beside.tasks, beside.file) = (Some(tasks.len()), Some(path));
    Ok(beside)
}
