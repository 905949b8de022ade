//! The cluster key: several keys by id, the first signs.
//!
//! The file holds lines `ID HEXKEY`; blank lines and those that begin with `#` do not count. The
//! file is refused unless it is a regular file of the daemon's own uid with mode 0600 (0400 does
//! too). Key bytes are never printed: errors name file, host and line.

use crate::proto::frame::MacKey;
use std::fmt;

/// Largest key file, bytes.
pub const MAX_KEY_FILE: usize = 16 << 10;
/// Most keys in a file.
pub const MAX_KEYS: usize = 16;
/// Shortest and longest key, bytes.
pub const KEY_BYTES: std::ops::RangeInclusive<usize> = 32..=64;
/// Longest key id, characters.
pub const MAX_KEY_ID: usize = 32;

struct ClusterKey {
    id: String,
    bytes: Vec<u8>,
    mac: MacKey,
}

impl Drop for ClusterKey {
    fn drop(&mut self) {
        self.bytes.fill(0);
        std::hint::black_box(&self.bytes);
    }
}

/// The keys of a cluster.
pub struct KeyRing {
    keys: Vec<ClusterKey>,
    /// The origin of the keys, for messages: ` (cluster key file F of host H)`.
    place: String,
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyRing").field("ids", &self.ids()).finish_non_exhaustive()
    }
}

/// Why there is no key. Names file and host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyError {
    pub host: String,
    pub file: String,
    pub why: String,
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "host {}: cluster key file {}: {}", self.host, self.file, self.why)
    }
}
impl std::error::Error for KeyError {}

impl KeyRing {
    /// Reads the key file as `uid`, the daemon's own.
    pub fn load(file: &str, host: &str, uid: u32) -> Result<KeyRing, KeyError> {
        let fail = |why: String| KeyError { host: host.into(), file: file.into(), why };
        let none = || fail("No such file or directory".into());
        let read = crate::sys::files::read_private(file, uid, MAX_KEY_FILE);
        let mut text = read.map_err(fail)?.ok_or_else(none)?;
        let ring = KeyRing::parse(&text).map_err(fail);
        text.fill(0);
        std::hint::black_box(&text);
        let place = format!(" (cluster key file {file} of host {host})");
        ring.map(|ring| KeyRing { place, ..ring })
    }

    /// Reads the text of a key file; the error does not quote it.
    pub fn parse(text: &[u8]) -> Result<KeyRing, String> {
        if text.len() > MAX_KEY_FILE {
            return Err(format!("longer than {MAX_KEY_FILE} bytes"));
        }
        let text = std::str::from_utf8(text).map_err(|_| "not text".to_string())?;
        let mut ring = KeyRing { keys: Vec::new(), place: String::new() };
        for (n, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let key = parse_line(line).map_err(|why| format!("line {}: {why}", n + 1))?;
            if ring.find(&key.id).is_some() {
                return Err(format!("line {}: a second key with that id", n + 1));
            }
            if ring.keys.len() == MAX_KEYS {
                return Err(format!("more than {MAX_KEYS} keys"));
            }
            ring.keys.push(key);
        }
        if ring.keys.is_empty() {
            return Err("holds no key".into());
        }
        Ok(ring)
    }

    /// ` (cluster key file F of host H)`, where it is known.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Ids in the order of the file; the first signs.
    pub fn ids(&self) -> Vec<String> {
        self.keys.iter().map(|k| k.id.clone()).collect()
    }

    /// The key to sign with for a server that knows `theirs`: our first that it has.
    pub fn choose(&self, theirs: &[String]) -> Option<&str> {
        self.keys.iter().map(|k| k.id.as_str()).find(|id| theirs.iter().any(|t| t == id))
    }

    /// The signing key's id.
    pub fn first(&self) -> &str {
        self.keys.first().map_or("", |k| &k.id)
    }

    /// The MAC under the key of this id.
    pub fn find(&self, id: &str) -> Option<&MacKey> {
        self.keys.iter().find(|k| k.id == id).map(|k| &k.mac)
    }
}

fn parse_line(line: &str) -> Result<ClusterKey, &'static str> {
    let (id, hex) = line.split_once(char::is_whitespace).ok_or("not `ID HEXKEY`")?;
    let fine = |c: u8| c.is_ascii_alphanumeric() || b"._-".contains(&c);
    if id.is_empty() || id.len() > MAX_KEY_ID || !id.bytes().all(fine) {
        return Err("bad key id");
    }
    let bytes = unhex(hex.trim()).ok_or("the key is not hexadecimal")?;
    if !KEY_BYTES.contains(&bytes.len()) {
        return Err("the key must be 32 to 64 bytes long");
    }
    if bytes.iter().all(|&b| b == bytes[0]) {
        return Err("the key is not random");
    }
    Ok(ClusterKey { id: id.to_string(), mac: MacKey::new(&bytes), bytes })
}

/// Bytes of hexadecimal digits.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) {
        return None;
    }
    let digit = |c: u8| (c as char).to_digit(16).map(|d| d as u8);
    text.as_bytes().chunks(2).map(|p| Some(digit(p[0])? << 4 | digit(p[1])?)).collect()
}

/// Hexadecimal digits of bytes.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// A new key line from the system's random source: `ID HEXKEY` and a newline. The id is short
/// and random, so that two clusters' keys are told apart.
pub fn new_key() -> std::io::Result<String> {
    let key = crate::sys::random::<32>()?;
    let id = crate::sys::random::<4>()?;
    Ok(format!("k{} {}\n", hex(&id), hex(&key)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const A: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

    #[test]
    fn a_ring_is_read_and_never_shown() {
        let text = format!("# keys\n\nnew {A}\n old\t{}\n", A.replace('0', "a"));
        let ring = KeyRing::parse(text.as_bytes()).unwrap();
        assert_eq!(ring.ids(), ["new", "old"]);
        assert_eq!(ring.choose(&["old".into(), "new".into()]), Some("new"));
        assert_eq!(ring.choose(&["old".into()]), Some("old"));
        assert_eq!(ring.choose(&["x".into()]), None);
        let shown = format!("{ring:?}");
        assert!(shown.contains("new") && !shown.contains("0102"), "{shown}");
    }

    #[test]
    fn bad_files_are_told_without_their_bytes() {
        for (text, want) in [
            (String::new(), "holds no key"),
            ("x".into(), "line 1: not `ID HEXKEY`"),
            (format!("a {A}\na {A}"), "line 2: a second key with that id"),
            (format!("a {}", &A[..62]), "line 1: the key must be 32 to 64 bytes long"),
            (format!("a {}", &A[..63]), "line 1: the key is not hexadecimal"),
            (format!("a/b {A}"), "line 1: bad key id"),
            (format!("a {}", "00".repeat(32)), "line 1: the key is not random"),
            ((0..17).map(|i| format!("k{i} {A}\n")).collect(), "more than 16 keys"),
        ] {
            let got = KeyRing::parse(text.as_bytes()).map(|_| ()).unwrap_err();
            assert_eq!(got, want);
        }
    }

    #[test]
    fn only_the_owners_private_regular_file_is_read() {
        let dir = std::env::temp_dir().join(format!("lsf-ring-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let file = dir.join("key");
        let path = file.to_str().unwrap();
        let uid = rustix::process::getuid().as_raw();
        std::fs::write(&file, new_key().unwrap()).unwrap();
        let mode = |m| std::fs::set_permissions(&file, PermissionsExt::from_mode(m)).unwrap();
        mode(0o600);
        assert_eq!(KeyRing::load(path, "h", uid).unwrap().ids().len(), 1);
        for bad in [0o640, 0o604, 0o700, 0o4600] {
            mode(bad);
            let e = KeyRing::load(path, "h", uid).unwrap_err().to_string();
            assert!(e.starts_with("host h: cluster key file ") && e.contains("must be 0600"));
        }
        mode(0o600);
        assert!(KeyRing::load(path, "h", uid + 1).unwrap_err().why.contains("owner"));
        let link = dir.join("link");
        let _ = std::os::unix::fs::symlink(&file, &link);
        assert!(KeyRing::load(link.to_str().unwrap(), "h", uid).is_err());
        assert!(KeyRing::load(dir.to_str().unwrap(), "h", uid).is_err());
        assert!(KeyRing::load("/nonexistent/key", "h", uid).is_err());
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn new_keys_differ_and_parse() {
        let (a, b) = (new_key().unwrap(), new_key().unwrap());
        assert_ne!(a, b);
        assert!(KeyRing::parse(format!("{a}{b}").as_bytes()).is_ok());
    }
}
