//! Opens hosts.equiv; the file counts only if no other user can have written it.

use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;

/// Largest file, bytes.
const MAX: u64 = 1 << 20;

/// Reads such a file: a regular one, no link, of one of these owners, with one name, not to be
/// written by group or others.
pub fn read(path: &str, owners: &[u32]) -> Result<Vec<u8>, String> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let words = |e: std::io::Error| crate::sys::words(&e);
    let fd = rustix::fs::open(path, flags, Mode::empty()).map_err(|e| words(e.into()))?;
    let file = File::from(fd);
    let meta = file.metadata().map_err(words)?;
    if !meta.is_file() {
        return Err("not a regular file".into());
    }
    if !owners.contains(&meta.uid()) {
        return Err(format!("bad owner, uid {}", meta.uid()));
    }
    if meta.mode() & 0o022 != 0 {
        return Err("writeable by other than its owner".into());
    }
    if meta.nlink() > 1 {
        return Err("hard linked somewhere".into());
    }
    let mut text = Vec::new();
    file.take(MAX).read_to_end(&mut text).map_err(words)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_that_another_could_write_is_not_read() {
        let dir = std::env::temp_dir().join(format!("lsf-equiv-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let (file, uid) = (dir.join("hosts.equiv"), crate::sys::euid());
        let ask = || read(&file.to_string_lossy(), &[uid]);
        assert!(ask().is_err(), "there is none");
        std::fs::write(&file, "hosta\n").unwrap();
        let mode = |m| std::fs::set_permissions(&file, PermissionsExt::from_mode(m)).unwrap();
        mode(0o644);
        assert_eq!(ask(), Ok(b"hosta\n".to_vec()));
        let other = read(&file.to_string_lossy(), &[uid + 1]);
        assert_eq!(other, Err(format!("bad owner, uid {uid}")));
        for bad in [0o664, 0o646] {
            mode(bad);
            assert_eq!(ask(), Err("writeable by other than its owner".into()));
        }
        mode(0o600);
        std::fs::hard_link(&file, dir.join("more")).unwrap();
        assert_eq!(ask(), Err("hard linked somewhere".into()));
        std::fs::remove_file(dir.join("more")).unwrap();
        std::fs::rename(&file, dir.join("more")).unwrap();
        std::os::unix::fs::symlink(dir.join("more"), &file).unwrap();
        assert!(ask().is_err(), "a link");
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
