//! Files by name: configuration for the pure readers in `conf`, and files in directories that
//! others can write.
//!
//! Invariant: no opening waits (a FIFO or device in the way would hang a daemon), and what is
//! opened is looked at by its descriptor, never by its name.

use crate::conf::lexer::MAX_BYTES;
use crate::conf::{Files, Moment};
use crate::sys::words;
use rustix::fs::{Mode, OFlags, RawDir};
use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

/// Links followed before a path is given up, as the kernel does.
const MAX_LINKS: usize = 40;
/// Entries of a directory that are read at once, bytes: some sixty names.
const DIRECTORY_BYTES: usize = 2048;

/// Reads real files. Only regular files are read, and never more than the readers accept.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealFiles;

impl Files for RealFiles {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        let (file, meta) = regular(Path::new(path)).map_err(|e| words(&e))?;
        // Room for all of it and the end: commands read a file in two calls.
        let mut bytes = Vec::with_capacity((meta.len() as usize).min(MAX_BYTES) + 1);
        // One byte over the cap lets the reader tell that there is more.
        let mut limited = file.take(MAX_BYTES as u64 + 1);
        limited.read_to_end(&mut bytes).map_err(|e| words(&e))?;
        Ok(bytes)
    }

    fn exists(&self, path: &str) -> bool {
        // An unreadable file must be reported, not treated as absent.
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

/// The text of a regular file that nobody but its owner can write; `None`: there is none.
pub fn read_own(path: &Path, owner: u32, max: usize) -> Result<Option<String>, String> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(fd) => File::from(fd),
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(e) => return Err(words(&e.into())),
    };
    let meta = file.metadata().map_err(|e| words(&e))?;
    if !meta.is_file() || meta.uid() != owner || meta.mode() & 0o022 != 0 {
        return Err("not a regular file that its owner alone can write".to_owned());
    }
    let mut bytes = Vec::new();
    file.take(max as u64 + 1).read_to_end(&mut bytes).map_err(|e| words(&e))?;
    if bytes.len() > max {
        return Err(format!("longer than {max} bytes"));
    }
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// Refuses a file or directory that a user other than `owners` could have made.
pub fn only(path: &Path, owners: &[u32]) -> io::Result<()> {
    for part in path.ancestors() {
        let meta = std::fs::symlink_metadata(part)?;
        if !owners.contains(&meta.uid()) || writable(&meta) || meta.is_symlink() {
            let whom = if owners == [0] { "root" } else { "its owner and root" };
            let text = format!("{} can be changed by users other than {whom}", part.display());
            return Err(io::Error::other(text));
        }
    }
    Ok(())
}

/// The text of a file of the kernel, up to a number of bytes.
pub fn read_text(path: &Path, max: u64) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(max).read_to_string(&mut text)?;
    Ok(text)
}

/// Opens a file that is ours alone, made if need be.
pub fn private(path: &Path) -> io::Result<File> {
    let mut how = File::options();
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    how.read(true).write(true).create(true).mode(0o600).custom_flags(flags);
    let named =
        |e: io::Error| io::Error::new(e.kind(), format!("{}: {}", path.display(), words(&e)));
    let file = how.open(path).map_err(named)?;
    own(&file.metadata()?, super::euid()).map_err(named)?;
    Ok(file)
}

/// A file without a name: in memory, else in `dir`, where no other user may write.
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

/// Opens a regular file for reading without waiting for one; links are followed.
pub fn regular(path: &Path) -> io::Result<(File, Metadata)> {
    read_only(path, OFlags::empty())
}

/// Has a directory an entry of such a name? A directory that cannot be read has none. Every
/// submission asks: `std::fs::read_dir` would cost eight system calls more, for its memory.
pub fn any_name(dir: &Path, mut wanted: impl FnMut(&[u8]) -> bool) -> bool {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(opened) = rustix::fs::open(dir, flags, Mode::empty()) else { return false };
    let mut room = [MaybeUninit::uninit(); DIRECTORY_BYTES];
    let mut entries = RawDir::new(opened, &mut room);
    while let Some(Ok(entry)) = entries.next() {
        if wanted(entry.file_name().to_bytes()) {
            return true;
        }
    }
    false
}

/// Opens a regular file of one of these owners, where others may have put something else: no link
/// at the end of the path is followed.
pub fn regular_of(path: &Path, owners: &[u32]) -> io::Result<File> {
    let (file, meta) = read_only(path, OFlags::NOFOLLOW)?;
    match owners.contains(&meta.uid()) {
        true => Ok(file),
        false => Err(of_another(&meta)),
    }
}

fn read_only(path: &Path, more: OFlags) -> io::Result<(File, Metadata)> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags | more, Mode::empty())?);
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    Ok((file, meta))
}

fn of_another(meta: &Metadata) -> io::Error {
    io::Error::other(format!("belongs to uid {}", meta.uid()))
}

/// Opens a file to append to in a directory that others may write, made with this mode where it
/// is missing: a regular file of our own with one name, no link, never waited for.
pub fn append(path: &Path, mode: u32) -> io::Result<File> {
    let mut how = File::options();
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    how.append(true).create(true).mode(mode).custom_flags(flags.bits() as i32);
    let file = how.open(path).map_err(|e| match e.raw_os_error() {
        // of a FIFO that nobody reads
        Some(libc::ENXIO) => io::Error::other("not a regular file"),
        _ => e,
    })?;
    own(&file.metadata()?, super::euid())?;
    Ok(file)
}

/// Refuses what is not a regular file of this user's with one name.
pub fn own(meta: &Metadata, uid: u32) -> io::Result<()> {
    if !meta.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    if meta.uid() != uid {
        return Err(of_another(meta));
    }
    if meta.nlink() != 1 {
        return Err(io::Error::other("has other names (hard links)"));
    }
    Ok(())
}

/// A path followed part by part.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Followed {
    /// The end of the path, without links; where parts are missing, the last existing directory.
    pub path: PathBuf,
    /// The parts that are not there.
    pub missing: Vec<OsString>,
    /// A part or link on the way that others than the owners can exchange, and its owner. The
    /// last one of another owner's, where there is one.
    pub strange: Option<(PathBuf, u32)>,
}

/// Follows an absolute path and every link on it, and reports a part that a user other than
/// `owners` could change. Nothing is opened.
pub fn follow(path: &Path, owners: &[u32]) -> io::Result<Followed> {
    let mut found = Followed { path: "/".into(), ..Followed::default() };
    let mut todo = parts(path);
    let mut links = 0;
    judge(&mut found, Path::new("/"), owners)?;
    while let Some(name) = todo.pop() {
        if name == ".." {
            found.path.pop();
            continue;
        }
        let next = found.path.join(&name);
        match judge(&mut found, &next, owners) {
            Ok(meta) if meta.is_symlink() => {
                links += 1;
                if links > MAX_LINKS {
                    return Err(rustix::io::Errno::LOOP.into());
                }
                let to = std::fs::read_link(&next)?;
                if to.is_absolute() {
                    found.path = "/".into();
                }
                todo.extend(parts(&to));
            }
            Ok(_) => found.path = next,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                todo.push(name);
                found.missing = todo.into_iter().rev().collect();
                break;
            }
            Err(e) => return Err(e),
        }
    }
    Ok(found)
}

/// The parts of a path, the last one first.
fn parts(path: &Path) -> Vec<OsString> {
    let names = path.components().filter_map(|c| match c {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    });
    let mut names: Vec<OsString> = names.collect();
    names.reverse();
    names
}

fn judge(found: &mut Followed, part: &Path, owners: &[u32]) -> io::Result<Metadata> {
    let meta = std::fs::symlink_metadata(part)?;
    let others = !owners.contains(&meta.uid());
    if others || (found.strange.is_none() && writable(&meta)) {
        found.strange = Some((part.to_owned(), meta.uid()));
    }
    Ok(meta)
}

/// Whether others than its owner can exchange it or what lies in it.
fn writable(meta: &Metadata) -> bool {
    let sticky = meta.is_dir() && meta.mode() & 0o1000 != 0;
    meta.mode() & 0o022 != 0 && !sticky && !meta.is_symlink()
}

/// Why this process must not run a program that lsf.conf leads to: it is root's, and others than
/// root could exchange the program. A missing file is no reason.
pub fn unsafe_program(path: &Path) -> Option<String> {
    if super::euid() != 0 {
        return None;
    }
    let part = std::path::absolute(path).and_then(|path| follow(&path, &[0])).ok()?.strange?.0;
    let (path, part) = (path.display(), part.display());
    Some(format!("{path}: root does not run it: {part} can be changed by users other than root"))
}

/// Why a program of the site must not be run by this process: others than root and the user of the
/// process could exchange it. A missing file is no reason.
pub fn exchangeable(path: &Path) -> Option<String> {
    let owners = [0, super::euid()];
    let absolute = std::path::absolute(path).ok()?;
    let part = follow(&absolute, &owners).ok()?.strange?.0;
    Some(format!("{} can be changed by others", part.display()))
}

/// Whether a name is one part of a path and nothing else.
pub fn is_part(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    let one = matches!(parts.next(), Some(Component::Normal(part)) if part == name);
    one && parts.next().is_none() && !name.contains('\0')
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

    fn scratch(name: &str) -> PathBuf {
        let n = u32::from_ne_bytes(crate::sys::random::<4>().unwrap());
        let dir = std::env::temp_dir().join(format!("lsf-files-{name}-{n}"));
        std::fs::create_dir(&dir).unwrap();
        dir
    }

    fn fifo(path: &Path) {
        assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    }

    #[test]
    fn a_file_that_others_put_there_is_neither_waited_for_nor_written() {
        let dir = scratch("append");
        let at = |name: &str| dir.join(name);
        let why = |path: PathBuf| append(&path, 0o644).unwrap_err().to_string();
        let mut file = append(&at("own"), 0o644).unwrap();
        std::io::Write::write_all(&mut file, b"a").unwrap();
        append(&at("own"), 0o644).unwrap();
        fifo(&at("fifo"));
        assert_eq!(why(at("fifo")), "not a regular file");
        // one that has a reader opens
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        let reader = rustix::fs::open(at("fifo"), flags, Mode::empty()).unwrap();
        assert_eq!(why(at("fifo")), "not a regular file");
        assert!(regular_of(&at("fifo"), &[crate::sys::euid()]).is_err());
        assert_eq!(regular(&at("fifo")).unwrap_err().to_string(), "not a regular file");
        drop(reader);
        std::os::unix::fs::symlink(at("own"), at("link")).unwrap();
        assert!(append(&at("link"), 0o644).is_err());
        assert!(regular_of(&at("link"), &[crate::sys::euid()]).is_err());
        std::fs::hard_link(at("own"), at("name")).unwrap();
        assert_eq!(why(at("own")), "has other names (hard links)");
        std::fs::remove_file(at("name")).unwrap();
        let other = crate::sys::euid() + 1;
        let said = regular_of(&at("own"), &[other]).unwrap_err().to_string();
        assert_eq!(said, format!("belongs to uid {}", other - 1));
        let meta = std::fs::metadata(at("own")).unwrap();
        assert_eq!(own(&meta, other).unwrap_err().to_string(), said);
        assert_eq!(std::fs::read(at("own")).unwrap(), b"a");
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_path_is_followed_and_its_owners_are_seen() {
        let dir = std::fs::canonicalize(scratch("follow")).unwrap();
        let at = |name: &str| dir.join(name);
        let us = [0, crate::sys::euid()];
        let look = |name: &str| follow(&at(name), &us).unwrap();
        std::fs::create_dir(at("a")).unwrap();
        std::fs::write(at("a/file"), "").unwrap();
        std::os::unix::fs::symlink("a/../a", at("link")).unwrap();
        std::os::unix::fs::symlink(at("link/file"), at("far")).unwrap();
        std::os::unix::fs::symlink("round", at("round")).unwrap();
        for name in ["a/file", "link/file", "far", "a/../far"] {
            let want = Followed { path: at("a/file"), ..Followed::default() };
            assert_eq!(look(name), want, "{name}");
        }
        assert!(follow(&at("round"), &us).is_err());
        let gone = look("link/no/such");
        assert_eq!((gone.path, gone.missing), (at("a"), vec!["no".into(), "such".into()]));
        // a directory that others write, reached by a link that is ours
        std::fs::set_permissions(at("a"), std::os::unix::fs::PermissionsExt::from_mode(0o777))
            .unwrap();
        assert_eq!(look("far").strange, Some((at("a"), crate::sys::euid())));
        let other = crate::sys::euid() + 1;
        // of several parts of others' the last
        let seen = follow(&at("far"), &[other]).unwrap();
        assert_eq!(seen.strange, Some((at("a/file"), crate::sys::euid())));
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_program_that_others_could_exchange_is_not_roots_to_run() {
        let dir = scratch("program");
        let path = dir.join("esub");
        std::fs::write(&path, "").unwrap();
        assert_eq!(unsafe_program(&path), None);
        let all = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(&path, all).unwrap();
        let why = unsafe_program(&path);
        if crate::sys::euid() == 0 {
            let why = why.unwrap();
            assert!(why.contains("esub can be changed by users other than root"), "{why}");
        } else {
            assert_eq!(why, None);
        }
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_name_with_a_slash_is_no_part() {
        assert!(is_part("host1.x") && is_part("..."));
        for name in ["", ".", "..", "a/b", "/a", "a/", "./a", "a\0"] {
            assert!(!is_part(name), "{name:?}");
        }
    }
}
