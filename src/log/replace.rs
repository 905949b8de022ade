//! Replacing a small file of a directory as a whole.

use super::disk::{Disk, PUBLIC, write_small};
use std::io::{self, ErrorKind};

/// A file that is not there needs no care.
fn gone(done: io::Result<()>) -> io::Result<()> {
    done.or_else(|e| if e.kind() == ErrorKind::NotFound { Ok(()) } else { Err(e) })
}

/// Makes durable what a directory has now: the last replacement may have been cut off before it
/// was. A reader that others rely on does this first.
///
/// # Errors
/// The disk refuses.
pub fn settle(disk: &mut dyn Disk) -> io::Result<()> {
    disk.sync_dir("")
}

/// Replaces a file by one with this text, durably; with `keeps`, the one before stays as NAME.prev.
/// A reader at any time, also after a crash, finds the old file or the new one.
///
/// # Errors
/// An operation of the disk failed. The old file is in its place then, unless the disk refuses
/// that, too.
pub fn replace(disk: &mut dyn Disk, name: &str, text: &[u8], keeps: bool) -> io::Result<()> {
    let new = format!(".{name}.new");
    let previous = if keeps { format!("{name}.prev") } else { format!(".{name}.old") };
    let put = |disk: &mut dyn Disk| -> io::Result<bool> {
        // a file that somebody left there, of any kind and mode, is not written into
        gone(disk.remove(&new))?;
        write_small(disk, &new, PUBLIC, text)?;
        let link = gone(disk.remove(&previous)).and_then(|()| gone(disk.link(name, &previous)));
        let linked = link.is_ok();
        // without NAME.prev a file system that has no links will do
        if keeps {
            link?;
        }
        disk.rename(&new, name).map(|()| linked)
    };
    let put = put(disk).inspect_err(|_| {
        // the part that was written is of no use
        let _ = disk.remove(&new);
    });
    let done = put.and_then(|linked| {
        disk.sync_dir("").inspect_err(|_| {
            if !linked {
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
    });
    if !keeps {
        // what is left of it is in nobody's way
        let _ = disk.remove(&previous);
    }
    done
}
