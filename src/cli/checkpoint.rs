//! The directory of a job's checkpoints, and the methods that make checkpoints and restart from
//! them (echkpnt(8), erestart(8)). All is done as the user of the job.
//!
//! The directory above may be one in which others can write, and its files decide what is run: a
//! directory of another user, or in which others may write, and a file of another user are refused,
//! and no link is followed.
//!
//! Invariants: `.echkpnt` is there only after a checkpoint that succeeded; that file and the
//! submission are whole, since each gets its name when it is written.

use super::ctx::os_words;
use super::long_format::clean;
use super::site::LocalSite;
use crate::model::checkpoint::is_method;
use crate::sys::euid;
use crate::sys::files::{append, private, regular_of};
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The method of the checkpoints in a directory.
pub const METHOD_FILE: &str = ".echkpnt";
/// The submission that brestart repeats.
pub const SUBMISSION_FILE: &str = ".submission";
/// The command that a method gives erestart.
pub const RESTART_FILE: &str = ".restart_cmd";
/// The log of the checkpoints and restarts.
const LOG_FILE: &str = "chklog";
/// Most bytes that are read of one of these files.
pub const MAX_FILE: u64 = 1024 * 1024;
/// Most bytes of a program's last words that are told.
const MAX_WORDS: u64 = 1024;

const METHOD: &str = "LSB_ECHKPNT_METHOD";
const METHOD_DIR: &str = "LSB_ECHKPNT_METHOD_DIR";
const KEEP_OUTPUT: &str = "LSB_ECHKPNT_KEEP_OUTPUT";

/// The programs echkpnt.NAME and erestart.NAME.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Method {
    pub name: String,
    pub dir: String,
}

/// A variable of the environment, else of lsf.conf; `None` where it is empty.
fn setting(site: &LocalSite, name: &str) -> Option<String> {
    let own = std::env::var(name).ok().filter(|v| !v.trim().is_empty());
    own.or_else(|| site.lsf.get(name).map(str::to_string)).filter(|v| !v.trim().is_empty())
}

impl Method {
    /// The method that environment and lsf.conf name.
    pub fn configured(site: &LocalSite) -> Result<Method, String> {
        let name = setting(site, METHOD).unwrap_or_else(|| "default".into());
        if name == "default" {
            return Err(format!(
                "no checkpoint method is configured: {METHOD} of lsf.conf or method= of bsub -k"
            ));
        } else if !is_method(&name) {
            return Err(format!("{name}: bad name of a checkpoint method"));
        }
        let dir = setting(site, METHOD_DIR).or_else(|| site.lsf.serverdir().map(str::to_string));
        let dir = dir.ok_or_else(|| format!("neither {METHOD_DIR} nor LSF_SERVERDIR is set"))?;
        Ok(Method { name, dir })
    }

    /// The method that made the checkpoint in a directory.
    pub fn of(dir: &Path) -> Result<Method, String> {
        let text = read_file(&dir.join(METHOD_FILE))?;
        let value = |name: &str| {
            let line = text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix('='));
            line.unwrap_or_default().to_string()
        };
        let method = Method { name: value(METHOD), dir: value(METHOD_DIR) };
        match is_method(&method.name) {
            true => Ok(method),
            false => Err(format!("{}: names no method", dir.join(METHOD_FILE).display())),
        }
    }

    /// Notes that this method made the checkpoint in a directory.
    pub fn note(&self, dir: &Path) -> Result<(), String> {
        let text = format!("{METHOD}={}\n{METHOD_DIR}={}\n", self.name, self.dir);
        write_file(&dir.join(METHOD_FILE), text.as_bytes())
    }

    /// The program of this method: `echkpnt` or `erestart`.
    pub fn command(&self, what: &str) -> Command {
        let mut command = Command::new(Path::new(&self.dir).join(format!("{what}.{}", self.name)));
        command.env(METHOD, &self.name).env(METHOD_DIR, &self.dir);
        command
    }
}

/// Runs a program; its output goes nowhere, or with LSB_ECHKPNT_KEEP_OUTPUT=Y to files in `dir`.
/// The words say why it failed, with the last line of its error output.
pub fn run(site: &LocalSite, dir: &Path, what: &str, mut command: Command) -> Result<(), String> {
    let keep = setting(site, KEEP_OUTPUT).is_some_and(|v| v.eq_ignore_ascii_case("y"));
    let output = match keep {
        true => Stdio::from(emptied(&dir.join(format!("{what}.out")))?),
        false => Stdio::null(),
    };
    // a file and no pipe: a process that the program leaves behind may keep a pipe open
    let errors = dir.join(format!("{what}.err"));
    command.stdin(Stdio::null()).stdout(output).stderr(emptied(&errors)?);
    let program = command.get_program().to_string_lossy().into_owned();
    let done = match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{program}: {status}{}", last_line(&errors))),
        Err(e) => Err(format!("{program}: {}", os_words(&e))),
    };
    if !keep {
        let _ = fs::remove_file(&errors);
    }
    done
}

/// The last line of a file behind `: `, at most [`MAX_WORDS`] bytes; empty where there is none.
fn last_line(path: &Path) -> String {
    let mut end = Vec::new();
    let read = regular_of(path, &[euid()]).and_then(|mut file| {
        let len = file.metadata()?.len();
        file.seek(SeekFrom::Start(len.saturating_sub(MAX_WORDS)))?;
        file.take(MAX_WORDS).read_to_end(&mut end)
    });
    let text = String::from_utf8_lossy(&end);
    match text.lines().rfind(|line| !line.trim().is_empty()) {
        Some(line) if read.is_ok() => format!(": {}", clean(line.trim())),
        _ => String::new(),
    }
}

/// Makes the directory of a job; the checkpoint directory has to be there.
pub fn make_directory(dir: &Path) -> Result<(), String> {
    match fs::DirBuilder::new().mode(0o700).create(dir) {
        Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(format!("{}: {}", dir.display(), os_words(&e)))
        }
        _ => check_directory(dir),
    }
}

/// Refuses a directory of a job that is another user's, or in which others may write.
pub fn check_directory(dir: &Path) -> Result<(), String> {
    let about = |why: String| Err(format!("{}: {why}", dir.display()));
    match fs::symlink_metadata(dir) {
        Err(e) => about(os_words(&e)),
        Ok(meta) if !meta.is_dir() => about("not a directory".into()),
        Ok(meta) if meta.uid() != euid() => about(format!("belongs to uid {}", meta.uid())),
        Ok(meta) if meta.mode() & 0o022 != 0 => about("others may write in it".into()),
        Ok(_) => Ok(()),
    }
}

/// The text of a file of a checkpoint directory, which must be the caller's.
pub fn read_file(path: &Path) -> Result<String, String> {
    let mut text = String::new();
    let read = regular_of(path, &[euid()])
        .and_then(|file| file.take(MAX_FILE + 1).read_to_string(&mut text));
    match read {
        Ok(n) if n as u64 > MAX_FILE => Err(format!("{}: too long", path.display())),
        Ok(_) => Ok(text),
        Err(e) => Err(format!("{}: {}", path.display(), os_words(&e))),
    }
}

/// Opens a file of the caller's alone to write it anew.
fn emptied(path: &Path) -> Result<File, String> {
    // its words name the file
    let file = private(path).map_err(|e| e.to_string())?;
    file.set_len(0).map_err(|e| format!("{}: {}", path.display(), os_words(&e)))?;
    Ok(file)
}

/// Writes a file whole: under another name first.
pub fn write_file(path: &Path, text: &[u8]) -> Result<(), String> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = PathBuf::from(new);
    let mut file = emptied(&new)?;
    let written = file.write_all(text).and_then(|()| file.sync_data());
    let done = written.and_then(|()| fs::rename(&new, path));
    done.map_err(|e| format!("{}: {}", path.display(), os_words(&e)))
}

/// Adds a line to the log of a directory. A log that cannot be written fails no checkpoint.
pub fn log(dir: &Path, line: &str) {
    if let Ok(mut file) = append(&dir.join(LOG_FILE), 0o600) {
        let _ = writeln!(file, "{} {line}", jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    #[test]
    fn directories_and_files_that_others_can_make_are_refused() {
        let top = std::env::temp_dir().join(format!("lsf-checkpoint-{}", std::process::id()));
        let _ = fs::remove_dir_all(&top);
        fs::create_dir(&top).unwrap();
        let dir = top.join("17");
        let words = |why: &str| Err(format!("{}: {why}", dir.display()));
        assert_eq!(make_directory(&dir), Ok(()));
        assert_eq!(make_directory(&dir), Ok(()), "it is there already");
        let mode = |mode| fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).unwrap();
        mode(0o770);
        assert_eq!(make_directory(&dir), words("others may write in it"));
        mode(0o700);
        if euid() == 0 {
            chown(&dir, Some(70_002), None).unwrap();
            assert_eq!(make_directory(&dir), words("belongs to uid 70002"));
            chown(&dir, Some(0), None).unwrap();
        }
        // a link that leads to a file of the user's is neither written nor read
        let victim = top.join("victim");
        fs::write(&victim, "kept").unwrap();
        for name in [".echkpnt.new", "chklog", ".submission"] {
            symlink(&victim, dir.join(name)).unwrap();
        }
        assert!(write_file(&dir.join(".echkpnt"), b"LSB_ECHKPNT_METHOD=x\n").is_err());
        log(&dir, "a line");
        assert!(read_file(&dir.join(".submission")).is_err());
        assert_eq!(fs::read_to_string(&victim).unwrap(), "kept");
        fs::remove_file(dir.join(".echkpnt.new")).unwrap();
        assert_eq!(write_file(&dir.join(".echkpnt"), b"long text"), Ok(()));
        assert_eq!(write_file(&dir.join(".echkpnt"), b"short"), Ok(()));
        assert_eq!(read_file(&dir.join(".echkpnt")).as_deref(), Ok("short"));
        fs::remove_dir_all(&dir).unwrap();
        symlink(&top, &dir).unwrap();
        assert_eq!(make_directory(&dir), words("not a directory"));
        fs::remove_dir_all(&top).unwrap();
    }
}
