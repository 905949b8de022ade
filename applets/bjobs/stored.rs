//! bjobs -env and -script: what mbatchd keeps of a submission (bjobs(1)).
//!
//! Invariant: only the owner and administrators of the cluster are told; a terminal is shown no
//! controls.

use super::listing::operand;
use lsf::cli::client;
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::long_format::clean;
use lsf::cli::site::LocalSite;
use lsf::errln;
use lsf::model::job::EEXEC_DATA;
use lsf::model::reason::err;
use lsf::proto::Msg;
use lsf::proto::client::{ClientMsg, IdSel};
use lsf::proto::sbd::SbdMsg;
use std::io::IsTerminal;

/// The request: a job, and its environment or script.
pub struct StoredRequest {
    pub id: IdSel,
    /// The script instead of the environment.
    pub script: bool,
}

/// Asks for it and prints it.
pub fn show(ctx: &mut Ctx, site: &LocalSite, wanted: StoredRequest) -> i32 {
    let job = operand(&wanted.id);
    let ask = Msg::Client(ClientMsg::Stored { id: wanted.id, script: wanted.script });
    let words = match client::ask_at(site, &ask, ctx.err) {
        Ok((_, Msg::Sbd(SbdMsg::Blob { data, .. }))) => {
            let end = if wanted.script { b'\n' } else { 0 };
            let text = lines(data.as_bytes(), end, std::io::stdout().is_terminal());
            let _ = ctx.out.write_all(&text);
            return 0;
        }
        Ok(_) => "Batch protocol error".to_string(),
        Err(e) if e.code() == Some(err::NO_JOB) => format!("Job <{job}> is not found"),
        Err(e) => format!("Job <{job}>: {}", clean(&e.words())),
    };
    errln!(ctx, "{words}");
    FAIL
}

/// A line for each part that ends with `end`.
fn lines(data: &[u8], end: u8, terminal: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len() + 1);
    let parts = data.strip_suffix(&[end]).unwrap_or(data).split(|b| *b == end);
    // what lies with the environment and is none of it
    let hidden = |part: &&[u8]| {
        end == 0 && part.strip_prefix(EEXEC_DATA.as_bytes()).is_some_and(|p| p.starts_with(b"="))
    };
    for part in parts.filter(|part| !hidden(part)) {
        match terminal {
            true => out.extend_from_slice(clean(&String::from_utf8_lossy(part)).as_bytes()),
            false => out.extend_from_slice(part),
        }
        out.push(b'\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_variable_is_printed_on_its_line() {
        let env = b"A=1\0B=\x1b[1m\0";
        assert_eq!(lines(env, 0, false), b"A=1\nB=\x1b[1m\n");
        assert_eq!(lines(env, 0, true), b"A=1\nB=?[1m\n");
        assert_eq!(lines(b"#!/bin/sh\necho \"a\tb\"", b'\n', true), b"#!/bin/sh\necho \"a b\"\n");
        assert_eq!(lines(b"x\n", b'\n', false), b"x\n");
    }
}
