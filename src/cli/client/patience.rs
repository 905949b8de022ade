//! How long to wait, how often to try, and what is said between tries. See LSB_API_CONNTIMEOUT,
//! LSB_API_RECVTIMEOUT and LSB_NTRIES in lsf.conf(5).

use super::LocalSite;
use super::error::ClientError;
use crate::cli::personal::stopped;
use std::io::Write;
use std::time::Duration;

/// Seconds to connect where LSB_API_CONNTIMEOUT says nothing.
const CONN_TIMEOUT: u64 = 10;
/// Seconds to wait for an answer where LSB_API_RECVTIMEOUT says nothing.
const RECV_TIMEOUT: u64 = 10;
/// Seconds for LIM and res where LSF_API_CONNTIMEOUT and LSF_API_RECVTIMEOUT say nothing.
pub(super) const BASE_CONN_TIMEOUT: u64 = 5;
const BASE_RECV_TIMEOUT: u64 = 20;
/// Pauses between tries: the first ones short, because a master that restarts is soon back.
const PAUSES_MS: [u64; 6] = if cfg!(test) { [1; 6] } else { [100, 200, 500, 1000, 2000, 5000] };
/// Connections in a row that are made and then lost: a master that restarts refuses some in
/// between. A peer that hangs up so often does not read the request.
pub const LOST_IN_A_ROW: u32 = 12;

/// How long to wait and how often to try.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    pub connect: Duration,
    pub answer: Duration,
    /// The number of tries; `None`: no limit.
    pub tries: Option<u32>,
}

impl Patience {
    /// Reads the patience from lsf.conf; LSB_NTRIES of the environment stands above it.
    pub fn of(site: &LocalSite) -> Patience {
        let secs = |name, default| Duration::from_secs(site.lsf.int(name, default).max(1));
        let tries = std::env::var("LSB_NTRIES").ok();
        let tries = tries.as_deref().or(site.lsf.get("LSB_NTRIES"));
        let tries = tries.and_then(|v| v.trim().parse().ok());
        Patience {
            connect: secs("LSB_API_CONNTIMEOUT", CONN_TIMEOUT),
            answer: secs("LSB_API_RECVTIMEOUT", RECV_TIMEOUT),
            tries: tries.map(|n: u32| n.max(1)),
        }
    }

    /// The patience with LIM and res: LSF_API_CONNTIMEOUT, LSF_API_RECVTIMEOUT; one try.
    pub fn base(site: &LocalSite) -> Patience {
        let secs = |name, default| Duration::from_secs(site.lsf.int(name, default).max(1));
        Patience {
            connect: secs("LSF_API_CONNTIMEOUT", BASE_CONN_TIMEOUT),
            answer: secs("LSF_API_RECVTIMEOUT", BASE_RECV_TIMEOUT),
            tries: Some(1),
        }
    }

    /// One try, and no more.
    pub fn once(self) -> Patience {
        Patience { tries: Some(1), ..self }
    }
}

/// Tries until it works, cannot work, or was tried often enough.
pub(super) fn persist<T>(
    patience: Patience,
    site: &LocalSite,
    err: &mut dyn Write,
    mut f: impl FnMut(&mut dyn Write) -> Result<T, ClientError>,
) -> Result<T, ClientError> {
    let mut lost = 0;
    for n in 1u32.. {
        let error = match f(err) {
            Err(e) if e.passing() => e,
            done => return done,
        };
        lost = if matches!(error, ClientError::Lost(_)) { lost + 1 } else { 0 };
        // whoever waits without end would wait in vain
        if patience.tries.is_none()
            && matches!(error, ClientError::Down(_))
            && let Some(words) = stopped(site)
        {
            return Err(ClientError::Conf(words));
        }
        // A connection lost in mid-answer is often a master that is back at once.
        if n > 1 || !matches!(error, ClientError::Lost(_)) {
            let _ = writeln!(err, "{}", error.notice().words(site));
        }
        if patience.tries.is_some_and(|max| n >= max) || lost >= LOST_IN_A_ROW {
            return Err(error);
        }
        let pause = PAUSES_MS[(n as usize - 1).min(PAUSES_MS.len() - 1)];
        std::thread::sleep(Duration::from_millis(pause));
    }
    Err(ClientError::Unexpected)
}

#[cfg(test)]
mod tests {
    use super::super::error::{DOWN, UNREACHED, WaitNotice};
    use super::*;
    use std::io;

    fn site() -> LocalSite {
        let lsf = crate::conf::LsfConf::default();
        LocalSite { envdir: "/conf".into(), lsf, host: "hosta".into(), shared_machine: false }
    }

    #[test]
    fn a_site_has_its_own_words() {
        let mut site = site();
        let said = |site: &LocalSite, error: fn(String) -> ClientError| {
            let (once, mut out) = (Patience::of(site).once(), Vec::new());
            let fail = |_: &mut dyn Write| -> Result<(), ClientError> { Err(error(String::new())) };
            persist(once, site, &mut out, fail).unwrap_err();
            String::from_utf8(out).unwrap()
        };
        let both =
            |site: &LocalSite| (said(site, ClientError::Down), said(site, ClientError::Timeout));
        assert_eq!(both(&site), (format!("{DOWN}\n"), format!("{UNREACHED}\n")));
        site.lsf.set("LSB_MBD_DOWN_MSG", "Back at noon.");
        site.lsf.set("LSB_MBD_CONNECT_FAIL_MSG", "Is the network up?");
        site.lsf.set("LSB_MBD_BUSY_MSG", "Patience.");
        assert_eq!(both(&site), ("Back at noon.\n".into(), "Is the network up?\n".into()));
        assert_eq!(WaitNotice::Processing.words(&site), "Patience.");
    }

    /// How often it is tried with these errors, one after the other and then again.
    fn tries(patience: u32, errors: &[fn() -> ClientError]) -> (u32, ClientError) {
        let times = Duration::from_secs(1);
        let patience = Patience { connect: times, answer: times, tries: Some(patience) };
        let mut n = 0;
        let got = persist(patience, &site(), &mut io::sink(), |_| -> Result<(), ClientError> {
            n += 1;
            Err(errors[(n as usize - 1) % errors.len()]())
        });
        (n, got.unwrap_err())
    }

    #[test]
    fn server_that_hangs_up_each_time_is_not_asked_for_ever() {
        let lost: fn() -> ClientError = || ClientError::Lost(String::new());
        let down: fn() -> ClientError = || ClientError::Down(String::new());
        let (n, error) = tries(1000, &[lost]);
        assert_eq!((n, matches!(error, ClientError::Lost(_))), (LOST_IN_A_ROW, true));
        // one that restarts again and again is another matter
        assert_eq!(tries(100, &[lost, lost, down]).0, 100);
        assert_eq!(tries(3, &[lost]).0, 3);
    }
}
