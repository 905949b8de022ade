//! The launcher of this host and its daemons: whether they run, starting and stopping them
//! (`lsf_daemons`, `badmin hstartup` and the like).
//!
//! Invariant: what others run on this machine is not looked at: only the launcher's own socket says
//! what is there. See lsf_daemons(8).

use super::links::own_binary;
use super::personal::run::LOOK;
use super::site::LocalSite;
use crate::net::sock::{peer_cred, read_through, with_unix_path};
use crate::proto::frame::{Decoder, MAX_FRAME, Session};
use crate::proto::launch::LaunchMsg;
use crate::proto::{Daemon, Msg};
use crate::sys::procs::Proc;
use crate::sys::words;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longest wait for the launcher's answer.
const ANSWER_WAIT: Duration = Duration::from_secs(10);
/// How long a launcher may take to listen, or to stop its daemons.
const MOVE_WAIT: Duration = Duration::from_secs(30);

/// A connection to the launcher.
pub struct LauncherLink {
    sock: UnixStream,
    session: Session,
}

/// Whether a launcher of this host takes requests. A socket that is not ours to use is one.
pub fn running(site: &LocalSite) -> bool {
    let dial = |p: &std::path::Path| UnixStream::connect(p);
    match with_unix_path(&site.launcher_socket(), dial) {
        Ok(_) => true,
        Err(e) => e.kind() == std::io::ErrorKind::PermissionDenied,
    }
}

impl LauncherLink {
    /// Connects; an error says why not.
    pub fn open(site: &LocalSite) -> Result<LauncherLink, String> {
        let path = site.launcher_socket();
        let fail = |e: std::io::Error| match e.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::ConnectionRefused => {
                format!("no launcher runs on {}", site.host)
            }
            _ => format!("{}: {}", path.display(), words(&e)),
        };
        let sock = with_unix_path(&path, |p| UnixStream::connect(p)).map_err(fail)?;
        sock.set_read_timeout(Some(ANSWER_WAIT)).map_err(fail)?;
        Ok(LauncherLink { sock, session: Session::local() })
    }

    fn send(&mut self, msg: LaunchMsg) -> Result<(), String> {
        let mut out = Vec::new();
        self.session.seal_msg(&Msg::Launch(msg), &mut out).map_err(|e| e.to_string())?;
        self.sock.write_all(&out).map_err(|e| words(&e))
    }

    /// The daemons that run and their pids.
    pub fn daemons(&mut self) -> Result<Vec<(Daemon, u32)>, String> {
        self.send(LaunchMsg::Daemons)?;
        let mut dec = Decoder::new(MAX_FRAME);
        let mut chunk = [0u8; 4096];
        loop {
            if let Some(raw) = dec.take().map_err(|e| e.to_string())? {
                return match self.session.open_msg(&raw).map_err(|e| e.to_string())? {
                    Msg::Launch(LaunchMsg::DaemonList { pids, .. }) => Ok(pids),
                    _ => Err("the launcher gave an unexpected answer".to_owned()),
                };
            }
            match read_through(&mut self.sock, &mut chunk) {
                Ok(0) => return Err("the launcher hung up".to_owned()),
                Ok(n) => dec.push(&chunk[..n]),
                Err(e) => return Err(words(&e)),
            }
        }
    }

    /// Has a daemon run or not, and waits until it is so.
    pub fn set(&mut self, daemon: Daemon, on: bool) -> Result<(), String> {
        self.send(LaunchMsg::Run { daemon, on })?;
        self.wait(daemon, |pid| pid.is_some() == on, if on { "start" } else { "end" })
    }

    /// Has a daemon end and start again. Others may want it at the same time, so its absence
    /// need not be seen.
    pub fn restart(&mut self, daemon: Daemon) -> Result<(), String> {
        let old = pid_of(&self.daemons()?, daemon);
        self.send(LaunchMsg::Run { daemon, on: false })?;
        self.send(LaunchMsg::Run { daemon, on: true })?;
        self.wait(daemon, |pid| pid.is_some() && pid != old, "start again")
    }

    fn wait(
        &mut self,
        daemon: Daemon,
        fine: impl Fn(Option<u32>) -> bool,
        what: &str,
    ) -> Result<(), String> {
        let until = Instant::now() + MOVE_WAIT;
        while !fine(pid_of(&self.daemons()?, daemon)) {
            if Instant::now() >= until {
                return Err(format!("{} does not {what}", daemon.name()));
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }
}

/// The pid of a daemon that runs.
pub fn pid_of(up: &[(Daemon, u32)], daemon: Daemon) -> Option<u32> {
    up.iter().find(|(d, _)| *d == daemon).map(|(_, pid)| *pid)
}

/// Starts this host's launcher, apart from the caller's session; false: it runs already.
pub fn start(site: &LocalSite) -> Result<bool, String> {
    if running(site) {
        return LauncherLink::open(site).map(|_| false);
    }
    let exe = own_binary()?;
    let mut command = Command::new(&exe);
    command.arg0("detach").current_dir("/").env_clear();
    for name in ["TZ", "LANG"] {
        command.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    if site.shared_machine {
        command.env("LSF_LOCAL_HOST", &site.host);
    }
    command.env("PATH", super::personal::run::PATH).env("LSF_ENVDIR", &site.envdir);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| words(&e))?;
    if let Some(mut pipe) = child.stdin.take() {
        // where this fails the child has ended, which is seen below
        let _ = pipe.write_all(b"\n");
    }
    let until = Instant::now() + MOVE_WAIT;
    while !running(site) {
        let ended = child.try_wait().map_err(|e| words(&e))?.is_some();
        if ended || Instant::now() >= until {
            return Err(last_words(child, ended));
        }
        std::thread::sleep(LOOK);
    }
    Ok(true)
}

/// The last messages of a launcher that did not start.
fn last_words(mut child: Child, ended: bool) -> String {
    let mut text = String::new();
    if let Some(mut pipe) = child.stderr.take().filter(|_| ended) {
        let _ = pipe.read_to_string(&mut text);
    }
    match text.trim() {
        "" if ended => "the launcher ended at once".to_owned(),
        "" => format!("the launcher does not listen after {} s", MOVE_WAIT.as_secs()),
        text => text.to_owned(),
    }
}

/// Has the launcher replace itself by the file it was started from, and waits until it answers.
pub fn upgrade(site: &LocalSite) -> Result<(), String> {
    let mut link = LauncherLink::open(site)?;
    link.daemons()?;
    let (uid, _, pid) = peer_cred(link.sock.as_fd()).map_err(|e| words(&e))?;
    let launcher = Proc::of(pid).ok_or("the launcher is gone")?;
    // the socket outlives who made it, and root must not signal who has got that one's number
    if std::fs::metadata(format!("/proc/{pid}")).map_err(|e| words(&e))?.uid() != uid {
        return Err("the launcher is gone".to_owned());
    }
    launcher.signal(rustix::process::Signal::USR2).map_err(|e| words(&e))?;
    // the old one hangs up with its exec
    let until = Instant::now() + MOVE_WAIT;
    while link.daemons().is_ok() {
        if Instant::now() >= until {
            return Err("the launcher did not replace itself; its log says why".to_owned());
        }
        std::thread::sleep(LOOK);
    }
    LauncherLink::open(site)?.daemons().map(|_| ())
}

/// Stops this host's daemons and its launcher; jobs go on. False: it did not run.
pub fn stop(site: &LocalSite) -> Result<bool, String> {
    if !running(site) {
        return Ok(false);
    }
    LauncherLink::open(site)?.send(LaunchMsg::Down { jobs: false })?;
    let until = Instant::now() + MOVE_WAIT;
    while running(site) {
        if Instant::now() >= until {
            return Err(format!("the launcher still runs after {} s", MOVE_WAIT.as_secs()));
        }
        std::thread::sleep(LOOK);
    }
    Ok(true)
}
