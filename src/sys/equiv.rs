//! Opening hosts.equiv and .rhosts: believed only where nobody else can have written them.

use crate::conf::equiv::Equiv;
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

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

/// The second half of ruserok(3): whether the .rhosts in `home` lets `theirs`, a user of a host,
/// in as its owner `ours` of this uid. Called by a process that is that user already; hosts.equiv
/// was asked before, and for root is not asked at all. `host` as for [`Equiv::allows`].
pub fn rhosts(
    home: &Path,
    uid: u32,
    host: &dyn Fn(&str) -> bool,
    theirs: &str,
    ours: &str,
) -> Result<bool, String> {
    let path = home.join(".rhosts");
    let text = read(&path.to_string_lossy(), &[0, uid])?;
    Ok(Equiv::parse(&text).allows(host, theirs, ours) == Some(true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn an_rhosts_that_another_could_write_lets_nobody_in() {
        let dir = std::env::temp_dir().join(format!("lsf-rhosts-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let (file, uid) = (dir.join(".rhosts"), crate::sys::euid());
        let ask = |theirs| rhosts(&dir, uid, &|h| h == "hosta", theirs, "ann");
        assert!(ask("ann").is_err(), "there is none");
        std::fs::write(&file, "hosta\nhosta bob\n").unwrap();
        let mode = |m| std::fs::set_permissions(&file, PermissionsExt::from_mode(m)).unwrap();
        mode(0o644);
        assert_eq!((ask("ann"), ask("bob"), ask("eve")), (Ok(true), Ok(true), Ok(false)));
        for bad in [0o664, 0o646] {
            mode(bad);
            assert_eq!(ask("ann"), Err("writeable by other than its owner".into()));
        }
        mode(0o600);
        std::fs::hard_link(&file, dir.join("more")).unwrap();
        assert_eq!(ask("ann"), Err("hard linked somewhere".into()));
        std::fs::remove_file(dir.join("more")).unwrap();
        std::fs::rename(&file, dir.join("more")).unwrap();
        std::os::unix::fs::symlink(dir.join("more"), &file).unwrap();
        assert!(ask("ann").is_err(), "a link");
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
