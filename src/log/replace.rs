//! Replacing a small file of a directory as a whole.

use super::disk::{Disk, PUBLIC, write_small};
use std::io::{self, ErrorKind};

/// A file that is not there needs no care.
fn gone(done: io::Result<()>) -> io::Result<()> {
    done.or_else(|e| if e.kind() == ErrorKind::NotFound { Ok(()) } else { Err(e) })
}

/// Replaces a file by one with this text, durably; with `keeps`, the one before stays as NAME.prev.
/// A reader at any time, also after a crash, finds the old file or the new one.
///
/// # Errors
/// An operation of the disk failed. The old file is in its place then, unless the disk refuses
/// that, too.
pub fn replace(disk: &mut dyn Disk, name: &str, text: &[u8], keeps: bool) -> io::Result<()> {
    let (new, previous) = (format!(".{name}.new"), format!("{name}.prev"));
    let put = |disk: &mut dyn Disk| -> io::Result<()> {
        // a file that somebody left there, of any kind and mode, is not written into
        gone(disk.remove(&new))?;
        write_small(disk, &new, PUBLIC, text)?;
        if keeps {
            gone(disk.remove(&previous))?;
            gone(disk.link(name, &previous))?;
        }
        disk.rename(&new, name)
    };
    put(disk).inspect_err(|_| {
        // the part that was written is of no use
        let _ = disk.remove(&new);
    })?;
    disk.sync_dir("").inspect_err(|_| {
        if !keeps {
            return;
        }
        // the caller is told that nothing was changed
        let _ = match disk.link(&previous, &new) {
            Ok(()) => disk.rename(&new, name),
            Err(e) if e.kind() == ErrorKind::NotFound => disk.remove(name),
            Err(e) => Err(e),
        };
        let _ = disk.sync_dir("");
    })
}
