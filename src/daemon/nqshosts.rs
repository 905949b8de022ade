//! File validation of NQS (qmgr(8)): a starter that has become the submitter looks for a line in
//! the submitter's files.
//!
//! Invariant: nothing here is read with another's rights, nothing waits for a FIFO or a device, and
//! a file that somebody else may have written says nothing.

use super::step::note;
use crate::lang::nqshosts::{MAX_BYTES, NAMES, accepts};
use crate::proto::launch::Ready;
use crate::sys::files::read_own;
use crate::sys::users::User;
use std::path::Path;

/// Looks whether the user's files have a line for a host with these names: `kept` says that one
/// has, the note says which file is not used.
pub fn look(hosts: &[String], user: &User, ready: &mut Ready) {
    let home = Path::new(&user.home);
    if !home.is_absolute() {
        return note(ready, "there is no home directory".to_owned());
    }
    for name in NAMES {
        match read_own(&home.join(name), user.uid, MAX_BYTES) {
            Ok(text) => ready.kept = accepts(&text.unwrap_or_default(), hosts, &user.name),
            Err(why) => note(ready, format!("{name} is not used: {why}")),
        }
        if ready.kept {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};
    use std::path::PathBuf;

    struct Home {
        dir: PathBuf,
        user: User,
    }

    impl Drop for Home {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.dir);
        }
    }

    impl Home {
        fn new(test: &str) -> Home {
            let dir = std::env::temp_dir().join(format!("nqshosts-{test}-{}", std::process::id()));
            std::fs::create_dir_all(&dir).unwrap();
            let home = dir.to_str().unwrap().to_owned();
            let (name, uid) = ("ann".to_owned(), crate::sys::euid());
            Home { dir, user: User { name, uid, home, ..User::default() } }
        }

        fn file(&self, name: &str, text: &str) -> PathBuf {
            let path = self.dir.join(name);
            let _ = std::fs::remove_file(&path);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
            path
        }

        /// Is the user's request from `cool` accepted, and what is said?
        fn look(&self) -> (bool, String) {
            let mut ready = Ready::default();
            look(&["cool".to_owned()], &self.user, &mut ready);
            (ready.kept, ready.note)
        }
    }

    #[test]
    fn line_in_either_file_accepts() {
        let home = Home::new("either");
        assert_eq!(home.look(), (false, String::new()));
        home.file(".rhosts", "cool ann\n");
        assert_eq!(home.look(), (true, String::new()));
        home.file(".nqshosts", "other\n");
        assert_eq!(home.look(), (true, String::new()));
        std::fs::remove_file(home.dir.join(".rhosts")).unwrap();
        assert_eq!(home.look(), (false, String::new()));
        home.file(".nqshosts", "other\ncool\n");
        assert_eq!(home.look(), (true, String::new()));
    }

    #[test]
    fn file_that_is_not_the_users_alone_is_not_used() {
        let home = Home::new("hostile");
        let refused = |words: &str| {
            let (kept, note) = home.look();
            assert!(!kept && note.contains(words), "{words}: {note}");
        };
        let own = "not a regular file that its owner alone can write";
        for mode in [0o620, 0o602, 0o666] {
            let path = home.file(".nqshosts", "cool\n");
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            refused(own);
        }
        let path = home.file(".nqshosts", &format!("{}\ncool\n", "x".repeat(1 << 20)));
        refused("longer than 65536 bytes");
        std::fs::remove_file(&path).unwrap();
        let good = home.file("good", "cool\n");
        symlink(&good, &path).unwrap();
        refused(".nqshosts is not used: ");
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        refused(own);
        std::fs::remove_dir(&path).unwrap();
        // nobody has it open: a blocking open would wait for ever
        let fifo = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(fifo.success());
        refused(own);
        std::fs::remove_file(&path).unwrap();
        symlink("/dev/zero", &path).unwrap();
        refused(".nqshosts is not used: ");
        if crate::sys::euid() == 0 {
            let path = home.file(".nqshosts", "cool\n");
            chown(&path, Some(12_345), None).unwrap();
            refused(own);
        }
        // a faulty file does not hide the other one
        home.file(".rhosts", "cool\n");
        assert!(home.look().0);
    }
}
