//! Notices about the binding to processors that the user's environment asks for (LSF_BIND_JOB of
//! lsf.conf(5)).

use lsf::cli::long_format::clean;
use lsf::model::bind_job::BindPolicy;
use lsf::model::topology::CpuSet;

/// Longest text of a value that is shown, bytes.
const SHOWN: usize = 64;

/// Words for values in the environment of a job that have no meaning.
pub fn notices(env: &[u8]) -> Vec<String> {
    let value = |name: &str| {
        let entry = |entry: &[u8]| {
            Some(entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?.to_owned())
        };
        let found = env.split(|b| *b == 0).find_map(entry)?;
        let text = String::from_utf8_lossy(&found).trim().to_owned();
        (!text.is_empty()).then_some(text)
    };
    let shown = |text: &str| clean(lsf::model::cut(text, SHOWN));
    let mut all = Vec::new();
    if let Some(word) = value("LSB_USER_BIND_JOB").filter(|w| BindPolicy::of_user(w).is_none()) {
        all.push(format!(
            "bsub: LSB_USER_BIND_JOB <{}> has no effect: NONE, BALANCE, PACK or ANY is wanted",
            shown(&word)
        ));
    }
    if let Some(list) = value("LSB_USER_BIND_CPU_LIST")
        && let Err(part) = CpuSet::parse(&list)
    {
        all.push(format!(
            "bsub: LSB_USER_BIND_CPU_LIST <{}> has no effect: <{}> is no processor and no range",
            shown(&list),
            shown(part)
        ));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_without_a_meaning_are_told_and_others_are_not() {
        let told = |env: &str| notices(env.replace(' ', "\0").as_bytes());
        let word = |word: &str| told(&format!("A=1 LSB_USER_BIND_JOB={word} B=2 "));
        for known in ["NONE", "balance", "Pack", "ANY", "Y", "n", ""] {
            assert!(word(known).is_empty(), "{known}");
        }
        assert!(told("A=1 ").is_empty());
        for unknown in ["SPREAD", "USER", "USER_CPU_LIST", "2"] {
            let want = format!(
                "bsub: LSB_USER_BIND_JOB <{unknown}> has no effect: NONE, BALANCE, PACK or ANY is \
                 wanted"
            );
            assert_eq!(word(unknown), [want]);
        }
        assert!(word("A\x1b[2J").iter().all(|text| !text.contains('\x1b')));
        assert!(told("LSB_USER_BIND_CPU_LIST=0,2-5 ").is_empty());
        let want = "bsub: LSB_USER_BIND_CPU_LIST <0,x-5> has no effect: <x-5> is no processor and \
                    no range";
        assert_eq!(told("LSB_USER_BIND_CPU_LIST=0,x-5 "), [want]);
    }
}
