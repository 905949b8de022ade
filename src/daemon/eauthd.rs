//! eauthd: has a site's `eauth -s` run as LSF_EAUTH_USER of lsf.sudoers, where there is one.
//!
//! The daemons that ask are the primary administrator's and cannot become another user; the
//! launcher can. It starts this as that user, with a listener as standard input that root and the
//! administrator alone can reach. Each connection is one `eauth -s` of its own: the first line
//! names the daemon (LSF_EAUTH_SERVER), all else goes through as it is, both ways. What hangs up
//! has its eauth killed.
//! Document implemented: semantics.md EAUTH.

use crate::auth::Ways;
use crate::auth::eauth;
use crate::conf::load::load_base_lenient;
use crate::sys::files::RealFiles;
use crate::sys::{raw, site, words};
use std::io::{self, Read, Write};
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
    let mut child = eauth::command(ways, &server).spawn()?;
    let (Some(mut to), Some(mut from)) = (child.stdin.take(), child.stdout.take()) else {
        return Ok(());
    };
    let mut back = sock.try_clone()?;
    let answers = std::thread::spawn(move || {
        let _ = pass(&mut from, &mut back);
        // Its eauth has ended: this ends the other direction too.
        let _ = back.shutdown(Shutdown::Both);
    });
    let asked = pass(&mut sock, &mut to);
    // Already gone is as good.
    let _ = child.kill();
    child.wait()?;
    let _ = answers.join();
    asked
}

/// All that comes, as it comes. (What the library copies with may wait for more.)
fn pass(from: &mut dyn Read, to: &mut dyn Write) -> io::Result<()> {
    let mut chunk = [0; 4096];
    loop {
        match from.read(&mut chunk)? {
            0 => return Ok(()),
            n => to.write_all(&chunk[..n])?,
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
