//! LSF_NIOS_DEBUG: bsub tells what happens to its interactive job (lsf.conf(5)).
//!
//! Invariant: a file that is written is the caller's own, never followed by a link.

use super::follow::News;
use super::session::Happened;
use lsf::cli::ctx::Ctx;
use lsf::cli::site::{self, LocalSite};
use lsf::errln;
use lsf::sys::files;
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// The permission bits of nios.log.HOST.
const MODE: u32 = 0o600;
/// The directory of nios.log.HOST where LSF_CMD_LOGDIR cannot be written.
const ELSE_DIR: &str = "/tmp";

/// Where debug messages go.
pub enum NiosDebug {
    Off,
    Stderr,
    File(File),
}

impl NiosDebug {
    /// LSF_NIOS_DEBUG=1 of the environment or lsf.conf; LSF_CMD_LOGDIR names the directory.
    pub fn of(site: &LocalSite) -> NiosDebug {
        if !site::yes(Some(site), "LSF_NIOS_DEBUG") {
            return NiosDebug::Off;
        }
        let Some(dir) = site::param(Some(site), "LSF_CMD_LOGDIR") else { return NiosDebug::Stderr };
        let name = format!("nios.log.{}", site.host);
        let mut dirs = [dir.trim(), ELSE_DIR].into_iter();
        let file = dirs.find_map(|dir| files::append(&Path::new(dir).join(&name), MODE).ok());
        file.map_or(NiosDebug::Stderr, NiosDebug::File)
    }

    /// Tells one thing, with the number of this process.
    pub fn say(&mut self, ctx: &mut Ctx, text: &str) {
        let line = format!("nios[{}]: {text}", std::process::id());
        match self {
            NiosDebug::Off => {}
            NiosDebug::Stderr => {
                errln!(ctx, "{line}");
                ctx.flush();
            }
            NiosDebug::File(file) => {
                let now = lsf::sys::now().secs();
                // a full disk costs messages, not the job
                let _ = writeln!(file, "{now} {line}");
            }
        }
    }

    /// Tells what has happened.
    pub fn happened(&mut self, ctx: &mut Ctx, happened: &Happened) {
        if matches!(self, NiosDebug::Off) {
            return;
        }
        let text = match happened {
            Happened::Signal => "a signal asks for the end of the job".to_owned(),
            Happened::PendTimeout => "the job was pending for too long".to_owned(),
            Happened::News(News::Words(_)) => "mbatchd does not answer".to_owned(),
            Happened::News(News::Failed(why)) => format!("mbatchd: {why}"),
            Happened::News(News::State(now)) => {
                let host = if now.host.is_empty() { "-" } else { &now.host };
                format!("mbatchd: state {:?}, host {host}, start {}", now.state, now.attempt)
            }
            Happened::Res => "RES has something to say, or is asked again".to_owned(),
        };
        self.say(ctx, &text);
    }
}
