//! The auxiliary data of a proof by a site's own eauth: the files that LSF_EAUTH_AUX_DATA and
//! LSF_EAUTH_AUX_STATUS name, in a directory of the caller's own.
//!
//! Invariants: nobody but its maker and root can look into the directory; nothing in it is followed
//! or waited for; the data is never logged. See eauth(8).

use super::ring::hex;
use crate::model::bytes::{b64_decode, b64_encode};
use crate::sys::{euid, random};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Most auxiliary data of a proof, bytes.
pub const MAX_AUX: usize = 64 << 10;
/// Most of what is read of LSF_EAUTH_AUX_STATUS, bytes.
pub const MAX_STATUS: usize = 1 << 10;

/// The directory, for as long as this lives.
pub struct EauthAux {
    dir: PathBuf,
}

impl Drop for EauthAux {
    fn drop(&mut self) {
        // Leftovers are removed by the next one.
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

impl EauthAux {
    /// Makes the directory with both files, empty.
    pub fn make() -> io::Result<EauthAux> {
        EauthAux::make_in(&std::env::temp_dir())
    }

    fn make_in(top: &Path) -> io::Result<EauthAux> {
        let mine = format!("lsf-eauth.{}.", euid());
        sweep(top, &mine);
        let dir = top.join(format!("{mine}{}.{}", std::process::id(), hex(&random::<8>()?)));
        DirBuilder::new().mode(0o700).create(&dir)?;
        let beside = EauthAux { dir };
        beside.put(&[])?;
        Ok(beside)
    }

    fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    fn status(&self) -> PathBuf {
        self.dir.join("status")
    }

    /// Sets the environment of `eauth -c`.
    pub fn tell_client(&self, cmd: &mut Command) {
        cmd.env("LSF_EAUTH_AUX_PASS", "yes").env("LSF_EAUTH_AUX_DATA", self.data());
    }

    /// Sets the environment of `eauth -s`.
    pub fn tell_server(&self, cmd: &mut Command) {
        self.tell_client(cmd);
        cmd.env("LSF_EAUTH_AUX_STATUS", self.status());
    }

    /// The data of the request that comes next; words about an earlier one are not about it.
    pub fn put(&self, data: &[u8]) -> io::Result<()> {
        write(&self.status(), &[])?;
        write(&self.data(), data)
    }

    /// The auxiliary data of `eauth -c`.
    pub fn take(&self) -> Result<Vec<u8>, String> {
        match read(&self.data(), MAX_AUX + 1) {
            Ok(data) if data.len() > MAX_AUX => Err(too_long()),
            Ok(data) => Ok(data),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(e) => Err(format!("LSF_EAUTH_AUX_DATA: {}", crate::sys::words(&e))),
        }
    }

    /// After an answer: what `eauth -s` has to say about it; both files are empty again.
    pub fn done(&self) -> io::Result<String> {
        // A missing file means that the eauth said nothing.
        let said = read(&self.status(), MAX_STATUS).unwrap_or_default();
        self.put(&[])?;
        Ok(words(&said))
    }
}

fn too_long() -> String {
    format!("auxiliary data of more than {} KB", MAX_AUX >> 10)
}

/// Encodes the data for the wire in base64, so that their length is bounded whatever they hold.
pub fn pack(data: &[u8]) -> String {
    b64_encode(data)
}

/// The transmitted auxiliary data.
pub fn unpack(text: &str) -> Result<Vec<u8>, String> {
    if text.len() > MAX_AUX.div_ceil(3) * 4 {
        return Err(too_long());
    }
    match b64_decode(text) {
        Some(data) if data.len() > MAX_AUX => Err(too_long()),
        Some(data) => Ok(data),
        None => Err("auxiliary data that is not base64".into()),
    }
}

/// Words that can stand in a line of a log.
pub fn words(said: &[u8]) -> String {
    let said = String::from_utf8_lossy(&said[..said.len().min(MAX_STATUS)]);
    said.trim().chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// Removes what processes of ours have left that ended without a chance to do it.
fn sweep(top: &Path, mine: &str) {
    let Ok(entries) = std::fs::read_dir(top) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|n| n.strip_prefix(mine)?.split('.').next());
        let Some(pid) = pid.and_then(|pid| pid.parse::<u32>().ok()) else { continue };
        let own = entry.metadata().is_ok_and(|m| m.is_dir() && m.uid() == euid());
        if own && !Path::new(&format!("/proc/{pid}")).exists() {
            // Another process of ours may remove it at the same time.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

fn write(path: &Path, data: &[u8]) -> io::Result<()> {
    let mut how = OpenOptions::new();
    how.write(true).create(true).truncate(true).mode(0o600);
    how.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?.write_all(data)
}

fn read(path: &Path, most: usize) -> io::Result<Vec<u8>> {
    let mut how = OpenOptions::new();
    let file: File = how.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    let mut data = Vec::new();
    file.take(most as u64).read_to_end(&mut data)?;
    Ok(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auxiliary_files_are_private_bounded_and_removed() {
        let beside = EauthAux::make().unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o7777;
        let modes = (mode(&beside.dir), mode(&beside.data()), mode(&beside.status()));
        assert_eq!(modes, (0o700, 0o600, 0o600));
        assert_eq!(beside.take(), Ok(Vec::new()));
        std::fs::write(beside.data(), vec![7; MAX_AUX]).unwrap();
        assert_eq!(beside.take().map(|d| d.len()), Ok(MAX_AUX));
        std::fs::write(beside.data(), vec![7; MAX_AUX + 1]).unwrap();
        let len = beside.take().map(|d| d.len());
        assert_eq!(len, Err("auxiliary data of more than 64 KB".into()));
        std::fs::remove_file(beside.data()).unwrap();
        assert_eq!(beside.take(), Ok(Vec::new()));
        std::os::unix::fs::symlink("/etc/passwd", beside.data()).unwrap();
        assert!(beside.take().is_err() && beside.put(b"x").is_err(), "a link");
        let dir = beside.dir.clone();
        drop(beside);
        assert!(!dir.exists());
    }

    #[test]
    fn auxiliary_data_on_the_wire_are_bounded() {
        let most = vec![1; MAX_AUX];
        assert!(unpack(&pack(&most)) == Ok(most.clone()));
        assert!(pack(&most).len() + (16 << 10) < crate::proto::frame::MAX_FRAME_EAUTH);
        for over in [1, 2, 3, MAX_AUX] {
            let long = unpack(&pack(&vec![1; MAX_AUX + over])).map(|d| d.len());
            assert_eq!(long, Err("auxiliary data of more than 64 KB".into()), "{over}");
        }
        assert_eq!(unpack(""), Ok(Vec::new()));
        assert!(unpack("a\nb").is_err());
    }

    #[test]
    fn the_words_are_read_once_and_fit_a_line() {
        let beside = EauthAux::make().unwrap();
        beside.put(b"token").unwrap();
        std::fs::write(beside.status(), "no\u{1b}[2J token\nat all\n").unwrap();
        assert_eq!(beside.done().unwrap(), "no?[2J token?at all");
        assert_eq!((beside.take(), beside.done().unwrap()), (Ok(Vec::new()), String::new()));
        std::fs::write(beside.status(), vec![b'x'; 2 * MAX_STATUS]).unwrap();
        assert_eq!(beside.done().unwrap().len(), MAX_STATUS);
        // A text written after the answer belongs to no question.
        std::fs::write(beside.status(), "late").unwrap();
        beside.put(b"").unwrap();
        assert_eq!(beside.done().unwrap(), "");
        // A FIFO without a writer would block.
        std::fs::remove_file(beside.status()).unwrap();
        let fifo = Command::new("mkfifo").arg(beside.status()).status().unwrap();
        assert!(fifo.success() && beside.done().is_err());
    }

    #[test]
    fn auxiliary_files_of_a_dead_process_are_removed() {
        let top = std::env::temp_dir().join(format!("lsf-beside-{}", std::process::id()));
        let mine = format!("lsf-eauth.{}.", euid());
        // No process can have it: above the kernel's highest.
        let dirs = [format!("{mine}4194999.aa"), format!("{mine}1.aa"), format!("{mine}x")];
        dirs.iter().for_each(|d| std::fs::create_dir_all(top.join(d)).unwrap());
        let beside = EauthAux::make_in(&top).unwrap();
        let there: Vec<bool> = dirs.iter().map(|d| top.join(d).exists()).collect();
        assert_eq!(there, [false, true, true]);
        drop(beside);
        std::fs::remove_dir_all(&top).unwrap();
    }
}
