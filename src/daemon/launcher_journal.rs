//! The file of the launcher's journal: its lines are gathered and written together.
//!
//! Invariant: a line for which there is no room stays, and is written before all later ones.

use crate::exec::launcher_state::read_journal;
use crate::proto::launch::Journal;
use crate::sys::files::private;
use crate::sys::words;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The journal of this host's launcher.
pub(super) struct JournalFile {
    path: PathBuf,
    /// The file; `None` until a journal of this launcher's own has been begun.
    file: Option<File>,
    /// Lines that are still to be written to it.
    lines: Vec<u8>,
}

impl JournalFile {
    pub(super) fn new(path: PathBuf) -> Self {
        JournalFile { path, file: None, lines: Vec::new() }
    }

    /// Lines are gathered until a starter may continue or a message is sent.
    pub(super) fn append(&mut self, line: &Journal) {
        if serde_json::to_writer(&mut self.lines, line).is_ok() {
            self.lines.push(b'\n');
        }
    }

    /// Writes what was gathered. Lines for which there is no room stay, behind a newline: of the
    /// first one a part may be written.
    pub(super) fn write(&mut self) -> io::Result<()> {
        let done = match &mut self.file {
            _ if self.lines.is_empty() => return Ok(()),
            Some(file) => file.write_all(&self.lines),
            None => self.begin(),
        };
        match &done {
            Ok(()) => self.lines.clear(),
            Err(_) if self.lines.starts_with(b"\n") => {}
            Err(e) => {
                log::error!(
                    "launcher.journal: {}: no task is started until it is written",
                    words(e)
                );
                self.lines.insert(0, b'\n');
            }
        }
        done
    }

    /// Begins the journal anew with these lines, which tell also what was not yet written.
    pub(super) fn rewrite(&mut self, lines: &[Journal]) -> io::Result<()> {
        (self.file, self.lines) = (None, Vec::new());
        lines.iter().for_each(|line| self.append(line));
        self.write()
    }

    /// A journal that begins with what was gathered.
    fn begin(&mut self) -> io::Result<()> {
        let new = self.path.with_extension("journal.new");
        let mut file = private(&new)?;
        file.set_len(0)?;
        file.write_all(&self.lines)?;
        std::fs::rename(&new, &self.path)?;
        self.file = Some(file);
        Ok(())
    }
}

/// The journal a predecessor left; a line that cannot be read costs itself.
pub(super) fn read(path: &Path) -> Vec<Journal> {
    let text = std::fs::read(path).unwrap_or_else(|e| {
        if e.kind() != ErrorKind::NotFound {
            log::error!("{}: {}", path.display(), words(&e));
        }
        Vec::new()
    });
    let (lines, bad) = read_journal(&text);
    for (line, why) in bad {
        log::error!("{} line {line} is damaged and ignored: {why}", path.display());
    }
    lines
}
