//! The file that LSB_DJOB_HOSTFILE names: a line for each slot with its host; and that of
//! LSB_DJOB_RANKFILE, where ranks have an order of their own. Runs as the job's user.
//!
//! The jobs of a user with as many slots of one host share a file, which stays; one of several
//! hosts has a file of its own beside its job file and goes with it.

use crate::sys::words;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The suffix of the name of the job file.
pub const EXT: &str = ".hostfile";
/// The suffix of the name of the rank file.
pub const RANK_EXT: &str = ".rankfile";

/// The suffix of the name of the file of LSB_AFFINITY_HOSTFILE.
pub const AFFINITY_EXT: &str = ".affinityhostfile";

/// `h1 2 h2 4`, as LSB_MCPU_HOSTS has it.
pub fn slots(text: &[u8]) -> Vec<(String, u32)> {
    let text = String::from_utf8_lossy(text);
    let words: Vec<&str> = text.split_whitespace().collect();
    let pair = |pair: &[&str]| match pair {
        [host, n] => Some(((*host).to_string(), n.parse().ok()?)),
        _ => None,
    };
    words.chunks(2).filter_map(pair).collect()
}

/// Whether jobs with these hosts share a file, and its name.
pub fn shared(hosts: &[(String, u32)]) -> Option<String> {
    match hosts {
        [(host, n)] if !host.contains('/') => Some(format!(".hosts.{host}.{n}")),
        _ => None,
    }
}

/// Makes a file that jobs share, unless it is there: its name says all that is in it.
pub fn make_shared(path: &Path, hosts: &[(String, u32)]) -> Result<(), String> {
    if path.exists() {
        return Ok(());
    }
    make(path, hosts)
}

/// Makes a file, in place of one that an attempt on lost hosts has left.
pub fn make(path: &Path, hosts: &[(String, u32)]) -> Result<(), String> {
    let mut text = String::new();
    for (host, n) in hosts {
        for _ in 0..*n {
            text.push_str(host);
            text.push('\n');
        }
    }
    write(path, &text)
}

/// Makes a file of this text; whoever finds it finds all of it.
pub fn write(path: &Path, text: &str) -> Result<(), String> {
    let mut own = path.as_os_str().to_owned();
    own.push(format!(".{}", std::process::id()));
    let own = PathBuf::from(own);
    let wrote = (|| -> io::Result<()> {
        let mut how = OpenOptions::new();
        how.write(true).create(true).truncate(true).mode(0o644).custom_flags(libc::O_NOFOLLOW);
        let mut file = how.open(&own)?;
        file.write_all(text.as_bytes())?;
        std::fs::rename(&own, path)
    })();
    wrote.map_err(|e| format!("host file <{}>: {}", path.display(), words(&e)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_their_file() {
        let hosts = slots(b"h1 2 h2 1");
        assert_eq!(hosts, [("h1".to_string(), 2), ("h2".to_string(), 1)]);
        assert_eq!(shared(&hosts), None);
        assert_eq!(shared(&hosts[..1]).as_deref(), Some(".hosts.h1.2"));
        let n = u32::from_ne_bytes(crate::sys::random::<4>().unwrap());
        let path = std::env::temp_dir().join(format!("lsf-hostfile-{n}"));
        let read = || std::fs::read_to_string(&path).unwrap();
        make(&path, &hosts).unwrap();
        make_shared(&path, &hosts[..1]).unwrap();
        assert_eq!(read(), "h1\nh1\nh2\n");
        // an attempt whose hosts were lost has left it
        make(&path, &hosts[1..]).unwrap();
        assert_eq!(read(), "h2\n");
        std::fs::remove_file(&path).unwrap();
        assert!(make(&path.join("none/x"), &hosts).is_err());
    }
}
