//! The symbolic links by which the one binary is called (`lsf --install`, `lsf up`).

use crate::cli::ctx::os_words;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The file of the running binary, with links resolved.
pub fn own_binary() -> Result<PathBuf, String> {
    let exe = std::env::current_exe().map_err(|e| format!("own file: {}", os_words(&e)))?;
    if exe.to_string_lossy().ends_with(" (deleted)") {
        return Err(format!(
            "{}: the running binary was replaced; call the new one",
            exe.display()
        ));
    }
    Ok(exe)
}

/// Links every name in `dir` (made if missing) to the running binary: by the plain name `lsf`
/// where the binary lies in `dir` itself, else by its full path. A link is replaced, anything
/// else in the way is an error. `lsf` is one of the names unless a file has it. Returns the number
/// of links.
pub fn install<'a>(dir: &Path, names: impl Iterator<Item = &'a str>) -> Result<usize, String> {
    let exe = own_binary()?;
    fs::create_dir_all(dir).map_err(|e| format!("{}: {}", dir.display(), os_words(&e)))?;
    let same = match (fs::canonicalize(dir), exe.parent()) {
        (Ok(d), Some(p)) => d == p,
        _ => false,
    };
    let target = match exe.file_name() {
        Some(name) if same => PathBuf::from(name),
        _ => exe,
    };
    let file = fs::symlink_metadata(dir.join("lsf")).is_ok_and(|at| !at.file_type().is_symlink());
    point(dir, &target, names.chain((!file).then_some("lsf")))
}

/// Makes a link to `target` of every name in `dir`; gives their number.
pub fn point<'a>(
    dir: &Path,
    target: &Path,
    names: impl Iterator<Item = &'a str>,
) -> Result<usize, String> {
    let mut made = 0;
    for name in names {
        let at = dir.join(name);
        if name == "eauth" && of_the_site(&at) {
            continue;
        }
        link(target, &at).map_err(|e| format!("{}: {}", at.display(), os_words(&e)))?;
        made += 1;
    }
    Ok(made)
}

/// A site's own eauth stays: replaced, it would be another way to authenticate.
fn of_the_site(at: &Path) -> bool {
    match fs::read_link(at) {
        Ok(to) => to.file_name().is_none_or(|name| name != "lsf"),
        Err(_) => fs::symlink_metadata(at).is_ok(),
    }
}

/// Copies the running binary to `dir` as root's, with the setuid bit. The copy is whole before it
/// has its name, and the directory must be one that root alone can write.
pub fn install_setuid(dir: &Path, name: &str) -> Result<PathBuf, String> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
    let fail = |e: io::Error| format!("{}: {}", dir.display(), os_words(&e));
    if crate::sys::euid() != 0 {
        return Err("only root can make a program that belongs to root".into());
    }
    let meta = fs::metadata(dir).map_err(fail)?;
    if meta.uid() != 0 || meta.mode() & 0o022 != 0 {
        return Err(format!("{}: must be owned by root and writable only by root", dir.display()));
    }
    let (new, at) = (dir.join(format!(".{name}.new")), dir.join(name));
    let mut from = fs::File::open(own_binary()?).map_err(fail)?;
    // One left behind would have to be replaced, not written to.
    let _ = fs::remove_file(&new);
    let mut to = fs::File::create_new(&new).map_err(fail)?;
    let copied = io::copy(&mut from, &mut to)
        .and_then(|_| fchown(&to, Some(0), Some(0)))
        .and_then(|()| to.set_permissions(PermissionsExt::from_mode(0o4755)))
        .and_then(|()| to.sync_all())
        .and_then(|()| fs::rename(&new, &at));
    copied.map_err(fail)?;
    Ok(at)
}

/// Links one name in `dir` (made if missing) to `target`.
pub fn install_one(dir: &Path, name: &str, target: PathBuf) -> Result<(), String> {
    fs::create_dir_all(dir).map_err(|e| format!("{}: {}", dir.display(), os_words(&e)))?;
    point(dir, &target, [name].into_iter()).map(|_| ())
}

fn link(target: &Path, at: &Path) -> io::Result<()> {
    match fs::symlink_metadata(at) {
        Ok(m) if m.file_type().is_symlink() => fs::remove_file(at)?,
        Ok(_) => return Err(io::Error::other("exists and is not a link")),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(e) => return Err(e),
    }
    std::os::unix::fs::symlink(target, at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_replaced_and_files_are_not() {
        let dir = std::env::temp_dir().join(format!("lsf-links-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        assert_eq!(install(&dir, ["a", "b"].into_iter()).unwrap(), 3);
        assert_eq!(install(&dir, ["a", "b"].into_iter()).unwrap(), 3);
        assert_eq!(fs::read_link(dir.join("a")).unwrap(), own_binary().unwrap());
        fs::remove_file(dir.join("b")).unwrap();
        fs::write(dir.join("b"), "mine").unwrap();
        let why = install(&dir, ["a", "b"].into_iter()).unwrap_err();
        assert!(why.contains("exists and is not a link"), "{why}");
        assert_eq!(fs::read_to_string(dir.join("b")).unwrap(), "mine");
        // A site's eauth, as a file or a link, stays; a link of ours is made where there is none.
        for _ in 0..2 {
            fs::write(dir.join("eauth"), "theirs").unwrap();
            assert_eq!(install(&dir, ["a", "eauth"].into_iter()).unwrap(), 2);
            fs::remove_file(dir.join("eauth")).unwrap();
            std::os::unix::fs::symlink("/site/eauth", dir.join("eauth")).unwrap();
            assert_eq!(install(&dir, ["a", "eauth"].into_iter()).unwrap(), 2);
            fs::remove_file(dir.join("eauth")).unwrap();
            std::os::unix::fs::symlink("/old/lsf", dir.join("eauth")).unwrap();
            assert_eq!(install(&dir, ["a", "eauth"].into_iter()).unwrap(), 3);
            assert_eq!(fs::read_link(dir.join("eauth")).unwrap(), own_binary().unwrap());
            fs::remove_file(dir.join("eauth")).unwrap();
        }
        assert_eq!(fs::read_link(dir.join("lsf")).unwrap(), own_binary().unwrap());
        // the binary itself, or another one, stays
        fs::remove_file(dir.join("lsf")).unwrap();
        fs::write(dir.join("lsf"), "it").unwrap();
        assert_eq!(install(&dir, ["a"].into_iter()).unwrap(), 1);
        assert_eq!(fs::read_to_string(dir.join("lsf")).unwrap(), "it");
        fs::remove_dir_all(&dir).unwrap();
    }
}
