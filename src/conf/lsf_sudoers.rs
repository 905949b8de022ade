//! lsf.sudoers: what root alone may decide, `NAME=VALUE` lines.
//!
//! The file holds a secret (LSF_EAUTH_KEY): no diagnostic quotes a value, nothing is included from
//! elsewhere, and the value cannot be printed. Owner and mode are checked where the file is opened,
//! in `sys::sudoers`. See lsf.sudoers(5).

use super::diag::{Diags, Pos};
use super::lexer::shown;
use super::names::tables::SUDOERS;
use super::types::{RawParam, RawParams};
use super::units::yes_no;
use std::sync::Arc;

/// Shortest LSF_EAUTH_KEY, characters.
pub const MIN_EAUTH_KEY: usize = 6;
/// Longest LSF_EAUTH_KEY, characters: what any pipe holds.
pub const MAX_EAUTH_KEY: usize = 4096;
/// Largest lsf.sudoers, bytes.
pub const MAX_SUDOERS: usize = 64 << 10;

/// lsf.sudoers.
#[derive(Default)]
pub struct LsfSudoers {
    values: RawParams,
}

impl std::fmt::Debug for LsfSudoers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LsfSudoers(..)")
    }
}

impl Drop for LsfSudoers {
    fn drop(&mut self) {
        for value in self.values.values_mut() {
            let mut bytes = std::mem::take(&mut value.text).into_bytes();
            bytes.fill(0);
            std::hint::black_box(&bytes);
        }
    }
}

impl LsfSudoers {
    /// The value of `name`; None where it is not set or set to nothing.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(|v| v.text.as_str()).filter(|v| !v.is_empty())
    }

    /// LSF_EAUTH_KEY: handed to authd alone.
    pub fn eauth_key(&self) -> Option<&str> {
        self.get("LSF_EAUTH_KEY")
    }

    /// Whether a user may start daemons: LSF_STARTUP_USERS names it, or says `all_admins` and
    /// `admin` is true.
    pub fn may_start(&self, user: &str, admin: bool) -> bool {
        let mut listed = self.get("LSF_STARTUP_USERS").unwrap_or_default().split_whitespace();
        listed.any(|word| word == user || word == "all_admins" && admin)
    }

    /// LSF_ROOT_USER: root may submit jobs to this host.
    pub fn root_user(&self) -> bool {
        self.get("LSF_ROOT_USER").and_then(yes_no) == Some(true)
    }
}

/// Reads the text of lsf.sudoers; `path` is for the diagnostics alone.
pub fn parse(path: &str, bytes: &[u8], diags: &mut Diags) -> LsfSudoers {
    let mut conf = LsfSudoers::default();
    let Ok(text) = std::str::from_utf8(bytes) else {
        diags.error(&Pos::whole(path), "is not UTF-8 text");
        return conf;
    };
    let file: Arc<str> = Arc::from(path);
    for (line, number) in text.lines().zip(1u32..) {
        let at = |piece: &str| {
            let offset = (piece.as_ptr() as usize).saturating_sub(line.as_ptr() as usize);
            let col = line.get(..offset).map_or(0, |before| before.chars().count());
            Pos::new(&file, number, col as u32 + 1)
        };
        let kept = uncommented(line);
        if kept.trim().is_empty() {
            continue;
        }
        let Some((name, value)) = kept.split_once('=').filter(|(n, _)| !n.trim().is_empty()) else {
            diags.error(&at(kept.trim_start()), "is not NAME=VALUE");
            continue;
        };
        let (name, value) = (name.trim(), value.trim());
        let quoted = value.strip_prefix('"').and_then(|v| v.strip_suffix('"'));
        let value = quoted.map_or(value, str::trim);
        keep(&mut conf, (name, at(name)), (value, at(value)), diags);
    }
    conf
}

/// The line up to a `#` outside double quotes.
fn uncommented(line: &str) -> &str {
    let mut quoted = false;
    for (offset, c) in line.char_indices() {
        quoted ^= c == '"';
        if c == '#' && !quoted {
            return &line[..offset];
        }
    }
    line
}

fn keep(conf: &mut LsfSudoers, name: (&str, Pos), value: (&str, Pos), diags: &mut Diags) {
    let (name, name_at) = name;
    let (value, value_at) = value;
    match SUDOERS.find(name) {
        Some(known) if known.name != name => {
            let text = format!("unknown parameter <{}>", shown(name));
            let severity = super::diag::Severity::Error;
            return diags.add_near(severity, &name_at, text, Some(known.name));
        }
        Some(_) if value.is_empty() => {}
        _ => {
            SUDOERS.check(name, &name_at, diags);
        }
    }
    if let Some(want) = wrong(name, value) {
        return diags.error(&value_at, format!("bad value of {name}: {want}"));
    }
    let param = RawParam { text: value.to_owned(), pos: value_at, breaks: Vec::new() };
    if conf.values.insert(name.to_owned(), param).is_some() {
        diags.warning(&name_at, format!("{} is given again; the last one counts", shown(name)));
    }
}

/// The mistake in a value, without its text.
fn wrong(name: &str, value: &str) -> Option<&'static str> {
    let printable = |c: char| c.is_ascii_graphic() || c == ' ';
    let word = |v: &str| !v.contains(|c: char| c.is_whitespace() || c.is_control() || c == '/');
    match name {
        _ if value.is_empty() => None,
        _ if value.contains('"') => Some("quotes are not paired"),
        "LSF_EAUTH_KEY" if value.len() < MIN_EAUTH_KEY || !value.chars().all(printable) => {
            Some("at least 6 printable characters are wanted")
        }
        "LSF_EAUTH_KEY" if value.len() > MAX_EAUTH_KEY => {
            Some("at most 4096 characters are wanted")
        }
        "LSF_EAUTH_USER" | "LSF_EEXEC_USER" | "LSB_PRE_POST_EXEC_USER" if !word(value) => {
            Some("the name of one user is wanted")
        }
        "LSB_PRE_POST_EXEC_PROGRAMS" if !value.split_whitespace().all(|p| p.starts_with('/')) => {
            Some("absolute paths are wanted")
        }
        "LSF_STARTUP_PATH" if !value.starts_with('/') => Some("an absolute path is wanted"),
        "LSF_ROOT_USER" if yes_no(value).is_none() => Some("Y or N is wanted"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (LsfSudoers, Vec<String>) {
        let mut diags = Diags::new();
        let conf = parse("/etc/lsf.sudoers", text.as_bytes(), &mut diags);
        (conf, diags.list().iter().map(|d| format!("{} {d}", d.severity.word())).collect())
    }

    #[test]
    fn the_documented_keywords_are_read() {
        let (conf, diags) = read(
            "# of root\n\nLSF_EAUTH_KEY=\"se cret#1\"  # not the key\nLSF_EAUTH_USER = auth\n\
             LSF_STARTUP_USERS=\"ann bob\"\nLSF_STARTUP_PATH=/opt/lsf/etc\nLSF_EEXEC_USER=\n\
             LSB_PRE_POST_EXEC_USER=root\nLSF_ROOT_USER=y\n",
        );
        assert!(diags.iter().all(|d| d.starts_with("notice ")), "{diags:?}");
        assert_eq!(conf.eauth_key(), Some("se cret#1"));
        assert_eq!(conf.get("LSF_EAUTH_USER"), Some("auth"));
        assert_eq!(conf.get("LSF_EEXEC_USER"), None);
        assert_eq!(conf.get("LSB_PRE_POST_EXEC_USER"), Some("root"));
        assert!(conf.may_start("ann", false) && !conf.may_start("eve", true) && conf.root_user());
        let (conf, _) = read("LSF_STARTUP_USERS=all_admins\n");
        assert!(conf.may_start("eve", true) && !conf.may_start("eve", false));
        assert!(!conf.root_user() && conf.eauth_key().is_none());
    }

    #[test]
    fn mistakes_are_named_with_their_place_and_without_the_secret() {
        let (conf, mut diags) = read(
            "LSF_EAUTH_KEY topsecret\n  LSF_EAUTH_KEI=topsecret\nLSF_EAUTH_KEY= short\n\
             lsf_eauth_key=topsecret\nLSF_EAUTH_USER=\"top secret\"\nLSF_STARTUP_PATH=topsecret\n\
             LSF_LOAD_PLUGINS=y\nLSF_ROOT_USER=topsecret\nLSF_EAUTH_KEY=\"topsecret\n\
             #INCLUDE /etc/passwd\nLSB_PRE_POST_EXEC_PROGRAMS=/top secret\n",
        );
        let want = [
            "error /etc/lsf.sudoers:1:1: is not NAME=VALUE",
            "error /etc/lsf.sudoers:2:3: unknown parameter <LSF_EAUTH_KEI>; did you mean \
             <LSF_EAUTH_KEY>?",
            "error /etc/lsf.sudoers:3:16: bad value of LSF_EAUTH_KEY: at least 6 printable \
             characters are wanted",
            "error /etc/lsf.sudoers:4:1: unknown parameter <lsf_eauth_key>; did you mean \
             <LSF_EAUTH_KEY>?",
            "error /etc/lsf.sudoers:5:17: bad value of LSF_EAUTH_USER: the name of one user is \
             wanted",
            "error /etc/lsf.sudoers:6:18: bad value of LSF_STARTUP_PATH: an absolute path is \
             wanted",
            "error /etc/lsf.sudoers:8:15: bad value of LSF_ROOT_USER: Y or N is wanted",
            "error /etc/lsf.sudoers:9:15: bad value of LSF_EAUTH_KEY: quotes are not paired",
            "error /etc/lsf.sudoers:11:28: bad value of LSB_PRE_POST_EXEC_PROGRAMS: absolute paths \
             are wanted",
        ];
        assert!(!format!("{conf:?}{diags:?}").contains("topsecret"));
        diags.retain(|d| !d.starts_with("notice "));
        assert_eq!(diags, want);
        assert_eq!(conf.eauth_key(), None);
        let long = |n| read(&format!("LSF_EAUTH_KEY={}\n", "k".repeat(n)));
        assert!(long(MAX_EAUTH_KEY).1.is_empty() && long(MAX_EAUTH_KEY + 1).1.len() == 1);
        let mut diags = Diags::new();
        parse("f", b"LSF_EAUTH_KEY=\xff", &mut diags);
        assert_eq!(diags.list()[0].to_string(), "f: is not UTF-8 text");
    }
}
