//! Children of daemons: programs of the system's and of the site's that one asks (`getent`,
//! `eauth`).
//!
//! Invariants: a child takes every signal as a program expects it, whatever its daemon blocks;
//! the daemon is not copied for it. [`std::process::Command`] gives the first only by a copy.

use super::raw;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, kill_process_group, waitpid};
use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};

/// The kind of one of a child's descriptors 0, 1 and 2.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Io {
    /// /dev/null.
    #[default]
    Null,
    /// A pipe whose other end is ours.
    Pipe,
    /// A copy of our own descriptor.
    Ours,
}

/// The surroundings of a child besides its program, words and variables.
#[derive(Clone, Copy, Debug, Default)]
pub struct Given {
    /// Our environment below what the command names; otherwise that alone.
    pub env: bool,
    /// A process group of its own.
    pub group: bool,
    pub stdio: [Io; 3],
}

/// A child.
#[derive(Debug)]
pub struct Child {
    pid: Pid,
    ended: Option<ExitStatus>,
    /// The child began in a process group of its own.
    group: bool,
    /// Our ends of its pipes: to its standard input, from its output and error output.
    pub to: Option<File>,
    pub from: Option<File>,
    pub errors: Option<File>,
}

/// Starts a command: its program, an absolute path; its words, variables and directory. Everything
/// else of it does not count.
pub fn start(command: &Command, given: Given) -> io::Result<Child> {
    let text = |bytes: &[u8]| CString::new(bytes).map_err(|_| io::ErrorKind::InvalidInput.into());
    if !Path::new(command.get_program()).is_absolute() {
        return Err(io::Error::other("not an absolute path"));
    }
    let program = text(command.get_program().as_bytes())?;
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let argv = words.map(|w| text(w.as_bytes())).collect::<io::Result<Vec<_>>>()?;
    let env = environment(command, given.env);
    let pair = |(name, value): (&OsString, &OsString)| {
        text(&[name.as_bytes(), b"=", value.as_bytes()].concat())
    };
    let env = env.iter().map(pair).collect::<io::Result<Vec<_>>>()?;
    let [input, output, errors] = given.stdio;
    let (stdin, to) = end(input, 0)?;
    let (stdout, from) = end(output, 1)?;
    let (stderr, errors) = end(errors, 2)?;
    let stdio = [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()];
    let dir = command.get_current_dir().map(|dir| text(dir.as_os_str().as_bytes())).transpose()?;
    let pid = raw::spawn(&program, &argv, &env, stdio, dir.as_deref(), given.group)?;
    let pid = Pid::from_raw(pid as i32).ok_or(io::ErrorKind::InvalidData)?;
    Ok(Child { pid, ended: None, group: given.group, to, from, errors })
}

/// The file that becomes the child's descriptor `n`, and our end of it.
fn end(io: Io, n: usize) -> io::Result<(OwnedFd, Option<File>)> {
    match io {
        Io::Null => Ok((File::options().read(true).write(true).open("/dev/null")?.into(), None)),
        Io::Ours => {
            let ours = [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()];
            Ok((ours[n].try_clone_to_owned()?, None))
        }
        Io::Pipe => {
            let (reader, writer) = io::pipe()?;
            let (reader, writer) = (OwnedFd::from(reader), OwnedFd::from(writer));
            let (theirs, ours) = if n == 0 { (reader, writer) } else { (writer, reader) };
            Ok((theirs, Some(File::from(ours))))
        }
    }
}

fn environment(command: &Command, ours: bool) -> BTreeMap<OsString, OsString> {
    let mut env: BTreeMap<OsString, OsString> = BTreeMap::new();
    if ours {
        env.extend(std::env::vars_os());
    }
    for (name, value) in command.get_envs() {
        match value.map(OsStr::to_owned) {
            Some(value) => env.insert(name.to_owned(), value),
            None => env.remove(name),
        };
    }
    env
}

impl Child {
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Kills the child, and its process group where it began one of its own. A child that has ended
    /// is left alone.
    pub fn kill(&mut self) {
        if self.ended.is_none() {
            // not reaped: the number is its own
            let _ = match self.group {
                true => kill_process_group(self.pid, Signal::KILL),
                false => kill_process(self.pid, Signal::KILL),
            };
        }
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        self.to = None;
        loop {
            if let Some(ended) = self.ended {
                return Ok(ended);
            }
            match waitpid(Some(self.pid), WaitOptions::empty()) {
                Ok(Some((_, status))) => self.ended = Some(ExitStatus::from_raw(status.as_raw())),
                Ok(None) | Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    const OUTPUT: Given = Given { env: false, group: false, stdio: [Io::Null, Io::Pipe, Io::Null] };

    fn status(given: Given) -> String {
        let mut command = Command::new("/bin/cat");
        command.arg("/proc/self/status");
        let mut child = start(&command, given).unwrap();
        let mut text = String::new();
        child.from.take().unwrap().read_to_string(&mut text).unwrap();
        assert!(child.wait().unwrap().success());
        text
    }

    #[test]
    fn a_child_blocks_and_ignores_nothing_whatever_its_parent_does() {
        std::thread::spawn(|| {
            let _blocked = raw::SignalFd::new(&[libc::SIGTERM, libc::SIGCHLD]).unwrap();
            let text = status(OUTPUT);
            let set = |name: &str| {
                let line = text.lines().find_map(|l| l.strip_prefix(name)).unwrap();
                u64::from_str_radix(line.trim(), 16).unwrap()
            };
            // 32 and 33 are the C library's own and out of reach
            assert_eq!((set("SigBlk:"), set("SigIgn:") & !0x1_8000_0000), (0, 0), "{text}");
        })
        .join()
        .unwrap();
    }

    #[test]
    fn words_variables_and_pipes_are_as_asked_for() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "read l; echo \"$0 $l $(pwd)\"; env | sort; exit 3", "x y"]);
        command
            .current_dir("/")
            .env("A", "1")
            .env("PATH", "/usr/bin:/bin")
            .env("B", "2")
            .env_remove("B");
        let mut child =
            start(&command, Given { stdio: [Io::Pipe, Io::Pipe, Io::Null], ..OUTPUT }).unwrap();
        child.to.take().unwrap().write_all(b"in\n").unwrap();
        let mut text = String::new();
        child.from.take().unwrap().read_to_string(&mut text).unwrap();
        assert!(text.starts_with("x y in /\nA=1\n") && !text.contains("B="), "{text}");
        assert!(!text.contains("HOME="), "{text}");
        assert_eq!(child.wait().unwrap().code(), Some(3));
        assert_eq!(child.wait().unwrap().code(), Some(3));
        // our own environment below it
        let mut child = start(&command, Given { env: true, ..OUTPUT }).unwrap();
        text.clear();
        child.from.take().unwrap().read_to_string(&mut text).unwrap();
        child.wait().unwrap();
        assert_eq!(
            text.contains("CARGO_MANIFEST_DIR="),
            std::env::var("CARGO_MANIFEST_DIR").is_ok()
        );
    }

    #[test]
    fn a_program_that_is_not_there_and_one_that_is_killed() {
        let missing = start(&Command::new("/no/such/program"), Given::default()).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        assert!(start(&Command::new("sleep"), Given::default()).is_err(), "PATH is not searched");
        let mut command = Command::new("/bin/sleep");
        command.arg("60");
        let mut child = start(&command, Given { group: true, ..OUTPUT }).unwrap();
        assert_eq!(rustix::process::getpgid(Some(child.pid())).unwrap(), child.pid());
        child.kill();
        assert_eq!(child.wait().unwrap().signal(), Some(9));
        child.kill();
    }
}
