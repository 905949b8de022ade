//! A command's connection to a daemon: blocking, without threads.
//!
//! One command costs one connection to authd and one to the daemon. A submission, which carries
//! the user's environment, leaves only after the server has proved itself; other requests
//! travel together with our proof, and nothing that comes back is believed before the server's.
//!
//! If no daemon answers, the command prints LSF's words on stderr and tries again, LSB_NTRIES times
//! or for ever.
//!
//! Here is who can be asked. How a connection is made is in client/dial.rs, a connection and what
//! is said over it in talk.rs, how often it is tried in patience.rs, what is said when it fails in
//! error.rs.

mod dial;
mod error;
mod patience;
mod talk;

use super::ctx::Ctx;
use super::site::LocalSite;
use crate::proto::client::{ClientMsg, Control, Outcome};
use crate::proto::{Daemon, Msg};
use dial::{Call, candidates};
use patience::{BASE_CONN_TIMEOUT, persist};
use std::io::{self, Write};
use std::time::Duration;

pub(super) use error::lost;
pub use error::{ClientError, DOWN, PROCESSING, UNREACHED};
pub use patience::{LOST_IN_A_ROW, Patience};
pub use talk::Client;
pub(super) use talk::read_some;

/// A connection to mbatchd on whichever candidate answers; tries again as [`Patience`] says.
pub fn mbatchd(site: &LocalSite, err: &mut dyn Write) -> Result<Client, ClientError> {
    mbatchd_with(site, Patience::of(site), err)
}

/// Connects like [`mbatchd`], with another patience.
pub fn mbatchd_with(
    site: &LocalSite,
    patience: Patience,
    err: &mut dyn Write,
) -> Result<Client, ClientError> {
    persist(patience, site, err, |_| Client::dial(site, Daemon::Mbatchd, patience))
}

/// Asks mbatchd of this process's cluster one thing, as [`ask_at`] does, and hangs up.
pub fn ask(ctx: &mut Ctx, msg: ClientMsg) -> Result<ClientMsg, ClientError> {
    let site = super::site::find().map_err(|e| ClientError::Conf(e.to_string()))?;
    match ask_at(&site, &Msg::Client(msg), ctx.err)? {
        (_, Msg::Client(answer)) => Ok(answer),
        _ => Err(ClientError::Unexpected),
    }
}

/// Asks mbatchd of this process's cluster one thing and hangs up. The message is told whether it
/// was sent before: mbatchd may have acted on it, and its answer was lost.
///
/// # Errors
/// As [`ask`].
pub fn ask_again(ctx: &mut Ctx, msg: impl Fn(bool) -> ClientMsg) -> Result<ClientMsg, ClientError> {
    let site = super::site::find().map_err(|e| ClientError::Conf(e.to_string()))?;
    let patience = Patience::of(&site);
    let mut sent = false;
    persist(patience, &site, ctx.err, |err| {
        let mut client = Client::dial(&site, Daemon::Mbatchd, patience)?;
        let again = std::mem::replace(&mut sent, true);
        match client.call(&Msg::Client(msg(again)), err)? {
            Msg::Client(answer) => Ok(answer),
            _ => Err(ClientError::Unexpected),
        }
    })
}

/// Asks mbatchd one thing that may be asked twice (a submission carries its own request id): a
/// lost connection is made again and the question repeated. The connection is returned for what
/// follows the answer.
pub fn ask_at(
    site: &LocalSite,
    msg: &Msg,
    err: &mut dyn Write,
) -> Result<(Client, Msg), ClientError> {
    let patience = Patience::of(site);
    persist(patience, site, err, |err| {
        let mut client = Client::dial(site, Daemon::Mbatchd, patience)?;
        client.send(msg)?;
        let answer = client.answer(err)?;
        Ok((client, answer))
    })
}

/// Bytes of a request id.
const REQUEST_BYTES: usize = 16;

fn request_id() -> Result<String, ClientError> {
    let bytes = crate::sys::random::<REQUEST_BYTES>().map_err(|e| lost(&e))?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}

/// The outcomes of a control request, and why it ended before its end, if it did.
pub type Controlled = (Vec<Outcome>, Option<ClientError>);

/// Has mbatchd act on jobs. The answer may come in pieces. A lost connection is made again and the
/// request repeated under the same id, so that the answer tells what the first one would have.
///
/// # Errors
/// Where nothing is known to have been done.
pub fn control(ctx: &mut Ctx, mut control: Control) -> Result<Controlled, ClientError> {
    let site = super::site::find().map_err(|e| ClientError::Conf(e.to_string()))?;
    let patience = Patience::of(&site);
    (control.request, control.pieces) = (request_id()?, true);
    let msg = Msg::Client(ClientMsg::Control(Box::new(control)));
    persist(patience, &site, ctx.err, |err| {
        let mut client = Client::dial(&site, Daemon::Mbatchd, patience)?;
        client.send(&msg)?;
        let mut all = Vec::new();
        loop {
            match client.answer(err) {
                Ok(Msg::Client(ClientMsg::Controlled { outcomes, more })) => {
                    all.extend(outcomes);
                    if !more {
                        return Ok((all, None));
                    }
                }
                Ok(_) => return Err(ClientError::Unexpected),
                Err(ClientError::Refused(why)) if !all.is_empty() => {
                    return Ok((all, Some(ClientError::Refused(why))));
                }
                Err(e) => return Err(e),
            }
        }
    })
}

/// A connection to a LIM: this host's, else one of LSF_SERVER_HOSTS, else a master candidate's.
/// LSF_LIM_API_NTRIES tries, one by default; the words for its failure: `LIM is down; try later`.
pub fn lim(site: &LocalSite) -> Result<Client, ClientError> {
    let tries = std::env::var("LSF_LIM_API_NTRIES").ok();
    let tries = tries.as_deref().or(site.lsf.get("LSF_LIM_API_NTRIES"));
    let tries = tries.and_then(|v| v.trim().parse().ok()).unwrap_or(1);
    let (once, tries) = (Patience::base(site), Some(u32::max(tries, 1)));
    let patience = Patience { tries, ..once };
    persist(patience, site, &mut io::sink(), |_| Client::dial(site, Daemon::Lim, once))
}

/// A connection to the LIM of one host. One try.
pub fn lim_of(site: &LocalSite, host: &str) -> Result<Client, ClientError> {
    at(site, Daemon::Lim, host)
}

/// A connection to the res of one host. One try.
pub fn res_of(site: &LocalSite, host: &str) -> Result<Client, ClientError> {
    at(site, Daemon::Res, host)
}

/// A connection to the load balancer's server on one host. One try.
pub fn nlb_of(site: &LocalSite, host: &str) -> Result<Client, ClientError> {
    at(site, Daemon::NlbServer, host)
}

fn at(site: &LocalSite, daemon: Daemon, host: &str) -> Result<Client, ClientError> {
    let table = match site.lsf.master_list().is_empty() {
        true => candidates(site, daemon)?.1,
        false => site.addresses(&[host, &site.host]),
    };
    let mut patience = Patience::base(site);
    if daemon == Daemon::Res && site.lsf.get("LSF_RES_TIMEOUT").is_some() {
        let secs = site.lsf.int("LSF_RES_TIMEOUT", BASE_CONN_TIMEOUT);
        patience.connect = Duration::from_secs(secs.max(1));
    }
    let call = Call { site, daemon, patience, table: &table };
    let again = if daemon == Daemon::Res { site.lsf.int("LSF_RES_CONNECT_RETRY", 0) } else { 0 };
    let tries = u32::try_from(again).unwrap_or(u32::MAX).saturating_add(1);
    // its words are those of the last try
    let patience = Patience { tries: Some(tries), ..patience };
    persist(patience, site, &mut io::sink(), |_| call.to(host))
}
