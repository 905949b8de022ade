//! LSF_NIOS_DEBUG: bsub tells what happens to its interactive job (lsf.conf(5)).
//!
//! Invariant: a file that is written is the caller's own, never followed by a link.

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

/// The place of debug messages.
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
    pub fn say(&mut self, ctx: &mut Ctx, text: &dyn std::fmt::Display) {
        if matches!(self, NiosDebug::Off) {
            return;
        }
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
}
