//! A connection that is made, and what is said over it: questions, answers, streams. Nothing that
//! comes back is believed before the server's proof.

use super::error::{ClientError, lost};
use super::patience::Patience;
use crate::auth::shake::{self, Claims};
use crate::model::ByteStr;
use crate::model::reason::err;
use crate::net::sock;
use crate::proto::client::{ClientMsg, Submit, env_hash};
use crate::proto::frame::{Decoder, MAX_FRAME, MAX_FRAME_USER, Session};
use crate::proto::res::ResMsg;
use crate::proto::{Msg, Refusal};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Bytes read at once, at first; most answers are short.
pub(super) const CHUNK: usize = 8 << 10;
/// Bytes read at once where answers are long.
const LONG_CHUNK: usize = 128 << 10;

/// An authenticated connection to one daemon.
pub struct Client {
    pub(super) sock: TcpStream,
    pub(super) session: Session,
    pub(super) dec: Decoder,
    pub(super) chunk: Vec<u8>,
    pub(super) out: Vec<u8>,
    pub(super) verified: bool,
    pub(super) patience: Patience,
    pub(super) claims: Claims,
    /// The daemon's host.
    pub(super) server: String,
    /// The message while an answer takes long.
    pub(super) processing: String,
    /// The receive timeout that is set on the socket.
    pub(super) waits: Option<Duration>,
    /// The environment that was submitted with last and its hash, if the daemon keeps it.
    pub(super) kept_env: Option<(ByteStr, String)>,
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.sock.as_fd()
    }
}

impl Client {
    /// This host as the cluster spells it, told by authd.
    pub fn local_host(&self) -> &str {
        &self.claims.host
    }

    /// The caller's name, told by authd.
    pub fn user(&self) -> &str {
        &self.claims.user
    }

    /// The host of the daemon.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Asks and waits for the answer. A refusal is an error.
    pub fn call(&mut self, msg: &Msg, err: &mut dyn Write) -> Result<Msg, ClientError> {
        self.send(msg)?;
        self.answer(err)
    }

    /// Submits a job: an environment that the daemon has from the submission before is named by
    /// its hash.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub fn submit(
        &mut self,
        mut submit: Submit,
        err: &mut dyn Write,
    ) -> Result<ClientMsg, ClientError> {
        let mut kept = self.kept_env.take().filter(|(env, _)| *env == submit.env);
        loop {
            let env = kept.as_mut().map(|(env, hash)| {
                if hash.is_empty() {
                    *hash = env_hash(env);
                }
                submit.env_hash.clone_from(hash);
                std::mem::take(&mut submit.env)
            });
            let msg = Msg::Client(ClientMsg::Submit(Box::new(submit)));
            let answer = self.call(&msg, err);
            let Msg::Client(ClientMsg::Submit(sent)) = msg else {
                return Err(ClientError::Unexpected);
            };
            submit = *sent;
            submit.env = env.unwrap_or(submit.env);
            match answer {
                Err(e) if kept.is_some() && e.code() == Some(err::ENV_GONE) => {
                    kept = None;
                    submit.env_hash.clear();
                }
                Ok(Msg::Client(answer)) => {
                    if matches!(answer, ClientMsg::Submitted { env_kept: true, .. }) {
                        self.kept_env = kept.or(Some((submit.env, String::new())));
                    }
                    return Ok(answer);
                }
                Ok(_) => return Err(ClientError::Unexpected),
                Err(e) => return Err(e),
            }
        }
    }

    /// Sends without waiting.
    pub fn send(&mut self, msg: &Msg) -> Result<(), ClientError> {
        // what carries the user's environment
        let private = match msg {
            Msg::Client(ClientMsg::Submit(_)) => true,
            Msg::Res(ResMsg::Run(_)) => true,
            Msg::Client(ClientMsg::Modify(m)) => m.env.is_some(),
            _ => false,
        };
        if !self.verified && private {
            self.verify()?;
        }
        let before = self.out.len();
        self.session.seal_msg(msg, &mut self.out)?;
        let len = self.out.len() - before;
        if len > MAX_FRAME_USER {
            self.out.truncate(before);
            let text = format!("the request is longer than {MAX_FRAME_USER} bytes");
            return Err(ClientError::Refused(Refusal::text(err::BAD_ARG, text)));
        }
        self.push()
    }

    /// The answer to what was asked, telling the user from time to time that it takes long.
    pub fn answer(&mut self, err: &mut dyn Write) -> Result<Msg, ClientError> {
        for n in 1u32.. {
            match self.next(Some(self.patience.answer)) {
                Err(ClientError::Timeout(w)) => {
                    let _ = writeln!(err, "{}", self.processing);
                    if self.patience.tries.is_some_and(|max| n >= max) {
                        return Err(ClientError::Timeout(w));
                    }
                }
                done => return done,
            }
        }
        Err(ClientError::Unexpected)
    }

    /// The next message; `wait` None: for ever.
    pub fn next(&mut self, wait: Option<Duration>) -> Result<Msg, ClientError> {
        self.verify()?;
        if wait != self.waits {
            set_socket_timeout(&self.sock, Timeout::Recv, wait).map_err(|e| lost(&e.into()))?;
            self.waits = wait;
            if wait.is_none() {
                // Without keep-alive, a daemon whose machine is gone would be waited for without
                // end.
                sock::keep_alive(std::os::fd::AsFd::as_fd(&self.sock));
            }
        }
        loop {
            if let Some(raw) = self.dec.take()? {
                return match self.session.open_msg(&raw)? {
                    Msg::Refused(r) => Err(ClientError::Refused(r)),
                    msg => Ok(msg),
                };
            }
            self.fill()?;
        }
    }

    /// Sends raw bytes.
    pub fn send_data(&mut self, port: u8, bytes: &[u8]) -> Result<(), ClientError> {
        self.session.seal_data(port, bytes, &mut self.out)?;
        self.push()
    }

    /// The next message among what was read already; what comes before it of streams is handed
    /// to `data`, with its port.
    pub fn take(&mut self, data: &mut dyn FnMut(u8, &[u8])) -> Result<Option<Msg>, ClientError> {
        loop {
            let Some(raw) = self.dec.take()? else { return Ok(None) };
            if !self.verified {
                shake::read_ok(&mut self.session, &raw)?;
                self.verified = true;
                self.dec.set_cap(MAX_FRAME);
                continue;
            }
            if let Some((port, bytes)) = self.session.open_data(&raw)? {
                data(port, bytes);
                continue;
            }
            return match self.session.open_msg(&raw)? {
                Msg::Refused(r) => Err(ClientError::Refused(r)),
                msg => Ok(Some(msg)),
            };
        }
    }

    /// Reads the server's proof, if it is still due.
    pub(super) fn verify(&mut self) -> Result<(), ClientError> {
        if self.verified {
            return Ok(());
        }
        self.push()?;
        loop {
            if let Some(raw) = self.dec.take()? {
                shake::read_ok(&mut self.session, &raw)?;
                self.verified = true;
                self.dec.set_cap(MAX_FRAME);
                return Ok(());
            }
            self.fill()?;
        }
    }

    fn push(&mut self) -> Result<(), ClientError> {
        let out = std::mem::take(&mut self.out);
        let done = self.sock.write_all(&out);
        self.out = out;
        self.out.clear();
        done.or_else(|e| match e.kind() {
            // The server's last words may explain why it hung up.
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset if !self.verified => Ok(()),
            _ => Err(lost(&e)),
        })
    }

    /// Reads once, for [`Client::take`].
    pub fn fill(&mut self) -> Result<(), ClientError> {
        let n = read_some(&mut self.sock, &mut self.chunk)?;
        self.dec.push(&self.chunk[..n]);
        if n == self.chunk.len() && n < LONG_CHUNK {
            self.chunk.resize(LONG_CHUNK, 0);
            self.dec.set_keep(4 * LONG_CHUNK);
        }
        Ok(())
    }
}

pub(crate) fn read_some(sock: &mut impl Read, chunk: &mut [u8]) -> Result<usize, ClientError> {
    match sock::read_through(sock, chunk) {
        Ok(0) => Err(ClientError::Lost("closed by the daemon".into())),
        Ok(n) => Ok(n),
        Err(e) => Err(lost(&e)),
    }
}
