//! Configuration files from disk, for the pure readers in `conf`.

use crate::conf::lexer::MAX_BYTES;
use crate::conf::{Files, Moment};
use crate::sys::words;
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Reads real files. Only regular files are read (a FIFO or device in the way would hang a
/// daemon), and never more than the readers accept.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealFiles;

impl Files for RealFiles {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        let Some(len) = regular(path)? else {
            return Err("not a regular file".to_owned());
        };
        let file = File::open(path).map_err(|e| words(&e))?;
        // Room for all of it and the end: commands read a file in two calls.
        let mut bytes = Vec::with_capacity((len as usize).min(MAX_BYTES) + 1);
        // One byte over the cap lets the reader tell that there is more.
        let mut limited = file.take(MAX_BYTES as u64 + 1);
        limited.read_to_end(&mut bytes).map_err(|e| words(&e))?;
        Ok(bytes)
    }

    fn exists(&self, path: &str) -> bool {
        // What is there and cannot be read must be told, not taken for absent.
        !matches!(std::fs::metadata(path), Err(e) if e.kind() == io::ErrorKind::NotFound)
    }

    fn moment(&self) -> Option<Moment> {
        let (now, zone) = (crate::sys::now().secs(), crate::sys::zone());
        Some(Moment { now, zone, forced: Vec::new() })
    }
}

/// Reads a file that is `owner`'s alone: a regular file, no link, of that uid, mode 0600 or less.
/// `None`: there is none. Errors do not name the file.
pub fn read_private(path: &str, owner: u32, max: usize) -> Result<Option<Vec<u8>>, String> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(fd) => File::from(fd),
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(e) => return Err(words(&e.into())),
    };
    let meta = file.metadata().map_err(|e| words(&e))?;
    if !meta.is_file() {
        return Err("not a regular file".to_owned());
    }
    if meta.uid() != owner {
        return Err(format!("owner is uid {}, must be {owner}", meta.uid()));
    }
    if meta.mode() & 0o7177 != 0 {
        return Err(format!("mode is {:04o}, must be 0600", meta.mode() & 0o7777));
    }
    let mut bytes = Vec::with_capacity((meta.len() as usize).min(max) + 1);
    file.take(max as u64 + 1).read_to_end(&mut bytes).map_err(|e| words(&e))?;
    if bytes.len() > max {
        return Err(format!("longer than {max} bytes"));
    }
    Ok(Some(bytes))
}

/// Refuses a file or directory that anybody but `owners` could have put there.
pub fn only(path: &Path, owners: &[u32]) -> io::Result<()> {
    for part in path.ancestors() {
        let meta = std::fs::symlink_metadata(part)?;
        let sticky = meta.is_dir() && meta.mode() & 0o1000 != 0;
        if !owners.contains(&meta.uid()) || (meta.mode() & 0o022 != 0 && !sticky) {
            let whom = if owners == [0] { "root" } else { "its owner and root" };
            let text = format!("{} can be changed by others than {whom}", part.display());
            return Err(io::Error::other(text));
        }
    }
    Ok(())
}

/// Opens a file that is ours alone, made if need be.
pub fn private(path: &Path) -> io::Result<File> {
    let mut how = File::options();
    how.read(true).write(true).create(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    let file = how.open(path)?;
    if file.metadata()?.uid() != super::euid() {
        return Err(io::Error::other(format!("{} is another user's", path.display())));
    }
    Ok(file)
}

/// A file without a name: in memory, else in `dir`, where nobody else may write.
pub fn unlinked(dir: &Path, name: &str) -> io::Result<File> {
    if let Ok(fd) = rustix::fs::memfd_create(name, rustix::fs::MemfdFlags::CLOEXEC) {
        return Ok(File::from(fd));
    }
    let path = dir.join(name);
    match std::fs::remove_file(&path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let file = private(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

/// The length of a regular file; `None` where it is none.
fn regular(path: &str) -> Result<Option<u64>, String> {
    let meta = std::fs::metadata(path).map_err(|e| words(&e))?;
    Ok(meta.is_file().then(|| meta.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_regular_files_and_says_why_not() {
        let own = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        assert!(RealFiles.read(own).is_ok_and(|b| b.windows(9).any(|w| w == b"[package]")));
        assert_eq!(RealFiles.read("/nowhere/x"), Err("No such file or directory".to_owned()));
        assert_eq!(RealFiles.read("/dev/zero"), Err("not a regular file".to_owned()));
        assert_eq!(RealFiles.read("/"), Err("not a regular file".to_owned()));
        assert!(RealFiles.exists("/dev/zero") && !RealFiles.exists("/nowhere/x"));
    }
}
