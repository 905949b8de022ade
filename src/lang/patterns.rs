//! Patterns in the file names and directories of a job: `%J`, `%I` and, in directories, the rest.
//!
//! Implements commands.md bsub (-o, -e, -i, -cwd, -outdir). `%%` is a per cent sign; a `%` before
//! anything that is no pattern stays as it is, so that names with a bare `%` keep working. Names
//! are bytes: they need not be UTF-8.

/// What patterns stand for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values<'a> {
    /// `%J`
    pub job: u64,
    /// `%I`: 0 outside an array.
    pub index: u32,
    /// What only directories know; None in file names.
    pub dir: Option<DirValues<'a>>,
}

/// What patterns in directories stand for. `%EJ` and `%EI`, the ID and index on the execution
/// cluster, are `%J` and `%I` without a cluster in between.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirValues<'a> {
    /// `%JG`: the job group.
    pub job_group: &'a [u8],
    /// `%P`: the project.
    pub project: &'a [u8],
    /// `%U`: the user.
    pub user: &'a [u8],
    /// `%G`: the user group.
    pub user_group: &'a [u8],
    /// `%H`: the first execution host.
    pub host: &'a [u8],
}

/// Replaces every pattern.
pub fn expand(text: &[u8], values: &Values<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(at) = rest.iter().position(|b| *b == b'%') {
        let (plain, from) = rest.split_at(at);
        out.extend_from_slice(plain);
        let used = replace(from.get(1..).unwrap_or(&[]), values, &mut out);
        if used == 0 {
            out.push(b'%');
        }
        rest = from.get(1 + used..).unwrap_or(&[]);
    }
    out.extend_from_slice(rest);
    out
}

/// Appends what the letters after a `%` stand for; how many letters those are, 0 if none.
fn replace(letters: &[u8], values: &Values<'_>, out: &mut Vec<u8>) -> usize {
    let mut put = |text: &[u8], used: usize| {
        out.extend_from_slice(text);
        used
    };
    let (job, index) = (values.job.to_string(), values.index.to_string());
    if let Some(dir) = &values.dir {
        match letters {
            [b'J', b'G', ..] => return put(dir.job_group, 2),
            [b'E', b'J', ..] => return put(job.as_bytes(), 2),
            [b'E', b'I', ..] => return put(index.as_bytes(), 2),
            [b'P', ..] => return put(dir.project, 1),
            [b'U', ..] => return put(dir.user, 1),
            [b'G', ..] => return put(dir.user_group, 1),
            [b'H', ..] => return put(dir.host, 1),
            _ => {}
        }
    }
    match letters {
        [b'%', ..] => put(b"%", 1),
        [b'J', ..] => put(job.as_bytes(), 1),
        [b'I', ..] => put(index.as_bytes(), 1),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file(text: &str) -> String {
        let values = Values { job: 101, index: 7, dir: None };
        String::from_utf8(expand(text.as_bytes(), &values)).unwrap()
    }

    #[test]
    fn job_and_index_in_file_names() {
        assert_eq!(file("out.%J.%I"), "out.101.7");
        assert_eq!(file("%J%I%J"), "1017101");
        assert_eq!(file("plain"), "plain");
        assert_eq!(file("100%"), "100%");
        assert_eq!(file("%%J-%%%J"), "%J-%101");
        assert_eq!(file("50%x %P %JG"), "50%x %P 101G");
        let single = Values { job: 5, ..Values::default() };
        assert_eq!(expand(b"%J.%I\xff", &single), b"5.0\xff");
    }

    #[test]
    fn directories_know_more() {
        let dir = DirValues {
            job_group: b"/a/b",
            project: b"proj",
            user: b"alice",
            user_group: b"ug",
            host: b"hosta",
        };
        let values = Values { job: 101, index: 7, dir: Some(dir) };
        let shown = expand(b"%JG/%J/%EJ.%EI/%P/%U/%G/%H/%E", &values);
        assert_eq!(shown, b"/a/b/101/101.7/proj/alice/ug/hosta/%E");
    }

    proptest! {
        #[test]
        fn text_without_patterns_stays(text in "[a-z/. ]{0,30}", odd in any::<Vec<u8>>()) {
            prop_assert_eq!(file(&text), text);
            expand(&odd, &Values { dir: Some(DirValues::default()), ..Values::default() });
        }
    }
}
