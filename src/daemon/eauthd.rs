//! eauthd: has a site's `eauth -s` run as LSF_EAUTH_USER of lsf.sudoers, where there is one.
//!
//! The daemons that ask are the primary administrator's and cannot become another user; the
//! launcher can. The launcher starts eauthd as that user, with a listener as standard input that
//! root and the administrator alone can reach. Each connection is one `eauth -s` of its own: the
//! first line names the daemon (LSF_EAUTH_SERVER). Questions and answers go through as they are; a
//! line of auxiliary data before a question goes into the file of LSF_EAUTH_AUX_DATA instead, and
//! before an answer goes what LSF_EAUTH_AUX_STATUS has to say. When a daemon hangs up, its eauth is
//! killed. See eauth(8).

use crate::auth::Ways;
use crate::auth::eauth;
use crate::auth::eauth_aux::{self, EauthAux};
use crate::conf::load::load_base_lenient;
use crate::proto::frame::MAX_FRAME_EAUTH;
use crate::sys::files::RealFiles;
use crate::sys::{raw, site, words};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Most connections at once; a daemon has one.
const MAX_CONNS: usize = 32;
/// Longest first line, bytes.
const MAX_LINE: usize = 256;

/// Serves until it is killed; returns only with the reason why it cannot.
pub fn run() -> String {
    if let Err(e) = raw::begin_signals(&[]) {
        return words(&e);
    }
    let found = site::find().map_err(|e| e.to_string()).and_then(|site| {
        let (base, diags) = load_base_lenient(&RealFiles, &site.envdir, Some(&site.host));
        let why = || diags.first().map_or(String::new(), |d| d.to_string());
        let base = base.ok_or_else(why)?;
        let host = base.hosts.canonical(&site.host).unwrap_or(&site.host);
        Ok(Ways::of_daemon(&base.lsf, &base.name, host))
    });
    let listener = raw::inherited_fd(0).map(UnixListener::from);
    let listener = listener.and_then(|l| l.set_nonblocking(false).map(|()| l));
    match found.and_then(|ways| Ok((ways, listener.map_err(|e| words(&e))?))) {
        Ok((ways, listener)) => serve(&ways, &listener),
        Err(why) => why,
    }
}

fn serve(ways: &Ways, listener: &UnixListener) -> String {
    let busy = Arc::new(AtomicUsize::new(0));
    loop {
        let sock = match listener.accept() {
            Ok((sock, _)) => sock,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return words(&e),
        };
        if busy.fetch_add(1, Ordering::Relaxed) >= MAX_CONNS {
            busy.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (ways, busy) = (ways.clone(), busy.clone());
        std::thread::spawn(move || {
            // The daemon that asked sees a connection that ends, and says so.
            let _ = relay(&ways, sock);
            busy.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

/// One `eauth -s` and the daemon that asks it.
fn relay(ways: &Ways, mut sock: UnixStream) -> io::Result<()> {
    let server = first_line(&mut sock)?;
    let beside = Arc::new(EauthAux::make()?);
    let mut child = eauth::run(ways, &server, &beside)?;
    let (Some(mut to), Some(mut from)) = (child.to.take(), child.from.take()) else {
        return Ok(());
    };
    let mut back = sock.try_clone()?;
    let said = beside.clone();
    let answers = std::thread::spawn(move || {
        let _ = answer(&said, &mut from, &mut back);
        // The eauth of this connection has ended: this ends the other direction too.
        let _ = back.shutdown(Shutdown::Both);
    });
    let asked = question(&beside, &mut BufReader::new(&mut sock), &mut to);
    child.kill();
    child.wait()?;
    let _ = answers.join();
    asked
}

/// All questions, each with its auxiliary data in the file before it is asked.
fn question(beside: &EauthAux, from: &mut dyn BufRead, to: &mut dyn Write) -> io::Result<()> {
    let mut aux = Vec::new();
    loop {
        let mut line = Vec::new();
        from.take(MAX_FRAME_EAUTH as u64).read_until(b'\n', &mut line)?;
        if line.pop() != Some(b'\n') {
            return Ok(());
        }
        match line.strip_prefix(eauth::AUX.as_bytes()) {
            Some(text) => {
                let text = String::from_utf8_lossy(text);
                aux = eauth_aux::unpack(&text).map_err(io::Error::other)?;
            }
            None => {
                beside.put(&std::mem::take(&mut aux))?;
                line.push(b'\n');
                to.write_all(&line)?;
            }
        }
    }
}

/// Passes all answers on, each behind its LSF_EAUTH_AUX_STATUS. The daemon judges malformed
/// answers.
fn answer(beside: &EauthAux, from: &mut dyn Read, to: &mut dyn Write) -> io::Result<()> {
    let mut chunk = [0; 4096];
    loop {
        let n = from.read(&mut chunk)?;
        if n == 0 {
            return Ok(());
        }
        for byte in &chunk[..n] {
            let words = if matches!(byte, b'0' | b'1') { beside.done()? } else { String::new() };
            if !words.is_empty() {
                to.write_all(&[&[eauth::SAID], words.as_bytes(), b"\n"].concat())?;
            }
            // A line of the child must not begin with our mark.
            to.write_all(&[if *byte == eauth::SAID { b'?' } else { *byte }])?;
        }
    }
}

fn first_line(sock: &mut UnixStream) -> io::Result<String> {
    let mut line = Vec::new();
    loop {
        let mut byte = [0];
        sock.read_exact(&mut byte)?;
        match byte[0] {
            b'\n' => return Ok(String::from_utf8_lossy(&line).into_owned()),
            c if line.len() < MAX_LINE && !c.is_ascii_control() => line.push(c),
            _ => return Err(io::Error::other("no name of a daemon")),
        }
    }
}
