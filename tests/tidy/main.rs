//! The house rules that a machine can check: floors, bans, sizes, heads, man pages.
//! Each rule is a test of its own; what it finds is printed as file:line: words.

mod contributing;
mod counts;
mod examples;
mod fields;
mod headings;
mod imports;
mod man;
mod sizes;
mod test_names;
mod verbs;
mod words;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The floors, lowest first; a module may import its own and lower ones.
const FLOORS: &[(&str, u32)] = &[
    ("model", 0),
    ("lang", 1),
    ("conf", 1),
    ("proto", 2),
    ("batch", 3),
    ("exec", 3),
    ("lim", 3),
    ("res", 3),
    ("nlb", 3),
    ("pam", 3),
    ("net", 4),
    ("sys", 4),
    ("log", 4),
    ("auth", 4),
    ("daemon", 5),
    ("faultsim", 5),
    ("cli", 6),
];

/// The rooms of mbatchd (src/batch), and the files beside them, with their heights. A file takes
/// from its own room and from lower ones.
const ROOMS: &[(&str, u32)] = &[
    ("state", 0),
    ("site", 1),
    ("cluster", 2),
    ("usage", 2),
    ("sched", 3),
    ("soft_state", 4),
    ("step.rs", 4),
    ("mbatchd.rs", 5),
    ("query", 6),
    ("past_jobs.rs", 8),
    ("lifecycle", 7),
    ("admin", 8),
    ("mod.rs", 9),
];

/// Floors in which nothing may know a clock, a file, a socket or the environment.
const PURE: &[&str] =
    &["model", "lang", "conf", "proto", "batch", "exec", "lim", "res", "nlb", "pam"];

const PURE_BANS: &[&str] = &[
    "std::fs",
    "std::net::Tcp",
    "std::net::Udp",
    "std::os::unix::net",
    "Instant::now",
    "SystemTime",
    "std::env",
    "std::thread",
    "std::process",
];

struct Source {
    path: PathBuf,
    /// Lines outside tests, which are empty here; nothing of a test file.
    code: Vec<String>,
    all: Vec<String>,
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn walk(dir: &Path, ext: &str, out: &mut Vec<PathBuf>) {
    let Ok(list) = std::fs::read_dir(dir) else { return };
    for e in list.flatten() {
        let p = e.path();
        if p.is_dir() {
            walk(&p, ext, out);
        } else if p.extension().is_some_and(|x| x == ext) {
            out.push(p);
        }
    }
}

fn lines_of(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path).unwrap().lines().map(str::to_string).collect()
}

fn is_test_file(p: &Path) -> bool {
    let name = p.file_stem().map_or(String::new(), |s| s.to_string_lossy().into_owned());
    let in_tests = p.components().any(|c| c.as_os_str() == "tests");
    ["tests", "testing"].contains(&name.as_str()) || name.ends_with("_tests") || in_tests
}

fn sources() -> Vec<Source> {
    let mut files = Vec::new();
    for dir in ["src", "applets"] {
        walk(&root().join(dir), "rs", &mut files);
    }
    files.sort();
    files
        .into_iter()
        .map(|path| {
            let all = lines_of(&path);
            let code = if is_test_file(&path) { Vec::new() } else { without_tests(&all) };
            Source { path, code, all }
        })
        .collect()
}

/// The lines of a file with those of its test items empty. An item ends where rustfmt closes it: at
/// its own indentation, or on its own line.
fn without_tests(all: &[String]) -> Vec<String> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut code = all.to_vec();
    let mut at = 0;
    while at < all.len() {
        let from = at;
        at += 1;
        let mark = all[from].trim_start();
        if !mark.starts_with("#[cfg(test)]") && !mark.starts_with("#[cfg(all(test") {
            continue;
        }
        let own = indent(&all[from]);
        while all.get(at).is_some_and(|line| line.trim_start().starts_with("#[")) {
            at += 1;
        }
        let first = all.get(at).map_or("", |line| line.trim_end());
        let ends = |line: &String| {
            let text = line.trim();
            indent(line) == own && (text.starts_with(['}', ']']) || text == ");")
        };
        at += match first.ends_with([';', ',', '}']) {
            true => 1,
            false => all[at..].iter().position(ends).map_or(all.len() - at, |n| n + 1),
        };
        code[from..at].fill(String::new());
    }
    code
}

#[test]
fn only_the_test_item_is_skipped() {
    let text = "use a;\n#[cfg(test)]\nuse b;\nstruct S {\n    x: u8,\n    #[cfg(test)]\n    y: u8,\n}\n\
        #[cfg(test)]\n#[path = \"t.rs\"]\nmod tests;\n#[cfg(test)]\nmod more {\n    fn f() {\n    }\n\
        \n    const X: u8 = 1;\n}\nfn g() {}\n#[cfg(test)]\nfn h(\n    a: u8,\n) -> u8 {\n    a\n}\nfn i() {}";
    let all: Vec<String> = text.lines().map(str::to_string).collect();
    let left: Vec<String> = without_tests(&all).into_iter().filter(|l| !l.is_empty()).collect();
    assert_eq!(left, ["use a;", "struct S {", "    x: u8,", "}", "fn g() {}", "fn i() {}"]);
}

fn report(rule: &str, found: Vec<String>) {
    assert!(found.is_empty(), "{rule}: {} places\n{}", found.len(), found.join("\n"));
}

fn at(path: &Path, line: usize, words: &str) -> String {
    let p = path.strip_prefix(root()).unwrap_or(path);
    format!("{}:{}: {words}", p.display(), line + 1)
}

fn floor_of(s: &Source) -> Option<(String, u32)> {
    let rel = s.path.strip_prefix(root().join("src")).ok()?;
    let first = rel.components().next()?.as_os_str().to_string_lossy().into_owned();
    FLOORS.iter().find(|f| f.0 == first).map(|f| (first, f.1))
}

/// Code without comments and without what stands in string literals.
fn bare(line: &str) -> String {
    let mut out = String::new();
    let mut in_str = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if in_str => {
                chars.next();
            }
            '"' => in_str = !in_str,
            '/' if !in_str && chars.peek() == Some(&'/') => break,
            c if !in_str => out.push(c),
            _ => {}
        }
    }
    out
}

#[test]
fn pure_floors_know_no_clock_file_socket_or_environment() {
    let mut found = Vec::new();
    for s in sources() {
        let Some((own, _)) = floor_of(&s) else { continue };
        if !PURE.contains(&own.as_str()) {
            continue;
        }
        for (i, line) in s.code.iter().enumerate() {
            let line = bare(line);
            for ban in PURE_BANS.iter().filter(|b| line.contains(**b)) {
                found.push(at(&s.path, i, &format!("{ban} in the pure floor {own}")));
            }
        }
    }
    report("pure floors", found);
}

#[test]
fn nothing_panics_prints_or_exits_outside_main() {
    let bans = [".unwrap()", "println!(", "print!(", "process::exit", "todo!(", "dbg!("];
    let mut found = Vec::new();
    for s in sources() {
        if s.path.ends_with("applets/main.rs") {
            continue;
        }
        for (i, line) in s.code.iter().enumerate() {
            // `.expect("...")` is Option's and Result's; a parser may have an expect of its own.
            let code = bare(line);
            for ban in bans.iter().filter(|b| code.contains(**b)) {
                found.push(at(&s.path, i, ban));
            }
            if line.contains(".expect(\"") {
                found.push(at(&s.path, i, ".expect(\"...\")"));
            }
        }
    }
    report("bans", found);
}

/// The files that run with root's rights: the launcher's machine and runner, what it has others
/// open, how it finds the processes of tasks, the starter until it has become its user (`prepare`
/// is what it does then).
const AS_ROOT: [&str; 20] = [
    "src/exec/launcher.rs",
    "src/exec/launcher_state.rs",
    "src/exec/launcher_supervision.rs",
    "src/exec/life.rs",
    "src/daemon/launcher.rs",
    "src/daemon/launcher_journal.rs",
    "src/daemon/launcher_successor.rs",
    "src/daemon/memory_limits.rs",
    "src/daemon/task_control.rs",
    "src/sys/cgroup.rs",
    "src/sys/process_table.rs",
    "src/sys/task_processes.rs",
    "src/daemon/delegate.rs",
    "src/daemon/guard.rs",
    KEEPS_PORTS,
    "src/daemon/starter.rs",
    "src/daemon/handover.rs",
    "applets/daemon.rs",
    "applets/launcher.rs",
    "applets/starter.rs",
];
/// Lines of code, without comments and empty ones.
const AS_ROOT_MAX: usize = 3215;
/// The file that takes ports for the daemons, and hears nothing on them.
const KEEPS_PORTS: &str = "src/daemon/ports.rs";

#[test]
fn code_that_runs_as_root_is_small_and_uses_no_network() {
    let all = sources();
    let mine: Vec<&Source> =
        all.iter().filter(|s| AS_ROOT.iter().any(|f| s.path == root().join(f))).collect();
    assert_eq!(mine.len(), AS_ROOT.len());
    let code = |s: &Source| s.code.iter().filter(|l| !bare(l).trim().is_empty()).count();
    let lines: usize = mine.iter().map(|s| code(s)).sum();
    assert!(lines < AS_ROOT_MAX, "{lines} lines run as root");
    let mut found = Vec::new();
    for s in mine.into_iter().filter(|s| s.path != root().join(KEEPS_PORTS)) {
        for (i, line) in s.code.iter().enumerate() {
            let line = bare(line);
            if ["Tcp", "Udp", "listen_tcp", "std::net", "mio::net::Tcp"]
                .iter()
                .any(|w| line.contains(w))
            {
                found.push(at(&s.path, i, "the network"));
            }
        }
    }
    report("root on the network", found);
}

#[test]
fn unsafe_lives_in_three_files_and_is_explained() {
    let mut found = Vec::new();
    for s in sources() {
        let raw = ["raw", "mem", "heap"].map(|f| format!("src/sys/{f}.rs"));
        let raw = raw.iter().any(|f| s.path.ends_with(f));
        for (i, line) in s.code.iter().enumerate() {
            let line = bare(line);
            let word =
                line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|w| w == "unsafe");
            if !word || line.contains("unsafe_code") {
                continue;
            }
            let before = &s.code[i.saturating_sub(6)..i];
            let explained = before.iter().any(|l| l.contains("SAFETY") || l.contains("# Safety"));
            if !raw {
                found.push(at(&s.path, i, "unsafe outside src/sys/{raw,mem,heap}.rs"));
            } else if !explained && !line.contains("extern") {
                found.push(at(&s.path, i, "unsafe without a SAFETY comment"));
            }
        }
    }
    report("unsafe", found);
}

#[test]
fn every_file_says_what_it_is() {
    let mut found = Vec::new();
    for s in sources() {
        if !s.all.first().is_some_and(|l| l.starts_with("//!")) {
            found.push(at(&s.path, 0, "no head"));
        }
    }
    report("heads", found);
}

/// Names in the table of applets, with whether they are hidden.
fn applets() -> Vec<(String, bool)> {
    let text = std::fs::read_to_string(root().join("applets/main.rs")).unwrap();
    let from = text.find("const APPLETS").unwrap();
    let table = &text[from..from + text[from..].find("];").unwrap()];
    let entries = table.split("applet(").skip(1);
    let out = entries.map(|entry| {
        let name = entry.split('"').nth(1).unwrap_or("").to_string();
        let group = entry.split(',').nth(1).unwrap_or("").trim();
        (name, group == "Hidden")
    });
    out.collect()
}

#[test]
fn every_applet_and_file_has_a_man_page() {
    let mut pages = Vec::new();
    for section in ["1", "5", "7", "8"] {
        walk(&root().join("man"), section, &mut pages);
    }
    let names: BTreeSet<String> =
        pages.iter().map(|p| p.file_stem().unwrap().to_string_lossy().into_owned()).collect();
    let mut found = Vec::new();
    let applets = applets();
    assert!(applets.len() > 15, "the table of applets could not be read: {applets:?}");
    for (name, _) in &applets {
        if !names.contains(man::page_of(name)) {
            found.push(format!("man/{name}.*: missing"));
        }
    }
    for file in [
        "lsf.conf",
        "lsf.shared",
        "lsf.cluster",
        "lsb.params",
        "lsb.hosts",
        "lsb.queues",
        "lsb.users",
        "lsb.resources",
        "lsb.events",
        "lsb.acct",
    ] {
        if !names.contains(file) {
            found.push(format!("man/{file}.5: missing"));
        }
    }
    report("man pages", found);
}

#[test]
fn the_project_speaks_of_itself_alone() {
    // Words that have no business here, in pieces so that this list is not one of them.
    let words = [["/wo", "rk/"], ["Co-Auth", "ored"], ["Cla", "ude"], ["Chat", "GPT"]];
    let mut files = Vec::new();
    for (dir, ext) in [
        ("src", "rs"),
        ("applets", "rs"),
        ("tests", "rs"),
        ("man", "1"),
        ("man", "5"),
        ("man", "8"),
        ("conf-examples", "sh"),
        (".", "md"),
    ] {
        if dir == "." {
            let top = ["README.md", "CONTRIBUTING.md", "Makefile", "Cargo.toml"];
            files.extend(top.iter().map(|f| root().join(f)));
        } else {
            walk(&root().join(dir), ext, &mut files);
        }
    }
    let mut found = Vec::new();
    for f in files {
        let Ok(text) = std::fs::read_to_string(&f) else { continue };
        for w in words.iter().map(|w| w.concat()).filter(|w| text.contains(w.as_str())) {
            found.push(format!("{}: {w}", f.display()));
        }
    }
    report("what does not belong here", found);
}
