//! Imports, as tests/tidy/imports.py reads them: they run downwards, and in no circle but those
//! that circles.txt lists.

use super::{FLOORS, ROOMS, report, root};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The output of the reader of imports for the sources in `root`; `None` without python3.
fn read(root: &Path, args: &[&str]) -> Option<String> {
    let script = super::root().join("tests/tidy/imports.py");
    let mut command = Command::new("python3");
    command.arg(script).arg("--root").arg(root).args(args);
    match command.output() {
        Ok(out) => {
            let err = String::from_utf8_lossy(&out.stderr);
            assert!(err.is_empty(), "{err}");
            Some(String::from_utf8_lossy(&out.stdout).into_owned())
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            super::man::skipped("tidy: imports: no python3");
            None
        }
        Err(e) => panic!("python3: {e}"),
    }
}

/// The floor of a file of the library; applets stand above all.
fn floor(file: &str) -> Option<u32> {
    if file.starts_with("applets/") {
        return Some(u32::MAX);
    }
    let folder = file.strip_prefix("src/")?.split('/').next()?;
    FLOORS.iter().find(|f| f.0 == folder).map(|f| f.1)
}

/// The arrows that run upwards.
fn upwards(list: &str) -> Vec<String> {
    let upward = |line: &str| {
        let mut parts = line.split('\t');
        let (from, to, name) = (parts.next()?, parts.next()?, parts.next()?);
        let up = floor(to)? > floor(from)?;
        up.then(|| format!("{from}: takes {name} from {to}, a higher floor"))
    };
    list.lines().filter_map(upward).collect()
}

#[test]
fn imports_run_downwards() {
    let Some(list) = read(&root(), &["--list"]) else { return };
    let arrows = list.lines().count();
    assert!(arrows > 2000, "only {arrows} arrows were read");
    report("imports run downwards", upwards(&list));
}

/// The room of a file of mbatchd and its height; a file beside the rooms is one by itself.
fn room(file: &str) -> Option<(&str, u32)> {
    let room = file.strip_prefix("src/batch/")?.split('/').next()?;
    ROOMS.iter().find(|r| r.0 == room).copied()
}

/// The arrows from a room of mbatchd to one beside or above it.
fn out_of_the_room(list: &str) -> Vec<String> {
    let outward = |line: &str| {
        let mut parts = line.split('\t');
        let (from, to, name) = (parts.next()?, parts.next()?, parts.next()?);
        let (own, height) = room(from.split(':').next()?)?;
        let (other, other_height) = room(to)?;
        let allowed = own == other || other_height < height;
        (!allowed).then(|| format!("{from}: takes {name} from {to}, which is no lower room"))
    };
    list.lines().filter_map(outward).collect()
}

#[test]
fn rooms_of_mbatchd_take_from_lower_rooms_alone() {
    let Some(list) = read(&root(), &["--list"]) else { return };
    for (room, _) in ROOMS {
        let inside = format!("src/batch/{room}");
        assert!(list.lines().any(|line| line.starts_with(&inside)), "{inside} is empty");
    }
    report("rooms", out_of_the_room(&list));
}

#[test]
fn an_arrow_out_of_a_lower_room_is_found() {
    let arrow = |from: &str, to: &str| format!("src/batch/{from}:3\tsrc/batch/{to}\tname\n");
    let found = |from, to| out_of_the_room(&arrow(from, to)).len();
    assert_eq!(found("sched/walk.rs", "state/mod.rs"), 0);
    assert_eq!(found("sched/walk.rs", "sched/order.rs"), 0);
    assert_eq!(found("query/jobs.rs", "mbatchd.rs"), 0);
    assert_eq!(found("admin/status.rs", "lifecycle/works.rs"), 0);
    assert_eq!(found("lifecycle/works.rs", "admin/status.rs"), 1);
    assert_eq!(found("query/jobs.rs", "lifecycle/works.rs"), 1);
    assert_eq!(found("mbatchd.rs", "query/jobs.rs"), 1);
    assert_eq!(found("sched/walk.rs", "query/jobs.rs"), 1);
    assert_eq!(found("sched/walk.rs", "mod.rs"), 1);
    assert_eq!(found("cluster/hosts.rs", "usage/windows.rs"), 1);
}

/// A circle: how many files and arrows, and the lines that tie it.
struct Circle<'a> {
    files: usize,
    arrows: usize,
    ties: Vec<&'a str>,
}

fn circles(said: &str) -> Vec<Circle<'_>> {
    let mut all = Vec::new();
    for line in said.lines() {
        if let Some(size) = line.strip_prefix("circle: ") {
            let mut numbers = size.split(|c: char| !c.is_ascii_digit()).filter(|w| !w.is_empty());
            let mut number = || numbers.next().unwrap().parse().unwrap();
            all.push(Circle { files: number(), arrows: number(), ties: Vec::new() });
        } else if let Some(circle) = all.last_mut() {
            circle.ties.push(line.trim());
        }
    }
    all
}

/// Why a circle may not be; `None`: the list allows it.
fn refused(circle: &Circle<'_>, allowed: &str) -> Option<String> {
    let ties = circle.ties.join("\n    ");
    let lines = allowed.lines().filter(|line| !line.starts_with('#'));
    for line in lines {
        let mut words = line.split_whitespace();
        let (Some(folder), Some(files), Some(arrows)) = (words.next(), words.next(), words.next())
        else {
            panic!("circles.txt: {line}");
        };
        let inside = format!("{folder}/");
        let both = |tie: &str| {
            let ends = tie.split_once(" -> ").unwrap();
            ends.0.starts_with(&inside) && ends.1.starts_with(&inside)
        };
        if circle.ties.iter().all(|tie| both(tie)) {
            let (files, arrows): (usize, usize) = (files.parse().unwrap(), arrows.parse().unwrap());
            return (circle.files > files || circle.arrows > arrows).then(|| {
                format!(
                    "the circle in {folder} has grown to {} files and {} arrows, beyond the {files} \
                     and {arrows} of tests/tidy/circles.txt:\n    {ties}",
                    circle.files, circle.arrows
                )
            });
        }
    }
    Some(format!("a circle of {} files:\n    {ties}", circle.files))
}

#[test]
fn files_import_each_other_in_no_circle() {
    let Some(said) = read(&root(), &[]) else { return };
    let allowed = std::fs::read_to_string(root().join("tests/tidy/circles.txt")).unwrap();
    let circles = circles(&said);
    report("circles", circles.iter().filter_map(|circle| refused(circle, &allowed)).collect());
}

/// A library of a few files.
struct Sketch(PathBuf);

impl Sketch {
    fn new(name: &str, files: &[(&str, &str)]) -> Sketch {
        let dir = std::env::temp_dir().join(format!("lsf-imports-{name}-{}", std::process::id()));
        for (file, text) in files {
            let path = dir.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Sketch(dir)
    }

    fn read(&self, args: &[&str]) -> Option<String> {
        read(&self.0, args)
    }
}

impl Drop for Sketch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const LIB: (&str, &str) = ("src/lib.rs", "pub mod conf;\n");
const CONF: (&str, &str) =
    ("src/conf/mod.rs", "pub mod a;\npub mod b;\npub use a::*;\npub use b::{Beta, beta};\n");

#[test]
fn a_circle_is_named_with_both_files_and_lines_however_the_names_are_spelled() {
    let beta = "//! b\n\nuse super::Alpha;\npub struct Beta(Alpha);\npub fn beta() {}\n";
    let ways = [
        "use crate::conf::Beta;\npub struct Alpha;\n",
        "use super::b::Beta;\npub struct Alpha;\n",
        "pub struct Alpha(self::super::Beta);\n",
        "use super::*;\npub struct Alpha(Beta);\n",
        "use super::b;\npub struct Alpha(b::Beta);\n",
        "#[cfg(test)]\nmod tests {\n    use super::*;\n}\n\npub struct Alpha;\nuse super::b::Beta;\n",
        "pub struct Alpha;\nimpl Alpha {\n    fn f(&self) {\n        super::beta();\n    }\n}\n",
    ];
    for (n, alpha) in ways.iter().enumerate() {
        let files = [LIB, CONF, ("src/conf/a.rs", alpha), ("src/conf/b.rs", beta)];
        let Some(said) = Sketch::new(&format!("way{n}"), &files).read(&[]) else { return };
        let all = circles(&said);
        assert_eq!(all.len(), 1, "{alpha}: {said}");
        let text = refused(&all[0], "src/batch 9 9\n").unwrap();
        assert!(text.contains("src/conf/b.rs:3 -> src/conf/a.rs: Alpha"), "{alpha}: {text}");
        assert!(text.contains("src/conf/a.rs:") && text.contains(" -> src/conf/b.rs: "), "{text}");
    }
}

#[test]
fn methods_that_call_each_other_across_files_are_a_circle() {
    let a =
        "pub struct Alpha;\nimpl Alpha {\n    pub fn up(&self) {\n        self.over();\n    }\n}\n";
    let b = "use super::a::Alpha;\nimpl Alpha {\n    pub fn over(&self) {}\n}\npub struct Beta;\npub fn beta() {}\n";
    let sketch = Sketch::new("methods", &[LIB, CONF, ("src/conf/a.rs", a), ("src/conf/b.rs", b)]);
    let Some(said) = sketch.read(&[]) else { return };
    let text = refused(&circles(&said)[0], "").unwrap();
    assert!(text.contains("src/conf/a.rs:4 -> src/conf/b.rs: Alpha::over()"), "{text}");
}

#[test]
fn tests_re_exports_words_and_comments_are_no_arrows() {
    let a = "//! `b::Beta`\n// use super::b::Beta;\npub struct Alpha;\n\
             pub const TEXT: &str = \"super::b::Beta\";\n\
             #[cfg(test)]\nmod tests {\n    use super::super::b::Beta;\n}\n\
             impl Alpha {\n    #[cfg(test)]\n    fn f() { super::b::beta(); }\n}\n";
    let b = "use super::Alpha;\npub struct Beta(Alpha);\npub fn beta() {}\n";
    let sketch = Sketch::new("none", &[LIB, CONF, ("src/conf/a.rs", a), ("src/conf/b.rs", b)]);
    let Some(said) = sketch.read(&[]) else { return };
    assert_eq!(said, "");
    let list = sketch.read(&["--list"]).unwrap();
    assert_eq!(list, "src/conf/b.rs:1\tsrc/conf/a.rs\tAlpha\n");
}

#[test]
fn a_circle_may_not_outgrow_its_line() {
    let circle = |files, arrows, ties| Circle { files, arrows, ties };
    let ties = vec!["src/lim/a.rs:1 -> src/lim/b.rs: X", "src/lim/b.rs:2 -> src/lim/a.rs: Y"];
    let allowed = "# words\nsrc/batch 9 9\nsrc/lim 2 2\n";
    assert_eq!(refused(&circle(2, 2, ties.clone()), allowed), None);
    let grown = refused(&circle(2, 3, ties.clone()), allowed).unwrap();
    assert!(grown.contains("grown to 2 files and 3 arrows") && grown.contains("b.rs:2"), "{grown}");
    assert!(refused(&circle(3, 2, ties), allowed).is_some());
    let other = vec!["src/lim/a.rs:1 -> src/net/b.rs: X", "src/net/b.rs:2 -> src/lim/a.rs: Y"];
    assert!(refused(&circle(2, 2, other), allowed).is_some());
}

#[test]
fn an_import_of_a_higher_floor_is_named() {
    let list = "src/conf/a.rs:3\tsrc/faultsim/b.rs\tB\nsrc/faultsim/b.rs:1\tsrc/conf/a.rs\tA\n\
                src/log/a.rs:2\tsrc/sys/b.rs\tC\n";
    let found = ["src/conf/a.rs:3: takes B from src/faultsim/b.rs, a higher floor"];
    assert_eq!(upwards(list), found);
}
