//! Waiting for a condition of jobs (bwait, bsub -K; bjobs --watch listens likewise): one
//! connection that stays open; where it is lost, another is made and the same is asked again. A
//! silent server is found by pings.

use super::client::{self, Client, ClientError};
use super::site::LocalSite;
use crate::proto::Msg;
use crate::proto::client::{ClientMsg, Wait, Waited};
use std::io::Write;
use std::time::{Duration, Instant};

/// Silence after which the server is asked whether it is still there.
const QUIET: Duration = Duration::from_secs(60);
/// Longest wait for the answer to that.
const PONG: Duration = Duration::from_secs(30);
/// Pause before another connection after one was lost, so that a server that accepts and hangs
/// up is not called in a tight loop.
const AGAIN: Duration = Duration::from_millis(if cfg!(test) { 1 } else { 200 });

/// A connection that lasted as long as this was a good one.
const GOOD: Duration = Duration::from_secs(5);

/// Connections that were lost one after the other.
#[derive(Debug, Default)]
pub struct Losses(u32);

impl Losses {
    /// After a connection that was made `since`: whether another one is worth it. A server that
    /// hangs up each time does not do what it is asked. Pauses before the next one.
    pub fn again(&mut self, since: Instant) -> bool {
        self.0 = if since.elapsed() >= GOOD { 1 } else { self.0 + 1 };
        let more = self.0 < client::LOST_IN_A_ROW;
        if more {
            std::thread::sleep(AGAIN);
        }
        more
    }
}

/// Waits until the condition is true, can never be, or the time is over.
pub fn until(site: &LocalSite, wait: &Wait, err: &mut dyn Write) -> Result<Waited, ClientError> {
    let end = (wait.timeout > 0).then(|| Instant::now() + Duration::from_secs(wait.timeout));
    let mut losses = Losses::default();
    loop {
        let left = end.map(|e| e.saturating_duration_since(Instant::now()));
        let timeout = match left {
            Some(left) if left.is_zero() => return Ok(Waited::Timeout),
            // Whole seconds, never none: 0 would be for ever.
            Some(left) => left.as_secs().max(1),
            None => 0,
        };
        let ask = Msg::Client(ClientMsg::Wait(Wait { timeout, ..wait.clone() }));
        let mut client = client::mbatchd(site, err)?;
        let since = Instant::now();
        match client.send(&ask).and_then(|()| listen(&mut client)) {
            Err(e) if passing(&e) && losses.again(since) => {}
            done => return done,
        }
    }
}

/// Whether another connection may do better.
pub fn passing(e: &ClientError) -> bool {
    matches!(e, ClientError::Lost(_) | ClientError::Timeout(_) | ClientError::Down(_))
}

fn listen(client: &mut Client) -> Result<Waited, ClientError> {
    match hear(client)? {
        ClientMsg::Waited(w) => Ok(w),
        _ => Err(ClientError::Unexpected),
    }
}

/// The next thing that the server says, however long it takes.
pub fn hear(client: &mut Client) -> Result<ClientMsg, ClientError> {
    let mut asked = false;
    loop {
        match client.next(Some(if asked { PONG } else { QUIET })) {
            Ok(Msg::Client(said)) => return Ok(said),
            Ok(Msg::Pong { .. }) => asked = false,
            Ok(Msg::Ping { n }) => client.send(&Msg::Pong { n })?,
            Ok(_) => return Err(ClientError::Unexpected),
            Err(ClientError::Timeout(_)) if !asked => {
                client.send(&Msg::Ping { n: 0 })?;
                asked = true;
            }
            Err(e) => return Err(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_hangs_up_each_time_is_left() {
        let mut losses = Losses::default();
        let calls = (1..1000).find(|_| !losses.again(Instant::now()));
        assert_eq!(calls, Some(client::LOST_IN_A_ROW as usize));
        // one that was waited on for a while may have restarted
        let long_ago = Instant::now().checked_sub(GOOD).unwrap();
        assert!(losses.again(long_ago) && losses.again(Instant::now()));
    }
}
