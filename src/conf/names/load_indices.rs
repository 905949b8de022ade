//! The names of the built-in load indices. See lsf.cluster(5).

/// The eleven built-in load indices and their aliases, which name thresholds.
pub const LOAD_INDICES: &[&str] = &[
    "r15s", "r1m", "r15m", "ut", "pg", "io", "ls", "it", "tmp", "swp", "mem", "cpu", "login",
    "idle", "swap",
];

/// The name of a load index in its short spelling: `cpu` is r1m, `login` ls, `idle` it, `swap`
/// swp. None: not a built-in index.
pub fn load_index(word: &str) -> Option<&'static str> {
    let known = LOAD_INDICES.iter().find(|i| i.eq_ignore_ascii_case(word))?;
    Some(match *known {
        "cpu" => "r1m",
        "login" => "ls",
        "idle" => "it",
        "swap" => "swp",
        other => other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_of_load_indices() {
        assert_eq!(load_index("CPU"), Some("r1m"));
        assert_eq!(load_index("R15s"), Some("r15s"));
        assert_eq!(load_index("gpu"), None);
    }
}
