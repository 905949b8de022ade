//! Users and groups: /etc/passwd and /etc/group read directly, never NSS from this binary; what
//! they do not know, `getent` as a bounded child does.

use super::child::{self, Child, Given, Io};
use crate::conf::unix::parse_group;
use rustix::event::{PollFd, PollFlags, poll};
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant, SystemTime};

/// Largest passwd or group file read, bytes.
pub const MAX_FILE: u64 = 64 << 20;
/// Largest answer of `getent`, bytes.
pub const MAX_GETENT: usize = 256 << 10;
/// Longest wait for `getent` where the caller has no shorter one.
pub const GETENT_WAIT: Duration = Duration::from_secs(5);
/// Most supplementary groups of a user (the kernel's own NGROUPS_MAX).
pub const MAX_GROUPS: usize = 65_536;

/// A line of passwd.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    pub name: String,
    pub uid: u32,
    pub gid: u32,
    pub home: String,
    pub shell: String,
}

/// Reads a line of passwd. NIS `+` and `-` lines, names without text and numbers out of range
/// are no users.
pub fn parse_user(line: &str) -> Option<User> {
    let mut f = line.trim_end_matches('\n').split(':');
    let (name, _, uid, gid) = (f.next()?, f.next()?, f.next()?, f.next()?);
    let (_, home, shell) = (f.next()?, f.next()?, f.next()?);
    let sound = !name.is_empty() && !name.starts_with(['+', '-']) && is_name(name);
    if !sound || f.next().is_some() {
        return None;
    }
    Some(User {
        name: name.to_string(),
        uid: uid.parse().ok().filter(|&u| u != u32::MAX)?,
        gid: gid.parse().ok().filter(|&g| g != u32::MAX)?,
        home: home.to_string(),
        shell: shell.to_string(),
    })
}

/// Whether this can be the name of a user or group: printable, no blank, no colon, not a number.
pub fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 256
        && name.chars().all(|c| !c.is_control() && !c.is_whitespace() && c != ':' && c != '/')
        && !name.bytes().all(|b| b.is_ascii_digit())
}

/// A text file kept until it changes.
#[derive(Debug)]
struct Cached {
    path: PathBuf,
    stamp: Option<(SystemTime, u64)>,
    text: String,
}

impl Cached {
    fn new(path: &str) -> Self {
        Cached { path: path.into(), stamp: None, text: String::new() }
    }

    fn text(&mut self) -> &str {
        let stamp = std::fs::metadata(&self.path)
            .ok()
            .and_then(|m| Some((m.modified().ok()?, m.len())))
            .filter(|&(_, len)| len <= MAX_FILE);
        if stamp.is_none() || stamp != self.stamp {
            let bytes = stamp.and_then(|_| std::fs::read(&self.path).ok()).unwrap_or_default();
            self.text = String::from_utf8_lossy(&bytes).into_owned();
            self.stamp = stamp;
        }
        &self.text
    }
}

/// The local user database, read again when its files change.
#[derive(Debug)]
pub struct UserDatabase {
    passwd: Cached,
    group: Cached,
}

impl Default for UserDatabase {
    fn default() -> Self {
        UserDatabase::at("/etc/passwd", "/etc/group")
    }
}

impl UserDatabase {
    /// Other files, for tests.
    pub fn at(passwd: &str, group: &str) -> Self {
        UserDatabase { passwd: Cached::new(passwd), group: Cached::new(group) }
    }

    /// Looks a user up in passwd alone.
    pub fn by_uid(&mut self, uid: u32) -> Option<User> {
        self.passwd.text().lines().filter_map(parse_user).find(|u| u.uid == uid)
    }

    /// Looks a user up in passwd alone.
    pub fn by_name(&mut self, name: &str) -> Option<User> {
        let mine = |l: &&str| l.strip_prefix(name).is_some_and(|r| r.starts_with(':'));
        self.passwd.text().lines().filter(mine).find_map(parse_user)
    }

    /// The groups of a user: `gid`, then those that list the name. From the group file alone.
    pub fn groups(&mut self, name: &str, gid: u32) -> Vec<u32> {
        let mut out = vec![gid];
        for (_, g, members) in self.group.text().lines().filter_map(parse_group) {
            if members.contains(&name) && !out.contains(&g) && out.len() < MAX_GROUPS {
                out.push(g);
            }
        }
        out
    }

    /// Looks a user up in passwd, else through `getent`, which may take up to `wait`.
    pub fn find_uid(&mut self, uid: u32, wait: Duration) -> Option<User> {
        self.by_uid(uid).or_else(|| {
            let line = getent("passwd", &uid.to_string(), wait).ok()??;
            parse_user(&line).filter(|u| u.uid == uid)
        })
    }

    /// Looks a user up in passwd, else through `getent`, which may take up to `wait`.
    pub fn find_name(&mut self, name: &str, wait: Duration) -> Option<User> {
        self.by_name(name).or_else(|| {
            if !is_name(name) {
                return None;
            }
            let line = getent("passwd", name, wait).ok()??;
            parse_user(&line).filter(|u| u.name == name)
        })
    }

    /// The groups of a user from the group file and, for users not in passwd, `getent`.
    pub fn find_groups(&mut self, user: &User, wait: Duration) -> Vec<u32> {
        let mut out = self.groups(&user.name, user.gid);
        if self.by_name(&user.name).is_none()
            && let Ok(Some(line)) = getent("initgroups", &user.name, wait)
        {
            for g in line.split_whitespace().skip(1).filter_map(|w| w.parse().ok()) {
                if !out.contains(&g) && out.len() < MAX_GROUPS {
                    out.push(g);
                }
            }
        }
        out
    }
}

/// The paths at which `getent` is looked for.
const GETENT: [&str; 2] = ["/usr/bin/getent", "/bin/getent"];

/// Asks the system's name service through `getent DB KEY`: its first line, `None` where it
/// knows nothing. Blocks up to `wait`.
pub fn getent(db: &str, key: &str, wait: Duration) -> std::io::Result<Option<String>> {
    Ok(getent_lines(db, key, wait)?.into_iter().next())
}

/// Every line of the answer; none where it knows nothing, an error where `getent` is missing,
/// slow or talks too much. Blocks up to `wait`.
pub fn getent_lines(db: &str, key: &str, wait: Duration) -> std::io::Result<Vec<String>> {
    let known = getent_text(db, &[key], wait)?.filter(|(_, status)| status.success());
    Ok(known.map_or_else(Vec::new, |(text, _)| lines_of(&text)))
}

/// The lines of those of several keys that it knows, from one process; errors as of
/// [`getent_lines`], which say nothing about any of the keys. Blocks up to `wait`.
pub fn getent_each(db: &str, keys: &[String], wait: Duration) -> std::io::Result<Vec<String>> {
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    getent_text(db, &keys, wait)?.map_or_else(|| Ok(Vec::new()), |(text, end)| each_of(&text, end))
}

/// The lines of an answer about several keys: it ends with a code where one is unknown. An
/// answer that a signal has ended, as where a module of the name service fails, says nothing
/// about the keys that were left.
fn each_of(text: &str, end: ExitStatus) -> std::io::Result<Vec<String>> {
    match end.code() {
        Some(_) => Ok(lines_of(text)),
        None => Err(std::io::Error::other(format!("it has ended: {end}"))),
    }
}

fn lines_of(text: &str) -> Vec<String> {
    text.lines().filter(|l| !l.is_empty()).map(str::to_owned).collect()
}

/// The output, and how it ended. Words that are no names are left out; `None`: there is no other.
fn getent_text(
    db: &str,
    keys: &[&str],
    wait: Duration,
) -> std::io::Result<Option<(String, ExitStatus)>> {
    let is_key = |key: &&str| !key.starts_with('-') && !key.chars().any(char::is_control);
    let keys: Vec<&str> = keys.iter().copied().filter(is_key).collect();
    if keys.is_empty() {
        // without a key it would list everything
        return Ok(None);
    }
    let program = GETENT
        .iter()
        .find(|p| std::path::Path::new(p).exists())
        .ok_or_else(|| std::io::Error::other("no getent on this host"))?;
    let mut cmd = Command::new(program);
    cmd.arg(db).args(keys).current_dir("/");
    output_bounded(&cmd, OUTPUT, wait).map(Some)
}

const OUTPUT: Given = Given { env: false, group: false, stdio: [Io::Null, Io::Pipe, Io::Null] };

/// The output of a command, and whether it succeeded; killed after `wait`.
pub fn run_bounded(cmd: &Command, given: Given, wait: Duration) -> std::io::Result<(String, bool)> {
    output_bounded(cmd, given, wait).map(|(text, end)| (text, end.success()))
}

fn output_bounded(
    cmd: &Command,
    given: Given,
    wait: Duration,
) -> std::io::Result<(String, ExitStatus)> {
    let mut child = child::start(cmd, given)?;
    let text = read_bounded(&mut child, Instant::now() + wait);
    if text.is_err() {
        child.kill();
    }
    let end = child.wait()?;
    Ok((text?, end))
}

fn read_bounded(child: &mut Child, until: Instant) -> std::io::Result<String> {
    let Some(mut out) = child.from.take() else { return Ok(String::new()) };
    let mut text = Vec::new();
    let mut buf = [0u8; 4096];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let mut fds = [PollFd::new(&out, PollFlags::IN)];
        let time = rustix::event::Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        match poll(&mut fds, Some(&time)) {
            Ok(0) => return Err(std::io::Error::from(std::io::ErrorKind::TimedOut)),
            Err(rustix::io::Errno::INTR) => continue,
            Err(e) => return Err(e.into()),
            Ok(_) => {}
        }
        let n = out.read(&mut buf)?;
        if n == 0 {
            return Ok(String::from_utf8_lossy(&text).into_owned());
        }
        if text.len() + n > MAX_GETENT {
            return Err(std::io::Error::other("it says too much"));
        }
        text.extend_from_slice(&buf[..n]);
    }
}

/// Is there a getent for this test? Where there is none it is counted as skipped (tests/run).
#[cfg(test)]
pub(crate) fn getent_for(test: &str) -> bool {
    use std::io::Write;
    let here = GETENT.iter().any(|p| std::path::Path::new(p).exists());
    if !here && let Some(path) = std::env::var_os("LSF_TEST_SKIPS") {
        let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
        writeln!(file.unwrap(), "{test}: there is no getent here").unwrap();
    }
    here
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_lines_of_passwd_are_ignored() {
        let u = parse_user("ann:x:1000:100:Ann B:/home/ann:/bin/sh\n").unwrap();
        assert_eq!((u.name.as_str(), u.uid, u.gid), ("ann", 1000, 100));
        assert_eq!((u.home.as_str(), u.shell.as_str()), ("/home/ann", "/bin/sh"));
        for bad in [
            "+::::::",
            "",
            "a:x:1:1:h:/",
            "a:x:4294967295:1:::",
            "a:x:-1:1:::",
            "a b:x:1:1:::",
            "12:x:1:1:::",
            "a:x:1:1:::sh:more",
        ] {
            assert_eq!(parse_user(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn the_files_are_read_again_when_they_change() {
        let dir = std::env::temp_dir().join(format!("lsf-users-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let (p, g) = (dir.join("p"), dir.join("g"));
        std::fs::write(&p, "ann:x:5000:1::/:/bin/sh\nanna:x:5001:1::/:/bin/sh\n").unwrap();
        std::fs::write(&g, "a:x:1:\nb:x:2:bob,ann\nc:x:3:ann\nd:x:3:ann\n").unwrap();
        let mut users = UserDatabase::at(p.to_str().unwrap(), g.to_str().unwrap());
        assert_eq!(users.by_uid(5001).unwrap().name, "anna");
        assert_eq!(users.by_name("ann").unwrap().uid, 5000);
        assert_eq!(users.by_name("an"), None);
        assert_eq!(users.groups("ann", 1), [1, 2, 3]);
        std::fs::write(&p, "zoe:x:5001:1::/:/bin/sh\n").unwrap();
        assert_eq!(users.by_uid(5001).unwrap().name, "zoe");
        std::fs::remove_file(&p).unwrap();
        assert_eq!(users.by_uid(5001), None);
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn call_of_getent_is_bounded_in_time() {
        if !getent_for("getent_is_bounded") {
            return;
        }
        let wait = Duration::from_secs(20);
        assert!(getent("passwd", "0", wait).unwrap().unwrap().starts_with("root:"));
        assert_eq!(getent("passwd", "no-such-user-here", wait).unwrap(), None);
        assert_eq!(getent("passwd", "-s", wait).unwrap(), None);
        let keys = |all: &[&str]| all.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>();
        let each = |all| getent_each("passwd", &keys(all), wait).unwrap();
        let of_root = getent("passwd", "root", wait).unwrap().unwrap();
        assert_eq!(each(&["no-such-user-here", "-s", "root"]), [of_root]);
        assert!(each(&["-s"]).is_empty() && each(&[]).is_empty());
    }

    #[test]
    fn answer_that_a_signal_has_ended_is_an_error() {
        use std::os::unix::process::ExitStatusExt;
        let of = |raw| each_of("a:x:1:\n", ExitStatus::from_raw(raw));
        assert_eq!(
            (of(0).unwrap(), of(2 << 8).unwrap()),
            (vec!["a:x:1:".to_owned()], of(0).unwrap())
        );
        assert!(of(11).unwrap_err().to_string().contains("signal: 11"));
    }

    #[test]
    fn a_child_that_hangs_is_given_up() {
        let mut child = child::start(Command::new("/bin/sleep").arg("30"), OUTPUT).unwrap();
        let until = Instant::now() + Duration::from_millis(50);
        let got = read_bounded(&mut child, until).unwrap_err();
        assert_eq!(got.kind(), std::io::ErrorKind::TimedOut);
        child.kill();
        child.wait().unwrap();
    }
}
