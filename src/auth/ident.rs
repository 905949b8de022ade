//! The asking side of RFC 1413: whose is the other end of this connection?
//!
//! The answer is trusted: nobody but root of the client's host may answer on the port, and nobody
//! may stand between. Blocks, up to [`WAIT`]: it runs on a thread of its own.

use crate::net::sock;
use rustix::io::retry_on_intr;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use std::io::{ErrorKind, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Longest wait for connection and answer together.
pub const WAIT: Duration = Duration::from_secs(5);
/// Longest answer, bytes (RFC 1413: 1000).
const MAX_ANSWER: usize = 1000;

/// The user at `peer` of a connection to `ours`.
pub fn ask(ours: SocketAddr, peer: SocketAddr, port: u16) -> Result<String, String> {
    let until = Instant::now() + WAIT;
    let words = |e: std::io::Error| match e.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => "no answer in time".to_string(),
        _ => crate::sys::words(&e),
    };
    let mut sock = connect(ours.ip(), SocketAddr::new(peer.ip(), port)).map_err(words)?;
    let (theirs, here) = (peer.port(), ours.port());
    sock.write_all(format!("{theirs}, {here}\r\n").as_bytes()).map_err(words)?;
    let mut text = Vec::new();
    let mut buf = [0; 256];
    while !text.contains(&b'\n') {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err("no answer in time".into());
        }
        set_socket_timeout(&sock, Timeout::Recv, Some(left)).map_err(|e| words(e.into()))?;
        match sock::read_through(&mut sock, &mut buf).map_err(words)? {
            0 => break,
            n => text.extend_from_slice(&buf[..n]),
        }
        if text.len() > MAX_ANSWER {
            return Err("an answer that is too long".into());
        }
    }
    answer(&text, theirs, here)
}

fn connect(from: IpAddr, to: SocketAddr) -> std::io::Result<TcpStream> {
    let fd = sock::tcp_from(Some(from), to, false)?;
    // Linux holds connect(2) to the send timeout.
    set_socket_timeout(&fd, Timeout::Send, Some(WAIT))?;
    match retry_on_intr(|| rustix::net::connect(&fd, &to)) {
        Err(rustix::io::Errno::INPROGRESS) => Err(ErrorKind::TimedOut.into()),
        done => done.map(|()| TcpStream::from(fd)).map_err(Into::into),
    }
}

/// Reads `PORT , PORT : USERID : SYSTEM : user`.
fn answer(text: &[u8], theirs: u16, ours: u16) -> Result<String, String> {
    let line = std::str::from_utf8(text).map_err(|_| "not text")?;
    let line = line.split_once('\n').ok_or("half an answer")?.0;
    let mut fields = line.trim_end_matches('\r').splitn(4, ':');
    let mut next = || fields.next().map(str::trim);
    let ports = next().unwrap_or_default().split_once(',');
    let same = |word: &str, port: u16| word.trim().parse() == Ok(port);
    if !ports.is_some_and(|(a, b)| same(a, theirs) && same(b, ours)) {
        return Err("an answer to another question".into());
    }
    match (next(), next(), next()) {
        (Some("USERID"), Some(system), Some(user)) => {
            let system = system.split(',').next().unwrap_or_default().trim();
            if system.eq_ignore_ascii_case("OTHER") || !crate::sys::users::is_name(user) {
                return Err("no user's name in the answer".into());
            }
            Ok(user.to_owned())
        }
        (Some("ERROR"), Some(why), _) => {
            let why: String = why.chars().take(40).collect();
            Err(format!("the answer {}", why.escape_debug()))
        }
        _ => Err("no answer that RFC 1413 knows".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_of_an_ident_server_is_read_strictly() {
        let ok = |t: &str| answer(t.as_bytes(), 6193, 23);
        assert_eq!(ok("6193, 23 : USERID : UNIX : stjohns\r\n"), Ok("stjohns".into()));
        assert_eq!(ok("6193,23:USERID:UNIX,US-ASCII:ann\n"), Ok("ann".into()));
        for (bad, why) in [
            ("6193, 23 : USERID : UNIX : ann", "half"),
            ("6193, 24 : USERID : UNIX : ann\r\n", "another question"),
            ("23, 6193 : USERID : UNIX : ann\r\n", "another question"),
            ("6193, 23 : USERID : OTHER : ann\r\n", "no user's name"),
            ("6193, 23 : USERID : UNIX : a b\r\n", "no user's name"),
            ("6193, 23 : USERID : UNIX : 0\r\n", "no user's name"),
            ("6193, 23 : USERID : UNIX :\r\n", "no user's name"),
            ("6193, 23 : ERROR : NO-USER\r\n", "NO-USER"),
            ("6193, 23 : ERROR : \u{1b}[2J\r\n", "\\u{1b}"),
            ("6193, 23\r\n", "no answer that"),
            ("\r\n", "another question"),
        ] {
            let got = ok(bad).unwrap_err();
            assert!(got.contains(why), "{bad:?}: {got}");
        }
    }
}
