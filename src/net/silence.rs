//! A peer whose host is gone sends nothing any more, not even an acknowledgement: its connection is
//! over after a given time of such silence. A program that does nothing, or is stopped, is not
//! silent in this sense: its system answers the probes of ours.

use super::sock::{Sock, probe_within};
use std::os::fd::AsFd;
use std::time::Duration;

/// The longest silence of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SilenceLimit {
    limit_us: u64,
    /// When the silence is looked at next, microseconds.
    look_at: u64,
}

impl SilenceLimit {
    /// Begins to watch a TCP connection; `now`: microseconds.
    pub fn begin(sock: &Sock, limit: Duration, now: u64) -> Option<SilenceLimit> {
        let Sock::Tcp(stream) = sock else { return None };
        probe_within(stream.as_fd(), limit);
        let limit_us = u64::try_from(limit.as_micros()).unwrap_or(u64::MAX);
        Some(SilenceLimit { limit_us, look_at: now.saturating_add(limit_us) })
    }

    /// When the peer is gone unless a look finds that it is not.
    pub fn deadline(&self) -> u64 {
        self.look_at
    }

    /// Puts a deadline that is over off by what is left of the limit.
    pub fn look(&mut self, sock: &Sock, now: u64) {
        if self.look_at > now {
            return;
        }
        let Ok(silent) = crate::sys::raw::tcp_silence(sock.as_fd()) else {
            // such a system notices nothing
            self.look_at = u64::MAX;
            return;
        };
        let silent = u64::try_from(silent.as_micros()).unwrap_or(u64::MAX);
        self.look_at = now.saturating_add(self.limit_us.saturating_sub(silent));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn pair() -> (Sock, std::net::TcpStream) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let ours = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (theirs, _) = listener.accept().unwrap();
        ours.set_nonblocking(true).unwrap();
        (Sock::Tcp(mio::net::TcpStream::from_std(ours)), theirs)
    }

    #[test]
    fn silence_of_a_peer_is_counted_from_its_last_word() {
        let (sock, mut peer) = pair();
        let limit = Duration::from_secs(60);
        let mut silence = SilenceLimit::begin(&sock, limit, 0).unwrap();
        assert_eq!(silence.deadline(), 60_000_000);
        std::thread::sleep(Duration::from_millis(1300));
        // it is not time yet
        silence.look(&sock, 59_000_000);
        assert_eq!(silence.deadline(), 60_000_000);
        silence.look(&sock, 60_000_000);
        let left = silence.deadline() - 60_000_000;
        assert!((50_000_000..59_000_000).contains(&left), "{left}");
        peer.write_all(b"x").unwrap();
        std::thread::sleep(Duration::from_millis(50));
        silence.look(&sock, 130_000_000);
        let left = silence.deadline() - 130_000_000;
        assert!((59_000_000..=60_000_000).contains(&left), "{left}");
    }

    #[test]
    fn system_of_a_peer_that_does_nothing_answers_probes() {
        let (sock, _peer) = pair();
        let mut silence = SilenceLimit::begin(&sock, Duration::from_secs(3), 0).unwrap();
        std::thread::sleep(Duration::from_millis(4500));
        silence.look(&sock, 4_500_000);
        // probed after one second, and every second since
        assert!(silence.deadline() > 4_500_000 + 1_000_000, "{silence:?}");
    }

    #[test]
    fn connection_within_the_host_is_not_watched() {
        let (ours, _theirs) = mio::net::UnixStream::pair().unwrap();
        assert_eq!(SilenceLimit::begin(&Sock::Unix(ours), Duration::from_secs(3), 0), None);
    }
}
