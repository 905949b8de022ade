//! -hostfile: the hosts and slots that a job is to have, from a file of the user's (bsub(1)): a
//! host on each line, with its slots where those are not one; `#` begins a comment.

use super::rejection::Rejection;
use lsf::model::further::HostLines;
use lsf::model::job::JobSpec;
use lsf::sys::words;
use std::fs::File;
use std::io::Read;

/// Largest host file, bytes.
const MAX_FILE: u64 = 256 << 10;

/// Puts what the file says into the submission.
pub fn put(path: &str, spec: &mut JobSpec) -> Result<(), Rejection> {
    let about = |why: String| Rejection::new(format!("{path}: {why}"));
    let mut text = String::new();
    let read = File::open(path).and_then(|f| f.take(MAX_FILE + 1).read_to_string(&mut text));
    read.map_err(|e| about(words(&e)))?;
    if text.len() as u64 > MAX_FILE {
        return Err(about(format!("the host file has more than {MAX_FILE} bytes")));
    }
    let lines = parse(&text).map_err(about)?;
    let full = std::path::absolute(path).map_err(|e| about(words(&e)))?;
    spec.further.host_file = full.to_string_lossy().into();
    spec.further.host_lines = lines;
    Ok(())
}

fn parse(text: &str) -> Result<HostLines, String> {
    let mut all = Vec::new();
    for (line, n) in text.lines().zip(1..) {
        let kept = line.split('#').next().unwrap_or_default();
        let mut words = kept.split_whitespace();
        let Some(host) = words.next() else { continue };
        let slots = words.next().unwrap_or("1").parse().ok().filter(|slots| *slots > 0);
        let (Some(slots), None) = (slots, words.next()) else {
            return Err(format!("line {n}: <{}> is not a host and its slots", kept.trim()));
        };
        all.push((host.into(), slots));
    }
    if all.is_empty() {
        return Err("the host file names no host".into());
    }
    Ok(all.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_name_hosts_and_slots() {
        let text = "# mine\nh1 3\n\n  h2\t# one\nh1 1\n";
        let want = [("h1".into(), 3), ("h2".into(), 1), ("h1".into(), 1)];
        assert_eq!(parse(text).as_deref(), Ok(&want[..]));
        for (bad, why) in [
            ("h1 0\n", "line 1: <h1 0> is not a host and its slots"),
            ("h1\nh2 x", "line 2: <h2 x> is not a host and its slots"),
            ("h1 1 2", "line 1: <h1 1 2> is not a host and its slots"),
            ("h1 -1", "line 1: <h1 -1> is not a host and its slots"),
            ("#\n \n", "the host file names no host"),
        ] {
            assert_eq!(parse(bad).unwrap_err(), why);
        }
        let why = put("/no/such", &mut JobSpec::default()).unwrap_err();
        assert_eq!(why.words, "/no/such: No such file or directory");
    }
}
