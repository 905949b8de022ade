//! A command of qmgr changes lsb.nqs: it is tried against the whole configuration, written, and
//! then in force, or nothing is changed.

use crate::conf::files::{Files, Moment};
use crate::conf::{self, ClusterConf, Diag, Severity, nqs};
use crate::lang::qmgr::{self, Command, MAX_TEXT};
use crate::sys::files::RealFiles;
use crate::sys::words;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The result of a change that is written.
pub struct Defined {
    pub conf: ClusterConf,
    pub diags: Vec<Diag>,
    /// The result in words, for the user.
    pub words: String,
}

/// The real files, one of them with another text.
struct With<'a> {
    path: &'a str,
    text: &'a str,
}

impl Files for With<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        match path == self.path {
            true => Ok(self.text.as_bytes().to_vec()),
            false => RealFiles.read(path),
        }
    }
    fn exists(&self, path: &str) -> bool {
        path == self.path || RealFiles.exists(path)
    }
    fn moment(&self) -> Option<Moment> {
        RealFiles.moment()
    }
}

/// Does what a command says. The caller does one at a time. `again`: where that is done already, it
/// was by this very command.
///
/// # Errors
/// The lines for the user; nothing is changed then.
pub fn define_queues(envdir: &str, (command, again): (&str, bool)) -> Result<Defined, Vec<String>> {
    let (conf, diags) = conf::load(&RealFiles, envdir);
    let Some(conf) = conf else {
        return Err(errors(&diags, "the configuration has errors: see `badmin ckconfig`"));
    };
    let spelled = qmgr::commands(command, 1).into_iter().next();
    let definition = match spelled.map(|s| s.command) {
        Some(Ok(Command::Define(definition))) => definition,
        Some(Err(fault)) => return Err(vec![fault.text]),
        _ => return Err(vec![format!("<{command}> defines nothing")]),
    };
    let listed = conf.batch.queues.iter().filter(|q| !q.nqs.by_qmgr).map(|q| q.name.clone());
    let listed: Vec<String> = listed.collect();
    let mut defined = conf.batch.nqs.clone();
    let before = again.then(|| nqs::done_before(&defined, &definition, &listed));
    if let Some(words) = before.flatten() {
        return Ok(Defined { conf, diags, words });
    }
    let told = nqs::apply(&mut defined, definition, &listed).map_err(|why| vec![why])?;
    let text = nqs::snap(&defined);
    if text.len() > MAX_TEXT {
        return Err(vec![format!("lsb.nqs would be larger than {} MB", MAX_TEXT >> 20)]);
    }
    let dir = conf.base.lsf.batch_confdir(&conf.base.name);
    let path = format!("{dir}/lsb.nqs");
    let (conf, diags) = conf::load(&With { path: &path, text: &text }, envdir);
    let Some(conf) = conf else { return Err(errors(&diags, "nothing is changed")) };
    replace(Path::new(&dir), &text).map_err(|e| vec![format!("{path}: {}", words(&e))])?;
    Ok(Defined { conf, diags, words: told })
}

fn errors(diags: &[Diag], last: &str) -> Vec<String> {
    let errors = diags.iter().filter(|d| d.severity == Severity::Error);
    errors.map(ToString::to_string).chain([last.to_owned()]).collect()
}

/// Replaces lsb.nqs as a whole, durably.
fn replace(dir: &Path, text: &str) -> io::Result<()> {
    let (path, new) = (dir.join("lsb.nqs"), dir.join(".lsb.nqs.new"));
    let write = || -> io::Result<()> {
        // what a loss of power left; and a link that somebody put there is not followed
        let _ = std::fs::remove_file(&new);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&new, &path)?;
        File::open(dir)?.sync_all()
    };
    write().inspect_err(|_| {
        // the part that was written is of no use
        let _ = std::fs::remove_file(&new);
    })
}
