//! Paths of job groups: `/a/b`, from the root, which itself is no group.

/// Longest path of a job group, bytes.
pub const MAX_PATH: usize = 512;
/// Most groups on the way from the root to a group.
pub const MAX_DEPTH: usize = 64;

/// The path as it is kept, without a slash at its end; `None`: it is not one of a group.
pub fn path_of(text: &str) -> Option<&str> {
    let path = text.strip_suffix('/').unwrap_or(text);
    let parts = path.strip_prefix('/')?;
    let plain =
        |part: &str| !part.is_empty() && !part.chars().any(|c| c.is_control() || c.is_whitespace());
    let depth = parts.split('/').count();
    let good = path.len() <= MAX_PATH && depth <= MAX_DEPTH && parts.split('/').all(plain);
    good.then_some(path)
}

/// The group itself, then each group above it.
pub fn lineage(path: &str) -> impl Iterator<Item = &str> {
    fn group(path: &str) -> Option<&str> {
        (!path.is_empty()).then_some(path)
    }
    std::iter::successors(group(path), |path| group(&path[..path.rfind('/')?]))
}

/// Is a group the other one, or below it?
pub fn is_within(path: &str, other: &str) -> bool {
    path.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_groups_begin_at_the_root_and_have_plain_parts() {
        assert_eq!(path_of("/a/b/"), Some("/a/b"));
        assert_eq!(path_of("/a"), Some("/a"));
        for bad in ["", "/", "//", "a", "a/b", "/a//b", "/a b", "/a\n", "/a/b//"] {
            assert_eq!(path_of(bad), None, "{bad:?}");
        }
        let long = |n: usize| format!("/{}", "x".repeat(n));
        assert!(path_of(&long(MAX_PATH - 1)).is_some() && path_of(&long(MAX_PATH)).is_none());
        assert!(path_of(&"/x".repeat(MAX_DEPTH)).is_some());
        assert!(path_of(&"/x".repeat(MAX_DEPTH + 1)).is_none());
    }

    #[test]
    fn lineage_names_the_group_and_each_above_it() {
        let all = |path| lineage(path).map(str::to_string).collect::<Vec<_>>();
        assert_eq!(all("/a/b/c"), ["/a/b/c", "/a/b", "/a"]);
        assert_eq!(all("/a"), ["/a"]);
        assert_eq!(all(""), [""; 0]);
        assert!(is_within("/a/b", "/a") && is_within("/a", "/a"));
        assert!(!is_within("/ab", "/a") && !is_within("/a", "/a/b"));
    }
}
