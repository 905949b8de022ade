//! JOB_STARTER (lsb.queues(5)): the command line that starts a job of a queue with a starter.
//!
//! A starter is given the path of the job file as one word, so that the command of the job reaches
//! it whole, whatever quotes and special characters that holds.

/// The position of the job in the words of a starter.
const USER_COMMAND: &[u8] = b"%USRCMD";

/// The line that /bin/sh is to run: the starter with the job file at each `%USRCMD`, behind its
/// last word where there is none.
pub fn command_line(starter: &[u8], job_file: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(starter.len() + job_file.len() + 8);
    let (mut rest, mut placed, mut quote) = (starter, false, None);
    while let Some((&byte, tail)) = rest.split_first() {
        if let Some(after) = rest.strip_prefix(USER_COMMAND) {
            push_path(&mut out, job_file, quote);
            (rest, placed) = (after, true);
            continue;
        }
        out.push(byte);
        rest = tail;
        match (quote, byte) {
            (None, b'\'' | b'"') => quote = Some(byte),
            (Some(open), _) if open == byte => quote = None,
            (None | Some(b'"'), b'\\') => {
                if let Some((&next, tail)) = rest.split_first() {
                    out.push(next);
                    rest = tail;
                }
            }
            _ => {}
        }
    }
    if !placed {
        out.push(b' ');
        push_path(&mut out, job_file, None);
    }
    out
}

/// Writes a path so that it stays one word: for the shell that reads the line, and where the path
/// stands in quotes for the shell that the starter calls with the text in them, too.
fn push_path(out: &mut Vec<u8>, path: &[u8], quote: Option<u8>) {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"/._-+=@%,:".contains(&b) || b >= 128;
    let escaped = path.iter().flat_map(|&byte| {
        let escape = (!plain(byte)).then_some(b'\\');
        escape.into_iter().chain([byte])
    });
    for byte in escaped {
        match quote {
            Some(b'\'') if byte == b'\'' => out.extend_from_slice(b"'\\'"),
            Some(b'"') if b"$`\"\\".contains(&byte) => out.push(b'\\'),
            _ => {}
        }
        out.push(byte);
    }
}

/// The text of a job file for a command that was given as words: the kernel has to find its
/// interpreter.
pub fn job_file_text(text: &[u8]) -> Vec<u8> {
    let first: &[u8] = if text.starts_with(b"#!") { b"" } else { b"#!/bin/sh\n" };
    [first, text].concat()
}

/// One word for a shell.
pub(super) fn quoted(word: &[u8]) -> Vec<u8> {
    let mut out = vec![b'\''];
    for &b in word {
        match b {
            b'\'' => out.extend_from_slice(b"'\\''"),
            b => out.push(b),
        }
    }
    out.push(b'\'');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(starter: &str, file: &str) -> String {
        String::from_utf8(command_line(starter.as_bytes(), file.as_bytes())).unwrap()
    }

    #[test]
    fn a_starter_gets_the_job_file_at_its_place_or_behind_its_last_word() {
        let file = "/home/ann/.lsbatch/9.7";
        for (starter, want) in [
            ("xterm -e", "xterm -e /home/ann/.lsbatch/9.7"),
            ("/bin/csh -c \"%USRCMD;sleep 10\"", "/bin/csh -c \"/home/ann/.lsbatch/9.7;sleep 10\""),
            ("a '%USRCMD' b %USRCMD", "a '/home/ann/.lsbatch/9.7' b /home/ann/.lsbatch/9.7"),
            ("a \\\" %USRCMD", "a \\\" /home/ann/.lsbatch/9.7"),
        ] {
            assert_eq!(line(starter, file), want, "{starter}");
        }
    }

    #[test]
    fn a_path_with_special_characters_stays_one_word_for_both_shells() {
        let dir = std::env::temp_dir().join(format!("lsf starter's $x\"{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let file = dir.join("job `a");
        std::fs::write(&file, "echo ran\n").unwrap();
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o700)).unwrap();
        for starter in
            ["/bin/sh", "/bin/sh %USRCMD", "/bin/sh -c \"%USRCMD; :\"", "/bin/sh -c '%USRCMD; :'"]
        {
            let text = line(starter, file.to_str().unwrap());
            let out = std::process::Command::new("/bin/sh").arg("-c").arg(&text).output().unwrap();
            let said = String::from_utf8_lossy(&out.stderr);
            assert_eq!(out.stdout, b"ran\n", "{text}: {said}");
        }
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
