//! Task lists: which commands may run remotely, and what their hosts must be. The site's lsf.task
//! and lsf.task.CLUSTER, then the user's ~/.lsftask. See lsrtasks(1) and lsf.task(5).

use crate::cli::site::LocalSite;
use crate::conf::{LsfConf, load};
use crate::sys::files::{self, RealFiles};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

/// Most of a file that is read, bytes.
const MAX_FILE: u64 = 1 << 20;

/// Tasks by name with their requirement; local ones have none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tasks {
    pub local: BTreeMap<String, String>,
    pub remote: BTreeMap<String, String>,
}

/// The sections, in the order of the file.
const SECTIONS: [&str; 2] = ["LocalTasks", "RemoteTasks"];

/// Name and requirement of `task/requirement`.
pub fn split(word: &str) -> (String, String) {
    let (name, req) = word.split_once('/').unwrap_or((word, ""));
    (name.to_owned(), req.to_owned())
}

impl Tasks {
    fn list(&mut self, section: usize) -> &mut BTreeMap<String, String> {
        if section == 0 { &mut self.local } else { &mut self.remote }
    }

    /// Takes in a file: `+ task` or `task` adds, `- task` removes.
    pub fn read(&mut self, text: &str) {
        let mut section = None;
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default().trim();
            let mut words = line.split_whitespace();
            let first = words.next().unwrap_or_default();
            if first.eq_ignore_ascii_case("Begin") {
                let name = words.next().unwrap_or_default();
                section = SECTIONS.iter().position(|s| s.eq_ignore_ascii_case(name));
            } else if first.eq_ignore_ascii_case("End") {
                section = None;
            } else if let (Some(at), false) = (section, line.is_empty()) {
                let (minus, rest) = match line.strip_prefix(['+', '-']) {
                    Some(rest) => (line.starts_with('-'), rest.trim()),
                    None => (false, line),
                };
                let (name, req) = split(rest.trim_matches('"'));
                if minus {
                    self.list(at).remove(&name);
                } else {
                    self.list(at).insert(name, req);
                }
            }
        }
    }

    /// The task lists that apply to the caller. `cluster`: the name of the cluster, which is asked
    /// only where some cluster has a list of its own.
    pub fn load(lsf: &LsfConf, cluster: impl FnOnce() -> String) -> Tasks {
        let mut tasks = Tasks::default();
        let dir = Path::new(lsf.confdir());
        tasks.read(&text_of(&dir.join("lsf.task")));
        if has_list_of_a_cluster(dir) {
            tasks.read(&text_of(&dir.join(format!("{OF_CLUSTER}{}", cluster()))));
        }
        let home = std::env::var_os("HOME").map(PathBuf::from);
        home.into_iter().for_each(|home| tasks.read(&text_of(&user_file(&home))));
        tasks
    }
}

/// The name of the cluster of a site, as its files have it.
pub fn cluster_name(site: &LocalSite) -> String {
    let (base, _) = load::load_base_lenient(&RealFiles, &site.envdir, Some(&site.host));
    base.map(|base| base.name).unwrap_or_default()
}

/// Is there a list that is about one cluster?
fn has_list_of_a_cluster(dir: &Path) -> bool {
    files::any_name(dir, |name| name.starts_with(OF_CLUSTER.as_bytes()))
}

/// The beginning of the name of such a list.
const OF_CLUSTER: &str = "lsf.task.";

/// The requirement of a command in the remote list; `None`: nothing special.
pub fn requirement(tasks: &Tasks, command: &OsStr) -> Option<String> {
    let name = Path::new(command).file_name()?.to_string_lossy().into_owned();
    let req = tasks.remote.get(&name)?.trim();
    (!req.is_empty() && req != "-").then(|| req.to_owned())
}

fn text_of(path: &Path) -> String {
    use std::io::Read;
    let mut text = Vec::new();
    if let Ok((file, _)) = files::regular(path) {
        // what cannot be read says nothing
        let _ = file.take(MAX_FILE).read_to_end(&mut text);
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// The path of a user's own list.
pub fn user_file(home: &Path) -> PathBuf {
    home.join(".lsftask")
}

/// Adds tasks to the user's own list, or takes them from what counts.
pub fn change(home: &Path, remote: bool, add: bool, words: &[String]) -> io::Result<()> {
    let path = user_file(home);
    let text = change_text(&text_of(&path), remote, add, words);
    let new = home.join(".lsftask.new");
    std::fs::write(&new, text)?;
    std::fs::rename(new, path)
}

fn change_text(old: &str, remote: bool, add: bool, words: &[String]) -> String {
    let mut own: [Vec<String>; 2] = Default::default();
    let mut section = None;
    for line in old.lines().map(str::trim).filter(|l| !l.is_empty()) {
        let mut parts = line.split_whitespace();
        match (parts.next(), parts.next()) {
            (Some(b), Some(name)) if b.eq_ignore_ascii_case("Begin") => {
                section = SECTIONS.iter().position(|s| s.eq_ignore_ascii_case(name));
            }
            (Some(e), _) if e.eq_ignore_ascii_case("End") => section = None,
            _ => {
                if let Some(at) = section {
                    own[at].push(line.to_owned());
                }
            }
        }
    }
    let lines = &mut own[usize::from(remote)];
    for word in words {
        let name = split(word).0;
        lines
            .retain(|l| split(l.trim_start_matches(['+', '-']).trim().trim_matches('"')).0 != name);
        lines.push(if add { format!("+ \"{word}\"") } else { format!("- {name}") });
    }
    let section = |(name, lines): (&str, &Vec<String>)| {
        let body: String = lines.iter().map(|l| format!("{l}\n")).collect();
        format!("Begin {name}\n{body}End {name}\n")
    };
    SECTIONS.into_iter().zip(&own).map(section).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_files_add_and_take_away() {
        let mut t = Tasks::default();
        t.read(
            "Begin LocalTasks\n+ mail\nvi # editors\nEnd LocalTasks\nBegin RemoteTasks\n\
                + \"cc/cpu:mem>5\"\n+ simwork\nEnd RemoteTasks\n+ stray\n",
        );
        let remote =
            |t: &Tasks| t.remote.iter().map(|(n, r)| format!("{n}={r}")).collect::<Vec<_>>();
        assert_eq!(t.local.keys().collect::<Vec<_>>(), ["mail", "vi"]);
        assert_eq!(remote(&t), ["cc=cpu:mem>5", "simwork="]);
        let words = |w: &[&str]| w.iter().map(|s| s.to_string()).collect::<Vec<_>>();
        let text = change_text("", true, true, &words(&["cc/select[mem>9]", "new"]));
        let text = change_text(&text, true, false, &words(&["simwork"]));
        let text = change_text(&text, false, true, &words(&["ls"]));
        t.read(&text);
        assert_eq!(remote(&t), ["cc=select[mem>9]", "new="]);
        assert_eq!(t.local.keys().collect::<Vec<_>>(), ["ls", "mail", "vi"]);
        // what is added again is no more taken away
        let text = change_text(&text, true, true, &words(&["simwork/x"]));
        assert_eq!(text.matches("simwork").count(), 1);
    }
    #[test]
    fn lists_of_a_directory_are_found_among_many_and_none_is_waited_for() {
        let dir = std::env::temp_dir().join(format!("lsf-tasks-{}", std::process::id()));
        std::fs::create_dir(&dir).unwrap();
        let list = dir.join("lsf.task.c1");
        (0..500).for_each(|n| std::fs::write(dir.join(format!("lsb.file{n}")), "").unwrap());
        assert!(!has_list_of_a_cluster(&dir));
        std::fs::write(&list, "Begin RemoteTasks\nsimwork\nEnd RemoteTasks\n").unwrap();
        assert!(has_list_of_a_cluster(&dir));
        assert!(!has_list_of_a_cluster(&dir.join("missing")));
        assert_eq!(text_of(&list).lines().count(), 3);
        // a FIFO in its place would hold every submission
        std::fs::remove_file(&list).unwrap();
        let mode = rustix::fs::Mode::from_bits_retain(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &list, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        assert_eq!(text_of(&list), "");
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
