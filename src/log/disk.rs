//! The log's interface to a file system. The real one is here; `simdisk` has one in memory that
//! tears and loses unsynced writes at a crash and fails on order.
//!
//! Names are relative to the log's directory (`info/x` for what lies in its private
//! subdirectory). All writing is at explicit offsets: the single writer keeps the lengths.

use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// An open file of a [`Disk`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub usize);

/// Mode of files that everybody may read.
pub const PUBLIC: u32 = 0o644;
/// Mode of files that hold environments and scripts.
pub const PRIVATE: u32 = 0o600;
/// The private subdirectory, mode 0700.
pub const INFO: &str = "info";

/// A directory with files, for one user at a time.
pub trait Disk: Send {
    /// Opens for reading and writing. `create`: makes it with this mode where it is missing.
    fn open(&mut self, name: &str, create: Option<u32>) -> io::Result<FileId>;
    /// Makes a file that must not be there yet; opens it for reading and writing.
    fn create_new(&mut self, name: &str, mode: u32) -> io::Result<FileId>;
    /// Forgets an open file.
    fn close(&mut self, file: FileId);
    fn len(&mut self, file: FileId) -> io::Result<u64>;
    /// Reads up to `buf.len()` bytes; 0 at the end.
    fn read_at(&mut self, file: FileId, at: u64, buf: &mut [u8]) -> io::Result<usize>;
    /// Writes all of it, or fails having written some.
    fn write_at(&mut self, file: FileId, at: u64, data: &[u8]) -> io::Result<()>;
    fn truncate(&mut self, file: FileId, len: u64) -> io::Result<()>;
    /// Makes data and length durable. After a failure nothing is known of what was written
    /// since the last success: the caller must not try again.
    fn sync(&mut self, file: FileId) -> io::Result<()>;
    /// Replaces `to`.
    fn rename(&mut self, from: &str, to: &str) -> io::Result<()>;
    fn remove(&mut self, name: &str) -> io::Result<()>;
    /// Gives a file a second name, which nothing may have yet.
    fn link(&mut self, from: &str, to: &str) -> io::Result<()>;
    /// Names in the directory (`""`) or in a subdirectory; none where it does not exist.
    fn list(&mut self, dir: &str) -> io::Result<Vec<String>>;
    /// Has this open file lost its name, as when another was renamed over it?
    fn nameless(&mut self, file: FileId) -> io::Result<bool>;
    /// Does [`Disk::named`] tell at once what any system did? A network file system answers from
    /// memory for a while; one of this machine does not.
    fn is_local(&self) -> bool {
        false
    }
    /// Is this the name of this open file?
    fn named(&mut self, file: FileId, name: &str) -> io::Result<bool>;
    /// Makes creations, renames and removals in a directory durable.
    fn sync_dir(&mut self, dir: &str) -> io::Result<()>;
}

/// Opens a regular file: no link is followed, and what is of another kind (a FIFO without a writer
/// would hold the opening up for ever) is refused with words.
pub fn open_regular(how: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let irregular = || {
        let kind = std::fs::symlink_metadata(path).map(|m| m.file_type());
        kind.is_ok_and(|kind| !kind.is_file())
    };
    let words = || io::Error::other(format!("{} is not a regular file", path.display()));
    match how.custom_flags(flags.bits() as i32).open(path) {
        Ok(file) if file.metadata()?.is_file() => Ok(file),
        Ok(_) => Err(words()),
        Err(e) if e.kind() != io::ErrorKind::NotFound && irregular() => Err(words()),
        Err(e) => Err(e),
    }
}

/// Reads exactly `buf.len()` bytes or up to the end; returns how many.
pub fn read_full(disk: &mut dyn Disk, file: FileId, at: u64, buf: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while got < buf.len() {
        match disk.read_at(file, at + got as u64, &mut buf[got..])? {
            0 => break,
            n => got += n,
        }
    }
    Ok(got)
}

/// Reads a whole small file, at most `cap` bytes; `None` where there is none.
pub fn read_small(disk: &mut dyn Disk, name: &str, cap: usize) -> io::Result<Option<Vec<u8>>> {
    let file = match disk.open(name, None) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e),
    };
    let mut buf = vec![0; cap];
    let got = read_full(disk, file, 0, &mut buf);
    disk.close(file);
    buf.truncate(got?);
    Ok(Some(buf))
}

/// Writes a whole small file and makes its bytes durable. The caller makes its name durable.
pub fn write_small(disk: &mut dyn Disk, name: &str, mode: u32, bytes: &[u8]) -> io::Result<()> {
    let file = disk.open(name, Some(mode))?;
    let done = disk
        .write_at(file, 0, bytes)
        .and_then(|()| disk.truncate(file, bytes.len() as u64))
        .and_then(|()| disk.sync(file));
    disk.close(file);
    done
}

/// Length of a file by its name; 0 where there is none.
pub fn len_of(disk: &mut dyn Disk, name: &str) -> io::Result<u64> {
    match disk.open(name, None) {
        Ok(file) => {
            let len = disk.len(file);
            disk.close(file);
            len
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(e) => Err(e),
    }
}

/// Is there such a file?
pub fn exists(disk: &mut dyn Disk, name: &str) -> io::Result<bool> {
    match disk.open(name, None) {
        Ok(file) => {
            disk.close(file);
            Ok(true)
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
}

/// File systems that no other system can write (statfs(2)): ext2 to ext4, xfs, btrfs, tmpfs, f2fs.
const LOCAL: [rustix::fs::FsWord; 5] = [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0xf2f5_2010];

/// A directory of this machine.
pub struct RealDisk {
    dir: PathBuf,
    local: bool,
    files: Vec<Option<File>>,
    /// The file that makes writes fail as its text says, in tests on a personal cluster.
    fault: Option<PathBuf>,
}

impl RealDisk {
    /// Makes the directory (0755) and its private subdirectory (0700) where they are missing.
    pub fn open_dir(dir: &Path) -> io::Result<RealDisk> {
        make_dir(dir, 0o755)?;
        make_dir(&dir.join(INFO), 0o700)?;
        Ok(RealDisk::existing_dir(dir))
    }

    /// Makes nothing: for a directory that is there, or of which the files are only read.
    pub fn existing_dir(dir: &Path) -> RealDisk {
        let local = rustix::fs::statfs(dir).is_ok_and(|fs| LOCAL.contains(&fs.f_type));
        RealDisk { dir: dir.to_path_buf(), local, files: Vec::new(), fault: None }
    }

    /// Makes writes fail for tests on a personal cluster: while `path` exists and holds `enospc` or
    /// `eio`, every write fails with that error; with `sync`, every sync fails; with `hang`,
    /// neither comes back.
    pub fn with_fault_file(mut self, path: PathBuf) -> RealDisk {
        self.fault = Some(path);
        self
    }

    fn file(&self, file: FileId) -> io::Result<&File> {
        let open = self.files.get(file.0).and_then(Option::as_ref);
        open.ok_or_else(|| io::Error::other("the file is not open"))
    }

    fn opened(&mut self, file: File) -> FileId {
        let slot = self.files.iter().position(Option::is_none).unwrap_or(self.files.len());
        if slot == self.files.len() {
            self.files.push(None);
        }
        self.files[slot] = Some(file);
        FileId(slot)
    }

    fn ordered_fault(&self, syncing: bool) -> io::Result<()> {
        let Some(path) = &self.fault else { return Ok(()) };
        let word = loop {
            let word = std::fs::read_to_string(path).unwrap_or_default();
            if word.trim() != "hang" {
                break word;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        };
        match (word.trim(), syncing) {
            ("enospc", false) => Err(rustix::io::Errno::NOSPC.into()),
            ("eio", false) | ("sync", true) => Err(rustix::io::Errno::IO.into()),
            _ => Ok(()),
        }
    }
}

/// A file server says so of an open file that another system has replaced or removed.
fn is_stale(e: &io::Error) -> bool {
    e.raw_os_error() == Some(rustix::io::Errno::STALE.raw_os_error())
}

fn make_dir(dir: &Path, mode: u32) -> io::Result<()> {
    match std::fs::create_dir(dir) {
        Ok(()) => std::fs::set_permissions(dir, Permissions::from_mode(mode)),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(e) => Err(e),
    }
}

impl Disk for RealDisk {
    fn open(&mut self, name: &str, create: Option<u32>) -> io::Result<FileId> {
        let path = self.dir.join(name);
        let mut how = OpenOptions::new();
        how.read(true).write(create.is_some());
        match (open_regular(&mut how, &path), create) {
            (Err(e), Some(mode)) if e.kind() == io::ErrorKind::NotFound => {
                self.create_new(name, mode)
            }
            (file, _) => Ok(self.opened(file?)),
        }
    }

    fn create_new(&mut self, name: &str, mode: u32) -> io::Result<FileId> {
        let mut how = OpenOptions::new();
        let file =
            how.read(true).write(true).create_new(true).mode(mode).open(self.dir.join(name))?;
        // whatever the umask is
        file.set_permissions(Permissions::from_mode(mode))?;
        Ok(self.opened(file))
    }

    fn close(&mut self, file: FileId) {
        if let Some(slot) = self.files.get_mut(file.0) {
            *slot = None;
        }
    }

    fn len(&mut self, file: FileId) -> io::Result<u64> {
        Ok(self.file(file)?.metadata()?.len())
    }

    fn read_at(&mut self, file: FileId, at: u64, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.file(file)?.read_at(buf, at) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    fn write_at(&mut self, file: FileId, at: u64, data: &[u8]) -> io::Result<()> {
        self.ordered_fault(false)?;
        self.file(file)?.write_all_at(data, at)
    }

    fn truncate(&mut self, file: FileId, len: u64) -> io::Result<()> {
        self.file(file)?.set_len(len)
    }

    fn sync(&mut self, file: FileId) -> io::Result<()> {
        self.ordered_fault(true)?;
        self.file(file)?.sync_data()
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.dir.join(from), self.dir.join(to))
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.dir.join(name))
    }

    fn link(&mut self, from: &str, to: &str) -> io::Result<()> {
        std::fs::hard_link(self.dir.join(from), self.dir.join(to))
    }

    fn list(&mut self, dir: &str) -> io::Result<Vec<String>> {
        let entries = match std::fs::read_dir(self.dir.join(dir)) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(e),
        };
        let mut names = Vec::new();
        for entry in entries {
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn nameless(&mut self, file: FileId) -> io::Result<bool> {
        match self.file(file)?.metadata() {
            Err(e) if is_stale(&e) => Ok(true),
            open => Ok(open?.nlink() == 0),
        }
    }

    fn is_local(&self) -> bool {
        self.local
    }

    fn named(&mut self, file: FileId, name: &str) -> io::Result<bool> {
        let open = match self.file(file)?.metadata() {
            Err(e) if is_stale(&e) => return Ok(false),
            open => open?,
        };
        match std::fs::symlink_metadata(self.dir.join(name)) {
            Ok(named) => Ok((named.dev(), named.ino()) == (open.dev(), open.ino())),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(e),
        }
    }

    fn sync_dir(&mut self, dir: &str) -> io::Result<()> {
        File::open(self.dir.join(dir))?.sync_all()
    }
}

/// An append-only file and its length.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tail {
    pub file: FileId,
    pub len: u64,
}

/// Removes a file; one that is gone is no error: an earlier run may still clear up.
pub(super) fn remove(disk: &mut dyn Disk, name: &str) -> io::Result<bool> {
    match disk.remove(name) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
}
