//! The EXAMPLES of the manual pages: the commands in them are understood by the binary.
//!
//! Each line of an example runs in a shell that finds nothing but the commands of LSF, in an empty
//! directory and without a cluster: a command that understands its words then fails because there
//! is no lsf.conf, and a command that does not prints its usage.

use super::man::{binary, options, page_of, said};
use super::{report, root};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Commands that would act without a cluster: of these only the options are looked up in the help.
const NOT_RUN: &[&str] = &["hostsetup", "lsf", "lsfinstall", "lsfsim"];
/// Commands that pass on options that are not theirs.
const PASSING_ON: &[&str] = &["lslogin", "lsmake", "lstcsh", "mpirun.lsf"];
/// How long one line of an example may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// The commands in a page's EXAMPLES: in a block with lines `$ command` these lines, else all
/// lines of the block; a line that ends in a backslash goes on.
fn commands(page: &str) -> Vec<String> {
    let Some((_, rest)) = page.split_once("\n.SH EXAMPLES\n") else { return Vec::new() };
    let section = rest.split("\n.SH ").next().unwrap_or_default();
    let mut found = Vec::new();
    for block in section.split(".nf\n").skip(1) {
        let block = block.split("\n.fi").next().unwrap_or_default();
        let text = block.replace("\\e", "\\").replace("\\&", "").replace("\\\n", "");
        let prompted: Vec<&str> = text.lines().filter_map(|l| l.strip_prefix("$ ")).collect();
        match prompted.is_empty() {
            true => found.extend(text.lines().map(str::to_owned)),
            false => found.extend(prompted.into_iter().map(str::to_owned)),
        }
    }
    found
}

/// The words of a shell command line with their quotes taken off; operators are words.
fn words(line: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(q), c) if q == c => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, ' ') => found.push(String::new()),
            (None, '|' | '&' | ';' | '`' | '(' | ')') => found.extend([c.into(), String::new()]),
            (_, c) => found.last_mut().unwrap().push(c),
        }
    }
    found.retain(|word| !word.is_empty());
    found
}

/// A line without its redirections, which would name files that are not there.
fn without_files(line: &str) -> String {
    let (mut out, mut quote) = (String::new(), None);
    // behind an operator: has the name begun?
    let mut name: Option<bool> = None;
    for c in line.chars() {
        match quote {
            Some(q) if q == c => quote = None,
            None if c == '"' || c == '\'' => quote = Some(c),
            _ => {}
        }
        match name {
            None if quote.is_none() && (c == '<' || c == '>') => name = Some(false),
            None => out.push(c),
            Some(false) => name = Some(!"<> ".contains(c)),
            Some(true) if quote.is_none() && c == ' ' => (name, out) = (None, out + " "),
            Some(true) => {}
        }
    }
    out
}

/// Runs a line in a shell of its own; what was said on standard error, or that it took too long.
fn run(dir: &Path, line: &str) -> String {
    let stubs: String = NOT_RUN.iter().map(|name| format!("{name}() {{ :; }}; ")).collect();
    let errors = dir.join("errors");
    let script = format!("{stubs}kill() {{ :; }}; {line}");
    let mut child = Command::new("/bin/sh")
        .args(["-c", &script])
        .env_clear()
        .env("PATH", dir.join("bin"))
        .env("HOME", dir)
        .env("LSF_ENVDIR", dir.join("none"))
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&errors).unwrap())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > PATIENCE {
            child.kill().unwrap();
            child.wait().unwrap();
            return format!("Usage: not over after {PATIENCE:?}");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    String::from_utf8_lossy(&std::fs::read(&errors).unwrap()).into_owned()
}

/// Was a word of the line not understood?
fn misunderstood(said: &str) -> bool {
    ["Usage:", "llegal option", "Invalid command", "not understood"]
        .iter()
        .any(|w| said.contains(w))
}

#[test]
fn every_page_has_examples_that_its_command_understands() {
    let binary = binary();
    let applets: BTreeSet<String> =
        said(&binary, &["--list"]).split_whitespace().map(str::to_owned).collect();
    let dir = std::env::temp_dir().join(format!("lsf-examples-{}", std::process::id()));
    std::fs::create_dir_all(dir.join("bin")).unwrap();
    for applet in &applets {
        std::os::unix::fs::symlink(&binary, dir.join("bin").join(applet)).unwrap();
    }
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    for entry in std::fs::read_dir(root().join("man")).unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let page = std::fs::read_to_string(entry.path()).unwrap();
        let lines = commands(&page);
        if lines.is_empty() {
            found.push(format!("man/{name}: no EXAMPLES"));
        }
        let known = |word: &String| applets.contains(word) || word == "lsf";
        for line in lines.iter().filter(|line| words(line).iter().any(known)) {
            let of: Vec<String> = words(line).into_iter().filter(known).collect();
            seen.extend(of.iter().map(|applet| page_of(applet).to_owned()));
            let line = without_files(line.trim_start());
            let heard = if line.starts_with(". ") { String::new() } else { run(&dir, &line) };
            if misunderstood(&heard) {
                found.push(format!("man/{name}: {line}: {}", heard.lines().next().unwrap_or("")));
            }
            for applet in of.iter().filter(|a| NOT_RUN.contains(&a.as_str()) && *a != "lsf") {
                let help = options(&said(&binary, &[applet, "-h"]));
                let own = words(&line).into_iter().skip_while(|w| !w.ends_with(applet.as_str()));
                for word in own.filter(|w| w.starts_with('-')) {
                    let option = word.split('=').next().unwrap_or_default();
                    if !help.iter().any(|h| h.split('=').next() == Some(option)) {
                        found.push(format!("man/{name}: {line}: {applet} has no {option}"));
                    }
                }
            }
        }
    }
    for applet in seen.iter().filter(|a| applets.contains(*a)) {
        let acts = NOT_RUN.contains(&applet.as_str()) || PASSING_ON.contains(&applet.as_str());
        if !acts && !misunderstood(&run(&dir, &format!("{applet} -%none"))) {
            found.push(format!("{applet} -%none: no usage, so its examples prove nothing"));
        }
    }
    std::fs::remove_dir_all(&dir).unwrap();
    assert!(seen.len() > 40, "only {} commands have examples: {seen:?}", seen.len());
    report("examples", found);
}

#[test]
fn commands_of_examples_are_told_from_what_they_print() {
    let page = "x\n.SH EXAMPLES\nWords:\n.nf\n$ lsid\nlsf 1\n.fi\n.nf\nbjobs -l \\e\n  1\nbhosts\n.fi\n\
                .SH SEE ALSO\n.nf\nbkill 1\n.fi\n";
    assert_eq!(commands(page), ["lsid", "bjobs -l   1", "bhosts"]);
    assert_eq!(
        words("a -J 'b c'|d && `e` \"f\""),
        ["a", "-J", "b c", "|", "d", "&", "&", "`", "e", "`", "f"]
    );
    assert_eq!(without_files("bsub -w 'a < b' x < job.sh"), "bsub -w 'a < b' x ");
    assert_eq!(without_files("a >> /x/y && b"), "a  && b");
}
