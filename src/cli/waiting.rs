//! Waiting for a condition of jobs (bwait, bsub -K; bjobs --watch listens likewise): one
//! connection that stays open; where it is lost, another is made and the same is asked again. A
//! silent server is found by pings.

use super::client::{self, Client, ClientError};
use super::site::Site;
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
pub const AGAIN: Duration = Duration::from_millis(200);

/// Waits until the condition is true, can never be, or the time is over.
pub fn until(site: &Site, wait: &Wait, err: &mut dyn Write) -> Result<Waited, ClientError> {
    let end = (wait.timeout > 0).then(|| Instant::now() + Duration::from_secs(wait.timeout));
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
        match client.send(&ask).and_then(|()| listen(&mut client)) {
            Err(e) if passing(&e) => std::thread::sleep(AGAIN),
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
