//! Opening lsf.sudoers: believed only where root alone can have written it.
//!
//! Called by root's processes. `path` and `owner` are arguments for the sake of tests; a daemon
//! passes [`PATH`] and 0, never what lsf.conf or the environment say.

use crate::conf::lsf_sudoers::{self, LsfSudoers, MAX_SUDOERS};
use crate::conf::{Diag, Diags, has_errors};

/// The path of lsf.sudoers.
pub const PATH: &str = "/etc/lsf.sudoers";

/// Reads lsf.sudoers. `None`: there is none. An error names the file and is reason to go on as
/// if there were none, and to say so; the list holds notices and warnings.
pub fn load(path: &str, owner: u32) -> Result<Option<(LsfSudoers, Vec<Diag>)>, String> {
    let private = super::files::read_private(path, owner, MAX_SUDOERS);
    let Some(mut bytes) = private.map_err(|why| format!("{path}: {why}"))? else {
        return Ok(None);
    };
    let mut diags = Diags::new();
    let conf = lsf_sudoers::parse(path, &bytes, &mut diags);
    bytes.fill(0);
    std::hint::black_box(&bytes);
    let list = diags.into_list();
    if has_errors(&list) {
        let words: Vec<String> = list.iter().map(Diag::to_string).collect();
        return Err(words.join("; "));
    }
    Ok(Some((conf, list)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn only_its_owners_private_regular_file_is_believed() {
        let dir = std::env::temp_dir().join(format!("lsf-sudoers-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let file = dir.join("lsf.sudoers");
        let path = file.to_str().unwrap();
        let uid = crate::sys::euid();
        assert!(load(path, uid).unwrap().is_none());
        std::fs::write(&file, "LSF_EAUTH_KEY=topsecret\n").unwrap();
        let mode = |m| std::fs::set_permissions(&file, PermissionsExt::from_mode(m)).unwrap();
        mode(0o600);
        let (conf, _) = load(path, uid).unwrap().unwrap();
        assert_eq!(conf.eauth_key(), Some("topsecret"));
        for bad in [0o640, 0o604, 0o700, 0o620, 0o4600] {
            mode(bad);
            let e = load(path, uid).unwrap_err();
            assert!(e.starts_with(path) && e.ends_with("must be 0600"), "{e}");
        }
        mode(0o600);
        let e = load(path, uid + 1).unwrap_err();
        assert_eq!(e, format!("{path}: owner is uid {uid}, must be {}", uid + 1));
        let link = dir.join("link");
        let _ = symlink(&file, &link);
        assert!(load(link.to_str().unwrap(), uid).is_err());
        assert!(load(dir.to_str().unwrap(), uid).unwrap_err().ends_with("not a regular file"));
        std::fs::write(&file, "LSF_EAUTH_KEY=short\n").unwrap();
        assert!(load(path, uid).unwrap_err().contains(":1:15: bad value of LSF_EAUTH_KEY"));
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
