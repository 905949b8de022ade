//! Ports that a launcher keeps for its daemons: while a daemon is away, nobody else on the host
//! can take its port. A daemon gets its sockets as its standard input (the listener) and standard
//! output (for datagrams).
//!
//! Invariants: a kept port answers nobody while its daemon is away: callers are refused at once by
//! the kernel, as nobody but the daemon has the socket that listens, even if the launcher does
//! nothing; datagrams are refused once the launcher has noticed. A daemon puts /dev/null in place
//! of what it was given, so that none of its children has the socket.

use super::limits::BACKLOG;
use super::sock::{keep_alive, listen_tcp, new, open_udp};
use mio::net::{TcpListener, UdpSocket};
use rustix::net::{
    RecvFlags, SocketType, bind, connect, connect_unspec, getsockname, listen, recv, sockopt,
};
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Datagrams that came too late for a daemon, thrown away at once: more than a socket holds.
const LATE_MAX: usize = 65_536;

/// A port that is taken, by a socket that never listens and never goes: it shares the port with
/// sockets of this very uid alone (SO_REUSEPORT), so that nobody else gets it. Each daemon is given
/// one of its own to listen with.
#[derive(Debug)]
pub struct HeldPort {
    guard: OwnedFd,
    datagrams: Option<OwnedFd>,
}

/// The sockets that a daemon is given.
#[derive(Debug)]
pub struct PortSockets {
    pub listener: OwnedFd,
    pub datagrams: Option<OwnedFd>,
}

impl HeldPort {
    /// Takes the port; `udp`: for datagrams too.
    pub fn bind(at: SocketAddr, udp: bool) -> io::Result<HeldPort> {
        let guard = shared(at)?;
        sockopt::set_socket_reuseaddr(&guard, false)?;
        // at listen(2) the kernel forgets that others might have shared the address
        listen(&shared(at)?, BACKLOG)?;
        let datagrams = udp.then(|| open_udp(at).map(OwnedFd::from)).transpose()?;
        let held = HeldPort { guard, datagrams };
        held.rest()?;
        Ok(held)
    }

    /// A kept port that was handed on through exec.
    pub fn inherited(fds: &[i32]) -> io::Result<HeldPort> {
        let (mut guard, mut datagrams) = (None, None);
        for fd in fds {
            let fd = crate::sys::raw::inherited_fd(*fd)?;
            // a launcher of an earlier version hands on the one that listens before its guard
            match sockopt::socket_type(&fd)? {
                SocketType::STREAM => guard = Some(fd),
                _ => datagrams = Some(fd),
            }
        }
        let guard = guard.ok_or(io::ErrorKind::InvalidData)?;
        Ok(HeldPort { guard, datagrams })
    }

    /// The descriptors, in the order that [`HeldPort::inherited`] expects.
    pub fn fds(&self) -> impl Iterator<Item = &OwnedFd> {
        std::iter::once(&self.guard).chain(&self.datagrams)
    }

    /// The address.
    pub fn at(&self) -> Option<SocketAddr> {
        address(self.guard.as_fd())
    }

    /// The sockets for a daemon that is to serve.
    pub fn copies(&self) -> io::Result<PortSockets> {
        if let Some(fd) = &self.datagrams {
            connect_unspec(fd)?;
        }
        let copy = |fd: &OwnedFd| rustix::io::fcntl_dupfd_cloexec(fd, 3);
        let datagrams = self.datagrams.as_ref().map(copy).transpose()?;
        let at = self.at().ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(PortSockets { listener: shared(at)?, datagrams })
    }

    /// Refuses datagrams while there is no daemon.
    pub fn rest(&self) -> io::Result<()> {
        let Some(fd) = &self.datagrams else { return Ok(()) };
        // bound to itself it takes datagrams of nobody else
        if let Some(own) = self.at() {
            connect(fd, &own)?;
        }
        let mut byte = [0u8; 1];
        for _ in 0..LATE_MAX {
            if recv(fd, &mut byte, RecvFlags::DONTWAIT | RecvFlags::TRUNC).is_err() {
                break;
            }
        }
        Ok(())
    }
}

/// A socket with an address that others of this uid may have, too.
fn shared(at: SocketAddr) -> io::Result<OwnedFd> {
    let fd = new(&at, SocketType::STREAM, true)?;
    // connections of a predecessor may linger
    sockopt::set_socket_reuseaddr(&fd, true)?;
    sockopt::set_socket_reuseport(&fd, true)?;
    bind(&fd, &at)?;
    Ok(fd)
}

fn address(fd: BorrowedFd<'_>) -> Option<SocketAddr> {
    getsockname(fd).ok().and_then(|own| SocketAddr::try_from(own).ok())
}

/// The socket that a standard descriptor of ours is, where it has this kind and address;
/// /dev/null takes its place.
fn taken(from: BorrowedFd<'_>, kind: SocketType, at: SocketAddr) -> Option<OwnedFd> {
    if address(from) != Some(at) || !matches!(sockopt::socket_type(from), Ok(k) if k == kind) {
        return None;
    }
    let fd = rustix::io::fcntl_dupfd_cloexec(from, 3).ok()?;
    let null = File::options().read(true).write(true).open("/dev/null").ok()?;
    let hidden = match kind {
        SocketType::STREAM => rustix::stdio::dup2_stdin(&null),
        _ => rustix::stdio::dup2_stdout(&null),
    };
    hidden.ok().map(|()| fd)
}

/// Listens for TCP on this address, with the launcher's socket where it has given us one.
pub fn listen_as_given(at: SocketAddr) -> io::Result<TcpListener> {
    let Some(fd) = taken(rustix::stdio::stdin(), SocketType::STREAM, at) else {
        return listen_tcp(at);
    };
    let _ = sockopt::set_tcp_nodelay(&fd, true);
    keep_alive(fd.as_fd());
    listen(&fd, BACKLOG)?;
    Ok(TcpListener::from_std(std::net::TcpListener::from(fd)))
}

/// Takes datagrams on this address, with the launcher's socket where it has given us one.
pub fn datagrams_as_given(at: SocketAddr) -> io::Result<UdpSocket> {
    match taken(rustix::stdio::stdout(), SocketType::DGRAM, at) {
        Some(fd) => Ok(UdpSocket::from_std(std::net::UdpSocket::from(fd))),
        None => open_udp(at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpStream, UdpSocket};
    use std::time::Duration;

    fn free_port() -> SocketAddr {
        std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
    }

    /// A daemon may end before it listens: the next one must be able to answer its callers.
    #[test]
    fn a_held_port_that_rested_twice_serves_whoever_listens_next() {
        let port = free_port();
        let held = HeldPort::bind(port, false).unwrap();
        held.rest().unwrap();
        held.rest().unwrap();
        assert!(TcpStream::connect(port).is_err(), "nobody listens");
        let listener = held.copies().unwrap().listener;
        listen(&listener, BACKLOG).unwrap();
        let mut caller = TcpStream::connect(port).unwrap();
        let listener = std::net::TcpListener::from(listener);
        listener.set_nonblocking(false).unwrap();
        let (mut accepted, _) = listener.accept().unwrap();
        accepted.write_all(b"x").unwrap();
        drop(accepted);
        let mut text = String::new();
        caller.read_to_string(&mut text).unwrap();
        assert_eq!(text, "x");
    }

    /// A launcher that is stopped notices nothing: callers of a dead daemon are refused anyway.
    #[test]
    fn a_held_port_refuses_callers_as_soon_as_its_daemon_is_gone() {
        let port = free_port();
        let held = HeldPort::bind(port, false).unwrap();
        let listener = held.copies().unwrap().listener;
        listen(&listener, BACKLOG).unwrap();
        assert!(TcpStream::connect(port).is_ok());
        drop(listener);
        let refused = TcpStream::connect(port).unwrap_err().kind();
        assert_eq!(refused, io::ErrorKind::ConnectionRefused);
        assert!(std::net::TcpListener::bind(port).is_err(), "the port is free");
        // the next one of the same launcher
        let listener = held.copies().unwrap().listener;
        listen(&listener, BACKLOG).unwrap();
        assert!(TcpStream::connect(port).is_ok());
    }

    #[test]
    fn a_held_port_takes_datagrams_only_while_its_daemon_serves() {
        let at = free_port();
        let held = HeldPort::bind(at, true).unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.connect(at).unwrap();
        sender.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let refused = || {
            let _ = sender.send(b"nobody");
            sender.recv(&mut [0; 8]).unwrap_err().kind() == io::ErrorKind::ConnectionRefused
        };
        for round in 0..3 {
            assert!(refused(), "round {round}");
            assert!(UdpSocket::bind(at).is_err(), "the port is free in round {round}");
            let copy = UdpSocket::from(held.copies().unwrap().datagrams.unwrap());
            copy.set_nonblocking(false).unwrap();
            copy.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            sender.send(b"daemon").unwrap();
            let mut got = [0; 16];
            let (n, from) = copy.recv_from(&mut got).unwrap();
            assert_eq!((&got[..n], from), (&b"daemon"[..], sender.local_addr().unwrap()));
            assert_eq!(copy.send_to(b"answer", from).unwrap(), 6);
            assert_eq!(sender.recv(&mut got).unwrap(), 6);
            // the daemon ends with this unread
            sender.send(b"late").unwrap();
            drop(copy);
            held.rest().unwrap();
        }
        let copy = UdpSocket::from(held.copies().unwrap().datagrams.unwrap());
        copy.set_nonblocking(true).unwrap();
        let late = copy.recv_from(&mut [0; 16]).unwrap_err().kind();
        assert_eq!(late, io::ErrorKind::WouldBlock);
    }

    #[test]
    fn a_held_port_crosses_exec_as_its_descriptors() {
        let held = HeldPort::bind(free_port(), true).unwrap();
        assert_eq!(held.fds().count(), 2);
        assert_eq!(HeldPort::bind(free_port(), false).unwrap().fds().count(), 1);
        assert!(HeldPort::inherited(&[]).is_err());
    }
}
