//! The delegate: opens files that others can exchange, for a process of root's. The delegate runs
//! as the user who could exchange the file, so that no path is followed with root's rights:
//! configuration files cross as bytes, a log file as a descriptor.
//!
//! Root's side names paths over a socket pair; the other side, a hidden applet that the starter
//! becomes, opens them. Root's side believes nothing but the kernel: lengths are compared with
//! caps before anything is allocated, waits end, and a descriptor is looked at before it is used.
//!
//! Invariants: a process of root's reads a configuration file itself only where root alone could
//! have led it there; from the first file on of which that is not so, all are the delegate's to
//! read, because what the first one says decides which the next ones are.

use super::handover::DEFAULT_PATH;
use crate::conf::lexer::MAX_BYTES;
use crate::conf::{Files, Moment};
use crate::net::sock::{read_by, recv_fds, send_fds};
use crate::sys::files::{self, RealFiles};
use crate::sys::users::{User, UserDatabase};
use crate::sys::words;
use rustix::fs::OFlags;
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The hidden applet.
pub const APPLET: &str = "delegate";
/// Longest wait for a whole answer; a file system may be slow.
const ANSWER_WAIT: Duration = Duration::from_secs(20);
/// Longest wait for all answers of one process: all files of a configuration.
const ALL_WAIT: Duration = Duration::from_secs(120);
/// Longest wait for the name service.
const USER_WAIT: Duration = Duration::from_secs(5);
/// Longest path in a question, bytes.
const PATH_MAX: usize = 4096;
/// Most bytes of configuration that a process of root's takes from a delegate.
const CONF_MAX: usize = MAX_BYTES;
/// Longest reason why not, bytes.
const WHY_MAX: usize = 1024;
/// How long a delegate may take to end.
const END_WAIT: Duration = Duration::from_millis(200);
/// Permission bits of a log file.
const LOG_MODE: u32 = 0o644;
/// Kinds of file systems whose files are the kernel's own: what root writes there may act as root.
const KERNEL_FILES: [u64; 11] = [
    0x9fa0,      // proc
    0x6265_6572, // sysfs
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x7363_6673, // securityfs
    0x6265_6570, // configfs
    0x4249_4e4d, // binfmt_misc
    0xcafe_4a11, // bpf
    0xf97c_ff8c, // selinuxfs
];

/// A request: a byte, the path's length, the path.
#[derive(Clone, Copy, PartialEq)]
enum Ask {
    /// The bytes of a regular file.
    Read = b'r' as isize,
    /// Whether there is such a file.
    Exists = b'e' as isize,
    /// A log file to append to, made where it is missing.
    Log = b'l' as isize,
    /// A new log file, after the existing one was renamed to `.old`.
    LogAnew = b'n' as isize,
}

/// The answer begins with one of these and a length: of the bytes, or of the reason why not.
const YES: u8 = b'y';
const NO: u8 = b'n';
/// Bytes before what an answer holds.
const HEAD: usize = 9;

// ---- root's side ----

/// A process of another user's.
struct Delegate {
    sock: UnixStream,
    child: Child,
    /// No answer is waited for after that.
    over: Instant,
}

impl Delegate {
    /// Starts one; it becomes the user as a daemon does.
    fn of(user: &str) -> io::Result<Delegate> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_write_timeout(Some(ANSWER_WAIT))?;
        let mut command = Command::new("/proc/self/exe");
        command.arg0("starter").args([APPLET, user]).env_clear().env("PATH", DEFAULT_PATH);
        command.current_dir("/").stdin(OwnedFd::from(theirs)).stdout(Stdio::null());
        let over = Instant::now() + ALL_WAIT;
        Ok(Delegate { sock: ours, child: command.spawn()?, over })
    }

    /// When an answer that is asked for now must be whole.
    fn until(&self) -> Instant {
        (Instant::now() + ANSWER_WAIT).min(self.over)
    }

    fn ask(&mut self, what: Ask, path: &Path) -> io::Result<()> {
        let path = path.as_os_str().as_encoded_bytes();
        if path.len() > PATH_MAX {
            return Err(io::Error::other(format!("a path of more than {PATH_MAX} bytes")));
        }
        let mut line = vec![what as u8];
        line.extend((path.len() as u32).to_be_bytes());
        line.extend(path);
        self.sock.write_all(&line)
    }

    /// Takes the bytes of an answer whose head has come: at most `max`.
    fn rest(&mut self, head: &[u8; HEAD], max: usize, until: Instant) -> io::Result<Vec<u8>> {
        let mut len = [0u8; 8];
        len.copy_from_slice(&head[1..]);
        let good = head[0] == YES;
        let (len, max) = (u64::from_be_bytes(len), if good { max } else { WHY_MAX });
        if len > max as u64 {
            return Err(io::Error::other(format!("longer than {max} bytes")));
        }
        let mut bytes = vec![0u8; len as usize];
        read_by(&mut self.sock, &mut bytes, until)?;
        match good {
            true => Ok(bytes),
            false => Err(io::Error::other(String::from_utf8_lossy(&bytes).into_owned())),
        }
    }

    fn read(&mut self, what: Ask, path: &Path, max: usize) -> io::Result<Vec<u8>> {
        self.ask(what, path)?;
        let (mut head, until) = ([0u8; HEAD], self.until());
        read_by(&mut self.sock, &mut head, until)?;
        self.rest(&head, max, until)
    }

    fn log(&mut self, path: &Path, anew: bool) -> io::Result<File> {
        self.ask(if anew { Ask::LogAnew } else { Ask::Log }, path)?;
        let (mut head, until) = ([0u8; HEAD], self.until());
        self.sock.set_read_timeout(Some(ANSWER_WAIT))?;
        let (got, fds) = recv_fds(&self.sock, &mut head)?;
        read_by(&mut self.sock, &mut head[got..], until)?;
        self.rest(&head, 0, until)?;
        let fd = fds.into_iter().next().ok_or_else(|| io::Error::other("no file came"))?;
        Ok(File::from(fd))
    }
}

impl Drop for Delegate {
    fn drop(&mut self) {
        // one that hangs in the kernel is left behind; the launcher reaps it later
        let _ = self.child.kill();
        let until = Instant::now() + END_WAIT;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Has the user open a log file, which must then be one of that user's.
pub fn open_log(user: &User, path: &Path, anew: bool) -> io::Result<File> {
    let file = Delegate::of(&user.name)?.log(path, anew)?;
    files::own(&file.metadata()?, user.uid)?;
    let how = rustix::fs::fcntl_getfl(&file)?;
    let kind = rustix::fs::fstatfs(&file)?.f_type as u64 & 0xffff_ffff;
    if !how.contains(OFlags::APPEND) || KERNEL_FILES.contains(&kind) {
        return Err(io::Error::other("not a file to append to"));
    }
    Ok(file)
}

/// Configuration files as a process reads them that may be root's: any other reads them itself.
pub fn conf_files() -> Box<dyn Files> {
    match crate::sys::euid() {
        0 => Box::new(RootFiles::default()),
        _ => Box::new(RealFiles),
    }
}

/// Configuration files for one reading of a configuration by root.
#[derive(Default)]
struct RootFiles {
    /// The user who reads from the first file on that others could exchange, or why none can.
    delegate: RefCell<Option<Result<Delegate, String>>>,
    /// Bytes that were handed over.
    taken: Cell<usize>,
}

impl RootFiles {
    fn get(&self, what: Ask, path: &str) -> Result<Vec<u8>, String> {
        let path = std::path::absolute(path).map_err(|e| words(&e))?;
        let mut delegate = self.delegate.borrow_mut();
        if delegate.is_none() {
            let found = files::follow(&path, &[0]).map_err(|e| words(&e))?;
            match found.strange {
                Some((part, uid)) => *delegate = Some(delegate_of(&part, uid)),
                None if !found.missing.is_empty() => return Err("No such file".to_owned()),
                None if what == Ask::Exists => return Ok(Vec::new()),
                None => return RealFiles.read(&found.path.to_string_lossy()),
            }
        }
        let Some(asked) = delegate.as_mut() else { return Err(String::new()) };
        let asked = asked.as_mut().map_err(|why| why.clone())?;
        let max = CONF_MAX.saturating_sub(self.taken.get());
        let got = asked.read(what, &path, max).map_err(|e| words(&e));
        self.taken.set(self.taken.get() + got.as_ref().map_or(0, Vec::len));
        got
    }
}

/// The user who could exchange this part of a path, as a delegate.
fn delegate_of(part: &Path, uid: u32) -> Result<Delegate, String> {
    let part = part.display();
    if uid == 0 {
        return Err(format!("{part} belongs to root and can be changed by other users"));
    }
    let user = UserDatabase::default().find_uid(uid, USER_WAIT);
    let user = user.ok_or_else(|| format!("{part} belongs to uid {uid}, who has no name here"))?;
    Delegate::of(&user.name).map_err(|e| format!("as {}: {}", user.name, words(&e)))
}

impl Files for RootFiles {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        self.get(Ask::Read, path)
    }

    fn exists(&self, path: &str) -> bool {
        self.get(Ask::Exists, path).is_ok()
    }

    fn moment(&self) -> Option<Moment> {
        RealFiles.moment()
    }
}

// ---- the user's side ----

/// Answers until root's side has gone.
pub fn serve() -> io::Result<()> {
    if crate::sys::euid() == 0 {
        return Err(io::Error::other("root is its own delegate"));
    }
    let mut sock = UnixStream::from(rustix::stdio::stdin().try_clone_to_owned()?);
    loop {
        let mut head = [0u8; 5];
        match sock.read_exact(&mut head) {
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            read => read?,
        }
        let mut len = [0u8; 4];
        len.copy_from_slice(&head[1..]);
        let mut path = vec![0u8; (u32::from_be_bytes(len) as usize).min(PATH_MAX)];
        sock.read_exact(&mut path)?;
        let path = String::from_utf8_lossy(&path).into_owned();
        answer(&sock, head[0], &path)?;
    }
}

fn answer(sock: &UnixStream, what: u8, path: &str) -> io::Result<()> {
    let is = |ask: Ask| what == ask as u8;
    let done = if is(Ask::Read) {
        RealFiles.read(path)
    } else if is(Ask::Exists) {
        match RealFiles.exists(path) {
            true => Ok(Vec::new()),
            false => Err("No such file".to_owned()),
        }
    } else {
        match log_file(Path::new(path), is(Ask::LogAnew)) {
            Ok(file) => return send_fds(sock, &head(YES, 0), &[file.as_fd()]),
            Err(e) => Err(words(&e)),
        }
    };
    let mut sock = sock;
    let (kind, bytes) = match done {
        Ok(bytes) => (YES, bytes),
        Err(why) => (NO, why.into_bytes().into_iter().take(WHY_MAX).collect()),
    };
    sock.write_all(&head(kind, bytes.len()))?;
    sock.write_all(&bytes)
}

fn head(kind: u8, len: usize) -> [u8; HEAD] {
    let mut head = [kind; HEAD];
    head[1..].copy_from_slice(&(len as u64).to_be_bytes());
    head
}

/// Opens the log. A log file of another owner (root's, from an earlier version) is renamed to
/// `.old`.
fn log_file(path: &Path, anew: bool) -> io::Result<File> {
    let aside = || {
        let mut old = path.as_os_str().to_owned();
        old.push(".old");
        match std::fs::rename(path, PathBuf::from(old)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            renamed => renamed,
        }
    };
    if anew {
        aside()?;
    }
    files::append(path, LOG_MODE).or_else(|e| {
        let other = std::fs::symlink_metadata(path)?;
        if !other.is_file() || other.uid() == crate::sys::euid() {
            return Err(e);
        }
        aside()?;
        files::append(path, LOG_MODE)
    })
}
