//! lsrcp: copies a file from or to another host by its res; where none answers, by the command of
//! LSF_REMOTE_COPY_CMD, or by rcp, or by scp. See lsrcp(1).

use argh::{ArgsInfo, FromArgs};
use lsf::cli::client::ClientError;
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::remote::{self, How};
use lsf::cli::{front, site};
use lsf::daemon::guard;
use lsf::errln;
use lsf::lang::command_words::command_words;
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Writes its input to the file `$0`, or into the directory `$0` under the name `$1`; a new file
/// gets the mode `$2`, which the umask there makes less. `$3`: how to open.
const WRITE: &str = "f=$0; if [ -d \"$f\" ]; then f=$f/$1; fi; \
                     if [ ! -e \"$f\" ]; then \
                     (umask 077; : > \"$f\") && chmod \"$2\" \"$f\" || exit 1; fi; \
                     if [ \"$3\" = a ]; then exec cat >> \"$f\"; fi; exec cat > \"$f\"";

/// Copy a file from or to another host.
#[derive(FromArgs, ArgsInfo)]
struct Options {
    /// append to the target
    #[argh(switch, short = 'a')]
    append: bool,
    /// each is [[user_name@]host:][path/]file
    #[argh(positional, greedy, arg_name = "source target")]
    _files: Vec<String>,
}

/// `[[user@]host:]path`; without a host this one.
struct CopyEnd {
    user: Option<String>,
    host: Option<String>,
    path: PathBuf,
}

impl CopyEnd {
    fn of(word: &OsString) -> CopyEnd {
        let bytes = word.as_bytes();
        let colon = bytes.iter().position(|b| *b == b':');
        // a slash before the colon makes it part of a path
        let colon = colon.filter(|at| *at > 0 && !bytes[..*at].contains(&b'/'));
        let Some(colon) = colon else {
            return CopyEnd { user: None, host: None, path: word.into() };
        };
        let head = String::from_utf8_lossy(&bytes[..colon]).into_owned();
        let (user, host) = match head.split_once('@') {
            Some((user, host)) => (Some(user.to_owned()), host.to_owned()),
            None => (None, head),
        };
        let rest = &bytes[colon + 1..];
        let path = if rest.is_empty() { b"." } else { rest };
        CopyEnd { user, host: Some(host), path: OsString::from_vec(path.to_vec()).into() }
    }
}

/// Why it did not work.
enum Wrong {
    /// Another way may do; with an error number for the program that tries it.
    NoRes(String, Errno),
    Failed(String),
}

pub fn run(ctx: &mut Ctx) -> i32 {
    let parsed = match front::parse_of::<Options>(ctx) {
        Ok(parsed) => parsed,
        Err(exit) => return exit.show(ctx),
    };
    let append = parsed.options.append;
    let [from, to] = parsed.operands.as_slice() else {
        return front::usage_error::<Options>(ctx.name, "a source and a target").show(ctx);
    };
    ctx.flush();
    match copy(&CopyEnd::of(from), &CopyEnd::of(to), append) {
        Ok(code) => code,
        Err(Wrong::Failed(why)) => {
            errln!(ctx, "lsrcp: {why}");
            FAIL
        }
        Err(Wrong::NoRes(why, _)) if append => {
            errln!(ctx, "lsrcp: {why}; no other program can append");
            FAIL
        }
        Err(Wrong::NoRes(why, errno)) => other_program(ctx, why, errno, [from, to]),
    }
}

/// A program that copies in the place of res.
struct Copier {
    words: Vec<String>,
    /// The file names follow `--`.
    dashes: bool,
}

/// The programs that are tried: the command of LSF_REMOTE_COPY_CMD alone, or those of the system.
fn copiers() -> Result<Vec<Copier>, String> {
    let known = site::find().ok();
    let own = known.as_ref().and_then(|site| {
        // root does not do as a file says that others can write
        let conf = Path::new(&site.lsf.path);
        let believed = lsf::sys::euid() != 0 || guard::safe(conf).is_ok();
        site.lsf.remote_copy_command().filter(|_| believed)
    });
    let Some(text) = own else {
        let all = [&["rcp"][..], &["scp", "-Bq"]];
        let copier = |words: &[&str]| Copier {
            words: words.iter().map(|w| (*w).to_owned()).collect(),
            dashes: true,
        };
        return Ok(all.map(copier).into());
    };
    let words = command_words(text).map_err(|why| format!("LSF_REMOTE_COPY_CMD: {why}"))?;
    Ok(vec![Copier { words, dashes: false }])
}

/// The file name as a command gets it that may take one with a dash at its beginning for an
/// option; `None`: that is the name of a host.
fn undashed(word: &OsString) -> Option<OsString> {
    match (word.as_bytes().starts_with(b"-"), CopyEnd::of(word).host) {
        (false, _) => Some(word.clone()),
        (true, None) => Some([OsStr::new("./"), word].into_iter().collect()),
        (true, Some(_)) => None,
    }
}

/// Copies by the first program that is there; no shell reads the command or the names.
fn other_program(ctx: &mut Ctx, mut why: String, errno: Errno, files: [&OsString; 2]) -> i32 {
    let (all, names) = match (copiers(), undashed(files[0]).zip(undashed(files[1]))) {
        (Ok(all), Some((from, to))) => (all, [from, to]),
        (Err(more), _) => {
            errln!(ctx, "lsrcp: {why}; {more}");
            return FAIL;
        }
        (_, None) => {
            errln!(ctx, "lsrcp: {why}; the name of a host begins with a dash");
            return FAIL;
        }
    };
    for Copier { words, dashes } in &all {
        let program = &words[0];
        errln!(ctx, "lsrcp: {why}; trying {program}");
        ctx.flush();
        let mut command = Command::new(program);
        command.args(&words[1..]).args(dashes.then_some("--")).args(&names);
        command.env("LSF_LSRCP_ERRNO", errno.raw_os_error().to_string());
        match command.status() {
            Ok(status) if status.success() => return 0,
            Ok(status) => {
                errln!(ctx, "lsrcp: {program}: {status}");
                return FAIL;
            }
            Err(e) if e.kind() == ErrorKind::NotFound => {
                why = format!("{program} is not installed")
            }
            Err(e) => {
                errln!(ctx, "lsrcp: {program}: {}", lsf::sys::words(&e));
                return FAIL;
            }
        }
    }
    errln!(ctx, "lsrcp: {why} (rcp or scp: Debian package openssh-client)");
    FAIL
}

fn copy(from: &CopyEnd, to: &CopyEnd, append: bool) -> Result<i32, Wrong> {
    let failed = |what: &Path, e: &std::io::Error| {
        Wrong::Failed(format!("{}: {}", what.display(), lsf::sys::words(e)))
    };
    let me = std::env::var("USER").unwrap_or_default();
    if let Some(user) = [&from.user, &to.user].into_iter().flatten().find(|u| **u != me) {
        let why = format!("RES does not act as another user ({user})");
        return Err(Wrong::NoRes(why, Errno::PERM));
    }
    let name = from.path.file_name().unwrap_or_default().to_owned();
    let (source, mode): (Option<File>, u32) = match from.host {
        Some(_) => (None, 0o666),
        None => {
            let file = File::open(&from.path).map_err(|e| failed(&from.path, &e))?;
            let meta = file.metadata().map_err(|e| failed(&from.path, &e))?;
            if meta.is_dir() {
                return Err(Wrong::Failed(format!("{}: is a directory", from.path.display())));
            }
            (Some(file), meta.mode() & 0o777)
        }
    };
    let write = |host: &str, mode: u32| {
        let mask = rustix::process::umask(rustix::fs::Mode::empty());
        rustix::process::umask(mask);
        let mode = format!("{:o}", mode & !mask.as_raw_mode());
        let how = if append { "a" } else { "w" };
        let target = to.path.clone().into_os_string();
        let argv = ["/bin/sh".into(), "-c".into(), WRITE.into(), target, name.clone()];
        let more = [mode.into(), how.into()];
        task(host, &[&argv[..], &more].concat())
    };
    match (source, &from.host, &to.host) {
        (Some(mut file), _, None) => {
            let mut out = local(&to.path, &name, mode, append)?;
            std::io::copy(&mut file, &mut out).map_err(|e| failed(&to.path, &e))?;
            Ok(0)
        }
        (Some(file), _, Some(host)) => {
            rustix::stdio::dup2_stdin(&file).map_err(|e| failed(&from.path, &e.into()))?;
            write(host, mode)
        }
        (None, Some(host), None) => {
            let out = local(&to.path, &name, mode, append)?;
            rustix::stdio::dup2_stdout(&out).map_err(|e| failed(&to.path, &e.into()))?;
            read(host, &from.path)
        }
        (None, Some(host), Some(other)) => {
            // this host in the middle: a child of our own reads
            let mut child = Command::new("/proc/self/exe");
            child.arg0("lsrcp").arg("--").arg(format!("{host}:{}", from.path.display()));
            let child = child.arg("/dev/stdout").stdout(std::process::Stdio::piped()).spawn();
            let mut child = child.map_err(|e| failed(&from.path, &e))?;
            if let Some(pipe) = child.stdout.take() {
                rustix::stdio::dup2_stdin(&pipe).map_err(|e| failed(&from.path, &e.into()))?;
            }
            let wrote = write(other, mode)?;
            let status = child.wait().map_err(|e| failed(&from.path, &e))?;
            Ok(if status.success() { wrote } else { FAIL })
        }
        (None, None, _) => Ok(FAIL),
    }
}

/// Opens the target here.
fn local(path: &Path, name: &OsString, mode: u32, append: bool) -> Result<File, Wrong> {
    let path = if path.is_dir() { path.join(name) } else { path.to_owned() };
    let mut how = File::options();
    how.write(true).create(true).append(append).truncate(!append).mode(mode);
    let opened = how.open(&path);
    opened.map_err(|e| Wrong::Failed(format!("{}: {}", path.display(), lsf::sys::words(&e))))
}

fn read(host: &str, path: &Path) -> Result<i32, Wrong> {
    let argv = ["cat".into(), "--".into(), path.as_os_str().to_owned()];
    task(host, &argv)
}

/// Runs this in the user's home at the host, with our input and output.
fn task(host: &str, argv: &[OsString]) -> Result<i32, Wrong> {
    let site = site::find().map_err(|e| Wrong::NoRes(e.to_string(), Errno::NOENT))?;
    let how = How { home: true, name: "lsrcp", ..How::default() };
    let task = remote::task(&site, argv, &how).map_err(Wrong::Failed)?;
    match remote::run(&site, host, task) {
        Ok(Some(0)) => Ok(0),
        Ok(_) => Ok(FAIL),
        Err(e) => {
            // a host that the cluster does not know has no RES
            let errno = match &e {
                ClientError::Down(_) => Errno::CONNREFUSED,
                ClientError::Timeout(_) => Errno::TIMEDOUT,
                ClientError::Auth(_) => Errno::ACCESS,
                ClientError::Conf(_) => Errno::HOSTUNREACH,
                _ => return Err(Wrong::Failed(format!("{host}: {e:#}"))),
            };
            Err(Wrong::NoRes(format!("{host}: {e:#}"), errno))
        }
    }
}
