//! Sockets: non-blocking, bound to this host's own address, close-on-exec.

use super::limits::BACKLOG;
use mio::net::{TcpListener, TcpStream, UdpSocket, UnixListener, UnixStream};
use rustix::fs::Mode;
use rustix::io::retry_on_intr;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, bind, connect,
    listen, recvmsg, sendmsg, socket_with, socketpair, sockopt,
};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

/// Seconds of silence before the kernel probes a peer.
const KEEPALIVE_S: u64 = 60;

/// A stream of either kind.
#[derive(Debug)]
pub enum Sock {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Sock {
    /// Ends our half of the stream.
    pub fn finish(&self) -> io::Result<()> {
        match self {
            Sock::Tcp(s) => s.shutdown(Shutdown::Write),
            Sock::Unix(s) => s.shutdown(Shutdown::Write),
        }
    }
    /// The error of an attempted connection, if it failed.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        match self {
            Sock::Tcp(s) => s.take_error(),
            Sock::Unix(s) => s.take_error(),
        }
    }
    /// Whether the connection is made.
    pub fn connected(&self) -> bool {
        match self {
            Sock::Tcp(s) => s.peer_addr().is_ok(),
            Sock::Unix(s) => s.peer_addr().is_ok(),
        }
    }
    pub fn source(&mut self) -> &mut dyn mio::event::Source {
        match self {
            Sock::Tcp(s) => s,
            Sock::Unix(s) => s,
        }
    }
}

impl AsFd for Sock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Sock::Tcp(s) => s.as_fd(),
            Sock::Unix(s) => s.as_fd(),
        }
    }
}

impl Read for Sock {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Sock::Tcp(s) => s.read(buf),
            Sock::Unix(s) => s.read(buf),
        }
    }
}

impl Write for Sock {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match self {
            Sock::Tcp(s) => s.write(buf),
            Sock::Unix(s) => s.write(buf),
        }
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn family(addr: &SocketAddr) -> AddressFamily {
    if addr.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 }
}

pub(super) fn new(addr: &SocketAddr, kind: SocketType, nonblocking: bool) -> io::Result<OwnedFd> {
    let mut flags = SocketFlags::CLOEXEC;
    if nonblocking {
        flags |= SocketFlags::NONBLOCK;
    }
    Ok(socket_with(family(addr), kind, flags, None)?)
}

/// Liveness options of a stream.
pub fn keep_alive(fd: BorrowedFd<'_>) {
    // A socket without these still works.
    let _ = sockopt::set_socket_keepalive(fd, true);
    let _ = sockopt::set_tcp_keepidle(fd, Duration::from_secs(KEEPALIVE_S));
    let _ = sockopt::set_tcp_keepintvl(fd, Duration::from_secs(KEEPALIVE_S / 4));
}

/// Has the kernel probe a silent peer often enough that its silence for this time tells that it is
/// gone.
pub fn probe_within(fd: BorrowedFd<'_>, limit: Duration) {
    let second = Duration::from_secs(1);
    // A socket without these still works.
    let _ = sockopt::set_socket_keepalive(fd, true);
    let _ = sockopt::set_tcp_keepidle(fd, (limit / 3).max(second));
    let _ = sockopt::set_tcp_keepintvl(fd, (limit / 6).max(second));
}

/// Listens for TCP on this address.
pub fn listen_tcp(addr: SocketAddr) -> io::Result<TcpListener> {
    let fd = new(&addr, SocketType::STREAM, true)?;
    sockopt::set_socket_reuseaddr(&fd, true)?;
    bind(&fd, &addr)?;
    // Accepted connections inherit these options.
    let _ = sockopt::set_tcp_nodelay(&fd, true);
    keep_alive(fd.as_fd());
    listen(&fd, BACKLOG)?;
    Ok(TcpListener::from_std(std::net::TcpListener::from(fd)))
}

/// Opens a datagram socket on this address.
pub fn open_udp(addr: SocketAddr) -> io::Result<UdpSocket> {
    let fd = new(&addr, SocketType::DGRAM, true)?;
    bind(&fd, &addr)?;
    Ok(UdpSocket::from_std(std::net::UdpSocket::from(fd)))
}

/// A TCP socket that leaves from `from`, if given; the connection is not yet asked for.
pub fn tcp_from(from: Option<IpAddr>, to: SocketAddr, nonblocking: bool) -> io::Result<OwnedFd> {
    let fd = new(&to, SocketType::STREAM, nonblocking)?;
    if let Some(from) = from.filter(|f| f.is_ipv4() == to.is_ipv4()) {
        // The port is chosen at connect, so that local ports do not run out.
        let _ = crate::sys::raw::bind_address_no_port(fd.as_fd());
        bind(&fd, &SocketAddr::new(from, 0))?;
    }
    // Slower without it, but working.
    let _ = sockopt::set_tcp_nodelay(&fd, true);
    Ok(fd)
}

/// Begins a TCP connection.
pub fn dial_tcp(from: Option<IpAddr>, to: SocketAddr) -> io::Result<TcpStream> {
    let fd = tcp_from(from, to, true)?;
    keep_alive(fd.as_fd());
    match connect(&fd, &to) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => {}
        Err(e) => return Err(e.into()),
    }
    Ok(TcpStream::from_std(std::net::TcpStream::from(fd)))
}

/// Longest path the kernel takes for a Unix socket, bytes.
const SUN_PATH: usize = 107;

/// Calls `f` with a path to the same socket that is short enough for the kernel.
pub fn with_unix_path<T>(path: &Path, f: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    if path.as_os_str().len() <= SUN_PATH {
        return f(path);
    }
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else { return f(path) };
    use rustix::fs::{Mode, OFlags, open};
    let dir = open(dir, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let short = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&dir));
    f(&Path::new(&short).join(name))
}

/// Begins a connection to a Unix socket.
pub fn dial_unix(path: &Path) -> io::Result<UnixStream> {
    with_unix_path(path, |p| UnixStream::connect(p))
}

/// Listens on a Unix socket with these permission bits; a socket left behind by a dead daemon is
/// replaced, one that answers is not.
pub fn listen_unix(path: &Path, mode: u32) -> io::Result<UnixListener> {
    let dial = |p: &Path| std::os::unix::net::UnixStream::connect(p);
    if with_unix_path(path, dial).is_ok() {
        let text = format!("{}: another daemon listens there", path.display());
        return Err(io::Error::new(io::ErrorKind::AddrInUse, text));
    }
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let (flags, bits) =
        (SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, Mode::from_bits_retain(mode));
    let fd = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // The file gets what the socket allows, less the mask of the process: never more than asked.
    rustix::fs::fchmod(&fd, bits)?;
    with_unix_path(path, |p| {
        bind(&fd, &SocketAddrUnix::new(p)?)?;
        if std::fs::symlink_metadata(p)?.permissions().mode() & 0o777 != mode {
            std::fs::set_permissions(p, std::fs::Permissions::from_mode(mode))?;
        }
        Ok(())
    })?;
    listen(&fd, BACKLOG)?;
    Ok(UnixListener::from_std(fd.into()))
}

/// A Unix socket of whole messages, which never blocks.
fn packet_socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?)
}

/// Two ends of a connection of whole messages; reading and writing never block.
///
/// # Errors
/// Errors of the system.
pub fn packet_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?)
}

/// Listens for connections of whole messages from processes of our own user. A socket that is there
/// already is replaced, another file is not.
///
/// # Errors
/// Errors of the system.
pub fn listen_packets(path: &Path) -> io::Result<OwnedFd> {
    let there = std::fs::symlink_metadata(path);
    if there.is_ok_and(|there| there.file_type().is_socket()) {
        std::fs::remove_file(path)?;
    }
    let fd = packet_socket()?;
    rustix::fs::fchmod(&fd, Mode::RUSR | Mode::WUSR)?;
    with_unix_path(path, |p| Ok(bind(&fd, &SocketAddrUnix::new(p)?)?))?;
    listen(&fd, BACKLOG)?;
    Ok(fd)
}

/// Connects to a socket of [`listen_packets`] of our own user.
///
/// # Errors
/// Errors of the system; another user listens there.
pub fn dial_packets(path: &Path) -> io::Result<OwnedFd> {
    let fd = packet_socket()?;
    with_unix_path(path, |p| Ok(connect(&fd, &SocketAddrUnix::new(p)?)?))?;
    own_peer(fd.as_fd())?;
    Ok(fd)
}

/// # Errors
/// The peer of a Unix socket is a process of another user.
pub fn own_peer(fd: BorrowedFd<'_>) -> io::Result<()> {
    match peer_cred(fd)?.0 == crate::sys::euid() {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::PermissionDenied, "of another user")),
    }
}

/// Most descriptors that cross a Unix socket with one message.
const FDS_MAX: usize = 4;

/// Sends bytes, which must not be none, and with them descriptors.
pub fn send_fds(sock: impl AsFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::Error::other("too many descriptors"));
    }
    let sent = sendmsg(sock, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?;
    if sent == bytes.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

/// Receives what [`send_fds`] sends: how many bytes, and the descriptors; none at the end.
pub fn recv_fds(sock: impl AsFd, into: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let how = RecvFlags::CMSG_CLOEXEC;
    let sock = sock.as_fd();
    let got = retry_on_intr(|| recvmsg(sock, &mut [IoSliceMut::new(into)], &mut control, how))?;
    let fds = control.drain().filter_map(|m| match m {
        RecvAncillaryMessage::ScmRights(fds) => Some(fds),
        _ => None,
    });
    Ok((got.bytes, fds.flatten().collect()))
}

/// Reads, and reads again where a signal interrupted that. A socket with a time-out is interrupted
/// by a stop and a continuation of the process, too.
pub fn read_through(from: &mut impl io::Read, into: &mut [u8]) -> io::Result<usize> {
    loop {
        match from.read(into) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// Fills the buffer before the deadline: a peer that sends byte by byte gets no more time.
pub fn read_by(
    sock: &mut std::os::unix::net::UnixStream,
    mut into: &mut [u8],
    until: std::time::Instant,
) -> io::Result<()> {
    while !into.is_empty() {
        let left = until.saturating_duration_since(std::time::Instant::now());
        if left.is_zero() {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "no answer in time"));
        }
        sock.set_read_timeout(Some(left))?;
        match sock.read(into) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => into = &mut into[n..],
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// The peer of a Unix socket, from the kernel: uid, gid, pid.
pub fn peer_cred(fd: BorrowedFd<'_>) -> io::Result<(u32, u32, u32)> {
    let c = sockopt::socket_peercred(fd)?;
    Ok((c.uid.as_raw(), c.gid.as_raw(), c.pid.as_raw_nonzero().get() as u32))
}

/// Whether an accept failed for want of descriptors or memory: wait, do not give up.
pub fn is_scarcity(e: &io::Error) -> bool {
    use rustix::io::Errno;
    [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM]
        .iter()
        .any(|n| e.raw_os_error() == Some(n.raw_os_error()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;
    use std::time::{Duration, Instant};

    #[test]
    fn an_answer_that_comes_byte_by_byte_is_waited_for_no_longer_than_a_whole_one() {
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(b"whole").unwrap();
        let mut got = [0u8; 5];
        read_by(&mut ours, &mut got, Instant::now() + Duration::from_secs(20)).unwrap();
        assert_eq!(&got, b"whole");
        let dribble = std::thread::spawn(move || {
            while theirs.write_all(b"x").is_ok() {
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let wait = Duration::from_millis(100);
        let mut much = [0u8; 400];
        let e = read_by(&mut ours, &mut much, Instant::now() + wait).unwrap_err();
        assert!(matches!(e.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock), "{e}");
        drop(ours);
        dribble.join().unwrap();
    }
}
