//! LSF_AUTH=setuid: the helper that has a port below 1024, and its caller.
//!
//! The helper is a copy of this program that belongs to root with the setuid bit, made by `lsf
//! --install --setuid DIR` and by nothing else. Called so, the program is this helper and no other
//! applet, whatever name it is called by. The helper takes a privileged port and drops root at
//! once; only then does it look at anything else. Then it tells the server its own real uid and
//! carries bytes to and fro; the socket never leaves it, because whoever holds a socket that is
//! bound to such a port can connect it elsewhere and say anything. (A process that was setuid can
//! neither be traced nor robbed of a descriptor by its user.)

use super::client::{ClientError, lost};
use super::prove;
use super::site::LocalSite;
use crate::auth::Way;
use crate::auth::shake::{self, Auth, Hello};
use crate::net::sock;
use crate::proto::Daemon;
use crate::proto::frame::{Decoder, MAX_FRAME_EARLY};
use crate::sys::files::unsafe_program;
use crate::sys::raw;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::retry_on_intr;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The helper's file name.
pub const HELPER: &str = "lsf-port";
/// Longest time to connect, and to hear the server.
const WAIT: Duration = Duration::from_secs(10);
/// The ports that rresvport(3) gives.
const PORTS: std::ops::RangeInclusive<u16> = 512..=1023;

/// Starts the helper; what is read from the stream is what the server says.
pub fn call(
    site: &LocalSite,
    to: SocketAddr,
    from: Option<IpAddr>,
    hello: &Hello,
) -> Result<TcpStream, ClientError> {
    let dir = site.lsf.get("LSF_SETUIDDIR").or(site.lsf.serverdir()).unwrap_or_default();
    let path = Path::new(dir).join(HELPER);
    let fail = |e: io::Error| {
        let why = format!("{}: {}", path.display(), crate::sys::words(&e));
        ClientError::Auth(shake::AuthError::Unproved { way: Way::Setuid, why })
    };
    let (ours, theirs) = UnixStream::pair().map_err(fail)?;
    if let Some(why) = unsafe_program(&path) {
        return Err(ClientError::Auth(shake::AuthError::Unproved { way: Way::Setuid, why }));
    }
    let any =
        if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let from: IpAddr = from.unwrap_or(any);
    let mut cmd = Command::new(&path);
    cmd.args([to.to_string(), from.to_string(), hello.daemon.name().into(), hello.host.clone()]);
    cmd.arg(prove::canonical(site)).env_clear().current_dir("/");
    cmd.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(Stdio::null());
    // The helper ends with the stream, at the latest with this process.
    cmd.spawn().map_err(fail)?;
    let sock = TcpStream::from(OwnedFd::from(ours));
    set_socket_timeout(&sock, Timeout::Recv, Some(WAIT)).map_err(|e| lost(&e.into()))?;
    Ok(sock)
}

/// Whether this process is the helper: it runs with more rights than its user has, whatever it
/// is called; called by root, its name tells.
pub fn is_helper(called: &OsStr) -> bool {
    let more = |(real, effective, saved)| real != effective || real != saved;
    called == HELPER || raw::getresuid().map_or(true, more)
}

/// The helper. The words: where to, where from, which daemon on which host, which host this is.
pub fn run(args: &[OsString], err: &mut dyn Write) -> i32 {
    let told = args.iter().map(|a| a.to_string_lossy().into_owned()).collect::<Vec<_>>();
    match help(&told) {
        Ok(()) => 0,
        Err(why) => {
            let _ = writeln!(err, "{HELPER}: {why}");
            255
        }
    }
}

fn help(words: &[String]) -> Result<(), String> {
    let say = |e: io::Error| crate::sys::words(&e);
    let [to, from, daemon, host, here] = words else { return Err("wrong arguments".into()) };
    let to: SocketAddr = to.parse().map_err(|_| "no address")?;
    let from: IpAddr = from.parse().map_err(|_| "no address")?;
    let bound = reserved(to, from);
    drop_root()?;
    let fd = bound.map_err(say)?;
    set_socket_timeout(&fd, Timeout::Send, Some(WAIT)).map_err(|e| say(e.into()))?;
    set_socket_timeout(&fd, Timeout::Recv, Some(WAIT)).map_err(|e| say(e.into()))?;
    retry_on_intr(|| rustix::net::connect(&fd, &to)).map_err(|e| say(e.into()))?;
    let mut server = TcpStream::from(fd);
    let daemons = [Daemon::Lim, Daemon::Mbatchd, Daemon::Sbatchd, Daemon::Res];
    let daemon = daemons.into_iter().find(|d| d.name() == daemon).ok_or("no daemon")?;
    let mut dec = Decoder::new(MAX_FRAME_EARLY);
    let (mut seen, mut buf) = (Vec::new(), vec![0; 16 << 10]);
    // The request is sent to none but our servers.
    let (hello, version) = loop {
        if let Some(raw) = dec.take().map_err(|e| e.to_string())? {
            break shake::read_hello(&raw, daemon, host).map_err(|e| e.to_string())?;
        }
        let n = sock::read_through(&mut server, &mut buf).map_err(say)?;
        if n == 0 {
            return Err("closed by the daemon".into());
        }
        dec.push(&buf[..n]);
        seen.extend_from_slice(&buf[..n]);
    };
    let claims = prove::open_claims(here).map_err(|e| format!("{e:#}"))?;
    let way = Way::Setuid.name().to_owned();
    let auth = Auth { way, ..Auth::signed(version, claims) };
    let key = shake::open_key(&auth, &hello.target()).map_err(|e| e.to_string())?;
    let mut out = Vec::new();
    shake::write_auth_of(auth, &key, &mut out).map_err(|e| e.to_string())?;
    server.write_all(&out).map_err(say)?;
    let mut user = UnixStream::from(raw::inherited_fd(0).map_err(say)?);
    user.write_all(&seen).map_err(say)?;
    set_socket_timeout(&server, Timeout::Recv, None).map_err(|e| say(e.into()))?;
    set_socket_timeout(&server, Timeout::Send, None).map_err(|e| say(e.into()))?;
    relay(&mut user, &mut server, &mut buf).map_err(say)
}

/// A socket with a privileged port, and nothing else done to it.
fn reserved(to: SocketAddr, from: IpAddr) -> io::Result<OwnedFd> {
    for port in PORTS.rev() {
        let fd = sock::tcp_from(None, to, false)?;
        match rustix::net::bind(&fd, &SocketAddr::new(from, port)) {
            Ok(()) => return Ok(fd),
            Err(rustix::io::Errno::ADDRINUSE) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Err(io::Error::other("every privileged port is in use"))
}

/// Becomes the user, for good.
fn drop_root() -> Result<(), String> {
    let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    raw::setresgid(gid).and_then(|()| raw::setresuid(uid)).map_err(|e| crate::sys::words(&e))?;
    let same = raw::getresuid().ok() == Some((uid, uid, uid))
        && raw::getresgid().ok() == Some((gid, gid, gid));
    if !same || (uid != 0 && raw::setresuid(0).is_ok()) {
        return Err("the privileges of root could not be dropped".into());
    }
    Ok(())
}

/// Carries bytes both ways until both ends have finished.
fn relay(user: &mut UnixStream, server: &mut TcpStream, buf: &mut [u8]) -> io::Result<()> {
    let mut open = [true, true];
    while open[1] {
        let [up, down] = open.map(|open| if open { PollFlags::IN } else { PollFlags::empty() });
        let mut fds = [PollFd::new(&*user, up), PollFd::new(&*server, down)];
        match poll(&mut fds, None) {
            Err(rustix::io::Errno::INTR) => continue,
            Err(e) => return Err(e.into()),
            Ok(_) => {}
        }
        let ready = fds.map(|fd| !fd.revents().is_empty());
        if ready[1] {
            match server.read(buf)? {
                0 => open[1] = false,
                n => user.write_all(&buf[..n])?,
            }
        }
        if ready[0] && open[0] {
            match user.read(buf)? {
                0 => {
                    open[0] = false;
                    server.shutdown(Shutdown::Write)?;
                }
                n => server.write_all(&buf[..n])?,
            }
        } else if ready[0] && !open[0] {
            // The user's end is gone altogether.
            return Ok(());
        }
    }
    Ok(())
}
