//! The script of a request, and the flags in it.

use super::refusal::refused;
use crate::bsub::Stop;
use crate::bsub::script::{MAX_SCRIPT, is_blank, words};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The script, and what the request is named after.
#[derive(Default)]
pub struct Source {
    pub text: Vec<u8>,
    /// The name of the script's file; `None`: standard input.
    pub name: Option<String>,
}

/// Reads the script: the operand, else standard input.
pub fn read(operands: &[OsString]) -> Result<Source, Stop> {
    let told = |what: &str, e: &io::Error| refused(format!("{what}: {}", lsf::sys::words(e)));
    let (text, name) = match operands {
        [] => (bounded(io::stdin().lock()).map_err(|e| told("standard input", &e))?, None),
        [file] => {
            let path = Path::new(file);
            let shown = file.to_string_lossy();
            let text = File::open(path).and_then(bounded).map_err(|e| told(&shown, &e))?;
            let name = path.file_name().map(|n| n.to_string_lossy().into_owned());
            (text, name)
        }
        [_, more, ..] => {
            let words =
                format!("nothing is wanted behind the script: <{}>", more.to_string_lossy());
            return Err(refused(words));
        }
    };
    match is_blank(&text) {
        true => Err(refused("the script is empty")),
        false => Ok(Source { text, name }),
    }
}

fn bounded(input: impl Read) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    input.take(MAX_SCRIPT + 1).read_to_end(&mut text)?;
    if text.len() as u64 > MAX_SCRIPT {
        return Err(io::Error::other(format!("the script is longer than {MAX_SCRIPT} bytes")));
    }
    Ok(text)
}

/// The words of each line of flags at the top of a script.
pub fn flags(script: &[u8]) -> Result<Vec<Vec<OsString>>, Stop> {
    let mut all = Vec::new();
    for (n, line) in script.split(|b| *b == b'\n').enumerate() {
        let line = String::from_utf8_lossy(line);
        let line = line.trim_end();
        if line.trim_start().is_empty() {
            continue;
        }
        // the first line that is no comment ends them
        if !line.starts_with('#') {
            break;
        }
        let Some(rest) = directive(line) else { continue };
        if rest.trim().is_empty() {
            break;
        }
        let found = words(rest).ok_or_else(|| {
            refused(format!("line {} of the script: a quote is not closed", n + 1))
        })?;
        all.push(found.into_iter().map(OsString::from).collect());
    }
    Ok(all)
}

/// The text behind `#QSUB`, `# QSUB` or `# @$`.
fn directive(line: &str) -> Option<&str> {
    let rest = line.strip_prefix('#')?.trim_start();
    if let Some(rest) = rest.strip_prefix("@$") {
        return Some(rest);
    }
    let rest = rest.strip_prefix("QSUB")?;
    rest.chars().next().is_none_or(char::is_whitespace).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(script: &str) -> Vec<String> {
        let all = flags(script.as_bytes()).ok().unwrap();
        let line = |l: &Vec<OsString>| {
            l.iter().map(|w| w.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
        };
        all.iter().map(line).collect()
    }

    #[test]
    fn flags_stand_in_the_comments_at_the_top() {
        let script = "#!/bin/sh\n#QSUB -lM 10mw -q nlb # big\n# plain\n# QSUB -r name\n\n\
                      # @$-lt 30\n#QSUBX -no\necho hello\n#QSUB -z\n";
        assert_eq!(found(script), ["-lM 10mw -q nlb", "-r name", "-lt 30"]);
        assert_eq!(found("#QSUB -z\n#QSUB\n#QSUB -x\n"), ["-z"]);
        assert!(found("echo\n#QSUB -z\n").is_empty());
        assert!(flags(b"#QSUB -r 'x\n").is_err());
    }
}
