//! The command of a job: words of the command line, a script on standard input, or a script file.

use super::rejection::Rejection;
use super::{command, script};
use lsf::cli::ctx::Ctx;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufRead, IsTerminal, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Bytes of a file looked at to tell a script from a program.
const HEAD: usize = 8192;

/// The command or script to run.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct JobSource {
    /// The command text.
    pub command: Vec<u8>,
    /// The script that is spooled and runs in place of the command.
    pub script: Option<Vec<u8>>,
}

/// Finds out what the job runs. `parse_script`: LSB_BSUB_PARSE_SCRIPT, a first word that names a
/// script file is read here and now.
pub fn read(
    ctx: &mut Ctx,
    operands: &[OsString],
    parse_script: bool,
) -> Result<JobSource, Rejection> {
    let Some(first) = operands.first() else {
        let script = standard_input(ctx)?;
        if script::is_blank(&script) {
            return Err(Rejection::new("No command is specified"));
        }
        return Ok(JobSource { command: script::shown(&script), script: Some(script) });
    };
    let words: Vec<&[u8]> = operands.iter().map(|o| o.as_bytes()).collect();
    let mut source = JobSource { command: command::text(&words), script: None };
    if script::is_blank(&source.command) {
        return Err(Rejection::new("No command is specified"));
    }
    if parse_script {
        source.script = script_file(first)?.map(|s| with_arguments(s, &words[1..])).transpose()?;
    }
    Ok(source)
}

/// Everything on standard input, prompting where somebody types it.
fn standard_input(ctx: &mut Ctx) -> Result<Vec<u8>, Rejection> {
    let input = io::stdin().lock();
    let got = match input.is_terminal() {
        true => typed(ctx, input),
        false => bounded(input),
    };
    got.map_err(|e| cannot_read("standard input", &e))
}

fn typed(ctx: &mut Ctx, mut input: io::StdinLock) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    loop {
        // The prompt goes to stderr: stdout begins with the answer.
        let _ = write!(ctx.err, "bsub> ");
        let _ = ctx.err.flush();
        let left = (script::MAX_SCRIPT + 1).saturating_sub(text.len() as u64);
        if (&mut input).take(left).read_until(b'\n', &mut text)? == 0 {
            return checked(text);
        }
    }
}

fn bounded(input: impl Read) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    input.take(script::MAX_SCRIPT + 1).read_to_end(&mut text)?;
    checked(text)
}

fn checked(text: Vec<u8>) -> io::Result<Vec<u8>> {
    if text.len() as u64 > script::MAX_SCRIPT {
        let words = format!("the script is longer than {} bytes", script::MAX_SCRIPT);
        return Err(io::Error::other(words));
    }
    Ok(text)
}

fn cannot_read(what: &str, e: &io::Error) -> Rejection {
    Rejection::new(format!("{what}: the job script cannot be read: {}", lsf::sys::words(e)))
}

/// The script in the file that the first word names; `None` where it names a program, or nothing
/// here (the host may have it).
fn script_file(word: &OsStr) -> Result<Option<Vec<u8>>, Rejection> {
    let path = Path::new(word);
    let name = word.to_string_lossy();
    let meta = match std::fs::metadata(path) {
        Ok(meta) => meta,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(cannot_read(&name, &e)),
    };
    if meta.is_dir() {
        return Err(cannot_read(&name, &io::Error::from_raw_os_error(21)));
    }
    if !meta.is_file() {
        return Ok(None);
    }
    let mut file = match File::open(path) {
        Ok(file) => file,
        // A program may be run without being readable.
        Err(_) if runnable(&meta) => return Ok(None),
        Err(e) => return Err(cannot_read(&name, &e)),
    };
    let mut head = Vec::new();
    let got = Read::by_ref(&mut file).take(HEAD as u64).read_to_end(&mut head);
    got.map_err(|e| cannot_read(&name, &e))?;
    if head.contains(&0) {
        return Ok(None);
    }
    let rest = bounded(file).map_err(|e| cannot_read(&name, &e))?;
    head.extend_from_slice(&rest);
    Ok(script::looks_like_script(&head).then_some(head))
}

fn runnable(meta: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    meta.permissions().mode() & 0o111 != 0
}

/// The script with the words behind its name set as arguments: by a line `set -- ...` behind the
/// first one. Only a POSIX shell understands that line.
fn with_arguments(script: Vec<u8>, arguments: &[&[u8]]) -> Result<Vec<u8>, Rejection> {
    if arguments.is_empty() {
        return Ok(script);
    }
    let end = script.iter().position(|&b| b == b'\n').unwrap_or(script.len());
    let first = &script[..end];
    let shebang = first.starts_with(b"#!");
    if shebang && !is_shell(&first[2..]) {
        return Err(Rejection::new(
            "arguments can only be given to a script of sh, bash, dash, ksh or zsh; \
             wrap it in one",
        ));
    }
    let split = if shebang { end } else { 0 };
    let mut out = script[..split].to_vec();
    if shebang {
        out.push(b'\n');
    }
    out.extend_from_slice(b"set --");
    for word in arguments {
        out.extend_from_slice(b" '");
        out.extend(word.iter().flat_map(|&b| match b {
            b'\'' => b"'\\''".to_vec(),
            b => vec![b],
        }));
        out.push(b'\'');
    }
    if !shebang {
        out.push(b'\n');
    }
    out.extend_from_slice(&script[split..]);
    Ok(out)
}

/// Whether a `#!` line (without these) names a POSIX shell.
fn is_shell(line: &[u8]) -> bool {
    let line = String::from_utf8_lossy(line);
    let mut words = line.split_whitespace().map(|w| w.rsplit('/').next().unwrap_or(w));
    let name = match words.next() {
        Some("env") => words.find(|w| !w.starts_with('-')),
        name => name,
    };
    matches!(name, Some("sh" | "bash" | "dash" | "ksh" | "zsh"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn dir(name: &str) -> std::path::PathBuf {
        let dir = std::env::temp_dir().join(format!("lsf-bsub-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        dir
    }

    #[test]
    fn script_files_are_told_from_programs_and_from_nothing() {
        let dir = dir("files");
        let at = |name: &str, text: &[u8]| {
            let path = dir.join(name);
            std::fs::write(&path, text).unwrap();
            path.into_os_string()
        };
        let script = at("s", b"#!/bin/sh\n#BSUB -n 2\n");
        assert_eq!(script_file(&script).unwrap().unwrap(), b"#!/bin/sh\n#BSUB -n 2\n");
        assert_eq!(script_file(&at("p", b"\x7fELF\0")).unwrap(), None);
        assert_eq!(script_file(&at("t", b"just text\n")).unwrap(), None);
        assert_eq!(script_file(dir.join("none").as_os_str()).unwrap(), None);
        let e = script_file(dir.as_os_str()).unwrap_err().to_string();
        assert!(e.contains("cannot be read: Is a directory. Job not submitted."), "{e}");
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_long_script_is_refused() {
        let e = bounded(io::repeat(b'x')).unwrap_err();
        assert!(e.to_string().contains("longer than"));
    }

    #[test]
    fn arguments_reach_the_script() {
        let args: [&[u8]; 3] = [b"a b", b"it's", b""];
        for script in [
            "#!/bin/sh\nprintf '%s,' \"$@\"\n",
            "printf '%s,' \"$@\"",
            "#!/usr/bin/env -S bash\nprintf '%s,' \"$@\"",
        ] {
            let full = with_arguments(script.into(), &args).unwrap();
            let text = String::from_utf8(full).unwrap();
            let out = Command::new("/bin/sh").arg("-c").arg(&text).output().unwrap();
            assert_eq!(out.stdout, b"a b,it's,,", "{text}");
        }
        assert!(with_arguments(b"#!/usr/bin/python3\n".to_vec(), &args).is_err());
        assert!(with_arguments(b"#!/usr/bin/python3\n".to_vec(), &[]).is_ok());
    }
}
