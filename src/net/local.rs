//! A connection between processes of one host over a socket that only the administrator can
//! reach, as the launcher holds it: frames without a MAC, never waited for.
//!
//! Here because it is no more than bytes; who is on the other end is the launcher's to know.

use crate::proto::Msg;
use crate::proto::frame::{Decoder, FrameError, MAX_FRAME, Session};
use mio::net::UnixStream;
use std::io::{self, ErrorKind, Read, Write};

/// Output waiting beyond which a connection is given up, bytes.
const OUT_MAX: usize = 64 << 20;
/// Bytes read in one turn.
const READ_TURN: u64 = 1 << 20;

/// One connection.
pub struct LocalConn {
    pub sock: UnixStream,
    dec: Decoder,
    session: Session,
    out: Vec<u8>,
    /// Waiting output is still sent; input is not read any more.
    pub closing: bool,
    /// The other end is told more when it has read what is waiting.
    goes_on: bool,
}

impl LocalConn {
    pub fn new(sock: UnixStream) -> LocalConn {
        let (dec, session) = (Decoder::new(MAX_FRAME), Session::local());
        LocalConn { sock, dec, session, out: Vec::new(), closing: false, goes_on: false }
    }

    /// Is there output that waits?
    pub fn waits(&self) -> bool {
        !self.out.is_empty()
    }

    /// Sends with the next [`LocalConn::flush`].
    pub fn send(&mut self, msg: &Msg) -> Result<(), FrameError> {
        self.goes_on |= msg.goes_on();
        if self.closing { Ok(()) } else { self.session.seal_msg(msg, &mut self.out) }
    }

    /// Has the other end read what is to be followed by more? Told once.
    pub fn drained(&mut self) -> bool {
        !self.waits() && std::mem::take(&mut self.goes_on)
    }

    /// Takes what has come; false: the other end is closed.
    ///
    /// # Errors
    /// The input is not a message: no further input can be decoded.
    pub fn read(&mut self, heard: &mut dyn FnMut(Msg)) -> Result<bool, FrameError> {
        let mut got = Vec::with_capacity(64 << 10);
        let end = (&mut self.sock).take(READ_TURN).read_to_end(&mut got);
        self.dec.push(&got);
        while let Some(raw) = self.dec.take()? {
            let msg = self.session.open_msg(&raw)?;
            if !self.closing {
                heard(msg);
            }
        }
        Ok(got.len() as u64 == READ_TURN || would_block(&end))
    }

    /// Sends what can be sent; false: it is over, or the other end does not read.
    pub fn flush(&mut self) -> bool {
        while !self.out.is_empty() {
            match self.sock.write(&self.out) {
                Ok(n) if n > 0 => drop(self.out.drain(..n)),
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                _ => return false,
            }
        }
        !(self.closing && self.out.is_empty()) && self.out.len() <= OUT_MAX
    }
}

/// Reading would block.
pub fn would_block<T>(end: &io::Result<T>) -> bool {
    matches!(end, Err(e) if e.kind() == ErrorKind::WouldBlock)
}
