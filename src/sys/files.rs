//! Configuration files from disk, for the pure readers in `conf`.

use crate::conf::Files;
use crate::conf::lexer::MAX_BYTES;
use crate::sys::words;
use std::fs::File;
use std::io::{self, Read};

/// Reads real files. Only regular files are read (a FIFO or device in the way would hang a
/// daemon), and never more than the readers accept.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealFiles;

impl Files for RealFiles {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        if !regular(path)? {
            return Err("not a regular file".to_owned());
        }
        let file = File::open(path).map_err(|e| words(&e))?;
        let mut bytes = Vec::new();
        // One byte over the cap lets the reader tell that there is more.
        let mut limited = file.take(MAX_BYTES as u64 + 1);
        limited.read_to_end(&mut bytes).map_err(|e| words(&e))?;
        Ok(bytes)
    }

    fn exists(&self, path: &str) -> bool {
        // What is there and cannot be read must be told, not taken for absent.
        !matches!(std::fs::metadata(path), Err(e) if e.kind() == io::ErrorKind::NotFound)
    }
}

fn regular(path: &str) -> Result<bool, String> {
    std::fs::metadata(path).map(|m| m.is_file()).map_err(|e| words(&e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_regular_files_and_says_why_not() {
        let own = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        assert!(RealFiles.read(own).is_ok_and(|b| b.starts_with(b"[package]")));
        assert_eq!(RealFiles.read("/nowhere/x"), Err("No such file or directory".to_owned()));
        assert_eq!(RealFiles.read("/dev/zero"), Err("not a regular file".to_owned()));
        assert_eq!(RealFiles.read("/"), Err("not a regular file".to_owned()));
        assert!(RealFiles.exists("/dev/zero") && !RealFiles.exists("/nowhere/x"));
    }
}
